"""Who may do what: one table, deny by default."""

from collections.abc import Mapping
from enum import StrEnum

from voelgoed.accounts.model import Actor, Role
from voelgoed.errors import DomainError, Kind


class Unauthorized(DomainError):
    """Nobody is signed in, or no longer."""

    kind = Kind.ANONYMOUS
    code = "unauthorized"
    message = "Sign in first: there is no session, or it has ended."


class PermissionDenied(DomainError):
    """Somebody is signed in who may not do this."""

    kind = Kind.DENIED
    code = "permission_denied"
    message = "Your role does not allow this."


class Action(StrEnum):
    """Everything that can be asked for. The value is how the table is printed."""

    SEE_HEALTH = "see whether the process is well"
    SEE_METRICS = "read the metrics (this machine, or with the metrics token)"
    SEE_CONTRACT = "read the API's contract"
    SEE_STOREFRONT = "see an organization's storefront"
    SIGN_IN = "sign in, register, continue as a guest, reset a password"
    SIGN_OUT = "sign out"
    SEE_OWN_ACCOUNT = "see the own account, sessions and memberships"
    CHANGE_OWN_ACCOUNT = "change the own account and password, end own sessions, delete the account"
    SEE_MEMBERS = "list the organization's people"
    CHANGE_MEMBERS = "add people, change their roles, remove them"
    SEE_MEMBERSHIPS = "list customers' memberships"
    CHANGE_MEMBERSHIPS = "grant and revoke customers' memberships"
    SEE_API_KEYS = "list API keys"
    CHANGE_API_KEYS = "make and revoke API keys"
    SEARCH_AUDIT = "search the organization's journal"
    SEE_EVENTS = "see every event, venue and gate of the organization, and follow what happens to them"
    CHANGE_EVENTS = "make events, change their descriptions, and their times while they are drafts"
    SCHEDULE_EVENTS = "change the times, venue and links of events that are not drafts; reschedule; delete drafts"
    MOVE_EVENTS = "publish, unpublish, go live, end, cancel, postpone, archive"
    CHANGE_VENUES = "make and change venues and gates (staff: where the organization lets them)"
    DELETE_VENUES = "delete venues and gates; let staff change venues, or not"
    SEE_LAYOUTS = "see the layouts of the organization's venues, export and compare them"
    CHANGE_LAYOUTS = "import and generate layouts, and new versions of them"
    MOVE_LAYOUTS = "make a version of a layout the one to choose, archive it"
    OPEN_GATES = "open and close gates"
    RESERVE = "hold places of events, look at what one holds, let go"
    SEE_HOLDS = "see who holds what of an event"
    RELEASE_HOLDS = "let go of anybody's hold"
    BLOCK_SEATS = "take seats of an event out of sale by hand, and put them back"
    RECONCILE = "have what is kept of an event's places in memory and Redis made anew"
    SEE_PRICES = "see the organization's pricing rules"
    CHANGE_PRICES = "make, change and delete pricing rules"
    SEE_SEATING_POLICY = "see what the organization lets its seating be"
    CHANGE_SEATING_POLICY = "change the seating policy, but for what the platform has locked"
    USE_DEMO = "use the panel of a demonstration (an installation has none)"
    PLATFORM_SEE_ORGANIZATIONS = "list and see all organizations"
    PLATFORM_CREATE_ORGANIZATION = "found an organization"
    PLATFORM_INTERVENE = "suspend and resume an organization, change its people's roles; with a reason"
    PLATFORM_SEE_EVENTS = "list any organization's events"
    PLATFORM_MOVE_EVENTS = "cancel and postpone any event; with a reason"
    PLATFORM_SEARCH_AUDIT = "search any organization's journal; with a reason"
    PLATFORM_SET_POLICY = "see and set any organization's seating policy, lock its fields; with a reason"


EVERYBODY = frozenset(Role)
SIGNED_IN = EVERYBODY - {Role.ANONYMOUS}
MEMBERS = frozenset({Role.CUSTOMER, Role.SCANNER, Role.STAFF, Role.ADMIN, Role.OWNER})
LEADERS = frozenset({Role.ADMIN, Role.OWNER})
CREW = LEADERS | {Role.STAFF}
PLATFORM = frozenset({Role.SUPER_ADMIN, Role.TENANT_MANAGER})

