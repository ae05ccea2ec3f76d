"""The places of one event as a process knows them: a byte for each seat, its version, and who is in the way.

Nothing here waits or asks. A change counts when its version is newer than the one that is known, so it does not matter
in which order changes come, or how often. What is known may be old; when PostgreSQL last confirmed it is kept beside
it, and nobody is refused on older grounds.

A hold that has ended is shown as available without waiting for a fact: the map knows the end of each hold, and
`expire` applies the ends that have passed. The recorded state stays known, because Redis is compared with it.
"""

import base64
import sys
import zlib
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Final, NamedTuple
from uuid import UUID

import msgspec

from voelgoed.holds.ends import Ends
from voelgoed.holds.model import Counts, SeatName, SeatStatus
from voelgoed.ids import OrganizationId

AVAILABLE, HELD, SOLD, BLOCKED = range(4)
STATUSES: Final = (SeatStatus.AVAILABLE, SeatStatus.HELD, SeatStatus.SOLD, SeatStatus.BLOCKED)
"""What the numbers of a map mean, here, in Redis and in what is sent to browsers."""
CODES: Final = {status.value: code for code, status in enumerate(STATUSES)}
CONFIRMED_FOR_S: Final = 1.0
"""How long PostgreSQL's word about a seat is enough to refuse others without asking it again."""
CONFIRMED_KEPT_MAX: Final = 20_000
SHOWN_MS: Final = 5
"""How long the time that was worked out is good enough for an answer that counts in seconds."""
HOLDER_BYTES: Final = 480
"""Approximate memory of one hold: a dictionary entry, two ids, its end, and a heap entry."""
NO_SEAT: Final = -1


class News(StrEnum):
    """What is told of a place, in the words of the domain."""

    HELD = "seat_held"
    RELEASED = "seat_released"
    SOLD = "seat_sold"
    BLOCKED = "seat_blocked"


NEWS: Final = (News.RELEASED, News.HELD, News.SOLD, News.BLOCKED)
"""By the status that a seat has now."""


class SeatChange(msgspec.Struct, frozen=True, omit_defaults=True):
    """A seat as it has become: nothing has to be known of what it was."""

    seat_id: UUID
    version: int
    status: int
    hold_id: UUID | None = None
    """Of a seat that is held the hold; of another the one that has just ended, if one has."""
    user_id: UUID | None = None
    until_ms: int | None = None
    reason: str | None = None
    at_ms: int | None = None
    """When it was written down, by PostgreSQL's clock: news may be late. Without it, it was said this moment."""

    @property
    def news(self) -> News:
        return NEWS[self.status]


class ZoneChange(msgspec.Struct, frozen=True, omit_defaults=True):
    """A zone sold by number as it has become, and the hold by which it did.

    Without `until_ms` that hold is over. `quantity` is the hold's.
    """

    zone_id: UUID
    version: int
    held: int
    sold: int
    hold_id: UUID | None = None
    until_ms: int | None = None
    quantity: int = 0


class Holder(NamedTuple):
    """Who is in the way, and until when. PostgreSQL's refusals do not say by which hold; the news does, soon after."""

    hold_id: UUID | None
    user_id: UUID
    until_ms: int


class ZoneHold(NamedTuple):
    """A hold of a quantity in a zone without numbered seats, as the zone's `version` left it."""

    zone: int
    quantity: int
    until_ms: int
    version: int


@dataclass(slots=True, kw_only=True)
class HotZone:
    """A zone. With numbered seats, they are counted; without, its recorded counters are kept.

    `live` and `expired` are for a zone without numbered seats: the quantities of its known holds that have not ended,
    and of those that have ended though `held` still counts them.
    """

    zone_id: UUID
    is_by_number: bool
    version: int
    capacity: int
    blocked: int
    held: int
    sold: int
    live: int = field(default=0, compare=False)
    expired: int = 0

    @classmethod
    def of(  # a row of the database
        cls,
        zone_id: UUID,
        is_by_number: bool,  # noqa: FBT001
        version: int,
        capacity: int,
        blocked: int,
        held: int,
        sold: int,
    ) -> "HotZone":
        return cls(
            zone_id=zone_id,
            is_by_number=is_by_number,
            version=version,
            capacity=capacity,
            blocked=blocked,
            held=held,
            sold=sold,
        )

    @property
    def counts(self) -> Counts:
        # Facts of one call come one by one, each with the counters after all of them. So between two of them `held` may
        # be without holds that are known still: what counts is never more than `held`, and never less than `live`.
        held = min(self.held, max(self.held - self.expired, self.live))
        free = self.capacity - self.blocked - held - self.sold
        return Counts(available=free, held=held, sold=self.sold, blocked=self.blocked)


