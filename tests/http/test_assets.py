"""The web bundle: compressed once, cached for ever where its name says so, and never in the way of the API."""

import gzip
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from tests.make.web import Site
from voelgoed.http.assets import Assets, load_bundle, pick_encoding


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "assets").mkdir()
    (tmp_path / "index.html").write_text("<!doctype html><title>shell</title>")
    script = tmp_path / "assets" / "main-abc123.js"
    script.write_text("export {}")
    script.with_name(script.name + ".gz").write_bytes(gzip.compress(b"export {}"))
    script.with_name(script.name + ".br").write_bytes(b"brotli bytes")
    return tmp_path


@pytest.fixture
def client(folder: Path) -> TestClient:
    return TestClient(Assets(load_bundle(folder)))


def test_hashed_files_are_cached_for_ever(client: TestClient) -> None:
    """Their names change with their content, so nobody need ask again."""
    answer = client.get("/assets/main-abc123.js", headers={"accept-encoding": "gzip"})
    assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert answer.headers["content-encoding"] == "gzip"
    assert answer.headers["content-type"] == "text/javascript; charset=utf-8"
    assert answer.text == "export {}"


def test_the_shell_is_asked_for_each_time_but_sent_once(client: TestClient) -> None:
    """A new version is seen at the next visit; an unchanged one costs a 304."""
    first = client.get("/")
    assert first.headers["cache-control"] == "no-cache"
    again = client.get("/", headers={"if-none-match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


@pytest.mark.parametrize("path", ["/", "/passievol", "/passievol/events/7"])
def test_every_screen_is_the_shell(client: TestClient, path: str) -> None:
    """Screens are the web application's business."""
    assert "<title>shell</title>" in client.get(path).text


def test_a_missing_file_is_missing(client: TestClient) -> None:
    """An old script's name must not answer with a page of HTML."""
    assert client.get("/assets/main-old.js").status_code == 404


def test_only_reading_is_allowed(client: TestClient) -> None:
    """There is nothing to write."""
    answer = client.post("/")
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET, HEAD")


def test_head_has_the_headers_and_no_body(client: TestClient) -> None:
    """As the standard asks."""
    answer = client.head("/")
    assert answer.headers["content-length"] == str(len("<!doctype html><title>shell</title>"))
    assert answer.content == b""


@pytest.mark.parametrize("path", ["/../config.py", "/assets/../../config.py", "/%2e%2e/config.py", "/.env"])
def test_nothing_outside_the_bundle_is_reachable(client: TestClient, path: str) -> None:
    """Files are looked up by name in memory; there is no path to climb."""
    assert client.get(path).status_code == 404


def test_a_bundle_that_was_not_built_says_so(tmp_path: Path) -> None:
    """The API works without it; the page says what to run."""
    answer = TestClient(Assets(load_bundle(tmp_path / "none"))).get("/")
    assert answer.status_code == 503
    assert "make setup" in answer.text


@pytest.mark.parametrize(
    ("accepted", "picked"),
    [
        ("gzip, deflate, br", "br"),
        ("gzip;q=1.0, br;q=0.5", "br"),
        ("gzip, br;q=0", "gzip"),
        ("br;q=0, gzip;q=0", ""),
        ("", ""),
        ("identity", ""),
        ("BR", "br"),
    ],
)
def test_encoding_is_one_that_both_sides_know(accepted: str, picked: str) -> None:
    """Brotli first, then gzip, then the file as it is; refused encodings are not used."""
    assert pick_encoding(accepted, {"": b"", "br": b"", "gzip": b""}) == picked


async def test_the_built_bundle_is_served_compressed(site: Site) -> None:
    """What the build made is what a browser gets."""
    answer = await site.client.get("/", headers={"accept-encoding": "gzip"})
    assert answer.status_code == 200
    assert answer.headers["content-encoding"] == "gzip"
    assert "<script" in answer.text
