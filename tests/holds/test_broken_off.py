"""A large hall is written in pieces: broken off, overtaken or changed in the middle, nobody ever sees half of it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

import pytest

from tests.holds.expected import NOTHING, require_agreement, stored_places
from tests.make.events import call_of
from tests.make.layouts import changed, encoded
from tests.make.seating import (
    Seated,
    active_pin,
    event_layout,
    event_now,
    facts_of,
    move,
    next_pin,
    publish,
    save,
    seated_event,
)
from voelgoed.accounts.model import Organization, Role
from voelgoed.db import Conn, Connection, Database
from voelgoed.errors import DomainError
from voelgoed.events.model import OPERATOR, Event, Status, Verb
from voelgoed.events.refusals import EventChanged
from voelgoed.holds import inventory, store, usecases
from voelgoed.holds.inventory import Wanted
from voelgoed.holds.model import SeatFilter
from voelgoed.ids import OrganizationId
from voelgoed.seating import policies
from voelgoed.seating.document import read_layout
from voelgoed.seating.model import Pin
from voelgoed.seating.overlay import Overlay
from voelgoed.seating.refusals import LayoutNotActive
from voelgoed.seating.studio import Studio
from voelgoed.ticketing import offering
from voelgoed.wiring import Services

WAIT_S: Final = 20
PIECES: Final = 4  # of the small hall's 13 seats, the last one with a single seat

pytestmark = pytest.mark.usefixtures("small_pieces")


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if a small hall were a giant."""
    monkeypatch.setattr(inventory, "SEATS_PER_PIECE", 4)


@pytest.fixture
async def draft(db: Database, studio: Studio, place: Organization) -> Seated:
    return await seated_event(db, studio, place)


class Gate:
    """Stops a task between two of its transactions, after one that did something, until it is let on."""

    def __init__(self, after: str, *, times: int = 1) -> None:
        self.after = after
        self.times = times
        self.task: asyncio.Task[Any] | None = None
        self.reached = asyncio.Event()
        self.opened = asyncio.Event()

    async def start(self, work: Awaitable[Any]) -> None:
        """Begin the work, up to the gate."""
        self.task = asyncio.ensure_future(outcome(work))
        await asyncio.wait_for(self.reached.wait(), WAIT_S)

    async def finish(self) -> str | None:
        """Let it on; how it was refused, if it was."""
        assert self.task is not None
        self.opened.set()
        return code(await asyncio.wait_for(self.task, WAIT_S))

    async def passed(self, did: str) -> None:
        if asyncio.current_task() is not self.task or did != self.after or self.opened.is_set():
            return
        self.times -= 1
        if self.times == 0:
            self.reached.set()
            await self.opened.wait()


Gates = Callable[..., Gate]


@pytest.fixture
def gates(studio: Studio, monkeypatch: pytest.MonkeyPatch) -> Gates:
    """Makes gates, and lets transactions of this studio pass by them."""
    made: list[Gate] = []
    did: dict[Any, str] = {}
    begin, clear, add = studio.db.transaction, store.clear_seats, store.add_seats

    async def noting_clear(*given: Any) -> int:
        did[asyncio.current_task()] = "clear"
        return await clear(*given)

    async def noting_add(*given: Any) -> None:
        did[asyncio.current_task()] = "add"
        await add(*given)

    @asynccontextmanager
    async def passing(organization_id: OrganizationId) -> AsyncIterator[Conn]:
        async with begin(organization_id) as conn:
            yield conn
        for gate in made:
            await gate.passed(did.get(asyncio.current_task(), "look"))

    def make(after: str, *, times: int = 1) -> Gate:
        made.append(Gate(after, times=times))
        return made[-1]

    monkeypatch.setattr(store, "clear_seats", noting_clear)
    monkeypatch.setattr(store, "add_seats", noting_add)
    monkeypatch.setattr(studio.db, "transaction", passing)
    return make


async def outcome(work: Awaitable[Any]) -> Any:
    try:
        return await work
    except DomainError as refused:
        return refused


