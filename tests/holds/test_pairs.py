"""Two operations at one place: whatever the order of their steps, it ends as one after the other would have.

Each pair is stepped through by hand: two sessions of the application, each in a transaction of its own, and PostgreSQL
is asked whether the second waits for the first. What must come of it is said by a small model of a place, which knows
nothing of locks. Then the same operations race for real, many at a time.
"""

import asyncio
import contextlib
import itertools
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final
from uuid import UUID

import asyncpg
import pytest
from msgspec import structs

from tests.conftest import TEMPLATE
from tests.make.accounts import make_organization
from tests.make.events import call_of
from tests.make.races import (
    Process,
    age_holds,
    buyer,
    connect_application,
    connect_owner,
    database_alone,
    event_in,
    hall_layout,
    process,
    seat_ids,
)
from tests.make.seating import Seated, seated_event
from voelgoed.accounts.model import Call, Organization, Role
from voelgoed.cache import Cache
from voelgoed.config import Settings
from voelgoed.db import Connection
from voelgoed.embedded import Embedded
from voelgoed.errors import DomainError, LostRace, OutcomeUnknown
from voelgoed.events import lifecycle
from voelgoed.events.model import OPERATOR, Order, Verb
from voelgoed.holds import auditing, booking, operator, registry, store
from voelgoed.holds.model import Ask, Item
from voelgoed.ids import new_id
from voelgoed.journal.model import Origin
from voelgoed.redis import RedisLink
from voelgoed.seating.studio import Studio

STATES: Final = ("live", "lapsed", "free")
ORDERS: Final = ("one_after_the_other", "at_once", "second_ends_first", "first_is_undone")
CASES: Final = tuple(itertools.product(STATES, ORDERS))
PIT_PLACES: Final = 3
ASKED_PLACES: Final = 2  # two of them do not fit beside each other
LAPSED_S: Final = 3_600
STANDS_ASIDE: Final = frozenset({"busy", "0"})
"""What is said by those who never wait: whoever reserves comes again, whoever tidies leaves it to the other."""


# The model of a place: what each operation says and leaves behind, when nobody else is there.


@dataclass(frozen=True, slots=True)
class Place:
    """A seat, or a pit with room for one of two: the owner's first hold, who has it now, whether the event is sold."""

    is_pit: bool
    first: str  # what the owner's first hold is: active, expired, cancelled, converted
    owner: str = "owner"  # whose it is: the heir's, once the owner has signed in as somebody
    is_lapsed: bool = False
    is_extended: bool = False
    state: str = "free"  # of a seat: free, held, sold, blocked; of a pit what the first hold does not tell
    holder: str | None = None  # when it is not the first hold: whose
    is_late: bool = False
    is_on: bool = True

    @property
    def is_live(self) -> bool:
        return self.first == "active" and not self.is_lapsed

    @property
    def is_free(self) -> bool:
        return self.state == "free" and self.first != "active"

    def ended(self, *, kindly: bool = False) -> "Place":
        """The first hold is over: let go, or lapsed."""
        return replace(self, first="cancelled" if kindly and not self.is_lapsed else "expired")

    def freed(self) -> "Place":
        """What has lapsed is over."""
        return self.ended() if self.first == "active" and self.is_lapsed else self


Said = tuple[str, Place]


def _reserve(place: Place, who: str) -> Said:
    if not place.is_on:
        return "event_unavailable", place
    place = place.freed()
    if place.is_free:
        return "created", replace(place, state="held", holder=who)
    if place.is_pit:
        return "block_at_capacity", place
    if place.state in ("sold", "blocked"):
        return "seat_not_available", place
    owner = place.owner if place.first == "active" else place.holder
    return "existing" if owner == who else "seat_held_by_another_user", place


def _extend(place: Place) -> Said:
    if place.owner != "owner":
        return "not_hold_owner", place
    if not place.is_live:
        return "holds_expired", place
    return ("extended", replace(place, is_extended=True)) if place.is_on else ("event_not_available", place)


def _release(place: Place) -> Said:
    if place.owner != "owner":
        return "not_hold_owner", place
    if place.first != "active":
        return "ended", place
    return "released" if place.is_live else "ended", place.ended(kindly=True)


def _convert(place: Place, *, is_paid: bool) -> Said:
    if not place.is_on:
        return "event_unavailable", place
    if place.owner != "owner":
        return "hold_not_found", place
    if place.state == "sold":
        return "already_converted", place
    if place.is_live:
        return "sold", replace(place, first="converted", state="sold")
    is_taken = not place.freed().is_free and place.holder != "owner"
    if not is_paid or place.first == "cancelled" or is_taken:
        return "holds_expired", place
    return "sold", replace(place.freed(), state="sold", holder=None, is_late=True)


