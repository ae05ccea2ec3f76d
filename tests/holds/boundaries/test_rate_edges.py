"""Ten seats and places in five minutes: the edges of the window, of the grace for early cancellation, and of forty."""

from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from uuid import UUID

import pytest

from tests.make.boxoffice import TICK, BoxOffice
from voelgoed.holds.model import Ask, Outcome
from voelgoed.ids import new_id

WINDOW = timedelta(minutes=5)
GRACE = timedelta(seconds=30)
PER_WINDOW, GRANTED_PER_WINDOW = 10, 40

Kind = Callable[[BoxOffice, int, UUID], Ask]


def seats(office: BoxOffice, count: int, user_id: UUID) -> Ask:
    return office.ask(*office.seats(count), user_id=user_id)


def places(office: BoxOffice, count: int, user_id: UUID) -> Ask:
    return office.ask(places=count, user_id=user_id)


KINDS = pytest.mark.parametrize("kind", [seats, places], ids=["seats", "places"])
HELD = pytest.mark.parametrize("held", [seats, places], ids=["after seats", "after places"])


@pytest.fixture
async def office(office: BoxOffice) -> BoxOffice:
    """Bookings of any size, so that only the rate is limited."""
    await office.allow(max_seats_per_booking=40)
    return office


async def grant(office: BoxOffice, ask: Ask) -> Ask:
    assert await office.outcome(ask) == Outcome.CREATED, "a request within the rate limit was refused"
    return ask


async def refuse(office: BoxOffice, ask: Ask) -> datetime:
    """Send a request above the rate limit; return when the buyer may come again."""
    before = await office.everything()
    (said,) = await office.reserve(ask)
    assert {one.outcome for one in said} == {Outcome.RATE_LIMITED}, "a request above the rate limit was granted"
    assert await office.everything() == before
    (until,) = {one.until for one in said}
    assert until is not None
    return until


@KINDS
@HELD
async def test_window_ends_after_five_minutes(office: BoxOffice, held: Kind, kind: Kind) -> None:
    """A hold counts up to the last microsecond of five minutes and not at five minutes, which is what buyers hear."""
    user_id, began = new_id(), await office.now()
    await grant(office, held(office, PER_WINDOW, user_id))
    assert await refuse(office, kind(office, 1, user_id)) == began + WINDOW
    await office.set_clock(began + WINDOW - TICK)
    assert await refuse(office, kind(office, 1, user_id)) == began + WINDOW
    await office.set_clock(began + WINDOW)
    await grant(office, kind(office, PER_WINDOW, user_id))
    assert await refuse(office, kind(office, 1, user_id)) == began + 2 * WINDOW


@KINDS
async def test_window_slides(office: BoxOffice, kind: Kind) -> None:
    """Each hold leaves the window by itself: room comes back in the sizes in which it was taken."""
    user_id, began = new_id(), await office.now()
    await grant(office, kind(office, 4, user_id))
    await office.advance(minutes=1)
    await grant(office, kind(office, 6, user_id))
    await office.set_clock(began + WINDOW)
    assert await refuse(office, kind(office, 5, user_id)) == began + timedelta(minutes=6)
    await grant(office, kind(office, 4, user_id))
    await office.set_clock(began + timedelta(minutes=6))
    assert await refuse(office, kind(office, 7, user_id)) == began + 2 * WINDOW
    await grant(office, kind(office, 6, user_id))


@KINDS
@pytest.mark.parametrize("change", ["extended", "released", "sold"])
async def test_window_is_by_when_it_was_granted(office: BoxOffice, kind: Kind, change: str) -> None:
    """Whatever is done to a hold later neither makes it count longer nor, after the grace, shorter."""
    user_id, began = new_id(), await office.now()
    ask = await grant(office, kind(office, PER_WINDOW, user_id))
    await office.advance(minutes=2)
    changes: dict[str, Callable[[], Awaitable[object]]] = {
        "extended": lambda: office.extend(ask),
        "released": lambda: office.release(ask),
        "sold": lambda: office.convert(ask),
    }
    await changes[change]()
    await office.set_clock(began + WINDOW - TICK)
    await refuse(office, kind(office, 1, user_id))
    await office.set_clock(began + WINDOW)
    await grant(office, kind(office, PER_WINDOW, user_id))


