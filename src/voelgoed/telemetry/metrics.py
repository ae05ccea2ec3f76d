"""Every metric of the installation, in one list, and the page on which Prometheus reads them.

Several processes serve one installation, and a scrape reaches any one of them. So each process keeps its numbers in
files of one folder, and whoever is asked adds them up. `prometheus_client` decides this once, when it is imported, by
PROMETHEUS_MULTIPROC_DIR: the parent makes the folder with `prepare_folder` and gives it to its children in their
environment. Without that name (tests, a process run by hand) the numbers are those of this process alone.

No label is ever an id, an address or a path as it was asked: every label has few values, known beforehand.
"""

import contextlib
import os
import shutil
from bisect import bisect_left
from functools import cache
from pathlib import Path
from typing import Final

import prometheus_client
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, multiprocess, values

FOLDER_ENV = "PROMETHEUS_MULTIPROC_DIR"
PREFIX = "voelgoedevents"
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
"""From an answer out of memory to a request that met its deadline."""

if os.environ.get(FOLDER_ENV):
    # The library asks the system for the process's number at every count, in case it was forked. Ours never are.
    values.ValueClass = values.MultiProcessValue(str(os.getpid()).__str__)  # type: ignore[no-untyped-call]
# A second series for each counter, which the files of several processes lack.
prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call]
REGISTRY: Final = CollectorRegistry()
"""Our own: the library's default one brings names that are not ours."""


def _counter(name: str, what: str, *labels: str) -> Counter:
    return Counter(name, what, labels, namespace=PREFIX, registry=REGISTRY)


