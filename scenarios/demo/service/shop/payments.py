"""Charging cards."""

from .money import Money


class Declined(Exception):
    """The card was not accepted."""


def charge(card: str, amount: Money) -> None:
    if not looks_valid(card):
        raise Declined(amount)


def looks_valid(card: str) -> bool:
    """Checks the digits of a card number by the Luhn rule."""
    digits = [int(digit) for digit in card if digit.isdigit()]
    odd = sum(digits[-1::-2])
    even = sum(sum(divmod(2 * digit, 10)) for digit in digits[-2::-2])
    return bool(digits) and (odd + even) % 10 == 0
