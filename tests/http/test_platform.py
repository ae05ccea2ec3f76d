"""The platform's staff: every intervention has a reason, and stands in the journal of whom it touched."""

import json
import re
from pathlib import Path

import pytest

from tests.make.accounts import PASSWORD, Person, make_organization, make_person
from tests.make.web import Site
from voelgoed.accounts import operator, usecases
from voelgoed.accounts.model import Organization, Role
from voelgoed.accounts.refusals import SlugReserved
from voelgoed.accounts.roles import LastSuperAdmin
from voelgoed.accounts.rules import RESERVED_SLUGS
from voelgoed.db import Connection, Database
from voelgoed.http.app import contract_route
from voelgoed.http.assets import load_bundle
from voelgoed.http.declared import all_routes
from voelgoed.ids import new_id
from voelgoed.wiring import Services


@pytest.fixture
async def super_admin(db: Database) -> Person:
    return await make_person(db, platform=Role.SUPER_ADMIN)


@pytest.fixture
async def manager(db: Database) -> Person:
    return await make_person(db, platform=Role.TENANT_MANAGER)


async def facts(db: Database, place: Organization) -> list[tuple[str, object, str | None, dict[str, object]]]:
    async with db.transaction(place.id) as conn:
        rows = await conn.fetch("select kind, actor_id, reason, data from journal order by seq")
    return [(row["kind"], row["actor_id"], row["reason"], json.loads(row["data"])) for row in rows]


async def test_a_suspended_organization_is_closed_at_once(site: Site, db: Database, super_admin: Person) -> None:
    """Its people are out with their next request, nobody comes in, and resuming opens it again."""
    owner = await make_person(db, role=Role.OWNER)
    place = owner.organization
    assert (await site.client.get("/api/me", headers=owner.headers)).status_code == 200
    closed = await site.client.post(
        f"/api/platform/orgs/{place.id}/suspend", headers=super_admin.headers, json={"reason": "unpaid"}
    )
    assert closed.json()["data"]["suspended_at"] is not None
    assert (await site.client.get("/api/me", headers=owner.headers)).status_code == 401
    assert (await site.client.post("/api/auth/guest", json={"organization": place.slug})).status_code == 403
    again = await site.client.post(
        f"/api/platform/orgs/{place.id}/suspend", headers=super_admin.headers, json={"reason": "still"}
    )
    assert again.json()["data"]["suspended_at"] == closed.json()["data"]["suspended_at"]
    opened = await site.client.post(
        f"/api/platform/orgs/{place.id}/resume", headers=super_admin.headers, json={"reason": "paid"}
    )
    assert opened.json()["data"]["suspended_at"] is None
    assert (await site.client.get("/api/me", headers=owner.headers)).status_code == 200
    kinds = [(kind, actor, reason) for kind, actor, reason, _ in await facts(db, place)]
    assert kinds[1] == ("organization_suspended", super_admin.user_id, "unpaid")
    assert kinds[-1] == ("organization_resumed", super_admin.user_id, "paid")


@pytest.mark.parametrize("verb", ["suspend", "resume"])
async def test_no_reason_no_intervention(site: Site, db: Database, super_admin: Person, verb: str) -> None:
    """An empty reason is none."""
    place = await make_organization(db)
    for body in ({}, {"reason": ""}, {"reason": None}, {"reason": " \n"}):
        answer = await site.client.post(f"/api/platform/orgs/{place.id}/{verb}", headers=super_admin.headers, json=body)
        assert (answer.status_code, answer.json()["error"]) == (400, "invalid_request")
    assert len(await facts(db, place)) == 1


async def test_a_tenant_manager_needs_the_organizations_word(site: Site, db: Database, manager: Person) -> None:
    """Without the approval's reference it is refused; with it, the reference is in the journal."""
    owner = await make_person(db, role=Role.OWNER)
    staff = await make_person(db, owner.organization, Role.STAFF)
    path = f"/api/platform/orgs/{owner.organization.id}/members/{staff.user_id}"
    ask = {"role": "admin", "reason": "the owner is ill"}
    refused = await site.client.put(path, headers=manager.headers, json=ask)
    assert (refused.status_code, refused.json()["error"]) == (403, "approval_required")
    approved = {**ask, "tenant_approval_reference": "letter of 1 March"}
    assert (await site.client.put(path, headers=manager.headers, json=approved)).json()["data"]["role"] == "admin"
    kind, actor, reason, data = (await facts(db, owner.organization))[-1]
    assert (kind, actor, reason) == ("member_role_changed", manager.user_id, "the owner is ill")
    assert (data["tenant_approval_reference"], data["actor_type"]) == ("letter of 1 March", "tenant_manager")
    assert (data["role_before"], data["role_after"]) == ("staff", "admin")


async def test_reading_an_organizations_journal_is_in_that_journal(
    site: Site, db: Database, super_admin: Person
) -> None:
    """Who looked, and why."""
    place = await make_organization(db)
    path = f"/api/platform/orgs/{place.id}/audit"
    assert (await site.client.get(path, headers=super_admin.headers)).status_code == 400
    seen = await site.client.get(path, headers={**super_admin.headers, "x-reason": "a dispute"})
    assert [fact["kind"] for fact in seen.json()["data"]] == ["organization_created"]
    assert [(kind, reason) for kind, _, reason, _ in await facts(db, place)][-1] == (
        "audit_read_by_platform",
        "a dispute",
    )


