"""The rules of a hold: how long, for whom, at which events, what ends it; what is told, counted and logged of it."""

import asyncio
import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, cast
from uuid import UUID

import asyncpg
import pytest
import structlog
from msgspec import structs
from structlog.testing import capture_logs

from tests.make.accounts import make_organization, make_person
from tests.make.events import call_of, make_event, make_venue, move as lifecycle_move, soon
from tests.make.holds import Sale, everything_of, let_pass, on_sale
from tests.make.layouts import small_layout
from tests.make.seating import as_registry, event_now, facts_of, move, unpublish, zone_rows
from tests.make.web import Site
from voelgoed.accounts import store as account_store
from voelgoed.accounts.model import Call, Organization, Role
from voelgoed.db import Connection, Database
from voelgoed.errors import Busy, DomainError, LostRace, OutcomeUnknown
from voelgoed.events import lifecycle
from voelgoed.events.model import CLOCK, OPERATOR, NewDate, Order, Verb
from voelgoed.holds import auditing, booking, failures, registry, store, usecases
from voelgoed.holds.model import Ask, Item, Outcome
from voelgoed.holds.refusals import SeatingInUse, SeatsRefused
from voelgoed.http import server
from voelgoed.ids import new_id
from voelgoed.jobs import worker
from voelgoed.journal import origins
from voelgoed.journal.model import Origin
from voelgoed.journal.recording import record_all
from voelgoed.seating import policies
from voelgoed.seating.model import AccessMode
from voelgoed.seating.overlay import Overlay, ZoneOverride
from voelgoed.seating.policy import Policy
from voelgoed.telemetry import metrics
from voelgoed.wiring import Services


@pytest.fixture
async def sale(services: Services, place: Organization) -> Sale:
    return await on_sale(services, place)


@pytest.fixture
def logs() -> Iterator[list[Any]]:
    """Everything that is logged, although tests are quiet otherwise."""
    quiet = structlog.get_config()["wrapper_class"]
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(0))
    with capture_logs() as entries:
        yield entries
    structlog.configure(wrapper_class=quiet)


def asked(outcome: str) -> float:
    metrics.settle()
    return float(metrics.HOLD_ASKS.labels(outcome)._value.get())


def ended(outcome: str) -> float:
    return float(metrics.HOLD_ENDS.labels(outcome)._value.get())


def sample(name: str) -> float:
    metrics.settle()
    return metrics.REGISTRY.get_sample_value(f"voelgoedevents_{name}") or 0.0


async def refused(work: Any) -> str:
    """The code of a refusal."""
    with pytest.raises(DomainError) as told:
        await work
    return told.value.code


async def set_policy(db: Database, place: Organization, **values: object) -> None:
    async with db.transaction(place.id) as conn:
        await policies.save(conn, place.id, values, by=OPERATOR, role=Role.SUPER_ADMIN, reason="in a test")


async def lasts(sale: Sale, code: str) -> float:
    """How many minutes a new hold lasts."""
    (held,) = await sale.hold(sale.caller(), code)
    return (held.hold.expires_at - held.hold.created_at).total_seconds() / 60


async def carry_out(sale: Sale, order: Order, role: Role = Role.OWNER) -> None:
    """Give an order as somebody of the organization."""
    services = sale.services
    await usecases.move_event(services.studio, services.catalogue, sale.caller(role), sale.event.id, order)


async def statuses(sale: Sale) -> list[str]:
    return [row["status"] for row in await sale.rows()]


@pytest.mark.req("HOLD-01", "RSV-42", "HOLD-20", "TEST-13")
async def test_a_seat_is_held_by_one(sale: Sale) -> None:
    """Of fifty who ask at once one gets it, without a web server in between; the others are told who they are not."""
    calls = [sale.caller() for _ in range(50)]
    said = await asyncio.gather(*(sale.hold(call, "S-A-1") for call in calls), return_exceptions=True)
    won = [one for one in said if isinstance(one, list)]
    assert len(won) == 1, said[:3]
    codes = {getattr(one, "code", one) for one in said if not isinstance(one, list)}
    assert codes == {"seat_held_by_another_user"}
    (row,) = await sale.rows()
    assert row["user_id"] == calls[said.index(won[0])].actor.user_id
    assert await auditing.verify(sale.db, organization_id=sale.place.id) == []


@pytest.mark.req("HOLD-28", "RSV-20")
async def test_how_long_a_hold_lasts(services: Services, db: Database, place: Organization) -> None:
    """The policy's minutes; the event's own where it may have some; the policy's again once the field is locked."""
    said_nothing = await on_sale(services, place)
    own = await on_sale(services, place, overlay=Overlay(seating_overrides={"default_hold_ttl_minutes": 15}))
    assert (await lasts(said_nothing, "S-A-1"), await lasts(own, "S-A-1")) == (10, 15)
    await set_policy(db, place, default_hold_ttl_minutes=3)
    assert (await lasts(said_nothing, "S-A-2"), await lasts(own, "S-A-2")) == (3, 15)
    await set_policy(db, place, locked_fields=["default_hold_ttl_minutes"])
    assert (await lasts(said_nothing, "S-A-3"), await lasts(own, "S-A-3")) == (3, 3)
    kept = [row["expires_at"] - row["created_at"] for row in await own.rows()]
    assert kept == [timedelta(minutes=15), timedelta(minutes=15), timedelta(minutes=3)]  # what was given stays


async def test_without_a_policy_sql_has_the_same_defaults(db: Database, owner_conn: Connection) -> None:
    """Two places say what holds when nobody has said anything: they say the same."""
    place, policy = await make_organization(db), Policy()
    async with as_registry(owner_conn) as conn:
        row = await conn.fetchrow("select * from hold_rules($1, $2)", place.id, new_id())
    assert row is not None
    assert dict(row) == {
        "ttl": timedelta(minutes=policy.default_hold_ttl_minutes),
        "seats_max": policy.max_seats_per_booking,
        "wheelchairs_max": policy.max_wheelchair_seats_per_booking,
        "holds_max": policy.max_holds_per_user,
        "holds_per_ip_max": policy.max_holds_per_ip,
    }
    assert policy.enforce_accessibility_rules


