"""Settings: known keys have a form, unknown ones are kept, and nothing is kept that cannot be given back."""

from datetime import time
from typing import Any

import pytest

from voelgoed.events import settings
from voelgoed.events.settings import day_cutoff, doors_open_minutes, wrong_settings


@pytest.mark.req("EV-07", "EV-14", "EV-37")
@pytest.mark.parametrize(
    ("known", "key", "good", "bad"),
    [
        (settings.EVENT, "age_min", [0, 120], [-1, 121, 1.5, "12", True, None]),
        (settings.EVENT, "category", list(settings.CATEGORIES), ["opera", "", None, ["music"], 1]),
        (settings.EVENT, "cover", ["a", "x" * 100], ["", "x" * 101, 1, None]),
        (settings.EVENT, "language", ["af"], ["", "x" * 36, ["af"]]),
        (
            settings.EVENT,
            "day_cutoff",
            ["00:00", "06:00", "23:59"],
            ["24:00", "6:00", "06:60", "0\u0666:0\u0660", 6, None],
        ),
        (settings.EVENT, "doors_open_minutes_before", [0, 1440], [-1, 1441, False, 30.0]),
        (settings.VENUE, "step_free", [True, False], [1, "yes", None]),
        (settings.VENUE, "contact", ["somebody"], ["", "x" * 501]),
        (settings.VENUE, "access_rules", ["x" * 2000], ["x" * 2001, {}]),
        (settings.VENUE, "bag_policy", ["none"], [""]),
        (settings.GATE, "lanes", [1, 200], [0, 201, "3"]),
        (settings.GATE, "notes", ["x"], ["", 3]),
        (settings.ADDRESS, "latitude", [-90, 90, 0.5], [-90.1, 91, "1", True, float("nan")]),
        (settings.ADDRESS, "longitude", [-180, 180], [181, None]),
        (settings.ADDRESS, "postal_code", ["0001"], ["x" * 21, 1]),
    ],
)
def test_a_known_key_has_its_form(known: Any, key: str, good: list[Any], bad: list[Any]) -> None:
    """Each end of each range, and the types that look alike."""
    for value in good:
        assert wrong_settings({key: value}, known) == {}
    for value in bad:
        wrong = wrong_settings({key: value}, known)
        assert list(wrong) in ([key], [""]), value
        assert all(wrong.values())


def test_an_unknown_key_is_kept_whatever_it_is() -> None:
    """Nothing is said against what nobody knows, as long as it can be kept."""
    strange = {"x": [1, {"y": None}], "code": "1234", "ж": "\u2028", "z": -(2**53), "f": 1e15, "g": 0.0, "h": 1e-9}
    for known in (settings.EVENT, settings.VENUE, settings.GATE, settings.ADDRESS):
        assert wrong_settings(strange, known) == {}


def nested(levels: int) -> dict[str, Any]:
    inner: dict[str, Any] = {}
    for _ in range(levels):
        inner = {"a": inner}
    return inner


@pytest.mark.parametrize(
    "given",
    [
        {str(number): 1 for number in range(101)},
        nested(9),
        {"a": "x" * 17_000},
        {"a": "\x00"},
        {"\x00": 1},
        {"a": ["\ud800"]},
        {"a": 2**53 + 1},
        {"a": 10**400},
        {"a": 1e300},
        {"a": [{"b": -1e300}]},
        {"a": 1e-300},
        {"a": float("inf")},
        {"a": float("nan")},
    ],
    ids=lambda given: str(given)[:20],
)
def test_what_cannot_be_kept_is_refused(given: dict[str, Any]) -> None:
    """Too many, too deep, too long, or a value that PostgreSQL, JSON or the cache would give back as another."""
    assert list(wrong_settings(given, settings.EVENT)) == [""]


def test_the_limits_themselves_are_kept() -> None:
    """One less of each is fine."""
    assert wrong_settings({str(number): 1 for number in range(100)}, settings.EVENT) == {}
    assert wrong_settings(nested(8), settings.EVENT) == {}
    assert wrong_settings({"a": "x" * (16 * 1024 - 8)}, settings.EVENT) == {}
    assert wrong_settings({"a": "x" * (16 * 1024 - 7)}, settings.EVENT) != {}


def test_the_events_word_counts_before_the_venues() -> None:
    """Cut-off and doors: the event's own, else the venue's, else the house's or nobody's."""
    assert day_cutoff({"day_cutoff": "04:30"}, {"day_cutoff": "05:00"}) == time(4, 30)
    assert day_cutoff({}, {"day_cutoff": "05:00"}) == time(5, 0)
    assert day_cutoff({}, {}) == time(6, 0)
    assert doors_open_minutes({"doors_open_minutes_before": 0}, {"doors_open_minutes_before": 45}) == 0
    assert doors_open_minutes({}, {"doors_open_minutes_before": 45}) == 45
    assert doors_open_minutes({}, {}) is None
