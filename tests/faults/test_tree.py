"""The process tree: nobody outlives the parent, whoever dies comes back, and stopping is quick and clean."""

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import asyncpg
import httpx2
import pytest

from tests.make.processes import environment, family, free_port, installation, is_alive, voelgoed, wait_until
from voelgoed import data_folder, schema
from voelgoed.cli import tree
from voelgoed.config import Settings
from voelgoed.data_folder import holder_of
from voelgoed.db import Connection
from voelgoed.embedded import Embedded
from voelgoed.errors import StartRefused
from voelgoed.telemetry import metrics


async def write(data_dir: Path, slug: str) -> None:
    conn = await asyncpg.connect(Embedded(data_dir).postgres_url(schema.APP))
    await conn.execute("insert into organizations (id, slug, name) values (gen_random_uuid(), $1, 'Kept')", slug)
    await conn.close()


async def slugs(data_dir: Path) -> set[str]:
    conn = await asyncpg.connect(Embedded(data_dir).postgres_url(schema.APP))
    rows = await conn.fetch("select slug from organizations")
    await conn.close()
    return {row["slug"] for row in rows}


def is_ready(address: str) -> bool:
    try:
        return bool(httpx2.get(f"{address}/readyz", timeout=2).json()["status"] == "ready")
    except (httpx2.HTTPError, ValueError):
        return False


async def test_nobody_outlives_a_killed_parent(lived_in: Path) -> None:
    """After kill -9 of the parent with two web processes: all gone within a second, data intact at the next start."""
    with installation(lived_in, "--workers", "2") as running:
        assert set(running.pids) == {"web-1", "web-2", "worker", "crowd", "postgres", "valkey"}
        assert is_ready(running.address)
        await write(lived_in, "before-the-kill")
        everybody = family(running.process.pid)
        assert len(everybody) > 10  # the parent, its children, and PostgreSQL's own
        running.process.kill()
        running.process.wait()
        wait_until(lambda: not any(map(is_alive, everybody)), within_s=1)
    with installation(lived_in) as running:
        assert is_ready(running.address)
        assert await slugs(lived_in) == {"passievol", "before-the-kill"}


def test_a_stuck_child_goes_too(lived_in: Path) -> None:
    """A web process whose event loop is stopped still leaves with its parent, once it may run at all."""
    with installation(lived_in) as running:
        web = running.pids["web-1"]
        os.kill(web, signal.SIGSTOP)
        running.process.kill()
        running.process.wait()
        os.kill(web, signal.SIGCONT)
        wait_until(lambda: not is_alive(web), within_s=1)


def test_stopping_is_clean_and_quick(lived_in: Path) -> None:
    """SIGTERM: exit code 0, everybody gone, within a second of asking (the best of three)."""
    times = []
    for _ in range(3):
        with installation(lived_in, "--workers", "2") as running:
            everybody = family(running.process.pid)
            started = time.monotonic()
            running.process.terminate()
            assert running.process.wait(10) == 0
            times.append(time.monotonic() - started)
            assert not any(map(is_alive, everybody))
    log = (lived_in / "demo.log").read_text()
    assert log.count("web_stopped") == 6
    assert log.count("worker_stopped") == 3
    assert "web_stopped_late" not in log
    assert min(times) < 1.0, times


@pytest.mark.parametrize("name", ["web-1", "worker", "crowd", "postgres", "valkey"])
def test_whoever_dies_comes_back(lived_in: Path, name: str) -> None:
    """After kill -9 of any one process: the installation is whole again without a hand."""
    with installation(lived_in) as running:
        os.kill(running.pids[name], signal.SIGKILL)
        log = lived_in / "demo.log"
        came_back = {"postgres": "embedded_server_restarted", "valkey": "embedded_server_restarted"}
        word = came_back.get(name, "process_restarted")
        wait_until(lambda: word in log.read_text(), within_s=30)
        wait_until(lambda: is_ready(running.address), within_s=30)
        assert running.process.poll() is None


