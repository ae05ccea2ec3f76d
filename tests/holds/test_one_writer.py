"""Seats and zones of events have one writer: the application can only ask the functions that belong to the registry."""

import json
from typing import Final

import asyncpg
import pytest

from tests.holds.expected import stored_places, whole_state
from tests.make.accounts import make_organization
from tests.make.seating import Seated, hold_seat, seated_event
from voelgoed.accounts.model import Organization
from voelgoed.db import Connection, Database
from voelgoed.holds import inventory, store
from voelgoed.ids import new_id
from voelgoed.seating.offer import told_zones
from voelgoed.seating.studio import Studio

WRITES: Final = (
    "insert into event_seats values ('{org}', '{event}', 99, gen_random_uuid(), gen_random_uuid())",
    "update event_seats set status = 'available' where event_id = '{event}'",
    "delete from event_seats where event_id = '{event}'",
    "insert into event_zones values ('{org}', '{event}', 9, gen_random_uuid(), 'X', 'X', 'ga_standing', 'public')",
    "update event_zones set capacity = 5 where event_id = '{event}'",
    "delete from event_zones where event_id = '{event}'",
    "truncate event_seats",
    "truncate event_zones",
    "alter table event_seats disable row level security",
    "select from event_seats where event_id = '{event}' for update",
    "select from event_zones where event_id = '{event}' for update",
    "update seat_holds set user_id = gen_random_uuid() where event_id = '{event}'",
)
FUNCTIONS: Final = (
    "inventory_add_seats",
    "inventory_add_zones",
    "inventory_remove",
    "inventory_clear",
    "inventory_change",
    "holds_hand_over",
)


@pytest.fixture
async def sold(db: Database, studio: Studio, place: Organization) -> Seated:
    return await seated_event(db, studio, place, status="published")


@pytest.mark.parametrize("statement", WRITES)
async def test_the_application_cannot_write_places(
    db: Database, app_conn: Connection, sold: Seated, statement: str
) -> None:
    """Not even those of the organization it speaks for, nor lock them against the one who may."""
    before = await whole_state(db, sold.event)
    for setting in (("app.organization_id", str(sold.organization_id)), ("app.scope", "system")):
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            async with app_conn.transaction():
                await app_conn.execute("select set_config($1, $2, true)", *setting)
                await app_conn.execute(statement.format(org=sold.organization_id, event=sold.event.id))
    assert await whole_state(db, sold.event) == before


async def test_it_cannot_become_the_one_who_may(app_conn: Connection) -> None:
    """Nor the owner."""
    for role in ("voelgoed_registry", "voelgoed_owner"):
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await app_conn.execute(f"set role {role}")


@pytest.mark.parametrize("name", FUNCTIONS)
async def test_it_cannot_alter_the_functions(app_conn: Connection, owner_conn: Connection, name: str) -> None:
    """They run with the registry's rights, on a path of schemas of their own, and nobody else may call them."""
    row = await owner_conn.fetchrow(
        "select p.oid::regprocedure::text as signature, p.prosecdef, p.proconfig, r.rolname,"
        " has_function_privilege('voelgoed_app', p.oid, 'execute') as is_callable, p.proacl::text as rights"
        " from pg_proc p join pg_roles r on r.oid = p.proowner where p.proname = $1",
        name,
    )
    assert row is not None
    assert (row["rolname"], row["prosecdef"], row["is_callable"]) == ("voelgoed_registry", True, True)
    assert "search_path=public, pg_temp" in row["proconfig"]
    assert "{=" not in row["rights"]
    assert ",=" not in row["rights"]  # nothing is granted to everybody
    for statement in (
        f"alter function {row['signature']} owner to voelgoed_app",
        f"alter function {row['signature']} security invoker",
        f"alter function {row['signature']} set search_path = pg_temp",
        f"drop function {row['signature']}",
    ):
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await app_conn.execute(statement)


async def test_the_registry_makes_nothing_new(owner_conn: Connection) -> None:
    """The right that it needs to be given a function is taken back."""
    assert not await owner_conn.fetchval("select has_schema_privilege('voelgoed_registry', 'public', 'create')")
    assert not await owner_conn.fetchval("select has_schema_privilege('voelgoed_app', 'public', 'create')")
    flags = await owner_conn.fetchrow(
        "select rolcanlogin, rolsuper, rolbypassrls from pg_roles where rolname = 'voelgoed_registry'"
    )
    assert tuple(flags or ()) == (False, False, False)


async def test_the_registry_changes_only_what_its_functions_change(owner_conn: Connection) -> None:
    """Of a hold never what it is of; of people it knows who is a guest, and nothing else."""
    may = "select column_name from information_schema.column_privileges where grantee = 'voelgoed_registry'"
    changed = await owner_conn.fetch(f"{may} and table_name = 'seat_holds' and privilege_type = 'UPDATE'")
    assert {row[0] for row in changed} == {
        "user_id",
        "notes",
        "created_at",
        "initial_expires_at",
        "expires_at",
        "extended_count",
        "status",
        "updated_at",
        "ended_at",
    }
    seen = await owner_conn.fetch(f"{may} and table_name = 'users'")
    assert {row[0] for row in seen} == {"id", "is_guest"}


