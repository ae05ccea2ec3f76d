"""What each tier costs: memory, Redis and PostgreSQL asked the same, and a hold on its way through all three.

The benchmark's own process is one more web process beside the installation's: the same lanes, maps and projection, fed
by the same worker. Whatever is looked up must be what was held, or there is no figure.
"""

import math
import random
import time
import tracemalloc
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple
from uuid import UUID

from voelgoed.bench import ground as grounds, machine, process as processes, report
from voelgoed.bench.ground import BenchRefused, Ground, Sale
from voelgoed.bench.process import Given, Process
from voelgoed.bench.report import Measured
from voelgoed.holds import reconcile
from voelgoed.holds.availability import Availability
from voelgoed.holds.ends import Ends
from voelgoed.holds.hotmap import AVAILABLE, HELD, SeatChange
from voelgoed.holds.model import SeatStatus
from voelgoed.holds.projection import Projection
from voelgoed.ids import OrganizationId, new_id
from voelgoed.redis import RedisLink

HELD_AT_FIRST: Final = 100
SAMPLES: Final = 2_000
HELD_FOR_MS: Final = 600_000
APPLY_TRIES: Final = 3
KB, MB = 2**10, 2**20


class Goal(NamedTuple):
    """What was hoped for, in which row of docs/requirements.csv."""

    goal: str
    row: str


GOALS: Final[Mapping[str, Goal]] = {
    "hot_lookup": Goal("< 1 ms", "PERF-03"),
    "redis_lookup": Goal("< 10 ms", "PERF-04"),
    "redis_delete": Goal("5-20 ms", "PERF-05"),
    "redis_write": Goal("< 50 ms", "PERF-06"),
    "postgresql_lookup": Goal("10-50 ms", "PERF-07"),
    "seat_lock": Goal("p95 < 50 ms", "PERF-02"),
    "reserve_transaction": Goal("< 100 ms", "PERF-08"),
    "hold_in_all_tiers": Goal("< 100 ms", "PERF-09"),
    "occupancy_counted": Goal("50-200 ms", "PERF-13"),
    "occupancy_cached": Goal("< 10 ms", "PERF-14"),
    "hot_lookup_among_holds": Goal("about 10 000 holds", "PERF-16"),
    "redis_lookup_among_holds": Goal("about 1 000 000 holds", "PERF-17"),
}
Probe = Callable[[], Awaitable[Mapping[str, float]]]
"""Does something once, makes sure that it was right, and says how many seconds which part of it took."""


async def tiers(*, hall: str, rounds: int, hot_holds: int, redis_holds: int, as_json: bool) -> None:
    """Every tier by itself, a hold through all of them, and the tiers when they are full."""
    with report.steps(6) as shown:
        async with grounds.opened() as ground:
            shown.begin(f"hall {hall}")
            await ground.make_hall(hall)
            shown.done()
            before = machine.look(ground.pids())
            measured, figures = await measure(
                ground, rounds=rounds, hot_holds=hot_holds, redis_holds=redis_holds, shown=shown
            )
            use = machine.between(before, machine.look(ground.pids()))
            await ground.require_well()
    told = {**figures, "steal_pct": use.steal_pct, "foreign_pct": use.foreign_pct, "disturbed": use.is_disturbed}
    report.show_measured(measured, told, as_json=as_json)


