"""Nobody, one or three tidy up, or one dies in the middle of it: what is shown may be late, nothing is wrong."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from uuid import UUID

import asyncpg
import pytest

from tests.conftest import SECRET_KEY, TEMPLATE
from tests.make import passing
from tests.make.accounts import make_organization
from tests.make.holds import Sale, let_pass, on_sale
from tests.make.races import connect_owner, database_alone
from voelgoed import schema
from voelgoed.accounts.model import Role
from voelgoed.config import Settings
from voelgoed.db import Connection, Database
from voelgoed.embedded import Embedded
from voelgoed.events.model import CLOCK
from voelgoed.holds import auditing, registry
from voelgoed.holds.following import Follower
from voelgoed.jobs import worker
from voelgoed.redis import RedisLink
from voelgoed.telemetry import metrics
from voelgoed.wiring import Services, build_services

pytestmark = pytest.mark.timeout(120)

WITHIN_S = 30
SEATS = ("S-A-1", "S-A-2", "S-A-3", "S-A-4", "S-B-1", "S-B-2", "S-B-3", "S-B-4")
SLOW = """
create function tidy_slowly() returns trigger language plpgsql as $$
begin
  if new.status = 'expired' then perform pg_sleep(0.3); end if;
  return new;
end $$;
create trigger tidy_slowly before update on seat_holds for each row execute function tidy_slowly();
"""
POISON = """
create function choke() returns trigger language plpgsql as $$
begin
  if new.status = 'expired' and new.event_id = '{event}' then raise exception 'choked'; end if;
  return new;
end $$;
create trigger choke before update on seat_holds for each row execute function choke();
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class House:
    """A process without Redis, in a database where nobody else tidies up."""

    servers: Embedded
    name: str
    services: Services
    follower: Follower
    owner: Connection
    sale: Sale

    @property
    def db(self) -> Database:
        return self.services.db

    async def lapsed(self, *codes: str, sale: Sale | None = None) -> list[UUID]:
        """Seats, and two places of the pit, that somebody held until a moment ago; the holds."""
        sale = sale or self.sale
        held = [one for code in codes for one in await sale.hold(sale.caller(Role.STAFF), code)]
        held.append(await sale.hold_places(sale.caller(Role.STAFF), 2))
        holds = [one.hold.id for one in held]
        await self.services.availability.load(sale.place.id, sale.event.id)
        await let_pass(self.owner, *holds)
        return holds

    async def statuses(self, holds: list[UUID]) -> list[str]:
        """What has become of holds."""
        async with self.db.system_transaction() as conn:
            rows = await conn.fetch("select id, status::text from seat_holds where id = any ($1)", holds)
        found = {row["id"]: row["status"] for row in rows}
        return [found[hold_id] for hold_id in holds]

    async def shown(self) -> tuple[int, int]:
        """How many the map shows as held and as free, once it has heard everything."""
        await self.follower.tick()
        counts = (await self.services.availability.map_of(self.sale.place.id, self.sale.event.id)).counts()
        return counts.held, counts.available

    async def shows(self, held: int) -> None:
        """Wait until the map shows so many held: readers of the journal wait for every transaction of the server."""
        async with asyncio.timeout(WITHIN_S):
            while (await self.shown())[0] != held:
                await asyncio.sleep(0.02)

    async def is_sound(self) -> None:
        assert await auditing.verify(self.db) == []


@pytest.fixture
async def house(servers: Embedded, settings: Settings) -> AsyncIterator[House]:
    name = f"reapers_{settings.port}"
    async with contextlib.AsyncExitStack() as held:
        alone = await held.enter_async_context(database_alone(servers, settings, TEMPLATE, name))
        owner = await held.enter_async_context(connect_owner(servers, name))
        db = await Database.open(servers.postgres_url(schema.APP, name), size=8)
        held.push_async_callback(db.close)
        link = await held.enter_async_context(RedisLink("redis://127.0.0.1:1"))  # nobody is there
        services = build_services(alone, db, link, SECRET_KEY, clock=passing.clock)
        held.push_async_callback(services.availability.close)
        held.push_async_callback(services.lanes.close)
        held.callback(services.door.passwords.close)
        sale = await on_sale(services, await make_organization(db))
        follower = Follower(db, link, services.availability, services.projection)
        await follower.tick()
        yield House(servers=servers, name=name, services=services, follower=follower, owner=owner, sale=sale)


async def reap(house: House) -> int:
    return await registry.reap(house.db, by=CLOCK)


def sample(name: str, **labels: str) -> float:
    return metrics.REGISTRY.get_sample_value(f"voelgoedevents_{name}", labels) or 0.0


