"""`voelgoed verify`: check invariants of a live database. A check that returns no rows is ok."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from uuid import UUID

from voelgoed.db import Database, load_queries
from voelgoed.holds import store
from voelgoed.ids import OrganizationId

DATABASE_CHECKS: Final[Mapping[str, str]] = load_queries(Path(__file__).with_name("checks.sql"))
JOURNAL_CHECKS: Final[Mapping[str, str]] = load_queries(Path(__file__).with_name("journal_checks.sql"))
CHECKS: Final[Mapping[str, str]] = {**DATABASE_CHECKS, **JOURNAL_CHECKS}
SHOWN_MAX: Final = 20
CHECK_S: Final = 300.0
JOINS: Final = "set local enable_nestloop = off; set local enable_mergejoin = off"
"""Compare whole tables by hash, whatever the planner believes about their size: a merge by the event alone would
compare every hold with every seat of its layout."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A record that breaks an invariant."""

    check: str
    id: str
    why: str


async def verify(
    db: Database,
    *,
    organization_id: OrganizationId | None = None,
    on_check: Callable[[str, int], None] = lambda _name, _found: None,
) -> Sequence[Finding]:
    """Run every check on one organization or on all, and return at most 20 findings of each."""
    found: list[Finding] = []
    for name, check in DATABASE_CHECKS.items():
        rows = await _run(db, organization_id, name, check, SHOWN_MAX)
        found += rows
        on_check(name, len(rows))
    by_check: dict[str, list[Finding]] = {name: [] for name in JOURNAL_CHECKS}
    # All checks of an event before the next event, so that its facts are read from disk once.
    for event in await _list_events(db, organization_id):
        for name, check in JOURNAL_CHECKS.items():
            if left := SHOWN_MAX - len(by_check[name]):
                by_check[name] += await _run(db, organization_id, name, check, *event, left)
    for name, findings in by_check.items():
        found += findings
        on_check(name, len(findings))
    return found


async def _list_events(db: Database, organization_id: OrganizationId | None) -> Sequence[tuple[OrganizationId, UUID]]:
    async with db.transaction(organization_id) if organization_id else db.system_transaction() as conn:
        return await store.list_events_with_inventory(conn)


async def _run(
    db: Database, organization_id: OrganizationId | None, name: str, check: str, *values: object
) -> list[Finding]:
    """Run one check in a transaction of its own, because a long one would hold up vacuum."""
    async with db.transaction(organization_id) if organization_id else db.system_transaction() as conn:
        await conn.execute(JOINS)
        await conn.execute("set local statement_timeout = '5min'")
        rows = await conn.fetch(check, *values, timeout=CHECK_S)
    return [Finding(check=name, id=row["id"], why=row["why"]) for row in rows]
