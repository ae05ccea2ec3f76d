"""An event's places in Redis: written after every commit, read by whoever has no map, believed by nobody who sells.

What stands there carries the number of the rebuild it belongs to, the epoch, and the version of its seat. Another epoch
is a miss; an older version never overwrites a newer one; whatever cannot be read is a miss as well. Only commands that
Redis 6.2 has are used, and every key of an event has its id in braces, so that a cluster keeps them together.
"""

import asyncio
import functools
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple
from uuid import UUID

import msgspec
import structlog

from voelgoed.breaker import State
from voelgoed.holds.hotmap import HELD, Holder, HotMap, SeatChange, ZoneChange
from voelgoed.holds.occupancy import Occupancy
from voelgoed.ids import OrganizationId
from voelgoed.redis import RedisAway, RedisLink
from voelgoed.telemetry import metrics

log = structlog.get_logger(__name__)

KEPT_S: Final = 1_800
"""A map that nobody changes and nobody compares is gone after this long; who needs it again makes it again."""
BELIEVED_S: Final = 1.0
OCCUPANCY_S: Final = 10
PIECE: Final = 500
WRITES_MAX: Final = 100
"""Writes behind somebody's back that are under way; the rest are not made, and the next reader asks PostgreSQL."""
STALE: Final = -1
DIGITS_MAX: Final = 19
VALUE_BYTES_MAX: Final = 200
FOREVER_MS: Final = 2**53
"""The latest end that is read: a score may be infinite, which no number of ours is."""

# KEYS epoch map versions seat_holds occupancy zones
# ARGV epoch, seconds to live, now; seats and zones, packed: a list of lists is sent several times faster so
# The keys of seats stand among the seats. All keys of an event are in one slot, so that a cluster takes it as well.
# A seat's own version is written again: its key may have been lost while the map was not.
APPLY: Final = """
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return -1 end
redis.call('ZREMRANGEBYSCORE', KEYS[4], '-inf', ARGV[3])
local changed = 0
for _, seat in ipairs(cmsgpack.unpack(ARGV[4])) do
  local key, at, version, status, hold, till, value = unpack(seat)
  local old = redis.call('GETRANGE', KEYS[3], at * 4, at * 4 + 3)
  if #old < 4 or version >= struct.unpack('>I4', old) then
    redis.call('SETRANGE', KEYS[3], at * 4, struct.pack('>I4', version))
    redis.call('SETRANGE', KEYS[2], at, string.char(status))
    if till ~= '' then
      redis.call('SET', key, value, 'PXAT', till)
      redis.call('ZADD', KEYS[4], till, hold)
    else
      redis.call('DEL', key)
      if hold ~= '' then redis.call('ZREM', KEYS[4], hold) end
    end
    changed = changed + 1
  end
end
for _, zone in ipairs(cmsgpack.unpack(ARGV[5])) do
  local id, version, held, sold, hold, till = unpack(zone)
  local old = redis.call('HGET', KEYS[6], id)
  if not old or version > tonumber(string.match(old, '^(%d+)')) then
    redis.call('HSET', KEYS[6], id, string.format('%.0f:%.0f:%.0f', version, held, sold))
    changed = changed + 1
    if hold ~= '' then
      if till ~= '' then redis.call('ZADD', KEYS[4], till, hold)
      else redis.call('ZREM', KEYS[4], hold) end
    end
  end
end
redis.call('DEL', KEYS[5])
for _, key in ipairs({KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[6]}) do redis.call('EXPIRE', key, ARGV[2]) end
return changed
"""
# KEYS occupancy; ARGV number of the state, value, seconds to live
KEEP_NEWER: Final = """
local old = redis.pcall('GET', KEYS[1])
if type(old) == 'string' then
  local known = tonumber(string.match(old, '^(%d+) '))
  if known and known > tonumber(ARGV[1]) then return 0 end
end
redis.call('SET', KEYS[1], ARGV[1] .. ' ' .. ARGV[2], 'EX', ARGV[3])
return 1
"""
# KEYS any; ARGV the value that it had
DROP_SAME: Final = """
if redis.pcall('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end
return 0
"""
_decode_occupancy = msgspec.json.Decoder(Occupancy)


class WarmHold(NamedTuple):
    """A hold as it stands in Redis."""

    version: int
    hold_id: UUID
    user_id: UUID
    until_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Dump:
    """Everything Redis has of an event; None for what is not there or not readable."""

    epoch: int | None
    statuses: bytes | None
    versions: bytes | None
    zones: dict[UUID, tuple[int, int, int]]
    holds: dict[UUID, int]


