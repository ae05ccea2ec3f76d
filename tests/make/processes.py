"""Process trees for tests: start one, ask what it said, see who is left."""

import contextlib
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

READY_WAIT_S = 60.0


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def environment(data_dir: Path, **over: str) -> dict[str, str]:
    """The environment of a fresh machine: no setting but these."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("VOELGOED_")}
    return kept | {"VOELGOED_DATA_DIR": str(data_dir)} | over


def voelgoed(*args: str, env: Mapping[str, str], wait_s: float = 60) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    argv = [sys.executable, "-m", "voelgoed", *args]
    return subprocess.run(argv, env=dict(env), capture_output=True, text=True, check=False, timeout=wait_s)


@dataclass(slots=True)
class Installation:
    """A running `voelgoed demo` and what it said when it was ready."""

    process: subprocess.Popen[str]
    address: str
    pids: dict[str, int]
    about: dict[str, Any]

    def alive(self) -> dict[str, int]:
        return {name: pid for name, pid in self.pids.items() if is_alive(pid)}


@contextlib.contextmanager
def installation(data_dir: Path, *args: str, **env: str) -> Iterator[Installation]:
    """A demo with a data folder and port of its own; whatever the test left of it is stopped at the end.

    One web process and nobody in the crowd, unless a test asks for more.
    """
    alone = () if "--crowd" in args else ("--crowd", "0")
    with (data_dir / "demo.log").open("a") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "voelgoed", "demo", "--json", "--port", "0", *alone, *args],
            env=environment(data_dir, **({"VOELGOED_WORKERS": "1"} | env)),
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
    with process:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, f"the demo did not start:\n{(data_dir / 'demo.log').read_text()}"
        about: dict[str, Any] = json.loads(line)
        try:
            yield Installation(process, about["address"], about["pids"], about)
        finally:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()


def is_alive(pid: int) -> bool:
    """Whether a process runs; a dead one that nobody has collected yet does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in ("Z", "X")


def wait_until(holds: Callable[[], object], *, within_s: float) -> float:
    """Wait until something holds; how long it took. Fails loudly when it never does."""
    started = time.monotonic()
    while not holds():
        assert time.monotonic() - started < within_s, f"not within {within_s} s"
        time.sleep(0.01)
    return time.monotonic() - started


def family(pid: int) -> set[int]:
    """A process and everything below it."""
    below: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
                below.setdefault(parent, []).append(int(entry.name))
    found, todo = set[int](), [pid]
    while todo:
        one = todo.pop()
        found.add(one)
        todo += below.get(one, [])
    return found
