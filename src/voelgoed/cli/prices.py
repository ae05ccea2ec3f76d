"""`voelgoed price`: what places cost, at the terminal."""

import json
from collections.abc import Iterable
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from voelgoed.cli.accounts import opened
from voelgoed.config import Settings
from voelgoed.errors import StartRefused
from voelgoed.events import operator as events
from voelgoed.ticketing import operator
from voelgoed.ticketing.model import NewRule, StoredRule


def read_amounts(told: Iterable[str]) -> dict[str, int]:
    """Amounts by kind of seat, as a person writes them: `wheelchair=0`."""
    found: dict[str, int] = {}
    for one in told:
        category, _, amount = one.partition("=")
        if not amount.isascii() or not amount.isdigit() or category in found:
            raise StartRefused(
                f"{one!r} is no amount for a kind of seat, or the second one",
                hint="write --category wheelchair=0, once for each kind",
            )
        found[category] = int(amount)
    return found


async def list_rules(settings: Settings, *, organization: str, as_json: bool) -> None:
    """An organization's pricing rules."""
    async with opened(settings) as db:
        place = await events.organization_at(db, organization)
        found = await operator.list_rules(db, place)
    if as_json:
        print(json.dumps([_facts(rule) for rule in found]))
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("rule", no_wrap=True)  # what an event is given: it is never cut, nor is a price
    table.add_column("name")
    table.add_column("minor units", justify="right", no_wrap=True)
    table.add_column("by kind of seat")
    for rule in found:
        others = ", ".join(f"{category} {amount:,}" for category, amount in rule.by_category.items())
        table.add_row(str(rule.id), Text(rule.name), f"{rule.currency} {rule.amount_minor:,}", others)
    Console(highlight=False).print(table)


async def add_rule(settings: Settings, *, organization: str, new: NewRule) -> None:
    """Make a pricing rule."""
    async with opened(settings) as db:
        place = await events.organization_at(db, organization)
        rule = await operator.create_rule(db, place, new)
    Console(highlight=False, soft_wrap=True).print(Text(f"{rule.name}  {rule.id}"))


def _facts(rule: StoredRule) -> dict[str, Any]:
    return {
        "id": str(rule.id),
        "name": rule.name,
        "currency": rule.currency,
        "amount_minor": rule.amount_minor,
        "by_category": {category.value: amount for category, amount in rule.by_category.items()},
        "version": rule.version,
    }