class Projection:
    """One per process.

    What stands in Redis is believed only while somebody says what the epoch of its last recovery is: it may have come
    back with what it had long ago.
    """

    def __init__(self, link: RedisLink, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._link = link
        self._clock = clock
        self._writes: set[asyncio.Task[None]] = set()
        self._floor: int | None = None
        self._told_at = float("-inf")

    def believe(self, floor: int) -> None:
        """What is of this epoch or a later one may be believed for a moment."""
        self._floor, self._told_at = floor, self._clock()

    @property
    def floor(self) -> int | None:
        """The least epoch that is believed now; None when none is."""
        return self._floor if self._clock() - self._told_at < BELIEVED_S else None

    @property
    def breaker(self) -> State:
        """What this process thinks of Redis."""
        return self._link.state

    @property
    def is_away(self) -> bool:
        """Whether Redis is known not to answer."""
        return self.breaker is not State.CLOSED

    # Reading

    async def read_hold(self, organization_id: OrganizationId, event_id: UUID, seat_id: UUID) -> WarmHold | None:
        """Who holds a seat, as far as Redis knows; None when it does not, or is not to be believed."""
        floor = self.floor
        if floor is None:
            return None
        key = seat_key(organization_id, event_id, seat_id)
        try:
            epoch, value = await self._call(lambda client: client.mget(_key(organization_id, event_id, "epoch"), key))
        except RedisAway:
            self.fell_back(seat_id)
            return None
        if value is None:
            return None
        found = _read_value(value)
        if found is None:
            self._drop(key, value)
            return None
        number, hold = found
        if number < floor or _number(epoch) != number:
            return None
        return hold

    async def read_occupancy(
        self, organization_id: OrganizationId, event_id: UUID, expired_ms: int
    ) -> Occupancy | None:
        """Return an event's occupancy as counted in the last seconds; None if it was not, or a hold has ended since.

        `expired_ms` is the time by which holds count as over.
        """
        if self.floor is None:
            return None
        key = _key(organization_id, event_id, "occupancy")
        try:
            value = await self._call(lambda client: client.get(key))
        except RedisAway:
            self.fell_back(None)
            return None
        if value is None:
            return None
        _, until_ms, counted = (*value.split(b" ", 2), b"", b"")[:3]
        try:
            found = _decode_occupancy.decode(counted)
        except msgspec.MsgspecError:
            found = None
        until = _number(until_ms)
        if found is None or until is None or found.event_id != event_id:
            self._drop(key, value)
            return None
        return found if until > expired_ms else None

    def keep_occupancy(self, organization_id: OrganizationId, found: Occupancy, next_end_ms: int) -> None:
        """Keep a count for other processes until the next hold ends, unless Redis has a newer one."""
        key = _key(organization_id, found.event_id, "occupancy")
        args = (found.map_version, b"%d %b" % (next_end_ms, msgspec.json.encode(found)), OCCUPANCY_S)
        self._behind(lambda client: client.eval(KEEP_NEWER, 1, key, *args))

    def keep_hold(self, organization_id: OrganizationId, event_id: UUID, ordinal: int, change: SeatChange) -> None:
        """Put back what PostgreSQL said of a seat that Redis did not know."""

        async def put(client: Any) -> None:
            epoch = _number(await client.get(_key(organization_id, event_id, "epoch")))
            floor = self.floor
            if epoch is not None and floor is not None and epoch >= floor:
                await self._apply(client, organization_id, event_id, epoch, 0, [(ordinal, change)], ())

        self._behind(put)

    def fell_back(self, seat_id: UUID | None) -> None:
        """Redis was wanted and not there: PostgreSQL answers."""
        metrics.HOLD_REDIS_FALLBACK.inc()
        log.info("seat_hold_redis_fallback", seat_id=str(seat_id) if seat_id else None, fallback="postgres")

    # Writing, by whoever tells on what is committed

    async def apply(
        self,
        found: HotMap,
        epoch: int,
        now_ms: int,
        seats: Sequence[tuple[int, SeatChange]],
        zones: Sequence[ZoneChange],
    ) -> bool:
        """Bring what Redis has of an event up to date; False when that is not of this epoch and must be made anew."""
        for first in range(0, max(len(seats), 1), PIECE):
            piece = seats[first : first + PIECE]
            apply = functools.partial(
                self._apply,
                organization_id=found.organization_id,
                event_id=found.event_id,
                epoch=epoch,
                now_ms=now_ms,
                seats=piece,
                zones=zones if first == 0 else (),
            )
            if await self._call(apply) == STALE:
                return False
        metrics.HOLD_REDIS_SUCCESS.inc(len(seats) + len(zones))
        return True

    async def rebuild(self, found: HotMap, epoch: int, holds: dict[UUID, int]) -> None:
        """Write all of an event anew beside what is there, and put it in its place in one step."""
        organization_id, event_id = found.organization_id, found.event_id

        def key(name: str) -> str:
            return _key(organization_id, event_id, name)

        versions = found.versions[:]
        versions.byteswap()
        zones = {str(zone.zone_id): f"{zone.version}:{zone.held}:{zone.sold}" for zone in found.zones}
        parts = ("map", "versions", "zones", "seat_holds")

        def columns(client: Any) -> Awaitable[Any]:
            pipe = client.pipeline(transaction=False)
            pipe.delete(*(key(f"{part}:next") for part in parts))
            pipe.set(key("map:next"), found.recorded(), ex=KEPT_S)
            pipe.set(key("versions:next"), versions.tobytes(), ex=KEPT_S)
            pipe.hset(key("zones:next"), mapping=zones)
            pipe.expire(key("zones:next"), KEPT_S)
            return pipe.execute()  # type: ignore[no-any-return]

        await self._call(columns)
        for some in _pieces(list(holds.items())):
            await self._call(functools.partial(_add_scores, key("seat_holds:next"), some))
        for held in _pieces(list(found.holders.items())):
            await self._call(functools.partial(_add_holders, found, epoch, held))

        def swap(client: Any) -> Awaitable[Any]:
            pipe = client.pipeline(transaction=True)
            for part in parts if holds else parts[:-1]:
                pipe.rename(key(f"{part}:next"), key(part))
                pipe.expire(key(part), KEPT_S)
            if not holds:
                pipe.delete(key("seat_holds"))
            pipe.delete(key("occupancy"))
            pipe.set(key("epoch"), epoch, ex=KEPT_S)
            return pipe.execute()  # type: ignore[no-any-return]

        await self._call(swap)

    async def remove(self, organization_id: OrganizationId, event_id: UUID) -> None:
        """An event has no places any more."""
        names = ("epoch", "map", "versions", "zones", "seat_holds", "occupancy")
        await self._call(lambda client: client.delete(*(_key(organization_id, event_id, name) for name in names)))

    async def dump(self, organization_id: OrganizationId, event_id: UUID, now_ms: int) -> Dump:
        """Everything that stands there, for whoever compares; it lives on for being looked at. Raises `RedisAway`."""

        def key(name: str) -> str:
            return _key(organization_id, event_id, name)

        def read(client: Any) -> Awaitable[list[Any]]:
            pipe = client.pipeline(transaction=True)
            pipe.get(key("epoch"))
            pipe.get(key("map"))
            pipe.get(key("versions"))
            pipe.hgetall(key("zones"))
            pipe.zrangebyscore(key("seat_holds"), f"({now_ms}", "+inf", withscores=True)
            for name in ("epoch", "map", "versions", "zones"):
                pipe.expire(key(name), KEPT_S)
            return pipe.execute(raise_on_error=False)  # type: ignore[no-any-return]

        epoch, statuses, versions, zones, holds = (await self._link.call(read, is_awaited=False))[:5]
        return Dump(
            epoch=_number(epoch),
            statuses=statuses if isinstance(statuses, bytes) else None,
            versions=versions if isinstance(versions, bytes) else None,
            zones=_read_zones(zones) if isinstance(zones, dict) else {},
            holds=_read_holds(holds) if isinstance(holds, list) else {},
        )

    async def run_id(self) -> str:
        """Which run of the server this is: another one may have come up with what it had long ago."""
        told = await self._link.call(lambda client: client.info("server"), is_awaited=False)
        return str(told["run_id"])

    async def publish(self, messages: Sequence[tuple[str, bytes]]) -> None:
        """Tell whoever follows, in this order."""

        def send(client: Any) -> Awaitable[Any]:
            pipe = client.pipeline(transaction=False)
            for channel, message in messages:
                pipe.publish(channel, message)
            return pipe.execute()  # type: ignore[no-any-return]

        await self._call(send)

    async def settle(self) -> None:
        """Wait for the writes that are under way: before the link is closed."""
        await asyncio.gather(*self._writes, return_exceptions=True)

    async def _call(self, work: Callable[[Any], Awaitable[Any]]) -> Any:
        """Ask Redis. No sale waits for this: only those who look, and those who tell."""
        return await self._link.call(work, is_awaited=False)

    async def _apply(
        self,
        client: Any,
        organization_id: OrganizationId,
        event_id: UUID,
        epoch: int,
        now_ms: int,
        seats: Iterable[tuple[int, SeatChange]],
        zones: Iterable[ZoneChange],
    ) -> int:
        names = ("epoch", "map", "versions", "seat_holds", "occupancy", "zones")
        keys = [_key(organization_id, event_id, name) for name in names]
        told = []
        for ordinal, change in seats:
            hold, until, value = str(change.hold_id or ""), "", ""
            if change.status == HELD and change.hold_id and change.user_id and change.until_ms:
                until = str(change.until_ms)
                value = _value(epoch, change.version, change.hold_id, change.user_id, change.until_ms)
            key = seat_key(organization_id, event_id, change.seat_id)
            told.append((key, ordinal, change.version, change.status, hold, until, value))
        moved = [
            (str(one.zone_id), one.version, one.held, one.sold, str(one.hold_id or ""), str(one.until_ms or ""))
            for one in zones
        ]
        args = [epoch, KEPT_S, now_ms, msgspec.msgpack.encode(told), msgspec.msgpack.encode(moved)]
        done: int = await client.register_script(APPLY)(keys=keys, args=args)
        return done

    def _drop(self, key: str, value: bytes) -> None:
        """Remove what cannot be read, and not what somebody has put in its place meanwhile."""
        log.warning("redis_value_broken", key=key)
        self._behind(lambda client: client.eval(DROP_SAME, 1, key, value))

    def _behind(self, work: Any) -> None:
        """Write without making anybody wait; what cannot be written is not."""

        async def write() -> None:
            try:
                await self._link.call(work, is_awaited=False)
            except RedisAway:
                metrics.HOLD_REDIS_FALLBACK.inc()

        if len(self._writes) < WRITES_MAX and not self.is_away:
            task = asyncio.create_task(write())
            self._writes.add(task)
            task.add_done_callback(self._writes.discard)


def _add_scores(key: str, holds: Sequence[tuple[UUID, int]], client: Any) -> Awaitable[Any]:
    pipe = client.pipeline(transaction=False)
    pipe.zadd(key, {str(hold_id): until for hold_id, until in holds})
    pipe.expire(key, KEPT_S)
    return pipe.execute()  # type: ignore[no-any-return]


def _add_holders(found: HotMap, epoch: int, holders: Sequence[tuple[int, Holder]], client: Any) -> Awaitable[Any]:
    pipe = client.pipeline(transaction=False)
    for ordinal, (hold_id, user_id, until_ms) in holders:
        if hold_id is None:
            continue  # whoever looks it up asks PostgreSQL
        key = seat_key(found.organization_id, found.event_id, found.seat_id(ordinal))
        pipe.set(key, _value(epoch, found.versions[ordinal], hold_id, user_id, until_ms), pxat=until_ms)
    return pipe.execute()  # type: ignore[no-any-return]


def seat_key(organization_id: OrganizationId, event_id: UUID, seat_id: UUID) -> str:
    """Where the hold of a seat stands. Seats belong to the hall: two events in it must not meet here."""
    return _key(organization_id, event_id, f"seat:{seat_id}:hold")


def _key(organization_id: OrganizationId, event_id: UUID, name: str) -> str:
    return f"voelgoed:org:{organization_id}:event:{{{event_id}}}:{name}"


def _value(epoch: int, version: int, hold_id: UUID, user_id: UUID, until_ms: int) -> str:
    return f"{epoch}:{version}:{hold_id}:{user_id}:{until_ms}"


def _read_value(value: bytes) -> tuple[int, WarmHold] | None:
    """The epoch and the hold again; None for whatever somebody else has put there."""
    if len(value) > VALUE_BYTES_MAX:
        return None
    try:
        epoch, version, hold_id, user_id, until_ms = value.decode().split(":")
        return int(epoch), WarmHold(int(version), UUID(hold_id), UUID(user_id), int(until_ms))
    except ValueError:
        return None


def _read_zones(found: dict[bytes, bytes]) -> dict[UUID, tuple[int, int, int]]:
    zones = {}
    for zone_id, told in found.items():
        try:
            version, held, sold = told.decode().split(":")
            zones[UUID(zone_id.decode())] = int(version), int(held), int(sold)
        except ValueError:
            continue
    return zones


def _read_holds(found: Iterable[tuple[bytes, float]]) -> dict[UUID, int]:
    holds = {}
    for hold_id, until in found:
        try:
            holds[UUID(hold_id.decode())] = int(min(until, FOREVER_MS))
        except ValueError:
            continue
    return holds


def _number(value: object) -> int | None:
    return int(value) if isinstance(value, bytes) and value.isdigit() and len(value) <= DIGITS_MAX else None


def _pieces(items: Sequence[Any]) -> Iterable[Sequence[Any]]:
    return (items[first : first + PIECE] for first in range(0, len(items), PIECE))
