"""What a planted bug is, and how a test proves that it is noticed."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import pytest

from tests.make.boxoffice import BoxOffice, Plant, open_office
from voelgoed.config import Settings
from voelgoed.embedded import Embedded
from voelgoed.holds import auditing
from voelgoed.wiring import Services

Workload = Callable[[BoxOffice], Awaitable[None]]
"""Uses a box office and asserts what must be so, as any test does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bug:
    """A change of the functions, a workload, and what notices: words of an assertion, or a check of `verify`."""

    name: str
    plants: tuple[Plant, ...]
    workload: Workload
    says: str | None = None
    check: str | None = None

    def __post_init__(self) -> None:
        assert (self.says is None) != (self.check is None), "either an assertion fails or a check does"


@dataclass(frozen=True, slots=True)
class Nursery:
    """Where bugs are planted: a database with the functions as they are, and a new one for every bug."""

    healthy: BoxOffice
    servers: Embedded
    settings: Settings
    services: Services
    name: str
    is_frozen: bool

    async def is_noticed(self, bug: Bug) -> None:
        """Let the workload pass where nothing is planted, and prove that it notices the bug where it is."""
        if self.is_frozen:
            await self.healthy.reset_clock()
        await self._is_healthy(bug)
        async with open_office(
            self.servers, self.settings, self.services, self.name, is_frozen=self.is_frozen, plants=bug.plants
        ) as planted:
            if bug.says:
                with pytest.raises(AssertionError, match=bug.says):
                    await bug.workload(planted)
            else:
                await bug.workload(planted)
                assert bug.check in {finding.check for finding in await auditing.verify(planted.db)}

    async def _is_healthy(self, bug: Bug) -> None:
        office = await self.healthy.new_organization()
        await bug.workload(office)
        assert await auditing.verify(office.db, organization_id=office.organization.id) == []
