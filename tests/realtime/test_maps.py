"""Live maps: each viewer has in the end what PostgreSQL has, never goes back, and learns nothing of anybody."""

import asyncio
import contextlib
import itertools
import json
import random
import socket
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import httpx2
import pytest

from tests.conftest import SECRET_KEY
from tests.make.accounts import Person, make_organization, make_person
from tests.make.holds import Sale, on_sale
from tests.make.layouts import small_layout
from tests.make.processes import free_port
from tests.make.seating import block_seat, free_seat, hold_seat, move, next_pin, save, sell_seat, take_places, unpublish
from tests.make.web import Site, serving
from tests.sim import trouble
from voelgoed.accounts.model import Organization, Role
from voelgoed.cache import Cache
from voelgoed.db import Connection, Database
from voelgoed.errors import Busy
from voelgoed.events.catalogue import Catalogue, Now
from voelgoed.events.model import Verb
from voelgoed.events.refusals import EventNotFound
from voelgoed.holds import booking, store
from voelgoed.holds.availability import Availability
from voelgoed.holds.following import Dispatcher, Follower
from voelgoed.holds.hotmap import AVAILABLE, BLOCKED, HELD, SOLD, HotMap, SeatChange, ZoneChange, unpack
from voelgoed.holds.projection import Projection
from voelgoed.ids import new_id
from voelgoed.loop import Loop
from voelgoed.realtime import maps as module
from voelgoed.realtime.feed import TooManyStreams
from voelgoed.realtime.maps import At, Maps, seen_of
from voelgoed.redis import RedisLink
from voelgoed.seating.overlay import Overlay
from voelgoed.telemetry import metrics
from voelgoed.wiring import Services, build_services

WAIT_S = 20
NOBODY = "redis://127.0.0.1:1"
COUNTS = ("total", "available", "held", "sold", "blocked")


# A client that follows the protocol to the letter


@dataclass(frozen=True, slots=True)
class Frame:
    """One event of a stream."""

    name: str
    data: dict[str, Any]
    id: str | None


@dataclass
class Model:
    """What a client shows. Each frame is looked at: nothing is shown twice, and nothing older than before."""

    epoch: int = -1
    version: int = -1
    statuses: bytearray = field(default_factory=bytearray)
    zones: dict[str, dict[str, Any]] = field(default_factory=dict)
    status: str | None = None
    event_version: int = 0
    last_id: str | None = None
    is_over: bool = False
    is_to_be_replaced: bool = False
    occupancy: dict[str, Any] | None = None
    frames: list[Frame] = field(default_factory=list)

    def take(self, frame: Frame) -> None:
        assert not self.is_over, "nothing follows the last word"
        self.frames.append(frame)
        getattr(self, f"_{frame.name}")(frame.data)
        if frame.id is not None:
            self.last_id = frame.id
            assert frame.id.split(":")[:2] == [str(self.epoch), str(self.version)]

    def _event_status(self, data: dict[str, Any]) -> None:
        now = data["status"], data["version"]
        assert now != (self.status, self.event_version) or len(self.frames) == 1 or self.frames[-2].name == "retry"
        self.status, self.event_version = now

    def _resync(self, _: dict[str, Any]) -> None:
        self.is_to_be_replaced = True

    def _snapshot(self, data: dict[str, Any]) -> None:
        at = data["epoch"], data["map_version"]
        assert self.is_to_be_replaced or at > (self.epoch, self.version), f"{at} after {self.epoch, self.version}"
        self.is_to_be_replaced = False
        self.epoch, self.version = at
        self.statuses = bytearray(unpack(data["statuses"], data["seat_count"]))
        self.zones = {zone["zone_id"]: zone for zone in data["zones"]}

    def _delta(self, data: dict[str, Any]) -> None:
        assert not self.is_to_be_replaced
        assert data["map_version"] > self.version, f"{data['map_version']} after {self.version}"
        assert data["seats"] == sorted(set(data["seats"]))
        assert len(data["seats"]) == len(data["statuses"])
        self.version = data["map_version"]
        for ordinal, digit in zip(data["seats"], data["statuses"], strict=True):
            self.statuses[ordinal] = int(digit)
        for zone in data["zones"]:
            assert zone["zone_id"] in self.zones
            self.zones[zone["zone_id"]] = zone

    def _occupancy(self, data: dict[str, Any]) -> None:
        assert data["map_version"] >= (self.occupancy or data)["map_version"]
        self.occupancy = data

    def _bye(self, _: dict[str, Any]) -> None:
        self.is_over = True

    def shows(self, found: HotMap) -> bool:
        """Whether this is what a map says, to the last place."""
        zones = {
            str(zone.zone_id): (zone.counts.capacity, *(getattr(zone.counts, name) for name in COUNTS[1:]))
            for zone in found.zones
        }
        mine = {zone_id: tuple(zone[name] for name in COUNTS) for zone_id, zone in self.zones.items()}
        return (self.epoch, self.version, bytes(self.statuses), mine) == (
            found.epoch,
            found.map_version,
            bytes(found.statuses),
            zones,
        )


def frame_of(text: str) -> Frame | None:
    """A frame, out of what stands between two empty lines; None for a sign of life and the like."""
    fields = dict(line.split(": ", 1) for line in text.splitlines() if not line.startswith(":"))
    if "event" not in fields:
        return None
    assert set(fields) <= {"event", "data", "id"}
    return Frame(fields["event"], json.loads(fields["data"]), fields.get("id"))


class Stream:
    """An open stream over HTTP, read frame by frame into a model."""

    def __init__(self, response: httpx2.Response, model: Model | None = None) -> None:
        self._pieces = response.aiter_text()
        self._rest = ""
        self.model = model or Model()
        self.texts: list[str] = []
        self.response = response

    async def text(self) -> str:
        """What comes next, up to an empty line."""
        while "\n\n" not in self._rest:
            self._rest += await asyncio.wait_for(anext(self._pieces), WAIT_S)
        text, self._rest = self._rest.split("\n\n", 1)
        self.texts.append(text)
        return text

    async def next(self, *names: str) -> Frame:
        """The next frame, or the next of these names; every one is taken by the model."""
        while True:
            frame = frame_of(await self.text())
            if frame is None:
                continue
            self.model.take(frame)
            if not names or frame.name in names:
                return frame

    async def until(self, is_so: Callable[[], object]) -> None:
        while not is_so():
            await self.next()

    async def until_it_shows(self, sale: Sale) -> None:
        """Until the client shows what PostgreSQL has."""
        while not self.model.shows(await truth(sale)):
            await self.next()

    async def ends(self) -> bool:
        with contextlib.suppress(StopAsyncIteration):
            while True:
                await self.next()
        return True


