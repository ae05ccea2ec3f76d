"""Checks of single answers, and of answers that belong together: keys, extensions, readiness, errors. Pure."""

from collections import defaultdict
from collections.abc import Iterator

from tests.blackbox.history import RESERVES, WRITES, Call, FaultKind, History, Op, Outcome
from tests.blackbox.tenures import CLOCK_SETTLE_S, EXTENSION_S, Ledger, Tenure
from tests.blackbox.violations import Rule, Violation

CANNOT_WRITE = (FaultKind.DISK_FULL, FaultKind.READ_ONLY)
NOTICE_S = 3.5
"""So long after PostgreSQL stops accepting writes, readiness must say so."""
PRECISION_S = 0.001
SLACK_S = 1.0
COUNTDOWN_SLACK_S = 2.0
"""Answers give whole seconds, and the time at which a web process last read PostgreSQL's clock is not exact."""
REFUSALS = {
    Op.SIGN_IN: set[str](),
    Op.RESERVE_SEAT: {
        "seat_held_by_another_user",
        "seat_not_available",
        "seat_no_longer_available",
        "rate_limited",
        "max_seats_exceeded",
    },
    Op.RESERVE_SEATS: {
        "seats_refused",
        "rate_limited",
        "max_seats_exceeded",
        "seat_held_by_another_user",
        "seat_not_available",
        "seat_no_longer_available",
    },
    Op.RESERVE_PLACES: {"block_at_capacity", "rate_limited", "max_seats_exceeded"},
    Op.EXTEND: {"holds_expired"},
}
"""What a healthy client can be refused, besides 503."""


def find_keys_with_two_answers(history: History, ledger: Ledger) -> Iterator[Violation]:
    """Idempotency keys whose requests got different answers. Only 503 is not remembered."""
    by_key: dict[tuple[str, str], list[Call]] = defaultdict(list)
    for call in history.calls:
        if call.key and call.outcome is not Outcome.UNKNOWN and call.status not in (0, 503):
            by_key[call.buyer, call.key].append(call)
    for (buyer, key), calls in by_key.items():
        answers = {_answer_of(call) for call in calls}
        if len(answers) > 1:
            text = f"key {key} of {buyer}: {'; '.join(map(str, sorted(answers)))}"
            yield Violation(rule=Rule.KEY_WITH_TWO_ANSWERS, at=calls[-1].ended, text=text)


def _answer_of(call: Call) -> tuple[int, str, tuple[str, ...]]:
    return call.status, call.error, tuple(sorted(one.hold_id for one in call.holds))


def find_wrong_countdowns(history: History, ledger: Ledger) -> Iterator[Violation]:
    """New holds whose answer gives them more or less time than they have, except while PostgreSQL's clock is wrong."""
    sent: set[tuple[str, str]] = set()
    for call in history.of(*RESERVES):
        is_repeat = (call.buyer, call.key) in sent
        sent |= {(call.buyer, call.key)} if call.key else set()
        clock = history.has_fault(call.began, call.ended, [FaultKind.CLOCK_STEP], settle_s=CLOCK_SETTLE_S)
        if call.status != 201 or is_repeat or clock:
            continue
        least_s = history.ttl_s - (call.ended - call.began) - COUNTDOWN_SLACK_S
        for seen in call.holds:
            is_new = ledger.tenures[seen.hold_id].seen[0][0] is call
            if is_new and not (seen.is_held and least_s <= seen.left_s <= history.ttl_s):
                text = f"hold {seen.hold_id} is new at {call.began:.2f} and has {seen.left_s} s left"
                yield Violation(rule=Rule.COUNTDOWN, at=call.ended, text=text)


def find_wrong_extensions(history: History, ledger: Ledger) -> Iterator[Violation]:
    """Holds whose end moved by anything but one extension of five minutes, granted before the end."""
    asked: dict[str, list[Call]] = defaultdict(list)
    for call in history.of(Op.EXTEND):
        if call.may_have_happened:
            asked[call.hold_id].append(call)
    for one in ledger.tenures.values():
        for at, text in _extension_errors(one, asked.get(one.hold_id, [])):
            yield Violation(rule=Rule.EXTENSION, at=at, text=f"hold {one.hold_id} of {one.owner} {text}")


def _extension_errors(one: Tenure, asked: list[Call]) -> Iterator[tuple[float, str]]:
    first_end = min(seen.held_until for _, seen in one.seen)
    granted = [call for call in asked if call.outcome is Outcome.OK]
    for call, seen in one.seen:
        later_s = seen.held_until - first_end
        if later_s > PRECISION_S and abs(later_s - EXTENSION_S) > PRECISION_S:
            yield call.ended, f"ends {later_s:.3f} s later than at first"
        elif later_s > PRECISION_S and not any(each.began <= call.ended for each in asked):
            yield call.ended, "was extended although its owner did not ask for it"
        elif later_s <= PRECISION_S and any(each.ended < call.began or each is call for each in granted):
            yield call.ended, "does not have the extension that was acknowledged"
    if granted and asked[0].began > one.first_end + SLACK_S:
        yield granted[0].ended, f"was extended at {granted[0].began:.2f}, after its end at {one.first_end:.2f}"


def find_unexpected_answers(history: History, ledger: Ledger) -> Iterator[Violation]:
    """Answers that a healthy client should never get: 500, and refusals that do not fit the request."""
    for call in history.calls:
        if call.status < 400 or call.status == 503 or call.op is Op.READY:
            continue
        if call.error not in REFUSALS.get(call.op, ()):
            text = f"{call.op} answered {call.status} {call.error} at {call.began:.2f} (request {call.request_id})"
            yield Violation(rule=Rule.UNEXPECTED_ANSWER, at=call.began, text=text)


def find_unknown_outcomes_of_refused_writes(history: History, ledger: Ledger) -> Iterator[Violation]:
    """Writes that PostgreSQL refused for being read-only, and whose answer leaves the outcome open."""
    windows = [fault for fault in history.faults if fault.kind is FaultKind.READ_ONLY]
    for call in history.of(*WRITES):
        if call.status != 503 or call.outcome is not Outcome.UNKNOWN:
            continue
        inside = [fault for fault in windows if fault.began + NOTICE_S <= call.began and call.ended <= fault.lifted]
        others = set(FaultKind) - {FaultKind.READ_ONLY}
        if inside and not history.has_fault(call.began - NOTICE_S, call.ended, others):
            text = f"{call.op} at {call.began:.2f} answered {call.error} although nothing can be written"
            yield Violation(rule=Rule.UNEXPECTED_ANSWER, at=call.began, text=text)


def find_wrong_readiness(history: History, ledger: Ledger) -> Iterator[Violation]:
    """Faults in which PostgreSQL accepted no writes, and the product still said that it was ready."""
    for fault in history.faults:
        if fault.kind not in CANNOT_WRITE:
            continue
        for call in history.of(Op.READY):
            if call.status == 200 and fault.began + NOTICE_S <= call.began and call.ended <= fault.lifted:
                text = f"ready at {call.began:.2f}, {call.began - fault.began:.1f} s into {fault.kind}"
                yield Violation(rule=Rule.READINESS, at=call.began, text=text)
                break


def find_collapse(history: History, ledger: Ledger) -> Iterator[Violation]:
    """A fault from which the product did not recover."""
    if history.collapse:
        fault = history.faults[-1]
        text = f"not ready again after {fault.kind} {fault.detail}; the end of its log:\n{history.collapse}"
        yield Violation(rule=Rule.NO_RECOVERY, at=fault.began, text=text)
