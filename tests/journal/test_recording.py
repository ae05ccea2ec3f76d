"""Recording: facts and their origins, in the caller's transaction and nowhere else."""

from datetime import timedelta
from uuid import UUID

import pytest

from voelgoed.db import Database
from voelgoed.ids import OrganizationId, new_id
from voelgoed.journal.model import Fact, Origin, RecordedFact, SearchFilter
from voelgoed.journal.recording import record, record_all
from voelgoed.journal.search import search

ORIGIN = Origin(session_id=UUID(int=7), ip="2001:db8::1", user_agent="Firefox")


async def told(db: Database, organization_id: OrganizationId) -> list[RecordedFact]:
    """What stands in the journal, oldest first."""
    async with db.transaction(organization_id) as conn:
        page = await search(conn, organization_id, SearchFilter(), None, 200)
    return list(reversed(page.facts))


async def origins_count(db: Database, organization_id: OrganizationId) -> int:
    async with db.transaction(organization_id) as conn:
        count: int = await conn.fetchval("select count(*) from origins where organization_id = $1", organization_id)
        return count


async def test_a_fact_keeps_everything_it_was_told(db: Database) -> None:
    """Every field comes back as it went in, with a time and a place in the order."""
    fact = Fact(
        kind="seat_held",
        organization_id=OrganizationId(new_id()),
        event_id=new_id(),
        seat_id=new_id(),
        version=2,
        actor_id=new_id(),
        origin=ORIGIN,
        request_id=new_id(),
        reason="die kliënt het gevra",
        data={"status": {"from": "available", "to": "held"}, "count": 3, "is_test": False, "note": None},
    )
    async with db.transaction(fact.organization_id) as conn:
        await record(conn, fact)
        now = await conn.fetchval("select clock_timestamp()")
    (kept,) = await told(db, fact.organization_id)
    assert {name: getattr(kept, name) for name in Fact.__slots__} == {
        name: getattr(fact, name) for name in Fact.__slots__
    }
    assert timedelta(0) <= now - kept.recorded_at < timedelta(seconds=60)
    assert kept.xid > 0
    assert kept.seq > 0


async def test_many_facts_keep_their_order_and_share_their_origin(db: Database) -> None:
    """One statement, numbers in the order of the telling; an origin is written once, also by the next transaction."""
    here = OrganizationId(new_id())
    other = Origin(ip="192.0.2.1")
    facts = [
        Fact(kind="made_in_a_test", organization_id=here, version=n, origin=(None, ORIGIN, other)[n % 3])
        for n in range(300)
    ]
    for start in (0, 150):
        async with db.transaction(here) as conn:
            await record_all(conn, facts[start : start + 150])
    async with db.system_transaction() as conn:
        rows = await conn.fetch("select version from journal where organization_id = $1 order by xid, seq", here)
    assert [row["version"] for row in rows] == list(range(300))
    kept = {fact.version: fact.origin for fact in await told(db, here)}
    assert [kept[n] for n in (297, 298, 299)] == [None, ORIGIN, other]
    assert await origins_count(db, here) == 2


async def test_a_fact_falls_with_the_change_it_tells_of(db: Database) -> None:
    """Undone with its transaction, its origin as well."""
    here = OrganizationId(new_id())
    with pytest.raises(ZeroDivisionError):
        async with db.transaction(here) as conn:
            await record(conn, Fact(kind="made_in_a_test", organization_id=here, origin=ORIGIN))
            raise ZeroDivisionError
    assert await told(db, here) == []
    assert await origins_count(db, here) == 0


@pytest.mark.parametrize(
    "data",
    [
        {"password": "geheim"},
        {"Token": "x"},
        {"changes": {"secret": {"from": "a", "to": "b"}}},
        {"devices": [{"name": "hek 1"}, {"code": "1234"}]},
    ],
)
async def test_a_secret_is_never_recorded(db: Database, data: dict[str, object]) -> None:
    """What enters the journal can never be taken out, so the mistake stops the change."""
    here = OrganizationId(new_id())
    with pytest.raises(AssertionError, match="would keep for ever"):
        async with db.transaction(here) as conn:
            await record(conn, Fact(kind="made_in_a_test", organization_id=here, data=data))
    assert await told(db, here) == []


async def test_names_that_only_contain_such_a_word_are_fine(db: Database) -> None:
    """A seat code is printed on the seat."""
    here = OrganizationId(new_id())
    async with db.transaction(here) as conn:
        await record(
            conn, Fact(kind="made_in_a_test", organization_id=here, data={"seat_code": "A-1", "key_hint": "x"})
        )
    assert [fact.data for fact in await told(db, here)] == [{"seat_code": "A-1", "key_hint": "x"}]


async def test_facts_of_two_organizations_never_share_a_call(db: Database) -> None:
    """The first one's transaction may not write the second one's journal; too many at once are a mistake too."""
    here = OrganizationId(new_id())
    mixed = [Fact(kind="made_in_a_test", organization_id=OrganizationId(one)) for one in (here, new_id())]
    for facts in (mixed, [mixed[0]] * 1_001):
        with pytest.raises(AssertionError):
            async with db.transaction(here) as conn:
                await record_all(conn, facts)
    async with db.transaction(here) as conn:
        await record_all(conn, [])
    assert await told(db, here) == []
