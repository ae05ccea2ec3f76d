"""The audit search: facts of one organization, newest first, a page at a time, with where they came from."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import msgspec

from voelgoed.db import Conn
from voelgoed.ids import OrganizationId
from voelgoed.journal import store
from voelgoed.journal.model import Page, RecordedFact, SearchFilter
from voelgoed.paging import LIMIT_MAX, CursorInvalid, decode, encode

SEQ_MAX = 2**63 - 1
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
FIRST_MOMENT, LAST_MOMENT = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
MICROSECONDS_MAX = (LAST_MOMENT - EPOCH) // MICROSECOND


class Place(msgspec.Struct, frozen=True, array_like=True):
    """The last fact of a page, as a cursor says it; the time in microseconds, as exact as the database has it."""

    recorded_us: int
    seq: int


async def search(
    conn: Conn, organization_id: OrganizationId, asked: SearchFilter, cursor: str | None, limit: int
) -> Page:
    """One page. A fact that is recorded meanwhile never shifts the pages that follow: they hang on the last fact."""
    assert 1 <= limit <= LIMIT_MAX
    after = read_cursor(cursor) if cursor is not None else None
    asked = replace(asked, since=_in_utc(asked.since), until=_in_utc(asked.until))
    await store.plan_for_values(conn)
    facts = await store.search(conn, organization_id, asked, after, limit + 1)  # one more tells whether there is more
    shown = facts[:limit]
    return Page(facts=shown, next_cursor=write_cursor(shown[-1]) if len(facts) > limit else None)


def write_cursor(fact: RecordedFact) -> str:
    """A place between two facts, opaque to whoever carries it."""
    return encode(msgspec.msgpack.encode(Place((fact.recorded_at - EPOCH) // MICROSECOND, fact.seq)))


def read_cursor(cursor: str) -> tuple[datetime, int]:
    """The time and number of the fact again; anything else than a cursor of this list is refused."""
    try:
        place = msgspec.msgpack.decode(decode(cursor), type=Place)
    except msgspec.MsgspecError as wrong:
        raise CursorInvalid from wrong
    if not (0 <= place.recorded_us <= MICROSECONDS_MAX and 0 <= place.seq <= SEQ_MAX):
        raise CursorInvalid
    return EPOCH + place.recorded_us * MICROSECOND, place.seq


def _in_utc(moment: datetime | None) -> datetime | None:
    """The same moment in UTC; one that falls off the calendar there is the calendar's first or last."""
    if moment is None:
        return None
    assert moment.tzinfo is not None
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        return FIRST_MOMENT if moment.year == 1 else LAST_MOMENT
