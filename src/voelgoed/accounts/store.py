"""The accounts' questions to the database."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import asyncpg
import msgspec

from voelgoed.accounts.model import ApiKey, Member, Membership, MembershipStatus, Organization, Role, User
from voelgoed.accounts.refusals import EmailTaken, MembershipExists, MembershipInvalid, OrganizationInvalid, SlugTaken
from voelgoed.db import Conn, load_queries
from voelgoed.ids import OrganizationId, UserId

Q = load_queries(Path(__file__).with_name("queries.sql"))
Row = Mapping[str, Any]


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


async def get_organization(conn: Conn, organization_id: OrganizationId) -> Organization | None:
    row = await conn.fetchrow(Q["get_organization"], organization_id)
    return Organization(**row) if row else None


async def list_organizations(conn: Conn, after: UUID | None, limit: int) -> list[Organization]:
    return [Organization(**row) for row in await conn.fetch(Q["list_organizations"], after, limit)]


async def set_suspended(conn: Conn, organization_id: OrganizationId, *, is_suspended: bool) -> Organization:
    row = await conn.fetchrow(Q["set_suspended"], organization_id, is_suspended)
    assert row is not None
    return Organization(**row)


async def add_user(
    conn: Conn, user_id: UserId, *, email: str | None, password_hash: str | None, name: str, locale: str, is_guest: bool
) -> User:
    try:
        row = await conn.fetchrow(Q["add_user"], user_id, email, password_hash, name, locale, is_guest)
    except asyncpg.UniqueViolationError as taken:
        raise EmailTaken from taken
    assert row is not None
    return User(**row)


async def find_user_by_email(conn: Conn, email: str) -> tuple[User, str | None] | None:
    """The person and the hash of their password."""
    return _with_hash(await conn.fetchrow(Q["find_user_by_email"], email))


async def get_user(conn: Conn, user_id: UserId) -> tuple[User, str | None] | None:
    """The person and the hash of their password."""
    return _with_hash(await conn.fetchrow(Q["get_user"], user_id))


async def lock_user(conn: Conn, user_id: UserId) -> tuple[str | None] | None:
    """The hash of the password as it is now, kept so until the transaction ends; None when the person is gone."""
    row = await conn.fetchrow(Q["lock_user"], user_id)
    return (row["password_hash"],) if row else None


async def claim_guest(
    conn: Conn, user_id: UserId, *, email: str, password_hash: str, name: str, locale: str
) -> User | None:
    """The same person, registered; None when it is no guest (any more)."""
    try:
        row = await conn.fetchrow(Q["claim_guest"], user_id, email, password_hash, name, locale)
    except asyncpg.UniqueViolationError as taken:
        raise EmailTaken from taken
    return User(**row) if row else None


async def change_user(conn: Conn, user_id: UserId, *, name: str, locale: str) -> User | None:
    row = await conn.fetchrow(Q["change_user"], user_id, name, locale)
    return User(**row) if row else None


async def set_password_hash(conn: Conn, user_id: UserId, password_hash: str) -> None:
    await conn.execute(Q["set_password_hash"], user_id, password_hash)


async def forget_user(conn: Conn, user_id: UserId) -> bool:
    return await conn.fetchval(Q["forget_user"], user_id) is not None


async def organizations_of_user(conn: Conn, user_id: UserId) -> list[Row]:
    return [dict(row) for row in await conn.fetch(Q["organizations_of_user"], user_id)]


async def grant_platform_role(conn: Conn, user_id: UserId, role: Role) -> None:
    await conn.execute(Q["grant_platform_role"], user_id, role)


async def withdraw_platform_role(conn: Conn, user_id: UserId, role: Role) -> None:
    await conn.execute(Q["withdraw_platform_role"], user_id, role)


async def lock_platform_roles(conn: Conn) -> None:
    await conn.execute(Q["lock_platform_roles"])


async def list_super_admins(conn: Conn) -> set[UserId]:
    return {row["user_id"] for row in await conn.fetch(Q["list_super_admins"])}


async def find_member_by_email(conn: Conn, organization_id: OrganizationId, email: str) -> Member | None:
    row = await conn.fetchrow(Q["find_member_by_email"], organization_id, email)
    return _member(row) if row else None


async def lock_owners(conn: Conn, organization_id: OrganizationId) -> set[UserId]:
    return {row["user_id"] for row in await conn.fetch(Q["lock_owners"], organization_id)}


async def join_as_customer(conn: Conn, organization_id: OrganizationId, user_id: UserId) -> None:
    await conn.execute(Q["join_as_customer"], organization_id, user_id)


async def set_member(conn: Conn, organization_id: OrganizationId, user_id: UserId, role: Role) -> None:
    await conn.execute(Q["set_member"], organization_id, user_id, role)


async def get_member(conn: Conn, organization_id: OrganizationId, user_id: UserId) -> Member | None:
    row = await conn.fetchrow(Q["get_member"], organization_id, user_id)
    return _member(row) if row else None


async def name_members(conn: Conn, organization_id: OrganizationId, ids: Collection[UUID]) -> list[Member]:
    return [_member(row) for row in await conn.fetch(Q["name_members"], organization_id, ids)]


async def list_members(
    conn: Conn,
    organization_id: OrganizationId,
    *,
    roles: Collection[Role] | None,
    words: str | None,
    after: UUID | None,
    limit: int,
) -> list[Member]:
    named = sorted(roles) if roles else None
    rows = await conn.fetch(Q["list_members"], organization_id, named, words, after, limit)
    return [_member(row) for row in rows]


async def name_people(conn: Conn, organization_id: OrganizationId, ids: Collection[UUID]) -> dict[UUID, str]:
    rows = await conn.fetch(Q["name_people"], organization_id, list(ids))
    return {row["id"]: row["name"] for row in rows}


async def remove_member(conn: Conn, organization_id: OrganizationId, user_id: UserId) -> bool:
    return await conn.fetchval(Q["remove_member"], organization_id, user_id) is not None


async def add_membership(
    conn: Conn,
    organization_id: OrganizationId,
    membership_id: UUID,
    *,
    user_id: UserId,
    tier: str,
    valid_from: datetime | None,
    valid_to: datetime | None,
) -> Membership:
    about = (organization_id, membership_id, user_id, tier, valid_from, valid_to)
    try:
        row = await conn.fetchrow(Q["add_membership"], *about)
    except asyncpg.UniqueViolationError as taken:
        raise MembershipExists(tier=tier) from taken
    except asyncpg.CheckViolationError as wrong:
        raise MembershipInvalid from wrong
    assert row is not None
    return _membership(row)


async def get_membership(conn: Conn, organization_id: OrganizationId, membership_id: UUID) -> Membership | None:
    row = await conn.fetchrow(Q["get_membership"], organization_id, membership_id)
    return _membership(row) if row else None


async def list_memberships(
    conn: Conn,
    organization_id: OrganizationId,
    *,
    user_id: UUID | None,
    status: MembershipStatus | None = None,
    words: str | None = None,
    after: UUID | None,
    limit: int,
) -> list[Membership]:
    rows = await conn.fetch(Q["list_memberships"], organization_id, user_id, status, words, after, limit)
    return [_membership(row) for row in rows]


async def revoke_membership(conn: Conn, organization_id: OrganizationId, membership_id: UUID) -> Membership | None:
    row = await conn.fetchrow(Q["revoke_membership"], organization_id, membership_id)
    return _membership(row) if row else None


async def revoke_memberships_of_user(conn: Conn, organization_id: OrganizationId, user_id: UserId) -> None:
    await conn.execute(Q["revoke_memberships_of_user"], organization_id, user_id)


async def add_session(
    conn: Conn, session_id: UUID, token_hash: bytes, user_id: UserId, organization_id: OrganizationId
) -> None:
    await conn.execute(Q["add_session"], session_id, token_hash, user_id, organization_id)


async def find_sessions(conn: Conn, token_hashes: Sequence[bytes]) -> dict[bytes, Row]:
    """Sessions that are open, by the hash of their token."""
    rows = await conn.fetch(Q["find_sessions"], token_hashes)
    return {row["token_hash"]: dict(row) for row in rows}


async def list_sessions(conn: Conn, user_id: UserId, *, idle_s: float) -> list[Row]:
    return [dict(row) for row in await conn.fetch(Q["list_sessions"], user_id, idle_s)]


async def revoke_session(conn: Conn, session_id: UUID, user_id: UserId) -> bool:
    return await conn.fetchval(Q["revoke_session"], session_id, user_id) is not None


async def revoke_sessions_of_user(conn: Conn, user_id: UserId, *, but: UUID | None = None) -> None:
    await conn.execute(Q["revoke_sessions_of_user"], user_id, but)


async def revoke_sessions_in(conn: Conn, organization_id: OrganizationId, user_id: UserId) -> None:
    await conn.execute(Q["revoke_sessions_in"], organization_id, user_id)


async def touch_sessions(conn: Conn, ids: Sequence[UUID], ages_s: Sequence[float]) -> None:
    await conn.execute(Q["touch_sessions"], ids, ages_s)


async def purge_sessions(conn: Conn, *, days: int, limit: int) -> int:
    return _count(await conn.execute(Q["purge_sessions"], days, limit))


async def add_api_key(
    conn: Conn,
    organization_id: OrganizationId,
    key_id: UUID,
    *,
    name: str,
    role: Role,
    hint: str,
    token_hash: bytes,
    created_by: UserId,
    expires_at: datetime | None,
) -> ApiKey:
    about = (organization_id, key_id, name, role, hint, token_hash, created_by, expires_at)
    row = await conn.fetchrow(Q["add_api_key"], *about)
    assert row is not None
    return _api_key(row)


async def get_api_key(conn: Conn, organization_id: OrganizationId, key_id: UUID) -> ApiKey | None:
    row = await conn.fetchrow(Q["get_api_key"], organization_id, key_id)
    return _api_key(row) if row else None


async def list_api_keys(conn: Conn, organization_id: OrganizationId, *, after: UUID | None, limit: int) -> list[ApiKey]:
    return [_api_key(row) for row in await conn.fetch(Q["list_api_keys"], organization_id, after, limit)]


async def revoke_api_key(conn: Conn, organization_id: OrganizationId, key_id: UUID) -> ApiKey | None:
    row = await conn.fetchrow(Q["revoke_api_key"], organization_id, key_id)
    return _api_key(row) if row else None


async def find_api_key(conn: Conn, token_hash: bytes) -> Row | None:
    row = await conn.fetchrow(Q["find_api_key"], token_hash)
    return dict(row) if row else None


async def touch_api_keys(conn: Conn, ids: Sequence[UUID], ages_s: Sequence[float]) -> None:
    await conn.execute(Q["touch_api_keys"], ids, ages_s)


async def add_one_time_token(
    conn: Conn,
    token_id: UUID,
    purpose: str,
    *,
    user_id: UserId | None,
    organization_id: OrganizationId,
    valid_s: float,
) -> None:
    await conn.execute(Q["add_one_time_token"], token_id, purpose, user_id, organization_id, valid_s)


async def get_one_time_token(conn: Conn, token_id: UUID) -> Row | None:
    row = await conn.fetchrow(Q["get_one_time_token"], token_id)
    return dict(row) if row else None


async def use_one_time_token(conn: Conn, token_id: UUID, purpose: str) -> tuple[UserId, OrganizationId] | None:
    row = await conn.fetchrow(Q["use_one_time_token"], token_id, purpose)
    return (row["user_id"], row["organization_id"]) if row else None


async def use_up_one_time_tokens(conn: Conn, user_id: UserId, purpose: str) -> None:
    await conn.execute(Q["use_up_one_time_tokens"], user_id, purpose)


async def purge_one_time_tokens(conn: Conn, *, limit: int) -> int:
    return _count(await conn.execute(Q["purge_one_time_tokens"], limit))


async def lock_idempotency_key(conn: Conn, organization_id: OrganizationId, owner_id: UUID, key: str) -> None:
    await conn.execute(Q["lock_idempotency_key"], str(organization_id), str(owner_id), key)


async def find_idempotency_key(
    conn: Conn, organization_id: OrganizationId, owner_id: UUID, key: str
) -> tuple[bytes, Row] | None:
    """What was asked with this key, as a fingerprint, and what came of it."""
    row = await conn.fetchrow(Q["find_idempotency_key"], organization_id, owner_id, key)
    return (row["fingerprint"], msgspec.json.decode(row["result"], type=dict[str, object])) if row else None


async def add_idempotency_key(
    conn: Conn, organization_id: OrganizationId, owner_id: UUID, key: str, *, fingerprint: bytes, result: Row
) -> None:
    stored = msgspec.json.encode(result).decode()
    await conn.execute(Q["add_idempotency_key"], organization_id, owner_id, key, fingerprint, stored)


async def keep_idempotency_partitions(conn: Conn, *, days_ahead: int) -> int:
    made: int = await conn.fetchval(Q["keep_idempotency_partitions"], days_ahead)
    return made


def _with_hash(row: asyncpg.Record | None) -> tuple[User, str | None] | None:
    if row is None:
        return None
    fields = dict(row)
    password_hash = fields.pop("password_hash")
    return User(**fields), password_hash


def _member(row: asyncpg.Record) -> Member:
    return Member(**{**row, "role": Role(row["role"])})


def _membership(row: asyncpg.Record) -> Membership:
    return Membership(**{**row, "status": MembershipStatus(row["status"])})


def _api_key(row: asyncpg.Record) -> ApiKey:
    return ApiKey(**{**row, "role": Role(row["role"])})


def _count(tag: str) -> int:
    """How many rows a statement says it changed."""
    return int(tag.rsplit(" ", 1)[1])
