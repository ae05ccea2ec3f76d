"""What the crowd says of itself."""

from voelgoed.demo.figures import KEPT_MAX, WINDOW_S, Figures


def test_counts_are_by_the_second_and_totals_for_good() -> None:
    """Two looks two seconds apart; what was counted once is not counted again."""
    now = [100.0]
    figures = Figures(lambda: now[0])
    figures.count("holds", 6)
    now[0] += 2
    first = figures.look(people=3, watching=1)
    now[0] += 1
    second = figures.look(people=0, watching=0)
    assert first["per_s"]["holds"] == 3.0  # type: ignore[index]
    assert (first["people"], first["watching"]) == (3, 1)
    assert second["per_s"]["holds"] == 0.0  # type: ignore[index]
    assert second["totals"]["holds"] == 6  # type: ignore[index]


def test_times_are_those_of_the_last_few_seconds_and_bounded() -> None:
    """Half and 95 of 100; nothing where nobody asked lately."""
    now = [100.0]
    figures = Figures(lambda: now[0])
    for ms in range(100):
        figures.answered(ms / 1_000)
    seen = figures.look(people=0, watching=0)
    assert (seen["p50_ms"], seen["p95_ms"]) == (50.0, 95.0)
    now[0] += WINDOW_S + 1
    assert figures.look(people=0, watching=0)["p50_ms"] is None
    for _ in range(2 * KEPT_MAX):
        figures.answered(0.001)
    assert len(figures._answers) == KEPT_MAX
