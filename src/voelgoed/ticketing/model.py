"""Pricing rules, as records."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from voelgoed.ids import OrganizationId
from voelgoed.seating.model import Category


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRule:
    """A pricing rule as it stands in PostgreSQL; what is worked out from it, `pricing.PriceRule` is for."""

    id: UUID
    organization_id: OrganizationId
    name: str
    currency: str
    amount_minor: int
    by_category: Mapping[Category, int]
    version: int
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRule:
    """A pricing rule to be made, as somebody asked for it: nobody has looked yet whether it can be."""

    name: str
    currency: str
    amount_minor: int
    by_category: Mapping[str, int] = field(default_factory=dict)
