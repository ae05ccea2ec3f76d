"""Lanes: how asks for holds come to PostgreSQL. Those that arrive while one batch commits form the next.

Each event has a lane in each process. A lane has its asks in the order of arrival and at most two batches under way.
Lanes that have something to do stand in a ring, and each turn takes one batch to one of few connections. So a hot event
fills its batches and leaves the others their turns. Nothing is waited for: an ask that comes alone goes at once.
"""

import asyncio
import time
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

import structlog

from voelgoed.db import Database
from voelgoed.errors import Busy, LostRace, OutcomeUnknown
from voelgoed.holds import store
from voelgoed.holds.model import GRANTED, LATER, Ask, Outcome, Verdict
from voelgoed.ids import OrganizationId
from voelgoed.journal import origins
from voelgoed.journal.model import Fact
from voelgoed.journal.recording import record_all
from voelgoed.telemetry import metrics

log = structlog.get_logger(__name__)

CONNECTIONS: Final = 4
ITEMS_PER_BATCH: Final = 256
BATCHES_PER_LANE: Final = 2
ASKS_PER_LANE_MAX: Final = 2_000
ASKS_MAX: Final = 10_000
DEADLINE_S: Final = 3.0
ROUNDS_MAX: Final = 3
ROUND_WAIT_S: Final = 0.1
"""Three rounds of this for a seat at which somebody is; then it is theirs."""
ATTEMPTS_PER_FACT: Final = 100
RETRY_WAITS_S: Final = (0.01, 0.02, 0.04)
SETTLE_TRIES: Final = 5
SETTLE_WAIT_S: Final = 0.2
SETTINGS: Final = {
    "plan_cache_mode": "force_generic_plan",  # arrays of another length must not be planned anew
    "jit": "off",
    "enable_seqscan": "off",  # a plan made while a table was empty must not walk it when it is full
    "lock_timeout": "500ms",
    "statement_timeout": "2s",
}
"""Of the lanes' own connections, and of no others."""
REFUSING_FOLLOWERS: Final = frozenset(
    {Outcome.CREATED, Outcome.EXISTING, Outcome.SEAT_HELD, Outcome.SEAT_NOT_AVAILABLE}
)
"""What is said of a seat to one tells the others who are waiting for it that they are too late."""


@dataclass(slots=True, eq=False)
class _Waiting:
    """An ask on its way."""

    ask: Ask
    answer: asyncio.Future[list[Verdict]]
    since: float
    rounds: int = 0
    is_taken: bool = False

    @property
    def seat(self) -> UUID | None:
        """The one seat it asks for, if it is one."""
        return self.ask.items[0].seat_id if len(self.ask.items) == 1 else None

    @property
    def claims(self) -> set[object]:
        """What no two asks under way may have in common: seats, and somebody's key for one effect."""
        seats: set[object] = {item.seat_id for item in self.ask.items if item.seat_id}
        return seats | {(self.ask.user_id, self.ask.key)} if self.ask.key else seats

    def say(self, verdicts: list[Verdict]) -> None:
        if not self.answer.done():
            self.answer.set_result(verdicts)

    def fail(self, why: BaseException) -> None:
        if not self.answer.done():
            self.answer.set_exception(why)


@dataclass(slots=True, eq=False)
class _Lane:
    """The asks of one event."""

    queue: deque[_Waiting] = field(default_factory=deque)
    under_way: int = 0
    claimed: set[object] = field(default_factory=set)
    is_in_ring: bool = False

    def take(self, now: float) -> list[_Waiting]:
        """The next batch: in order, no seat or key twice, none under way; who has waited too long is told so."""
        batch: list[_Waiting] = []
        left: deque[_Waiting] = deque()
        items = 0
        while self.queue:
            one = self.queue.popleft()
            if one.answer.done():
                continue
            if now - one.since > DEADLINE_S:
                one.fail(Busy())
                continue
            asked = one.ask.items
            claims = one.claims
            if batch and items + len(asked) > ITEMS_PER_BATCH:
                left.append(one)
                break
            if not self.claimed.isdisjoint(claims):
                left.append(one)
                continue
            self.claimed |= claims
            one.is_taken = True
            batch.append(one)
            items += len(asked)
        self.queue.extendleft(reversed(left))
        return batch


