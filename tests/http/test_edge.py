"""The edge: one order for everybody, limits on everything, and the same answer from hot and declared routes."""

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

import httpx2
import pytest
from pydantic import SecretStr

from tests.make.accounts import make_organization, make_person
from tests.make.processes import free_port
from tests.make.web import Site, serving
from voelgoed.accounts import sessions as sessions_module
from voelgoed.accounts.model import Role
from voelgoed.config import Settings
from voelgoed.db import Database
from voelgoed.errors import Busy, OutcomeUnknown
from voelgoed.holds.lane import CROWD, ITEMS_PER_BATCH
from voelgoed.http import edge
from voelgoed.http.edge import CONTENT_SECURITY_POLICY, security_headers
from voelgoed.ids import new_id
from voelgoed.wiring import Services, build_services

OTHER_SITE = "https://tickets.example"


@contextlib.asynccontextmanager
async def site_with(services: Services, **over: object) -> AsyncIterator[Site]:
    """A server of its own with other settings."""
    settings: Settings = services.settings.model_copy(update={"port": free_port(), **over})
    own = build_services(settings, services.db, services.redis, b"k" * 32)
    async with serving(own) as running:
        yield running
    own.door.passwords.close()


@pytest.mark.parametrize(
    "path", ["/", "/healthz", "/readyz", "/api/openapi.json", "/api/none", "/assets/none.js", "/api/me"]
)
async def test_every_answer_has_the_security_headers(site: Site, path: str) -> None:
    """Pages, data and errors alike; and a request id that is another each time."""
    answer, again = await site.client.get(path), await site.client.get(path)
    assert answer.headers["content-security-policy"] == CONTENT_SECURITY_POLICY
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "same-origin"
    assert "strict-transport-security" not in answer.headers
    assert UUID(answer.headers["x-request-id"]) != UUID(again.headers["x-request-id"])


def test_the_policy_allows_no_inline_script_or_style() -> None:
    """What is not a file of ours does not run."""
    assert "unsafe" not in CONTENT_SECURITY_POLICY
    assert "script-src 'self'" in CONTENT_SECURITY_POLICY
    assert "default-src 'none'" in CONTENT_SECURITY_POLICY


def test_https_is_remembered_only_where_it_is_spoken() -> None:
    """A plain address must not tell browsers to insist on TLS."""
    assert b"strict-transport-security" in dict(security_headers(is_https=True))
    assert b"strict-transport-security" not in dict(security_headers(is_https=False))


async def test_personal_answers_are_not_kept(site: Site, db: Database) -> None:
    """No cache between us and the person keeps what is theirs."""
    person = await make_person(db)
    assert (await site.client.get("/api/me", headers=person.headers)).headers["cache-control"] == "no-store"


@pytest.mark.parametrize(
    ("content", "status", "code"),
    [
        (b"", 400, "invalid_request"),
        (b"{", 400, "invalid_request"),
        (b"[]", 400, "invalid_request"),
        (b"{}", 400, "invalid_request"),
        (b'{"organization": 1}', 400, "invalid_request"),
        (b'{"organization": "UPPER"}', 400, "invalid_request"),
        (b'{"organization": "x", "more": 1}', 400, "invalid_request"),
        (b'{"organization": "\\u0000"}', 400, "invalid_request"),
        (b"\xff\xfe", 400, "invalid_request"),
        (b"[" * 5000, 400, "invalid_request"),
        (b" " * (64 * 1024 + 1), 413, "body_too_large"),
    ],
)
async def test_a_hot_route_refuses_as_its_declared_neighbour_does(
    site: Site, content: bytes, status: int, code: str
) -> None:
    """The same status, code, effect and headers, whichever way a route is served."""
    answers = [
        await site.client.post(path, content=content, headers={"content-type": "application/json"})
        for path in ("/api/auth/guest", "/api/auth/password-reset")
    ]
    for answer in answers:
        assert (answer.status_code, answer.json()["error"]) == (status, code)
        assert answer.json().keys() == {"error", "message", "details", "effect", "request_id"}
        assert answer.json()["effect"] == "none"
        assert answer.json()["request_id"] == answer.headers["x-request-id"]
    # Whether an unread body costs the connection is the server's business.
    hot, declared = ({*answer.headers} - {"date", "connection"} for answer in answers)
    assert hot == declared


async def test_what_was_sent_is_never_repeated(site: Site) -> None:
    """There may be a password in it."""
    answer = await site.client.post(
        "/api/auth/login", json={"organization": "x", "password": ["my secret"], "email": 1}
    )
    assert answer.status_code == 400
    assert "my secret" not in answer.text
    assert {error["path"] for error in answer.json()["details"]["errors"]} == {"body.email", "body.password"}


