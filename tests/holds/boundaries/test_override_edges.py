"""An event's own limits in place of its organization's: they hold exactly, and not where the field is locked."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

import pytest

from tests.make.boxoffice import BoxOffice
from voelgoed.holds.model import Ask, Outcome
from voelgoed.ids import new_id

NO_LIMIT = 8
"""More than any of these tests asks for."""


@dataclass(frozen=True, slots=True)
class Field:
    """A limit that an event may override, and how one above it is answered."""

    name: str
    refusal: Outcome
    is_wheelchair: bool = False

    def ask(self, office: BoxOffice, kind: str, count: int, user_id: UUID) -> Ask:
        if kind == "places":
            return office.ask(places=count, user_id=user_id)
        return office.ask(*office.seats(count, wheelchair=self.is_wheelchair), user_id=user_id)


SEATS = Field("max_seats_per_booking", Outcome.TOO_MANY_SEATS)
WHEELCHAIRS = Field("max_wheelchair_seats_per_booking", Outcome.TOO_MANY_WHEELCHAIRS, is_wheelchair=True)
HOLDS = Field("max_holds_per_user", Outcome.TOO_MANY_HOLDS)
CASES = [(SEATS, "seats"), (SEATS, "places"), (WHEELCHAIRS, "seats"), (HOLDS, "seats"), (HOLDS, "places")]
FIELDS = pytest.mark.parametrize(("limit", "kind"), CASES, ids=[f"{one.name}-{kind}" for one, kind in CASES])


async def open_with(
    office: BoxOffice, *, policy: Mapping[str, object], overrides: Mapping[str, object], is_locked: bool = False
) -> BoxOffice:
    """Open an organization with a policy and an event with overrides; then lock what is overridden."""
    opened = await office.new_organization(overrides=overrides)
    await opened.allow(**policy)
    if is_locked:
        await opened.allow(locked_fields=list(overrides))
    return opened


async def is_exactly(office: BoxOffice, limit: Field, kind: str, most: int) -> None:
    """One below the limit and at it a buyer is granted everything, one above it nothing."""
    for count in range(max(1, most - 1), most + 1):
        assert await office.outcome(limit.ask(office, kind, count, new_id())) == Outcome.CREATED, "the limit is lower"
    before = await office.everything()
    assert await office.outcome(limit.ask(office, kind, most + 1, new_id())) == limit.refusal, "the limit is higher"
    assert await office.everything() == before


@FIELDS
@pytest.mark.parametrize(("policy", "override"), [(3, 2), (2, 3)], ids=["lower", "higher"])
async def test_override_replaces_the_policy(
    office: BoxOffice, limit: Field, kind: str, policy: int, override: int
) -> None:
    at = await open_with(office, policy={limit.name: policy}, overrides={limit.name: override})
    await is_exactly(at, limit, kind, override)


@FIELDS
async def test_override_holds_without_a_policy(office: BoxOffice, limit: Field, kind: str) -> None:
    at = await open_with(office, policy={}, overrides={limit.name: 2})
    await is_exactly(at, limit, kind, 2)


@FIELDS
@pytest.mark.parametrize(("policy", "override"), [(3, 2), (2, 3)], ids=["lower", "higher"])
async def test_locked_field_is_not_overridden(
    office: BoxOffice, limit: Field, kind: str, policy: int, override: int
) -> None:
    at = await open_with(office, policy={limit.name: policy}, overrides={limit.name: override}, is_locked=True)
    await is_exactly(at, limit, kind, policy)


@FIELDS
async def test_override_of_one_field_leaves_the_others(office: BoxOffice, limit: Field, kind: str) -> None:
    other = "default_hold_ttl_minutes"
    at = await open_with(office, policy={limit.name: 2}, overrides={other: 7})
    await is_exactly(at, limit, kind, 2)


@FIELDS
async def test_override_is_of_one_event(office: BoxOffice, limit: Field, kind: str) -> None:
    """Another event of the organization follows the policy."""
    at = await open_with(office, policy={limit.name: 2}, overrides={limit.name: 3})
    await is_exactly(await at.new_event(), limit, kind, 2)


@pytest.mark.parametrize("kind", ["seats", "places"])
async def test_override_can_lift_the_limit_per_user(office: BoxOffice, kind: str) -> None:
    at = await open_with(office, policy={HOLDS.name: 2}, overrides={HOLDS.name: None})
    assert await at.outcome(HOLDS.ask(at, kind, NO_LIMIT, new_id())) == Outcome.CREATED


@pytest.mark.parametrize("policy", [True, False])
@pytest.mark.parametrize("override", [True, False, None])
@pytest.mark.parametrize("is_locked", [False, True], ids=["open", "locked"])
async def test_wheelchair_limit_where_it_is_enforced(
    office: BoxOffice, *, policy: bool, override: bool | None, is_locked: bool
) -> None:
    """Where accessibility rules are not enforced there is no limit of wheelchair seats."""
    name = "enforce_accessibility_rules"
    overrides = {} if override is None else {name: override}
    at = await open_with(office, policy={name: policy}, overrides=overrides, is_locked=is_locked)
    if policy if override is None or is_locked else override:
        await is_exactly(at, WHEELCHAIRS, "seats", 1)
    else:
        assert await at.outcome(WHEELCHAIRS.ask(at, "seats", NO_LIMIT, new_id())) == Outcome.CREATED


@pytest.mark.parametrize("kind", ["seats", "places"])
@pytest.mark.parametrize(
    ("policy", "override", "is_locked", "minutes"),
    [(None, None, False, 10), (1, None, False, 1), (3, 60, False, 60), (60, 1, False, 1), (3, 15, True, 3)],
)
async def test_how_long_a_hold_lasts(
    office: BoxOffice, kind: str, policy: int | None, override: int | None, minutes: int, *, is_locked: bool
) -> None:
    """The event's minutes, else the policy's, else ten; to the microsecond, as recorded and as answered."""
    name = "default_hold_ttl_minutes"
    at = await open_with(
        office,
        policy={} if policy is None else {name: policy},
        overrides={} if override is None else {name: override},
        is_locked=is_locked,
    )
    began, ask = await at.now(), SEATS.ask(at, kind, 1, new_id())
    ((said,),) = await at.reserve(ask)
    assert said.until == began + timedelta(minutes=minutes), "a hold lasts too long or too short"
    assert [row["expires_at"] for row in await at.holds(ask)] == [said.until]


async def test_limit_per_address_is_the_organizations(office: BoxOffice) -> None:
    """No event has its own: one address is counted over all events."""
    await office.allow(max_holds_per_ip=2)
    other, ip = await office.new_event(), "192.0.2.7"
    await office.hold(*office.seats(1), ip=ip)
    await other.hold(places=1, ip=ip)
    for at in (office, other):
        assert await at.outcome(at.ask(places=1, ip=ip)) == Outcome.TOO_MANY_HOLDS
        assert await at.outcome(at.ask(*at.seats(1), ip=ip)) == Outcome.TOO_MANY_HOLDS
