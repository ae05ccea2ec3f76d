"""Lists in pages: an opaque cursor that says where the next page begins."""

import base64
import binascii
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Generic, TypeVar
from uuid import UUID

from voelgoed.errors import DomainError, Kind

T = TypeVar("T")

LIMIT_DEFAULT = 50
LIMIT_MAX = 200
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class CursorInvalid(DomainError):
    """The cursor was not made by us, or belongs to another list."""

    kind = Kind.INVALID
    code = "cursor_invalid"
    message = "The cursor is not one that this list gave out."


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """Some of a list; no cursor means that there is no more."""

    items: Sequence[T]
    next_cursor: str | None


def page_by_id(found: Sequence[T], limit: int, id_of: Callable[[T], UUID]) -> Page[T]:
    """Cut a list that was asked for one longer than the page, and remember where it was cut."""
    items = found[:limit]
    return Page(items, encode(id_of(items[-1]).bytes) if len(found) > limit else None)


def after_id(cursor: str | None) -> UUID | None:
    """The id behind which the page begins."""
    if cursor is None:
        return None
    data = decode(cursor)
    if len(data) != 16:  # noqa: PLR2004 - a UUID
        raise CursorInvalid
    return UUID(bytes=data)


def page_by_moment(found: Sequence[T], limit: int, place_of: Callable[[T], tuple[datetime, UUID]]) -> Page[T]:
    """The same for a list in the order of time; of what happens at one moment the id decides."""
    items = found[:limit]
    if len(found) <= limit:
        return Page(items, None)
    moment, found_id = place_of(items[-1])
    microseconds = (moment - EPOCH) // timedelta(microseconds=1)
    return Page(items, encode(microseconds.to_bytes(8, "big", signed=True) + found_id.bytes))


def after_moment(cursor: str | None) -> tuple[datetime, UUID] | None:
    """The moment and the id behind which the page begins."""
    if cursor is None:
        return None
    data = decode(cursor)
    if len(data) != 24:  # noqa: PLR2004 - a moment and a UUID
        raise CursorInvalid
    try:
        moment = EPOCH + timedelta(microseconds=int.from_bytes(data[:8], "big", signed=True))
    except OverflowError as beyond:
        raise CursorInvalid from beyond
    return moment, UUID(bytes=data[8:])


def page_by_number(found: Sequence[T], limit: int, number_of: Callable[[T], int]) -> Page[T]:
    """The same for a list that is counted, latest first."""
    items = found[:limit]
    return Page(items, encode(number_of(items[-1]).to_bytes(4, "big")) if len(found) > limit else None)


def after_number(cursor: str | None) -> int | None:
    """The number before which the page begins."""
    if cursor is None:
        return None
    data = decode(cursor)
    if len(data) != 4 or data[0] >= 0x80:  # noqa: PLR2004 - a positive integer of PostgreSQL
        raise CursorInvalid
    return int.from_bytes(data, "big")


def page_by_place(found: Sequence[T], limit: int, place_of: Callable[[T], int]) -> Page[T]:
    """The same for a list in which everything has its place, the first being 0."""
    items = found[:limit]
    return Page(items, encode(place_of(items[-1]).to_bytes(4, "big")) if len(found) > limit else None)


def after_place(cursor: str | None) -> int:
    """The place behind which the page begins; before the first it is -1."""
    number = after_number(cursor)
    return -1 if number is None else number


def encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def decode(cursor: str) -> bytes:
    """The bytes of a cursor, whatever they mean to their list."""
    try:
        return base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError) as wrong:
        raise CursorInvalid from wrong
