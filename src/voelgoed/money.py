"""Money: whole minor units of one currency. There are no fractions here, and nothing that could make one."""

import re
from dataclasses import dataclass
from typing import Final

CURRENCY: Final = re.compile(r"[A-Z]{3}")
DEFAULT_CURRENCY: Final = "ZAR"
MINOR_MAX: Final = 2**53 - 1
"""The largest whole number that every reader of JSON takes as it is."""


def is_currency(value: object) -> bool:
    """Whether a value has the form of an ISO 4217 code."""
    return isinstance(value, str) and CURRENCY.fullmatch(value) is not None


@dataclass(frozen=True, slots=True)
class Money:
    """So many cents, or whatever is the least of a currency; less than nothing is owed back."""

    amount_minor: int
    currency: str

    def __post_init__(self) -> None:
        assert type(self.amount_minor) is int  # true is no amount either
        assert -MINOR_MAX <= self.amount_minor <= MINOR_MAX
        assert is_currency(self.currency)

    def __add__(self, other: "Money") -> "Money":
        assert self.currency == other.currency, f"{self.currency} and {other.currency} have no sum"
        return Money(self.amount_minor + other.amount_minor, self.currency)
