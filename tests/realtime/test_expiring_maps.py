"""Viewers see a hold end at its end, without a fact and without a step back, whatever arrives later."""

import asyncio
import random
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from tests.make.accounts import make_organization
from tests.make.holds import Sale, on_sale
from tests.make.seating import as_registry
from tests.realtime import test_maps
from tests.realtime.test_maps import Chaos, Look, look, until
from voelgoed.db import Connection, Database
from voelgoed.holds import store
from voelgoed.holds.hotmap import AVAILABLE, HELD, SOLD, HotMap, SeatChange, ZoneChange, milliseconds
from voelgoed.ids import new_id
from voelgoed.realtime import maps
from voelgoed.realtime.feed import Feed
from voelgoed.redis import RedisLink
from voelgoed.wiring import Services

END = datetime(2040, 1, 1, 12, tzinfo=UTC)
LATER = END + timedelta(minutes=5)
MILLISECOND = timedelta(milliseconds=1)


class Process(test_maps.Process):
    """Maps and feed of a process, with PostgreSQL's clock as the test sets it. No worker runs, and no one follows."""

    def __init__(self, db: Database, link: RedisLink) -> None:
        super().__init__(db, link)
        self.now = END - timedelta(minutes=10)
        self.hot._expired_by = lambda: self.now
        self.feed = Feed(db, link, self.hot)
        self.feeding = asyncio.create_task(self.feed.run(self.stop))

    async def end(self) -> None:
        await super().end()
        await self.feeding


@pytest.fixture
async def sale(services: Services, db: Database) -> Sale:
    return await on_sale(services, await make_organization(db))


@pytest.fixture
async def here(db: Database, services: Services) -> AsyncIterator[Process]:
    made = Process(db, services.redis)
    await asyncio.sleep(0)
    yield made
    await made.end()


@pytest.fixture
async def seen(here: Process, sale: Sale) -> AsyncIterator[Look]:
    """A viewer who has been shown that a seat is held, and three places of the pit, both until `END`."""
    viewer = await look(here.maps, sale)
    pit = ZoneChange(sale.zone("P"), 2, 3, 0, PIT_HOLD, milliseconds(END), 3)
    here.hot.take(sale.event.id, [seat(sale, 2, HELD, END)], [pit])
    await until(lambda: shown(viewer, sale) == (HELD, 3))
    yield viewer
    await viewer.leave()
    assert "resync" not in viewer.pipe.names()


PIT_HOLD = UUID(int=7)


def seat(sale: Sale, version: int, status: int, end: datetime | None = None) -> SeatChange:
    held = (new_id(), new_id(), milliseconds(end)) if end else (None, None, None)
    return SeatChange(sale.seat("S-A-1"), version, status, *held)


def shown(viewer: Look, sale: Sale) -> tuple[int, int]:
    """The seat, and how many places of the pit are held, as the viewer has them."""
    model = viewer.pipe.model
    return model.statuses[sale.seated.ordinal("S-A-1")], model.zones[str(sale.zone("P"))]["held"]


async def test_a_viewer_sees_holds_end_without_a_fact(here: Process, sale: Sale, seen: Look) -> None:
    """The seat, the zone and the occupancy, each as the map has them; before their end nothing is sent."""
    frames = len(seen.pipe.model.frames)
    here.now = END - MILLISECOND
    here.hot.expire()
    await until(lambda: (seen.pipe.model.occupancy or {}).get("held") == 4)
    assert (len(seen.pipe.model.frames) - frames <= 1, shown(seen, sale)) == (True, (HELD, 3)), "the last count at most"
    here.now = END
    await until(lambda: shown(seen, sale) == (AVAILABLE, 0))
    await until(lambda: (seen.pipe.model.occupancy or {}).get("held") == 0)
    found = here.hot.peek(sale.event.id)
    assert found is not None
    assert seen.pipe.model.shows(found)


async def test_who_comes_after_the_end_is_shown_the_same(here: Process, sale: Sale, seen: Look) -> None:
    here.now = END
    late = await look(here.maps, sale)
    assert shown(late, sale) == (AVAILABLE, 0)
    await until(lambda: seen.pipe.model.version == late.pipe.model.version)
    await late.leave()


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ((3, AVAILABLE, None), AVAILABLE),
        ((3, HELD, LATER), HELD),
        ((3, SOLD, None), SOLD),
        ((4, HELD, LATER), HELD),
    ],
    ids=["recorded", "extended", "sold", "taken over"],
)
async def test_what_is_told_later_is_a_step_ahead(
    here: Process, sale: Sale, seen: Look, change: tuple[int, int, datetime | None], expected: int
) -> None:
    """The viewer takes it as a change like any other: the map's version rises, and no one is sent a whole map."""
    here.now = END
    await until(lambda: shown(seen, sale)[0] == AVAILABLE)
    version = seen.pipe.model.version
    here.hot.take(sale.event.id, [seat(sale, *change)], [])
    await until(lambda: seen.pipe.model.version > version)
    assert shown(seen, sale)[0] == expected


async def test_a_hold_that_is_extended_in_time_is_held_all_along(here: Process, sale: Sale, seen: Look) -> None:
    """No frame ever says otherwise until its second end."""
    zone = ZoneChange(sale.zone("P"), 3, 3, 0, PIT_HOLD, milliseconds(LATER), 3)
    here.hot.take(sale.event.id, [seat(sale, 3, HELD, LATER)], [zone])
    version = seen.pipe.model.version
    here.now = LATER - MILLISECOND
    here.hot.expire()
    await until(lambda: seen.pipe.model.version > version)
    ordinal = sale.seated.ordinal("S-A-1")
    deltas = [frame.data for frame in seen.pipe.model.frames if frame.name == "delta"]
    assert {one["statuses"] for one in deltas if ordinal in one["seats"]} == {"1"}
    assert shown(seen, sale) == (HELD, 3)
    here.now = LATER
    await until(lambda: shown(seen, sale) == (AVAILABLE, 0))


