"""The breaker: what is broken is left alone, and exactly one caller finds out whether it still is."""

import asyncio
from dataclasses import dataclass

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from hypothesis.strategies import floats, integers

from voelgoed.breaker import Breaker, CircuitOpen, State


class Down(Exception):
    """The thing behind the breaker does not work."""


class Mistake(Exception):
    """An error that says nothing about health."""


@dataclass(slots=True)
class Clock:
    """Time that moves when told."""

    now: float = 1000.0

    def __call__(self) -> float:
        return self.now


async def works() -> str:
    return "answer"


async def fails() -> str:
    raise Down


async def errs() -> str:
    raise Mistake


async def break_it(breaker: Breaker, times: int = 5) -> None:
    for _ in range(times):
        with pytest.raises(Down):
            await breaker.call(fails)


def make(clock: Clock, states: list[State] | None = None) -> Breaker:
    seen = [] if states is None else states
    return Breaker(trips_on=(Down,), clock=clock, on_change=seen.append)


async def test_five_failures_in_a_row_open_it() -> None:
    """The fifth failure opens it; the sixth caller is refused without a try and told when the next probe is due."""
    clock, states = Clock(), list[State]()
    breaker = make(clock, states)
    await break_it(breaker, 4)
    assert await breaker.call(works) == "answer"
    await break_it(breaker, 4)
    assert breaker.state is State.CLOSED
    await break_it(breaker, 1)
    clock.now += 12
    with pytest.raises(CircuitOpen) as refused:
        await breaker.call(works)
    assert (breaker.state, refused.value.retry_in_s) == (State.OPEN, 18.0)
    assert states == [State.OPEN]


async def test_ten_callers_at_half_open_are_one_probe_and_nine_refusals() -> None:
    """When the time has come, one goes through and nine are refused at once, while it is still under way."""
    clock, states = Clock(), list[State]()
    breaker = make(clock, states)
    await break_it(breaker)
    clock.now += 30
    begun, go = list[int](), asyncio.Event()

    async def slow() -> str:
        begun.append(1)
        await go.wait()
        return "answer"

    callers = [asyncio.create_task(breaker.call(slow)) for _ in range(10)]
    refused, waiting = await asyncio.wait(callers, timeout=0.05)
    assert (len(refused), len(waiting), len(begun)) == (9, 1, 1)
    assert all(isinstance(caller.exception(), CircuitOpen) for caller in refused)
    go.set()
    assert await waiting.pop() == "answer"
    assert states == [State.OPEN, State.HALF_OPEN, State.CLOSED]


async def test_a_failed_probe_opens_it_for_the_whole_time_again() -> None:
    """One failure of the probe is enough; the next probe comes after another full pause."""
    clock = Clock()
    breaker = make(clock)
    await break_it(breaker)
    clock.now += 30
    await break_it(breaker, 1)
    clock.now += 29.9
    with pytest.raises(CircuitOpen):
        await breaker.call(works)
    clock.now += 0.1
    assert await breaker.call(works) == "answer"
    assert breaker.state is State.CLOSED


async def test_application_errors_say_nothing_about_health() -> None:
    """They neither open it nor count as an answer; as a probe they leave the question to the next caller."""
    clock = Clock()
    breaker = make(clock)
    await break_it(breaker, 4)
    for _ in range(20):
        with pytest.raises(Mistake):
            await breaker.call(errs)
    await break_it(breaker, 1)
    with pytest.raises(CircuitOpen):
        await breaker.call(works)
    clock.now += 30
    with pytest.raises(Mistake):
        await breaker.call(errs)
    assert breaker.state is State.OPEN
    assert await breaker.call(works) == "answer"


async def test_a_cancelled_probe_leaves_the_question_to_the_next_caller() -> None:
    """A visitor who leaves must not keep everybody from Redis for ever, nor for another pause."""
    clock = Clock()
    breaker = make(clock)
    await break_it(breaker)
    clock.now += 30
    begun = asyncio.Event()

    async def endless() -> str:
        begun.set()
        await asyncio.Event().wait()
        return ""

    probe = asyncio.create_task(breaker.call(endless))
    await begun.wait()
    probe.cancel()
    with pytest.raises(asyncio.CancelledError):
        await probe
    assert await breaker.call(works) == "answer"


async def test_late_failures_neither_postpone_the_probe_nor_judge_it() -> None:
    """Calls that began before it opened end later: the time of the probe stands."""
    clock = Clock()
    breaker = make(clock)
    go = asyncio.Event()

    async def slow_failure() -> str:
        await go.wait()
        raise Down

    late = [asyncio.create_task(breaker.call(slow_failure)) for _ in range(7)]
    await asyncio.sleep(0)
    await break_it(breaker)
    clock.now += 29
    go.set()
    await asyncio.gather(*late, return_exceptions=True)
    clock.now += 1
    assert await breaker.call(works) == "answer"


class BreakerMachine(RuleBasedStateMachine):
    """Any order of answers, failures and pauses, against a model written down in plain words."""

    @initialize(failures_max=integers(1, 6), pause_s=floats(0.5, 60))
    def start(self, failures_max: int, pause_s: float) -> None:
        self.loop = asyncio.new_event_loop()
        self.clock = Clock()
        self.failures_max, self.pause_s = failures_max, pause_s
        self.breaker = Breaker(trips_on=(Down,), failures_max=failures_max, probe_every_s=pause_s, clock=self.clock)
        self.row, self.closed, self.probe_at = 0, True, 0.0

    def is_let_in(self) -> bool:
        return self.closed or self.clock.now >= self.probe_at

    @rule()
    def answer(self) -> None:
        if self.is_let_in():
            assert self.loop.run_until_complete(self.breaker.call(works)) == "answer"
            self.row, self.closed = 0, True
        else:
            self.expect(CircuitOpen, works)

    @rule()
    def failure(self) -> None:
        if not self.is_let_in():
            self.expect(CircuitOpen, fails)
            return
        self.expect(Down, fails)
        self.row += 1
        if not self.closed or self.row >= self.failures_max:
            self.closed, self.probe_at = False, self.clock.now + self.pause_s

    @rule()
    def mistake(self) -> None:
        self.expect(Mistake if self.is_let_in() else CircuitOpen, errs)
        if not self.closed and self.clock.now >= self.probe_at:
            self.probe_at = self.clock.now

    @rule(seconds=floats(0, 70))
    def pause(self, seconds: float) -> None:
        self.clock.now += seconds

    def expect(self, error: type[Exception], work: object) -> None:
        with pytest.raises(error):
            self.loop.run_until_complete(self.breaker.call(work))  # type: ignore[arg-type]

    @invariant()
    def state_is_as_the_model_says(self) -> None:
        assert (self.breaker.state is State.CLOSED) == self.closed
        assert self.breaker.state is not State.HALF_OPEN  # nothing is under way between two steps

    def teardown(self) -> None:
        if hasattr(self, "loop"):
            self.loop.close()


def test_any_order_of_events_keeps_to_the_rules() -> None:
    """Hypothesis looks for an order of answers, failures and pauses in which breaker and model disagree."""
    run_state_machine_as_test(
        BreakerMachine,
        settings=settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow]),
    )
