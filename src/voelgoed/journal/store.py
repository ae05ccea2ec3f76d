"""The journal's questions to the database."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import asyncpg
import msgspec

from voelgoed.db import Conn, load_queries
from voelgoed.ids import OrganizationId
from voelgoed.journal.model import Fact, Origin, Position, RecordedFact, SearchFilter

Q = load_queries(Path(__file__).with_name("queries.sql"))
_decode_data = msgspec.json.Decoder(dict[str, Any]).decode


async def record_all(
    conn: Conn, organization_id: OrganizationId, facts: Sequence[Fact], origin_ids: Sequence[UUID | None]
) -> None:
    await conn.execute(
        Q["record_all"],
        organization_id,
        [fact.kind for fact in facts],
        [fact.event_id for fact in facts],
        [fact.seat_id for fact in facts],
        [fact.version for fact in facts],
        [fact.actor_id for fact in facts],
        origin_ids,
        [fact.request_id for fact in facts],
        [fact.reason for fact in facts],
        [msgspec.json.encode(fact.data).decode() for fact in facts],
    )


async def add_origins(conn: Conn, organization_id: OrganizationId, origins: Mapping[UUID, Origin]) -> None:
    seen = origins.values()
    await conn.execute(
        Q["add_origins"],
        organization_id,
        list(origins),
        [origin.session_id for origin in seen],
        [origin.ip for origin in seen],
        [origin.user_agent for origin in seen],
    )


async def make_partitions(conn: Conn, *, months_ahead: int) -> int:
    """Make the months that are missing; how many were."""
    made: int = await conn.fetchval(Q["make_partitions"], months_ahead)
    return made


async def read_after(conn: Conn, position: Position, limit: int) -> list[RecordedFact]:
    rows = await conn.fetch(Q["read_after"], position.xid, position.seq, limit)
    return [_fact(row) for row in rows]


async def read_kinds_after(
    conn: Conn, position: Position, limit: int, patterns: Sequence[str], organization_id: OrganizationId | None
) -> tuple[list[RecordedFact], Position | None, int]:
    """The facts that are wanted, the last place that was looked at, and how many places were."""
    rows = await conn.fetch(Q["read_kinds_after"], position.xid, position.seq, limit, list(patterns), organization_id)
    if not rows:
        return [], None, 0
    facts = [_fact(row) for row in rows if row["is_wanted"]]
    return facts, Position(xid=rows[-1]["xid"], seq=rows[-1]["seq"]), rows[0]["looked_at"]


async def find_start(conn: Conn) -> Position:
    row = await conn.fetchrow(Q["find_start"])
    assert row is not None
    return Position(**row)


async def load_position(conn: Conn, reader: str) -> tuple[Position, bool] | None:
    """Where the reader is, and whether no transaction of this server has come that far."""
    row = await conn.fetchrow(Q["load_position"], reader)
    return (Position(xid=row["xid"], seq=row["seq"]), row["is_ahead"]) if row else None


async def save_position(conn: Conn, reader: str, position: Position) -> bool:
    """Move the reader forward; False when it was there or further already."""
    return await conn.fetchval(Q["save_position"], reader, position.xid, position.seq) is True


async def plan_for_values(conn: Conn) -> None:
    await conn.execute(Q["plan_for_values"])


async def search(
    conn: Conn,
    organization_id: OrganizationId,
    asked: SearchFilter,
    after: tuple[datetime, int] | None,
    limit: int,
) -> list[RecordedFact]:
    rows = await conn.fetch(
        Q["search"],
        organization_id,
        list(asked.kinds) or None,
        asked.actor_id,
        asked.event_id,
        asked.seat_id,
        asked.since,
        asked.until,
        *(after or (None, None)),
        limit,
    )
    return [_fact(row, _origin(row)) for row in rows]


async def empty_origins(conn: Conn, *, older_than: timedelta, limit: int) -> int:
    """Empty a batch; how many there were."""
    done = await conn.execute(Q["empty_origins"], older_than, limit)
    return int(done.removeprefix("UPDATE "))


def _fact(row: asyncpg.Record, origin: Origin | None = None) -> RecordedFact:
    """Every query has these columns first, in this order: a sale is read row by row, and names cost time."""
    at, kind, organization_id, event_id, seat_id, version = row[2:8]
    actor_id, origin_id, request_id, reason, data = row[8:13]
    return RecordedFact(
        xid=row[0],
        seq=row[1],
        recorded_at=at,
        kind=kind,
        organization_id=organization_id,
        event_id=event_id,
        seat_id=seat_id,
        version=version,
        actor_id=actor_id,
        origin_id=origin_id,
        request_id=request_id,
        reason=reason,
        data=_decode_data(data),
        origin=origin,
    )


def _origin(row: asyncpg.Record) -> Origin | None:
    if not row["has_origin"]:
        return None
    ip = row["ip"]
    return Origin(session_id=row["session_id"], ip=None if ip is None else str(ip), user_agent=row["user_agent"])
