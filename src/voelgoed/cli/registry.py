"""`voelgoed verify` and `voelgoed registry`: whether what must hold does, and what is held."""

import json
from dataclasses import asdict

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from voelgoed.cli.accounts import opened
from voelgoed.config import Settings
from voelgoed.events.model import OPERATOR
from voelgoed.holds import auditing, registry


async def verify(settings: Settings, *, as_json: bool) -> bool:
    """Ask everything that must never be so; whether all is well."""
    said = Console(highlight=False, soft_wrap=True)
    counts: dict[str, int] = {}
    async with opened(settings) as db:
        found = await auditing.verify(db, on_check=counts.__setitem__)
    if as_json:
        print(json.dumps({"is_well": not found, "checks": counts, "findings": [asdict(one) for one in found]}))
        return not found
    for name, count in counts.items():
        mark = Text("well  ", style="green") if not count else Text(f"{count:4}  ", style="bold red")
        said.print(mark + Text(name.replace("_", " ")))
    for one in found:
        said.print(Text(f"{one.check.replace('_', ' ')}: {one.id}: {one.why}"))
    return not found


async def show_status(settings: Settings, *, as_json: bool) -> None:
    """What is held, by event: active, lapsed and not tidied away, the next to lapse."""
    async with opened(settings) as db:
        found = await registry.status(db)
    if as_json:
        print(json.dumps([{name: str(value) for name, value in asdict(one).items()} for one in found]))
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for title in ("organization", "event", "status"):
        table.add_column(title)
    for title in ("active", "lapsed", "next to lapse"):
        table.add_column(title, justify="right")
    for one in found:
        until = f"{one.next_lapse_at:%H:%M:%S}" if one.next_lapse_at else ""
        table.add_row(Text(one.organization), Text(one.event), one.status, str(one.active), str(one.lapsed), until)
    Console(highlight=False).print(table)


async def reap(settings: Settings) -> None:
    """Tidy lapsed holds away now."""
    async with opened(settings) as db:
        done = await registry.reap(db, by=OPERATOR)
    Console(highlight=False).print(f"{done} holds tidied away")