def _hand_over(place: Place) -> Said:
    if place.is_live and place.owner == "owner":
        return "kept", replace(place, owner="heir")
    if place.holder == "owner":
        return "kept", replace(place, holder="heir")
    return "nothing", place


def _expire(place: Place) -> Said:
    freed = place.freed()
    return "1" if freed != place else "0", freed


def _block(place: Place) -> Said:
    if not place.is_on:
        return "seating_locked", place
    if place.state in ("sold", "blocked"):
        return {"sold": "seat_not_available", "blocked": "blocked"}[place.state], place
    if place.first == "active":
        place = place.ended(kindly=True)
    return "done", replace(place, state="blocked", holder=None)


def _release_all(place: Place, *, only_first: bool = False) -> Said:
    count = 0
    if place.first == "active":
        place, count = place.ended(kindly=True), 1
    if place.state == "held" and not only_first:
        place, count = replace(place, state="free", holder=None), count + 1
    return str(count), place


def _cancel(place: Place) -> Said:
    return ("cancelled", replace(place, is_on=False)) if place.is_on else ("refused", place)


# The same operations, done by a session.


@dataclass(slots=True)
class Session:
    """One of the two: a connection, and a transaction on it. The first is called a, the second b."""

    name: str
    conn: Connection
    _transaction: Any = None

    @property
    def pid(self) -> int:
        return self.conn.get_server_pid()

    async def begin(self, case: "Case") -> None:
        assert not self.conn.is_in_transaction()
        self._transaction = self.conn.transaction()
        await self._transaction.start()
        await self.conn.execute("select set_config('app.organization_id', $1, true)", str(case.event.organization_id))

    async def commit(self) -> None:
        await self._transaction.commit()

    async def undo(self) -> None:
        await self._transaction.rollback()


@dataclass(slots=True)
class Case:
    """One place of one event, in a state of its own."""

    event: Seated
    seat_id: UUID | None
    zone_id: UUID
    owner: UUID = field(default_factory=new_id)
    heir: UUID = field(default_factory=new_id)
    rivals: Mapping[str, UUID] = field(default_factory=lambda: {"a": new_id(), "b": new_id()})
    order_id: UUID = field(default_factory=new_id)
    hold_id: UUID = field(default_factory=new_id)

    @property
    def key(self) -> tuple[Any, UUID]:
        return self.event.organization_id, self.event.event.id

    @property
    def quantity(self) -> int:
        return 1 if self.seat_id else ASKED_PLACES

    def ask(self, user_id: UUID, hold_id: UUID) -> Ask:
        item = Item(hold_id, self.seat_id, None if self.seat_id else self.zone_id, self.quantity)
        return Ask(
            organization_id=self.event.organization_id,
            event_id=self.event.event.id,
            user_id=user_id,
            role="customer",
            is_staff=False,
            items=(item,),
            cart_token="cart",
            source="web",
            request_id=new_id(),
            origin=Origin(),
            ip=None,
        )

    async def reserve(self, one: Session, user_id: UUID) -> str:
        return (await store.reserve_batch(one.conn.fetch, [self.ask(user_id, new_id())]))[0][0].outcome

    async def extend(self, one: Session) -> str:
        rows = await store.extend_holds(one.conn.fetch, *self.key, self.owner, [self.hold_id], None, None)
        return str(rows[0]["verdict"])

    async def release(self, one: Session) -> str:
        values = (*self.key, self.owner, [self.hold_id], self.owner, None, None, "released_by_owner")
        return str((await store.release_holds(one.conn.fetch, *values))[0]["verdict"])

    async def convert(self, one: Session, *, is_paid: bool) -> str:
        tickets = [new_id() for _ in range(self.quantity)]
        return await store.convert_holds(
            one.conn.fetch,
            *self.key,
            self.owner,
            [self.hold_id],
            tickets,
            [new_id()],
            self.order_id,
            is_paid,
            None,
            None,
        )

    async def hand_over(self, one: Session) -> str:
        rows = await hand_over(one, self)
        return str(rows[0]["verdict"]) if rows else "nothing"

    async def expire(self, one: Session) -> str:
        return str(await store.expire_holds(one.conn.fetch, *self.key, 500))

    async def block(self, one: Session) -> str:
        values = (*self.key, [self.seat_id], True, None, None, None, "in a test")
        rows = await store.block_seats(one.conn.fetch, *values)
        return str(rows[0]["verdict"])

    async def release_all(self, one: Session) -> str:
        return str(await store.release_all_holds(one.conn.fetch, *self.key, 1_000, None, None, "in a test"))

    async def cancel(self, one: Session) -> str:
        order = Order(verb=Verb.CANCEL, reason="in a test")
        try:
            await lifecycle.move(one.conn, *self.key, order, by=OPERATOR)  # type: ignore[arg-type]  # not from a pool
        except DomainError:
            return "refused"
        return "cancelled"


