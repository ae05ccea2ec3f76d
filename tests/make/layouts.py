"""Layouts for tests: a small document to break, values from it, and any layout at all."""

import copy
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final
from uuid import UUID

from hypothesis import strategies as st

from voelgoed.seating.document import read_layout
from voelgoed.seating.model import (
    AccessMode,
    Category,
    Group,
    GroupKind,
    Layout,
    LayoutId,
    Row,
    Seat,
    Shape,
    ShapeKind,
    Zone,
    ZoneType,
)

LAYOUT_ID = LayoutId(UUID("01933b5c-7c1e-7d3a-9f00-1234567890ab"))
OTHER_LAYOUT_ID = LayoutId(UUID("01933b5c-7c1e-7d3b-9f00-1234567890ab"))
DROP: Final = object()

SMALL: Mapping[str, Any] = {
    "format": "voelgoed-layout/1",
    "name": "Small hall",
    "zones": [
        {
            "code": "S",
            "name": "Stalls",
            "zone_type": "reserved_seating",
            "focal_point": [0, 0],
            "rows": [
                {"label": "A", "seats": [{"number": number, "x": 50 * number, "y": 100} for number in (1, 2, 3, 4)]},
                {
                    "label": "B",
                    "breaks": [3],
                    "seats": {
                        "count": 6,
                        "x": {"start": 50, "step": 50},
                        "y": 200,
                        "category": {"wheelchair": [1], "companion": [2]},
                    },
                },
            ],
            "groups": [
                {"code": "pair", "kind": "wheelchair_pair", "seats": ["S-B-1", "S-B-2"]},
                {"code": "family", "kind": "family_block", "seats": ["S-A-1", "S-A-2"]},
            ],
        },
        {
            "code": "V",
            "name": "Members",
            "zone_type": "vip_reserved",
            "access_mode": "membership_tier",
            "membership_tier": "gold",
            "rows": [{"label": "A", "seats": {"count": 3, "x": [50, 100, 150], "y": [300, 301, 300]}}],
        },
        {"code": "P", "name": "Pit", "zone_type": "ga_standing", "capacity": 300},
    ],
    "shapes": [{"kind": "stage", "label": "Stage", "outline": [[0, 0], [300, 0], [300, 50], [0, 50]]}],
}


def changed(changes: Mapping[str, Any], document: Mapping[str, Any] = SMALL) -> dict[str, Any]:
    """A document with values put, or dropped, at paths like `zones.0.rows.1.label`."""
    copied = copy.deepcopy(dict(document))
    for path, value in changes.items():
        *way, last = path.split(".")
        target: Any = copied
        for step in way:
            target = target[_key(target, step)]
        if value is DROP:
            del target[_key(target, last)]
        elif isinstance(target, list) and int(last) == len(target):
            target.append(value)
        else:
            target[_key(target, last)] = value
    return copied


def encoded(document: object) -> bytes:
    return json.dumps(document, ensure_ascii=False).encode()


def small_layout(changes: Mapping[str, Any] | None = None) -> Layout:
    return read_layout(encoded(changed(changes or {})))


def row_of(*seats: Seat, label: str = "A") -> Row:
    return Row(label=label, seats=seats)


def seat(place: int, **over: Any) -> Seat:
    """A seat at a place of its row."""
    values = {
        "code": f"A-{place}",
        "number": place,
        "label": str(place),
        "position": place,
        "segment": 0,
        "x": 50 * place,
        "y": 0,
    }
    return Seat(**{**values, **over})


TEXTS = st.text(st.characters(codec="utf-8", categories=["L", "N", "P", "S"]), min_size=1, max_size=8)
POINTS = st.tuples(st.integers(-5_000, 5_000), st.integers(-5_000, 5_000))
METADATA = st.dictionaries(TEXTS, st.none() | st.booleans() | st.integers(-9, 9) | TEXTS, max_size=3)


