"""Histories told call by call, for tests of the checker."""

from dataclasses import dataclass, field

from tests.blackbox.checker import check
from tests.blackbox.history import Call, History, HoldRow, Op, SeenHold, Witness
from tests.blackbox.violations import Rule

TTL_S = 60
SEATS = ("seat-1", "seat-2")
ZONE = "zone"
CAPACITY = 4
ANNE, BEN = "anne", "ben"


@dataclass
class Story:
    """A history told call by call, with one second for each call unless said otherwise."""

    history: History = field(
        default_factory=lambda: History(seat_ids=SEATS, capacities={ZONE: CAPACITY}, ttl_s=float(TTL_S))
    )

    def call(self, op: Op, buyer: str, at: float, **about: object) -> Call:
        about = {"ended": at + 1, "status": 200} | about
        call = Call(op=op, buyer=buyer, began=at, **about)  # type: ignore[arg-type]  # names as in Call
        self.history.calls.append(call)
        return call

    def hold(self, buyer: str, at: float, hold_id: str, place: str = SEATS[0], **about: object) -> Call:
        """An acknowledged hold."""
        quantity = int(str(about.pop("quantity", 1)))
        seen = self.seen(hold_id, at, place=place, quantity=quantity)
        op = Op.RESERVE_PLACES if place == ZONE else Op.RESERVE_SEAT
        about = {"status": 201, "holds": (seen,), "places": (place,), "quantity": quantity} | about
        return self.call(op, buyer, at, **about)

    def refuse(self, buyer: str, at: float, error: str, place: str = SEATS[0], **about: object) -> Call:
        told = {"status": 409, "error": error, "effect": "none", "places": (place,), "refused": ((place, error),)}
        op = Op.RESERVE_PLACES if place == ZONE else Op.RESERVE_SEAT
        return self.call(op, buyer, at, **(told | about))

    def release(self, buyer: str, at: float, hold_id: str, **about: object) -> Call:
        return self.call(Op.RELEASE, buyer, at, **({"status": 204, "hold_id": hold_id} | about))

    def extend(self, buyer: str, at: float, hold_id: str, held_since: float, later_s: float = 300) -> Call:
        seen = self.seen(hold_id, held_since, later_s=later_s, now=at)
        return self.call(Op.EXTEND, buyer, at, hold_id=hold_id, holds=(seen,))

    def basket(self, buyer: str, at: float, *holds: SeenHold) -> Call:
        return self.call(Op.LIST_OWN, buyer, at, holds=holds)

    def seen(
        self,
        hold_id: str,
        held_since: float,
        *,
        place: str = SEATS[0],
        quantity: int = 1,
        later_s: float = 0,
        now: float | None = None,
    ) -> SeenHold:
        """A hold that was created within the second after `held_since`, as an answer at `now` shows it."""
        end = held_since + TTL_S + later_s
        left_s = int(end - (held_since if now is None else now))
        return SeenHold(
            hold_id=hold_id, place=place, quantity=quantity, is_held=True, held_until=1_000_000 + end, left_s=left_s
        )

    def witness(self, at: float, *rows: HoldRow, request_ids: tuple[str, ...] = ()) -> None:
        """What the database holds, without contradictions of its own."""
        active = {row.place: row for row in rows if row.status == "active"}
        self.history.witness = Witness(
            began=at,
            ended=at + 1,
            holds={row.hold_id: row for row in rows},
            seat_statuses="".join("1" if seat in active else "0" for seat in SEATS),
            seat_holds={place: row.hold_id for place, row in active.items() if place != ZONE},
            zone_held={ZONE: sum(row.quantity for row in rows if row.status == "active" and row.place == ZONE)},
            request_ids=frozenset(request_ids),
        )

    def rules(self) -> set[Rule]:
        return {violation.rule for violation in check(self.history)}


def row(hold_id: str, owner: str, status: str = "active", place: str = SEATS[0], quantity: int = 1) -> HoldRow:
    return HoldRow(hold_id=hold_id, owner=owner, place=place, quantity=quantity, status=status)