class Names:
    """What the seats of an event are called, by ordinal. Numbers repeat: of each there is one string."""

    def __init__(
        self, zones: Sequence[str], rows: Sequence[Sequence[str]], zone_of: bytes, row_of: bytes, labels: Sequence[str]
    ) -> None:
        self._zones, self._rows = zones, rows
        self._zone_of, self._row_of = _numbers("H", zone_of), _numbers("I", row_of)
        self._labels = [sys.intern(label) for label in labels]

    def __getitem__(self, ordinal: int) -> SeatName:
        zone = self._zone_of[ordinal]
        return SeatName(self._zones[zone], self._rows[zone][self._row_of[ordinal]], self._labels[ordinal])

    def __len__(self) -> int:
        return len(self._labels)

    @property
    def size_bytes(self) -> int:
        return sum(sys.getsizeof(column) for column in (self._zone_of, self._row_of, self._labels))


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """An event's places as one statement read them. Columns are by ordinal, as bytes in the network's order."""

    organization_id: OrganizationId
    event_id: UUID
    epoch: int
    now_ms: int
    first_seat: UUID | None
    serials: bytes
    versions: bytes
    statuses: bytes
    zones: Sequence[HotZone]
    ranges: Sequence[tuple[UUID, int, int]]
    names: Names
    held: Sequence[tuple[int, UUID, UUID, int]]
    """Held seats: ordinal, hold, buyer, end."""
    zone_holds: Sequence[tuple[UUID, UUID, int, int]] = ()
    """Holds in zones without numbered seats: hold, zone, quantity, end."""


