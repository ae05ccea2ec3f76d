"""Whether this process lives, and whether it can do its work: for load balancers, operators and the first page."""

import asyncio
import time
from typing import Literal

import asyncpg
from fastapi import APIRouter, Request, Response
from pydantic import BaseModel

from voelgoed import redis, schema
from voelgoed.config import VERSION
from voelgoed.db import Database
from voelgoed.errors import DomainError
from voelgoed.wiring import Services

router = APIRouter(tags=["health"])

CHECK_TIMEOUT_S = 2.0
TRUSTED_S = 1.0  # an answer serves everybody who asks within this time: the route is public


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
    """Asks the stores, and remembers the answer for a second so that the route costs nothing under load."""

    def __init__(self, services: Services, closing: asyncio.Event) -> None:
        self._services = services
        self._closing = closing
        self._asking = asyncio.Lock()
        self._answer: Readiness | None = None
        self._answered_at = 0.0

    async def ask(self) -> Readiness:
        async with self._asking:
            if self._answer is None or time.monotonic() - self._answered_at > TRUSTED_S:
                self._answer = await self._look()
                self._answered_at = time.monotonic()
        if self._closing.is_set():
            return self._answer.model_copy(update={"status": "not_ready"})
        return self._answer

    async def _look(self) -> Readiness:
        (database, at_schema), at_redis = await asyncio.gather(
            check_database(self._services.db), check_redis(self._services)
        )
        can_work = database.state == "ok" and at_schema.state == "ok"
        return Readiness(
            status="not_ready" if not can_work else "degraded" if at_redis.state == "away" else "ready",
            version=VERSION,
            checks={"database": database, "schema": at_schema, "redis": at_redis},
        )


async def check_database(db: Database) -> tuple[Check, Check]:
    """The database and its schema, in one visit."""
    try:
        async with asyncio.timeout(CHECK_TIMEOUT_S), db.system_transaction() as conn:
            standing = await schema.status(conn)
    except (DomainError, OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError) as failed:
        why = Check(state="failed", message=f"PostgreSQL does not answer ({type(failed).__name__}).")
        return why, Check(state="failed", message="Not known while PostgreSQL does not answer.")
    return Check(state="ok", message="PostgreSQL answers."), Check(
        state="ok" if standing.is_current else "failed", message=f"{standing.summary.capitalize()}."
    )


async def check_redis(services: Services) -> Check:
    """Redis may be away: it is never asked who owns a seat."""
    try:
        async with asyncio.timeout(CHECK_TIMEOUT_S):
            away = await redis.why_away(services.redis)
    except TimeoutError:
        away = "TimeoutError"
    if away:
        return Check(state="away", message=f"Redis does not answer ({away}). Selling goes on without it, slower.")
    return Check(state="ok", message="Redis answers.")


@router.get("/healthz")
async def healthz() -> Health:
    """Say that the process answers; touches nothing else."""
    return Health(status="ok")


@router.get("/readyz", responses={503: {"model": Readiness, "description": "Not ready to serve"}})
async def readyz(request: Request, response: Response) -> Readiness:
    """Say whether requests can be served now, and what is missing."""
    readiness: Readiness = await request.app.state.readiometer.ask()
    response.status_code = 503 if readiness.status == "not_ready" else 200
    response.headers["cache-control"] = "no-store"
    return readiness
