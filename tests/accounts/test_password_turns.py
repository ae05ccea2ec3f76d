"""Turns at the hashing threads: no network keeps another waiting or out, and every queue has an end."""

import asyncio
import threading
from collections.abc import AsyncIterator
from functools import partial
from typing import Any
from uuid import UUID

import pytest

from tests.make.accounts import PASSWORD, make_organization
from voelgoed.accounts import passwords as module, signing, tokens, usecases
from voelgoed.accounts.attempts import RateLimited
from voelgoed.accounts.model import ANONYMOUS, Actor, Call, Role
from voelgoed.accounts.passwords import THREADS, Passwords
from voelgoed.db import Database
from voelgoed.errors import Busy
from voelgoed.ids import new_id
from voelgoed.wiring import Services


class Hashing:
    """Passwords whose hashes take until the test lets them go on. `begun` is the order in which threads got them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **limits: int) -> None:
        self.passwords = Passwords(**limits)
        self.begun: list[str] = []
        self.go_on = threading.Event()
        self._submit = self.passwords._threads.submit
        monkeypatch.setattr(self.passwords._threads, "submit", self._note)
        monkeypatch.setattr(module, "_verify", lambda _hash, _password: self.go_on.wait(60))

    def _note(self, work: "partial[bool]") -> Any:
        self.begun.append(work.args[1])
        return self._submit(work)

    async def ask(self, network: str, count: int = 1) -> list[asyncio.Task[bool]]:
        """Ask so many times, one after the other; the name of the network is the password."""
        tasks = []
        for _ in range(count):
            tasks.append(asyncio.create_task(self.passwords.verify(None, network, network=network)))
            await asyncio.sleep(0)
        return tasks

    async def occupy(self) -> None:
        """Keep every thread busy."""
        await self.ask("busy", THREADS)
        assert self.begun == ["busy"] * THREADS
        self.begun.clear()

    def waiting(self) -> dict[str, int]:
        return {network: len(queue) for network, queue in self.passwords._queues.items()}


@pytest.fixture
async def hashing(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> AsyncIterator[Hashing]:
    made = Hashing(monkeypatch, **getattr(request, "param", {}))
    await made.occupy()
    yield made
    made.go_on.set()
    made.passwords.close()


def refused(task: asyncio.Task[bool]) -> type[BaseException] | None:
    failed = task.exception() if task.done() else None
    return type(failed) if failed else None


@pytest.mark.parametrize("attackers", [1, 2, 4])
async def test_a_sign_in_waits_for_one_hash_of_each_other_network(hashing: Hashing, attackers: int) -> None:
    """However many those have waiting; and the network's next one waits for one more of each."""
    others = [f"attacker {number}" for number in range(attackers)]
    for network in others:
        await hashing.ask(network, 15)
    visitors = await hashing.ask("visitor", 2)
    hashing.go_on.set()
    await asyncio.gather(*visitors)
    assert hashing.begun[: 2 * attackers + 2] == [*others, "visitor"] * 2


@pytest.mark.parametrize("hashing", [{"waiting_per_network_max": 3}], indirect=True)
async def test_a_network_has_so_many_waiting_and_no_more(hashing: Hashing) -> None:
    """The request over the limit learns when to retry. Other networks are not affected."""
    three = await hashing.ask("office", 3)
    (over,) = await hashing.ask("office")
    assert isinstance(over.exception(), RateLimited)
    assert over.exception().facts == {"retry_after_s": 1}  # type: ignore[union-attr]
    (other,) = await hashing.ask("home")
    assert [refused(task) for task in (*three, other)] == [None] * 4
    hashing.go_on.set()
    await asyncio.gather(*three, other)
    assert await asyncio.gather(*await hashing.ask("office", 3)) == [False] * 3  # every password is wrong


