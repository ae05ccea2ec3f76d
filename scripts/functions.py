"""Give changed SQL functions or a new migration the next version, in src/voelgoed/functions.lock.

The version must rise with every change, because a database keeps the functions with the highest version it has seen.
The file's git history shows which versions have been used.
"""

import subprocess
from collections.abc import Sequence
from pathlib import Path

from voelgoed import schema

HEADER = """\
# The version of the SQL functions, and the checksum of their files and of the migrations.
# Written by `make functions`. Run it again to resolve a merge conflict here.
"""

Locked = tuple[int, str]


def main() -> None:
    """Write the next version, unless the text already has one of its own."""
    recorded, past = read(schema.FUNCTIONS_LOCK), history(schema.FUNCTIONS_LOCK)
    migrations = schema.load_migrations(schema.migrations_folder())
    checksum = schema.lock_checksum(schema.load_functions(), migrations)
    if objection(recorded, past, checksum) is None:
        print(f"functions {recorded[0][0]}: nothing changed")
        return
    version = next_version(recorded, past)
    schema.FUNCTIONS_LOCK.write_text(f"{HEADER}{version} {checksum}\n")
    print(f"functions {version}")


def objection(recorded: Sequence[Locked], past: Sequence[Locked], checksum: str) -> str | None:
    """Return why the file needs a new version, or None if it is right."""
    if len(recorded) != 1:
        return f"functions.lock must hold one version and checksum, not {len(recorded)}"
    [(version, locked)] = recorded
    if locked != checksum:
        return f"SQL functions or migrations have changed since version {version}"
    if (newest := max((number for number, _ in past), default=0)) > version:
        return f"version {version} is lower than {newest}, which was committed before"
    if any(number == version and other != checksum for number, other in past):
        return f"version {version} was committed before with another text"
    return None


def next_version(recorded: Sequence[Locked], past: Sequence[Locked]) -> int:
    """Return a version that no commit has used, on either side of a merge."""
    return max((version for version, _ in [*recorded, *past]), default=0) + 1


def read(path: Path) -> list[Locked]:
    """Return what the file holds: one version, or those of both sides during a merge."""
    return _locked(path.read_text()) if path.exists() else []


def history(path: Path) -> list[Locked]:
    """Return every version committed so far. Without git, or outside a repository, there are none to compare with."""
    argv = ["git", "log", "-p", "-m", "--format=", "--", path.name]
    try:
        done = subprocess.run(argv, cwd=path.parent, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return []
    return _locked("\n".join(line[1:] for line in done.stdout.splitlines() if line.startswith("+")))


def _locked(text: str) -> list[Locked]:
    return [(int(version), checksum) for version, checksum in schema.LOCKED.findall(text)]


if __name__ == "__main__":
    main()
