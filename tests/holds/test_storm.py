"""A thousand open connections, released at one moment: a seat has one holder, and nobody half of a group."""

import asyncio
import contextlib
import json
import random
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

import pytest

from tests.conftest import SECRET_KEY, TEMPLATE
from tests.make.accounts import make_organization
from tests.make.processes import free_port, wait_until
from tests.make.races import database_alone, hall_layout, make_crowd, seat_ids
from tests.make.seating import Seated, seat_rows, seated_event, zone_rows
from voelgoed import schema
from voelgoed.accounts.model import Organization
from voelgoed.cache import Cache
from voelgoed.cli.tree import Tree, raise_open_files_limit
from voelgoed.config import Settings
from voelgoed.db import Database
from voelgoed.embedded import Embedded
from voelgoed.holds import auditing
from voelgoed.redis import RedisLink
from voelgoed.seating.studio import Studio
from voelgoed.telemetry import metrics

pytestmark = pytest.mark.alone
CROWD = 1_000
ASKED_AGAIN_MAX = 5
SEED = 7
LAST_PLACES = 7
GROUP_SEATS = 150
TAKEN = {"seat_held_by_another_user", "seat_no_longer_available"}


@dataclass(frozen=True, slots=True)
class Answer:
    """What one of the crowd was told."""

    status: int
    body: dict[str, Any]

    @property
    def code(self) -> str | None:
        return self.body.get("error")


@dataclass(slots=True)
class Doors:
    """Where the crowd stands: an installation with web processes, and the way into its database."""

    db: Database
    studio: Studio
    address: str
    web_pids: Sequence[int]

    async def hall(self, **layout: Any) -> tuple[Organization, Seated]:
        """An event on sale, and whose it is."""
        place = await make_organization(self.db)
        return place, await seated_event(self.db, self.studio, place, hall_layout(**layout), status="published")

    def sockets(self) -> list[int]:
        """How many connections each web process has open."""
        return [len([link for link in Path(f"/proc/{pid}/fd").iterdir() if _is_socket(link)]) for pid in self.web_pids]


def _is_socket(link: Path) -> bool:
    try:
        return str(link.readlink()).startswith("socket:")
    except OSError:
        return False


@pytest.fixture(scope="module", params=[1, 2], ids=["one_process", "two_processes"])
async def doors(
    request: pytest.FixtureRequest, servers: Embedded, settings: Settings, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Doors]:
    """One web process, or two that share a port, with a worker beside them and a database of their own."""
    raise_open_files_limit()
    folder = tmp_path_factory.mktemp("storm")
    key = folder / "secret.key"
    key.write_bytes(SECRET_KEY)
    name = f"storm_{request.param}_{settings.port}"
    async with contextlib.AsyncExitStack() as open_ones:
        alone = await open_ones.enter_async_context(database_alone(servers, settings, TEMPLATE, name))
        chosen = {"workers": request.param, "port": free_port(), "data_dir": folder, "secret_key_file": key}
        tree = Tree(alone.model_copy(update=chosen), metrics.prepare_folder(folder))
        with pytest.MonkeyPatch.context() as environment:
            environment.setenv("VOELGOED_UNSAFE_DATABASE", "1")
            environment.setenv("VOELGOED_LOG_LEVEL", "error")
            open_ones.push_async_callback(tree.stop)
            await tree.start()
        db = await Database.open(servers.postgres_url(schema.APP, name))
        open_ones.push_async_callback(db.close)
        studio = Studio(db, Cache(link=RedisLink("redis://127.0.0.1:1")))  # nothing is read from it
        pids = [pid for process, pid in tree.pids().items() if process.startswith("web")]
        yield Doors(db, studio, tree.settings.address, pids)


async def storm(doors: Doors, place: Organization, ask_of: Callable[[int], tuple[str, object]]) -> list[Answer]:
    """Let everybody connect, and only when all are connected ask at once; what each was told, within the time."""
    crowd = await make_crowd(doors.db, place, CROWD)
    before = sum(doors.sockets())
    address = urlsplit(doors.address)
    everybody = asyncio.Event()
    inside = asyncio.Semaphore(0)

    async def visit(number: int, token: str) -> Answer:
        path, asked = ask_of(number)
        body = json.dumps(asked).encode()
        reader, writer = await asyncio.open_connection(address.hostname, address.port)
        try:
            inside.release()
            await everybody.wait()
            answer = Answer(0, {})
            for _ in range(ASKED_AGAIN_MAX):
                writer.write(
                    f"POST {path} HTTP/1.1\r\nHost: {address.netloc}\r\nAuthorization: Bearer {token}\r\n"
                    f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode()
                    + body
                )
                answer = await _read(reader)
                # A machine with other work may not come to an ask in time, and says so: nothing was done.
                if (answer.status, answer.body.get("effect")) != (503, "none"):
                    break
            return answer
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    visits = [asyncio.create_task(visit(number, token)) for number, token in enumerate(crowd)]
    for _ in visits:
        await inside.acquire()
    wait_until(lambda: sum(doors.sockets()) - before >= CROWD, within_s=5)
    if len(doors.web_pids) > 1:
        assert min(doors.sockets()) > CROWD // 4, "the kernel shares connections out between the processes"
    began = time.monotonic()
    everybody.set()
    answers = await asyncio.gather(*visits)
    print(f"{CROWD} answers in {time.monotonic() - began:.2f} s")
    return answers