@asynccontextmanager
async def watching(
    site: Site, sale: Sale, *, who: Person | None = None, model: Model | None = None, seen: str | None = None
) -> AsyncIterator[Stream]:
    """A stream of which the first word has come; with a model, one that comes back with what it has."""
    last = seen or (model.last_id if model else None)
    headers = (who.headers if who else {}) | ({"last-event-id": last} if last else {})
    async with (
        httpx2.AsyncClient(base_url=site.address, timeout=60) as client,
        client.stream("GET", path_of(sale), headers=headers) as response,
    ):
        assert response.status_code == 200, await response.aread()
        assert response.headers["content-type"].startswith("text/event-stream")
        if model is not None:
            model.status = None
        stream = Stream(response, model)
        assert await stream.text() == "retry: 1500"
        assert (await stream.next()).name == "event_status"
        yield stream


def path_of(sale: Sale) -> str:
    return f"/api/events/{sale.event.id}/stream"


async def truth(sale: Sale) -> HotMap:
    return await trouble.find_map(sale.db, sale.place.id, sale.event.id)


async def until(is_so: Callable[[], object]) -> None:
    async with asyncio.timeout(WAIT_S):
        while not is_so():
            await asyncio.sleep(0.005)


# Without HTTP: a line of the test's own


class Pipe:
    """What is written to a viewer, with what they have not read as the test says."""

    def __init__(self, model: Model | None = None) -> None:
        self.model = model or Model()
        self.is_open = True
        self.unsent_bytes = 0
        self.texts: list[str] = []
        self.beats_count = 0
        self.wrong: list[AssertionError] = []
        self._is_gone = asyncio.Event()

    def write(self, data: bytes) -> None:
        if self._is_gone.is_set():
            return
        for text in data.decode().split("\n\n")[:-1]:
            self.texts.append(text)
            self.beats_count += text.startswith(":")
            try:
                if frame := frame_of(text):
                    self.model.take(frame)
            except AssertionError as wrong:  # whoever writes must not hear of it: the test does
                self.wrong.append(wrong)

    def finish(self) -> None:
        self._is_gone.set()

    def drop(self) -> None:
        self._is_gone.set()

    async def until_gone(self) -> None:
        await self._is_gone.wait()

    def names(self) -> list[str]:
        return [frame.name for frame in self.model.frames]


@dataclass
class Look:
    """Somebody at a map."""

    pipe: Pipe
    task: asyncio.Task[None]

    async def leave(self) -> None:
        self.pipe.finish()
        await self.task
        assert self.pipe.wrong == []


async def look(maps: Maps, sale: Sale, *, model: Model | None = None, **over: Any) -> Look:
    """Look at a map; with a model, again."""
    pipe, has_begun = Pipe(model), asyncio.Event()
    about = {"user_id": None, "ip": None, "seen": seen_of(pipe.model.last_id or ""), **over}
    pipe.model.status = None
    task = asyncio.create_task(maps.show(pipe, sale.place.id, sale.event.id, begin=has_begun.set, **about))
    begun = asyncio.create_task(has_begun.wait())
    await asyncio.wait({task, begun}, return_when=asyncio.FIRST_COMPLETED)
    begun.cancel()
    if not has_begun.is_set():
        await task
    return Look(pipe, task)


# What there is


@pytest.fixture
async def place(db: Database) -> Organization:
    return await make_organization(db)


@pytest.fixture
async def sale(services: Services, place: Organization) -> Sale:
    return await on_sale(services, place)


@asynccontextmanager
async def following(services: Services) -> AsyncIterator[Follower]:
    """Let a process hear of what is committed."""
    was, stop = services.availability.is_live, asyncio.Event()
    follower = Follower(services.db, services.redis, services.availability, services.projection, pace_s=0.02)
    running = asyncio.create_task(follower.run(stop))
    try:
        await until(lambda: follower.is_live)
        yield follower
    finally:
        stop.set()
        await running
        services.availability.is_live = was


@pytest.fixture
async def live(services: Services) -> AsyncIterator[Follower]:
    async with following(services) as follower:
        yield follower


@asynccontextmanager
async def process(base: Services, url: str) -> AsyncIterator[tuple[Services, Site]]:
    """Another web process, on this loop, with a Redis or nobody there."""
    settings = base.settings.model_copy(update={"port": free_port()})
    async with RedisLink(url, connect_timeout_s=1, call_timeout_s=1, probe_every_s=0.05) as link:
        own = build_services(settings, base.db, link, SECRET_KEY)
        async with following(own), serving(own) as site:
            yield own, site
        await own.availability.close()
        await own.lanes.close()
        own.door.passwords.close()


class Process:
    """What a process has of maps, told of changes only by the test."""

    def __init__(self, db: Database, link: RedisLink) -> None:
        self.hot = Availability(db, Projection(link))
        self.hot.is_live = lambda: True
        self.maps = Maps(self.hot, Catalogue(db, Cache(link=link)), viewers_per_network_max=3)
        self.stop = asyncio.Event()
        self.running = asyncio.create_task(self.maps.run(self.stop))

    async def end(self) -> None:
        self.stop.set()
        await self.running
        await self.hot.close()


@pytest.fixture
async def here(db: Database, services: Services) -> AsyncIterator[Process]:
    made = Process(db, services.redis)
    await asyncio.sleep(0)
    yield made
    await made.end()
    await until(lambda: not made.maps._scenes and not made.maps._tasks)
    assert (made.maps.viewers_count, made.hot._pinned) == (0, {})


@pytest.fixture
async def there(db: Database, services: Services) -> AsyncIterator[Process]:
    made = Process(db, services.redis)
    await asyncio.sleep(0)
    yield made
    await made.end()


def changed(sale: Sale, code: str, version: int, status: int = HELD) -> SeatChange:
    held: dict[str, Any] = {"hold_id": new_id(), "user_id": new_id(), "until_ms": 2**45} if status == HELD else {}
    return SeatChange(seat_id=sale.seat(code), version=version, status=status, **held)


# The first frames


