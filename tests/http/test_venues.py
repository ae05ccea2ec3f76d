"""Venues and gates over HTTP: every field, who may, and what refuses."""

import asyncio
import json
from typing import Any
from uuid import UUID

import httpx2
import pytest

from tests.make.accounts import Person, make_organization, make_person
from tests.make.events import make_event, make_gate, make_venue
from tests.make.web import Site
from voelgoed.accounts.model import Role
from voelgoed.db import Database
from voelgoed.events.model import Venue
from voelgoed.ids import new_id

VENUES = "/api/admin/venues"
GATES = "/api/admin/gates"


@pytest.fixture
async def owner(db: Database) -> Person:
    return await make_person(db, role=Role.OWNER)


@pytest.fixture
async def venue(db: Database, owner: Person) -> Venue:
    return await make_venue(db, owner.organization)


def body(**fields: Any) -> dict[str, Any]:
    return {
        "name": "Die Skouburg",
        "slug": f"venue-{new_id().hex}",
        "timezone": "Africa/Johannesburg",
        "max_capacity": 300,
    } | fields


async def ask(
    site: Site, person: Person, method: str, path: str, asked: object = None, **headers: str
) -> httpx2.Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    content = None if asked is None else json.dumps(asked)
    return await site.client.request(
        method, path, headers={**person.headers, "content-type": "application/json", **named}, content=content
    )


async def row_of(db: Database, person: Person, table: str, row_id: UUID | str) -> str | None:
    async with db.transaction(person.organization.id) as conn:
        text: str | None = await conn.fetchval(f"select t::text from {table} t where id = $1", UUID(str(row_id)))
    return text


async def facts(db: Database, person: Person) -> list[dict[str, Any]]:
    """What the journal tells of venues, gates and who may change them."""
    async with db.transaction(person.organization.id) as conn:
        rows = await conn.fetch(
            "select kind, actor_id, reason, data from journal"
            " where kind like 'venue%' or kind like 'gate%' or kind like '%policy%' order by seq"
        )
    return [{**dict(row), "data": json.loads(row["data"])} for row in rows]


def refusal(answer: httpx2.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]


@pytest.mark.req("EV-02", "EV-04", "EV-07", "RBAC-01")
async def test_a_venue_is_made_changed_and_deleted(site: Site, db: Database, owner: Person) -> None:
    """Every field in and out; each step a version and a fact; unknown settings stay."""
    asked = body(
        address={"street": "Kerkstraat 1", "city": "Oudtshoorn", "latitude": -33.6, "unknown": [1]},
        settings={"access_rules": "No glass", "doors_open_minutes_before": 60, "code": "kept", "x": {"y": None}},
    )
    made = await ask(site, owner, "POST", VENUES, asked)
    assert made.status_code == 201
    venue = made.json()["data"]
    assert {name: venue[name] for name in asked} == asked
    assert (venue["version"], made.headers["etag"]) == (1, '"1"')
    assert venue["inserted_at"] == venue["updated_at"]
    path = f"{VENUES}/{venue['id']}"
    assert (await ask(site, owner, "GET", path)).json()["data"] == venue
    assert (await ask(site, owner, "GET", VENUES)).json() == {"data": [venue], "next_cursor": None}
    wanted = body(name="New", timezone="Pacific/Kiritimati", max_capacity=0, address={}, settings={"step_free": True})
    changed = await ask(site, owner, "PATCH", path, wanted, if_match='"1"')
    now = changed.json()["data"]
    assert {name: now[name] for name in wanted} == wanted
    assert (now["version"], changed.headers["etag"]) == (2, '"2"')
    assert now["updated_at"] > now["inserted_at"]
    assert (await ask(site, owner, "PATCH", path, {"name": "New"})).json()["data"] == now
    assert refusal(await ask(site, owner, "PATCH", path, {"name": "X"}, if_match='"1"')) == (409, "venue_changed")
    assert refusal(await ask(site, owner, "DELETE", path, if_match='"1"')) == (409, "venue_changed")
    assert (await ask(site, owner, "DELETE", path, if_match='"2"')).status_code == 204
    assert refusal(await ask(site, owner, "GET", path)) == (404, "venue_not_found")
    told = await facts(db, owner)
    assert [(fact["kind"], fact["actor_id"], fact["data"]["venue_id"]) for fact in told] == [
        (kind, owner.user_id, venue["id"]) for kind in ("venue_created", "venue_updated", "venue_deleted")
    ]
    assert told[1]["data"]["changes"]["max_capacity"] == [300, 0]


