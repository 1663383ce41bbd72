"""Prices with their discounts."""

from .catalog import price_of
from .money import Money

BULK_COUNT = 10
BULK_PERCENT = 5


def bulk_discount(count: int) -> int:
    """Returns the discount in percent for many pieces of one product."""
    return BULK_PERCENT if count >= BULK_COUNT else 0


def price_line(sku: str, count: int) -> Money:
    """Prices one line of a cart, bulk discount included."""
    full = price_of(sku).times(count)
    return full.less_percent(bulk_discount(count))


def apply_voucher(amount: Money, voucher: str | None) -> Money:
    """Takes a voucher off the amount of an order; an unknown voucher changes nothing."""
    if voucher == "WELCOME":
        return amount.less_percent(10)
    return amount
