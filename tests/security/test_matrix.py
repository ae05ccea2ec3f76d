"""Every route, for every role, for every relation: the answer is the one that `permitted.py` gives."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import httpx2
import pytest

from tests.make.accounts import Person, make_organization, make_person
from tests.make.events import make_event, make_gate, make_venue, soon
from tests.make.holds import hold_directly
from tests.make.layouts import SMALL, allow_everything, make_layout
from tests.make.prices import make_rule
from tests.make.seating import Seated, seated_event
from tests.make.web import Site
from tests.security.permitted import ACTION_OF_ROUTE, ROLES_OF_ACTION
from voelgoed.accounts import store, tokens
from voelgoed.accounts.model import Role
from voelgoed.cache import Cache
from voelgoed.db import Database
from voelgoed.events import store as event_store
from voelgoed.events.model import OPERATOR, Venue
from voelgoed.http.app import contract_route, create_app
from voelgoed.http.declared import all_routes
from voelgoed.ids import new_id
from voelgoed.redis import RedisLink
from voelgoed.seating.model import LayoutId, Pin
from voelgoed.seating.studio import Studio
from voelgoed.ticketing import rulebook
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
    venue: Venue


Targets = Callable[[World], Awaitable[dict[str, UUID | str]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """How a route is asked, and what whoever may ask gets."""

    status: int
    body: Callable[[World], dict[str, Any]] | None = None
    parameter: str = ""
    targets: Targets | None = None
    headers: dict[str, str] = field(default_factory=dict)
    query: str = ""
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


async def venues(world: World) -> dict[str, UUID | str]:
    """The ids of venues here, elsewhere, nowhere, and deleted."""
    removed = await make_venue(world.db, world.asker.organization)
    async with world.db.transaction(world.asker.organization.id) as conn:
        await event_store.remove_venue(conn, world.asker.organization.id, removed.id)
    return {
        "own": (await make_venue(world.db, world.asker.organization)).id,
        "other_organization": (await make_venue(world.db, world.other.organization)).id,
        "absent": new_id(),
        "deleted": removed.id,
    }


async def gates(world: World) -> dict[str, UUID | str]:
    """The ids of gates here, elsewhere, nowhere, and deleted."""
    removed = await make_gate(world.db, world.venue, gate_code="GONE")
    async with world.db.transaction(world.asker.organization.id) as conn:
        await event_store.remove_gate(conn, world.asker.organization.id, removed.id)
    return {
        "own": (await make_gate(world.db, world.venue)).id,
        "other_organization": (await make_gate(world.db, await make_venue(world.db, world.other.organization))).id,
        "absent": new_id(),
        "deleted": removed.id,
    }


def events(status: str = "draft") -> Targets:
    """The ids of events here, elsewhere, nowhere, and deleted; those that are there have this status."""

    async def made(world: World) -> dict[str, UUID | str]:
        place = world.asker.organization
        removed = await make_event(world.db, place, world.venue)
        async with world.db.transaction(place.id) as conn:
            await event_store.remove_event(conn, place.id, removed.id)
        return {
            "own": (await make_event(world.db, place, world.venue, status)).id,
            "other_organization": (await make_event(world.db, world.other.organization, status=status)).id,
            "absent": new_id(),
            "deleted": removed.id,
        }

    return made


async def one_event(world: World) -> dict[str, UUID | str]:
    return {"own": (await make_event(world.db, world.asker.organization, world.venue, "published")).id}


async def public_events(world: World) -> dict[str, UUID | str]:
    """The ids of events as a stranger knows them: one that is shown, none, and one that is not shown."""
    place = world.other.organization
    return {
        "own": (await make_event(world.db, place, status="published")).id,
        "absent": new_id(),
        "deleted": (await make_event(world.db, place, status="cancelled")).id,
    }


async def public_addresses(world: World) -> dict[str, UUID | str]:
    """The same by their addresses; the other organization's slug leads nowhere here."""
    place, elsewhere = world.other.organization, world.asker.organization
    shown = await make_event(world.db, place, status="published")
    hidden = await make_event(world.db, place, status="cancelled")
    return {
        "own": f"{place.slug}/events/{shown.slug}",
        "other_organization": f"{elsewhere.slug}/events/{shown.slug}",
        "absent": f"{place.slug}/events/none-{new_id().hex}",
        "deleted": f"{place.slug}/events/{hidden.slug}",
    }


async def platform_events(world: World) -> dict[str, UUID | str]:
    """Events in an organization that the platform names: there, in another one, nowhere."""
    place, elsewhere = world.other.organization, world.asker.organization
    event = await make_event(world.db, place, status="published")
    return {
        "own": f"{place.id}/events/{event.id}",
        "other_organization": f"{elsewhere.id}/events/{event.id}",
        "absent": f"{place.id}/events/{new_id()}",
    }