async def _read(reader: asyncio.StreamReader) -> Answer:
    head = await reader.readuntil(b"\r\n\r\n")
    status = int(head.split(b" ", 2)[1])
    length = next(
        int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")
    )
    return Answer(status, json.loads(await reader.readexactly(length)))


@pytest.mark.req("TEST-13", "TEST-23", "PERF-18", "HOLD-15")
async def test_a_thousand_ask_for_one_seat(doors: Doors) -> None:
    """One has it, 999 are told that somebody has, one hold is there and the seat is its owner's."""
    place, event = await doors.hall(seats=4)
    seat = seat_ids(event)[1]

    answers = await storm(doors, place, lambda _: (f"/api/events/{event.event.id}/seats/{seat}/reserve", {}))

    told = Counter((answer.status, answer.code) for answer in answers)
    assert told[201, None] == 1
    assert sum(told[409, code] for code in TAKEN) == CROWD - 1, told
    given = next(answer.body["data"]["hold_id"] for answer in answers if answer.status == 201)
    rows = await seat_rows(doors.db, event.event)
    assert [row["status"] for row in rows] == ["available", "held", "available", "available"]
    assert (rows[1]["hold_id"], rows[1]["version"]) == (UUID(given), 2)
    assert await _holds(doors, event) == {UUID(given): 1}
    assert await auditing.verify(doors.db) == []


async def test_a_thousand_ask_for_the_last_places(doors: Doors) -> None:
    """As many places as there are, not one more; and nobody is refused who would have had room in what was left."""
    place, event = await doors.hall(pits=[LAST_PLACES])
    pit = event.hall.zone_id("P1")
    draw = random.Random(SEED)
    wanted = [draw.randint(1, 4) for _ in range(CROWD)]

    path = f"/api/events/{event.event.id}/zones/{pit}/reserve"
    answers = await storm(doors, place, lambda number: (path, {"quantity": wanted[number]}))

    assert {answer.status for answer in answers} == {201, 409}
    assert {answer.code for answer in answers if answer.status == 409} == {"block_at_capacity"}
    granted = {UUID(one.body["data"]["hold_id"]): one.body["data"]["quantity"] for one in answers if one.status == 201}
    left = LAST_PLACES - sum(granted.values())
    assert left >= 0
    assert all(asked > left for asked, answer in zip(wanted, answers, strict=True) if answer.status == 409)
    assert [(row["held"], row["sold"]) for row in await zone_rows(doors.db, event.event)] == [
        (sum(granted.values()), 0)
    ]
    assert await _holds(doors, event) == granted
    assert await auditing.verify(doors.db) == []


async def test_a_thousand_groups_that_overlap(doors: Doors) -> None:
    """Each has all of its seats or none of them, nobody a seat of another's, and who is refused is told the truth."""
    place, event = await doors.hall(seats=GROUP_SEATS)
    seats = seat_ids(event)
    draw = random.Random(SEED)
    groups = []
    for _ in range(CROWD):
        size = draw.randint(2, 4)
        first = draw.randrange(len(seats) - size)
        group = seats[first : first + size]
        draw.shuffle(group)
        groups.append(group)

    path = f"/api/events/{event.event.id}/holds"
    answers = await storm(doors, place, lambda number: (path, {"seat_ids": [str(seat) for seat in groups[number]]}))

    assert {answer.status for answer in answers} == {201, 409}
    given: list[UUID] = []
    for group, answer in zip(groups, answers, strict=True):
        if answer.status == 201:
            assert [UUID(one["seat_id"]) for one in answer.body["data"]] == group
            given += group
    assert len(set(given)) == len(given)
    held = {row["seat_id"] for row in await seat_rows(doors.db, event.event) if row["status"] == "held"}
    assert held == set(given)
    for answer in answers:
        if answer.status == 409:
            assert answer.code == "seats_refused"
            told = answer.body["details"]["seats"]
            assert {one["error"] for one in told} <= TAKEN
            in_the_way = {UUID(one["seat_id"]) for one in told if one["error"] == "seat_held_by_another_user"}
            assert in_the_way <= held
    assert sum((await _holds(doors, event)).values()) == len(given)
    assert await auditing.verify(doors.db) == []


async def _holds(doors: Doors, event: Seated) -> dict[UUID, int]:
    """Every hold of an event there ever was, with its quantity."""
    async with doors.db.transaction(event.organization_id) as conn:
        rows = await conn.fetch("select id, quantity from seat_holds where event_id = $1", event.event.id)
    return {row["id"]: row["quantity"] for row in rows}
