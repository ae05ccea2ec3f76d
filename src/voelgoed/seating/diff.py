"""What is different between two versions of a layout: seats by their codes, zones by theirs."""

from collections.abc import Callable
from dataclasses import dataclass, fields

from voelgoed.seating.model import Layout, Seat, Zone


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedSeat:
    """A seat and where it belongs in one version."""

    zone_code: str
    row_label: str
    group_code: str | None
    seat: Seat


@dataclass(frozen=True, slots=True, kw_only=True)
class SeatChange:
    """A seat that is in both versions, and not the same."""

    seat_code: str
    before: PlacedSeat
    after: PlacedSeat


@dataclass(frozen=True, slots=True, kw_only=True)
class ZoneChange:
    """A zone that is in both versions, and what is not the same about it."""

    zone_code: str
    fields: tuple[str, ...]
    before: Zone
    after: Zone


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutDiff:
    """All differences, in the order of the layouts. A seat that changed in several ways is in several lists."""

    added: tuple[PlacedSeat, ...]
    removed: tuple[PlacedSeat, ...]
    moved: tuple[SeatChange, ...]  # another point, or other neighbours
    relabelled: tuple[SeatChange, ...]  # another row, number or label
    rezoned: tuple[SeatChange, ...]
    recategorised: tuple[SeatChange, ...]  # another category, wheelchair space or group
    zones_added: tuple[Zone, ...]
    zones_removed: tuple[Zone, ...]
    zones_changed: tuple[ZoneChange, ...]

    @property
    def is_empty(self) -> bool:
        return not any(getattr(self, one.name) for one in fields(self))


def diff(before: Layout, after: Layout) -> LayoutDiff:
    """What one has to do to the first layout to get the second."""
    old, new = _placed(before), _placed(after)
    both = [
        SeatChange(seat_code=code, before=old[code], after=placed)
        for code, placed in new.items()
        if code in old and old[code] != placed
    ]

    def changed(aspect: Callable[[PlacedSeat], object]) -> tuple[SeatChange, ...]:
        return tuple(change for change in both if aspect(change.before) != aspect(change.after))

    old_zones = {zone.code: zone for zone in before.zones}
    new_zones = {zone.code: zone for zone in after.zones}
    changes = (_zone_change(old_zones[code], zone) for code, zone in new_zones.items() if code in old_zones)
    return LayoutDiff(
        added=tuple(placed for code, placed in new.items() if code not in old),
        removed=tuple(placed for code, placed in old.items() if code not in new),
        moved=changed(_place),
        relabelled=changed(_label),
        rezoned=changed(lambda placed: placed.zone_code),
        recategorised=changed(_kind),
        zones_added=tuple(zone for code, zone in new_zones.items() if code not in old_zones),
        zones_removed=tuple(zone for code, zone in old_zones.items() if code not in new_zones),
        zones_changed=tuple(change for change in changes if change.fields),
    )


def _placed(layout: Layout) -> dict[str, PlacedSeat]:
    groups = {code: group.code for zone in layout.zones for group in zone.groups for code in group.seat_codes}
    return {
        seat.code: PlacedSeat(zone_code=zone.code, row_label=row.label, group_code=groups.get(seat.code), seat=seat)
        for zone, row, seat in layout.seats()
    }


def _place(placed: PlacedSeat) -> object:
    return placed.seat.x, placed.seat.y, placed.seat.position, placed.seat.segment


def _label(placed: PlacedSeat) -> object:
    return placed.row_label, placed.seat.number, placed.seat.label


def _kind(placed: PlacedSeat) -> object:
    return placed.seat.category, placed.seat.companion_of, placed.group_code


def _zone_change(before: Zone, after: Zone) -> ZoneChange:
    """Seats are told one by one, so that rows do not count here."""
    names = [one.name for one in fields(Zone) if one.name != "rows"]
    different = tuple(name for name in names if getattr(before, name) != getattr(after, name))
    return ZoneChange(zone_code=after.code, fields=different, before=before, after=after)
