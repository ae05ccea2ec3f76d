"""The doctor: plain words, and a number that scripts can read."""

import asyncio
import json
import os
import socket
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.make.processes import environment, free_port, installation, voelgoed
from tests.make.unwritable import read_only_sessions
from voelgoed import schema
from voelgoed.embedded import Embedded


def examine(env: dict[str, str]) -> tuple[int, dict[str, dict[str, Any]]]:
    done = voelgoed("doctor", "--json", env=env)
    assert done.stdout, done.stderr
    return done.returncode, {finding["about"]: finding for finding in json.loads(done.stdout)}


def test_a_fresh_machine_is_well(data_dir: Path) -> None:
    """Nothing has run yet, and everything needed is there."""
    code, found = examine(environment(data_dir, VOELGOED_PORT=str(free_port())))
    assert code == 0
    assert found.keys() >= {"Python", "web pages", "open files", "data folder", "disk", "port", "PostgreSQL", "Redis"}
    assert all(finding["level"] != "fail" for finding in found.values())
    assert list(data_dir.iterdir()) == []  # looking leaves no trace


def test_people_get_sentences(data_dir: Path) -> None:
    """The last line says whether all is well."""
    done = voelgoed("doctor", env=environment(data_dir, VOELGOED_PORT=str(free_port())))
    assert done.returncode == 0
    assert "Everything needed is there." in done.stdout


def test_a_running_installation_is_looked_at(lived_in: Path) -> None:
    """Its own port and data folder are no problem, and its schema is read."""
    with installation(lived_in) as running:
        port = running.address.rsplit(":", 1)[1]
        code, found = examine(environment(lived_in, VOELGOED_PORT=port))
    assert code == 0
    assert f"a demonstration, in use by process {running.process.pid}" in found["data folder"]["message"]
    assert "served by the running installation" in found["port"]["message"]
    assert found["schema"]["message"].startswith("up to date")
    assert "valkey" in found["Redis"]["message"]
    assert "closed" in found["Redis breaker"]["message"]


def test_root_is_told_to_be_somebody_else(data_dir: Path) -> None:
    """The servers drop to another user by themselves, the web processes do not."""
    _, found = examine(environment(data_dir, VOELGOED_PORT=str(free_port())))
    assert found["user"]["level"] == ("warn" if os.geteuid() == 0 else "ok")


def test_a_folder_whose_name_looks_like_markup_is_printed_as_it_is(data_dir: Path) -> None:
    """Foreign text is text: it neither vanishes nor ends the command."""
    strange = data_dir / "[bold]" / "[" / "b]"
    env = environment(strange, VOELGOED_PORT=str(free_port()))
    done = voelgoed("doctor", env=env)
    assert done.returncode == 0, done.stderr
    assert f"{strange} (empty" in done.stdout
    strange.parent.mkdir(parents=True)
    strange.touch()
    refused = voelgoed("serve", "--port", "0", env=env)
    assert refused.returncode == 2
    assert f"cannot use the data folder {strange}" in refused.stderr
    assert "Traceback" not in refused.stderr


def test_a_taken_port_is_a_failure(data_dir: Path) -> None:
    """Somebody else's program is on it."""
    with socket.socket() as stranger:
        stranger.bind(("127.0.0.1", 0))
        stranger.listen()
        code, found = examine(environment(data_dir, VOELGOED_PORT=str(stranger.getsockname()[1])))
    assert code == 1
    assert found["port"]["level"] == "fail"
    assert "VOELGOED_PORT" in found["port"]["hint"]


def test_a_folder_of_somebody_else_is_a_failure(data_dir: Path) -> None:
    """Said before the database fails over it."""
    closed = data_dir / "closed"
    closed.mkdir(mode=0o700)
    if os.geteuid() != 0:
        closed.chmod(0o500)
    code, found = examine(environment(closed / "data", VOELGOED_PORT=str(free_port())))
    assert code == 1
    assert found["data folder"]["level"] == "fail"
    assert "VOELGOED_DATA_DIR" in found["data folder"]["hint"]