def code(came: Any) -> str | None:
    return came.code if isinstance(came, DomainError) else None


async def break_off(studio: Studio, gates: Gates, event: Event, *, pieces: int = PIECES - 1) -> None:
    """Let a publication be cancelled after so many pieces, as when its process is told to stop."""
    gate = gates("add", times=pieces)
    await gate.start(publish(studio, event))
    assert gate.task is not None
    gate.task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await gate.task
    gate.opened.set()


async def seats_seen(services: Services, place: Organization, event: Event) -> list[str]:
    """What the list of seats shows to the event's own people."""
    page = await offering.list_seats(
        services.studio, services.catalogue, call_of(place), event.id, SeatFilter(), cursor=None, limit=100
    )
    return [str(one.seat.status) for one in page.items]


async def grow_old(owner: Connection, event: Event) -> None:
    """As if the publication had been begun two hours ago."""
    await owner.execute("select set_config('app.scope', 'system', false)")
    await owner.execute(
        "update event_layouts set updated_at = now() - interval '2 hours' where event_id = $1", event.id
    )


@pytest.mark.parametrize("pieces", [1, 2, 3])
async def test_broken_off_it_is_a_draft_that_can_be_published(
    services: Services, studio: Studio, place: Organization, draft: Seated, gates: Gates, pieces: int
) -> None:
    """Nobody sees its seats; published again it has all of them, once."""
    await break_off(studio, gates, draft.event, pieces=pieces)
    event = await event_now(studio.db, draft.event)
    assert (event.status, event.inventory_epoch, event.version) == (Status.DRAFT, 0, draft.event.version)
    left = await stored_places(studio.db, event)
    assert (len(left.seats), left.zones) == (4 * pieces, [])
    assert await facts_of(studio.db, event, "event_inventory_created", "event_status_changed") == []
    assert await seats_seen(services, place, event) == ["available"] * 13  # as it would be, not as it is stored
    async with studio.db.transaction(place.id) as conn:
        assert not await inventory.is_touched(conn, place.id, event.id)
    event = await publish(studio, event)
    assert event.inventory_epoch == 1
    await require_agreement(studio, event)


async def test_what_is_left_is_tidied_away_after_an_hour(
    owner_conn: Connection, studio: Studio, draft: Seated, gates: Gates
) -> None:
    """Not before: somebody may still be at it."""
    await break_off(studio, gates, draft.event)
    await inventory.clear_broken_off(studio.db)
    assert len((await stored_places(studio.db, draft.event)).seats) == 12
    await grow_old(owner_conn, draft.event)
    assert await inventory.clear_broken_off(studio.db) == 1
    assert await stored_places(studio.db, draft.event) == NOTHING
    assert (await event_layout(studio.db, draft.event)).making is None
    assert await inventory.clear_broken_off(studio.db) == 0
    await publish(studio, draft.event)
    await require_agreement(studio, draft.event)


async def test_tidying_leaves_a_published_event_alone(owner_conn: Connection, studio: Studio, draft: Seated) -> None:
    """Even one whose row says that somebody is at it."""
    event = await publish(studio, draft.event)
    await owner_conn.execute("select set_config('app.scope', 'system', false)")
    await owner_conn.execute("update event_layouts set making = gen_random_uuid() where event_id = $1", event.id)
    await grow_old(owner_conn, event)
    await inventory.clear_broken_off(studio.db)
    await require_agreement(studio, event)


async def test_a_slow_publisher_is_told_that_it_was_tidied_away(
    owner_conn: Connection, studio: Studio, draft: Seated, gates: Gates
) -> None:
    """It took so long that it was taken for one that was broken off; nothing of it is left."""
    slow = gates("add", times=2)
    await slow.start(publish(studio, draft.event))
    await grow_old(owner_conn, draft.event)
    assert await inventory.clear_broken_off(studio.db) == 1
    assert await slow.finish() == "event_changed"
    assert await stored_places(studio.db, draft.event) == NOTHING
    assert (await event_now(studio.db, draft.event)).status is Status.DRAFT


