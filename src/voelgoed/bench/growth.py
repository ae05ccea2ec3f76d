"""How the cost of a hold grows: with the seats of an event, the holds it has, the events on sale, the web processes.

In microseconds of processor, PostgreSQL's and the process's own: by the lane itself, without HTTP, but for the last of
the four, which only real processes can show.
"""

import asyncio
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from voelgoed.bench import chart, ground as grounds, machine, process as processes, report, selling
from voelgoed.bench.chart import Panel
from voelgoed.bench.ground import BenchRefused, Ground, Sale, hall_of
from voelgoed.bench.process import Process
from voelgoed.holds.lane import COMPANY_S

SMALL: Final = 1_000
WARM_UP: Final = 199
PROCESSES: Final = (1, 2)
TITLES: Final = {
    "seats": "Seats of the event",
    "held": "Holds it has already",
    "events": "Events on sale at once",
    "processes": "Web processes, over HTTP",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What one hold costs at one size, in microseconds of processor: the median of some rounds."""

    size: int
    postgresql_us: float
    process_us: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """At which sizes it is measured, with how many holds in a round, and how often."""

    seats: Sequence[int] = (1_000, 20_000, 100_000)
    held: Sequence[int] = (0, 20_000, 80_000)
    events: Sequence[int] = (1, 10, 100)
    holds: int = 800
    rounds: int = 5

    @property
    def points(self) -> int:
        return len(self.seats) + len(self.held) + len(self.events)


async def growth(*, plan: Plan, with_processes: bool, figure: Path | None, as_json: bool) -> None:
    """All four, as figures and, where one is wanted, as a drawing."""
    with report.steps(plan.points + (selling.PACE_STEPS * len(PROCESSES) if with_processes else 0)) as shown:
        async with grounds.opened() as ground:
            before = machine.look(ground.pids())
            costs = await measure(ground, plan, shown)
            is_disturbed = machine.between(before, machine.look(ground.pids())).is_disturbed
            await ground.require_well()
        for workers in PROCESSES if with_processes else ():
            told = await selling.one_pace(shown, workers=workers)
            cost = selling.us_per_hold(told)
            some = costs.setdefault("processes", [])
            some.append(Cost(size=workers, postgresql_us=cost["postgresql"], process_us=cost["web"]))
            is_disturbed = is_disturbed or told.use.is_disturbed
    if figure:
        figure.write_text(draw(costs, is_disturbed=is_disturbed), encoding="utf-8")  # noqa: ASYNC240 - nobody else is on this loop
    if as_json:
        told_all = {name: [asdict(one) for one in some] for name, some in costs.items()}
        report.show(told_all | {"holds": plan.holds, "rounds": plan.rounds, "disturbed": is_disturbed}, as_json=True)
        return
    for name, some in costs.items():
        report.show({TITLES[name]: "PostgreSQL us, process us", **_lines(some)}, as_json=False)
    report.show({"holds": plan.holds, "rounds": plan.rounds, "disturbed": is_disturbed}, as_json=False)


async def measure(ground: Ground, plan: Plan, shown: report.Steps) -> dict[str, list[Cost]]:
    """What a hold costs by the lane, at every size of an event and for every number of events."""
    costs: dict[str, list[Cost]] = {"seats": [], "held": [], "events": []}
    async with processes.opened(ground) as process:
        for seats in plan.seats:
            shown.begin(f"{seats} seats")
            await ground.make_hall(hall_of(seats))
            sale = await _looked_at(ground, process)
            await process.hold_many(processes.asks(sale, WARM_UP))
            costs["seats"].append(await _cost(ground, process, plan, seats, [sale]))
            shown.done()
        sale, held = await _looked_at(ground, process), 1  # in the largest of them
        for size in plan.held:
            shown.begin(f"{size} held")
            given = await process.hold_many(processes.asks(sale, max(0, size - held)))
            for last in given[-1:]:
                await process.wait_for_redis(last)  # what is told of these is not the next ones' cost
            held += len(given)
            await _require_held(ground, sale, held)
            costs["held"].append(await _cost(ground, process, plan, size, [sale]))
            held += plan.rounds * plan.holds
            shown.done()
        await _require_held(ground, sale, held)
        await ground.make_hall(hall_of(SMALL))
        for size in plan.events:
            shown.begin(f"{size} events")
            sales = [await _looked_at(ground, process) for _ in range(size)]
            costs["events"].append(await _cost(ground, process, plan, size, sales))
            shown.done()
    return costs


async def _cost(ground: Ground, process: Process, plan: Plan, size: int, sales: list[Sale]) -> Cost:
    """Some rounds of holds, dealt out to the events in turn; one that is nearly sold out makes room for another."""
    each = max(1, plan.holds // len(sales))
    told = []
    for _ in range(plan.rounds):
        for number, sale in enumerate(sales):
            if len(sale.seat_ids) < each:
                sales[number] = await _looked_at(ground, process)
        dealt = zip(*(processes.asks(sale, each) for sale in sales), strict=True)
        await ground.checkpoint()
        if len(sales) == 1:
            await asyncio.sleep(COMPANY_S)  # whoever sold before counts as company for so long, and batches are small
        told.append(await process.cost_of(ground, [ask for some in dealt for ask in some]))
    postgresql, own = (round(statistics.median(side), 1) for side in zip(*told, strict=True))
    return Cost(size=size, postgresql_us=postgresql, process_us=own)


async def _looked_at(ground: Ground, process: Process) -> Sale:
    """An event of which the process has a map and has sold the first seat: the sale has begun."""
    sale = await ground.put_on_sale()
    await process.availability.load(ground.place.id, sale.event_id)
    await process.hold_many(processes.asks(sale, 1))
    return sale


async def _require_held(ground: Ground, sale: Sale, held: int) -> None:
    """The record has what was given; asking also lets PostgreSQL know how much there is."""
    found = await ground.count_holds(sale)
    if found != held:
        raise BenchRefused(f"{held} holds were given, {found} are there")


def draw(costs: Mapping[str, Sequence[Cost]], *, is_disturbed: bool) -> str:
    """A drawing of what a hold costs, a panel for each way to grow; a disturbed one says so wherever it is shown."""
    return chart.draw(
        "Microseconds of processor for one hold" + (", on a disturbed machine" if is_disturbed else ""),
        [
            Panel(
                title=TITLES[name],
                sizes=[one.size for one in some],
                series={
                    "PostgreSQL": [one.postgresql_us for one in some],
                    "web process": [one.process_us for one in some],
                },
            )
            for name, some in costs.items()
        ],
    )


def _lines(costs: Sequence[Cost]) -> dict[str, str]:
    return {f"{one.size:,}": f"{one.postgresql_us:,.0f}, {one.process_us:,.0f}" for one in costs}
