"""The journal over HTTP: an organization sees its own, and where each thing came from."""

import pytest

from tests.make.accounts import make_person
from tests.make.web import Site
from voelgoed.accounts.model import Role
from voelgoed.db import Connection, Database


@pytest.mark.req("AUD-04", "TEN-06")
async def test_facts_are_found_newest_first_with_their_origin(site: Site, db: Database, owner_conn: Connection) -> None:
    """By kind, by person, by time; and every row in the journal has its organization."""
    owner = await make_person(db, role=Role.OWNER)
    agent = {**owner.headers, "user-agent": "a browser of 1999"}
    for name in ("One", "Two", "Three"):
        await site.client.patch("/api/me", headers=agent, json={"name": name, "locale": "en"})
    await site.client.post("/api/admin/api-keys", headers=agent, json={"name": "K", "role": "scanner"})
    page = (await site.client.get("/api/admin/audit", headers=owner.headers, params={"limit": 2})).json()
    assert [fact["kind"] for fact in page["data"]] == ["api_key_created", "account_changed"]
    assert page["data"][0]["actor_id"] == str(owner.user_id)
    assert (page["data"][0]["ip"], page["data"][0]["user_agent"]) == ("127.0.0.1", "a browser of 1999")
    rest = await site.client.get(
        "/api/admin/audit", headers=owner.headers, params={"limit": 50, "cursor": page["next_cursor"]}
    )
    assert [fact["kind"] for fact in rest.json()["data"]] == [
        "account_changed",
        "account_changed",
        "organization_created",
    ]
    by_kind = await site.client.get("/api/admin/audit", headers=owner.headers, params={"kind": "account_changed"})
    assert len(by_kind.json()["data"]) == 3
    none = await site.client.get("/api/admin/audit", headers=owner.headers, params={"until": "2020-01-01T00:00:00Z"})
    assert none.json() == {"data": [], "next_cursor": None}
    nullable = await owner_conn.fetchval(
        "select not attnotnull from pg_attribute where attrelid = 'journal'::regclass and attname = 'organization_id'"
    )
    assert nullable is False


async def test_another_organizations_facts_are_not_there(site: Site, db: Database) -> None:
    """Whatever is asked for."""
    mine, other = await make_person(db, role=Role.OWNER), await make_person(db, role=Role.OWNER)
    seen = await site.client.get(
        "/api/admin/audit", headers=mine.headers, params={"actor_id": str(other.user_id), "limit": 200}
    )
    assert seen.json()["data"] == []


async def test_the_organizations_own_people_have_names_and_others_have_none(site: Site, db: Database) -> None:
    """Who did it and to whom; the platform's staff, and whoever is here no longer, stay unnamed."""
    owner = await make_person(db, role=Role.OWNER)
    helper = await make_person(db, owner.organization)
    platform = await make_person(db, platform=Role.SUPER_ADMIN)
    await site.client.patch("/api/me", headers=helper.headers, json={"name": "Berta", "locale": "en"})
    path = f"/api/admin/members/{helper.user_id}"
    await site.client.put(path, headers=owner.headers, json={"role": "staff"})
    raised = f"/api/platform/orgs/{owner.organization.id}/members/{helper.user_id}"
    await site.client.put(raised, headers=platform.headers, json={"role": "admin", "reason": "asked to"})

    async def told() -> list[tuple[str | None, str | None]]:
        query = {"kind": "member_role_changed"}
        page = (await site.client.get("/api/admin/audit", headers=owner.headers, params=query)).json()
        return [(fact["actor_name"], fact["person_name"]) for fact in page["data"]]

    assert await told() == [(None, "Berta"), ("Anna", "Berta")]
    await site.client.delete(path, headers=owner.headers)
    assert await told() == [(None, None), ("Anna", None)]
