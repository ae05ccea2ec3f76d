"""Every test runs in some leg of `make test`."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_every_test_that_needs_the_machine_alone_is_in_that_leg() -> None:
    """The first leg leaves them out, so a file missing from the second would never run."""
    (leg,) = re.findall(r"\$\(PYTEST\) (.*) -m alone", (ROOT / "Makefile").read_text())
    marked = [path for path in (ROOT / "tests").rglob("test_*.py") if "pytest.mark.alone" in path.read_text()]
    marked.remove(Path(__file__).resolve())
    assert len(marked) > 1
    missing = [path for path in marked if not any(path.is_relative_to(ROOT / part) for part in leg.split())]
    assert missing == []