def test_unsafe_settings_are_a_failure(servers: Embedded, database: str, data_dir: Path) -> None:
    """The tests' own server has fsync off: nobody should sell a seat on it."""
    env = environment(
        data_dir,
        VOELGOED_DATABASE_URL=servers.postgres_url(schema.APP, database),
        VOELGOED_REDIS_URL=servers.valkey_url,
        VOELGOED_PORT=str(free_port()),
    )
    done = voelgoed("doctor", env=env)
    assert done.returncode == 1
    assert "setting fsync is off" in done.stdout


async def test_server_that_refuses_writes_is_a_failure(servers: Embedded, database: str, data_dir: Path) -> None:
    """It answers, and still nothing can be sold on it."""
    env = environment(
        data_dir,
        VOELGOED_DATABASE_URL=servers.postgres_url(schema.APP, database),
        VOELGOED_REDIS_URL=servers.valkey_url,
        VOELGOED_PORT=str(free_port()),
    )
    async with read_only_sessions(servers, database):
        done = await asyncio.to_thread(voelgoed, "doctor", env=env)
    assert done.returncode == 1
    assert "PostgreSQL is read only." in done.stdout


@pytest.mark.parametrize(
    ("name", "value", "about", "level"),
    [
        ("VOELGOED_DATABASE_URL", "postgresql://voelgoed_app@127.0.0.1:1/none", "PostgreSQL", "fail"),
        ("VOELGOED_REDIS_URL", "redis://127.0.0.1:1", "Redis", "warn"),
    ],
)
def test_a_server_that_does_not_answer_is_found(data_dir: Path, name: str, value: str, about: str, level: str) -> None:
    """PostgreSQL away is a failure; Redis away is not."""
    code, found = examine(environment(data_dir, VOELGOED_PORT=str(free_port())) | {name: value})
    assert found[about]["level"] == level
    assert "does not answer" in found[about]["message"]
    assert code == (1 if level == "fail" else 0)


def test_a_wrong_setting_is_said_without_a_traceback(data_dir: Path) -> None:
    """Every command says no in the same way."""
    done = voelgoed("doctor", env=environment(data_dir, VOELGOED_PROT="8600"))
    assert done.returncode == 2
    assert "unknown setting: VOELGOED_PROT" in done.stderr
    assert "Traceback" not in done.stderr


def test_proxies_that_are_not_counted_keep_it_from_starting(data_dir: Path) -> None:
    """The doctor and the installation say the same."""
    env = environment(data_dir, VOELGOED_PUBLIC_URL="https://tickets.example", VOELGOED_PORT=str(free_port()))
    for command in (["doctor"], ["serve"]):
        done = voelgoed(*command, env=env)
        assert done.returncode == 2
        assert "VOELGOED_TRUSTED_PROXIES is not set" in done.stderr
    code, found = examine({**env, "VOELGOED_TRUSTED_PROXIES": "0"})
    assert (code, found["proxies"]["level"]) == (0, "warn")
    assert "although the public URL is https" in found["proxies"]["message"]
    code, found = examine({**env, "VOELGOED_TRUSTED_PROXIES": "2"})
    assert (code, found["proxies"]["level"], found["proxies"]["message"]) == (0, "ok", "2 trusted")


def test_a_header_that_is_ignored_is_seen(lived_in: Path) -> None:
    """The headers of a proxy that is not configured show up in the installation's metrics."""
    with installation(lived_in, VOELGOED_METRICS_TOKEN="let me in") as running:
        env = environment(lived_in, VOELGOED_PORT=running.address.rsplit(":", 1)[1])
        env["VOELGOED_METRICS_TOKEN"] = "let me in"
        _, before = examine(env)
        ready = httpx2.get(f"{running.address}/readyz", headers={"x-forwarded-for": "203.0.113.7"}, timeout=10)
        code, after = examine(env)
    assert (ready.status_code, ready.json()["status"]) == (200, "ready")
    assert (before["proxies"]["level"], after["proxies"]["level"], code) == ("ok", "warn", 0)
    assert "1 requests came with X-Forwarded-For" in after["proxies"]["message"]
    assert "VOELGOED_TRUSTED_PROXIES" in after["proxies"]["hint"]
