"""Money: whole, of one currency, added and nothing else."""

from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from voelgoed.money import DEFAULT_CURRENCY, MINOR_MAX, Money, is_currency

AMOUNTS = st.integers(-(MINOR_MAX // 3), MINOR_MAX // 3)


@settings(deadline=None)
@given(AMOUNTS, AMOUNTS, AMOUNTS)
def test_sums_are_sums(first: int, second: int, third: int) -> None:
    """In any order, and never a fraction."""
    one, two, three = (Money(amount, DEFAULT_CURRENCY) for amount in (first, second, third))
    assert one + two + three == three + (two + one) == Money(first + second + third, "ZAR")
    assert type((one + two).amount_minor) is int


def test_two_currencies_have_no_sum() -> None:
    """Nobody knows what they are worth together."""
    with pytest.raises(AssertionError, match="ZAR and EUR have no sum"):
        Money(100, "ZAR") + Money(100, "EUR")


def test_the_largest_amount_is_kept_and_not_passed() -> None:
    """A sum beyond it is a mistake, not a rounded number."""
    most = Money(MINOR_MAX, "ZAR")
    assert most.amount_minor == 9_007_199_254_740_991
    with pytest.raises(AssertionError):
        most + Money(1, "ZAR")


@pytest.mark.parametrize("amount", [1.0, 0.1, True, "1", None, MINOR_MAX + 1, -MINOR_MAX - 1])
def test_what_is_no_amount(amount: Any) -> None:
    """Fractions first of all."""
    with pytest.raises(AssertionError):
        Money(amount, "ZAR")


@pytest.mark.parametrize("currency", ["zar", "ZA", "RAND", "R", "", "ZAR\n", "ZÄR", None, 3])
def test_what_is_no_currency(currency: Any) -> None:
    """Three capital letters are one."""
    assert not is_currency(currency)
    with pytest.raises(AssertionError):
        Money(1, currency)
