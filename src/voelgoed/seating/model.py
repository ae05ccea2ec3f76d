"""Layouts as values: what a venue offers, zone by zone, row by row, seat by seat."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple, NewType
from uuid import UUID

import msgspec

from voelgoed.ids import OrganizationId

LayoutId = NewType("LayoutId", UUID)
ZoneId = NewType("ZoneId", UUID)
SeatId = NewType("SeatId", UUID)
Point = tuple[int, int]

SEATS_MAX = 100_000
ZONES_MAX = 500
ROWS_PER_ZONE_MAX = 1_000
SEATS_PER_ROW_MAX = 2_000
GROUPS_PER_ZONE_MAX = 2_000
SEATS_PER_GROUP_MAX = 200
COMPANIONS_PER_SPACE_MAX = 3  # the most that a policy may grant; more could never be kept free for anybody
SHAPES_MAX = 200
OUTLINE_POINTS_MIN = 3
OUTLINE_POINTS_MAX = 400
CAPACITY_MAX = 1_000_000
COORDINATE_MAX = 1_000_000  # centimetres: ten kilometres either way
NUMBER_MAX = 999_999
POSITION_MAX = 9_999
NAME_CHARS_MAX = 120
DESCRIPTION_CHARS_MAX = 2_000
ZONE_CODE_CHARS_MAX = 40
ROW_LABEL_CHARS_MAX = 20
SEAT_LABEL_CHARS_MAX = 10
SEAT_CODE_CHARS_MAX = 80
GROUP_CODE_CHARS_MAX = 80
TIER_CHARS_MAX = 60
METADATA_BYTES_MAX = 4_096

# The code of a seat without one is made of these three and two hyphens.
assert ZONE_CODE_CHARS_MAX + ROW_LABEL_CHARS_MAX + SEAT_LABEL_CHARS_MAX + 2 <= SEAT_CODE_CHARS_MAX


class VersionStatus(StrEnum):
    """Whether a version can be chosen for an event: not yet, now, no longer."""

    DRAFT = "draft"
    ACTIVE = "active"
    ARCHIVED = "archived"


VERSION_MOVES: Mapping[VersionStatus, frozenset[VersionStatus]] = {
    VersionStatus.DRAFT: frozenset({VersionStatus.ACTIVE, VersionStatus.ARCHIVED}),
    VersionStatus.ACTIVE: frozenset({VersionStatus.ARCHIVED}),
    VersionStatus.ARCHIVED: frozenset(),
}
assert VERSION_MOVES.keys() == set(VersionStatus)


class ZoneType(StrEnum):
    """How a zone is sold: seat by seat, or so many places."""

    RESERVED_SEATING = "reserved_seating"
    GA_SEATED = "ga_seated"
    GA_STANDING = "ga_standing"
    VIP_RESERVED = "vip_reserved"
    VIP_STANDING = "vip_standing"


RESERVED_TYPES = frozenset({ZoneType.RESERVED_SEATING, ZoneType.VIP_RESERVED})
VIP_TYPES = frozenset({ZoneType.VIP_RESERVED, ZoneType.VIP_STANDING})


class AccessMode(StrEnum):
    """Who may book in a zone."""

    PUBLIC = "public"
    MEMBERSHIP_TIER = "membership_tier"
    ROLE_BASED = "role_based"
    WHITELIST = "whitelist"


class Category(StrEnum):
    """What a seat is to the one who sits there."""

    STANDARD = "standard"
    WHEELCHAIR = "wheelchair"
    COMPANION = "companion"
    RESTRICTED_VIEW = "restricted_view"
    AISLE = "aisle"


class GroupKind(StrEnum):
    """Why seats belong together."""

    WHEELCHAIR_PAIR = "wheelchair_pair"
    FAMILY_BLOCK = "family_block"
    VIP_TABLE = "vip_table"
    RESERVED_BLOCK = "reserved_block"


class ShapeKind(StrEnum):
    """What else a plan shows."""

    STAGE = "stage"
    PITCH = "pitch"
    SCREEN = "screen"
    BAR = "bar"
    ENTRANCE = "entrance"
    OTHER = "other"


class Seat(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One seat. A struct of msgspec, not a dataclass: a stadium has 100,000, and these are made ten times as fast.

    The code is what a seat is recognised by from version to version and is never shown; number and label may change.
    Neighbours are told by position and segment alone, never by number.
    """

    code: str
    number: int
    label: str
    position: int
    segment: int
    x: int
    y: int
    category: Category = Category.STANDARD
    companion_of: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Seats side by side, in the order of their positions, from the left as one sits."""

    label: str
    seats: tuple[Seat, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Seats of one zone that belong together."""

    code: str
    kind: GroupKind
    label: str
    seat_codes: tuple[str, ...]
    metadata: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Zone:
    """A part of the venue with one way of selling and one rule of access."""

    code: str
    name: str
    zone_type: ZoneType
    capacity: int
    access_mode: AccessMode = AccessMode.PUBLIC
    membership_tier: str | None = None
    allowed_roles: tuple[str, ...] = ()
    focal_point: Point | None = None
    outline: tuple[Point, ...] = ()
    metadata: Mapping[str, object] = field(default_factory=dict)
    rows: tuple[Row, ...] = ()
    groups: tuple[Group, ...] = ()

    @property
    def is_reserved(self) -> bool:
        return self.zone_type in RESERVED_TYPES

    @property
    def seat_count(self) -> int:
        return sum(len(row.seats) for row in self.rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """Something that is drawn and not sold: the stage, the pitch, a bar."""

    kind: ShapeKind
    label: str
    outline: tuple[Point, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Everything a venue can offer in one arrangement. The order of zones and rows is part of it: ordinals follow."""

    name: str
    description: str | None
    zones: tuple[Zone, ...]
    shapes: tuple[Shape, ...] = ()

    @property
    def total_capacity(self) -> int:
        return sum(zone.capacity for zone in self.zones)

    @property
    def seat_count(self) -> int:
        return sum(zone.seat_count for zone in self.zones)

    def seats(self) -> Iterator[tuple[Zone, Row, Seat]]:
        """Every seat with where it stands, in the order of the ordinals."""
        for zone in self.zones:
            for row in zone.rows:
                for seat in row.seats:
                    yield zone, row, seat


@dataclass(frozen=True, slots=True, kw_only=True)
class Lineage:
    """A layout through all its versions: what gives its seats and zones their lasting numbers."""

    id: LayoutId
    organization_id: OrganizationId
    venue_id: UUID
    name: str
    version_last: int
    serial_last: int
    zone_serials: Mapping[str, int]
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedLayout:
    """A layout in a list: the version that can be chosen, if there is one, and the latest."""

    id: LayoutId
    organization_id: OrganizationId
    venue_id: UUID
    name: str
    latest_version: int
    active_version: int | None
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class EventLayout:
    """Which version an event has, and what it says differently, as a JSON object. Without a layout it has one zone."""

    id: UUID
    organization_id: OrganizationId
    event_id: UUID
    layout_id: LayoutId | None
    layout_version: int | None
    overrides: Mapping[str, object]
    version: int
    making: UUID | None
    created_at: datetime
    updated_at: datetime

    @property
    def pin(self) -> "Pin | None":
        if self.layout_id is None:
            return None
        assert self.layout_version is not None
        return Pin(self.layout_id, self.layout_version)


class Pin(NamedTuple):
    """A version of a layout, as an event names it."""

    layout_id: LayoutId
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PinnedEvent:
    """An event that has a version of a layout, as a list of them tells it."""

    event_id: UUID
    name: str
    status: str
    layout_version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """A version as a record, without its seats."""

    layout_id: LayoutId
    version: int
    status: VersionStatus
    name: str
    description: str | None
    total_capacity: int
    seat_count: int
    geometry_etag: str
    created_by: UUID | None
    created_at: datetime
    updated_at: datetime
