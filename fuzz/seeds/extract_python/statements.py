try:
    with open(a) as f, (yield) as (g, [h, *i]): pass
except* (E, F) as e: raise X from e
except: ...
else: assert x, y
finally:
    while a < b <= c: break
    else: continue
for x, *y in z: print(f"{x!r:>{y}} {{}} {f'{z}'}", *y, **k)
match p:
    case {"k": v, **rest} | [K(a=1, b=[*_]), "s" "t"] if v: pass
    case K.x | -1 | 1+2j | None: pass
    case _: type A[T: int, *Ts, **P] = list[T]
if a: b
elif c: d
else: e
x = y if z else w; x += 1; x @= y; lambda: (yield); `a`; print >>f, x
