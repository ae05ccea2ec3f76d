"""What an event makes of a layout: what it takes out of sale, sells otherwise, prices; and what is for sale then. Pure.

An overlay holds differences only, by the codes of seats and zones. `effective_view` is the one place where layout,
overlay and policy come together; everybody who sells, draws or counts asks it.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Final
from uuid import UUID

from voelgoed.events.rules import refuse_capacity
from voelgoed.seating import policy as policies
from voelgoed.seating.faults import FAULTS_REPORTED_MAX, HINTS, FaultCode
from voelgoed.seating.model import (
    CAPACITY_MAX,
    RESERVED_TYPES,
    VIP_TYPES,
    AccessMode,
    Category,
    Layout,
    Seat,
    Zone,
    ZoneType,
)
from voelgoed.seating.nodes import shown
from voelgoed.seating.policy import Effective, Policy
from voelgoed.seating.rules import ROLES

IMPLICIT_ZONE_CODE: Final = "GA"


class BlockedBy(StrEnum):
    """Why a seat is out of sale: itself by the overlay, with its zone, or by somebody at the hall."""

    LAYOUT = "layout"
    ZONE = "zone"
    STAFF = "staff"


class PlaceKind(StrEnum):
    """What one buys in a zone: a seat of its own, some seat, or room to stand."""

    RESERVED = "reserved"
    GA_SEATED = "ga_seated"
    STANDING = "standing"


PLACES: Final[Mapping[ZoneType, PlaceKind]] = MappingProxyType(
    {
        ZoneType.RESERVED_SEATING: PlaceKind.RESERVED,
        ZoneType.VIP_RESERVED: PlaceKind.RESERVED,
        ZoneType.GA_SEATED: PlaceKind.GA_SEATED,
        ZoneType.GA_STANDING: PlaceKind.STANDING,
        ZoneType.VIP_STANDING: PlaceKind.STANDING,
    }
)
assert PLACES.keys() == set(ZoneType)


@dataclass(frozen=True, slots=True, kw_only=True)
class ZoneOverride:
    """What an event says of a zone; what is None, the layout says."""

    zone_type: ZoneType | None = None
    access_mode: AccessMode | None = None
    membership_tier: str | None = None
    allowed_roles: tuple[str, ...] | None = None
    capacity: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlay:
    """What an event changes about its layout, by codes; seats and zones in the order they were named."""

    blocked_seats: tuple[str, ...] = ()
    disabled_zones: tuple[str, ...] = ()
    zone_overrides: Mapping[str, ZoneOverride] = field(default_factory=dict)
    pricing_zones: Mapping[str, UUID] = field(default_factory=dict)
    seating_overrides: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ZoneView:
    """A zone as the event has it. Of its capacity some may be blocked; all of it when the zone is off."""

    code: str
    name: str
    zone_type: ZoneType
    access_mode: AccessMode
    membership_tier: str | None
    allowed_roles: tuple[str, ...]
    is_enabled: bool
    capacity: int
    blocked_count: int
    categories: Mapping[Category, int]  # how many of each are for sale; none of those whose seats are all blocked
    pricing_rule_id: UUID | None

    def __post_init__(self) -> None:
        assert 0 <= self.blocked_count <= self.capacity
        assert sum(self.categories.values()) == self.place_count

    @property
    def place(self) -> PlaceKind:
        return PLACES[self.zone_type]

    @property
    def place_count(self) -> int:
        """How many places are offered, whoever has them by now."""
        return self.capacity - self.blocked_count

    @property
    def pool_count(self) -> int:
        """How many places are sold by number, not seat by seat."""
        return 0 if self.place is PlaceKind.RESERVED else self.place_count


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """What an event offers, by what one buys; what it does not is `blocked`, in zones that are on and off."""

    reserved: int
    ga_seated: int
    standing: int
    blocked: int

    @property
    def total(self) -> int:
        return self.reserved + self.ga_seated + self.standing


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What an event offers: its zones in the order of the layout, the seats out of sale by ordinal, what holds."""

    zones: tuple[ZoneView, ...]
    blocked: Mapping[int, BlockedBy]
    totals: Totals
    policy: Effective

    @property
    def is_hybrid(self) -> bool:
        return policies.is_hybrid(zone for zone in self.zones if zone.is_enabled)


