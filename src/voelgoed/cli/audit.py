"""`voelgoed audit`: what happened in an organization, for a person at the terminal or for a program."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime, timedelta

from msgspec import structs
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from voelgoed.accounts.usecases import find_organization
from voelgoed.db import Database
from voelgoed.errors import StartRefused
from voelgoed.journal.model import RecordedFact, SearchFilter
from voelgoed.journal.search import search as search_page
from voelgoed.paging import LIMIT_MAX

FACTS_MAX = 10_000
SPANS = {"m": timedelta(minutes=1), "h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}
SPAN = re.compile(r"(\d{1,5})([mhdw])")
PAIR = 2
BEFORE, AFTER = "_before", "_after"


async def search(db: Database, *, slug: str, asked: SearchFilter, limit: int) -> list[RecordedFact]:
    """Facts of the organization at this address, newest first."""
    if not 1 <= limit <= FACTS_MAX:
        raise StartRefused(f"--limit must be from 1 to {FACTS_MAX}")
    organization = await find_organization(db, slug=slug)
    if organization is None:
        raise StartRefused(f"there is no organization {slug!r}")
    found: list[RecordedFact] = []
    cursor: str | None = None
    while len(found) < limit:
        async with db.transaction(organization.id) as conn:
            page = await search_page(conn, organization.id, asked, cursor, min(LIMIT_MAX, limit - len(found)))
        found += page.facts
        cursor = page.next_cursor
        if cursor is None:
            break
    return found


def read_time(told: str, *, now: datetime) -> datetime:
    """A moment as a person writes it: `2026-08-01`, `2026-08-01T18:30+02:00`, or how long ago: `90m`, `24h`, `7d`.

    Without a time zone it is UTC, like everything that is printed.
    """
    try:
        if span := SPAN.fullmatch(told):
            return now - int(span[1]) * SPANS[span[2]]
        moment = datetime.fromisoformat(told)
        return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        raise StartRefused(
            f"{told!r} is no time", hint="write 2026-08-01, 2026-08-01T18:30+02:00, or how long ago: 90m, 24h, 7d, 2w"
        ) from None


def show(facts: Sequence[RecordedFact], *, as_json: bool) -> None:
    """Print the facts: a line of JSON each for programs, a table for people."""
    if as_json:
        for fact in facts:
            print(json.dumps(_plain(fact), default=str))
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("Time (UTC)", no_wrap=True)
    table.add_column("What", overflow="fold")
    table.add_column("Who", overflow="fold")
    table.add_column("Why", overflow="fold")
    table.add_column("Changed", overflow="fold", ratio=1)
    for fact in facts:
        told = f"{fact.recorded_at.astimezone(UTC):%Y-%m-%d %H:%M:%S}", fact.kind, _who(fact), fact.reason or ""
        table.add_row(*map(_text, told), _text("\n".join(_changes(fact))))
    console = Console(highlight=False)
    console.print(table)
    console.print(f"{len(facts)} facts" if len(facts) != 1 else "1 fact")


def _plain(fact: RecordedFact) -> dict[str, object]:
    """A fact as JSON says it; the keys of the API, with the place in the journal's order."""
    told = structs.asdict(fact) | {"origin": asdict(fact.origin) if fact.origin else None}
    del told["origin_id"]
    return told | {"recorded_at": fact.recorded_at.astimezone(UTC).isoformat().replace("+00:00", "Z")}


def _who(fact: RecordedFact) -> str:
    """The actor, and where they were."""
    who = str(fact.actor_id) if fact.actor_id else "the system"
    return f"{who}\n{fact.origin.ip}" if fact.origin and fact.origin.ip else who


def _changes(fact: RecordedFact) -> Iterator[str]:
    """What the fact is about and what changed, a line each."""
    if fact.event_id:
        yield f"event {fact.event_id}"
    if fact.seat_id:
        yield f"seat {fact.seat_id}"
    data = dict(fact.data)
    changes = data.pop("changes", None)
    for name, value in data.items():
        stem = name.removesuffix(AFTER)
        if stem != name and stem + BEFORE in data:
            yield f"{_words(stem)}: {_value(data[stem + BEFORE])} → {_value(value)}"
        elif name.endswith(BEFORE) and name.removesuffix(BEFORE) + AFTER in data:
            continue
        elif value is not None and value != str(fact.event_id):
            yield f"{_words(name)}: {_value(value)}"
    if isinstance(changes, Mapping):
        for name, pair in changes.items():
            before, after = pair if isinstance(pair, list) and len(pair) == PAIR else (None, pair)
            yield f"{_words(name)}: {_value(before)} → {_value(after)}"


def _words(name: str) -> str:
    return name.replace("_", " ")


def _value(value: object) -> str:
    if value is None:
        return "none"
    if isinstance(value, Mapping | list):
        return json.dumps(value, ensure_ascii=False)
    return str(value)


def _text(told: str) -> Text:
    """As it is: no markup, and nothing that a terminal would obey, for some of it was written by strangers."""
    return Text("".join(char if char.isprintable() or char == "\n" else "�" for char in told))