@KINDS
@pytest.mark.parametrize("after", [GRACE - TICK, GRACE, GRACE + TICK], ids=["before", "at", "after"])
async def test_early_cancellation_within_the_grace_is_free(office: BoxOffice, kind: Kind, after: timedelta) -> None:
    """A hold released within thirty seconds, both ends included, does not count for the ten."""
    user_id, began = new_id(), await office.now()
    ask = await grant(office, kind(office, PER_WINDOW, user_id))
    await office.set_clock(began + after)
    assert set(await office.release(ask)) == {"released"}
    if after <= GRACE:
        await grant(office, kind(office, PER_WINDOW, user_id))
    else:
        assert await refuse(office, kind(office, 1, user_id)) == began + WINDOW


@KINDS
async def test_only_cancellation_is_free(office: BoxOffice, kind: Kind) -> None:
    """A hold sold within the grace counts, for its buyer kept what was granted."""
    user_id = new_id()
    ask = await grant(office, kind(office, PER_WINDOW, user_id))
    assert await office.convert(ask) == "sold"
    await refuse(office, kind(office, 1, user_id))


@KINDS
@pytest.mark.parametrize("others", [seats, places], ids=["after seats", "after places"])
async def test_forty_granted_in_five_minutes(office: BoxOffice, others: Kind, kind: Kind) -> None:
    """What is released at once is not among the ten, but forty granted in five minutes are the end of it."""
    user_id, began = new_id(), await office.now()
    for _ in range(3):
        await office.release(await grant(office, others(office, PER_WINDOW, user_id)))
    await office.release(await grant(office, others(office, PER_WINDOW - 2, user_id)))
    await office.release(await grant(office, kind(office, 1, user_id)))  # thirty-nine
    await refuse(office, kind(office, 2, user_id))
    await office.release(await grant(office, kind(office, 1, user_id)))  # forty
    assert await refuse(office, kind(office, 1, user_id)) == began + WINDOW
    await office.set_clock(began + WINDOW - TICK)
    assert await refuse(office, kind(office, 1, user_id)) == began + WINDOW
    await office.set_clock(began + WINDOW)
    await grant(office, kind(office, PER_WINDOW, user_id))


@KINDS
@pytest.mark.parametrize("after", [timedelta(), GRACE, GRACE + TICK], ids=["at once", "at", "after"])
async def test_come_again_when_what_counts_is_old_enough(office: BoxOffice, kind: Kind, after: timedelta) -> None:
    """A hold that was cancelled within the grace does not decide when to come again while ten others do."""
    user_id, began = new_id(), await office.now()
    ask = await grant(office, kind(office, 1, user_id))
    await office.set_clock(began + after)
    await office.release(ask)
    counted = await office.advance(minutes=1)
    is_free = after <= GRACE
    await grant(office, kind(office, PER_WINDOW if is_free else PER_WINDOW - 1, user_id))
    assert await refuse(office, kind(office, 1, user_id)) == (counted if is_free else began) + WINDOW


@KINDS
async def test_come_again_after_forty_granted(office: BoxOffice, kind: Kind) -> None:
    """With room among the ten it is the oldest of the forty that decides, although it was cancelled early."""
    user_id, began = new_id(), await office.now()
    for count in (10, 10, 10, 1):
        await office.release(await grant(office, kind(office, count, user_id)))
    await office.advance(minutes=1)
    await grant(office, kind(office, PER_WINDOW - 1, user_id))
    assert await refuse(office, kind(office, 1, user_id)) == began + WINDOW


