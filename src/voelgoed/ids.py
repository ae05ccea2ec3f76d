"""Identifiers: UUIDv7 made by the application, so that keys sort by time and need no round trip."""

from typing import NewType
from uuid import UUID

from uuid_utils.compat import uuid7

OrganizationId = NewType("OrganizationId", UUID)
UserId = NewType("UserId", UUID)


def new_id() -> UUID:
    """A new identifier, later ones sorting after earlier ones."""
    return uuid7()
