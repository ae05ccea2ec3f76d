"""Who is signed in: sessions and API keys as this process knows them, and how they end.

PostgreSQL keeps them. A process believes what it has read for half a minute, so that a request costs no query; a
revocation is sent round to the other processes, and is believed at the latest when that half minute is over.
"""

import asyncio
import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass
from uuid import UUID

import structlog
from cachetools import TTLCache

from voelgoed.accounts import store
from voelgoed.accounts.model import Actor, Role
from voelgoed.accounts.tokens import Shown
from voelgoed.db import Database
from voelgoed.errors import Busy
from voelgoed.redis import RedisLink
from voelgoed.telemetry import metrics

log = structlog.get_logger(__name__)

KNOWN_MAX = 50_000
"""Each takes 1,300 bytes, so 65 MB: more than ask within a minute and a half, after which the idle are forgotten."""
VOIDED_MAX = 10_000
UNKNOWN_MAX = 10_000
UNKNOWN_S = 5.0
REVOCATIONS = "voelgoed:revocations"
UUID_BYTES = 16
FLUSH_BATCH = 1_000
READ_MAX = 500
READERS_MAX = 2
PURGE_AFTER_DAYS = 30
PURGE_BATCH = 1_000
PURGE_BATCHES_MAX = 100


FOUND_IN_MEMORY = metrics.SESSION_LOOKUPS.labels("memory")
FOUND_IN_DATABASE = metrics.SESSION_LOOKUPS.labels("database")

Found = tuple[Actor, frozenset[UUID], float]
"""Who it is, what that rests on, and for how long it was idle."""


@dataclass(slots=True)
class Known:
    """What was read of a session or key, and when it was last used here."""

    actor: Actor
    rests_on: frozenset[UUID]
    """Everything whose end ends this: session or key, person, organization, and a key's maker."""
    read_at: float
    idle_from: float
    is_unsaved: bool = True


Reading = asyncio.Future[Known | None]
"""A session or key that is on its way from the database. Many may wait for it: nobody may cancel it."""


