"""`voelgoed demo`: an installation with something in it, kept apart from the real one."""

import json
import os

from rich.console import Console
from rich.panel import Panel
from rich.text import Text

from voelgoed.accounts import usecases as accounts
from voelgoed.cli import tree
from voelgoed.config import ENV_PREFIX, Settings
from voelgoed.db import Database
from voelgoed.errors import StartRefused

SLUG, NAME = "passievol", "Passievol"


def in_own_folder(settings: Settings) -> Settings:
    """Keep the demonstration away from real data, unless the operator named a folder."""
    if os.environ.get(f"{ENV_PREFIX}DATA_DIR"):
        return settings
    return settings.model_copy(update={"data_dir": settings.data_dir / "demo"})


async def run(settings: Settings, *, as_json: bool) -> None:
    """Run the demonstration until asked to stop; says where it is once it is served."""
    if settings.database_url or settings.owner_database_url:
        raise StartRefused(
            "a demonstration has a database of its own, and VOELGOED_DATABASE_URL names another",
            hint="unset VOELGOED_DATABASE_URL and VOELGOED_OWNER_DATABASE_URL, or use: voelgoed serve",
        )

    def on_ready(running: tree.Running) -> None:
        if as_json:
            about = {"address": running.address, "organization": {"slug": SLUG, "name": NAME}, "pids": running.pids}
            print(json.dumps(about), flush=True)
        else:
            _show(running)

    await tree.run(_open_to_guests(settings), on_ready=on_ready, before_children=seed, is_demo=True)


def _open_to_guests(settings: Settings) -> Settings:
    """Whoever tries it out comes from one address, with many tabs or a load generator."""
    if "guests_per_ip_per_minute" in settings.model_fields_set:
        return settings
    return settings.model_copy(update={"guests_per_ip_per_minute": 0})


async def seed(settings: Settings) -> None:
    """Make the demonstration's organization, once."""
    assert settings.database_url is not None
    db = await Database.open(settings.database_url.get_secret_value(), size=1)
    try:
        if await accounts.find_organization(db, slug=SLUG) is None:
            await accounts.found_organization(db, slug=SLUG, name=NAME)
    finally:
        await db.close()


def _show(running: tree.Running) -> None:
    lines = Text.assemble(
        (running.address, "bold"),
        f"\n\nData       {running.settings.data_dir}",
        f"\nProcesses  {', '.join(f'{name} {pid}' for name, pid in running.pids.items())}",
        "\n\nStop it with Ctrl-C. The data stays.",
    )
    Console(highlight=False).print(Panel(lines, title="VoelgoedEvents is running", expand=False))