@pytest.mark.req("EV-08", "EV-03", "EV-05")
async def test_what_a_venue_refuses(site: Site, db: Database, owner: Person, venue: Venue) -> None:
    """A slug that is taken here (elsewhere it may be), zones that are none, capacities that are none."""
    assert refusal(await ask(site, owner, "POST", VENUES, body(slug=venue.slug))) == (409, "venue_slug_taken")
    other = await make_venue(db, owner.organization)
    taken = await ask(site, owner, "PATCH", f"{VENUES}/{other.id}", {"slug": venue.slug})
    assert refusal(taken) == (409, "venue_slug_taken")
    stranger = await make_venue(db, await make_organization(db), slug=venue.slug)
    assert stranger.slug == venue.slug
    for zone in ("Mars/Olympus", "CET", "africa/johannesburg", "../etc/passwd", "Africa", "UTC+2"):
        assert refusal(await ask(site, owner, "POST", VENUES, body(timezone=zone))) == (400, "timezone_unknown")
        changed = await ask(site, owner, "PATCH", f"{VENUES}/{venue.id}", {"timezone": zone})
        assert refusal(changed) == (400, "timezone_unknown")
    for number in (-1, 1_000_001, 2.5, "many", None):
        asked = body(max_capacity=number)
        assert refusal(await ask(site, owner, "POST", VENUES, asked)) == (400, "invalid_request")
    assert len((await ask(site, owner, "GET", VENUES)).json()["data"]) == 2


HOSTILE = (
    '{"a": "\\u0000"}', '{"a": "\\ud800"}', '{"a": 1e300}', '{"a": 1e999}', '{"a": 18446744073709551616}', "[]", "null",
    f'{{"a": "{"x" * 17_000}"}}', f'{{"a": [{",".join("1" * 8_000)}]}}',
)  # fmt: skip


@pytest.mark.parametrize("field", ["settings", "address"])
@pytest.mark.parametrize("value", HOSTILE, ids=lambda value: value[:16])
async def test_what_cannot_be_kept_is_refused(
    site: Site, db: Database, owner: Person, venue: Venue, field: str, value: str
) -> None:
    """400 on making and on changing; nothing is stored."""
    before = await row_of(db, owner, "venues", venue.id)
    headers = {**owner.headers, "content-type": "application/json"}
    whole = json.dumps(body())[:-1] + f', "{field}": {value}}}'
    made = await site.client.post(VENUES, headers=headers, content=whole)
    changed = await site.client.patch(f"{VENUES}/{venue.id}", headers=headers, content=f'{{"{field}": {value}}}')
    assert (made.status_code, changed.status_code) == (400, 400), (made.text, changed.text)
    assert await row_of(db, owner, "venues", venue.id) == before
    assert len((await ask(site, owner, "GET", VENUES)).json()["data"]) == 1


async def test_an_address_has_room_for_an_address(site: Site, owner: Person, venue: Venue) -> None:
    """Four thousand bytes are kept, five thousand are refused in words; a wrong latitude is named."""
    path = f"{VENUES}/{venue.id}"
    assert (await ask(site, owner, "PATCH", path, {"address": {"note": "x" * 4_000}})).status_code == 200
    refused = await ask(site, owner, "PATCH", path, {"address": {"note": "x" * 5_000}})
    assert refusal(refused) == (400, "settings_invalid")
    assert "address" in refused.json()["details"]
    wrong = await ask(site, owner, "PATCH", path, {"address": {"latitude": 91}})
    assert refusal(wrong) == (400, "settings_invalid")
    assert list(wrong.json()["details"]["address"]) == ["latitude"]


@pytest.mark.parametrize("field", ["name", "slug", "timezone", "max_capacity", "address", "settings"])
async def test_what_cannot_be_empty_is_not_emptied(
    site: Site, db: Database, owner: Person, venue: Venue, field: str
) -> None:
    """Null is no value for any of a venue's fields."""
    before = await row_of(db, owner, "venues", venue.id)
    refused = await ask(site, owner, "PATCH", f"{VENUES}/{venue.id}", {field: None})
    assert refusal(refused) == (400, "invalid_request")
    assert await row_of(db, owner, "venues", venue.id) == before


