"""How what is committed reaches every process and Redis: at least once, in any order, by the version of each place.

One worker at a time reads the journal, brings Redis up to date and tells the other processes, a message for each event
and batch, with a beat behind it that says from where to where in the journal the batch reached. A process that has
heard all of it goes on from there; one that has missed something, or hears nothing, reads the journal itself.
"""

import asyncio
import functools
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

import msgspec
import structlog

from voelgoed.db import Database
from voelgoed.errors import StartRefused
from voelgoed.events.refusals import EventNotFound
from voelgoed.holds import occupancy, store
from voelgoed.holds.availability import Availability
from voelgoed.holds.hotmap import AVAILABLE, BLOCKED, CODES, HELD, SOLD, HotMap, SeatChange, ZoneChange, milliseconds
from voelgoed.holds.projection import Projection
from voelgoed.ids import OrganizationId, new_id, read_id
from voelgoed.journal import reader
from voelgoed.journal.model import Position, RecordedFact
from voelgoed.loop import Loop
from voelgoed.redis import RedisAway, RedisLink, RedisRefused
from voelgoed.telemetry import metrics

log = structlog.get_logger(__name__)

READER: Final = "projection"
LEASE: Final = timedelta(seconds=2)
LEASE_AGAIN_S: Final = 0.5
PACE_S: Final = 0.05
BEAT_S: Final = 0.25
QUIET_S: Final = 0.6
"""A process that has heard nothing for so long reads the journal itself."""
LIVE_S: Final = 1.0
READS_PER_TICK_MAX: Final = 10
REBUILDS_S: Final = 0.2
"""How long a tick goes on making maps in Redis anew: what is committed meanwhile waits for it."""
MEND_AGAIN_S: Final = 0.5
"""How long a map that could not be made is left alone: each try loads all of it."""
EVENTS_MAX: Final = 5_000
HOLDS_MAX: Final = 200_000
CHANNELS: Final = "voelgoed:*seating"
BEATS: Final = "voelgoed:seating"
REBUILD: Final = "registry_rebuild"
"""The fact that makes everybody load an event's places anew; whoever finds them wrong records it."""
KINDS: Final = (
    "seat_reserved",
    "seat_hold_",
    "seat_sold",
    "seat_blocked",
    "seat_unblocked",
    "ticket_voided",
    "event_",
    REBUILD,
)
STATUS_AFTER: Final[Mapping[str, int]] = {
    "seat_reserved": HELD,
    "seat_hold_extended": HELD,
    "seat_hold_handed_over": HELD,
    "seat_hold_released": AVAILABLE,
    "seat_hold_expired": AVAILABLE,
    "seat_sold": SOLD,
    "ticket_voided": AVAILABLE,
    "seat_blocked": BLOCKED,
    "seat_unblocked": AVAILABLE,
}


@dataclass(slots=True)
class News:
    """What is new of an event: places that changed, or all of them."""

    organization_id: OrganizationId
    event_id: UUID
    seats: list[SeatChange] = field(default_factory=list)
    zones: list[ZoneChange] = field(default_factory=list)
    is_whole: bool = False


class SeatTold(msgspec.Struct, frozen=True, omit_defaults=True):
    """A seat in a message, in the words of the domain. It goes to our own processes only: it says who."""

    event: str
    change: SeatChange


class Totals(msgspec.Struct, frozen=True):
    """How full the event is after the changes of a message."""

    event: str
    total_available: int
    total_held: int
    total_sold: int
    percent_available: float
    percent_held: float
    timestamp: datetime


class Told(msgspec.Struct, frozen=True, tag="told", omit_defaults=True):
    """What one batch brought for one event."""

    database: str
    organization_id: UUID
    event_id: UUID
    seats: list[SeatTold] = []
    zones: list[ZoneChange] = []
    is_whole: bool = False
    occupancy: Totals | None = None
    until: tuple[int, int] | None = None
    """Where in the journal the batch ends: a message that was held up may be older than what has been read since."""


class Beat(msgspec.Struct, frozen=True, tag="beat"):
    """What lies behind: a stretch of the journal, and in how many messages it was told.

    `floor` is the epoch of the last recovery of Redis.
    """

    database: str
    after: tuple[int, int]
    until: tuple[int, int]
    told_count: int
    floor: int


_decode_message = msgspec.json.Decoder(Told | Beat)


