"""Layouts for tests: a small document to break, values from it, and any layout at all."""

import copy
import itertools
import json
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final
from uuid import UUID

from hypothesis import strategies as st

from voelgoed.accounts.model import Role
from voelgoed.cache import Cache
from voelgoed.db import Database
from voelgoed.events.model import OPERATOR, Venue
from voelgoed.ids import OrganizationId
from voelgoed.redis import RedisLink
from voelgoed.seating import policies, presets, versions
from voelgoed.seating.document import read_layout
from voelgoed.seating.generate import generate
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
    Version,
    Zone,
    ZoneType,
)
from voelgoed.seating.spec import AreaSpec, RowsSpec, Spec
from voelgoed.seating.studio import Studio

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


TEXTS = st.sampled_from(["A", "Ê 1", "0", "007", "x-1", "“q”", "=1+1", "a,b;c", "'", "日本"])
POINTS = st.tuples(st.integers(-5_000, 5_000), st.integers(-5_000, 5_000))
METADATA: st.SearchStrategy[Mapping[str, object]] = st.sampled_from(
    [{}, {"a": 1}, {"b": None, "a": [True, "x", {"c": -1.5}]}]
)
CODE_STYLES = st.sampled_from(["S-A-{}", "{}", "x{:04}", "Ü {}", "{}b", "=-{}", "9{}"])
STEPS = st.sampled_from([(50, 0), (-7, 3), (0, 1), (49, -1)])


@st.composite
def layouts(draw: st.DrawFn) -> Layout:
    """Any layout that is valid, within small numbers: odd texts, gaps, breaks, pairs, groups."""
    count = draw(st.integers(1, 3))
    outline = tuple(draw(st.lists(POINTS, min_size=3, max_size=4)))
    shape = Shape(kind=draw(st.sampled_from(ShapeKind)), label="Shape", outline=outline)
    numbers = itertools.count(draw(st.integers(0, 3)))
    return Layout(
        name=draw(TEXTS),
        description=draw(st.none() | st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=9)),
        zones=tuple(draw(_zones(f"{draw(TEXTS)}{index}", numbers)) for index in range(count)),
        shapes=draw(st.sampled_from([(), (shape,)])),
    )


@st.composite
def _zones(draw: st.DrawFn, code: str, numbers: Iterator[int]) -> Zone:
    zone_type = draw(st.sampled_from(ZoneType))
    is_vip = zone_type in (ZoneType.VIP_RESERVED, ZoneType.VIP_STANDING)
    mode = draw(st.sampled_from([one for one in AccessMode if one is not AccessMode.PUBLIC or not is_vip]))
    is_reserved = zone_type in (ZoneType.RESERVED_SEATING, ZoneType.VIP_RESERVED)
    labels = draw(st.lists(TEXTS, min_size=1, max_size=3, unique=True)) if is_reserved else []
    rows = tuple(draw(_rows(label, numbers)) for label in labels)
    codes = [seat.code for row in rows for seat in row.seats]
    members = tuple(codes[draw(st.integers(0, 3)) :: -1] if draw(st.integers(0, 1)) else codes[:2])
    kind = draw(st.sampled_from([kind for kind in GroupKind if kind is not GroupKind.WHEELCHAIR_PAIR]))
    group = Group(code=f"{code}-g", kind=kind, label="G", seat_codes=members, metadata=draw(METADATA))
    return Zone(
        code=code,
        name=draw(TEXTS),
        zone_type=zone_type,
        capacity=len(codes) if is_reserved else draw(st.integers(1, 1_000)),
        access_mode=mode,
        membership_tier="gold" if mode is AccessMode.MEMBERSHIP_TIER else None,
        allowed_roles=("staff", "owner") if mode is AccessMode.ROLE_BASED else (),
        focal_point=draw(st.none() | POINTS),
        outline=draw(st.sampled_from([(), ((0, 0), (9, 0), (9, 9))])),
        metadata=draw(METADATA),
        rows=rows,
        groups=(group,) if members else (),
    )


