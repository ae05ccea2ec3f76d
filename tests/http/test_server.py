"""A web process: it knows when it listens, and nobody outside can hold up its end."""

import asyncio
import os
import socket
from pathlib import Path

import pytest
import structlog

from tests.make.processes import free_port
from voelgoed.http import server
from voelgoed.http.app import create_app
from voelgoed.wiring import Services


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_only_a_socket_of_our_own_counts() -> None:
    """A sibling on the same port could answer; that says nothing about us. Looking leaves no file open."""
    port = free_port()
    before = open_files()
    assert not server._is_listening(port)
    child = os.fork()
    if child == 0:
        sibling = socket.socket()
        sibling.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        sibling.bind(("127.0.0.1", port))
        sibling.listen()
        os.read(0, 0)
        os.kill(os.getpid(), 19)  # waits there, listening, until it is ended
        os._exit(0)
    try:
        os.waitpid(child, os.WUNTRACED)
        socket.create_connection(("127.0.0.1", port)).close()
        assert not server._is_listening(port)
        with socket.socket() as ours:
            ours.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            ours.bind(("127.0.0.1", port))
            ours.listen()
            assert server._is_listening(port)
    finally:
        os.kill(child, 9)
        os.waitpid(child, 0)
    for _ in range(20):
        server._is_listening(port)
    assert open_files() == before


@pytest.mark.parametrize(
    "said", [b"", b"GET /healthz HTTP/1.1\r\nHost:", b"POST /api/auth/guest HTTP/1.1\r\nhost: x\r\n"]
)
async def test_half_a_request_does_not_hold_up_the_end(
    services: Services, said: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever has opened a connection and not finished asking is not waited for."""
    settings = services.settings.model_copy(update={"port": free_port(), "stop_grace_s": 30.0})
    closing, ready = asyncio.Event(), asyncio.Event()
    edge = create_app(services, closing)
    monkeypatch.setattr(server, "log", structlog.wrap_logger(None, wrapper_class=structlog.BoundLogger))
    with structlog.testing.capture_logs() as logs:
        serving = asyncio.create_task(
            server.serve(edge, settings, closing, on_ready=ready.set, is_idle=lambda: edge.in_flight_count == 0)
        )
        await asyncio.wait_for(ready.wait(), 10)
        _, writer = await asyncio.open_connection("127.0.0.1", settings.port)
        writer.write(said)
        await writer.drain()
        closing.set()
        await asyncio.wait_for(serving, 20)  # well within the grace of half a minute
    writer.close()
    edge.close()
    said_at_all = [entry["event"] for entry in logs]
    assert "web_ready" in said_at_all
    assert "web_stopped_late" not in said_at_all
