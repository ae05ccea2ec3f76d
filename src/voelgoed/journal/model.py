"""A fact: something that happened, as it is told, as it stands in the journal, and where a reader stands among them."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from uuid import UUID

import msgspec

from voelgoed.ids import OrganizationId
from voelgoed.network import parse_address

USER_AGENT_CHARS_MAX = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where a request came from. Personal data: kept apart from the facts, and emptied after a time."""

    session_id: UUID | None = None
    ip: str | None = None
    user_agent: str | None = None

    def __post_init__(self) -> None:
        assert self.ip is None or parse_address(self.ip) == self.ip
        assert self.user_agent is None or len(self.user_agent) <= USER_AGENT_CHARS_MAX

    @classmethod
    def seen(cls, *, session_id: UUID | None, peer: str | None, user_agent: str | None) -> "Origin":
        """An origin from what a stranger sent: what is no address is left out, what cannot be printed is cut."""
        told = user_agent or ""
        printable = told if told.isprintable() else "".join(filter(str.isprintable, told))
        return cls(
            session_id=session_id,
            ip=parse_address(peer or ""),
            user_agent=printable[:USER_AGENT_CHARS_MAX] or None,
        )

    def id_on(self, organization_id: OrganizationId, day: date) -> UUID:
        """The id under which this origin is kept: the same for the same origin and day, so it is written once.

        The day is part of it because an origin is emptied a fixed time after it was first seen: a program that calls
        from one address for years must not lose yesterday's address with the first one.
        """
        parts = (organization_id, self.session_id, self.ip, self.user_agent, day)
        told = "\0".join("" if part is None else str(part) for part in parts)
        return uuid8(hashlib.sha256(told.encode()).digest())


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """What happened, to whose record, by whom, from where and why."""

    kind: str
    organization_id: OrganizationId
    event_id: UUID | None = None
    seat_id: UUID | None = None
    version: int | None = None
    actor_id: UUID | None = None
    origin: Origin | None = None
    request_id: UUID | None = None
    reason: str | None = None
    data: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Position:
    """A place in the order of the journal; a reader has read everything up to and including it."""

    xid: int
    seq: int


class RecordedFact(msgspec.Struct, frozen=True, kw_only=True):
    """A fact that was committed. Its origin is told by the search only; a reader gets the origin's id."""

    xid: int
    seq: int
    recorded_at: datetime
    kind: str
    organization_id: OrganizationId
    event_id: UUID | None
    seat_id: UUID | None
    version: int | None
    actor_id: UUID | None
    origin_id: UUID | None
    request_id: UUID | None
    reason: str | None
    data: Mapping[str, object]
    origin: Origin | None = None

    @property
    def position(self) -> Position:
        return Position(xid=self.xid, seq=self.seq)


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """The next facts in order, where a reader stands once it has dealt with them, and whether it has caught up."""

    facts: Sequence[RecordedFact]
    position: Position
    is_last: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchFilter:
    """What a search asks for; what is left out matches everything. `since` is included, `until` is not."""

    kinds: Sequence[str] = ()
    actor_id: UUID | None = None
    event_id: UUID | None = None
    seat_id: UUID | None = None
    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Facts, newest first, and the cursor of the page after; None on the last one."""

    facts: Sequence[RecordedFact]
    next_cursor: str | None


def uuid8(digest: bytes) -> UUID:
    """A UUID of the version for values of one's own making, from the first bytes of a digest."""
    number = int.from_bytes(digest[:16], "big")
    number = number & ~(0xF << 76) | 0x8 << 76
    return UUID(int=number & ~(0x3 << 62) | 0x2 << 62)
