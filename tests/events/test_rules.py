"""What an event may become and what it allows: the tables against the seed's, the edges against random walks."""

import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from voelgoed.events import rules
from voelgoed.events.model import Event, NewDate, Order, SaleState, Scanning, Status, Verb
from voelgoed.events.rules import EDGES, TARGET, Scan, Sell, Show
from voelgoed.ids import OrganizationId, new_id

NOW = datetime(2027, 3, 12, 19, 30, tzinfo=UTC)
HOUR = timedelta(hours=1)
INSTANT = timedelta(microseconds=1)
WALKS = 2_000
STEPS = 12

SEED_EDGES = {
    "draft": {"published", "archived"},
    "published": {"live", "postponed", "cancelled", "draft"},
    "live": {"ended", "postponed", "cancelled"},
    "postponed": {"published", "live", "cancelled"},
    "ended": {"archived"},
    "cancelled": {"archived"},
    "archived": set(),
}
SEED_ALLOWS = {
    # status: (can_sell_tickets?, scanning, visible_on_storefront?)
    "draft": (Sell.NEVER, Scan.TEST_ONLY, Show.ORGANISER),
    "published": (Sell.IN_SALE_WINDOW, Scan.TEST_ONLY, Show.EVERYBODY),
    "live": (Sell.IN_SALE_WINDOW, Scan.ALWAYS, Show.EVERYBODY),
    "ended": (Sell.NEVER, Scan.NEVER, Show.ORGANISER),
    "cancelled": (Sell.NEVER, Scan.NEVER, Show.ORGANISER),
    "postponed": (Sell.ONCE_DATED, Scan.IN_NEW_WINDOW, Show.EVERYBODY),
    "archived": (Sell.NEVER, Scan.NEVER, Show.HISTORY),
}


def event(status: Status = Status.PUBLISHED, **fields: Any) -> Event:
    """An event that began an hour ago and goes on for two."""
    known: dict[str, Any] = {
        "id": new_id(),
        "organization_id": OrganizationId(new_id()),
        "venue_id": new_id(),
        "name": "Die Laaste Boemeltrein",
        "slug": "boemeltrein",
        "description": "",
        "start_at": NOW - HOUR,
        "end_at": NOW + 2 * HOUR,
        "sale_start_at": None,
        "sale_end_at": None,
        "capacity": None,
        "settings": {},
        "replaced_by_event_id": None,
        "recurrence_group_id": None,
        "rescheduled_at": None,
        "rescheduled_end_at": None,
        "postponement_reason": None,
        "is_automatic": True,
        "version": 1,
        "inventory_epoch": 0,
        "inserted_at": NOW,
        "updated_at": NOW,
    }
    return Event(status=status, **known | fields)


def dated(status: Status = Status.POSTPONED, **fields: Any) -> Event:
    """A postponed event with a new date: from tomorrow, for three hours."""
    new = NOW + timedelta(days=1)
    return event(status, **{"rescheduled_at": new, "rescheduled_end_at": new + 3 * HOUR} | fields)


@pytest.mark.req("EV-19", "EV-32", "TEST-32")
def test_the_edges_are_the_seeds() -> None:
    """Seven states and fourteen edges, no more; every verb leads along one of them."""
    assert {str(status): set(map(str, to)) for status, to in EDGES.items()} == SEED_EDGES
    assert [str(status) for status in Status] == [
        "draft", "published", "live", "ended", "cancelled", "postponed", "archived",
    ]  # fmt: skip
    assert sum(len(to) for to in EDGES.values()) == 14
    assert {(status, to) for status in Status for to in EDGES[status]} == {
        (status, TARGET[verb]) for status in Status for verb in rules.verbs_of(status) if verb is not Verb.RESCHEDULE
    }


