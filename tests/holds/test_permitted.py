"""What the organization's policy says of an event's seating: looked at when it is saved, and when it is published."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import pytest

from tests.holds.expected import require_agreement, whole_state
from tests.make.layouts import changed, encoded
from tests.make.seating import Seated, event_layout, publish, save, seat_rows, seated_event
from voelgoed.accounts.model import Organization, Role
from voelgoed.db import Database
from voelgoed.events.model import OPERATOR
from voelgoed.holds import inventory
from voelgoed.seating import policies
from voelgoed.seating.document import read_layout
from voelgoed.seating.model import AccessMode, Layout, ZoneType
from voelgoed.seating.offer import SeatingInvalid
from voelgoed.seating.overlay import Overlay, ZoneOverride
from voelgoed.seating.policy import Origin
from voelgoed.seating.studio import Studio


async def decree(db: Database, place: Organization, **values: object) -> None:
    """The platform changes the policy."""
    async with db.transaction(place.id) as conn:
        await policies.save(conn, place.id, values, by=OPERATOR, role=Role.SUPER_ADMIN, reason="in a test")


def plain_hall() -> Layout:
    """Stalls, a pit and a terrace, for everybody."""
    pit = {"code": "P", "name": "Pit", "zone_type": "ga_standing", "capacity": 50}
    terrace = {"code": "Q", "name": "Terrace", "zone_type": "ga_seated", "capacity": 20}
    return read_layout(encoded(changed({"zones.1": pit, "zones.2": terrace})))


@pytest.fixture
async def draft(db: Database, studio: Studio, place: Organization) -> Seated:
    return await seated_event(db, studio, place, plain_hall())


def faults(refused: pytest.ExceptionInfo[SeatingInvalid]) -> list[tuple[str, str]]:
    told: Any = refused.value.facts["errors"]
    return [(one["path"], one["code"]) for one in told]


CASES: Final[Mapping[str, tuple[dict[str, object], Overlay, list[str]]]] = {
    "hybrid": ({"allow_hybrid_ga_reserved": False}, Overlay(), ["P", "Q"]),
    "no general admission": ({"allow_ga_seating": False}, Overlay(), ["P", "Q"]),
    "no reserved seats": ({"allow_reserved_seating": False}, Overlay(), ["S"]),
    "vip": (
        {"allow_vip_zones": False},
        Overlay(zone_overrides={"P": ZoneOverride(zone_type=ZoneType.VIP_STANDING, access_mode=AccessMode.WHITELIST)}),
        ["P"],
    ),
    "access": (
        {"allowed_access_modes": ["public"]},
        Overlay(zone_overrides={"S": ZoneOverride(access_mode=AccessMode.ROLE_BASED, allowed_roles=("staff",))}),
        ["S"],
    ),
}


@pytest.mark.req("POL-19", "RBAC-10")
@pytest.mark.parametrize("case", CASES)
async def test_what_is_not_permitted_is_not_saved(
    db: Database, studio: Studio, place: Organization, draft: Seated, case: str
) -> None:
    """Every zone that the policy does not allow is told, of a draft and of what is on sale; nothing has changed."""
    values, overlay, refused_zones = CASES[case]
    for event in (draft.event, await publish(studio, draft.event)):
        await decree(db, place, **values)
        before = await whole_state(db, event)
        wanted = draft.wanted(replace(overlay, blocked_seats=("S-A-1",)))
        with pytest.raises(SeatingInvalid) as refused:
            await save(studio, event, wanted)
        named = [(f"zone_overrides.{draft.hall.zone_id(code)}", "zone_not_permitted") for code in refused_zones]
        assert faults(refused) == named
        assert await whole_state(db, event) == before
        await decree(db, place, allow_hybrid_ga_reserved=True, allow_ga_seating=True, allow_reserved_seating=True)
        await decree(db, place, allow_vip_zones=True, allowed_access_modes=list(AccessMode))


@pytest.mark.req("POL-19")
@pytest.mark.parametrize("case", CASES)
async def test_what_was_permitted_once_is_not_published(
    db: Database, studio: Studio, place: Organization, draft: Seated, case: str
) -> None:
    """Saved while it was allowed, refused when it is published and the policy has changed in between."""
    values, overlay, refused_zones = CASES[case]
    await save(studio, draft.event, draft.wanted(overlay))
    await decree(db, place, **values)
    before = await whole_state(db, draft.event)
    with pytest.raises(SeatingInvalid) as refused:
        await publish(studio, draft.event)
    assert [path for path, _ in faults(refused)] == [
        f"zone_overrides.{draft.hall.zone_id(code)}" for code in refused_zones
    ]
    assert await whole_state(db, draft.event) == before
    off = Overlay(disabled_zones=tuple(refused_zones))
    await save(studio, draft.event, draft.wanted(off))  # a zone that is off offers nothing that could be refused
    await publish(studio, draft.event)
    await require_agreement(studio, draft.event)


async def test_what_is_on_sale_stays_on_sale(db: Database, studio: Studio, place: Organization, draft: Seated) -> None:
    """A policy is for what is yet to be said: places that people can buy do not vanish by it."""
    event = await publish(studio, draft.event)
    before = [tuple(row) for row in await seat_rows(db, event)]
    await decree(db, place, allow_hybrid_ga_reserved=False, allow_ga_seating=False)
    assert [tuple(row) for row in await seat_rows(db, event)] == before


@pytest.mark.req("RBAC-10")
@pytest.mark.parametrize(
    "said",
    [
        {"max_seats_per_booking": 6},
        {"allow_vip_zones": True},
        {"max_holds_per_ip": 3},
        {"max_group_split": 99},
        {"no_such_field": 1},
    ],
)
async def test_an_event_overrides_only_what_it_may(
    db: Database, studio: Studio, place: Organization, draft: Seated, said: dict[str, object]
) -> None:
    """A locked field, one of the organization's own, a wrong value, no field at all: refused, and nothing is saved."""
    await decree(db, place, locked_fields=["max_seats_per_booking"])
    before = await whole_state(db, draft.event)
    wanted = draft.wanted(Overlay(seating_overrides={"default_hold_ttl_minutes": 5, **said}))
    with pytest.raises(SeatingInvalid) as refused:
        await save(studio, draft.event, wanted)
    assert faults(refused) == [(f"seating_overrides.{name}", "override_refused") for name in said]
    assert await whole_state(db, draft.event) == before


