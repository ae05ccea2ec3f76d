"""The panel's routes: only a demonstration has them, and nobody uses them from another site."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from tests.demo.test_control import Hands
from tests.make.processes import free_port
from tests.make.web import Site, serving
from voelgoed.demo.control import LEVELS, Control, Parent
from voelgoed.wiring import Services

ROUTES = [
    ("GET", "/api/demo/stream"),
    ("GET", "/api/demo/verify"),
    ("POST", "/api/demo/crowd"),
    ("POST", "/api/demo/redis"),
    ("POST", "/api/demo/kill"),
]
HERE = {"X-Demo": "1"}


@pytest.fixture
def hands() -> Hands:
    return Hands()


@pytest.fixture
async def stage(services: Services, data_dir: Path, hands: Hands) -> AsyncIterator[Site]:
    """A web process of a demonstration, with a parent that only notes what it is asked."""
    async with AsyncExitStack() as held:
        parent = Parent(data_dir / "demo.sock", hands, {"events": {}}, per_s=2)
        await held.enter_async_context(parent.open())
        settings = services.settings.model_copy(update={"port": free_port()})
        yield await held.enter_async_context(serving(replace(services, settings=settings), Control(parent.path)))


async def frames(site: Site, path: str, *, until: str) -> dict[str, list[object]]:
    """What a stream says, up to the first of a name."""
    said: dict[str, list[object]] = {}
    async with asyncio.timeout(30), site.client.stream("GET", path) as answer:
        assert answer.headers["content-type"] == "text/event-stream"
        name = ""
        async for line in answer.aiter_lines():
            if line.startswith("event: "):
                name = line[7:]
            elif line.startswith("data: "):
                said.setdefault(name, []).append(msgspec.json.decode(line[6:]))
                if name == until:
                    break
    return said


@pytest.mark.parametrize(("method", "path"), ROUTES)
async def test_an_installation_has_no_panel(site: Site, method: str, path: str) -> None:
    """As if there had never been one: the address is not known."""
    answer = await site.client.request(
        method, path, headers=HERE, content=b'{"up": false}' if method == "POST" else None
    )
    assert answer.status_code == 404
    assert answer.json()["error"] == "not_found"


async def test_only_the_pages_of_a_demonstration_say_so(site: Site, stage: Site) -> None:
    """The shell asks for the panel there, and nowhere else; compressed or not, it is the same shell."""
    assert "data-demo" not in (await site.client.get("/")).text
    for encoding in ("identity", "gzip", "br"):
        shell = await stage.client.get("/", headers={"accept-encoding": encoding})
        assert "<html data-demo" in shell.text
        assert shell.headers["etag"] != (await site.client.get("/")).headers["etag"]


async def test_the_panel_is_told_how_everything_stands(stage: Site) -> None:
    """Crowd, processes, Redis; and what the web process itself sees."""
    said = await frames(stage, "/api/demo/stream", until="state")
    state = msgspec.convert(said["state"][0], dict)
    assert state["levels"] == list(LEVELS)
    assert [one["name"] for one in state["processes"]] == ["web-1", "web-2", "worker"]
    assert state["seen"]["readiness"] == "ready"
    assert state["seen"]["breaker"] == "closed"


async def test_orders_reach_the_parent(stage: Site, hands: Hands) -> None:
    """By anybody who sees the page; the process that was asked is spared where there is another."""
    assert (await stage.client.post("/api/demo/redis", headers=HERE, content=b'{"up": false}')).status_code == 204
    assert not hands.is_up
    assert (await stage.client.post("/api/demo/kill", headers=HERE, content=b'{"kind": "web"}')).status_code == 204
    assert hands.did == [("web", os.getpid())]
    assert (await stage.client.post("/api/demo/crowd", headers=HERE, content=b'{"per_s": 8}')).status_code == 204


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("crowd", b'{"per_s": 1000}'),
        ("crowd", b'{"per_s": -1}'),
        ("kill", b'{"kind": "postgres"}'),
        ("kill", b'{"kind": "web", "pid": 1}'),
        ("redis", b"{}"),
    ],
)
async def test_what_makes_no_sense_is_refused(stage: Site, hands: Hands, path: str, body: bytes) -> None:
    """Nothing but what the panel has."""
    assert (await stage.client.post(f"/api/demo/{path}", headers=HERE, content=body)).status_code == 400
    assert hands.did == []


async def test_a_page_of_another_site_can_do_nothing(stage: Site, hands: Hands) -> None:
    """A form from elsewhere has no such header; a script from elsewhere is not allowed to send it."""
    refused = await stage.client.post("/api/demo/redis", content=b'{"up": false}')
    assert (refused.status_code, refused.json()["error"]) == (403, "csrf_failed")
    asked = {"origin": "https://elsewhere.example", "access-control-request-method": "POST"}
    preflight = await stage.client.options("/api/demo/redis", headers=asked)
    assert "access-control-allow-origin" not in preflight.headers
    assert hands.is_up


async def test_who_is_not_there_is_said_to_be_busy(stage: Site, hands: Hands) -> None:
    """A process that is coming back cannot be killed again."""
    hands.processes = ["web-1"]
    answer = await stage.client.post("/api/demo/kill", headers=HERE, content=b'{"kind": "worker"}')
    assert answer.status_code == 503


async def test_the_audit_is_told_question_by_question(stage: Site) -> None:
    """How many there are, each as it is answered, the verdict, and how long it took."""
    said = await frames(stage, "/api/demo/verify", until="done")
    begin, done = msgspec.convert(said["begin"][0], dict), msgspec.convert(said["done"][0], dict)
    assert begin["checks"] == len(said["check"])
    assert done["seconds"] > 0
    found = sum(msgspec.convert(one, dict)["found"] for one in said["check"])
    assert done["is_well"] == (found == 0)
