"""What can be done with accounts."""

from voelgoed.accounts import store
from voelgoed.accounts.model import Organization
from voelgoed.db import Database
from voelgoed.ids import OrganizationId, new_id
from voelgoed.journal.model import Fact
from voelgoed.journal.recording import record


async def found_organization(db: Database, *, slug: str, name: str) -> Organization:
    """Make a new organization. Only the operator of the installation does this, from the command line."""
    organization_id = OrganizationId(new_id())
    async with db.transaction(organization_id) as conn:
        organization = await store.add_organization(conn, organization_id, slug, name)
        await record(
            conn,
            Fact(kind="organization_created", organization_id=organization.id, data={"slug": slug, "name": name}),
        )
    return organization


async def find_organization(db: Database, *, slug: str) -> Organization | None:
    """The organization at this address, if there is one."""
    async with db.system_transaction() as conn:
        return await store.find_organization(conn, slug)