async def hand_over(one: Session, case: Case) -> list[asyncpg.Record]:
    """The owner, who is a guest, signs in: what they hold is the heir's."""
    organization_id = case.event.organization_id
    values = (organization_id, case.owner, case.heir, "customer", False, registry.HANDED_OVER_MAX, None, None)
    return await store.hand_over_holds(one.conn, *values)  # type: ignore[arg-type]  # not from a pool


async def add_guests(conn: Connection, *users: UUID) -> None:
    await conn.execute(
        "insert into users (id, name, is_guest) select id, 'Guest', true from unnest($1::uuid[]) as one (id)",
        users,
    )


@dataclass(frozen=True, slots=True)
class Operation:
    """What a session does to a place, and what the model says of it. The model is told who asks: a or b."""

    do: Callable[[Case, Session], Awaitable[str]]
    model: Callable[[Place, str], Said]


OPERATIONS: Final[Mapping[str, Operation]] = {
    "reserve": Operation(lambda case, one: case.reserve(one, case.rivals[one.name]), _reserve),
    "reserve_own": Operation(
        lambda case, one: case.reserve(one, case.owner), lambda place, _: _reserve(place, "owner")
    ),
    "extend": Operation(Case.extend, lambda place, _: _extend(place)),
    "release": Operation(Case.release, lambda place, _: _release(place)),
    "convert": Operation(
        lambda case, one: case.convert(one, is_paid=False), lambda place, _: _convert(place, is_paid=False)
    ),
    "convert_paid": Operation(
        lambda case, one: case.convert(one, is_paid=True), lambda place, _: _convert(place, is_paid=True)
    ),
    "hand_over": Operation(Case.hand_over, lambda place, _: _hand_over(place)),
    "expire": Operation(Case.expire, lambda place, _: _expire(place)),
    "block": Operation(Case.block, lambda place, _: _block(place)),
    "release_all": Operation(Case.release_all, lambda place, _: _release_all(place)),
    "cancel": Operation(Case.cancel, lambda place, _: _cancel(place)),
}
AT_PITS: Final = [name for name in OPERATIONS if name not in ("reserve_own", "block")]


# The stage: a database of its own, one hall, an event for each pair.


