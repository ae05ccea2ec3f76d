"""The command `voelgoed`: what it can do, and how it says no."""

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal
from uuid import UUID

import typer
from rich.console import Console
from rich.text import Text

from voelgoed import config
from voelgoed.accounts.model import Role
from voelgoed.cli import (
    accounts as accounts_command,
    audit as audit_command,
    demo as demo_command,
    doctor as doctor_command,
    events as events_command,
    layouts as layouts_command,
    registry as registry_command,
    schema as schema_command,
    selling,
    tree,
)
from voelgoed.cli.arguments import (
    AsJson,
    EventArgument,
    LayoutArgument,
    NeededReason,
    OrgArgument,
    Reason,
    VersionArgument,
    When,
    settings_for,
)
from voelgoed.cli.bench import bench
from voelgoed.config import Settings
from voelgoed.demo.control import LEVELS
from voelgoed.errors import StartRefused
from voelgoed.events.model import NewVenue, Status, Verb
from voelgoed.jobs import worker as worker_process
from voelgoed.journal.model import SearchFilter
from voelgoed.seating.canonical import write_layout
from voelgoed.seating.model import VersionStatus
from voelgoed.wiring import REFUSED, run_to_end

WRONG = 1
MemberRole = Literal["owner", "admin", "staff", "scanner", "customer"]
PlatformRole = Literal["super_admin", "tenant_manager"]

app = typer.Typer(
    help="VoelgoedEvents: seat reservation and events, self-hosted.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)
db = typer.Typer(help="The database's schema.", no_args_is_help=True)
org = typer.Typer(help="Organizations.", no_args_is_help=True)
user = typer.Typer(help="People.", no_args_is_help=True)
venue = typer.Typer(help="Venues.", no_args_is_help=True)
event = typer.Typer(help="Events: look at them, move them through their lifecycle.", no_args_is_help=True)
layout = typer.Typer(help="Layouts of venues: generate, import, export, compare.", no_args_is_help=True)
audit = typer.Typer(help="The journal of what happened.", no_args_is_help=True)
for name, group in (
    ("db", db),
    ("org", org),
    ("user", user),
    ("venue", venue),
    ("event", event),
    ("layout", layout),
    ("policy", selling.policy),
    ("price", selling.price),
    ("seating", selling.seating),
    ("registry", selling.registry),
    ("audit", audit),
    ("bench", bench),
):
    app.add_typer(group, name=name)

Activate = Annotated[bool, typer.Option("--activate", help="Let events choose it at once.")]
Workers = Annotated[int | None, typer.Option(help="Web processes. [default: VOELGOED_WORKERS or 1]", min=1, max=64)]
Port = Annotated[int | None, typer.Option(help="Port; 0 picks a free one. [default: VOELGOED_PORT or 8600]", min=0)]


def main() -> None:
    """Run the command; a refusal is said in plain words, without a traceback."""
    try:
        app()
    except StartRefused as refused:
        # Text, not markup: a path or a server's words may hold what reads like a mark.
        said = Console(stderr=True, highlight=False, soft_wrap=True)
        said.print(Text.assemble(("voelgoed:", "bold red"), f" {refused}"))
        if refused.hint:
            said.print(Text(f"  {refused.hint}"))
        sys.exit(REFUSED)


def _say_version(*, asked: bool) -> None:
    if asked:
        typer.echo(f"voelgoed {config.VERSION}")
        raise typer.Exit


@app.callback()
def options(
    *,
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            help="Print the version and leave.",
            is_eager=True,
            callback=lambda asked: _say_version(asked=asked),
        ),
    ] = False,
) -> None:
    """What stands before every command."""


@app.command()
def serve(workers: Workers = None, port: Port = None) -> None:
    """Run the whole installation: embedded servers where no URL is set, web processes and the worker."""
    settings = settings_for("serve", workers=workers, port=port)
    run_to_end(tree.run(settings, on_ready=lambda running: print(f"Serving at {running.address}", flush=True)))


@app.command()
def verify(*, as_json: AsJson = False) -> None:
    """Check database invariants. Exits 1 on any violation."""
    if not run_to_end(registry_command.verify(settings_for("verify"), as_json=as_json)):
        raise typer.Exit(WRONG)


@app.command()
def demo(
    workers: Workers = None,
    port: Port = None,
    crowd: Annotated[int, typer.Option(min=0, max=LEVELS[-1], help="How many buyers arrive in a second.")] = LEVELS[1],
    seed: Annotated[int, typer.Option(help="Another crowd for another number, the same for the same.")] = 1,
    *,
    as_json: AsJson = False,
) -> None:
    """Run an installation with demonstration data in a folder of its own, with a crowd that buys."""
    settings = demo_command.in_own_folder(settings_for("demo", workers=workers, port=port))
    run_to_end(demo_command.run(settings, crowd=crowd, crowd_seed=seed, as_json=as_json))


