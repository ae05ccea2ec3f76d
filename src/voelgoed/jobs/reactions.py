"""Reactions: when a fact of this kind is committed, this must follow. Every fact once at least, in the journal's order.

A reaction writes in the transaction that moves the reader on, so what it writes is there exactly once. What leaves
the database (mail, calls to others) is a job that it enqueues there.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

import structlog

from voelgoed.accounts.signing import PASSWORD_RESET_REQUESTED
from voelgoed.db import Conn, Database, meaning_of
from voelgoed.errors import Unavailable
from voelgoed.jobs import store
from voelgoed.jobs.queue import SEND_PASSWORD_RESET, enqueue
from voelgoed.journal import reader
from voelgoed.journal.model import Batch, Position, RecordedFact
from voelgoed.telemetry import metrics

log = structlog.get_logger(__name__)

READER = "reactions"
FACTS_PER_BATCH = 2_000
"""Most of them nothing follows from: they are looked at in PostgreSQL, and never sent."""
BATCHES_PER_TICK = 20
BATCH_S = 0.5
"""How long a batch goes on taking facts: its transaction holds up every reader of the journal."""
REACTION_TIMEOUT_S = 0.5
FAILURES_MAX = 10

React = Callable[[Conn, RecordedFact], Awaitable[object]]


@dataclass(frozen=True, slots=True)
class Reaction:
    """What follows from a fact. `react` gets a system transaction: whose record it is stands in the fact."""

    name: str
    react: React


async def ask_for_password_reset_mail(conn: Conn, fact: RecordedFact) -> None:
    """Enqueue the mail; the fact names the request, never the secret of its link."""
    asked = str(fact.data["one_time_id"])
    await enqueue(conn, SEND_PASSWORD_RESET, {"one_time_id": asked}, dedupe_key=f"password_reset:{asked}")


REACTIONS: Final[Mapping[str, Sequence[Reaction]]] = MappingProxyType(
    {PASSWORD_RESET_REQUESTED: [Reaction("ask_for_password_reset_mail", ask_for_password_reset_mail)]}
)
"""By the kind of fact. The higher domains add theirs here."""


class _ReactionFailed(Exception):
    """One reaction to the fact in hand went wrong, and everything that followed from this fact with it."""

    def __init__(self, reaction: Reaction) -> None:
        super().__init__(reaction.name)
        self.reaction = reaction


@dataclass(slots=True)
class Reactor:
    """Follows the journal for all reactions. Any number of processes may tick; one at a time does the work.

    A fact whose reaction fails holds up those behind it: order is part of the promise. So it is tried a few times
    only, once per tick, and then goes into the log for a person to look at.
    """

    db: Database
    reactions: Mapping[str, Sequence[Reaction]] = field(default_factory=lambda: REACTIONS)
    reader: str = READER
    _stuck_at: Position | None = None
    _failures: dict[str, int] = field(default_factory=dict)

    async def tick(self) -> None:
        """Follow up to 40,000 facts, a short transaction for each batch."""
        for _ in range(BATCHES_PER_TICK):
            if not await self._batch():
                return

    async def _batch(self) -> bool:
        """Follow one batch; whether another should follow at once."""
        async with self.db.system_transaction() as conn:
            is_ours = await store.lock_reader(conn, self.reader)
            place = await reader.load_position(conn, self.reader)
            if place is None:  # nobody has ever been here: the place is made, for the next round
                return await reader.save_position(conn, self.reader, Position(xid=0, seq=0))
            if not is_ours:  # another process is at it; to write here would be to wait for it
                return False
            batch = await reader.read_kinds_after(conn, place, tuple(self.reactions), limit=FACTS_PER_BATCH)
            reached = await self._follow(conn, batch)
            if reached is not None and reached != place:
                await reader.save_position(conn, self.reader, reached)
            return reached == batch.position and not batch.is_last

    async def _follow(self, conn: Conn, batch: Batch) -> Position | None:
        """Let everything follow from these facts until one fails or time is up; how far everything is dealt with."""
        reached: Position | None = None
        until = time.monotonic() + BATCH_S
        for fact in batch.facts:
            wanted = self.reactions.get(fact.kind, ())
            if wanted and time.monotonic() > until and reached is not None:
                return reached
            if wanted and not await self._follow_one(conn, fact, wanted):
                return reached
            reached = fact.position
        return batch.position

    async def _follow_one(self, conn: Conn, fact: RecordedFact, wanted: Sequence[Reaction]) -> bool:
        """All that follows from one fact, or nothing of it; whether the fact is dealt with."""
        if self._stuck_at != fact.position:
            self._stuck_at, self._failures = fact.position, {}
        await conn.execute("savepoint fact")
        try:
            for reaction in wanted:
                if self._failures.get(reaction.name, 0) < FAILURES_MAX:
                    await self._react(conn, fact, reaction)
        except _ReactionFailed as failed:
            await conn.execute("rollback to savepoint fact")
            return self._failed(fact, failed)
        await conn.execute("release savepoint fact")
        return True

    async def _react(self, conn: Conn, fact: RecordedFact, reaction: Reaction) -> None:
        try:
            async with asyncio.timeout(REACTION_TIMEOUT_S):
                await reaction.react(conn, fact)
        except Exception as failed:
            if conn.is_closed() or meaning_of(failed) is Unavailable:
                raise  # the database's failure, not the reaction's
            raise _ReactionFailed(reaction) from failed

    def _failed(self, fact: RecordedFact, failed: _ReactionFailed) -> bool:
        """Count; the fact is tried again, without this reaction once it has failed too often."""
        name = failed.reaction.name
        count = self._failures[name] = self._failures.get(name, 0) + 1
        is_given_up = count >= FAILURES_MAX
        metrics.REACTIONS_FAILED.labels("given_up" if is_given_up else "retried").inc()
        log.log(
            40 if is_given_up else 30,
            "reaction_given_up" if is_given_up else "reaction_failed",
            reaction=name,
            failures=count,
            kind=fact.kind,
            xid=fact.xid,
            seq=fact.seq,
            error=type(failed.__cause__).__name__,
            exc_info=failed.__cause__,
        )
        return False