async def layouts(world: World) -> dict[str, UUID | str]:
    """The ids of layouts here, elsewhere and nowhere."""
    ids: dict[str, UUID | str] = {"absent": new_id()}
    for name, person in (("own", world.asker), ("other_organization", world.other)):
        ids[name] = (await make_layout(world.db, await make_venue(world.db, person.organization))).layout_id
    return ids


async def shown_versions(world: World) -> dict[str, UUID | str]:
    """Versions as a stranger knows them: one that an event on show has, one that only a draft has, none."""
    pins = {"absent": Pin(LayoutId(new_id()), 1)}
    for name, status in (("own", "published"), ("other_organization", "draft")):
        pins[name] = (await seated(world, world.other, status)).pin
    return {name: f"{pin.layout_id}/v{pin.version}" for name, pin in pins.items()}


async def seated(world: World, person: Person, status: str = "published") -> Seated:
    """An event with a hall, where somebody is."""
    studio = Studio(world.db, Cache(link=RedisLink("redis://127.0.0.1:1")))  # nothing is read from it
    return await seated_event(world.db, studio, person.organization, status=status)


def places(what: str) -> Targets:
    """Seats or zones of events on sale here, elsewhere and nowhere, and of one that is a draft again."""

    async def made(world: World) -> dict[str, UUID | str]:
        found: dict[str, UUID | str] = {"absent": f"{new_id()}/{what}/{new_id()}"}
        for name, person, status in (
            ("own", world.asker, "published"),
            ("other_organization", world.other, "published"),
            ("deleted", world.asker, "draft"),
        ):
            event = await seated(world, person, status)
            place = event.hall.zone_id("P") if what == "zones" else event.hall.seat_id(0)
            found[name] = f"{event.event.id}/{what}/{place}"
        return found

    return made


async def public_halls(world: World) -> dict[str, UUID | str]:
    """Events with a hall as a stranger knows them: one that is shown, none, and one that is a draft again."""
    return {
        "own": (await seated(world, world.other)).event.id,
        "absent": new_id(),
        "deleted": (await seated(world, world.other, "draft")).event.id,
    }


async def halls(world: World) -> dict[str, UUID | str]:
    """Events with a hall here, elsewhere and nowhere; the asks are for a seat of the first."""
    found = {name: await seated(world, person) for name, person in (("own", world.asker), ("foreign", world.other))}
    SEATS[world.asker.user_id] = str(found["own"].hall.seat_id(0))
    return {"own": found["own"].event.id, "other_organization": found["foreign"].event.id, "absent": new_id()}


async def holds(world: World) -> dict[str, UUID | str]:
    """Holds of the asker, of somebody elsewhere, of nobody."""
    found: dict[str, UUID | str] = {"absent": new_id()}
    for name, person in (("own", world.asker), ("other_organization", world.other)):
        found[name] = (await hold_directly(world.db, await seated(world, person), person.user_id, "S-A-1"))[0]
    return found


async def pricing_rules(world: World) -> dict[str, UUID | str]:
    """The ids of pricing rules here, elsewhere, nowhere, and deleted."""
    removed = await make_rule(world.db, world.asker.organization)
    async with world.db.transaction(world.asker.organization.id) as conn:
        await rulebook.drop_rule(conn, world.asker.organization.id, removed.id, by=OPERATOR, version=None)
    return {
        "own": (await make_rule(world.db, world.asker.organization)).id,
        "other_organization": (await make_rule(world.db, world.other.organization)).id,
        "absent": new_id(),
        "deleted": removed.id,
    }


async def versions(world: World) -> dict[str, UUID | str]:
    """The first versions of layouts here, elsewhere and nowhere."""
    return {name: f"{layout_id}/versions/1" for name, layout_id in (await layouts(world)).items()}


def version_case(**asked: Any) -> Case:
    return Case(status=200, parameter="layout_id}/versions/{version", targets=versions, **asked)


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


def new_event(world: World) -> dict[str, Any]:
    return {
        "venue_id": str(world.venue.id),
        "name": "New",
        "slug": f"new-{new_id().hex}",
        "start_at": soon(days=1).isoformat(),
        "end_at": soon(days=2).isoformat(),
    }


def new_venue(_: World) -> dict[str, Any]:
    return {"name": "New", "slug": f"new-{new_id().hex}", "timezone": "Africa/Johannesburg", "max_capacity": 10}


