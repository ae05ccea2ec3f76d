"""`voelgoed verify` sees whatever must never be so; `voelgoed registry` tells what is held, and tidies up."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import asyncpg
import pytest

from tests.conftest import TEMPLATE
from tests.make.accounts import make_organization
from tests.make.holds import Sale, let_pass, on_sale
from tests.make.processes import environment, voelgoed
from tests.make.races import database_alone
from tests.make.seating import facts_of
from voelgoed import schema
from voelgoed.accounts.model import Organization
from voelgoed.cli import registry
from voelgoed.config import Settings
from voelgoed.db import Connection, Database
from voelgoed.embedded import Embedded
from voelgoed.holds import reconcile
from voelgoed.holds.auditing import CHECKS, SHOWN_MAX
from voelgoed.holds.availability import Availability
from voelgoed.holds.following import REBUILD, Dispatcher
from voelgoed.holds.projection import Projection
from voelgoed.ids import new_id
from voelgoed.redis import RedisLink
from voelgoed.wiring import build_services


@dataclass(frozen=True, slots=True, kw_only=True)
class House:
    """An installation with a database of its own, a sale in it, and its owner's key to everything."""

    settings: Settings
    owner: Connection
    sale: Sale
    other: Organization
    hold_id: UUID
    ticket_id: UUID

    @property
    def env(self) -> dict[str, str]:
        assert self.settings.database_url is not None
        return {"VOELGOED_DATABASE_URL": self.settings.database_url.get_secret_value()}


@pytest.fixture
async def house(servers: Embedded, settings: Settings, worker_id: str) -> AsyncIterator[House]:
    """One seat held, one sold, three places held and two sold; nobody else is here."""
    name = f"voelgoed_verify_{worker_id}"
    async with database_alone(servers, settings, TEMPLATE, name) as here:
        assert here.database_url is not None
        db = await Database.open(here.database_url.get_secret_value(), size=4)
        owner: Connection = await asyncpg.connect(servers.postgres_url(schema.OWNER, name))
        services = build_services(here, db, RedisLink("redis://127.0.0.1:1"), b"x" * 32)
        try:
            await owner.execute("select set_config('app.scope', 'system', false)")
            place = await make_organization(db, slug="skouburg")
            sale = await on_sale(services, place, slug="boemeltrein")
            buyer = sale.caller()
            held, sold = await sale.hold(buyer, "S-A-1", "S-A-2")
            _, (ticket_id,) = await sale.buy(buyer, sold)
            await sale.hold_places(buyer, 3)
            await sale.buy(buyer, await sale.hold_places(buyer, 2))
            yield House(
                settings=here,
                owner=owner,
                sale=sale,
                other=await make_organization(db),
                hold_id=held.hold.id,
                ticket_id=ticket_id,
            )
        finally:
            services.door.passwords.close()
            await owner.close()
            await db.close()


