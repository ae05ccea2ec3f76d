"""Planted bugs: would anybody notice? Each is a copy of the registry's functions with one guard taken out.

The copy is applied to a database of its own and a short workload is run there, which must be caught: by the workload's
own words, as the rest of the suite would say them, or by `voelgoed verify`. The same workload on the functions as they
are must pass. Nothing of this can be switched on in the product: the bugs are edits of its text, made here.
"""

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import asyncpg
import pytest

from tests.conftest import TEMPLATE
from tests.make.accounts import make_organization
from tests.make.races import age_holds, connect_application, connect_owner, database_alone, hall_layout, seat_ids
from tests.make.seating import Seated, as_registry, seated_event
from voelgoed import schema
from voelgoed.accounts.model import Organization
from voelgoed.config import Settings
from voelgoed.db import Connection, Database
from voelgoed.embedded import Embedded
from voelgoed.errors import LostRace
from voelgoed.events.model import OPERATOR
from voelgoed.holds import auditing, registry, store
from voelgoed.holds.model import Ask, Item, Outcome, Verdict
from voelgoed.ids import new_id
from voelgoed.journal.model import Origin
from voelgoed.seating.studio import Studio
from voelgoed.wiring import Services

FUNCTIONS = "holds/functions.sql"
PIT = 20
SEATS = 60
TRIES = 4
WITHIN_S = 20


class Caught(Exception):
    """A workload has seen what must not be."""


def expect(holds: object, what: str) -> None:
    """What a test of the suite would assert."""
    if not holds:
        raise Caught(what)


@dataclass
class World:
    """A database, an event in it, and the calls that a workload makes."""

    servers: Embedded
    database: str
    db: Database
    owner: Connection
    place: Organization
    other_place: Organization
    seated: Seated

    def ask(self, *seats: UUID, places: int = 0, user_id: UUID | None = None, **over: Any) -> Ask:
        """An ask for seats, or for places of the pit."""
        items = [Item(new_id(), seat_id=seat_id) for seat_id in seats]
        if places:
            items.append(Item(new_id(), zone_id=self.seated.hall.zone_id("P1"), quantity=places))
        known: dict[str, Any] = {
            "organization_id": self.place.id,
            "event_id": self.seated.event.id,
            "user_id": user_id or new_id(),
            "role": "customer",
            "is_staff": False,
            "items": tuple(items),
            "cart_token": "a basket",
            "source": "web",
            "request_id": new_id(),
            "origin": Origin(),
            "ip": None,
        }
        return Ask(**known | over)

    async def reserve(self, ask: Ask) -> list[Verdict]:
        return (await store.reserve_batch(self.db.call, [ask]))[0]

    async def hold(self, *seats: UUID) -> tuple[UUID, list[UUID]]:
        """Somebody who holds seats, and the holds."""
        ask = self.ask(*seats)
        said = await self.reserve(ask)
        assert {one.outcome for one in said} == {Outcome.CREATED}
        return ask.user_id, [item.hold_id for item in ask.items]

    async def convert(self, user_id: UUID, holds: Sequence[UUID]) -> str:
        """Sell without a word about money."""
        values = ([new_id() for _ in holds], [new_id() for _ in holds], new_id(), False, new_id(), None)
        return await store.convert_holds(
            self.db.call, self.place.id, self.seated.event.id, user_id, list(holds), *values
        )

    async def hand_over(self, user_id: UUID, to: UUID, *, is_guest: bool = True) -> list[str]:
        """What somebody holds becomes another's, if they are a guest; what is said of each hold."""
        async with self.db.transaction(self.place.id) as conn:
            await conn.execute("insert into users (id, name, is_guest) values ($1, 'G', $2)", user_id, is_guest)
            handed = await registry.hand_over(
                conn, self.place.id, user_id, to, role="customer", is_staff=False, by=OPERATOR
            )
        return [one.verdict for one in handed]

    async def status(self, hold_id: UUID) -> str | None:
        async with self.db.system_transaction() as conn:
            found: str | None = await conn.fetchval("select status::text from seat_holds where id = $1", hold_id)
        return found

    async def held_by(self, user_id: UUID) -> int:
        """How many places somebody holds."""
        async with self.db.system_transaction() as conn:
            count: int = await conn.fetchval(
                "select coalesce(sum(quantity), 0) from seat_holds where user_id = $1 and status = 'active'", user_id
            )
        return count

    async def until_waiting(self, sessions: int, *tasks: asyncio.Task[Any]) -> None:
        """Until so many sessions wait for a lock, or these are done without one."""
        admin = await asyncpg.connect(self.servers.admin_url)
        waiting = "select count(*) from pg_stat_activity where datname = $1 and wait_event_type = 'Lock'"
        try:
            async with asyncio.timeout(WITHIN_S):
                while not all(task.done() for task in tasks):
                    if await admin.fetchval(waiting, self.database) >= sessions:
                        return
        finally:
            await admin.close()

    @contextlib.asynccontextmanager
    async def somebody_at(self, seat_id: UUID) -> AsyncIterator[None]:
        """Somebody has a seat's row while the block lasts."""
        async with as_registry(self.owner):
            await self.owner.execute(
                "select from event_seats where event_id = $1 and seat_id = $2 for no key update",
                self.seated.event.id,
                seat_id,
            )
            yield

    @contextlib.asynccontextmanager
    async def half_done(self, ask: Ask) -> AsyncIterator[None]:
        """Another process has made this ask and has not committed yet; it does when the block ends."""
        async with connect_application(self.servers, self.database) as conn, conn.transaction():
            said = await store.reserve_batch(conn.fetch, [ask])
            assert {one.outcome for one in said[0]} == {Outcome.CREATED}
            yield