def test_children_know_what_they_need_and_no_more(data_dir: Path) -> None:
    """Only the parent may change tables; the key and the folder of the numbers are made by it and handed down."""
    with installation(data_dir) as running:
        for name in ("web-1", "worker"):
            known = Path(f"/proc/{running.pids[name]}/environ").read_bytes().split(b"\0")
            assert b"voelgoed_app" in b"".join(known)
            assert b"voelgoed_owner" not in b"".join(known)
            assert f"VOELGOED_SECRET_KEY_FILE={data_dir}/secret.key".encode() in known
            assert f"PROMETHEUS_MULTIPROC_DIR={data_dir}/metrics".encode() in known
            assert {b"VOELGOED_GUESTS_PER_IP_PER_MINUTE=0", b"VOELGOED_STREAMS_PER_IP=0"} <= set(known)
        key = data_dir / "secret.key"
        kept = key.read_bytes()
        assert len(kept) == 32
        assert key.stat().st_mode & 0o777 == 0o600
        web = running.pids["web-1"]
        wait_until(lambda: list((data_dir / "metrics").glob(f"gauge_live*_{web}.db")), within_s=10)
        os.kill(web, signal.SIGKILL)
        wait_until(lambda: not list((data_dir / "metrics").glob(f"gauge_live*_{web}.db")), within_s=30)
    with installation(data_dir, VOELGOED_GUESTS_PER_IP_PER_MINUTE="7") as running:
        assert key.read_bytes() == kept
        known = Path(f"/proc/{running.pids['web-1']}/environ").read_bytes().split(b"\0")
        assert b"VOELGOED_GUESTS_PER_IP_PER_MINUTE=7" in known


def test_a_taken_port_is_said_and_nothing_is_started(data_dir: Path) -> None:
    """Sharing a port with a stranger would give him half the visitors."""
    with socket.socket() as stranger:
        stranger.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        stranger.bind(("127.0.0.1", 0))
        stranger.listen()
        port = str(stranger.getsockname()[1])
        refused = voelgoed("serve", "--port", port, env=environment(data_dir))
    assert refused.returncode == 2
    assert f"cannot use port {port}" in refused.stderr
    assert "Traceback" not in refused.stderr
    assert not (data_dir / "pg").exists()


def test_a_second_owner_of_the_data_is_refused(lived_in: Path) -> None:
    """The first one goes on undisturbed."""
    with installation(lived_in) as running:
        refused = voelgoed("serve", "--port", "0", env=environment(lived_in))
        assert refused.returncode == 2
        assert f"(pid {running.process.pid}) already owns" in refused.stderr
        assert is_ready(running.address)


def test_children_that_cannot_start_end_the_tree(servers: Embedded, database: str, data_dir: Path) -> None:
    """A wrong login is not restarted for ever; the reason is in the log and nothing is left running."""
    url = servers.postgres_url("postgres", database)  # a login the processes refuse
    env = environment(data_dir, VOELGOED_DATABASE_URL=url, VOELGOED_REDIS_URL=servers.valkey_url)
    refused = voelgoed("serve", "--port", "0", env=env)
    assert refused.returncode == 2
    assert "passes row-level security" in refused.stderr
    assert holder_of(data_dir) is None


async def test_a_schema_that_is_behind_is_refused(servers: Embedded, database: str, data_dir: Path) -> None:
    """Without the owner's login nothing is migrated behind the operator's back."""
    fresh = f"{database}_fresh"
    await schema.create_database(servers.admin_url, fresh)
    env = environment(
        data_dir,
        VOELGOED_DATABASE_URL=servers.postgres_url(schema.APP, fresh),
        VOELGOED_REDIS_URL=servers.valkey_url,
        VOELGOED_UNSAFE_DATABASE="true",
    )
    refused = voelgoed("serve", "--port", "0", env=env)
    assert refused.returncode == 2
    assert "voelgoed db migrate" in refused.stderr
    status = voelgoed("db", "status", env=env)
    assert status.returncode == 1
    assert "pending" in status.stdout
    owner = env | {"VOELGOED_OWNER_DATABASE_URL": servers.postgres_url(schema.OWNER, fresh)}
    assert "0001_organizations" in voelgoed("db", "migrate", env=owner).stdout
    assert voelgoed("db", "status", env=env).returncode == 0


