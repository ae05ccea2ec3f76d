"""Kills under load: of a backend of the lanes, of PostgreSQL, of a web process. Nothing acknowledged is ever lost.

Buyers ask over HTTP all the while, two for each seat, on a server that writes to disk as in production. Half of them
are staff, whom nobody limits, half are customers, who come and go and ask for places by number too. At the end what
they were told is compared with what is there. Twice each, and more often in `make sim`: `CYCLES=20` kills as often as
the acceptance of the registry asks for.
"""

import asyncio
import contextlib
import os
import random
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from uuid import UUID

import asyncpg
import httpx2
import pytest

from tests.make.accounts import make_organization, make_person
from tests.make.layouts import DROP, small_layout
from tests.make.processes import Installation, family, installation
from tests.make.races import make_crowd
from tests.make.seating import Seated, seated_event
from voelgoed import schema
from voelgoed.accounts import tokens
from voelgoed.accounts.model import Organization, Role
from voelgoed.cache import Cache
from voelgoed.db import Database
from voelgoed.embedded import RESTARTS_MAX, Embedded
from voelgoed.holds import auditing
from voelgoed.redis import RedisLink
from voelgoed.seating.studio import Studio

CYCLES = int(os.environ.get("CYCLES") or 2)
pytestmark = pytest.mark.timeout(60 + 60 * CYCLES)
WEBS = 2
BUYERS = 16
CUSTOMERS = 400 * CYCLES
SEATS_PER_CUSTOMER, PLACES_PER_CUSTOMER = 5, 2  # together fewer than anybody may have
SEATS = 4_000 * CYCLES
PAUSE_S = 0.02
PAUSE_WHEN_AWAY_S = 0.2
ACKNOWLEDGED_BETWEEN = 40
WITHIN_S = 60
SETTLED = {200, 201, 409}

