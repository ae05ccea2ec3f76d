"""Planted bugs: a guard of the registry's functions is taken away, and a workload or `voelgoed verify` notices."""

import pytest

from tests.holds.planted import workloads
from tests.holds.planted.bugs import Bug, Nursery
from tests.holds.planted.planting import edit, run, shadow, wrap, write
from tests.make.boxoffice import open_office
from voelgoed.holds import auditing

NO_LOCK = "pg_advisory_xact_lock(bigint) returns void language sql as ''"
NO_ROW_LOCK = (
    edit("reserve_items", "for no key update skip locked) as s", ") as s"),
    # A locked row stays where it is. To find it by its place is one guard more.
    edit(
        "reserve_items",
        "from unnest(places, tids) as n (place, tid) where s.ctid = n.tid",
        "from unnest(places, tids) as n (place, tid) where s.event_id = p_event and s.seat_id = p_seats[n.place]",
    ),
)
NO_CAPACITY = edit("reserve_zones", "when free < wanted then 'block_at_capacity'", "")
NO_TENANT = (
    edit("reserve_items", "z.organization_id = p_organization and", "", times=None),
    edit("reserve_items", "e.organization_id = p_organization and", "", times=None),
    edit("seats_named", "e.organization_id = p_organization and", ""),
)
ANY_TENANT = edit(
    "reserve_items",
    "set_config('app.organization_id', p_organization::text, true)",
    "set_config('app.scope', 'system', true)",
)
IS_HANDED_OVER = "new.hold_id = old.hold_id and new.held_by <> old.held_by"

