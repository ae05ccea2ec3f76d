"""The seats of a layout as a sheet, one line each, both ways: for whoever thinks in spreadsheets.

A sheet tells nothing about zones but their codes, so that it is read on top of a layout: zones, shapes and groups that
are there already keep all else about them. A zone that is new is reserved seating, open to all.
"""

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import msgspec

from voelgoed.seating import adjacency, rules
from voelgoed.seating.faults import FaultCode, Faults, LayoutInvalid, refuse_size
from voelgoed.seating.model import (
    COORDINATE_MAX,
    GROUP_CODE_CHARS_MAX,
    NUMBER_MAX,
    POSITION_MAX,
    ROW_LABEL_CHARS_MAX,
    SEAT_CODE_CHARS_MAX,
    SEAT_LABEL_CHARS_MAX,
    SEATS_MAX,
    ZONE_CODE_CHARS_MAX,
    Category,
    Group,
    GroupKind,
    Layout,
    Row,
    Seat,
    Zone,
    ZoneType,
)
from voelgoed.seating.nodes import Word, as_word, check_range, check_text, shown

COLUMNS = (
    "seat_code",
    "zone",
    "row",
    "number",
    "label",
    "category",
    "position",
    "segment",
    "x",
    "y",
    "companion_of",
    "group",
    "group_kind",
)
REQUIRED = ("zone", "row", "number", "x", "y")
DIGITS_MAX = 12
HEADER_CELLS_MAX = 100
FORMULA_SIGNS = "=+-@'"  # a spreadsheet would compute a text that begins like this


def write_seats(layout: Layout) -> bytes:
    """The sheet of a layout, in the order of the ordinals."""
    groups = {code: group for zone in layout.zones for group in zone.groups for code in group.seat_codes}
    sheet = io.StringIO()
    writer = csv.writer(sheet, lineterminator="\r\n")
    writer.writerow(COLUMNS)
    for zone, row, seat in layout.seats():
        group = groups.get(seat.code)
        writer.writerow(
            (
                _guarded(seat.code),
                _guarded(zone.code),
                _guarded(row.label),
                seat.number,
                _guarded(seat.label),
                seat.category,
                seat.position,
                seat.segment,
                seat.x,
                seat.y,
                _guarded(seat.companion_of or ""),
                _guarded(group.code) if group else "",
                group.kind if group else "",
            )
        )
    return sheet.getvalue().encode()


def read_seats(data: bytes, base: Layout, *, is_odd_even: bool = False) -> Layout:
    """The base with the seats of a sheet instead of its own. Raises `LayoutInvalid` with everything that is wrong.

    Without positions the seats of a row stand in the order of their numbers; `is_odd_even` tells that odd and even ones
    are counted from the middle to either side.
    """
    refuse_size(data)
    faults = Faults()
    sheet = _Sheet(faults, is_odd_even=is_odd_even)
    sheet.read(data)
    if faults.count and not sheet.lines:
        raise LayoutInvalid(faults)
    layout = sheet.build(base)
    rules.check(layout, faults, sheet, sheet.doubts)
    if faults.count:
        raise LayoutInvalid(faults)
    return layout


@dataclass(slots=True, kw_only=True)
class _Line:
    """What one line tells; of the seat all but its position and segment, which depend on its row."""

    number: int
    zone: str
    row: str
    seat: Seat
    position: int | None
    segment: int
    group: str | None
    group_kind: GroupKind | None


@dataclass(slots=True)
class _Zone:
    """The lines of a zone, row by row."""

    rows: dict[str, list[_Line]] = field(default_factory=dict)


