"""What an event makes of a layout: rule by rule, counted, compared, refused, written and read."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings, strategies as st

from tests.make.layouts import DROP, LAYOUT_ID, OTHER_LAYOUT_ID, layouts, small_layout
from tests.seating.test_policy import OPEN, OVERRIDES, POLICIES
from voelgoed.seating import presets, seat_ids
from voelgoed.seating.faults import Faults
from voelgoed.seating.generate import generate
from voelgoed.seating.model import RESERVED_TYPES, AccessMode, Category, Layout, Zone, ZoneType
from voelgoed.seating.ordinals import ordinals
from voelgoed.seating.overlay import (
    BlockedBy,
    Overlay,
    PlaceKind,
    Totals,
    View,
    ZoneOverride,
    ZoneTouch,
    effective_view,
    implicit_zone,
    touched,
    wrong_overlay,
)
from voelgoed.seating.overlay_document import read_overlay, write_overlay
from voelgoed.seating.policy import Policy, effective
from voelgoed.seating.spec import AreaSpec, RowsSpec, Spec

PLENTY = 10_000_000
RULE_ID = UUID("01933b5c-7c1e-7d3a-9f00-00000000aaaa")
CAPACITY_TYPES = [ZoneType.GA_SEATED, ZoneType.GA_STANDING, ZoneType.VIP_STANDING]


@st.composite
def zone_overrides(draw: st.DrawFn, zone: Zone) -> ZoneOverride:
    """Anything that may be said of a zone."""
    zone_type = draw(st.none() | st.sampled_from(list(ZoneType) if zone.is_reserved else CAPACITY_TYPES))
    becomes = zone_type or zone.zone_type
    says_mode = draw(st.booleans()) or (becomes.startswith("vip") and zone.access_mode is AccessMode.PUBLIC)
    mode = draw(st.sampled_from(AccessMode)) if says_mode else None
    held = mode or zone.access_mode
    tier, roles = st.sampled_from(["silver", "Ê"]), st.sampled_from([("staff",), ("owner", "admin")])
    says_tier = held is AccessMode.MEMBERSHIP_TIER and (zone.membership_tier is None or draw(st.booleans()))
    says_roles = held is AccessMode.ROLE_BASED and (not zone.allowed_roles or draw(st.booleans()))
    most = 1_000 if zone.is_reserved else zone.capacity
    says_capacity = becomes not in RESERVED_TYPES and draw(st.booleans())
    return ZoneOverride(
        zone_type=zone_type,
        access_mode=mode,
        membership_tier=draw(tier) if says_tier else None,
        allowed_roles=draw(roles) if says_roles else None,
        capacity=draw(st.integers(1, most)) if says_capacity else None,
    )


@st.composite
def overlays(draw: st.DrawFn, layout: Layout) -> Overlay:
    """Anything that may be said of a layout."""
    seats = [seat.code for _, _, seat in layout.seats()]
    zones = [zone.code for zone in layout.zones]
    some_zones = st.lists(st.sampled_from(zones), unique=True)
    overridden = draw(some_zones)
    return Overlay(
        blocked_seats=tuple(draw(st.lists(st.sampled_from(seats), unique=True))) if seats else (),
        disabled_zones=tuple(draw(some_zones)),
        zone_overrides={zone.code: draw(zone_overrides(zone)) for zone in layout.zones if zone.code in overridden},
        pricing_zones=dict.fromkeys(draw(some_zones), draw(st.uuids())),
        seating_overrides=draw(OVERRIDES),
    )


LAID_OVER = layouts().flatmap(lambda layout: st.tuples(st.just(layout), overlays(layout)))
TWICE = layouts().flatmap(lambda layout: st.tuples(st.just(layout), overlays(layout), overlays(layout)))


def serials(layout: Layout) -> dict[str, dict[str, int]]:
    return {
        "seat_serials": seat_ids.assign_serials([seat.code for _, _, seat in layout.seats()], {}),
        "zone_serials": seat_ids.assign_serials([zone.code for zone in layout.zones], {}),
    }


@dataclass
class Hall:
    """A hall one walks through with the overlay in hand, doing one thing after another. Slow, and hard to get wrong."""

    zones: dict[str, dict[str, Any]]
    off: set[str] = field(default_factory=set)
    out: set[str] = field(default_factory=set)
    prices: dict[str, UUID] = field(default_factory=dict)
    policy: Policy | None = None

    @classmethod
    def of(cls, layout: Layout, policy: Policy | None) -> "Hall":
        return cls({zone.code: asdict(replace(zone, rows=())) for zone in layout.zones}, policy=policy)

    def do(self, step: tuple[Any, ...]) -> None:
        match step:
            case ("block", seat):
                self.out.add(seat)
            case ("disable", zone):
                self.off.add(zone)
            case ("price", zone, rule):
                self.prices[zone] = rule
            case ("policy", name, value):
                self.policy = effective(self.policy, {name: value}).policy
            case (zone, "capacity", number):
                self.zones[zone]["said"] = number
            case (zone, key, value):
                self.zones[zone][key] = value

    def seats_for_sale(self, layout: Layout) -> list[tuple[str, Category]]:
        return [
            (zone.code, seat.category)
            for zone, _, seat in layout.seats()
            if zone.code not in self.off
            and seat.code not in self.out
            and self.zones[zone.code]["zone_type"] in ("reserved_seating", "vip_reserved")
        ]

    def places(self, zone: Zone, layout: Layout) -> int:
        now = self.zones[zone.code]
        if zone.code in self.off:
            return 0
        if now["zone_type"] in ("reserved_seating", "vip_reserved"):
            return sum(code == zone.code for code, _ in self.seats_for_sale(layout))
        taken = sum(seat.code in self.out for row in zone.rows for seat in row.seats)
        return int(now.get("said") or now["capacity"] - taken)


def steps(overlay: Overlay) -> Iterator[tuple[Any, ...]]:
    """The overlay as single rules."""
    yield from (("block", code) for code in overlay.blocked_seats)
    yield from (("disable", code) for code in overlay.disabled_zones)
    yield from (("price", *price) for price in overlay.pricing_zones.items())
    yield from (("policy", *said) for said in overlay.seating_overrides.items())
    for code, said in overlay.zone_overrides.items():
        yield from ((code, key, value) for key, value in asdict(said).items() if value is not None)


@pytest.mark.req("LAY-19", "LAY-20", "LAY-21", "LAY-22")
@settings(deadline=None)
@given(laid=LAID_OVER, policy=st.none() | POLICIES, data=st.data())
def test_the_view_is_the_rules_done_one_by_one_in_any_order(
    laid: tuple[Layout, Overlay], policy: Policy | None, data: st.DataObject
) -> None:
    """Whoever walks through the hall doing one thing after another ends with the same seats, places, access, policy."""
    layout, overlay = laid
    hall = Hall.of(layout, policy)
    for step in data.draw(st.permutations(list(steps(overlay)))):
        hall.do(step)
    view = effective_view(layout, overlay, policy)
    for zone, found in zip(layout.zones, view.zones, strict=True):
        now = hall.zones[zone.code]
        assert (found.code, found.name, found.zone_type) == (zone.code, zone.name, now["zone_type"])
        assert found.access_mode == now["access_mode"]
        assert found.membership_tier == (now["membership_tier"] if found.access_mode == "membership_tier" else None)
        assert found.allowed_roles == (now["allowed_roles"] if found.access_mode == "role_based" else ())
        assert found.is_enabled == (zone.code not in hall.off)
        assert found.pricing_rule_id == hall.prices.get(zone.code)
        assert found.place_count == hall.places(zone, layout)
        if found.place is PlaceKind.RESERVED:
            open_seats = [category for code, category in hall.seats_for_sale(layout) if code == zone.code]
            assert found.categories == {
                seat.category: open_seats.count(seat.category) for row in zone.rows for seat in row.seats
            }
    assert layout.seat_count - len(view.blocked) == len(hall.seats_for_sale(layout))
    numbered = ordinals(layout)
    own = {numbered[code] for code in overlay.blocked_seats}
    assert {at for at, why in view.blocked.items() if why is BlockedBy.LAYOUT} == own
    assert set(view.blocked.values()) <= {BlockedBy.LAYOUT, BlockedBy.ZONE}
    assert view.policy.policy == (hall.policy or Policy())


@pytest.mark.req("HYB-02", "HYB-03", "HYB-05")
@settings(deadline=None)
@given(LAID_OVER)
def test_totals_add_up(laid: tuple[Layout, Overlay]) -> None:
    """Every place of every zone is offered or blocked, and counted once, in its own zone."""
    layout, overlay = laid
    view = effective_view(layout, overlay, OPEN)
    totals = view.totals
    assert totals.total == sum(zone.place_count for zone in view.zones)
    assert totals.total + totals.blocked == sum(zone.capacity for zone in view.zones)
    assert totals.reserved == layout.seat_count - len(view.blocked)
    assert totals.ga_seated + totals.standing == sum(zone.pool_count for zone in view.zones)
    for zone, found in zip(layout.zones, view.zones, strict=True):
        said = overlay.zone_overrides.get(zone.code, ZoneOverride()).capacity
        assert found.capacity == (zone.seat_count if found.place is PlaceKind.RESERVED else said or zone.capacity)
        assert found.is_enabled or found.place_count == 0
        alone = Overlay(
            blocked_seats=overlay.blocked_seats,
            disabled_zones=tuple(code for code in overlay.disabled_zones if code == zone.code),
            zone_overrides={code: said for code, said in overlay.zone_overrides.items() if code == zone.code},
            pricing_zones=overlay.pricing_zones,
        )
        assert found in effective_view(layout, alone, OPEN).zones


@settings(deadline=None)
@given(layouts())
def test_an_overlay_that_says_nothing_is_the_layout(layout: Layout) -> None:
    """Seat by seat and zone by zone."""
    view = effective_view(layout, Overlay(), None)
    assert view.blocked == {}
    assert view.totals.total == layout.total_capacity
    for zone, found in zip(layout.zones, view.zones, strict=True):
        assert (found.zone_type, found.capacity) == (zone.zone_type, zone.capacity)
        assert (found.access_mode, found.membership_tier) == (zone.access_mode, zone.membership_tier)
        assert (found.allowed_roles, found.is_enabled) == (zone.allowed_roles, True)
    assert wrong_overlay(layout, Overlay(), OPEN, venue_capacity=PLENTY, event_capacity=None) == []


def festival_a() -> Layout:
    section = RowsSpec(code="A", name="Section A", rows=10, seats=20)
    lounge = RowsSpec(
        code="VIP",
        name="VIP Lounge",
        zone_type=ZoneType.VIP_RESERVED,
        access_mode=AccessMode.MEMBERSHIP_TIER,
        membership_tier="voelgoed_vriendinne",
        rows=5,
        seats=10,
        distance=5_000,
    )
    floor = AreaSpec(code="B", name="Section B", zone_type=ZoneType.GA_SEATED, capacity=300)
    pit = AreaSpec(code="PIT", name="Pit", capacity=400)
    return generate(Spec(name="Festival", blocks=(section, floor, pit, lounge)))


@pytest.mark.req("HYB-01", "HYB-08")
def test_the_first_festival_has_950_places() -> None:
    """200 reserved and 50 for members, 300 seated: 550 who sit, and 400 who stand."""
    view = effective_view(festival_a(), Overlay(), Policy(allow_vip_zones=True))
    assert view.is_hybrid
    assert view.totals == Totals(reserved=250, ga_seated=300, standing=400, blocked=0)
    assert view.totals.reserved + view.totals.ga_seated == 550
    assert view.totals.total == 950


@pytest.mark.req("HYB-01", "HYB-09")
def test_the_second_festival_has_1_050_places() -> None:
    """300 reserved, 400 seated, 300 standing, 50 for members; without the lounge the 1,000 of its first line."""
    layout = generate(presets.preset("festival"))
    view = effective_view(layout, Overlay(), Policy(allow_vip_zones=True))
    assert view.totals == Totals(reserved=350, ga_seated=400, standing=300, blocked=0)
    assert view.totals.total == 1_050
    lounge = view.zones[3]
    assert (lounge.place_count, lounge.access_mode, lounge.membership_tier) == (
        50,
        AccessMode.MEMBERSHIP_TIER,
        "voelgoed_vriendinne",
    )
    budget = effective_view(layout, Overlay(disabled_zones=("VIP",)), Policy())
    assert (budget.totals.total, budget.totals.blocked) == (1_000, 50)


def test_seats_of_their_own_and_seats_with_their_zone() -> None:
    """A seat's own reason is told first: it outlasts that of the zone."""
    overlay = Overlay(blocked_seats=("V-A-2", "S-A-1"), disabled_zones=("V",))
    view = effective_view(small_layout(), overlay, None)
    assert view.blocked == {0: BlockedBy.LAYOUT, 10: BlockedBy.ZONE, 11: BlockedBy.LAYOUT, 12: BlockedBy.ZONE}
    assert view.totals == Totals(reserved=9, ga_seated=0, standing=300, blocked=4)
    assert view.zones[0].categories == {Category.STANDARD: 7, Category.WHEELCHAIR: 1, Category.COMPANION: 1}
    assert view.zones[1].categories == {Category.STANDARD: 0}


