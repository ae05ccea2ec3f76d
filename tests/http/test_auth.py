"""The front door over real HTTP: who comes in, how, and what stays outside."""

import asyncio
import statistics
import time
from uuid import UUID

import pytest

from tests.make.accounts import PASSWORD, make_organization, make_person
from tests.make.holds import on_sale
from tests.make.web import Site
from voelgoed.accounts import signing, store, tokens
from voelgoed.accounts.attempts import RateLimited
from voelgoed.accounts.model import ANONYMOUS, Call, Role
from voelgoed.db import Connection, Database
from voelgoed.events.model import OPERATOR
from voelgoed.holds import handover
from voelgoed.ids import new_id
from voelgoed.seating import policies
from voelgoed.wiring import Services


def new_email() -> str:
    return f"{new_id().hex}@example.test"


async def facts(db: Database, organization_id: object) -> list[str]:
    async with db.system_transaction() as conn:
        rows = await conn.fetch("select kind from journal where organization_id = $1 order by seq", organization_id)
    return [row["kind"] for row in rows]


async def test_register_then_sign_in_then_out(site: Site, db: Database) -> None:
    """The whole round, with the answers the contract promises and a fact for each step."""
    place, email = await make_organization(db), new_email()
    about = {"organization": place.slug, "email": email.upper(), "password": PASSWORD, "name": "Anna"}
    registered = await site.client.post("/api/auth/register", json=about)
    assert registered.status_code == 201
    data = registered.json()["data"]
    assert data["user"] == {"id": data["user"]["id"], "name": "Anna", "role": "customer", "is_guest": False}
    assert data["organization"] == {"id": str(place.id), "slug": place.slug, "name": place.name}
    assert "set-cookie" not in registered.headers

    credentials = {"organization": place.slug, "email": email, "password": PASSWORD}
    signed_in = (await site.client.post("/api/auth/login", json=credentials)).json()["data"]
    assert signed_in["user"]["id"] == data["user"]["id"]
    bearer = {"authorization": f"Bearer {signed_in['token']}"}
    me = await site.client.get("/api/me", headers=bearer)
    assert me.json()["data"]["user"]["email"] == email
    assert (await site.client.post("/api/auth/logout", headers=bearer)).status_code == 204
    assert (await site.client.get("/api/me", headers=bearer)).status_code == 401
    assert await facts(db, place.id) == ["organization_created", "registered", "signed_in", "signed_out"]


@pytest.mark.req("SEC-10")
async def test_the_organization_is_the_sessions_and_nobodys_to_choose(site: Site, db: Database) -> None:
    """A parameter that names another organization changes nothing, wherever it is put."""
    mine, other = await make_person(db, role=Role.ADMIN), await make_organization(db)
    for query in (f"?organization_id={other.id}", f"?organization={other.slug}", ""):
        answer = await site.client.get(f"/api/me{query}", headers={**mine.headers, "x-organization-id": str(other.id)})
        assert answer.json()["data"]["organization"]["id"] == str(mine.organization.id)
    planted = await site.client.post(
        "/api/admin/memberships",
        headers=mine.headers,
        json={"user_id": str(mine.user_id), "tier": "gold", "organization_id": str(other.id)},
    )
    assert (planted.status_code, planted.json()["error"]) == (400, "invalid_request")


@pytest.mark.req("SEC-01")
@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"authorization": ""},
        {"authorization": "Bearer"},
        {"authorization": "Basic dXNlcjpwYXNz"},
        {"authorization": "Bearer vgs_not-a-token"},
        {"authorization": "Bearer " + "x" * 5000},
        {"authorization": "Bearer vgs_" + "a" * 43},
        {"authorization": "Bearer vgk_" + "a" * 43},
        {"cookie": "vg_session=vgs_" + "a" * 43},
        {"cookie": "vg_session="},
    ],
)
async def test_without_a_session_there_is_401(site: Site, headers: dict[str, str]) -> None:
    """No, empty, malformed and unknown tokens are all nobody; a token in the URL is not looked at."""
    answer = await site.client.get("/api/me", headers=headers, params={"token": "vgs_" + "a" * 43})
    assert answer.status_code == 401
    assert answer.json()["error"] == "unauthorized"
    assert answer.json()["effect"] == "none"


