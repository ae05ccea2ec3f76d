"""Whether this process lives, and whether it can do its work: for load balancers, operators and the first page."""

import asyncio
import hmac
import time
from typing import Literal

from fastapi import APIRouter, Request, Response
from fastapi.responses import PlainTextResponse
from pydantic import BaseModel

from voelgoed import redis, schema
from voelgoed.accounts.permissions import Action
from voelgoed.config import VERSION
from voelgoed.db import CONNECT_FAILURES, Connection, connect, find_write_fault
from voelgoed.errors import StartRefused
from voelgoed.http.context import Caller
from voelgoed.http.guard import guarded
from voelgoed.http.problems import AddressUnknown
from voelgoed.telemetry import metrics
from voelgoed.wiring import Services

router = APIRouter(tags=["health"])

CHECK_TIMEOUT_S = 2.0
LOOPBACK = ("127.0.0.1", "::1")
FORWARDED = {b"x-forwarded-for", b"forwarded", b"x-real-ip", b"via"}
TRUSTED_S = 1.0  # one check serves all requests within this time, because the route is public
CONNECTION_S = 10.0
"""Reconnect after this time: a setting of the role or the database reaches new connections only."""


class Health(BaseModel):
    """The process answers."""

    status: Literal["ok"]


class Check(BaseModel):
    """One thing the process needs, and how it stands."""

    state: Literal["ok", "failed", "away"]
    message: str


class Readiness(BaseModel):
    """`degraded` still serves: Redis is away and everything goes to PostgreSQL."""

    status: Literal["ready", "degraded", "not_ready"]
    version: str
    checks: dict[Literal["database", "schema", "redis"], Check]


class Readiometer:
    """Checks the stores and caches the result for a second, so that the route costs nothing under load.

    It has its own connection: a pool that is busy with a rush must not look like a database that is down. The state is
    checked each time and never cached, so a process cannot stay not ready after the fault is gone.
    """

    def __init__(self, services: Services, closing: asyncio.Event) -> None:
        self._services = services
        self._closing = closing
        self._asking = asyncio.Lock()
        self._answer: Readiness | None = None
        self._answered_at = 0.0
        self._conn: Connection | None = None
        self._connected_at = 0.0

    async def ask(self) -> Readiness:
        async with self._asking:
            if self._answer is None or time.monotonic() - self._answered_at > TRUSTED_S:
                self._answer = await self._look()
                self._answered_at = time.monotonic()
        if self._closing.is_set():
            return self._answer.model_copy(update={"status": "not_ready"})
        return self._answer

    async def _look(self) -> Readiness:
        (database, at_schema), at_redis = await asyncio.gather(self._check_database(), check_redis(self._services))
        can_work = database.state == "ok" and at_schema.state == "ok"
        return Readiness(
            status="not_ready" if not can_work else "degraded" if at_redis.state == "away" else "ready",
            version=VERSION,
            checks={"database": database, "schema": at_schema, "redis": at_redis},
        )

    async def _check_database(self) -> tuple[Check, Check]:
        """Check the database and its schema. Drop a connection that fails or refuses writes."""
        try:
            async with asyncio.timeout(CHECK_TIMEOUT_S):
                conn = await self._connection()
                standing = await schema.status(conn)
                fault = await find_write_fault(conn)
        except (StartRefused, *CONNECT_FAILURES) as failed:
            self.close()
            why = Check(state="failed", message=f"PostgreSQL does not answer ({type(failed).__name__}).")
            return why, Check(state="failed", message="Not known while PostgreSQL does not answer.")
        if fault:
            self.close()
        return (
            Check(state="failed" if fault else "ok", message=fault or "PostgreSQL answers."),
            Check(state="ok" if standing.is_current else "failed", message=f"{standing.summary.capitalize()}."),
        )

    async def _connection(self) -> Connection:
        """Return the open connection, or a new one."""
        now = time.monotonic()
        if self._conn and now - self._connected_at >= CONNECTION_S:
            self.close()
        if self._conn is None or self._conn.is_closed():
            url = self._services.settings.database_url
            assert url is not None
            self._conn = await connect(url.get_secret_value(), application_name="voelgoed readiness")
            self._connected_at = now
        return self._conn

    def close(self) -> None:
        if self._conn:
            self._conn.terminate()
            self._conn = None


async def check_redis(services: Services) -> Check:
    """Redis may be away: it is never asked who owns a seat.

    The one place that asks it past the breaker, at most once a second: who looks wants to know how it is now.
    """
    try:
        async with asyncio.timeout(CHECK_TIMEOUT_S):
            away = await redis.why_away(services.redis.client)
    except TimeoutError:
        away = "TimeoutError"
    if away:
        return Check(state="away", message=f"Redis does not answer ({away}). Selling goes on without it, slower.")
    return Check(state="ok", message="Redis answers.")


@router.get("/healthz")
@guarded(Action.SEE_HEALTH)
async def healthz() -> Health:
    """Say that the process answers; touches nothing else."""
    return Health(status="ok")


@router.get("/readyz", responses={503: {"model": Readiness, "description": "Not ready to serve"}})
@guarded(Action.SEE_HEALTH)
async def readyz(request: Request, response: Response) -> Readiness:
    """Say whether requests can be served now, and what is missing."""
    readiness: Readiness = await request.app.state.readiometer.ask()
    response.status_code = 503 if readiness.status == "not_ready" else 200
    response.headers["cache-control"] = "no-store"
    return readiness


@router.get("/metrics", response_class=PlainTextResponse)
@guarded(Action.SEE_METRICS, AddressUnknown)
async def read_metrics(caller: Caller) -> PlainTextResponse:
    """Every number of the installation, for Prometheus: to this machine, or with the metrics token."""
    token = caller.services.settings.metrics_token
    shown = caller.headers.get(b"authorization", b"").removeprefix(b"Bearer ")
    is_shown = token is not None and hmac.compare_digest(shown, token.get_secret_value().encode())
    settings = caller.services.settings
    # Behind a proxy everybody seems to be here: then only the token counts.
    has_proxy = settings.public_url is not None or settings.trusted_proxies > 0
    is_here = caller.call.ip in LOOPBACK and not has_proxy and not FORWARDED & caller.headers.keys()
    if not is_shown and not (token is None and is_here):
        raise AddressUnknown
    body, content_type = await asyncio.to_thread(metrics.render)  # it reads the files of every process
    return PlainTextResponse(body, headers={"content-type": content_type, "cache-control": "no-store"})
