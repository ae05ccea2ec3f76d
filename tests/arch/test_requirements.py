"""The requirement tool: what counts as proof, and what it refuses."""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts" / "requirements.py"
HEADER = "id,priority,due,stage,moved,title"
ROWS = (
    "TEN-01,must,identity,identity,,Every row has an organization",
    'TEN-02,should,identity,identity,,"Every query filters, by id as well"',
    "TEN-03,later,identity,identity,,A wish",
    "EV-01,must,events,events,,Venues",
)
CITES_BOTH = """
import pytest

@pytest.mark.req("TEN-01")
async def test_one() -> None: ...

@pytest.mark.req("TEN-02")
def test_two() -> None: ...
"""


class Tree:
    """A small repository."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.write("docs/requirements.toml", 'done = ["identity"]\n')
        self.rows(*ROWS)
        self.write("tests/test_it.py", CITES_BOTH)

    def write(self, path: str, text: str) -> None:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def rows(self, *rows: str) -> None:
        self.write("docs/requirements.csv", "\n".join([HEADER, *rows, ""]))

    def run(self, *args: str) -> tuple[int, list[str]]:
        done = run("--root", str(self.root), *args)
        assert done.stderr == ""
        return done.returncode, done.stdout.splitlines()


def run(*args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(SCRIPT), *args], capture_output=True, text=True, check=False, timeout=60)


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


def cited(tree: Tree, source: str) -> Sequence[str]:
    """Which rows a test file cites, when nothing else does."""
    tree.write("tests/test_it.py", source)
    _, lines = tree.run("--json")
    about = json.loads(lines[0])
    assert about["wrong"] == []
    return list(about["tests"])


def test_every_row_of_a_done_stage_is_cited(tree: Tree) -> None:
    """A line per area, a total, nothing else; wishes and other stages are not due."""
    assert tree.run() == (
        0,
        [
            "EV rows=1 due=0 cited=0 missing=0",
            "TEN rows=3 due=2 cited=2 missing=0",
            "total rows=4 due=2 cited=2 missing=0",
        ],
    )


def test_a_missing_row_is_named_and_fails(tree: Tree) -> None:
    """Should counts like must."""
    tree.write("tests/test_it.py", CITES_BOTH.replace('"TEN-02"', '"TEN-03"'))
    assert tree.run() == (
        1,
        [
            "EV rows=1 due=0 cited=0 missing=0",
            "TEN rows=3 due=2 cited=1 missing=1",
            "missing TEN-02 (identity): Every query filters, by id as well",
            "total rows=4 due=2 cited=1 missing=1",
        ],
    )


def test_for_programs_it_is_one_object(tree: Tree) -> None:
    """The same findings, with the tests that cite each row."""
    tree.write("tests/test_it.py", CITES_BOTH.replace('"TEN-02"', '"EV-01"'))
    code, lines = tree.run("--json")
    assert code == 1
    assert json.loads(lines[0]) == {
        "areas": {
            "EV": {"rows": 1, "due": 0, "cited": 0, "missing": 0},
            "TEN": {"rows": 3, "due": 2, "cited": 1, "missing": 1},
        },
        "total": {"rows": 4, "due": 2, "cited": 1, "missing": 1},
        "missing": [{"id": "TEN-02", "due": "identity", "title": "Every query filters, by id as well"}],
        "wrong": [],
        "tests": {"EV-01": ["tests/test_it.py::test_two"], "TEN-01": ["tests/test_it.py::test_one"]},
    }


@pytest.mark.parametrize(
    "source",
    [
        'import pytest\n@pytest.mark.req("TEN-01", "TEN-02")\ndef test_a() -> None: ...\n',
        'import pytest\n@pytest.mark.req("TEN-01")\n@pytest.mark.req("TEN-02")\nasync def test_a() -> None: ...\n',
        'import pytest\npytestmark = pytest.mark.req("TEN-01", "TEN-02")\ndef test_a() -> None: ...\n',
        'import pytest\npytestmark = [pytest.mark.sim, pytest.mark.req("TEN-01", "TEN-02")]\ndef test_a(): ...\n',
        'import pytest\n@pytest.mark.req("TEN-01", "TEN-02")\nclass TestIt:\n    def test_a(self) -> None: ...\n',
        'import pytest\nclass TestIt:\n    pytestmark = pytest.mark.req("TEN-01", "TEN-02")\n    def test_a(_): ...\n',
        'from pytest import mark\n@mark.req("TEN-01", "TEN-02")\ndef test_a() -> None: ...\n',
    ],
)
def test_a_mark_counts_on_a_test_its_class_and_its_module(tree: Tree, source: str) -> None:
    """Wherever pytest would see it."""
    assert cited(tree, source) == ["TEN-01", "TEN-02"]


@pytest.mark.parametrize(
    "source",
    [
        'def test_a() -> None:\n    """TEN-01, @pytest.mark.req("TEN-01")"""\n',
        '# @pytest.mark.req("TEN-01")\ndef test_a() -> None: ...\n',
        'import pytest\n@pytest.mark.req("TEN-01")\ndef helps_a_test() -> None: ...\n',
        'import pytest\npytestmark = pytest.mark.req("TEN-01")\n',
        'import pytest\n@pytest.mark.skip\n@pytest.mark.req("TEN-01")\ndef test_a() -> None: ...\n',
        'import pytest\n@pytest.mark.req("TEN-01")\n@pytest.mark.skip(reason="x")\ndef test_a() -> None: ...\n',
        'import pytest\n@pytest.mark.skipif(True, reason="x")\n@pytest.mark.req("TEN-01")\ndef test_a(): ...\n',
        'import pytest\n@pytest.mark.xfail(strict=True)\n@pytest.mark.req("TEN-01")\ndef test_a() -> None: ...\n',
        'import pytest\npytestmark = pytest.mark.skip\n@pytest.mark.req("TEN-01")\ndef test_a() -> None: ...\n',
        'import pytest\n@pytest.mark.skip\nclass TestIt:\n    @pytest.mark.req("TEN-01")\n    def test_a(self): ...\n',
        'import pytest\nodd = pytest.mark.skipif(True)\n@odd\n@pytest.mark.req("TEN-01")\ndef test_a(): ...\n',
    ],
)
def test_words_and_tests_that_do_not_run_prove_nothing(tree: Tree, source: str) -> None:
    """A docstring, a comment, a function that is no test, a skipped test or one that may fail."""
    assert cited(tree, source) == []


def test_a_file_that_pytest_does_not_collect_proves_nothing(tree: Tree) -> None:
    """Factories and fixtures are no tests, whatever their functions are called."""
    tree.write("tests/make/things.py", CITES_BOTH)
    assert cited(tree, "") == []


@pytest.mark.parametrize(
    ("marks", "wrong"),
    [
        ('@pytest.mark.req("TEN-9")', "tests/test_it.py::test_a cites TEN-9, which is no row"),
        ("@pytest.mark.req(TEN)", "tests/test_it.py: line 3: an id must be written out"),
        ("@pytest.mark.req", 'tests/test_it.py: line 3: write @pytest.mark.req("TEN-02"), with one id or more'),
        (
            '@pytest.mark.req(id="TEN-01")',
            'tests/test_it.py: line 3: write @pytest.mark.req("TEN-02"), with one id or more',
        ),
        ('@pytest.mark.skip\n@pytest.mark.req("TEN-9")', "tests/test_it.py::test_a cites TEN-9, which is no row"),
    ],
)
def test_a_wrong_mark_fails(tree: Tree, marks: str, wrong: str) -> None:
    """Also when nothing is due: a misspelt id would be a promise nobody keeps."""
    tree.write("docs/requirements.toml", "done = []\n")
    tree.write("tests/test_it.py", f"import pytest\n\n{marks}\ndef test_a() -> None: ...\n")
    code, lines = tree.run()
    assert code == 1
    assert f"wrong {wrong}" in lines


def test_one_test_cites_at_most_four_rows(tree: Tree) -> None:
    """Four are fine, five are not, however they are spread over test and module."""
    tree.rows(*ROWS, "EV-02,must,events,events,,Gates")
    marks = '@pytest.mark.req("TEN-01", "TEN-02", "TEN-03", "EV-01")\ndef test_a() -> None: ...\n'
    tree.write("tests/test_it.py", f"import pytest\n{marks}")
    assert tree.run()[0] == 0
    tree.write("tests/test_it.py", f'import pytest\npytestmark = pytest.mark.req("EV-02")\n{marks}')
    code, lines = tree.run()
    assert code == 1
    assert "wrong tests/test_it.py::test_a cites 5 rows; one test can show 4" in lines


def test_a_row_is_moved_with_a_reason_only(tree: Tree) -> None:
    """Moved with a reason it is due where it went; without one, or with one and not moved, it fails."""
    start = ROWS[0].replace("must,identity,identity,,", "{}")
    tree.write("tests/test_it.py", CITES_BOTH.replace('"TEN-01"', '"EV-01"'))
    assert tree.run()[0] == 1
    tree.rows(start.format("must,events,identity,needs events to show it,"), *ROWS[1:])
    assert tree.run() == (
        0,
        [
            "EV rows=1 due=0 cited=0 missing=0",
            "TEN rows=3 due=1 cited=1 missing=0",
            "total rows=4 due=1 cited=1 missing=0",
        ],
    )
    tree.rows(start.format("must,events,identity, ,"), *ROWS[1:])
    code, lines = tree.run()
    assert (code, lines[2]) == (1, "wrong TEN-01 was moved from identity to events without a reason")
    tree.write("tests/test_it.py", CITES_BOTH)
    tree.rows(start.format("must,identity,identity,why,"), *ROWS[1:])
    code, lines = tree.run()
    assert (code, lines[2]) == (1, "wrong TEN-01 has a reason for a move, but was not moved")


@pytest.mark.parametrize(
    ("row", "wrong"),
    [
        (ROWS[0], "TEN-01 occurs 2 times"),
        ("TEN-04,perhaps,identity,identity,,x", "TEN-04: priority 'perhaps' is none of later, must, should"),
        ("TEN-04,later,,,,x", "TEN-04: needs an area, a stage and when it is due"),
        ("TEN-04,later,identity,identity,x", "requirements.csv: TEN-04 has too many or too few columns"),
    ],
)
def test_a_wrong_row_fails(tree: Tree, row: str, wrong: str) -> None:
    """The list itself must be right before it can say anything."""
    tree.rows(*ROWS, row)
    code, lines = tree.run()
    assert code == 1
    assert f"wrong {wrong}" in lines


@pytest.mark.parametrize(
    ("header", "wrong"),
    [
        ('done = ["identiti"]', "requirements.toml: no row is due in stage 'identiti'"),
        ("", "requirements.toml: holds `done`, a list of stages, and nothing else"),
        ('done = "identity"', "requirements.toml: holds `done`, a list of stages, and nothing else"),
        ('done = []\nfinished = ["identity"]', "requirements.toml: holds `done`, a list of stages, and nothing else"),
    ],
)
def test_a_stage_nobody_knows_fails(tree: Tree, header: str, wrong: str) -> None:
    """A misspelt stage would make everything of it look done."""
    tree.write("docs/requirements.toml", header)
    code, lines = tree.run()
    assert code == 1
    assert f"wrong {wrong}" in lines


def test_this_repository_keeps_what_it_promised() -> None:
    """What `make requirements` does."""
    done = run()
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert "TEN rows=11 " in done.stdout
    assert done.stdout.splitlines()[-1].startswith("total rows=657 ")
