"""Who comes, what they want, and which seats they take: pure, and the same again from the same seed."""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import accumulate
from math import hypot
from random import Random
from typing import Any, Final

PARTIES: Final = (1, 2, 2, 2, 2, 3, 3, 4, 4, 5, 6)
"""How many come together: mostly two."""
ROWS_LOOKED_AT: Final = 60
FREE: Final = 0
CAREFUL: Final = 0.5
"""From here on nobody is so careless as to forget seats: they would stand in everybody's way for minutes."""
CROWDED: Final = 0.75
"""From here on some give tickets back."""
TAKEN_MAX: Final = 0.97
EAGER: Final = 2.2
"""How much more people look at the good seats than at the others; 1 would be not at all."""
NOT_FOR_ALL: Final = ("wheelchair", "companion")


class Fate(StrEnum):
    """How a visit ends."""

    LEAVE = "leave"  # only looked
    RELEASE = "release"  # changed the mind
    LAPSE = "lapse"  # forgot about it
    BUY = "buy"


FATES: Final[Mapping[Fate, float]] = {Fate.LEAVE: 0.15, Fate.RELEASE: 0.27, Fate.LAPSE: 0.08, Fate.BUY: 0.50}


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """What somebody has in mind who comes in."""

    event_id: str
    party: int
    wants_area: bool
    follows: bool
    looks_s: float
    thinks_s: float
    tries_max: int
    fate: Fate


def next_arrival_s(rng: Random, per_s: float) -> float:
    """How long until the next one comes; people do not come by the clock."""
    assert per_s > 0
    return min(rng.expovariate(per_s), 10.0 / per_s)


def draw(rng: Random, taken: Mapping[str, float]) -> Visit | None:
    """Somebody, who goes where there is still room; None when everything is full. `taken` is a share by event."""
    open_to = {event_id: 1.0 - share for event_id, share in taken.items() if share < TAKEN_MAX}
    # The dice are thrown in the same number whatever they say, so that one answer does not change all that follow.
    which, party, area, follows = rng.random(), rng.choice(PARTIES), rng.random(), rng.random()
    looks_s, thinks_s = rng.uniform(0.3, 3.0), rng.uniform(1.0, 12.0)
    tries_max = rng.randint(1, 3)
    fate = rng.choices(tuple(FATES), tuple(FATES.values()))[0]
    if not open_to:
        return None
    event_id = _weighted(which, open_to)
    if fate is Fate.LAPSE and taken[event_id] >= CAREFUL:
        fate = Fate.RELEASE
    return Visit(
        event_id=event_id,
        party=party,
        wants_area=area < 0.5,  # noqa: PLR2004 - every second one, where there is an area
        follows=follows < 0.2,  # noqa: PLR2004 - every fifth
        looks_s=looks_s,
        thinks_s=thinks_s,
        tries_max=tries_max,
        fate=fate,
    )


def _weighted(at: float, weights: Mapping[str, float]) -> str:
    names = sorted(weights)
    sums = list(accumulate(weights[name] for name in names))
    return next((name for name, limit in zip(names, sums, strict=True) if at * sums[-1] < limit), names[-1])


