"""A fact: something that happened, as it stands in the journal."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from uuid import UUID

from voelgoed.ids import OrganizationId


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """What happened, to whose record, by whom and why."""

    kind: str
    organization_id: OrganizationId
    event_id: UUID | None = None
    actor_id: UUID | None = None
    request_id: UUID | None = None
    reason: str | None = None
    data: Mapping[str, object] = field(default_factory=dict)
