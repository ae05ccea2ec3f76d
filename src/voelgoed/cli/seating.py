"""`voelgoed seating`: what an event offers, and how it is told to, at the terminal."""

import json
from collections.abc import Sequence
from pathlib import Path
from uuid import UUID

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from voelgoed.cli.layouts import in_studio
from voelgoed.config import Settings
from voelgoed.errors import StartRefused
from voelgoed.events import operator as events
from voelgoed.holds.inventory import Wanted
from voelgoed.money import Money
from voelgoed.seating import operator as layouts
from voelgoed.seating.model import ListedLayout, Pin
from voelgoed.ticketing import operator
from voelgoed.ticketing.offering import Seating

TABLE_CHARS = 200
"""Ten columns do not fit a narrow terminal: its lines may break there, but no word of them is cut off."""


async def show_seating(settings: Settings, *, organization: str, slug: str, as_json: bool) -> None:
    """What an event offers, zone by zone."""
    async with in_studio(settings, organization) as (studio, place):
        event = (await events.find_event(studio.db, place, slug)).event
        found = await operator.see_seating(studio, place, event.id)
    _show(found, as_json=as_json)


async def set_seating(
    settings: Settings,
    *,
    organization: str,
    slug: str,
    layout: str = "",
    version: int | None = None,
    path: Path | None = None,
    is_bare: bool = False,
) -> None:
    """Give an event a layout, or what it says differently from a file; what is not given stays."""
    if version and not layout:
        raise StartRefused("a version is one of a layout: name that too")
    async with in_studio(settings, organization) as (studio, place):
        event = (await events.find_event(studio.db, place, slug)).event
        before = (await operator.see_seating(studio, place, event.id)).plan
        pin = None if is_bare else before.pin
        if layout:
            pin = _chosen(await layouts.list_layouts(studio, place), event.venue_id, layout, version)
        overrides = _read(path) if path else before.row.overrides if before.row and pin == before.pin else {}
        saved = await operator.save_seating(
            studio, place, event.id, Wanted(pin=pin, overrides=overrides), version=before.row_version
        )
    _show(saved, as_json=False)


def _chosen(found: Sequence[ListedLayout], venue_id: UUID, wanted: str, version: int | None) -> Pin:
    """A layout by its name or id, and a version of it."""
    here = [one for one in found if one.venue_id == venue_id]
    named = [one for one in here if wanted in (one.name, str(one.id))]
    if len(named) != 1:
        names = ", ".join(f"{one.name} ({one.id})" for one in here) or "none"
        raise StartRefused(f"{len(named)} layouts of the venue are called {wanted!r}", hint=f"there are: {names}")
    number = version or named[0].active_version
    if number is None:
        hint = f"voelgoed layout activate ORG {named[0].id} {named[0].latest_version}"
        raise StartRefused(f"no version of {wanted!r} may be chosen by events yet", hint=hint)
    return Pin(named[0].id, number)


def _read(path: Path) -> object:
    try:
        return json.loads(path.read_bytes())
    except OSError as failed:
        raise StartRefused(f"cannot read {path}: {failed.strerror}") from None
    except (ValueError, RecursionError) as wrong:
        raise StartRefused(f"{path} is no JSON: {wrong}") from None


def _show(found: Seating, *, as_json: bool) -> None:
    offered = found.offered
    if as_json:
        print(json.dumps(_facts(found)))
        return
    said = Console(highlight=False, soft_wrap=True)
    pin = found.plan.pin
    said.print(Text(f"layout {pin.layout_id}, version {pin.version}" if pin else "no layout: general admission"))
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for title in ("zone", "name", "sold as", "access"):
        table.add_column(title)
    for title in ("capacity", "available", "held", "sold", "blocked", "from (minor units)"):
        table.add_column(title, justify="right")
    for zone in offered.zones:
        costs = offered.prices.zones.get(zone.view.code)
        table.add_row(
            Text(zone.view.code),
            Text(zone.view.name),
            zone.view.zone_type if zone.view.is_enabled else "switched off",
            zone.view.access_mode,
            *(f"{getattr(zone.counts, name):,}" for name in ("capacity", "available", "held", "sold", "blocked")),
            _money(costs.from_price if costs else None),
        )
    Console(highlight=False, width=TABLE_CHARS).print(table)
    totals = found.view.totals
    said.print(
        f"{totals.total:,} places: {totals.reserved:,} reserved, {totals.ga_seated:,} seated without number, "
        f"{totals.standing:,} standing; {totals.blocked:,} blocked"
    )
    for fault in found.faults:
        said.print(Text(f"{fault.path}: {fault.message} {fault.hint} [{fault.code}]"))


def _facts(found: Seating) -> dict[str, object]:
    offered, pin = found.offered, found.plan.pin
    return {
        "event_id": str(offered.event.id),
        "layout_id": str(pin.layout_id) if pin else None,
        "layout_version": pin.version if pin else None,
        "version": found.seating_version,
        "inventory_epoch": offered.event.inventory_epoch,
        "is_materialised": found.is_materialised,
        "overrides": found.plan.offer.hall.written(found.plan.offer.overlay),
        "zones": [
            {
                "zone_id": str(zone.zone_id),
                "code": zone.view.code,
                "zone_type": zone.view.zone_type,
                "is_enabled": zone.view.is_enabled,
                **{name: getattr(zone.counts, name) for name in ("capacity", "available", "held", "sold", "blocked")},
            }
            for zone in offered.zones
        ],
        "faults": [{"path": fault.path, "code": fault.code, "message": fault.message} for fault in found.faults],
    }


def _money(price: Money | None) -> str:
    return "" if price is None else f"{price.currency} {price.amount_minor:,}"
