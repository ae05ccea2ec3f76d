"""Pricing rules for tests."""

import json
from typing import Any

from voelgoed.accounts.model import Organization
from voelgoed.db import Conn, Database
from voelgoed.events.model import OPERATOR, Event
from voelgoed.ids import new_id
from voelgoed.ticketing import rulebook
from voelgoed.ticketing.model import NewRule, StoredRule


async def make_rule(db: Database, organization: Organization, **fields: Any) -> StoredRule:
    """A pricing rule; of a hundred rand, unless told otherwise."""
    known: dict[str, Any] = {"name": "Full price", "currency": "ZAR", "amount_minor": 10_000}
    async with db.transaction(organization.id) as conn:
        return await rulebook.make_rule(conn, organization.id, NewRule(**known | fields), by=OPERATOR)


async def name_rule(conn: Conn, event: Event, *rules: StoredRule) -> None:
    """Let an event name rules, one for each of its zones, as its overlay does."""
    zones = {str(new_id()): {"pricing_rule_id": str(rule.id)} for rule in rules}
    await conn.execute(
        "insert into event_layouts (id, organization_id, event_id, overrides) values ($1, $2, $3, $4)",
        new_id(),
        event.organization_id,
        event.id,
        json.dumps({"pricing_zones": zones}),
    )
