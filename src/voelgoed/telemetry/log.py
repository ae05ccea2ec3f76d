"""Logs: events with fields, one JSON object a line for machines, coloured lines for a person at a terminal."""

import logging
import sys
from typing import Any, Literal

import msgspec
import structlog
from structlog.typing import Processor


def configure(level: str, form: Literal["auto", "json", "console"] = "auto", **bound: object) -> None:
    """Set up logging for this process; call it once, first. What is bound stands in every line."""
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
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


def _as_json(event: dict[str, Any], **_: object) -> str:
    return msgspec.json.encode(event, enc_hook=str).decode()