def effective_view(layout: Layout, overlay: Overlay, policy: Policy | None) -> View:
    """What an event offers. What an overlay says of seats and zones that are not there changes nothing."""
    own, off = frozenset(overlay.blocked_seats), frozenset(overlay.disabled_zones)
    zones: list[ZoneView] = []
    blocked: dict[int, BlockedBy] = {}
    ordinal = 0
    for zone in layout.zones:
        seats = [seat for row in zone.rows for seat in row.seats]
        open_seats = [] if zone.code in off else [seat for seat in seats if seat.code not in own]
        view = _zone_view(zone, overlay, seats, open_seats, is_enabled=zone.code not in off)
        zones.append(view)
        is_by_seat = view.is_enabled and view.place is PlaceKind.RESERVED
        for seat in seats:
            if seat.code in own:
                blocked[ordinal] = BlockedBy.LAYOUT
            elif not is_by_seat:
                blocked[ordinal] = BlockedBy.ZONE
            ordinal += 1
    return View(
        zones=tuple(zones),
        blocked=MappingProxyType(blocked),
        totals=_totals(zones),
        policy=policies.effective(policy, overlay.seating_overrides),
    )


def _zone_view(
    zone: Zone, overlay: Overlay, seats: Sequence[Seat], open_seats: Sequence[Seat], *, is_enabled: bool
) -> ZoneView:
    said = overlay.zone_overrides.get(zone.code, ZoneOverride())
    zone_type = said.zone_type or zone.zone_type
    if zone_type in RESERVED_TYPES:
        capacity, blocked_count = len(seats), len(seats) - len(open_seats)
        categories = dict.fromkeys((seat.category for seat in seats), 0) | Counter(seat.category for seat in open_seats)
    else:
        # Whoever names a number has counted; otherwise a zone with seats has room for as many as may sit there.
        capacity, lost = said.capacity or zone.capacity, 0 if said.capacity else len(seats) - len(open_seats)
        blocked_count = lost if is_enabled else capacity
        categories = {Category.STANDARD: capacity - blocked_count}
    mode, tier, roles = _access(zone, said)
    return ZoneView(
        code=zone.code,
        name=zone.name,
        zone_type=zone_type,
        access_mode=mode,
        membership_tier=tier,
        allowed_roles=roles,
        is_enabled=is_enabled,
        capacity=capacity,
        blocked_count=blocked_count,
        categories=MappingProxyType(categories),
        pricing_rule_id=overlay.pricing_zones.get(zone.code),
    )


def _access(zone: Zone, said: ZoneOverride) -> tuple[AccessMode, str | None, tuple[str, ...]]:
    """Who may book: mode, tier and roles; what the mode does not look at is gone."""
    mode = said.access_mode or zone.access_mode
    tier = said.membership_tier or zone.membership_tier
    roles = zone.allowed_roles if said.allowed_roles is None else said.allowed_roles
    return (
        mode,
        tier if mode is AccessMode.MEMBERSHIP_TIER else None,
        roles if mode is AccessMode.ROLE_BASED else (),
    )


def _totals(zones: Iterable[ZoneView]) -> Totals:
    offered = dict.fromkeys(PlaceKind, 0)
    blocked = 0
    for zone in zones:
        offered[zone.place] += zone.place_count
        blocked += zone.blocked_count
    return Totals(
        reserved=offered[PlaceKind.RESERVED],
        ga_seated=offered[PlaceKind.GA_SEATED],
        standing=offered[PlaceKind.STANDING],
        blocked=blocked,
    )


def implicit_zone(capacity: int) -> Zone:
    """The one zone of an event without a layout. It promises nobody a chair; an override may."""
    assert 1 <= capacity <= CAPACITY_MAX
    return Zone(code=IMPLICIT_ZONE_CODE, name="General admission", zone_type=ZoneType.GA_STANDING, capacity=capacity)


@dataclass(frozen=True, slots=True, kw_only=True)
class ZoneTouch:
    """A zone whose places sold by number are more, fewer, or others."""

    zone_code: str
    pool_before: int
    pool_after: int
    is_retyped: bool  # one buys something else there now

    @property
    def pool_kept(self) -> int:
        """How many of the places before may be held or sold, so that the change takes nothing from anybody."""
        return 0 if self.is_retyped else self.pool_after


@dataclass(frozen=True, slots=True, kw_only=True)
class Touched:
    """What a change puts on sale and what it takes off, seats by ordinal. Prices and access touch new holds only."""

    closed: tuple[int, ...]
    opened: tuple[int, ...]
    zones: tuple[ZoneTouch, ...]

    @property
    def is_empty(self) -> bool:
        return not (self.closed or self.opened or self.zones)


