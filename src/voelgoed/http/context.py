"""What is known of a request once it is past the edge."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Header
from starlette.requests import Request

from voelgoed.accounts.idempotency import Once
from voelgoed.accounts.model import Call
from voelgoed.wiring import Services

KEY_CHARS_MAX = 200
SCOPE_KEY = "voelgoed"


@dataclass(slots=True, kw_only=True)
class Context:
    """Who asks, from where, with what; and what the process has in its hands."""

    services: Services
    call: Call
    token: str | None
    csrf_token: str | None
    parameters: Mapping[str, str]
    body: bytes
    headers: Mapping[bytes, bytes]


def context_of(request: Request) -> Context:
    """The context that the edge has put there."""
    context: Context = request.scope[SCOPE_KEY]
    return context


Caller = Annotated[Context, Depends(context_of)]
IdempotencyKey = Annotated[
    str | None, Header(alias="Idempotency-Key", min_length=1, max_length=KEY_CHARS_MAX, pattern=r"^[\x21-\x7e]+$")
]

IfMatch = Annotated[str | None, Header(alias="If-Match", pattern=r'^(\*|"(0|[1-9]\d{0,8})")$')]


def seen(if_match: str | None) -> int | None:
    """The version that the caller has seen; None is whichever there is."""
    return None if if_match in (None, "*") else int(if_match.strip('"'))


def etag(version: int) -> str:
    """How a version is named in a header."""
    return f'"{version}"'


def once(key: str | None, context: Context, verb: str) -> Once | None:
    """The caller's key, with a fingerprint of everything it was sent with."""
    return Once.of(key, verb, context.body)
