"""What the operator of an installation does, who has the machine itself and so needs no session."""

from collections.abc import Sequence

import structlog

from voelgoed.accounts import roles, rules, store
from voelgoed.accounts.model import Organization, Role, User
from voelgoed.accounts.passwords import Passwords
from voelgoed.accounts.roles import OPERATOR, UserNotFound
from voelgoed.accounts.signing import OrganizationNotFound, PasswordRefused
from voelgoed.db import Database
from voelgoed.ids import UserId, new_id
from voelgoed.journal.model import Fact
from voelgoed.journal.recording import record

log = structlog.get_logger(__name__)


async def list_organizations(db: Database, *, limit: int) -> Sequence[Organization]:
    """The oldest organizations of the installation."""
    async with db.system_transaction() as conn:
        return await store.list_organizations(conn, None, limit)


async def create_user(
    db: Database, passwords: Passwords, *, organization: str, email: str, name: str, role: Role, password: str
) -> User:
    """Make an account with a role in an organization."""
    email = rules.normal_email(email)
    if why := rules.refuse_password(password, email=email):
        raise PasswordRefused(reason=why)
    password_hash = await passwords.hash(password)
    async with db.system_transaction() as conn:
        place = await store.find_organization(conn, organization)
        if place is None:
            raise OrganizationNotFound(organization=organization)
        user = await store.add_user(
            conn, UserId(new_id()), email=email, password_hash=password_hash, name=name, locale="en", is_guest=False
        )
        await store.set_member(conn, place.id, user.id, role)
        data = {"user_id": str(user.id), "role_before": None, "role_after": role, "actor_type": OPERATOR}
        await record(
            conn, Fact(kind="member_role_changed", organization_id=place.id, reason="by the operator", data=data)
        )
    return user


async def is_known(db: Database, *, email: str) -> bool:
    """Whether somebody has an account with this address."""
    async with db.system_transaction() as conn:
        return await store.find_user_by_email(conn, rules.normal_email(email)) is not None


async def appoint(db: Database, *, email: str, role: Role) -> UserId:
    """Give somebody a platform role."""
    async with db.system_transaction() as conn:
        found = await store.find_user_by_email(conn, rules.normal_email(email))
        if found is None:
            raise UserNotFound
        await store.grant_platform_role(conn, found[0].id, role)
    log.info("platform_role_granted", user_id=str(found[0].id), role=role)
    return found[0].id


async def dismiss(db: Database, *, email: str, role: Role) -> UserId:
    """Take a platform role away; processes believe it within half a minute."""
    async with db.system_transaction() as conn:
        found = await store.find_user_by_email(conn, rules.normal_email(email))
        if found is None:
            raise UserNotFound
        if role is Role.SUPER_ADMIN:
            await roles.keep_a_super_admin(conn, found[0].id)
        await store.withdraw_platform_role(conn, found[0].id, role)
    log.info("platform_role_withdrawn", user_id=str(found[0].id), role=role)
    return found[0].id