@app.command()
def worker() -> None:
    """Run the worker process alone; `serve` starts one by itself."""
    run_to_end(worker_process.run(_connected(settings_for("worker"))))


@app.command()
def doctor(*, as_json: AsJson = False) -> None:
    """Look at everything an installation needs, and say in plain words what is wrong."""
    findings = run_to_end(doctor_command.examine(settings_for("doctor")))
    doctor_command.show(findings, as_json=as_json)
    if any(finding.level == "fail" for finding in findings):
        raise typer.Exit(WRONG)


@db.command()
def migrate() -> None:
    """Bring the database up to this version of the code."""
    run_to_end(schema_command.migrate(settings_for("migrate")))


@db.command()
def status(*, as_json: AsJson = False) -> None:
    """Say which migrations have run; leaves with 1 when the database is not current."""
    if not run_to_end(schema_command.show_status(settings_for("status"), as_json=as_json)):
        raise typer.Exit(WRONG)


@db.command()
def roles() -> None:
    """Print the SQL that makes the three roles, for a database administrator to run once."""
    typer.echo(schema_command.roles_sql())


@org.command("create")
def create_organization(slug: str, name: str) -> None:
    """Found an organization: its address (lower-case letters, digits, hyphens) and its name."""
    run_to_end(accounts_command.create_organization(settings_for("org"), slug, name))


@org.command("list")
def list_organizations() -> None:
    """Every organization of the installation."""
    run_to_end(accounts_command.list_organizations(settings_for("org")))


@user.command("create")
def create_user(
    email: str,
    organization: Annotated[str, typer.Option("--org", help="The organization's address.")],
    name: Annotated[str, typer.Option(help="The person's name.")],
    role: Annotated[MemberRole, typer.Option(help="What they are there.")] = "owner",
    *,
    ask: Annotated[bool, typer.Option("--ask", help="Ask for the password instead of making one up.")] = False,
) -> None:
    """Make an account with a role in an organization."""
    ask_password = (lambda: str(typer.prompt("Password", hide_input=True, confirmation_prompt=True))) if ask else None
    run_to_end(
        accounts_command.create_user(
            settings_for("user"),
            organization=organization,
            email=email,
            name=name,
            role=Role(role),
            ask_password=ask_password,
        )
    )


@user.command("appoint")
def appoint(email: str, role: PlatformRole) -> None:
    """Give somebody a role of the platform's own staff."""
    run_to_end(accounts_command.appoint(settings_for("user"), email=email, role=Role(role)))


@user.command("dismiss")
def dismiss(email: str, role: PlatformRole) -> None:
    """Take a role of the platform's own staff away."""
    run_to_end(accounts_command.dismiss(settings_for("user"), email=email, role=Role(role)))


@venue.command("list")
def list_venues(organization: OrgArgument, *, as_json: AsJson = False) -> None:
    """An organization's venues."""
    run_to_end(events_command.list_venues(settings_for("venue"), organization=organization, as_json=as_json))


@venue.command("create")
def create_venue(
    organization: OrgArgument,
    slug: Annotated[str, typer.Argument(help="The venue's address.")],
    name: Annotated[str, typer.Argument(help="Its name.")],
    timezone: Annotated[str, typer.Option(help="A region's name, such as Africa/Johannesburg.")],
    capacity: Annotated[int, typer.Option(help="How many people it holds at most.", min=0, max=1_000_000)],
) -> None:
    """Make a venue."""
    new = NewVenue(name=name, slug=slug, timezone=timezone, max_capacity=capacity)
    run_to_end(events_command.create_venue(settings_for("venue"), organization=organization, new=new))


@event.command("list")
def list_events(
    organization: OrgArgument,
    status: Annotated[list[Status] | None, typer.Option(help="Only these; may be given several times.")] = None,
    *,
    as_json: AsJson = False,
) -> None:
    """An organization's events in the order of time; archived ones when asked for."""
    run_to_end(
        events_command.list_events(
            settings_for("event"), organization=organization, statuses=status or (), as_json=as_json
        )
    )


@event.command("show")
def show_event(organization: OrgArgument, slug: EventArgument, *, as_json: AsJson = False) -> None:
    """One event, with what can be done to it."""
    run_to_end(events_command.show_event(settings_for("event"), organization=organization, slug=slug, as_json=as_json))


