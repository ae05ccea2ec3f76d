"""Organizations: founded once, under an address of their own, with a fact in the journal."""

import json

import pytest

from tests.make.accounts import make_organization
from voelgoed.accounts import usecases
from voelgoed.accounts.refusals import OrganizationInvalid, SlugTaken
from voelgoed.db import Database
from voelgoed.ids import new_id


async def test_founding_is_recorded_with_the_organization(db: Database) -> None:
    """The fact is there exactly when the organization is."""
    organization = await make_organization(db, name="Passievol")
    async with db.transaction(organization.id) as conn:
        facts = await conn.fetch("select kind, data from journal where organization_id = $1", organization.id)
    assert [fact["kind"] for fact in facts] == ["organization_created"]
    assert json.loads(facts[0]["data"]) == {
        "slug": organization.slug,
        "name": "Passievol",
        "actor_type": "operator",
    }
    assert await usecases.find_organization(db, slug=organization.slug) == organization


async def test_an_address_is_taken_once(db: Database) -> None:
    """The second to ask is refused, and leaves no fact behind."""
    organization = await make_organization(db)
    with pytest.raises(SlugTaken) as refused:
        await make_organization(db, slug=organization.slug)
    assert refused.value.facts == {"slug": organization.slug}
    async with db.system_transaction() as conn:
        told = "select count(*) from journal where data ->> 'slug' = $1"
        assert await conn.fetchval(told, organization.slug) == 1


@pytest.mark.parametrize("slug", ["", "Caps", "-a", "a-", "a b", "a" * 64, "a_b", "é"])
async def test_addresses_have_a_form(db: Database, slug: str) -> None:
    """What would not look right in a URL is refused, and nothing is stored."""
    with pytest.raises(OrganizationInvalid):
        await usecases.found_organization(db, slug=slug, name="X")
    assert await usecases.find_organization(db, slug=slug) is None


@pytest.mark.parametrize("name", ["", "x" * 201])
async def test_names_have_a_length(db: Database, name: str) -> None:
    """Not nothing, and not a novel."""
    with pytest.raises(OrganizationInvalid):
        await usecases.found_organization(db, slug=f"org-{new_id().hex}", name=name)
