"""What PostgreSQL holds, read by SQL of our own over an administrator's connection."""

import time

import asyncpg

from tests.blackbox.history import HoldRow, Witness
from tests.blackbox.server import Event, Product

DIGITS = {"available": "0", "held": "1", "sold": "2", "blocked": "3"}


async def read_witness(product: Product, event: Event) -> Witness:
    """Read all holds, seats and zones of the event, and which requests created holds, in one snapshot."""
    began = time.monotonic()
    conn = await asyncpg.connect(product.database_url)
    try:
        async with conn.transaction(isolation="repeatable_read", readonly=True):
            holds = await conn.fetch(
                "select id::text, user_id::text, coalesce(seat_id, zone_id)::text as place, quantity, status::text"
                "  from seat_holds where event_id = $1",
                event.event_id,
            )
            seats = await conn.fetch(
                "select seat_id::text, status::text, hold_id::text from event_seats"
                " where event_id = $1 order by ordinal",
                event.event_id,
            )
            zones = await conn.fetch("select zone_id::text, held from event_zones where event_id = $1", event.event_id)
            requests = await conn.fetch(
                "select distinct request_id::text from journal where event_id = $1 and kind = 'seat_reserved'",
                event.event_id,
            )
    finally:
        await conn.close()
    rows = [
        HoldRow(
            hold_id=row["id"], owner=row["user_id"], place=row["place"], quantity=row["quantity"], status=row["status"]
        )
        for row in holds
    ]
    return Witness(
        began=began,
        ended=time.monotonic(),
        holds={row.hold_id: row for row in rows},
        seat_statuses="".join(DIGITS[row["status"]] for row in seats),
        seat_holds={row["seat_id"]: row["hold_id"] for row in seats if row["hold_id"]},
        zone_held={row["zone_id"]: row["held"] for row in zones},
        request_ids=frozenset(row["request_id"] for row in requests),
    )
