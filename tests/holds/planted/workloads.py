"""Workloads for planted bugs that need several transactions at once, or break an invariant of the database."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

import asyncpg

from tests.make.boxoffice import PIT, PIT_CAPACITY, BoxOffice, hold_ids
from tests.make.races import age_holds, connect_application
from tests.make.seating import as_registry, move_recorded_ends
from voelgoed.errors import LostRace
from voelgoed.events.model import OPERATOR
from voelgoed.holds import registry, store
from voelgoed.holds.model import Ask, Outcome
from voelgoed.ids import new_id

TRIES = 4
WITHIN_S = 20
HOUR_S = 3_600


async def wait_until_blocked(office: BoxOffice, sessions: int, *tasks: asyncio.Task[Any]) -> None:
    """Wait until this many sessions wait for a lock, or until the tasks are done without one."""
    admin = await asyncpg.connect(office.servers.admin_url)
    blocked = "select count(*) from pg_stat_activity where datname = $1 and wait_event_type = 'Lock'"
    try:
        async with asyncio.timeout(WITHIN_S):
            while not all(task.done() for task in tasks):
                if await admin.fetchval(blocked, office.database) >= sessions:
                    return
    finally:
        await admin.close()


@contextlib.asynccontextmanager
async def locked(office: BoxOffice, seat_id: UUID) -> AsyncIterator[None]:
    """Keep the row of a seat locked."""
    async with as_registry(office.owner):
        await office.owner.execute(
            "select from event_seats where event_id = $1 and seat_id = $2 for no key update", office.event_id, seat_id
        )
        yield


@contextlib.asynccontextmanager
async def uncommitted(office: BoxOffice, ask: Ask) -> AsyncIterator[None]:
    """Let another process have made a request that it commits when the block ends."""
    async with connect_application(office.servers, office.database) as conn, conn.transaction():
        (said,) = await store.reserve_batch(conn.fetch, [ask])
        assert {one.outcome for one in said} == {Outcome.CREATED}
        yield


async def release_of_another_buyers_hold(office: BoxOffice) -> None:
    ask = await office.hold(*office.seats(1))
    said = await registry.release(
        office.db,
        office.organization.id,
        office.event_id,
        hold_ids(ask),
        user_id=new_id(),
        by=OPERATOR,
        reason="released",
    )
    assert list(said.values()) == ["not_hold_owner"], "a buyer released another buyer's hold"
    assert await office.states(ask) == ["active"]


async def hold_expires_while_its_sale_waits(office: BoxOffice) -> None:
    """A hold that ends while its sale waits for the seat is not sold."""
    for seat_id in office.seats(TRIES):
        ask = await office.hold(seat_id)
        async with locked(office, seat_id):
            selling = asyncio.create_task(sell_once(office, ask))
            await wait_until_blocked(office, 1, selling)
            await office.owner.execute(
                "update seat_holds set initial_expires_at = now.at, expires_at = now.at"
                " from (select clock_timestamp() as at) as now where id = any ($1)",
                hold_ids(ask),
            )
            await office.owner.execute(
                "update event_seats s set held_until = h.expires_at from seat_holds h"
                " where s.hold_id = h.id and h.id = any ($1)",
                hold_ids(ask),
            )
            await move_recorded_ends(office.owner, hold_ids(ask))
        try:
            said = await selling
        except LostRace:  # it waited too long, so this shows nothing
            continue
        assert said == "holds_expired", "a hold was sold after its end"
        return
    raise AssertionError("the sale always gave up before the hold ended")


async def sell_once(office: BoxOffice, ask: Ask) -> str:
    """Sell without trying again when a lock is waited for in vain."""
    tickets, late = [new_id() for _ in ask.items], [new_id() for _ in ask.items]
    return await store.convert_holds(
        office.db.call,
        office.organization.id,
        office.event_id,
        ask.user_id,
        hold_ids(ask),
        tickets,
        late,
        new_id(),
        False,  # noqa: FBT003 - in the order of the function's arguments
        new_id(),
        None,
    )


async def two_requests_for_one_seat(office: BoxOffice) -> None:
    """A request that comes while another's hold is about to be committed does not write over it."""
    (seat_id,) = office.seats(1)
    async with uncommitted(office, office.ask(seat_id)):
        asking = asyncio.create_task(office.reserve(office.ask(seat_id)))
        await wait_until_blocked(office, 1, asking)
    try:
        ((said,),) = await asking
    except asyncpg.PostgresError as stopped:
        raise AssertionError(f"only a constraint was left: {stopped}") from stopped
    if said.outcome is not Outcome.CREATED:  # then `verify` finds two holds
        assert said.outcome is Outcome.BUSY


async def release_and_block_at_once(office: BoxOffice) -> None:
    """A release and a block of the same seats, both begun, do not deadlock."""
    values, lost = (office.organization.id, office.event_id), 0
    for _ in range(TRIES):
        seats = office.seats(3)
        ask = await office.hold(*seats)
        async with locked(office, seats[1]):
            releasing = asyncio.create_task(
                store.release_holds(
                    office.db.call, *values, ask.user_id, hold_ids(ask), ask.user_id, new_id(), None, "released"
                )
            )
            await wait_until_blocked(office, 1, releasing)
            blocking = asyncio.create_task(
                store.block_seats(office.db.call, *values, seats, True, ask.user_id, new_id(), None, "in a test")  # noqa: FBT003
            )
            await wait_until_blocked(office, 2, blocking)
        said = await asyncio.gather(releasing, blocking, return_exceptions=True)
        lost = sum(isinstance(one, LostRace) for one in said)
        if not lost:
            return
    assert not lost, "a release and a block deadlocked every time"


