"""The public face of an organization: who it is, and what takes place. Nobody needs a session."""

from datetime import UTC, date, datetime
from typing import Annotated, Literal
from uuid import UUID

from fastapi import APIRouter, Path

from voelgoed.accounts.permissions import Action
from voelgoed.accounts.signing import OrganizationNotFound
from voelgoed.events import rules, settings
from voelgoed.events.model import Detail, SaleState, Status, Summary
from voelgoed.events.refusals import EventNotFound, VenueNotFound
from voelgoed.http.context import Caller
from voelgoed.http.guard import guarded
from voelgoed.http.routes.events import VenueBrief, when
from voelgoed.http.routes.venues import JsonObject
from voelgoed.http.shapes import LIMIT, SLUG, Cursor, Data, Limit, Listed, View
from voelgoed.paging import CursorInvalid

router = APIRouter(prefix="/api", tags=["storefront"])

Address = Annotated[str, Path(min_length=1, max_length=63, pattern=SLUG)]


class StorefrontView(View):
    """Whose storefront this is."""

    id: UUID
    slug: str
    name: str
    is_suspended: bool


class EventCard(View):
    """What a list tells of an event. Times are moments; `venue.timezone` says how a clock there shows them.

    It takes place from `effective_start_at` to `effective_end_at`, which are null while it is postponed without a
    date. `start_at` and `end_at` are what was announced; with a `notice` they hold no longer.
    """

    id: UUID
    slug: str
    name: str
    status: Status
    effective_start_at: datetime | None
    effective_end_at: datetime | None
    doors_at: datetime | None
    days: list[date]
    sale_start_at: datetime | None
    sale_end_at: datetime | None
    on_sale: bool
    sale_state: SaleState
    notice: Literal["postponed", "rescheduled"] | None
    start_at: datetime
    end_at: datetime
    rescheduled_at: datetime | None
    rescheduled_end_at: datetime | None
    postponement_reason: str | None
    category: str | None
    cover: str | None
    age_min: int | None
    venue: VenueBrief


class OrganizationBrief(View):
    """Whose event it is."""

    slug: str
    name: str


class ReplacementView(View):
    """The event to go to instead."""

    id: UUID
    slug: str
    name: str


class EventPage(EventCard):
    """Everything a stranger is told of an event."""

    description: str
    organization: OrganizationBrief
    address: JsonObject
    replaced_by: ReplacementView | None
    access_rules: str | None
    bag_policy: str | None
    language: str | None
    step_free: bool | None


@router.get("/storefronts/{slug}")
@guarded(Action.SEE_STOREFRONT, OrganizationNotFound)
async def get_storefront(slug: Address, caller: Caller) -> Data[StorefrontView]:
    """Whose storefront stands at this address."""
    return Data(data=StorefrontView.model_validate(await caller.services.catalogue.storefront(slug)))


@router.get("/storefronts/{slug}/events")
@guarded(Action.SEE_STOREFRONT, OrganizationNotFound, VenueNotFound, CursorInvalid)
async def list_storefront_events(
    slug: Address, caller: Caller, venue_id: UUID | None = None, cursor: Cursor = None, limit: Limit = LIMIT
) -> Listed[EventCard]:
    """What takes place or will, first things first; a suspended organization shows nothing."""
    found = await caller.services.catalogue.storefront(slug)
    if found.is_suspended:
        return Listed(data=[], next_cursor=None)
    page = await caller.services.catalogue.upcoming(found.id, venue_id=venue_id, cursor=cursor, limit=limit)
    now = datetime.now(UTC)
    return Listed(data=[EventCard(**_told(one, now)) for one in page.items], next_cursor=page.next_cursor)


@router.get("/storefronts/{slug}/events/{event_slug}")
@guarded(Action.SEE_STOREFRONT, OrganizationNotFound, EventNotFound)
async def find_storefront_event(slug: Address, event_slug: Address, caller: Caller) -> Data[EventPage]:
    """One event, by the address under which people know it."""
    found = await caller.services.catalogue.storefront(slug)
    if found.is_suspended:
        raise EventNotFound
    detail = await caller.services.catalogue.find(found.id, event_slug)
    return Data(data=_page(detail, OrganizationBrief(slug=found.slug, name=found.name)))


@router.get("/events/{event_id}")
@guarded(Action.SEE_STOREFRONT, EventNotFound)
async def get_public_event(event_id: UUID, caller: Caller) -> Data[EventPage]:
    """One event that everybody may see."""
    place, detail = await caller.services.catalogue.detail(event_id)
    return Data(data=_page(detail, OrganizationBrief(slug=place.slug, name=place.name)))


def _page(detail: Detail, organization: OrganizationBrief) -> EventPage:
    event = detail.summary
    return EventPage(
        **_told(event, datetime.now(UTC)),
        description=detail.description,
        organization=organization,
        address={key: value for key, value in detail.address.items() if key in settings.ADDRESS},
        replaced_by=ReplacementView.model_validate(detail.replacement) if detail.replacement else None,
        access_rules=event.settings.get("access_rules") or event.venue_settings.get("access_rules"),
        bag_policy=event.settings.get("bag_policy") or event.venue_settings.get("bag_policy"),
        language=event.settings.get("language"),
        step_free=event.venue_settings.get("step_free"),
    )


def _told(event: Summary, now: datetime) -> dict[str, object]:
    """What is told of an event everywhere, computed for now."""
    notice = None
    if event.status is Status.POSTPONED:
        notice = "rescheduled" if event.rescheduled_at else "postponed"
    return {
        **{name: getattr(event, name) for name in event.__slots__ if name in EventCard.model_fields},
        **when(event, event.settings, event.venue_settings, event.timezone),
        "on_sale": rules.is_on_sale(event, now),
        "sale_state": rules.sale_state(event, now),
        "notice": notice,
        "category": event.settings.get("category"),
        "cover": event.settings.get("cover"),
        "age_min": event.settings.get("age_min"),
        "venue": VenueBrief(id=event.venue_id, name=event.venue_name, slug=event.venue_slug, timezone=event.timezone),
    }
