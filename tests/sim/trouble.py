"""A Redis of a test's own that can be hurt in every way, and a wire to it that can be slow."""

import asyncio
import contextlib
import os
import random
import signal
import subprocess
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

from redis.asyncio import Redis

from tests.make.processes import free_port
from voelgoed.embedded import Embedded
from voelgoed.holds import store
from voelgoed.holds.hotmap import HotMap
from voelgoed.ids import OrganizationId, new_id
from voelgoed.redis import connect, why_away

READY_WAIT_S = 20
FAR_MS = 4_000_000_000_000


@dataclass
class Server:
    """A Valkey that can be killed, frozen, and brought up with what it had at some earlier time."""

    folder: Path
    port: int = field(default_factory=free_port)
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    async def start(self) -> None:
        """Start it, with the dump that is in its folder, if there is one; returns when it answers."""
        program = Embedded(self.folder, with_postgres=False).valkey_program()
        argv: list[str | Path] = [
            program,
            "--port",
            str(self.port),
            "--bind",
            "127.0.0.1",
            "--dir",
            self.folder,
            "--save",
            "",
        ]
        self.process = subprocess.Popen([*argv, "--appendonly", "no"], stdout=subprocess.DEVNULL)
        async with asyncio.timeout(READY_WAIT_S):
            while await self._is_away():
                await asyncio.sleep(0.01)

    def kill(self) -> None:
        """Without warning; what it knew is gone, but for a dump."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def freeze(self) -> None:
        """Let it hang: connections stay, nothing is answered."""
        assert self.process is not None
        os.kill(self.process.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it go on where it stopped, with everything that was sent to it meanwhile."""
        assert self.process is not None
        os.kill(self.process.pid, signal.SIGCONT)

    async def keep(self) -> None:
        """Write down what it knows: it comes up with that."""
        async with self.client() as client:
            await client.save()

    def lose_dump(self) -> None:
        """It comes up with nothing."""
        (self.folder / "dump.rdb").unlink(missing_ok=True)

    def client(self) -> Redis:
        """A way to it past everything, for whoever looks or hurts."""
        return connect(self.url, connect_timeout_s=5, call_timeout_s=5)

    def end(self) -> None:
        """Whatever state it is in."""
        if self.process is not None and self.process.poll() is None:
            self.thaw()
            self.kill()

    async def _is_away(self) -> bool:
        async with self.client() as client:
            return await why_away(client) is not None


@contextlib.asynccontextmanager
async def server(folder: Path) -> AsyncIterator[Server]:
    """A server of a test's own, up until the block ends."""
    made = Server(folder)
    try:
        await made.start()
        yield made
    finally:
        made.end()


@dataclass
class Wire:
    """A way to a server on which everything takes a while longer."""

    to_port: int
    delay_s: float = 0.0
    port: int = field(default_factory=free_port)
    _pumps: set[asyncio.Task[None]] = field(default_factory=set)

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    @contextlib.asynccontextmanager
    async def open(self) -> AsyncIterator["Wire"]:
        """Carry bytes until the block ends."""
        listening = await asyncio.start_server(self._carry, "127.0.0.1", self.port)
        try:
            yield self
        finally:
            listening.close()
            for pump in list(self._pumps):
                pump.cancel()
            await asyncio.gather(*self._pumps, return_exceptions=True)

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._pumps.add(task)
        try:
            with contextlib.suppress(OSError):
                other_reader, other_writer = await asyncio.open_connection("127.0.0.1", self.to_port)
                ways = [self._pump(reader, other_writer), self._pump(other_reader, writer)]
                pumps = [asyncio.create_task(way) for way in ways]
                try:
                    await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    for pump in pumps:
                        pump.cancel()
                    await asyncio.gather(*pumps, return_exceptions=True)
                    other_writer.close()
        except asyncio.CancelledError:
            return  # the block has ended, and nobody waits for this
        finally:
            self._pumps.discard(task)
            writer.close()

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(2**16):
                if self.delay_s:
                    await asyncio.sleep(self.delay_s)
                writer.write(data)
                await writer.drain()


# What can stand in Redis that should not


def key(organization_id: OrganizationId, event_id: UUID, name: str) -> str:
    """A key of an event, as the architecture names it: said a second time, so that a change of names is seen."""
    return f"voelgoed:org:{organization_id}:event:{{{event_id}}}:{name}"


