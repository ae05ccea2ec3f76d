"""What else the machine did meanwhile: a figure that others disturbed must say so."""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

TICKS: Final = os.sysconf("SC_CLK_TCK")
CORES: Final = os.cpu_count() or 1
FOREIGN_MAX_PCT: Final = 8.0
STEAL_MAX_PCT: Final = 6.0


@dataclass(frozen=True, slots=True)
class Moment:
    """What the processors had done until then, in seconds."""

    busy_s: float
    steal_s: float
    idle_s: float
    by_process: dict[int, float]

    @property
    def all_s(self) -> float:
        return self.busy_s + self.steal_s + self.idle_s


@dataclass(frozen=True, slots=True)
class Use:
    """What happened between two moments, in per cent of the whole machine; processes in per cent of one core."""

    steal_pct: float
    foreign_pct: float
    busy_pct: float
    by_process: dict[int, float]

    @property
    def is_disturbed(self) -> bool:
        return self.foreign_pct > FOREIGN_MAX_PCT or self.steal_pct > STEAL_MAX_PCT


def look(pids: Iterable[int]) -> Moment:
    """Now."""
    fields = [int(field) for field in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]]
    busy = (fields[0] + fields[1] + fields[2] + fields[5] + fields[6]) / TICKS
    return Moment(busy, fields[7] / TICKS, (fields[3] + fields[4]) / TICKS, {pid: spent(pid) for pid in pids})


def between(before: Moment, after: Moment) -> Use:
    """What was used between two moments, by ours and by others."""
    whole = max(after.all_s - before.all_s, 1e-9)
    ours = {pid: after.by_process[pid] - before.by_process.get(pid, 0.0) for pid in after.by_process}
    busy = after.busy_s - before.busy_s
    return Use(
        steal_pct=round(100 * (after.steal_s - before.steal_s) / whole, 1),
        foreign_pct=round(100 * max(0.0, busy - sum(ours.values())) / whole, 1),
        busy_pct=round(100 * busy / whole, 1),
        by_process={pid: round(100 * CORES * used / whole, 1) for pid, used in ours.items()},
    )


def family(*roots: int) -> list[int]:
    """Processes and everything below them."""
    below: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
            except OSError:
                continue
            below.setdefault(parent, []).append(int(entry.name))
    found, todo = [], list(roots)
    while todo:
        one = todo.pop()
        found.append(one)
        todo += below.get(one, [])
    return found


def spent(pid: int) -> float:
    """The processor time of a process and of the children it has waited for; nothing once it is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11:15])) / TICKS


def on_processor_s(pid: int) -> float:
    """The processor time of one process as the scheduler counts it: to the nanosecond, where ticks are hundredths."""
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9
    except OSError:
        return spent(pid)
