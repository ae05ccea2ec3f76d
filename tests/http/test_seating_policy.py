"""The seating policy over HTTP: seen by the crew, changed by the owner as far as the platform lets them."""

import json
from typing import Any

import pytest

from tests.make.accounts import Person, make_organization, make_person
from tests.make.events import make_venue
from tests.make.layouts import SMALL, encoded
from tests.make.web import Site
from voelgoed.accounts.model import Organization, Role
from voelgoed.db import Database
from voelgoed.ids import new_id
from voelgoed.seating.policy import FIELDS, LOCKS, Policy, values_of

OWN = "/api/admin/seating-policy"


@pytest.fixture
async def place(db: Database) -> Organization:
    return await make_organization(db)


@pytest.fixture
async def owner(db: Database, place: Organization) -> Person:
    return await make_person(db, place, Role.OWNER)


@pytest.fixture
async def super_admin(db: Database) -> Person:
    return await make_person(db, platform=Role.SUPER_ADMIN)


def path_of(place: Organization) -> str:
    return f"/api/platform/orgs/{place.id}/seating-policy"


async def seen(site: Site, person: Person, path: str = OWN) -> tuple[dict[str, Any], str]:
    """The policy field by field as somebody sees it, and its ETag."""
    answer = await site.client.get(path, headers=person.headers)
    assert answer.status_code == 200, answer.text
    data = answer.json()["data"]
    return {**data, "fields": {field["name"]: field for field in data["fields"]}}, answer.headers["etag"]


async def patched(
    site: Site, person: Person, values: dict[str, Any], path: str = OWN, if_match: str = "", **more: str
) -> tuple[int, dict[str, Any]]:
    headers = {**person.headers, **({"if-match": if_match} if if_match else {})}
    answer = await site.client.patch(path, headers=headers, json={"values": values, **more})
    return answer.status_code, answer.json()


async def last_fact(db: Database, place: Organization) -> dict[str, Any]:
    async with db.transaction(place.id) as conn:
        row = await conn.fetchrow(
            "select actor_id, reason, data from journal where kind = 'seating_policy_changed' order by seq desc limit 1"
        )
    assert row is not None
    return {**dict(row), "data": json.loads(row["data"])}


async def test_the_defaults_as_an_owner_sees_them(site: Site, owner: Person) -> None:
    """Every field with what it takes; nobody has said anything yet."""
    data, etag = await seen(site, owner)
    assert (data["version"], data["updated_at"], etag) == (0, None, '"0"')
    fields = data["fields"]
    assert list(fields) == list(FIELDS)
    told = json.loads(json.dumps(values_of(Policy())))
    assert {name: field["value"] for name, field in fields.items()} == told
    assert {name: field["default"] for name, field in fields.items()} == told
    assert {field["origin"] for field in fields.values()} == {"default"}
    assert {name for name, field in fields.items() if not field["may_change"]} == {LOCKS}
    assert fields["max_holds_per_user"] == {
        "name": "max_holds_per_user",
        "kind": "whole",
        "value": None,
        "default": None,
        "origin": "default",
        "is_locked": False,
        "is_overridable": True,
        "may_change": True,
        "least": 1,
        "most": 10_000,
        "is_nullable": True,
        "words": [],
    }
    modes = fields["allowed_access_modes"]
    assert (modes["kind"], modes["least"], modes["most"]) == ("words", None, None)
    assert modes["words"] == ["public", "membership_tier", "role_based", "whitelist"]
    assert (fields["allow_vip_zones"]["kind"], fields["allow_vip_zones"]["value"]) == ("flag", False)


async def test_an_owner_changes_it_by_what_they_have_seen(site: Site, owner: Person) -> None:
    """The first change on version 0, the next on what came of it; on anything else it is refused, and nothing done."""
    status, body = await patched(site, owner, {"max_seats_per_booking": 4}, if_match='"0"')
    assert (status, body["data"]["version"]) == (200, 1)
    status, body = await patched(site, owner, {"max_seats_per_booking": 5}, if_match='"0"')
    assert (status, body["error"], body["details"], body["effect"]) == (409, "policy_changed", {"version": 1}, "none")
    data, etag = await seen(site, owner)
    assert (data["fields"]["max_seats_per_booking"]["value"], etag) == (4, '"1"')
    assert data["fields"]["max_seats_per_booking"]["origin"] == "organization"
    assert data["updated_at"] is not None
    assert (await patched(site, owner, {"max_seats_per_booking": 5}, if_match=etag))[0] == 200