async def test_an_event_may_have_limits_of_its_own(services: Services, db: Database, place: Organization) -> None:
    """Each field that an event may override counts there, and not when it is locked."""
    said: dict[str, object] = {
        "max_seats_per_booking": 1,
        "max_holds_per_user": 2,
        "max_wheelchair_seats_per_booking": 2,
    }
    layout = small_layout({"zones.0.rows.1.seats.category": {"wheelchair": [1, 4], "companion": [2]}})
    own = await on_sale(services, place, layout=layout, overlay=Overlay(seating_overrides=said))
    buyer = own.caller()
    await own.hold(buyer, "S-A-1")
    assert await refused(own.hold(buyer, "S-A-2")) == "max_seats_exceeded"
    await set_policy(db, place, locked_fields=["max_seats_per_booking"])
    await own.hold(buyer, "S-A-2")
    assert await refused(own.hold(buyer, "S-A-3")) == "max_holds_exceeded"
    await set_policy(db, place, locked_fields=["max_seats_per_booking", "max_holds_per_user"])
    await own.hold(buyer, "S-B-1", "S-B-4")
    other = own.caller()
    await set_policy(db, place, locked_fields=list(said))
    assert await refused(own.hold(other, "S-A-3", "S-A-4", "S-B-1")) == "seats_refused"
    await booking.release(own.services.lanes, own.db, buyer, (await own.rows())[2]["id"])
    await booking.release(own.services.lanes, own.db, buyer, (await own.rows())[3]["id"])
    assert await refused(own.hold(other, "S-B-1", "S-B-4")) == "max_wheelchair_seats_exceeded"
    await set_policy(db, place, enforce_accessibility_rules=False)
    await own.hold(other, "S-B-1", "S-B-4")


async def test_members_of_the_tier_may_book(db: Database, sale: Sale) -> None:
    """Of the zone's own tier, now: not one that is over, revoked, to come, or of another tier or organization."""
    person = await make_person(db, sale.place)
    buyer = sale.caller(user_id=person.user_id)
    other = await make_organization(db)
    async with db.transaction(other.id) as conn:
        await account_store.set_member(conn, other.id, person.user_id, Role.CUSTOMER)
        await account_store.add_membership(
            conn, other.id, new_id(), user_id=person.user_id, tier="gold", valid_from=None, valid_to=None
        )
    for tier, begins, ends in (
        ("silver", None, None),
        ("gold", soon(days=-9), soon(days=-1)),
        ("gold", soon(days=1), None),
    ):
        assert await refused(sale.hold(buyer, "V-A-1")) == "zone_access_denied"
        async with db.transaction(sale.place.id) as conn:
            made = await account_store.add_membership(
                conn, sale.place.id, new_id(), user_id=person.user_id, tier=tier, valid_from=begins, valid_to=ends
            )
        assert await refused(sale.hold(buyer, "V-A-1")) == "zone_access_denied"
        if tier == "gold":
            async with db.transaction(sale.place.id) as conn:
                await account_store.revoke_membership(conn, sale.place.id, made.id)
    async with db.transaction(sale.place.id) as conn:
        made = await account_store.add_membership(
            conn, sale.place.id, new_id(), user_id=person.user_id, tier="gold", valid_from=None, valid_to=soon(days=1)
        )
    await sale.hold(buyer, "V-A-1")
    async with db.transaction(sale.place.id) as conn:
        await account_store.revoke_membership(conn, sale.place.id, made.id)
    assert await refused(sale.hold(buyer, "V-A-2")) == "zone_access_denied"
    assert await refused(sale.hold(sale.caller(Role.OWNER), "V-A-2")) == "zone_access_denied"


async def test_roles_and_lists_let_in_whom_they_name(services: Services, place: Organization) -> None:
    """Seats and places alike; whoever is on a list waits until there are lists."""
    overlay = Overlay(
        zone_overrides={
            "S": ZoneOverride(access_mode=AccessMode.ROLE_BASED, allowed_roles=("staff", "scanner")),
            "P": ZoneOverride(access_mode=AccessMode.WHITELIST),
            "V": ZoneOverride(access_mode=AccessMode.PUBLIC),
        }
    )
    sale = await on_sale(services, place, overlay=overlay)
    for role, code in ((Role.STAFF, "S-A-1"), (Role.SCANNER, "S-A-2")):
        await sale.hold(sale.caller(role), code)
    for role in (Role.CUSTOMER, Role.ADMIN, Role.OWNER):
        assert await refused(sale.hold(sale.caller(role), "S-A-3")) == "zone_access_denied"
    assert len(await sale.hold(sale.caller(Role.STAFF), "S-A-3", "S-A-4")) == 2  # each of several, too
    with pytest.raises(SeatsRefused) as both:
        await sale.hold(sale.caller(), "S-B-1", "S-B-2")
    told = cast("list[dict[str, str]]", both.value.facts["seats"])
    assert [one["error"] for one in told] == ["zone_access_denied"] * 2
    for role in (Role.CUSTOMER, Role.STAFF, Role.OWNER):
        assert await refused(sale.hold_places(sale.caller(role), 1)) == "zone_access_denied"
    await sale.hold(sale.caller(), "V-A-1")


@pytest.mark.req("EV-39", "RSV-07", "RSV-08", "RSV-10")
@pytest.mark.parametrize(
    ("status", "said"),
    [
        ("draft", "event_not_found"),
        ("published", None),
        ("live", None),
        ("postponed", "event_not_available"),
        ("ended", "event_not_available"),
        ("cancelled", "event_unavailable"),
        ("archived", "event_unavailable"),
    ],
)
async def test_which_events_sell(services: Services, place: Organization, status: str, said: str | None) -> None:
    """Two statuses, and one more once it has a date; to its own people as to everybody."""
    sale = await on_sale(services, place, status=status)
    for role in (Role.CUSTOMER, Role.OWNER):
        if said:
            assert await refused(sale.hold(sale.caller(role), "S-A-1")) == said
            assert await refused(sale.hold_places(sale.caller(role), 1)) == said
        else:
            await sale.hold(sale.caller(role), "S-A-1" if role is Role.OWNER else "S-A-2")
            await sale.hold_places(sale.caller(role), 1)


@pytest.mark.req("RSV-09", "RSV-08")
async def test_both_ends_of_the_sale_belong_to_it(owner_conn: Connection, place: Organization, sale: Sale) -> None:
    """To the microsecond, by one clock; without a beginning since always, without an end until the event is over."""
    async with as_registry(owner_conn) as conn:

        async def said(at: datetime, **fields: object) -> str | None:
            found: str | None = await conn.fetchval(
                "select sale_refusal(jsonb_populate_record(e, $2::jsonb), $3) from events e where id = $1",
                sale.event.id,
                json.dumps(fields, default=str),
                at,
            )
            return found

        instant = timedelta(microseconds=1)
        begins, ends = soon(hours=1), soon(hours=2)
        window = {"sale_start_at": begins, "sale_end_at": ends}
        assert await said(begins - instant, **window) == "event_sales_closed"
        assert [await said(at, **window) for at in (begins, begins + instant, ends - instant, ends)] == [None] * 4
        assert await said(ends + instant, **window) == "event_sales_closed"
        open_ended = {"sale_start_at": None, "sale_end_at": None}
        assert await said(soon(days=-999), **open_ended) is None
        assert await said(sale.event.end_at, **open_ended) is None
        assert await said(sale.event.end_at + instant, **open_ended) == "event_sales_closed"
        # A status that sells never outweighs the clock, and the other way round.
        assert await said(begins, status="cancelled", **window) == "event_unavailable"
        assert await said(ends + instant, status="ended", **window) == "event_not_available"


