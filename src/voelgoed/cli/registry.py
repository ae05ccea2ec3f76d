"""`voelgoed verify` and `voelgoed registry`: whether what must hold does, and what is held."""

import json
from dataclasses import asdict

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from voelgoed.cli.accounts import opened
from voelgoed.cli.layouts import in_studio
from voelgoed.config import Settings
from voelgoed.embedded import Embedded
from voelgoed.events import operator as events
from voelgoed.events.model import OPERATOR
from voelgoed.holds import auditing, reconcile, registry
from voelgoed.holds.availability import Availability
from voelgoed.holds.projection import Projection
from voelgoed.redis import RedisLink


async def verify(settings: Settings, *, as_json: bool) -> bool:
    """Check database invariants, print what was found, and return whether all of them hold."""
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


async def compare(settings: Settings, *, organization: str, slug: str, is_mended: bool, as_json: bool) -> bool:
    """Compare an event in Redis with PostgreSQL, and have it made anew where that is asked for; whether they agree."""
    async with in_studio(settings, organization) as (studio, place), RedisLink(_redis_url(settings)) as link:
        event = (await events.find_event(studio.db, place, slug)).event
        projection = Projection(link)
        availability = Availability(studio.db, projection)
        key = event.organization_id, event.id
        if is_mended:
            found = await reconcile.reconcile(studio.db, availability, projection, *key, by=OPERATOR)
        else:
            found = await reconcile.look(studio.db, availability, projection, *key)
    if as_json:
        print(json.dumps({name: _plain(value) for name, value in asdict(found).items()} | {"status": found.status}))
        return found.consistent
    said = Console(highlight=False, soft_wrap=True)
    redis = "away" if found.redis_count is None else str(found.redis_count)
    said.print(Text(f"PostgreSQL {found.db_count} holds, Redis {redis}: {found.message}"))
    for title, ids in (
        ("missing in Redis", found.missing),
        ("left over in Redis", found.extra),
        ("seats that differ", found.seats_differ),
        ("zones that differ", found.zones_differ),
    ):
        for one in ids:
            said.print(Text(f"  {title}: {one}"))
    if is_mended:
        said.print("The worker makes them anew.")
    return found.consistent


def _redis_url(settings: Settings) -> str:
    """The address that was set, else the embedded server's, which `serve` must be running."""
    return settings.redis_url.get_secret_value() if settings.redis_url else Embedded(settings.data_dir).valkey_url


def _plain(value: object) -> object:
    if isinstance(value, list | tuple):
        return [str(one) for one in value]
    return value if isinstance(value, bool | int | None) else str(value)


async def reap(settings: Settings) -> None:
    """Tidy lapsed holds away now."""
    async with opened(settings) as db:
        done = await registry.reap(db, by=OPERATOR)
    Console(highlight=False).print(f"{done} holds tidied away")
