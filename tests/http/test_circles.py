"""A request leaves nothing behind that only the collector finds: in a crowd that would be most of what there is."""

import asyncio
import contextlib
import gc
from collections import Counter
from collections.abc import Iterator

from tests.make.accounts import make_person
from tests.make.holds import Sale
from tests.make.web import Site
from voelgoed.accounts.model import Organization
from voelgoed.db import Database
from voelgoed.http.exchange import Exchange
from voelgoed.http.wire import Line

TIMES = 5


@contextlib.contextmanager
def collecting() -> Iterator[Counter[type]]:
    """How many of each kind were in circles that nobody knew any more; known at the end of the block."""
    found: Counter[type] = Counter()
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        yield found
        gc.collect()
        found.update(type(one) for one in gc.garbage)
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()


async def test_a_refused_ask_leaves_no_circle(site: Site, db: Database, place: Organization, sale: Sale) -> None:
    """Whether the seat is another's, one of a group is, who asks was not known before, or there is no such address."""
    first, seat = await make_person(db, place), sale.seat("S-A-1")
    reserve = f"/api/events/{sale.event.id}/seats/{seat}/reserve"
    assert (await site.client.post(reserve, headers=first.headers)).status_code == 201
    others = [await make_person(db, place) for _ in range(TIMES)]
    group = {"seat_ids": [str(seat), str(sale.seat("S-A-2"))]}
    with collecting() as found:
        for one in others:
            for _ in range(2):
                assert (await site.client.post(reserve, headers=one.headers)).status_code == 409
            several = await site.client.post(f"/api/events/{sale.event.id}/holds", json=group, headers=one.headers)
            assert several.status_code == 409
            assert (await site.client.get("/api/none", headers=one.headers)).status_code == 404
    assert found[Exchange] == 0


async def test_a_line_that_is_gone_leaves_no_circle(site: Site) -> None:
    """However many come and go."""
    host, port = site.address.removeprefix("http://").split(":")
    with collecting() as found:
        for _ in range(TIMES):
            reader, writer = await asyncio.open_connection(host, int(port))
            writer.write(b"GET /healthz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
            assert (await reader.read()).startswith(b"HTTP/1.1 200")
            writer.close()
            await writer.wait_closed()
        assert (await site.client.get("/healthz")).status_code == 200  # a turn more: the others are gone by now
    assert found[Line] == found[Exchange] == 0
