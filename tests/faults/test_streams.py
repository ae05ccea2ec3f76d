"""A web process stops in under a second although streams are open, and the streams are told."""

import asyncio
import signal
import sys
import time
from subprocess import PIPE, Popen

import httpx2

from tests.make.processes import free_port

PROGRAM = """
import asyncio, sys
from starlette.applications import Starlette
from starlette.responses import StreamingResponse
from starlette.routing import Route
from voelgoed.config import Settings
from voelgoed.http.server import serve
from voelgoed.http.exchange import asgi
from voelgoed.lifeline import stop_signals
from voelgoed.wiring import run_to_end

async def main():
    closing = stop_signals()
    async def stream(request):
        async def frames():
            yield b"event: snapshot\\n\\n"
            await closing.wait()
            yield b"event: bye\\n\\n"
        return StreamingResponse(frames(), media_type="text/event-stream")
    async def deaf(request):
        async def frames():
            yield b"event: snapshot\\n\\n"
            await asyncio.sleep(3600)
        return StreamingResponse(frames(), media_type="text/event-stream")
    app = Starlette(routes=[Route("/stream", stream), Route("/deaf", deaf)])
    settings = Settings(port=int(sys.argv[1]), stop_grace_s=float(sys.argv[2]))
    await serve(asgi(app), settings, closing, on_ready=lambda: print("ready", flush=True))

run_to_end(main())
"""


async def until_end(client: httpx2.AsyncClient, path: str, opened: asyncio.Semaphore) -> str:
    """Read a stream to its end; say when it has begun."""
    said = ""
    async with client.stream("GET", path) as response:
        async for part in response.aiter_text():
            if not said:
                opened.release()
            said += part
    return said


async def stop_with_streams(path: str, *, count: int, grace_s: float) -> tuple[list[object], int, float]:
    """Open streams, ask the process to stop; what each stream was told, the exit code, and the seconds it took."""
    port = free_port()
    with Popen([sys.executable, "-c", PROGRAM, str(port), str(grace_s)], stdout=PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        opened = asyncio.Semaphore(0)
        async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=20) as client:
            streams = [asyncio.create_task(until_end(client, path, opened)) for _ in range(count)]
            for _ in streams:
                await asyncio.wait_for(opened.acquire(), 20)
            started = time.monotonic()
            process.send_signal(signal.SIGTERM)
            code = await asyncio.to_thread(process.wait, 20)
            took = time.monotonic() - started
            said = await asyncio.gather(*streams, return_exceptions=True)
    return list(said), code, took


async def test_open_streams_are_ended_and_told() -> None:
    """Fifty open streams each get a last word, and the process is gone in under a second (the best of three)."""
    times = []
    for _ in range(3):
        said, code, took = await stop_with_streams("/stream", count=50, grace_s=5)
        assert said == ["event: snapshot\n\nevent: bye\n\n"] * 50
        assert code == 0
        assert took < 5, "the grace period ran out: the streams were cut, not ended"
        times.append(took)
    assert min(times) < 1.0, times


async def test_a_stream_that_does_not_listen_is_cut() -> None:
    """The belt to these braces: once the grace period is over the process goes anyway, and no sooner."""
    grace_s, margin_s = 0.3, 3.0
    said, code, took = await stop_with_streams("/deaf", count=1, grace_s=grace_s)
    assert code == 0
    assert grace_s <= took < grace_s + margin_s
    assert said != ["event: snapshot\n\nevent: bye\n\n"]
