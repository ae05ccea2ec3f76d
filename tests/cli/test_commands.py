"""The commands that start nothing."""

from pathlib import Path

from tests.make.processes import environment, voelgoed
from voelgoed.config import VERSION


def test_version_and_help(data_dir: Path) -> None:
    """A stranger's first two questions."""
    env = environment(data_dir)
    assert voelgoed("--version", env=env).stdout == f"voelgoed {VERSION}\n"
    listed = voelgoed("--help", env=env).stdout
    assert all(command in listed for command in ("serve", "demo", "worker", "doctor", "db"))


def test_roles_are_printed_for_an_administrator(data_dir: Path) -> None:
    """SQL on standard output, to be piped into psql."""
    said = voelgoed("db", "roles", env=environment(data_dir)).stdout
    assert "create role voelgoed_app login" in said


def test_a_worker_alone_needs_its_servers_named(data_dir: Path) -> None:
    """Only `serve` starts servers."""
    done = voelgoed("worker", env=environment(data_dir))
    assert done.returncode == 2
    assert "VOELGOED_DATABASE_URL" in done.stderr


def test_status_without_a_server_says_how_to_get_one(data_dir: Path) -> None:
    """Nothing runs yet."""
    done = voelgoed("db", "status", env=environment(data_dir))
    assert done.returncode == 2
    assert "voelgoed serve" in done.stderr
