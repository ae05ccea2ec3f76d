"""Organizations for tests."""

from voelgoed.accounts import usecases
from voelgoed.accounts.model import Organization
from voelgoed.db import Database
from voelgoed.ids import new_id


async def make_organization(db: Database, *, slug: str | None = None, name: str = "Die Skouburg") -> Organization:
    return await usecases.found_organization(db, slug=slug or f"org-{new_id().hex}", name=name)
