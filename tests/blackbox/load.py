"""Everything that calls the product during a run: buyers, staff who block seats, and clients who watch the map."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

from tests.blackbox.buyers import QUIET_SEATS, Buyer, Sale
from tests.blackbox.viewers import Viewer, poll

POLLERS, VIEWERS = 2, 4
REVISIT_PAUSE_S = 0.5
REVISITED_GUESTS = 50
BLOCK_PAUSE_S = 3.0
FORGOTTEN_S = 10.0


@contextlib.asynccontextmanager
async def watching(sale: Sale) -> AsyncIterator[list[Viewer]]:
    """Follow the live stream with several viewers until the block ends."""
    viewers = [Viewer(sale.product.client(), sale.event.event_id) for _ in range(VIEWERS)]
    tasks = [asyncio.create_task(viewer.follow()) for viewer in viewers]
    try:
        yield viewers
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def run_load(sale: Sale, buyers: int) -> None:
    """Call until the sale is over and every call in flight has ended."""
    async with asyncio.TaskGroup() as group:
        for number in range(buyers):
            group.create_task(Buyer(sale, sale.chance(f"buyer {number}"), sale.caller()).run())
        for _ in range(POLLERS):
            group.create_task(poll(sale.caller(), sale.is_over))
        group.create_task(_revisit(sale))
        group.create_task(_block(sale))
        group.create_task(_forget(sale))


async def _revisit(sale: Sale) -> None:
    """Read the baskets of earlier guests: what they left must stay there until it expires."""
    chance = sale.chance("revisit")
    while not sale.is_over.is_set():
        if sale.guests:
            reader = chance.choice(sale.guests[-REVISITED_GUESTS:]).again()
            await reader.list_own()
            reader.client.close()
        await sale.pause(REVISIT_PAUSE_S * chance.random())


async def _forget(sale: Sale) -> None:
    """Hold the quiet seats, let the holds expire, and hold the seats again: the map must show both in time."""
    while not sale.is_over.is_set():
        guest = sale.caller()
        if (await guest.sign_in_as_guest()).status == 201:
            sale.guests.append(guest)
            for seat_id in sale.event.seat_ids[-QUIET_SEATS:]:
                await guest.reserve_seat(seat_id)
            await sale.pause(sale.history.ttl_s)
        guest.client.close()
        await sale.pause(FORGOTTEN_S)


async def _block(sale: Sale) -> None:
    """Block a seat and unblock it, again and again. A seat that could not be unblocked stays blocked."""
    staff, chance = sale.caller(), sale.chance("staff")
    while not sale.is_over.is_set():
        await sale.pause(BLOCK_PAUSE_S * chance.uniform(0.5, 1.5))
        if not staff.client.token:
            await staff.sign_in_as_owner()
            continue
        seat_id = chance.choice(sale.event.seat_ids[:-QUIET_SEATS])
        call = await staff.block([seat_id])
        if call.status == 401:
            staff.client.token = ""
        if call.may_have_happened:
            await sale.pause(1.0)
            await staff.unblock([seat_id])
