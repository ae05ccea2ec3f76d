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
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path

import structlog
from pydantic import SecretStr

from voelgoed import data_folder, schema
from voelgoed.config import ENV_PREFIX, Settings
from voelgoed.demo.control import CONTROL_ENV
from voelgoed.embedded import DATABASE, Embedded
from voelgoed.errors import StartRefused
from voelgoed.lifeline import LIFELINE_ENV, READY, Restarts, settle, stop_signals, together, until_first
from voelgoed.telemetry import metrics

log = structlog.get_logger(__name__)

WEB, WORKER = "voelgoed.http", "voelgoed.jobs"  # run as modules: neither pays for importing the other
READY_WAIT_S = 60.0
RESTARTS_MAX = 20  # over a minute, with the pauses between them: a database that restarts is back by then
KILL_MARGIN_S = 2.0
OPEN_FILES_WANTED = 65_536


@dataclass(frozen=True, slots=True)
class Running:
    """What is up, told to whoever waits for it."""

    address: str
    settings: Settings
    pids: dict[str, int]


@dataclass(frozen=True, slots=True)
class Company:
    """What a demonstration has beside an installation: a process more, and something that the parent does for all."""

    modules: Mapping[str, str]
    beside: Callable[["Tree", Embedded], AbstractAsyncContextManager[Mapping[str, str]]]
    """Runs while the processes do; gives what their environment has more."""


@dataclass(frozen=True, slots=True)
class Standing:
    """One process of ours, as its parent knows it."""

    name: str
    pid: int | None
    is_up: bool
    deaths: int


OnReady = Callable[[Running], None]
BeforeChildren = Callable[[Settings], Awaitable[None]]


async def nothing_more(_: Settings) -> None:
    """Add nothing to the data before the processes start."""


async def run(
    settings: Settings,
    *,
    on_ready: OnReady,
    before_children: BeforeChildren = nothing_more,
    company: Company | None = None,
) -> None:
    """Run until asked to stop, which may be while the servers still start; returns when every process is gone."""
    asked = stop_signals()
    raise_open_files_limit()
    with reserve_port(settings) as port:
        settings = settings.model_copy(update={"port": port})
        await until_first(asked.wait(), _run(settings, on_ready, before_children, company))


async def _run(settings: Settings, on_ready: OnReady, before_children: BeforeChildren, company: Company | None) -> None:
    """Run until cancelled."""
    async with servers(settings, is_demo=company is not None) as (complete, embedded):
        await before_children(complete)
        tree = Tree(complete, _metrics_folder(complete), also=company.modules if company else {})
        async with company.beside(tree, embedded) if company else contextlib.nullcontext({}) as environment:
            tree.environment = environment
            try:
                await tree.start()
                settle()
                on_ready(Running(complete.address, complete, tree.pids() | embedded.pids()))
                await together(tree.watch(), embedded.watch())
            finally:
                await tree.stop()


@contextlib.asynccontextmanager
async def servers(settings: Settings, *, is_demo: bool = False) -> AsyncIterator[tuple[Settings, Embedded]]:
    """Start the servers that no URL names, bring the schema up to date where we may, and fill in what is missing.

    The data folder is ours alone meanwhile, also where both servers are elsewhere: the key and the metrics are in it.
    """
    embedded = Embedded(
        settings.data_dir,
        with_postgres=settings.database_url is None,
        with_valkey=settings.redis_url is None,
        pg_config=settings.pg_config,
        durable=not settings.unsafe_database,
    )
    await embedded.claim()
    try:
        settings = _with_key(settings.model_copy(update={"data_dir": embedded.home}), is_demo=is_demo)
        await embedded.start()
        found: dict[str, SecretStr] = {}
        if embedded.with_postgres:
            await schema.create_database(embedded.admin_url, DATABASE)
            found["database_url"] = SecretStr(embedded.postgres_url(schema.APP))
            found["owner_database_url"] = SecretStr(embedded.postgres_url(schema.OWNER))
        if embedded.with_valkey:
            found["redis_url"] = SecretStr(embedded.valkey_url)
        settings = settings.model_copy(update=found)
        await _migrate(settings)
        yield settings, embedded
    finally:
        await embedded.stop()


def _with_key(settings: Settings, *, is_demo: bool) -> Settings:
    """See that the folder is of the right kind, and that there is a key."""
    try:
        data_folder.keep_kind(settings.data_dir, is_demo=is_demo)
        key = settings.secret_key_file or data_folder.secret_key(settings.data_dir)
    except OSError as failed:
        raise _unusable(settings, failed) from None
    return settings.model_copy(update={"secret_key_file": key})


