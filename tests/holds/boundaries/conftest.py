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
async def office(frozen: BoxOffice) -> AsyncIterator[BoxOffice]:
    """An organization of the test's own. Afterwards no invariant of the database may be broken."""
    await frozen.reset_clock()
    opened = await frozen.new_organization()
    yield opened
    assert await auditing.verify(opened.db, organization_id=opened.organization.id) == []