async def more_places_than_there_are(office: BoxOffice) -> None:
    """The last places of a zone are not granted twice."""
    await office.hold(places=PIT_CAPACITY - 2, zone=PIT)
    try:
        outcome = await office.outcome(office.ask(places=3, zone=PIT))
    except asyncpg.CheckViolationError as stopped:
        raise AssertionError(f"only a constraint was left: {stopped}") from stopped
    if outcome is not Outcome.CREATED:  # then `verify` finds a zone that is too full
        assert outcome is Outcome.FULL
        await office.hold(places=2, zone=PIT)


async def request_from_another_organization(office: BoxOffice) -> None:
    other = await office.new_organization()
    outcome = await office.outcome(office.ask(*office.seats(1), organization_id=other.organization.id))
    if outcome is not Outcome.CREATED:  # then `verify` finds a hold across organizations
        assert outcome is Outcome.EVENT_NOT_FOUND


async def request_for_a_held_seat(office: BoxOffice) -> None:
    (seat_id,) = office.seats(1)
    ask = await office.hold(seat_id)
    if await office.outcome(office.ask(seat_id)) is not Outcome.CREATED:  # then `verify` finds a hold that ended early
        assert await office.states(ask) == ["active"]


async def request_for_an_expired_seat(office: BoxOffice) -> None:
    """An expired hold is taken over by the next request, before the expiry worker has come."""
    (seat_id,) = office.seats(1)
    await age_holds(office.owner, hold_ids(await office.hold(seat_id)), seconds=HOUR_S)
    assert await office.outcome(office.ask(seat_id)) is Outcome.CREATED, "a free seat could not be held"


async def group_with_a_taken_seat(office: BoxOffice) -> None:
    seats = office.seats(3)
    await office.hold(seats[1])
    group = office.ask(*seats)
    (said,) = await office.reserve(group)
    assert not any(one.outcome is Outcome.CREATED for one in said), "a part of a group was granted"
    assert await office.active(group.user_id) == 0


async def sale_of_an_expired_hold(office: BoxOffice) -> None:
    ask = await office.hold(*office.seats(1))
    await age_holds(office.owner, hold_ids(ask), seconds=HOUR_S)
    said = await office.convert(ask)
    if said != "sold":  # then `verify` finds a hold that was sold too late
        assert said == "holds_expired"


async def two_requests_of_one_buyer(office: BoxOffice) -> None:
    """Ten seats in five minutes, also for a buyer who asks two processes at once."""
    user_id = new_id()
    async with uncommitted(office, office.ask(*office.seats(6), user_id=user_id)):
        asking = asyncio.create_task(office.reserve(office.ask(*office.seats(6), user_id=user_id)))
        await wait_until_blocked(office, 1, asking)
    await asking
    assert await office.active(user_id) <= 10, "a buyer holds more than the limit"


async def two_requests_from_one_address(office: BoxOffice) -> None:
    """The limit of an address holds for two buyers behind it who ask two processes at once."""
    await office.allow(max_holds_per_ip=3)
    first, second = office.ask(*office.seats(2), ip="192.0.2.7"), office.ask(*office.seats(2), ip="192.0.2.7")
    async with uncommitted(office, first):
        asking = asyncio.create_task(office.reserve(second))
        await wait_until_blocked(office, 1, asking)
    await asking
    assert len(await office.holds()) <= 3, "an address holds more than the limit"


async def extension(office: BoxOffice) -> None:
    """Every change of a seat has a version and a fact of its own, which `verify` compares."""
    ask = await office.hold(*office.seats(1))
    assert [verdict for verdict, _ in await office.extend(ask)] == ["extended"]


async def sign_in_with_a_hold(office: BoxOffice) -> None:
    """A guest's hold becomes the account's, with a version and a fact that names the account."""
    ask = await office.hold(*office.seats(1))
    assert await office.hand_over(ask.user_id, new_id()) == ["kept"]


async def sign_in_by_one_who_is_no_guest(office: BoxOffice) -> None:
    ask = await office.hold(*office.seats(1))
    assert await office.hand_over(ask.user_id, new_id(), is_guest=False) == [], "an account lost a hold to another"


async def sign_in_with_an_expired_hold(office: BoxOffice) -> None:
    ask = await office.hold(*office.seats(1))
    await age_holds(office.owner, hold_ids(ask), seconds=HOUR_S / 2)
    assert await office.hand_over(ask.user_id, new_id()) == [], "an expired hold was handed over"


async def sign_in_while_the_account_asks(office: BoxOffice) -> None:
    """Ten seats in five minutes, also for an account that asks for some and signs in with others at once."""
    user_id = new_id()
    guest = await office.hold(*office.seats(6))
    async with uncommitted(office, office.ask(*office.seats(6), user_id=user_id)):
        signing_in = asyncio.create_task(office.hand_over(guest.user_id, user_id))
        await wait_until_blocked(office, 1, signing_in)
    await signing_in
    assert await office.active(user_id) <= 10, "a buyer holds more than the limit"
