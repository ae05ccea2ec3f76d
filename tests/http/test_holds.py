"""Holding places over HTTP: what buyers are told, what others must not learn, what staff do by hand."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any
from uuid import UUID

import httpx2
import pytest

from tests.make.accounts import Person, make_person
from tests.make.events import soon
from tests.make.holds import Sale, everything_of, let_pass, moment, on_sale
from tests.make.layouts import small_layout
from tests.make.seating import facts_of, move, seat_rows, zone_rows
from tests.make.web import Site
from tests.security.test_matrix import add_key
from voelgoed.accounts.model import Organization, Role
from voelgoed.db import Connection, Database
from voelgoed.errors import LostRace
from voelgoed.events.model import CLOCK, OPERATOR, Verb
from voelgoed.holds import auditing, lane, registry, store
from voelgoed.ids import new_id
from voelgoed.seating import policies
from voelgoed.seating.overlay import Overlay
from voelgoed.wiring import Services

FIELDS = {
    "hold_id",
    "event_id",
    "seat_id",
    "zone_id",
    "block_name",
    "row",
    "seat_number",
    "quantity",
    "status",
    "held_until",
    "held_until_unix",
    "expires_in_seconds",
    "can_extend",
    "cart_token",
    "message",
}
ENVELOPE = {"error", "message", "details", "effect", "request_id"}
TTL_S = 600
NO_SEAT = "01933b5c-0000-7000-8000-000000000000"


@pytest.fixture
async def anna(db: Database, place: Organization) -> Person:
    return await make_person(db, place)


@pytest.fixture
async def ben(db: Database, place: Organization) -> Person:
    return await make_person(db, place)


@pytest.fixture
async def lead(db: Database, place: Organization) -> Person:
    return await make_person(db, place, Role.OWNER)


async def ask(
    site: Site, person: Person | None, method: str, path: str, asked: object = None, **headers: str
) -> httpx2.Response:
    """Ask as a person, or as nobody; a text is sent as it is."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    content = asked if isinstance(asked, str | None) else json.dumps(asked)
    proof = person.headers if person else {}
    kind = {} if content is None else {"content-type": "application/json"}
    return await site.client.request(method, path, headers={**proof, **kind, **named}, content=content)


def seat_at(sale: Sale, code: str) -> str:
    return f"/api/events/{sale.event.id}/seats/{sale.seat(code)}"


async def reserve(site: Site, person: Person | None, sale: Sale, code: str, body: object = None) -> httpx2.Response:
    return await ask(site, person, "POST", f"{seat_at(sale, code)}/reserve", body)


async def reserve_places(
    site: Site, person: Person, sale: Sale, quantity: int, zone: str = "P", **headers: str
) -> httpx2.Response:
    path = f"/api/events/{sale.event.id}/zones/{sale.zone(zone)}/reserve"
    return await ask(site, person, "POST", path, {"quantity": quantity}, **headers)


async def reserve_seats(
    site: Site, person: Person, sale: Sale, *codes: str, more: dict[str, object] | None = None, **headers: str
) -> httpx2.Response:
    body = {"seat_ids": [str(sale.seat(code)) for code in codes], **(more or {})}
    return await ask(site, person, "POST", f"/api/events/{sale.event.id}/holds", body, **headers)


def data(answer: httpx2.Response, status: int) -> Any:
    assert answer.status_code == status, answer.text
    return answer.json()["data"]


def refusal(answer: httpx2.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]


async def hold_of(site: Site, person: Person, sale: Sale, code: str) -> str:
    """Hold a seat; the id of the hold."""
    return str(data(await reserve(site, person, sale, code), 201)["hold_id"])


async def set_policy(db: Database, place: Organization, **values: object) -> None:
    async with db.transaction(place.id) as conn:
        await policies.save(conn, place.id, values, by=OPERATOR, role=Role.SUPER_ADMIN, reason="in a test")


@pytest.mark.req("RSV-01", "RSV-33", "RSV-34", "TEST-01")
async def test_a_seat_is_held(site: Site, sale: Sale, anna: Person) -> None:
    """Everything a buyer is told: what, where, until when by two clocks, and nothing to be cached."""
    answer = await reserve(site, anna, sale, "S-A-2")
    told = data(answer, 201)
    assert answer.headers["cache-control"] == "no-cache, no-store"
    assert answer.headers["content-type"] == "application/json"
    assert told.keys() == FIELDS
    assert {name: told[name] for name in ("event_id", "seat_id", "zone_id")} == {
        "event_id": str(sale.event.id),
        "seat_id": str(sale.seat("S-A-2")),
        "zone_id": str(sale.zone("S")),
    }
    assert (told["block_name"], told["row"], told["seat_number"]) == ("Stalls", "A", "2")
    assert (told["status"], told["quantity"], told["can_extend"]) == ("held", 1, True)
    (row,) = await sale.rows()
    assert moment(told["held_until"]) == row["expires_at"]
    assert told["held_until_unix"] == int(row["expires_at"].timestamp())
    assert TTL_S - 30 <= told["expires_in_seconds"] <= TTL_S
    assert told["message"] == "Held for 10 minutes."
    assert (told["hold_id"], told["cart_token"]) == (str(row["id"]), row["cart_token"])


@pytest.mark.req("TEST-02", "TEST-03", "HOLD-16")
async def test_what_is_told_was_committed(site: Site, sale: Sale, anna: Person, app_conn: Connection) -> None:
    """When the answer is there, everybody else sees the hold, with the session's person and organization."""
    told = data(await reserve(site, anna, sale, "S-A-1"), 201)
    await app_conn.execute("select set_config('app.organization_id', $1, false)", str(sale.place.id))
    hold = await app_conn.fetchrow("select * from seat_holds where id = $1", UUID(told["hold_id"]))
    seat = await app_conn.fetchrow("select * from event_seats where hold_id = $1", UUID(told["hold_id"]))
    assert hold is not None
    assert seat is not None
    assert (hold["user_id"], hold["organization_id"], hold["status"]) == (anna.user_id, sale.place.id, "active")
    assert (seat["status"], seat["seat_id"], seat["held_by"]) == ("held", sale.seat("S-A-1"), anna.user_id)
    assert seat["held_until"] == hold["expires_at"]


@pytest.mark.req("HOLD-19", "RSV-40", "TEST-15", "RSV-14")
async def test_the_own_hold_is_given_again(site: Site, sale: Sale, anna: Person, owner_conn: Connection) -> None:
    """The second click is no error and no renewal: 200, the same hold, the same end; after its end a new one."""
    first = data(await reserve(site, anna, sale, "S-A-1"), 201)
    again = await reserve(site, anna, sale, "S-A-1", {"cart_token": "another"})
    told = data(again, 200)
    assert again.headers["cache-control"] == "no-cache, no-store"
    assert {**told, "expires_in_seconds": 0, "message": ""} == {**first, "expires_in_seconds": 0, "message": ""}
    assert told["message"] == "You hold this already."
    assert len(await sale.rows()) == 1
    assert len(await facts_of(sale.db, sale.event, "seat_reserved")) == 1
    await let_pass(owner_conn, UUID(first["hold_id"]))
    assert data(await reserve(site, anna, sale, "S-A-1"), 201)["hold_id"] != first["hold_id"]


