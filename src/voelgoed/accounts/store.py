"""The accounts' questions to the database."""

from pathlib import Path

import asyncpg

from voelgoed.accounts.model import Organization
from voelgoed.db import Conn, load_queries
from voelgoed.errors import DomainError, Kind
from voelgoed.ids import OrganizationId

Q = load_queries(Path(__file__).with_name("queries.sql"))


class SlugTaken(DomainError):
    """Another organization has this address."""

    kind = Kind.CONFLICT
    code = "slug_taken"
    message = "Another organization already uses this address."


class OrganizationInvalid(DomainError):
    """The name or the address is not of the form that is allowed."""

    kind = Kind.INVALID
    code = "organization_invalid"
    message = "An address is 1 to 63 lower-case letters, digits and inner hyphens; a name is 1 to 200 characters."


async def add_organization(conn: Conn, organization_id: OrganizationId, slug: str, name: str) -> Organization:
    try:
        row = await conn.fetchrow(Q["add_organization"], organization_id, slug, name)
    except asyncpg.UniqueViolationError as taken:
        if taken.constraint_name != "organizations_slug_key":
            raise
        raise SlugTaken(slug=slug) from taken
    except asyncpg.CheckViolationError as wrong:
        raise OrganizationInvalid(slug=slug, constraint=wrong.constraint_name) from wrong
    assert row is not None
    return Organization(**row)


async def find_organization(conn: Conn, slug: str) -> Organization | None:
    row = await conn.fetchrow(Q["find_organization"], slug)
    return Organization(**row) if row else None