def test_seats_that_are_sold_as_room_to_stand() -> None:
    """As many as may sit there, or as many as the event says; nobody picks a seat."""
    standing = ZoneOverride(zone_type=ZoneType.GA_STANDING)
    overlay = Overlay(blocked_seats=("S-A-1",), zone_overrides={"S": standing})
    view = effective_view(small_layout(), overlay, OPEN)
    assert view.zones[0].place is PlaceKind.STANDING
    assert (view.zones[0].capacity, view.zones[0].place_count) == (10, 9)
    assert view.zones[0].categories == {Category.STANDARD: 9}
    assert view.blocked == {0: BlockedBy.LAYOUT} | dict.fromkeys(range(1, 10), BlockedBy.ZONE)
    denser = Overlay(blocked_seats=("S-A-1",), zone_overrides={"S": replace(standing, capacity=25)})
    view = effective_view(small_layout(), denser, OPEN)
    assert view.totals == Totals(reserved=3, ga_seated=0, standing=325, blocked=0)
    assert wrong_overlay(small_layout(), denser, OPEN, venue_capacity=328, event_capacity=328) == []


def test_what_the_access_does_not_look_at_is_gone() -> None:
    """The layout's tier and roles stand while its mode does; what is not said again stays."""
    roles = {"access_mode": "role_based", "allowed_roles": ["staff"]}
    hall = small_layout({"zones.2": {"code": "P", "name": "Pit", "zone_type": "ga_seated", "capacity": 9, **roles}})
    public = ZoneOverride(access_mode=AccessMode.PUBLIC)
    view = effective_view(hall, Overlay(zone_overrides={"V": public, "P": public}), OPEN)
    assert [(zone.membership_tier, zone.allowed_roles) for zone in view.zones] == [(None, ())] * 3
    standing = ZoneOverride(zone_type=ZoneType.GA_STANDING)
    view = effective_view(hall, Overlay(zone_overrides={"V": standing, "P": standing}), OPEN)
    assert [(zone.membership_tier, zone.allowed_roles) for zone in view.zones[1:]] == [("gold", ()), (None, ("staff",))]


