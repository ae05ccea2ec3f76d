"""What selling costs over real HTTP with everything on, and anchors in the same run."""

import itertools
import statistics
import time
from collections.abc import Iterator
from dataclasses import asdict
from typing import Final

from voelgoed.bench import anchors, closed, ground as grounds, openloop, report
from voelgoed.bench.closed import Told
from voelgoed.bench.ground import BenchRefused, Ground, Sale
from voelgoed.holds.availability import Availability
from voelgoed.holds.projection import Projection

GUESTS: Final = 40_000
GROUP: Final = 512
SEATS_EACH: Final = 8
OVERLOAD: Final = 3
SEATS_SHARE_MAX: Final = 0.9
SOLD_BEFORE: Final = 1_000
SOLD_PER_S: Final = 500
TRIES: Final = 4
PACE_HALL: Final = "stadium-60k"
PACE_CONNECTIONS: Final = 256
PACE_S: Final = 5.0
PACE_STEPS: Final = 4
PER_S_GOAL: Final = ">= 100 an event (PERF-10)"
RESERVE_GOAL: Final = "< 200 ms (PERF-01)"
WITH_RETRIES_GOAL: Final = ">= 1000 (PERF-11)"
ANSWERED_GOAL: Final = "99.99 (PERF-19)"


async def reserve(
    *, seconds: float, pairs: int, connections: int, workers: int, hall: str, as_json: bool, redis: bool = True
) -> None:
    """Holds a second over HTTP beside PostgreSQL's own, in turns: ours, bare, bare, ours."""
    with report.steps(3 + 4 * pairs) as shown:
        async with grounds.opened(workers=workers) as ground:
            guests = await prepare(ground, hall, shown)
            bare = await anchors.prepare(ground)
            if not redis:
                ground.freeze("redis")
            await _warm_up(ground, guests, connections)
            shown.done()
            ours: list[Told] = []
            ones: list[float] = []
            manys: list[float] = []
            for number in range(2 * pairs):
                for is_ours in (number % 2 == 0, number % 2 == 1):
                    if is_ours:
                        shown.begin("reserve")
                        ours.append(await _one_run(ground, guests, connections, seconds))
                    else:
                        shown.begin("anchor")
                        ones.append(await bare.one(seconds))
                        manys.append(await bare.many(min(seconds, 2)))
                    shown.done()
            await ground.require_well()
    ratios = [told.per_s / one for told, one in zip(ours, ones, strict=True)]
    middle = sorted(ours, key=lambda told: told.per_s)[len(ours) // 2]
    report.show(
        {
            "ratio": round(statistics.median(ratios), 3),
            "ratios": [round(ratio, 3) for ratio in ratios],
            "holds_per_s": round(statistics.median(told.per_s for told in ours)),
            "holds_per_s_goal": PER_S_GOAL,
            "anchor_per_s": round(statistics.median(ones)),
            "batch_anchor_per_s": round(statistics.median(manys)),
            "p50_ms": middle.p50_ms,
            "p95_ms": middle.p95_ms,
            "p95_goal": RESERVE_GOAL,
            "p99_ms": middle.p99_ms,
            "connections": connections,
            "workers": workers,
            "redis": redis,
            "cpu": middle.cpu,
            "cpu_us_per_hold": us_per_hold(middle),
            "steal_pct": max(told.use.steal_pct for told in ours),
            "foreign_pct": max(told.use.foreign_pct for told in ours),
            "disturbed": any(told.use.is_disturbed for told in ours),
        },
        as_json=as_json,
    )


async def one_pace(shown: report.Steps, *, workers: int) -> Told:
    """A sale over HTTP by so many web processes, without anything beside it."""
    async with grounds.opened(workers=workers) as ground:
        guests = await prepare(ground, PACE_HALL, shown)
        await _warm_up(ground, guests, PACE_CONNECTIONS)
        shown.done()
        shown.begin(f"{workers} web processes")
        told = await _one_run(ground, guests, PACE_CONNECTIONS, PACE_S)
        await ground.require_well()
        shown.done()
    return told


def us_per_hold(told: Told) -> dict[str, float]:
    """Microseconds of processor that a hold took, by what the processes are."""
    return {role: round(1e6 * used / 100 / told.per_s, 1) for role, used in told.cpu.items() if used}


async def steady(*, per_s: float, seconds: float, connections: int, hall: str, as_json: bool) -> None:
    """Asks at fixed times, and then three times the most that can be done: what still gets through, how soon no."""
    with report.steps(7) as shown:
        async with grounds.opened() as ground:
            guests = await prepare(ground, hall, shown)
            await _warm_up(ground, guests, 256)
            shown.done()
            shown.begin("open loop")
            even = await evenly(ground, guests, per_s=per_s, seconds=seconds, connections=connections)
            shown.done()
            shown.begin("peak")
            before = await _one_run(ground, guests, 256, seconds)
            shown.done()
            shown.begin("overload")
            offered = OVERLOAD * before.per_s
            sale = await opened_sale(ground)
            count = min(round(offered * seconds), _most_of(sale))
            lines = itertools.islice(asks_for(ground, sale, guests), count)
            over = await openloop.apart(ground.address, list(lines), per_s=offered, connections=4 * connections)
            ground.asked += over.sent
            shown.done()
            shown.begin("peak again")  # a machine that grows tired under load would make the overload look worse
            after = await _one_run(ground, guests, 256, seconds)
            shown.done()
            await ground.require_well()
    goodput, peak = over.granted / over.seconds, statistics.mean([before.per_s, after.per_s])
    report.show(
        {
            **even,
            "peak_per_s": round(peak),
            "peak_before_and_after": [round(before.per_s), round(after.per_s)],
            "overload_per_s": round(offered),
            "goodput_per_s": round(goodput),
            "goodput_share": round(goodput / peak, 3),
            "overload_statuses": over.statuses,
            "refusal_p50_ms": over.refused_p50_ms,
            "refusals_without_retry_after": over.without_retry_after,
            "disturbed": before.use.is_disturbed or after.use.is_disturbed,
        },
        as_json=as_json,
    )


async def evenly(
    ground: Ground, guests: list[str], *, per_s: float, seconds: float, connections: int
) -> dict[str, object]:
    """Asks at fixed times for a seat each; who is told to come again does. Nobody may be lost on the way."""
    sale = await opened_sale(ground)
    lines = list(itertools.islice(asks_for(ground, sale, guests), round(per_s * seconds)))
    if len(lines) < round(per_s * seconds):
        raise BenchRefused("the hall is too small for so many asks: take a larger one")
    told = await openloop.apart(ground.address, lines, per_s=per_s, connections=connections, tries=TRIES)
    ground.asked += told.sent
    held, lost = await ground.count_holds(sale), told.statuses.get("none", 0)
    if sum(told.statuses.values()) != told.sent or not told.granted <= held <= told.granted + lost:
        raise BenchRefused(f"{told.sent} asked, {told.statuses} were told, {held} holds are there")
    return {
        "offered_per_s": per_s,
        "connections": connections,
        **{name: value for name, value in asdict(told).items() if name != "without_retry_after"},
        "p95_goal": RESERVE_GOAL,
        "granted_per_s": round(told.granted / told.seconds),
        "granted_per_s_goal": WITH_RETRIES_GOAL,
        "answered_pct": round(100 * told.answered / told.sent, 3),
        "answered_pct_goal": ANSWERED_GOAL,
        "errors": told.errors,
        "holds": held,
    }


async def storm(*, people: int, rounds: int, as_json: bool) -> None:
    """Everybody wants one seat at the same moment, beside as many who only ask who they are."""
    ratios, lasts, idles = [], [], []
    with report.steps(3 + 2 * rounds) as shown:
        async with grounds.opened() as ground:
            guests = await prepare(ground, "theatre-350", shown, guests=people)
            sale = await opened_sale(ground)
            who = [f"GET /api/me {token}" for token in guests]
            await openloop.burst_apart(ground.address, who)
            shown.done()
            for number in range(rounds):
                shown.begin("no-ops")
                idle = await openloop.burst_apart(ground.address, who)
                shown.done()
                shown.begin("storm")
                path = f"/api/events/{sale.event_id}/seats/{sale.seat_ids[number]}/reserve"
                rush = await openloop.burst_apart(ground.address, [f"POST {path} {token}" for token in guests])
                shown.done()
                if rush.statuses != {"201": 1, "409": people - 1}:
                    raise BenchRefused(f"one should win and the others lose: {rush.statuses}")
                ratios.append(rush.max_ms / idle.max_ms)
                lasts.append(rush.max_ms)
                idles.append(idle.max_ms)
            await ground.require_well()
    report.show(
        {
            "people": people,
            "ratio": round(statistics.median(ratios), 2),
            "last_answer_ms": round(statistics.median(lasts), 1),
            "noop_last_answer_ms": round(statistics.median(idles), 1),
        },
        as_json=as_json,
    )


async def seatmap(*, seconds: float, hall: str, as_json: bool) -> None:
    """The whole map and occupancy, asked for over HTTP, beside PostgreSQL's own answer to the same question."""
    with report.steps(6) as shown:
        async with grounds.opened() as ground:
            guests = await prepare(ground, hall, shown)
            figures = await look_at_map(ground, guests, seconds=seconds, shown=shown)
            await ground.require_well()
    report.show(figures, as_json=as_json)


async def look_at_map(ground: Ground, guests: list[str], *, seconds: float, shown: report.Steps) -> dict[str, object]:
    """A map of which something is held, and how full it is, again and again."""
    sale = await opened_sale(ground)
    wanted = min(SOLD_BEFORE, len(sale.seat_ids) // 10)
    lines = list(itertools.islice(asks_for(ground, sale, guests), wanted))
    sold = await openloop.apart(ground.address, lines, per_s=SOLD_PER_S, connections=64, tries=TRIES)
    ground.asked += sold.sent
    shown.done()
    told: dict[str, Told] = {}
    for what in ("seatmap", "occupancy"):
        shown.begin(what)
        line = f"GET /api/events/{sale.event_id}/{what} {guests[0]}"
        told[what] = one = await closed.run(ground, [line], connections=32, seconds=seconds)
        if one.refused or one.broken:
            raise BenchRefused(f"{one.refused} of {one.requests} looks at the {what} were refused, {one.broken} broken")
        shown.done()
    shown.begin("PostgreSQL")
    load_s, count_s = await _cold(ground, sale, sold.granted)
    shown.done()
    whole, share = told["seatmap"], told["occupancy"]
    return {
        "event_id": str(sale.event_id),
        "seats": len(sale.seat_ids),
        "holds": sold.granted,
        "seatmap_per_s": round(whole.per_s),
        "seatmap_p99_ms": whole.p99_ms,
        "occupancy_per_s": round(share.per_s),
        "occupancy_p99_ms": share.p99_ms,
        "postgresql_map_ms": round(1_000 * load_s, 2),
        "postgresql_count_ms": round(1_000 * count_s, 2),
        "map_ratio": round(load_s * whole.per_s, 1),
        "count_ratio": round(count_s * share.per_s, 1),
        "disturbed": whole.use.is_disturbed or share.use.is_disturbed,
    }


async def mixed(*, seconds: float, connections: int, workers: int, hall: str, as_json: bool) -> None:
    """What a sale is: most look at the map, some hold, some ask for what they hold."""
    with report.steps(4) as shown:
        async with grounds.opened(workers=workers) as ground:
            guests = await prepare(ground, hall, shown)
            await _warm_up(ground, guests, connections)
            shown.done()
            shown.begin("mixed")
            figures = await sell_to_lookers(ground, guests, seconds=seconds, connections=connections)
            shown.done()
            await ground.require_well()
    report.show(figures | {"connections": connections, "workers": workers}, as_json=as_json)


async def sell_to_lookers(ground: Ground, guests: list[str], *, seconds: float, connections: int) -> dict[str, object]:
    """A look at occupancy follows every ask for a seat, the map every fourth, one's own holds every eighth."""
    sale = await opened_sale(ground)
    lines = []
    for number, ask in enumerate(itertools.islice(asks_for(ground, sale, guests), _most_of(sale))):
        token = ask.rsplit(" ", 1)[1]
        lines.append(ask)
        lines.append(f"GET /api/events/{sale.event_id}/occupancy {token}")
        lines += [f"GET /api/events/{sale.event_id}/seatmap {token}"] if number % 4 == 0 else []
        lines += [f"GET /api/events/{sale.event_id}/holds/mine {token}"] if number % 8 == 0 else []
    told = await closed.run(ground, lines, connections=connections, seconds=seconds)
    held = await ground.count_holds(sale)
    if told.refused or told.broken:
        raise BenchRefused(f"{told.refused} of {told.requests} asks were refused, {told.broken} broken")
    sent = sum(line.startswith("POST") for line in lines[: told.requests + connections])
    ground.asked += sent
    if not sent - connections <= held <= sent:  # some were on their way when wrk stopped listening
        raise BenchRefused(f"about {sent} asks for seats were sent, {held} holds are there")
    return {
        "requests_per_s": round(told.requests / told.seconds),
        "holds": held,
        "holds_per_s": round(held / told.seconds),
        "p50_ms": told.p50_ms,
        "p95_ms": told.p95_ms,
        "p99_ms": told.p99_ms,
        "cpu": told.cpu,
        "disturbed": told.use.is_disturbed,
    }


async def expiry(*, holds: int, rounds: int, as_json: bool) -> None:
    """Lapsed holds tidied away, beside one bare set-based statement that does the same."""
    ours: list[float] = []
    bares: list[float] = []
    with report.steps(3 + 2 * rounds) as shown:
        async with grounds.opened() as ground:
            await prepare(ground, "arena-20k", shown, guests=1)
            bare = await anchors.prepare(ground)
            ground.freeze("worker")
            shown.done()
            for number in range(2 * rounds):
                for is_ours in (number % 2 == 0, number % 2 == 1):
                    if is_ours:
                        shown.begin("reaper")
                        ours.append(await ground.reap(holds))
                    else:
                        shown.begin("anchor")
                        bares.append(await bare.expire(holds))
                shown.done()
            await ground.require_well()
    ratios = [mine / other for mine, other in zip(ours, bares, strict=True)]
    report.show(
        {
            "holds": holds,
            "ratio": round(statistics.median(ratios), 3),
            "reaped_per_s": round(statistics.median(ours)),
            "anchor_per_s": round(statistics.median(bares)),
        },
        as_json=as_json,
    )


async def prepare(ground: Ground, hall: str, shown: report.Steps, *, guests: int = GUESTS) -> list[str]:
    shown.begin(f"hall {hall}")
    await ground.make_hall(hall)
    shown.done()
    shown.begin(f"{guests} guests")
    tokens = await ground.invite(guests)
    shown.done()
    shown.begin("warm up")
    return tokens


async def _warm_up(ground: Ground, guests: list[str], connections: int) -> None:
    """Connections made, statements prepared, pages read: what a server has behind it after its first second."""
    await _one_sale(ground, await opened_sale(ground), guests, connections, 2)


async def opened_sale(ground: Ground) -> Sale:
    """An event on sale at which somebody has looked: nobody can ask for a seat before that."""
    sale = await ground.put_on_sale()
    told = await openloop.burst(ground.address, [f"GET /api/events/{sale.event_id}/seatmap nobody"])
    if told["statuses"] != {"200": 1}:
        raise BenchRefused(f"the map could not be looked at: {told['statuses']}")
    return sale


async def _one_run(ground: Ground, guests: list[str], connections: int, seconds: float) -> Told:
    return await _one_sale(ground, await opened_sale(ground), guests, connections, seconds)


async def _one_sale(ground: Ground, sale: Sale, guests: list[str], connections: int, seconds: float) -> Told:
    """Distinct seats in random order, until the time is up; the record is asked whether it was so."""
    lines = list(asks_for(ground, sale, guests))
    told = await closed.run(ground, lines, connections=connections, seconds=seconds)
    if told.requests >= len(lines):
        raise BenchRefused("the hall was sold out before the time was up: take a larger one")
    if told.refused or told.broken:
        raise BenchRefused(f"{told.refused} of {told.requests} asks for free seats were refused, {told.broken} broken")
    ground.asked += told.requests + connections
    held = await ground.count_holds(sale)
    if not told.granted <= held <= told.granted + connections:  # some were on their way when wrk stopped listening
        raise BenchRefused(f"{told.granted} holds were acknowledged, {held} are there")
    return told


def asks_for(ground: Ground, sale: Sale, guests: list[str]) -> Iterator[str]:
    """An ask for each seat. Guests come in groups; each of a group asks for a few seats, then the next group comes.

    Nobody may have more than ten in five minutes, and nobody asks for a second while the first is on its way.
    """
    for number, seat_id in enumerate(sale.seat_ids, ground.asked):
        group, place = divmod(number, GROUP * SEATS_EACH)
        token = guests[(group * GROUP + place % GROUP) % len(guests)]
        yield f"POST /api/events/{sale.event_id}/seats/{seat_id}/reserve {token}"


def _most_of(sale: Sale) -> int:
    """So many that free seats are still found by chance."""
    return round(SEATS_SHARE_MAX * len(sale.seat_ids))


async def _cold(ground: Ground, sale: Sale, held: int) -> tuple[float, float]:
    """How long PostgreSQL takes for a map and for a count, the best of some."""
    projection = Projection(ground.link)
    availability = Availability(ground.db, projection)
    loads, counts = [], []
    for _ in range(5):
        began = time.perf_counter()
        found = await availability.load(ground.place.id, sale.event_id)
        loads.append(time.perf_counter() - began)
        began = time.perf_counter()
        counted = await availability.occupancy(ground.place.id, sale.event_id)  # nobody tells it what is new
        counts.append(time.perf_counter() - began)
        await projection.settle()
        if not found.counts().held == counted.held == held:
            raise BenchRefused(f"{held} holds were given, the map has {found.counts().held}, counted {counted.held}")
    return min(loads), min(counts)
