"""A box office with a frozen clock, for tests of limits and moments."""

from collections.abc import AsyncIterator

import pytest

from tests.make.boxoffice import BoxOffice, open_office
from voelgoed.config import Settings
from voelgoed.embedded import Embedded
from voelgoed.holds import auditing
from voelgoed.wiring import Services


@pytest.fixture(scope="session")
async def frozen(servers: Embedded, settings: Settings, services: Services, worker_id: str) -> AsyncIterator[BoxOffice]:
    async with open_office(servers, settings, services, f"frozen_{worker_id}", is_frozen=True) as opened:
        yield opened


@pytest.fixture
async def office(frozen: BoxOffice) -> BoxOffice:
    """An organization of the test's own, at the time that it really is."""
    await frozen.reset_clock()
    return await frozen.new_organization()


@pytest.fixture(scope="module", autouse=True)
async def invariants(frozen: BoxOffice) -> AsyncIterator[None]:
    """After the tests of a module no invariant of the database is broken."""
    yield
    assert await auditing.verify(frozen.db) == []
