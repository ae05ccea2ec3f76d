"""How full an event is: the seeds' figures, places by number with seats, each zone by itself, minute by minute."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

import msgspec
import pytest
from hypothesis import given, strategies as st

from tests.make.accounts import make_organization
from tests.make.holds import Sale, on_sale
from tests.make.seating import block_seat, sell_seat, take_places
from voelgoed.accounts.model import Organization
from voelgoed.db import Connection, Database
from voelgoed.holds import occupancy
from voelgoed.holds.hotmap import HotZone
from voelgoed.holds.model import Counts
from voelgoed.holds.occupancy import KEPT, Occupancy, list_minutes, occupancy_now, occupancy_of, remember, share
from voelgoed.ids import new_id
from voelgoed.jobs import queue
from voelgoed.wiring import Services

AT = datetime(2026, 7, 1, 12, tzinfo=UTC)


def zone(total: int, held: int, sold: int, blocked: int = 0, *, is_by_number: bool = True) -> HotZone:
    return HotZone.of(new_id(), is_by_number, 1, total, blocked, held, sold)


def full(*zones: HotZone, event_id: UUID | None = None) -> Occupancy:
    return occupancy_of(event_id or new_id(), 1, 7, zones, AT)


@pytest.fixture
async def sale(services: Services, place: Organization) -> Sale:
    return await on_sale(services, place)


@pytest.mark.req("OCC-01", "OCC-03")
def test_the_seeds_example_comes_out() -> None:
    """150 free, 45 held, 155 sold of 350: 42.9, 12.9 and 44.3 per cent, each rounded by itself."""
    found = full(zone(350, held=45, sold=155))
    assert (found.available, found.held, found.sold, found.blocked, found.total) == (150, 45, 155, 0, 350)
    assert (found.percent_available, found.percent_held, found.percent_sold) == (42.9, 12.9, 44.3)
    assert found.timestamp == AT
    told = msgspec.json.decode(msgspec.json.encode(found))
    fields = {"available", "held", "sold", "blocked", "total", "percent_available", "percent_held", "percent_sold"}
    assert fields | {"timestamp"} <= told.keys()


def test_of_nothing_everything_is_nothing() -> None:
    """An event without places divides by nothing."""
    found = full()
    assert (found.total, found.percent_available, found.percent_held, found.percent_sold) == (0, 0.0, 0.0, 0.0)
    assert (found.occupancy_percent, share(0, 0), share(1, 3), share(3, 3)) == (0.0, 0.0, 33.3, 100.0)


@pytest.mark.req("OCC-01", "OCC-09")
@given(st.lists(st.tuples(*[st.integers(0, 500)] * 4), max_size=6))
def test_the_whole_is_the_sum_of_its_zones(told: list[tuple[int, int, int, int]]) -> None:
    """Whatever kind they are; the total is the sum of the four."""
    zones = [
        zone(free + held + sold + blocked, held, sold, blocked, is_by_number=bool(number % 2))
        for number, (free, held, sold, blocked) in enumerate(told)
    ]
    found = full(*zones)
    sums = [sum(one[place] for one in told) for place in range(4)]
    assert [found.available, found.held, found.sold, found.blocked] == sums
    assert found.total == sum(sums)
    assert [(one.available, one.held, one.sold, one.blocked) for one in found.zones] == told
    assert all(one.total == one.available + one.held + one.sold + one.blocked for one in found.zones)
    for percent, part in (
        (found.percent_available, found.available),
        (found.percent_held, found.held),
        (found.percent_sold, found.sold),
        (found.occupancy_percent, found.held + found.sold),
    ):
        assert abs(percent - (100 * part / found.total if found.total else 0)) <= 0.0501


@pytest.mark.req("OCC-02", "OCC-09")
async def test_seats_and_places_by_number_are_counted_together(
    services: Services, sale: Sale, owner_conn: Connection
) -> None:
    """As PostgreSQL counts them and as the map does: by zone, and the same number for the same state."""
    await sale.hold(sale.caller(), "S-A-1", "S-A-2")
    # A map that is being read for that hold is shared with who asks meanwhile; nobody tells it what is written by hand.
    await services.availability.load(sale.place.id, sale.event.id)
    await sell_seat(owner_conn, sale.event, sale.seated.ordinal("S-A-3"))
    await block_seat(owner_conn, sale.event, sale.seated.ordinal("V-A-1"))
    await take_places(owner_conn, sale.event, sale.zone("P"), held=7, sold=11)
    counted = await services.availability.occupancy(sale.place.id, sale.event.id)
    by_map = occupancy_now(await services.availability.load(sale.place.id, sale.event.id))
    assert (counted.held, counted.sold, counted.blocked) == (9, 12, 1)
    assert msgspec.structs.replace(by_map, timestamp=counted.timestamp) == counted
    by_zone = {one.zone_id: one for one in counted.zones}
    assert (by_zone[sale.zone("S")].held, by_zone[sale.zone("S")].sold) == (2, 1)
    assert by_zone[sale.zone("V")].blocked == 1
    assert (by_zone[sale.zone("P")].held, by_zone[sale.zone("P")].sold) == (7, 11)
    assert counted.total == sum(one.total for one in counted.zones)


async def test_a_minute_has_one_line_and_the_last_word_stays(db: Database, sale: Sale, owner_conn: Connection) -> None:
    """Lines come in the order of time, of one's own organization, and since when one asks."""
    for held in (1, 2):
        await remember(db, sale.place.id, full(zone(10, held, 0), event_id=sale.event.id))
    # the minute may have turned between the two
    minutes = await list_minutes(db, sale.place.id, sale.event.id)
    assert minutes[-1].counts == Counts(available=8, held=2, sold=0, blocked=0)
    assert len({one.taken_at for one in minutes}) == len(minutes) <= 2
    assert all((one.taken_at.second, one.taken_at.microsecond) == (0, 0) for one in minutes)
    await owner_conn.execute("select set_config('app.scope', 'system', false)")
    await owner_conn.execute(
        "update occupancy_snapshots set taken_at = taken_at - interval '2 hours' where event_id = $1", sale.event.id
    )
    await remember(db, sale.place.id, full(zone(10, 3, 0), event_id=sale.event.id))
    told = [one.counts.held for one in await list_minutes(db, sale.place.id, sale.event.id)]
    assert told == sorted(told)
    assert told[-1] == 3
    since = minutes[-1].taken_at - timedelta(minutes=30)
    assert [one.counts.held for one in await list_minutes(db, sale.place.id, sale.event.id, since=since)] == [3]
    other = await make_organization(db)
    assert await list_minutes(db, other.id, sale.event.id) == []


async def test_long_ago_is_forgotten_batch_by_batch(
    db: Database, sale: Sale, owner_conn: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is older than is kept goes, however much there is; the rest stays. It is a job of every day."""
    monkeypatch.setattr(occupancy, "BATCH_ROWS", 3)
    await owner_conn.execute("select set_config('app.scope', 'system', false)")
    await owner_conn.execute(
        "insert into occupancy_snapshots (organization_id, event_id, taken_at, available, held, sold, blocked, zones)"
        " select $1, $2, date_trunc('minute', now()) - days * interval '1 day', 1, 0, 0, 0, '[]'"
        " from generate_series(1, $3::integer) as days",
        sale.place.id,
        sale.event.id,
        KEPT.days + 8,
    )
    removed = await occupancy.purge(db)
    assert removed >= 8
    assert await owner_conn.fetchval("select count(*) from occupancy_snapshots where event_id = $1", sale.event.id) in (
        KEPT.days,
        KEPT.days - 1,
    )
    assert await occupancy.purge(db) == 0
    assert "purge_occupancy" in {one.job_name for one in queue.RECURRING}
