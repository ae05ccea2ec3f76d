"""Clients that have gone before their request was begun: nothing is done for them."""

import socket
from collections.abc import Callable

import httpx2
import pytest

from tests.http.test_holds import seat_at
from tests.http.test_wire import GET, Counter, Place, hello, listening, on_uvloop, until
from tests.make.accounts import make_person
from tests.make.holds import Sale, on_sale
from tests.make.web import Site
from voelgoed.accounts.model import Organization
from voelgoed.holds.model import Ask
from voelgoed.holds.waiting import Said, Waiting
from voelgoed.http import wire
from voelgoed.http.exchange import Exchange
from voelgoed.wiring import Services


def send(place: Place, *, is_gone: bool) -> socket.socket:
    """Connect, send a request and perhaps hang up, all before the server has a turn."""
    client = socket.create_connection(("127.0.0.1", place.port))
    client.sendall(GET)
    if is_gone:
        client.close()
    return client


@pytest.mark.parametrize("frozen_s", [wire.FROZEN_S - 0.5, wire.FROZEN_S + 0.5])
@on_uvloop
async def test_requests_of_clients_that_gave_up_are_dropped_after_a_freeze(frozen_s: float) -> None:
    """The process did not run for a while. Who waits is served; who hung up meanwhile is not.

    Otherwise a hung-up client may simply have closed its half of the connection, and is served.
    """
    counter = Counter()
    async with listening(counter) as place:
        send(place, is_gone=True)
        with send(place, is_gone=False):
            place.house.now -= frozen_s
            await until(lambda: counter.seen)
            await until(lambda: len(place.house.lines) <= 1)
    assert len(counter.seen) == (1 if frozen_s > wire.FROZEN_S else 2)


@on_uvloop
async def test_what_is_read_later_is_looked_at_too() -> None:
    """It takes more than one turn of the loop to read everything that has come during a freeze."""
    counter = Counter()
    async with listening(counter) as place:
        place.house.now -= wire.FROZEN_S + 0.5
        assert place.house._timer is not None
        place.house._timer.cancel()
        place.house._sweep()
        assert place.house.was_frozen()
        send(place, is_gone=True)
        with send(place, is_gone=False):
            await until(lambda: counter.seen)
            await until(lambda: len(place.house.lines) <= 1)
    assert len(counter.seen) == 1


@on_uvloop
async def test_a_process_that_runs_was_not_frozen() -> None:
    async with listening(hello) as place:
        await (await place.call()).ask(GET)
        assert not place.house.was_frozen()


@pytest.fixture
async def sale(services: Services, place: Organization) -> Sale:
    return await on_sale(services, place)


@pytest.mark.parametrize("is_single", [True, False], ids=["one seat", "several seats"])
async def test_a_request_whose_client_has_gone_is_not_queued(
    site: Site,
    sale: Sale,
    services: Services,
    monkeypatch: pytest.MonkeyPatch,
    is_single: bool,  # noqa: FBT001
) -> None:
    """Whatever the edge had to wait for first: it looks again before the route begins."""
    queued: list[object] = []
    put = services.lanes.put

    def counted(ask: Ask, tell: Callable[[Said], None]) -> Waiting | None:
        queued.append(ask)
        return put(ask, tell)

    monkeypatch.setattr(services.lanes, "put", counted)
    buyer = await make_person(sale.db, sale.place)
    url = f"{seat_at(sale, 'S-A-1')}/reserve" if is_single else f"/api/events/{sale.event.id}/holds"
    body = {} if is_single else {"seat_ids": [str(sale.seat("S-A-1"))]}
    with monkeypatch.context() as patched, pytest.raises(httpx2.TransportError):
        patched.setattr(Exchange, "is_open", property(lambda _: False))
        await site.client.post(url, json=body, headers=buyer.headers)
    assert queued == []
    assert (await site.client.post(url, json=body, headers=buyer.headers)).status_code == 201
    assert len(queued) == 1