class Lanes:
    """One per process."""

    def __init__(self, db: Database, failures: "Failures") -> None:
        self._db = db
        self._failures = failures
        self._lanes: dict[UUID, _Lane] = {}
        self._ring: deque[tuple[UUID, _Lane]] = deque()
        self._free = CONNECTIONS
        self._waiting = 0
        self._aside = 0
        self._running: set[asyncio.Task[None]] = set()
        self._is_pumping = False
        self._is_closing = False

    async def ask(self, ask: Ask) -> list[Verdict]:
        """Ask, and wait for what PostgreSQL says; a crowd beyond measure is refused at once."""
        lane = self._lanes.get(ask.event_id)
        if self._is_closing or self._waiting >= ASKS_MAX or (lane and len(lane.queue) >= ASKS_PER_LANE_MAX):
            metrics.LANE_SHED.inc()
            raise Busy
        if lane is None:
            lane = self._lanes[ask.event_id] = _Lane()
        loop = asyncio.get_running_loop()
        one = _Waiting(ask, loop.create_future(), time.monotonic())
        self._waiting += 1
        lane.queue.append(one)
        if lane.claimed.isdisjoint(one.claims):  # otherwise its turn comes when the batch ends that has its seat
            self._ready(ask.event_id, lane)
        try:
            verdicts = await asyncio.wait_for(asyncio.shield(one.answer), DEADLINE_S)
        except TimeoutError:
            # Not taken yet: it never will be. Taken: it commits or not, and nobody here can say which.
            one.answer.cancel()
            raise (OutcomeUnknown if one.is_taken else Busy) from None
        except asyncio.CancelledError:
            one.answer.cancel()
            raise
        finally:
            self._waiting -= 1
        self._failures.note(ask, verdicts)
        return verdicts

    async def close(self) -> None:
        """Take nothing more, and bring everything that was taken to its end."""
        self._is_closing = True
        while self._running or self._aside or any(lane.queue for lane in self._lanes.values()):
            self._pump()
            if self._running:
                await asyncio.wait(self._running, return_when=asyncio.FIRST_COMPLETED)
            else:
                await asyncio.sleep(ROUND_WAIT_S)  # asks that stand aside for a moment come back by themselves

    def _ready(self, event_id: UUID, lane: _Lane) -> None:
        """Put a lane into the ring if it can go; everybody of this turn of the loop goes together."""
        if lane.queue and lane.under_way < BATCHES_PER_LANE and not lane.is_in_ring:
            lane.is_in_ring = True
            self._ring.append((event_id, lane))
        if not self._is_pumping:
            self._is_pumping = True
            asyncio.get_running_loop().call_soon(self._pump)

    def _pump(self) -> None:
        self._is_pumping = False
        while self._ring and self._free:
            event_id, lane = self._ring.popleft()
            lane.is_in_ring = False
            batch = lane.take(time.monotonic())
            if not batch:
                self._drop(event_id, lane)
                continue
            self._free -= 1
            lane.under_way += 1
            task = asyncio.create_task(self._run(event_id, lane, batch))
            self._running.add(task)
            task.add_done_callback(self._running.discard)
            if lane.queue and lane.under_way < BATCHES_PER_LANE:
                lane.is_in_ring = True
                self._ring.append((event_id, lane))

    def _drop(self, event_id: UUID, lane: _Lane) -> None:
        """A lane with nothing in it knows nothing: forget it."""
        if not lane.queue and not lane.under_way and self._lanes.get(event_id) is lane:
            del self._lanes[event_id]

    async def _run(self, event_id: UUID, lane: _Lane, batch: list[_Waiting]) -> None:
        try:
            await self._commit(lane, batch)
        finally:
            for one in batch:
                lane.claimed -= one.claims
            lane.under_way -= 1
            self._free += 1
            if lane.queue:
                self._ready(event_id, lane)
            else:
                self._drop(event_id, lane)
            if self._ring and not self._is_pumping:
                self._is_pumping = True
                asyncio.get_running_loop().call_soon(self._pump)

    async def _commit(self, lane: _Lane, batch: list[_Waiting]) -> None:
        """One call for all; when it fails, one for each, so that one poisoned ask does not fail the others."""
        began = time.perf_counter()
        try:
            await origins.remember(self._db, batch[0].ask.organization_id, (one.ask.origin for one in batch))
            verdicts = await store.reserve_batch(self._db.call, [one.ask for one in batch])
        except OutcomeUnknown as unknown:
            await self._settle(batch, unknown)
            return
        except Exception as failed:  # noqa: BLE001 - whatever it is, each ask is tried by itself
            is_away = isinstance(failed, Busy)  # no connection to be had, so nothing was asked
            if not isinstance(failed, LostRace) and (is_away or len(batch) == 1):
                for one in batch:
                    one.fail(failed)
                return
            log.warning("lane_batch_split", asks=len(batch), error=type(failed).__name__)
            for one in batch:
                await self._alone(lane, one)
            return
        metrics.LANE_BATCH_ASKS.observe(len(batch))
        metrics.LANE_BATCH_SECONDS.observe(time.perf_counter() - began)
        for one, said in zip(batch, verdicts, strict=True):
            await self._said(lane, one, said)
        _refuse_followers(lane.queue, zip(batch, verdicts, strict=True))

    async def _alone(self, lane: _Lane, one: _Waiting) -> None:
        """One ask by itself, tried again while it loses races."""
        for wait in (*RETRY_WAITS_S, None):
            if one.answer.done():  # nobody waits for it any more, and nothing was done
                return
            try:
                verdicts = await store.reserve_batch(self._db.call, [one.ask])
            except LostRace as lost:
                if wait is None:
                    one.fail(lost)
                    return
                await asyncio.sleep(wait)
            except OutcomeUnknown as unknown:
                await self._settle([one], unknown)
                return
            except Exception as failed:  # noqa: BLE001 - whatever it is, it is this ask's and nobody else's
                one.fail(failed)
                return
            else:
                await self._said(lane, one, verdicts[0])
                _refuse_followers(lane.queue, [(one, verdicts[0])])
                return

    async def _said(self, lane: _Lane, one: _Waiting, said: list[Verdict]) -> None:
        outcomes = {verdict.outcome for verdict in said}
        if Outcome.ALONE in outcomes:
            await self._alone(lane, one)
        elif outcomes & LATER:
            self._put_off(lane, one, said)
        else:
            one.say(said)

    def _put_off(self, lane: _Lane, one: _Waiting, said: list[Verdict]) -> None:
        """Somebody is at a seat: come again in a moment, but not for ever."""
        one.rounds += 1
        if one.rounds > ROUNDS_MAX:
            one.say([Verdict(outcome=Outcome.SEAT_GONE) for _ in said])
            return
        one.is_taken = False
        self._aside += 1

        def back() -> None:
            self._aside -= 1
            self._lanes.setdefault(one.ask.event_id, lane)
            here = self._lanes[one.ask.event_id]
            here.queue.appendleft(one)
            self._ready(one.ask.event_id, here)

        asyncio.get_running_loop().call_later(ROUND_WAIT_S, back)

    async def _settle(self, batch: Sequence[_Waiting], unknown: OutcomeUnknown) -> None:
        """Nobody knows whether a batch was committed: what is there was. What is not might still come, and says so."""
        found = {}
        organization_id = batch[0].ask.organization_id
        ids = [item.hold_id for one in batch for item in one.ask.items]
        for _ in range(SETTLE_TRIES):
            try:
                async with self._db.transaction(organization_id) as conn:
                    found = await store.find_holds(conn, organization_id, ids)
                break
            except (Busy, OutcomeUnknown):  # reading changes nothing: it may simply be done again
                await asyncio.sleep(SETTLE_WAIT_S)
        for one in batch:
            holds = [found.get(item.hold_id) for item in one.ask.items]
            if all(holds):
                one.say(
                    [
                        Verdict(outcome=Outcome.CREATED, hold_id=hold.id, until=hold.expires_at)
                        for hold in holds
                        if hold is not None
                    ]
                )
            else:
                one.fail(unknown)


