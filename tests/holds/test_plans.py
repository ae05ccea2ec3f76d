"""What a call reads does not depend on the figures that PostgreSQL has of its tables.

A sale begins, and within a minute an event has thousands of holds of which the figures know nothing: by them hardly any
hold is active, an event has few, an organization has few. Or they are true, and most events are small: then this one is
taken for small as well. A plan that trusts them walks all holds or all seats of the event for every call.
"""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final
from uuid import UUID

import asyncpg
import pytest

from tests.make.holds import Sale, on_sale
from voelgoed.accounts.model import Organization, Role
from voelgoed.db import Connection
from voelgoed.embedded import Embedded
from voelgoed.holds import store
from voelgoed.holds.model import Ask, Item
from voelgoed.ids import new_id
from voelgoed.journal import origins
from voelgoed.journal.model import Origin
from voelgoed.seating.generate import generate
from voelgoed.seating.spec import RowsSpec, Spec
from voelgoed.wiring import Services

SECTIONS: Final = tuple(
    RowsSpec(
        code=f"S{number}",
        name=f"Section {number}",
        rows=20,
        seats=50,
        distance=2_000 * (number + 1),
        wheelchair_spaces=1,
    )
    for number in range(15)
)
HELD: Final = 3_000

YESTERDAYS: Final = (
    "insert into seat_holds (id, organization_id, event_id, zone_id, seat_id, user_id, cart_token, created_at,"
    " initial_expires_at, expires_at, status, ended_at)"
    " select gen_random_uuid(), md5('o' || i % 300)::uuid, md5('e' || i % 1000)::uuid, gen_random_uuid(),"
    " gen_random_uuid(), md5('u' || i % 5)::uuid, 'c', now() - interval '1 day', now() - interval '23 hours',"
    " now() - interval '23 hours', 'expired', now() - interval '23 hours' from generate_series(1, 2000) as i"
)
OTHER_EVENTS: Final = (
    "insert into event_seats (organization_id, event_id, ordinal, seat_id, zone_id)"
    " select md5('o' || i % 300)::uuid, md5('e' || i % $1::integer)::uuid, i, gen_random_uuid(), gen_random_uuid()"
    " from generate_series(1, 20000) as i"
)
TODAYS_SEATS: Final = (
    "update event_seats set status = 'held', version = 2, hold_id = gen_random_uuid(), held_by = gen_random_uuid(),"
    " locked_at = now(), held_until = now() + case when ordinal % 10 = 0 then interval '-1 second' else '9 minutes' end"
    " where event_id = $1 and ordinal < $2"
)
TODAYS: Final = (
    "insert into seat_holds (id, organization_id, event_id, zone_id, seat_id, user_id, cart_token, created_at,"
    " initial_expires_at, expires_at) select hold_id, organization_id, event_id, zone_id, seat_id, held_by, 'c',"
    " held_until - interval '10 minutes', held_until, held_until from event_seats where event_id = $1 and ordinal < $2"
)
ANALYZE: Final = "analyze seat_holds, event_seats, event_zones, tickets"
FORGET: Final = (
    "delete from pg_statistic where starelid in (select unnest('{seat_holds,event_seats,tickets}'::regclass[]))"
)
PLAN: Final = "explain (analyze, buffers, format json) "


class Crowd:
    """An event with thousands of holds, in a transaction that nobody sees the end of: its figures go with it."""

    def __init__(self, sale: Sale, admin: Connection, origin: Origin) -> None:
        self.sale, self.admin, self.origin = sale, admin, origin
        self.key = (sale.place.id, sale.event.id)
        self.held: list[asyncpg.Record] = []
        self.free: list[UUID] = []
        self.wheelchairs: list[UUID] = []

    async def arrive(self) -> None:
        await self.admin.execute(TODAYS_SEATS, self.sale.event.id, HELD)
        await self.admin.execute(TODAYS, self.sale.event.id, HELD)
        seats = await self.admin.fetch(
            "select seat_id, is_wheelchair, hold_id, held_by, held_until > now() as is_live from event_seats"
            " where event_id = $1 order by md5(ordinal::text)",
            self.sale.event.id,
        )
        self.held = [row for row in seats if row["is_live"]]
        self.free = [row["seat_id"] for row in seats if row["hold_id"] is None and not row["is_wheelchair"]]
        self.wheelchairs = [row["seat_id"] for row in seats if row["hold_id"] is None and row["is_wheelchair"]]

    async def read(self, query: str, *values: object) -> int:
        """How many pages a question reads, asked as the application asks it."""
        await self.admin.execute("set local session authorization voelgoed_app")
        told = json.loads(await self.admin.fetchval(PLAN + query, *values))
        await self.admin.execute("set local session authorization postgres")
        plan = told[0]["Plan"]
        assert plan["Actual Rows"] >= 1
        pages: int = plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]
        return pages

    async def facts(self) -> int:
        """How much was told of the event: that a call did what it is for."""
        return int(await self.admin.fetchval("select count(*) from journal where event_id = $1", self.sale.event.id))

    async def reserve(self, *seats: UUID) -> int:
        """The pages of a batch in which different people ask for a seat each."""
        asks = [
            Ask(
                organization_id=self.sale.place.id,
                event_id=self.sale.event.id,
                user_id=self.held.pop()["held_by"],
                role=Role.CUSTOMER,
                is_staff=False,
                items=(Item(new_id(), seat_id=seat),),
                cart_token="cart",
                source="web",
                request_id=new_id(),
                origin=self.origin,
                ip=None,
            )
            for seat in seats
        ]
        pages = 0

        async def asked(query: str, *values: object, **_: object) -> list[asyncpg.Record]:
            nonlocal pages
            pages = await self.read(query, *values)
            return []

        await store.reserve_batch(asked, asks)  # explained, not answered
        return pages

    async def extend(self) -> int:
        one = self.held.pop()
        return await self.read(store.Q["extend_holds"], *self.key, one["held_by"], [one["hold_id"]], None, None)

    async def release(self) -> int:
        one = self.held.pop()
        return await self.read(
            store.Q["release_holds"], *self.key, one["held_by"], [one["hold_id"]], one["held_by"], None, None, "x"
        )

    async def convert(self) -> int:
        one, is_paid = self.held.pop(), False
        return await self.read(
            store.Q["convert_holds"],
            *self.key,
            one["held_by"],
            [one["hold_id"]],
            [new_id()],
            [new_id()],
            new_id(),
            is_paid,
            None,
            None,
            None,
        )

    async def block(self) -> int:
        seat = self.held.pop()["seat_id"]
        is_block = True
        return await self.read(store.Q["block_seats"], *self.key, [seat], is_block, new_id(), None, None, "x")

    async def expire(self) -> int:
        return await self.read(store.Q["expire_holds"], *self.key, 10, None)

    async def release_all(self) -> int:
        return await self.read(store.Q["release_all_holds"], *self.key, 10, None, None, "x")

    async def hand_over(self) -> int:
        guest, is_staff = self.held.pop()["held_by"], False
        await self.admin.execute("insert into users (id, name, is_guest) values ($1, 'Guest', true)", guest)
        return await self.read(
            store.Q["hand_over_holds"], self.sale.place.id, guest, new_id(), "customer", is_staff, 50, None, None
        )

    async def find(self) -> int:
        return await self.read(
            store.Q["find_holds"], self.sale.place.id, [self.held.pop()["hold_id"] for _ in range(10)]
        )

    async def basket(self) -> int:
        return await self.read(
            store.Q["list_holds_of_user"], self.sale.place.id, self.held.pop()["held_by"], self.sale.event.id, 200
        )


