"""A box office in a database of its own: the registry's functions called directly, without a queue in between.

Its clock can be frozen. Then a test sets the time itself and can look at the last microsecond before a moment, the
moment, and the first microsecond after it. A clock of that name stands before PostgreSQL's own on the search path of
the database and of every function, so nothing of the product's text is changed.
"""

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import asyncpg

from tests.conftest import TEMPLATE
from tests.make.accounts import make_organization
from tests.make.holds import everything_of
from tests.make.races import connect_owner, database_alone, event_in, hall_layout
from tests.make.seating import Seated, as_registry, seated_event
from voelgoed.accounts.model import Organization, Role
from voelgoed.config import Settings
from voelgoed.db import Connection, Database
from voelgoed.embedded import Embedded
from voelgoed.events.model import OPERATOR
from voelgoed.holds import registry, store
from voelgoed.holds.model import GRANTED, Ask, Item, Outcome, Verdict
from voelgoed.ids import new_id
from voelgoed.journal.model import Origin
from voelgoed.seating import policies
from voelgoed.seating.overlay import Overlay
from voelgoed.seating.studio import Studio
from voelgoed.wiring import Services

WHEELCHAIRS, SEATS = 12, 90
FLOOR, PIT = "P1", "P2"
"""Two zones without numbered seats: one with room for everybody, one with room for a few."""
FLOOR_CAPACITY, PIT_CAPACITY = 500, 6
TICK = timedelta(microseconds=1)
"""The smallest step of PostgreSQL's clock."""

FREEZE = """
create schema frozen;
create table frozen.clock (shows timestamptz not null);
insert into frozen.clock values (pg_catalog.clock_timestamp());
create function frozen.clock_timestamp() returns timestamptz language sql volatile as 'select shows from frozen.clock';
create function frozen.now() returns timestamptz language sql stable as 'select shows from frozen.clock';
grant usage on schema frozen to public;
grant select on frozen.clock to public;
do $$
declare
  path constant text := 'frozen, pg_catalog, public, pg_temp';
  one regprocedure;
begin
  execute format('alter database %I set search_path = %s', current_database(), path);
  for one in select p.oid::regprocedure from pg_proc p
              where p.pronamespace = 'public'::regnamespace
                and exists (select from unnest(p.proconfig) as setting where setting like 'search_path=%')
  loop
    execute format('alter routine %s set search_path = %s', one, path);
  end loop;
end
$$;
"""

Plant = Callable[[Connection], Awaitable[None]]
"""Changes the functions of a database before the application connects."""


