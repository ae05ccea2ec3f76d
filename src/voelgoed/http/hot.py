"""Hot routes: called by the edge itself, read and written by msgspec, documented like the others.

A declared route costs several times what its work does. The few that carry the load are plain functions from a
context to bytes; everything before and after them is the edge's, so they refuse as their declared neighbours do.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from voelgoed.http.context import KEY_CHARS_MAX, Context
from voelgoed.http.edge import Stream, Tell, Whole
from voelgoed.http.routes import auth, holds, places
from voelgoed.http.routes.auth import GuestAsk, SessionView
from voelgoed.http.routes.holds import HoldsAsk, HoldView, PlacesAsk, ReserveAsk
from voelgoed.http.routes.places import OccupancyView, SeatMapView
from voelgoed.http.shapes import Data


@dataclass(frozen=True, slots=True, kw_only=True)
class HotRoute:
    """One hot route, with what the contract says about it."""

    method: str
    path: str
    endpoint: Callable[[Context], Awaitable[Whole | Stream]] | Callable[[Context, Tell], None]
    tag: str
    status: int
    asks: type | None
    answers: type | None
    headers: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    also: tuple[int, ...] = ()
    is_body_optional: bool = False
    is_stream: bool = False
    is_prompt: bool = False  # begins at once and tells later, without a task of its own


KEY_HEADER: Mapping[str, Mapping[str, object]] = {
    "Idempotency-Key": {"type": "string", "minLength": 1, "maxLength": KEY_CHARS_MAX}
}
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
    HotRoute(
        method="POST",
        path="/api/events/{event_id}/seats/{seat_id}/reserve",
        endpoint=holds.reserve_seat,
        tag="holds",
        status=201,
        asks=ReserveAsk,
        answers=Data[HoldView],
        also=(200,),
        headers=KEY_HEADER,
        is_body_optional=True,
        is_prompt=True,
    ),
    HotRoute(
        method="POST",
        path="/api/events/{event_id}/holds",
        endpoint=holds.reserve_seats,
        tag="holds",
        status=201,
        asks=HoldsAsk,
        answers=Data[list[HoldView]],
        also=(200,),
        headers=KEY_HEADER,
    ),
    HotRoute(
        method="POST",
        path="/api/events/{event_id}/zones/{zone_id}/reserve",
        endpoint=holds.reserve_places,
        tag="holds",
        status=201,
        asks=PlacesAsk,
        answers=Data[HoldView],
        also=(200,),
        headers=KEY_HEADER,
    ),
    HotRoute(
        method="GET",
        path="/api/events/{event_id}/seatmap",
        endpoint=places.get_seat_map,
        tag="places",
        status=200,
        asks=None,
        answers=Data[SeatMapView],
    ),
    HotRoute(
        method="GET",
        path="/api/events/{event_id}/occupancy",
        endpoint=places.get_occupancy,
        tag="places",
        status=200,
        asks=None,
        answers=Data[OccupancyView],
    ),
    HotRoute(
        method="GET",
        path="/api/events/{event_id}/stream",
        endpoint=places.follow_map,
        tag="places",
        status=200,
        asks=None,
        answers=None,
        headers={"Last-Event-ID": {"type": "string", "maxLength": 40}},
        is_stream=True,
    ),
    HotRoute(
        method="DELETE",
        path="/api/holds/{hold_id}",
        endpoint=holds.release_hold,
        tag="holds",
        status=204,
        asks=None,
        answers=None,
    ),
)
