"""Steps that compute each element from elements: arithmetic, functions, comparisons, choices."""

from __future__ import annotations

from typing import Any

from .writer import Value, Writer, step

ROUNDED = ("np.floor", "np.ceil", "np.trunc", "np.rint", "np.sign")
# Functions of one float and how many ULP NumPy and Weft may differ by.
FUNCTIONS = {
    "np.exp": 6, "np.exp2": 6, "np.expm1": 6, "np.log": 6, "np.log2": 6, "np.log10": 6,
    "np.log1p": 6, "np.tanh": 6, "np.sinh": 8, "np.cosh": 8, "np.sin": 6, "np.cos": 6, "np.tan": 8,
    "np.arcsin": 6, "np.arccos": 6, "np.arctan": 6, "np.arcsinh": 16, "np.arccosh": 24,
    "np.arctanh": 24, "np.cbrt": 8, "np.deg2rad": 6, "np.rad2deg": 6, "special.erf": 6,
    "special.expit": 6}
SMOOTH = (
    "np.tanh({0})", "np.sin({0})", "np.cos({0})", "np.exp(np.tanh({0}))", "np.arctan({0})",
    "np.exp(-{0} * {0})", "np.sqrt({0} * {0} + 1)", "np.log1p({0} * {0})", "{0} / ({0} * {0} + 1)",
    "np.arcsinh({0})", "special.erf({0})", "special.expit(np.tanh({0}))", "np.logaddexp({0}, 0.5)",
    "np.arctan2({0}, {0} * {0} + 1)", "np.hypot({0}, 1.5)", "np.cosh(np.tanh({0}))",
    "1 / (1 + np.exp(-{0}))", "np.power({0} * {0} + 1, 0.7)")


def is_float(value: Value) -> bool:
    return value.kind == "f"


def is_inexact(value: Value) -> bool:
    return value.kind in "fc"


def is_int(value: Value) -> bool:
    return value.kind in "iu"


@step("arithmetic", 8, smooth=True)
def arithmetic(w: Writer) -> Any:
    x = w.pick()
    if x is None:
        return None
    y = w.partner(x)
    if w.yes(0.2) and isinstance(y, str):
        return w.emit("arithmetic", f"{y} {w.one('+-*')} {{0}}", x)
    return w.emit("arithmetic", f"{{0}} {w.one('+-*')} {{1}}", x, y)


@step("division", 4)
def division(w: Writer) -> Any:
    """By zero, too, and the least integer by -1."""
    x = w.certain()
    if x is None:
        return None
    y = w.partner(x, lambda value: value.tag != "close")
    sign = w.one(("/", "//", "%"))
    if isinstance(y, str) and w.yes(0.3):
        return w.emit("division", f"{y} {sign} {{0}}", x)
    return w.emit("division", f"{{0}} {sign} {{1}}", x, y)


@step("unary", 3, smooth=True)
def unary(w: Writer) -> Any:
    if w.smooth:
        x = w.pick(is_float)
        return x and w.emit("unary", w.one(("-{0}", "{0} * {0}", "np.square({0})", "+{0}")), x)
    x = w.pick()
    return x and w.emit("unary", w.one((
        "-{0}", "abs({0})", "np.abs({0})", "np.square({0})", "+{0}", "np.positive({0})",
        "np.isnan({0})", "np.isinf({0})", "np.isfinite({0})", "np.fabs({0})",
        *(("{0}.real", "{0}.imag", "np.conj({0})", "np.real({0})", "{0}.conj()") * (
            x.kind == "c")))), x)


@step("sqrt", 2)
def root(w: Writer) -> Any:
    x = w.pick(is_inexact)
    return x and w.emit("sqrt", w.one(("np.sqrt({0})", "np.sqrt(np.abs({0}))", "1 / {0}",
                                       "np.reciprocal({0})")), x,
                        close=("complex", 8) if x.kind == "c" else None)


@step("rounding", 3)
def rounding(w: Writer) -> Any:
    x = w.certain()
    if x is None:
        return None
    if w.yes(0.2) and x.kind == "f":
        return w.emit("rounding", f"np.round({{0}}, {w.one((0, 1, 2))})", x, close=("ulp", 8))
    if w.yes(0.2) and x.kind == "f":
        y = w.partner(x, lambda value: value.tag != "close")
        return w.emit("rounding", w.one(("np.copysign({0}, {1})", "np.heaviside({0}, {1})")), x, y)
    name = w.one(ROUNDED if x.kind == "b" else (*ROUNDED, "np.signbit"))
    return w.emit("rounding", f"{name}({{0}})", x)


