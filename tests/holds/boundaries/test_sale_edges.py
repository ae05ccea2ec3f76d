"""When an event can be booked, and by which members. Both ends of a sale belong to it; a membership's end does not."""

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from tests.make.accounts import make_person
from tests.make.boxoffice import FLOOR, TICK, BoxOffice
from tests.make.seating import event_now
from voelgoed.accounts import store as account_store
from voelgoed.events import rules
from voelgoed.events.model import SaleState
from voelgoed.holds.model import Ask, Outcome
from voelgoed.ids import new_id

KINDS = pytest.mark.parametrize("kind", ["seat", "places"])
STAFF = pytest.mark.parametrize("is_staff", [False, True], ids=["buyer", "staff"])
LATER = timedelta(days=1)


def ask_for(office: BoxOffice, kind: str, **fields: Any) -> Ask:
    return office.ask(*office.seats(1), **fields) if kind == "seat" else office.ask(places=1, **fields)


async def is_open_around(
    office: BoxOffice, moment: datetime, kind: str, expected: list[bool], refusal: Outcome, **fields: Any
) -> None:
    """Ask the microsecond before a moment, at it, and the microsecond after it."""
    for at, is_open in zip((moment - TICK, moment, moment + TICK), expected, strict=True):
        await office.set_clock(at)
        before = await office.everything()
        outcome = await office.outcome(ask_for(office, kind, **fields))
        assert outcome == (Outcome.CREATED if is_open else refusal), "opened or closed at the wrong time"
        if not is_open:
            assert await office.everything() == before, "a refused request changed something"


async def states_around(office: BoxOffice, moment: datetime) -> list[SaleState]:
    """The same moments, as the storefront shows them."""
    event = await event_now(office.db, office.seated.event)
    return [rules.sale_state(event, at) for at in (moment - TICK, moment, moment + TICK)]


@KINDS
@STAFF
async def test_sale_starts(office: BoxOffice, kind: str, *, is_staff: bool) -> None:
    moment = await office.now() + LATER
    await office.set_event(sale_start_at=moment)
    expected = [False, True, True]
    await is_open_around(office, moment, kind, expected, Outcome.SALES_CLOSED, is_staff=is_staff)
    assert await states_around(office, moment) == [SaleState.NOT_YET, SaleState.OPEN, SaleState.OPEN]


@KINDS
@STAFF
@pytest.mark.parametrize("ends", ["sale_end_at", "end_at", "rescheduled_end_at"])
async def test_sale_ends(office: BoxOffice, kind: str, ends: str, *, is_staff: bool) -> None:
    """At the end of the sale; without one at the end of the event, which may have a new date."""
    moment = await office.now() + LATER
    start = moment - timedelta(hours=1)
    if ends == "sale_end_at":
        await office.set_event(sale_end_at=moment)
    elif ends == "end_at":
        await office.set_event(start_at=start, end_at=moment, sale_end_at=None)
    else:
        await office.set_event(status="postponed", rescheduled_at=start, rescheduled_end_at=moment, sale_end_at=None)
    expected = [True, True, False]
    await is_open_around(office, moment, kind, expected, Outcome.SALES_CLOSED, is_staff=is_staff)
    assert await states_around(office, moment) == [SaleState.OPEN, SaleState.OPEN, SaleState.OVER]


@KINDS
async def test_hold_outlives_the_sale(office: BoxOffice, kind: str) -> None:
    """What was held before the end of a sale can be extended and bought after it, until the hold itself ends."""
    moment = await office.now() + LATER
    await office.set_event(sale_end_at=moment)
    await office.set_clock(moment)
    asks = [ask_for(office, kind) for _ in range(2)]
    for ask in asks:
        assert await office.outcome(ask) == Outcome.CREATED
    await office.set_clock(moment + TICK)
    assert await office.outcome(ask_for(office, kind)) == Outcome.SALES_CLOSED
    assert [verdict for verdict, _ in await office.extend(asks[0])] == ["extended"]
    await office.set_clock(moment + timedelta(minutes=15) - TICK)
    assert await office.convert(asks[0]) == "sold"
    assert await office.convert(asks[1]) == "holds_expired"


# Memberships


async def member(office: BoxOffice, *, valid_from: datetime | None, valid_to: datetime | None) -> UUID:
    """Create a person with a gold membership and let only gold members book."""
    person = await make_person(office.db, office.organization)
    async with office.db.transaction(office.organization.id) as conn:
        await account_store.add_membership(
            conn,
            office.organization.id,
            new_id(),
            user_id=person.user_id,
            tier="gold",
            valid_from=valid_from,
            valid_to=valid_to,
        )
    for zone in ("S", FLOOR):
        await office.set_zone(zone, access_mode="membership_tier", membership_tier="gold")
    return person.user_id


@KINDS
@STAFF
async def test_membership_starts(office: BoxOffice, kind: str, *, is_staff: bool) -> None:
    moment = await office.now() + LATER
    user_id = await member(office, valid_from=moment, valid_to=None)
    expected = [False, True, True]
    await is_open_around(office, moment, kind, expected, Outcome.ZONE_DENIED, user_id=user_id, is_staff=is_staff)


@KINDS
@STAFF
async def test_membership_ends(office: BoxOffice, kind: str, *, is_staff: bool) -> None:
    moment = await office.now() + LATER
    user_id = await member(office, valid_from=await office.now(), valid_to=moment)
    expected = [True, False, False]
    await is_open_around(office, moment, kind, expected, Outcome.ZONE_DENIED, user_id=user_id, is_staff=is_staff)


@KINDS
@pytest.mark.parametrize("after", [-TICK, timedelta()], ids=["the microsecond before", "at its end"])
async def test_signing_in_when_a_membership_ends(office: BoxOffice, kind: str, after: timedelta) -> None:
    """A guest's hold in a zone for members is kept by an account that is a member at that moment."""
    moment = await office.now() + timedelta(minutes=1)
    guest = await office.hold(*office.seats(1)) if kind == "seat" else await office.hold(places=1)
    user_id = await member(office, valid_from=await office.now(), valid_to=moment)
    await office.set_clock(moment + after)
    assert await office.hand_over(guest.user_id, user_id) == ["kept" if after < timedelta() else "released"]
