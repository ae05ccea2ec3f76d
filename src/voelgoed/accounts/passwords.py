"""Passwords: argon2id in threads, as slow for unknown accounts as for known ones, with fair turns between networks."""

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from voelgoed.accounts.attempts import RateLimited
from voelgoed.errors import Busy
from voelgoed.telemetry import metrics

T = TypeVar("T")

THREADS = 2

_hasher = PasswordHasher(time_cost=2, memory_cost=64 * 1024, parallelism=1)
# Made once and written down: every process would otherwise begin with a tenth of a second of hashing.
_nobodys_hash = "$argon2id$v=19$m=65536,t=2,p=1$Rj+DYEHlYcZPoDVr3sH+nQ$9sYhygw/yU2SvWxez5mvoQndOS8yEV2vUryJQqcgRZM"

Job = tuple[Callable[[], Any], asyncio.Future[Any]]
"""A hash to compute, and the future that gets it. A cancelled request cancels the future."""


class Passwords:
    """Hashes and verifies off the event loop, two at a time. The library releases the interpreter.

    Networks take turns: a request waits for at most one hash of each other network, however many those have waiting.
    """

    def __init__(self, *, waiting_max: int = 64, waiting_per_network_max: int = 16) -> None:
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="password")
        self._waiting_max, self._per_network_max = waiting_max, waiting_per_network_max
        self._queues: dict[str, deque[Job]] = {}  # none is empty; the first network is the next to have its turn
        self._running_count = 0

    async def hash(self, password: str, *, network: str = "") -> str:
        """Return a new hash. Requests name the network they are counted in; the operator's commands have none."""
        return await self._in_turn(network, partial(_hasher.hash, password))

    async def verify(self, password_hash: str | None, password: str, *, network: str = "") -> bool:
        """Return whether the password is right. An unknown account takes as long, so that time tells nothing."""
        is_right = await self._in_turn(network, partial(_verify, password_hash or _nobodys_hash, password))
        return is_right and password_hash is not None

    def close(self) -> None:
        """Cancel the jobs that wait. Running ones finish in their thread."""
        for queue in self._queues.values():
            for _, done in queue:
                done.cancel()
        self._queues.clear()
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _in_turn(self, network: str, work: Callable[[], T]) -> T:
        self._make_room(network)
        done: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._queues.setdefault(network, deque()).append((work, done))
        self._start_next()
        try:
            return await done
        except asyncio.CancelledError:
            self._forget(network, done)
            raise

    def _make_room(self, network: str) -> None:
        """Refuse what would wait behind too many of its own network, or of all.

        When all places are taken, the network with the longest queue gives one up to a network that has at least two
        fewer. So no number of requests from one network keeps another out.
        """
        own_count = len(self._queues.get(network, ()))
        if own_count >= self._per_network_max:
            raise _refusal()
        if sum(map(len, self._queues.values())) >= self._waiting_max:
            longest = max(self._queues.values(), key=len)
            if len(longest) < own_count + 2:
                raise Busy
            _, done = longest.pop()
            if not done.done():
                done.set_exception(_refusal())

    def _start_next(self) -> None:
        """Give idle threads the first job of the network whose turn it is; that network is then the last in line."""
        while self._running_count < THREADS and self._queues:
            network = next(iter(self._queues))
            queue = self._queues.pop(network)
            work, done = queue.popleft()
            if queue:
                self._queues[network] = queue
            if done.cancelled():
                continue
            self._running_count += 1
            running = asyncio.get_running_loop().run_in_executor(self._threads, work)
            running.add_done_callback(partial(self._finish, done))

    def _finish(self, done: asyncio.Future[Any], running: asyncio.Future[Any]) -> None:
        self._running_count -= 1
        if running.cancelled():
            done.cancel()
        elif (failed := running.exception()) is not None:
            if not done.done():
                done.set_exception(failed)
        elif not done.done():  # the request may have been cancelled
            done.set_result(running.result())
        self._start_next()

    def _forget(self, network: str, done: asyncio.Future[Any]) -> None:
        """Remove a cancelled request from its queue."""
        left = deque(job for job in self._queues.get(network, ()) if job[1] is not done)
        if left:
            self._queues[network] = left
        else:
            self._queues.pop(network, None)


def is_outdated(password_hash: str) -> bool:
    """Whether a hash was made with weaker parameters than today's."""
    return _hasher.check_needs_rehash(password_hash)


def _refusal() -> RateLimited:
    metrics.THROTTLE_REFUSALS.labels("password", "memory").inc()
    return RateLimited(retry_after_s=1)


def _verify(password_hash: str, password: str) -> bool:
    try:
        return _hasher.verify(password_hash, password)
    except (VerificationError, InvalidHashError):
        return False
