"""The end of a hold, to the microsecond: until then it is its buyer's, from then on it is not, for every operation."""

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from tests.make.boxoffice import PIT, PIT_CAPACITY, TICK, BoxOffice, hold_ids
from tests.make.events import call_of
from tests.make.seating import facts_of, unpublish, zone_rows
from voelgoed.accounts.model import Role
from voelgoed.events.model import OPERATOR
from voelgoed.holds import booking, registry, store
from voelgoed.holds.model import Ask, Outcome
from voelgoed.holds.refusals import SeatingInUse
from voelgoed.ids import new_id

TTL = timedelta(minutes=10)
MORE = timedelta(minutes=5)
MOMENTS = pytest.mark.parametrize(
    "before", [TICK, timedelta(), -TICK], ids=["the microsecond before", "at its end", "the microsecond after"]
)
KINDS = pytest.mark.parametrize("kind", ["seat", "places"])


def ask_for(office: BoxOffice, kind: str, **fields: Any) -> Ask:
    """Build a request for a seat, or for all places of the small zone."""
    if kind == "seat":
        return office.ask(*office.seats(1), **fields)
    return office.ask(places=PIT_CAPACITY, zone=PIT, **fields)


async def hold(office: BoxOffice, kind: str, **fields: Any) -> tuple[Ask, datetime]:
    """Hold something; return the request and the end of the hold."""
    ask = ask_for(office, kind, **fields)
    assert await office.outcome(ask) == Outcome.CREATED
    (row,) = await office.holds(ask)
    return ask, row["expires_at"]


async def kinds_told(office: BoxOffice) -> list[str]:
    return [fact["kind"] for fact in await facts_of(office.db, office.seated.event) if fact["kind"].startswith("seat_")]


async def seat_version(office: BoxOffice, ask: Ask) -> int:
    async with office.db.transaction(office.organization.id) as conn:
        found = await store.get_seat(conn, office.organization.id, office.event_id, seat_of(ask))
    assert found is not None
    version: int = found["version"]
    return version


def seat_of(ask: Ask) -> UUID:
    assert ask.items[0].seat_id is not None
    return ask.items[0].seat_id


@KINDS
async def test_hold_lasts_as_long_as_it_should(office: BoxOffice, kind: str) -> None:
    began = await office.now()
    ask, end = await hold(office, kind)
    (row,) = await office.holds(ask)
    assert (row["created_at"], row["initial_expires_at"], end) == (began, began + TTL, began + TTL)


@MOMENTS
@KINDS
async def test_another_buyer_takes_over(office: BoxOffice, kind: str, before: timedelta) -> None:
    ask, end = await hold(office, kind)
    await office.set_clock(end - before)
    wanted = office.ask(seat_of(ask)) if kind == "seat" else office.ask(places=1, zone=PIT)
    is_live = before > timedelta()
    taken = Outcome.SEAT_HELD if kind == "seat" else Outcome.FULL
    assert await office.outcome(wanted) == (taken if is_live else Outcome.CREATED), "taken over at the wrong time"
    assert await office.states(ask) == ["active" if is_live else "expired"]


@MOMENTS
async def test_same_buyer_asks_again(office: BoxOffice, before: timedelta) -> None:
    """Until the end they are shown the hold they have. From the end on they get a new one."""
    ask, end = await hold(office, "seat")
    await office.set_clock(end - before)
    ((said,),) = await office.reserve(office.ask(seat_of(ask), user_id=ask.user_id))
    if before > timedelta():
        assert (said.outcome, said.hold_id, said.until) == (Outcome.EXISTING, ask.items[0].hold_id, end)
    else:
        assert (said.outcome, said.until) == (Outcome.CREATED, end - before + TTL)
        assert said.hold_id != ask.items[0].hold_id


