"""Holds and what comes of them, for tests: a hall on sale, buyers, time that has passed, tickets."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import asyncpg

from tests.make import passing
from tests.make.events import call_of
from tests.make.seating import Seated, as_registry, move_recorded_ends, seat_rows, seated_event
from voelgoed.accounts.model import Call, Organization, Role
from voelgoed.db import Connection, Database
from voelgoed.events.model import OPERATOR, Event
from voelgoed.holds import booking, registry, store
from voelgoed.holds.booking import Held
from voelgoed.holds.model import Ask, Item
from voelgoed.ids import OrganizationId, new_id
from voelgoed.journal import origins
from voelgoed.journal.model import Origin
from voelgoed.wiring import Services


@dataclass(frozen=True, slots=True, kw_only=True)
class Sale:
    """An event in the small hall, on sale, and what people do there."""

    services: Services
    place: Organization
    seated: Seated

    @property
    def db(self) -> Database:
        return self.services.db

    @property
    def event(self) -> Event:
        return self.seated.event

    def seat(self, code: str) -> UUID:
        return self.seated.hall.seat_id(self.seated.ordinal(code))

    def zone(self, code: str = "P") -> UUID:
        return self.seated.hall.zone_id(code)

    def caller(self, role: Role = Role.CUSTOMER, user_id: UUID | None = None) -> Call:
        return call_of(self.place, role, user_id)

    async def hold(self, call: Call, *codes: str, **asked: Any) -> list[Held]:
        seats = [self.seat(code) for code in codes]
        return await booking.reserve_seats(self.services.lanes, self.db, call, self.event.id, seats, **asked)

    async def hold_places(self, call: Call, quantity: int, zone: str = "P", **asked: Any) -> Held:
        return await booking.reserve_places(
            self.services.lanes, self.db, call, self.event.id, self.zone(zone), quantity, **asked
        )

    async def buy(self, call: Call, *held: Held, is_paid: bool = False) -> tuple[str, list[UUID]]:
        """Make tickets of holds: what is said, and their ids."""
        assert call.actor.user_id is not None
        tickets = [new_id() for one in held for _ in range(one.hold.quantity)]
        said = await registry.convert(
            self.db,
            self.place.id,
            self.event.id,
            call.actor.user_id,
            [one.hold.id for one in held],
            tickets=tickets,
            order_id=new_id(),
            is_paid=is_paid,
            by=OPERATOR,
        )
        passing.let(2)
        return said, tickets

    async def block(self, *codes: str, is_blocked: bool = True, reason: str | None = None) -> dict[str, str]:
        """Take seats out of sale by hand, or put them back; what is said to each, by its code."""
        said = await booking.set_blocked(
            self.services.lanes,
            self.db,
            self.caller(Role.ADMIN),
            self.event.id,
            [self.seat(code) for code in codes],
            is_blocked=is_blocked,
            reason=reason,
        )
        return {code: said[self.seat(code)] for code in codes}

    async def row(self, code: str) -> asyncpg.Record:
        """A seat as it stands in the table."""
        return (await seat_rows(self.db, self.event))[self.seated.ordinal(code)]

    async def rows(self) -> list[asyncpg.Record]:
        """Every hold of the event as it stands in the table, oldest first."""
        async with self.db.transaction(self.place.id) as conn:
            return await conn.fetch(
                "select * from seat_holds where event_id = $1 order by created_at, id", self.event.id
            )


async def on_sale(services: Services, place: Organization, **fields: Any) -> Sale:
    """An event in the small hall that can be bought."""
    seated = await seated_event(services.db, services.studio, place, **{"status": "published", **fields})
    return Sale(services=services, place=place, seated=seated)


async def hold_directly(db: Database, seated: Seated, user_id: UUID, *codes: str) -> list[UUID]:
    """Holds of seats, by a call of the registry's function and nothing else; their ids."""
    items = tuple(Item(new_id(), seat_id=seated.hall.seat_id(seated.ordinal(code))) for code in codes)
    origin = Origin()
    ask = Ask(
        organization_id=seated.organization_id,
        event_id=seated.event.id,
        user_id=user_id,
        role=Role.CUSTOMER,
        is_staff=True,  # nobody counts how many
        items=items,
        cart_token="cart",
        source="web",
        request_id=new_id(),
        origin=origin,
        ip=None,
    )
    await origins.remember(db, seated.organization_id, [origin])
    (said,) = await store.reserve_batch(db.call, [ask])
    assert {one.outcome for one in said} == {"created"}, said
    return [item.hold_id for item in items]


async def let_pass(owner: Connection, *holds: UUID, minutes: float = 30) -> None:
    """Let so much time have passed for some holds: everything they say of time was earlier."""
    async with as_registry(owner) as conn:
        done = await conn.execute(
            "update seat_holds set created_at = created_at - make_interval(secs => $2),"
            " initial_expires_at = initial_expires_at - make_interval(secs => $2),"
            " expires_at = expires_at - make_interval(secs => $2), ended_at = ended_at - make_interval(secs => $2)"
            " where id = any ($1)",
            holds,
            minutes * 60,
        )
        assert done == f"UPDATE {len(holds)}"
        await conn.execute(
            "update event_seats s set held_until = h.expires_at from seat_holds h"
            " where s.hold_id = h.id and h.id = any ($1)",
            holds,
        )
        await move_recorded_ends(conn, holds)
    passing.let(minutes * 60)


async def end_now(owner: Connection, *holds: UUID) -> None:
    """Make holds end now, and leave the time of their beginning as it is."""
    async with as_registry(owner) as conn:
        await conn.execute(
            "update seat_holds set initial_expires_at = now(), expires_at = now() where id = any ($1)", holds
        )
        await conn.execute(
            "update event_seats s set held_until = h.expires_at from seat_holds h"
            " where s.hold_id = h.id and h.id = any ($1)",
            holds,
        )
        await move_recorded_ends(conn, holds)


async def everything_of(db: Database, organization_id: OrganizationId) -> list[list[str]]:
    """Everything there is of an organization's places, holds and tickets, and how much was told of it."""
    tables = ("event_seats", "event_zones", "seat_holds", "tickets", "idempotency_keys")
    async with db.transaction(organization_id) as conn:
        rows = [await conn.fetch(f"select t::text from {table} t") for table in tables]
        told = await conn.fetch("select kind from journal where kind <> 'seat_reserve_failed' order by seq")
    return [*(sorted(row[0] for row in some) for some in rows), [row["kind"] for row in told]]


def moment(text: str) -> datetime:
    """A time as the contract has it: ISO 8601, in UTC, said with a Z."""
    assert text.endswith("Z"), text
    return datetime.fromisoformat(text).astimezone(UTC)
