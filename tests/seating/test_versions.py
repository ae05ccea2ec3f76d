"""Versions in PostgreSQL: stored whole or not at all, read back exactly, changed by nobody."""

import asyncio
import gzip
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import asyncpg
import pytest
import structlog.testing
from hypothesis import HealthCheck, given, settings

from tests.make.accounts import make_organization
from tests.make.events import make_venue
from tests.make.layouts import allow_everything, changed, encoded, layouts, small_layout
from voelgoed.accounts.model import Organization
from voelgoed.db import Connection, Database
from voelgoed.errors import Busy
from voelgoed.events.model import OPERATOR, Venue
from voelgoed.events.refusals import CapacityExceeded, VenueNotFound
from voelgoed.ids import OrganizationId, new_id
from voelgoed.seating import geometry, presets, seat_ids, store, versions
from voelgoed.seating.document import read_layout
from voelgoed.seating.generate import generate
from voelgoed.seating.model import VERSION_MOVES, Layout, LayoutId, Version, VersionStatus
from voelgoed.seating.refusals import LayoutMoveRefused, LayoutNotFound
from voelgoed.seating.store import VersionKey
from voelgoed.seating.studio import Studio
from voelgoed.wiring import Services


@pytest.fixture(scope="session")
def studio(services: Services) -> Studio:
    return services.studio


@pytest.fixture(scope="session")
async def place(db: Database) -> Organization:
    place = await make_organization(db)
    await allow_everything(db, place.id)
    return place


@pytest.fixture(scope="session")
async def venue(db: Database, place: Organization) -> Venue:
    return await make_venue(db, place, max_capacity=500_000)


async def stored(studio: Studio, venue: Venue, layout: Layout) -> VersionKey:
    made = await versions.create_layout(studio, venue.organization_id, venue.id, layout, by=OPERATOR)
    return venue.organization_id, made.layout_id, made.version


async def next_version(studio: Studio, key: VersionKey, layout: Layout) -> VersionKey:
    made = await versions.create_version(studio, key[0], key[1], layout, by=OPERATOR)
    return key[0], key[1], made.version


async def loaded(db: Database, key: VersionKey) -> Layout:
    async with db.transaction(key[0]) as conn:
        return await versions.load(conn, key)


async def found(db: Database, key: VersionKey) -> Version:
    async with db.transaction(key[0]) as conn:
        return await versions.find(conn, key)


async def drawn(studio: Studio, key: VersionKey) -> geometry.Geometry:
    return geometry.decode(gzip.decompress((await studio.drawing(*key)).gzipped))


async def ids_by_code(db: Database, key: VersionKey) -> dict[str, object]:
    async with db.transaction(key[0]) as conn:
        rows = await conn.fetch(
            "select seat_code, seat_id from seats where layout_id = $1 and version = $2", key[1], key[2]
        )
    return {row["seat_code"]: row["seat_id"] for row in rows}


async def rows_left(db: Database, organization_id: OrganizationId, layout_id: LayoutId) -> dict[str, int]:
    """How many rows there are of a layout's versions, whole or not."""
    async with db.transaction(organization_id) as conn:
        return {
            table: await conn.fetchval(f"select count(*) from {table} where layout_id = $1", layout_id)
            for table in ("layout_versions", "layout_zones", "seats", "seat_groups")
        }


@pytest.mark.req("LAY-03", "LAY-10")
@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(layout=layouts())
async def test_a_layout_comes_back_as_it_was_stored(studio: Studio, db: Database, venue: Venue, layout: Layout) -> None:
    """Every zone, row, seat, group and shape, whatever they are called."""
    key = await stored(studio, venue, layout)
    assert await loaded(db, key) == layout


@pytest.mark.parametrize("name", ["theatre-350", "festival", "arena-20k"])
async def test_halls_come_back_as_they_were_stored(studio: Studio, db: Database, venue: Venue, name: str) -> None:
    """In more than one piece, and drawn as they are."""
    layout = generate(presets.preset(name))
    key = await stored(studio, venue, layout)
    assert await loaded(db, key) == layout
    drawing = await drawn(studio, key)
    assert [(x, y) for x, y in zip(drawing.x, drawing.y, strict=True)] == [(s.x, s.y) for _, _, s in layout.seats()]
    ids = await ids_by_code(db, key)
    assert [ids[seat.code] for _, _, seat in layout.seats()] == seat_ids.seat_ids(key[1], drawing.serials)


