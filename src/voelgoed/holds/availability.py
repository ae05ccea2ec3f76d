"""What a process knows of events' places: hot maps, loaded on first use, fed by what is committed.

A map answers what anybody may look at, and refuses whoever comes too late, as long as PostgreSQL has said so within the
last second. It never grants anything. Looking something up goes from here to Redis, and from there to PostgreSQL; who
looks there puts what was found back into both.

Every read shows a hold as over once it has ended by PostgreSQL's clock (`expired_by`), whether or not the expiry worker
has recorded that. `expire` does so for every map, for streams.
"""

import asyncio
import functools
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final, NamedTuple, TypeVar
from uuid import UUID

import asyncpg
import structlog
from cachetools import TTLCache

from voelgoed.db import Database
from voelgoed.events.refusals import EventNotFound
from voelgoed.holds import store
from voelgoed.holds.hotmap import AVAILABLE, CODES, HELD, STATUSES, HotMap, SeatChange, ZoneChange, milliseconds
from voelgoed.holds.model import Ask, Hold, HoldStatus, Outcome, SeatName, SeatStatus, Verdict
from voelgoed.holds.occupancy import Occupancy, occupancy_now, occupancy_of
from voelgoed.holds.projection import Projection
from voelgoed.ids import OrganizationId
from voelgoed.telemetry import metrics

log = structlog.get_logger(__name__)

LOADS_AT_ONCE: Final = 2
LOADS_WAITING_MAX: Final = 200
PENDING_MAX: Final = 200_000
"""Changes that are kept for a map while it is being loaded; beyond that it is loaded again."""
DESCRIBED_MAX: Final = 10_000
DESCRIBED_S: Final = 30.0
CLOCK_BACK_MS: Final = 5_000  # readings of PostgreSQL's clock differ by less; if by more, it was set back
MB: Final = 2**20
TIERS: Final = ("ets", "redis", "db")
"""Hot, warm and cold, as the metrics call them."""
T = TypeVar("T")


class Held(NamedTuple):
    """A seat that is looked up: whether it can be had, and whose hold is in the way for how long."""

    status: SeatStatus
    version: int
    hold_id: UUID | None
    user_id: UUID | None
    expires_in_s: int | None


class Described(NamedTuple):
    """A seat of an event as it stands on the plan."""

    ordinal: int
    zone_id: UUID
    name: SeatName
    category: str


@dataclass(slots=True, eq=False)
class _Load:
    """A map on its way. What changes meanwhile may be newer than what is being read, so it is kept and taken then."""

    organization_id: OrganizationId
    task: asyncio.Task[HotMap] | None = None
    seats: list[tuple[float, SeatChange]] = field(default_factory=list)
    zones: list[ZoneChange] = field(default_factory=list)
    is_outdated: bool = False


Watch = Callable[[HotMap, Sequence[int], Sequence[UUID]], None]
"""Who wants to know when a map has changed: which seats by ordinal, which zones by id. A new map comes with neither."""
Wish = Callable[[OrganizationId], bool]
"""Whether one who watches wants to know of all events of an organization, also of those that have no map here yet."""


