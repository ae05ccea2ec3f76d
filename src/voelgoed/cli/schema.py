"""`voelgoed db`: migrate the database, and say how it stands."""

import contextlib
import json
from collections.abc import Iterator

import asyncpg
from rich.console import Console
from rich.text import Text

from voelgoed import schema
from voelgoed.config import Settings
from voelgoed.db import connect
from voelgoed.embedded import Embedded
from voelgoed.errors import StartRefused
from voelgoed.schema import roles_sql as roles_sql  # noqa: PLC0414 - offered to the command as it is

EMBEDDED_DOWN = "the embedded PostgreSQL is not running; `voelgoed serve` starts and migrates it by itself"


async def migrate(settings: Settings) -> None:
    """Apply what is pending and print a line for each step. A newer database is left as it is."""
    console = Console(highlight=False)
    with _plainly(settings):
        standing = await schema.migrate(
            database_url(settings, owner=True),
            on_step=lambda label, seconds: console.print(Text(f"{label}  {seconds:.2f} s")),
        )
    console.print(f"Schema: {standing.summary}.", markup=False, soft_wrap=True)


async def show_status(settings: Settings, *, as_json: bool) -> bool:
    """Print how the schema compares with this version; return whether this version can run on it."""
    with _plainly(settings):
        conn = await connect(database_url(settings, owner=False), timeout_s=5)
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
    for names, word, style in (
        (standing.applied, "applied", ""),
        (standing.pending, "pending", "yellow"),
        (standing.changed, "changed after being applied", "red"),
        (standing.unknown, "newer than this version", "yellow"),
        (standing.stale_functions, "functions to apply", "yellow"),
    ):
        for name in names:
            console.print(Text.assemble(f"{name}  ", (word, style)))
    console.print(f"Schema: {standing.summary}.", markup=False, soft_wrap=True)
    return standing.is_current


@contextlib.contextmanager
def _plainly(settings: Settings) -> Iterator[None]:
    """Turn what the server says into a refusal, and say what to do where it is the embedded one that is not there."""
    try:
        yield
    except StartRefused as refused:
        if settings.database_url or not refused.args[0].startswith("cannot connect"):
            raise
        raise StartRefused(str(refused), hint=EMBEDDED_DOWN) from None
    except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError) as failed:
        raise StartRefused(f"PostgreSQL refused: {failed}") from failed


def database_url(settings: Settings, *, owner: bool) -> str:
    """The URL that was set, else the socket of the embedded server, which `serve` must be running."""
    chosen = settings.owner_database_url if owner else settings.database_url
    if chosen:
        return chosen.get_secret_value()
    if settings.database_url:
        raise StartRefused(
            "VOELGOED_OWNER_DATABASE_URL is not set", hint=f"migrations log in as {schema.OWNER}, not as {schema.APP}"
        )
    return Embedded(settings.data_dir).postgres_url(schema.OWNER if owner else schema.APP)
