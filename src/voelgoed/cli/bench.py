"""`voelgoed bench`: what things cost on this machine."""

from pathlib import Path
from typing import Annotated

import typer

from voelgoed.bench import fanout as watching, growth as growing, halls, selling, tiers as layers
from voelgoed.cli.arguments import AsJson, settings_for
from voelgoed.wiring import run_to_end

bench = typer.Typer(
    help="Measure on this machine, with servers of its own. Limits per network are off.", no_args_is_help=True
)

Seconds = Annotated[float, typer.Option(min=1, max=600, help="How long each run lasts.")]
Connections = Annotated[int, typer.Option(min=1, max=10_000, help="How many connections ask.")]
Processes = Annotated[int, typer.Option("--workers", min=1, max=64, help="Web processes.")]
Hall = Annotated[str, typer.Option(help="Which preset of a hall.")]
Rounds = Annotated[int, typer.Option(min=1, max=50, help="How often; the median counts.")]


@bench.command("layout")
def layout(preset: Hall = "stadium-100k", rounds: Rounds = 5, *, as_json: AsJson = False) -> None:
    """What a hall costs: made, checked, stored beside a bare COPY of the same rows, loaded cold, warm and hot."""
    settings_for("bench", log_level="warning")
    run_to_end(halls.layout(preset=preset, rounds=rounds, as_json=as_json))


@bench.command("reserve")
def reserve(
    seconds: Seconds = 5,
    pairs: Annotated[int, typer.Option(min=1, max=20, help="How often ours, bare, bare, ours.")] = 3,
    connections: Connections = 256,
    workers: Processes = 1,
    hall: Hall = "stadium-100k",
    *,
    without_redis: Annotated[bool, typer.Option(help="Let Redis stand still meanwhile.")] = False,
    as_json: AsJson = False,
) -> None:
    """Holds a second over HTTP, each of another seat, beside PostgreSQL's own limit of one hold a call."""
    settings_for("bench", log_level="warning")
    run_to_end(
        selling.reserve(
            seconds=seconds,
            pairs=pairs,
            connections=connections,
            workers=workers,
            hall=hall,
            redis=not without_redis,
            as_json=as_json,
        )
    )


@bench.command("steady")
def steady(
    per_s: Annotated[float, typer.Option(min=1, max=100_000, help="Asks a second.")] = 1_000,
    seconds: Seconds = 10,
    connections: Connections = 1_000,
    hall: Hall = "stadium-100k",
    *,
    as_json: AsJson = False,
) -> None:
    """Asks at fixed times, and then three times as many as can be done."""
    settings_for("bench", log_level="warning")
    run_to_end(selling.steady(per_s=per_s, seconds=seconds, connections=connections, hall=hall, as_json=as_json))


@bench.command("storm")
def storm(
    people: Annotated[int, typer.Option(min=2, max=10_000, help="How many want the seat.")] = 1_000,
    rounds: Rounds = 5,
    *,
    as_json: AsJson = False,
) -> None:
    """Everybody wants one seat at the same moment, beside as many who only ask who they are."""
    settings_for("bench", log_level="warning")
    run_to_end(selling.storm(people=people, rounds=rounds, as_json=as_json))


@bench.command("seatmap")
def seatmap(seconds: Seconds = 5, hall: Hall = "stadium-100k", *, as_json: AsJson = False) -> None:
    """The whole map and occupancy from memory, beside PostgreSQL's answer to the same question."""
    settings_for("bench", log_level="warning")
    run_to_end(selling.seatmap(seconds=seconds, hall=hall, as_json=as_json))


@bench.command("mixed")
def mixed(
    seconds: Seconds = 10,
    connections: Connections = 256,
    workers: Processes = 1,
    hall: Hall = "stadium-60k",
    *,
    as_json: AsJson = False,
) -> None:
    """A sale as it is: many look, some hold, some ask for what they hold."""
    settings_for("bench", log_level="warning")
    run_to_end(selling.mixed(seconds=seconds, connections=connections, workers=workers, hall=hall, as_json=as_json))


@bench.command("expiry")
def expiry(
    holds: Annotated[int, typer.Option(min=100, max=20_000, help="How many have lapsed.")] = 20_000,
    rounds: Rounds = 3,
    *,
    as_json: AsJson = False,
) -> None:
    """Lapsed holds tidied away a second, beside a bare statement that does the same."""
    settings_for("bench", log_level="warning")
    run_to_end(selling.expiry(holds=holds, rounds=rounds, as_json=as_json))


@bench.command("fanout")
def fanout(
    viewers: Annotated[int, typer.Option(min=1, max=20_000, help="How many look.")] = 1_000,
    crowd: Annotated[int, typer.Option(min=1, max=20_000, help="How many look afterwards.")] = 5_000,
    per_s: Annotated[float, typer.Option(min=1, max=10_000, help="Holds a second.")] = 200,
    seconds: Seconds = 10,
    hall: Hall = "arena-20k",
    *,
    as_json: AsJson = False,
) -> None:
    """How soon a hold is seen by everybody who looks at the live map."""
    settings_for("bench", log_level="warning")
    run_to_end(watching.fanout(viewers=viewers, crowd=crowd, per_s=per_s, seconds=seconds, hall=hall, as_json=as_json))


@bench.command("tiers")
def tiers(
    hall: Hall = "stadium-100k",
    rounds: Rounds = 5,
    hot_holds: Annotated[int, typer.Option(min=10, max=90_000, help="Holds in a process's memory.")] = 10_000,
    redis_holds: Annotated[int, typer.Option(min=10, max=10_000_000, help="Holds in Redis.")] = 1_000_000,
    *,
    as_json: AsJson = False,
) -> None:
    """What memory, Redis and PostgreSQL cost each, and a hold through all three; beside what was hoped for."""
    settings_for("bench", log_level="warning")
    run_to_end(layers.tiers(hall=hall, rounds=rounds, hot_holds=hot_holds, redis_holds=redis_holds, as_json=as_json))


@bench.command("growth")
def growth(
    holds: Annotated[int, typer.Option(min=100, max=1_000, help="Holds in a round.")] = 800,
    rounds: Rounds = 5,
    figure: Annotated[Path | None, typer.Option(help="Draw it into this file, as SVG.", dir_okay=False)] = None,
    *,
    without_processes: Annotated[bool, typer.Option(help="Leave out what needs several web processes.")] = False,
    as_json: AsJson = False,
) -> None:
    """What a hold costs as seats, holds, events and web processes become more."""
    settings_for("bench", log_level="warning")
    plan = growing.Plan(holds=holds, rounds=rounds)
    run_to_end(growing.growth(plan=plan, with_processes=not without_processes, figure=figure, as_json=as_json))