@MOMENTS
@KINDS
async def test_extending(office: BoxOffice, kind: str, before: timedelta) -> None:
    """Five minutes from the first end, however late it is asked for; at the end it is too late."""
    ask, end = await hold(office, kind)
    await office.set_clock(end - before)
    untouched = await office.everything()
    if before > timedelta():
        assert await office.extend(ask) == [("extended", end + MORE)], "extended by the wrong time, or not at all"
        (row,) = await office.holds(ask)
        assert (row["expires_at"], row["extended_count"]) == (end + MORE, 1)
    else:
        assert await office.extend(ask) == [("holds_expired", None)], "an expired hold was extended"
        assert await office.everything() == untouched


@MOMENTS
@KINDS
async def test_end_of_an_extended_hold(office: BoxOffice, kind: str, before: timedelta) -> None:
    """The first end passes without a trace. At the second nothing can be extended, taken over or kept."""
    ask, first = await hold(office, kind)
    await office.extend(ask)
    wanted = office.ask(seat_of(ask)) if kind == "seat" else office.ask(places=1, zone=PIT)
    taken = Outcome.SEAT_HELD if kind == "seat" else Outcome.FULL
    for moment in (first - TICK, first, first + TICK):
        await office.set_clock(moment)
        assert await office.outcome(wanted) == taken, "an extended hold was taken over at its first end"
    await office.set_clock(first + MORE - before)
    is_live = before > timedelta()
    again = ("extended", first + MORE) if is_live else ("holds_expired", None)
    assert await office.extend(ask) == [again]
    assert await office.outcome(wanted) == (taken if is_live else Outcome.CREATED)


@KINDS
async def test_extending_twice_changes_nothing(office: BoxOffice, kind: str) -> None:
    """The second extension gives the same end. It is no new fact and no new version of the seat."""
    ask, end = await hold(office, kind)
    assert await office.extend(ask) == [("extended", end + MORE)]
    before = await office.everything()
    await office.advance(minutes=2)
    assert await office.extend(ask) == [("extended", end + MORE)]
    assert await office.everything() == before, "a second extension changed something"


async def test_versions_and_facts_of_a_hold(office: BoxOffice) -> None:
    """Holding, extending and releasing a seat are one version and one fact each."""
    ask, _ = await hold(office, "seat")
    assert await seat_version(office, ask) == 2
    await office.extend(ask)
    assert await seat_version(office, ask) == 3, "extending did not raise the version"
    assert await office.release(ask) == ["released"]
    assert await seat_version(office, ask) == 4, "releasing did not raise the version"
    assert await kinds_told(office) == ["seat_reserved", "seat_hold_extended", "seat_hold_released"]


async def test_versions_and_facts_of_places(office: BoxOffice) -> None:
    """The same of places: every change is the next version of their zone, told with what the zone has come to."""
    ask, _ = await hold(office, "places")
    await office.extend(ask)
    await office.release(ask)
    two = [await office.hold(places=count, zone=PIT) for count in (1, 2)]
    await office.advance(minutes=10)
    await office.expire()
    assert await office.states(*two) == ["expired", "expired"]
    facts = [fact for fact in await facts_of(office.db, office.seated.event) if fact["kind"].startswith("seat_")]
    told = [(fact["kind"], fact["version"], fact["data"]["zone_held"]) for fact in facts]
    assert told == [
        ("seat_reserved", 2, PIT_CAPACITY),
        ("seat_hold_extended", 3, PIT_CAPACITY),
        ("seat_hold_released", 4, 0),
        ("seat_reserved", 5, 1),
        ("seat_reserved", 6, 3),
        ("seat_hold_expired", 7, 0),
        ("seat_hold_expired", 8, 0),
    ]
    assert (await zone_rows(office.db, office.seated.event))[-1]["version"] == 8