ANOTHER = (
    "insert into seat_holds (id, organization_id, event_id, zone_id, seat_id, user_id, cart_token, created_at,"
    " initial_expires_at, expires_at, status, ended_at)"
)
FREE = "update event_seats set (status, hold_id, held_by, held_until) = ('available', null, null, null)"
PLANTED: dict[str, tuple[tuple[str, ...], set[str]]] = {
    "two_active_holds_of_a_seat": (
        (
            "drop index seat_holds_active_seat",
            ANOTHER + " select gen_random_uuid(), organization_id, event_id, zone_id, seat_id, gen_random_uuid(), 'c',"
            " created_at, initial_expires_at, expires_at, 'active', null from seat_holds where id = '{hold}'",
        ),
        {"active_hold_without_its_seat", "holds_of_one_seat_at_one_time", "hold_that_differs_from_its_facts"},
    ),
    "held_seat_without_its_hold": (
        ("update seat_holds set status = 'cancelled', ended_at = now() where id = '{hold}'",),
        {"hold_that_differs_from_its_facts"},
    ),
    "active_hold_without_its_seat": (
        (FREE + " where hold_id = '{hold}'",),
        {"seat_that_differs_from_its_last_fact"},
    ),
    "sold_seat_without_a_ticket": (
        ("update tickets set status = 'void', voided_at = now() where id = '{ticket}'",),
        set(),
    ),
    "ticket_without_its_seat": (
        ("update event_seats set status = 'available', ticket_id = null where ticket_id = '{ticket}'",),
        {"seat_that_differs_from_its_last_fact"},
    ),
    "two_ends_of_a_hold": (
        ("update event_seats set held_until = held_until + interval '1 second' where hold_id = '{hold}'",),
        {"seat_that_differs_from_its_last_fact"},
    ),
    "zone_that_does_not_add_up": (
        ("update event_zones set held = held + 1 where zone_code = 'P'",),
        {"zone_that_differs_from_its_last_fact"},
    ),
    "hold_across_organizations": (
        ("update seat_holds set organization_id = '{other}' where id = '{hold}'",),
        {"hold_that_differs_from_its_facts"},
    ),
    "ticket_across_organizations": (
        ("update tickets set user_id = gen_random_uuid() where id = '{ticket}'",),
        set(),
    ),
    "tickets_that_do_not_match_their_hold": (
        ("delete from tickets where seat_id is null and item = 2",),
        {"zone_that_does_not_add_up"},
    ),
    "ledger_with_a_gap": (
        ("update event_seats set version = version + 1 where seat_id = '{free}'",),
        set(),
    ),
    "holder_who_was_never_told": (
        (
            "update seat_holds set user_id = '{other}' where id = '{hold}'",
            "update event_seats set held_by = '{other}' where hold_id = '{hold}'",
        ),
        set(),
    ),
    "hold_that_lasts_too_long": (
        (
            "alter table seat_holds drop constraint seat_holds_bounded",
            "update seat_holds set expires_at = expires_at + interval '6 minutes' where id = '{hold}'",
            "update event_seats set held_until = held_until + interval '6 minutes' where hold_id = '{hold}'",
        ),
        {"seat_that_differs_from_its_last_fact", "hold_that_differs_from_its_facts"},
    ),
    "hold_that_ended_at_the_wrong_time": (
        ("update seat_holds set ended_at = expires_at where status = 'converted' and seat_id is null",),
        set(),
    ),
    "holds_of_one_seat_at_one_time": (
        (
            ANOTHER + " select gen_random_uuid(), organization_id, event_id, zone_id, seat_id, gen_random_uuid(), 'c',"
            " created_at - interval '1 minute', initial_expires_at, expires_at, 'cancelled',"
            " created_at + interval '1 minute' from seat_holds where id = '{hold}'",
        ),
        set(),
    ),
    "seat_that_differs_from_its_last_fact": (
        (FREE + " where hold_id = '{hold}'", "delete from seat_holds where id = '{hold}'"),
        {"hold_that_differs_from_its_facts"},
    ),
    "zone_that_differs_from_its_last_fact": (
        ("update event_zones set version = version + 100 where zone_code = 'P'",),
        set(),
    ),
    "hold_that_differs_from_its_facts": (
        ("update journal set kind = 'seat_hold_released' where kind = 'seat_reserved' and data ->> 'zone_held' = '3'",),
        set(),
    ),
    "held_although_nothing_may_be": (
        (
            "alter table events disable trigger user",
            "update events set status = 'cancelled', updated_at = now() - interval '1 minute' where id = '{event}'",
        ),
        set(),
    ),
}
"""How to break each invariant with the owner's rights, and which other checks report it too."""


def test_every_check_is_tried() -> None:
    """A new one needs a line above."""
    assert PLANTED.keys() == CHECKS.keys()


async def found_in(house: House, capsys: pytest.CaptureFixture[str]) -> dict[str, int]:
    """What `voelgoed verify --json` finds, by check."""
    capsys.readouterr()
    is_well = await registry.verify(house.settings, as_json=True)
    told = json.loads(capsys.readouterr().out)
    assert told["checks"].keys() == CHECKS.keys()
    assert told["is_well"] is is_well is (not told["findings"])
    assert sum(told["checks"].values()) == len(told["findings"])
    assert all(one["id"] and one["why"] for one in told["findings"])
    return {name: count for name, count in told["checks"].items() if count}


