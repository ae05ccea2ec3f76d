"""Ten thousand events of one organization: the list of what is coming comes from its index, and faster from memory."""

import json
import statistics
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from tests.make.accounts import make_organization
from tests.make.events import catalogue_of, make_venue
from voelgoed.accounts.model import Organization
from voelgoed.db import Connection, Database
from voelgoed.events import store
from voelgoed.redis import RedisLink

EVENTS = 10_000
TIMES = 15
FASTER = 5

FILL = """
insert into events (id, organization_id, venue_id, name, slug, start_at, end_at, settings)
select gen_random_uuid(), $1, $2, 'Event ' || n, 'event-' || n, now() + (n - 5000) * interval '2 hours',
       now() + (n - 5000) * interval '2 hours' + interval '3 hours', '{"age_min": 12, "category": "music"}'
  from generate_series(1, $3) n
"""


@pytest.fixture
async def place(db: Database, owner_conn: Connection) -> Organization:
    """Half of it over, half of it ahead; one in ten a draft; none of them the clock's affair."""
    place = await make_organization(db)
    venue = await make_venue(db, place)
    async with db.transaction(place.id) as conn:
        await conn.execute(FILL, place.id, venue.id, EVENTS)
        await conn.execute(
            "update events set status = 'published', version = 2, is_automatic = false"
            " where organization_id = $1 and slug !~ '0$'",
            place.id,
        )
    await owner_conn.execute("analyze events")
    return place


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for inner in plan.get("Plans", ()):
        yield from nodes(inner)


@pytest.mark.req("EV-60", "IDX-01")
@pytest.mark.parametrize("mode", ["force_custom_plan", "force_generic_plan"])
@pytest.mark.parametrize("is_first_page", [True, False])
async def test_the_upcoming_list_uses_its_index(
    db: Database, place: Organization, mode: str, *, is_first_page: bool
) -> None:
    """As the application's role under row-level security, for the first page and for one further on."""
    async with db.transaction(place.id) as conn:
        assert await conn.fetchval("select current_user") == "voelgoed_app"
        assert await conn.fetchval(
            "select relrowsecurity and relforcerowsecurity from pg_class where relname = 'events'"
        )
        await conn.execute(f"set local plan_cache_mode = {mode}")
        first = await store.list_upcoming(conn, place.id, venue_id=None, after=None, limit=51)
        after = (None, None) if is_first_page else (first[-1].effective_start_at, first[-1].id)
        text = await conn.fetchval(f"explain (format json) {store.Q['list_upcoming']}", place.id, None, *after, 51)
    plan = json.loads(text)[0]["Plan"]
    on_events = [node for node in nodes(plan) if node.get("Relation Name") == "events"]
    assert [node["Node Type"] for node in on_events] in (["Index Scan"], ["Index Only Scan"])
    assert [node["Index Name"] for node in on_events] == ["events_upcoming"]
    limits = [node for node in nodes(plan) if node["Node Type"] == "Limit"]
    assert len(limits) == 1
    assert {node["Node Type"] for node in nodes(limits[0])} <= {"Limit", "Index Scan", "Index Only Scan", "Result"}
    assert len(first) == 51


async def median_s(work: Callable[[], Awaitable[object]]) -> float:
    taken = []
    for _ in range(TIMES):
        began = time.perf_counter()
        await work()
        taken.append(time.perf_counter() - began)
    return statistics.median(taken)


@pytest.mark.req("EV-51")
async def test_from_cache_it_is_at_least_five_times_as_fast(db: Database, place: Organization, redis_url: str) -> None:
    """The same page, in the same run: from memory, and from PostgreSQL."""
    async with RedisLink(redis_url, call_timeout_s=2, connect_timeout_s=2) as link:
        catalogue = catalogue_of(db, link)

        async def cold() -> list[Any]:
            async with db.transaction(place.id) as conn:
                return await store.list_upcoming(conn, place.id, venue_id=None, after=None, limit=51)

        async def hot() -> list[Any]:
            return list((await catalogue.upcoming(place.id, limit=50)).items)

        assert await hot() == (await cold())[:50]
        assert await median_s(hot) * FASTER <= await median_s(cold)
