"""PostgreSQL has the last word on a lifecycle, and it is the same word as the rules'."""

import re
from typing import Any

import asyncpg
import pytest

from tests.make.accounts import make_organization
from tests.make.events import make_event, make_gate, make_venue
from voelgoed.accounts.model import Organization
from voelgoed.db import Conn, Connection, Database
from voelgoed.events.model import Event, GateStatus, Status
from voelgoed.events.rules import EDGES, SHOWN
from voelgoed.ids import new_id

PAIRS = [(before, after) for before in Status for after in Status]


@pytest.fixture
async def place(db: Database) -> Organization:
    return await make_organization(db)


async def test_the_function_has_the_edges_of_the_rules(app_conn: Connection) -> None:
    """All forty-nine pairs."""
    said = {pair: await app_conn.fetchval("select is_event_edge($1, $2)", *map(str, pair)) for pair in PAIRS}
    assert said == {(before, after): after in EDGES[before] for before, after in PAIRS}


@pytest.mark.req("EV-19", "EV-32", "TEST-32")
@pytest.mark.parametrize("before", Status)
async def test_a_row_walks_along_the_edges_only(db: Database, place: Organization, before: Status) -> None:
    """Whatever the code above would do: another step is refused by name, and the row stays."""
    event = await make_event(db, place, status=before)
    async with db.transaction(place.id) as conn:
        objections = {after: await objection(conn, event, after) for after in Status}
    assert objections == {
        after: None if after is before or after in EDGES[before] else "events_edges" for after in Status
    }
    async with db.transaction(place.id) as conn:
        row = await conn.fetchrow("select status, version from events where id = $1", event.id)
    assert row is not None
    assert (row["status"], row["version"]) == (before, event.version)


async def objection(conn: Conn, event: Event, after: Status) -> str | None:
    """Which constraint keeps the row from this status, if one does; the row is left as it was."""
    await conn.execute("savepoint before")
    try:
        await conn.execute("update events set status = $2, version = version + 1 where id = $1", event.id, str(after))
    except asyncpg.CheckViolationError as refused:
        return refused.constraint_name
    finally:
        await conn.execute("rollback to before")
    return None


async def checked_words(conn: Connection, constraint: str) -> set[str]:
    text = await conn.fetchval("select pg_get_constraintdef(oid) from pg_constraint where conname = $1", constraint)
    return set(re.findall(r"'(\w+)'", text))


@pytest.mark.req("EV-19", "EV-35")
async def test_the_words_in_the_schema_are_those_of_the_code(owner_conn: Connection) -> None:
    """Statuses of events and gates; what the index of upcoming events holds is what is shown."""
    assert await checked_words(owner_conn, "events_status_known") == set(Status)
    assert await checked_words(owner_conn, "gates_status_known") == set(GateStatus)
    index = await owner_conn.fetchval("select indexdef from pg_indexes where indexname = 'events_upcoming'")
    assert set(re.findall(r"'(\w+)'", index)) == SHOWN


@pytest.mark.req("IDX-01", "IDX-02", "IDX-03", "EV-61")
@pytest.mark.parametrize(
    ("table", "columns", "is_unique"),
    [
        ("events", ["organization_id", "status"], False),
        ("events", ["organization_id", "start_at"], False),
        ("events", ["organization_id", "slug"], True),
        ("venues", ["organization_id", "slug"], True),
        ("gates", ["venue_id", "gate_code"], True),
        ("gates", ["organization_id", "venue_id"], False),
    ],
)
async def test_the_seeds_indexes_are_there(
    owner_conn: Connection, table: str, columns: list[str], *, is_unique: bool
) -> None:
    """An index that begins with these columns; a unique one has exactly them."""
    rows = await owner_conn.fetch(
        "select indisunique, array(select attname::text from unnest(indkey) with ordinality k (n, o)"
        "   join pg_attribute a on a.attrelid = indrelid and a.attnum = k.n order by o) as columns"
        "  from pg_index where indrelid = $1::regclass and indpred is null",
        table,
    )
    found = [(row["columns"], row["indisunique"]) for row in rows]
    if is_unique:
        assert (columns, True) in found
    else:
        assert any(names[: len(columns)] == columns for names, _ in found)


INSERT = (
    "insert into events (id, organization_id, venue_id, name, slug, start_at, end_at, status, version)"
    " values ($1, $2, $3, 'E', $4, now(), now() + interval '1 hour', $5, $6)"
)