class Availability:
    """One per process."""

    def __init__(
        self,
        db: Database,
        projection: Projection,
        *,
        bytes_max: int = 256 * MB,
        clock: Callable[[], float] = time.monotonic,
        expired_by: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._db, self._projection = db, projection
        self._bytes_max = bytes_max
        self._clock = clock
        self._expired_by = expired_by
        self._expired_ms = 0
        self._maps: OrderedDict[UUID, HotMap] = OrderedDict()
        self._loading: dict[UUID, _Load] = {}
        self._turn = asyncio.Semaphore(LOADS_AT_ONCE)
        self._watches: dict[Watch, Wish] = {}
        self._pinned: dict[UUID, int] = {}
        self._described: TTLCache[tuple[UUID, UUID, UUID], Described] = TTLCache(DESCRIBED_MAX, DESCRIBED_S)
        self.is_live: Callable[[], bool] = lambda: False
        """Whether what is committed elsewhere arrives here at this moment; whoever follows it says so."""

    # Reading

    async def map_of(self, organization_id: OrganizationId, event_id: UUID) -> HotMap:
        """The map of an event, as new as what is committed arrives here; loaded when there is none, or nothing arrives.

        Another organization's event is not there.
        """
        found = self.peek(event_id)
        if found is not None and self.is_live():
            if found.organization_id != organization_id:
                raise EventNotFound
            self._maps.move_to_end(event_id)
            metrics.HOLD_CACHE_LOOKUPS.labels("ets", "true").inc()
            return found
        metrics.HOLD_CACHE_LOOKUPS.labels("ets", "false").inc()
        loaded = await self.load(organization_id, event_id)
        metrics.HOLD_CACHE_LOOKUPS.labels("db", "true").inc()
        return loaded

    def peek(self, event_id: UUID) -> HotMap | None:
        """Return the map of an event if there is one, however old what it was told last."""
        found = self._maps.get(event_id)
        if found is not None:
            self._expire(found, milliseconds(self._expired_by()))
        return found

    async def occupancy(self, organization_id: OrganizationId, event_id: UUID) -> Occupancy:
        """How full an event is: from the map, else what somebody counted in the last seconds, else counted."""
        began = time.perf_counter()
        found = self.peek(event_id)
        if found is not None and found.organization_id == organization_id and self.is_live():
            return self._looked("ets", began, occupancy_now(found))
        expired_by = self._expired_by()
        warm = await self._projection.read_occupancy(organization_id, event_id, milliseconds(expired_by))
        if warm is not None:
            return self._looked("redis", began, warm)
        async with self._db.transaction(organization_id) as conn:
            zones, version, next_end_ms = await store.count_places(conn, organization_id, event_id, expired_by)
            epoch = await store.find_inventory_epoch(conn, organization_id, event_id)
        if not zones or epoch is None:
            raise EventNotFound
        counted = occupancy_of(event_id, epoch, version, zones, datetime.now(UTC))
        self._projection.keep_occupancy(organization_id, counted, next_end_ms)
        self._warm_up(organization_id, event_id)
        return self._looked("db", began, counted)

    async def look_up(self, organization_id: OrganizationId, event_id: UUID, seat_id: UUID) -> Held | None:
        """Whether a seat can be had: hot, then warm, then cold. None when there is no such seat."""
        began = time.perf_counter()
        found = self.peek(event_id)
        if found is not None and found.organization_id == organization_id and self.is_live():
            ordinal = found.ordinal_of(seat_id)
            if ordinal is not None:
                return self._looked("ets", began, self._held(found, ordinal))
        warm = await self._projection.read_hold(organization_id, event_id, seat_id)
        if warm is not None and warm.until_ms > milliseconds(self._expired_by()):
            left_s = max(0, int(warm.until_ms / 1_000 - time.time()))
            held = Held(SeatStatus.HELD, warm.version, warm.hold_id, warm.user_id, left_s)
            return self._looked("redis", began, held)
        async with self._db.transaction(organization_id) as conn:
            row = await store.get_seat(conn, organization_id, event_id, seat_id)
        if row is None:
            return None
        status = SeatStatus(row["status"])
        left = max(0, int((row["held_until"] - row["now"]).total_seconds())) if status is SeatStatus.HELD else None
        self._note(organization_id, event_id, seat_id, row)
        self._put_back(organization_id, event_id, seat_id, status, row)
        self._warm_up(organization_id, event_id)
        return self._looked("db", began, Held(status, row["version"], row["hold_id"], row["held_by"], left))

    async def describe(self, organization_id: OrganizationId, event_id: UUID, seat_id: UUID) -> Described | None:
        """What a seat is called and where it stands, which changes only when the event's places are made anew."""
        found = self._described.get((organization_id, event_id, seat_id))
        if found is None:
            async with self._db.transaction(organization_id) as conn:
                row = await store.get_seat(conn, organization_id, event_id, seat_id)
            found = self._note(organization_id, event_id, seat_id, row) if row else None
        return found

    # Refusing, and learning from what PostgreSQL says

    def refusal(self, ask: Ask) -> Verdict | None:
        """What PostgreSQL said of a seat within the last second, if that bars the ask; None when it must be asked."""
        if len(ask.items) != 1 or ask.key is not None or (seat_id := ask.items[0].seat_id) is None:
            return None  # a group is told of every seat of it, and a key may have been answered before
        found = self._maps.get(ask.event_id)
        if found is None or found.organization_id != ask.organization_id:
            return None
        if found.in_the_way(seat_id, ask.user_id, self._clock()) is None:
            return None  # most requests: they need not wait for holds to be expired in the map
        self._expire(found, milliseconds(self._expired_by()))
        way = found.in_the_way(seat_id, ask.user_id, self._clock())
        if way is None:
            return None
        metrics.HOLD_CACHE_LOOKUPS.labels("ets", "true").inc()
        status, until_ms = way
        if status == HELD and until_ms is not None:
            until = datetime.fromtimestamp(until_ms / 1_000, UTC)
            return Verdict(outcome=Outcome.SEAT_HELD, until=until, state="held")
        return Verdict(outcome=Outcome.SEAT_NOT_AVAILABLE, state=STATUSES[status].value)

    def learn(self, asks: Sequence[Ask], verdicts: Sequence[Sequence[Verdict]]) -> None:
        """What PostgreSQL has just said of an event: given holds and those in the way, before anybody tells it."""
        changes = [
            change
            for ask, told in zip(asks, verdicts, strict=True)
            for item, said in zip(ask.items, told, strict=True)
            if item.seat_id is not None and (change := _learned(item.seat_id, ask.user_id, said)) is not None
        ]
        organization_id, event_id = asks[0].organization_id, asks[0].event_id
        if event_id in self._maps or event_id in self._loading:
            self.take(event_id, changes, ())
        elif changes:  # somebody sells here: whoever comes next shall be refused without a word to PostgreSQL
            self.prefetch(organization_id, event_id)

    def given(self, ask: Ask, verdicts: Sequence[Verdict]) -> list[tuple[Hold, SeatName | None]] | None:
        """Holds that were just given, with what their seats are called, without asking for them again.

        None when this process does not know the event yet, or when one of them was there before.
        """
        found = self._maps.get(ask.event_id)
        if found is None or found.organization_id != ask.organization_id:
            return None
        now = found.database_now(self._clock())
        holds: list[tuple[Hold, SeatName | None]] = []
        for item, said in zip(ask.items, verdicts, strict=True):
            seat_id, until = item.seat_id, said.until
            ordinal = found.ordinal_of(seat_id) if seat_id else None
            if said.outcome is not Outcome.CREATED or until is None or said.hold_id is None:
                return None
            if seat_id and (ordinal is None or ordinal >= len(found.names)):
                return None
            zone_id = item.zone_id if ordinal is None else found.zone_id(ordinal)
            assert zone_id is not None
            hold = Hold(
                id=said.hold_id,
                organization_id=ask.organization_id,
                event_id=ask.event_id,
                zone_id=zone_id,
                seat_id=seat_id,
                user_id=ask.user_id,
                quantity=item.quantity,
                source=ask.source,
                cart_token=ask.cart_token,
                created_at=found.begun_at(until, now),
                initial_expires_at=until,
                expires_at=until,
                extended_count=0,
                status=HoldStatus.ACTIVE,
                ended_at=None,
                now=now,
            )
            holds.append((hold, None if ordinal is None else found.names[ordinal]))
        return holds

    def doubt(self, event_id: UUID, seat_ids: Iterable[UUID]) -> None:
        """Something was done to these seats here: ask PostgreSQL before anybody is refused one."""
        found = self._maps.get(event_id)
        if found is not None:
            found.doubt(seat_ids)

    # Following

    def take(self, event_id: UUID, seats: Sequence[SeatChange], zones: Sequence[ZoneChange]) -> list[int]:
        """Changes that were committed, in any order and any number of times; which seats have changed by them."""
        now = self._clock()
        if load := self._loading.get(event_id):
            load.seats.extend((now, change) for change in seats)
            load.zones.extend(zones)
            if len(load.seats) + len(load.zones) > PENDING_MAX:
                load.is_outdated = True
        found = self._maps.get(event_id)
        if found is None:
            return []
        changed = [ordinal for change in seats if (ordinal := found.take_seat(change, now)) is not None]
        moved = [change.zone_id for change in zones if found.take_zone(change)]
        if changed or moved:
            self._tell(found, changed, moved)
        self._expire(found, milliseconds(self._expired_by()))
        return changed

    def expire(self) -> None:
        """Show holds that have ended as over in every map. Reload those that show too many, if the clock went back."""
        before, self._expired_ms = self._expired_ms, milliseconds(self._expired_by())
        is_back = self._expired_ms < before - CLOCK_BACK_MS
        for event_id, found in list(self._maps.items()):
            if is_back and found.has_expired:
                self.reload(event_id)
            else:
                self._expire(found, self._expired_ms)

    def hear(self, organization_id: OrganizationId, event_id: UUID) -> None:
        """Something was committed of an event that may have no map here."""
        if event_id not in self._maps and any(wish(organization_id) for wish in self._watches.values()):
            self.prefetch(organization_id, event_id)

    def reload(self, event_id: UUID) -> None:
        """The places of an event have been made anew: what is known of them is worth nothing."""
        if load := self._loading.get(event_id):
            load.is_outdated = True
        self._described.clear()  # seats may stand elsewhere now; whose they were is not worth finding out
        found = self._maps.pop(event_id, None)
        if found is not None:
            self._measure()
            self.prefetch(found.organization_id, event_id)

    def reload_all(self) -> None:
        """Something may have been missed: believe nothing."""
        for event_id in {*self._maps, *self._loading}:
            self.reload(event_id)

    def prefetch(self, organization_id: OrganizationId, event_id: UUID) -> None:
        """Load a map behind everybody's back; nobody waits, and nobody hears of it when that fails."""
        if event_id not in self._loading and len(self._loading) < LOADS_WAITING_MAX:
            self._start(organization_id, event_id)

    def watch(self, watch: Watch, wish: Wish = lambda _: False) -> None:
        """Be told of changes of maps; and have the map of an event made that changes without one, if that is wished."""
        self._watches[watch] = wish

    def unwatch(self, watch: Watch) -> None:
        """Be told no more."""
        self._watches.pop(watch, None)

    def pin(self, event_id: UUID) -> Callable[[], None]:
        """Keep the map of an event while somebody looks at it, until the function that this returns is called."""
        self._pinned[event_id] = self._pinned.get(event_id, 0) + 1

        def unpin() -> None:
            self._pinned[event_id] -= 1
            if not self._pinned[event_id]:
                del self._pinned[event_id]

        return unpin

    async def close(self) -> None:
        """End what is being loaded."""
        tasks = [load.task for load in self._loading.values() if load.task]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def load(self, organization_id: OrganizationId, event_id: UUID) -> HotMap:
        """A map as PostgreSQL has it now, loaded once for all of an organization who ask meanwhile.

        What another organization finds says nothing to them.
        """
        while (load := self._loading.get(event_id)) and load.task and load.organization_id != organization_id:
            await asyncio.wait({load.task})
            await asyncio.sleep(0)  # until it is known to have ended
        load = load or self._start(organization_id, event_id)
        assert load.task is not None
        return await asyncio.shield(load.task)

    def _start(self, organization_id: OrganizationId, event_id: UUID) -> _Load:
        load = self._loading[event_id] = _Load(organization_id)
        load.task = asyncio.create_task(self._read(organization_id, event_id, load), name="map load")
        load.task.add_done_callback(functools.partial(self._loaded, event_id, load))
        return load

    def _loaded(self, event_id: UUID, load: _Load, task: asyncio.Task[HotMap]) -> None:
        if self._loading.get(event_id) is load:
            del self._loading[event_id]
        if not task.cancelled() and (failed := task.exception()) and not isinstance(failed, EventNotFound):
            log.warning("map_not_loaded", event_id=str(event_id), error=type(failed).__name__)

    async def _read(self, organization_id: OrganizationId, event_id: UUID, load: _Load) -> HotMap:
        async with self._turn:
            while True:
                load.is_outdated = False
                load.seats.clear()
                load.zones.clear()
                began, read_at = time.perf_counter(), self._clock()
                async with self._db.transaction(organization_id) as conn:
                    snapshot = await store.load_map(conn, organization_id, event_id)
                if snapshot is None:
                    if (known := self._maps.get(event_id)) and known.organization_id == organization_id:
                        del self._maps[event_id]
                    raise EventNotFound
                found = HotMap(snapshot, read_at=read_at)
                metrics.MAP_LOAD_SECONDS.observe(time.perf_counter() - began)
                if not load.is_outdated:
                    break
        for said_at, change in load.seats:
            found.take_seat(change, said_at)
        for moved in load.zones:
            found.take_zone(moved)
        found.expire(milliseconds(self._expired_by()))
        self._keep(found)
        self._tell(found, (), ())
        return found

    def _keep(self, found: HotMap) -> None:
        """Put a map into its place; those nobody has asked for longest make room, unless somebody looks at them."""
        self._maps[found.event_id] = found
        self._maps.move_to_end(found.event_id)
        total = sum(one.size_bytes for one in self._maps.values())
        for event_id in list(self._maps):
            if total <= self._bytes_max:
                break
            if event_id != found.event_id and event_id not in self._pinned:
                total -= self._maps.pop(event_id).size_bytes
        self._measure()

    def _measure(self) -> None:
        metrics.MAPS_KEPT.set(len(self._maps))
        metrics.MAP_BYTES.set(sum(one.size_bytes for one in self._maps.values()))

    def _expire(self, found: HotMap, expired_ms: int) -> None:
        if found.next_end_ms <= expired_ms:
            seats, zones = found.expire(expired_ms)
            if seats or zones:
                self._tell(found, seats, zones)

    def _tell(self, found: HotMap, changed: Sequence[int], moved: Sequence[UUID]) -> None:
        for watch in list(self._watches):
            watch(found, changed, moved)

    def _held(self, found: HotMap, ordinal: int) -> Held:
        status, holder = found.state_of(ordinal)
        version = found.versions[ordinal]
        if holder is None or status == AVAILABLE:
            return Held(STATUSES[status], version, None, None, None)
        left = max(0, (holder.until_ms - found.database_ms(self._clock())) // 1_000)
        return Held(STATUSES[status], version, holder.hold_id, holder.user_id, left)

    def _note(self, organization_id: OrganizationId, event_id: UUID, seat_id: UUID, row: asyncpg.Record) -> Described:
        """Remember what a seat is called: whoever asks for its state asks for that as well."""
        name = SeatName(row["zone_name"], row["row_label"], row["label"])
        found = Described(row["ordinal"], row["zone_id"], name, row["category"])
        self._described[organization_id, event_id, seat_id] = found
        return found

    def _put_back(
        self,
        organization_id: OrganizationId,
        event_id: UUID,
        seat_id: UUID,
        status: SeatStatus,
        row: asyncpg.Record,
    ) -> None:
        """What PostgreSQL says of a seat belongs into the tiers above it."""
        until = row["held_until"]
        if status is SeatStatus.HELD:
            change = _held_change(seat_id, row["version"], row["hold_id"], row["held_by"], until)
            self._projection.keep_hold(organization_id, event_id, row["ordinal"], change)
        elif until is not None:
            return  # lapsed: nothing new is known of it until somebody tidies it away
        else:
            change = SeatChange(seat_id=seat_id, version=row["version"], status=CODES[status.value])
        self.take(event_id, [change], ())

    def _warm_up(self, organization_id: OrganizationId, event_id: UUID) -> None:
        """Somebody looks here who had to ask PostgreSQL: the next one shall find a map, if it is kept up to date."""
        if event_id not in self._maps and self.is_live():
            self.prefetch(organization_id, event_id)

    def _looked(self, source: str, began: float, found: T) -> T:
        """Count a look-up by the tier that answered; those above it did not."""
        for tier in TIERS[: TIERS.index(source)]:
            metrics.HOLD_CACHE_LOOKUPS.labels(tier, "false").inc()
        metrics.HOLD_CACHE_LOOKUPS.labels(source, "true").inc()
        metrics.HOLD_CACHE_SECONDS.labels(source).observe(time.perf_counter() - began)
        return found


def _learned(seat_id: UUID, user_id: UUID, said: Verdict) -> SeatChange | None:
    """What was said to one item, as news of its seat."""
    if said.version is None:
        return None
    if said.outcome is Outcome.CREATED and said.until:
        return _held_change(seat_id, said.version, said.hold_id, user_id, said.until)
    if said.outcome is Outcome.SEAT_HELD and said.until:
        return _held_change(seat_id, said.version, None, said.holder, said.until)
    if said.outcome is Outcome.SEAT_NOT_AVAILABLE and said.state in CODES:
        return SeatChange(seat_id=seat_id, version=said.version, status=CODES[said.state])
    return None


def _held_change(
    seat_id: UUID, version: int, hold_id: UUID | None, user_id: UUID | None, until: datetime
) -> SeatChange:
    return SeatChange(
        seat_id=seat_id,
        version=version,
        status=HELD,
        hold_id=hold_id,
        user_id=user_id,
        until_ms=milliseconds(until),
    )
