"""The dense number of each seat within one version: by zone, row and position, from 0."""

from voelgoed.seating.model import Layout


def ordinals(layout: Layout) -> dict[str, int]:
    """The ordinal of each seat code. Rows keep their seats by position, so the order of the layout is the order."""
    numbered = {seat.code: ordinal for ordinal, (_, _, seat) in enumerate(layout.seats())}
    assert len(numbered) == layout.seat_count
    return numbered
