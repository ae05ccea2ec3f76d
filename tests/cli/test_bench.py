"""`voelgoed bench`: it runs, and its last line is what programs read."""

import json

import pytest

from voelgoed.cli import bench


@pytest.mark.postgresql
async def test_bench_layout_prints_what_a_hall_costs(capsys: pytest.CaptureFixture[str]) -> None:
    """Storing beside a bare COPY, reading beside a warm cache, publishing beside a bare insert; each as a ratio too."""
    await bench.layout(preset="festival", rounds=1, as_json=True)
    told = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (told["preset"], told["seats"], told["rounds"]) == ("festival", 350, 1)
    for name in ("generate_s", "validate_s", "store_s", "copy_s", "load_s", "warm_s", "publish_s", "insert_s"):
        assert told[name] > 0
    for ratio, above, below in (("store_ratio", "store_s", "copy_s"), ("publish_ratio", "publish_s", "insert_s")):
        assert told[ratio] == pytest.approx(told[above] / told[below], rel=0.05)