@pytest.mark.req("TEST-07", "TEST-08", "AUD-01", "RSV-32")
async def test_a_hold_is_on_record(site: Site, sale: Sale, anna: Person, lead: Person) -> None:
    """The audit has who, which seat, until when, by which way, from which address and browser, and when."""
    answer = await ask(
        site, anna, "POST", f"{seat_at(sale, 'S-A-1')}/reserve", {"source": "scanner"}, user_agent="Kiosk 1"
    )
    told = data(answer, 201)
    path = f"/api/admin/audit?kind=seat_reserved&event_id={sale.event.id}"
    (fact,) = data(await ask(site, lead, "GET", path), 200)
    assert fact["data"] == {"hold_id": told["hold_id"], "held_until": fact["data"]["held_until"], "source": "scanner"}
    assert moment(fact["data"]["held_until"].replace("+00:00", "Z")) == moment(told["held_until"])
    assert {name: fact[name] for name in ("kind", "event_id", "seat_id", "actor_id", "ip", "user_agent")} == {
        "kind": "seat_reserved",
        "event_id": str(sale.event.id),
        "seat_id": told["seat_id"],
        "actor_id": str(anna.user_id),
        "ip": "127.0.0.1",
        "user_agent": "Kiosk 1",
    }
    assert fact["request_id"] == answer.headers["x-request-id"]
    (row,) = await sale.rows()
    assert moment(fact["recorded_at"]) >= row["created_at"]


Prepared = Callable[[Site, Sale, Person, Connection], Awaitable[object]]


async def nothing(*_: object) -> None:
    pass


async def held_by_ben(site: Site, sale: Sale, ben: Person, _: Connection) -> None:
    await hold_of(site, ben, sale, "S-A-1")


async def sold_to_ben(site: Site, sale: Sale, ben: Person, _: Connection) -> None:
    call = sale.caller(user_id=ben.user_id)
    assert (await sale.buy(call, *await sale.hold(call, "S-A-1")))[0] == "sold"


async def blocked(_: Site, sale: Sale, *__: object) -> None:
    assert await sale.block("S-A-1") == {"S-A-1": "done"}


async def locked(_: Site, sale: Sale, __: Person, owner: Connection) -> None:
    """Somebody is at the seat, and stays there until the test is over."""
    await owner.execute("begin; set local role voelgoed_registry; select set_config('app.scope', 'system', true)")
    await owner.fetch("select from event_seats where seat_id = $1 for update", sale.seat("S-A-1"))


def moved(*verbs: Verb) -> Prepared:
    async def carried_out(_: Site, sale: Sale, *__: object) -> None:
        for verb in verbs:
            await move(sale.services.studio, sale.place, sale.event, verb)

    return carried_out


@pytest.mark.parametrize(
    ("prepare", "code", "expected"),
    [
        (held_by_ben, "S-A-1", (409, "seat_held_by_another_user", {"expires_in"})),
        (sold_to_ben, "S-A-1", (409, "seat_not_available", {"current_status": "sold"})),
        (blocked, "S-A-1", (409, "seat_not_available", {"current_status": "blocked"})),
        (locked, "S-A-1", (409, "seat_no_longer_available", {})),
        (nothing, "V-A-1", (403, "zone_access_denied", {})),
        (moved(Verb.CANCEL), "S-A-1", (400, "event_unavailable", {})),
        (moved(Verb.CANCEL, Verb.ARCHIVE), "S-A-1", (400, "event_unavailable", {})),
        (moved(Verb.POSTPONE), "S-A-1", (400, "event_not_available", {})),
        (moved(Verb.GO_LIVE, Verb.END), "S-A-1", (400, "event_not_available", {})),
        (moved(Verb.UNPUBLISH), "S-A-1", (404, "event_not_found", {})),
    ],
    ids=lambda value: value[1] if isinstance(value, tuple) else "",
)
@pytest.mark.req("RSV-12", "RSV-35", "RSV-36", "RSV-19")
async def test_why_a_seat_cannot_be_had(
    site: Site,
    sale: Sale,
    anna: Person,
    owner_conn: Connection,
    prepare: Prepared,
    code: str,
    expected: tuple[int, str, object],
) -> None:
    """One code for each reason, in one envelope; nothing is written but that it was refused."""
    status, error, details = expected
    await prepare(site, sale, await make_person(sale.db, sale.place), owner_conn)
    before = await everything_of(sale.db, sale.place.id)
    answer = await reserve(site, anna, sale, code)
    assert refusal(answer) == (status, error)
    told = answer.json()
    assert told.keys() == ENVELOPE
    assert told["effect"] == "none"
    assert told["message"]
    if isinstance(details, set):
        assert told["details"].keys() == details
        assert TTL_S - 30 <= told["details"]["expires_in"] <= TTL_S
    else:
        assert told["details"] == details
    assert await everything_of(sale.db, sale.place.id) == before
    await sale.services.failures.flush()
    (fact,) = await facts_of(sale.db, sale.event, "seat_reserve_failed")
    (attempt,) = fact["data"]["attempts"]
    assert (attempt["user_id"], attempt["reason"]) == (str(anna.user_id), error)
    assert (attempt["seat_ids"], attempt["request_id"]) == ([str(sale.seat(code))], told["request_id"])


@pytest.mark.req("RSV-09")
async def test_the_sale_is_not_on(site: Site, services: Services, place: Organization, anna: Person) -> None:
    """Before it begins and after it is over: one code."""
    later = await on_sale(services, place, sale_start_at=soon(hours=1), sale_end_at=soon(hours=2))
    over = await on_sale(services, place, sale_start_at=soon(hours=-2), sale_end_at=soon(hours=-1))
    for sale in (later, over):
        before = await everything_of(sale.db, place.id)
        assert refusal(await reserve(site, anna, sale, "S-A-1")) == (400, "event_sales_closed")
        assert await everything_of(sale.db, place.id) == before


