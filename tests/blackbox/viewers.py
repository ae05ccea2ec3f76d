"""Clients that watch the seat map: one kind polls it, the other follows the live stream."""

import asyncio
import contextlib
import json
from dataclasses import dataclass, field
from typing import Any

from tests.blackbox.calls import Caller, digits_of
from tests.blackbox.http_client import Client, NoAnswer, NotSent

RECONNECT_S = 0.5
POLL_S = 0.5


@dataclass(slots=True)
class Viewer:
    """A client of the live stream that keeps the map as a browser does."""

    client: Client
    event_id: str
    digits: list[str] = field(default_factory=list)
    version: tuple[int, int] = (0, 0)
    """Epoch and version of the map that is shown."""
    last_id: str = ""
    has_resync: bool = False
    errors: list[str] = field(default_factory=list)

    @property
    def statuses(self) -> str:
        return "".join(self.digits)

    async def follow(self) -> None:
        """Follow the stream and reconnect when it breaks, until cancelled."""
        while True:
            headers = {"last-event-id": self.last_id} if self.last_id else {}
            with contextlib.suppress(NotSent, NoAnswer):
                async for frame in self.client.stream(f"/api/events/{self.event_id}/stream", headers):
                    self.show(frame)
            await asyncio.sleep(RECONNECT_S)

    def show(self, frame: dict[str, str]) -> None:
        """Apply one frame. A snapshot older than what is shown is an error, unless a resync announced it."""
        kind, data = frame.get("event", ""), json.loads(frame.get("data", "{}"))
        if kind == "resync":
            self.has_resync = True
        elif kind == "snapshot":
            self._replace(data)
        elif kind == "delta" and data["map_version"] > self.version[1]:
            for ordinal, digit in zip(data["seats"], data["statuses"], strict=True):
                self.digits[ordinal] = digit
            self.version = self.version[0], data["map_version"]
        self.last_id = frame.get("id", self.last_id)

    def _replace(self, data: dict[str, Any]) -> None:
        version = data["epoch"], data["map_version"]
        if version < self.version and not self.has_resync:
            self.errors.append(f"the stream went back from {self.version} to {version} without a resync")
        self.digits = list(digits_of(data["statuses"], data["seat_count"]))
        self.version, self.has_resync = version, False


async def poll(caller: Caller, is_over: asyncio.Event) -> None:
    """Read the map and the readiness, each on a new connection now and then, until the load is over."""
    rounds = 0
    while not is_over.is_set():
        await caller.read_map()
        await caller.read_readiness()
        rounds += 1
        if rounds % 4 == 0:
            caller.client.close()  # the next connection may go to the other web process
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(is_over.wait(), POLL_S)