async def test_another_organization_reaches_nothing(
    db: Database, owner_conn: Connection, studio: Studio, sold: Seated
) -> None:
    """Whichever organization it names as its own: the transaction says whose records there are."""
    stranger = await make_organization(db)
    before = await whole_state(db, sold.event)
    event_id = sold.event.id
    zones = [
        dict(row) | {"zone_id": str(row["zone_id"]), "categories": json.loads(row["categories"]), "kept": 0}
        for row in await _zones(db, sold)
    ]
    for named in (stranger.id, sold.organization_id):
        async with db.transaction(stranger.id) as conn:
            assert await store.remove_inventory(conn, named, event_id) == 0
            assert await store.clear_seats(conn, named, event_id, 100) == 0
            await store.change_inventory(
                conn,
                named,
                event_id,
                closed={0: "layout"},
                opened=[1],
                zones=[zone | {"capacity": 1, "blocked": 0} for zone in zones],
                actor_id=None,
                request_id=None,
            )
    assert await whole_state(db, sold.event) == before
    await hold_seat(owner_conn, sold.event, 0)
    async with db.transaction(stranger.id) as conn:  # nor does it learn that somebody has something
        assert await store.remove_inventory(conn, sold.organization_id, event_id) == 0
        assert not await store.is_touched(conn, sold.organization_id, event_id)


async def test_no_places_are_made_of_another_organizations_hall(db: Database, studio: Studio, sold: Seated) -> None:
    """Its seats are not seen, so none are copied; and none are written under another's name."""
    stranger = await make_organization(db)
    event_id = new_id()
    async with db.transaction(stranger.id) as conn:
        await store.add_seats(conn, stranger.id, event_id, sold.pin, range(13), ((), ()))
        assert await conn.fetchval("select count(*) from event_seats where event_id = $1", event_id) == 0
        await store.add_seats(conn, sold.organization_id, event_id, sold.pin, range(13), ((), ()))
        assert await conn.fetchval("select count(*) from event_seats where event_id = $1", event_id) == 0
    planned = await inventory.plan(studio, sold.organization_id, sold.event.id)
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        async with db.transaction(stranger.id) as conn:
            await store.add_zones(conn, sold.organization_id, event_id, told_zones(planned.offer))


async def test_what_is_left_half_written_is_cleared_of_no_other_event(db: Database, sold: Seated) -> None:
    """Nor is a seat that is on sale."""
    before = await stored_places(db, sold.event)
    async with db.transaction(sold.organization_id) as conn:
        assert await store.clear_seats(conn, sold.organization_id, sold.event.id, 100) == 0
        assert await store.clear_seats(conn, sold.organization_id, new_id(), 100) == 0
    assert await stored_places(db, sold.event) == before


@pytest.mark.parametrize(
    "values",
    [
        "status = 'blocked', blocked_by = null",
        "status = 'available', blocked_by = 'layout'",
        "status = 'held'",
        "status = 'held', hold_id = gen_random_uuid(), held_by = gen_random_uuid()",
        "status = 'sold'",
        "status = 'available', ticket_id = gen_random_uuid()",
        "status = 'blocked', blocked_by = 'somebody'",
    ],
)
async def test_not_even_the_one_writer_writes_nonsense(owner_conn: Connection, sold: Seated, values: str) -> None:
    """A state and what belongs to it go together, by constraint."""
    with pytest.raises((asyncpg.CheckViolationError, asyncpg.DataError)):
        async with owner_conn.transaction():
            await owner_conn.execute("set local role voelgoed_registry")
            await owner_conn.execute("select set_config('app.scope', 'system', true)")
            await owner_conn.execute(f"update event_seats set {values} where event_id = $1", sold.event.id)


@pytest.mark.parametrize("values", ["sold = 301", "held = 200, sold = 101", "blocked = 300, sold = 1", "capacity = -1"])
async def test_nor_more_than_there_is(owner_conn: Connection, sold: Seated, values: str) -> None:
    """A pool never has more places held, sold and blocked than places."""
    with pytest.raises(asyncpg.CheckViolationError):
        async with owner_conn.transaction():
            await owner_conn.execute("set local role voelgoed_registry")
            await owner_conn.execute("select set_config('app.scope', 'system', true)")
            await owner_conn.execute(
                f"update event_zones set {values} where event_id = $1 and zone_code = 'P'", sold.event.id
            )


async def _zones(db: Database, sold: Seated) -> list[asyncpg.Record]:
    async with db.transaction(sold.organization_id) as conn:
        return await conn.fetch(
            "select ordinal, zone_id, zone_code, name, zone_type, access_mode, is_enabled, categories, capacity,"
            " blocked from event_zones where event_id = $1",
            sold.event.id,
        )
