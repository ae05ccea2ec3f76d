"""A guest signs in: what they hold is the account's, all of it and with the time it had, or they are not signed in."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

import asyncpg
import pytest

from tests.make.accounts import PASSWORD, Person, make_organization, make_person
from tests.make.holds import Sale, let_pass, on_sale
from tests.make.races import event_in, hall_layout
from tests.make.seating import as_registry, facts_of, zone_rows
from voelgoed.accounts.model import Actor, Call, Organization, Role
from voelgoed.accounts.signing import SignedIn
from voelgoed.db import Conn, Connection
from voelgoed.embedded import Embedded
from voelgoed.errors import Busy, LostRace, OutcomeUnknown
from voelgoed.events.model import OPERATOR
from voelgoed.holds import booking, handover, registry
from voelgoed.holds.following import gather
from voelgoed.holds.handover import Basket
from voelgoed.holds.hotmap import HELD
from voelgoed.holds.model import HandedOver
from voelgoed.holds.refusals import NotHoldOwner
from voelgoed.ids import OrganizationId, new_id
from voelgoed.journal import reader
from voelgoed.seating import policies
from voelgoed.wiring import Services

NOTHING = Basket(kept=0, released=0)
PIT = "P1"
GUESTS = 12


@dataclass(slots=True)
class House:
    """A hall with seats and a pit on sale, a guest who has come there, and somebody with an account."""

    services: Services
    sale: Sale
    guest: Person
    person: Person
    password_hash: str

    @property
    def place(self) -> Organization:
        return self.sale.place

    @property
    def as_guest(self) -> Call:
        return call_by(self.guest, is_guest=True)

    @property
    def as_person(self) -> Call:
        return call_by(self.person)

    async def sign_in(
        self, by: Call | None = None, *, to: Person | None = None, at: Organization | None = None
    ) -> tuple[SignedIn, Basket]:
        """From the guest's browser, when nobody else is named."""
        email = (to or self.person).email
        assert email is not None
        return await handover.sign_in(
            self.services.door,
            self.services.lanes,
            by or self.as_guest,
            organization=(at or self.place).slug,
            email=email,
            password=PASSWORD,
        )

    async def held(self, call: Call, sale: Sale | None = None) -> list[UUID]:
        """What somebody holds of the event, by id, oldest first."""
        found = await booking.list_own(self.services.db, call, (sale or self.sale).event.id)
        return [one.hold.id for one in found]

    async def allow(self, **limits: object) -> None:
        async with self.services.db.transaction(self.place.id) as conn:
            await policies.save(conn, self.place.id, limits, by=OPERATOR, role=Role.SUPER_ADMIN, reason="in a test")

    async def another_event(self) -> Sale:
        return replace(self.sale, seated=await event_in(self.services.studio, self.place, self.sale.seated))

    async def is_signed_in(self, person: Person) -> bool:
        async with self.services.db.system_transaction() as conn:
            return bool(await conn.fetchval("select revoked_at is null from sessions where id = $1", person.session_id))

    async def make_person(self, role: Role = Role.CUSTOMER) -> Person:
        return await make_person(self.services.db, self.place, role, password_hash=self.password_hash)

    async def make_guest(self) -> Person:
        return await make_person(self.services.db, self.place, is_guest=True)


def call_by(person: Person, *, is_guest: bool = False) -> Call:
    """What the edge finds out of somebody's session."""
    actor = Actor(
        role=person.role,
        organization_id=person.organization.id,
        user_id=person.user_id,
        is_guest=is_guest,
        session_id=person.session_id,
    )
    return Call(actor=actor, request_id=new_id(), ip="192.0.2.7")


@pytest.fixture(scope="module")
async def password_hash(services: Services) -> str:
    return await services.door.passwords.hash(PASSWORD)


@pytest.fixture
async def house(services: Services, place: Organization, password_hash: str) -> House:
    sale = await on_sale(services, place, layout=hall_layout(seats=30, wheelchairs=3, pits=[100]))
    guest = await make_person(services.db, place, is_guest=True)
    person = await make_person(services.db, place, password_hash=password_hash)
    return House(services, sale, guest, person, password_hash)


def seats(*numbers: int) -> list[str]:
    return [f"S-A-{number}" for number in numbers]


