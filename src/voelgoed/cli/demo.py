"""`voelgoed demo`: an installation with something in it, kept apart from the real one."""

import asyncio
import json
import os

from rich.console import Console
from rich.panel import Panel
from rich.text import Text

from voelgoed.accounts import operator, usecases as accounts
from voelgoed.accounts.model import PLATFORM_ROLES, Role
from voelgoed.accounts.passwords import Passwords
from voelgoed.cli import demo_events, tree
from voelgoed.cli.layouts import without_redis
from voelgoed.config import ENV_PREFIX, Settings
from voelgoed.db import Database
from voelgoed.errors import StartRefused

SLUG, NAME = "passievol", "Passievol"
LOGINS = {
    "owner": "Olivia Owner",
    "admin": "Adam Admin",
    "staff": "Sanet Staff",
    "scanner": "Sipho Scanner",
    "customer": "Carla Customer",
    "super_admin": "Sarel Superadmin",
}
PASSWORD = "feel-good-2027"  # noqa: S105 - printed on the screen: it opens nothing but the demonstration


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

    events: dict[str, str] = {}

    async def before_children(settings: Settings) -> None:
        events.update(await seed(settings))

    def on_ready(running: tree.Running) -> None:
        if as_json:
            about = {
                "address": running.address,
                "organization": {"slug": SLUG, "name": NAME},
                "logins": {name: {"email": email_of(name), "password": PASSWORD} for name in LOGINS},
                "events": events,
                "pids": running.pids,
            }
            print(json.dumps(about), flush=True)
        else:
            _show(running)

    await tree.run(_open_to_guests(settings), on_ready=on_ready, before_children=before_children, is_demo=True)


def _open_to_guests(settings: Settings) -> Settings:
    """Whoever tries it out comes from one address, with many tabs or a load generator."""
    if "guests_per_ip_per_minute" in settings.model_fields_set:
        return settings
    return settings.model_copy(update={"guests_per_ip_per_minute": 0})


async def seed(settings: Settings) -> dict[str, str]:
    """Make the demonstration's organization, somebody of each role, and events: their ids. What is there stays."""
    assert settings.database_url is not None
    db = await Database.open(settings.database_url.get_secret_value(), size=2)
    passwords = Passwords()
    try:
        place = await accounts.find_organization(db, slug=SLUG)
        if place is None:
            place = await accounts.found_organization(db, slug=SLUG, name=NAME)
        await asyncio.gather(*(_seed_login(db, passwords, name) for name in LOGINS))
        async with without_redis(db) as studio:
            await demo_events.seed(studio, place)
        return await demo_events.ids(db, place)
    finally:
        passwords.close()
        await db.close()


async def _seed_login(db: Database, passwords: Passwords, name: str) -> None:
    role = Role(name)
    is_platform = role in PLATFORM_ROLES
    if not await operator.is_known(db, email=email_of(name)):
        await operator.create_user(
            db,
            passwords,
            organization=SLUG,
            email=email_of(name),
            name=LOGINS[name],
            role=Role.CUSTOMER if is_platform else role,
            password=PASSWORD,
        )
    if is_platform:
        await operator.appoint(db, email=email_of(name), role=role)


def email_of(name: str) -> str:
    return f"{name.replace('_', '-')}@{SLUG}.example"


def _show(running: tree.Running) -> None:
    lines = Text.assemble(
        (running.address, "bold"),
        f"/{SLUG}\n{running.address}/{SLUG}/sign-in\n\n",
        *(f"{name:<12} {email_of(name)}\n" for name in LOGINS),
        f"{'password':<12} {PASSWORD}",
        f"\n\nData       {running.settings.data_dir}",
        f"\nProcesses  {', '.join(f'{name} {pid}' for name, pid in running.pids.items())}",
        "\n\nStop it with Ctrl-C. The data stays.",
    )
    Console(highlight=False).print(Panel(lines, title="VoelgoedEvents is running", expand=False))
