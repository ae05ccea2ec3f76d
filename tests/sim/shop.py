"""Two real web processes and a worker on a Redis that can be hurt, people who buy without a pause, and a comparison."""

import asyncio
import contextlib
import random
import time
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from uuid import UUID

import asyncpg
import httpx2
import pytest
from pydantic import SecretStr

from tests.conftest import SECRET_KEY, TEMPLATE
from tests.make.accounts import Person, make_organization, make_person
from tests.make.processes import free_port
from tests.make.races import database_alone, hall_layout
from tests.make.seating import Seated, seated_event
from tests.sim import trouble
from tests.sim.trouble import Server, Wire
from voelgoed import schema
from voelgoed.accounts.model import Organization, Role
from voelgoed.cache import Cache
from voelgoed.cli.tree import Tree
from voelgoed.config import Settings
from voelgoed.db import Database
from voelgoed.embedded import Embedded
from voelgoed.holds import auditing, reconcile
from voelgoed.holds.availability import Availability
from voelgoed.holds.hotmap import HotMap
from voelgoed.holds.projection import Projection
from voelgoed.redis import RedisLink
from voelgoed.seating.studio import Studio
from voelgoed.telemetry import metrics

WEBS = 2
BUYERS = 8
SEATS = 400
PIT = 5_000
PROBE_S = 0.5
CONNECTIONS = 16
"""New ones for each look: the kernel deals them out, and all of them to one of two processes it never does."""
AGREE_WITHIN_S = 60
SOLD_WITHIN_S = 60
GIVEN_UP_WITHIN_S = 60
OPEN = 2
PAUSE_S = 0.01
PAUSE_WHEN_AWAY_S = 0.1


@dataclass
class Told:
    """What people were told, and what they gave back."""

    statuses: Counter[int] = field(default_factory=Counter)
    errors: list[str] = field(default_factory=list)
    held: dict[UUID, UUID] = field(default_factory=dict)
    """Who has which hold, as far as everybody knows."""
    open: set[UUID] = field(default_factory=set)
    """Holds that were given back, and nobody heard whether that was done."""
    lost_count: int = 0
    """Answers that never came: what became of those asks only PostgreSQL knows."""


@dataclass
class Shop:
    """An installation with an event on sale."""

    db: Database
    tree: Tree
    redis: Server
    wire: Wire
    organization: Organization
    seated: Seated
    people: list[Person]
    chance: random.Random
    told: Told = field(default_factory=Told)

    @property
    def address(self) -> str:
        return self.tree.settings.address

    @property
    def places(self) -> str:
        return f"/api/events/{self.seated.event.id}"

    async def find_map(self) -> HotMap:
        """The places as PostgreSQL has them."""
        return await trouble.find_map(self.db, self.organization.id, self.seated.event.id)

    # Buying

    @contextlib.asynccontextmanager
    async def buying(self) -> AsyncIterator[None]:
        """Everybody holds and gives back while the block lasts."""
        stop = asyncio.Event()
        seeds = [self.chance.random() for _ in self.people]
        limits = httpx2.Limits(max_keepalive_connections=2)
        async with httpx2.AsyncClient(base_url=self.address, timeout=20, limits=limits) as client:
            buyers = [
                asyncio.create_task(self._buy(client, person, random.Random(seed), stop))
                for person, seed in zip(self.people, seeds, strict=True)
            ]
            try:
                yield
            finally:
                stop.set()
                await asyncio.gather(*buyers)

    async def sold_more(self, count: int) -> None:
        """Until so many more were given a place."""
        enough = self.told.statuses[201] + count
        async with asyncio.timeout(SOLD_WITHIN_S):
            while self.told.statuses[201] < enough:
                await asyncio.sleep(0.005)

    async def _buy(
        self, client: httpx2.AsyncClient, person: Person, chance: random.Random, stop: asyncio.Event
    ) -> None:
        mine: list[UUID] = []
        while not stop.is_set():
            if mine and chance.random() < 0.4:
                await self._give_back(client, person, mine.pop(chance.randrange(len(mine))))
            elif (hold_id := await self._hold(client, person, chance)) and hold_id not in mine:
                mine.append(hold_id)
            await asyncio.sleep(PAUSE_S)

    async def _hold(self, client: httpx2.AsyncClient, person: Person, chance: random.Random) -> UUID | None:
        if chance.random() < 0.2:
            zone_id = self.seated.hall.zone_id("P1")
            answer = await self._send(client, "POST", f"{self.places}/zones/{zone_id}/reserve", person, {"quantity": 2})
        else:
            seat_id = self.seated.hall.seat_id(chance.randrange(SEATS))
            answer = await self._send(client, "POST", f"{self.places}/seats/{seat_id}/reserve", person, {})
        if answer is None or not answer.is_success:
            return None
        hold_id = UUID(answer.json()["data"]["hold_id"])
        self.told.held[hold_id] = person.user_id
        return hold_id

    async def _give_back(self, client: httpx2.AsyncClient, person: Person, hold_id: UUID) -> None:
        self.told.open.add(hold_id)
        answer = await self._send(client, "DELETE", f"/api/holds/{hold_id}", person, None)
        if answer is not None and answer.status_code < 500:
            self.told.open.discard(hold_id)
            self.told.held.pop(hold_id, None)

    async def _send(
        self, client: httpx2.AsyncClient, method: str, path: str, person: Person, body: object
    ) -> httpx2.Response | None:
        try:
            answer = await client.request(method, path, headers=person.headers, json=body)
        except httpx2.HTTPError as lost:
            self.told.lost_count += 1
            self.told.errors.append(type(lost).__name__)
            await asyncio.sleep(PAUSE_WHEN_AWAY_S)
            return None
        self.told.statuses[answer.status_code] += 1
        if answer.status_code >= 500:
            self.told.errors.append(f"{method} {answer.status_code}: {answer.text}")
            await asyncio.sleep(PAUSE_WHEN_AWAY_S)
        return answer

    async def given_up(self) -> None:
        """Until a process has opened its breaker."""
        async with asyncio.timeout(GIVEN_UP_WITHIN_S):
            while (await read_metrics(self.address))['voelgoedevents_breaker_state{name="redis"}'] != OPEN:
                await asyncio.sleep(0.05)

    async def reconcile(self) -> None:
        """Compare, and have made anew what differs, as a job does by itself."""
        async with RedisLink(self.redis.url, connect_timeout_s=2, call_timeout_s=5) as link:
            projection = Projection(link)
            await reconcile.reconcile_all(self.db, Availability(self.db, projection), projection)

    # Comparing

    async def agree(self) -> float:
        """Wait until every process and Redis have the places as PostgreSQL has them; how long that took."""
        began = time.monotonic()
        async with RedisLink(self.redis.url, connect_timeout_s=2, call_timeout_s=5) as link:
            projection = Projection(link)
            while why := await self._why_different(projection):
                assert time.monotonic() - began < AGREE_WITHIN_S, why
                await asyncio.sleep(0.05)
        return time.monotonic() - began

    async def _why_different(self, projection: Projection) -> str | None:
        truth = await self.find_map()
        counts = truth.counts()
        expected = (truth.epoch, truth.map_version, truth.encoded(), counts.held, counts.available)
        for _ in range(CONNECTIONS):
            async with httpx2.AsyncClient(base_url=self.address, timeout=20) as client:
                found = (await client.get(f"{self.places}/seatmap")).raise_for_status().json()["data"]
            held, free = (sum(zone[name] for zone in found["zones"]) for name in ("held", "available"))
            if (found["epoch"], found["map_version"], found["statuses"], held, free) != expected:
                return f"a process shows map {found['map_version']}, PostgreSQL has {truth.map_version}"
        availability = Availability(self.db, projection)
        report = await reconcile.look(self.db, availability, projection, self.organization.id, self.seated.event.id)
        return None if report.consistent else f"{report.message} {report}"

    async def audit(self) -> None:
        """Nothing that must never be so is so, and what is held is what people were told."""
        found = await auditing.verify(self.db)
        assert not found, found
        async with self.db.transaction(self.organization.id) as conn:
            rows = await conn.fetch("select id, user_id from seat_holds where status = 'active'")
        there = {row["id"]: row["user_id"] for row in rows}
        known = {hold_id: user_id for hold_id, user_id in self.told.held.items() if hold_id not in self.told.open}
        assert known.items() <= there.items(), "something acknowledged was lost"
        unknown = there.keys() - self.told.held.keys()
        assert len(unknown) <= self.told.lost_count, "holds that nobody asked for"


