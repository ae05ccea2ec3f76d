"""Hot routes: called by the edge itself, read and written by msgspec, documented like the others.

A declared route costs several times what its work does. The few that carry the load are plain functions from a
context to bytes; everything before and after them is the edge's, so they refuse as their declared neighbours do.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from voelgoed.http.context import Context
from voelgoed.http.edge import Whole
from voelgoed.http.routes import auth
from voelgoed.http.routes.auth import GuestAsk, SessionView
from voelgoed.http.shapes import Data


@dataclass(frozen=True, slots=True, kw_only=True)
class HotRoute:
    """One hot route, with what the contract says about it."""

    method: str
    path: str
    endpoint: Callable[[Context], Awaitable[Whole]]
    tag: str
    status: int
    asks: type | None
    answers: type
    headers: Mapping[str, Mapping[str, object]] = field(default_factory=dict)


HOT = (
    HotRoute(
        method="POST",
        path="/api/auth/guest",
        endpoint=auth.guest,
        tag="auth",
        status=201,
        asks=GuestAsk,
        answers=Data[SessionView],
        headers={"X-Session": {"type": "string", "enum": ["cookie"]}},
    ),
)
