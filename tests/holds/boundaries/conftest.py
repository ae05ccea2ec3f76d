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
    """One database for all these tests. After the last of them no invariant of it is broken."""
    async with open_office(servers, settings, services, f"frozen_{worker_id}", is_frozen=True) as opened:
        yield opened
        assert await auditing.verify(opened.db) == []


@pytest.fixture
async def office(frozen: BoxOffice) -> BoxOffice:
    """An organization of the test's own, at the time that it really is."""
    await frozen.reset_clock()
    return await frozen.new_organization()
