"""The checker reports planted violations of what buyers hold, and nothing in a correct history."""

from tests.blackbox.checker import check
from tests.blackbox.history import Fault, FaultKind, Op
from tests.blackbox.story import ANNE, BEN, CAPACITY, SEATS, TTL_S, ZONE, Story, row
from tests.blackbox.violations import Rule


def clock_step(seconds: int, *, began: float, lifted: float) -> Fault:
    kind, detail = FaultKind.CLOCK_STEP, f"{seconds:+d} s"
    return Fault(kind=kind, detail=detail, began=began, lifted=lifted, recovered=lifted, clock_step_s=seconds)


def test_a_correct_history_has_no_violations() -> None:
    """Hold, refuse, extend, release, hold again, expire, take over: all as promised."""
    story = Story()
    story.hold(ANNE, 0, "a")
    story.refuse(BEN, 2, "seat_held_by_another_user")
    story.basket(ANNE, 4, story.seen("a", 0, now=4))
    story.extend(ANNE, 6, "a", held_since=0)
    story.call(Op.MAP, BEN, 20, statuses="10")
    story.release(ANNE, 30, "a")
    story.basket(ANNE, 32)
    story.hold(BEN, 34, "b")
    story.hold(ANNE, 36, "c", ZONE, quantity=3, key="k", ended=37)
    story.hold(ANNE, 38, "c", ZONE, quantity=3, key="k", holds=(story.seen("c", 36, place=ZONE, quantity=3, now=38),))
    story.hold(ANNE, 97, "d")
    story.call(Op.MAP, BEN, 103, statuses="10")
    rows = row("a", ANNE, "cancelled"), row("b", BEN, "expired"), row("c", ANNE, "expired", ZONE, 3), row("d", ANNE)
    story.witness(110, *rows)
    story.history.final_maps = [("map", "10"), ("live map", "10")]
    assert check(story.history) == []


def test_two_holders_of_a_seat_are_reported() -> None:
    story = Story()
    story.hold(ANNE, 0, "a")
    story.hold(BEN, 2, "b")
    assert story.rules() == {Rule.DOUBLE_HOLD}


def test_two_requests_in_flight_can_not_both_win() -> None:
    """Their times overlap, and after the later answer both certainly hold the seat."""
    story = Story()
    story.hold(ANNE, 0, "a", ended=3)
    story.hold(BEN, 1, "b", ended=2)
    assert story.rules() == {Rule.DOUBLE_HOLD}


def test_a_hold_taken_over_before_its_end_is_reported() -> None:
    """A second early is early."""
    story = Story()
    story.hold(ANNE, 0, "a")
    story.hold(BEN, TTL_S - 3, "b", ended=TTL_S - 1)
    assert story.rules() == {Rule.DOUBLE_HOLD}


def test_a_hold_taken_over_at_its_end_is_not_reported() -> None:
    story = Story()
    story.hold(ANNE, 0, "a")
    story.hold(BEN, TTL_S, "b")
    assert story.rules() == set()


def test_an_extended_hold_taken_over_at_its_first_end_is_reported() -> None:
    story = Story()
    story.hold(ANNE, 0, "a")
    story.extend(ANNE, 2, "a", held_since=0)
    story.hold(BEN, TTL_S, "b")
    assert story.rules() == {Rule.DOUBLE_HOLD}


def test_a_release_without_an_answer_excuses_the_next_holder() -> None:
    story = Story()
    story.hold(ANNE, 0, "a")
    story.release(ANNE, 2, "a", status=0, effect="unknown")
    story.hold(BEN, 4, "b")
    assert story.rules() == set()


def test_a_hold_missing_from_the_basket_is_reported() -> None:
    story = Story()
    story.hold(ANNE, 0, "a")
    story.basket(ANNE, 10)
    assert story.rules() == {Rule.LOST_HOLD}


def test_a_hold_that_the_api_does_not_know_is_reported() -> None:
    story = Story()
    story.hold(ANNE, 0, "a")
    story.release(ANNE, 2, "a", status=404, error="hold_not_found", effect="none")
    assert story.rules() == {Rule.LOST_HOLD, Rule.UNEXPECTED_ANSWER}


def test_a_hold_missing_from_the_database_is_reported() -> None:
    story = Story()
    story.hold(ANNE, 0, "a")
    story.witness(10)
    assert story.rules() == {Rule.LOST_HOLD}


def test_a_hold_ended_early_in_the_database_is_reported() -> None:
    story = Story()
    story.hold(ANNE, 0, "a")
    story.witness(10, row("a", ANNE, "expired"))
    assert story.rules() == {Rule.LOST_HOLD}


def test_a_hold_that_changed_hands_is_reported() -> None:
    story = Story()
    story.hold(ANNE, 0, "a")
    story.witness(10, row("a", BEN))
    assert story.rules() == {Rule.LOST_HOLD}


