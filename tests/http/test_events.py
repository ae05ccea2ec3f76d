"""Events over HTTP, to the organization's own people: every field, every verb, every refusal."""

import asyncio
import json
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import httpx2
import pytest

from tests.make.accounts import Person, make_organization, make_person
from tests.make.events import make_event, make_venue, soon
from tests.make.web import Site
from voelgoed.accounts.model import Role
from voelgoed.db import Database
from voelgoed.events import rules
from voelgoed.events.model import Event, Status, Venue
from voelgoed.ids import new_id
from voelgoed.paging import encode

EVENTS = "/api/admin/events"
WHY = {"reason": "the roof leaks"}


@pytest.fixture
async def owner(db: Database) -> Person:
    return await make_person(db, role=Role.OWNER)


@pytest.fixture
async def venue(db: Database, owner: Person) -> Venue:
    return await make_venue(db, owner.organization, max_capacity=500)


def said(moment: datetime) -> str:
    return moment.isoformat().replace("+00:00", "Z")


def body(venue: Venue, **fields: Any) -> dict[str, Any]:
    """An event as a caller asks for it."""
    known = {
        "venue_id": str(venue.id),
        "name": "Passievol",
        "slug": f"passievol-{new_id().hex}"[:63],
        "start_at": said(soon(days=30)),
        "end_at": said(soon(days=30, hours=3)),
    }
    return known | fields


async def ask(
    site: Site, person: Person, method: str, path: str, asked: object = None, **headers: str
) -> httpx2.Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    content = None if asked is None else json.dumps(asked)
    return await site.client.request(
        method, path, headers={**person.headers, "content-type": "application/json", **named}, content=content
    )


async def row_of(db: Database, event_id: UUID | str, person: Person) -> str | None:
    async with db.transaction(person.organization.id) as conn:
        text: str | None = await conn.fetchval("select e::text from events e where id = $1", UUID(str(event_id)))
    return text


async def facts(db: Database, person: Person, event_id: UUID | str) -> list[dict[str, Any]]:
    async with db.transaction(person.organization.id) as conn:
        rows = await conn.fetch(
            "select kind, version, actor_id, reason, recorded_at, data from journal where event_id = $1 order by seq",
            UUID(str(event_id)),
        )
    return [{**dict(row), "data": json.loads(row["data"])} for row in rows]


def refusal(answer: httpx2.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]


@pytest.mark.req("EV-09", "EV-14", "EV-16", "EV-13")
async def test_every_field_goes_in_and_out(site: Site, db: Database, owner: Person, venue: Venue) -> None:
    """Made, read and listed alike; it begins as a draft of version 1, whatever the caller would like."""
    evening = soon(days=30).replace(hour=17, minute=30, second=0)  # of one day, whenever this runs
    asked = body(
        venue,
        start_at=said(evening),
        end_at=said(evening + timedelta(hours=3)),
        description="Twee aande",
        sale_start_at=said(soon(days=1)),
        sale_end_at=said(soon(days=29)),
        capacity=400,
        settings={"age_min": 16, "category": "festival", "unknown": {"kept": [1, None]}},
        recurrence_group_id=str(new_id()),
        is_automatic=False,
    )
    made = await ask(site, owner, "POST", EVENTS, asked)
    assert made.status_code == 201
    event = made.json()["data"]
    assert {name: event[name] for name in asked if name != "venue_id"} == {
        name: value for name, value in asked.items() if name != "venue_id"
    }
    assert event["venue"] == {
        "id": str(venue.id), "name": venue.name, "slug": venue.slug, "timezone": "Africa/Johannesburg",
    }  # fmt: skip
    assert (event["status"], event["version"], event["inventory_epoch"], made.headers["etag"]) == ("draft", 1, 0, '"1"')
    assert [event[name] for name in ("rescheduled_at", "rescheduled_end_at", "postponement_reason")] == [None] * 3
    assert event["replaced_by_event_id"] is None
    assert (event["inserted_at"], event["updated_at"]) == (event["inserted_at"], event["inserted_at"])
    assert (event["effective_start_at"], event["effective_end_at"]) == (asked["start_at"], asked["end_at"])
    assert (event["on_sale"], event["sale_state"], event["scanning"]) == (False, "closed", "test")
    assert (event["is_shown"], event["verbs"]) == (False, ["publish", "archive"])
    assert event["editable_fields"] == sorted(rules.FIELDS)
    assert len(event["days"]) == 1
    read = await ask(site, owner, "GET", f"{EVENTS}/{event['id']}")
    assert (read.json()["data"], read.headers["etag"]) == (event, '"1"')
    listed = await ask(site, owner, "GET", EVENTS)
    assert listed.json() == {"data": [event], "next_cursor": None}
    told = await facts(db, owner, event["id"])
    assert [(fact["kind"], fact["actor_id"], fact["data"]["new_status"]) for fact in told] == [
        ("event_created", owner.user_id, "draft")
    ]
    for unwanted in ("status", "version", "id", "organization_id", "rescheduled_at"):
        assert refusal(await ask(site, owner, "POST", EVENTS, body(venue) | {unwanted: "x"})) == (
            400,
            "invalid_request",
        )


