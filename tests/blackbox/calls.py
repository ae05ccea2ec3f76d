"""The calls that clients make. Each is written into the history when it begins and completed when it ends."""

import base64
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from tests.blackbox.history import Call, History, Op, SeenHold
from tests.blackbox.http_client import Answer, Client, NoAnswer, NotSent
from tests.blackbox.server import Event


@dataclass(slots=True)
class Caller:
    """One person at one connection: a buyer, or a member of staff."""

    history: History
    event: Event
    client: Client
    user_id: str = ""

    def again(self) -> "Caller":
        """Return the same person at another connection."""
        client = Client(self.client.host, self.client.port, self.client.token)
        return Caller(self.history, self.event, client, self.user_id)

    async def sign_in_as_guest(self) -> Call:
        """Start a session as a new guest."""
        body = {"organization": self.event.organization}
        return await self._sign_in("/api/auth/guest", body)

    async def sign_in_as_owner(self) -> Call:
        """Start a session as the organization's owner."""
        names = {"organization": self.event.organization, "email": self.event.owner_email}
        return await self._sign_in("/api/auth/login", names | {"password": self.event.owner_password})

    async def reserve_seat(self, seat_id: str, key: str = "") -> Call:
        path = f"/api/events/{self.event.event_id}/seats/{seat_id}/reserve"
        return await self._hold(self._begin(Op.RESERVE_SEAT, places=(seat_id,), key=key), path)

    async def reserve_seats(self, seat_ids: Iterable[str], key: str) -> Call:
        call = self._begin(Op.RESERVE_SEATS, places=tuple(seat_ids), key=key)
        return await self._hold(call, f"/api/events/{self.event.event_id}/holds", {"seat_ids": list(call.places)})

    async def reserve_places(self, quantity: int, key: str) -> Call:
        call = self._begin(Op.RESERVE_PLACES, places=(self.event.zone_id,), quantity=quantity, key=key)
        path = f"/api/events/{self.event.event_id}/zones/{self.event.zone_id}/reserve"
        return await self._hold(call, path, {"quantity": quantity})

    async def repeat(self, earlier: Call) -> Call:
        """Send a request with an idempotency key once more, unchanged."""
        if earlier.op is Op.RESERVE_SEAT:
            return await self.reserve_seat(earlier.places[0], earlier.key)
        if earlier.op is Op.RESERVE_SEATS:
            return await self.reserve_seats(earlier.places, earlier.key)
        return await self.reserve_places(earlier.quantity, earlier.key)

    async def release(self, hold_id: str) -> Call:
        call = self._begin(Op.RELEASE, hold_id=hold_id)
        await self._send(call, "DELETE", f"/api/holds/{hold_id}")
        return call

    async def extend(self, hold_id: str) -> Call:
        return await self._hold(self._begin(Op.EXTEND, hold_id=hold_id), f"/api/holds/{hold_id}/extend")

    async def list_own(self) -> Call:
        """Read the basket."""
        call = self._begin(Op.LIST_OWN)
        answer = await self._send(call, "GET", f"/api/events/{self.event.event_id}/holds/mine")
        if answer is not None and call.status == 200:
            call.holds = _seen(answer.json()["data"])
        return call

    async def read_map(self) -> Call:
        call = self._begin(Op.MAP)
        answer = await self._send(call, "GET", f"/api/events/{self.event.event_id}/seatmap")
        if answer is not None and call.status == 200:
            data = answer.json()["data"]
            call.statuses = digits_of(data["statuses"], data["seat_count"])
        return call

    async def read_readiness(self) -> Call:
        call = self._begin(Op.READY)
        await self._send(call, "GET", "/readyz")
        return call

    async def block(self, seat_ids: Iterable[str]) -> Call:
        return await self._set_blocked(Op.BLOCK, seat_ids)

    async def unblock(self, seat_ids: Iterable[str]) -> Call:
        return await self._set_blocked(Op.UNBLOCK, seat_ids)

    def _begin(self, op: Op, **about: Any) -> Call:
        call = Call(op=op, buyer=self.user_id, began=time.monotonic(), **about)
        self.history.calls.append(call)
        return call

    async def _sign_in(self, path: str, body: Mapping[str, str]) -> Call:
        self.client.token = ""
        call = self._begin(Op.SIGN_IN)
        answer = await self._send(call, "POST", path, body)
        if answer is not None and call.status == 201:
            data = answer.json()["data"]
            self.client.token, self.user_id = data["token"], data["user"]["id"]
            call.buyer = self.user_id
        return call

    async def _set_blocked(self, op: Op, seat_ids: Iterable[str]) -> Call:
        call = self._begin(op, places=tuple(seat_ids))
        path = f"/api/admin/events/{self.event.event_id}/seats/{op}"
        answer = await self._send(call, "POST", path, {"seat_ids": list(call.places)})
        if answer is not None and call.status == 200:
            call.refused = tuple(
                (one["seat_id"], one["outcome"]) for one in answer.json()["data"] if one["outcome"] != "done"
            )
        return call

    async def _hold(self, call: Call, path: str, body: object = None) -> Call:
        answer = await self._send(call, "POST", path, body)
        if answer is None:
            return call
        if call.status in (200, 201):
            data = answer.json()["data"]
            call.holds = _seen(data if isinstance(data, list) else [data])
        elif call.error == "seats_refused":
            call.refused = tuple((one["seat_id"], one["error"]) for one in answer.json()["details"]["seats"])
        elif call.error and len(call.places) == 1:
            call.refused = ((call.places[0], call.error),)
        return call

    async def _send(self, call: Call, method: str, path: str, body: object = None) -> Answer | None:
        headers = {"idempotency-key": call.key} if call.key else {}
        try:
            answer = await self.client.request(method, path, body=body, headers=headers)
        except NotSent as failed:
            call.ended, call.error, call.effect = time.monotonic(), str(failed), "none"
            return None
        except NoAnswer as failed:
            call.ended, call.error, call.effect = time.monotonic(), str(failed), "unknown"
            return None
        call.ended = time.monotonic()
        call.status, call.request_id = answer.status, answer.headers.get("x-request-id", "")
        if call.status >= 400 and call.op is not Op.READY:
            problem = answer.json()
            call.error, call.effect = problem["error"], problem["effect"]
        return answer


def digits_of(packed: str, count: int) -> str:
    """Return the statuses of a seat map, one digit per ordinal. The API packs four into each byte."""
    data = base64.b64decode(packed)
    return "".join(str(data[n // 4] >> 2 * (n % 4) & 3) for n in range(count))


def _seen(holds: Iterable[Mapping[str, Any]]) -> tuple[SeenHold, ...]:
    return tuple(
        SeenHold(
            hold_id=one["hold_id"],
            place=one["seat_id"] or one["zone_id"],
            quantity=one["quantity"],
            is_held=one["status"] == "held",
            held_until=datetime.fromisoformat(one["held_until"]).timestamp(),
            left_s=one["expires_in_seconds"],
        )
        for one in holds
    )
