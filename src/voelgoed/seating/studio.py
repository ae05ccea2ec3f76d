"""What a process keeps for layouts: room for heavy work beside the event loop, and geometry documents, hot and warm."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

import msgspec
from cachetools import LRUCache, TTLCache

from voelgoed.cache import Cache
from voelgoed.db import Database
from voelgoed.errors import Busy
from voelgoed.ids import OrganizationId
from voelgoed.seating import store
from voelgoed.seating.model import LayoutId, Pin
from voelgoed.seating.offer import Hall
from voelgoed.seating.refusals import LayoutNotFound
from voelgoed.seating.store import VersionKey
from voelgoed.telemetry import metrics

T = TypeVar("T")

HEAVY_AT_ONCE: Final = 1
HEAVY_WAITING_MAX: Final = 8
DAY_S: Final = 86_400.0
SHOWN_MAX: Final = 10_000
SHOWN_TTL_S: Final = 1.0
SEATS_KEPT_MAX: Final = 200_000
"""How many seats of halls stay in memory: about 400 bytes each."""


class Drawing(msgspec.Struct, frozen=True):
    """A geometry document as it is sent: compressed, and named by its content."""

    gzipped: bytes
    etag: str


class Studio:
    """One per process."""

    def __init__(self, db: Database, cache: Cache) -> None:
        self.db = db
        self._cache = cache
        self._turn = asyncio.Semaphore(HEAVY_AT_ONCE)
        self._waiting = 0
        self._loading: dict[VersionKey, asyncio.Future[Hall]] = {}
        self._shown: TTLCache[Pin, OrganizationId] = TTLCache(SHOWN_MAX, SHOWN_TTL_S)
        self._kept: LRUCache[VersionKey, Hall] = LRUCache(SEATS_KEPT_MAX, getsizeof=lambda hall: len(hall.codes) + 1)

    async def work(self, work: Callable[[], T], *, is_begun: bool = False) -> T:
        """Do what keeps a processor busy for seconds: in a thread, one at a time. A crowd is refused, not kept.

        What belongs to something that has begun already is never refused.
        """
        if self._waiting >= HEAVY_WAITING_MAX and not is_begun:
            raise Busy
        self._waiting += 1
        try:
            await self._turn.acquire()
        finally:
            self._waiting -= 1
        doing = asyncio.ensure_future(asyncio.to_thread(work))
        doing.add_done_callback(lambda _: self._turn.release())  # whoever leaves early: the thread goes on to its end
        return await asyncio.shield(doing)

    async def hall(self, key: VersionKey, load: Callable[[], Awaitable[Hall]]) -> Hall:
        """A hall of which the last few stay in memory; whoever asks while one is being loaded waits for that one."""
        kept = self._kept.get(key)
        if kept is not None:
            return kept
        loading = self._loading.get(key)
        if loading is None:
            loading = self._loading[key] = asyncio.ensure_future(load())
            loading.add_done_callback(lambda _: self._loading.pop(key, None))
        found = await asyncio.shield(loading)
        self._kept[key] = found
        return found

    async def settle(self) -> None:
        """Wait until what was found is in Redis as well."""
        await self._cache.settle()

    async def shown_by(self, pin: Pin) -> OrganizationId:
        """Whose version it is that everybody may look at, because an event on show has it; remembered for a second."""
        found = self._shown.get(pin)
        if found is None:
            async with self.db.system_transaction() as conn:
                found = await store.find_organization_showing(conn, pin)
            if found is None:
                raise LayoutNotFound
            self._shown[pin] = found
        return found

    async def drawing(self, organization_id: OrganizationId, layout_id: LayoutId, version: int) -> Drawing:
        """The geometry of a version. It never changes, so no number guards it."""
        began = time.perf_counter()
        found_in = "cache"

        async def load() -> Drawing:
            nonlocal found_in
            found_in = "postgresql"
            async with self.db.transaction(organization_id) as conn:
                found = await store.get_geometry(conn, (organization_id, layout_id, version))
            if found is None:  # raised, not kept: guesses must not fill the cache
                raise LayoutNotFound
            return Drawing(*found)

        key = f"voelgoed:org:{organization_id}:layout:{layout_id}:v{version}:config"
        drawing = await self._cache.get_or_load(key, "1", DAY_S, load, kind=Drawing)
        metrics.LAYOUT_LOADS.labels(found_in).inc()
        metrics.LAYOUT_LOAD_SECONDS.observe(time.perf_counter() - began)
        return drawing
