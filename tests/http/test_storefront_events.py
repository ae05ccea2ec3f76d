"""The storefront: what a stranger is told of events, and what not."""

import asyncio
import json
from datetime import timedelta
from typing import Any

import pytest

from tests.make.accounts import Person, make_organization, make_person
from tests.make.events import make_event, make_venue, move, soon
from tests.make.web import Site
from voelgoed.accounts.model import Organization, Role
from voelgoed.db import Database
from voelgoed.events.model import Event, NewDate, Status, Verb
from voelgoed.ids import new_id

WAIT_S = 10.0


@pytest.fixture
async def owner(db: Database) -> Person:
    return await make_person(db, role=Role.OWNER)


@pytest.fixture
def place(owner: Person) -> Organization:
    return owner.organization


async def listed(site: Site, place: Organization, query: str = "") -> list[dict[str, Any]]:
    answer = await site.client.get(f"/api/storefronts/{place.slug}/events{query}")
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["data"]
    return found


async def both_pages(site: Site, place: Organization, event: Event) -> list[tuple[int, Any]]:
    """The event's page by its slug and by its id, without what differs between any two answers."""
    answers = [
        await site.client.get(f"/api/storefronts/{place.slug}/events/{event.slug}"),
        await site.client.get(f"/api/events/{event.id}"),
    ]
    return [(answer.status_code, {**answer.json(), "request_id": None}) for answer in answers]


@pytest.mark.req("EV-21", "EV-43", "TEST-36", "EV-24")
@pytest.mark.parametrize("status", Status)
async def test_a_stranger_sees_what_the_seed_lets_them(
    site: Site, db: Database, owner: Person, place: Organization, status: Status
) -> None:
    """Published, live and postponed; the others exist for the organiser alone, and their page is no page."""
    event = await make_event(db, place, status=status)
    shown = status in (Status.PUBLISHED, Status.LIVE, Status.POSTPONED)
    assert [one["id"] for one in await listed(site, place)] == ([str(event.id)] if shown else [])
    pages = await both_pages(site, place, event)
    assert [code for code, _ in pages] == [200 if shown else 404] * 2
    if not shown:
        absent = await site.client.get(f"/api/events/{new_id()}")
        assert pages[0] == pages[1] == (404, {**absent.json(), "request_id": None})
    mine = await site.client.get(f"/api/admin/events/{event.id}", headers=owner.headers)
    assert (mine.json()["data"]["status"], mine.json()["data"]["is_shown"]) == (status, shown)


async def test_everything_a_page_tells(site: Site, db: Database, place: Organization) -> None:
    """Every field, computed in the venue's zone, with the venue's word where the event has none."""
    venue = await make_venue(
        db,
        place,
        name="Stadium",
        timezone="Pacific/Kiritimati",
        address={"city": "London", "alarm": "not told"},
        settings={"doors_open_minutes_before": 90, "bag_policy": "Small", "access_rules": "Venue's", "step_free": True},
    )
    start = soon(days=30).replace(hour=8, minute=0, second=0)
    event = await make_event(
        db, place, venue, "published",
        name="Concert", description="Loud", start_at=start, end_at=start + timedelta(hours=4), capacity=77,
        sale_start_at=soon(days=-1), sale_end_at=soon(days=29),
        settings={"age_min": 18, "category": "music", "cover": "c1", "language": "en", "access_rules": "Event's",
                  "secret": "not told"},
    )  # fmt: skip
    page = (await site.client.get(f"/api/events/{event.id}")).json()["data"]
    said = {name: value.isoformat().replace("+00:00", "Z") for name, value in {
        "start": event.start_at, "end": event.end_at, "doors": start - timedelta(minutes=90),
        "opens": event.sale_start_at, "closes": event.sale_end_at,
    }.items() if value}  # fmt: skip
    day = (start + timedelta(hours=14)).date().isoformat()
    assert page == {
        "id": str(event.id), "slug": event.slug, "name": "Concert", "status": "published",
        "effective_start_at": said["start"], "effective_end_at": said["end"],
        "start_at": said["start"], "end_at": said["end"],
        "doors_at": said["doors"], "days": [day], "sale_start_at": said["opens"], "sale_end_at": said["closes"],
        "on_sale": True, "sale_state": "open", "notice": None, "rescheduled_at": None, "rescheduled_end_at": None,
        "postponement_reason": None, "category": "music", "cover": "c1", "age_min": 18,
        "venue": {
            "id": str(venue.id), "name": "Stadium", "slug": venue.slug, "timezone": "Pacific/Kiritimati",
        },
        "description": "Loud", "organization": {"slug": place.slug, "name": place.name},
        "address": {"city": "London"}, "replaced_by": None, "access_rules": "Event's", "bag_policy": "Small",
        "language": "en", "step_free": True,
    }  # fmt: skip
    by_slug = await site.client.get(f"/api/storefronts/{place.slug}/events/{event.slug}")
    assert by_slug.json()["data"] == page
    (card,) = await listed(site, place)
    assert card == {name: page[name] for name in card}
    assert page.keys() - card.keys() == {
        "description", "organization", "address", "replaced_by", "access_rules", "bag_policy", "language", "step_free",
    }  # fmt: skip


