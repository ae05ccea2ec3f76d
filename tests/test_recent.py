"""What was met of late: for a minute or two, and no more than so much."""

from voelgoed.recent import KNOWN_S, Recent


def test_newcomers_are_known_for_a_minute_or_two() -> None:
    """Who comes back meanwhile stays known; of the others nothing is kept, so a day of visitors takes no room."""
    now = 0
    recent = Recent[int, str](1_000, lambda: now)
    for now in range(0, 600, 3):
        recent.put(now, "once")
        assert recent.get(0) == "once"
        assert len(recent) <= 1 + 2 * KNOWN_S / 3
    assert recent.get(597) == "once"
    assert recent.get(597 - 130) is None


def test_who_comes_back_does_not_lift_the_limit() -> None:
    """A crowd of which nobody leaves."""
    recent = Recent[int, str](10)
    for newest in range(100):
        recent.put(newest, "here")
        assert recent.get(newest) == "here"
        assert sum(recent.get(one) is not None for one in range(newest)) < len(recent) <= 20


def test_without_anybody_new_they_are_forgotten_as_well() -> None:
    """When somebody who keeps the time says so, and not before the time has come."""
    now = 0.0
    recent = Recent[str, int](10, lambda: now)
    recent.put("a", 1)
    kept = []
    for now in (10.0, 50.0, 70.0, 100.0, 140.0):
        recent.forget(now)
        kept.append(len(recent))
    assert kept == [1, 1, 1, 1, 0]
