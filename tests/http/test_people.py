"""Members, memberships and API keys over HTTP: what each verb does, and what it refuses."""

import asyncio
from uuid import UUID

import pytest

from tests.make.accounts import Person, make_person
from tests.make.web import Site
from voelgoed.accounts import store
from voelgoed.accounts.model import Role
from voelgoed.db import Connection, Database
from voelgoed.ids import new_id


@pytest.fixture
async def owner(db: Database) -> Person:
    return await make_person(db, role=Role.OWNER)


async def told(db: Database, person: Person, kind: str) -> list[dict[str, object]]:
    async with db.transaction(person.organization.id) as conn:
        rows = await conn.fetch("select actor_id, reason, data::text from journal where kind = $1 order by seq", kind)
    return [dict(row) for row in rows]


async def test_a_role_is_given_changed_and_taken(site: Site, db: Database, owner: Person) -> None:
    """The person feels it at their next request, and the journal has each step with before and after."""
    newcomer = await make_person(db, owner.organization)
    made = await site.client.post(
        "/api/admin/members", headers=owner.headers, json={"email": newcomer.email, "role": "staff"}
    )
    assert made.status_code == 201
    assert made.json()["data"]["role"] == "staff"
    here = await make_person(db, owner.organization, Role.STAFF)
    assert (await site.client.get("/api/admin/members", headers=here.headers)).status_code == 403
    path = f"/api/admin/members/{here.user_id}"
    assert (await site.client.put(path, headers=owner.headers, json={"role": "admin"})).status_code == 200
    assert (await site.client.get("/api/admin/members", headers=here.headers)).status_code == 200
    assert (await site.client.delete(path, headers=owner.headers)).status_code == 204
    assert (await site.client.get("/api/admin/members", headers=here.headers)).status_code == 401
    changes = await told(db, owner, "member_role_changed")
    assert [change["actor_id"] for change in changes] == [owner.user_id] * 2
    assert '"role_after": "admin"' in str(changes[1]["data"])
    assert len(await told(db, owner, "member_removed")) == 1


@pytest.mark.parametrize(("target", "to"), [(Role.OWNER, "staff"), (Role.STAFF, "owner")])
async def test_nobody_climbs(site: Site, db: Database, owner: Person, target: Role, to: str) -> None:
    """An admin can neither unseat an owner nor make one."""
    asker = await make_person(db, owner.organization, Role.ADMIN)
    victim = await make_person(db, owner.organization, target)
    answer = await site.client.put(f"/api/admin/members/{victim.user_id}", headers=asker.headers, json={"role": to})
    assert (answer.status_code, answer.json()["error"]) == (403, "role_change_refused")
    assert await told(db, owner, "member_role_changed") == []


async def test_the_last_owner_stays(site: Site, db: Database, owner: Person) -> None:
    """The only owner can neither step down nor leave, and is told that this is why; with a second one they can."""
    path = f"/api/admin/members/{owner.user_id}"
    stepped_down = await site.client.put(path, headers=owner.headers, json={"role": "admin"})
    left = await site.client.delete(path, headers=owner.headers)
    for answer in (stepped_down, left):
        assert (answer.status_code, answer.json()["error"]) == (409, "last_owner")
    assert await told(db, owner, "member_role_changed") == await told(db, owner, "member_removed") == []
    await make_person(db, owner.organization, Role.OWNER)
    assert (await site.client.put(path, headers=owner.headers, json={"role": "admin"})).status_code == 200


async def test_people_are_found_by_role_and_by_words(site: Site, db: Database, owner: Person) -> None:
    """Several roles at once, a part of a name or an address, and a sign that stands for others finds nothing."""
    staff = await make_person(db, owner.organization, Role.STAFF)
    customer = await make_person(db, owner.organization)

    async def found(**query: str | list[str]) -> set[str]:
        answer = await site.client.get("/api/admin/members", headers=owner.headers, params=query)
        assert answer.status_code == 200, answer.text
        return {member["user_id"] for member in answer.json()["data"]}

    assert customer.email is not None
    assert await found(role=["owner", "staff"]) == {str(owner.user_id), str(staff.user_id)}
    # Not its beginning: identifiers of one millisecond, and so these addresses, begin alike.
    assert await found(q=customer.email[4:32].upper()) == {str(customer.user_id)}
    assert await found(q="ann", role="customer") == {str(customer.user_id)}
    assert await found(q="%") == set()