@pytest.mark.req("RSV-05", "RSV-06", "TEN-07", "TEST-11")
async def test_another_organization_is_nowhere(site: Site, db: Database, sale: Sale, anna: Person) -> None:
    """A seat, a hold, a zone of somebody else's event are to a stranger what never was, and nothing is written."""
    stranger = await make_person(db, role=Role.OWNER)
    hold_id = await hold_of(site, anna, sale, "S-A-2")
    before = await everything_of(db, sale.place.id)
    seats = [str(sale.seat("S-A-1"))]
    at, nowhere = f"/api/events/{sale.event.id}", f"/api/events/{new_id()}"
    for method, here, absent, body in (
        ("POST", f"{seat_at(sale, 'S-A-1')}/reserve", f"{nowhere}/seats/{new_id()}/reserve", None),
        ("POST", f"{seat_at(sale, 'S-A-2')}/reserve", f"{nowhere}/seats/{new_id()}/reserve", None),
        ("POST", f"{at}/holds", f"{nowhere}/holds", {"seat_ids": seats}),
        ("POST", f"{at}/zones/{sale.zone()}/reserve", f"{nowhere}/zones/{new_id()}/reserve", {"quantity": 1}),
        ("GET", seat_at(sale, "S-A-2"), f"{nowhere}/seats/{new_id()}", None),
        ("GET", f"{at}/holds/mine", f"{nowhere}/holds/mine", None),
        ("POST", f"/api/holds/{hold_id}/extend", f"/api/holds/{new_id()}/extend", None),
        ("DELETE", f"/api/holds/{hold_id}", f"/api/holds/{new_id()}", None),
        ("GET", f"/api/admin/events/{sale.event.id}/holds", f"/api/admin/events/{new_id()}/holds", None),
        ("POST", f"/api/admin{at[4:]}/seats/block", f"/api/admin{nowhere[4:]}/seats/block", {"seat_ids": seats}),
        ("POST", f"/api/admin{at[4:]}/seats/unblock", f"/api/admin{nowhere[4:]}/seats/unblock", {"seat_ids": seats}),
    ):
        answer = await ask(site, stranger, method, here, body)
        same = await ask(site, stranger, method, absent, body)
        assert answer.status_code == same.status_code == (200 if here.endswith("mine") else 404), answer.text
        assert answer.json() | {"request_id": ""} == same.json() | {"request_id": ""}
    await sale.services.failures.flush()
    assert await everything_of(db, sale.place.id) == before
    assert await facts_of(db, sale.event, "seat_reserve_failed") == []


@pytest.mark.req("RSV-11")
async def test_a_seat_of_another_event_is_not_there(site: Site, services: Services, sale: Sale, anna: Person) -> None:
    """Nor is one that never was; a zone where one chooses a seat has no places, and the other way round."""
    other = await on_sale(services, sale.place)
    for seat_id in (other.seat("S-A-1"), new_id(), sale.zone()):
        path = f"/api/events/{sale.event.id}/seats/{seat_id}"
        assert refusal(await ask(site, anna, "POST", f"{path}/reserve")) == (404, "seat_not_found")
        assert refusal(await ask(site, anna, "GET", path)) == (404, "seat_not_found")
    assert refusal(await reserve_places(site, anna, sale, 1, "S")) == (404, "zone_not_found")
    assert await sale.rows() == []


@pytest.mark.parametrize(
    "path",
    [
        "/api/events/not-a-uuid/seats/{seat}/reserve",
        "/api/events/{event}/seats/A-1/reserve",
        "/api/events/{event}/seats/{seat}0/reserve",
        "/api/events/{event}/zones/P/reserve",
        "/api/events/x/holds",
        "/api/holds/x/extend",
    ],
)
@pytest.mark.req("RSV-02", "SEC-04", "SEC-01")
async def test_ids_are_uuids_for_those_who_are_known(site: Site, sale: Sale, anna: Person, path: str) -> None:
    """Whoever is signed in learns that it is no id; a stranger learns nothing before they have said who they are."""
    path = path.format(event=sale.event.id, seat=sale.seat("S-A-1"))
    body = {"quantity": 1} if "zones" in path else {"seat_ids": [NO_SEAT]} if path.endswith("holds") else {}
    assert refusal(await ask(site, anna, "POST", path, body)) == (400, "invalid_request")
    for wrong in (body, "no json"):
        assert refusal(await ask(site, None, "POST", path, wrong)) == (401, "unauthorized")


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("seats/{seat}/reserve", {"source": "offline_sync"}),
        ("seats/{seat}/reserve", {"source": "late_payment"}),
        ("seats/{seat}/reserve", {"source": None}),
        ("seats/{seat}/reserve", {"user_id": NO_SEAT}),
        ("seats/{seat}/reserve", {"organization_id": NO_SEAT}),
        ("seats/{seat}/reserve", {"price_minor": 1}),
        ("seats/{seat}/reserve", {"cart_token": ""}),
        ("seats/{seat}/reserve", {"cart_token": "x" * 256}),
        ("seats/{seat}/reserve", []),
        ("seats/{seat}/reserve", "{"),
        ("holds", None),
        ("holds", {}),
        ("holds", {"seat_ids": []}),
        ("holds", {"seat_ids": ["A-1"]}),
        ("holds", {"seat_ids": [NO_SEAT, NO_SEAT]}),
        ("holds", {"seat_ids": [NO_SEAT], "price_minor": 1}),
        ("zones/{zone}/reserve", None),
        ("zones/{zone}/reserve", {}),
        ("zones/{zone}/reserve", {"quantity": 0}),
        ("zones/{zone}/reserve", {"quantity": 41}),
        ("zones/{zone}/reserve", {"quantity": "2"}),
        ("zones/{zone}/reserve", {"quantity": 2, "seat_id": NO_SEAT}),
    ],
    ids=lambda value: json.dumps(value)[:40],
)
@pytest.mark.req("RSV-02", "SEC-04", "SEC-05")
async def test_what_cannot_be_asked_is_refused(site: Site, sale: Sale, anna: Person, path: str, body: object) -> None:
    """Unknown values and fields: a client says neither who it is, nor what it costs, nor an origin that is ours."""
    path = path.format(seat=sale.seat("S-A-1"), zone=sale.zone())
    answer = await ask(site, anna, "POST", f"/api/events/{sale.event.id}/{path}", body)
    assert refusal(answer) == (400, "invalid_request")
    assert await sale.rows() == []


async def test_more_seats_than_one_may_name_are_refused(site: Site, sale: Sale, anna: Person) -> None:
    """Forty in one ask, however many are wanted."""
    for count, expected in ((40, (409, "seats_refused")), (41, (400, "invalid_request"))):
        body = {"seat_ids": [str(new_id()) for _ in range(count)]}
        assert refusal(await ask(site, anna, "POST", f"/api/events/{sale.event.id}/holds", body)) == expected


