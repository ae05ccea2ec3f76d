"""The seating policy: the seed's fields and defaults, who may change them, what holds for an event."""

from collections.abc import Mapping
from dataclasses import FrozenInstanceError, fields
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from tests.make.layouts import layouts, small_layout
from voelgoed.accounts.model import Role
from voelgoed.seating.model import RESERVED_TYPES, AccessMode, Layout, Zone, ZoneType
from voelgoed.seating.policy import (
    FIELDS,
    LOCKS,
    Field,
    FieldKind,
    Origin,
    Policy,
    changeable_fields,
    changed,
    effective,
    is_hybrid,
    refused_overrides,
    refused_seats,
    refused_zone,
    refused_zones,
    values_of,
    wrong_policy,
)

OVERRIDABLE = {name for name, field in FIELDS.items() if field.is_overridable}
JUNK = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3) | st.lists(st.text(max_size=2))
OPEN = Policy(allow_vip_zones=True, allowed_access_modes=tuple(AccessMode))


def right_values(field: Field) -> st.SearchStrategy[object]:
    """Any value that a field takes."""
    match field.kind:
        case FieldKind.FLAG:
            return st.booleans()
        case FieldKind.WHOLE:
            numbers = st.integers(field.least, field.most)
            return numbers | st.none() if field.is_nullable else numbers
        case FieldKind.WORDS:
            return st.lists(st.sampled_from(field.words), min_size=field.words_least, unique=True)


VALUES = st.fixed_dictionaries({}, optional={name: right_values(field) for name, field in FIELDS.items()})
POLICIES = VALUES.map(lambda values: changed(Policy(), values))
OVERRIDES: st.SearchStrategy[dict[str, object]] = st.fixed_dictionaries(
    {}, optional={name: right_values(field) for name, field in FIELDS.items() if field.is_overridable}
)
ANYTHING = st.dictionaries(st.sampled_from([*FIELDS, "capacity", ""]), JUNK, max_size=6)


def held_to(name: str, default: object, good: list[Any], bad: list[Any]) -> None:
    """A field has this default and takes these values, and not those."""
    assert getattr(Policy(), name) == FIELDS[name].default == default
    assert [value for value in good if wrong_policy({name: value})] == []
    assert [value for value in bad if wrong_policy({name: value}).keys() != {name}] == []


def is_flag(name: str, *, default: bool) -> None:
    """A field is true or false, and this by default."""
    held_to(name, default, [True, False], [1, 0, "true", None])


@pytest.mark.req("POL-02", "POL-03", "POL-04", "POL-05")
def test_what_may_be_offered() -> None:
    """Everything but VIP zones and whitelists, until somebody says otherwise."""
    is_flag("allow_reserved_seating", default=True)
    is_flag("allow_ga_seating", default=True)
    is_flag("allow_hybrid_ga_reserved", default=True)
    is_flag("allow_vip_zones", default=False)
    modes = (AccessMode.PUBLIC, AccessMode.MEMBERSHIP_TIER, AccessMode.ROLE_BASED)
    wrong = ["public", None, [], ["nobody"], ["public", "public"], [1], {"public": True}]
    held_to("allowed_access_modes", modes, [["public"], ["whitelist", "public"]], wrong)


@pytest.mark.req("POL-06", "POL-08")
def test_what_wheelchair_users_are_owed() -> None:
    """The rules are on; 85 per cent; one space in a booking; on the record."""
    is_flag("enforce_accessibility_rules", default=True)
    held_to("companion_release_occupancy_threshold", 85, [0, 80, 90, 100], [-1, 101, 85.0, "85", True, None])
    held_to("max_wheelchair_seats_per_booking", 1, [1, 40], [0, 41, None])
    is_flag("accessibility_audit_enabled", default=True)
    is_flag("companion_requires_wheelchair", default=False)
    held_to("max_companions_per_wheelchair", 1, [1, 3], [0, 4, None])


