"""Planted bugs: a limit on holds is off by one, counts the wrong things or breaks a group, and its tests notice."""

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from tests.holds.boundaries import (
    test_counted_until_the_end as counted,
    test_group_edges as groups,
    test_limit_edges as limits,
    test_override_edges as overrides,
    test_rate_edges as rates,
)
from tests.holds.planted.bugs import Bug, Nursery, Workload
from tests.holds.planted.planting import edit, wrap
from tests.make.boxoffice import TICK, BoxOffice, Plant

TOO_MANY = "one more than .* was granted"
TOO_FEW = "of .* were refused"
RATE_TOO_HIGH = "a request above the rate limit was granted"
RATE_TOO_LOW = "a request within the rate limit was refused"
IN_WINDOW = "h.created_at > moment - interval '5 minutes'"
IN_WINDOW_OF_PLACES = "h.created_at > p_now - interval '5 minutes'"
IN_GRACE = "h.ended_at <= h.created_at + interval '30 seconds'"


def rules(change: str) -> Plant:
    """Change what holds for bookings, for seats and places alike."""
    return wrap("hold_rules", f"select * into {{outputs}} from {{call}}; {change}")


def places(change: str) -> Plant:
    """Change what the part of a batch is told that grants places."""
    return wrap("reserve_zones", f"{change} return query select * from {{call}};")


def limit(name: str, way: str) -> Workload:
    return partial(limits.test_limit_is_exact, name=name, way=way)


def rated(test: Callable[..., Any], **values: object) -> Workload:
    """A test of the rate, with bookings of any size."""

    async def workload(office: BoxOffice) -> None:
        await office.allow(max_seats_per_booking=40)
        await test(office, **values)

    return workload


def until_its_end(name: str, held: str, asked: str, *, is_longest: bool = False) -> Workload:
    return partial(counted.test_hold_counts_until_its_end, name=name, held=held, asked=asked, is_longest=is_longest)


UNDO = """
  begin
    select jsonb_agg(to_jsonb(r)) into said from {call} as r;
    raise exception 'only to see' using errcode = 'VG001';
  exception when sqlstate 'VG001' then null;
  end;
  is_limited := said @> '[{{"verdict": "max_wheelchair_seats_exceeded"}}]';
"""
APART = "p_asks := array(select generate_series(1, cardinality(p_asks)));"
SAID = "said jsonb; is_limited boolean;"

