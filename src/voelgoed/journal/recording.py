"""Recording: the one way a fact enters the journal."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime

from voelgoed.db import Conn
from voelgoed.journal import store
from voelgoed.journal.model import Fact
from voelgoed.telemetry import metrics

FACTS_PER_CALL_MAX = 1_000
SECRETS = frozenset({"password", "token", "secret", "code"})
DEPTH_MAX = 8
"""How deep the data of a fact may be nested."""


async def record(conn: Conn, fact: Fact) -> None:
    """Record in the caller's transaction: the fact stands or falls with the change it tells of."""
    await record_all(conn, (fact,))


async def record_all(conn: Conn, facts: Sequence[Fact]) -> None:
    """Record facts of one organization, in their order, with one statement; their origins with one more."""
    assert len(facts) <= FACTS_PER_CALL_MAX
    if not facts:
        return
    organization_id = facts[0].organization_id
    assert all(fact.organization_id == organization_id for fact in facts)
    for fact in facts:
        told = SECRETS.intersection(_keys(fact.data))
        assert not told, f"{fact.kind} would keep for ever: {', '.join(sorted(told))}"
    today = datetime.now(UTC).date()
    origin_ids = [fact.origin.id_on(organization_id, today) if fact.origin else None for fact in facts]
    origins = {
        origin_id: fact.origin for origin_id, fact in zip(origin_ids, facts, strict=True) if origin_id and fact.origin
    }
    if origins:
        await store.add_origins(conn, organization_id, origins)
    await store.record_all(conn, organization_id, facts, origin_ids)
    for fact in facts:
        metrics.FACTS_RECORDED.labels(fact.kind).inc()


def _keys(told: object, depth: int = 0) -> Iterator[str]:
    """Every key in a fact's data, however deep."""
    assert depth <= DEPTH_MAX, "a fact is flat, or nearly"
    if isinstance(told, Mapping):
        yield from (str(key).lower() for key in told)
        for value in told.values():
            yield from _keys(value, depth + 1)
    elif isinstance(told, list | tuple):
        for value in told:
            yield from _keys(value, depth + 1)
