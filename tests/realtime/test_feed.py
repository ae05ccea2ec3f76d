"""The organization's feed: every committed change, once and in order, to whoever may watch."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import httpx2
import pytest

from tests.make.accounts import Person, make_organization, make_person
from tests.make.events import call_of, carry_out, make_event, make_gate, make_venue, move, soon
from tests.make.holds import hold_directly, on_sale
from tests.make.web import Site
from tests.realtime.test_maps import following
from voelgoed.accounts.model import Role
from voelgoed.db import Database
from voelgoed.events import usecases
from voelgoed.events.model import GateStatus, NewDate, Order, Verb
from voelgoed.http.routes import feed as feed_route
from voelgoed.ids import new_id
from voelgoed.journal.model import Position
from voelgoed.realtime import feed as feeds
from voelgoed.realtime.feed import Feed, TooManyStreams, position_of
from voelgoed.redis import RedisLink
from voelgoed.wiring import Services

WAIT_S = 20


@dataclass(frozen=True, slots=True)
class Frame:
    """One event of a stream."""

    name: str
    data: dict[str, object]
    id: str | None


class Stream:
    """An open stream, read frame by frame."""

    def __init__(self, response: httpx2.Response) -> None:
        self._lines = response.aiter_lines()

    async def next(self) -> Frame:
        """The next frame; signs of life are passed over."""
        fields: dict[str, str] = {}
        while True:
            line = await asyncio.wait_for(anext(self._lines), WAIT_S)
            if line.startswith(":"):
                continue
            if not line and fields:
                return Frame(fields["event"], json.loads(fields["data"]), fields.get("id"))
            name, _, value = line.partition(": ")
            if line:
                fields[name] = value

    async def next_line(self) -> str:
        return await asyncio.wait_for(anext(self._lines), WAIT_S)

    async def ends(self) -> bool:
        """Whether nothing more comes."""
        try:
            while True:
                await asyncio.wait_for(anext(self._lines), WAIT_S)
        except StopAsyncIteration:
            return True


@asynccontextmanager
async def watching(site: Site, person: Person, *, after: str | None = None) -> AsyncIterator[Stream]:
    """A stream of which the greeting has come."""
    headers = person.headers | ({"last-event-id": after} if after else {})
    async with site.client.stream("GET", "/api/admin/feed", headers=headers) as response:
        assert response.status_code == 200, await response.aread()
        assert response.headers["content-type"].startswith("text/event-stream")
        stream = Stream(response)
        assert (await stream.next()).name == "hello"
        yield stream


@pytest.fixture
async def staff(db: Database) -> Person:
    return await make_person(db, role=Role.STAFF)


@pytest.mark.req("PUB-04", "PUB-13", "TEST-37")
async def test_every_status_change_is_told_in_order(site: Site, db: Database, staff: Person) -> None:
    """One frame for each verb, with what the followers of an event need to know, and not who did it or why."""
    place = staff.organization
    event = await make_event(db, place)
    async with watching(site, staff) as stream:
        for verb in (Verb.PUBLISH, Verb.POSTPONE):
            await move(db, place.id, event.id, verb)
        new_start = soon(days=60)
        await move(db, place.id, event.id, Verb.RESCHEDULE, new_date=NewDate(start_at=new_start))
        for verb in (Verb.GO_LIVE, Verb.END, Verb.ARCHIVE):
            await move(db, place.id, event.id, verb)
        frames = [frame for frame in [await stream.next()] if frame.data["version"] != 1]
        while len(frames) < 6:  # a stream begins now or a moment before: the making may be told as well
            frames.append(await stream.next())
    steps = [(frame.data["old_status"], frame.data["new_status"]) for frame in frames]
    assert steps == [
        ("draft", "published"),
        ("published", "postponed"),
        ("postponed", "postponed"),
        ("postponed", "live"),
        ("live", "ended"),
        ("ended", "archived"),
    ]
    assert [frame.data["version"] for frame in frames] == [2, 3, 4, 5, 6, 7]
    assert [frame.name for frame in frames] == [frame.data["kind"] for frame in frames]
    assert frames[2].name == "event_rescheduled"
    assert frames[2].data["rescheduled_at"] == new_start.isoformat()
    assert {frame.data["event_id"] for frame in frames} == {str(event.id)}
    assert all("reason" not in frame.data and "actor_type" not in frame.data for frame in frames)


async def test_venues_and_gates_are_told_too(site: Site, db: Database, services: Services, staff: Person) -> None:
    """Whoever looks at a venue sees its gates open."""
    venue = await make_venue(db, staff.organization)
    gate = await make_gate(db, venue)
    owner = call_of(staff.organization)
    async with watching(site, staff) as stream:
        await usecases.update_venue(
            services.db, services.catalogue, owner, venue.id, {"name": "The Granary"}, version=None
        )
        await usecases.set_gate_status(services.db, owner, gate.id, GateStatus.OPEN, reason=None)
        first, second = await stream.next(), await stream.next()
    assert (first.name, first.data["venue_id"]) == ("venue_updated", str(venue.id))
    assert (second.name, second.data["gate_id"]) == ("gate_updated", str(gate.id))


async def test_nobody_else_is_told(site: Site, db: Database, staff: Person) -> None:
    """Another organization's changes pass by; the next own one is the next frame."""
    elsewhere = await make_organization(db)
    async with watching(site, staff) as stream:
        await make_event(db, elsewhere)
        mine = await make_event(db, staff.organization)
        assert (await stream.next()).data["event_id"] == str(mine.id)