async def test_two_owners_who_remove_each_other_leave_one(site: Site, db: Database, owner: Person) -> None:
    """At the same moment, again and again: there is always an owner left."""
    for _ in range(5):
        other = await make_person(db, owner.organization, Role.OWNER)
        answers = await asyncio.gather(
            site.client.put(f"/api/admin/members/{other.user_id}", headers=owner.headers, json={"role": "staff"}),
            site.client.put(f"/api/admin/members/{owner.user_id}", headers=other.headers, json={"role": "staff"}),
        )
        assert sorted(answer.status_code for answer in answers) in ([200, 403], [200, 401], [200, 409])
        async with db.transaction(owner.organization.id) as conn:
            owners = await conn.fetch("select user_id from org_members where role = 'owner'")
        assert len(owners) == 1
        async with db.transaction(owner.organization.id) as conn:
            await conn.execute("update org_members set role = 'customer' where user_id = $1", other.user_id)
            await conn.execute("update org_members set role = 'owner' where user_id = $1", owner.user_id)


async def test_every_fact_says_what_its_teller_was(site: Site, db: Database, owner: Person) -> None:
    """A role is changed and a name forgotten; what somebody was when they did something stays."""
    place = owner.organization
    newcomer = {"organization": place.slug, "email": f"{new_id().hex}@example.test", "password": "a long password"}
    entered = await site.client.post("/api/auth/register", json={**newcomer, "name": "Berta", "locale": "en"})
    assert entered.status_code == 201, entered.text
    customer = entered.json()["data"]
    path = f"/api/admin/members/{customer['user']['id']}"
    assert (await site.client.put(path, headers=owner.headers, json={"role": "staff"})).status_code == 200
    bearer = {"Authorization": f"Bearer {customer['token']}"}
    assert (await site.client.post("/api/auth/logout", headers=bearer)).status_code == 204
    async with db.transaction(place.id) as conn:
        rows = await conn.fetch("select kind, data->>'actor_type' as was from journal order by seq")
    assert [(row["kind"], row["was"]) for row in rows] == [
        ("organization_created", "operator"),
        ("registered", "customer"),
        ("member_role_changed", "owner"),
        ("signed_out", "staff"),
    ]