@pytest.mark.req("EV-32", "TEST-32")
def test_two_thousand_walks_stay_on_the_edges() -> None:
    """Any verb, date and moment: what is not refused leads along an edge to an event that is whole."""
    chance = random.Random(4)  # a seed, so that a failing walk can be walked again
    walked: set[tuple[Status, Status]] = set()
    for _ in range(WALKS):
        now, stands = NOW, event(Status.DRAFT)
        for _ in range(STEPS):
            now += chance.choice([timedelta(0), HOUR, timedelta(hours=30)])
            before, stands = stands, step(stands, now, chance)
            if stands.status is not before.status:
                walked.add((before.status, stands.status))
            assert stands.status is before.status or str(stands.status) in SEED_EDGES[before.status]
            assert (stands.rescheduled_at is None) == (stands.rescheduled_end_at is None)
            assert stands.status is Status.POSTPONED or (stands.rescheduled_at, stands.postponement_reason) == (
                None,
                None,
            )
            assert stands.effective_start_at < stands.effective_end_at
            assert (stands.id, stands.organization_id, stands.version) == (before.id, before.organization_id, 1)
    assert walked == {(status, to) for status in Status for to in EDGES[status]}


def step(stands: Event, now: datetime, chance: random.Random) -> Event:
    """Ask for anything at all; an event that refuses stays as it is."""
    verb = chance.choice(list(Verb))
    is_dated = verb is Verb.RESCHEDULE or (verb is Verb.POSTPONE and chance.random() < 0.5)
    new = NewDate(start_at=now + timedelta(days=chance.randint(-1, 9))) if is_dated else None
    reason = chance.choice([None, " ", "storm", "storm", "storm"])
    order = Order(verb=verb, reason=reason, new_date=new, postponement_reason=chance.choice([None, "weather"]))
    wanted = rules.decide(stands, order, now)
    if isinstance(wanted, rules.Objection):
        assert wanted.why
        return stands
    assert verb not in rules.REASONED or reason == "storm"
    assert new is None or new.start_at > now
    return wanted


@pytest.mark.req("EV-20", "EV-21", "EV-22", "EV-23")
def test_what_a_status_allows_is_what_the_seed_says() -> None:
    """The three tables of the seed, literally."""
    assert {
        str(status): (allowed.sell, allowed.scan, allowed.show) for status, allowed in rules.ALLOWS.items()
    } == SEED_ALLOWS
    assert frozenset({Status.PUBLISHED, Status.LIVE, Status.POSTPONED}) == rules.SHOWN


@pytest.mark.req("EV-24", "EV-25", "EV-27", "EV-39")
@pytest.mark.parametrize("status", Status)
def test_only_three_statuses_sell(status: Status) -> None:
    """With every window open, only published, live and a postponed event with a date sell; only three are shown."""
    whole = NOW - timedelta(days=400), NOW + timedelta(days=400)
    open_wide = event(status, sale_start_at=whole[0], sale_end_at=whole[1])
    assert rules.is_on_sale(open_wide, NOW) == (status in {Status.PUBLISHED, Status.LIVE})
    again = replace(open_wide, rescheduled_at=NOW, rescheduled_end_at=NOW + HOUR)
    assert rules.is_on_sale(again, NOW) == (status in {Status.PUBLISHED, Status.LIVE, Status.POSTPONED})
    assert rules.is_shown(open_wide) == (status in {Status.PUBLISHED, Status.LIVE, Status.POSTPONED})


@pytest.mark.req("EV-12", "EV-28", "EV-29")
@pytest.mark.parametrize(
    ("opens", "closes", "state"),
    [
        (None, None, SaleState.OPEN),
        (NOW, None, SaleState.OPEN),
        (NOW + INSTANT, None, SaleState.NOT_YET),
        (None, NOW, SaleState.OPEN),
        (None, NOW - INSTANT, SaleState.OVER),
        (NOW, NOW + HOUR, SaleState.OPEN),
        (NOW - HOUR, NOW, SaleState.OPEN),
        (NOW + INSTANT, NOW + HOUR, SaleState.NOT_YET),
        (NOW - HOUR, NOW - INSTANT, SaleState.OVER),
    ],
)
@pytest.mark.parametrize("status", [Status.PUBLISHED, Status.LIVE])
def test_both_ends_of_the_sale_belong_to_it(
    status: Status, opens: datetime | None, closes: datetime | None, state: SaleState
) -> None:
    """No start is from publication on, no end is until the event is over."""
    sold = event(status, sale_start_at=opens, sale_end_at=closes)
    assert rules.sale_state(sold, NOW) is state
    assert rules.is_on_sale(sold, NOW) == (state is SaleState.OPEN)


