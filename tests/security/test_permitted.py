"""The product allows what is written down in `permitted.py`, role by role and route by route."""

import pytest

from tests.security.permitted import ACTION_OF_ROUTE, COLUMNS, ROLES_OF_ACTION
from tests.security.test_matrix import RULE_OF
from voelgoed.accounts.model import Role
from voelgoed.accounts.permissions import ALLOWED, Action


@pytest.mark.req("SEC-13")
def test_every_action_is_allowed_to_the_roles_that_are_written_down() -> None:
    """No role more and none less, and no action that is not written down."""
    assert tuple(role.value for role in Role) == COLUMNS
    product = {action.name: frozenset(role.value for role in roles) for action, roles in ALLOWED.items()}
    assert product == ROLES_OF_ACTION
    assert {action.name for action in Action} == ROLES_OF_ACTION.keys()


@pytest.mark.req("SEC-13")
def test_every_route_has_the_action_that_is_written_down() -> None:
    """A route that is guarded by a weaker action than it should be is found here."""
    assert {route: rule.action.name for route, rule in RULE_OF.items()} == ACTION_OF_ROUTE
