"""Checks of the seat map, and of what API, map, live map and database say in the end. Pure."""

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator

from tests.blackbox.history import RESERVES, History, Op, Outcome, Witness
from tests.blackbox.hold_checks import blocked_spans
from tests.blackbox.tenures import Ledger, Span, Tenure
from tests.blackbox.violations import Rule, Violation

STALE_S = 5.0
"""A map may lag behind by this much, whatever happens to the worker and to Valkey."""
SETTLE_S = 5.0
"""After other faults a web process may take this long to catch up."""


def find_stale_maps(history: History, ledger: Ledger) -> Iterator[Violation]:
    """Maps that show a seat as held long after its hold ended, or as available long after it was held."""
    blocks = blocked_spans(history)["possible"]
    seats = [SeatPast(seat_id, ledger, blocks.get(seat_id, [])) for seat_id in history.seat_ids]
    for call in history.of(Op.MAP):
        since = call.began - STALE_S
        if not call.statuses or history.is_map_delayed(since, call.ended, settle_s=SETTLE_S):
            continue
        for digit, seat in zip(call.statuses, seats, strict=True):
            error = seat.error_of(digit, since, call.ended)
            if error and error != seat.reported:
                text = f"seat {seat.seat_id} at {call.began:.2f}: {error}"
                yield Violation(rule=Rule.STALE_MAP, at=call.began, text=text)
            seat.reported = error


class SeatPast:
    """What one seat can have looked like over time."""

    def __init__(self, seat_id: str, ledger: Ledger, blocks: list[Span]) -> None:
        self.seat_id = seat_id
        self.reported = ""
        tenures = ledger.by_place.get(seat_id, [])
        self._blocks = blocks
        self._possible = [one.possible for one in tenures] + [claim.span for claim in ledger.guesses.get(seat_id, ())]
        self._certain = sorted((one.certain for one in tenures if not one.has_odd_end), key=lambda span: span.start)
        self._starts = [span.start for span in self._certain]

    def error_of(self, digit: str, since: float, until: float) -> str:
        """Return what is wrong with a map that shows this digit, if the seat never looked so within the window."""
        window = Span(since, until)
        if digit == "1" and not any(span.overlaps(window) for span in self._possible):
            return "shown as held, and no buyer can have held it"
        if digit == "3" and not any(span.overlaps(window) for span in self._blocks):
            return "shown as blocked, and it was not"
        if digit == "0" and self._is_held_throughout(since, until):
            return "shown as available, and it was held all the time"
        return ""

    def _is_held_throughout(self, since: float, until: float) -> bool:
        last = bisect_right(self._starts, since) - 1
        return any(span.covers(since, until) for span in self._certain[max(0, last - 3) : last + 1])


def find_steps_back(history: History, ledger: Ledger) -> Iterator[Violation]:
    """Live maps that went back to an older state."""
    for text in history.stream_errors:
        yield Violation(rule=Rule.STREAM_WENT_BACK, at=history.calls[-1].ended, text=text)


def find_disagreements(history: History, ledger: Ledger) -> Iterator[Violation]:
    """Whatever the database says at the end that the history, the maps or the database itself contradict."""
    witness = history.witness
    if witness is None:
        return
    errors = (
        *_map_errors(history, witness),
        *_row_errors(witness, history),
        *_tenure_errors(witness, ledger),
    )
    for rule, text in errors:
        yield Violation(rule=rule, at=witness.began, text=text)


def _map_errors(history: History, witness: Witness) -> Iterator[tuple[Rule, str]]:
    for source, statuses in history.final_maps:
        differing = [
            f"{n}: {shown} instead of {true}"
            for n, (shown, true) in enumerate(zip(statuses, witness.seat_statuses, strict=False))
            if shown != true
        ]
        if differing or len(statuses) != len(witness.seat_statuses):
            yield Rule.DISAGREEMENT, f"{source} differs from the database at {len(differing)} seats: {differing[:5]}"


def _row_errors(witness: Witness, history: History) -> Iterator[tuple[Rule, str]]:
    """Rows that contradict each other."""
    active = [row for row in witness.holds.values() if row.status == "active"]
    seats = set(history.seat_ids)
    by_seat = Counter(row.place for row in active if row.place in seats)
    for seat_id, count in by_seat.items():
        if count > 1:
            yield Rule.DOUBLE_HOLD, f"seat {seat_id} has {count} active holds in the database"
    pointed = {(seat_id, hold_id) for seat_id, hold_id in witness.seat_holds.items()}
    for seat_id, hold_id in pointed ^ {(row.place, row.hold_id) for row in active if row.place in seats}:
        yield Rule.DISAGREEMENT, f"seat {seat_id} and hold {hold_id} do not belong together in the database"
    for zone_id, capacity in history.capacities.items():
        held = sum(row.quantity for row in active if row.place == zone_id)
        if held != witness.zone_held[zone_id]:
            yield Rule.DISAGREEMENT, f"zone {zone_id} counts {witness.zone_held[zone_id]} held, its holds are {held}"
        if held > capacity:
            yield Rule.OVERSOLD, f"zone {zone_id} has {held} of {capacity} places held in the database"


def _tenure_errors(witness: Witness, ledger: Ledger) -> Iterator[tuple[Rule, str]]:
    """Rows that contradict what clients were told."""
    for one in ledger.tenures.values():
        row = witness.holds.get(one.hold_id)
        if row is None or (row.owner, row.place, row.quantity) != (one.owner, one.place, one.quantity):
            yield Rule.LOST_HOLD, f"hold {one.hold_id} of {one.owner} on {one.place} is {row} in the database"
        elif row.status != "active" and one.certain.covers(witness.began, witness.ended):
            yield Rule.LOST_HOLD, f"hold {one.hold_id} of {one.owner} is {row.status} in the database before its end"
        elif row.status == "active" and _is_released(one, witness.began):
            yield Rule.RELEASE_WITHOUT_EFFECT, f"hold {one.hold_id} was released and is active in the database"


def _is_released(one: Tenure, before: float) -> bool:
    return any(call.outcome is Outcome.OK and call.ended < before and call.op is Op.RELEASE for call in one.ended_by)


def find_effects_of_refused_requests(history: History, ledger: Ledger) -> Iterator[Violation]:
    """Requests that were refused without effect, and created a hold all the same."""
    witness = history.witness
    if witness is None:
        return
    for call in history.of(*RESERVES):
        if call.outcome is Outcome.REFUSED and call.request_id in witness.request_ids:
            text = f"{call.op} was refused at {call.began:.2f} with {call.error}, and created a hold"
            yield Violation(rule=Rule.EFFECT_AFTER_NONE, at=call.ended, text=text)


def find_unexplained_holds(history: History, ledger: Ledger) -> Iterator[Violation]:
    """Holds in the database that no request was granted and no request without an answer can have created."""
    witness = history.witness
    if witness is None:
        return
    granted: set[str] = set()
    unanswered: dict[tuple[str, str], set[str | int]] = defaultdict(set)
    for call in history.of(*RESERVES):
        granted.update(seen.hold_id for seen in call.holds)
        for place in call.places if call.outcome is Outcome.UNKNOWN else ():
            unanswered[call.buyer, place].add(call.key or id(call))
    rest = Counter((row.owner, row.place) for row in witness.holds.values() if row.hold_id not in granted)
    for (owner, place), count in rest.items():
        asked = len(unanswered[owner, place])
        if count > asked:
            text = f"{owner} has {count} holds on {place} that no request was granted, with {asked} without an answer"
            yield Violation(rule=Rule.UNEXPLAINED_HOLD, at=witness.began, text=text)