@pytest.mark.req("LAY-06", "LAY-07", "LAY-08", "LAY-09")
async def test_the_record_of_a_version(studio: Studio, db: Database, venue: Venue) -> None:
    """Its number follows the one before, its capacity is the sum of its zones', it begins as a draft."""
    layout = small_layout()
    key = await stored(studio, venue, layout)
    second = await next_version(studio, key, replace(layout, name="Another name", description="With words."))
    version = await found(db, second)
    assert (version.version, version.status) == (2, VersionStatus.DRAFT)
    assert version.total_capacity == sum(zone.capacity for zone in layout.zones) == 313
    assert (version.name, version.description, version.seat_count) == ("Another name", "With words.", 13)
    async with db.transaction(key[0]) as conn:
        lineage = await store.get_layout(conn, key[0], key[1])
    assert lineage is not None
    assert (lineage.venue_id, lineage.name) == (venue.id, "Another name")


@pytest.mark.req("LAY-02", "LAY-13")
async def test_a_layout_has_one_venue_of_its_own_organization(studio: Studio, db: Database, venue: Venue) -> None:
    """Another organization's venue is not there, and PostgreSQL would not have it either."""
    elsewhere = await make_organization(db)
    with pytest.raises(VenueNotFound):
        await versions.create_layout(studio, elsewhere.id, venue.id, small_layout(), by=OPERATOR)
    with pytest.raises(asyncpg.ForeignKeyViolationError):
        async with db.transaction(elsewhere.id) as conn:
            await store.add_layout(conn, elsewhere.id, LayoutId(new_id()), venue.id, "Stolen")


@pytest.mark.req("SEAT-02", "SEAT-16", "SEAT-14")
async def test_a_seat_keeps_its_id_while_it_keeps_its_code(studio: Studio, db: Database, venue: Venue) -> None:
    """Relabelled, moved or put into another zone; one that comes back gets its own id again, a new one a new id."""
    key = await stored(studio, venue, small_layout())
    before = await ids_by_code(db, key)
    document = changed(
        {"zones.0.rows.0.label": "Z", "zones.0.rows.0.seats.0.x": 51, "zones.0.rows.0.seats.1.label": "2A"}
    )
    for place, code in enumerate(("S-A-1", "S-A-2", "S-A-3", "S-A-4")):
        document["zones"][0]["rows"][0]["seats"][place]["code"] = code
    second = await next_version(studio, key, read_layout(encoded(document)))
    assert await ids_by_code(db, second) == before
    fewer = changed({"zones.0.rows.0.seats.3": {"number": 9, "x": 9_000, "y": 100}})
    third = await next_version(studio, second, read_layout(encoded(fewer)))
    ids = await ids_by_code(db, third)
    assert "S-A-4" not in ids
    assert ids["S-A-9"] not in before.values()
    fourth = await next_version(studio, third, small_layout())
    assert await ids_by_code(db, fourth) == before


@pytest.mark.req("IDX-16")
async def test_a_code_is_in_a_layout_once(studio: Studio, db: Database, venue: Venue) -> None:
    """PostgreSQL refuses a second seat of the same code, whatever its number."""
    key = await stored(studio, venue, small_layout())
    with pytest.raises(asyncpg.UniqueViolationError):
        async with db.transaction(key[0]) as conn:
            await store.add_serials(conn, key[0], key[1], ["S-A-1"], first=999)


@pytest.mark.req("LAY-31")
async def test_the_application_cannot_touch_a_seat(studio: Studio, venue: Venue, app_conn: Connection) -> None:
    """Whether or not an event uses it: nothing of a version can be updated, deleted or added to by its role."""
    key = await stored(studio, venue, small_layout())
    await app_conn.execute("select set_config('app.organization_id', $1, false)", str(key[0]))
    for table in ("seats", "layout_zones", "seat_groups", "layout_seats"):
        for change in (f"update {table} set layout_id = layout_id", f"delete from {table}"):
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await app_conn.execute(change)
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await app_conn.execute("delete from layout_versions")
    for table in ("seats", "layout_zones", "seat_groups"):
        with refused_by("layout_versions_immutable"):
            await app_conn.execute(
                f"insert into {table} select (jsonb_populate_record(old, jsonb_build_object('ordinal', 9999))).*"
                f" from {table} old where layout_id = $1 limit 1",
                key[1],
            )


