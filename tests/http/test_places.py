"""An event's places over HTTP: the map, how full it is, how it was, and how the tiers behind it stand."""

import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx2
import pytest

from tests.make.accounts import Person, make_person
from tests.make.holds import Sale, moment, on_sale
from tests.make.seating import block_seat, facts_of, sell_seat, take_places
from tests.make.web import Site
from voelgoed.accounts.model import Organization, Role
from voelgoed.db import Connection, Database
from voelgoed.holds import occupancy, reconcile, store
from voelgoed.holds.following import REBUILD
from voelgoed.holds.hotmap import SeatChange, unpack
from voelgoed.holds.occupancy import occupancy_now
from voelgoed.ids import new_id
from voelgoed.telemetry import metrics
from voelgoed.wiring import Services

COUNTS = ("total", "available", "held", "sold", "blocked")
NO_EVENT = "01933b5c-0000-7000-8000-000000000000"


@pytest.fixture
async def lead(db: Database, place: Organization) -> Person:
    return await make_person(db, place, Role.OWNER)


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two looks nobody waits here."""
    monkeypatch.setattr(reconcile, "AGAIN_S", 0.0)


@pytest.fixture
def live(services: Services) -> Iterator[None]:
    """What is committed is said to arrive here."""
    was = services.availability.is_live
    services.availability.is_live = lambda: True
    yield
    services.availability.is_live = was


@pytest.fixture
async def in_redis(services: Services, sale: Sale) -> AsyncIterator[str]:
    """The event stands in Redis; what its keys begin with."""
    found = await services.availability.load(sale.place.id, sale.event.id)
    async with services.db.transaction(sale.place.id) as conn:
        holds = await store.list_active_holds(conn, sale.place.id, sale.event.id, 100)
    async with services.db.system_transaction() as conn:
        epoch = await store.next_projection_epoch(conn)
    await services.projection.rebuild(found, epoch, holds)
    yield f"voelgoed:org:{sale.place.id}:event:{{{sale.event.id}}}:"
    await services.projection.remove(sale.place.id, sale.event.id)


async def get(site: Site, path: str, who: Person | None = None, **headers: str) -> httpx2.Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return await site.client.get(path, headers={**(who.headers if who else {}), **named})


def data(answer: httpx2.Response) -> Any:
    assert answer.status_code == 200, answer.text
    return answer.json()["data"]


def refusal(answer: httpx2.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]


def seatmap(sale: Sale) -> str:
    return f"/api/events/{sale.event.id}/seatmap"


async def some_taken(sale: Sale, owner: Connection) -> None:
    await sale.hold(sale.caller(), "S-A-1", "S-A-2")
    await sell_seat(owner, sale.event, sale.seated.ordinal("S-A-3"))
    await block_seat(owner, sale.event, sale.seated.ordinal("S-A-4"))
    await take_places(owner, sale.event, sale.zone("P"), held=2, sold=5)


@pytest.mark.req("OCC-09")
async def test_everybody_sees_every_seat(site: Site, sale: Sale, owner_conn: Connection) -> None:
    """Two bits for each, by ordinal, and what is left of each zone; whose hold it is nobody learns."""
    await some_taken(sale, owner_conn)
    answer = await get(site, seatmap(sale))
    found = data(answer)
    statuses = unpack(found["statuses"], found["seat_count"])
    assert found["seat_count"] == len(sale.seated.hall.codes)
    by_code = dict(zip(sale.seated.hall.codes, statuses, strict=True))
    assert [by_code[f"S-A-{n}"] for n in (1, 2, 3, 4)] == [1, 1, 2, 3]
    assert sum(statuses) == 1 + 1 + 2 + 3
    zones = {zone["zone_id"]: zone for zone in found["zones"]}
    assert [zones[str(sale.zone("S"))][name] for name in COUNTS] == [10, 6, 2, 1, 1]
    places = zones[str(sale.zone("P"))]
    assert (places["held"], places["sold"]) == (2, 5)
    assert all(zone["total"] == sum(zone[name] for name in COUNTS[1:]) for zone in zones.values())
    assert answer.headers["cache-control"] == "no-cache"
    for row in await sale.rows():
        assert str(row["user_id"]) not in answer.text
        assert str(row["id"]) not in answer.text


async def test_a_map_that_has_not_changed_is_not_sent_again(site: Site, sale: Sale) -> None:
    """Its name in the stream is its ETag; after a change it is another."""
    first = await get(site, seatmap(sale))
    tag = first.headers["etag"]
    found = data(first)
    assert tag.startswith(f'"{found["epoch"]}:{found["map_version"]}:')
    for asked in (tag, f"W/{tag}", f'"x", {tag}'):
        again = await get(site, seatmap(sale), if_none_match=asked)
        assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
    await sale.hold(sale.caller(), "S-A-1")
    after = await get(site, seatmap(sale), if_none_match=tag)
    assert data(after)["map_version"] == found["map_version"] + 2
    assert after.headers["etag"] != tag
    assert (await get(site, seatmap(sale), if_none_match=tag[:-2] + '"')).status_code == 200


@pytest.mark.req("OCC-08", "REG-39")
async def test_the_map_and_how_full_it_is_come_from_memory(
    site: Site, sale: Sale, live: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However often they are asked for, PostgreSQL is not."""
    data(await get(site, seatmap(sale)))

    async def never(*_: object) -> None:
        raise AssertionError("PostgreSQL was asked")

    for name in ("load_map", "count_places", "find_inventory_epoch"):
        monkeypatch.setattr(store, name, never)
    for _ in range(20):
        data(await get(site, seatmap(sale)))
        data(await get(site, f"/api/events/{sale.event.id}/occupancy"))


