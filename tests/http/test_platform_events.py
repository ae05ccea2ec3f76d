"""The platform's staff and events: they cancel and postpone, with a reason, never more; all of it is told."""

import json
from typing import Any

import pytest

from tests.make.accounts import Person, make_organization, make_person
from tests.make.events import make_event, soon
from tests.make.web import Site
from voelgoed.accounts.model import Organization, Role
from voelgoed.db import Database
from voelgoed.events.model import Event, Status
from voelgoed.ids import new_id

APPROVED = {"reason": "the owner asked", "tenant_approval_reference": "letter of 1 March"}


@pytest.fixture
async def super_admin(db: Database) -> Person:
    return await make_person(db, platform=Role.SUPER_ADMIN)


@pytest.fixture
async def manager(db: Database) -> Person:
    return await make_person(db, platform=Role.TENANT_MANAGER)


@pytest.fixture
async def place(db: Database) -> Organization:
    return await make_organization(db)


def path_of(event: Event, verb: str) -> str:
    return f"/api/platform/orgs/{event.organization_id}/events/{event.id}/{verb}"


async def last_fact(db: Database, event: Event) -> dict[str, Any]:
    async with db.transaction(event.organization_id) as conn:
        row = await conn.fetchrow(
            "select kind, version, actor_id, reason, recorded_at, data from journal where event_id = $1"
            " order by seq desc limit 1",
            event.id,
        )
    assert row is not None
    return {**dict(row), "data": json.loads(row["data"])}


async def row_of(db: Database, event: Event) -> str | None:
    async with db.transaction(event.organization_id) as conn:
        text: str | None = await conn.fetchval("select e::text from events e where id = $1", event.id)
    return text


@pytest.mark.req("RBAC-07", "AUD-07", "AUD-05")
@pytest.mark.parametrize(("verb", "status"), [("cancel", "cancelled"), ("postpone", "postponed")])
async def test_a_super_admin_intervenes_with_a_reason(
    site: Site, db: Database, super_admin: Person, place: Organization, verb: str, status: str
) -> None:
    """In any organization, without its word; the journal there tells who, as what, when, why and from what to what."""
    event = await make_event(db, place, status="published")
    answer = await site.client.post(path_of(event, verb), headers=super_admin.headers, json={"reason": "fire hazard"})
    assert (answer.status_code, answer.json()["data"]["status"]) == (200, status)
    fact = await last_fact(db, event)
    assert (fact["kind"], fact["actor_id"], fact["reason"]) == (
        "event_status_changed",
        super_admin.user_id,
        "fire hazard",
    )
    assert fact["recorded_at"] is not None
    data = fact["data"]
    assert (data["actor_type"], data["old_status"], data["new_status"]) == ("super_admin", "published", status)
    assert (data["event_id"], "tenant_approval_reference" in data) == (str(event.id), False)


@pytest.mark.req("RBAC-08", "AUD-06")
@pytest.mark.parametrize(("verb", "status"), [("cancel", "cancelled"), ("postpone", "postponed")])
async def test_a_tenant_manager_needs_the_organizations_word(
    site: Site, db: Database, manager: Person, place: Organization, verb: str, status: str
) -> None:
    """Without the reference it is refused and nothing happens; with it, the reference stands beside the reason."""
    event = await make_event(db, place, status="published")
    before = await row_of(db, event)
    refused = await site.client.post(path_of(event, verb), headers=manager.headers, json={"reason": "the owner asked"})
    assert (refused.status_code, refused.json()["error"]) == (403, "approval_required")
    assert await row_of(db, event) == before
    assert (await last_fact(db, event))["version"] == event.version
    done = await site.client.post(path_of(event, verb), headers=manager.headers, json=APPROVED)
    assert (done.status_code, done.json()["data"]["status"]) == (200, status)
    fact = await last_fact(db, event)
    assert (fact["actor_id"], fact["reason"]) == (manager.user_id, "the owner asked")
    assert fact["data"]["tenant_approval_reference"] == "letter of 1 March"
    assert fact["data"]["actor_type"] == "tenant_manager"


