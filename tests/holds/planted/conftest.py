"""Where bugs are planted: databases with PostgreSQL's own clock for races, with a frozen one for limits and moments."""

from collections.abc import AsyncIterator

import pytest

from tests.holds.planted.bugs import Nursery
from tests.make.boxoffice import open_office
from voelgoed.config import Settings
from voelgoed.embedded import Embedded
from voelgoed.wiring import Services


@pytest.fixture(scope="session")
async def nursery(servers: Embedded, settings: Settings, services: Services, worker_id: str) -> AsyncIterator[Nursery]:
    async with open_office(servers, settings, services, f"healthy_{worker_id}") as healthy:
        yield Nursery(healthy, servers, settings, services, f"planted_{worker_id}", is_frozen=False)


@pytest.fixture(scope="session")
async def frozen_nursery(
    servers: Embedded, settings: Settings, services: Services, worker_id: str
) -> AsyncIterator[Nursery]:
    async with open_office(servers, settings, services, f"healthy_frozen_{worker_id}", is_frozen=True) as healthy:
        yield Nursery(healthy, servers, settings, services, f"planted_{worker_id}", is_frozen=True)
