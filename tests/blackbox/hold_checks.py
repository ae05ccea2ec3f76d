"""Checks of what buyers hold: no seat twice, nothing lost, nothing kept too long, no place sold twice. Pure."""

import itertools
from collections.abc import Iterator

from tests.blackbox.history import RESERVES, Call, FaultKind, History, Op, Outcome
from tests.blackbox.tenures import Ledger, Span, Tenure
from tests.blackbox.violations import Rule, Violation

MEMORY_S = 1.0
"""A web process may refuse a seat for what PostgreSQL said within the last second."""
SLACK_S = 1.0
"""Time between two clocks that are read one after the other, on a machine that is busy."""


def find_double_holds(history: History, ledger: Ledger) -> Iterator[Violation]:
    """Two holds of a seat that certainly existed at the same time."""
    for seat_id in history.seat_ids:
        for one, other in _overlapping(ledger.by_place.get(seat_id, [])):
            yield Violation(
                rule=Rule.DOUBLE_HOLD,
                at=max(one.certain.start, other.certain.start),
                text=f"seat {seat_id}: {_describe(one)} and {_describe(other)}",
            )


def _overlapping(tenures: list[Tenure]) -> Iterator[tuple[Tenure, Tenure]]:
    """Yield pairs whose certain spans overlap. The tenures are sorted by their start."""
    last: Tenure | None = None
    for one in tenures:
        if last is not None and last.certain.overlaps(one.certain):
            yield last, one
        if last is None or one.certain.end > last.certain.end:
            last = one


def find_lost_holds(history: History, ledger: Ledger) -> Iterator[Violation]:
    """Baskets that lack a hold that certainly existed, and holds that the API says it does not know."""
    by_owner: dict[str, list[Tenure]] = {}
    reported: set[str] = set()
    for one in ledger.tenures.values():
        by_owner.setdefault(one.owner, []).append(one)
    for call in history.of(Op.LIST_OWN):
        if call.outcome is not Outcome.OK or history.has_fault(call.began, call.ended, [FaultKind.CLOCK_STEP]):
            continue  # while PostgreSQL's clock is wrong, a basket shows what that clock says
        shown = {seen.hold_id for seen in call.holds}
        for one in by_owner.get(call.buyer, ()):
            if (
                one.hold_id not in shown | reported
                and not one.has_odd_end
                and one.certain.covers(call.began, call.ended)
            ):
                reported.add(one.hold_id)
                text = f"{_describe(one)} is missing from a basket read at {call.began:.2f}"
                yield Violation(rule=Rule.LOST_HOLD, at=call.began, text=text)
    for call in history.of(Op.RELEASE, Op.EXTEND):
        known = ledger.tenures.get(call.hold_id)
        if known and call.error == "hold_not_found":
            yield Violation(rule=Rule.LOST_HOLD, at=call.began, text=f"{_describe(known)}: {call.op} answers 404")


def find_ended_holds_shown(history: History, ledger: Ledger) -> Iterator[Violation]:
    """Holds that an answer shows as held although they were released, or although their time was over."""
    for one in ledger.tenures.values():
        released = min((c.ended for c in one.ended_by if c.op is Op.RELEASE and c.outcome is Outcome.OK), default=None)
        for call, seen in one.seen:
            if not seen.is_held:
                continue
            if released is not None and call.began > released:
                text = f"{_describe(one)} was released at {released:.2f} and shown as held at {call.began:.2f}"
                yield Violation(rule=Rule.RELEASE_WITHOUT_EFFECT, at=call.began, text=text)
            elif call.began > one.possible.end + SLACK_S:
                text = f"{_describe(one)} is shown as held at {call.began:.2f}"
                yield Violation(rule=Rule.OUTLIVED, at=call.began, text=text)


