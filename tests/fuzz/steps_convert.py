"""Steps whose results C leaves open: casts out of range, shifts by any count."""

from __future__ import annotations

from typing import Any

from .writer import Writer, step

DTYPES = ("f4", "f8", "i4", "i8", "u4", "u8", "?", "f4", "f8", "i4", "i8", "i1", "u1", "i2", "u2",
          "f2", "bfloat16", "c8", "c16")


@step("cast", 4)
def cast(w: Writer) -> Any:
    """NaN and what is beyond an integer dtype included, as NumPy's loops define them."""
    x = w.certain()
    if x is None:
        return None
    to = w.one(DTYPES)
    if not hasattr(x.samples[0], "astype"):
        return None
    close = ("cast", 0) if x.kind in "fc" and to[0] in "iu" else None
    return w.emit("cast", f"{{0}}.astype({to!r})", x, close=close)


@step("cast", 1, smooth=True)
def widen(w: Writer) -> Any:
    x = w.pick(lambda value: value.kind == "f" and hasattr(value.samples[0], "astype"))
    return x and w.emit("cast", "{0}.astype('f8')", x)


@step("shift", 3)
def shift(w: Writer) -> Any:
    """Counts below 0 and beyond the width included, as NumPy defines them."""
    x = w.certain(lambda value: value.kind in "iu")
    if x is None:
        return None
    count = w.certain(lambda value: value.source == "count") if w.yes(0.6) else None
    if count is None and w.yes():
        count = w.partner(x, lambda value: value.kind in "iu" and value.tag != "close",
                          constants=False)
    elif count is None:
        count = str(w.one((0, 1, 5, 31, 32, 33, 63, 64, 70)))
    sign = w.one(("<<", ">>"))
    if isinstance(count, str) and w.yes(0.15):
        return w.emit("shift", f"{count} {sign} {{0}}", x)
    return w.emit("shift", f"{{0}} {sign} {{1}}", x, count)
