"""The product under test: `voelgoed serve` in a folder of its own, and an event created with the `voelgoed` command."""

import asyncio
import contextlib
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.blackbox.http_client import Client
from tests.blackbox.shim import Shim

PROGRAM = Path(sys.executable).with_name("voelgoed")
WEB_PROCESSES = 2
STOP_WAIT_S = 30.0
COMMAND_WAIT_S = 60.0
ROWS, SEATS_PER_ROW = 10, 20
PLACES = 80
TTL_MINUTES = 1
BACKEND_TITLE = "postgres: voelgoed_app "
START, END = "2037-03-12 19:30", "2037-03-12 22:00"
EMAIL = "owner@example.org"


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """The event that is sold, as a buyer finds it."""

    organization: str
    event_id: str
    seat_ids: tuple[str, ...]
    zone_id: str
    owner_email: str
    owner_password: str


@dataclass(slots=True)
class Product:
    """A running installation and the processes below it."""

    folder: Path
    shim: Shim
    process: subprocess.Popen[str]
    host: str
    port: int
    _clients: list[Client] = field(default_factory=list)

    @property
    def database_url(self) -> str:
        """The URL of an administrator of PostgreSQL, past the product."""
        return f"postgresql://postgres@/voelgoed?host={self.folder / 'run'}"

    @property
    def is_running(self) -> bool:
        return self.process.poll() is None

    def client(self, token: str = "") -> Client:
        client = Client(self.host, self.port, token)
        self._clients.append(client)
        return client

    def close_clients(self) -> None:
        for client in self._clients:
            client.close()

    def pids(self, role: str) -> list[int]:
        """Return the processes of a role: web, worker, valkey, postgres or backend."""
        parents, titles = _processes()
        ours = [pid for pid, parent in parents.items() if parent == self.process.pid]
        if role == "backend":
            servers = self.pids("postgres")
            return [pid for pid, parent in parents.items() if parent in servers and BACKEND_TITLE in titles[pid]]
        return [pid for pid in ours if _role_of(titles[pid]) == role]

    def cpu_ticks(self, pid: int) -> int:
        """Return how much a process has worked so far; 0 if it has gone."""
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            return 0
        return int(fields[11]) + int(fields[12])

    def is_complete(self) -> bool:
        """Return whether every process of the tree is there."""
        wanted = {"web": WEB_PROCESSES, "worker": 1, "valkey": 1, "postgres": 1}
        return all(len(self.pids(role)) == count for role, count in wanted.items())

    def log_tail(self, lines: int = 40) -> str:
        return "\n".join((self.folder / "serve.log").read_text().splitlines()[-lines:])


