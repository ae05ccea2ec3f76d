"""Limits that count networks, over HTTP and behind a proxy: no client gets more by having many addresses."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import httpx2
import pytest
import structlog
from structlog.testing import capture_logs

from tests.http.test_edge import site_with
from tests.make.accounts import PASSWORD, make_organization, make_person
from tests.make.holds import Sale
from tests.make.web import Site
from voelgoed.accounts import passwords as hashing, signing
from voelgoed.accounts.model import ANONYMOUS, Call, Organization, Role
from voelgoed.accounts.passwords import THREADS, Passwords
from voelgoed.db import Database
from voelgoed.events.model import OPERATOR
from voelgoed.http import forwarded
from voelgoed.ids import new_id
from voelgoed.seating import policies
from voelgoed.telemetry import metrics
from voelgoed.wiring import Services

FLOOD = 90
VISITOR = "198.51.100.7"


def seen_from(address: str) -> dict[str, str]:
    return {"x-forwarded-for": address}


async def sign_in(site: Site, place: Organization, email: str, password: str, address: str) -> httpx2.Response:
    about = {"organization": place.slug, "email": email, "password": password}
    return await site.client.post("/api/auth/login", json=about, headers=seen_from(address))


async def test_a_flood_of_sign_ins_does_not_delay_another_network(
    services: Services, db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ninety at once from one /56, each at another account: most get 429, a visitor waits for one hash of theirs."""
    place, email = await make_organization(db), f"{new_id().hex}@example.test"
    call = Call(actor=ANONYMOUS, request_id=new_id(), ip=VISITOR)
    about = {"organization": place.slug, "email": email, "password": PASSWORD, "name": "A", "locale": "en"}
    await signing.register(services.door, call, **about)
    begun: list[str] = []
    go_on, visitor_waits = threading.Event(), asyncio.Event()
    in_turn = Passwords._in_turn

    class Noting(ThreadPoolExecutor):
        def submit(self, work: Any, /, *args: Any, **kwargs: Any) -> Any:
            begun.append(work.args[1])
            return super().submit(work, *args, **kwargs)

    async def noted(self: Passwords, network: str, work: Any) -> Any:
        if network == "198.51.100.0/24":
            asyncio.get_running_loop().call_soon(visitor_waits.set)
        return await in_turn(self, network, work)

    monkeypatch.setattr(hashing, "ThreadPoolExecutor", Noting)
    monkeypatch.setattr(hashing, "_verify", lambda _hash, password: go_on.wait(60) and password == PASSWORD)
    monkeypatch.setattr(Passwords, "_in_turn", noted)
    admitted = THREADS + services.settings.passwords_waiting_per_network
    async with site_with(services, trusted_proxies=1) as site:
        pending = {
            asyncio.create_task(sign_in(site, place, f"{number}@example.test", "wrong", f"2001:db8:0:{number:x}::1"))
            for number in range(FLOOD)
        }
        refused = set[asyncio.Task[httpx2.Response]]()
        while len(refused) < FLOOD - admitted:
            done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
            refused |= done
        visitor = asyncio.create_task(sign_in(site, place, email, PASSWORD, VISITOR))
        await visitor_waits.wait()
        go_on.set()
        assert (await visitor).status_code == 201
        answers = [await task for task in pending]
    assert begun.index(PASSWORD) == THREADS + 1
    assert {task.result().status_code for task in refused} == {429}
    assert {task.result().headers["retry-after"] for task in refused} == {"1"}
    assert [answer.status_code for answer in answers] == [401] * admitted


@pytest.mark.parametrize(
    ("addresses", "outside"),
    [
        ([f"2001:db8:1:{number:x}::{number}" for number in (0, 1, 2, 0xFE, 0xFF)], "2001:db8:1:100::"),
        ([f"203.0.113.7:{1_000 + number}" for number in range(5)], "203.0.113.8:1000"),
        ([f"[2001:db8:2::1]:{1_000 + number}" for number in range(5)], "[2001:db8:2:100::1]:1000"),
        (["203.0.113.9", "::ffff:203.0.113.9", "[::ffff:203.0.113.9]:1", "203.0.113.9:1", "::FFFF:CB00:7109"], "::1"),
        ([f"garbage-{number}" for number in range(5)], "203.0.113.10"),
    ],
    ids=["IPv6 /56", "ports", "ports in IPv6", "IPv4 in IPv6", "garbage"],
)
async def test_guests_of_one_network_are_counted_together(
    services: Services, db: Database, addresses: list[str], outside: str
) -> None:
    """Four a minute: the fifth is refused, and the first one outside is not."""
    place = await make_organization(db)
    async with site_with(services, trusted_proxies=1, guests_per_ip_per_minute=4) as site:
        statuses = [
            (
                await site.client.post("/api/auth/guest", json={"organization": place.slug}, headers=seen_from(address))
            ).status_code
            for address in (*addresses, outside)
        ]
    assert statuses == [201] * 4 + [429, 201]


