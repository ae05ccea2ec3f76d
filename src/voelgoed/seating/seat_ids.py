"""The ids of seats and zones: the layout's own id and a number, so a list of seats is one prefix and small numbers.

A UUIDv8 has 122 bits to fill. The upper 90 are the layout's (its time and 42 of its random bits), the lower 32 the
serial: the last eight digits of the id. Seats count from 1, zones from 2^31, so that no zone has the id of a seat.
"""

from collections.abc import Iterable, Mapping
from uuid import UUID

from voelgoed.seating.model import LayoutId, SeatId, ZoneId

SERIAL_MAX = 2**31 - 1
_ZONE_BIT = 1 << 31
_SERIAL_BITS = 32
_VERSION_SHIFT = 76
_VARIANT_SHIFT = 62


def id_prefix(layout_id: LayoutId) -> str:
    """What all ids of a layout begin with: an id is this and the serial as eight hexadecimal digits."""
    return str(UUID(int=_upper_bits(layout_id)))[:-8]


def seat_id(layout_id: LayoutId, serial: int) -> SeatId:
    assert 1 <= serial <= SERIAL_MAX
    return SeatId(UUID(int=_upper_bits(layout_id) | serial))


def seat_ids(layout_id: LayoutId, serials: Iterable[int]) -> list[SeatId]:
    """The same for a whole hall at once."""
    upper = _upper_bits(layout_id)
    return [SeatId(UUID(int=upper | serial)) for serial in serials]


def zone_id(layout_id: LayoutId, serial: int) -> ZoneId:
    assert 1 <= serial <= SERIAL_MAX
    return ZoneId(UUID(int=_upper_bits(layout_id) | _ZONE_BIT | serial))


def seat_serial(layout_id: LayoutId, found: UUID) -> int | None:
    """The serial in a seat's id; None when it is no seat of this layout."""
    serial = _serial(layout_id, found)
    return serial if serial is not None and 1 <= serial <= SERIAL_MAX else None


def zone_serial(layout_id: LayoutId, found: UUID) -> int | None:
    """The serial in a zone's id; None when it is no zone of this layout."""
    serial = _serial(layout_id, found)
    return serial - _ZONE_BIT if serial is not None and serial > _ZONE_BIT else None


def assign_serials(codes: Iterable[str], known: Mapping[str, int], last: int | None = None) -> dict[str, int]:
    """The serial of each code: the one it has, or the next that nobody ever had.

    `last` is the last number that was ever given; without it `known` must hold every code the layout ever had, also
    those of earlier versions that are gone. New numbers follow the order of the codes.
    """
    if last is None:
        last = max(known.values(), default=0)
    serials: dict[str, int] = {}
    for code in codes:
        assert code not in serials
        serial = known.get(code)
        if serial is None:
            last += 1
            serial = last
        serials[code] = serial
    assert last <= SERIAL_MAX
    return serials


def _upper_bits(layout_id: LayoutId) -> int:
    upper = layout_id.int >> _SERIAL_BITS << _SERIAL_BITS
    upper = upper & ~(0xF << _VERSION_SHIFT) | 0x8 << _VERSION_SHIFT
    return upper & ~(0x3 << _VARIANT_SHIFT) | 0x2 << _VARIANT_SHIFT


def _serial(layout_id: LayoutId, found: UUID) -> int | None:
    serial = found.int ^ _upper_bits(layout_id)
    return serial if serial >> _SERIAL_BITS == 0 else None