@dataclass(slots=True)
class Stage:
    """Where the pairs meet."""

    settings: Settings
    studio: Studio
    place: Organization
    hall: Seated
    owner: Connection
    a: Session
    b: Session
    watcher: Connection

    async def event(self) -> Seated:
        """Another event in the same hall, on sale."""
        return await event_in(self.studio, self.place, self.hall)

    async def prepare(self, case: Case, state: str) -> Place:
        """Let the owner have a hold of the place, or one that has lapsed, or one that was let go."""
        case.hold_id = new_id()
        await add_guests(self.watcher, case.owner)
        said = await store.reserve_batch(self.watcher.fetch, [case.ask(case.owner, case.hold_id)])
        assert said[0][0].outcome == "created"
        is_pit = case.seat_id is None
        match state:
            case "lapsed":
                await age_holds(self.owner, [case.hold_id], seconds=LAPSED_S)
                return Place(is_pit, "active", is_lapsed=True)
            case "free":
                await case.release(Session("watcher", self.watcher))
                return Place(is_pit, "cancelled")
            case _:
                return Place(is_pit, "active")

    async def seen(self, case: Case) -> Place:
        """The place as it stands in the tables."""
        async with self.watcher.transaction():
            await self.watcher.execute("select set_config('app.scope', 'system', true)")
            hold = await self.watcher.fetchrow("select * from seat_holds where id = $1", case.hold_id)
            event = await self.watcher.fetchval("select status from events where id = $1", case.event.event.id)
            others = await self.watcher.fetch(
                "select * from seat_holds where event_id = $1 and zone_id = $2 and seat_id is not distinct from $3"
                " and id <> $4 and user_id = any ($5) and status in ('active', 'converted')",
                case.event.event.id,
                case.zone_id,
                case.seat_id,
                case.hold_id,
                [case.owner, case.heir, *case.rivals.values()],
            )
            seat = await self.watcher.fetchrow(
                "select * from event_seats where event_id = $1 and seat_id = $2", case.event.event.id, case.seat_id
            )
            zone = await self.watcher.fetchrow(
                "select * from event_zones where event_id = $1 and zone_id = $2", case.event.event.id, case.zone_id
            )
        assert hold is not None
        assert zone is not None
        assert len(others) <= 1
        names = {case.owner: "owner", case.heir: "heir"} | {user: name for name, user in case.rivals.items()}
        other = others[0] if others else None
        holder = names[other["user_id"]] if other and other["status"] == "active" else None
        is_late = bool(other and other["status"] == "converted" and other["source"] == "late_payment")
        if seat:
            state = "held" if holder else {"available": "free", "held": "free"}.get(seat["status"], seat["status"])
            assert (seat["status"] == "held") == bool(holder or hold["status"] == "active")
        else:
            state = "held" if holder else "sold" if zone["sold"] else "free"
            held_count = (hold["status"] == "active") + bool(holder)
            assert (zone["held"], zone["sold"]) == (held_count * ASKED_PLACES, (state == "sold") * ASKED_PLACES)
        return Place(
            case.seat_id is None,
            hold["status"],
            names[hold["user_id"]],
            is_extended=hold["extended_count"] > 0,
            state=state,
            holder=holder,
            is_late=is_late,
            is_on=event == "published",
        )

    async def waits(self, task: asyncio.Task[str]) -> bool:
        """Whether the second waits for the first; asked until it does, or is done."""
        while not task.done():
            if self.a.pid in await self.in_the_way_of(self.b):
                return True
        return False

    async def in_the_way_of(self, one: Session) -> list[int]:
        """For whom a session waits."""
        found: list[int] = await self.watcher.fetchval("select pg_blocking_pids($1)", one.pid)
        return found

    async def until_waiting(self, one: Session, task: asyncio.Task[Any]) -> list[int]:
        """For whom a session waits, once it does."""
        while not (found := await self.in_the_way_of(one)):
            assert not task.done(), "it was to wait"
        return found


@pytest.fixture(scope="module")
async def stage(servers: Embedded, settings: Settings) -> AsyncIterator[Stage]:
    async with contextlib.AsyncExitStack() as open_ones:
        name = f"pairs_{settings.port}"
        alone = await open_ones.enter_async_context(database_alone(servers, settings, TEMPLATE, name))
        here = await open_ones.enter_async_context(process(alone))
        studio = Studio(here.db, Cache(link=RedisLink("redis://127.0.0.1:1")))  # nothing is read from it
        place = await make_organization(here.db)
        layout = hall_layout(seats=len(CASES), pits=[PIT_PLACES] * len(CASES))
        hall = await seated_event(here.db, studio, place, layout)
        owner = await open_ones.enter_async_context(connect_owner(servers, name))
        a, b, watcher = [await open_ones.enter_async_context(connect_application(servers, name)) for _ in range(3)]
        yield Stage(alone, studio, place, hall, owner, Session("a", a), Session("b", b), watcher)


def comparable(place: Place) -> Place:
    """The clock is no part of what is compared."""
    return replace(place, is_lapsed=False)


async def step(stage: Stage, case: Case, order: str, before: Place, first: Operation, second: Operation) -> None:
    """Take two operations through one order of their steps, and compare what came of it with the model."""
    a, b = stage.a, stage.b
    await b.begin(case)  # before everything, so that nothing may go by the moment at which its transaction began
    await a.begin(case)
    a_said = await first.do(case, a)
    a_expected, after_a = first.model(before, "a")
    assert a_said == a_expected

    if order == "one_after_the_other":
        await a.commit()
        b_said = await second.do(case, b)
        await b.commit()
        b_expected, after_b = second.model(after_a, "b")
        assert (b_said, await stage.seen(case)) == (b_expected, comparable(after_b))
        return

    after_first = before if order == "first_is_undone" else after_a
    task = asyncio.create_task(_patiently(case, b, second))
    if await stage.waits(task):
        await (a.undo() if order == "first_is_undone" else a.commit())
        b_said = await task
        await b.commit()
        expected = [second.model(after_first, "b")]
    else:
        b_said = await task
        await _end_both(order, a, b)
        b_early, after_b = second.model(before, "b")
        after_both = after_b if order == "first_is_undone" else first.model(after_b, "a")[1]
        expected = [second.model(after_first, "b"), (b_early, after_both)]
    if b_said in STANDS_ASIDE:
        expected.append((b_said, after_first))
    if second is OPERATIONS["release_all"]:
        # It goes by what was there when it began; what is taken meanwhile is found by the next.
        expected.append(_release_all(after_first, only_first=True))
    assert (b_said, await stage.seen(case)) in [(said, comparable(place)) for said, place in expected]

    if b_said == "busy":  # whoever reserves comes again, as the lane does
        await b.begin(case)
        b_said = await second.do(case, b)
        await b.commit()
        b_expected, after_b = second.model(after_first, "b")
        assert (b_said, await stage.seen(case)) == (b_expected, comparable(after_b))


