"""Reactions: what must follow from a fact follows, in order, at least once; one that fails does not stop the rest."""

import asyncio
import itertools
from collections.abc import Callable
from uuid import UUID

import pytest

from tests.make.accounts import make_organization
from voelgoed.db import Conn, Database
from voelgoed.ids import OrganizationId
from voelgoed.jobs import reactions as module
from voelgoed.jobs.queue import enqueue
from voelgoed.jobs.reactions import FAILURES_MAX, Reaction, Reactor
from voelgoed.journal.model import Fact, RecordedFact
from voelgoed.journal.recording import record

KIND, OTHER_KIND = "made_in_a_test", "made_beside_a_test"
numbers = itertools.count()


class Heard:
    """A reaction that remembers the facts of one organization."""

    def __init__(self, organization_id: UUID) -> None:
        self._organization_id = organization_id
        self.facts: list[object] = []
        self.fails_on: Callable[[object], bool] = lambda _number: False

    async def react(self, conn: Conn, fact: RecordedFact) -> None:
        if fact.organization_id != self._organization_id:
            return
        self.facts.append(fact.data["number"])
        if self.fails_on(fact.data["number"]):
            await conn.execute("select 1 / 0")


async def tell(db: Database, organization_id: OrganizationId, *told: int, kind: str = KIND) -> None:
    async with db.transaction(organization_id) as conn:
        for number in told:
            await record(conn, Fact(kind=kind, organization_id=organization_id, data={"number": number}))


def reactor(db: Database, *heard: Heard) -> Reactor:
    """A reactor of the test's own, with a place of its own."""
    wanted = [Reaction(f"test_{number}", each.react) for number, each in enumerate(heard)]
    return Reactor(db, {KIND: wanted} if wanted else {}, reader=f"test_{next(numbers)}_{id(heard)}")


async def place(db: Database, reader: str) -> tuple[int, int]:
    async with db.system_transaction() as conn:
        row = await conn.fetchrow("select xid, seq from journal_positions where reader = $1", reader)
    assert row is not None
    return row["xid"], row["seq"]


async def newest(db: Database) -> tuple[int, int]:
    async with db.system_transaction() as conn:
        row = await conn.fetchrow("select xid, seq from journal order by xid desc, seq desc limit 1")
    assert row is not None
    return row["xid"], row["seq"]


@pytest.fixture
async def organization_id(jobs_db: Database) -> OrganizationId:
    return (await make_organization(jobs_db)).id


async def test_every_fact_of_the_kind_is_followed_once_in_order(
    jobs_db: Database, organization_id: OrganizationId
) -> None:
    """Facts of other kinds pass by; a second tick repeats nothing; what comes later follows later."""
    heard = Heard(organization_id)
    follower = reactor(jobs_db, heard)
    await tell(jobs_db, organization_id, 1, 2)
    await tell(jobs_db, organization_id, 3, kind=OTHER_KIND)
    await tell(jobs_db, organization_id, 4)
    await follower.tick()
    await follower.tick()
    assert heard.facts == [1, 2, 4]
    await tell(jobs_db, organization_id, 5)
    await follower.tick()
    assert heard.facts == [1, 2, 4, 5]


async def test_with_nothing_to_follow_the_place_still_moves(jobs_db: Database, organization_id: OrganizationId) -> None:
    """An empty registry passes every fact, so that a reaction added later does not begin with the whole past."""
    follower = reactor(jobs_db)
    await tell(jobs_db, organization_id, 1)
    await follower.tick()
    assert await place(jobs_db, follower.reader) == await newest(jobs_db)


