"""The one format of layouts, as bytes: read with every fault at once, written so that reading gives the same again.

The format itself is described for people in docs/layout-format.md, and for programs by `document_schema`.
"""

from collections.abc import Mapping, Sequence
from typing import cast

import msgspec

from voelgoed.seating import columns, rules
from voelgoed.seating.columns import Cell, Column
from voelgoed.seating.faults import FaultCode, Faults, LayoutInvalid, refuse_size
from voelgoed.seating.model import (
    CAPACITY_MAX,
    COORDINATE_MAX,
    DESCRIPTION_CHARS_MAX,
    GROUP_CODE_CHARS_MAX,
    GROUPS_PER_ZONE_MAX,
    METADATA_BYTES_MAX,
    NAME_CHARS_MAX,
    NUMBER_MAX,
    OUTLINE_POINTS_MAX,
    OUTLINE_POINTS_MIN,
    POSITION_MAX,
    RESERVED_TYPES,
    ROW_LABEL_CHARS_MAX,
    ROWS_PER_ZONE_MAX,
    SEAT_CODE_CHARS_MAX,
    SEAT_LABEL_CHARS_MAX,
    SEATS_MAX,
    SEATS_PER_GROUP_MAX,
    SEATS_PER_ROW_MAX,
    SHAPES_MAX,
    TIER_CHARS_MAX,
    ZONE_CODE_CHARS_MAX,
    ZONES_MAX,
    AccessMode,
    Category,
    Group,
    GroupKind,
    Layout,
    Row,
    Seat,
    Shape,
    ShapeKind,
    Zone,
    ZoneType,
)
from voelgoed.seating.nodes import Node, as_word, check_range, check_text, check_type, shown

FORMAT = "voelgoed-layout/1"
PARTS_MAX = 500_000
LAYOUT_KEYS = frozenset({"format", "name", "description", "total_capacity", "zones", "shapes"})
ZONE_KEYS = frozenset(
    {
        "code",
        "name",
        "zone_type",
        "capacity",
        "access_mode",
        "membership_tier",
        "allowed_roles",
        "focal_point",
        "outline",
        "metadata",
        "rows",
        "groups",
    }
)
ROW_KEYS = frozenset({"label", "breaks", "seats"})
SEAT_KEYS = ("code", "number", "label", "category", "position", "x", "y", "companion_of")
COLUMN_KEYS = frozenset({"count", *SEAT_KEYS})
GROUP_KEYS = frozenset({"code", "kind", "label", "seats", "metadata"})
SHAPE_KEYS = frozenset({"kind", "label", "outline"})


def read_layout(data: bytes) -> Layout:
    """The layout that a document describes. Raises `LayoutInvalid` with everything that is wrong with it."""
    refuse_size(data)
    faults = Faults()
    layout = _Reading(faults).layout(decode_object(data, faults))
    if layout is None or faults.count:
        raise LayoutInvalid(faults)
    return layout


def decode_object(data: bytes, faults: Faults) -> Mapping[str, object]:
    """The object that the bytes of a JSON document hold; nothing can be told about any other."""
    if data.count(b"{") + data.count(b"[") > PARTS_MAX:  # to build them all would keep the whole process waiting
        faults.add("$", FaultCode.TOO_MANY, f"More than {PARTS_MAX} objects and lists.")
        raise LayoutInvalid(faults)
    try:
        document = msgspec.json.decode(data.removeprefix(b"\xef\xbb\xbf"))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        faults.add("$", FaultCode.NOT_JSON, f"The file is no JSON: {str(error)[:200]}.")
        raise LayoutInvalid(faults) from None
    if not check_type(document, dict, "$", faults):
        raise LayoutInvalid(faults)
    return cast("Mapping[str, object]", document)


