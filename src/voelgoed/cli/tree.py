"""The process tree of an installation: a parent that owns the embedded servers, the web processes and one worker.

The parent serves nothing itself. It starts what is missing, starts again what dies, and takes everything with it when
it goes.
"""

import asyncio
import contextlib
import os
import resource
import socket
import sys
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass, field

import structlog
from pydantic import SecretStr

from voelgoed import schema
from voelgoed.config import ENV_PREFIX, Settings
from voelgoed.embedded import Embedded, running
from voelgoed.errors import StartRefused
from voelgoed.lifeline import LIFELINE_ENV, READY, stop_signals

log = structlog.get_logger(__name__)

WEB, WORKER = "voelgoed.http", "voelgoed.jobs"  # run as modules: neither pays for importing the other
READY_WAIT_S = 60.0
RESTARTS_MAX = 10
RESTARTS_WINDOW_S = 60.0
RESTART_PAUSES_S = (0.1, 0.5, 2.0, 5.0)
KILL_MARGIN_S = 2.0
OPEN_FILES_WANTED = 65_536


@dataclass(frozen=True, slots=True)
class Running:
    """What is up, told to whoever waits for it."""

    address: str
    settings: Settings
    pids: dict[str, int]


OnReady = Callable[[Running], None]
BeforeChildren = Callable[[Settings], Awaitable[None]]


async def nothing_more(_: Settings) -> None:
    """Add nothing to the data before the processes start."""


async def run(settings: Settings, *, on_ready: OnReady, before_children: BeforeChildren = nothing_more) -> None:
    """Run until asked to stop; returns when every process is gone."""
    asked = stop_signals()
    raise_open_files_limit()
    with reserve_port(settings) as port:
        settings = settings.model_copy(update={"port": port})
        async with servers(settings) as (settings, embedded):
            await before_children(settings)
            tree = Tree(settings)
            try:
                await _until_first(asked.wait(), tree.start())
                if asked.is_set():
                    return
                on_ready(Running(settings.address, settings, tree.pids() | embedded.pids()))
                await _until_first(asked.wait(), tree.watch(), embedded.watch())
            finally:
                await tree.stop()


async def _until_first(*works: Awaitable[object]) -> None:
    """Wait until one is done; what it raised is raised here, the others are cancelled."""
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@contextlib.asynccontextmanager
async def servers(settings: Settings) -> AsyncIterator[tuple[Settings, Embedded]]:
    """Start the servers that no URL names, bring the schema up to date where we may, and fill in the URLs."""
    embedded = Embedded(
        settings.data_dir,
        with_postgres=settings.database_url is None,
        with_valkey=settings.redis_url is None,
        pg_config=settings.pg_config,
        durable=not settings.unsafe_database,
    )
    if not (embedded.with_postgres or embedded.with_valkey):
        await _migrate(settings)
        yield settings, embedded
        return
    async with running(embedded):
        if embedded.with_postgres:
            await schema.create_database(embedded.admin_url, "voelgoed")
            settings = settings.model_copy(
                update={
                    "database_url": SecretStr(embedded.postgres_url(schema.APP)),
                    "owner_database_url": SecretStr(embedded.postgres_url(schema.OWNER)),
                }
            )
        if embedded.with_valkey:
            settings = settings.model_copy(update={"redis_url": SecretStr(embedded.valkey_url)})
        await _migrate(settings)
        yield settings, embedded


async def _migrate(settings: Settings) -> None:
    """Migrate where the owner's URL is known; otherwise the processes refuse a schema that is behind."""
    if settings.owner_database_url:
        await schema.migrate(
            settings.owner_database_url.get_secret_value(),
            on_step=lambda label, seconds: log.info("migrated", step=label, seconds=round(seconds, 3)),
        )


@contextlib.contextmanager
def reserve_port(settings: Settings) -> Iterator[int]:
    """Keep the port for our own processes, which share it; anybody else's would silently take half the visitors."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_STREAM) as alone:
            alone.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            alone.bind((settings.host, settings.port))
        with socket.socket(family, socket.SOCK_STREAM) as ours:
            ours.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            ours.bind((settings.host, settings.port))  # bound, never listening: no visitor ends up here
            yield int(ours.getsockname()[1])
    except OSError as taken:
        raise StartRefused(
            f"cannot use port {settings.port} on {settings.host}: {taken.strerror}",
            hint="stop the other program, or choose another port: VOELGOED_PORT or --port (0 picks a free one)",
        ) from None


def raise_open_files_limit() -> None:
    """Every open stream is a file; the usual limit of 1,024 would end a sale."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = OPEN_FILES_WANTED if hard == resource.RLIM_INFINITY else min(hard, OPEN_FILES_WANTED)
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


