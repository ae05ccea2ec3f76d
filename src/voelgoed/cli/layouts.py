"""`voelgoed layout`: halls from a file or from the generator, at the terminal."""

import json
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Final
from uuid import UUID

from pydantic import TypeAdapter, ValidationError
from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from voelgoed.accounts.model import Organization
from voelgoed.cache import Cache
from voelgoed.cli.accounts import opened
from voelgoed.config import Settings
from voelgoed.db import Database
from voelgoed.errors import StartRefused
from voelgoed.events import operator as events
from voelgoed.redis import RedisLink
from voelgoed.seating import operator
from voelgoed.seating.diff import diff
from voelgoed.seating.faults import LayoutInvalid, LayoutTooLarge
from voelgoed.seating.generate import generate
from voelgoed.seating.model import Layout, LayoutId, Version, VersionStatus
from voelgoed.seating.presets import PRESETS, preset
from voelgoed.seating.spec import Spec
from voelgoed.seating.studio import Studio

NO_REDIS = "redis://127.0.0.1:1"
"""Nobody is there, and nobody is asked: a command needs no cache."""
SPEC: Final = TypeAdapter(Spec)
FAULTS_SHOWN_MAX = 20
DIFFERENCES = ("added", "removed", "moved", "relabelled", "rezoned", "recategorised")


@asynccontextmanager
async def without_redis(db: Database) -> AsyncIterator[Studio]:
    """A studio that reads nothing from a cache and leaves nothing there."""
    async with RedisLink(NO_REDIS) as link:
        yield Studio(db, Cache(link=link))


@asynccontextmanager
async def in_studio(settings: Settings, organization: str) -> AsyncIterator[tuple[Studio, Organization]]:
    """The database of the installation, and whose layouts it is about."""
    async with opened(settings) as db, without_redis(db) as studio:
        yield studio, await events.organization_at(db, organization)


@contextmanager
def progress(what: str) -> Iterator[Callable[[int, int], None]]:
    """A bar for people; nothing where nobody looks."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task(what, total=None)
        yield lambda done, total: shown.update(task, completed=done, total=total)


def generated(name: str) -> Layout:
    """A preset, made."""
    if name not in PRESETS:
        raise StartRefused(f"there is no preset {name!r}", hint=f"there are: {', '.join(PRESETS)}")
    with progress("generating") as on_progress:
        return generate(preset(name), on_progress)


def generated_from(path: Path) -> Layout:
    """A spec in a file, made: rows and seats, curve, aisles, numbering, tables, areas."""
    try:
        spec = SPEC.validate_json(path.read_bytes())
        with progress("generating") as on_progress:
            return generate(spec, on_progress)
    except ValidationError as wrong:
        faults = [f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in wrong.errors()[:FAULTS_SHOWN_MAX]]
        raise StartRefused(f"{path} is no spec", hint="\n  ".join(faults)) from None
    except LayoutInvalid as invalid:
        raise _refused(path, invalid) from None
    except OSError as failed:
        raise StartRefused(f"cannot read {path}: {failed.strerror}") from None


def read(path: Path, *, is_pretix: bool) -> Layout:
    """A file, read; all its faults are printed before it is refused."""
    try:
        return operator.read_file(path, is_pretix=is_pretix)
    except LayoutInvalid as invalid:
        raise _refused(path, invalid) from None
    except LayoutTooLarge as large:
        raise StartRefused(large.message) from None
    except OSError as failed:
        raise StartRefused(f"cannot read {path}: {failed.strerror}") from None


async def add(
    settings: Settings,
    *,
    organization: str,
    layout: Layout,
    venue: str = "",
    layout_id: UUID | None = None,
    is_activated: bool = False,
) -> None:
    """Store a layout at a venue, or as the next version of one that is there; for events at once, or not yet."""
    async with in_studio(settings, organization) as (studio, place):
        try:
            with progress("storing") as on_progress:
                if layout_id is not None:
                    made = await operator.add_version(
                        studio, place, LayoutId(layout_id), layout, on_progress=on_progress
                    )
                else:
                    at = await events.find_venue(studio.db, place, venue)
                    made = await operator.add_layout(studio, place, at.id, layout, on_progress=on_progress)
        except LayoutInvalid as invalid:
            raise _refused(layout.name, invalid) from None
        if is_activated:
            made = await operator.move(studio, place, made.layout_id, made.version, VersionStatus.ACTIVE, reason=None)
    _show_versions([made])


async def list_layouts(settings: Settings, *, organization: str, as_json: bool) -> None:
    """An organization's layouts."""
    async with in_studio(settings, organization) as (studio, place):
        found = await operator.list_layouts(studio, place)
    if as_json:
        told = [
            {
                "id": str(one.id),
                "venue_id": str(one.venue_id),
                "name": one.name,
                "latest_version": one.latest_version,
                "active_version": one.active_version,
            }
            for one in found
        ]
        print(json.dumps(told))
        return
    table = _table("layout", "name", "latest", "active")
    for one in found:
        table.add_row(str(one.id), Text(one.name), f"v{one.latest_version}", f"v{one.active_version or '-'}")
    Console(highlight=False).print(table)


