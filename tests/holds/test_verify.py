"""`voelgoed verify` compares the seats, zones and holds of an event with the journal."""

import asyncio
import contextlib
import itertools
import json
import random
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from uuid import UUID

import pytest

from tests.make.accounts import make_person
from tests.make.events import call_of, make_event, make_venue
from tests.make.holds import Sale, end_now, let_pass, on_sale
from tests.make.layouts import small_layout
from tests.make.races import hall_layout
from tests.make.seating import facts_of, next_pin, publish, save, seat_rows, unpublish, zone_rows
from voelgoed.accounts.model import Call, Organization, Role
from voelgoed.db import Connection
from voelgoed.errors import DomainError
from voelgoed.events.model import OPERATOR
from voelgoed.holds import auditing, booking, inventory, registry, store, usecases
from voelgoed.holds.auditing import JOURNAL_CHECKS, Finding
from voelgoed.holds.booking import Held
from voelgoed.holds.following import STATUS_AFTER
from voelgoed.holds.inventory import Wanted
from voelgoed.ids import new_id
from voelgoed.seating.overlay import Overlay, ZoneOverride
from voelgoed.wiring import Services

GAP: Final = "ledger_with_a_gap"
SEAT: Final = "seat_that_differs_from_its_last_fact"
ZONE: Final = "zone_that_differs_from_its_last_fact"
HOLD: Final = "hold_that_differs_from_its_facts"

DELETE_HOLD: Final = "delete from seat_holds where id = '{hold}'"
DELETE_TICKET: Final = "delete from tickets where id = '{ticket}'"
FREE: Final = (
    "update event_seats set (status, hold_id, held_by, held_until, ticket_id) = ('available', null, null, null, null)"
)
HOLD_WITHOUT_FACT: Final = (
    "insert into seat_holds (id, organization_id, event_id, zone_id, user_id, cart_token, initial_expires_at,"
    " expires_at)"
    " select '{other}', organization_id, event_id, zone_id, user_id, 'c', expires_at, expires_at"
    " from seat_holds where id = '{zone_hold}'"
)
BLOCK: Final = "update event_seats set (status, blocked_by) = ('blocked', 'staff')"


@dataclass(frozen=True, slots=True, kw_only=True)
class Corruption:
    """Statements that break the database so that its tables still agree, and the findings they must cause."""

    name: str
    statements: tuple[str, ...]
    found: Mapping[str, tuple[str, str]]
    """By check: the end of the record's id, and words of the reason."""

    def __str__(self) -> str:
        return self.name