def test_a_hall_is_hybrid_by_what_is_on() -> None:
    """The pit off, or the seats."""
    hall = small_layout()
    assert effective_view(hall, Overlay(), None).is_hybrid
    assert not effective_view(hall, Overlay(disabled_zones=("P",)), None).is_hybrid
    assert not effective_view(hall, Overlay(disabled_zones=("S", "V")), None).is_hybrid


def test_an_event_without_a_layout_has_one_zone() -> None:
    """The same engine for both: it is counted, overridden and priced like any other."""
    layout = Layout(name="", description=None, zones=(implicit_zone(80),))
    view = effective_view(layout, Overlay(pricing_zones={"GA": RULE_ID}), None)
    assert view.totals == Totals(reserved=0, ga_seated=0, standing=80, blocked=0)
    assert (view.zones[0].access_mode, view.zones[0].pricing_rule_id) == (AccessMode.PUBLIC, RULE_ID)
    assert wrong_overlay(layout, Overlay(), None, venue_capacity=80, event_capacity=80) == []
    chairs = Overlay(zone_overrides={"GA": ZoneOverride(zone_type=ZoneType.GA_SEATED)})
    assert effective_view(layout, chairs, None).totals.ga_seated == 80
    for capacity in (0, 1_000_001):
        with pytest.raises(AssertionError):
            implicit_zone(capacity)


