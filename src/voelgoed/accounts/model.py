"""Organizations, people and the proofs of who they are, as values."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import lru_cache
from uuid import UUID

import msgspec

from voelgoed.ids import OrganizationId, UserId
from voelgoed.journal.model import Origin
from voelgoed.network import Prefix, network_of

ORIGINS_KEPT = 1_000
"""A browser asks again within seconds, and to read who it is anew takes microseconds: not more than 1 MB for that."""


class Role(StrEnum):
    """What somebody is: nobody, a member of an organization, or of the platform's own staff."""

    ANONYMOUS = "anonymous"
    CUSTOMER = "customer"
    SCANNER = "scanner"
    STAFF = "staff"
    ADMIN = "admin"
    OWNER = "owner"
    TENANT_MANAGER = "tenant_manager"
    SUPER_ADMIN = "super_admin"


MEMBER_ROLES = (Role.OWNER, Role.ADMIN, Role.STAFF, Role.SCANNER, Role.CUSTOMER)
TEAM_ROLES = frozenset(MEMBER_ROLES) - {Role.CUSTOMER}
PLATFORM_ROLES = (Role.SUPER_ADMIN, Role.TENANT_MANAGER)


class MembershipStatus(StrEnum):
    """Whether a customer's membership counts."""

    ACTIVE = "active"
    REVOKED = "revoked"
    EXPIRED = "expired"


@dataclass(frozen=True, slots=True, kw_only=True)
class Organization:
    """Whoever sells here; its records are invisible to every other."""

    id: OrganizationId
    slug: str
    name: str
    created_at: datetime
    suspended_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """A person. A guest has no e-mail address or password; a deleted one has lost both."""

    id: UserId
    email: str | None
    name: str
    locale: str
    is_guest: bool
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A person in an organization."""

    user_id: UserId
    email: str | None
    name: str
    is_guest: bool
    role: Role
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Membership:
    """A customer's tier, which opens zones reserved for it, and who they are."""

    id: UUID
    user_id: UserId
    name: str
    email: str | None
    tier: str
    status: MembershipStatus
    valid_from: datetime
    valid_to: datetime | None
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey:
    """A program's proof of who it is; the secret itself is shown once and kept nowhere."""

    id: UUID
    name: str
    role: Role
    hint: str
    created_by: UserId
    created_at: datetime
    expires_at: datetime | None
    last_used_at: datetime | None
    revoked_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Actor:
    """Who asks: found by the edge before anything else, and handed to every use case."""

    role: Role
    organization_id: OrganizationId | None = None
    organization_slug: str = ""
    organization_name: str = ""
    user_id: UserId | None = None
    user_name: str = ""
    is_guest: bool = False
    platform_roles: frozenset[Role] = frozenset()
    session_id: UUID | None = None
    api_key_id: UUID | None = None

    @property
    def id(self) -> UUID | None:
        """Who stands in the journal: the person, or the program's key."""
        return self.user_id or self.api_key_id

    @property
    def kind(self) -> str:
        """What they are in the journal, which outlives their name: a role, or a program."""
        return self.role.value if self.api_key_id is None else "api_key"

    @property
    def platform_kind(self) -> str:
        """The same where somebody intervenes by a platform role; elsewhere that one does not count."""
        return (Role.SUPER_ADMIN if Role.SUPER_ADMIN in self.platform_roles else Role.TENANT_MANAGER).value

    @property
    def roles(self) -> frozenset[Role]:
        """Everything this actor is."""
        return self.platform_roles | {self.role} if self.platform_roles else _ONLY[self.role]


_ONLY = {role: frozenset({role}) for role in Role}
ANONYMOUS = Actor(role=Role.ANONYMOUS)


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """Who asks, and from where: what a use case needs to decide and to record."""

    actor: Actor
    request_id: UUID
    ip: str | None = None
    user_agent: str | None = None

    @property
    def origin(self) -> Origin:
        return _origin(self.actor.session_id, self.ip, self.user_agent)

    def network(self, prefix: Prefix) -> str:
        """Return the network that the request is counted in; all requests without an address are counted as one."""
        return network_of(self.ip, prefix) or ""

    @property
    def organization_id(self) -> OrganizationId:
        """The organization of the session; a use case that needs one is never called without."""
        assert self.actor.organization_id is not None
        return self.actor.organization_id


@lru_cache(ORIGINS_KEPT)
def _origin(session_id: UUID | None, peer: str | None, user_agent: str | None) -> Origin:
    """The same browser asks again and again; what it says of itself is read once."""
    return Origin.seen(session_id=session_id, peer=peer, user_agent=user_agent)
