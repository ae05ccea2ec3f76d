"""Origins as values: from what a stranger sent to an id that says nothing."""

from dataclasses import replace
from datetime import date
from uuid import UUID

import pytest

from voelgoed.ids import OrganizationId
from voelgoed.journal.model import Origin, Position

HERE = OrganizationId(UUID(int=1))
DAY = date(2026, 8, 1)
ORIGIN = Origin(session_id=UUID(int=7), ip="192.0.2.1", user_agent="Firefox")


@pytest.mark.parametrize(
    ("peer", "kept"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("2001:DB8:0::1", "2001:db8::1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("fe80::1%eth0", "fe80::1"),
        ("testclient", None),
        ("192.0.2.1/24", None),
        ("", None),
        (None, None),
    ],
)
def test_an_address_has_one_spelling_and_anything_else_is_left_out(peer: str | None, kept: str | None) -> None:
    """What a socket or a header calls the caller may be anything."""
    assert Origin.seen(session_id=None, peer=peer, user_agent=None).ip == kept


@pytest.mark.parametrize(
    ("sent", "kept"),
    [("Firefox\x1b[31m\x00\n", "Firefox[31m"), ("x" * 401, "x" * 400), ("\x00\ud800", None), ("", None), (None, None)],
)
def test_a_browser_is_cut_to_what_can_be_printed_and_kept(sent: str | None, kept: str | None) -> None:
    """The database takes no NUL and no half character, and a log reader no escape."""
    assert Origin.seen(session_id=None, peer=None, user_agent=sent).user_agent == kept


def test_the_same_origin_has_the_same_id_on_the_same_day() -> None:
    """So it is written once, by whichever process meets it; every part of it counts."""
    made = ORIGIN.id_on(HERE, DAY)
    assert made == replace(ORIGIN).id_on(HERE, DAY)
    assert made.version == 8
    others = {
        ORIGIN.id_on(OrganizationId(UUID(int=2)), DAY),
        ORIGIN.id_on(HERE, date(2026, 8, 2)),
        replace(ORIGIN, session_id=None).id_on(HERE, DAY),
        replace(ORIGIN, ip="192.0.2.2").id_on(HERE, DAY),
        replace(ORIGIN, user_agent=None).id_on(HERE, DAY),
    }
    assert len(others | {made}) == 6


def test_positions_are_ordered_by_transaction_then_by_number() -> None:
    """A later transaction lies behind, whatever its facts' numbers are."""
    assert Position(xid=1, seq=90) < Position(xid=2, seq=3) < Position(xid=2, seq=4)
