"""An organization's pricing rules: how one is made, changed and deleted, and how others come by them."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final
from uuid import UUID

from voelgoed.db import Conn
from voelgoed.events.model import Teller
from voelgoed.ids import OrganizationId, new_id
from voelgoed.journal.recording import record
from voelgoed.seating.model import Category
from voelgoed.ticketing import store
from voelgoed.ticketing.model import NewRule, StoredRule
from voelgoed.ticketing.pricing import PriceRule, wrong_rule
from voelgoed.ticketing.refusals import (
    PricingRuleChanged,
    PricingRuleInUse,
    PricingRuleInvalid,
    PricingRuleNotFound,
    PricingRulesFull,
)

RULES_MAX: Final = 1_000
EVENTS_TOLD_MAX: Final = 20
FIELDS: Final = ("name", "currency", "amount_minor", "by_category")


async def load_rules(
    conn: Conn, organization_id: OrganizationId, ids: Iterable[UUID], *, is_locked: bool = False
) -> dict[UUID, PriceRule]:
    """Those of the rules that are there. Locked, none is deleted or changed before the caller's transaction ends."""
    ask = store.share_rules if is_locked else store.find_rules
    return {rule.id: _priced(rule) for rule in await ask(conn, organization_id, set(ids))}


async def make_rule(conn: Conn, organization_id: OrganizationId, new: NewRule, *, by: Teller) -> StoredRule:
    """Check a new rule, write and tell it."""
    if wrong := wrong_rule(new.name, new.currency, new.amount_minor, new.by_category):
        raise PricingRuleInvalid(fields=wrong)
    await store.lock_rulebook(conn, organization_id)
    if await store.count_rules(conn, organization_id) >= RULES_MAX:
        raise PricingRulesFull(rules_max=RULES_MAX)
    rule = await store.add_rule(conn, organization_id, new_id(), new)
    await record(conn, by.fact("pricing_rule_created", organization_id, _about(rule) | _told(rule)))
    return rule


async def change_rule(
    conn: Conn,
    organization_id: OrganizationId,
    rule_id: UUID,
    changed: Mapping[str, Any],
    *,
    by: Teller,
    version: int | None,
) -> StoredRule:
    """Check, write and tell a change. Events take part in a new amount; they would not fit another currency."""
    before = await _lock(conn, organization_id, rule_id, version)
    wanted = {name: getattr(before, name) for name in FIELDS} | dict(changed)
    if wrong := wrong_rule(**wanted):
        raise PricingRuleInvalid(fields=wrong)
    after = replace(before, **_typed(wanted))
    if after == before:
        return before
    if after.currency != before.currency:
        await _require_unused(conn, before)
    after = await store.save_rule(conn, after)
    old, new = _told(before), _told(after)
    changes = {name: [old[name], new[name]] for name in FIELDS if old[name] != new[name]}
    told = _about(after) | {"name": after.name, "changes": changes}
    await record(conn, by.fact("pricing_rule_changed", organization_id, told))
    return after


async def drop_rule(
    conn: Conn, organization_id: OrganizationId, rule_id: UUID, *, by: Teller, version: int | None
) -> None:
    """Delete a rule that no event names any more, and tell what it was."""
    rule = await _lock(conn, organization_id, rule_id, version)
    await _require_unused(conn, rule)
    await store.remove_rule(conn, organization_id, rule_id)
    await record(conn, by.fact("pricing_rule_deleted", organization_id, _about(rule) | _told(rule)))


async def _lock(conn: Conn, organization_id: OrganizationId, rule_id: UUID, version: int | None) -> StoredRule:
    rule = await store.lock_rule(conn, organization_id, rule_id)
    if rule is None:
        raise PricingRuleNotFound
    if version is not None and rule.version != version:
        raise PricingRuleChanged(version=rule.version)
    return rule


async def _require_unused(conn: Conn, rule: StoredRule) -> None:
    """Of the locked rule: whoever names it holds the lock too, so what is not seen here is not there."""
    if events := await store.find_events_of_rule(conn, rule.organization_id, rule.id, limit=EVENTS_TOLD_MAX):
        raise PricingRuleInUse(events=events)


def _priced(rule: StoredRule) -> PriceRule:
    return PriceRule(id=rule.id, **{name: getattr(rule, name) for name in FIELDS})


def _typed(wanted: Mapping[str, Any]) -> dict[str, Any]:
    """Fields that are known to be right, with the kinds of seats as such."""
    amounts = {Category(category): amount for category, amount in wanted["by_category"].items()}
    return dict(wanted) | {"by_category": amounts}


def _about(rule: StoredRule) -> dict[str, object]:
    return {"pricing_rule_id": str(rule.id)}


def _told(rule: StoredRule) -> dict[str, object]:
    """What a rule says, as the journal can keep it: whoever asks later what something cost finds it there."""
    amounts = {category.value: amount for category, amount in rule.by_category.items()}
    return {"name": rule.name, "currency": rule.currency, "amount_minor": rule.amount_minor, "by_category": amounts}