async def test_what_a_guest_holds_is_the_accounts(house: House) -> None:
    """At every event, seats and places; nothing of it changes but whose it is, and all of it is told."""
    sale, other = house.sale, await house.another_event()
    held = await sale.hold(house.as_guest, *seats(10, 11))
    held.append(await sale.hold_places(house.as_guest, 3, PIT))
    elsewhere = await other.hold(house.as_guest, *seats(12))
    before = {row["id"]: dict(row) for row in await sale.rows()}
    zone = (await zone_rows(sale.db, sale.event))[1]

    signed_in, basket = await house.sign_in()

    assert basket == Basket(kept=6, released=0)
    assert (signed_in.user.id, signed_in.user.is_guest) == (house.person.user_id, False)
    assert await house.held(house.as_guest) == []
    assert await house.held(house.as_person) == [one.hold.id for one in held]
    assert await house.held(house.as_person, other) == [one.hold.id for one in elsewhere]
    for row in await sale.rows():
        changed = {name for name, value in row.items() if before[row["id"]][name] != value}
        assert changed == {"user_id", "updated_at"}
    seat = await sale.row("S-A-10")
    assert (seat["status"], seat["held_by"], seat["hold_id"]) == ("held", house.person.user_id, held[0].hold.id)
    assert (seat["version"], seat["held_until"]) == (3, held[0].hold.expires_at)
    moved = (await zone_rows(sale.db, sale.event))[1]
    assert (moved["held"], moved["version"]) == (zone["held"], zone["version"] + 1)

    told = await facts_of(sale.db, sale.event, "seat_hold_handed_over")
    assert [(fact["seat_id"], fact["actor_id"], fact["version"]) for fact in told] == [
        (sale.seat("S-A-10"), house.person.user_id, 3),
        (sale.seat("S-A-11"), house.person.user_id, 3),
        (None, house.person.user_id, moved["version"]),
    ]
    assert {fact["data"]["guest_id"] for fact in told} == {str(house.guest.user_id)}
    assert {UUID(fact["data"]["hold_id"]) for fact in told} == {one.hold.id for one in held}


async def test_the_tiers_hear_whose_it_is(house: House) -> None:
    """What is told of it makes a seat the account's in every map; a pit is as full as it was."""
    async with house.services.db.system_transaction() as conn:
        start = await reader.start_position(conn)
    await house.sale.hold(house.as_guest, *seats(10))
    await house.sale.hold_places(house.as_guest, 2, PIT)
    await house.sign_in()
    async with house.services.db.system_transaction() as conn:
        batch = await reader.read_kinds_after(conn, start, ("seat_hold_",), house.place.id)
    news = gather(batch.facts)[house.sale.event.id]
    (seat,), (zone,) = news.seats, news.zones
    assert (seat.status, seat.user_id, seat.version) == (HELD, house.person.user_id, 3)
    assert seat.until_ms is not None
    assert (zone.held, zone.sold) == (2, 0)
    assert zone.until_ms is not None
    assert not news.is_whole


async def test_what_was_handed_over_is_the_accounts_to_use(house: House) -> None:
    """It is extended, let go and bought by the account; the guest's browser can do none of it any more."""
    first, second, third = await house.sale.hold(house.as_guest, *seats(10, 11, 12))
    await house.sign_in()
    with pytest.raises(NotHoldOwner):
        await booking.extend(house.services.db, house.as_guest, first.hold.id)
    with pytest.raises(NotHoldOwner):
        await booking.release(house.services.lanes, house.services.db, house.as_guest, first.hold.id)
    extended = await booking.extend(house.services.db, house.as_person, first.hold.id)
    assert extended.expires_at > first.hold.expires_at
    await booking.release(house.services.lanes, house.services.db, house.as_person, second.hold.id)
    assert (await house.sale.buy(house.as_person, third))[0] == "sold"
    again = await house.sale.hold(house.as_person, "S-A-10")  # at once, although the map here had it as the guest's
    assert (again[0].hold.id, again[0].is_new) == (first.hold.id, False)


async def test_the_guest_is_a_guest_no_more(house: House) -> None:
    """Their session is over and they hold nothing; what they held once stays on record as theirs."""
    (gone,) = await house.sale.hold(house.as_guest, "S-A-10")
    await booking.release(house.services.lanes, house.services.db, house.as_guest, gone.hold.id)
    await house.sale.hold(house.as_guest, "S-A-11")
    await house.sign_in()
    assert not await house.is_signed_in(house.guest)
    assert await house.services.sessions.find(house.guest.token) is None
    assert [(row["user_id"], row["status"]) for row in await house.sale.rows()] == [
        (house.guest.user_id, "cancelled"),
        (house.person.user_id, "active"),
    ]