CORRUPTIONS: Final = (
    Corruption(
        name="held seat freed and its hold deleted",
        statements=(FREE + " where hold_id = '{hold}'", DELETE_HOLD),
        found={
            SEAT: (
                "{S-A-1}",
                "is available; its last journal entry, seat_reserved at version 2, says held, hold {hold}",
            ),
            HOLD: ("{hold}", "there is no such active hold"),
        },
    ),
    Corruption(
        name="held seat and its hold under another id",
        statements=(
            "update event_seats set hold_id = '{other}' where hold_id = '{hold}'",
            "update seat_holds set id = '{other}' where id = '{hold}'",
        ),
        found={SEAT: ("{S-A-1}", "is held, hold {other}"), HOLD: ("", "")},
    ),
    Corruption(
        name="seat and hold end a microsecond later",
        statements=(
            "update event_seats set held_until = held_until + interval '1 us' where hold_id = '{hold}'",
            "update seat_holds set expires_at = expires_at + interval '1 us' where id = '{hold}'",
            "update seat_holds set initial_expires_at = expires_at where id = '{hold}'",
        ),
        found={SEAT: ("{S-A-1}", "is held, hold {hold}"), HOLD: ("{hold}", "but the journal says")},
    ),
    Corruption(
        name="sold seat freed, its ticket and hold deleted",
        statements=(
            FREE + " where ticket_id = '{ticket}'",
            "delete from seat_holds where id = (select hold_id from tickets where id = '{ticket}')",
            DELETE_TICKET,
        ),
        found={
            SEAT: (
                "{S-A-2}",
                "is available; its last journal entry, seat_sold at version 3, says sold, ticket {ticket}",
            )
        },
    ),
    Corruption(
        name="sold seat and its ticket under another id",
        statements=(
            "update event_seats set ticket_id = '{other}' where ticket_id = '{ticket}'",
            "update tickets set id = '{other}' where id = '{ticket}'",
        ),
        found={SEAT: ("{S-A-2}", "says sold, ticket {ticket}")},
    ),
    Corruption(
        name="seat blocked by staff made available",
        statements=("update event_seats set (status, blocked_by) = ('available', null) where seat_id = '{S-A-3}'",),
        found={SEAT: ("{S-A-3}", "is available; its last journal entry, seat_blocked at version 2, says blocked")},
    ),
    Corruption(
        name="released seat blocked",
        statements=(BLOCK + " where seat_id = '{S-A-4}'",),
        found={
            SEAT: ("{S-A-4}", "is blocked; its last journal entry, seat_hold_released at version 3, says available")
        },
    ),
    Corruption(
        name="seat without a fact blocked by staff",
        statements=(BLOCK + " where seat_id = '{S-B-6}'",),
        found={SEAT: ("{S-B-6}", "is blocked; the journal has no entry for it, so it should be available")},
    ),
    Corruption(
        name="seat without a fact sold",
        statements=("update event_seats set (status, ticket_id) = ('sold', '{other}') where seat_id = '{S-B-6}'",),
        found={SEAT: ("{S-B-6}", "is sold, ticket {other}"), "sold_seat_without_a_ticket": ("{S-B-6}", "")},
    ),
    Corruption(
        name="held seat freed with the next version",
        statements=(FREE + ", version = version + 1 where hold_id = '{hold}'", DELETE_HOLD),
        found={
            GAP: ("{S-A-1}", "the seat has version 3, the journal has 1 entries from version 2 to 2"),
            HOLD: ("{hold}", "there is no such active hold"),
        },
    ),
    Corruption(
        name="last fact of a kind that no check knows",
        statements=("update journal set kind = 'seat_moved' where kind = 'seat_blocked' and seat_id = '{S-A-3}'",),
        found={SEAT: ("{S-A-3}", "says in an unknown state")},
    ),
    Corruption(
        name="hold in a zone deleted and no longer counted",
        statements=(
            "delete from seat_holds where id = '{zone_hold}'",
            "update event_zones set held = held - 3 where event_id = '{event}' and zone_code = 'P'",
        ),
        found={
            ZONE: (
                "{P}",
                "has 0 held and 2 sold at version 4; the journal has 3 entries for it, and the last says 3 held",
            ),
            HOLD: ("{zone_hold}", "there is no such active hold"),
        },
    ),
    Corruption(
        name="tickets of a zone deleted and no longer counted",
        statements=(
            "delete from seat_holds where id = '{zone_sold}'",
            "delete from tickets where hold_id = '{zone_sold}'",
            "update event_zones set sold = 0 where event_id = '{event}' and zone_code = 'P'",
        ),
        found={
            ZONE: (
                "{P}",
                "has 3 held and 0 sold at version 4; the journal has 3 entries for it, and the last says 3 held",
            )
        },
    ),
    Corruption(
        name="zone set back by a version",
        statements=("update event_zones set version = version - 1 where event_id = '{event}' and zone_code = 'P'",),
        found={ZONE: ("{P}", "at version 3; the journal has 3 entries")},
    ),
    Corruption(
        name="active hold that the journal does not know",
        statements=(
            HOLD_WITHOUT_FACT,
            "update event_zones set held = held + 1 where event_id = '{event}' and zone_code = 'P'",
        ),
        found={HOLD: ("{other}", "but the journal has no entry for it"), ZONE: ("{P}", "has 4 held")},
    ),
    Corruption(
        name="ended hold active again",
        statements=("update seat_holds set status = 'active', ended_at = null where id = '{ended}'",),
        found={
            HOLD: ("{ended}", "but the journal says that it has ended"),
            "active_hold_without_its_seat": ("{ended}", ""),
        },
    ),
)


@pytest.fixture
async def sale(services: Services, place: Organization) -> Sale:
    return await on_sale(services, place)


async def verify(sale: Sale) -> list[Finding]:
    return list(await auditing.verify(sale.db, organization_id=sale.place.id))


async def set_up(sale: Sale) -> dict[str, object]:
    """Hold, sell, block and release a seat each, hold 3 and sell 2 of a zone, and return the ids by name."""
    buyer, other = sale.caller(), sale.caller()
    held, bought, ended = await sale.hold(buyer, "S-A-1", "S-A-2", "S-A-4")
    _, (ticket_id,) = await sale.buy(buyer, bought)
    await booking.release(sale.services.lanes, sale.db, buyer, ended.hold.id)
    assert await sale.block("S-A-3") == {"S-A-3": "done"}
    in_zone = await sale.hold_places(other, 3)
    await sale.buy(other, sold := await sale.hold_places(other, 2))
    seats = {code: sale.seat(code) for code in ("S-A-1", "S-A-2", "S-A-3", "S-A-4", "S-B-6")}
    return {
        "event": sale.event.id,
        "hold": held.hold.id,
        "ended": ended.hold.id,
        "ticket": ticket_id,
        "zone_hold": in_zone.hold.id,
        "zone_sold": sold.hold.id,
        "other": new_id(),
        "P": sale.zone(),
        **seats,
    }


