"""Logs: events with fields, one JSON object a line for machines, coloured lines for a person at a terminal."""

import logging
import sys
from contextvars import ContextVar
from typing import Any, Literal
from uuid import UUID

import msgspec
import structlog
from structlog.typing import EventDict, Processor

_asked: ContextVar[tuple[UUID, UUID | None, UUID | None] | None] = ContextVar("asked", default=None)
"""The request that is being answered, with whose organization and who: three words that every line of it has."""


def configure(level: str, form: Literal["auto", "json", "console"] = "auto", **bound: object) -> None:
    """Set up logging for this process; call it once, first. What is bound stands in every line."""
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        _add_request,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    is_person = form == "console" or (form == "auto" and sys.stderr.isatty())
    last: list[Processor] = (
        # Plain tracebacks: the pretty ones print every local variable, passwords and tokens among them.
        [structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)]
        if is_person
        else [structlog.processors.format_exc_info, structlog.processors.JSONRenderer(_as_json)]
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *last],
        )
    )
    logging.basicConfig(handlers=[handler], level=level.upper(), force=True)
    # Our own lines go past the standard library: every hold is a line, and that way costs several times as much.
    structlog.configure(
        processors=[*shared, *last],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[level.upper()]),
        logger_factory=structlog.WriteLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
    structlog.contextvars.bind_contextvars(**bound)


def follow(request_id: UUID, organization_id: UUID | None = None, actor_id: UUID | None = None) -> None:
    """From here on the lines of this task say which request they belong to."""
    _asked.set((request_id, organization_id, actor_id))


def _add_request(_: object, __: str, event: EventDict) -> EventDict:
    asked = _asked.get()
    if asked is not None:
        names = ("request_id", "organization_id", "actor_id")
        for name, value in zip(names, asked, strict=True):
            if value is not None:
                event.setdefault(name, str(value))
    return event


def _as_json(event: dict[str, Any], **_: object) -> str:
    return msgspec.json.encode(event, enc_hook=str).decode()