@KINDS
@pytest.mark.parametrize("is_cancelled", [False, True], ids=["ten held", "forty granted"])
async def test_hold_outside_the_window_decides_nothing(office: BoxOffice, kind: Kind, *, is_cancelled: bool) -> None:
    """At five minutes a hold neither counts nor decides when to come again: the next one does."""
    user_id, began = new_id(), await office.now()
    await grant(office, kind(office, 1, user_id))
    counted = await office.advance(minutes=1)
    if is_cancelled:
        for _ in range(4):
            await office.release(await grant(office, kind(office, PER_WINDOW - 1, user_id)))
        await office.set_clock(began + WINDOW)
        await office.release(await grant(office, kind(office, 4, user_id)))  # thirty-six and four
    else:
        await grant(office, kind(office, PER_WINDOW - 1, user_id))
        await office.set_clock(began + WINDOW)
        await grant(office, kind(office, 1, user_id))
    assert await refuse(office, kind(office, 1, user_id)) == counted + WINDOW


@pytest.mark.parametrize("own", [9, 10])
@KINDS
async def test_signing_in_counts_towards_the_rate(office: BoxOffice, kind: Kind, own: int) -> None:
    """A guest's hold is kept while the account stays within ten in five minutes, and released when it would not."""
    guest_id, user_id = new_id(), new_id()
    await grant(office, kind(office, own, user_id))
    await grant(office, kind(office, 1, guest_id))
    assert await office.hand_over(guest_id, user_id) == ["kept" if own < PER_WINDOW else "released"]
    await refuse(office, kind(office, 1, user_id))


@pytest.mark.parametrize("age", [WINDOW - TICK, WINDOW], ids=["in the window", "at its end"])
@pytest.mark.parametrize("whose", ["the guest's", "the account's"])
@KINDS
async def test_signing_in_at_the_edge_of_the_window(office: BoxOffice, kind: Kind, whose: str, age: timedelta) -> None:
    """At five minutes neither the guest's hold nor the account's still counts."""
    guest_id, user_id = new_id(), new_id()
    first, second = (guest_id, user_id) if whose == "the guest's" else (user_id, guest_id)
    began = await office.now()
    await grant(office, kind(office, 1 if first == guest_id else PER_WINDOW, first))
    await office.set_clock(began + age - TICK)
    await grant(office, kind(office, PER_WINDOW if first == guest_id else 1, second))
    await office.set_clock(began + age)
    assert await office.hand_over(guest_id, user_id) == ["kept" if age >= WINDOW else "released"]


@pytest.mark.parametrize("after", [GRACE, GRACE + TICK], ids=["at", "after"])
@KINDS
async def test_signing_in_after_an_early_cancellation(office: BoxOffice, kind: Kind, after: timedelta) -> None:
    """What the account cancelled within the grace does not keep it from the guest's hold."""
    guest_id, user_id = new_id(), new_id()
    ask = await grant(office, kind(office, PER_WINDOW, user_id))
    await office.advance(seconds=after.total_seconds())
    await office.release(ask)
    await grant(office, kind(office, 1, guest_id))
    assert await office.hand_over(guest_id, user_id) == ["kept" if after <= GRACE else "released"]


@pytest.mark.parametrize("granted", [39, 40])
@pytest.mark.parametrize("age", [timedelta(), WINDOW - TICK, WINDOW], ids=["at once", "in the window", "at its end"])
@KINDS
async def test_signing_in_after_forty_granted(office: BoxOffice, kind: Kind, age: timedelta, granted: int) -> None:
    """What the account was granted and cancelled keeps it from the guest's hold above forty, within five minutes."""
    guest_id, user_id, began = new_id(), new_id(), await office.now()
    for count in (10, 10, 10, granted - 30):
        await office.release(await grant(office, kind(office, count, user_id)))
    await office.set_clock(began + age)
    await grant(office, kind(office, 1, guest_id))
    is_kept = granted < GRANTED_PER_WINDOW or age >= WINDOW
    assert await office.hand_over(guest_id, user_id) == ["kept" if is_kept else "released"]


@KINDS
async def test_signing_in_with_ten(office: BoxOffice, kind: Kind) -> None:
    """A guest who holds ten keeps them all in an account that holds nothing."""
    guest_id = new_id()
    ask = await grant(office, kind(office, PER_WINDOW, guest_id))
    assert await office.hand_over(guest_id, new_id()) == ["kept"] * len(ask.items)