def test_without_an_end_the_sale_ends_with_the_event() -> None:
    """To the microsecond; the new end counts once there is one."""
    sold = event()
    assert rules.sale_state(sold, sold.end_at) is SaleState.OPEN
    assert rules.sale_state(sold, sold.end_at + INSTANT) is SaleState.OVER
    later = dated()
    assert later.rescheduled_end_at is not None
    assert rules.sale_state(later, later.rescheduled_end_at) is SaleState.OPEN
    assert rules.sale_state(later, later.rescheduled_end_at + INSTANT) is SaleState.OVER


@pytest.mark.req("EV-25", "EV-26", "EV-29")
def test_postponed_sells_once_it_has_a_date() -> None:
    """Without one it is suspended, whatever the window; with one it sells at once, not only on that day."""
    assert rules.sale_state(event(Status.POSTPONED), NOW) is SaleState.SUSPENDED
    assert rules.sale_state(dated(), NOW) is SaleState.OPEN
    assert rules.sale_state(dated(sale_start_at=NOW + HOUR), NOW) is SaleState.NOT_YET


@pytest.mark.req("EV-30", "EV-31", "EV-26")
@pytest.mark.parametrize(
    ("status", "worth"),
    [
        (Status.DRAFT, Scanning.TEST),
        (Status.PUBLISHED, Scanning.TEST),
        (Status.LIVE, Scanning.REAL),
        (Status.ENDED, Scanning.NONE),
        (Status.CANCELLED, Scanning.NONE),
        (Status.POSTPONED, Scanning.NONE),
        (Status.ARCHIVED, Scanning.NONE),
    ],
)
def test_a_scan_is_worth_what_the_status_says(status: Status, worth: Scanning) -> None:
    """The hour does not matter, but for a postponed event: there it counts within the new window, ends included."""
    for moment in (NOW - timedelta(days=9), NOW, NOW + timedelta(days=9)):
        assert rules.scanning(event(status), moment) is worth
    later = dated()
    assert later.rescheduled_at is not None
    assert later.rescheduled_end_at is not None
    for moment, counts in (
        (later.rescheduled_at - INSTANT, Scanning.NONE),
        (later.rescheduled_at, Scanning.REAL),
        (later.rescheduled_end_at, Scanning.REAL),
        (later.rescheduled_end_at + INSTANT, Scanning.NONE),
    ):
        assert rules.scanning(later, moment) is counts


@pytest.mark.req("EV-60")
def test_upcoming_is_what_is_not_over() -> None:
    """A running event is upcoming until its end, a rescheduled one until its new end, a hidden one never."""
    running = event(Status.LIVE)
    assert rules.is_upcoming(running, running.end_at)
    assert not rules.is_upcoming(running, running.end_at + INSTANT)
    later = dated()
    assert later.rescheduled_end_at is not None
    assert rules.is_upcoming(later, later.end_at + INSTANT)
    assert rules.is_upcoming(later, later.rescheduled_end_at)
    assert not rules.is_upcoming(later, later.rescheduled_end_at + INSTANT)
    for hidden in (Status.DRAFT, Status.ENDED, Status.CANCELLED, Status.ARCHIVED):
        assert not rules.is_upcoming(event(hidden), NOW)


