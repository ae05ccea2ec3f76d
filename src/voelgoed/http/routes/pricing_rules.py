"""Pricing rules: what places cost, to the organization's own people."""

from datetime import datetime
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Response
from pydantic import Field

from voelgoed.accounts.idempotency import IdempotencyKeyReused
from voelgoed.accounts.permissions import Action
from voelgoed.http.context import Caller, IdempotencyKey, IfMatch, etag, once, seen
from voelgoed.http.guard import guarded
from voelgoed.http.shapes import LIMIT, Body, Cursor, Data, Limit, Listed, View
from voelgoed.paging import CursorInvalid
from voelgoed.seating.model import Category
from voelgoed.ticketing import usecases
from voelgoed.ticketing.model import NewRule, StoredRule
from voelgoed.ticketing.refusals import (
    PricingRuleChanged,
    PricingRuleInUse,
    PricingRuleInvalid,
    PricingRuleNotFound,
    PricingRulesFull,
)

router = APIRouter(prefix="/api/admin/pricing-rules", tags=["prices"])

# How long a text may be is bounded here; what it may be is the rule's own to say, all faults at once.
Text = Annotated[str, Field(max_length=200)]
Amount = Annotated[int, Field(strict=True, description="In minor units of the currency, such as cents")]
Amounts = Annotated[
    dict[Annotated[str, Field(max_length=40)], Amount],
    Field(max_length=40, description=f"Other amounts for some kinds of seats: {', '.join(Category)}"),
]


class PricingRuleView(View):
    """A pricing rule: what a place costs, and what those of some kinds do."""

    id: UUID
    name: str
    currency: str
    amount_minor: int
    by_category: dict[Category, int]
    version: int
    created_at: datetime
    updated_at: datetime


class NewPricingRuleBody(Body):
    """A pricing rule to be made."""

    name: Text
    currency: Text
    amount_minor: Amount
    by_category: Amounts = Field(default_factory=dict)


class PricingRuleChangesBody(Body):
    """What shall change of a pricing rule; what is left out stays, `by_category` is given whole."""

    name: Text = Field(default_factory=str)
    currency: Text = Field(default_factory=str)
    amount_minor: Amount = Field(default_factory=int)
    by_category: Amounts = Field(default_factory=dict)


@router.get("")
@guarded(Action.SEE_PRICES, CursorInvalid)
async def list_rules(caller: Caller, cursor: Cursor = None, limit: Limit = LIMIT) -> Listed[PricingRuleView]:
    """The organization's pricing rules."""
    page = await usecases.list_rules(caller.services.db, caller.call, cursor=cursor, limit=limit)
    return Listed(data=[PricingRuleView.model_validate(one) for one in page.items], next_cursor=page.next_cursor)


@router.post("", status_code=201)
@guarded(Action.CHANGE_PRICES, PricingRuleInvalid, PricingRulesFull, PricingRuleNotFound, IdempotencyKeyReused)
async def create_rule(
    body: NewPricingRuleBody, caller: Caller, response: Response, key: IdempotencyKey = None
) -> Data[PricingRuleView]:
    """Make a pricing rule."""
    made = await usecases.create_rule(
        caller.services.db, caller.call, NewRule(**body.model_dump()), once=once(key, caller, "create_pricing_rule")
    )
    return _rule(made, response)


@router.get("/{rule_id}")
@guarded(Action.SEE_PRICES, PricingRuleNotFound)
async def get_rule(rule_id: UUID, caller: Caller, response: Response) -> Data[PricingRuleView]:
    """One pricing rule."""
    return _rule(await usecases.get_rule(caller.services.db, caller.call, rule_id), response)


@router.patch("/{rule_id}")
@guarded(Action.CHANGE_PRICES, PricingRuleNotFound, PricingRuleChanged, PricingRuleInvalid, PricingRuleInUse)
async def update_rule(
    rule_id: UUID, body: PricingRuleChangesBody, caller: Caller, response: Response, if_match: IfMatch = None
) -> Data[PricingRuleView]:
    """Change a pricing rule; its currency only while no event uses it. Who has bought, has bought."""
    changed = await usecases.update_rule(
        caller.services.db, caller.call, rule_id, body.model_dump(exclude_unset=True), version=seen(if_match)
    )
    return _rule(changed, response)


@router.delete("/{rule_id}", status_code=204)
@guarded(Action.CHANGE_PRICES, PricingRuleNotFound, PricingRuleChanged, PricingRuleInUse)
async def delete_rule(rule_id: UUID, caller: Caller, if_match: IfMatch = None) -> None:
    """Delete a pricing rule; refused while an event that is not over uses it."""
    await usecases.delete_rule(caller.services.db, caller.call, rule_id, version=seen(if_match))


def _rule(rule: StoredRule, response: Response) -> Data[PricingRuleView]:
    response.headers["ETag"] = etag(rule.version)
    return Data(data=PricingRuleView.model_validate(rule))
