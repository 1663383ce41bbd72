from shop import Cart, OrderService, place_order
from shop.queue import ReservationQueue

CARD = "4539 1488 0343 6467"


def test_receipt_names_the_amount():
    cart = Cart()
    cart.add("bread", 2)
    assert place_order(cart, CARD) == "order 1: 6.40"


def test_voucher_takes_ten_percent_off():
    cart = Cart()
    cart.add("cheese")
    order = OrderService(ReservationQueue()).place(cart, CARD, voucher="WELCOME")
    assert order.amount.cents == 809
