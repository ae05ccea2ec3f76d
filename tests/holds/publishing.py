"""A process that publishes an event, to be killed in the middle of it.

As a program: `python -m tests.holds.publishing <database url> <organization id> <event id> <seats per piece>`. For each
piece that is there for good it says "piece", and goes on at a line on its standard input.
"""

import asyncio
import sys
from typing import Any
from unittest.mock import patch
from uuid import UUID

from voelgoed.cache import Cache
from voelgoed.db import Database
from voelgoed.events.model import OPERATOR, Order, Verb
from voelgoed.holds import inventory, store
from voelgoed.ids import OrganizationId
from voelgoed.redis import RedisLink
from voelgoed.seating.studio import Studio


async def publish(url: str, organization_id: OrganizationId, event_id: UUID, seats: int) -> None:
    db = await Database.open(url)
    add, begun = store.add_seats, 0

    async def telling(*given: Any) -> None:
        """In the transaction of the next piece: those before it are committed."""
        nonlocal begun
        if begun:
            print("piece", flush=True)
            await asyncio.to_thread(sys.stdin.readline)
        begun += 1
        await add(*given)

    studio = Studio(db, Cache(link=RedisLink("redis://127.0.0.1:1")))  # nothing is read from it
    with patch.object(store, "add_seats", telling), patch.object(inventory, "SEATS_PER_PIECE", seats):
        await inventory.publish(studio, organization_id, event_id, Order(verb=Verb.PUBLISH), by=OPERATOR)
    print("published", flush=True)
    await db.close()


if __name__ == "__main__":
    asyncio.run(publish(sys.argv[1], OrganizationId(UUID(sys.argv[2])), UUID(sys.argv[3]), int(sys.argv[4])))
