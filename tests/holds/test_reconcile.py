"""Comparing Redis and this process with PostgreSQL: what differs is named, and made anew."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import pytest

from tests.make.accounts import make_organization
from tests.make.holds import Sale, let_pass, on_sale
from tests.make.seating import facts_of, seated_event
from voelgoed.accounts.model import Organization
from voelgoed.db import Connection, Database
from voelgoed.events.model import OPERATOR
from voelgoed.events.refusals import EventNotFound
from voelgoed.holds import reconcile, store
from voelgoed.holds.availability import Availability
from voelgoed.holds.following import REBUILD
from voelgoed.holds.projection import Projection
from voelgoed.holds.reconcile import NAMED_MAX, Report
from voelgoed.ids import new_id
from voelgoed.jobs import queue
from voelgoed.redis import RedisLink
from voelgoed.wiring import Services


@dataclass(frozen=True, slots=True, kw_only=True)
class Tiers:
    """An event with two seats and three places held, in every tier."""

    sale: Sale
    hot: Availability
    projection: Projection
    client: Any
    holds: list[UUID]

    def key(self, name: str) -> str:
        return f"voelgoed:org:{self.sale.place.id}:event:{{{self.sale.event.id}}}:{name}"

    async def rebuild(self) -> None:
        """What the one who tells does when it is asked to."""
        sale = self.sale
        found = await self.hot.load(sale.place.id, sale.event.id)
        async with sale.db.transaction(sale.place.id) as conn:
            holds = await store.list_active_holds(conn, sale.place.id, sale.event.id, 1_000)
        async with sale.db.system_transaction() as conn:
            epoch = await store.next_projection_epoch(conn)
        await self.projection.rebuild(found, epoch, holds)
        self.projection.believe(epoch)

    async def look(self) -> Report:
        return await reconcile.look(self.sale.db, self.hot, self.projection, self.sale.place.id, self.sale.event.id)

    async def reconcile(self) -> Report:
        return await reconcile.reconcile(
            self.sale.db, self.hot, self.projection, self.sale.place.id, self.sale.event.id, by=OPERATOR
        )


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two looks nobody waits here."""
    monkeypatch.setattr(reconcile, "AGAIN_S", 0.0)


@pytest.fixture
async def link(redis_url: str) -> AsyncIterator[RedisLink]:
    async with RedisLink(redis_url, connect_timeout_s=5, call_timeout_s=5) as made:
        yield made


@pytest.fixture
async def tiers(services: Services, place: Organization, link: RedisLink) -> Tiers:
    sale = await on_sale(services, place)
    held = await sale.hold(sale.caller(), "S-A-1", "S-A-2")
    places = await sale.hold_places(sale.caller(), 3)
    projection = Projection(link)
    made = Tiers(
        sale=sale,
        hot=Availability(services.db, projection),
        projection=projection,
        client=link.client,
        holds=[*(one.hold.id for one in held), places.hold.id],
    )
    await made.rebuild()
    return made


@pytest.mark.req("REG-33")
async def test_tiers_that_agree_are_well(tiers: Tiers) -> None:
    """Active holds in PostgreSQL and Redis, seats held in this process, nothing missing and nothing left over."""
    report = await tiers.look()
    assert (report.ets_count, report.redis_count, report.db_count) == (2, 3, 3)
    assert (report.consistent, report.status, report.message) == (True, "ok", "All tiers agree.")
    assert (report.missing, report.extra, report.seats_differ, report.zones_differ) == ([], [], [], [])


async def lose_a_hold(tiers: Tiers) -> dict[str, object]:
    await tiers.client.zrem(tiers.key("seat_holds"), str(tiers.holds[0]))
    return {"missing": [tiers.holds[0]], "redis_count": 2}


async def plant_a_hold(tiers: Tiers) -> dict[str, object]:
    ghost = new_id()
    await tiers.client.zadd(tiers.key("seat_holds"), {str(ghost): 2**45})
    return {"extra": [ghost], "redis_count": 4}


async def plant_a_hold_for_ever(tiers: Tiers) -> dict[str, object]:
    ghost = new_id()
    await tiers.client.zadd(tiers.key("seat_holds"), {str(ghost): float("inf")})
    return {"extra": [ghost], "redis_count": 4}


async def spoil_the_map(tiers: Tiers) -> dict[str, object]:
    ordinal = tiers.sale.seated.ordinal("S-A-3")
    await tiers.client.setrange(tiers.key("map"), ordinal, b"\x02")
    return {"seats_differ": [tiers.sale.seat("S-A-3")], "seats_differ_count": 1}


async def spoil_a_version(tiers: Tiers) -> dict[str, object]:
    ordinal = tiers.sale.seated.ordinal("S-A-1")
    await tiers.client.setrange(tiers.key("versions"), 4 * ordinal, b"\x00\x00\x00\x01")
    return {"seats_differ": [tiers.sale.seat("S-A-1")], "seats_differ_count": 1}