async def test_people_are_listed_in_pages(site: Site, db: Database, owner: Person) -> None:
    """Every one once, whatever the size of the page; a made-up cursor is refused."""
    everybody = {str(owner.user_id)} | {str((await make_person(db, owner.organization)).user_id) for _ in range(6)}
    seen: list[str] = []
    cursor = None
    for _ in range(10):
        query = {"limit": 3} | ({"cursor": cursor} if cursor else {})
        page = (await site.client.get("/api/admin/members", headers=owner.headers, params=query)).json()
        seen += [member["user_id"] for member in page["data"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert len(seen) == 7
    assert set(seen) == everybody
    wrong = await site.client.get("/api/admin/members", headers=owner.headers, params={"cursor": "nonsense"})
    assert (wrong.status_code, wrong.json()["error"]) == (400, "cursor_invalid")


async def test_memberships_are_granted_once_and_revoked(site: Site, db: Database, owner: Person) -> None:
    """A tier counts until it is taken away, with the reason in the journal."""
    customer = await make_person(db, owner.organization)
    ask = {"user_id": str(customer.user_id), "tier": "gold", "valid_to": "2099-01-01T00:00:00Z"}
    made = await site.client.post("/api/admin/memberships", headers=owner.headers, json=ask)
    assert made.json()["data"]["status"] == "active"
    twice = await site.client.post("/api/admin/memberships", headers=owner.headers, json=ask)
    assert (twice.status_code, twice.json()["error"]) == (409, "membership_exists")
    mine = (await site.client.get("/api/me", headers=customer.headers)).json()["data"]["memberships"]
    assert [membership["tier"] for membership in mine] == ["gold"]
    path = f"/api/admin/memberships/{made.json()['data']['id']}/revoke"
    revoked = await site.client.post(path, headers=owner.headers, json={"reason": "unpaid"})
    assert revoked.json()["data"]["status"] == "revoked"
    assert (await site.client.post(path, headers=owner.headers, json={})).status_code == 404
    assert [fact["reason"] for fact in await told(db, owner, "membership_revoked")] == ["unpaid"]
    wrong = {**ask, "valid_from": "2099-01-02T00:00:00Z"}
    backwards = await site.client.post("/api/admin/memberships", headers=owner.headers, json=wrong)
    assert (backwards.status_code, backwards.json()["error"]) == (400, "membership_invalid")


async def test_memberships_are_found_by_standing_and_by_words(site: Site, db: Database, owner: Person) -> None:
    """Each says whose it is; one that was revoked is found as such, and words look at name, address and tier."""
    first, second = [await make_person(db, owner.organization) for _ in range(2)]

    async def grant(person: Person, tier: str) -> str:
        ask = {"user_id": str(person.user_id), "tier": tier}
        made = (await site.client.post("/api/admin/memberships", headers=owner.headers, json=ask)).json()["data"]
        assert (made["name"], made["email"]) == ("Anna", person.email)
        return str(made["id"])

    await grant(first, "gold")
    ended = f"/api/admin/memberships/{await grant(second, 'silver')}/revoke"
    assert (await site.client.post(ended, headers=owner.headers, json={})).json()["data"]["email"] == second.email

    async def found(**query: str) -> list[str]:
        answer = await site.client.get("/api/admin/memberships", headers=owner.headers, params=query)
        return [membership["tier"] for membership in answer.json()["data"]]

    assert (await found(status="active"), await found(status="revoked")) == (["gold"], ["silver"])
    assert second.email is not None
    assert (await found(q="SILV"), await found(q=second.email), await found(q="nobody")) == (["silver"], ["silver"], [])


async def test_an_api_key_works_until_it_is_revoked(site: Site, db: Database, owner: Person) -> None:
    """Its secret is shown once, only its hash is kept, and it does what its role may and no more."""
    made = await site.client.post(
        "/api/admin/api-keys", headers=owner.headers, json={"name": "Box office", "role": "admin"}
    )
    data = made.json()["data"]
    key = {"authorization": f"Bearer {data['token']}"}
    assert data["hint"] == data["token"][:12]
    assert (await site.client.get("/api/admin/members", headers=key)).status_code == 200
    assert (await site.client.get("/api/me", headers=key)).status_code == 403
    more = await site.client.post("/api/admin/api-keys", headers=key, json={"name": "Another", "role": "scanner"})
    assert more.status_code == 403
    listed = (await site.client.get("/api/admin/api-keys", headers=owner.headers)).json()["data"]
    assert [entry["name"] for entry in listed] == ["Box office"]
    assert "token" not in listed[0]
    assert (await site.client.delete(f"/api/admin/api-keys/{data['id']}", headers=owner.headers)).status_code == 204
    assert (await site.client.get("/api/admin/members", headers=key)).status_code == 401


async def test_a_key_that_has_run_out_is_nobody(site: Site, db: Database, owner: Person) -> None:
    """An end in the past ends it."""
    ask = {"name": "Old", "role": "admin", "expires_at": "2020-01-01T00:00:00Z"}
    past = await site.client.post("/api/admin/api-keys", headers=owner.headers, json=ask)
    assert (past.status_code, past.json()["error"]) == (400, "api_key_invalid")
    made = await site.client.post("/api/admin/api-keys", headers=owner.headers, json={"name": "Old", "role": "admin"})
    async with db.transaction(owner.organization.id) as conn:
        await conn.execute("update api_keys set expires_at = now() where id = $1", UUID(made.json()["data"]["id"]))
    key = {"authorization": f"Bearer {made.json()['data']['token']}"}
    assert (await site.client.get("/api/admin/members", headers=key)).status_code == 401


async def test_a_key_lives_as_long_as_its_maker_leads(site: Site, db: Database, owner: Person) -> None:
    """Whoever is no longer an admin has no key that is one; and no key changes what people are."""
    maker = await make_person(db, owner.organization, Role.ADMIN)
    made = await site.client.post("/api/admin/api-keys", headers=maker.headers, json={"name": "K", "role": "admin"})
    key = {"authorization": f"Bearer {made.json()['data']['token']}"}
    path = f"/api/admin/members/{maker.user_id}"
    assert (await site.client.put(path, headers=key, json={"role": "admin"})).status_code == 403
    assert (await site.client.put(path, headers=owner.headers, json={"role": "customer"})).status_code == 200
    assert (await site.client.get("/api/admin/members", headers=key)).status_code == 401


async def test_whoever_was_removed_does_not_come_back_with_an_old_session(
    site: Site, db: Database, owner: Person
) -> None:
    """A new visit makes a customer; the session of before stays ended."""
    staff = await make_person(db, owner.organization, Role.STAFF)
    assert (await site.client.delete(f"/api/admin/members/{staff.user_id}", headers=owner.headers)).status_code == 204
    async with db.transaction(owner.organization.id) as conn:
        await store.join_as_customer(conn, owner.organization.id, staff.user_id)
    assert (await site.client.get("/api/me", headers=staff.headers)).status_code == 401


async def test_people_of_other_organizations_do_not_exist(site: Site, db: Database, owner: Person) -> None:
    """An address of somebody who has never been here is the same as one that nobody has."""
    stranger = await make_person(db)
    answers = [
        await site.client.post("/api/admin/members", headers=owner.headers, json={"email": email, "role": "staff"})
        for email in (stranger.email, f"{new_id().hex}@example.test")
    ]
    assert {answer.status_code for answer in answers} == {404}
    bodies = [{**answer.json(), "request_id": ""} for answer in answers]
    assert bodies[0] == bodies[1]


async def test_a_guest_gets_no_role(site: Site, db: Database, owner: Person) -> None:
    """They could never sign in with it again."""
    guest = await make_person(db, owner.organization, is_guest=True)
    answer = await site.client.put(f"/api/admin/members/{guest.user_id}", headers=owner.headers, json={"role": "staff"})
    assert (answer.status_code, answer.json()["error"]) == (403, "role_change_refused")


@pytest.mark.parametrize(
    "period",
    [
        {"valid_to": "2020-01-01T00:00:00Z"},
        {"valid_from": "0001-01-01T00:00:00+14:00"},
        {"valid_to": "9999-12-31T23:59:59-14:00"},
        {"valid_from": "2099-01-02T00:00:00Z", "valid_to": "2099-01-01T00:00:00Z"},
        {"valid_to": "1e9"},
    ],
)
async def test_impossible_periods_are_refused(site: Site, owner: Person, period: dict[str, str]) -> None:
    """Whatever the calendar or the database says about them, the answer is 400."""
    ask = {"user_id": str(owner.user_id), "tier": "gold", **period}
    assert (await site.client.post("/api/admin/memberships", headers=owner.headers, json=ask)).status_code == 400


async def test_the_same_ask_with_the_same_key_has_one_effect(site: Site, db: Database, owner: Person) -> None:
    """Twenty at once: one key is made, everybody gets its id, and only one its secret."""
    headers = {**owner.headers, "idempotency-key": str(new_id())}
    ask = {"name": "Once", "role": "scanner"}
    answers = await asyncio.gather(
        *(site.client.post("/api/admin/api-keys", headers=headers, json=ask) for _ in range(20))
    )
    assert {answer.status_code for answer in answers} == {201}
    assert len({answer.json()["data"]["id"] for answer in answers}) == 1
    assert sum(answer.json()["data"]["token"] is not None for answer in answers) == 1
    assert len(await told(db, owner, "api_key_created")) == 1
    other = await site.client.post("/api/admin/api-keys", headers=headers, json={**ask, "name": "Twice"})
    assert (other.status_code, other.json()["error"]) == (422, "idempotency_key_reused")


async def test_a_key_of_somebody_else_means_nothing(site: Site, db: Database, owner: Person) -> None:
    """The same text is another key in another hand, in this organization or elsewhere."""
    key = {"idempotency-key": "the-same-for-all"}
    people = [owner, await make_person(db, owner.organization, Role.ADMIN), await make_person(db, role=Role.OWNER)]
    answers = [
        await site.client.post(
            "/api/admin/api-keys", headers={**person.headers, **key}, json={"name": "Mine", "role": "scanner"}
        )
        for person in people
    ]
    assert len({answer.json()["data"]["id"] for answer in answers}) == 3


async def test_a_refused_ask_leaves_its_key_free(site: Site, db: Database, owner: Person) -> None:
    """The memory commits with the effect: without one there is nothing to remember."""
    headers = {**owner.headers, "idempotency-key": str(new_id())}
    ask = {"email": f"{new_id().hex}@example.test", "role": "staff"}
    assert (await site.client.post("/api/admin/members", headers=headers, json=ask)).status_code == 404
    known = await make_person(db, owner.organization)
    again = await site.client.post("/api/admin/members", headers=headers, json={**ask, "email": known.email})
    assert again.status_code == 201


async def test_an_account_is_forgotten_but_what_refers_to_it_stays(
    site: Site, db: Database, owner: Person, owner_conn: Connection
) -> None:
    """Name, address and password are gone everywhere; the row stays for tickets and facts; the last owner cannot go."""
    guest = await make_person(db, owner.organization, is_guest=True)
    assert (await site.client.post("/api/me/delete", headers=guest.headers, json={})).status_code == 204
    site.client.cookies.clear()
    assert (await site.client.get("/api/me", headers=guest.headers)).status_code == 401
    row = await owner_conn.fetchrow(
        "select email, name, password_hash, deleted_at from users where id = $1", guest.user_id
    )
    assert row is not None
    assert (row["email"], row["name"], row["password_hash"]) == (None, "Deleted", None)
    assert row["deleted_at"] is not None
    assert len(await told(db, owner, "account_deleted")) == 1

    async with db.system_transaction() as conn:
        await conn.execute("update users set is_guest = true where id = $1", owner.user_id)
    alone = await site.client.post("/api/me/delete", headers=owner.headers, json={})
    assert (alone.status_code, alone.json()["error"]) == (409, "last_owner")


async def test_own_sessions_are_seen_and_ended(site: Site, db: Database, owner: Person) -> None:
    """The list says which one is asking; ending another works at once."""
    listed = (await site.client.get("/api/me/sessions", headers=owner.headers)).json()["data"]
    assert [(entry["id"], entry["is_current"]) for entry in listed] == [(str(owner.session_id), True)]
    assert (await site.client.delete(f"/api/me/sessions/{owner.session_id}", headers=owner.headers)).status_code == 204
    assert (await site.client.get("/api/me", headers=owner.headers)).status_code == 401
