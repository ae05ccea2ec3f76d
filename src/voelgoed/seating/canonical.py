"""Writing a layout in its format: the same layout always gives the same bytes, and reading them gives the layout again.

A line per zone and row, so that two versions can be compared with any tool; columns in their shortest form. The codes
of seats are always written: whoever edits labels in an export must not lose the seats' ids.
"""

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from voelgoed.seating.columns import write_ints, write_texts
from voelgoed.seating.document import FORMAT
from voelgoed.seating.model import AccessMode, Category, Group, Layout, Row, Seat, Shape, Zone


def write_layout(layout: Layout) -> bytes:
    """The document of a layout."""
    head = {
        "format": FORMAT,
        "name": layout.name,
        **_present("description", layout.description),
        "total_capacity": layout.total_capacity,
    }
    return b"".join(
        [
            _open_end(_encode(head)),
            b',\n"zones":',
            _lines(map(_zone, layout.zones)),
            *([b',\n"shapes":', _lines(_encode(_shape(shape)) for shape in layout.shapes)] if layout.shapes else ()),
            b"}\n",
        ]
    )


def _zone(zone: Zone) -> bytes:
    is_restricted = zone.access_mode is not AccessMode.PUBLIC
    head = {
        "code": zone.code,
        "name": zone.name,
        "zone_type": zone.zone_type,
        "capacity": zone.capacity,
        **_present("access_mode", zone.access_mode if is_restricted else None),
        **_present("membership_tier", zone.membership_tier),
        **_present("allowed_roles", zone.allowed_roles),
        **_present("focal_point", zone.focal_point),
        **_present("outline", zone.outline),
        **_present("metadata", _sorted(zone.metadata)),
    }
    parts = [_open_end(_encode(head))]
    if zone.rows:
        parts += [b',"rows":', _lines(_encode(_row(row)) for row in zone.rows)]
    if zone.groups:
        parts += [b',"groups":', _lines(_encode(_group(group)) for group in zone.groups)]
    return b"".join([*parts, b"}"])


def _row(row: Row) -> Mapping[str, object]:
    return {"label": row.label, **_present("breaks", _breaks(row.seats)), "seats": _columns(row.seats)}


def _breaks(seats: Sequence[Seat]) -> list[int]:
    """The places after which a segment ends. Segments count from 0 without gaps, or could not be read back."""
    assert seats[0].segment == 0
    breaks = [place for place in range(1, len(seats)) if seats[place].segment != seats[place - 1].segment]
    assert seats[-1].segment == len(breaks)
    return breaks


def _columns(seats: Sequence[Seat]) -> Mapping[str, object]:
    """The columns of a row; what reading would give anyhow is left out."""
    places = range(1, len(seats) + 1)
    columns: dict[str, object] = {"count": len(seats), "code": write_texts([seat.code for seat in seats])}
    if any(seat.number != place for seat, place in zip(seats, places, strict=True)):
        columns["number"] = write_ints([seat.number for seat in seats])
    if any(seat.label != str(seat.number) for seat in seats):
        columns["label"] = write_texts([seat.label for seat in seats])
    if any(seat.position != place for seat, place in zip(seats, places, strict=True)):
        columns["position"] = write_ints([seat.position for seat in seats])
    columns["x"] = write_ints([seat.x for seat in seats])
    columns["y"] = write_ints([seat.y for seat in seats])
    categories = [seat.category for seat in seats]
    if any(category is not Category.STANDARD for category in categories):
        named = [category for category in Category if category in categories and category is not Category.STANDARD]
        columns["category"] = {
            word: [place for place, category in zip(places, categories, strict=True) if category is word]
            for word in named
        }
    companions = {str(place): seat.companion_of for seat, place in zip(seats, places, strict=True) if seat.companion_of}
    return {**columns, **_present("companion_of", companions)}


def _group(group: Group) -> Mapping[str, object]:
    return {
        "code": group.code,
        "kind": group.kind,
        "label": group.label,
        "seats": group.seat_codes,
        **_present("metadata", _sorted(group.metadata)),
    }


def _shape(shape: Shape) -> Mapping[str, object]:
    return {"kind": shape.kind, "label": shape.label, "outline": shape.outline}


def _present(key: str, value: object) -> Mapping[str, object]:
    """A key with its value, where there is one. A text may be empty and still be there."""
    return {key: value} if value or isinstance(value, str) else {}


def _sorted(metadata: Mapping[str, object]) -> object:
    """Metadata has no order of keys that means anything, so it gets one."""
    return msgspec.Raw(msgspec.json.encode(metadata, order="deterministic")) if metadata else None


def _encode(value: object) -> bytes:
    return msgspec.json.encode(value)


def _open_end(encoded: bytes) -> bytes:
    """An object without its last brace, for more to follow."""
    return encoded[:-1]


def _lines(items: Iterator[bytes]) -> bytes:
    return b"[\n" + b",\n".join(items) + b"\n]"