async def spoil_a_zone(tiers: Tiers) -> dict[str, object]:
    await tiers.client.hset(tiers.key("zones"), str(tiers.sale.zone("P")), "2:99:0")
    return {"zones_differ": [tiers.sale.zone("P")]}


async def lose_everything(tiers: Tiers) -> dict[str, object]:
    names = ("epoch", "map", "versions", "zones", "seat_holds")
    await tiers.client.delete(*(tiers.key(name) for name in names))
    seats = [tiers.sale.seated.hall.seat_id(n) for n in range(len(tiers.sale.seated.hall.codes))]
    return {"missing": sorted(tiers.holds), "seats_differ": seats, "redis_count": 0}


async def wrong_types(tiers: Tiers) -> dict[str, object]:
    for name in ("epoch", "map", "versions", "zones", "seat_holds"):
        await tiers.client.delete(tiers.key(name))
        await tiers.client.rpush(tiers.key(name), "x")
    return {"missing": sorted(tiers.holds), "redis_count": 0}


async def lose_the_epoch(tiers: Tiers) -> dict[str, object]:
    await tiers.client.delete(tiers.key("epoch"))
    return {}


SPOILT: list[Callable[[Tiers], Awaitable[dict[str, object]]]] = [
    lose_a_hold,
    plant_a_hold,
    plant_a_hold_for_ever,
    spoil_the_map,
    spoil_a_version,
    spoil_a_zone,
    lose_everything,
    wrong_types,
    lose_the_epoch,
]


@pytest.mark.req("REG-32", "REG-34", "TEST-31")
@pytest.mark.parametrize("spoil", SPOILT)
async def test_what_differs_is_named_and_a_rebuild_mends_it(
    tiers: Tiers, spoil: Callable[[Tiers], Awaitable[dict[str, object]]]
) -> None:
    """Missing and left over by their ids, seats and zones by theirs; made anew, everything equals PostgreSQL."""
    expected = await spoil(tiers)
    report = await tiers.look()
    assert {name: getattr(report, name) for name in expected} == expected
    assert (report.db_count, report.consistent, report.status) == (3, False, "stale")
    assert "differs" in report.message
    await tiers.rebuild()
    after = await tiers.look()
    assert (after.consistent, after.redis_count, after.db_count) == (True, 3, 3)


@pytest.mark.req("REG-34")
async def test_a_phantom_hold_of_a_seat_is_gone_after_a_rebuild(tiers: Tiers) -> None:
    """A key for a free seat, with everything right about it but that PostgreSQL knows nothing of it: not believed."""
    sale = tiers.sale
    epoch = int(await tiers.client.get(tiers.key("epoch")))
    key = tiers.key(f"seat:{sale.seat('S-A-4')}:hold")
    await tiers.client.set(key, f"{epoch}:9:{new_id()}:{new_id()}:{2**45}")
    read = (sale.place.id, sale.event.id, sale.seat("S-A-4"))
    tiers.projection.believe(epoch)
    assert await tiers.projection.read_hold(*read)
    await tiers.rebuild()
    assert await tiers.projection.read_hold(*read) is None
    real = await tiers.projection.read_hold(sale.place.id, sale.event.id, sale.seat("S-A-1"))
    assert real is not None
    assert real.hold_id in tiers.holds


async def test_the_lists_are_short_however_much_differs(tiers: Tiers) -> None:
    """A hundred are named; how many there are is in the counts."""
    ghosts = {str(new_id()): 2**45 for _ in range(NAMED_MAX + 20)}
    await tiers.client.zadd(tiers.key("seat_holds"), ghosts)
    report = await tiers.look()
    assert (len(report.extra), report.redis_count) == (NAMED_MAX, NAMED_MAX + 23)


async def test_what_is_just_ending_is_neither_missing_nor_left_over(tiers: Tiers, owner_conn: Connection) -> None:
    """By the same clock for both, with a second of grace; lapsed holds that nobody tidied away do not count."""
    await let_pass(owner_conn, *tiers.holds)
    report = await tiers.look()
    assert (report.db_count, report.missing) == (0, [])
    await tiers.rebuild()
    report = await tiers.look()
    assert (report.db_count, report.redis_count, report.extra, report.consistent) == (0, 0, [], True)


async def test_without_redis_that_is_said(tiers: Tiers, services: Services) -> None:
    """Not consistent, and no count of something that was not seen."""
    async with RedisLink("redis://127.0.0.1:1") as nowhere:
        report = await reconcile.look(
            services.db, tiers.hot, Projection(nowhere), tiers.sale.place.id, tiers.sale.event.id
        )
    assert (report.redis_count, report.db_count, report.consistent, report.status) == (None, 3, False, "stale")
    assert "Redis is away" in report.message