@pytest.mark.req("OCC-01", "OCC-02", "OCC-09")
async def test_how_full_it_is_has_the_seeds_names(site: Site, sale: Sale, owner_conn: Connection) -> None:
    """Four counts, their sum, three shares, when; and each zone."""
    await some_taken(sale, owner_conn)
    found = data(await get(site, f"/api/events/{sale.event.id}/occupancy"))
    assert [found[name] for name in ("held", "sold", "blocked")] == [4, 6, 1]
    assert found["total"] == sum(found[name] for name in COUNTS[1:])
    for part in ("available", "held", "sold"):
        assert found[f"percent_{part}"] == round(100 * found[part] / found["total"], 1)
    moment(found["timestamp"])
    assert {zone["zone_id"] for zone in found["zones"]} == {str(sale.zone(code)) for code in ("S", "V", "P")}
    assert [sum(zone[name] for zone in found["zones"]) for name in COUNTS] == [found[name] for name in COUNTS]


@pytest.mark.parametrize("path", ["seatmap", "occupancy"])
async def test_what_is_not_shown_is_not_there(
    site: Site, services: Services, place: Organization, db: Database, path: str
) -> None:
    """A draft, to those outside and to those who run it; another's; an id that is none."""
    draft = await on_sale(services, place, status="draft")
    stranger = await make_person(db, None, Role.OWNER)
    own = await make_person(db, place, Role.OWNER)
    for who in (None, stranger, own):
        assert refusal(await get(site, f"/api/events/{draft.event.id}/{path}", who)) == (404, "event_not_found")
    assert refusal(await get(site, f"/api/events/{NO_EVENT}/{path}")) == (404, "event_not_found")
    assert (await get(site, f"/api/events/nonsense/{path}")).status_code == 400


async def test_somebody_elses_question_leaves_the_map_where_it_is(
    site: Site, services: Services, sale: Sale, db: Database, live: None
) -> None:
    """Staff of another organization look at what everybody may look at, as everybody does."""
    stranger = await make_person(db, None, Role.OWNER)
    data(await get(site, seatmap(sale)))
    kept = services.availability.peek(sale.event.id)
    assert data(await get(site, seatmap(sale), stranger))["event_id"] == str(sale.event.id)
    assert services.availability.peek(sale.event.id) is kept


async def test_how_full_it_was_is_told_to_those_who_run_it(
    site: Site, services: Services, sale: Sale, lead: Person, db: Database
) -> None:
    """Minute by minute, since when one asks; a time without its zone is not one."""
    path = f"/api/admin/events/{sale.event.id}/occupancy/minutes"
    assert data(await get(site, path, lead)) == []
    await sale.hold(sale.caller(), "S-A-1")
    found = occupancy_now(await services.availability.load(sale.place.id, sale.event.id))
    await occupancy.remember(db, sale.place.id, found)
    (minute,) = data(await get(site, path, lead))
    assert [minute[name] for name in COUNTS[1:]] == [found.available, 1, 0, 0]
    assert moment(minute["taken_at"]).second == 0
    assert data(await get(site, f"{path}?since=2099-01-01T00:00:00Z", lead)) == []
    assert len(data(await get(site, f"{path}?since=2020-01-01T00:00:00Z", lead))) == 1
    for wrong in ("2020-01-01T00:00:00", "yesterday"):
        assert (await get(site, f"{path}?since={wrong}", lead)).status_code in (400, 422)
    buyer = await make_person(db, sale.place)
    assert refusal(await get(site, path, buyer))[0] == 403
    assert refusal(await get(site, path, await make_person(db, None, Role.OWNER))) == (404, "event_not_found")
    assert (await get(site, path)).status_code == 401


