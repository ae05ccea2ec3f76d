"""`voelgoed layout`: a hall from the generator or a file, and out again."""

import json
from pathlib import Path
from uuid import UUID

import pytest
from pydantic import SecretStr

from tests.make.accounts import make_organization
from tests.make.events import make_venue
from tests.make.layouts import SMALL, allow_everything, changed, encoded, small_layout
from tests.make.processes import environment, voelgoed
from voelgoed import schema
from voelgoed.accounts.model import Organization
from voelgoed.cli import layouts
from voelgoed.config import Settings
from voelgoed.db import Database
from voelgoed.embedded import Embedded
from voelgoed.errors import StartRefused
from voelgoed.events.model import Venue
from voelgoed.seating.document import read_layout
from voelgoed.seating.model import VersionStatus


@pytest.fixture
async def place(db: Database) -> Organization:
    place = await make_organization(db)
    await allow_everything(db, place.id)
    return place


@pytest.fixture
async def venue(db: Database, place: Organization) -> Venue:
    return await make_venue(db, place, slug="hall", max_capacity=1_000)


@pytest.fixture
def here(servers: Embedded, database: str, data_dir: Path) -> Settings:
    return Settings(database_url=SecretStr(servers.postgres_url(schema.APP, database)), data_dir=data_dir)


async def test_a_hall_from_file_to_file(
    place: Organization, venue: Venue, here: Settings, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Imported, versioned, activated, compared and exported; what comes out is what went in."""
    org = place.slug
    await layouts.add(here, organization=org, venue="hall", layout=small_layout())
    capsys.readouterr()
    await layouts.list_layouts(here, organization=org, as_json=True)
    (listed,) = json.loads(capsys.readouterr().out)
    assert (listed["name"], listed["latest_version"], listed["active_version"]) == ("Small hall", 1, None)
    layout_id = UUID(listed["id"])
    moved = small_layout({"zones.0.rows.0.seats.0.x": 51})
    await layouts.add(here, organization=org, layout_id=layout_id, layout=moved)
    await layouts.move(here, organization=org, layout_id=layout_id, version=2, to=VersionStatus.ACTIVE, reason="")
    capsys.readouterr()
    await layouts.compare(here, organization=org, layout_id=layout_id, before=1, after=2)
    said = capsys.readouterr().out
    assert "S-A-1" in next(line for line in said.splitlines() if line.strip().startswith("moved"))
    for is_csv, name in ((False, "hall.json"), (True, "hall.csv")):
        await layouts.export(here, organization=org, layout_id=layout_id, version=2, is_csv=is_csv, to=tmp_path / name)
    assert read_layout((tmp_path / "hall.json").read_bytes()) == moved
    assert (tmp_path / "hall.csv").read_text().startswith("seat_code,")


def test_every_fault_of_a_file_is_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each with its place; then the file is refused as a whole."""
    file = tmp_path / "broken.json"
    file.write_bytes(encoded(changed({"zones.0.focal_point": [1], "zones.2.capacity": -1, "surprise": 1})))
    with pytest.raises(StartRefused, match="has 3 errors: nothing was stored"):
        layouts.read(file, is_pretix=False)
    said = capsys.readouterr().err
    assert all(path in said for path in ("zones[0].focal_point", "zones[2].capacity", "surprise"))
    with pytest.raises(StartRefused, match="cannot read"):
        layouts.read(tmp_path / "none.json", is_pretix=False)


def test_a_spec_of_ones_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Rows and seats, curve and aisles from a file; what is wrong with it is told, with its place."""
    file = tmp_path / "hall.json"
    block = {
        "kind": "rows",
        "code": "A",
        "name": "Floor",
        "rows": 4,
        "seats": 10,
        "curve_radius": 900,
        "segments": [1, 1],
    }
    file.write_text(json.dumps({"name": "Hall", "blocks": [block]}))
    made = layouts.generated_from(file)
    assert (made.name, made.seat_count) == ("Hall", 40)
    assert len({seat.segment for seat in made.zones[0].rows[0].seats}) == 2
    file.write_text(json.dumps({"name": "Hall", "blocks": [{**block, "seat_pitch": 0}]}))
    with pytest.raises(StartRefused, match="has 1 errors"):
        layouts.generated_from(file)
    assert "blocks[0].seat_pitch" in capsys.readouterr().err
    file.write_text('{"blocks": 3}')
    with pytest.raises(StartRefused, match="is no spec"):
        layouts.generated_from(file)


async def test_the_commands_are_there(place: Organization, venue: Venue, here: Settings, data_dir: Path) -> None:
    """A preset as a file that imports again, a dry run, a hall at a venue, and a preset that is none."""
    assert here.database_url is not None
    env = environment(data_dir, VOELGOED_DATABASE_URL=here.database_url.get_secret_value())
    file = data_dir / "theatre.json"
    assert voelgoed("layout", "generate", "theatre-350", "--to", str(file), env=env).returncode == 0
    tried = voelgoed("layout", "import", place.slug, str(file), "--dry-run", env=env)
    assert tried.stdout == "Theatre: 350 seats, 350 places, no errors\n"
    stored = voelgoed("layout", "generate", "festival", "--org", place.slug, "--venue", "hall", env=env)
    assert (stored.returncode, "exceed the venue's capacity" in stored.stderr) == (2, True)
    stored = voelgoed("layout", "import", place.slug, str(file), "--venue", "hall", env=env)
    assert "v1" in stored.stdout, stored.stderr
    refused = voelgoed("layout", "generate", "nothing", env=env)
    assert (refused.returncode, "stadium-100k" in refused.stderr) == (2, True)
    assert SMALL["format"] == json.loads(file.read_text())["format"]
