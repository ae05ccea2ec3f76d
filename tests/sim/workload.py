"""Seeded trouble: somebody writes all the time while processes are killed at random."""

import asyncio
import os
import random
import signal
from dataclasses import dataclass, field
from pathlib import Path

from tests.make.processes import Installation, is_alive
from voelgoed import schema
from voelgoed.accounts import usecases
from voelgoed.db import Database
from voelgoed.embedded import Embedded
from voelgoed.errors import DomainError, OutcomeUnknown
from voelgoed.ids import new_id

VICTIMS = ("web-1", "worker", "valkey", "postgres", "parent")


def order_of_deaths(seed: int, steps: int) -> list[str]:
    """The same seed, the same victims."""
    chance = random.Random(seed)
    return [chance.choice(VICTIMS) for _ in range(steps)]


def kill(running: Installation, victim: str) -> None:
    """Without warning. A process that is being restarted at this moment is spared: it is dead already."""
    pid = running.process.pid if victim == "parent" else running.pids[victim]
    if is_alive(pid):
        os.kill(pid, signal.SIGKILL)


@dataclass(slots=True)
class Writer:
    """Founds organizations without a pause, and remembers what it was told about each."""

    data_dir: Path
    acknowledged: set[str] = field(default_factory=set)
    unknown: set[str] = field(default_factory=set)
    refused: set[str] = field(default_factory=set)

    async def run(self, stop: asyncio.Event) -> None:
        """Write until asked to stop; a refusal or a lost connection is remembered as what it was."""
        number = 0
        life = new_id().hex
        db = await Database.open(Embedded(self.data_dir).postgres_url(schema.APP), size=2, acquire_timeout_s=1)
        try:
            while not stop.is_set():
                number += 1
                slug = f"sim-{life}-{number}"
                try:
                    await usecases.found_organization(db, slug=slug, name="Sim")
                except OutcomeUnknown:
                    self.unknown.add(slug)
                except DomainError:
                    self.refused.add(slug)
                    await asyncio.sleep(0.02)
                else:
                    self.acknowledged.add(slug)
        finally:
            await db.close()
