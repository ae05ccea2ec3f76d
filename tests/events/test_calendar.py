"""Clocks at the venue: changes of daylight saving, places far from Greenwich, and nights that belong to a day."""

from datetime import UTC, date, datetime, time, timedelta

import pytest
from hypothesis import given, settings, strategies as st

from voelgoed.events import calendar
from voelgoed.events.calendar import day_of, days_of, moment_of, wall_time

ZONES = (
    "Europe/Berlin",
    "America/New_York",
    "Africa/Johannesburg",
    "Pacific/Apia",
    "Pacific/Kiritimati",
    "Australia/Lord_Howe",
    "UTC",
)


def utc(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)  # type: ignore[arg-type, misc]


def wall(*parts: int, fold: int = 0) -> datetime:
    """What a clock on a wall shows: no zone belongs to it."""
    return utc(*parts).replace(tzinfo=None, fold=fold)


@pytest.mark.req("EV-03")
@pytest.mark.parametrize(
    ("zone", "shown", "moment"),
    [
        ("Europe/Berlin", wall(2027, 3, 28, 1, 59), utc(2027, 3, 28, 0, 59)),
        ("Europe/Berlin", wall(2027, 3, 28, 2, 0), None),
        ("Europe/Berlin", wall(2027, 3, 28, 2, 59), None),
        ("Europe/Berlin", wall(2027, 3, 28, 3, 0), utc(2027, 3, 28, 1, 0)),
        ("Europe/Berlin", wall(2027, 10, 31, 2, 30), utc(2027, 10, 31, 0, 30)),
        ("Europe/Berlin", wall(2027, 10, 31, 2, 30, fold=1), utc(2027, 10, 31, 1, 30)),
        ("Europe/Berlin", wall(2027, 10, 31, 3, 0), utc(2027, 10, 31, 2, 0)),
        ("America/New_York", wall(2027, 3, 14, 2, 30), None),
        ("America/New_York", wall(2027, 3, 14, 3, 0), utc(2027, 3, 14, 7, 0)),
        ("America/New_York", wall(2027, 11, 7, 1, 30), utc(2027, 11, 7, 5, 30)),
        ("America/New_York", wall(2027, 11, 7, 1, 30, fold=1), utc(2027, 11, 7, 6, 30)),
        ("Africa/Johannesburg", wall(2027, 3, 28, 2, 30), utc(2027, 3, 28, 0, 30)),
        ("Africa/Johannesburg", wall(2027, 10, 31, 2, 30, fold=1), utc(2027, 10, 31, 0, 30)),
        ("Pacific/Apia", wall(2027, 1, 1, 0, 30), utc(2026, 12, 31, 11, 30)),
        ("Pacific/Kiritimati", wall(2027, 1, 1, 0, 0), utc(2026, 12, 31, 10, 0)),
        ("Australia/Lord_Howe", wall(2027, 10, 3, 2, 0), None),
        ("Australia/Lord_Howe", wall(2027, 10, 3, 2, 29), None),
        ("Australia/Lord_Howe", wall(2027, 10, 3, 2, 30), utc(2027, 10, 2, 15, 30)),
        ("Australia/Lord_Howe", wall(2027, 4, 4, 1, 45), utc(2027, 4, 3, 14, 45)),
        ("Australia/Lord_Howe", wall(2027, 4, 4, 1, 45, fold=1), utc(2027, 4, 3, 15, 15)),
    ],
)
def test_a_wall_clock_names_a_moment(zone: str, shown: datetime, moment: datetime | None) -> None:
    """The hour left out in spring names none; of the hour that comes twice in autumn it is the first, unless asked."""
    assert moment_of(shown, zone) == moment
    if moment is not None:
        assert wall_time(moment, zone).replace(tzinfo=None, fold=0) == shown.replace(fold=0)


@pytest.mark.req("EV-03")
@settings(deadline=None)
@given(moment=st.datetimes(wall(1990, 1, 1), wall(2100, 1, 1), timezones=st.just(UTC)), zone=st.sampled_from(ZONES))
def test_there_and_back_is_the_same_moment(moment: datetime, zone: str) -> None:
    """What the clock at the venue shows, with its fold, is this moment and no other."""
    assert moment_of(wall_time(moment, zone).replace(tzinfo=None), zone) == moment