@dataclass(slots=True)
class BoxOffice:
    """An organization with one event on sale, and the calls that a test makes there."""

    servers: Embedded
    database: str
    db: Database
    owner: Connection
    studio: Studio
    organization: Organization
    seated: Seated
    _given: dict[bool, int] = field(default_factory=lambda: {False: WHEELCHAIRS, True: 0})

    @property
    def event_id(self) -> UUID:
        return self.seated.event.id

    def zone(self, code: str = FLOOR) -> UUID:
        return self.seated.hall.zone_id(code)

    def seats(self, count: int = 1, *, wheelchair: bool = False) -> list[UUID]:
        """Return seats that this test has not used yet."""
        first = self._given[wheelchair]
        self._given[wheelchair] = first + count
        assert self._given[wheelchair] <= (WHEELCHAIRS if wheelchair else SEATS), "the hall has no more seats"
        return [self.seated.hall.seat_id(ordinal) for ordinal in range(first, first + count)]

    # Time

    async def now(self) -> datetime:
        async with self.db.system_transaction() as conn:
            return await store.read_clock(conn)

    async def set_clock(self, at: datetime) -> None:
        assert await self.owner.execute("update frozen.clock set shows = $1", at) == "UPDATE 1"

    async def reset_clock(self) -> None:
        """Let the frozen clock show the time that it really is."""
        await self.owner.execute("update frozen.clock set shows = pg_catalog.clock_timestamp()")

    async def advance(self, **by: float) -> datetime:
        """Let time pass; return the time it is then."""
        at = await self.now() + timedelta(**by)
        await self.set_clock(at)
        return at

    # Set-up

    async def new_organization(self, *, overrides: Mapping[str, object] | None = None) -> "BoxOffice":
        """Another organization in the same database, with the same hall. `overrides` are its event's own limits."""
        organization = await make_organization(self.db)
        overlay = Overlay(seating_overrides=overrides) if overrides else None
        seated = await _on_sale(self.studio, organization, overlay)
        return replace(self, organization=organization, seated=seated, _given={False: WHEELCHAIRS, True: 0})

    async def new_event(self) -> "BoxOffice":
        """Another event of the organization, in the same hall."""
        seated = await event_in(self.studio, self.organization, self.seated)
        return replace(self, seated=seated, _given={False: WHEELCHAIRS, True: 0})

    async def allow(self, **limits: object) -> None:
        """Change the organization's policy."""
        async with self.db.transaction(self.organization.id) as conn:
            await policies.save(
                conn, self.organization.id, limits, by=OPERATOR, role=Role.SUPER_ADMIN, reason="in a test"
            )

    async def set_event(self, **values: object) -> None:
        """Change the event, past every rule of its lifecycle."""
        columns = ", ".join(f"{name} = ${number}" for number, name in enumerate(values, 2))
        async with self.db.transaction(self.organization.id) as conn:
            done = await conn.execute(
                f"update events set {columns}, version = version + 1 where id = $1", self.event_id, *values.values()
            )
        assert done == "UPDATE 1"

    async def set_zone(self, code: str, **values: object) -> None:
        """Change a zone of the event, past every rule about zones."""
        columns = ", ".join(f"{name} = ${number}" for number, name in enumerate(values, 3))
        async with as_registry(self.owner):
            done = await self.owner.execute(
                f"update event_zones set {columns} where event_id = $1 and zone_id = $2",
                self.event_id,
                self.zone(code),
                *values.values(),
            )
        assert done == "UPDATE 1"

    # Calls

    def ask(self, *seats: UUID, places: int = 0, zone: str = FLOOR, user_id: UUID | None = None, **fields: Any) -> Ask:
        """Build a request for seats, for places in a zone, or both; by a new buyer unless one is named."""
        items = [Item(new_id(), seat_id=seat_id) for seat_id in seats]
        if places:
            items.append(Item(new_id(), zone_id=self.zone(zone), quantity=places))
        known: dict[str, Any] = {
            "organization_id": self.organization.id,
            "event_id": self.event_id,
            "user_id": user_id or new_id(),
            "role": Role.CUSTOMER,
            "is_staff": False,
            "items": tuple(items),
            "cart_token": "basket",
            "source": "web",
            "request_id": new_id(),
            "origin": Origin(),
            "ip": None,
        }
        return Ask(**known | fields)

    async def reserve(self, *asks: Ask) -> list[list[Verdict]]:
        """Send requests in one batch."""
        return await store.reserve_batch(self.db.call, asks)

    async def outcome(self, ask: Ask) -> Outcome:
        """Send one request; return the outcome that all its items have."""
        (verdicts,) = await self.reserve(ask)
        (outcome,) = {verdict.outcome for verdict in verdicts}
        return outcome

    async def hold(self, *seats: UUID, **fields: Any) -> Ask:
        """Hold seats or places; return the request, whose items carry the ids of the holds."""
        ask = self.ask(*seats, **fields)
        (verdicts,) = await self.reserve(ask)
        assert {verdict.outcome for verdict in verdicts} <= GRANTED, verdicts
        return ask

    async def extend(self, ask: Ask) -> list[tuple[str, datetime | None]]:
        rows = await registry.extend(
            self.db, self.organization.id, self.event_id, ask.user_id, hold_ids(ask), by=OPERATOR
        )
        found = {hold_id: (verdict, until) for hold_id, verdict, until in rows}
        return [found[hold_id] for hold_id in hold_ids(ask)]

    async def release(self, *asks: Ask) -> list[str]:
        holds = [hold_id for ask in asks for hold_id in hold_ids(ask)]
        found = await registry.release(
            self.db, self.organization.id, self.event_id, holds, user_id=asks[0].user_id, by=OPERATOR, reason="test"
        )
        return [found[hold_id] for hold_id in holds]

    async def convert(self, ask: Ask, *, is_paid: bool = False, order_id: UUID | None = None) -> str:
        """Sell what a request holds."""
        return await registry.convert(
            self.db,
            self.organization.id,
            self.event_id,
            ask.user_id,
            hold_ids(ask),
            tickets=[new_id() for item in ask.items for _ in range(item.quantity)],
            order_id=order_id or new_id(),
            is_paid=is_paid,
            by=OPERATOR,
        )

    async def hand_over(
        self, guest_id: UUID, user_id: UUID, *, is_guest: bool = True, is_staff: bool = False
    ) -> list[str]:
        """Sign a guest in as `user_id`; return what became of each of their holds, oldest first."""
        async with self.db.transaction(self.organization.id) as conn:
            await conn.execute(
                "insert into users (id, name, is_guest) values ($1, 'G', $2) on conflict do nothing", guest_id, is_guest
            )
            handed = await registry.hand_over(
                conn, self.organization.id, guest_id, user_id, role="customer", is_staff=is_staff, by=OPERATOR
            )
        return [one.verdict for one in handed]

    async def block(self, *seats: UUID) -> list[str]:
        found = await registry.block(
            self.db, self.organization.id, self.event_id, seats, is_block=True, by=OPERATOR, reason="in a test"
        )
        return [found[seat_id] for seat_id in seats]

    async def expire(self) -> int:
        """Run the expiry worker once."""
        return await registry.reap(self.db, by=OPERATOR)

    # What the tables say

    async def everything(self) -> list[list[str]]:
        """Return every seat, zone, hold, ticket and idempotency key of the organization, and its journal's kinds."""
        return await everything_of(self.db, self.organization.id)

    async def holds(self, *asks: Ask) -> list[asyncpg.Record]:
        """Return the holds of requests in the order of their items, or of the whole event, oldest first."""
        ids = [hold_id for ask in asks for hold_id in hold_ids(ask)]
        async with self.db.transaction(self.organization.id) as conn:
            rows = await conn.fetch(
                "select *, status::text as state from seat_holds where event_id = $1 order by created_at, id",
                self.event_id,
            )
        found = {row["id"]: row for row in rows}
        return [found[hold_id] for hold_id in ids] if asks else rows

    async def states(self, *asks: Ask) -> list[str]:
        return [row["state"] for row in await self.holds(*asks)]

    async def active(self, user_id: UUID) -> int:
        """Count the seats and places that a buyer holds, expired ones that are still marked active included."""
        return sum(
            row["quantity"] for row in await self.holds() if (row["user_id"], row["state"]) == (user_id, "active")
        )