class _Reading:
    """One pass over a document. What is broken is noted and left out; all else is looked at."""

    def __init__(self, faults: Faults) -> None:
        self.faults = faults
        self.doubts = rules.Doubts()
        self.paths = _DocumentPaths()
        self.seats_left = SEATS_MAX
        self.zone_codes: set[str | None] = set()

    def layout(self, document: Mapping[str, object]) -> Layout | None:
        if document.get("format") != FORMAT:
            message = f"The format is {shown(document.get('format'))}, not {FORMAT}."
            self.faults.add("format", FaultCode.UNKNOWN_FORMAT, message, f'Begin with "format": "{FORMAT}".')
            return None
        root = Node(document, "", self.faults, LAYOUT_KEYS)
        name = root.text("name", NAME_CHARS_MAX)
        description = self._description(root)
        root.require("zones")
        read = [self._zone(node) if node else None for node in root.nodes("zones", ZONES_MAX, ZONE_KEYS)]
        zones = [zone for zone in read if zone]
        shapes = [self._shape(node) for node in root.nodes("shapes", SHAPES_MAX, SHAPE_KEYS) if node]
        layout = Layout(
            name=name or "",
            description=description,
            zones=tuple(zones),
            shapes=tuple(shape for shape in shapes if shape),
        )
        total = root.whole("total_capacity", 1, CAPACITY_MAX)
        is_counted = len(zones) == len(read) > 0 and not self.doubts.counts | self.doubts.types
        if self.seats_left >= 0 and (zones or root.value.get("zones") == []):
            rules.check(layout, self.faults, self.paths, self.doubts)
        self._check_total(layout, total, is_counted=is_counted)
        return layout

    def _check_total(self, layout: Layout, total: int | None, *, is_counted: bool) -> None:
        capacity = layout.total_capacity
        if capacity > CAPACITY_MAX:
            message = f"All zones together hold {capacity}; {CAPACITY_MAX} are allowed."
            self.faults.add("total_capacity", FaultCode.OUT_OF_RANGE, message)
        elif is_counted and total is not None and total != capacity:
            message = f"The total is {total}, and the zones hold {capacity}."
            self.faults.add("total_capacity", FaultCode.TOTAL_CAPACITY_MISMATCH, message)

    def _description(self, root: Node) -> str | None:
        """Several lines are fine here, so that only its length and what no database keeps are looked at."""
        value = root.value.get("description")
        if value is None or not check_type(value, str, "description", self.faults):
            return None
        text = str(value)
        if len(text) > DESCRIPTION_CHARS_MAX:
            message = f"{len(text)} characters; {DESCRIPTION_CHARS_MAX} are allowed."
            self.faults.add("description", FaultCode.TOO_LONG, message)
        elif "\0" in text:
            self.faults.add("description", FaultCode.NOT_PRINTABLE, "It has a character that cannot be stored.")
        return text

    def _zone(self, node: Node) -> Zone:
        place = self.paths.enter_zone(node.path)
        code = node.text("code", ZONE_CODE_CHARS_MAX)
        name = node.text("name", NAME_CHARS_MAX)
        zone_type = node.word("zone_type", ZoneType)
        if zone_type is None:
            self.doubts.types.add(place)
        before = self.faults.count
        access_mode = node.word("access_mode", AccessMode, AccessMode.PUBLIC)
        tier = node.optional_text("membership_tier", TIER_CHARS_MAX)
        roles = self._roles(node)
        if self.faults.count != before:
            self.doubts.access.add(place)
        capacity = self._capacity(node, zone_type)
        if capacity is None and (node.has("capacity") or zone_type not in RESERVED_TYPES):
            self.doubts.counts.add(place)
        rows = self._rows(node, None if code in self.zone_codes else code, place)
        self.zone_codes.add(code)
        return Zone(
            code=code or "",
            name=name or "",
            zone_type=zone_type or ZoneType.RESERVED_SEATING,
            capacity=sum(len(row.seats) for row in rows) if capacity is None else capacity,
            access_mode=access_mode or AccessMode.PUBLIC,
            membership_tier=tier,
            allowed_roles=roles,
            focal_point=node.point("focal_point"),
            outline=node.points("outline", OUTLINE_POINTS_MIN, OUTLINE_POINTS_MAX),
            metadata=self._metadata(node),
            rows=rows,
            groups=self._groups(node),
        )

    def _capacity(self, node: Node, zone_type: ZoneType | None) -> int | None:
        if zone_type is not None and zone_type not in RESERVED_TYPES and not node.has("capacity"):
            message = f"A {zone_type} zone needs a capacity."
            self.faults.add(node.at("capacity"), FaultCode.MISSING, message)
        return node.whole("capacity", 1, CAPACITY_MAX)

    def _roles(self, node: Node) -> tuple[str, ...]:
        """Which roles there are is the rules' business; here they are texts."""
        items = node.items("allowed_roles", len(rules.ROLES))
        return tuple(str(item) for path, item in items if check_text(item, path, TIER_CHARS_MAX, self.faults))

    def _metadata(self, node: Node) -> Mapping[str, object]:
        value = node.value.get("metadata")
        if value is None or not check_type(value, dict, node.at("metadata"), self.faults):
            return {}
        encoded = msgspec.json.encode(value)
        if len(encoded) > METADATA_BYTES_MAX:
            message = f"{len(encoded)} bytes; {METADATA_BYTES_MAX} are allowed."
            self.faults.add(node.at("metadata"), FaultCode.TOO_LONG, message)
        elif b"\\u0000" in encoded:
            self.faults.add(node.at("metadata"), FaultCode.NOT_PRINTABLE, "It has a character that cannot be stored.")
        return cast("Mapping[str, object]", value)

    def _rows(self, zone: Node, zone_code: str | None, place: int) -> tuple[Row, ...]:
        before = self.faults.count
        rows: list[Row] = []
        seen: set[str] = set()
        asked = 0
        for node in zone.nodes("rows", ROWS_PER_ZONE_MAX, ROW_KEYS):
            if node is None:
                self.doubts.has_lost_codes = True
                continue
            if self.seats_left < 0:
                break  # there are too many already; how many more is nobody's question
            self.paths.enter_row(node.path)
            label = node.text("label", ROW_LABEL_CHARS_MAX)
            count, cells = self._cells(node)
            segments = self._segments(node, count)
            # Codes made of a label that is there twice would all be there twice: the label is the one fault.
            is_named = zone_code is not None and label is not None and label not in seen
            seats = self._seats(cells, segments, f"{zone_code}-{label}-" if is_named else None) if count else ()
            seen.add(label or "")
            asked += count
            rows.append(rules.paired(Row(label=label or "", seats=seats)))
        if self.faults.count != before or asked != sum(len(row.seats) for row in rows):
            self.doubts.counts.add(place)
        return tuple(rows)

    def _cells(self, row: Node) -> tuple[int, Mapping[str, Column]]:
        """The columns of a row, however its seats were written."""
        value = row.value.get("seats")
        if not row.require("seats"):
            pass
        elif isinstance(value, list):
            cells = self._listed_seats(row)
            if cells is not None:
                return len(value), cells
        elif check_type(value, dict, row.at("seats"), self.faults):
            node = Node(cast("Mapping[str, object]", value), row.at("seats"), self.faults, COLUMN_KEYS)
            count = node.whole("count", 1, SEATS_PER_ROW_MAX) if node.require("count") else None
            if count is not None and self._has_room(count, node.path):
                return count, self._columns(node, count)
        self.doubts.has_lost_codes = True
        return 0, {}

    def _has_room(self, count: int, path: str) -> bool:
        """Stop at the first seat too many, before room is made for a billion."""
        if self.seats_left < 0:
            return False
        self.seats_left -= count
        if self.seats_left < 0:
            self.faults.add(path, FaultCode.TOO_MANY, f"More than {SEATS_MAX} seats in the layout up to here.")
        return self.seats_left >= 0

    def _columns(self, node: Node, count: int) -> Mapping[str, Column]:
        for key in ("x", "y"):
            node.require(key)
        return {
            "code": columns.read_texts(node, "code", count, SEAT_CODE_CHARS_MAX),
            "number": columns.read_ints(node, "number", count, 0, NUMBER_MAX),
            "label": columns.read_texts(node, "label", count, SEAT_LABEL_CHARS_MAX),
            "category": columns.read_categories(node, "category", count),
            "position": columns.read_ints(node, "position", count, 1, POSITION_MAX),
            "x": columns.read_ints(node, "x", count, -COORDINATE_MAX, COORDINATE_MAX, absent=Cell.BAD),
            "y": columns.read_ints(node, "y", count, -COORDINATE_MAX, COORDINATE_MAX, absent=Cell.BAD),
            "companion_of": columns.read_companions(node, "companion_of", count),
        }

    def _listed_seats(self, row: Node) -> Mapping[str, Column] | None:
        """Seats written one by one, turned into columns; an item that is no object is bad in every column."""
        nodes = list(row.nodes("seats", SEATS_PER_ROW_MAX, frozenset(SEAT_KEYS)))
        if row.value.get("seats") == []:
            self.faults.add(row.at("seats"), FaultCode.EMPTY, "The row has no seats.", "Add seats, or drop the row.")
        if not nodes or not self._has_room(len(nodes), row.at("seats")):
            return None
        return {key: self._listed_column(nodes, key, row.at("seats")) for key in SEAT_KEYS}

    def _listed_column(self, nodes: Sequence[Node | None], key: str, path: str) -> Column:
        values = [Cell.BAD if node is None else node.value.get(key) for node in nodes]
        present = [Cell.ABSENT if value is None else value for value in values]
        return Column(present, lambda place: f"{path}[{place}].{key}")

    def _segments(self, row: Node, count: int) -> list[int]:
        """How many breaks stand before each seat."""
        segments = [0] * count
        last = 0
        for path, place in row.items("breaks", SEATS_PER_ROW_MAX):
            if not count or not columns.check_place(place, path, count, self.faults):
                continue
            assert isinstance(place, int)
            if place == count:
                message = "A break after the last seat parts it from nobody."
                self.faults.add(path, FaultCode.PLACE_OUTSIDE_ROW, message, "Remove it.")
            elif place <= last:
                self.faults.add(path, FaultCode.BREAKS_ORDER, f"{place} comes after {last}.")
            else:
                last = place
                segments[place:] = [segments[place] + 1] * (count - place)
        return segments

    def _seats(self, cells: Mapping[str, Column], segments: Sequence[int], beginning: str | None) -> tuple[Seat, ...]:
        """The seats of a row, without those that cannot be read."""
        places = range(1, len(segments) + 1)
        numbers = self._ints(cells["number"], 0, NUMBER_MAX, places)
        labels = self._texts(cells["label"], SEAT_LABEL_CHARS_MAX, [str(number) for number in numbers])
        codes = self._texts(
            cells["code"],
            SEAT_CODE_CHARS_MAX,
            [Cell.BAD] * len(labels) if beginning is None else [f"{beginning}{label}" for label in labels],
        )
        read = list(
            zip(
                codes,
                numbers,
                labels,
                self._ints(cells["position"], 1, POSITION_MAX, places),
                segments,
                self._ints(cells["x"], -COORDINATE_MAX, COORDINATE_MAX, None),
                self._ints(cells["y"], -COORDINATE_MAX, COORDINATE_MAX, None),
                self._categories(cells["category"]),
                self._texts(cells["companion_of"], SEAT_CODE_CHARS_MAX, [None] * len(labels)),
                strict=True,
            )
        )
        good = [Cell.BAD not in values for values in read]
        self.paths.enter_seats([place for place, is_good in enumerate(good) if is_good], cells)
        lost = {values[0] for values, is_good in zip(read, good, strict=True) if not is_good}
        self.doubts.has_lost_codes |= Cell.BAD in lost
        self.doubts.lost_codes |= lost
        return tuple(_seat(*values) for values, is_good in zip(read, good, strict=True) if is_good)

    def _ints(self, column: Column, low: int, high: int, default: Sequence[int] | None) -> Sequence[object]:
        """Numbers, or bad cells whose fault was noted; without a default they must be there."""
        values = column.values
        if all(type(value) is int for value in values):
            numbers = cast("list[int]", values)
            if low <= min(numbers) and max(numbers) <= high:
                return values
        checked: list[object] = []
        for place, value in enumerate(values):
            if value is Cell.ABSENT and default is not None:
                checked.append(default[place])
            elif value is Cell.ABSENT:
                self.faults.add(column.path_of(place), FaultCode.MISSING, "Every seat needs a place on the plan.")
                checked.append(Cell.BAD)
            elif value is Cell.BAD or check_range(value, column.path_of(place), low, high, self.faults):
                checked.append(value)
            else:
                checked.append(Cell.BAD)
        return checked

    def _texts(self, column: Column, chars_max: int, default: Sequence[object]) -> Sequence[object]:
        return [
            default[place]
            if value is Cell.ABSENT
            else value
            if value is Cell.BAD or check_text(value, column.path_of(place), chars_max, self.faults)
            else Cell.BAD
            for place, value in enumerate(column.values)
        ]

    def _categories(self, column: Column) -> Sequence[object]:
        return [
            Category.STANDARD
            if value is Cell.ABSENT
            else value
            if value is Cell.BAD
            else as_word(value, column.path_of(place), Category, self.faults) or Cell.BAD
            for place, value in enumerate(column.values)
        ]

    def _groups(self, zone: Node) -> tuple[Group, ...]:
        return tuple(self._group(node) for node in zone.nodes("groups", GROUPS_PER_ZONE_MAX, GROUP_KEYS) if node)

    def _group(self, node: Node) -> Group:
        self.paths.enter_group(node.path)
        code = node.text("code", GROUP_CODE_CHARS_MAX)
        kind = node.word("kind", GroupKind)
        label = node.optional_text("label", NAME_CHARS_MAX) or code
        node.require("seats")
        items = node.items("seats", SEATS_PER_GROUP_MAX)
        codes = [str(item) for path, item in items if check_text(item, path, SEAT_CODE_CHARS_MAX, self.faults)]
        if node.value.get("seats") == []:
            self.faults.add(node.at("seats"), FaultCode.EMPTY, "The group has no seats.")
        return Group(
            code=code or "",
            kind=kind or GroupKind.RESERVED_BLOCK,
            label=label or "",
            seat_codes=tuple(codes),
            metadata=self._metadata(node),
        )

    def _shape(self, node: Node) -> Shape | None:
        kind = node.word("kind", ShapeKind)
        label = node.text("label", NAME_CHARS_MAX)
        node.require("outline")
        outline = node.points("outline", OUTLINE_POINTS_MIN, OUTLINE_POINTS_MAX)
        return Shape(kind=kind, label=label, outline=outline) if kind and label else None


