"""`voelgoed db`: migrate the database, and say how it stands."""

import json

import asyncpg
from rich.console import Console

from voelgoed import schema
from voelgoed.config import Settings
from voelgoed.embedded import Embedded
from voelgoed.errors import StartRefused
from voelgoed.schema import roles_sql as roles_sql  # noqa: PLC0414 - offered to the command as it is

EMBEDDED_DOWN = "the embedded PostgreSQL is not running; `voelgoed serve` starts and migrates it by itself"


async def migrate(settings: Settings) -> None:
    """Apply what is pending, a line for each step."""
    console = Console(highlight=False)
    standing = await schema.migrate(
        _url(settings, owner=True), on_step=lambda label, seconds: console.print(f"{label}  {seconds:.2f} s")
    )
    console.print(f"The schema is {standing.summary}.")


async def show_status(settings: Settings, *, as_json: bool) -> bool:
    """Print how the database stands; whether it is current."""
    try:
        conn = await asyncpg.connect(_url(settings, owner=False), timeout=5)
    except (OSError, asyncpg.PostgresError, TimeoutError) as failed:
        hint = "" if settings.database_url else EMBEDDED_DOWN
        raise StartRefused(f"cannot connect to PostgreSQL: {failed}", hint=hint) from None
    try:
        standing = await schema.status(conn)
    finally:
        await conn.close(timeout=2)
    if as_json:
        print(
            json.dumps(
                {name: getattr(standing, name) for name in standing.__slots__} | {"current": standing.is_current}
            )
        )
        return standing.is_current
    console = Console(highlight=False)
    for names, word in (
        (standing.applied, "applied"),
        (standing.pending, "[yellow]pending[/]"),
        (standing.changed, "[red]changed after it ran[/]"),
        (standing.unknown, "[yellow]newer than this version[/]"),
        (standing.stale_functions, "[yellow]functions to apply[/]"),
    ):
        for name in names:
            console.print(f"{name}  {word}")
    console.print(f"The schema is {standing.summary}.")
    return standing.is_current


def _url(settings: Settings, *, owner: bool) -> str:
    """The URL that was set, else the socket of the embedded server, which `serve` must be running."""
    chosen = settings.owner_database_url if owner else settings.database_url
    if chosen:
        return chosen.get_secret_value()
    if settings.database_url:
        raise StartRefused(
            "VOELGOED_OWNER_DATABASE_URL is not set", hint=f"migrations log in as {schema.OWNER}, not as {schema.APP}"
        )
    return Embedded(settings.data_dir).postgres_url(schema.OWNER if owner else schema.APP)