GROUPS = (
    Bug(
        name="a group over a limit is granted in part",
        plants=(
            wrap(
                "reserve_items",
                f"{UNDO} if is_limited then {APART} end if; return query select * from {{call}};",
                declare=SAID,
            ),
        ),
        workload=partial(groups.test_refused_group_leaves_nothing, spoil=groups.over_wheelchair_limit, size=2),
        says="part of a refused group was granted",
    ),
    Bug(
        name="a refused group leaves a hold behind",
        plants=(
            wrap(
                "reserve_items",
                f"{UNDO} if is_limited then {APART} perform from {{call}};"
                " return query select * from jsonb_to_recordset(said) as r ({columns});"
                " else return query select * from {call}; end if;",
                declare=SAID,
            ),
        ),
        workload=partial(groups.test_refused_group_leaves_nothing, spoil=groups.over_wheelchair_limit, size=2),
        says="a refused group left something behind",
    ),
)
OFF_BY_ONE = (
    Bug(
        name="places: one more per address",
        plants=(places("p_holds_per_ip_max := p_holds_per_ip_max + 1;"),),
        workload=limit("holds per address", "places one by one"),
        says=TOO_MANY,
    ),
    Bug(
        name="places: one more per user",
        plants=(places("p_holds_max := p_holds_max + 1;"),),
        workload=limit("holds per user", "places one by one"),
        says=TOO_MANY,
    ),
    Bug(
        name="places: one fewer per booking",
        plants=(places("p_seats_max := p_seats_max - 1;"),),
        workload=limit("seats per booking", "places one by one"),
        says=TOO_FEW,
    ),
    Bug(
        name="seats: one more per booking",
        plants=(rules("seats_max := seats_max + 1;"),),
        workload=limit("seats per booking", "seats one by one"),
        says=TOO_MANY,
    ),
    Bug(
        name="seats: one more wheelchair seat",
        plants=(rules("wheelchairs_max := wheelchairs_max + 1;"),),
        workload=limit("wheelchair seats per booking", "seats in one request"),
        says=TOO_MANY,
    ),
    Bug(
        name="seats: one fewer per user",
        plants=(rules("holds_max := holds_max - 1;"),),
        workload=limit("holds per user", "seats one by one"),
        says=TOO_FEW,
    ),
    Bug(
        name="seats: one more per address",
        plants=(rules("holds_per_ip_max := holds_per_ip_max + 1;"),),
        workload=limit("holds per address", "seats in one request"),
        says=TOO_MANY,
    ),
    Bug(
        name="seats: eleven in five minutes",
        plants=(edit("reserve_items", "when rated + n > 10", "when rated + n > 11"),),
        workload=limit("ten in five minutes", "seats one by one"),
        says=TOO_MANY,
    ),
    Bug(
        name="places: eleven in five minutes",
        plants=(edit("reserve_zones", "when used.rated + wanted > 10 or", "when used.rated + wanted > 11 or"),),
        workload=limit("ten in five minutes", "places one by one"),
        says=TOO_MANY,
    ),
    Bug(
        name="seats: forty-one granted in five minutes",
        plants=(edit("reserve_items", "granted + n > 40", "granted + n > 41"),),
        workload=rated(rates.test_forty_granted_in_five_minutes, others=rates.seats, kind=rates.seats),
        says=RATE_TOO_HIGH,
    ),
    Bug(
        name="places: thirty-nine granted in five minutes",
        plants=(edit("reserve_zones", "used.granted + wanted > 40", "used.granted + wanted >= 40"),),
        workload=rated(rates.test_forty_granted_in_five_minutes, others=rates.places, kind=rates.places),
        says=RATE_TOO_LOW,
    ),
    Bug(
        name="places: the last one is never granted",
        plants=(edit("reserve_zones", "when free < wanted", "when free <= wanted"),),
        workload=partial(limits.test_capacity_is_exact, taken="sold", is_staff=False),
        says="fewer places than there are",
    ),
    Bug(
        name="signing in: one fewer per booking",
        plants=(edit("holds_hand_over", "used.booked + hold.quantity >", "used.booked + hold.quantity >="),),
        workload=partial(counted.test_signing_in_at_a_limit, name="seats per booking", kind="seats", room=1),
        says="handed over more or less than the limit",
    ),
)
COUNTED_WRONGLY = (
    Bug(
        name="places: a hold counts as one, whatever its quantity",
        plants=(edit("reserve_zones", "sum(h.quantity)", "count(*)", times=None),),
        workload=until_its_end("holds per user", "places", "places"),
        says="a hold did not count",
    ),
    Bug(
        name="seats: a hold counts as one, whatever its quantity",
        plants=(edit("reserve_items", "sum(h.quantity)", "count(*)", times=None),),
        workload=until_its_end("seats per booking", "places", "seats"),
        says="a hold did not count",
    ),
    Bug(
        name="seats: wheelchair seats of earlier requests do not count",
        plants=(edit("reserve_items", "wheelchairs + wheelchairs_n >", "wheelchairs_n >"),),
        workload=limit("wheelchair seats per booking", "seats one by one"),
        says=TOO_MANY,
    ),
    Bug(
        name="places: expired holds count",
        plants=(edit("reserve_zones", "and h.expires_at > p_now", "", times=None),),
        workload=until_its_end("holds per address", "places", "places"),
        says="an expired hold counted",
    ),
    Bug(
        name="seats: a hold counts at its end",
        plants=(edit("reserve_items", "h.expires_at > moment", "h.expires_at >= moment", times=None),),
        workload=until_its_end("wheelchair seats per booking", "wheelchairs", "wheelchairs"),
        says="an expired hold counted",
    ),
    Bug(
        name="seats: a hold counts for an hour only",
        plants=(edit("reserve_items", "interval '70 minutes'", "interval '60 minutes'", times=None),),
        workload=until_its_end("seats per booking", "seats", "seats", is_longest=True),
        says="a hold did not count",
    ),
    Bug(
        name="signing in: a hold is found for an hour only",
        plants=(edit("holds_hand_over", "interval '70 minutes'", "interval '60 minutes'", times=None),),
        workload=partial(counted.test_longest_hold_is_handed_over_and_shown_to_its_end, kind="seats"),
        says="a hold was not found before its end",
    ),
    Bug(
        name="places: other events count for a booking",
        plants=(edit("reserve_zones", "and h.event_id = p_event), 0) as booked", "), 0) as booked"),),
        workload=partial(limits.test_whether_another_event_counts, name="seats per booking", is_shared=False),
        says="the wrong events were counted",
    ),
    Bug(
        name="seats: the rate is by the last change of a hold",
        plants=(edit("reserve_items", IN_WINDOW, IN_WINDOW.replace("created", "updated"), times=None),),
        workload=rated(rates.test_window_is_by_when_it_was_granted, kind=rates.seats, change="extended"),
        says=RATE_TOO_LOW,
    ),
    Bug(
        name="places: five minutes and a microsecond",
        plants=(edit("reserve_zones", IN_WINDOW_OF_PLACES, IN_WINDOW_OF_PLACES.replace(">", ">="), times=None),),
        workload=rated(rates.test_window_ends_after_five_minutes, held=rates.seats, kind=rates.places),
        says=RATE_TOO_LOW,
    ),
    Bug(
        name="seats: a cancellation after thirty seconds counts",
        plants=(edit("reserve_items", IN_GRACE, IN_GRACE.replace("<=", "<"), times=None),),
        workload=rated(
            rates.test_early_cancellation_within_the_grace_is_free, kind=rates.seats, after=timedelta(seconds=30)
        ),
        says=RATE_TOO_LOW,
    ),
    Bug(
        name="places: a cancellation after thirty-one seconds is free",
        plants=(edit("reserve_zones", IN_GRACE, IN_GRACE.replace("30", "31"), times=None),),
        workload=rated(
            rates.test_early_cancellation_within_the_grace_is_free,
            kind=rates.places,
            after=timedelta(seconds=30) + TICK,
        ),
        says=RATE_TOO_HIGH,
    ),
)
WHOSE = (
    Bug(
        name="staff have the limits of buyers",
        plants=(wrap("reserve_items", "p_are_staff := array[false]; return query select * from {call};"),),
        workload=partial(limits.test_staff_are_exempt, name="holds per user", way="seats in one request"),
        says="a limit was applied to staff",
    ),
    Bug(
        name="places: staff have the limits of buyers",
        plants=(places("p_are_staff := array_fill(false, array[cardinality(p_asks)]);"),),
        workload=partial(limits.test_staff_are_exempt, name="holds per address", way="places one by one"),
        says="a limit was applied to staff",
    ),
    Bug(
        name="an event's own limit is ignored",
        plants=(wrap("hold_rules", "p_event := null; select * into {outputs} from {call};"),),
        workload=partial(
            overrides.test_override_replaces_the_policy, limit=overrides.HOLDS, kind="places", policy=3, override=2
        ),
        says="the limit is higher",
    ),
    Bug(
        name="an event overrides a locked limit",
        plants=(edit("hold_rules", "said := said - locked;", ""),),
        workload=partial(
            overrides.test_locked_field_is_not_overridden, limit=overrides.SEATS, kind="seats", policy=3, override=2
        ),
        says="the limit is lower",
    ),
)


@pytest.mark.parametrize("bug", [*GROUPS, *OFF_BY_ONE, *COUNTED_WRONGLY, *WHOSE], ids=lambda bug: bug.name)
async def test_wrong_limit_is_noticed(frozen_nursery: Nursery, bug: Bug) -> None:
    await frozen_nursery.is_noticed(bug)