# Each with how much it tells, and the pages it may read: a walk through all holds of the event is a hundred more, one
# through its seats five hundred. Without such a walk they are three quarters of these, whatever the figures.
CALLS: Final[dict[str, tuple[Callable[[Crowd], Awaitable[int]], int, int]]] = {
    "reserve": (lambda crowd: crowd.reserve(crowd.free.pop()), 1, 70),
    "reserve many": (lambda crowd: crowd.reserve(*(crowd.free.pop() for _ in range(40))), 40, 1_700),
    "reserve a wheelchair space": (lambda crowd: crowd.reserve(crowd.wheelchairs.pop()), 1, 85),
    "extend": (Crowd.extend, 1, 90),
    "release": (Crowd.release, 1, 80),
    "convert": (Crowd.convert, 1, 100),
    "block": (Crowd.block, 2, 120),
    "expire": (Crowd.expire, 10, 600),
    "release all": (Crowd.release_all, 10, 850),
    "hand over": (Crowd.hand_over, 1, 120),
    "find": (Crowd.find, 0, 45),
    "basket": (Crowd.basket, 0, 10),
}


@pytest.fixture
async def crowd(
    services: Services, place: Organization, servers: Embedded, database: str, request: pytest.FixtureRequest
) -> AsyncIterator[Crowd]:
    """Yesterday's holds, figures about them or none, and today's holds."""
    figures = getattr(request, "param", "of yesterday")
    sale = await on_sale(services, place, layout=generate(Spec(name="Hall", blocks=SECTIONS)))
    origin = Origin()
    await origins.remember(services.db, place.id, [origin])
    admin = await asyncpg.connect(servers.postgres_url("postgres", database))
    try:
        await admin.execute("vacuum seat_holds, event_seats")  # what the last test left: planning looks at it
        await admin.execute("begin")
        await admin.execute("delete from seat_holds")
        await admin.execute("create temp table hall as select * from event_seats where event_id = $1", sale.event.id)
        await admin.execute("delete from event_seats")
        await admin.execute(YESTERDAYS)
        await admin.execute(OTHER_EVENTS, 4_000 if figures == "of small events" else 20)
        await admin.execute(ANALYZE)
        await admin.execute("insert into event_seats select * from hall")
        if figures == "none":
            await admin.execute(FORGET)
        made = Crowd(sale, admin, origin)
        await made.arrive()
        await admin.execute("select set_config('app.organization_id', $1, true)", str(place.id))
        yield made
    finally:
        await admin.close()  # and everything is as it was


@pytest.mark.req("REG-39")
@pytest.mark.parametrize("crowd", ["none", "of yesterday", "of small events"], indirect=True)
@pytest.mark.parametrize("name", CALLS)
async def test_no_call_is_dearer_by_what_the_figures_are(crowd: Crowd, name: str) -> None:
    """The second of two calls, so that neither pays for being planned; then with figures of what is there."""
    call, told, most = CALLS[name]

    async def second() -> int:
        await call(crowd)
        before = await crowd.facts()
        pages = await call(crowd)
        assert await crowd.facts() - before == told
        return pages

    assert await second() <= most
    await crowd.admin.execute(ANALYZE)
    assert await second() <= most


async def test_settings_of_whoever_calls_do_not_stay_in_a_plan(crowd: Crowd) -> None:
    """A plan is kept by its connection: one that was made without nested loops must not be found by the next caller."""
    await crowd.admin.execute("set local enable_nestloop = off")
    await crowd.release()
    await crowd.admin.execute("set local enable_nestloop = on")
    assert await crowd.release() <= CALLS["release"][2]
