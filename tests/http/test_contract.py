"""The contract under fire: schemathesis asks everything the document allows, and much that it does not."""

import asyncio
import json
import os
import sys
from pathlib import Path

import pytest

from tests.make.accounts import make_person
from tests.make.web import Site
from voelgoed.accounts.model import Role
from voelgoed.db import Database
from voelgoed.http import contract

EXAMPLES_MAX = 12
SECONDS_MAX = 70
EXCLUDED_CHECKS = {
    # A person, a tier, an address that a generator makes up is not there: 404 and 409 are right answers to valid data.
    "positive_data_acceptance",
}
EXCLUDED_PATHS = {
    "/api/admin/feed": "a stream that does not end; covered in tests/realtime",
    "/api/events/{event_id}/stream": "a stream that does not end; covered in tests/realtime",
    "/api/auth/logout": "would end the session of the run itself; covered in test_auth",
    "/api/auth/password-reset": "five an hour for an address: most answers would be 429; covered in test_auth",
}


@pytest.mark.timeout(400)
async def test_every_answer_is_in_the_contract(site: Site, db: Database, tmp_path: Path) -> None:
    """No undocumented status, no wrong shape, no 5xx, whatever is sent; the same seed each time."""
    person = await make_person(db, role=Role.OWNER, platform=Role.SUPER_ADMIN)
    document = tmp_path / "openapi.json"
    document.write_text(contract.text())
    argv = [str(Path(sys.executable).with_name("schemathesis")), "run", str(document), "--url", site.address]
    argv += ["--checks", "all", "--exclude-checks", ",".join(EXCLUDED_CHECKS), "--seed", "651", "--no-color"]
    argv += ["--max-examples", str(EXAMPLES_MAX), "--max-time", str(SECONDS_MAX), "--request-timeout", "30"]
    argv += ["--phases", "examples,coverage,fuzzing,stateful", "--generation-database", "none"]
    argv += ["-H", f"Authorization: Bearer {person.token}", "--suppress-health-check", "all", "--warnings", "off"]
    argv += ["--report", "json", "--report-json-path", str(tmp_path / "report.json")]
    for path in EXCLUDED_PATHS:
        argv += ["--exclude-path", path]
    process = await asyncio.create_subprocess_exec(
        *argv,
        cwd=tmp_path,
        env={**os.environ, "PYTHONWARNINGS": "ignore"},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    said, _ = await process.communicate()
    text = said.decode()
    print(text[-2500:])
    assert process.returncode == 0, text[-6000:]


def test_every_refusal_of_the_code_is_in_the_document() -> None:
    """A client can list every code it may meet."""
    made = contract.document()
    codes = made["components"]["schemas"]["Problem"]["properties"]["error"]["enum"]
    assert len(codes) == len(set(codes)) > 20
    assert {"unauthorized", "permission_denied", "invalid_request", "rate_limited", "csrf_failed", "busy"} <= set(codes)
    for path, operations in made["paths"].items():
        for method, operation in operations.items():
            if path.startswith("/api/") and method != "get":
                assert {"400", "413", "503"} <= operation["responses"].keys(), f"{method} {path}"


def test_the_document_is_json_that_does_not_change_between_runs() -> None:
    """A difference in a review is a difference in the contract."""
    assert contract.text() == contract.text()
    assert json.loads(contract.text())["openapi"].startswith("3.1")