@pytest.mark.req("POL-10", "POL-13")
def test_what_a_booking_is() -> None:
    """Ten seats, no orphans, not necessarily side by side, ten minutes."""
    held_to("max_seats_per_booking", 10, [1, 40], [0, 41, -1, 10.5])
    is_flag("orphan_avoidance_strict", default=True)
    is_flag("group_adjacency_strict", default=False)
    held_to("default_hold_ttl_minutes", 10, [1, 5, 15, 60], [0, 61, None, "10"])
    assert FIELDS["default_hold_ttl_minutes"].is_overridable


@pytest.mark.req("POL-14", "POL-15")
def test_what_holds_and_groups_are_bounded_by() -> None:
    """No limit is null; a group is parted by two rows at most, and picks for itself."""
    held_to("max_holds_per_user", None, [None, 1, 10_000], [0, 10_001, "none", False])
    held_to("max_holds_per_ip", None, [None, 1, 10_000], [0, -1, 1.0])
    held_to("max_group_split", 2, [0, 20], [-1, 21, None])
    is_flag("prefer_clustering_over_selection", default=False)
    held_to(LOCKS, (), [[], ["allow_vip_zones", "max_seats_per_booking"]], [["capacity"], [LOCKS], None, [["x"]]])


def test_every_field_is_described_and_unknown_ones_are_refused() -> None:
    """With all that is wrong at once."""
    assert list(FIELDS) == [one.name for one in fields(Policy)]
    assert wrong_policy({}) == {}
    assert wrong_policy({"max_seats": 4, "allow_vip_zones": "yes", "max_seats_per_booking": 4}) == {
        "max_seats": "is no field of the policy",
        "allow_vip_zones": "must be true or false",
    }
    assert wrong_policy({"max_holds_per_ip": 0}) == {
        "max_holds_per_ip": "must be a whole number from 1 to 10000, or null for no limit"
    }


@settings(deadline=None)
@given(ANYTHING)
def test_no_policy_is_made_of_what_is_wrong(values: Mapping[str, object]) -> None:
    """Whatever is said of a value, a policy with it says the same."""
    wrong = wrong_policy(values)
    if wrong:
        with pytest.raises(AssertionError):
            changed(Policy(), values)
    else:
        assert wrong_policy(values_of(changed(Policy(), values))) == {}


@settings(deadline=None)
@given(POLICIES)
def test_a_policy_is_its_values(policy: Policy) -> None:
    """There and back, also from lists in another order; and it stays as it is."""
    values = values_of(policy)
    backwards = {name: list(value)[::-1] if isinstance(value, tuple) else value for name, value in values.items()}
    assert changed(policy, values) == changed(Policy(), backwards) == policy
    with pytest.raises(FrozenInstanceError):
        policy.allow_vip_zones = True  # type: ignore[misc]


@pytest.mark.req("POL-22")
@settings(deadline=None)
@given(policy=POLICIES, overrides=OVERRIDES, junk=ANYTHING)
def test_no_override_escapes_a_locked_field(
    policy: Policy, overrides: Mapping[str, object], junk: Mapping[str, object]
) -> None:
    """Whatever an event says: a locked field is the organization's, and the event is told so."""
    said = {**overrides, **junk}
    held = effective(policy, said)
    told = dict(held.refused)
    for name in policy.locked_fields:
        assert getattr(held.policy, name) == getattr(policy, name)
        assert held.origins[name] is Origin.ORGANIZATION
        assert (told.get(name) == "is locked for this organization") == (name in said)
    assert held.policy.locked_fields == policy.locked_fields


@pytest.mark.req("POL-23")
@settings(deadline=None)
@given(policy=st.none() | POLICIES, overrides=OVERRIDES, junk=ANYTHING)
def test_what_holds_is_the_policy_with_the_permitted_overrides_on_top(
    policy: Policy | None, overrides: Mapping[str, object], junk: Mapping[str, object]
) -> None:
    """Every override either holds or is told with its reason; nothing else changes."""
    said = {**overrides, **junk}
    held = effective(policy, said)
    refused = {name for name, _ in held.refused}
    assert list(held.refused) == refused_overrides(policy, said)
    assert refused <= said.keys()
    for name in FIELDS:
        is_events = name in said.keys() - refused
        assert (held.origins[name] is Origin.EVENT) == is_events
        assert getattr(held.policy, name) == (said[name] if is_events else getattr(policy or Policy(), name))