def give_back(taken: float, capacity: int) -> int:
    """How many tickets come back to an event that is so full: what is above the mark, a little at a time."""
    return max(0, min(60, round((taken - CROWDED) * capacity)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """Neighbours in a row, with nobody between them: the first ordinal, and how many."""

    first: int
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Hall:
    """What a buyer knows of an event's places: stretches of seats with the best first, and areas by zone."""

    seat_count: int
    id_prefix: str
    serials: tuple[tuple[int, int, int], ...]
    stretches: tuple[Stretch, ...]
    areas: tuple[str, ...]

    def seat_id(self, ordinal: int) -> str:
        """The id of a seat."""
        first, serial = next((first, serial) for first, serial, count in self.serials if ordinal < first + count)
        return f"{self.id_prefix}{serial + ordinal - first:08x}"


def read_hall(offer: Mapping[str, Any], geometry: Mapping[str, Any] | None) -> Hall:
    """A hall from what the server says of it: only zones that are open to everybody."""
    zones = offer["zones"]
    is_open = {zone["zone_id"]: zone["is_enabled"] and zone["access_mode"] == "public" for zone in zones}
    areas = tuple(zone["zone_id"] for zone in zones if zone["place"] != "reserved" and is_open[zone["zone_id"]])
    if geometry is None:
        return Hall(seat_count=0, id_prefix="", serials=(), stretches=(), areas=areas)
    firsts = accumulate((count for _, count in geometry["serials"]), initial=0)
    serials = tuple((first, serial, count) for first, (serial, count) in zip(firsts, geometry["serials"], strict=False))
    return Hall(
        seat_count=geometry["seat_count"],
        id_prefix=geometry["id_prefix"],
        serials=serials,
        stretches=_stretches(geometry, is_open),
        areas=areas,
    )


def _stretches(geometry: Mapping[str, Any], is_open: Mapping[str, bool]) -> tuple[Stretch, ...]:
    """Every stretch of seats that anybody may take, those nearest to what there is to see first."""
    x, y = list(accumulate(geometry["x"])), list(accumulate(geometry["y"]))
    breaks = set(accumulate(geometry["breaks"]))
    kept = {seat for word in NOT_FOR_ALL for seat in accumulate(geometry["categories"].get(word, ()))}
    middle = _middle(geometry)
    found: list[tuple[float, Stretch]] = []
    start = 0
    for zone, count in zip(accumulate(geometry["rows"]["zone"]), geometry["rows"]["count"], strict=True):
        end = start + count
        if is_open.get(geometry["zones"][zone]["zone_id"], False):
            first = start
            for seat in range(start, end + 1):
                if seat == end or seat in breaks or seat in kept:
                    if seat > first:
                        at = (first + seat - 1) // 2
                        far = hypot(x[at] - middle[0], y[at] - middle[1])
                        found.append((far, Stretch(first=first, count=seat - first)))
                    first = seat + 1 if seat in kept else seat
        start = end
    return tuple(stretch for _, stretch in sorted(found, key=lambda one: (one[0], one[1].first)))


def _middle(geometry: Mapping[str, Any]) -> tuple[float, float]:
    """Where people look: the middle of the stage, or of the first thing drawn."""
    shapes = sorted(geometry["shapes"], key=lambda shape: shape["kind"] not in ("stage", "pitch", "screen"))
    outline = shapes[0]["outline"] if shapes else [(0, 0)]
    return sum(p[0] for p in outline) / len(outline), sum(p[1] for p in outline) / len(outline)


@dataclass(frozen=True, slots=True)
class Statuses:
    """A seat map as the server sends it: two bits for each seat."""

    packed: bytes

    @classmethod
    def read(cls, text: str) -> "Statuses":
        return cls(base64.b64decode(text))

    def is_free(self, ordinal: int) -> bool:
        return (self.packed[ordinal >> 2] >> 2 * (ordinal & 3)) & 3 == FREE


def choose(rng: Random, hall: Hall, statuses: Statuses, party: int) -> tuple[int, ...]:
    """Seats beside each other, rather good ones, nearest to the middle of their stretch; nothing where none are seen.

    Not always the very best: everybody has a place to begin to look from, mostly in front.
    """
    begin = int(len(hall.stretches) * rng.random() ** EAGER)
    for stretch in _from(hall.stretches, begin):
        if seats := _beside(stretch, statuses, party):
            return seats
    return ()


def _from(stretches: Sequence[Stretch], begin: int) -> Sequence[Stretch]:
    return stretches[begin : begin + ROWS_LOOKED_AT]


def _beside(stretch: Stretch, statuses: Statuses, party: int) -> tuple[int, ...]:
    last = stretch.count - party
    for shift in sorted(range(last + 1), key=lambda shift: abs(2 * shift - last)):
        seats = range(stretch.first + shift, stretch.first + shift + party)
        if all(map(statuses.is_free, seats)):
            return tuple(seats)
    return ()
