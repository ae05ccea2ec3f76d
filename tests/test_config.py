"""Settings: known names only, checked at once, secrets never shown."""

from pathlib import Path

import pytest

from voelgoed import config
from voelgoed.config import Settings
from voelgoed.errors import StartRefused


def test_defaults_are_those_of_the_documentation() -> None:
    """A newcomer sets nothing."""
    settings = config.load()
    assert (settings.host, settings.port, settings.workers) == ("127.0.0.1", 8600, 1)
    assert settings.database_url is settings.redis_url is None
    assert settings.unsafe_database is False


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("VOELGOED_PROT", "80", "unknown setting: VOELGOED_PROT"),
        ("VOELGOED_PORT", "eighty", "VOELGOED_PORT"),
        ("VOELGOED_PORT", "70000", "VOELGOED_PORT"),
        ("VOELGOED_WORKERS", "0", "VOELGOED_WORKERS"),
        ("VOELGOED_DATABASE_URL", "mysql://x", "VOELGOED_DATABASE_URL"),
        ("VOELGOED_REDIS_URL", "http://x", "VOELGOED_REDIS_URL"),
        ("VOELGOED_OWNER_DATABASE_URL", "postgresql://x", "DATABASE_URL is not"),
    ],
)
def test_wrong_settings_are_named(monkeypatch: pytest.MonkeyPatch, name: str, value: str, said: str) -> None:
    """A misspelt or impossible setting keeps the process from starting."""
    monkeypatch.setenv(name, value)
    with pytest.raises(StartRefused, match=said):
        config.load()


def test_an_empty_setting_is_an_unset_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """As compose files write it."""
    monkeypatch.setenv("VOELGOED_DATABASE_URL", "")
    assert config.load().database_url is None


def test_passwords_are_not_printed() -> None:
    """Settings end up in logs and tracebacks."""
    settings = Settings(database_url="postgresql://voelgoed_app:geheim@db/voelgoed")
    assert "geheim" not in repr(settings)


@pytest.mark.parametrize(
    ("chosen", "address"),
    [
        ({}, "http://127.0.0.1:8600"),
        ({"host": "::1"}, "http://[::1]:8600"),
        ({"public_url": "https://tickets.example/", "trusted_proxies": 1}, "https://tickets.example"),
    ],
)
def test_address_is_what_people_open(chosen: dict[str, object], address: str) -> None:
    """The public one where there is a proxy in front."""
    assert config.load(**chosen).address == address


@pytest.mark.parametrize("chosen", ["", None])
def test_https_without_a_number_of_proxies_is_refused(monkeypatch: pytest.MonkeyPatch, chosen: str | None) -> None:
    """Something is in front; until it is known what, all visitors would share one address and its limits."""
    monkeypatch.setenv("VOELGOED_PUBLIC_URL", "https://tickets.example")
    if chosen is not None:
        monkeypatch.setenv("VOELGOED_TRUSTED_PROXIES", chosen)
    with pytest.raises(StartRefused, match="VOELGOED_TRUSTED_PROXIES is not set"):
        config.load()


@pytest.mark.parametrize("proxies", ["0", "1", "8"])
def test_https_with_a_number_of_proxies_starts(monkeypatch: pytest.MonkeyPatch, proxies: str) -> None:
    """None at all is an answer, too: a load balancer may hand on the clients' own addresses."""
    monkeypatch.setenv("VOELGOED_PUBLIC_URL", "https://tickets.example")
    monkeypatch.setenv("VOELGOED_TRUSTED_PROXIES", proxies)
    assert config.load().trusted_proxies == int(proxies)


@pytest.mark.parametrize("proxies", ["-1", "9", "some"])
def test_a_number_of_proxies_is_one(monkeypatch: pytest.MonkeyPatch, proxies: str) -> None:
    """Nobody stands behind nine."""
    monkeypatch.setenv("VOELGOED_TRUSTED_PROXIES", proxies)
    with pytest.raises(StartRefused, match="VOELGOED_TRUSTED_PROXIES"):
        config.load()


@pytest.mark.parametrize("url", [None, "http://tickets.example"])
def test_plain_http_needs_no_proxies(monkeypatch: pytest.MonkeyPatch, url: str | None) -> None:
    """As on a newcomer's machine."""
    if url:
        monkeypatch.setenv("VOELGOED_PUBLIC_URL", url)
    assert config.load().trusted_proxies == 0


def test_roots_data_is_where_an_ordinary_user_may_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """Root's home is closed to the user the database runs as."""
    monkeypatch.setattr("os.geteuid", lambda: 0)
    assert config.default_data_dir() == Path("/var/lib/voelgoed")
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    monkeypatch.setenv("XDG_DATA_HOME", "/srv/anna/data")
    assert config.default_data_dir() == Path("/srv/anna/data/voelgoed")
