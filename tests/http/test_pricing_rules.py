"""Pricing rules over HTTP: every field, every refusal, page by page."""

import asyncio
import json
from typing import Any
from uuid import UUID

import httpx2
import pytest

from tests.make.accounts import Person, make_person
from tests.make.events import make_event
from tests.make.prices import make_rule, name_rule
from tests.make.web import Site
from voelgoed.accounts.model import Role
from voelgoed.db import Database
from voelgoed.ids import new_id
from voelgoed.ticketing.model import StoredRule

RULES = "/api/admin/pricing-rules"


@pytest.fixture
async def owner(db: Database) -> Person:
    return await make_person(db, role=Role.OWNER)


@pytest.fixture
async def rule(db: Database, owner: Person) -> StoredRule:
    return await make_rule(db, owner.organization)


def body(**fields: Any) -> dict[str, Any]:
    return {"name": "Full price", "currency": "ZAR", "amount_minor": 10_000} | fields


async def ask(
    site: Site, person: Person, method: str, path: str, asked: object = None, **headers: str
) -> httpx2.Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    content = None if asked is None else json.dumps(asked)
    return await site.client.request(
        method, path, headers={**person.headers, "content-type": "application/json", **named}, content=content
    )


async def rows(db: Database, person: Person) -> list[str]:
    """Every rule of the organization, to the last column."""
    async with db.transaction(person.organization.id) as conn:
        return [row[0] for row in await conn.fetch("select t::text from pricing_rules t order by id")]


def refusal(answer: httpx2.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]


async def test_a_rule_is_made_changed_and_deleted(site: Site, owner: Person) -> None:
    """Every field in and out; amounts by kind of seat are replaced as a whole; each step a version."""
    asked = body(by_category={"restricted_view": 6_000, "companion": 0})
    made = await ask(site, owner, "POST", RULES, asked)
    assert (made.status_code, made.headers["etag"]) == (201, '"1"')
    rule = made.json()["data"]
    assert {name: rule[name] for name in asked} == asked
    assert rule.keys() == {*asked, "id", "version", "created_at", "updated_at"}
    path = f"{RULES}/{rule['id']}"
    assert (await ask(site, owner, "GET", path)).json()["data"] == rule
    assert (await ask(site, owner, "GET", RULES)).json() == {"data": [rule], "next_cursor": None}
    wanted = body(name="Early", currency="EUR", amount_minor=0, by_category={"aisle": 1_000_000_000})
    changed = await ask(site, owner, "PATCH", path, wanted, if_match='"1"')
    now = changed.json()["data"]
    assert ({name: now[name] for name in wanted}, changed.headers["etag"]) == (wanted, '"2"')
    assert (await ask(site, owner, "PATCH", path, {"name": "Late"})).json()["data"]["by_category"] == {
        "aisle": 1_000_000_000
    }
    assert (await ask(site, owner, "PATCH", path, {"by_category": {}})).json()["data"]["by_category"] == {}
    stale = await ask(site, owner, "PATCH", path, {"name": "X"}, if_match='"1"')
    assert (refusal(stale), stale.json()["details"]) == ((409, "pricing_rule_changed"), {"version": 4})
    assert refusal(await ask(site, owner, "DELETE", path, if_match='"3"')) == (409, "pricing_rule_changed")
    assert (await ask(site, owner, "GET", path)).json()["data"]["version"] == 4
    assert (await ask(site, owner, "DELETE", path, if_match='"4"')).status_code == 204
    for method, asked_now in (("GET", None), ("PATCH", {"name": "X"}), ("DELETE", None)):
        assert refusal(await ask(site, owner, method, path, asked_now)) == (404, "pricing_rule_not_found")


@pytest.mark.parametrize(
    ("wrong", "fields"),
    [
        ({"name": ""}, {"name"}),
        ({"name": "a\0b"}, {"name"}),
        ({"name": " Full"}, {"name"}),
        ({"currency": "rand", "amount_minor": -1}, {"currency", "amount_minor"}),
        ({"amount_minor": 1_000_000_001}, {"amount_minor"}),
        ({"amount_minor": 10**30}, {"amount_minor"}),
        ({"by_category": {"balcony": 1, "aisle": -1}}, {"by_category.balcony", "by_category.aisle"}),
        ({"by_category": {"\0": 1}}, {"by_category.\0"}),
        ({"by_category": {"wheelchair": 10_001, "companion": 10_000}}, {"by_category.wheelchair"}),
    ],
)
async def test_what_a_rule_cannot_be_is_told_by_field(
    site: Site, db: Database, owner: Person, rule: StoredRule, wrong: dict[str, Any], fields: set[str]
) -> None:
    """On making and on changing; nothing is stored."""
    before = await rows(db, owner)
    made = await ask(site, owner, "POST", RULES, body(**wrong))
    changed = await ask(site, owner, "PATCH", f"{RULES}/{rule.id}", wrong)
    for answer in (made, changed):
        assert refusal(answer) == (400, "pricing_rule_invalid")
        assert answer.json()["details"]["fields"].keys() == fields
    assert await rows(db, owner) == before


