"""Amounts in cents, so that no price is ever rounded by accident."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Money:
    cents: int

    def __add__(self, other: Money) -> Money:
        return Money(self.cents + other.cents)

    def times(self, count: int) -> Money:
        return Money(self.cents * count)

    def less_percent(self, percent: int) -> Money:
        """Returns the amount with a discount taken off, rounded in the buyer's favour."""
        return Money(self.cents - -(-self.cents * percent // 100))


ZERO = Money(0)


def format_money(amount: Money) -> str:
    return f"{amount.cents // 100}.{amount.cents % 100:02d}"
