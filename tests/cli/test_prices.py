"""`voelgoed price`: rules made and listed at the terminal."""

import json
from pathlib import Path

import pytest
from pydantic import SecretStr

from tests.make.accounts import make_organization
from tests.make.processes import environment, voelgoed
from voelgoed import schema
from voelgoed.accounts.model import Organization
from voelgoed.cli import prices
from voelgoed.config import Settings
from voelgoed.db import Database
from voelgoed.embedded import Embedded
from voelgoed.errors import StartRefused
from voelgoed.ticketing.model import NewRule


@pytest.fixture
async def place(db: Database) -> Organization:
    return await make_organization(db)


@pytest.fixture
def here(servers: Embedded, database: str, data_dir: Path) -> Settings:
    return Settings(database_url=SecretStr(servers.postgres_url(schema.APP, database)), data_dir=data_dir)


async def test_a_rule_is_made_and_listed(
    db: Database, place: Organization, here: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    """For a person and for a program; the journal says that it was the operator."""
    new = NewRule(name="[b]Full", currency="ZAR", amount_minor=1_234_500, by_category={"wheelchair": 0})
    await prices.add_rule(here, organization=place.slug, new=new)
    said = capsys.readouterr().out
    await prices.list_rules(here, organization=place.slug, as_json=True)
    (listed,) = json.loads(capsys.readouterr().out)
    assert said == f"[b]Full  {listed['id']}\n"
    assert listed == {
        "id": listed["id"],
        "name": "[b]Full",
        "currency": "ZAR",
        "amount_minor": 1_234_500,
        "by_category": {"wheelchair": 0},
        "version": 1,
    }
    await prices.list_rules(here, organization=place.slug, as_json=False)
    table = capsys.readouterr().out
    assert all(word in table for word in (listed["id"], "ZAR 1,234,500"))
    async with db.transaction(place.id) as conn:
        told = await conn.fetchval("select data->>'actor_type' from journal where kind = 'pricing_rule_created'")
    assert told == "operator"


async def test_a_wrong_rule_is_refused_in_words(
    place: Organization, here: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    """With what is wrong of it; nothing is stored."""
    new = NewRule(name="Full", currency="rand", amount_minor=1, by_category={"companion": 2})
    with pytest.raises(StartRefused) as refused:
        await prices.add_rule(here, organization=place.slug, new=new)
    assert all(field in refused.value.hint for field in ("currency", "by_category.companion"))
    await prices.list_rules(here, organization=place.slug, as_json=True)
    assert json.loads(capsys.readouterr().out) == []


@pytest.mark.parametrize("told", [["wheelchair"], ["wheelchair="], ["wheelchair=-1"], ["aisle=1.5"], ["a=1", "a=2"]])
def test_an_amount_that_is_none_is_refused(told: list[str]) -> None:
    """Whole minor units, once for each kind of seat."""
    with pytest.raises(StartRefused, match="is no amount"):
        prices.read_amounts(told)


async def test_the_commands_are_there(place: Organization, here: Settings, data_dir: Path) -> None:
    """In rand unless said otherwise; an organization that is none is named."""
    assert here.database_url is not None
    env = environment(data_dir, VOELGOED_DATABASE_URL=here.database_url.get_secret_value())
    kinds = ("--category", "wheelchair=0", "--category", "companion=50")
    added = voelgoed("price", "add", place.slug, "Full price", "10000", *kinds, env=env)
    assert added.returncode == 0, added.stderr
    (listed,) = json.loads(voelgoed("price", "list", place.slug, "--json", env=env).stdout)
    assert (listed["currency"], listed["amount_minor"]) == ("ZAR", 10_000)
    assert listed["by_category"] == {"wheelchair": 0, "companion": 50}
    refused = voelgoed("price", "add", place.slug, "Full price", "1", "--currency", "x", env=env)
    assert (refused.returncode, "currency" in refused.stderr) == (2, True)
    nowhere = voelgoed("price", "list", "no-such-organization", env=env)
    assert (nowhere.returncode, "no-such-organization" in nowhere.stderr) == (2, True)
