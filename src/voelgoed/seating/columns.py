"""The seats of one row as columns: `[7, 9, 11]`, `{"start": 7, "step": 2}` or one value for all, both ways."""

from collections.abc import Callable, Sequence
from enum import Enum

from voelgoed.seating.faults import FaultCode, Faults
from voelgoed.seating.model import Category
from voelgoed.seating.nodes import Node, as_word, check_range, check_text, check_type, is_whole, shown

RUN_MIN = 3  # shorter ones are as short as lists
DIGITS_MAX = 9
_INT_RUN_KEYS = frozenset({"start", "step"})
_TEXT_RUN_KEYS = frozenset({"prefix", "start", "step"})


class Cell(Enum):
    """What stands where there is no value."""

    ABSENT = "absent"
    BAD = "bad"


Values = list[object]


class Column:
    """One value per seat, absent or bad ones included, and where each of them was written."""

    def __init__(self, values: Values, path_of: Callable[[int], str]) -> None:
        self.values = values
        self.path_of = path_of


def read_ints(node: Node, key: str, count: int, low: int, high: int, *, absent: Cell = Cell.ABSENT) -> Column:
    """A column of whole numbers. Only a list can be wrong in many places, so its values are checked by the caller."""
    value, path, faults = node.value.get(key), node.at(key), node.faults
    if value is None:
        return _same(absent, path, count)
    if isinstance(value, list):
        return _listed(value, path, count, faults)
    if not isinstance(value, dict):
        return _same(value if check_range(value, path, low, high, faults) else Cell.BAD, path, count)
    numbers = _run(Node(value, path, faults, _INT_RUN_KEYS), count)
    if numbers is None or not all(check_range(end, path, low, high, faults) for end in _ends(numbers)):
        return _same(Cell.BAD, path, count)
    return Column(list(numbers), _places_of(path))


def read_texts(node: Node, key: str, count: int, chars_max: int) -> Column:
    """A column of texts: a list, or a beginning and numbers after it."""
    value, path, faults = node.value.get(key), node.at(key), node.faults
    if value is None:
        return _same(Cell.ABSENT, path, count)
    if isinstance(value, list):
        return _listed(value, path, count, faults)
    if not check_type(value, dict, path, faults):
        return _same(Cell.BAD, path, count)
    assert isinstance(value, dict)
    run = Node(value, path, faults, _TEXT_RUN_KEYS)
    prefix = value.get("prefix", "")
    numbers = _run(run, count) if check_type(prefix, str, run.at("prefix"), faults) else None
    if numbers is None or not all(check_range(end, path, 0, 10**9, faults) for end in _ends(numbers)):
        return _same(Cell.BAD, path, count)
    if not all(check_text(f"{prefix}{end}", path, chars_max, faults) for end in _ends(numbers)):
        return _same(Cell.BAD, path, count)
    return Column([f"{prefix}{number}" for number in numbers], _places_of(path))


def read_categories(node: Node, key: str, count: int) -> Column:
    """A column of categories: a list, one for all, or the places of each."""
    value, path, faults = node.value.get(key), node.at(key), node.faults
    if value is None:
        return _same(Cell.ABSENT, path, count)
    if isinstance(value, list):
        return _listed(value, path, count, faults)
    if not isinstance(value, dict):
        return _same(as_word(value, path, Category, faults) or Cell.BAD, path, count)
    named = Node(value, path, faults, frozenset(Category))
    column = _same(Cell.ABSENT, path, count)
    for word in Category:
        for place_path, place in named.items(word, count):
            if check_place(place, place_path, count, faults):
                assert isinstance(place, int)
                column.values[place - 1] = word.value
    return column


def read_companions(node: Node, key: str, count: int) -> Column:
    """A column that few seats use: codes by place."""
    value, path, faults = node.value.get(key), node.at(key), node.faults
    column = Column([Cell.ABSENT] * count, lambda place: f"{path}.{place + 1}")
    if value is None or not check_type(value, dict, path, faults):
        return column
    assert isinstance(value, dict)
    for place, code in value.items():
        found = int(place) if _is_plain_number(place) else place
        if check_place(found, f"{path}.{shown(place)[1:-1]}", count, faults):
            column.values[int(place) - 1] = code
    return column


def check_place(place: object, path: str, count: int, faults: Faults) -> bool:
    """Note what is no place of a row."""
    if is_whole(place):
        assert isinstance(place, int)
        if 1 <= place <= count:
            return True
    faults.add(path, FaultCode.PLACE_OUTSIDE_ROW, f"{shown(place)} is no place of a row of {count} seats.")
    return False


def write_ints(values: Sequence[int]) -> object:
    """The shortest way to say it; always the same for the same values."""
    first = values[0]
    if all(value == first for value in values):
        return first
    step = values[1] - first
    if len(values) < RUN_MIN or values != list(range(first, first + step * len(values), step) if step else ()):
        return values
    return {"start": first} if step == 1 else {"start": first, "step": step}


def write_texts(values: Sequence[str]) -> object:
    """The shortest way to say it: numbers after a common beginning, or a list."""
    prefix = values[0].rstrip("0123456789")
    tails = [value[len(prefix) :] for value in values]
    is_run = all(value.startswith(prefix) for value in values) and all(map(_is_plain_number, tails))
    run = write_ints([int(tail) for tail in tails]) if is_run and len(values) >= RUN_MIN else None
    if not isinstance(run, dict):
        return values
    return {"prefix": prefix, **run} if prefix else run


def _is_plain_number(text: str) -> bool:
    return len(text) <= DIGITS_MAX and text.isascii() and text.isdigit() and str(int(text)) == text


def _listed(value: Values, path: str, count: int, faults: Faults) -> Column:
    if len(value) != count:
        faults.add(path, FaultCode.COLUMN_LENGTH, f"{len(value)} values for {count} seats.")
        return _same(Cell.BAD, path, count)
    return Column([Cell.ABSENT if item is None else item for item in value], _places_of(path))


def _same(value: object, path: str, count: int) -> Column:
    return Column([value] * count, _places_of(path))


def _places_of(path: str) -> Callable[[int], str]:
    """The path of one seat's value, also where it was written in another way than a list: it says which seat."""
    return lambda place: f"{path}[{place}]"


def _run(node: Node, count: int) -> range | None:
    """The numbers of `{"start", "step"}`; None when they are no good."""
    before = node.faults.count
    start, step = node.value.get("start", 1), node.value.get("step", 1)
    limit = 10**9
    check_range(start, node.at("start"), -limit, limit, node.faults)
    check_range(step, node.at("step"), -limit, limit, node.faults)
    if node.faults.count != before:
        return None
    assert isinstance(start, int)
    assert isinstance(step, int)
    if step == 0:
        node.faults.add(node.at("step"), FaultCode.OUT_OF_RANGE, "A step of 0 goes nowhere.", "Give the value itself.")
        return None
    return range(start, start + step * count, step)


def _ends(numbers: range) -> tuple[int, ...]:
    """First and last: what lies between lies within their range. One is enough where the other is the same."""
    return tuple(dict.fromkeys((numbers[0], numbers[-1]))) if numbers else ()
