"""The queue's tables: made and changed by the owner of the schema, used by the application, closed to others."""

from typing import Any, Final

from pgqueuer.adapters.drivers.asyncpg import AsyncpgDriver
from pgqueuer.adapters.persistence.qb import QueryBuilderEnvironment, QueryQueueBuilder, QuerySchedulerBuilder
from pgqueuer.adapters.persistence.queries import Queries
from pgqueuer.domain.settings import DBSettings, Durability
from pgqueuer.domain.types import Channel
from pydantic_settings import PydanticBaseSettingsSource

from voelgoed.db import Conn, Connection


class Names(DBSettings):
    """What the library's tables are called. Only from here: it would read names as plain as CHANNEL from anywhere."""

    @classmethod
    def settings_customise_sources(  # type: ignore[override]  # the others are named, and not used
        cls, *_named: Any, init_settings: PydanticBaseSettingsSource, **_others: Any
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """The arguments, and no environment."""
        return (init_settings,)


NAMES: Final = Names(db_schema="public", channel=Channel("voelgoed_jobs"), durability=Durability.durable)

TABLES: Final = (NAMES.queue_table, NAMES.queue_table_log, NAMES.statistics_table, NAMES.schedules_table)

GRANTS: Final = "\n".join(
    [
        *(f"revoke all on {table} from public;" for table in TABLES),
        *(f"grant select, insert, update, delete on {table} to voelgoed_app;" for table in TABLES),
        *(f"grant usage on sequence {table}_id_seq to voelgoed_app;" for table in TABLES),
        f"revoke all on function {NAMES.function}() from public;",
        f"revoke all on type {NAMES.queue_status_type} from public;",
        f"grant usage on type {NAMES.queue_status_type} to voelgoed_app;",
    ]
)


def queries_on(conn: Connection | Conn) -> Queries:
    """The library's queries on a connection, with our names."""
    return Queries(
        AsyncpgDriver(conn),  # type: ignore[arg-type]  # a connection out of the pool has all that it uses
        qbe=QueryBuilderEnvironment(NAMES),
        qbq=QueryQueueBuilder(NAMES),
        qbs=QuerySchedulerBuilder(NAMES),
    )


async def install(owner_conn: Connection) -> None:
    """Bring the tables to what the installed library wants, and give the application its rights. Harmless again.

    Not in one transaction: a word added to a type cannot be used in the transaction that adds it. Cut off in the
    middle, the next run goes on from there.
    """
    await queries_on(owner_conn).apply_upgrade()
    await owner_conn.execute(GRANTS)


async def is_current(conn: Connection) -> bool:
    """Whether the tables are what the installed library wants."""
    return not (await queries_on(conn).plan_upgrade()).statements
