"""`voelgoed bench`: it runs, and its last line is what programs read."""

import json

import pytest

from voelgoed.bench import halls, selling


@pytest.mark.postgresql
async def test_bench_layout_prints_what_a_hall_costs(capsys: pytest.CaptureFixture[str]) -> None:
    """Storing beside a bare COPY, reading beside a warm cache, publishing beside a bare insert; each as a ratio too."""
    await halls.layout(preset="festival", rounds=1, as_json=True)
    told = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (told["preset"], told["seats"], told["rounds"]) == ("festival", 350, 1)
    for name in ("generate_s", "validate_s", "store_s", "copy_s", "load_s", "warm_s", "publish_s", "insert_s"):
        assert told[name] > 0
    for ratio, above, below in (("store_ratio", "store_s", "copy_s"), ("publish_ratio", "publish_s", "insert_s")):
        assert told[ratio] == pytest.approx(told[above] / told[below], rel=0.05)


@pytest.mark.alone
async def test_a_quick_sale_is_measured(capsys: pytest.CaptureFixture[str]) -> None:
    """Over HTTP with everything on, beside the anchors: everything asked for was given, nothing is wrong afterwards.

    The benchmark itself compares the record with what was acknowledged; no figure is asserted.
    """
    await selling.reserve(seconds=1, pairs=1, connections=32, workers=1, hall="arena-20k", as_json=True)
    figures = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert figures.keys() >= {
        *("ratio", "holds_per_s", "anchor_per_s", "batch_anchor_per_s", "p50_ms", "p95_ms", "p99_ms"),
        *("connections", "cpu", "steal_pct", "disturbed"),
    }
    assert figures["holds_per_s"] > 0
    assert figures["anchor_per_s"] > 0