def test_a_release_without_effect_is_reported() -> None:
    story = Story()
    story.hold(ANNE, 0, "a")
    story.release(ANNE, 2, "a")
    story.basket(ANNE, 5, story.seen("a", 0, now=5))
    assert story.rules() == {Rule.RELEASE_WITHOUT_EFFECT}


def test_a_released_hold_that_is_active_in_the_database_is_reported() -> None:
    story = Story()
    story.hold(ANNE, 0, "a")
    story.release(ANNE, 2, "a")
    story.witness(10, row("a", ANNE))
    assert story.rules() == {Rule.RELEASE_WITHOUT_EFFECT}


def test_a_released_seat_that_nobody_can_have_is_reported() -> None:
    story = Story()
    story.hold(ANNE, 0, "a")
    story.release(ANNE, 2, "a")
    story.refuse(BEN, 10, "seat_held_by_another_user")
    assert story.rules() == {Rule.PHANTOM_REFUSAL}


def test_a_refusal_within_a_second_of_the_release_is_not_reported() -> None:
    """A process may answer from memory for a second."""
    story = Story()
    story.hold(ANNE, 0, "a")
    story.release(ANNE, 2, "a")
    story.refuse(BEN, 3.9, "seat_held_by_another_user")
    assert story.rules() == set()


def test_a_remembered_refusal_is_judged_by_its_first_request() -> None:
    story = Story()
    story.hold(ANNE, 0, "a")
    story.refuse(BEN, 1, "seat_held_by_another_user", key="k")
    story.release(ANNE, 3, "a")
    story.refuse(BEN, 30, "seat_held_by_another_user", key="k")
    assert story.rules() == set()


def test_an_expired_hold_still_in_the_basket_is_reported() -> None:
    story = Story()
    story.hold(ANNE, 0, "a")
    story.basket(ANNE, TTL_S + 10, story.seen("a", 0, now=TTL_S))
    assert story.rules() == {Rule.OUTLIVED}


def test_an_oversold_zone_is_reported() -> None:
    story = Story()
    story.hold(ANNE, 0, "a", ZONE, quantity=3)
    story.hold(BEN, 2, "b", ZONE, quantity=CAPACITY - 3)
    assert story.rules() == set()
    story.hold(BEN, 4, "c", ZONE, quantity=1)
    assert story.rules() == {Rule.OVERSOLD}


def test_a_zone_refused_with_room_left_is_reported() -> None:
    story = Story()
    story.hold(ANNE, 0, "a", ZONE, quantity=3)
    story.refuse(BEN, 2, "block_at_capacity", ZONE, quantity=2)
    assert story.rules() == set()
    story.refuse(BEN, 4, "block_at_capacity", ZONE, quantity=1)
    assert story.rules() == {Rule.PHANTOM_REFUSAL}


def test_a_seat_held_while_blocked_is_reported() -> None:
    story = Story()
    story.call(Op.BLOCK, "staff", 0, places=(SEATS[0],))
    story.refuse(BEN, 3, "seat_not_available")
    assert story.rules() == set()
    story.hold(ANNE, 5, "a")
    assert story.rules() == {Rule.BLOCKED_SEAT_HELD}


def test_a_block_ends_a_hold() -> None:
    story = Story()
    story.hold(ANNE, 0, "a")
    story.call(Op.BLOCK, "staff", 2, places=(SEATS[0],))
    story.basket(ANNE, 4)
    assert story.rules() == set()


def test_a_clock_step_excuses_late_ends_but_no_early_ones() -> None:
    """While PostgreSQL's clock is doubted, holds may outlive their time but must not be taken over."""
    story = Story()
    story.history.faults = [clock_step(+3600, began=TTL_S - 10, lifted=TTL_S + 10)]
    story.hold(ANNE, 0, "a")
    story.refuse(BEN, TTL_S + 12, "seat_held_by_another_user")
    assert story.rules() == set()
    story.hold(BEN, TTL_S - 5, "b")
    assert story.rules() == {Rule.DOUBLE_HOLD}


def test_holds_expire_as_usual_when_the_clock_is_right_again() -> None:
    story = Story()
    story.history.faults = [clock_step(+3600, began=10, lifted=20)]
    story.hold(ANNE, 0, "a")
    story.refuse(BEN, TTL_S + 10, "seat_held_by_another_user")
    assert story.rules() == {Rule.PHANTOM_REFUSAL}


def test_nothing_expires_for_as_long_as_a_clock_was_behind() -> None:
    story = Story()
    story.history.faults = [clock_step(-120, began=10, lifted=20)]
    story.hold(ANNE, 0, "a")
    story.refuse(BEN, 140, "seat_held_by_another_user")
    assert story.rules() == set()
    story.refuse(BEN, 160, "seat_held_by_another_user")
    assert story.rules() == {Rule.PHANTOM_REFUSAL}
