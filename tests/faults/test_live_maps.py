"""Redis dies and comes back, web processes die, while people buy and others look: everybody ends with the same map."""

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator

import httpx2
import pytest

from tests.realtime.test_maps import Model, Stream
from tests.sim.shop import Shop, shop
from tests.sim.trouble import Trouble
from voelgoed.config import Settings
from voelgoed.embedded import Embedded
from voelgoed.holds.hotmap import HotMap

pytestmark = pytest.mark.timeout(180)

VIEWERS = 12
"""The kernel deals them out: all of them to one of two processes it hardly ever does."""
WITHIN_S = 30
PAUSE_S = 0.05
HURTS = ("killed", "frozen", "flushed", "old")


@pytest.fixture(scope="module")
async def stall(servers: Embedded, settings: Settings, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Shop]:
    """Two web processes and a worker."""
    async with shop(servers, settings, tmp_path_factory.mktemp("maps"), f"maps_{settings.port}") as opened:
        yield opened


async def follow(stall: Shop, model: Model) -> None:
    """Look for as long as the test lasts: who is cut off, or told good-bye, comes back with what they have."""
    while True:
        headers = {"last-event-id": model.last_id} if model.last_id else {}
        model.status, model.is_over = None, False
        with contextlib.suppress(httpx2.HTTPError, StopAsyncIteration):
            async with (
                httpx2.AsyncClient(base_url=stall.address, timeout=WITHIN_S) as client,
                client.stream("GET", f"{stall.places}/stream", headers=headers) as response,
            ):
                assert response.status_code == 200, await response.aread()
                stream = Stream(response, model)
                while True:
                    await stream.next()
        await asyncio.sleep(PAUSE_S)


@contextlib.asynccontextmanager
async def looking(stall: Shop) -> AsyncIterator[list[Model]]:
    """People who look; what any of them finds wrong with a frame is wrong."""
    models = [Model() for _ in range(VIEWERS)]
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(follow(stall, model)) for model in models]
        await _until_all_show(models, await stall.find_map())
        yield models
        for task in tasks:
            task.cancel()


async def _until_all_show(models: list[Model], found: HotMap) -> None:
    async with asyncio.timeout(WITHIN_S):
        while behind := [model for model in models if not model.shows(found)]:
            assert all((one.epoch, one.version) <= (found.epoch, found.map_version) for one in behind)
            await asyncio.sleep(0.01)


def resyncs(models: list[Model]) -> int:
    return sum(frame.name == "resync" for model in models for frame in model.frames)


@pytest.mark.req("PUB-11")
@pytest.mark.parametrize("hurt", HURTS)
async def test_those_who_look_see_everything_whatever_becomes_of_redis(stall: Shop, hurt: str) -> None:
    """No line is cut, nobody goes back, nobody is told to start over, and in the end all show what PostgreSQL has."""
    troubles = Trouble(stall.redis, stall.wire, stall.chance, stall)
    async with looking(stall) as models:
        async with stall.buying():
            await stall.sold_more(20)
            before = [model.version for model in models]
            await getattr(troubles, hurt)()
            await stall.sold_more(20)
        assert stall.told.errors == []
        await _until_all_show(models, await stall.find_map())
        assert all(model.version > was for model, was in zip(models, before, strict=True))
        assert [sum(frame.name == "snapshot" for frame in model.frames) for model in models] == [1] * VIEWERS
        assert resyncs(models) == 0
        deltas = [sum(frame.name == "delta" for frame in model.frames) for model in models]
    await stall.agree()
    await stall.audit()
    print(f"\n{hurt}: {sorted(deltas)} frames of changes to {VIEWERS} viewers")


@pytest.mark.req("PUB-11")
async def test_those_who_are_cut_off_go_on_at_another_process(stall: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """A web process is killed, then Redis and the other one: everybody comes back, and none to an older map."""
    for name, value in (("UNSAFE_DATABASE", "1"), ("LOG_LEVEL", "error")):
        monkeypatch.setenv(f"VOELGOED_{name}", value)  # for processes that take the place of others
    async with looking(stall) as models:
        async with stall.buying():
            await stall.sold_more(10)
            os.kill(stall.tree.pids()["web-1"], signal.SIGKILL)
            await stall.sold_more(20)
            stall.redis.kill()
            os.kill(stall.tree.pids()["web-2"], signal.SIGKILL)
            await stall.sold_more(20)
            stall.redis.lose_dump()
            await stall.redis.start()
            await stall.sold_more(20)
        await _until_all_show(models, await stall.find_map())
        assert sum(frame.name == "snapshot" for model in models for frame in model.frames) > VIEWERS
        assert resyncs(models) <= VIEWERS  # one version by different changes, which is rare, and nothing else
    stall.told.errors.clear()  # lines were cut: whoever bought over them was not answered
    await stall.agree()