def _seat(*values: object) -> Seat:
    """A seat from the cells of a place: all of them were checked."""
    code, number, label, position, segment, x, y, category, companion_of = values
    return Seat(
        code=cast("str", code),
        number=cast("int", number),
        label=cast("str", label),
        position=cast("int", position),
        segment=cast("int", segment),
        x=cast("int", x),
        y=cast("int", y),
        category=cast("Category", category),
        companion_of=cast("str | None", companion_of),
    )


class _DocumentPaths:
    """Where the parts of the layout stood in the document. What was left out is skipped, so that places still fit."""

    def __init__(self) -> None:
        self.zones: list[str] = []
        self.rows: list[list[str]] = []
        self.groups: list[list[str]] = []
        self.seats: dict[tuple[int, int], tuple[Sequence[int], Mapping[str, Column]]] = {}

    def enter_zone(self, path: str) -> int:
        self.zones.append(path)
        self.rows.append([])
        self.groups.append([])
        return len(self.zones) - 1

    def enter_row(self, path: str) -> None:
        self.rows[-1].append(path)

    def enter_seats(self, places: Sequence[int], cells: Mapping[str, Column]) -> None:
        self.seats[len(self.zones) - 1, len(self.rows[-1]) - 1] = places, cells

    def enter_group(self, path: str) -> None:
        self.groups[-1].append(path)

    def layout(self, key: str) -> str:
        return key

    def zone(self, zone: int, key: str) -> str:
        return f"{self.zones[zone]}.{key}"

    def row(self, zone: int, row: int, key: str) -> str:
        return f"{self.rows[zone][row]}.{key}"

    def seat(self, place: rules.Place, key: str) -> str:
        zone, row, seat = place
        places, cells = self.seats[zone, row]
        return cells[key].path_of(places[seat])

    def group(self, zone: int, group: int, key: str) -> str:
        return f"{self.groups[zone][group]}.{key}"
