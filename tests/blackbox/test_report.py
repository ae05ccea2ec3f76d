"""The report: how long a fault kept clients from writing."""

from tests.blackbox.history import Fault, FaultKind, Op
from tests.blackbox.report import acknowledged_writes, render, windows
from tests.blackbox.story import ANNE, BEN, Story


def fault(kind: FaultKind, began: float, lifted: float) -> Fault:
    return Fault(kind=kind, detail="", began=began, lifted=lifted, recovered=lifted + 1)


def test_unavailability_lasts_until_the_next_acknowledged_write() -> None:
    """A refusal is no success, and what succeeded before the first failure does not count."""
    story = Story()
    story.history.faults = [fault(FaultKind.KILL_POSTGRES, 10, 10)]
    story.release(ANNE, 9.5, "a")
    for at in (10, 12):
        story.release(ANNE, at, "a", status=503, error="busy", effect="none")
    story.refuse(BEN, 11, "seat_held_by_another_user")
    story.release(ANNE, 12.5, "a")
    (window,) = windows(story.history)
    assert (window.kind, window.failed_count) == ("kill_postgres", 2)
    assert (window.unavailable_s, window.disturbed_s) == (3.5, 2)


def test_faults_at_the_same_time_are_measured_together() -> None:
    story = Story()
    story.history.faults = [
        fault(FaultKind.FREEZE_WORKER, 0, 10),
        fault(FaultKind.KILL_VALKEY, 1, 1),
        fault(FaultKind.KILL_WEB, 20, 20),
    ]
    story.release(ANNE, 21, "a", status=0, error="timeout", effect="unknown")
    found = [(window.kind, window.failed_count) for window in windows(story.history)]
    assert found == [("freeze_worker + kill_valkey", 0), ("kill_web", 1)]


def test_the_report_counts_acknowledged_writes() -> None:
    story = Story()
    story.hold(ANNE, 0, "a")
    story.extend(ANNE, 2, "a", held_since=0)
    story.release(ANNE, 4, "a")
    story.refuse(BEN, 6, "seat_held_by_another_user")
    story.call(Op.MAP, BEN, 8, statuses="00")
    assert acknowledged_writes(story.history) == 3
    assert "no violations" in render(story.history, [])