@pytest.mark.req("RBAC-02", "RBAC-03", "EV-53")
async def test_every_field_is_changed(site: Site, db: Database, owner: Person, venue: Venue) -> None:
    """What is sent changes, what is left out stays; one version and one fact for one edit, none for no change."""
    other = await make_venue(db, owner.organization, timezone="Europe/Berlin")
    event = await make_event(db, owner.organization, venue, description="old", capacity=3, sale_end_at=soon(days=9))
    wanted: dict[str, Any] = {
        "name": "New",
        "slug": f"new-{new_id().hex}",
        "description": "",
        "start_at": said(soon(days=40)),
        "end_at": said(soon(days=41)),
        "sale_start_at": said(soon(days=2)),
        "sale_end_at": None,
        "capacity": None,
        "settings": {"code": "1234", "deep": {"a": {"b": {"c": {"d": {"e": {}}}}}}},
        "recurrence_group_id": str(new_id()),
        "replaced_by_event_id": str((await make_event(db, owner.organization, venue)).id),
        "is_automatic": False,
        "venue_id": str(other.id),
    }
    path = f"{EVENTS}/{event.id}"
    changed = await ask(site, owner, "PATCH", path, wanted, if_match='"1"')
    assert changed.status_code == 200, changed.text
    now = changed.json()["data"]
    assert {name: now[name] for name in wanted if name != "venue_id"} | {"venue_id": now["venue"]["id"]} == wanted
    assert (now["version"], changed.headers["etag"], now["status"]) == (2, '"2"', "draft")
    assert now["updated_at"] > now["inserted_at"]
    again = await ask(site, owner, "PATCH", path, wanted)
    assert (again.status_code, again.json()["data"]["version"]) == (200, 2)
    assert (await ask(site, owner, "PATCH", path, {})).json()["data"] == now
    one = (await ask(site, owner, "PATCH", path, {"name": "Newer"})).json()["data"]
    assert one | {"version": 2, "name": "New", "updated_at": now["updated_at"]} == now
    told = await facts(db, owner, event.id)
    assert [(fact["kind"], fact["version"]) for fact in told[1:]] == [("event_updated", 2), ("event_updated", 3)]
    assert told[2]["data"]["changes"] == {"name": ["New", "Newer"]}
    assert told[1]["data"]["changes"]["settings"] == [[], ["code", "deep"]]
    assert told[1]["data"]["changes"].keys() == wanted.keys()


@pytest.mark.parametrize(
    ("method", "tail", "asked"),
    [
        ("PATCH", "", {"name": "Mine"}),
        ("DELETE", "", None),
        ("POST", "/publish", {}),
        ("POST", "/archive", {}),
        ("POST", "/change-venue", {"reason": "r", "venue_id": str(new_id()), "consent": True}),
    ],
)
async def test_whoever_saw_an_older_version_is_told(
    site: Site, db: Database, owner: Person, venue: Venue, method: str, tail: str, asked: dict[str, Any] | None
) -> None:
    """409 with what stands there now; nothing is changed and nothing told."""
    event = await make_event(db, owner.organization, venue)
    path = f"{EVENTS}/{event.id}"
    await ask(site, owner, "PATCH", path, {"name": "Theirs"})
    before, told = await row_of(db, event.id, owner), len(await facts(db, owner, event.id))
    refused = await ask(site, owner, method, path + tail, asked, if_match='"1"')
    assert refusal(refused) == (409, "event_changed")
    assert refused.json()["details"] == {"version": 2, "status": "draft"}
    assert (await row_of(db, event.id, owner), len(await facts(db, owner, event.id))) == (before, told)
    for broken in ("2", 'W/"2"', '"02"', '"two"', '"2", "3"'):
        assert refusal(await ask(site, owner, method, path + tail, asked, if_match=broken)) == (400, "invalid_request")


async def test_a_star_matches_whatever_there_is(site: Site, db: Database, owner: Person, venue: Venue) -> None:
    """So does no header at all, and the right number."""
    event = await make_event(db, owner.organization, venue)
    path = f"{EVENTS}/{event.id}"
    for version, header in ((2, {"if_match": "*"}), (3, {}), (4, {"if_match": '"3"'})):
        changed = await ask(site, owner, "PATCH", path, {"name": f"Name {version}"}, **header)
        assert changed.headers["etag"] == f'"{version}"'


STEPS: list[tuple[str, dict[str, Any], str, str]] = [
    ("publish", {}, "draft", "published"),
    ("unpublish", {"reason": "a mistake"}, "published", "draft"),
    ("publish", {"reason": "now"}, "draft", "published"),
    ("postpone", {"reason": "storm", "postponement_reason": "weather"}, "published", "postponed"),
    ("reschedule", {"reason": "a day", "start_at": said(soon(days=50))}, "postponed", "postponed"),
    ("publish", {}, "postponed", "published"),
    ("go-live", {"reason": "doors"}, "published", "live"),
    ("postpone", {"reason": "storm", "start_at": said(soon(days=60))}, "live", "postponed"),
    ("go-live", {}, "postponed", "live"),
    ("end", {"reason": "over"}, "live", "ended"),
    ("archive", {}, "ended", "archived"),
]


