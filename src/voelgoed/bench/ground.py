"""The ground a benchmark stands on: an installation of its own, as durable as in earnest, a hall and many guests."""

import asyncio
import contextlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final
from uuid import UUID

import asyncpg

from voelgoed import schema
from voelgoed.accounts import usecases as accounts
from voelgoed.accounts.model import Organization
from voelgoed.accounts.tokens import new_session_token, token_hash
from voelgoed.bench import machine
from voelgoed.cache import Cache
from voelgoed.config import ENV_PREFIX
from voelgoed.db import Connection, Database
from voelgoed.embedded import Embedded
from voelgoed.errors import StartRefused
from voelgoed.events import operator as events
from voelgoed.events.model import OPERATOR, NewEvent, NewVenue, Order, Venue, Verb
from voelgoed.holds import auditing, operator as places, registry
from voelgoed.holds.inventory import Wanted
from voelgoed.ids import new_id
from voelgoed.redis import RedisLink
from voelgoed.seating import operator
from voelgoed.seating.generate import generate
from voelgoed.seating.model import Pin, Version, VersionStatus
from voelgoed.seating.presets import preset
from voelgoed.seating.spec import RowsSpec, Spec
from voelgoed.seating.studio import Studio
from voelgoed.ticketing import operator as prices

READY_S: Final = 60.0
UNLIMITED: Final = {"VOELGOED_GUESTS_PER_IP_PER_MINUTE": "0", "VOELGOED_STREAMS_PER_IP": "0"}
"""A benchmark's clients all come from this machine, so they would share the limits of one network."""
GUESTS_PER_COPY: Final = 20_000


LAPSED_FACTS: Final = (
    "insert into journal (organization_id, xid, kind, event_id, seat_id, version, data)"
    " select organization_id, (select journal_number()), 'seat_reserved', event_id, seat_id, 2, '{}'"
    " from event_seats where event_id = $1 and ordinal < $2"
)
LAPSED_SEATS: Final = (
    "update event_seats set status = 'held', version = 2, hold_id = ($3::uuid[])[ordinal + 1],"
    " held_by = gen_random_uuid(), locked_at = now(), held_until = now() - interval '1 second'"
    " where event_id = $1 and ordinal < $2"
)
LAPSED_HOLDS: Final = (
    "insert into seat_holds (id, organization_id, event_id, zone_id, seat_id, user_id, cart_token, created_at,"
    " initial_expires_at, expires_at) select hold_id, organization_id, event_id, zone_id, seat_id, held_by, 'bench',"
    " held_until - interval '10 minutes', held_until, held_until from event_seats where event_id = $1 and ordinal < $2"
)


SECTION_ROWS, SECTION_SEATS = 20, 50
STANDS: Final = 5
STAND_FROM, SECTION_DEPTH = 2_000, 2_000


class BenchRefused(StartRefused):
    """A benchmark cannot be run here, or found something wrong."""


@dataclass(slots=True, kw_only=True)
class Sale:
    """An event on sale, and the addresses of its seats."""

    event_id: UUID
    seat_ids: Sequence[UUID]