@contextlib.asynccontextmanager
async def serving(folder: Path) -> AsyncIterator[Product]:
    """Run the product in an empty folder until the block ends."""
    shim = Shim.build(folder)
    with (folder / "serve.log").open("w") as log:
        process = subprocess.Popen(
            [PROGRAM, "serve", "--workers", str(WEB_PROCESSES), "--port", "0"],
            env=_environment(folder) | shim.environment,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
    assert process.stdout is not None
    try:
        line = await asyncio.to_thread(process.stdout.readline)
        address = urlsplit(line.rpartition(" ")[2].strip())
        assert address.hostname, f"the product did not start:\n{(folder / 'serve.log').read_text()}"
        assert address.port
        product = Product(folder, shim, process, address.hostname, address.port)
        try:
            yield product
        finally:
            product.close_clients()
    finally:
        shim.set_clock_offset(0)
        shim.set_disk_full(is_full=False)
        await asyncio.to_thread(_stop, process)
        shim.close()


async def create_event(product: Product) -> Event:
    """Create an organization, a venue with a layout and an event on sale, as the README shows."""
    layout = product.folder / "layout.json"
    layout.write_text(json.dumps(_layout()))
    steps = (
        ("org", "create", "blackbox", "Black box"),
        ("policy", "set", "blackbox", f"default_hold_ttl_minutes={TTL_MINUTES}", "--reason", "short holds"),
        ("venue", "create", "blackbox", "main", "Main hall", "--timezone", "Africa/Johannesburg", "--capacity", "1000"),
        ("layout", "import", "blackbox", str(layout), "--venue", "main", "--activate"),
        ("event", "create", "blackbox", "opening", "Opening", "--venue", "main", "--start", START, "--end", END),
        ("seating", "set", "blackbox", "opening", "--layout", "Small"),
        ("event", "publish", "blackbox", "opening"),
    )
    for step in steps:
        await _run(product, *step)
    printed = await _run(product, "user", "create", EMAIL, "--org", "blackbox", "--name", "Owner", "--role", "owner")
    password = re.search(r"password: (\S+)", printed)
    assert password
    client = product.client()
    (event,) = (await _get(client, "/api/storefronts/blackbox/events"))["data"]
    seats = (await _get(client, f"/api/events/{event['id']}/seats?limit=200"))["data"]
    zones = (await _get(client, f"/api/events/{event['id']}/layout"))["data"]["zones"]
    client.close()
    assert [seat["ordinal"] for seat in seats] == list(range(ROWS * SEATS_PER_ROW))
    return Event(
        organization="blackbox",
        event_id=event["id"],
        seat_ids=tuple(seat["seat_id"] for seat in seats),
        zone_id=next(zone["zone_id"] for zone in zones if zone["code"] == "PIT"),
        owner_email=EMAIL,
        owner_password=password[1],
    )


def _layout() -> dict[str, Any]:
    columns = [60 * number for number in range(SEATS_PER_ROW)]
    rows = [
        {"label": chr(ord("A") + row), "seats": {"count": SEATS_PER_ROW, "x": columns, "y": 300 + 100 * row}}
        for row in range(ROWS)
    ]
    pit = {"code": "PIT", "name": "Pit", "zone_type": "ga_standing", "capacity": PLACES}
    stalls = {
        "code": "STALLS",
        "name": "Stalls",
        "zone_type": "reserved_seating",
        "focal_point": [570, 0],
        "rows": rows,
    }
    outline = {"outline": [[0, 100], [1140, 100], [1140, 240], [0, 240]]}
    return {"format": "voelgoed-layout/1", "name": "Small", "zones": [stalls, pit | outline]}


def _environment(folder: Path) -> dict[str, str]:
    """Return this machine's environment without settings of its own.

    All guests come from one address, so it has no limit. A session is idle by PostgreSQL's clock, so a step of an hour
    would sign everyone out after the usual 30 minutes.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith("VOELGOED_")}
    return kept | {
        "VOELGOED_DATA_DIR": str(folder),
        "VOELGOED_GUESTS_PER_IP_PER_MINUTE": "0",
        "VOELGOED_SESSION_IDLE_S": "86400",
        "VOELGOED_LOG_LEVEL": "warning",
    }


async def _run(product: Product, *args: str) -> str:
    def run() -> subprocess.CompletedProcess[str]:
        env = _environment(product.folder)
        return subprocess.run(
            [PROGRAM, *args], env=env, capture_output=True, text=True, check=False, timeout=COMMAND_WAIT_S
        )

    done = await asyncio.to_thread(run)
    assert done.returncode == 0, (args, done.stdout, done.stderr)
    return done.stdout


async def _get(client: Client, path: str) -> Any:
    answer = await client.request("GET", path)
    assert answer.status == 200, (path, answer.status, answer.body)
    return answer.json()


def _stop(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(STOP_WAIT_S)
    except subprocess.TimeoutExpired:
        process.kill()  # the processes below it leave with it
        process.wait()
    if process.stdout:
        process.stdout.close()


def _processes() -> tuple[dict[int, int], dict[int, str]]:
    """Return the parent and the command line of every process. Zombies have no command line and are left out."""
    parents, titles = dict[int, int](), dict[int, str]()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                title = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
                if title:
                    parents[int(entry.name)], titles[int(entry.name)] = parent, title
    return parents, titles


def _role_of(title: str) -> str:
    program = title.split(" ", 1)[0]
    if "-m voelgoed.http" in title:
        return "web"
    if "-m voelgoed.jobs" in title:
        return "worker"
    if program.endswith("valkey-server"):
        return "valkey"
    return "postgres" if program.endswith("/postgres") else ""
