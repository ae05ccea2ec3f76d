"""What a place costs: a rule for each zone, an amount for each kind of seat, in whole minor units. Pure.

Prices are worked out here and nowhere else; what somebody pays is written down when they buy, so that a rule that
changes touches nobody who has bought.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final
from uuid import UUID

from voelgoed.money import Money, is_currency
from voelgoed.seating.model import NAME_CHARS_MAX, Category
from voelgoed.seating.overlay import ZoneView

AMOUNT_MINOR_MAX: Final = 1_000_000_000
CATEGORIES: Final = frozenset(Category)
NEVER_DEARER: Final = frozenset({Category.WHEELCHAIR, Category.COMPANION, Category.RESTRICTED_VIEW})
"""Seats that may cost less than the others of their zone, and never more."""
SPOKEN_FOR: Final = frozenset({Category.WHEELCHAIR, Category.COMPANION})
"""Seats that are kept for those who need them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceRule:
    """What places of one price cost: an amount, and other amounts for some kinds of seats."""

    id: UUID
    name: str
    currency: str
    amount_minor: int
    by_category: Mapping[Category, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        by_category = {category.value: amount for category, amount in self.by_category.items()}
        assert not wrong_rule(self.name, self.currency, self.amount_minor, by_category)


@dataclass(frozen=True, slots=True, kw_only=True)
class ZonePrices:
    """What the places of a zone cost, by every kind it has, and from what; nothing is the least of no places."""

    rule_id: UUID
    by_category: Mapping[Category, Money]
    from_price: Money | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """What an event costs: by the codes of the zones that have a price, and the least of what is offered."""

    zones: Mapping[str, ZonePrices]
    from_price: Money | None


def wrong_rule(
    name: object, currency: object, amount_minor: object, by_category: Mapping[str, object]
) -> dict[str, str]:
    """What is wrong with a rule, by field; empty when nothing is."""
    found: dict[str, str | None] = {
        "name": None if _is_name(name) else f"must be a text of 1 to {NAME_CHARS_MAX} characters",
        "currency": None if is_currency(currency) else "must be three capital letters, such as ZAR",
        "amount_minor": _wrong_amount(amount_minor, AMOUNT_MINOR_MAX),
    }
    base = amount_minor if isinstance(amount_minor, int) and not found["amount_minor"] else AMOUNT_MINOR_MAX
    for category, amount in by_category.items():
        key = f"by_category.{category}"
        if category not in CATEGORIES:
            found[key] = f"must be one of {', '.join(Category)}"
        else:
            found[key] = _wrong_amount(amount, base if category in NEVER_DEARER else AMOUNT_MINOR_MAX)
    return {key: why for key, why in found.items() if why}


def price_of(rule: PriceRule, category: Category) -> Money:
    """What a place of this kind costs."""
    return Money(rule.by_category.get(category, rule.amount_minor), rule.currency)


def wrong_prices(zones: Sequence[ZoneView], rules: Mapping[UUID, PriceRule]) -> list[tuple[str, str]]:
    """Which zones cannot have the rule they name, and why: it is not there, or counts in another currency."""
    found: list[tuple[str, str]] = []
    currency: str | None = None
    for zone in zones:
        if zone.pricing_rule_id is None:
            continue
        rule = rules.get(zone.pricing_rule_id)
        if rule is None:
            found.append((zone.code, "there is no such pricing rule"))
        elif currency not in (None, rule.currency):
            found.append((zone.code, f"an event has one currency: {currency}, and not {rule.currency} as well"))
        else:
            currency = rule.currency
    return found


def unpriced_zones(zones: Sequence[ZoneView]) -> tuple[str, ...]:
    """Zones that offer places and name no price."""
    return tuple(zone.code for zone in zones if zone.place_count and zone.pricing_rule_id is None)


def prices(zones: Sequence[ZoneView], rules: Mapping[UUID, PriceRule]) -> Prices:
    """What everything costs, by rules that are known to be right."""
    assert not wrong_prices(zones, rules)
    found = {
        zone.code: _zone_prices(zone, rules[zone.pricing_rule_id]) for zone in zones if zone.pricing_rule_id is not None
    }
    offered = [one.from_price for one in found.values() if one.from_price is not None]
    return Prices(zones=MappingProxyType(found), from_price=_least(offered))


def _zone_prices(zone: ZoneView, rule: PriceRule) -> ZonePrices:
    # In one order, whoever counted them: PostgreSQL keeps a published zone's in its own.
    by_category = {category: price_of(rule, category) for category in Category if category in zone.categories}
    offered = {category: price for category, price in by_category.items() if zone.categories[category]}
    # What everybody can have; a reduced companion's seat is nobody's first price, unless there is nothing else.
    common = [price for category, price in offered.items() if category not in SPOKEN_FOR] or offered.values()
    return ZonePrices(rule_id=rule.id, by_category=MappingProxyType(by_category), from_price=_least(common))


def _least(amounts: Iterable[Money]) -> Money | None:
    """The least of amounts in one currency."""
    return min(amounts, key=lambda money: money.amount_minor, default=None)


def _is_name(value: object) -> bool:
    if not isinstance(value, str) or "\0" in value:  # PostgreSQL keeps no such character
        return False
    return value == value.strip() and 1 <= len(value) <= NAME_CHARS_MAX


def _wrong_amount(value: object, most: int) -> str | None:
    fits = type(value) is int and 0 <= value <= most
    return None if fits else f"must be a whole number of minor units from 0 to {most}"
