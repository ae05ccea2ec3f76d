"""Anchors: what PostgreSQL does bare, on the same server, in the same run. Only the ratio to them means something."""

import asyncio
import re
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import asyncpg

from voelgoed.bench.ground import BenchRefused, Ground
from voelgoed.embedded import Embedded

DATABASE: Final = "voelgoed_anchor"
SCHEMA: Final = Path(__file__).with_name("anchor.sql")
SEATS: Final = 100_000
EVENTS: Final = 3
CLIENTS: Final = 32
BATCH: Final = 128
ONE: Final = r"""
\set n :n + 1
\set place (:n * :clients + :client_id) % :places
\set e :place / :seats
\set s :place % :seats
select hold_one(:e, :s, :place);
"""
MANY: Final = r"""
\set n :n + 1
\set place ((:n * :clients + :client_id) * :batch) % :places
\set e :place / :seats
\set s :place % :seats
select hold_many(:e, :s, :batch);
"""
TPS: Final = re.compile(r"^tps = ([0-9.]+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Anchors:
    """The bare tables beside ours, and pgbench."""

    ground: Ground
    pgbench: Path

    async def fill(self) -> None:
        """Everything free again."""
        conn = await asyncpg.connect(_url(self.ground.embedded))
        try:
            await conn.execute("truncate seats, holds, facts")
            await conn.execute(
                "insert into seats (event, seat) select e, s from generate_series(0, $1::integer - 1) e,"
                " generate_series(0, $2::integer - 1) s",
                EVENTS,
                SEATS,
            )
            await conn.execute("vacuum analyze seats")
            await conn.execute("checkpoint")
        finally:
            await conn.close()

    async def one(self, seconds: float) -> float:
        """Holds a second when each is a call and a commit of its own."""
        await self.fill()
        return await self._run(ONE, CLIENTS, seconds)

    async def many(self, seconds: float) -> float:
        """Holds a second when many are one call and one commit, on two connections."""
        await self.fill()
        return BATCH * await self._run(MANY, 2, seconds)

    async def expire(self, count: int) -> float:
        """Lapsed holds tidied away a second, 500 in a call."""
        await self.fill()
        conn = await asyncpg.connect(_url(self.ground.embedded))
        try:
            await conn.execute("select hold_many(0, 0, $1::integer)", count)
            await conn.execute("update holds set expires_at = clock_timestamp() - interval '1 second'")
            await conn.execute("vacuum analyze holds")
            began = time.perf_counter()
            while await conn.fetchval("select expire_many(500)"):
                pass
            return count / (time.perf_counter() - began)
        finally:
            await conn.close()

    async def _run(self, script: str, clients: int, seconds: float) -> float:
        path = self.ground.home / "anchor.pgbench"
        path.write_text(script)
        defined = {"n": -1, "clients": clients, "places": EVENTS * SEATS, "seats": SEATS, "batch": BATCH}
        child = await asyncio.create_subprocess_exec(
            str(self.pgbench),
            "--no-vacuum",
            "--protocol=prepared",
            f"--client={clients}",
            "--jobs=2",
            f"--time={max(1, round(seconds))}",
            *(f"--define={name}={value}" for name, value in defined.items()),
            f"--file={path}",
            _url(self.ground.embedded),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        said = (await child.communicate())[0].decode()
        found = TPS.search(said)
        if found is None:
            raise BenchRefused("pgbench could not", hint=said[:1_000])
        return float(found[1])


async def prepare(ground: Ground) -> Anchors:
    """Make the bare tables on the installation's own server."""
    admin = await asyncpg.connect(ground.embedded.admin_url)
    try:
        await admin.execute(f"create database {DATABASE}")
    finally:
        await admin.close()
    conn = await asyncpg.connect(_url(ground.embedded))
    try:
        await conn.execute(SCHEMA.read_text())
    finally:
        await conn.close()
    return Anchors(ground, ground.embedded.postgres_programs(to_run=False)[0] / "pgbench")


def _url(embedded: Embedded) -> str:
    """The anchors' own database, as the server's administrator: nothing is checked there."""
    return embedded.postgres_url("postgres", DATABASE)
