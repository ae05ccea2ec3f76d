"""What every role may do, written down by hand from the requirements (RBAC, SEC, TEN) and the routes of the API.

Nothing here is taken from the product's own table, so a wrong table does not pass. Change a permission in both places.
"""

from collections.abc import Mapping
from typing import Final

COLUMNS: Final = ("anonymous", "customer", "scanner", "staff", "admin", "owner", "tenant_manager", "super_admin")

# RBAC-01 to RBAC-03 (owner, admin), RBAC-04 to RBAC-06 and C-088 (staff), RBAC-07 and RBAC-08 (platform), RBAC-09 and
# C-089 (seating policy), RBAC-11 (blocking), RBAC-12 and SEC-01 (holding), SEC-08 and SEC-09 (who holds what), SEC-13.
TABLE: Final = """
                               anon. cust. scan. staff admin owner t.man s.adm
SEE_HEALTH                       x     x     x     x     x     x     x     x
SEE_METRICS                      x     x     x     x     x     x     x     x
SEE_CONTRACT                     x     x     x     x     x     x     x     x
SEE_STOREFRONT                   x     x     x     x     x     x     x     x
SIGN_IN                          x     x     x     x     x     x     x     x
USE_DEMO                         x     x     x     x     x     x     x     x
SIGN_OUT                         -     x     x     x     x     x     x     x
SEE_OWN_ACCOUNT                  -     x     x     x     x     x     x     x
CHANGE_OWN_ACCOUNT               -     x     x     x     x     x     x     x
RESERVE                          -     x     x     x     x     x     -     -
SEE_EVENTS                       -     -     x     x     x     x     -     -
SEE_LAYOUTS                      -     -     x     x     x     x     -     -
SEE_PRICES                       -     -     x     x     x     x     -     -
CHANGE_EVENTS                    -     -     -     x     x     x     -     -
CHANGE_VENUES                    -     -     -     x     x     x     -     -
CHANGE_LAYOUTS                   -     -     -     x     x     x     -     -
OPEN_GATES                       -     -     -     x     x     x     -     -
SEE_HOLDS                        -     -     -     x     x     x     -     -
SEE_MEMBERSHIPS                  -     -     -     x     x     x     -     -
SEE_SEATING_POLICY               -     -     -     x     x     x     -     -
SCHEDULE_EVENTS                  -     -     -     -     x     x     -     -
MOVE_EVENTS                      -     -     -     -     x     x     -     -
DELETE_VENUES                    -     -     -     -     x     x     -     -
MOVE_LAYOUTS                     -     -     -     -     x     x     -     -
RELEASE_HOLDS                    -     -     -     -     x     x     -     -
BLOCK_SEATS                      -     -     -     -     x     x     -     -
RECONCILE                        -     -     -     -     x     x     -     -
CHANGE_PRICES                    -     -     -     -     x     x     -     -
SEE_MEMBERS                      -     -     -     -     x     x     -     -
CHANGE_MEMBERS                   -     -     -     -     x     x     -     -
CHANGE_MEMBERSHIPS               -     -     -     -     x     x     -     -
SEE_API_KEYS                     -     -     -     -     x     x     -     -
CHANGE_API_KEYS                  -     -     -     -     x     x     -     -
SEARCH_AUDIT                     -     -     -     -     x     x     -     -
CHANGE_SEATING_POLICY            -     -     -     -     -     x     -     -
PLATFORM_SEE_ORGANIZATIONS       -     -     -     -     -     -     x     x
PLATFORM_INTERVENE               -     -     -     -     -     -     x     x
PLATFORM_SEE_EVENTS              -     -     -     -     -     -     x     x
PLATFORM_MOVE_EVENTS             -     -     -     -     -     -     x     x
PLATFORM_SEARCH_AUDIT            -     -     -     -     -     -     x     x
PLATFORM_CREATE_ORGANIZATION     -     -     -     -     -     -     -     x
PLATFORM_SET_POLICY              -     -     -     -     -     -     -     x
"""

