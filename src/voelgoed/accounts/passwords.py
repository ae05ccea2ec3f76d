"""Passwords: argon2id, computed beside the event loop, and equally slow for people who do not exist."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from voelgoed.errors import Busy

T = TypeVar("T")

THREADS = 2
WAITING_MAX = 64  # each takes about a tenth of a second: who would wait longer than a few is told so at once

_hasher = PasswordHasher(time_cost=2, memory_cost=64 * 1024, parallelism=1)
# Made once and written down: every process would otherwise begin with a tenth of a second of hashing.
_nobodys_hash = "$argon2id$v=19$m=65536,t=2,p=1$Rj+DYEHlYcZPoDVr3sH+nQ$9sYhygw/yU2SvWxez5mvoQndOS8yEV2vUryJQqcgRZM"


class Passwords:
    """Hashes and verifies in threads of its own, a bounded number at a time. The library releases the interpreter."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="password")
        self._waiting = 0

    async def hash(self, password: str) -> str:
        return await self._beside(_hasher.hash, password)

    async def verify(self, password_hash: str | None, password: str) -> bool:
        """Whether the password is right. Without a hash the work is done all the same, so that time tells nothing."""
        is_right = await self._beside(_verify, password_hash or _nobodys_hash, password)
        return is_right and password_hash is not None

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _beside(self, work: Callable[..., T], *args: str) -> T:
        if self._waiting >= WAITING_MAX:
            raise Busy
        self._waiting += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, work, *args)
        finally:
            self._waiting -= 1


def is_outdated(password_hash: str) -> bool:
    """Whether a hash was made with weaker parameters than today's."""
    return _hasher.check_needs_rehash(password_hash)


def _verify(password_hash: str, password: str) -> bool:
    try:
        return _hasher.verify(password_hash, password)
    except (VerificationError, InvalidHashError):
        return False
