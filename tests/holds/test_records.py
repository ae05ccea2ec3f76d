"""The rows behind holds: what each field may be, which index finds them, and what a seat can become from what."""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import asyncpg
import pytest

from tests.make.holds import Sale, let_pass, on_sale
from tests.make.seating import as_registry, facts_of, seat_rows
from voelgoed.accounts.model import Organization, Role
from voelgoed.db import Connection, Database
from voelgoed.errors import DomainError
from voelgoed.events.model import CLOCK, OPERATOR
from voelgoed.holds import auditing, booking, registry, store
from voelgoed.holds.booking import Held
from voelgoed.holds.model import HoldStatus, SeatStatus
from voelgoed.ids import new_id
from voelgoed.journal import store as journal_store
from voelgoed.wiring import Services

PACKAGE = Path(__file__).resolve().parents[2] / "src" / "voelgoed"


@pytest.fixture
async def sale(services: Services, place: Organization) -> Sale:
    return await on_sale(services, place)


async def columns(conn: Connection, table: str) -> dict[str, tuple[str, bool]]:
    """The columns of a table: their types, and whether they must be there."""
    rows = await conn.fetch(
        "select attname, format_type(atttypid, atttypmod) as type, attnotnull from pg_attribute"
        " where attrelid = $1::regclass and attnum > 0 and not attisdropped",
        table,
    )
    return {row["attname"]: (row["type"], row["attnotnull"]) for row in rows}


@pytest.mark.req("HOLD-02", "HOLD-03", "HOLD-06", "HOLD-09")
async def test_the_columns_of_a_hold(owner_conn: Connection) -> None:
    """Ids are UUIDs, one of them the key; whose, where and until when must be there; notes need not."""
    found = await columns(owner_conn, "seat_holds")
    for name in ("id", "organization_id", "event_id", "zone_id", "user_id"):
        assert found[name] == ("uuid", True)
    for name in ("expires_at", "initial_expires_at", "created_at", "updated_at"):
        assert found[name] == ("timestamp with time zone", True)
    assert found["seat_id"] == ("uuid", False)
    assert found["notes"] == ("text", False)
    keys = await owner_conn.fetch(
        "select conname, pg_get_constraintdef(oid) as def, contype::text as kind from pg_constraint"
        " where conrelid = 'seat_holds'::regclass"
    )
    assert [row["def"] for row in keys if row["kind"] == "p"] == ["PRIMARY KEY (id)"]
    assert [row["def"] for row in keys if row["kind"] == "f"] == []  # looked at by the functions and `voelgoed verify`


async def test_a_clock_that_was_set_back_does_not_stop_the_checks(sale: Sale, owner_conn: Connection) -> None:
    """A hold that seems to have ended before it began took no time, and is in the way of nobody who came after it."""
    buyer = sale.caller()
    for _ in range(2):
        (held,) = await sale.hold(buyer, "S-A-1")
        await booking.release(sale.services.lanes, sale.db, buyer, held.hold.id)
        async with as_registry(owner_conn):
            await owner_conn.execute(
                "update seat_holds set ended_at = created_at - interval '1 second' where id = $1", held.hold.id
            )
    await sale.hold(buyer, "S-A-1")
    assert await auditing.verify(sale.db, organization_id=sale.place.id) == []


