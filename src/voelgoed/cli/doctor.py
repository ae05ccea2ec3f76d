"""`voelgoed doctor`: look at everything an installation needs, and say in plain words what is wrong."""

import dataclasses
import json
import os
import re
import resource
import shutil
import socket
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import asyncpg
from redis.exceptions import RedisError
from rich.console import Console
from rich.text import Text

from voelgoed import redis, schema
from voelgoed.cli import tree
from voelgoed.config import ROOT_UID, Settings
from voelgoed.data_folder import CHOOSE_ANOTHER, DEMO_MARK, holder_of
from voelgoed.db import connect, find_objections, find_write_fault
from voelgoed.embedded import Account, Embedded
from voelgoed.errors import StartRefused
from voelgoed.http.assets import INDEX, load_bundle

OPEN_FILES_ENOUGH = 10_000
METRICS_WAIT_S = 2
FREE_BYTES_WANTED = 2 * 1024**3
OLDEST_REDIS = (6, 2)
MARKS = {"ok": ("ok  ", "green"), "warn": ("note", "yellow"), "fail": ("FAIL", "red")}


@dataclasses.dataclass(frozen=True, slots=True)
class Finding:
    """One thing looked at. Only `fail` keeps an installation from working."""

    level: Literal["ok", "warn", "fail"]
    about: str
    message: str
    hint: str = ""


async def examine(settings: Settings) -> list[Finding]:
    """Every finding, in the order in which a newcomer would meet the problems."""
    owner = holder_of(settings.data_dir)
    numbers = _metrics(settings) if owner and owner.startswith("process") else ""
    return [
        *_python(),
        _user(),
        _web_bundle(),
        _open_files(),
        *_data_folder(settings, owner),
        _port(settings, owner),
        _proxies(settings, numbers),
        *await _postgresql(settings, owner),
        await _redis(settings, owner),
        *_breaker(settings, numbers),
    ]


def show(findings: list[Finding], *, as_json: bool) -> None:
    """Print the findings, worst news as visible as the rest."""
    if as_json:
        print(json.dumps([dataclasses.asdict(finding) for finding in findings]))
        return
    console = Console(highlight=False, soft_wrap=True)
    for finding in findings:
        console.print(Text.assemble(MARKS[finding.level], "  ", (finding.about, "bold"), f": {finding.message}"))
        if finding.hint:
            console.print(Text(f"      {finding.hint}"))
    wrong = sum(finding.level == "fail" for finding in findings)
    console.print("\nEverything needed is there." if not wrong else f"\n{wrong} of {len(findings)} need attention.")


def _python() -> Iterator[Finding]:
    yield Finding("ok", "Python", sys.version.split()[0])


def _user() -> Finding:
    if os.geteuid() == ROOT_UID:
        return Finding(
            "warn",
            "user",
            "root; the web processes would run as root too",
            "run it as a user of its own: only root's own servers drop to another user",
        )
    return Finding("ok", "user", f"number {os.geteuid()}, not root")


def _web_bundle() -> Finding:
    if INDEX in load_bundle():
        return Finding("ok", "web pages", "built")
    return Finding("fail", "web pages", "not built", "from the repository: make setup")


def _open_files() -> Finding:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard == resource.RLIM_INFINITY or hard >= OPEN_FILES_ENOUGH:
        return Finding("ok", "open files", "no limit" if hard == resource.RLIM_INFINITY else f"up to {hard}")
    return Finding(
        "warn",
        "open files",
        f"at most {hard}; every live map takes one, so about {hard} people at once",
        f"raise the hard limit to {tree.OPEN_FILES_WANTED} (ulimit -Hn, LimitNOFILE)",
    )


def _data_folder(settings: Settings, owner: str | None) -> Iterator[Finding]:
    folder = settings.data_dir
    # Not Path.exists: it throws where a folder above may not be entered.
    there = next((place for place in (folder, *folder.absolute().parents) if os.path.exists(place)), Path("/"))  # noqa: PTH110
    if not there.is_dir():
        yield Finding("fail", "data folder", f"{there} is not a folder", CHOOSE_ANOTHER)
        return
    if not os.access(there, os.W_OK | os.X_OK):
        yield Finding("fail", "data folder", f"may not write to {there}", CHOOSE_ANOTHER)
        return
    if not (settings.database_url and settings.redis_url):
        account = Account.pick()
        if not account.reaches(there / "x"):
            yield Finding(
                "fail",
                "data folder",
                f"the database's user {account.name} may not enter {there}",
                "set VOELGOED_DATA_DIR to a folder that every user can reach, such as one in /var/lib",
            )
            return
    yield Finding("ok", "data folder", f"{folder} ({_state(folder, owner)})")
    free = shutil.disk_usage(there).free
    if free < FREE_BYTES_WANTED:
        yield Finding("warn", "disk", f"only {free / 1024**3:.1f} GB free at {there}", "a full disk stops all selling")
    else:
        yield Finding("ok", "disk", f"{free / 1024**3:.0f} GB free")


def _state(folder: Path, owner: str | None) -> str:
    kind = "a demonstration, " if (folder / DEMO_MARK).is_file() else ""
    if owner:
        return f"{kind}in use by {owner}"
    return f"{kind}free" if (folder / "pg").exists() else "empty, ready to start"


def _port(settings: Settings, owner: str | None) -> Finding:
    try:
        with tree.reserve_port(settings):
            return Finding("ok", "port", f"{settings.port} on {settings.host} is free")
    except StartRefused as refused:
        if owner and _answers(settings):
            return Finding("ok", "port", f"{settings.port} on {settings.host} is served by the running installation")
        return Finding("fail", "port", str(refused), refused.hint)