@dataclass(slots=True, kw_only=True)
class Ground:
    """A running installation and what was put into it."""

    home: Path
    process: subprocess.Popen[str]
    address: str
    embedded: Embedded
    db: Database
    owner: Connection
    link: RedisLink
    studio: Studio
    place: Organization
    venue: Venue
    hall: Version | None = None
    asked: int = 0
    frozen: list[int] = field(default_factory=list)

    @property
    def port(self) -> int:
        return int(self.address.rsplit(":", 1)[1])

    def pids(self) -> list[int]:
        """Every process of the installation, and this one."""
        return [os.getpid(), *machine.family(self.process.pid)]

    def webs(self) -> list[int]:
        return [pid for pid in machine.family(self.process.pid) if b"voelgoed.http" in _command(pid)]

    def role_of(self, pid: int) -> str:
        """What a process is, in a word."""
        command = _command(pid)
        for part, role in ((b"voelgoed.http", "web"), (b"voelgoed.jobs", "worker"), (b"valkey", "redis")):
            if part in command:
                return role
        return "postgresql" if b"postgres" in command else "parent"

    def pid_of(self, role: str) -> int:
        """The first process of a role."""
        return next(pid for pid in machine.family(self.process.pid) if self.role_of(pid) == role)

    def freeze(self, role: str) -> None:
        """Let a process stand still; whoever stops the installation wakes it first."""
        pid = self.pid_of(role)
        os.kill(pid, signal.SIGSTOP)
        self.frozen.append(pid)

    def thaw(self) -> None:
        while self.frozen:
            os.kill(self.frozen.pop(), signal.SIGCONT)

    async def make_hall(self, hall: str | Spec) -> None:
        """A layout of the venue, a preset or another, ready to be chosen."""
        layout = await asyncio.to_thread(generate, preset(hall) if isinstance(hall, str) else hall)
        self.hall = await operator.add_layout(self.studio, self.place, self.venue.id, layout)
        await operator.move(
            self.studio, self.place, self.hall.layout_id, self.hall.version, VersionStatus.ACTIVE, reason=None
        )

    async def put_on_sale(self) -> Sale:
        """An event in the hall, published."""
        assert self.hall is not None
        now = datetime.now(UTC)
        new = NewEvent(
            venue_id=self.venue.id,
            name="Bench",
            slug=f"bench-{new_id().hex}",
            start_at=now + timedelta(days=1),
            end_at=now + timedelta(days=2),
        )
        event = (await events.create_event(self.db, self.place, new)).event
        pin = Pin(self.hall.layout_id, self.hall.version)
        await prices.save_seating(self.studio, self.place, event.id, Wanted(pin=pin, overrides={}))
        await places.move_event(self.studio, self.place, event.id, Order(verb=Verb.PUBLISH))
        await self.owner.execute("select set_config('app.scope', 'system', false)")
        rows = await self.owner.fetch(
            # Of wheelchair spaces nobody may have two, and chance would give some guests two.
            "select seat_id from event_seats where event_id = $1 and status = 'available' and not is_wheelchair",
            event.id,
        )
        seats = [row["seat_id"] for row in rows]
        random.Random(1).shuffle(seats)  # noqa: S311 - the same order in every run
        return Sale(event_id=event.id, seat_ids=seats)

    async def invite(self, count: int) -> list[str]:
        """So many guests with a session each, by bulk: limits stay on, so nobody may hold much."""
        tokens = [new_session_token() for _ in range(count)]
        await self.owner.execute("select set_config('app.scope', 'system', false)")
        for first in range(0, count, GUESTS_PER_COPY):
            some = [(new_id(), new_id(), token) for token in tokens[first : first + GUESTS_PER_COPY]]
            await self.owner.copy_records_to_table(
                "users",
                records=[(user_id, "Guest", True) for user_id, _, _ in some],
                columns=("id", "name", "is_guest"),
            )
            await self.owner.execute(
                "insert into org_members (organization_id, user_id, role) select $1, unnest($2::uuid[]), 'customer'",
                self.place.id,
                [user_id for user_id, _, _ in some],
            )
            await self.owner.copy_records_to_table(
                "sessions",
                records=[(session, token_hash(token), user_id, self.place.id) for user_id, session, token in some],
                columns=("id", "token_hash", "user_id", "organization_id"),
            )
        return tokens

    async def reap(self, count: int) -> float:
        """Lapsed holds tidied away a second by the reaper's own call: a sale is made in which so many have lapsed."""
        sale = await self.put_on_sale()
        async with self.owner.transaction():
            await self.owner.execute("select set_config('app.scope', 'system', true)")
            await self.owner.execute(LAPSED_FACTS, sale.event_id, count)
            await self.owner.execute("set local role voelgoed_registry")
            await self.owner.execute(LAPSED_SEATS, sale.event_id, count, [new_id() for _ in range(count)])
            await self.owner.execute(LAPSED_HOLDS, sale.event_id, count)
        await self.owner.execute("vacuum analyze seat_holds")  # as for the anchor
        began = time.perf_counter()
        done = 0
        while done < count:
            step = await registry.reap(self.db, by=OPERATOR)
            if not step:
                raise BenchRefused(f"the reaper stopped after {done} of {count}")
            done += step
        return count / (time.perf_counter() - began)

    async def checkpoint(self) -> None:
        """From here on every page is written whole once more: so it is the same for whatever is compared."""
        admin = await asyncpg.connect(self.embedded.admin_url)
        try:
            await admin.execute("checkpoint")
        finally:
            await admin.close()

    async def require_well(self) -> None:
        """Nothing that must never be so is so; otherwise no figure counts."""
        found = await auditing.verify(self.db)
        if found:
            raise BenchRefused(f"{len(found)} findings of verify, the first: {found[0]}")

    async def count_holds(self, sale: Sale) -> int:
        """How many seats of an event are held, by the record."""
        await self.owner.execute("analyze seat_holds")
        await self.owner.execute("select set_config('app.scope', 'system', false)")
        count: int = await self.owner.fetchval(
            "select count(*) from seat_holds h join event_seats s on s.event_id = h.event_id and s.seat_id = h.seat_id"
            " where h.event_id = $1 and h.status = 'active' and s.status = 'held' and s.hold_id = h.id",
            sale.event_id,
        )
        return count


