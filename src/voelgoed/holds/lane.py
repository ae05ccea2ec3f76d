"""Lanes: how asks for holds come to PostgreSQL. Those that arrive while one batch commits form the next.

Each event has a lane in each process. A lane has its asks in the order of arrival and at most two batches under way,
one while other events sell as well: a crowd at one must not have every processor. At most one of them asks for places
by number: it may wait for its zones, and must not keep the seats waiting.
Lanes that have something to do stand in a ring, and each turn takes one batch to one of few connections. So a hot event
fills its batches and leaves the others their turns. An ask that comes alone goes at once; beside a batch of seats the
next goes when it is worth it, and otherwise when that one has ended.
"""

import asyncio
import contextlib
import contextvars
import time
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from uuid import UUID

import structlog

from voelgoed.db import Database
from voelgoed.errors import Busy, DomainError, LostRace, OutcomeUnknown
from voelgoed.holds import store
from voelgoed.holds.availability import Availability
from voelgoed.holds.failures import Failures
from voelgoed.holds.model import Ask, Hold, Outcome, SeatName, Verdict
from voelgoed.holds.waiting import Lane, Said, Waiting
from voelgoed.ids import OrganizationId
from voelgoed.journal import origins
from voelgoed.telemetry import metrics

log = structlog.get_logger(__name__)

CONNECTIONS: Final = 4
ITEMS_PER_BATCH: Final = 256
BATCHES_PER_LANE: Final = 2
WORTH_A_SECOND: Final = 64
"""So many must wait before seats go beside a batch of seats: a few that hurry ahead leave the rest to wait for them."""
ITEMS_IN_COMPANY: Final = 16
"""A small batch is soon made and soon answered: whoever asks for another event waits for that, too."""
COMPANY_S: Final = 1.0
"""How long an event that was asked for counts as one that sells."""
ASKS_PER_LANE_MAX: Final = 2_000
ASKS_MAX: Final = 10_000
ASKS_PER_PERSON_MAX: Final = 20
"""More than anybody needs; those for one event go one after the other. Any number would keep everybody else out."""
TOO_MANY_WAIT_S: Final = 1
SELLING_S: Final = 10.0
"""So long after the last ask a sale is not over yet: what would keep people waiting can itself wait."""
CROWD: Final = 2_000
CROWDED_S: Final = 0.5
"""Who comes when so many wait, or to an event whose asks wait so long, is refused before anything is done for them.
Half a second's work, however fast the machine is: behind more of it asks would be late before they are taken.
"""
DEADLINE_S: Final = 3.0
TELLING_S: Final = 0.002
"""For so long answers of a batch go out at once."""
READ_AT_ONCE: Final = 2
ROUNDS_MAX: Final = 3
ROUND_WAIT_S: Final = 0.1
"""Three rounds of this for a seat at which somebody is; then it is theirs."""
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


Name = tuple[OrganizationId, UUID]
"""Of a lane: whose, and which event. Anybody may ask for any id, so the event alone is not enough."""


