"""`voelgoed verify`: what must never be so, asked of a live database. An empty answer to every question is well."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from voelgoed.db import Database, load_queries
from voelgoed.ids import OrganizationId

CHECKS: Final[Mapping[str, str]] = load_queries(Path(__file__).with_name("checks.sql"))
SHOWN_MAX: Final = 20
CHECK_S: Final = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A record that breaks what must hold."""

    check: str
    id: str
    why: str


async def verify(
    db: Database,
    *,
    organization_id: OrganizationId | None = None,
    on_check: Callable[[str, int], None] = lambda _name, _found: None,
) -> Sequence[Finding]:
    """Ask everything, of one organization or of all; the first few of each kind."""
    found: list[Finding] = []
    for name, check in CHECKS.items():
        # One each: none may last.
        async with db.transaction(organization_id) if organization_id else db.system_transaction() as conn:
            # Whole tables are compared, whatever the planner thinks of their size: by hash. A merge by the event alone
            # would compare every hold with every seat of its hall.
            await conn.execute("set local enable_nestloop = off; set local enable_mergejoin = off")
            await conn.execute("set local statement_timeout = '5min'")
            rows = await conn.fetch(check, SHOWN_MAX, timeout=CHECK_S)
        found += [Finding(check=name, id=row["id"], why=row["why"]) for row in rows]
        on_check(name, len(rows))
    return found
