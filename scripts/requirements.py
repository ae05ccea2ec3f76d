"""Which requirements are proven by a test: reads docs/requirements.csv and the marks `@pytest.mark.req("TEN-02")`.

A row is due when its stage is listed as done in docs/requirements.toml. Leaves with 1 when a row that is due has no
test, or when the rows or the marks themselves are wrong.
"""

import argparse
import ast
import csv
import json
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
COLUMNS = ["id", "priority", "due", "stage", "moved", "title"]
PRIORITIES = {"must", "should", "later"}
PROMISED = {"must", "should"}
IDS_PER_TEST_MAX = 4
NOT_RUN = {"skip", "skipif", "xfail"}

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Row:
    """One requirement."""

    id: str
    priority: str
    due: str
    stage: str
    moved: str
    title: str

    @property
    def area(self) -> str:
        return self.id.rpartition("-")[0]


@dataclass(slots=True)
class Findings:
    """Rows, who cites them, and everything that is wrong."""

    rows: Sequence[Row]
    due: Sequence[Row]
    cited: Mapping[str, Sequence[str]]
    wrong: list[str] = field(default_factory=list)

    @property
    def missing(self) -> list[Row]:
        return [row for row in self.due if row.id not in self.cited]

    @property
    def is_good(self) -> bool:
        return not (self.missing or self.wrong)


@dataclass(frozen=True, slots=True)
class Test:
    """A test function, what it cites, and whether it counts."""

    name: str
    ids: Sequence[str]
    is_run: bool


@dataclass(frozen=True, slots=True)
class Marks:
    """What the decorators or the `pytestmark` of one place say."""

    ids: tuple[str, ...] = ()
    is_run: bool = True

    def __add__(self, other: "Marks") -> "Marks":
        return Marks(self.ids + other.ids, self.is_run and other.is_run)


class BadMark(Exception):
    """A mark that cannot be read without running the test."""


def load_rows(path: Path) -> tuple[list[Row], list[str]]:
    """The rows, and what is wrong with them."""
    with path.open(newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file, strict=True)
        if reader.fieldnames != COLUMNS:
            return [], [f"{path.name}: the columns must be {', '.join(COLUMNS)}"]
        told = list(reader)
    ragged = [line["id"] for line in told if None in line or None in line.values()]
    if ragged:
        return [], [f"{path.name}: {id} has too many or too few columns" for id in ragged]  # noqa: A001 - the column's name
    rows = [Row(**{name: line[name] for name in COLUMNS}) for line in told]
    wrong = [f"{id} occurs {n} times" for id, n in Counter(row.id for row in rows).items() if n > 1]  # noqa: A001
    for row in rows:
        if row.priority not in PRIORITIES:
            wrong.append(f"{row.id}: priority {row.priority!r} is none of {', '.join(sorted(PRIORITIES))}")
        if not (row.due and row.stage and row.area):
            wrong.append(f"{row.id}: needs an area, a stage and when it is due")
        if row.due != row.stage and not row.moved.strip():
            wrong.append(f"{row.id} was moved from {row.stage} to {row.due} without a reason")
        if row.due == row.stage and row.moved.strip():
            wrong.append(f"{row.id} has a reason for a move, but was not moved")
    return rows, wrong


def load_done(path: Path, rows: Sequence[Row]) -> tuple[set[str], list[str]]:
    """The stages that are done, and what is wrong with the list."""
    told = tomllib.loads(path.read_text(encoding="utf-8"))
    done = told.pop("done", None)
    if told or not isinstance(done, list) or not all(isinstance(stage, str) for stage in done):
        return set(), [f"{path.name}: holds `done`, a list of stages, and nothing else"]
    unknown = sorted(set(done) - {row.due for row in rows})
    return set(done), [f"{path.name}: no row is due in stage {stage!r}" for stage in unknown]


def find_tests(path: Path) -> Iterator[Test]:
    """Every test of a file with the marks on it, on its class and on its module."""
    tree = ast.parse(path.read_text(encoding="utf-8"), filename=str(path))
    # pytest looks for tests in files of this name only.
    is_collected = path.name.startswith("test_")
    yield from _tests_in(tree.body, f"{path.name}::", Marks(is_run=is_collected), _assigned(tree.body))


def _tests_in(body: Sequence[ast.stmt], prefix: str, outer: Marks, named: Mapping[str, ast.expr]) -> Iterator[Test]:
    here = outer
    if (own := _assigned(body).get("pytestmark")) is not None:
        here += _marks(own.elts if isinstance(own, ast.List | ast.Tuple) else [own], named)
    for node in body:
        if isinstance(node, ast.ClassDef) and node.name.startswith("Test"):
            marks = here + _marks(node.decorator_list, named)
            yield from _tests_in(node.body, f"{prefix}{node.name}::", marks, named)
        elif isinstance(node, Function) and node.name.startswith("test"):
            marks = here + _marks(node.decorator_list, named)
            yield Test(f"{prefix}{node.name}", marks.ids, marks.is_run)