@event.command("create")
def create_event(
    organization: OrgArgument,
    slug: EventArgument,
    name: Annotated[str, typer.Argument(help="Its name.")],
    venue_slug: Annotated[str, typer.Option("--venue", help="The venue's address.")],
    start: When,
    end: When,
    *,
    sale_start: When = "",
    sale_end: When = "",
    capacity: Annotated[int | None, typer.Option(min=0, max=1_000_000, help="At most so many people.")] = None,
) -> None:
    """Make an event; it begins as a draft."""
    times = {"start_at": start, "end_at": end, "sale_start_at": sale_start, "sale_end_at": sale_end}
    run_to_end(
        events_command.create_event(
            settings_for("event"),
            organization=organization,
            venue=venue_slug,
            name=name,
            slug=slug,
            times=times,
            capacity=capacity,
        )
    )


@event.command("publish")
def publish_event(organization: OrgArgument, slug: EventArgument, reason: Reason = "") -> None:
    """Show it to everybody."""
    _move(organization, slug, Verb.PUBLISH, reason)


@event.command("unpublish")
def unpublish_event(organization: OrgArgument, slug: EventArgument, reason: Reason = "") -> None:
    """Make it a draft again."""
    _move(organization, slug, Verb.UNPUBLISH, reason)


@event.command("go-live")
def go_live(organization: OrgArgument, slug: EventArgument, reason: Reason = "") -> None:
    """It has begun: scans count."""
    _move(organization, slug, Verb.GO_LIVE, reason)


@event.command("end")
def end_event(organization: OrgArgument, slug: EventArgument, reason: Reason = "") -> None:
    """It is over."""
    _move(organization, slug, Verb.END, reason)


@event.command("cancel")
def cancel_event(organization: OrgArgument, slug: EventArgument, reason: NeededReason) -> None:
    """It does not take place."""
    _move(organization, slug, Verb.CANCEL, reason)


@event.command("archive")
def archive_event(organization: OrgArgument, slug: EventArgument, reason: Reason = "") -> None:
    """Put it away."""
    _move(organization, slug, Verb.ARCHIVE, reason)


@event.command("postpone")
def postpone_event(
    organization: OrgArgument,
    slug: EventArgument,
    reason: NeededReason,
    public_reason: Annotated[str, typer.Option(help="What the public is told: weather, illness, or a sentence.")] = "",
    start: When = "",
    end: When = "",
    sale_end: When = "",
) -> None:
    """It takes place later; without --start nobody knows when, and nothing is sold."""
    times = {"start_at": start, "end_at": end, "sale_end_at": sale_end}
    _move(organization, slug, Verb.POSTPONE, reason, times, public_reason)


@event.command("reschedule")
def reschedule_event(
    organization: OrgArgument,
    slug: EventArgument,
    reason: NeededReason,
    start: When,
    end: When = "",
    sale_end: When = "",
) -> None:
    """Give it another date; as long as before, and on sale until it begins, unless said otherwise."""
    _move(organization, slug, Verb.RESCHEDULE, reason, {"start_at": start, "end_at": end, "sale_end_at": sale_end})


@layout.command("generate")
def generate_layout(
    preset: Annotated[str, typer.Argument(help="theatre-350, arena-20k, stadium-60k, stadium-100k or festival.")] = "",
    spec: Annotated[Path | None, typer.Option(help="A spec of your own, as the API takes it, instead.")] = None,
    organization: Annotated[str, typer.Option("--org", help="Whose it shall be; without it, a file is written.")] = "",
    venue_slug: Annotated[str, typer.Option("--venue", help="The venue's address.")] = "",
    to: Annotated[Path | None, typer.Option(help="The file to write instead; standard output without it.")] = None,
    *,
    activate: Activate = False,
) -> None:
    """Make a hall: stored at a venue, or written as a file that can be changed and imported."""
    settings = settings_for("layout")
    made = layouts_command.generated_from(spec) if spec else layouts_command.generated(preset)
    if not organization:
        layouts_command.write(write_layout(made), to)
        return
    run_to_end(
        layouts_command.add(settings, organization=organization, venue=venue_slug, layout=made, is_activated=activate)
    )


@layout.command("import")
def import_layout(
    organization: OrgArgument,
    file: Annotated[Path, typer.Argument(help="A layout document.")],
    venue_slug: Annotated[str, typer.Option("--venue", help="The venue's address, for a new layout.")] = "",
    layout_id: Annotated[UUID | None, typer.Option("--layout", help="The layout that gets a new version.")] = None,
    *,
    pretix: Annotated[bool, typer.Option("--pretix", help="The file is a seating plan of pretix.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check everything, store nothing.")] = False,
    activate: Activate = False,
) -> None:
    """Read a layout from a file; everything that is wrong with it is told at once."""
    settings = settings_for("layout")
    found = layouts_command.read(file, is_pretix=pretix)
    if dry_run:
        typer.echo(f"{found.name}: {found.seat_count:,} seats, {found.total_capacity:,} places, no errors")
        return
    run_to_end(
        layouts_command.add(
            settings,
            organization=organization,
            venue=venue_slug,
            layout_id=layout_id,
            layout=found,
            is_activated=activate,
        )
    )


