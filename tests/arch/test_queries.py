"""Named queries: each has its function, names its organization, and is understood by the server."""

import ast
import re
from pathlib import Path

import pytest

from voelgoed.db import Connection, load_queries

PACKAGE = Path(__file__).resolve().parents[2] / "src" / "voelgoed"
FILES = sorted(PACKAGE.glob("*/queries.sql"))
TENANT_TABLES = {
    "occupancy_snapshots",
    "journal",
    "origins",
    "org_members",
    "memberships",
    "idempotency_keys",
    "api_keys",
    "venues",
    "gates",
    "events",
    "event_catalogues",
    "layouts",
    "layout_seats",
    "layout_versions",
    "layout_zones",
    "seats",
    "seat_groups",
    "event_layouts",
    "event_seats",
    "event_zones",
    "seat_holds",
    "tickets",
    "pricing_rules",
    "seating_policies",
}
QUERIES = [(file, name, sql) for file in FILES for name, sql in load_queries(file).items()]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.parent.name)
def test_each_query_has_the_function_of_its_name(file: Path) -> None:
    """The word is the address: `lock_seats` in SQL is `store.lock_seats`."""
    store = ast.parse(file.with_name("store.py").read_text())
    functions = {node.name for node in store.body if isinstance(node, ast.AsyncFunctionDef)}
    assert set(load_queries(file)) == functions


@pytest.mark.parametrize(("file", "name", "sql"), QUERIES, ids=[f"{f.parent.name}.{n}" for f, n, _ in QUERIES])
def test_each_query_is_bound_and_plain(file: Path, name: str, sql: str) -> None:
    """A query on organizations' records is bound to $1, or says that it crosses them; it names its columns."""
    words = sql.partition("\n")[2] if sql.startswith("--") else sql
    touched = {table for table in TENANT_TABLES if re.search(rf"\b{table}\b", words)}
    is_bound = re.search(r"organization_id = \$1\b|\(organization_id,|values \(\$\d, \$1|select \$1", sql)
    assert not touched or is_bound or "-- system" in sql, f"{name} touches {touched} without its organization"
    assert not re.search(r"select\s+\*", sql)
    assert sql.rstrip().endswith(";")


@pytest.mark.parametrize(("file", "name", "sql"), QUERIES, ids=[f"{f.parent.name}.{n}" for f, n, _ in QUERIES])
async def test_each_query_is_understood_by_the_server(file: Path, name: str, sql: str, app_conn: Connection) -> None:
    """With the application's rights, on the schema that the migrations make."""
    prepared = await app_conn.prepare(sql)
    assert prepared.get_query() == sql