@pytest.mark.req("REG-33")
async def test_how_the_tiers_stand_is_told_to_those_who_run_it(
    site: Site, services: Services, sale: Sale, lead: Person, in_redis: str
) -> None:
    """The counts of the seed, whether they agree, and what is missing and left over by its id."""
    path = f"/api/admin/events/{sale.event.id}/registry"
    found = data(await get(site, path, lead))
    assert {
        name: found[name] for name in ("ets_count", "redis_count", "db_count", "consistent", "status", "breaker")
    } == {
        "ets_count": 0,
        "redis_count": 0,
        "db_count": 0,
        "consistent": True,
        "status": "ok",
        "breaker": "closed",
    }
    assert found["message"]
    (mine,) = await sale.hold(sale.caller(), "S-A-1")
    ghost = new_id()
    await services.redis.client.zadd(in_redis + "seat_holds", {str(ghost): 2**45})
    found = data(await get(site, path, lead))
    assert (found["redis_count"], found["db_count"], found["consistent"], found["status"]) == (1, 1, False, "stale")
    assert (found["missing"], found["extra"]) == ([str(mine.hold.id)], [str(ghost)])
    assert (found["seats_differ"], found["seats_differ_count"]) == ([str(sale.seat("S-A-1"))], 1)


@pytest.mark.req("REG-34")
async def test_whoever_leads_may_have_them_made_anew(
    site: Site, services: Services, sale: Sale, lead: Person, db: Database, in_redis: str
) -> None:
    """Says what was found; the fact that makes everybody load anew names who asked. Crew may look, and no more."""
    path = f"/api/admin/events/{sale.event.id}/registry"
    staff, buyer = await make_person(db, sale.place, Role.STAFF), await make_person(db, sale.place)
    stranger = await make_person(db, None, Role.OWNER)
    assert data(await get(site, path, staff))["status"] == "ok"

    async def post(who: Person | None) -> httpx2.Response:
        return await site.client.post(f"{path}/reconcile", headers=who.headers if who else {})

    answers = [
        (await get(site, path, buyer)).status_code,
        (await get(site, path)).status_code,
        (await get(site, path, stranger)).status_code,
        (await post(staff)).status_code,
        (await post(buyer)).status_code,
        (await post(None)).status_code,
        (await post(stranger)).status_code,
    ]
    assert answers == [403, 401, 404, 403, 403, 401, 404]
    assert await facts_of(db, sale.event, REBUILD) == []
    done = data(await post(lead))
    assert (done["consistent"], done["event_id"]) == (True, str(sale.event.id))
    (fact,) = await facts_of(db, sale.event, REBUILD)
    assert fact["actor_id"] == lead.user_id
    assert json.dumps(fact["data"])


@pytest.mark.req("REG-02", "REG-06")
async def test_a_free_seat_is_answered_from_memory_as_well(
    site: Site, services: Services, sale: Sale, db: Database, live: None
) -> None:
    """The map has every seat of the event, by organization and event: status, version, end; free ones are no misses."""
    anna = await make_person(db, sale.place)
    data(await get(site, seatmap(sale)))
    path = f"/api/events/{sale.event.id}/seats/"
    data(await get(site, path + str(sale.seat("S-A-1")), anna))  # its name is asked for once
    counter = metrics.HOLD_CACHE_LOOKUPS
    hot, cold = counter.labels("ets", "true"), counter.labels("db", "true")
    before = hot._value.get(), cold._value.get()
    found = data(await get(site, path + str(sale.seat("S-A-1")), anna))
    assert found["status"] == "available"
    assert (hot._value.get(), cold._value.get()) == (before[0] + 1, before[1])
    until_ms = 2**45
    change = SeatChange(
        seat_id=sale.seat("S-A-1"), version=2, status=1, hold_id=new_id(), user_id=anna.user_id, until_ms=until_ms
    )
    services.availability.take(sale.event.id, [change], [])
    found = data(await get(site, path + str(sale.seat("S-A-1")), anna))
    assert (found["status"], found["version"]) == ("held", 2)
