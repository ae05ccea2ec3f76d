"""Local time: the venue's zone decides what a clock on its wall shows, and to which day a moment belongs. Pure."""

import functools
import zoneinfo
from datetime import UTC, date, datetime, time, timedelta
from typing import Final
from zoneinfo import ZoneInfo

CUTOFF: Final = time(6, 0)
"""The night belongs to the evening before it: a day of an event ends at this hour, unless a setting says another."""
DAYS_MAX: Final = 368


@functools.cache
def zone_names() -> frozenset[str]:
    """Every zone a venue can have: a region's own, because only those know when its clocks change."""
    return frozenset(name for name in zoneinfo.available_timezones() if "/" in name or name == "UTC")


def wall_time(moment: datetime, timezone: str) -> datetime:
    """What a clock at the venue shows."""
    return moment.astimezone(ZoneInfo(timezone))


def moment_of(wall: datetime, timezone: str) -> datetime | None:
    """The moment at which a clock at the venue shows this; None in the hour that is left out in spring.

    In the hour that comes twice in autumn it is the first one, unless `fold` asks for the second.
    """
    assert wall.tzinfo is None
    local = wall.replace(tzinfo=ZoneInfo(timezone))
    moment = local.astimezone(UTC)
    return moment if wall_time(moment, timezone).replace(tzinfo=None, fold=0) == wall.replace(fold=0) else None


def day_of(moment: datetime, timezone: str, cutoff: time = CUTOFF) -> date:
    """The day of an event to which a moment belongs: until the cut-off it is still the evening before."""
    local = wall_time(moment, timezone)
    return local.date() if local.time() >= cutoff else local.date() - timedelta(days=1)


def days_of(start: datetime, end: datetime, timezone: str, cutoff: time = CUTOFF) -> list[date]:
    """The days on which an event takes place; the moment of its end does not begin another one."""
    assert start < end
    first = day_of(start, timezone, cutoff)
    last = day_of(end - timedelta(microseconds=1), timezone, cutoff)
    count = (last - first).days + 1
    return [first + timedelta(days=number) for number in range(min(count, DAYS_MAX))]
