"""The checker reports planted violations of keys, extensions, maps and what the database holds in the end."""

from dataclasses import replace

from tests.blackbox.checker import check
from tests.blackbox.history import Fault, FaultKind, Op
from tests.blackbox.story import ANNE, BEN, SEATS, TTL_S, ZONE, Story, row
from tests.blackbox.violations import Rule


def test_an_effect_after_effect_none_is_reported() -> None:
    """The refusal names its request, and the audit log has a hold of that request."""
    story = Story()
    story.refuse(ANNE, 0, "seat_no_longer_available", request_id="r")
    story.witness(10, row("x", ANNE), request_ids=("r",))
    assert story.rules() == {Rule.EFFECT_AFTER_NONE, Rule.UNEXPLAINED_HOLD}


def test_a_hold_that_nobody_asked_for_is_reported() -> None:
    story = Story()
    story.refuse(ANNE, 0, "busy", status=503, refused=())
    story.witness(10, row("x", ANNE))
    assert story.rules() == {Rule.UNEXPLAINED_HOLD}


def test_a_request_without_an_answer_explains_one_hold() -> None:
    story = Story()
    story.call(Op.RESERVE_SEAT, ANNE, 0, status=0, effect="unknown", places=(SEATS[0],))
    story.witness(10, row("x", ANNE))
    assert story.rules() == set()
    story.witness(10, row("x", ANNE), row("y", ANNE, "expired"))
    assert story.rules() == {Rule.UNEXPLAINED_HOLD}


def test_repeats_with_one_key_explain_one_hold() -> None:
    story = Story()
    for at in (0, 5):
        story.call(Op.RESERVE_SEAT, ANNE, at, status=0, effect="unknown", places=(SEATS[0],), key="k")
    story.witness(10, row("x", ANNE), row("y", ANNE, "expired"))
    assert story.rules() == {Rule.UNEXPLAINED_HOLD}


def test_a_key_with_two_effects_is_reported() -> None:
    story = Story()
    story.hold(ANNE, 0, "a", ZONE, key="k")
    story.hold(ANNE, 2, "b", ZONE, key="k")
    assert story.rules() == {Rule.KEY_WITH_TWO_ANSWERS}


def test_a_key_whose_refusal_was_forgotten_is_reported() -> None:
    story = Story()
    story.hold(BEN, 0, "b")
    story.refuse(ANNE, 2, "seat_held_by_another_user", key="k")
    story.release(BEN, 4, "b")
    story.hold(ANNE, 6, "a", key="k")
    assert story.rules() == {Rule.KEY_WITH_TWO_ANSWERS}


def test_busy_and_no_answer_are_no_answers_of_a_key() -> None:
    story = Story()
    story.refuse(ANNE, 0, "busy", key="k", status=503, refused=())
    story.call(Op.RESERVE_SEAT, ANNE, 2, status=0, effect="unknown", places=(SEATS[0],), key="k")
    story.hold(ANNE, 4, "a", key="k")
    assert story.rules() == set()


def test_a_new_hold_with_another_length_is_reported() -> None:
    """Two seconds less may be rounding, and one more cannot be."""
    story = Story()
    story.hold(ANNE, 0, "a", holds=(replace(story.seen("a", 0), left_s=TTL_S - 3),))
    story.hold(ANNE, 2, "b", SEATS[1], holds=(replace(story.seen("b", 2, place=SEATS[1]), left_s=TTL_S),))
    assert story.rules() == set()
    story.hold(BEN, 4, "c", ZONE, holds=(replace(story.seen("c", 4, place=ZONE), left_s=TTL_S + 1),))
    assert story.rules() == {Rule.COUNTDOWN}


def test_a_new_hold_that_is_not_held_is_reported() -> None:
    story = Story()
    story.hold(ANNE, 0, "a", holds=(replace(story.seen("a", 0), is_held=False),))
    assert story.rules() == {Rule.COUNTDOWN}


def test_an_extension_by_anything_but_five_minutes_is_reported() -> None:
    story = Story()
    story.hold(ANNE, 0, "a")
    story.extend(ANNE, 2, "a", held_since=0, later_s=299)
    assert story.rules() == {Rule.EXTENSION}


def test_a_second_extension_is_reported() -> None:
    story = Story()
    story.hold(ANNE, 0, "a")
    story.extend(ANNE, 2, "a", held_since=0)
    story.extend(ANNE, 4, "a", held_since=0)
    assert story.rules() == set()
    story.extend(ANNE, 6, "a", held_since=0, later_s=600)
    assert story.rules() == {Rule.EXTENSION}