async def _patiently(case: Case, one: Session, operation: Operation) -> str:
    """Do it; again when the wait was longer than anybody waits, as the application does."""
    while True:
        try:
            return await operation.do(case, one)
        except (asyncpg.LockNotAvailableError, asyncpg.SerializationError):
            await one.undo()
            await one.begin(case)


async def _end_both(order: str, a: Session, b: Session) -> None:
    match order:
        case "second_ends_first":
            await b.commit()
            await a.commit()
        case "first_is_undone":
            await a.undo()
            await b.commit()
        case _:
            await a.commit()
            await b.commit()


async def meet(stage: Stage, names: tuple[str, str], *, at_pit: bool) -> None:
    """Every state and every order of one pair, each at a place nobody has used."""
    first, second = (OPERATIONS[name] for name in names)
    event: Seated | None = None
    for number, (state, order) in enumerate(CASES):
        if event is None or "cancel" in names:
            event = await stage.event()
        seat_id = None if at_pit else event.hall.seat_id(number)
        case = Case(event, seat_id, event.hall.zone_id(f"P{number + 1}" if at_pit else "S"))
        before = await stage.prepare(case, state)
        try:
            await step(stage, case, order, before, first, second)
        except AssertionError as wrong:
            wrong.add_note(f"{names[0]} and {names[1]}, {order}, the owner's hold {state}")
            raise
        finally:
            for one in (stage.a, stage.b):
                if one.conn.is_in_transaction():
                    await one.undo()
        # Whatever is left of it is let go, as after a cancellation; so the next begins at nothing.
        await case.release_all(Session("watcher", stage.watcher))
        assert await case.release_all(Session("watcher", stage.watcher)) == "0"
    assert await auditing.verify(stage.studio.db) == []


@pytest.mark.parametrize("second", OPERATIONS)
@pytest.mark.parametrize("first", OPERATIONS)
async def test_two_at_a_seat(stage: Stage, first: str, second: str) -> None:
    """Any two operations at one seat end as if one had come after the other; nobody sees a deadlock."""
    await meet(stage, (first, second), at_pit=False)


@pytest.mark.parametrize("second", AT_PITS)
@pytest.mark.parametrize("first", AT_PITS)
async def test_two_at_a_pit(stage: Stage, first: str, second: str) -> None:
    """The same where places are sold by number, and there is room for one of two."""
    await meet(stage, (first, second), at_pit=True)


# Locks are taken in one order, whatever order they were asked for in.


@dataclass(slots=True)
class Basket:
    """What one person holds in two places, for operations that touch both."""

    case: Case
    seats: Sequence[UUID]
    holds: Sequence[UUID]

    def turned(self) -> "Basket":
        """The same, named in the other order."""
        return replace(self, seats=self.seats[::-1], holds=self.holds[::-1])


async def _extend_both(basket: Basket, one: Session) -> object:
    return await store.extend_holds(one.conn.fetch, *basket.case.key, basket.case.owner, basket.holds, None, None)


async def _release_both(basket: Basket, one: Session) -> object:
    values = (*basket.case.key, basket.case.owner, basket.holds, None, None, None, "in a test")
    return await store.release_holds(one.conn.fetch, *values)


async def _convert_both(basket: Basket, one: Session) -> object:
    tickets, late = [new_id() for _ in basket.holds], [new_id() for _ in basket.holds]
    values = (*basket.case.key, basket.case.owner, basket.holds, tickets, late, new_id(), True, None, None)
    return await store.convert_holds(one.conn.fetch, *values)


async def _hand_over_both(basket: Basket, one: Session) -> object:
    return await hand_over(one, basket.case)


async def _block_both(basket: Basket, one: Session) -> object:
    values = (*basket.case.key, basket.seats, True, None, None, None, "in a test")
    return await store.block_seats(one.conn.fetch, *values)


BOTH: Final = {
    "extend": _extend_both,
    "release": _release_both,
    "convert": _convert_both,
    "hand_over": _hand_over_both,
    "block": _block_both,
}
AT_ZONES: Final = [name for name in BOTH if name != "block"]


