"""`voelgoed policy`: what an organization lets its seating be, and what it may not change, at the terminal."""

import json
from collections.abc import Iterable, Mapping

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from voelgoed.cli.accounts import opened
from voelgoed.config import Settings
from voelgoed.errors import StartRefused
from voelgoed.events.operator import organization_at
from voelgoed.seating import operator
from voelgoed.seating.policies import StoredPolicy
from voelgoed.seating.policy import FIELDS, FieldKind, values_of
from voelgoed.seating.refusals import PolicyInvalid

FLAGS: Mapping[str, bool] = {"true": True, "yes": True, "false": False, "no": False}
NO_LIMIT = "none"


def read_values(told: Iterable[str]) -> dict[str, object]:
    """Fields as people write them: `allow_vip_zones=true`, `max_holds_per_ip=none`, `allowed_access_modes=public`."""
    values: dict[str, object] = {}
    for one in told:
        name, is_given, text = one.partition("=")
        if not is_given:
            raise StartRefused(f"{one!r} says nothing", hint="write field=value, such as allow_vip_zones=true")
        values[name] = _read(name, text)
    return values


async def show(settings: Settings, *, organization: str, as_json: bool) -> None:
    """An organization's seating policy."""
    async with opened(settings) as db:
        found = await operator.get_policy(db, await organization_at(db, organization))
    _show(found, as_json=as_json)


async def change(
    settings: Settings,
    *,
    organization: str,
    values: Mapping[str, object],
    lock: Iterable[str],
    unlock: Iterable[str],
    reason: str,
) -> None:
    """Set fields, and say which of them the organization may not change."""
    async with opened(settings) as db:
        place = await organization_at(db, organization)
        try:
            changed = await operator.change_policy(db, place, values, lock=lock, unlock=unlock, reason=reason)
        except PolicyInvalid as invalid:
            raise StartRefused(invalid.message, hint=_wrong(invalid.facts["fields"])) from None
    _show(changed, as_json=False)


def _read(name: str, text: str) -> object:
    """A value as its field takes it; what it does not take is left as it was written, and refused as such."""
    field = FIELDS.get(name)
    if field is None:
        return text
    match field.kind:
        case FieldKind.FLAG:
            return FLAGS.get(text, text)
        case FieldKind.WHOLE if text == NO_LIMIT:
            return None
        case FieldKind.WHOLE:
            return int(text) if text.isascii() and text.isdigit() else text
        case FieldKind.WORDS:
            return text.split(",") if text else []


def _show(found: StoredPolicy, *, as_json: bool) -> None:
    if as_json:
        since = found.updated_at.isoformat() if found.updated_at else None
        print(json.dumps({"version": found.version, "updated_at": since, "values": values_of(found.policy)}))
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("field", no_wrap=True)  # it is what one types
    for title in ("value", "default", "locked"):
        table.add_column(title, overflow="fold")
    for name, value in values_of(found.policy).items():
        is_locked = name in found.policy.locked_fields
        table.add_row(name, Text(_said(value)), Text(_said(FIELDS[name].default)), "locked" if is_locked else "")
    console = Console(highlight=False)
    console.print(table)
    since = f", {found.updated_at:%Y-%m-%d %H:%M}" if found.updated_at else ": the defaults"
    console.print(f"version {found.version}{since}")


def _said(value: object) -> str:
    """A value as it would be written on the command line."""
    match value:
        case None:
            return NO_LIMIT
        case bool():
            return str(value).lower()
        case tuple():
            return ",".join(value)
        case _:
            return str(value)


def _wrong(fields: object) -> str:
    assert isinstance(fields, dict)
    return "\n  ".join(f"{name} {why}" for name, why in fields.items())