async def test_nobody_gains_time_or_what_has_lapsed(house: House, owner_conn: Connection) -> None:
    """What has lapsed stays the guest's, whether or not anybody has tidied it away."""
    lapsed, live = await house.sale.hold(house.as_guest, *seats(10, 11))
    await let_pass(owner_conn, lapsed.hold.id)
    assert (await house.sign_in())[1] == Basket(kept=1, released=0)
    assert await house.held(house.as_person) == [live.hold.id]
    rows = {row["id"]: row["user_id"] for row in await house.sale.rows()}
    assert rows[lapsed.hold.id] == house.guest.user_id


Limits = tuple[dict[str, object], list[str], list[str], list[str]]
LIMITS: dict[str, Limits] = {
    "a booking": ({"max_seats_per_booking": 4}, seats(20, 21), seats(10, 11, 12), seats(10, 11)),
    "wheelchairs": ({"max_wheelchair_seats_per_booking": 2}, seats(1), ["S-A-2", "S-A-3", "S-A-10"], seats(2, 10)),
    "a person": ({"max_holds_per_user": 3}, seats(20, 21), seats(10, 11), seats(10)),
    "a while": (
        {"max_seats_per_booking": 20},
        seats(20, 21, 22, 23, 24, 25),
        seats(10, 11, 12, 13, 14),
        seats(10, 11, 12, 13),
    ),
}
"""What the policy says, what the account has, what the guest has, and what of that is kept."""


@pytest.mark.parametrize("limit", LIMITS)
async def test_what_the_account_may_not_hold_is_let_go(house: House, limit: str) -> None:
    """Its own counts first, then the guest's, oldest first; the others are free for anybody in the same moment."""
    said, own, asked, kept = LIMITS[limit]
    await house.allow(**said)
    for code in own:
        await house.sale.hold(house.as_person, code)
    for code in asked:
        await house.sale.hold(house.as_guest, code)

    _, basket = await house.sign_in()

    assert basket == Basket(kept=len(kept), released=len(asked) - len(kept))
    for code in asked:
        row = await house.sale.row(code)
        expected = ("held", house.person.user_id) if code in kept else ("available", None)
        assert (row["status"], row["held_by"]) == expected, code
    released = await facts_of(house.sale.db, house.sale.event, "seat_hold_released")
    assert [fact["data"]["reason"] for fact in released] == ["left_at_sign_in"] * basket.released
    left = next(code for code in asked if code not in kept)
    await house.sale.hold(house.sale.caller(), left)


async def test_places_by_number_are_kept_whole_or_let_go(house: House) -> None:
    """Who held four and may have three has none of them, and the zone counts no more than what is held."""
    await house.allow(max_seats_per_booking=6)
    await house.sale.hold_places(house.as_person, 3, PIT)
    await house.sale.hold_places(house.as_guest, 4, PIT)
    await house.sale.hold_places(house.as_guest, 2, PIT)
    assert (await house.sign_in())[1] == Basket(kept=2, released=4)
    assert (await zone_rows(house.sale.db, house.sale.event))[1]["held"] == 5


async def test_staff_are_not_limited(house: House) -> None:
    """As when they ask themselves."""
    staff = await house.make_person(Role.STAFF)
    await house.sale.hold(call_by(staff), *seats(10, 11, 12, 13, 14, 15))
    await house.sale.hold(house.as_guest, *seats(16, 17, 18, 19, 20))
    assert (await house.sign_in(to=staff))[1] == Basket(kept=5, released=0)


@pytest.mark.parametrize("is_member", [True, False])
async def test_a_zone_for_members_stays_for_members(
    services: Services, place: Organization, password_hash: str, *, is_member: bool
) -> None:
    """A guest who was given a membership may hold there; an account that has none may not."""
    sale = await on_sale(services, place)
    guest = await make_person(services.db, place, is_guest=True)
    person = await make_person(services.db, place, password_hash=password_hash)
    async with services.db.transaction(place.id) as conn:
        await conn.execute(
            "insert into memberships (id, organization_id, user_id, tier)"
            " select gen_random_uuid(), $1, id, 'gold' from unnest($2::uuid[]) as one (id)",
            place.id,
            [guest.user_id, *([person.user_id] if is_member else [])],
        )
    house = House(services, sale, guest, person, password_hash)
    await sale.hold(house.as_guest, "V-A-1", "S-A-1")
    expected = Basket(kept=2, released=0) if is_member else Basket(kept=1, released=1)
    assert (await house.sign_in())[1] == expected