@layout.command("list")
def list_layouts(organization: OrgArgument, *, as_json: AsJson = False) -> None:
    """An organization's layouts."""
    run_to_end(layouts_command.list_layouts(settings_for("layout"), organization=organization, as_json=as_json))


@layout.command("versions")
def list_layout_versions(organization: OrgArgument, layout_id: LayoutArgument) -> None:
    """The versions of a layout, latest first."""
    run_to_end(layouts_command.show_versions(settings_for("layout"), organization=organization, layout_id=layout_id))


@layout.command("activate")
def activate_layout(
    organization: OrgArgument, layout_id: LayoutArgument, version: VersionArgument, reason: Reason = ""
) -> None:
    """Let events choose a version."""
    _move_layout(organization, layout_id, version, VersionStatus.ACTIVE, reason)


@layout.command("archive")
def archive_layout(
    organization: OrgArgument, layout_id: LayoutArgument, version: VersionArgument, reason: Reason = ""
) -> None:
    """Let no new event choose a version."""
    _move_layout(organization, layout_id, version, VersionStatus.ARCHIVED, reason)


@layout.command("export")
def export_layout(
    organization: OrgArgument,
    layout_id: LayoutArgument,
    version: VersionArgument,
    to: Annotated[Path | None, typer.Option(help="The file to write; standard output without it.")] = None,
    *,
    csv: Annotated[bool, typer.Option("--csv", help="The sheet of seats instead of the whole layout.")] = False,
) -> None:
    """Write a version as a file that imports as the same."""
    run_to_end(
        layouts_command.export(
            settings_for("layout"), organization=organization, layout_id=layout_id, version=version, is_csv=csv, to=to
        )
    )


@layout.command("diff")
def compare_layouts(
    organization: OrgArgument, layout_id: LayoutArgument, before: VersionArgument, after: VersionArgument
) -> None:
    """Say what is different between two versions."""
    run_to_end(
        layouts_command.compare(
            settings_for("layout"), organization=organization, layout_id=layout_id, before=before, after=after
        )
    )


@audit.command("search")
def search_audit(
    organization: Annotated[str, typer.Option("--org", help="The organization's address.")],
    kind: Annotated[list[str] | None, typer.Option(help="Kinds of facts; may be given several times.")] = None,
    actor: Annotated[UUID | None, typer.Option(help="Who did it.")] = None,
    event: Annotated[UUID | None, typer.Option(help="To which event it happened.")] = None,
    since: Annotated[str, typer.Option(help="From when: 2027-03-12, 2027-03-12T19:30:00Z, 2h, 7d.")] = "",
    until: Annotated[str, typer.Option(help="Until when, in the same words.")] = "",
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="How many, newest first.")] = 50,
    *,
    as_json: AsJson = False,
) -> None:
    """Search an organization's journal."""
    now = datetime.now(UTC)
    asked = SearchFilter(
        kinds=tuple(kind or ()),
        actor_id=actor,
        event_id=event,
        since=audit_command.read_time(since, now=now) if since else None,
        until=audit_command.read_time(until, now=now) if until else None,
    )
    settings = settings_for("audit")
    facts = run_to_end(
        accounts_command.on_database(settings, audit_command.search, slug=organization, asked=asked, limit=limit)
    )
    audit_command.show(facts, as_json=as_json)


def _move_layout(organization: str, layout_id: UUID, version: int, to: VersionStatus, reason: str) -> None:
    run_to_end(
        layouts_command.move(
            settings_for("layout"),
            organization=organization,
            layout_id=layout_id,
            version=version,
            to=to,
            reason=reason,
        )
    )


def _move(
    organization: str,
    slug: str,
    verb: Verb,
    reason: str,
    times: dict[str, str] | None = None,
    postponement_reason: str = "",
) -> None:
    run_to_end(
        events_command.move_event(
            settings_for("event"),
            organization=organization,
            slug=slug,
            verb=verb,
            reason=reason,
            times=times,
            postponement_reason=postponement_reason,
        )
    )


def _connected(settings: Settings) -> Settings:
    """A process of its own connects to servers that run already; `serve` alone starts them."""
    if settings.database_url is None or settings.redis_url is None:
        raise StartRefused(
            "this process does not start servers of its own",
            hint="set VOELGOED_DATABASE_URL and VOELGOED_REDIS_URL, or use: voelgoed serve",
        )
    return settings
