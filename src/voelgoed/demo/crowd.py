"""A crowd of buyers, over HTTP like everybody: a process of its own that does as the parent of the demonstration says.

It decides nothing itself: who comes and what they do is drawn from a seed (people.py). Bounded in every way, so that a
server that gets slow is not asked more and more; who finds no room in the crowd is not counted as having come.
"""

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final
from uuid import UUID

import structlog

from voelgoed.config import Settings
from voelgoed.db import Database
from voelgoed.demo import people
from voelgoed.demo.client import Answer, Client, Unreached
from voelgoed.demo.control import Control, Json, Line
from voelgoed.demo.figures import Figures
from voelgoed.demo.people import Fate, Hall, Statuses, Visit
from voelgoed.demo.till import MARK, Till
from voelgoed.errors import DomainError, StartRefused
from voelgoed.ids import OrganizationId
from voelgoed.lifeline import Lifeline, stop_signals, together, until_first

log = structlog.get_logger(__name__)

PEOPLE_MAX: Final = 1_000
WATCHING_MAX: Final = 40
GUESTS_MAX: Final = 24_000
REST_S: Final = 330.0
"""Guests come again, or an evening would leave a hundred thousand of them behind; but not so soon that they would be
taken for somebody who holds more than anybody needs."""
TELL_EVERY_S: Final = 1.0
LOOK_EVERY_S: Final = 2.0
PROGRAMME_EVERY: Final = 15
"""So many looks at how full events are, to one at which events there are."""
IDLE_S: Final = 0.2
LATE_MAX_S: Final = 1.0
TILL_CONNECTIONS: Final = 4
ANYWHERE: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - where to knock when it listens everywhere


class SessionOver(Exception):
    """The server does not know this guest any more; another one comes."""


@dataclass(frozen=True, slots=True)
class Guest:
    """Somebody the server knows."""

    token: str
    user_id: UUID
    organization_id: OrganizationId


@dataclass(slots=True)
class Scene:
    """An event that is on sale: its hall, how many places it has and how full it is."""

    hall: Hall
    capacity: int = 0
    taken: float = 0.0