@pytest.mark.req("EV-06", "TEST-34")
async def test_a_venue_does_not_shrink_below_its_events(site: Site, db: Database, owner: Person, venue: Venue) -> None:
    """Those to come count, down to drafts; what is over or off does not."""
    for status in ("draft", "published", "live", "postponed"):
        hall = await make_venue(db, owner.organization, max_capacity=100)
        event = await make_event(db, owner.organization, hall, status, capacity=80)
        path = f"{VENUES}/{hall.id}"
        refused = await ask(site, owner, "PATCH", path, {"max_capacity": 79})
        assert refusal(refused) == (409, "capacity_exceeded")
        assert [one["event_id"] for one in refused.json()["details"]["events"]] == [str(event.id)]
        assert (await ask(site, owner, "PATCH", path, {"max_capacity": 80})).status_code == 200
    for status in ("ended", "cancelled", "archived"):
        hall = await make_venue(db, owner.organization, max_capacity=100)
        await make_event(db, owner.organization, hall, status, capacity=80)
        assert (await ask(site, owner, "PATCH", f"{VENUES}/{hall.id}", {"max_capacity": 1})).status_code == 200


async def test_a_venue_with_events_stays(site: Site, db: Database, owner: Person, venue: Venue) -> None:
    """Even with one that is archived; one with gates goes, and its gates with it."""
    gate = await make_gate(db, venue)
    event = await make_event(db, owner.organization, venue, "archived")
    before = await row_of(db, owner, "gates", gate.id)
    assert refusal(await ask(site, owner, "DELETE", f"{VENUES}/{venue.id}")) == (409, "venue_in_use")
    assert await row_of(db, owner, "gates", gate.id) == before
    other = await make_venue(db, owner.organization)
    gates = [await make_gate(db, other, gate_code=code) for code in ("A", "B")]
    assert (await ask(site, owner, "DELETE", f"{VENUES}/{other.id}")).status_code == 204
    assert [await row_of(db, owner, "gates", one.id) for one in gates] == [None, None]
    assert (await facts(db, owner))[-1]["data"]["gates"] == 2
    assert await row_of(db, owner, "events", event.id) is not None


@pytest.mark.req("EV-33", "EV-35", "EV-36", "EV-37")
async def test_a_gate_is_made_changed_opened_and_deleted(site: Site, db: Database, owner: Person, venue: Venue) -> None:
    """Every field in and out; it is closed until somebody opens it."""
    asked = {"gate_code": "MAIN_ENTRANCE", "name": "Hoofingang", "capacity": 40, "settings": {"lanes": 3, "x": 1}}
    made = await ask(site, owner, "POST", f"{VENUES}/{venue.id}/gates", asked)
    assert made.status_code == 201
    gate = made.json()["data"]
    assert {name: gate[name] for name in asked} == asked
    assert (gate["status"], gate["venue_id"], gate["version"]) == ("closed", str(venue.id), 1)
    path = f"{GATES}/{gate['id']}"
    assert (await ask(site, owner, "GET", path)).json()["data"] == gate
    opened = await ask(site, owner, "POST", f"{path}/open", {"reason": "doors"})
    assert (opened.json()["data"]["status"], opened.headers["etag"]) == ("open", '"2"')
    assert (await ask(site, owner, "POST", f"{path}/open", {})).json()["data"]["version"] == 2
    wanted: dict[str, Any] = {"gate_code": "GATE_A", "name": "New", "capacity": None, "settings": {}}
    changed = (await ask(site, owner, "PATCH", path, wanted, if_match='"2"')).json()["data"]
    assert ({name: changed[name] for name in wanted}, changed["status"]) == (wanted, "open")
    assert refusal(await ask(site, owner, "PATCH", path, {"name": "X"}, if_match='"2"')) == (409, "gate_changed")
    assert (await ask(site, owner, "POST", f"{path}/close", {})).json()["data"]["status"] == "closed"
    assert refusal(await ask(site, owner, "DELETE", path, if_match='"3"')) == (409, "gate_changed")
    assert (await ask(site, owner, "DELETE", path, if_match='"4"')).status_code == 204
    assert refusal(await ask(site, owner, "GET", path)) == (404, "gate_not_found")
    told = await facts(db, owner)
    assert [fact["kind"] for fact in told] == ["gate_created", *["gate_updated"] * 3, "gate_deleted"]
    assert (told[1]["reason"], told[1]["data"]["changes"]) == ("doors", {"status": ["closed", "open"]})
    assert {fact["data"]["gate_id"] for fact in told} == {gate["id"]}


