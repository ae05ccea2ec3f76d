"""The data folder of an installation: who owns it now, what kind it is, and the secret key in it."""

import asyncio
import contextlib
import fcntl
import os
import secrets
import shutil
import tempfile
import time
from pathlib import Path
from typing import IO

from voelgoed.errors import StartRefused

CHOOSE_ANOTHER = "set VOELGOED_DATA_DIR to a folder of yours"
CLAIM_WAIT_S = 0.5  # one that is leaving lets go of the folder last
KEY_BYTES = 32
ROOM_BYTES = 64 * 1024 * 1024  # four WAL segments: PostgreSQL panics without room for the next one
DEMO_MARK = "demo"


def make(path: Path, *, passable: bool) -> None:
    """Make the folder and what is missing above it.

    `passable` lets other users through, whatever our umask is: the servers of root are not root's.
    """
    for folder in reversed((path, *path.parents)):
        if not folder.exists():
            folder.mkdir(exist_ok=True)
            if passable:
                folder.chmod(0o711)
    path.mkdir(exist_ok=True)  # says so where a file is in the way


def is_full(home: Path) -> bool:
    """Return whether the disk has too little room for PostgreSQL to start."""
    try:
        return shutil.disk_usage(home).free < ROOM_BYTES
    except OSError:
        return False


def holder_of(home: Path) -> str | None:
    """Who owns the data folder now, in words; None for nobody. Only looks: taking the lock would disturb a start.

    Where it cannot be known (another user's folder) it is taken to be in use.
    """
    path = home / "lock"
    try:
        seen, said = path.stat(), path.read_text(errors="replace").strip()[:20]
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError:
        return "another user's process, as it seems"
    written = int(said) if said.isdecimal() else 0
    try:
        # 1: FLOCK  ADVISORY  WRITE 4242 fe:01:131 0 EOF. Some file systems show another device than `stat` does.
        table = [line.split() for line in Path("/proc/locks").read_text().splitlines()]
        device = f"{os.major(seen.st_dev):02x}:{os.minor(seen.st_dev):02x}:{seen.st_ino}"
        held = {int(row[4]): row[5] for row in table if row[1] == "FLOCK" and row[5].endswith(f":{seen.st_ino}")}
    except (OSError, IndexError, ValueError):  # no Linux: the process that wrote its number may still be there
        return f"process {written}" if written and _is_there(written) else None
    pid = written if written in held else next((pid for pid, place in held.items() if place == device), 0)
    return f"process {pid}" if pid else None


def _is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass  # it is, and is somebody else's
    return True


async def take(home: Path) -> IO[str]:
    """Lock the folder and write our number into the lock; who has it already is named."""
    lock = (home / "lock").open("a+")
    give_up_at = time.monotonic() + CLAIM_WAIT_S
    try:
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > give_up_at:
                    raise
                await asyncio.sleep(0.02)
            else:
                break
        lock.truncate(0)
        lock.write(str(os.getpid()))
        lock.flush()
    except BlockingIOError:
        lock.seek(0)
        owner = lock.read(20).strip() or "unknown"
        lock.close()
        raise StartRefused(
            f"another process (pid {owner}) already owns {home}",
            hint="stop it first, or set VOELGOED_DATA_DIR to another folder",
        ) from None
    except BaseException:
        lock.close()
        raise
    with contextlib.suppress(OSError):
        os.fchmod(lock.fileno(), 0o644)  # any user's doctor may read who it is
    return lock


def keep_kind(home: Path, *, is_demo: bool) -> None:
    """Keep demonstrations and real installations out of each other's folder, which must be ours already."""
    mark = home / DEMO_MARK
    if not is_demo and mark.is_file():
        raise StartRefused(
            f"{home} holds a demonstration",
            hint="run: voelgoed demo; or set VOELGOED_DATA_DIR to another folder for the real installation",
        )
    if is_demo and not mark.is_file():
        if (home / "pg").exists() or (home / "secret.key").exists():
            raise StartRefused(
                f"{home} holds a real installation, which a demonstration would write into",
                hint="run: voelgoed serve; or set VOELGOED_DATA_DIR to another folder for the demonstration",
            )
        mark.write_text("This folder was made by `voelgoed demo`.\n")


def secret_key(home: Path) -> Path:
    """The file of the installation's key, made when it is missing and never written again."""
    path = home / "secret.key"
    if path.exists():
        return path
    number, name = tempfile.mkstemp(prefix="secret.key.", dir=home)  # for our eyes only, from the first moment
    try:
        with os.fdopen(number, "wb") as file:
            file.write(secrets.token_bytes(KEY_BYTES))
            file.flush()
            os.fsync(file.fileno())
        with contextlib.suppress(FileExistsError):
            path.hardlink_to(name)  # unlike a rename, it never replaces a key that is there
    finally:
        Path(name).unlink()
    folder = os.open(home, os.O_RDONLY)
    try:
        os.fsync(folder)  # a key that is lost with the power would end every session and link made with it
    finally:
        os.close(folder)
    return path