@pytest.mark.req("HOLD-10", "HOLD-11", "HOLD-05")
async def test_what_became_of_a_hold_is_its_status(sale: Sale, owner_conn: Connection) -> None:
    """Four states, one moment of its end, seen as two named ones; nothing is ever deleted, or marked as if it were."""
    found = await columns(owner_conn, "seat_holds")
    assert "deleted_at" not in found
    states = await owner_conn.fetchval("select enum_range(null::hold_status)::text[]")
    assert set(states) == set(HoldStatus) == {"active", "converted", "expired", "cancelled"}
    buyer = sale.caller()
    active, sold, lapsed, gone = await sale.hold(buyer, "S-A-1", "S-A-2", "S-A-3", "S-A-4")
    await sale.buy(buyer, sold)
    await let_pass(owner_conn, lapsed.hold.id)
    await registry.reap(sale.db, by=CLOCK)
    await booking.release(sale.services.lanes, sale.db, buyer, gone.hold.id)
    rows = {row["id"]: row for row in await sale.rows()}
    seen = {
        one.hold.id: tuple(rows[one.hold.id][name] is not None for name in ("ended_at", "expired_at", "converted_at"))
        for one in (active, sold, lapsed, gone)
    }
    assert list(seen.values()) == [
        (False, False, False),
        (True, False, True),
        (True, True, False),
        (True, False, False),
    ]
    for row in rows.values():
        assert row["ended_at"] is None or row["ended_at"] == (
            row["expired_at"] or row["converted_at"] or row["ended_at"]
        )
    for role in ("voelgoed_app", "voelgoed_registry"):
        for right in ("delete", "truncate"):
            assert not await owner_conn.fetchval("select has_table_privilege($1, 'seat_holds', $2)", role, right)


GOOD: Final = {
    "id": "gen_random_uuid()",
    "organization_id": "$1",
    "event_id": "$2",
    "zone_id": "gen_random_uuid()",
    "seat_id": "gen_random_uuid()",
    "user_id": "gen_random_uuid()",
    "cart_token": "'c'",
    "created_at": "now()",
    "initial_expires_at": "now() + interval '10 minutes'",
    "expires_at": "now() + interval '10 minutes'",
}


async def insert(conn: Connection, sale: Sale, changes: dict[str, str]) -> asyncpg.Record:
    """A hold written past the functions, as only their owner could."""
    values = {name: value for name, value in {**GOOD, **changes}.items() if value}
    async with as_registry(conn):
        row = await conn.fetchrow(
            f"insert into seat_holds ({', '.join(values)}) values ({', '.join(values.values())})"
            " on conflict (id) do nothing returning *",
            sale.place.id,
            sale.event.id,
        )
        assert row is not None
        await conn.execute("select set_config('app.organization_id', '', true)")
    return row


