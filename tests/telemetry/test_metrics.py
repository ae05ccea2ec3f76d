"""The metrics: one list of names, right in one process and across several."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given, strategies as st
from prometheus_client import CollectorRegistry, Histogram

from voelgoed.telemetry import metrics

PROGRAM = """
import sys
from voelgoed.telemetry import metrics
metrics.HTTP_IN_FLIGHT.inc(int(sys.argv[1]))
metrics.BREAKER_STATE.labels("redis").set(int(sys.argv[2]))
for seconds in (0.002, 0.3):
    metrics.observe_http(method="GET", route="/api/me", status=200, seconds=seconds)
metrics.LOOP_TICKS.labels("reaper").inc(int(sys.argv[1]))
metrics.settle()
print("ready", flush=True)
sys.stdin.readline()
print(metrics.render()[0].decode(), flush=True)
"""


def samples(page: str) -> dict[str, float]:
    """Every line of a page that has a value."""
    return {
        line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1]) for line in page.splitlines() if line and line[0] != "#"
    }


class Process:
    """A real process with metrics in a folder."""

    def __init__(self, folder: Path, *args: int) -> None:
        self.popen = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, *map(str, args)],
            env=os.environ | {metrics.FOLDER_ENV: str(folder)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.popen.stdout is not None
        assert self.popen.stdout.readline() == "ready\n"

    def page(self) -> str:
        """What this process answers to Prometheus; it ends with that."""
        assert self.popen.stdin is not None
        assert self.popen.stdout is not None
        with self.popen.stdin as line, self.popen.stdout as said:
            line.write("\n")
            line.flush()
            page = said.read()
        self.popen.wait(30)
        return page


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return metrics.prepare_folder(tmp_path)


@pytest.fixture
def start(folder: Path) -> Iterator[Callable[[int, int], Process]]:
    """Start a process; whatever the test left running is ended."""
    started: list[Process] = []

    def start_one(in_flight: int, state: int) -> Process:
        started.append(Process(folder, in_flight, state))
        return started[-1]

    yield start_one
    for process in started:
        with process.popen as popen:
            popen.kill()


def test_two_processes_are_one_installation(folder: Path, start: Callable[[int, int], Process]) -> None:
    """Whichever process is asked: counters are added up, gauges are those of the living, the worst breaker shows."""
    first, second = start(3, 0), start(4, 2)
    seen = samples(first.page())
    assert seen["voelgoedevents_http_in_flight"] == 7
    assert seen['voelgoedevents_breaker_state{name="redis"}'] == 2
    assert seen['voelgoedevents_loop_ticks_total{loop="reaper"}'] == 7
    assert seen['voelgoedevents_http_requests_total{method="GET",route="/api/me",status="200"}'] == 4
    assert seen['voelgoedevents_http_request_seconds_bucket{le="0.0025",method="GET",route="/api/me"}'] == 2
    assert seen['voelgoedevents_http_request_seconds_count{method="GET",route="/api/me"}'] == 4

    metrics.mark_process_dead(first.popen.pid, folder)
    seen = samples(second.page())
    assert seen["voelgoedevents_http_in_flight"] == 4
    assert seen['voelgoedevents_loop_ticks_total{loop="reaper"}'] == 7


def test_the_folder_is_empty_at_each_start(tmp_path: Path) -> None:
    """Numbers of the last run do not come back, and nobody else may read the folder."""
    folder = metrics.prepare_folder(tmp_path / "data")
    (folder / "counter_1.db").write_bytes(b"old")
    assert metrics.prepare_folder(tmp_path / "data") == folder
    assert list(folder.iterdir()) == []
    assert folder.stat().st_mode & 0o777 == 0o700
    metrics.mark_process_dead(1, folder)


def test_one_process_alone_shows_its_own() -> None:
    """Without a folder the page is this process's, in the text that Prometheus reads."""
    metrics.LOGIN_ATTEMPTS.labels("throttled").inc(0)
    metrics.observe_http(method="BREW", route="unmatched", status=404, seconds=0.1)
    page, content_type = metrics.render()
    assert content_type.startswith("text/plain")
    seen = samples(page.decode())
    assert seen['voelgoedevents_login_attempts_total{outcome="throttled"}'] == 0
    assert seen['voelgoedevents_http_requests_total{method="OTHER",route="unmatched",status="404"}'] == 1


def test_every_name_is_ours_and_no_label_is_an_id() -> None:
    """All names start alike and stand in one list; labels are words of few values."""
    assert len(metrics.NAMES) == 49
    assert [name for name in metrics.NAMES if not name.startswith("voelgoedevents_")] == []
    described = {
        name: sorted(getattr(metric, "_labelnames", ()))
        for metric in vars(metrics).values()
        if (name := getattr(metric, "_name", "")).startswith("voelgoedevents_")
    }
    assert sorted(described) == list(metrics.NAMES)
    labels = {label for names in described.values() for label in names}
    assert not [label for label in labels if re.search(r"(^|_)(id|ip|email|path|url|key)$", label)], json.dumps(
        described
    )


@given(st.lists(st.floats(0, 20), max_size=30))
def test_times_handed_on_together_count_as_each_by_itself(seconds: list[float]) -> None:
    """The same buckets and the same sum, at the bounds as well."""
    each, together = (
        Histogram("took", "Seconds", registry=CollectorRegistry(), buckets=metrics.SECONDS) for _ in range(2)
    )
    seconds = [*seconds, *metrics.SECONDS]
    for one in seconds:
        each.observe(one)
        metrics.observe(together, one)
    assert kept(together)[:-1] == [0.0] * (len(metrics.SECONDS) + 1)
    metrics.settle()
    assert kept(together)[:-1] == kept(each)[:-1]
    assert kept(together)[-1] == pytest.approx(kept(each)[-1])
    metrics.settle()
    assert kept(together)[:-1] == kept(each)[:-1]


def kept(histogram: Histogram) -> list[float]:
    """Every bucket, and the sum."""
    return [*(bucket.get() for bucket in histogram._buckets), histogram._sum.get()]
