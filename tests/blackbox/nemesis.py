"""The nemesis: injects faults one at a time or two at once, lifts them, and waits until the product has recovered.

It only signals processes of the tree that the run has started.
"""

import asyncio
import contextlib
import os
import random
import signal
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field

import asyncpg

from tests.blackbox.history import Fault, FaultKind, History
from tests.blackbox.http_client import NoAnswer, NotSent
from tests.blackbox.server import Product

RECOVERY_WAIT_S = 60.0
READY_IN_A_ROW = 6
ADMIN_WAIT_S = 2.0
BUSY_BACKENDS = 4
ROLES = {
    FaultKind.KILL_WEB: "web",
    FaultKind.KILL_WORKER: "worker",
    FaultKind.KILL_VALKEY: "valkey",
    FaultKind.KILL_BACKEND: "backend",
    FaultKind.KILL_POSTGRES: "postgres",
    FaultKind.FREEZE_WEB: "web",
    FaultKind.FREEZE_WORKER: "worker",
    FaultKind.FREEZE_VALKEY: "valkey",
    FaultKind.FREEZE_BACKEND: "backend",
}
KILLS = frozenset(kind for kind in ROLES if kind.startswith("kill"))
PAIRS = (
    (FaultKind.FREEZE_WORKER, FaultKind.KILL_VALKEY),
    (FaultKind.FREEZE_WEB, FaultKind.KILL_BACKEND),
    (FaultKind.FREEZE_VALKEY, FaultKind.KILL_WEB),
    (FaultKind.KILL_WORKER, FaultKind.KILL_POSTGRES),
    (FaultKind.FREEZE_WORKER, FaultKind.CLOCK_STEP),
    (FaultKind.READ_ONLY, FaultKind.KILL_WEB),
)
Step = tuple[FaultKind, ...]


