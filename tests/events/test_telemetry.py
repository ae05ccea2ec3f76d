"""What is counted and logged of events: every move, every oddity, with whose, where and why."""

from collections.abc import Iterator
from typing import Any

import pytest
import structlog
from structlog.testing import capture_logs

from tests.make.accounts import make_organization
from tests.make.events import call_of, carry_out, make_event, soon
from voelgoed.accounts.model import Organization, Role
from voelgoed.db import Database
from voelgoed.events import timekeeper, usecases
from voelgoed.events.model import Event, NewDate, Order, Verb
from voelgoed.events.refusals import EventMoveRefused, EventTimesInvalid
from voelgoed.ids import new_id
from voelgoed.telemetry import metrics
from voelgoed.wiring import Services


@pytest.fixture
async def place(db: Database) -> Organization:
    return await make_organization(db)


@pytest.fixture
def logs() -> Iterator[list[Any]]:
    """Everything that is logged, although tests are quiet otherwise."""
    quiet = structlog.get_config()["wrapper_class"]
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(0))
    with capture_logs() as entries:
        yield entries
    structlog.configure(wrapper_class=quiet)


def moves(verb: Verb, old: str, new: str) -> float:
    return float(metrics.EVENT_MOVES.labels(verb, old, new)._value.get())


def anomalies(kind: str) -> float:
    return float(metrics.EVENT_ANOMALIES.labels(kind)._value.get())


def about(event: Event) -> dict[str, str]:
    return {
        "event_id": str(event.id),
        "venue_id": str(event.venue_id),
        "organization_id": str(event.organization_id),
    }


@pytest.mark.req("TEL-13", "TEL-36")
@pytest.mark.parametrize(
    ("verb", "old", "new", "kind"),
    [
        (Verb.CANCEL, "published", "cancelled", "event_status_changed"),
        (Verb.POSTPONE, "published", "postponed", "event_status_changed"),
        (Verb.RESCHEDULE, "postponed", "postponed", "event_rescheduled"),
        (Verb.PUBLISH, "draft", "published", "event_status_changed"),
    ],
)
async def test_a_move_is_counted_and_logged(
    db: Database, services: Services, place: Organization, logs: list[Any], verb: Verb, old: str, new: str, kind: str
) -> None:
    """Which event, venue and organization; by whom, of which role, and why."""
    event = await make_event(db, place, status=old)
    logs.clear()
    before, who = moves(verb, old, new), new_id()
    new_date = NewDate(start_at=soon(days=60)) if verb is Verb.RESCHEDULE else None
    order = Order(verb=verb, reason="the roof leaks", new_date=new_date)
    await carry_out(db, services.catalogue, call_of(place, Role.ADMIN, who), event.id, order)
    assert moves(verb, old, new) == before + 1
    told = [entry for entry in logs if entry["event"] == kind]
    assert len(told) == 1
    assert told[0] | {"log_level": "info", "verb": verb} | about(event) == told[0]
    assert (told[0]["reason"], told[0]["actor_id"], told[0]["actor_type"]) == ("the roof leaks", str(who), "admin")
    assert (told[0]["old_status"], told[0]["new_status"]) == (old, new)


async def test_a_refusal_is_not_counted_as_a_move(
    db: Database, services: Services, place: Organization, logs: list[Any]
) -> None:
    """Nothing happened, and nothing is told."""
    event = await make_event(db, place)
    logs.clear()
    before = moves(Verb.CANCEL, "draft", "cancelled")
    with pytest.raises(EventMoveRefused):
        await carry_out(db, services.catalogue, call_of(place), event.id, Order(verb=Verb.CANCEL, reason="none"))
    assert moves(Verb.CANCEL, "draft", "cancelled") == before
    assert [entry for entry in logs if entry["event"].startswith("event_")] == []


@pytest.mark.req("TEL-13")
async def test_odd_times_are_noticed(db: Database, services: Services, place: Organization, logs: list[Any]) -> None:
    """Times that do not fit, a sale that is over before it began, a step the clock took late."""
    event = await make_event(db, place)
    kinds = ("times_refused", "published_after_its_sale", "moved_late")
    before = {kind: anomalies(kind) for kind in kinds}
    with pytest.raises(EventTimesInvalid):
        await usecases.update_event(
            db, services.catalogue, call_of(place), event.id, {"end_at": event.start_at}, version=None
        )
    late = await make_event(
        db, place, start_at=soon(hours=-2), end_at=soon(hours=1), sale_end_at=soon(hours=-1), status="published"
    )
    await timekeeper.advance(db, services.catalogue)
    noticed = [entry for entry in logs if entry["event"] == "event_anomaly"]
    for kind, one in zip(kinds, (event, late, late), strict=True):
        assert anomalies(kind) >= before[kind] + 1
        mine = [entry for entry in noticed if entry["anomaly"] == kind and entry["event_id"] == str(one.id)]
        assert [entry | about(one) == entry for entry in mine] == [True], kind
        assert mine[0]["log_level"] == "warning"
