"""Organizations and people for tests."""

from dataclasses import dataclass
from uuid import UUID

from voelgoed.accounts import store, tokens, usecases
from voelgoed.accounts.model import Organization, Role
from voelgoed.db import Database
from voelgoed.ids import UserId, new_id

PASSWORD = "correct horse battery"


async def make_organization(db: Database, *, slug: str | None = None, name: str = "Die Skouburg") -> Organization:
    return await usecases.found_organization(db, slug=slug or f"org-{new_id().hex}", name=name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """Somebody who is signed in."""

    user_id: UserId
    session_id: UUID
    email: str | None
    token: str
    organization: Organization
    role: Role

    @property
    def headers(self) -> dict[str, str]:
        return {"authorization": f"Bearer {self.token}"}

    @property
    def cookie(self) -> dict[str, str]:
        return {"cookie": f"vg_session={self.token}"}

    @property
    def csrf(self) -> dict[str, str]:
        return {"x-csrf-token": tokens.csrf_token(self.token)}


async def make_person(
    db: Database,
    organization: Organization | None = None,
    role: Role = Role.CUSTOMER,
    *,
    platform: Role | None = None,
    is_guest: bool = False,
    password_hash: str | None = None,
) -> Person:
    """A person with a session, made without the slow part of signing in."""
    organization = organization or await make_organization(db)
    user_id, session_id, token = UserId(new_id()), new_id(), tokens.new_session_token()
    email = None if is_guest else f"{user_id.hex}@example.test"
    async with db.transaction(organization.id) as conn:
        await store.add_user(
            conn, user_id, email=email, password_hash=password_hash, name="Anna", locale="en", is_guest=is_guest
        )
        await store.set_member(conn, organization.id, user_id, role)
        await store.add_session(conn, session_id, tokens.token_hash(token), user_id, organization.id)
        if platform:
            await store.grant_platform_role(conn, user_id, platform)
    return Person(
        user_id=user_id, session_id=session_id, email=email, token=token, organization=organization, role=role
    )
