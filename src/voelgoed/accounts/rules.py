"""Decisions about accounts that need nothing but values."""

from datetime import datetime

from voelgoed.accounts.model import Membership, MembershipStatus, Role

PASSWORD_CHARS_MIN = 10
PASSWORD_CHARS_MAX = 200
RANK = {Role.CUSTOMER: 0, Role.SCANNER: 1, Role.STAFF: 2, Role.ADMIN: 3, Role.OWNER: 4}


def normal_email(text: str) -> str:
    """The form in which an address is stored and compared."""
    return text.strip().lower()


def refuse_password(password: str, *, email: str) -> str | None:
    """Say why this password will not do; None when it will. Length is what protects, so nothing else is asked for."""
    if len(password) < PASSWORD_CHARS_MIN:
        return f"at least {PASSWORD_CHARS_MIN} characters"
    if len(password) > PASSWORD_CHARS_MAX:
        return f"at most {PASSWORD_CHARS_MAX} characters"
    if password.strip().lower() == email:
        return "not your e-mail address"
    if len(set(password)) < 4:  # noqa: PLR2004 - "aaaaaaaaaa" has the length and protects nothing
        return "more than three different characters"
    return None


def refuse_role_change(*, by: Role, current: Role | None, to: Role | None, owners_left: int) -> str | None:
    """Say why somebody may not change a member's role (None: not a member, or no longer); None when they may.

    Nobody touches a rank above their own or hands one out, and an organization keeps an owner.
    """
    if current is Role.OWNER and owners_left == 0:
        return "an organization needs an owner: make somebody else one first"
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