@pytest.mark.req("EV-11")
@pytest.mark.parametrize(
    ("start", "end", "opens", "closes", "fits"),
    [
        (NOW, NOW + INSTANT, None, None, True),
        (NOW, NOW, None, None, False),
        (NOW + INSTANT, NOW, None, None, False),
        (NOW, NOW + timedelta(days=366), None, None, True),
        (NOW, NOW + timedelta(days=366) + INSTANT, None, None, False),
        (NOW, NOW + HOUR, NOW - HOUR, NOW + HOUR, True),
        (NOW, NOW + HOUR, NOW - HOUR, NOW + HOUR + INSTANT, False),
        (NOW, NOW + HOUR, NOW, NOW, False),
        (NOW, NOW + HOUR, NOW + HOUR, None, False),
        (NOW, NOW + HOUR, NOW + HOUR - INSTANT, None, True),
        (datetime(1, 1, 1, tzinfo=UTC), datetime(1, 1, 2, tzinfo=UTC), None, None, False),
        (datetime(9999, 12, 31, tzinfo=UTC), datetime(9999, 12, 31, 23, tzinfo=UTC), None, None, False),
        (NOW, NOW + HOUR, rules.EARLIEST, None, True),
        (NOW, NOW + HOUR, rules.EARLIEST - INSTANT, None, False),
        (NOW, NOW + HOUR, None, rules.EARLIEST, True),
        (NOW, NOW + HOUR, None, rules.EARLIEST - INSTANT, False),
        (rules.LATEST - HOUR, rules.LATEST, None, None, True),
        (rules.LATEST - HOUR, rules.LATEST + INSTANT, None, None, False),
    ],
)
def test_times_that_do_not_fit_are_said(
    *, start: datetime, end: datetime, opens: datetime | None, closes: datetime | None, fits: bool
) -> None:
    """Start before end, no longer than a year, sale before the end, in years that every zone knows."""
    why = rules.wrong_times(start_at=start, end_at=end, sale_start_at=opens, sale_end_at=closes)
    assert (why is None) == fits


@pytest.mark.req("EV-17", "TEST-33")
def test_leaving_postponed_makes_the_new_date_its_own() -> None:
    """The old date is kept while it is postponed, and given up when it is published or live again."""
    announced = event(Status.LIVE, sale_end_at=NOW)
    new = NewDate(start_at=NOW + timedelta(days=7))
    put_off = rules.moved(announced, Status.POSTPONED, new_date=new, postponement_reason="weather")
    assert (put_off.start_at, put_off.end_at) == (announced.start_at, announced.end_at)
    assert (put_off.rescheduled_at, put_off.rescheduled_end_at) == (new.start_at, new.start_at + 3 * HOUR)
    assert (put_off.sale_end_at, put_off.postponement_reason) == (new.start_at, "weather")
    for to in (Status.LIVE, Status.PUBLISHED, Status.CANCELLED):
        again = rules.moved(put_off, to, new_date=None, postponement_reason=None)
        assert (again.status, again.start_at, again.end_at) == (to, new.start_at, new.start_at + 3 * HOUR)
        assert (again.rescheduled_at, again.rescheduled_end_at, again.postponement_reason) == (None, None, None)
    undated = rules.moved(announced, Status.POSTPONED, new_date=None, postponement_reason=None)
    assert rules.moved(undated, Status.PUBLISHED, new_date=None, postponement_reason=None).start_at == NOW - HOUR


def test_a_new_date_is_noted_beside_the_old_one_or_takes_its_place() -> None:
    """As long as before and on sale until it begins, unless said otherwise; a second date follows the first."""
    new = NewDate(start_at=NOW + timedelta(days=7))
    moved = rules.dated(event(sale_start_at=NOW - HOUR), new)
    assert (moved.start_at, moved.end_at, moved.sale_end_at) == (new.start_at, new.start_at + 3 * HOUR, new.start_at)
    assert (moved.sale_start_at, moved.rescheduled_at) == (NOW - HOUR, None)
    said = NewDate(
        start_at=NOW + timedelta(days=7),
        end_at=NOW + timedelta(days=8),
        sale_start_at=NOW,
        sale_end_at=NOW + timedelta(days=2),
    )
    told = rules.dated(dated(), said)
    assert (told.rescheduled_at, told.rescheduled_end_at) == (said.start_at, said.end_at)
    assert (told.sale_start_at, told.sale_end_at) == (said.sale_start_at, said.sale_end_at)
    assert told.start_at == NOW - HOUR
    third = rules.dated(told, new)
    assert third.rescheduled_end_at == new.start_at + timedelta(days=1)


