"""When PostgreSQL's clock jumps ahead, nobody's hold lapses by that; when it jumps back, all is as it was."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, strategies as st

from tests.make import passing
from tests.make.holds import Sale, let_pass, on_sale
from tests.make.seating import as_registry
from voelgoed.accounts.model import Organization
from voelgoed.db import Connection, Database
from voelgoed.events.model import OPERATOR
from voelgoed.holds import registry, store
from voelgoed.holds.clock_guard import STEP, ClockGuard, step_between
from voelgoed.holds.refusals import BlockFull, SeatHeld
from voelgoed.wiring import Services

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
    after = T0 + timedelta(seconds=passed + jump), 50.0 + passed
    found = step_between((T0, 50.0), after, slack_s=took)
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