@st.composite
def _rows(draw: st.DrawFn, label: str, numbers: Iterator[int]) -> Row:
    """A row with gaps, breaks, odd labels, and perhaps a wheelchair space with companions beside it."""
    gaps = draw(st.lists(st.sampled_from([(1, 0), (1, 0), (1, 1), (2, 0), (3, 1)]), min_size=1, max_size=6))
    style, (step_x, step_y) = draw(CODE_STYLES), draw(STEPS)
    first, step = draw(st.integers(0, 200)), draw(st.sampled_from([-1, 0, 1, 2]))
    labels = draw(st.sampled_from([lambda _, number: str(number), lambda place, _: f"{place}L", "{1}-{0}".format]))
    space = draw(st.none() | st.integers(0, len(gaps) - 1))
    companions = {place for place in (-1, 1) if draw(st.booleans())}
    taken = [next(numbers) for _ in gaps]
    codes = [style.format(number) + f"~{number}" for number in taken]
    seats = []
    position = segment = 0
    for place, (gap, is_break) in enumerate(gaps):
        position, segment = position + gap, segment + (is_break if place else 0)
        number = max(0, first + step * place)
        is_companion = space is not None and place - space in companions
        category = Category.WHEELCHAIR if place == space else Category.COMPANION if is_companion else Category.STANDARD
        seats.append(
            Seat(
                code=codes[place],
                number=number,
                label=labels(place, number) if step > 0 else f"{place}",
                position=position,
                segment=segment,
                x=taken[place] * 1_000 + step_x * place,
                y=step_y * place,
                category=category,
                companion_of=codes[space] if is_companion and space is not None else None,
            )
        )
    return Row(label=label, seats=tuple(seats))


def _key(target: object, step: str) -> Any:
    return int(step) if isinstance(target, list) else step


async def allow_everything(db: Database, organization_id: OrganizationId) -> None:
    """Let an organization's zones be of every type, with every kind of access."""
    async with db.transaction(organization_id) as conn:
        await policies.save(
            conn,
            organization_id,
            {"allow_vip_zones": True, "allowed_access_modes": list(AccessMode)},
            by=OPERATOR,
            role=Role.SUPER_ADMIN,
            reason="in a test",
        )


async def make_layout(db: Database, venue: Venue, layout: Layout | None = None) -> Version:
    """A layout at a venue, with its first version a draft; whatever its zones are is allowed there."""
    await allow_everything(db, venue.organization_id)
    studio = Studio(db, Cache(link=RedisLink("redis://127.0.0.1:1")))  # nothing is read from it
    return await versions.create_layout(studio, venue.organization_id, venue.id, layout or small_layout(), by=OPERATOR)


@cache
def theatre() -> Layout:
    """Four prices round a stage, loges for members on both sides, and a terrace where people stand."""
    first = 560
    blocks: list[RowsSpec | AreaSpec] = []
    for name, rows, before in (("Front", 3, 0), ("Stalls", 5, 3), ("Raised", 4, 8), ("Back", 3, 12)):
        blocks.append(
            RowsSpec(
                code=name.upper(),
                name=name,
                rows=rows,
                seats=24 + before,
                seats_step=1,
                distance=first + before * 92 + (60 if before > 7 else 0),
                curve_radius=1_900 + before * 92,
                row_pitch=88,
                segments=(1, 2, 1),
                aisle_width=115,
                first_row=1 + before,
                wheelchair_spaces=4 if name == "Stalls" else 0,
            )
        )
    blocks += [
        RowsSpec(
            code=f"LOGES{side}",
            name=f"Loges {side}",
            zone_type=ZoneType.VIP_RESERVED,
            access_mode=AccessMode.MEMBERSHIP_TIER,
            membership_tier=presets.VIP_TIER,
            rows=2,
            seats=4,
            origin=(x, 100),
            distance=100,
            facing=facing,
            seat_pitch=70,
        )
        for side, x, facing in ((1, -880, 160.0), (2, 880, 20.0))
    ]
    terrace = ((-760, 2_090), (760, 2_090), (700, 2_270), (-700, 2_270))
    blocks.append(AreaSpec(code="TERRACE", name="Terrace", capacity=240, outline=terrace))
    stage = Shape(kind=ShapeKind.STAGE, label="Stage", outline=((-560, 60), (560, 60), (620, 330), (-620, 330)))
    return generate(Spec(name="Die Skouburg", blocks=tuple(blocks), shapes=(stage,)))
