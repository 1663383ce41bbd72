"""The shop's service: carts, prices, orders."""

from .cart import Cart, Line
from .orders import OrderService, place_order

__all__ = ["Cart", "Line", "OrderService", "place_order"]
