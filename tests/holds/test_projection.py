"""An event's places in Redis: versions decide, other epochs are nothing, and whatever else stands there is a miss."""

import asyncio
import contextlib
import itertools
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import pytest

from tests.make.accounts import make_organization
from tests.make.holds import Sale, on_sale
from tests.make.seating import seated_event
from voelgoed.accounts.model import Organization
from voelgoed.db import Database
from voelgoed.holds import projection, store
from voelgoed.holds.hotmap import AVAILABLE, HELD, SOLD, HotMap, SeatChange, ZoneChange
from voelgoed.holds.occupancy import occupancy_now
from voelgoed.holds.projection import APPLY, BELIEVED_S, KEEP_NEWER, OCCUPANCY_S, Projection, WarmHold, seat_key
from voelgoed.ids import OrganizationId, new_id
from voelgoed.redis import RedisLink, RedisRefused
from voelgoed.telemetry import metrics
from voelgoed.wiring import Services

IN_REDIS_6_2 = {
    "del",
    "eval",
    "evalsha",
    "exec",
    "expire",
    "get",
    "getrange",
    "hget",
    "hgetall",
    "hset",
    "info",
    "mget",
    "multi",
    "publish",
    "rename",
    "script",
    "set",
    "setrange",
    "zadd",
    "zrangebyscore",
    "zrem",
    "zremrangebyscore",
}
"""Everything this house asks of Redis for places; each is there in 6.2, with the options that are used."""
TTL_MS = 600_000
LOOK_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Warm:
    """An event, its map, and what Redis has of it."""

    sale: Sale
    found: HotMap
    projection: Projection
    client: Any
    epoch: int
    now_ms: int

    @property
    def place_id(self) -> OrganizationId:
        return self.found.organization_id

    @property
    def event_id(self) -> UUID:
        return self.found.event_id

    def key(self, name: str) -> str:
        return f"voelgoed:org:{self.place_id}:event:{{{self.event_id}}}:{name}"

    def seat(self, ordinal: int = 0) -> UUID:
        return self.found.seat_id(ordinal)

    def seat_key(self, ordinal: int = 0) -> str:
        return self.key(f"seat:{self.seat(ordinal)}:hold")

    def held(
        self, version: int, ordinal: int = 0, *, lasts_ms: int = TTL_MS, hold_id: UUID | None = None
    ) -> SeatChange:
        return SeatChange(
            seat_id=self.seat(ordinal),
            version=version,
            status=HELD,
            hold_id=hold_id or new_id(),
            user_id=new_id(),
            until_ms=self.now_ms + lasts_ms,
        )

    def ended(self, version: int, hold_id: UUID | None, ordinal: int = 0, status: int = AVAILABLE) -> SeatChange:
        return SeatChange(seat_id=self.seat(ordinal), version=version, status=status, hold_id=hold_id)

    async def apply(self, *seats: SeatChange, zones: tuple[ZoneChange, ...] = (), epoch: int | None = None) -> bool:
        placed = [(self.found.ordinal_of(one.seat_id) or 0, one) for one in seats]
        return await self.projection.apply(self.found, epoch or self.epoch, self.now_ms, placed, zones)

    async def read(self, ordinal: int = 0) -> WarmHold | None:
        self.projection.believe(self.epoch)
        return await self.projection.read_hold(self.place_id, self.event_id, self.seat(ordinal))

    async def state(self, ordinal: int = 0) -> tuple[int, int, bool, list[str]]:
        """Status and version of a seat, whether its hold stands there, and every hold of the event."""
        statuses, versions = await self.client.get(self.key("map")), await self.client.get(self.key("versions"))
        version = int.from_bytes(versions[4 * ordinal : 4 * ordinal + 4], "big")
        holds = [one.decode() for one in await self.client.zrange(self.key("seat_holds"), 0, -1)]
        return statuses[ordinal], version, bool(await self.client.exists(self.seat_key(ordinal))), sorted(holds)

    async def names(self) -> set[str]:
        """Every key of the event, without what they all begin with."""
        keys = [key.decode() async for key in self.client.scan_iter(match="*" + str(self.event_id) + "*")]
        start = self.key("")
        assert all(key.startswith(start) for key in keys), keys
        return {key.removeprefix(start) for key in keys}


async def warm_up(services: Services, link: RedisLink, place: Organization, **about: Any) -> Warm:
    sale = await on_sale(services, place, **about)
    return await warmed(services, link, sale)


