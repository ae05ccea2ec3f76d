"""What the public reads of events: cached hot and warm, right within a second whatever becomes of Redis.

Every change raises the number of its organization's catalogue in its own transaction. What is cached carries the number
it was read under and is not believed under another. The number itself is read anew after a second at the latest, so
a lost message makes a list a second old; a message that arrives makes it new at once.
"""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Final, NamedTuple
from uuid import UUID

import msgspec
from cachetools import TTLCache

from voelgoed import paging
from voelgoed.accounts.model import Call
from voelgoed.accounts.permissions import Action, may
from voelgoed.accounts.signing import OrganizationNotFound
from voelgoed.accounts.usecases import find_organization
from voelgoed.cache import Cache, Load
from voelgoed.db import Database
from voelgoed.events import rules, store
from voelgoed.events.model import Change, Detail, Event, Status, Summary
from voelgoed.events.refusals import EventNotFound, VenueNotFound
from voelgoed.ids import OrganizationId
from voelgoed.paging import Page

WARM_TTL_S: Final = 900.0
"""A quarter of an hour in Redis; the cache itself keeps nothing in memory for longer than its own limit."""
NUMBER_TTL_S: Final = 1.0
PLACES_MAX = 50_000
PLACE_TTL_S: Final = 1.0
"""So soon nothing is shown any more of an organization that was closed."""
CACHED_MAX: Final = paging.LIMIT_MAX
"""The upcoming events that are kept as one list; whoever leafs further asks PostgreSQL."""


class Place(msgspec.Struct, frozen=True):
    """Whose event it is."""

    organization_id: OrganizationId
    slug: str
    name: str


class Now(NamedTuple):
    """What an event is at this moment, and the number of its last change."""

    status: Status
    version: int


class Storefront(msgspec.Struct, frozen=True):
    """An organization, to the public."""

    id: OrganizationId
    slug: str
    name: str
    is_suspended: bool


