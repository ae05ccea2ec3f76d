"""One idempotency key, one effect, one response: whatever the first response was, and however late a repeat arrives."""

import asyncio
from collections.abc import Awaitable, Callable

import httpx2
import pytest

from tests.http.test_holds import ask, data, hold_of, refusal, reserve, reserve_places, reserve_seats, seat_at
from tests.make import passing
from tests.make.accounts import Person, make_person
from tests.make.events import soon
from tests.make.holds import Sale, everything_of, on_sale
from tests.make.web import Site
from voelgoed.accounts.model import Organization
from voelgoed.db import Connection, Database
from voelgoed.holds import auditing, lane
from voelgoed.wiring import Services

Send = Callable[[], Awaitable[httpx2.Response]]


@pytest.fixture
async def anna(db: Database, place: Organization) -> Person:
    return await make_person(db, place)


@pytest.fixture
async def ben(db: Database, place: Organization) -> Person:
    return await make_person(db, place)


@pytest.fixture
async def sale(services: Services, place: Organization) -> Sale:
    return await on_sale(services, place)


async def release(site: Site, person: Person, hold_id: str) -> None:
    assert (await ask(site, person, "DELETE", f"/api/holds/{hold_id}")).status_code == 204
    passing.let(2)  # a process refuses on its own for a second after PostgreSQL has


async def reserve_with_key(site: Site, person: Person, sale: Sale, code: str, key: str) -> httpx2.Response:
    return await ask(site, person, "POST", f"{seat_at(sale, code)}/reserve", idempotency_key=key)


async def assert_remembered(sale: Sale, send: Send) -> None:
    """The same request gets the same status, code and holds, and changes nothing."""
    before = await everything_of(sale.db, sale.place.id)
    first, again = await send(), await send()
    assert again.status_code == first.status_code
    assert again.json().get("error") == first.json().get("error")
    assert await everything_of(sale.db, sale.place.id) == before


@pytest.mark.parametrize("is_single", [True, False], ids=["one seat", "several seats"])
async def test_already_yours_is_remembered(site: Site, sale: Sale, anna: Person, is_single: bool) -> None:  # noqa: FBT001
    """200 for an own hold. After its release the same request says the same of the same hold, and takes nothing."""
    hold_id = await hold_of(site, anna, sale, "S-A-1")

    async def send() -> httpx2.Response:
        if is_single:
            return await reserve_with_key(site, anna, sale, "S-A-1", "k")
        return await reserve_seats(site, anna, sale, "S-A-1", idempotency_key="k")

    first = data(await send(), 200)
    await release(site, anna, hold_id)
    again = data(await send(), 200)
    one, two = (first, again) if is_single else (first[0], again[0])
    assert (one["hold_id"], one["status"]) == (hold_id, "held")
    assert (two["hold_id"], two["status"]) == (hold_id, "cancelled")
    assert (await sale.row("S-A-1"))["status"] == "available"
    await assert_remembered(sale, send)


@pytest.mark.parametrize("is_single", [True, False], ids=["one seat", "several seats"])
async def test_a_refusal_is_remembered(site: Site, sale: Sale, anna: Person, ben: Person, is_single: bool) -> None:  # noqa: FBT001
    """The seat becomes free, and the same request is refused all the same; with a new key it is granted."""
    hold_id = await hold_of(site, ben, sale, "S-A-1")

    async def send(key: str = "k") -> httpx2.Response:
        if is_single:
            return await reserve_with_key(site, anna, sale, "S-A-1", key)
        return await reserve_seats(site, anna, sale, "S-A-1", "S-A-2", idempotency_key=key)

    first = await send()
    assert first.status_code == 409
    await release(site, ben, hold_id)
    again = await send()
    assert again.status_code == 409
    assert (again.json()["error"], again.json()["effect"]) == (first.json()["error"], "none")
    if not is_single:
        assert again.json()["details"] == first.json()["details"]
    await assert_remembered(sale, send)
    data(await send("another"), 201)


async def test_a_remembered_refusal_tells_nobody_else_that_the_seat_is_taken(
    site: Site, sale: Sale, anna: Person, ben: Person
) -> None:
    """The refusal is old: within the next second other buyers must still get the free seat."""
    hold_id = await hold_of(site, ben, sale, "S-A-1")
    assert (await reserve_with_key(site, anna, sale, "S-A-1", "k")).status_code == 409
    await release(site, ben, hold_id)
    assert (await reserve_with_key(site, anna, sale, "S-A-1", "k")).status_code == 409
    data(await reserve(site, ben, sale, "S-A-1"), 201)


async def test_general_admission_refusals_are_remembered(site: Site, sale: Sale, anna: Person) -> None:
    """More than one buyer may hold at once: refused, and refused again when there is room."""
    first = data(await reserve_places(site, anna, sale, 8), 201)

    async def send() -> httpx2.Response:
        return await reserve_places(site, anna, sale, 4, idempotency_key="k")

    refused = await send()
    assert refused.status_code in (409, 429)
    await release(site, anna, first["hold_id"])
    assert refusal(await send()) == refusal(refused)
    await assert_remembered(sale, send)


