"""Jobs and reactions while PostgreSQL refuses work: they wait for it, and none is given up because of it."""

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import cast
from uuid import UUID

import pytest
from pgqueuer.core.executors import EntrypointExecutorParameters
from pgqueuer.domain.errors import RetryRequested
from pgqueuer.domain.models import Context, Job as QueuedJob

from tests.jobs.conftest import JobsDatabase
from tests.jobs.marking import PACE, as_jobs, no_services, waiting
from tests.jobs.test_reactions import Heard, reactor, tell
from tests.jobs.test_runner import WAIT_S, put, runs, until_empty
from tests.make.accounts import make_organization
from tests.make.unwritable import Unwritable
from voelgoed.db import Conn, Database
from voelgoed.embedded import Embedded
from voelgoed.errors import Busy, Unavailable
from voelgoed.jobs import runner as module
from voelgoed.jobs.queue import Job
from voelgoed.jobs.reactions import FAILURES_MAX
from voelgoed.jobs.runner import JobGivenUp, Runner
from voelgoed.journal.model import RecordedFact
from voelgoed.wiring import Services

TRIES = 3
REFUSE = "do $$ begin raise exception 'refused' using errcode = '{}'; end $$"


class Refused(Heard):
    """A reaction that PostgreSQL refuses with a SQLSTATE so many times."""

    def __init__(self, organization_id: UUID, sqlstate: str, times: int) -> None:
        super().__init__(organization_id)
        self._sqlstate, self._times = sqlstate, times

    async def react(self, conn: Conn, fact: RecordedFact) -> None:
        before = len(self.facts)
        await super().react(conn, fact)
        if before < len(self.facts) <= self._times:
            await conn.execute(REFUSE.format(self._sqlstate))


@pytest.mark.parametrize("times", [FAILURES_MAX - 1, FAILURES_MAX, FAILURES_MAX + 1])
async def test_reaction_waits_for_the_database(jobs_db: Database, times: int) -> None:
    """A full disk is no failure of the reaction: it follows when there is room, however long that takes."""
    place = await make_organization(jobs_db)
    heard = Refused(place.id, "53100", times)
    follower = reactor(jobs_db, heard)
    await tell(jobs_db, place.id, 1, 2)
    for _ in range(times):
        with pytest.raises(Unavailable):
            await follower.tick()
    await follower.tick()
    assert heard.facts == [1] * (times + 1) + [2]


async def test_reaction_that_is_always_too_slow_is_given_up(jobs_db: Database) -> None:
    """A statement timeout is the reaction's own: those behind it must not wait for ever."""
    place = await make_organization(jobs_db)
    heard = Refused(place.id, "57014", FAILURES_MAX)
    follower = reactor(jobs_db, heard)
    await tell(jobs_db, place.id, 1, 2)
    for _ in range(FAILURES_MAX + 1):
        await follower.tick()
    assert heard.facts == [1] * FAILURES_MAX + [2]


async def test_reactions_go_on_after_a_read_only_spell(servers: Embedded, jobs_db: Database) -> None:
    """Each tick fails while it lasts, and the next one after it follows everything."""
    place = await make_organization(jobs_db)
    heard = Heard(place.id)
    follower = reactor(jobs_db, heard)
    await follower.tick()
    await tell(jobs_db, place.id, 1, 2)
    async with Unwritable(servers, Path()).read_only():
        for _ in range(FAILURES_MAX + 1):
            with pytest.raises(Unavailable):
                await follower.tick()
    await follower.tick()
    assert heard.facts == [1, 2]


def executor_of(failure: Exception) -> module._Executor:
    """What runs a job that fails like this, with three tries."""

    async def work(_services: Services, _payload: bytes) -> None:
        raise failure

    return module._Executor(
        EntrypointExecutorParameters(concurrency_limit=0, func=module._not_called),
        Job(name="work", run=work, tries_max=TRIES),
        no_services(),
        asyncio.Event(),
    )


async def retry_s(failure: Exception, attempts: int) -> float:
    """Seconds until the next try after so many before."""
    queued = cast(QueuedJob, SimpleNamespace(payload=None, attempts=attempts))
    with pytest.raises(RetryRequested) as requested:
        await executor_of(failure).execute(queued, cast(Context, None))
    return requested.value.delay.total_seconds()


async def test_job_is_tried_until_the_database_is_back() -> None:
    """Its tries are not counted while PostgreSQL cannot do the work; other failures have a last try."""
    assert [await retry_s(Unavailable(), attempts) for attempts in (0, TRIES - 2, TRIES - 1, TRIES)] == [1, 2, 4, 8]
    assert [await retry_s(Busy(), attempts) for attempts in (0, TRIES - 2)] == [1, 2]
    queued = cast(QueuedJob, SimpleNamespace(payload=None, attempts=TRIES - 1))
    with pytest.raises(JobGivenUp):
        await executor_of(Busy()).execute(queued, cast(Context, None))


async def test_pause_before_the_next_try_is_bounded() -> None:
    """Ten seconds, also after tries beyond number."""
    assert [await retry_s(Unavailable(), attempts) for attempts in (3, 4, 5, 10_000)] == [8, 10, 10, 10]


async def test_jobs_go_on_after_a_read_only_spell(
    servers: Embedded, jobs_database: JobsDatabase, jobs_db: Database
) -> None:
    """One that ends while nothing can be written, and one that waits: both are done when it is over."""
    begun, may_end = asyncio.Event(), asyncio.Event()
    ran: list[bytes] = []

    async def work(_services: Services, payload: bytes) -> None:
        begun.set()
        await may_end.wait()
        ran.append(payload)

    runner = Runner(jobs_database.url, no_services(), jobs=as_jobs(Job(name="work", run=work)), recurring=[], pace=PACE)
    async with runs(runner):
        await put(jobs_db, "work", b"at work")
        await asyncio.wait_for(begun.wait(), WAIT_S)
        async with Unwritable(servers, Path()).read_only():
            may_end.set()
            async with asyncio.timeout(WAIT_S):
                while not ran:
                    await asyncio.sleep(0.01)
            with pytest.raises(Unavailable):
                await put(jobs_db, "work", b"refused")
            assert await waiting(jobs_db) == {"work": "picked"}
        await put(jobs_db, "work", b"later")
        await until_empty(jobs_db)
    assert {*ran} == {b"at work", b"later"}
