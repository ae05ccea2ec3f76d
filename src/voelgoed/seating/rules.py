"""What must be true of every layout, wherever it was written: in JSON, in a sheet, by the generator."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

import msgspec

from voelgoed.accounts.model import MEMBER_ROLES
from voelgoed.seating import adjacency
from voelgoed.seating.faults import FaultCode, Faults, LayoutInvalid
from voelgoed.seating.model import (
    COMPANIONS_PER_SPACE_MAX,
    COORDINATE_MAX,
    GROUPS_PER_ZONE_MAX,
    NUMBER_MAX,
    POSITION_MAX,
    ROWS_PER_ZONE_MAX,
    SEATS_MAX,
    SEATS_PER_GROUP_MAX,
    SEATS_PER_ROW_MAX,
    VIP_TYPES,
    ZONES_MAX,
    AccessMode,
    Category,
    Group,
    GroupKind,
    Layout,
    Row,
    Seat,
    Zone,
)
from voelgoed.seating.nodes import shown

ROLES = frozenset(role.value for role in MEMBER_ROLES)
Place = tuple[int, int, int]  # of a seat: zone, row, seat, counted from 0


class Paths(Protocol):
    """Where the parts of a layout were written, for people to find them."""

    def layout(self, key: str) -> str: ...
    def zone(self, zone: int, key: str) -> str: ...
    def row(self, zone: int, row: int, key: str) -> str: ...
    def seat(self, place: Place, key: str) -> str: ...
    def group(self, zone: int, group: int, key: str) -> str: ...


class ModelPaths:
    """Paths of a layout that nobody wrote down: by its own indexes."""

    def layout(self, key: str) -> str:
        return key

    def zone(self, zone: int, key: str) -> str:
        return f"zones[{zone}].{key}"

    def row(self, zone: int, row: int, key: str) -> str:
        return f"zones[{zone}].rows[{row}].{key}"

    def seat(self, place: Place, key: str) -> str:
        zone, row, seat = place
        return f"zones[{zone}].rows[{row}].seats[{seat}].{key}"

    def group(self, zone: int, group: int, key: str) -> str:
        return f"zones[{zone}].groups[{group}].{key}"


@dataclass(slots=True)
class Doubts:
    """What could not be read. Its faults are told already; what would only follow from them is not told again."""

    types: set[int] = field(default_factory=set)  # zones whose type, access or number of seats is unknown
    access: set[int] = field(default_factory=set)
    counts: set[int] = field(default_factory=set)
    lost_codes: set[object] = field(default_factory=set)  # of seats that are there and broken
    has_lost_codes: bool = False  # and of some not even that is known

    def may_exist(self, code: str) -> bool:
        return self.has_lost_codes or code in self.lost_codes


def require_valid(layout: Layout) -> None:
    """Raise `LayoutInvalid` with everything that is wrong."""
    faults = Faults()
    check(layout, faults, ModelPaths(), Doubts())
    if faults.count:
        raise LayoutInvalid(faults)


def check(layout: Layout, faults: Faults, paths: Paths, doubts: Doubts) -> None:
    """Note everything that is wrong with a layout, or with what could be read of one."""
    if _has_too_many(layout, faults, paths):
        return
    if not layout.zones:
        faults.add(paths.layout("zones"), FaultCode.EMPTY, "There are no zones.", "Add a zone.")
    found = _check_seats(layout, faults, paths)
    _check_codes(layout, faults, paths)
    for index, zone in enumerate(layout.zones):
        if index not in doubts.types:
            _check_capacity(index, zone, faults, paths, is_counted=index not in doubts.counts)
        if index not in doubts.types | doubts.access:
            _check_access(index, zone, faults, paths)
    _check_companions(layout, found, faults, paths, doubts)
    _check_groups(layout, found, faults, paths, doubts)


def _has_too_many(layout: Layout, faults: Faults, paths: Paths) -> bool:
    """Note what is more than there is room for; nothing else of such a layout is looked at."""
    before = faults.count

    def bound(where: str, count: int, most: int, what: str) -> None:
        if count > most:
            faults.add(where, FaultCode.TOO_MANY, f"{count} {what}; {most} are allowed.")

    bound(paths.layout("zones"), layout.seat_count, SEATS_MAX, "seats")
    bound(paths.layout("zones"), len(layout.zones), ZONES_MAX, "zones")
    for index, zone in enumerate(layout.zones):
        bound(paths.zone(index, "rows"), len(zone.rows), ROWS_PER_ZONE_MAX, "rows")
        bound(paths.zone(index, "groups"), len(zone.groups), GROUPS_PER_ZONE_MAX, "groups")
        for number, row in enumerate(zone.rows):
            bound(paths.row(index, number, "seats"), len(row.seats), SEATS_PER_ROW_MAX, "seats")
        for number, group in enumerate(zone.groups):
            bound(paths.group(index, number, "seats"), len(group.seat_codes), SEATS_PER_GROUP_MAX, "seats")
    return faults.count != before


def _check_seats(layout: Layout, faults: Faults, paths: Paths) -> dict[str, Place]:
    """Codes and points are unique in the layout, labels in their row. Gives the place of each code."""
    codes: dict[str, Place] = {}
    points: dict[tuple[int, int], Place] = {}
    for zone, row, seats in _rows(layout):
        labels: set[str] = set()
        for index, seat in enumerate(seats):
            place = (zone, row, index)
            if codes.setdefault(seat.code, place) is not place:
                message = (
                    f"{shown(seat.code)} is the code of another seat as well: {paths.seat(codes[seat.code], 'code')}."
                )
                faults.add(paths.seat(place, "code"), FaultCode.DUPLICATE_SEAT_CODE, message)
            if points.setdefault((seat.x, seat.y), place) is not place:
                other = paths.seat(points[(seat.x, seat.y)], "x")
                message = f"Another seat stands at ({seat.x}, {seat.y}) as well: {other}."
                faults.add(paths.seat(place, "x"), FaultCode.SEAT_OVERLAP, message)
            if seat.label in labels:
                message = f"{shown(seat.label)} is the label of another seat of the row as well."
                faults.add(paths.seat(place, "label"), FaultCode.DUPLICATE_SEAT_LABEL, message)
            labels.add(seat.label)
            if not (
                0 <= seat.position <= POSITION_MAX
                and 0 <= seat.number <= NUMBER_MAX
                and -COORDINATE_MAX <= seat.x <= COORDINATE_MAX
                and -COORDINATE_MAX <= seat.y <= COORDINATE_MAX
            ):
                _tell_numbers(seat, place, faults, paths)
        _check_positions(zone, row, seats, faults, paths)
    return codes


def _tell_numbers(seat: Seat, place: Place, faults: Faults, paths: Paths) -> None:
    """Which of a seat's numbers is out of range. A document's are looked at as it is read, all others here."""
    for key, value, low, high in (
        ("position", seat.position, 0, POSITION_MAX),
        ("number", seat.number, 0, NUMBER_MAX),
        ("x", seat.x, -COORDINATE_MAX, COORDINATE_MAX),
        ("y", seat.y, -COORDINATE_MAX, COORDINATE_MAX),
    ):
        if not low <= value <= high:
            faults.add(paths.seat(place, key), FaultCode.OUT_OF_RANGE, f"{value} is not between {low} and {high}.")


def _check_positions(zone: int, row: int, seats: tuple[Seat, ...], faults: Faults, paths: Paths) -> None:
    """Positions increase, and who is called an aisle seat has an aisle."""
    for index in range(1, len(seats)):
        if seats[index].position <= seats[index - 1].position:
            message = f"Position {seats[index].position} comes after position {seats[index - 1].position}."
            faults.add(paths.seat((zone, row, index), "position"), FaultCode.POSITION_ORDER, message)
    for index in range(1, len(seats) - 1):
        seat = seats[index]
        if (
            seat.category is Category.AISLE
            and adjacency.are_adjacent(seats[index - 1], seat)
            and adjacency.are_adjacent(seat, seats[index + 1])
        ):
            message = "An aisle seat has a seat on both sides."
            faults.add(paths.seat((zone, row, index), "category"), FaultCode.AISLE_BETWEEN_SEATS, message)


def _check_codes(layout: Layout, faults: Faults, paths: Paths) -> None:
    """Codes of zones and groups are unique in the layout, labels of rows in their zone."""
    zones: set[str] = set()
    groups: set[str] = set()
    for index, zone in enumerate(layout.zones):
        _once(zone.code, zones, FaultCode.DUPLICATE_ZONE_CODE, partial(paths.zone, index, "code"), faults)
        rows: set[str] = set()
        for number, row in enumerate(zone.rows):
            _once(row.label, rows, FaultCode.DUPLICATE_ROW_LABEL, partial(paths.row, index, number, "label"), faults)
        for number, group in enumerate(zone.groups):
            where = partial(paths.group, index, number, "code")
            _once(group.code, groups, FaultCode.DUPLICATE_GROUP_CODE, where, faults)


def _once(word: str, seen: set[str], code: FaultCode, where: Callable[[], str], faults: Faults) -> None:
    """Note a word that was there before. What could not be read is empty, and no duplicate."""
    if word in seen:
        faults.add(where(), code, f"{shown(word)} is there twice.")
    if word:
        seen.add(word)


def _check_capacity(index: int, zone: Zone, faults: Faults, paths: Paths, *, is_counted: bool) -> None:
    """Zones with seats count them; the others have none."""
    count = zone.seat_count
    if not zone.is_reserved:
        if zone.rows:
            message = f"A {zone.zone_type} zone has a capacity and no seats."
            faults.add(paths.zone(index, "rows"), FaultCode.SEATS_NOT_ALLOWED, message)
    elif not is_counted:
        return
    elif not count:
        faults.add(paths.zone(index, "rows"), FaultCode.SEATS_MISSING, f"A {zone.zone_type} zone needs seats.")
    elif zone.capacity != count:
        message = f"The capacity is {zone.capacity}, and there are {count} seats."
        faults.add(paths.zone(index, "capacity"), FaultCode.CAPACITY_MISMATCH, message)


def _check_access(index: int, zone: Zone, faults: Faults, paths: Paths) -> None:
    """The mode has what it needs, and nothing is there that only looks like a restriction."""
    mode = zone.access_mode

    def note(key: str, code: FaultCode, message: str) -> None:
        faults.add(paths.zone(index, key), code, message)

    if zone.zone_type in VIP_TYPES and mode is AccessMode.PUBLIC:
        note("access_mode", FaultCode.VIP_PUBLIC, f"A {zone.zone_type} zone is open to everybody.")
    if mode is AccessMode.MEMBERSHIP_TIER and zone.membership_tier is None:
        note("membership_tier", FaultCode.TIER_MISSING, "No membership tier opens the zone.")
    if mode is not AccessMode.MEMBERSHIP_TIER and zone.membership_tier is not None:
        note("membership_tier", FaultCode.TIER_UNUSED, f"Access by {mode} does not look at the tier.")
    if mode is AccessMode.ROLE_BASED and not zone.allowed_roles:
        note("allowed_roles", FaultCode.ROLES_MISSING, "No role opens the zone.")
    if mode is not AccessMode.ROLE_BASED and zone.allowed_roles:
        note("allowed_roles", FaultCode.ROLES_UNUSED, f"Access by {mode} does not look at roles.")
    for place, role in enumerate(zone.allowed_roles):
        if role not in ROLES:
            message = f"{shown(role)} is none of {', '.join(sorted(ROLES))}."
            note(f"allowed_roles[{place}]", FaultCode.UNKNOWN_VALUE, message)


def _check_companions(layout: Layout, found: dict[str, Place], faults: Faults, paths: Paths, doubts: Doubts) -> None:
    """A companion belongs to a wheelchair space of its zone: one step, so no circles."""
    counts: dict[str, int] = {}
    for zone, row, seats in _rows(layout):
        for index, seat in enumerate(seats):
            if seat.companion_of is None:
                continue
            counts[seat.companion_of] = counts.get(seat.companion_of, 0) + 1
            why = _refuse_companion(layout, zone, seat, found.get(seat.companion_of), doubts)
            if why is None and counts[seat.companion_of] > COMPANIONS_PER_SPACE_MAX:
                message = f"{shown(seat.companion_of)} has more than {COMPANIONS_PER_SPACE_MAX} companions."
                why = FaultCode.COMPANION_TOO_MANY, message
            if why is not None:
                faults.add(paths.seat((zone, row, index), "companion_of"), *why)


def _refuse_companion(
    layout: Layout, zone: int, seat: Seat, place: Place | None, doubts: Doubts
) -> tuple[FaultCode, str] | None:
    """Say why a seat may not be this companion; None when it may. The first objection wins."""
    named = shown(seat.companion_of)
    if seat.category is not Category.COMPANION:
        return FaultCode.COMPANION_CATEGORY, f"The seat is {seat.category} and names {named} as its wheelchair space."
    if place is None:
        assert seat.companion_of is not None
        is_lost = doubts.may_exist(seat.companion_of)
        return None if is_lost else (FaultCode.COMPANION_UNKNOWN, f"There is no seat {named}.")
    if layout.zones[place[0]].rows[place[1]].seats[place[2]].category is not Category.WHEELCHAIR:
        return FaultCode.COMPANION_NOT_WHEELCHAIR, f"{named} is no wheelchair space."
    if place[0] != zone:
        return FaultCode.COMPANION_OTHER_ZONE, f"{named} is in another zone."
    return None


def _check_groups(layout: Layout, found: dict[str, Place], faults: Faults, paths: Paths, doubts: Doubts) -> None:
    """The seats of a group are of its zone, and of no other group."""
    taken: set[str] = set()
    for index, zone in enumerate(layout.zones):
        for number, group in enumerate(zone.groups):
            before = faults.count
            for at, code in enumerate(group.seat_codes):
                why = _refuse_member(index, code, found.get(code), taken, doubts)
                if why is not None:
                    faults.add(paths.group(index, number, f"seats[{at}]"), *why)
                taken.add(code)
            if faults.count == before and not _is_of_its_kind(layout, group, found):
                where = paths.group(index, number, "kind")
                faults.add(where, FaultCode.GROUP_KIND_MISMATCH, "This is no wheelchair space with its companions.")


def _refuse_member(
    zone: int, code: str, place: Place | None, taken: set[str], doubts: Doubts
) -> tuple[FaultCode, str] | None:
    """Say why a seat may not be in a group; None when it may."""
    if place is None:
        is_lost = doubts.may_exist(code)
        return None if is_lost else (FaultCode.GROUP_SEAT_UNKNOWN, f"There is no seat {shown(code)}.")
    if place[0] != zone:
        return FaultCode.GROUP_OTHER_ZONE, f"{shown(code)} is in another zone."
    if code in taken:
        return FaultCode.SEAT_IN_TWO_GROUPS, f"{shown(code)} is named before."
    return None


def _is_of_its_kind(layout: Layout, group: Group, found: dict[str, Place]) -> bool:
    if group.kind is not GroupKind.WHEELCHAIR_PAIR or not all(code in found for code in group.seat_codes):
        return True
    seats = [layout.zones[z].rows[r].seats[s] for z, r, s in (found[code] for code in group.seat_codes)]
    spaces = [seat.code for seat in seats if seat.category is Category.WHEELCHAIR]
    companions = [seat for seat in seats if seat.category is Category.COMPANION and [seat.companion_of] == spaces]
    return len(spaces) == 1 and len(companions) == len(seats) - 1 > 0


def _rows(layout: Layout) -> Iterator[tuple[int, int, tuple[Seat, ...]]]:
    for index, zone in enumerate(layout.zones):
        for number, row in enumerate(zone.rows):
            yield index, number, row.seats


def paired(row: Row) -> Row:
    """The row with every companion seat that names nobody given to the wheelchair space beside it."""
    spaces = adjacency.find_spaces(row.seats)
    if not spaces:
        return row
    seats = (
        msgspec.structs.replace(seat, companion_of=spaces[seat.code]) if seat.code in spaces else seat
        for seat in row.seats
    )
    return Row(label=row.label, seats=tuple(seats))
