"""What an organization lets its seating be: to its own people, and to the platform that sets and locks it."""

from datetime import datetime
from uuid import UUID

from fastapi import APIRouter, Response

from voelgoed.accounts.model import Role
from voelgoed.accounts.permissions import Action
from voelgoed.accounts.signing import OrganizationNotFound
from voelgoed.http.context import Caller, IfMatch, etag, seen
from voelgoed.http.guard import guarded
from voelgoed.http.routes.venues import JsonObject
from voelgoed.http.shapes import Body, Data, ReasonText, View
from voelgoed.ids import OrganizationId
from voelgoed.seating import platform, usecases
from voelgoed.seating.policies import StoredPolicy
from voelgoed.seating.policy import FIELDS, Field, FieldKind, Origin, changeable_fields, effective
from voelgoed.seating.refusals import PolicyChanged, PolicyFieldLocked, PolicyInvalid

router = APIRouter(prefix="/api", tags=["seating policy"])

Value = bool | int | list[str] | None


class PolicyFieldView(View):
    """One field: what holds, what would by default, who said so, and what can be said instead.

    `least` and `most` are of whole numbers, `words` of lists. `origin` is `default` or `organization`; `is_overridable`
    tells whether an event may say otherwise, `may_change` whether the caller may.
    """

    name: str
    kind: FieldKind
    value: Value
    default: Value
    origin: Origin
    is_locked: bool
    is_overridable: bool
    may_change: bool
    least: int | None
    most: int | None
    is_nullable: bool
    words: list[str]


class SeatingPolicyView(View):
    """What an organization lets its seating be. Version 0: nobody has said anything, and the defaults hold."""

    version: int
    updated_at: datetime | None
    fields: list[PolicyFieldView]


class PolicyValuesBody(Body):
    """What shall hold from now on, by the names of the fields; what is left out stays."""

    values: JsonObject


class PolicyInterventionBody(PolicyValuesBody):
    """The same, and why."""

    reason: ReasonText


@router.get("/admin/seating-policy")
@guarded(Action.SEE_SEATING_POLICY)
async def get_seating_policy(caller: Caller, response: Response) -> Data[SeatingPolicyView]:
    """What the organization lets its seating be."""
    found = await usecases.get_policy(caller.services.db, caller.call)
    return _policy(found, caller.call.actor.role, response)


@router.patch("/admin/seating-policy")
@guarded(Action.CHANGE_SEATING_POLICY, PolicyInvalid, PolicyFieldLocked, PolicyChanged)
async def change_seating_policy(
    body: PolicyValuesBody, caller: Caller, response: Response, if_match: IfMatch = None
) -> Data[SeatingPolicyView]:
    """Change what the platform has not locked."""
    changed = await usecases.change_policy(caller.services.db, caller.call, body.values, version=seen(if_match))
    return _policy(changed, caller.call.actor.role, response)


@router.get("/platform/orgs/{org_id}/seating-policy")
@guarded(Action.PLATFORM_SET_POLICY, OrganizationNotFound)
async def get_organization_policy(org_id: UUID, caller: Caller, response: Response) -> Data[SeatingPolicyView]:
    """What an organization lets its seating be."""
    found = await platform.get_policy(caller.services.db, caller.call, OrganizationId(org_id))
    return _policy(found, Role.SUPER_ADMIN, response)


@router.patch("/platform/orgs/{org_id}/seating-policy")
@guarded(Action.PLATFORM_SET_POLICY, OrganizationNotFound, PolicyInvalid, PolicyChanged)
async def set_organization_policy(
    org_id: UUID, body: PolicyInterventionBody, caller: Caller, response: Response, if_match: IfMatch = None
) -> Data[SeatingPolicyView]:
    """Set what an organization lets its seating be; `locked_fields` are what neither its owner nor an event changes."""
    changed = await platform.change_policy(
        caller.services.db,
        caller.call,
        OrganizationId(org_id),
        body.values,
        reason=body.reason,
        version=seen(if_match),
    )
    return _policy(changed, Role.SUPER_ADMIN, response)


def _policy(found: StoredPolicy, role: Role, response: Response) -> Data[SeatingPolicyView]:
    response.headers["ETag"] = etag(found.version)
    origins = effective(found.policy, {}).origins
    changeable = changeable_fields(role, found.policy)
    fields = [
        PolicyFieldView(
            name=name,
            kind=field.kind,
            value=_value(getattr(found.policy, name)),
            default=_value(field.default),
            origin=origins[name],
            is_locked=name in found.policy.locked_fields,
            is_overridable=field.is_overridable,
            may_change=name in changeable,
            least=_bound(field, field.least),
            most=_bound(field, field.most),
            is_nullable=field.is_nullable,
            words=list(field.words),
        )
        for name, field in FIELDS.items()
    ]
    return Data(data=SeatingPolicyView(version=found.version, updated_at=found.updated_at, fields=fields))


def _bound(field: Field, bound: int) -> int | None:
    return bound if field.kind is FieldKind.WHOLE else None


def _value(value: object) -> Value:
    if isinstance(value, tuple):
        return [str(word) for word in value]
    assert value is None or isinstance(value, int)
    return value