async def warmed(services: Services, link: RedisLink, sale: Sale) -> Warm:
    found = await services.availability.load(sale.place.id, sale.event.id)
    async with services.db.system_transaction() as conn:
        epoch = await store.next_projection_epoch(conn)
        now = await store.read_clock(conn)
    made = Projection(link)
    await made.rebuild(found, epoch, {})
    return Warm(
        sale=sale,
        found=found,
        projection=made,
        client=link.client,
        epoch=epoch,
        now_ms=int(now.timestamp() * 1_000),
    )


@pytest.fixture
async def link(redis_url: str) -> AsyncIterator[RedisLink]:
    """A link of the test's own, so that what it breaks is not another's."""
    async with RedisLink(redis_url, connect_timeout_s=5, call_timeout_s=5) as made:
        yield made


@pytest.fixture
async def warm(services: Services, link: RedisLink, place: Organization) -> Warm:
    return await warm_up(services, link, place)


@pytest.mark.req("RSV-27", "TEST-05", "TEST-20", "REG-12")
async def test_a_hold_stands_in_redis_by_seat_and_by_end(warm: Warm) -> None:
    """The seat's key names hold and holder and dies with the hold; the set has the hold by its id and its end."""
    change = warm.held(2)
    assert await warm.apply(change)
    found = await warm.read()
    assert found == (2, change.hold_id, change.user_id, change.until_ms)
    assert await warm.client.pexpiretime(warm.seat_key()) == change.until_ms
    assert await warm.client.zrange(warm.key("seat_holds"), 0, -1, withscores=True) == [
        (str(change.hold_id).encode(), float(change.until_ms or 0))
    ]
    assert await warm.state() == (HELD, 2, True, [str(change.hold_id)])


@pytest.mark.req("REG-13", "REG-15")
async def test_a_held_seat_has_one_key_with_hold_buyer_and_end(warm: Warm) -> None:
    """Its value is epoch, version, hold, buyer and end. The hold has no lock and no hash beside it."""
    change = warm.held(2)
    await warm.apply(change)
    value = (await warm.client.get(warm.seat_key())).decode()
    assert value == f"{warm.epoch}:2:{change.hold_id}:{change.user_id}:{change.until_ms}"
    expected = {"epoch", "map", "versions", "zones", "seat_holds", f"seat:{warm.seat()}:hold"}
    assert await warm.names() == expected


@pytest.mark.req("REG-18", "REG-27", "REG-29")
@pytest.mark.parametrize("order", list(itertools.permutations(range(4))))
async def test_the_newest_version_of_a_seat_stays_in_every_order(warm: Warm, order: tuple[int, ...]) -> None:
    """Held, let go, held by the next, sold: told in any order, and each of them twice."""
    first, next_one = warm.held(2), warm.held(4)
    story = (
        first,
        warm.ended(3, first.hold_id),
        next_one,
        warm.ended(5, next_one.hold_id, status=SOLD),
    )
    for number in (*order, *order):
        assert await warm.apply(story[number])
    assert (await warm.state())[:3] == (SOLD, 5, False)
    assert await warm.read() is None


@pytest.mark.req("EXT-06")
async def test_a_longer_hold_makes_its_keys_again(warm: Warm) -> None:
    """The end moves in the set and at the key; a key that was lost meanwhile is simply made again from what is told."""
    hold_id = new_id()
    await warm.apply(warm.held(2, hold_id=hold_id))
    await warm.client.delete(warm.seat_key(), warm.key("seat_holds"))
    longer = warm.held(3, lasts_ms=2 * TTL_MS, hold_id=hold_id)
    await warm.apply(longer)
    assert await warm.read() == (3, hold_id, longer.user_id, longer.until_ms)
    assert await warm.client.zscore(warm.key("seat_holds"), str(hold_id)) == longer.until_ms


@pytest.mark.req("REG-24")
async def test_what_postgresql_said_is_put_back_where_it_was_lost(warm: Warm) -> None:
    """The map knows the version already; the seat's own key had gone, or was garbage, and stands there again."""
    change = warm.held(2)
    await warm.apply(change)
    for rubbish in (None, "rubbish"):
        await (warm.client.set(warm.seat_key(), rubbish) if rubbish else warm.client.delete(warm.seat_key()))
        assert await warm.read() is None
        warm.projection.believe(warm.epoch)
        warm.projection.keep_hold(warm.place_id, warm.event_id, 0, change)
        await warm.projection.settle()
        assert await warm.read() == (2, change.hold_id, change.user_id, change.until_ms)
    older = warm.held(1)
    warm.projection.keep_hold(warm.place_id, warm.event_id, 0, older)
    await warm.projection.settle()
    assert await warm.read() == (2, change.hold_id, change.user_id, change.until_ms), "a slower word does not count"


