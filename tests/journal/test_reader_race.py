"""Sixteen writers that dawdle and change their minds, and a reader that follows them all the while."""

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from uuid import UUID

import pytest

from voelgoed import schema
from voelgoed.db import Connection, Database
from voelgoed.embedded import Embedded
from voelgoed.errors import LostRace
from voelgoed.ids import OrganizationId, new_id
from voelgoed.journal.model import Fact, Position, RecordedFact
from voelgoed.journal.reader import load_position, read_after, save_position, start_position
from voelgoed.journal.recording import record_all

WRITERS = 16
CHANGES_EACH = 25
KEYS = 6
ROLLBACK_SHARE = 0.25
EARLY_NUMBER_SHARE = 0.5
DAWDLE_S = 0.01
LIMIT_S = 60.0

LOCKS = (
    "select version + 1 from race.keys where id = $1 for no key update",
    "update race.keys set version = version + 1 where id = $1 returning version",
)

Told = tuple[UUID | None, int | None]


class ChangedMind(Exception):
    """The writer undoes its transaction."""


async def dawdle(dice: random.Random) -> None:
    await asyncio.sleep(dice.uniform(0, DAWDLE_S))


@dataclass(slots=True)
class Race:
    """A table of versioned keys, and what was really committed."""

    db: Database
    here: OrganizationId
    keys: list[UUID]
    committed: list[Told] = field(default_factory=list)
    undone_count: int = 0

    async def change(self, dice: random.Random) -> None:
        """One use case: lock some keys, count their versions up, tell of them; or change one's mind.

        Sometimes the transaction has its number long before the locks, and takes them one by one.
        """
        keys = sorted(dice.sample(self.keys, dice.randint(1, 3)))
        facts: list[Fact] = []
        async with self.db.transaction(self.here) as conn:
            if dice.random() < EARLY_NUMBER_SHARE:
                await conn.execute("select pg_current_xact_id()")
                await dawdle(dice)
            for key in keys:
                version = await conn.fetchval(LOCKS[dice.randrange(len(LOCKS))], key)
                told = [self.fact(key, version + n) for n in range(dice.randint(1, 3))]
                await conn.execute("update race.keys set version = $2 where id = $1", key, version + len(told) - 1)
                await dawdle(dice)
                await record_all(conn, told)
                facts += told
            await dawdle(dice)
            if dice.random() < ROLLBACK_SHARE:
                raise ChangedMind
        self.committed += [(fact.event_id, fact.version) for fact in facts]

    def fact(self, key: UUID, version: int) -> Fact:
        return Fact(kind="key_changed", organization_id=self.here, event_id=key, version=version)

    async def write(self, seed: str) -> None:
        dice = random.Random(seed)
        for _ in range(CHANGES_EACH):
            try:
                await self.change(dice)
            except (ChangedMind, LostRace):  # on a slow machine a writer waits for its lock longer than it may
                self.undone_count += 1

    async def follow(self, reader: str, seed: str, written: asyncio.Event) -> list[RecordedFact]:
        """Read as a loop does: place, batch and new place in one transaction, which is sometimes undone as well."""
        dice = random.Random(seed)
        seen: list[RecordedFact] = []
        while not (written.is_set() and len(seen) >= len(self.committed)):
            with contextlib.suppress(ChangedMind):
                seen += await self.read(reader, dice)
            await dawdle(dice)
        return seen

    async def read(self, reader: str, dice: random.Random) -> list[RecordedFact]:
        async with self.db.system_transaction() as conn:
            position = await load_position(conn, reader)
            assert position is not None
            batch = await read_after(conn, position, dice.randint(1, 40))
            await save_position(conn, reader, batch.position)
            if dice.random() < ROLLBACK_SHARE:
                raise ChangedMind
        return [fact for fact in batch.facts if fact.organization_id == self.here]


@pytest.fixture
async def race(servers: Embedded, database: str, owner_conn: Connection) -> AsyncIterator[Race]:
    """Connections for every writer and the reader, and keys in a schema of their own."""
    opened = await Database.open(servers.postgres_url(schema.APP, database), size=WRITERS + 1)
    keys = [new_id() for _ in range(KEYS)]
    await owner_conn.execute(
        "create schema race; grant usage on schema race to voelgoed_app;"
        "create table race.keys (id uuid primary key, version bigint not null default 0);"
        "grant select, update on race.keys to voelgoed_app"
    )
    await owner_conn.executemany("insert into race.keys (id) values ($1)", [(key,) for key in keys])
    yield Race(opened, OrganizationId(new_id()), keys)
    await opened.close()
    await owner_conn.execute("drop schema race cascade")


@pytest.mark.parametrize("seed", [1, 2])
async def test_every_committed_fact_is_read_once_and_in_order(race: Race, seed: int) -> None:
    """None missing, none twice, none that was undone; of each key the versions in order."""
    reader = f"race_{new_id().hex}"
    async with race.db.system_transaction() as conn:
        await save_position(conn, reader, await start_position(conn))
    written = asyncio.Event()
    async with asyncio.timeout(LIMIT_S):
        following = asyncio.create_task(race.follow(reader, f"{seed}:reader", written))
        await asyncio.gather(*(race.write(f"{seed}:{n}") for n in range(WRITERS)))
        written.set()
        seen = await following

    assert race.undone_count > 0
    assert len(race.committed) > WRITERS * CHANGES_EACH
    assert sorted((fact.event_id, fact.version) for fact in seen) == sorted(race.committed)
    for key in race.keys:
        versions = [fact.version for fact in seen if fact.event_id == key]
        assert versions == list(range(1, len(versions) + 1))
    assert [fact.position for fact in seen] == sorted(fact.position for fact in seen)
    await assert_nothing_is_left(race, reader, seen[-1].position)


async def assert_nothing_is_left(race: Race, reader: str, last: Position) -> None:
    """The reader stands at the end."""
    async with race.db.system_transaction() as conn:
        position = await load_position(conn, reader)
        assert position is not None
        assert position >= last
        left = await read_after(conn, position, 1_000)
    assert [fact for fact in left.facts if fact.organization_id == race.here] == []
