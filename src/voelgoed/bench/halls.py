"""What a hall costs: made, checked, stored, loaded, put on sale; beside bare statements in the same run."""

import asyncio
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TypeVar

import asyncpg
from rich.console import Console
from rich.progress import Progress

from voelgoed import schema
from voelgoed.accounts import usecases as accounts
from voelgoed.accounts.model import Organization
from voelgoed.bench import report
from voelgoed.cache import Cache
from voelgoed.db import Connection, Database
from voelgoed.embedded import Embedded
from voelgoed.events import operator as events
from voelgoed.events.model import NewEvent, NewVenue, Order, Venue, Verb
from voelgoed.holds import operator as places
from voelgoed.holds.inventory import Wanted
from voelgoed.ids import new_id
from voelgoed.redis import RedisLink
from voelgoed.seating import operator, presets
from voelgoed.seating.canonical import write_layout
from voelgoed.seating.document import read_layout
from voelgoed.seating.generate import generate
from voelgoed.seating.model import Layout, Pin, Version, VersionStatus
from voelgoed.seating.studio import Studio
from voelgoed.ticketing import operator as prices

T = TypeVar("T")
DATABASE = "voelgoed_bench"
LOAD_GOAL = "< 50 ms (PERF-20)"
COPIED = ("seats", "layout_seats")
"""The tables with a row for every seat."""


@dataclass(slots=True)
class Bench:
    """Servers of its own, as durable as in earnest, and an organization on them."""

    studio: Studio
    owner: Connection
    place: Organization
    venue: Venue
    link: RedisLink
    seconds: dict[str, list[float]] = field(default_factory=dict)

    async def time(self, name: str, work: Callable[[], Awaitable[T]]) -> T:
        began = time.perf_counter()
        done = await work()
        self.seconds.setdefault(name, []).append(time.perf_counter() - began)
        return done

    def median(self, name: str) -> float:
        return statistics.median(self.seconds[name])

    def p95_ms(self, name: str) -> float:
        return report.percentile_ms(sorted(self.seconds[name]), 0.95)