# WORKLOADS: each takes seats nobody has touched.


async def release_a_strangers_hold(world: World, seats: Sequence[UUID]) -> None:
    """A stranger is told that the hold is not theirs, and it stays."""
    _, (hold_id,) = await world.hold(seats[0])
    said = await registry.release(
        world.db, world.place.id, world.seated.event.id, [hold_id], user_id=new_id(), by=OPERATOR, reason="released"
    )
    expect(said == {hold_id: "not_hold_owner"}, "a stranger let somebody's hold go")
    expect(await world.status(hold_id) == "active", "a stranger ended somebody's hold")


async def lapse_while_waiting(world: World, seats: Sequence[UUID]) -> None:
    """A hold that lapses while its sale waits for the seat is not sold."""
    for seat_id in seats[:TRIES]:
        user_id, holds = await world.hold(seat_id)
        async with world.somebody_at(seat_id):
            selling = asyncio.create_task(world.convert(user_id, holds))
            await world.until_waiting(1, selling)
            await world.owner.execute(
                "update seat_holds set initial_expires_at = now.at, expires_at = now.at"
                " from (select clock_timestamp() as at) as now where id = any ($1)",
                holds,
            )
            await world.owner.execute(
                "update event_seats s set held_until = h.expires_at from seat_holds h"
                " where s.hold_id = h.id and h.id = any ($1)",
                holds,
            )
        try:
            said = await selling
        except LostRace:  # it waited too long, so this shows nothing
            continue
        expect(said == "holds_expired", "a hold was sold whose end had come")
        return
    raise AssertionError("never quick enough")


async def two_at_one_seat(world: World, seats: Sequence[UUID]) -> None:
    """Whoever comes while another's hold is about to be committed does not write over it."""
    second = world.ask(seats[0])
    async with world.half_done(world.ask(seats[0])):
        asking = asyncio.create_task(world.reserve(second))
        await world.until_waiting(1, asking)
    try:
        said = await asking
    except asyncpg.PostgresError as stopped:
        raise Caught(f"only a constraint was left: {stopped}") from stopped
    if said[0].outcome is not Outcome.CREATED:
        expect(said[0].outcome is Outcome.BUSY, "somebody at the seat is not waited for")


