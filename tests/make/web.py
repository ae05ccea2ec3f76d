"""A real server for tests, on the loop of the tests."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass

import httpx2

from voelgoed.demo.control import Control
from voelgoed.http.app import create_app
from voelgoed.http.server import serve
from voelgoed.wiring import Services


@dataclass(slots=True)
class Site:
    """Where it is, and a client that is there already."""

    address: str
    client: httpx2.AsyncClient


@contextlib.asynccontextmanager
async def serving(services: Services, control: Control | None = None) -> AsyncIterator[Site]:
    """Serve the application until the block ends; with a control it is a demonstration's."""
    closing, ready = asyncio.Event(), asyncio.Event()
    edge = create_app(services, closing, control)
    server = asyncio.create_task(
        serve(
            edge.take,
            services.settings,
            closing,
            turn_away=edge.turn_away,
            on_ready=ready.set,
            on_closing=edge.stop_reading,
        )
    )
    feed = asyncio.create_task(services.feed.run(closing))
    maps = asyncio.create_task(services.maps.run(closing))
    await asyncio.wait_for(ready.wait(), 10)
    address = services.settings.address
    async with httpx2.AsyncClient(base_url=address, timeout=60) as client:
        yield Site(address, client)
    closing.set()
    await asyncio.gather(server, feed, maps)
    edge.close()