@pytest.mark.parametrize("corruption", CORRUPTIONS, ids=str)
async def test_corruption_is_reported_by_name(sale: Sale, owner_conn: Connection, corruption: Corruption) -> None:
    """Nothing is found before. Afterwards the seat, zone or hold is named, with what it is and what it should be."""
    names = await set_up(sale)
    assert await verify(sale) == []
    await owner_conn.execute("select set_config('app.scope', 'system', false)")
    for statement in corruption.statements:
        assert not (await owner_conn.execute(statement.format(**names))).endswith(" 0"), statement
    found: dict[str, list[Finding]] = {}
    for one in await verify(sale):
        found.setdefault(one.check, []).append(one)
    assert found.keys() == corruption.found.keys()
    for check, (record, words) in corruption.found.items():
        assert any(one.id.endswith(record.format(**names)) and words.format(**names) in one.why for one in found[check])


async def test_every_fact_of_a_seat_is_known_to_the_checks() -> None:
    """A new kind of fact needs a line there."""
    for kind in STATUS_AFTER:
        assert f"'{kind}'" in JOURNAL_CHECKS[SEAT]
    for kind in STATUS_AFTER.keys() - {"seat_blocked", "seat_unblocked"}:
        assert f"'{kind}'" in JOURNAL_CHECKS[HOLD]


async def test_every_kind_of_change_leaves_nothing_to_find(sale: Sale, owner_conn: Connection) -> None:
    """Extend, hand over, sell, void, expire, block, unblock and change what is on offer, in seats and in a zone."""
    db, lanes, guest = sale.db, sale.services.lanes, await make_person(sale.db, sale.place, is_guest=True)
    names = await set_up(sale)
    me = sale.caller(user_id=guest.user_id)
    for held in (*await sale.hold(me, "S-B-3"), await sale.hold_places(me, 2)):
        await booking.extend(db, me, held.hold.id)
    account = await make_person(db, sale.place)
    async with db.transaction(sale.place.id) as conn:
        handed = await registry.hand_over(
            conn, sale.place.id, guest.user_id, account.user_id, role="customer", is_staff=False, by=OPERATOR
        )
    assert [one.is_kept for one in handed] == [True, True]
    in_zone = await sale.hold_places(sale.caller(), 1)
    await booking.release(lanes, db, sale.caller(user_id=in_zone.hold.user_id), in_zone.hold.id)
    (ticket_id,) = (await sale.buy(buyer := sale.caller(), await sale.hold_places(buyer, 1)))[1]
    for ticket in (names["ticket"], ticket_id):
        assert isinstance(ticket, UUID)
        said = await registry.void(db, sale.place.id, sale.event.id, ticket, by=OPERATOR, reason="refund")
        assert said == "voided"
    await save(sale.services.studio, sale.event, sale.seated.wanted(Overlay(blocked_seats=("S-A-3", "S-B-4"))))
    assert await sale.block("S-A-3", is_blocked=False) == {"S-A-3": "done"}  # the event still blocks it
    assert (await sale.row("S-A-3"))["status"] == "blocked"
    assert await verify(sale) == []
    await save(sale.services.studio, sale.event, sale.seated.wanted())
    assert await verify(sale) == []
    await let_pass(owner_conn, *(row["id"] for row in await sale.rows() if row["status"] == "active"))
    assert await verify(sale) == []
    assert await registry.reap(db, by=OPERATOR) > 0
    assert await verify(sale) == []
    await sale.hold(sale.caller(), "S-A-1")
    assert await verify(sale) == []


async def test_zone_version_may_follow_changes_of_the_event(sale: Sale, owner_conn: Connection) -> None:
    """Each fact of the event may have raised a zone's version once. One version more is reported, with its number."""
    wanted = sale.seated.wanted(Overlay(zone_overrides={"P": ZoneOverride(capacity=250)}))
    await save(sale.services.studio, sale.event, wanted)
    assert await verify(sale) == []
    await owner_conn.execute("select set_config('app.scope', 'system', false)")
    changes = await owner_conn.fetchval(
        "select count(*) from journal where event_id = $1 and kind in ('event_status_changed', 'event_seating_changed')"
        " and seq > (select seq from journal where event_id = $1 and kind = 'event_inventory_created')",
        sale.event.id,
    )
    assert changes == 2
    for version, expected in ((1 + changes, []), (2 + changes, [ZONE])):
        await owner_conn.execute(
            "update event_zones set version = $2 where event_id = $1 and zone_code = 'P'", sale.event.id, version
        )
        assert [one.check for one in await verify(sale)] == expected


