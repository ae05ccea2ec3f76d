"""Whatever clients do to a correct server, and however their calls overlap, the checker reports nothing."""

import math
from dataclasses import dataclass, field, replace

from hypothesis import given, settings, strategies as st

from tests.blackbox.checker import check
from tests.blackbox.history import Call, History, HoldRow, Op, SeenHold, Witness
from tests.blackbox.story import CAPACITY, SEATS, TTL_S, ZONE

BUYERS = ("anne", "ben", "cara")
EXTENSION_S = 300
LATEST_S = 150.0


@dataclass
class Hold:
    """A hold of the correct server."""

    hold_id: str
    owner: str
    place: str
    quantity: int
    first_end: float
    end: float
    status: str = "active"
    shown_at: float = math.inf
    """When its owner first learned of it: before that they cannot release or extend it."""


@dataclass
class CorrectServer:
    """Does what the product promises, each call at one moment between its beginning and its end."""

    holds: list[Hold] = field(default_factory=list)
    answers: dict[tuple[str, str], Call] = field(default_factory=dict)

    def active(self, place: str, now: float) -> list[Hold]:
        return [one for one in self.holds if one.place == place and one.status == "active" and one.end > now]

    def reserve(self, call: Call, now: float) -> Call:
        """Answer a request for a hold; a request whose key is known gets the first answer again."""
        known = self.answers.get((call.buyer, call.key)) if call.key else None
        if known:
            holds = tuple(self._seen(one.hold_id, now) for one in known.holds)
            return replace(call, status=known.status, error=known.error, effect=known.effect, holds=holds)
        (place,) = call.places
        taken = self.active(place, now)
        if place == ZONE and sum(one.quantity for one in taken) + call.quantity > CAPACITY:
            answer = _refused(call, "block_at_capacity")
        elif place != ZONE and any(one.owner != call.buyer for one in taken):
            answer = _refused(call, "seat_held_by_another_user")
        elif place != ZONE and taken:
            answer = replace(call, status=200, holds=(self._seen(taken[0].hold_id, now),))
        else:
            end = now + TTL_S
            made = Hold(f"hold-{len(self.holds)}", call.buyer, place, call.quantity, end, end)
            self.holds.append(made)
            answer = replace(call, status=201, holds=(self._seen(made.hold_id, now),))
        if call.key:
            self.answers[call.buyer, call.key] = answer
        return answer

    def release(self, call: Call, now: float, hold: Hold) -> Call:
        if hold.status == "active":
            hold.status = "cancelled" if hold.end > now else "expired"
        return replace(call, status=204, hold_id=hold.hold_id)

    def extend(self, call: Call, now: float, hold: Hold) -> Call:
        if hold.status != "active" or hold.end <= now:
            return replace(call, hold_id=hold.hold_id, status=409, error="holds_expired", effect="none")
        hold.end = hold.first_end + EXTENSION_S
        return replace(call, hold_id=hold.hold_id, status=200, holds=(self._seen(hold.hold_id, now),))

    def basket(self, call: Call, now: float) -> Call:
        own = [one for one in self.holds if one.owner == call.buyer and one.status == "active" and one.end > now]
        return replace(call, status=200, holds=tuple(self._seen(one.hold_id, now) for one in own))

    def map(self, call: Call, now: float) -> Call:
        return replace(call, status=200, statuses="".join("1" if self.active(seat, now) else "0" for seat in SEATS))

    def show(self, answered: Call) -> None:
        shown = {one.hold_id for one in answered.holds}
        for one in self.holds:
            if one.hold_id in shown:
                one.shown_at = min(one.shown_at, answered.ended)

    def witness(self, now: float) -> Witness:
        for one in self.holds:
            if one.status == "active" and one.end <= now:
                one.status = "expired"
        active = [one for one in self.holds if one.status == "active"]
        rows = [
            HoldRow(hold_id=h.hold_id, owner=h.owner, place=h.place, quantity=h.quantity, status=h.status)
            for h in self.holds
        ]
        return Witness(
            began=now,
            ended=now,
            holds={one.hold_id: one for one in rows},
            seat_statuses="".join("1" if self.active(seat, now) else "0" for seat in SEATS),
            seat_holds={one.place: one.hold_id for one in active if one.place != ZONE},
            zone_held={ZONE: sum(one.quantity for one in active if one.place == ZONE)},
            request_ids=frozenset(),
        )

    def _seen(self, hold_id: str, now: float) -> SeenHold:
        one = next(one for one in self.holds if one.hold_id == hold_id)
        return SeenHold(
            hold_id=hold_id,
            place=one.place,
            quantity=one.quantity,
            is_held=one.status == "active" and one.end > now,
            held_until=one.end,
            left_s=max(0, int(one.end - now)),
        )


