"""The history of a run: every call with its times and its answer, every fault, and what PostgreSQL held at the end.

All times are seconds of this process's monotonic clock, so steps of PostgreSQL's clock do not move them.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum, StrEnum


class Op(StrEnum):
    """What a call asks for."""

    SIGN_IN = "sign_in"
    RESERVE_SEAT = "reserve_seat"
    RESERVE_SEATS = "reserve_seats"
    RESERVE_PLACES = "reserve_places"
    RELEASE = "release"
    EXTEND = "extend"
    LIST_OWN = "list_own"
    MAP = "map"
    STREAM = "stream"
    READY = "ready"
    BLOCK = "block"
    UNBLOCK = "unblock"


RESERVES = frozenset({Op.RESERVE_SEAT, Op.RESERVE_SEATS, Op.RESERVE_PLACES})
WRITES = RESERVES | {Op.RELEASE, Op.EXTEND, Op.BLOCK, Op.UNBLOCK}


class Outcome(Enum):
    """What a client knows after a call."""

    OK = "ok"
    REFUSED = "refused"
    """The server says that the call had no effect, or the call never left this machine."""
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenHold:
    """A hold as an answer shows it. `place` is the id of its seat, or of its zone if the zone has no numbered seats."""

    hold_id: str
    place: str
    quantity: int
    is_held: bool
    held_until: float
    left_s: int


@dataclass(slots=True, kw_only=True)
class Call:
    """One request. `status` is 0 if no answer came; `ended` is then when the client gave up."""

    op: Op
    buyer: str
    began: float
    ended: float = math.inf
    status: int = 0
    error: str = ""
    effect: str = ""
    request_id: str = ""
    key: str = ""
    places: tuple[str, ...] = ()
    quantity: int = 1
    hold_id: str = ""
    holds: tuple[SeenHold, ...] = ()
    refused: tuple[tuple[str, str], ...] = ()
    """For each refused seat, its id and the error."""
    statuses: str = ""
    """The seat map, one digit per ordinal: 0 available, 1 held, 2 sold, 3 blocked."""

    @property
    def outcome(self) -> Outcome:
        if 200 <= self.status < 300:
            return Outcome.OK
        return Outcome.REFUSED if self.effect == "none" else Outcome.UNKNOWN

    @property
    def may_have_happened(self) -> bool:
        return self.outcome is not Outcome.REFUSED

    @property
    def has_failed(self) -> bool:
        """Return whether the client got no service: no answer, or a 5xx."""
        return self.status == 0 or self.status >= 500


class FaultKind(StrEnum):
    """What the nemesis can do."""

    KILL_WEB = "kill_web"
    KILL_WORKER = "kill_worker"
    KILL_VALKEY = "kill_valkey"
    KILL_BACKEND = "kill_backend"
    KILL_POSTGRES = "kill_postgres"
    FREEZE_WEB = "freeze_web"
    FREEZE_WORKER = "freeze_worker"
    FREEZE_VALKEY = "freeze_valkey"
    FREEZE_BACKEND = "freeze_backend"
    CLOCK_STEP = "clock_step"
    DISK_FULL = "disk_full"
    READ_ONLY = "read_only"


MAP_UNAFFECTED = frozenset(
    {FaultKind.KILL_WORKER, FaultKind.KILL_VALKEY, FaultKind.FREEZE_WORKER, FaultKind.FREEZE_VALKEY}
)
"""Faults during which the seat map must stay right: web processes read PostgreSQL without the worker and Valkey."""


@dataclass(slots=True, kw_only=True)
class Fault:
    """One fault: injected at `began`, lifted at `lifted`, and all processes ready again at `recovered`."""

    kind: FaultKind
    detail: str
    began: float
    lifted: float = math.inf
    recovered: float = math.inf
    clock_step_s: int = 0
    is_in_transaction: bool = False
    """Whether the frozen process had a transaction open that writes: readers of the audit log wait for its end."""

    @property
    def delays_map(self) -> bool:
        """Return whether the seat map may be older than usual. Without the worker and Valkey it must not."""
        return self.kind not in MAP_UNAFFECTED or self.is_in_transaction

    def overlaps(self, start: float, end: float, *, settle_s: float = 0.0) -> bool:
        return self.began <= end and start <= self.recovered + settle_s


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldRow:
    """A row of PostgreSQL's table of holds."""

    hold_id: str
    owner: str
    place: str
    quantity: int
    status: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Witness:
    """What PostgreSQL held at the end, read by SQL of our own."""

    began: float
    ended: float
    holds: dict[str, HoldRow]
    seat_statuses: str
    """One digit per ordinal, as in `Call.statuses`."""
    seat_holds: dict[str, str]
    """The hold that each held seat points at."""
    zone_held: dict[str, int]
    request_ids: frozenset[str]
    """The requests that created a hold, from the audit log."""


@dataclass(slots=True, kw_only=True)
class History:
    """Everything the checker knows."""

    seat_ids: tuple[str, ...]
    """By ordinal."""
    capacities: dict[str, int]
    """Of zones without numbered seats."""
    ttl_s: float
    calls: list[Call] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    witness: Witness | None = None
    stream_errors: list[str] = field(default_factory=list)
    collapse: str = ""
    """The end of the product's log, if it did not recover from a fault."""
    final_maps: list[tuple[str, str]] = field(default_factory=list)
    """After the last fault: where a map came from (API or stream), and its digits."""

    def of(self, *ops: Op) -> Iterable[Call]:
        """Return the calls of these kinds, in the order in which they began."""
        return (call for call in self.calls if call.op in ops)

    def is_map_delayed(self, start: float, end: float, *, settle_s: float) -> bool:
        """Return whether a fault excused an old seat map at some time between `start` and `end`."""
        return any(one.delays_map and one.overlaps(start, end, settle_s=settle_s) for one in self.faults)

    def has_fault(self, start: float, end: float, kinds: Iterable[FaultKind], *, settle_s: float = 0.0) -> bool:
        """Return whether a fault of one of these kinds was in effect at some time between `start` and `end`."""
        wanted = frozenset(kinds)
        return any(one.kind in wanted and one.overlaps(start, end, settle_s=settle_s) for one in self.faults)