@pytest.mark.req("RSV-04", "RBAC-12")
async def test_who_is_not_known_holds_nothing(
    site: Site, db: Database, services: Services, sale: Sale, anna: Person, place: Organization
) -> None:
    """No session, one that has ended, a person who is gone, an organization that is closed: nothing is held."""
    guest, gone = await make_person(db, place, is_guest=True), await make_person(db, place)
    assert refusal(await reserve(site, None, sale, "S-A-1")) == (401, "unauthorized")
    assert refusal(await reserve(site, replace(gone, token="vgs_" + "x" * 43), sale, "S-A-1")) == (401, "unauthorized")
    assert (await ask(site, gone, "POST", "/api/auth/logout")).status_code == 204
    assert refusal(await reserve(site, gone, sale, "S-A-1")) == (401, "unauthorized")
    assert (await ask(site, guest, "POST", "/api/me/delete", {})).status_code == 204
    assert refusal(await reserve(site, guest, sale, "S-A-1")) == (401, "unauthorized")
    platform = await make_person(db, platform=Role.SUPER_ADMIN)
    path = f"/api/platform/orgs/{place.id}/suspend"
    assert (await ask(site, platform, "POST", path, {"reason": "unpaid"})).status_code == 200
    assert refusal(await reserve(site, anna, sale, "S-A-1")) == (401, "unauthorized")
    assert await sale.rows() == []


@pytest.mark.req("RBAC-12")
async def test_everybody_who_is_somebody_may_hold(site: Site, db: Database, sale: Sale, place: Organization) -> None:
    """Guests, customers and the crew; a program has nobody who could hold."""
    people = [await make_person(db, place, is_guest=True)]
    people += [await make_person(db, place, role) for role in (Role.CUSTOMER, Role.SCANNER, Role.STAFF)]
    for person, code in zip(people, ("S-A-1", "S-A-2", "S-A-3", "S-A-4"), strict=True):
        await hold_of(site, person, sale, code)
    _, token = await add_key(db, await make_person(db, place, Role.OWNER), Role.ADMIN)
    program = replace(people[0], token=token)
    for answer in (
        await reserve(site, program, sale, "S-B-3"),
        await reserve_seats(site, program, sale, "S-B-3"),
        await reserve_places(site, program, sale, 1),
        await ask(site, program, "GET", f"/api/events/{sale.event.id}/holds/mine"),
    ):
        assert refusal(answer) == (403, "permission_denied")
    assert len(await sale.rows()) == 4


async def test_a_browser_proves_that_it_was_its_own_page(site: Site, sale: Sale, anna: Person) -> None:
    """With a cookie alone nothing is held, extended or let go; with the session's token it is."""
    at = f"{seat_at(sale, 'S-A-1')}/reserve"
    for headers in (anna.cookie, {**anna.cookie, "x-csrf-token": "x"}):
        assert refusal(await ask(site, None, "POST", at, None, **headers)) == (403, "csrf_failed")
    assert await sale.rows() == []
    told = data(await ask(site, None, "POST", at, None, **anna.cookie, **anna.csrf), 201)
    for method, path in (("POST", f"/api/holds/{told['hold_id']}/extend"), ("DELETE", f"/api/holds/{told['hold_id']}")):
        assert refusal(await ask(site, None, method, path, None, **anna.cookie)) == (403, "csrf_failed")
        assert (await ask(site, None, method, path, None, **anna.cookie, **anna.csrf)).status_code in (200, 204)


@pytest.mark.req("HOLD-08", "HOLD-07", "RSV-47")
async def test_where_from_and_for_which_basket(site: Site, sale: Sale, anna: Person, ben: Person) -> None:
    """The web unless somebody says the gate; a basket that they name, or one of the person's own at the event."""
    first = data(await reserve(site, anna, sale, "S-A-1"), 201)
    second = data(await reserve(site, anna, sale, "S-A-2", {"source": "scanner"}), 201)
    named = data(await reserve(site, anna, sale, "S-A-3", {"cart_token": "x" * 255}), 201)
    other = data(await reserve(site, ben, sale, "S-A-4", {}), 201)
    assert first["cart_token"] == second["cart_token"] != other["cart_token"]
    assert named["cart_token"] == "x" * 255
    assert [(row["source"], row["cart_token"]) for row in await sale.rows()] == [
        ("web", first["cart_token"]),
        ("scanner", first["cart_token"]),
        ("web", "x" * 255),
        ("web", other["cart_token"]),
    ]


@pytest.mark.req("SEC-06", "SEC-08", "RSV-44", "TEST-19")
async def test_nobody_learns_who_holds_a_seat(
    site: Site, db: Database, sale: Sale, anna: Person, ben: Person, place: Organization
) -> None:
    """Others are told that it is held and for how long; no answer to them has anything of the holder or the hold."""
    told = data(await reserve(site, ben, sale, "S-A-1", {"cart_token": "bens-basket"}), 201)
    guest = await make_person(db, place, is_guest=True)
    secrets = {str(ben.user_id), told["hold_id"], "bens-basket", "Anna", str(ben.email)}
    for person in (anna, guest, await make_person(db, place, Role.SCANNER)):
        taken = await reserve(site, person, sale, "S-A-1")
        assert refusal(taken) == (409, "seat_held_by_another_user")
        assert "Choose another one" in taken.json()["message"]
        seen = await ask(site, person, "GET", seat_at(sale, "S-A-1"))
        assert data(seen, 200)["own_hold_id"] is None
        group = await reserve_seats(site, person, sale, "S-A-1", "S-A-2")
        listed = await ask(site, person, "GET", f"/api/events/{sale.event.id}/seats?limit=200")
        mine = await ask(site, person, "GET", f"/api/events/{sale.event.id}/holds/mine")
        assert data(mine, 200) == []
        for answer in (taken, seen, group, listed):
            assert not [secret for secret in secrets if secret in answer.text], answer.text


@pytest.mark.req("SEC-09", "HOLD-30")
async def test_the_whole_story_is_for_the_audit(
    site: Site, db: Database, sale: Sale, anna: Person, lead: Person, place: Organization
) -> None:
    """Created, extended, sold: those who lead see it by seat, with who it was; nobody else may ask."""
    call = sale.caller(user_id=anna.user_id)
    (held,) = await sale.hold(call, "S-A-1")
    assert (await ask(site, anna, "POST", f"/api/holds/{held.hold.id}/extend")).status_code == 200
    (listed,) = data(await ask(site, lead, "GET", f"/api/admin/events/{sale.event.id}/holds"), 200)
    assert (listed["extended"], listed["status"]) == (True, "active")
    await sale.buy(call, held)
    path = f"/api/admin/audit?seat_id={sale.seat('S-A-1')}&event_id={sale.event.id}"
    facts = data(await ask(site, lead, "GET", path), 200)
    assert [fact["kind"] for fact in facts] == ["seat_sold", "seat_hold_extended", "seat_reserved"]
    assert {fact["data"]["hold_id"] for fact in facts} == {str(held.hold.id)}
    assert {fact["actor_id"] for fact in facts} == {str(anna.user_id)}
    assert [fact["version"] for fact in facts] == [4, 3, 2]
    for role in (Role.CUSTOMER, Role.SCANNER, Role.STAFF):
        answer = await ask(site, await make_person(db, place, role), "GET", path)
        assert refusal(answer) == (403, "permission_denied")