@dataclass(slots=True)
class Crowd:
    """Everybody who is there now, and what they have done."""

    client: Client
    till: Till
    figures: Figures
    organization: str
    rng: Random
    per_s: int = 0
    _scenes: dict[str, Scene] = field(default_factory=dict)
    _people: set[asyncio.Task[None]] = field(default_factory=set)
    _watching: int = 0
    _guests: deque[tuple[float, Guest]] = field(default_factory=lambda: deque(maxlen=GUESTS_MAX))
    _organization_id: OrganizationId | None = None

    async def live(self) -> None:
        """Let people come until cancelled; then nobody is left."""
        try:
            await together(self._arrive(), self._look_around())
        finally:
            for person in tuple(self._people):
                person.cancel()
            await asyncio.gather(*self._people, return_exceptions=True)

    def told(self) -> Json:
        """What was done since it was last asked."""
        return self.figures.look(people=len(self._people), watching=self._watching)

    async def _arrive(self) -> None:
        clock = asyncio.get_running_loop().time
        due = clock()
        while True:
            if self.per_s == 0:
                await asyncio.sleep(IDLE_S)
                continue
            # By when they are due, not by when the last one was let in; who is much too late does not come at all.
            due = max(due + people.next_arrival_s(self.rng, self.per_s), clock() - LATE_MAX_S)
            await asyncio.sleep(max(0.0, due - clock()))
            visit = people.draw(self.rng, {event_id: scene.taken for event_id, scene in self._scenes.items()})
            if visit is None or len(self._people) >= PEOPLE_MAX:
                continue
            self.figures.count("arrivals")
            self._start(self._come(visit, Random(self.rng.random())))  # noqa: S311 - a play, not a secret

    def _start(self, coming: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(coming)
        self._people.add(task)
        task.add_done_callback(self._left)

    def _left(self, task: asyncio.Task[None]) -> None:
        self._people.discard(task)
        if not task.cancelled() and (failed := task.exception()):  # a mistake of ours: seen, and survived
            log.error("visit_failed", error=repr(failed))

    async def _look_around(self) -> None:
        """Keep an eye on what is on sale and how full it is; where it gets crowded, some give tickets back."""
        turn = 0
        while True:
            if self.per_s:
                with contextlib.suppress(Unreached, DomainError):  # next time
                    if turn % PROGRAMME_EVERY == 0:
                        await self._read_programme()
                    for event_id, scene in tuple(self._scenes.items()):
                        await self._see(event_id, scene)
                    turn += 1
            await asyncio.sleep(LOOK_EVERY_S if self._scenes else IDLE_S)

    async def _read_programme(self) -> None:
        cards = await self._read(f"/api/storefronts/{self.organization}/events")
        on_sale = [card["id"] for card in cards if card["on_sale"]]
        for event_id in on_sale:
            if event_id not in self._scenes:
                self._scenes[event_id] = Scene(await self._read_hall(event_id))
        for event_id in self._scenes.keys() - set(on_sale):
            del self._scenes[event_id]

    async def _read_hall(self, event_id: str) -> Hall:
        offer = await self._read(f"/api/events/{event_id}/layout")
        if offer["layout"] is None:
            return people.read_hall(offer, None)
        geometry = await self.client.ask("GET", offer["layout"]["geometry_url"])
        return people.read_hall(offer, geometry.json)

    async def _see(self, event_id: str, scene: Scene) -> None:
        seen = await self._read(f"/api/events/{event_id}/occupancy")
        scene.capacity = seen["total"]
        scene.taken = 1.0 - seen["available"] / max(1, seen["total"])
        many = people.give_back(scene.taken, scene.capacity)
        if many and self._organization_id:
            self.figures.count("returned", await self.till.take_back(self._organization_id, UUID(event_id), many))

    async def _read(self, path: str) -> Any:
        answer = await self.client.ask("GET", path)
        if not self._is_granted(answer):
            raise Unreached
        return answer.data

    async def _come(self, visit: Visit, rng: Random) -> None:
        """One visit from the door to the end."""
        try:
            guest = await self._enter()
            if guest is None:
                return
            holds = await self._take(visit, guest, rng)
            if holds:
                await self._stay(visit)
                await self._end(visit, guest, holds)
            if not holds or visit.fate is not Fate.LAPSE:  # who still holds something does not come again
                self._guests.append((time.monotonic() + REST_S, guest))
        except (Unreached, SessionOver, DomainError) as failed:
            log.debug("visit_broken_off", error=type(failed).__name__)

    async def _enter(self) -> Guest | None:
        if self._guests and self._guests[0][0] <= time.monotonic():
            return self._guests.popleft()[1]
        came = await self.client.ask("POST", "/api/auth/guest", body={"organization": self.organization})
        if not self._is_granted(came):
            return None
        said = came.data
        self._organization_id = OrganizationId(UUID(said["organization"]["id"]))
        return Guest(said["token"], UUID(said["user"]["id"]), self._organization_id)

    async def _take(self, visit: Visit, guest: Guest, rng: Random) -> Sequence[Json]:
        """Look at the map and take what is liked; who is too late looks again, a few times."""
        scene = self._scenes.get(visit.event_id)
        if scene is None:
            return ()
        for _ in range(visit.tries_max):
            shown = await self.client.ask("GET", f"/api/events/{visit.event_id}/seatmap")
            if not self._is_granted(shown):
                return ()
            self.figures.count("looks")
            await asyncio.sleep(visit.looks_s)
            if visit.fate is Fate.LEAVE:
                return ()
            answer = await self._ask_for_places(visit, guest, scene.hall, Statuses.read(shown.data["statuses"]), rng)
            if answer is not None and self._is_granted(answer):
                holds: list[Json] = answer.data if isinstance(answer.data, list) else [answer.data]
                self.figures.count("holds")
                self.figures.count("places", sum(hold["quantity"] for hold in holds))
                return holds
        return ()

    async def _ask_for_places(
        self, visit: Visit, guest: Guest, hall: Hall, statuses: Statuses, rng: Random
    ) -> Answer | None:
        basket = {"source": "web", "cart_token": f"{MARK}{guest.user_id}"}
        event = f"/api/events/{visit.event_id}"
        if hall.areas and (visit.wants_area or not hall.stretches):
            path = f"{event}/zones/{rng.choice(hall.areas)}/reserve"
            return await self.client.ask("POST", path, token=guest.token, body={"quantity": visit.party, **basket})
        seats = people.choose(rng, hall, statuses, visit.party)
        if not seats:
            return None
        body = {"seat_ids": [hall.seat_id(seat) for seat in seats], **basket}
        return await self.client.ask("POST", f"{event}/holds", token=guest.token, body=body)

    async def _stay(self, visit: Visit) -> None:
        """Think about it, some with the live map before their eyes."""
        if not visit.follows or self._watching >= WATCHING_MAX:
            await asyncio.sleep(visit.thinks_s)
            return
        self._watching += 1
        try:
            await self.client.watch(f"/api/events/{visit.event_id}/stream", seconds=visit.thinks_s)
        finally:
            self._watching -= 1

    async def _end(self, visit: Visit, guest: Guest, holds: Sequence[Json]) -> None:
        places = sum(hold["quantity"] for hold in holds)
        if visit.fate is Fate.LAPSE:
            self.figures.count("lapsing", places)
        elif visit.fate is Fate.BUY:
            ids = [UUID(hold["hold_id"]) for hold in holds]
            if await self.till.pay(guest.organization_id, UUID(visit.event_id), guest.user_id, ids, places):
                self.figures.count("sold", places)
        else:
            for hold in holds:
                await self.client.ask("DELETE", f"/api/holds/{hold['hold_id']}", token=guest.token)
            self.figures.count("released", places)

    def _is_granted(self, answer: Answer) -> bool:
        """Whether it is a yes; a no is counted as what it is."""
        if answer.status in (200, 201):
            return True
        if answer.status == 401:  # noqa: PLR2004 - nobody came for a long time
            raise SessionOver
        if answer.status in (429, 503):
            self.figures.count("busy")
        elif answer.status >= 500:  # noqa: PLR2004 - a fault of the server's
            self.figures.count("failed")
        else:
            self.figures.count("refused")
        return False


async def run(settings: Settings) -> None:
    """Be the crowd until SIGTERM, SIGINT or the end of the parent."""
    lifeline = Lifeline()
    lifeline.hold()
    asked = stop_signals()
    control = Control.from_environment()
    if control is None or settings.database_url is None:
        raise StartRefused("a crowd comes to a demonstration only", hint="use: voelgoed demo")
    db = await Database.open(
        settings.database_url.get_secret_value(), size=TILL_CONNECTIONS, application_name="voelgoed crowd"
    )
    try:
        async with control.follow() as line:
            lifeline.say_ready()
            await until_first(asked.wait(), _follow(settings, db, line))
    finally:
        await db.close()


async def _follow(settings: Settings, db: Database, line: Line) -> None:
    """Do as the parent says, and tell what comes of it, until it has gone."""
    first = await line.next()
    while first is not None and not any(one["is_up"] for one in first["processes"] if one["name"].startswith("web")):
        first = await line.next()  # the doors are not open yet
    if first is None:
        return
    figures = Figures()
    client = Client(ANYWHERE.get(settings.host, settings.host), settings.port, figures)
    crowd = Crowd(
        client=client,
        till=Till(db),
        figures=figures,
        organization=first["organization"]["slug"],
        rng=Random(first["seed"]),  # noqa: S311 - a play, not a secret
        per_s=first["crowd"]["per_s"],
    )

    async def obey() -> None:
        while (state := await line.next()) is not None:
            crowd.per_s = state["crowd"]["per_s"]

    async def tell() -> None:
        while True:
            await asyncio.sleep(TELL_EVERY_S)
            line.tell(crowd.told())

    try:
        await until_first(obey(), tell(), crowd.live())
    finally:
        client.close()
