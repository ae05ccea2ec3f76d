"""What the public reads: hot, warm and cold say the same, here and in other processes, with Redis and without."""

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest
from redis.asyncio import Redis

from tests.make.accounts import make_organization
from tests.make.events import call_of, carry_out, catalogue_of, make_event, make_venue, soon
from voelgoed.accounts.model import Call, Organization
from voelgoed.breaker import State
from voelgoed.cache import INVALIDATE_CHANNEL, Cache
from voelgoed.db import Database
from voelgoed.embedded import Embedded, running
from voelgoed.events import catalogue as module, timekeeper, usecases
from voelgoed.events.catalogue import TOPICS, Catalogue, event_topic, organization_topic
from voelgoed.events.model import Detail, Event, NewDate, NewEvent, Order, Summary, Venue, Verb
from voelgoed.events.refusals import EventNotFound
from voelgoed.redis import RedisLink

WAIT_S = 15.0


@pytest.fixture
async def link(redis_url: str) -> AsyncIterator[RedisLink]:
    async with RedisLink(redis_url, call_timeout_s=2, connect_timeout_s=2) as opened:
        yield opened


@pytest.fixture
async def place(db: Database) -> Organization:
    return await make_organization(db)


def key(place: Organization, name: str) -> str:
    return f"voelgoed:org:{place.id}:events:{name}"


async def settled(link: RedisLink, name: str) -> Any:
    """What stands in Redis under a key once it has been written behind the reader's back: its version and its value."""
    async with asyncio.timeout(WAIT_S):
        while (stored := await link.client.get(name)) is None:
            await asyncio.sleep(0.005)
    assert isinstance(stored, bytes)
    return msgspec.msgpack.decode(stored)


