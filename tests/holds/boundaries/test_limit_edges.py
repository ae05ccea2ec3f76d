"""Every limit on holds at its edge: one below it and at it everything is granted, one above it nothing is."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.make.boxoffice import PIT, PIT_CAPACITY, BoxOffice
from voelgoed.holds.model import Ask, Outcome
from voelgoed.ids import new_id

IP = "192.0.2.7"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """What the policy says, how much that allows, and what the request above it is answered."""

    policy: Mapping[str, object]
    most: int
    refusal: Outcome
    is_wheelchair: bool = False
    is_of_address: bool = False
    ways: Sequence[str] = field(default_factory=lambda: list(WAYS))

    def buyer(self) -> Callable[[], dict[str, Any]]:
        """Return what every request of one buyer carries, or of all buyers behind one address."""
        if self.is_of_address:
            ip = f"2001:db8::{new_id().hex[-4:]}"
            return lambda: {"ip": ip, "user_id": new_id()}
        user_id = new_id()
        return lambda: {"user_id": user_id, "ip": IP}


Way = Callable[[BoxOffice, Limit, int], list[Ask]]


def seats_at_once(office: BoxOffice, limit: Limit, count: int) -> list[Ask]:
    return [office.ask(*office.seats(count, wheelchair=limit.is_wheelchair), **limit.buyer()())]


def seat_by_seat(office: BoxOffice, limit: Limit, count: int) -> list[Ask]:
    buyer = limit.buyer()
    return [office.ask(seat, **buyer()) for seat in office.seats(count, wheelchair=limit.is_wheelchair)]


def places_at_once(office: BoxOffice, limit: Limit, count: int) -> list[Ask]:
    return [office.ask(places=count, **limit.buyer()())]


def place_by_place(office: BoxOffice, limit: Limit, count: int) -> list[Ask]:
    buyer = limit.buyer()
    return [office.ask(places=1, **buyer()) for _ in range(count)]


def seats_then_places(office: BoxOffice, limit: Limit, count: int) -> list[Ask]:
    buyer = limit.buyer()
    return [office.ask(*office.seats(1), **buyer()), office.ask(places=count - 1, **buyer())]


def places_then_seats(office: BoxOffice, limit: Limit, count: int) -> list[Ask]:
    buyer = limit.buyer()
    return [office.ask(places=1, **buyer()), office.ask(*office.seats(count - 1), **buyer())]


WAYS: dict[str, Way] = {
    "seats in one request": seats_at_once,
    "seats one by one": seat_by_seat,
    "places in one request": places_at_once,
    "places one by one": place_by_place,
    "a seat, then places": seats_then_places,
    "a place, then seats": places_then_seats,
}
SEATS_ONLY = ("seats in one request", "seats one by one")
SPLIT = [way for way in WAYS if not way.endswith("one request")]
LIMITS: dict[str, Limit] = {
    "seats per booking": Limit(policy={"max_seats_per_booking": 3}, most=3, refusal=Outcome.TOO_MANY_SEATS),
    "wheelchair seats per booking": Limit(
        policy={"max_wheelchair_seats_per_booking": 2},
        most=2,
        refusal=Outcome.TOO_MANY_WHEELCHAIRS,
        is_wheelchair=True,
        ways=SEATS_ONLY,
    ),
    "holds per user": Limit(policy={"max_holds_per_user": 3}, most=3, refusal=Outcome.TOO_MANY_HOLDS),
    "holds per address": Limit(
        policy={"max_holds_per_ip": 3}, most=3, refusal=Outcome.TOO_MANY_HOLDS, is_of_address=True
    ),
    "ten in five minutes": Limit(
        policy={"max_seats_per_booking": 40}, most=10, refusal=Outcome.RATE_LIMITED, ways=SPLIT
    ),
}
CASES = [(name, way) for name, limit in LIMITS.items() for way in limit.ways]


async def send(office: BoxOffice, asks: Sequence[Ask], *, is_one_batch: bool) -> list[Outcome]:
    """Send requests one after the other or in one batch; return the outcome of each."""
    verdicts = await office.reserve(*asks) if is_one_batch else [(await office.reserve(ask))[0] for ask in asks]
    return [said[0].outcome for said in verdicts if len({one.outcome for one in said}) == 1]


@pytest.mark.parametrize(("name", "way"), CASES)
async def test_limit_is_exact(office: BoxOffice, name: str, way: str) -> None:
    """One below and at the limit all is granted. Of one more the last request is refused, and it changes nothing."""
    limit = LIMITS[name]
    await office.allow(**limit.policy)
    for count in (limit.most - 1, limit.most):
        asks = WAYS[way](office, limit, count)
        granted = await send(office, asks, is_one_batch=False)
        assert granted == [Outcome.CREATED] * len(asks), f"{count} of {limit.most} were refused"
    *first, last = WAYS[way](office, limit, limit.most + 1)
    assert await send(office, first, is_one_batch=False) == [Outcome.CREATED] * len(first)
    before = await office.everything()
    assert await office.outcome(last) == limit.refusal, f"one more than {limit.most} was granted"
    assert await office.everything() == before, "a refused request changed something"


@pytest.mark.parametrize(("name", "way"), [case for case in CASES if case[1].endswith("one by one")])
async def test_limit_is_exact_within_one_batch(office: BoxOffice, name: str, way: str) -> None:
    """Requests that arrive together count for each other as if they had come one after the other."""
    limit = LIMITS[name]
    await office.allow(**limit.policy)
    for count in (limit.most - 1, limit.most):
        granted = await send(office, WAYS[way](office, limit, count), is_one_batch=True)
        assert granted == [Outcome.CREATED] * count, f"{count} of {limit.most} were refused"
    said = await send(office, WAYS[way](office, limit, limit.most + 1), is_one_batch=True)
    assert said == [Outcome.CREATED] * limit.most + [limit.refusal], f"one more than {limit.most} was granted"


@pytest.mark.parametrize(("name", "way"), CASES)
async def test_staff_are_exempt(office: BoxOffice, name: str, way: str) -> None:
    """A member of staff holds more than any limit for buyers."""
    limit = LIMITS[name]
    await office.allow(**limit.policy)
    for ask in WAYS[way](office, limit, limit.most + 1):
        staff = office.ask(user_id=ask.user_id, items=ask.items, ip=ask.ip, is_staff=True)
        assert await office.outcome(staff) == Outcome.CREATED, "a limit was applied to staff"


@pytest.mark.parametrize("way", [*SEATS_ONLY, "places in one request", "places one by one"])
async def test_staff_holds_count_for_their_address(office: BoxOffice, way: str) -> None:
    """What staff hold is held from that address as well, so buyers behind it have less room."""
    limit = LIMITS["holds per address"]
    await office.allow(**limit.policy)
    await office.hold(*office.seats(2), ip=IP, is_staff=True)
    assert await office.outcome(office.ask(*office.seats(1), ip=IP)) == Outcome.CREATED
    (ask, *_) = WAYS[way](office, limit, 1)
    refused = office.ask(items=ask.items, ip=IP)
    assert await office.outcome(refused) == Outcome.TOO_MANY_HOLDS


@pytest.mark.parametrize("seats_max", [9, 10, 11, 40])
@pytest.mark.parametrize("is_seats", [True, False], ids=["seats", "places"])
async def test_one_request_is_for_ten_at_most(office: BoxOffice, seats_max: int, *, is_seats: bool) -> None:
    """Ten in five minutes bound one request too. Waiting would not help, so it is not answered as a rate limit."""
    await office.allow(max_seats_per_booking=seats_max)
    most = min(10, seats_max)

    def ask(count: int) -> Ask:
        return office.ask(*office.seats(count)) if is_seats else office.ask(places=count)

    assert await office.outcome(ask(most - 1)) == Outcome.CREATED
    assert await office.outcome(ask(most)) == Outcome.CREATED
    before = await office.everything()
    assert await office.outcome(ask(most + 1)) == Outcome.TOO_MANY_SEATS
    assert await office.everything() == before


@pytest.mark.parametrize(
    ("name", "is_shared"),
    [
        ("seats per booking", False),
        ("holds per user", True),
        ("holds per address", True),
        ("ten in five minutes", True),
    ],
)
async def test_whether_another_event_counts(office: BoxOffice, name: str, *, is_shared: bool) -> None:
    """A booking is of one event. What a buyer or an address holds counts over all events of the organization."""
    limit, other = LIMITS[name], await office.new_event()
    await office.allow(**limit.policy)
    buyer = limit.buyer()
    await office.hold(*office.seats(limit.most), **buyer())
    expected = limit.refusal if is_shared else Outcome.CREATED
    for ask in (other.ask(*other.seats(1), **buyer()), other.ask(places=1, **buyer())):
        assert await other.outcome(ask) == expected, "the wrong events were counted"


async def test_wheelchair_limit_is_of_one_event(office: BoxOffice) -> None:
    other, user_id = await office.new_event(), new_id()
    await office.hold(*office.seats(1, wheelchair=True), user_id=user_id)
    await other.hold(*other.seats(1, wheelchair=True), user_id=user_id)
    for at in (office, other):
        refused = at.ask(*at.seats(1, wheelchair=True), user_id=user_id)
        assert await at.outcome(refused) == Outcome.TOO_MANY_WHEELCHAIRS


@pytest.mark.parametrize("name", LIMITS)
async def test_limit_is_of_one_buyer_and_organization(office: BoxOffice, name: str) -> None:
    """Another buyer, another address and another organization each begin at nothing."""
    limit, elsewhere = LIMITS[name], await office.new_organization()
    fields = limit.buyer()()
    for at in (office, elsewhere):
        await at.allow(**limit.policy)
        await at.hold(*at.seats(limit.most, wheelchair=limit.is_wheelchair), **fields)
    await office.hold(*office.seats(limit.most, wheelchair=limit.is_wheelchair), user_id=new_id(), ip="192.0.2.99")


async def test_unknown_address_has_no_limit(office: BoxOffice) -> None:
    """Requests without an address are not counted together."""
    await office.allow(max_holds_per_ip=2)
    for _ in range(2):
        await office.hold(*office.seats(3))
        await office.hold(places=3)


# Places in a zone without numbered seats


async def pit(office: BoxOffice, quantity: int, **fields: Any) -> tuple[Outcome, str | None]:
    """Ask for places of the small zone; return the outcome, and how many were left where they were too few."""
    ((said,),) = await office.reserve(office.ask(places=quantity, zone=PIT, **fields))
    return said.outcome, said.state


@pytest.mark.parametrize("taken", ["held", "sold", "blocked"])
@pytest.mark.parametrize("is_staff", [False, True], ids=["buyer", "staff"])
async def test_capacity_is_exact(office: BoxOffice, taken: str, *, is_staff: bool) -> None:
    """The last places are granted, one more is refused, to staff as well, whatever the others are taken by."""
    if taken == "blocked":
        await office.set_zone(PIT, blocked=2)
    else:
        ask = await office.hold(places=2, zone=PIT)
        if taken == "sold":
            assert await office.convert(ask) == "sold"
    left = PIT_CAPACITY - 2
    before = await office.everything()
    assert await pit(office, left + 1, is_staff=is_staff) == (Outcome.FULL, str(left)), "more places than there are"
    assert await office.everything() == before
    assert await pit(office, left - 1, is_staff=is_staff) == (Outcome.CREATED, None), "fewer places than there are"
    assert await pit(office, 2, is_staff=is_staff) == (Outcome.FULL, "1"), "more places than there are"
    assert await pit(office, 1, is_staff=is_staff) == (Outcome.CREATED, None), "fewer places than there are"
    assert await pit(office, 1, is_staff=is_staff) == (Outcome.FULL, "0"), "more places than there are"


@pytest.mark.parametrize("quantity", [PIT_CAPACITY - 1, PIT_CAPACITY, PIT_CAPACITY + 1])
async def test_capacity_in_one_request(office: BoxOffice, quantity: int) -> None:
    fits = quantity <= PIT_CAPACITY
    expected = (Outcome.CREATED, None) if fits else (Outcome.FULL, str(PIT_CAPACITY))
    assert await pit(office, quantity) == expected


async def test_capacity_within_one_batch(office: BoxOffice) -> None:
    """A request that finds too few places does not keep out a later one that asks for fewer."""
    sizes = (PIT_CAPACITY - 2, 3, 2, 1)
    said = await office.reserve(*(office.ask(places=size, zone=PIT) for size in sizes))
    assert [(one.outcome, one.state) for (one,) in said] == [
        (Outcome.CREATED, None),
        (Outcome.FULL, "2"),
        (Outcome.CREATED, None),
        (Outcome.FULL, "0"),
    ]
