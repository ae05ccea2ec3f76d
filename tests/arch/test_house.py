"""The rules of the house that no linter knows: sizes, names, documents that must stay true."""

import ast
import importlib.util
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from voelgoed.accounts import permissions
from voelgoed.events import rules
from voelgoed.http import contract

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "voelgoed"
FILE_LINES_MAX = 600
FUNCTION_LINES_MAX = 60
BANNED = {"utils", "util", "helpers", "helper", "common", "core", "base", "manager", "managers", "misc", "service"}
NOT_OURS = {".venv", "node_modules", "dist", ".git", "__pycache__"}


def files(*patterns: str) -> Iterator[Path]:
    for pattern in patterns:
        yield from (path for path in ROOT.glob(pattern) if not NOT_OURS & set(path.relative_to(ROOT).parts))


SOURCES = sorted(files("src/**/*.py"))
TEXTS = sorted(files("*", ".ci/*", "src/**/*", "tests/**/*", "docs/**/*", "web/**/*", "requirements/*", "scripts/*"))


def test_files_fit_a_sitting() -> None:
    """Nobody has to read more than this at once."""
    long = {str(path): n for path in SOURCES if (n := len(path.read_text().splitlines())) > FILE_LINES_MAX}
    assert long == {}


def test_functions_fit_a_screen() -> None:
    """A function that does not fit is two functions."""
    long = {
        f"{path.name}:{node.name}": node.end_lineno - node.lineno
        for path in SOURCES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.end_lineno is not None
        and node.end_lineno - node.lineno >= FUNCTION_LINES_MAX
    }
    assert long == {}


def test_no_module_has_a_name_that_says_nothing() -> None:
    """A name must say what is inside."""
    assert [path for path in SOURCES if path.stem in BANNED or path.parent.name in BANNED] == []


def test_every_module_says_what_it_knows() -> None:
    """The first line of a module is a sentence about it."""
    assert [path for path in SOURCES if not ast.get_docstring(ast.parse(path.read_text()))] == []


def test_packages_export_nothing() -> None:
    """`__init__.py` holds a sentence; a thing is imported from where it lives."""
    assert [path for path in PACKAGE.rglob("__init__.py") if len(ast.parse(path.read_text()).body) != 1] == []


def test_the_map_names_every_room() -> None:
    """ARCHITECTURE.md is the map: a file it does not name cannot be found, one it names must be there."""
    said = (ROOT / "ARCHITECTURE.md").read_text()
    block = re.search(r"```files\n(.*?)```", said, re.DOTALL)
    assert block, "ARCHITECTURE.md has no block of files"
    named = {line.split()[0] for line in block[1].splitlines() if line.strip()}
    rooms = {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*")
        if path.suffix in (".py", ".sql")
        and not NOT_OURS & set(path.parts)
        and path.name not in ("__init__.py", "__main__.py")
    }
    assert named == rooms


def test_the_contract_in_the_repository_is_the_one_that_is_served() -> None:
    """`make openapi` writes it anew."""
    assert (ROOT / "openapi.json").read_text() == contract.text()


def test_the_table_of_permissions_is_the_one_that_holds() -> None:
    """`make openapi` writes it anew."""
    assert (ROOT / "docs" / "permissions.md").read_text() == permissions.document()


def test_the_drawing_of_the_lifecycle_is_the_one_that_holds() -> None:
    """`make openapi` writes it anew."""
    assert (ROOT / "docs" / "states" / "event.md").read_text() == rules.document()


@pytest.mark.parametrize(
    "pattern",
    [
        r'"resolved":\s*"http',
        r"https?://(registry|pypi|files\.pythonhosted)\.",
        r"(?<![\w.])/(work|root|home/\w+)/",
    ],
)
def test_nothing_names_one_machine_or_one_registry(pattern: str) -> None:
    """A clone works anywhere."""
    found = [
        path
        for path in TEXTS
        if path.is_file()
        and path != Path(__file__)
        and path.suffix not in (".png", ".gif")
        and re.search(pattern, path.read_text())
    ]
    assert found == []


def test_pages_go_by_the_clock_of_the_server() -> None:
    """A device may be an hour off; only what counts that clock, and what a sleeping device missed, ask its own."""
    own = {"web/src/lib/server-time.ts", "web/src/store/fresh.ts"}
    pages = [path for path in files("web/src/**/*") if path.suffix in (".ts", ".svelte") and ".spec." not in path.name]
    asked = {path.relative_to(ROOT).as_posix() for path in pages if "Date.now()" in path.read_text()}
    assert asked == own


def test_the_changelog_names_this_version() -> None:
    """A release without a word about it is a surprise."""
    version = re.search(r'^version = "(.+)"', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert version
    assert version[1] in (ROOT / "CHANGELOG.md").read_text()


def test_every_setting_is_documented() -> None:
    """What an operator may set is on the page that says so."""
    from voelgoed.config import Settings  # noqa: PLC0415 - the rest of this module reads files only

    page = (ROOT / "docs" / "operations" / "settings.md").read_text()
    assert [name for name in Settings.model_fields if f"`VOELGOED_{name.upper()}`" not in page] == []


def test_make_without_a_target_says_what_there_is() -> None:
    """Every target has a line of help, and the README's two commands are among them."""
    makefile = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"^([a-z]+):", makefile, re.MULTILINE)) - {"ready"}
    helped = set(re.findall(r"^([a-z]+):.*## ", makefile, re.MULTILINE))
    assert targets == helped
    assert {"setup", "check", "test", "demo", "serve", "fix", "bench", "sim", "screens"} <= helped


def test_this_python_is_built_for_speed_where_one_is_to_be_had() -> None:
    """Setup takes the system's Python rather than one that was compiled without a profile."""
    found = importlib.util.spec_from_file_location("setup", ROOT / "scripts" / "setup.py")
    assert found
    assert found.loader
    setup = importlib.util.module_from_spec(found)
    found.loader.exec_module(setup)
    assert setup.is_built_for_speed() or setup.quicker_python() is None or setup.CHOSEN in os.environ
