"""Sessions as a process knows them: believed for a while, ended at once."""

import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest

from tests.make.accounts import make_organization, make_person
from voelgoed.accounts import sessions as module, store, tokens
from voelgoed.accounts.model import Role
from voelgoed.accounts.sessions import Sessions
from voelgoed.db import Conn, Connection, Database
from voelgoed.errors import Busy
from voelgoed.ids import new_id
from voelgoed.redis import RedisLink


class Clock:
    """A clock that a test winds."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
async def link(redis_url: str) -> AsyncIterator[RedisLink]:
    async with RedisLink(redis_url, connect_timeout_s=1, call_timeout_s=1) as opened:
        yield opened


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def sessions(db: Database, link: RedisLink, clock: Clock) -> Sessions:
    return Sessions(db, link, idle_s=1800, trust_s=30, clock=clock)


async def count_reads(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    reads: list[bytes] = []
    find = store.find_sessions

    async def counted(conn: Conn, digests: Sequence[bytes]) -> dict[bytes, store.Row]:
        reads.extend(digests)
        return await find(conn, digests)

    monkeypatch.setattr(store, "find_sessions", counted)
    return reads


async def test_a_session_is_read_once_and_believed_for_a_while(
    db: Database, sessions: Sessions, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A crowd of requests costs one query; after half a minute there is another."""
    person, reads = await make_person(db), await count_reads(monkeypatch)
    found = await asyncio.gather(*(sessions.find(person.token) for _ in range(50)))
    assert {actor.user_id for actor in found if actor} == {person.user_id}
    assert len(reads) == 1
    clock.now += 29
    await sessions.find(person.token)
    assert len(reads) == 1
    clock.now += 2
    await sessions.find(person.token)
    assert len(reads) == 2


