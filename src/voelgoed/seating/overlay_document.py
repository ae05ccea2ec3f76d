"""An overlay as JSON, seats and zones by their ids: every fault is told at once, and what is written reads the same."""

from collections.abc import Iterator, Mapping
from typing import cast
from uuid import UUID

from voelgoed.seating import seat_ids
from voelgoed.seating.faults import FaultCode, Faults
from voelgoed.seating.model import (
    CAPACITY_MAX,
    SEATS_MAX,
    TIER_CHARS_MAX,
    ZONES_MAX,
    AccessMode,
    LayoutId,
    ZoneType,
)
from voelgoed.seating.nodes import Node, check_text, check_type, shown
from voelgoed.seating.overlay import Overlay, ZoneOverride
from voelgoed.seating.policy import FIELDS
from voelgoed.seating.rules import ROLES

KEYS = frozenset({"blocked_seat_ids", "disabled_zones", "zone_overrides", "pricing_zones", "seating_overrides"})
ZONE_KEYS = frozenset({"zone_type", "access_mode", "membership_tier", "allowed_roles", "capacity"})
PRICING_KEYS = frozenset({"pricing_rule_id"})
WORD_CHARS_MAX = 40


def read_overlay(
    document: object, layout_id: LayoutId, *, seat_serials: Mapping[str, int], zone_serials: Mapping[str, int]
) -> Overlay | Faults:
    """The overlay that a JSON object describes, or everything that is wrong with it.

    The serials are those of the layout through all its versions; whether this one has the seats, `wrong_overlay` says.
    """
    faults = Faults()
    if not check_type(document, dict, "$", faults):
        return faults
    root = Node(cast("Mapping[str, object]", document), "", faults, KEYS)
    overlay = _Reading(root, layout_id, seat_serials, zone_serials).overlay()
    return faults if faults.count else overlay


def write_overlay(
    overlay: Overlay, layout_id: LayoutId, *, seat_serials: Mapping[str, int], zone_serials: Mapping[str, int]
) -> dict[str, object]:
    """The JSON object of an overlay, with every key."""

    def zone_id(code: str) -> str:
        return str(seat_ids.zone_id(layout_id, zone_serials[code]))

    seats = seat_ids.seat_ids(layout_id, (seat_serials[code] for code in overlay.blocked_seats))
    return {
        "blocked_seat_ids": [str(one) for one in seats],
        "disabled_zones": [zone_id(code) for code in overlay.disabled_zones],
        "zone_overrides": {zone_id(code): _written(said) for code, said in overlay.zone_overrides.items()},
        "pricing_zones": {zone_id(code): {"pricing_rule_id": str(one)} for code, one in overlay.pricing_zones.items()},
        "seating_overrides": dict(overlay.seating_overrides),
    }


def _written(said: ZoneOverride) -> dict[str, object]:
    """What is said of a zone, and nothing of what is not."""
    values: dict[str, object | None] = {
        "zone_type": said.zone_type and said.zone_type.value,
        "access_mode": said.access_mode and said.access_mode.value,
        "membership_tier": said.membership_tier,
        "allowed_roles": None if said.allowed_roles is None else list(said.allowed_roles),
        "capacity": said.capacity,
    }
    return {key: value for key, value in values.items() if value is not None}


