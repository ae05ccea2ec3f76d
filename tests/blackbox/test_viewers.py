"""A viewer of the live map keeps it as a browser does, and notices when the stream goes back."""

import json

from tests.blackbox.http_client import Client
from tests.blackbox.viewers import Viewer

ALL_FREE, FIRST_HELD = "AA==", "AQ=="


def frame(event: str, **data: object) -> dict[str, str]:
    return {"event": event, "data": json.dumps(data)}


def snapshot(version: int, statuses: str = ALL_FREE) -> dict[str, str]:
    return frame("snapshot", epoch=1, map_version=version, seat_count=2, statuses=statuses)


def viewer(*frames: dict[str, str]) -> Viewer:
    shown = Viewer(Client("127.0.0.1", 0), "event")
    for one in frames:
        shown.show(one)
    return shown


def test_changes_are_applied_to_the_snapshot() -> None:
    shown = viewer(snapshot(4), frame("delta", map_version=6, seats=[1], statuses="1"))
    assert (shown.statuses, shown.errors) == ("01", [])


def test_an_old_change_is_ignored() -> None:
    assert viewer(snapshot(4), frame("delta", map_version=4, seats=[1], statuses="1")).statuses == "00"


def test_an_older_snapshot_is_an_error_unless_a_resync_announced_it() -> None:
    assert len(viewer(snapshot(4), snapshot(2)).errors) == 1
    announced = viewer(snapshot(4), frame("resync"), snapshot(2, FIRST_HELD))
    assert (announced.statuses, announced.errors) == ("10", [])