@pytest.mark.parametrize(
    ("changes", "constraint"),
    [
        (
            {"organization_id": "null", "source": "case when $1::uuid is null then 'web' else 'web' end"},
            "organization_id",
        ),
        ({"user_id": ""}, "user_id"),
        ({"zone_id": ""}, "zone_id"),
        ({"cart_token": ""}, "cart_token"),
        ({"cart_token": "''"}, "seat_holds_cart_token_length"),
        ({"cart_token": "repeat('x', 256)"}, "seat_holds_cart_token_length"),
        ({"source": "'kiosk'"}, "seat_holds_source_known"),
        ({"source": "null"}, "source"),
        ({"notes": "repeat('x', 2001)"}, "seat_holds_notes_length"),
        ({"quantity": "2"}, "seat_holds_one_seat_each"),
        ({"seat_id": "", "quantity": "0"}, "seat_holds_quantity_range"),
        ({"seat_id": "", "quantity": "1001"}, "seat_holds_quantity_range"),
        ({"expires_at": ""}, "expires_at"),
        ({"expires_at": "now()", "initial_expires_at": "now()"}, "seat_holds_end_after_begin"),
        ({"expires_at": "now() - interval '1 second'"}, "seat_holds_end_after_begin"),
        ({"expires_at": "now() + interval '9 minutes'"}, "seat_holds_never_shortened"),
        ({"expires_at": "now() + interval '15 minutes 1 second'"}, "seat_holds_bounded"),
        ({"extended_count": "2"}, "seat_holds_extended_once"),
        ({"status": "'expired'"}, "seat_holds_ended"),
        ({"ended_at": "now()"}, "seat_holds_ended"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
@pytest.mark.req("HOLD-07", "HOLD-08", "HOLD-14", "HOLD-04")
async def test_what_no_hold_can_be(
    sale: Sale, owner_conn: Connection, changes: dict[str, str], constraint: str
) -> None:
    """Whatever goes wrong above, the table refuses it by name."""
    with pytest.raises(asyncpg.IntegrityConstraintViolationError) as wrong:
        await insert(owner_conn, sale, changes)
    assert constraint in (wrong.value.constraint_name, wrong.value.column_name)
    assert await sale.rows() == []


@pytest.mark.req("HOLD-12", "HOLD-08", "HOLD-05")
async def test_what_a_hold_is_unless_said_otherwise(sale: Sale, owner_conn: Connection) -> None:
    """From the web, of one place, active, never extended, made now."""
    row = await insert(owner_conn, sale, {"created_at": "", "status": "'cancelled'", "ended_at": "now()"})
    assert (row["source"], row["quantity"], row["extended_count"]) == ("web", 1, 0)
    assert row["created_at"] <= row["updated_at"] <= row["created_at"] + timedelta(seconds=5)
    default = await owner_conn.fetchval(
        "select pg_get_expr(adbin, adrelid) from pg_attrdef d join pg_attribute a"
        " on a.attrelid = d.adrelid and a.attnum = d.adnum"
        " where adrelid = 'seat_holds'::regclass and attname = 'status'"
    )
    assert default == "'active'::hold_status"


@pytest.mark.req("HOLD-12", "HOLD-27", "SEAT-11", "TEN-05")
async def test_what_a_new_hold_writes(sale: Sale) -> None:
    """Hold and seat say the same of whose, until when and since when; what changes later says when it did."""
    buyer = sale.caller()
    before = await sale.row("S-A-1")
    (held,) = await sale.hold(buyer, "S-A-1")
    (row,), seat = await sale.rows(), await sale.row("S-A-1")
    assert {name: row[name] for name in ("organization_id", "event_id", "zone_id", "seat_id", "user_id", "status")} == {
        "organization_id": sale.place.id,
        "event_id": sale.event.id,
        "zone_id": sale.zone("S"),
        "seat_id": sale.seat("S-A-1"),
        "user_id": buyer.actor.user_id,
        "status": "active",
    }
    assert row["expires_at"] == row["initial_expires_at"] == row["created_at"] + timedelta(minutes=10)
    assert (seat["status"], seat["hold_id"], seat["held_by"]) == ("held", row["id"], buyer.actor.user_id)
    assert (seat["held_until"], seat["locked_at"]) == (row["expires_at"], row["created_at"])
    assert (before["version"], seat["version"]) == (1, 2)
    await booking.extend(sale.db, buyer, held.hold.id)
    (later,) = await sale.rows()
    assert later["created_at"] == row["created_at"] < later["updated_at"]
    assert later["expires_at"] == later["initial_expires_at"] + timedelta(minutes=5)


@pytest.mark.req("HOLD-13")
@pytest.mark.parametrize(
    "name", ["id", "organization_id", "event_id", "zone_id", "seat_id", "quantity", "source", "cart_token"]
)
async def test_of_what_a_hold_is_never_changes(sale: Sale, owner_conn: Connection, name: str) -> None:
    """Not even the registry may: it has no right to write these columns again. Nor may the application write any.

    Whose it is changes when a guest signs in, by the one function that hands over.
    """
    await sale.hold(sale.caller(), "S-A-1")
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        async with as_registry(owner_conn) as conn:
            await conn.execute(f"update seat_holds set {name} = {name}")
    for table in ("seat_holds", "tickets", "event_seats", "event_zones"):
        assert not await owner_conn.fetchval("select has_any_column_privilege('voelgoed_app', $1, 'update')", table)


@pytest.mark.req("HOLD-33", "SEAT-17")
async def test_holds_have_one_writer(owner_conn: Connection) -> None:
    """One file writes them, by functions of the one role that may; the application can call those, and nothing else."""
    written = re.compile(r"(insert\s+into|update|delete\s+from)\s+(seat_holds|tickets|event_seats|event_zones)\b")
    writers = {
        path.relative_to(PACKAGE).as_posix()
        for pattern in ("**/*.py", "**/*.sql")
        for path in PACKAGE.glob(pattern)
        if written.search(path.read_text())
    }
    writers.remove("bench/ground.py")  # in an installation of its own, as that very role: holds that have lapsed
    assert writers == {"holds/functions.sql"}
    rows = await owner_conn.fetch(
        "select proname, pg_get_userbyid(proowner) as owner, prosecdef,"
        " has_function_privilege('voelgoed_app', oid, 'execute') as is_callable, proconfig"
        " from pg_proc where pronamespace = 'public'::regnamespace and prosrc ~* $1",
        r"(insert\s+into|update|delete\s+from)\s+(seat_holds|tickets|event_seats|event_zones)\M",
    )
    assert {row["proname"] for row in rows} >= {
        "reserve_items",
        "hold_end",
        "hold_extend",
        "hold_convert",
        "ticket_void",
    }
    assert {row["owner"] for row in rows} == {"voelgoed_registry"}
    for row in rows:
        assert row["is_callable"] == row["prosecdef"], row["proname"]  # from outside with its rights, or not at all
        assert "search_path=public, pg_temp" in row["proconfig"]


@pytest.mark.req("SEAT-08", "SEAT-09", "SEAT-10", "SEAT-13")
async def test_the_columns_of_a_seat(owner_conn: Connection) -> None:
    """Four states; hold, owner, end and ticket where the state has them; a version that begins with 1."""
    found = await columns(owner_conn, "event_seats")
    assert found["status"] == ("seat_status", True)
    states = await owner_conn.fetchval("select enum_range(null::seat_status)::text[]")
    assert set(states) == set(SeatStatus) == {"available", "held", "sold", "blocked"}
    for name in ("hold_id", "held_by", "ticket_id"):
        assert found[name] == ("uuid", False)
    for name in ("held_until", "locked_at"):
        assert found[name] == ("timestamp with time zone", False)
    assert found["version"] == ("integer", True)
    assert (
        await owner_conn.fetchval(
            "select pg_get_expr(adbin, adrelid) from pg_attrdef d join pg_attribute a on a.attrelid = d.adrelid"
            " and a.attnum = d.adnum where adrelid = 'event_seats'::regclass and attname = 'version'"
        )
        == "1"
    )


@pytest.mark.parametrize(
    ("values", "constraint"),
    [
        ("status = 'held'", "event_seats_held_by_hold"),
        ("status = 'held', hold_id = gen_random_uuid()", "event_seats_held_by_somebody"),
        ("status = 'held', hold_id = gen_random_uuid(), held_by = gen_random_uuid()", "event_seats_held_for_a_time"),
        ("held_until = now()", "event_seats_held_for_a_time"),
        ("hold_id = gen_random_uuid()", "event_seats_held_by_hold"),
        ("held_by = gen_random_uuid()", "event_seats_held_by_somebody"),
        ("status = 'sold'", "event_seats_sold_by_ticket"),
        ("ticket_id = gen_random_uuid()", "event_seats_sold_by_ticket"),
        ("status = 'blocked'", "event_seats_blocked_by_somebody"),
        ("status = 'blocked', blocked_by = 'me'", "event_seats_blocked_by_known"),
    ],
)
@pytest.mark.req("SEAT-23", "SEAT-10", "SEAT-12")
async def test_what_no_seat_can_be(sale: Sale, owner_conn: Connection, values: str, constraint: str) -> None:
    """Held without a hold, sold without a ticket, blocked by nobody: the table refuses it by name."""
    with pytest.raises(asyncpg.CheckViolationError) as wrong:
        async with as_registry(owner_conn) as conn:
            await conn.execute(
                f"update event_seats set {values} where event_id = $1 and seat_id = $2",
                sale.event.id,
                sale.seat("S-A-1"),
            )
    assert wrong.value.constraint_name == constraint


@pytest.mark.req("HOLD-15", "IDX-04")
async def test_a_seat_has_one_active_hold(sale: Sale, owner_conn: Connection) -> None:
    """The last lock: a second active row of one seat is refused by the index, of another event or ended it is not."""
    seat = {"seat_id": f"'{sale.seat('S-A-1')}'"}
    await insert(owner_conn, sale, seat)
    with pytest.raises(asyncpg.UniqueViolationError) as wrong:
        await insert(owner_conn, sale, seat)
    assert wrong.value.constraint_name == "seat_holds_active_seat"
    await insert(owner_conn, sale, {**seat, "status": "'expired'", "ended_at": "now()"})
    await insert(owner_conn, sale, {**seat, "event_id": "coalesce('01933b5c-0000-7000-8000-000000000000'::uuid, $2)"})


@pytest.mark.req("IDX-15")
async def test_a_seat_is_once_in_an_event(sale: Sale, owner_conn: Connection) -> None:
    """By its id and by its ordinal; labels may repeat, in the stalls and in the balcony."""
    for name, constraint in (("seat_id", "event_seats_seat"), ("ordinal", "event_seats_pkey")):
        ordinal, seat = ("ordinal", "gen_random_uuid()") if name == "ordinal" else ("ordinal + 1000", "seat_id")
        with pytest.raises(asyncpg.UniqueViolationError) as wrong:
            async with as_registry(owner_conn) as conn:
                await conn.execute(
                    "insert into event_seats (organization_id, event_id, ordinal, seat_id, zone_id)"
                    f" select organization_id, event_id, {ordinal}, {seat}, zone_id from event_seats"
                    " where event_id = $1 and ordinal = 0",
                    sale.event.id,
                )
        assert wrong.value.constraint_name == constraint


@pytest.fixture
async def crowded(sale: Sale, owner_conn: Connection) -> AsyncIterator[Sale]:
    """An event among many of its organization: thousands of holds and seats of others, and figures about them."""
    async with as_registry(owner_conn) as conn:
        await conn.execute(
            "insert into seat_holds (id, organization_id, event_id, zone_id, seat_id, user_id, cart_token, created_at,"
            " initial_expires_at, expires_at, status, ended_at)"
            " select gen_random_uuid(), $1, md5('e' || i % 200)::uuid, gen_random_uuid(),"
            " gen_random_uuid(), md5('u' || i % 3000)::uuid, 'c', now() - make_interval(mins => i),"
            " now() - make_interval(mins => i - 10), now() - make_interval(mins => i - 10),"
            " case when i % 20 = 0 then 'active' else 'expired' end::hold_status,"
            " case when i % 20 = 0 then null else now() end from generate_series(1, 8000) as i",
            sale.place.id,
        )
        await conn.execute(
            "insert into event_seats (organization_id, event_id, ordinal, seat_id, zone_id)"
            " select $1, md5('e' || i % 200)::uuid, i, gen_random_uuid(), gen_random_uuid()"
            " from generate_series(1, 8000) as i",
            sale.place.id,
        )
    await owner_conn.execute("analyze seat_holds, event_seats")
    await sale.hold(sale.caller(), "S-A-1", "S-A-2")
    yield sale
    async with as_registry(owner_conn) as conn:
        await conn.execute("delete from event_seats where organization_id = $1", sale.place.id)
    await owner_conn.execute("select set_config('app.scope', 'system', false)")
    await owner_conn.execute("delete from seat_holds where organization_id = $1", sale.place.id)
    await owner_conn.execute("analyze seat_holds, event_seats")


async def plan(db: Database, sale: Sale, query: str, *values: object, is_crowded: bool = True) -> str:
    """How PostgreSQL would answer; of a table that may be small here, how it would if that one were crowded too."""
    async with db.transaction(sale.place.id) as conn:
        if not is_crowded:
            await conn.execute("set local enable_seqscan = off")
        if "-- system" in query:
            await conn.execute("select set_config('app.scope', 'system', true)")
        rows = await conn.fetch(f"explain (costs off) {query}", *values)
    told = "\n".join(row[0] for row in rows)
    assert not re.search(r"Seq Scan on (seat_holds|event_seats|journal)", told), told
    return told


@pytest.mark.req("IDX-05", "IDX-06", "IDX-07", "IDX-09")
async def test_holds_are_found_by_an_index(crowded: Sale) -> None:
    """Somebody's, an event's, those that lapse: every question that is asked has its index, and no other is kept."""
    db, event_id, user = crowded.db, crowded.event.id, new_id()
    mine = await plan(db, crowded, store.Q["list_holds_of_user"], crowded.place.id, user, event_id, 200)
    assert "seat_holds_of_user" in mine
    events = await plan(db, crowded, store.Q["list_holds_of_event"], crowded.place.id, event_id, None, None, 50)
    assert "seat_holds_active" in events
    hour_ago = datetime.now(UTC) - timedelta(hours=1)
    ends = await plan(db, crowded, store.Q["count_hold_ends"], crowded.place.id, event_id, hour_ago, is_crowded=False)
    assert "event_id_recorded_at" in ends
    tidying = await plan(db, crowded, store.Q["list_events_to_tidy"], 200)
    assert tidying.count("using seat_holds_active") == 2
    assert tidying.count("Limit") == 3, "one hold of each event is looked at, not all of them"
    assert "seat_holds_pkey" in await plan(db, crowded, store.Q["find_holds"], crowded.place.id, [new_id()])


@pytest.mark.req("IDX-08", "IDX-10", "IDX-11", "IDX-13")
async def test_what_the_functions_ask_has_an_index(crowded: Sale, owner_conn: Connection) -> None:
    """By seat, by person of late, by event and end, by address: the conditions as they stand in the functions."""
    place_id, event_id, seat_id, user_id = crowded.place.id, crowded.event.id, crowded.seat("S-A-1"), new_id()
    asked: dict[str, tuple[str, UUID, UUID]] = {
        "seat_holds_active_seat": ("event_id = $1 and seat_id = $2 and status = 'active'", event_id, seat_id),
        "seat_holds_of_user": (
            "organization_id = $1 and user_id = $2 and created_at > now() - interval '70 minutes'",
            place_id,
            user_id,
        ),
        "seat_holds_active": (
            "organization_id = $1 and event_id = $2 and status = 'active' and expires_at <= now()",
            place_id,
            event_id,
        ),
    }
    text = (PACKAGE / "holds" / "functions.sql").read_text()
    assert "h.user_id = any (p_users)\n         and h.created_at > moment - interval '70 minutes'" in text
    for index, (condition, *values) in asked.items():
        told = await plan(crowded.db, crowded, f"select id from seat_holds where {condition}", *values)
        assert re.search(rf"\b{index}\b", told), told
    by_address = (
        "select sum(quantity) from seat_holds where organization_id = $1 and client_ip = $2 and status = 'active'"
        " and expires_at > now()"
    )
    assert "seat_holds_active" in await plan(crowded.db, crowded, by_address, crowded.place.id, "10.0.0.1")
    names = await owner_conn.fetch(
        "select indexrelid::regclass::text from pg_index where indrelid = 'seat_holds'::regclass"
    )
    assert {row[0] for row in names} == {"seat_holds_pkey", *asked}


@pytest.mark.req("IDX-12")
async def test_an_organizations_timeline_is_its_journal(crowded: Sale) -> None:
    """What happened to holds, newest first, is asked of the journal, by organization and time."""
    query = journal_store.Q["search"]
    values = (crowded.place.id, ["seat_reserved"], None, None, None, None, None, None, None, 50)
    told = await plan(crowded.db, crowded, query, *values, is_crowded=False)
    assert "organization_id_recorded_at" in told


@pytest.mark.req("IDX-14", "IDX-17")
async def test_seats_are_found_by_an_index(crowded: Sale) -> None:
    """By event, zone and state, one by one and all of them: a walk through the event's own rows, and no further."""
    db, event_id, seat_id = crowded.db, crowded.event.id, crowded.seat("S-A-1")
    pin = crowded.seated.pin
    counts = await plan(db, crowded, store.Q["count_seats"], crowded.place.id, event_id)
    assert "event_seats_pkey" in counts
    listed = await plan(
        db, crowded, store.Q["list_seats"], crowded.place.id, event_id, *pin, -1, crowded.zone("S"), "available", 50
    )
    assert "event_seats_pkey" in listed
    one = await plan(db, crowded, store.Q["get_seat"], crowded.place.id, event_id, seat_id)
    assert "event_seats_seat" in one


@pytest.mark.req("PERF-21")
async def test_nobody_locks_a_table(sale: Sale, app_conn: Connection) -> None:
    """What a reserve has locked when it is done: rows of its own; whole tables only as every writer shares them."""
    users, holds, requests = (f"{{{new_id()},{new_id()}}}" for _ in range(3))
    values = [
        sale.place.id, sale.event.id, "{0,1}", f"{{{sale.seat('S-A-1')},NULL}}", [None, sale.zone()], [1, 2],
        users, holds, requests, "{NULL,NULL}", [None], ["c", "c"],
        ["web"], ["customer"], [False], [], [], [], [], None,
    ]  # fmt: skip
    async with app_conn.transaction():
        rows = await app_conn.fetch(store.Q["reserve_items"], *values)
        assert [row["verdict"] for row in rows] == ["created", "created"]
        modes = await app_conn.fetch(
            "select distinct mode from pg_locks where pid = pg_backend_pid() and locktype = 'relation'"
        )
        assert {row["mode"] for row in modes} <= {"AccessShareLock", "RowShareLock", "RowExclusiveLock"}
        buyer = sale.caller()
        async with asyncio.timeout(5):  # beside it everybody else goes on
            await sale.hold(buyer, "S-A-2")
    assert "lock table" not in (PACKAGE / "holds" / "functions.sql").read_text().lower()


SEATS: Final = ("S-A-1", "S-A-2", "S-A-3", "S-A-4", "S-B-3", "S-B-4", "S-B-5", "S-B-6")


class Stage:
    """A seat in some state, and what may be done to it: by its holder, by another, by staff, by the clock."""

    def __init__(self, sale: Sale, owner: Connection) -> None:
        self.sale, self.owner = sale, owner
        self.me, self.other = sale.caller(), sale.caller()
        self.held: dict[str, Held] = {}
        self.tickets: dict[str, UUID] = {}

    async def come_to(self, state: str, code: str) -> None:
        """Bring a seat into a state."""
        sale = self.sale
        holder = self.me if state.startswith("mine") else self.other
        if state == "blocked":
            await sale.block(code)
        elif state != "available":
            (self.held[code],) = await sale.hold(holder, code)
        if state == "sold":
            said, (self.tickets[code],) = await sale.buy(self.other, self.held[code])
            assert said == "sold"
        if state.endswith("lapsed"):
            await let_pass(self.owner, self.held[code].hold.id)

    async def reserve(self, code: str) -> None:
        await self.sale.hold(self.me, code)

    async def extend(self, code: str) -> None:
        await booking.extend(self.sale.db, self.me, self.hold_id(code))

    async def release(self, code: str) -> None:
        await booking.release(self.sale.services.lanes, self.sale.db, self.me, self.hold_id(code))

    async def convert(self, code: str) -> None:
        assert self.me.actor.user_id is not None
        await registry.convert(
            self.sale.db,
            self.sale.place.id,
            self.sale.event.id,
            self.me.actor.user_id,
            [self.hold_id(code)],
            tickets=[new_id()],
            order_id=new_id(),
            is_paid=False,
            by=OPERATOR,
        )

    async def block(self, code: str) -> None:
        await self.sale.block(code)

    async def unblock(self, code: str) -> None:
        await self.sale.block(code, is_blocked=False)

    async def expire(self, code: str) -> None:
        await registry.reap(self.sale.db, by=CLOCK)

    async def void(self, code: str) -> None:
        ticket_id = self.tickets.get(code, new_id())
        await registry.void(self.sale.db, self.sale.place.id, self.sale.event.id, ticket_id, by=OPERATOR, reason="x")

    def hold_id(self, code: str) -> UUID:
        return self.held[code].hold.id if code in self.held else new_id()


Act = Callable[[Stage, str], Awaitable[None]]
ACTS: Final[dict[str, Act]] = {
    "reserve": Stage.reserve,
    "extend": Stage.extend,
    "release": Stage.release,
    "convert": Stage.convert,
    "block": Stage.block,
    "unblock": Stage.unblock,
    "void": Stage.void,
    "expire": Stage.expire,
}
MOVES: Final[dict[str, dict[str, tuple[str, int]]]] = {
    "available": {"reserve": ("held", 1), "block": ("blocked", 1)},
    "mine": {"extend": ("held", 1), "release": ("available", 1), "convert": ("sold", 1), "block": ("blocked", 2)},
    "mine lapsed": {
        "reserve": ("held", 2),
        "release": ("available", 1),
        "block": ("blocked", 2),
        "expire": ("available", 1),
    },
    "another's": {"block": ("blocked", 2)},
    "another's lapsed": {"reserve": ("held", 2), "block": ("blocked", 2), "expire": ("available", 1)},
    "sold": {"void": ("available", 1)},
    "blocked": {"unblock": ("available", 1)},
}
"""From each state by each act to which, and by how many steps. What is not here changes nothing."""


@pytest.mark.req("SEAT-17", "SEAT-19", "SEAT-20", "SEAT-23")
@pytest.mark.parametrize("state", MOVES)
async def test_what_a_seat_can_become(sale: Sale, owner_conn: Connection, state: str) -> None:
    """Every act on a seat of every state.

    A move that is allowed is made, with a version and a fact for each step; any other leaves the row as it was.
    """
    stage = Stage(sale, owner_conn)
    for code in SEATS:
        await stage.come_to(state, code)
    for (name, act), code in zip(ACTS.items(), SEATS, strict=True):
        before = await sale.row(code)
        if name == "expire":  # the others of this state would lapse as well: it comes last
            assert code == SEATS[-1]
        is_refused = False
        try:
            await act(stage, code)
        except DomainError:
            is_refused = True
        assert not (is_refused and name in MOVES[state]), (state, name)
        after = await sale.row(code)
        if name not in MOVES[state]:
            assert after == before, (state, name)
            continue
        status, steps = MOVES[state][name]
        assert (after["status"], after["version"]) == (status, before["version"] + steps), (state, name)
    facts = await facts_of(sale.db, sale.event)
    for row in await seat_rows(sale.db, sale.event):
        told = [fact["version"] for fact in facts if fact["seat_id"] == row["seat_id"]]
        assert told == list(range(2, row["version"] + 1))
    assert await auditing.verify(sale.db, organization_id=sale.place.id) == []


@pytest.mark.req("SEAT-24", "SEAT-12", "SEAT-19", "SEAT-20")
async def test_a_sold_seat_has_its_ticket(sale: Sale) -> None:
    """Sold with the ticket's id, and for good: not to be held, sold, let go or blocked again, but by taking it back."""
    buyer = sale.caller()
    (held,) = await sale.hold(buyer, "S-A-1")
    said, (ticket_id,) = await sale.buy(buyer, held)
    assert said == "sold"
    row = await sale.row("S-A-1")
    assert (row["status"], row["ticket_id"], row["hold_id"], row["held_until"]) == ("sold", ticket_id, None, None)
    assert (await sale.buy(buyer, held))[0] == "holds_expired"  # for another order
    with pytest.raises(DomainError) as refused:
        await sale.hold(sale.caller(Role.OWNER), "S-A-1")
    assert refused.value.facts == {"current_status": "sold"}
    assert await sale.block("S-A-1") == {"S-A-1": "seat_not_available"}
    assert await sale.row("S-A-1") == row
    for expected in ("voided", "ticket_void"):
        said = await registry.void(sale.db, sale.place.id, sale.event.id, ticket_id, by=OPERATOR, reason="refunded")
        assert said == expected
    assert (await sale.row("S-A-1"))["status"] == "available"


async def test_the_same_order_twice_is_one_sale(sale: Sale) -> None:
    """A payment that is confirmed again makes no second ticket."""
    buyer = sale.caller()
    assert buyer.actor.user_id is not None
    (held,) = await sale.hold(buyer, "S-A-1")
    order: dict[str, Any] = {"order_id": new_id(), "is_paid": True, "by": OPERATOR}
    for expected in ("sold", "already_converted"):
        said = await registry.convert(
            sale.db,
            sale.place.id,
            sale.event.id,
            buyer.actor.user_id,
            [held.hold.id],
            tickets=[new_id()],
            **order,
        )
        assert said == expected
    async with sale.db.transaction(sale.place.id) as conn:
        assert await conn.fetchval("select count(*) from tickets where event_id = $1", sale.event.id) == 1
