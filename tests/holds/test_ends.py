"""Holds by key, the next end first: only those that have ended are found, however often the others changed."""

from typing import NamedTuple

import pytest
from hypothesis import given, strategies as st

from voelgoed.holds.ends import FOREVER_MS, STALE_MAX, Ends


class Hold(NamedTuple):
    until_ms: int


@pytest.mark.parametrize(("now_ms", "due"), [(99, []), (100, [1]), (101, [1])])
def test_a_hold_is_due_from_its_end_on(now_ms: int, due: list[int]) -> None:
    ends = Ends([(1, Hold(100)), (2, Hold(200))])
    assert [key for key, _ in ends.take_due(now_ms)] == due
    assert set(ends) == {1, 2} - set(due)


def test_a_hold_that_was_extended_is_due_at_its_new_end_only() -> None:
    ends = Ends([(1, Hold(100))])
    ends[1] = Hold(150)
    assert ends.take_due(149) == []
    assert ends.take_due(150) == [(1, Hold(150))]


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("set"), st.integers(0, 5), st.integers(0, 50)),
            st.tuples(st.just("pop"), st.integers(0, 5), st.just(0)),
            st.tuples(st.just("due"), st.just(0), st.integers(0, 50)),
        ),
        max_size=60,
    )
)
def test_what_is_due_is_what_a_search_through_all_finds(steps: list[tuple[str, int, int]]) -> None:
    """Whatever was replaced or removed before; and the next end is never later than that of any hold."""
    ends: Ends[int, Hold] = Ends()
    plain: dict[int, Hold] = {}
    for step, key, at in steps:
        if step == "set":
            ends[key] = plain[key] = Hold(at)
        elif step == "pop":
            assert ends.pop(key, None) == plain.pop(key, None)
        else:
            due = {one for one, hold in plain.items() if hold.until_ms <= at}
            assert {one for one, _ in ends.take_due(at)} == due
            plain = {one: hold for one, hold in plain.items() if one not in due}
        assert ends == plain
        assert ends.next_ms <= min((hold.until_ms for hold in plain.values()), default=FOREVER_MS)


def test_stale_entries_take_no_more_room_than_the_holds() -> None:
    """A hold that is replaced again and again, as by a seat that is held and released all day."""
    ends: Ends[int, Hold] = Ends()
    for number in range(10_000):
        ends[number % 3] = Hold(number)
        assert len(ends._heap) <= 2 * len(ends) + STALE_MAX
    assert len(ends.take_due(10_000)) == 3
    assert ends._heap == []