@pytest.mark.req("EV-44", "EV-56", "PUB-06")
async def test_postponed_without_a_date_everything_rests(sale: Sale, owner_conn: Connection) -> None:
    """Nothing new is held, extended or sold; what is held stays, and lapses as it would have."""
    buyer = sale.caller()
    seat, second = await sale.hold(buyer, "S-A-1", "S-A-2")
    places = await sale.hold_places(buyer, 2)
    await carry_out(sale, Order(verb=Verb.POSTPONE, reason="a storm"))
    before = await everything_of(sale.db, sale.place.id)
    assert await statuses(sale) == ["active", "active", "active"]
    assert await refused(sale.hold(buyer, "S-A-3")) == "event_not_available"
    for held in (seat, places):
        assert await refused(booking.extend(sale.db, buyer, held.hold.id)) == "event_not_available"
    for is_paid in (False, True):
        assert (await sale.buy(buyer, seat, is_paid=is_paid))[0] == "event_not_available"
    assert await everything_of(sale.db, sale.place.id) == before
    assert len(await booking.list_own(sale.db, buyer, sale.event.id)) == 3
    await let_pass(owner_conn, second.hold.id)
    assert await registry.reap(sale.db, by=CLOCK) >= 1
    assert sorted(await statuses(sale)) == ["active", "active", "expired"]


@pytest.mark.req("EV-46", "RSV-08")
async def test_postponed_with_a_date_it_sells_again(sale: Sale) -> None:
    """Inside the new window: what was held before goes on, and new holds are given."""
    buyer = sale.caller()
    (held,) = await sale.hold(buyer, "S-A-1")
    await carry_out(sale, Order(verb=Verb.POSTPONE, reason="a storm"))
    date = NewDate(start_at=soon(days=90), sale_end_at=soon(days=80))
    await carry_out(sale, Order(verb=Verb.RESCHEDULE, reason="a storm", new_date=date))
    assert (await event_now(sale.db, sale.event)).status == "postponed"
    assert await statuses(sale) == ["active"]
    await sale.hold(buyer, "S-A-2")
    await booking.extend(sale.db, buyer, held.hold.id)
    assert (await sale.buy(buyer, held))[0] == "sold"


@pytest.mark.req("EV-48")
async def test_a_time_change_lets_go_what_is_outside_the_sale(services: Services, place: Organization) -> None:
    """Whether the sale is over now or has yet to begin; inside its window nothing is lost."""
    for number, window in enumerate(
        (
            {"sale_end_at": soon(days=20)},
            {"sale_end_at": soon(minutes=-1)},
            {"sale_start_at": soon(days=1)},
        )
    ):
        sale = await on_sale(services, place, sale_start_at=soon(days=-9))
        buyer = sale.caller()
        await sale.hold(buyer, "S-A-1")
        await sale.hold_places(buyer, 2)
        lead = sale.caller(Role.OWNER)
        await usecases.update_event(services.studio, services.catalogue, lead, sale.event.id, window, version=None)
        is_inside = number == 0
        assert await statuses(sale) == ["active" if is_inside else "cancelled"] * 2
        told = await facts_of(sale.db, sale.event, "seat_hold_released")
        assert [(fact["data"]["reason"], fact["actor_id"]) for fact in told] == (
            [] if is_inside else [("outside_sale", lead.actor.user_id)] * 2
        )
        assert (await zone_rows(sale.db, sale.event))[2]["held"] == (2 if is_inside else 0)
    assert await auditing.verify(services.db, organization_id=place.id) == []


async def test_after_the_end_of_its_sale_an_edit_lets_nothing_go(services: Services, place: Organization) -> None:
    """Whoever holds a seat when the sale ends may finish; nothing but other times of the sale ends that."""
    sale = await on_sale(services, place, sale_start_at=soon(days=-9))
    await sale.hold(sale.caller(), "S-A-1")
    async with sale.db.transaction(place.id) as conn:
        await conn.execute(
            "update events set sale_end_at = $2, version = version + 1 where id = $1", sale.event.id, soon(minutes=-1)
        )
    lead = sale.caller(Role.OWNER)
    for fields in ({"description": "With a band."}, {"sale_start_at": sale.event.sale_start_at}):
        await usecases.update_event(services.studio, services.catalogue, lead, sale.event.id, fields, version=None)
        assert await statuses(sale) == ["active"], fields
    await move(services.studio, place, sale.event, Verb.GO_LIVE)
    assert await statuses(sale) == ["active"]
    moved = {"sale_end_at": soon(minutes=-2)}
    await usecases.update_event(services.studio, services.catalogue, lead, sale.event.id, moved, version=None)
    assert await statuses(sale) == ["cancelled"]


