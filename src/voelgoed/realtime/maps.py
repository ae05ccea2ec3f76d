"""Live maps: whoever looks at an event's places is told what becomes of them, each change once, none older than shown.

The first frame is the whole map, taken in the same turn of the loop in which the viewer is entered; what follows are
changes, gathered for a moment, encoded once and written to every viewer's line. Frames carry no person and no hold. The
map's version is the same number in every process, so a viewer may come back to any of them.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, Protocol, TypeVar
from uuid import UUID

import msgspec
import structlog

from voelgoed.events.catalogue import Catalogue, Now
from voelgoed.events.refusals import EventNotFound
from voelgoed.holds.availability import Availability
from voelgoed.holds.hotmap import HotMap
from voelgoed.ids import OrganizationId
from voelgoed.network import CONNECTIONS, network_of
from voelgoed.realtime.feed import TooManyStreams
from voelgoed.telemetry import metrics

log = structlog.get_logger(__name__)

VIEWERS_MAX: Final = 10_000
VIEWERS_PER_USER_MAX: Final = 10
FRAMES_PER_S: Final = 10.0
WRITES_PER_S: Final = 10_000.0
"""What a process can write in a second to all viewers of an event; with more of them frames come less often."""
UNREAD_BYTES_MAX: Final = 256 * 1024
OCCUPANCY_S: Final = 1.0
HEARTBEAT_S: Final = 15.0
EXPIRE_S: Final = 0.2  # streams show the end of a hold at most this late; a read shows it at once
TEND_S: Final = 1.0
"""How long a map that was lost, or a status that could not be read, stays so before it is asked for again."""
BEATS_PER_STAY: Final = 4
STAYS_AT_ONCE: Final = 100
LOADS_MAX: Final = 2
"""To catch up with a viewer: the first load may be one that had begun before what they have seen was committed."""
WRITES_PER_TURN: Final = 200
PIECE: Final = 1_000
HEARTBEAT: Final = b": still here\n\n"
BYE: Final = b"event: bye\ndata: {}\n\n"
RETRY: Final = b"retry: 1500\n\n"
T = TypeVar("T")


class Pipe(Protocol):
    """The line to a viewer."""

    def write(self, data: bytes) -> None: ...

    def finish(self) -> None: ...

    def drop(self) -> None: ...

    @property
    def is_open(self) -> bool: ...

    @property
    def unsent_bytes(self) -> int: ...

    async def until_gone(self) -> None: ...


class At(NamedTuple):
    """Which map somebody has. Two processes may have come to one version by different changes: the print tells."""

    epoch: int
    version: int
    print: int

    @classmethod
    def of(cls, found: HotMap) -> "At":
        return cls(found.epoch, found.map_version, found.print())

    @property
    def written(self) -> bytes:
        """As frames and answers name it, and `seen_of` reads it."""
        return b"%d:%d:%d" % self

    def may_be_ahead(self, other: "At") -> bool:
        """Whether this may have something that the other lacks."""
        return self != other and self[:2] >= other[:2]


@dataclass(slots=True, eq=False)
class Viewer:
    """Somebody who looks at a map."""

    pipe: Pipe
    user_id: UUID | None
    network: str | None
    stay: Callable[[], Awaitable[object]] | None
    """To look is to be there: the session does not end of idleness meanwhile."""
    at: At | None = None
    """What they were shown: nobody is shown the same twice."""


@dataclass(slots=True, eq=False)
class Scene:
    """An event that somebody looks at, and what has changed of it since the last frame."""

    organization_id: OrganizationId
    event_id: UUID
    unpin: Callable[[], None]
    map: HotMap
    now: Now
    viewers: set[Viewer] = field(default_factory=set)
    seats: set[int] = field(default_factory=set)
    zones: set[UUID] = field(default_factory=set)
    is_new: bool = False
    is_doubted: bool = False
    """Whether the event itself may have changed since it was read."""
    told_at: float = float("-inf")
    counted_at: float = float("-inf")
    is_counted: bool = True
    due_at: float = float("inf")
    timer: asyncio.TimerHandle | None = None
    telling: asyncio.Task[None] | None = None
    looking: asyncio.Task[None] | None = None

    @property
    def has_news(self) -> bool:
        return bool(self.seats or self.zones) or self.is_new


class Maps:
    """One per process."""

    def __init__(self, availability: Availability, catalogue: Catalogue, *, viewers_per_network_max: int) -> None:
        self._availability, self._catalogue = availability, catalogue
        self._per_network_max = viewers_per_network_max
        self._scenes: dict[UUID, Scene] = {}
        self._by_user: Counter[UUID] = Counter()
        self._by_network: Counter[str] = Counter()
        self._count = 0
        self._beats = 0
        self._beat_at = self._tended_at = float("-inf")
        self._runners = 0
        self._is_closed = False
        self._staying: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[Any]] = set()

    @property
    def viewers_count(self) -> int:
        return self._count

    async def run(self, stop: asyncio.Event) -> None:
        """Follow changes and expired holds of maps, and send heartbeats, until `stop`; the last runner ends streams."""
        self._is_closed = False
        self._beat_at = self._tended_at = time.monotonic()
        self._runners += 1
        self._availability.watch(self._changed)
        try:
            while not stop.is_set():
                try:
                    await asyncio.wait_for(stop.wait(), min(EXPIRE_S, TEND_S, HEARTBEAT_S))
                except TimeoutError:
                    self._availability.expire()
                    await self._tend()
        finally:
            self._runners -= 1
            if not self._runners:
                self._availability.unwatch(self._changed)
                self.close()

    async def _tend(self) -> None:
        """Ask again for what could not be read, and show a sign of life when it is time."""
        if time.monotonic() - self._tended_at >= TEND_S:
            self._tended_at = time.monotonic()
            for scene in tuple(self._scenes.values()):
                if scene.is_doubted or self._availability.peek(scene.event_id) is None:
                    self._doubt(scene)
        if time.monotonic() - self._beat_at >= HEARTBEAT_S:
            self._beat_at = time.monotonic()
            await self._beat()

    async def _beat(self) -> None:
        """A sign of life to everybody, and from everybody to their sessions."""
        viewers = [viewer for scene in self._scenes.values() for viewer in scene.viewers]
        await self._write_all(viewers, HEARTBEAT)
        self._beats += 1
        if self._beats % BEATS_PER_STAY == 0 and (self._staying is None or self._staying.done()):
            self._staying = self._start(self._stay(viewers))  # PostgreSQL may be slow: signs of life go on

    async def _stay(self, viewers: Sequence[Viewer]) -> None:
        stays = [viewer.stay for viewer in viewers if viewer.stay is not None]
        for start in range(0, len(stays), STAYS_AT_ONCE):
            some = (stay() for stay in stays[start : start + STAYS_AT_ONCE])
            failed = [one for one in await asyncio.gather(*some, return_exceptions=True) if isinstance(one, Exception)]
            if failed:  # later, then
                log.warning("sessions_not_kept", count=len(failed), error=type(failed[0]).__name__)

    def close(self) -> None:
        """Tell everybody, and let them go."""
        self._is_closed = True
        for scene in tuple(self._scenes.values()):
            for viewer in tuple(scene.viewers):
                viewer.pipe.write(BYE)
                viewer.pipe.finish()
        for task in self._tasks:
            task.cancel()

    async def show(
        self,
        pipe: Pipe,
        organization_id: OrganizationId,
        event_id: UUID,
        *,
        user_id: UUID | None,
        ip: str | None,
        seen: At | None,
        begin: Callable[[], None],
        stay: Callable[[], Awaitable[object]] | None = None,
    ) -> None:
        """Show an event's map until the viewer leaves. `seen` is which one they have already."""
        viewer = Viewer(pipe, user_id, network_of(ip, CONNECTIONS), stay)
        self._require_room(viewer)
        self._enter(viewer)
        try:
            scene = await self._scene(organization_id, event_id, seen)
            scene.viewers.add(viewer)
            try:
                begin()
                viewer.at = At.of(scene.map)
                pipe.write(RETRY + self._first(scene, viewer.at, seen))
                await pipe.until_gone()
            finally:
                scene.viewers.discard(viewer)
                if not scene.viewers:
                    self._forget(scene)
        finally:
            self._leave(viewer)

    def _require_room(self, viewer: Viewer) -> None:
        user_id, network = viewer.user_id, viewer.network
        is_full = self._is_closed or self._count >= VIEWERS_MAX
        is_greedy = user_id is not None and self._by_user[user_id] >= VIEWERS_PER_USER_MAX
        is_crowd = network is not None and 0 < self._per_network_max <= self._by_network[network]
        if is_full or is_greedy or is_crowd:
            raise TooManyStreams(retry_after_s=5)

    def _enter(self, viewer: Viewer) -> None:
        self._count += 1
        metrics.MAP_VIEWERS.inc()
        if viewer.user_id is not None:
            self._by_user[viewer.user_id] += 1
        if viewer.network is not None:
            self._by_network[viewer.network] += 1

    def _leave(self, viewer: Viewer) -> None:
        self._count -= 1
        metrics.MAP_VIEWERS.dec()
        _subtract(self._by_user, viewer.user_id)
        _subtract(self._by_network, viewer.network)

    async def _scene(self, organization_id: OrganizationId, event_id: UUID, seen: At | None) -> Scene:
        """The event as it is now, and at least as new as the viewer has it: who was elsewhere may be ahead of us."""
        found = await self._availability.map_of(organization_id, event_id)
        for _ in range(LOADS_MAX):
            if seen is None or not seen.may_be_ahead(At.of(found)):
                break
            found = await self._availability.load(organization_id, event_id)
        known = self._scenes.get(event_id)  # then its status is: a crowd that comes back costs no query each
        now = known.now if known else await self._catalogue.status_now(organization_id, event_id)
        if self._is_closed:  # meanwhile, and everybody has been told
            raise TooManyStreams(retry_after_s=5)
        scene = self._scenes.get(event_id)
        if scene is None:
            found = self._availability.peek(event_id) or found  # another may have been loaded meanwhile
            unpin = self._availability.pin(event_id)
            scene = self._scenes[event_id] = Scene(organization_id, event_id, unpin, found, now)
        return scene

    def _forget(self, scene: Scene) -> None:
        if self._scenes.get(scene.event_id) is scene:
            del self._scenes[scene.event_id]
            scene.unpin()
            if scene.timer:
                scene.timer.cancel()

    def _first(self, scene: Scene, at: At, seen: At | None) -> bytes:
        """The whole map, unless the viewer has exactly this one. What is not newer than theirs is to replace it."""
        status = _status(scene)
        if seen == at:
            return status
        resync = _resync(scene) if seen is not None and seen.may_be_ahead(at) else b""
        return status + resync + _snapshot(scene.map, at)

    def _changed(self, found: HotMap, seats: Sequence[int], zones: Sequence[UUID]) -> None:
        """Remember what was committed or has expired, and send it soon."""
        scene = self._scenes.get(found.event_id)
        if scene is None:
            return
        if found is not scene.map:
            self._replace(scene, found)
        if not seats and not zones:  # another map: it may be the event that was changed
            self._doubt(scene)
        scene.seats.update(seats)
        scene.zones.update(zones)
        scene.zones.update(found.zone_id(ordinal) for ordinal in seats)
        if scene.has_news:
            scene.is_counted = False
            self._soon(scene)

    def _replace(self, scene: Scene, found: HotMap) -> None:
        """Go on with a map that was loaded again: what differs is news, and all of it if it cannot be told as such."""
        shown, scene.map = scene.map, found
        is_like = (found.epoch, len(found), _zone_ids(found)) == (shown.epoch, len(shown), _zone_ids(shown))
        if not is_like or found.map_version < shown.map_version:
            scene.is_new = True
            return
        seats = _different(found.versions, shown.versions) | _different(found.statuses, shown.statuses)
        zones = {one.zone_id for one, other in zip(found.zones, shown.zones, strict=True) if one != other}
        if found.map_version > shown.map_version:
            scene.seats |= seats
            scene.zones |= zones
        elif seats or zones:
            scene.is_new = True

    def _soon(self, scene: Scene) -> None:
        """A frame when one is due: at once, if the last was long ago, and less often the more are looking."""
        if scene.telling is not None or not scene.viewers:
            return
        if scene.has_news:
            per_s = min(FRAMES_PER_S, max(1.0, WRITES_PER_S / len(scene.viewers)))
            due_at = scene.told_at + 1 / per_s
        elif not scene.is_counted:  # the last word on how full it is
            due_at = scene.counted_at + OCCUPANCY_S
        else:
            return
        if scene.timer is not None:
            if scene.due_at == due_at:
                return
            scene.timer.cancel()
        scene.due_at = due_at
        wait_s = max(0.0, due_at - time.monotonic())
        scene.timer = asyncio.get_running_loop().call_later(wait_s, self._due, scene)

    def _due(self, scene: Scene) -> None:
        """Say what is new to those who are there now; whoever comes while that is written has it already."""
        scene.timer = None
        now, at, places, counts = time.monotonic(), None, b"", b""
        if scene.has_news:
            scene.told_at, at = now, At.of(scene.map)
            places = self._next(scene, at)
        if not scene.is_counted and now - scene.counted_at >= OCCUPANCY_S:
            scene.counted_at, scene.is_counted = now, True
            counts = _frame("occupancy", _occupancy(scene.map))
        scene.telling = self._start(self._tell(scene, tuple(scene.viewers), places, at, counts))

    async def _tell(self, scene: Scene, viewers: Sequence[Viewer], places: bytes, at: At | None, counts: bytes) -> None:
        try:
            await self._write_all(viewers, places, at, counts)
        finally:
            scene.telling = None
        self._soon(scene)

    def _next(self, scene: Scene, at: At) -> bytes:
        """What has changed since the last frame, or the whole map where that was made anew."""
        found, is_new = scene.map, scene.is_new
        ordinals = sorted(scene.seats)
        zones = [_counts(zone) for zone in found.zones if zone.zone_id in scene.zones]
        scene.is_new = False
        scene.seats.clear()
        scene.zones.clear()
        if is_new:
            return _resync(scene) + _snapshot(found, at)
        data = {
            "map_version": found.map_version,
            "seats": ordinals,
            "statuses": "".join([str(found.statuses[ordinal]) for ordinal in ordinals]),
            "zones": zones,
        }
        return _frame("delta", data, at)

    async def _write_all(
        self, viewers: Sequence[Viewer], frame: bytes, at: At | None = None, more: bytes = b""
    ) -> None:
        """To everybody, some at a time: sales go on in between. Who does not read is let go, and may come again.

        Who has the map `at` already is given only what is besides it.
        """
        both, written_count = frame + more, 0
        for number, viewer in enumerate(viewers, 1):
            data = more if at is not None and viewer.at == at else both
            if not data or not viewer.pipe.is_open:
                continue
            if viewer.pipe.unsent_bytes > UNREAD_BYTES_MAX:
                metrics.MAP_VIEWERS_DROPPED.inc()
                viewer.pipe.drop()
                continue
            viewer.pipe.write(data)
            viewer.at = at or viewer.at
            written_count += 1
            if number % WRITES_PER_TURN == 0:
                await asyncio.sleep(0)
        metrics.MAP_FRAMES.inc(written_count)

    def _doubt(self, scene: Scene) -> None:
        """The event itself may have changed: look, one look at a time."""
        scene.is_doubted = True
        if scene.looking is None:
            scene.looking = self._start(self._look_again(scene))

    async def _look_again(self, scene: Scene) -> None:
        """Say what the event is now, and have its map; who may not see it any more is let go."""
        try:
            while scene.is_doubted and scene.viewers:
                scene.is_doubted = False
                now = await self._catalogue.status_now(scene.organization_id, scene.event_id)
                if now != scene.now:
                    scene.now = now
                    await self._write_all(tuple(scene.viewers), _status(scene))
                if self._availability.peek(scene.event_id) is None:  # it could not be loaded, or there is none
                    await self._availability.load(scene.organization_id, scene.event_id)
        except EventNotFound:
            self._forget(scene)  # who comes now is told that it is not there
            for viewer in tuple(scene.viewers):
                viewer.pipe.write(BYE)
                viewer.pipe.finish()
        except Exception as failed:  # noqa: BLE001 - PostgreSQL is away: it is asked again in a moment
            scene.is_doubted = True
            log.warning("event_not_looked_at", event_id=str(scene.event_id), error=type(failed).__name__)
        finally:
            scene.looking = None

    def _start(self, work: Any) -> asyncio.Task[None]:
        task: asyncio.Task[None] = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