async def _one_waits_for_the_other(
    stage: Stage,
    case: Case,
    first: Callable[[Session], Awaitable[object]],
    second: Callable[[Session], Awaitable[object]],
) -> None:
    """The first has the lower place and waits for the higher one; the second must wait for the first, at the lower."""
    await stage.a.begin(case)
    await stage.b.begin(case)
    doing = asyncio.ensure_future(first(stage.a))
    assert await stage.until_waiting(stage.a, doing) == [stage.owner.get_server_pid()]
    then = asyncio.ensure_future(second(stage.b))
    assert await stage.until_waiting(stage.b, then) == [stage.a.pid]
    await stage.owner.execute("rollback")
    await doing
    await stage.a.commit()
    await then
    await stage.b.commit()


async def _become_registry(owner: Connection) -> None:
    """A transaction of somebody with a right to lock everything, ended by hand."""
    await owner.execute("begin")
    await owner.execute("set local role voelgoed_registry; select set_config('app.scope', 'system', true)")


async def _basket(stage: Stage, event: Seated, *, seats: Sequence[UUID] = (), pits: Sequence[UUID] = ()) -> Basket:
    case = Case(event, None, new_id())
    await add_guests(stage.watcher, case.owner)
    holds = [new_id() for _ in (*seats, *pits)]
    items = [*((seat, None) for seat in seats), *((None, pit) for pit in pits)]
    asked = [Item(hold, seat, pit, 1) for hold, (seat, pit) in zip(holds, items, strict=True)]
    said = await store.reserve_batch(
        stage.watcher.fetch,
        [structs.replace(case.ask(case.owner, hold), items=(one,)) for hold, one in zip(holds, asked, strict=True)],
    )
    assert {one[0].outcome for one in said} == {"created"}
    return Basket(case, seats, holds)


@pytest.mark.parametrize(("first", "second"), [*itertools.product(BOTH, BOTH)])
async def test_seats_are_locked_in_one_order(stage: Stage, first: str, second: str) -> None:
    """Named from behind, two seats are locked as from the front: whoever comes second waits, and nobody in a circle."""
    event = await stage.event()
    basket = await _basket(stage, event, seats=seat_ids(event, 2))
    await _become_registry(stage.owner)
    await stage.owner.execute("select from event_seats where event_id = $1 and ordinal = 1 for update", event.event.id)
    await _one_waits_for_the_other(
        stage, basket.case, lambda one: BOTH[first](basket, one), lambda one: BOTH[second](basket.turned(), one)
    )
    assert await auditing.verify(stage.studio.db) == []


@pytest.mark.parametrize(("first", "second"), [*itertools.product(AT_ZONES, repeat=2)])
async def test_zones_are_locked_in_one_order(stage: Stage, first: str, second: str) -> None:
    """The same for two people who hold places of two pits."""
    event = await stage.event()
    pits = sorted(event.hall.zone_id(code) for code in ("P1", "P2"))
    one, other = [await _basket(stage, event, pits=pits) for _ in range(2)]
    await _become_registry(stage.owner)
    await stage.owner.execute(
        "select from event_zones where event_id = $1 and zone_id = $2 for update", event.event.id, pits[1]
    )
    await _one_waits_for_the_other(
        stage,
        one.case,
        lambda session: BOTH[first](one, session),
        lambda session: BOTH[second](other.turned(), session),
    )
    assert await auditing.verify(stage.studio.db) == []


async def test_removing_and_tidying_do_not_wait_for_each_other_in_a_circle(stage: Stage) -> None:
    """Whoever removes an event's places locks lapsed holds before zones, as whoever tidies them away does."""
    event = await stage.event()
    pits = sorted(event.hall.zone_id(code) for code in ("P1", "P2"))
    basket = await _basket(stage, event, pits=pits[:1])
    await age_holds(stage.owner, basket.holds, seconds=LAPSED_S)
    await _become_registry(stage.owner)
    await stage.owner.execute(
        "select from event_zones where event_id = $1 and zone_id = $2 for update", event.event.id, pits[1]
    )
    await stage.a.begin(basket.case)
    await stage.b.begin(basket.case)
    removing = asyncio.ensure_future(store.remove_inventory(stage.a.conn, *basket.case.key))  # type: ignore[arg-type]
    assert await stage.until_waiting(stage.a, removing) == [stage.owner.get_server_pid()]
    tidying = asyncio.ensure_future(basket.case.expire(stage.b))
    await stage.waits(tidying)
    await stage.owner.execute("rollback")
    assert await removing == 0
    await stage.a.undo()
    assert await tidying == "0"
    await stage.b.commit()
    assert await auditing.verify(stage.studio.db) == []


