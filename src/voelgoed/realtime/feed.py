"""The organization's feed: every committed change of its events, venues and gates, to whoever of its people watches.

The journal is the source, so nothing is lost and the place of a frame in it is where a client goes on. A message from
Redis only says that there is something to read; without Redis it is read a moment later.

How full events are is told beside it, counted from the maps that this process keeps of them: such a frame has no place,
and whoever misses one has the next.
"""

import asyncio
from collections.abc import Iterable
from typing import Final
from uuid import UUID

import msgspec
import structlog

from voelgoed.db import Conn, Database
from voelgoed.errors import DomainError, Kind
from voelgoed.events.catalogue import TOPICS
from voelgoed.holds.availability import Availability
from voelgoed.holds.hotmap import HotMap
from voelgoed.holds.occupancy import occupancy_now
from voelgoed.ids import OrganizationId
from voelgoed.journal import reader
from voelgoed.journal.model import Position, RecordedFact
from voelgoed.loop import Loop
from voelgoed.redis import RedisLink
from voelgoed.telemetry import metrics

log = structlog.get_logger(__name__)

PACE_S: Final = 0.25
OCCUPANCY_S: Final = 1.0
KINDS: Final = ("event_", "venue_", "gate_", "layout_", "seating_policy_", "pricing_")
TOLD: Final = (
    "event_id",
    "venue_id",
    "gate_id",
    "layout_id",
    "pricing_rule_id",
    "verb",
    "old_status",
    "new_status",
    "rescheduled_at",
    "replaced_by_event_id",
)
"""What of a fact everybody may know who may see events; who did it and why is for those who may read the journal."""
COUNTED: Final = ("event_id", "epoch", "map_version", "total", "available", "held", "sold", "blocked")
WATCHERS_MAX: Final = 2_000
WATCHERS_PER_ACTOR_MAX: Final = 10
FRAMES_WAITING_MAX: Final = 500
BACKLOG_READS_MAX: Final = 5
READS_PER_TICK_MAX: Final = 10


class TooManyStreams(DomainError):
    """Somebody, or everybody, has too many streams open."""

    kind = Kind.LIMITED
    code = "too_many_streams"
    message = "Too many streams are open. Close one, or come back in a moment."


class Watcher:
    """One open stream: the frames that wait for it. It is told to start over when it cannot keep up."""

    def __init__(self, organization_id: OrganizationId, actor_id: UUID) -> None:
        self.organization_id = organization_id
        self.actor_id = actor_id
        self.is_begun = False
        self.is_ended = False
        self._frames: asyncio.Queue[bytes] = asyncio.Queue(FRAMES_WAITING_MAX)

    def give(self, frame: bytes, at: Position | None = None) -> None:
        """Add a frame. Whoever is too slow for that loses those that wait, and is told so, and to where."""
        if self.is_ended:
            return
        if self._frames.full():
            while not self._frames.empty():
                self._frames.get_nowait()
            frame = _frame("resync", b"{}", at)
            self.is_ended = True
            metrics.FEED_DROPPED.inc()
        self._frames.put_nowait(frame)

    def end(self) -> None:
        """Say good-bye; nothing follows."""
        self.give(_frame("bye", b"{}"))
        self.is_ended = True

    async def next_frame(self) -> bytes | None:
        """The next frame, whenever it comes; None after the last one."""
        if self.is_ended and self._frames.empty():
            return None
        return await self._frames.get()