async def test_more_than_a_batch_is_followed_in_one_tick(
    jobs_db: Database, organization_id: OrganizationId, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Batches follow each other without a pause, up to a limit per tick."""
    heard = Heard(organization_id)
    follower = reactor(jobs_db, heard)
    await follower.tick()
    monkeypatch.setattr(module, "FACTS_PER_BATCH", 5)
    monkeypatch.setattr(module, "BATCHES_PER_TICK", 3)
    await tell(jobs_db, organization_id, *range(22))
    await follower.tick()
    assert heard.facts == list(range(15))
    await follower.tick()
    assert heard.facts == list(range(22))


async def test_a_reaction_and_its_place_stand_or_fall_together(
    jobs_db: Database, organization_id: OrganizationId
) -> None:
    """A job enqueued by a reaction is there once, although the first try failed after it was enqueued."""
    tries = 0

    async def react(conn: Conn, fact: RecordedFact) -> None:
        nonlocal tries
        if fact.organization_id == organization_id:
            await enqueue(conn, "purge_sessions", {"number": fact.data["number"]})
            tries += 1
            if tries == 1:
                raise ValueError("after the job was enqueued")

    follower = Reactor(jobs_db, {KIND: [Reaction("enqueues", react)]}, reader=f"test_{next(numbers)}")
    await tell(jobs_db, organization_id, 7)
    await follower.tick()
    await follower.tick()
    async with jobs_db.system_transaction() as conn:
        assert [row["payload"] for row in await conn.fetch("select payload from pgqueuer")] == [b'{"number":7}']
    assert tries == 2


async def test_a_failing_reaction_is_tried_again_and_then_set_aside(
    jobs_db: Database, organization_id: OrganizationId
) -> None:
    """Once per tick, ten times; what stands behind it waits, then goes on; the fact's other reaction is done."""
    bad, good = Heard(organization_id), Heard(organization_id)
    bad.fails_on = lambda number: number == 2
    follower = reactor(jobs_db, good, bad)
    await tell(jobs_db, organization_id, 1, 2, 3)
    for _ in range(FAILURES_MAX - 1):
        await follower.tick()
    assert bad.facts == [1] + [2] * 9
    await follower.tick()
    assert bad.facts == [1] + [2] * 10
    await follower.tick()
    assert bad.facts == [1] + [2] * 10 + [3]
    assert good.facts == [1] + [2] * 11 + [3]
    assert await place(jobs_db, follower.reader) == await newest(jobs_db)


async def test_a_reaction_that_recovers_is_not_lost(jobs_db: Database, organization_id: OrganizationId) -> None:
    """Nine failures and a success: nothing was passed over."""
    heard = Heard(organization_id)
    heard.fails_on = lambda _number: len(heard.facts) < FAILURES_MAX
    follower = reactor(jobs_db, heard)
    await tell(jobs_db, organization_id, 1, 2)
    for _ in range(FAILURES_MAX):
        await follower.tick()
    assert heard.facts == [1] * 10 + [2]


async def test_a_reaction_that_hangs_is_ended(
    jobs_db: Database, organization_id: OrganizationId, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It counts as failed, and its transaction does not hold up the readers of the journal."""
    monkeypatch.setattr(module, "REACTION_TIMEOUT_S", 0.05)
    monkeypatch.setattr(module, "FAILURES_MAX", 1)
    hung: list[object] = []

    async def hang(conn: Conn, fact: RecordedFact) -> None:
        if fact.organization_id == organization_id:
            hung.append(fact.data["number"])
            await conn.execute("select pg_sleep(60)")

    follower = Reactor(jobs_db, {KIND: [Reaction("hangs", hang)]}, reader=f"test_{next(numbers)}")
    await tell(jobs_db, organization_id, 1, 2)
    for _ in range(3):
        await asyncio.wait_for(follower.tick(), 20)
    assert hung == [1, 2]
    assert await place(jobs_db, follower.reader) == await newest(jobs_db)


async def test_one_process_at_a_time_has_the_place(jobs_db: Database, organization_id: OrganizationId) -> None:
    """While one is at a fact, another's tick returns at once and follows nothing."""
    begun, go = asyncio.Event(), asyncio.Event()
    first_heard, second_heard = list[object](), Heard(organization_id)

    async def slow(_conn: Conn, fact: RecordedFact) -> None:
        if fact.organization_id == organization_id:
            first_heard.append(fact.data["number"])
            begun.set()
            await go.wait()

    name = f"test_{next(numbers)}"
    first = Reactor(jobs_db, {KIND: [Reaction("slow", slow)]}, reader=name)
    second = Reactor(jobs_db, {KIND: [Reaction("quick", second_heard.react)]}, reader=name)
    await first.tick()
    await tell(jobs_db, organization_id, 1)
    at_work = asyncio.create_task(first.tick())
    await asyncio.wait_for(begun.wait(), 20)
    await second.tick()
    assert second_heard.facts == []
    go.set()
    await at_work
    await second.tick()
    assert (first_heard, second_heard.facts) == ([1], [])