async def test_versions_start_again_with_new_seats(sale: Sale, monkeypatch: pytest.MonkeyPatch) -> None:
    """Facts of removed seats and zones do not count for new ones, not even while those are written in pieces."""
    studio, held = sale.services.studio, (await sale.hold(sale.caller(), "S-A-1"))[0]
    in_zone = await sale.hold_places(sale.caller(), 2)
    for one in (held, in_zone):
        await booking.release(sale.services.lanes, sale.db, sale.caller(user_id=one.hold.user_id), one.hold.id)
    draft = await unpublish(studio, sale.event)
    assert await verify(sale) == []
    add, found = store.add_seats, list[Finding]()

    async def add_and_verify(*given: Any) -> None:
        found.extend(await verify(sale))
        await add(*given)

    with monkeypatch.context() as patch:
        patch.setattr(inventory, "SEATS_PER_PIECE", 4)
        patch.setattr(store, "add_seats", add_and_verify)
        await publish(studio, draft)
    await sale.hold(sale.caller(), "S-A-1")
    await sale.hold_places(sale.caller(), 2)
    assert found + await verify(sale) == []


async def test_versions_start_again_with_another_layout(sale: Sale) -> None:
    """The event gets another version of its layout while it is on sale."""
    studio, me = sale.services.studio, sale.caller()
    for held in (*await sale.hold(me, "S-A-1"), await sale.hold_places(me, 2)):
        await booking.release(sale.services.lanes, sale.db, me, held.hold.id)
    pin = await next_pin(studio, sale.place.id, sale.seated.pin.layout_id, small_layout({"name": "Other name"}))
    await save(studio, sale.event, Wanted(pin=pin, overrides=sale.seated.wanted().overrides))
    assert await verify(sale) == []
    seats = [seat["seat_id"] for seat in await seat_rows(sale.db, sale.event)]
    await booking.reserve_seats(sale.services.lanes, sale.db, sale.caller(), sale.event.id, seats[:1])
    assert await verify(sale) == []


async def test_an_event_without_a_layout_changes_its_capacity(services: Services, place: Organization) -> None:
    """Its one zone gets another version without a fact of its own."""
    event = await publish(services.studio, await make_event(services.db, place, await make_venue(services.db, place)))
    call = call_of(place, Role.OWNER)
    await usecases.update_event(services.studio, services.catalogue, call, event.id, {"capacity": 40}, version=None)
    (zone,) = await zone_rows(services.db, event)
    assert (zone["capacity"], zone["version"]) == (40, 2)
    assert await auditing.verify(services.db, organization_id=place.id) == []


async def test_months_of_the_journal_may_be_gone(sale: Sale, owner_conn: Connection) -> None:
    """Facts of a dropped month are not missed. What the months that are left say still has to be true."""
    names = await set_up(sale)
    await owner_conn.execute("select set_config('app.scope', 'system', false)")
    first = (datetime.now(UTC).replace(day=1) - timedelta(days=40)).replace(
        day=1, hour=0, minute=0, second=0, microsecond=0
    )
    last = (first + timedelta(days=32)).replace(day=1)
    await owner_conn.execute(
        f"create table journal_gone partition of journal for values from ('{first}') to ('{last}')"
    )
    await owner_conn.execute("update journal set recorded_at = $2 where event_id = $1", sale.event.id, first)
    await owner_conn.execute("drop table journal_gone")
    assert await facts_of(sale.db, sale.event) == []
    assert await verify(sale) == []
    (held,) = await sale.hold(sale.caller(), "S-B-3")
    in_zone = await sale.hold_places(sale.caller(), 2)
    await registry.void(sale.db, sale.place.id, sale.event.id, UUID(str(names["ticket"])), by=OPERATOR, reason="refund")
    assert await verify(sale) == []
    for hold_id in (held.hold.id, in_zone.hold.id):
        await owner_conn.execute("delete from seat_holds where id = $1", hold_id)
    await owner_conn.execute(FREE + " where hold_id = $1", held.hold.id)
    await owner_conn.execute(
        "update event_zones set held = held - 2 where event_id = $1 and zone_code = 'P'", sale.event.id
    )
    assert sorted(one.check for one in await verify(sale)) == sorted([SEAT, ZONE, HOLD, HOLD])


