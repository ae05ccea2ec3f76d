"""`voelgoed org` and `voelgoed user`: what the operator of an installation does by hand."""

import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TypeVar

from rich.console import Console
from rich.table import Table
from rich.text import Text

from voelgoed.accounts import operator, usecases
from voelgoed.accounts.model import Role
from voelgoed.accounts.passwords import Passwords
from voelgoed.cli.schema import database_url
from voelgoed.config import Settings
from voelgoed.db import Database
from voelgoed.errors import DomainError, StartRefused

T = TypeVar("T")

SHOWN_MAX = 200
FACTS_SHOWN_MAX = 20


@asynccontextmanager
async def opened(settings: Settings) -> AsyncIterator[Database]:
    """The database as the application sees it; a refusal of a use case is said like every other."""
    db = await Database.open(database_url(settings, owner=False), size=1, application_name="voelgoed cli")
    try:
        yield db
    except DomainError as refused:
        raise StartRefused(refused.message, hint=_told(refused.facts)) from None
    finally:
        await db.close()


async def on_database(settings: Settings, work: Callable[..., Awaitable[T]], **asked: object) -> T:
    """Do something with the database of the installation."""
    async with opened(settings) as db:
        return await work(db, **asked)


async def create_organization(settings: Settings, slug: str, name: str) -> None:
    """Found an organization."""
    async with opened(settings) as db:
        made = await usecases.found_organization(db, slug=slug, name=name)
    _say(f"{made.slug}  {made.id}")


async def list_organizations(settings: Settings) -> None:
    """Every organization, oldest first."""
    async with opened(settings) as db:
        found = await operator.list_organizations(db, limit=SHOWN_MAX)
    table = Table(box=None)
    for title in ("address", "name", "since", "state"):
        table.add_column(title)
    for one in found:
        state = "suspended" if one.suspended_at else "open"
        table.add_row(Text(one.slug), Text(one.name), f"{one.created_at:%Y-%m-%d}", state)
    Console(highlight=False).print(table)
    if len(found) == SHOWN_MAX:
        _say(f"(the first {SHOWN_MAX})")


async def create_user(
    settings: Settings, *, organization: str, email: str, name: str, role: Role, ask_password: Callable[[], str] | None
) -> None:
    """Make an account with a role; without a password asked for, one is made up and printed."""
    password = ask_password() if ask_password else secrets.token_urlsafe(12)
    passwords = Passwords()
    try:
        async with opened(settings) as db:
            user = await operator.create_user(
                db, passwords, organization=organization, email=email, name=name, role=role, password=password
            )
    finally:
        passwords.close()
    _say(f"{user.email}  {role}  {user.id}")
    if ask_password is None:
        _say(f"password: {password}")


async def appoint(settings: Settings, *, email: str, role: Role) -> None:
    """Give somebody a platform role."""
    async with opened(settings) as db:
        user_id = await operator.appoint(db, email=email, role=role)
    _say(f"{email}  {role}  {user_id}")


async def dismiss(settings: Settings, *, email: str, role: Role) -> None:
    """Take a platform role away."""
    async with opened(settings) as db:
        user_id = await operator.dismiss(db, email=email, role=role)
    _say(f"{email}  no longer {role}  {user_id}")


def _told(facts: Mapping[str, object]) -> str:
    """The facts of a refusal in words: those that are many, such as faults and seats, each on a line of its own."""
    lists = {name: value for name, value in facts.items() if isinstance(value, list) and value}
    many = {name: value for name, value in lists.items() if all(isinstance(one, Mapping) for one in value)}
    few = ", ".join(f"{name}: {_plain(value)}" for name, value in facts.items() if name not in many)
    lines = [_line(one) for value in many.values() for one in value[:FACTS_SHOWN_MAX]]
    return "\n  ".join([*lines, few] if few else lines)


def _line(fact: Mapping[str, object]) -> str:
    if fact.keys() >= {"path", "message", "hint", "code"}:
        return f"{fact['path']}: {fact['message']} {fact['hint']} [{fact['code']}]"
    return ", ".join(f"{name}: {value}" for name, value in fact.items())


def _plain(value: object) -> str:
    return (" or ".join(map(str, value)) or "none") if isinstance(value, list) else str(value)


def _say(text: str) -> None:
    Console(highlight=False, soft_wrap=True).print(Text(text))