Kill = Callable[[Installation, Path], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Buyer:
    """Somebody who is signed in and asks."""

    user_id: UUID
    token: str

    @property
    def headers(self) -> dict[str, str]:
        return {"authorization": f"Bearer {self.token}"}


@dataclass(slots=True)
class Told:
    """What buyers were told: of holds by their id, of refusals and silence by who asked for what."""

    acknowledged: dict[UUID, tuple[UUID, UUID, datetime]] = field(default_factory=dict)
    refused: set[tuple[UUID, UUID]] = field(default_factory=set)
    unknown: list[tuple[Buyer, UUID]] = field(default_factory=list)

    def hear(self, person: Buyer, place_id: UUID, answer: httpx2.Response | None) -> None:
        """Remember an answer as what it is; none at all, or one that says so itself, leaves the outcome open."""
        body = {} if answer is None else answer.json()
        if answer is not None and answer.is_success:
            hold = body["data"]
            known = (person.user_id, place_id, datetime.fromisoformat(hold["held_until"]))
            assert self.acknowledged.setdefault(UUID(hold["hold_id"]), known) == known
        elif answer is None or body["effect"] == "unknown":
            self.unknown.append((person, place_id))
        else:
            self.refused.add((person.user_id, place_id))


@dataclass
class Crowd:
    """Buyers who never stop asking: staff, and one customer after the other. Each asks for a place once."""

    client: httpx2.AsyncClient
    seated: Seated
    staff: list[Buyer]
    customers: Iterator[Buyer]
    told: Told = field(default_factory=Told)

    @contextlib.asynccontextmanager
    async def asking(self) -> AsyncIterator[None]:
        """All of them ask while the block lasts."""
        stop, wanted = asyncio.Event(), self._wanted()
        buyers = [asyncio.create_task(self._sell(person, wanted, stop)) for person in self.staff]
        buyers += [asyncio.create_task(self._shop(wanted, stop)) for _ in range(BUYERS - len(self.staff))]
        try:
            yield
        finally:
            stop.set()
            await asyncio.gather(*buyers)

    def _wanted(self) -> Iterator[UUID]:
        """Every seat twice in a row, so that two ask for it at the same moment."""
        ordinals = random.Random(1).sample(range(SEATS), SEATS)
        return (self.seated.hall.seat_id(ordinal) for ordinal in ordinals for _ in range(2))

    async def _sell(self, person: Buyer, wanted: Iterator[UUID], stop: asyncio.Event) -> None:
        asked = set[UUID]()
        while not stop.is_set():
            await self._ask_for_next(person, wanted, asked)

    async def _shop(self, wanted: Iterator[UUID], stop: asyncio.Event) -> None:
        for person in self.customers:
            asked = set[UUID]()
            await self._ask_and_hear(person, self.pit)
            for _ in range(SEATS_PER_CUSTOMER):
                if stop.is_set():
                    return
                await self._ask_for_next(person, wanted, asked)

    async def _ask_for_next(self, person: Buyer, wanted: Iterator[UUID], asked: set[UUID]) -> None:
        seat_id = next(wanted)
        if seat_id not in asked:
            asked.add(seat_id)
            await self._ask_and_hear(person, seat_id)

    async def _ask_and_hear(self, person: Buyer, place_id: UUID) -> None:
        answer = await self.ask(person, place_id)
        self.told.hear(person, place_id, answer)
        is_settled = answer is not None and answer.status_code in SETTLED
        await asyncio.sleep(PAUSE_S if is_settled else PAUSE_WHEN_AWAY_S)

    @property
    def pit(self) -> UUID:
        return self.seated.hall.zone_id("P")

    async def ask(self, person: Buyer, place_id: UUID) -> httpx2.Response | None:
        """The answer, or nothing when the connection was lost; where there is none yet, nothing was asked yet."""
        event = f"/api/events/{self.seated.event.id}"
        path, body, headers = f"{event}/seats/{place_id}/reserve", {}, person.headers
        if place_id == self.pit:  # places by number are not known by themselves, so a repeat is known by its key
            path, body = f"{event}/zones/{place_id}/reserve", {"quantity": PLACES_PER_CUSTOMER}
            headers |= {"idempotency-key": f"places-{person.user_id}"}
        async with asyncio.timeout(WITHIN_S):
            while True:
                try:
                    return await self.client.post(path, json=body, headers=headers)
                except httpx2.ConnectError:
                    await asyncio.sleep(PAUSE_WHEN_AWAY_S)
                except httpx2.HTTPError:
                    return None

    async def acknowledged(self, more: int) -> None:
        """Until so many more were given a seat."""
        enough = len(self.told.acknowledged) + more
        async with asyncio.timeout(WITHIN_S):
            while len(self.told.acknowledged) < enough:
                await asyncio.sleep(0.005)

    async def ask_once_more(self) -> int:
        """Repeat every ask whose outcome is open, once; how many there were. Each is settled by that."""
        left, self.told.unknown = self.told.unknown, []
        for person, place_id in left:
            answer = await self.ask(person, place_id)
            assert answer is not None
            assert answer.status_code in SETTLED, answer.text
            self.told.hear(person, place_id, answer)
        assert not self.told.unknown
        return len(left)


async def compare(db: Database, crowd: Crowd) -> None:
    """What is there is what was told: nothing lost, nothing that was refused, nothing that nobody asked for."""
    async with db.system_transaction() as conn:
        rows = await conn.fetch(
            "select id, user_id, coalesce(seat_id, zone_id) as place_id, status::text, expires_at"
            " from seat_holds where event_id = $1",
            crowd.seated.event.id,
        )
    there = {row["id"]: (row["user_id"], row["place_id"], row["expires_at"]) for row in rows}
    assert {row["status"] for row in rows} == {"active"}
    assert crowd.told.acknowledged.keys() - there.keys() == set(), "something acknowledged was lost"
    assert {(user_id, place_id) for user_id, place_id, _ in there.values()} & crowd.told.refused == set()
    assert there.keys() - crowd.told.acknowledged.keys() == set(), "a hold that nobody knows of"
    for hold_id, (user_id, place_id, until) in crowd.told.acknowledged.items():
        assert there[hold_id][:2] == (user_id, place_id)
        assert there[hold_id][2] >= until
    seats = [place_id for _, place_id, _ in there.values() if place_id != crowd.pit]
    assert 0 < len(set(seats)) == len(seats) < len(there), "a seat was given twice, or nobody asked by number"
    takers = [user_id for user_id, place_id, _ in there.values() if place_id == crowd.pit]
    assert len(set(takers)) == len(takers), "places by number were given twice for one ask"
    assert await auditing.verify(db) == []


async def customers_of(db: Database, place: Organization) -> list[Buyer]:
    """Many customers, made at once."""
    found = {tokens.token_hash(token): token for token in await make_crowd(db, place, CUSTOMERS)}
    async with db.system_transaction() as conn:
        rows = await conn.fetch("select user_id, token_hash from sessions where token_hash = any ($1)", list(found))
    return [Buyer(row["user_id"], found[row["token_hash"]]) for row in rows]


async def one_life(data_dir: Path, kills: int, kill: Kill) -> Told:
    """Start, sell, kill in the middle of it again and again while everybody goes on asking, and compare."""
    there = Embedded(data_dir)
    with installation(data_dir, "--workers", str(WEBS)) as running:
        async with contextlib.AsyncExitStack() as held:
            db = await Database.open(there.postgres_url(schema.APP), size=4)
            held.push_async_callback(db.close)
            link = await held.enter_async_context(RedisLink(there.valkey_url, connect_timeout_s=1, call_timeout_s=1))
            client = await held.enter_async_context(
                httpx2.AsyncClient(base_url=running.address, timeout=15, limits=httpx2.Limits(max_connections=BUYERS))
            )
            place = await make_organization(db)
            staff = [await make_person(db, place, Role.STAFF) for _ in range(BUYERS // 2)]
            rows = [
                {"label": f"R{row}", "seats": {"count": 100, "x": {"start": 0, "step": 50}, "y": 1_000 + 100 * row}}
                for row in range(SEATS // 100)
            ]
            pit = {"zones.2.capacity": CUSTOMERS * PLACES_PER_CUSTOMER}
            layout = small_layout({"zones.0.rows": rows, "zones.0.groups": DROP, **pit})
            seated = await seated_event(db, Studio(db, Cache(link=link)), place, layout, status="published")
            crowd = Crowd(
                client,
                seated,
                [Buyer(person.user_id, person.token) for person in staff],
                iter(await customers_of(db, place)),
            )
            async with crowd.asking():
                await crowd.acknowledged(ACKNOWLEDGED_BETWEEN)
                for _ in range(kills):
                    await kill(running, data_dir)
                    await crowd.acknowledged(ACKNOWLEDGED_BETWEEN)
            unknown = await crowd.ask_once_more()
            await compare(db, crowd)
            assert running.process.poll() is None
    told = crowd.told
    print(f"{kills} kills: {len(told.acknowledged)} acknowledged, {len(told.refused)} refused, {unknown} unknown")
    return told


async def survive(data_dir: Path, kill: Kill) -> None:
    """As many kills as asked for, in as many lives as it takes, on the same data: too many in one are given up on."""
    for first in range(0, CYCLES, RESTARTS_MAX):
        await one_life(data_dir, min(RESTARTS_MAX, CYCLES - first), kill)


async def kill_backend(running: Installation, data_dir: Path) -> None:
    """One of the lanes' sessions inside PostgreSQL, at work if one is; PostgreSQL then ends them all and recovers."""
    admin = await asyncpg.connect(Embedded(data_dir).admin_url)
    try:
        pid = await admin.fetchval(
            "select pid from pg_stat_activity where application_name like '% lanes'"
            " order by state = 'active' desc limit 1"
        )
    finally:
        admin.terminate()
    os.kill(pid, signal.SIGKILL)


async def kill_postgres(running: Installation, data_dir: Path) -> None:
    """All of it; the parent starts it again."""
    os.kill(int((data_dir / "pg" / "postmaster.pid").read_text().split()[0]), signal.SIGKILL)


async def kill_web(running: Installation, data_dir: Path) -> None:
    """The elder of the two processes that serve, once both are there; the parent starts it again."""
    async with asyncio.timeout(WITHIN_S):
        while len(webs := serving(running, data_dir)) < WEBS:
            await asyncio.sleep(0.05)
    os.kill(min(webs, key=begun), signal.SIGKILL)


def serving(running: Installation, data_dir: Path) -> list[int]:
    """The web processes, once the log says that whoever died is back."""
    log = (data_dir / "demo.log").read_text().rpartition("worker_stopped")[2]  # of this life: all write to one file
    if log.count("process_died") > log.count("process_restarted"):
        return []
    return [pid for pid in family(running.process.pid) if b"voelgoed.http" in command(pid)]


def begun(pid: int) -> int:
    """When it was started, by the kernel's count."""
    return int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[19])


def command(pid: int) -> bytes:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""


@pytest.mark.req("HOLD-16", "HOLD-21", "PERF-18")
async def test_a_killed_backend_loses_nothing(lived_in: Path) -> None:
    """After kill -9 of a backend that commits holds: what was acknowledged is there, a repeat settles the rest."""
    await survive(lived_in, kill_backend)


@pytest.mark.req("HOLD-16", "HOLD-21", "PERF-18")
async def test_a_killed_postgresql_loses_nothing(lived_in: Path) -> None:
    """After kill -9 of PostgreSQL as a whole, under load; it comes back by itself, and so do the buyers."""
    await survive(lived_in, kill_postgres)


@pytest.mark.req("HOLD-16", "HOLD-21", "PERF-18")
async def test_a_killed_web_process_loses_nothing(lived_in: Path) -> None:
    """After kill -9 of a web process with asks in its hands; the other one serves meanwhile."""
    await survive(lived_in, kill_web)