@pytest.mark.req("AUD-05", "EV-32", "RBAC-02", "RBAC-03")
async def test_a_whole_life_with_every_verb(site: Site, db: Database, owner: Person, venue: Venue) -> None:
    """Each step answers with the new status and is told: who, of which role, why, from where to where."""
    admin = await make_person(db, owner.organization, Role.ADMIN)
    event = await make_event(db, owner.organization, venue)
    now: dict[str, Any] = {}
    for version, (verb, asked, old, new) in enumerate(STEPS, start=2):
        person = owner if version % 2 else admin
        answer = await ask(site, person, "POST", f"{EVENTS}/{event.id}/{verb}", asked, if_match=f'"{version - 1}"')
        assert answer.status_code == 200, answer.text
        now = answer.json()["data"]
        assert (now["status"], now["version"], answer.headers["etag"]) == (new, version, f'"{version}"')
        assert now["verbs"] == [str(one) for one in rules.verbs_of(Status(new))]
        fact = (await facts(db, owner, event.id))[-1]
        kind = "event_rescheduled" if verb == "reschedule" else "event_status_changed"
        assert (fact["kind"], fact["version"], fact["actor_id"]) == (kind, version, person.user_id)
        assert (fact["reason"], fact["data"]["verb"]) == (asked.get("reason"), verb)
        assert (fact["data"]["old_status"], fact["data"]["new_status"]) == (old, new)
        assert fact["data"]["actor_type"] == person.role
        assert fact["data"]["event_id"] == str(event.id)
        assert fact["recorded_at"] is not None
    assert now["start_at"] == STEPS[7][1]["start_at"]
    told = [fact["kind"] for fact in await facts(db, owner, event.id)]
    assert told.count("event_inventory_created") == 2  # published twice from a draft
    assert len(told) == len(STEPS) + 1 + 2


@pytest.mark.req("EV-17", "EV-18", "EV-25", "EV-26")
async def test_postponing_without_and_with_a_date(site: Site, db: Database, owner: Person, venue: Venue) -> None:
    """Without one the sale is suspended; a date opens it until the event begins, and keeps the length."""
    event = await make_event(db, owner.organization, venue, "published")
    path = f"{EVENTS}/{event.id}"
    put_off = (
        await ask(site, owner, "POST", f"{path}/postpone", {**WHY, "postponement_reason": "Die dak lek"})
    ).json()["data"]
    assert (put_off["rescheduled_at"], put_off["postponement_reason"]) == (None, "Die dak lek")
    assert (put_off["on_sale"], put_off["sale_state"], put_off["scanning"]) == (False, "suspended", "none")
    new = soon(days=80)
    dated = (await ask(site, owner, "POST", f"{path}/reschedule", {**WHY, "start_at": said(new)})).json()["data"]
    assert (dated["rescheduled_at"], dated["rescheduled_end_at"]) == (said(new), said(soon(days=80, hours=3)))
    assert (dated["effective_start_at"], dated["sale_end_at"]) == (said(new), said(new))
    assert (dated["start_at"], dated["on_sale"]) == (said(event.start_at), True)
    assert dated["postponement_reason"] == "Die dak lek"
    whole = {
        "start_at": said(soon(days=90)),
        "end_at": said(soon(days=91)),
        "sale_end_at": said(soon(days=90, hours=2)),
    }
    dated = (await ask(site, owner, "POST", f"{path}/reschedule", {**WHY, **whole})).json()["data"]
    assert (dated["rescheduled_at"], dated["rescheduled_end_at"], dated["sale_end_at"]) == tuple(whole.values())


@pytest.mark.req("AUD-06")
@pytest.mark.parametrize("verb", ["cancel", "postpone", "reschedule", "change-venue"])
async def test_what_touches_people_needs_a_reason(
    site: Site, db: Database, owner: Person, venue: Venue, verb: str
) -> None:
    """None, empty, blank or no text: refused, and nothing is done."""
    event = await make_event(db, owner.organization, venue, "published")
    before = await row_of(db, event.id, owner)
    more: dict[str, Any] = {"start_at": said(soon(days=50))} if verb == "reschedule" else {}
    more |= {"venue_id": str(venue.id), "consent": True} if verb == "change-venue" else {}
    for why in ({}, {"reason": None}, {"reason": ""}, {"reason": " \n\t"}, {"reason": "a\x00"}, {"reason": 7}):
        refused = await ask(site, owner, "POST", f"{EVENTS}/{event.id}/{verb}", {**more, **why})
        assert refusal(refused) == (400, "invalid_request")
    assert await row_of(db, event.id, owner) == before
    assert len(await facts(db, owner, event.id)) == 2


VERBS = ("publish", "unpublish", "go-live", "end", "cancel", "postpone", "reschedule", "archive")


@pytest.mark.req("TEST-32")
@pytest.mark.parametrize("status", Status)
async def test_a_step_that_no_edge_allows_is_refused(
    site: Site, db: Database, owner: Person, venue: Venue, status: Status
) -> None:
    """409 that names what could be done instead; row and journal stay as they were."""
    event = await make_event(db, owner.organization, venue, status)
    before, told = await row_of(db, event.id, owner), len(await facts(db, owner, event.id))
    allowed = [str(verb) for verb in rules.verbs_of(status)]
    for verb in VERBS:
        if verb in allowed:
            continue
        asked = {**WHY, "start_at": said(soon(days=70))} if verb == "reschedule" else WHY
        refused = await ask(site, owner, "POST", f"{EVENTS}/{event.id}/{verb}", asked)
        assert refusal(refused) == (409, "event_move_refused"), verb
        details = refused.json()["details"]
        assert (details["status"], details["verb"], details["allowed"]) == (status, verb, allowed)
    assert (await row_of(db, event.id, owner), len(await facts(db, owner, event.id))) == (before, told)


async def test_what_is_over_is_not_published_and_what_has_no_date_does_not_go_live(
    site: Site, db: Database, owner: Person, venue: Venue
) -> None:
    """Although an edge leads there; the answer says what is missing."""
    over = await make_event(db, owner.organization, venue, start_at=soon(days=-2), end_at=soon(days=-1))
    undated = await make_event(db, owner.organization, venue, "postponed")
    for event, verb in ((over, "publish"), (undated, "go-live")):
        refused = await ask(site, owner, "POST", f"{EVENTS}/{event.id}/{verb}", {})
        assert refusal(refused) == (409, "event_move_refused")
        assert "date" in refused.json()["details"]["why"]


