"""Password hashes: slow for whoever guesses, never for anybody else."""

import asyncio
import time

from voelgoed.accounts import passwords as module
from voelgoed.accounts.passwords import Passwords, is_outdated

BEAT_S = 0.005


async def test_the_loop_goes_on_while_hashes_are_computed() -> None:
    """A heart that beats every five milliseconds keeps beating; on the loop it would beat once a hash."""
    hashing, beats = Passwords(), 0
    started = time.perf_counter()
    work = asyncio.gather(*(hashing.verify(None, "wrong password") for _ in range(8)))
    while not work.done():
        await asyncio.sleep(BEAT_S)
        beats += 1
    took_s = time.perf_counter() - started
    hashing.close()
    print(f"\n{beats} beats in {took_s * 1e3:.0f} ms of hashing")
    assert beats * BEAT_S > took_s / 5


async def test_right_wrong_and_nobody() -> None:
    """Only the right password of somebody who has one is right."""
    hashing = Passwords()
    made = await hashing.hash("correct horse battery")
    assert made.startswith("$argon2id$")
    assert await hashing.verify(made, "correct horse battery") is True
    assert await hashing.verify(made, "correct horse batterz") is False
    assert await hashing.verify(None, "nobody has this password") is False
    assert await hashing.verify("rubbish", "correct horse battery") is False
    hashing.close()


def test_weaker_hashes_are_made_anew() -> None:
    """Yesterday's parameters are noticed at the next sign-in."""
    old = "$argon2id$v=19$m=1024,t=1,p=1$c29tZXNhbHQxMjM0NTY3OA$MTIzNDU2Nzg5MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTI"
    assert is_outdated(old)


def test_the_hash_of_nobody_takes_as_long_as_anybodys() -> None:
    """It is written down, not made at every start: it has to have the parameters of today, and to be a real one."""
    assert not is_outdated(module._nobodys_hash)
    assert module._verify(module._nobodys_hash, "nobody has this password")
