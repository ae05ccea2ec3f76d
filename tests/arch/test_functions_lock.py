"""A change of SQL functions or migrations has a version of its own, higher than any before."""

import importlib.util
import subprocess
from pathlib import Path
from types import ModuleType

import pytest

from voelgoed import schema

ROOT = Path(__file__).resolve().parents[2]
OURS, OTHER = "a" * 64, "b" * 64


def load_script() -> ModuleType:
    found = importlib.util.spec_from_file_location("functions", ROOT / "scripts" / "functions.py")
    assert found
    assert found.loader
    script = importlib.util.module_from_spec(found)
    found.loader.exec_module(script)
    return script


functions = load_script()


def test_changed_functions_have_a_new_version() -> None:
    """A database would not apply them otherwise, or two builds would disagree about one version."""
    checksum = schema.lock_checksum(schema.load_functions(), schema.load_migrations(schema.migrations_folder()))
    lock = schema.FUNCTIONS_LOCK
    objection = functions.objection(functions.read(lock), functions.history(lock), checksum)
    assert objection is None, f"{objection}. Run `make functions` and commit {lock.relative_to(ROOT)}."


@pytest.mark.parametrize(
    ("recorded", "past", "objection"),
    [
        ([(8, OURS)], [], None),
        ([(8, OURS)], [(7, OTHER), (8, OURS)], None),
        ([(9, OURS)], [(8, OURS)], None),
        ([(8, OTHER)], [], "changed since version 8"),
        ([(8, OURS)], [(9, OTHER)], "version 8 is lower than 9"),
        ([(8, OURS)], [(8, OTHER)], "committed before with another text"),
        ([], [], "not 0"),
        ([(8, OURS), (8, OTHER)], [], "not 2"),
    ],
)
def test_a_version_rises_with_the_text(
    recorded: list[tuple[int, str]], past: list[tuple[int, str]], objection: str | None
) -> None:
    """Just below, at and just above the versions that were committed; and both sides of a merge."""
    found = functions.objection(recorded, past, OURS)
    assert found is None if objection is None else objection in found


@pytest.mark.parametrize(
    ("recorded", "past", "version"),
    [([], [], 1), ([(8, OURS)], [], 9), ([(8, OURS), (8, OTHER)], [], 9), ([(7, OURS)], [(9, OTHER)], 10)],
)
def test_the_next_version_was_never_used(
    recorded: list[tuple[int, str]], past: list[tuple[int, str]], version: int
) -> None:
    """Not by a commit, and on neither side of a merge."""
    assert functions.next_version(recorded, past) == version


@pytest.mark.parametrize("change", ["comment", "new file", "renamed file", "migration"])
def test_every_change_needs_a_version(change: str) -> None:
    """A comment too: its text is what a database compares, and versions cost nothing."""
    before, migrations = {"a/functions.sql": "select 1;"}, [schema.Migration(1, "first", "select 1;")]
    after = {
        "comment": {"a/functions.sql": "select 1; -- one"},
        "new file": before | {"b/functions.sql": ""},
        "renamed file": {"b/functions.sql": "select 1;"},
        "migration": before,
    }[change]
    more = [schema.Migration(2, "second", "select 2;")] if change == "migration" else []
    assert schema.lock_checksum(before, migrations) != schema.lock_checksum(after, [*migrations, *more])


def git(folder: Path, *args: str) -> None:
    name = ["-c", "user.name=Test", "-c", "user.email=test@example.org", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *name, *args], cwd=folder, check=True, capture_output=True)


def test_the_history_holds_both_sides_of_a_merge(tmp_path: Path) -> None:
    """A version that was used on a branch is used, also when the merge did not keep it."""
    lock = tmp_path / "functions.lock"

    def commit(version: int, checksum: str) -> None:
        lock.write_text(f"# a comment\n{version} {checksum}\n")
        git(tmp_path, "add", ".")
        git(tmp_path, "commit", "-m", str(version))

    assert functions.history(lock) == []
    git(tmp_path, "init", "--initial-branch", "main")
    commit(1, OURS)
    git(tmp_path, "checkout", "-b", "branch")
    commit(3, OTHER)
    git(tmp_path, "checkout", "main")
    commit(2, OURS)
    git(tmp_path, "merge", "--strategy", "ours", "branch")
    assert set(functions.history(lock)) == {(1, OURS), (2, OURS), (3, OTHER)}


def test_make_functions_resolves_a_merge_conflict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two branches took the same version; the merge of their texts gets the one after."""
    lock = tmp_path / "functions.lock"
    monkeypatch.setattr(schema, "FUNCTIONS_LOCK", lock)
    lock.write_text(f"<<<<<<< HEAD\n8 {OURS}\n=======\n8 {OTHER}\n>>>>>>> branch\n")
    functions.main()
    [(version, checksum)] = functions.read(lock)
    assert version == 9
    assert schema.load_function_set(schema.load_migrations(schema.migrations_folder())) == schema.FunctionSet(
        version=9, checksums=schema.load_function_set([]).checksums, is_edited=False
    )
    functions.main()
    assert functions.read(lock) == [(version, checksum)]