def touched(before: View, after: View) -> Touched:
    """What two views of one layout do not both sell, or not in the same way."""
    assert [zone.code for zone in before.zones] == [zone.code for zone in after.zones]
    return Touched(
        closed=tuple(sorted(after.blocked.keys() - before.blocked.keys())),
        opened=tuple(sorted(before.blocked.keys() - after.blocked.keys())),
        zones=tuple(_zone_touches(before, after)),
    )


def _zone_touches(before: View, after: View) -> Iterator[ZoneTouch]:
    for old, new in zip(before.zones, after.zones, strict=True):
        is_retyped = old.place is not new.place
        if is_retyped or old.pool_count != new.pool_count:
            yield ZoneTouch(
                zone_code=old.code, pool_before=old.pool_count, pool_after=new.pool_count, is_retyped=is_retyped
            )


class OverlayCode(StrEnum):
    """Faults that only an overlay can have; the words are part of the contract."""

    SEAT_UNKNOWN = "seat_unknown"
    ZONE_UNKNOWN = "zone_unknown"
    NAMED_TWICE = "named_twice"
    OVERRIDE_REFUSED = "override_refused"
    ZONE_NOT_PERMITTED = "zone_not_permitted"
    CAPACITY_EXCEEDED = "capacity_exceeded"
    PRICE_REFUSED = "price_refused"


OVERLAY_HINTS: Final[Mapping[OverlayCode, str]] = MappingProxyType(
    {
        OverlayCode.SEAT_UNKNOWN: "Name seats of the layout's version that the event has.",
        OverlayCode.ZONE_UNKNOWN: "Name zones of the layout's version that the event has.",
        OverlayCode.NAMED_TWICE: "Name it once.",
        OverlayCode.OVERRIDE_REFUSED: "Leave it out, or have the organization's policy changed.",
        OverlayCode.ZONE_NOT_PERMITTED: "Switch the zone off, sell it otherwise, or have the policy changed.",
        OverlayCode.PRICE_REFUSED: "Name one of the organization's pricing rules; an event has one currency.",
        OverlayCode.CAPACITY_EXCEEDED: "Block seats, switch zones off, or give the event or venue more room.",
    }
)
assert OVERLAY_HINTS.keys() == set(OverlayCode)


@dataclass(frozen=True, slots=True, kw_only=True)
class OverlayFault:
    """One thing that is wrong with an overlay, and where; told like the faults of a layout."""

    path: str
    code: FaultCode | OverlayCode
    message: str
    hint: str


def wrong_overlay(
    layout: Layout,
    overlay: Overlay,
    policy: Policy | None,
    *,
    venue_capacity: int,
    event_capacity: int | None,
    zone_ids: Mapping[str, UUID] | None = None,
) -> list[OverlayFault]:
    """Everything that is wrong, the first 500; empty when nothing is. With `zone_ids`, paths name zones by id.

    What would only follow from a wrong seat or zone is told once those are right.
    """
    found = _Findings(zone_ids or {})
    _check_names(layout, overlay, found)
    for zone in layout.zones:
        if zone.code in overlay.zone_overrides:
            _check_zone(zone, overlay.zone_overrides[zone.code], found)
    is_clear = not found.kept
    for name, why in policies.refused_overrides(policy, overlay.seating_overrides):
        short = shown(name)[1:-1]
        found.add(f"seating_overrides.{short}", OverlayCode.OVERRIDE_REFUSED, f"{short} {why}.")
    if is_clear:
        view = effective_view(layout, overlay, policy)
        _check_permitted(view, found)
        if broken := refuse_capacity(seats=view.totals.total, event=event_capacity, venue=venue_capacity):
            found.add("$", OverlayCode.CAPACITY_EXCEEDED, f"{broken[0].upper()}{broken[1:]}.")
    return found.kept


class _Findings:
    """What was found so far, as much as is told."""

    def __init__(self, zone_ids: Mapping[str, UUID]) -> None:
        self.kept: list[OverlayFault] = []
        self._zone_ids = zone_ids

    def add(self, path: str, code: FaultCode | OverlayCode, message: str) -> None:
        if len(self.kept) < FAULTS_REPORTED_MAX:
            hint = OVERLAY_HINTS[code] if isinstance(code, OverlayCode) else HINTS[code]
            self.kept.append(OverlayFault(path=path, code=code, message=message, hint=hint))

    def at(self, key: str, zone_code: str) -> str:
        return f"{key}.{self._zone_ids.get(zone_code, zone_code)}"


