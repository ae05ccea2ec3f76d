"""A hundred events, two people at each: the second finds what the first has left, and the journal tells it."""

import asyncio
import json
import random
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

import pytest

from tests.make.accounts import make_organization
from tests.make.events import call_of, carry_out, make_event, make_venue, soon
from voelgoed.accounts.model import Call, Organization, Role
from voelgoed.db import Database
from voelgoed.events.catalogue import Catalogue
from voelgoed.events.model import Event, EventAtVenue, NewDate, Order, Status, Verb
from voelgoed.events.refusals import EventChanged, EventMoveRefused, EventTimesInvalid
from voelgoed.events.rules import EDGES
from voelgoed.wiring import Services

WALKS = 100
ROUNDS = 16
AT_ONCE = 4


@dataclass(slots=True)
class Walk:
    """One event, and the two who push it about."""

    db: Database
    catalogue: Catalogue
    place: Organization
    event_id: UUID
    actors: tuple[Call, Call]
    chance: random.Random

    async def row(self) -> str:
        async with self.db.transaction(self.place.id) as conn:
            text: str = await conn.fetchval("select e::text from events e where id = $1", self.event_id)
        return text

    async def facts(self) -> list[dict[str, object]]:
        async with self.db.transaction(self.place.id) as conn:
            rows = await conn.fetch(
                "select kind, version, actor_id, reason, data from journal where event_id = $1 order by version, seq",
                self.event_id,
            )
        return [{**json.loads(row["data"]), **{k: row[k] for k in ("kind", "version", "actor_id")}} for row in rows]

    def order(self, version: int, number: int) -> Order:
        """Something to do; every date is another one, so that no order is carried out twice over."""
        verb = self.chance.choice(list(Verb))
        new_date = None
        if verb is Verb.RESCHEDULE or (verb is Verb.POSTPONE and self.chance.random() < 0.5):
            new_date = NewDate(start_at=soon(days=40) + timedelta(minutes=number, seconds=self.chance.randint(0, 59)))
        seen = self.chance.choice([None, None, version, version - 1 or None])
        return Order(verb=verb, reason="in a walk", version=seen, new_date=new_date)

    async def go(self) -> set[tuple[str, str]]:
        """Round after round; the edges that were walked."""
        version, told = 1, 1
        for number in range(ROUNDS):
            before = await self.row()
            orders = [self.order(version, 2 * number + which) for which in (0, 1)]
            outcomes = await asyncio.gather(
                *(
                    carry_out(self.db, self.catalogue, call, self.event_id, order)
                    for call, order in zip(self.actors, orders, strict=True)
                ),
                return_exceptions=True,
            )
            won = [outcome for outcome in outcomes if isinstance(outcome, EventAtVenue)]
            for outcome in outcomes:
                assert isinstance(outcome, EventAtVenue | EventMoveRefused | EventChanged | EventTimesInvalid), outcome
            facts = await self.facts()
            assert len(facts) == told + len(won)
            assert sorted(one.event.version for one in won) == [version + 1 + step for step in range(len(won))]
            if not won:
                assert await self.row() == before
            version, told = version + len(won), len(facts)
        return await self.story()

    async def story(self) -> set[tuple[str, str]]:
        """The journal read from the beginning is a walk along the edges that ends where the event stands."""
        facts = await self.facts()
        async with self.db.transaction(self.place.id) as conn:
            row = await conn.fetchrow("select status, version from events where id = $1", self.event_id)
        assert row is not None
        assert [fact["version"] for fact in facts] == list(range(1, row["version"] + 1))
        assert (facts[0]["kind"], facts[0]["new_status"]) == ("event_created", "draft")
        stands, edges = "draft", set()
        for fact in facts[1:]:
            assert fact["old_status"] == stands
            stands = str(fact["new_status"])
            if fact["kind"] == "event_rescheduled":
                assert fact["old_status"] == stands
                continue
            assert Status(stands) in EDGES[Status(str(fact["old_status"]))]
            assert fact["actor_id"] in {call.actor.id for call in self.actors}
            edges.add((str(fact["old_status"]), stands))
        assert stands == row["status"]
        return edges


async def make_walk(db: Database, services: Services, place: Organization, event: Event, seed: int) -> Walk:
    return Walk(
        db=db,
        catalogue=services.catalogue,
        place=place,
        event_id=event.id,
        actors=(call_of(place, Role.OWNER), call_of(place, Role.ADMIN)),
        chance=random.Random(seed),
    )


@pytest.mark.req("TEST-32", "EV-32", "AUD-05")
async def test_two_who_race_walk_along_the_edges_only(db: Database, services: Services) -> None:
    """Each success is one fact and one version, a refusal changes nothing, and no two stories are told of an event."""
    place = await make_organization(db)
    venue = await make_venue(db, place)
    walked: set[tuple[str, str]] = set()
    for first in range(0, WALKS, AT_ONCE):
        walks = [
            await make_walk(db, services, place, await make_event(db, place, venue), seed)
            for seed in range(first, first + AT_ONCE)
        ]
        for edges in await asyncio.gather(*(walk.go() for walk in walks)):
            walked |= edges
    assert walked == {(str(before), str(after)) for before in Status for after in EDGES[before]}


async def test_of_two_with_the_same_version_one_wins(db: Database, services: Services) -> None:
    """Both saw version 2; whoever comes second is told so, and has changed nothing."""
    place = await make_organization(db)
    event = await make_event(db, place, status="published")
    outcomes = await asyncio.gather(
        *(
            carry_out(
                db,
                services.catalogue,
                call_of(place),
                event.id,
                Order(verb=verb, reason="at once", version=event.version),
            )
            for verb in (Verb.CANCEL, Verb.POSTPONE)
        ),
        return_exceptions=True,
    )
    assert sorted(type(outcome).__name__ for outcome in outcomes) == ["EventAtVenue", "EventChanged"]
    walk = await make_walk(db, services, place, event, 0)
    assert [fact["kind"] for fact in await walk.facts()].count("event_status_changed") == 2
