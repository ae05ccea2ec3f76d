"""Halls to race in, crowds to race with, and processes that say what they lost inside PostgreSQL."""

import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

import asyncpg
from msgspec import structs
from pydantic import SecretStr

from tests.make import passing
from tests.make.events import call_of, make_event
from tests.make.layouts import encoded
from tests.make.seating import Seated, as_registry, move_recorded_ends, publish, save
from voelgoed import schema
from voelgoed.accounts import tokens
from voelgoed.accounts.model import Call, Organization, Role
from voelgoed.config import Settings
from voelgoed.db import Connection, Database
from voelgoed.embedded import Embedded
from voelgoed.errors import LostRace
from voelgoed.holds import booking
from voelgoed.holds.availability import Availability
from voelgoed.holds.booking import Held
from voelgoed.holds.failures import Failures
from voelgoed.holds.lane import CONNECTIONS, SETTINGS, Lanes
from voelgoed.holds.projection import Projection
from voelgoed.ids import new_id
from voelgoed.redis import RedisLink
from voelgoed.seating.document import read_layout
from voelgoed.seating.model import Layout
from voelgoed.seating.studio import Studio


@contextlib.asynccontextmanager
async def database_alone(servers: Embedded, settings: Settings, template: str, name: str) -> AsyncIterator[Settings]:
    """A database nobody else writes to, so that what must never be so can be asked of all of it; how to get there."""
    admin = await asyncpg.connect(servers.admin_url)
    try:
        await admin.execute(f'drop database if exists "{name}" with (force)')
        await admin.execute(f'create database "{name}" template {template} owner {schema.OWNER}')
        await admin.execute(f'revoke all on database "{name}" from public')
        await admin.execute(f'grant connect on database "{name}" to {schema.APP}')
        # A circle is seen as one, before anybody gives up waiting.
        await admin.execute(f"alter database \"{name}\" set deadlock_timeout = '50ms'")
        yield settings.model_copy(update={"database_url": SecretStr(servers.postgres_url(schema.APP, name))})
        await admin.execute(f'drop database if exists "{name}" with (force)')
    finally:
        await admin.close()


class Watched(Database):
    """A database that remembers why calls were undone, also those that were tried again and then done."""

    lost: list[type[BaseException]]

    async def call(self, query: str, *values: Any) -> list[asyncpg.Record]:
        """The same, watched."""
        try:
            return await super().call(query, *values)
        except LostRace as lost:
            self.lost.append(type(lost.__cause__ or lost))
            raise


@dataclass(slots=True)
class Process:
    """What a process has in its hands for holds: connections for everything, lanes on connections of their own."""

    db: Watched
    lanes: Lanes
    lost: list[type[BaseException]] = field(default_factory=list)

    async def hold(self, call: Call, event: Seated, *seats: UUID) -> list[Held]:
        return await booking.reserve_seats(self.lanes, self.db, call, event.event.id, seats)

    async def hold_places(self, call: Call, event: Seated, zone_id: UUID, quantity: int) -> Held:
        return await booking.reserve_places(self.lanes, self.db, call, event.event.id, zone_id, quantity)


@contextlib.asynccontextmanager
async def process(settings: Settings) -> AsyncIterator[Process]:
    """Lanes and connections as a web process has them; several of these are several processes to PostgreSQL."""
    assert settings.database_url is not None
    url = settings.database_url.get_secret_value()
    async with contextlib.AsyncExitStack() as open_ones:
        lost: list[type[BaseException]] = []
        db, lane_db = await Watched.open(url), await Watched.open(url, size=CONNECTIONS, settings=SETTINGS)
        for one in (db, lane_db):
            one.lost = lost
            open_ones.push_async_callback(one.close)
        failures = Failures(db)
        link = await open_ones.enter_async_context(RedisLink("redis://127.0.0.1:1"))  # nobody is there
        availability = Availability(db, Projection(link), clock=passing.clock)
        lanes = Lanes(lane_db, failures, availability)
        yield Process(db, lanes, lost)
        await lanes.close()
        await failures.flush()
        await availability.close()


