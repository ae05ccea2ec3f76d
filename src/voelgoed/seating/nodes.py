"""Reading objects of a JSON document key by key: what is wrong is noted with its path, and reading goes on."""

import difflib
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import TypeVar

from voelgoed.seating.faults import FAULTS_REPORTED_MAX, FaultCode, Faults
from voelgoed.seating.model import COORDINATE_MAX, Point

Word = TypeVar("Word", bound=StrEnum)
POINT_LENGTH = 2
SHOWN_CHARS_MAX = 40
_NAMES = {dict: "an object", list: "a list", str: "text", bool: "true or false", int: "a whole number"}


def shown(value: object) -> str:
    """A value as it is quoted in a message: short, and on one line."""
    text = repr(value)
    return text if len(text) <= SHOWN_CHARS_MAX else f"{text[: SHOWN_CHARS_MAX - 3]}..."


def is_whole(value: object) -> bool:
    """Whether a value is a whole number; true and false are not."""
    return type(value) is int


def check_type(value: object, wanted: type, path: str, faults: Faults) -> bool:
    """Note a value of another type; true and false are no numbers."""
    if type(value) is wanted:
        return True
    faults.add(path, FaultCode.WRONG_TYPE, f"{shown(value)} is not {_NAMES[wanted]}.")
    return False


def check_text(value: object, path: str, chars_max: int, faults: Faults) -> bool:
    """Note what is no good as a name, a label or a code."""
    if not isinstance(value, str):
        return check_type(value, str, path, faults)
    if not value or value != value.strip():
        faults.add(path, FaultCode.BLANK, f"{shown(value)} is empty or has spaces around it.")
    elif len(value) > chars_max:
        faults.add(path, FaultCode.TOO_LONG, f"{shown(value)} has {len(value)} characters; {chars_max} are allowed.")
    elif not value.isprintable():
        faults.add(path, FaultCode.NOT_PRINTABLE, f"{shown(value)} has characters that cannot be printed.")
    else:
        return True
    return False


def check_range(value: object, path: str, low: int, high: int, faults: Faults) -> bool:
    """Note what is no whole number within the range."""
    if not is_whole(value):
        return check_type(value, int, path, faults)
    assert isinstance(value, int)
    if low <= value <= high:
        return True
    faults.add(path, FaultCode.OUT_OF_RANGE, f"{shown(value)} is not between {low} and {high}.")
    return False


class Node:
    """An object of the document and where it stands. Every key is asked for by name; others are faults."""

    def __init__(self, value: Mapping[str, object], path: str, faults: Faults, keys: frozenset[str]) -> None:
        self.value = value
        self.path = path
        self.faults = faults
        for key in value:
            if key in keys:
                continue
            # Looking for what was meant takes a while, and a file may be full of keys that mean nothing.
            is_told = faults.count < FAULTS_REPORTED_MAX and len(key) <= SHOWN_CHARS_MAX
            near = difflib.get_close_matches(key, sorted(keys), 1) if is_told else []
            hint = f"Did you mean {near[0]}?" if near else f"Known are: {', '.join(sorted(keys))}."
            faults.add(self.at(shown(key)[1:-1]), FaultCode.UNKNOWN_KEY, f"{shown(key)} is not known here.", hint)

    def at(self, key: str) -> str:
        return f"{self.path}.{key}" if self.path else key

    def has(self, key: str) -> bool:
        """Whether there is a value; null is as good as none."""
        return self.value.get(key) is not None

    def require(self, key: str) -> bool:
        """Note a key that must be there and is not."""
        if not self.has(key):
            self.faults.add(self.at(key), FaultCode.MISSING, f"{key} is missing.")
        return self.has(key)

    def text(self, key: str, chars_max: int) -> str | None:
        """Text under a key that must be there; None when it is not, or no good."""
        if not self.require(key):
            return None
        return self.optional_text(key, chars_max)

    def optional_text(self, key: str, chars_max: int) -> str | None:
        value = self.value.get(key)
        if value is None or not check_text(value, self.at(key), chars_max, self.faults):
            return None
        return str(value)

    def whole(self, key: str, low: int, high: int) -> int | None:
        """A whole number, if there is one."""
        value = self.value.get(key)
        if value is None or not check_range(value, self.at(key), low, high, self.faults):
            return None
        assert isinstance(value, int)
        return value

    def word(self, key: str, words: type[Word], default: Word | None = None) -> Word | None:
        """One of the words of a list; a key without a default must be there."""
        if default is not None and not self.has(key):
            return default
        if not self.require(key):
            return None
        return as_word(self.value[key], self.at(key), words, self.faults)

    def items(self, key: str, most: int) -> list[tuple[str, object]]:
        """The items of a list with their paths; none when there is no list."""
        value = self.value.get(key)
        if value is None or not check_type(value, list, self.at(key), self.faults):
            return []
        assert isinstance(value, list)
        if len(value) > most:
            self.faults.add(self.at(key), FaultCode.TOO_MANY, f"{len(value)} of them; {most} are allowed.")
            return []
        return [(f"{self.at(key)}[{index}]", item) for index, item in enumerate(value)]

    def nodes(self, key: str, most: int, keys: frozenset[str]) -> Iterator["Node | None"]:
        """The objects of a list; None for what is no object, so that the rest keeps its places."""
        for path, item in self.items(key, most):
            if check_type(item, dict, path, self.faults):
                assert isinstance(item, dict)
                yield Node(item, path, self.faults, keys)
            else:
                yield None

    def point(self, key: str) -> Point | None:
        value = self.value.get(key)
        return None if value is None else as_point(value, self.at(key), self.faults)

    def points(self, key: str, low: int, high: int) -> tuple[Point, ...]:
        """An outline: a list of points, empty when there is none."""
        if self.value.get(key) is None:
            return ()
        before = self.faults.count
        points = [as_point(item, path, self.faults) for path, item in self.items(key, high)]
        if self.faults.count == before and len(points) < low:
            self.faults.add(self.at(key), FaultCode.OUT_OF_RANGE, f"{len(points)} points; at least {low} are needed.")
        return tuple(point for point in points if point is not None)


def as_word(value: object, path: str, words: type[Word], faults: Faults) -> Word | None:
    """A value as one of the words of a list."""
    if not isinstance(value, str):
        check_type(value, str, path, faults)
        return None
    try:
        return words(value)
    except ValueError:
        faults.add(path, FaultCode.UNKNOWN_VALUE, f"{shown(value)} is none of {', '.join(words)}.")
        return None


def as_point(value: object, path: str, faults: Faults) -> Point | None:
    """A value as `[x, y]`."""
    if not isinstance(value, list) or len(value) != POINT_LENGTH:
        faults.add(path, FaultCode.WRONG_TYPE, f"{shown(value)} is not a point.", "Write a point as [x, y].")
        return None
    x, y = value
    good_x = check_range(x, f"{path}[0]", -COORDINATE_MAX, COORDINATE_MAX, faults)
    good_y = check_range(y, f"{path}[1]", -COORDINATE_MAX, COORDINATE_MAX, faults)
    return (x, y) if good_x and good_y else None
