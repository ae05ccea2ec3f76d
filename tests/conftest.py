"""A PostgreSQL and a Valkey for each process that runs tests, from the first test to the last.

Of its own, because readers of the journal wait for every transaction of their server: a test then waits for nobody
else's. `VOELGOED_PG_CONFIG` runs the same tests on another PostgreSQL.
"""

import asyncio
import os
import shutil
import subprocess
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import asyncpg
import pytest
import structlog
from hypothesis import settings as hypothesis_settings
from pydantic import SecretStr

from tests.make import passing
from tests.make.processes import free_port, installation
from tests.make.web import Site, serving
from voelgoed import schema
from voelgoed.config import Settings
from voelgoed.db import Connection, Database
from voelgoed.embedded import Embedded
from voelgoed.holds.lane import CONNECTIONS, SETTINGS
from voelgoed.redis import RedisLink
from voelgoed.wiring import Services, build_services

TEMPLATE = "template_voelgoed"
TEST_DIR_ENV = "VOELGOED_TEST_DIR"
POSTGRESQL_FIXTURES = {"database", "jobs_database"}  # every way to the tests' server goes by one of them
SECRET_KEY = b"a secret key that only tests have"
STASH = pytest.StashKey[Embedded]()

# How long an example takes is the machine's business: a slow one is no counterexample.
hypothesis_settings.register_profile("here", deadline=None)
hypothesis_settings.load_profile("here")


def pytest_configure(config: pytest.Config) -> None:
    """Start the servers, in every process but the one that only hands tests out."""
    only_hands_out = not hasattr(config, "workerinput") and config.getoption("dist", "no") != "no"
    if only_hands_out or config.option.collectonly or config.option.help:
        return
    home = Path(tempfile.mkdtemp(prefix="voelgoed-tests-"))
    home.chmod(0o755)  # the servers' own user has to reach it
    embedded = Embedded(home, pg_config=_pg_config(), durable=False)
    config.stash[STASH] = embedded
    os.environ[TEST_DIR_ENV] = str(home)
    asyncio.run(_start(embedded))


def pytest_report_header() -> str:
    """Say which PostgreSQL this leg runs on."""
    _, major = Embedded(Path(tempfile.gettempdir()), pg_config=_pg_config()).postgres_programs(to_run=False)
    return f"PostgreSQL {major}"


def _pg_config() -> Path | None:
    named = os.environ.get("VOELGOED_PG_CONFIG")
    return Path(named) if named else None


def pytest_unconfigure(config: pytest.Config) -> None:
    """Stop them and leave nothing behind."""
    if embedded := config.stash.get(STASH, None):
        asyncio.run(embedded.stop())
        shutil.rmtree(embedded.home, ignore_errors=True)


async def _start(embedded: Embedded) -> None:
    await embedded.start()
    admin = await asyncpg.connect(embedded.admin_url)
    try:
        # It comes when it likes: readers of the journal wait for its transactions too, and plans change by its figures.
        await admin.execute("alter system set autovacuum = off")
        await admin.execute("select pg_reload_conf()")
    finally:
        await admin.close()
    await schema.create_database(embedded.admin_url, TEMPLATE)
    await schema.migrate(embedded.postgres_url(schema.OWNER, TEMPLATE))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what touches the database, so that one leg can run just that on the oldest PostgreSQL."""
    for item in items:
        if POSTGRESQL_FIXTURES & set(getattr(item, "fixturenames", ())):
            item.add_marker("postgresql")


@pytest.fixture(scope="session", autouse=True)
def quiet_logs() -> None:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No setting of the developer's own shell reaches a test."""
    for name in [name for name in os.environ if name.startswith("VOELGOED_")]:
        if name not in (TEST_DIR_ENV, "VOELGOED_CHROMIUM"):
            monkeypatch.delenv(name)


@pytest.fixture(scope="session")
def servers() -> Embedded:
    """Where the servers of this process are."""
    return Embedded(Path(os.environ[TEST_DIR_ENV]))


@pytest.fixture(scope="session")
async def database(servers: Embedded, worker_id: str) -> str:
    """The name of a database that most tests share, made from the template."""
    name = f"voelgoed_{worker_id}"
    admin = await asyncpg.connect(servers.admin_url)
    try:
        await admin.execute(f'drop database if exists "{name}" with (force)')
        await admin.execute(f'create database "{name}" template {TEMPLATE} owner {schema.OWNER}')
        await admin.execute(f'revoke all on database "{name}" from public')
        await admin.execute(f'grant connect on database "{name}" to {schema.APP}')
    finally:
        await admin.close()
    return name


@pytest.fixture(scope="session")
async def db(servers: Embedded, database: str) -> AsyncIterator[Database]:
    """The application's entrance, with the application's role."""
    opened = await Database.open(servers.postgres_url(schema.APP, database))
    yield opened
    await opened.close()


@pytest.fixture
async def owner_conn(servers: Embedded, database: str) -> AsyncIterator[Connection]:
    conn = await asyncpg.connect(servers.postgres_url(schema.OWNER, database))
    yield conn
    await conn.close()


@pytest.fixture
async def app_conn(servers: Embedded, database: str) -> AsyncIterator[Connection]:
    """A bare connection of the application's role, with no organization set."""
    conn = await asyncpg.connect(servers.postgres_url(schema.APP, database))
    yield conn
    await conn.close()


@pytest.fixture(scope="session")
def redis_url(servers: Embedded) -> str:
    return servers.valkey_url


@pytest.fixture(scope="session")
def settings(servers: Embedded, database: str, redis_url: str) -> Settings:
    return Settings(
        database_url=SecretStr(servers.postgres_url(schema.APP, database)),
        redis_url=SecretStr(redis_url),
        data_dir=servers.home,
        port=free_port(),
        unsafe_database=True,
        guests_per_ip_per_minute=0,
    )


@pytest.fixture(scope="session")
async def services(settings: Settings, db: Database, redis_url: str) -> AsyncIterator[Services]:
    assert settings.database_url is not None
    async with RedisLink(redis_url, connect_timeout_s=1, call_timeout_s=1) as link:
        lanes = await Database.open(settings.database_url.get_secret_value(), size=CONNECTIONS, settings=SETTINGS)
        services = build_services(settings, db, link, SECRET_KEY, lanes, clock=passing.clock)
        yield services
        await services.availability.close()
        await services.lanes.close()
        await services.failures.flush()
        services.door.passwords.close()
        await lanes.close()


@pytest.fixture(scope="session")
async def site(services: Services) -> AsyncIterator[Site]:
    """The real server on a real port."""
    async with serving(services) as running:
        yield running


@pytest.fixture
def data_dir() -> Iterator[Path]:
    """A folder for embedded servers of the test's own; short, and open to the user they run as."""
    folder = Path(tempfile.mkdtemp(prefix="vg-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def first_start() -> Iterator[Path]:
    """What the first start of a demonstration leaves behind: a cluster, its tables, its events."""
    folder = Path(tempfile.mkdtemp(prefix="vg-"))
    folder.chmod(0o755)
    with installation(folder):
        pass
    (folder / "demo.log").unlink()
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def lived_in(data_dir: Path, first_start: Path) -> Path:
    """A data folder for a demonstration that is not about its first start."""
    subprocess.run(["cp", "-a", f"{first_start}/.", data_dir], check=True)  # with whose it is
    return data_dir
