"""The process tree: nobody outlives the parent, whoever dies comes back, and stopping is quick and clean."""

import asyncio
import os
import signal
import socket
import time
from pathlib import Path

import asyncpg
import httpx2
import pytest

from tests.make.processes import environment, family, installation, is_alive, voelgoed, wait_until
from voelgoed import schema
from voelgoed.cli import tree
from voelgoed.config import Settings
from voelgoed.embedded import Embedded
from voelgoed.errors import StartRefused


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


async def test_nobody_outlives_a_killed_parent(data_dir: Path) -> None:
    """After kill -9 of the parent with two web processes: all gone within a second, data intact at the next start."""
    with installation(data_dir, "--workers", "2") as running:
        assert set(running.pids) == {"web-1", "web-2", "worker", "postgres", "valkey"}
        assert is_ready(running.address)
        await write(data_dir, "before-the-kill")
        everybody = family(running.process.pid)
        assert len(everybody) > 10  # the parent, its children, and PostgreSQL's own
        running.process.kill()
        running.process.wait()
        wait_until(lambda: not any(map(is_alive, everybody)), within_s=1)
    with installation(data_dir) as running:
        assert is_ready(running.address)
        assert await slugs(data_dir) == {"passievol", "before-the-kill"}


def test_a_stuck_child_goes_too(data_dir: Path) -> None:
    """A web process whose event loop is stopped still leaves with its parent, once it may run at all."""
    with installation(data_dir) as running:
        web = running.pids["web-1"]
        os.kill(web, signal.SIGSTOP)
        running.process.kill()
        running.process.wait()
        os.kill(web, signal.SIGCONT)
        wait_until(lambda: not is_alive(web), within_s=1)


def test_stopping_is_clean_and_quick(data_dir: Path) -> None:
    """SIGTERM: exit code 0, everybody gone, within a second of asking."""
    with installation(data_dir, "--workers", "2") as running:
        everybody = family(running.process.pid)
        started = time.monotonic()
        running.process.terminate()
        assert running.process.wait(10) == 0
        took = time.monotonic() - started
        assert not any(map(is_alive, everybody))
    log = (data_dir / "demo.log").read_text()
    assert log.count("web_stopped") == 2
    assert log.count("worker_stopped") == 1
    assert "web_stopped_late" not in log
    print(f"stopped in {took:.2f} s")


@pytest.mark.parametrize("name", ["web-1", "worker", "postgres", "valkey"])
def test_whoever_dies_comes_back(data_dir: Path, name: str) -> None:
    """After kill -9 of any one process: the installation is whole again without a hand."""
    with installation(data_dir) as running:
        os.kill(running.pids[name], signal.SIGKILL)
        log = data_dir / "demo.log"
        came_back = {"postgres": "embedded_server_restarted", "valkey": "embedded_server_restarted"}
        word = came_back.get(name, "process_restarted")
        wait_until(lambda: word in log.read_text(), within_s=30)
        wait_until(lambda: is_ready(running.address), within_s=30)
        assert running.process.poll() is None


def test_children_do_not_know_the_owners_login(data_dir: Path) -> None:
    """Only the parent may change tables."""
    with installation(data_dir) as running:
        for name in ("web-1", "worker"):
            known = Path(f"/proc/{running.pids[name]}/environ").read_bytes()
            assert b"voelgoed_app" in known
            assert b"voelgoed_owner" not in known


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


def test_a_second_owner_of_the_data_is_refused(data_dir: Path) -> None:
    """The first one goes on undisturbed."""
    with installation(data_dir) as running:
        refused = voelgoed("serve", "--port", "0", env=environment(data_dir))
        assert refused.returncode == 2
        assert f"(pid {running.process.pid}) already owns" in refused.stderr
        assert is_ready(running.address)


def test_children_that_cannot_start_end_the_tree(data_dir: Path) -> None:
    """A wrong setting is not restarted for ever; the reason is in the log and nothing is left running."""
    with installation(data_dir) as running:
        url = Embedded(data_dir).postgres_url("postgres", "voelgoed")  # a login the processes refuse
        env = environment(data_dir, VOELGOED_DATABASE_URL=url, VOELGOED_REDIS_URL=Embedded(data_dir).valkey_url)
        refused = voelgoed("serve", "--port", "0", env=env)
        assert refused.returncode == 2
        assert "passes row-level security" in refused.stderr
        assert is_ready(running.address)


def test_a_schema_that_is_behind_is_refused(data_dir: Path) -> None:
    """Without the owner's login nothing is migrated behind the operator's back."""
    with installation(data_dir):
        servers = Embedded(data_dir)
        asyncio.run(schema.create_database(servers.admin_url, "fresh"))
        env = environment(
            data_dir,
            VOELGOED_DATABASE_URL=servers.postgres_url(schema.APP, "fresh"),
            VOELGOED_REDIS_URL=servers.valkey_url,
        )
        refused = voelgoed("serve", "--port", "0", env=env)
        assert refused.returncode == 2
        assert "voelgoed db migrate" in refused.stderr
        status = voelgoed("db", "status", env=env)
        assert status.returncode == 1
        assert "pending" in status.stdout
        owner = env | {"VOELGOED_OWNER_DATABASE_URL": servers.postgres_url(schema.OWNER, "fresh")}
        assert "0001_organizations" in voelgoed("db", "migrate", env=owner).stdout
        assert voelgoed("db", "status", env=env).returncode == 0


def test_port_zero_picks_one_and_keeps_it() -> None:
    """The picked port is ours while the block lasts: a stranger cannot listen on it."""
    with tree.reserve_port(Settings(port=0)) as port:
        with socket.socket() as stranger, pytest.raises(OSError, match="in use"):
            stranger.bind(("127.0.0.1", port))
        with pytest.raises(StartRefused), tree.reserve_port(Settings(port=port)):
            pass
