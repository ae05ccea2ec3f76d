"""A web process: nobody outside can hold up its end."""

import asyncio

import pytest
import structlog

from tests.make.processes import free_port
from voelgoed.http import server
from voelgoed.http.app import create_app
from voelgoed.wiring import Services


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
        serving = asyncio.create_task(server.serve(edge.take, settings, closing, on_ready=ready.set))
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
