"""Running the queue's jobs: one connection of its own, taken up again whenever it is lost, and no job lost with it.

The library deletes a job whose task is cancelled. So nothing here lets a cancellation reach it: a job that is stopped
is given back, for this or another process to run again.
"""

import asyncio
import contextlib
import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

import asyncpg
import structlog
from pgqueuer.core.applications import PgQueuer
from pgqueuer.core.executors import AbstractEntrypointExecutor, EntrypointExecutorParameters
from pgqueuer.domain.errors import RetryRequested
from pgqueuer.domain.models import Context, Job as QueuedJob, Schedule

from voelgoed.db import Connection
from voelgoed.errors import Unavailable
from voelgoed.jobs.install import NAMES, queries_on
from voelgoed.jobs.queue import JOBS, RECURRING, Job, Recurring
from voelgoed.telemetry import metrics
from voelgoed.wiring import Services

log = structlog.get_logger(__name__)

CONNECT_TIMEOUT_S = 5.0
COMMAND_TIMEOUT_S = 10.0
CLOSE_TIMEOUT_S = 0.2
SERVED_WELL_S = 10.0
"""After so long, the next interruption is a new one and begins with the shortest pause."""
JOBS_PER_LOOK = 5
JOBS_AT_ONCE_MAX = 10
RETRY_FIRST_S = 1.0
RETRY_LONGEST_S = 300.0
RETRY_UNAVAILABLE_S = 10.0
CLOSED_S = 0.5
"""How often to look whether the connection is there, for the case that nobody says that it is not."""
GIVE_BACK_S = 0.2
"""How long a job that is stopped may take to let go."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How patient a runner is."""

    look_every_s: float = 5.0
    """The queue says when there is something; this is for when that word was lost, or a job's process was."""
    dead_after_s: float = 15.0
    """A process that has not been heard of for so long has lost its jobs to the others."""
    finish_s: float = 0.3
    """How long running jobs may go on when the process is asked to stop."""
    pause_first_s: float = 0.1
    pause_longest_s: float = 5.0


class JobGivenUp(Exception):
    """Its last try has failed. Only the name of the error: what the library keeps may hold nothing personal."""