class Feed:
    """One per process. It reads the journal only while somebody watches."""

    def __init__(self, db: Database, link: RedisLink, availability: Availability, *, pace_s: float = PACE_S) -> None:
        self._db, self._link, self._availability = db, link, availability
        self._watchers: set[Watcher] = set()
        self._at: Position | None = None
        self._reading = asyncio.Lock()
        self._wake = asyncio.Event()
        self._is_closed = False
        self._followers_count = 0
        self._moved: dict[UUID, HotMap] = {}
        self._counting: asyncio.TimerHandle | None = None
        self._loop = Loop(name="organization_feed", tick=self._tick, pace_s=pace_s, wake=self._wake)

    async def run(self, stop: asyncio.Event) -> None:
        """Follow the journal until asked to stop; with the last who follows it every stream is told and ended."""
        self._is_closed = False
        self._followers_count += 1
        self._availability.watch(self._note, self._is_watched)
        async with asyncio.TaskGroup() as running:
            running.create_task(self._link.follow(TOPICS, lambda _: self._wake.set(), stop, is_pattern=True))
            running.create_task(self._loop.run(stop))
            await stop.wait()
            self._followers_count -= 1
            if self._followers_count == 0:
                self._is_closed = True
                self._availability.unwatch(self._note)
                for watcher in self._watchers:
                    watcher.end()

    async def open(self, organization_id: OrganizationId, actor_id: UUID, *, after: Position | None = None) -> Watcher:
        """A stream that begins now, or after the last frame that a client had. Whoever opens it closes it."""
        mine = sum(watcher.actor_id == actor_id for watcher in self._watchers)
        if self._is_closed or len(self._watchers) >= WATCHERS_MAX or mine >= WATCHERS_PER_ACTOR_MAX:
            raise TooManyStreams(retry_after_s=5)
        watcher = Watcher(organization_id, actor_id)
        self._watchers.add(watcher)  # before the first await: the limits count it
        metrics.FEED_WATCHERS.inc()
        try:
            await self._begin(watcher, after)
        except BaseException:
            self.close(watcher)
            raise
        return watcher

    def close(self, watcher: Watcher) -> None:
        """Forget a stream."""
        self._watchers.remove(watcher)
        metrics.FEED_WATCHERS.dec()
        if not self._watchers:
            self._at = None  # nobody watches: whoever comes next begins at their own now

    async def _begin(self, watcher: Watcher, after: Position | None) -> None:
        """Say hello, and what was missed. No tick runs meanwhile, so that nothing is told twice or not at all."""
        async with self._reading:
            async with self._db.system_transaction() as conn:
                now = self._at = self._at or await reader.start_position(conn)
                missed = await _read_between(conn, watcher.organization_id, after, now) if after else []
            # A client that is cut off among what it missed must come back to where it was: the greeting's place.
            watcher.give(_frame("hello", b"{}", after if missed else now))
            if missed is None:
                watcher.give(_frame("resync", b"{}", now))
            for fact in missed or ():
                watcher.give(_frame_of(fact))
            watcher.is_begun = True

    async def _tick(self) -> None:
        """Hand out what has been committed since the last time."""
        self._wake.clear()
        for _ in range(READS_PER_TICK_MAX):
            async with self._reading:
                at = self._at
                if at is None:
                    return
                async with self._db.system_transaction() as conn:
                    batch = await reader.read_kinds_after(conn, at, KINDS)
                if self._at == at:  # not reset by the last one's leaving
                    self._at = batch.position
                    self._hand_out(batch.facts)
            if batch.is_last:
                return

    def _is_watched(self, organization_id: OrganizationId) -> bool:
        return any(watcher.organization_id == organization_id for watcher in self._watchers)

    def _note(self, found: HotMap, *_: object) -> None:
        """An event's places have changed: it is counted soon, once for all that changes until then."""
        if not self._is_watched(found.organization_id):
            return
        self._moved[found.event_id] = found
        if self._counting is None:
            self._counting = asyncio.get_running_loop().call_later(OCCUPANCY_S, self._count)

    def _count(self) -> None:
        moved, self._moved, self._counting = self._moved, {}, None
        for found in moved.values():
            counted = occupancy_now(found)
            frame = _frame("occupancy", msgspec.json.encode({name: getattr(counted, name) for name in COUNTED}))
            for watcher in self._watchers:
                if watcher.is_begun and watcher.organization_id == found.organization_id:
                    watcher.give(frame)

    def _hand_out(self, facts: Iterable[RecordedFact]) -> None:
        watchers = [watcher for watcher in self._watchers if watcher.is_begun]
        watched = {watcher.organization_id for watcher in watchers}
        for fact in facts:
            if fact.organization_id in watched:
                frame = _frame_of(fact)  # once for everybody
                for watcher in watchers:
                    if watcher.organization_id == fact.organization_id:
                        watcher.give(frame, fact.position)


def position_of(event_id: str) -> Position | None:
    """The place that a frame's id names; None when it is not one of ours."""
    xid, _, seq = event_id.partition("-")
    if not (xid.isascii() and xid.isdigit() and seq.isascii() and seq.isdigit() and len(event_id) <= 40):  # noqa: PLR2004
        return None
    position = Position(xid=int(xid), seq=int(seq))
    return position if position.xid < 1 << 63 and position.seq < 1 << 63 else None


async def _read_between(
    conn: Conn, organization_id: OrganizationId, after: Position, until: Position
) -> list[RecordedFact] | None:
    """What was committed between two places; None when it is too much, or the first is not behind the second."""
    if after > until:  # from another database, or from before a restore
        return None
    found: list[RecordedFact] = []
    for _ in range(BACKLOG_READS_MAX):
        batch = await reader.read_kinds_after(conn, after, KINDS, organization_id)
        found += [fact for fact in batch.facts if fact.position <= until]
        if len(found) >= FRAMES_WAITING_MAX:
            return None
        if batch.is_last or batch.position >= until:
            return found
        after = batch.position
    return None


def _frame_of(fact: RecordedFact) -> bytes:
    told = {name: fact.data[name] for name in TOLD if name in fact.data}
    data = {"kind": fact.kind, "version": fact.version, "recorded_at": fact.recorded_at, **told}
    return _frame(fact.kind, msgspec.json.encode(data), fact.position)


def _frame(name: str, data: bytes, at: Position | None = None) -> bytes:
    """One event of the stream; JSON has no line breaks, so it is one line of data."""
    place = b"id: %d-%d\n" % (at.xid, at.seq) if at else b""
    return b"%sevent: %s\ndata: %s\n\n" % (place, name.encode(), data)
