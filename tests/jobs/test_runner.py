"""Running jobs: bounded tries, nothing lost with a process, a connection or a server, and a quick clean stop."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import asyncpg
import pytest
from pgqueuer.adapters.persistence.queries import Queries
from pgqueuer.core.executors import EntrypointExecutorParameters
from pgqueuer.domain.errors import RetryRequested
from pgqueuer.domain.models import Context, Job as QueuedJob

from tests.jobs.conftest import JobsDatabase, prepare
from tests.jobs.marking import PACE, YEARLY, as_jobs, mark, marks, no_services, waiting
from tests.make.events import catalogue_of
from tests.make.processes import environment
from voelgoed import schema
from voelgoed.db import Database
from voelgoed.embedded import Embedded, running
from voelgoed.errors import Busy
from voelgoed.holds.availability import Availability
from voelgoed.holds.projection import Projection
from voelgoed.jobs import runner as module
from voelgoed.jobs.install import queries_on
from voelgoed.jobs.queue import RECURRING, Job, Recurring
from voelgoed.jobs.runner import Pace, Runner
from voelgoed.redis import RedisLink
from voelgoed.wiring import Services

WAIT_S = 30.0
ROOT = Path(__file__).resolve().parents[2]


@contextlib.asynccontextmanager
async def runs(runner: Runner) -> AsyncIterator[asyncio.Event]:
    """A runner at work; the event stops it, and so does the end of the block."""
    stop = asyncio.Event()
    task = asyncio.create_task(runner.run(stop))
    try:
        yield stop
    finally:
        stop.set()
        await asyncio.wait_for(task, WAIT_S)


async def put(db: Database, name: str, payload: bytes = b"{}") -> None:
    async with db.system_transaction() as conn:
        await queries_on(conn).enqueue(name, payload)


async def until_empty(db: Database, status: str | None = None) -> None:
    """Wait until nothing is in the queue, or only what stands in this status."""
    async with asyncio.timeout(WAIT_S):
        while set((await waiting(db)).values()) - {status}:
            await asyncio.sleep(0.02)


async def test_a_job_runs_with_its_payload(jobs_database: JobsDatabase, jobs_db: Database) -> None:
    """Enqueued while the runner waits, it is run once and leaves the queue."""
    ran = asyncio.Queue[bytes]()

    async def work(_services: Services, payload: bytes) -> None:
        await ran.put(payload)

    async with runs(Runner(jobs_database.url, no_services(), jobs=as_jobs(Job(name="work", run=work)), recurring=[])):
        await put(jobs_db, "work", b"one")
        assert await asyncio.wait_for(ran.get(), WAIT_S) == b"one"
        await until_empty(jobs_db)
    assert ran.empty()


async def test_a_failing_job_has_so_many_tries(
    jobs_database: JobsDatabase, jobs_db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three, then it is set aside for a person to look at; what is kept of it names the error and no more."""
    monkeypatch.setattr(module, "RETRY_FIRST_S", 0.01)
    tries = 0

    async def work(_services: Services, _payload: bytes) -> None:
        nonlocal tries
        tries += 1
        raise LookupError("koos@example.com")

    job = Job(name="work", run=work, tries_max=3)
    async with runs(Runner(jobs_database.url, no_services(), jobs=as_jobs(job), recurring=[], pace=PACE)):
        await put(jobs_db, "work")
        await until_empty(jobs_db, "failed")
    assert (tries, await waiting(jobs_db)) == (3, {"work": "failed"})
    async with jobs_db.system_transaction() as conn:
        kept = await conn.fetch("select traceback::text from pgqueuer_log where traceback is not null")
    assert len(kept) == 3
    assert not any("koos" in row["traceback"] for row in kept)
    assert all("LookupError" in row["traceback"] for row in kept)


