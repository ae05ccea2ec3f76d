"""Health: the process lives, and whether it can do its work."""

import asyncio
import contextlib
import dataclasses
import threading

import httpx2
import pytest

from tests.make.processes import free_port
from tests.make.web import Site, serving
from voelgoed import redis, schema
from voelgoed.config import VERSION
from voelgoed.db import Connection, Database
from voelgoed.embedded import Embedded
from voelgoed.http import contract
from voelgoed.http.routes import health
from voelgoed.wiring import Services

NEWER = (
    "The database is newer than this version, which can run on it (functions {applied} in the database, {ours} here)."
)


@pytest.fixture
def looks_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """No remembered answers."""
    monkeypatch.setattr(health, "TRUSTED_S", -1.0)


async def test_a_living_process_says_so(site: Site) -> None:
    """Liveness touches no store."""
    answer = await site.client.get("/healthz")
    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})


async def test_a_process_that_can_work_is_ready(site: Site, looks_anew: None) -> None:
    """Database, schema and Redis are named one by one."""
    answer = await site.client.get("/readyz")
    assert answer.status_code == 200
    assert answer.json()["status"] == "ready"
    assert answer.json()["version"] == VERSION
    assert {name: check["state"] for name, check in answer.json()["checks"].items()} == {
        "database": "ok",
        "schema": "ok",
        "redis": "ok",
    }
    assert answer.headers["cache-control"] == "no-store"


async def test_without_redis_it_still_serves(services: Services, servers: Embedded) -> None:
    """Redis away is a lesser state, not a failure: the process stays in the rotation."""
    async with redis.RedisLink(f"unix://{servers.home}/nowhere.sock") as away:
        lame = dataclasses.replace(services, redis=away)
        lame = dataclasses.replace(lame, settings=services.settings.model_copy(update={"port": free_port()}))
        async with serving(lame) as site:
            answer = await site.client.get("/readyz")
    assert (answer.status_code, answer.json()["status"]) == (200, "degraded")
    assert answer.json()["checks"]["redis"]["state"] == "away"
    assert "goes on without it" in answer.json()["checks"]["redis"]["message"]


async def test_a_schema_that_is_behind_is_not_ready(site: Site, owner_conn: Connection, looks_anew: None) -> None:
    """New code on an old schema takes no visitors."""
    row = await owner_conn.fetchrow("delete from schema_functions where path like 'journal%' returning *")
    assert row is not None
    try:
        answer = await site.client.get("/readyz")
    finally:
        await owner_conn.execute("insert into schema_functions values ($1, $2, $3, $4)", *row)
    assert (answer.status_code, answer.json()["status"]) == (503, "not_ready")
    assert answer.json()["checks"]["schema"]["state"] == "failed"
    assert answer.json()["checks"]["database"]["state"] == "ok"


@pytest.mark.parametrize(
    ("later", "status", "state", "message"),
    [
        (-1, 503, "failed", "Functions {applied} in the database, {ours} here."),
        (0, 200, "ok", "Up to date, {migrations} migrations, functions {ours}."),
        (1, 200, "ok", NEWER),
    ],
)
async def test_a_node_is_ready_on_its_own_functions_and_on_later_ones(
    site: Site, owner_conn: Connection, looks_anew: None, later: int, status: int, state: str, message: str
) -> None:
    """During a rolling upgrade the nodes of the release before go on serving."""
    standing = await schema.status(owner_conn)
    ours = standing.functions_version
    await owner_conn.execute("update schema_functions set version = $1", str(ours + later))
    try:
        answer = await site.client.get("/readyz")
    finally:
        await owner_conn.execute("update schema_functions set version = $1", str(ours))
    assert answer.status_code == status
    assert answer.json()["checks"]["schema"] == {
        "state": state,
        "message": message.format(applied=ours + later, ours=ours, migrations=len(standing.applied)),
    }


async def test_a_process_that_is_closing_is_not_ready(services: Services) -> None:
    """The load balancer stops sending visitors before the process is gone."""
    closing = asyncio.Event()
    readiometer = health.Readiometer(services, closing)
    assert (await readiometer.ask()).status == "ready"
    closing.set()
    assert (await readiometer.ask()).status == "not_ready"
    readiometer.close()


