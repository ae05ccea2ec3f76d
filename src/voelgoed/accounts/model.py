"""Organizations as values."""

from dataclasses import dataclass
from datetime import datetime

from voelgoed.ids import OrganizationId


@dataclass(frozen=True, slots=True, kw_only=True)
class Organization:
    """Whoever sells here; its records are invisible to every other."""

    id: OrganizationId
    slug: str
    name: str
    created_at: datetime