ALLOWED: Mapping[Action, frozenset[Role]] = {
    Action.SEE_HEALTH: EVERYBODY,
    Action.SEE_METRICS: EVERYBODY,
    Action.SEE_CONTRACT: EVERYBODY,
    Action.SEE_STOREFRONT: EVERYBODY,
    Action.SIGN_IN: EVERYBODY,
    Action.SIGN_OUT: SIGNED_IN,
    Action.SEE_OWN_ACCOUNT: SIGNED_IN,
    Action.CHANGE_OWN_ACCOUNT: SIGNED_IN,
    Action.SEE_MEMBERS: LEADERS,
    Action.CHANGE_MEMBERS: LEADERS,
    Action.SEE_MEMBERSHIPS: LEADERS | {Role.STAFF},
    Action.CHANGE_MEMBERSHIPS: LEADERS,
    Action.SEE_API_KEYS: LEADERS,
    Action.CHANGE_API_KEYS: LEADERS,
    Action.SEARCH_AUDIT: LEADERS,
    Action.SEE_EVENTS: CREW | {Role.SCANNER},
    Action.CHANGE_EVENTS: CREW,
    Action.SCHEDULE_EVENTS: LEADERS,
    Action.MOVE_EVENTS: LEADERS,
    Action.CHANGE_VENUES: CREW,
    Action.DELETE_VENUES: LEADERS,
    Action.SEE_LAYOUTS: CREW | {Role.SCANNER},
    Action.CHANGE_LAYOUTS: CREW,
    Action.MOVE_LAYOUTS: LEADERS,
    Action.OPEN_GATES: CREW,
    Action.RESERVE: MEMBERS,
    Action.SEE_HOLDS: CREW,
    Action.RELEASE_HOLDS: LEADERS,
    Action.BLOCK_SEATS: LEADERS,
    Action.RECONCILE: LEADERS,
    Action.SEE_PRICES: CREW | {Role.SCANNER},
    Action.CHANGE_PRICES: LEADERS,
    Action.SEE_SEATING_POLICY: CREW,
    Action.CHANGE_SEATING_POLICY: frozenset({Role.OWNER}),
    Action.USE_DEMO: EVERYBODY,
    Action.PLATFORM_SEE_ORGANIZATIONS: PLATFORM,
    Action.PLATFORM_CREATE_ORGANIZATION: frozenset({Role.SUPER_ADMIN}),
    Action.PLATFORM_INTERVENE: PLATFORM,
    Action.PLATFORM_SEE_EVENTS: PLATFORM,
    Action.PLATFORM_MOVE_EVENTS: PLATFORM,
    Action.PLATFORM_SEARCH_AUDIT: PLATFORM,
    Action.PLATFORM_SET_POLICY: frozenset({Role.SUPER_ADMIN}),
}
assert ALLOWED.keys() == set(Action)  # a new action cannot be forgotten


def may(actor: Actor, action: Action) -> bool:
    """Whether one of the actor's roles allows the action."""
    return not ALLOWED.get(action, frozenset()).isdisjoint(actor.roles)


def require(actor: Actor, action: Action) -> None:
    """Refuse what is not allowed: as unknown when nobody is signed in, as denied when somebody is."""
    if not may(actor, action):
        raise Unauthorized if actor.role is Role.ANONYMOUS else PermissionDenied(action=action.name.lower())


def document() -> str:
    """The table for people, as Markdown."""
    roles = list(Role)
    lines = [
        "# Who may do what",
        "",
        "Written by `make openapi` from `accounts/permissions.py`; what is not marked is refused.",
        "A platform role counts only on `/api/platform` routes, where every intervention needs a reason",
        "(and, for a tenant_manager, the organization's approval).",
        "",
        f"| action | {' | '.join(role.value for role in roles)} |",
        f"|---|{'---|' * len(roles)}",
    ]
    for action in Action:
        marks = " | ".join("yes" if role in ALLOWED[action] else "" for role in roles)
        lines.append(f"| {action.value} | {marks} |")
    return "\n".join(lines) + "\n"