def sold(view: View, layout: Layout) -> set[int]:
    """The ordinals of seats that are sold one by one."""
    return set(range(layout.seat_count)) - view.blocked.keys()


@settings(deadline=None)
@given(TWICE)
def test_what_a_change_touches(laid: tuple[Layout, Overlay, Overlay]) -> None:
    """Exactly the seats that are sold in one view only, and the zones whose places by number are others."""
    layout, one, other = laid
    before, after = (effective_view(layout, overlay, OPEN) for overlay in (one, other))
    there, back = touched(before, after), touched(after, before)
    assert set(there.closed) == sold(before, layout) - sold(after, layout)
    assert (there.closed, there.opened) == (back.opened, back.closed)
    assert list(there.closed) == sorted(there.closed)
    assert [(zone.zone_code, zone.pool_after) for zone in there.zones] == [
        (zone.zone_code, zone.pool_before) for zone in back.zones
    ]
    named = {zone.zone_code: zone for zone in there.zones}
    for old, new in zip(before.zones, after.zones, strict=True):
        if old.code not in named:
            assert (old.place, old.pool_count) == (new.place, new.pool_count)
        elif old.place is not new.place or not new.is_enabled:
            assert named[old.code].pool_kept == 0
        else:
            assert named[old.code].pool_kept == new.place_count
    assert touched(before, before).is_empty
    assert there.is_empty == (there == replace(there, closed=(), opened=(), zones=()))


