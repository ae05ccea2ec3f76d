"""What a run found, for people: calls, acknowledged writes, faults, unavailability and violations."""

import statistics
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tests.blackbox.history import RESERVES, WRITES, Fault, History, Op, Outcome
from tests.blackbox.violations import Violation

AFTERMATH_S = 2.0
"""Calls that fail this long after recovery are still counted to the fault."""
SHOWN_PER_RULE = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """How clients felt a fault: failed calls, and the time from the first failed write to the next acknowledged one."""

    kind: str
    failed_count: int
    unavailable_s: float
    disturbed_s: float
    """From the first failed call to the last."""


def windows(history: History) -> Iterator[Window]:
    """Measure each fault. Faults that overlap are measured together, named after both."""
    groups = _together(history.faults)
    for number, faults in enumerate(groups):
        began = min(fault.began for fault in faults)
        ended = max(fault.recovered for fault in faults) + AFTERMATH_S
        if number + 1 < len(groups):
            ended = min(ended, groups[number + 1][0].began)
        calls = [call for call in history.of(*WRITES) if began <= call.ended and call.began < ended]
        failed = sorted((call for call in calls if call.has_failed), key=lambda call: call.began)
        kind = " + ".join(fault.kind for fault in faults)
        if not failed:
            yield Window(kind=kind, failed_count=0, unavailable_s=0.0, disturbed_s=0.0)
            continue
        first = failed[0].began
        served = [call.ended for call in calls if call.outcome is Outcome.OK and call.began > first]
        yield Window(
            kind=kind,
            failed_count=len(failed),
            unavailable_s=min(served, default=ended) - first,
            disturbed_s=max(call.began for call in failed) - first,
        )


def _together(faults: Sequence[Fault]) -> list[list[Fault]]:
    groups: list[list[Fault]] = []
    for fault in faults:
        if groups and fault.began <= groups[-1][0].lifted:
            groups[-1].append(fault)
        else:
            groups.append([fault])
    return groups


def acknowledged_writes(history: History) -> int:
    """Count holds, releases and extensions that were acknowledged."""
    wanted = RESERVES | {Op.RELEASE, Op.EXTEND}
    return sum(call.op in wanted and call.outcome is Outcome.OK for call in history.calls)


def render(history: History, violations: Sequence[Violation]) -> str:
    """Return the report of a run."""
    calls = history.calls
    start = min((call.began for call in calls), default=0.0)
    outcomes = Counter(call.outcome for call in calls)
    lines = [
        f"calls                 {len(calls):>8,}",
        f"acknowledged writes   {acknowledged_writes(history):>8,}",
        f"refused               {outcomes[Outcome.REFUSED]:>8,}",
        f"outcome unknown       {outcomes[Outcome.UNKNOWN]:>8,}",
        f"faults                {len(history.faults):>8,}",
        f"violations            {len(violations):>8,}",
        "",
        *_answer_lines(history),
        "",
        *_window_lines(history),
        "",
        *_violation_lines(violations, start),
    ]
    return "\n".join(lines)


def _answer_lines(history: History) -> Iterator[str]:
    """Say which answers each kind of call got."""
    answers: dict[Op, Counter[str]] = defaultdict(Counter)
    for call in history.calls:
        answers[call.op][f"{call.status or 'none'} {call.error}".strip()] += 1
    for op, counts in answers.items():
        yield f"  {op:<15} " + ", ".join(f"{answer}: {count:,}" for answer, count in counts.most_common())


def _window_lines(history: History) -> Iterator[str]:
    by_kind: dict[str, list[Window]] = defaultdict(list)
    for window in windows(history):
        by_kind[window.kind].append(window)
    yield "  unavailability by fault          times  failed calls first failure to next success   first to last failure"
    yield "                                                                 median          max"
    for kind, found in sorted(by_kind.items()):
        gaps = [one.unavailable_s for one in found]
        failed = sum(one.failed_count for one in found)
        longest = max(one.disturbed_s for one in found)
        middle = statistics.median(gaps)
        yield f"  {kind:<32} {len(found):>5}  {failed:>12}  {middle:>14.2f} s {max(gaps):>12.2f} s  {longest:>19.2f} s"


def _violation_lines(violations: Sequence[Violation], start: float) -> Iterator[str]:
    by_rule: dict[str, list[Violation]] = defaultdict(list)
    for one in violations:
        by_rule[one.rule].append(one)
    for rule, found in by_rule.items():
        yield f"  VIOLATED {len(found)} times: {rule}"
        for one in found[:SHOWN_PER_RULE]:
            yield f"    {one.at - start:8.2f} s  {one.text}"
    if not violations:
        yield "  no violations"
