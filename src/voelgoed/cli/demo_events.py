"""What takes place in the demonstration: venues with gates, and an event in every state somebody should see."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from typing import Final
from uuid import UUID

from voelgoed.accounts.model import Organization
from voelgoed.db import Database
from voelgoed.events import calendar, operator
from voelgoed.events.model import Json, NewDate, NewEvent, NewGate, NewVenue, Order, Venue, Verb
from voelgoed.events.refusals import EventNotFound, VenueNotFound
from voelgoed.holds import operator as places
from voelgoed.holds.inventory import Wanted
from voelgoed.seating import operator as layouts, presets
from voelgoed.seating.generate import generate
from voelgoed.seating.model import Pin, VersionStatus
from voelgoed.seating.studio import Studio
from voelgoed.ticketing import operator as prices
from voelgoed.ticketing.model import NewRule

TIMEZONE: Final = "Africa/Johannesburg"
SERIES: Final = UUID("6f1c2a34-5b0e-8d1c-9a77-0f2d3c4b5a69")
"""The festival is the third of its kind; earlier and later ones would carry the same number."""

VENUES: Final = (
    (
        NewVenue(
            name="Die Skouburg",
            slug="die-skouburg",
            timezone=TIMEZONE,
            max_capacity=400,
            address={"street": "12 Kerk Street", "city": "Potchefstroom", "postal_code": "2531", "country": "ZA"},
            settings={"doors_open_minutes_before": 45, "step_free": True, "bag_policy": "Bags up to A4 size."},
        ),
        (NewGate(gate_code="MAIN_ENTRANCE", name="Main entrance", settings={"step_free": True}),),
    ),
    (
        NewVenue(
            name="Oewerpark",
            slug="oewerpark",
            timezone=TIMEZONE,
            max_capacity=5_000,
            address={"street": "Rivier Drive", "city": "Potchefstroom", "postal_code": "2520", "country": "ZA"},
            settings={"doors_open_minutes_before": 120, "day_cutoff": "06:00", "step_free": True},
        ),
        (
            NewGate(gate_code="GATE_A", name="River gate", capacity=1_500),
            NewGate(gate_code="GATE_B", name="Bridge gate", capacity=800),
            NewGate(gate_code="GATE_VIP", name="VIP gate", capacity=200),
        ),
    ),
    (
        NewVenue(
            name="Vaalkrans Stadium",
            slug="vaalkrans-stadium",
            timezone=TIMEZONE,
            max_capacity=60_000,
            address={"street": "1 Stadium Road", "city": "Potchefstroom", "postal_code": "2522", "country": "ZA"},
            settings={"doors_open_minutes_before": 180, "access_rules": "No glass, no umbrellas."},
        ),
        tuple(
            NewGate(gate_code=f"GATE_{number}", name=f"Gate {number}", capacity=10_000, settings={"lanes": 12})
            for number in range(1, 7)
        ),
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Show:
    """An event of the demonstration: when it begins, counted from the day it is made, and what becomes of it."""

    venue: str
    slug: str
    name: str
    description: str
    days_ahead: int
    begins: time
    lasts: timedelta
    verbs: tuple[Verb, ...]
    settings: Json
    capacity: int | None = None
    is_seated: bool = True
    new_day: int | None = None
    postponement_reason: str | None = None
    recurrence_group_id: UUID | None = None


SHOWS: Final[Mapping[str, Show]] = {
    "theatre": Show(
        venue="die-skouburg",
        slug="die-laaste-boemeltrein",
        name="Die Laaste Boemeltrein",
        description="The last slow train leaves at midnight, and nobody on the platform has a ticket.\n\n"
        "A play in two acts with one interval. Afrikaans, with English surtitles.",
        days_ahead=20,
        begins=time(19, 30),
        lasts=timedelta(hours=2, minutes=30),
        verbs=(Verb.PUBLISH,),
        settings={"category": "theatre", "cover": "hills", "age_min": 10, "language": "af"},
        capacity=350,
    ),
    "festival": Show(
        venue="oewerpark",
        slug="passievol",
        name="Passievol",
        description="Two days by the river: four stages, food from nine in the morning, music until two.\n\n"
        "One ticket is good for both days. Seats in the marquee are reserved, the lawn is not.",
        days_ahead=40,
        begins=time(9, 0),
        lasts=timedelta(days=1, hours=17),
        verbs=(Verb.PUBLISH,),
        settings={"category": "festival", "cover": "petals", "doors_open_minutes_before": 60},
        capacity=1_050,
        recurrence_group_id=SERIES,
    ),
    "stadium": Show(
        venue="vaalkrans-stadium",
        slug="nag-van-die-sterre",
        name="Nag van die Sterre",
        description="Six bands, one night, sixty thousand voices.",
        days_ahead=62,
        begins=time(18, 0),
        lasts=timedelta(hours=5),
        verbs=(Verb.PUBLISH,),
        settings={"category": "music", "cover": "stars", "age_min": 6},
        capacity=60_000,
    ),
    "postponed": Show(
        venue="oewerpark",
        slug="stemme-a-cappella",
        name="Stemme: A Cappella Final",
        description="Eight choirs without a single instrument.",
        days_ahead=12,
        begins=time(18, 0),
        lasts=timedelta(hours=3),
        verbs=(Verb.PUBLISH, Verb.POSTPONE),
        settings={"category": "music", "cover": "voices"},
        capacity=900,
        is_seated=False,
        postponement_reason="weather",
    ),
    "rescheduled": Show(
        venue="die-skouburg",
        slug="half-light",
        name="Half-Light: New Dance",
        description="Four new works, all of them made for this stage and its one window.",
        days_ahead=15,
        begins=time(20, 0),
        lasts=timedelta(hours=1, minutes=45),
        verbs=(Verb.PUBLISH, Verb.POSTPONE),
        settings={"category": "theatre", "cover": "spots"},
        capacity=350,
        new_day=34,
        postponement_reason="illness",
    ),
    "cancelled": Show(
        venue="oewerpark",
        slug="karoo-skies",
        name="Karoo Skies, Lying Down",
        description="An evening on your back, with an astronomer.",
        days_ahead=25,
        begins=time(21, 0),
        lasts=timedelta(hours=2),
        verbs=(Verb.PUBLISH, Verb.CANCEL),
        settings={"category": "family", "cover": "stars"},
        capacity=250,
        is_seated=False,
    ),
    "draft": Show(
        venue="die-skouburg",
        slug="nagmusiek",
        name="Nagmusiek by Candlelight",
        description="",
        days_ahead=75,
        begins=time(20, 0),
        lasts=timedelta(hours=2),
        verbs=(),
        settings={"category": "music", "cover": "bars"},
    ),
}
"""By the name under which `voelgoed demo --json` tells of it."""


HALLS: Final[Mapping[str, str]] = {
    "die-skouburg": "theatre-350",
    "oewerpark": "festival",
    "vaalkrans-stadium": "stadium-60k",
}
"""Which preset stands at which venue."""

PRICES: Final[Mapping[str, Mapping[str, int]]] = {
    "die-skouburg": {"STALLS": 22_000, "BALCONY": 14_000},
    "oewerpark": {"ORCHESTRA": 15_000, "FLOOR": 10_000, "PIT": 8_000, "VIP": 30_000, "GA": 9_000},
    "vaalkrans-stadium": {"1": 85_000, "2": 60_000, "3": 35_000},
}
"""What places cost in cents, by what the code of their zone begins with: the tiers of a stadium are hundreds."""


async def seed(studio: Studio, place: Organization) -> None:
    """Make what is missing; what is there already stays as people have left it."""
    db = studio.db
    for new, gates in VENUES:
        try:
            await operator.find_venue(db, place, new.slug)
        except VenueNotFound:
            await operator.create_venue(db, place, new, gates)
    if (await layouts.get_policy(db, place)).version == 0:  # the festival has a VIP lounge
        await layouts.change_policy(db, place, {"allow_vip_zones": True}, reason="for the demonstration")
    halls = {layout.venue_id for layout in await layouts.list_layouts(studio, place)}
    for slug, preset in HALLS.items():
        venue = await operator.find_venue(db, place, slug)
        if venue.id not in halls:
            hall = replace(generate(presets.preset(preset)), name=venue.name)
            made = await layouts.add_layout(studio, place, venue.id, hall)
            await layouts.move(
                studio, place, made.layout_id, made.version, VersionStatus.ACTIVE, reason="for the demonstration"
            )
    today = datetime.now(UTC).date()
    for show in SHOWS.values():
        try:
            await operator.find_event(db, place, show.slug)
        except EventNotFound:
            await _make(studio, place, show, today)


async def ids(db: Database, place: Organization) -> dict[str, str]:
    """The events by name; one that somebody has deleted is left out."""
    found: dict[str, str] = {}
    for name, show in SHOWS.items():
        try:
            found[name] = str((await operator.find_event(db, place, show.slug)).event.id)
        except EventNotFound:
            continue
    return found


async def _make(studio: Studio, place: Organization, show: Show, today: date) -> None:
    db = studio.db
    venue = await operator.find_venue(db, place, show.venue)
    start = _moment(today, show.days_ahead, show.begins, venue)
    new = NewEvent(
        venue_id=venue.id,
        name=show.name,
        slug=show.slug,
        description=show.description,
        start_at=start,
        end_at=start + show.lasts,
        capacity=show.capacity,
        settings=show.settings,
        recurrence_group_id=show.recurrence_group_id,
    )
    made = await operator.create_event(db, place, new)
    await _seat(studio, place, made.event.id, venue, is_seated=show.is_seated)
    new_date = None
    if show.new_day is not None:
        new_date = NewDate(start_at=_moment(today, show.new_day, show.begins, venue))
    for verb in show.verbs:
        order = Order(verb=verb, reason="for the demonstration")
        if verb is Verb.POSTPONE:
            order = replace(order, new_date=new_date, postponement_reason=show.postponement_reason)
        await places.move_event(studio, place, made.event.id, order)


async def _seat(studio: Studio, place: Organization, event_id: UUID, venue: Venue, *, is_seated: bool) -> None:
    """Give an event the layout of its venue, and every zone its price."""
    halls = {layout.venue_id: layout for layout in await layouts.list_layouts(studio, place)}
    hall, pin = halls.get(venue.id), None
    if is_seated and hall and hall.active_version:
        pin = Pin(hall.id, hall.active_version)
    await prices.save_seating(studio, place, event_id, Wanted(pin=pin, overrides={}))
    zones = (await prices.see_seating(studio, place, event_id)).offered.zones
    costs = {zone.zone_id: _cost(venue.slug, zone.view.code) for zone in zones}
    rules = {f"{venue.name}: R{cost / 100:,.0f}": cost for cost in costs.values()}
    known = {rule.name: rule.id for rule in await prices.list_rules(studio.db, place)}
    for name, cost in rules.items():
        if name not in known:
            new = NewRule(name=name, currency="ZAR", amount_minor=cost, by_category={"companion": cost // 2})
            known[name] = (await prices.create_rule(studio.db, place, new)).id
    ids = {cost: known[name] for name, cost in rules.items()}
    priced = {str(zone_id): {"pricing_rule_id": str(ids[cost])} for zone_id, cost in costs.items()}
    await prices.save_seating(studio, place, event_id, Wanted(pin=pin, overrides={"pricing_zones": priced}))


def _cost(venue: str, zone_code: str) -> int:
    return next(cost for begins, cost in PRICES[venue].items() if zone_code.startswith(begins))


def _moment(today: date, days_ahead: int, at: time, venue: Venue) -> datetime:
    moment = calendar.moment_of(datetime.combine(today + timedelta(days=days_ahead), at), venue.timezone)
    assert moment is not None, "the demonstration's zone has no hour that is left out"
    return moment