async def test_a_crowd_that_asks_costs_one_look(services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    """The route is public: asking it a thousand times must not be a way to load the database."""
    looks = 0
    status = schema.status

    async def counted(conn: Connection) -> schema.Status:
        nonlocal looks
        looks += 1
        return await status(conn)

    monkeypatch.setattr(schema, "status", counted)
    readiometer = health.Readiometer(services, asyncio.Event())
    await asyncio.gather(*(readiometer.ask() for _ in range(1000)))
    readiometer.close()
    assert looks == 1


async def test_a_rush_is_not_a_failure(site: Site, db: Database, looks_anew: None) -> None:
    """Every connection of the pool is taken: the process is busy, not broken, and stays in the rotation."""
    async with contextlib.AsyncExitStack() as rush:
        for _ in range(10):
            await rush.enter_async_context(db.system_transaction())
        answer = await site.client.get("/readyz")
    assert (answer.status_code, answer.json()["status"]) == (200, "ready")


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/api/openapi.json", "/"])
async def test_head_is_get_without_a_body(site: Site, path: str) -> None:
    """Load balancers ask with HEAD; they get the status of the route, not of a page."""
    whole, head = await site.client.get(path), await site.client.head(path)
    assert (head.status_code, head.content) == (whole.status_code, b"")
    assert head.headers["content-type"] == whole.headers["content-type"]


async def test_head_of_a_process_that_is_not_ready_says_so(
    site: Site, owner_conn: Connection, looks_anew: None
) -> None:
    """The status is that of GET."""
    row = await owner_conn.fetchrow("delete from schema_migrations where number = 1 returning *")
    assert row is not None
    try:
        answer = await site.client.head("/readyz")
    finally:
        await owner_conn.execute("insert into schema_migrations values ($1, $2, $3, $4)", *row)
    assert answer.status_code == 503


@pytest.mark.parametrize(("method", "path"), [("POST", "/healthz"), ("DELETE", "/api/me"), ("GET", "/api/auth/login")])
async def test_a_wrong_method_is_told_the_right_ones(site: Site, method: str, path: str) -> None:
    """405 with what the address does do; and it is said before anybody is asked who they are."""
    answer = await site.client.request(method, path)
    assert answer.status_code == 405
    assert answer.json()["error"] == "method_not_allowed"
    assert answer.headers["allow"] == {"/healthz": "GET, HEAD", "/api/me": "GET, HEAD, PATCH"}.get(path, "POST")


async def test_an_unknown_address_of_the_api_is_not_a_page(site: Site) -> None:
    """A program that mistypes gets an error it can read, for every method."""
    for method, path in (("GET", "/api/no/such/thing"), ("POST", "/api/x"), ("DELETE", "/api/"), ("GET", "/api")):
        answer = await site.client.request(method, path)
        assert answer.status_code == 404
        assert answer.json()["error"] == "not_found"
        assert answer.json()["effect"] == "none"


async def test_the_contract_is_served_as_openapi(site: Site) -> None:
    """OpenAPI 3.1, where the README says it is."""
    answer = await site.client.get("/api/openapi.json")
    assert answer.json()["openapi"].startswith("3.1")
    assert {"/healthz", "/readyz"} <= answer.json()["paths"].keys()


async def test_the_contract_is_made_once_and_when_it_is_asked_for(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that begins does not wait for it, nor does anybody else while it is made; all get the same one."""
    going_on, made = threading.Event(), list[str]()

    def text() -> str:
        assert going_on.wait(10)
        made.append("the contract")
        return made[-1]

    monkeypatch.setattr(contract, "text", text)
    elsewhere = dataclasses.replace(services, settings=services.settings.model_copy(update={"port": free_port()}))
    async with serving(elsewhere) as site:
        asking = [asyncio.create_task(site.client.get("/api/openapi.json")) for _ in range(3)]
        assert (await site.client.get("/healthz")).status_code == 200
        assert made == []
        going_on.set()
        answers = await asyncio.gather(*asking)
    assert {answer.text for answer in answers} == {"the contract"}
    assert made == ["the contract"]


async def test_a_connection_is_kept_for_the_next_request(site: Site) -> None:
    """Two requests, one connection."""
    async with httpx2.AsyncClient(base_url=site.address, limits=httpx2.Limits(max_connections=1)) as client:
        answers = [await client.get("/healthz") for _ in range(3)]
    assert [answer.status_code for answer in answers] == [200, 200, 200]
    assert all(answer.headers.get("connection") != "close" for answer in answers)