@pytest.mark.req("RBAC-05", "RBAC-06")
async def test_staff_write_and_do_not_decide(site: Site, db: Database, owner: Person, venue: Venue) -> None:
    """They make drafts and change all of them; of what is published only the words; no verb is theirs."""
    staff = await make_person(db, owner.organization, Role.STAFF)
    made = await ask(site, staff, "POST", EVENTS, body(venue))
    assert made.status_code == 201
    path = f"{EVENTS}/{made.json()['data']['id']}"
    times = {"start_at": said(soon(days=20)), "end_at": said(soon(days=21)), "capacity": 9, "is_automatic": False}
    assert (await ask(site, staff, "PATCH", path, times)).status_code == 200
    for verb in VERBS:
        asked = {**WHY, "start_at": said(soon(days=70))} if verb == "reschedule" else WHY
        assert refusal(await ask(site, staff, "POST", f"{path}/{verb}", asked)) == (403, "permission_denied")
    assert refusal(await ask(site, staff, "DELETE", path)) == (403, "permission_denied")
    moved = {**WHY, "venue_id": str(venue.id), "consent": True}
    assert refusal(await ask(site, staff, "POST", f"{path}/change-venue", moved)) == (403, "permission_denied")
    assert (await ask(site, owner, "POST", f"{path}/publish", {})).status_code == 200
    before = await row_of(db, path.rpartition("/")[2], owner)
    for field, value in (
        ("slug", f"n-{new_id().hex}"),
        ("sale_start_at", said(soon(days=1))),
        ("sale_end_at", said(soon(days=2))),
        ("capacity", None),
        ("is_automatic", True),
        ("recurrence_group_id", str(new_id())),
    ):
        refused = await ask(site, staff, "PATCH", path, {"name": "Never", field: value})
        assert refusal(refused) == (403, "field_denied")
        assert refused.json()["details"] == {"fields": [field], "status": "published"}
    assert await row_of(db, path.rpartition("/")[2], owner) == before
    words = {"name": "N", "description": "D", "settings": {"age_min": 1}, **times}
    changed = await ask(site, staff, "PATCH", path, words)
    assert changed.status_code == 200, changed.text


@pytest.mark.parametrize("status", Status)
async def test_an_edit_is_bounded_by_the_status(
    site: Site, db: Database, owner: Person, venue: Venue, status: Status
) -> None:
    """Exactly the fields that `editable_fields` names can be changed, one by one."""
    event = await make_event(db, owner.organization, venue, status)
    path = f"{EVENTS}/{event.id}"
    free = (await ask(site, owner, "GET", path)).json()["data"]["editable_fields"]
    values: dict[str, Any] = {
        "name": "N", "slug": f"n-{new_id().hex}", "description": "D", "settings": {"x": 1},
        "start_at": said(soon(days=29)), "end_at": said(soon(days=31)), "sale_start_at": said(soon(days=1)),
        "sale_end_at": said(soon(days=2)), "capacity": 5, "is_automatic": False,
        "recurrence_group_id": str(new_id()),
        "replaced_by_event_id": str((await make_event(db, owner.organization, venue)).id),
        "venue_id": str((await make_venue(db, owner.organization)).id),
    }  # fmt: skip
    assert values.keys() == rules.FIELDS
    for field, value in values.items():
        answer = await ask(site, owner, "PATCH", path, {field: value})
        if field in free:
            assert answer.status_code == 200, (field, answer.text)
        else:
            assert refusal(answer) == (409, "consent_needed" if field == "venue_id" else "field_locked")


async def test_what_is_offered_is_what_somebody_may(site: Site, db: Database, owner: Person, venue: Venue) -> None:
    """Verbs and fields are those of whoever asks: all of the status, the words alone, or nothing."""
    event = await make_event(db, owner.organization, venue, "published")
    offered = {}
    for role in (Role.OWNER, Role.STAFF, Role.SCANNER):
        person = await make_person(db, owner.organization, role)
        data = (await ask(site, person, "GET", f"{EVENTS}/{event.id}")).json()["data"]
        offered[role] = (data["verbs"], data["editable_fields"])
    assert offered[Role.OWNER] == (
        [str(verb) for verb in rules.verbs_of(Status.PUBLISHED)],
        sorted(rules.EDITABLE[Status.PUBLISHED]),
    )
    assert offered[Role.STAFF] == ([], sorted(rules.WORDS))
    assert offered[Role.SCANNER] == ([], [])


async def test_a_running_event_is_not_ended_by_an_edit(site: Site, db: Database, owner: Person, venue: Venue) -> None:
    """Its end can be put off, not into the past."""
    event = await make_event(db, owner.organization, venue, "live", start_at=soon(hours=-2), end_at=soon(hours=2))
    past = await ask(site, owner, "PATCH", f"{EVENTS}/{event.id}", {"end_at": said(soon(minutes=-1))})
    assert refusal(past) == (400, "event_times_invalid")
    later = await ask(site, owner, "PATCH", f"{EVENTS}/{event.id}", {"end_at": said(soon(hours=3))})
    assert later.status_code == 200