@pytest.mark.parametrize(
    ("zone", "moment", "day"),
    [
        ("Africa/Johannesburg", utc(2027, 3, 13, 3, 59, 59), date(2027, 3, 12)),
        ("Africa/Johannesburg", utc(2027, 3, 13, 4, 0), date(2027, 3, 13)),
        ("Africa/Johannesburg", utc(2027, 3, 12, 22, 30), date(2027, 3, 12)),
        ("Pacific/Kiritimati", utc(2027, 3, 12, 16, 0), date(2027, 3, 13)),
        ("Pacific/Kiritimati", utc(2027, 3, 12, 15, 59), date(2027, 3, 12)),
        ("America/New_York", utc(2027, 3, 13, 2, 0), date(2027, 3, 12)),
        # The night in which the clocks change is a day of twenty-three or twenty-five hours, and one day.
        ("Europe/Berlin", utc(2027, 3, 28, 3, 59), date(2027, 3, 27)),
        ("Europe/Berlin", utc(2027, 3, 28, 4, 0), date(2027, 3, 28)),
        ("Europe/Berlin", utc(2027, 10, 31, 4, 59), date(2027, 10, 30)),
        ("Europe/Berlin", utc(2027, 10, 31, 5, 0), date(2027, 10, 31)),
    ],
)
def test_the_night_belongs_to_the_evening_before(zone: str, moment: datetime, day: date) -> None:
    """Until six o'clock at the venue, wherever it is and whatever its clocks did."""
    assert day_of(moment, zone) == day


def test_the_cut_off_can_be_another() -> None:
    """Midnight splits where the house's own hour does not."""
    late = utc(2027, 3, 12, 22, 30)  # half past midnight at the venue
    assert day_of(late, "Africa/Johannesburg", time(0, 0)) == date(2027, 3, 13)
    assert day_of(late, "Africa/Johannesburg", time(0, 31)) == date(2027, 3, 12)
    assert day_of(late, "Africa/Johannesburg", time(0, 30)) == date(2027, 3, 13)


def test_the_days_of_a_festival() -> None:
    """Two evenings that go on after midnight are two days; an end at the cut-off itself begins no third."""
    first, last = utc(2027, 3, 12, 16, 0), utc(2027, 3, 14, 1, 0)
    both = [date(2027, 3, 12), date(2027, 3, 13)]
    assert days_of(first, last, "Africa/Johannesburg") == both
    cutoff = utc(2027, 3, 14, 4, 0)
    assert days_of(first, cutoff, "Africa/Johannesburg") == both
    assert days_of(first, cutoff + timedelta(microseconds=1), "Africa/Johannesburg") == [*both, date(2027, 3, 14)]
    assert days_of(first, last, "Africa/Johannesburg", time(0, 0)) == [*both, date(2027, 3, 14)]
    assert days_of(first, first + timedelta(hours=1), "Pacific/Apia") == [date(2027, 3, 12)]
    assert days_of(first, first + timedelta(hours=2), "Pacific/Apia") == both


def test_a_festival_over_a_change_of_clocks() -> None:
    """Forty-seven hours from Saturday to Monday morning are two days, as forty-nine are in autumn."""
    spring = utc(2027, 3, 27, 5, 0), utc(2027, 3, 29, 4, 0)
    autumn = utc(2027, 10, 30, 4, 0), utc(2027, 11, 1, 5, 0)
    assert days_of(*spring, "Europe/Berlin") == [date(2027, 3, 27), date(2027, 3, 28)]
    assert days_of(*autumn, "Europe/Berlin") == [date(2027, 10, 30), date(2027, 10, 31)]


def test_the_longest_event_has_its_days() -> None:
    """A year's worth, bounded."""
    start = utc(2027, 1, 1, 12, 0)
    days = days_of(start, start + timedelta(days=366), "Africa/Johannesburg")
    assert (len(days), days[0], days[-1]) == (367, date(2027, 1, 1), date(2028, 1, 2))
    assert len(days_of(start, start + timedelta(days=4_000), "UTC")) == calendar.DAYS_MAX


def test_zones_are_regions() -> None:
    """An abbreviation knows no change of clocks, and is not one of a venue's zones."""
    assert set(ZONES) <= calendar.zone_names()
    assert not {"CET", "EST", "GMT", "Berlin", "", "utc"} & calendar.zone_names()
