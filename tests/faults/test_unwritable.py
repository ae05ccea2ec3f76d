"""PostgreSQL refuses writes. Buyers and staff get 503 with no effect, reads go on, and it all recovers by itself."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.conftest import TEMPLATE
from tests.make.accounts import PASSWORD, Person, make_organization, make_person
from tests.make.races import hall_layout
from tests.make.seating import Seated, seated_event
from tests.make.unwritable import Unwritable, unwritable
from tests.sim.shop import PIT, SEATS, Shop, shop
from voelgoed import schema
from voelgoed.accounts.model import Role
from voelgoed.accounts.passwords import Passwords
from voelgoed.cache import Cache
from voelgoed.config import Settings
from voelgoed.embedded import running
from voelgoed.ids import new_id
from voelgoed.redis import RedisLink
from voelgoed.seating.studio import Studio

pytestmark = pytest.mark.timeout(300)

FAULTS = {"full_disk": "The disk of PostgreSQL is full.", "read_only": "PostgreSQL is read only."}
TRIES_MAX = 400
"""A full disk refuses a write when a page of a table or index is full: each write fills them up."""
HOLDS = 60
WITHIN_S = 30

Write = Callable[[], Awaitable[httpx2.Response]]


@pytest.fixture(scope="module")
async def database_server() -> AsyncIterator[Unwritable]:
    """A PostgreSQL of this module's own."""
    with unwritable() as faulty:
        async with running(faulty.servers) as servers:
            await schema.create_database(servers.admin_url, TEMPLATE)
            await schema.migrate(servers.postgres_url(schema.OWNER, TEMPLATE))
            yield faulty


@pytest.fixture(scope="module")
async def stall(
    database_server: Unwritable, settings: Settings, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Shop]:
    """Two web processes and a worker on it."""
    folder: Path = tmp_path_factory.mktemp("unwritable")
    async with shop(database_server.servers, settings, folder, f"unwritable_{settings.port}") as opened:
        yield opened


@pytest.fixture(scope="module")
async def client(stall: Shop) -> AsyncIterator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(base_url=stall.address, timeout=20) as opened:
        yield opened


class Writes:
    """One write of each kind by a member of staff. Each call is a new write that would succeed."""

    def __init__(self, client: httpx2.AsyncClient, member: Person, seated: Seated, holds: Iterator[str]) -> None:
        self._client, self._member, self._seated, self._holds = client, member, seated, holds
        self._event = f"/api/events/{seated.event.id}"
        self._ordinals = iter(range(SEATS))

    async def reserve_seat(self) -> httpx2.Response:
        return await self._post(f"{self._event}/seats/{self._seat()}/reserve", {})

    async def reserve_several(self) -> httpx2.Response:
        return await self._post(f"{self._event}/holds", {"seat_ids": [self._seat(), self._seat()]})

    async def reserve_capacity(self) -> httpx2.Response:
        return await self._post(f"{self._event}/zones/{self._seated.hall.zone_id('P1')}/reserve", {"quantity": 1})

    async def extend(self) -> httpx2.Response:
        return await self._post(f"/api/holds/{next(self._holds)}/extend", None)

    async def release(self) -> httpx2.Response:
        return await self._client.delete(f"/api/holds/{next(self._holds)}", headers=self._member.headers)

    async def create_guest(self) -> httpx2.Response:
        return await self._client.post("/api/auth/guest", json={"organization": self._member.organization.slug})

    async def sign_in(self) -> httpx2.Response:
        body = {"organization": self._member.organization.slug, "email": self._member.email, "password": PASSWORD}
        return await self._client.post("/api/auth/login", json=body)

    async def create_venue(self) -> httpx2.Response:
        body = {"name": "Hall", "slug": f"hall-{new_id().hex}", "timezone": "Africa/Johannesburg", "max_capacity": 10}
        return await self._post("/api/admin/venues", body)

    def all(self) -> Mapping[str, Write]:
        return {name: getattr(self, name) for name, value in vars(type(self)).items() if _is_write(name, value)}

    def _seat(self) -> str:
        return str(self._seated.hall.seat_id(next(self._ordinals)))

    async def _post(self, path: str, body: object) -> httpx2.Response:
        return await self._client.post(path, json=body, headers=self._member.headers)


def _is_write(name: str, value: object) -> bool:
    return asyncio.iscoroutinefunction(value) and not name.startswith("_")


@pytest.fixture
async def writes(stall: Shop, client: httpx2.AsyncClient) -> Writes:
    """Writes in an organization of their own, with holds to extend and to release."""
    place = await make_organization(stall.db)
    studio = Studio(stall.db, Cache(link=RedisLink("redis://127.0.0.1:1")))
    layout = hall_layout(seats=SEATS, pits=[PIT])
    seated = await seated_event(stall.db, studio, place, layout, status="published")
    passwords = Passwords()
    password_hash = await passwords.hash(PASSWORD)
    passwords.close()
    member = await make_person(stall.db, place, Role.OWNER, password_hash=password_hash)
    first = Writes(client, member, seated, iter(()))
    held = [(await first.reserve_capacity()).json()["data"]["hold_id"] for _ in range(HOLDS)]
    return Writes(client, member, seated, iter(held))