@pytest.mark.parametrize("who", ["publisher", "tidier"])
async def test_who_was_overtaken_removes_nothing_of_the_other(
    studio: Studio, draft: Seated, gates: Gates, who: str
) -> None:
    """One begins to clear what was left, another takes over and writes its pieces: the first lets them be."""
    await break_off(studio, gates, draft.event)
    clearing, writing = gates("clear"), gates("add", times=2)
    if who == "publisher":
        await clearing.start(publish(studio, draft.event))
    else:
        await clearing.start(inventory.sweep(studio.db, draft.organization_id, draft.event.id))
    await writing.start(publish(studio, draft.event))
    assert await clearing.finish() == ("event_changed" if who == "publisher" else None)
    assert await writing.finish() is None
    await require_agreement(studio, draft.event)


async def test_of_two_publishers_the_later_wins(studio: Studio, draft: Seated, gates: Gates) -> None:
    """The one that had begun before is told, and what it wrote is gone."""
    first = gates("add", times=2)
    await first.start(publish(studio, draft.event))
    event = await publish(studio, draft.event)
    assert await first.finish() == "event_changed"
    assert event.inventory_epoch == 1
    await require_agreement(studio, event)
    assert len(await facts_of(studio.db, event, "event_inventory_created")) == 1


async def test_who_looked_before_another_published_is_refused(studio: Studio, draft: Seated, gates: Gates) -> None:
    """It was a draft when they looked; when they begin to write, its places are sold already."""
    late = gates("look")
    await late.start(publish(studio, draft.event))
    event = await publish(studio, draft.event)
    assert await late.finish() == "event_move_refused"
    assert (await event_layout(studio.db, event)).making is None
    await require_agreement(studio, event)


@pytest.mark.parametrize("pieces", [1, 3])
async def test_an_overlay_saved_in_the_middle(studio: Studio, draft: Seated, gates: Gates, pieces: int) -> None:
    """The publisher is told, the event is a draft with the new word, and publishing it gives the places of that."""
    slow = gates("add", times=pieces)
    await slow.start(publish(studio, draft.event))
    await save(studio, draft.event, draft.wanted(Overlay(blocked_seats=("S-A-1",), disabled_zones=("P",))))
    assert await slow.finish() == "event_changed"
    assert (await event_now(studio.db, draft.event)).status is Status.DRAFT
    await publish(studio, draft.event)
    await require_agreement(studio, draft.event)
    assert (await stored_places(studio.db, draft.event)).seats[0].blocked_by == "layout"


async def test_another_version_is_activated_in_the_middle(studio: Studio, draft: Seated, gates: Gates) -> None:
    """The version that was being written cannot be chosen any more: refused, and nobody sees a seat."""
    slow = gates("add")
    await slow.start(publish(studio, draft.event))
    await next_pin(studio, draft.organization_id, draft.pin.layout_id, draft.hall.layout)
    assert await slow.finish() == LayoutNotActive.code
    assert (await event_now(studio.db, draft.event)).status is Status.DRAFT
    assert (await stored_places(studio.db, draft.event)).zones == []


async def test_the_event_was_edited_in_the_middle(studio: Studio, draft: Seated, gates: Gates) -> None:
    """What was worked out may not hold any more: it is worked out again, and published."""
    slow = gates("add", times=2)
    await slow.start(publish(studio, draft.event))
    async with studio.db.transaction(draft.organization_id) as conn:
        await conn.execute("update events set capacity = 400, version = version + 1 where id = $1", draft.event.id)
    assert await slow.finish() is None
    await require_agreement(studio, draft.event)


