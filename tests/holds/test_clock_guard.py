"""When PostgreSQL's clock jumps ahead, nobody's hold lapses by that; when it jumps back, all is as it was."""

import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import cast

import pytest
from hypothesis import given, strategies as st

from tests.make import passing
from tests.make.holds import Sale, let_pass, on_sale
from tests.make.seating import as_registry, save
from voelgoed.accounts.model import Organization
from voelgoed.db import Connection, Database
from voelgoed.errors import Busy
from voelgoed.events.model import OPERATOR
from voelgoed.holds import registry, store
from voelgoed.holds.clock_guard import STEP, ClockGuard, Reading, step_between
from voelgoed.holds.refusals import BlockFull, SeatHeld, SeatingInUse
from voelgoed.http import server
from voelgoed.jobs import worker
from voelgoed.seating.overlay import Overlay
from voelgoed.wiring import Services, build_services

T0 = datetime(2026, 7, 1, 12, tzinfo=UTC)


@pytest.fixture
async def sale(services: Services, place: Organization) -> Sale:
    return await on_sale(services, place)


@pytest.fixture
async def unguarded(owner_conn: Connection) -> AsyncIterator[None]:
    """The clock is in order before and after."""
    await owner_conn.execute("update clock_guard set lapses_from = '-infinity'")
    yield
    await owner_conn.execute("update clock_guard set lapses_from = '-infinity'")


async def guard(db: Database, seconds: float) -> datetime:
    async with db.system_transaction() as conn:
        return await store.guard_clock(conn, timedelta(seconds=seconds))


async def lapses_from(db: Database) -> datetime:
    async with db.system_transaction() as conn:
        found: datetime = await conn.fetchval("select lapses_from from clock_guard")
    return found


@given(passed=st.floats(0, 10_000), jump=st.floats(-10_000, 10_000), took=st.floats(0, 30))
def test_only_what_is_beyond_the_time_that_passed_is_a_step(passed: float, jump: float, took: float) -> None:
    """Of more than a few seconds, and more than the looks themselves took."""
    before = Reading(T0, 50.0, 50.0)
    after = Reading(T0 + timedelta(seconds=passed + jump), 50.0 + passed - took, 50.0 + passed)
    found = step_between(before, after)
    if abs(jump) > STEP.total_seconds() + took + 0.001:
        assert found is not None
        assert abs(found.total_seconds() - jump) < 0.001
    elif abs(jump) < STEP.total_seconds() + took - 0.001:
        assert found is None


class Looking(ClockGuard):
    """A guard whose own clock the test sets, in the order in which it is looked at."""

    def __init__(self, db: Database) -> None:
        self.shown: list[float] = []
        super().__init__(db, clock=lambda: self.shown.pop(0))

    async def look(self, began: float, ended: float) -> None:
        self.shown = [began, ended]
        await self.tick()


