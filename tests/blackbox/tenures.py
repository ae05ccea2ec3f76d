"""What the history says about each hold: when it certainly existed, and when it may have existed. Pure.

A client cannot know the moment at which a call took effect, only that it lies between the call's beginning and its end.
So every hold has two spans: the certain one, which checks for double and lost holds use, and the possible one, which
can excuse a refusal.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from tests.blackbox.history import RESERVES, Call, FaultKind, History, Op, Outcome, SeenHold

EXTENSION_S = 300.0
LATE_EFFECT_S = 60.0
"""A call without an answer may take effect this long after it began: its web process may have been frozen."""
CLOCK_SETTLE_S = 5.0
MINUTE_S = 60.0
ROUNDING_S = 1.0
"""Answers give whole seconds."""


@dataclass(frozen=True, slots=True)
class Span:
    """A span of time, its end not included."""

    start: float
    end: float

    def overlaps(self, other: "Span") -> bool:
        return max(self.start, other.start) < min(self.end, other.end)

    def covers(self, start: float, end: float) -> bool:
        return self.start <= start and end < self.end


@dataclass(frozen=True, slots=True)
class Claim:
    """Somebody who may have held a place for a while."""

    owner: str
    quantity: int
    span: Span


@dataclass(slots=True, kw_only=True)
class Tenure:
    """One hold, from the first sign of it to the last."""

    hold_id: str
    owner: str
    place: str
    quantity: int
    seen: list[tuple[Call, SeenHold]] = field(default_factory=list)
    certain: Span = Span(0, 0)
    possible: Span = Span(0, 0)
    first_end: float = math.inf
    """The latest time at which it can expire without an extension."""
    has_odd_end: bool = False
    """Whether its end was computed while PostgreSQL's clock was wrong, so that it means another time now."""
    ended_by: list[Call] = field(default_factory=list)
    """Calls that release it or block its seat, unless they were refused."""


@dataclass(slots=True, kw_only=True)
class Ledger:
    """All tenures of a history, and what else may occupy a place."""

    tenures: dict[str, Tenure]
    by_place: dict[str, list[Tenure]]
    guesses: dict[str, list["Claim"]]
    """By place: requests whose outcome stayed unknown."""
    _minutes: dict[tuple[str, int], list["Claim"]] = field(default_factory=dict)
    """By place and minute, everything that may have occupied the place within that minute."""

    def __post_init__(self) -> None:
        """Sort all claims into minutes: a long run asks for them tens of thousands of times."""
        claims = [(one.place, Claim(one.owner, one.quantity, one.possible)) for one in self.tenures.values()]
        claims += [(place, claim) for place, found in self.guesses.items() for claim in found]
        last = max((claim.span.end for _, claim in claims if claim.span.end < math.inf), default=0.0)
        for place, claim in claims:
            for minute in _minutes_of(claim.span.start, min(claim.span.end, last + MINUTE_S)):
                self._minutes.setdefault((place, minute), []).append(claim)

    def possible_at(self, place: str, start: float, end: float, *, except_owner: str = "") -> int:
        """Return the largest quantity that others may have held between `start` and `end`."""
        window = Span(start, end)
        found = {
            id(claim): claim.quantity
            for minute in _minutes_of(start, end)
            for claim in self._minutes.get((place, minute), ())
            if claim.owner != except_owner and claim.span.overlaps(window)
        }
        return sum(found.values())


