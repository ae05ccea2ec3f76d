"""The line to the parent of a demonstration: what it tells, what it does, and whom it listens to."""

import asyncio
import stat
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from voelgoed.demo.control import CONTROL_ENV, HISTORY, LEVELS, Control, Json, OrderRefused, Parent


@dataclass(slots=True)
class Hands:
    """A parent's hands that only note what they are asked to do."""

    did: list[tuple[str, int | None]] = field(default_factory=list)
    turns: list[bool] = field(default_factory=list)
    is_up: bool = True
    can_kill: bool = True
    has_redis: bool = True
    processes: list[str] = field(default_factory=lambda: ["web-1", "web-2", "worker"])

    def standing(self) -> Sequence[Json]:
        return [{"name": name, "pid": 1, "is_up": True, "deaths": 0} for name in self.processes]

    def kill(self, kind: str, *, spare: int | None) -> str:
        self.did.append((kind, spare))
        return next((name for name in self.processes if name.startswith(kind) and self.can_kill), "")

    def is_redis_up(self) -> bool:
        return self.is_up

    async def stop_redis(self) -> None:
        if not self.has_redis:
            raise OrderRefused("not_ours")
        self.turns.append(False)
        self.is_up = False

    async def start_redis(self) -> None:
        self.turns.append(True)
        self.is_up = True


@pytest.fixture
def hands() -> Hands:
    return Hands()


@pytest.fixture
async def parent(data_dir: Path, hands: Hands) -> AsyncIterator[Parent]:
    parent = Parent(data_dir / "demo.sock", hands, {"seed": 1}, per_s=2)
    async with parent.open():
        yield parent


async def test_orders_are_done_and_told(parent: Parent, hands: Hands) -> None:
    """Whoever follows hears of it at once."""
    control = Control(parent.path)
    async with control.follow() as line, asyncio.timeout(5):
        first = await line.next()
        assert first is not None
        assert (first["seed"], first["crowd"]["per_s"], first["history"]) == (1, 2, [])
        assert await control.ask({"do": "crowd", "per_s": 8}) == "crowd"
        assert await control.ask({"do": "redis", "up": False}) == "redis"
        assert await control.ask({"do": "kill", "kind": "web", "spare": 7}) == "web-1"
        while (state := await line.next()) is not None:
            if state["crowd"]["per_s"] == 8 and not state["redis"]["is_up"]:
                break
    assert hands.did == [("web", 7)]
    await control.ask({"do": "redis", "up": True})
    assert hands.is_up


@pytest.mark.parametrize(
    "order",
    [
        {"do": "crowd", "per_s": LEVELS[-1] + 1},
        {"do": "crowd", "per_s": -1},
        {"do": "kill", "kind": "postgres"},
        {"do": "kill", "kind": "parent"},
        {"do": "exec", "what": "anything"},
        {},
    ],
)
async def test_nothing_else_is_done(parent: Parent, hands: Hands, order: Json) -> None:
    """Two kinds of processes, Redis and the crowd are all that can be touched."""
    with pytest.raises(OrderRefused, match="unknown_order"):
        await Control(parent.path).ask(order)
    assert (hands.did, hands.is_up, parent.per_s) == ([], True, 2)


async def test_who_is_not_there_is_not_killed(parent: Parent, hands: Hands) -> None:
    """It is coming back already."""
    hands.processes = ["web-1"]
    with pytest.raises(OrderRefused, match="not_there"):
        await Control(parent.path).ask({"do": "kill", "kind": "worker"})


async def test_a_redis_that_is_not_ours_is_left_alone(parent: Parent, hands: Hands) -> None:
    """It runs on, whoever it belongs to; and that is said."""
    hands.has_redis = False
    with pytest.raises(OrderRefused, match="not_ours"):
        await Control(parent.path).ask({"do": "redis", "up": False})
    assert hands.is_up


async def test_the_crowd_tells_and_a_newcomer_sees_the_last_minute(parent: Parent) -> None:
    """No more than a minute is kept."""
    control = Control(parent.path)
    async with control.follow() as crowd, asyncio.timeout(5):
        await crowd.next()
        for number in range(HISTORY + 5):
            crowd.tell({"number": number})
        while (state := await crowd.next()) is not None:
            if state["crowd"]["figures"] == {"number": HISTORY + 4}:
                break
        async with control.follow() as newcomer:
            first = await newcomer.next()
    assert first is not None
    assert [one["number"] for one in first["history"]] == list(range(5, HISTORY + 5))


async def test_the_line_is_ours_alone_and_ends_with_the_parent(data_dir: Path, hands: Hands) -> None:
    """Nobody else may open it; who follows hears that it is over; afterwards there is nothing to be asked."""
    path = data_dir / "demo.sock"
    parent = Parent(path, hands, {}, per_s=0)
    async with asyncio.timeout(5):
        async with parent.open():
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
            following = Control(path).follow()
            line = await following.__aenter__()
            await line.next()
        while await line.next() is not None:
            pass
        await following.__aexit__(None, None, None)
    assert not path.exists()
    with pytest.raises(OrderRefused, match="parent_away"):
        await Control(path).ask({"do": "crowd", "per_s": 1})


def test_without_its_name_there_is_no_demonstration(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process of an ordinary installation has no control."""
    monkeypatch.delenv(CONTROL_ENV, raising=False)
    assert Control.from_environment() is None
