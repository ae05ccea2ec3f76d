"""The clock's own hand: what is due goes live and ends, once, and nobody else's trouble keeps it."""

import asyncio
import json
from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.make.accounts import make_organization
from tests.make.events import make_event, make_venue, move, soon
from voelgoed.accounts.model import Organization
from voelgoed.db import Database
from voelgoed.events import timekeeper
from voelgoed.events.model import Event, NewDate, Verb
from voelgoed.wiring import Services


@pytest.fixture
async def place(db: Database) -> Organization:
    return await make_organization(db)


async def running(db: Database, place: Organization, status: str = "published", **fields: Any) -> Event:
    """An event that began an hour ago and goes on for one."""
    times: dict[str, Any] = {"start_at": soon(hours=-1), "end_at": soon(hours=1)}
    return await make_event(db, place, status=status, **times | fields)


async def put_back(db: Database, event: Event, **fields: datetime) -> None:
    """Let time pass for an event: its times are moved behind its back."""
    sets = ", ".join(f"{name} = ${number}" for number, name in enumerate(fields, start=2))
    async with db.transaction(event.organization_id) as conn:
        await conn.execute(f"update events set {sets}, version = version + 1 where id = $1", event.id, *fields.values())


async def stands(db: Database, event: Event) -> tuple[str, datetime]:
    async with db.transaction(event.organization_id) as conn:
        row = await conn.fetchrow("select status, start_at from events where id = $1", event.id)
    assert row is not None
    return row["status"], row["start_at"]


async def steps(db: Database, event: Event) -> list[tuple[str, str]]:
    """What the clock did, as the journal tells it."""
    async with db.transaction(event.organization_id) as conn:
        rows = await conn.fetch(
            "select actor_id, reason, data from journal where event_id = $1 and data->>'actor_type' = 'clock'"
            " order by version",
            event.id,
        )
    told = [json.loads(row["data"]) for row in rows]
    assert [(row["actor_id"], row["reason"]) for row in rows] == [(None, "by the clock")] * len(rows)
    return [(fact["old_status"], fact["new_status"]) for fact in told]


async def test_what_has_begun_goes_live_and_what_is_over_ends(
    db: Database, services: Services, place: Organization
) -> None:
    """Each in its time, told as the clock's doing; the next run finds nothing to do."""
    begun, ahead = await running(db, place), await make_event(db, place, status="published")
    over = await running(db, place, "live")
    await put_back(db, over, end_at=soon(minutes=-1))
    assert await timekeeper.advance(db, services.catalogue) >= 2
    assert [(await stands(db, one))[0] for one in (begun, over, ahead)] == ["live", "ended", "published"]
    assert await steps(db, begun) == [("published", "live")]
    assert await steps(db, over) == [("live", "ended")]
    await timekeeper.advance(db, services.catalogue)
    assert [len(await steps(db, one)) for one in (begun, over, ahead)] == [1, 1, 0]


async def test_a_missed_event_goes_live_and_ends_in_one_run(
    db: Database, services: Services, place: Organization
) -> None:
    """The clock stood still over the whole evening: both steps are told, in their order."""
    missed = await running(db, place)
    await put_back(db, missed, start_at=soon(hours=-5), end_at=soon(hours=-2))
    await timekeeper.advance(db, services.catalogue)
    assert await steps(db, missed) == [("published", "live"), ("live", "ended")]
    assert (await stands(db, missed))[0] == "ended"


@pytest.mark.req("TEST-33", "EV-32", "EV-17")
async def test_a_postponed_event_goes_live_on_its_new_date(
    db: Database, services: Services, place: Organization
) -> None:
    """From live to postponed to live: not before the day comes, and then with that day as its own."""
    event = await running(db, place, "live")
    new = soon(days=7)
    await move(db, place.id, event.id, Verb.POSTPONE, new_date=NewDate(start_at=new), postponement_reason="weather")
    await timekeeper.advance(db, services.catalogue)
    assert (await stands(db, event))[0] == "postponed"
    begins = soon(minutes=-1)
    await put_back(db, event, rescheduled_at=begins, rescheduled_end_at=soon(hours=2), sale_end_at=begins)
    await timekeeper.advance(db, services.catalogue)
    assert await stands(db, event) == ("live", begins)
    assert await steps(db, event) == [("postponed", "live")]


async def test_what_has_no_date_or_is_kept_in_hand_is_left_alone(
    db: Database, services: Services, place: Organization
) -> None:
    """Postponed without a date, switched off, a draft, cancelled: the clock does nothing."""
    undated = await running(db, place, "postponed")
    by_hand = await running(db, place, is_automatic=False)
    by_hand_too = await running(db, place, "live", is_automatic=False)
    await put_back(db, by_hand_too, end_at=soon(minutes=-1))
    others = [await running(db, place, "draft"), await running(db, place, "cancelled")]
    await timekeeper.advance(db, services.catalogue)
    for event in (undated, by_hand, by_hand_too, *others):
        assert await steps(db, event) == []


async def test_two_clocks_take_each_step_once(db: Database, services: Services, place: Organization) -> None:
    """Three workers at once: every event is moved once, by one of them."""
    venue = await make_venue(db, place)
    events = [
        await make_event(db, place, venue, "published", start_at=soon(hours=-1), end_at=soon(hours=1))
        for _ in range(12)
    ]
    await asyncio.gather(*(timekeeper.advance(db, services.catalogue) for _ in range(3)))
    assert [await steps(db, event) for event in events] == [[("published", "live")]] * 12


async def test_one_broken_event_does_not_keep_the_others(db: Database, services: Services, place: Organization) -> None:
    """An event that cannot move comes first in time; those after it move all the same."""
    broken = await running(db, place)
    await put_back(db, broken, start_at=soon(hours=-9), sale_end_at=broken.end_at + timedelta(days=1))
    fine = await running(db, place)
    await timekeeper.advance(db, services.catalogue)
    assert (await stands(db, broken))[0] == "published"
    assert (await stands(db, fine))[0] == "live"
    await put_back(db, broken, sale_end_at=broken.end_at)
    await timekeeper.advance(db, services.catalogue)
    assert (await stands(db, broken))[0] == "live"
