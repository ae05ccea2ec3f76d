"""What an organization lets its seating be: every field and its default, and what holds for one event. Pure.

An organization has one policy, or none and then the defaults. The platform sets it and locks fields; the owner changes
what is not locked; an event overrides what is neither locked nor reserved to the organization.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final, Protocol

from voelgoed.accounts.model import Role
from voelgoed.seating.model import (
    COMPANIONS_PER_SPACE_MAX,
    RESERVED_TYPES,
    VIP_TYPES,
    AccessMode,
    Category,
    Zone,
    ZoneType,
)

SEATS_PER_BOOKING_MAX: Final = 40  # more than one buyer may be granted at a time could never be booked
HOLD_TTL_MINUTES_MAX: Final = 60
HOLDS_MAX: Final = 10_000
ROWS_APART_MAX: Final = 20
LOCKS: Final = "locked_fields"


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The values of one organization's policy. Lists are in one order, so that equal policies are equal."""

    allow_reserved_seating: bool = True
    allow_ga_seating: bool = True
    allow_hybrid_ga_reserved: bool = True
    allow_vip_zones: bool = False
    allowed_access_modes: tuple[AccessMode, ...] = (
        AccessMode.PUBLIC,
        AccessMode.MEMBERSHIP_TIER,
        AccessMode.ROLE_BASED,
    )
    enforce_accessibility_rules: bool = True
    companion_release_occupancy_threshold: int = 85  # per cent of a zone that are sold
    max_wheelchair_seats_per_booking: int = 1
    companion_requires_wheelchair: bool = False
    max_companions_per_wheelchair: int = 1
    accessibility_audit_enabled: bool = True
    max_seats_per_booking: int = 10
    orphan_avoidance_strict: bool = True
    group_adjacency_strict: bool = False
    max_group_split: int = 2  # rows between the parts of a group; 0 is the same row
    prefer_clustering_over_selection: bool = False
    default_hold_ttl_minutes: int = 10
    max_holds_per_user: int | None = None  # none is no limit
    max_holds_per_ip: int | None = None
    locked_fields: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        values = values_of(self)
        assert not wrong_policy(values)
        assert all(value == _kept(name, value) for name, value in values.items())


