"""Steps across elements: reductions, softmax and its kin, products of matrices."""

from __future__ import annotations

import math
from typing import Any

from .writer import Value, Writer, step


def over(w: Writer, x: Value) -> str:
    """``axis=`` and ``keepdims=`` of a reduction; None, one axis, several, none at all."""
    axes: Any = w.axis(x, 0)
    if x.rank > 1 and w.yes(0.3):
        axes = tuple(sorted(w.rng.sample(range(x.rank), 2)))
    elif w.yes(0.05):
        axes = ()
    keep = ", keepdims=True" if w.yes(0.3) else ""
    return f", axis={axes}{keep}" if w.yes(0.75) else keep


@step("sum", 6, smooth=True)
def total(w: Writer) -> Any:
    x = w.array()
    if x is None:
        return None
    name = w.one(("np.sum", "np.sum", "np.mean"))
    if x.kind not in "fc" and name == "np.sum":
        return w.emit("sum", f"{name}({{0}}{over(w, x)})", x)
    return w.emit("sum", f"{name}({{0}}{over(w, x)})", x,
                  close=("sum" if name == "np.sum" else "mean", 4))


@step("max", 4)
def largest(w: Writer) -> Any:
    x = w.array()
    name = w.one(("np.max", "np.min", "np.ptp"))
    if name == "np.ptp" and x is not None and x.kind == "b":
        return None
    return x and w.emit("max", f"{name}({{0}}{over(w, x)})", x, close=("zero", 0))


@step("argmax", 3)
def place(w: Writer) -> Any:
    x = w.certain(lambda value: value.rank > 0)
    if x is None:
        return None
    axis = w.one((None, w.axis(x, 0)))
    keep = ", keepdims=True" if w.yes(0.2) else ""
    name = w.one(("np.argmax", "np.argmin"))
    return w.emit("argmax", f"{name}({{0}}, axis={axis}{keep})", x)


@step("any", 3)
def truth(w: Writer) -> Any:
    x = w.certain(lambda value: value.rank > 0)
    name = w.one(("np.any", "np.all", "np.count_nonzero"))
    return x and w.emit("any", f"{name}({{0}}{over(w, x)})", x)


@step("var", 2, smooth=True)
def spread(w: Writer) -> Any:
    x = w.array(lambda value: value.kind == "f" or not w.smooth)
    name = "np.var" if w.smooth else w.one(("np.var", "np.std"))
    return x and w.emit("var", f"{name}({{0}}{over(w, x)})", x, close=("var", 8))


@step("softmax", 2, smooth=True)
def softmax(w: Writer) -> Any:
    x = w.array(lambda value: value.kind == "f" and value.dtype.itemsize > 2)
    if x is None:  # each value of these texts is rounded to halves, which the oracle does not know
        return None
    axis = w.axis(x)
    if axis is None:
        return None
    high = f"np.max({{0}}, axis={axis}, keepdims=True)"
    middle = f"np.mean({{0}}, axis={axis}, keepdims=True)"
    if w.yes():
        shifted = w.emit("softmax", f"np.exp({{0}} - {high})", x, close=("mix", 8))
    else:  # two steps, as nothing may be left of the mean
        mean = w.emit("softmax", middle, x, close=("mean", 4))
        shifted = mean and w.emit("softmax", "np.tanh({0} - {1})", x, mean, close=("mix", 8))
    if shifted is None:
        return None
    below = w.emit("softmax", w.one((
        f"np.sum({{0}}, axis={axis}, keepdims=True)",
        f"np.sqrt(np.mean({{0}} * {{0}}, axis={axis}, keepdims=True) + 0.1)")), shifted,
        close=("var", 4))
    return below and w.emit("softmax", "{0} / {1}", shifted, below)


@step("sums across", 3, smooth=True)
def across(w: Writer) -> Any:
    """What is reduced one way, beside the array it is of, and reduced in another way."""
    x = w.array(lambda value: value.rank > 1 and value.kind == "f" and value.dtype.itemsize > 2)
    if x is None:
        return None
    ways = [tuple(sorted(w.rng.sample(range(x.rank), w.rng.randint(1, x.rank))))
            for _ in range(w.rng.randint(2, 3))]
    narrow = w.emit("sums across", f"np.mean({{0}}, axis={ways[0]}, keepdims=True)", x,
                    close=("mean", 4))
    beside = narrow and w.emit("sums across", w.one(("{0} + {1}", "{0} * {1}")), x, narrow)
    for way in ways[1:] if beside else ():
        w.emit("sums across", f"np.sum({{0}}, axis={way}{w.one(('', ', keepdims=True'))})",
               w.one((x, beside)), close=("sum", 4))
    return beside


@step("matmul", 5, smooth=True)
def matmul(w: Writer) -> Any:
    x = w.array()
    if x is None:
        return None
    y = w.array(lambda value: (value.kind in "fc") == (x.kind in "fc") and all(
        a[-1] == z[max(len(z) - 2, 0)] for a, z in zip(x.shapes, value.shapes, strict=True)))
    kinds = {value.kind for value in (x, y) if value is not None}
    close = ("factored", 4) if "c" in kinds else ("sum", 4) if "f" in kinds else None
    if y is not None and w.yes(0.7):
        return w.emit("matmul", w.one(("{0} @ {1}", "np.matmul({0}, {1})", "np.dot({0}, {1})")), x,
                      y, close=close)
    if x.rank != 2:
        return None
    sliced = w.one((("", ""), ("[:, 1:]", "[1:]"), ("[:, ::-2]", "[::-2]"), ("[2:, :3]", "[:3]"),
                    ("[:, -2:]", "[-2:]"), ("[::2, :-1]", "[:-1]")))
    # The oracle cannot tell how many products of one operand's own elements are added up.
    close = close and (close[0], close[1] + 3 * int(max(a[-1] for a in x.shapes) ** 0.5))
    return w.emit("matmul", f"{{0}}{sliced[0]} @ {{0}}.T{sliced[1]}", x, close=close)


@step("einsum", 4, smooth=True)
def einsum(w: Writer) -> Any:
    """Letters by sizes: equal ones may share a letter, which stays or is summed."""
    x = w.array(lambda value: value.kind != "b" and value.rank < 4)
    y = w.array(lambda value: x is not None and value.dtype == x.dtype and value.rank < 4)
    if x is None or y is None:
        return None
    left = "ijk"[:x.rank]
    right, free = "", list("mnp")
    for axis in range(y.rank):
        same = [letter for at, letter in enumerate(left) if letter not in right and all(
            a[at] == z[axis] for a, z in zip(x.shapes, y.shapes, strict=True))]
        right += w.one(same) if same and w.yes(0.8) else free.pop(0)
    letters = [c for c in dict.fromkeys(left + right) if w.yes(0.6)]
    w.rng.shuffle(letters)
    out = "".join(letters[:4])
    sizes = dict(zip(left + right, (*x.shapes[0], *y.shapes[0]), strict=True))
    if math.prod(sizes.values()) > 1e8:  # NumPy's loop goes over all of them, for minutes
        return None
    alone = any(letter not in out for letter in set(left) ^ set(right))
    close = ("factored" if alone or x.kind == "c" else "sum", 4)
    return w.emit("einsum", f"np.einsum('{left},{right}->{out}', {{0}}, {{1}})", x, y,
                  close=close if x.kind in "fc" else None)
