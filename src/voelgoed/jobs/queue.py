"""The job queue: how a job enters it, every job there is, and which of them come by the clock.

For work of a minute or slower; a job is run at least once, so it must be harmless to run it twice.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from types import MappingProxyType
from typing import Final
from uuid import UUID

import msgspec

from voelgoed.accounts import idempotency, sessions, signing
from voelgoed.db import Conn, Database
from voelgoed.events import timekeeper
from voelgoed.holds import inventory, occupancy, reconcile
from voelgoed.jobs import upkeep
from voelgoed.jobs.install import queries_on
from voelgoed.journal import origins
from voelgoed.seating import versions
from voelgoed.wiring import Services

SEND_PASSWORD_RESET = "send_password_reset"  # noqa: S105 - the name of a job
PAYLOAD_BYTES_MAX = 64 * 1024
EVERY_MINUTE, EVERY_5_MINUTES, HOURLY, DAILY = "* * * * *", "*/5 * * * *", "23 * * * *", "17 3 * * *"
"""Cron in UTC; not on the full hour, when everything else on a machine runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """How a job is done. `run` gets the payload as it was encoded; it may be stopped at any await and run again."""

    name: str
    run: Callable[[Services, bytes], Awaitable[object]]
    tries_max: int = 5
    timeout_s: float = 300.0

    def __post_init__(self) -> None:
        assert self.tries_max >= 1
        assert self.timeout_s > 0


@dataclass(frozen=True, slots=True)
class Recurring:
    """A job that comes by the clock, once for the whole installation."""

    job_name: str
    cron: str


def on_database(name: str, work: Callable[[Database], Awaitable[object]]) -> Job:
    """A job that needs nothing but the database."""
    return Job(name=name, run=lambda services, _payload: work(services.db))


class OneTimeRequest(msgspec.Struct, frozen=True):
    """Which request for a one-time link a mail is for. The link itself is made when the mail is sent."""

    one_time_id: UUID


async def send_password_reset(services: Services, payload: bytes) -> None:
    """Send the link to a new password; nothing when it was used or ran out in the meantime."""
    asked = msgspec.json.decode(payload, type=OneTimeRequest)
    mail = await signing.password_reset_mail(
        services.db, services.door.secret_key, asked.one_time_id, address=services.settings.address
    )
    if mail:
        await services.mailer.send(mail)


async def advance_events(services: Services, _payload: bytes) -> None:
    """Let events that leave it to the clock go live and end."""
    await timekeeper.advance(services.db, services.catalogue)


async def reconcile_places(services: Services, _payload: bytes) -> None:
    """Compare what Redis has of events' places with PostgreSQL, and have made anew what differs."""
    await reconcile.reconcile_all(services.db, services.availability, services.projection)


def known_jobs() -> Sequence[tuple[Job, str | None]]:
    """Every job, and when it comes by itself."""
    return [
        (Job(name="advance_events", run=advance_events, timeout_s=55.0), EVERY_MINUTE),
        (Job(name="reconcile_places", run=reconcile_places, timeout_s=280.0), EVERY_5_MINUTES),
        (on_database("purge_idempotency", idempotency.purge), HOURLY),
        (on_database("purge_occupancy", occupancy.purge), DAILY),
        (on_database("purge_unfinished_layouts", versions.purge_unfinished), HOURLY),
        (on_database("clear_broken_off_inventories", inventory.clear_broken_off), HOURLY),
        (on_database("purge_job_records", upkeep.purge), DAILY),
        (on_database("purge_origins", origins.purge), DAILY),
        (on_database("purge_sessions", sessions.purge), HOURLY),
        (Job(name=SEND_PASSWORD_RESET, run=send_password_reset), None),
    ]


JOBS: Final[Mapping[str, Job]] = MappingProxyType({job.name: job for job, _cron in known_jobs()})
RECURRING: Final = tuple(Recurring(job.name, cron) for job, cron in known_jobs() if cron)
assert len(JOBS) == len(known_jobs()), "a job's name occurs twice"


async def enqueue(
    conn: Conn,
    job_name: str,
    payload: Mapping[str, object],
    *,
    after: timedelta | None = None,
    dedupe_key: str | None = None,
) -> bool:
    """Add a job to the caller's transaction: it is there when the change is, and not otherwise.

    With a `dedupe_key` nothing is added, and False is the answer, while a job of that key waits or runs. One that
    runs may have read too early for what the caller has just changed: such a key must name the version as well.
    """
    assert job_name in JOBS, job_name
    encoded = msgspec.json.encode(payload)
    assert len(encoded) <= PAYLOAD_BYTES_MAX, "a payload names records, it does not carry them"
    added = await queries_on(conn).enqueue(
        job_name, encoded, execute_after=after, dedupe_key=dedupe_key, on_conflict="skip"
    )
    return added != [None]
