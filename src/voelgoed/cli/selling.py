"""The commands about what is sold: `voelgoed policy`, `voelgoed price`, `voelgoed seating`, `voelgoed registry`."""

from pathlib import Path
from typing import Annotated

import typer

from voelgoed.cli import (
    policy as policy_command,
    prices as prices_command,
    registry as registry_command,
    seating as seating_command,
)
from voelgoed.cli.arguments import AsJson, EventArgument, NeededReason, OrgArgument, settings_for
from voelgoed.ticketing.model import NewRule
from voelgoed.wiring import run_to_end

registry = typer.Typer(help="What is held: status, and tidying up.", no_args_is_help=True)
policy = typer.Typer(help="What organizations let their seating be.", no_args_is_help=True)
price = typer.Typer(help="Pricing rules: what places cost.", no_args_is_help=True)
seating = typer.Typer(help="What events offer: layout, zones, prices.", no_args_is_help=True)


@price.command("list")
def list_prices(organization: OrgArgument, *, as_json: AsJson = False) -> None:
    """An organization's pricing rules."""
    run_to_end(prices_command.list_rules(settings_for("price"), organization=organization, as_json=as_json))


@price.command("add")
def add_price(
    organization: OrgArgument,
    name: Annotated[str, typer.Argument(help="Its name.")],
    amount_minor: Annotated[int, typer.Argument(help="What a place costs, in minor units: 10000 is a hundred rand.")],
    currency: Annotated[str, typer.Option(help="Three capital letters.")] = "ZAR",
    category: Annotated[
        list[str] | None,
        typer.Option(help="Another amount for a kind of seat, such as wheelchair=0; may be given several times."),
    ] = None,
) -> None:
    """Make a pricing rule."""
    amounts = prices_command.read_amounts(category or ())
    new = NewRule(name=name, currency=currency, amount_minor=amount_minor, by_category=amounts)
    run_to_end(prices_command.add_rule(settings_for("price"), organization=organization, new=new))


@policy.command("show")
def show_policy(organization: OrgArgument, *, as_json: AsJson = False) -> None:
    """An organization's seating policy: every field, its default, and what is locked."""
    run_to_end(policy_command.show(settings_for("policy"), organization=organization, as_json=as_json))


@policy.command("set")
def set_policy(
    organization: OrgArgument,
    values: Annotated[
        list[str] | None, typer.Argument(metavar="FIELD=VALUE...", help="Such as allow_vip_zones=true.")
    ] = None,
    lock: Annotated[list[str] | None, typer.Option(help="A field that neither owner nor event changes.")] = None,
    unlock: Annotated[list[str] | None, typer.Option(help="A field that they may change again.")] = None,
    *,
    reason: NeededReason,
) -> None:
    """Set fields of an organization's seating policy, and lock or unlock them."""
    run_to_end(
        policy_command.change(
            settings_for("policy"),
            organization=organization,
            values=policy_command.read_values(values or ()),
            lock=lock or (),
            unlock=unlock or (),
            reason=reason,
        )
    )


@seating.command("show")
def show_seating(organization: OrgArgument, slug: EventArgument, *, as_json: AsJson = False) -> None:
    """What an event offers, zone by zone, and what is wrong with it."""
    run_to_end(
        seating_command.show_seating(settings_for("seating"), organization=organization, slug=slug, as_json=as_json)
    )


@seating.command("set")
def set_seating(
    organization: OrgArgument,
    slug: EventArgument,
    layout: Annotated[str, typer.Option(help="A layout of the event's venue: its name, or its id.")] = "",
    version: Annotated[int | None, typer.Option(min=1, help="Its version. [default: the active one]")] = None,
    no_layout: Annotated[bool, typer.Option("--no-layout", help="General admission: take its layout away.")] = False,  # noqa: FBT002 - a flag
    overrides: Annotated[
        Path | None, typer.Option(help="A JSON file of what the event says differently; `show --json` has one.")
    ] = None,
) -> None:
    """Give an event a version of a layout, or another word about it; what is not given stays."""
    run_to_end(
        seating_command.set_seating(
            settings_for("seating"),
            organization=organization,
            slug=slug,
            layout=layout,
            version=version,
            path=overrides,
            is_bare=no_layout,
        )
    )


@registry.command("status")
def registry_status(*, as_json: AsJson = False) -> None:
    """What is held, by event."""
    run_to_end(registry_command.show_status(settings_for("registry"), as_json=as_json))


@registry.command("compare")
def registry_compare(organization: OrgArgument, slug: EventArgument, *, as_json: AsJson = False) -> None:
    """Whether what Redis has of an event's places is what PostgreSQL has; exit 1 when it is not."""
    done = registry_command.compare(
        settings_for("registry"), organization=organization, slug=slug, is_mended=False, as_json=as_json
    )
    if not run_to_end(done):
        raise typer.Exit(1)


@registry.command("reconcile")
def registry_reconcile(organization: OrgArgument, slug: EventArgument, *, as_json: AsJson = False) -> None:
    """Have an event's places made anew in Redis and in every process; says what was found before."""
    run_to_end(
        registry_command.compare(
            settings_for("registry"), organization=organization, slug=slug, is_mended=True, as_json=as_json
        )
    )


@registry.command("reap")
def registry_reap() -> None:
    """Tidy lapsed holds away now; the worker does it every two seconds."""
    run_to_end(registry_command.reap(settings_for("registry")))
