"""Idempotency keys: the same ask with the same key has one effect, and the same answer.

The row commits with the effect itself, so there is no moment at which one is there without the other.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from voelgoed.accounts import store
from voelgoed.accounts.model import Call
from voelgoed.db import Conn, Database
from voelgoed.errors import DomainError, Kind

DAYS_AHEAD = 14


class IdempotencyKeyReused(DomainError):
    """The key was used for something else."""

    kind = Kind.MISMATCH
    code = "idempotency_key_reused"
    message = "This Idempotency-Key was already used for a different request."


@dataclass(frozen=True, slots=True)
class Once:
    """A key chosen by the caller, and a fingerprint of what is asked with it."""

    key: str
    fingerprint: bytes

    @classmethod
    def of(cls, key: str | None, verb: str, ask: object) -> "Once | None":
        """The fingerprint covers the verb and everything asked for; no key, no memory."""
        if key is None:
            return None
        told = ask if isinstance(ask, bytes) else msgspec.json.encode(ask, order="sorted")
        return cls(key, hashlib.sha256(b"%s\0%s" % (verb.encode(), told)).digest())


async def recall(conn: Conn, call: Call, once: Once | None) -> Mapping[str, object] | None:
    """What came of the first ask with this key; None when this is the first. Others with the key wait here."""
    if once is None:
        return None
    assert call.actor.id is not None
    owner = (call.organization_id, call.actor.id, once.key)
    await store.lock_idempotency_key(conn, *owner)
    found = await store.find_idempotency_key(conn, *owner)
    if found is None:
        return None
    fingerprint, result = found
    if fingerprint != once.fingerprint:
        raise IdempotencyKeyReused
    return result


async def remember(conn: Conn, call: Call, once: Once | None, result: Mapping[str, object]) -> None:
    """Keep what came of it, in the transaction of the effect."""
    if once is not None:
        assert call.actor.id is not None
        owner = (call.organization_id, call.actor.id, once.key)
        await store.add_idempotency_key(conn, *owner, fingerprint=once.fingerprint, result=result)


async def purge(db: Database) -> int:
    """Drop the days that are over and make those that come; how many were made."""
    async with db.system_transaction() as conn:
        return await store.keep_idempotency_partitions(conn, days_ahead=DAYS_AHEAD)
