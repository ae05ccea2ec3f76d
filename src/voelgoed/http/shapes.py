"""The shapes of what goes in and out of more than one resource."""

import re
from datetime import UTC, datetime
from typing import Annotated, Generic, TypeVar

from fastapi import Query
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from voelgoed.paging import LIMIT_DEFAULT, LIMIT_MAX

T = TypeVar("T")

CURSOR_CHARS_MAX = 200
RFC_3339 = re.compile(r"\d{4}-\d{2}-\d{2}[Tt ]\d{2}:\d{2}:\d{2}(\.\d+)?([Zz]|[+-]\d{2}:\d{2})")
EARLIEST, LATEST = datetime(1900, 1, 1, tzinfo=UTC), datetime(3000, 1, 1, tzinfo=UTC)
MOMENT = f"RFC 3339 with a time zone, in the years {EARLIEST.year} to {LATEST.year - 1} (UTC)"
SOME_TEXT = r"^[^\x00]*[^\s\x00][^\x00]*$"  # blanks are no reason
SLUG = r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?$"
NO_NUL = r"^[^\x00]*$"  # PostgreSQL keeps no such character


def in_utc(moment: datetime) -> datetime:
    """Return the same moment in UTC. One without a zone would mean something else on every machine."""
    if moment.tzinfo is None:
        raise ValueError("must have a time zone, such as Z")
    if not EARLIEST <= moment < LATEST:
        raise ValueError(f"must be in the years {EARLIEST.year} to {LATEST.year - 1} (UTC)")
    return moment.astimezone(UTC)


def only_rfc_3339(value: object) -> object:
    """Refuse seconds since 1970 and other spellings: the contract says RFC 3339."""
    if not isinstance(value, str) or not RFC_3339.fullmatch(value):
        raise ValueError("must be a text such as 2027-03-12T19:30:00Z")
    return value


Moment = Annotated[datetime, BeforeValidator(only_rfc_3339), AfterValidator(in_utc), Field(description=MOMENT)]
"""A time in a request. A plain `datetime` would let in what overflows in UTC or when a year is added to it, and the
first and last moments of the calendar, which the driver stores as infinity."""
Name = Annotated[str, Field(min_length=1, max_length=200, pattern=NO_NUL)]
Slug = Annotated[str, Field(min_length=1, max_length=63, pattern=SLUG)]
Email = Annotated[str, Field(min_length=3, max_length=254, pattern=r"^[^@\s\x00]+@[^@\s\x00]+$")]
Password = Annotated[str, Field(min_length=1, max_length=1000)]
ReasonText = Annotated[str, Field(min_length=1, max_length=2000, pattern=SOME_TEXT)]
Flag = Annotated[bool, Field(strict=True)]  # 0 and "yes" are not what the contract says
Limit = Annotated[int, Query(ge=1, le=LIMIT_MAX)]
Cursor = Annotated[str | None, Query(min_length=1, max_length=CURSOR_CHARS_MAX)]
LIMIT = LIMIT_DEFAULT


class Body(BaseModel):
    """What comes in: nothing that is not asked for."""

    model_config = ConfigDict(extra="forbid")


class View(BaseModel):
    """What goes out, made from our own values."""

    model_config = ConfigDict(from_attributes=True)


class Data(BaseModel, Generic[T]):
    """One thing."""

    data: T


class Listed(BaseModel, Generic[T]):
    """A page of things; without a cursor there are no more."""

    data: list[T]
    next_cursor: str | None


class ProblemView(BaseModel):
    """Every refusal looks like this."""

    error: str
    message: str
    details: dict[str, object]
    effect: str = Field(pattern="^(none|unknown)$")
    request_id: str