async def cross_each_other(world: World, seats: Sequence[UUID]) -> None:
    """A release and a block of the same seats, both begun: neither is in the other's way for good."""
    lost = 0
    for number in range(TRIES):
        three = seats[3 * number : 3 * number + 3]
        user_id, holds = await world.hold(*three)
        values, is_block = (world.place.id, world.seated.event.id), True
        async with world.somebody_at(three[1]):
            releasing = asyncio.create_task(
                store.release_holds(world.db.call, *values, user_id, holds, user_id, new_id(), None, "released")
            )
            await world.until_waiting(1, releasing)
            blocking = asyncio.create_task(
                store.block_seats(world.db.call, *values, three, is_block, user_id, new_id(), None, "in a test")
            )
            await world.until_waiting(2, blocking)
        said = await asyncio.gather(releasing, blocking, return_exceptions=True)
        lost = sum(isinstance(one, LostRace) for one in said)
        if not lost:
            return
    expect(not lost, "two calls stood in each other's way, every time")


async def ask_for_more_than_there_is(world: World, seats: Sequence[UUID]) -> None:
    """The last places of a pit are not given twice."""
    most = world.ask(places=PIT - 2, is_staff=True)
    assert (await world.reserve(most))[0].outcome is Outcome.CREATED
    try:
        said = await world.reserve(world.ask(places=3))
    except asyncpg.CheckViolationError as stopped:
        raise Caught(f"only a constraint was left: {stopped}") from stopped
    if said[0].outcome is not Outcome.CREATED:
        expect((said[0].outcome, said[0].state) == (Outcome.FULL, "2"), "a full pit is said to be full")
        expect((await world.reserve(world.ask(places=2)))[0].outcome is Outcome.CREATED, "what there is can be had")


async def ask_across_organizations(world: World, seats: Sequence[UUID]) -> None:
    """Somebody of another organization finds nothing."""
    said = await world.reserve(world.ask(seats[0], organization_id=world.other_place.id))
    if said[0].outcome is not Outcome.CREATED:
        expect(said[0].outcome is Outcome.EVENT_NOT_FOUND, "another organization's event was found")


async def ask_for_a_held_seat(world: World, seats: Sequence[UUID]) -> None:
    """Nobody loses a hold before its end."""
    _, (hold_id,) = await world.hold(seats[0])
    said = await world.reserve(world.ask(seats[0]))
    if said[0].outcome is not Outcome.CREATED:
        expect(said[0].outcome is Outcome.SEAT_HELD, "a held seat is refused as held")
        expect(await world.status(hold_id) == "active", "a hold ended before its end")


async def ask_for_a_lapsed_seat(world: World, seats: Sequence[UUID]) -> None:
    """A lapsed hold is taken over by the very next ask, though nobody has tidied it away."""
    _, holds = await world.hold(seats[0])
    await age_holds(world.owner, holds, seconds=3600)
    said = await world.reserve(world.ask(seats[0]))
    expect(said[0].outcome is Outcome.CREATED, "a free seat could not be had")


async def ask_for_a_broken_group(world: World, seats: Sequence[UUID]) -> None:
    """A group of which one seat is gone gets nothing."""
    await world.hold(seats[1])
    group = world.ask(*seats[:3])
    said = await world.reserve(group)
    expect(not any(one.outcome is Outcome.CREATED for one in said), "a part of a group was given")
    expect(await world.held_by(group.user_id) == 0, "a refused ask left holds behind")


async def sell_a_lapsed_hold(world: World, seats: Sequence[UUID]) -> None:
    """What has lapsed is not sold without having been paid."""
    user_id, holds = await world.hold(seats[0])
    await age_holds(world.owner, holds, seconds=3600)
    said = await world.convert(user_id, holds)
    if said != "sold":
        expect(said == "holds_expired", "a lapsed hold is said to have lapsed")