@st.composite
def layouts(draw: st.DrawFn) -> Layout:
    """Any layout that is valid, within small numbers."""
    codes = iter(draw(st.lists(TEXTS, min_size=60, max_size=60, unique=True)))
    points = iter(draw(st.lists(POINTS, min_size=60, max_size=60, unique=True)))
    zone_codes = draw(st.lists(TEXTS, min_size=1, max_size=3, unique=True))
    zones = [draw(_zones(code, lambda: next(codes), lambda: next(points))) for code in zone_codes]
    outline = tuple(draw(st.lists(POINTS, min_size=3, max_size=5)))
    shapes = (Shape(kind=draw(st.sampled_from(ShapeKind)), label="Shape", outline=outline),)
    return Layout(
        name=draw(TEXTS),
        description=draw(st.none() | st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20)),
        zones=tuple(zones),
        shapes=draw(st.sampled_from([(), shapes])),
    )


@st.composite
def _zones(draw: st.DrawFn, code: str, next_code: Callable[[], str], next_point: Callable[[], tuple[int, int]]) -> Zone:
    zone_type = draw(st.sampled_from(ZoneType))
    is_vip = zone_type in (ZoneType.VIP_RESERVED, ZoneType.VIP_STANDING)
    mode = draw(st.sampled_from([one for one in AccessMode if one is not AccessMode.PUBLIC or not is_vip]))
    is_reserved = zone_type in (ZoneType.RESERVED_SEATING, ZoneType.VIP_RESERVED)
    labels = draw(st.lists(TEXTS, min_size=1, max_size=3, unique=True)) if is_reserved else []
    rows = tuple(draw(_rows(label, next_code, next_point)) for label in labels)
    seats = [seat for row in rows for seat in row.seats]
    free = [seat.code for seat in seats]
    groups = []
    if free and draw(st.booleans()):
        members = tuple(draw(st.permutations(free)))[: draw(st.integers(1, len(free)))]
        kind = draw(st.sampled_from([kind for kind in GroupKind if kind is not GroupKind.WHEELCHAIR_PAIR]))
        groups.append(Group(code=f"{code}-g", kind=kind, label="G", seat_codes=members, metadata=draw(METADATA)))
    return Zone(
        code=code,
        name=draw(TEXTS),
        zone_type=zone_type,
        capacity=len(seats) if is_reserved else draw(st.integers(1, 1_000)),
        access_mode=mode,
        membership_tier="gold" if mode is AccessMode.MEMBERSHIP_TIER else None,
        allowed_roles=("staff", "owner") if mode is AccessMode.ROLE_BASED else (),
        focal_point=draw(st.none() | POINTS),
        outline=tuple(draw(st.sampled_from([(), ((0, 0), (9, 0), (9, 9))]))),
        metadata=draw(METADATA),
        rows=rows,
        groups=tuple(groups),
    )


@st.composite
def _rows(draw: st.DrawFn, label: str, next_code: Callable[[], str], next_point: Callable[[], tuple[int, int]]) -> Row:
    """A row with gaps, breaks, odd labels, and perhaps a wheelchair space with companions."""
    count = draw(st.integers(1, 6))
    labels = draw(st.lists(TEXTS, min_size=count, max_size=count, unique=True))
    position, segment = 0, 0
    seats: list[Seat] = []
    space = draw(st.none() | st.integers(0, count - 1))
    space_code: str | None = None
    codes = [next_code() for _ in range(count)]
    if space is not None:
        space_code = codes[space]
    for place in range(count):
        position += draw(st.integers(1, 3))
        segment += place > 0 and draw(st.booleans())
        x, y = next_point()
        number = draw(st.integers(0, 200))
        category = Category.WHEELCHAIR if place == space else Category.STANDARD
        if space is not None and place != space and abs(place - space) == 1 and draw(st.booleans()):
            category = Category.COMPANION
        seats.append(
            Seat(
                code=codes[place],
                number=number,
                label=draw(st.sampled_from([labels[place], f"{place}#{number}"[:10]])),
                position=position,
                segment=segment,
                x=x,
                y=y,
                category=category,
                companion_of=space_code if category is Category.COMPANION else None,
            )
        )
    return Row(label=label, seats=tuple(_with_unique_labels(seats)))


def _with_unique_labels(seats: Sequence[Seat]) -> list[Seat]:
    labels = [seat.label for seat in seats]
    if len(set(labels)) == len(labels):
        return list(seats)
    return [
        Seat(**{name: getattr(seat, name) for name in seat.__struct_fields__} | {"label": f"{place}"})
        for place, seat in enumerate(seats)
    ]


def _key(target: object, step: str) -> Any:
    return int(step) if isinstance(target, list) else step