@pytest.mark.usefixtures("unguarded")
async def test_a_step_ahead_is_written_down_and_a_step_back_undoes_it(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For as long as it was: from the clock as it is now. A steady clock writes nothing."""
    ahead = timedelta()

    async def read_clock(_: object) -> datetime:
        return T0 + ahead

    monkeypatch.setattr(store, "read_clock", read_clock)
    looking = Looking(db)
    before = await lapses_from(db)
    await looking.look(10.0, 10.0)
    ahead = timedelta(seconds=1)
    await looking.look(11.0, 11.0)
    assert await lapses_from(db) == before
    ahead = timedelta(hours=1)
    await looking.look(12.0, 12.0)
    async with db.system_transaction() as conn:
        left = await conn.fetchval("select extract(epoch from lapses_from - clock_timestamp()) from clock_guard")
    assert 3_590 - 5 <= left <= 3_598
    ahead = timedelta(seconds=3)
    await looking.look(13.0, 13.0)
    async with db.system_transaction() as conn:
        assert await conn.fetchval("select lapses_from <= clock_timestamp() from clock_guard")


@pytest.mark.usefixtures("unguarded")
async def test_a_look_that_took_long_is_no_step(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the slow one nor the quick one after it: PostgreSQL may have read its clock at either end."""
    shown = T0

    async def read_clock(_: object) -> datetime:
        return shown

    monkeypatch.setattr(store, "read_clock", read_clock)
    looking = Looking(db)
    before = await lapses_from(db)
    await looking.look(0.0, 9.0)  # read at 0, known at 9
    shown = T0 + timedelta(seconds=10)
    await looking.look(10.0, 10.0)
    shown = T0 + timedelta(seconds=11)
    await looking.look(11.0, 20.0)
    assert await lapses_from(db) == before


@pytest.mark.usefixtures("unguarded")
async def test_while_it_is_guarded_nothing_is_taken_over_and_nothing_tidied(
    db: Database, sale: Sale, owner_conn: Connection
) -> None:
    """Buyers are refused as by any hold, not with an error; the reaper runs and does nothing; then all goes on."""
    anna = sale.caller()
    (seat,) = await sale.hold(anna, "S-A-1")
    places = await sale.hold_places(anna, 8)
    await let_pass(owner_conn, seat.hold.id, places.hold.id)
    await guard(db, 3_600)
    with pytest.raises(SeatHeld) as refused:
        await sale.hold(sale.caller(), "S-A-1")
    assert refused.value.facts["expires_in"] == 0
    await registry.reap(db, by=OPERATOR)
    assert {row["status"] for row in await sale.rows()} == {"active"}
    assert (await sale.row("S-A-1"))["hold_id"] == seat.hold.id
    (other,) = await sale.hold(sale.caller(), "S-A-2")
    assert other.is_new, "what is free is sold as ever"

    assert await guard(db, -3_600) < datetime.now(UTC) + timedelta(seconds=1)
    passing.let(2)
    (taken,) = await sale.hold(sale.caller(), "S-A-1")
    assert taken.is_new
    await registry.reap(db, by=OPERATOR)
    assert {row["id"]: row["status"] for row in await sale.rows()} == {
        seat.hold.id: "expired",
        places.hold.id: "expired",
        other.hold.id: "active",
        taken.hold.id: "active",
    }


@pytest.mark.usefixtures("unguarded")
async def test_it_lasts_as_long_as_the_step_and_not_longer(db: Database, sale: Sale, owner_conn: Connection) -> None:
    """When so much time has passed, take-over and reaper are back without anybody's doing."""
    held = await sale.hold(sale.caller(), "S-A-1", "S-A-2")
    await let_pass(owner_conn, *(one.hold.id for one in held))
    until = await guard(db, 7)
    assert await lapses_from(db) == until
    assert await guard(db, 6) <= until + timedelta(seconds=1), "the latest end counts"
    assert await lapses_from(db) >= until
    await owner_conn.execute("update clock_guard set lapses_from = lapses_from - interval '8 seconds'")
    assert (await sale.hold(sale.caller(), "S-A-1"))[0].is_new
    assert await registry.reap(db, by=OPERATOR) >= 1
    assert (await sale.row("S-A-2"))["status"] == "available"


@pytest.mark.usefixtures("unguarded")
async def test_a_full_zone_is_full_while_it_is_guarded(db: Database, sale: Sale, owner_conn: Connection) -> None:
    """Lapsed holds of places by number count on; after that they make room."""
    first = await sale.hold_places(sale.caller(), 8)
    async with as_registry(owner_conn) as conn:
        await conn.execute(
            "update event_zones set capacity = 8 where event_id = $1 and zone_id = $2", sale.event.id, sale.zone("P")
        )
    await let_pass(owner_conn, first.hold.id)
    await guard(db, 3_600)
    with pytest.raises(BlockFull):
        await sale.hold_places(sale.caller(), 1)
    await guard(db, -3_600)
    assert (await sale.hold_places(sale.caller(), 1)).is_new


# INSIDE THE DECISION: a call carries the latest time possible, whatever a loop has noticed so far.


async def stepped(services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let PostgreSQL's clock have stepped ahead by a minute since this process looked."""
    async with services.db.system_transaction() as conn:
        before = await store.read_clock(conn) - timedelta(minutes=1)
    looked_at = time.monotonic()
    monkeypatch.setattr(services.clock, "_seen", Reading(before, looked_at, looked_at))
    monkeypatch.setattr(services.db, "clock_latest", services.clock.latest)  # other tests build services on it, too


@pytest.mark.usefixtures("unguarded")
async def test_a_clock_past_the_latest_possible_time_expires_nothing(
    db: Database, sale: Sale, owner_conn: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clock stepped ahead a moment ago and no loop has noticed: live holds stay, free seats are sold as ever."""
    anna = sale.caller()
    (seat,) = await sale.hold(anna, "S-A-1")
    (bought,) = await sale.hold(anna, "S-A-3")
    places = await sale.hold_places(anna, 8)
    await let_pass(owner_conn, seat.hold.id, bought.hold.id, places.hold.id)
    async with as_registry(owner_conn) as conn:
        await conn.execute(
            "update event_zones set capacity = 8 where event_id = $1 and zone_id = $2", sale.event.id, sale.zone("P")
        )
    await stepped(sale.services, monkeypatch)
    with pytest.raises(SeatHeld):
        await sale.hold(sale.caller(), "S-A-1")
    with pytest.raises(BlockFull):
        await sale.hold_places(sale.caller(), 1)
    await registry.reap(db, by=OPERATOR)
    assert {row["status"] for row in await sale.rows()} == {"active"}
    (other,) = await sale.hold(sale.caller(), "S-A-2")
    assert other.is_new

    monkeypatch.undo()
    passing.let(2)
    (taken,) = await sale.hold(sale.caller(), "S-A-1")
    assert taken.is_new
    assert (await sale.hold_places(sale.caller(), 1)).is_new
    await registry.reap(db, by=OPERATOR)
    assert (await sale.row("S-A-3"))["status"] == "available"


@pytest.mark.usefixtures("unguarded")
async def test_an_organiser_closes_no_seat_under_a_live_hold_after_a_step(
    sale: Sale, owner_conn: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The change is refused as for any held seat; with a clock that can be trusted the expired hold makes way."""
    (held,) = await sale.hold(sale.caller(), "S-A-1")
    await let_pass(owner_conn, held.hold.id)
    await stepped(sale.services, monkeypatch)
    wanted = sale.seated.wanted(Overlay(blocked_seats=("S-A-1",)))
    with pytest.raises(SeatingInUse):
        await save(sale.services.studio, sale.event, wanted)
    assert (await sale.row("S-A-1"))["hold_id"] == held.hold.id
    monkeypatch.undo()
    await save(sale.services.studio, sale.event, wanted)
    assert (await sale.row("S-A-1"))["status"] == "blocked"


@pytest.mark.usefixtures("unguarded")
async def test_a_late_payment_takes_no_seat_from_a_live_hold_after_a_step(
    sale: Sale, owner_conn: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ben's hold looks expired only because the clock stepped: Anna's late payment is refused, and he keeps it."""
    anna, ben = sale.caller(), sale.caller()
    (late,) = await sale.hold(anna, "S-A-1")
    await let_pass(owner_conn, late.hold.id)
    (live,) = await sale.hold(ben, "S-A-1")
    await let_pass(owner_conn, live.hold.id)
    await stepped(sale.services, monkeypatch)
    assert (await sale.buy(anna, late, is_paid=True))[0] == "holds_expired"
    assert (await sale.row("S-A-1"))["hold_id"] == live.hold.id
    monkeypatch.undo()
    assert (await sale.buy(anna, late, is_paid=True))[0] == "sold"


async def test_the_latest_possible_time_still_counts(owner_conn: Connection) -> None:
    """To the microsecond: up to it holds expire, past it nothing does; without one every time counts."""
    t0, step = T0, timedelta(microseconds=1)
    async with owner_conn.transaction():
        await owner_conn.execute("update clock_guard set lapses_from = '-infinity'")
        await owner_conn.execute("select set_config('app.clock_latest', $1, true)", t0.isoformat())
        for at, expired in ((t0 - step, t0 - step), (t0, t0), (t0 + step, None)):
            found = await owner_conn.fetchval("select nullif(lapse_clock($1), '-infinity')", at)
            assert found == expired
        await owner_conn.execute("select set_config('app.clock_latest', '', true)")
        assert await owner_conn.fetchval("select lapse_clock($1)", t0 + step) == t0 + step


@pytest.mark.usefixtures("unguarded")
async def test_a_step_is_believed_only_after_it_is_written_down(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Until then every call still carries the time from before the step, also when writing it down fails."""
    shown = T0

    async def read_clock(_: object) -> datetime:
        return shown

    async def fail(*_: object) -> datetime:
        raise Busy

    monkeypatch.setattr(store, "read_clock", read_clock)
    looking = Looking(db)
    assert looking.latest() is None
    await looking.look(10.0, 10.0)
    shown = T0 + timedelta(hours=1)
    with monkeypatch.context() as patched:
        patched.setattr(store, "guard_clock", fail)
        with pytest.raises(Busy):
            await looking.look(11.0, 11.0)
    looking.shown = [12.0, 12.0]
    assert looking.latest() == (T0 + timedelta(seconds=2) + STEP).isoformat()
    assert looking.now() == T0 + timedelta(seconds=2)
    await looking.look(13.0, 13.0)
    looking.shown = [14.0, 14.0]
    assert looking.latest() == (shown + timedelta(seconds=1) + STEP).isoformat()
    assert looking.now() == shown + timedelta(seconds=1)


@given(read_at=st.floats(0, 3), took=st.floats(0, 3), later=st.floats(0, 1_000))
def test_a_steady_clock_is_never_past_its_latest_time(read_at: float, took: float, later: float) -> None:
    """Whenever within a look the clock was read; and the expected time is never ahead of the real one."""
    read_at = min(read_at, took)
    looking = Looking(cast(Database, None))
    looking._seen = Reading(T0 + timedelta(seconds=read_at), 100.0, 100.0 + took)
    real = T0 + timedelta(seconds=took + later)
    looking.shown = [100.0 + took + later] * 2
    latest = looking.latest()
    assert latest is not None
    assert real <= datetime.fromisoformat(latest) - STEP + timedelta(milliseconds=1)
    assert looking.now() <= real + timedelta(milliseconds=1)


async def test_every_process_that_decides_looks_at_the_clock(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Web processes and workers alike, so a dead worker leaves no decision unguarded."""
    for found in (server.loops(services), worker.loops(services)):
        assert [loop.pace_s for loop in found if loop.name == "guard_clock"] == [1.0]
    monkeypatch.setattr(services.db, "clock_latest", None)
    own = build_services(services.settings, services.db, services.redis, b"k" * 32)
    assert services.db.clock_latest == own.clock.latest
    own.door.passwords.close()