def hall_of(seats: int) -> Spec:
    """A hall of so many thousand seats: one section again and again in five stands, so that nothing else differs."""
    sections, rest = divmod(seats, SECTION_ROWS * SECTION_SEATS)
    assert sections
    assert not rest
    blocks = tuple(
        RowsSpec(
            code=f"S{number}",
            name=f"Section {number}",
            rows=SECTION_ROWS,
            seats=SECTION_SEATS,
            facing=360 / STANDS * (number % STANDS),
            distance=STAND_FROM + number // STANDS * SECTION_DEPTH,
        )
        for number in range(sections)
    )
    return Spec(name=f"Hall of {seats}", blocks=blocks)


@contextlib.asynccontextmanager
async def opened(*, workers: int = 1) -> AsyncIterator[Ground]:
    """Start an installation without limits per network, in a folder that is removed afterwards."""
    print(f"Limits per network are off: {' '.join(f'{name}=0' for name in UNLIMITED)}", file=sys.stderr)
    with tempfile.TemporaryDirectory(prefix="voelgoed-bench-") as folder:
        home = Path(folder)
        home.chmod(0o755)  # noqa: ASYNC240 - nobody else is on this loop; the servers may run as a user of their own
        kept = {name: value for name, value in os.environ.items() if not name.startswith(ENV_PREFIX)}
        log = (home / "serve.log").open("w")
        process = subprocess.Popen(  # noqa: ASYNC220, S603 - our own command
            [sys.executable, "-m", "voelgoed", "serve", "--port", "0", "--workers", str(workers)],
            env=kept | {"VOELGOED_DATA_DIR": str(home), "VOELGOED_LOG_FORMAT": "json"} | UNLIMITED,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
        try:
            async with _inside(home, process) as ground:
                try:
                    yield ground
                finally:
                    ground.thaw()
        finally:
            process.terminate()
            try:
                await asyncio.to_thread(process.wait, 20)
            except subprocess.TimeoutExpired:
                process.kill()
            log.close()
            if process.stdout:
                process.stdout.close()


@contextlib.asynccontextmanager
async def _inside(home: Path, process: subprocess.Popen[str]) -> AsyncIterator[Ground]:
    assert process.stdout is not None
    line = await asyncio.wait_for(asyncio.to_thread(process.stdout.readline), READY_S)
    if not line.startswith("Serving at "):
        raise BenchRefused("the installation did not start", hint=(home / "serve.log").read_text()[-2_000:])
    embedded = Embedded(home)
    async with contextlib.AsyncExitStack() as held:
        db = await Database.open(embedded.postgres_url(schema.APP), size=4, command_timeout_s=120)
        held.push_async_callback(db.close)
        owner = await asyncpg.connect(embedded.postgres_url(schema.OWNER))
        held.push_async_callback(owner.close)
        link = await held.enter_async_context(RedisLink(embedded.valkey_url))
        place = await accounts.found_organization(db, slug="bench", name="Bench")
        venue = await events.create_venue(
            db, place, NewVenue(name="Ground", slug="ground", timezone="UTC", max_capacity=1_000_000)
        )
        await operator.change_policy(db, place, {"allow_vip_zones": True}, reason="a hall may have a lounge")
        yield Ground(
            home=home,
            process=process,
            address=line.removeprefix("Serving at ").strip(),
            embedded=embedded,
            db=db,
            owner=owner,
            link=link,
            studio=Studio(db, Cache(link=link)),
            place=place,
            venue=venue,
        )


def _command(pid: int) -> bytes:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""