async def measure(
    ground: Ground, *, rounds: int, hot_holds: int, redis_holds: int, shown: report.Steps
) -> tuple[dict[str, Measured], dict[str, object]]:
    """Everything there is to measure on an event in the hall, and what it was measured on."""
    shown.begin("on sale")
    sale = await ground.put_on_sale()
    async with processes.opened(ground) as process:
        await process.availability.load(ground.place.id, sale.event_id)
        asked = _Tiers(process, sale)
        await asked.hold_until(min(HELD_AT_FIRST, hot_holds))
        shown.done()
        shown.begin("each tier by itself")
        seconds: dict[str, list[list[float]]] = {}
        for _ in range(rounds):
            for probe, calls in asked.probes():
                _note(seconds, [await probe() for _ in range(calls)])
        shown.done()
        shown.begin(f"{hot_holds} holds in memory")
        await asked.hold_until(hot_holds)
        for _ in range(rounds):
            _note(seconds, [await asked.hot_lookup_among_holds() for _ in range(SAMPLES)])
        shown.done()
        figures: dict[str, object] = {
            "seats": asked.seats,
            "rounds": rounds,
            "hot_holds": len(asked.given),
            "hot_map_kb": round(await asked.map_bytes() / KB),
        }
        await asked.require_agreement()
        shown.begin(f"{redis_holds} holds in Redis")
        full = await _fill_redis(process, sale, redis_holds)
        for _ in range(rounds):
            _note(seconds, [await full.lookup() for _ in range(SAMPLES // 4)])
        shown.done()
    figures |= {
        "redis_holds": full.holds,
        "redis_events": full.events,
        "redis_mb": round(full.bytes / MB, 1),
        "redis_bytes_per_hold": round(full.bytes / full.holds),
    }
    measured = {name: Measured.of(seconds[name], **goal._asdict()) for name, goal in GOALS.items()}
    return measured, figures


def _note(seconds: dict[str, list[list[float]]], told: Sequence[Mapping[str, float]]) -> None:
    """What one round brought."""
    for name in told[0]:
        seconds.setdefault(name, []).append([one[name] for one in told])


@dataclass(slots=True)
class _Tiers:
    """An event on sale, what was held of it, and whoever looks."""

    process: Process
    sale: Sale
    given: list[Given] = field(default_factory=list)
    draw: random.Random = field(default_factory=lambda: random.Random(1))  # noqa: S311 - the same in every run
    seats: int = 0

    def __post_init__(self) -> None:
        found = self.process.availability.peek(self.sale.event_id)
        assert found is not None
        self.seats = len(found)

    def probes(self) -> Sequence[tuple[Probe, int]]:
        """What is done in a round, and how often."""
        return (
            (self.hot_lookup, SAMPLES),
            (self.redis_lookup, 300),
            (self.redis_delete_and_write, 100),
            (self.postgresql_lookup, 100),
            (self.hold_in_all_tiers, 20),
            (self.occupancy_counted_and_cached, 10),
        )

    async def map_bytes(self) -> int:
        """What a map of the event takes in memory, with everybody who holds something: loaded once more and weighed."""
        tracemalloc.start()
        try:
            other = Availability(self.process.db, Projection(self.process.link))
            found = await other.load(self.process.organization_id, self.sale.event_id)
            _require(len(found.holders) == len(self.given), "a map was loaded with other holds")
            return tracemalloc.get_traced_memory()[0]
        finally:
            tracemalloc.stop()

    async def hold_until(self, count: int) -> None:
        """Hold more seats until so many are held, and wait until Redis has them as well."""
        wanted = processes.asks(self.sale, max(0, count - len(self.given)))
        given = await self.process.hold_many(wanted)
        self.given += given
        for one in given[:1] + given[-1:]:
            await self.process.wait_for_redis(one)
        await self.process.wait_until_believed()

    async def hot_lookup(self) -> dict[str, float]:
        return {"hot_lookup": await self._look_in_memory()}

    async def hot_lookup_among_holds(self) -> dict[str, float]:
        return {"hot_lookup_among_holds": await self._look_in_memory()}

    async def redis_lookup(self) -> dict[str, float]:
        await self.process.wait_until_believed()
        one = self.draw.choice(self.given)
        began = time.perf_counter()
        found = await self.process.projection.read_hold(*self._key(one))
        took = time.perf_counter() - began
        _require(found is not None and (found.hold_id, found.user_id) == one[2:], "Redis has another hold")
        return {"redis_lookup": took}

    async def redis_delete_and_write(self) -> dict[str, float]:
        """Take a hold out as its end would, and put it back as it was given, by the projection's own script."""
        one = self.draw.choice(self.given)
        deleted = await self._apply(one, AVAILABLE)
        await self.process.wait_until_believed()
        _require(await self.process.projection.read_hold(*self._key(one)) is None, "a hold was not deleted")
        written = await self._apply(one, HELD)
        await self.process.wait_until_believed()
        found = await self.process.projection.read_hold(*self._key(one))
        _require(found is not None and found.hold_id == one.hold_id, "a hold was not written")
        return {"redis_delete": deleted, "redis_write": written}

    async def postgresql_lookup(self) -> dict[str, float]:
        """As a process does that has just started: no map, and nobody has told it that Redis may be believed."""
        projection, one = Projection(self.process.link), self.draw.choice(self.given)
        began = time.perf_counter()
        found = await Availability(self.process.db, projection).look_up(*self._key(one))
        took = time.perf_counter() - began
        await projection.settle()
        _require(found is not None and found.hold_id == one.hold_id, "PostgreSQL has another hold")
        return {"postgresql_lookup": took}

    async def hold_in_all_tiers(self) -> dict[str, float]:
        """From the ask until PostgreSQL has it committed, the map knows it and Redis has it from the worker."""
        ((event_id, seat_id),) = processes.asks(self.sale, 1)
        await self.process.wait_until_believed()
        began = time.perf_counter()
        given = await self.process.hold(event_id, seat_id)
        locked = time.perf_counter() - began
        known = await self.process.availability.look_up(*self._key(given))
        await self.process.wait_for_redis(given)
        everywhere = time.perf_counter() - began
        _require(known is not None and known.hold_id == given.hold_id, "the map does not know what was just given")
        self.given.append(given)
        transaction = self.process.lane_db.took_s[-1]
        return {"seat_lock": locked, "reserve_transaction": transaction, "hold_in_all_tiers": everywhere}

    async def occupancy_counted_and_cached(self) -> dict[str, float]:
        """Counted by PostgreSQL for whoever has no map; then read by the next one from Redis."""
        key = self.process.organization_id, self.sale.event_id
        projection = Projection(self.process.link)
        began = time.perf_counter()
        counted = await Availability(self.process.db, projection).occupancy(*key)
        counting = time.perf_counter() - began
        await projection.settle()
        _require((counted.held, counted.total) == (len(self.given), self.seats), "occupancy was counted wrongly")
        await self.process.wait_until_believed()
        began = time.perf_counter()
        cached = await Availability(self.process.db, self.process.projection).occupancy(*key)
        reading = time.perf_counter() - began
        _require(cached == counted, "occupancy was not read as it was counted")
        return {"occupancy_counted": counting, "occupancy_cached": reading}

    async def require_agreement(self) -> None:
        """The tiers have the same, after everything that was done to them here."""
        process = self.process
        found = await reconcile.look(
            process.db, process.availability, process.projection, process.organization_id, self.sale.event_id
        )
        _require(found.consistent and found.redis_count == len(self.given), f"the tiers differ: {found.message}")

    async def _look_in_memory(self) -> float:
        await self.process.wait_until_believed()
        one = self.draw.choice(self.given)
        began = time.perf_counter()
        found = await self.process.availability.look_up(*self._key(one))
        took = time.perf_counter() - began
        _require(found is not None and found.status is SeatStatus.HELD, "a held seat is shown as free")
        _require(found is not None and (found.hold_id, found.user_id) == one[2:], "the map has another hold")
        return took

    async def _apply(self, one: Given, status: int) -> float:
        """Write one seat to Redis as whoever tells does, in the version it has: so it stands again as it was."""
        process = self.process
        found = process.availability.peek(self.sale.event_id)
        assert found is not None
        ordinal = found.ordinal_of(one.seat_id)
        assert ordinal is not None
        now_ms = found.database_ms(time.monotonic())
        change = SeatChange(
            seat_id=one.seat_id,
            version=found.versions[ordinal],
            status=status,
            hold_id=one.hold_id,
            user_id=one.user_id if status == HELD else None,
            until_ms=found.holders[ordinal].until_ms if status == HELD else None,
        )
        for _ in range(APPLY_TRIES):  # the worker may have begun a new epoch
            epoch = (await process.projection.dump(process.organization_id, self.sale.event_id, now_ms)).epoch
            assert epoch is not None
            began = time.perf_counter()
            if await process.projection.apply(found, epoch, now_ms, [(ordinal, change)], ()):
                return time.perf_counter() - began
        raise BenchRefused("Redis would not take a change")

    def _key(self, one: Given) -> tuple[OrganizationId, UUID, UUID]:
        return self.process.organization_id, one.event_id, one.seat_id


@dataclass(frozen=True, slots=True, kw_only=True)
class _FullRedis:
    """Redis with many holds of many events, and some of them to look up."""

    process: Process
    holds: int
    events: int
    bytes: int
    samples: Sequence[Given]
    draw: random.Random

    async def lookup(self) -> dict[str, float]:
        await self.process.wait_until_believed()
        one = self.draw.choice(self.samples)
        began = time.perf_counter()
        found = await self.process.projection.read_hold(self.process.organization_id, one.event_id, one.seat_id)
        took = time.perf_counter() - began
        _require(found is not None and (found.hold_id, found.user_id) == one[2:], "Redis has another hold")
        return {"redis_lookup_among_holds": took}


async def _fill_redis(process: Process, sale: Sale, count: int) -> _FullRedis:
    """Events like this one, half of each held, written by the projection as it writes a map anew.

    They are in Redis alone: what a million of holds costs PostgreSQL is not what is looked at here.
    """
    found = await Availability(process.db, Projection(process.link)).load(process.organization_id, sale.event_id)
    per_event = max(1, len(found) // 2)
    draw = random.Random(1)  # noqa: S311 - the same in every run
    samples: list[Given] = []
    before = await _used_bytes(process.link)
    written, events = 0, math.ceil(count / per_event)
    for _ in range(events):
        await process.wait_until_believed()
        epoch = process.projection.floor
        assert epoch is not None
        found.event_id, found.holders = new_id(), Ends()
        now_ms = found.database_ms(time.monotonic())
        held: list[Given] = []
        for ordinal in range(min(per_event, count - written)):
            one = Given(found.event_id, found.seat_id(ordinal), new_id(), new_id())
            change = SeatChange(
                seat_id=one.seat_id,
                version=found.versions[ordinal] + 1,
                status=HELD,
                hold_id=one.hold_id,
                user_id=one.user_id,
                until_ms=now_ms + HELD_FOR_MS,
            )
            found.take_seat(change, time.monotonic())
            held.append(one)
        written += len(held)
        await process.projection.rebuild(found, epoch, {one.hold_id: now_ms + HELD_FOR_MS for one in held})
        samples += draw.sample(held, min(len(held), SAMPLES // events + 1))
    return _FullRedis(
        process=process,
        holds=written,
        events=events,
        bytes=await _used_bytes(process.link) - before,
        samples=samples,
        draw=draw,
    )


async def _used_bytes(link: RedisLink) -> int:
    told = await link.client.info("memory")
    return int(told["used_memory"])


def _require(is_so: bool, otherwise: str) -> None:  # noqa: FBT001 - a condition, as in an assertion
    """What was measured was right; otherwise there is no figure."""
    if not is_so:
        raise BenchRefused(otherwise)
