"""`voelgoed doctor`: look at everything an installation needs, and say in plain words what is wrong."""

import dataclasses
import fcntl
import json
import os
import resource
import shutil
import socket
import sys
from collections.abc import Iterator
from typing import Literal

import asyncpg
from redis.exceptions import RedisError
from rich.console import Console

from voelgoed import redis, schema
from voelgoed.cli import tree
from voelgoed.config import Settings
from voelgoed.db import find_objections
from voelgoed.embedded import Account, Embedded
from voelgoed.errors import StartRefused
from voelgoed.http.assets import INDEX, load_bundle

OPEN_FILES_ENOUGH = 10_000
FREE_BYTES_WANTED = 2 * 1024**3
OLDEST_REDIS = (6, 2)
MARKS = {"ok": "[green]ok  [/]", "warn": "[yellow]note[/]", "fail": "[red]FAIL[/]"}


@dataclasses.dataclass(frozen=True, slots=True)
class Finding:
    """One thing looked at. Only `fail` keeps an installation from working."""

    level: Literal["ok", "warn", "fail"]
    about: str
    message: str
    hint: str = ""


async def examine(settings: Settings) -> list[Finding]:
    """Every finding, in the order in which a newcomer would meet the problems."""
    owner = _running_owner(settings)
    return [
        *_python(),
        _web_bundle(),
        _open_files(),
        *_data_folder(settings, owner),
        _port(settings, owner),
        *await _postgresql(settings, owner),
        await _redis(settings, owner),
    ]


def show(findings: list[Finding], *, as_json: bool) -> None:
    """Print the findings, worst news as visible as the rest."""
    if as_json:
        print(json.dumps([dataclasses.asdict(finding) for finding in findings]))
        return
    console = Console(highlight=False, soft_wrap=True)
    for finding in findings:
        console.print(f"{MARKS[finding.level]}  [bold]{finding.about}[/]: {finding.message}")
        if finding.hint:
            console.print(f"      {finding.hint}")
    wrong = sum(finding.level == "fail" for finding in findings)
    console.print("\nEverything needed is there." if not wrong else f"\n{wrong} of {len(findings)} need attention.")


def _running_owner(settings: Settings) -> int | None:
    """The pid of the process that owns the data folder now, if one does."""
    path = settings.data_dir / "lock"
    try:
        with path.open("r+") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return int(lock.read().strip() or 0)
    except OSError:
        return None
    return None


def _python() -> Iterator[Finding]:
    yield Finding("ok", "Python", sys.version.split()[0])


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


def _data_folder(settings: Settings, owner: int | None) -> Iterator[Finding]:
    if settings.database_url and settings.redis_url:
        yield Finding("ok", "data folder", "not used: both servers are named by URL")
        return
    folder = settings.data_dir
    there = next(parent for parent in (folder, *folder.resolve().parents) if parent.exists())
    if not os.access(there, os.W_OK | os.X_OK):
        yield Finding("fail", "data folder", f"may not write to {there}", "set VOELGOED_DATA_DIR to a folder of yours")
        return
    if not Account.pick().reaches(there / "x"):
        yield Finding(
            "fail",
            "data folder",
            f"the database's user {Account.pick().name} may not enter {there}",
            "set VOELGOED_DATA_DIR to a folder that every user can reach, such as one in /var/lib",
        )
        return
    state = f"in use by process {owner}" if owner else "free" if (folder / "pg").exists() else "empty, ready to start"
    yield Finding("ok", "data folder", f"{folder} ({state})")
    free = shutil.disk_usage(there).free
    if free < FREE_BYTES_WANTED:
        yield Finding("warn", "disk", f"only {free / 1024**3:.1f} GB free at {there}", "a full disk stops all selling")
    else:
        yield Finding("ok", "disk", f"{free / 1024**3:.0f} GB free")


def _port(settings: Settings, owner: int | None) -> Finding:
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


async def _postgresql(settings: Settings, owner: int | None) -> list[Finding]:
    if settings.database_url:
        url = settings.database_url.get_secret_value()
    elif owner:
        url = Embedded(settings.data_dir).postgres_url(schema.APP)
    else:
        return [_embedded_postgresql(settings)]
    try:
        conn = await asyncpg.connect(url, timeout=5)
    except (OSError, asyncpg.PostgresError, TimeoutError) as failed:
        return [Finding("fail", "PostgreSQL", f"does not answer: {failed}", "check VOELGOED_DATABASE_URL")]
    try:
        version = await conn.fetchval("select current_setting('server_version')")
        objections = await find_objections(conn)
        standing = await schema.status(conn)
    finally:
        await conn.close(timeout=2)
    findings = [Finding("ok", "PostgreSQL", f"{version} answers, its settings are safe")]
    if objections:
        findings = [Finding("fail", "PostgreSQL", objection) for objection in objections]
    return [
        *findings,
        Finding(
            "ok" if standing.is_current else "fail",
            "schema",
            standing.summary,
            "" if standing.is_current else "run: voelgoed db migrate",
        ),
    ]


def _embedded_postgresql(settings: Settings) -> Finding:
    try:
        programs, major = Embedded(settings.data_dir, pg_config=settings.pg_config).postgres_programs()
    except StartRefused as refused:
        return Finding("fail", "PostgreSQL", str(refused), refused.hint)
    return Finding("ok", "PostgreSQL", f"version {major} is here ({programs}) and starts with `voelgoed serve`")


async def _redis(settings: Settings, owner: int | None) -> Finding:
    embedded = Embedded(settings.data_dir)
    if settings.redis_url:
        url = settings.redis_url.get_secret_value()
    elif owner:
        url = embedded.valkey_url
    else:
        try:
            return Finding(
                "ok", "Redis", f"Valkey is here ({embedded.valkey_program()}) and starts with `voelgoed serve`"
            )
        except StartRefused as refused:
            return Finding("fail", "Redis", str(refused), refused.hint)
    try:
        async with redis.connect(url, connect_timeout_s=2, call_timeout_s=2) as client:
            about = await client.info("server")
    except (OSError, RedisError, TimeoutError) as failed:
        return Finding("warn", "Redis", f"does not answer ({failed}); selling goes on without it, slower")
    version = str(about["redis_version"])
    if tuple(int(part) for part in version.split(".")[:2]) < OLDEST_REDIS:
        return Finding("fail", "Redis", f"{version} is too old", "6.2 is the oldest, or any Valkey")
    return Finding(
        "ok", "Redis", f"answers as {about.get('server_name', 'redis')} {about.get('valkey_version', version)}"
    )