def _assigned(body: Sequence[ast.stmt]) -> dict[str, ast.expr]:
    """What the names of a module or class stand for: a mark may be given a name and used by it."""
    return {
        target.id: node.value
        for node in body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def _marks(nodes: Sequence[ast.expr], named: Mapping[str, ast.expr]) -> Marks:
    found = Marks()
    for used in nodes:
        node = named.get(used.id, used) if isinstance(used, ast.Name) else used
        called = node.func if isinstance(node, ast.Call) else node
        name = ast.unparse(called)
        if name.removeprefix("pytest.mark.") in NOT_RUN or name.removeprefix("mark.") in NOT_RUN:
            found += Marks(is_run=False)
        elif name in ("pytest.mark.req", "mark.req"):
            found += Marks(_ids(node))
    return found


def _ids(node: ast.expr) -> tuple[str, ...]:
    """The ids of one mark; they must stand there as they are, so that a search finds them."""
    if not isinstance(node, ast.Call) or node.keywords or not node.args:
        raise BadMark(f'line {node.lineno}: write @pytest.mark.req("TEN-02"), with one id or more')
    ids = [arg.value for arg in node.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str)]
    if len(ids) != len(node.args):
        raise BadMark(f"line {node.lineno}: an id must be written out")
    return tuple(ids)


def examine(root: Path) -> Findings:
    """Put rows and tests together."""
    rows, wrong = load_rows(root / "docs" / "requirements.csv")
    done, wrong_header = load_done(root / "docs" / "requirements.toml", rows)
    wrong += wrong_header
    known = {row.id for row in rows}
    cited: dict[str, list[str]] = {}
    for path in sorted((root / "tests").rglob("*.py")):
        where = path.relative_to(root).parent.as_posix()
        try:
            tests = list(find_tests(path))
        except (BadMark, SyntaxError) as bad:
            wrong.append(f"{where}/{path.name}: {bad}")
            continue
        for test in tests:
            ids = set(test.ids)
            wrong += [f"{where}/{test.name} cites {unknown}, which is no row" for unknown in sorted(ids - known)]
            if len(ids) > IDS_PER_TEST_MAX:
                wrong.append(f"{where}/{test.name} cites {len(ids)} rows; one test can show {IDS_PER_TEST_MAX}")
            if test.is_run:
                for one in ids & known:
                    cited.setdefault(one, []).append(f"{where}/{test.name}")
    due = [row for row in rows if row.due in done and row.priority in PROMISED]
    return Findings(rows=rows, due=due, cited=cited, wrong=wrong)


def counts(findings: Findings) -> dict[str, dict[str, int]]:
    """Per area and in total: rows, those due, those of them that are cited, those that are missing."""
    areas = {row.area: {"rows": 0, "due": 0, "cited": 0, "missing": 0} for row in findings.rows}
    for row in findings.rows:
        areas[row.area]["rows"] += 1
    for row in findings.due:
        areas[row.area]["due"] += 1
        areas[row.area]["cited" if row.id in findings.cited else "missing"] += 1
    total = {name: sum(area[name] for area in areas.values()) for name in ("rows", "due", "cited", "missing")}
    return dict(sorted(areas.items())) | {"total": total}


def show(findings: Findings, *, as_json: bool) -> None:
    """A line per area, then what is missing and what is wrong, then the total."""
    counted = counts(findings)
    if as_json:
        about = {
            "areas": {name: count for name, count in counted.items() if name != "total"},
            "total": counted["total"],
            "missing": [{"id": row.id, "due": row.due, "title": row.title} for row in findings.missing],
            "wrong": findings.wrong,
            "tests": {one: findings.cited[one] for one in sorted(findings.cited)},
        }
        print(json.dumps(about))
        return
    total = counted.pop("total")
    for name, count in counted.items():
        print(_line(name, count))
    for row in findings.missing:
        print(f"missing {row.id} ({row.due}): {row.title}")
    for wrong in findings.wrong:
        print(f"wrong {wrong}")
    print(_line("total", total))


def _line(name: str, count: Mapping[str, int]) -> str:
    return " ".join([name, *(f"{what}={n}" for what, n in count.items())])


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the findings; 0 when everything due is cited and nothing is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON object, for programs")
    parser.add_argument("--root", type=Path, default=ROOT, help="the repository to look at")
    asked = parser.parse_args(arguments)
    findings = examine(asked.root)
    show(findings, as_json=asked.json)
    return 0 if findings.is_good else 1


if __name__ == "__main__":
    sys.exit(main())