async def test_who_is_somebody_already_takes_nothing_along(house: House) -> None:
    """To sign in as somebody else, or once more, moves nothing and ends nothing."""
    other = await house.make_person()
    held = await house.sale.hold(call_by(other), "S-A-10")
    for to in (house.person, other):
        assert (await house.sign_in(call_by(other), to=to))[1] == NOTHING
    assert await house.held(call_by(other)) == [held[0].hold.id]
    assert await house.is_signed_in(other)


async def test_a_guest_of_another_organization_stays_there(house: House) -> None:
    """Whoever signs in elsewhere has a session there; here they are the guest they were, with what they hold."""
    held = await house.sale.hold(house.as_guest, "S-A-10")
    elsewhere = await make_organization(house.services.db)
    assert (await house.sign_in(at=elsewhere))[1] == NOTHING
    assert await house.held(house.as_guest) == [held[0].hold.id]
    assert await house.is_signed_in(house.guest)


async def hand_over(house: House, guest_id: UUID, *, bound_to: OrganizationId | None = None) -> list[HandedOver]:
    """The registry's own call, with whatever is named."""
    async with house.services.db.transaction(bound_to or house.place.id) as conn:
        return await registry.hand_over(
            conn, house.place.id, guest_id, house.person.user_id, role="customer", is_staff=False, by=OPERATOR
        )


async def test_nobody_elses_holds_can_be_handed_over(house: House) -> None:
    """Not by naming somebody with an account, nobody at all, or a guest of another organization."""
    other, stranger = await house.make_person(), await make_organization(house.services.db)
    await house.sale.hold(call_by(other), "S-A-10")
    mine = await house.sale.hold(house.as_guest, "S-A-11")
    assert await hand_over(house, other.user_id) == []
    assert await hand_over(house, new_id()) == []
    assert await hand_over(house, house.person.user_id) == []
    assert await hand_over(house, house.guest.user_id, bound_to=stranger.id) == []
    assert await house.held(house.as_guest) == [mine[0].hold.id]
    assert len(await house.held(call_by(other))) == 1


