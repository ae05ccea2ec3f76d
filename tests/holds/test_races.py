"""Several people change one event's places at once, on connections of their own: one outcome, whole and explained."""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, Final

import pytest

from tests.holds.expected import NOTHING, require_agreement, require_ledger, stored_places
from tests.make.events import call_of, make_event, make_venue
from tests.make.layouts import changed, encoded
from tests.make.seating import (
    Seated,
    active_pin,
    event_layout,
    event_now,
    facts_of,
    move,
    offered,
    publish,
    save,
    seated_event,
    unpublish,
    zone_rows,
)
from voelgoed.accounts.model import Organization
from voelgoed.db import Connection, Database
from voelgoed.errors import DomainError
from voelgoed.events import usecases as events
from voelgoed.events.model import Event, Status, Venue, Verb
from voelgoed.holds import inventory, usecases
from voelgoed.holds.inventory import Wanted
from voelgoed.seating.document import read_layout
from voelgoed.seating.model import Layout
from voelgoed.seating.overlay import Overlay, ZoneOverride
from voelgoed.seating.studio import Studio
from voelgoed.wiring import Services

ROUNDS: Final = 30
WAIT_S: Final = 20


def larger() -> Layout:
    """The small hall with one more seat."""
    return read_layout(encoded(changed({"zones.0.rows.0.seats.4": {"number": 5, "x": 250, "y": 100}})))


@pytest.fixture
async def venue(db: Database, place: Organization) -> Venue:
    return await make_venue(db, place)


@pytest.fixture
async def draft(db: Database, studio: Studio, place: Organization, venue: Venue) -> Seated:
    return await seated_event(db, studio, place, venue=venue)