@pytest.mark.req("PUB-12")
async def test_the_first_frames_are_the_event_and_the_map(site: Site, sale: Sale, owner_conn: Connection) -> None:
    """The snapshot is what GET /seatmap answers, and its name; its id is what a client comes back with."""
    await sell_seat(owner_conn, sale.event, 2)
    await take_places(owner_conn, sale.event, sale.zone("P"), held=2, sold=5)
    async with watching(site, sale) as stream:
        assert stream.response.headers["cache-control"] == "no-store"
        assert stream.response.headers["x-accel-buffering"] == "no"
        told = {"event_id": str(sale.event.id), "status": "published", "version": sale.event.version}
        assert stream.model.frames[0].data == told
        snapshot = await stream.next()
        whole = await site.client.get(f"/api/events/{sale.event.id}/seatmap")
        assert (snapshot.name, snapshot.data) == ("snapshot", whole.json()["data"])
        assert whole.headers["etag"] == f'"{snapshot.id}"'
        assert stream.model.shows(await truth(sale))


@pytest.mark.parametrize(
    "seen", ["", "x", ":", "::", "1", "1:2", "-1:-1:-1", "1:2:3:4", "²:1:1", "1:1:x", "9" * 39 + ":1:1", "\xff:1:1"]
)
async def test_an_id_that_is_none_of_ours_is_as_none(site: Site, sale: Sale, seen: str) -> None:
    """Whatever somebody sends, they are shown the map."""
    assert seen_of(seen) is None
    headers = {b"last-event-id": seen.encode()}
    async with site.client.stream("GET", path_of(sale), headers=headers) as response:
        stream = Stream(response)
        assert [(await stream.next()).name, (await stream.next()).name] == ["event_status", "snapshot"]


async def test_an_id_ahead_of_everything_is_told_to_start_over(site: Site, sale: Sale) -> None:
    """As after a restore: what the client has is of another world, so it must not wait for it to come."""
    async with watching(site, sale, seen="7:99999999999:5") as stream:
        assert [(await stream.next()).name, (await stream.next()).name] == ["resync", "snapshot"]
        assert stream.model.shows(await truth(sale))


@pytest.mark.req("TEN-10")
async def test_what_is_not_shown_is_not_there(site: Site, services: Services, sale: Sale, db: Database) -> None:
    """A draft, to those outside, to another organization's people and to its own; an event of nobody; no id at all."""
    draft = await on_sale(services, sale.place, status="draft")
    own, stranger = await make_person(db, sale.place, Role.OWNER), await make_person(db, None, Role.OWNER)
    for who in (None, own, stranger, await make_person(db)):
        for event_id, status in ((draft.event.id, 404), (new_id(), 404), ("nonsense", 400)):
            answer = await site.client.get(f"/api/events/{event_id}/stream", headers=who.headers if who else {})
            assert answer.status_code == status, answer.text
            head = await site.client.head(f"/api/events/{event_id}/stream", headers=who.headers if who else {})
            assert (head.status_code, head.content) == (status, b"")
    assert services.maps.viewers_count == 0
    assert services.maps._scenes == {}


@pytest.mark.req("TEN-10")
async def test_what_only_its_own_people_see_is_shown_to_nobody_else(
    site: Site, services: Services, sale: Sale, db: Database
) -> None:
    """An event that is history, while one of its own people looks at it."""
    for verb in (Verb.GO_LIVE, Verb.END, Verb.ARCHIVE):
        await move(services.studio, sale.place, sale.event, verb)
    own, stranger = await make_person(db, sale.place, Role.OWNER), await make_person(db, None, Role.OWNER)
    async with watching(site, sale, who=own) as stream:
        assert (await stream.next()).name == "snapshot"
        for who in (None, stranger):
            answer = await site.client.get(path_of(sale), headers=who.headers if who else {})
            assert answer.status_code == 404, answer.text


async def test_a_head_does_not_wait_for_the_end(site: Site, sale: Sale) -> None:
    answer = await site.client.head(path_of(sale))
    assert (answer.status_code, answer.headers["content-type"], answer.content) == (200, "text/event-stream", b"")


# What becomes of places


@pytest.mark.req("PUB-11")
async def test_what_others_do_is_shown(site: Site, sale: Sale, live: Follower) -> None:
    """A hold, its release, a sale, a block: the ordinal, the digit, and the counts of the zone."""
    somebody = sale.caller(Role.STAFF)
    zone = str(sale.zone("S"))

    async def said(code: str) -> tuple[str, tuple[int, ...]]:
        ordinal = sale.seated.ordinal(code)
        delta = await stream.next("delta")
        while ordinal not in delta.data["seats"]:
            delta = await stream.next("delta")
        digit = delta.data["statuses"][delta.data["seats"].index(ordinal)]
        (counts,) = (one for one in delta.data["zones"] if one["zone_id"] == zone)
        assert {one["zone_id"] for one in delta.data["zones"]} == {zone}
        return digit, tuple(counts[name] for name in COUNTS)

    async with watching(site, sale) as stream:
        await stream.next("snapshot")
        (held,) = await sale.hold(somebody, "S-A-3")
        assert await said("S-A-3") == ("1", (10, 9, 1, 0, 0))
        await booking.release(sale.services.lanes, sale.db, somebody, held.hold.id)
        assert await said("S-A-3") == ("0", (10, 10, 0, 0, 0))
        (held,) = await sale.hold(somebody, "S-B-3")
        assert await said("S-B-3") == ("1", (10, 9, 1, 0, 0))
        await sale.buy(somebody, held)
        assert await said("S-B-3") == ("2", (10, 9, 0, 1, 0))
        await sale.block("S-B-6", reason="a pillar")
        assert await said("S-B-6") == ("3", (10, 8, 0, 1, 1))
        await stream.until_it_shows(sale)


@pytest.mark.req("PUB-11")
async def test_places_without_a_seat_are_counted(site: Site, sale: Sale, live: Follower) -> None:
    """Of a zone that is sold by number the counts are the news."""
    async with watching(site, sale) as stream:
        await stream.next("snapshot")
        held = await sale.hold_places(sale.caller(), 4)
        delta = await stream.next("delta")
        assert (delta.data["seats"], delta.data["statuses"]) == ([], "")
        (zone,) = delta.data["zones"]
        assert (zone["zone_id"], zone["held"], zone["available"]) == (str(sale.zone("P")), 4, 296)
        assert held.hold.quantity == 4
        await stream.until_it_shows(sale)


