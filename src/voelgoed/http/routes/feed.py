"""The organization's feed, as a stream that a browser follows."""

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated, Final

from fastapi import APIRouter, Header
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from voelgoed.accounts.permissions import Action, may
from voelgoed.http.context import Caller, Context
from voelgoed.http.guard import guarded
from voelgoed.realtime.feed import Feed, TooManyStreams, Watcher, position_of

router = APIRouter(prefix="/api/admin", tags=["events"])

HEARTBEAT_S: Final = 15.0
LastEventId = Annotated[str | None, Header(alias="Last-Event-ID", max_length=40)]


class FeedStream(StreamingResponse):
    """Server-sent events of one watcher, who is forgotten however the stream ends."""

    media_type = "text/event-stream"

    def __init__(self, feed: Feed, watcher: Watcher, frames: AsyncIterator[bytes]) -> None:
        super().__init__(frames, headers={"x-accel-buffering": "no"})
        self._feed, self._watcher = feed, watcher

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._feed.close(self._watcher)


@router.get("/feed", response_class=FeedStream, status_code=200)
@guarded(Action.SEE_EVENTS, TooManyStreams, is_stream=True)
async def follow_feed(caller: Caller, last_event_id: LastEventId = None) -> FeedStream:
    """Every change of the organization's events, venues, gates, layouts, prices and policy, as it is committed.

    The first frame is `hello`. Each frame has an id: a client that comes back with it as `Last-Event-ID` gets what it
    missed, or `resync` when that is too much. `occupancy` says how full an event is that has moved, at most once a
    second, and has no id. `bye` is the last word of a process that stops.
    """
    feed, actor = caller.services.feed, caller.call.actor
    assert actor.id is not None, "nobody is let in who is nobody"
    after = position_of(last_event_id) if last_event_id else None
    watcher = await feed.open(caller.call.organization_id, actor.id, after=after)
    return FeedStream(feed, watcher, _frames(watcher, caller))


async def _frames(watcher: Watcher, caller: Context) -> AsyncIterator[bytes]:
    """Frames as they come, and a sign of life in between; over when the session is, or the right to watch."""
    clock = asyncio.get_running_loop().time
    look_at = clock() + HEARTBEAT_S
    waiting = asyncio.ensure_future(watcher.next_frame())
    try:
        while True:  # as long as somebody watches
            await asyncio.wait({waiting}, timeout=max(0.0, look_at - clock()))
            if clock() >= look_at:  # however much there is to tell: whoever may not watch any more is told nothing
                if not await _may_still_watch(caller):
                    return
                look_at = clock() + HEARTBEAT_S
                yield b": still here\n\n"
            if waiting.done():
                frame = waiting.result()
                if frame is None:
                    return
                yield frame
                waiting = asyncio.ensure_future(watcher.next_frame())
    finally:
        waiting.cancel()


async def _may_still_watch(caller: Context) -> bool:
    """Whether the session is alive, which counts as using it, and still allows this."""
    actor = await caller.services.sessions.find(caller.token) if caller.token else None
    return actor is not None and may(actor, Action.SEE_EVENTS)