@pytest.mark.req("TEN-09")
@pytest.mark.parametrize("check", PLANTED)
async def test_each_check_finds_what_it_asks_for(house: House, check: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing in a house that is well; one thing broken by hand is found, and by nobody who has no business with it."""
    assert await found_in(house, capsys) == {}
    statements, beside = PLANTED[check]
    names = {
        "hold": house.hold_id,
        "ticket": house.ticket_id,
        "other": house.other.id,
        "event": house.sale.event.id,
        "free": house.sale.seat("S-A-4"),
    }
    for statement in statements:
        done = await house.owner.execute(statement.format(**names))
        assert done.split()[-1] != "0", statement
    assert (await found_in(house, capsys)).keys() == {check, *beside}


async def test_the_command_says_it_by_its_exit_code(house: House, data_dir: Path) -> None:
    """0 and a line for each question when all is well; 1, and the record by its id, when something is not."""
    env = environment(data_dir, **house.env)
    done = voelgoed("verify", env=env)
    assert (done.returncode, done.stderr) == (0, "")
    assert [line.split(maxsplit=1) for line in done.stdout.splitlines()] == [
        ["well", name.replace("_", " ")] for name in CHECKS
    ]
    await house.owner.execute("update event_seats set held_until = held_until + interval '1 s' where status = 'held'")
    done = voelgoed("verify", env=env)
    assert done.returncode == 1
    assert f"two ends of a hold: {house.hold_id}: the seat says" in done.stdout
    assert "well  ledger with a gap" in done.stdout


async def test_of_many_the_first_are_shown(house: House, capsys: pytest.CaptureFixture[str]) -> None:
    """However much is broken, the answer stays short."""
    await house.owner.execute(
        "insert into tickets (id, organization_id, event_id, zone_id, hold_id, item, user_id, order_id)"
        " select gen_random_uuid(), $1, gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), 1, gen_random_uuid(),"
        " gen_random_uuid() from generate_series(1, 100)",
        house.sale.place.id,
    )
    assert await found_in(house, capsys) == {"ticket_across_organizations": SHOWN_MAX}


async def test_what_is_held_is_shown_and_tidied(
    house: House, data_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Active and lapsed holds by event; after tidying up the lapsed ones are gone, with their facts."""
    await let_pass(house.owner, house.hold_id)
    await registry.show_status(house.settings, as_json=True)
    (line,) = json.loads(capsys.readouterr().out)
    assert {name: line[name] for name in ("organization", "event", "status", "active", "lapsed")} == {
        "organization": "skouburg",
        "event": "boemeltrein",
        "status": "published",
        "active": "1",
        "lapsed": "1",
    }
    assert line["next_lapse_at"].endswith("+00:00")
    await registry.show_status(house.settings, as_json=False)
    shown = capsys.readouterr().out.split()
    assert shown[-6:-1] == ["skouburg", "boemeltrein", "published", "1", "1"]
    done = voelgoed("registry", "reap", env=environment(data_dir, **house.env))
    assert (done.returncode, done.stdout) == (0, "1 holds tidied away\n")
    assert [row["status"] for row in await house.sale.rows() if row["id"] == house.hold_id] == ["expired"]
    assert (await house.sale.row("S-A-1"))["status"] == "available"
    assert await found_in(house, capsys) == {}


async def test_nothing_held_is_shown_as_nothing(house: House, capsys: pytest.CaptureFixture[str]) -> None:
    """An empty list, and nothing to tidy."""
    active = [row["id"] for row in await house.sale.rows() if row["status"] == "active"]
    await let_pass(house.owner, *active)
    for count in (2, 0):
        await registry.reap(house.settings)
        assert capsys.readouterr().out == f"{count} holds tidied away\n"
    await registry.show_status(house.settings, as_json=True)
    assert json.loads(capsys.readouterr().out) == []


async def test_the_reaper_lets_go_what_nobody_may_hold(house: House, capsys: pytest.CaptureFixture[str]) -> None:
    """Holds of a cancelled event, however they were left there, are found by the check and mended by the reaper."""
    await house.owner.execute("alter table events disable trigger user")
    await house.owner.execute("update events set status = 'cancelled', updated_at = now() - interval '1 minute'")
    assert await found_in(house, capsys) == {"held_although_nothing_may_be": 2}
    await registry.reap(house.settings)
    assert await found_in(house, capsys) == {}
    assert sorted(row["status"] for row in await house.sale.rows()) == [
        "cancelled",
        "cancelled",
        "converted",
        "converted",
    ]


async def told_of(house: House, capsys: pytest.CaptureFixture[str], *, is_mended: bool = False) -> dict[str, Any]:
    """What `voelgoed registry compare --json`, or `reconcile --json`, says."""
    capsys.readouterr()
    is_same = await registry.compare(
        house.settings, organization="skouburg", slug="boemeltrein", is_mended=is_mended, as_json=True
    )
    told: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert told["consistent"] is is_same
    assert told["status"] == ("ok" if is_same else "stale")
    return told


@pytest.mark.req("REG-31", "REG-32", "REG-33", "REG-34")
async def test_redis_is_compared_and_made_anew(
    house: House, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is missing is named; asked to, the worker makes it anew, and then everything agrees."""
    monkeypatch.setattr(reconcile, "AGAIN_S", 0.0)
    assert house.settings.redis_url is not None
    found = await told_of(house, capsys)
    assert (found["ets_count"], found["redis_count"], found["db_count"]) == (None, 0, 2)
    assert str(house.hold_id) in found["missing"]
    assert len(found["missing"]) == 2
    async with RedisLink(house.settings.redis_url.get_secret_value(), connect_timeout_s=5, call_timeout_s=5) as link:
        projection = Projection(link)
        db = house.sale.db
        worker = Dispatcher(db, Availability(db, projection), projection)
        key = f"voelgoed:org:{house.sale.place.id}:event:{{{house.sale.event.id}}}:seat_holds"

        async def until_told() -> None:
            async with asyncio.timeout(30):
                while not (await told_of(house, capsys))["consistent"]:
                    await worker.tick()

        await until_told()
        await link.client.zadd(key, {str(ghost := new_id()): 2**45})
        assert (await told_of(house, capsys))["extra"] == [str(ghost)]
        mended = await told_of(house, capsys, is_mended=True)
        assert (mended["extra"], mended["consistent"]) == ([str(ghost)], False)
        await until_told()
    assert [fact["data"]["extra"] for fact in await facts_of(house.sale.db, house.sale.event, REBUILD)] == [1]


async def test_a_difference_is_said_by_the_exit_code(house: House, data_dir: Path) -> None:
    """1 with the holds by their ids; reconcile ends well; without Redis that is said; an event must be there."""
    assert house.settings.redis_url is not None
    env = environment(data_dir, **house.env, VOELGOED_REDIS_URL=house.settings.redis_url.get_secret_value())
    done = voelgoed("registry", "compare", "skouburg", "boemeltrein", env=env)
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.startswith("PostgreSQL 2 holds, Redis 0: ")
    assert f"missing in Redis: {house.hold_id}" in done.stdout
    done = voelgoed("registry", "reconcile", "skouburg", "boemeltrein", env=env)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "The worker makes them anew.")
    away = {**env, "VOELGOED_REDIS_URL": "redis://127.0.0.1:1"}
    done = voelgoed("registry", "compare", "skouburg", "boemeltrein", env=away)
    assert done.returncode == 1
    assert "Redis away: Redis is away." in done.stdout
    done = voelgoed("registry", "compare", "skouburg", "nowhere", env=env)
    assert (done.returncode, done.stdout, done.stderr.splitlines()[0]) == (2, "", "voelgoed: There is no such event.")
