"""`voelgoed audit search`: the facts of one organization, readable by people and by programs."""

import json
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from tests.make.accounts import make_organization
from voelgoed.accounts.model import Organization
from voelgoed.cli import audit
from voelgoed.db import Database
from voelgoed.errors import StartRefused
from voelgoed.ids import OrganizationId
from voelgoed.journal.model import Fact, Origin, RecordedFact, SearchFilter
from voelgoed.journal.recording import record_all

NOW = datetime(2026, 8, 1, 12, tzinfo=UTC)
ANNA = UUID(int=7)


def fact(**over: object) -> RecordedFact:
    told: dict[str, object] = {
        "xid": 5,
        "seq": 6,
        "recorded_at": datetime(2026, 8, 1, 18, 30, 5, 123_000, tzinfo=UTC),
        "kind": "member_role_changed",
        "organization_id": OrganizationId(UUID(int=1)),
        "event_id": None,
        "seat_id": None,
        "version": None,
        "actor_id": ANNA,
        "origin_id": None,
        "request_id": None,
        "reason": "nuwe pos",
        "data": {"user_id": "u-1", "role_before": "staff", "role_after": "admin", "note": None},
        "origin": Origin(ip="192.0.2.1"),
    }
    return RecordedFact(**told | over)  # type: ignore[arg-type]


@pytest.fixture
async def organization(db: Database) -> Organization:
    """An organization in which 450 things happened after it was founded."""
    made = await make_organization(db)
    async with db.transaction(made.id) as conn:
        await record_all(
            conn,
            [
                Fact(kind="even" if n % 2 == 0 else "odd", organization_id=made.id, version=n, actor_id=ANNA)
                for n in range(450)
            ],
        )
    return made


async def test_the_newest_facts_come_first_and_as_many_as_asked(db: Database, organization: Organization) -> None:
    """More than a page of the search as well, each once."""
    found = await audit.search(db, slug=organization.slug, asked=SearchFilter(kinds=["even", "odd"]), limit=420)
    assert [one.version for one in found] == list(reversed(range(30, 450)))
    found = await audit.search(db, slug=organization.slug, asked=SearchFilter(kinds=["odd"]), limit=10_000)
    assert [one.version for one in found] == list(reversed(range(1, 450, 2)))


async def test_an_unknown_organization_is_said_in_plain_words(db: Database) -> None:
    """And so is a number that is too large."""
    with pytest.raises(StartRefused, match="there is no organization 'nowhere'"):
        await audit.search(db, slug="nowhere", asked=SearchFilter(), limit=1)
    for limit in (0, 10_001):
        with pytest.raises(StartRefused, match="--limit must be from 1 to 10000"):
            await audit.search(db, slug="nowhere", asked=SearchFilter(), limit=limit)


@pytest.mark.parametrize(
    ("told", "moment"),
    [
        ("2026-08-01", datetime(2026, 8, 1, tzinfo=UTC)),
        ("2026-08-01T18:30", datetime(2026, 8, 1, 18, 30, tzinfo=UTC)),
        ("2026-08-01T18:30+02:00", datetime(2026, 8, 1, 16, 30, tzinfo=UTC)),
        ("2026-08-01T18:30:00Z", datetime(2026, 8, 1, 18, 30, tzinfo=UTC)),
        ("90m", NOW - timedelta(minutes=90)),
        ("24h", NOW - timedelta(days=1)),
        ("7d", NOW - timedelta(days=7)),
        ("2w", NOW - timedelta(days=14)),
    ],
)
def test_a_time_is_a_moment_or_a_while_ago(told: str, moment: datetime) -> None:
    """As a person writes it; without a zone it is UTC."""
    assert audit.read_time(told, now=NOW) == moment


@pytest.mark.parametrize("told", ["", "yesterday", "7", "d", "-1d", "999999w", "0001-01-01T00:00+14:00", "2026-13-01"])
def test_what_is_no_time_is_refused(told: str) -> None:
    """In plain words, with what to write instead."""
    with pytest.raises(StartRefused, match="is no time"):
        audit.read_time(told, now=NOW)


def test_programs_get_a_line_of_json_for_each_fact(capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing else on standard output, and nothing for no facts."""
    audit.show([], as_json=True)
    assert capsys.readouterr().out == ""
    audit.show([fact(), fact(seq=7, origin=None, data={"name": "\x1b[31m\x9b"})], as_json=True)
    first, second = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    assert first == {
        "xid": 5,
        "seq": 6,
        "recorded_at": "2026-08-01T18:30:05.123000Z",
        "kind": "member_role_changed",
        "organization_id": "00000000-0000-0000-0000-000000000001",
        "event_id": None,
        "seat_id": None,
        "version": None,
        "actor_id": "00000000-0000-0000-0000-000000000007",
        "request_id": None,
        "reason": "nuwe pos",
        "data": {"user_id": "u-1", "role_before": "staff", "role_after": "admin", "note": None},
        "origin": {"session_id": None, "ip": "192.0.2.1", "user_agent": None},
    }
    assert (second["seq"], second["origin"], second["data"]) == (7, None, {"name": "\x1b[31m\x9b"})


def shown(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *facts: RecordedFact) -> list[str]:
    """What a person sees on a wide terminal, without the empty space round it."""
    monkeypatch.setenv("COLUMNS", "160")
    audit.show(facts, as_json=False)
    return [line.strip() for line in capsys.readouterr().out.splitlines() if line.strip()]


def test_people_get_a_table(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """When, what, who and from where, why, and what changed from what to what."""
    lines = shown(
        capsys, monkeypatch, fact(), fact(kind="seat_held", actor_id=None, origin=None, seat_id=ANNA, data={})
    )
    said = "\n".join(lines)
    assert lines[0].split("  ")[0] == "Time (UTC)"
    row = next(line for line in lines if line.startswith("2026-08-01 18:30:05"))
    assert all(part in row for part in ("member_role_changed", str(ANNA), "nuwe pos", "user id: u-1"))
    assert "192.0.2.1" in said
    assert "role: staff → admin" in said
    assert "note" not in said, "what says nothing is left out"
    assert "role before" not in said
    assert "the system" in said
    assert f"seat {ANNA}" in said
    assert lines[-1] == "2 facts"


def test_what_changed_is_told_pair_by_pair(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """As facts about events tell it; the event is named once."""
    data = {"event_id": str(ANNA), "changes": {"status": ["draft", "published"], "capacity": [None, 350]}}
    said = "\n".join(shown(capsys, monkeypatch, fact(kind="event_updated", event_id=ANNA, data=data)))
    assert "status: draft → published" in said
    assert "capacity: none → 350" in said
    assert "event id" not in said


def test_what_strangers_wrote_is_shown_and_not_obeyed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither an escape of a terminal nor markup of the table."""
    said = "\n".join(shown(capsys, monkeypatch, fact(reason="\x1b[2J", data={"name": "[red]Rooi[/]", "tags": ["a"]})))
    assert "\x1b" not in said
    assert "�[2J" in said
    assert "name: [red]Rooi[/]" in said
    assert 'tags: ["a"]' in said
    assert said.endswith("1 fact")
