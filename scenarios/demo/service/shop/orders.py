"""Placing an order: price, charge, reserve."""

from dataclasses import dataclass

from . import payments as cards
from .cart import Cart
from .money import Money, format_money
from .pricing import apply_voucher
from .queue import ReservationQueue


@dataclass(frozen=True)
class Order:
    number: int
    amount: Money

    def receipt(self) -> str:
        return f"order {self.number}: {format_money(self.amount)}"


class EmptyCart(ValueError):
    """There is nothing to order."""


class OrderService:
    def __init__(self, queue: ReservationQueue) -> None:
        self.queue = queue
        self.next_number = 1

    def place(self, cart: Cart, card: str, voucher: str | None = None) -> Order:
        """Prices the cart, charges the card and queues the reservation of the goods."""
        if not cart.lines:
            raise EmptyCart
        amount = apply_voucher(cart.total(), voucher)
        cards.charge(card, amount)
        order = Order(self._number(), amount)
        for line in cart.lines:
            self.queue.push(order.number, line.sku, line.count)
        return order

    def _number(self) -> int:
        number = self.next_number
        self.next_number += 1
        return number


def place_order(cart: Cart, card: str) -> str:
    """Places one order with a service of its own and returns the receipt."""
    return OrderService(ReservationQueue()).place(cart, card).receipt()