@pytest.mark.req("RBAC-10")
async def test_an_override_does_not_outlive_a_lock(
    db: Database, studio: Studio, place: Organization, draft: Seated
) -> None:
    """It was right when it was saved; once the field is locked the organization's value holds."""
    said = Overlay(seating_overrides={"max_seats_per_booking": 6, "default_hold_ttl_minutes": 5})
    event = await publish(studio, draft.event)
    await save(studio, event, draft.wanted(said))
    held = (await inventory.plan(studio, place.id, event.id)).offer.view.policy
    assert (held.policy.max_seats_per_booking, held.origins["max_seats_per_booking"]) == (6, Origin.EVENT)

    await decree(db, place, max_seats_per_booking=3, locked_fields=["max_seats_per_booking"])
    held = (await inventory.plan(studio, place.id, event.id)).offer.view.policy
    assert (held.policy.max_seats_per_booking, held.policy.default_hold_ttl_minutes) == (3, 5)
    assert held.origins["max_seats_per_booking"] is Origin.ORGANIZATION
    assert [name for name, _ in held.refused] == ["max_seats_per_booking"]
    kept: Any = (await event_layout(db, event)).overrides["seating_overrides"]
    assert kept["max_seats_per_booking"] == 6  # nobody has taken it back
    with pytest.raises(SeatingInvalid):
        await save(studio, event, draft.wanted(replace(said, blocked_seats=("S-A-1",))))
    await save(studio, event, draft.wanted(Overlay(seating_overrides={"default_hold_ttl_minutes": 5})))


async def test_an_override_that_was_locked_since_keeps_a_draft_from_being_published(
    db: Database, studio: Studio, place: Organization, draft: Seated
) -> None:
    """The organiser hears of it before people can book by another rule than was meant."""
    await save(studio, draft.event, draft.wanted(Overlay(seating_overrides={"max_seats_per_booking": 6})))
    await decree(db, place, locked_fields=["max_seats_per_booking"])
    with pytest.raises(SeatingInvalid) as refused:
        await publish(studio, draft.event)
    assert faults(refused) == [("seating_overrides.max_seats_per_booking", "override_refused")]