def _answers(settings: Settings) -> bool:
    try:
        with socket.create_connection((settings.host, settings.port), timeout=1):
            return True
    except OSError:
        return False


async def _postgresql(settings: Settings, owner: str | None) -> list[Finding]:
    try:
        if settings.database_url:
            url = settings.database_url.get_secret_value()
        elif owner:
            url = Embedded(settings.data_dir).postgres_url(schema.APP)
        else:
            return [_embedded_postgresql(settings)]
        return await _ask_postgresql(url)
    except PermissionError:
        return [_closed("PostgreSQL")]
    except StartRefused as refused:
        if isinstance(refused.__cause__, PermissionError):
            return [_closed("PostgreSQL")]
        return [Finding("fail", "PostgreSQL", f"does not answer: {refused}", refused.hint)]
    except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError) as failed:
        return [Finding("fail", "PostgreSQL", f"answers, and then: {failed}")]


async def _ask_postgresql(url: str) -> list[Finding]:
    conn = await connect(url, timeout_s=5, application_name="voelgoed doctor")
    try:
        version = await conn.fetchval("select current_setting('server_version')")
        objections = await find_objections(conn)
        standing = await schema.status(conn)
        if fault := await find_write_fault(conn):
            objections.append(fault)
    finally:
        await conn.close(timeout=2)
    findings = [Finding("ok", "PostgreSQL", f"{version} answers, its settings are safe")]
    if objections:
        findings = [Finding("fail", "PostgreSQL", objection) for objection in objections]
    behind = "" if standing.is_current else "run: voelgoed db migrate"
    return [*findings, Finding("fail" if behind else "ok", "schema", standing.summary, behind)]


def _closed(about: str) -> Finding:
    return Finding("warn", about, "the embedded server answers its own user only", "ask again as that user")


def _embedded_postgresql(settings: Settings) -> Finding:
    try:
        embedded = Embedded(settings.data_dir, pg_config=settings.pg_config)
        programs, major = embedded.postgres_programs(to_run=False)
    except StartRefused as refused:
        return Finding("fail", "PostgreSQL", str(refused), refused.hint)
    return Finding("ok", "PostgreSQL", f"version {major} is here ({programs}) and starts with `voelgoed serve`")


async def _redis(settings: Settings, owner: str | None) -> Finding:
    try:
        if settings.redis_url:
            url = settings.redis_url.get_secret_value()
        elif owner:
            url = Embedded(settings.data_dir).valkey_url
        else:
            program = Embedded(settings.data_dir).valkey_program(to_run=False)
            return Finding("ok", "Redis", f"Valkey is here ({program}) and starts with `voelgoed serve`")
    except StartRefused as refused:
        return Finding("fail", "Redis", str(refused), refused.hint)
    try:
        async with redis.connect(url, connect_timeout_s=2, call_timeout_s=2) as client:
            about = await client.info("server")
    except (OSError, RedisError, TimeoutError) as failed:
        return Finding("warn", "Redis", f"does not answer ({failed}); selling goes on without it, slower")
    version = str(about.get("redis_version", "unknown"))
    number = tuple(int(part) for part in version.split(".")[:2] if part.isdecimal())
    if number and number < OLDEST_REDIS:
        return Finding("fail", "Redis", f"{version} is too old", "6.2 is the oldest, or any Valkey")
    return Finding(
        "ok", "Redis", f"answers as {about.get('server_name', 'redis')} {about.get('valkey_version', version)}"
    )


def _metrics(settings: Settings) -> str:
    """Return the metrics page of the running installation; empty if it cannot be read from here."""
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    asked = urllib.request.Request(f"http://{host}:{settings.port}/metrics")
    if settings.metrics_token:
        asked.add_header("authorization", f"Bearer {settings.metrics_token.get_secret_value()}")
    try:
        with urllib.request.urlopen(asked, timeout=METRICS_WAIT_S) as answer:  # noqa: S310 - the same
            return str(answer.read().decode())
    except OSError:
        return ""  # served elsewhere, or only to a scraper with its token


def _breaker(settings: Settings, numbers: str) -> Iterator[Finding]:
    """What the running processes think of Redis: their breaker's state, the worst of all."""
    if state := re.search(r'^voelgoedevents_breaker_state\{name="redis"\} (\d)', numbers, re.MULTILINE):
        if int(state[1]) == 0:
            yield Finding("ok", "Redis breaker", "closed: the processes use Redis")
        else:
            every = f"{settings.redis_probe_s:.0f} s"
            yield Finding("warn", "Redis breaker", f"open: the processes do without Redis and try it every {every}")


def _proxies(settings: Settings, numbers: str) -> Finding:
    """Return whether clients' addresses can be told apart, as far as settings and metrics say."""
    hint = "set VOELGOED_TRUSTED_PROXIES to the number of proxies that append to X-Forwarded-For"
    if settings.trusted_proxies:
        return Finding("ok", "proxies", f"{settings.trusted_proxies} trusted")
    ignored = re.search(r"^voelgoedevents_forwarded_ignored_total (\d+)", numbers, re.MULTILINE)
    if ignored and int(ignored[1]):
        message = f"{ignored[1]} requests came with X-Forwarded-For or Forwarded, and no proxy is trusted"
        return Finding("warn", "proxies", f"{message}; behind a proxy all visitors share one address", hint)
    if settings.is_https:
        message = "none trusted, although the public URL is https; all visitors may share one address"
        return Finding("warn", "proxies", message, f"unless clients' own addresses arrive here, {hint}")
    return Finding("ok", "proxies", "none trusted; the peer's address counts")
