"""Identifiers: UUIDv7 made by the application, so that keys sort by time and need no round trip."""

from typing import NewType
from uuid import UUID

import uuid_utils
from asyncpg.pgproto import pgproto

OrganizationId = NewType("OrganizationId", UUID)
UserId = NewType("UserId", UUID)


def new_id() -> UUID:
    """A new identifier, later ones sorting after earlier ones."""
    made: UUID = pgproto.UUID(uuid_utils.uuid7().bytes)
    return made


def read_id(text: str) -> UUID:
    """An identifier as somebody wrote it; a ValueError when it is none.

    The driver's class: it is a UUID like any other, and is read, compared and written several times faster.
    """
    found: UUID = pgproto.UUID(text)
    return found
