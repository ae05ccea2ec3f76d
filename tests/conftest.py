"""One PostgreSQL and one Valkey for the whole run, a database of its own for each worker.

The controlling process starts the servers and makes the template; the workers copy it. `VOELGOED_PG_CONFIG` runs the
same tests on another PostgreSQL.
"""

import asyncio
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import asyncpg
import pytest
import structlog
from pydantic import SecretStr

from tests.make import passing
from tests.make.processes import free_port
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
POSTGRESQL_FIXTURES = {"db", "owner_conn", "app_conn", "database"}
SECRET_KEY = b"a secret key that only tests have"
STASH = pytest.StashKey[Embedded]()


def pytest_configure(config: pytest.Config) -> None:
    """Start the servers in the controlling process; xdist's workers find them by the environment."""
    if hasattr(config, "workerinput") or config.option.collectonly or config.option.help:
        return
    home = Path(tempfile.mkdtemp(prefix="voelgoed-tests-"))
    home.chmod(0o755)  # the servers' own user has to reach it
    named = os.environ.get("VOELGOED_PG_CONFIG")
    embedded = Embedded(home, pg_config=Path(named) if named else None, durable=False)
    config.stash[STASH] = embedded
    os.environ[TEST_DIR_ENV] = str(home)
    asyncio.run(_start(embedded))


def pytest_report_header(config: pytest.Config) -> str | None:
    """Say which PostgreSQL this leg runs on."""
    embedded = config.stash.get(STASH, None)
    return f"PostgreSQL {(embedded.home / 'pg' / 'PG_VERSION').read_text().strip()}" if embedded else None


def pytest_unconfigure(config: pytest.Config) -> None:
    """Stop them and leave nothing behind."""
    if embedded := config.stash.get(STASH, None):
        asyncio.run(embedded.stop())
        shutil.rmtree(embedded.home, ignore_errors=True)


async def _start(embedded: Embedded) -> None:
    await embedded.start()
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
    """Where the run's servers are; they are the controlling process's to stop."""
    return Embedded(Path(os.environ[TEST_DIR_ENV]))


@pytest.fixture(scope="session")
async def database(servers: Embedded, worker_id: str) -> str:
    """The name of this worker's own database, made anew from the template."""
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
def redis_url(servers: Embedded, worker_id: str) -> str:
    """A Redis database of this worker's own."""
    number = 0 if worker_id == "master" else int(worker_id.removeprefix("gw")) + 1
    return f"{servers.valkey_url}?db={number}"


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
