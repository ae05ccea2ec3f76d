"""`voelgoed seating`, and `voelgoed event publish` for what it does to places: at the terminal, in plain words."""

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from tests.make.accounts import make_organization
from tests.make.events import make_event, make_venue
from tests.make.layouts import small_layout
from tests.make.prices import make_rule
from tests.make.processes import environment, voelgoed
from tests.make.seating import (
    Seated,
    active_pin,
    event_now,
    facts_of,
    hold_seat,
    next_pin,
    seat_rows,
    seated_event,
    take_places,
    zone_rows,
)
from voelgoed import schema
from voelgoed.accounts.model import Organization
from voelgoed.cli import events, layouts, seating
from voelgoed.config import Settings
from voelgoed.db import Connection, Database
from voelgoed.embedded import Embedded
from voelgoed.errors import StartRefused
from voelgoed.events.model import Venue, Verb
from voelgoed.ids import new_id
from voelgoed.seating import operator
from voelgoed.seating.overlay import Overlay
from voelgoed.seating.studio import Studio
from voelgoed.wiring import Services


@pytest.fixture
async def place(db: Database) -> Organization:
    return await make_organization(db)


@pytest.fixture
async def venue(db: Database, place: Organization) -> Venue:
    return await make_venue(db, place, max_capacity=1_000)


@pytest.fixture
def studio(services: Services) -> Studio:
    return services.studio


@pytest.fixture
def here(servers: Embedded, database: str, data_dir: Path) -> Settings:
    return Settings(database_url=SecretStr(servers.postgres_url(schema.APP, database)), data_dir=data_dir)


@pytest.fixture
async def draft(db: Database, studio: Studio, place: Organization, venue: Venue) -> Seated:
    return await seated_event(db, studio, place, venue=venue, slug="show")


async def shown(here: Settings, place: Organization, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    capsys.readouterr()
    await seating.show_seating(here, organization=place.slug, slug="show", as_json=True)
    told: dict[str, Any] = json.loads(capsys.readouterr().out)
    return told


async def put(here: Settings, place: Organization, **asked: Any) -> None:
    known: dict[str, Any] = {"slug": "show", "version": None, "path": None}
    await seating.set_seating(here, organization=place.slug, **known | asked)


async def move(here: Settings, place: Organization, verb: Verb) -> None:
    await events.move_event(here, organization=place.slug, slug="show", verb=verb, reason="x", times={})


async def test_seating_is_shown_and_set(
    db: Database,
    studio: Studio,
    place: Organization,
    venue: Venue,
    here: Settings,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """From nothing to a hall with prices and blocked seats; what is shown can be changed and set again."""
    event = await make_event(db, place, venue, slug="show")
    await seating.show_seating(here, organization=place.slug, slug="show", as_json=False)
    said = capsys.readouterr().out
    assert "no layout: general admission" in said
    assert "1,000 places: 0 reserved, 0 seated without number, 1,000 standing; 0 blocked" in said
    pin = await active_pin(studio, venue)
    await put(here, place, layout=str(pin.layout_id), version=1)
    assert f"layout {pin.layout_id}, version 1" in capsys.readouterr().out
    told = await shown(here, place, capsys)
    assert (told["event_id"], told["layout_id"], told["layout_version"]) == (str(event.id), str(pin.layout_id), 1)
    assert (told["version"], told["is_materialised"], told["inventory_epoch"]) == (1, False, 0)
    assert [(zone["code"], zone["capacity"], zone["available"]) for zone in told["zones"]] == [
        ("S", 10, 10), ("V", 3, 3), ("P", 300, 300),
    ]  # fmt: skip
    rule = await make_rule(db, place, amount_minor=123_456)
    stalls, members, _ = [zone["zone_id"] for zone in told["zones"]]
    overrides = told["overrides"]
    overrides["pricing_zones"][stalls] = {"pricing_rule_id": str(rule.id)}
    overrides["disabled_zones"].append(members)
    file = tmp_path / "said.json"
    file.write_text(json.dumps(overrides))
    await put(here, place, path=file)
    said = capsys.readouterr().out
    line = next(line for line in said.splitlines() if line.split()[:1] == ["S"])
    assert line.split() == ["S", "Stalls", "reserved_seating", "public", "10", "10", "0", "0", "0", "ZAR", "123,456"]
    assert "switched off" in next(line for line in said.splitlines() if line.split()[:1] == ["V"])
    assert "310 places: 10 reserved, 0 seated without number, 300 standing; 3 blocked" in said
    assert (await shown(here, place, capsys))["overrides"] == overrides
    (fact,) = (await facts_of(db, event, "event_seating_changed"))[1:]
    assert (fact["data"]["actor_type"], fact["actor_id"], fact["data"]["places"]) == ("operator", None, 310)


async def test_what_is_not_given_stays(
    studio: Studio,
    place: Organization,
    draft: Seated,
    here: Settings,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The layout, when only a word about it is given; the word, for the same version; of another it means nothing."""
    file = tmp_path / "said.json"
    file.write_text(json.dumps({"disabled_zones": [str(draft.hall.zone_id("P"))]}))
    await put(here, place, path=file)
    told = await shown(here, place, capsys)
    assert (told["layout_id"], told["version"]) == (str(draft.pin.layout_id), 2)
    await put(here, place, layout=str(draft.pin.layout_id), version=1)
    await put(here, place)
    assert await shown(here, place, capsys) == told
    await next_pin(studio, place.id, draft.pin.layout_id, small_layout())
    await put(here, place, layout=str(draft.pin.layout_id), version=2)
    told = await shown(here, place, capsys)
    assert (told["layout_version"], told["overrides"]["disabled_zones"], told["version"]) == (2, [], 3)


async def test_publishing_makes_places_and_unpublishing_removes_them(
    db: Database, place: Organization, draft: Seated, here: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    """As everybody else's publishing does; the journal says that it was the operator."""
    await move(here, place, Verb.PUBLISH)
    told = await shown(here, place, capsys)
    assert (told["is_materialised"], told["inventory_epoch"]) == (True, 1)
    assert (len(await seat_rows(db, draft.event)), len(await zone_rows(db, draft.event))) == (13, 3)
    (fact,) = await facts_of(db, draft.event, "event_inventory_created")
    assert (fact["data"]["actor_type"], fact["data"]["seats"]) == ("operator", 13)
    await move(here, place, Verb.UNPUBLISH)
    assert (await seat_rows(db, draft.event), await zone_rows(db, draft.event)) == ([], [])
    await move(here, place, Verb.PUBLISH)
    assert (await event_now(db, draft.event)).inventory_epoch == 2


async def test_a_refusal_is_said_in_words_and_changes_nothing(
    db: Database,
    studio: Studio,
    place: Organization,
    draft: Seated,
    here: Settings,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Every fault on a line of its own; files that are none; layouts and events that are not there."""
    before = await shown(here, place, capsys)
    file = tmp_path / "said.json"
    pit = str(draft.hall.zone_id("P"))
    wrong = {"zone_overrides": {pit: {"capacity": 301}}, "seating_overrides": {"colour": "red"}}
    file.write_text(json.dumps(wrong))
    with pytest.raises(StartRefused, match="Nothing was changed") as refused:
        await put(here, place, path=file)
    first, second, rest = refused.value.hint.split("\n  ")
    assert first.startswith(f"zone_overrides.{pit}.capacity: 'Pit' has room for 1 to 300, not for 301. ")
    assert second == (
        "seating_overrides.colour: colour is no field of the policy."
        " Leave it out, or have the organization's policy changed. [override_refused]"
    )
    assert rest == "error_count: 2"
    for text, said in (
        ("{", "is no JSON"),
        ("[" * 100_000, "is no JSON"),
        ("[]", "has errors"),
        ('{"surprise": 1}', "has errors"),
    ):
        file.write_text(text)
        with pytest.raises(StartRefused, match=said):
            await put(here, place, path=file)
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(StartRefused, match="is no JSON"):
        await put(here, place, path=file)
    with pytest.raises(StartRefused, match="cannot read"):
        await put(here, place, path=tmp_path / "none.json")
    elsewhere = await active_pin(studio, await make_venue(db, place))
    for asked, said in (
        ({"version": 1}, "name that too"),
        ({"layout": str(new_id()), "version": 1}, "0 layouts of the venue"),
        ({"layout": str(draft.pin.layout_id), "version": 9}, "no such layout"),
        ({"layout": str(elsewhere.layout_id), "version": 1}, "0 layouts of the venue"),
        ({"layout": "Nowhere"}, "0 layouts of the venue"),
        ({"slug": "nothing"}, "no such event"),
    ):
        with pytest.raises(StartRefused, match=said):
            await put(here, place, **asked)
    assert await shown(here, place, capsys) == before


async def test_what_is_over_keeps_its_seating(
    db: Database, studio: Studio, place: Organization, venue: Venue, here: Settings, tmp_path: Path
) -> None:
    """The terminal is told so in words, as everybody is."""
    made = await seated_event(db, studio, place, venue=venue, slug="show", status="cancelled")
    before = await seat_rows(db, made.event), await facts_of(db, made.event)
    file = tmp_path / "said.json"
    file.write_text(json.dumps({"blocked_seat_ids": []}))
    with pytest.raises(StartRefused, match="cannot be changed any more"):
        await put(here, place, path=file)
    assert (await seat_rows(db, made.event), await facts_of(db, made.event)) == before


async def test_a_layout_is_chosen_by_its_name(
    db: Database, studio: Studio, place: Organization, venue: Venue, here: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its active version, when no other is named; a name that two have is refused with their ids."""
    await make_event(db, place, venue, slug="show")
    hall = layouts.generated("theatre-350")
    await layouts.add(here, organization=place.slug, venue=venue.slug, layout=hall)
    with pytest.raises(StartRefused, match="may be chosen by events yet") as refused:
        await put(here, place, layout=hall.name)
    assert "layout activate" in refused.value.hint
    (listed,) = await operator.list_layouts(studio, place)
    await layouts.add(here, organization=place.slug, layout_id=listed.id, layout=hall, is_activated=True)
    await put(here, place, layout=hall.name)
    told = await shown(here, place, capsys)
    assert (told["layout_id"], told["layout_version"]) == (str(listed.id), 2)
    await layouts.add(here, organization=place.slug, venue=venue.slug, layout=hall)
    with pytest.raises(StartRefused, match="2 layouts of the venue") as refused:
        await put(here, place, layout=hall.name)
    assert str(listed.id) in refused.value.hint


async def test_who_is_in_the_way_is_named(
    studio: Studio,
    db: Database,
    place: Organization,
    venue: Venue,
    here: Settings,
    owner_conn: Connection,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Seat by seat and zone by zone, when a change or unpublishing would take something from somebody."""
    seated = await seated_event(
        db, studio, place, venue=venue, slug="show", status="published", overlay=Overlay(disabled_zones=("V",))
    )
    await hold_seat(owner_conn, seated.event, seated.ordinal("S-A-2"))
    await take_places(owner_conn, seated.event, seated.hall.zone_id("P"), sold=7)
    before = await shown(here, place, capsys)
    with pytest.raises(StartRefused, match="hold or have bought") as refused:
        await move(here, place, Verb.UNPUBLISH)
    seat, zone, count = refused.value.hint.split("\n  ")
    assert seat.endswith("zone: Stalls, row: A, seat_number: 2, status: held")
    assert zone.endswith("name: Pit, room: 0, held: 0, sold: 7")
    assert count == "seat_count: 1"
    file = tmp_path / "said.json"
    file.write_text(json.dumps({"zone_overrides": {str(seated.hall.zone_id("P")): {"capacity": 6}}}))
    with pytest.raises(StartRefused, match="hold or have bought"):
        await put(here, place, path=file)
    assert await shown(here, place, capsys) == before


async def test_the_commands_are_there(place: Organization, draft: Seated, here: Settings, data_dir: Path) -> None:
    """Shown, set and published by a process of its own; a refusal is two lines and a number, never a traceback."""
    assert here.database_url is not None
    env = environment(data_dir, VOELGOED_DATABASE_URL=here.database_url.get_secret_value())
    told = json.loads(voelgoed("seating", "show", place.slug, "show", "--json", env=env).stdout)
    file = data_dir / "said.json"
    file.write_text(json.dumps(told["overrides"] | {"disabled_zones": [str(draft.hall.zone_id("V"))]}))
    layout = ("--layout", str(draft.pin.layout_id), "--version", "1")
    done = voelgoed("seating", "set", place.slug, "show", *layout, "--overrides", str(file), env=env)
    assert (done.returncode, "switched off" in done.stdout) == (0, True), done.stderr
    assert voelgoed("event", "publish", place.slug, "show", env=env).returncode == 0
    told = json.loads(voelgoed("seating", "show", place.slug, "show", "--json", env=env).stdout)
    assert (told["is_materialised"], [zone["blocked"] for zone in told["zones"]]) == (True, [0, 3, 0])
    file.write_text('{"surprise": 1}')
    for args, said in (
        (("seating", "set", place.slug, "show", "--overrides", str(file)), "surprise"),
        (("seating", "set", place.slug, "show", "--version", "1"), "name that too"),
        (("seating", "show", place.slug, "nothing"), "no such event"),
        (("seating", "show", "nowhere-at-all", "show"), "nowhere-at-all"),
        (("seating", "set", place.slug, "show", "--layout", "x", "--version", "1"), "are called 'x'"),
    ):
        refused = voelgoed(*args, env=env)
        assert (refused.returncode, said in refused.stderr) == (2, True), refused.stderr
        assert "Traceback" not in refused.stderr