async def test_the_list_is_searched_and_turned_round(site: Site, db: Database, owner: Person, venue: Venue) -> None:
    """By words of the name, whatever their case; the latest first when asked, page by page."""
    for number, name in enumerate(("Nagmusiek", "Die Laaste Trein", "nagmark 50%")):
        start, end = soon(days=number + 1), soon(days=number + 2)
        await make_event(db, owner.organization, venue, name=name, start_at=start, end_at=end)
    found = await ask(site, owner, "GET", f"{EVENTS}?q=NAG&order=desc")
    assert [one["name"] for one in found.json()["data"]] == ["nagmark 50%", "Nagmusiek"]
    assert [one["name"] for one in (await ask(site, owner, "GET", f"{EVENTS}?q=0%25")).json()["data"]] == [
        "nagmark 50%"
    ]
    first = (await ask(site, owner, "GET", f"{EVENTS}?order=desc&limit=2")).json()
    rest = (await ask(site, owner, "GET", f"{EVENTS}?order=desc&limit=2&cursor={first['next_cursor']}")).json()
    names = [one["name"] for one in first["data"] + rest["data"]]
    assert names == ["nagmark 50%", "Die Laaste Trein", "Nagmusiek"]


async def test_another_organizations_event_is_no_event(site: Site, db: Database, owner: Person, venue: Venue) -> None:
    """Word for word the answer for one that never was, whatever is asked of it."""
    stranger = await make_event(db, await make_organization(db), status="published")
    deleted = await make_event(db, owner.organization, venue)
    assert (await ask(site, owner, "DELETE", f"{EVENTS}/{deleted.id}")).status_code == 204
    asks: list[tuple[str, str, Any]] = [
        ("GET", "", None), ("PATCH", "", {"name": "Mine"}), ("DELETE", "", None),
        ("POST", "/change-venue", {**WHY, "venue_id": str(venue.id), "consent": True}),
        *(("POST", f"/{verb}", WHY) for verb in VERBS if verb != "reschedule"),
        ("POST", "/reschedule", {**WHY, "start_at": said(soon(days=70))}),
    ]  # fmt: skip
    for method, tail, asked in asks:
        answers = []
        for event_id in (stranger.id, new_id(), deleted.id):
            answer = await ask(site, owner, method, f"{EVENTS}/{event_id}{tail}", asked)
            answers.append({**answer.json(), "request_id": None, "status": answer.status_code})
        assert answers[0] == answers[1] == answers[2]
        assert (answers[0]["status"], answers[0]["error"]) == (404, "event_not_found")
    here = await make_event(db, owner.organization, venue)
    for field in ("venue_id", "replaced_by_event_id"):
        foreign = stranger.venue_id if field == "venue_id" else stranger.id
        answers = [
            {**(await ask(site, owner, "PATCH", f"{EVENTS}/{here.id}", {field: str(one)})).json(), "request_id": None}
            for one in (foreign, new_id())
        ]
        assert answers[0] == answers[1]
        assert answers[0]["effect"] == "none"
    made = await ask(site, owner, "POST", EVENTS, body(venue, venue_id=str(stranger.venue_id)))
    assert refusal(made) == (404, "venue_not_found")


@pytest.mark.req("EV-61", "EV-09")
async def test_a_slug_is_taken_once_in_an_organization(site: Site, db: Database, owner: Person, venue: Venue) -> None:
    """On making and on changing; another organization may have it too."""
    taken = await make_event(db, owner.organization, venue)
    other = await make_event(db, owner.organization, venue)
    twice = await ask(site, owner, "POST", EVENTS, body(venue, slug=taken.slug))
    assert refusal(twice) == (409, "event_slug_taken")
    changed = await ask(site, owner, "PATCH", f"{EVENTS}/{other.id}", {"slug": taken.slug})
    assert refusal(changed) == (409, "event_slug_taken")
    elsewhere = await make_event(db, await make_organization(db), slug=taken.slug)
    assert elsewhere.slug == taken.slug
    for slug in ("", "-a", "a-", "A", "a b", "a" * 64, "a\n", "é"):
        assert refusal(await ask(site, owner, "POST", EVENTS, body(venue, slug=slug))) == (400, "invalid_request")


@pytest.mark.req("EV-06", "EV-13", "TEST-34")
async def test_no_event_is_larger_than_its_venue(site: Site, db: Database, owner: Person, venue: Venue) -> None:
    """On making, changing, moving to another venue; a venue of nobody takes an event of nobody."""
    assert refusal(await ask(site, owner, "POST", EVENTS, body(venue, capacity=501))) == (409, "capacity_exceeded")
    event = await make_event(db, owner.organization, venue, "published", capacity=500)
    path = f"{EVENTS}/{event.id}"
    assert refusal(await ask(site, owner, "PATCH", path, {"capacity": 501})) == (409, "capacity_exceeded")
    small = await make_venue(db, owner.organization, max_capacity=0)
    moved = {**WHY, "venue_id": str(small.id), "consent": True}
    assert refusal(await ask(site, owner, "POST", f"{path}/change-venue", moved)) == (409, "capacity_exceeded")
    assert (await ask(site, owner, "POST", EVENTS, body(small, capacity=0))).status_code == 201
    for capacity in (-1, 1_000_001, 1.5, "many"):
        assert refusal(await ask(site, owner, "POST", EVENTS, body(venue, capacity=capacity))) == (
            400,
            "invalid_request",
        )


@pytest.mark.req("TEST-34")
async def test_a_venue_that_shrinks_and_an_event_that_grows(
    site: Site, db: Database, owner: Person, venue: Venue
) -> None:
    """At the same moment, again and again: whoever comes second is refused, and the chain holds."""
    outcomes = set()
    for _ in range(10):
        hall = await make_venue(db, owner.organization, max_capacity=100)
        event = await make_event(db, owner.organization, hall, capacity=10)
        answers = await asyncio.gather(
            ask(site, owner, "PATCH", f"/api/admin/venues/{hall.id}", {"max_capacity": 50}),
            ask(site, owner, "PATCH", f"{EVENTS}/{event.id}", {"capacity": 80}),
        )
        outcomes.add(tuple(sorted(answer.status_code for answer in answers)))
        async with db.transaction(owner.organization.id) as conn:
            wrong = await conn.fetchval(
                "select count(*) from events e join venues v on v.id = e.venue_id"
                " where e.organization_id = $1 and e.capacity > v.max_capacity",
                owner.organization.id,
            )
        assert wrong == 0
    assert outcomes == {(200, 409)}


