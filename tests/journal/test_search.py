"""The audit search: the right facts of the right organization, newest first, page by page."""

import base64
from datetime import UTC, datetime, timedelta, timezone

import msgspec
import pytest

from voelgoed.db import Conn, Database
from voelgoed.ids import OrganizationId, new_id
from voelgoed.journal.model import Fact, Origin, Page, SearchFilter
from voelgoed.journal.recording import record_all
from voelgoed.journal.search import read_cursor, search
from voelgoed.paging import CursorInvalid

START = datetime.now(UTC).replace(microsecond=0)
EAST, WEST = timezone(timedelta(hours=14)), timezone(timedelta(hours=-12))
EVENT, SEAT, ANNA, BEN = (new_id() for _ in range(4))


def place_cursor(*parts: object) -> str:
    return base64.urlsafe_b64encode(msgspec.msgpack.encode(parts)).rstrip(b"=").decode()


async def add_at(conn: Conn, organization_id: OrganizationId, kind: str, second: int) -> None:
    """A fact that was recorded at a second of the test's own choosing."""
    await conn.execute(
        "insert into journal (organization_id, kind, recorded_at) values ($1, $2, $3)",
        organization_id,
        kind,
        START + timedelta(seconds=second),
    )


@pytest.fixture
async def here(db: Database) -> OrganizationId:
    """An organization with four facts of each sort, and another one with the same."""
    first, second = OrganizationId(new_id()), OrganizationId(new_id())
    for organization_id in (first, second):
        async with db.transaction(organization_id) as conn:
            await record_all(
                conn,
                [
                    Fact(kind="member_added", organization_id=organization_id, actor_id=ANNA, data={"n": 1}),
                    Fact(kind="event_published", organization_id=organization_id, actor_id=BEN, event_id=EVENT),
                    Fact(
                        kind="seat_held",
                        organization_id=organization_id,
                        actor_id=ANNA,
                        event_id=EVENT,
                        seat_id=SEAT,
                        version=2,
                        origin=Origin(ip="192.0.2.1"),
                    ),
                    Fact(kind="seat_held", organization_id=organization_id, event_id=EVENT, seat_id=new_id()),
                ],
            )
    return first


@pytest.mark.parametrize(
    ("asked", "kinds"),
    [
        (SearchFilter(), ["seat_held", "seat_held", "event_published", "member_added"]),
        (SearchFilter(kinds=["member_added", "event_published"]), ["event_published", "member_added"]),
        (SearchFilter(kinds=["nothing_like_it"]), []),
        (SearchFilter(actor_id=ANNA), ["seat_held", "member_added"]),
        (SearchFilter(event_id=EVENT), ["seat_held", "seat_held", "event_published"]),
        (SearchFilter(event_id=EVENT, seat_id=SEAT), ["seat_held"]),
        (SearchFilter(seat_id=SEAT, actor_id=BEN), []),
        (SearchFilter(since=datetime(2000, 1, 1, tzinfo=UTC), actor_id=BEN), ["event_published"]),
        (SearchFilter(until=datetime(2000, 1, 1, tzinfo=UTC)), []),
        (SearchFilter(since=datetime.min.replace(tzinfo=EAST), actor_id=BEN), ["event_published"]),
        (SearchFilter(until=datetime.max.replace(tzinfo=WEST), actor_id=BEN), ["event_published"]),
    ],
)
async def test_each_condition_narrows(
    db: Database, here: OrganizationId, asked: SearchFilter, kinds: list[str]
) -> None:
    """Newest first, of one organization, and only what matches every condition."""
    async with db.transaction(here) as conn:
        page = await search(conn, here, asked, None, 200)
    assert [fact.kind for fact in page.facts] == kinds
    assert {fact.organization_id for fact in page.facts} <= {here}
    assert page.next_cursor is None


async def test_the_origin_is_told_with_the_fact(db: Database, here: OrganizationId) -> None:
    """Joined in where there is one."""
    async with db.transaction(here) as conn:
        page = await search(conn, here, SearchFilter(actor_id=ANNA), None, 200)
    assert [fact.origin for fact in page.facts] == [Origin(ip="192.0.2.1"), None]


async def test_another_organization_finds_nothing(db: Database, here: OrganizationId) -> None:
    """Not even by asking for it by name: the transaction is somebody else's."""
    async with db.transaction(OrganizationId(new_id())) as conn:
        assert await search(conn, here, SearchFilter(), None, 200) == Page(facts=[], next_cursor=None)


async def test_since_is_included_and_until_is_not(db: Database) -> None:
    """Two neighbouring spans tell every fact once."""
    here = OrganizationId(new_id())
    middle = START + timedelta(seconds=1)
    async with db.transaction(here) as conn:
        for second in range(3):
            await add_at(conn, here, f"at_{second}", second)
        before = await search(conn, here, SearchFilter(until=middle), None, 200)
        after = await search(conn, here, SearchFilter(since=middle), None, 200)
    assert [fact.kind for fact in before.facts] == ["at_0"]
    assert [fact.kind for fact in after.facts] == ["at_2", "at_1"]


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 200])
async def test_pages_tell_every_fact_once(db: Database, limit: int) -> None:
    """Also those of the same moment, and across months; what is recorded meanwhile shifts nothing."""
    here = OrganizationId(new_id())
    seen: list[str] = []
    async with db.transaction(here) as conn:
        for n, second in enumerate([0, 0, 0, 1, 1, 31 * 86400, 31 * 86400]):
            await add_at(conn, here, f"fact_{n}", second)
    cursor: str | None = None
    for _ in range(8):
        async with db.transaction(here) as conn:
            page = await search(conn, here, SearchFilter(), cursor, limit)
            await add_at(conn, here, "came_later", 40 * 86400)
        assert len(page.facts) <= limit
        seen += [fact.kind for fact in page.facts]
        cursor = page.next_cursor
        if cursor is None:
            break
    assert seen == [f"fact_{n}" for n in reversed(range(7))]


@pytest.mark.parametrize(
    "cursor",
    [
        "",
        "x",
        "é",
        "not base64!",
        "A" * 10_000,
        "AAAA",
        place_cursor(1),
        place_cursor(1, "1"),
        place_cursor(-1, 1),
        place_cursor(2**63, 1),
        place_cursor(1, -1),
        place_cursor(1, 2**63),
    ],
)
async def test_a_cursor_from_elsewhere_is_refused(db: Database, cursor: str) -> None:
    """With a code of its own, before the database is asked."""
    here = OrganizationId(new_id())
    with pytest.raises(CursorInvalid) as refused:
        async with db.transaction(here) as conn:
            await search(conn, here, SearchFilter(), cursor, 10)
    assert refused.value.code == "cursor_invalid"


def test_a_cursor_says_where_it_is() -> None:
    """The made-up ones above fail for what is wrong with them, not for how they are packed."""
    assert read_cursor(place_cursor(1_500_000, 5)) == (datetime(1970, 1, 1, 0, 0, 1, 500_000, tzinfo=UTC), 5)


@pytest.mark.parametrize("limit", [0, 201])
async def test_a_page_has_a_limit(db: Database, limit: int) -> None:
    """The edge checks what is asked for; beyond it is our mistake."""
    here = OrganizationId(new_id())
    with pytest.raises(AssertionError):
        async with db.transaction(here) as conn:
            await search(conn, here, SearchFilter(), None, limit)
