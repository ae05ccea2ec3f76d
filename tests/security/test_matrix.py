"""Every route, for every role, for every relation: the answer is the one the table of permissions gives."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import httpx2
import pytest

from tests.make.accounts import Person, make_organization, make_person
from tests.make.web import Site
from voelgoed.accounts import store, tokens
from voelgoed.accounts.model import Role
from voelgoed.accounts.permissions import ALLOWED, Action
from voelgoed.db import Database
from voelgoed.http.app import contract_route, create_app
from voelgoed.http.declared import all_routes
from voelgoed.ids import new_id
from voelgoed.wiring import Services

RELATIONS = ("own", "other_user", "other_organization", "absent", "deleted")
ROLES = (
    "anonymous",
    "guest",
    "customer",
    "scanner",
    "staff",
    "admin",
    "owner",
    "tenant_manager",
    "super_admin",
    "api_key_admin",
    "api_key_scanner",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """Two organizations and somebody who asks."""

    db: Database
    asker: Person
    other: Person
    colleague: Person


Targets = Callable[[World], Awaitable[dict[str, UUID | str]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """How a route is asked, and what whoever may ask gets."""

    status: int
    body: Callable[[World], dict[str, Any]] | None = None
    parameter: str = ""
    targets: Targets | None = None
    headers: dict[str, str] = field(default_factory=dict)
    is_for_people: bool = False


async def members(world: World) -> dict[str, UUID | str]:
    """The ids of people: a colleague, somebody elsewhere, nobody, somebody who was removed."""
    colleague = await make_person(world.db, world.asker.organization)
    removed = await make_person(world.db, world.asker.organization)
    async with world.db.transaction(world.asker.organization.id) as conn:
        await store.remove_member(conn, world.asker.organization.id, removed.user_id)
    return {
        "own": colleague.user_id,
        "other_organization": world.other.user_id,
        "absent": new_id(),
        "deleted": removed.user_id,
    }


async def memberships(world: World) -> dict[str, UUID | str]:
    """The ids of memberships here, elsewhere, nowhere, and revoked."""
    ids: dict[str, UUID | str] = {"absent": new_id()}
    for name, person in (("own", world.asker), ("other_organization", world.other), ("deleted", world.asker)):
        place = person.organization.id
        async with world.db.transaction(place) as conn:
            made = await store.add_membership(
                conn,
                place,
                new_id(),
                user_id=person.user_id,
                tier=f"tier-{new_id().hex}",
                valid_from=None,
                valid_to=None,
            )
            if name == "deleted":
                await store.revoke_membership(conn, place, made.id)
        ids[name] = made.id
    return ids


async def api_keys(world: World) -> dict[str, UUID | str]:
    """The ids of keys here, elsewhere, nowhere, and revoked."""
    ids: dict[str, UUID | str] = {"absent": new_id()}
    for name, person in (("own", world.asker), ("other_organization", world.other), ("deleted", world.asker)):
        key_id, _ = await add_key(world.db, person, Role.STAFF)
        ids[name] = key_id
        if name == "deleted":
            async with world.db.transaction(person.organization.id) as conn:
                await store.revoke_api_key(conn, person.organization.id, key_id)
    return ids


async def sessions(world: World) -> dict[str, UUID | str]:
    """The ids of sessions: one's own, a colleague's, somebody's elsewhere, nobody's, one that has ended."""
    ids: dict[str, UUID | str] = {"absent": new_id(), "other_organization": world.other.session_id}
    ids["other_user"] = (await make_person(world.db, world.asker.organization)).session_id
    for name in ("own", "deleted"):
        session_id = new_id()
        async with world.db.system_transaction() as conn:
            token_hash = tokens.token_hash(tokens.new_session_token())
            await store.add_session(conn, session_id, token_hash, world.asker.user_id, world.asker.organization.id)
            if name == "deleted":
                await store.revoke_session(conn, session_id, world.asker.user_id)
        ids[name] = session_id
    return ids


async def organizations(world: World) -> dict[str, UUID | str]:
    """The ids of organizations: for the platform none is foreign."""
    return {"own": world.other.organization.id, "absent": new_id()}


async def slugs(world: World) -> dict[str, UUID | str]:
    return {"own": world.other.organization.slug, "absent": f"none-{new_id().hex}"}


def new_account(world: World) -> dict[str, Any]:
    return {
        "organization": world.asker.organization.slug,
        "email": f"{new_id().hex}@example.test",
        "password": "correct horse battery",
        "name": "New",
    }


def wrong_credentials(world: World) -> dict[str, Any]:
    return {"organization": world.asker.organization.slug, "email": f"{new_id().hex}@example.test", "password": "wrong"}


def new_membership(world: World) -> dict[str, Any]:
    return {"user_id": str(world.asker.user_id), "tier": "gold"}


RULE_OF = {(route.method, route.template): route.rule for route in (*all_routes(), contract_route())}
REASON = {"reason": "asked for by the organization", "tenant_approval_reference": "letter of 1 March"}
CASES: dict[tuple[str, str], Case] = {
    ("GET", "/healthz"): Case(status=200),
    ("GET", "/readyz"): Case(status=200),
    ("GET", "/metrics"): Case(status=200),
    ("GET", "/api/openapi.json"): Case(status=200),
    ("GET", "/api/storefronts/{slug}"): Case(status=200, parameter="slug", targets=slugs),
    ("POST", "/api/auth/login"): Case(status=401, body=wrong_credentials),
    ("POST", "/api/auth/register"): Case(status=201, body=new_account),
    ("POST", "/api/auth/guest"): Case(status=201, body=lambda w: {"organization": w.asker.organization.slug}),
    ("POST", "/api/auth/logout"): Case(status=204),
    ("POST", "/api/auth/password-reset"): Case(
        status=202, body=lambda w: {"organization": w.asker.organization.slug, "email": f"{new_id().hex}@example.test"}
    ),
    ("POST", "/api/auth/password-reset/confirm"): Case(
        status=400, body=lambda _: {"token": "none", "password": "correct horse battery"}
    ),
    ("GET", "/api/me"): Case(status=200, is_for_people=True),
    ("PATCH", "/api/me"): Case(status=204, body=lambda _: {"name": "B", "locale": "af"}, is_for_people=True),
    ("PUT", "/api/me/password"): Case(
        status=401, body=lambda _: {"current": "wrong password", "new": "correct horse battery"}, is_for_people=True
    ),
    ("GET", "/api/me/sessions"): Case(status=200, is_for_people=True),
    ("DELETE", "/api/me/sessions/{session_id}"): Case(
        status=204, parameter="session_id", targets=sessions, is_for_people=True
    ),
    ("POST", "/api/me/delete"): Case(status=401, body=lambda _: {"password": "wrong password"}, is_for_people=True),
    ("GET", "/api/admin/members"): Case(status=200),
    ("POST", "/api/admin/members"): Case(
        status=201, body=lambda w: {"email": w.colleague.email, "role": "staff"}, is_for_people=True
    ),
    ("GET", "/api/admin/members/{user_id}"): Case(status=200, parameter="user_id", targets=members),
    ("PUT", "/api/admin/members/{user_id}"): Case(
        status=200, parameter="user_id", targets=members, body=lambda _: {"role": "staff"}, is_for_people=True
    ),
    ("DELETE", "/api/admin/members/{user_id}"): Case(
        status=204, parameter="user_id", targets=members, is_for_people=True
    ),
    ("GET", "/api/admin/memberships"): Case(status=200),
    ("POST", "/api/admin/memberships"): Case(status=201, body=new_membership),
    ("POST", "/api/admin/memberships/{membership_id}/revoke"): Case(
        status=200, parameter="membership_id", targets=memberships, body=lambda _: {"reason": "unpaid"}
    ),
    ("GET", "/api/admin/api-keys"): Case(status=200),
    ("POST", "/api/admin/api-keys"): Case(
        status=201, body=lambda _: {"name": "Gate", "role": "scanner"}, is_for_people=True
    ),
    ("DELETE", "/api/admin/api-keys/{key_id}"): Case(
        status=204, parameter="key_id", targets=api_keys, is_for_people=True
    ),
    ("GET", "/api/admin/audit"): Case(status=200),
    ("GET", "/api/platform/orgs"): Case(status=200),
    ("POST", "/api/platform/orgs"): Case(status=201, body=lambda _: {"slug": f"new-{new_id().hex}", "name": "New"}),
    ("GET", "/api/platform/orgs/{org_id}"): Case(status=200, parameter="org_id", targets=organizations),
    ("GET", "/api/platform/orgs/{org_id}/audit"): Case(
        status=200,
        parameter="org_id",
        targets=organizations,
        headers={"x-reason": "dispute", "x-tenant-approval-reference": "letter"},
    ),
    ("POST", "/api/platform/orgs/{org_id}/suspend"): Case(
        status=200, parameter="org_id", targets=organizations, body=lambda _: REASON
    ),
    ("POST", "/api/platform/orgs/{org_id}/resume"): Case(
        status=200, parameter="org_id", targets=organizations, body=lambda _: REASON
    ),
    ("PUT", "/api/platform/orgs/{org_id}/members/{user_id}"): Case(
        status=200, parameter="org_id", targets=organizations, body=lambda _: {**REASON, "role": "admin"}
    ),
}


async def test_every_route_has_a_row(services: Services) -> None:
    """A new route without one fails here: declared, hot, or added by the application itself."""
    edge = create_app(services, asyncio.Event())
    assert {(route.method, route.template) for route in edge._routes.routes} == CASES.keys()
    assert RULE_OF.keys() == CASES.keys()
    edge.close()


async def add_key(db: Database, person: Person, role: Role) -> tuple[UUID, str]:
    token, key_id = tokens.new_api_key(), new_id()
    async with db.transaction(person.organization.id) as conn:
        await store.add_api_key(
            conn,
            person.organization.id,
            key_id,
            name="A program",
            role=role,
            hint=tokens.hint(token),
            token_hash=tokens.token_hash(token),
            created_by=person.user_id,
            expires_at=None,
        )
    return key_id, token


async def enter(db: Database, role: str) -> tuple[World, dict[str, str], frozenset[Role]]:
    """A world seen by somebody of this role: their proof of it, and what they are."""
    other = await make_person(db)
    place = await make_organization(db)
    if role in ("tenant_manager", "super_admin"):
        asker = await make_person(db, place, platform=Role(role))
        roles = frozenset({Role.CUSTOMER, Role(role)})
    elif role.startswith("api_key"):
        asker = await make_person(db, place, Role.OWNER)
        roles = frozenset({Role(role.removeprefix("api_key_"))})
    else:
        is_guest = role == "guest"
        asker = await make_person(
            db, place, Role.CUSTOMER if role in ("guest", "anonymous") else Role(role), is_guest=is_guest
        )
        roles = frozenset({Role.ANONYMOUS if role == "anonymous" else asker.role})
    headers = asker.headers
    if role == "anonymous":
        headers = {}
    elif role.startswith("api_key"):
        _, token = await add_key(db, asker, *roles)
        headers = {"authorization": f"Bearer {token}"}
    return World(db=db, asker=asker, other=other, colleague=await make_person(db, place)), headers, roles


def plain(answer: httpx2.Response) -> tuple[int, Any, dict[str, str]]:
    """An answer without what differs between any two: request id and date."""
    body = answer.json() if answer.content else None
    if isinstance(body, dict):
        body.pop("request_id", None)
    headers = {name: value for name, value in answer.headers.items() if name not in ("date", "x-request-id")}
    return answer.status_code, body, headers


def expected(case: Case, action: Action, roles: frozenset[Role], role: str) -> int | None:
    """What the table says: a refusal's status, or None when the route itself must answer."""
    if not ALLOWED[action] & roles:
        return 401 if role == "anonymous" else 403
    return 403 if case.is_for_people and role.startswith("api_key") else None


