"""Organizations are kept apart by PostgreSQL itself, whatever the code above forgets."""

from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

import asyncpg
import pytest

from tests.make.accounts import make_organization
from tests.make.seating import as_registry
from voelgoed.db import Connection, Database
from voelgoed.ids import OrganizationId, new_id

GLOBAL_TABLES = {
    "organizations",
    "users",
    "platform_roles",
    "sessions",
    "api_keys",
    "one_time_tokens",
    "journal_positions",
    "schema_migrations",
    "schema_functions",
    "leases",
    "clock_guard",
}
"""Found by an id or a secret before any organization is known, or the installation's own."""

A_USER = "with u as (insert into users (id, name) values (gen_random_uuid(), 'U') returning id) "
A_VENUE = (
    "insert into venues (id, organization_id, name, slug, timezone, max_capacity)"
    " values (gen_random_uuid(), $1, 'V', 'v-' || gen_random_uuid(), 'UTC', 1)"
)
A_LAYOUT = (
    f"v as ({A_VENUE} returning id), l as (insert into layouts (id, organization_id, venue_id, name)"
    " select gen_random_uuid(), $1, id, 'L' from v returning id)"
)
A_VERSION = (
    f"{A_LAYOUT}, n as (insert into layout_versions"
    " (organization_id, layout_id, version, name, total_capacity, seat_count)"
    " select $1, id, 1, 'L', 0, 0 from l returning layout_id)"
)
AN_EVENT = (
    f"v as ({A_VENUE} returning id), e as (insert into events"
    " (id, organization_id, venue_id, name, slug, start_at, end_at)"
    " select gen_random_uuid(), $1, id, 'E', 'e-' || gen_random_uuid(), now(), now() + interval '1 hour' from v"
    " returning id)"
)
ROWS = {
    "journal": "insert into journal (organization_id, kind) values ($1, 'made_in_a_test')",
    "origins": "insert into origins (id, organization_id) values (gen_random_uuid(), $1)",
    "org_members": A_USER + "insert into org_members (organization_id, user_id, role) select $1, id, 'staff' from u",
    "memberships": A_USER
    + "insert into memberships (id, organization_id, user_id, tier) select gen_random_uuid(), $1, id, 'gold' from u",
    "idempotency_keys": "insert into idempotency_keys (organization_id, owner_id, key, fingerprint, result)"
    " values ($1, gen_random_uuid(), 'key', '', '{}')",
    "venues": A_VENUE,
    "gates": f"with v as ({A_VENUE} returning id) insert into gates (id, organization_id, venue_id, gate_code, name)"
    " select gen_random_uuid(), $1, id, 'A', 'A' from v",
    "events": f"with {AN_EVENT} select id from e",
    "layouts": f"with {A_LAYOUT} select id from l",
    "layout_seats": f"with {A_LAYOUT} insert into layout_seats (organization_id, layout_id, seat_code, serial)"
    " select $1, id, 'A-1', 1 from l",
    "layout_versions": f"with {A_VERSION} select layout_id from n",
    "layout_zones": f"with {A_VERSION} insert into layout_zones (organization_id, layout_id, version, ordinal, zone_id,"
    " zone_code, name, zone_type, capacity, access_mode)"
    " select $1, layout_id, 1, 0, gen_random_uuid(), 'Z', 'Z', 'ga_standing', 1, 'public' from n",
    "seats": "insert into seats (organization_id, layout_id, version, ordinal, seat_id, seat_code, zone_ordinal,"
    " row_ordinal, number, label, position, segment, x, y, category)"
    " values ($1, gen_random_uuid(), 1, 0, gen_random_uuid(), 'A-1', 0, 0, 1, '1', 1, 0, 0, 0, 'standard')",
    "seat_groups": f"with {A_VERSION} insert into seat_groups (organization_id, layout_id, version, ordinal,"
    " zone_ordinal, group_code, kind, label, seat_ordinals)"
    " select $1, layout_id, 1, 0, 0, 'G', 'vip_table', 'G', '{0}' from n",
    "seating_policies": "insert into seating_policies (id, organization_id) values (gen_random_uuid(), $1)",
    "pricing_rules": "insert into pricing_rules (id, organization_id, name, currency, amount_minor)"
    " values (gen_random_uuid(), $1, 'Adults', 'ZAR', 100)",
    "event_catalogues": "insert into event_catalogues (organization_id) values ($1)",
    "occupancy_snapshots": f"with {AN_EVENT} insert into occupancy_snapshots"
    " (organization_id, event_id, taken_at, available, held, sold, blocked, zones)"
    " select $1, id, now(), 0, 0, 0, 0, '[]' from e",
    "event_layouts": f"with {AN_EVENT} insert into event_layouts (id, organization_id, event_id)"
    " select gen_random_uuid(), $1, id from e",
}
REGISTRY_ROWS = {
    "event_seats": "insert into event_seats (organization_id, event_id, ordinal, seat_id, zone_id)"
    " values ($1, gen_random_uuid(), 0, gen_random_uuid(), gen_random_uuid())",
    "event_zones": "insert into event_zones (organization_id, event_id, ordinal, zone_id, zone_code, name, zone_type,"
    " access_mode, is_enabled, categories, capacity)"
    " values ($1, gen_random_uuid(), 0, gen_random_uuid(), 'Z', 'Z', 'ga_standing', 'public', true, '{}', 1)",
    "seat_holds": "insert into seat_holds (id, organization_id, event_id, zone_id, seat_id, user_id, cart_token,"
    " initial_expires_at, expires_at, status, ended_at) values (gen_random_uuid(), $1, gen_random_uuid(),"
    " gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), 'cart', now() + interval '10 minutes',"
    " now() + interval '10 minutes', 'cancelled', now())",
    "tickets": "insert into tickets (id, organization_id, event_id, zone_id, hold_id, item, user_id, order_id)"
    " values (gen_random_uuid(), $1, gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), 1, gen_random_uuid(),"
    " gen_random_uuid())",
}
"""The same for tables that the application reads and only the registry's functions write."""
ALL_ROWS = ROWS | REGISTRY_ROWS
"""How to add a row of an organization to each of its tables; a new table needs a line here."""


