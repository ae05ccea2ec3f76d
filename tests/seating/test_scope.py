"""What this domain is, and what it is not: layouts, zones, seats and groups; no prices, payments, codes or gates."""

import ast
import re
from pathlib import Path

import pytest

from voelgoed import seating
from voelgoed.db import Connection, load_queries

ROOM = Path(str(seating.__file__)).parent
TABLES = {"layouts", "layout_seats", "layout_versions", "layout_zones", "seats", "seat_groups"}
ALSO_OURS = {"seating_policies", "event_layouts"}
"""What an organization says of its seating, and an event of its own; they speak of what others do within the bounds."""
BELOW = {"events", "organizations"}
"""Whose names and states are asked for beside the own rows: which event has a version, and who may look at it."""
LOWER = {"voelgoed.events", "voelgoed.accounts", "voelgoed.journal", "voelgoed.telemetry"}
ROOT_FILES = {"voelgoed.cache", "voelgoed.db", "voelgoed.errors", "voelgoed.ids", "voelgoed.paging"}
NOT_OURS = re.compile(r"price|amount|currency|hold|checkout|ticket|order_|payment|qr|gate|device|scan|status_of")


@pytest.mark.req("LAY-01")
def test_it_reaches_only_what_stands_below_it() -> None:
    """Nothing of holds, ticketing or scanning is imported, and no table but its own is asked."""
    imported = {
        ".".join(node.module.split(".")[:2])
        for path in ROOM.glob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("voelgoed.")
    }
    assert imported - {"voelgoed.seating"} <= LOWER | ROOT_FILES
    queries = "\n".join(load_queries(ROOM / "queries.sql").values())
    asked = set(re.findall(r"(?:from|join|into|update)\s+([a-z_]+)", re.sub(r"--.*", "", queries)))
    assert asked - {"unnest", "jsonb_array_elements", "layout_versions"} <= TABLES | ALSO_OURS | BELOW


@pytest.mark.req("LAY-01")
async def test_its_tables_hold_no_others_affairs(owner_conn: Connection) -> None:
    """A seat of a layout is neither free nor sold, and costs nothing: that is an event's affair."""
    rows = await owner_conn.fetch(
        "select table_name, column_name from information_schema.columns where table_name = any ($1)", list(TABLES)
    )
    assert {row["table_name"] for row in rows} == TABLES
    assert [row["column_name"] for row in rows if NOT_OURS.search(row["column_name"])] == []
