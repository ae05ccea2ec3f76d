"""The checker knows the product only as a user does."""

import ast
from pathlib import Path

FOLDER = Path(__file__).parent
OWN = "tests.blackbox"


def imported(path: Path) -> set[str]:
    """Return the modules that a file imports, wherever in it."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {one.name for one in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add(node.module or "")
    return found


def is_of_the_product(module: str) -> bool:
    """Return whether a module is the product's, or a test's that may import the product."""
    package = module.partition(".")[0]
    is_own = module == OWN or module.startswith(f"{OWN}.")
    return package == "voelgoed" or (package == "tests" and not is_own)


def test_the_checker_imports_nothing_of_the_product() -> None:
    found = {path.name: bad for path in FOLDER.glob("*.py") if (bad := set(filter(is_of_the_product, imported(path))))}
    assert found == {}


def test_an_import_of_the_product_would_be_found() -> None:
    assert list(
        map(is_of_the_product, ["voelgoed", "voelgoed.db", "tests.make.web", OWN, f"{OWN}.run", "asyncpg"])
    ) == [
        True,
        True,
        True,
        False,
        False,
        False,
    ]
