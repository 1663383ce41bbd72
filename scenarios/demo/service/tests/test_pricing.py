from shop import pricing


def test_bulk_discount_starts_at_ten():
    assert pricing.bulk_discount(9) == 0
    assert pricing.bulk_discount(10) == 5


def test_price_line_includes_the_bulk_discount():
    assert pricing.price_line("apple", 10).cents == 427