class _Sheet:
    """One pass over a sheet, and where everything stood in it."""

    def __init__(self, faults: Faults, *, is_odd_even: bool) -> None:
        self.faults = faults
        self.is_odd_even = is_odd_even
        self.doubts = rules.Doubts()
        self.lines: list[_Line] = []
        self.zones: list[Zone] = []
        self.line_of: dict[rules.Place, int] = {}

    def read(self, data: bytes) -> None:
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError:
            self.faults.add("line 1", FaultCode.NOT_CSV, "The file is not UTF-8.")
            return
        heading = text.partition("\n")[0]
        delimiter = max(",;\t", key=heading.count)
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
        try:
            header = [name.strip().lower() for name in next(reader, [])]
            if self._check_header(header):
                self._read_lines(header, reader)
        except csv.Error as error:
            self.faults.add(f"line {reader.line_num}", FaultCode.NOT_CSV, f"The line cannot be read: {error}.")

    def _check_header(self, header: Sequence[str]) -> bool:
        before = self.faults.count
        if len(header) > HEADER_CELLS_MAX:
            self.faults.add("line 1", FaultCode.TOO_MANY, f"{len(header)} columns; {HEADER_CELLS_MAX} are allowed.")
            return False
        for name in header:
            if name not in COLUMNS or header.count(name) > 1:
                message = f"{shown(name)} is not known, or is there twice."
                hint = f"Known are: {', '.join(COLUMNS)}."
                self.faults.add("line 1", FaultCode.UNKNOWN_KEY, message, hint)
        for name in REQUIRED:
            if name not in header:
                self.faults.add(f"line 1, column {name}", FaultCode.MISSING, f"There is no column {name}.")
        return self.faults.count == before

    def _read_lines(self, header: Sequence[str], reader: Iterator[list[str]]) -> None:
        for cells in reader:
            number = reader.line_num  # type: ignore[attr-defined]
            if not any(cells):
                continue
            if len(cells) > len(header):
                message = f"{len(cells)} cells for {len(header)} columns."
                self.faults.add(f"line {number}", FaultCode.COLUMN_LENGTH, message, "Look for a comma too many.")
                self.doubts.has_lost_codes = True
            elif len(self.lines) == SEATS_MAX:
                self.faults.add(f"line {number}", FaultCode.TOO_MANY, f"More than {SEATS_MAX} seats up to here.")
                return
            else:
                self._read_line(number, dict(zip(header, cells, strict=False)))
        if not self.lines and not self.faults.count:
            self.faults.add("line 2", FaultCode.EMPTY, "There are no seats.", "Write a line per seat.")

    def _read_line(self, number: int, cells: Mapping[str, str]) -> None:
        before = self.faults.count
        line = _Cells(number, cells, self.faults)
        zone = line.text("zone", ZONE_CODE_CHARS_MAX, is_required=True)
        row = line.text("row", ROW_LABEL_CHARS_MAX, is_required=True)
        seat_number = line.whole("number", 0, NUMBER_MAX, is_required=True)
        label = line.text("label", SEAT_LABEL_CHARS_MAX) or str(seat_number)
        code = line.text("seat_code", SEAT_CODE_CHARS_MAX) or f"{zone}-{row}-{label}"
        category = line.word("category", Category) or Category.STANDARD
        position = line.whole("position", 1, POSITION_MAX)
        segment = line.whole("segment", 0, POSITION_MAX) or 0
        x = line.whole("x", -COORDINATE_MAX, COORDINATE_MAX, is_required=True)
        y = line.whole("y", -COORDINATE_MAX, COORDINATE_MAX, is_required=True)
        companion_of = line.text("companion_of", SEAT_CODE_CHARS_MAX)
        group = line.text("group", GROUP_CODE_CHARS_MAX)
        kind = line.word("group_kind", GroupKind)
        if self.faults.count != before:
            self.doubts.lost_codes.add(code)
            return
        assert zone is not None
        assert row is not None
        assert seat_number is not None
        assert x is not None
        assert y is not None
        seat = Seat(
            code=code,
            number=seat_number,
            label=label,
            position=0,
            segment=0,
            x=x,
            y=y,
            category=category,
            companion_of=companion_of,
        )
        self.lines.append(
            _Line(
                number=number,
                zone=zone,
                row=row,
                seat=seat,
                position=position,
                segment=segment,
                group=group,
                group_kind=kind,
            )
        )

    def build(self, base: Layout) -> Layout:
        """The base with these seats. Zones and rows that it knows stay in its order; new ones follow."""
        read: dict[str, _Zone] = {}
        for line in self.lines:
            read.setdefault(line.zone, _Zone()).rows.setdefault(line.row, []).append(line)
        known = {zone.code: zone for zone in base.zones}
        for zone in base.zones:
            if zone.code in read or not zone.is_reserved:
                self._add_zone(zone, read.get(zone.code, _Zone()))
        for code, lines in read.items():
            if code not in known:
                fresh = Zone(code=code, name=code, zone_type=ZoneType.RESERVED_SEATING, capacity=0)
                self._add_zone(fresh, lines)
        return replace(base, zones=tuple(self.zones))

    def _add_zone(self, zone: Zone, read: _Zone) -> None:
        order = {row.label: place for place, row in enumerate(zone.rows)}
        labels = sorted(read.rows, key=lambda label: order.get(label, len(order)))
        rows = [self._row(place, label, read.rows[label]) for place, label in enumerate(labels)]
        lines = [line for label in labels for line in read.rows[label]]
        count = sum(len(row.seats) for row in rows)
        capacity = count if zone.is_reserved else zone.capacity
        groups = tuple(_groups(zone.groups, lines))
        self.zones.append(replace(zone, rows=tuple(rows), capacity=capacity, groups=groups))

    def _row(self, row: int, label: str, lines: list[_Line]) -> Row:
        """The seats of a row by position; segments are counted anew, so that only where they change matters."""
        self._place(lines)
        lines.sort(key=lambda line: line.position or 0)
        seats: list[Seat] = []
        segment = 0
        for place, line in enumerate(lines):
            segment += place > 0 and line.segment != lines[place - 1].segment
            self.line_of[len(self.zones), row, place] = line.number
            seats.append(msgspec.structs.replace(line.seat, position=line.position or 0, segment=segment))
        return rules.paired(Row(label=label, seats=tuple(seats)))

    def _place(self, lines: Sequence[_Line]) -> None:
        """Positions from the numbers, where no line of the row tells one."""
        if all(line.position is None for line in lines):
            numbers = [line.seat.number for line in lines]
            positions = adjacency.positions_by_number(numbers, is_odd_even=self.is_odd_even)
            for line, position in zip(lines, positions, strict=True):
                line.position = position
        for line in lines:
            if line.position is None:
                message = "Other seats of the row have a position, this one has none."
                self.faults.add(f"line {line.number}, column position", FaultCode.MISSING, message)

    def layout(self, key: str) -> str:
        return key

    def zone(self, zone: int, key: str) -> str:
        return f"zone {self.zones[zone].code}, {key}"

    def row(self, zone: int, row: int, key: str) -> str:
        return f"zone {self.zones[zone].code}, row {self.zones[zone].rows[row].label}, {key}"

    def seat(self, place: rules.Place, key: str) -> str:
        return f"line {self.line_of[place]}, column {'seat_code' if key == 'code' else key}"

    def group(self, zone: int, group: int, key: str) -> str:
        return f"group {self.zones[zone].groups[group].code}, {key}"