def test_what_changes_nothing_for_those_who_have_a_place() -> None:
    """Prices, access and policy count for new holds only."""
    hall = small_layout()
    members = ZoneOverride(access_mode=AccessMode.MEMBERSHIP_TIER, membership_tier="gold")
    overlay = Overlay(
        zone_overrides={"P": members, "S": replace(members, zone_type=ZoneType.VIP_RESERVED)},
        pricing_zones={"S": RULE_ID},
        seating_overrides={"max_seats_per_booking": 2},
    )
    assert touched(effective_view(hall, Overlay(), OPEN), effective_view(hall, overlay, OPEN)).is_empty


def test_what_changes_something_for_them() -> None:
    """A smaller pit keeps as many as it holds; chairs in the pit keep none of those who stood there."""
    hall = small_layout()
    before = effective_view(hall, Overlay(), OPEN)

    def touches(said: ZoneOverride) -> tuple[ZoneTouch, ...]:
        return touched(before, effective_view(hall, Overlay(zone_overrides={"P": said}), OPEN)).zones

    (smaller,) = touches(ZoneOverride(capacity=200))
    assert (smaller.pool_before, smaller.pool_after, smaller.is_retyped, smaller.pool_kept) == (300, 200, False, 200)
    (chairs,) = touches(ZoneOverride(zone_type=ZoneType.GA_SEATED))
    assert (chairs.pool_before, chairs.pool_after, chairs.is_retyped, chairs.pool_kept) == (300, 300, True, 0)
    closed = touched(before, effective_view(hall, Overlay(blocked_seats=("S-B-1",)), OPEN))
    assert (closed.closed, closed.opened, closed.zones) == ((4,), (), ())


@settings(deadline=None)
@given(LAID_OVER)
def test_what_may_be_said_has_no_faults(laid: tuple[Layout, Overlay]) -> None:
    """Whatever the hall, as long as the policy and the venue have room for it."""
    layout, overlay = laid
    assert wrong_overlay(layout, overlay, OPEN, venue_capacity=PLENTY, event_capacity=None) == []


def faults(
    overlay: Overlay, policy: Policy | None = OPEN, layout: Layout | None = None, **over: Any
) -> list[tuple[str, str]]:
    """Where and what, for the small hall."""
    asked = {"venue_capacity": 1_000, "event_capacity": None} | over
    found = wrong_overlay(layout or small_layout(), overlay, policy, **asked)
    assert all(fault.message.endswith(".") and fault.hint for fault in found)
    return [(fault.path, fault.code) for fault in found]


def said_of(code: str, **said: Any) -> list[tuple[str, str]]:
    """The faults of what is said of a zone, without the path to it."""
    found = faults(Overlay(zone_overrides={code: ZoneOverride(**said)}))
    return [(path.removeprefix(f"zone_overrides.{code}."), fault) for path, fault in found]


