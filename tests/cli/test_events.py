"""`voelgoed event` and `voelgoed venue`: by the clock of the venue, and like everybody else through the lifecycle."""

import json
from collections.abc import Awaitable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pydantic import SecretStr

from tests.make.accounts import make_organization
from tests.make.processes import environment, voelgoed
from voelgoed import schema
from voelgoed.accounts.model import Organization
from voelgoed.cli import demo, demo_events, events
from voelgoed.cli.events import read_moment
from voelgoed.config import Settings
from voelgoed.db import Database
from voelgoed.embedded import Embedded
from voelgoed.errors import StartRefused
from voelgoed.events import operator
from voelgoed.events.model import NewVenue, Status, Verb


@pytest.fixture
async def place(db: Database) -> Organization:
    return await make_organization(db)


@pytest.fixture
def here(servers: Embedded, database: str, data_dir: Path) -> Settings:
    """The settings of somebody at the terminal of this installation."""
    return Settings(database_url=SecretStr(servers.postgres_url(schema.APP, database)), data_dir=data_dir)


async def shown(
    here: Settings, place: Organization, slug: str, capsys: pytest.CaptureFixture[str]
) -> dict[str, object]:
    capsys.readouterr()
    await events.show_event(here, organization=place.slug, slug=slug, as_json=True)
    told: dict[str, object] = json.loads(capsys.readouterr().out)
    return told


