"""A PostgreSQL that can be made to refuse writes: by a full disk, or by being read only."""

import contextlib
import shutil
import subprocess
import tempfile
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path

import asyncpg
import pytest

from voelgoed import schema
from voelgoed.db import Connection
from voelgoed.embedded import Embedded

SOURCE = Path(__file__).with_name("full_disk.c")


@dataclass(frozen=True, slots=True)
class Unwritable:
    """The servers, and the faults they can have."""

    servers: Embedded
    switch: Path

    @contextlib.asynccontextmanager
    async def full_disk(self) -> AsyncIterator[None]:
        """Let no file of PostgreSQL grow. It begins with a new WAL segment, so that the WAL itself has room."""
        async with self._admin() as admin:
            await admin.execute("checkpoint")
            await admin.execute("select pg_switch_wal()")
        self.switch.touch()
        try:
            yield
        finally:
            self.switch.unlink()

    @contextlib.asynccontextmanager
    async def read_only(self) -> AsyncIterator[None]:
        """Make every transaction of every session read only, as on a primary that was fenced."""
        try:
            await self.configure("default_transaction_read_only", "on")
            yield
        finally:
            await self.configure("default_transaction_read_only", "off")

    async def configure(self, setting: str, value: str) -> None:
        """Change a setting, and wait until a new session has it: by then every other one has been told to reload."""
        async with self._admin() as admin:
            await admin.execute(f"alter system set {setting} = {value}")
            await admin.execute("select pg_reload_conf()")
        found = None
        while found != value:
            async with self._admin() as admin:
                row = await admin.fetchrow("select reset_val from pg_settings where name = $1", setting)
                found = row and row["reset_val"]

    @contextlib.asynccontextmanager
    async def _admin(self) -> AsyncIterator[Connection]:
        """A superuser who can write even while others cannot."""
        conn = await asyncpg.connect(self.servers.admin_url)
        try:
            await conn.execute("set default_transaction_read_only = off")
            yield conn
        finally:
            await conn.close()


@contextlib.contextmanager
def unwritable() -> Iterator[Unwritable]:
    """Embedded servers that are not started yet. Only children that are started within the block get the full disk."""
    home = Path(tempfile.mkdtemp(prefix="vg-"))
    home.chmod(0o755)  # the servers' own user has to reach it
    library, switch = home / "full_disk.so", home / "full"
    try:
        subprocess.run(["cc", "-shared", "-fPIC", "-O2", "-o", library, SOURCE, "-ldl"], check=True)
        with pytest.MonkeyPatch.context() as environment:
            environment.setenv("LD_PRELOAD", str(library))
            environment.setenv("FULL_DISK_WHEN", str(switch))
            yield Unwritable(Embedded(home / "data", with_valkey=False, durable=False), switch)
    finally:
        shutil.rmtree(home, ignore_errors=True)


@contextlib.asynccontextmanager
async def read_only_sessions(servers: Embedded, database: str) -> AsyncIterator[None]:
    """Make new sessions of the application read only, and no others."""
    admin = await asyncpg.connect(servers.admin_url)
    setting = f'alter role {schema.APP} in database "{database}" {{}} default_transaction_read_only'
    try:
        await admin.execute(setting.format("set") + " = on")
        yield
    finally:
        await admin.execute(setting.format("reset"))
        await admin.close()
