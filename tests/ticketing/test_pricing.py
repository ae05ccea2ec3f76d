"""What a place costs: by zone and kind of seat, whole, in one currency."""

from dataclasses import replace
from functools import reduce
from operator import add
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings, strategies as st

from tests.make.layouts import small_layout
from tests.seating.test_overlay import LAID_OVER, festival_a
from voelgoed.ids import new_id
from voelgoed.money import Money
from voelgoed.seating import presets
from voelgoed.seating.generate import generate
from voelgoed.seating.model import Category, Layout
from voelgoed.seating.overlay import Overlay, View, effective_view
from voelgoed.seating.policy import Policy
from voelgoed.ticketing.pricing import (
    AMOUNT_MINOR_MAX,
    NEVER_DEARER,
    PriceRule,
    price_of,
    prices,
    unpriced_zones,
    wrong_prices,
    wrong_rule,
)

VIP = Policy(allow_vip_zones=True)


def rule(amount_minor: int = 10_000, currency: str = "ZAR", **by_category: int) -> PriceRule:
    amounts = {Category(name): amount for name, amount in by_category.items()}
    return PriceRule(id=new_id(), name="Full price", currency=currency, amount_minor=amount_minor, by_category=amounts)


def by_id(*rules: PriceRule) -> dict[UUID, PriceRule]:
    return {one.id: one for one in rules}


def small_view(*, blocked: tuple[str, ...] = (), **zones: PriceRule) -> View:
    overlay = Overlay(blocked_seats=blocked, pricing_zones={code: one.id for code, one in zones.items()})
    return effective_view(small_layout({"zones.0.rows.0.seats.3.category": "restricted_view"}), overlay, VIP)


@st.composite
def rules(draw: st.DrawFn) -> PriceRule:
    """Any rule that may be."""
    amount = draw(st.integers(0, AMOUNT_MINOR_MAX))
    some = draw(st.sets(st.sampled_from(Category)))
    mosts = {category: amount if category in NEVER_DEARER else AMOUNT_MINOR_MAX for category in some}
    return replace(rule(amount), by_category={one: draw(st.integers(0, most)) for one, most in mosts.items()})


def festival(layout: Layout, amounts: dict[str, int]) -> tuple[View, dict[UUID, PriceRule]]:
    """A festival with a price for each zone, given in rand."""
    priced = {code: rule(rand * 100) for code, rand in amounts.items()}
    overlay = Overlay(pricing_zones={code: one.id for code, one in priced.items()})
    return effective_view(layout, overlay, VIP), by_id(*priced.values())


@pytest.mark.req("HYB-08")
def test_the_first_festival() -> None:
    """80, 60, 40 and 200: from 40, and 60,000 when all 950 places are sold."""
    view, known = festival(festival_a(), {"A": 80, "B": 60, "PIT": 40, "VIP": 200})
    found = prices(view.zones, known)
    costs = [found.zones[zone.code].from_price for zone in view.zones]
    assert costs == [Money(8_000, "ZAR"), Money(6_000, "ZAR"), Money(4_000, "ZAR"), Money(20_000, "ZAR")]
    assert found.from_price == Money(4_000, "ZAR")
    house = [
        found.zones[zone.code].by_category[Category.STANDARD] for zone in view.zones for _ in range(zone.place_count)
    ]
    assert (len(house), reduce(add, house)) == (950, Money(6_000_000, "ZAR"))


@pytest.mark.req("HYB-09")
def test_the_second_festival() -> None:
    """150, 100, 80 and 300; the basket of the example costs 480."""
    layout = generate(presets.preset("festival"))
    view, known = festival(layout, {"ORCHESTRA": 150, "FLOOR": 100, "PIT": 80, "VIP": 300})
    found = prices(view.zones, known)
    assert {code: one.from_price for code, one in found.zones.items()} == {
        "ORCHESTRA": Money(15_000, "ZAR"),
        "FLOOR": Money(10_000, "ZAR"),
        "PIT": Money(8_000, "ZAR"),
        "VIP": Money(30_000, "ZAR"),
    }
    basket = [found.zones[code].by_category[Category.STANDARD] for code in ("ORCHESTRA", "ORCHESTRA", "FLOOR", "PIT")]
    assert reduce(add, basket) == Money(48_000, "ZAR")


@settings(deadline=None)
@given(rules(), st.sampled_from(Category))
def test_a_rule_has_a_price_for_every_kind_of_seat(one: PriceRule, category: Category) -> None:
    """Its own where it has one, the rule's otherwise; those who need a place, or see less, never pay more."""
    price = price_of(one, category)
    assert price == Money(one.by_category.get(category, one.amount_minor), "ZAR")
    assert type(price.amount_minor) is int
    if category in NEVER_DEARER:
        assert price.amount_minor <= one.amount_minor


