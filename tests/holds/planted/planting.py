"""Ways to plant a bug in the registry's functions of a throw-away database, by what they do and not by how they look.

A function is wrapped in another that changes its arguments, its result or what it does before and after; a trigger
changes what is written; a function of PostgreSQL's own is shadowed by another. Where a guard inside a function has to
go, the function is edited token by token, so that line breaks, spaces and comments do not matter. A bug that cannot be
planted raises `NotPlanted`: it never passes for a bug that was noticed.
"""

import itertools
import re
from collections.abc import Sequence

import asyncpg

from tests.make.boxoffice import Plant
from voelgoed.db import Connection

TOKEN = re.compile(
    r"""(?P<skipped>\s+|--[^\n]*|/\*.*?\*/)
      | '(?:[^']|'')*' | "[^"]*" | [a-z_][a-z_0-9]* | [0-9.]+
      | :: | := | <= | >= | <> | => | \|\| | .""",
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)

FIND = """
select p.oid::regprocedure::text as signature, pg_get_functiondef(p.oid) as definition, p.prosecdef, p.proconfig,
       pg_get_function_arguments(p.oid) as arguments, pg_get_function_result(p.oid) as result,
       (select array_agg(a.name order by a.place)
          from unnest(p.proargnames, p.proargmodes) with ordinality as a (name, mode, place)
         where coalesce(a.mode, 'i') = 'i') as inputs,
       (select array_agg(a.name order by a.place)
          from unnest(p.proargnames, p.proargmodes) with ordinality as a (name, mode, place)
         where a.mode in ('o', 't')) as outputs
  from pg_proc p
 where p.pronamespace = 'public'::regnamespace and p.proname = $1
"""


class NotPlanted(Exception):
    """A bug cannot be planted, because the functions are not what it expects. It has to be rewritten."""


def wrap(function: str, body: str, *, declare: str = "") -> Plant:
    """Put a function of the same signature before another.

    In the body `{call}` is the call of the original with the arguments as they are then, `{outputs}` are the names and
    `{columns}` the definitions of what it returns.
    """

    async def plant(owner: Connection) -> None:
        found = await _find(owner, function)
        real, signature = f"{function}_real", re.sub(r"^[^(]*", function, found["signature"])
        columns = re.sub(r"^TABLE\((.*)\)$", r"\1", found["result"])
        outputs = ", ".join(found["outputs"] or ())
        called = body.format(call=f"{real}({', '.join(found['inputs'])})", outputs=outputs, columns=columns)
        settings = " ".join(f"set {name} = {_value(name, value)}" for name, value in _settings(found["proconfig"]))
        await _as_superior(
            owner,
            f"alter function {found['signature']} rename to {real};"
            f" create function {function}({found['arguments']}) returns {found['result']} language plpgsql"
            f" {'security definer' if found['prosecdef'] else ''} {settings} as $wrapped$\n"
            f"#variable_conflict use_column\ndeclare {declare} begin {called} end $wrapped$;"
            f" alter function {signature} owner to voelgoed_registry;"
            f" grant execute on function {signature} to voelgoed_app;",
        )

    return plant


def edit(function: str, old: str, new: str, *, times: int | None = 1) -> Plant:
    """Replace tokens of a function. `times` is how often they must be there; None is at least once."""

    async def plant(owner: Connection) -> None:
        found = await _find(owner, function)
        await _as_superior(owner, edited(found["definition"], old, new, times=times, where=function))

    return plant


def write(table: str, change: str, *, when: str, event: str = "update") -> Plant:
    """Change every row that is written to a table: `change` sets columns of `new` where `when` holds."""

    async def plant(owner: Connection) -> None:
        await _as_superior(
            owner,
            f"create function planted_{table}() returns trigger language plpgsql as"
            f" $planted$ begin {change} return new; end $planted$;"
            f" create trigger planted before {event} on {table} for each row when ({when})"
            f" execute function planted_{table}();",
        )

    return plant


def shadow(function: str, name: str, definition: str) -> Plant:
    """Let a function call `planted.<name>`, as defined here, in place of PostgreSQL's own."""

    async def plant(owner: Connection) -> None:
        found = await _find(owner, function)
        path = dict(_settings(found["proconfig"])).get("search_path")
        if path is None or name not in [token for token, *_ in tokens(found["definition"])]:
            raise NotPlanted(f"{function} has no search path of its own, or does not call {name}")
        rest = [schema for schema in map(str.strip, path.split(",")) if schema != "pg_catalog"]
        await _as_superior(
            owner,
            f"create schema planted; create function planted.{definition}; grant usage on schema planted to public;"
            f" alter function {found['signature']} set search_path = planted, pg_catalog, {', '.join(rest)};",
        )

    return plant


def run(sql: str) -> Plant:
    """Run any SQL as the owner of the database: a constraint goes, an index goes."""

    async def plant(owner: Connection) -> None:
        await _as_superior(owner, sql)

    return plant


def tokens(text: str) -> list[tuple[str, int, int]]:
    """Split SQL into tokens with their places. Letters are lower case, spaces and comments are left out."""
    return [
        (found[0] if found[0].startswith(("'", '"')) else found[0].lower(), found.start(), found.end())
        for found in TOKEN.finditer(text)
        if found["skipped"] is None
    ]


def edited(text: str, old: str, new: str, *, times: int | None = 1, where: str = "the text") -> str:
    """Return the text with one sequence of tokens replaced by another, wherever it is."""
    there, sought = tokens(text), [token for token, *_ in tokens(old)]
    places = [
        (there[at][1], there[at + len(sought) - 1][2])
        for at in range(len(there) - len(sought) + 1)
        if [token for token, *_ in there[at : at + len(sought)]] == sought
    ]
    if not places or (times is not None and len(places) != times):
        raise NotPlanted(f"{len(places)} times in {where}, expected {times or 'at least once'}: {old}")
    if any(after[0] < before[1] for before, after in itertools.pairwise(places)):
        raise NotPlanted(f"overlaps with itself in {where}: {old}")
    for start, end in reversed(places):
        text = f"{text[:start]}{new}{text[end:]}"
    return text


async def _find(owner: Connection, function: str) -> asyncpg.Record:
    """Everything about the one function of a name."""
    rows = await owner.fetch(FIND, function)
    if len(rows) != 1:
        raise NotPlanted(f"there are {len(rows)} functions {function}")
    return rows[0]


async def _as_superior(owner: Connection, sql: str) -> None:
    """Run SQL in one transaction, with what the registry needs to own new functions."""
    try:
        async with owner.transaction():
            await owner.execute("grant create on schema public to voelgoed_registry")
            await owner.execute(sql)
    except asyncpg.PostgresError as failed:
        raise NotPlanted(f"{failed}: {sql}") from failed


def _settings(config: Sequence[str] | None) -> list[tuple[str, str]]:
    return [(name, value) for name, _, value in (setting.partition("=") for setting in config or ())]


def _value(name: str, value: str) -> str:
    return value if name == "search_path" else f"'{value}'"
