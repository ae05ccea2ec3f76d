"""A web process: one event loop, one granian server, stopped in under a second even while streams are open.

Several processes share the port by SO_REUSEPORT; the parent keeps strangers off it.
"""

import asyncio
import contextlib
from collections.abc import Callable

import structlog
from granian.constants import HTTPModes, Interfaces
from granian.server.embed import Server
from starlette.types import ASGIApp

from voelgoed.config import Settings
from voelgoed.http.app import create_app
from voelgoed.lifeline import Lifeline, stop_signals
from voelgoed.wiring import open_services

log = structlog.get_logger(__name__)

BACKLOG = 4096
LISTENING_WAIT_S = 5.0


async def run(settings: Settings) -> None:
    """Serve until SIGTERM, SIGINT or the end of the parent."""
    lifeline = Lifeline()
    lifeline.hold()
    closing = stop_signals()
    async with open_services(settings, process="web") as services:
        app = create_app(services, closing)
        await serve(app, settings, closing, on_ready=lifeline.say_ready)
    log.info("web_stopped")


async def serve(app: ASGIApp, settings: Settings, closing: asyncio.Event, *, on_ready: Callable[[], None]) -> None:
    """Serve the application until `closing` is set; streams watch the same event and end themselves."""
    # No lifespan: what the application needs is open before it is made, so a failure there is ours to report.
    server = Server(
        app,
        address=settings.host,
        port=settings.port,
        interface=Interfaces.ASGINL,
        http=HTTPModes.http1,
        websockets=False,
        backlog=BACKLOG,
        log_enabled=False,
    )
    serving = asyncio.create_task(server.serve())
    asked = asyncio.create_task(closing.wait())
    await _until_listening(settings, serving)
    on_ready()
    log.info("web_ready", host=settings.host, port=settings.port)
    await asyncio.wait({serving, asked}, return_when=asyncio.FIRST_COMPLETED)
    asked.cancel()
    server.stop()
    try:
        await asyncio.wait_for(serving, timeout=settings.stop_grace_s)
    except TimeoutError:
        log.warning("web_stopped_late", grace_s=settings.stop_grace_s)


async def _until_listening(settings: Settings, serving: asyncio.Task[None]) -> None:
    """Return when a connection is accepted. The server has no signal of its own for this."""
    loop = asyncio.get_running_loop()
    give_up_at = loop.time() + LISTENING_WAIT_S
    while not serving.done() and loop.time() < give_up_at:
        with contextlib.suppress(OSError):
            _, writer = await asyncio.open_connection(settings.host, settings.port)
            writer.close()
            return
        await asyncio.sleep(0.01)
    if serving.done():
        await serving
    raise RuntimeError(f"the server does not listen on {settings.host}:{settings.port}")
