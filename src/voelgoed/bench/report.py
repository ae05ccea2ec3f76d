"""How figures are shown: a bar while it takes, a table for people, one line of JSON for programs."""

import contextlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table


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