def hall_layout(*, seats: int = 0, wheelchairs: int = 0, pits: Sequence[int] = ()) -> Layout:
    """A hall with one row of so many seats, the first of them wheelchair spaces, and pits P1, P2 ... of such sizes."""
    row = {
        "count": seats,
        "x": {"start": 50, "step": 50},
        "y": 100,
        "category": {"wheelchair": [*range(1, wheelchairs + 1)]},
    }
    rows = [{"label": "A", "seats": row}]
    zones: list[Mapping[str, object]] = []
    if seats:
        zones.append({"code": "S", "name": "Stalls", "zone_type": "reserved_seating", "rows": rows})
    for number, capacity in enumerate(pits, 1):
        zones.append({"code": f"P{number}", "name": f"Pit {number}", "zone_type": "ga_standing", "capacity": capacity})
    return read_layout(encoded({"format": "voelgoed-layout/1", "name": "A hall to race in", "zones": zones}))


async def event_in(studio: Studio, organization: Organization, hall: Seated) -> Seated:
    """Another event in the hall of one that is there, with the same prices, on sale."""
    event = await make_event(studio.db, organization, hall.venue)
    await save(studio, event, hall.wanted())
    return replace(hall, event=await publish(studio, event))


def seat_ids(event: Seated, count: int | None = None) -> list[UUID]:
    """The seats of a hall in their order, or the first few."""
    ids: list[UUID] = [event.hall.seat_id(ordinal) for ordinal in range(len(event.hall.codes))]
    return ids[:count]


def buyer(organization: Organization, *, ip: str | None = None) -> Call:
    """Somebody who buys, and has never done so before."""
    return structs.replace(call_of(organization, Role.CUSTOMER), ip=ip)


async def make_crowd(db: Database, organization: Organization, count: int) -> list[str]:
    """So many customers who are signed in: their tokens. Made at once, without the slow part."""
    users, crowd = [new_id() for _ in range(count)], [tokens.new_session_token() for _ in range(count)]
    async with db.transaction(organization.id) as conn:
        await conn.execute(
            "insert into users (id, email, name, locale, is_guest)"
            " select id, id || '@example.test', 'Anna', 'en', false from unnest($1::uuid[]) as one (id)",
            users,
        )
        await conn.execute(
            "insert into org_members (organization_id, user_id, role)"
            " select $1, id, 'customer' from unnest($2::uuid[]) as one (id)",
            organization.id,
            users,
        )
        await conn.execute(
            "insert into sessions (id, token_hash, user_id, organization_id)"
            " select gen_random_uuid(), hash, id, $1 from unnest($2::uuid[], $3::bytea[]) as one (id, hash)",
            organization.id,
            users,
            [tokens.token_hash(token) for token in crowd],
        )
    return crowd


async def age_holds(owner: Connection, holds: Sequence[UUID], *, seconds: float) -> None:
    """Let holds have been made earlier by so much: their end is nearer by as much, or past."""
    async with as_registry(owner):
        await owner.execute(
            "update seat_holds set created_at = created_at - make_interval(secs => $2),"
            " initial_expires_at = initial_expires_at - make_interval(secs => $2),"
            " expires_at = expires_at - make_interval(secs => $2) where id = any ($1)",
            holds,
            seconds,
        )
        await owner.execute(
            "update event_seats s set held_until = h.expires_at, locked_at = h.created_at"
            " from seat_holds h where h.id = any ($1) and s.hold_id = h.id and s.event_id = h.event_id",
            holds,
        )
        await move_recorded_ends(owner, holds)


@contextlib.asynccontextmanager
async def connect_owner(servers: Embedded, name: str) -> AsyncIterator[Connection]:
    """A connection that may become the registry; the application's cannot."""
    conn = await asyncpg.connect(servers.postgres_url(schema.OWNER, name))
    try:
        yield conn
    finally:
        conn.terminate()


@contextlib.asynccontextmanager
async def connect_application(servers: Embedded, name: str) -> AsyncIterator[Connection]:
    """A bare connection of the application's role."""
    conn = await asyncpg.connect(servers.postgres_url(schema.APP, name))
    try:
        yield conn
    finally:
        conn.terminate()
