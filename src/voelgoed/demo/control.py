"""The line between the parent of a demonstration and its processes: what it tells, and what it is asked to do.

A unix socket that nobody but us may open, named to the children in their environment. A process without that name is
no part of a demonstration: it has no panel, and nothing here can be reached through it.
"""

import asyncio
import contextlib
import os
from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol, Self

import msgspec
import structlog

from voelgoed.errors import StartRefused

log = structlog.get_logger(__name__)

CONTROL_ENV: Final = "VOELGOED_DEMO_CONTROL"
LEVELS: Final = (0, 2, 8, 25, 60)
"""How many arrive in a second: nobody, a few, many, a rush, a full house."""
LINE_BYTES_MAX: Final = 128 * 1024
LINES_MAX: Final = 64
HISTORY: Final = 60
TELL_EVERY_S: Final = 0.5
ANSWER_WAIT_S: Final = 15.0

Json = dict[str, Any]


class OrderRefused(Exception):
    """The parent would not, or could not; what it says is a code."""


class Handles(Protocol):
    """What the parent can do to its own processes, and nobody else's."""

    def standing(self) -> Sequence[Json]: ...

    def kill(self, kind: str, *, spare: int | None) -> str: ...

    def is_redis_up(self) -> bool: ...

    async def stop_redis(self) -> None: ...

    async def start_redis(self) -> None: ...


@dataclass(slots=True)
class Parent:
    """The parent's end: keeps how the demonstration stands, tells whoever follows, carries out what is asked."""

    path: Path
    handles: Handles
    about: Mapping[str, object]
    per_s: int
    _figures: deque[Json] = field(default_factory=lambda: deque(maxlen=HISTORY))
    _changed: asyncio.Event = field(default_factory=asyncio.Event)
    _followers: set[asyncio.StreamWriter] = field(default_factory=set)
    _lines: set[asyncio.StreamWriter] = field(default_factory=set)
    _redis: asyncio.Lock = field(default_factory=asyncio.Lock)

    @contextlib.asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Listen and tell until the block ends."""
        self.path.unlink(missing_ok=True)
        server = await asyncio.start_unix_server(self._serve, self.path, limit=LINE_BYTES_MAX)
        self.path.chmod(0o600)
        telling = asyncio.create_task(self._tell())
        try:
            yield
        finally:
            telling.cancel()
            server.close()
            for line in tuple(self._lines):
                line.close()
            await asyncio.gather(telling, return_exceptions=True)
            self.path.unlink(missing_ok=True)

    def state(self) -> Json:
        """How everything stands now."""
        return {
            **self.about,
            "crowd": {"per_s": self.per_s, "figures": self._figures[-1] if self._figures else None},
            "processes": list(self.handles.standing()),
            "redis": {"is_up": self.handles.is_redis_up()},
        }

    async def _tell(self) -> None:
        """Tell everybody at a steady pace, and at once after something was done."""
        while True:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), TELL_EVERY_S)
            self._changed.clear()
            line = _line(self.state())
            for follower in tuple(self._followers):
                if follower.transport.get_write_buffer_size() < LINE_BYTES_MAX:  # who does not read misses some
                    follower.write(line)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One line of a process of ours, until it ends."""
        if len(self._lines) >= LINES_MAX:
            writer.close()
            return
        self._lines.add(writer)
        try:
            while said := await reader.readline():
                answer = await self._hear(msgspec.json.decode(said), writer)
                if answer is not None:
                    writer.write(_line(answer))
                    await writer.drain()
        except (OSError, ValueError, msgspec.MsgspecError) as failed:
            log.info("demo_line_lost", error=type(failed).__name__)
        finally:
            self._lines.discard(writer)
            self._followers.discard(writer)
            writer.close()

    async def _hear(self, order: Json, writer: asyncio.StreamWriter) -> Json | None:
        """What is answered, if anything."""
        match order:
            case {"do": "follow"}:
                self._followers.add(writer)
                return {**self.state(), "history": list(self._figures)}
            case {"do": "tell", "figures": dict(figures)}:
                self._figures.append(figures)
                return None
        try:
            done = await self._obey(order)
        except OrderRefused as refused:
            return {"refused": str(refused)}
        except StartRefused as refused:
            log.warning("demo_redis_not_started", reason=str(refused))
            return {"refused": "not_done"}
        self._changed.set()
        return {"done": done}

    async def _obey(self, order: Json) -> str:
        """Do one of the four things that can be done; what was done."""
        match order:
            case {"do": "crowd", "per_s": int(per_s)} if 0 <= per_s <= LEVELS[-1]:
                self.per_s = per_s
                return "crowd"
            case {"do": "redis", "up": bool(up)}:
                await self._turn_redis(up=up)
                return "redis"
            case {"do": "kill", "kind": ("web" | "worker") as kind, **more}:
                spare = more.get("spare")
                name = self.handles.kill(kind, spare=spare if isinstance(spare, int) else None)
                if name:
                    log.info("demo_killed", name=name)
                    return name
                raise OrderRefused("not_there")
            case _:
                raise OrderRefused("unknown_order")

    async def _turn_redis(self, *, up: bool) -> None:
        async with self._redis:
            await (self.handles.start_redis() if up else self.handles.stop_redis())


class Control:
    """A child's end."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @classmethod
    def from_environment(cls) -> Self | None:
        """The way to the parent, where this is a demonstration."""
        named = os.environ.get(CONTROL_ENV)
        return cls(Path(named)) if named else None

    async def ask(self, order: Mapping[str, object]) -> str:
        """Have something done; what was done, or `OrderRefused`."""
        try:
            async with asyncio.timeout(ANSWER_WAIT_S):
                reader, writer = await asyncio.open_unix_connection(self._path, limit=LINE_BYTES_MAX)
                with contextlib.closing(writer):
                    writer.write(_line(order))
                    answer = msgspec.json.decode(await reader.readline() or b"{}")
        except (OSError, ValueError) as failed:
            raise OrderRefused("parent_away") from failed
        if "done" not in answer:
            raise OrderRefused(answer.get("refused", "parent_away"))
        return str(answer["done"])

    @contextlib.asynccontextmanager
    async def follow(self) -> AsyncIterator["Line"]:
        """How the demonstration stands, again and again; the first time with the last minute. Raises `OSError`."""
        reader, writer = await asyncio.open_unix_connection(self._path, limit=LINE_BYTES_MAX)
        try:
            writer.write(_line({"do": "follow"}))
            yield Line(reader, writer)
        finally:
            writer.close()


class Line:
    """An open line to the parent."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def next(self) -> Json | None:
        """What is told next; None when the parent has gone."""
        try:
            said = await self._reader.readline()
        except (OSError, ValueError):
            return None
        return msgspec.json.decode(said, type=Json) if said else None

    def tell(self, figures: Json) -> None:
        """Say what the crowd has done; nobody waits for it."""
        if not self._writer.is_closing() and self._writer.transport.get_write_buffer_size() < LINE_BYTES_MAX:
            self._writer.write(_line({"do": "tell", "figures": figures}))


def _line(said: Mapping[str, object]) -> bytes:
    return msgspec.json.encode(said) + b"\n"
