"""Holds after they are given: longer, let go, handed over, sold, lapsed; seats blocked by hand. Each is one call.

The functions behind these lock in one order and read the clock after that (holds/functions.sql). Whoever loses a race
is tried again a few times; a lost connection leaves the outcome open, and says so.
"""

import contextlib
import time
from collections.abc import Sequence
from datetime import datetime
from typing import Final
from uuid import UUID

import structlog

from voelgoed.db import Conn, Database
from voelgoed.errors import DomainError
from voelgoed.events.model import Teller
from voelgoed.holds import store
from voelgoed.holds.model import HandedOver, Standing
from voelgoed.ids import OrganizationId, new_id
from voelgoed.journal import origins
from voelgoed.telemetry import metrics

log = structlog.get_logger(__name__)

EXPIRED_PER_CALL: Final = 500
RELEASED_PER_CALL: Final = 1_000
CALLS_MAX: Final = 20
HANDED_OVER_MAX: Final = 200
"""More than any guest can hold: ten places in five minutes, each for an hour and five minutes at most."""
EVENTS_PER_RUN: Final = 200


async def extend(
    db: Database, organization_id: OrganizationId, event_id: UUID, user_id: UUID, holds: Sequence[UUID], *, by: Teller
) -> list[tuple[UUID, str, datetime | None]]:
    """Give holds five minutes more, once; what is said to each."""
    origin_id = await _origin(db, organization_id, by)
    try:
        rows = await db.attempt(
            lambda: store.extend_holds(db.call, organization_id, event_id, user_id, holds, by.request_id, origin_id)
        )
    except Exception as failed:
        metrics.HOLD_ENDS.labels("extension_failed").inc(len(holds))
        log.error("seat_hold_extension_failed", event_id=str(event_id), error=type(failed).__name__)  # noqa: TRY400 - told above
        raise
    for row in rows:
        said = row["verdict"]
        metrics.HOLD_ENDS.labels("expired_before_checkout" if said == "holds_expired" else said).inc()
        if said == "extended":
            minutes = round((row["expires_at"] - row["created_at"]).total_seconds() / 60)
            _told_move(
                "seat_hold_extended",
                organization_id,
                event_id,
                row["seat_id"],
                "held",
                "held",
                hold_id=str(row["hold_id"]),
                new_expiry_minutes=minutes,
                reason="extended",
            )
    return [(row["hold_id"], row["verdict"], row["expires_at"]) for row in rows]


async def release(
    db: Database,
    organization_id: OrganizationId,
    event_id: UUID,
    holds: Sequence[UUID],
    *,
    user_id: UUID | None,
    by: Teller,
    reason: str,
) -> dict[UUID, str]:
    """Let holds go: somebody's own, or without `user_id` anybody's, by those who may."""
    origin_id = await _origin(db, organization_id, by)
    rows = await db.attempt(
        lambda: store.release_holds(
            db.call, organization_id, event_id, user_id, holds, by.actor_id, by.request_id, origin_id, reason
        )
    )
    for row in rows:
        metrics.HOLD_ENDS.labels(row["verdict"]).inc()
        if row["verdict"] == "released":
            _told_move(
                "seat_hold_released",
                organization_id,
                event_id,
                row["seat_id"],
                "held",
                "available",
                hold_id=str(row["hold_id"]),
                reason=reason,
            )
    return {row["hold_id"]: row["verdict"] for row in rows}


async def hand_over(
    conn: Conn,
    organization_id: OrganizationId,
    guest_id: UUID,
    user_id: UUID,
    *,
    role: str,
    is_staff: bool,
    by: Teller,
) -> list[HandedOver]:
    """Give a guest's holds to an account, as many as it may have, and let the others go; what became of each.

    In the caller's transaction, as the last thing there: the places are locked until it ends. What is to be told of it
    is told by `tell_handed_over`, once that is committed.
    """
    origin_id = origins.ids_today(organization_id, (by.origin,))[0] if by.origin else None
    rows = await store.hand_over_holds(
        conn, organization_id, guest_id, user_id, role, is_staff, HANDED_OVER_MAX, by.request_id, origin_id
    )
    return [HandedOver(**row) for row in rows]


def tell_handed_over(organization_id: OrganizationId, handed: Sequence[HandedOver]) -> None:
    """Count and log what was handed over and is committed."""
    for one in handed:
        metrics.HOLD_ENDS.labels("handed_over" if one.is_kept else "released").inc()
        kind, after = ("seat_hold_handed_over", "held") if one.is_kept else ("seat_hold_released", "available")
        about = {"hold_id": str(one.hold_id), "reason": "signed_in" if one.is_kept else "left_at_sign_in"}
        _told_move(kind, organization_id, one.event_id, one.seat_id, "held", after, **about)