async def test_an_event_from_its_making_to_the_archive(
    place: Organization, here: Settings, db: Database, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every verb, each with its reason in the journal; local times are the venue's."""
    org = place.slug
    kiosk = NewVenue(name="Kiosk", slug="kiosk", timezone="Pacific/Kiritimati", max_capacity=90)
    await events.create_venue(here, organization=org, new=kiosk)
    times = {"start_at": "2031-05-01 00:30", "end_at": "2031-05-01 03:00"}
    await events.create_event(
        here, organization=org, venue="kiosk", name="Night", slug="night", times=times, capacity=80
    )
    assert (await shown(here, place, "night", capsys))["start_at"] == "2031-04-30T10:30:00+00:00"

    async def move(verb: Verb, reason: str = "", **times: str) -> None:
        await events.move_event(here, organization=org, slug="night", verb=verb, reason=reason, times=times)

    await move(Verb.PUBLISH)
    await move(Verb.POSTPONE, "storm")
    assert (await shown(here, place, "night", capsys))["sale_state"] == "suspended"
    await move(Verb.RESCHEDULE, "calm", start_at="2031-06-01 00:30", end_at="")
    told = await shown(here, place, "night", capsys)
    assert told["rescheduled_at"] == "2031-05-31T10:30:00+00:00"
    assert told["rescheduled_end_at"] == "2031-05-31T13:00:00+00:00"
    for verb in (Verb.GO_LIVE, Verb.END, Verb.ARCHIVE):
        await move(verb)
    capsys.readouterr()
    await events.list_events(here, organization=org, statuses=(), as_json=True)
    await events.list_events(here, organization=org, statuses=[Status.ARCHIVED], as_json=True)
    usual, archived = map(json.loads, capsys.readouterr().out.splitlines())
    assert usual == []
    assert [(one["slug"], one["status"]) for one in archived] == [("night", "archived")]
    async with db.transaction(place.id) as conn:
        rows = await conn.fetch(
            "select kind, reason, data->>'actor_type' as by from journal where event_id is not null order by seq"
        )
    assert [row["reason"] for row in rows if row["kind"] != "event_inventory_created"] == [
        None, None, "storm", "calm", None, None, None,
    ]  # fmt: skip
    assert {row["by"] for row in rows} == {"operator"}


async def test_a_refusal_is_a_sentence_and_changes_nothing(
    place: Organization, here: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is not there, what the lifecycle does not have, what makes no sense."""
    hall = NewVenue(name="Hall", slug="hall", timezone="Europe/Berlin", max_capacity=100)
    await events.create_venue(here, organization=place.slug, new=hall)

    async def make(slug: str, start: str = "2031-05-01 20:00", capacity: int = 100) -> None:
        times = {"start_at": start, "end_at": "2031-05-01 22:00"}
        await events.create_event(
            here, organization=place.slug, venue="hall", name="Show", slug=slug, times=times, capacity=capacity
        )

    async def move(slug: str, verb: Verb, **times: str) -> None:
        await events.move_event(here, organization=place.slug, slug=slug, verb=verb, reason="x", times=times)

    await make("show")
    refused: list[tuple[Awaitable[None], str]] = [
        (move("show", Verb.CANCEL), "publish or archive"),
        (move("none", Verb.CANCEL), "no such event"),
        (events.list_events(here, organization="nobody", statuses=(), as_json=False), "no organization"),
        (make("show"), "already uses this address"),
        (make("big", capacity=101), "exceeds the venue's 100"),
        (make("gap", "2031-03-30 02:30"), "put forward"),
        (make("late", "2031-05-01 22:00"), "begins before it ends"),
        (move("show", Verb.POSTPONE, end_at="2031-05-01 20:00"), "begins with --start"),
    ]
    for attempt, said in refused:
        with pytest.raises(StartRefused) as refusal:
            await attempt
        assert said in f"{refusal.value} {refusal.value.hint}"
    assert (await shown(here, place, "show", capsys))["version"] == 1


async def test_the_commands_are_there(place: Organization, here: Settings, data_dir: Path) -> None:
    """As somebody types them: a table for people, and a refusal with the exit code 2."""
    assert here.database_url is not None
    env = environment(data_dir, VOELGOED_DATABASE_URL=here.database_url.get_secret_value())
    made = voelgoed(
        "venue", "create", place.slug, "hall", "Hall", "--timezone", "Europe/Berlin", "--capacity", "9", env=env
    )
    assert made.returncode == 0, made.stderr
    times = ("--start", "2031-05-01 20:00", "--end", "2031-05-01 22:00")
    made = voelgoed("event", "create", place.slug, "show", "Show", "--venue", "hall", *times, env=env)
    assert "2031-05-01 20:00 - 22:00" in " ".join(made.stdout.split())
    refused = voelgoed("event", "end", place.slug, "show", "--reason", "x", env=env)
    assert (refused.returncode, "publish or archive" in refused.stderr) == (2, True)
    verbs = voelgoed("event", "--help", env=env).stdout
    assert all(verb in verbs for verb in Verb)


def test_times_with_a_zone_of_their_own_are_taken_as_they_are() -> None:
    assert read_moment("2031-05-01T20:00:00+02:00", "Pacific/Apia") == datetime(2031, 5, 1, 18, tzinfo=UTC)
    for wrong, timezone in (
        ("tomorrow", "Europe/Berlin"),
        ("0001-01-01 00:00", "Asia/Tokyo"),
        ("9999-12-31 23:59", "Pacific/Honolulu"),
        ("0001-01-01T00:00:00+14:00", "UTC"),
        ("9999-12-31T23:59:59-14:00", "UTC"),
    ):
        with pytest.raises(StartRefused, match="is no time"):
            read_moment(wrong, timezone)


async def test_the_demonstration_shows_every_state_and_is_made_once(db: Database, here: Settings) -> None:
    """An event of each kind; starting again changes nothing, and what somebody changed stays."""
    first = await demo.seed(here)
    assert {"theatre", "festival", "stadium", "postponed", "cancelled", "draft"} <= first.keys()
    place = await operator.organization_at(db, demo.SLUG)
    async with db.transaction(place.id) as conn:
        facts = await conn.fetchval("select count(*) from journal")
    assert await demo.seed(here) == first
    async with db.transaction(place.id) as conn:
        assert await conn.fetchval("select count(*) from journal") == facts
    found = {name: (await operator.find_event(db, place, show.slug)) for name, show in demo_events.SHOWS.items()}
    assert {name: one.event.status for name, one in found.items()} == {
        "theatre": Status.PUBLISHED,
        "festival": Status.PUBLISHED,
        "stadium": Status.PUBLISHED,
        "postponed": Status.POSTPONED,
        "rescheduled": Status.POSTPONED,
        "cancelled": Status.CANCELLED,
        "draft": Status.DRAFT,
    }
    assert found["postponed"].event.rescheduled_at is None
    assert found["rescheduled"].event.rescheduled_at is not None