@pytest.mark.req("SEC-08")
async def test_no_frame_says_who(site: Site, sale: Sale, live: Follower, db: Database) -> None:
    """Nothing of a person, a hold, a cart, a reason or a ticket in anything that is written, to whomever."""
    somebody = sale.caller(Role.STAFF)
    for who in (None, await make_person(db, sale.place, Role.OWNER)):
        async with watching(site, sale, who=who) as stream:
            await stream.next("snapshot")
            seat, other = await sale.hold(somebody, *(("S-A-1", "S-A-2") if who else ("S-B-3", "S-B-4")))
            places = await sale.hold_places(somebody, 2)
            _, tickets = await sale.buy(somebody, seat, places)
            await booking.release(sale.services.lanes, sale.db, somebody, other.hold.id)
            await stream.until_it_shows(sale)
            await stream.next("occupancy")
        written = "\n".join(stream.texts)
        secrets = [somebody.actor.user_id, seat.hold.id, other.hold.id, places.hold.id, sale.place.id, *tickets]
        secrets += [row["cart_token"] for row in await sale.rows() if row["cart_token"]]
        assert not [secret for secret in secrets if str(secret) in written], written
        assert "hold" not in written
        assert "user" not in written


@pytest.mark.req("SEC-07", "PUB-11")
async def test_who_sees_a_seat_held_may_ask_for_how_long(site: Site, sale: Sale, live: Follower, db: Database) -> None:
    """The map says that, the seat says how long, and neither says by whom."""
    anna, somebody = await make_person(db, sale.place), sale.caller(Role.STAFF)
    async with watching(site, sale, who=anna) as stream:
        await stream.next("snapshot")
        (held,) = await sale.hold(somebody, "S-A-3")
        delta = await stream.next("delta")
        ordinal = delta.data["seats"][0]
        assert (ordinal, delta.data["statuses"]) == (sale.seated.ordinal("S-A-3"), "1")
    seat_id = sale.seated.hall.seat_id(ordinal)
    answer = await site.client.get(f"/api/events/{sale.event.id}/seats/{seat_id}", headers=anna.headers)
    seat = answer.json()["data"]
    assert (seat["status"], seat["own_hold_id"]) == ("held", None)
    assert 0 < seat["expires_in_seconds"] <= (held.hold.expires_at - held.hold.now).total_seconds()
    assert str(held.hold.id) not in answer.text
    assert str(somebody.actor.user_id) not in answer.text


async def test_many_changes_of_a_moment_are_one_frame(here: Process, sale: Sale) -> None:
    """And what changes until the next one is due is the next one; a seat that changed often is there once."""
    seen = await look(here.maps, sale)
    codes = [code for code in sale.seated.hall.codes if code.startswith("S")]
    for code in codes:
        here.hot.take(sale.event.id, [changed(sale, code, 2)], [])
    await until(lambda: "delta" in seen.pipe.names())
    assert seen.pipe.model.frames[2].data["statuses"] == "1" * len(codes)
    for version in range(3, 60):
        here.hot.take(sale.event.id, [changed(sale, "S-A-1", version, version % 4)], [])
    await until(lambda: seen.pipe.names().count("delta") == 2)
    delta = seen.pipe.model.frames[-1].data
    assert (delta["seats"], delta["statuses"]) == ([sale.seated.ordinal("S-A-1")], str(59 % 4))
    await seen.leave()


def told_so_often(seen: Look, count: int) -> bool:
    return seen.pipe.names().count("delta") == count


async def test_frames_come_as_fast_while_the_count_is_due(here: Process, sale: Sale) -> None:
    """The last word on how full it is waits a second; what changes meanwhile does not wait for it."""
    seen = await look(here.maps, sale)
    began = time.monotonic()
    for version in range(2, 6):
        here.hot.take(sale.event.id, [changed(sale, "S-A-1", version)], [])
        await until(partial(told_so_often, seen, version - 1))
    assert time.monotonic() - began < module.OCCUPANCY_S  # 0.3 s, if nothing else is wanted of the machine
    await seen.leave()