async def test_crew_see_what_they_may_not_change(site: Site, db: Database, place: Organization, owner: Person) -> None:
    """And are told so, field by field and when they try."""
    await patched(site, owner, {"max_seats_per_booking": 4})
    for role in (Role.ADMIN, Role.STAFF):
        person = await make_person(db, place, role)
        data, _ = await seen(site, person)
        assert data["fields"]["max_seats_per_booking"]["value"] == 4
        assert not any(field["may_change"] for field in data["fields"].values())
        status, body = await patched(site, person, {"max_seats_per_booking": 5})
        assert (status, body["error"]) == (403, "permission_denied")


@pytest.mark.parametrize(
    ("values", "wrong"),
    [
        ({"colour": "red"}, {"colour": "is no field of the policy"}),
        ({"": 1, "max_group_split": 1}, {"": "is no field of the policy"}),
        (
            {"allow_vip_zones": "yes", "max_holds_per_ip": 0, "max_group_split": 1},
            {
                "allow_vip_zones": "must be true or false",
                "max_holds_per_ip": "must be a whole number from 1 to 10000, or null for no limit",
            },
        ),
        ({"max_seats_per_booking": 10**30}, {"max_seats_per_booking": "must be a whole number from 1 to 40"}),
    ],
)
async def test_what_is_wrong_is_told_by_field(
    site: Site, owner: Person, values: dict[str, Any], wrong: dict[str, str]
) -> None:
    """All of it at once, and nothing is changed."""
    status, body = await patched(site, owner, values)
    assert (status, body["error"], body["details"]) == (400, "policy_invalid", {"fields": wrong})
    assert (await seen(site, owner))[0]["version"] == 0


@pytest.mark.parametrize("body", [{}, {"values": []}, {"values": None}, {"values": {}, "locked": []}])
async def test_what_cannot_be_read_is_refused(site: Site, owner: Person, body: object) -> None:
    """As everywhere."""
    answer = await site.client.patch(OWN, headers=owner.headers, json=body)
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_request")


@pytest.mark.parametrize(
    "sent",
    [
        b'{"values": {"\\ud800": 1}}',
        b'{"values": {"max_group_split": NaN}}',
        b'{"values": {"allowed_access_modes": ["\\ud800", ["x"], {}]}}',
        b'{"values": {"locked_fields": [[]]}, "values": {"max_group_split": 1e400}}',
    ],
)
async def test_no_odd_text_or_number_is_a_failure_of_ours(site: Site, owner: Person, sent: bytes) -> None:
    """Whatever is sent is refused in plain words, and nothing is changed."""
    headers = {**owner.headers, "content-type": "application/json"}
    answer = await site.client.patch(OWN, headers=headers, content=sent)
    assert answer.status_code == 400, answer.text
    assert (await seen(site, owner))[0]["version"] == 0


