"""The settings of venues, gates and events: known keys are held to their form, unknown ones are kept. Pure."""

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import time
from types import MappingProxyType
from typing import Any, Final

import msgspec

from voelgoed.events.calendar import CUTOFF
from voelgoed.events.model import Json

KEYS_MAX: Final = 100
DEPTH_MAX: Final = 8
BYTES_MAX: Final = 16 * 1024
CATEGORIES: Final = ("theatre", "music", "sport", "family", "festival", "talk", "other")
CLOCK_FORM: Final = re.compile(r"([01][0-9]|2[0-3]):[0-5][0-9]")
WHOLE_MAX: Final = 2**53
FLOAT_MAX: Final = 1e15
FLOAT_LEAST: Final = 1e-9
"""Beyond these PostgreSQL writes a number out in hundreds of digits, and the cache cannot keep it."""

Check = Callable[[Any], str | None]


def _whole(least: int, most: int) -> Check:
    def check(value: Any) -> str | None:
        fits = isinstance(value, int) and not isinstance(value, bool) and least <= value <= most
        return None if fits else f"must be a whole number from {least} to {most}"

    return check


def _number(least: float, most: float) -> Check:
    def check(value: Any) -> str | None:
        fits = isinstance(value, int | float) and not isinstance(value, bool) and least <= value <= most
        return None if fits else f"must be a number from {least} to {most}"

    return check


def _text(most: int) -> Check:
    def check(value: Any) -> str | None:
        return (
            None if isinstance(value, str) and 1 <= len(value) <= most else f"must be a text of 1 to {most} characters"
        )

    return check


def _one_of(*known: str) -> Check:
    return lambda value: None if value in known else f"must be one of {', '.join(known)}"


def _yes_or_no(value: Any) -> str | None:
    return None if isinstance(value, bool) else "must be true or false"


def _clock(value: Any) -> str | None:
    fits = isinstance(value, str) and CLOCK_FORM.fullmatch(value)
    return None if fits else "must be a time of day such as 06:00"


SHARED: Final[Mapping[str, Check]] = MappingProxyType(
    {
        "doors_open_minutes_before": _whole(0, 24 * 60),
        "day_cutoff": _clock,
        "access_rules": _text(2000),
        "bag_policy": _text(500),
    }
)
VENUE: Final[Mapping[str, Check]] = MappingProxyType({**SHARED, "step_free": _yes_or_no, "contact": _text(500)})
EVENT: Final[Mapping[str, Check]] = MappingProxyType(
    {**SHARED, "age_min": _whole(0, 120), "category": _one_of(*CATEGORIES), "cover": _text(100), "language": _text(35)}
)
GATE: Final[Mapping[str, Check]] = MappingProxyType(
    {"step_free": _yes_or_no, "lanes": _whole(1, 200), "notes": _text(500)}
)


ADDRESS: Final[Mapping[str, Check]] = MappingProxyType(
    {
        **dict.fromkeys(("street", "suburb", "city", "region"), _text(200)),
        "postal_code": _text(20),
        "country": _text(60),
        "latitude": _number(-90, 90),
        "longitude": _number(-180, 180),
    }
)


def wrong_settings(settings: Json, known: Mapping[str, Check]) -> dict[str, str]:
    """What is wrong, by key; empty when nothing is."""
    if why := _unkept(settings):
        return {"": why}
    found = {key: known[key](value) for key, value in settings.items() if key in known}
    return {key: why for key, why in found.items() if why}


def day_cutoff(event: Json, venue: Json) -> time:
    """When a day of this event ends: its own word, else the venue's, else the house's."""
    said = event.get("day_cutoff") or venue.get("day_cutoff")
    return time.fromisoformat(said) if isinstance(said, str) else CUTOFF


def doors_open_minutes(event: Json, venue: Json) -> int | None:
    """How long before the start the doors open, if anybody has said so."""
    for settings in (event, venue):
        said = settings.get("doors_open_minutes_before")
        if isinstance(said, int):
            return said
    return None


def _unkept(settings: Json) -> str | None:
    """Why this cannot be kept at all."""
    if len(settings) > KEYS_MAX:
        return f"at most {KEYS_MAX} keys"
    if _depth(settings) > DEPTH_MAX:
        return f"at most {DEPTH_MAX} levels deep"
    if not all(_is_keepable(one) for one in _leaves(settings)):
        return "a number is too large, or too small, to be kept"
    try:
        encoded = msgspec.json.encode(settings)
    except (OverflowError, UnicodeEncodeError, TypeError):
        return "numbers or texts that cannot be kept"
    if len(encoded) > BYTES_MAX:
        return f"at most {BYTES_MAX} bytes"
    return "a text has a character that cannot be kept" if b"\\u0000" in encoded else None


def _depth(value: object) -> int:
    """How deep a value is nested; no deeper than the limit is looked."""
    layer: list[object] = [value]
    for depth in range(DEPTH_MAX + 1):
        layer = _inside(layer)
        if not layer:
            return depth
    return DEPTH_MAX + 1


def _leaves(value: object) -> Iterator[object]:
    """Everything in a value, however deep; its depth is known to be bounded."""
    layer = [value]
    while layer:
        layer = _inside(layer)
        yield from layer


def _inside(layer: list[object]) -> list[object]:
    inner = [one for each in layer if isinstance(each, Mapping) for one in each.values()]
    return inner + [one for each in layer if isinstance(each, list) for one in each]


def _is_keepable(value: object) -> bool:
    match value:
        case bool():
            return True
        case int():
            return abs(value) <= WHOLE_MAX
        case float():
            return value == 0 or FLOAT_LEAST <= abs(value) <= FLOAT_MAX
        case _:
            return True