def new_gate(_: World) -> dict[str, Any]:
    return {"gate_code": new_id().hex.upper(), "name": "New"}


def another_venue(world: World) -> dict[str, Any]:
    return {"reason": "a leak", "venue_id": str(world.venue.id), "consent": True}


def another_date(_: World) -> dict[str, Any]:
    return {"reason": "a storm", "start_at": soon(days=90).isoformat()}


def event_case(targets: Targets, body: Callable[[World], dict[str, Any]] | None = None, status: int = 200) -> Case:
    return Case(status=status, parameter="event_id", targets=targets, body=body)


def some_seats(world: World) -> dict[str, Any]:
    return {"seat_ids": [SEATS[world.asker.user_id]]}


SEATS: dict[UUID, str] = {}
"""A seat of the event that was made for an asker."""
RULE_OF = {(route.method, route.template): route.rule for route in (*all_routes(), contract_route())}
REASON = {"reason": "asked for by the organization", "tenant_approval_reference": "letter of 1 March"}
CASES: dict[tuple[str, str], Case] = {
    ("GET", "/healthz"): Case(status=200),
    ("GET", "/readyz"): Case(status=200),
    ("GET", "/metrics"): Case(status=200),
    ("GET", "/api/openapi.json"): Case(status=200),
    ("GET", "/api/storefronts/{slug}"): Case(status=200, parameter="slug", targets=slugs),
    ("GET", "/api/storefronts/{slug}/events"): Case(status=200, parameter="slug", targets=slugs),
    ("GET", "/api/storefronts/{slug}/events/{event_slug}"): Case(
        status=200, parameter="slug}/events/{event_slug", targets=public_addresses
    ),
    ("GET", "/api/events/{event_id}"): event_case(public_events),
    ("GET", "/api/events/{event_id}/layout"): event_case(public_events),
    ("GET", "/api/events/{event_id}/seats"): event_case(public_events),
    ("GET", "/api/events/{event_id}/seatmap"): event_case(public_halls),
    ("GET", "/api/events/{event_id}/stream"): event_case(public_halls),
    ("GET", "/api/events/{event_id}/occupancy"): event_case(public_halls),
    ("GET", "/api/admin/events/{event_id}/occupancy/minutes"): event_case(halls),
    ("GET", "/api/admin/events/{event_id}/registry"): event_case(halls),
    ("POST", "/api/admin/events/{event_id}/registry/reconcile"): event_case(halls),
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
    ("GET", "/api/admin/venues"): Case(status=200),
    ("POST", "/api/admin/venues"): Case(status=201, body=new_venue),
    ("GET", "/api/admin/venues/{venue_id}"): Case(status=200, parameter="venue_id", targets=venues),
    ("PATCH", "/api/admin/venues/{venue_id}"): Case(
        status=200, parameter="venue_id", targets=venues, body=lambda _: {"name": "Other"}
    ),
    ("DELETE", "/api/admin/venues/{venue_id}"): Case(status=204, parameter="venue_id", targets=venues),
    ("GET", "/api/admin/venues/{venue_id}/gates"): Case(status=200, parameter="venue_id", targets=venues),
    ("POST", "/api/admin/venues/{venue_id}/gates"): Case(
        status=201, parameter="venue_id", targets=venues, body=new_gate
    ),
    ("GET", "/api/admin/gates/{gate_id}"): Case(status=200, parameter="gate_id", targets=gates),
    ("PATCH", "/api/admin/gates/{gate_id}"): Case(
        status=200, parameter="gate_id", targets=gates, body=lambda _: {"name": "Other"}
    ),
    ("DELETE", "/api/admin/gates/{gate_id}"): Case(status=204, parameter="gate_id", targets=gates),
    ("POST", "/api/admin/gates/{gate_id}/open"): Case(
        status=200, parameter="gate_id", targets=gates, body=lambda _: {}
    ),
    ("POST", "/api/admin/gates/{gate_id}/close"): Case(
        status=200, parameter="gate_id", targets=gates, body=lambda _: {}
    ),
    ("GET", "/api/admin/event-policy"): Case(status=200),
    ("PUT", "/api/admin/event-policy"): Case(status=200, body=lambda _: {"staff_may_change_venues": True}),
    ("GET", "/api/admin/events"): Case(status=200),
    ("POST", "/api/admin/events"): Case(status=201, body=new_event),
    ("GET", "/api/admin/events/{event_id}"): event_case(events("archived")),
    ("PATCH", "/api/admin/events/{event_id}"): event_case(events(), lambda _: {"name": "Other"}),
    ("DELETE", "/api/admin/events/{event_id}"): event_case(events(), status=204),
    ("POST", "/api/admin/events/{event_id}/publish"): event_case(events(), lambda _: {}),
    ("POST", "/api/admin/events/{event_id}/unpublish"): event_case(events("published"), lambda _: {}),
    ("POST", "/api/admin/events/{event_id}/go-live"): event_case(events("published"), lambda _: {}),
    ("POST", "/api/admin/events/{event_id}/end"): event_case(events("live"), lambda _: {}),
    ("POST", "/api/admin/events/{event_id}/cancel"): event_case(events("published"), lambda _: {"reason": "ill"}),
    ("POST", "/api/admin/events/{event_id}/postpone"): event_case(events("published"), lambda _: {"reason": "ill"}),
    ("POST", "/api/admin/events/{event_id}/reschedule"): event_case(events("published"), another_date),
    ("POST", "/api/admin/events/{event_id}/archive"): event_case(events(), lambda _: {}),
    ("POST", "/api/admin/events/{event_id}/change-venue"): event_case(events("published"), another_venue),
    ("GET", "/api/admin/events/{event_id}/seating"): event_case(events("archived")),
    ("PUT", "/api/admin/events/{event_id}/seating"): event_case(events(), lambda _: {"overrides": {}}),
    ("GET", "/api/admin/feed"): Case(status=200),
    ("GET", "/api/schemas/layout.json"): Case(status=200),
    ("GET", "/api/admin/layouts"): Case(status=200),
    ("POST", "/api/admin/venues/{venue_id}/layouts"): Case(
        status=201, parameter="venue_id", targets=venues, body=lambda _: dict(SMALL)
    ),
    ("POST", "/api/admin/venues/{venue_id}/layouts/generate"): Case(
        status=201, parameter="venue_id", targets=venues, body=lambda _: {"preset": "theatre-350"}
    ),
    ("POST", "/api/admin/layouts/preview"): Case(status=200, body=lambda _: {"preset": "theatre-350"}),
    ("GET", "/api/admin/layouts/{layout_id}/versions"): Case(status=200, parameter="layout_id", targets=layouts),
    ("POST", "/api/admin/layouts/{layout_id}/versions"): Case(
        status=201, parameter="layout_id", targets=layouts, body=lambda _: dict(SMALL)
    ),
    ("GET", "/api/admin/layouts/{layout_id}/events"): Case(status=200, parameter="layout_id", targets=layouts),
    ("GET", "/api/admin/layouts/{layout_id}/diff"): Case(
        status=200, parameter="layout_id", targets=layouts, query="?from=1&to=1"
    ),
    ("GET", "/api/admin/layouts/{layout_id}/versions/{version}"): version_case(),
    ("GET", "/api/admin/layouts/{layout_id}/versions/{version}/export"): version_case(),
    ("POST", "/api/admin/layouts/{layout_id}/versions/{version}/activate"): version_case(body=lambda _: {}),
    ("POST", "/api/admin/layouts/{layout_id}/versions/{version}/archive"): version_case(body=lambda _: {}),
    ("GET", "/api/layouts/{layout_id}/v{version}/geometry"): Case(
        status=200, parameter="layout_id}/v{version", targets=shown_versions
    ),
    ("POST", "/api/events/{event_id}/seats/{seat_id}/reserve"): Case(
        status=201, parameter="event_id}/seats/{seat_id", targets=places("seats"), is_for_people=True
    ),
    ("POST", "/api/events/{event_id}/holds"): Case(
        status=201, parameter="event_id", targets=halls, body=some_seats, is_for_people=True
    ),
    ("POST", "/api/events/{event_id}/zones/{zone_id}/reserve"): Case(
        status=201,
        parameter="event_id}/zones/{zone_id",
        targets=places("zones"),
        body=lambda _: {"quantity": 2},
        is_for_people=True,
    ),
    # The basket at an event of which there is nothing, or at one elsewhere, is empty: tests/http/test_holds.py.
    ("GET", "/api/events/{event_id}/holds/mine"): Case(
        status=200, parameter="event_id", targets=one_event, is_for_people=True
    ),
    ("GET", "/api/events/{event_id}/seats/{seat_id}"): Case(
        status=200, parameter="event_id}/seats/{seat_id", targets=places("seats")
    ),
    ("POST", "/api/holds/{hold_id}/extend"): Case(status=200, parameter="hold_id", targets=holds, is_for_people=True),
    ("DELETE", "/api/holds/{hold_id}"): Case(status=204, parameter="hold_id", targets=holds, is_for_people=True),
    ("GET", "/api/admin/events/{event_id}/holds"): event_case(events("published")),
    ("GET", "/api/admin/events/{event_id}/holds/ends"): event_case(events("published")),
    ("POST", "/api/admin/events/{event_id}/seats/block"): event_case(halls, some_seats),
    ("POST", "/api/admin/events/{event_id}/seats/unblock"): event_case(halls, some_seats),
    ("GET", "/api/admin/pricing-rules"): Case(status=200),
    ("POST", "/api/admin/pricing-rules"): Case(
        status=201, body=lambda _: {"name": "New", "currency": "ZAR", "amount_minor": 1}
    ),
    ("GET", "/api/admin/pricing-rules/{rule_id}"): Case(status=200, parameter="rule_id", targets=pricing_rules),
    ("PATCH", "/api/admin/pricing-rules/{rule_id}"): Case(
        status=200, parameter="rule_id", targets=pricing_rules, body=lambda _: {"amount_minor": 2}
    ),
    ("DELETE", "/api/admin/pricing-rules/{rule_id}"): Case(status=204, parameter="rule_id", targets=pricing_rules),
    ("GET", "/api/admin/seating-policy"): Case(status=200),
    ("PATCH", "/api/admin/seating-policy"): Case(status=200, body=lambda _: {"values": {"max_seats_per_booking": 4}}),
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
    ("GET", "/api/platform/orgs/{org_id}/members"): Case(status=200, parameter="org_id", targets=organizations),
    ("PUT", "/api/platform/orgs/{org_id}/members/{user_id}"): Case(
        status=200, parameter="org_id", targets=organizations, body=lambda _: {**REASON, "role": "admin"}
    ),
    ("GET", "/api/platform/orgs/{org_id}/seating-policy"): Case(status=200, parameter="org_id", targets=organizations),
    ("PATCH", "/api/platform/orgs/{org_id}/seating-policy"): Case(
        status=200,
        parameter="org_id",
        targets=organizations,
        body=lambda _: {"values": {"allow_vip_zones": True}, "reason": "asked for"},
    ),
    ("GET", "/api/platform/orgs/{org_id}/events"): Case(status=200, parameter="org_id", targets=organizations),
    ("POST", "/api/platform/orgs/{org_id}/events/{event_id}/cancel"): Case(
        status=200, parameter="org_id}/events/{event_id", targets=platform_events, body=lambda _: REASON
    ),
    ("POST", "/api/platform/orgs/{org_id}/events/{event_id}/postpone"): Case(
        status=200, parameter="org_id}/events/{event_id", targets=platform_events, body=lambda _: REASON
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
    """A world seen by somebody of this role: their proof of it, and what they are. Staff may change venues here."""
    other = await make_person(db)
    place = await make_organization(db)
    venue = await make_venue(db, place)
    await allow_everything(db, place.id)
    async with db.transaction(place.id) as conn:
        await event_store.set_policy(conn, place.id, staff_may_change_venues=True)
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
    colleague = await make_person(db, place)
    return World(db=db, asker=asker, other=other, colleague=colleague, venue=venue), headers, roles


async def send(site: Site, method: str, path: str, headers: dict[str, str], body: object) -> httpx2.Response:
    """Ask, and read the answer; of a stream without an end only that it has begun."""
    async with site.client.stream(method, path, headers=headers, json=body) as answer:
        if not answer.headers.get("content-type", "").startswith("text/event-stream"):
            await answer.aread()
    return answer


def plain(answer: httpx2.Response) -> tuple[int, Any, dict[str, str]]:
    """An answer without what differs between any two: request id and date."""
    body = answer.json() if answer.content else None
    if isinstance(body, dict):
        body.pop("request_id", None)
    headers = {name: value for name, value in answer.headers.items() if name not in ("date", "x-request-id")}
    return answer.status_code, body, headers


def expected(case: Case, action: str, roles: frozenset[Role], role: str) -> int | None:
    """Return the status of the refusal that is written down, or None when the route itself must answer."""
    if not ROLES_OF_ACTION[action] & roles:
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
    action = ACTION_OF_ROUTE[method, template]
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
        answers[relation] = await send(site, method, path + case.query, {**headers, **case.headers}, body)
    site.client.cookies.clear()
    if refused is not None:
        assert answers
        assert {answer.status_code for answer in answers.values()} == {refused}
        return
    # A guest has no password to get wrong: they are forgotten at once.
    status = 204 if role == "guest" and template == "/api/me/delete" else case.status
    assert answers["own"].status_code == status, answers["own"]
    nothings = [plain(answer) for relation, answer in answers.items() if relation != "own"]
    assert all(status == 404 for status, _, _ in nothings), nothings
    assert all(nothing == nothings[0] for nothing in nothings), "foreign, absent and deleted can be told apart"