async def ask_in_two_places_at_once(world: World, seats: Sequence[UUID]) -> None:
    """Ten seats in five minutes, also for whoever asks two processes at once."""
    user_id = new_id()
    async with world.half_done(world.ask(*seats[:6], user_id=user_id)):
        asking = asyncio.create_task(world.reserve(world.ask(*seats[6:12], user_id=user_id)))
        await world.until_waiting(1, asking)
    await asking
    expect(await world.held_by(user_id) <= 10, "somebody holds more than the limit")


async def extend_a_hold(world: World, seats: Sequence[UUID]) -> None:
    """Every change of a seat has a version and a fact of its own."""
    user_id, holds = await world.hold(seats[0])
    said = await registry.extend(world.db, world.place.id, world.seated.event.id, user_id, holds, by=OPERATOR)
    assert [verdict for _, verdict, _ in said] == ["extended"]


async def hand_over_a_hold(world: World, seats: Sequence[UUID]) -> None:
    """A guest's hold becomes somebody's, and everybody hears whose it is."""
    guest_id, _ = await world.hold(seats[0])
    assert await world.hand_over(guest_id, new_id()) == ["kept"]


async def hand_over_somebodys_hold(world: World, seats: Sequence[UUID]) -> None:
    """Of somebody who is no guest nothing is handed over, whoever asks for it."""
    owner_id, _ = await world.hold(seats[0])
    expect(await world.hand_over(owner_id, new_id(), is_guest=False) == [], "somebody lost a hold who is no guest")


async def hand_over_a_lapsed_hold(world: World, seats: Sequence[UUID]) -> None:
    """What has lapsed is nobody's to keep."""
    guest_id, holds = await world.hold(seats[0])
    await age_holds(world.owner, holds, seconds=1_800)
    expect(await world.hand_over(guest_id, new_id()) == [], "a hold was kept whose end had come")


async def hand_over_while_the_account_asks(world: World, seats: Sequence[UUID]) -> None:
    """Ten seats in five minutes, also for whoever asks for some and signs in with others at once."""
    user_id = new_id()
    guest_id, _ = await world.hold(*seats[:6])
    async with world.half_done(world.ask(*seats[6:12], user_id=user_id)):
        signing_in = asyncio.create_task(world.hand_over(guest_id, user_id))
        await world.until_waiting(1, signing_in)
    await signing_in
    expect(await world.held_by(user_id) <= 10, "somebody holds more than the limit")


Workload = Callable[[World, Sequence[UUID]], Awaitable[None]]


@dataclass(frozen=True)
class Bug:
    """Edits of functions, what else has to go for them to do harm, and who must notice."""

    name: str
    edits: tuple[tuple[str, str, str], ...]
    workload: Workload
    says: str | None = None
    check: str | None = None
    also: str = ""
    everywhere: bool = False

    def plant(self, sql: str) -> str:
        """The text of the functions with the bug in it; an edit that finds nothing to edit is an error."""
        parts = re.split(r"(?m)^(?=create or replace function )", sql)
        for function, old, new in self.edits:
            (at,) = [n for n, part in enumerate(parts) if part.startswith(f"create or replace function {function}(")]
            found = parts[at].count(old)
            assert found > 0 if self.everywhere else found == 1, f"{self.name}: {found} times in {function}: {old}"
            parts[at] = parts[at].replace(old, new)
        return "".join(parts) + self.also


SYSTEM = "perform set_config('app.scope', 'system', true);"
OWN = "perform set_config('app.organization_id', p_organization::text, true);"
NO_ROW_LOCK = (("reserve_batch", "\n                            for no key update skip locked) as s", ") as s"),)
LAPSED = "where s.status = 'held' and s.held_until <= (select lapse_clock(moment))"
# A row is where it was when it was locked, or not to be found: that is one guard more.
SOUGHT_AGAIN = (
    (
        "reserve_batch",
        "(place, tid)\n       where s.ctid = n.tid",
        "(place, tid)\n       where s.event_id = p_event and s.seat_id = p_seats[n.place]",
    ),
)
NO_PIT_GUARD = (("reserve_zones", "      when free < wanted then 'block_at_capacity'\n", ""),)
NO_TENANT = (
    ("reserve_batch", "z.organization_id = p_organization and ", ""),
    ("reserve_batch", "e.organization_id = p_organization and ", ""),
    ("seats_named", "e.organization_id = p_organization and ", ""),
)