@pytest.mark.req("EV-34", "EV-38", "EV-36")
async def test_what_a_gate_refuses(site: Site, db: Database, owner: Person, venue: Venue) -> None:
    """A code that is taken at this venue, one that is none, a capacity of nobody, settings that are wrong."""
    await make_gate(db, venue, gate_code="GATE_A")
    path = f"{VENUES}/{venue.id}/gates"
    good = {"gate_code": "GATE_A", "name": "A"}
    assert refusal(await ask(site, owner, "POST", path, good)) == (409, "gate_code_taken")
    other = await make_venue(db, owner.organization)
    second = await ask(site, owner, "POST", f"{VENUES}/{other.id}/gates", good)
    assert second.status_code == 201
    third = await make_gate(db, other, gate_code="GATE_B")
    taken = await ask(site, owner, "PATCH", f"{GATES}/{third.id}", {"gate_code": "GATE_A"})
    assert refusal(taken) == (409, "gate_code_taken")
    for code in ("", "gate a", "a", "_A", "A" * 33, "A\n", "Ä"):
        assert refusal(await ask(site, owner, "POST", path, good | {"gate_code": code})) == (400, "invalid_request")
    for capacity in (0, -1, 1_000_001, "x"):
        assert refusal(await ask(site, owner, "POST", path, good | {"capacity": capacity})) == (400, "invalid_request")
    wrong = await ask(site, owner, "POST", path, good | {"gate_code": "C", "settings": {"lanes": 0}})
    assert refusal(wrong) == (400, "settings_invalid")
    for field in ("gate_code", "name", "settings"):
        refused = await ask(site, owner, "PATCH", f"{GATES}/{third.id}", {field: None})
        assert refusal(refused) == (400, "invalid_request")
    moved = await ask(site, owner, "PATCH", f"{GATES}/{third.id}", {"venue_id": str(venue.id)})
    assert refusal(moved) == (400, "invalid_request")


@pytest.mark.req("EV-63")
async def test_the_open_gates_of_a_venue(site: Site, db: Database, owner: Person, venue: Venue) -> None:
    """All, or those through which people pass; of this venue and no other, page by page."""
    gates = [await make_gate(db, venue, gate_code=f"G{number}") for number in range(5)]
    await make_gate(db, await make_venue(db, owner.organization), gate_code="OTHER", status="open")
    for gate in gates[:2]:
        assert (await ask(site, owner, "POST", f"{GATES}/{gate.id}/open", {})).status_code == 200
    path = f"{VENUES}/{venue.id}/gates"

    async def codes(query: str) -> list[str]:
        answer = await ask(site, owner, "GET", f"{path}{query}")
        return [gate["gate_code"] for gate in answer.json()["data"]]

    assert await codes("") == ["G0", "G1", "G2", "G3", "G4"]
    assert await codes("?status=open") == ["G0", "G1"]
    assert await codes("?status=closed") == ["G2", "G3", "G4"]
    first = (await ask(site, owner, "GET", f"{path}?limit=3")).json()
    assert await codes(f"?limit=3&cursor={first['next_cursor']}") == ["G3", "G4"]
    assert refusal(await ask(site, owner, "GET", f"{path}?status=ajar")) == (400, "invalid_request")
    assert refusal(await ask(site, owner, "GET", f"{path}?cursor=x")) == (400, "cursor_invalid")
    foreign = await make_venue(db, await make_organization(db))
    for absent in (foreign.id, new_id()):
        assert refusal(await ask(site, owner, "GET", f"{VENUES}/{absent}/gates")) == (404, "venue_not_found")


