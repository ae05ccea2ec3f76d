"""An organization's policy in PostgreSQL: one each, changed by those who may, told once, and held against layouts."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import asyncpg
import pytest
from hypothesis import HealthCheck, given, settings

from tests.make.accounts import make_organization
from tests.make.events import call_of, make_venue
from tests.make.layouts import encoded, small_layout
from tests.seating.test_policy import POLICIES, VALUES
from voelgoed.accounts.model import Organization, Role
from voelgoed.accounts.permissions import PermissionDenied
from voelgoed.db import Connection, Database
from voelgoed.events.model import OPERATOR
from voelgoed.seating import operator, policies, presets, usecases, versions
from voelgoed.seating.canonical import write_layout
from voelgoed.seating.faults import LayoutInvalid
from voelgoed.seating.generate import generate
from voelgoed.seating.model import AccessMode, Layout
from voelgoed.seating.policies import StoredPolicy
from voelgoed.seating.policy import FIELDS, LOCKS, Policy, changed, values_of
from voelgoed.seating.refusals import PolicyChanged, PolicyFieldLocked, PolicyInvalid
from voelgoed.seating.seats_csv import write_seats
from voelgoed.seating.studio import Studio
from voelgoed.seating.usecases import Format
from voelgoed.wiring import Services


@pytest.fixture(scope="session")
def studio(services: Services) -> Studio:
    return services.studio


@pytest.fixture
async def place(db: Database) -> Organization:
    return await make_organization(db)


async def load(db: Database, place: Organization) -> StoredPolicy:
    async with db.transaction(place.id) as conn:
        return await policies.load(conn, place.id)


async def save(
    db: Database, place: Organization, values: Mapping[str, object], *, version: int | None = None
) -> StoredPolicy:
    async with db.transaction(place.id) as conn:
        return await policies.save(
            conn, place.id, values, by=OPERATOR, role=Role.SUPER_ADMIN, reason="in a test", version=version
        )


async def facts(db: Database, place: Organization) -> list[dict[str, Any]]:
    async with db.transaction(place.id) as conn:
        rows = await conn.fetch(
            "select actor_id, reason, data from journal where kind = 'seating_policy_changed' order by seq"
        )
    return [{**dict(row), "data": json.loads(row["data"])} for row in rows]


async def row_count(db: Database, place: Organization) -> int:
    async with db.transaction(place.id) as conn:
        count: int = await conn.fetchval("select count(*) from seating_policies where organization_id = $1", place.id)
    return count


async def test_without_a_row_the_defaults_hold(db: Database, place: Organization) -> None:
    """Nothing is written by looking."""
    assert await load(db, place) == StoredPolicy(policy=Policy(), version=0, updated_at=None)
    assert await row_count(db, place) == 0


@pytest.mark.req("POL-01")
async def test_an_organization_has_one_policy(db: Database, place: Organization, app_conn: Connection) -> None:
    """With an id, an organization, and two times, of which the second moves; PostgreSQL has no second one."""
    first = await save(db, place, {"max_seats_per_booking": 4})
    second = await save(db, place, {"max_seats_per_booking": 6})
    assert (first.version, second.version) == (1, 2)
    async with db.transaction(place.id) as conn:
        (row,) = await conn.fetch("select id, organization_id, created_at, updated_at from seating_policies")
    assert (row["id"].version, row["organization_id"]) == (7, place.id)
    assert first.updated_at is not None
    assert second.updated_at is not None
    assert row["created_at"] <= first.updated_at < second.updated_at == row["updated_at"]
    await app_conn.execute("select set_config('app.organization_id', $1, false)", str(place.id))
    with pytest.raises(asyncpg.UniqueViolationError):
        await app_conn.execute(
            "insert into seating_policies (id, organization_id) values (gen_random_uuid(), $1)", place.id
        )


@pytest.mark.req("POL-02", "POL-03", "POL-04", "POL-05")
async def test_the_defaults_of_the_table_are_those_of_the_code(db: Database, place: Organization) -> None:
    """A row with nothing said in it is the policy with nothing said in it; each field has its column."""
    async with db.transaction(place.id) as conn:
        await conn.execute(
            "insert into seating_policies (id, organization_id) values (gen_random_uuid(), $1)", place.id
        )
        row = await conn.fetchrow("select * from seating_policies where organization_id = $1", place.id)
    assert row is not None
    assert row.keys() - FIELDS.keys() == {"id", "organization_id", "version", "created_at", "updated_at"}
    assert FIELDS.keys() <= set(row.keys())
    assert (await load(db, place)).policy == Policy()
    assert not row["allow_vip_zones"]
    assert [row[f"allow_{name}"] for name in ("reserved_seating", "ga_seating", "hybrid_ga_reserved")] == [True] * 3


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(policy=POLICIES)
async def test_every_policy_comes_back_as_it_was_stored(db: Database, place: Organization, policy: Policy) -> None:
    """Each field to its own column, also after another policy."""
    await save(db, place, values_of(policy))
    assert (await load(db, place)).policy == policy


OTHERWISE: Mapping[str, object] = {
    "allow_reserved_seating": False,
    "allow_ga_seating": False,
    "allow_hybrid_ga_reserved": False,
    "allow_vip_zones": True,
    "allowed_access_modes": [AccessMode.WHITELIST],
    "enforce_accessibility_rules": False,
    "companion_release_occupancy_threshold": 80,
    "max_wheelchair_seats_per_booking": 2,
    "companion_requires_wheelchair": True,
    "max_companions_per_wheelchair": 3,
    "accessibility_audit_enabled": False,
    "max_seats_per_booking": 7,
    "orphan_avoidance_strict": False,
    "group_adjacency_strict": True,
    "max_group_split": 5,
    "prefer_clustering_over_selection": True,
    "default_hold_ttl_minutes": 15,
    "max_holds_per_user": 21,
    "max_holds_per_ip": 34,
    LOCKS: ["allow_vip_zones"],
}


async def stored_apart(db: Database, place: Organization, *names: str) -> None:
    """Each field is kept, told with what it was before, and touches no other."""
    for name in names:
        before = (await load(db, place)).policy
        after = (await save(db, place, {name: OTHERWISE[name]})).policy
        assert after == (await load(db, place)).policy == changed(before, {name: OTHERWISE[name]}) != before
        (pair,) = [fact["data"]["changes"] for fact in await facts(db, place)][-1:]
        assert pair == json.loads(json.dumps({name: [getattr(before, name), getattr(after, name)]}))


@pytest.mark.req("POL-06", "POL-08")
async def test_what_wheelchair_users_are_owed_is_stored(db: Database, place: Organization) -> None:
    """Each field by itself."""
    await stored_apart(
        db,
        place,
        "enforce_accessibility_rules",
        "companion_release_occupancy_threshold",
        "max_wheelchair_seats_per_booking",
        "accessibility_audit_enabled",
    )


@pytest.mark.req("POL-10", "POL-13")
async def test_what_a_booking_is_is_stored(db: Database, place: Organization) -> None:
    """Each field by itself."""
    await stored_apart(
        db,
        place,
        "max_seats_per_booking",
        "orphan_avoidance_strict",
        "group_adjacency_strict",
        "default_hold_ttl_minutes",
    )


@pytest.mark.req("POL-14", "POL-15")
async def test_what_holds_and_groups_are_bounded_by_is_stored(db: Database, place: Organization) -> None:
    """Each field by itself; and no limit again."""
    await stored_apart(
        db, place, "max_holds_per_user", "max_holds_per_ip", "max_group_split", "prefer_clustering_over_selection"
    )
    again = (await save(db, place, {"max_holds_per_user": None, "max_holds_per_ip": None})).policy
    assert (again.max_holds_per_user, again.max_holds_per_ip) == (None, None)


async def test_the_other_fields_are_stored(db: Database, place: Organization) -> None:
    """None is forgotten."""
    assert OTHERWISE.keys() == FIELDS.keys()
    await stored_apart(db, place, *OTHERWISE)


async def test_who_changed_it_and_why_is_told(db: Database, place: Organization) -> None:
    """As the operator or as somebody, with each field before and after; and once."""
    owner = call_of(place)
    await save(db, place, {"locked_fields": ["max_group_split"]})
    stored = await usecases.change_policy(
        db, owner, {"max_seats_per_booking": 4, "allow_ga_seating": True}, version=None
    )
    by_operator, by_owner = await facts(db, place)
    assert (by_operator["actor_id"], by_operator["reason"]) == (None, "in a test")
    assert by_operator["data"] == {
        "changes": {LOCKS: [[], ["max_group_split"]]},
        "version": 1,
        "actor_type": "operator",
    }
    assert (by_owner["actor_id"], by_owner["reason"]) == (owner.actor.id, None)
    assert by_owner["data"] == {
        "changes": {"max_seats_per_booking": [10, 4]},
        "version": stored.version,
        "actor_type": "owner",
    }


async def test_nothing_is_written_or_told_when_nothing_changes(db: Database, place: Organization) -> None:
    """Neither before there is a row nor after; nor when a list comes in another order."""
    assert (await save(db, place, {"allow_vip_zones": False, "max_seats_per_booking": 10})).version == 0
    assert await row_count(db, place) == 0
    stored = await save(db, place, {"allowed_access_modes": ["whitelist", "public"]})
    assert await save(db, place, {"allowed_access_modes": ["public", "whitelist"]}) == stored
    assert await save(db, place, {}) == stored
    assert len(await facts(db, place)) == 1


async def test_a_policy_changed_since_it_was_seen_is_not_changed(db: Database, place: Organization) -> None:
    """Nobody writes over what they have not read; 0 is that there was nothing."""
    stored = await save(db, place, {"max_seats_per_booking": 4}, version=0)
    for version in (0, 2):
        with pytest.raises(PolicyChanged) as refused:
            await save(db, place, {"max_seats_per_booking": 5}, version=version)
        assert refused.value.facts == {"version": 1}
    assert await load(db, place) == stored
    assert (await save(db, place, {"max_seats_per_booking": 5}, version=1)).version == 2
    assert len(await facts(db, place)) == 2


@pytest.mark.parametrize("version", [None, 0])
async def test_two_first_writers_at_once(db: Database, place: Organization, version: int | None) -> None:
    """The second waits for the first, and then decides on what the first has said: both hold, or it is told."""
    async with db.transaction(place.id) as conn:
        await policies.save(
            conn, place.id, {"max_seats_per_booking": 4}, by=OPERATOR, role=Role.SUPER_ADMIN, version=version
        )
        second = asyncio.create_task(save(db, place, {"max_group_split": 5}, version=version))
        done, _ = await asyncio.wait([second], timeout=0.3)
        assert not done, "it did not wait"
    if version is None:
        assert (await second).version == 2
        assert (await load(db, place)).policy == Policy(max_seats_per_booking=4, max_group_split=5)
    else:
        with pytest.raises(PolicyChanged):
            await second
        assert (await load(db, place)).policy == Policy(max_seats_per_booking=4)
    assert await row_count(db, place) == 1


async def test_many_writers_lose_nothing(db: Database, place: Organization) -> None:
    """Each field has what its writer said, whoever was first."""
    names = [name for name in FIELDS if name != LOCKS]
    await asyncio.gather(*(save(db, place, {name: OTHERWISE[name]}) for name in names))
    stored = await load(db, place)
    assert stored.policy == changed(Policy(), {name: OTHERWISE[name] for name in names})
    assert stored.version == len(names)
    assert sorted(fact["data"]["version"] for fact in await facts(db, place)) == list(range(1, len(names) + 1))


@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(policy=POLICIES, values=VALUES)
async def test_an_owner_never_changes_what_is_locked(
    db: Database, place: Organization, policy: Policy, values: Mapping[str, object]
) -> None:
    """Nor the locks; the refused fields are named, and nothing is changed with them."""
    before = await save(db, place, values_of(policy))
    refused = sorted(values.keys() & {*policy.locked_fields, LOCKS})
    owner = call_of(place)
    if refused:
        with pytest.raises(PolicyFieldLocked) as told:
            await usecases.change_policy(db, owner, values, version=None)
        assert told.value.facts == {"fields": refused}
        assert await load(db, place) == before
    else:
        after = await usecases.change_policy(db, owner, values, version=None)
        assert after.policy == changed(policy, values)


async def test_a_field_locked_at_the_same_moment_stays(db: Database, place: Organization) -> None:
    """The owner waits for the platform, and is then refused."""
    await save(db, place, {"max_seats_per_booking": 4})
    async with db.transaction(place.id) as conn:
        await policies.save(conn, place.id, {LOCKS: ["max_seats_per_booking"]}, by=OPERATOR, role=Role.SUPER_ADMIN)
        second = asyncio.create_task(
            usecases.change_policy(db, call_of(place), {"max_seats_per_booking": 9}, version=None)
        )
        done, _ = await asyncio.wait([second], timeout=0.3)
        assert not done, "it did not wait"
    with pytest.raises(PolicyFieldLocked):
        await second
    assert (await load(db, place)).policy.max_seats_per_booking == 4


async def test_crew_see_it_and_only_owners_change_it(db: Database, place: Organization) -> None:
    """Scanners and customers have no business with it."""
    await save(db, place, {"max_seats_per_booking": 4})
    for role in (Role.OWNER, Role.ADMIN, Role.STAFF):
        assert (await usecases.get_policy(db, call_of(place, role))).policy.max_seats_per_booking == 4
    for role in (Role.SCANNER, Role.CUSTOMER):
        with pytest.raises(PermissionDenied):
            await usecases.get_policy(db, call_of(place, role))
    for role in (Role.ADMIN, Role.STAFF, Role.SCANNER, Role.CUSTOMER):
        with pytest.raises(PermissionDenied):
            await usecases.change_policy(db, call_of(place, role), {"max_seats_per_booking": 5}, version=None)
    assert (await load(db, place)).version == 1


async def test_what_is_wrong_is_told_at_once_and_nothing_changes(db: Database, place: Organization) -> None:
    """By field; what is right beside it is not kept either."""
    with pytest.raises(PolicyInvalid) as refused:
        await save(db, place, {"max_seats_per_booking": 0, "colour": "red", "allow_vip_zones": True})
    assert refused.value.facts == {
        "fields": {
            "max_seats_per_booking": "must be a whole number from 1 to 40",
            "colour": "is no field of the policy",
        }
    }
    assert (await load(db, place)).version == 0


async def test_organizations_have_policies_of_their_own(db: Database, place: Organization) -> None:
    """What one says does not hold for another, and is not seen there."""
    other = await make_organization(db)
    await save(db, place, {"max_seats_per_booking": 4})
    await save(db, other, {"max_seats_per_booking": 5})
    assert (await load(db, place)).policy.max_seats_per_booking == 4
    assert (await usecases.get_policy(db, call_of(other))).policy.max_seats_per_booking == 5
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        async with db.transaction(other.id) as conn:
            assert (await policies.load(conn, place.id)).version == 0
            await policies.save(conn, place.id, {"max_group_split": 1}, by=OPERATOR, role=Role.SUPER_ADMIN)


async def test_the_operator_locks_and_unlocks(db: Database, place: Organization) -> None:
    """Beside what is locked already; a name that is none is refused either way."""
    await operator.change_policy(db, place, {}, lock=["max_group_split"], reason="why")
    stored = await operator.change_policy(
        db, place, {"allow_vip_zones": True}, lock=["allow_vip_zones"], unlock=["max_group_split"], reason="why"
    )
    assert stored.policy == Policy(allow_vip_zones=True, locked_fields=("allow_vip_zones",))
    for named in ({"lock": ["colour"]}, {"unlock": ["colour"]}):
        with pytest.raises(PolicyInvalid):
            await operator.change_policy(db, place, {}, reason="why", **named)
    assert await operator.get_policy(db, place) == stored


PAIRLESS = {"zones.0.rows.1.seats.category": {"wheelchair": [1], "companion": [2, 5]}}
BY_LIST = {"zones.2.access_mode": "whitelist"}


def told(invalid: LayoutInvalid) -> list[tuple[str, str]]:
    return [(fault.path, fault.code) for fault in invalid.faults]


async def refusals(studio: Studio, place: Organization, layout: Layout) -> list[list[tuple[str, str]]]:
    """What each way of storing a layout says: a new one, a new version, both tried only, the operator's."""
    venue = await make_venue(studio.db, place, max_capacity=10_000)
    plain = small_layout({"zones.1.zone_type": "reserved_seating"})
    first = await versions.create_layout(studio, place.id, venue.id, plain, by=OPERATOR)
    call, data = call_of(place, Role.STAFF), write_layout(layout)
    asked: list[Any] = []
    for is_dry_run in (True, False):
        options: dict[str, Any] = {"is_dry_run": is_dry_run, "once": None}
        asked += [
            usecases.import_layout(studio, call, venue.id, data, Format.JSON, **options),
            usecases.add_layout(studio, call, venue.id, layout, **options),
            usecases.import_version(studio, call, first.layout_id, data, Format.JSON, **options),
        ]
    asked.append(operator.add_layout(studio, place, venue.id, layout))
    asked.append(operator.add_version(studio, place, first.layout_id, layout))
    found = []
    for one in asked:
        with pytest.raises(LayoutInvalid) as refused:
            await one
        found.append(told(refused.value))
    async with studio.db.transaction(place.id) as conn:
        left = await conn.fetchrow(
            "select (select count(*) from layouts), (select count(*) from layout_versions),"
            " (select count(*) from layout_seats), (select version_last from layouts)"
        )
    assert left is not None
    assert tuple(left) == (1, 1, 13, 1), "something was stored"
    return found