async def test_organizations_are_founded_and_listed(site: Site, super_admin: Person) -> None:
    """An address is taken once; every organization is in the list."""
    slug = f"new-{new_id().hex}"
    made = await site.client.post("/api/platform/orgs", headers=super_admin.headers, json={"slug": slug, "name": "New"})
    assert made.status_code == 201
    twice = await site.client.post(
        "/api/platform/orgs", headers=super_admin.headers, json={"slug": slug, "name": "New"}
    )
    assert (twice.status_code, twice.json()["error"]) == (409, "slug_taken")
    found = await site.client.get(f"/api/platform/orgs/{made.json()['data']['id']}", headers=super_admin.headers)
    assert found.json()["data"]["slug"] == slug
    public = await site.client.get(f"/api/storefronts/{slug}")
    assert public.json()["data"] == {
        "id": made.json()["data"]["id"],
        "slug": slug,
        "name": "New",
        "is_suspended": False,
    }


ROUTER = Path(__file__).resolve().parents[2] / "web" / "src" / "lib" / "router.svelte.ts"
SLUG = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")


@pytest.mark.parametrize("slug", sorted(RESERVED_SLUGS))
async def test_no_organization_stands_where_the_installation_does(
    site: Site, db: Database, super_admin: Person, slug: str
) -> None:
    """Neither by the platform's pages nor by the operator."""
    asked = {"slug": slug, "name": "New"}
    refused = await site.client.post("/api/platform/orgs", headers=super_admin.headers, json=asked)
    assert (refused.status_code, refused.json()["error"]) == (400, "slug_reserved")
    with pytest.raises(SlugReserved):
        await usecases.found_organization(db, slug=slug, name="New")


async def test_every_address_of_our_own_is_reserved(owner_conn: Connection) -> None:
    """What a route, a file of the bundle or a page answers at the root and could be an organization's name."""
    routes = {route.template.split("/")[1] for route in [*all_routes(), contract_route()]}
    files = {name.partition("/")[0] for name in load_bundle()}
    assert {"api", "assets", "icons", "metrics"} <= routes | files
    assert {name for name in routes | files if SLUG.fullmatch(name)} <= RESERVED_SLUGS
    (listed,) = re.findall(r"const RESERVED = new Set\(\[(.+)\]\)", ROUTER.read_text())
    assert set(re.findall(r"'([^']+)'", listed)) == RESERVED_SLUGS
    refused = "select pg_get_constraintdef(oid) from pg_constraint where conname = 'organizations_slug_free'"
    assert set(re.findall(r"'([^']+)'", await owner_conn.fetchval(refused))) <= RESERVED_SLUGS


async def test_nobody_closes_the_door_behind_themselves(site: Site, db: Database, super_admin: Person) -> None:
    """Where somebody of the platform is signed in stays open; another one may close it."""
    path = f"/api/platform/orgs/{super_admin.organization.id}/suspend"
    refused = await site.client.post(path, headers=super_admin.headers, json={"reason": "unpaid"})
    assert (refused.status_code, refused.json()["error"]) == (409, "own_organization")
    assert (await site.client.get("/api/me", headers=super_admin.headers)).status_code == 200
    other = await make_person(db, platform=Role.SUPER_ADMIN)
    assert (await site.client.post(path, headers=other.headers, json={"reason": "unpaid"})).status_code == 200


async def test_a_super_admin_is_left(site: Site, services: Services, db: Database, owner_conn: Connection) -> None:
    """The last one can neither forget themselves nor be dismissed; the one before the last can."""
    password_hash = await services.door.passwords.hash(PASSWORD)
    last = await make_person(db, platform=Role.SUPER_ADMIN, password_hash=password_hash)
    await owner_conn.execute("delete from platform_roles where user_id <> $1", last.user_id)
    refused = await site.client.post("/api/me/delete", headers=last.headers, json={"password": PASSWORD})
    assert (refused.status_code, refused.json()["error"]) == (409, "last_super_admin")
    assert last.email is not None
    with pytest.raises(LastSuperAdmin):
        await operator.dismiss(db, email=last.email, role=Role.SUPER_ADMIN)
    other = await make_person(db, platform=Role.SUPER_ADMIN)
    assert (await site.client.post("/api/me/delete", headers=last.headers, json={"password": PASSWORD})).is_success
    assert other.email is not None
    with pytest.raises(LastSuperAdmin):
        await operator.dismiss(db, email=other.email, role=Role.SUPER_ADMIN)


async def test_the_platform_sees_who_works_at_an_organization(site: Site, db: Database, manager: Person) -> None:
    """Not its customers, and nobody of another one."""
    owner = await make_person(db, role=Role.OWNER)
    scanner = await make_person(db, owner.organization, Role.SCANNER)
    await make_person(db, owner.organization)
    path = f"/api/platform/orgs/{owner.organization.id}/members"
    seen = (await site.client.get(path, headers=manager.headers)).json()["data"]
    assert {(one["user_id"], one["role"]) for one in seen} == {
        (str(owner.user_id), "owner"),
        (str(scanner.user_id), "scanner"),
    }
    nowhere = await site.client.get(f"/api/platform/orgs/{new_id()}/members", headers=manager.headers)
    assert (nowhere.status_code, nowhere.json()["error"]) == (404, "organization_not_found")