@asynccontextmanager
async def opened() -> AsyncIterator[Bench]:
    """Start everything in a folder that is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="voelgoed-bench-") as folder:
        home = Path(folder)
        home.chmod(0o755)  # noqa: ASYNC240 - nobody else is on this loop; the servers may run as a user of their own
        embedded = Embedded(home)
        await embedded.start()
        try:
            await schema.create_database(embedded.admin_url, DATABASE)
            await schema.migrate(embedded.postgres_url(schema.OWNER, DATABASE))
            db = await Database.open(embedded.postgres_url(schema.APP, DATABASE), size=4, command_timeout_s=120)
            owner = await asyncpg.connect(embedded.postgres_url(schema.OWNER, DATABASE))
            async with RedisLink(embedded.valkey_url) as link:
                place = await accounts.found_organization(db, slug="bench", name="Bench")
                ground = NewVenue(name="Ground", slug="ground", timezone="UTC", max_capacity=1_000_000)
                venue = await events.create_venue(db, place, ground)
                await operator.change_policy(db, place, {"allow_vip_zones": True}, reason="a hall may have a lounge")
                yield Bench(Studio(db, Cache(link=link)), owner, place, venue, link)
            await owner.close()
            await db.close()
        finally:
            await embedded.stop()


async def layout(*, preset: str, rounds: int, as_json: bool) -> None:
    """What a hall costs: made, checked, stored beside a bare COPY, loaded, put on sale beside a bare insert."""
    assert rounds >= 1
    made: Version | None = None
    async with opened() as bench:
        with Progress(console=Console(stderr=True), transient=True) as shown:
            task = shown.add_task(f"{preset}, {rounds} rounds", total=rounds)
            for _ in range(rounds):
                made = await _round(bench, preset)
                shown.advance(task)
        assert made is not None
        drawing = await bench.studio.drawing(bench.place.id, made.layout_id, made.version)
    figures = {
        "preset": preset,
        "seats": made.seat_count,
        "rounds": rounds,
        "geometry_bytes": len(drawing.gzipped),
        **{f"{name}_s": round(bench.median(name), 6) for name in bench.seconds},
        **{f"{name}_p95_ms": round(bench.p95_ms(name), 3) for name in ("cold", "warm", "hot")},
        "p95_goal": LOAD_GOAL,
        "store_ratio": round(bench.median("store") / bench.median("copy"), 2),
        "warm_ratio": round(bench.median("load") / bench.median("warm"), 1),
        "publish_ratio": round(bench.median("publish") / bench.median("insert"), 2),
    }
    report.show(figures, as_json=as_json)


async def _round(bench: Bench, preset: str) -> Version:
    hall = await bench.time("generate", lambda: asyncio.to_thread(generate, presets.preset(preset)))
    document = await bench.time("write", lambda: asyncio.to_thread(write_layout, hall))
    read: Layout = await bench.time("validate", lambda: asyncio.to_thread(read_layout, document))
    assert read == hall
    made = await bench.time("store", lambda: operator.add_layout(bench.studio, bench.place, bench.venue.id, hall))
    await _copy(bench, made)
    back = await bench.time("load", lambda: operator.load(bench.studio, bench.place, made.layout_id, made.version))
    assert back == hall
    await bench.time("cold", lambda: bench.studio.drawing(bench.place.id, made.layout_id, made.version))
    await bench.studio.settle()
    fresh = Studio(bench.studio.db, Cache(link=bench.link))  # as in another process: nothing in memory yet
    await bench.time("warm", lambda: fresh.drawing(bench.place.id, made.layout_id, made.version))
    await bench.time("hot", lambda: fresh.drawing(bench.place.id, made.layout_id, made.version))
    await _publish(bench, made)
    return made


async def _publish(bench: Bench, made: Version) -> None:
    """An event in the hall gets its places; beside it one bare insert of the same rows, without policies."""
    now = datetime.now(UTC)
    new = NewEvent(
        venue_id=bench.venue.id,
        name="Bench",
        slug=f"bench-{new_id().hex}",
        start_at=now + timedelta(days=1),
        end_at=now + timedelta(days=2),
    )
    event = (await events.create_event(bench.studio.db, bench.place, new)).event
    pin = Pin(made.layout_id, made.version)
    await operator.move(bench.studio, bench.place, *pin, VersionStatus.ACTIVE, reason=None)
    await prices.save_seating(bench.studio, bench.place, event.id, Wanted(pin=pin, overrides={}))
    order = Order(verb=Verb.PUBLISH)
    await bench.time("publish", lambda: places.move_event(bench.studio, bench.place, event.id, order))
    table = f"bare_event_seats_{new_id().hex}"
    await bench.owner.execute(f"create table {table} (like event_seats including all)")
    insert = f"insert into {table} select * from event_seats where event_id = $1 order by ordinal"  # noqa: S608
    await bench.time("insert", lambda: bench.owner.execute(insert, event.id))
    await bench.owner.execute(f"drop table {table}")


async def _copy(bench: Bench, made: Version) -> None:
    """The same rows by COPY, the fastest way there is, into tables like ours: same columns and keys, no policies."""
    await bench.owner.execute("select set_config('app.scope', 'system', false)")
    bare: dict[str, list[tuple[object, ...]]] = {}
    for table in COPIED:
        rows = await bench.owner.fetch(f"select * from {table} where layout_id = $1", made.layout_id)  # noqa: S608
        bare[f"bare_{table}_{new_id().hex}"] = [tuple(row) for row in rows]
        name = list(bare)[-1]
        await bench.owner.execute(f"create table {name} (like {table} including all)")

    async def copy() -> None:
        for name, rows in bare.items():
            await bench.owner.copy_records_to_table(name, records=rows)

    await bench.time("copy", copy)
    for name in bare:
        await bench.owner.execute(f"drop table {name}")