async def test_strangers_are_refused_before_anything_is_read(site: Site) -> None:
    """Authentication comes before validation: who may not ask learns nothing about what is right."""
    answer = await site.client.post(
        "/api/admin/members", content=b"{not json", headers={"content-type": "application/json"}
    )
    assert answer.status_code == 401


@pytest.mark.req("SEC-11")
async def test_a_session_unused_for_half_an_hour_is_over(site: Site, db: Database, owner_conn: Connection) -> None:
    """Thirty minutes without a request: sign in again. A request within them keeps it."""
    person, other = await make_person(db), await make_person(db)
    for who, minutes in ((person, 31), (other, 29)):
        await owner_conn.execute(
            "update sessions set last_seen_at = now() - make_interval(mins => $2) where id = $1",
            who.session_id,
            minutes,
        )
    assert (await site.client.get("/api/me", headers=person.headers)).status_code == 401
    assert (await site.client.get("/api/me", headers=other.headers)).status_code == 200


async def test_wrong_and_unknown_sound_the_same(site: Site, db: Database) -> None:
    """Which of address and password was wrong is not said."""
    place, email = await make_organization(db), new_email()
    await site.client.post(
        "/api/auth/register", json={"organization": place.slug, "email": email, "password": PASSWORD, "name": "A"}
    )
    answers = []
    for tried in (email, new_email()):
        answer = await site.client.post(
            "/api/auth/login", json={"organization": place.slug, "email": tried, "password": "wrong password"}
        )
        answers.append((answer.status_code, {**answer.json(), "request_id": ""}))
    assert answers[0] == answers[1]
    assert answers[0][0] == 401
    assert answers[0][1]["error"] == "credentials_wrong"


async def test_wrong_and_unknown_take_the_same_time(services: Services, db: Database) -> None:
    """The hash is computed for people who do not exist as well; medians differ by less than half."""
    place, email = await make_organization(db), new_email()
    call = Call(actor=ANONYMOUS, request_id=new_id(), ip="192.0.2.9")
    await signing.register(
        services.door, call, organization=place.slug, email=email, password=PASSWORD, name="A", locale="en"
    )
    times: dict[str, list[float]] = {"known": [], "unknown": []}
    for number in range(9):
        for who, tried in (("known", email), ("unknown", f"{number}-{new_email()}")):
            services.door.attempts.guesses._blocked.pop(tried, None)
            started = time.perf_counter()
            with pytest.raises((signing.CredentialsWrong, RateLimited)):
                await handover.sign_in(
                    services.door,
                    services.lanes,
                    call,
                    organization=place.slug,
                    email=tried,
                    password="wrong password",
                )
            times[who].append(time.perf_counter() - started)
    known, unknown = statistics.median(times["known"]), statistics.median(times["unknown"])
    print(f"\nwrong password {known * 1e3:.0f} ms, unknown address {unknown * 1e3:.0f} ms")
    assert 0.5 < known / unknown < 2


async def test_a_thousand_wrong_tries_are_throttled(site: Site, db: Database) -> None:
    """After ten wrong guesses an account is closed for a while, also for the right password."""
    place, email = await make_organization(db), new_email()
    gate = asyncio.Semaphore(20)

    async def guess() -> int:
        async with gate:
            answer = await site.client.post(
                "/api/auth/login", json={"organization": place.slug, "email": email, "password": "wrong password"}
            )
            return answer.status_code

    statuses = await asyncio.gather(*(guess() for _ in range(1000)))
    assert set(statuses) == {401, 429}
    assert statuses.count(401) <= 10
    refused = await site.client.post(
        "/api/auth/login", json={"organization": place.slug, "email": email, "password": PASSWORD}
    )
    assert refused.status_code == 429
    assert 1 <= int(refused.headers["retry-after"]) <= 900