class Catalogue:
    """One per process."""

    def __init__(self, db: Database, cache: Cache) -> None:
        self._db = db
        self._cache = cache
        self._places: TTLCache[UUID, Place] = TTLCache(PLACES_MAX, PLACE_TTL_S)
        self._storefronts: TTLCache[str, Storefront] = TTLCache(PLACES_MAX, PLACE_TTL_S)

    async def upcoming(
        self,
        organization_id: OrganizationId,
        *,
        venue_id: UUID | None = None,
        cursor: str | None = None,
        limit: int = paging.LIMIT_DEFAULT,
    ) -> Page[Summary]:
        """What takes place or will, first things first."""
        after = paging.after_moment(cursor)
        if after is None:
            found = await self._cached_upcoming(organization_id, venue_id)
            now = datetime.now(UTC)
            items: list[Summary] = [one for one in found if rules.is_upcoming(one, now)][: limit + 1]
            if len(items) > limit or len(found) < CACHED_MAX:
                return _page(items, limit)
        async with self._db.transaction(organization_id) as conn:
            items = await store.list_upcoming(conn, organization_id, venue_id=venue_id, after=after, limit=limit + 1)
        return _page(items, limit)

    async def storefront(self, slug: str) -> Storefront:
        """Whose storefront stands at this address."""
        found = self._storefronts.get(slug)
        if found is None:
            organization = await find_organization(self._db, slug=slug)
            if organization is None:
                raise OrganizationNotFound(organization=slug)
            found = self._storefronts[slug] = Storefront(
                id=organization.id,
                slug=organization.slug,
                name=organization.name,
                is_suspended=organization.suspended_at is not None,
            )
        return found

    async def detail(self, event_id: UUID) -> tuple[Place, Detail]:
        """One event that everybody may see, and whose it is."""
        place = self._places.get(event_id)
        if place is None:
            async with self._db.system_transaction() as conn:
                row = await store.find_organization_of_event(conn, event_id)
            if row is None:
                raise EventNotFound
            place = self._places[event_id] = Place(row["organization_id"], row["slug"], row["name"])

        async def load() -> Detail:
            async with self._db.transaction(place.organization_id) as conn:
                found = await store.get_detail(conn, place.organization_id, event_id)
            if found is None:
                raise EventNotFound
            return found

        return place, await self._detail_under(place.organization_id, f"summary:{event_id}", load)

    async def whose(self, call: Call, event_id: UUID) -> OrganizationId:
        """Whose event it is, if whoever asks may know of it: everybody of what is shown, its own people of the rest."""
        try:
            place, _ = await self.detail(event_id)
        except EventNotFound:
            if not may(call.actor, Action.SEE_EVENTS):
                raise
            return call.organization_id
        return place.organization_id

    async def status_now(self, organization_id: OrganizationId, event_id: UUID) -> Now:
        """What an event is at this moment, past everything that is cached; not there when nobody may see it."""
        async with self._db.transaction(organization_id) as conn:
            found = await store.get_event(conn, organization_id, event_id)
        if found is None or found.status is Status.DRAFT:
            raise EventNotFound
        return Now(found.status, found.version)

    async def find(self, organization_id: OrganizationId, slug: str) -> Detail:
        """One event that everybody may see, by its address."""

        async def load() -> Detail:
            async with self._db.transaction(organization_id) as conn:
                event_id = await store.find_shown_event(conn, organization_id, slug)
                found = await store.get_detail(conn, organization_id, event_id) if event_id else None
            if found is None:
                raise EventNotFound
            return found

        return await self._detail_under(organization_id, f"slug:{slug}", load)

    async def announce(self, kind: str, change: Change) -> None:
        """After a commit: forget what is cached of the event, then tell whoever follows it. In this order."""
        if change.before == change.after:
            return
        event = change.event
        message = msgspec.json.encode(notice(kind, change))
        topics = organization_topic(event.organization_id), event_topic(event.organization_id, event.id)
        states = [state for state in (change.before, change.after) if state]
        await self._forget(event.organization_id, states, then=[(topic, message) for topic in topics])

    async def forget(self, organization_id: OrganizationId) -> None:
        """After a commit that changed a venue: believe nothing that is cached of the organization."""
        await self._forget(organization_id, ())

    async def _forget(
        self, organization_id: OrganizationId, events: Iterable[Event], then: Sequence[tuple[str, bytes]] = ()
    ) -> None:
        """Forget the number under which everything is cached, and the entries of these events."""
        keys = {_key(organization_id, "version"), _key(organization_id, "list")}
        for event in events:
            keys |= {
                _key(organization_id, f"summary:{event.id}"),
                _key(organization_id, f"slug:{event.slug}"),
                _key(organization_id, f"list:venue:{event.venue_id}"),
            }
            self._places.pop(event.id, None)
        await self._cache.invalidate(*sorted(keys), then=then)

    async def _detail_under(self, organization_id: OrganizationId, name: str, load: Load[Detail]) -> Detail:
        """What `load` finds; what it does not find is raised, not kept: guesses must not fill the cache."""
        version = await self._number(organization_id)
        return await self._cache.get_or_load(_key(organization_id, name), version, WARM_TTL_S, load, kind=Detail)

    async def _cached_upcoming(self, organization_id: OrganizationId, venue_id: UUID | None) -> tuple[Summary, ...]:
        async def load() -> tuple[Summary, ...]:
            async with self._db.transaction(organization_id) as conn:
                if venue_id and await store.get_venue(conn, organization_id, venue_id) is None:
                    raise VenueNotFound  # not kept: guesses must not fill the cache
                return tuple(
                    await store.list_upcoming(conn, organization_id, venue_id=venue_id, after=None, limit=CACHED_MAX)
                )

        version = await self._number(organization_id)
        key = _key(organization_id, f"list:venue:{venue_id}" if venue_id else "list")
        return await self._cache.get_or_load(key, version, WARM_TTL_S, load, kind=tuple[Summary, ...])

    async def _number(self, organization_id: OrganizationId) -> str:
        """The number under which the organization's catalogue is to be believed now."""

        async def load() -> str:
            async with self._db.transaction(organization_id) as conn:
                return str((await store.get_catalogue(conn, organization_id))[0])

        return await self._cache.get_or_load(
            _key(organization_id, "version"), "", NUMBER_TTL_S, load, kind=str, is_hot_only=True
        )


def notice(kind: str, change: Change) -> dict[str, object]:
    """What the followers of an event are told."""
    event = change.event
    return {
        "kind": kind,
        "event_id": event.id,
        "version": event.version,
        "old_status": change.before and change.before.status,
        "new_status": change.after and change.after.status,
        "rescheduled_at": event.rescheduled_at,
        "replaced_by_event_id": event.replaced_by_event_id,
    }


TOPICS: Final = "voelgoed:org:*:events"
"""Every topic below, for whoever follows them all."""


def organization_topic(organization_id: OrganizationId) -> str:
    """Where everything about an organization's events is told."""
    return f"voelgoed:org:{organization_id}:events"


def event_topic(organization_id: OrganizationId, event_id: UUID) -> str:
    """Where everything about one event is told; the braces keep it beside the event's other keys."""
    return f"voelgoed:org:{organization_id}:event:{{{event_id}}}:events"


def _key(organization_id: OrganizationId, name: str) -> str:
    return f"voelgoed:org:{organization_id}:events:{name}"


def _page(items: list[Summary], limit: int) -> Page[Summary]:
    return paging.page_by_moment(items, limit, lambda one: (one.effective_start_at, one.id))
