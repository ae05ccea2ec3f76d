"""Buyers: guests who hold seats, extend, release or forget them, and repeat requests that got no clear answer."""

import asyncio
import contextlib
import itertools
import random
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field

from tests.blackbox.calls import Caller
from tests.blackbox.history import RESERVES, Call, History, Op, Outcome
from tests.blackbox.server import Event, Product

HOLDS_PER_GUEST = 30
"""A guest may hold 40 seats in five minutes if all but 10 are released within 30 seconds. Then another guest comes."""
FIRST_HOLDS = 3
"""The first guest leaves early, so that even a short run sees holds expire."""
BASKET_MAX = 5
REPEATS_MAX = 80
REPEAT_PAUSE_S = 0.5
REPEAT_CHANCE = 0.1
FORGET_CHANCE = 0.5
KEY_CHANCE = 0.5
NEW_CONNECTION_CHANCE = 0.03
QUIET_SEATS = 8
"""The last seats are left to guests who let their holds expire, so that no other request ends them."""
POPULAR_SEATS = 24
POPULAR_CHANCE = 0.3
SIGN_IN_PAUSE_S = 0.3


@dataclass(slots=True)
class Sale:
    """What all clients of one run share. `pause_s` is how long a buyer thinks between two calls."""

    product: Product
    event: Event
    history: History
    seed: int
    pause_s: float
    is_over: asyncio.Event = field(default_factory=asyncio.Event)
    guests: list[Caller] = field(default_factory=list)
    key_numbers: Iterator[int] = field(default_factory=itertools.count)

    def caller(self) -> Caller:
        """Return a new buyer on a new connection."""
        return Caller(self.history, self.event, self.product.client())

    def chance(self, name: str) -> random.Random:
        """Return the random numbers of one client: the same for the same seed."""
        return random.Random(f"{self.seed} {name}")

    async def pause(self, seconds: float) -> None:
        """Wait, but not beyond the end of the sale."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.is_over.wait(), seconds)


@dataclass(slots=True)
class Buyer:
    """One buyer at a time, each a new guest when the one before has held enough."""

    sale: Sale
    chance: random.Random
    caller: Caller
    basket: list[str] = field(default_factory=list)
    keyed: list[Call] = field(default_factory=list)
    held_count: int = HOLDS_PER_GUEST - FIRST_HOLDS

    async def run(self) -> None:
        """Buy until the sale is over."""
        while not self.sale.is_over.is_set():
            if await self._come_in():
                await self._shop_around()
                await self._leave()

    async def _leave(self) -> None:
        """Release everything, or forget it."""
        if self.chance.random() > FORGET_CHANCE:
            while self.basket and not self.sale.is_over.is_set():
                await self._release()
        self.held_count = 0

    async def _come_in(self) -> bool:
        self.caller.client.close()
        self.caller = self.sale.caller()
        self.basket, self.keyed = [], []
        if (await self.caller.sign_in_as_guest()).status != 201:
            await self.sale.pause(SIGN_IN_PAUSE_S)
            return False
        self.sale.guests.append(self.caller)
        return True

    async def _shop_around(self) -> None:
        while not self.sale.is_over.is_set() and self.held_count < HOLDS_PER_GUEST:
            call = await self._choose_step()()
            if call.status in (401, 429):
                return
            if self.chance.random() < NEW_CONNECTION_CHANCE:
                self.caller.client.close()
            await self.sale.pause(self.sale.pause_s * self.chance.uniform(0.5, 1.5))

    def _choose_step(self) -> Callable[[], Awaitable[Call]]:
        can_hold, has_holds = len(self.basket) < BASKET_MAX, bool(self.basket)
        weights: dict[Callable[[], Awaitable[Call]], float] = {
            self._take_seat: 40 * can_hold,
            self._take_seats: 8 * can_hold,
            self._take_places: 12 * can_hold,
            self._repeat: 5 * bool(self.keyed),
            self._release: 36 * has_holds,
            self._extend: 5 * has_holds,
            self.caller.list_own: 8,
            self.caller.read_map: 6,
        }
        return self.chance.choices(list(weights), list(weights.values()))[0]

    def _pick(self, count: int) -> list[str]:
        """Choose seats next to each other; many buyers want the same few."""
        seat_ids = self.caller.event.seat_ids[:-QUIET_SEATS]
        among = POPULAR_SEATS if self.chance.random() < POPULAR_CHANCE else len(seat_ids)
        first = self.chance.randrange(among - count + 1)
        return list(seat_ids[first : first + count])

    async def _take_seat(self) -> Call:
        if self.chance.random() < KEY_CHANCE:
            return await self._settle(await self.caller.reserve_seat(self._pick(1)[0], self._key()))
        call = await self.caller.reserve_seat(self._pick(1)[0])
        if call.outcome is Outcome.UNKNOWN:
            call = await self.caller.list_own()  # without a key the only way to find out
        return self._put_away(call)

    async def _take_seats(self) -> Call:
        return await self._settle(await self.caller.reserve_seats(self._pick(self.chance.randint(2, 3)), self._key()))

    async def _take_places(self) -> Call:
        return await self._settle(await self.caller.reserve_places(self.chance.randint(1, 3), self._key()))

    async def _repeat(self) -> Call:
        """Send an earlier request once more: it must have the same answer, even if its holds have ended since."""
        return await self.caller.repeat(self.chance.choice(self.keyed))

    async def _settle(self, call: Call) -> Call:
        """Repeat a request with its key until its outcome is known, and now and then once more."""
        for _ in range(REPEATS_MAX):
            is_known = call.outcome is not Outcome.UNKNOWN and call.status not in (0, 503)
            if self.sale.is_over.is_set() or (is_known and self.chance.random() > REPEAT_CHANCE):
                break
            if not is_known:
                await self.sale.pause(REPEAT_PAUSE_S)
            call = await self.caller.repeat(call)
        self.keyed.append(call)
        return self._put_away(call)

    async def _release(self) -> Call:
        hold_id = self.basket.pop(self.chance.randrange(len(self.basket)))
        return await self._insist(lambda: self.caller.release(hold_id))

    async def _extend(self) -> Call:
        hold_id = self.chance.choice(self.basket)
        return await self._insist(lambda: self.caller.extend(hold_id))

    async def _insist(self, send: Callable[[], Awaitable[Call]]) -> Call:
        """Repeat a request that is harmless to repeat until its outcome is known."""
        call = await send()
        for _ in range(REPEATS_MAX):
            if self.sale.is_over.is_set() or (call.outcome is not Outcome.UNKNOWN and call.status not in (0, 503)):
                break
            await self.sale.pause(REPEAT_PAUSE_S)
            call = await send()
        return call

    def _put_away(self, call: Call) -> Call:
        """Put the holds of an answer into the basket."""
        new = [one.hold_id for one in call.holds if one.is_held and one.hold_id not in self.basket]
        self.basket += new
        if call.op in RESERVES or call.op is Op.LIST_OWN:
            self.held_count += sum(one.quantity for one in call.holds if one.hold_id in new)
        return call

    def _key(self) -> str:
        return f"key-{next(self.sale.key_numbers)}"