async def test_people_are_locked_in_one_order(stage: Stage) -> None:
    """Two batches with the same two people, who ask for other seats in another order."""
    event = await stage.event()
    case = Case(event, None, new_id())
    key = "uuid_hash_extended(u, 0) # uuid_hash_extended($2, 1)"
    people = [
        row["u"]
        for row in await stage.watcher.fetch(
            f"select u from unnest($1::uuid[]) as one (u) order by {key}",
            [new_id(), new_id()],
            event.organization_id,
        )
    ]
    seats = seat_ids(event, 4)

    def batch(places: Sequence[UUID], users: Sequence[UUID]) -> list[Ask]:
        return [
            structs.replace(case.ask(user, new_id()), items=(Item(new_id(), seat),))
            for seat, user in zip(places, users, strict=True)
        ]

    await stage.owner.execute("begin")
    await stage.owner.execute(
        f"select pg_advisory_xact_lock({key}) from (select $1::uuid as u) as one",
        people[1],
        event.organization_id,
    )
    await _one_waits_for_the_other(
        stage,
        case,
        lambda one: store.reserve_batch(one.conn.fetch, batch(seats[:2], people)),
        lambda one: store.reserve_batch(one.conn.fetch, batch(seats[2:], people[::-1])),
    )
    assert await auditing.verify(stage.studio.db) == []


# And for real: many at once, through what the application calls.

RACES: Final = 200
RACES_PER_ROUND: Final = 50
RACES_AT_ONCE: Final = 10
CHUNKS: Final = RACES_PER_ROUND // RACES_AT_ONCE
SEATS_PER_CHUNK: Final = 12
BASKETS: Final = SEATS_PER_CHUNK // 2
PIT: Final = 8
MOST, SOME = 0.8, 0.4


@dataclass(slots=True)
class Target:
    """What a race is about: somebody's basket, and two seats of which one is in it and one is the neighbour's."""

    owner: Call
    holds: list[UUID]
    seats: list[UUID]
    pit: UUID
    places: int = 0
    heir: UUID = field(default_factory=new_id)


@dataclass(slots=True)
class Arena:
    """Where they race: two processes, one event for a round."""

    processes: tuple[Process, Process]
    studio: Studio
    place: Organization
    hall: Seated
    owner: Connection
    draw: random.Random
    event: Seated

    @property
    def key(self) -> tuple[Any, UUID]:
        return self.event.organization_id, self.event.event.id

    @property
    def any_process(self) -> Process:
        return self.draw.choice(self.processes)

    async def targets(self, chunk: int) -> list[Target]:
        """Baskets with seats and places; some have lapsed, some were never held."""
        first = SEATS_PER_CHUNK * chunk
        seats = seat_ids(self.event)[first : first + SEATS_PER_CHUNK]
        pit = self.event.hall.zone_id(f"P{chunk + 1}")
        found = [
            Target(buyer(self.place), [], [seats[2 * number + 1], seats[(2 * number + 2) % len(seats)]], pit)
            for number in range(BASKETS)
        ]
        await add_guests(self.owner, *(_user(target.owner) for target in found))
        await asyncio.gather(*(self._fill(number, target, seats) for number, target in enumerate(found)))
        lapsed = [hold for target in found if self.draw.random() < SOME for hold in target.holds]
        await age_holds(self.owner, lapsed, seconds=LAPSED_S)
        return found

    async def _fill(self, number: int, target: Target, seats: Sequence[UUID]) -> None:
        if self.draw.random() < MOST:
            held = await self.any_process.hold(target.owner, self.event, *seats[2 * number : 2 * number + 2])
            target.holds += [one.hold.id for one in held]
            target.places += 2
        if number < PIT // 2:
            target.holds.append((await self.any_process.hold_places(target.owner, self.event, target.pit, 2)).hold.id)
            target.places += 2

    async def reserve(self, target: Target) -> object:
        who = buyer(self.place)
        if self.draw.random() < SOME:
            return await self.any_process.hold_places(who, self.event, target.pit, self.draw.randint(1, 3))
        return await self.any_process.hold(who, self.event, *self.shuffled(target.seats))

    async def extend(self, target: Target) -> object:
        holds = self.shuffled(target.holds)
        return await registry.extend(self.any_process.db, *self.key, _user(target.owner), holds, by=OPERATOR)

    async def release(self, target: Target) -> object:
        holds = self.shuffled(target.holds)
        user_id = _user(target.owner)
        return await registry.release(
            self.any_process.db, *self.key, holds, user_id=user_id, by=OPERATOR, reason="released_by_owner"
        )

    async def convert(self, target: Target) -> object:
        return await registry.convert(
            self.any_process.db,
            *self.key,
            _user(target.owner),
            self.shuffled(target.holds),
            tickets=[new_id() for _ in range(target.places)],
            order_id=new_id(),
            is_paid=self.draw.random() < SOME,
            by=OPERATOR,
        )

    async def hand_over(self, target: Target) -> object:
        process, guest_id = self.any_process, _user(target.owner)

        async def work() -> object:
            try:
                async with process.db.transaction(self.place.id) as conn:
                    return await registry.hand_over(
                        conn, self.place.id, guest_id, target.heir, role="customer", is_staff=False, by=OPERATOR
                    )
            except LostRace as lost:
                process.lost.append(type(lost.__cause__ or lost))
                raise

        return await process.db.attempt(work)

    async def expire(self, _: Target) -> object:
        return await registry.reap(self.any_process.db, by=OPERATOR)

    async def block(self, target: Target) -> object:
        seats, is_blocked = self.shuffled(target.seats), self.draw.random() < MOST
        lead = call_of(self.place, Role.ADMIN)
        process = self.any_process
        return await booking.set_blocked(
            process.lanes, process.db, lead, self.event.event.id, seats, is_blocked=is_blocked, reason="in a test"
        )

    async def cancel(self, _: Target) -> object:
        order = Order(verb=Verb.CANCEL, reason="in a test")
        return await operator.move_event(self.studio, self.place, self.event.event.id, order)

    async def release_all(self, _: Target) -> object:
        return await registry.release_all(self.any_process.db, *self.key, by=OPERATOR, reason="in a test")

    async def active_count(self) -> int:
        """How many holds of the event are active."""
        async with self.studio.db.transaction(self.place.id) as conn:
            found: int = await conn.fetchval(
                "select count(*) from seat_holds where event_id = $1 and status = 'active'", self.event.event.id
            )
        return found

    def shuffled(self, ids: Sequence[UUID]) -> list[UUID]:
        return self.draw.sample(ids, len(ids))


