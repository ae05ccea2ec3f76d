"""An organization, and an event of it that is on sale, for whoever asks for places over HTTP."""

import pytest

from tests.make.accounts import make_organization
from tests.make.holds import Sale, on_sale
from voelgoed.accounts.model import Organization
from voelgoed.db import Database
from voelgoed.wiring import Services


@pytest.fixture
async def place(db: Database) -> Organization:
    return await make_organization(db)


@pytest.fixture
async def sale(services: Services, place: Organization) -> Sale:
    return await on_sale(services, place)
