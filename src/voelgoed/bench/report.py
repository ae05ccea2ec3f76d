"""How figures are shown: a bar while it takes, a table for people, one line of JSON for programs."""

import contextlib
import json
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """How long something took, with what was hoped for beside it, and the row of docs/requirements.csv that says so."""

    p50_ms: float
    p95_ms: float
    p99_ms: float
    goal: str
    row: str

    @classmethod
    def of(cls, rounds: Sequence[Sequence[float]], *, goal: str, row: str) -> "Measured":
        """The median of what the rounds had, each by itself: one bad moment of the machine spoils one of them."""
        p50, p95, p99 = (
            round(statistics.median(percentile_ms(sorted(some), share) for some in rounds), 4)
            for share in (0.5, 0.95, 0.99)
        )
        return cls(p50_ms=p50, p95_ms=p95, p99_ms=p99, goal=goal, row=row)


@dataclass(slots=True)
class Steps:
    """How far a benchmark is."""

    shown: Progress
    task: TaskID

    def begin(self, what: str) -> None:
        """Say what comes now; what came before is done."""
        self.shown.update(self.task, description=what)

    def done(self) -> None:
        self.shown.advance(self.task)


@contextlib.contextmanager
def steps(count: int) -> Iterator[Steps]:
    """A bar of so many steps, where somebody looks."""
    columns = (TextColumn("{task.description:30}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        yield Steps(shown, shown.add_task("starting", total=count))


def percentile_ms(sorted_s: Sequence[float], share: float) -> float:
    """What so large a share of seconds stays below, in milliseconds."""
    return 1_000 * sorted_s[min(len(sorted_s) - 1, int(len(sorted_s) * share))]


def show_measured(measured: Mapping[str, Measured], figures: Mapping[str, object], *, as_json: bool) -> None:
    """What was measured beside its goals, and then the other figures."""
    if as_json:
        show({**{name: asdict(one) for name, one in measured.items()}, **figures}, as_json=True)
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("milliseconds")
    for name in ("p50", "p95", "p99"):
        table.add_column(name, justify="right")
    table.add_column("goal")
    for name, one in measured.items():
        times = (f"{value:,.3f}" for value in (one.p50_ms, one.p95_ms, one.p99_ms))
        table.add_row(name.replace("_", " "), *times, f"{one.goal} ({one.row})")
    Console(highlight=False).print(table)
    show(figures, as_json=False)


def show(figures: Mapping[str, object], *, as_json: bool) -> None:
    """The figures for a person or for a program."""
    if as_json:
        print(json.dumps(figures))
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("figure")
    table.add_column("value", justify="right")
    for name, value in figures.items():
        table.add_row(name.replace("_", " "), _plain(value))
    Console(highlight=False).print(table)


def _plain(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_plain(inner)}" for name, inner in value.items())
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    return f"{value:,}"
