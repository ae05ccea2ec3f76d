"""The geometry document: small, and nothing lost."""

import gzip
import json
from itertools import accumulate

import pytest
from hypothesis import given, settings

from tests.make.layouts import LAYOUT_ID, layouts, small_layout
from voelgoed.seating import geometry, presets, seat_ids
from voelgoed.seating.generate import generate
from voelgoed.seating.geometry import Geometry, geometry_of
from voelgoed.seating.model import Category, Layout


def geometry_for(layout: Layout, version: int = 1, known: dict[str, int] | None = None) -> Geometry:
    return geometry_of(
        layout,
        LAYOUT_ID,
        version,
        seat_serials=seat_ids.assign_serials([seat.code for _, _, seat in layout.seats()], known or {}),
        zone_serials=seat_ids.assign_serials([zone.code for zone in layout.zones], {}),
    )


@settings(deadline=None)
@given(layouts())
def test_nothing_is_lost_on_the_way_to_the_browser(layout: Layout) -> None:
    """Decoding gives what was encoded, and every column has a value per ordinal."""
    drawn = geometry_for(layout)
    assert geometry.decode(geometry.encode(drawn)) == drawn
    columns = (drawn.serials, drawn.labels, drawn.x, drawn.y, drawn.categories)
    assert {len(column) for column in columns} == {layout.seat_count}
    assert sum(row.count for row in drawn.rows) == layout.seat_count


def test_columns_are_by_ordinal() -> None:
    """The small hall, seat by seat."""
    drawn = geometry_for(small_layout(), version=4)
    assert drawn.version == 4
    assert [(zone.name, zone.first, zone.count, zone.capacity) for zone in drawn.zones] == [
        ("Stalls", 0, 10, 10),
        ("Members", 10, 3, 3),
        ("Pit", 13, 0, 300),
    ]
    assert drawn.zones[0].zone_id == seat_ids.zone_id(LAYOUT_ID, 1)
    assert [(row.zone, row.label, row.count) for row in drawn.rows] == [(0, "A", 4), (0, "B", 6), (1, "A", 3)]
    assert drawn.labels[4:10] == ["1", "2", "3", "4", "5", "6"]
    assert list(zip(drawn.x, drawn.y, strict=True))[9:12] == [(300, 200), (50, 300), (100, 301)]
    assert (drawn.categories[4], drawn.categories[5]) == (Category.WHEELCHAIR, Category.COMPANION)
    assert drawn.companions == [(5, 4)]
    assert drawn.breaks == [7]
    assert [(group.kind.value, group.seats) for group in drawn.groups] == [
        ("wheelchair_pair", (4, 5)),
        ("family_block", (0, 1)),
    ]


def test_a_browser_needs_a_prefix_and_sums() -> None:
    """The document as it is sent, read with nothing but additions."""
    known = {"S-A-3": 900, "S-A-4": 901}
    document = json.loads(geometry.encode(geometry_for(small_layout(), known=known)))
    assert document["serials"] == [[902, 2], [900, 2], [904, 9]]
    serials = [start + step for start, count in document["serials"] for step in range(count)]
    ids = [f"{document['id_prefix']}{serial:08x}" for serial in serials]
    assert ids[2] == str(seat_ids.seat_id(LAYOUT_ID, 900))
    assert len(set(ids)) == document["seat_count"] == 13
    assert list(accumulate(document["x"]))[:5] == [50, 100, 150, 200, 50]
    assert document["label_patterns"] == [{"start": 1}]
    assert document["row_names"] == ["A", "B"]
    assert document["categories"] == {"wheelchair": [4], "companion": [5]}


def test_codes_are_not_told() -> None:
    """They are for imports, and never shown."""
    written = geometry.encode(
        geometry_for(small_layout({"zones.0.rows.0.seats.0.code": "secret", "zones.0.groups": None}))
    )
    assert b"secret" not in written


def test_it_is_compressed_once_and_always_the_same() -> None:
    """An immutable address needs immutable bytes."""
    encoded = geometry.encode(geometry_for(generate(presets.preset("theatre-350"))))
    assert geometry.compress(encoded) == geometry.compress(encoded)
    assert gzip.decompress(geometry.compress(encoded)) == encoded
    assert geometry.compress(encoded)[4:8] == bytes(4)


@pytest.mark.parametrize(("name", "bytes_max"), [("stadium-100k", 100_000), ("theatre-350", 2_000)])
def test_halls_are_small_on_the_wire(name: str, bytes_max: int) -> None:
    """A hundred thousand seats in a sixth of what was allowed, and all of them come back."""
    drawn = geometry_for(generate(presets.preset(name)))
    encoded = geometry.encode(drawn)
    assert len(geometry.compress(encoded)) < bytes_max
    assert geometry.decode(encoded) == drawn