def _check_names(layout: Layout, overlay: Overlay, found: _Findings) -> None:
    """Every seat and zone is there, and is named once."""
    seats = {seat.code for _, _, seat in layout.seats()}
    zones = {zone.code for zone in layout.zones}
    _check_list("blocked_seat_ids", overlay.blocked_seats, seats, OverlayCode.SEAT_UNKNOWN, found)
    _check_list("disabled_zones", overlay.disabled_zones, zones, OverlayCode.ZONE_UNKNOWN, found)
    for key, named in (("zone_overrides", overlay.zone_overrides), ("pricing_zones", overlay.pricing_zones)):
        for code in named:
            if code not in zones:
                found.add(found.at(key, code), OverlayCode.ZONE_UNKNOWN, f"There is no zone {shown(code)}.")


def _check_list(key: str, codes: Sequence[str], known: set[str], unknown: OverlayCode, found: _Findings) -> None:
    seen: set[str] = set()
    for index, code in enumerate(codes):
        if code not in known:
            found.add(f"{key}[{index}]", unknown, f"{shown(code)} is not in this version of the layout.")
        elif code in seen:
            found.add(f"{key}[{index}]", OverlayCode.NAMED_TWICE, f"{shown(code)} is named before.")
        seen.add(code)


def _check_zone(zone: Zone, said: ZoneOverride, found: _Findings) -> None:
    """What an event says of a zone can be: a zone without seats cannot get any, and access has what it needs."""
    at = found.at("zone_overrides", zone.code)
    if said.zone_type in RESERVED_TYPES and not zone.is_reserved:
        found.add(f"{at}.zone_type", FaultCode.SEATS_MISSING, f"{shown(zone.name)} has no seats to be reserved.")
    elif said.capacity is not None:
        _check_capacity(zone, said.zone_type or zone.zone_type, said.capacity, f"{at}.capacity", found)
    mode, tier, roles = _access(zone, said)
    if said.zone_type in VIP_TYPES and said.access_mode is None and mode is AccessMode.PUBLIC:
        message = f"A {said.zone_type} zone would be open to everybody, and nobody says that it should."
        found.add(f"{at}.access_mode", FaultCode.VIP_PUBLIC, message)
    if said.membership_tier is not None and mode is not AccessMode.MEMBERSHIP_TIER:
        found.add(f"{at}.membership_tier", FaultCode.TIER_UNUSED, f"Access by {mode} does not look at the tier.")
    if mode is AccessMode.MEMBERSHIP_TIER and tier is None:
        found.add(f"{at}.membership_tier", FaultCode.TIER_MISSING, "No membership tier opens the zone.")
    if said.allowed_roles and mode is not AccessMode.ROLE_BASED:
        found.add(f"{at}.allowed_roles", FaultCode.ROLES_UNUSED, f"Access by {mode} does not look at roles.")
    if mode is AccessMode.ROLE_BASED and not roles:
        found.add(f"{at}.allowed_roles", FaultCode.ROLES_MISSING, "No role opens the zone.")
    for index, role in enumerate(said.allowed_roles or ()):
        if role not in ROLES:
            message = f"{shown(role)} is none of {', '.join(sorted(ROLES))}."
            found.add(f"{at}.allowed_roles[{index}]", FaultCode.UNKNOWN_VALUE, message)


def _check_capacity(zone: Zone, zone_type: ZoneType, capacity: int, path: str, found: _Findings) -> None:
    """Seats are counted. Where people stand in place of seats, more may fit; elsewhere the layout knows the most."""
    most = CAPACITY_MAX if zone.is_reserved else zone.capacity
    if zone_type in RESERVED_TYPES:
        found.add(path, FaultCode.CAPACITY_MISMATCH, f"The seats of {shown(zone.name)} are counted.")
    elif not 1 <= capacity <= most:
        found.add(path, FaultCode.OUT_OF_RANGE, f"{shown(zone.name)} has room for 1 to {most}, not for {capacity}.")


def _check_permitted(view: View, found: _Findings) -> None:
    names = {zone.code: zone.name for zone in view.zones}
    offered = (zone for zone in view.zones if zone.is_enabled)
    for code, why in policies.refused_zones(view.policy.policy, offered):
        found.add(found.at("zone_overrides", code), OverlayCode.ZONE_NOT_PERMITTED, f"{shown(names[code])}: {why}.")
