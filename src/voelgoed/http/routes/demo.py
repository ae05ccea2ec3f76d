"""The panel of a demonstration: how it stands, the crowd, trouble, and the audit. No installation has these routes.

They are added by `app.py` where the parent has named its control, and are no part of the contract. Whoever sees the
pages of a demonstration may use them. A page of another site may not: it cannot send the header that they ask for.
"""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Annotated, Any, Final, Literal, TypeVar
from uuid import UUID

import msgspec

from voelgoed.accounts.permissions import Action
from voelgoed.demo.control import LEVELS, Control, Json, OrderRefused
from voelgoed.errors import Busy, DomainError
from voelgoed.holds import auditing, reconcile
from voelgoed.http.context import Context
from voelgoed.http.edge import Stream, Whole
from voelgoed.http.exchange import Exchange
from voelgoed.http.guard import Route, Rule
from voelgoed.http.problems import CsrfFailed
from voelgoed.http.routes.health import Readiometer
from voelgoed.lifeline import until_first
from voelgoed.realtime.feed import TooManyStreams

T = TypeVar("T")

PANELS_MAX: Final = 32
UNSENT_BYTES_MAX: Final = 256 * 1024
TIERS_EVERY_S: Final = 2.0
SHOWN_TIERS_OF: Final = "theatre"
RETRY: Final = b"retry: 500\n\n"
DONE: Final = Whole(204, b"")
HEADER: Final = b"x-demo"
FINDINGS_MAX: Final = 5


class CrowdAsk(msgspec.Struct, forbid_unknown_fields=True):
    """How many arrive in a second."""

    per_s: Annotated[int, msgspec.Meta(ge=0, le=LEVELS[-1])]


class RedisAsk(msgspec.Struct, forbid_unknown_fields=True):
    """Whether Redis shall run."""

    up: bool


class KillAsk(msgspec.Struct, forbid_unknown_fields=True):
    """Which kind of process shall be ended without a word."""

    kind: Literal["web", "worker"]


class Panel:
    """What the panel asks of this process, and through it of the parent."""

    def __init__(self, control: Control, readiometer: Readiometer, closing: asyncio.Event) -> None:
        self._control, self._readiometer, self._closing = control, readiometer, closing
        self._panels = 0
        self._is_verifying = False
        self._tiers: Json | None = None
        self._tiers_at = 0.0

    def routes(self) -> Iterator[Route]:
        """Every route of the panel, with its rule."""
        streams = {"/api/demo/stream": self.follow, "/api/demo/verify": self.verify}
        orders = {"/api/demo/crowd": self.set_crowd, "/api/demo/redis": self.turn_redis, "/api/demo/kill": self.kill}
        for path, stream in streams.items():
            rule = Rule(action=Action.USE_DEMO, errors=(TooManyStreams, Busy), is_stream=True)
            yield Route(method="GET", template=path, rule=rule, hot=stream)
        for path, order in orders.items():
            rule = Rule(action=Action.USE_DEMO, errors=(CsrfFailed, Busy))
            yield Route(method="POST", template=path, rule=rule, hot=order)

    async def set_crowd(self, context: Context) -> Whole:
        """More people, or fewer."""
        ask = _read(context, CrowdAsk)
        return await self._order({"do": "crowd", "per_s": ask.per_s})

    async def turn_redis(self, context: Context) -> Whole:
        """Stop Redis, or start it."""
        ask = _read(context, RedisAsk)
        return await self._order({"do": "redis", "up": ask.up})

    async def kill(self, context: Context) -> Whole:
        """End a process of the demonstration, this one only where there is no other."""
        ask = _read(context, KillAsk)
        return await self._order({"do": "kill", "kind": ask.kind, "spare": os.getpid()})

    async def follow(self, context: Context) -> Stream:
        """How everything stands, several times a second: `state`, the first time with the last minute in `history`."""
        if self._panels >= PANELS_MAX:
            raise TooManyStreams(retry_after_s=5)

        async def relay(exchange: Exchange) -> None:
            async with self._control.follow() as line:
                while (state := await line.next()) is not None:
                    await self._look_at_tiers(context, state["events"].get(SHOWN_TIERS_OF))
                    _write(exchange, "state", {**state, "levels": LEVELS, "seen": await self._seen(context)})

        return Stream(self._shown(relay))

    async def verify(self, context: Context) -> Stream:
        """The audit: `begin`, a `check` as each is done, `done` with what was found."""
        if self._is_verifying:
            raise Busy

        async def audit(exchange: Exchange) -> None:
            self._is_verifying = True
            try:
                await self._verify(context, exchange)
            finally:
                self._is_verifying = False

        return Stream(self._shown(audit))

    def _shown(
        self, show: Callable[[Exchange], Awaitable[None]]
    ) -> Callable[[Exchange, Callable[[], None]], Awaitable[None]]:
        """A stream that ends with what it shows, with whoever looks, or with this process."""

        async def run(exchange: Exchange, begin: Callable[[], None]) -> None:
            self._panels += 1
            try:
                begin()
                exchange.write(RETRY)
                await until_first(exchange.until_gone(), self._closing.wait(), show(exchange))
            except OSError:
                pass  # the parent has gone, and this process goes too
            finally:
                self._panels -= 1
                exchange.finish()

        return run

    async def _order(self, order: Json) -> Whole:
        try:
            await self._control.ask(order)
        except OrderRefused as refused:
            raise Busy from refused
        return DONE

    async def _seen(self, context: Context) -> Json:
        """What this process sees: what it says to load balancers, and how the tiers behind it stand."""
        ready = await self._readiometer.ask()
        return {
            "pid": os.getpid(),
            "readiness": ready.status,
            "redis": ready.checks["redis"].state,
            "breaker": context.services.redis.state.value,
            "tiers": self._tiers,
        }

    async def _look_at_tiers(self, context: Context, event_id: str | None) -> None:
        """How many holds each tier knows of one event; looked at now and then, for everybody."""
        if event_id is None or time.monotonic() - self._tiers_at < TIERS_EVERY_S:
            return
        self._tiers_at = time.monotonic()
        services = context.services
        try:
            organization_id = await services.catalogue.whose(context.call, UUID(event_id))
            found = await reconcile.look(
                services.db, services.availability, services.projection, organization_id, UUID(event_id)
            )
        except DomainError:
            self._tiers = None
            return
        counts = {"memory": found.ets_count, "redis": found.redis_count, "postgres": found.db_count}
        self._tiers = {**counts, "agree": found.consistent}

    async def _verify(self, context: Context, exchange: Exchange) -> None:
        began = time.perf_counter()
        _write(exchange, "begin", {"checks": len(auditing.CHECKS)})

        def on_check(name: str, count: int) -> None:
            _write(exchange, "check", {"name": name, "found": count})

        found = await auditing.verify(context.services.db, on_check=on_check)
        said = [{"check": one.check, "id": one.id, "why": one.why} for one in found[:FINDINGS_MAX]]
        took = round(time.perf_counter() - began, 2)
        _write(exchange, "done", {"is_well": not found, "seconds": took, "findings": said})


def _read(context: Context, ask: type[T]) -> T:
    """What is asked, of somebody who is on our own page."""
    if HEADER not in context.headers:
        raise CsrfFailed
    return msgspec.json.decode(context.body, type=ask)


def _write(exchange: Exchange, name: str, said: Any) -> None:
    """A frame; who does not read misses some."""
    if exchange.unsent_bytes < UNSENT_BYTES_MAX:
        exchange.write(b"event: %b\ndata: %b\n\n" % (name.encode(), msgspec.json.encode(said)))
