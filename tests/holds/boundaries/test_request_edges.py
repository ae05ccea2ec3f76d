"""Edges of what waits and what is watched: batches of requests, their deadline, jumps of the clock, the last hour."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from tests.make.boxoffice import TICK, BoxOffice
from tests.make.events import call_of
from voelgoed.accounts.model import Role
from voelgoed.errors import Busy
from voelgoed.holds import booking
from voelgoed.holds.clock_guard import STEP, Reading, step_between
from voelgoed.holds.model import Ask, Item
from voelgoed.holds.waiting import Lane, Said, Waiting
from voelgoed.ids import OrganizationId, new_id
from voelgoed.journal.model import Origin

OLDEST = 100.0
MOST = 4


def waiting(count: int, said: list[Said], *, since: float = OLDEST) -> Waiting:
    """A request for this many seats, by a new buyer."""
    ask = Ask(
        organization_id=OrganizationId(UUID(int=1)),
        event_id=UUID(int=2),
        user_id=new_id(),
        role=Role.CUSTOMER,
        is_staff=False,
        items=tuple(Item(new_id(), seat_id=new_id()) for _ in range(count)),
        cart_token="basket",
        source="web",
        request_id=new_id(),
        origin=Origin(),
        ip=None,
    )
    return Waiting(ask, lambda _, told: said.append(told), since)


@pytest.mark.parametrize(
    ("sizes", "taken"),
    [
        ([1, 2], 2),
        ([1, 3], 2),
        ([1, 4], 1),
        ([4], 1),
        ([4, 1], 1),
        ([5], 1),
        ([5, 1], 1),
        ([1, 1, 1, 1], 4),
        ([1, 1, 1, 1, 1], 4),
    ],
)
def test_batch_holds_as_many_items_as_it_may(sizes: list[int], taken: int) -> None:
    """Up to the limit and not above it. Only a request that is larger by itself is sent all the same, alone."""
    lane, said = Lane(), list[Said]()
    lane.queue.extend(waiting(size, said) for size in sizes)
    assert len(lane.take(OLDEST, MOST)) == taken
    assert len(lane.queue) == len(sizes) - taken
    assert said == []


@pytest.mark.parametrize("since", [OLDEST - 1e-6, OLDEST, OLDEST + 1e-6])
def test_request_is_sent_until_its_deadline(since: float) -> None:
    """At the deadline it is sent still. Later it is refused, and will never be sent."""
    lane, said = Lane(), list[Said]()
    lane.queue.append(waiting(1, said, since=since))
    taken = lane.take(OLDEST, MOST)
    if since < OLDEST:
        assert taken == []
        assert [type(one) for one in said] == [Busy]
    else:
        assert len(taken) == 1
        assert said == []


@pytest.mark.parametrize("direction", [1, -1], ids=["ahead", "back"])
@pytest.mark.parametrize("took_s", [0.0, 1.0])
def test_clock_step_is_more_than_five_seconds(direction: int, took_s: float) -> None:
    """A difference of five seconds, and of the time that both looks took, is no jump yet."""
    before = Reading(datetime(2026, 7, 1, 12, tzinfo=UTC), 0.0, took_s)
    bound = STEP + timedelta(seconds=2 * took_s)
    for step, expected in ((bound - TICK, None), (bound, None), (bound + TICK, direction * (bound + TICK))):
        shown = before.shown + timedelta(seconds=60) + direction * step
        assert step_between(before, Reading(shown, 60.0, 60.0 + took_s)) == expected


async def test_ends_of_the_last_hour_are_counted(office: BoxOffice) -> None:
    """A release recorded an hour ago to the microsecond is counted, one before that is not."""
    await office.release(await office.hold(*office.seats(1)))
    async with office.db.transaction(office.organization.id) as conn:
        recorded = await conn.fetchval(
            "select recorded_at from journal where event_id = $1 and kind = 'seat_hold_released'", office.event_id
        )
    counted = []
    for age in (timedelta(hours=1) - TICK, timedelta(hours=1), timedelta(hours=1) + TICK):
        await office.set_clock(recorded + age)
        counted.append((await booking.count_ends(office.db, call_of(office.organization), office.event_id)).released)
    assert counted == [1, 1, 0]
