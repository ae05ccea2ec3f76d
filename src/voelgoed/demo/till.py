"""Where the crowd pays, and gives tickets back: by the engine's own functions, because there is no checkout yet.

Everything else a crowd does goes through HTTP like anybody's. Its baskets have a mark, so that nobody else's ticket is
ever given back.
"""

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from voelgoed.db import Database
from voelgoed.events.model import Teller
from voelgoed.holds import registry
from voelgoed.ids import OrganizationId, new_id

MARK: Final = "crowd-"
CROWD: Final = Teller(actor_type="demo")
SOLD: Final = "sold"

OLDEST: Final = """
select t.id
  from tickets t
  join seat_holds h on h.id = t.hold_id
 where t.organization_id = $1 and t.event_id = $2 and t.status = 'valid' and starts_with(h.cart_token, $3)
 order by t.created_at
 limit $4
"""


class Till:
    """The crowd's own; a handful of connections."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def pay(
        self, organization_id: OrganizationId, event_id: UUID, user_id: UUID, holds: Sequence[UUID], places: int
    ) -> bool:
        """Make tickets of holds, all or nothing; whether there are any."""
        said = await registry.convert(
            self._db,
            organization_id,
            event_id,
            user_id,
            holds,
            tickets=[new_id() for _ in range(places)],
            order_id=new_id(),
            is_paid=False,
            by=CROWD,
        )
        return said == SOLD

    async def take_back(self, organization_id: OrganizationId, event_id: UUID, many: int) -> int:
        """Take the oldest tickets of the crowd back; how many."""
        async with self._db.transaction(organization_id) as conn:
            rows = await conn.fetch(OLDEST, organization_id, event_id, MARK, many)
        for row in rows:
            await registry.void(
                self._db, organization_id, event_id, row["id"], by=CROWD, reason="given back in the demonstration"
            )
        return len(rows)