def hold_ids(ask: Ask) -> list[UUID]:
    return [item.hold_id for item in ask.items]


@contextlib.asynccontextmanager
async def open_office(
    servers: Embedded,
    settings: Settings,
    services: Services,
    name: str,
    *,
    is_frozen: bool = False,
    plants: Sequence[Plant] = (),
) -> AsyncIterator[BoxOffice]:
    """Open a box office in a new database, with a frozen clock and with changed functions where that is wanted."""
    async with contextlib.AsyncExitStack() as opened:
        alone = await opened.enter_async_context(database_alone(servers, settings, TEMPLATE, name))
        async with connect_owner(servers, name) as owner:
            if is_frozen:
                await owner.execute(FREEZE)
            for plant in plants:
                await plant(owner)
        assert alone.database_url is not None
        db = await Database.open(alone.database_url.get_secret_value(), size=4)
        opened.push_async_callback(db.close)
        owner = await opened.enter_async_context(connect_owner(servers, name))
        studio, organization = Studio(db, services.cache), await make_organization(db)
        seated = await _on_sale(studio, organization)
        office = BoxOffice(servers, name, db, owner, studio, organization, seated)
        if is_frozen:
            assert await office.now() == await office.now(), "the clock is not frozen"
        yield office


async def _on_sale(studio: Studio, organization: Organization, overlay: Overlay | None = None) -> Seated:
    layout = hall_layout(seats=SEATS, wheelchairs=WHEELCHAIRS, pits=(FLOOR_CAPACITY, PIT_CAPACITY))
    return await seated_event(studio.db, studio, organization, layout, overlay=overlay, status="published")