def gather(facts: Iterable[RecordedFact]) -> dict[UUID, News]:
    """What facts say of events' places, by event, in their order."""
    found: dict[UUID, News] = {}
    for fact in facts:
        if fact.event_id is None:
            continue
        news = found.get(fact.event_id)
        if news is None:
            news = found[fact.event_id] = News(fact.organization_id, fact.event_id)
        if fact.seat_id is not None and fact.version is not None:
            news.seats.append(_seat_change(fact, fact.seat_id, fact.version))
        elif "zone_held" in fact.data:
            news.zones.append(_zone_change(fact))
        else:
            news.is_whole = True
    return found


def _seat_change(fact: RecordedFact, seat_id: UUID, version: int) -> SeatChange:
    data: Mapping[str, Any] = fact.data
    status = CODES.get(data.get("status", ""), STATUS_AFTER[fact.kind])
    return SeatChange(
        seat_id=seat_id,
        version=version,
        status=status,
        hold_id=_uuid(data.get("hold_id")),
        user_id=fact.actor_id if status == HELD else None,
        until_ms=_milliseconds(data.get("held_until")) if status == HELD else None,
        reason=data.get("reason"),
        at_ms=milliseconds(fact.recorded_at),
    )


def _zone_change(fact: RecordedFact) -> ZoneChange:
    data: Mapping[str, Any] = fact.data
    is_held = STATUS_AFTER[fact.kind] == HELD
    return ZoneChange(
        zone_id=read_id(data["zone_id"]),
        version=fact.version or 0,
        held=data["zone_held"],
        sold=data["zone_sold"],
        hold_id=_uuid(data.get("hold_id")),
        until_ms=_milliseconds(data.get("held_until")) if is_held else None,
        quantity=data.get("quantity", 0),
    )


def channel_of(organization_id: OrganizationId, event_id: UUID) -> str:
    """Where everything about an event's places is told."""
    return f"voelgoed:org:{organization_id}:event:{{{event_id}}}:seating"


class Follower:
    """One in each process that serves: hears what is committed, or reads it."""

    def __init__(
        self, db: Database, link: RedisLink, availability: Availability, projection: Projection, *, pace_s: float = 0.1
    ) -> None:
        self._db, self._link = db, link
        self._availability, self._projection = availability, projection
        self._database: str | None = None
        self._at: Position | None = None
        self._told_count = 0
        self._has_gap = True
        self._heard_at = self._confirmed_at = float("-inf")
        self._wake = asyncio.Event()
        self._loop = Loop(name="follow_places", tick=self.tick, pace_s=pace_s, wake=self._wake)
        self.reads_count = 0
        availability.is_live = lambda: self.is_live

    @property
    def is_live(self) -> bool:
        """Whether everything that was committed up to a second ago is known here."""
        return time.monotonic() - self._confirmed_at < LIVE_S

    async def run(self, stop: asyncio.Event) -> None:
        """Follow until asked to stop."""
        async with asyncio.TaskGroup() as running:
            running.create_task(self._link.follow(CHANNELS, self.hear, stop, on_gap=self._lost, is_pattern=True))
            running.create_task(self._loop.run(stop))

    async def tick(self) -> None:
        """Read the journal when nobody tells, or something told is missing."""
        self._wake.clear()
        if not self._has_gap and time.monotonic() - self._heard_at < QUIET_S:
            return
        self.reads_count += 1
        for _ in range(READS_PER_TICK_MAX):
            began = time.monotonic()
            async with self._db.system_transaction() as conn:
                if self._database is None:
                    self._database = await store.find_database(conn)
                if self._at is None:
                    self._at = await reader.start_position(conn)
                    self._availability.reload_all()  # what was read before that may have missed something since
                batch = await reader.read_kinds_after(conn, self._at, KINDS)
            for news in gather(batch.facts).values():
                self._take(news)
            self._at = max(self._at, batch.position)
            if batch.is_last:
                self._has_gap = False
                self._confirmed_at = began
                return
        self._wake.set()  # far behind: go on at once, after the others had a turn

    def hear(self, message: bytes) -> None:
        """Take a message of the one who tells; what is not for us, or is not one, is passed over."""
        try:
            told = _decode_message.decode(message)
        except msgspec.MsgspecError:
            log.warning("seating_message_broken")
            return
        if told.database != self._database:
            return
        if isinstance(told, Told):
            self._told_count += 1
            if told.until and self._at and Position(xid=told.until[0], seq=told.until[1]) <= self._at:
                return
            seats = [one.change for one in told.seats]
            self._take(News(OrganizationId(told.organization_id), told.event_id, seats, told.zones, told.is_whole))
            return
        heard, self._told_count = self._told_count, 0
        self._projection.believe(told.floor)
        self._heard_at = time.monotonic()
        after, until = (Position(xid=xid, seq=seq) for xid, seq in (told.after, told.until))
        if self._at is None or (self._at < until and (self._at < after or heard < told.told_count)):
            self._has_gap = True
            self._wake.set()
            return
        self._at = max(self._at, until)
        self._confirmed_at = self._heard_at

    def _lost(self) -> None:
        """The channel has been taken up, or taken up again: something may have been told to nobody."""
        self._has_gap = True
        self._told_count = 0
        self._wake.set()

    def _take(self, news: News) -> None:
        if news.is_whole:  # whoever loads it from here on sees all of these, and seats made anew begin anew to count
            self._availability.reload(news.event_id)
        else:
            self._availability.take(news.event_id, news.seats, news.zones)
        self._availability.hear(news.organization_id, news.event_id)


