"""Who sits beside whom: by position and segment, never by number."""

from collections.abc import Iterator, Sequence

from voelgoed.seating.model import COMPANIONS_PER_SPACE_MAX, Category, Layout, Row, Seat


def are_adjacent(left: Seat, right: Seat) -> bool:
    """Whether two seats of one row touch: no place and no aisle between them."""
    return left.segment == right.segment and abs(left.position - right.position) == 1


def blocks(row: Row) -> Iterator[tuple[Seat, ...]]:
    """The row in pieces without a gap, from the left."""
    start = 0
    for place in range(1, len(row.seats)):
        if not are_adjacent(row.seats[place - 1], row.seats[place]):
            yield row.seats[start:place]
            start = place
    if row.seats:
        yield row.seats[start:]


def neighbours(layout: Layout) -> dict[str, tuple[str | None, str | None]]:
    """The codes to the left and right of every seat; None where nobody can sit."""
    found: dict[str, tuple[str | None, str | None]] = {}
    for zone in layout.zones:
        for row in zone.rows:
            for block in blocks(row):
                codes = [None, *(seat.code for seat in block), None]
                found.update((seat.code, (codes[place], codes[place + 2])) for place, seat in enumerate(block))
    return found


def find_spaces(seats: Sequence[Seat]) -> dict[str, str]:
    """For companion seats of a row that name no wheelchair space: the nearest one, other companions between or not.

    From the left when both sides are as near. Who has none within reach stays without.
    """
    found: dict[str, str] = {}
    for place, seat in enumerate(seats):
        if seat.category is Category.COMPANION and seat.companion_of is None:
            reached = [_reach(seats, place, step) for step in (-1, 1)]
            near = min((one for one in reached if one is not None), default=None, key=lambda one: one[0])
            if near is not None:
                found[seat.code] = near[1]
    return found


def positions_by_number(numbers: Sequence[int], *, is_odd_even: bool = False) -> list[int]:
    """Places in a row that only tells its numbers. Rows of only odd or only even numbers count in twos.

    Odd and even means the odd numbers to the left and the even ones to the right, both counted from the middle. A
    number that is missing is a place that is missing: nobody knows what stands there, so it parts its neighbours.
    """
    if is_odd_even:
        places = [-(number // 2) if number % 2 else number // 2 for number in numbers]
    else:
        step = 2 if len(numbers) > 1 and len({number % 2 for number in numbers}) == 1 else 1
        places = [number // step for number in numbers]
    lowest = min(places, default=0)
    return [place - lowest + 1 for place in places]


def _reach(seats: Sequence[Seat], place: int, step: int) -> tuple[int, str] | None:
    """How far a wheelchair space is in one direction, over companions only, and its code."""
    for distance in range(1, COMPANIONS_PER_SPACE_MAX + 1):
        other = place + step * distance
        if not 0 <= other < len(seats) or not are_adjacent(seats[other - step], seats[other]):
            return None
        if seats[other].category is Category.WHEELCHAIR:
            return distance, seats[other].code
        if seats[other].category is not Category.COMPANION:
            return None
    return None