def find_phantom_refusals(history: History, ledger: Ledger) -> Iterator[Violation]:
    """Seats and zones that were refused as taken although they cannot have been."""
    blocks, first_sent = blocked_spans(history), dict[tuple[str, str], float]()
    for call in history.of(*RESERVES):
        # A key remembers its refusal, so what counts is when the key was first used.
        first = first_sent.setdefault((call.buyer, call.key), call.began) if call.key else call.began
        for place, error in call.refused:
            since = first - MEMORY_S - SLACK_S
            others = ledger.possible_at(place, since, call.ended, except_owner=call.buyer)
            if error == "seat_held_by_another_user" and not others:
                text = f"seat {place} was refused at {call.began:.2f}, and no other buyer can have held it"
                yield Violation(rule=Rule.PHANTOM_REFUSAL, at=call.began, text=text)
            window = Span(since, call.ended)
            if error == "seat_not_available" and not any(
                span.overlaps(window) for span in blocks["possible"].get(place, ())
            ):
                text = f"seat {place} was not available at {call.began:.2f}, and it was not blocked"
                yield Violation(rule=Rule.PHANTOM_REFUSAL, at=call.began, text=text)
            if error == "block_at_capacity":
                yield from _refused_too_early(call, since, history.capacities[place], ledger)


def _refused_too_early(call: Call, since: float, capacity: int, ledger: Ledger) -> Iterator[Violation]:
    held = ledger.possible_at(call.places[0], since, call.ended)
    if held + call.quantity <= capacity:
        text = f"{call.quantity} places were refused at {call.began:.2f} with at most {held} of {capacity} held"
        yield Violation(rule=Rule.PHANTOM_REFUSAL, at=call.began, text=text)


def find_blocked_seats_held(history: History, ledger: Ledger) -> Iterator[Violation]:
    """Holds that were created while their seat was certainly blocked."""
    blocks = blocked_spans(history)["certain"]
    for one in ledger.tenures.values():
        made = [call for call, _ in one.seen if call.status == 201]
        for call in made[:1]:
            if any(span.covers(call.began, call.ended) for span in blocks.get(one.place, ())):
                text = f"{_describe(one)} was created while the seat was blocked"
                yield Violation(rule=Rule.BLOCKED_SEAT_HELD, at=call.ended, text=text)


def blocked_spans(history: History) -> dict[str, dict[str, list[Span]]]:
    """Return when each seat was certainly blocked, and when it may have been."""
    spans: dict[str, dict[str, list[Span]]] = {"certain": {}, "possible": {}}
    unblocks = [call for call in history.of(Op.UNBLOCK) if call.may_have_happened]
    for call in history.of(Op.BLOCK):
        if not call.may_have_happened:
            continue
        for seat_id in call.places:
            later = [one for one in unblocks if seat_id in one.places and one.began > call.began]
            until = min((one.began for one in later), default=float("inf"))
            gone = min((one.ended for one in later if one.outcome is Outcome.OK), default=float("inf"))
            if call.outcome is Outcome.OK and seat_id not in dict(call.refused):
                spans["certain"].setdefault(seat_id, []).append(Span(call.ended, until))
            spans["possible"].setdefault(seat_id, []).append(Span(call.began, gone))
    return spans


def find_oversold_zones(history: History, ledger: Ledger) -> Iterator[Violation]:
    """Moments at which more places of a zone were certainly held than it has."""
    for zone_id, capacity in history.capacities.items():
        tenures = [one for one in ledger.by_place.get(zone_id, ()) if one.certain.start < one.certain.end]
        steps = sorted(
            itertools.chain.from_iterable(
                ((one.certain.start, one.quantity), (one.certain.end, -one.quantity)) for one in tenures
            )
        )
        held = 0
        for at, change in steps:
            held += change
            if held > capacity:
                text = f"zone {zone_id}: {held} of {capacity} places held at {at:.2f}"
                yield Violation(rule=Rule.OVERSOLD, at=at, text=text)
                break


def _describe(one: Tenure) -> str:
    span = f"{one.certain.start:.2f} to {one.certain.end:.2f}"
    return f"hold {one.hold_id} of {one.owner} on {one.place} ({span})"