def _refused(call: Call, error: str) -> Call:
    return replace(call, status=409, error=error, effect="none", refused=((call.places[0], error),))


@dataclass(frozen=True)
class Deed:
    """One call of a buyer: when it began, how long it took, and its outcome."""

    op: Op
    buyer: str
    place: str
    quantity: int
    began: float
    lasts_s: float
    takes_effect: float
    key: str
    is_lost: bool
    pick: int


DEEDS = st.builds(
    Deed,
    op=st.sampled_from([Op.RESERVE_SEAT, Op.RESERVE_SEAT, Op.RELEASE, Op.EXTEND, Op.LIST_OWN, Op.MAP]),
    buyer=st.sampled_from(BUYERS),
    place=st.sampled_from([*SEATS, ZONE]),
    quantity=st.integers(1, 3),
    began=st.floats(0, LATEST_S, allow_nan=False),
    lasts_s=st.floats(0.001, 20),
    takes_effect=st.floats(0.01, 0.99),
    key=st.sampled_from(["", "", "k1", "k2"]),
    is_lost=st.booleans(),
    pick=st.integers(0, 5),
)


def perform(deeds: list[Deed]) -> History:
    """Let the correct server answer all calls in the order in which they take effect."""
    server, history = CorrectServer(), History(seat_ids=SEATS, capacities={ZONE: CAPACITY}, ttl_s=float(TTL_S))
    for deed in sorted(deeds, key=lambda one: one.began + one.lasts_s * one.takes_effect):
        now, ended = deed.began + deed.lasts_s * deed.takes_effect, deed.began + deed.lasts_s
        call = Call(op=deed.op, buyer=deed.buyer, began=deed.began, ended=ended)
        answered = _answer(server, deed, call, now)
        if answered and deed.is_lost:
            answered = replace(answered, status=0, error="timeout", effect="unknown", holds=(), refused=(), statuses="")
        if answered:
            history.calls.append(answered)
            server.show(answered)
    history.calls.sort(key=lambda one: one.began)
    history.witness = server.witness(max((one.ended for one in history.calls), default=0.0) + 1)
    history.final_maps = [("map", history.witness.seat_statuses)]
    return history


def _answer(server: CorrectServer, deed: Deed, call: Call, now: float) -> Call | None:
    match deed.op:
        case Op.RESERVE_SEAT:
            is_zone = deed.place == ZONE
            op, quantity = (Op.RESERVE_PLACES, deed.quantity) if is_zone else (Op.RESERVE_SEAT, 1)
            key = f"{deed.key} {deed.place} {quantity}" if deed.key else ""
            return server.reserve(replace(call, op=op, places=(deed.place,), quantity=quantity, key=key), now)
        case Op.LIST_OWN:
            return server.basket(call, now)
        case Op.MAP:
            return server.map(call, now)
    known = [one for one in server.holds if one.owner == deed.buyer and one.shown_at <= deed.began]
    if not known:
        return None
    hold = known[deed.pick % len(known)]
    return server.release(call, now, hold) if deed.op is Op.RELEASE else server.extend(call, now, hold)


@settings(max_examples=300)
@given(st.lists(DEEDS, max_size=40))
def test_a_correct_server_is_never_accused(deeds: list[Deed]) -> None:
    assert check(perform(deeds)) == []