BUGS = (
    Bug(
        name="release without owner",
        edits=(("hold_release", "and (p_user is null or h.user_id = p_user)", ""),),
        workload=release_a_strangers_hold,
        says="a stranger let somebody's hold go",
    ),
    Bug(
        name="clock before lock",
        edits=(
            ("lock_holds", "as $$\ndeclare", "as $$\ndeclare\n  early timestamptz := clock_timestamp();"),
            ("lock_holds", "return clock_timestamp();", "return early;"),
        ),
        workload=lapse_while_waiting,
        says="a hold was sold whose end had come",
    ),
    Bug(
        name="missing version guard",
        edits=(*NO_ROW_LOCK, *SOUGHT_AGAIN),
        workload=two_at_one_seat,
        says="only a constraint was left",
    ),
    Bug(
        name="missing version guard, nor an index of active holds",
        edits=(*NO_ROW_LOCK, *SOUGHT_AGAIN),
        also="drop index seat_holds_active_seat;",
        workload=two_at_one_seat,
        check="two_active_holds_of_a_seat",
    ),
    Bug(
        name="version not raised",
        edits=(("hold_extend", "set held_until = w.later, version = s.version + 1", "set held_until = w.later"),),
        workload=extend_a_hold,
        check="ledger_with_a_gap",
    ),
    Bug(
        name="unordered locks",
        edits=(("lock_holds", "order by n.ordinal) as n", "order by n.ordinal desc) as n"),),
        workload=cross_each_other,
        says="two calls stood in each other's way",
    ),
    Bug(
        name="counter without guard",
        edits=NO_PIT_GUARD,
        workload=ask_for_more_than_there_is,
        says="only a constraint was left",
    ),
    Bug(
        name="counter without guard, nor a check of the table",
        edits=NO_PIT_GUARD,
        also="alter table event_zones drop constraint event_zones_counts;",
        workload=ask_for_more_than_there_is,
        check="zone_that_does_not_add_up",
    ),
    Bug(
        name="tenant filter dropped",
        edits=(*NO_TENANT, ("reserve_batch", OWN, SYSTEM)),
        workload=ask_across_organizations,
        check="hold_across_organizations",
        everywhere=True,
    ),
    Bug(
        name="take-over without predicate",
        edits=(
            (
                "reserve_batch",
                LAPSED,
                "where s.status = 'held'",
            ),
        ),
        workload=ask_for_a_held_seat,
        check="hold_that_ended_at_the_wrong_time",
    ),
    Bug(
        name="no take-over",
        edits=(("reserve_batch", LAPSED, "where false"),),
        workload=ask_for_a_lapsed_seat,
        says="a free seat could not be had",
    ),
    Bug(
        name="group partial success",
        edits=(
            (
                "reserve_batch",
                "when not is_whole then case when own in ('created', 'existing') then 'group_refused' else own end",
                "when not is_whole and own not in ('created', 'existing') then own",
            ),
            (
                "reserve_batch",
                "then 'group_refused'\n                  else decided end as outcome",
                "then decided\n                  else decided end as outcome",
            ),
        ),
        workload=ask_for_a_broken_group,
        says="a part of a group was given",
    ),
    Bug(
        name="convert without expiry test",
        edits=(
            (
                "hold_convert",
                "bool_and(h.status = 'active' and h.expires_at > moment) as are_live",
                "bool_and(h.status = 'active') as are_live",
            ),
        ),
        workload=sell_a_lapsed_hold,
        check="hold_that_ended_at_the_wrong_time",
    ),
    Bug(
        name="hand-over that raises no version",
        edits=(("holds_hand_over", "set held_by = p_user, version = s.version + 1", "set held_by = p_user"),),
        workload=hand_over_a_hold,
        check="ledger_with_a_gap",
    ),
    Bug(
        name="hand-over told as the guest's",
        edits=(
            (
                "holds_hand_over",
                "hold.event_id, seat_id, version, p_user,",
                "hold.event_id, seat_id, version, p_guest,",
            ),
        ),
        workload=hand_over_a_hold,
        check="holder_who_was_never_told",
    ),
    Bug(
        name="hand-over of the hold and not of the seat",
        edits=(("holds_hand_over", "set held_by = p_user, version", "set version"),),
        workload=hand_over_a_hold,
        check="held_seat_without_its_hold",
    ),
    Bug(
        name="hand-over of anybody's",
        edits=(("holds_hand_over", "u.id = p_guest and u.is_guest", "u.id = p_guest"),),
        workload=hand_over_somebodys_hold,
        says="somebody lost a hold who is no guest",
    ),
    Bug(
        name="hand-over without expiry test",
        edits=(
            ("holds_hand_over", "and h.expires_at > clock_timestamp()", ""),
            (
                "holds_hand_over",
                "and h.status = 'active' and h.expires_at > moment\n               order",
                "and h.status = 'active'\n               order",
            ),
        ),
        workload=hand_over_a_lapsed_hold,
        says="a hold was kept whose end had come",
    ),
    Bug(
        name="hand-over without lock of people",
        edits=(("holds_hand_over", "perform pg_advisory_xact_lock(k)", "perform k"),),
        workload=hand_over_while_the_account_asks,
        says="somebody holds more than the limit",
    ),
    Bug(
        name="limit without lock",
        edits=(("reserve_batch", "perform pg_advisory_xact_lock(k)", "perform k"),),
        workload=ask_in_two_places_at_once,
        says="somebody holds more than the limit",
    ),
)