async def test_signing_in_often_is_not_a_guess(site: Site, db: Database) -> None:
    """Only wrong tries count."""
    place, email = await make_organization(db), new_email()
    about = {"organization": place.slug, "email": email, "password": PASSWORD}
    await site.client.post("/api/auth/register", json={**about, "name": "A"})
    answers = [await site.client.post("/api/auth/login", json=about) for _ in range(12)]
    assert {answer.status_code for answer in answers} == {201}


@pytest.mark.parametrize(
    ("password", "why"),
    [("short", "too_short"), ("a" * 20, "monotonous"), ("x1y2" * 51, "too_long")],
)
async def test_weak_passwords_are_refused_with_the_reason(site: Site, db: Database, password: str, why: str) -> None:
    """And nothing is stored."""
    place, email = await make_organization(db), new_email()
    answer = await site.client.post(
        "/api/auth/register", json={"organization": place.slug, "email": email, "password": password, "name": "A"}
    )
    assert (answer.status_code, answer.json()["error"]) == (400, "password_refused")
    assert answer.json()["details"] == {"reason": why}
    async with db.system_transaction() as conn:
        assert await store.find_user_by_email(conn, email) is None


async def test_an_address_registers_once(site: Site, db: Database) -> None:
    """Whatever its capitals, at whichever storefront."""
    place, other, email = await make_organization(db), await make_organization(db), new_email()
    about = {"organization": place.slug, "email": email, "password": PASSWORD, "name": "A"}
    assert (await site.client.post("/api/auth/register", json=about)).status_code == 201
    again = await site.client.post(
        "/api/auth/register", json={**about, "email": email.upper(), "organization": other.slug}
    )
    assert (again.status_code, again.json()["error"]) == (409, "email_taken")


async def test_a_guest_who_registers_stays_the_same_person(site: Site, db: Database) -> None:
    """What the guest held is theirs; the guest's own session ends."""
    place = await make_organization(db)
    guest = (await site.client.post("/api/auth/guest", json={"organization": place.slug})).json()["data"]
    assert guest["user"]["is_guest"] is True
    bearer = {"authorization": f"Bearer {guest['token']}"}
    assert (await site.client.get("/api/me", headers=bearer)).json()["data"]["user"]["is_guest"] is True
    about = {"organization": place.slug, "email": new_email(), "password": PASSWORD, "name": "Anna"}
    registered = (await site.client.post("/api/auth/register", headers=bearer, json=about)).json()["data"]
    assert registered["user"]["id"] == guest["user"]["id"]
    mine = {"authorization": f"Bearer {registered['token']}"}
    me = (await site.client.get("/api/me", headers=mine)).json()["data"]["user"]
    assert (me["is_guest"], me["name"]) == (False, "Anna")
    # Whoever planted or saw the guest's token must not be this person now.
    assert (await site.client.get("/api/me", headers=bearer)).status_code == 401


async def test_a_guest_who_signs_in_keeps_what_they_hold(
    site: Site, db: Database, services: Services, owner_conn: Connection
) -> None:
    """The answer says what was kept and what was let go; to sign in with the guest's token once more moves nothing."""
    place, email = await make_organization(db), new_email()
    sale = await on_sale(services, place)
    async with db.transaction(place.id) as conn:
        await policies.save(
            conn, place.id, {"max_seats_per_booking": 3}, by=OPERATOR, role=Role.SUPER_ADMIN, reason="in a test"
        )
    about = {"organization": place.slug, "email": email, "password": PASSWORD}
    registered = await site.client.post("/api/auth/register", json={**about, "name": "Anna"})
    person = {"authorization": f"Bearer {registered.json()['data']['token']}"}
    guest = (await site.client.post("/api/auth/guest", json={"organization": place.slug})).json()["data"]
    bearer = {"authorization": f"Bearer {guest['token']}"}
    event = f"/api/events/{sale.event.id}"
    held = await site.client.post(
        f"{event}/holds", headers=bearer, json={"seat_ids": [str(sale.seat(code)) for code in ("S-A-1", "S-A-2")]}
    )
    assert held.status_code == 201
    places = await site.client.post(f"{event}/zones/{sale.zone()}/reserve", headers=person, json={"quantity": 2})
    assert places.status_code == 201

    signed_in = await site.client.post("/api/auth/login", json=about, headers=bearer)

    assert signed_in.status_code == 201
    data = signed_in.json()["data"]
    assert data["user"]["name"] == "Anna"
    assert data["basket"] == {"kept": 1, "released": 1}
    mine = await site.client.get(f"{event}/holds/mine", headers={"authorization": f"Bearer {data['token']}"})
    assert [(one["hold_id"], one["held_until"]) for one in mine.json()["data"] if one["seat_id"]] == [
        (one["hold_id"], one["held_until"]) for one in held.json()["data"][:1]
    ]
    assert (await site.client.get("/api/me", headers=bearer)).status_code == 401
    again = await site.client.post("/api/auth/login", json=about, headers=bearer)
    assert (again.status_code, again.json()["data"]["basket"]) == (201, {"kept": 0, "released": 0})