class HotMap:
    """One event. `read_at` and every `now` is of the process's own clock that only goes forward.

    `statuses` and counts are as shown: a hold that `expire` has ended is available there. `map_version` rises by two
    with each recorded version, and by one when a hold ends unrecorded. So it rises as well when the expiry is recorded
    later, and when an extension arrives late that makes the seat held again.
    """

    def __init__(self, found: Snapshot, *, read_at: float) -> None:
        self.organization_id = found.organization_id
        self.event_id = found.event_id
        self.epoch = found.epoch
        self.zones = list(found.zones)
        self.names = found.names
        self.statuses = bytearray(found.statuses)
        self.versions = _numbers("I", found.versions)
        self.serials = _numbers("I", found.serials)
        self.holders = Ends((ordinal, Holder(hold, user, until)) for ordinal, hold, user, until in found.held)
        self.expired: set[int] = set()
        """Seats whose hold has ended, though that is not recorded."""
        self._upper = found.first_seat.int >> 32 if found.first_seat else 0
        self._ordinals = _inverse(self.serials)
        self._zone_numbers = {zone.zone_id: number for number, zone in enumerate(self.zones)}
        self._zone_of = array("H", bytes(2 * len(self.statuses)))
        for zone_id, first, count in found.ranges:
            self._zone_of[first : first + count] = array("H", [self._zone_numbers[zone_id]]) * count
        self._confirmed: dict[int, float] = {}
        self._encoded: tuple[int, str] | None = None
        self._print: tuple[int, int] | None = None
        self._ahead_ms = found.now_ms - read_at * 1_000
        self._shown = found.now_ms, datetime.fromtimestamp(found.now_ms / 1_000, UTC)
        self._begun = self._shown[1], self._shown[1]
        self.map_version = 2 * (sum(self.versions) + sum(zone.version for zone in self.zones))
        self._count_seats(found.ranges)
        self.zone_holds: Ends[UUID, ZoneHold] = Ends()
        self.expired_zone_holds: dict[UUID, ZoneHold] = {}
        for hold_id, zone_id, quantity, until_ms in found.zone_holds:
            number = self._zone_numbers[zone_id]
            self._add_zone_hold(hold_id, ZoneHold(number, quantity, until_ms, self.zones[number].version))

    def __len__(self) -> int:
        return len(self.statuses)

    @property
    def size_bytes(self) -> int:
        """What the map takes in memory, about."""
        columns = (self.statuses, self.versions, self.serials, self._zone_of, self._ordinals)
        size = sum(sys.getsizeof(column) for column in columns) + self.names.size_bytes
        return size + HOLDER_BYTES * (len(self.holders) + len(self.zone_holds) + len(self.expired_zone_holds))

    def ordinal_of(self, seat_id: UUID) -> int | None:
        """Where a seat stands; None when it is no seat of this event."""
        number = seat_id.int
        serial = number & 0xFFFFFFFF
        if number >> 32 != self._upper or serial >= len(self._ordinals):
            return None
        ordinal = self._ordinals[serial]
        return None if ordinal == NO_SEAT else ordinal

    def seat_id(self, ordinal: int) -> UUID:
        return UUID(int=self._upper << 32 | self.serials[ordinal])

    def zone_id(self, ordinal: int) -> UUID:
        return self.zones[self._zone_of[ordinal]].zone_id

    def database_ms(self, now: float) -> int:
        """What PostgreSQL's clock shows, as far as the last load tells."""
        return int(now * 1_000 + self._ahead_ms)

    def database_now(self, now: float) -> datetime:
        """The same as a moment; asked for again and again within a batch, so what was said is good for a while."""
        shown = self.database_ms(now)
        if not 0 <= shown - self._shown[0] < SHOWN_MS:
            self._shown = shown, datetime.fromtimestamp(shown / 1_000, UTC)
        return self._shown[1]

    def begun_at(self, until: datetime, now: datetime) -> datetime:
        """When a hold began that was given just now: whole minutes before its end, like all of its batch."""
        if until != self._begun[0]:
            self._begun = until, until - timedelta(minutes=round((until - now).total_seconds() / 60))
        return self._begun[1]

    def take_seat(self, change: SeatChange, now: float) -> int | None:
        """Let a seat become what it is; its ordinal when that is news. Known or new, it is confirmed as of then."""
        ordinal = self.ordinal_of(change.seat_id)
        if ordinal is None or change.version < (known := self.versions[ordinal]):
            return None
        said_at = now - max(0, self.database_ms(now) - change.at_ms) / 1_000 if change.at_ms else now
        if change.version == known:
            self._confirm(ordinal, max(said_at, self._confirmed.get(ordinal, said_at)), now)
            self._name_hold(ordinal, change)
            return None
        self._confirm(ordinal, said_at, now)
        was = self.statuses[ordinal]
        self.versions[ordinal] = change.version
        self.statuses[ordinal] = change.status
        self.map_version += 2 * (change.version - known) - (ordinal in self.expired)
        self.expired.discard(ordinal)
        if change.status == HELD and change.user_id and change.until_ms:
            self.holders[ordinal] = Holder(change.hold_id, change.user_id, change.until_ms)
        else:
            self.holders.pop(ordinal, None)
        self._move(self.zones[self._zone_of[ordinal]], was, change.status)
        return ordinal

    def take_zone(self, change: ZoneChange) -> bool:
        """Apply a change of a zone without numbered seats; return whether the map is different now."""
        number = self._zone_numbers.get(change.zone_id)
        if number is None:
            return False
        zone, before = self.zones[number], self.map_version
        if change.hold_id is not None:
            self._follow_zone_hold(number, change.hold_id, change)
        if change.version > zone.version:
            self.map_version += 2 * (change.version - zone.version)
            zone.version, zone.held, zone.sold = change.version, change.held, change.sold
        return self.map_version != before

    def expire(self, now_ms: int) -> tuple[list[int], list[UUID]]:
        """Show holds as over that have ended by `now_ms`; return the seats and zones that changed by that.

        This costs nothing until an end has passed, however many seats there are.
        """
        seats: list[int] = []
        for ordinal, _ in self.holders.take_due(now_ms):
            self._move(self.zones[self._zone_of[ordinal]], HELD, AVAILABLE)
            self.statuses[ordinal] = AVAILABLE
            self.expired.add(ordinal)
            seats.append(ordinal)
        due = self.zone_holds.take_due(now_ms)
        for hold_id, hold in due:
            self.zones[hold.zone].live -= hold.quantity
            self.zones[hold.zone].expired += hold.quantity
            self.expired_zone_holds[hold_id] = hold
        self.map_version += len(seats) + len(due)
        return seats, list({self.zones[hold.zone].zone_id for _, hold in due})

    @property
    def has_expired(self) -> bool:
        """Whether holds are shown as over that are still recorded as held."""
        return bool(self.expired or self.expired_zone_holds)

    @property
    def next_end_ms(self) -> int:
        """Until when the map stays as it is if no fact arrives."""
        return min(self.holders.next_ms, self.zone_holds.next_ms)

    def recorded(self) -> bytes:
        """Return the statuses as they are recorded: seats whose hold has ended unrecorded are held."""
        statuses = self.statuses[:]
        for ordinal in self.expired:
            statuses[ordinal] = HELD
        return bytes(statuses)

    def doubt(self, seat_ids: Iterable[UUID]) -> None:
        """Forget when these were confirmed: whoever asks for one asks PostgreSQL."""
        for seat_id in seat_ids:
            ordinal = self.ordinal_of(seat_id)
            if ordinal is not None:
                self._confirmed.pop(ordinal, None)

    def in_the_way(self, seat_id: UUID, user_id: UUID, now: float) -> tuple[int, int | None] | None:
        """Why somebody cannot have a seat, if PostgreSQL said so within the last second: its status, the hold's end.

        None when it must be asked. A hold of their own is not in the way.
        """
        ordinal = self.ordinal_of(seat_id)
        if ordinal is None or now - self._confirmed.get(ordinal, -CONFIRMED_FOR_S) >= CONFIRMED_FOR_S:
            return None
        status = self.statuses[ordinal]
        if status == AVAILABLE:
            return None
        if status != HELD:
            return status, None
        holder = self.holders.get(ordinal)
        if holder is None or holder.user_id == user_id or holder.until_ms <= self.database_ms(now):
            return None
        return HELD, holder.until_ms

    def state_of(self, ordinal: int) -> tuple[int, Holder | None]:
        """Return the status of a seat as shown, and who holds it."""
        status, holder = self.statuses[ordinal], self.holders.get(ordinal)
        return (AVAILABLE, None) if status == HELD and holder is None else (status, holder)

    def encoded(self) -> str:
        """All statuses, two bits each, the first seat in the lowest bits of the first byte; base64."""
        if self._encoded is None or self._encoded[0] != self.map_version:
            self._encoded = self.map_version, pack(self.statuses)
        return self._encoded[1]

    def print(self) -> int:
        """A fingerprint of everything: two maps may have come to one version by different changes."""
        if self._print is None or self._print[0] != self.map_version:
            zones = repr([(zone.version, zone.counts) for zone in self.zones]).encode()
            self._print = self.map_version, zlib.crc32(zones, zlib.crc32(self.statuses, zlib.crc32(self.versions)))
        return self._print[1]

    def counts(self) -> Counts:
        return Counts.total(zone.counts for zone in self.zones)

    def _follow_zone_hold(self, number: int, hold_id: UUID, change: ZoneChange) -> None:
        """Learn when a hold ends, or that it is over.

        A hold that is not known is new only if its fact is: an older one may be that of a hold that is over.
        """
        known = self.zone_holds.get(hold_id) or self.expired_zone_holds.get(hold_id)
        is_news = change.version > (known.version if known else self.zones[number].version)
        if change.until_ms is not None and is_news and change.quantity:
            self._drop_zone_hold(hold_id)
            self._add_zone_hold(hold_id, ZoneHold(number, change.quantity, change.until_ms, change.version))
        elif change.until_ms is None:
            self._drop_zone_hold(hold_id)

    def _add_zone_hold(self, hold_id: UUID, hold: ZoneHold) -> None:
        self.zone_holds[hold_id] = hold
        self.zones[hold.zone].live += hold.quantity

    def _drop_zone_hold(self, hold_id: UUID) -> None:
        if live := self.zone_holds.pop(hold_id, None):
            self.zones[live.zone].live -= live.quantity
        elif over := self.expired_zone_holds.pop(hold_id, None):
            self.zones[over.zone].expired -= over.quantity
            self.map_version -= 1

    def _name_hold(self, ordinal: int, change: SeatChange) -> None:
        """What was learned of a refusal lacks the hold; who tells it has it."""
        holder = self.holders.get(ordinal)
        if holder is not None and holder.hold_id is None and change.hold_id is not None:
            self.holders[ordinal] = holder._replace(hold_id=change.hold_id)

    def _confirm(self, ordinal: int, said_at: float, now: float) -> None:
        if len(self._confirmed) >= CONFIRMED_KEPT_MAX:
            self._confirmed = {key: at for key, at in self._confirmed.items() if now - at < CONFIRMED_FOR_S}
            if len(self._confirmed) >= CONFIRMED_KEPT_MAX:
                self._confirmed.clear()  # then PostgreSQL is asked, which is never wrong
        self._confirmed[ordinal] = said_at

    def _count_seats(self, ranges: Iterable[tuple[UUID, int, int]]) -> None:
        """Count the seats of each zone; from here on changes are counted."""
        for zone in self.zones:
            if not zone.is_by_number:
                zone.capacity = zone.held = zone.sold = zone.blocked = 0
        for zone_id, first, count in ranges:
            zone = self.zones[self._zone_numbers[zone_id]]
            if not zone.is_by_number:
                seats = self.statuses[first : first + count]
                zone.capacity = count
                zone.held, zone.sold, zone.blocked = (seats.count(status) for status in (HELD, SOLD, BLOCKED))

    def _move(self, zone: HotZone, was: int, status: int) -> None:
        if not zone.is_by_number:
            self._add(zone, was, -1)
            self._add(zone, status, 1)

    @staticmethod
    def _add(zone: HotZone, status: int, count: int) -> None:
        if status == HELD:
            zone.held += count
        elif status == SOLD:
            zone.sold += count
        elif status == BLOCKED:
            zone.blocked += count


