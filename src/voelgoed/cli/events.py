"""`voelgoed event` and `voelgoed venue`: what an operator can see and do from the terminal, in the venue's own time."""

import json
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from voelgoed.cli.accounts import opened
from voelgoed.cli.layouts import in_studio
from voelgoed.config import Settings
from voelgoed.errors import StartRefused
from voelgoed.events import calendar, operator, rules
from voelgoed.events.model import EventAtVenue, NewDate, NewEvent, NewVenue, Order, Status, Venue, Verb
from voelgoed.holds import operator as places
from voelgoed.paging import LIMIT_MAX

SHOWN_MAX = 1_000


def read_moment(told: str, timezone: str) -> datetime:
    """Read a time: `2027-03-12 19:30` by the clock of the venue, or with a zone of its own."""
    try:
        moment = datetime.fromisoformat(told)
        found = moment.astimezone(UTC) if moment.tzinfo else calendar.moment_of(moment, timezone)
    except (ValueError, OverflowError):
        raise StartRefused(f"{told!r} is no time", hint="write 2027-03-12 19:30, or 2027-03-12T17:30:00Z") from None
    if found is None:
        raise StartRefused(f"there is no {told} in {timezone}: the clocks are put forward over it")
    return found


async def list_venues(settings: Settings, *, organization: str, as_json: bool) -> None:
    """An organization's venues."""
    async with opened(settings) as db:
        place = await operator.organization_at(db, organization)
        found = await operator.list_venues(db, place, limit=SHOWN_MAX)
    if as_json:
        _print_json([_venue_facts(venue) for venue in found])
        return
    table = _table("address", "name", "time zone", "capacity")
    for venue in found:
        table.add_row(Text(venue.slug), Text(venue.name), venue.timezone, f"{venue.max_capacity:,}")
    Console(highlight=False).print(table)


async def create_venue(settings: Settings, *, organization: str, new: NewVenue) -> None:
    """Make a venue."""
    async with opened(settings) as db:
        place = await operator.organization_at(db, organization)
        venue = await operator.create_venue(db, place, new)
    _say(f"{venue.slug}  {venue.id}")


async def list_events(settings: Settings, *, organization: str, statuses: Iterable[Status], as_json: bool) -> None:
    """An organization's events, in the order of time."""
    wanted = list(statuses) or [status for status in Status if status is not Status.ARCHIVED]
    found: list[EventAtVenue] = []
    cursor: str | None = None
    async with opened(settings) as db:
        place = await operator.organization_at(db, organization)
        while len(found) < SHOWN_MAX:
            page = await operator.list_events(db, place, statuses=wanted, cursor=cursor, limit=LIMIT_MAX)
            found += page.items
            cursor = page.next_cursor
            if cursor is None:
                break
    show(found, as_json=as_json)


async def show_event(settings: Settings, *, organization: str, slug: str, as_json: bool) -> None:
    """One event, with what can be done to it."""
    async with opened(settings) as db:
        place = await operator.organization_at(db, organization)
        found = await operator.find_event(db, place, slug)
    if as_json:
        _print_json(_event_facts(found))
        return
    table = Table(box=None, show_header=False)
    table.add_column(style="bold")
    table.add_column()
    for name, value in _event_facts(found).items():
        moment = getattr(found.event, name, None)
        if isinstance(moment, datetime):
            value = f"{calendar.wall_time(moment, found.venue.timezone):%Y-%m-%d %H:%M} ({found.venue.timezone})"  # noqa: PLW2901
        table.add_row(name.replace("_", " "), Text("" if value is None else _plain(value)))
    Console(highlight=False).print(table)


async def create_event(
    settings: Settings,
    *,
    organization: str,
    venue: str,
    name: str,
    slug: str,
    times: dict[str, str],
    capacity: int | None,
) -> None:
    """Make an event; it begins as a draft."""
    async with opened(settings) as db:
        place = await operator.organization_at(db, organization)
        at = await operator.find_venue(db, place, venue)
        moments: dict[str, Any] = {key: read_moment(told, at.timezone) for key, told in times.items() if told}
        made = await operator.create_event(
            db, place, NewEvent(venue_id=at.id, name=name, slug=slug, capacity=capacity, **moments)
        )
    show([made], as_json=False)


async def move_event(
    settings: Settings,
    *,
    organization: str,
    slug: str,
    verb: Verb,
    reason: str,
    times: dict[str, str] | None = None,
    postponement_reason: str = "",
) -> None:
    """Carry out a verb; times are read by the clock of the event's venue."""
    async with in_studio(settings, organization) as (studio, place):
        found = await operator.find_event(studio.db, place, slug)
        moments = {key: read_moment(told, found.venue.timezone) for key, told in (times or {}).items() if told}
        if moments and "start_at" not in moments:
            raise StartRefused("a new date begins with --start")
        order = Order(
            verb=verb,
            reason=reason or None,
            new_date=NewDate(**moments) if moments else None,
            postponement_reason=postponement_reason or None,
        )
        moved = await places.move_event(studio, place, found.event.id, order)
    show([moved], as_json=False)


def show(found: Sequence[EventAtVenue], *, as_json: bool) -> None:
    """Events for a person, each by the clock of its venue, or for a program."""
    if as_json:
        _print_json([_event_facts(one) for one in found])
        return
    table = _table("address", "name", "status", "when, at the venue", "venue", "sale")
    now = datetime.now(UTC)
    for one in found:
        event = one.event
        table.add_row(
            Text(event.slug),
            Text(event.name),
            event.status,
            Text(_when(one)),
            Text(one.venue.name),
            rules.sale_state(event, now).replace("_", " "),
        )
    Console(highlight=False).print(table)
    if len(found) >= SHOWN_MAX:
        _say(f"(the first {SHOWN_MAX})")


def _when(one: EventAtVenue) -> str:
    event, timezone = one.event, one.venue.timezone
    if event.status is Status.POSTPONED and event.rescheduled_at is None:
        return "no date yet"
    start = calendar.wall_time(event.effective_start_at, timezone)
    end = calendar.wall_time(event.effective_end_at, timezone)
    until = f"{end:%H:%M}" if start.date() == end.date() else f"{end:%Y-%m-%d %H:%M}"
    return f"{start:%Y-%m-%d %H:%M} - {until}"


def _event_facts(one: EventAtVenue) -> dict[str, Any]:
    event, now = one.event, datetime.now(UTC)
    return {
        "id": str(event.id),
        "slug": event.slug,
        "name": event.name,
        "status": event.status,
        "venue": one.venue.slug,
        "timezone": one.venue.timezone,
        **{
            name: value.isoformat() if (value := getattr(event, name)) else None
            for name in ("start_at", "end_at", "sale_start_at", "sale_end_at", "rescheduled_at", "rescheduled_end_at")
        },
        "postponement_reason": event.postponement_reason,
        "capacity": event.capacity,
        "sale_state": rules.sale_state(event, now),
        "scanning": rules.scanning(event, now),
        "version": event.version,
        "verbs": rules.verbs_of(event.status),
    }


def _venue_facts(venue: Venue) -> dict[str, Any]:
    return {
        "id": str(venue.id),
        "slug": venue.slug,
        "name": venue.name,
        "timezone": venue.timezone,
        "max_capacity": venue.max_capacity,
    }


def _plain(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _table(*titles: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for title in titles:  # the address is what every other command is given: it is never cut
        table.add_column(title, no_wrap=title == "address")
    return table


def _print_json(value: object) -> None:
    print(json.dumps(value))


def _say(text: str) -> None:
    Console(highlight=False, soft_wrap=True).print(Text(text))