async def test_the_more_look_the_fewer_frames(here: Process, sale: Sale, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten a second to a few, fewer to many, one a second to any number."""
    monkeypatch.setattr(module, "WRITES_PER_S", 20.0)
    looks: list[Look] = []
    gaps: dict[int, float] = {}
    version = 1
    for count in (1, 4, 10, 40):
        looks += [await look(here.maps, sale) for _ in range(count - len(looks))]
        scene = here.maps._scenes[sale.event.id]
        scene.told_at = time.monotonic()
        version += 1
        here.hot.take(sale.event.id, [changed(sale, "S-A-1", version)], [])
        gaps[count] = scene.due_at - scene.told_at
        assert scene.timer is not None
        scene.timer.cancel()
        here.maps._due(scene)
        assert scene.telling is not None
        await scene.telling
    assert gaps == pytest.approx({1: 0.1, 4: 0.2, 10: 0.5, 40: 1.0})
    for one in looks:
        assert one.pipe.model.version == looks[0].pipe.model.version
        await one.leave()


@pytest.mark.req("PUB-12")
async def test_how_full_it_is_is_told_once_a_second_and_at_last(here: Process, sale: Sale) -> None:
    """At most so often, however much changes, and the last one is right when all is quiet."""
    seen = await look(here.maps, sale)
    told: list[float] = []
    began, version = time.monotonic(), 1
    while time.monotonic() - began < 1.5:
        version += 1
        here.hot.take(sale.event.id, [changed(sale, "S-A-1", version)], [])
        if len(told) < seen.pipe.names().count("occupancy"):
            told.append(time.monotonic())
        await asyncio.sleep(0.01)
    here.hot.take(sale.event.id, [changed(sale, "S-A-2", 2, SOLD)], [])
    found = here.hot.peek(sale.event.id)
    assert found is not None
    await until(lambda: (seen.pipe.model.occupancy or {}).get("map_version") == found.map_version)
    last = seen.pipe.model.occupancy
    counts = found.counts()
    assert last is not None
    assert [last[name] for name in COUNTS] == [
        counts.capacity,
        counts.available,
        counts.held,
        counts.sold,
        counts.blocked,
    ]
    assert seen.pipe.names().count("occupancy") <= 4  # at 0, 1, 2 and perhaps 3 s
    assert all(later - sooner > 0.9 for sooner, later in itertools.pairwise(told))
    quiet = len(seen.pipe.texts)
    await asyncio.sleep(1.2)
    assert len(seen.pipe.texts) == quiet, "who has been told everything is told nothing"
    await seen.leave()


async def test_who_comes_while_something_waits_is_not_shown_it_twice(here: Process, sale: Sale) -> None:
    """Their first map has it already; the frame that brings it to the others passes them by, the next does not."""
    first = await look(here.maps, sale)
    here.hot.take(sale.event.id, [changed(sale, "S-A-1", 2)], [])
    await until(lambda: "delta" in first.pipe.names())
    here.hot.take(sale.event.id, [changed(sale, "S-A-1", 3, SOLD)], [])
    late = await look(here.maps, sale)
    assert late.pipe.model.version == first.pipe.model.version + 2
    await until(lambda: first.pipe.names().count("delta") == 2)
    here.hot.take(sale.event.id, [changed(sale, "S-A-2", 2)], [])
    await until(lambda: "delta" in late.pipe.names())
    assert late.pipe.model.statuses == first.pipe.model.statuses
    for one in (first, late):
        await one.leave()


# Coming back


async def test_who_has_this_very_map_is_not_sent_it_again(site: Site, sale: Sale, live: Follower) -> None:
    """What changes next is the next frame; who has an older one is sent a whole one."""
    async with watching(site, sale) as stream:
        old = (await stream.next("snapshot")).id
        await sale.hold(sale.caller(Role.STAFF), "S-A-1")
        await stream.next("delta")
        model = stream.model
    async with watching(site, sale, model=model) as stream:
        await sale.hold(sale.caller(Role.STAFF), "S-A-2")
        assert (await stream.next()).name == "delta"
        await stream.until_it_shows(sale)
    async with watching(site, sale, seen=old) as stream:
        assert (await stream.next()).name == "snapshot"
        assert stream.model.shows(await truth(sale))


async def test_who_was_ahead_of_this_process_is_caught_up_with(
    here: Process, there: Process, sale: Sale, owner_conn: Connection
) -> None:
    """Nobody has told this one yet: it asks PostgreSQL before it says anything. Others here learn of it by that."""
    stays, goes = await look(here.maps, sale), await look(there.maps, sale)
    ordinal = sale.seated.ordinal("S-A-1")
    await sell_seat(owner_conn, sale.event, ordinal)
    there.hot.take(sale.event.id, [changed(sale, "S-A-1", 2, SOLD)], [])
    await until(lambda: "delta" in goes.pipe.names())
    await goes.leave()
    came = await look(here.maps, sale, model=goes.pipe.model)
    assert came.pipe.names()[-1] == "event_status"  # it has this very map
    await until(lambda: "delta" in stays.pipe.names())
    assert (stays.pipe.model.statuses[ordinal], "resync" in stays.pipe.names()) == (SOLD, False)
    for one in (stays, came):
        await one.leave()


async def test_a_load_that_began_too_early_is_not_enough(
    here: Process, there: Process, sale: Sale, owner_conn: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody else's, which had read PostgreSQL before what the viewer has seen was committed."""
    goes = await look(there.maps, sale)
    await here.hot.load(sale.place.id, sale.event.id)
    has_read, may_go = asyncio.Event(), asyncio.Event()
    load_map = store.load_map

    async def slow(*values: Any) -> Any:
        found = await load_map(*values)
        has_read.set()
        await may_go.wait()
        return found

    monkeypatch.setattr(store, "load_map", slow)
    loading = asyncio.create_task(here.hot.load(sale.place.id, sale.event.id))
    await has_read.wait()
    await sell_seat(owner_conn, sale.event, sale.seated.ordinal("S-A-1"))
    there.hot.take(sale.event.id, [changed(sale, "S-A-1", 2, SOLD)], [])
    await until(lambda: "delta" in goes.pipe.names())
    await goes.leave()
    coming = asyncio.create_task(look(here.maps, sale, model=goes.pipe.model))
    await asyncio.sleep(0.05)
    may_go.set()
    await loading
    came = await coming
    assert came.pipe.names()[-1] == "event_status"
    assert came.pipe.model.shows(await truth(sale))
    await came.leave()


async def test_one_version_by_different_changes_is_not_the_same_map(
    here: Process, there: Process, sale: Sale, owner_conn: Connection
) -> None:
    """Each process knows of another hold: their sums are one, and who goes from one to the other lacks something."""
    stays, goes = await look(here.maps, sale), await look(there.maps, sale)
    for code, process_ in (("S-A-1", here), ("S-A-2", there)):
        await sell_seat(owner_conn, sale.event, sale.seated.ordinal(code))
        process_.hot.take(sale.event.id, [changed(sale, code, 2, SOLD)], [])
    await until(lambda: "delta" in stays.pipe.names() and "delta" in goes.pipe.names())
    assert stays.pipe.model.version == goes.pipe.model.version
    await goes.leave()
    came = await look(here.maps, sale, model=goes.pipe.model)
    assert came.pipe.model.shows(await truth(sale))
    for one in (stays, came):
        await one.leave()


# Maps made anew, and events that become something else


async def test_places_made_anew_replace_everything(site: Site, sale: Sale, live: Follower) -> None:
    """A map of another epoch: start over, and here is all of it."""
    async with watching(site, sale) as stream:
        before = await stream.next("snapshot")
        studio = sale.services.studio
        layout = small_layout({"zones.2.capacity": 100})
        pin = await next_pin(studio, sale.place.id, sale.seated.pin.layout_id, layout)
        await save(studio, sale.event, replace(sale.seated.wanted(), pin=pin))
        assert (await stream.next("resync", "delta")).name == "resync"
        after = await stream.next()
        assert after.name == "snapshot"
        assert after.data["epoch"] > before.data["epoch"]
        await stream.until_it_shows(sale)
    async with watching(site, sale, seen=before.id) as stream:
        assert (await stream.next()).name == "snapshot"
        assert stream.model.shows(await truth(sale))


async def test_places_that_are_changed_as_they_stand_are_a_change(site: Site, sale: Sale, live: Follower) -> None:
    """The event closes seats and a zone: all of it is loaded again, and what differs is told."""
    async with watching(site, sale) as stream:
        await stream.next("snapshot")
        overlay = Overlay(blocked_seats=("S-A-1", "S-A-2"), disabled_zones=("P",))
        await save(sale.services.studio, sale.event, sale.seated.wanted(overlay))
        await stream.until_it_shows(sale)
        assert bytes(stream.model.statuses[:3]) == bytes([BLOCKED, BLOCKED, AVAILABLE])
        assert stream.model.zones[str(sale.zone("P"))]["available"] == 0
        assert "resync" not in [frame.name for frame in stream.model.frames]


async def test_a_map_that_is_loaded_again_is_told_by_what_differs(
    here: Process, sale: Sale, owner_conn: Connection
) -> None:
    """Nothing, when nothing does: whoever makes a process load does not make it write to everybody."""
    seen = await look(here.maps, sale)
    for _ in range(3):
        await here.hot.load(sale.place.id, sale.event.id)
    bogus = await look(here.maps, sale, seen=At(10**6, 10**9, 1))
    await bogus.leave()
    await sell_seat(owner_conn, sale.event, 3)
    await take_places(owner_conn, sale.event, sale.zone("P"), held=1, sold=1)
    await here.hot.load(sale.place.id, sale.event.id)
    await until(lambda: "delta" in seen.pipe.names())
    assert seen.pipe.names()[:3] == ["event_status", "snapshot", "delta"]
    assert seen.pipe.model.frames[2].data["seats"] == [3]
    assert seen.pipe.model.shows(await truth(sale))
    await seen.leave()


async def test_what_was_never_so_is_taken_back(here: Process, sale: Sale) -> None:
    """A process that was told nonsense shows an older version afterwards, and says that it replaces everything."""
    seen = await look(here.maps, sale)
    here.hot.take(sale.event.id, [changed(sale, "S-A-1", 900)], [])
    await until(lambda: "delta" in seen.pipe.names())
    await here.hot.load(sale.place.id, sale.event.id)
    await until(lambda: "resync" in seen.pipe.names())
    assert seen.pipe.model.shows(await truth(sale))
    await seen.leave()


@pytest.mark.req("PUB-12")
@pytest.mark.parametrize(
    ("verbs", "status"), [((Verb.POSTPONE,), "postponed"), ((Verb.POSTPONE, Verb.CANCEL), "cancelled")]
)
async def test_what_becomes_of_the_event_is_told(
    site: Site, sale: Sale, live: Follower, verbs: tuple[Verb, ...], status: str
) -> None:
    """Whoever looks learns it without asking, and goes on looking; the last word is the right one."""
    async with watching(site, sale) as stream:
        for verb in verbs:
            await move(sale.services.studio, sale.place, sale.event, verb)
        await stream.until(lambda: stream.model.status == status)


@pytest.mark.req("PUB-12")
async def test_whatever_is_changed_of_the_event_is_told(site: Site, sale: Sale, live: Follower, db: Database) -> None:
    """Also what leaves its status as it is: another end of the sale, another date, another name."""
    owner = await make_person(db, sale.place, Role.OWNER)
    async with watching(site, sale) as stream:
        path, etag = f"/api/admin/events/{sale.event.id}", f'"{sale.event.version}"'
        changed = await site.client.patch(path, json={"name": "Another"}, headers={**owner.headers, "if-match": etag})
        assert changed.status_code == 200, changed.text
        version = changed.json()["data"]["version"]
        await stream.until(lambda: stream.model.event_version == version)
        assert stream.model.status == "published"


async def test_an_event_that_is_a_draft_again_is_shown_no_more(site: Site, sale: Sale, live: Follower) -> None:
    """Its places are gone, so there is no map to be told of: those who look are let go, others find nothing."""
    async with watching(site, sale) as stream:
        await stream.next("snapshot")
        await unpublish(sale.services.studio, sale.event)
        assert (await stream.next()).name == "bye"
        assert await stream.ends()
    await until(lambda: sale.services.maps.viewers_count == 0)
    assert sale.services.maps._scenes == {}


async def test_what_cannot_be_read_is_read_later(
    here: Process, sale: Sale, owner_conn: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PostgreSQL is away when a map is made anew: nobody asks for it again but those who look."""
    monkeypatch.setattr(module, "TEND_S", 0.05)
    seen = await look(here.maps, sale)
    load_map, is_away, asked = store.load_map, True, 0

    async def away(*values: Any) -> Any:
        nonlocal asked
        asked += 1
        if is_away:
            raise Busy
        return await load_map(*values)

    monkeypatch.setattr(store, "load_map", away)
    await sell_seat(owner_conn, sale.event, 0)
    here.hot.reload(sale.event.id)
    await until(lambda: asked > 2)
    assert here.hot.peek(sale.event.id) is None
    is_away = False
    await until(lambda: "delta" in seen.pipe.names())
    assert seen.pipe.model.shows(await truth(sale))
    await seen.leave()


async def test_a_status_that_cannot_be_read_is_read_later(
    here: Process, sale: Sale, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And of two that are read one after the other the last one stays."""
    monkeypatch.setattr(module, "TEND_S", 0.05)
    seen = await look(here.maps, sale)
    status_now, tries = Catalogue.status_now, 0

    async def away(self: Catalogue, *values: Any) -> Now:
        nonlocal tries
        tries += 1
        if tries < 3:
            raise Busy if tries == 1 else OSError
        return await status_now(self, *values)

    monkeypatch.setattr(Catalogue, "status_now", away)
    await move(services.studio, sale.place, sale.event, Verb.POSTPONE)
    here.hot.reload(sale.event.id)
    await until(lambda: seen.pipe.model.status == "postponed")
    await seen.leave()


# Limits


async def test_streams_are_limited_and_room_is_made(here: Process, sale: Sale, monkeypatch: pytest.MonkeyPatch) -> None:
    """For a person, for a network, for the process; whoever leaves makes room; whoever is refused takes none."""
    anna = new_id()

    async def refused(**who: Any) -> bool:
        try:
            await (await look(here.maps, sale, **who)).leave()
        except TooManyStreams:
            return True
        return False

    mine = [await look(here.maps, sale, user_id=anna) for _ in range(module.VIEWERS_PER_USER_MAX)]
    assert await refused(user_id=anna)
    assert not await refused(user_id=new_id())
    await mine.pop().leave()
    assert not await refused(user_id=anna)
    near = [await look(here.maps, sale, ip="10.0.0.1") for _ in range(3)]
    assert [await refused(ip=one) for one in ("10.0.0.255", "10.0.1.0", "9.255.255.255")] == [True, False, False]
    await near.pop().leave()
    assert not await refused(ip="10.0.0.1")
    monkeypatch.setattr(module, "VIEWERS_MAX", here.maps.viewers_count)
    assert await refused()
    for one in (*mine, *near):
        await one.leave()
    assert not await refused()
    with pytest.raises(EventNotFound):
        await here.maps.show(
            Pipe(), sale.place.id, new_id(), user_id=anna, ip="10.0.0.1", seen=None, begin=lambda: None
        )
    assert (here.maps._by_user, here.maps._by_network, here.maps.viewers_count) == ({}, {}, 0)


async def test_too_many_streams_are_told_when_to_come_back(
    site: Site, services: Services, sale: Sale, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "VIEWERS_MAX", 0)
    answer = await site.client.get(path_of(sale))
    assert (answer.status_code, answer.json()["error"]) == (429, "too_many_streams")
    assert int(answer.headers["retry-after"]) == 5


async def test_one_who_does_not_read_is_let_go_and_the_others_do_not_notice(
    site: Site, services: Services, sale: Sale, live: Follower, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What waits for somebody is bounded; whoever reads goes on as before."""
    monkeypatch.setattr(module, "FRAMES_PER_S", 1_000.0)
    monkeypatch.setattr(module, "UNREAD_BYTES_MAX", 50_000)
    dropped = metrics.MAP_VIEWERS_DROPPED._value.get()
    with socket.socket() as deaf:
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        deaf.connect(("127.0.0.1", int(site.address.rsplit(":", 1)[1])))
        deaf.sendall(f"GET {path_of(sale)} HTTP/1.1\r\nhost: x\r\n\r\n".encode())
        await until(lambda: services.maps.viewers_count == 1)
        async with watching(site, sale) as stream:
            await stream.next("snapshot")
            scene = services.maps._scenes[sale.event.id]
            version, most = 1, 0
            padding = b": " + b"x" * 20_000 + b"\n\n"
            while services.maps.viewers_count == 2:
                version += 1
                services.availability.take(sale.event.id, [changed(sale, "S-A-1", version)], [])
                await services.maps._write_all(tuple(scene.viewers), padding)
                most = max(most, *(viewer.pipe.unsent_bytes for viewer in scene.viewers))
                await stream.next("delta")
            assert most < 50_000 + 3 * len(padding)
            found = services.availability.peek(sale.event.id)
            assert found is not None
            await stream.until(lambda: stream.model.shows(found))
    assert metrics.MAP_VIEWERS_DROPPED._value.get() - dropped >= 1
    services.availability.reload(sale.event.id)


# Signs of life, and the end


async def test_signs_of_life_are_shown_and_sessions_live_by_looking(
    here: Process, sale: Sale, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One session that cannot be asked for, or takes for ever, keeps nobody from anything."""
    monkeypatch.setattr(module, "TEND_S", 0.02)
    monkeypatch.setattr(module, "HEARTBEAT_S", 0.02)
    stays_count = 0
    for_ever = asyncio.Event()

    async def stay() -> None:
        nonlocal stays_count
        stays_count += 1

    async def fail() -> None:
        raise Busy

    async def hang() -> None:
        await for_ever.wait()

    looks = [await look(here.maps, sale, stay=one) for one in (fail, stay)]
    await until(lambda: stays_count > 1)
    looks.append(await look(here.maps, sale, stay=hang))
    before = looks[0].pipe.beats_count
    await until(lambda: looks[0].pipe.beats_count > before + 3 * module.BEATS_PER_STAY)
    for_ever.set()
    for one in looks:
        await one.leave()


async def test_a_session_does_not_end_while_its_person_looks(
    site: Site, services: Services, sale: Sale, db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The beat of the process is a use of the session."""
    monkeypatch.setattr(module, "HEARTBEAT_S", 0.02)
    anna = await make_person(db, sale.place)
    async with watching(site, sale, who=anna) as stream:
        (known,) = (one for one in services.sessions._known.values() if one.actor.user_id == anna.user_id)
        before = known.idle_from
        while known.idle_from == before:
            await stream.text()


async def test_the_last_word_of_a_process_is_bye(services: Services, sale: Sale) -> None:
    """Also to one who comes at that very moment: nobody is left without a word."""
    async with process(services, NOBODY) as (own, other), watching(other, sale) as stream:
        await stream.next("snapshot")
        own.maps.close()
        assert (await stream.next()).name == "bye"
        assert await stream.ends()
        answer = await other.client.get(path_of(sale))
        assert answer.status_code == 429


async def test_who_comes_while_the_process_ends_is_sent_away(
    here: Process, sale: Sale, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their map was still being loaded when the others were told."""
    status_now = Catalogue.status_now
    is_asked, may_go = asyncio.Event(), asyncio.Event()

    async def slow(self: Catalogue, *values: Any) -> Now:
        is_asked.set()
        await may_go.wait()
        return await status_now(self, *values)

    monkeypatch.setattr(Catalogue, "status_now", slow)
    coming = asyncio.create_task(look(here.maps, sale))
    await is_asked.wait()
    here.maps.close()
    may_go.set()
    with pytest.raises(TooManyStreams):
        await coming


async def test_nothing_is_left_when_everybody_has_gone(
    site: Site, services: Services, sale: Sale, db: Database
) -> None:
    """Scenes, pins, counters, tasks; however they went."""
    anna = await make_person(db, sale.place)
    maps = services.maps
    gauge = metrics.MAP_VIEWERS._value.get()
    async with contextlib.AsyncExitStack() as open_:
        for who in (None, anna, anna):
            await open_.enter_async_context(watching(site, sale, who=who))
        assert (maps.viewers_count, services.availability._pinned) == (3, {sale.event.id: 1})
        assert (maps._by_user[anna.user_id], maps._by_network["127.0.0.0/24"]) == (2, 3)
        await sale.hold(sale.caller(), "S-A-1")
    await until(lambda: maps.viewers_count == 0)
    await until(lambda: not maps._tasks)
    assert (maps._scenes, maps._by_user, maps._by_network, services.availability._pinned) == ({}, {}, {}, {})
    assert metrics.MAP_VIEWERS._value.get() == gauge


async def test_a_map_that_is_looked_at_is_kept(db: Database, services: Services, sale: Sale) -> None:
    """However little room there is for maps; when nobody looks it may go."""
    other = await on_sale(services, sale.place)
    tight = Process(db, services.redis)
    tight.hot._bytes_max = 1
    await asyncio.sleep(0)
    seen = await look(tight.maps, sale)
    await tight.hot.load(other.place.id, other.event.id)
    tight.hot.take(sale.event.id, [changed(sale, "S-A-1", 2)], [])
    await until(lambda: "delta" in seen.pipe.names())
    await seen.leave()
    await tight.hot.load(other.place.id, other.event.id)
    assert tight.hot.peek(sale.event.id) is None
    await tight.end()


# Two processes


@pytest.fixture(params=["with Redis", "without Redis"])
async def pair(
    request: pytest.FixtureRequest, services: Services, redis_url: str
) -> AsyncIterator[list[tuple[Services, Site]]]:
    """Two web processes, and a worker that tells them if there is a Redis."""
    url = redis_url if request.param == "with Redis" else NOBODY
    stop = asyncio.Event()
    async with RedisLink(url, connect_timeout_s=1, call_timeout_s=1, probe_every_s=0.05) as link:
        projection = Projection(link)
        availability = Availability(services.db, projection)
        dispatcher = Dispatcher(services.db, availability, projection)
        telling = asyncio.create_task(Loop(name="tell", tick=dispatcher.tick, pace_s=0.05).run(stop))
        async with process(services, url) as first, process(services, url) as second:
            yield [first, second]
        stop.set()
        await telling
        await availability.close()


@pytest.mark.req("PUB-11", "TEN-10")
async def test_viewers_of_two_processes_see_the_same(pair: list[tuple[Services, Site]], sale: Sale) -> None:
    """People hold, give back and buy at both; viewers of both, and one who goes to and fro, end with the same map."""
    sales = [replace(sale, services=own) for own, _ in pair]
    chance = random.Random(4)
    codes = [code for code in sale.seated.hall.codes if code.startswith("S")]
    wanderer = Model()

    async def shop() -> None:
        for code in codes:
            somebody = sale.caller(Role.STAFF)
            at = chance.choice(sales)
            (held,) = await at.hold(somebody, code)
            if chance.random() < 0.5:
                await booking.release(at.services.lanes, at.db, somebody, held.hold.id)
            else:
                await at.buy(somebody, held)
            await at.hold_places(sale.caller(), 2)

    async with watching(pair[0][1], sale) as one, watching(pair[1][1], sale) as other:
        shopping = asyncio.create_task(shop())
        number = 0
        while not shopping.done():
            number += 1
            async with watching(pair[number % 2][1], sale, model=wanderer) as stream:
                await stream.until(lambda: wanderer.version >= 0)
                await asyncio.sleep(0.02)
        await shopping
        async with watching(pair[0][1], sale, model=wanderer) as stream:
            async with asyncio.timeout(WAIT_S):
                await asyncio.gather(*(viewer.until_it_shows(sale) for viewer in (one, other, stream)))


# A client against any series of changes


@dataclass
class Chaos:
    """Changes that are told late, twice and in any order; loads; people who come, go, and come back elsewhere."""

    processes: tuple[Process, Process]
    sale: Sale
    owner: Connection
    chance: random.Random
    versions: dict[str, int]
    zone_version: int
    untold: tuple[list[SeatChange | ZoneChange], ...] = ([], [])
    looks: list[Look] = field(default_factory=list)
    gone: list[Model] = field(default_factory=list)

    async def step(self) -> None:
        process_ = self.chance.choice(self.processes)
        steps = {self.change: 35, self.tell: 35, self.load: 5, self.reload: 3, self.come: 12, self.leave: 10}
        (act,) = self.chance.choices(list(steps), list(steps.values()))
        await act(process_)
        await asyncio.sleep(self.chance.choice((0, 0, 0.006)))

    async def change(self, _: Process) -> None:
        """Something is committed; nobody has been told."""
        news = await (self._change_zone() if self.chance.random() < 0.2 else self._change_seat())
        for waiting in self.untold:
            waiting.extend([news] * self.chance.choice((1, 1, 2)))

    async def _change_zone(self) -> ZoneChange:
        self.zone_version += 1
        held, sold = self.chance.randrange(9), self.chance.randrange(9)
        zone_id = self.sale.zone("P")
        await take_places(self.owner, self.sale.event, zone_id, held=held, sold=sold)
        return ZoneChange(zone_id=zone_id, version=self.zone_version, held=held, sold=sold)

    async def _change_seat(self) -> SeatChange:
        acts: dict[int, Callable[..., Any]] = {HELD: hold_seat, SOLD: sell_seat, BLOCKED: block_seat}
        code = self.chance.choice(list(self.versions))
        is_free = (await self.sale.row(code))["status"] == "available"
        status = self.chance.choice(list(acts)) if is_free else AVAILABLE
        await acts.get(status, free_seat)(self.owner, self.sale.event, self.sale.seated.ordinal(code))
        self.versions[code] += 1
        return changed(self.sale, code, self.versions[code], status)

    async def tell(self, process_: Process) -> None:
        waiting = self.untold[self.processes.index(process_)]
        if waiting:
            news = waiting.pop(self.chance.randrange(len(waiting)))
            seats = [news] if isinstance(news, SeatChange) else []
            zones = [news] if isinstance(news, ZoneChange) else []
            process_.hot.take(self.sale.event.id, seats, zones)

    async def load(self, process_: Process) -> None:
        await process_.hot.load(self.sale.place.id, self.sale.event.id)

    async def reload(self, process_: Process) -> None:
        process_.hot.reload(self.sale.event.id)

    async def come(self, process_: Process) -> None:
        is_back = bool(self.gone) and self.chance.random() < 0.7
        model = self.gone.pop(self.chance.randrange(len(self.gone))) if is_back else None
        self.looks.append(await look(process_.maps, self.sale, model=model))

    async def leave(self, _: Process) -> None:
        if self.looks:
            one = self.looks.pop(self.chance.randrange(len(self.looks)))
            await one.leave()
            self.gone.append(one.pipe.model)


@pytest.mark.req("PUB-11")
@pytest.mark.parametrize("seed", range(6))
async def test_whatever_happens_in_whatever_order_everybody_ends_with_the_same_map(
    here: Process, there: Process, sale: Sale, owner_conn: Connection, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody ever goes back, and when everything has been told everybody shows what PostgreSQL has."""
    monkeypatch.setattr(module, "FRAMES_PER_S", 200.0)
    known = await truth(sale)
    chaos = Chaos(
        processes=(here, there),
        sale=sale,
        owner=owner_conn,
        chance=random.Random(seed),
        versions=dict(zip(sale.seated.hall.codes, known.versions, strict=True)),
        zone_version=next(zone.version for zone in known.zones if zone.zone_id == sale.zone("P")),
        untold=([], []),
    )
    for _ in range(120):
        await chaos.step()
    while chaos.gone:
        await chaos.come(here)
    for process_, waiting in zip(chaos.processes, chaos.untold, strict=True):
        while waiting:
            await chaos.tell(process_)
    last = await truth(sale)
    await until(lambda: all(one.pipe.model.shows(last) for one in chaos.looks))
    assert chaos.looks
    for one in chaos.looks:
        await one.leave()