@settings(deadline=None)
@given(policy=POLICIES, overrides=OVERRIDES)
def test_what_is_overridden_is_neither_locked_nor_reserved(policy: Policy, overrides: Mapping[str, object]) -> None:
    """Right values are refused for these two reasons only."""
    refused = {name for name, _ in refused_overrides(policy, overrides)}
    assert refused == overrides.keys() & set(policy.locked_fields)


@pytest.mark.req("POL-21")
def test_the_overrides_of_the_example() -> None:
    """No accessibility rules, orphans, five minutes: an event may say so, and is told where the rest comes from."""
    said = {"enforce_accessibility_rules": False, "orphan_avoidance_strict": False, "default_hold_ttl_minutes": 5}
    held = effective(Policy(max_seats_per_booking=6), said)
    assert held.refused == ()
    assert not held.policy.enforce_accessibility_rules
    assert not held.policy.orphan_avoidance_strict
    assert held.policy.default_hold_ttl_minutes == 5
    assert held.origins["default_hold_ttl_minutes"] is Origin.EVENT
    assert (held.policy.max_seats_per_booking, held.origins["max_seats_per_booking"]) == (6, Origin.ORGANIZATION)
    assert (held.policy.max_group_split, held.origins["max_group_split"]) == (2, Origin.DEFAULT)


def test_a_lock_that_came_later_is_told() -> None:
    """The override was right when it was saved; it no longer holds, and nobody has to guess why."""
    said = {"enforce_accessibility_rules": False}
    assert effective(Policy(), said).refused == ()
    held = effective(Policy(locked_fields=("enforce_accessibility_rules",)), said)
    assert held.policy.enforce_accessibility_rules
    assert held.origins["enforce_accessibility_rules"] is Origin.ORGANIZATION
    assert held.refused == (("enforce_accessibility_rules", "is locked for this organization"),)


def test_why_overrides_are_refused() -> None:
    """The first objection to each."""
    policy = Policy(locked_fields=("max_seats_per_booking",))
    said = {
        "max_seats_per_booking": "many",
        "allow_vip_zones": True,
        "default_hold_ttl_minutes": 0,
        "hold_minutes": 5,
        "max_holds_per_user": 4,
    }
    assert refused_overrides(policy, said) == [
        ("max_seats_per_booking", "is locked for this organization"),
        ("allow_vip_zones", "holds for the whole organization: no event has its own"),
        ("default_hold_ttl_minutes", "must be a whole number from 1 to 60"),
        ("hold_minutes", "is no field of the policy"),
    ]
    reserved = {"allowed_access_modes", "accessibility_audit_enabled", "max_holds_per_ip", LOCKS}
    assert FIELDS.keys() - OVERRIDABLE == reserved | {name for name in FIELDS if name.startswith("allow_")}


def test_without_a_policy_the_defaults_hold() -> None:
    """And they are nobody's."""
    held = effective(None, {})
    assert held.policy == Policy()
    assert set(held.origins.values()) == {Origin.DEFAULT}


def test_the_platform_changes_everything_and_the_owner_what_is_not_locked() -> None:
    """Locks are the platform's alone; nobody else changes anything."""
    policy = Policy(locked_fields=("allow_vip_zones",))
    assert changeable_fields(Role.SUPER_ADMIN, policy) == FIELDS.keys()
    assert changeable_fields(Role.OWNER, policy) == FIELDS.keys() - {"allow_vip_zones", LOCKS}
    assert changeable_fields(Role.OWNER, None) == FIELDS.keys() - {LOCKS}
    others = set(Role) - {Role.SUPER_ADMIN, Role.OWNER}
    assert [role for role in others if changeable_fields(role, policy)] == []


def zone(zone_type: ZoneType, mode: AccessMode = AccessMode.PUBLIC, code: str = "Z") -> Zone:
    return Zone(code=code, name="Zone", zone_type=zone_type, capacity=1, access_mode=mode)


