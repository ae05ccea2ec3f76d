"""`voelgoed demo`: an installation with something in it, kept apart from the real one."""

import asyncio
import contextlib
import json
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import asdict, dataclass

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
from voelgoed.demo.control import CONTROL_ENV, Json, OrderRefused, Parent
from voelgoed.embedded import Embedded
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
CROWD = "voelgoed.demo"
WEB_PROCESSES = 2
REDIS_PROBE_S = 3.0
UNLIMITED = {"guests_per_ip_per_minute": 0, "streams_per_ip": 0}
PASSWORD = "feel-good-2027"  # noqa: S105 - printed on the screen: it opens nothing but the demonstration


def in_own_folder(settings: Settings) -> Settings:
    """Keep the demonstration away from real data, unless the operator named a folder."""
    if os.environ.get(f"{ENV_PREFIX}DATA_DIR"):
        return settings
    return settings.model_copy(update={"data_dir": settings.data_dir / "demo"})


async def run(settings: Settings, *, crowd: int, crowd_seed: int, as_json: bool) -> None:
    """Run the demonstration until asked to stop; says where it is once it is served."""
    if settings.database_url or settings.owner_database_url:
        raise StartRefused(
            "a demonstration has a database of its own, and VOELGOED_DATABASE_URL names another",
            hint="unset VOELGOED_DATABASE_URL and VOELGOED_OWNER_DATABASE_URL, or use: voelgoed serve",
        )

    events: dict[str, str] = {}
    about = {
        "organization": {"slug": SLUG, "name": NAME},
        "logins": {name: email_of(name) for name in LOGINS},
        "password": PASSWORD,
        "events": events,
        "seed": crowd_seed,
    }

    # Every hold is a line of the log, and a person shall still see the address.
    is_quiet = not as_json and "log_level" not in settings.model_fields_set
    quiet = {f"{ENV_PREFIX}LOG_LEVEL": "warning"} if is_quiet else {}

    async def before_children(settings: Settings) -> None:
        events.update(await seed(settings))

    @contextlib.asynccontextmanager
    async def beside(tree_of_ours: tree.Tree, embedded: Embedded) -> AsyncIterator[Mapping[str, str]]:
        path = embedded.sockets / "demo.sock"
        async with Parent(path, Hands(tree_of_ours, embedded), about, per_s=crowd).open():
            yield {CONTROL_ENV: str(path)} | quiet

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
            _show(running, crowd)

    await tree.run(
        _fit_to_show(settings),
        on_ready=on_ready,
        before_children=before_children,
        company=tree.Company({"crowd": CROWD}, beside),
    )


@dataclass(frozen=True, slots=True)
class Hands:
    """What the panel may do, through the parent, to the demonstration's own processes."""

    tree: tree.Tree
    embedded: Embedded

    def standing(self) -> Sequence[Json]:
        return [asdict(one) for one in self.tree.standing()]

    def kill(self, kind: str, *, spare: int | None) -> str:
        """End one of a kind, another than the one to be spared where there is one: who was ended, or nothing."""
        names = [one for one in self.tree.standing() if one.is_up and one.name.partition("-")[0] == kind]
        names.sort(key=lambda one: (one.pid == spare, one.deaths))
        return next((one.name for one in names if self.tree.kill(one.name)), "")

    def is_redis_up(self) -> bool:
        return not self.embedded.is_valkey_away

    async def stop_redis(self) -> None:
        if not self.embedded.with_valkey:
            raise OrderRefused("not_ours")
        await self.embedded.put_valkey_away()

    async def start_redis(self) -> None:
        await self.embedded.bring_valkey_back()


def _fit_to_show(settings: Settings) -> Settings:
    """Choose what suits a demonstration where the operator has not.

    The crowd and its spectators all come from one address, so limits per network would stop them. One web process may
    be killed while another serves. A Redis that was given up is tried again soon enough to be watched.
    """
    fit = {**UNLIMITED, "workers": WEB_PROCESSES, "redis_probe_s": REDIS_PROBE_S}
    chosen = settings.model_fields_set
    return settings.model_copy(update={name: value for name, value in fit.items() if name not in chosen})


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


def _show(running: tree.Running, crowd: int) -> None:
    lines = Text.assemble(
        (running.address, "bold"),
        f"/{SLUG}\n{running.address}/{SLUG}/sign-in\n\n",
        *(f"{name:<12} {email_of(name)}\n" for name in LOGINS),
        f"{'password':<12} {PASSWORD}",
        f"\n\nCrowd      {f'{crowd} arrive every second, hold seats, let go, buy' if crowd else 'nobody yet'}",
        "\nPanel      the tab at the left edge of every page",
        f"\nLimits     {_limits(running.settings)}",
        f"\nData       {running.settings.data_dir}",
        f"\nProcesses  {', '.join(f'{name} {pid}' for name, pid in running.pids.items())}",
        "\n\nStop it with Ctrl-C. The data stays.",
    )
    Console(highlight=False).print(Panel(lines, title="VoelgoedEvents is running", expand=False))


def _limits(settings: Settings) -> str:
    """Say which limits per network are switched off; one that the operator chose stays."""
    off = [f"{ENV_PREFIX}{name.upper()}=0" for name in UNLIMITED if getattr(settings, name) == 0]
    return f"{', '.join(off)}: all come from one address" if off else "as in an installation"