def test_seats_and_zones_are_there_and_named_once() -> None:
    """All of it told at once, by place; what would follow is not."""
    overlay = Overlay(
        blocked_seats=("S-A-1", "S-A-9", "S-A-1"),
        disabled_zones=("Q", "V", "V"),
        zone_overrides={"Q": ZoneOverride()},
        pricing_zones={"R": RULE_ID, "P": RULE_ID},
        seating_overrides={"max_holds_per_ip": 1},
    )
    assert faults(overlay, None, venue_capacity=1) == [
        ("blocked_seat_ids[1]", "seat_unknown"),
        ("blocked_seat_ids[2]", "named_twice"),
        ("disabled_zones[0]", "zone_unknown"),
        ("disabled_zones[2]", "named_twice"),
        ("zone_overrides.Q", "zone_unknown"),
        ("pricing_zones.R", "zone_unknown"),
        ("seating_overrides.max_holds_per_ip", "override_refused"),
    ]


def test_which_types_a_zone_can_become() -> None:
    """Seats can be stood upon, but do not appear where there are none; their number is counted."""
    reserved = {"zone_type": ZoneType.RESERVED_SEATING}
    assert said_of("P", **reserved) == [("zone_type", "seats_missing")]
    assert said_of("P", **reserved, capacity=5) == [("zone_type", "seats_missing")]
    assert said_of("V", **reserved) == said_of("P", zone_type=ZoneType.GA_SEATED) == []
    assert said_of("S", capacity=10) == [("capacity", "capacity_mismatch")]
    assert said_of("P", capacity=300) == []
    assert said_of("P", capacity=301) == said_of("P", capacity=0) == [("capacity", "out_of_range")]
    assert said_of("S", zone_type=ZoneType.GA_STANDING, capacity=500) == []
    assert said_of("S", zone_type=ZoneType.GA_STANDING, capacity=1_000_001) == [("capacity", "out_of_range")]


@pytest.mark.req("ZON-06", "ZON-07")
def test_access_has_what_it_needs() -> None:
    """A tier, roles that there are, and nothing that only looks like a restriction."""
    tier, role = AccessMode.MEMBERSHIP_TIER, AccessMode.ROLE_BASED
    assert said_of("P", access_mode=tier) == [("membership_tier", "tier_missing")]
    assert said_of("P", access_mode=tier, membership_tier="gold") == []
    assert said_of("V", membership_tier="silver") == []
    assert said_of("P", membership_tier="gold") == [("membership_tier", "tier_unused")]
    assert said_of("P", access_mode=role) == [("allowed_roles", "roles_missing")]
    assert said_of("P", access_mode=role, allowed_roles=()) == [("allowed_roles", "roles_missing")]
    assert said_of("P", access_mode=role, allowed_roles=("staff", "king")) == [("allowed_roles[1]", "unknown_value")]
    assert said_of("P", allowed_roles=("staff",)) == [("allowed_roles", "roles_unused")]


def test_a_vip_zone_is_opened_to_everybody_on_purpose_only() -> None:
    """Saying so is a purpose; forgetting it is not. And the policy has to allow the public."""
    assert said_of("V", access_mode=AccessMode.PUBLIC) == []
    assert said_of("S", zone_type=ZoneType.VIP_RESERVED) == [("access_mode", "vip_public")]
    assert said_of("S", zone_type=ZoneType.VIP_RESERVED, access_mode=AccessMode.PUBLIC) == []
    public = Overlay(disabled_zones=("S", "P"), zone_overrides={"V": ZoneOverride(access_mode=AccessMode.PUBLIC)})
    closed = replace(OPEN, allowed_access_modes=(AccessMode.MEMBERSHIP_TIER,))
    assert faults(public, closed) == [("zone_overrides.V", "zone_not_permitted")]
    assert faults(Overlay(disabled_zones=("S", "P")), closed) == []


def test_the_policy_permits_what_is_on() -> None:
    """A zone that is off needs no leave; a zone that is remapped needs it for what it becomes."""
    assert faults(Overlay(), None) == [("zone_overrides.V", "zone_not_permitted")]
    assert faults(Overlay(disabled_zones=("V",)), None) == []
    plain = ZoneOverride(zone_type=ZoneType.RESERVED_SEATING, access_mode=AccessMode.PUBLIC)
    assert faults(Overlay(zone_overrides={"V": plain}), None) == []
    no_hybrid = replace(OPEN, allow_hybrid_ga_reserved=False)
    assert faults(Overlay(), no_hybrid) == [("zone_overrides.P", "zone_not_permitted")]
    standing = ZoneOverride(zone_type=ZoneType.GA_STANDING)
    assert faults(Overlay(zone_overrides={"S": standing, "V": standing}), no_hybrid) == []
    escape = Overlay(seating_overrides={"allow_vip_zones": True})
    assert faults(escape, None) == [
        ("seating_overrides.allow_vip_zones", "override_refused"),
        ("zone_overrides.V", "zone_not_permitted"),
    ]