async def test_a_closed_sale_is_remembered(
    site: Site, services: Services, place: Organization, anna: Person, owner_conn: Connection
) -> None:
    """Refused before the sale opens, and refused with the same key after it has."""
    sale = await on_sale(services, place, sale_start_at=soon(hours=1), sale_end_at=soon(hours=2))

    async def send(key: str = "k") -> httpx2.Response:
        return await reserve_seats(site, anna, sale, "S-A-1", idempotency_key=key)

    assert refusal(await send()) == (400, "event_sales_closed")
    async with owner_conn.transaction():
        await owner_conn.execute("select set_config('app.organization_id', $1, true)", str(place.id))
        await owner_conn.execute(
            "update events set sale_start_at = $2, version = version + 1 where id = $1", sale.event.id, soon(hours=-1)
        )
    assert refusal(await send()) == (400, "event_sales_closed")
    await assert_remembered(sale, send)
    data(await send("another"), 201)


async def test_a_late_first_attempt_follows_its_retry(site: Site, sale: Sale, anna: Person, ben: Person) -> None:
    """A process was frozen, the client gave up and sent the request again, and that was refused.

    When the first attempt reaches PostgreSQL at last, it gets the refusal too and holds nothing.
    """
    hold_id = await hold_of(site, ben, sale, "S-A-2")
    assert (await reserve_seats(site, anna, sale, "S-A-1", "S-A-2", idempotency_key="k")).status_code == 409
    await release(site, ben, hold_id)
    late = await reserve_seats(site, anna, sale, "S-A-1", "S-A-2", idempotency_key="k")
    assert late.status_code == 409
    assert {(await sale.row(code))["status"] for code in ("S-A-1", "S-A-2")} == {"available"}


async def test_nothing_is_remembered_of_a_request_that_was_not_decided(
    site: Site, sale: Sale, anna: Person, owner_conn: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another transaction has the seat's row for good: 503 with no effect, and the key is free for the next attempt."""
    monkeypatch.setattr(lane, "ROUND_WAIT_S", 0.001)
    async with owner_conn.transaction():
        await owner_conn.execute("set local role voelgoed_registry")
        await owner_conn.execute("select set_config('app.scope', 'system', true)")
        await owner_conn.execute(
            "select from event_seats where event_id = $1 and seat_id = $2 for no key update",
            sale.event.id,
            sale.seat("S-A-1"),
        )
        busy = await reserve_seats(site, anna, sale, "S-A-1", idempotency_key="k")
    assert refusal(busy) == (503, "busy")
    assert (busy.json()["effect"], busy.headers["retry-after"]) == ("none", "1")
    data(await reserve_seats(site, anna, sale, "S-A-1", idempotency_key="k"), 201)


async def test_one_seat_takes_a_key_too(site: Site, sale: Sale, anna: Person, ben: Person) -> None:
    """Repeated: the same 201 with the same hold. For another seat: 422. Another buyer's key is another key."""
    first = data(await reserve_with_key(site, anna, sale, "S-A-1", "k"), 201)
    again = data(await reserve_with_key(site, anna, sale, "S-A-1", "k"), 201)
    assert again["hold_id"] == first["hold_id"]
    assert refusal(await reserve_with_key(site, anna, sale, "S-A-2", "k")) == (422, "idempotency_key_reused")
    data(await reserve_with_key(site, ben, sale, "S-A-2", "k"), 201)
    assert refusal(await reserve_with_key(site, ben, sale, "S-A-3", "two words")) == (400, "invalid_request")
    assert len(await sale.rows()) == 2
    assert await auditing.verify(sale.db, organization_id=sale.place.id) == []


async def test_one_key_sent_many_times_at_once(site: Site, sale: Sale, anna: Person, ben: Person) -> None:
    """Granted or refused, every repeat gets the same response, among requests without keys."""
    await hold_of(site, ben, sale, "S-A-3")
    sent = [reserve_seats(site, anna, sale, "S-A-1", "S-A-2", idempotency_key="granted") for _ in range(6)]
    sent += [reserve_seats(site, anna, sale, "S-A-3", "S-A-4", idempotency_key="refused") for _ in range(6)]
    sent += [reserve(site, ben, sale, code) for code in ("S-B-1", "S-B-2")]
    said = await asyncio.gather(*sent)
    assert {answer.status_code for answer in said[:6]} == {201}
    assert len({tuple(one["hold_id"] for one in answer.json()["data"]) for answer in said[:6]}) == 1
    assert {refusal(answer) for answer in said[6:12]} == {(409, "seats_refused")}
    assert [answer.status_code for answer in said[12:]] == [201, 201]
    assert (await sale.row("S-A-4"))["status"] == "available"


async def test_a_key_of_the_release_before_is_understood(
    site: Site, sale: Sale, anna: Person, owner_conn: Connection
) -> None:
    """It remembers the holds only: the repeat gets them, and nothing new."""
    first = data(await reserve_seats(site, anna, sale, "S-A-1", "S-A-2", idempotency_key="old"), 201)
    ids = [one["hold_id"] for one in first]
    remembered = "update idempotency_keys set result = jsonb_build_object('hold_ids', $1::text[]) where key = 'old'"
    async with owner_conn.transaction():
        await owner_conn.execute("select set_config('app.organization_id', $1, true)", str(sale.place.id))
        assert await owner_conn.execute(remembered, ids) == "UPDATE 1"
    again = data(await reserve_seats(site, anna, sale, "S-A-1", "S-A-2", idempotency_key="old"), 201)
    assert [one["hold_id"] for one in again] == ids