@dataclass(slots=True)
class Child:
    """One process of ours and our end of its lifeline."""

    name: str
    module: str
    process: asyncio.subprocess.Process
    line: socket.socket


@dataclass(slots=True)
class Tree:
    """The web processes and the worker."""

    settings: Settings
    _children: dict[str, Child] = field(default_factory=dict)
    _deaths: deque[float] = field(default_factory=lambda: deque(maxlen=RESTARTS_MAX))

    def pids(self) -> dict[str, int]:
        return {name: child.process.pid for name, child in self._children.items()}

    async def start(self) -> None:
        """Start all; returns when every one has said that it is ready."""
        modules = {f"web-{number}": WEB for number in range(1, self.settings.workers + 1)} | {"worker": WORKER}
        await asyncio.gather(*(self._start(name, module) for name, module in modules.items()))

    async def watch(self) -> None:
        """Start again whatever dies; give up when that happens too often."""
        while True:
            waits = {asyncio.ensure_future(child.process.wait()): name for name, child in self._children.items()}
            try:
                done, _ = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for wait in waits:
                    wait.cancel()
            for wait in done:
                await self._restart(waits[wait], exit_code=wait.result())

    async def stop(self) -> None:
        """Ask every process to stop; those that do not are ended."""
        for child in self._children.values():
            with contextlib.suppress(ProcessLookupError):
                child.process.terminate()
        try:
            async with asyncio.timeout(self.settings.stop_grace_s + KILL_MARGIN_S):
                await asyncio.gather(*(child.process.wait() for child in self._children.values()))
        except TimeoutError:
            for child in self._children.values():
                with contextlib.suppress(ProcessLookupError):
                    child.process.kill()
            await asyncio.gather(*(child.process.wait() for child in self._children.values()))
        for child in self._children.values():
            child.line.close()

    async def _restart(self, name: str, *, exit_code: int) -> None:
        """Start a dead process again, more patiently each time: its database may be restarting as well."""
        child = self._children.pop(name)
        child.line.close()
        log.error("process_died", name=name, exit_code=exit_code)
        for pause_s in RESTART_PAUSES_S:
            now = time.monotonic()
            if len(self._deaths) == RESTARTS_MAX and now - self._deaths[0] < RESTARTS_WINDOW_S:
                break
            self._deaths.append(now)
            await asyncio.sleep(pause_s)
            with contextlib.suppress(StartRefused):  # it has said why; the next round tries again
                await self._start(name, child.module)
                log.info("process_restarted", name=name)
                return
        raise StartRefused(f"the processes keep dying, {name} last", hint="see the log above")

    async def _start(self, name: str, module: str) -> None:
        ours, theirs = socket.socketpair()
        ours.settimeout(0)  # the event loop waits for it
        with theirs:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                module,
                env=child_environment(self.settings, lifeline=theirs.fileno()),
                pass_fds=[theirs.fileno()],
                stdin=asyncio.subprocess.DEVNULL,
                start_new_session=True,  # Ctrl-C is for the parent, which stops everybody in order
            )
        self._children[name] = Child(name, module, process, ours)
        try:
            async with asyncio.timeout(READY_WAIT_S):
                said = await asyncio.get_running_loop().sock_recv(ours, len(READY))
        except TimeoutError:
            raise StartRefused(f"{name} did not become ready within {READY_WAIT_S:.0f} s") from None
        if said != READY:
            raise StartRefused(f"{name} did not start (exit code {await process.wait()})", hint="see the log above")


def child_environment(settings: Settings, *, lifeline: int) -> dict[str, str]:
    """What a child may know: where the servers are, but never the owner's login."""
    assert settings.database_url is not None
    assert settings.redis_url is not None
    inherited = {name: value for name, value in os.environ.items() if name != f"{ENV_PREFIX}OWNER_DATABASE_URL"}
    return inherited | {
        f"{ENV_PREFIX}DATABASE_URL": settings.database_url.get_secret_value(),
        f"{ENV_PREFIX}REDIS_URL": settings.redis_url.get_secret_value(),
        f"{ENV_PREFIX}DATA_DIR": str(settings.data_dir),
        f"{ENV_PREFIX}PORT": str(settings.port),
        LIFELINE_ENV: str(lifeline),
    }