@pytest.mark.req("POL-17", "POL-05")
@pytest.mark.parametrize(
    ("policy", "changes", "faults"),
    [
        ({}, {}, [("zones[1].zone_type", "zone_not_permitted")]),
        ({"allow_vip_zones": True}, BY_LIST, [("zones[2].access_mode", "zone_not_permitted")]),
        (
            {},
            BY_LIST,
            [("zones[1].zone_type", "zone_not_permitted"), ("zones[2].access_mode", "zone_not_permitted")],
        ),
    ],
)
async def test_a_zone_that_is_not_allowed_is_not_made(
    studio: Studio,
    place: Organization,
    policy: dict[str, object],
    changes: dict[str, Any],
    faults: list[tuple[str, str]],
) -> None:
    """Its type or its access, whichever way it comes; all of them are told, and nothing is stored."""
    await save(studio.db, place, policy)
    found = await refusals(studio, place, small_layout(changes))
    assert found == [faults] * len(found)


@pytest.mark.req("POL-17")
async def test_the_types_of_zones_follow_the_policy(studio: Studio, place: Organization) -> None:
    """Seats and general admission each by leave of their own; what is allowed again is stored."""
    venue = await make_venue(studio.db, place, max_capacity=10_000)
    festival = generate(presets.preset("festival"))

    async def refused() -> set[str]:
        try:
            await versions.create_layout(studio, place.id, venue.id, festival, by=OPERATOR)
        except LayoutInvalid as invalid:
            return {festival.zones[int(fault.path[6:].partition("]")[0])].zone_type for fault in invalid.faults}
        return set()

    assert await refused() == {"vip_reserved"}
    await save(studio.db, place, {"allow_vip_zones": True})
    assert await refused() == set()
    await save(studio.db, place, {"allow_ga_seating": False})
    assert await refused() == {zone.zone_type for zone in festival.zones if not zone.rows}
    await save(studio.db, place, {"allow_ga_seating": True, "allow_reserved_seating": False})
    assert await refused() == {zone.zone_type for zone in festival.zones if zone.rows}
    await save(studio.db, place, {"allow_reserved_seating": True, "allow_hybrid_ga_reserved": False})
    assert await refused() == set(), "what is sold beside what is for an event to say"