@pytest.mark.req("EV-25", "EV-26")
async def test_a_postponed_event_says_so(site: Site, db: Database, place: Organization) -> None:
    """Without a date a notice and no sale; with one the new date, the old one beside it, and the sale goes on."""
    event = await make_event(db, place, status="published")
    await move(db, place.id, event.id, Verb.POSTPONE, postponement_reason="weather")
    undated = (await both_pages(site, place, event))[0][1]["data"]
    assert (undated["notice"], undated["postponement_reason"]) == ("postponed", "weather")
    assert (undated["on_sale"], undated["sale_state"], undated["rescheduled_at"]) == (False, "suspended", None)
    assert (undated["effective_start_at"], undated["effective_end_at"]) == (None, None)
    assert (undated["days"], undated["doors_at"]) == ([], None)
    assert [one["notice"] for one in await listed(site, place)] == ["postponed"]
    new = soon(days=70)
    await move(db, place.id, event.id, Verb.RESCHEDULE, new_date=NewDate(start_at=new))
    said = new.isoformat().replace("+00:00", "Z")
    async with asyncio.timeout(WAIT_S):  # moved behind the catalogue's back: no message, so up to a second
        while (dated := (await both_pages(site, place, event))[0][1]["data"])["notice"] == "postponed":
            await asyncio.sleep(0.02)
    assert (dated["notice"], dated["rescheduled_at"], dated["effective_start_at"]) == ("rescheduled", said, said)
    assert (dated["start_at"], dated["on_sale"]) == (undated["start_at"], True)


@pytest.mark.req("EV-43", "EV-54")
async def test_a_cancelled_event_is_gone_with_the_next_read(
    site: Site, db: Database, owner: Person, place: Organization
) -> None:
    """It was in every cache; after the answer to the cancellation nobody is shown it again."""
    event = await make_event(db, place, status="published")
    assert [code for code, _ in await both_pages(site, place, event)] == [200, 200]
    assert len(await listed(site, place)) == 1
    cancelled = await site.client.post(
        f"/api/admin/events/{event.id}/cancel", headers=owner.headers, json={"reason": "ill"}
    )
    assert cancelled.status_code == 200
    assert [code for code, _ in await both_pages(site, place, event)] == [404, 404]
    assert await listed(site, place) == []
    found = await site.client.get("/api/admin/events?status=cancelled", headers=owner.headers)
    assert [one["id"] for one in found.json()["data"]] == [str(event.id)]


@pytest.mark.req("EV-60")
async def test_the_list_has_what_is_not_over_in_the_order_of_time(
    site: Site, db: Database, place: Organization
) -> None:
    """A running event is there, one whose day is past is not, a new date counts; by venue, page by page."""
    venue = await make_venue(db, place)
    later = await make_event(db, place, venue, "published", start_at=soon(days=3), end_at=soon(days=4))
    running = await make_event(db, place, venue, "live", start_at=soon(hours=-1), end_at=soon(hours=1))
    over = await make_event(db, place, venue, "published", start_at=soon(hours=-3), end_at=soon(hours=1))
    async with db.transaction(place.id) as conn:
        await conn.execute(
            "update events set end_at = now() - interval '1 second', version = version + 1 where id = $1", over.id
        )
    moved = await make_event(db, place, status="published", start_at=soon(hours=1), end_at=soon(hours=2))
    await move(db, place.id, moved.id, Verb.POSTPONE, new_date=NewDate(start_at=soon(days=2)))
    assert [one["id"] for one in await listed(site, place)] == [str(one.id) for one in (running, moved, later)]
    assert [one["id"] for one in await listed(site, place, f"?venue_id={venue.id}")] == [
        str(running.id),
        str(later.id),
    ]
    first = (await site.client.get(f"/api/storefronts/{place.slug}/events?limit=2")).json()
    second = await listed(site, place, f"?limit=2&cursor={first['next_cursor']}")
    assert [one["id"] for one in second] == [str(later.id)]
    for wrong, error in (
        ("cursor=x", "cursor_invalid"),
        ("limit=0", "invalid_request"),
        ("venue_id=1", "invalid_request"),
    ):
        answer = await site.client.get(f"/api/storefronts/{place.slug}/events?{wrong}")
        assert (answer.status_code, answer.json()["error"]) == (400, error)


