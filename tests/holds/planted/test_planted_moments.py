"""Planted bugs: something happens a microsecond or a few seconds too early or too late, and its tests notice."""

from datetime import timedelta
from functools import partial

import pytest

from tests.holds.boundaries import (
    test_hold_end as ends,
    test_override_edges as overrides,
    test_sale_edges as sales,
)
from tests.holds.planted.bugs import Bug, Nursery
from tests.holds.planted.planting import edit, wrap, write
from tests.make.boxoffice import TICK, Plant

AT_ITS_END = timedelta()
EARLY, LATE = "+ interval '1 microsecond'", "- interval '1 microsecond'"
"""A clock that is ahead lets things happen early."""


def locks_clock(by: str) -> Plant:
    """Change the clock by which holds are extended, released and sold."""
    return wrap("lock_holds", f"return {{call}} {by};")


def expiry_clock(by: str) -> Plant:
    """Change the clock by which holds are taken over and expire."""
    return wrap("lapse_clock", f"return {{call}} {by};")


LATE_EXTENSION = """
  perform set_config('app.organization_id', p_organization::text, true);
  update seat_holds h set expires_at = h.expires_at + interval '30 seconds'
   where h.id = any (p_holds) and h.status = 'active' and h.extended_count = 0
     and h.expires_at <= clock_timestamp() and h.expires_at > clock_timestamp() - interval '30 seconds';
  return query select * from {call};
"""

HOLDS = (
    Bug(
        name="extended up to thirty seconds after the end",
        plants=(wrap("hold_extend", LATE_EXTENSION),),
        workload=partial(ends.test_extending, kind="seat", before=AT_ITS_END),
        says="an expired hold was extended",
    ),
    Bug(
        name="extended at the end",
        plants=(locks_clock(LATE),),
        workload=partial(ends.test_extending, kind="places", before=AT_ITS_END),
        says="an expired hold was extended",
    ),
    Bug(
        name="not extended just before the end",
        plants=(locks_clock(EARLY),),
        workload=partial(ends.test_extending, kind="seat", before=TICK),
        says="extended by the wrong time, or not at all",
    ),
    Bug(
        name="extended from now and not from the first end",
        plants=(edit("hold_extend", "h.initial_expires_at + interval '5 minutes'", "moment + interval '5 minutes'"),),
        workload=partial(ends.test_extending, kind="seat", before=TICK),
        says="extended by the wrong time, or not at all",
    ),
    Bug(
        name="extended twice",
        plants=(write("seat_holds", "new.extended_count := 0;", when="new.extended_count > old.extended_count"),),
        workload=partial(ends.test_extending_twice_changes_nothing, kind="seat"),
        says="a second extension changed something",
    ),
    Bug(
        name="released at the end",
        plants=(locks_clock(LATE),),
        workload=partial(ends.test_releasing, kind="seat", before=AT_ITS_END),
        says="released at the wrong time",
    ),
    Bug(
        name="releasing does not raise the version",
        plants=(
            write(
                "event_seats",
                "new.version := old.version;",
                when="old.status = 'held' and new.status = 'available'",
            ),
        ),
        workload=ends.test_versions_and_facts_of_a_hold,
        says="releasing did not raise the version",
    ),
    Bug(
        name="sold at the end",
        plants=(
            edit(
                "hold_convert",
                "h.status = 'active' and h.expires_at > moment",
                "h.status = 'active' and h.expires_at >= moment",
            ),
        ),
        workload=partial(ends.test_buying_without_payment, kind="seat", before=AT_ITS_END),
        says="an expired hold was sold",
    ),
    Bug(
        name="not taken over at the end",
        plants=(expiry_clock(LATE),),
        workload=partial(ends.test_another_buyer_takes_over, kind="seat", before=AT_ITS_END),
        says="taken over at the wrong time",
    ),
    Bug(
        name="taken over just before the end",
        plants=(expiry_clock(EARLY),),
        workload=partial(ends.test_another_buyer_takes_over, kind="places", before=TICK),
        says="taken over at the wrong time",
    ),
    Bug(
        name="expired just before the end",
        plants=(
            edit(
                "hold_expire",
                "lapse_clock(clock_timestamp())",
                "lapse_clock(clock_timestamp()) + interval '1 microsecond'",
                times=None,
            ),
        ),
        workload=partial(ends.test_expiry_worker, kind="seat", before=TICK),
        says="expired at the wrong time",
    ),
    Bug(
        name="handed over at the end",
        plants=(
            edit("holds_hand_over", "h.expires_at > clock_timestamp()", "h.expires_at >= clock_timestamp()"),
            edit("holds_hand_over", "h.expires_at > moment order", "h.expires_at >= moment order"),
        ),
        workload=partial(ends.test_signing_in, kind="places", before=AT_ITS_END),
        says="handed over too late",
    ),
    Bug(
        name="a late payment takes a live hold",
        plants=(
            edit(
                "hold_convert",
                "s.held_until <= lapsed_by",
                "s.held_until <= lapsed_by + interval '1 second'",
                times=None,
            ),
        ),
        workload=partial(ends.test_late_payment_meets_another_buyers_hold, before=TICK),
        says="a live hold was lost",
    ),
    Bug(
        name="a late payment does not get the last places",
        plants=(edit("hold_convert", "having sum(h.quantity) >", "having sum(h.quantity) >="),),
        workload=partial(ends.test_late_payment_needs_room_in_the_zone, others=1, before=TICK),
        says="sold more or fewer places than there are",
    ),
    Bug(
        name="a hold lasts a second too long",
        plants=(wrap("hold_rules", "select * into {outputs} from {call}; ttl := ttl + interval '1 second';"),),
        workload=partial(
            overrides.test_how_long_a_hold_lasts, kind="places", policy=3, override=60, minutes=60, is_locked=False
        ),
        says="a hold lasts too long or too short",
    ),
    Bug(
        name="the clock guard is ignored",
        plants=(wrap("lapse_clock", "return p_now;"),),
        workload=partial(ends.test_clock_guard, kind="seat", before=TICK),
        says="the clock guard was ignored",
    ),
)
SALES = (
    Bug(
        name="a sale starts a microsecond early",
        plants=(wrap("sale_refusal", "p_now := p_now + interval '1 microsecond'; return {call};"),),
        workload=partial(sales.test_sale_starts, kind="seat", is_staff=False),
        says="opened or closed at the wrong time",
    ),
    Bug(
        name="a sale ends a microsecond late",
        plants=(wrap("sale_refusal", "p_now := p_now - interval '1 microsecond'; return {call};"),),
        workload=partial(sales.test_sale_ends, kind="places", ends="rescheduled_end_at", is_staff=False),
        says="opened or closed at the wrong time",
    ),
    Bug(
        name="a membership counts at its end",
        plants=(wrap("may_book", "p_now := p_now - interval '1 microsecond'; return {call};"),),
        workload=partial(sales.test_membership_ends, kind="places", is_staff=False),
        says="opened or closed at the wrong time",
    ),
)


@pytest.mark.parametrize("bug", [*HOLDS, *SALES], ids=lambda bug: bug.name)
async def test_wrong_moment_is_noticed(frozen_nursery: Nursery, bug: Bug) -> None:
    await frozen_nursery.is_noticed(bug)