async def convert(
    db: Database,
    organization_id: OrganizationId,
    event_id: UUID,
    user_id: UUID,
    holds: Sequence[UUID],
    *,
    tickets: Sequence[UUID],
    order_id: UUID,
    is_paid: bool,
    by: Teller,
) -> str:
    """Make tickets of a basket, all or nothing. Once the money is taken, a lapsed hold counts while it is free."""
    origin_id = await _origin(db, organization_id, by)
    late = [new_id() for _ in holds]
    said = await db.attempt(
        lambda: store.convert_holds(
            db.call,
            organization_id,
            event_id,
            user_id,
            holds,
            tickets,
            late,
            order_id,
            is_paid,
            by.request_id,
            origin_id,
            clock_latest=db.clock_latest(),
        )
    )
    metrics.HOLD_ENDS.labels("converted_to_ticket" if said == "sold" else said).inc(len(holds))
    if said == "sold":
        sold = []
        with contextlib.suppress(DomainError):  # it is sold, whether or not it can be read again for the log
            async with db.transaction(organization_id) as conn:
                sold = await store.find_tickets(conn, organization_id, tickets)
        for one in sold:
            _told_move(
                "seat_sold",
                organization_id,
                event_id,
                one["seat_id"],
                "held",
                "sold",
                hold_id=str(one["hold_id"]),
                ticket_id=str(one["id"]),
                reason="converted_to_ticket",
            )
    return said


async def block(
    db: Database,
    organization_id: OrganizationId,
    event_id: UUID,
    seats: Sequence[UUID],
    *,
    is_block: bool,
    by: Teller,
    reason: str | None,
) -> dict[UUID, str]:
    """Take seats out of sale by hand, or put them back; what is said to each."""
    origin_id = await _origin(db, organization_id, by)
    rows = await db.attempt(
        lambda: store.block_seats(
            db.call, organization_id, event_id, seats, is_block, by.actor_id, by.request_id, origin_id, reason
        )
    )
    kind = "seat_blocked" if is_block else "seat_unblocked"
    for row in rows:
        if row["verdict"] == "done":
            _told_move(kind, organization_id, event_id, row["seat_id"], row["was"], row["became"], reason=reason)
    return {row["seat_id"]: row["verdict"] for row in rows}


async def void(
    db: Database, organization_id: OrganizationId, event_id: UUID, ticket_id: UUID, *, by: Teller, reason: str
) -> str:
    """Take a ticket back; its place can be sold again."""
    origin_id = await _origin(db, organization_id, by)
    return await db.attempt(
        lambda: store.void_ticket(
            db.call, organization_id, event_id, ticket_id, by.actor_id, by.request_id, origin_id, reason
        )
    )


async def release_all(db: Database, organization_id: OrganizationId, event_id: UUID, *, by: Teller, reason: str) -> int:
    """Let the holds of an event go, a short call at a time, up to many thousands; how many."""
    released = 0
    for _ in range(CALLS_MAX):
        count = await db.attempt(
            lambda: store.release_all_holds(
                db.call, organization_id, event_id, RELEASED_PER_CALL, by.actor_id, by.request_id, reason
            )
        )
        released += count
        if not count:
            break
    metrics.HOLD_ENDS.labels(reason).inc(released)
    log.info("seat_holds_released", org_id=str(organization_id), event_id=str(event_id), count=released, reason=reason)
    return released


async def status(db: Database) -> list[Standing]:
    """What is held, by event, of every organization; the most first."""
    async with db.system_transaction() as conn:
        return await store.list_standing(conn, EVENTS_PER_RUN)


async def reap(db: Database, *, by: Teller) -> int:
    """Tidy lapsed holds away, and what is still held of events that are not sold any more; how many.

    What fails at one event does not keep the others: it is counted, and tried again next time.
    """
    began, done, failed = time.perf_counter(), 0, 0
    async with db.system_transaction() as conn:
        found = await store.list_events_to_tidy(conn, EVENTS_PER_RUN)
    for organization_id, event_id, has_lapsed, closed in found:
        try:
            if has_lapsed:
                done += await _expire(db, organization_id, event_id)
            if closed:
                done += await release_all(db, organization_id, event_id, by=by, reason=f"event_{closed}")
        except Exception as error:
            failed += 1
            log.exception("reaper_failed", event_id=str(event_id), error=type(error).__name__)
    seconds = time.perf_counter() - began
    metrics.REAPER_RUNS.labels("failed" if failed else "done").inc()
    metrics.REAPER_RUN_AT.set_to_current_time()
    metrics.REAPER_HOLDS.inc(done)
    metrics.REAPER_SECONDS.observe(seconds)
    if done or failed:
        log.info(
            "reaper_run",
            expired_holds=done + failed,
            processed_successfully=done,
            processed_failed=failed,
            duration_ms=round(seconds * 1_000, 3),
        )
    return done


async def _expire(db: Database, organization_id: OrganizationId, event_id: UUID) -> int:
    done = 0
    for _ in range(CALLS_MAX):
        count = await db.attempt(
            lambda: store.expire_holds(db.call, organization_id, event_id, EXPIRED_PER_CALL, db.clock_latest())
        )
        done += count
        if count < EXPIRED_PER_CALL:
            break
    metrics.HOLD_ENDS.labels("expired").inc(done)
    if done:  # which seats stands in the journal: there may be thousands
        _told_move(
            "seat_holds_expired", organization_id, event_id, None, "held", "available", count=done, reason="ttl_expired"
        )
    return done


async def _origin(db: Database, organization_id: OrganizationId, by: Teller) -> UUID | None:
    if by.origin is None:
        return None
    return await origins.remember_one(db, organization_id, by.origin)


def _told_move(
    kind: str,
    organization_id: OrganizationId,
    event_id: UUID,
    seat_id: UUID | None,
    before: str,
    after: str,
    **about: object,
) -> None:
    """A line of the log for a place that went from one state to another."""
    log.info(
        kind,
        org_id=str(organization_id),
        event_id=str(event_id),
        seat_id=str(seat_id) if seat_id else None,
        status_before=before,
        status_after=after,
        **about,
    )
