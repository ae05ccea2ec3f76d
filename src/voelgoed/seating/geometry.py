"""The geometry of one version, for whoever draws it: columns by ordinal, small numbers, compressed once.

Every id begins with one prefix, so that a hundred thousand of them are runs of serials; coordinates and ordinals are
written as differences to the one before; labels of rows and seats repeat all over a hall and are written once.
"""

import gzip
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import cast
from uuid import UUID

import msgspec

from voelgoed.seating import adjacency, seat_ids
from voelgoed.seating.columns import write_texts
from voelgoed.seating.model import Category, GroupKind, Layout, LayoutId, Point, Seat, Shape, ZoneId, ZoneType
from voelgoed.seating.ordinals import ordinals

FORMAT = "voelgoed-geometry/1"
GZIP_LEVEL = 9


@dataclass(frozen=True, slots=True, kw_only=True)
class GeometryZone:
    """A zone and which ordinals are its seats: `first` and the ones after it."""

    zone_id: ZoneId
    name: str
    zone_type: ZoneType
    capacity: int
    first: int
    count: int
    focal_point: Point | None = None
    outline: tuple[Point, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class GeometryRow:
    """A row, and how many of the next ordinals are its seats."""

    zone: int
    label: str
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GeometryGroup:
    """Seats that belong together, by ordinal."""

    kind: GroupKind
    label: str
    seats: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Geometry:
    """Where every seat of a version is and what it is called. Lists without a word about them are by ordinal."""

    layout_id: LayoutId
    version: int
    zones: tuple[GeometryZone, ...]
    rows: tuple[GeometryRow, ...]
    shapes: tuple[Shape, ...]
    groups: tuple[GeometryGroup, ...]
    serials: list[int]
    labels: list[str]
    x: list[int]
    y: list[int]
    categories: list[Category]
    breaks: list[int]  # the ordinals with nobody to the left in a row that has begun
    companions: list[tuple[int, int]]  # a companion seat and its wheelchair space


def geometry_of(
    layout: Layout,
    layout_id: LayoutId,
    version: int,
    *,
    seat_serials: Mapping[str, int],
    zone_serials: Mapping[str, int],
) -> Geometry:
    """The geometry of a layout whose seats and zones have their serials."""
    numbered = ordinals(layout)
    seats = [seat for _, _, seat in layout.seats()]
    counts = [zone.seat_count for zone in layout.zones]
    firsts = accumulate(counts[:-1], initial=0)
    return Geometry(
        layout_id=layout_id,
        version=version,
        zones=tuple(
            GeometryZone(
                zone_id=seat_ids.zone_id(layout_id, zone_serials[zone.code]),
                name=zone.name,
                zone_type=zone.zone_type,
                capacity=zone.capacity,
                first=first,
                count=count,
                focal_point=zone.focal_point,
                outline=zone.outline,
            )
            for zone, first, count in zip(layout.zones, firsts, counts, strict=True)
        ),
        rows=tuple(
            GeometryRow(zone=index, label=row.label, count=len(row.seats))
            for index, zone in enumerate(layout.zones)
            for row in zone.rows
        ),
        shapes=layout.shapes,
        groups=tuple(
            GeometryGroup(kind=group.kind, label=group.label, seats=tuple(numbered[code] for code in group.seat_codes))
            for zone in layout.zones
            for group in zone.groups
        ),
        serials=[seat_serials[seat.code] for seat in seats],
        labels=[seat.label for seat in seats],
        x=[seat.x for seat in seats],
        y=[seat.y for seat in seats],
        categories=[seat.category for seat in seats],
        breaks=[numbered[code] for row in _rows(layout) for code in _after_breaks(row)],
        companions=[(numbered[seat.code], numbered[seat.companion_of]) for seat in seats if seat.companion_of],
    )


def encode(geometry: Geometry) -> bytes:
    """The document that browsers read."""
    row_names = list(dict.fromkeys(row.label for row in geometry.rows))
    place = {name: index for index, name in enumerate(row_names)}
    patterns, pattern_of_row = _patterns(geometry)
    return msgspec.json.encode(
        {
            "format": FORMAT,
            "layout_id": geometry.layout_id,
            "version": geometry.version,
            "seat_count": len(geometry.serials),
            "id_prefix": seat_ids.id_prefix(geometry.layout_id),
            "zones": geometry.zones,
            "shapes": geometry.shapes,
            "groups": geometry.groups,
            "row_names": row_names,
            "rows": {
                "zone": _differences(row.zone for row in geometry.rows),
                "name": [place[row.label] for row in geometry.rows],
                "count": [row.count for row in geometry.rows],
                "labels": pattern_of_row,
            },
            "label_patterns": patterns,
            "serials": _runs(geometry.serials),
            "x": _differences(geometry.x),
            "y": _differences(geometry.y),
            "categories": {
                word: _differences(ordinal for ordinal, category in enumerate(geometry.categories) if category is word)
                for word in Category
                if word is not Category.STANDARD and word in geometry.categories
            },
            "breaks": _differences(geometry.breaks),
            "companions": geometry.companions,
        }
    )


def decode(data: bytes) -> Geometry:
    """A geometry from its document, as a program other than a browser would read it."""
    document = msgspec.json.decode(data, type=_Document)
    assert document.format == FORMAT
    counts = document.rows.count
    rows = zip(accumulate(document.rows.zone), document.rows.name, counts, strict=True)
    labels = [
        label
        for pattern, count in zip(document.rows.labels, counts, strict=True)
        for label in _labels(document.label_patterns[pattern], count)
    ]
    categories = [Category.STANDARD] * document.seat_count
    for word, steps in document.categories.items():
        for ordinal in accumulate(steps):
            categories[ordinal] = word
    return Geometry(
        layout_id=LayoutId(document.layout_id),
        version=document.version,
        zones=document.zones,
        rows=tuple(GeometryRow(zone=zone, label=document.row_names[name], count=count) for zone, name, count in rows),
        shapes=document.shapes,
        groups=document.groups,
        serials=[serial for start, count in document.serials for serial in range(start, start + count)],
        labels=labels,
        x=list(accumulate(document.x)),
        y=list(accumulate(document.y)),
        categories=categories,
        breaks=list(accumulate(document.breaks)),
        companions=document.companions,
    )


def drawn(
    layout: Layout, layout_id: LayoutId, version: int, seat_serials: Mapping[str, int], zone_serials: Mapping[str, int]
) -> bytes:
    """The document of a layout, compressed once for everybody."""
    whole = geometry_of(layout, layout_id, version, seat_serials=seat_serials, zone_serials=zone_serials)
    return compress(encode(whole))


def compress(data: bytes) -> bytes:
    """The document as it is stored and sent: once, as small as gzip can, and the same every time."""
    return gzip.compress(data, GZIP_LEVEL, mtime=0)


class _Rows(msgspec.Struct):
    zone: list[int]
    name: list[int]
    count: list[int]
    labels: list[int]


class _Document(msgspec.Struct):
    format: str
    layout_id: UUID
    version: int
    seat_count: int
    id_prefix: str
    zones: tuple[GeometryZone, ...]
    shapes: tuple[Shape, ...]
    groups: tuple[GeometryGroup, ...]
    row_names: list[str]
    rows: _Rows
    label_patterns: list[dict[str, str | int] | list[str]]
    serials: list[tuple[int, int]]
    x: list[int]
    y: list[int]
    categories: dict[Category, list[int]]
    breaks: list[int]
    companions: list[tuple[int, int]]


def _rows(layout: Layout) -> Iterable[Sequence[Seat]]:
    return (row.seats for zone in layout.zones for row in zone.rows)


def _after_breaks(seats: Sequence[Seat]) -> Iterable[str]:
    return (right.code for left, right in pairwise(seats) if not adjacency.are_adjacent(left, right))


def _patterns(geometry: Geometry) -> tuple[list[object], list[int]]:
    """How rows are labelled, each way once, and which way each row takes."""
    seen: dict[bytes, int] = {}
    patterns: list[object] = []
    taken = []
    start = 0
    for row in geometry.rows:
        pattern = write_texts(geometry.labels[start : start + row.count])
        key = msgspec.json.encode(pattern)
        if key not in seen:
            seen[key] = len(patterns)
            patterns.append(pattern)
        taken.append(seen[key])
        start += row.count
    return patterns, taken


def _labels(pattern: Mapping[str, str | int] | Sequence[str], count: int) -> Sequence[str]:
    if not isinstance(pattern, Mapping):
        return pattern
    start, step = cast("int", pattern["start"]), cast("int", pattern.get("step", 1))
    return [f"{pattern.get('prefix', '')}{start + step * place}" for place in range(count)]


def _differences(values: Iterable[int]) -> list[int]:
    """Each number as what it adds to the one before; `accumulate` undoes it."""
    listed = list(values)
    return [value - before for before, value in zip([0, *listed], listed, strict=False)]


def _runs(serials: Sequence[int]) -> list[tuple[int, int]]:
    """Serials as beginnings and lengths: a new hall is one run."""
    runs: list[tuple[int, int]] = []
    for serial in serials:
        if runs and serial == sum(runs[-1]):
            runs[-1] = (runs[-1][0], runs[-1][1] + 1)
        else:
            runs.append((serial, 1))
    return runs