async def refusal_of(write: Write) -> httpx2.Response:
    """Write until it is refused; every write before that succeeds."""
    for _ in range(TRIES_MAX):
        answer = await write()
        if not answer.is_success:
            return answer
    raise AssertionError("nothing was refused")


def refused(answer: httpx2.Response) -> tuple[int, str, str, str | None]:
    body = answer.json()
    return answer.status_code, body["error"], body["effect"], answer.headers.get("retry-after")


async def readiness(client: httpx2.AsyncClient, status: str) -> Mapping[str, Any]:
    """Wait for a status of every process: each request may be answered by another."""
    found: dict[str, Any] = {}
    seen = 0
    async with asyncio.timeout(WITHIN_S):
        while seen < 10:
            async with httpx2.AsyncClient(base_url=client.base_url) as fresh:
                found = (await fresh.get("/readyz")).json()
            seen = seen + 1 if found["status"] == status else 0
    return found


async def count_rows(stall: Shop) -> list[int]:
    """How many rows there are of everything that is written here."""
    tables = ("seat_holds", "sessions", "users", "venues", "journal where kind <> 'seat_reserve_failed'")
    async with stall.db.system_transaction() as conn:
        return [await conn.fetchval(f"select count(*) from {table}") for table in tables]


@pytest.mark.parametrize("fault", FAULTS)
async def test_refused_write_is_503_and_has_no_effect(
    database_server: Unwritable, stall: Shop, client: httpx2.AsyncClient, writes: Writes, fault: str
) -> None:
    """Every kind of write, by buyers and by staff; the same writes succeed when the fault is gone."""
    async with getattr(database_server, fault)():
        for name, write in writes.all().items():
            assert refused(await refusal_of(write)) == (503, "busy", "none", "1"), name
        before = await count_rows(stall)
        again = {name: await write() for name, write in writes.all().items()}
        stopped = {name: answer for name, answer in again.items() if not answer.is_success}
        assert {refused(answer) for answer in stopped.values()} == {(503, "busy", "none", "1")}
        if fault == "read_only":
            assert stopped.keys() == again.keys()
            assert await count_rows(stall) == before
    for name, write in writes.all().items():
        answer = await write()
        assert answer.is_success, (name, answer.text)


@pytest.mark.parametrize("fault", FAULTS)
async def test_sale_goes_on_after_the_fault_without_a_restart(
    database_server: Unwritable, stall: Shop, client: httpx2.AsyncClient, fault: str
) -> None:
    """Under load no write ends in 500 or in doubt. Redis and every process show what PostgreSQL has in the end."""
    processes = stall.tree.pids() | database_server.servers.pids()
    stall.told.errors.clear()
    async with stall.buying():
        await stall.sold_more(20)
        async with getattr(database_server, fault)():
            async with asyncio.timeout(WITHIN_S):
                while len(stall.told.errors) < 40:
                    await asyncio.sleep(0.01)
            await readiness(client, "not_ready")
        await readiness(client, "ready")
        await stall.sold_more(20)
    answers = [json.loads(text.split(": ", 1)[1]) for text in stall.told.errors]
    assert {(answer["error"], answer["effect"]) for answer in answers} == {("busy", "none")}
    await stall.agree()
    await stall.audit()
    assert stall.tree.pids() | database_server.servers.pids() == processes


@pytest.mark.parametrize("fault", FAULTS)
async def test_readiness_names_the_fault_and_forgets_it(
    database_server: Unwritable, client: httpx2.AsyncClient, fault: str
) -> None:
    """Reads still work, so a check that only reads would report a healthy database."""
    await readiness(client, "ready")
    async with getattr(database_server, fault)():
        found = await readiness(client, "not_ready")
        assert found["checks"]["database"] == {"state": "failed", "message": FAULTS[fault]}
        assert found["checks"]["schema"]["state"] == "ok"
    assert (await readiness(client, "ready"))["checks"]["database"]["state"] == "ok"


@pytest.mark.parametrize("fault", FAULTS)
async def test_reads_go_on(database_server: Unwritable, stall: Shop, client: httpx2.AsyncClient, fault: str) -> None:
    """A buyer sees the map and the basket, and staff see their venues."""
    reader = stall.people[0]
    async with getattr(database_server, fault)():
        for path in (
            stall.places,
            f"{stall.places}/seatmap",
            f"{stall.places}/holds/mine",
            "/api/me",
            "/api/admin/venues",
        ):
            answer = await client.get(path, headers=reader.headers)
            assert answer.status_code == 200, (path, answer.text)