async def raw(site: Site, data: bytes, *more: bytes) -> bytes:
    """Speak to the server byte by byte."""
    reader, writer = await asyncio.open_connection("127.0.0.1", int(site.address.rsplit(":", 1)[1]))
    for part in (data, *more):
        writer.write(part)
        await writer.drain()
    answer = await asyncio.wait_for(reader.read(65536), 30)
    writer.close()
    return answer


async def test_a_body_without_an_end_is_cut_at_its_limit(site: Site) -> None:
    """Chunks without a stated length are counted as they come."""
    head = b"POST /api/auth/guest HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n"
    chunk = b"4000\r\n" + b" " * 0x4000 + b"\r\n"
    assert b" 413 " in (await raw(site, head, *[chunk] * 5)).split(b"\r\n")[0]


async def test_a_body_that_does_not_come_is_not_waited_for(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """One byte and then silence."""
    monkeypatch.setattr(edge, "BODY_WAIT_S", 0.05)
    head = b"POST /api/auth/guest HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{"
    answer = await raw(site, head)
    assert b" 400 " in answer.split(b"\r\n")[0]
    assert b"body_too_slow" in answer


async def test_a_length_and_chunks_at_once_are_refused(site: Site) -> None:
    """Two proxies could read such a request differently."""
    head = (
        b"POST /api/auth/guest HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n"
    )
    answer = await raw(site, head)
    assert answer == b"" or b" 400 " in answer.split(b"\r\n")[0]


async def test_who_leaves_in_the_middle_is_forgotten(site: Site, services: Services) -> None:
    """Half a body and a closed connection: nothing is done and nothing stays."""
    _, writer = await asyncio.open_connection("127.0.0.1", int(site.address.rsplit(":", 1)[1]))
    writer.write(b"POST /api/auth/guest HTTP/1.1\r\nhost: x\r\ncontent-length: 50\r\n\r\n{")
    await writer.drain()
    writer.close()
    assert (await site.client.get("/healthz")).status_code == 200


@pytest.mark.parametrize(
    ("raised", "status", "effect"),
    [(Busy(), 503, "none"), (OutcomeUnknown(), 503, "unknown"), (RuntimeError("the inside"), 500, "unknown")],
)
async def test_failures_say_whether_anything_was_changed(
    site: Site, db: Database, monkeypatch: pytest.MonkeyPatch, raised: Exception, status: int, effect: str
) -> None:
    """`none` when it is safe to try again, `unknown` when one must look first; and nothing of our inside."""

    async def fail(*_args: object, **_named: object) -> None:
        raise raised

    person = await make_person(db)
    monkeypatch.setattr("voelgoed.accounts.usecases.change_own_account", fail)
    answer = await site.client.patch("/api/me", headers=person.headers, json={"name": "B", "locale": "en"})
    assert (answer.status_code, answer.json()["effect"]) == (status, effect)
    assert "the inside" not in answer.text
    assert "Traceback" not in answer.text


async def test_listed_sites_and_no_others_may_read(services: Services) -> None:
    """The exact origin, never a star; a preflight of anybody else is told nothing."""
    async with site_with(services, cors_origins=(OTHER_SITE,)) as site:
        allowed = await site.client.get("/healthz", headers={"origin": OTHER_SITE})
        assert allowed.headers["access-control-allow-origin"] == OTHER_SITE
        assert allowed.headers["access-control-allow-credentials"] == "true"
        for stranger in ("https://evil.example", f"{OTHER_SITE}.evil.example", "null", OTHER_SITE.upper()):
            answer = await site.client.get("/healthz", headers={"origin": stranger})
            assert "access-control-allow-origin" not in answer.headers
            assert "origin" in answer.headers["vary"]
        asked = {"access-control-request-method": "POST", "access-control-request-headers": "authorization"}
        yes = await site.client.options("/api/auth/guest", headers={"origin": OTHER_SITE, **asked})
        no = await site.client.options("/api/auth/guest", headers={"origin": "https://evil.example", **asked})
        assert (yes.status_code, no.status_code) == (204, 204)
        assert "authorization" in yes.headers["access-control-allow-headers"]
        assert not any(name.startswith("access-control-allow") for name in no.headers)


async def test_without_a_list_nobody_else_may_read(site: Site) -> None:
    """The default."""
    answer = await site.client.get("/healthz", headers={"origin": OTHER_SITE})
    assert not any(name.startswith("access-control") for name in answer.headers)


@pytest.mark.parametrize(
    ("proxies", "forwarded", "ip"),
    [
        (0, "203.0.113.7", "127.0.0.1"),
        (1, "203.0.113.7", "203.0.113.7"),
        (1, "198.51.100.1, 203.0.113.7", "203.0.113.7"),
        (2, "198.51.100.1, 203.0.113.7", "198.51.100.1"),
        (2, "203.0.113.7", "127.0.0.1"),
        (1, "", "127.0.0.1"),
    ],
)
async def test_only_our_own_proxies_are_believed(
    services: Services, db: Database, proxies: int, forwarded: str, ip: str
) -> None:
    """What a visitor writes into the header themselves counts for nothing."""
    owner = await make_person(db, role=Role.OWNER)
    async with site_with(services, trusted_proxies=proxies) as site:
        headers = {**owner.headers, "x-forwarded-for": forwarded}
        await site.client.patch("/api/me", headers=headers, json={"name": "B", "locale": "en"})
        seen = await site.client.get("/api/admin/audit", headers=owner.headers, params={"limit": 1})
        assert seen.json()["data"][0]["ip"] == ip


async def test_metrics_are_for_this_machine_or_with_the_token(services: Services, site: Site) -> None:
    """From elsewhere there is nothing at this address."""
    here = await site.client.get("/metrics")
    assert "voelgoedevents_http_requests_total" in here.text
    assert (await site.client.get("/metrics", headers={"x-forwarded-for": "203.0.113.7"})).status_code == 404
    async with site_with(services, metrics_token=SecretStr("let me in")) as guarded:
        assert (await guarded.client.get("/metrics")).status_code == 404
        right = await guarded.client.get("/metrics", headers={"authorization": "Bearer let me in"})
        assert right.status_code == 200


async def test_requests_are_counted_by_route_not_by_path(site: Site, db: Database) -> None:
    """However many ids there are, the numbers stay few."""
    place = await make_organization(db)
    await site.client.get(f"/api/storefronts/{place.slug}")
    text = (await site.client.get("/metrics")).text
    assert 'route="/api/storefronts/{slug}",status="200"' in text
    assert place.slug not in text


async def test_an_open_session_costs_no_query(site: Site, db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred requests of one person: the session is read once."""
    person = await make_person(db)
    reads: list[bytes] = []
    find = sessions_module.store.find_sessions  # type: ignore[attr-defined]  # the room's own store

    async def counted(conn: Any, digests: list[bytes]) -> Any:
        reads.extend(digests)
        return await find(conn, digests)

    monkeypatch.setattr(sessions_module.store, "find_sessions", counted)  # type: ignore[attr-defined]
    answers = await asyncio.gather(*(site.client.get("/api/me/sessions", headers=person.headers) for _ in range(100)))
    assert {answer.status_code for answer in answers} == {200}
    assert len(reads) == 1


async def test_every_list_has_a_limit(site: Site, db: Database) -> None:
    """Nobody asks for everything at once."""
    owner = await make_person(db, role=Role.OWNER)
    for path in ("members", "memberships", "api-keys", "audit"):
        for limit in ("0", "201", "-1", "many"):
            answer = await site.client.get(f"/api/admin/{path}", headers=owner.headers, params={"limit": limit})
            assert answer.status_code == 400, (path, limit)


async def test_ten_thousand_errors_are_not_listed(site: Site, db: Database) -> None:
    """A refusal is as bounded as a request."""
    owner = await make_person(db, role=Role.OWNER)
    body = json.dumps({f"field-{number}": 1 for number in range(3000)}).encode()
    started = time.perf_counter()
    answer: httpx2.Response = await site.client.post(
        "/api/admin/members", headers={**owner.headers, "content-type": "application/json"}, content=body
    )
    assert answer.status_code == 400
    assert len(answer.json()["details"]["errors"]) == 50
    print(f"{(time.perf_counter() - started) * 1e3:.0f} ms")


async def test_beyond_measure_asks_are_refused_before_anybody_is_looked_up(
    site: Site, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To refuse costs less than to serve: no session is read. Whoever only looks is served as ever."""
    path = f"/api/events/{new_id()}/seats/{new_id()}/reserve"
    assert (await site.client.post(path)).status_code == 401
    monkeypatch.setattr(services.lanes, "_waiting", CROWD)
    for asked in (path, f"/api/events/{new_id()}/holds"):
        refused = await site.client.post(asked)
        assert (refused.status_code, refused.json()["error"], refused.json()["effect"]) == (503, "busy", "none")
        assert refused.headers["retry-after"] == "1"
    assert (await site.client.get("/api/me")).status_code == 401
    monkeypatch.setattr(services.lanes, "_waiting", CROWD - 1)
    assert (await site.client.post(path)).status_code == 401
    monkeypatch.setattr(services.lanes, "_slow", {path.split("/")[3]})
    assert (await site.client.post(path)).status_code == 503
    assert (await site.client.post(f"/api/events/{new_id()}/holds")).status_code == 401  # another event has its pace
    assert (await site.client.post("/api/events/nonsense/holds")).status_code == 401
    monkeypatch.setattr(services.lanes, "_waiting", ITEMS_PER_BATCH - 1)
    assert (await site.client.post(path)).status_code == 401