class Dispatcher:
    """One in each worker, of which one at a time tells: the journal to Redis and to the other processes."""

    def __init__(
        self,
        db: Database,
        availability: Availability,
        projection: Projection,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._db, self._availability, self._projection = db, availability, projection
        self._clock = clock
        self._me = new_id()
        self._database = ""
        self._leased_at = self._beat_at = float("-inf")
        self._at: Position | None = None
        self._floor: int | None = None
        self._run_id: str | None = None
        self._epochs: dict[UUID, int] = {}
        self._stale: dict[UUID, tuple[OrganizationId, str]] = {}
        self._mend_from = float("-inf")
        self._changed: dict[UUID, OrganizationId] = {}
        availability.is_live = lambda: self._at is not None  # it is told by this very object, or not at all

    async def tick(self) -> None:
        """Read what is new, tell it, and make a few maps in Redis anew that are not what they should be."""
        if not await self._is_mine():
            return
        for _ in range(READS_PER_TICK_MAX):
            assert self._at is not None
            after = self._at
            async with self._db.system_transaction() as conn:
                batch = await reader.read_kinds_after(conn, after, KINDS)
            news = gather(batch.facts)
            is_due = self._clock() - self._beat_at >= BEAT_S
            if news or is_due or batch.position > after:
                await self._tell(list(news.values()), after, batch.position)
            if batch.position > after:
                async with self._db.system_transaction() as conn:
                    await reader.save_position(conn, READER, batch.position)
                self._at = batch.position
            for fact in batch.facts[-1:]:
                metrics.PROJECTION_LAG_SECONDS.observe(
                    max(0.0, (datetime.now(fact.recorded_at.tzinfo) - fact.recorded_at).total_seconds())
                )
            if batch.is_last:
                break
        await self._mend()

    async def store_occupancy(self) -> int:
        """Write down how full those events are in which something has changed; how many."""
        changed, self._changed = self._changed, {}
        for event_id, organization_id in changed.items():
            try:
                found = self._availability.peek(event_id) or await self._availability.load(organization_id, event_id)
                await occupancy.remember(self._db, organization_id, occupancy.occupancy_now(found))
            except EventNotFound:
                continue
            except Exception as failed:  # noqa: BLE001 - one that cannot be written does not keep the others
                self._changed[event_id] = organization_id
                log.warning("occupancy_not_stored", event_id=str(event_id), error=type(failed).__name__)
        return len(changed)

    async def _is_mine(self) -> bool:
        """Whether this is the worker that tells.

        Who has just become it starts from where the last one stopped, and believes nothing that stands in Redis.
        """
        now = self._clock()
        if now - self._leased_at < LEASE_AGAIN_S:
            return True
        async with self._db.system_transaction() as conn:
            if not await store.take_lease(conn, READER, self._me, LEASE):
                self._at = None
                return False
            self._leased_at = now
            if self._at is None:
                self._database = await store.find_database(conn)
                try:
                    place = await reader.load_position(conn, READER)
                except StartRefused as ahead:  # a restored dump: what Redis has is made anew anyway
                    log.warning("projection_begins_anew", reason=str(ahead))
                    place = None
                self._at = place or await reader.start_position(conn)
                self._floor = None
                self._availability.reload_all()  # another told meanwhile, and not to this process
        return True

    async def _tell(self, news: Sequence[News], after: Position, until: Position) -> None:
        """Bring the maps here, Redis, and the other processes up to date, in this order. Redis may be away."""
        messages = [(channel_of(one.organization_id, one.event_id), await self._take(one, until)) for one in news]
        try:
            floor = await self._recovered()
            beat = Beat(
                database=self._database,
                after=(after.xid, after.seq),
                until=(until.xid, until.seq),
                told_count=len(messages),
                floor=floor,
            )
            told = [(channel, msgspec.json.encode(message)) for channel, message in messages]
            await self._projection.publish([*told, (BEATS, msgspec.json.encode(beat))])
        except RedisAway:
            self._run_id = None  # whatever comes back may be anything
        self._beat_at = self._clock()

    async def _take(self, news: News, until: Position) -> Told:
        """Bring this process's map of an event and then Redis up to date; what is told of it."""
        self._changed[news.event_id] = news.organization_id
        found = None if news.is_whole else self._availability.peek(news.event_id)
        if found is None:
            self._availability.reload(news.event_id)
            self._stale.setdefault(news.event_id, (news.organization_id, "changed"))
        else:
            self._availability.take(news.event_id, news.seats, news.zones)
            await self._project(found, news)
        return Told(
            database=self._database,
            organization_id=news.organization_id,
            event_id=news.event_id,
            seats=[SeatTold(event=change.news, change=change) for change in news.seats],
            zones=news.zones,
            is_whole=news.is_whole,
            occupancy=_totals(found) if found else None,
            until=(until.xid, until.seq),
        )

    async def _project(self, found: HotMap, news: News) -> None:
        if news.event_id in self._stale or self._run_id is None:
            return
        epoch = self._epochs.get(news.event_id)
        if epoch is None:
            self._stale[news.event_id] = news.organization_id, "unknown"
            return
        seats = [
            (ordinal, change) for change in news.seats if (ordinal := found.ordinal_of(change.seat_id)) is not None
        ]
        now_ms = found.database_ms(time.monotonic())
        try:
            if not await self._projection.apply(found, epoch, now_ms, seats, news.zones):
                self._stale[news.event_id] = news.organization_id, "lost"
        except RedisRefused:
            self._stale[news.event_id] = news.organization_id, "broken"
        except RedisAway:
            self._run_id = None

    async def _recovered(self) -> int:
        """The epoch of the last recovery: a new one when Redis is another than the one that was written to."""
        run_id = await self._projection.run_id()
        if self._floor is None or run_id != self._run_id:
            async with self._db.system_transaction() as conn:
                self._floor = await store.next_projection_epoch(conn)
                events = await store.list_materialised(conn, EVENTS_MAX)
            self._epochs.clear()
            self._stale = {event_id: (organization_id, "recovery") for organization_id, event_id in events}
            self._run_id = run_id
            self._projection.believe(self._floor)
            log.info("projection_begins", epoch=self._floor, events=len(events))
        return self._floor

    async def _mend(self) -> None:
        """Make maps in Redis anew, as many as there is time for."""
        now = self._clock()
        until = now + REBUILDS_S
        if now < self._mend_from:
            return
        while self._stale and self._run_id is not None and self._clock() < until:
            event_id = next(iter(self._stale))
            organization_id, why = self._stale.pop(event_id)
            try:
                await self._rebuild(organization_id, event_id, why)
            except RedisRefused as refused:  # Redis is there: the others stay as they are, this one comes again
                self._stale[event_id] = organization_id, why
                self._mend_from = self._clock() + MEND_AGAIN_S
                log.warning("projection_refused", event_id=str(event_id), reason=str(refused))
                return
            except RedisAway:
                self._run_id = None
                self._stale[event_id] = organization_id, why
            except Exception:  # whatever it is, what stands in Redis is not what it should be
                self._stale[event_id] = organization_id, why
                self._mend_from = self._clock() + MEND_AGAIN_S
                raise

    async def _rebuild(self, organization_id: OrganizationId, event_id: UUID, why: str) -> None:
        try:
            found = await self._availability.load(organization_id, event_id)
        except EventNotFound:
            self._epochs.pop(event_id, None)
            await self._projection.remove(organization_id, event_id)
            return
        async with self._db.transaction(organization_id) as conn:
            holds = await store.list_active_holds(conn, organization_id, event_id, HOLDS_MAX)
        async with self._db.system_transaction() as conn:
            epoch = await store.next_projection_epoch(conn)
        await self._projection.rebuild(found, epoch, holds)
        self._epochs[event_id] = epoch
        metrics.PROJECTION_REBUILDS.labels(why).inc()
        log.info("cache_rebuilt", org_id=str(organization_id), event_id=str(event_id), epoch=epoch, reason=why)


def _totals(found: HotMap) -> Totals:
    now = occupancy.occupancy_now(found)
    return Totals(
        event="occupancy_changed",
        total_available=now.available,
        total_held=now.held,
        total_sold=now.sold,
        percent_available=now.percent_available,
        percent_held=now.percent_held,
        timestamp=now.timestamp,
    )


def _uuid(value: object) -> UUID | None:
    return read_id(str(value)) if value else None


@functools.lru_cache(maxsize=16)  # all holds of a batch end at one moment
def _milliseconds(value: object) -> int | None:
    return milliseconds(datetime.fromisoformat(str(value))) if value else None
