"""Pricing rules in PostgreSQL: checked whole, told whole, and never gone from under an event."""

import asyncio
import json
from typing import Any
from uuid import UUID

import pytest

from tests.make.accounts import make_organization
from tests.make.events import call_of, make_event
from tests.make.prices import make_rule, name_rule
from voelgoed.accounts.model import Organization, Role
from voelgoed.accounts.permissions import PermissionDenied
from voelgoed.db import Database
from voelgoed.events.model import OPERATOR
from voelgoed.ids import new_id
from voelgoed.money import Money
from voelgoed.seating.model import Category
from voelgoed.ticketing import rulebook, usecases
from voelgoed.ticketing.model import NewRule, StoredRule
from voelgoed.ticketing.pricing import price_of
from voelgoed.ticketing.refusals import (
    PricingRuleChanged,
    PricingRuleInUse,
    PricingRuleInvalid,
    PricingRuleNotFound,
    PricingRulesFull,
)

FILL = """
insert into pricing_rules (id, organization_id, name, currency, amount_minor)
select gen_random_uuid(), $1, 'Rule ' || n, 'ZAR', n from generate_series(1, $2) n
"""


@pytest.fixture
async def place(db: Database) -> Organization:
    return await make_organization(db)


async def facts(db: Database, place: Organization) -> list[tuple[str, dict[str, Any]]]:
    async with db.transaction(place.id) as conn:
        rows = await conn.fetch("select kind, data from journal where kind like 'pricing%' order by seq")
    return [(row["kind"], json.loads(row["data"])) for row in rows]


async def found(db: Database, place: Organization, rule_id: UUID) -> StoredRule | None:
    try:
        return await usecases.get_rule(db, call_of(place), rule_id)
    except PricingRuleNotFound:
        return None


async def test_every_step_is_told_with_its_amounts(db: Database, place: Organization) -> None:
    """What somebody later asks of a price stands in the journal: before and after, and what was deleted."""
    call = call_of(place)
    new = NewRule(name="Stalls", currency="ZAR", amount_minor=10_000, by_category={"companion": 0})
    made = await usecases.create_rule(db, call, new, once=None)
    assert (made.version, made.by_category) == (1, {Category.COMPANION: 0})
    wanted = {"amount_minor": 12_000, "by_category": {"companion": 100, "wheelchair": 50}}
    changed = await usecases.update_rule(db, call, made.id, wanted, version=1)
    assert (changed.version, changed.name, changed.amount_minor) == (2, "Stalls", 12_000)
    assert await usecases.update_rule(db, call, made.id, wanted, version=2) == changed
    await usecases.delete_rule(db, call, made.id, version=2)
    told = await facts(db, place)
    about = {"pricing_rule_id": str(made.id), "name": "Stalls", "actor_type": "owner"}
    assert told == [
        ("pricing_rule_created", about | {"currency": "ZAR", "amount_minor": 10_000, "by_category": {"companion": 0}}),
        (
            "pricing_rule_changed",
            about
            | {
                "changes": {
                    "amount_minor": [10_000, 12_000],
                    "by_category": [{"companion": 0}, {"companion": 100, "wheelchair": 50}],
                }
            },
        ),
        ("pricing_rule_deleted", about | {"currency": "ZAR", **wanted}),
    ]


async def test_a_change_is_looked_at_as_a_whole(db: Database, place: Organization) -> None:
    """A lower amount that would leave a wheelchair space dearer than its zone is refused, and nothing changes."""
    rule = await make_rule(db, place, by_category={"wheelchair": 9_000})
    with pytest.raises(PricingRuleInvalid) as refused:
        await usecases.update_rule(db, call_of(place), rule.id, {"amount_minor": 8_999, "name": " "}, version=None)
    assert refused.value.facts["fields"] == {
        "name": "must be a text of 1 to 120 characters",
        "by_category.wheelchair": "must be a whole number of minor units from 0 to 8999",
    }
    assert await found(db, place, rule.id) == rule
    assert len(await facts(db, place)) == 1