@pytest.mark.parametrize(
    ("blocked", "event", "venue", "fits"),
    [
        ((), None, 313, True),
        ((), None, 312, False),
        ((), 313, 313, True),
        ((), 312, 1_000, False),
        (("S-A-1",), 312, 312, True),
        ((), 400, 399, False),
        ((), 0, 0, False),
    ],
)
def test_what_is_offered_fits_the_event_and_the_venue(
    blocked: tuple[str, ...], event: int | None, venue: int, *, fits: bool
) -> None:
    """Zones that are on, less what is blocked; then the event; then the venue."""
    found = faults(Overlay(blocked_seats=blocked), venue_capacity=venue, event_capacity=event)
    assert found == ([] if fits else [("$", "capacity_exceeded")])


def test_zones_that_are_off_need_no_room() -> None:
    """An event for nobody is one with everything off."""
    assert faults(Overlay(disabled_zones=("S", "V", "P")), venue_capacity=0, event_capacity=0) == []


def test_paths_name_zones_as_they_were_written() -> None:
    """By id, where ids are known."""
    zone_ids = {"P": seat_ids.zone_id(LAYOUT_ID, 3)}
    overlay = Overlay(zone_overrides={"P": ZoneOverride(membership_tier="gold")})
    assert faults(overlay, zone_ids=zone_ids) == [(f"zone_overrides.{zone_ids['P']}.membership_tier", "tier_unused")]


def test_as_many_faults_are_told_as_anybody_reads() -> None:
    """Five hundred."""
    assert len(faults(Overlay(blocked_seats=tuple(f"no {number}" for number in range(600))))) == 500


@pytest.mark.req("LAY-17", "LAY-23", "LAY-24")
@settings(deadline=None)
@given(LAID_OVER)
def test_what_is_written_reads_the_same(laid: tuple[Layout, Overlay]) -> None:
    """Seats and zones by their ids, rules and overrides as they are; another layout does not know them."""
    layout, overlay = laid
    written = write_overlay(overlay, LAYOUT_ID, **serials(layout))
    assert read_overlay(written, LAYOUT_ID, **serials(layout)) == overlay
    assert isinstance(read_overlay(written, OTHER_LAYOUT_ID, **serials(layout)), Faults) == any(
        (overlay.blocked_seats, overlay.disabled_zones, overlay.zone_overrides, overlay.pricing_zones)
    )


SMALL_SERIALS = serials(small_layout())
SEAT, ZONE, PIT = (
    str(seat_ids.seat_id(LAYOUT_ID, 2)),
    str(seat_ids.zone_id(LAYOUT_ID, 2)),
    str(seat_ids.zone_id(LAYOUT_ID, 3)),
)


def read(document: object) -> Overlay | list[tuple[str, str]]:
    """What is read for the small hall, or where and what is wrong with it."""
    found = read_overlay(document, LAYOUT_ID, **SMALL_SERIALS)
    if isinstance(found, Overlay):
        return found
    assert found.count == len(found.kept)
    return [(fault.path, fault.code) for fault in found.kept]


def read_well(document: object) -> Overlay:
    found = read(document)
    assert isinstance(found, Overlay)
    return found


def test_the_example_is_read_and_written() -> None:
    """The seed's keys, and the policy's overrides beside them; not a word of what was not said."""
    document = {
        "blocked_seat_ids": [SEAT],
        "disabled_zones": [PIT],
        "zone_overrides": {ZONE: {"access_mode": "membership_tier", "membership_tier": "special"}},
        "pricing_zones": {ZONE: {"pricing_rule_id": str(RULE_ID)}},
        "seating_overrides": {"default_hold_ttl_minutes": 5},
    }
    assert read(document) == Overlay(
        blocked_seats=("S-A-2",),
        disabled_zones=("P",),
        zone_overrides={"V": ZoneOverride(access_mode=AccessMode.MEMBERSHIP_TIER, membership_tier="special")},
        pricing_zones={"V": RULE_ID},
        seating_overrides={"default_hold_ttl_minutes": 5},
    )
    assert write_overlay(read_well(document), LAYOUT_ID, **SMALL_SERIALS) == document
    assert read({}) == read(dict.fromkeys(document)) == Overlay()


