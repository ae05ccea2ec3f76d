"""Ticketing's questions to the database."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from uuid import UUID

import asyncpg
import msgspec

from voelgoed.db import Conn, load_queries
from voelgoed.ids import OrganizationId
from voelgoed.seating.model import Category
from voelgoed.ticketing.model import NewRule, StoredRule

Q = load_queries(Path(__file__).with_name("queries.sql"))


async def lock_rulebook(conn: Conn, organization_id: OrganizationId) -> None:
    await conn.execute(Q["lock_rulebook"], organization_id)


async def count_rules(conn: Conn, organization_id: OrganizationId) -> int:
    count: int = await conn.fetchval(Q["count_rules"], organization_id)
    return count


async def add_rule(conn: Conn, organization_id: OrganizationId, rule_id: UUID, new: NewRule) -> StoredRule:
    row = await conn.fetchrow(
        Q["add_rule"],
        organization_id,
        rule_id,
        new.name,
        new.currency,
        new.amount_minor,
        _json(new.by_category),
    )
    assert row is not None
    return _rule(row)


async def get_rule(conn: Conn, organization_id: OrganizationId, rule_id: UUID) -> StoredRule | None:
    row = await conn.fetchrow(Q["get_rule"], organization_id, rule_id)
    return _rule(row) if row else None


async def list_rules(
    conn: Conn, organization_id: OrganizationId, *, after: UUID | None, limit: int
) -> list[StoredRule]:
    return [_rule(row) for row in await conn.fetch(Q["list_rules"], organization_id, after, limit)]


async def find_rules(conn: Conn, organization_id: OrganizationId, ids: Iterable[UUID]) -> list[StoredRule]:
    return [_rule(row) for row in await conn.fetch(Q["find_rules"], organization_id, list(ids))]


async def share_rules(conn: Conn, organization_id: OrganizationId, ids: Iterable[UUID]) -> list[StoredRule]:
    return [_rule(row) for row in await conn.fetch(Q["share_rules"], organization_id, list(ids))]


async def lock_rule(conn: Conn, organization_id: OrganizationId, rule_id: UUID) -> StoredRule | None:
    row = await conn.fetchrow(Q["lock_rule"], organization_id, rule_id)
    return _rule(row) if row else None


async def save_rule(conn: Conn, rule: StoredRule) -> StoredRule:
    row = await conn.fetchrow(
        Q["save_rule"],
        rule.organization_id,
        rule.id,
        rule.name,
        rule.currency,
        rule.amount_minor,
        _json(rule.by_category),
    )
    assert row is not None
    return _rule(row)


async def remove_rule(conn: Conn, organization_id: OrganizationId, rule_id: UUID) -> None:
    await conn.execute(Q["remove_rule"], organization_id, rule_id)


async def find_events_of_rule(
    conn: Conn, organization_id: OrganizationId, rule_id: UUID, *, limit: int
) -> list[dict[str, str]]:
    rows = await conn.fetch(Q["find_events_of_rule"], organization_id, rule_id, limit)
    return [{"id": str(row["id"]), "name": row["name"]} for row in rows]


def _rule(row: asyncpg.Record) -> StoredRule:
    amounts = msgspec.json.decode(row["by_category"], type=dict[Category, int])
    return StoredRule(**dict(row) | {"by_category": amounts})


def _json(amounts: Mapping[str, int] | Mapping[Category, int]) -> str:
    return msgspec.json.encode(amounts).decode()