@step("transcendental", 5)
def transcendental(w: Writer) -> Any:
    x = w.pick(lambda value: value.kind in "fc" or (value.kind == "i" and w.yes(0.1)))
    if x is None:
        return None
    name = w.one(tuple(FUNCTIONS))
    if name == "np.log1p" and x.kind == "c":
        return None  # near 0 NumPy's has the digits of log(1 + x)
    inside = w.one(("{0}", "{0}", "{0} * 0.25", "{0} * 0.5", "np.abs({0})", "np.abs({0}) + 1"))
    if name == "special.expit":  # SciPy's is 0 before 1 + exp(-x) is beyond its reciprocal
        inside = f"np.maximum({inside}, -80)"
    return w.emit("transcendental", f"{name}({inside})", x,
                  close=("complex" if x.kind == "c" else "mix", FUNCTIONS[name]))


@step("smooth function", 5, smooth=True)
def smooth_function(w: Writer) -> Any:
    """Functions that are smooth everywhere and keep errors small."""
    x = w.pick(is_float)
    return x and w.emit("smooth function", w.one(SMOOTH), x, close=("mix", 12))


@step("binary function", 2)
def binary_function(w: Writer) -> Any:
    x = w.pick(is_float)
    if x is None:
        return None
    y = w.partner(x, is_float)
    return w.emit("binary function", w.one((
        "np.arctan2({0}, {1})", "np.hypot({0}, {1})", "np.logaddexp({0}, {1})",
        "np.logaddexp2({0}, {1})", "np.abs({0}) ** {1}", "np.power(np.abs({0}), {1})")), x, y,
        close=("mix", 24))


@step("power", 2)
def power(w: Writer) -> Any:
    x = w.pick(lambda value: value.kind != "b")
    if x is None:
        return None
    if x.kind in "iu":
        return w.emit("power", f"{{0}} ** {w.one((0, 1, 2, 3, 5))}", x)
    return w.emit("power", f"{{0}} ** {w.one((0, 1, 2, 3, 4, -1, -2, 0.5, 1.5, -0.5))}", x,
                  close=("branch" if x.kind == "c" else "mix", 8))


@step("extremes", 4)
def extremes(w: Writer) -> Any:
    """The sign of a zero that is the maximum of two zeros is nobody's business."""
    x = w.pick()
    if x is None:
        return None
    if w.yes(0.3):
        low, high = sorted((w.rng.randint(-2, 2), w.rng.randint(-2, 2)))
        low, high = (max(low, 0), max(high, 0)) if x.kind == "u" else (low, high)
        return w.emit("extremes", f"np.clip({{0}}, {low}, {high})", x, close=("zero", 0))
    y = w.partner(x)
    name = w.one(("np.maximum", "np.minimum", "np.fmax", "np.fmin"))
    return w.emit("extremes", f"{name}({{0}}, {{1}})", x, y, close=("zero", 0))


@step("comparison", 4)
def comparison(w: Writer) -> Any:
    x = w.certain()
    if x is None:
        return None
    y = w.partner(x, lambda value: value.tag != "close")
    return w.emit("comparison", f"{{0}} {w.one(('<', '<=', '>', '>=', '==', '!='))} {{1}}", x, y)


@step("logic", 3)
def logic(w: Writer) -> Any:
    x = w.certain(lambda value: value.kind in "biu")
    if x is None:
        return None
    if w.yes(0.2):
        return w.emit("logic", w.one(("~{0}", "np.logical_not({0})", "np.invert({0})")), x)
    y = w.partner(x, lambda value: value.kind in "biu" and value.tag != "close")
    return w.emit("logic", w.one(("{0} & {1}", "{0} | {1}", "{0} ^ {1}", "np.logical_and({0}, {1})",
                                  "np.logical_or({0}, {1})", "np.logical_xor({0}, {1})")), x, y)


@step("where", 4)
def where(w: Writer) -> Any:
    x = w.pick()
    if x is None:
        return None
    y = w.partner(x)
    mask = w.certain(lambda value: value.kind == "b" and all(
        a == z or not a for a, z in zip(value.shapes, x.shapes, strict=True)))
    if mask is None:
        tested = w.certain(lambda value: value.shapes == x.shapes)
        return tested and w.emit("where", "np.where({2} > 0, {0}, {1})", x, y, tested)
    if w.yes(0.1):
        return w.emit("where", "np.select([{2}, {0} == 1], [{0}, {1}], 3)", x, y, mask) if (
            x.tag != "close") else None
    return w.emit("where", w.one(("np.where({2}, {0}, {1})", "np.where({2}, {1}, {0})")), x, y,
                  mask)


@step("nan_to_num", 1)
def nan_to_num(w: Writer) -> Any:
    x = w.certain(lambda value: is_float(value) and value.dtype != "bfloat16")  # to NumPy no float
    return x and w.emit("nan_to_num", w.one((
        "np.nan_to_num({0})", "np.nan_to_num({0}, nan=1.5)", "np.isclose({0}, 1.0)")), x)
