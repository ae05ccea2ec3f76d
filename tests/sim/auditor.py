"""The auditor: its own idea of the truth, compared with what the database says."""

from collections.abc import Sequence
from pathlib import Path

import asyncpg

from tests.sim.workload import Writer
from voelgoed import schema
from voelgoed.embedded import Embedded


async def audit(data_dir: Path, writers: Sequence[Writer]) -> None:
    """Everything acknowledged is there with its fact, nothing refused is, and nothing is there twice."""
    conn = await asyncpg.connect(Embedded(data_dir).postgres_url(schema.APP))
    await conn.execute("select set_config('app.scope', 'system', false)")
    rows = await conn.fetch("select slug from organizations where slug like 'sim-%'")
    facts = await conn.fetch(
        "select data ->> 'slug' as slug, count(*) as n from journal where kind = 'organization_created'"
        "   and data ->> 'slug' like 'sim-%' group by 1"
    )
    await conn.close()
    there = {row["slug"] for row in rows}
    acknowledged, refused, unknown = (
        set[str]().union(*(getattr(writer, kind) for writer in writers))
        for kind in ("acknowledged", "refused", "unknown")
    )
    assert acknowledged <= there, "something acknowledged was lost"
    assert not refused & there, "something refused was done"
    assert there <= acknowledged | unknown, "something is there that nobody asked for"
    assert {row["slug"]: row["n"] for row in facts} == dict.fromkeys(there, 1), "facts and changes differ"