async def tenant_tables(conn: Connection) -> set[str]:
    """Every table that holds records of organizations, partitions left out."""
    rows = await conn.fetch(
        "select relname from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attname = 'organization_id'"
        " where relkind in ('r', 'p') and not relispartition and relnamespace = 'public'::regnamespace"
    )
    return {row["relname"] for row in rows}


@contextmanager
def refused() -> Iterator[None]:
    """A write is refused, by privilege or by policy."""
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        yield


async def set_organization(conn: Connection, organization_id: UUID | str) -> None:
    await conn.execute("select set_config('app.organization_id', $1, false)", str(organization_id))


@pytest.fixture
async def owned(db: Database, owner_conn: Connection) -> OrganizationId:
    """An organization with a row in every table."""
    organization = await make_organization(db)
    async with db.transaction(organization.id) as conn:
        for add in ROWS.values():
            await conn.execute(add, organization.id)
    async with as_registry(owner_conn) as conn:
        for add in REGISTRY_ROWS.values():
            await conn.execute(add, organization.id)
    return organization.id


async def test_every_table_is_global_or_under_the_rule(owner_conn: Connection) -> None:
    """A new table is either named as global or has the organization, a policy for each role, and both forced."""
    rows = await owner_conn.fetch(
        "select relname, relrowsecurity and relforcerowsecurity as is_forced,"
        "       (select array_agg((policyname, roles)::text order by policyname) from pg_policies"
        "         where tablename = relname) as policies"
        "  from pg_class c"
        " where relkind in ('r', 'p') and not relispartition and relnamespace = 'public'::regnamespace"
    )
    tenant = await tenant_tables(owner_conn) - GLOBAL_TABLES
    jobs = {row["relname"] for row in rows if row["relname"].startswith("pgqueuer")}
    assert {row["relname"] for row in rows} - tenant - jobs == GLOBAL_TABLES
    both = ['(organization,"{voelgoed_app,voelgoed_owner}")', "(registry,{voelgoed_registry})"]
    assert {
        row["relname"]: (row["is_forced"], row["policies"]) for row in rows if row["relname"] in tenant
    } == dict.fromkeys(tenant, (True, both))
    assert tenant == ALL_ROWS.keys()


@pytest.mark.req("TEN-01")
@pytest.mark.parametrize("table", ALL_ROWS)
async def test_without_an_organization_there_is_nothing(
    table: str, app_conn: Connection, owned: OrganizationId
) -> None:
    """A forgotten setting shows no rows and writes none."""
    assert await app_conn.fetchval(f"select count(*) from {table}") == 0
    with refused():
        await app_conn.execute(ALL_ROWS[table], owned)
    await set_organization(app_conn, "")
    assert await app_conn.fetchval(f"select count(*) from {table}") == 0
    with refused():
        await app_conn.execute(ALL_ROWS[table], owned)


@pytest.mark.parametrize("table", ALL_ROWS)
async def test_another_organization_sees_and_writes_nothing(
    table: str, db: Database, app_conn: Connection, owned: OrganizationId
) -> None:
    """Somebody else's row does not exist, and none can be planted there."""
    other = await make_organization(db)
    await set_organization(app_conn, other.id)
    assert await app_conn.fetchval(f"select count(*) from {table} where organization_id = $1", owned) == 0
    with refused():
        await app_conn.execute(ALL_ROWS[table], owned)
    await set_organization(app_conn, owned)
    assert await app_conn.fetchval(f"select count(*) from {table} where organization_id = $1", owned) >= 1
    assert await app_conn.fetchval(f"select count(*) from {table} where organization_id <> $1", owned) == 0


