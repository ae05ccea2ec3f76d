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
    """The database could not take the work in time; nothing was changed."""

    kind = Kind.BUSY
    code = "busy"
    message = "The service is busy. Nothing was changed; please try again in a moment."


class LostRace(Busy):
    """Somebody else was at the same records and went first; all of this was undone, and may simply be tried again."""


class OutcomeUnknown(DomainError):
    """The connection was lost while a commit was under way: it may or may not have happened."""

    kind = Kind.BUSY
    code = "outcome_unknown"
    message = "The connection to the database was lost at the last moment. Look before you try again."


class StartRefused(Exception):
    """This process will not start as things are; said in plain words, with what to do about it."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint
