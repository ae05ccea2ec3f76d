"""When a hold is won or lost: a locked row, the last second, money that comes late, a cancelled event."""

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import pytest

from tests.conftest import TEMPLATE
from tests.make.accounts import make_organization
from tests.make.races import (
    Process,
    age_holds,
    buyer,
    connect_owner,
    database_alone,
    event_in,
    hall_layout,
    process,
)
from tests.make.seating import Seated, as_registry, facts_of, seat_rows, seated_event, zone_rows
from voelgoed.accounts.model import Call, Organization
from voelgoed.cache import Cache
from voelgoed.config import Settings
from voelgoed.db import Connection
from voelgoed.embedded import Embedded
from voelgoed.errors import Busy, DomainError
from voelgoed.events.catalogue import Catalogue
from voelgoed.events.model import OPERATOR, EventAtVenue, Order, Status, Verb
from voelgoed.holds import auditing, booking, lane, registry, usecases
from voelgoed.holds.booking import Held
from voelgoed.ids import new_id
from voelgoed.redis import RedisLink
from voelgoed.seating.studio import Studio

TTL_S = 600
MORE_S = 300
SEATS, PIT = 40, 6


def nothing_cached() -> Cache:
    """A cache whose Redis is not there."""
    return Cache(link=RedisLink("redis://127.0.0.1:1"))


@dataclass(slots=True)
class House:
    """Two processes, an event on sale, and somebody who may lock every row."""

    processes: tuple[Process, Process]
    studio: Studio
    place: Organization
    event: Seated
    owner: Connection

    @property
    def key(self) -> tuple[object, UUID]:
        return self.event.organization_id, self.event.event.id

    @property
    def pit(self) -> UUID:
        return self.event.hall.zone_id("P1")

    def seat(self, ordinal: int) -> UUID:
        return self.event.hall.seat_id(ordinal)

    def buyer(self) -> Call:
        return buyer(self.place)

    async def hold(self, call: Call, *ordinals: int) -> list[Held]:
        return await self.processes[0].hold(call, self.event, *(self.seat(ordinal) for ordinal in ordinals))

    async def lapse(self, held: Sequence[Held], *, seconds_left: float = -1) -> None:
        """Let holds end so many seconds from now, or have ended."""
        await age_holds(self.owner, [one.hold.id for one in held], seconds=TTL_S - seconds_left)

    async def convert(
        self, call: Call, held: Sequence[Held], *, is_paid: bool = False, order_id: UUID | None = None
    ) -> str:
        assert call.actor.user_id is not None
        return await registry.convert(
            self.processes[1].db,
            self.event.organization_id,
            self.event.event.id,
            call.actor.user_id,
            [one.hold.id for one in held],
            tickets=[new_id() for one in held for _ in range(one.hold.quantity)],
            order_id=order_id or new_id(),
            is_paid=is_paid,
            by=OPERATOR,
        )

    async def cancel(self) -> EventAtVenue:
        """Cancel the event, as its organiser does."""
        catalogue = Catalogue(self.studio.db, nothing_cached())
        order = Order(verb=Verb.CANCEL, reason="in a test")
        event = self.event.event
        return await usecases.carry_out(self.studio, catalogue, event.organization_id, event.id, order, by=OPERATOR)

    async def states(self) -> list[str]:
        return [row["status"] for row in await seat_rows(self.studio.db, self.event.event)]

    async def until(self, moment: datetime) -> None:
        """Wait until PostgreSQL's clock has passed a moment."""
        await self.owner.execute("select pg_sleep_until($1)", moment)

    @contextlib.asynccontextmanager
    async def locked(self, ordinal: int) -> AsyncIterator[None]:
        """Somebody is at the row of a seat, and stays there."""
        async with as_registry(self.owner):
            await self.owner.execute(
                "select from event_seats where event_id = $1 and ordinal = $2 for update", self.event.event.id, ordinal
            )
            yield

    async def someone_waits(self) -> None:
        """Until somebody waits for the one who is at the row."""
        query = "select count(*) from pg_stat_activity where $1 = any (pg_blocking_pids(pid))"
        async with self.studio.db.system_transaction() as conn:
            while not await conn.fetchval(query, self.owner.get_server_pid()):
                pass