@pytest.mark.req("LAY-04", "LAY-29", "LAY-32", "AUD-11")
async def test_a_version_never_changes(
    studio: Studio, db: Database, venue: Venue, app_conn: Connection, owner_conn: Connection
) -> None:
    """PostgreSQL refuses it to everybody; a new version leaves the old one as it is."""
    key = await stored(studio, venue, small_layout())
    for conn in (app_conn, owner_conn):
        await conn.execute("select set_config('app.organization_id', $1, false)", str(key[0]))
    changes = ("name = 'x'", "geometry = '\\x00'", "created_by = gen_random_uuid()", "geometry_etag = 'x'")
    for change in (*changes, "seat_count = 1", "shapes = '[1]'", "description = 'x'"):
        with refused_by("layout_versions_immutable"):
            await app_conn.execute(f"update layout_versions set {change} where layout_id = $1", key[1])
    with refused_by("layout_versions_kept"):
        await owner_conn.execute("delete from layout_versions where layout_id = $1", key[1])
    await next_version(studio, key, generate(presets.preset("festival")))
    assert await loaded(db, key) == small_layout()


@contextmanager
def refused_by(constraint: str) -> Iterator[None]:
    with pytest.raises(asyncpg.CheckViolationError) as refused:
        yield
    assert refused.value.constraint_name == constraint


@pytest.mark.req("LAY-11")
async def test_moves_of_a_version_are_those_of_the_table(
    studio: Studio, db: Database, venue: Venue, app_conn: Connection
) -> None:
    """All nine pairs, by the use case and by PostgreSQL alike."""
    for start in VersionStatus:
        for to in VersionStatus:
            key = await stored(studio, venue, small_layout())
            if start is not VersionStatus.DRAFT:
                await moved(db, key, start)
            is_allowed = to in VERSION_MOVES[start]
            await app_conn.execute("select set_config('app.organization_id', $1, false)", str(key[0]))
            if not is_allowed:
                with pytest.raises(LayoutMoveRefused):
                    await moved(db, key, to)
                if start is not to:
                    with refused_by("layout_versions_moves"):
                        await app_conn.execute(
                            "update layout_versions set status = $2 where layout_id = $1", key[1], to
                        )
            else:
                assert (await moved(db, key, to)).status is to


async def moved(db: Database, key: VersionKey, to: VersionStatus) -> Version:
    async with db.transaction(key[0]) as conn:
        return await versions.move(conn, key, to, by=OPERATOR, reason="in a test")


