"""How what is committed reaches every process and Redis: whatever is lost, doubled, late or dead on the way."""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any
from uuid import UUID

import msgspec
import pytest
from prometheus_client import generate_latest

from tests.make.accounts import make_organization
from tests.make.holds import Sale, let_pass, on_sale
from tests.make.layouts import small_layout
from tests.make.seating import event_now, move, next_pin, publish, save
from voelgoed.accounts.model import Organization
from voelgoed.db import Conn, Connection, Database
from voelgoed.events.model import OPERATOR, Verb
from voelgoed.holds import booking, occupancy, registry, store
from voelgoed.holds.availability import Availability
from voelgoed.holds.following import READER, Beat, Dispatcher, Follower, Told, channel_of
from voelgoed.holds.hotmap import HotMap, milliseconds
from voelgoed.holds.inventory import Wanted
from voelgoed.holds.projection import Projection
from voelgoed.ids import OrganizationId
from voelgoed.jobs import queue, worker as jobs_worker
from voelgoed.journal import reader
from voelgoed.journal.model import Position
from voelgoed.loop import Loop
from voelgoed.redis import RedisAway, RedisLink, RedisRefused
from voelgoed.seating.overlay import Overlay
from voelgoed.telemetry import metrics
from voelgoed.wiring import Services

LOOK_S = 30.0
EVERY_EVENT = 1_000_000
"""How long to wait for transactions of other tests on the same server: they hold up whoever reads the journal."""
decode = msgspec.json.Decoder(Told | Beat).decode


class Wire(Projection):
    """Redis as a worker writes it, with everything it tells kept for the test to hand on."""

    def __init__(self, link: RedisLink) -> None:
        super().__init__(link)
        self.sent: list[tuple[str, bytes]] = []
        self.is_cut = False

    async def publish(self, messages: Sequence[tuple[str, bytes]]) -> None:
        if self.is_cut:
            raise RedisAway("cut by the test")
        self.sent += messages
        await super().publish(messages)

    @property
    def told(self) -> list[Told]:
        return [one for _, sent in self.sent if isinstance(one := decode(sent), Told)]


class Worker:
    """A worker that tells when the test says so."""

    def __init__(self, db: Database, link: RedisLink, *, clock: Callable[[], float] | None = None) -> None:
        self.wire = Wire(link)
        self.hot = Availability(db, self.wire)
        self.dispatcher = Dispatcher(db, self.hot, self.wire, **({"clock": clock} if clock else {}))


class Reader:
    """A process that serves, and follows when the test says so."""

    def __init__(self, db: Database, link: RedisLink) -> None:
        self.projection = Projection(link)
        self.hot = Availability(db, self.projection)
        self.follower = Follower(db, link, self.hot, self.projection)

    async def start(self) -> None:
        """Know where the journal is, and be in no doubt."""
        await until(self._has_caught_up)

    async def _has_caught_up(self) -> bool:
        await self.follower.tick()
        return not self.follower._has_gap

    def hear(self, sent: Sequence[tuple[str, bytes]]) -> None:
        for _, message in sent:
            self.follower.hear(message)


async def until(is_so: Callable[[], Awaitable[object]]) -> None:
    async with asyncio.timeout(LOOK_S):
        while not await is_so():
            await asyncio.sleep(0.005)


@pytest.fixture
async def place(db: Database) -> Organization:
    return await make_organization(db)


@pytest.fixture
async def sale(services: Services, place: Organization) -> Sale:
    return await on_sale(services, place)


@pytest.fixture
async def link(redis_url: str) -> AsyncIterator[RedisLink]:
    async with RedisLink(redis_url, connect_timeout_s=5, call_timeout_s=5) as made:
        yield made


