"""A database of the jobs' own: its queue is not read by anybody else."""

from collections.abc import AsyncIterator
from dataclasses import dataclass

import asyncpg
import pytest

from tests.conftest import TEMPLATE
from voelgoed import schema
from voelgoed.db import Database
from voelgoed.embedded import Embedded
from voelgoed.jobs import install

MARKS = """
create table marks (id bigserial primary key, job text not null, pid integer not null, note text);
grant select, insert on marks to voelgoed_app;
grant usage on sequence marks_id_seq to voelgoed_app;
"""
"""Where the jobs of the tests say that they ran."""


@dataclass(frozen=True, slots=True)
class JobsDatabase:
    """Where it is, for each role."""

    url: str
    owner_url: str


async def make_jobs_database(servers: Embedded, name: str) -> JobsDatabase:
    """A fresh database with the queue and the table of marks."""
    admin = await asyncpg.connect(servers.admin_url)
    try:
        await admin.execute(f'drop database if exists "{name}" with (force)')
        await admin.execute(f'create database "{name}" template {TEMPLATE} owner {schema.OWNER}')
        await admin.execute(f'revoke all on database "{name}" from public')
        await admin.execute(f'grant connect on database "{name}" to {schema.APP}')
    finally:
        await admin.close()
    made = JobsDatabase(servers.postgres_url(schema.APP, name), servers.postgres_url(schema.OWNER, name))
    await prepare(made.owner_url)
    return made


async def prepare(owner_url: str) -> None:
    owner = await asyncpg.connect(owner_url)
    try:
        await install.install(owner)
        await owner.execute(MARKS)
    finally:
        await owner.close()


@pytest.fixture(scope="session")
async def jobs_database(servers: Embedded, worker_id: str) -> JobsDatabase:
    return await make_jobs_database(servers, f"voelgoed_jobs_{worker_id}")


@pytest.fixture
async def jobs_db(jobs_database: JobsDatabase) -> AsyncIterator[Database]:
    """The application's entrance, to an empty queue."""
    owner = await asyncpg.connect(jobs_database.owner_url)
    await owner.execute("truncate marks, pgqueuer, pgqueuer_log, pgqueuer_schedules, pgqueuer_statistics")
    await owner.close()
    opened = await Database.open(jobs_database.url)
    yield opened
    await opened.close()