async def test_a_map_that_is_loaded_again_after_the_end_is_the_same(here: Process, sale: Sale) -> None:
    """What the map in memory shows as over is shown as over by one that PostgreSQL has just read: nothing is sent."""
    (held,) = await sale.hold(sale.caller(), "S-A-1")
    await sale.hold_places(sale.caller(), 2)
    here.now = held.hold.expires_at - timedelta(minutes=1)
    viewer = await look(here.maps, sale)
    assert shown(viewer, sale) == (HELD, 2)
    here.now = held.hold.expires_at + timedelta(minutes=1)
    await until(lambda: shown(viewer, sale) == (AVAILABLE, 0))
    version = viewer.pipe.model.version
    found = await here.hot.load(sale.place.id, sale.event.id)
    assert (found.map_version, viewer.pipe.model.shows(found)) == (version, True)
    await viewer.leave()
    assert viewer.pipe.names().count("snapshot") == 1


async def test_the_feed_counts_holds_that_end(here: Process, sale: Sale, monkeypatch: pytest.MonkeyPatch) -> None:
    """An organiser who watches is sent how full the sale is when a hold has ended, though nothing was recorded."""
    monkeypatch.setattr("voelgoed.realtime.feed.OCCUPANCY_S", 0.0)
    (held,) = await sale.hold(sale.caller(), "S-A-1")
    here.now = held.hold.expires_at - MILLISECOND
    watcher = await here.feed.open(sale.place.id, new_id())
    await here.hot.load(sale.place.id, sale.event.id)
    frames = [await watcher.next_frame(), await watcher.next_frame()]
    assert frames[1] is not None
    assert b'"held":1' in frames[1]
    here.now = held.hold.expires_at
    frame = await asyncio.wait_for(watcher.next_frame(), 20)
    assert frame is not None
    assert b"event: occupancy" in frame
    assert b'"held":0' in frame
    here.feed.close(watcher)


# Any series of changes and ends


@dataclass
class ExpiringChaos(Chaos):
    """The same, with holds that end and are extended. Time passes in both processes alike, whatever they were told."""

    timed: Sequence[Process] = ()

    async def step(self) -> None:
        if self.chance.random() < 0.2:
            minutes = timedelta(minutes=self.chance.choice((1, 4)))
            for process_ in self.timed:
                process_.now += minutes
        await super().step()

    async def _change_seat(self) -> SeatChange:
        """A hold ends ten minutes from now; half of the changes of a held seat extend it."""
        held = [code for code in self.versions if (await self.sale.row(code))["status"] == "held"]
        if held and self.chance.random() < 0.5:
            return await self._end_in(self.chance.choice(held), timedelta(minutes=15), versions=1)
        change = await super()._change_seat()
        code = next(code for code in self.versions if self.sale.seat(code) == change.seat_id)
        return await self._end_in(code, timedelta(minutes=10)) if change.status == HELD else change

    async def _end_in(self, code: str, lasts: timedelta, versions: int = 0) -> SeatChange:
        end = self.timed[0].now + lasts
        self.versions[code] += versions
        async with as_registry(self.owner) as conn:
            row = await conn.fetchrow(
                "update event_seats set held_until = $1, version = version + $2 where event_id = $3 and ordinal = $4"
                " returning hold_id, held_by",
                end,
                versions,
                self.sale.event.id,
                self.sale.seated.ordinal(code),
            )
        assert row is not None
        return SeatChange(
            self.sale.seat(code), self.versions[code], HELD, row["hold_id"], row["held_by"], milliseconds(end)
        )


async def truth(sale: Sale, now: datetime) -> HotMap:
    """What PostgreSQL has, by that clock."""
    async with sale.db.transaction(sale.place.id) as conn:
        snapshot = await store.load_map(conn, sale.place.id, sale.event.id)
    assert snapshot is not None
    found = HotMap(snapshot, read_at=0.0)
    found.expire(milliseconds(now))
    return found


@pytest.mark.parametrize("seed", range(6))
async def test_whatever_ends_in_whatever_order_everybody_ends_with_the_same_map(
    db: Database, services: Services, sale: Sale, owner_conn: Connection, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No viewer ever goes back, and when everything has been told all show what PostgreSQL has at that time."""
    monkeypatch.setattr(maps, "FRAMES_PER_S", 200.0)
    monkeypatch.setattr(maps, "EXPIRE_S", 0.01)
    both = Process(db, services.redis), Process(db, services.redis)
    await asyncio.sleep(0)
    known = await truth(sale, both[0].now)
    chaos = ExpiringChaos(
        processes=both,
        sale=sale,
        owner=owner_conn,
        chance=random.Random(seed),
        versions=dict(zip(sale.seated.hall.codes, known.versions, strict=True)),
        zone_version=next(zone.version for zone in known.zones if zone.zone_id == sale.zone("P")),
        untold=([], []),
        timed=both,
    )
    for _ in range(120):
        await chaos.step()
    while chaos.gone:
        await chaos.come(both[0])
    for process_, waiting in zip(both, chaos.untold, strict=True):
        while waiting:
            await chaos.tell(process_)
    last = await truth(sale, both[0].now)
    await until(lambda: all(one.pipe.model.shows(last) for one in chaos.looks))
    assert chaos.looks
    for one in chaos.looks:
        await one.leave()
    for process_ in both:
        await process_.end()
