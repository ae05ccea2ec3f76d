"""What this domain is, and what it is not: venues, gates, events and their times; no seats, prices, money or holds."""

import ast
import re
from pathlib import Path

import pytest

from voelgoed import events
from voelgoed.db import Connection, load_queries

ROOM = Path(str(events.__file__)).parent
TABLES = {"venues", "gates", "events", "event_catalogues"}
LOWER = {"voelgoed.accounts", "voelgoed.journal", "voelgoed.telemetry"}
ROOT_FILES = {"voelgoed.cache", "voelgoed.db", "voelgoed.errors", "voelgoed.ids", "voelgoed.paging", "voelgoed.redis"}
NOT_OURS = re.compile(r"seat|zone_|layout|row_|price|amount|currency|hold|checkout|ticket|order|payment")


@pytest.mark.req("EV-01")
def test_it_reaches_only_what_stands_below_it() -> None:
    """Nothing of seating, holds, ticketing or scanning is imported, and no table of theirs is asked."""
    imported = {
        ".".join(node.module.split(".")[:2])
        for path in ROOM.glob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("voelgoed.")
    }
    assert imported - {"voelgoed.events"} <= LOWER | ROOT_FILES
    queries = "\n".join(load_queries(ROOM / "queries.sql").values())
    asked = set(re.findall(r"(?:from|join|into|update)\s+([a-z_]+)", re.sub(r"--.*", "", queries)))
    assert asked - {"chain", "set"} == TABLES | {"organizations"}


@pytest.mark.req("EV-01")
async def test_its_tables_hold_no_others_affairs(owner_conn: Connection) -> None:
    """No column speaks of seats, prices or holds; an event's number for its inventory is all that others keep there."""
    rows = await owner_conn.fetch(
        "select table_name, column_name from information_schema.columns where table_name = any ($1)", list(TABLES)
    )
    assert {row["table_name"] for row in rows} == TABLES
    assert [row["column_name"] for row in rows if NOT_OURS.search(row["column_name"])] == []