@pytest.mark.req("REG-22")
async def test_lapsed_holds_are_pruned_whenever_something_is_told(warm: Warm) -> None:
    """Of members nobody took away; those that last stay."""
    lasting = warm.held(2, ordinal=1)
    key = warm.key("seat_holds")
    await warm.client.zadd(key, {str(new_id()): warm.now_ms - 1, str(new_id()): warm.now_ms, str(new_id()): 5})
    await warm.apply(lasting)
    assert await warm.client.zrange(key, 0, -1) == [str(lasting.hold_id).encode()]


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
async def test_a_zone_by_number_has_its_newest_counts_and_no_hold_that_ended(
    warm: Warm, order: tuple[int, ...]
) -> None:
    """In any order the counters are the last ones. Told again from the start, an ended hold does not come back."""
    zone_id, hold_id = warm.sale.zone("P"), new_id()
    until_ms = warm.now_ms + TTL_MS
    story = (
        ZoneChange(zone_id=zone_id, version=2, held=3, sold=0, hold_id=hold_id, until_ms=until_ms),
        ZoneChange(zone_id=zone_id, version=3, held=3, sold=0, hold_id=hold_id, until_ms=until_ms + 1),
        ZoneChange(zone_id=zone_id, version=4, held=0, sold=3, hold_id=hold_id),
    )
    for number in order:
        await warm.apply(zones=(story[number],))
    assert await warm.client.hget(warm.key("zones"), str(zone_id)) == b"4:0:3"
    await warm.apply(zones=story)
    assert (await warm.state())[3] == []
    await warm.apply(zones=story[:2])
    assert (await warm.state())[3] == [], "an old word does not bring a hold back that has ended"


@pytest.mark.req("HOLD-18")
async def test_another_epoch_is_a_miss_and_is_not_written_to(warm: Warm) -> None:
    """What another rebuild left is nothing: not read, not brought up to date, whichever of the two is the newer."""
    change = warm.held(2)
    await warm.apply(change)
    assert await warm.apply(warm.held(3), epoch=warm.epoch + 1) is False
    assert await warm.apply(warm.held(3), epoch=warm.epoch - 1) is False
    assert (await warm.state())[:2] == (HELD, 2)
    for other in (warm.epoch - 1, warm.epoch + 1, 0):
        await warm.client.set(warm.key("epoch"), other)
        assert await warm.read() is None
        assert await warm.apply(warm.held(3)) is False
    await warm.client.delete(warm.key("epoch"))
    assert await warm.apply(warm.held(3)) is False
    assert await warm.read() is None


@pytest.mark.req("REG-17", "HOLD-18")
async def test_redis_is_believed_only_while_somebody_says_so(warm: Warm, link: RedisLink) -> None:
    """Not before, not a second later, and not what is from before its last recovery."""
    now = [100.0]
    reading = Projection(link, clock=lambda: now[0])
    await warm.apply(warm.held(2))

    async def read() -> object:
        return await reading.read_hold(warm.place_id, warm.event_id, warm.seat())

    assert await read() is None
    reading.believe(warm.epoch)
    assert await read()
    now[0] += BELIEVED_S
    assert (reading.floor, await read()) == (None, None)
    reading.believe(warm.epoch + 1)
    assert await read() is None
    reading.believe(warm.epoch - 1)
    assert await read()


GARBAGE: dict[str, bytes] = {
    "nothing": b"",
    "words": b"held",
    "too few": b"1:2:3",
    "json": b'{"user_id": null}',
    "not text": b"\xff\x00\xfe",
    "wrong ids": b"1:2:x:y:3",
    "huge": b"9" * 400 + b":2:",
}