@pytest.mark.req("EV-15")
async def test_only_a_draft_to_which_nothing_refers_is_deleted(
    site: Site, db: Database, owner: Person, venue: Venue
) -> None:
    """Everything else stays for the record; what was deleted is told and gone."""
    replaced = await make_event(db, owner.organization, venue)
    wanted = await make_event(db, owner.organization, venue)
    linked = await ask(site, owner, "PATCH", f"{EVENTS}/{replaced.id}", {"replaced_by_event_id": str(wanted.id)})
    assert linked.json()["data"]["replaced_by_event_id"] == str(wanted.id)
    assert refusal(await ask(site, owner, "DELETE", f"{EVENTS}/{wanted.id}")) == (409, "event_in_use")
    for status in Status:
        if status is Status.DRAFT:
            continue
        event = await make_event(db, owner.organization, venue, status)
        refused = await ask(site, owner, "DELETE", f"{EVENTS}/{event.id}")
        assert refusal(refused) == (409, "event_in_use")
        assert await row_of(db, event.id, owner) is not None
    assert (await ask(site, owner, "DELETE", f"{EVENTS}/{replaced.id}", if_match='"2"')).status_code == 204
    assert (await ask(site, owner, "DELETE", f"{EVENTS}/{wanted.id}")).status_code == 204
    assert (await ask(site, owner, "GET", f"{EVENTS}/{wanted.id}")).status_code == 404
    told = (await facts(db, owner, wanted.id))[-1]
    assert (told["kind"], told["actor_id"], told["data"]["slug"]) == ("event_deleted", owner.user_id, wanted.slug)


async def test_another_venue_needs_consent_once_people_know(
    site: Site, db: Database, owner: Person, venue: Venue
) -> None:
    """A draft just moves; published or postponed only with consent; live, ended or gone not at all."""
    other = await make_venue(db, owner.organization)
    for status, refused in (
        ("draft", None), ("published", "consent_needed"), ("postponed", "consent_needed"),
        ("live", "event_move_refused"), ("ended", "event_move_refused"), ("cancelled", "event_move_refused"),
        ("archived", "event_move_refused"),
    ):  # fmt: skip
        event = await make_event(db, owner.organization, venue, status)
        path, asked = f"{EVENTS}/{event.id}/change-venue", {**WHY, "venue_id": str(other.id)}
        before = await row_of(db, event.id, owner)
        for no in ({}, {"consent": False}):
            answer = await ask(site, owner, "POST", path, {**asked, **no})
            if refused:
                assert refusal(answer) == (409, refused)
                assert await row_of(db, event.id, owner) == before
        if refused == "event_move_refused":
            assert refusal(await ask(site, owner, "POST", path, {**asked, "consent": True})) == (409, refused)
            continue
        moved = await ask(site, owner, "POST", path, {**asked, "consent": True})
        assert moved.json()["data"]["venue"]["id"] == str(other.id)
        fact = (await facts(db, owner, event.id))[-1]
        assert (fact["kind"], fact["reason"]) == ("event_venue_changed", WHY["reason"])
        assert fact["data"]["changes"] == {"venue_id": [str(venue.id), str(other.id)]}
    absent = {**WHY, "venue_id": str(new_id()), "consent": True}
    event = await make_event(db, owner.organization, venue, "published")
    answer = await ask(site, owner, "POST", f"{EVENTS}/{event.id}/change-venue", absent)
    assert refusal(answer) == (404, "venue_not_found")


async def replacements(db: Database, owner: Person, events: list[Event]) -> dict[UUID, UUID | None]:
    async with db.transaction(owner.organization.id) as conn:
        rows = await conn.fetch(
            "select id, replaced_by_event_id from events where id = any ($1)", [event.id for event in events]
        )
    return {row["id"]: row["replaced_by_event_id"] for row in rows}


@pytest.mark.req("EV-15")
async def test_a_replacement_leads_forward(site: Site, db: Database, owner: Person, venue: Venue) -> None:
    """From one to the next and the next; never back to itself, however far round."""
    events = [await make_event(db, owner.organization, venue) for _ in range(4)]

    async def link(one: int, other: int) -> httpx2.Response:
        asked = {"replaced_by_event_id": str(events[other].id)}
        return await ask(site, owner, "PATCH", f"{EVENTS}/{events[one].id}", asked)

    for one, other in ((0, 1), (1, 2), (2, 3)):
        assert (await link(one, other)).status_code == 200
    for one, other in ((3, 0), (3, 1), (3, 2), (3, 3), (1, 0)):
        assert refusal(await link(one, other)) == (400, "replacement_invalid")
    path = f"{EVENTS}/{events[1].id}"
    assert (await ask(site, owner, "PATCH", path, {"replaced_by_event_id": None})).status_code == 200
    assert (await link(3, 0)).status_code == 200