@pytest.fixture(params=["one piece", "pieces"])
def pieces(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Small halls as they are, and as if they were giants."""
    if request.param == "pieces":
        monkeypatch.setattr(inventory, "SEATS_PER_PIECE", 4)


async def race(seed: int, *works: Awaitable[Any]) -> list[Any]:
    """What came of each: all begin at once, in an order and a few turns apart that the seed decides."""
    chance = random.Random(seed)
    ready = asyncio.Barrier(len(works))

    async def run(work: Awaitable[Any], turns: int) -> Any:
        await ready.wait()
        for _ in range(turns):
            await asyncio.sleep(0)
        try:
            return await work
        except DomainError as refused:
            return refused

    runs = [run(work, chance.choice([0, 0, 1, 5, 20])) for work in works]
    order = chance.sample(range(len(works)), len(works))
    async with asyncio.timeout(WAIT_S):
        done = await asyncio.gather(*(runs[place] for place in order))
    return [done[order.index(place)] for place in range(len(works))]


def codes(outcomes: Sequence[Any]) -> list[str | None]:
    """How each was refused, None where it was not."""
    return [one.code if isinstance(one, DomainError) else None for one in outcomes]


async def fresh(studio: Studio, place: Organization, made: Seated) -> Seated:
    """Another draft in the same hall with the same prices."""
    event = await make_event(studio.db, place, made.venue)
    await save(studio, event, made.wanted())
    return replace(made, event=event)


BLOCKED = Overlay(blocked_seats=("S-A-1", "S-B-3", "V-A-2"), zone_overrides={"P": ZoneOverride(capacity=100)})
OFF = Overlay(disabled_zones=("V", "P"), blocked_seats=("S-A-4",))


@pytest.mark.usefixtures("pieces")
async def test_a_publication_and_a_save(studio: Studio, place: Organization, draft: Seated) -> None:
    """Both happen, or one is told: the places are those of what was saved last."""
    for number in range(ROUNDS):
        made = await fresh(studio, place, draft)
        outcomes = await race(
            number,
            publish(studio, made.event),
            save(studio, made.event, made.wanted(BLOCKED)),
        )
        assert set(codes(outcomes)) <= {None, "event_changed", "seating_changed", "busy"}
        assert None in codes(outcomes)
        event = await require_agreement(studio, made.event)
        assert (event.status is Status.PUBLISHED) == (codes(outcomes)[0] is None)
        assert ((await event_layout(studio.db, event)).version == 2) == (codes(outcomes)[1] is None)
        await require_ledger(studio.db, event)


@pytest.mark.usefixtures("pieces")
async def test_a_publication_and_another_version(studio: Studio, place: Organization, draft: Seated) -> None:
    """The event has the places of one of them, and says which."""
    second = await active_pin(studio, draft.venue, larger())
    for number in range(ROUNDS):
        made = await fresh(studio, place, draft)
        outcomes = await race(
            number,
            publish(studio, made.event),
            save(studio, made.event, Wanted(pin=second, overrides={})),
        )
        assert set(codes(outcomes)) <= {None, "event_changed", "seating_changed", "busy"}
        assert None in codes(outcomes)
        event = await require_agreement(studio, made.event)
        assert (event.status is Status.PUBLISHED) == (codes(outcomes)[0] is None)
        assert ((await event_layout(studio.db, event)).pin == second) == (codes(outcomes)[1] is None)
        await require_ledger(studio.db, event)


@pytest.mark.usefixtures("pieces")
async def test_publications_at_once(studio: Studio, place: Organization, draft: Seated) -> None:
    """One of four publishes; its places are there once, and so are the facts."""
    for number in range(ROUNDS):
        made = await fresh(studio, place, draft)
        outcomes = await race(number, *(publish(studio, made.event) for _ in range(4)))
        assert set(codes(outcomes)) <= {None, "event_changed", "event_move_refused", "busy"}
        assert codes(outcomes).count(None) == 1
        event = await require_agreement(studio, made.event)
        assert (event.status, event.inventory_epoch) == (Status.PUBLISHED, 1)
        assert len(await facts_of(studio.db, event, "event_inventory_created")) == 1
        assert len(await facts_of(studio.db, event, "event_status_changed")) == 1


async def test_two_saves_by_who_saw_the_same(studio: Studio, place: Organization, draft: Seated) -> None:
    """One is saved, the other is told that something changed; of a draft and of what is sold."""
    for number in range(ROUNDS):
        made = await fresh(studio, place, draft)
        if number % 2:
            await publish(studio, made.event)
        outcomes = await race(
            number,
            save(studio, made.event, made.wanted(BLOCKED), seen=1),
            save(studio, made.event, made.wanted(OFF), seen=1),
        )
        assert codes(outcomes) in ([None, "seating_changed"], ["seating_changed", None])
        row = await event_layout(studio.db, made.event)
        kept = (BLOCKED, OFF)[codes(outcomes).index(None)]
        assert (row.version, row.overrides) == (2, made.wanted(kept).overrides)
        await require_agreement(studio, made.event)
        await require_ledger(studio.db, made.event)


async def test_saves_by_people_who_do_not_look(studio: Studio, place: Organization, draft: Seated) -> None:
    """Each is whole or refused; the places are those of the one that is stored."""
    for number in range(ROUNDS):
        made = await fresh(studio, place, draft)
        await publish(studio, made.event)
        words = (BLOCKED, OFF, Overlay(), Overlay(disabled_zones=("S",)))
        outcomes = await race(number, *(save(studio, made.event, made.wanted(word)) for word in words))
        assert set(codes(outcomes)) <= {None, "seating_changed", "busy"}
        await require_agreement(studio, made.event)
        await require_ledger(studio.db, made.event)


@pytest.mark.usefixtures("pieces")
@pytest.mark.parametrize("status", ["draft", "published", "postponed"])
async def test_publish_unpublish_and_save(studio: Studio, place: Organization, draft: Seated, status: str) -> None:
    """Whatever order comes about, status and places agree, and every change is told."""
    for number in range(ROUNDS):
        made = await fresh(studio, place, draft)
        if status != "draft":
            await publish(studio, made.event)
        if status == "postponed":
            await move(studio, place, made.event, Verb.POSTPONE)
        outcomes = await race(
            number,
            publish(studio, made.event),
            unpublish(studio, made.event),
            save(studio, made.event, made.wanted(BLOCKED)),
            publish(studio, made.event),
            unpublish(studio, made.event),
        )
        known = {None, "event_changed", "event_move_refused", "seating_changed", "busy"}
        assert set(codes(outcomes)) <= known
        event = await require_agreement(studio, made.event)
        await require_ledger(studio.db, event)
        steps = [fact["data"]["new_status"] for fact in await facts_of(studio.db, event, "event_status_changed")]
        assert (steps or ["draft"])[-1] == event.status
        if event.status is Status.DRAFT:
            await publish(studio, event)
            await require_agreement(studio, event)


async def test_a_save_and_another_date_or_capacity(
    services: Services, studio: Studio, place: Organization, draft: Seated
) -> None:
    """Edits of the event, its cancellation and its seating wait for each other, and nobody in a circle."""

    def edit(event: Event, capacity: int) -> Awaitable[Any]:
        fields = {"capacity": capacity}
        return usecases.update_event(studio, services.catalogue, call_of(place), event.id, fields, version=None)

    for number in range(ROUNDS):
        made = await fresh(studio, place, draft)
        await publish(studio, made.event)
        outcomes = await race(
            number,
            save(studio, made.event, made.wanted(BLOCKED)),
            edit(made.event, 320),
            edit(made.event, 150),
            unpublish(studio, made.event),
        )
        known = {None, "event_changed", "seating_changed", "seating_invalid", "capacity_exceeded", "busy"}
        assert set(codes(outcomes)) <= known | {"event_move_refused"}
        event = await require_agreement(studio, made.event)
        if event.status is Status.PUBLISHED and event.capacity is not None:
            assert sum(zone.view.place_count for zone in (await offered(studio.db, event)).values()) <= event.capacity


async def test_a_deletion_and_a_publication(
    services: Services, studio: Studio, place: Organization, draft: Seated
) -> None:
    """Either there is a published event with its places, or neither event nor places."""
    call = call_of(place)
    for number in range(ROUNDS):
        made = await fresh(studio, place, draft)
        outcomes = await race(
            number,
            publish(studio, made.event),
            usecases.delete_event(studio, services.catalogue, call, made.event.id, version=None),
            save(studio, made.event, made.wanted(OFF)),
        )
        known = {None, "event_not_found", "event_in_use", "event_changed", "seating_changed", "busy"}
        assert set(codes(outcomes)) <= known
        if codes(outcomes)[1] is None:
            assert codes(outcomes)[0] is not None
            assert await stored_places(studio.db, made.event) == NOTHING
        else:
            await require_agreement(studio, made.event)


async def test_a_venue_becomes_smaller_while_an_event_is_published(
    services: Services, studio: Studio, db: Database, place: Organization
) -> None:
    """One of the two is refused, or the venue still holds what is offered."""
    call = call_of(place)
    venue = await make_venue(db, place, max_capacity=1_000)

    def shrink(to: int) -> Awaitable[Any]:
        return events.update_venue(db, services.catalogue, call, venue.id, {"max_capacity": to}, version=None)

    for number in range(ROUNDS):
        event = await make_event(db, place, venue)
        outcomes = await race(number, publish(studio, event), shrink(900))
        assert set(codes(outcomes)) <= {None, "capacity_exceeded", "seating_invalid", "event_changed", "busy"}
        found = await event_now(db, event)
        room = (await events.get_venue(db, call, venue.id)).max_capacity
        places = sum(row["capacity"] - row["blocked"] for row in await zone_rows(db, event))
        assert (places > 0) == (found.status is Status.PUBLISHED)
        assert places <= room
        if found.status is Status.PUBLISHED:
            await unpublish(studio, event)
        await shrink(1_000)


@asynccontextmanager
async def event_locked(owner: Connection, event: Event) -> AsyncIterator[None]:
    """Somebody has the event in hand, so that whoever wants to change it queues up behind them."""
    async with owner.transaction():
        await owner.execute("select set_config('app.scope', 'system', true)")
        await owner.fetchval("select id from events where id = $1 for update", event.id)
        yield


async def until_waiting(conn: Connection, count: int) -> None:
    """So many of this database's transactions wait for a lock."""
    asked = (
        "select count(*) from pg_stat_activity"
        " where datname = current_database() and cardinality(pg_blocking_pids(pid)) > 0"
    )
    async with asyncio.timeout(1.5):  # their own patience is two seconds
        while await conn.fetchval(asked) < count:
            await asyncio.sleep(0.005)


async def outcome(work: Awaitable[Any]) -> Any:
    try:
        return await work
    except DomainError as refused:
        return refused


async def test_who_waits_to_publish_does_not_publish_without_places(
    owner_conn: Connection, studio: Studio, place: Organization, draft: Seated
) -> None:
    """The event was published when they looked, and is a draft without places when it is their turn."""
    event = await publish(studio, draft.event)
    async with event_locked(owner_conn, event):
        first = asyncio.create_task(outcome(unpublish(studio, event)))
        await until_waiting(owner_conn, 1)
        second = asyncio.create_task(outcome(publish(studio, event)))
        await until_waiting(owner_conn, 2)
    assert codes([await first]) == [None]
    said = codes([await second])
    event = await require_agreement(studio, event)
    assert (event.status is Status.PUBLISHED) == (said == [None])
    await require_ledger(studio.db, event)


async def test_who_waits_to_unpublish_leaves_no_places_behind(
    owner_conn: Connection, studio: Studio, place: Organization, draft: Seated
) -> None:
    """The event was postponed when they looked, and is published when it is their turn."""
    event = await publish(studio, draft.event)
    event = await move(studio, place, event, Verb.POSTPONE)
    async with event_locked(owner_conn, event):
        first = asyncio.create_task(outcome(publish(studio, event)))
        await until_waiting(owner_conn, 1)
        second = asyncio.create_task(outcome(unpublish(studio, event)))
        await until_waiting(owner_conn, 2)
    assert codes([await first]) == [None]
    said = codes([await second])
    event = await require_agreement(studio, event)
    assert (event.status is Status.DRAFT) == (said == [None])
    event = await publish(studio, event) if event.status is Status.DRAFT else event
    await require_agreement(studio, event)