@pytest.mark.req("REG-17")
@pytest.mark.parametrize("kind", [*GARBAGE, "an end beyond all numbers"])
async def test_a_broken_value_is_a_miss_and_is_taken_away(
    warm: Warm, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever somebody has put there: nobody is told that the seat is held, and it is said once in the log."""
    value = GARBAGE.get(kind) or f"{warm.epoch}:2:{new_id()}:{new_id()}:{'9' * 400}".encode()
    await warm.client.set(warm.seat_key(), value)
    told = []
    monkeypatch.setattr(projection.log, "warning", lambda event, **about: told.append((event, about["key"])))
    assert await warm.read() is None
    assert told == [("redis_value_broken", warm.seat_key())]
    await warm.projection.settle()
    assert not await warm.client.exists(warm.seat_key())


async def spoil(warm: Warm, name: str, how: str) -> None:
    """Put something under a key that does not belong there."""
    key = warm.key(name)
    await warm.client.delete(key)
    if how == "a list":
        await warm.client.rpush(key, "x", "y")
    elif how == "a set with scores":
        await warm.client.zadd(key, {"x": float("inf"), "y": 3})
    elif how == "a hash":
        await warm.client.hset(key, mapping={str(warm.sale.zone("P")): "many", "x": "y"})
    else:
        await warm.client.set(key, b"\xff\xfe:rubbish")


@pytest.mark.req("REG-17", "TEST-31")
@pytest.mark.parametrize("how", ["a list", "a set with scores", "a hash", "a text"])
@pytest.mark.parametrize("name", ["epoch", "map", "versions", "zones", "seat_holds", "occupancy", "seat"])
async def test_whatever_stands_under_a_key_is_survived_and_made_anew(warm: Warm, name: str, how: str) -> None:
    """Reading is a miss at worst, writing says at worst that it must be made anew, and then everything is right."""
    await spoil(warm, f"seat:{warm.seat()}:hold" if name == "seat" else name, how)
    assert await warm.read() is None
    warm.projection.believe(warm.epoch)
    assert await warm.projection.read_occupancy(warm.place_id, warm.event_id, 0) is None
    await warm.projection.dump(warm.place_id, warm.event_id, warm.now_ms)
    change = warm.held(2)
    zone = ZoneChange(zone_id=warm.sale.zone("P"), version=2, held=1, sold=0)
    with contextlib.suppress(RedisRefused):  # whoever tells has it made anew then
        await warm.apply(change, zones=(zone,))
    warm.found.take_seat(change, time.monotonic())
    warm.found.take_zone(zone)
    hold_id = change.hold_id
    assert hold_id is not None
    assert change.until_ms is not None
    await warm.projection.rebuild(warm.found, warm.epoch + 1_000_000, {hold_id: change.until_ms})
    dump = await warm.projection.dump(warm.place_id, warm.event_id, warm.now_ms)
    versions = warm.found.versions[:]
    versions.byteswap()
    assert (dump.epoch, dump.statuses, dump.versions) == (
        warm.epoch + 1_000_000,
        bytes(warm.found.statuses),
        versions.tobytes(),
    )
    assert dump.zones == {one.zone_id: (one.version, one.held, one.sold) for one in warm.found.zones}
    assert dump.holds == {hold_id: change.until_ms}
    assert await warm.read() == (2, hold_id, change.user_id, change.until_ms)


@pytest.mark.req("OCC-04", "OCC-05", "OCC-07")
async def test_how_full_an_event_is_is_kept_for_ten_seconds(warm: Warm) -> None:
    """Under the one key that there is for it, as it was counted."""
    counted = occupancy_now(warm.found)
    warm.projection.believe(warm.epoch)
    assert await warm.projection.read_occupancy(warm.place_id, warm.event_id, 0) is None
    warm.projection.keep_occupancy(warm.place_id, counted, TTL_MS)
    await warm.projection.settle()
    assert await warm.projection.read_occupancy(warm.place_id, warm.event_id, 0) == counted
    assert OCCUPANCY_S - 5 <= await warm.client.ttl(warm.key("occupancy")) <= OCCUPANCY_S == 10


@pytest.mark.req("RSV-28", "OCC-06")
async def test_every_change_takes_away_how_full_it_was(warm: Warm) -> None:
    """A hold, its end, places by number, and all of them anew."""
    counted = occupancy_now(warm.found)
    change = warm.held(2)
    zone = ZoneChange(zone_id=warm.sale.zone("P"), version=2, held=1, sold=0)
    steps: list[Callable[[], Awaitable[Any]]] = [
        lambda: warm.apply(change),
        lambda: warm.apply(warm.ended(3, change.hold_id)),
        lambda: warm.apply(zones=(zone,)),
        lambda: warm.projection.rebuild(warm.found, warm.epoch, {}),
        lambda: warm.projection.remove(warm.place_id, warm.event_id),
    ]
    for step in steps:
        warm.projection.keep_occupancy(warm.place_id, counted, TTL_MS)
        await warm.projection.settle()
        assert await warm.client.exists(warm.key("occupancy"))
        await step()
        assert not await warm.client.exists(warm.key("occupancy"))


async def test_who_counted_slower_than_another_keeps_nothing(warm: Warm) -> None:
    """The newer state stays; the same or a newer one is put in its place; another event's count is not believed."""
    old = occupancy_now(warm.found)
    warm.found.take_seat(warm.held(2), 1.0)
    new = occupancy_now(warm.found)
    warm.projection.believe(warm.epoch)
    for counted, stays in ((old, old), (new, new), (old, new)):
        warm.projection.keep_occupancy(warm.place_id, counted, TTL_MS)
        await warm.projection.settle()
        assert await warm.projection.read_occupancy(warm.place_id, warm.event_id, 0) == stays
    other = await warm_up(warm.sale.services, warm.projection._link, warm.sale.place)
    await warm.client.copy(warm.key("occupancy"), other.key("occupancy"))
    other.projection.believe(other.epoch)
    assert await other.projection.read_occupancy(other.place_id, other.event_id, 0) is None


@pytest.mark.req("TEN-03", "REG-10", "REG-11", "REG-21")
async def test_every_key_begins_with_whose_it_is_and_carries_the_event(warm: Warm) -> None:
    """Also while it is being made anew; and all keys of an event are in one slot of a cluster."""
    change = warm.held(2)
    await warm.apply(change)
    warm.projection.keep_occupancy(warm.place_id, occupancy_now(warm.found), TTL_MS)
    await warm.projection.settle()
    names = {"epoch", "map", "versions", "zones", "seat_holds", "occupancy", f"seat:{warm.seat()}:hold"}
    assert await warm.names() == names
    assert seat_key(warm.place_id, warm.event_id, warm.seat()) == warm.seat_key()
    slots = {await warm.client.execute_command("CLUSTER", "KEYSLOT", warm.key(name)) for name in names}
    assert len(slots) == 1


@pytest.mark.req("TEN-08", "REG-10")
async def test_two_events_in_one_hall_never_meet(services: Services, link: RedisLink, place: Organization) -> None:
    """They have the same seats; what is held at one is free at the other."""
    one = await warm_up(services, link, place)
    seated = await seated_event(
        services.db, services.studio, place, venue=one.sale.seated.venue, pin=one.sale.seated.pin, status="published"
    )
    two = await warmed(services, link, Sale(services=services, place=place, seated=seated))
    assert one.seat() == two.seat()
    change = one.held(2)
    await one.apply(change)
    assert await one.read()
    assert await two.read() is None
    assert (await two.state())[:3] == (AVAILABLE, 1, False)
    assert (await one.names()) - (await two.names()) == {"seat_holds", f"seat:{one.seat()}:hold"}


@pytest.mark.req("TEN-03")
async def test_another_organization_finds_nothing(warm: Warm, db: Database) -> None:
    """Under its own name there is nothing of this event."""
    await warm.apply(warm.held(2))
    warm.projection.keep_occupancy(warm.place_id, occupancy_now(warm.found), TTL_MS)
    await warm.projection.settle()
    other = await make_organization(db)
    warm.projection.believe(warm.epoch)
    assert await warm.projection.read_hold(other.id, warm.event_id, warm.seat()) is None
    assert await warm.projection.read_occupancy(other.id, warm.event_id, 0) is None
    dump = await warm.projection.dump(other.id, warm.event_id, warm.now_ms)
    assert (dump.epoch, dump.statuses, dump.versions, dump.zones, dump.holds) == (None, None, None, {}, {})


@pytest.mark.req("REG-19", "REG-20")
async def test_the_map_is_a_byte_for_each_seat_and_goes_by_itself(warm: Warm) -> None:
    """Written through at every change, read whole by one command, gone half an hour after the last."""
    await warm.apply(warm.held(2, ordinal=3), warm.ended(2, None, ordinal=4, status=SOLD))
    statuses = await warm.client.get(warm.key("map"))
    assert list(statuses) == [0, 0, 0, HELD, SOLD, *[0] * (len(warm.found) - 5)]
    for name in ("epoch", "map", "versions", "zones", "seat_holds"):
        assert 5 * 60 <= await warm.client.ttl(warm.key(name)) <= 30 * 60


async def test_a_rebuild_leaves_nothing_half_made_for_ever(warm: Warm, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever dies before the new map is put in its place leaves the old one, and keys that go by themselves."""
    await warm.apply(change := warm.held(2))
    before = await warm.state()

    def die(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(projection, "_add_holders", die)
    warm.found.take_seat(warm.held(3, ordinal=1), 1.0)
    with pytest.raises(ZeroDivisionError):
        await warm.projection.rebuild(warm.found, warm.epoch + 1, {new_id(): warm.now_ms + TTL_MS})
    assert await warm.state() == before
    assert (await warm.read()) == (2, change.hold_id, change.user_id, change.until_ms)
    for name in await warm.names():
        assert await warm.client.ttl(warm.key(name)) > 0, name


@pytest.mark.req("TEL-05")
async def test_what_is_written_is_counted(warm: Warm) -> None:
    """Each seat and each zone once."""
    counter = metrics.HOLD_REDIS_SUCCESS
    before = counter._value.get()
    zone = ZoneChange(zone_id=warm.sale.zone("P"), version=2, held=1, sold=0)
    await warm.apply(warm.held(2), warm.held(2, ordinal=1), zones=(zone,))
    assert counter._value.get() - before == 3


@pytest.mark.req("REG-30")
async def test_without_redis_nothing_is_found_and_that_is_counted(warm: Warm) -> None:
    """No error, nobody waits for it again; PostgreSQL answers."""
    async with RedisLink("redis://127.0.0.1:1") as nowhere:
        away = Projection(nowhere)
        away.believe(1)
        before = metrics.HOLD_REDIS_FALLBACK._value.get()
        for _ in range(6):
            assert await away.read_hold(warm.place_id, warm.event_id, warm.seat()) is None
        assert await away.read_occupancy(warm.place_id, warm.event_id, 0) is None
        assert away.is_away
        away.keep_occupancy(warm.place_id, occupancy_now(warm.found), TTL_MS)
        away.keep_hold(warm.place_id, warm.event_id, 0, warm.held(2))
        await away.settle()
        assert metrics.HOLD_REDIS_FALLBACK._value.get() - before == 7


async def test_only_commands_of_redis_6_2_are_used(warm: Warm) -> None:
    """What arrives at the server when everything is done once, in scripts as well."""
    scripts = {name.lower() for name in re.findall(r"redis\.p?call\('(\w+)'", APPLY + KEEP_NEWER)}
    assert scripts <= IN_REDIS_6_2
    seen: set[str] = set()
    mark = f"done:{new_id()}"
    async with warm.client.monitor() as monitor:
        change = warm.held(2)
        zone = ZoneChange(
            zone_id=warm.sale.zone("P"), version=2, held=1, sold=0, hold_id=new_id(), until_ms=warm.now_ms + TTL_MS
        )
        await warm.apply(change, zones=(zone,))
        await warm.apply(warm.ended(3, change.hold_id))
        await warm.read()
        warm.projection.keep_occupancy(warm.place_id, occupancy_now(warm.found), TTL_MS)
        warm.projection.keep_hold(warm.place_id, warm.event_id, 1, warm.held(2, ordinal=1))
        await warm.projection.settle()
        await warm.projection.read_occupancy(warm.place_id, warm.event_id, 0)
        warm.found.take_seat(warm.held(4), 1.0)
        await warm.projection.rebuild(warm.found, warm.epoch, {new_id(): warm.now_ms + TTL_MS})
        await warm.projection.dump(warm.place_id, warm.event_id, warm.now_ms)
        await warm.projection.publish([(warm.key("seating"), b"x")])
        await warm.projection.remove(warm.place_id, warm.event_id)
        await warm.client.get(mark)
        async with asyncio.timeout(LOOK_S):
            async for line in monitor.listen():
                if mark in line["command"]:
                    break
                if str(warm.event_id) in line["command"]:
                    seen.add(line["command"].split(maxsplit=1)[0].lower())
    assert seen <= IN_REDIS_6_2
    assert {"setrange", "rename", "zremrangebyscore", "mget", "hgetall"} <= seen
