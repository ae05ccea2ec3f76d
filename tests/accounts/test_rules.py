"""Decisions about accounts, for all values."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from hypothesis import given, strategies as st

from voelgoed.accounts import roles, rules, tokens
from voelgoed.accounts.model import MEMBER_ROLES, Actor, Membership, MembershipStatus, Role
from voelgoed.accounts.permissions import ALLOWED, Action, document, may
from voelgoed.accounts.roles import LastOwner, RoleChangeRefused
from voelgoed.ids import UserId, new_id

ROLES = st.sampled_from(MEMBER_ROLES)
NOW = datetime(2027, 3, 12, 18, tzinfo=UTC)


@given(by=ROLES, current=st.none() | ROLES, to=st.none() | ROLES, owners_left=st.integers(0, 3))
def test_nobody_climbs_over_their_own_rank(by: Role, current: Role | None, to: Role | None, owners_left: int) -> None:
    """Whatever is asked: an allowed change touches no rank above one's own and leaves an owner."""
    try:
        roles.require_change(by=by, current=current, to=to, owners_left=owners_left)
    except LastOwner:
        assert (current, owners_left) == (Role.OWNER, 0)
    except RoleChangeRefused:
        assert rules.RANK[by] < max(rules.RANK[one] for one in (current, to) if one is not None)
    else:
        assert current is None or rules.RANK[current] <= rules.RANK[by]
        assert to is None or rules.RANK[to] <= rules.RANK[by]
        assert current is not Role.OWNER or owners_left > 0


@given(password=st.text(max_size=300), email=st.just("anna@example.test"))
def test_an_accepted_password_is_long_and_not_silly(password: str, email: str) -> None:
    """Length and a little variety, nothing else."""
    if rules.refuse_password(password, email=email) is None:
        assert rules.PASSWORD_CHARS_MIN <= len(password) <= rules.PASSWORD_CHARS_MAX
        assert len(set(password)) >= 4


def test_the_address_is_no_password() -> None:
    """The first thing anybody would try."""
    assert rules.refuse_password("Anna@example.test", email="anna@example.test") is rules.PasswordWeakness.IS_EMAIL
    assert rules.refuse_password("a perfectly fine one", email="anna@example.test") is None


@pytest.mark.parametrize(
    ("status", "starts", "ends", "expected"),
    [
        (MembershipStatus.ACTIVE, -1, None, True),
        (MembershipStatus.ACTIVE, 0, 1, True),
        (MembershipStatus.ACTIVE, 1, None, False),
        (MembershipStatus.ACTIVE, -2, 0, False),
        (MembershipStatus.REVOKED, -1, None, False),
        (MembershipStatus.EXPIRED, -1, None, False),
    ],
)
def test_a_membership_counts_within_its_days(
    status: MembershipStatus,
    starts: int,
    ends: int | None,
    expected: bool,  # noqa: FBT001 - a column of the table
) -> None:
    """The first moment is inside, the last is not."""
    membership = Membership(
        id=new_id(),
        user_id=UserId(new_id()),
        name="Anna",
        email=None,
        tier="gold",
        status=status,
        valid_from=NOW + timedelta(days=starts),
        valid_to=None if ends is None else NOW + timedelta(days=ends),
        created_at=NOW,
        updated_at=NOW,
    )
    assert rules.counts(membership, NOW) is expected


@pytest.mark.req("SEC-13")
def test_what_is_not_in_the_table_is_denied(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even the mightiest may not do what nobody wrote down."""
    everything = Actor(role=Role.OWNER, platform_roles=frozenset({Role.SUPER_ADMIN, Role.TENANT_MANAGER}))
    assert may(everything, Action.SEARCH_AUDIT)
    monkeypatch.delitem(ALLOWED, Action.SEARCH_AUDIT)
    assert not may(everything, Action.SEARCH_AUDIT)


def test_platform_roles_open_no_door_of_an_organization() -> None:
    """The platform's staff act by their own routes, with a reason; not as if they were the owner."""
    staff = Actor(role=Role.CUSTOMER, platform_roles=frozenset({Role.SUPER_ADMIN}))
    inside = [
        action for action in Action if not action.name.startswith("PLATFORM") and Role.CUSTOMER not in ALLOWED[action]
    ]
    assert inside
    assert not any(may(staff, action) for action in inside)


def test_the_table_is_printed_whole() -> None:
    """Every action and role is in the document."""
    text = document()
    assert all(action.value in text for action in Action)
    assert text.count("\n| ") == len(Action) + 1


@given(key=st.binary(min_size=32, max_size=64), token_id=st.uuids(), other=st.binary(min_size=32, max_size=64))
def test_a_one_time_token_proves_its_id(key: bytes, token_id: UUID, other: bytes) -> None:
    """Only with the same key, and only unchanged."""
    token = tokens.one_time_token(key, token_id)
    assert tokens.one_time_token_id(key, token) == token_id
    assert tokens.one_time_token_id(key, token[:-1]) is None
    if other != key:
        assert tokens.one_time_token_id(other, token) is None


@given(st.text(max_size=100))
def test_anything_else_is_no_one_time_token(text: str) -> None:
    """Whatever is pasted into the field."""
    assert tokens.one_time_token_id(b"k" * 32, text) is None