@pytest.mark.parametrize(
    ("policy", "refused"),
    [
        (Policy(), {"vip_reserved": ["VIP"], "vip_standing": ["VIP"]}),
        (OPEN, {}),
        (
            Policy(allow_vip_zones=True, allow_reserved_seating=False),
            {"reserved_seating": ["reserved"], "vip_reserved": ["reserved"]},
        ),
        (
            Policy(allow_vip_zones=True, allow_ga_seating=False),
            {"ga_seated": ["general"], "ga_standing": ["general"], "vip_standing": ["general"]},
        ),
        (
            Policy(allow_ga_seating=False),
            {
                "vip_reserved": ["VIP"],
                "ga_seated": ["general"],
                "ga_standing": ["general"],
                "vip_standing": ["general", "VIP"],
            },
        ),
    ],
)
def test_which_types_are_allowed(policy: Policy, refused: dict[str, list[str]]) -> None:
    """VIP zones need leave of their own beside that for seats or general admission; standing is general admission."""
    words = {one: [why.split()[0] for why in refused_zone(policy, zone(one))] for one in ZoneType}
    assert {one: found for one, found in words.items() if found} == refused


def test_which_access_is_allowed() -> None:
    """The modes that are listed; a whitelist is not, until it is."""
    by_list = zone(ZoneType.GA_SEATED, AccessMode.WHITELIST)
    assert refused_zones(Policy(), [by_list]) == [("Z", "access by whitelist is not allowed")]
    assert refused_zones(OPEN, [by_list]) == []
    members_only = Policy(allowed_access_modes=(AccessMode.MEMBERSHIP_TIER,))
    assert refused_zones(members_only, [zone(ZoneType.GA_SEATED)]) == [("Z", "access by public is not allowed")]


def test_seats_beside_general_admission() -> None:
    """Where that is not allowed, general admission has to go; told only where both would be allowed by themselves."""
    stalls, pit = zone(ZoneType.RESERVED_SEATING, code="S"), zone(ZoneType.GA_STANDING, code="P")
    policy = Policy(allow_hybrid_ga_reserved=False)
    why = "general admission beside reserved seats is not allowed"
    assert refused_zones(policy, iter([stalls, pit])) == [("P", why)]
    assert (
        refused_zones(policy, [stalls]) == refused_zones(policy, [pit]) == refused_zones(Policy(), [stalls, pit]) == []
    )
    no_ga = Policy(allow_hybrid_ga_reserved=False, allow_ga_seating=False)
    assert refused_zones(no_ga, [stalls, pit]) == [("P", "general admission is not allowed")]


@settings(deadline=None)
@given(layout=layouts(), policy=POLICIES)
def test_a_zone_that_is_refused_alone_is_refused_in_company(layout: Layout, policy: Policy) -> None:
    """Company adds one reason and takes none away; an open policy has none at all."""
    alone = [(one.code, why) for one in layout.zones for why in refused_zone(policy, one)]
    together = refused_zones(policy, layout.zones)
    assert together[: len(alone)] == alone
    assert refused_zones(OPEN, layout.zones) == []
    for code, _ in together[len(alone) :]:
        assert is_hybrid(layout.zones)
        assert {one.code for one in layout.zones if one.zone_type not in RESERVED_TYPES} >= {code}


def test_a_companion_seat_that_could_be_sold_to_nobody_is_refused() -> None:
    """Only then: wheelchair spaces and companion seats need no leave otherwise."""
    category = {"wheelchair": [1], "companion": [2, 5]}
    hall = small_layout({"zones.0.rows.1.seats.category": category})
    strict = Policy(companion_requires_wheelchair=True)
    why = "a companion seat is sold with its wheelchair space only, and this one has none"
    assert refused_seats(strict, hall.zones) == [("S-B-5", why)]
    assert refused_seats(Policy(), hall.zones) == []
    assert refused_seats(changed(strict, {"enforce_accessibility_rules": False}), hall.zones) == []
    assert refused_seats(strict, small_layout().zones) == []
