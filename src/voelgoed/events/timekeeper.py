"""The clock's own hand: events that leave it to the clock go live when they begin and end when they are over."""

from uuid import UUID

import structlog

from voelgoed.db import Database
from voelgoed.errors import DomainError
from voelgoed.events import lifecycle, rules, store
from voelgoed.events.catalogue import Catalogue
from voelgoed.events.model import CLOCK, Change, Order
from voelgoed.ids import OrganizationId

log = structlog.get_logger(__name__)

DUE_MAX = 500
STEPS_MAX = 2
"""An event that nobody attended to while the clock stood still goes live and ends in one go."""


async def advance(db: Database, catalogue: Catalogue) -> int:
    """Move what is due, each event in a transaction of its own; how many steps were taken. The next run goes on."""
    async with db.system_transaction() as conn:
        due = await store.list_due(conn, DUE_MAX)
    taken = 0
    for organization_id, event_id in due:
        for _ in range(STEPS_MAX):
            try:
                done = await _step(db, organization_id, event_id)
            except DomainError as refused:  # one event that cannot move must not keep the others
                log.warning("event_not_advanced", event_id=str(event_id), error=refused.code, facts=refused.facts)
                break
            if done is None:
                break
            taken += 1
            await catalogue.announce("event_status_changed", done)
    return taken


async def _step(db: Database, organization_id: OrganizationId, event_id: UUID) -> Change | None:
    """One step of one event, unless somebody was there before us."""
    async with db.transaction(organization_id) as conn:
        event = await lifecycle.lock(conn, organization_id, event_id)
        verb = rules.due_verb(event, await store.read_clock(conn))
        if verb is None:
            return None
        order = Order(verb=verb, reason="by the clock")
        return await lifecycle.move(conn, organization_id, event_id, order, by=CLOCK)
