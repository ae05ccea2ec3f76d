"""Asks that wait: each told once, and those for one event in the order in which they came."""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import structlog

from voelgoed.errors import Busy, OutcomeUnknown
from voelgoed.holds.model import Ask, Verdict

log = structlog.get_logger(__name__)

Said = list[Verdict] | Exception
"""What comes of an ask: what PostgreSQL says to each item of it, or why there is nothing to say."""


class Waiting:
    """An ask on its way. Whoever asked is told once."""

    __slots__ = (
        "ask", "claims", "is_by_number", "is_done", "is_held_up", "is_taken", "rounds", "seat", "since", "tell",
    )  # fmt: skip

    def __init__(self, ask: Ask, tell: Callable[["Waiting", Said], None], since: float) -> None:
        self.ask, self.tell, self.since = ask, tell, since
        self.rounds = 0
        self.is_taken = self.is_done = False
        self.is_held_up = False  # by another ask for the same, or of the same person: no sign of a slow machine
        items = ask.items
        self.seat = items[0].seat_id if len(items) == 1 else None
        """The one seat it asks for, if it is one."""
        self.is_by_number = self.seat is None and any(item.zone_id for item in items)
        """Whether it asks for places of a zone, and so locks zones."""
        self.claims: set[object] = {self.seat} if self.seat else {item.seat_id for item in items if item.seat_id}
        """What no two asks under way may have in common: seats, somebody's key for one effect, whoever has a limit.

        What somebody is refused must not count against what they ask next, and in PostgreSQL they would wait for
        themselves with everybody who goes with them.
        """
        if ask.key:
            self.claims.add((ask.user_id, ask.key))
        if not ask.is_staff:
            self.claims.add(ask.user_id)

    def say(self, said: Said) -> None:
        """Tell whoever asked; what fails there is theirs, and must not keep the next from being told."""
        if self.is_done:
            return
        self.is_done = True
        try:
            self.tell(self, said)
        except Exception:
            log.exception("telling_failed", request_id=str(self.ask.request_id))

    def give_up(self) -> None:
        """Too late. Not taken yet: it never will be. Taken: it commits or not, and nobody here can say which."""
        self.say(OutcomeUnknown() if self.is_taken else Busy())


@dataclass(slots=True, eq=False)
class Lane:
    """The asks of one organization for one event."""

    queue: deque[Waiting] = field(default_factory=deque)
    under_way: int = 0
    claimed: set[object] = field(default_factory=set)
    is_at_zones: bool = False
    is_in_trouble: bool = False  # a batch is being settled, or tried one by one
    is_in_ring: bool = False

    def may_go(self, one: Waiting) -> bool:
        """Whether nothing that is under way is in its way."""
        return not (one.is_by_number and self.is_at_zones) and self.claimed.isdisjoint(one.claims)

    def take(self, oldest: float, items_most: int) -> list[Waiting]:
        """The next batch: in order, seats or places by number, no claim twice; who asked before `oldest` is told so."""
        batch: list[Waiting] = []
        left: deque[Waiting] = deque()
        late: list[Waiting] = []
        items = 0
        while self.queue:
            one = self.queue.popleft()
            if one.is_done:
                continue
            if one.since < oldest:
                late.append(one)
                continue
            asked = one.ask.items
            if not self.may_go(one) or (batch and one.is_by_number != batch[0].is_by_number):
                one.is_held_up = one.is_held_up or not self.claimed.isdisjoint(one.claims)
                left.append(one)
                continue
            if batch and items + len(asked) > items_most:
                left.append(one)
                break
            self.claimed |= one.claims
            one.is_taken = True
            batch.append(one)
            items += len(asked)
        self.queue.extendleft(reversed(left))
        if batch and batch[0].is_by_number:
            self.is_at_zones = True
        for one in late:  # whoever is told may ask again at once
            one.give_up()
        return batch

    def done(self, batch: Sequence[Waiting]) -> None:
        """A batch is under way no more."""
        for one in batch:
            self.claimed -= one.claims
        if batch[0].is_by_number:
            self.is_at_zones = False
