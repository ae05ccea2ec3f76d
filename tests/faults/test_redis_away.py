"""Redis killed or frozen while every route is asked: all answer, and nothing waits for it more than once."""

import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.make.processes import free_port
from tests.make.web import Site, serving
from tests.security.test_matrix import CASES, enter, send
from voelgoed.breaker import State
from voelgoed.config import Settings
from voelgoed.db import Database
from voelgoed.embedded import Embedded, running
from voelgoed.redis import RedisLink
from voelgoed.wiring import Services, build_services

QUIET = {"/readyz"}  # asks Redis itself, past the breaker: that is what it is for


@pytest.fixture
async def valkey(data_dir: Path) -> AsyncIterator[Embedded]:
    async with running(Embedded(data_dir, with_postgres=False)) as servers:
        yield servers


@pytest.fixture
async def lonely(valkey: Embedded, db: Database, settings: Settings) -> AsyncIterator[Services]:
    """A process with a Redis of its own, which a test may hurt."""
    own = settings.model_copy(update={"port": free_port(), "guests_per_ip_per_minute": 10_000})
    async with RedisLink(valkey.valkey_url, connect_timeout_s=0.1, call_timeout_s=0.15, probe_every_s=3600) as link:
        services = build_services(own, db, link, b"k" * 32)
        yield services
        services.door.passwords.close()


def is_open(services: Services) -> bool:
    return services.redis.state is State.OPEN


async def ask_everything(site: Site, services: Services, role: str) -> dict[tuple[str, str], tuple[int, int]]:
    """Every route once: its status, and how often it waited for Redis."""
    answers = {}
    for (method, template), case in CASES.items():
        world, headers, _ = await enter(services.db, role)
        target = (await case.targets(world))["own"] if case.targets else ""
        path = template.replace(f"{{{case.parameter}}}", str(target)).replace("{user_id}", str(world.other.user_id))
        before = services.redis.awaited_count
        body = case.body(world) if case.body else None
        answer = await send(site, method, path + case.query, {**headers, **case.headers}, body)
        site.client.cookies.clear()
        answers[method, template] = (answer.status_code, services.redis.awaited_count - before)
    return answers


@pytest.mark.timeout(240)
@pytest.mark.parametrize("hurt", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "frozen"])
async def test_every_route_answers_without_redis(lonely: Services, valkey: Embedded, hurt: signal.Signals) -> None:
    """The same answers as with it; one wait at most until the breaker opens, none afterwards."""
    async with serving(lonely) as site:
        well = await ask_everything(site, lonely, "owner")
        assert max(waits for (_, path), (_, waits) in well.items() if path not in QUIET) <= 1
        assert is_open(lonely) is False

        os.kill(valkey.pids()["valkey"], hurt)
        hit = await ask_everything(site, lonely, "owner")
        assert {route: status for route, (status, _) in hit.items()} == {
            route: status for route, (status, _) in well.items()
        }
        assert max(waits for _, waits in hit.values()) <= 1
        assert is_open(lonely) is True

        without = await ask_everything(site, lonely, "super_admin")
        assert max(status for status, _ in without.values()) < 500
        assert sum(waits for _, waits in without.values()) == 0
    if hurt is signal.SIGSTOP:
        os.kill(valkey.pids()["valkey"], signal.SIGCONT)


async def test_guesses_are_limited_more_strictly_without_redis(lonely: Services, valkey: Embedded) -> None:
    """A throttle that lost its memory does not open: this process counts for itself, and sooner says no."""
    async with serving(lonely) as site:
        world, _, _ = await enter(lonely.db, "customer")
        os.kill(valkey.pids()["valkey"], signal.SIGKILL)
        ask = {"organization": world.asker.organization.slug, "email": "nobody@example.test", "password": "wrong"}
        statuses = [(await site.client.post("/api/auth/login", json=ask)).status_code for _ in range(12)]
    assert statuses[:3] == [401, 401, 401]
    assert 3 <= statuses.count(401) <= 5
    assert statuses[-1] == 429
