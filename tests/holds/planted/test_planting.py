"""The tools that plant bugs: they reach what they mean, whatever it looks like, and say so when they do not."""

import pytest

from tests.conftest import TEMPLATE
from tests.holds.planted.planting import NotPlanted, edit, edited, shadow, wrap, write
from tests.make.races import connect_owner, database_alone
from voelgoed.config import Settings
from voelgoed.embedded import Embedded

TEXT = "select a\n  from t -- from t where b\n where B  <=  'x  y' /* or\n c */ and c<>1"


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("where b <= 'x  y'", "where true", "where true /* or\n c */ and c<>1"),
        ("'x  y'and c", "'z' and c", "where B  <=  'z' and c<>1"),
        ("c <> 1", "false", "and false"),
        ("FROM  t\nWHERE b", "where b", "select a\n  where b  <="),
    ],
)
def test_edit_ignores_spaces_and_comments(old: str, new: str, expected: str) -> None:
    assert expected in edited(TEXT, old, new)


@pytest.mark.parametrize("old", ["from t where c", "'x y'", "or c", "b <", "a", "a a"])
def test_edit_must_apply_as_often_as_it_says(old: str) -> None:
    """Not at all, twice where once was meant, in a comment, in a string, half of an operator: each is an error."""
    with pytest.raises(NotPlanted):
        edited(f"{TEXT} + a a a" if old in ("a", "a a") else TEXT, old, "", times=None if old == "a a" else 1)


NOT_TO_BE_PLANTED = (
    wrap("no_such_function", "return {call};"),
    wrap("hold_release", "p_no_such_argument := null; return query select * from {call};"),
    edit("no_such_function", "a", "b"),
    edit("hold_release", "no such text", ""),
    edit("hold_release", "p_user", ""),
    edit("hold_release", "moment timestamptz;", "moment;"),
    write("no_such_table", "", when="true"),
    write("seat_holds", "", when="new.no_such_column"),
    shadow("no_such_function", "pg_advisory_xact_lock", "pg_advisory_xact_lock() returns void"),
    shadow("hold_release", "pg_advisory_xact_lock", "pg_advisory_xact_lock() returns void"),
)


async def test_bug_that_cannot_be_planted_is_an_error(servers: Embedded, settings: Settings, worker_id: str) -> None:
    """A function, an argument, a text, a table or a column that is not there; a text that is there twice."""
    name = f"unplanted_{worker_id}"
    async with database_alone(servers, settings, TEMPLATE, name), connect_owner(servers, name) as owner:
        for plant in NOT_TO_BE_PLANTED:
            with pytest.raises(NotPlanted):
                await plant(owner)