HTTP_REQUESTS = _counter("http_requests_total", "Requests answered", "method", "route", "status")
HTTP_SECONDS = Histogram(
    "http_request_seconds",
    "From the request's arrival to the last byte of its answer",
    ("method", "route"),
    namespace=PREFIX,
    registry=REGISTRY,
    buckets=SECONDS,
)
HTTP_IN_FLIGHT = Gauge(
    "http_in_flight",
    "Requests being answered now",
    namespace=PREFIX,
    registry=REGISTRY,
    multiprocess_mode="livesum",
)
FORWARDED_IGNORED = _counter(
    "forwarded_ignored_total", "Requests with X-Forwarded-For or Forwarded although no proxy is trusted"
)
REDIS_CALLS = _counter("redis_calls_total", "Calls to Redis that were tried")
REDIS_FAILURES = _counter("redis_failures_total", "Calls to Redis that brought no answer", "reason")
REDIS_REFUSALS = _counter("redis_refusals_total", "Calls to Redis that were not tried", "reason")
BREAKER_STATE = Gauge(
    "breaker_state",
    "0 closed, 1 half open, 2 open; the worst of all processes",
    ("name",),
    namespace=PREFIX,
    registry=REGISTRY,
    multiprocess_mode="livemax",
)
CACHE_LOOKUPS = _counter("cache_lookups_total", "Lookups by tier (hot, warm) and outcome", "tier", "outcome")
THROTTLE_REFUSALS = _counter("throttle_refusals_total", "Tries refused by a throttle", "name", "kept_in")
LOOP_TICKS = _counter("loop_ticks_total", "Ticks that a loop has done", "loop")
LOOP_ERRORS = _counter("loop_errors_total", "Ticks that failed", "loop")
JOBS_RUN = _counter("jobs_run_total", "Jobs done", "job")
JOBS_FAILED = _counter("jobs_failed_total", "Runs of a job that failed, by what follows", "job", "outcome")
REACTIONS_FAILED = _counter("reactions_failed_total", "Reactions to a fact that failed, by what follows", "outcome")
FACTS_RECORDED = _counter("facts_recorded_total", "Facts written to the journal", "kind")
SESSION_LOOKUPS = _counter("session_lookups_total", "Sessions asked for, by where they were found", "found_in")
LOGIN_ATTEMPTS = _counter("login_attempts_total", "Tries to sign in, by outcome", "outcome")
EVENT_MOVES = _counter("event_moves_total", "Changes of events' status or date", "verb", "old", "new")
EVENT_ANOMALIES = _counter("event_anomalies_total", "Events whose times a person should look at", "kind")
FEED_WATCHERS = Gauge(
    "feed_watchers",
    "Streams of organizations' feeds that are open",
    namespace=PREFIX,
    registry=REGISTRY,
    multiprocess_mode="livesum",
)
MAP_VIEWERS = Gauge(
    "seating_map_viewers",
    "Live maps that are being looked at",
    namespace=PREFIX,
    registry=REGISTRY,
    multiprocess_mode="livesum",
)
MAP_FRAMES = _counter("seating_map_frames_total", "Frames of live maps that were sent")
MAP_VIEWERS_DROPPED = _counter("seating_map_viewers_dropped_total", "Live maps that were not read and were let go")
FEED_DROPPED = _counter("feed_dropped_total", "Streams that could not keep up and were told to start over")
LAYOUT_LOADS = _counter("layout_loads_total", "Geometry documents asked for, by where they were found", "found_in")
LAYOUT_LOAD_SECONDS = Histogram(
    "layout_load_seconds",
    "Until a geometry document is at hand",
    namespace=PREFIX,
    registry=REGISTRY,
    buckets=SECONDS,
)
HOLD_ASKS = _counter("seating_hold_asks_total", "Asks for holds, by what was said to them", "outcome")
HOLD_SECONDS = Histogram(
    "seating_hold_seconds",
    "From an ask for a hold to what is said to it",
    namespace=PREFIX,
    registry=REGISTRY,
    buckets=SECONDS,
)
HOLD_ENDS = _counter(
    "seating_hold_ends_total", "What became of holds, by how: extended, released, expired...", "outcome"
)
LANE_SHED = _counter("lane_shed_total", "Asks refused at once because too many were waiting")
LANE_BATCH_ASKS = Histogram(
    "lane_batch_asks",
    "Asks in one batch",
    namespace=PREFIX,
    registry=REGISTRY,
    buckets=(1, 2, 4, 8, 16, 32, 64, 128, 256),
)
LANE_BATCH_SECONDS = Histogram(
    "lane_batch_seconds", "One batch, from call to commit", namespace=PREFIX, registry=REGISTRY, buckets=SECONDS
)
HOLD_CACHE_LOOKUPS = _counter(
    "seating_hold_cache_lookup_total", "Look-ups of places by tier: ets (hot), redis (warm), db (cold)", "source", "hit"
)
HOLD_CACHE_SECONDS = Histogram(
    "seating_hold_cache_lookup_seconds",
    "Until a look-up is answered, by the tier that answered",
    ("source",),
    namespace=PREFIX,
    registry=REGISTRY,
    buckets=SECONDS,
)
HOLD_REDIS_SUCCESS = _counter("seating_hold_redis_success_total", "Changes of places written to Redis")
HOLD_REDIS_FALLBACK = _counter("seating_hold_redis_fallback_total", "Times PostgreSQL answered because Redis was away")
MAP_LOAD_SECONDS = Histogram(
    "seating_map_load_seconds", "One load of an event's places", namespace=PREFIX, registry=REGISTRY, buckets=SECONDS
)
MAPS_KEPT = Gauge(
    "seating_maps_kept",
    "Events whose places are in memory",
    namespace=PREFIX,
    registry=REGISTRY,
    multiprocess_mode="livesum",
)
MAP_BYTES = Gauge(
    "seating_map_bytes",
    "What the places in memory take",
    namespace=PREFIX,
    registry=REGISTRY,
    multiprocess_mode="livesum",
)
PROJECTION_REBUILDS = _counter("seating_projection_rebuilds_total", "Events written to Redis anew, by why", "why")
PROJECTION_LAG_SECONDS = Histogram(
    "seating_projection_lag_seconds",
    "From a change to its being told on",
    namespace=PREFIX,
    registry=REGISTRY,
    buckets=SECONDS,
)
CLOCK_STEPS = _counter("clock_steps_total", "Jumps of PostgreSQL's clock, by direction", "direction")
REAPER_RUN_AT = Gauge(
    "reaper_run_timestamp",
    "When the reaper last came to its end, in seconds since 1970",
    namespace=PREFIX,
    registry=REGISTRY,
    multiprocess_mode="max",
)
REAPER_RUNS = _counter("reaper_runs_total", "Runs of the reaper, by outcome", "outcome")
REAPER_HOLDS = _counter("reaper_holds_total", "Lapsed holds that the reaper has tidied away")
REAPER_SECONDS = Histogram(
    "reaper_seconds", "One run of the reaper", namespace=PREFIX, registry=REGISTRY, buckets=SECONDS
)
DB_ACQUIRED = _counter("db_connections_acquired_total", "Connections taken from the pool")
DB_BUSY = _counter("db_busy_total", "Work that PostgreSQL refused or did not do in time, with nothing changed")

