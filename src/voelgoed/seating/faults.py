"""What is wrong with a layout: every fault with its place, a stable code, words, and what to do about it."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum

from voelgoed.errors import DomainError, Kind

FAULTS_REPORTED_MAX = 500


class FaultCode(StrEnum):
    """Kinds of faults; the words are part of the contract."""

    NOT_JSON = "not_json"
    NOT_CSV = "not_csv"
    UNKNOWN_FORMAT = "unknown_format"
    WRONG_TYPE = "wrong_type"
    MISSING = "missing"
    UNKNOWN_KEY = "unknown_key"
    UNKNOWN_VALUE = "unknown_value"
    OUT_OF_RANGE = "out_of_range"
    TOO_LONG = "too_long"
    TOO_MANY = "too_many"
    EMPTY = "empty"
    BLANK = "blank"
    NOT_PRINTABLE = "not_printable"
    COLUMN_LENGTH = "column_length"
    PLACE_OUTSIDE_ROW = "place_outside_row"
    BREAKS_ORDER = "breaks_order"
    POSITION_ORDER = "position_order"
    SEAT_OVERLAP = "seat_overlap"
    DUPLICATE_ZONE_CODE = "duplicate_zone_code"
    DUPLICATE_ROW_LABEL = "duplicate_row_label"
    DUPLICATE_SEAT_CODE = "duplicate_seat_code"
    DUPLICATE_SEAT_LABEL = "duplicate_seat_label"
    DUPLICATE_GROUP_CODE = "duplicate_group_code"
    CAPACITY_MISMATCH = "capacity_mismatch"
    TOTAL_CAPACITY_MISMATCH = "total_capacity_mismatch"
    SEATS_NOT_ALLOWED = "seats_not_allowed"
    SEATS_MISSING = "seats_missing"
    TIER_MISSING = "tier_missing"
    TIER_UNUSED = "tier_unused"
    ROLES_MISSING = "roles_missing"
    ROLES_UNUSED = "roles_unused"
    VIP_PUBLIC = "vip_public"
    AISLE_BETWEEN_SEATS = "aisle_between_seats"
    COMPANION_UNKNOWN = "companion_unknown"
    COMPANION_NOT_WHEELCHAIR = "companion_not_wheelchair"
    COMPANION_CATEGORY = "companion_category"
    COMPANION_OTHER_ZONE = "companion_other_zone"
    COMPANION_TOO_MANY = "companion_too_many"
    GROUP_SEAT_UNKNOWN = "group_seat_unknown"
    GROUP_OTHER_ZONE = "group_other_zone"
    GROUP_KIND_MISMATCH = "group_kind_mismatch"
    SEAT_IN_TWO_GROUPS = "seat_in_two_groups"
    ZONE_NOT_PERMITTED = "zone_not_permitted"
    SEAT_NOT_PERMITTED = "seat_not_permitted"


HINTS: Mapping[FaultCode, str] = {
    FaultCode.NOT_JSON: "Check the file with a JSON editor; it must be UTF-8.",
    FaultCode.NOT_CSV: "Save the sheet as CSV in UTF-8, with commas or semicolons, and one line of column names first.",
    FaultCode.UNKNOWN_FORMAT: "Begin the document with the format it is written in.",
    FaultCode.WRONG_TYPE: "See docs/layout-format.md for what belongs here.",
    FaultCode.MISSING: "Add it.",
    FaultCode.UNKNOWN_KEY: "Remove it, or correct its spelling.",
    FaultCode.UNKNOWN_VALUE: "Use one of the words that are listed.",
    FaultCode.OUT_OF_RANGE: "Use a value within the range.",
    FaultCode.TOO_LONG: "Shorten it.",
    FaultCode.TOO_MANY: "Split it, or leave some out.",
    FaultCode.EMPTY: "Put something in, or leave the key out.",
    FaultCode.BLANK: "Write something, without spaces around it.",
    FaultCode.NOT_PRINTABLE: "Remove line breaks, tabs and other invisible characters.",
    FaultCode.COLUMN_LENGTH: "Give one value per seat, or correct `count`.",
    FaultCode.PLACE_OUTSIDE_ROW: "Places count the seats of the row from 1.",
    FaultCode.BREAKS_ORDER: "Name each break once, from the left.",
    FaultCode.POSITION_ORDER: "List the seats from the left: every position is greater than the one before.",
    FaultCode.SEAT_OVERLAP: "Move one of the two seats.",
    FaultCode.DUPLICATE_ZONE_CODE: "Give each zone a code of its own.",
    FaultCode.DUPLICATE_ROW_LABEL: "Give each row of a zone a label of its own, or make them one row with a break.",
    FaultCode.DUPLICATE_SEAT_CODE: "Give each seat of the layout a code of its own.",
    FaultCode.DUPLICATE_SEAT_LABEL: "Give each seat of a row a label of its own.",
    FaultCode.DUPLICATE_GROUP_CODE: "Give each group of the layout a code of its own.",
    FaultCode.CAPACITY_MISMATCH: "Leave the capacity of a zone with seats out: it is counted.",
    FaultCode.TOTAL_CAPACITY_MISMATCH: "Leave the total out: it is counted.",
    FaultCode.SEATS_NOT_ALLOWED: "Make the zone reserved_seating or vip_reserved, or give it a capacity and no seats.",
    FaultCode.SEATS_MISSING: "Give the zone rows with seats, or make it a ga_ or standing zone with a capacity.",
    FaultCode.TIER_MISSING: "Name the membership tier that opens the zone.",
    FaultCode.TIER_UNUSED: "Set access_mode to membership_tier, or remove the tier: as it is, it restricts nobody.",
    FaultCode.ROLES_MISSING: "Name the roles that may book here.",
    FaultCode.ROLES_UNUSED: "Set access_mode to role_based, or remove the roles: as they are, they restrict nobody.",
    FaultCode.VIP_PUBLIC: "Restrict the zone by tier, roles or whitelist, or take a type without vip.",
    FaultCode.AISLE_BETWEEN_SEATS: "Add a break beside the seat, or make it a standard seat.",
    FaultCode.COMPANION_UNKNOWN: "Name the code of a wheelchair space of this layout.",
    FaultCode.COMPANION_NOT_WHEELCHAIR: "Name a seat of the category wheelchair.",
    FaultCode.COMPANION_CATEGORY: "Give the seat the category companion, or remove companion_of.",
    FaultCode.COMPANION_OTHER_ZONE: "Put the wheelchair space and its companions into one zone.",
    FaultCode.COMPANION_TOO_MANY: "Leave some of them without companion_of.",
    FaultCode.GROUP_SEAT_UNKNOWN: "Name the codes of seats of this zone.",
    FaultCode.GROUP_OTHER_ZONE: "Make a group for each zone.",
    FaultCode.GROUP_KIND_MISMATCH: "A wheelchair_pair is one wheelchair space and seats that are companions of it.",
    FaultCode.SEAT_IN_TWO_GROUPS: "A seat belongs to one group at most.",
    FaultCode.ZONE_NOT_PERMITTED: "Choose what the seating policy allows, or have the policy changed.",
    FaultCode.SEAT_NOT_PERMITTED: "Name the wheelchair space it belongs to, or give the seat another category.",
}
assert HINTS.keys() == set(FaultCode)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One thing that is wrong, and where."""

    path: str
    code: FaultCode
    message: str
    hint: str