@pytest.mark.parametrize("verb", ["cancel", "postpone"])
async def test_no_reason_no_intervention(
    site: Site, db: Database, super_admin: Person, place: Organization, verb: str
) -> None:
    """An empty reason is none, and neither is a blank one; an empty reference is refused as well."""
    event = await make_event(db, place, status="published")
    before = await row_of(db, event)
    for body in (
        {},
        {"reason": ""},
        {"reason": None},
        {"reason": " \n"},
        {**APPROVED, "tenant_approval_reference": ""},
        {**APPROVED, "tenant_approval_reference": " "},
    ):
        answer = await site.client.post(path_of(event, verb), headers=super_admin.headers, json=body)
        assert (answer.status_code, answer.json()["error"]) == (400, "invalid_request")
    assert await row_of(db, event) == before


async def test_a_date_can_be_given_with_the_postponement(
    site: Site, db: Database, super_admin: Person, place: Organization
) -> None:
    """And what the public is told; If-Match guards here too."""
    event = await make_event(db, place, status="live")
    new = soon(days=90).isoformat().replace("+00:00", "Z")
    asked = {"reason": "storm", "postponement_reason": "weather", "start_at": new}
    stale = await site.client.post(
        path_of(event, "postpone"), headers={**super_admin.headers, "if-match": '"1"'}, json=asked
    )
    assert (stale.status_code, stale.json()["error"]) == (409, "event_changed")
    done = await site.client.post(
        path_of(event, "postpone"), headers={**super_admin.headers, "if-match": f'"{event.version}"'}, json=asked
    )
    data = done.json()["data"]
    assert (data["status"], data["rescheduled_at"]) == ("postponed", new)
    async with db.transaction(place.id) as conn:
        public = await conn.fetchval("select postponement_reason from events where id = $1", event.id)
    assert public == "weather"


async def test_the_platform_does_no_more_than_that(
    site: Site, db: Database, super_admin: Person, place: Organization
) -> None:
    """No other verb has an address there, the organiser's own are closed to it, and no edge is bent."""
    event = await make_event(db, place)
    for verb in ("publish", "unpublish", "go-live", "end", "archive", "reschedule"):
        answer = await site.client.post(path_of(event, verb), headers=super_admin.headers, json={"reason": "x"})
        assert answer.status_code == 404
        direct = await site.client.post(
            f"/api/admin/events/{event.id}/{verb}", headers=super_admin.headers, json={"reason": "x"}
        )
        assert direct.status_code == 403
    refused = await site.client.post(path_of(event, "cancel"), headers=super_admin.headers, json={"reason": "x"})
    assert (refused.status_code, refused.json()["error"]) == (409, "event_move_refused")
    elsewhere = await make_event(db, await make_organization(db), status="published")
    for org_id, event_id in ((place.id, elsewhere.id), (place.id, new_id()), (new_id(), elsewhere.id)):
        path = f"/api/platform/orgs/{org_id}/events/{event_id}/cancel"
        answer = await site.client.post(path, headers=super_admin.headers, json={"reason": "x"})
        assert (answer.status_code, answer.json()["error"]) == (404, "event_not_found")
    assert await row_of(db, elsewhere) is not None
    assert (await last_fact(db, elsewhere))["version"] == elsewhere.version


async def test_an_organizations_events_are_listed_but_for_drafts(
    site: Site, db: Database, manager: Person, place: Organization
) -> None:
    """Archived ones too, in the order of time, page by page, and of no other organization."""
    events = [
        await make_event(db, place, status=status, start_at=soon(days=number + 1), end_at=soon(days=number + 2))
        for number, status in enumerate(Status)
        if status is not Status.DRAFT
    ]
    await make_event(db, place)
    await make_event(db, await make_organization(db), status="published")
    path = f"/api/platform/orgs/{place.id}/events"
    whole = await site.client.get(path, headers=manager.headers)
    assert [one["id"] for one in whole.json()["data"]] == [str(event.id) for event in events]
    first = (await site.client.get(f"{path}?limit=4", headers=manager.headers)).json()
    rest = (await site.client.get(f"{path}?limit=4&cursor={first['next_cursor']}", headers=manager.headers)).json()
    assert ([one["id"] for one in rest["data"]], rest["next_cursor"]) == ([str(one.id) for one in events[4:]], None)
    wrong = await site.client.get(f"{path}?cursor=x", headers=manager.headers)
    assert (wrong.status_code, wrong.json()["error"]) == (400, "cursor_invalid")