async def test_whether_a_sale_was_moved_away_is_by_one_clock(
    services: Services, place: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PostgreSQL's, which gives the holds and ends them, and not this machine's."""
    sale = await on_sale(services, place, sale_start_at=soon(days=-9))
    await sale.hold(sale.caller(), "S-A-1")

    async def in_a_month(_: object) -> datetime:
        return soon(days=30)

    monkeypatch.setattr(lifecycle, "read_clock", in_a_month)
    lead, fields = sale.caller(Role.OWNER), {"sale_end_at": soon(days=20)}
    await usecases.update_event(services.studio, services.catalogue, lead, sale.event.id, fields, version=None)
    assert await statuses(sale) == ["cancelled"]


async def test_a_new_date_outside_the_sale_lets_go(sale: Sale) -> None:
    """Whoever gives it: somebody of the organization, or the operator at the terminal."""
    await sale.hold(sale.caller(), "S-A-1")
    date = NewDate(start_at=soon(days=90), sale_start_at=soon(days=50), sale_end_at=soon(days=80))
    await carry_out(sale, Order(verb=Verb.RESCHEDULE, reason="a storm", new_date=date))
    assert await statuses(sale) == ["cancelled"]


@pytest.mark.req("EV-40", "EV-41", "EV-65", "EV-56")
@pytest.mark.parametrize("who", ["leader", "operator", "reaper"])
async def test_a_cancelled_event_holds_nothing(sale: Sale, who: str) -> None:
    """Seats and places are let go at once, or by the reaper within seconds; what is sold stays on record."""
    buyer = sale.caller()
    sold, _ = await sale.hold(buyer, "S-A-1", "S-A-2")
    await sale.hold_places(buyer, 3)
    assert (await sale.buy(buyer, sold))[0] == "sold"
    if who == "leader":
        await carry_out(sale, Order(verb=Verb.CANCEL, reason="ill"))
    elif who == "operator":
        await move(sale.services.studio, sale.place, sale.event, Verb.CANCEL)
    else:  # whoever cancelled it died before they could let go
        await lifecycle_move(sale.db, sale.place.id, sale.event.id, Verb.CANCEL)
        await registry.reap(sale.db, by=CLOCK)
    assert sorted(await statuses(sale)) == ["cancelled", "cancelled", "converted"]
    assert [(await sale.row(code))["status"] for code in ("S-A-1", "S-A-2")] == ["sold", "available"]
    row = (await zone_rows(sale.db, sale.event))[2]
    assert (row["held"], row["sold"]) == (0, 0)
    told = await facts_of(sale.db, sale.event, "seat_hold_released")
    assert [fact["data"]["reason"] for fact in told] == ["event_cancelled"] * 2
    assert await refused(sale.hold(buyer, "S-A-3")) == "event_unavailable"
    assert await auditing.verify(sale.db, organization_id=sale.place.id) == []


@pytest.mark.parametrize("verbs", [[Verb.CANCEL], [Verb.CANCEL, Verb.ARCHIVE], [Verb.GO_LIVE, Verb.END]])
async def test_what_is_over_is_not_extended(sale: Sale, verbs: list[Verb]) -> None:
    """Called off, over or put away: whoever holds something still is refused more time for it, before it is let go."""
    buyer = sale.caller()
    held, places = (await sale.hold(buyer, "S-A-1"))[0], await sale.hold_places(buyer, 2)
    for verb in verbs:
        await lifecycle_move(sale.db, sale.place.id, sale.event.id, verb)
    before = await everything_of(sale.db, sale.place.id)
    for one in (held, places):
        assert await refused(booking.extend(sale.db, buyer, one.hold.id)) == "event_not_available"
    assert await everything_of(sale.db, sale.place.id) == before
    await registry.reap(sale.db, by=CLOCK)
    assert await statuses(sale) == ["cancelled"] * 2


async def test_an_event_that_the_clock_has_ended_holds_nothing(services: Services, place: Organization) -> None:
    """It ends by itself while somebody holds a seat: the reaper lets it go."""
    sale = await on_sale(services, place, status="live")
    await sale.hold(sale.caller(), "S-A-1")
    await lifecycle_move(sale.db, place.id, sale.event.id, Verb.END)
    await registry.reap(services.db, by=CLOCK)
    assert await statuses(sale) == ["cancelled"]
    (fact,) = await facts_of(sale.db, sale.event, "seat_hold_released")
    assert fact["data"]["reason"] == "event_ended"


@pytest.mark.req("EV-50")
async def test_an_event_with_tickets_is_never_deleted(sale: Sale) -> None:
    """Sold, it cannot become a draft; taken back, it can, and still stays on record; an event nobody held goes."""
    services, lead, buyer = sale.services, sale.caller(Role.OWNER), sale.caller()

    async def delete() -> None:
        await usecases.delete_event(services.studio, services.catalogue, lead, sale.event.id, version=None)

    (held,) = await sale.hold(buyer, "S-A-1")
    _, (ticket_id,) = await sale.buy(buyer, held)
    with pytest.raises(SeatingInUse):
        await unpublish(services.studio, sale.event)
    assert await refused(delete()) == "event_in_use"
    said = await registry.void(sale.db, sale.place.id, sale.event.id, ticket_id, by=OPERATOR, reason="refunded")
    assert said == "voided"
    await unpublish(services.studio, sale.event)
    assert await refused(delete()) == "event_in_use"
    assert await auditing.verify(sale.db, organization_id=sale.place.id) == []
    await carry_out(sale, Order(verb=Verb.ARCHIVE))
    untouched = await on_sale(services, sale.place)
    await unpublish(services.studio, untouched.event)
    await usecases.delete_event(services.studio, services.catalogue, lead, untouched.event.id, version=None)


@pytest.mark.req("EV-49")
async def test_a_venue_with_tickets_sold_is_changed_only_if_meant(services: Services, place: Organization) -> None:
    """Without consent it is refused; a hall does not move along; without one it moves, and whoever follows is told."""
    db, sale = services.db, await on_sale(services, place)
    buyer, lead = sale.caller(), sale.caller(Role.OWNER)
    await sale.buy(buyer, *await sale.hold(buyer, "S-A-1"))
    open_air = await make_event(db, place)
    await move(services.studio, place, open_air, Verb.PUBLISH)
    (zone,) = await zone_rows(db, open_air)
    held = await booking.reserve_places(services.lanes, db, buyer, open_air.id, zone["zone_id"], 2)
    assert (await replace(sale, seated=replace(sale.seated, event=open_air)).buy(buyer, held))[0] == "sold"
    there = await make_venue(db, place, max_capacity=500)

    async def change(event_id: UUID, *, has_consent: bool) -> None:
        await usecases.change_venue(
            services.studio,
            services.catalogue,
            lead,
            event_id,
            there.id,
            has_consent=has_consent,
            reason="a leak",
            version=None,
        )

    before = await everything_of(db, place.id)
    for event in (sale.event, open_air):
        assert await refused(change(event.id, has_consent=False)) == "consent_needed"
    assert await refused(change(sale.event.id, has_consent=True)) == "layout_of_other_venue"
    assert await everything_of(db, place.id) == before
    await change(open_air.id, has_consent=True)
    (fact,) = await facts_of(db, open_air, "event_venue_changed")
    assert fact["actor_id"] == lead.actor.user_id
    (zone,) = await zone_rows(db, open_air)
    assert (zone["sold"], zone["capacity"]) == (2, 500)
    assert await auditing.verify(db, organization_id=place.id) == []


@pytest.mark.req("TEST-10", "HOLD-23")
async def test_a_lapsed_hold_is_taken_over(sale: Sale, owner_conn: Connection) -> None:
    """Nobody need have noticed: the old one ends and the new one begins in one call, each with its fact and version."""
    first, second = sale.caller(), sale.caller()
    (old,) = await sale.hold(first, "S-A-1")
    await let_pass(owner_conn, old.hold.id)
    (new,) = await sale.hold(second, "S-A-1")
    told = [fact for fact in await facts_of(sale.db, sale.event) if fact["seat_id"] == sale.seat("S-A-1")]
    assert [(fact["kind"], fact["version"]) for fact in told] == [
        ("seat_reserved", 2),
        ("seat_hold_expired", 3),
        ("seat_reserved", 4),
    ]
    assert told[1]["data"] == {
        "reason": "ttl_expired",
        "hold_id": str(old.hold.id),
        "user_id": str(first.actor.user_id),
    }
    assert await statuses(sale) == ["expired", "active"]
    row = await sale.row("S-A-1")
    assert (row["hold_id"], row["held_by"], row["version"]) == (new.hold.id, second.actor.user_id, 4)
    assert await refused(booking.extend(sale.db, first, old.hold.id)) == "holds_expired"
    assert (await sale.buy(first, old))[0] == "holds_expired"
    await booking.release(sale.services.lanes, sale.db, first, old.hold.id)
    assert (await sale.row("S-A-1"))["hold_id"] == new.hold.id
    assert await auditing.verify(sale.db, organization_id=sale.place.id) == []


async def test_lapsed_places_make_room(services: Services, place: Organization, owner_conn: Connection) -> None:
    """Who asks for more than is left takes back what has lapsed; who asks for less leaves it to the reaper."""
    sale = await on_sale(services, place, layout=small_layout({"zones.2.capacity": 5}))
    old = await sale.hold_places(sale.caller(), 3)
    await let_pass(owner_conn, old.hold.id)
    await sale.hold_places(sale.caller(), 2)
    assert (await zone_rows(sale.db, sale.event))[2]["held"] == 5
    await sale.hold_places(sale.caller(), 3)
    assert (await zone_rows(sale.db, sale.event))[2]["held"] == 5
    assert await statuses(sale) == ["expired", "active", "active"]
    assert await refused(sale.hold_places(sale.caller(), 1)) == "block_at_capacity"
    assert await auditing.verify(sale.db, organization_id=place.id) == []


@pytest.mark.req("RSV-29", "TEL-11", "TEL-08")
async def test_the_reaper_tidies_up(sale: Sale, owner_conn: Connection, services: Services, logs: list[Any]) -> None:
    """Every few seconds the worker ends what has lapsed, counts it, and says how it went in four figures."""
    (pace_s,) = [loop.pace_s for loop in worker.loops(services) if loop.name == "reap_holds"]
    assert pace_s <= 5
    buyer = sale.caller()
    lapsed, _ = await sale.hold(buyer, "S-A-1", "S-A-2")
    places = await sale.hold_places(buyer, 2)
    await let_pass(owner_conn, lapsed.hold.id, places.hold.id)
    await registry.reap(sale.db, by=CLOCK)  # whatever other tests have left
    logs.clear()
    assert sorted(await statuses(sale)) == ["active", "expired", "expired"]
    assert (await sale.row("S-A-1"))["status"] == "available"
    assert (await zone_rows(sale.db, sale.event))[2]["held"] == 0
    assert len(await facts_of(sale.db, sale.event, "seat_hold_expired")) == 2
    (more,) = await sale.hold(buyer, "S-A-3")
    await let_pass(owner_conn, more.hold.id)
    expired, runs, tidied = ended("expired"), sample("reaper_seconds_count"), sample("reaper_holds_total")
    assert await registry.reap(sale.db, by=CLOCK) == 1
    assert (ended("expired"), sample("reaper_seconds_count"), sample("reaper_holds_total")) == (
        expired + 1,
        runs + 1,
        tidied + 1,
    )
    (line,) = [entry for entry in logs if entry["event"] == "reaper_run"]
    assert (line["expired_holds"], line["processed_successfully"], line["processed_failed"]) == (1, 1, 0)
    assert line["duration_ms"] > 0
    assert await registry.reap(sale.db, by=CLOCK) == 0


@pytest.mark.req("RSV-39", "TEST-17")
async def test_an_event_cancelled_while_an_ask_waits(sale: Sale, owner_conn: Connection) -> None:
    """The ask has been taken and waits for a lock; when it has it, the event is read anew, and nothing is held."""
    buyer = sale.caller()
    assert buyer.actor.user_id is not None
    async with owner_conn.transaction():
        await owner_conn.execute(
            "select pg_advisory_xact_lock(uuid_hash_extended($1, 0) # uuid_hash_extended($2, 1))",
            buyer.actor.user_id,
            sale.place.id,
        )
        asking = asyncio.create_task(sale.hold(buyer, "S-A-1"))
        await until_somebody_waits(owner_conn)
        await move(sale.services.studio, sale.place, sale.event, Verb.CANCEL)
    assert await refused(asking) == "event_unavailable"
    assert await sale.rows() == []


@pytest.mark.req("TEST-18", "RSV-39", "HOLD-26")
async def test_a_zone_that_shrinks_while_an_ask_waits(sale: Sale, owner_conn: Connection) -> None:
    """The places were there when it was asked; when the zone is locked they are not, and it is refused."""
    async with as_registry(owner_conn) as conn:
        await conn.execute("update event_zones set capacity = 3 where zone_id = $1", sale.zone())
        asking = asyncio.create_task(sale.hold_places(sale.caller(), 4))
        await until_somebody_waits(owner_conn)
    assert await refused(asking) == "block_at_capacity"
    assert await sale.rows() == []
    assert (await zone_rows(sale.db, sale.event))[2]["held"] == 0


async def until_somebody_waits(conn: Connection) -> None:
    """Until another session of this database waits for a lock that this one has."""
    async with asyncio.timeout(2):
        while not await conn.fetchval(
            "select exists (select from pg_stat_activity where pg_backend_pid() = any (pg_blocking_pids(pid)))"
        ):
            await asyncio.sleep(0.005)


@pytest.mark.req("AUD-02", "RSV-36")
async def test_every_refused_ask_is_on_record(sale: Sale, services: Services) -> None:
    """Gathered and written together, a hundred to a fact, with who asked for what and why not; granted ones are not."""
    owner = sale.caller()
    await sale.hold(owner, "S-A-1")
    others = [sale.caller() for _ in range(102)]
    said = await asyncio.gather(*(sale.hold(call, "S-A-1") for call in others), return_exceptions=True)
    assert {getattr(one, "code", None) for one in said} == {"seat_held_by_another_user"}
    assert await refused(sale.hold_places(others[0], 301)) == "block_at_capacity"
    assert await refused(sale.hold(others[1], "S-A-1", "S-A-2")) == "seats_refused"
    assert await facts_of(sale.db, sale.event, "seat_reserve_failed") == []
    await services.failures.flush()
    told = await facts_of(sale.db, sale.event, "seat_reserve_failed")
    assert [fact["data"]["count"] for fact in told] == [100, 4]
    attempts = [attempt for fact in told for attempt in fact["data"]["attempts"]]
    assert {attempt["user_id"] for attempt in attempts} == {str(call.actor.user_id) for call in others}
    assert {attempt["request_id"] for attempt in attempts} == {str(call.request_id) for call in others}
    assert attempts[102]["reason"] == "block_at_capacity"
    assert attempts[102]["zone_ids"] == [str(sale.zone())]
    assert attempts[103]["seat_ids"] == [str(sale.seat("S-A-1")), str(sale.seat("S-A-2"))]
    await services.failures.flush()
    assert len(await facts_of(sale.db, sale.event, "seat_reserve_failed")) == 2
    (pace_s,) = [loop.pace_s for loop in server.loops(services) if loop.name == "refusal_flush"]
    assert pace_s <= 1


@pytest.mark.req("AUD-02")
async def test_a_refusal_that_could_not_be_written_is_written_next_time(
    sale: Sale, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The database had no time for it: nothing of it is lost, and nothing is written twice."""
    await sale.hold(sale.caller(), "S-A-1")
    assert await refused(sale.hold(sale.caller(), "S-A-1")) == "seat_held_by_another_user"

    async def busy(*_: object) -> None:
        raise Busy

    with monkeypatch.context() as away:
        away.setattr(failures, "record_all", busy)
        await services.failures.flush()
    assert await facts_of(sale.db, sale.event, "seat_reserve_failed") == []
    for _ in range(2):
        await services.failures.flush()
    told = await facts_of(sale.db, sale.event, "seat_reserve_failed")
    assert [fact["data"]["count"] for fact in told] == [1]


@pytest.mark.req("AUD-02")
@pytest.mark.parametrize("why", [OutcomeUnknown(), Busy(), ZeroDivisionError()], ids=repr)
async def test_what_fails_at_one_event_keeps_no_other_off_the_record(
    services: Services, place: Organization, monkeypatch: pytest.MonkeyPatch, why: Exception
) -> None:
    """The refusals of the other events are written; those of that one next time, when it can be then."""
    sales = [await on_sale(services, place) for _ in range(3)]
    for sale in sales:
        await sale.hold(sale.caller(), "S-A-1")
        assert await refused(sale.hold(sale.caller(), "S-A-1")) == "seat_held_by_another_user"

    async def counts() -> list[int]:
        return [len(await facts_of(sale.db, sale.event, "seat_reserve_failed")) for sale in sales]

    async def fail_at_first(conn: Any, facts: Any) -> None:
        if facts[0].event_id == sales[0].event.id:
            raise why
        await record_all(conn, facts)

    with monkeypatch.context() as away:
        away.setattr(failures, "record_all", fail_at_first)
        await services.failures.flush()
    assert await counts() == [0, 1, 1]
    await services.failures.flush()
    assert await counts() == [0 if isinstance(why, ZeroDivisionError) else 1, 1, 1]


@pytest.mark.parametrize("token", ["\\u0000", "a\\u0000b", "a\\n", "\\u0085"])
async def test_a_basket_has_no_control_characters(sale: Sale, site: Site, token: str) -> None:
    """What PostgreSQL could not take is refused before it comes into a batch with others."""
    who = await make_person(sale.db, sale.place)
    bodies = {
        f"seats/{sale.seat('S-A-1')}/reserve": "",
        "holds": f', "seat_ids": ["{sale.seat("S-A-1")}"]',
        f"zones/{sale.zone()}/reserve": ', "quantity": 1',
    }
    for path, rest in bodies.items():
        answer = await site.client.post(
            f"/api/events/{sale.event.id}/{path}",
            content=f'{{"cart_token": "{token}"{rest}}}',
            headers={**who.headers, "content-type": "application/json"},
        )
        assert (answer.status_code, answer.json()["effect"]) == (400, "none"), answer.text
    assert await sale.rows() == []


@pytest.mark.req("AUD-08", "PUB-09", "RSV-30", "HOLD-25")
async def test_the_record_tells_the_whole_story(sale: Sale, owner_conn: Connection) -> None:
    """Whatever is done to a seat is a fact of its own, in order, with hold, person, time and organization."""
    one, two = sale.caller(), sale.caller()
    (held,) = await sale.hold(one, "S-A-1")
    await booking.extend(sale.db, one, held.hold.id)
    await booking.release(sale.services.lanes, sale.db, one, held.hold.id)
    (lapsed,) = await sale.hold(two, "S-A-1")
    await let_pass(owner_conn, held.hold.id, lapsed.hold.id)
    await registry.reap(sale.db, by=CLOCK)
    (bought,) = await sale.hold(one, "S-A-1")
    _, (ticket_id,) = await sale.buy(one, bought)
    await registry.void(sale.db, sale.place.id, sale.event.id, ticket_id, by=OPERATOR, reason="refunded")
    async with sale.db.transaction(sale.place.id) as conn:
        facts = await conn.fetch(
            "select * from journal where event_id = $1 and seat_id = $2 order by xid, seq",
            sale.event.id,
            sale.seat("S-A-1"),
        )
    assert [(fact["kind"], fact["version"]) for fact in facts] == [
        ("seat_reserved", 2),
        ("seat_hold_extended", 3),
        ("seat_hold_released", 4),
        ("seat_reserved", 5),
        ("seat_hold_expired", 6),
        ("seat_reserved", 7),
        ("seat_sold", 8),
        ("ticket_voided", 9),
    ]
    reserved = facts[0]
    assert (reserved["actor_id"], reserved["organization_id"]) == (one.actor.user_id, sale.place.id)
    assert reserved["recorded_at"] >= held.hold.created_at
    data = json.loads(reserved["data"])
    assert (data["hold_id"], data["source"]) == (str(held.hold.id), "web")
    assert datetime.fromisoformat(data["held_until"]) == held.hold.expires_at
    assert json.loads(facts[6]["data"])["ticket_id"] == str(ticket_id)
    assert [row["status"] for row in await sale.rows()] == ["cancelled", "expired", "converted"]
    assert await auditing.verify(sale.db, organization_id=sale.place.id) == []


@pytest.mark.req("HOLD-22")
async def test_what_is_not_committed_is_not_told(sale: Sale, app_conn: Connection) -> None:
    """A fact and its hold are one transaction: undone together, seen together by whoever tells the world."""
    item, ask_id = new_id(), new_id()
    values = [
        sale.place.id, sale.event.id, "{0}", f"{{{sale.seat('S-A-1')}}}", [None], [1], f"{{{new_id()}}}", f"{{{item}}}",
        f"{{{ask_id}}}", "{NULL}", [None], ["cart"], ["web"], ["customer"], [False], [], [], [], [], None,
    ]  # fmt: skip
    undone = app_conn.transaction()
    await undone.start()
    rows = await app_conn.fetch(store.Q["reserve_items"], *values)
    assert [row["verdict"] for row in rows] == ["created"]
    assert await sale.rows() == []
    assert await facts_of(sale.db, sale.event, "seat_reserved") == []
    await undone.rollback()
    assert await sale.rows() == []
    assert (await sale.row("S-A-1"))["version"] == 1
    await app_conn.fetch(store.Q["reserve_items"], *values)
    assert [row["id"] for row in await sale.rows()] == [item]
    assert len(await facts_of(sale.db, sale.event, "seat_reserved")) == 1


def line_of(logs: list[Any], event: str) -> dict[str, Any]:
    (found,) = [entry for entry in logs if entry["event"] == event]
    return dict(found)


@pytest.mark.req("AUD-12", "AUD-13", "EXT-09", "TEL-07")
async def test_what_is_logged_of_a_seat(services: Services, place: Organization, logs: list[Any]) -> None:
    """One line for each change, with whose, where, from which state to which, and why."""
    sale = await on_sale(services, place, overlay=Overlay(seating_overrides={"default_hold_ttl_minutes": 15}))
    buyer = sale.caller()
    at = {"org_id": str(place.id), "event_id": str(sale.event.id), "seat_id": str(sale.seat("S-A-1"))}
    (held,) = await sale.hold(buyer, "S-A-1")
    created = line_of(logs, "seat_holds_created")
    assert (created["org_id"], created["event_id"]) == (place.id, sale.event.id)
    (one,) = created["holds"]
    assert (one["hold_id"], one["seat_id"], one["user_id"]) == (held.hold.id, sale.seat("S-A-1"), buyer.actor.user_id)
    assert one["held_until"] == held.hold.expires_at
    await sale.hold(buyer, "S-A-1")
    assert line_of(logs, "seat_holds_created") == created  # nothing was created again
    longer, count = ended("extended"), ended("released")
    await booking.extend(sale.db, buyer, held.hold.id)
    told = line_of(logs, "seat_hold_extended")
    assert told.items() >= {**at, "status_before": "held", "status_after": "held", "new_expiry_minutes": 20}.items()
    assert ended("extended") == longer + 1
    await booking.release(sale.services.lanes, sale.db, buyer, held.hold.id)
    told = line_of(logs, "seat_hold_released")
    moved = {"status_before": "held", "status_after": "available", "reason": "released_by_owner"}
    assert told.items() >= {**at, **moved}.items()
    assert ended("released") == count + 1
    (held,) = await sale.hold(buyer, "S-A-1")
    await sale.block("S-A-1", reason="a camera")
    moved = {"status_before": "held", "status_after": "blocked", "reason": "a camera"}
    assert line_of(logs, "seat_blocked").items() >= {**at, **moved}.items()
    await sale.block("S-A-1", is_blocked=False)
    moved = {"status_before": "blocked", "status_after": "available"}
    assert line_of(logs, "seat_unblocked").items() >= {**at, **moved}.items()


@pytest.mark.req("TEL-09")
async def test_what_is_logged_and_counted_of_a_sale(sale: Sale, logs: list[Any]) -> None:
    """Each ticket a line with its seat; the counter has the holds and no ids."""
    buyer, sold = sale.caller(), ended("converted_to_ticket")
    held = await sale.hold(buyer, "S-A-1", "S-A-2")
    places = await sale.hold_places(buyer, 2)
    said, tickets = await sale.buy(buyer, *held, places)
    assert said == "sold"
    lines = [entry for entry in logs if entry["event"] == "seat_sold"]
    assert {line["ticket_id"] for line in lines} == {str(ticket) for ticket in tickets}
    seats = {line["seat_id"] for line in lines}
    assert seats == {str(sale.seat("S-A-1")), str(sale.seat("S-A-2")), None}
    assert {(line["status_before"], line["status_after"]) for line in lines} == {("held", "sold")}
    assert ended("converted_to_ticket") == sold + 3


@pytest.mark.req("TEL-01", "TEL-02", "TEL-03", "TEL-04")
async def test_every_ask_is_counted_by_what_came_of_it(sale: Sale, monkeypatch: pytest.MonkeyPatch) -> None:
    """Granted, taken by another, refused, failed: together they are the attempts; how long they took beside it."""
    words = ("created", "existing", "seat_held_by_another_user", "event_unavailable", "busy", "seat_reservation_failed")
    before = {word: asked(word) for word in (*words, "error")}
    timed = sample("seating_hold_seconds_count")
    one, two = sale.caller(), sale.caller()
    await sale.hold(one, "S-A-1")
    await sale.hold(one, "S-A-1")
    for _ in range(2):
        assert await refused(sale.hold(two, "S-A-1")) == "seat_held_by_another_user"
    assert sample("seating_hold_seconds_count") == timed + 4
    for failure, code in ((Busy(), "busy"), (LostRace(), "seat_reservation_failed")):
        with monkeypatch.context() as patched:
            patched.setattr(store, "reserve_batch", failing(failure))
            assert await refused(sale.hold(two, "S-A-2")) == code
    with monkeypatch.context() as patched, pytest.raises(ZeroDivisionError):
        patched.setattr(store, "reserve_batch", failing(ZeroDivisionError()))
        await sale.hold(two, "S-A-2")
    await move(sale.services.studio, sale.place, sale.event, Verb.CANCEL)
    assert await refused(sale.hold(two, "S-A-2")) == "event_unavailable"
    counted = {word: asked(word) - before[word] for word in before}
    assert counted == {**dict.fromkeys(before, 1), "seat_held_by_another_user": 2}


def failing(why: Exception) -> Any:
    async def fail(*_: object, **__: object) -> None:
        raise why

    return fail


@pytest.mark.req("TEL-10", "EXT-08")
async def test_an_extension_that_fails_is_counted(
    sale: Sale, owner_conn: Connection, monkeypatch: pytest.MonkeyPatch, logs: list[Any]
) -> None:
    """Because it came too late, or because the database failed: two words, and an error in the log for the second."""
    buyer = sale.caller()
    held, other = await sale.hold(buyer, "S-A-1", "S-A-2")
    late, failed = ended("expired_before_checkout"), ended("extension_failed")
    with monkeypatch.context() as patched:
        patched.setattr(store, "extend_holds", failing(asyncpg.DiskFullError("no room")))
        with pytest.raises(asyncpg.DiskFullError):
            await booking.extend(sale.db, buyer, other.hold.id)
    assert line_of(logs, "seat_hold_extension_failed")["log_level"] == "error"
    await let_pass(owner_conn, held.hold.id)
    assert await refused(booking.extend(sale.db, buyer, held.hold.id)) == "holds_expired"
    assert (ended("expired_before_checkout"), ended("extension_failed")) == (late + 1, failed + 1)


@pytest.mark.req("TEL-14")
async def test_prometheus_reads_what_became_of_holds(sale: Sale, owner_conn: Connection) -> None:
    """Attempts, successes, conflicts and lapses are on the page, by words and never by ids."""
    one, two = sale.caller(), sale.caller()
    (held,) = await sale.hold(one, "S-A-1")
    assert await refused(sale.hold(two, "S-A-1")) == "seat_held_by_another_user"
    await let_pass(owner_conn, held.hold.id)
    await registry.reap(sale.db, by=CLOCK)
    page = metrics.render()[0].decode()
    for line in (
        'voelgoedevents_seating_hold_asks_total{outcome="created"}',
        'voelgoedevents_seating_hold_asks_total{outcome="seat_held_by_another_user"}',
        'voelgoedevents_seating_hold_ends_total{outcome="expired"}',
        'voelgoedevents_reaper_runs_total{outcome="done"}',
    ):
        assert line in page
    for secret in (one.actor.user_id, two.actor.user_id, held.hold.id, sale.event.id, sale.place.id):
        assert str(secret) not in page


@pytest.mark.req("HOLD-21", "RSV-21")
async def test_hold_and_seat_stand_or_fall_together(sale: Sale, owner_conn: Connection) -> None:
    """When the row of the hold cannot be written, the seat stays as it was: nothing, or both."""
    before = await everything_of(sale.db, sale.place.id)
    wrong = structs.replace(sale.caller(), ip=None)
    with pytest.raises(asyncpg.CheckViolationError):
        await sale.hold(wrong, "S-A-1", "S-A-2", cart_token="x" * 256)
    with pytest.raises(asyncpg.CheckViolationError):
        await sale.hold_places(wrong, 2, cart_token="x" * 256)
    assert await everything_of(sale.db, sale.place.id) == before
    await sale.hold(wrong, "S-A-1", "S-A-2")
    rows = await sale.rows()
    seats = [await sale.row(code) for code in ("S-A-1", "S-A-2")]
    assert {row["id"] for row in rows} == {seat["hold_id"] for seat in seats}


@pytest.mark.req("TEN-05", "TEN-11")
async def test_a_hold_is_the_sessions_organizations(db: Database, sale: Sale) -> None:
    """Whoever is of another organization holds nothing here, even if they know every id; the row says whose it is."""
    other = await make_organization(db)
    lanes, seat = sale.services.lanes, sale.seat("S-A-1")
    stranger: Call = call_of(other, Role.OWNER)
    before = await everything_of(db, sale.place.id)
    assert await refused(booking.reserve_seats(lanes, db, stranger, sale.event.id, [seat])) == "event_not_found"
    assert (
        await refused(booking.reserve_places(lanes, db, stranger, sale.event.id, sale.zone(), 1)) == "event_not_found"
    )
    assert await everything_of(db, sale.place.id) == before
    assert await everything_of(db, other.id) == [[], [], [], [], [], ["organization_created"]]
    await sale.hold(sale.caller(), "S-A-1")
    (row,) = await sale.rows()
    assert row["organization_id"] == sale.place.id


async def test_late_money_finds_its_seat_or_goes_back(sale: Sale, owner_conn: Connection) -> None:
    """A lapsed hold whose seat nobody took is made anew and sold in one breath; otherwise nothing is sold."""
    buyer, rival = sale.caller(), sale.caller()
    free, taken = await sale.hold(buyer, "S-A-1", "S-A-2")
    await let_pass(owner_conn, free.hold.id, taken.hold.id)
    await sale.hold(rival, "S-A-2")
    assert (await sale.buy(buyer, taken, is_paid=True))[0] == "holds_expired"
    assert (await sale.buy(buyer, free))[0] == "holds_expired"
    assert (await sale.buy(buyer, free, is_paid=True))[0] == "sold"
    rows = {row["source"]: row["status"] for row in await sale.rows() if row["seat_id"] == sale.seat("S-A-1")}
    assert rows == {"web": "expired", "late_payment": "converted"}
    assert (await sale.row("S-A-1"))["status"] == "sold"
    assert await auditing.verify(sale.db, organization_id=sale.place.id) == []


async def test_the_end_of_a_hold_is_by_one_clock(sale: Sale, app_conn: Connection) -> None:
    """PostgreSQL's: what is told lies between what it said before and after, however wrong this machine's is."""
    before = await app_conn.fetchval("select clock_timestamp()")
    (held,) = await sale.hold(sale.caller(), "S-A-1")
    after = await app_conn.fetchval("select clock_timestamp()")
    assert before <= held.hold.created_at <= after
    assert held.hold.created_at <= held.hold.now <= after
    assert UUID(str(held.hold.id)).version == 7


async def test_a_seat_named_again_and_again_is_one_answer_each(sale: Sale) -> None:
    """Whoever blocks a seat three times in one ask is told three times, not nine."""
    named, is_block = [sale.seat("S-A-1")] * 3, True
    rows = await store.block_seats(
        sale.db.call, sale.place.id, sale.event.id, named, is_block, None, new_id(), None, "in a test"
    )
    assert [row["seat_id"] for row in rows] == named


async def test_who_leaves_a_batch_by_a_key_takes_nobody_along(sale: Sale, owner_conn: Connection) -> None:
    """An ask that was answered before leaves the batch; another for the same seat, which is free again, gets it."""
    origin = Origin()
    await origins.remember(sale.db, sale.place.id, [origin])

    def ask(key: str | None = None) -> Ask:
        return Ask(
            organization_id=sale.place.id,
            event_id=sale.event.id,
            user_id=new_id(),
            role=Role.CUSTOMER,
            is_staff=False,
            items=(Item(new_id(), seat_id=sale.seat("S-A-1")),),
            cart_token="cart",
            source="web",
            request_id=new_id(),
            origin=origin,
            ip=None,
            key=key,
            fingerprint=b"same" if key else None,
        )

    first = ask("once")
    ((given,),) = await store.reserve_batch(sale.db.call, [first])
    assert given.hold_id is not None
    await let_pass(owner_conn, given.hold_id)
    await registry.reap(sale.db, by=OPERATOR)
    (again,), (other,) = await store.reserve_batch(sale.db.call, [first, ask()])
    assert (again.outcome, again.hold_id) == (Outcome.REPEATED, given.hold_id)
    assert other.outcome is Outcome.CREATED
