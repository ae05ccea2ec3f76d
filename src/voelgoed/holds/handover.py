"""Signing in with a basket: what somebody holds as a guest is theirs when they turn out to have an account."""

from collections import defaultdict
from dataclasses import dataclass
from uuid import UUID

from voelgoed.accounts import signing
from voelgoed.accounts.model import Call
from voelgoed.accounts.signing import Door, SignedIn
from voelgoed.db import Conn
from voelgoed.events.model import Teller
from voelgoed.holds import registry
from voelgoed.holds.booking import STAFF
from voelgoed.holds.lane import Lanes
from voelgoed.holds.model import HandedOver
from voelgoed.ids import UserId


@dataclass(frozen=True, slots=True, kw_only=True)
class Basket:
    """What became of the places that a guest held, in places: kept by the account, or let go because it may not."""

    kept: int
    released: int


async def sign_in(
    door: Door, lanes: Lanes, call: Call, *, organization: str, email: str, password: str
) -> tuple[SignedIn, Basket]:
    """Sign in, and keep what was held as a guest: with the time it has, as much as the account may hold."""
    handed: list[HandedOver] = []

    async def inherit(conn: Conn, signed_in: SignedIn, guest_id: UserId) -> None:
        handed[:] = await registry.hand_over(  # anew, when a lost race made it begin anew
            conn,
            signed_in.organization.id,
            guest_id,
            signed_in.user.id,
            role=signed_in.role,
            is_staff=signed_in.role in STAFF,
            by=Teller.of(call),
        )

    signed_in = await signing.login(
        door, call, organization=organization, email=email, password=password, inherit=inherit
    )
    registry.tell_handed_over(signed_in.organization.id, handed)
    seats: defaultdict[UUID, list[UUID]] = defaultdict(list)
    for one in handed:
        if one.seat_id:
            seats[one.event_id].append(one.seat_id)
    for event_id, seat_ids in seats.items():
        lanes.doubt(event_id, seat_ids)  # the map here still says the guest
    kept = sum(one.quantity for one in handed if one.is_kept)
    return signed_in, Basket(kept=kept, released=sum(one.quantity for one in handed) - kept)