class NotRecovered(Exception):
    """The product did not become ready again after a fault."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lengths:
    """How long faults last, in seconds: shortest and longest. `clock_steps` are by how much clocks may step."""

    freeze_web: tuple[float, float]
    freeze: tuple[float, float]
    clock: tuple[float, float]
    no_writes: tuple[float, float]
    pause: tuple[float, float]
    clock_steps: tuple[int, ...]

    def of(self, kind: FaultKind) -> tuple[float, float]:
        if kind in KILLS:
            return 0.0, 0.0
        if kind is FaultKind.FREEZE_WEB:
            return self.freeze_web
        if kind is FaultKind.CLOCK_STEP:
            return self.clock
        return self.no_writes if kind in (FaultKind.DISK_FULL, FaultKind.READ_ONLY) else self.freeze


SHORT = Lengths(
    freeze_web=(4.5, 5.5),
    freeze=(1.5, 2.5),
    clock=(2.5, 3.5),
    no_writes=(4.5, 5.0),
    pause=(0.3, 0.8),
    clock_steps=(3600,),
)
LONG = Lengths(
    freeze_web=(4.5, 25.0),
    freeze=(2.0, 12.0),
    clock=(3.0, 12.0),
    no_writes=(5.0, 12.0),
    pause=(1.0, 4.0),
    clock_steps=(3600, 120, -120, -3600),
)


def plan_round(chance: random.Random, *, pairs: int) -> list[Step]:
    """Return every kind of fault once, and some pairs, in random order."""
    steps: list[Step] = [(kind,) for kind in FaultKind]
    steps += chance.sample(PAIRS, pairs)
    chance.shuffle(steps)
    return steps


@dataclass(slots=True)
class Nemesis:
    """Injects faults into one product and writes them into the history."""

    product: Product
    history: History
    chance: random.Random
    lengths: Lengths
    on_fault: Callable[[Fault], None] = field(default=lambda _: None)

    def longest(self, step: Step) -> float:
        """Return how long a step takes at most, apart from recovery."""
        return max(self.lengths.of(kind)[1] for kind in step)

    async def inject(self, step: Step, *, for_s: float | None = None) -> None:
        """Inject the faults of a step, the second while the first lasts; lift them and wait for recovery."""
        began = len(self.history.faults)
        if for_s is None:
            for_s = max(self.chance.uniform(*self.lengths.of(kind)) for kind in step)
        async with contextlib.AsyncExitStack() as lasting:
            for kind in step:
                await lasting.enter_async_context(self._fault(kind))
            await asyncio.sleep(for_s)
        await self.wait_until_ready()
        for fault in self.history.faults[began:]:
            fault.recovered = time.monotonic()
            self.on_fault(fault)
        await asyncio.sleep(self.chance.uniform(*self.lengths.pause))

    @contextlib.asynccontextmanager
    async def _fault(self, kind: FaultKind) -> AsyncIterator[None]:
        fault = Fault(kind=kind, detail="", began=time.monotonic())
        self.history.faults.append(fault)
        async with self._effect(kind, fault):
            yield
        fault.lifted = time.monotonic()

    def _effect(self, kind: FaultKind, fault: Fault) -> contextlib.AbstractAsyncContextManager[None]:
        if kind in ROLES:
            return self._signalled(kind, fault)
        if kind is FaultKind.CLOCK_STEP:
            return self._clock_stepped(fault)
        return self._disk_full() if kind is FaultKind.DISK_FULL else self._read_only()

    @contextlib.asynccontextmanager
    async def _signalled(self, kind: FaultKind, fault: Fault) -> AsyncIterator[None]:
        """Kill or freeze one process of a role."""
        pid = self.chance.choice(await self._find(ROLES[kind]))
        fault.detail = f"pid {pid}"
        is_kill = kind in KILLS
        os.kill(pid, signal.SIGKILL if is_kill else signal.SIGSTOP)
        try:
            yield
            fault.is_in_transaction = not is_kill and await self._is_writer_stuck()
        finally:
            if not is_kill:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)

    async def _find(self, role: str) -> Sequence[int]:
        """Return the processes of a role; one that is starting again is waited for."""
        async with asyncio.timeout(RECOVERY_WAIT_S):
            while not (pids := self.product.pids(role)):
                await asyncio.sleep(0.05)
        # Most of PostgreSQL's backends are idle; those that have worked most are most likely to hold locks.
        return sorted(pids, key=self.product.cpu_ticks)[-BUSY_BACKENDS:] if role == "backend" else pids

    async def _is_writer_stuck(self) -> bool:
        """Return whether a transaction that writes has been open for more than a second."""
        statement = (
            "select exists (select from pg_stat_activity"
            " where backend_xid is not null and xact_start < clock_timestamp() - interval '1 second')"
        )
        with contextlib.suppress(OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError):
            conn = await asyncpg.connect(self.product.database_url, timeout=ADMIN_WAIT_S, command_timeout=ADMIN_WAIT_S)
            try:
                return bool(await conn.fetchval(statement))
            finally:
                conn.terminate()
        return False

    @contextlib.asynccontextmanager
    async def _clock_stepped(self, fault: Fault) -> AsyncIterator[None]:
        """Move PostgreSQL's clock by more than any hold lasts, and back."""
        seconds = self.chance.choice(self.lengths.clock_steps)
        fault.detail, fault.clock_step_s = f"{seconds:+d} s", seconds
        self.product.shim.set_clock_offset(seconds)
        try:
            yield
        finally:
            self.product.shim.set_clock_offset(0)

    @contextlib.asynccontextmanager
    async def _disk_full(self) -> AsyncIterator[None]:
        self.product.shim.set_disk_full(is_full=True)
        try:
            yield
        finally:
            self.product.shim.set_disk_full(is_full=False)

    @contextlib.asynccontextmanager
    async def _read_only(self) -> AsyncIterator[None]:
        await self._administer("alter system set default_transaction_read_only = on")
        try:
            yield
        finally:
            await self._administer("alter system reset default_transaction_read_only")

    async def _administer(self, statement: str) -> None:
        async with asyncio.timeout(RECOVERY_WAIT_S):
            while True:
                with contextlib.suppress(OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
                    conn = await asyncpg.connect(self.product.database_url)
                    try:
                        await conn.execute(statement)
                        await conn.execute("select pg_reload_conf()")
                    finally:
                        await conn.close()
                    return
                await asyncio.sleep(0.1)

    async def wait_until_ready(self) -> None:
        """Wait until every process is there and readiness is confirmed on several new connections in a row."""
        give_up_at, in_a_row = time.monotonic() + RECOVERY_WAIT_S, 0
        while in_a_row < READY_IN_A_ROW:
            if time.monotonic() > give_up_at or not self.product.is_running:
                raise NotRecovered(self.product.log_tail())
            in_a_row = in_a_row + 1 if await self._is_ready() else 0
            await asyncio.sleep(0.0 if in_a_row else 0.1)

    async def _is_ready(self) -> bool:
        if not self.product.is_complete():
            return False
        client = self.product.client()
        try:
            return (await client.request("GET", "/readyz", timeout_s=1.0)).status == 200
        except (NotSent, NoAnswer):
            return False
        finally:
            client.close()