async def test_the_policy_is_changed_in_the_middle(
    studio: Studio, place: Organization, draft: Seated, gates: Gates
) -> None:
    """What was allowed when it was begun is not any more: told, and nobody sees a seat."""
    slow = gates("add", times=2)
    await slow.start(publish(studio, draft.event))
    async with studio.db.transaction(place.id) as conn:
        await policies.save(
            conn, place.id, {"allow_hybrid_ga_reserved": False}, by=OPERATOR, role=Role.SUPER_ADMIN, reason="in a test"
        )
    assert await slow.finish() == "seating_invalid"
    assert (await event_now(studio.db, draft.event)).status is Status.DRAFT
    assert (await stored_places(studio.db, draft.event)).zones == []


async def small_hall(studio: Studio, draft: Seated) -> Pin:
    """A hall with as many seats as one piece has."""
    rows = [{"label": "A", "seats": {"count": 3, "x": [50, 100, 150], "y": 100}}]
    lounge = {"count": 1, "x": [50], "y": [300]}
    layout = read_layout(encoded(changed({"zones.0.rows": rows, "zones.0.groups": [], "zones.1.rows.0.seats": lounge})))
    assert layout.seat_count == inventory.SEATS_PER_PIECE
    return await active_pin(studio, draft.venue, layout)


async def test_a_small_hall_in_place_of_a_giant_that_was_broken_off(
    studio: Studio, draft: Seated, gates: Gates
) -> None:
    """What is left of the giant is not among its seats."""
    await break_off(studio, gates, draft.event)
    await save(studio, draft.event, Wanted(pin=await small_hall(studio, draft), overrides={}))
    assert (await event_layout(studio.db, draft.event)).making is not None
    await publish(studio, draft.event)
    event = await require_agreement(studio, draft.event)
    assert (event.status, len((await stored_places(studio.db, event)).seats)) == (Status.PUBLISHED, 4)


async def test_a_small_hall_published_by_two_where_a_giant_was_broken_off(
    studio: Studio, draft: Seated, gates: Gates
) -> None:
    """Both tidy up first: the one that was overtaken writes nothing into what the other has not cleared yet."""
    await break_off(studio, gates, draft.event)
    await save(studio, draft.event, Wanted(pin=await small_hall(studio, draft), overrides={}))
    first, second = gates("clear"), gates("clear")
    await first.start(publish(studio, draft.event))
    await second.start(publish(studio, draft.event))
    assert (await first.finish(), await second.finish()) == ("event_changed", None)
    event = await require_agreement(studio, draft.event)
    assert (event.status, len((await stored_places(studio.db, event)).seats)) == (Status.PUBLISHED, 4)


async def test_no_layout_in_place_of_a_giant_that_was_broken_off(studio: Studio, draft: Seated, gates: Gates) -> None:
    """The same for an event without seats."""
    await break_off(studio, gates, draft.event)
    await save(studio, draft.event, Wanted(pin=None, overrides={}))
    await publish(studio, draft.event)
    event = await require_agreement(studio, draft.event)
    assert (await stored_places(studio.db, event)).seats == []


async def test_a_draft_is_deleted_with_what_is_left(
    services: Services, studio: Studio, place: Organization, draft: Seated, gates: Gates
) -> None:
    """No seat stays behind that belongs to nothing; and whoever is still at it is told."""
    await break_off(studio, gates, draft.event)
    slow = gates("add")
    await slow.start(publish(studio, draft.event))
    await usecases.delete_event(studio, services.catalogue, call_of(place), draft.event.id, version=None)
    assert await slow.finish() in ("event_changed", "event_not_found")
    assert await stored_places(studio.db, draft.event) == NOTHING


async def test_an_archived_draft_keeps_nothing(
    owner_conn: Connection, studio: Studio, place: Organization, draft: Seated, gates: Gates
) -> None:
    """It will never be published, so what is left of the attempt goes."""
    await break_off(studio, gates, draft.event)
    event = await move(studio, place, draft.event, Verb.ARCHIVE)
    await grow_old(owner_conn, event)
    await inventory.clear_broken_off(studio.db)
    assert await stored_places(studio.db, event) == NOTHING
    with pytest.raises(DomainError) as refused:
        await publish(studio, event)
    assert not isinstance(refused.value, EventChanged)