def _user(call: Call) -> UUID:
    assert call.actor.user_id is not None
    return call.actor.user_id


RACERS: Final[Mapping[str, Callable[[Arena, Target], Awaitable[object]]]] = {
    "reserve": Arena.reserve,
    "extend": Arena.extend,
    "release": Arena.release,
    "convert": Arena.convert,
    "hand_over": Arena.hand_over,
    "expire": Arena.expire,
    "block": Arena.block,
    "release_all": Arena.release_all,
    "cancel": Arena.cancel,
}


@pytest.fixture(scope="module")
async def arena(stage: Stage, servers: Embedded) -> AsyncIterator[Arena]:
    async with process(stage.settings) as one, process(stage.settings) as other:
        layout = hall_layout(seats=SEATS_PER_CHUNK * CHUNKS, pits=[PIT] * CHUNKS)
        hall = await seated_event(one.db, stage.studio, stage.place, layout)
        draw = random.Random(11)
        yield Arena((one, other), stage.studio, stage.place, hall, stage.owner, draw, hall)


@pytest.mark.parametrize(("first", "second"), [*itertools.combinations_with_replacement(RACERS, 2)])
async def test_races(arena: Arena, first: str, second: str) -> None:
    """Two hundred races of each kind, ten at a time: every answer is a word, never a deadlock, and all is well."""
    lost = [one.lost for one in arena.processes]
    ends_the_sale = "cancel" in (first, second)
    for _ in range(RACES // RACES_PER_ROUND):
        for chunk in range(CHUNKS):
            if ends_the_sale or not chunk:
                arena.event = await event_in(arena.studio, arena.place, arena.hall)
            targets = await arena.targets(chunk)
            racing = [
                RACERS[name](arena, target)
                for target in arena.draw.choices(targets, k=RACES_AT_ONCE)
                for name in arena.draw.sample((first, second), 2)
            ]
            for said in await asyncio.gather(*racing, return_exceptions=True):
                if isinstance(said, BaseException) and (
                    not isinstance(said, DomainError)
                    or isinstance(said, OutcomeUnknown)
                    or isinstance(said.__cause__, asyncpg.DeadlockDetectedError)
                ):
                    raise said
            if ends_the_sale:  # whoever was in the middle of it is found by the reaper, and then nobody holds anything
                await registry.reap(arena.studio.db, by=OPERATOR)
                assert await arena.active_count() == 0
        assert await auditing.verify(arena.studio.db) == []
    assert asyncpg.DeadlockDetectedError not in itertools.chain(*lost)
