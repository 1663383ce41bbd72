"""What is for sale."""

from .money import Money

PRICES = {
    "apple": Money(45),
    "bread": Money(320),
    "cheese": Money(899),
}


class UnknownProduct(KeyError):
    """The catalog has no such product."""


def price_of(sku: str) -> Money:
    """Looks up the price of one piece."""
    try:
        return PRICES[sku]
    except KeyError:
        raise UnknownProduct(sku) from None