BUGS = (
    Bug(
        name="any buyer may release a hold",
        plants=(wrap("hold_release", "p_user := null; return query select * from {call};"),),
        workload=workloads.release_of_another_buyers_hold,
        says="a buyer released another buyer's hold",
    ),
    Bug(
        name="the clock is read before the locks",
        plants=(
            wrap(
                "lock_holds",
                "perform {call}; return early;",
                declare="early timestamptz := pg_catalog.clock_timestamp();",
            ),
        ),
        workload=workloads.hold_expires_while_its_sale_waits,
        says="a hold was sold after its end",
    ),
    Bug(
        name="seats are not locked",
        plants=NO_ROW_LOCK,
        workload=workloads.two_requests_for_one_seat,
        says="only a constraint was left",
    ),
    Bug(
        name="seats are not locked, nor is an active hold unique",
        plants=(*NO_ROW_LOCK, run("drop index seat_holds_active_seat")),
        workload=workloads.two_requests_for_one_seat,
        check="two_active_holds_of_a_seat",
    ),
    Bug(
        name="extending does not raise the version",
        plants=(
            write(
                "event_seats",
                "new.version := old.version;",
                when="new.hold_id = old.hold_id and new.held_until <> old.held_until",
            ),
        ),
        workload=workloads.extension,
        check="ledger_with_a_gap",
    ),
    Bug(
        name="seats are locked in the wrong order",
        plants=(
            wrap(
                "lock_holds",
                "perform from event_seats s where s.event_id = p_event and s.hold_id = any (p_holds)"
                " order by s.ordinal desc for no key update; return {call};",
            ),
        ),
        workload=workloads.release_and_block_at_once,
        says="a release and a block deadlocked every time",
    ),
    Bug(
        name="capacity is not looked at",
        plants=(NO_CAPACITY,),
        workload=workloads.more_places_than_there_are,
        says="only a constraint was left",
    ),
    Bug(
        name="capacity is not looked at, nor is there a constraint",
        plants=(NO_CAPACITY, run("alter table event_zones drop constraint event_zones_counts")),
        workload=workloads.more_places_than_there_are,
        check="zone_that_does_not_add_up",
    ),
    Bug(
        name="the organization is not looked at",
        plants=(*NO_TENANT, ANY_TENANT),
        workload=workloads.request_from_another_organization,
        check="hold_across_organizations",
    ),
    Bug(
        name="live holds are taken over",
        plants=(wrap("lapse_clock", "return 'infinity';"),),
        workload=workloads.request_for_a_held_seat,
        check="hold_that_ended_at_the_wrong_time",
    ),
    Bug(
        name="expired holds are not taken over",
        plants=(wrap("lapse_clock", "return '-infinity';"),),
        workload=workloads.request_for_an_expired_seat,
        says="a free seat could not be held",
    ),
    Bug(
        name="every seat of a group is a request of its own",
        plants=(
            wrap(
                "reserve_items",
                "p_asks := array(select generate_series(1, cardinality(p_asks))); return query select * from {call};",
            ),
        ),
        workload=workloads.group_with_a_taken_seat,
        says="a part of a group was granted",
    ),
    Bug(
        name="expired holds are sold",
        plants=(
            edit(
                "hold_convert",
                "bool_and(h.status = 'active' and h.expires_at > moment)",
                "bool_and(h.status = 'active')",
            ),
        ),
        workload=workloads.sale_of_an_expired_hold,
        check="hold_that_ended_at_the_wrong_time",
    ),
    Bug(
        name="signing in does not raise the version",
        plants=(write("event_seats", "new.version := old.version;", when=IS_HANDED_OVER),),
        workload=workloads.sign_in_with_a_hold,
        check="ledger_with_a_gap",
    ),
    Bug(
        name="signing in is recorded as done by the guest",
        plants=(
            write(
                "journal",
                "new.actor_id := (new.data ->> 'guest_id')::uuid;",
                when="new.kind = 'seat_hold_handed_over'",
                event="insert",
            ),
        ),
        workload=workloads.sign_in_with_a_hold,
        check="holder_who_was_never_told",
    ),
    Bug(
        name="signing in moves the hold and not the seat",
        plants=(write("event_seats", "new.held_by := old.held_by;", when=IS_HANDED_OVER),),
        workload=workloads.sign_in_with_a_hold,
        check="held_seat_without_its_hold",
    ),
    Bug(
        name="an account's holds are handed over",
        plants=(edit("holds_hand_over", "u.id = p_guest and u.is_guest", "u.id = p_guest"),),
        workload=workloads.sign_in_by_one_who_is_no_guest,
        says="an account lost a hold to another",
    ),
    Bug(
        name="expired holds are handed over",
        plants=(
            edit("holds_hand_over", "and h.expires_at > clock_timestamp()", ""),
            edit(
                "holds_hand_over",
                "and h.status = 'active' and h.expires_at > moment order",
                "and h.status = 'active' order",
            ),
        ),
        workload=workloads.sign_in_with_an_expired_hold,
        says="an expired hold was handed over",
    ),
    Bug(
        name="signing in does not lock the account",
        plants=(shadow("holds_hand_over", "pg_advisory_xact_lock", NO_LOCK),),
        workload=workloads.sign_in_while_the_account_asks,
        says="a buyer holds more than the limit",
    ),
    Bug(
        name="a request does not lock its buyer",
        plants=(shadow("reserve_items", "pg_advisory_xact_lock", NO_LOCK),),
        workload=workloads.two_requests_of_one_buyer,
        says="a buyer holds more than the limit",
    ),
    Bug(
        name="a request does not lock its address",
        plants=(shadow("reserve_items", "pg_advisory_xact_lock", NO_LOCK),),
        workload=workloads.two_requests_from_one_address,
        says="an address holds more than the limit",
    ),
)


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
async def test_missing_guard_is_noticed(nursery: Nursery, bug: Bug) -> None:
    await nursery.is_noticed(bug)


@pytest.mark.req("TEN-07")
async def test_row_level_security_stands_behind_the_filter(nursery: Nursery) -> None:
    """Without a single filter in the functions another organization's seats are not found all the same."""
    opened = open_office(nursery.servers, nursery.settings, nursery.services, nursery.name, plants=NO_TENANT)
    async with opened as office:
        await workloads.request_from_another_organization(office)
        assert await auditing.verify(office.db) == []