@pytest.mark.req("RBAC-09")
async def test_the_platform_sets_and_locks_it(
    site: Site, db: Database, place: Organization, owner: Person, super_admin: Person
) -> None:
    """With a reason, in that organization's journal; its owner then changes the rest, and is told what not."""
    wanted: dict[str, Any] = {
        "allow_ga_seating": False,
        "allow_vip_zones": True,
        "enforce_accessibility_rules": False,
        "orphan_avoidance_strict": False,
        "group_adjacency_strict": True,
        "default_hold_ttl_minutes": 5,
        LOCKS: ["allow_ga_seating", "default_hold_ttl_minutes"],
    }
    status, body = await patched(site, super_admin, wanted, path_of(place), reason="as agreed")
    assert (status, body["data"]["version"]) == (200, 1)
    fact = await last_fact(db, place)
    assert (fact["actor_id"], fact["reason"], fact["data"]["actor_type"]) == (
        super_admin.user_id,
        "as agreed",
        "super_admin",
    )
    assert fact["data"]["changes"]["allow_vip_zones"] == [False, True]
    data, _ = await seen(site, owner)
    assert {name: data["fields"][name]["value"] for name in wanted} == wanted
    assert {name for name, field in data["fields"].items() if field["is_locked"]} == set(wanted[LOCKS])
    assert {name for name, field in data["fields"].items() if not field["may_change"]} == {*wanted[LOCKS], LOCKS}
    asked = {"default_hold_ttl_minutes": 30, "allow_ga_seating": True, "max_group_split": 1}
    status, body = await patched(site, owner, asked)
    assert (status, body["error"]) == (403, "policy_field_locked")
    assert body["details"] == {"fields": ["allow_ga_seating", "default_hold_ttl_minutes"]}
    assert (await patched(site, owner, {LOCKS: []}))[0] == 403
    assert await seen(site, owner) == (data, '"1"')
    assert (await patched(site, owner, {"max_group_split": 1}))[0] == 200
    by_platform, etag = await seen(site, super_admin, path_of(place))
    assert all(field["may_change"] for field in by_platform["fields"].values())
    assert (by_platform["fields"]["max_group_split"]["value"], etag) == (1, '"2"')


async def test_the_platform_says_why_and_what_it_has_seen(
    site: Site, db: Database, place: Organization, super_admin: Person
) -> None:
    """Without a reason nothing is done; a tenant_manager does not do it at all; what is not there is not there."""
    values = {"allow_vip_zones": True}
    for more in ({}, {"reason": " "}):
        assert (await patched(site, super_admin, values, path_of(place), **more))[0] == 400
    status, body = await patched(site, super_admin, values, path_of(place), '"3"', reason="why")
    assert (status, body["error"]) == (409, "policy_changed")
    status, body = await patched(site, super_admin, {"colour": 1}, path_of(place), reason="why")
    assert (status, body["error"]) == (400, "policy_invalid")
    manager = await make_person(db, platform=Role.TENANT_MANAGER)
    assert (await patched(site, manager, values, path_of(place), reason="why"))[0] == 403
    nowhere = f"/api/platform/orgs/{new_id()}/seating-policy"
    assert (await patched(site, super_admin, values, nowhere, reason="why"))[0] == 404
    assert (await site.client.get(nowhere, headers=super_admin.headers)).json()["error"] == "organization_not_found"
    assert (await seen(site, super_admin, path_of(place)))[0]["version"] == 0


@pytest.mark.req("POL-17")
async def test_a_layout_with_a_zone_that_is_not_allowed(site: Site, db: Database, owner: Person) -> None:
    """Imported, tried or generated: every fault with its place and what to do; allowed, it is stored."""
    venue = await make_venue(db, owner.organization, max_capacity=10_000)
    path = f"/api/admin/venues/{venue.id}/layouts"
    for ask in (path, f"{path}?dry_run=true"):
        answer = await site.client.post(ask, headers=owner.headers, content=encoded(SMALL))
        body = answer.json()
        assert (answer.status_code, body["error"], body["details"]["error_count"]) == (400, "layout_invalid", 1)
        assert body["details"]["errors"] == [
            {
                "path": "zones[1].zone_type",
                "code": "zone_not_permitted",
                "message": "Zone V: VIP zones are not allowed.",
                "hint": "Choose what the seating policy allows, or have the policy changed.",
            }
        ]
    for ask in (f"{path}/generate", f"{path}/generate?dry_run=true"):
        answer = await site.client.post(ask, headers=owner.headers, json={"preset": "festival"})
        assert (answer.status_code, answer.json()["error"]) == (400, "layout_invalid")
    assert (await site.client.get("/api/admin/layouts", headers=owner.headers)).json()["data"] == []
    await patched(site, owner, {"allow_vip_zones": True})
    answer = await site.client.post(path, headers=owner.headers, content=encoded(SMALL))
    assert answer.status_code == 201
