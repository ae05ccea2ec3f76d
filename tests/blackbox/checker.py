"""All checks over one history."""

from collections.abc import Callable, Iterator

from tests.blackbox import answer_checks, hold_checks, map_checks
from tests.blackbox.history import History
from tests.blackbox.tenures import Ledger, read_tenures
from tests.blackbox.violations import Violation

Check = Callable[[History, Ledger], Iterator[Violation]]

CHECKS: tuple[Check, ...] = (
    hold_checks.find_double_holds,
    hold_checks.find_lost_holds,
    hold_checks.find_ended_holds_shown,
    hold_checks.find_phantom_refusals,
    hold_checks.find_blocked_seats_held,
    hold_checks.find_oversold_zones,
    answer_checks.find_keys_with_two_answers,
    answer_checks.find_wrong_countdowns,
    answer_checks.find_wrong_extensions,
    answer_checks.find_unexpected_answers,
    answer_checks.find_unknown_outcomes_of_refused_writes,
    answer_checks.find_wrong_readiness,
    answer_checks.find_collapse,
    map_checks.find_stale_maps,
    map_checks.find_steps_back,
    map_checks.find_disagreements,
    map_checks.find_effects_of_refused_requests,
    map_checks.find_unexplained_holds,
)


def check(history: History) -> list[Violation]:
    """Return every violation in a history, the earliest first."""
    ledger = read_tenures(history)
    found = [violation for one in CHECKS for violation in one(history, ledger)]
    return sorted(found, key=lambda violation: violation.at)
