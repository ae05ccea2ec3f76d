"""What every test of places needs."""

import pytest

from tests.make.accounts import make_organization
from voelgoed.accounts.model import Organization
from voelgoed.db import Database
from voelgoed.seating.studio import Studio
from voelgoed.wiring import Services


@pytest.fixture(scope="session")
def studio(services: Services) -> Studio:
    return services.studio


@pytest.fixture
async def place(db: Database) -> Organization:
    return await make_organization(db)
