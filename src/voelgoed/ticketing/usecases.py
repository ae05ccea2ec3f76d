"""What an organization's people do with pricing rules."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from voelgoed.accounts import idempotency
from voelgoed.accounts.idempotency import Once
from voelgoed.accounts.model import Call
from voelgoed.accounts.permissions import Action, require
from voelgoed.db import Conn, Database
from voelgoed.events.model import Teller
from voelgoed.paging import Page, after_id, page_by_id
from voelgoed.ticketing import rulebook, store
from voelgoed.ticketing.model import NewRule, StoredRule
from voelgoed.ticketing.refusals import PricingRuleNotFound


async def list_rules(db: Database, call: Call, *, cursor: str | None, limit: int) -> Page[StoredRule]:
    """The organization's pricing rules, oldest first."""
    require(call.actor, Action.SEE_PRICES)
    async with db.transaction(call.organization_id) as conn:
        found = await store.list_rules(conn, call.organization_id, after=after_id(cursor), limit=limit + 1)
    return page_by_id(found, limit, lambda rule: rule.id)


async def get_rule(db: Database, call: Call, rule_id: UUID) -> StoredRule:
    """One pricing rule."""
    require(call.actor, Action.SEE_PRICES)
    async with db.transaction(call.organization_id) as conn:
        return await _rule(conn, call, rule_id)


async def create_rule(db: Database, call: Call, new: NewRule, *, once: Once | None) -> StoredRule:
    """Make a pricing rule."""
    require(call.actor, Action.CHANGE_PRICES)
    async with db.transaction(call.organization_id) as conn:
        if done := await idempotency.recall(conn, call, once):
            return await _rule(conn, call, UUID(str(done["id"])))
        rule = await rulebook.make_rule(conn, call.organization_id, new, by=Teller.of(call))
        await idempotency.remember(conn, call, once, {"id": str(rule.id)})
    return rule


async def update_rule(
    db: Database, call: Call, rule_id: UUID, changed: Mapping[str, Any], *, version: int | None
) -> StoredRule:
    """Change a pricing rule; the amounts by kind of seat are given whole."""
    require(call.actor, Action.CHANGE_PRICES)
    async with db.transaction(call.organization_id) as conn:
        return await rulebook.change_rule(
            conn, call.organization_id, rule_id, changed, by=Teller.of(call), version=version
        )


async def delete_rule(db: Database, call: Call, rule_id: UUID, *, version: int | None) -> None:
    """Delete a pricing rule that no event names any more."""
    require(call.actor, Action.CHANGE_PRICES)
    async with db.transaction(call.organization_id) as conn:
        await rulebook.drop_rule(conn, call.organization_id, rule_id, by=Teller.of(call), version=version)


async def _rule(conn: Conn, call: Call, rule_id: UUID) -> StoredRule:
    rule = await store.get_rule(conn, call.organization_id, rule_id)
    if rule is None:
        raise PricingRuleNotFound
    return rule