@pytest.mark.parametrize("status", ["draft", "published", "live", "postponed"])
async def test_a_rule_that_an_event_names_stays(db: Database, place: Organization, status: str) -> None:
    """In its currency; its name and amounts may change. The events are told."""
    rule, other = await make_rule(db, place), await make_rule(db, place)
    event = await make_event(db, place, status=status, name="Karnaval")
    async with db.transaction(place.id) as conn:
        await name_rule(conn, event, other, rule)
    told = [{"id": str(event.id), "name": "Karnaval"}]
    with pytest.raises(PricingRuleInUse) as refused:
        await usecases.delete_rule(db, call_of(place), rule.id, version=None)
    assert refused.value.facts["events"] == told
    with pytest.raises(PricingRuleInUse) as refused:
        await usecases.update_rule(db, call_of(place), rule.id, {"currency": "EUR", "name": "X"}, version=None)
    assert refused.value.facts["events"] == told
    assert await found(db, place, rule.id) == rule
    dearer = await usecases.update_rule(db, call_of(place), rule.id, {"amount_minor": 1, "name": "X"}, version=None)
    assert (dearer.amount_minor, dearer.name, dearer.currency) == (1, "X", "ZAR")


@pytest.mark.parametrize("status", ["ended", "cancelled", "archived"])
async def test_a_rule_of_what_is_over_may_go(db: Database, place: Organization, status: str) -> None:
    """Nothing is sold by it any more."""
    rule = await make_rule(db, place)
    event = await make_event(db, place, status=status)
    async with db.transaction(place.id) as conn:
        await name_rule(conn, event, rule)
    await usecases.update_rule(db, call_of(place), rule.id, {"currency": "EUR"}, version=None)
    await usecases.delete_rule(db, call_of(place), rule.id, version=None)
    assert await found(db, place, rule.id) is None


async def test_an_overlay_that_names_nothing_holds_nothing(db: Database, place: Organization) -> None:
    """Nor does an event of another organization that names the same id; of many events the first twenty are told."""
    rule, other, elsewhere = await make_rule(db, place), await make_rule(db, place), await make_organization(db)
    async with db.transaction(elsewhere.id) as conn:
        await name_rule(conn, await make_event(db, elsewhere), rule)
    async with db.transaction(place.id) as conn:
        await name_rule(conn, await make_event(db, place))
    await usecases.delete_rule(db, call_of(place), rule.id, version=None)
    events = [await make_event(db, place) for _ in range(21)]
    async with db.transaction(place.id) as conn:
        for event in events:
            await name_rule(conn, event, other)
    with pytest.raises(PricingRuleInUse) as refused:
        await usecases.delete_rule(db, call_of(place), other.id, version=None)
    assert refused.value.facts["events"] == [{"id": str(one.id), "name": one.name} for one in events[:20]]


@pytest.mark.parametrize("deed", ["delete", "currency"])
async def test_whoever_names_a_rule_first_keeps_it(db: Database, place: Organization, deed: str) -> None:
    """Locked for an overlay that is being saved, it is neither deleted nor changed behind that overlay's back."""
    rule, event = await make_rule(db, place), await make_event(db, place)

    async def work() -> None:
        if deed == "delete":
            await usecases.delete_rule(db, call_of(place), rule.id, version=None)
        else:
            await usecases.update_rule(db, call_of(place), rule.id, {"currency": "EUR"}, version=None)

    async with db.transaction(place.id) as conn:
        assert (await rulebook.load_rules(conn, place.id, [rule.id], is_locked=True)).keys() == {rule.id}
        racing = asyncio.create_task(work())
        async with asyncio.timeout(5):
            while not await conn.fetchval(
                "select exists (select from pg_stat_activity where pg_backend_pid() = any (pg_blocking_pids(pid)))"
            ):
                await asyncio.sleep(0.01)
        await name_rule(conn, event, rule)
    with pytest.raises(PricingRuleInUse):
        await racing
    assert await found(db, place, rule.id) == rule


async def test_of_two_changes_of_the_same_version_one_wins(db: Database, place: Organization) -> None:
    """The other is told which version there is now; so is whoever would delete it."""
    rule = await make_rule(db, place)
    changes = [
        usecases.update_rule(db, call_of(place), rule.id, {"amount_minor": amount}, version=1) for amount in range(6)
    ]
    outcomes = await asyncio.gather(*changes, return_exceptions=True)
    won = [one for one in outcomes if isinstance(one, StoredRule)]
    lost = [one for one in outcomes if isinstance(one, PricingRuleChanged)]
    assert (len(won), len(lost)) == (1, 5)
    assert {one.facts["version"] for one in lost} == {2}
    assert await found(db, place, rule.id) == won[0]
    with pytest.raises(PricingRuleChanged):
        await usecases.delete_rule(db, call_of(place), rule.id, version=1)
    assert [kind for kind, _ in await facts(db, place)] == ["pricing_rule_created", "pricing_rule_changed"]