@MOMENTS
@KINDS
async def test_releasing(office: BoxOffice, kind: str, before: timedelta) -> None:
    """Until the end the buyer releases it. From the end on it has expired, and is recorded so."""
    ask, end = await hold(office, kind)
    await office.set_clock(end - before)
    is_live = before > timedelta()
    assert await office.release(ask) == ["released" if is_live else "ended"], "released at the wrong time"
    assert await office.states(ask) == ["cancelled" if is_live else "expired"]
    assert (await kinds_told(office))[-1] == ("seat_hold_released" if is_live else "seat_hold_expired")


@MOMENTS
@KINDS
async def test_buying_without_payment(office: BoxOffice, kind: str, before: timedelta) -> None:
    ask, end = await hold(office, kind)
    await office.set_clock(end - before)
    untouched = await office.everything()
    if before > timedelta():
        assert await office.convert(ask) == "sold"
        assert await office.states(ask) == ["converted"]
    else:
        assert await office.convert(ask) == "holds_expired", "an expired hold was sold"
        assert await office.everything() == untouched


@MOMENTS
@KINDS
async def test_buying_with_a_payment(office: BoxOffice, kind: str, before: timedelta) -> None:
    """In time the hold itself is sold. Late, while the seat is free, a new hold for one minute is sold in its place."""
    ask, end = await hold(office, kind)
    await office.set_clock(end - before)
    assert await office.convert(ask, is_paid=True) == "sold"
    rows = [(row["source"], row["state"], row["expires_at"]) for row in await office.holds()]
    if before > timedelta():
        assert rows == [("web", "converted", end)]
    else:
        late = end - before + timedelta(minutes=1)
        assert rows == [("web", "expired", end), ("late_payment", "converted", late)]
        told = await facts_of(office.db, office.seated.event, "seat_reserved")
        assert [datetime.fromisoformat(fact["data"]["held_until"]) for fact in told] == [end, late]


@MOMENTS
async def test_late_payment_meets_another_buyers_hold(office: BoxOffice, before: timedelta) -> None:
    """A payment for a seat that another buyer holds is too late, until their hold ends as well."""
    ask, end = await hold(office, "seat")
    await office.set_clock(end)
    other = await office.hold(seat_of(ask))
    await office.set_clock(end + TTL - before)
    is_live = before > timedelta()
    assert await office.convert(ask, is_paid=True) == ("holds_expired" if is_live else "sold"), "a live hold was lost"
    assert await office.states(other) == ["active" if is_live else "expired"]


@MOMENTS
@pytest.mark.parametrize("others", [1, 2])
async def test_late_payment_needs_room_in_the_zone(office: BoxOffice, others: int, before: timedelta) -> None:
    """What others hold of the zone is not free for a late payment until its end, to the very place."""
    ask = await office.hold(places=PIT_CAPACITY - 1, zone=PIT)
    await office.advance(minutes=10)
    await office.hold(places=others, zone=PIT)
    await office.advance(minutes=10)
    await office.set_clock(await office.now() - before)
    is_live = before > timedelta()
    expected = "sold" if others == 1 or not is_live else "holds_expired"
    assert await office.convert(ask, is_paid=True) == expected, "sold more or fewer places than there are"


async def fill_pit(office: BoxOffice) -> int:
    """Let one place each of the small zone be blocked, sold and held for long; return how many are left."""
    await office.set_zone(PIT, blocked=1)
    assert await office.convert(await office.hold(places=1, zone=PIT)) == "sold"
    await office.allow(default_hold_ttl_minutes=60)
    await office.hold(places=1, zone=PIT)
    await office.allow(default_hold_ttl_minutes=10)
    return PIT_CAPACITY - 3


@pytest.mark.parametrize("more", [-1, 0, 1])
async def test_room_after_holds_expired(office: BoxOffice, more: int) -> None:
    """Expired holds make room, to the very place. What is blocked, sold or held is not room."""
    left = await fill_pit(office)
    expired = [await office.hold(places=1, zone=PIT) for _ in range(left)]
    await office.advance(minutes=10)
    ((said,),) = await office.reserve(office.ask(places=left + more, zone=PIT))
    expected = (Outcome.CREATED, None) if more <= 0 else (Outcome.FULL, str(left))
    assert (said.outcome, said.state) == expected, "more or less room than there is"
    assert await office.states(*expired) == ["expired"] * left