async def test_without_a_reaper_lapsed_places_are_sold_at_once(house: House) -> None:
    """Whoever asks takes them over; what nobody asks for is shown as held until somebody tidies up."""
    holds = await house.lapsed(*SEATS[:4])
    await house.shows(4 + 2)  # late
    (held,) = await house.sale.hold(house.sale.caller(), SEATS[0])
    ben = house.sale.caller()
    (other,) = await house.sale.hold(ben, SEATS[1])
    assert (await house.sale.buy(ben, other))[0] == "sold"
    await house.sale.hold_places(house.sale.caller(), 3)
    assert held.is_new
    assert await house.statuses(holds) == ["expired"] * 2 + ["active"] * 3
    await house.is_sound()
    assert await reap(house) == 3
    await house.shows(1 + 3)
    await house.is_sound()


@pytest.mark.req("REAP-09")
@pytest.mark.parametrize("count", [1, 3])
async def test_one_and_three_at_once_tidy_each_hold_once(house: House, count: int) -> None:
    """Redis is away all the while, which is no concern of theirs."""
    holds = await house.lapsed(*SEATS)
    took_over = house.sale.caller()
    done = await asyncio.gather(*(reap(house) for _ in range(count)), house.sale.hold(took_over, SEATS[0]))
    assert sum(part for part in done if isinstance(part, int)) in (len(holds) - 1, len(holds))
    assert await house.statuses(holds) == ["expired"] * len(holds)
    async with house.db.system_transaction() as conn:
        told = await conn.fetch("select data ->> 'hold_id' as id from journal where kind = 'seat_hold_expired'")
    assert sorted(UUID(row["id"]) for row in told) == sorted(holds)
    await house.shows(1)
    await house.is_sound()


@pytest.mark.parametrize("way", ["pg_cancel_backend", "pg_terminate_backend"])
async def test_killed_in_the_middle_nothing_is_half_done(house: House, way: str) -> None:
    """All of a call or nothing: the seats can be sold meanwhile, and the next run tidies what was left."""
    holds = await house.lapsed(*SEATS)
    await house.owner.execute(SLOW)
    before = sample("reaper_runs_total", outcome="failed")
    reaping = asyncio.create_task(reap(house))
    admin = await asyncpg.connect(house.servers.admin_url)
    try:
        ended = f"select {way}(pid) from pg_stat_activity where datname = $1 and wait_event = 'PgSleep'"
        async with asyncio.timeout(WITHIN_S):
            while not await admin.fetch(ended, house.name):
                await asyncio.sleep(0.01)
    finally:
        await admin.close()
    await reaping
    failed, left = sample("reaper_runs_total", outcome="failed") - before, set(await house.statuses(holds))
    assert (failed, left) in (
        (1, {"active"}),
        (0, {"expired"}),
    )  # left, or tried again and done
    await house.owner.execute("drop function tidy_slowly cascade")
    await house.is_sound()
    (held,) = await house.sale.hold(house.sale.caller(), SEATS[0])
    assert held.is_new
    await reap(house)
    assert await house.statuses(holds) == ["expired"] * len(holds)
    await house.shows(1)
    await house.is_sound()


@pytest.mark.req("REAP-10")
async def test_what_fails_is_counted_and_keeps_nobody_else(house: House) -> None:
    """A hold at one event cannot be tidied away: those of others are, and it is tried again."""
    other = await on_sale(house.services, house.sale.place)
    poisoned = await house.lapsed(SEATS[0])
    holds = await house.lapsed(SEATS[0], SEATS[1], sale=other)
    await house.owner.execute(POISON.format(event=house.sale.event.id))
    failed = sample("reaper_runs_total", outcome="failed")
    assert await reap(house) == len(holds)
    assert sample("reaper_runs_total", outcome="failed") == failed + 1
    assert await house.statuses(poisoned + holds) == ["active"] * 2 + ["expired"] * 3
    await house.owner.execute("drop function choke cascade")
    assert await reap(house) == len(poisoned)
    assert sample("reaper_runs_total", outcome="failed") == failed + 1
    await house.is_sound()


@pytest.mark.req("REAP-14")
async def test_a_hold_that_lapses_at_the_till_becomes_no_ticket(house: House) -> None:
    """Not before anybody has tidied up, and not after it."""
    anna = house.sale.caller(Role.STAFF)
    first, second = await house.sale.hold(anna, SEATS[0], SEATS[1])
    await let_pass(house.owner, first.hold.id, second.hold.id)
    assert (await house.sale.buy(anna, first))[0] != "sold"
    await reap(house)
    assert (await house.sale.buy(anna, second))[0] != "sold"
    async with house.db.system_transaction() as conn:
        assert await conn.fetchval("select count(*) from tickets") == 0
    assert [(await house.sale.row(code))["status"] for code in SEATS[:2]] == ["available"] * 2
    await house.is_sound()


@pytest.mark.req("REG-35")
async def test_the_worker_tidies_up_every_two_seconds(house: House) -> None:
    """The duty is there, often enough for a minute, and running it again by hand is harmless."""
    holds = await house.lapsed(SEATS[0])
    (duty,) = [loop for loop in worker.loops(house.services) if loop.name == "reap_holds"]
    assert duty.pace_s <= 30
    await duty.tick()
    await duty.tick()
    assert await house.statuses(holds) == ["expired"] * 2
    await house.shows(0)