async def test_who_comes_as_the_last_reading_ends_is_read(
    db: Database, sessions: Sessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the very turn in which it ends: it looks for nobody any more, so another one must begin."""
    first, second = await make_person(db), await make_person(db)
    monkeypatch.setattr(module, "READERS_MAX", 1)
    reading, then = sessions.seek(tokens.Shown(first.token)), list[object]()
    assert isinstance(reading, asyncio.Future)
    reading.add_done_callback(lambda _: then.append(sessions.seek(tokens.Shown(second.token))))
    await asyncio.shield(reading)
    (last,) = then
    assert isinstance(last, asyncio.Future)
    known = await asyncio.wait_for(asyncio.shield(last), 20)
    assert known.actor.user_id == second.user_id


async def test_half_an_hour_without_use_ends_it_here_too(db: Database, sessions: Sessions, clock: Clock) -> None:
    """Use keeps it alive, silence does not, though the process still remembers it."""
    person = await make_person(db)
    for _ in range(4):
        assert await sessions.find(person.token)
        await sessions.flush()
        clock.now += 20  # believed: no look at the database in between
    clock.now += 1801
    assert await sessions.find(person.token)  # the database's clock was not wound: there it was used just now
    sessions._trust_s = 10_000
    clock.now += 1801
    assert await sessions.find(person.token) is None


async def test_use_is_written_down_once_a_minute_and_never_backwards(
    db: Database, sessions: Sessions, owner_conn: Connection, clock: Clock
) -> None:
    """What is flushed is when it was used, not when it was flushed."""
    person = await make_person(db)
    seen = "select extract(epoch from now() - last_seen_at)::float8 from sessions where id = $1"
    await owner_conn.execute(
        "update sessions set last_seen_at = now() - interval '20 min' where id = $1", person.session_id
    )
    await sessions.find(person.token)
    known = dict(sessions._known)
    clock.now += 300
    assert await sessions.flush() == 1
    assert 299 <= await owner_conn.fetchval(seen, person.session_id) < 330
    assert await sessions.flush() == 0
    await owner_conn.execute("update sessions set last_seen_at = now() where id = $1", person.session_id)
    sessions._known |= known
    next(iter(known.values())).is_unsaved = True
    await sessions.flush()
    assert await owner_conn.fetchval(seen, person.session_id) < 30


async def test_a_use_that_could_not_be_written_is_not_forgotten(
    db: Database, sessions: Sessions, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The database had no time for it: it is written next time, however long ago that session was read."""
    await sessions.find((await make_person(db)).token)
    clock.now += 60

    async def busy(*_: object) -> None:
        raise Busy

    with monkeypatch.context() as away:
        away.setattr(store, "touch_sessions", busy)
        with pytest.raises(Busy):
            await sessions.flush()
    assert await sessions.flush() == 1
    assert not sessions._known


async def test_only_those_who_ask_take_room(db: Database, sessions: Sessions, clock: Clock) -> None:
    """A day of visitors must not stay in memory: who was read too long ago is forgotten, when their use is saved."""
    people = [await make_person(db) for _ in range(3)]
    for person in people:
        await sessions.find(person.token)
    clock.now += 29
    await sessions.flush()
    assert len(sessions._known) == 3
    clock.now += 2
    actor = await sessions.find(people[0].token)  # read again
    await sessions.flush()
    assert [known.actor for known in sessions._known.values()] == [actor]
    assert await sessions.find(people[1].token), "forgotten here, not ended"


async def test_a_crowd_takes_only_so_much_room(
    db: Database, sessions: Sessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beyond the limit the one that was read longest ago makes room, and is read again when it asks."""
    monkeypatch.setattr(module, "KNOWN_MAX", 2)
    people = [await make_person(db) for _ in range(4)]
    for person in people:
        assert await sessions.find(person.token)
    assert [known.actor.user_id for known in sessions._known.values()] == [one.user_id for one in people[-2:]]
    assert await sessions.find(people[0].token)
    assert len(sessions._known) == 2


@pytest.mark.parametrize("ended", ["session", "user", "organization"])
async def test_what_is_ended_is_not_believed_here_or_elsewhere(
    db: Database, sessions: Sessions, redis_url: str, monkeypatch: pytest.MonkeyPatch, ended: str
) -> None:
    """Another process hears of it by message and looks again."""
    person = await make_person(db)
    stop, heard = asyncio.Event(), asyncio.Event()
    async with RedisLink(redis_url, connect_timeout_s=1, call_timeout_s=1) as other_link:
        other = Sessions(db, other_link, idle_s=1800, trust_s=30)
        hear = other._hear

        def listen(message: bytes) -> None:
            hear(message)
            heard.set()

        monkeypatch.setattr(other, "_hear", listen)
        following = asyncio.create_task(other.follow_revocations(stop))
        for process in (sessions, other):
            assert await process.find(person.token)
        async with db.transaction(person.organization.id) as conn:
            if ended == "organization":
                await store.set_suspended(conn, person.organization.id, is_suspended=True)
            elif ended == "user":
                await store.forget_user(conn, person.user_id)
            else:
                await store.revoke_session(conn, person.session_id, person.user_id)
        ids = {"session": person.session_id, "user": person.user_id, "organization": person.organization.id}
        for _ in range(200):  # the follower may still be on its way to the channel
            sessions.end(ids[ended])
            if heard.is_set():
                break
            await asyncio.sleep(0.01)
        assert await sessions.find(person.token) is None
        assert heard.is_set()
        assert await other.find(person.token) is None
        stop.set()
        await asyncio.wait_for(following, 10)


async def test_without_redis_an_end_is_believed_after_half_a_minute(
    db: Database, sessions: Sessions, link: RedisLink, clock: Clock
) -> None:
    """The message is a courtesy: nothing correct depends on it."""
    person = await make_person(db)
    assert await sessions.find(person.token)
    async with db.transaction(person.organization.id) as conn:
        await store.revoke_session(conn, person.session_id, person.user_id)
    assert await sessions.find(person.token)  # nobody told us
    clock.now += 31
    assert await sessions.find(person.token) is None


async def test_a_role_that_changed_while_it_was_read_is_read_again(
    db: Database, sessions: Sessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was read before an end was told counts as old, even when it arrives after."""
    person = await make_person(db, role=Role.STAFF)
    find = store.find_sessions

    async def overtaken(conn: Conn, digests: Sequence[bytes]) -> dict[bytes, store.Row]:
        row = await find(conn, digests)
        monkeypatch.setattr(store, "find_sessions", find)
        sessions._clock.now += 1  # type: ignore[attr-defined]  # the test's own clock
        async with db.transaction(person.organization.id) as other:
            await store.set_member(other, person.organization.id, person.user_id, Role.ADMIN)
        sessions.void(person.user_id)
        return row

    monkeypatch.setattr(store, "find_sessions", overtaken)
    stale = await sessions.find(person.token)
    fresh = await sessions.find(person.token)
    assert stale is not None
    assert fresh is not None
    assert (stale.role, fresh.role) == (Role.STAFF, Role.ADMIN)


async def test_a_storm_of_ends_forgets_everybody(
    db: Database, sessions: Sessions, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is remembered of ends is bounded; beyond it nobody is believed rather than one too long."""
    monkeypatch.setattr(module, "VOIDED_MAX", 10)
    person, reads = await make_person(db), await count_reads(monkeypatch)
    await sessions.find(person.token)
    clock.now += 1
    for _ in range(12):
        sessions.void(new_id())
    await sessions.find(person.token)
    assert len(reads) == 2


async def test_api_keys_are_actors_without_a_person(db: Database, sessions: Sessions) -> None:
    """A key has its role, its organization and its own id in the journal."""
    owner = await make_person(db, role=Role.OWNER)
    token, key_id = tokens.new_api_key(), new_id()
    async with db.transaction(owner.organization.id) as conn:
        await store.add_api_key(
            conn,
            owner.organization.id,
            key_id,
            name="Gate",
            role=Role.SCANNER,
            hint=tokens.hint(token),
            token_hash=tokens.token_hash(token),
            created_by=owner.user_id,
            expires_at=None,
        )
    actor = await sessions.find(token)
    assert actor is not None
    assert (actor.role, actor.user_id, actor.id, actor.organization_id) == (
        Role.SCANNER,
        None,
        key_id,
        owner.organization.id,
    )


async def test_old_sessions_are_removed_in_batches(
    db: Database, owner_conn: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A month after their last use; younger ones stay."""
    monkeypatch.setattr(module, "PURGE_BATCH", 2)
    place = await make_organization(db)
    people = [await make_person(db, place) for _ in range(6)]
    old = [person.session_id for person in people[:5]]
    await owner_conn.execute("update sessions set last_seen_at = now() - interval '31 days' where id = any($1)", old)
    assert await module.purge(db) >= 5
    left = await owner_conn.fetch("select id from sessions where organization_id = $1", place.id)
    assert [row["id"] for row in left] == [people[5].session_id]