def test_every_fault_is_told_at_once() -> None:
    """With its place: first keys nobody knows, then seats, zones, prices and policy."""
    document = {
        "blocked_seat_ids": [SEAT, SEAT.upper(), 7, ZONE, str(RULE_ID), "S-A-1"],
        "disabled_zones": [SEAT],
        "zone_overrides": {
            "V": {"zone_type": "vip"},
            ZONE: {
                "zone_type": "vip",
                "colour": "red",
                "allowed_roles": ["", 3],
                "capacity": 0,
                "membership_tier": " ",
            },
            PIT: [],
        },
        "pricing_zones": {ZONE: {}, PIT: {"pricing_rule_id": "gold"}},
        "seating_overrides": [],
        "seats": [],
    }
    zone = f"zone_overrides.{ZONE}"
    assert read(document) == [
        ("seats", "unknown_key"),
        ("blocked_seat_ids[1]", "unknown_value"),
        ("blocked_seat_ids[2]", "wrong_type"),
        ("blocked_seat_ids[3]", "unknown_value"),
        ("blocked_seat_ids[4]", "unknown_value"),
        ("blocked_seat_ids[5]", "unknown_value"),
        ("disabled_zones[0]", "unknown_value"),
        ("zone_overrides.V", "unknown_value"),
        (f"{zone}.colour", "unknown_key"),
        (f"{zone}.allowed_roles[0]", "blank"),
        (f"{zone}.allowed_roles[1]", "wrong_type"),
        (f"{zone}.zone_type", "unknown_value"),
        (f"{zone}.membership_tier", "blank"),
        (f"{zone}.capacity", "out_of_range"),
        (f"zone_overrides.{PIT}", "wrong_type"),
        (f"pricing_zones.{ZONE}.pricing_rule_id", "missing"),
        (f"pricing_zones.{PIT}.pricing_rule_id", "unknown_value"),
        ("seating_overrides", "wrong_type"),
    ]
    assert read([]) == [("$", "wrong_type")]


def test_lists_have_an_end() -> None:
    """No more than there can be."""
    many = dict.fromkeys(map(str, range(501)))
    assert read({"disabled_zones": list(many), "zone_overrides": many, "seating_overrides": many}) == [
        ("disabled_zones", "too_many"),
        ("zone_overrides", "too_many"),
        ("seating_overrides", "too_many"),
    ]


LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4) | st.sampled_from([SEAT, ZONE])
JSONS = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from([ZONE, PIT, "zone_type", "allowed_roles", "pricing_rule_id", ""]), inner)
    ),
    max_leaves=8,
)
DOCUMENTS: st.SearchStrategy[Mapping[str, object]] = st.fixed_dictionaries(
    {},
    optional=dict.fromkeys(
        ["blocked_seat_ids", "disabled_zones", "zone_overrides", "pricing_zones", "seating_overrides"], JSONS
    ),
)


@settings(deadline=None)
@given(DOCUMENTS | JSONS)
def test_whatever_comes_is_read_or_refused(document: object) -> None:
    """And what is read can be looked at, whatever nonsense it says."""
    found = read_overlay(document, LAYOUT_ID, **SMALL_SERIALS)
    if isinstance(found, Overlay):
        wrong_overlay(small_layout(), found, OPEN, venue_capacity=1_000, event_capacity=None)
        effective_view(small_layout(), found, OPEN)
        again = write_overlay(found, LAYOUT_ID, **SMALL_SERIALS)
        assert repr(read_overlay(again, LAYOUT_ID, **SMALL_SERIALS)) == repr(found)
    else:
        assert found.count


def test_seats_of_an_earlier_version_are_told() -> None:
    """They have an id, so they can be read; this version does not have them."""
    gone = small_layout({"zones.1": DROP})
    found = read_well({"disabled_zones": [ZONE], "blocked_seat_ids": [str(seat_ids.seat_id(LAYOUT_ID, 12))]})
    assert faults(found, layout=gone) == [
        ("blocked_seat_ids[0]", "seat_unknown"),
        ("disabled_zones[0]", "zone_unknown"),
    ]