class Writers:
    """Buyers and an organiser, all at work until `left` is set. They use few seats, so that they meet."""

    def __init__(self, sale: Sale, owner: Connection) -> None:
        self.sale, self.owner, self.expiring, self.left = sale, owner, asyncio.Lock(), asyncio.Event()
        self.done: Counter[str] = Counter()

    async def buy(self, choice: random.Random) -> None:
        """Hold a seat and places of a zone, and end the holds in one of three ways."""
        while not self.left.is_set():
            me, code = self.sale.caller(), f"S-A-{choice.randint(1, 40)}"
            with contextlib.suppress(DomainError):  # another buyer has the seat
                held = [*await self.sale.hold(me, code), await self.sale.hold_places(me, choice.randint(1, 3), "P1")]
                end = choice.choice([self.sell_and_void, self.extend_and_release, self.expire])
                await end(me, held)
                self.done[end.__name__] += 1

    async def sell_and_void(self, me: Call, held: list[Held]) -> None:
        _, tickets = await self.sale.buy(me, *held)
        for ticket in tickets:
            key = self.sale.place.id, self.sale.event.id, ticket
            await registry.void(self.sale.db, *key, by=OPERATOR, reason="refund")

    async def extend_and_release(self, me: Call, held: list[Held]) -> None:
        for one in held:
            await booking.extend(self.sale.db, me, one.hold.id)
            await booking.release(self.sale.services.lanes, self.sale.db, me, one.hold.id)

    async def expire(self, _me: Call, held: list[Held]) -> None:
        async with self.expiring:
            await end_now(self.owner, *(one.hold.id for one in held))

    async def change_the_event(self) -> None:
        """Block two seats for the event and open them again, unless a buyer has one, and expire what is due."""
        for overlay in itertools.cycle((Overlay(blocked_seats=("S-A-39", "S-A-40")), Overlay())):
            if self.left.is_set():
                return
            with contextlib.suppress(DomainError):
                await save(self.sale.services.studio, self.sale.event, self.sale.seated.wanted(overlay))
                self.done["changed"] += 1
            self.done["reaped"] += await registry.reap(self.sale.db, by=OPERATOR)


async def test_writers_cause_no_false_alarm(services: Services, place: Organization, owner_conn: Connection) -> None:
    """The checks run again and again until every kind of change has happened several times, and find nothing."""
    sale = await on_sale(services, place, layout=hall_layout(seats=40, pits=[500]))
    writers, found = Writers(sale, owner_conn), list[Finding]()
    async with asyncio.TaskGroup() as group:
        for seed in range(4):
            group.create_task(writers.buy(random.Random(seed)))
        group.create_task(writers.change_the_event())
        while len(writers.done) < 5 or min(writers.done.values()) < 5:
            found += await verify(sale)
        writers.left.set()
    assert found + await verify(sale) == []


def scans_of_journal(plan: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the nodes of a plan that read a month of the journal, deepest last."""
    if plan.get("Relation Name", "").startswith("journal_2"):
        yield plan
    for inner in plan.get("Plans", ()):
        yield from scans_of_journal(inner)


@pytest.mark.parametrize("check", JOURNAL_CHECKS)
async def test_checks_read_the_facts_of_their_event_only(sale: Sale, owner_conn: Connection, check: str) -> None:
    """The organization's facts of other events are 100 times as many, and are not read."""
    await set_up(sale)
    count = len(await facts_of(sale.db, sale.event))
    await owner_conn.execute("select set_config('app.scope', 'system', false)")
    await owner_conn.execute(
        "insert into journal (organization_id, event_id, seat_id, version, kind, data)"
        " select $1, md5(n::text)::uuid, gen_random_uuid(), 2, 'seat_reserved', '{}' from generate_series(1, $2) as n",
        sale.place.id,
        100 * count,
    )
    await owner_conn.execute("analyze journal")
    async with sale.db.system_transaction() as conn:
        await conn.execute(auditing.JOINS)
        explain = "explain (analyze, format json) " + JOURNAL_CHECKS[check]
        (told,) = json.loads(await conn.fetchval(explain, sale.place.id, sale.event.id, 20))
    read = [
        (node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"]
        for node in scans_of_journal(told["Plan"])
    ]
    # A month in which other tests left a few facts may be read whole, which is cheaper than its index.
    assert 0 < max(read) < 10 * count
