"""Asks that came to nothing, for the journal: gathered, and written together a few times a second."""

from collections.abc import Sequence
from typing import Final
from uuid import UUID

import structlog

from voelgoed.db import Database
from voelgoed.errors import Busy, DomainError, LostRace, OutcomeUnknown
from voelgoed.holds.model import GRANTED, Ask, Verdict
from voelgoed.holds.refusals import ReservationFailed
from voelgoed.ids import OrganizationId
from voelgoed.journal.model import Fact
from voelgoed.journal.recording import record_all
from voelgoed.telemetry import metrics

log = structlog.get_logger(__name__)

KEPT_MAX: Final = 10_000
ATTEMPTS_PER_FACT: Final = 100


class Failures:
    """One per process."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._kept: list[tuple[Ask, str]] = []
        self._dropped = 0

    def note(self, ask: Ask, said: Sequence[Verdict] | Exception) -> None:
        """Count an ask by what was said to it, and remember it when that was a refusal."""
        if isinstance(said, Exception):
            self._note_failed(ask, said)
            return
        for verdict in said:
            if verdict.outcome not in GRANTED:
                metrics.count(metrics.hold_asks(verdict.outcome))
                self.keep(ask, verdict.outcome)
                return
        metrics.count(metrics.hold_asks(said[0].outcome))

    def _note_failed(self, ask: Ask, failed: Exception) -> None:
        code = failed.code if isinstance(failed, DomainError) else "error"
        if isinstance(failed, LostRace):
            code = ReservationFailed.code
        metrics.count(metrics.hold_asks(code))
        if not isinstance(failed, OutcomeUnknown):  # it may well have been granted
            self.keep(ask, code)

    def keep(self, ask: Ask, reason: str) -> None:
        """Remember an ask that came to nothing; beyond measure only that there were more."""
        if len(self._kept) < KEPT_MAX:
            self._kept.append((ask, reason))
        else:
            self._dropped += 1

    async def flush(self) -> None:
        """Write down what was refused: a fact for each event, with who asked for what and why not.

        What fails at one event does not keep the others; it is put back, and the next flush comes soon. When nobody
        knows whether it was written, it may come to be told twice: its requests have ids, so a reader can tell.
        """
        kept, self._kept = self._kept, []
        dropped, self._dropped = self._dropped, 0
        if dropped:
            log.warning("reserve_failures_not_kept", count=dropped)
        by_event: dict[tuple[OrganizationId, UUID], list[tuple[Ask, str]]] = {}
        for ask, reason in kept:
            by_event.setdefault((ask.organization_id, ask.event_id), []).append((ask, reason))
        for (organization_id, event_id), refused in by_event.items():
            try:
                async with self._db.transaction(organization_id) as conn:
                    await record_all(conn, _facts(organization_id, event_id, refused))
            except (Busy, OutcomeUnknown) as failed:
                self._kept = (refused + self._kept)[:KEPT_MAX]
                error = type(failed).__name__
                log.warning("reserve_failures_put_off", event_id=str(event_id), count=len(refused), error=error)
            except Exception as failed:  # whatever it is would be the same next time
                error = type(failed).__name__
                log.exception("reserve_failures_lost", event_id=str(event_id), count=len(refused), error=error)


def _facts(organization_id: OrganizationId, event_id: UUID, refused: Sequence[tuple[Ask, str]]) -> list[Fact]:
    return [
        Fact(
            kind="seat_reserve_failed",
            organization_id=organization_id,
            event_id=event_id,
            data={"count": len(some), "attempts": [_told(ask, reason) for ask, reason in some]},
        )
        for some in (refused[first : first + ATTEMPTS_PER_FACT] for first in range(0, len(refused), ATTEMPTS_PER_FACT))
    ]


def _told(ask: Ask, reason: str) -> dict[str, object]:
    seats = [str(item.seat_id) for item in ask.items if item.seat_id]
    zones = [str(item.zone_id) for item in ask.items if item.zone_id]
    return {
        "user_id": str(ask.user_id),
        "request_id": str(ask.request_id),
        "reason": reason,
        **({"seat_ids": seats} if seats else {"zone_ids": zones}),
    }
