"""Two releases on one database: the package as it is, and a copy of it with newer functions."""

import json
import shutil
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.make.processes import environment, installation, voelgoed
from tests.make.races import connect_owner, database_alone
from voelgoed import schema
from voelgoed.config import Settings
from voelgoed.embedded import Embedded

MARKER = "\ncreate or replace function release_marker() returns int language sql as 'select {}';\n"


@dataclass(frozen=True, slots=True)
class Releases:
    """The environments of an old and a new release, and their versions of the functions."""

    old: dict[str, str]
    new: dict[str, str]
    old_version: int
    new_version: int


def copy_release(root: Path, *, version: int, marker: int) -> None:
    """Copy the package, with another text of its functions under a version of their own."""
    package = root / "src" / "voelgoed"
    shutil.copytree(schema.PACKAGE, package, ignore=shutil.ignore_patterns("dist", "__pycache__", "migrations"))
    shutil.copytree(schema.migrations_folder(), root / "migrations")
    functions = package / "events" / "functions.sql"
    functions.write_text(functions.read_text() + MARKER.format(marker))
    texts = {path: (package / path).read_text() for path in schema.load_functions()}
    checksum = schema.lock_checksum(texts, schema.load_migrations(root / "migrations"))
    (package / schema.FUNCTIONS_LOCK.name).write_text(f"{version} {checksum}\n")


@pytest.fixture
async def releases(servers: Embedded, settings: Settings, tmp_path: Path, worker_id: str) -> AsyncIterator[Releases]:
    name = f"upgrade_{worker_id}"
    version = schema.load_function_set(schema.load_migrations(schema.migrations_folder())).version
    copy_release(tmp_path / "old", version=version + 1, marker=1)
    copy_release(tmp_path / "new", version=version + 2, marker=2)
    async with database_alone(servers, settings, "template0", name):
        urls = {
            "VOELGOED_DATABASE_URL": servers.postgres_url(schema.APP, name),
            "VOELGOED_OWNER_DATABASE_URL": servers.postgres_url(schema.OWNER, name),
        }
        old, new = (
            environment(tmp_path, PYTHONPATH=str(tmp_path / release / "src"), **urls) for release in ("old", "new")
        )
        yield Releases(old, new, version + 1, version + 2)


async def marker(servers: Embedded, worker_id: str) -> int:
    async with connect_owner(servers, f"upgrade_{worker_id}") as conn:
        return int(await conn.fetchval("select release_marker()"))


async def test_an_old_release_leaves_a_newer_database_alone(
    releases: Releases, servers: Embedded, worker_id: str
) -> None:
    """`db migrate` of the old release exits 0 and says why it did nothing; `db status` counts it as ready."""
    assert voelgoed("db", "migrate", env=releases.old).returncode == 0
    behind = voelgoed("db", "status", env=releases.new)
    assert behind.returncode == 1
    assert f"functions {releases.old_version} in the database, {releases.new_version} here" in behind.stdout
    assert f"functions {releases.new_version}  " in voelgoed("db", "migrate", env=releases.new).stdout
    assert await marker(servers, worker_id) == 2

    again = voelgoed("db", "migrate", env=releases.old)
    newer = (
        "Schema: the database is newer than this version, which can run on it"
        f" (functions {releases.new_version} in the database, {releases.old_version} here).\n"
    )
    assert (again.returncode, again.stdout) == (0, newer)
    assert await marker(servers, worker_id) == 2
    status = voelgoed("db", "status", "--json", env=releases.old)
    assert status.returncode == 0
    about = json.loads(status.stdout)
    assert (about["current"], about["functions"], about["stale_functions"]) == (True, "newer", [])


async def test_a_restarted_installation_keeps_newer_functions(lived_in: Path) -> None:
    """`voelgoed serve` and `demo` migrate their own server when they start, by the same rule."""
    with installation(lived_in):
        async with connect_owner(Embedded(lived_in), "voelgoed") as conn:
            await conn.execute("update schema_functions set version = '1000000', checksum = 'newer'")
            await conn.execute(
                "create or replace function is_event_edge(status_from text, status_to text)"
                " returns boolean language sql immutable parallel safe as 'select true'"
            )
    with installation(lived_in):
        async with connect_owner(Embedded(lived_in), "voelgoed") as conn:
            assert await conn.fetchval("select is_event_edge('a', 'b')")
        status = voelgoed("db", "status", env=environment(lived_in))
    assert status.returncode == 0
    assert "functions 1000000 in the database" in status.stdout
    assert "database is newer" in (lived_in / "demo.log").read_text()
