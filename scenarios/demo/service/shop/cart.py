"""The cart: lines of products and counts."""

from dataclasses import dataclass, field

from .money import Money, ZERO
from .pricing import price_line


@dataclass
class Line:
    sku: str
    count: int = 1


@dataclass
class Cart:
    lines: list[Line] = field(default_factory=list)

    def add(self, sku: str, count: int = 1) -> None:
        for line in self.lines:
            if line.sku == sku:
                line.count += count
                return
        self.lines.append(Line(sku, count))

    def total(self) -> Money:
        """Adds up the priced lines, before any discount for the whole order."""
        amount = ZERO
        for line in self.lines:
            amount = amount + price_line(line.sku, line.count)
        return amount
