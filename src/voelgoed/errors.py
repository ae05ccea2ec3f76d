"""The refusals every domain can speak: a kind, a stable code, and facts for the caller."""

from collections.abc import Mapping
from enum import StrEnum
from typing import ClassVar


class Kind(StrEnum):
    """Why a request is refused; one status each, given where HTTP is spoken."""

    INVALID = "invalid"
    ANONYMOUS = "anonymous"
    DENIED = "denied"
    MISSING = "missing"
    CONFLICT = "conflict"
    TOO_LARGE = "too_large"
    MISMATCH = "mismatch"
    LIMITED = "limited"
    BUSY = "busy"


class DomainError(Exception):
    """A refusal the caller can act on. Subclasses sit beside the code that raises them."""

    kind: ClassVar[Kind]
    code: ClassVar[str]
    message: ClassVar[str]

    def __init__(self, **facts: object) -> None:
        super().__init__(self.message)
        self.facts: Mapping[str, object] = facts


class Busy(DomainError):
    """The database did not do the work in time. Nothing was changed."""

    kind = Kind.BUSY
    code = "busy"
    message = "The service is busy. Nothing was changed; please try again in a moment."


class LostRace(Busy):
    """Another transaction changed the same rows first. This one was rolled back and can be repeated."""


class Unavailable(Busy):
    """PostgreSQL cannot do the work now: it is down, read only, or out of disk or memory. Nothing was changed."""


class OutcomeUnknown(DomainError):
    """The connection was lost while a commit was in flight: it may or may not have happened."""

    kind = Kind.BUSY
    code = "outcome_unknown"
    message = "The connection to the database was lost at the last moment. Look before you try again."


class StartRefused(Exception):
    """This process will not start as things are; said in plain words, with what to do about it."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint
