"""`voelgoed policy`: what an organization lets its seating be, seen and set at the terminal."""

import json
from pathlib import Path

import pytest
from pydantic import SecretStr

from tests.make.accounts import make_organization
from tests.make.events import make_venue
from tests.make.layouts import small_layout
from tests.make.processes import environment, voelgoed
from voelgoed import schema
from voelgoed.accounts.model import Organization
from voelgoed.cli import layouts, policy
from voelgoed.cli.policy import read_values
from voelgoed.config import Settings
from voelgoed.db import Database
from voelgoed.embedded import Embedded
from voelgoed.errors import StartRefused
from voelgoed.seating import operator
from voelgoed.seating.policy import FIELDS, Policy, values_of


@pytest.fixture
async def place(db: Database) -> Organization:
    return await make_organization(db)


@pytest.fixture
def here(servers: Embedded, database: str, data_dir: Path) -> Settings:
    return Settings(database_url=SecretStr(servers.postgres_url(schema.APP, database)), data_dir=data_dir)


def test_values_as_people_write_them() -> None:
    """Each as its field takes it; what none takes stays as it was, to be refused as such."""
    told = ["allow_vip_zones=true", "allow_ga_seating=no", "max_holds_per_ip=none", "max_group_split=0"]
    assert read_values([*told, "allowed_access_modes=public,whitelist", "locked_fields="]) == {
        "allow_vip_zones": True,
        "allow_ga_seating": False,
        "max_holds_per_ip": None,
        "max_group_split": 0,
        "allowed_access_modes": ["public", "whitelist"],
        "locked_fields": [],
    }
    assert read_values(["allow_vip_zones=1", "max_group_split=-1", "colour=red"]) == {
        "allow_vip_zones": "1",
        "max_group_split": "-1",
        "colour": "red",
    }
    with pytest.raises(StartRefused, match="says nothing"):
        read_values(["allow_vip_zones"])


async def test_a_policy_is_shown_and_set(
    db: Database, place: Organization, here: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    """For people and for programs; locked and unlocked; with the reason in the journal."""
    await policy.show(here, organization=place.slug, as_json=False)
    assert "version 0: the defaults" in capsys.readouterr().out
    values = read_values(["allow_vip_zones=true", "max_holds_per_user=8"])
    await policy.change(
        here, organization=place.slug, values=values, lock=["allow_vip_zones"], unlock=(), reason="as agreed"
    )
    said = capsys.readouterr().out
    line = next(line for line in said.splitlines() if line.split()[:1] == ["allow_vip_zones"])
    assert line.split() == ["allow_vip_zones", "true", "false", "locked"]
    await policy.show(here, organization=place.slug, as_json=True)
    shown = json.loads(capsys.readouterr().out)
    expected = values_of(Policy(allow_vip_zones=True, max_holds_per_user=8, locked_fields=("allow_vip_zones",)))
    assert (shown["version"], shown["values"]) == (1, json.loads(json.dumps(expected)))
    await policy.change(
        here, organization=place.slug, values={}, lock=["max_group_split"], unlock=["allow_vip_zones"], reason="again"
    )
    assert (await operator.get_policy(db, place)).policy.locked_fields == ("max_group_split",)
    async with db.transaction(place.id) as conn:
        rows = await conn.fetch("select reason from journal where kind = 'seating_policy_changed' order by seq")
    assert [row["reason"] for row in rows] == ["as agreed", "again"]


async def test_what_is_wrong_is_said_field_by_field(db: Database, place: Organization, here: Settings) -> None:
    """And nothing is changed."""
    values = read_values(["allow_vip_zones=1", "colour=red"])
    with pytest.raises(StartRefused) as refused:
        await policy.change(here, organization=place.slug, values=values, lock=(), unlock=(), reason="why")
    assert refused.value.hint == "allow_vip_zones must be true or false\n  colour is no field of the policy"
    with pytest.raises(StartRefused, match="organization"):
        await policy.show(here, organization="nobody-there", as_json=False)
    assert (await operator.get_policy(db, place)).version == 0


async def test_a_hall_that_is_not_allowed_is_refused_with_its_faults(
    db: Database, place: Organization, here: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each on a line of its own."""
    await make_venue(db, place, slug="hall")
    with pytest.raises(StartRefused, match="Small hall has 1 errors: nothing was stored"):
        await layouts.add(here, organization=place.slug, venue="hall", layout=small_layout())
    assert "zones[1].zone_type: Zone V: VIP zones are not allowed." in capsys.readouterr().err


async def test_the_commands_are_there(place: Organization, here: Settings, data_dir: Path) -> None:
    """Without a reason nothing is set."""
    assert here.database_url is not None
    env = environment(data_dir, VOELGOED_DATABASE_URL=here.database_url.get_secret_value())
    assert voelgoed("policy", "set", place.slug, "allow_vip_zones=true", env=env).returncode == 2
    done = voelgoed(
        "policy", "set", place.slug, "allow_vip_zones=true", "--lock", "max_group_split", "--reason", "why", env=env
    )
    assert done.returncode == 0, done.stderr
    shown = json.loads(voelgoed("policy", "show", place.slug, "--json", env=env).stdout)
    assert shown["values"].keys() == FIELDS.keys()
    assert (shown["values"]["allow_vip_zones"], shown["values"]["locked_fields"]) == (True, ["max_group_split"])
