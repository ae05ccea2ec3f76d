"""Lists in pages: every item once, in order, wherever the pages are cut; what is no cursor of ours is refused."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from hypothesis import given, settings, strategies as st

from voelgoed import paging
from voelgoed.ids import new_id
from voelgoed.paging import CursorInvalid, after_id, after_moment, encode, page_by_id, page_by_moment

Item = tuple[datetime, UUID]
NOW = datetime(2027, 3, 12, 19, 30, 0, 123_456, tzinfo=UTC)
moments = st.datetimes(
    datetime(1, 1, 1, tzinfo=UTC).replace(tzinfo=None),
    datetime(9999, 12, 31, 23, tzinfo=UTC).replace(tzinfo=None),
    timezones=st.just(UTC),
)


@settings(deadline=None)
@given(moment=moments, found=st.uuids())
def test_a_cursor_gives_back_what_went_in(moment: datetime, found: UUID) -> None:
    """To the microsecond, before 1970 as well."""
    page = page_by_moment([(moment, found), (moment, found)], 1, lambda item: item)
    assert page.next_cursor is not None
    assert after_moment(page.next_cursor) == (moment, found)


@settings(deadline=None)
@given(
    items=st.lists(st.tuples(st.integers(0, 3).map(lambda hour: NOW + timedelta(hours=hour)), st.uuids()), max_size=12),
    limit=st.integers(1, 13),
)
def test_leafing_through_shows_each_item_once(items: list[Item], limit: int) -> None:
    """Many at the same moment: the id decides, and no page repeats or leaves out."""
    whole = sorted(set(items))
    seen: list[Item] = []
    cursor: str | None = None
    for _ in range(len(whole) + 1):
        after = after_moment(cursor)
        rest = [item for item in whole if after is None or item > after]
        page = page_by_moment(rest[: limit + 1], limit, lambda item: item)
        assert len(page.items) <= limit
        seen += page.items
        cursor = page.next_cursor
        if cursor is None:
            break
    assert (seen, cursor) == (whole, None)


def test_no_cursor_is_the_beginning() -> None:
    """And a page that holds everything has none."""
    assert after_moment(None) is None
    assert after_id(None) is None
    assert page_by_moment([(NOW, new_id())], 1, lambda item: item).next_cursor is None
    empty: list[Item] = []
    assert page_by_moment(empty, 1, lambda item: item) == paging.Page([], None)


@pytest.mark.parametrize(
    "cursor",
    [
        "x",
        "!",
        "é",
        "====",
        encode(b""),
        encode(b"\0" * 16),
        encode(b"\0" * 23),
        encode(b"\0" * 25),
        encode(b"\x7f" + b"\xff" * 23),
        encode(b"\x80" + b"\x00" * 23),
    ],
)
def test_what_is_no_cursor_of_this_list_is_refused(cursor: str) -> None:
    """Broken, too short, too long, of another list, or a moment that no calendar has."""
    with pytest.raises(CursorInvalid):
        after_moment(cursor)


def test_the_cursor_of_one_list_is_none_of_the_other() -> None:
    """An id alone is no moment, nor the other way round."""
    by_id = page_by_id([new_id(), new_id()], 1, lambda found: found).next_cursor
    by_moment = page_by_moment([(NOW, new_id())] * 2, 1, lambda item: item).next_cursor
    assert by_id is not None
    assert by_moment is not None
    with pytest.raises(CursorInvalid):
        after_moment(by_id)
    with pytest.raises(CursorInvalid):
        after_id(by_moment)