def test_a_move_can_be_refused_although_an_edge_leads_there() -> None:
    """What is over is not published; what has no date does not go live."""
    over = event(Status.DRAFT, start_at=NOW - 2 * HOUR, end_at=NOW)
    assert rules.refuse_move(over, Status.PUBLISHED, NOW) is not None
    assert rules.refuse_move(over, Status.PUBLISHED, NOW - INSTANT) is None
    assert rules.refuse_move(event(Status.POSTPONED), Status.LIVE, NOW) is not None
    assert rules.refuse_move(dated(), Status.LIVE, NOW) is None
    assert rules.refuse_move(dated(end_at=NOW - INSTANT), Status.PUBLISHED, NOW) is None


@pytest.mark.parametrize(
    ("stands", "moment", "due"),
    [
        (event(start_at=NOW), NOW - INSTANT, None),
        (event(start_at=NOW), NOW, Verb.GO_LIVE),
        (event(start_at=NOW, is_automatic=False), NOW + HOUR, None),
        (event(Status.LIVE, end_at=NOW), NOW - INSTANT, None),
        (event(Status.LIVE, end_at=NOW), NOW, Verb.END),
        (event(Status.LIVE, end_at=NOW, is_automatic=False), NOW + HOUR, None),
        (event(Status.POSTPONED), NOW + timedelta(days=99), None),
        (dated(rescheduled_at=NOW), NOW - INSTANT, None),
        (dated(rescheduled_at=NOW), NOW, Verb.GO_LIVE),
        (event(Status.DRAFT), NOW + timedelta(days=99), None),
        (event(Status.CANCELLED), NOW + timedelta(days=99), None),
        (event(Status.ENDED), NOW + timedelta(days=99), None),
        (event(Status.ARCHIVED), NOW + timedelta(days=99), None),
    ],
)
def test_what_the_clock_does(stands: Event, moment: datetime, due: Verb | None) -> None:
    """Live when it begins, ended when it is over, and nothing to what a person keeps in hand."""
    assert rules.due_verb(stands, moment) is due


@pytest.mark.req("RBAC-05")
@pytest.mark.parametrize("status", Status)
def test_staff_have_the_words_and_the_rest_of_a_draft(status: Status) -> None:
    """Every time, the address, the venue and the links are locked for staff once it is no draft."""
    fields = {
        "name", "slug", "description", "settings", "start_at", "end_at", "sale_start_at", "sale_end_at", "capacity",
        "is_automatic", "replaced_by_event_id", "recurrence_group_id", "venue_id",
    }  # fmt: skip
    words = {"name", "description", "settings"}
    links = {"replaced_by_event_id", "recurrence_group_id"}
    free = {
        Status.DRAFT: fields,
        Status.PUBLISHED: fields - {"venue_id", "start_at", "end_at"},
        Status.LIVE: fields - {"venue_id", "start_at"},
        Status.POSTPONED: fields - {"venue_id", "start_at", "end_at"},
        Status.ENDED: links,
        Status.CANCELLED: links,
        Status.ARCHIVED: set(),
    }[status]
    assert rules.locked_fields(status, fields, may_schedule=True) == sorted(fields - free)
    staff = free if status is Status.DRAFT else free & words
    assert rules.locked_fields(status, fields, may_schedule=False) == sorted(fields - staff)
    assert rules.locked_fields(status, {"status", "version"}, may_schedule=True) == ["status", "version"]
    assert rules.locked_fields(status, (), may_schedule=False) == []


numbers = st.integers(min_value=0, max_value=50)


@pytest.mark.req("EV-05", "EV-06", "EV-13", "TEST-34")
@settings(deadline=None)
@given(seats=st.none() | numbers, capacity=st.none() | numbers, venue=numbers)
def test_the_chain_of_capacities(seats: int | None, capacity: int | None, venue: int) -> None:
    """Refused exactly when seats exceed the event, the event the venue, or the seats the venue; 0 is a bound too."""
    fits = (
        (capacity is None or capacity <= venue)
        and (seats is None or seats <= venue)
        and (seats is None or capacity is None or seats <= capacity)
    )
    assert (rules.refuse_capacity(seats=seats, event=capacity, venue=venue) is None) == fits