async def test_a_guest_of_another_storefront_is_not_claimed(site: Site, db: Database) -> None:
    """Registering elsewhere makes a new person; the guest and what they hold stay where they are."""
    here, there = await make_organization(db), await make_organization(db)
    guest = (await site.client.post("/api/auth/guest", json={"organization": here.slug})).json()["data"]
    bearer = {"authorization": f"Bearer {guest['token']}"}
    about = {"organization": there.slug, "email": new_email(), "password": PASSWORD, "name": "Anna"}
    registered = (await site.client.post("/api/auth/register", headers=bearer, json=about)).json()["data"]
    assert registered["user"]["id"] != guest["user"]["id"]
    assert (await site.client.get("/api/me", headers=bearer)).json()["data"]["user"]["is_guest"] is True


async def test_first_visit_to_another_storefront_makes_a_customer(site: Site, db: Database) -> None:
    """One account, many organizations; whoever is more already stays it."""
    first, second, email = await make_organization(db), await make_organization(db), new_email()
    about = {"email": email, "password": PASSWORD}
    await site.client.post("/api/auth/register", json={**about, "organization": first.slug, "name": "A"})
    there = (await site.client.post("/api/auth/login", json={**about, "organization": second.slug})).json()["data"]
    assert (there["user"]["role"], there["organization"]["slug"]) == ("customer", second.slug)
    me = await site.client.get("/api/me", headers={"authorization": f"Bearer {there['token']}"})
    places = {place["slug"]: place["role"] for place in me.json()["data"]["organizations"]}
    assert places == {first.slug: "customer", second.slug: "customer"}


async def test_cookie_sessions_need_the_csrf_token_to_change_anything(site: Site, db: Database) -> None:
    """A page of another site can make a browser send the cookie, but not the header."""
    place = await make_organization(db)
    answer = await site.client.post(
        "/api/auth/guest", json={"organization": place.slug}, headers={"x-session": "cookie"}
    )
    cookie = answer.headers["set-cookie"]
    assert all(part in cookie for part in ("vg_session=vgs_", "HttpOnly", "SameSite=Lax", "Path=/"))
    site.client.cookies.clear()
    data = answer.json()["data"]
    sent = {"cookie": cookie.split(";")[0]}
    me = await site.client.get("/api/me", headers=sent)
    assert me.json()["data"]["csrf_token"] == data["csrf_token"] == tokens.csrf_token(data["token"])
    change = {"name": "B", "locale": "af"}
    for wrong in ({}, {"x-csrf-token": "x"}, {"x-csrf-token": tokens.csrf_token("vgs_other")}):
        refused = await site.client.patch("/api/me", headers={**sent, **wrong}, json=change)
        assert (refused.status_code, refused.json()["error"]) == (403, "csrf_failed")
    right = {**sent, "x-csrf-token": data["csrf_token"]}
    assert (await site.client.patch("/api/me", headers=right, json=change)).status_code == 204
    gone = await site.client.post("/api/auth/logout", headers=right)
    assert "Max-Age=0" in gone.headers["set-cookie"]
    site.client.cookies.clear()