NAMES: Final = tuple(sorted(metric.name for metric in REGISTRY.collect()))
"""Every name above, without the endings Prometheus adds."""


UNMATCHED = "(none)"
"""The route of what matched none, or was refused before anybody looked."""


def observe_http(*, method: str, route: str, status: int, seconds: float) -> None:
    """Count one answer. `route` is the template (`/api/events/{id}`), or `UNMATCHED`."""
    requests, took = _of_route(method if method in METHODS else "OTHER", route, status)
    count(requests)
    observe(took, seconds)


def count(counter: Counter) -> None:
    """Count on the way of every sale: kept here until `settle`, for a count that goes to a file costs microseconds."""
    _counts[counter] = _counts.get(counter, 0) + 1


def observe(histogram: Histogram, seconds: float) -> None:
    """The same for how long something took."""
    kept = _times.get(histogram)
    if kept is None:
        _times[histogram] = [seconds]
    else:
        kept.append(seconds)


def settle() -> None:
    """Hand on what was kept; a web process does so a few times a second, and whoever shows the numbers before that."""
    for counter, number in _counts.items():
        counter.inc(number)
    _counts.clear()
    for histogram, seconds in _times.items():
        _observe_all(histogram, seconds)
    _times.clear()


_counts: dict[Counter, int] = {}
_times: dict[Histogram, list[float]] = {}


def _observe_all(histogram: Histogram, seconds: list[float]) -> None:
    """As `observe` for each; the library has no such thing, so this knows how it keeps them, and a test compares."""
    bounds = histogram._upper_bounds  # noqa: SLF001
    places = [0] * len(bounds)
    for one in seconds:
        places[bisect_left(bounds, one)] += 1
    histogram._sum.inc(sum(seconds))  # noqa: SLF001
    for bucket, number in zip(histogram._buckets, places, strict=True):  # noqa: SLF001
        if number:
            bucket.inc(number)


@cache
def _of_route(method: str, route: str, status: int) -> tuple[Counter, Histogram]:
    """Looked up once: every request is counted, and there are few routes."""
    return HTTP_REQUESTS.labels(method, route, str(status)), HTTP_SECONDS.labels(method, route)


@cache
def hold_asks(outcome: str) -> Counter:
    """The counter of asks that ended so; looked up once."""
    return HOLD_ASKS.labels(outcome)


def prepare_folder(data_dir: Path) -> Path:
    """Make the folder of the processes' numbers, empty: the counters begin with the installation's start."""
    folder = data_dir / "metrics"
    if folder.exists():
        shutil.rmtree(folder)
    folder.mkdir(mode=0o700, parents=True)
    return folder


def mark_process_dead(pid: int, folder: Path) -> None:
    """Forget what a dead process was doing; what it has counted stays counted."""
    with contextlib.suppress(FileNotFoundError):
        multiprocess.mark_process_dead(pid, str(folder))  # type: ignore[no-untyped-call]


def render() -> tuple[bytes, str]:
    """The page for Prometheus and its content type. Reads files: off the event loop where that matters."""
    settle()
    registry = REGISTRY
    if folder := os.environ.get(FOLDER_ENV):
        registry = CollectorRegistry()
        multiprocess.MultiProcessCollector(registry, folder)  # type: ignore[no-untyped-call]
    return prometheus_client.generate_latest(registry), prometheus_client.CONTENT_TYPE_LATEST