async def plant_ghosts(client: Any, found: HotMap) -> int:
    """Say of every seat that can be had that somebody holds it for a long time, in the map's own words; how many."""
    organization_id, event_id = found.organization_id, found.event_id
    epoch = int(await client.get(key(organization_id, event_id, "epoch")) or 0)
    free = [ordinal for ordinal in range(len(found)) if found.statuses[ordinal] == 0]
    for ordinal in free:
        hold_id, user_id, version = new_id(), new_id(), found.versions[ordinal] + 1
        seat = key(organization_id, event_id, f"seat:{found.seat_id(ordinal)}:hold")
        await client.set(seat, f"{epoch}:{version}:{hold_id}:{user_id}:{FAR_MS}")
        await client.setrange(key(organization_id, event_id, "map"), ordinal, b"\x01")
        await client.zadd(key(organization_id, event_id, "seat_holds"), {str(hold_id): FAR_MS})
    return len(free)


async def plant_garbage(client: Any, found: HotMap) -> None:
    """Values that mean nothing, of the right type."""
    names = {name: key(found.organization_id, found.event_id, name) for name in NAMES}
    await client.set(names["epoch"], b"\xff\xfe not a number")
    await client.set(names["map"], os.urandom(7))
    await client.set(names["versions"], os.urandom(3))
    await client.set(names["occupancy"], b"5 {")
    await client.hset(names["zones"], mapping={"what": "ever", str(found.zones[-1].zone_id): "nothing"})
    await client.zadd(names["seat_holds"], {"nobody": float("inf"), str(new_id()): float("inf")})
    for ordinal in range(len(found)):
        seat = key(found.organization_id, found.event_id, f"seat:{found.seat_id(ordinal)}:hold")
        await client.set(seat, (b"\xff\x00", b"1:2:3", b"1:1:" + 2 * f"{new_id()}:".encode() + b"9" * 400)[ordinal % 3])


async def plant_wrong_types(client: Any, found: HotMap) -> None:
    """Lists where anything else should be."""
    seats = [f"seat:{found.seat_id(ordinal)}:hold" for ordinal in range(len(found))]
    for name in (*NAMES, *seats):
        one = key(found.organization_id, found.event_id, name)
        pipe = client.pipeline(transaction=True)  # in one step: the worker writes meanwhile
        pipe.delete(one)
        pipe.rpush(one, "a", "b")
        await pipe.execute()


NAMES = ("epoch", "map", "versions", "zones", "seat_holds", "occupancy")


@dataclass
class Trouble:
    """Everything that can go wrong with Redis during a sale; each ends with Redis well again."""

    redis: Server
    wire: Wire
    chance: random.Random
    truth: Any

    async def killed(self) -> None:
        self.redis.kill()
        await self._until_given_up()
        self.redis.lose_dump()
        await self.redis.start()

    async def frozen(self) -> None:
        self.redis.freeze()
        await self._until_given_up()
        self.redis.thaw()

    async def slow(self) -> None:
        """Slower than anybody waits for it."""
        self.wire.delay_s = 0.4
        await self._until_given_up()
        self.wire.delay_s = 0.0

    async def sluggish(self) -> None:
        """Slow, but it answers in time."""
        self.wire.delay_s = 0.03
        await self._while_people_buy()
        self.wire.delay_s = 0.0

    async def old(self) -> None:
        """It comes back with what it knew a while ago."""
        await self.redis.keep()
        await self._while_people_buy()
        self.redis.kill()
        await self._until_given_up()
        await self.redis.start()

    async def flushed(self) -> None:
        async with self.redis.client() as client:
            await client.flushall()
        await self._while_people_buy()

    async def haunted(self) -> None:
        async with self.redis.client() as client:
            await plant_ghosts(client, await self.truth.find_map())
        await self._while_people_buy()
        await self.truth.reconcile()  # as the job does every five minutes: nothing else looks for what nobody changes

    async def garbled(self) -> None:
        async with self.redis.client() as client:
            await plant_garbage(client, await self.truth.find_map())
        await self._while_people_buy()

    async def mistyped(self) -> None:
        async with self.redis.client() as client:
            await plant_wrong_types(client, await self.truth.find_map())
        await self._while_people_buy()

    async def _until_given_up(self) -> None:
        """Until some process has stopped asking, and people have bought without it."""
        await self.truth.given_up()
        await self._while_people_buy()

    async def _while_people_buy(self) -> None:
        await self.truth.sold_more(self.chance.randint(10, 60))


async def find_map(db: Any, organization_id: OrganizationId, event_id: UUID) -> HotMap:
    """An event's places as PostgreSQL has them."""
    async with db.transaction(organization_id) as conn:
        snapshot = await store.load_map(conn, organization_id, event_id)
    assert snapshot is not None
    found = HotMap(snapshot, read_at=0.0)
    found.expire(snapshot.now_ms)
    return found