async def test_a_draft_has_nothing_to_compare(services: Services, place: Organization, tiers: Tiers) -> None:
    """And another organization's event is not there."""
    draft = await seated_event(services.db, services.studio, place)
    report = await reconcile.look(services.db, tiers.hot, tiers.projection, place.id, draft.event.id)
    assert (report.db_count, report.redis_count, report.ets_count, report.consistent) == (0, 0, None, True)
    other = await make_organization(services.db)
    for work in (reconcile.look, reconcile.reconcile):
        more = {} if work is reconcile.look else {"by": OPERATOR}
        with pytest.raises(EventNotFound):
            await work(services.db, tiers.hot, tiers.projection, other.id, tiers.sale.event.id, **more)
    assert await facts_of(services.db, tiers.sale.event, REBUILD) == []


@pytest.mark.req("AUD-15", "REG-34")
async def test_reconciling_asks_everybody_to_make_it_anew(tiers: Tiers, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a fact, which reaches every process; it and the log say what was found."""
    said: list[tuple[str, dict[str, Any]]] = []
    monkeypatch.setattr(reconcile.log, "info", lambda event, **about: said.append((event, about)))
    await lose_a_hold(tiers)
    report = await tiers.reconcile()
    assert report.missing == [tiers.holds[0]]
    (fact,) = await facts_of(tiers.sale.db, tiers.sale.event, REBUILD)
    assert (fact["seat_id"], fact["version"]) == (None, None)
    assert fact["data"] == {
        "status": "stale",
        "db_count": 3,
        "redis_count": 2,
        "missing": 1,
        "extra": 0,
        "seats_differ": 0,
    }
    (event, about) = said[0]
    assert event == "registry_reconciled"
    assert (about["org_id"], about["event_id"]) == (str(tiers.sale.place.id), str(tiers.sale.event.id))
    assert about["keys_invalidated"] == 5
    assert json.dumps(about)


@pytest.mark.req("REG-31", "REG-37")
async def test_every_five_minutes_what_differs_is_made_anew(
    services: Services, tiers: Tiers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of all events on sale those that differ, once each; one that cannot be compared does not keep the others."""
    (job,) = [one for one in queue.RECURRING if one.job_name == "reconcile_places"]
    assert job.cron == "*/5 * * * *"
    well = await on_sale(services, tiers.sale.place)
    broken = await on_sale(services, tiers.sale.place)
    here = [(tiers.sale.place.id, one.event.id) for one in (broken, well, tiers.sale)]

    async def listed(*_: object) -> object:
        return here

    monkeypatch.setattr(store, "list_materialised", listed)
    other = Tiers(sale=well, hot=tiers.hot, projection=tiers.projection, client=tiers.client, holds=[])
    await other.rebuild()
    load_map = store.load_map

    async def fail_for_one(conn: Any, organization_id: Any, event_id: UUID) -> Any:
        if event_id == broken.event.id:
            raise ZeroDivisionError
        return await load_map(conn, organization_id, event_id)

    monkeypatch.setattr(store, "load_map", fail_for_one)
    await lose_a_hold(tiers)
    assert await reconcile.reconcile_all(services.db, tiers.hot, tiers.projection) == 1
    counts = [len(await facts_of(services.db, one.event, REBUILD)) for one in (broken, well, tiers.sale)]
    assert counts == [0, 0, 1]
    await tiers.rebuild()
    assert await reconcile.reconcile_all(services.db, tiers.hot, tiers.projection) == 0
    async with RedisLink("redis://127.0.0.1:1") as nowhere:
        assert await reconcile.reconcile_all(services.db, tiers.hot, Projection(nowhere)) == 0, "nothing to compare"


async def test_a_moment_behind_is_not_different(tiers: Tiers, monkeypatch: pytest.MonkeyPatch) -> None:
    """People buy while it is compared: what is right at the second look was never wrong."""
    await lose_a_hold(tiers)
    dump = tiers.projection.dump
    looks = 0

    async def caught_up(*values: Any) -> Any:
        nonlocal looks
        looks += 1
        if looks == 2:
            await tiers.rebuild()
        return await dump(*values)

    monkeypatch.setattr(tiers.projection, "dump", caught_up)
    assert (await tiers.look()).consistent
    assert looks == 2


async def test_being_compared_keeps_it_in_redis(tiers: Tiers, db: Database) -> None:
    """An event in which nothing happens stays there as long as somebody compares it."""
    for name in ("epoch", "map", "versions", "zones"):
        await tiers.client.expire(tiers.key(name), 5)
    await tiers.look()
    for name in ("epoch", "map", "versions", "zones"):
        assert await tiers.client.ttl(tiers.key(name)) > 60