def _subtract(counter: Counter[T], key: T | None) -> None:
    """One less; nothing is kept of whoever has none."""
    if key is not None:
        counter[key] -= 1
        if not counter[key]:
            del counter[key]


def seen_of(last_event_id: str) -> At | None:
    """Which map a frame's id names; None when it is not one of ours."""
    parts = last_event_id.split(":")
    is_ours = len(parts) == len(At._fields) and all(part.isascii() and part.isdigit() for part in parts)
    return At(*map(int, parts)) if is_ours and len(last_event_id) <= 40 else None  # noqa: PLR2004 - three numbers


def _zone_ids(found: HotMap) -> list[UUID]:
    return [zone.zone_id for zone in found.zones]


def _different(one: Sequence[int], other: Sequence[int]) -> set[int]:
    """Where two columns differ, piece by piece: of most it is found out fast that they do not."""
    found: set[int] = set()
    for start in range(0, len(one), PIECE):
        mine, theirs = one[start : start + PIECE], other[start : start + PIECE]
        if mine != theirs:
            found.update(n for n, pair in enumerate(zip(mine, theirs, strict=True), start) if pair[0] != pair[1])
    return found


def snapshot_of(found: HotMap) -> dict[str, object]:
    """The whole map, as everybody may see it."""
    return {
        "event_id": found.event_id,
        "epoch": found.epoch,
        "map_version": found.map_version,
        "seat_count": len(found),
        "statuses": found.encoded(),
        "zones": [_counts(zone) for zone in found.zones],
    }


def _snapshot(found: HotMap, at: At) -> bytes:
    return _frame("snapshot", snapshot_of(found), at)


def _status(scene: Scene) -> bytes:
    return _frame("event_status", {"event_id": scene.event_id, **scene.now._asdict()})


def _resync(scene: Scene) -> bytes:
    return _frame("resync", {"event_id": scene.event_id})


def _occupancy(found: HotMap) -> dict[str, object]:
    counts = found.counts()
    return {
        "map_version": found.map_version,
        "available": counts.available,
        "held": counts.held,
        "sold": counts.sold,
        "blocked": counts.blocked,
        "total": counts.capacity,
    }


def _counts(zone: Any) -> dict[str, object]:
    counts = zone.counts
    return {
        "zone_id": zone.zone_id,
        "total": counts.capacity,
        "available": counts.available,
        "held": counts.held,
        "sold": counts.sold,
        "blocked": counts.blocked,
    }


def _frame(name: str, data: object, at: At | None = None) -> bytes:
    """One event of the stream; JSON has no line breaks, so it is one line of data."""
    place = b"id: %b\n" % at.written if at else b""
    return b"%bevent: %b\ndata: %b\n\n" % (place, name.encode(), msgspec.json.encode(data))
