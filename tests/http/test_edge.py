"""The edge: the headers that tell a browser what it may do."""

import pytest

from tests.make.web import Site
from voelgoed.http.edge import CONTENT_SECURITY_POLICY, security_headers


@pytest.mark.parametrize("path", ["/", "/healthz", "/readyz", "/api/openapi.json", "/api/none", "/assets/none.js"])
async def test_every_answer_has_the_security_headers(site: Site, path: str) -> None:
    """Pages, data and errors alike."""
    answer = await site.client.get(path)
    assert answer.headers["content-security-policy"] == CONTENT_SECURITY_POLICY
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "same-origin"
    assert "strict-transport-security" not in answer.headers


def test_the_policy_allows_no_inline_script_or_style() -> None:
    """What is not a file of ours does not run."""
    assert "unsafe" not in CONTENT_SECURITY_POLICY
    assert "script-src 'self'" in CONTENT_SECURITY_POLICY
    assert "default-src 'none'" in CONTENT_SECURITY_POLICY


def test_https_is_remembered_only_where_it_is_spoken() -> None:
    """A plain address must not tell browsers to insist on TLS."""
    assert b"strict-transport-security" in dict(security_headers(is_https=True))
    assert b"strict-transport-security" not in dict(security_headers(is_https=False))
