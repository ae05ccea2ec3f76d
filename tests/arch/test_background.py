"""Work of the background stays there: nothing that answers a request can reach a job, and none does its work."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "src" / "voelgoed"
Body = tuple[str, str]
"""A module and what it is called there."""


def name_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {name_of(path): ast.parse(path.read_text()) for path in PACKAGE.rglob("*.py")}


def imported(module: str) -> Iterator[tuple[str, str, str]]:
    """What a module imports of ours, wherever in it: from where, what, and what it is called here."""
    for node in ast.walk(MODULES[module]):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("voelgoed"):
            yield from ((node.module, one.name, one.asname or one.name) for one in node.names)


def neighbours(module: str) -> set[str]:
    """The modules that are loaded with one."""
    named = {(f"{where}.{what}", where) for where, what, _ in imported(module)}
    return {inner if inner in MODULES else outer for inner, outer in named}


def reached_from(package: str) -> set[str]:
    """Every module that is loaded with a package."""
    todo = [name for name in MODULES if name == package or name.startswith(f"{package}.")]
    found: set[str] = set()
    while todo:
        one = todo.pop()
        if one not in found:
            found.add(one)
            todo += neighbours(one)
    return found


def used(module: str) -> set[Body]:
    """What a module uses of those that it imports, `registry.reap` or `Dispatcher`: where it is from, and what."""
    bound = {called: f"{where}.{what}" for where, what, called in imported(module)}
    found = {tuple(target.rsplit(".", 1)) for target in bound.values()}
    for node in ast.walk(MODULES[module]):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in bound:
            found.add((bound[node.value.id], node.attr))
    return {(where, what) for where, what in found if where in MODULES and f"{where}.{what}" not in MODULES}


def bodies() -> set[Body]:
    """What the jobs and the worker's loops do: whatever of a domain their lists name, but for bare values."""
    named = {
        body
        for module in ("voelgoed.jobs.queue", "voelgoed.jobs.worker")
        for node in ast.walk(MODULES[module])
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for body in used(module)
        if any(isinstance(one, ast.Name | ast.Attribute) and _last(one) == body[1] for one in ast.walk(node))
    }
    domains = ("accounts", "events", "holds", "journal", "seating", "realtime", "ticketing")
    return {(where, what) for where, what in named if where.split(".")[1] in domains and not what.isupper()}


def _last(node: ast.Name | ast.Attribute) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id


@pytest.mark.req("PERF-22")
def test_what_answers_requests_cannot_reach_a_job() -> None:
    """No module that a web process loads is of the jobs: it could not run one if it wanted to."""
    reached = reached_from("voelgoed.http")
    assert {"voelgoed.http.routes.holds", "voelgoed.holds.booking", "voelgoed.holds.lane"} <= reached
    assert {module for module in reached if module.startswith("voelgoed.jobs")} == set()


@pytest.mark.req("PERF-22")
def test_no_request_does_the_work_of_the_background() -> None:
    """What jobs and loops do is done by nobody else: neither a route nor a use case calls it on somebody's time."""
    known = bodies()
    assert {
        ("voelgoed.holds.registry", "reap"),
        ("voelgoed.holds.following", "Dispatcher"),
        ("voelgoed.holds.reconcile", "reconcile_all"),
        ("voelgoed.accounts.sessions", "purge"),
        ("voelgoed.events.timekeeper", "advance"),
    } <= known
    done = {module: sorted(known & used(module)) for module in reached_from("voelgoed.http") if known & used(module)}
    assert done == {}