def _minutes_of(start: float, end: float) -> range:
    return range(int(start // MINUTE_S), int(end // MINUTE_S) + 1)


def read_tenures(history: History) -> Ledger:
    """Work out all tenures of a history."""
    tenures: dict[str, Tenure] = {}
    for call in history.calls:
        for seen in call.holds:
            one = tenures.setdefault(
                seen.hold_id,
                Tenure(hold_id=seen.hold_id, owner=call.buyer, place=seen.place, quantity=seen.quantity),
            )
            one.seen.append((call, seen))
    enders, attempts = _enders(history), _attempts(history)
    extenders = _by(lambda call: [call.hold_id], history.of(Op.EXTEND))
    by_place: dict[str, list[Tenure]] = defaultdict(list)
    for one in tenures.values():
        candidates = [*enders.get(one.hold_id, ()), *enders.get(one.place, ())]
        _bound(one, attempts.get((one.owner, one.place), ()), candidates, extenders.get(one.hold_id, ()), history)
        by_place[one.place].append(one)
    for found in by_place.values():
        found.sort(key=lambda one: one.certain.start)
    return Ledger(tenures=tenures, by_place=by_place, guesses=_guesses(history))


def _bound(
    one: Tenure, attempts: Iterable[Call], enders: Iterable[Call], extenders: Iterable[Call], history: History
) -> None:
    """Work out the two spans of a tenure."""
    held = [(call, seen) for call, seen in one.seen if seen.is_held]
    shown = held or one.seen
    known_from = min(call.ended for call, _ in shown)
    made_by = [
        call
        for call in attempts
        if call.began <= known_from
        and (call.outcome is Outcome.UNKNOWN or any(seen.hold_id == one.hold_id for seen in call.holds))
    ]
    possible_from = min((call.began for call in made_by), default=min(call.began for call, _ in shown))
    one.ended_by = [call for call in enders if call.may_have_happened and call.ended > possible_from]
    one.has_odd_end = history.has_fault(possible_from, known_from, [FaultKind.CLOCK_STEP])
    certain_end, possible_end, one.first_end = _natural_end(held, extenders)
    possible_end = _latest_end(history, known_from, possible_end)
    one.first_end = _latest_end(history, known_from, one.first_end)
    longest_s = history.ttl_s + (EXTENSION_S if len({seen.held_until for _, seen in held}) > 1 else 0.0)
    certain_end = min(certain_end, one.seen[0][0].began + longest_s)  # whatever a wrong clock promised
    gone = [call.ended for call in one.ended_by if call.outcome is Outcome.OK and call.began >= known_from]
    one.certain = Span(known_from, min([certain_end, *(call.began for call in one.ended_by)]))
    one.possible = Span(possible_from, min([possible_end, *gone]))


def _natural_end(held: Iterable[tuple[Call, SeenHold]], extenders: Iterable[Call]) -> tuple[float, float, float]:
    """Return when a hold can expire, from the seconds that answers gave it: earliest, latest, latest unextended.

    An extension has another `held_until`. Of the answers with one `held_until` the first counts: later ones may have
    been computed with another clock.
    """
    first: dict[float, tuple[Call, SeenHold]] = {}
    for call, seen in held:
        first.setdefault(seen.held_until, (call, seen))
    if not first:
        return -math.inf, math.inf, math.inf
    earliest = max(call.began + seen.left_s for call, seen in first.values())
    ends = {until: call.ended + seen.left_s + ROUNDING_S for until, (call, seen) in first.items()}
    latest, unextended = max(ends.values()), ends[min(ends)]
    if len(first) == 1 and any(call.may_have_happened for call in extenders):
        latest += EXTENSION_S
    return earliest, latest, unextended


def _latest_end(history: History, made: float, end: float) -> float:
    """Return when a hold can end at the latest, if PostgreSQL's clock has stepped since.

    A step ahead makes it suspect until it has stepped back. When it goes back and returns, holds do not expire for as
    long as that step was. A hold that was made by the wrong clock has that clock's end.
    """
    for fault in history.faults:
        if fault.kind is not FaultKind.CLOCK_STEP:
            continue
        if fault.began <= made <= fault.recovered:
            end += abs(fault.clock_step_s)
        suspect_until = fault.recovered + max(0, -fault.clock_step_s) + CLOCK_SETTLE_S
        if fault.began - CLOCK_SETTLE_S <= end <= suspect_until:  # not tidied away yet, it may be held again
            end = suspect_until
    return end


def _enders(history: History) -> dict[str, list[Call]]:
    """Return the calls that can end a hold before its time: by hold id (releases) and by seat id (blocks)."""
    releases = _by(lambda call: [call.hold_id], history.of(Op.RELEASE))
    return releases | _by(lambda call: call.places, history.of(Op.BLOCK))


def _attempts(history: History) -> dict[tuple[str, str], list[Call]]:
    """Return requests for holds by buyer and place."""
    found: dict[tuple[str, str], list[Call]] = defaultdict(list)
    for call in history.of(*RESERVES):
        for place in call.places:
            found[call.buyer, place].append(call)
    return found


def _guesses(history: History) -> dict[str, list[Claim]]:
    found: dict[str, list[Claim]] = defaultdict(list)
    for call in history.of(*RESERVES):
        if call.outcome is Outcome.UNKNOWN:
            end = _latest_end(history, call.began, call.began + LATE_EFFECT_S + history.ttl_s)
            for place in call.places:
                found[place].append(Claim(call.buyer, call.quantity, Span(call.began, end)))
    return found


def _by(keys_of: Callable[[Call], Iterable[str]], calls: Iterable[Call]) -> dict[str, list[Call]]:
    found: dict[str, list[Call]] = defaultdict(list)
    for call in calls:
        for key in keys_of(call):
            found[key].append(call)
    return found
