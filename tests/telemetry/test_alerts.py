"""The alerts: every one asks for numbers that exist, says how bad it is, and names a page that says what to do."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from voelgoed.holds.model import Outcome
from voelgoed.telemetry import metrics

ROOT = Path(__file__).resolve().parents[2]
RULES: dict[str, dict[str, Any]] = {
    rule["alert"]: rule
    for group in yaml.safe_load((ROOT / "deploy/prometheus/alerts.yml").read_text())["groups"]
    for rule in group["rules"]
}
ENDINGS = ("_total", "_bucket", "_sum", "_count")


def known() -> dict[str, set[str]]:
    """Every name Prometheus sees, and the labels it has."""
    names: dict[str, set[str]] = {}
    for metric in metrics.REGISTRY.collect():
        labels = set(getattr(metrics.REGISTRY._names_to_collectors[metric.name], "_labelnames", ()))
        for ending in ("", *ENDINGS):
            names[metric.name + ending] = labels
    return names


@pytest.mark.parametrize("name", RULES)
def test_an_alert_asks_for_what_is_measured(name: str) -> None:
    """A name or label that nobody sets never fires, and nobody would notice."""
    asked = re.findall(r"(voelgoedevents_\w+)(?:\{(.*?)\})?", RULES[name]["expr"])
    assert asked
    there = known()
    for metric, labels in asked:
        assert metric in there
        assert metric.endswith("_total") == ("rate(" in RULES[name]["expr"] or "increase(" in RULES[name]["expr"])
        assert set(re.findall(r"(\w+)\s*=~?", labels)) <= there[metric]


@pytest.mark.parametrize("name", RULES)
def test_an_alert_says_what_it_means_and_what_to_do(name: str) -> None:
    """A severity, a sentence, and a page that exists, with a heading for it where it names one."""
    rule = RULES[name]
    assert rule["labels"]["severity"] in ("warning", "page")
    assert rule["annotations"]["summary"].endswith(".")
    page, _, heading = rule["annotations"]["runbook"].partition("#")
    text = (ROOT / page).read_text()
    if heading:
        assert heading == name.lower()
        assert f"\n## {name}\n" in text


@pytest.mark.req("FALL-12")
def test_falling_back_warns_and_then_pages() -> None:
    """Any of it for a minute is a warning; more than one in two seconds for five minutes wakes somebody."""
    warning, page = RULES["RedisFallback"], RULES["RedisFallbackLasts"]
    metric = "rate(voelgoedevents_seating_hold_redis_fallback_total"
    assert (warning["expr"], warning["for"], warning["labels"]["severity"]) == (f"{metric}[1m]) > 0", "1m", "warning")
    assert (page["expr"], page["for"], page["labels"]["severity"]) == (f"{metric}[5m]) > 0.5", "5m", "page")


def test_losing_a_race_is_no_error() -> None:
    """What the alert about failing holds counts is nothing that PostgreSQL says to an ask that came too late."""
    found = re.search(r'outcome=~"(.*?)"', RULES["HoldsFail"]["expr"])
    assert found is not None
    counted = set(found[1].split("|"))
    assert counted == {"busy", "outcome_unknown", "seat_reservation_failed", "error"}
    assert counted & {outcome.value for outcome in Outcome} <= {Outcome.BUSY.value}
    assert "> 0.01" in RULES["HoldsFail"]["expr"]


def test_what_must_be_watched_is() -> None:
    """One alert each for everything that somebody has to know."""
    assert set(RULES) >= {
        "ReaperStopped",
        "HoldExtensionsFail",
        "RedisAway",
        "LanesShed",
        "ClockStepped",
        "ForwardedIgnored",
    }
    ran_at = "voelgoedevents_reaper_run_timestamp"  # which is not there at all where no worker ever ran
    assert RULES["ReaperStopped"]["expr"] == f"time() - {ran_at} > 60 or absent({ran_at})"