@pytest.mark.parametrize(
    ("status", "version"), [*((str(status), 1) for status in Status if status is not Status.DRAFT), ("draft", 2)]
)
async def test_an_event_begins_as_a_draft(db: Database, place: Organization, status: str, version: int) -> None:
    """Inserted with another status or another number it is refused."""
    venue = await make_venue(db, place)
    with pytest.raises(asyncpg.CheckViolationError) as refused:
        async with db.transaction(place.id) as conn:
            await conn.execute(INSERT, new_id(), place.id, venue.id, new_id().hex, status, version)
    assert refused.value.constraint_name == "events_begin"


@pytest.mark.parametrize(
    "change", ["version = version", "version = version + 2", "version = version - 1", "name = 'N'"]
)
async def test_every_change_counts(db: Database, place: Organization, change: str) -> None:
    """A version that does not rise by one is refused: nobody can change an event unseen."""
    event = await make_event(db, place)
    with pytest.raises(asyncpg.CheckViolationError) as refused:
        async with db.transaction(place.id) as conn:
            await conn.execute(f"update events set {change} where id = $1", event.id)
    assert refused.value.constraint_name == "events_version"


async def change_and_expect(db: Database, event: Event, constraint: str, **fields: Any) -> None:
    sets = ", ".join(f"{name} = ${number}" for number, name in enumerate(fields, start=2))
    with pytest.raises(asyncpg.IntegrityConstraintViolationError) as refused:
        async with db.transaction(event.organization_id) as conn:
            await conn.execute(
                f"update events set {sets}, version = version + 1 where id = $1", event.id, *fields.values()
            )
    assert refused.value.constraint_name == constraint


@pytest.mark.req("EV-10", "EV-11", "EV-12", "EV-13")
async def test_the_schema_keeps_an_event_whole(db: Database, place: Organization) -> None:
    """Times in order, one venue of its own organization, a capacity that is a number of people."""
    event = await make_event(db, place)
    stranger = await make_venue(db, await make_organization(db))
    other = await make_event(db, await make_organization(db))
    await change_and_expect(db, event, "events_time_order", end_at=event.start_at)
    await change_and_expect(db, event, "events_sale_order", sale_start_at=event.end_at, sale_end_at=event.end_at)
    await change_and_expect(db, event, "events_capacity_range", capacity=-1)
    await change_and_expect(db, event, "events_venue_in_organization", venue_id=stranger.id)
    await change_and_expect(db, event, "events_replacement_in_organization", replaced_by_event_id=other.id)
    await change_and_expect(db, event, "events_not_replaced_by_itself", replaced_by_event_id=event.id)
    await change_and_expect(db, event, "events_identity", id=new_id())
    await change_and_expect(db, event, "events_postponed_only", postponement_reason="weather")
    late = await make_event(db, place, status="postponed")
    await change_and_expect(db, late, "events_new_date_whole", rescheduled_at=late.start_at)
    await change_and_expect(
        db, late, "events_new_date_order", rescheduled_at=late.start_at, rescheduled_end_at=late.start_at
    )


@pytest.mark.req("EV-05", "EV-34", "EV-38", "EV-08")
async def test_the_schema_keeps_venues_and_gates_whole(db: Database, place: Organization) -> None:
    """No negative capacity, one slug an organization, one code a venue, a gate only at a venue of its own."""
    venue, other = await make_venue(db, place), await make_venue(db, place)
    stranger = await make_venue(db, await make_organization(db))
    await make_gate(db, venue, gate_code="GATE_A")
    await make_gate(db, other, gate_code="GATE_A")
    gate = "insert into gates (id, organization_id, venue_id, gate_code, name) values ($1, $2, $3, 'GATE_A', 'A')"
    for constraint, statement, args in (
        ("venues_max_capacity_range", "update venues set max_capacity = -1 where id = $1", (venue.id,)),
        ("venues_slug_key", "update venues set slug = $2 where id = $1", (venue.id, other.slug)),
        ("gates_code_key", gate, (new_id(), place.id, venue.id)),
        ("gates_venue_in_organization", gate, (new_id(), place.id, stranger.id)),
    ):
        with pytest.raises(asyncpg.IntegrityConstraintViolationError) as refused:
            async with db.transaction(place.id) as conn:
                await conn.execute(statement, *args)
        assert refused.value.constraint_name == constraint


@pytest.mark.req("EV-10")
async def test_nothing_floats_without_an_organization(owner_conn: Connection) -> None:
    """The column cannot be empty, in any of the tables."""
    rows = await owner_conn.fetch(
        "select table_name, is_nullable from information_schema.columns"
        " where column_name = 'organization_id' and table_name = any ($1)",
        ["venues", "gates", "events", "event_catalogues"],
    )
    assert {row["table_name"]: row["is_nullable"] for row in rows} == dict.fromkeys(
        ("venues", "gates", "events", "event_catalogues"), "NO"
    )
