"""A broken promise, and the promises that are checked."""

from dataclasses import dataclass
from enum import StrEnum


class Rule(StrEnum):
    """What the product promises."""

    DOUBLE_HOLD = "a seat has one holder at a time"
    LOST_HOLD = "an acknowledged hold lasts until its end"
    RELEASE_WITHOUT_EFFECT = "an acknowledged release ends the hold"
    OUTLIVED = "a hold is not shown as held after its end"
    PHANTOM_REFUSAL = "a seat is only refused for a reason that existed within the last second"
    BLOCKED_SEAT_HELD = "a blocked seat cannot be held"
    EFFECT_AFTER_NONE = "a refused request has no effect"
    UNEXPLAINED_HOLD = "every hold in the database comes from a request of its owner"
    KEY_WITH_TWO_ANSWERS = "one idempotency key has one effect and one answer"
    COUNTDOWN = "a new hold says how long it lasts"
    EXTENSION = "a hold is extended once, by five minutes, before its end"
    OVERSOLD = "a zone holds no more than its capacity"
    STALE_MAP = "the seat map is at most a few seconds old"
    STREAM_WENT_BACK = "the live map never goes back"
    DISAGREEMENT = "API, map, live map and database agree when all is calm"
    UNEXPECTED_ANSWER = "every answer is one that the API documents for a healthy client"
    READINESS = "a product that cannot write says that it is not ready"
    NO_RECOVERY = "the product recovers by itself"


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """One broken promise, with the time at which a client could see it."""

    rule: Rule
    at: float
    text: str
