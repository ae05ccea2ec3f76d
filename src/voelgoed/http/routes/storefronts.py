"""The public face of an organization."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Path

from voelgoed.accounts import usecases
from voelgoed.accounts.permissions import Action
from voelgoed.accounts.signing import OrganizationNotFound
from voelgoed.http.context import Caller
from voelgoed.http.guard import guarded
from voelgoed.http.shapes import SLUG, Data, View

router = APIRouter(prefix="/api/storefronts", tags=["storefront"])


class StorefrontView(View):
    """Whose storefront this is."""

    id: UUID
    slug: str
    name: str
    is_suspended: bool


@router.get("/{slug}")
@guarded(Action.SEE_STOREFRONT, OrganizationNotFound)
async def get_storefront(
    slug: Annotated[str, Path(min_length=1, max_length=63, pattern=SLUG)], caller: Caller
) -> Data[StorefrontView]:
    """Whose storefront stands at this address."""
    found = await usecases.find_organization(caller.services.db, slug=slug)
    if found is None:
        raise OrganizationNotFound(organization=slug)
    return Data(
        data=StorefrontView(id=found.id, slug=found.slug, name=found.name, is_suspended=found.suspended_at is not None)
    )