async def test_a_client_that_comes_back_misses_nothing(site: Site, db: Database, staff: Person) -> None:
    """With the id of its last frame it gets what happened in between, each once, then what happens next."""
    place = staff.organization
    async with watching(site, staff) as stream:
        await make_event(db, place)
        last = await stream.next()
    missed = [await make_event(db, place) for _ in range(3)]
    async with watching(site, staff, after=last.id) as stream:
        later = await make_event(db, place)
        told = [(await stream.next()).data["event_id"] for _ in range(4)]
    assert told == [str(event.id) for event in [*missed, later]]


@pytest.mark.parametrize("place", ["9223372036854775807-1", "9223372036854775806-9223372036854775807"])
async def test_a_place_that_is_not_behind_is_told_to_start_over(site: Site, staff: Person, place: str) -> None:
    """As after a restore: what the client knows is of another world."""
    async with watching(site, staff, after=place) as stream:
        assert (await stream.next()).name == "resync"


async def test_too_much_to_tell_is_told_to_start_over(
    site: Site, db: Database, staff: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was missed is read in a bounded number of steps."""
    monkeypatch.setattr(feeds, "BACKLOG_READS_MAX", 0)
    async with watching(site, staff, after="1-1") as stream:
        assert (await stream.next()).name == "resync"


@pytest.mark.parametrize("said", ["", "-", "1", "1-", "-1", "x-y", "1-2-3", "²-1", "9" * 25 + "-1"])
def test_a_place_of_somebody_elses_making_is_none(said: str) -> None:
    assert position_of(said) is None


async def test_it_works_without_redis(db: Database, services: Services) -> None:
    """Nobody wakes the feed, so it looks by itself."""
    place = await make_organization(db)
    stop = asyncio.Event()
    async with RedisLink("redis://127.0.0.1:1", connect_timeout_s=0.05, call_timeout_s=0.05) as away:
        feed = Feed(db, away, services.availability, pace_s=0.02)
        running = asyncio.create_task(feed.run(stop))
        watcher = await feed.open(place.id, new_id())
        assert b"event: hello" in (await watcher.next_frame() or b"")
        event = await make_event(db, place)
        frame = await asyncio.wait_for(watcher.next_frame(), WAIT_S)
        assert str(event.id).encode() in (frame or b"")
        feed.close(watcher)
        stop.set()
        await running


async def test_a_message_wakes_it(db: Database, services: Services, redis_url: str) -> None:
    """With a pace of an hour only the message of the change itself can have brought the frame."""
    place = await make_organization(db)
    event = await make_event(db, place)
    stop = asyncio.Event()
    async with RedisLink(redis_url, connect_timeout_s=1, call_timeout_s=1) as link:
        feed = Feed(db, link, services.availability, pace_s=3600)
        running = asyncio.create_task(feed.run(stop))
        watcher = await feed.open(place.id, new_id())
        await watcher.next_frame()
        while await link.call(lambda client: client.pubsub_numpat()) == 0:
            await asyncio.sleep(0)
        await carry_out(services.db, services.catalogue, call_of(place), event.id, Order(verb=Verb.PUBLISH))
        frame = await asyncio.wait_for(watcher.next_frame(), WAIT_S)
        if b"event_created" in (frame or b""):  # a stream begins now or a moment before
            frame = await asyncio.wait_for(watcher.next_frame(), WAIT_S)
        assert b"event_status_changed" in (frame or b"")
        feed.close(watcher)
        stop.set()
        await running


async def test_a_slow_reader_is_told_to_start_over_and_let_go(
    db: Database, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Frames wait in a bounded queue; beyond it they are dropped, and the reader knows."""
    monkeypatch.setattr(feeds, "FRAMES_WAITING_MAX", 3)
    place = await make_organization(db)
    watcher = await services.feed.open(place.id, new_id())
    try:
        for number in range(5):
            watcher.give(b"event: x\ndata: {}\n\n", Position(xid=7, seq=number))
        assert await watcher.next_frame() == b"id: 7-2\nevent: resync\ndata: {}\n\n"
        assert await watcher.next_frame() is None
    finally:
        services.feed.close(watcher)


async def test_streams_are_limited(services: Services, db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """For one person and for the process; whoever closes one may open another."""
    place = await make_organization(db)
    feed, person = Feed(db, services.redis, services.availability), new_id()
    opened = [await feed.open(place.id, person) for _ in range(feeds.WATCHERS_PER_ACTOR_MAX)]
    with pytest.raises(TooManyStreams):
        await feed.open(place.id, person)
    feed.close(opened.pop())
    opened.append(await feed.open(place.id, person))
    monkeypatch.setattr(feeds, "WATCHERS_MAX", len(opened))
    with pytest.raises(TooManyStreams):
        await feed.open(place.id, new_id())


async def test_a_stream_ends_with_the_session(
    site: Site, db: Database, services: Services, staff: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between frames it is looked whether the watcher may still watch; while they may, a sign of life is sent."""
    monkeypatch.setattr(feed_route, "HEARTBEAT_S", 0.02)
    async with watching(site, staff) as stream:
        assert await stream.next_line() == ": still here"
        assert (await site.client.post("/api/auth/logout", headers=staff.headers)).status_code == 204
        assert await stream.ends()


async def test_a_busy_stream_ends_with_the_session_too(
    site: Site, db: Database, staff: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However much there is to tell: whoever was signed out is told nothing more."""
    monkeypatch.setattr(feed_route, "HEARTBEAT_S", 0.2)
    place, over = staff.organization, asyncio.Event()

    async def keep_busy() -> None:
        while not over.is_set():
            await make_event(db, place)

    async with watching(site, staff) as stream:
        busy = asyncio.create_task(keep_busy())
        assert (await stream.next()).name == "event_created"
        assert (await site.client.post("/api/auth/logout", headers=staff.headers)).status_code == 204
        assert await stream.ends()
        over.set()
        await busy


async def test_a_stream_that_was_cut_among_what_it_missed_goes_on_there(
    site: Site, db: Database, staff: Person
) -> None:
    """The greeting has the place the client came with: coming back with it brings everything again."""
    place = staff.organization
    async with watching(site, staff) as stream:
        await make_event(db, place)
        last = await stream.next()
    missed = [str((await make_event(db, place)).id) for _ in range(2)]
    headers = staff.headers | {"last-event-id": str(last.id)}
    async with site.client.stream("GET", "/api/admin/feed", headers=headers) as response:
        hello = await Stream(response).next()
    assert hello.id == last.id
    async with watching(site, staff, after=hello.id) as stream:
        assert [(await stream.next()).data["event_id"] for _ in range(2)] == missed


async def test_more_than_a_stream_can_hold_is_told_to_start_over_from_now(
    site: Site, db: Database, staff: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once: with the place of that word the client is up to date."""
    monkeypatch.setattr(feeds, "FRAMES_WAITING_MAX", 4)
    place = staff.organization
    async with watching(site, staff) as stream:
        await make_event(db, place)
        last = await stream.next()
    for _ in range(6):
        await make_event(db, place)
    async with watching(site, staff, after=last.id) as stream:
        told = await stream.next()
    assert (told.name, told.id is not None) == ("resync", True)
    async with watching(site, staff, after=told.id) as stream:
        later = await make_event(db, place)
        assert (await stream.next()).data["event_id"] == str(later.id)


async def test_a_closed_stream_is_forgotten(site: Site, services: Services, staff: Person) -> None:
    """Nothing is kept for somebody who left."""
    before = len(services.feed._watchers)
    async with watching(site, staff):
        assert len(services.feed._watchers) == before + 1
    deadline = asyncio.get_running_loop().time() + WAIT_S
    while len(services.feed._watchers) > before:
        assert asyncio.get_running_loop().time() < deadline
        await asyncio.sleep(0.01)


async def test_the_last_word_of_a_process_is_bye(
    db: Database, services: Services, settings: object, staff: Person
) -> None:
    """Streams are ended, not cut, when a process stops."""
    stop = asyncio.Event()
    feed = Feed(db, services.redis, services.availability)
    running = asyncio.create_task(feed.run(stop))
    watcher = await feed.open(staff.organization.id, staff.user_id)
    assert b"hello" in (await watcher.next_frame() or b"")
    stop.set()
    await running
    assert await watcher.next_frame() == b"event: bye\ndata: {}\n\n"
    assert await watcher.next_frame() is None
    with pytest.raises(TooManyStreams):
        await feed.open(staff.organization.id, staff.user_id)


@pytest.mark.parametrize(("role", "status"), [(Role.SCANNER, 200), (Role.STAFF, 200), (Role.CUSTOMER, 403)])
async def test_who_may_watch(site: Site, db: Database, role: Role, status: int) -> None:
    person = await make_person(db, role=role)
    async with site.client.stream("GET", "/api/admin/feed", headers=person.headers) as response:
        assert response.status_code == status


async def test_a_head_does_not_wait_for_the_end(site: Site, staff: Person) -> None:
    answer = await site.client.head("/api/admin/feed", headers=staff.headers)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/event-stream"


async def test_how_full_a_sale_is_comes_by_itself(site: Site, services: Services, db: Database, staff: Person) -> None:
    """Counts of what has moved, also where this process had no map of it; nobody else's, and no place to go on from."""
    sale = await on_sale(services, staff.organization)
    stranger = await make_person(db, role=Role.STAFF)
    async with following(services), watching(site, staff) as stream, watching(site, stranger) as other:
        assert services.availability.peek(sale.event.id) is None
        await hold_directly(db, sale.seated, new_id(), "S-A-1", "S-A-2")
        while (frame := await stream.next()).name != "occupancy":
            pass
        assert frame.id is None
        assert frame.data.pop("epoch") is not None
        assert frame.data.pop("map_version") is not None
        counts = {"total": 313, "available": 311, "held": 2, "sold": 0, "blocked": 0}
        assert frame.data == {"event_id": str(sale.event.id), **counts}
        await sale.block("S-A-1")
        while (frame := await stream.next()).data.get("blocked") != 1:
            pass
        assert (frame.data["held"], frame.data["available"]) == (1, 311)
        await make_event(db, stranger.organization)
        assert (await other.next()).name == "event_created"


async def test_prices_and_what_seating_may_be_are_told(site: Site, db: Database) -> None:
    """An open seating page follows them; what they are now is for those who may read it."""
    owner = await make_person(db, role=Role.OWNER)
    price = {"name": "Adult", "currency": "ZAR", "amount_minor": 45_000}
    async with watching(site, owner) as stream:
        made = await site.client.post("/api/admin/pricing-rules", headers=owner.headers, json=price)
        assert made.status_code == 201, made.text
        frame = await stream.next()
        assert (frame.name, frame.data["pricing_rule_id"]) == ("pricing_rule_created", made.json()["data"]["id"])
        assert "amount_minor" not in frame.data
        now = (await site.client.get("/api/admin/seating-policy", headers=owner.headers)).json()["data"]
        headers = owner.headers | {"If-Match": f'"{now["version"]}"'}
        said = await site.client.patch(
            "/api/admin/seating-policy", headers=headers, json={"values": {"max_seats_per_booking": 4}}
        )
        assert said.status_code == 200, said.text
        assert (await stream.next()).name == "seating_policy_changed"
