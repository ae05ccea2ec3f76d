"""What many commands are given, and the settings they run under."""

from typing import Annotated
from uuid import UUID

import typer

from voelgoed import config
from voelgoed.config import Settings
from voelgoed.telemetry import log

OrgArgument = Annotated[str, typer.Argument(metavar="ORG", help="The organization's address.")]
EventArgument = Annotated[str, typer.Argument(metavar="EVENT", help="The event's address.")]
LayoutArgument = Annotated[UUID, typer.Argument(metavar="LAYOUT", help="The layout's id.")]
VersionArgument = Annotated[int, typer.Argument(min=1, help="The number of a version.")]
Reason = Annotated[str, typer.Option(help="Why; it stands in the journal.")]
NeededReason = Annotated[str, typer.Option(help="Why; it stands in the journal.", show_default=False)]
When = Annotated[str, typer.Option(help="By the clock of the venue: 2027-03-12 19:30.", show_default=False)]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON object on standard output, for programs.")]


def settings_for(process: str, **over: object) -> Settings:
    """The settings of the environment, with what the command line says instead; logs go where they belong."""
    settings = config.load(**{name: value for name, value in over.items() if value is not None})
    log.configure(settings.log_level, settings.log_format, process=process)
    return settings
