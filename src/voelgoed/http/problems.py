"""How every refusal looks: one status for each kind, one envelope, and nothing of our insides in it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from uuid import UUID

import msgspec
from fastapi.exceptions import RequestValidationError

from voelgoed.errors import DomainError, Kind, OutcomeUnknown

STATUS: Mapping[Kind, int] = {
    Kind.INVALID: 400,
    Kind.ANONYMOUS: 401,
    Kind.DENIED: 403,
    Kind.MISSING: 404,
    Kind.CONFLICT: 409,
    Kind.TOO_LARGE: 413,
    Kind.MISMATCH: 422,
    Kind.LIMITED: 429,
    Kind.BUSY: 503,
}
assert STATUS.keys() == set(Kind)  # a new kind cannot be forgotten

ERRORS_SHOWN_MAX = 50
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})


class RequestInvalid(DomainError):
    """What was sent cannot be read, or says something impossible."""

    kind = Kind.INVALID
    code = "invalid_request"
    message = "The request is not valid."


class AddressUnknown(DomainError):
    """No route has this path."""

    kind = Kind.MISSING
    code = "not_found"
    message = "There is nothing at this address."


class CsrfFailed(DomainError):
    """A page of somebody else's may be behind this."""

    kind = Kind.DENIED
    code = "csrf_failed"
    message = "Send the X-CSRF-Token that came with the session."


class BodyTooLarge(DomainError):
    """More than this route takes."""

    kind = Kind.TOO_LARGE
    code = "body_too_large"
    message = "The request is larger than this address accepts."


class BodyTooSlow(DomainError):
    """The rest of the request did not come in time."""

    kind = Kind.INVALID
    code = "body_too_slow"
    message = "The request did not arrive in time."


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """A refusal on its way out."""

    status: int
    code: str
    message: str
    details: Mapping[str, object] = field(default_factory=dict)
    effect: str = "none"
    headers: Mapping[str, str] = field(default_factory=dict)
    is_last: bool = False
    """What was not read is still on its way: nobody should ask on this line again."""

    def body(self, request_id: UUID) -> bytes:
        """The envelope. `effect` says whether anything was changed: `none`, or `unknown`."""
        return msgspec.json.encode(
            {
                "error": self.code,
                "message": self.message,
                "details": self.details,
                "effect": self.effect,
                "request_id": str(request_id),
            }
        )


def of_domain(refused: DomainError) -> Problem:
    """A refusal of a use case."""
    headers = {}
    if refused.kind is Kind.LIMITED:
        headers["retry-after"] = str(refused.facts.get("retry_after_s", 1))
    if refused.kind is Kind.BUSY:
        headers["retry-after"] = "1"
    return Problem(
        status=STATUS[refused.kind],
        code=refused.code,
        message=refused.message,
        details=refused.facts,
        effect="unknown" if isinstance(refused, OutcomeUnknown) else "none",
        headers=headers,
        is_last=refused.kind is Kind.TOO_LARGE or isinstance(refused, BodyTooSlow),
    )


def of_validation(wrong: RequestValidationError) -> Problem:
    """What the contract does not allow. What was sent is not repeated: there may be a password in it."""
    return _invalid(
        {"path": ".".join(map(str, error["loc"])), "code": error["type"], "message": error["msg"]}
        for error in wrong.errors()
    )


def of_decoding(wrong: msgspec.MsgspecError) -> Problem:
    """The same for a hot route, whose body is read by msgspec."""
    text, _, path = str(wrong).partition(" - at `$")
    return _invalid([{"path": f"body{path.rstrip('`')}", "code": type(wrong).__name__, "message": text}])


def of_crash(method: str) -> Problem:
    """A mistake of ours. Whether a change got through before it is not known."""
    return Problem(
        status=500,
        code="internal_error",
        message="Something went wrong on our side. It has been noted under the request id.",
        effect="none" if method in SAFE_METHODS else "unknown",
    )


def wrong_method(allowed: Iterable[str]) -> Problem:
    """The path is right, what is asked of it is not."""
    return Problem(
        status=405,
        code="method_not_allowed",
        message="This address does not do that.",
        headers={"allow": ", ".join(sorted(allowed))},
    )


def _invalid(errors: Iterable[Mapping[str, object]]) -> Problem:
    shown = list(errors)[:ERRORS_SHOWN_MAX]
    return Problem(
        status=STATUS[Kind.INVALID],
        code=RequestInvalid.code,
        message=RequestInvalid.message,
        details={"errors": shown},
    )