def _refuse_followers(queue: Iterable[_Waiting], told: Iterable[tuple[_Waiting, list[Verdict]]]) -> None:
    """Those who wait for the very seat that somebody was just given, or was just refused: one look at the queue."""
    known: dict[UUID, tuple[Verdict, UUID | None]] = {}
    for first, said in told:
        if first.seat is None or said[0].outcome not in REFUSING_FOLLOWERS:
            continue
        if said[0].outcome is Outcome.SEAT_NOT_AVAILABLE:
            known[first.seat] = said[0], None
        else:
            held = Verdict(outcome=Outcome.SEAT_HELD, until=said[0].until, version=said[0].version, state="held")
            known[first.seat] = held, said[0].holder or first.ask.user_id
    if not known:
        return
    for one in queue:
        verdict, owner = known.get(one.seat, (None, None)) if one.seat else (None, None)
        # What was asked with a key may have been answered before: only PostgreSQL knows.
        if verdict and one.ask.user_id != owner and one.ask.key is None:
            one.say([verdict])


class Failures:
    """Asks that were refused, for the journal: gathered, and written together a few times a second."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._kept: list[tuple[Ask, Outcome]] = []
        self._dropped = 0

    def note(self, ask: Ask, verdicts: Sequence[Verdict]) -> None:
        """Remember an ask that was refused; beyond measure only that there were more."""
        refused = next((verdict.outcome for verdict in verdicts if verdict.outcome not in GRANTED), None)
        metrics.HOLD_ASKS.labels(refused or verdicts[0].outcome).inc()
        if refused is None:
            return
        if len(self._kept) < ASKS_MAX:
            self._kept.append((ask, refused))
        else:
            self._dropped += 1

    async def flush(self) -> None:
        """Write down what was refused: a fact for each event, with who asked for what and why not."""
        kept, self._kept = self._kept, []
        dropped, self._dropped = self._dropped, 0
        if dropped:
            log.warning("reserve_failures_not_kept", count=dropped)
        by_event: dict[tuple[OrganizationId, UUID], list[tuple[Ask, Outcome]]] = {}
        for ask, outcome in kept:
            by_event.setdefault((ask.organization_id, ask.event_id), []).append((ask, outcome))
        for (organization_id, event_id), refused in by_event.items():
            facts = [
                Fact(
                    kind="seat_reserve_failed",
                    organization_id=organization_id,
                    event_id=event_id,
                    data={"count": len(some), "attempts": [_told(ask, outcome) for ask, outcome in some]},
                )
                for some in (
                    refused[first : first + ATTEMPTS_PER_FACT] for first in range(0, len(refused), ATTEMPTS_PER_FACT)
                )
            ]
            try:
                async with self._db.transaction(organization_id) as conn:
                    await record_all(conn, facts)
            except Busy:  # nothing of it was written; the next flush comes soon
                self._kept = (refused + self._kept)[:ASKS_MAX]
                log.warning("reserve_failures_put_off", event_id=str(event_id), count=len(refused))


def _told(ask: Ask, outcome: Outcome) -> dict[str, object]:
    seats = [str(item.seat_id) for item in ask.items if item.seat_id]
    zones = [str(item.zone_id) for item in ask.items if item.zone_id]
    return {
        "user_id": str(ask.user_id),
        "request_id": str(ask.request_id),
        "reason": outcome,
        **({"seat_ids": seats} if seats else {"zone_ids": zones}),
    }