@pytest.mark.req("RBAC-04", "RBAC-01")
async def test_staff_change_venues_where_they_are_let(site: Site, db: Database, owner: Person, venue: Venue) -> None:
    """Not before the organization says so, not after it took it back; deleting is never theirs, nor the saying."""
    staff = await make_person(db, owner.organization, Role.STAFF)
    gate = await make_gate(db, venue)
    asks: list[tuple[str, str, Any]] = [
        ("POST", VENUES, None),
        ("PATCH", f"{VENUES}/{venue.id}", {"name": "Staff's"}),
        ("POST", f"{VENUES}/{venue.id}/gates", None),
        ("PATCH", f"{GATES}/{gate.id}", {"name": "Staff's"}),
    ]

    async def statuses() -> list[int]:
        return [
            (
                await ask(
                    site,
                    staff,
                    method,
                    path,
                    asked or (body() if path == VENUES else {"gate_code": new_id().hex.upper(), "name": "G"}),
                )
            ).status_code
            for method, path, asked in asks
        ]

    policy = "/api/admin/event-policy"
    assert (await ask(site, staff, "GET", policy)).json()["data"] == {"staff_may_change_venues": False}
    assert await statuses() == [403] * 4
    assert refusal(await ask(site, staff, "PUT", policy, {"staff_may_change_venues": True})) == (
        403,
        "permission_denied",
    )
    assert (await ask(site, owner, "PUT", policy, {"staff_may_change_venues": True})).status_code == 200
    assert (await ask(site, staff, "GET", policy)).json()["data"] == {"staff_may_change_venues": True}
    assert await statuses() == [201, 200, 201, 200]
    for path in (f"{VENUES}/{venue.id}", f"{GATES}/{gate.id}"):
        assert refusal(await ask(site, staff, "DELETE", path)) == (403, "permission_denied")
    assert (await ask(site, owner, "PUT", policy, {"staff_may_change_venues": False})).status_code == 200
    assert await statuses() == [403] * 4
    assert (await ask(site, staff, "POST", f"{GATES}/{gate.id}/open", {})).status_code == 200
    told = [fact for fact in await facts(db, owner) if fact["kind"] == "event_policy_changed"]
    assert [(fact["actor_id"], fact["data"]["staff_may_change_venues"]) for fact in told] == [
        (owner.user_id, True),
        (owner.user_id, False),
    ]


async def test_another_organizations_venue_is_no_venue(site: Site, db: Database, owner: Person) -> None:
    """Word for word the answer for one that never was; of gates the same."""
    stranger = await make_venue(db, await make_organization(db))
    gate = await make_gate(db, stranger)
    new_gate = {"gate_code": "A", "name": "A"}
    asks: list[tuple[str, str, str, Any]] = [
        ("GET", VENUES, "", None), ("PATCH", VENUES, "", {"name": "Mine"}), ("DELETE", VENUES, "", None),
        ("GET", VENUES, "/gates", None), ("POST", VENUES, "/gates", new_gate),
        ("GET", GATES, "", None), ("PATCH", GATES, "", {"name": "Mine"}), ("DELETE", GATES, "", None),
        ("POST", GATES, "/open", {}), ("POST", GATES, "/close", {}),
    ]  # fmt: skip
    for method, path, tail, asked in asks:
        foreign = stranger.id if path == VENUES else gate.id
        answers = []
        for one in (foreign, new_id()):
            answer = await ask(site, owner, method, f"{path}/{one}{tail}", asked)
            answers.append({**answer.json(), "request_id": None, "status": answer.status_code})
        assert answers[0] == answers[1]
        assert answers[0]["status"] == 404
    assert (await ask(site, owner, "GET", VENUES)).json()["data"] == []


async def test_the_same_ask_with_the_same_key_makes_one(site: Site, owner: Person, venue: Venue) -> None:
    """Of venues and of gates: three at once are one; the key for another ask is refused."""
    for path, asked in ((VENUES, body()), (f"{VENUES}/{venue.id}/gates", {"gate_code": "ONE", "name": "One"})):
        key = new_id().hex
        answers = await asyncio.gather(*(ask(site, owner, "POST", path, asked, idempotency_key=key) for _ in range(3)))
        assert [answer.status_code for answer in answers] == [201] * 3
        assert len({answer.json()["data"]["id"] for answer in answers}) == 1
        other = await ask(site, owner, "POST", path, asked | {"name": "Other"}, idempotency_key=key)
        assert refusal(other) == (422, "idempotency_key_reused")


async def test_venues_are_listed_in_pages(site: Site, db: Database, owner: Person) -> None:
    """Oldest first, each once."""
    ids = [str((await make_venue(db, owner.organization)).id) for _ in range(5)]
    seen: list[str] = []
    path: str | None = f"{VENUES}?limit=2"
    while path:
        page = (await ask(site, owner, "GET", path)).json()
        seen += [venue["id"] for venue in page["data"]]
        path = f"{VENUES}?limit=2&cursor={page['next_cursor']}" if page["next_cursor"] else None
    assert seen == ids