@contextlib.asynccontextmanager
async def made(servers: Embedded, settings: Settings, services: Services, name: str, sql: str) -> AsyncIterator[World]:
    """A world whose registry has these functions."""
    async with contextlib.AsyncExitStack() as held:
        alone = await held.enter_async_context(database_alone(servers, settings, TEMPLATE, name))
        owner = await held.enter_async_context(connect_owner(servers, name))
        await owner.execute(sql)
        assert alone.database_url is not None
        db = await Database.open(alone.database_url.get_secret_value(), size=4)
        held.push_async_callback(db.close)
        place, other_place = await make_organization(db), await make_organization(db)
        hall = hall_layout(seats=SEATS, pits=(PIT,))
        seated = await seated_event(db, Studio(db, services.cache), place, hall, status="published")
        yield World(servers, name, db, owner, place, other_place, seated)


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
async def test_a_planted_bug_is_caught(
    bug: Bug, servers: Embedded, settings: Settings, services: Services, worker_id: str
) -> None:
    """The workload passes on the functions as they are, and somebody notices when they are not."""
    sql = schema.load_functions()[FUNCTIONS]
    async with made(servers, settings, services, f"whole_{worker_id}", sql) as whole:
        await bug.workload(whole, seat_ids(whole.seated))
        assert await auditing.verify(whole.db) == []
    async with made(servers, settings, services, f"planted_{worker_id}", bug.plant(sql)) as broken:
        if bug.says:
            with pytest.raises(Caught, match=bug.says):
                await bug.workload(broken, seat_ids(broken.seated))
        else:
            await bug.workload(broken, seat_ids(broken.seated))
            assert bug.check in {finding.check for finding in await auditing.verify(broken.db)}


@pytest.mark.req("TEN-07")
async def test_row_level_security_stands_behind_the_filter(
    servers: Embedded, settings: Settings, services: Services, worker_id: str
) -> None:
    """Without a single filter in the text, another organization's seats are not found all the same."""
    bug = Bug(name="filters only", edits=NO_TENANT, workload=ask_across_organizations, everywhere=True)
    sql = bug.plant(schema.load_functions()[FUNCTIONS])
    async with made(servers, settings, services, f"planted_{worker_id}", sql) as world:
        await bug.workload(world, seat_ids(world.seated))
        assert await auditing.verify(world.db) == []