@pytest.mark.parametrize("table", REGISTRY_ROWS)
async def test_not_even_the_registry_writes_for_somebody_else(
    table: str, db: Database, owner_conn: Connection, owned: OrganizationId
) -> None:
    """Its functions run as this role: without an organization, or in another's name, they plant and see nothing."""
    async with owner_conn.transaction():
        await owner_conn.execute("set local role voelgoed_registry")
        for place in ("", str((await make_organization(db)).id)):
            await owner_conn.execute("select set_config('app.organization_id', $1, true)", place)
            assert await owner_conn.fetchval(f"select count(*) from {table}") == 0
            if table in ("event_seats", "event_zones"):  # holds and tickets are deleted by nobody
                assert await owner_conn.execute(f"delete from {table}") == "DELETE 0"
            with refused():
                async with owner_conn.transaction():
                    await owner_conn.execute(ALL_ROWS[table], owned)


@pytest.mark.parametrize("table", ALL_ROWS)
async def test_the_registry_reads_one_organization_at_a_time(
    table: str, db: Database, owner_conn: Connection, owned: OrganizationId
) -> None:
    """Its rule is worked out once a statement, and anew in the next; what it does not need it does not see at all."""
    other = await make_organization(db)
    count = f"select count(*) from {table} where organization_id = $1"
    async with owner_conn.transaction():
        await owner_conn.execute("set local role voelgoed_registry")
        if not await owner_conn.fetchval("select has_any_column_privilege($1, 'select')", table):
            with refused():
                async with owner_conn.transaction():
                    await owner_conn.fetchval(count, owned)
            return
        for place, is_seen in ((str(other.id), False), (str(owned), True), ("", False)):
            await owner_conn.execute("select set_config('app.organization_id', $1, true)", place)
            assert (await owner_conn.fetchval(count, owned) >= 1) is is_seen
        await owner_conn.execute("select set_config('app.scope', 'system', true)")
        assert await owner_conn.fetchval(count, owned) >= 1


@pytest.mark.parametrize("table", ALL_ROWS)
async def test_not_even_the_owner_passes_by_accident(table: str, owner_conn: Connection, owned: OrganizationId) -> None:
    """The policy is forced: a migration must say that it crosses organizations."""
    assert await owner_conn.fetchval(f"select count(*) from {table}") == 0
    await owner_conn.execute("select set_config('app.scope', 'system', false)")
    assert await owner_conn.fetchval(f"select count(*) from {table} where organization_id = $1", owned) >= 1


async def test_the_setting_ends_with_the_transaction(db: Database, owned: OrganizationId) -> None:
    """A pooled connection carries nothing of the last organization to the next user."""
    async with db.transaction(owned) as conn:
        assert await conn.fetchval("select count(*) from journal") >= 1
    for _ in range(20):
        async with db.transaction(OrganizationId(new_id())) as conn:
            assert await conn.fetchval("select count(*) from journal") == 0
            assert await conn.fetchval("select current_setting('app.scope', true)") in (None, "")


@pytest.mark.parametrize(
    "statement",
    [
        "create table mine (id int)",
        "alter table journal disable row level security",
        "drop policy organization on journal",
        "drop table organizations",
        "delete from organizations",
        "update journal set kind = 'edited'",
        "delete from users",
        "delete from memberships",
        "delete from api_keys",
        "update idempotency_keys set result = '{}'",
        "update origins set session_id = null",
        "delete from event_catalogues",
        "insert into event_seats (organization_id) values (null)",
        "update event_seats set version = 1",
        "delete from event_seats",
        "update event_zones set sold = 0",
        "delete from event_zones",
        "insert into seat_holds (organization_id) values (null)",
        "update seat_holds set user_id = null",
        "delete from seat_holds",
        "insert into tickets (organization_id) values (null)",
        "update tickets set status = 'void'",
        "delete from tickets",
        "select hold_end(null, null, null, 'expired', '', null, null, null, null)",
        "select zone_move(null, null, null, 0, 0, '', null, null, null, null, null, null, null)",
        "alter function inventory_remove(uuid, uuid) owner to voelgoed_app",
        "alter table events disable trigger events_guard",
        "delete from journal",
        "truncate journal",
        "create function f() returns int language sql as 'select 1'",
        "set role voelgoed_owner",
        "set role voelgoed_registry",
        "call keep_organizations_apart('organizations')",
        "insert into schema_migrations (number, name, checksum) values (99, 'x', 'x')",
        "create schema mine",
        "alter role voelgoed_app superuser",
    ],
)
async def test_the_application_has_no_right_of_the_owner(app_conn: Connection, statement: str) -> None:
    """What the application does not need, its login cannot do; the journal is append-only for it."""
    with refused():
        await app_conn.execute(statement)


async def test_partitions_are_no_way_round_the_rule(app_conn: Connection) -> None:
    """The policy stands on the whole table; its parts cannot be asked directly."""
    parts = await app_conn.fetch("select relname from pg_class where relispartition and relkind = 'r'")
    assert len(parts) > 20
    for part in parts:
        with refused():
            await app_conn.fetch(f"select * from {part['relname']}")