class _Cells:
    """The cells of a line; empty ones are not there."""

    def __init__(self, number: int, cells: Mapping[str, str], faults: Faults) -> None:
        self.number = number
        self.cells = cells
        self.faults = faults

    def at(self, name: str) -> str:
        return f"line {self.number}, column {name}"

    def cell(self, name: str, *, is_required: bool) -> str | None:
        value = self.cells.get(name, "").strip()
        if not value and is_required:
            self.faults.add(self.at(name), FaultCode.MISSING, f"{name} is missing.")
        return value or None

    def text(self, name: str, chars_max: int, *, is_required: bool = False) -> str | None:
        value = self.cell(name, is_required=is_required)
        if value is None:
            return None
        plain = value.removeprefix("'")
        # What is good is seen without a path being made: a stadium has more than a million cells.
        is_good = plain == plain.strip() and 0 < len(plain) <= chars_max and plain.isprintable()
        return plain if is_good or check_text(plain, self.at(name), chars_max, self.faults) else None

    def whole(self, name: str, low: int, high: int, *, is_required: bool = False) -> int | None:
        value = self.cell(name, is_required=is_required)
        if value is None:
            return None
        digits = value.removeprefix("-")
        is_number = digits.isascii() and digits.isdigit() and len(digits) <= DIGITS_MAX
        if is_number and low <= int(value) <= high:
            return int(value)
        check_range(int(value) if is_number else value, self.at(name), low, high, self.faults)
        return None

    def word(self, name: str, words: type[Word]) -> Word | None:
        value = self.cell(name, is_required=False)
        return None if value is None else as_word(value, self.at(name), words, self.faults)


def _groups(known: Iterable[Group], lines: Sequence[_Line]) -> Iterator[Group]:
    """The groups of a zone: those it had, if any seat is left in them, then new ones."""
    members: dict[str, list[_Line]] = {}
    for line in lines:
        if line.group is not None:
            members.setdefault(line.group, []).append(line)
    before = {group.code: group for group in known}
    for code in [*(code for code in before if code in members), *(code for code in members if code not in before)]:
        codes = tuple(line.seat.code for line in members[code])
        kinds = [line.group_kind for line in members[code] if line.group_kind]
        group = before.get(code)
        if group is None:
            yield Group(code=code, kind=kinds[0] if kinds else GroupKind.RESERVED_BLOCK, label=code, seat_codes=codes)
        else:
            is_same = sorted(group.seat_codes) == sorted(codes)
            kind = kinds[0] if kinds else group.kind
            yield replace(group, kind=kind, seat_codes=group.seat_codes if is_same else codes)


def _guarded(text: str) -> str:
    """A text that no spreadsheet takes for a formula; reading takes the sign off again."""
    return f"'{text}" if text.startswith(tuple(FORMULA_SIGNS)) else text