def _metrics_folder(settings: Settings) -> Path:
    try:
        return metrics.prepare_folder(settings.data_dir)
    except OSError as failed:
        raise _unusable(settings, failed) from None


def _unusable(settings: Settings, failed: OSError) -> StartRefused:
    return StartRefused(f"cannot use the data folder {settings.data_dir}: {failed}", hint=data_folder.CHOOSE_ANOTHER)


async def _migrate(settings: Settings) -> None:
    """Migrate where the owner's URL is known; otherwise the processes refuse a schema that is behind."""
    if settings.owner_database_url:
        standing = await schema.migrate(
            settings.owner_database_url.get_secret_value(),
            on_step=lambda label, seconds: log.info("migrated", step=label, seconds=round(seconds, 3)),
        )
        if standing.is_newer:
            log.warning("database is newer", schema=standing.summary)


@contextlib.contextmanager
def reserve_port(settings: Settings) -> Iterator[int]:
    """Keep the port for our own processes, which share it; anybody else's would silently take half the visitors."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as ours:
        try:
            with socket.socket(family, socket.SOCK_STREAM) as alone:
                alone.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                alone.bind((settings.host, settings.port))
            ours.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            ours.bind((settings.host, settings.port))  # bound, never listening: no visitor ends up here
        except OSError as taken:
            raise StartRefused(
                f"cannot use port {settings.port} on {settings.host}: {taken.strerror}",
                hint="stop the other program, or choose another port: VOELGOED_PORT or --port (0 picks a free one)",
            ) from None
        yield int(ours.getsockname()[1])


def raise_open_files_limit() -> None:
    """Every open stream is a file; the usual limit of 1,024 would end a sale."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = OPEN_FILES_WANTED if hard == resource.RLIM_INFINITY else min(hard, OPEN_FILES_WANTED)
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


@dataclass(slots=True)
class Child:
    """One process of ours and our end of its lifeline."""

    process: asyncio.subprocess.Process
    line: socket.socket

    def ask_to_stop(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self.process.terminate()

    async def end(self) -> int:
        """Kill it if it still runs, and collect it; its exit code."""
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()
        code = await self.process.wait()
        self.line.close()
        return code


@dataclass(slots=True)
class Tree:
    """The web processes and the worker, each with a task of its own that brings it back when it dies."""

    settings: Settings
    metrics_folder: Path
    also: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    _children: dict[str, Child] = field(default_factory=dict)
    _restarts: dict[str, Restarts] = field(default_factory=dict)
    _modules: dict[str, str] = field(default_factory=dict)
    _deaths: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        webs = {f"web-{number}": WEB for number in range(1, self.settings.workers + 1)}
        self._modules = webs | {"worker": WORKER} | dict(self.also)
        self._restarts = {name: Restarts() for name in self._modules}

    def pids(self) -> dict[str, int]:
        return {name: child.process.pid for name, child in self._children.items()}

    def standing(self) -> list[Standing]:
        """Every process there should be, whether or not it is there now."""
        pids = self.pids()
        return [
            Standing(name, pids.get(name), self._restarts[name].is_up, self._deaths[name]) for name in self._modules
        ]

    def kill(self, name: str) -> bool:
        """End a process without a word, as a demonstration may; it comes back. False when it is not there."""
        child = self._children.get(name)
        if child is None or not self._restarts[name].is_up:
            return False
        self._restarts[name].forgive()
        child.process.kill()
        return True

    async def start(self) -> None:
        """Start all; returns when every one has said that it is ready. One that does not start ends the attempt."""
        await together(*(self._start(name) for name in self._modules))

    async def watch(self) -> None:
        """Start again whatever dies; give up only when nobody serves any more and nobody comes back."""
        await together(*(self._supervise(name) for name in self._modules))

    async def stop(self) -> None:
        """Ask every process to stop; those that do not are ended."""
        children = list(self._children.values())
        for child in children:
            child.ask_to_stop()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self.settings.stop_grace_s + KILL_MARGIN_S):
                await asyncio.gather(*(child.process.wait() for child in children))
        await asyncio.gather(*(child.end() for child in children))
        self._children.clear()

    async def _supervise(self, name: str) -> None:
        """Bring one process back each time it dies, more patiently each time: its database may be restarting too."""
        restarts = self._restarts[name]
        while True:
            if child := self._children.get(name):
                await child.process.wait()
                self._deaths[name] += 1
                log.error("process_died", name=name, exit_code=await self._forget(name))
            pause_s = restarts.died()
            if self._nobody_serves():
                raise StartRefused(f"the web processes keep dying, {name} last", hint="see the log above")
            await asyncio.sleep(pause_s)
            try:
                await self._start(name)
            except StartRefused as refused:
                log.error("process_not_restarted", name=name, reason=str(refused))  # noqa: TRY400 - it says why
            else:
                log.info("process_restarted", name=name)

    def _nobody_serves(self) -> bool:
        """Whether every web process is away and has failed to come back for long enough."""
        webs = [name for name, module in self._modules.items() if module == WEB]
        return not any(self._restarts[name].is_up or self._restarts[name].in_a_row <= RESTARTS_MAX for name in webs)

    async def _start(self, name: str) -> None:
        """Start one; returns when it has said that it is ready. One that does not say so is gone afterwards."""
        ours, theirs = socket.socketpair()
        try:
            ours.settimeout(0)  # the event loop waits for it
            with theirs:
                process = await asyncio.create_subprocess_exec(
                    sys.executable,
                    "-m",
                    self._modules[name],
                    env=child_environment(self.settings, self.metrics_folder, lifeline=theirs.fileno())
                    | dict(self.environment),
                    pass_fds=[theirs.fileno()],
                    stdin=asyncio.subprocess.DEVNULL,
                    start_new_session=True,  # Ctrl-C is for the parent, which stops everybody in order
                )
        except BaseException as failed:
            ours.close()  # if it runs after all, this ends it
            if isinstance(failed, OSError):
                raise StartRefused(f"{name} cannot be started: {failed}") from None
            raise
        self._children[name] = Child(process, ours)
        try:
            async with asyncio.timeout(READY_WAIT_S):
                said = await asyncio.get_running_loop().sock_recv(ours, len(READY))
        except TimeoutError:
            await self._forget(name)
            raise StartRefused(f"{name} did not become ready within {READY_WAIT_S:.0f} s") from None
        except OSError:
            said = b""  # the line was cut
        if said != READY:
            with contextlib.suppress(TimeoutError):  # so that its own exit code is seen, not that of our kill
                await asyncio.wait_for(process.wait(), KILL_MARGIN_S)
            raise StartRefused(f"{name} did not start (exit code {await self._forget(name)})", hint="see the log above")
        self._restarts[name].stands()

    async def _forget(self, name: str) -> int:
        """Collect a process that has gone or shall go; its exit code."""
        child = self._children.pop(name)
        code = await child.end()
        try:
            metrics.mark_process_dead(child.process.pid, self.metrics_folder)
        except OSError as failed:  # numbers of a dead process are no reason to lose the living ones
            log.warning("metrics_of_the_dead_stay", name=name, reason=str(failed))
        return code


def child_environment(settings: Settings, metrics_folder: Path, *, lifeline: int) -> dict[str, str]:
    """What a child may know: where the servers are, but never the owner's login."""
    assert settings.database_url is not None
    assert settings.redis_url is not None
    assert settings.secret_key_file is not None
    kept_back = {f"{ENV_PREFIX}OWNER_DATABASE_URL", CONTROL_ENV}  # only a demonstration hands out its own control
    inherited = {name: value for name, value in os.environ.items() if name not in kept_back}
    return inherited | {
        f"{ENV_PREFIX}DATABASE_URL": settings.database_url.get_secret_value(),
        f"{ENV_PREFIX}REDIS_URL": settings.redis_url.get_secret_value(),
        f"{ENV_PREFIX}DATA_DIR": str(settings.data_dir),
        f"{ENV_PREFIX}SECRET_KEY_FILE": str(settings.secret_key_file),
        f"{ENV_PREFIX}HOST": settings.host,
        f"{ENV_PREFIX}PORT": str(settings.port),
        f"{ENV_PREFIX}GUESTS_PER_IP_PER_MINUTE": str(settings.guests_per_ip_per_minute),
        f"{ENV_PREFIX}STREAMS_PER_IP": str(settings.streams_per_ip),
        f"{ENV_PREFIX}REDIS_PROBE_S": str(settings.redis_probe_s),
        metrics.FOLDER_ENV: str(metrics_folder),
        LIFELINE_ENV: str(lifeline),
    }
