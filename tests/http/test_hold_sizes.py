"""How much one request may name: seats and places to hold, seats to block, letters of a basket's name."""

from typing import Any

import httpx2
import pytest

from tests.make.accounts import Person, make_organization, make_person
from tests.make.holds import Sale, on_sale
from tests.make.races import hall_layout, seat_ids
from tests.make.web import Site
from voelgoed.accounts.model import Role
from voelgoed.ids import new_id
from voelgoed.wiring import Services

INVALID = (400, "invalid_request")


@pytest.fixture
async def sale(services: Services) -> Sale:
    place = await make_organization(services.db)
    return await on_sale(services, place, layout=hall_layout(seats=41, pits=[41]))


async def post(site: Site, sale: Sale, path: str, body: dict[str, Any], role: Role) -> httpx2.Response:
    person: Person = await make_person(sale.db, sale.place, role)
    return await site.client.post(path, headers=person.headers, json=body)


def refusal(answer: httpx2.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]


@pytest.mark.parametrize("count", [39, 40, 41])
@pytest.mark.parametrize("kind", ["seats", "places"])
async def test_request_holds_forty_at_most(site: Site, sale: Sale, kind: str, count: int) -> None:
    """Staff, who have no other limit, hold forty with one request. Of forty-one nothing is held."""
    body: dict[str, Any]
    if kind == "seats":
        path, body = "holds", {"seat_ids": [str(seat) for seat in seat_ids(sale.seated, count)]}
    else:
        path, body = f"zones/{sale.zone('P1')}/reserve", {"quantity": count}
    answer = await post(site, sale, f"/api/events/{sale.event.id}/{path}", body, Role.STAFF)
    if count <= 40:
        assert answer.status_code == 201
    else:
        assert refusal(answer) == INVALID
    held = sum(row["quantity"] for row in await sale.rows())
    assert held == (count if count <= 40 else 0)


@pytest.mark.parametrize("count", [999, 1_000, 1_001])
@pytest.mark.parametrize("verb", ["block", "unblock"])
async def test_request_blocks_a_thousand_at_most(site: Site, sale: Sale, verb: str, count: int) -> None:
    seats = [str(sale.seated.hall.seat_id(0)), *(str(new_id()) for _ in range(count - 1))]
    path = f"/api/admin/events/{sale.event.id}/seats/{verb}"
    answer = await post(site, sale, path, {"seat_ids": seats, "reason": "a camera"}, Role.OWNER)
    if count > 1_000:
        assert refusal(answer) == INVALID
        return
    said = [one["outcome"] for one in answer.json()["data"]]
    assert said == ["done" if verb == "block" else "not_blocked"] + ["seat_not_found"] * (count - 1)


@pytest.mark.parametrize("length", [0, 1, 255, 256])
async def test_name_of_a_basket_has_a_length(site: Site, sale: Sale, length: int) -> None:
    path = f"/api/events/{sale.event.id}/seats/{sale.seated.hall.seat_id(0)}/reserve"
    answer = await post(site, sale, path, {"cart_token": "x" * length}, Role.CUSTOMER)
    if 1 <= length <= 255:
        assert answer.status_code == 201
        assert answer.json()["data"]["cart_token"] == "x" * length
    else:
        assert refusal(answer) == INVALID