@pytest.mark.req("SEC-03")
@pytest.mark.parametrize(
    ("near", "outside"),
    [
        (["2001:db8::1", "2001:db8::ffff:ffff:ffff:ffff", "2001:db8:0:0:8000::"], "2001:db8:0:1::"),
        (["203.0.113.7", "::ffff:203.0.113.7", "203.0.113.7:443"], "203.0.113.8"),
    ],
    ids=["IPv6 /64", "IPv4 /32"],
)
async def test_holds_of_one_network_are_counted_together(
    services: Services, db: Database, place: Organization, sale: Sale, near: list[str], outside: str
) -> None:
    """Two for a network: the third is refused, the first address outside is not; the audit log has exact addresses."""
    async with db.transaction(place.id) as conn:
        limit = {"max_holds_per_ip": 2}
        await policies.save(conn, place.id, limit, by=OPERATOR, role=Role.SUPER_ADMIN, reason="in a test")
    lead = await make_person(db, place, Role.OWNER)
    statuses = []
    async with site_with(services, trusted_proxies=1) as site:
        for number, address in enumerate((*near, outside), 1):
            person = await make_person(db, place)
            path = f"/api/events/{sale.event.id}/seats/{sale.seat(f'S-A-{number}')}/reserve"
            answer = await site.client.post(path, headers={**person.headers, **seen_from(address)})
            statuses.append(answer.status_code)
        told = await site.client.get("/api/admin/audit", headers=lead.headers, params={"kind": "seat_reserved"})
    assert statuses == [201, 201, 409, 201]
    exact = [near[0], "203.0.113.7" if "." in near[0] else near[1], outside]
    assert [fact["ip"] for fact in told.json()["data"]] == exact[::-1]


async def test_headers_of_several_proxies_are_one_list(services: Services, db: Database) -> None:
    """A proxy may add a header line of its own; the client's own line in front counts for nothing."""
    owner = await make_person(db, role=Role.OWNER)
    lines = [("x-forwarded-for", "192.0.2.66"), ("x-forwarded-for", "203.0.113.7"), ("x-forwarded-for", "10.0.0.1")]
    async with site_with(services, trusted_proxies=2) as site:
        headers = [*owner.headers.items(), *lines]
        await site.client.patch("/api/me", headers=headers, json={"name": "B", "locale": "en"})
        told = await site.client.get("/api/admin/audit", headers=owner.headers, params={"limit": 1})
    assert told.json()["data"][0]["ip"] == "203.0.113.7"


@pytest.mark.parametrize("header", ["x-forwarded-for", "forwarded"])
def test_a_proxy_that_nobody_counted_is_noticed(monkeypatch: pytest.MonkeyPatch, header: str) -> None:
    """Each request is counted, one a minute is logged; the header is not believed and the answer is the same."""
    clock = iter((1_000.0, 1_059.9, 1_060.0))
    monkeypatch.setattr(forwarded, "log", structlog.wrap_logger(None, wrapper_class=structlog.BoundLogger))
    proxies = forwarded.Proxies(0, clock=lambda: next(clock))
    metrics.settle()
    before = metrics.FORWARDED_IGNORED._value.get()

    def client(**headers: str) -> str | None:
        pairs = [(name.encode(), value.encode()) for name, value in headers.items()]
        return proxies.client_of(_exchange(pairs))

    with capture_logs() as entries:
        for _ in range(3):
            assert client(**{header: "for=203.0.113.7"}) == "192.0.2.1"
            assert client(accept="*/*") == "192.0.2.1"
    metrics.settle()
    assert metrics.FORWARDED_IGNORED._value.get() == before + 3
    assert [entry["event"] for entry in entries] == ["forwarded_header_ignored"] * 2
    assert all("VOELGOED_TRUSTED_PROXIES" in entry["hint"] for entry in entries)


async def test_a_proxy_that_is_counted_is_not_noticed(services: Services) -> None:
    """What is expected is no warning."""
    metrics.settle()
    before = metrics.FORWARDED_IGNORED._value.get()
    async with site_with(services, trusted_proxies=1) as site:
        assert (await site.client.get("/healthz", headers=seen_from(VISITOR))).status_code == 200
        await site.client.get("/metrics", headers=seen_from(VISITOR))
    metrics.settle()
    assert metrics.FORWARDED_IGNORED._value.get() == before


def _exchange(pairs: list[tuple[bytes, bytes]]) -> Any:
    """What is known of a request when its client is looked for."""
    return SimpleNamespace(client="192.0.2.1", head=SimpleNamespace(pairs=pairs), headers=dict(pairs))