async def until(check: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(WAIT_S):
        while not await check():
            await asyncio.sleep(0.01)


@dataclass(slots=True)
class Scene:
    """An organization with an event, and two processes that show it."""

    db: Database
    place: Organization
    venue: Venue
    event: Event
    here: Catalogue
    there: Catalogue

    @property
    def call(self) -> Call:
        return call_of(self.place)

    async def move(self, verb: Verb, **fields: Any) -> None:
        order = Order(verb=verb, reason="in a test", **fields)
        self.event = (await carry_out(self.db, self.here, self.call, self.event.id, order)).event

    async def change(self, **fields: Any) -> None:
        self.event = (
            await usecases.update_event(self.db, self.here, self.call, self.event.id, fields, version=None)
        ).event


async def seen_by(catalogue: Catalogue, scene: Scene) -> tuple[object, ...]:
    """All that a process shows of the event: in the list, in the venue's list, by its slug and by its id."""
    place = scene.place.id
    listed = await catalogue.upcoming(place)
    at_venue = await catalogue.upcoming(place, venue_id=scene.event.venue_id)

    async def found(asked: Awaitable[Any]) -> Any:
        try:
            return await asked
        except EventNotFound:
            return None

    by_slug = await found(catalogue.find(place, scene.event.slug))
    by_id = await found(catalogue.detail(scene.event.id))
    return tuple(listed.items), tuple(at_venue.items), by_slug, by_id and by_id[1]


async def truth(scene: Scene, link: RedisLink) -> tuple[object, ...]:
    """The same, read by somebody who has nothing cached and asks no Redis."""
    fresh = Catalogue(scene.db, Cache(link=link))
    return await seen_by(fresh, scene)


@contextlib.asynccontextmanager
async def followed(catalogue: Catalogue, place: Organization) -> AsyncIterator[None]:
    """A process that hears what others invalidate."""
    stop, cache, name = asyncio.Event(), catalogue._cache, key(place, "heard")

    async def load() -> str:
        return ""

    await cache.get_or_load(name, "", 30, load, kind=str)
    following = asyncio.create_task(cache.follow(stop))
    async with asyncio.timeout(WAIT_S):
        while name in cache._hot:  # taking up the channel forgets everything
            await asyncio.sleep(0.005)
    yield
    stop.set()
    await following


@pytest.fixture
async def away() -> AsyncIterator[RedisLink]:
    """A link to a Redis that is not there."""
    async with RedisLink("redis://127.0.0.1:1", probe_every_s=3600) as nowhere:
        yield nowhere


@pytest.fixture
async def scene(db: Database, link: RedisLink, redis_url: str, place: Organization) -> AsyncIterator[Scene]:
    venue = await make_venue(db, place, name="Old Hall")
    event = await make_event(db, place, venue, "published", description="All of it")
    async with RedisLink(redis_url, call_timeout_s=2, connect_timeout_s=2) as other:
        yield Scene(db, place, venue, event, catalogue_of(db, link), catalogue_of(db, other))


@pytest.mark.req("EV-51", "EV-57", "EV-52")
async def test_a_summary_stands_in_redis_with_the_seeds_fields(scene: Scene, link: RedisLink) -> None:
    """Under its own key, for ten to thirty minutes; the next reader needs neither PostgreSQL nor Redis."""
    replacement = await make_event(scene.db, scene.place, scene.venue, "published")
    await scene.change(replaced_by_event_id=replacement.id, capacity=7, sale_start_at=soon(days=1))
    await scene.move(Verb.POSTPONE, new_date=NewDate(start_at=soon(days=50)))
    _, detail = await scene.here.detail(scene.event.id)
    name = key(scene.place, f"summary:{scene.event.id}")
    _, stored = await settled(link, name)
    assert msgspec.convert(stored, Detail) == detail
    wanted = {
        "id", "name", "slug", "status", "start_at", "end_at", "sale_start_at", "sale_end_at", "venue_id",
        "organization_id", "rescheduled_at", "replaced_by_event_id", "timezone", "capacity",
    }  # fmt: skip
    assert {field for field in wanted if stored["summary"].get(field) is None} == set()
    assert 600_000 <= await link.client.pttl(name) <= 1_800_000
    awaited, hot = link.awaited_count, scene.here._cache._hot
    assert 30 <= hot[name].ttl_s <= 120
    assert (await scene.here.detail(scene.event.id))[1] is detail
    assert link.awaited_count == awaited


@pytest.mark.req("EV-58", "EV-59", "EV-60")
async def test_lists_stand_in_redis(scene: Scene, link: RedisLink) -> None:
    """Of the organization and of the venue; another process reads them there, and shows the same."""
    elsewhere = await make_event(scene.db, scene.place, None, "published", start_at=soon(days=9), end_at=soon(days=10))
    listed = await scene.here.upcoming(scene.place.id)
    at_venue = await scene.here.upcoming(scene.place.id, venue_id=scene.venue.id)
    assert [one.id for one in listed.items] == [elsewhere.id, scene.event.id]
    assert [one.id for one in at_venue.items] == [scene.event.id]
    _, in_list = await settled(link, key(scene.place, "list"))
    _, in_venue = await settled(link, key(scene.place, f"list:venue:{scene.venue.id}"))
    assert [one["id"] for one in in_list] == [str(elsewhere.id), str(scene.event.id)]
    assert [one["id"] for one in in_venue] == [str(scene.event.id)]
    for name in ("list", f"list:venue:{scene.venue.id}"):
        assert 600_000 <= await link.client.pttl(key(scene.place, name)) <= 1_800_000
    assert (await scene.there.upcoming(scene.place.id)).items == listed.items
    assert (await scene.there.upcoming(scene.place.id, venue_id=scene.venue.id)).items == at_venue.items


@pytest.mark.req("EV-60", "EV-61")
async def test_what_redis_holds_is_what_is_shown(scene: Scene, link: RedisLink) -> None:
    """Redis before PostgreSQL: a second process shows a name that stands only there, in the list, by slug, by id."""
    await seen_by(scene.here, scene)
    names = [key(scene.place, name) for name in ("list", f"summary:{scene.event.id}", f"slug:{scene.event.slug}")]
    for name in names:
        await settled(link, name)
    for name in names:
        stored = await link.client.get(name)
        assert isinstance(stored, bytes)
        await link.client.set(name, stored.replace(b"Die Laaste Boemeltrein", b"Die Eerste Boemeltrein"), keepttl=True)
    assert [one.name for one in (await scene.there.upcoming(scene.place.id)).items] == ["Die Eerste Boemeltrein"]
    assert (await scene.there.find(scene.place.id, scene.event.slug)).summary.name == "Die Eerste Boemeltrein"
    assert (await scene.there.detail(scene.event.id))[1].summary.name == "Die Eerste Boemeltrein"


async def rename(scene: Scene) -> None:
    await scene.change(name="Another name", description="Another text", settings={"age_min": 18})


async def readdress(scene: Scene) -> None:
    await scene.change(slug=f"other-{scene.event.slug}"[:63])


async def reprice(scene: Scene) -> None:
    await scene.change(sale_start_at=soon(days=3), sale_end_at=soon(days=4), capacity=5)


async def replace_by_another(scene: Scene) -> None:
    other = await make_event(scene.db, scene.place, scene.venue, "published")
    await scene.change(replaced_by_event_id=other.id)


async def postpone(scene: Scene) -> None:
    await scene.move(Verb.POSTPONE, postponement_reason="weather")


async def postpone_and_date(scene: Scene) -> None:
    await scene.move(Verb.POSTPONE)
    await scene.move(Verb.RESCHEDULE, new_date=NewDate(start_at=soon(days=80)))


async def cancel(scene: Scene) -> None:
    await scene.move(Verb.CANCEL)


async def unpublish(scene: Scene) -> None:
    await scene.move(Verb.UNPUBLISH)


async def change_venue(scene: Scene) -> None:
    other = await make_venue(scene.db, scene.place, name="New Hall", timezone="Pacific/Apia")
    moved = await usecases.change_venue(
        scene.db, scene.here, scene.call, scene.event.id, other.id, has_consent=True, reason="a leak", version=None
    )
    scene.event = moved.event


async def rename_venue(scene: Scene) -> None:
    changed = {"name": "New name", "timezone": "Europe/Berlin", "settings": {"step_free": True}}
    await usecases.update_venue(scene.db, scene.here, scene.call, scene.venue.id, changed, version=None)


async def let_it_begin(scene: Scene) -> None:
    async with scene.db.transaction(scene.place.id) as conn:  # the clock has come that far
        await conn.execute(
            "update events set start_at = $2, version = version + 1 where id = $1", scene.event.id, soon(minutes=-1)
        )
    await timekeeper.advance(scene.db, scene.here)


CHANGES = [
    rename, readdress, reprice, replace_by_another, postpone, postpone_and_date, cancel, unpublish, change_venue,
    rename_venue, let_it_begin,
]  # fmt: skip


@pytest.mark.req("EV-54", "EV-55", "EV-53")
@pytest.mark.parametrize("change", CHANGES)
async def test_after_a_change_everybody_shows_the_new(
    scene: Scene, away: RedisLink, monkeypatch: pytest.MonkeyPatch, change: Callable[[Scene], Awaitable[None]]
) -> None:
    """The process that made it with its next read; another as soon as it has heard, long before anything runs out."""
    monkeypatch.setattr(module, "NUMBER_TTL_S", 600.0)  # so that only the message can make it right
    async with followed(scene.there, scene.place):
        old = await seen_by(scene.here, scene)
        assert await seen_by(scene.there, scene) == old == await truth(scene, away)
        await change(scene)
        new = await truth(scene, away)
        assert new != old
        assert await seen_by(scene.here, scene) == new

        async def is_right() -> bool:
            return await seen_by(scene.there, scene) == new

        await until(is_right)
        with pytest.raises(EventNotFound):
            await scene.there.find(scene.place.id, "no-such-event")


@pytest.mark.req("EV-54")
async def test_the_old_address_leads_nowhere(scene: Scene) -> None:
    """Another slug: the old one is gone with the next read, the new one is there."""
    old = scene.event.slug
    assert (await scene.here.find(scene.place.id, old)).summary.id == scene.event.id
    await readdress(scene)
    with pytest.raises(EventNotFound):
        await scene.here.find(scene.place.id, old)
    assert (await scene.here.find(scene.place.id, scene.event.slug)).summary.id == scene.event.id


@pytest.mark.req("PUB-04", "PUB-05", "PUB-13", "TEST-37")
async def test_what_is_cached_is_gone_before_the_notice_goes_out(scene: Scene, redis_url: str) -> None:
    """On one connection the invalidations come before the notice, which both topics get with all it must say."""
    place, event = scene.place, scene.event
    topics = [organization_topic(place.id), event_topic(place.id, event.id)]
    async with Redis.from_url(redis_url) as client, client.pubsub() as channel:
        await channel.subscribe(INVALIDATE_CHANNEL, *topics)
        for _ in range(3):
            await channel.get_message(timeout=5)
        walk: list[tuple[Verb, str, str, dict[str, Any]]] = [
            (Verb.POSTPONE, "published", "postponed", {}),
            (Verb.RESCHEDULE, "postponed", "postponed", {"new_date": NewDate(start_at=soon(days=60))}),
            (Verb.GO_LIVE, "postponed", "live", {}),
            (Verb.END, "live", "ended", {}),
            (Verb.ARCHIVE, "ended", "archived", {}),
        ]
        for verb, old, new, more in walk:
            await seen_by(scene.here, scene)
            await scene.here._cache.settle()
            await scene.move(verb, **more)
            heard = await hear(client, channel, topics, key(place, f"summary:{event.id}"))
            assert {key(place, name) for name in ("version", "list", f"summary:{event.id}")} <= heard.dropped
            rescheduled_at = scene.event.rescheduled_at
            assert (
                heard.notices
                == [
                    {
                        "kind": "event_rescheduled" if verb is Verb.RESCHEDULE else "event_status_changed",
                        "event_id": str(event.id),
                        "version": scene.event.version,
                        "old_status": old,
                        "new_status": new,
                        "rescheduled_at": rescheduled_at and rescheduled_at.isoformat().replace("+00:00", "Z"),
                        "replaced_by_event_id": None,
                    }
                ]
                * 2
            )


@dataclass(slots=True)
class Heard:
    """What came before the last notice, and the notices."""

    dropped: set[str]
    notices: list[dict[str, Any]]


async def hear(client: Any, channel: Any, topics: list[str], name: str) -> Heard:
    """Listen until both topics have spoken; at the first notice the key must be gone already."""
    heard = Heard(set(), [])
    async with asyncio.timeout(WAIT_S):
        while len(heard.notices) < len(topics):
            message = await channel.get_message(timeout=5)
            if message is None:
                continue
            place, data = message["channel"].decode(), message["data"]
            if place == INVALIDATE_CHANNEL:
                assert not heard.notices, "told before it was forgotten"
                heard.dropped.add(data.decode())
            else:
                assert await client.exists(name) == 0
                heard.notices.append(msgspec.json.decode(data))
    return heard


@pytest.mark.req("PUB-04", "PUB-05", "EV-47")
async def test_every_kind_of_change_is_told_on_both_topics(scene: Scene, redis_url: str) -> None:
    """Made, edited, dated anew, moved to another venue, each step, deleted; what changes nothing is not told."""
    place, event = scene.place, scene.event
    async with Redis.from_url(redis_url) as client, client.pubsub() as channel:
        await channel.psubscribe(TOPICS)
        await channel.get_message(timeout=5)
        draft = await make_event(scene.db, place, scene.venue)
        new = NewEvent(venue_id=scene.venue.id, name="New", slug="new", start_at=soon(days=1), end_at=soon(days=2))
        made = await usecases.create_event(scene.db, scene.here, scene.call, new, once=None)
        await scene.change(name=event.name)
        await scene.change(sale_end_at=soon(days=29))
        await scene.move(Verb.RESCHEDULE, new_date=NewDate(start_at=soon(days=33)))
        await change_venue(scene)
        await scene.move(Verb.UNPUBLISH)
        await scene.move(Verb.PUBLISH)
        await scene.move(Verb.CANCEL)
        await usecases.delete_event(scene.db, scene.here, scene.call, draft.id, version=None)
        told: dict[str, list[tuple[object, ...]]] = {}
        async with asyncio.timeout(WAIT_S):
            while sum(map(len, told.values())) < 16:
                if (message := await channel.get_message(timeout=5)) and str(place.id) in message["channel"].decode():
                    one = msgspec.json.decode(message["data"])
                    notice = tuple(one[name] for name in ("kind", "event_id", "old_status", "new_status"))
                    told.setdefault(message["channel"].decode(), []).append(notice)
    mine = [
        ("event_updated", str(event.id), "published", "published"),
        ("event_rescheduled", str(event.id), "published", "published"),
        ("event_venue_changed", str(event.id), "published", "published"),
        ("event_status_changed", str(event.id), "published", "draft"),
        ("event_status_changed", str(event.id), "draft", "published"),
        ("event_status_changed", str(event.id), "published", "cancelled"),
    ]
    first = ("event_created", str(made.event.id), None, "draft")
    last = ("event_deleted", str(draft.id), "draft", None)
    assert told == {
        organization_topic(place.id): [first, *mine, last],
        event_topic(place.id, made.event.id): [first],
        event_topic(place.id, event.id): mine,
        event_topic(place.id, draft.id): [last],
    }


@pytest.mark.parametrize("hurt", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "frozen"])
async def test_without_redis_everything_is_right_all_the_same(
    db: Database, place: Organization, data_dir: Path, away: RedisLink, hurt: signal.Signals
) -> None:
    """Redis dies under two processes: the one that changes is right at once, the other within seconds."""
    async with (
        running(Embedded(data_dir, with_postgres=False)) as servers,
        RedisLink(servers.valkey_url, probe_every_s=3600) as first,
        RedisLink(servers.valkey_url, probe_every_s=3600) as second,
    ):
        venue = await make_venue(db, place)
        event = await make_event(db, place, venue, "published")
        scene = Scene(db, place, venue, event, catalogue_of(db, first), catalogue_of(db, second))
        assert await seen_by(scene.here, scene) == await seen_by(scene.there, scene)
        os.kill(servers.pids()["valkey"], hurt)
        try:
            for change in (rename, rename_venue, readdress, postpone):
                await change(scene)
                new = await truth(scene, away)
                assert await seen_by(scene.here, scene) == new

                async def is_right(new: tuple[object, ...] = new) -> bool:
                    return await seen_by(scene.there, scene) == new

                await until(is_right)
            assert first.state is State.OPEN
        finally:
            os.kill(servers.pids()["valkey"], signal.SIGCONT)