@pytest.mark.req("SEC-12", "SEC-13", "TEN-02")
@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize(("method", "template"), CASES, ids=[f"{method} {path}" for method, path in CASES])
async def test_the_answer_is_what_the_table_says(
    site: Site, db: Database, method: str, template: str, role: str
) -> None:
    """Refused where the role is not marked; where it is, foreign, absent and deleted are all the same nothing."""
    case = CASES[method, template]
    action = RULE_OF[method, template].action
    world, headers, roles = await enter(db, role)
    targets = await case.targets(world) if case.targets else {"own": ""}
    refused = expected(case, action, roles, role)
    answers: dict[str, httpx2.Response] = {}
    for relation in RELATIONS:
        if relation not in targets:
            continue
        path = template.replace(f"{{{case.parameter}}}", str(targets[relation]))
        path = path.replace("{user_id}", str(world.other.user_id))
        body = case.body(world) if case.body else None
        answers[relation] = await site.client.request(method, path, headers={**headers, **case.headers}, json=body)
    site.client.cookies.clear()
    if refused is not None:
        assert answers
        assert {answer.status_code for answer in answers.values()} == {refused}
        return
    # A guest has no password to get wrong: they are forgotten at once.
    status = 204 if role == "guest" and template == "/api/me/delete" else case.status
    assert answers["own"].status_code == status, answers["own"].text
    nothings = [plain(answer) for relation, answer in answers.items() if relation != "own"]
    assert all(status == 404 for status, _, _ in nothings), nothings
    assert all(nothing == nothings[0] for nothing in nothings), "foreign, absent and deleted can be told apart"