@pytest.mark.parametrize("others", [0, 1])
async def test_room_for_a_late_payment(office: BoxOffice, others: int) -> None:
    """The same for places that are paid for late."""
    ask = await office.hold(places=await fill_pit(office), zone=PIT)
    await office.advance(minutes=10)
    if others:
        await office.hold(places=others, zone=PIT)
    assert await office.convert(ask, is_paid=True) == ("holds_expired" if others else "sold"), "more or less room"


@MOMENTS
@KINDS
async def test_signing_in(office: BoxOffice, kind: str, before: timedelta) -> None:
    """A guest's hold becomes the account's with the time it has; an expired one stays where it is."""
    ask, end = await hold(office, kind)
    await office.set_clock(end - before)
    user_id, is_live = new_id(), before > timedelta()
    assert await office.hand_over(ask.user_id, user_id) == (["kept"] if is_live else []), "handed over too late"
    (row,) = await office.holds(ask)
    assert (row["user_id"], row["expires_at"], row["state"]) == (user_id if is_live else ask.user_id, end, "active")


@MOMENTS
@KINDS
async def test_expiry_worker(office: BoxOffice, kind: str, before: timedelta) -> None:
    """The worker marks what has ended and nothing else, and records that the time was up."""
    earlier = await office.hold(*office.seats(1)), await office.hold(places=1)  # so that it looks at the event at all
    await office.advance(minutes=1)
    ask, end = await hold(office, kind)
    await office.set_clock(end - before)
    await office.expire()
    is_live = before > timedelta()
    assert await office.states(*earlier, ask) == ["expired", "expired", "active" if is_live else "expired"], (
        "expired at the wrong time"
    )
    (row,) = await office.holds(ask)
    assert row["ended_at"] == (None if is_live else end - before)


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5])
@KINDS
async def test_expiry_worker_goes_on(office: BoxOffice, monkeypatch: pytest.MonkeyPatch, kind: str, count: int) -> None:
    """More than one call's worth is worked off in one run: fewer than a call, just a call, and more."""
    monkeypatch.setattr(registry, "EXPIRED_PER_CALL", 2)
    asks = [
        await office.hold(*office.seats(1)) if kind == "seat" else await office.hold(places=1) for _ in range(count)
    ]
    await office.advance(minutes=10)
    assert await office.expire() >= count
    assert await office.states(*asks) == ["expired"] * count


@MOMENTS
@KINDS
async def test_releasing_all(office: BoxOffice, kind: str, before: timedelta) -> None:
    """An event that is called off releases what is live and expires what has ended."""
    ask, end = await hold(office, kind)
    await office.set_clock(end - before)
    released = await registry.release_all(
        office.db, office.organization.id, office.event_id, by=OPERATOR, reason="test"
    )
    assert released == 1
    assert await office.states(ask) == ["cancelled" if before > timedelta() else "expired"]


@MOMENTS
async def test_blocking(office: BoxOffice, before: timedelta) -> None:
    """A blocked seat ends the hold on it: cancelled while it lasts, expired when its time was up."""
    ask, end = await hold(office, "seat")
    await office.set_clock(end - before)
    assert await office.block(seat_of(ask)) == ["done"]
    assert await office.states(ask) == ["cancelled" if before > timedelta() else "expired"]
    ended = "seat_hold_released" if before > timedelta() else "seat_hold_expired"
    assert await kinds_told(office) == ["seat_reserved", ended, "seat_blocked"]


