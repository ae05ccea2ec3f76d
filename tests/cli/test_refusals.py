"""What goes wrong outside is said in plain words by every command: an exit code, a sentence, never a traceback."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.make.processes import environment, free_port, voelgoed
from voelgoed import schema
from voelgoed.embedded import Embedded

COMMANDS = {
    "serve": ("serve", "--port", "0"),
    "worker": ("worker",),
    "doctor": ("doctor",),
    "migrate": ("db", "migrate"),
    "status": ("db", "status"),
}
NOWHERE = "postgresql://voelgoed_app@127.0.0.1:1/none"
OWNER_NOWHERE = "postgresql://voelgoed_owner@127.0.0.1:1/none"
REDIS_NOWHERE = "redis://127.0.0.1:1"
AS_A_STRANGER = """
import os, sys
from voelgoed.cli.main import main
import rich.console, rich.text
rich.console.Console(file=open(os.devnull, "w")).print(rich.text.Text("loaded while we may still read"))
if os.geteuid() == 0:
    os.setgroups([])
    os.setgid(54321)
    os.setuid(54321)
sys.argv[0] = "voelgoed"
main()
"""


def refuse(command: str, env: dict[str, str]) -> str:
    """Run the command, which must say no like a person; what it said."""
    done = voelgoed(*COMMANDS[command], env=env)
    assert "Traceback" not in done.stderr, done.stderr
    assert done.returncode in ((1, 2) if command == "doctor" else (2,)), done.stderr
    return done.stdout + done.stderr


@pytest.mark.parametrize(
    ("command", "name", "value", "said"),
    [
        ("serve", "DATABASE_URL", "postgresql://voelgoed_app:geheim@db:abc/x", "the port is not a number"),
        ("doctor", "DATABASE_URL", "postgresql://voelgoed_app:ge/heim@db/x", "the port is not a number"),
        ("migrate", "OWNER_DATABASE_URL", "postgresql://x@db:70000/x", "the port is not a number"),
        ("status", "DATABASE_URL", f"{NOWHERE}?sslmode=bogus", "sslmode must be one of"),
        ("worker", "DATABASE_URL", "postgresql://[::1/x", "is not a URL"),
        ("serve", "REDIS_URL", "redis://h:abc", "the port is not a number"),
        ("doctor", "REDIS_URL", "redis://h/?surprise=1", "unknown option"),
        ("worker", "REDIS_URL", "redis://h/first", "must be a number"),
        ("serve", "HOST", "no-such-name.invalid", "neither an address nor a name"),
        ("serve", "CORS_ORIGINS", "https://tickets.example", "cors_origins"),
    ],
)
def test_wrong_settings_are_refused_by_name(data_dir: Path, command: str, name: str, value: str, said: str) -> None:
    """Both URLs are read whole before anybody connects; passwords are not repeated."""
    env = environment(data_dir, VOELGOED_DATABASE_URL=NOWHERE, VOELGOED_REDIS_URL=REDIS_NOWHERE)
    answer = refuse(command, env | {f"VOELGOED_{name}": value})
    assert said in answer
    assert "heim" not in answer


@pytest.mark.parametrize("command", COMMANDS)
def test_a_server_that_is_away_is_said(data_dir: Path, command: str) -> None:
    """Nobody listens where the URLs point."""
    (data_dir / "secret.key").write_bytes(os.urandom(32))  # a worker by itself makes none
    env = environment(
        data_dir,
        VOELGOED_DATABASE_URL=NOWHERE,
        VOELGOED_OWNER_DATABASE_URL=OWNER_NOWHERE,
        VOELGOED_REDIS_URL=REDIS_NOWHERE,
        VOELGOED_PORT=str(free_port()),
    )
    assert "PostgreSQL" in refuse(command, env)


@pytest.mark.parametrize("command", ["migrate", "status", "doctor"])
def test_a_database_that_is_missing_is_said(servers: Embedded, data_dir: Path, command: str) -> None:
    """The server answers, and knows no such database."""
    env = environment(
        data_dir,
        VOELGOED_DATABASE_URL=servers.postgres_url(schema.APP, "missing"),
        VOELGOED_OWNER_DATABASE_URL=servers.postgres_url(schema.OWNER, "missing"),
        VOELGOED_REDIS_URL=servers.valkey_url,
    )
    assert 'database "missing" does not exist' in refuse(command, env)


def test_migrating_before_the_first_start_is_answered(data_dir: Path) -> None:
    """The embedded server is not there yet, and nothing needs to be done by hand."""
    assert "voelgoed serve" in refuse("migrate", environment(data_dir))


@pytest.mark.parametrize("command", ["serve", "doctor"])
def test_a_postgresql_that_does_not_run_is_said(data_dir: Path, command: str) -> None:
    """Its program fails before it can say which version it is."""
    for name, does in (("pg_config", f"echo {data_dir}"), ("postgres", "echo broken >&2; exit 3")):
        program = data_dir / name
        program.write_text(f"#!/bin/sh\n{does}\n")
        program.chmod(0o755)
    answer = refuse(command, environment(data_dir / "data", VOELGOED_PG_CONFIG=str(data_dir / "pg_config")))
    assert "failed with 3: broken" in answer


@pytest.mark.parametrize("command", ["serve", "doctor"])
@pytest.mark.parametrize(
    ("closed", "said"), [(False, "has no home folder"), (True, "data folder")], ids=["nameless", "closed"]
)
def test_a_stranger_is_answered(data_dir: Path, command: str, said: str, *, closed: bool) -> None:
    """A user without a name or a home, as containers have them; and one whose data would lie in a closed folder."""
    env = environment(data_dir)
    if closed:
        (data_dir / "closed").mkdir(mode=0o700)
        if os.geteuid() != 0:
            (data_dir / "closed").chmod(0o000)
        env["VOELGOED_DATA_DIR"] = str(data_dir / "closed" / "data")
    elif os.geteuid() != 0:
        return  # this user has a name, and only root can be somebody else
    else:
        for name in ("HOME", "XDG_DATA_HOME", "VOELGOED_DATA_DIR"):
            env.pop(name, None)
    argv = [sys.executable, "-c", AS_A_STRANGER, *COMMANDS[command]]
    done = subprocess.run(argv, env=env, capture_output=True, text=True, check=False, timeout=60)
    assert "Traceback" not in done.stderr, done.stderr
    assert done.returncode in ((1, 2) if command == "doctor" else (2,))
    assert said in done.stdout + done.stderr


def test_a_name_of_this_machine_is_a_host(data_dir: Path) -> None:
    """`localhost` becomes its address: the web server takes nothing else."""
    done = voelgoed("doctor", env=environment(data_dir, VOELGOED_HOST="localhost", VOELGOED_PORT=str(free_port())))
    assert done.returncode == 0, done.stderr
    assert "on 127.0.0.1 is free" in done.stdout


def test_a_demo_never_touches_a_named_database(data_dir: Path) -> None:
    """It would write its make-believe into somebody's real records."""
    env = environment(data_dir, VOELGOED_DATABASE_URL=NOWHERE)
    done = voelgoed("demo", "--port", "0", env=env)
    assert done.returncode == 2
    assert "unset VOELGOED_DATABASE_URL" in done.stderr
    assert list(data_dir.iterdir()) == []


def test_demo_and_serve_refuse_each_others_folder(data_dir: Path) -> None:
    """A mark in the folder keeps them apart, and each says what to do instead."""
    real, demo = data_dir / "real", data_dir / "demo"
    (real / "pg").mkdir(parents=True)
    refused = voelgoed("demo", "--port", "0", env=environment(real))
    assert refused.returncode == 2
    assert "holds a real installation" in refused.stderr
    assert "voelgoed serve" in refused.stderr
    demo.mkdir()
    (demo / "demo").touch()
    refused = voelgoed("serve", "--port", "0", env=environment(demo))
    assert refused.returncode == 2
    assert "holds a demonstration" in refused.stderr
    assert "voelgoed demo" in refused.stderr
    assert not (demo / "pg").exists()
