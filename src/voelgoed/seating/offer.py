"""What an event offers, with the ids that everybody knows it by: a hall, an overlay, what comes of them. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Final
from uuid import UUID

from voelgoed.errors import DomainError, Kind
from voelgoed.seating import seat_ids
from voelgoed.seating.faults import FAULTS_REPORTED_MAX, Fault, Faults
from voelgoed.seating.model import EventLayout, Layout, LayoutId, Pin, SeatId, ZoneId
from voelgoed.seating.overlay import (
    IMPLICIT_ZONE_CODE,
    Overlay,
    OverlayFault,
    View,
    effective_view,
    implicit_zone,
    wrong_overlay,
)
from voelgoed.seating.overlay_document import read_overlay, write_overlay
from voelgoed.seating.policy import Policy

NOTHING_SAID: Final[Mapping[str, object]] = {}


class SeatingInvalid(DomainError):
    """What an event says of its seating has faults: all of them are told at once."""

    kind = Kind.INVALID
    code = "seating_invalid"
    message = "The seating of the event has errors. Nothing was changed."

    def __init__(self, faults: Sequence[Fault | OverlayFault], count: int | None = None) -> None:
        assert faults
        told = [asdict(fault) for fault in faults[:FAULTS_REPORTED_MAX]]
        super().__init__(errors=told, error_count=count or len(faults))


@dataclass(frozen=True, slots=True, kw_only=True)
class Hall:
    """A layout as an event has it, with the numbers its ids are made of. Without a pin it is the event's own."""

    layout: Layout
    layout_id: LayoutId
    pin: Pin | None
    seat_serials: Mapping[str, int]
    zone_serials: Mapping[str, int]
    codes: Sequence[str] = field(repr=False)  # of the seats, by ordinal

    def zone_id(self, code: str) -> ZoneId:
        return seat_ids.zone_id(self.layout_id, self.zone_serials[code])

    def zone_ids(self) -> dict[str, ZoneId]:
        return {zone.code: self.zone_id(zone.code) for zone in self.layout.zones}

    def seat_id(self, ordinal: int) -> SeatId:
        return seat_ids.seat_id(self.layout_id, self.seat_serials[self.codes[ordinal]])

    def written(self, overlay: Overlay) -> dict[str, object]:
        """The overlay as JSON."""
        return write_overlay(overlay, self.layout_id, seat_serials=self.seat_serials, zone_serials=self.zone_serials)


def numbered_hall(layout: Layout, pin: Pin, serials: str, zone_serials: Mapping[str, int]) -> Hall:
    """A stored version; `serials` are the last eight digits of its seats' ids, one after the other."""
    codes = [seat.code for _, _, seat in layout.seats()]
    assert len(serials) == 8 * len(codes)
    numbers = (int(serials[place : place + 8], 16) for place in range(0, len(serials), 8))
    return Hall(
        layout=layout,
        layout_id=pin.layout_id,
        pin=pin,
        seat_serials=dict(zip(codes, numbers, strict=True)),
        zone_serials={zone.code: zone_serials[zone.code] for zone in layout.zones},
        codes=codes,
    )


def open_hall(event_id: UUID, capacity: int) -> Hall:
    """The hall of an event without a layout: one zone for as many as may come, and none when nobody may."""
    zones = (implicit_zone(capacity),) if capacity else ()
    return Hall(
        layout=Layout(name="General admission", description=None, zones=zones),
        layout_id=LayoutId(event_id),  # a layout's id and an event's are made in the same way, and never the same
        pin=None,
        seat_serials={},
        zone_serials={IMPLICIT_ZONE_CODE: 1},  # also of a zone that is gone: what was said of it can still be read
        codes=(),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """What an event offers, and what keeps it from being saved or published."""

    hall: Hall
    overlay: Overlay
    view: View
    faults: tuple[OverlayFault, ...]

    def require_right(self) -> None:
        if self.faults:
            raise SeatingInvalid(self.faults)


def offer(hall: Hall, document: object, policy: Policy, *, venue_capacity: int, event_capacity: int | None) -> Offer:
    """Read what an event says of a hall and work out what it offers; what cannot even be read is refused."""
    overlay = read_overlay(document, hall.layout_id, seat_serials=hall.seat_serials, zone_serials=hall.zone_serials)
    if isinstance(overlay, Faults):
        raise SeatingInvalid(overlay.kept, overlay.count)
    found = wrong_overlay(
        hall.layout,
        overlay,
        policy,
        venue_capacity=venue_capacity,
        event_capacity=event_capacity,
        zone_ids=hall.zone_ids(),
    )
    return Offer(hall=hall, overlay=overlay, view=effective_view(hall.layout, overlay, policy), faults=tuple(found))


def blocked_columns(view: View, first: int, last: int) -> tuple[list[int], list[str]]:
    """The ordinals from `first` up to `last` that are out of sale, and why."""
    ordinals = sorted(ordinal for ordinal in view.blocked if first <= ordinal < last)
    return ordinals, [view.blocked[ordinal].value for ordinal in ordinals]


def told_zones(made: Offer) -> Iterator[dict[str, object]]:
    """The zones of an offer as they are written down, in the order of the layout."""
    for ordinal, zone in enumerate(made.view.zones):
        yield {
            "ordinal": ordinal,
            "zone_id": str(made.hall.zone_id(zone.code)),
            "zone_code": zone.code,
            "name": zone.name,
            "zone_type": zone.zone_type,
            "access_mode": zone.access_mode,
            "membership_tier": zone.membership_tier,
            "allowed_roles": zone.allowed_roles,
            "is_enabled": zone.is_enabled,
            "categories": dict(zone.categories),
            "pricing_rule_id": zone.pricing_rule_id,
            "capacity": zone.capacity,
            "blocked": zone.blocked_count,
        }


def changed_words(before: EventLayout, after: EventLayout) -> dict[str, object]:
    """What an event says differently from before, for the journal: by zone and field, seats only by how many."""
    told: dict[str, object] = {}
    if before.pin != after.pin:
        told["layout"] = [_named(before), _named(after)]
    for key in ("zone_overrides", "pricing_zones", "seating_overrides"):
        old, new = _mapping(before, key), _mapping(after, key)
        if differing := {
            name: [old.get(name), new.get(name)] for name in {**old, **new} if old.get(name) != new.get(name)
        }:
            told[key] = differing
    old_off, new_off = _listed(before, "disabled_zones"), _listed(after, "disabled_zones")
    if old_off != new_off:
        told["disabled_zones"] = [sorted(old_off), sorted(new_off)]
    old_seats, new_seats = _listed(before, "blocked_seat_ids"), _listed(after, "blocked_seat_ids")
    if old_seats != new_seats:
        told["blocked_seats"] = {"added": len(new_seats - old_seats), "removed": len(old_seats - new_seats)}
    return told


def _named(row: EventLayout) -> list[object] | None:
    return [str(row.layout_id), row.layout_version] if row.pin else None


def _mapping(row: EventLayout, key: str) -> Mapping[str, object]:
    found = row.overrides.get(key, {})
    assert isinstance(found, Mapping)
    return found


def _listed(row: EventLayout, key: str) -> frozenset[str]:
    found = row.overrides.get(key, [])
    assert isinstance(found, list)
    return frozenset(map(str, found))