@MOMENTS
@KINDS
async def test_unpublishing(office: BoxOffice, kind: str, before: timedelta) -> None:
    """An event whose seats are held cannot go back to draft; once the holds have ended it can."""
    _, end = await hold(office, kind)
    await office.set_clock(end - before)
    if before > timedelta():
        with pytest.raises(SeatingInUse):
            await unpublish(office.studio, office.seated.event)
    else:
        assert (await unpublish(office.studio, office.seated.event)).status == "draft"


@MOMENTS
@KINDS
async def test_what_is_shown(office: BoxOffice, kind: str, before: timedelta) -> None:
    """The basket, the organiser's list and the seat itself all end at the same moment."""
    ask, end = await hold(office, kind)
    await office.set_clock(end - before)
    is_live = before > timedelta()
    own = await booking.list_own(office.db, call_of(office.organization, Role.CUSTOMER, ask.user_id), office.event_id)
    assert [one.hold.id for one in own] == (hold_ids(ask) if is_live else [])
    assert all(one.hold.is_active for one in own)
    listed = await booking.list_all(office.db, call_of(office.organization), office.event_id, cursor=None, limit=9)
    assert [one.hold.id for one in listed.items] == (hold_ids(ask) if is_live else [])
    async with office.db.transaction(office.organization.id) as conn:
        found = await store.find_holds(conn, office.organization.id, hold_ids(ask))
        zones = await store.list_zones(conn, office.organization.id, office.event_id, is_counted=True)
        if kind == "seat":
            seat = await store.get_seat(conn, office.organization.id, office.event_id, seat_of(ask))
            assert seat is not None
            assert seat["status"] == ("held" if is_live else "available")
            assert sum(zone.counts.held for zone in zones) == int(is_live)
    assert found[ask.items[0].hold_id].is_active == is_live


@MOMENTS
@KINDS
async def test_clock_guard(office: BoxOffice, kind: str, before: timedelta) -> None:
    """After a jump of the clock nothing is taken over or expired until the guard ends, and everything from then on."""
    ask, end = await hold(office, kind)
    await office.set_clock(end + timedelta(hours=1))
    async with office.db.system_transaction() as conn:
        until = await store.guard_clock(conn, timedelta(hours=1))
    assert until == end + timedelta(hours=2)
    await office.set_clock(until - before)
    try:
        is_guarded = before > timedelta()
        await office.expire()
        assert await office.states(ask) == ["active" if is_guarded else "expired"], "the clock guard was ignored"
        wanted = office.ask(seat_of(ask)) if kind == "seat" else office.ask(places=1, zone=PIT)
        taken = Outcome.SEAT_HELD if kind == "seat" else Outcome.FULL
        assert await office.outcome(wanted) == (taken if is_guarded else Outcome.CREATED)
    finally:
        await office.owner.execute("update clock_guard set lapses_from = '-infinity'")


@MOMENTS
@KINDS
async def test_latest_time_a_process_believes(office: BoxOffice, kind: str, before: timedelta) -> None:
    """A clock that is later than the process believes possible has stepped, and expires nothing; up to then it does."""
    ask, end = await hold(office, kind)
    latest = end + timedelta(hours=1)
    await office.set_clock(latest - before)
    has_stepped = before < timedelta()
    office.db.clock_latest = latest.isoformat
    try:
        await office.expire()
    finally:
        office.db.clock_latest = lambda: None
    assert await office.states(ask) == ["active" if has_stepped else "expired"]


@MOMENTS
@KINDS
async def test_taking_over_by_the_time_a_process_believes(office: BoxOffice, kind: str, before: timedelta) -> None:
    ask, end = await hold(office, kind)
    latest = end + timedelta(hours=1)
    await office.set_clock(latest - before)
    wanted = office.ask(seat_of(ask)) if kind == "seat" else office.ask(places=1, zone=PIT)
    ((said,),) = await store.reserve_batch(office.db.call, [wanted], clock_latest=latest.isoformat())
    taken = Outcome.SEAT_HELD if kind == "seat" else Outcome.FULL
    assert said.outcome == (taken if before < timedelta() else Outcome.CREATED)