@pytest.fixture(scope="module")
async def whole(servers: Embedded, settings: Settings) -> AsyncIterator[House]:
    """A database of their own, two processes at it, and a hall."""
    name = f"moments_{settings.port}"
    async with contextlib.AsyncExitStack() as open_ones:
        alone = await open_ones.enter_async_context(database_alone(servers, settings, TEMPLATE, name))
        one = await open_ones.enter_async_context(process(alone))
        other = await open_ones.enter_async_context(process(alone))
        owner = await open_ones.enter_async_context(connect_owner(servers, name))
        studio = Studio(one.db, nothing_cached())
        place = await make_organization(one.db)
        hall = await seated_event(one.db, studio, place, hall_layout(seats=SEATS, pits=[PIT]))
        yield House((one, other), studio, place, hall, owner)


@pytest.fixture
async def house(whole: House) -> AsyncIterator[House]:
    event = await event_in(whole.studio, whole.place, whole.event)
    yield House(whole.processes, whole.studio, whole.place, event, whole.owner)
    assert await auditing.verify(whole.studio.db) == []


async def test_a_locked_row_delays_nobody_else(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """While somebody is at a seat, others get theirs; whoever wants that very one is told that it is gone.

    Also those who ask in the same breath; and once it is free, it may be had.
    """
    monkeypatch.setattr(lane, "RETRY_WAITS_S", (0.3, 0.3, 0.3))  # so long that others are served on a busy machine too
    async with house.locked(0):
        stuck = asyncio.create_task(house.hold(house.buyer(), 0))
        with_it = asyncio.create_task(house.hold(house.buyer(), 30, 0))
        held = await asyncio.gather(*(house.hold(house.buyer(), ordinal) for ordinal in range(1, 21)))
        assert len(held) == 20
        assert not stuck.done()  # everybody else was served before it was decided
        again = await asyncio.gather(*(house.hold(house.buyer(), ordinal) for ordinal in range(21, 25)))
        assert len(again) == 4
        with pytest.raises(DomainError) as told:
            await stuck
        assert told.value.code == "seat_no_longer_available"
        with pytest.raises(DomainError) as told:
            await with_it
        assert told.value.code == "seats_refused"
    assert (await house.states())[30] == "available"
    assert (await house.hold(house.buyer(), 0))[0].is_new


async def test_who_waits_too_long_is_told_so(house: House) -> None:
    """Letting go, asking for more time and paying wait for a row half a second, a few times; then nothing was done."""
    who = house.buyer()
    held = await house.hold(who, 0)
    async with house.locked(0):
        db = house.studio.db
        waiting = [
            booking.extend(db, who, held[0].hold.id),
            booking.release(house.processes[0].lanes, db, who, held[0].hold.id),
            house.convert(who, held),
        ]
        said = await asyncio.gather(*waiting, return_exceptions=True)
    assert [type(one).__mro__[1] for one in said] == [Busy] * 3
    (row,) = [row for row in await seat_rows(house.studio.db, house.event.event) if row["ordinal"] == 0]
    assert (row["hold_id"], row["version"]) == (held[0].hold.id, 2)


@pytest.mark.req("EXT-10")
async def test_the_last_second_counts(house: House) -> None:
    """At 14:59 of 15:00: whoever asks for more time has it, and the old end takes nothing from them any more."""
    who = house.buyer()
    held = await house.hold(who, 0)
    await house.lapse(held, seconds_left=1)
    longer = await booking.extend(house.studio.db, who, held[0].hold.id)
    await house.until(longer.initial_expires_at)
    with pytest.raises(DomainError) as told:
        await house.hold(house.buyer(), 0)
    assert told.value.code == "seat_held_by_another_user"
    assert await house.convert(who, held) == "sold"


@pytest.mark.req("EXT-10")
async def test_paying_and_taking_over_at_the_end(house: House) -> None:
    """At the very moment a hold lapses its owner pays and another asks: one of the two has the seat, never both."""
    owners = [house.buyer() for _ in range(SEATS)]
    for number, owner in enumerate(owners):
        held = await house.hold(owner, number)
        await house.lapse(held, seconds_left=0.02)
        (row,) = [row for row in await seat_rows(house.studio.db, house.event.event) if row["ordinal"] == number]
        taking = house.processes[1].hold(house.buyer(), house.event, house.seat(number))
        if number % 2:
            await house.until(row["held_until"])
        said, taken = await asyncio.gather(house.convert(owner, held), taking, return_exceptions=True)
        assert said in ("sold", "holds_expired")
        if said == "sold":
            assert isinstance(taken, DomainError)
            assert taken.code in ("seat_not_available", "seat_held_by_another_user", "seat_no_longer_available")
        else:
            assert isinstance(taken, list) or (isinstance(taken, DomainError) and number % 2 == 0)


@pytest.mark.parametrize("is_paid", [False, True])
async def test_the_clock_is_read_after_the_wait(house: House, *, is_paid: bool) -> None:
    """A hold that lapses while its owner waits for the row has lapsed, and what was paid for is sold as paid late."""
    who = house.buyer()
    held = await house.hold(who, 0)
    await house.lapse(held, seconds_left=0.15)
    async with house.locked(0):
        paying = asyncio.create_task(house.convert(who, held, is_paid=is_paid))
        await house.someone_waits()
        (row,) = [row for row in await seat_rows(house.studio.db, house.event.event) if row["ordinal"] == 0]
        await house.until(row["held_until"])
    assert await paying == ("sold" if is_paid else "holds_expired")
    sold = await facts_of(house.studio.db, house.event.event, "seat_sold")
    assert len(sold) == int(is_paid)
    if is_paid:
        assert sold[0]["data"]["hold_id"] != str(held[0].hold.id)


@pytest.mark.req("EXT-02", "EXT-03")
async def test_more_time_once_and_only_for_the_owner(house: House) -> None:
    """However often and from wherever it is asked: five minutes, one fact, one version; for nobody else."""
    who, stranger = house.buyer(), house.buyer()
    (held,) = await house.hold(who, 0)
    asks = [booking.extend(one.db, who, held.hold.id) for one in (*house.processes * 8,)]
    theirs = [booking.extend(one.db, stranger, held.hold.id) for one in (*house.processes * 4,)]
    said = await asyncio.gather(*asks, *theirs, return_exceptions=True)
    ends = {one.expires_at for one in said[:16] if not isinstance(one, BaseException)}
    assert len(ends) == 1
    assert (ends.pop() - held.hold.expires_at).total_seconds() == MORE_S
    assert [getattr(one, "code", one) for one in said[16:]] == ["not_hold_owner"] * 8
    assert len(await facts_of(house.studio.db, house.event.event, "seat_hold_extended")) == 1
    assert (await seat_rows(house.studio.db, house.event.event))[0]["version"] == 3


@pytest.mark.req("EXT-02")
async def test_more_time_is_never_less(house: House) -> None:
    """Asked for late or early, the end only moves away, and to the same moment; asking again moves nothing."""
    for number, seconds_left in enumerate((TTL_S, TTL_S / 2, 2)):
        who = house.buyer()
        held = await house.hold(who, number)
        await house.lapse(held, seconds_left=seconds_left)
        (before,) = await booking.list_own(house.studio.db, who, house.event.event.id)
        longer = await booking.extend(house.studio.db, who, held[0].hold.id)
        assert (longer.expires_at - before.hold.initial_expires_at).total_seconds() == MORE_S
        assert longer.expires_at > before.hold.expires_at
        assert (await house.hold(who, number))[0].hold.expires_at == longer.expires_at
        assert (await booking.extend(house.studio.db, who, held[0].hold.id)).expires_at == longer.expires_at


@pytest.mark.parametrize("is_noticed", [False, True])
async def test_paid_late_while_it_is_free(house: House, *, is_noticed: bool) -> None:
    """Nobody took it: it is sold, by a hold that says why it exists; the same payment told again changes nothing."""
    who, order_id = house.buyer(), new_id()
    held = [*await house.hold(who, 0, 1), await house.processes[0].hold_places(who, house.event, house.pit, 2)]
    await house.lapse(held[1:])  # of a basket some may live still
    if is_noticed:
        await registry.reap(house.studio.db, by=OPERATOR)
    assert await house.convert(who, held) == "holds_expired"
    assert await house.convert(who, held, is_paid=True, order_id=order_id) == "sold"
    async with house.studio.db.transaction(house.place.id) as conn:
        rows = await conn.fetch(
            "select h.source, h.status::text, count(t.id) as n"
            " from seat_holds h left join tickets t on t.hold_id = h.id"
            " where h.event_id = $1 group by h.id order by h.source, h.status::text, n",
            house.event.event.id,
        )
    assert [tuple(row) for row in rows] == [
        ("late_payment", "converted", 1),
        ("late_payment", "converted", 2),
        ("web", "converted", 1),
        ("web", "expired", 0),
        ("web", "expired", 0),
    ]
    assert (await house.states())[:3] == ["sold", "sold", "available"]
    again = await asyncio.gather(*(house.convert(who, held, is_paid=True, order_id=order_id) for _ in range(4)))
    assert again == ["already_converted"] * 4
    assert await house.convert(who, held, is_paid=True) == "holds_expired"  # another order has no claim to them


async def test_one_payment_told_at_once(house: House) -> None:
    """A payment that is told sixteen times at once sells once, and everybody is told so; late or in time."""
    for ordinal, seconds_left in ((0, TTL_S), (1, -1)):
        who, order_id = house.buyer(), new_id()
        held = await house.hold(who, ordinal)
        await house.lapse(held, seconds_left=seconds_left)
        said = await asyncio.gather(*(house.convert(who, held, is_paid=True, order_id=order_id) for _ in range(16)))
        assert sorted(said) == ["already_converted"] * 15 + ["sold"]


@pytest.mark.parametrize("fate", ["held", "sold", "blocked", "released"])
async def test_paid_late_when_it_is_gone(house: House, fate: str) -> None:
    """Somebody else has it, or nobody may, or the owner let it go: the money goes back, and nothing changes."""
    who, other = house.buyer(), house.buyer()
    held = await house.hold(who, 0, 1)
    if fate == "released":
        await booking.release(house.processes[0].lanes, house.studio.db, who, held[0].hold.id)
    else:
        await house.lapse(held)
        taken = await house.hold(other, 0)
        if fate == "sold":
            assert await house.convert(other, taken) == "sold"
        if fate == "blocked":
            await registry.block(
                house.studio.db,
                house.place.id,
                house.event.event.id,
                [house.seat(0)],
                is_block=True,
                by=OPERATOR,
                reason=None,
            )
    before = await seat_rows(house.studio.db, house.event.event)
    assert await house.convert(who, held, is_paid=True) == "holds_expired"
    assert await seat_rows(house.studio.db, house.event.event) == before


async def test_paid_late_when_they_have_taken_it_again(house: House) -> None:
    """The same person holds the seat anew when the money comes: it is sold to them once, and the new hold ends."""
    who = house.buyer()
    held = await house.hold(who, 0, 1)
    await house.lapse(held)
    (again,) = await house.hold(who, 0)
    assert await house.convert(who, [*held, again], is_paid=True) == "holds_expired"  # one seat is not two tickets
    assert await house.convert(who, held, is_paid=True) == "sold"
    assert (await house.states())[:3] == ["sold", "sold", "available"]
    async with house.studio.db.transaction(house.place.id) as conn:
        rows = await conn.fetch(
            "select source, status::text from seat_holds where event_id = $1 and seat_id = $2 order by created_at, id",
            house.event.event.id,
            house.seat(0),
        )
    assert [tuple(row) for row in rows] == [("web", "expired"), ("web", "cancelled"), ("late_payment", "converted")]
    told = await facts_of(house.studio.db, house.event.event, "seat_hold_released")
    assert [(fact["data"]["hold_id"], fact["data"]["reason"]) for fact in told] == [
        (str(again.hold.id), "late_payment")
    ]
    assert await house.convert(who, [again], is_paid=True) == "holds_expired"


async def test_paid_late_where_others_have_lapsed_too(house: House) -> None:
    """Places by number: what others let lapse is room again, noticed or not; what they hold is not."""
    who = house.buyer()
    one = house.processes[0]
    mine = await one.hold_places(who, house.event, house.pit, PIT)
    await house.lapse([mine])
    theirs = [await one.hold_places(house.buyer(), house.event, house.pit, PIT // 2) for _ in range(2)]
    assert await house.convert(who, [mine], is_paid=True) == "holds_expired"
    await house.lapse(theirs)
    assert await house.convert(who, [mine], is_paid=True) == "sold"
    assert [(row["held"], row["sold"]) for row in await zone_rows(house.studio.db, house.event.event)][-1] == (0, PIT)


@pytest.mark.req("EV-40", "EV-41")
async def test_cancelled_in_the_middle_of_a_sale(house: House) -> None:
    """People hold and pay while the event is cancelled: afterwards nothing is held, and nothing new was given."""
    is_over = asyncio.Event()
    said: set[str] = set()

    async def sell(number: int) -> None:
        for turn in itertools.count():
            who = house.buyer()
            try:
                held = await house.processes[number % 2].hold(who, house.event, house.seat((number * 5 + turn) % SEATS))
                if turn % 3 == 0:
                    said.add(await house.convert(who, held))
                elif turn % 3 == 1:
                    await booking.release(house.processes[0].lanes, house.studio.db, who, held[0].hold.id)
            except DomainError as refused:
                said.add(refused.code)
                if refused.code == "event_unavailable" and is_over.is_set():
                    return

    async with asyncio.timeout(30), asyncio.TaskGroup() as sale:
        for number in range(8):
            sale.create_task(sell(number))
        while len(await facts_of(house.studio.db, house.event.event, "seat_reserved")) < SEATS // 2:
            pass
        assert (await house.cancel()).event.status is Status.CANCELLED
        async with house.studio.db.transaction(house.place.id) as conn:
            told_at = await conn.fetchval("select clock_timestamp()")
        is_over.set()
    assert {"sold", "event_unavailable"} <= said
    # Whoever was in the middle of it when the event was cancelled is found by the next round of the reaper.
    await registry.reap(house.studio.db, by=OPERATOR)
    assert "held" not in await house.states()
    async with house.studio.db.transaction(house.place.id) as conn:
        row = await conn.fetchrow(
            "select count(*) filter (where status = 'active') as active, max(created_at) as last_hold_at,"
            " (select max(created_at) from tickets t where t.event_id = $1) as last_ticket_at"
            " from seat_holds where event_id = $1",
            house.event.event.id,
        )
    assert row is not None
    assert row["active"] == 0
    assert max(row["last_hold_at"], row["last_ticket_at"]) < told_at


@pytest.mark.req("EV-40", "EV-41", "RSV-39", "TEST-17")
async def test_a_hold_on_its_way_when_the_event_is_cancelled(house: House) -> None:
    """Whoever waits for a place while the event is cancelled gets nothing, and nobody keeps anything."""
    who, other = house.buyer(), house.buyer()
    held = await house.hold(who, 1)
    one = house.processes[0]
    places = await one.hold_places(other, house.event, house.pit, 1)
    async with as_registry(house.owner):
        await house.owner.execute(
            "select from event_zones where event_id = $1 and zone_id = $2 for update", house.event.event.id, house.pit
        )
        asking = asyncio.create_task(one.hold_places(house.buyer(), house.event, house.pit, 1))
        await house.someone_waits()
        async with house.studio.db.transaction(house.place.id) as conn:
            await conn.execute(
                "update events set status = 'cancelled', version = version + 1 where id = $1", house.event.event.id
            )
    with pytest.raises(DomainError) as told:
        await asking
    assert told.value.code == "event_unavailable"
    assert await house.convert(who, held, is_paid=True) == "event_unavailable"
    assert await registry.reap(house.studio.db, by=OPERATOR) == 2
    assert places.hold.quantity == 1
    assert set(await house.states()) == {"available"}


@pytest.mark.parametrize("what", ["seat", "places", "zone"])
async def test_cancelling_is_not_undone_by_a_locked_row(house: House, what: str) -> None:
    """The event is cancelled although somebody is at a row of it; everything else is let go at once, and that soon."""
    await house.hold(house.buyer(), 0, 1, 2)
    places = [await house.processes[0].hold_places(house.buyer(), house.event, house.pit, 1) for _ in range(3)]
    async with as_registry(house.owner):
        query, value = {
            "seat": ("select from event_seats where event_id = $1 and seat_id = $2 for update", house.seat(0)),
            "places": ("select from seat_holds where event_id = $1 and id = $2 for update", places[1].hold.id),
            "zone": ("select from event_zones where event_id = $1 and zone_id = $2 for update", house.pit),
        }[what]
        await house.owner.execute(query, house.event.event.id, value)
        done = await house.cancel()
        held_seats, held_places = {"seat": (1, 0), "places": (0, 1), "zone": (0, 3)}[what]
        assert (await house.states()).count("held") == held_seats
        assert (await zone_rows(house.studio.db, house.event.event))[-1]["held"] == held_places
    assert done.event.status is Status.CANCELLED
    await registry.reap(house.studio.db, by=OPERATOR)
    assert set(await house.states()) == {"available"}
    assert (await zone_rows(house.studio.db, house.event.event))[-1]["held"] == 0