@contextlib.asynccontextmanager
async def shop(
    servers: Embedded, settings: Settings, data_dir: Path, name: str, *, seed: int = 1
) -> AsyncIterator[Shop]:
    """Two web processes and a worker with a database and a Redis of their own, and an event on sale."""
    key = data_dir / "secret.key"
    key.write_bytes(SECRET_KEY)
    async with contextlib.AsyncExitStack() as held:
        redis = await held.enter_async_context(trouble.server(data_dir))
        wire = await held.enter_async_context(Wire(redis.port).open())
        alone = await held.enter_async_context(database_alone(servers, settings, TEMPLATE, name))
        db = await Database.open(servers.postgres_url(schema.APP, name))
        held.push_async_callback(db.close)
        place = await make_organization(db)
        people = [await make_person(db, place, Role.STAFF) for _ in range(BUYERS)]  # whom nobody limits
        studio = Studio(db, Cache(link=RedisLink("redis://127.0.0.1:1")))  # nobody is there
        layout = hall_layout(seats=SEATS, pits=[PIT])
        seated = await seated_event(db, studio, place, layout, status="published")
        chosen = {
            "workers": WEBS,
            "port": free_port(),
            "data_dir": data_dir,
            "secret_key_file": key,
            "redis_url": SecretStr(wire.url),
            "redis_probe_s": PROBE_S,
        }
        tree = Tree(alone.model_copy(update=chosen), metrics.prepare_folder(data_dir))
        environment = held.enter_context(pytest.MonkeyPatch.context())
        environment.setenv("VOELGOED_UNSAFE_DATABASE", "1")
        environment.setenv("VOELGOED_LOG_LEVEL", "error")
        held.push_async_callback(tree.stop)
        await tree.start()
        watching = asyncio.create_task(tree.watch())
        held.push_async_callback(_ended, watching)
        made = Shop(db, tree, redis, wire, place, seated, people, random.Random(seed))
        await made.agree()
        yield made


async def _ended(task: asyncio.Task[None]) -> None:
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


async def read_metrics(address: str) -> dict[str, float]:
    """Every number of the installation."""
    async with httpx2.AsyncClient(base_url=address, timeout=20) as client:
        page = (await client.get("/metrics")).raise_for_status().text
    lines = (line.rsplit(" ", 1) for line in page.splitlines() if line and line[0] != "#")
    return {name: float(value) for name, value in lines}


async def end_a_backend(servers: Embedded, name: str, chance: random.Random) -> None:
    """End one of the processes' sessions inside PostgreSQL, whatever it does."""
    admin = await asyncpg.connect(servers.admin_url)
    try:
        pids = await admin.fetch(
            "select pid from pg_stat_activity where datname = $1 and application_name like 'voelgoed %' order by pid",
            name,
        )
        await admin.execute("select pg_terminate_backend($1)", chance.choice(pids)["pid"])
    finally:
        await admin.close()