def test_an_extension_that_disappears_is_reported() -> None:
    story = Story()
    story.hold(ANNE, 0, "a")
    story.extend(ANNE, 2, "a", held_since=0)
    story.basket(ANNE, 5, story.seen("a", 0, now=5))
    assert story.rules() == {Rule.EXTENSION}


def test_an_extension_after_the_end_is_reported() -> None:
    story = Story()
    story.hold(ANNE, 0, "a")
    story.extend(ANNE, TTL_S + 10, "a", held_since=0)
    assert story.rules() == {Rule.EXTENSION}


def test_a_map_that_shows_an_ended_hold_is_reported() -> None:
    """Also while the worker is frozen: web processes have to see for themselves that a hold expired."""
    story = Story()
    story.hold(ANNE, 0, "a")
    story.history.faults = [Fault(kind=FaultKind.FREEZE_WORKER, detail="", began=50, lifted=90, recovered=90)]
    story.call(Op.MAP, BEN, TTL_S + 5, statuses="10")
    assert story.rules() == set()
    story.call(Op.MAP, BEN, TTL_S + 8, statuses="10")
    assert story.rules() == {Rule.STALE_MAP}


def test_a_map_may_be_old_while_a_writing_transaction_is_frozen() -> None:
    story = Story()
    story.hold(ANNE, 0, "a")
    frozen = Fault(kind=FaultKind.FREEZE_WORKER, detail="", began=50, lifted=90, recovered=90, is_in_transaction=True)
    story.history.faults = [frozen]
    story.call(Op.MAP, BEN, TTL_S + 20, statuses="10")
    assert story.rules() == set()


def test_a_map_that_misses_a_hold_is_reported() -> None:
    story = Story()
    story.hold(ANNE, 0, "a")
    story.call(Op.MAP, BEN, 5, statuses="00")
    assert story.rules() == set()
    story.call(Op.MAP, BEN, 7, statuses="00")
    assert story.rules() == {Rule.STALE_MAP}


def test_maps_that_differ_in_the_end_are_reported() -> None:
    story = Story()
    story.hold(ANNE, 0, "a")
    story.witness(10, row("a", ANNE))
    for source in ("map", "live map"):
        story.history.final_maps = [(source, "00")]
        assert story.rules() == {Rule.DISAGREEMENT}


def test_a_live_map_that_goes_back_is_reported() -> None:
    story = Story()
    story.basket(ANNE, 0)
    story.history.stream_errors = ["back"]
    assert story.rules() == {Rule.STREAM_WENT_BACK}


def test_an_internal_error_is_reported() -> None:
    story = Story()
    story.call(Op.RESERVE_SEAT, ANNE, 0, status=500, error="internal_error", effect="unknown", places=(SEATS[0],))
    assert story.rules() == {Rule.UNEXPECTED_ANSWER}


def test_an_open_outcome_while_nothing_can_be_written_is_reported() -> None:
    story = Story()
    story.history.faults = [Fault(kind=FaultKind.READ_ONLY, detail="", began=0, lifted=20, recovered=21)]
    story.call(Op.RELEASE, ANNE, 4, hold_id="a", status=503, error="busy", effect="none")
    assert story.rules() == set()
    story.call(Op.RELEASE, ANNE, 6, hold_id="a", status=503, error="outcome_unknown", effect="unknown")
    assert story.rules() == {Rule.UNEXPECTED_ANSWER}


def test_readiness_while_nothing_can_be_written_is_reported() -> None:
    story = Story()
    story.history.faults = [Fault(kind=FaultKind.READ_ONLY, detail="", began=0, lifted=20, recovered=21)]
    story.call(Op.READY, BEN, 3.4)
    assert story.rules() == set()
    story.call(Op.READY, BEN, 3.5)
    assert story.rules() == {Rule.READINESS}


def test_a_product_that_stays_down_is_reported() -> None:
    story = Story()
    story.history.faults = [Fault(kind=FaultKind.KILL_POSTGRES, detail="", began=0)]
    story.history.collapse = "PostgreSQL keeps dying"
    assert story.rules() == {Rule.NO_RECOVERY}


def test_contradictions_within_the_database_are_reported() -> None:
    story = Story()
    story.hold(ANNE, 0, "a")
    story.witness(10, row("a", ANNE))
    assert story.history.witness
    story.history.witness.seat_holds.clear()
    story.history.witness.zone_held[ZONE] = 2
    assert [violation.rule for violation in check(story.history)] == [Rule.DISAGREEMENT] * 2
