"""One run: start the product, sell under faults, calm down, compare everything."""

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.blackbox.buyers import Sale
from tests.blackbox.history import Fault, FaultKind, History
from tests.blackbox.load import run_load, watching
from tests.blackbox.nemesis import Lengths, Nemesis, NotRecovered, Step
from tests.blackbox.server import PLACES, TTL_MINUTES, Event, Product, create_event, serving
from tests.blackbox.tenures import read_tenures
from tests.blackbox.viewers import Viewer
from tests.blackbox.witness import read_witness

CONVERGE_WAIT_S = 20.0
CONVERGE_PAUSE_S = 0.2
MAPS_COMPARED = 6
LAST_FREEZE_S = 9.0
"""How long the worker is frozen at the end, while holds expire: the map must show it all the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a run does. Steps that the time does not allow are left out."""

    seed: int
    buyers: int
    pause_s: float
    warm_up_s: float
    lengths: Lengths
    steps: Iterable[Step]
    sale_s: float


async def run(folder: Path, plan: Plan, *, say: Callable[[str], None] = print) -> History:
    """Run a plan in an empty folder and return the history."""
    async with serving(folder) as product:
        event = await create_event(product)
        return await sell_under_faults(product, event, plan, say=say)


def new_history(event: Event) -> History:
    """Return an empty history of sales of this event."""
    return History(seat_ids=event.seat_ids, capacities={event.zone_id: PLACES}, ttl_s=60.0 * TTL_MINUTES)


async def sell_under_faults(product: Product, event: Event, plan: Plan, *, say: Callable[[str], None]) -> History:
    """Sell until the plan's time is over, with its faults, then compare what all sides say."""
    history = new_history(event)
    sale = Sale(product, event, history, plan.seed, plan.pause_s)
    nemesis = Nemesis(product, history, sale.chance("nemesis"), plan.lengths, lambda fault: say(_line(fault)))
    async with watching(sale) as viewers:
        selling = asyncio.create_task(run_load(sale, plan.buyers))
        try:
            await _break_things(nemesis, plan)
        except NotRecovered as failed:
            history.collapse = str(failed)
        finally:
            sale.is_over.set()
            await selling
        if not history.collapse:
            await compare(sale, viewers)
    return history


async def _break_things(nemesis: Nemesis, plan: Plan) -> None:
    """Inject the plan's faults, and freeze the worker at the end."""
    quiet_at = time.monotonic() + plan.sale_s - LAST_FREEZE_S
    await asyncio.sleep(plan.warm_up_s)
    for step in plan.steps:
        if time.monotonic() + nemesis.longest(step) > quiet_at:
            break
        await nemesis.inject(step)
    await asyncio.sleep(max(0.0, quiet_at - time.monotonic()))
    await nemesis.inject((FaultKind.FREEZE_WORKER,), for_s=LAST_FREEZE_S)


async def compare(sale: Sale, viewers: Sequence[Viewer], *, wait_s: float = CONVERGE_WAIT_S) -> None:
    """Read every basket that may hold something, then wait until database, maps and live maps agree."""
    now, owners = time.monotonic(), set[str]()
    for one in read_tenures(sale.history).tenures.values():
        if one.possible.end > now:
            owners.add(one.owner)
    for guest in sale.guests:
        if guest.user_id in owners:
            reader = guest.again()
            await reader.list_own()
            reader.client.close()
    give_up_at = time.monotonic() + wait_s
    while not await _agree(sale, viewers) and time.monotonic() < give_up_at:
        await asyncio.sleep(CONVERGE_PAUSE_S)
    sale.history.stream_errors += [error for viewer in viewers for error in viewer.errors]


async def _agree(sale: Sale, viewers: Sequence[Viewer]) -> bool:
    """Take one more look at everything; return whether all sides show the same seats."""
    history = sale.history
    maps = []
    for number in range(MAPS_COMPARED):
        reader = sale.caller()
        maps.append((f"map {number}", (await reader.read_map()).statuses))
        reader.client.close()
    maps += [(f"live map {number}", viewer.statuses) for number, viewer in enumerate(viewers)]
    history.witness = await read_witness(sale.product, sale.event)
    history.final_maps = maps
    return all(statuses == history.witness.seat_statuses for _, statuses in maps)


def _line(fault: Fault) -> str:
    where = " in a transaction" if fault.is_in_transaction else ""
    lasted_s, ready_s = fault.lifted - fault.began, fault.recovered - fault.lifted
    return f"  {fault.kind} {fault.detail}{where}: lasted {lasted_s:.1f} s, ready {ready_s:.1f} s later"