async def test_a_stale_cookie_does_not_close_public_doors(site: Site, db: Database) -> None:
    """Whoever comes back after a long time sees the storefront, and can sign in."""
    place = await make_organization(db)
    stale = {"cookie": f"vg_session={tokens.new_session_token()}"}
    assert (await site.client.get(f"/api/storefronts/{place.slug}", headers=stale)).status_code == 200
    guest = await site.client.post("/api/auth/guest", headers=stale, json={"organization": place.slug})
    assert guest.status_code == 201


async def test_unknown_and_suspended_organizations(site: Site, db: Database) -> None:
    """The one is not there, the other is closed; nobody gets a session at either."""
    place = await make_organization(db)
    async with db.transaction(place.id) as conn:
        await store.set_suspended(conn, place.id, is_suspended=True)
    for slug, status, code in (
        ("no-such-place", 404, "organization_not_found"),
        (place.slug, 403, "organization_suspended"),
    ):
        answer = await site.client.post("/api/auth/guest", json={"organization": slug})
        assert (answer.status_code, answer.json()["error"]) == (status, code)


async def test_password_reset_by_mail(site: Site, db: Database, services: Services) -> None:
    """The link works once, ends every session, and the answer is the same for people who do not exist."""
    place, email = await make_organization(db), new_email()
    about = {"organization": place.slug, "email": email}
    token = (await site.client.post("/api/auth/register", json={**about, "password": PASSWORD, "name": "Anna"})).json()[
        "data"
    ]["token"]
    asked = await site.client.post("/api/auth/password-reset", json=about)
    unknown = await site.client.post("/api/auth/password-reset", json={**about, "email": new_email()})
    assert (asked.status_code, asked.json()) == (unknown.status_code, unknown.json())
    assert asked.status_code == 202

    async with db.transaction(place.id) as conn:
        told = await conn.fetch(
            "select data ->> 'one_time_id' as id from journal where kind = 'password_reset_requested'"
        )
    assert len(told) == 1
    token_id = type(place.id)(told[0]["id"])
    mail = await signing.password_reset_mail(db, services.door.secret_key, token_id, address="https://t.example")
    assert mail is not None
    assert mail.to == email
    secret = mail.text.split("new-password#")[1].split()[0]

    new = {"token": secret, "password": "another long password"}
    forged = await site.client.post("/api/auth/password-reset/confirm", json={**new, "token": secret[:-1] + "x"})
    assert (forged.status_code, forged.json()["error"]) == (400, "token_invalid")
    assert (await site.client.post("/api/auth/password-reset/confirm", json=new)).status_code == 204
    again = await site.client.post("/api/auth/password-reset/confirm", json=new)
    assert (again.status_code, again.json()["error"]) == (400, "token_invalid")
    assert (await site.client.get("/api/me", headers={"authorization": f"Bearer {token}"})).status_code == 401
    assert (await site.client.post("/api/auth/login", json={**about, "password": PASSWORD})).status_code == 401
    right = await site.client.post("/api/auth/login", json={**about, "password": "another long password"})
    assert right.status_code == 201
    assert await signing.password_reset_mail(db, services.door.secret_key, token_id, address="x") is None


async def test_secrets_are_stored_as_hashes_only(site: Site, db: Database) -> None:
    """Whoever reads the tables can sign in with nothing in them."""
    place, email = await make_organization(db), new_email()
    data = (
        await site.client.post(
            "/api/auth/register",
            json={"organization": place.slug, "email": email, "password": PASSWORD, "name": "A"},
        )
    ).json()["data"]
    async with db.system_transaction() as conn:
        row = await conn.fetchrow(
            "select s.token_hash, u.password_hash from sessions s join users u on u.id = s.user_id where u.email = $1",
            email,
        )
        told = await conn.fetch("select data::text as data from journal where organization_id = $1", place.id)
    assert row is not None
    assert row["token_hash"] == tokens.token_hash(data["token"])
    assert row["password_hash"].startswith("$argon2id$")
    assert not any(secret in fact["data"] for fact in told for secret in (data["token"], PASSWORD, email))


