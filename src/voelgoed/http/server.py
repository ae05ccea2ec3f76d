"""A web process: one event loop, one granian server, stopped in under a second even while streams are open.

Several processes share the port by SO_REUSEPORT; the parent keeps strangers off it.
"""

import asyncio
import contextlib
import os
import socket
from collections.abc import Callable, Sequence
from pathlib import Path

import structlog
from granian.constants import HTTPModes, Interfaces
from granian.http import HTTP1Settings
from granian.server.embed import Server
from starlette.types import ASGIApp

from voelgoed.config import Settings
from voelgoed.holds.following import Follower
from voelgoed.http.app import create_app
from voelgoed.lifeline import Lifeline, stop_signals
from voelgoed.loop import Loop
from voelgoed.wiring import Services, open_services, spare_the_collector

log = structlog.get_logger(__name__)

BACKLOG = 4096
HEADERS_WAIT_MS = 10_000  # who has not said what they want by then is not waited for
LISTENING_WAIT_S = 5.0
LAST_BYTES_S = 0.25
IDLE_PACE_S = 0.01
MINUTE_S = 60.0
REFUSALS_S = 0.25
OPEN_FILES = Path("/proc/self/fd")


async def run(settings: Settings) -> None:
    """Serve until SIGTERM, SIGINT or the end of the parent."""
    lifeline = Lifeline()
    lifeline.hold()
    closing = stop_signals()
    async with open_services(settings, process="web") as services, asyncio.TaskGroup() as beside:
        for loop in loops(services):
            beside.create_task(loop.run(closing), name=loop.name)
        beside.create_task(services.sessions.follow_revocations(closing))
        beside.create_task(services.cache.follow(closing))
        beside.create_task(services.feed.run(closing))
        follower = Follower(services.db, services.redis, services.availability, services.projection)
        beside.create_task(follower.run(closing))
        edge = create_app(services, closing)
        spare_the_collector()
        is_idle = lambda: edge.in_flight_count == 0  # noqa: E731 - said once, here
        try:
            await serve(
                edge, settings, closing, on_ready=lifeline.say_ready, is_idle=is_idle, on_closing=edge.stop_reading
            )
        finally:
            closing.set()
            edge.close()
            await services.sessions.flush()
    log.info("web_stopped")


def loops(services: Services) -> Sequence[Loop]:
    """What a web process does beside serving."""

    async def flush_sessions() -> None:
        await services.sessions.flush()

    return [
        Loop(name="session_flush", tick=flush_sessions, pace_s=MINUTE_S),
        Loop(name="refusal_flush", tick=services.failures.flush, pace_s=REFUSALS_S),
    ]


async def serve(
    app: ASGIApp,
    settings: Settings,
    closing: asyncio.Event,
    *,
    on_ready: Callable[[], None],
    is_idle: Callable[[], bool] = lambda: False,
    on_closing: Callable[[], None] = lambda: None,
) -> None:
    """Serve the application until `closing` is set; streams watch the same event and end themselves."""
    # No lifespan: what the application needs is open before it is made, so a failure there is ours to report.
    server = Server(
        app,
        address=settings.host,
        port=settings.port,
        interface=Interfaces.ASGINL,
        http=HTTPModes.http1,
        http1_settings=HTTP1Settings(header_read_timeout=HEADERS_WAIT_MS),
        websockets=False,
        backlog=BACKLOG,
        log_enabled=False,
    )
    serving = asyncio.create_task(server.serve())
    asked = asyncio.create_task(closing.wait())
    await _until_listening(settings.port, serving)
    on_ready()
    log.info("web_ready", host=settings.host, port=settings.port)
    await asyncio.wait({serving, asked}, return_when=asyncio.FIRST_COMPLETED)
    asked.cancel()
    on_closing()
    server.stop()
    if not await _finished(serving, is_idle, grace_s=settings.stop_grace_s):
        log.warning("web_stopped_late", grace_s=settings.stop_grace_s)


async def _finished(serving: asyncio.Task[None], is_idle: Callable[[], bool], *, grace_s: float) -> bool:
    """Wait for the server, but not for connections on which nobody has asked for anything: only for our answers."""
    clock = asyncio.get_running_loop().time
    give_up_at = clock() + grace_s
    while clock() < give_up_at:
        if is_idle():
            await asyncio.wait({serving}, timeout=LAST_BYTES_S)
            return True
        await asyncio.wait({serving}, timeout=IDLE_PACE_S)
        if serving.done():
            return True
    return False


async def _until_listening(port: int, serving: asyncio.Task[None]) -> None:
    """Return when this very process listens. The server says nothing, and a connection could end at a sibling."""
    clock = asyncio.get_running_loop().time
    give_up_at = clock() + LISTENING_WAIT_S
    while not serving.done() and clock() < give_up_at:
        if _is_listening(port):
            return
        await asyncio.sleep(IDLE_PACE_S)
    if serving.done():
        await serving
    raise RuntimeError(f"the server does not listen on port {port}")


def _is_listening(port: int) -> bool:
    """Whether one of our own open files is a socket that listens on the port."""
    for entry in OPEN_FILES.iterdir():
        with contextlib.suppress(OSError):  # it may be closed while we look
            if not entry.is_socket():
                continue
            with socket.socket(fileno=os.dup(int(entry.name))) as ours:
                if ours.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN) and ours.getsockname()[1] == port:
                    return True
    return False