async def test_seats_are_held_together(site: Site, sale: Sale, anna: Person) -> None:
    """In the order they were asked for; who holds some of them already keeps those as they are."""
    first = data(await reserve_seats(site, anna, sale, "S-A-3", "S-A-1"), 201)
    assert [one["seat_number"] for one in first] == ["3", "1"]
    assert {one["cart_token"] for one in first} == {first[0]["cart_token"]}
    assert all(one.keys() == FIELDS for one in first)
    again = data(await reserve_seats(site, anna, sale, "S-A-1", "S-A-3"), 200)
    assert [one["hold_id"] for one in again] == [first[1]["hold_id"], first[0]["hold_id"]]
    more = data(await reserve_seats(site, anna, sale, "S-A-1", "S-A-2"), 201)
    assert more[0]["hold_id"] == first[1]["hold_id"]
    assert more[0]["held_until"] == first[1]["held_until"]
    assert len(await sale.rows()) == 3


async def test_of_a_group_all_or_none(site: Site, sale: Sale, anna: Person, ben: Person) -> None:
    """A refusal says of each seat that stands in the way why it does; the others are not held."""
    await hold_of(site, ben, sale, "S-A-2")
    await sale.block("S-A-3")
    before = await everything_of(sale.db, sale.place.id)
    nowhere = new_id()
    seats = [str(sale.seat(code)) for code in ("S-A-1", "S-A-2", "S-A-3", "V-A-1")] + [str(nowhere)]
    answer = await ask(site, anna, "POST", f"/api/events/{sale.event.id}/holds", {"seat_ids": seats})
    assert refusal(answer) == (409, "seats_refused")
    assert answer.json()["effect"] == "none"
    assert answer.json()["details"] == {
        "seats": [
            {"seat_id": seats[1], "error": "seat_held_by_another_user"},
            {"seat_id": seats[2], "error": "seat_not_available"},
            {"seat_id": seats[3], "error": "zone_access_denied"},
            {"seat_id": seats[4], "error": "seat_not_found"},
        ]
    }
    assert await everything_of(sale.db, sale.place.id) == before


@pytest.mark.parametrize("status", ["cancelled", "postponed", "ended"])
async def test_what_bars_everything_is_said_of_the_whole(
    site: Site, services: Services, place: Organization, anna: Person, status: str
) -> None:
    """A group, and places by number, are refused for the event as one seat is."""
    sale = await on_sale(services, place, status=status)
    expected = (400, "event_unavailable" if status == "cancelled" else "event_not_available")
    assert refusal(await reserve_seats(site, anna, sale, "S-A-1", "S-A-2")) == expected
    assert refusal(await reserve_places(site, anna, sale, 2)) == expected


@pytest.mark.req("RSV-46", "RSV-24", "RSV-37")
async def test_places_are_held_by_number(site: Site, services: Services, place: Organization, ben: Person) -> None:
    """A zone and a quantity; when there are fewer left, how many there are."""
    sale = await on_sale(services, place, layout=small_layout({"zones.2.capacity": 7}))
    told = data(await reserve_places(site, ben, sale, 5), 201)
    assert told.keys() == FIELDS
    assert (told["quantity"], told["seat_id"], told["zone_id"]) == (5, None, str(sale.zone()))
    assert (told["block_name"], told["row"], told["seat_number"]) == (None, None, None)
    assert (await zone_rows(sale.db, sale.event))[2]["held"] == 5
    anna = await make_person(sale.db, place)
    answer = await reserve_places(site, anna, sale, 3)
    assert refusal(answer) == (409, "block_at_capacity")
    assert answer.json()["details"] == {"available": 2}
    data(await reserve_places(site, anna, sale, 2), 201)
    row = (await zone_rows(sale.db, sale.event))[2]
    assert (row["held"], row["sold"], row["capacity"]) == (7, 0, 7)
    assert await auditing.verify(sale.db, organization_id=place.id) == []


@pytest.mark.req("SEC-02", "TEST-12")
async def test_ten_seats_in_five_minutes(site: Site, sale: Sale, anna: Person) -> None:
    """The eleventh is refused with when to come again, in the body and in the header."""
    data(await reserve_places(site, anna, sale, 10), 201)
    for answer in (
        await reserve(site, anna, sale, "S-A-1"),
        await reserve_seats(site, anna, sale, "S-A-1", "S-A-2"),
        await reserve_places(site, anna, sale, 1),
    ):
        assert refusal(answer) == (429, "rate_limited")
        wait_s = answer.json()["details"]["retry_after_s"]
        assert 270 <= wait_s <= 300
        assert answer.headers["retry-after"] == str(wait_s)
    assert len(await sale.rows()) == 1


@pytest.mark.req("SEC-03")
async def test_the_policy_limits_what_one_may_hold(
    site: Site, db: Database, services: Services, place: Organization, anna: Person, ben: Person
) -> None:
    """Seats in a booking, wheelchair spaces in it, holds of a person, holds of an address: a code for each."""
    category = {"wheelchair": [1, 4], "companion": [2]}
    layout = small_layout({"zones.0.rows.1.seats.category": category})
    sale = await on_sale(services, place, layout=layout)
    data(await reserve(site, anna, sale, "S-B-1"), 201)
    assert refusal(await reserve(site, anna, sale, "S-B-4")) == (409, "max_wheelchair_seats_exceeded")
    await set_policy(db, place, max_seats_per_booking=2)
    assert refusal(await reserve_seats(site, anna, sale, "S-A-1", "S-A-2")) == (409, "max_seats_exceeded")
    assert refusal(await reserve_places(site, anna, sale, 2)) == (409, "max_seats_exceeded")
    data(await reserve(site, anna, sale, "S-A-1"), 201)
    await set_policy(db, place, max_seats_per_booking=10, max_holds_per_user=2)
    assert refusal(await reserve(site, anna, sale, "S-A-2")) == (409, "max_holds_exceeded")
    data(await reserve_places(site, ben, sale, 2), 201)
    assert refusal(await reserve_places(site, ben, sale, 1)) == (409, "max_holds_exceeded")
    await set_policy(db, place, max_holds_per_user=None, max_holds_per_ip=5)
    data(await reserve(site, ben, sale, "S-A-2"), 201)
    for person in (anna, ben):  # from one address, all of them
        assert refusal(await reserve(site, person, sale, "S-A-3")) == (409, "max_holds_exceeded")
    staff = await make_person(db, place, Role.STAFF)
    data(await reserve(site, staff, sale, "S-A-3"), 201)
    assert await auditing.verify(db, organization_id=place.id) == []


