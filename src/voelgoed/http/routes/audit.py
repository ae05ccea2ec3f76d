"""The journal, for those who must know what happened: an organization's own people, and the platform's staff."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Depends, Header, Query
from pydantic import Field

from voelgoed.accounts import platform, usecases
from voelgoed.accounts.permissions import Action
from voelgoed.accounts.platform import ApprovalRequired
from voelgoed.accounts.roles import person_of
from voelgoed.accounts.signing import OrganizationNotFound
from voelgoed.http.context import Caller
from voelgoed.http.guard import guarded
from voelgoed.http.shapes import LIMIT, NO_NUL, SOME_TEXT, Cursor, Limit, Listed, Moment, View
from voelgoed.ids import OrganizationId
from voelgoed.journal.model import Page, RecordedFact, SearchFilter
from voelgoed.paging import CursorInvalid

router = APIRouter(tags=["audit"])

KINDS_MAX = 20
Kind = Annotated[str, Field(min_length=1, max_length=63, pattern=r"^[a-z][a-z0-9_]*$")]
ReasonHeader = Annotated[str, Header(alias="X-Reason", min_length=1, max_length=2000, pattern=SOME_TEXT)]
ApprovalHeader = Annotated[
    str | None, Header(alias="X-Tenant-Approval-Reference", min_length=1, max_length=200, pattern=NO_NUL)
]


class FactView(View):
    """Something that happened. A name is there where its bearer is one of the organization's people or programs now.

    `person_name` is that of `data.user_id`: to whom it was done.
    """

    recorded_at: datetime
    kind: str
    event_id: UUID | None
    seat_id: UUID | None
    version: int | None
    actor_id: UUID | None
    actor_name: str | None
    person_name: str | None
    request_id: UUID | None
    reason: str | None
    data: dict[str, object]
    ip: str | None
    user_agent: str | None


def wanted_facts(
    kind: Annotated[list[Kind] | None, Query(max_length=KINDS_MAX)] = None,
    actor_id: Annotated[UUID | None, Query()] = None,
    event_id: Annotated[UUID | None, Query()] = None,
    seat_id: Annotated[UUID | None, Query()] = None,
    since: Annotated[Moment | None, Query()] = None,
    until: Annotated[Moment | None, Query()] = None,
) -> SearchFilter:
    """Which facts; what is left out matches everything. `since` is included, `until` is not."""
    return SearchFilter(
        kinds=tuple(kind or ()), actor_id=actor_id, event_id=event_id, seat_id=seat_id, since=since, until=until
    )


Wanted = Annotated[SearchFilter, Depends(wanted_facts)]


@router.get("/api/admin/audit")
@guarded(Action.SEARCH_AUDIT, CursorInvalid)
async def search_audit(caller: Caller, wanted: Wanted, cursor: Cursor = None, limit: Limit = LIMIT) -> Listed[FactView]:
    """The organization's journal, newest first."""
    page, names = await usecases.search_audit(caller.services.db, caller.call, wanted, cursor=cursor, limit=limit)
    return _listed(page, names)


@router.get("/api/platform/orgs/{org_id}/audit")
@guarded(Action.PLATFORM_SEARCH_AUDIT, OrganizationNotFound, ApprovalRequired, CursorInvalid)
async def search_audit_of(
    org_id: UUID,
    caller: Caller,
    wanted: Wanted,
    x_reason: ReasonHeader,
    x_tenant_approval_reference: ApprovalHeader = None,
    cursor: Cursor = None,
    limit: Limit = LIMIT,
) -> Listed[FactView]:
    """Any organization's journal; that it was read, and why, is recorded in it."""
    page, names = await platform.search_audit(
        caller.services.db,
        caller.call,
        OrganizationId(org_id),
        wanted,
        reason=x_reason,
        approval=x_tenant_approval_reference,
        cursor=cursor,
        limit=limit,
    )
    return _listed(page, names)


def _listed(page: Page, names: Mapping[UUID, str]) -> Listed[FactView]:
    return Listed(data=[_view(fact, names) for fact in page.facts], next_cursor=page.next_cursor)


def _view(fact: RecordedFact, names: Mapping[UUID, str]) -> FactView:
    person = person_of(fact)
    return FactView(
        recorded_at=fact.recorded_at,
        kind=fact.kind,
        event_id=fact.event_id,
        seat_id=fact.seat_id,
        version=fact.version,
        actor_id=fact.actor_id,
        actor_name=names.get(fact.actor_id) if fact.actor_id else None,
        person_name=names.get(person) if person else None,
        request_id=fact.request_id,
        reason=fact.reason,
        data=dict(fact.data),
        ip=fact.origin.ip if fact.origin else None,
        user_agent=fact.origin.user_agent if fact.origin else None,
    )