async def test_no_more_than_so_many_at_once(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest; what is beyond that lapses where it is. No guest can hold as many as the limit is."""
    monkeypatch.setattr(registry, "HANDED_OVER_MAX", 2)
    for code in seats(10, 11, 12):
        await house.sale.hold(house.as_guest, code)
    assert (await house.sign_in())[1] == Basket(kept=2, released=0)
    assert len(await house.held(house.as_guest)) == 1


# Several at once


@pytest.mark.parametrize("accounts", [1, 2])
async def test_two_sign_ins_of_one_guest(house: House, accounts: int) -> None:
    """To one account or to two: everything is handed over once, and nobody is refused."""
    people = [house.person, await house.make_person()][:accounts] * (2 // accounts)
    held = await house.sale.hold(house.as_guest, *seats(10, 11, 12))
    done = await asyncio.gather(*(house.sign_in(to=person) for person in people))
    assert sorted(basket.kept for _, basket in done) == [0, 3]
    winner = next(signed_in.user.id for signed_in, basket in done if basket.kept)
    assert {row["user_id"] for row in await house.sale.rows()} == {winner}
    assert len(held) == 3


async def test_what_the_guest_asks_for_meanwhile(house: House) -> None:
    """A hold that is given before the hand-over is in it; one that comes after it is the guest's, and lapses."""
    for number in range(8):
        guest, person = await house.make_guest(), await house.make_person()
        call, code = call_by(guest, is_guest=True), f"S-A-{10 + number}"
        held, (_, basket) = await asyncio.gather(house.sale.hold(call, code), house.sign_in(call, to=person))
        row = await house.sale.row(code)
        assert row["hold_id"] == held[0].hold.id
        assert row["held_by"] == (person.user_id if basket.kept else guest.user_id)


async def test_a_hold_that_came_in_between_is_found_by_beginning_anew(house: House, owner_conn: Connection) -> None:
    """While the hand-over waits for one seat the guest is given another: both are the account's in the end."""
    first = await house.sale.hold(house.as_guest, "S-A-10")
    async with as_registry(owner_conn) as conn:
        await conn.execute(
            "select from event_seats where event_id = $1 and seat_id = $2 for update",
            house.sale.event.id,
            house.sale.seat("S-A-10"),
        )
        signing_in = asyncio.create_task(house.sign_in())
        await until_waiting(owner_conn)
        second = await house.sale.hold(house.as_guest, "S-A-20")
    assert (await signing_in)[1] == Basket(kept=2, released=0)
    assert await house.held(house.as_person) == [first[0].hold.id, second[0].hold.id]


async def until_waiting(conn: Connection) -> None:
    """Somebody waits for a lock of this connection."""
    asked = "select exists (select from pg_stat_activity where pg_backend_pid() = any (pg_blocking_pids(pid)))"
    async with asyncio.timeout(10):
        while not await conn.fetchval(asked):
            await asyncio.sleep(0.005)


async def test_many_guests_sign_in_while_others_take_and_let_go(house: House) -> None:
    """Holds of two events each, taken in either order: nobody waits in a circle, and nobody loses anything."""
    events = (house.sale, await house.another_event())
    guests = [(await house.make_guest(), await house.make_person()) for _ in range(GUESTS)]
    for number, (guest, _) in enumerate(guests):
        for sale in events[:: 1 if number % 2 else -1]:
            await sale.hold(call_by(guest, is_guest=True), f"S-A-{number + 10}")
            await sale.hold_places(call_by(guest, is_guest=True), 1, PIT)

    async def come_and_go(sale: Sale, number: int) -> None:
        who = sale.caller()
        held = await sale.hold_places(who, 2, PIT)
        await booking.release(house.services.lanes, sale.db, who, held.hold.id)
        seat = (await sale.hold(who, f"S-A-{number + 1}"))[0]
        await booking.release(house.services.lanes, sale.db, who, seat.hold.id)

    async with asyncio.timeout(60):
        done = await asyncio.gather(
            *(house.sign_in(call_by(guest, is_guest=True), to=person) for guest, person in guests),
            *(come_and_go(sale, number) for sale in events for number in range(4, 9)),
        )
    baskets = [one[1] for one in done if one is not None]
    assert baskets == [Basket(kept=4, released=0)] * GUESTS
    for sale in events:
        owners = {row["user_id"] for row in await sale.rows() if row["status"] == "active"}
        assert owners == {person.user_id for _, person in guests}


# When it cannot be done


@pytest.fixture
async def locked(house: House, owner_conn: Connection) -> AsyncIterator[None]:
    """Somebody is at a seat of the guest's, and stays there."""
    await house.sale.hold(house.as_guest, *seats(10, 11))
    async with as_registry(owner_conn) as conn:
        await conn.execute(
            "select from event_seats where event_id = $1 and seat_id = $2 for update",
            house.sale.event.id,
            house.sale.seat("S-A-11"),
        )
        yield


@pytest.mark.usefixtures("locked")
async def test_who_cannot_take_it_along_is_not_signed_in(house: House) -> None:
    """They are told to try again, and are the guest they were, with all of it."""
    with pytest.raises(LostRace):
        await house.sign_in()
    assert len(await house.held(house.as_guest)) == 2
    assert await house.is_signed_in(house.guest)
    assert await house.services.sessions.find(house.guest.token) is not None
    async with house.services.db.system_transaction() as conn:
        count = await conn.fetchval("select count(*) from sessions where user_id = $1", house.person.user_id)
    assert count == 1


@pytest.fixture
async def admin_conn(servers: Embedded) -> AsyncIterator[Connection]:
    """Of somebody who may end the connections of others."""
    conn = await asyncpg.connect(servers.admin_url)
    yield conn
    await conn.close()


@pytest.mark.parametrize("is_after", [False, True])
async def test_a_connection_that_is_cut(
    house: House, admin_conn: Connection, monkeypatch: pytest.MonkeyPatch, *, is_after: bool
) -> None:
    """Before the hand-over or right behind it: nothing is half handed over, and the next try does all of it."""
    held = [one.hold.id for one in await house.sale.hold(house.as_guest, *seats(10, 11))]
    held.append((await house.sale.hold_places(house.as_guest, 2, PIT)).hold.id)
    whole = registry.hand_over

    async def cut(conn: Conn, *about: Any, **more: Any) -> list[HandedOver]:
        if is_after:
            await whole(conn, *about, **more)
        await admin_conn.execute("select pg_terminate_backend($1)", conn.get_server_pid())
        return await whole(conn, *about, **more)

    with monkeypatch.context() as patch:
        patch.setattr(registry, "hand_over", cut)
        with pytest.raises((Busy, OutcomeUnknown)):
            await house.sign_in()
    assert await house.held(house.as_guest) == held
    assert await facts_of(house.sale.db, house.sale.event, "seat_hold_handed_over") == []
    assert (await house.sign_in())[1] == Basket(kept=4, released=0)
    assert await house.held(house.as_person) == held
    assert await house.held(house.as_guest) == []