@dataclass
class _Executor(AbstractEntrypointExecutor):
    """Runs one job: so long at most, so often at most, and given back when the runner stops."""

    job: Job
    services: Services
    give_back: asyncio.Event

    async def execute(self, job: QueuedJob, context: Context) -> None:  # noqa: ARG002 - the library's signature
        work = asyncio.ensure_future(self.job.run(self.services, job.payload or b""))
        stopped = asyncio.ensure_future(self.give_back.wait())
        is_cancelled = False
        try:
            await asyncio.wait({work, stopped}, timeout=self.job.timeout_s, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            is_cancelled = True
        is_stopped = is_cancelled or stopped.done()
        stopped.cancel()
        failed = await _end(work)
        if failed is None:
            metrics.JOBS_RUN.labels(self.job.name).inc()
            return
        if is_stopped and isinstance(failed, asyncio.CancelledError):
            log.info("job_given_back", job=self.job.name)
            raise RetryRequested(timedelta(0), "stopped")
        self._failed(job, failed)

    def _failed(self, job: QueuedJob, failed: BaseException) -> None:
        """Request another try, later each time. After the last one the job is set aside.

        A database that cannot do the work is no fault of the job: it is tried until the database is back.
        """
        error = "TimeoutError" if isinstance(failed, asyncio.CancelledError) else type(failed).__name__
        tries = job.attempts + 1
        is_unavailable = isinstance(failed, Unavailable)
        is_last = tries >= self.job.tries_max and not is_unavailable
        metrics.JOBS_FAILED.labels(self.job.name, "given_up" if is_last else "retried").inc()
        log.log(
            40 if is_last else 30,
            "job_given_up" if is_last else "job_failed",
            job=self.job.name,
            tries=tries,
            error=error,
            exc_info=failed,
        )
        if is_last:
            raise JobGivenUp(error)
        longest_s = RETRY_UNAVAILABLE_S if is_unavailable else RETRY_LONGEST_S
        doublings = min(job.attempts, 16)  # without a limit on tries, a larger power would not fit a float one day
        raise RetryRequested(timedelta(seconds=min(RETRY_FIRST_S * 2**doublings, longest_s)), error)


async def _end(work: asyncio.Future[object]) -> BaseException | None:
    """Cancel work that is not done; what it ended with, None when all is well."""
    if not work.done():
        work.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.wait({work}, timeout=GIVE_BACK_S)
    if not work.done() or work.cancelled():
        return asyncio.CancelledError()
    return work.exception()


class Runner:
    """The jobs of one process."""

    def __init__(
        self,
        url: str,
        services: Services,
        *,
        jobs: Mapping[str, Job] = JOBS,
        recurring: Sequence[Recurring] = RECURRING,
        pace: Pace | None = None,
    ) -> None:
        assert {each.job_name for each in recurring} <= jobs.keys()
        self._url = url
        self._services = services
        self._jobs = jobs
        self._recurring = recurring
        self._pace = pace or Pace()

    async def run(self, stop: asyncio.Event) -> None:
        """Run jobs until asked to stop, through every loss of the database; the pause between tries has a limit."""
        pause_s = self._pace.pause_first_s
        while not stop.is_set():
            started = time.monotonic()
            try:
                await self._connect_and_serve(stop)
            except Exception as failed:  # noqa: BLE001 - whatever it is, the next try comes; it is said here
                log.warning("jobs_interrupted", error=type(failed).__name__, reason=str(failed))
            if time.monotonic() - started > SERVED_WELL_S:
                pause_s = self._pace.pause_first_s
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), pause_s * random.uniform(0.5, 1.0))  # noqa: S311 - no secret
            pause_s = min(2 * pause_s, self._pace.pause_longest_s)

    async def _connect_and_serve(self, stop: asyncio.Event) -> None:
        conn: Connection = await asyncpg.connect(
            self._url,
            timeout=CONNECT_TIMEOUT_S,
            command_timeout=COMMAND_TIMEOUT_S,
            server_settings={"application_name": "voelgoed jobs"},
        )
        try:
            await self._serve(conn, stop)
            await conn.close(timeout=CLOSE_TIMEOUT_S)
        finally:
            conn.terminate()

    async def _serve(self, conn: Connection, stop: asyncio.Event) -> None:
        """Run jobs on this connection until asked to stop or it is lost."""
        lost, give_back = asyncio.Event(), asyncio.Event()
        conn.add_termination_listener(lambda _conn: lost.set())
        queue = self._queue(conn, give_back)
        serving = asyncio.ensure_future(
            queue.run(
                dequeue_timeout=timedelta(seconds=self._pace.look_every_s),
                batch_size=JOBS_PER_LOOK,
                max_concurrent_tasks=JOBS_AT_ONCE_MAX,
                heartbeat_timeout=timedelta(seconds=self._pace.dead_after_s),
            )
        )
        # The library shuts itself down when a part of it fails, and then waits for its jobs however long they take.
        ends = [asyncio.ensure_future(event.wait()) for event in (stop, lost, queue.shutdown)]
        try:
            while not (await asyncio.wait({serving, *ends}, timeout=CLOSED_S, return_when=asyncio.FIRST_COMPLETED))[0]:
                # The driver tells nobody when it drops a connection itself: one on which it is asked something between
                # the server's last word and the end of the stream.
                if conn.is_closed():
                    lost.set()
            queue.shutdown.set()
            if not lost.is_set():
                await asyncio.wait({serving}, timeout=self._pace.finish_s)
        finally:
            # A lost connection means that others may take our jobs over: they must not run here as well.
            give_back.set()
            queue.shutdown.set()
            for end in ends:
                end.cancel()
            await asyncio.wait({serving}, timeout=2 * GIVE_BACK_S)
            serving.cancel()
            await asyncio.wait({serving}, timeout=GIVE_BACK_S)
        if serving.done() and not serving.cancelled():
            serving.result()

    def _queue(self, conn: Connection, give_back: asyncio.Event) -> PgQueuer:
        queries = queries_on(conn)
        queue = PgQueuer(queries.driver, NAMES.channel, queries=queries)
        for job in self._jobs.values():

            def executor(parameters: EntrypointExecutorParameters, job: Job = job) -> AbstractEntrypointExecutor:
                return _Executor(parameters, job, self._services, give_back)

            queue.entrypoint(job.name, accepts_context=False, on_failure="hold", executor_factory=executor)(_not_called)
        for each in self._recurring:

            async def due(_schedule: Schedule, name: str = each.job_name) -> None:
                # Only put into the queue here: a run that fails is then tried again, like any other job.
                await queries.enqueue(name, b"{}", dedupe_key=f"recurring:{name}", on_conflict="skip")

            queue.schedule(each.job_name, each.cron, accepts_context=False)(due)
        return queue


async def _not_called(_job: QueuedJob) -> None:
    raise AssertionError("the executor runs the job itself")
