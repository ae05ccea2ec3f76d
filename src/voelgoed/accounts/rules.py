"""Decisions about accounts that need nothing but values."""

from datetime import datetime
from enum import StrEnum

from voelgoed.accounts.model import Membership, MembershipStatus, Role

PASSWORD_CHARS_MIN = 10
PASSWORD_CHARS_MAX = 200
PASSWORD_VARIETY_MIN = 4  # "aaaaaaaaaa" has the length and protects nothing
RESERVED_SLUGS = frozenset({"admin", "api", "assets", "healthz", "icons", "metrics", "platform", "readyz"})
"""What the server and the pages answer at the root of an address: an organization of that name could not be reached.

This list is what holds, and grows with the routes; the table refuses the oldest of them by itself.
"""
RANK = {Role.CUSTOMER: 0, Role.SCANNER: 1, Role.STAFF: 2, Role.ADMIN: 3, Role.OWNER: 4}


def normal_email(text: str) -> str:
    """The form in which an address is stored and compared."""
    return text.strip().lower()


class PasswordWeakness(StrEnum):
    """Why a password will not do; the words are part of the contract."""

    TOO_SHORT = "too_short"
    TOO_LONG = "too_long"
    IS_EMAIL = "is_email"
    MONOTONOUS = "monotonous"


def refuse_password(password: str, *, email: str) -> PasswordWeakness | None:
    """Say why this password will not do; None when it will. Length is what protects, so little else is asked for."""
    if len(password) < PASSWORD_CHARS_MIN:
        return PasswordWeakness.TOO_SHORT
    if len(password) > PASSWORD_CHARS_MAX:
        return PasswordWeakness.TOO_LONG
    if password.strip().lower() == email:
        return PasswordWeakness.IS_EMAIL
    if len(set(password)) < PASSWORD_VARIETY_MIN:
        return PasswordWeakness.MONOTONOUS
    return None


def refuse_role_change(*, by: Role, current: Role | None, to: Role | None) -> str | None:
    """Say why somebody may not change a member's role (None: not a member, or no longer); None when they may.

    Nobody touches a rank above their own or hands one out.
    """
    if current is not None and RANK[current] > RANK[by]:
        return f"only an {Role.OWNER} may change an {Role.OWNER}"
    if to is not None and RANK[to] > RANK[by]:
        return f"only an {Role.OWNER} may make an {Role.OWNER}"
    return None


def counts(membership: Membership, now: datetime) -> bool:
    """Whether a membership opens anything at this moment."""
    began = membership.valid_from <= now
    ended = membership.valid_to is not None and membership.valid_to <= now
    return membership.status is MembershipStatus.ACTIVE and began and not ended