@pytest.mark.parametrize("count", [2, 3])
async def test_no_ring_of_replacements_is_closed_at_once(
    site: Site, db: Database, owner: Person, venue: Venue, count: int
) -> None:
    """Each names the next at the same moment: one of them is refused, whichever it is."""
    for _ in range(8):
        events = [await make_event(db, owner.organization, venue) for _ in range(count)]
        answers = await asyncio.gather(
            *(
                ask(site, owner, "PATCH", f"{EVENTS}/{one.id}", {"replaced_by_event_id": str(other.id)})
                for one, other in zip(events, [*events[1:], events[0]], strict=True)
            )
        )
        assert sorted(answer.status_code for answer in answers) == [200] * (count - 1) + [400]
        assert list((await replacements(db, owner, events)).values()).count(None) == 1


@pytest.mark.req("EV-62", "EV-16", "EV-27", "TEST-36")
async def test_the_list_is_filtered(site: Site, db: Database, owner: Person, venue: Venue) -> None:
    """By status, by venue, by series; what is archived only when it is asked for by name."""
    other, series = await make_venue(db, owner.organization), new_id()
    events = {status: await make_event(db, owner.organization, venue, status) for status in Status}
    there = await make_event(db, owner.organization, other, recurrence_group_id=series)
    await make_event(db, await make_organization(db), status="published")

    async def listed(query: str) -> set[str]:
        answer = await ask(site, owner, "GET", f"{EVENTS}{query}")
        assert answer.status_code == 200
        return {event["id"] for event in answer.json()["data"]}

    def ids(*found: Event) -> set[str]:
        return {str(event.id) for event in found}

    everything = ids(*(event for status, event in events.items() if status is not Status.ARCHIVED), there)
    assert await listed("") == everything
    assert await listed("?status=cancelled&status=postponed") == ids(events[Status.CANCELLED], events[Status.POSTPONED])
    assert await listed("?status=archived") == ids(events[Status.ARCHIVED])
    for status in Status:
        assert ids(events[status]) <= await listed(f"?status={status}&venue_id={venue.id}")
    assert await listed(f"?venue_id={other.id}") == ids(there)
    assert await listed(f"?recurrence_group_id={series}") == ids(there)
    assert await listed(f"?venue_id={new_id()}") == set()
    for wrong in ("?status=gone", "?venue_id=x", "?limit=0", "?limit=201", "?recurrence_group_id=1"):
        assert refusal(await ask(site, owner, "GET", f"{EVENTS}{wrong}")) == (400, "invalid_request")


async def test_the_list_goes_on_by_its_cursor(site: Site, db: Database, owner: Person, venue: Venue) -> None:
    """In the order of time, the same moment in the order of ids, a new date in its new place; each event once."""
    same: dict[str, Any] = {"start_at": soon(days=5), "end_at": soon(days=6)}
    events = [await make_event(db, owner.organization, venue, **same) for _ in range(4)]
    last = await make_event(db, owner.organization, venue, start_at=soon(days=6), end_at=soon(days=7))
    early = await make_event(db, owner.organization, venue, "postponed", start_at=soon(days=1), end_at=soon(days=2))
    later = {**WHY, "start_at": said(soon(days=9))}
    assert (await ask(site, owner, "POST", f"{EVENTS}/{early.id}/reschedule", later)).status_code == 200
    wanted = [*sorted(str(event.id) for event in events), str(last.id), str(early.id)]
    for limit in (1, 2, 3, 6, 7):
        seen: list[str] = []
        path: str | None = f"{EVENTS}?limit={limit}"
        while path:
            page = (await ask(site, owner, "GET", path)).json()
            seen += [event["id"] for event in page["data"]]
            path = f"{EVENTS}?limit={limit}&cursor={page['next_cursor']}" if page["next_cursor"] else None
        assert seen == wanted
    for wrong in ("x", "AAAA", "!!", "a" * 200, encode(b"\x7f" + b"\xff" * 23), encode(new_id().bytes)):
        assert refusal(await ask(site, owner, "GET", f"{EVENTS}?cursor={wrong}")) == (400, "cursor_invalid")


async def test_the_same_ask_with_the_same_key_makes_one_event(
    site: Site, db: Database, owner: Person, venue: Venue
) -> None:
    """Three times at once and once more: one event, one fact, one answer; another ask with the key is refused."""
    asked, key = body(venue), new_id().hex
    answers = await asyncio.gather(*(ask(site, owner, "POST", EVENTS, asked, idempotency_key=key) for _ in range(3)))
    answers.append(await ask(site, owner, "POST", EVENTS, asked, idempotency_key=key))
    assert [answer.status_code for answer in answers] == [201] * 4
    assert len({answer.json()["data"]["id"] for answer in answers}) == 1
    other = await ask(site, owner, "POST", EVENTS, asked | {"name": "Other"}, idempotency_key=key)
    assert refusal(other) == (422, "idempotency_key_reused")
    assert len((await ask(site, owner, "GET", EVENTS)).json()["data"]) == 1
    assert len(await facts(db, owner, answers[0].json()["data"]["id"])) == 1


NESTED: dict[str, Any] = {"a": {"a": {"a": {"a": {"a": {"a": {"a": {"a": {"a": {"a": 1}}}}}}}}}}
HOSTILE: list[tuple[str, str]] = [
    ("nul", '{"a": "\\u0000"}'),
    ("nul in a key", '{"\\u0000": 1}'),
    ("lone surrogate", '{"a": "\\ud800"}'),
    ("lone surrogate in a key", '{"\\udfff": 1}'),
    ("huge whole number", '{"a": 1' + "0" * 400 + "}"),
    ("beyond 64 bits", '{"a": 18446744073709551616}'),
    ("huge float", '{"a": 1e300}'),
    ("tiny float", '{"a": 1e-300}'),
    ("infinite", '{"a": 1e999}'),
    ("not a number", '{"a": NaN}'),
    ("seventeen thousand", json.dumps({"a": "x" * 17_000})),
    ("long for PostgreSQL", json.dumps({"a": [1] * 8_000}, separators=(",", ":"))),
    ("deep", json.dumps(NESTED)),
    ("very deep", '{"a":' * 8_000 + "1" + "}" * 8_000),
    ("many", json.dumps({str(number): 1 for number in range(101)})),
    ("known and wrong", '{"age_min": "12"}'),
    ("other digits", '{"day_cutoff": "0\\u0666:0\\u0660"}'),
    ("a list", "[]"),
    ("null", "null"),
]


