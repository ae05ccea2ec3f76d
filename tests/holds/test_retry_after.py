"""When a buyer who is over the rate limit is told to come again."""

from datetime import UTC, datetime, timedelta

import pytest

from voelgoed.holds import booking
from voelgoed.holds.model import Item, Outcome, Verdict
from voelgoed.ids import new_id

NOW = datetime(2026, 7, 1, 12, tzinfo=UTC)


class Frozen(datetime):
    """A clock that stands still."""

    @classmethod
    def now(cls, tz: object = None) -> datetime:  # type: ignore[override]
        return NOW


@pytest.mark.parametrize(
    ("left_s", "retry_after_s"), [(0.0, 1), (0.4, 1), (1.0, 1), (1.000001, 2), (59.2, 60), (300.0, 300)]
)
def test_retry_after_is_never_too_early(monkeypatch: pytest.MonkeyPatch, left_s: float, retry_after_s: int) -> None:
    """A client that waits for as long as it is told finds the window over: seconds are rounded up."""
    monkeypatch.setattr(booking, "datetime", Frozen)
    said = [Verdict(outcome=Outcome.RATE_LIMITED, until=NOW + timedelta(seconds=left_s))]
    refusal = booking._refusal((Item(new_id(), seat_id=new_id()),), said)
    assert refusal.facts["retry_after_s"] == retry_after_s