@pytest.mark.req("AUD-14", "SEAT-22")
async def test_one_version_can_be_chosen_and_the_change_is_told(
    studio: Studio, db: Database, venue: Venue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Activating one archives the one before; the log and the journal name both."""
    first = await stored(studio, venue, small_layout())
    second = await next_version(studio, first, small_layout())
    await moved(db, first, VersionStatus.ACTIVE)
    monkeypatch.setattr(versions, "log", structlog.wrap_logger(None, wrapper_class=structlog.BoundLogger))
    with structlog.testing.capture_logs() as logs:
        await moved(db, second, VersionStatus.ACTIVE)
    assert [(await found(db, key)).status for key in (first, second)] == [VersionStatus.ARCHIVED, VersionStatus.ACTIVE]
    assert await loaded(db, first) == small_layout(), "the version is archived, its seats stay what they were"
    expected = {
        "venue_id": str(venue.id),
        "layout_id": str(first[1]),
        "version_before": 1,
        "version_after": 2,
    }
    assert dict(logs[-1]) == dict(logs[-1]) | expected | {"org_id": str(first[0])}
    async with db.transaction(first[0]) as conn:
        facts = await conn.fetch(
            "select kind, data from journal where data->>'layout_id' = $1 order by seq", str(first[1])
        )
    assert [fact["kind"] for fact in facts] == ["layout_version_created"] * 2 + ["layout_version_activated"] * 2
    told = json.loads(facts[-1]["data"])
    assert told == told | expected


async def test_two_versions_at_once_are_two_versions(studio: Studio, db: Database, venue: Venue) -> None:
    """Consecutive numbers, each whole, the same ids for the same codes."""
    key = await stored(studio, venue, small_layout())
    made = await asyncio.gather(
        *(
            versions.create_version(studio, key[0], key[1], generate(presets.preset("festival")), by=OPERATOR)
            for _ in range(4)
        )
    )
    assert sorted(version.version for version in made) == [2, 3, 4, 5]
    ids = [await ids_by_code(db, (key[0], key[1], version.version)) for version in made]
    assert ids[0] == ids[1] == ids[2] == ids[3]


class Broken(Exception):
    """Somebody pulled the plug."""


@pytest.mark.parametrize("piece", ["add_seats", "add_groups", "finish_version"])
async def test_what_is_broken_off_was_never_there(
    studio: Studio, db: Database, venue: Venue, monkeypatch: pytest.MonkeyPatch, piece: str
) -> None:
    """Nobody sees a part of it, nothing of it stays, and the next version is made as if nothing had been."""
    key = await stored(studio, venue, small_layout())
    before = await rows_left(db, key[0], key[1])

    async def broken(*_args: object, **_named: object) -> None:
        async with db.transaction(key[0]) as conn:
            with pytest.raises(LayoutNotFound):
                await versions.find(conn, (key[0], key[1], 2))
        raise Broken

    with monkeypatch.context() as patched:
        patched.setattr(store, piece, broken)
        with pytest.raises(Broken):
            await next_version(studio, key, small_layout())
    assert await rows_left(db, key[0], key[1]) == before
    assert await loaded(db, await next_version(studio, key, small_layout())) == small_layout()


@pytest.mark.parametrize("piece", ["add_zones", "add_seats", "add_groups", "finish_version"])
async def test_a_layout_whose_first_version_breaks_off_was_never_there(
    studio: Studio, db: Database, venue: Venue, monkeypatch: pytest.MonkeyPatch, piece: str
) -> None:
    """Neither it, nor a code of it: the venue is as it was."""

    async def count() -> list[int]:
        async with db.transaction(venue.organization_id) as conn:
            return [
                await conn.fetchval(f"select count(*) from {table}")
                for table in ("layouts", "layout_seats", "layout_versions", "layout_zones", "seats", "seat_groups")
            ]

    async def broken(*_args: object, **_named: object) -> None:
        raise Broken

    before = await count()
    monkeypatch.setattr(store, piece, broken)
    with pytest.raises(Broken):
        await stored(studio, venue, small_layout())
    assert await count() == before


async def test_a_version_is_named_and_told_after_those_that_are_whole(
    studio: Studio, db: Database, venue: Venue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that was broken off was never there; one that is overtaken does not take the name back."""
    key = await stored(studio, venue, small_layout())

    async def broken(*_args: object) -> None:
        raise Broken

    with monkeypatch.context() as patched:
        patched.setattr(store, "finish_version", broken)
        with pytest.raises(Broken):
            await next_version(studio, key, small_layout())
    add_groups, began, overtaken = store.add_groups, asyncio.Event(), asyncio.Event()

    async def slow(conn: object, made: VersionKey, groups: object) -> None:
        await add_groups(conn, made, groups)  # type: ignore[arg-type]
        if made[2] == 3:
            began.set()
            await overtaken.wait()

    monkeypatch.setattr(store, "add_groups", slow)
    third = asyncio.create_task(next_version(studio, key, replace(small_layout(), name="Third")))
    await asyncio.wait_for(began.wait(), 20)
    fourth = await next_version(studio, key, replace(small_layout(), name="Fourth"))
    overtaken.set()
    assert ((await third)[2], fourth[2]) == (3, 4)
    async with db.transaction(key[0]) as conn:
        lineage = await store.get_layout(conn, key[0], key[1])
        told = await conn.fetch(
            "select data->>'version_before' as before, data->>'version_after' as after from journal"
            " where kind = 'layout_version_created' and data->>'layout_id' = $1 order by seq",
            str(key[1]),
        )
    assert lineage is not None
    assert lineage.name == "Fourth"
    assert [(row["before"], row["after"]) for row in told] == [(None, "1"), ("1", "4"), ("4", "3")]


async def test_a_process_that_died_leaves_what_the_next_one_removes(
    studio: Studio, db: Database, venue: Venue, monkeypatch: pytest.MonkeyPatch, owner_conn: Connection
) -> None:
    """Not before an hour, because somebody may still be at it; whole versions stay."""
    key = await stored(studio, venue, small_layout())
    before = await rows_left(db, key[0], key[1])

    async def died(*_args: object) -> None:
        raise Broken

    with monkeypatch.context() as patched:
        patched.setattr(store, "finish_version", died)
        patched.setattr(versions, "_abandon", died)
        with pytest.raises(Broken):
            await next_version(studio, key, small_layout())
    assert (await rows_left(db, key[0], key[1]))["seats"] > before["seats"]
    await versions.purge_unfinished(db)
    assert (await rows_left(db, key[0], key[1]))["seats"] > before["seats"]
    await owner_conn.execute("select set_config('app.scope', 'system', false)")
    await owner_conn.execute(
        "update layout_versions set created_at = now() - interval '2 hours' where geometry is null"
    )
    assert await versions.purge_unfinished(db) >= 1
    assert await rows_left(db, key[0], key[1]) == before


async def test_a_version_that_was_removed_meanwhile_is_refused(
    studio: Studio, db: Database, venue: Venue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It took so long that it was taken for dead: whoever made it is told."""
    key = await stored(studio, venue, small_layout())
    add_groups = store.add_groups

    async def removed(conn: object, made: VersionKey, groups: object) -> None:
        await add_groups(conn, made, groups)  # type: ignore[arg-type]
        await store.remove_unfinished(conn, made)  # type: ignore[arg-type]

    monkeypatch.setattr(store, "add_groups", removed)
    with pytest.raises(Busy):
        await next_version(studio, key, small_layout())


@pytest.mark.req("EV-06", "EV-64", "TEST-34")
async def test_a_layout_is_no_larger_than_its_venue(studio: Studio, db: Database, place: Organization) -> None:
    """Neither a new one, nor a new version, nor one that is chosen after the venue shrank; nor does it shrink below."""
    venue = await make_venue(db, place, max_capacity=313)
    key = await stored(studio, venue, small_layout())
    larger = small_layout({"zones.2.capacity": 301})
    for attempt in (stored(studio, venue, larger), next_version(studio, key, larger)):
        with pytest.raises(CapacityExceeded):
            await attempt
    with refused_by("venues_hold_their_layouts"):
        async with db.transaction(place.id) as conn:
            await conn.execute("update venues set max_capacity = 312 where id = $1", venue.id)
    await moved(db, key, VersionStatus.ARCHIVED)
    async with db.transaction(place.id) as conn:
        await conn.execute("update venues set max_capacity = 312 where id = $1", venue.id)


@pytest.mark.req("LAY-05", "LAY-34", "LAY-35")
async def test_the_drawing_is_kept_warm_and_rebuilt_when_it_is_gone(
    services: Services, studio: Studio, venue: Venue
) -> None:
    """In Redis under the version's key for a day; without it from PostgreSQL, the same bytes; an update has its own."""
    key = await stored(studio, venue, small_layout())
    drawing = await studio.drawing(*key)
    await services.cache.settle()
    name = f"voelgoed:org:{key[0]}:layout:{key[1]}:v{key[2]}:config"
    ttl = await services.redis.call(lambda client: client.ttl(name))
    assert 86_000 < ttl <= 86_400
    await services.cache.invalidate(name)
    assert await services.redis.call(lambda client: client.exists(name)) == 0
    assert await studio.drawing(*key) == drawing
    second = await next_version(studio, key, small_layout({"zones.0.rows.0.seats.0.x": 51}))
    assert (await drawn(studio, second)).x[0] == 51
    assert await studio.drawing(*key) == drawing
    with pytest.raises(LayoutNotFound):
        await studio.drawing(key[0], key[1], 9)


async def test_heavy_work_is_bounded(studio: Studio, monkeypatch: pytest.MonkeyPatch) -> None:
    """One at a time, a few waiting, the rest refused at once; the event loop goes on meanwhile."""
    from voelgoed.seating import studio as module  # noqa: PLC0415 - the name is the fixture's

    monkeypatch.setattr(module, "HEAVY_WAITING_MAX", 1)
    go = asyncio.Event()
    loop = asyncio.get_running_loop()
    running = 0
    most = 0

    def work() -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        asyncio.run_coroutine_threadsafe(go.wait(), loop).result(20)
        running -= 1

    fresh = Studio(studio.db, studio._cache)
    tasks = [asyncio.create_task(fresh.work(work)) for _ in range(2)]
    await asyncio.sleep(0)
    with pytest.raises(Busy):
        await fresh.work(work)
    tasks.append(asyncio.create_task(fresh.work(work, is_begun=True)))
    leaving = tasks.pop(0)
    await asyncio.sleep(0)
    leaving.cancel()  # the thread goes on to its end, and keeps its turn until then
    await asyncio.gather(leaving, return_exceptions=True)
    go.set()
    await asyncio.gather(*tasks)
    assert most == 1