@pytest.mark.parametrize("hashing", [{"waiting_max": 4}], indirect=True)
async def test_the_longest_queue_makes_room_when_all_is_full(hashing: Hashing) -> None:
    """For a network with at least two fewer; the last one to come gives way, and no network loses its only one."""
    a, b = await hashing.ask("a", 2), await hashing.ask("b", 2)
    (c,) = await hashing.ask("c")
    await asyncio.wait({a[1]})
    assert [refused(task) for task in (*a, *b, c)] == [None, RateLimited, None, None, None]
    (c_again,) = await hashing.ask("c")
    assert refused(c_again) is Busy
    (d,) = await hashing.ask("d")
    await asyncio.wait({b[1]})
    assert [refused(task) for task in (*b, d)] == [None, RateLimited, None]
    (e,) = await hashing.ask("e")
    assert refused(e) is Busy
    assert hashing.waiting() == dict.fromkeys("abcd", 1)


async def test_requests_that_are_gone_wait_no_longer(hashing: Hashing) -> None:
    """They give their place back at once, and nothing is computed for them."""
    first, second = await hashing.ask("visitor", 2)
    (alone,) = await hashing.ask("another")
    first.cancel()
    alone.cancel()
    await asyncio.wait({first, alone})
    assert hashing.waiting() == {"visitor": 1}
    hashing.go_on.set()
    await second
    assert hashing.begun == ["visitor"]


async def test_a_request_that_is_cancelled_while_it_runs_keeps_its_thread(hashing: Hashing) -> None:
    """No more hashes run than there are threads, even when clients hang up."""
    hashing.go_on.set()
    await hashing.passwords.verify(None, "warm", network="warm")
    hashing.go_on.clear()
    running = await hashing.ask("gone", THREADS)
    for task in running:
        task.cancel()
    await asyncio.wait(running)
    (waiting,) = await hashing.ask("visitor")
    assert hashing.waiting() == {"visitor": 1}
    hashing.go_on.set()
    await waiting


async def test_what_fails_is_told_and_the_next_one_runs(hashing: Hashing, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread that had bad luck goes on."""

    def out_of_memory(_hash: str, _password: str) -> bool:
        raise MemoryError

    monkeypatch.setattr(module, "_verify", out_of_memory)
    (failed,) = await hashing.ask("a")
    monkeypatch.setattr(module, "_verify", lambda _hash, _password: True)
    (other,) = await hashing.ask("b")
    hashing.go_on.set()
    await asyncio.wait({failed, other})
    assert (refused(failed), refused(other)) == (MemoryError, None)


async def test_nothing_waits_for_a_closed_hasher(hashing: Hashing) -> None:
    """The end of a process is not kept up by a queue."""
    (waiting,) = await hashing.ask("visitor")
    hashing.passwords.close()
    await asyncio.wait({waiting})
    assert waiting.cancelled()


async def test_every_way_to_a_password_takes_the_turn_of_its_network(
    services: Services, db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Registering, signing in, changing a password and resetting it: a queue that one of them avoids is none."""
    taken: list[str] = []
    in_turn = Passwords._in_turn

    async def noted(self: Passwords, network: str, work: object) -> object:
        taken.append(network)
        return await in_turn(self, network, work)  # type: ignore[arg-type]

    monkeypatch.setattr(Passwords, "_in_turn", noted)
    door, place, email = services.door, await make_organization(db), f"{new_id().hex}@example.test"
    call = Call(actor=ANONYMOUS, request_id=new_id(), ip="2001:db8:0:ab::7")
    about = {"organization": place.slug, "email": email, "password": PASSWORD}
    made = await signing.register(door, call, **about, name="A", locale="en")
    await signing.login(door, call, **about, inherit=_nothing)
    actor = Actor(role=Role.CUSTOMER, user_id=made.user.id, organization_id=place.id, session_id=new_id())
    signed_in = Call(actor=actor, request_id=new_id(), ip=call.ip)
    await usecases.change_password(door, signed_in, current=PASSWORD, new="another good password")
    await signing.request_password_reset(door, call, organization=place.slug, email=email)
    async with db.system_transaction() as conn:
        token_id: UUID = await conn.fetchval(
            "select id from one_time_tokens where user_id = $1 order by id desc limit 1", made.user.id
        )
    await signing.reset_password(
        door, call, token=tokens.one_time_token(door.secret_key, token_id), password="a third password"
    )
    assert taken == ["2001:db8::/56"] * 5


async def _nothing(*_: object) -> None:
    """There is no guest whose holds could be inherited."""