async def show_versions(settings: Settings, *, organization: str, layout_id: UUID) -> None:
    """The versions of a layout, latest first."""
    async with in_studio(settings, organization) as (studio, place):
        found = await operator.list_versions(studio, place, LayoutId(layout_id))
    _show_versions(found)


async def move(
    settings: Settings, *, organization: str, layout_id: UUID, version: int, to: VersionStatus, reason: str
) -> None:
    """Let a version be chosen, or no longer."""
    async with in_studio(settings, organization) as (studio, place):
        moved = await operator.move(studio, place, LayoutId(layout_id), version, to, reason=reason or None)
    _show_versions([moved])


async def export(
    settings: Settings, *, organization: str, layout_id: UUID, version: int, is_csv: bool, to: Path | None
) -> None:
    """Write a version to a file, or to standard output."""
    async with in_studio(settings, organization) as (studio, place):
        data = await operator.export(studio, place, LayoutId(layout_id), version, is_csv=is_csv)
    write(data, to)


async def compare(settings: Settings, *, organization: str, layout_id: UUID, before: int, after: int) -> None:
    """Say what is different between two versions."""
    async with in_studio(settings, organization) as (studio, place):
        old, new = [await operator.load(studio, place, LayoutId(layout_id), number) for number in (before, after)]
    found = diff(old, new)
    table = _table("what", "seats", "such as")
    for name in DIFFERENCES:
        seats = getattr(found, name)
        codes = [one.seat.code if hasattr(one, "seat") else one.seat_code for one in seats[:5]]
        table.add_row(name, f"{len(seats):,}", Text(", ".join(codes)))
    for name in ("zones_added", "zones_removed"):
        table.add_row(name.replace("_", " "), str(len(getattr(found, name))), "")
    table.add_row("zones changed", str(len(found.zones_changed)), "")
    Console(highlight=False).print(table)


def write(data: bytes, to: Path | None) -> None:
    """Write bytes where they are wanted."""
    if to is None:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
        return
    try:
        to.write_bytes(data)
    except OSError as failed:
        raise StartRefused(f"cannot write {to}: {failed.strerror}") from None


def _refused(what: object, invalid: LayoutInvalid) -> StartRefused:
    """Every fault on a line of its own; then the whole."""
    said = Console(stderr=True, highlight=False, soft_wrap=True)
    for fault in invalid.faults:
        said.print(Text(f"{fault.path}: {fault.message} {fault.hint} [{fault.code}]"))
    return StartRefused(f"{what} has {invalid.count} errors: nothing was stored")


def _show_versions(found: list[Version]) -> None:
    table = _table("layout", "version", "status", "name", "seats", "capacity", "made")
    for one in found:
        table.add_row(
            str(one.layout_id),
            f"v{one.version}",
            one.status,
            Text(one.name),
            f"{one.seat_count:,}",
            f"{one.total_capacity:,}",
            f"{one.created_at:%Y-%m-%d %H:%M}",
        )
    Console(highlight=False).print(table)


def _table(*titles: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for title in titles:
        table.add_column(title)
    return table