def test_trouble_with_the_servers_is_not_called_a_port(servers: Embedded, database: str, data_dir: Path) -> None:
    """An owner's login that leads nowhere is said as what it is."""
    env = environment(
        data_dir,
        VOELGOED_DATABASE_URL=servers.postgres_url(schema.APP, database),
        VOELGOED_OWNER_DATABASE_URL="postgresql://voelgoed_owner@127.0.0.1:1/none",
        VOELGOED_REDIS_URL=servers.valkey_url,
    )
    refused = voelgoed("serve", "--port", "0", env=env)
    assert refused.returncode == 2
    assert "cannot connect to PostgreSQL" in refused.stderr
    assert "port 0" not in refused.stderr


def test_a_data_folder_that_is_a_file_is_named(data_dir: Path) -> None:
    """The folder is named, and the port has nothing to do with it."""
    (data_dir / "file").touch()
    for place in (data_dir / "file", data_dir / "file" / "below"):
        refused = voelgoed("serve", "--port", "0", env=environment(place))
        assert refused.returncode == 2
        assert f"cannot use the data folder {place}" in refused.stderr
        assert "VOELGOED_DATA_DIR" in refused.stderr
        assert "Traceback" not in refused.stderr


@pytest.fixture
async def small_tree(settings: Settings, data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tree.Tree]:
    """Two web processes and a worker on the run's own servers, with this test as their parent."""
    monkeypatch.setenv("VOELGOED_UNSAFE_DATABASE", "true")
    key = data_folder.secret_key(data_dir)
    chosen = settings.model_copy(update={"workers": 2, "secret_key_file": key, "port": free_port()})
    grown = tree.Tree(chosen, metrics.prepare_folder(data_dir))
    try:
        await grown.start()
        yield grown
    finally:
        await grown.stop()