class Sessions:
    """The sessions and keys this process has met."""

    def __init__(
        self,
        db: Database,
        link: RedisLink,
        *,
        idle_s: float,
        trust_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._db, self._link, self._clock = db, link, clock
        self.idle_s, self._trust_s = idle_s, trust_s
        # In the order in which they were read: who asks is read again every half minute, so the first are the idle.
        self._known: dict[bytes, Known] = {}
        # Ids (of a session, person, key or organization) of which nothing read before a moment is believed.
        self._voided: TTLCache[UUID, float] = TTLCache(VOIDED_MAX, ttl=2 * trust_s + 60, timer=clock)
        # A token that was not there a moment ago is not there now: whoever makes them up costs no query each time.
        self._unknown: TTLCache[bytes, None] = TTLCache(UNKNOWN_MAX, ttl=UNKNOWN_S, timer=clock)
        self._all_void_before = float("-inf")
        self._last_void_at = float("-inf")
        self._wanted: dict[bytes, Reading] = {}
        self._reading: dict[bytes, Reading] = {}
        self._readers: set[asyncio.Task[None]] = set()

    async def find(self, token: str) -> Actor | None:
        """The actor behind a token; None when it is unknown, ended, or idle for too long."""
        return await self.find_shown(Shown(token))

    async def find_shown(self, shown: Shown) -> Actor | None:
        """The same, of a token as it was shown."""
        found = self.seek(shown)
        return found if found is None or isinstance(found, Actor) else self.used(await asyncio.shield(found))

    def seek(self, shown: Shown) -> Actor | Reading | None:
        """The actor behind a token, or what is being read of it: then `used` knows more when that has come."""
        digest = shown.digest
        if digest is None:
            return None
        known = self._known.get(digest)
        if known is not None and self._is_trusted(known):
            metrics.count(FOUND_IN_MEMORY)
            return self.used(known)
        if digest in self._unknown:
            return None
        metrics.count(FOUND_IN_DATABASE)
        return self._read_once(digest, is_key=shown.is_key)

    def used(self, known: Known | None) -> Actor | None:
        """Who it is that comes with this now; None when there is nobody, or they were idle for too long."""
        now = self._clock()
        if known is None or (known.actor.session_id is not None and now - known.idle_from > self.idle_s):
            return None
        known.idle_from, known.is_unsaved = now, True
        return known.actor

    def end(self, *ids: UUID) -> None:
        """Believe nothing about these any more, here and elsewhere. Call it when their end is committed."""
        for one in ids:
            self.void(one)
        self._link.tell(REVOCATIONS, b"".join(one.bytes for one in ids))

    def void(self, one: UUID) -> None:
        """Forget what was read of a session, person, key or organization until now."""
        if len(self._voided) >= VOIDED_MAX:  # a storm of revocations: forget everybody rather than believe one too long
            self._forget_all()
            self._voided.clear()
        self._voided[one] = self._last_void_at = self._clock()
        self._unknown.clear()  # what was suspended may be open again

    async def follow_revocations(self, stop: asyncio.Event) -> None:
        """Hear what other processes ended."""
        await self._link.follow(REVOCATIONS, self._hear, stop, on_gap=self._forget_all)

    async def flush(self) -> int:
        """Write down when sessions and keys were last used; how many. Who has not asked of late is forgotten then."""
        unsaved = [known for known in self._known.values() if known.is_unsaved]
        for start in range(0, len(unsaved), FLUSH_BATCH):
            batch = unsaved[start : start + FLUSH_BATCH]
            now = self._clock()
            for known in batch:
                known.is_unsaved = False
            people = [(k.actor.session_id, now - k.idle_from) for k in batch if k.actor.session_id]
            keys = [(k.actor.api_key_id, now - k.idle_from) for k in batch if k.actor.api_key_id]
            try:
                async with self._db.system_transaction() as conn:
                    await store.touch_sessions(conn, [id_ for id_, _ in people], [age for _, age in people])
                    await store.touch_api_keys(conn, [id_ for id_, _ in keys], [age for _, age in keys])
            except BaseException:
                for known in batch:
                    known.is_unsaved = True  # or it would be forgotten before anybody has written it down
                raise
        self._forget_idle()
        return len(unsaved)

    def _forget_idle(self) -> None:
        """Whoever was read too long ago to be believed is read again anyway: only those keep room who ask."""
        oldest = self._clock() - self._trust_s
        for digest, known in tuple(itertools.takewhile(lambda one: one[1].read_at < oldest, self._known.items())):
            if not known.is_unsaved:
                del self._known[digest]

    def _forget_all(self) -> None:
        """Believe nothing read so far: messages may have been missed."""
        self._all_void_before = self._clock()

    def _hear(self, message: bytes) -> None:
        if len(message) % UUID_BYTES == 0:  # anything else is not from us
            for start in range(0, len(message), UUID_BYTES):
                self.void(UUID(bytes=message[start : start + UUID_BYTES]))

    def _is_trusted(self, known: Known) -> bool:
        if self._clock() - known.read_at > self._trust_s or known.read_at <= self._all_void_before:
            return False
        if known.read_at > self._last_void_at:  # nothing was ended since: nobody has to be looked up
            return True
        return all(known.read_at > self._voided.get(one, float("-inf")) for one in known.rests_on)

    def _read_once(self, digest: bytes, *, is_key: bool) -> Reading:
        """Read it from the database, once for all who ask at the same time.

        A crowd that comes at once is read together: those who come while one batch is read form the next.
        """
        answer = self._reading.get(digest) or self._wanted.get(digest)
        if answer is None and is_key:
            answer = self._reading[digest] = asyncio.ensure_future(self._read_key(digest))
            answer.add_done_callback(lambda _: self._reading.pop(digest, None))
        elif answer is None:
            answer = self._wanted[digest] = asyncio.get_running_loop().create_future()
            if len(self._readers) < READERS_MAX:
                self._readers.add(asyncio.create_task(self._read_until_none_is_wanted()))
        return answer

    async def _read_until_none_is_wanted(self) -> None:
        try:
            await self._read_wanted()
        finally:  # at once, not when somebody is called back: who wants one in between would wait for nobody
            task = asyncio.current_task()
            assert task is not None
            self._readers.discard(task)

    async def _read_wanted(self) -> None:
        """Read what is wanted, a batch at a time, until nothing is."""
        while self._wanted:
            batch = dict(itertools.islice(self._wanted.items(), READ_MAX))
            for digest in batch:
                del self._wanted[digest]
            self._reading |= batch
            began = self._clock()
            try:
                async with self._db.system_transaction() as conn:
                    rows = await store.find_sessions(conn, list(batch))
            except BaseException as failed:
                for digest, answer in batch.items():
                    del self._reading[digest]
                    if not answer.done():
                        answer.set_exception(failed if isinstance(failed, Exception) else Busy())
                    answer.exception()  # seen: whoever waits has it, and perhaps nobody does any more
                if not isinstance(failed, Exception):
                    raise
                continue
            for digest, answer in batch.items():
                del self._reading[digest]
                known = self._keep(digest, _session(rows.get(digest)), began)
                if not answer.done():
                    answer.set_result(known)

    def _keep(self, digest: bytes, found: Found | None, began: float) -> Known | None:
        """Remember what was read, or that there is nothing."""
        before = self._known.get(digest)
        if found is None:
            self._known.pop(digest, None)
            self._unknown[digest] = None
            return None
        actor, rests_on, idle_s = found
        # Used here since the last flush: the database does not know yet, and must not call it idle.
        idle_from = max(began - idle_s, before.idle_from if before else float("-inf"))
        known = Known(actor, rests_on, began, idle_from)
        self._known.pop(digest, None)
        if len(self._known) >= KNOWN_MAX:
            del self._known[next(iter(self._known))]
        self._known[digest] = known
        return known

    async def _read_key(self, digest: bytes) -> Known | None:
        began = self._clock()
        async with self._db.system_transaction() as conn:
            row = await store.find_api_key(conn, digest)
        if row is None:
            return self._keep(digest, None, began)
        actor = Actor(
            role=Role(row["role"]),
            organization_id=row["organization_id"],
            organization_slug=row["slug"],
            organization_name=row["organization_name"],
            user_name=row["name"],
            api_key_id=row["id"],
        )
        rests_on = frozenset({row["id"], row["created_by"], row["organization_id"]})
        return self._keep(digest, (actor, rests_on, 0.0), began)


def _session(row: store.Row | None) -> Found | None:
    """Who is behind a session, as it was read."""
    if row is None:
        return None
    platform_roles = frozenset(Role(role) for role in row["platform_roles"])
    is_suspended = row["suspended_at"] is not None
    if is_suspended and not platform_roles:
        return None
    actor = Actor(
        # The platform's own staff stay signed in, to open it again; whatever else they are there is suspended.
        role=Role.CUSTOMER if is_suspended else Role(row["role"]),
        organization_id=row["organization_id"],
        organization_slug=row["slug"],
        organization_name=row["organization_name"],
        user_id=row["user_id"],
        user_name=row["user_name"],
        is_guest=row["is_guest"],
        platform_roles=platform_roles,
        session_id=row["session_id"],
    )
    return actor, frozenset({row["session_id"], row["user_id"], row["organization_id"]}), row["idle_s"]


async def purge(db: Database) -> int:
    """Remove sessions and one-time tokens that nobody can use any more, a batch at a time; how many."""
    removed = 0
    for _ in range(PURGE_BATCHES_MAX):
        async with db.system_transaction() as conn:
            count = await store.purge_sessions(conn, days=PURGE_AFTER_DAYS, limit=PURGE_BATCH)
            count += await store.purge_one_time_tokens(conn, limit=PURGE_BATCH)
        removed += count
        if count < PURGE_BATCH:
            break
    return removed