@pytest.mark.req("EV-14")
@pytest.mark.parametrize("text", [text for _, text in HOSTILE], ids=[name for name, _ in HOSTILE])
async def test_settings_that_cannot_be_kept_are_refused(
    site: Site, db: Database, owner: Person, venue: Venue, text: str
) -> None:
    """400 on making and on changing, and nothing is stored; the list is as well as before."""
    event = await make_event(db, owner.organization, venue, settings={"age_min": 3})
    before = await row_of(db, event.id, owner)
    whole = json.dumps(body(venue))[:-1] + f', "settings": {text}}}'
    headers = {**owner.headers, "content-type": "application/json"}
    made = await site.client.post(EVENTS, headers=headers, content=whole)
    changed = await site.client.patch(f"{EVENTS}/{event.id}", headers=headers, content=f'{{"settings": {text}}}')
    assert (made.status_code, changed.status_code) == (400, 400), (made.text, changed.text)
    assert made.json()["effect"] == "none"
    assert await row_of(db, event.id, owner) == before
    assert len((await ask(site, owner, "GET", EVENTS)).json()["data"]) == 1


@pytest.mark.parametrize(
    "field", ["venue_id", "name", "slug", "description", "start_at", "end_at", "settings", "is_automatic"]
)
async def test_what_cannot_be_empty_is_not_emptied(
    site: Site, db: Database, owner: Person, venue: Venue, field: str
) -> None:
    """Null is no value for these: 400, and the event stays."""
    event = await make_event(db, owner.organization, venue)
    before = await row_of(db, event.id, owner)
    assert refusal(await ask(site, owner, "PATCH", f"{EVENTS}/{event.id}", {field: None})) == (400, "invalid_request")
    assert await row_of(db, event.id, owner) == before


@pytest.mark.req("EV-11")
async def test_times_that_do_not_fit_are_refused(site: Site, db: Database, owner: Person, venue: Venue) -> None:
    """End before start, too long, a sale beyond the end, the ends of the calendar, a date that is past."""
    start, end = said(soon(days=30)), said(soon(days=31))
    for times in (
        {"start_at": end, "end_at": start},
        {"start_at": start, "end_at": start},
        {"start_at": start, "end_at": said(soon(days=400))},
        {"start_at": start, "end_at": end, "sale_end_at": said(soon(days=32))},
        {"start_at": start, "end_at": end, "sale_start_at": start, "sale_end_at": start},
        {"start_at": "1900-01-01T00:00:00Z", "end_at": "1900-01-02T00:00:00Z"},
        {"start_at": "2999-12-31T22:00:00Z", "end_at": "2999-12-31T23:59:59Z"},
    ):
        refused = await ask(site, owner, "POST", EVENTS, body(venue, **times))
        assert refusal(refused) == (400, "event_times_invalid"), times
    for wrong in ("2027-03-12", "2027-03-12T10:00:00", "soon", 1_800_000_000, None):
        assert refusal(await ask(site, owner, "POST", EVENTS, body(venue, start_at=wrong))) == (400, "invalid_request")
    assert (await ask(site, owner, "GET", EVENTS)).json()["data"] == []
    event = await make_event(db, owner.organization, venue, "published")
    before = await row_of(db, event.id, owner)
    path = f"{EVENTS}/{event.id}"
    for verb, times in (
        ("reschedule", {"start_at": said(soon(days=-1))}),
        ("reschedule", {"start_at": said(soon(days=50)), "end_at": said(soon(days=49))}),
        ("reschedule", {"start_at": "2999-12-31T23:59:59Z"}),
        ("postpone", {"start_at": "2999-12-31T23:59:59Z"}),
        ("postpone", {"end_at": said(soon(days=50))}),
        ("postpone", {"start_at": said(soon(days=-1))}),
        ("postpone", {"sale_end_at": said(soon(days=9))}),
    ):
        refused = await ask(site, owner, "POST", f"{path}/{verb}", {**WHY, **times})
        assert refusal(refused) == (400, "event_times_invalid"), (verb, times)
    assert await row_of(db, event.id, owner) == before


async def test_the_days_are_the_venues(site: Site, db: Database, owner: Person) -> None:
    """Two evenings of a festival that go on after midnight are two days; the event's own cut-off makes them three."""
    far = await make_venue(db, owner.organization, timezone="Pacific/Kiritimati")
    asked = body(far, start_at="2030-03-12T04:00:00Z", end_at="2030-03-13T12:00:00Z")  # 18:00 until 02:00 there
    made = (await ask(site, owner, "POST", EVENTS, asked)).json()["data"]
    assert made["days"] == ["2030-03-12", "2030-03-13"]
    path = f"{EVENTS}/{made['id']}"
    changed = await ask(site, owner, "PATCH", path, {"settings": {"day_cutoff": "00:00"}})
    assert changed.json()["data"]["days"] == ["2030-03-12", "2030-03-13", "2030-03-14"]
