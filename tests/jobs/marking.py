"""Jobs for the tests, which leave a mark when they run, and a process that runs them.

As a program: `python -m tests.jobs.marking <database url>`. It begins at a line on its standard input and says
"looked" once it has seen which recurring jobs are due.
"""

import asyncio
import os
import sys
from typing import Any, cast

import asyncpg
from pgqueuer.adapters.persistence.queries import Queries

from voelgoed.db import Database
from voelgoed.jobs.queue import Job, Recurring
from voelgoed.jobs.runner import Pace, Runner
from voelgoed.lifeline import stop_signals
from voelgoed.wiring import Services

PACE = Pace(look_every_s=0.2, dead_after_s=1.0)
YEARLY = "0 0 1 1 *"


async def mark(url: str, job: str, note: str | None = None) -> int:
    """Say that a job ran here; how often any has, so far."""
    conn = await asyncpg.connect(url)
    try:
        await conn.execute("insert into marks (job, pid, note) values ($1, $2, $3)", job, os.getpid(), note)
        count: int = await conn.fetchval("select count(*) from marks where job = $1", job)
        return count
    finally:
        await conn.close()


async def marks(db: Database, job: str) -> list[tuple[int, str | None]]:
    async with db.system_transaction() as conn:
        rows = await conn.fetch("select pid, note from marks where job = $1 order by id", job)
    return [(row["pid"], row["note"]) for row in rows]


async def waiting(db: Database) -> dict[str, str]:
    """What is in the queue, and how it stands."""
    async with db.system_transaction() as conn:
        rows = await conn.fetch("select entrypoint, status::text from pgqueuer order by id")
    return {row["entrypoint"]: row["status"] for row in rows}


def no_services() -> Services:
    """The jobs here need none."""
    return cast(Services, None)


def as_jobs(*jobs: Job) -> dict[str, Job]:
    return {job.name: job for job in jobs}


async def main(url: str) -> None:
    """Be a worker with two jobs: one that comes by the clock, and one that hangs the first time it runs."""
    real = Queries.fetch_schedule

    async def fetch_schedule(queries: Queries, entrypoints: Any) -> Any:
        found = await real(queries, entrypoints)
        print("looked", flush=True)
        return found

    setattr(Queries, "fetch_schedule", fetch_schedule)  # noqa: B010 - a method is replaced on purpose

    async def hang_once(_services: Services, payload: bytes) -> None:
        if await mark(url, "hang_once", payload.decode()) == 1:
            await asyncio.Event().wait()

    async def tick(_services: Services, _payload: bytes) -> None:
        await mark(url, "tick")

    jobs = as_jobs(Job(name="hang_once", run=hang_once), Job(name="tick", run=tick))
    sys.stdin.readline()
    await Runner(url, no_services(), jobs=jobs, recurring=[Recurring("tick", YEARLY)], pace=PACE).run(stop_signals())


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