async def test_one_that_cannot_come_back_takes_nobody_with_it(
    small_tree: tree.Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A web process fails to restart for a while: the other serves on, a dead worker is back, and so is it at last."""
    before = small_tree.pids()
    watching = asyncio.create_task(small_tree.watch())
    monkeypatch.setenv("VOELGOED_POISON", "1")  # whoever starts now refuses to
    os.kill(before["web-1"], signal.SIGKILL)
    os.kill(before["worker"], signal.SIGKILL)
    async with asyncio.timeout(60):
        while min(small_tree._restarts[name].in_a_row for name in ("web-1", "worker")) < 3:
            assert await asyncio.to_thread(is_ready, small_tree.settings.address)
            assert not watching.done()
    monkeypatch.delenv("VOELGOED_POISON")
    async with asyncio.timeout(60):
        while not all(small_tree._restarts[name].is_up for name in before):
            await asyncio.sleep(0.02)
    after = small_tree.pids()
    assert after["web-2"] == before["web-2"]
    assert after["web-1"] != before["web-1"]
    assert all(map(is_alive, after.values()))
    watching.cancel()


async def test_killed_on_purpose_is_no_failure(small_tree: tree.Tree) -> None:
    """However often a demonstration kills a process, it is back as quickly as the first time, and counted."""
    watching = asyncio.create_task(small_tree.watch())
    async with asyncio.timeout(60):
        for deaths in (1, 2, 3):
            assert small_tree.kill("worker")
            while small_tree.standing()[2].deaths < deaths or not small_tree.standing()[2].is_up:
                assert not watching.done()
                await asyncio.sleep(0.02)
            assert small_tree._restarts["worker"].in_a_row == 1
    assert [(one.name, one.is_up, one.deaths) for one in small_tree.standing()] == [
        ("web-1", True, 0),
        ("web-2", True, 0),
        ("worker", True, 3),
    ]
    assert not small_tree.kill("nobody")
    watching.cancel()


async def test_the_tree_ends_when_nobody_serves_and_nobody_comes_back(
    small_tree: tree.Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Restarting is bounded: with every web process gone for good, the parent leaves and says so."""
    monkeypatch.setattr(tree, "RESTARTS_MAX", 2)
    monkeypatch.setenv("VOELGOED_POISON", "1")
    before = small_tree.pids()
    others = family(os.getpid()) - set(before.values())
    os.kill(before["web-1"], signal.SIGKILL)
    os.kill(before["web-2"], signal.SIGKILL)
    with pytest.raises(StartRefused, match="the web processes keep dying"):
        await asyncio.wait_for(small_tree.watch(), 60)
    assert is_alive(before["worker"])
    await small_tree.stop()
    assert family(os.getpid()) <= others  # what failed to start was collected too, not left as a zombie


@contextlib.contextmanager
def making_its_cluster(data_dir: Path) -> Iterator[tuple[subprocess.Popen[bytes], set[int]]]:
    """A first start, caught while initdb works; and everybody who takes part in it."""
    argv = [sys.executable, "-m", "voelgoed", "serve", "--port", "0"]
    with subprocess.Popen(argv, env=environment(data_dir), stdout=subprocess.DEVNULL) as process:
        try:
            wait_until(lambda: list(data_dir.glob("pg.new-*/base")), within_s=60)
            everybody = family(process.pid)
            assert len(everybody) > 1
            yield process, everybody
        finally:
            process.kill()


def test_a_first_start_can_be_stopped(data_dir: Path) -> None:
    """SIGTERM while the database is being made: the process leaves at once, and leaves nothing behind."""
    with making_its_cluster(data_dir) as (process, everybody):
        process.terminate()
        assert process.wait(10) == 0
        assert not any(map(is_alive, everybody))
    assert not (data_dir / "pg").exists()
    assert not list(data_dir.glob("pg.new*"))


def test_a_killed_first_start_is_no_trouble(data_dir: Path) -> None:
    """After kill -9 while the database is being made: initdb goes too, and the next start begins anew."""
    with making_its_cluster(data_dir) as (process, everybody):
        process.kill()
        process.wait()
        wait_until(lambda: not any(map(is_alive, everybody)), within_s=5)
    (data_dir / "demo").touch()  # the next start is a demo's
    with installation(data_dir) as running:
        assert is_ready(running.address)
    assert not list(data_dir.glob("pg.new*"))


async def test_a_migration_that_waits_can_be_stopped(
    servers: Embedded, database: str, owner_conn: Connection, data_dir: Path
) -> None:
    """SIGTERM is heard while somebody else migrates."""
    env = environment(
        data_dir,
        VOELGOED_DATABASE_URL=servers.postgres_url(schema.APP, database),
        VOELGOED_OWNER_DATABASE_URL=servers.postgres_url(schema.OWNER, database),
        VOELGOED_REDIS_URL=servers.valkey_url,
    )
    await owner_conn.execute("select pg_advisory_lock($1)", schema.LOCK_KEY)
    waiting = "select true from pg_locks where locktype = 'advisory' and not granted and database ="
    waiting += " (select oid from pg_database where datname = current_database())"
    argv = [sys.executable, "-m", "voelgoed", "serve", "--port", "0"]
    with subprocess.Popen(argv, env=env, stdout=subprocess.DEVNULL) as process:
        async with asyncio.timeout(60):
            while not await owner_conn.fetchval(waiting):
                await asyncio.sleep(0.02)
        process.terminate()
        assert process.wait(10) == 0
    await owner_conn.execute("select pg_advisory_unlock($1)", schema.LOCK_KEY)


def test_port_zero_picks_one_and_keeps_it() -> None:
    """The picked port is ours while the block lasts: a stranger cannot listen on it."""
    with tree.reserve_port(Settings(port=0)) as port:
        with socket.socket() as stranger, pytest.raises(OSError, match="in use"):
            stranger.bind(("127.0.0.1", port))
        with pytest.raises(StartRefused), tree.reserve_port(Settings(port=port)):
            pass