@pytest.mark.req("EV-15")
async def test_the_replacement_is_told_when_it_is_shown(
    site: Site, db: Database, owner: Person, place: Organization
) -> None:
    """A draft that shall replace it is nobody's business yet."""
    event, new = await make_event(db, place, status="postponed"), await make_event(db, place, name="The new one")
    linked = await site.client.patch(
        f"/api/admin/events/{event.id}", headers=owner.headers, json={"replaced_by_event_id": str(new.id)}
    )
    assert linked.status_code == 200
    assert [page["data"]["replaced_by"] for _, page in await both_pages(site, place, event)] == [None, None]
    published = await site.client.post(f"/api/admin/events/{new.id}/publish", headers=owner.headers, json={})
    assert published.status_code == 200
    told = {"id": str(new.id), "slug": new.slug, "name": "The new one"}
    assert [page["data"]["replaced_by"] for _, page in await both_pages(site, place, event)] == [told, told]
    await site.client.post(f"/api/admin/events/{new.id}/cancel", headers=owner.headers, json={"reason": "no"})
    assert [page["data"]["replaced_by"] for _, page in await both_pages(site, place, event)] == [None, None]


async def test_a_suspended_organization_shows_nothing(site: Site, db: Database, place: Organization) -> None:
    """Nor by a link that was followed a moment ago; when it is open again, everything is there."""
    platform = await make_person(db, platform=Role.SUPER_ADMIN)
    event = await make_event(db, place, status="published")
    assert [code for code, _ in await both_pages(site, place, event)] == [200, 200]
    path = f"/api/platform/orgs/{place.id}"
    closed = await site.client.post(f"{path}/suspend", headers=platform.headers, json={"reason": "unpaid"})
    assert closed.status_code == 200
    async with asyncio.timeout(WAIT_S):  # whose an event or a storefront is, a process knows for a second
        while [code for code, _ in await both_pages(site, place, event)] != [404, 404]:
            await asyncio.sleep(0.02)
    assert await listed(site, place) == []
    await site.client.post(f"{path}/resume", headers=platform.headers, json={"reason": "paid"})
    async with asyncio.timeout(WAIT_S):
        while [code for code, _ in await both_pages(site, place, event)] != [200, 200]:
            await asyncio.sleep(0.02)
    assert len(await listed(site, place)) == 1


async def test_an_address_belongs_to_its_organization(site: Site, db: Database, place: Organization) -> None:
    """The same slug in two organizations is two events; in a third it is none."""
    other = await make_organization(db)
    here = await make_event(db, place, status="published", slug="the-same", name="Here")
    there = await make_event(db, other, status="published", slug="the-same", name="There")
    assert (await both_pages(site, place, here))[0][1]["data"]["name"] == "Here"
    assert (await both_pages(site, other, there))[0][1]["data"]["name"] == "There"
    third = await make_organization(db)
    missing = await site.client.get(f"/api/storefronts/{third.slug}/events/the-same")
    assert (missing.status_code, missing.json()["error"]) == (404, "event_not_found")
    nowhere = await site.client.get(f"/api/storefronts/none-{new_id().hex}/events")
    assert (nowhere.status_code, nowhere.json()["error"]) == (404, "organization_not_found")


async def test_a_stranger_is_told_no_inner_affairs(
    site: Site, db: Database, owner: Person, place: Organization
) -> None:
    """Neither the reason given to the journal, nor capacity, nor settings that are not for the public."""
    event = await make_event(db, place, status="published", settings={"internal": "inner-affair"}, capacity=77)
    await site.client.post(
        f"/api/admin/events/{event.id}/postpone", headers=owner.headers, json={"reason": "inner-affair, too few sold"}
    )
    told = json.dumps([await listed(site, place), await both_pages(site, place, event)])
    assert "inner-affair" not in told
    assert "capacity" not in told