class _Reading:
    """One pass over an overlay. What is broken is noted and left out; all else is looked at."""

    def __init__(
        self, root: Node, layout_id: LayoutId, seat_serials: Mapping[str, int], zone_serials: Mapping[str, int]
    ) -> None:
        self.root = root
        self.faults = root.faults
        self.layout_id = layout_id
        self.seats = {serial: code for code, serial in seat_serials.items()}
        self.zones = {serial: code for code, serial in zone_serials.items()}

    def overlay(self) -> Overlay:
        seats = (self._seat(item, path) for path, item in self.root.items("blocked_seat_ids", SEATS_MAX))
        zones = (self._zone(item, path) for path, item in self.root.items("disabled_zones", ZONES_MAX))
        return Overlay(
            blocked_seats=tuple(code for code in seats if code is not None),
            disabled_zones=tuple(code for code in zones if code is not None),
            zone_overrides={code: self._override(node) for code, node in self._by_zone("zone_overrides", ZONE_KEYS)},
            pricing_zones={
                code: rule
                for code, node in self._by_zone("pricing_zones", PRICING_KEYS)
                if (rule := self._rule(node)) is not None
            },
            seating_overrides=self._policy(),
        )

    def _seat(self, value: object, path: str) -> str | None:
        found = self._uuid(value, path)
        serial = None if found is None else seat_ids.seat_serial(self.layout_id, found)
        return self._known(self.seats.get(serial or 0), found, path, "seat")

    def _zone(self, value: object, path: str) -> str | None:
        found = self._uuid(value, path)
        serial = None if found is None else seat_ids.zone_serial(self.layout_id, found)
        return self._known(self.zones.get(serial or 0), found, path, "zone")

    def _known(self, code: str | None, found: UUID | None, path: str, what: str) -> str | None:
        """The code of an id that could be read, if this layout gave it."""
        if code is None and found is not None:
            hint = f"Name a {what} of the event's layout by its id."
            self.faults.add(path, FaultCode.UNKNOWN_VALUE, f"{found} is no {what} of this layout.", hint)
        return code

    def _uuid(self, value: object, path: str) -> UUID | None:
        """An id in the one way ids are written, so that none can be named twice in two ways."""
        if not isinstance(value, str):
            check_type(value, str, path, self.faults)
            return None
        try:
            found = UUID(value)
        except ValueError:
            found = None
        if found is None or str(found) != value:
            hint = "Write the id as it was given: lower case, with hyphens."
            self.faults.add(path, FaultCode.UNKNOWN_VALUE, f"{shown(value)} is no id.", hint)
            return None
        return found

    def _object(self, key: str, most: int) -> Mapping[str, object]:
        """The object under a key; an empty one where there is none."""
        value = self.root.value.get(key)
        if value is None or not check_type(value, dict, key, self.faults):
            return {}
        found = cast("Mapping[str, object]", value)
        if len(found) > most:
            self.faults.add(key, FaultCode.TOO_MANY, f"{len(found)} of them; {most} are allowed.")
            return {}
        return found

    def _policy(self) -> Mapping[str, object]:
        """What is said of the policy, if it can be sent back as it came; whether it holds, `wrong_overlay` says."""
        found = self._object("seating_overrides", len(FIELDS))
        return {name: value for name, value in found.items() if self._is_plain(name, value)}

    def _is_plain(self, name: str, value: object) -> bool:
        path = f"seating_overrides.{shown(name)[1:-1]}"
        if not check_text(name, path, WORD_CHARS_MAX, self.faults):
            return False
        words = value if isinstance(value, list) else [value] if isinstance(value, str) else []
        if len(words) > len(FIELDS):
            self.faults.add(path, FaultCode.TOO_MANY, f"{len(words)} of them; {len(FIELDS)} are allowed.")
            return False
        if words or value is None or type(value) in (bool, int, list):
            return all(check_text(word, path, WORD_CHARS_MAX, self.faults) for word in words)
        self.faults.add(path, FaultCode.WRONG_TYPE, f"{shown(value)} is nothing that a field of the policy takes.")
        return False

    def _by_zone(self, key: str, keys: frozenset[str]) -> Iterator[tuple[str, Node]]:
        """The objects under a key, by the codes of their zones."""
        for zone_id, value in self._object(key, ZONES_MAX).items():
            path = f"{key}.{shown(zone_id)[1:-1]}"
            code = self._zone(zone_id, path)
            if check_type(value, dict, path, self.faults):
                node = Node(cast("Mapping[str, object]", value), path, self.faults, keys)
                if code is not None:
                    yield code, node

    def _rule(self, node: Node) -> UUID | None:
        if not node.require("pricing_rule_id"):
            return None
        return self._uuid(node.value["pricing_rule_id"], node.at("pricing_rule_id"))

    def _override(self, node: Node) -> ZoneOverride:
        roles = None
        if node.has("allowed_roles"):
            items = node.items("allowed_roles", len(ROLES))
            good = [check_text(item, path, WORD_CHARS_MAX, self.faults) for path, item in items]
            roles = tuple(str(item) for (_, item), is_good in zip(items, good, strict=True) if is_good)
        return ZoneOverride(
            zone_type=node.word("zone_type", ZoneType) if node.has("zone_type") else None,
            access_mode=node.word("access_mode", AccessMode) if node.has("access_mode") else None,
            membership_tier=node.optional_text("membership_tier", TIER_CHARS_MAX),
            allowed_roles=roles,
            capacity=node.whole("capacity", 1, CAPACITY_MAX),
        )