def milliseconds(moment: datetime) -> int:
    """Whole milliseconds since 1970, cut off as PostgreSQL's are: every tier has the same end of a hold."""
    return int(moment.timestamp()) * 1_000 + moment.microsecond // 1_000


def pack(statuses: bytes | bytearray) -> str:
    """Four seats in a byte. As whole numbers of many digits: that is done in C, a loop over 100,000 would not be."""
    padded = bytes(statuses) + bytes(-len(statuses) % 4)
    packed = 0
    for place in range(4):
        packed |= int.from_bytes(padded[place::4], "little") << 2 * place
    return base64.b64encode(packed.to_bytes(len(padded) // 4, "little")).decode()


def unpack(encoded: str, count: int) -> bytes:
    """The same backwards."""
    packed = base64.b64decode(encoded)
    statuses = bytearray(4 * len(packed))
    for place in range(4):
        statuses[place::4] = bytes(byte >> 2 * place & 3 for byte in packed)
    return bytes(statuses[:count])


def _numbers(kind: str, encoded: bytes) -> "array[int]":
    numbers = array(kind, encoded)
    if sys.byteorder == "little":
        numbers.byteswap()
    return numbers


def _inverse(serials: "array[int]") -> "array[int]":
    """The ordinal of each serial. Serials are given in a row, so there are few that no seat has."""
    ordinals = array("i", [NO_SEAT]) * (max(serials, default=0) + 1)
    for ordinal, serial in enumerate(serials):
        ordinals[serial] = ordinal
    return ordinals