class Lanes:
    """One per process."""

    def __init__(self, db: Database, failures: Failures, availability: Availability) -> None:
        self._db = db
        self._failures = failures
        self._availability = availability
        self._lanes: dict[Name, Lane] = {}
        self._ring: deque[tuple[Name, Lane]] = deque()
        self._free = CONNECTIONS
        self._waiting = 0
        self._of_person: dict[UUID, int] = {}  # of those, whoever has limits
        self._due: deque[Waiting] = deque()  # the same wait for all, so the first of them is the next to be late
        self._late: asyncio.TimerHandle | None = None
        self._aside = 0
        self._read_now = 0
        self._slow: dict[str, OrganizationId] = {}  # events whose last batch had waited for too long
        self._asked_last: Name | None = None
        self._asked_at = self._company_at = float("-inf")
        self._context = contextvars.copy_context()  # not that of whoever happens to wake it: a batch is everybody's
        self._running: set[asyncio.Task[None]] = set()
        self._beside: set[asyncio.Task[None]] = set()
        self._is_pumping = False
        self._is_closing = False

    async def ask(self, ask: Ask) -> list[Verdict]:
        """Ask, and wait for what PostgreSQL says."""
        answer: asyncio.Future[list[Verdict]] = asyncio.get_running_loop().create_future()

        def tell(said: Said) -> None:
            if answer.done():
                return
            if isinstance(said, Exception):
                answer.set_exception(said)
            else:
                answer.set_result(said)

        one = self.put(ask, tell)
        try:
            return await answer
        except asyncio.CancelledError:
            self._forget(one)
            raise

    def _forget(self, one: Waiting | None) -> None:
        """Nobody waits for it any more: what is not under way yet never will be."""
        if one is not None and not one.is_done:
            one.is_done = True
            self._left(one.ask)

    def _left(self, ask: Ask) -> None:
        """One waits less."""
        self._waiting -= 1
        if not ask.is_staff:
            self._of_person[ask.user_id] -= 1
            if not self._of_person[ask.user_id]:
                del self._of_person[ask.user_id]

    def put(self, ask: Ask, tell: Callable[[Said], None]) -> Waiting | None:
        """Ask, and be told what PostgreSQL says, never before this returns. A crowd beyond measure is refused here.

        What it has said of the seat within a second need not be asked again, and nobody has any number of asks waiting.
        A request with an idempotency key is always decided by PostgreSQL, which remembers the result.
        """
        loop = asyncio.get_running_loop()
        if barred := self._known_refusal(ask):
            said = [barred] * len(ask.items)
            self._failures.note(ask, said)
            loop.call_soon(tell, said)
            return None
        name = ask.organization_id, ask.event_id
        lane = self._lanes.get(name)
        if self._is_closing or self._waiting >= ASKS_MAX or (lane and len(lane.queue) >= ASKS_PER_LANE_MAX):
            metrics.LANE_SHED.inc()
            busy = Busy()
            self._failures.note(ask, busy)
            raise busy
        if lane is None:
            lane = self._lanes[name] = Lane()

        def ended(one: Waiting, said: Said) -> None:
            self._left(one.ask)
            self._failures.note(one.ask, said)
            tell(said)

        one = Waiting(ask, ended, time.monotonic())
        if name != self._asked_last:
            if one.since - self._asked_at < COMPANY_S:
                self._company_at = one.since
            self._asked_last = name
        self._asked_at = one.since
        self._waiting += 1
        if not ask.is_staff:
            self._of_person[ask.user_id] = self._of_person.get(ask.user_id, 0) + 1
        lane.queue.append(one)
        one.is_held_up = not lane.claimed.isdisjoint(one.claims)
        if lane.may_go(one):  # otherwise its turn comes when the batch ends that is in its way
            self._ready(name, lane)
        self._watch(loop, one)
        return one

    def _known_refusal(self, ask: Ask) -> Verdict | None:
        """Return the refusal that needs no question to PostgreSQL, if there is one.

        With an idempotency key it is Busy instead: only what PostgreSQL decides is remembered under the key.
        """
        barred = None if ask.key else self._availability.refusal(ask)
        if barred or ask.is_staff or self._of_person.get(ask.user_id, 0) < ASKS_PER_PERSON_MAX:
            return barred
        if ask.key:
            raise Busy
        return Verdict(outcome=Outcome.RATE_LIMITED, until=datetime.now(UTC) + timedelta(seconds=TOO_MANY_WAIT_S))

    def is_selling(self) -> bool:
        """Whether anybody has asked for a place of late."""
        return time.monotonic() - self._asked_at < SELLING_S

    def is_any_crowded(self) -> bool:
        """Whether there is a crowd at some event."""
        return self._waiting >= ITEMS_PER_BATCH and (bool(self._slow) or self._waiting >= CROWD)

    def is_crowded(self, event_id: str) -> bool:
        """Whether so many wait, or for so long at this event, that whoever comes now is better told to come again."""
        return self.is_any_crowded() and (self._waiting >= CROWD or event_id in self._slow)

    def _watch(self, loop: asyncio.AbstractEventLoop, one: Waiting) -> None:
        """Nobody waits for ever: one timer for all who wait, those who were answered need none."""
        while self._due and self._due[0].is_done:
            self._due.popleft()
        self._due.append(one)
        if self._late is None:
            self._late = loop.call_later(DEADLINE_S, self._give_up)

    def _give_up(self) -> None:
        now = time.monotonic()
        while self._due and (self._due[0].is_done or now - self._due[0].since >= DEADLINE_S):
            self._due.popleft().give_up()
        self._late = None
        if self._due:
            wait = self._due[0].since + DEADLINE_S - now
            self._late = asyncio.get_running_loop().call_later(wait, self._give_up)

    def given(self, ask: Ask, verdicts: Sequence[Verdict]) -> list[tuple[Hold, SeatName | None]] | None:
        """Holds that were just given, as far as they need not be read again."""
        return self._availability.given(ask, verdicts)

    async def known(self, ask: Ask, verdicts: Sequence[Verdict]) -> list[tuple[Hold, SeatName | None]] | None:
        """The same for whoever can wait.

        A crowd at an event that this process does not know yet waits for its map; the first few read for themselves.
        """
        given = self.given(ask, verdicts)
        if given is None and self._read_now >= READ_AT_ONCE and all(one.outcome is Outcome.CREATED for one in verdicts):
            with contextlib.suppress(DomainError):  # then it is read like the first ones
                await self._availability.load(ask.organization_id, ask.event_id)
                given = self._availability.given(ask, verdicts)
        return given

    def go_on(self, work: Coroutine[Any, Any, None]) -> None:
        """Bring something to its end for whoever was told only a part of it so far."""
        task = asyncio.get_running_loop().create_task(work)
        self._beside.add(task)
        task.add_done_callback(self._beside.discard)

    @contextlib.contextmanager
    def reading(self) -> Iterator[None]:
        """Somebody reads holds that were just given."""
        self._read_now += 1
        try:
            yield
        finally:
            self._read_now -= 1

    def doubt(self, event_id: UUID, seat_ids: Iterable[UUID]) -> None:
        """Something was done to seats past the lanes: whoever asks for one asks PostgreSQL."""
        self._availability.doubt(event_id, seat_ids)

    async def close(self) -> None:
        """Take nothing more, and bring everything that was taken to its end."""
        self._is_closing = True
        while self._running or self._aside or any(lane.queue for lane in self._lanes.values()):
            self._pump()
            if self._running:
                await asyncio.wait(self._running, return_when=asyncio.FIRST_COMPLETED)
            else:
                await asyncio.sleep(ROUND_WAIT_S)  # asks that stand aside for a moment come back by themselves
        if self._beside:
            await asyncio.wait(self._beside)

    def _ready(self, name: Name, lane: Lane) -> None:
        """Put a lane into the ring if it can go; everybody of this turn of the loop goes together."""
        self._line_up(name, lane)
        if self._ring and not self._is_pumping:
            self._is_pumping = True
            asyncio.get_running_loop().call_soon(self._pump, context=self._context)

    def _pump(self) -> None:
        self._is_pumping = False
        while self._ring and self._free:
            name, lane = self._ring.popleft()
            lane.is_in_ring = False
            if not self._may_begin(lane):
                continue
            now = time.monotonic()
            batch = lane.take(now - DEADLINE_S, ITEMS_IN_COMPANY if self._is_in_company() else ITEMS_PER_BATCH)
            if not batch:
                self._drop(name, lane)
                continue
            first = next((one for one in batch if not one.rounds and not one.is_held_up), None)
            if first is not None:
                self._mark(name, now - first.since)
            self._free -= 1
            lane.under_way += 1
            task = asyncio.create_task(self._run(name, lane, batch))
            self._running.add(task)
            task.add_done_callback(self._running.discard)
            self._line_up(name, lane)

    def _mark(self, name: Name, waited_s: float) -> None:
        """Remember whether asks for an event wait too long: of its own organization's, others only know its id."""
        organization_id, event_id = name
        if waited_s > CROWDED_S:
            found = self._availability.peek(event_id)
            if found is not None and found.organization_id == organization_id:
                self._slow[str(event_id)] = organization_id
        elif self._slow and self._slow.get(str(event_id)) == organization_id:
            del self._slow[str(event_id)]

    def _line_up(self, name: Name, lane: Lane) -> None:
        """Put a lane into the ring if it can go."""
        if not lane.is_in_ring and self._may_begin(lane):
            lane.is_in_ring = True
            self._ring.append((name, lane))

    def _may_begin(self, lane: Lane) -> bool:
        """Whether a lane may have one more batch under way: fewer while another event sells, too."""
        if not lane.queue:
            return False
        if not lane.under_way:
            return True
        if lane.under_way >= BATCHES_PER_LANE or self._is_in_company():
            return False
        is_mixed = lane.is_at_zones or lane.queue[0].is_by_number  # seats go beside places, and places beside seats
        return is_mixed or lane.is_in_trouble or len(lane.queue) >= WORTH_A_SECOND

    def _is_in_company(self) -> bool:
        return time.monotonic() - self._company_at < COMPANY_S

    def _drop(self, name: Name, lane: Lane) -> None:
        """A lane with nothing in it knows nothing: forget it."""
        if not lane.queue and not lane.under_way and self._lanes.get(name) is lane:
            del self._lanes[name]
            self._mark(name, 0.0)

    async def _run(self, name: Name, lane: Lane, batch: list[Waiting]) -> None:
        verdicts: list[list[Verdict]] = []
        try:
            verdicts = await self._commit(lane, batch)
        finally:
            lane.done(batch)
            lane.under_way -= 1
            self._free += 1
            if not lane.queue:
                self._drop(name, lane)
            self._ready(name, lane)
        if verdicts:
            await self._tell(lane, batch, verdicts)

    async def _commit(self, lane: Lane, batch: list[Waiting]) -> list[list[Verdict]]:
        """One call for all: what is to be said to each.

        When it fails, one for each, so that one poisoned ask does not fail the others; they are told here.
        """
        began = time.perf_counter()
        try:
            verdicts = await self._reserve([one.ask for one in batch])
        except OutcomeUnknown as unknown:
            with self._in_trouble(lane, batch):
                await self._settle(batch, unknown)
            return []
        except Exception as failed:  # noqa: BLE001 - whatever it is, each ask is tried by itself
            is_refused = isinstance(failed, Busy)  # disk full, read only, too slow: one by one would only add load
            if not isinstance(failed, LostRace) and (is_refused or len(batch) == 1):
                for one in batch:
                    one.say(failed)
                return []
            log.warning("lane_batch_split", asks=len(batch), error=type(failed).__name__)
            with self._in_trouble(lane, batch):
                for one in batch:
                    await self._alone(lane, one)
            return []
        metrics.LANE_BATCH_ASKS.observe(len(batch))
        metrics.LANE_BATCH_SECONDS.observe(time.perf_counter() - began)
        self._availability.learn([one.ask for one in batch], verdicts)
        _refuse_followers(lane.queue, zip(batch, verdicts, strict=True))
        return verdicts

    @contextlib.contextmanager
    def _in_trouble(self, lane: Lane, batch: Sequence[Waiting]) -> Iterator[None]:
        """What takes seconds must not keep those waiting who come for other seats, however few they are."""
        lane.is_in_trouble = True
        self._ready((batch[0].ask.organization_id, batch[0].ask.event_id), lane)
        try:
            yield
        finally:
            lane.is_in_trouble = False

    async def _tell(self, lane: Lane, batch: Sequence[Waiting], verdicts: Sequence[list[Verdict]]) -> None:
        """Answer a batch, part by part, while PostgreSQL is at the next one."""
        until = time.monotonic() + TELLING_S
        for one, said in zip(batch, verdicts, strict=True):
            self._said(lane, one, said)
            if time.monotonic() >= until:
                await self._give_way()
                until = time.monotonic() + TELLING_S

    async def _give_way(self) -> None:
        """Whoever was answered goes on, and another event's turn comes in between."""
        await asyncio.sleep(0)

    async def _reserve(self, asks: Sequence[Ask]) -> list[list[Verdict]]:
        """One call, with where the asks came from as far as that stands nowhere yet."""
        whence = origins.ids_today(asks[0].organization_id, [ask.origin for ask in asks])
        new = origins.unwritten(whence, [ask.origin for ask in asks])
        verdicts = await store.reserve_batch(self._db.call, asks, whence, new, clock_latest=self._db.clock_latest())
        origins.written(new)
        _log_created(asks, verdicts)
        return verdicts

    async def _alone(self, lane: Lane, one: Waiting) -> None:
        """One ask by itself, tried again while it loses races."""
        for wait in (*RETRY_WAITS_S, None):
            if one.is_done:  # nobody waits for it any more, and nothing was done
                return
            try:
                verdicts = await self._reserve([one.ask])
            except LostRace as lost:
                if wait is None:
                    one.say(lost)
                    return
                await asyncio.sleep(wait)
            except OutcomeUnknown as unknown:
                await self._settle([one], unknown)
                return
            except Exception as failed:  # noqa: BLE001 - whatever it is, it is this ask's and nobody else's
                one.say(failed)
                return
            else:
                self._availability.learn([one.ask], verdicts)
                self._said(lane, one, verdicts[0])
                _refuse_followers(lane.queue, [(one, verdicts[0])])
                return

    def _said(self, lane: Lane, one: Waiting, said: list[Verdict]) -> None:
        if any(verdict.outcome is Outcome.BUSY for verdict in said):
            self._put_off(lane, one, said)
        else:
            one.say(said)

    def _put_off(self, lane: Lane, one: Waiting, said: list[Verdict]) -> None:
        """Somebody is at a seat: come again in a moment, but not for ever."""
        one.rounds += 1
        if one.rounds > ROUNDS_MAX:
            # Nothing was decided, so nothing is remembered under a key: the client may send the same request again.
            one.say(Busy() if one.ask.key else [Verdict(outcome=Outcome.SEAT_GONE) for _ in said])
            return
        one.is_taken = False
        self._aside += 1

        def back() -> None:
            self._aside -= 1
            name = one.ask.organization_id, one.ask.event_id
            here = self._lanes.setdefault(name, lane)
            here.queue.appendleft(one)
            self._ready(name, here)

        asyncio.get_running_loop().call_later(ROUND_WAIT_S, back)

    async def _settle(self, batch: Sequence[Waiting], unknown: OutcomeUnknown) -> None:
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
                one.say(unknown)


def _log_created(asks: Sequence[Ask], verdicts: Sequence[Sequence[Verdict]]) -> None:
    """One line for what one commit brought: a line for each hold would cost more than the hold."""
    holds = [
        {
            "hold_id": verdict.hold_id,
            "seat_id": item.seat_id,
            "zone_id": item.zone_id,
            "quantity": item.quantity,
            "user_id": ask.user_id,
            "held_until": verdict.until,
            "request_id": ask.request_id,
        }
        for ask, said in zip(asks, verdicts, strict=True)
        for item, verdict in zip(ask.items, said, strict=True)
        if verdict.outcome is Outcome.CREATED
    ]
    if holds:
        first = asks[0]
        log.info("seat_holds_created", org_id=first.organization_id, event_id=first.event_id, holds=holds)


def _refuse_followers(queue: Iterable[Waiting], told: Iterable[tuple[Waiting, list[Verdict]]]) -> None:
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
    for one in tuple(queue):  # whoever is told may ask again at once
        verdict, owner = known.get(one.seat, (None, None)) if one.seat else (None, None)
        # What was asked with a key may have been answered before: only PostgreSQL knows.
        if verdict and one.ask.user_id != owner and one.ask.key is None:
            one.say([verdict])
