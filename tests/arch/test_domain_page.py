"""The page that lists what there is names things that are there."""

import importlib
import re
from pathlib import Path

import pytest

from voelgoed.db import Connection

ROOT = Path(__file__).parents[2]
NAMES = {"Group": "SeatGroup", "Policy": "SeatingPolicy"}
"""What we call by a shorter name inside its own room."""
ASKED = {"Layout", "Zone", "Seat", "SeatGroup", "SeatingPolicy", "EventLayout"}


def rows() -> list[list[str]]:
    lines = [line for line in (ROOT / "docs" / "domain.md").read_text().splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[1:]]


@pytest.mark.req("LAY-37")
async def test_the_page_names_what_is_there(owner_conn: Connection) -> None:
    """Every resource that was asked for, each with its module, file, domain, tables and phase."""
    assert {row[0] for row in rows()} >= ASKED
    short = {name: own for own, name in NAMES.items()}
    tables = {row["relname"] for row in await owner_conn.fetch("select relname from pg_class where relkind = 'r'")}
    for name, told, module, file, domain, kept, phase in rows():
        found = importlib.import_module(module.strip("`"))
        assert hasattr(found, short.get(name, name)), name
        assert Path(str(found.__file__)) == ROOT / file.strip("`")
        assert module.split(".")[1] == domain
        assert set(re.findall(r"`(\w+)`", kept)) <= tables
        assert told
        assert phase.isdigit()
