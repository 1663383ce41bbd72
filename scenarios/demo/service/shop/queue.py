"""The queue that the worker reads."""

import json


class ReservationQueue:
    def __init__(self) -> None:
        self.messages: list[str] = []

    def push(self, order: int, sku: str, count: int) -> None:
        self.messages.append(encode(order, sku, count))


def encode(order: int, sku: str, count: int) -> str:
    return json.dumps({"order": order, "sku": sku, "count": count})