async def test_a_number_is_believed_for_a_second_at_most() -> None:
    """What bounds how long a lost message can matter, and how long a closed organization is still shown."""
    assert module.NUMBER_TTL_S <= 1
    assert module.PLACE_TTL_S <= 1


async def test_the_list_goes_on_behind_what_is_cached(db: Database, link: RedisLink, place: Organization) -> None:
    """More than one cached list holds: every event comes once, in the order of time, whatever the page's size."""
    venue = await make_venue(db, place)
    count = module.CACHED_MAX + 30
    async with db.transaction(place.id) as conn:
        await conn.execute(
            "insert into events (id, organization_id, venue_id, name, slug, start_at, end_at)"
            " select gen_random_uuid(), $1, $2, 'E', 'e-' || n, now() + n / 2 * interval '1 hour',"
            "        now() + (n / 2 + 1) * interval '1 hour' from generate_series(1, $3) n",
            place.id,
            venue.id,
            count,
        )
        await conn.execute("update events set status = 'published', version = 2 where organization_id = $1", place.id)
    catalogue = catalogue_of(db, link)
    for limit in (1, 7, 50, 199, 200):
        seen: list[Summary] = []
        cursor, pages = None, 0
        while pages == 0 or (cursor and pages < 40):
            page = await catalogue.upcoming(place.id, cursor=cursor, limit=limit)
            seen += page.items
            cursor, pages = page.next_cursor, pages + 1
            assert len(page.items) <= limit
        assert len({one.id for one in seen}) == len(seen) == min(count, 40 * limit)
        assert [(one.start_at, one.id) for one in seen] == sorted((one.start_at, one.id) for one in seen)