@pytest.mark.req("RSV-22", "RSV-23")
async def test_a_race_that_is_lost_for_ever_is_our_fault(
    site: Site, sale: Sale, anna: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tried again after 10, 20 and 40 ms; then 503, with when to come again, and nothing was changed."""
    tries = 0

    async def lost(*_: object, **__: object) -> list[object]:
        nonlocal tries
        tries += 1
        raise LostRace

    assert lane.RETRY_WAITS_S == (0.01, 0.02, 0.04)
    with monkeypatch.context() as patched:
        patched.setattr(store, "reserve_batch", lost)
        answer = await reserve(site, anna, sale, "S-A-1")
    assert refusal(answer) == (503, "seat_reservation_failed")
    assert answer.json()["effect"] == "none"
    assert answer.headers["retry-after"] == "1"
    assert tries == 1 + 4  # with the others of its batch, then by itself
    data(await reserve(site, anna, sale, "S-A-1"), 201)


async def test_one_key_has_one_effect(site: Site, sale: Sale, anna: Person, ben: Person) -> None:
    """Seats and places: the same request with the same key gets the same response, with the same holds."""
    await hold_of(site, anna, sale, "S-A-4")
    first = data(await reserve_seats(site, anna, sale, "S-A-1", "S-A-4", "S-A-2", idempotency_key="one"), 201)
    again = data(await reserve_seats(site, anna, sale, "S-A-1", "S-A-4", "S-A-2", idempotency_key="one"), 201)
    assert [one["hold_id"] for one in again] == [one["hold_id"] for one in first]
    places = data(await reserve_places(site, anna, sale, 2, idempotency_key="two"), 201)
    assert data(await reserve_places(site, anna, sale, 2, idempotency_key="two"), 201)["hold_id"] == places["hold_id"]
    without = data(await reserve_places(site, anna, sale, 2), 201)
    assert without["hold_id"] != places["hold_id"]
    assert data(await reserve_places(site, ben, sale, 2, idempotency_key="two"), 201)["hold_id"] != places["hold_id"]
    assert (await zone_rows(sale.db, sale.event))[2]["held"] == 6
    assert len(await sale.rows()) == 6
    assert await auditing.verify(sale.db, organization_id=sale.place.id) == []


async def test_a_key_for_something_else_is_refused(site: Site, services: Services, sale: Sale, anna: Person) -> None:
    """Other seats, another zone or event, another verb: 422, and nothing is held."""
    other = await on_sale(services, sale.place)
    data(await reserve_places(site, anna, sale, 2, idempotency_key="key"), 201)
    before = await everything_of(sale.db, sale.place.id)
    for answer in (
        await reserve_places(site, anna, sale, 3, idempotency_key="key"),
        await reserve_places(site, anna, other, 2, idempotency_key="key"),
        await reserve_seats(site, anna, sale, "S-A-1", idempotency_key="key"),
        await reserve_seats(site, anna, sale, "S-A-1", "S-A-2", idempotency_key="key"),
    ):
        assert refusal(answer) == (422, "idempotency_key_reused")
    for wrong in ("", "x" * 201, "two words"):
        answer = await reserve_places(site, anna, sale, 2, idempotency_key=wrong)
        assert refusal(answer) == (400, "invalid_request")
    assert await everything_of(sale.db, sale.place.id) == before


async def test_two_asks_with_one_key_at_once(site: Site, sale: Sale, anna: Person) -> None:
    """Sent ten times at once: one effect, ten times the same response."""
    said = await asyncio.gather(*(reserve_places(site, anna, sale, 1, idempotency_key="once") for _ in range(10)))
    assert [answer.status_code for answer in said] == [201] * 10
    assert len({answer.json()["data"]["hold_id"] for answer in said}) == 1
    assert len(await sale.rows()) == 1
    assert (await zone_rows(sale.db, sale.event))[2]["held"] == 1


async def test_a_key_repeated_too_late_says_what_became(
    site: Site, sale: Sale, anna: Person, owner_conn: Connection
) -> None:
    """The holds of then, as they are now: lapsed, though nobody has noticed yet."""
    first = data(await reserve_seats(site, anna, sale, "S-A-1", idempotency_key="k"), 201)
    await let_pass(owner_conn, UUID(first[0]["hold_id"]))
    again = data(await reserve_seats(site, anna, sale, "S-A-1", idempotency_key="k"), 201)
    assert [one["hold_id"] for one in again] == [first[0]["hold_id"]]
    assert (again[0]["status"], again[0]["expires_in_seconds"], again[0]["can_extend"]) == ("expired", 0, False)


async def test_the_own_basket(
    site: Site, services: Services, sale: Sale, anna: Person, ben: Person, owner_conn: Connection
) -> None:
    """What one holds of an event now, in the order it came: not what lapsed, was let go, is elsewhere or another's."""
    path = f"/api/events/{sale.event.id}/holds/mine"
    assert data(await ask(site, anna, "GET", path), 200) == []
    first = data(await reserve_seats(site, anna, sale, "S-A-2", "S-A-1"), 201)
    places = data(await reserve_places(site, anna, sale, 3), 201)
    for code in ("S-A-3", "S-A-4"):
        await hold_of(site, anna, sale, code)
    await hold_of(site, ben, sale, "S-B-3")
    await hold_of(site, anna, await on_sale(services, sale.place), "S-A-1")
    lapsed, gone = (await sale.rows())[3:5]
    await let_pass(owner_conn, lapsed["id"])
    assert (await ask(site, anna, "DELETE", f"/api/holds/{gone['id']}")).status_code == 204
    shown = data(await ask(site, anna, "GET", path), 200)
    assert sorted(one["hold_id"] for one in shown) == sorted(one["hold_id"] for one in [*first, places])
    assert shown[2]["hold_id"] == places["hold_id"]
    assert all(one.keys() == FIELDS for one in shown)
    assert {one["seat_number"] for one in shown} == {"1", "2", None}
    assert refusal(await ask(site, None, "GET", path)) == (401, "unauthorized")


@pytest.mark.req("EXT-02", "EXT-03", "EXT-04")
async def test_five_minutes_more_once(
    site: Site, sale: Sale, anna: Person, ben: Person, owner_conn: Connection
) -> None:
    """For the owner, while it lasts, of seats and places; asked again it stays as it is."""
    for first in (
        data(await reserve(site, anna, sale, "S-A-1"), 201),
        data(await reserve_places(site, anna, sale, 2), 201),
    ):
        path = f"/api/holds/{first['hold_id']}/extend"
        assert refusal(await ask(site, ben, "POST", path)) == (403, "not_hold_owner")
        longer = data(await ask(site, anna, "POST", path), 200)
        assert (moment(longer["held_until"]) - moment(first["held_until"])).total_seconds() == 300
        assert longer["held_until_unix"] == first["held_until_unix"] + 300
        assert longer.keys() == FIELDS
        names = ("hold_id", "block_name", "row", "seat_number", "cart_token", "quantity", "status")
        assert {name: longer[name] for name in names} == {name: first[name] for name in names}
        assert longer["can_extend"] is False
        assert data(await ask(site, anna, "POST", path), 200)["held_until"] == longer["held_until"]
        await let_pass(owner_conn, UUID(first["hold_id"]))
        assert refusal(await ask(site, anna, "POST", path)) == (409, "holds_expired")
    assert len(await facts_of(sale.db, sale.event, "seat_hold_extended")) == 2
    assert refusal(await ask(site, anna, "POST", f"/api/holds/{new_id()}/extend")) == (404, "hold_not_found")
    assert refusal(await ask(site, None, "POST", f"/api/holds/{new_id()}/extend")) == (401, "unauthorized")


@pytest.mark.req("HOLD-29", "HOLD-24", "SEAT-18")
async def test_a_hold_is_let_go(site: Site, sale: Sale, anna: Person, ben: Person, lead: Person) -> None:
    """By its owner, as often as they like; by whoever leads; by nobody else. The seat is there for the next."""
    hold_id = await hold_of(site, anna, sale, "S-A-1")
    path = f"/api/holds/{hold_id}"
    before = await everything_of(sale.db, sale.place.id)
    assert refusal(await ask(site, ben, "DELETE", path)) == (403, "not_hold_owner")
    assert await everything_of(sale.db, sale.place.id) == before
    for _ in range(2):
        answer = await ask(site, anna, "DELETE", path)
        assert (answer.status_code, answer.content) == (204, b"")
    (row,) = await sale.rows()
    assert (row["status"], row["ended_at"] is not None) == ("cancelled", True)
    seat = await sale.row("S-A-1")
    assert (seat["status"], seat["version"], seat["hold_id"], seat["held_until"]) == ("available", 3, None, None)
    other = await hold_of(site, ben, sale, "S-A-1")
    assert (await ask(site, anna, "DELETE", path)).status_code == 204  # long gone, and it is not the other's
    assert (await sale.row("S-A-1"))["status"] == "held"
    assert (await ask(site, lead, "DELETE", f"/api/holds/{other}")).status_code == 204
    told = await facts_of(sale.db, sale.event, "seat_hold_released")
    assert [(fact["actor_id"], fact["data"]["reason"]) for fact in told] == [
        (anna.user_id, "released_by_owner"),
        (lead.user_id, "released_by_staff"),
    ]
    assert refusal(await ask(site, anna, "DELETE", f"/api/holds/{new_id()}")) == (404, "hold_not_found")
    assert refusal(await ask(site, anna, "DELETE", "/api/holds/x")) == (400, "invalid_request")
    assert refusal(await ask(site, None, "DELETE", "/api/holds/x")) == (401, "unauthorized")


@pytest.mark.req("HOLD-32", "HOLD-23")
async def test_a_seat_is_read_as_it_stands(
    site: Site, sale: Sale, anna: Person, ben: Person, owner_conn: Connection
) -> None:
    """Held goes on without its holder; they find their hold by the seat; once it lapses the seat is free, untouched."""
    free = data(await ask(site, anna, "GET", seat_at(sale, "S-B-1")), 200)
    assert free == {
        "seat_id": str(sale.seat("S-B-1")),
        "ordinal": sale.seated.ordinal("S-B-1"),
        "zone_id": str(sale.zone("S")),
        "block_name": "Stalls",
        "row": "B",
        "seat_number": "1",
        "category": "wheelchair",
        "status": "available",
        "version": 1,
        "expires_in_seconds": None,
        "own_hold_id": None,
    }
    hold_id = await hold_of(site, anna, sale, "S-B-1")
    for person, own in ((anna, hold_id), (ben, None)):
        seen = data(await ask(site, person, "GET", seat_at(sale, "S-B-1")), 200)
        assert (seen["status"], seen["version"], seen["own_hold_id"]) == ("held", 2, own)
        assert TTL_S - 30 <= seen["expires_in_seconds"] <= TTL_S
    await let_pass(owner_conn, UUID(hold_id))
    for person in (anna, ben):
        seen = data(await ask(site, person, "GET", seat_at(sale, "S-B-1")), 200)
        assert (seen["status"], seen["expires_in_seconds"], seen["own_hold_id"]) == ("available", None, None)
    assert refusal(await ask(site, None, "GET", seat_at(sale, "S-B-1"))) == (401, "unauthorized")


async def test_the_crew_sees_everybodys_holds(
    site: Site, db: Database, sale: Sale, anna: Person, ben: Person, place: Organization, owner_conn: Connection
) -> None:
    """Page by page, the next to lapse first; what has lapsed or ended is left out; customers are refused."""
    ids = [await hold_of(site, anna, sale, code) for code in ("S-A-1", "S-A-2", "S-A-3", "S-A-4")]
    ids.append(data(await reserve_places(site, ben, sale, 4), 201)["hold_id"])
    await let_pass(owner_conn, UUID(ids[0]))
    await let_pass(owner_conn, UUID(ids[4]), minutes=5)
    assert (await ask(site, anna, "DELETE", f"/api/holds/{ids[1]}")).status_code == 204
    staff = await make_person(db, place, Role.STAFF)
    path = f"/api/admin/events/{sale.event.id}/holds"
    found, cursor = [], ""
    for _ in range(3):
        answer = await ask(site, staff, "GET", f"{path}?limit=1{cursor}")
        found += data(answer, 200)
        if answer.json()["next_cursor"] is None:
            break
        cursor = f"&cursor={answer.json()['next_cursor']}"
    assert [one["hold_id"] for one in found] == [ids[4], ids[2], ids[3]]
    told = ("user_id", "holder_name", "is_guest", "quantity", "seat_id", "source", "extended", "status")
    assert {name: found[0][name] for name in told} == {
        "user_id": str(ben.user_id),
        "holder_name": "Anna",
        "is_guest": False,
        "quantity": 4,
        "seat_id": None,
        "source": "web",
        "extended": False,
        "status": "active",
    }
    for person in (anna, await make_person(db, place, Role.SCANNER)):
        assert refusal(await ask(site, person, "GET", path)) == (403, "permission_denied")
    assert refusal(await ask(site, staff, "GET", f"{path}?cursor=x")) == (400, "cursor_invalid")


async def test_the_crew_sees_what_became_of_holds(
    site: Site, db: Database, sale: Sale, anna: Person, place: Organization, owner_conn: Connection
) -> None:
    """Of the last hour: sold, lapsed, let go, by seat and by number; others are refused."""
    path = f"/api/admin/events/{sale.event.id}/holds/ends"
    staff = await make_person(db, place, Role.STAFF)

    async def counted() -> tuple[int, int, int]:
        found = data(await ask(site, staff, "GET", path), 200)
        moment(found["since"])
        return found["sold"], found["expired"], found["released"]

    assert await counted() == (0, 0, 0)
    call = sale.caller()
    bought = [*await sale.hold(call, "S-A-1", "S-A-2"), await sale.hold_places(call, 3)]
    assert (await sale.buy(call, *bought))[0] == "sold"
    lapsing = await hold_of(site, anna, sale, "S-A-3")
    await let_pass(owner_conn, UUID(lapsing))
    assert await registry.reap(db, by=CLOCK) >= 1
    released = await hold_of(site, anna, sale, "S-A-4")
    assert (await ask(site, anna, "DELETE", f"/api/holds/{released}")).status_code == 204
    assert await counted() == (3, 1, 1)
    for person in (anna, await make_person(db, place, Role.SCANNER)):
        assert refusal(await ask(site, person, "GET", path)) == (403, "permission_denied")
    stranger = await make_person(db, None, Role.OWNER)
    assert refusal(await ask(site, stranger, "GET", path)) == (404, "event_not_found")


async def block(
    site: Site, person: Person, sale: Sale, *codes: str, verb: str = "block", **more: str
) -> httpx2.Response:
    body = {"seat_ids": [str(sale.seat(code)) for code in codes], **more}
    return await ask(site, person, "POST", f"/api/admin/events/{sale.event.id}/seats/{verb}", body)


def outcomes(answer: httpx2.Response) -> list[str]:
    return [one["outcome"] for one in data(answer, 200)]


@pytest.mark.req("RBAC-11", "SEAT-21")
async def test_seats_are_blocked_by_hand(
    site: Site, db: Database, sale: Sale, anna: Person, lead: Person, place: Organization
) -> None:
    """By those who lead: what is held is lost to its holder, what is sold stays sold, and all of it is told."""
    hold_id = await hold_of(site, anna, sale, "S-A-1")
    call = sale.caller()
    await sale.buy(call, *await sale.hold(call, "S-A-2"))
    for role in (Role.CUSTOMER, Role.SCANNER, Role.STAFF):
        answer = await block(site, await make_person(db, place, role), sale, "S-A-3")
        assert refusal(answer) == (403, "permission_denied")
    answer = await block(site, lead, sale, "S-A-1", "S-A-2", "S-A-3", reason="a camera stands here")
    assert outcomes(answer) == ["done", "seat_not_available", "done"]
    assert outcomes(await block(site, lead, sale, "S-A-3")) == ["blocked"]
    states = [row["status"] for row in await seat_rows(db, sale.event)][:4]
    assert states == ["blocked", "sold", "blocked", "available"]
    assert {row["id"]: row["status"] for row in await sale.rows()}[UUID(hold_id)] == "cancelled"
    seat = sale.seat("S-A-1")
    told = [fact for fact in await facts_of(db, sale.event) if fact["seat_id"] == seat]
    assert [(fact["kind"], fact["version"]) for fact in told] == [
        ("seat_reserved", 2),
        ("seat_hold_released", 3),
        ("seat_blocked", 4),
    ]
    assert told[1]["data"]["reason"] == "seat_blocked"
    assert {fact["actor_id"] for fact in told[1:]} == {lead.user_id}
    assert data(await ask(site, anna, "GET", f"/api/events/{sale.event.id}/holds/mine"), 200) == []
    assert refusal(await ask(site, anna, "POST", f"/api/holds/{hold_id}/extend")) == (409, "holds_expired")
    answer = await reserve(site, anna, sale, "S-A-1")
    assert refusal(answer) == (409, "seat_not_available")
    assert answer.json()["details"] == {"current_status": "blocked"}
    assert outcomes(await block(site, lead, sale, "S-A-1", "S-A-4", verb="unblock")) == ["done", "not_blocked"]
    await hold_of(site, anna, sale, "S-A-1")
    assert await auditing.verify(db, organization_id=place.id) == []


async def test_what_the_event_keeps_out_stays_out(
    site: Site, services: Services, place: Organization, lead: Person
) -> None:
    """A seat that the event's own seating has blocked is put on sale there, not by hand; nor is a zone switched off."""
    sale = await on_sale(services, place, overlay=Overlay(blocked_seats=("S-A-1",), disabled_zones=("V",)))
    answer = await block(site, lead, sale, "S-A-1", "V-A-1", verb="unblock")
    assert outcomes(answer) == ["blocked_by_layout", "blocked_by_layout"]
    assert [(await sale.row(code))["status"] for code in ("S-A-1", "V-A-1")] == ["blocked", "blocked"]
    body = {"seat_ids": [str(new_id())]}
    path = f"/api/admin/events/{sale.event.id}/seats"
    for verb in ("block", "unblock"):
        assert refusal(await ask(site, lead, "POST", f"{path}/{verb}", body)) == (404, "seat_not_found")
        assert refusal(await ask(site, lead, "POST", f"{path}/{verb}", {"seat_ids": []})) == (400, "invalid_request")
        assert refusal(await ask(site, lead, "POST", f"{path}/{verb}", {})) == (400, "invalid_request")
    mixed = {"seat_ids": [str(sale.seat("S-A-2")), body["seat_ids"][0]]}
    assert outcomes(await ask(site, lead, "POST", f"{path}/block", mixed)) == ["done", "seat_not_found"]


@pytest.mark.parametrize("verbs", [[Verb.CANCEL], [Verb.GO_LIVE, Verb.END], [Verb.CANCEL, Verb.ARCHIVE]])
async def test_what_is_over_keeps_its_seats_as_they_were(
    site: Site, db: Database, sale: Sale, lead: Person, verbs: list[Verb]
) -> None:
    """Blocked or not: nothing is changed by hand in an event that is over or called off, whichever seat is named."""
    await sale.block("S-A-2")
    event = sale.event
    for verb in verbs:
        event = await move(sale.services.studio, sale.place, event, verb)
    rows, facts = await seat_rows(db, sale.event), await facts_of(db, sale.event)
    for verb_of, code in (("block", "S-A-1"), ("unblock", "S-A-2")):
        answer = await block(site, lead, sale, code, verb=verb_of)
        assert (refusal(answer), answer.json()["details"]) == ((409, "seating_locked"), {"status": event.status})
    assert (await seat_rows(db, sale.event), await facts_of(db, sale.event)) == (rows, facts)


@pytest.mark.req("HOLD-28")
@pytest.mark.parametrize("minutes", [5, 15])
async def test_what_is_told_follows_the_event(
    site: Site, services: Services, place: Organization, anna: Person, minutes: int
) -> None:
    """An event may have another length: row, message, both clocks and the countdown agree."""
    sale = await on_sale(services, place, overlay=Overlay(seating_overrides={"default_hold_ttl_minutes": minutes}))
    told = data(await reserve(site, anna, sale, "S-A-1"), 201)
    (row,) = await sale.rows()
    assert (row["expires_at"] - row["created_at"]).total_seconds() == minutes * 60
    assert told["message"] == f"Held for {minutes} minutes."
    assert minutes * 60 - 30 <= told["expires_in_seconds"] <= minutes * 60
    longer = data(await ask(site, anna, "POST", f"/api/holds/{told['hold_id']}/extend"), 200)
    assert longer["held_until_unix"] - told["held_until_unix"] == 300
