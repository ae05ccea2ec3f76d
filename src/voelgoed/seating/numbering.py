"""How halls count: labels of rows and numbers of seats, by the schemes people know."""

from collections.abc import Sequence
from enum import StrEnum

LETTERS = "ABCDEFGHJKLMNPQRSTUVWXYZ"  # without I and O, which look like 1 and 0
CONTINENTAL_FIRST = 101


class RowScheme(StrEnum):
    """How rows are called, from the front."""

    LETTERS = "letters"
    NUMBERS = "numbers"
    CUSTOM = "custom"


class SeatScheme(StrEnum):
    """How the seats of a row are counted, from the left as one sits.

    Six seats: 1 2 3 4 5 6 · 6 5 4 3 2 1 · 5 3 1 2 4 6 (odd and even) · 6 4 2 1 3 5 (from the centre) · 101 to 106.
    """

    LEFT_TO_RIGHT = "left_to_right"
    RIGHT_TO_LEFT = "right_to_left"
    ODD_EVEN = "odd_even"
    CENTRE_OUT = "centre_out"
    CONTINENTAL = "continental"
    CUSTOM = "custom"


def letters(index: int) -> str:
    """A to Z without I and O, then AA, AB and so on."""
    assert index >= 0
    label = ""
    rest = index + 1
    while rest:
        rest, letter = divmod(rest - 1, len(LETTERS))
        label = LETTERS[letter] + label
    return label


def row_labels(scheme: RowScheme, count: int, *, first: int = 1, custom: Sequence[str] = ()) -> list[str]:
    """The labels of so many rows; `first` tells where to begin: 1 is A."""
    if scheme is RowScheme.CUSTOM:
        assert len(custom) >= count
        return list(custom[:count])
    if scheme is RowScheme.LETTERS:
        return [letters(index) for index in range(first - 1, first - 1 + count)]
    return [str(number) for number in range(first, first + count)]


def seat_numbers(scheme: SeatScheme, count: int, *, first: int = 1) -> list[int]:
    """The numbers of a row from the left. A custom row is numbered from the left as well: only its labels differ."""
    counted = list(range(first, first + count))
    match scheme:
        case SeatScheme.LEFT_TO_RIGHT | SeatScheme.CUSTOM:
            return counted
        case SeatScheme.RIGHT_TO_LEFT:
            return counted[::-1]
        case SeatScheme.ODD_EVEN:
            return [*counted[::2][::-1], *counted[1::2]]
        case SeatScheme.CENTRE_OUT:
            return [*counted[1::2][::-1], *counted[::2]]
        case SeatScheme.CONTINENTAL:
            return [number + CONTINENTAL_FIRST - 1 for number in counted]