class FieldKind(StrEnum):
    """What a field takes."""

    FLAG = "flag"
    WHOLE = "whole"
    WORDS = "words"


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One field of the policy: what it takes, what it is until somebody says otherwise, who may say so."""

    name: str
    kind: FieldKind
    default: object
    is_overridable: bool
    least: int = 0
    most: int = 0
    is_nullable: bool = False
    words: tuple[str, ...] = ()
    words_least: int = 0


_DEFAULTS: Final = {one.name: one.default for one in fields(Policy)}


def _flag(name: str, *, is_overridable: bool = True) -> Field:
    return Field(name=name, kind=FieldKind.FLAG, default=_DEFAULTS[name], is_overridable=is_overridable)


def _whole(name: str, least: int, most: int, *, is_nullable: bool = False, is_overridable: bool = True) -> Field:
    return Field(
        name=name,
        kind=FieldKind.WHOLE,
        default=_DEFAULTS[name],
        is_overridable=is_overridable,
        least=least,
        most=most,
        is_nullable=is_nullable,
    )


def _words(name: str, words: Iterable[str], *, least: int) -> Field:
    return Field(
        name=name,
        kind=FieldKind.WORDS,
        default=_DEFAULTS[name],
        is_overridable=False,
        words=tuple(words),
        words_least=least,
    )


_FIELDS: Final = (
    # What may be offered at all is the organization's to say: an event that could, would permit itself everything.
    _flag("allow_reserved_seating", is_overridable=False),
    _flag("allow_ga_seating", is_overridable=False),
    _flag("allow_hybrid_ga_reserved", is_overridable=False),
    _flag("allow_vip_zones", is_overridable=False),
    _words("allowed_access_modes", AccessMode, least=1),
    _flag("enforce_accessibility_rules"),
    _whole("companion_release_occupancy_threshold", 0, 100),
    _whole("max_wheelchair_seats_per_booking", 1, SEATS_PER_BOOKING_MAX),
    _flag("companion_requires_wheelchair"),
    _whole("max_companions_per_wheelchair", 1, COMPANIONS_PER_SPACE_MAX),
    _flag("accessibility_audit_enabled", is_overridable=False),  # nobody decides whether they are looked at
    _whole("max_seats_per_booking", 1, SEATS_PER_BOOKING_MAX),
    _flag("orphan_avoidance_strict"),
    _flag("group_adjacency_strict"),
    _whole("max_group_split", 0, ROWS_APART_MAX),
    _flag("prefer_clustering_over_selection"),
    _whole("default_hold_ttl_minutes", 1, HOLD_TTL_MINUTES_MAX),
    _whole("max_holds_per_user", 1, HOLDS_MAX, is_nullable=True),
    _whole("max_holds_per_ip", 1, HOLDS_MAX, is_nullable=True, is_overridable=False),  # against fraud, so everywhere
    _words(LOCKS, sorted(_DEFAULTS.keys() - {LOCKS}), least=0),
)
FIELDS: Final[Mapping[str, Field]] = MappingProxyType({one.name: one for one in _FIELDS})
assert FIELDS.keys() == _DEFAULTS.keys()


class Origin(StrEnum):
    """Who said what holds for an event."""

    DEFAULT = "default"
    ORGANIZATION = "organization"
    EVENT = "event"


@dataclass(frozen=True, slots=True, kw_only=True)
class Effective:
    """What holds for one event, who said so of each field, and which of its overrides do not hold."""

    policy: Policy
    origins: Mapping[str, Origin]
    refused: tuple[tuple[str, str], ...]


class Offered(Protocol):
    """What a policy asks of a zone, whether it stands in a layout or in an event."""

    @property
    def code(self) -> str: ...
    @property
    def zone_type(self) -> ZoneType: ...
    @property
    def access_mode(self) -> AccessMode: ...


def values_of(policy: Policy) -> dict[str, object]:
    """A policy field by field, in the order of `FIELDS`."""
    return {name: getattr(policy, name) for name in FIELDS}


def wrong_policy(values: Mapping[str, object]) -> dict[str, str]:
    """What is wrong, by field; empty when nothing is. Fields that are not there are not asked for."""
    found = {name: _wrong(name, value) for name, value in values.items()}
    return {name: why for name, why in found.items() if why}


def changed(policy: Policy, values: Mapping[str, object]) -> Policy:
    """The policy with other values, which are known to be right."""
    assert not wrong_policy(values)
    return replace(policy, **{name: _kept(name, value) for name, value in values.items()})


def changeable_fields(role: Role, policy: Policy | None) -> frozenset[str]:
    """What this role may change: the platform everything, the owner what is not locked, nobody else anything."""
    if role is Role.SUPER_ADMIN:
        return frozenset(FIELDS)
    if role is Role.OWNER:
        return frozenset(FIELDS) - frozenset((policy or Policy()).locked_fields) - {LOCKS}
    return frozenset()


def refused_overrides(policy: Policy | None, overrides: Mapping[str, object]) -> list[tuple[str, str]]:
    """Which fields an event may not override, or not like this, and why."""
    locked = frozenset((policy or Policy()).locked_fields)
    found = ((name, _refused(name, value, locked)) for name, value in overrides.items())
    return [(name, why) for name, why in found if why]


def effective(policy: Policy | None, overrides: Mapping[str, object]) -> Effective:
    """What holds for an event.

    An override is refused when it is saved. One that was right then may not be now, because its field was locked since:
    it does not hold, and is told.
    """
    refused = tuple(refused_overrides(policy, overrides))
    names = overrides.keys() - {name for name, _ in refused}
    held = policy or Policy()
    origins = {
        name: Origin.EVENT if name in names else Origin.ORGANIZATION if _is_own(held, name) else Origin.DEFAULT
        for name in FIELDS
    }
    return Effective(
        policy=changed(held, {name: overrides[name] for name in names}),
        origins=MappingProxyType(origins),
        refused=refused,
    )


def is_hybrid(zones: Iterable[Offered]) -> bool:
    """Whether some zones are sold seat by seat and others by places."""
    return len({zone.zone_type in RESERVED_TYPES for zone in zones}) > 1


def refused_zones(policy: Policy, zones: Iterable[Offered]) -> list[tuple[str, str]]:
    """Which zones the policy does not allow, by code, and why; a zone may be refused for several reasons."""
    asked = list(zones)
    found = [(zone.code, why) for zone in asked for why in refused_zone(policy, zone)]
    is_mixed = policy.allow_reserved_seating and policy.allow_ga_seating and is_hybrid(asked)
    if policy.allow_hybrid_ga_reserved or not is_mixed:
        return found
    why = "general admission beside reserved seats is not allowed"
    return found + [(zone.code, why) for zone in asked if zone.zone_type not in RESERVED_TYPES]


def refused_zone(policy: Policy, zone: Offered) -> Iterator[str]:
    """Why the policy does not allow a zone by itself, whatever else there is."""
    yield from refused_type(policy, zone)
    yield from refused_access(policy, zone)


def refused_type(policy: Policy, zone: Offered) -> Iterator[str]:
    """Why the policy does not allow what the zone is."""
    if zone.zone_type in RESERVED_TYPES:
        if not policy.allow_reserved_seating:
            yield "reserved seating is not allowed"
    elif not policy.allow_ga_seating:
        yield "general admission is not allowed"
    if zone.zone_type in VIP_TYPES and not policy.allow_vip_zones:
        yield "VIP zones are not allowed"


def refused_access(policy: Policy, zone: Offered) -> Iterator[str]:
    """Why the policy does not allow how people come to book there."""
    if zone.access_mode not in policy.allowed_access_modes:
        yield f"access by {zone.access_mode} is not allowed"


def refused_seats(policy: Policy, zones: Iterable[Zone]) -> list[tuple[str, str]]:
    """Which seats the policy does not allow, by code, and why.

    A wheelchair space needs nobody's leave, nor does a companion seat, unless it could then be sold to nobody.
    """
    if not (policy.enforce_accessibility_rules and policy.companion_requires_wheelchair):
        return []
    seats = (seat for zone in zones for row in zone.rows for seat in row.seats)
    why = "a companion seat is sold with its wheelchair space only, and this one has none"
    return [(seat.code, why) for seat in seats if seat.category is Category.COMPANION and seat.companion_of is None]


def _is_own(policy: Policy, name: str) -> bool:
    """Whether the organization said it: another value than the default, or that nobody may have another."""
    return name in policy.locked_fields or getattr(policy, name) != FIELDS[name].default


def _refused(name: str, value: object, locked: frozenset[str]) -> str | None:
    """The first objection to an override; the order is part of the rule."""
    if name not in FIELDS:
        return _wrong(name, value)
    if name in locked:
        return "is locked for this organization"
    if not FIELDS[name].is_overridable:
        return "holds for the whole organization: no event has its own"
    return _wrong(name, value)


def _wrong(name: str, value: object) -> str | None:
    field = FIELDS.get(name)
    if field is None:
        return "is no field of the policy"
    match field.kind:
        case FieldKind.FLAG:
            return None if isinstance(value, bool) else "must be true or false"
        case FieldKind.WHOLE:
            if field.is_nullable and value is None:
                return None
            fits = type(value) is int and field.least <= value <= field.most
            none = ", or null for no limit" if field.is_nullable else ""
            return None if fits else f"must be a whole number from {field.least} to {field.most}{none}"
        case FieldKind.WORDS:
            return _wrong_words(value, field)


def _wrong_words(value: object, field: Field) -> str | None:
    if not isinstance(value, list | tuple) or len(value) < field.words_least:
        return f"must be a list of {field.words_least} or more of {', '.join(field.words)}"
    if not all(isinstance(word, str) and word in field.words for word in value):
        return f"may hold only {', '.join(field.words)}"
    return None if len(set(value)) == len(value) else "names one of them twice"


def _kept(name: str, value: Any) -> Any:
    """A right value as the policy holds it: lists in the order of their words."""
    field = FIELDS[name]
    if field.kind is not FieldKind.WORDS:
        return value
    return tuple(word for word in field.words if word in value)