class Faults:
    """What was found so far: all of it counted, the first 500 kept."""

    def __init__(self) -> None:
        self.count = 0
        self.kept: list[Fault] = []

    def add(self, path: str, code: FaultCode, message: str, hint: str = "") -> None:
        self.count += 1
        if self.count <= FAULTS_REPORTED_MAX:
            self.kept.append(Fault(path=path, code=code, message=message, hint=hint or HINTS[code]))


class LayoutInvalid(DomainError):
    """The layout has faults: all of them are told at once."""

    kind = Kind.INVALID
    code = "layout_invalid"
    message = "The layout has errors. Nothing was stored."

    def __init__(self, faults: Faults) -> None:
        assert faults.count > 0
        super().__init__(errors=[asdict(fault) for fault in faults.kept], error_count=faults.count)
        self.faults = tuple(faults.kept)
        self.count = faults.count


class LayoutTooLarge(DomainError):
    """More bytes than any hall needs; nothing of it was read."""

    kind = Kind.TOO_LARGE
    code = "layout_too_large"
    message = "The file is larger than 32 MB."


DOCUMENT_BYTES_MAX = 32 * 2**20


def refuse_size(data: bytes) -> None:
    """Refuse a file before a byte of it is read."""
    if len(data) > DOCUMENT_BYTES_MAX:
        raise LayoutTooLarge(bytes=len(data), bytes_max=DOCUMENT_BYTES_MAX)
