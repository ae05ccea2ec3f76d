"""Kills while guests sign in: what somebody holds is all the guest's or all the account's, and every tier knows whose.

Two web processes and a worker, asked over HTTP. Sessions inside PostgreSQL are ended all the while, a web process is
killed in the middle of it; whoever is told nothing signs in again.
"""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from dataclasses import dataclass
from uuid import UUID

import httpx2
import pytest

from tests.make.accounts import PASSWORD, make_person
from tests.sim.shop import Shop, end_a_backend, shop
from voelgoed.accounts.passwords import Passwords
from voelgoed.config import Settings
from voelgoed.embedded import Embedded
from voelgoed.holds.projection import Projection
from voelgoed.redis import RedisLink

pytestmark = [pytest.mark.alone, pytest.mark.timeout(180)]
GUESTS = 24
AT_ONCE = 4
SEATS_EACH = 3
KILL_EVERY_S = 0.1
TRIES_MAX = 100
AGAIN_S = 0.05


@dataclass(frozen=True, slots=True)
class Basket:
    """What a guest holds, and whose it may be."""

    holds: tuple[UUID, ...]
    owners: frozenset[UUID]


@pytest.fixture
async def stall(servers: Embedded, settings: Settings, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Shop]:
    async with shop(servers, settings, tmp_path_factory.mktemp("signing"), f"signing_{settings.port}") as opened:
        yield opened


async def insist(client: httpx2.AsyncClient, path: str, body: object, token: str = "") -> httpx2.Response:
    """Ask until there is an answer that is not about trouble."""
    headers = {"authorization": f"Bearer {token}"} if token else {}
    for _ in range(TRIES_MAX):
        try:
            answer = await client.post(path, json=body, headers=headers)
        except httpx2.HTTPError:
            await asyncio.sleep(AGAIN_S)
            continue
        if answer.status_code < 500:
            return answer
        await asyncio.sleep(AGAIN_S)
    raise AssertionError(f"{path} was never answered")


async def come_and_sign_in(
    stall: Shop, client: httpx2.AsyncClient, number: int, email: str, user_id: UUID, known: list[Basket]
) -> None:
    """A guest takes seats and places, then signs in, however often that takes."""
    guest = (await insist(client, "/api/auth/guest", {"organization": stall.organization.slug})).json()["data"]
    first = number * SEATS_EACH
    seats = [str(stall.seated.hall.seat_id(ordinal)) for ordinal in range(first, first + SEATS_EACH)]
    taken = await insist(client, f"{stall.places}/holds", {"seat_ids": seats}, guest["token"])
    assert taken.is_success, taken.text
    holds = tuple(UUID(one["hold_id"]) for one in taken.json()["data"])
    known.append(Basket(holds, frozenset({UUID(guest["user"]["id"]), user_id})))
    about = {"organization": stall.organization.slug, "email": email, "password": PASSWORD}
    signed_in = await insist(client, "/api/auth/login", about, guest["token"])
    assert signed_in.status_code == 201, signed_in.text
    stall.told.held.update(dict.fromkeys(holds, user_id))


async def hurt(stall: Shop, servers: Embedded, name: str, known: list[Basket], stop: asyncio.Event) -> None:
    """End sessions inside PostgreSQL and once a process, and look whether anything is ever half handed over."""
    victim = next(pid for process, pid in stall.tree.pids().items() if process.startswith("web"))
    rounds = 0
    while not stop.is_set():
        rounds += 1
        await end_a_backend(servers, name, stall.chance)
        if rounds == 10:
            os.kill(victim, signal.SIGKILL)
        await look(stall, known)
        await asyncio.sleep(KILL_EVERY_S)
    assert rounds > 10


async def look(stall: Shop, known: list[Basket]) -> None:
    baskets = list(known)
    async with stall.db.transaction(stall.organization.id) as conn:
        rows = await conn.fetch("select id, user_id from seat_holds where status = 'active'")
    owners = {row["id"]: row["user_id"] for row in rows}
    for basket in baskets:
        whose = {owners[hold] for hold in basket.holds}
        assert len(whose) == 1, "half of it was handed over"
        assert whose <= basket.owners


async def test_nothing_is_handed_over_half(stall: Shop, servers: Embedded, settings: Settings) -> None:
    """Whatever dies: in the end every account has what its guest held, and every tier says so."""
    passwords = Passwords()
    password_hash = await passwords.hash(PASSWORD)
    passwords.close()
    people = [await make_person(stall.db, stall.organization, password_hash=password_hash) for _ in range(GUESTS)]
    known: list[Basket] = []
    stop, turn = asyncio.Event(), asyncio.Semaphore(AT_ONCE)
    async with httpx2.AsyncClient(base_url=stall.address, timeout=20) as client:

        async def visit(number: int) -> None:
            async with turn:
                email, user_id = people[number].email or "", people[number].user_id
                await come_and_sign_in(stall, client, number, email, user_id, known)

        hurting = asyncio.create_task(hurt(stall, servers, f"signing_{settings.port}", known, stop))
        await asyncio.gather(*(visit(number) for number in range(GUESTS)))
        stop.set()
        await hurting
    stall.told.lost_count = GUESTS * SEATS_EACH  # answers that never came may have left a guest with a hold
    await look(stall, known)
    await stall.audit()
    await stall.agree()
    async with RedisLink(stall.redis.url, connect_timeout_s=2, call_timeout_s=5) as link:
        projection = Projection(link)
        for number, person in enumerate(people):
            seat_id = stall.seated.hall.seat_id(number * SEATS_EACH)
            projection.believe(0)  # whatever stands there
            warm = await projection.read_hold(stall.organization.id, stall.seated.event.id, seat_id)
            assert warm is not None
            assert warm.user_id == person.user_id
            for _ in range(2):  # a connection of its own each time: now one process answers, now the other
                async with httpx2.AsyncClient(base_url=stall.address, timeout=20) as client:
                    seen = await client.get(f"{stall.places}/seats/{seat_id}", headers=person.headers)
                assert seen.json()["data"]["own_hold_id"] == str(warm.hold_id)
