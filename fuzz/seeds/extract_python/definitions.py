"""Module."""
from __future__ import annotations
import os.path as p, sys
from . import a, b as c
from ..up import *

__all__ = ["f", *a.__all__] + ["K"]
T: type[int] | None = None


@decorated(x, y=1)
def f(a, /, b: int = 1, *args: T, c, d=lambda q: q, **kw) -> "K":
    """Doc."""
    global T
    def inner(): nonlocal a; return a + b
    return [inner(i) async for i in c if (y := i) for j in y]


class K(Base, metaclass=M, **kw):
    x: int
    y = z = property(lambda self: self.x)
    async def m(self, *, o=f): self.a.b[0]: int = await o(self).q; del self.x

    @property
    def v(self): return super().v
    @v.setter
    def v(self, value): type(self).v = value
K.late = f