async def test_guesses_count_wherever_they_are_made(site: Site, db: Database) -> None:
    """At any storefront, for a change of password, all at once: together they have one limit."""
    places, email = [await make_organization(db) for _ in range(3)], new_email()
    about = {"email": email, "password": PASSWORD}
    made = await site.client.post("/api/auth/register", json={**about, "organization": places[0].slug, "name": "A"})
    bearer = {"authorization": f"Bearer {made.json()['data']['token']}"}

    async def guess(number: int) -> int:
        if number % 4 == 0:
            body = {"current": "wrong password", "new": "another long password"}
            return (await site.client.put("/api/me/password", headers=bearer, json=body)).status_code
        body = {"organization": places[number % 3].slug, "email": email, "password": "wrong password"}
        return (await site.client.post("/api/auth/login", json=body)).status_code

    statuses = await asyncio.gather(*(guess(number) for number in range(40)))
    statuses += [await guess(number) for number in range(12)]
    assert statuses.count(401) <= 10
    right = await site.client.post("/api/auth/login", json={**about, "organization": places[1].slug})
    assert right.status_code == 429


async def test_a_changed_password_ends_other_sessions_and_links(site: Site, db: Database, services: Services) -> None:
    """The one who changed it stays signed in; everybody else, and every link sent before, is out."""
    place, email = await make_organization(db), new_email()
    about = {"organization": place.slug, "email": email}
    tokens_of = []
    register = {**about, "password": PASSWORD, "name": "Anna"}
    tokens_of.append((await site.client.post("/api/auth/register", json=register)).json()["data"]["token"])
    login = {**about, "password": PASSWORD}
    tokens_of.append((await site.client.post("/api/auth/login", json=login)).json()["data"]["token"])
    await site.client.post("/api/auth/password-reset", json=about)
    mine, other = ({"authorization": f"Bearer {token}"} for token in tokens_of)
    for weak in (email, "short"):
        body = {"current": PASSWORD, "new": weak}
        assert (await site.client.put("/api/me/password", headers=mine, json=body)).status_code == 400
    body = {"current": PASSWORD, "new": "another long password"}
    assert (await site.client.put("/api/me/password", headers=mine, json=body)).status_code == 204
    assert (await site.client.get("/api/me", headers=mine)).status_code == 200
    assert (await site.client.get("/api/me", headers=other)).status_code == 401
    assert (await site.client.post("/api/auth/login", json=login)).status_code == 401
    async with db.transaction(place.id) as conn:
        token_id = await conn.fetchval(
            "select data ->> 'one_time_id' from journal where kind = 'password_reset_requested'"
        )
    link = tokens.one_time_token(services.door.secret_key, UUID(token_id))
    late = await site.client.post(
        "/api/auth/password-reset/confirm", json={"token": link, "password": "a third long password"}
    )
    assert (late.status_code, late.json()["error"]) == (400, "token_invalid")


async def test_a_sign_in_overtaken_by_a_new_password_fails(services: Services, db: Database) -> None:
    """The password was right when it was checked and is not when the session would be made."""
    place, email = await make_organization(db), new_email()
    call = Call(actor=ANONYMOUS, request_id=new_id())
    made = await signing.register(
        services.door, call, organization=place.slug, email=email, password=PASSWORD, name="A", locale="en"
    )
    verify = services.door.passwords.verify

    async def overtaken(password_hash: str | None, password: str, *, network: str) -> bool:
        is_right = await verify(password_hash, password, network=network)
        async with db.transaction(place.id) as conn:
            await store.set_password_hash(conn, made.user.id, "$argon2id$another")
        return is_right

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(services.door.passwords, "verify", overtaken)
        with pytest.raises(signing.CredentialsWrong):
            await handover.sign_in(
                services.door, services.lanes, call, organization=place.slug, email=email, password=PASSWORD
            )


async def test_mail_is_not_a_weapon(site: Site, db: Database) -> None:
    """Five links an hour for one person, whichever storefront asks."""
    places, email = [await make_organization(db) for _ in range(2)], new_email()
    statuses = [
        (
            await site.client.post(
                "/api/auth/password-reset", json={"organization": places[number % 2].slug, "email": email}
            )
        ).status_code
        for number in range(7)
    ]
    assert statuses == [202] * 5 + [429] * 2