@pytest.mark.parametrize(
    "wrong",
    [
        '{"name": null}', '{"currency": null}', '{"amount_minor": null}', '{"by_category": null}',
        '{"name": 1}', '{"name": "\\ud800"}', '{"amount_minor": "100"}', '{"amount_minor": 99.5}',
        '{"amount_minor": 100.0}', '{"amount_minor": true}', '{"amount_minor": 1e999}', '{"by_category": []}',
        '{"by_category": {"aisle": null}}', '{"by_category": {"aisle": 0.5}}', '{"by_category": {"\\udfff": 1}}',
        '{"price": 1}', '{"version": 9}', '{"id": "x"}', f'{{"name": "{"x" * 201}"}}', "[]", "null",
        f'{{"by_category": {{"{"x" * 41}": 1}}}}', json.dumps({"by_category": {str(n): 1 for n in range(41)}}),
    ],
    ids=lambda text: text[:40],
)  # fmt: skip
async def test_what_is_not_of_the_form_is_refused(
    site: Site, db: Database, owner: Person, rule: StoredRule, wrong: str
) -> None:
    """A price is a whole number and nothing else; null empties nothing."""
    before = await rows(db, owner)
    headers = {**owner.headers, "content-type": "application/json"}
    changed = await site.client.patch(f"{RULES}/{rule.id}", headers=headers, content=wrong)
    assert refusal(changed) == (400, "invalid_request")
    if wrong.startswith("{"):
        whole = json.dumps(body())[:-1] + f", {wrong[1:]}"  # of a key given twice the last one counts
        made = await site.client.post(RULES, headers=headers, content=whole)
        assert refusal(made) == (400, "invalid_request")
    assert await rows(db, owner) == before


async def test_a_rule_in_use_stays(site: Site, db: Database, owner: Person, rule: StoredRule) -> None:
    """The refusal says by whom it is used."""
    event = await make_event(db, owner.organization, name="Karnaval")
    async with db.transaction(owner.organization.id) as conn:
        await name_rule(conn, event, rule)
    before = await rows(db, owner)
    path = f"{RULES}/{rule.id}"
    for answer in (
        await ask(site, owner, "DELETE", path),
        await ask(site, owner, "PATCH", path, {"currency": "EUR"}),
    ):
        assert refusal(answer) == (409, "pricing_rule_in_use")
        assert answer.json()["details"] == {"events": [{"id": str(event.id), "name": "Karnaval"}]}
    assert await rows(db, owner) == before
    assert (await ask(site, owner, "PATCH", path, {"amount_minor": 7})).json()["data"]["amount_minor"] == 7


async def test_one_key_makes_one_rule(site: Site, db: Database, owner: Person) -> None:
    """At once and afterwards; used for something else it is refused, and after the rule is gone it is gone."""
    key = new_id().hex
    answers = await asyncio.gather(*(ask(site, owner, "POST", RULES, body(), idempotency_key=key) for _ in range(3)))
    answers.append(await ask(site, owner, "POST", RULES, body(), idempotency_key=key))
    assert [answer.status_code for answer in answers] == [201] * 4
    (rule_id,) = {answer.json()["data"]["id"] for answer in answers}
    other = await ask(site, owner, "POST", RULES, body(amount_minor=1), idempotency_key=key)
    assert refusal(other) == (422, "idempotency_key_reused")
    assert len(await rows(db, owner)) == 1
    assert (await ask(site, owner, "DELETE", f"{RULES}/{rule_id}")).status_code == 204
    again = await ask(site, owner, "POST", RULES, body(), idempotency_key=key)
    assert refusal(again) == (404, "pricing_rule_not_found")
    assert await rows(db, owner) == []


async def test_a_thousand_rules_are_enough(site: Site, db: Database, owner: Person) -> None:
    """The next one is refused."""
    async with db.transaction(owner.organization.id) as conn:
        await conn.execute(
            "insert into pricing_rules (id, organization_id, name, currency, amount_minor)"
            " select gen_random_uuid(), $1, 'Rule ' || n, 'ZAR', n from generate_series(1, 1000) n",
            owner.organization.id,
        )
    refused = await ask(site, owner, "POST", RULES, body())
    assert (refusal(refused), refused.json()["details"]) == ((409, "pricing_rules_full"), {"rules_max": 1_000})
    assert len(await rows(db, owner)) == 1_000


async def test_the_list_comes_in_pages(site: Site, db: Database, owner: Person) -> None:
    """Oldest first, each once, names as often as one likes; a cursor of another list is refused."""
    made = [await make_rule(db, owner.organization) for _ in range(5)]
    seen: list[UUID] = []
    query, cursor = "?limit=2", None
    for _ in range(3):
        page = (await ask(site, owner, "GET", RULES + query)).json()
        seen += [UUID(one["id"]) for one in page["data"]]
        cursor = page["next_cursor"]
        query = f"?limit=2&cursor={cursor}"
    assert (seen, cursor) == ([one.id for one in made], None)
    assert refusal(await ask(site, owner, "GET", f"{RULES}?cursor=x")) == (400, "cursor_invalid")
    assert refusal(await ask(site, owner, "GET", f"{RULES}?limit=201")) == (400, "invalid_request")