async def test_there_is_room_for_a_thousand(db: Database, place: Organization) -> None:
    """Of several that would be the last, one is; another organization has room of its own."""
    async with db.transaction(place.id) as conn:
        await conn.execute(FILL, place.id, rulebook.RULES_MAX - 1)
    outcomes = await asyncio.gather(*(make_rule(db, place) for _ in range(5)), return_exceptions=True)
    assert [type(one) for one in outcomes].count(StoredRule) == 1
    assert [type(one) for one in outcomes].count(PricingRulesFull) == 4
    async with db.transaction(place.id) as conn:
        assert await conn.fetchval("select count(*) from pricing_rules") == 1_000
    assert len(await facts(db, place)) == 1
    await make_rule(db, await make_organization(db))


@pytest.mark.parametrize("is_locked", [False, True])
async def test_others_load_what_they_name(db: Database, place: Organization, *, is_locked: bool) -> None:
    """Those that are there and are this organization's, ready to be priced by; whatever else was asked for is not."""
    rule, second = await make_rule(db, place, by_category={"companion": 5}), await make_rule(db, place)
    await make_rule(db, place)
    foreign = await make_rule(db, await make_organization(db))
    asked = [rule.id, second.id, rule.id, foreign.id, new_id()]
    async with db.transaction(place.id) as conn:
        known = await rulebook.load_rules(conn, place.id, asked, is_locked=is_locked)
        assert await rulebook.load_rules(conn, place.id, [], is_locked=is_locked) == {}
    assert known.keys() == {rule.id, second.id}
    assert price_of(known[rule.id], Category.COMPANION) == Money(5, "ZAR")
    assert price_of(known[second.id], Category.COMPANION) == Money(10_000, "ZAR")


async def test_another_organizations_rule_is_not_there(db: Database, place: Organization) -> None:
    """To see, to change, to delete; and it stays as it is."""
    elsewhere = await make_organization(db)
    rule = await make_rule(db, elsewhere)
    call = call_of(place)
    with pytest.raises(PricingRuleNotFound):
        await usecases.get_rule(db, call, rule.id)
    with pytest.raises(PricingRuleNotFound):
        await usecases.update_rule(db, call, rule.id, {"amount_minor": 1}, version=None)
    with pytest.raises(PricingRuleNotFound):
        await usecases.delete_rule(db, call, rule.id, version=None)
    assert await found(db, elsewhere, rule.id) == rule


async def test_staff_see_prices_and_leave_them(db: Database, place: Organization) -> None:
    """Money is for those who lead."""
    rule = await make_rule(db, place)
    call = call_of(place, Role.STAFF)
    assert (await usecases.list_rules(db, call, cursor=None, limit=10)).items == [rule]
    new = NewRule(name="Mine", currency="ZAR", amount_minor=1)
    with pytest.raises(PermissionDenied):
        await usecases.create_rule(db, call, new, once=None)
    with pytest.raises(PermissionDenied):
        await usecases.update_rule(db, call, rule.id, {"amount_minor": 1}, version=None)
    with pytest.raises(PermissionDenied):
        await usecases.delete_rule(db, call, rule.id, version=None)
    assert await found(db, place, rule.id) == rule


async def test_a_wrong_rule_is_not_made(db: Database, place: Organization) -> None:
    """Every fault at once, and nothing is stored or told."""
    wrong = NewRule(name="", currency="zar", amount_minor=-1, by_category={"balcony": 1})
    async with db.transaction(place.id) as conn:
        with pytest.raises(PricingRuleInvalid) as refused:
            await rulebook.make_rule(conn, place.id, wrong, by=OPERATOR)
    fields = refused.value.facts["fields"]
    assert isinstance(fields, dict)
    assert fields.keys() == {"name", "currency", "amount_minor", "by_category.balcony"}
    assert (await usecases.list_rules(db, call_of(place), cursor=None, limit=10)).items == []
    assert await facts(db, place) == []