ROUTES: Final = """
SEE_HEALTH                     GET    /healthz
SEE_HEALTH                     GET    /readyz
SEE_METRICS                    GET    /metrics
SEE_CONTRACT                   GET    /api/openapi.json
SEE_CONTRACT                   GET    /api/schemas/layout.json
SEE_STOREFRONT                 GET    /api/storefronts/{slug}
SEE_STOREFRONT                 GET    /api/storefronts/{slug}/events
SEE_STOREFRONT                 GET    /api/storefronts/{slug}/events/{event_slug}
SEE_STOREFRONT                 GET    /api/events/{event_id}
SEE_STOREFRONT                 GET    /api/events/{event_id}/layout
SEE_STOREFRONT                 GET    /api/events/{event_id}/occupancy
SEE_STOREFRONT                 GET    /api/events/{event_id}/seatmap
SEE_STOREFRONT                 GET    /api/events/{event_id}/seats
SEE_STOREFRONT                 GET    /api/events/{event_id}/stream
SEE_STOREFRONT                 GET    /api/layouts/{layout_id}/v{version}/geometry
SIGN_IN                        POST   /api/auth/guest
SIGN_IN                        POST   /api/auth/login
SIGN_IN                        POST   /api/auth/password-reset
SIGN_IN                        POST   /api/auth/password-reset/confirm
SIGN_IN                        POST   /api/auth/register
SIGN_OUT                       POST   /api/auth/logout
SEE_OWN_ACCOUNT                GET    /api/me
SEE_OWN_ACCOUNT                GET    /api/me/sessions
CHANGE_OWN_ACCOUNT             PATCH  /api/me
CHANGE_OWN_ACCOUNT             PUT    /api/me/password
CHANGE_OWN_ACCOUNT             POST   /api/me/delete
CHANGE_OWN_ACCOUNT             DELETE /api/me/sessions/{session_id}
RESERVE                        POST   /api/events/{event_id}/holds
RESERVE                        GET    /api/events/{event_id}/holds/mine
RESERVE                        GET    /api/events/{event_id}/seats/{seat_id}
RESERVE                        POST   /api/events/{event_id}/seats/{seat_id}/reserve
RESERVE                        POST   /api/events/{event_id}/zones/{zone_id}/reserve
RESERVE                        POST   /api/holds/{hold_id}/extend
RESERVE                        DELETE /api/holds/{hold_id}
SEE_EVENTS                     GET    /api/admin/event-policy
SEE_EVENTS                     GET    /api/admin/events
SEE_EVENTS                     GET    /api/admin/events/{event_id}
SEE_EVENTS                     GET    /api/admin/events/{event_id}/occupancy/minutes
SEE_EVENTS                     GET    /api/admin/events/{event_id}/seating
SEE_EVENTS                     GET    /api/admin/feed
SEE_EVENTS                     GET    /api/admin/gates/{gate_id}
SEE_EVENTS                     GET    /api/admin/venues
SEE_EVENTS                     GET    /api/admin/venues/{venue_id}
SEE_EVENTS                     GET    /api/admin/venues/{venue_id}/gates
CHANGE_EVENTS                  POST   /api/admin/events
CHANGE_EVENTS                  PATCH  /api/admin/events/{event_id}
CHANGE_EVENTS                  PUT    /api/admin/events/{event_id}/seating
SCHEDULE_EVENTS                DELETE /api/admin/events/{event_id}
SCHEDULE_EVENTS                POST   /api/admin/events/{event_id}/change-venue
SCHEDULE_EVENTS                POST   /api/admin/events/{event_id}/reschedule
MOVE_EVENTS                    POST   /api/admin/events/{event_id}/archive
MOVE_EVENTS                    POST   /api/admin/events/{event_id}/cancel
MOVE_EVENTS                    POST   /api/admin/events/{event_id}/end
MOVE_EVENTS                    POST   /api/admin/events/{event_id}/go-live
MOVE_EVENTS                    POST   /api/admin/events/{event_id}/postpone
MOVE_EVENTS                    POST   /api/admin/events/{event_id}/publish
MOVE_EVENTS                    POST   /api/admin/events/{event_id}/unpublish
CHANGE_VENUES                  POST   /api/admin/venues
CHANGE_VENUES                  PATCH  /api/admin/venues/{venue_id}
CHANGE_VENUES                  POST   /api/admin/venues/{venue_id}/gates
CHANGE_VENUES                  PATCH  /api/admin/gates/{gate_id}
DELETE_VENUES                  DELETE /api/admin/venues/{venue_id}
DELETE_VENUES                  DELETE /api/admin/gates/{gate_id}
DELETE_VENUES                  PUT    /api/admin/event-policy
OPEN_GATES                     POST   /api/admin/gates/{gate_id}/close
OPEN_GATES                     POST   /api/admin/gates/{gate_id}/open
SEE_LAYOUTS                    GET    /api/admin/layouts
SEE_LAYOUTS                    GET    /api/admin/layouts/{layout_id}/diff
SEE_LAYOUTS                    GET    /api/admin/layouts/{layout_id}/events
SEE_LAYOUTS                    GET    /api/admin/layouts/{layout_id}/versions
SEE_LAYOUTS                    GET    /api/admin/layouts/{layout_id}/versions/{version}
SEE_LAYOUTS                    GET    /api/admin/layouts/{layout_id}/versions/{version}/export
CHANGE_LAYOUTS                 POST   /api/admin/layouts/preview
CHANGE_LAYOUTS                 POST   /api/admin/layouts/{layout_id}/versions
CHANGE_LAYOUTS                 POST   /api/admin/venues/{venue_id}/layouts
CHANGE_LAYOUTS                 POST   /api/admin/venues/{venue_id}/layouts/generate
MOVE_LAYOUTS                   POST   /api/admin/layouts/{layout_id}/versions/{version}/activate
MOVE_LAYOUTS                   POST   /api/admin/layouts/{layout_id}/versions/{version}/archive
SEE_HOLDS                      GET    /api/admin/events/{event_id}/holds
SEE_HOLDS                      GET    /api/admin/events/{event_id}/holds/ends
SEE_HOLDS                      GET    /api/admin/events/{event_id}/registry
RECONCILE                      POST   /api/admin/events/{event_id}/registry/reconcile
BLOCK_SEATS                    POST   /api/admin/events/{event_id}/seats/block
BLOCK_SEATS                    POST   /api/admin/events/{event_id}/seats/unblock
SEE_PRICES                     GET    /api/admin/pricing-rules
SEE_PRICES                     GET    /api/admin/pricing-rules/{rule_id}
CHANGE_PRICES                  POST   /api/admin/pricing-rules
CHANGE_PRICES                  PATCH  /api/admin/pricing-rules/{rule_id}
CHANGE_PRICES                  DELETE /api/admin/pricing-rules/{rule_id}
SEE_SEATING_POLICY             GET    /api/admin/seating-policy
CHANGE_SEATING_POLICY          PATCH  /api/admin/seating-policy
SEE_MEMBERS                    GET    /api/admin/members
SEE_MEMBERS                    GET    /api/admin/members/{user_id}
CHANGE_MEMBERS                 POST   /api/admin/members
CHANGE_MEMBERS                 PUT    /api/admin/members/{user_id}
CHANGE_MEMBERS                 DELETE /api/admin/members/{user_id}
SEE_MEMBERSHIPS                GET    /api/admin/memberships
CHANGE_MEMBERSHIPS             POST   /api/admin/memberships
CHANGE_MEMBERSHIPS             POST   /api/admin/memberships/{membership_id}/revoke
SEE_API_KEYS                   GET    /api/admin/api-keys
CHANGE_API_KEYS                POST   /api/admin/api-keys
CHANGE_API_KEYS                DELETE /api/admin/api-keys/{key_id}
SEARCH_AUDIT                   GET    /api/admin/audit
PLATFORM_SEE_ORGANIZATIONS     GET    /api/platform/orgs
PLATFORM_SEE_ORGANIZATIONS     GET    /api/platform/orgs/{org_id}
PLATFORM_CREATE_ORGANIZATION   POST   /api/platform/orgs
PLATFORM_INTERVENE             POST   /api/platform/orgs/{org_id}/suspend
PLATFORM_INTERVENE             POST   /api/platform/orgs/{org_id}/resume
PLATFORM_INTERVENE             GET    /api/platform/orgs/{org_id}/members
PLATFORM_INTERVENE             PUT    /api/platform/orgs/{org_id}/members/{user_id}
PLATFORM_SEE_EVENTS            GET    /api/platform/orgs/{org_id}/events
PLATFORM_MOVE_EVENTS           POST   /api/platform/orgs/{org_id}/events/{event_id}/cancel
PLATFORM_MOVE_EVENTS           POST   /api/platform/orgs/{org_id}/events/{event_id}/postpone
PLATFORM_SEARCH_AUDIT          GET    /api/platform/orgs/{org_id}/audit
PLATFORM_SET_POLICY            GET    /api/platform/orgs/{org_id}/seating-policy
PLATFORM_SET_POLICY            PATCH  /api/platform/orgs/{org_id}/seating-policy
"""


def _read_table() -> dict[str, frozenset[str]]:
    found = {}
    for line in TABLE.strip().splitlines()[1:]:
        action, *marks = line.split()
        assert set(marks) <= {"x", "-"}
        found[action] = frozenset(role for role, mark in zip(COLUMNS, marks, strict=True) if mark == "x")
    return found


def _read_routes() -> dict[tuple[str, str], str]:
    rows = [line.split() for line in ROUTES.strip().splitlines()]
    found = {(method, path): action for action, method, path in rows}
    assert len(found) == len(rows)
    return found


ROLES_OF_ACTION: Final[Mapping[str, frozenset[str]]] = _read_table()
ACTION_OF_ROUTE: Final[Mapping[tuple[str, str], str]] = _read_routes()