@pytest.fixture
async def nobody_tells(
    owner_conn: Connection, place: Organization, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[None]:
    """No worker of another test has the lease, and only events of this test's organization are listed."""
    list_materialised = store.list_materialised

    async def listed(conn: Conn, limit: int) -> list[tuple[OrganizationId, UUID]]:
        every = await list_materialised(conn, EVERY_EVENT)  # other tests leave thousands
        return [one for one in every if one[0] == place.id][:limit]

    monkeypatch.setattr(store, "list_materialised", listed)
    await owner_conn.execute("delete from leases")
    await owner_conn.execute("delete from journal_positions where reader = $1", READER)
    yield
    await owner_conn.execute("delete from leases")


@pytest.fixture
async def worker(db: Database, link: RedisLink, nobody_tells: None, sale: Sale) -> AsyncIterator[Worker]:
    """One that tells, and has told everything so far."""
    made = Worker(db, link)
    await all_told(made, sale)
    made.wire.sent.clear()
    yield made
    await made.hot.close()


@pytest.fixture
async def process(db: Database, link: RedisLink, sale: Sale) -> AsyncIterator[Reader]:
    made = Reader(db, link)
    await made.start()
    await made.hot.load(sale.place.id, sale.event.id)
    yield made
    await made.hot.close()


async def newest(db: Database) -> Position:
    """The last fact that was committed."""
    async with db.system_transaction() as conn:
        row = await conn.fetchrow(
            "select xid::text::bigint as xid, seq from journal order by xid desc, seq desc limit 1"
        )
    assert row is not None
    return Position(xid=row["xid"], seq=row["seq"])


async def all_told(worker: Worker, sale: Sale, *, is_in_redis: bool = True) -> None:
    """Tell until everything that is committed was told, and stands in Redis."""
    last = await newest(sale.db)

    async def is_done() -> bool:
        await worker.dispatcher.tick()
        at = worker.dispatcher._at
        return at is not None and at >= last and not (is_in_redis and worker.dispatcher._stale)

    await until(is_done)


async def all_read(process: Reader, sale: Sale) -> None:
    """Let a process read the journal itself, up to what is committed now."""
    last = await newest(sale.db)

    async def is_done() -> bool:
        process.follower._has_gap = True
        await process.follower.tick()
        at = process.follower._at
        return at is not None and at >= last

    await until(is_done)


def everything(found: HotMap | None) -> dict[str, object]:
    """All that a map says, to be compared."""
    assert found is not None
    return {
        "epoch": found.epoch,
        "map_version": found.map_version,
        "statuses": bytes(found.statuses),
        "versions": list(found.versions),
        "holders": dict(found.holders),
        "zones": [(zone.zone_id, zone.version, zone.counts) for zone in found.zones],
    }


async def truth(sale: Sale) -> dict[str, object]:
    """What a fresh load says."""
    fresh = Availability(sale.db, Projection(sale.services.redis))
    return everything(await fresh.load(sale.place.id, sale.event.id))


async def known(process: Reader | Worker, sale: Sale) -> dict[str, object]:
    """What a process has, when it is done with loading."""

    async def is_there() -> object:
        return process.hot.peek(sale.event.id) and not process.hot._loading

    await until(is_there)
    return everything(process.hot.peek(sale.event.id))


async def in_redis(worker: Worker, sale: Sale) -> dict[str, object]:
    """What Redis has, as a map would say it."""
    dump = await worker.wire.dump(sale.place.id, sale.event.id, 0)
    assert dump.versions is not None
    versions = [int.from_bytes(dump.versions[at : at + 4], "big") for at in range(0, len(dump.versions), 4)]
    by_number = {sale.zone("P"): dump.zones.get(sale.zone("P"))}
    return {"statuses": dump.statuses, "versions": versions, "zones": by_number, "holds": dump.holds}


async def expected_in_redis(sale: Sale) -> dict[str, object]:
    fresh = Availability(sale.db, Projection(sale.services.redis))
    found = await fresh.load(sale.place.id, sale.event.id)
    async with sale.db.transaction(sale.place.id) as conn:
        holds = await store.list_active_holds(conn, sale.place.id, sale.event.id, 1_000)
    return {
        "statuses": found.recorded(),
        "versions": list(found.versions),
        "zones": {zone.zone_id: (zone.version, zone.held, zone.sold) for zone in found.zones if zone.is_by_number},
        "holds": holds,
    }


# Every kind of fact


async def reserve(sale: Sale, _: Connection) -> None:
    await sale.hold(sale.caller(), "S-A-1", "S-A-2")
    await sale.hold_places(sale.caller(), 4)


async def extend(sale: Sale, _: Connection) -> None:
    anna = sale.caller()
    (seat,) = await sale.hold(anna, "S-A-1")
    for held in (seat, await sale.hold_places(anna, 4)):
        await booking.extend(sale.db, anna, held.hold.id)


async def release(sale: Sale, _: Connection) -> None:
    anna = sale.caller()
    seat, _stays = await sale.hold(anna, "S-A-1", "S-A-2")
    for held in (seat, await sale.hold_places(anna, 4)):
        await booking.release(sale.services.lanes, sale.db, anna, held.hold.id)


async def expire(sale: Sale, owner: Connection) -> None:
    anna = sale.caller()
    (seat,) = await sale.hold(anna, "S-A-1")
    places = await sale.hold_places(anna, 4)
    await let_pass(owner, seat.hold.id, places.hold.id)
    assert await registry.reap(sale.db, by=OPERATOR) >= 2


async def take_over(sale: Sale, owner: Connection) -> None:
    (seat,) = await sale.hold(sale.caller(), "S-A-1")
    await let_pass(owner, seat.hold.id)
    await sale.hold(sale.caller(), "S-A-1")


async def sell(sale: Sale, _: Connection) -> list[UUID]:
    anna = sale.caller()
    (seat,) = await sale.hold(anna, "S-A-1")
    said, tickets = await sale.buy(anna, seat, await sale.hold_places(anna, 2))
    assert said == "sold"
    return tickets


async def void(sale: Sale, owner: Connection) -> None:
    for ticket in await sell(sale, owner):
        await registry.void(sale.db, sale.place.id, sale.event.id, ticket, by=OPERATOR, reason="in a test")


async def block(sale: Sale, _: Connection) -> None:
    await sale.block("S-A-1", "S-A-2")


async def unblock(sale: Sale, owner: Connection) -> None:
    await block(sale, owner)
    await sale.block("S-A-1", is_blocked=False)


async def cancel(sale: Sale, owner: Connection) -> None:
    await reserve(sale, owner)
    await move(sale.services.studio, sale.place, sale.event, Verb.CANCEL)
    await registry.release_all(sale.db, sale.place.id, sale.event.id, by=OPERATOR, reason="event_cancelled")


async def change_seating(sale: Sale, owner: Connection) -> None:
    await reserve(sale, owner)
    overlay = Overlay(blocked_seats=("S-B-3", "V-A-2"))
    await save(sale.services.studio, await event_now(sale.db, sale.event), sale.seated.wanted(overlay))


async def publish_anew(sale: Sale, owner: Connection) -> None:
    await release(sale, owner)
    async with sale.db.transaction(sale.place.id) as conn:
        holds = await store.list_active_holds(conn, sale.place.id, sale.event.id, 10)
    await registry.release(
        sale.db, sale.place.id, sale.event.id, list(holds), user_id=None, by=OPERATOR, reason="in a test"
    )
    await move(sale.services.studio, sale.place, sale.event, Verb.UNPUBLISH)
    layout = small_layout(
        {"zones.0.rows.0.seats": [{"number": n, "x": 50 * n, "y": 100} for n in (2, 3, 4)], "zones.0.groups": []}
    )
    pin = await next_pin(sale.services.studio, sale.place.id, sale.seated.pin.layout_id, layout)
    draft = await event_now(sale.db, sale.event)
    wanted = Wanted(pin=pin, overrides=sale.seated.wanted().overrides)
    await save(sale.services.studio, draft, wanted)
    await publish(sale.services.studio, await event_now(sale.db, sale.event))


VERBS: dict[str, Callable[[Sale, Connection], Awaitable[Any]]] = {
    verb.__name__: verb
    for verb in (
        reserve,
        extend,
        release,
        expire,
        take_over,
        sell,
        void,
        block,
        unblock,
        cancel,
        change_seating,
        publish_anew,
    )
}


@pytest.mark.req("REG-28", "REG-27", "TEST-09")
@pytest.mark.parametrize("verb", VERBS)
async def test_what_is_told_brings_every_tier_to_what_postgresql_says(
    worker: Worker, process: Reader, sale: Sale, owner_conn: Connection, verb: str
) -> None:
    """After each thing that can happen to places: the teller's map, a listener's map and Redis equal a fresh load."""
    await VERBS[verb](sale, owner_conn)
    await all_told(worker, sale)
    process.hear(worker.wire.sent)
    expected = await truth(sale)
    assert await known(process, sale) == expected
    assert await known(worker, sale) == expected
    assert await in_redis(worker, sale) == await expected_in_redis(sale)
    assert not process.follower._has_gap
    assert process.follower.is_live


@pytest.mark.req("REG-30", "RSV-38")
@pytest.mark.parametrize("verb", VERBS)
async def test_without_anybody_who_tells_a_process_reads_the_journal(
    process: Reader, sale: Sale, owner_conn: Connection, verb: str
) -> None:
    """Redis away, no worker: the same map, from the journal."""
    await VERBS[verb](sale, owner_conn)
    await all_read(process, sale)
    assert await known(process, sale) == await truth(sale)


@pytest.mark.req("PUB-08", "REG-29")
@pytest.mark.parametrize("seed", range(5))
async def test_messages_lost_doubled_and_out_of_order_do_no_harm(
    worker: Worker, process: Reader, sale: Sale, owner_conn: Connection, seed: int
) -> None:
    """What beats do not cover is noticed, and read; the map ends as it should."""
    chance = random.Random(seed)
    for verb in chance.sample([reserve, extend, release, block, unblock, sell, void], 4):
        try:
            await verb(sale, owner_conn)
        except Exception:  # noqa: BLE001 - a seat may be taken already, which is as good
            continue
        finally:
            await all_told(worker, sale)
    sent = [one for one in worker.wire.sent for _ in range(chance.choice((0, 1, 1, 2)))]
    chance.shuffle(sent)
    process.hear(sent)
    await worker.dispatcher.tick()
    process.hear(worker.wire.sent[-1:])
    await all_read(process, sale)
    assert await known(process, sale) == await truth(sale)


async def test_a_lost_message_is_noticed_by_the_beat_behind_it(worker: Worker, process: Reader, sale: Sale) -> None:
    """By its count, or by where the next stretch begins; then the journal is read, and nothing is missing."""
    for lost in ("told", "all"):
        worker.wire.sent.clear()
        await sale.hold_places(sale.caller(), 1)
        await all_told(worker, sale)
        sent = [one for one in worker.wire.sent if lost == "told" and isinstance(decode(one[1]), Beat)]
        process.hear(sent)
        if lost == "all":
            worker.wire.sent.clear()
            await sale.hold_places(sale.caller(), 1)
            await all_told(worker, sale)
            process.hear(worker.wire.sent)
        assert process.follower._has_gap
        reads = process.follower.reads_count
        await process.start()
        assert process.follower.reads_count > reads
        assert await known(process, sale) == await truth(sale)


async def test_who_hears_everything_reads_nothing(worker: Worker, process: Reader, sale: Sale) -> None:
    """Messages are enough; the journal is left alone."""
    await sale.hold(sale.caller(), "S-A-1")
    await all_told(worker, sale)
    process.hear(worker.wire.sent)
    reads = process.follower.reads_count
    await process.follower.tick()
    assert process.follower.reads_count == reads
    assert await known(process, sale) == await truth(sale)


async def test_who_hears_nothing_is_not_live_and_reads(
    process: Reader, sale: Sale, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a second without a word nothing here counts as known; a look at the journal makes it so again."""
    now, reads = time.monotonic(), process.follower.reads_count
    seen = [process.follower.is_live]
    monkeypatch.setattr(time, "monotonic", lambda: now + 5.0)
    seen.append(process.follower.is_live)
    await process.follower.tick()
    seen.append(process.follower.is_live)
    assert (seen, process.follower.reads_count) == ([True, False, True], reads + 1)


async def test_other_databases_and_rubbish_are_passed_over(worker: Worker, process: Reader, sale: Sale) -> None:
    """Redis' channels are heard by every installation on the server: only one's own counts."""
    await sale.hold(sale.caller(), "S-A-1")
    await all_told(worker, sale)
    before = await known(process, sale)
    at, confirmed = process.follower._at, process.follower._confirmed_at
    for _, message in worker.wire.sent:
        told = decode(message)
        process.follower.hear(msgspec.json.encode(msgspec.structs.replace(told, database="another.1")))
    for rubbish in (b"", b"{}", b"\xff", b"[1]", b'{"type":"told"}', b'{"type":"beat","database":1}'):
        process.follower.hear(rubbish)
    assert await known(process, sale) == before
    assert (process.follower._at, process.follower._confirmed_at) == (at, confirmed)


@pytest.mark.req("RSV-31", "PUB-01", "PUB-02")
async def test_messages_say_what_happened_in_the_seeds_words(
    worker: Worker, sale: Sale, owner_conn: Connection
) -> None:
    """One channel for an event; held with who and until when, released with why, and how full it is after that."""
    anna = sale.caller()
    (mine,) = await sale.hold(anna, "S-A-1")
    await all_told(worker, sale)
    (first,) = [one for one in worker.wire.told if one.event_id == sale.event.id]
    (seat,) = first.seats
    assert (seat.event, seat.change.seat_id, seat.change.hold_id, seat.change.user_id) == (
        "seat_held",
        sale.seat("S-A-1"),
        mine.hold.id,
        anna.actor.user_id,
    )
    assert seat.change.until_ms == milliseconds(mine.hold.expires_at)
    full = first.occupancy
    assert full is not None
    counts = (await truth(sale))["zones"]
    total = sum(zone[2].capacity for zone in counts)  # type: ignore[attr-defined]
    assert (full.event, full.total_available, full.total_held, full.total_sold) == (
        "occupancy_changed",
        total - 1,
        1,
        0,
    )
    assert (full.percent_held, full.percent_available) == (
        occupancy.share(1, total),
        occupancy.share(total - 1, total),
    )
    assert {channel for channel, message in worker.wire.sent if b'"told"' in message} == {
        f"voelgoed:org:{sale.place.id}:event:{{{sale.event.id}}}:seating"
    }
    assert channel_of(sale.place.id, sale.event.id).startswith(f"voelgoed:org:{sale.place.id}:")

    worker.wire.sent.clear()
    await let_pass(owner_conn, mine.hold.id)
    await registry.reap(sale.db, by=OPERATOR)
    await all_told(worker, sale)
    (later,) = [one for one in worker.wire.told if one.event_id == sale.event.id]
    (freed,) = later.seats
    assert (freed.event, freed.change.reason, freed.change.hold_id) == ("seat_released", "ttl_expired", mine.hold.id)
    assert (freed.change.user_id, freed.change.until_ms) == (None, None)


# Telling


async def test_one_of_two_workers_tells(
    db: Database, link: RedisLink, nobody_tells: None, sale: Sale, owner_conn: Connection
) -> None:
    """The other does nothing, until the first has been silent for the time of its lease; then it goes on from there."""
    first, second = Worker(db, link), Worker(db, link)
    await all_told(first, sale)
    first.wire.sent.clear()
    await sale.hold(sale.caller(), "S-A-1")
    for _ in range(3):
        await second.dispatcher.tick()
    assert (second.wire.sent, second.dispatcher._at) == ([], None)
    await all_told(first, sale)
    assert [one.event_id for one in first.wire.told] == [sale.event.id]

    await sale.hold(sale.caller(), "S-A-2")
    await owner_conn.execute(
        "update leases set held_until = clock_timestamp() - interval '1 ms' where name = $1", READER
    )
    await all_told(second, sale)
    told = [one for one in second.wire.told if one.event_id == sale.event.id]
    assert [seat.change.seat_id for one in told for seat in one.seats] == [sale.seat("S-A-2")], (
        "not again from the start"
    )
    assert await in_redis(second, sale) == await expected_in_redis(sale)

    first.dispatcher._leased_at = float("-inf")
    first.wire.sent.clear()
    await first.dispatcher.tick()
    assert (first.wire.sent, first.dispatcher._at) == ([], None)
    for worker in (first, second):
        await worker.hot.close()


async def test_who_tells_again_has_no_old_map(
    db: Database, link: RedisLink, nobody_tells: None, sale: Sale, owner_conn: Connection
) -> None:
    """While another told, nothing came here: what was known is loaded anew, also while Redis is away."""
    first, second = Worker(db, link), Worker(db, link)
    await all_told(first, sale)
    await first.hot.load(sale.place.id, sale.event.id)
    await owner_conn.execute("delete from leases")
    await sale.hold(sale.caller(), "S-A-1")
    await all_told(second, sale)
    first.dispatcher._leased_at = float("-inf")
    await first.dispatcher.tick()
    assert first.dispatcher._at is None
    await owner_conn.execute("delete from leases")
    first.wire.is_cut = True
    await all_told(first, sale, is_in_redis=False)
    assert await known(first, sale) == await truth(sale)
    for worker in (first, second):
        await worker.hot.close()


@pytest.mark.req("REG-37")
async def test_who_dies_between_reading_and_saving_has_told_twice_and_missed_nothing(
    db: Database, link: RedisLink, worker: Worker, process: Reader, sale: Sale, owner_conn: Connection,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """The next one begins where the last had saved; the same again does no harm."""

    async def die(*_: object) -> None:
        raise ZeroDivisionError

    await sale.hold(sale.caller(), "S-A-4")
    await all_told(worker, sale)
    process.hear(worker.wire.sent)
    worker.wire.sent.clear()
    await sale.hold(sale.caller(), "S-A-1")
    last = await newest(db)
    with monkeypatch.context() as dying:
        dying.setattr(reader, "save_position", die)

        async def has_died() -> bool:
            try:
                await worker.dispatcher.tick()
            except ZeroDivisionError:
                return bool([one for one in worker.wire.told if one.event_id == sale.event.id])
            return False

        await until(has_died)
    await owner_conn.execute("delete from leases")
    process.hear(worker.wire.sent)
    heir = Worker(db, link)
    await all_told(heir, sale)
    assert sale.event.id in {one.event_id for one in heir.wire.told}
    process.hear(heir.wire.sent)
    expected = await truth(sale)
    assert await known(process, sale) == expected
    assert await in_redis(heir, sale) == await expected_in_redis(sale)
    async with db.system_transaction() as conn:
        saved = await reader.load_position(conn, READER)
    assert saved is not None
    assert saved >= last
    await heir.hot.close()


@pytest.mark.req("REG-34", "REG-18")
async def test_what_redis_lost_is_made_anew(worker: Worker, sale: Sale, link: RedisLink) -> None:
    """All keys of an event gone, or rubbish under one of them: the next change makes everything anew."""
    client = link.client
    start = f"voelgoed:org:{sale.place.id}:event:{{{sale.event.id}}}:"
    for number, how in enumerate(("lost", "wrong type", "rubbish")):
        if how == "lost":
            await client.delete(*[key async for key in client.scan_iter(match=f"*{sale.event.id}*")])
        elif how == "wrong type":
            await client.delete(start + "map")
            await client.rpush(start + "map", "x")
        else:
            await client.hset(start + "zones", str(sale.zone("P")), "rubbish")
        await sale.hold(sale.caller(), f"S-A-{number + 1}")
        await sale.hold_places(sale.caller(), 1)
        await all_told(worker, sale)
        assert await in_redis(worker, sale) == await expected_in_redis(sale)


async def test_a_redis_that_comes_back_with_old_data_is_not_believed(
    worker: Worker, process: Reader, sale: Sale, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another run of the server: a new floor, told with the beat, and every event made anew above it."""
    await sale.hold(sale.caller(), "S-A-1")
    await all_told(worker, sale)
    process.hear(worker.wire.sent)
    floor = process.projection.floor
    assert floor is not None
    before = await worker.wire.dump(sale.place.id, sale.event.id, 0)

    async def another() -> str:
        return "another run"

    monkeypatch.setattr(worker.wire, "run_id", another)
    worker.wire.sent.clear()
    await sale.hold(sale.caller(), "S-A-2")
    await all_told(worker, sale)
    process.hear(worker.wire.sent)
    after = await worker.wire.dump(sale.place.id, sale.event.id, 0)
    assert process.projection.floor is not None
    assert before.epoch is not None
    assert after.epoch is not None
    assert floor < before.epoch < process.projection.floor < after.epoch
    assert await in_redis(worker, sale) == await expected_in_redis(sale)


async def test_while_redis_is_away_the_teller_goes_on(worker: Worker, process: Reader, sale: Sale) -> None:
    """Its own map and its place in the journal are kept; when Redis is back it has everything."""
    worker.wire.is_cut = True
    await sale.hold(sale.caller(), "S-A-1")
    await all_told(worker, sale, is_in_redis=False)
    assert await known(worker, sale) == await truth(sale)
    worker.wire.is_cut = False
    await all_told(worker, sale)
    assert await in_redis(worker, sale) == await expected_in_redis(sale)


async def test_what_could_not_be_made_anew_is_tried_again(
    worker: Worker, sale: Sale, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PostgreSQL had no answer at that moment: the event stays on the list."""

    async def fail(*_: object) -> None:
        raise ZeroDivisionError

    with monkeypatch.context() as broken:
        broken.setattr(store, "list_active_holds", fail)
        await change_seating_only(sale)
        last = await newest(sale.db)

        async def has_failed() -> bool:
            try:
                await worker.dispatcher.tick()
            except ZeroDivisionError:
                at = worker.dispatcher._at
                return at is not None and at >= last
            return False

        await until(has_failed)
        assert sale.event.id in worker.dispatcher._stale
    await all_told(worker, sale)
    assert await in_redis(worker, sale) == await expected_in_redis(sale)


async def test_an_event_that_redis_will_not_have_does_not_spoil_the_others(
    worker: Worker, services: Services, sale: Sale, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Redis answers and refuses one map: what it has of other events is believed on, and that one is tried again."""
    other = await on_sale(services, sale.place)
    await all_told(worker, sale)
    floor, rebuild = worker.wire._floor, worker.wire.rebuild

    async def refuse_one(found: HotMap, *more: Any) -> None:
        if found.event_id == sale.event.id:
            raise RedisRefused("out of memory")
        await rebuild(found, *more)

    with monkeypatch.context() as broken:
        broken.setattr(worker.wire, "rebuild", refuse_one)
        for one in (sale, other):
            await change_seating_only(one)
        last = await newest(sale.db)

        async def is_told() -> bool:
            await worker.dispatcher.tick()
            at = worker.dispatcher._at
            return at is not None and at >= last and other.event.id not in worker.dispatcher._stale

        await until(is_told)
        assert set(worker.dispatcher._stale) == {sale.event.id}
        assert (worker.wire._floor, worker.dispatcher._run_id is None) == (floor, False)
        assert await in_redis(worker, other) == await expected_in_redis(other)
    await all_told(worker, sale)
    assert await in_redis(worker, sale) == await expected_in_redis(sale)


async def change_seating_only(sale: Sale) -> None:
    overlay = Overlay(blocked_seats=("S-B-3",))
    await save(sale.services.studio, await event_now(sale.db, sale.event), sale.seated.wanted(overlay))


@pytest.mark.req("HOLD-18")
async def test_an_event_that_is_not_sold_any_more_leaves_redis(worker: Worker, sale: Sale) -> None:
    """Its map goes; nothing of it is believed."""
    await move(sale.services.studio, sale.place, sale.event, Verb.UNPUBLISH)
    await all_told(worker, sale)
    dump = await worker.wire.dump(sale.place.id, sale.event.id, 0)
    assert (dump.epoch, dump.statuses, dump.zones, dump.holds) == (None, None, {}, {})
    assert worker.hot.peek(sale.event.id) is None


# For real


@pytest.mark.req("TEST-09", "PUB-08", "TEST-05")
async def test_a_hold_is_known_elsewhere_by_itself(
    db: Database, link: RedisLink, nobody_tells: None, sale: Sale
) -> None:
    """A worker that tells and a process that follows, as they run: nobody does anything but hold a seat."""
    worker, process = Worker(db, link), Reader(db, link)
    stop = asyncio.Event()
    loop = Loop(name="tell_places_in_a_test", tick=worker.dispatcher.tick, pace_s=0.01)
    async with asyncio.TaskGroup() as running:
        running.create_task(loop.run(stop))
        running.create_task(process.follower.run(stop))

        async def is_live() -> bool:
            return process.follower.is_live

        try:
            await until(is_live)
            await process.hot.map_of(sale.place.id, sale.event.id)
            (mine,) = await sale.hold(sale.caller(), "S-A-1")
            ordinal = sale.seated.ordinal("S-A-1")

            async def is_known() -> bool:
                found = process.hot.peek(sale.event.id)
                return found is not None and ordinal in found.holders and found.holders[ordinal].hold_id == mine.hold.id

            await until(is_known)

            async def is_in_redis() -> object:
                return await process.projection.read_hold(sale.place.id, sale.event.id, sale.seat("S-A-1"))

            await until(is_in_redis)
        finally:
            stop.set()
    for one in (worker, process):
        await one.hot.close()


# Tidying up


@pytest.mark.req("REAP-02", "REAP-06", "REAP-11", "TEST-22")
async def test_a_lapsed_hold_is_tidied_away_in_every_tier(
    worker: Worker, process: Reader, sale: Sale, owner_conn: Connection
) -> None:
    """A minute over its end: ended, its seat free, told as released with why, gone from Redis and from the maps."""
    await registry.reap(sale.db, by=OPERATOR)  # whatever other tests have left
    (mine,) = await sale.hold(sale.caller(), "S-A-1")
    await all_told(worker, sale)
    process.hear(worker.wire.sent)
    worker.wire.sent.clear()
    await let_pass(owner_conn, mine.hold.id, minutes=11)
    assert await registry.reap(sale.db, by=OPERATOR) == 1
    row, seat = (await sale.rows())[0], await sale.row("S-A-1")
    assert (row["status"], seat["status"]) == ("expired", "available")
    assert row["expired_at"] is not None
    await all_told(worker, sale)
    process.hear(worker.wire.sent)
    told = [seat for one in worker.wire.told if one.event_id == sale.event.id for seat in one.seats]
    assert [(one.event, one.change.reason) for one in told] == [("seat_released", "ttl_expired")]
    assert await known(process, sale) == await truth(sale)
    dump = await worker.wire.dump(sale.place.id, sale.event.id, 0)
    assert (dump.holds, set(dump.statuses or b"?")) == ({}, {0})
    assert await process.projection.read_hold(sale.place.id, sale.event.id, sale.seat("S-A-1")) is None
    assert await process.projection.read_occupancy(sale.place.id, sale.event.id, 0) is None
    async with sale.db.transaction(sale.place.id) as conn:
        kinds = await conn.fetch("select kind from journal where seat_id = $1 and event_id = $2 order by version",
                                 sale.seat("S-A-1"), sale.event.id)  # fmt: skip
    assert [one["kind"] for one in kinds] == ["seat_reserved", "seat_hold_expired"]


@pytest.mark.req("REAP-04", "REAP-05", "REAP-07")
async def test_tidying_up_twice_or_too_early_or_too_late_does_nothing(sale: Sale, owner_conn: Connection) -> None:
    """Converted, let go, longer, not due: left as they are. What lapsed is ended once, however many tidy up."""
    anna = sale.caller()
    sold, gone, longer, due = await sale.hold(anna, "S-A-1", "S-A-2", "S-A-3", "S-A-4")
    await sale.buy(anna, sold)
    await booking.release(sale.services.lanes, sale.db, anna, gone.hold.id)
    await let_pass(owner_conn, longer.hold.id, due.hold.id, minutes=9.5)
    await booking.extend(sale.db, anna, longer.hold.id)
    await let_pass(owner_conn, longer.hold.id, due.hold.id, minutes=1)
    await asyncio.gather(*(registry.reap(sale.db, by=OPERATOR) for _ in range(3)))
    await registry.reap(sale.db, by=OPERATOR)
    statuses = {row["id"]: row["status"] for row in await sale.rows()}
    assert statuses == {
        sold.hold.id: "converted",
        gone.hold.id: "cancelled",
        longer.hold.id: "active",
        due.hold.id: "expired",
    }
    assert (await sale.row("S-A-1"))["status"] == "sold"
    async with sale.db.transaction(sale.place.id) as conn:
        told = await conn.fetchval(
            "select count(*) from journal where event_id = $1 and kind = 'seat_hold_expired'", sale.event.id
        )
    assert told == 1


@pytest.mark.req("REAP-01", "REAP-03", "REAP-13", "TEST-06")
async def test_the_worker_tidies_up_by_itself(services: Services, sale: Sale, owner_conn: Connection) -> None:
    """One sweep every few seconds instead of a job for each hold; what jobs leave behind is pruned."""
    (loop,) = [one for one in jobs_worker.loops(services) if one.name == "reap_holds"]
    assert loop.pace_s <= 30
    (mine,) = await sale.hold(sale.caller(), "S-A-1")
    await let_pass(owner_conn, mine.hold.id)
    await loop.tick()
    assert [row["status"] for row in await sale.rows()] == ["expired"]
    assert "purge_job_records" in {one.job_name for one in queue.RECURRING}


@pytest.mark.req("REAP-12", "TEL-16")
async def test_a_run_says_how_it_went_and_when(
    sale: Sale, owner_conn: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four figures, one of them of what failed; the time of the last run in a metric that has the seed's name."""
    said: list[dict[str, Any]] = []
    monkeypatch.setattr(
        registry.log, "info", lambda event, **about: said.append(about) if event == "reaper_run" else None
    )
    await registry.reap(sale.db, by=OPERATOR)
    said.clear()
    metrics.REAPER_RUN_AT.set(0)
    (mine,) = await sale.hold(sale.caller(), "S-A-1")
    await let_pass(owner_conn, mine.hold.id)
    expire_holds = store.expire_holds

    async def fail(*_: object) -> int:
        raise ZeroDivisionError

    monkeypatch.setattr(store, "expire_holds", fail)
    await registry.reap(sale.db, by=OPERATOR)
    monkeypatch.setattr(store, "expire_holds", expire_holds)
    await registry.reap(sale.db, by=OPERATOR)
    figures = [
        (one["expired_holds"], one["processed_successfully"], one["processed_failed"], one["duration_ms"] > 0)
        for one in said
    ]
    assert figures == [(1, 0, 1, True), (1, 1, 0, True)]
    assert b"voelgoedevents_reaper_run_timestamp" in generate_latest(metrics.REGISTRY)
    assert metrics.REAPER_RUN_AT._value.get() > 1_700_000_000


# How full, minute by minute


async def minutes(sale: Sale) -> list[tuple[int, int]]:
    return [
        (one.counts.held, one.counts.sold)
        for one in await occupancy.list_minutes(sale.db, sale.place.id, sale.event.id)
    ]


async def test_a_minute_in_which_something_changed_is_written_down_once(
    worker: Worker, sale: Sale, owner_conn: Connection
) -> None:
    """The last word of a minute stays; a minute without a change has no line; of two workers only the teller writes."""
    await worker.dispatcher.store_occupancy()
    await owner_conn.execute("delete from occupancy_snapshots where event_id = $1", sale.event.id)
    assert await worker.dispatcher.store_occupancy() == 0
    for held, code in enumerate(("S-A-1", "S-A-2"), 1):
        await sale.hold(sale.caller(), code)
        await all_told(worker, sale)
        assert await worker.dispatcher.store_occupancy() >= 1
        assert (await minutes(sale))[-1] == (held, 0)
    assert len(await minutes(sale)) <= 2, "two, if a minute went by between them"
    assert await worker.dispatcher.store_occupancy() == 0


async def test_one_event_that_cannot_be_written_does_not_keep_the_others(
    worker: Worker, services: Services, sale: Sale, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is tried again with the next."""
    other = await on_sale(services, sale.place)
    for one in (sale, other):
        await one.hold(one.caller(), "S-A-1")
    await all_told(worker, sale)
    remember = occupancy.remember

    async def fail_for_one(db: Database, organization_id: Any, found: Any) -> None:
        if found.event_id == sale.event.id:
            raise ZeroDivisionError
        await remember(db, organization_id, found)

    with monkeypatch.context() as broken:
        broken.setattr(occupancy, "remember", fail_for_one)
        await worker.dispatcher.store_occupancy()
    assert (await minutes(sale), await minutes(other)) == ([], [(1, 0)])
    await worker.dispatcher.store_occupancy()
    assert await minutes(sale) == [(1, 0)]