@pytest.mark.req("POL-18")
async def test_a_seat_of_a_category_that_is_not_allowed_is_not_made(studio: Studio, place: Organization) -> None:
    """A companion seat without a wheelchair space, where it could be sold to nobody."""
    await save(studio.db, place, {"companion_requires_wheelchair": True})
    hall = small_layout({"zones.1.zone_type": "reserved_seating", **PAIRLESS})
    found = await refusals(studio, place, hall)
    assert found == [[("zones[0].rows[1].seats[4].category", "seat_not_permitted")]] * len(found)
    await save(studio.db, place, {"companion_requires_wheelchair": False})
    venue = await make_venue(studio.db, place)
    assert (await versions.create_layout(studio, place.id, venue.id, hall, by=OPERATOR)).seat_count == 13


@pytest.mark.req("POL-18")
async def test_a_sheet_of_seats_is_held_to_the_policy(studio: Studio, place: Organization) -> None:
    """As every other way; it names the seat, and its base stays as it was."""
    venue = await make_venue(studio.db, place)
    plain = small_layout({"zones.1.zone_type": "reserved_seating"})
    first = await versions.create_layout(studio, place.id, venue.id, plain, by=OPERATOR)
    await save(studio.db, place, {"companion_requires_wheelchair": True})
    sheet = write_seats(small_layout({"zones.1.zone_type": "reserved_seating", **PAIRLESS}))
    for is_dry_run in (True, False):
        with pytest.raises(LayoutInvalid) as refused:
            await usecases.import_version(
                studio,
                call_of(place),
                first.layout_id,
                sheet,
                Format.CSV,
                is_dry_run=is_dry_run,
                once=None,
            )
        (fault,) = refused.value.faults
        assert "S-B-5" in fault.message
        assert fault.hint
    async with studio.db.transaction(place.id) as conn:
        assert await versions.load(conn, (place.id, first.layout_id, 1)) == plain
        assert await conn.fetchval("select count(*) from layout_versions") == 1


async def test_a_layout_that_was_allowed_stays(studio: Studio, place: Organization) -> None:
    """The policy is asked when zones and seats are made: what is there can be read and compared afterwards."""
    await save(studio.db, place, {"allow_vip_zones": True})
    venue = await make_venue(studio.db, place)
    made = await versions.create_layout(studio, place.id, venue.id, small_layout(), by=OPERATOR)
    await save(studio.db, place, {"allow_vip_zones": False})
    call = call_of(place)
    assert await usecases.export(studio, call, made.layout_id, 1, Format.JSON) == write_layout(small_layout())
    with pytest.raises(LayoutInvalid):
        await usecases.import_version(
            studio,
            call,
            made.layout_id,
            encoded(json.loads(write_layout(small_layout()))),
            Format.JSON,
            is_dry_run=False,
            once=None,
        )