async def test_a_job_that_hangs_is_ended(
    jobs_database: JobsDatabase, jobs_db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its time is over, which counts as a failed try; the next one works."""
    monkeypatch.setattr(module, "RETRY_FIRST_S", 0.01)
    tries = 0

    async def work(_services: Services, _payload: bytes) -> None:
        nonlocal tries
        tries += 1
        if tries == 1:
            await asyncio.Event().wait()

    job = Job(name="work", run=work, timeout_s=0.05)
    async with runs(Runner(jobs_database.url, no_services(), jobs=as_jobs(job), recurring=[], pace=PACE)):
        await put(jobs_db, "work")
        await until_empty(jobs_db)
    assert tries == 2


async def test_stopping_gives_running_jobs_back(jobs_database: JobsDatabase, jobs_db: Database) -> None:
    """A job in the middle of its work is stopped and waits in the queue again: not lost, and not set aside."""
    begun, ended = asyncio.Event(), asyncio.Event()

    async def work(_services: Services, _payload: bytes) -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    job = Job(name="work", run=work, tries_max=1)
    async with runs(Runner(jobs_database.url, no_services(), jobs=as_jobs(job), recurring=[])) as stop:
        await put(jobs_db, "work")
        await asyncio.wait_for(begun.wait(), WAIT_S)
        stop.set()
        await asyncio.wait_for(ended.wait(), WAIT_S)
    assert await waiting(jobs_db) == {"work": "queued"}


async def test_a_cancelled_runner_loses_no_job(jobs_database: JobsDatabase, jobs_db: Database) -> None:
    """The library deletes a job whose task is cancelled; ours is given back even when everything is cancelled."""
    begun = asyncio.Event()

    async def work(_services: Services, _payload: bytes) -> None:
        begun.set()
        await asyncio.Event().wait()

    runner = Runner(jobs_database.url, no_services(), jobs=as_jobs(Job(name="work", run=work)), recurring=[])
    task = asyncio.create_task(runner.run(asyncio.Event()))
    await put(jobs_db, "work")
    await asyncio.wait_for(begun.wait(), WAIT_S)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, WAIT_S)
    assert set(await waiting(jobs_db)) == {"work"}


async def test_a_cancelled_job_asks_to_be_run_again() -> None:
    """Cancelled from outside, the work is ended and the library hears of a retry; a cancelled job it would delete."""
    begun, ended = asyncio.Event(), asyncio.Event()

    async def work(_services: Services, _payload: bytes) -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    executor = module._Executor(
        EntrypointExecutorParameters(concurrency_limit=0, func=module._not_called),
        Job(name="work", run=work),
        no_services(),
        asyncio.Event(),
    )
    queued = cast(QueuedJob, SimpleNamespace(payload=None, attempts=0))
    running_it = asyncio.create_task(executor.execute(queued, cast(Context, None)))
    await begun.wait()
    running_it.cancel()
    with pytest.raises(RetryRequested):
        await asyncio.wait_for(running_it, WAIT_S)
    assert ended.is_set()


async def test_a_failing_clock_loses_no_job(
    jobs_database: JobsDatabase, jobs_db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When the library's schedule fails it cancels its jobs, and would delete them: the job is run again instead."""
    tries = failures = 0
    real = Queries.fetch_schedule

    async def fetch_schedule(queries: Queries, entrypoints: Any) -> Any:
        nonlocal failures
        if tries == 1 and not failures:
            failures += 1
            raise RuntimeError("once, while a job is at work")
        return await real(queries, entrypoints)

    async def work(_services: Services, _payload: bytes) -> None:
        nonlocal tries
        tries += 1
        if tries == 1:
            await asyncio.Event().wait()

    async def nothing(_services: Services, _payload: bytes) -> None:
        pass

    monkeypatch.setattr(Queries, "fetch_schedule", fetch_schedule)
    jobs = as_jobs(Job(name="work", run=work), Job(name="nothing", run=nothing))
    every_second = [Recurring("nothing", "* * * * * *")]
    async with runs(Runner(jobs_database.url, no_services(), jobs=jobs, recurring=every_second, pace=PACE)):
        await put(jobs_db, "work")
        async with asyncio.timeout(WAIT_S):
            while tries < 2:
                await asyncio.sleep(0.02)
    assert (tries, failures) == (2, 1)


async def test_a_lost_connection_is_noticed_at_once(jobs_database: JobsDatabase, jobs_db: Database) -> None:
    """Ended by the server in the middle of a job: the job is stopped here without waiting for a look, and run again."""
    runs_of = asyncio.Queue[int]()
    first_ended = asyncio.Event()

    async def work(_services: Services, _payload: bytes) -> None:
        await runs_of.put(1)
        if not first_ended.is_set():
            try:
                await asyncio.Event().wait()
            finally:
                first_ended.set()

    job = as_jobs(Job(name="work", run=work))
    rarely, yearly = Pace(look_every_s=3600, dead_after_s=60), [Recurring("work", YEARLY)]
    async with runs(Runner(jobs_database.url, no_services(), jobs=job, recurring=yearly, pace=rarely)):
        await put(jobs_db, "work")
        await asyncio.wait_for(runs_of.get(), WAIT_S)
        async with jobs_db.system_transaction() as conn:
            ended = await conn.fetch(
                "select pg_terminate_backend(pid) from pg_stat_activity"
                " where application_name = 'voelgoed jobs' and datname = current_database()"
            )
        assert len(ended) == 1
        await asyncio.wait_for(first_ended.wait(), WAIT_S)
        async with jobs_db.system_transaction() as conn:  # as if the time after which it counts as dead were over
            await conn.execute("update pgqueuer set heartbeat = now() - interval '2 minutes'")
        # A new job makes the runner look; it may be about to look, or not be listening yet, so it is told again.
        for _ in range(int(WAIT_S)):
            await put(jobs_db, "work")
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(until_empty(jobs_db), 1)
                break
        await until_empty(jobs_db)
        assert runs_of.qsize() >= 2  # the job that was stopped, and one that was put there


async def test_a_connection_dropped_without_a_word_is_noticed(
    jobs_database: JobsDatabase, jobs_db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The driver drops it and calls no listener: the job is stopped here all the same, and not run in two places."""
    at_work, ended, opened = asyncio.Event(), asyncio.Event(), list[Any]()
    connect = asyncpg.connect

    async def kept(*args: Any, **named: Any) -> Any:
        opened.append(await connect(*args, **named))
        return opened[-1]

    async def work(_services: Services, _payload: bytes) -> None:
        at_work.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    monkeypatch.setattr(asyncpg, "connect", kept)
    job = as_jobs(Job(name="work", run=work))
    rarely, yearly = Pace(look_every_s=3600, dead_after_s=3600), [Recurring("work", YEARLY)]
    async with runs(Runner(jobs_database.url, no_services(), jobs=job, recurring=yearly, pace=rarely)):
        await put(jobs_db, "work")
        await asyncio.wait_for(at_work.wait(), WAIT_S)
        async with asyncio.timeout(WAIT_S), jobs_db.system_transaction() as conn:
            # Until the library only listens: a question it asks on a dropped connection would tell it.
            while not await conn.fetchval(
                "select state = 'idle' and state_change < clock_timestamp() - interval '500 ms'"
                " from pg_stat_activity where pid = $1",
                opened[0].get_server_pid(),
            ):
                await asyncio.sleep(0.05)
                await conn.execute("select pg_stat_clear_snapshot()")
        opened[0]._protocol.abort()
        await asyncio.wait_for(ended.wait(), WAIT_S)


async def test_a_killed_server_is_found_again(data_dir: Path) -> None:
    """PostgreSQL dies by kill -9 and comes back: jobs of before and after are run, without a hand."""
    async with running(Embedded(data_dir, with_valkey=False)) as servers:
        await schema.create_database(servers.admin_url, "voelgoed")
        await schema.migrate(servers.postgres_url(schema.OWNER))
        await prepare(servers.postgres_url(schema.OWNER))
        url = servers.postgres_url(schema.APP)
        db = await Database.open(url)

        async def work(_services: Services, payload: bytes) -> None:
            await mark(url, "work", payload.decode())

        async with runs(Runner(url, no_services(), jobs=as_jobs(Job(name="work", run=work)), recurring=[], pace=PACE)):
            await put(db, "work", b"before")
            await until_empty(db)
            os.kill(servers.pids()["postgres"], signal.SIGKILL)
            await asyncio.to_thread(servers._children["postgres"].process.wait, WAIT_S)
            with pytest.raises(Busy):
                await put(db, "work", b"nowhere")
            await servers._start_postgres()
            await put(db, "work", b"after")
            await until_empty(db)
        assert [note for _pid, note in await marks(db, "work")] == ["before", "after"]
        await db.close()


async def test_the_jobs_of_this_house_run(jobs_database: JobsDatabase, jobs_db: Database) -> None:
    """Each of the list is enqueued as the clock would, runs on the real database, and fails at nothing."""
    async with RedisLink("redis://127.0.0.1:1") as away:
        projection = Projection(away)
        services = cast(
            Services,
            SimpleNamespace(
                db=jobs_db,
                catalogue=catalogue_of(jobs_db, away),
                availability=Availability(jobs_db, projection),
                projection=projection,
            ),
        )
        async with runs(Runner(jobs_database.url, services)):
            for each in RECURRING:
                await put(jobs_db, each.job_name)
            await until_empty(jobs_db)
    async with jobs_db.system_transaction() as conn:
        rows = await conn.fetch(
            "select entrypoint, status::text from pgqueuer_log where status not in ('queued', 'picked')"
        )
    assert {(row["entrypoint"], row["status"]) for row in rows} == {(each.job_name, "successful") for each in RECURRING}


class Worker:
    """A real process that runs the marking jobs."""

    def __init__(self, url: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.jobs.marking", url],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def begin(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def wait_until_it_looked(self) -> None:
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "looked\n"

    def end(self) -> None:
        with self.process:
            self.process.kill()


@pytest.fixture
def workers(jobs_database: JobsDatabase) -> Iterator[list[Worker]]:
    """Two processes, not begun yet."""
    started = [Worker(jobs_database.url), Worker(jobs_database.url)]
    yield started
    for each in started:
        each.end()


async def test_two_workers_one_tick(workers: list[Worker], jobs_db: Database) -> None:
    """A recurring job is due and two processes look at the same moment: it is run once."""
    async with jobs_db.system_transaction() as conn:
        await conn.execute(
            "insert into pgqueuer_schedules (expression, entrypoint, next_run)"
            " values ('0 0 1 1 *', 'tick', now() - interval '1 minute')"
        )
    for worker in workers:
        worker.begin()
    for worker in workers:
        await asyncio.to_thread(worker.wait_until_it_looked)
    async with asyncio.timeout(WAIT_S):
        while not await marks(jobs_db, "tick"):
            await asyncio.sleep(0.02)
    await until_empty(jobs_db)
    assert len(await marks(jobs_db, "tick")) == 1
    async with jobs_db.system_transaction() as conn:
        ticks = await conn.fetchval("select count(*) from pgqueuer_log where entrypoint = 'tick' and status = 'queued'")
        assert ticks == 1
        assert await conn.fetchval("select next_run > now() from pgqueuer_schedules")


async def test_a_killed_workers_job_is_taken_over(workers: list[Worker], jobs_db: Database) -> None:
    """A kill -9 in the middle of a job: the other process finds it and runs it to its end."""
    first, second = workers
    first.begin()
    await asyncio.to_thread(first.wait_until_it_looked)
    await put(jobs_db, "hang_once", b"payload")
    async with asyncio.timeout(WAIT_S):
        while not await marks(jobs_db, "hang_once"):
            await asyncio.sleep(0.02)
    second.begin()
    await asyncio.to_thread(second.wait_until_it_looked)
    first.process.kill()
    await until_empty(jobs_db)
    assert await marks(jobs_db, "hang_once") == [(first.process.pid, "payload"), (second.process.pid, "payload")]


async def test_the_worker_process_starts_and_stops(jobs_database: JobsDatabase, redis_url: str, data_dir: Path) -> None:
    """The real process says it is ready, and leaves cleanly when asked, with nothing that went wrong in its log."""
    (data_dir / "secret.key").write_bytes(bytes(32))
    names = {"DATABASE_URL": jobs_database.url, "REDIS_URL": redis_url, "UNSAFE_DATABASE": "true", "LOG_FORMAT": "json"}
    with subprocess.Popen(
        [sys.executable, "-m", "voelgoed.jobs"],
        env=environment(data_dir, **{f"VOELGOED_{name}": value for name, value in names.items()}),
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        lines: list[str] = []
        while "worker_ready" not in "".join(lines):
            lines.append(await asyncio.to_thread(process.stderr.readline))
            assert lines[-1], "".join(lines)
        process.terminate()
        lines += (await asyncio.to_thread(process.stderr.read)).splitlines()
        assert await asyncio.to_thread(process.wait, WAIT_S) == 0
    said = "\n".join(lines)
    assert "worker_stopped" in said
    assert '"level": "error"' not in said
    assert '"level": "warning"' not in said