@pytest.mark.req("SEAT-06")
def test_a_restricted_view_costs_less() -> None:
    """By kind of seat within one zone; told from what everybody can have, not from what a companion pays."""
    stalls = rule(10_000, restricted_view=6_000, companion=0)
    found = prices(small_view(S=stalls).zones, by_id(stalls))
    assert found.zones["S"].by_category == {
        Category.STANDARD: Money(10_000, "ZAR"),
        Category.RESTRICTED_VIEW: Money(6_000, "ZAR"),
        Category.WHEELCHAIR: Money(10_000, "ZAR"),
        Category.COMPANION: Money(0, "ZAR"),
    }
    assert found.zones["S"].from_price == found.from_price == Money(6_000, "ZAR")
    blocked = prices(small_view(S=stalls, blocked=("S-B-2",)).zones, by_id(stalls))
    assert blocked.zones["S"].from_price == Money(6_000, "ZAR")
    spaces = [zone for zone in small_view(S=stalls).zones if zone.code == "S"]
    only = {Category.WHEELCHAIR: 1, Category.COMPANION: spaces[0].place_count - 1}
    assert prices([replace(spaces[0], categories=only)], by_id(stalls)).from_price == Money(0, "ZAR")
    assert blocked.zones["S"].by_category[Category.COMPANION] == Money(0, "ZAR")


@settings(deadline=None)
@given(laid=LAID_OVER, one=rules())
def test_nothing_for_everybody_is_cheaper_than_the_price_it_is_told_from(
    laid: tuple[Layout, Overlay], one: PriceRule
) -> None:
    """And something costs exactly that; what is not offered, or kept for those who need it, has no part in it."""
    layout, overlay = laid
    priced = replace(overlay, pricing_zones=dict.fromkeys(overlay.pricing_zones, one.id))
    view = effective_view(layout, priced, VIP)
    found = prices(view.zones, by_id(one))
    assert found.zones.keys() == overlay.pricing_zones.keys()
    offered: list[int] = []
    for zone in view.zones:
        kinds = [kind for kind, count in zone.categories.items() if count and zone.pricing_rule_id]
        common = [kind for kind in kinds if kind not in (Category.WHEELCHAIR, Category.COMPANION)]
        offered += [price_of(one, kind).amount_minor for kind in common or kinds]
    assert found.from_price == (Money(min(offered), "ZAR") if offered else None)
    for zone in view.zones:
        if zone.code in found.zones:
            assert found.zones[zone.code].by_category.keys() == zone.categories.keys()
            assert (found.zones[zone.code].from_price is None) == (zone.place_count == 0)


def test_an_event_has_one_currency_and_rules_that_are_there() -> None:
    """The first zone's currency is the event's."""
    rand, euro = rule(100), rule(100, "EUR")
    view = small_view(S=rand, V=euro, P=rule(5))
    assert wrong_prices(view.zones, by_id(rand, euro)) == [
        ("V", "an event has one currency: ZAR, and not EUR as well"),
        ("P", "there is no such pricing rule"),
    ]
    with pytest.raises(AssertionError):
        prices(view.zones, by_id(rand, euro))


def test_zones_without_a_price_are_named() -> None:
    """Unless they offer nothing."""
    hall, stalls = small_layout(), rule()
    overlay = Overlay(pricing_zones={"S": stalls.id}, disabled_zones=("V",))
    view = effective_view(hall, overlay, VIP)
    assert unpriced_zones(view.zones) == ("P",)
    assert prices(view.zones, by_id(stalls)).zones.keys() == {"S"}
    assert prices(effective_view(hall, Overlay(), VIP).zones, {}).from_price is None


@pytest.mark.parametrize(
    ("over", "wrong"),
    [
        ({}, set()),
        ({"name": ""}, {"name"}),
        ({"name": " Full"}, {"name"}),
        ({"name": "Fu\0ll"}, {"name"}),
        ({"name": "x" * 121}, {"name"}),
        ({"name": None, "currency": "zar", "amount_minor": -1}, {"name", "currency", "amount_minor"}),
        ({"amount_minor": 99.5}, {"amount_minor"}),
        ({"amount_minor": 100.0}, {"amount_minor"}),
        ({"amount_minor": True}, {"amount_minor"}),
        ({"amount_minor": AMOUNT_MINOR_MAX + 1}, {"amount_minor"}),
        ({"amount_minor": 0}, set()),
        ({"by_category": {"restricted_view": 10_000, "companion": 0, "aisle": 12_000}}, set()),
        ({"by_category": {"restricted_view": 10_001}}, {"by_category.restricted_view"}),
        ({"by_category": {"wheelchair": 10_001, "balcony": 1}}, {"by_category.wheelchair", "by_category.balcony"}),
        ({"by_category": {"aisle": "1"}, "amount_minor": None}, {"amount_minor", "by_category.aisle"}),
    ],
)
def test_what_a_rule_may_be(over: dict[str, Any], wrong: set[str]) -> None:
    """Every fault at once, by field; fractions are none of it, and no wheelchair space costs extra."""
    asked: dict[str, Any] = {"name": "Full price", "currency": "ZAR", "amount_minor": 10_000, "by_category": {}}
    assert wrong_rule(**asked | over).keys() == wrong


def test_a_rule_that_is_wrong_is_none() -> None:
    """It checks itself."""
    with pytest.raises(AssertionError):
        rule(100, companion=101)
