"""Steps that call what the registry has a row for, ufuncs included, with their options.

Whether a result has NumPy's bits is asked of NumPy: of other operands too, each element is one of
theirs or always the same, so it was moved. What is computed has the tolerance of ``close`` "row".
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from .data import DTYPES, kind_of
from .program import Close, Step
from .rows import VALUES, Place, calls, drawn, is_exact, ufunc_names
from .writer import Value, Writer, step

SIZES = (0, 1, 2, 3, 5, 7, 8, 16, 17)
TRIES = 5
PLACES = ("i8", "i8", "i4", "u4", "i2", "u1")
ROUNDED = 8  # ULP of what is computed
# Whole numbers that come of rounded ones, and jump with them.
_JUMPS = ("np.histogram", "np.linalg.matrix_rank", "np.floor_divide", "np.divmod")
# What is computed, where other operands let it look like a move: means of two, products that are 0
# or infinite for all of them, variances of large integers.
_MEANS = ("np.median", "np.nanmedian", "np.prod", "np.nanprod", "np.cumprod", "np.var", "np.std",
          "np.nanvar", "np.nanstd", "np.corrcoef", "np.quantile", "np.percentile",
          "np.nanquantile", "np.nanpercentile")
# Computed with zeros beyond the ends, or in another order: infinities make NaN of what they meet.
_PADDED = ("np.convolve", "np.correlate", "np.poly", "np.polymul")


@step("row", 110, smooth=True)
def row(w: Writer) -> Any:
    found = calls()
    name = w.one([name for name in found if "empty" not in name])
    for _ in range(TRIES):
        call = w.one(found[name])
        text, options = drawn(call, w.rng)
        if name == "np.i0":  # NumPy's is infinite where exp(x) is, before a root divides it
            text = text.replace("_0", "np.minimum(_0, 80)")
        operands = [_operand(w, place, _dims(w, call.places)) for place in call.places]
        made = write(w, f"row {name}", text, operands, options,
                     close=("zero", 0) if call.extreme else None)
        if made is not None:
            return made
    return None


@step("ufunc", 25, smooth=True)
def ufunc(w: Writer) -> Any:
    name = w.one(ufunc_names())
    function = w.spaces[0]["np" if name.startswith("np.") else "special"]
    function = getattr(function, name.split(".")[1])
    for _ in range(TRIES):
        places: list[Place] = [("x", w.one(((), (3,), (3, 4), (2, 3, 4))))] * function.nin
        operands = [_operand(w, place, _dims(w, places)) for place in places]
        text, options = _ufunc_text(w, name, function)
        exact = is_exact(name) and not {"reduce", "reduceat", "accumulate"} & {*options}
        if name in ("np.maximum", "np.minimum", "np.fmax", "np.fmin", "np.heaviside"):
            close: Close | None = ("zero", 0)
        else:
            close = None if exact else ("row", ROUNDED)
        if "f2" not in DTYPES and _halves(function, operands):
            continue
        made = write(w, f"ufunc {name}", text, operands, options, close=close, known=True)
        if made is not None:
            return made
    return None


def _halves(function: np.ufunc, operands: Sequence[Value | None]) -> bool:
    """Whether NumPy computes in float16."""
    try:
        kinds = function.resolve_dtypes((*(x.dtype for x in operands if x is not None),
                                         *(None,) * function.nout))
    except TypeError:
        return False
    return any(kind == np.float16 for kind in kinds)


def _ufunc_text(w: Writer, name: str, function: np.ufunc) -> tuple[str, tuple[str, ...]]:
    """A call, or one of a method, with options."""
    given = ", ".join(f"_{at}" for at in range(function.nin))
    if function.nin == 2 and w.yes(0.3):
        method = w.one(("outer", "reduce", "accumulate", "reduceat"))
        if name in ("np.arctan2", "np.power") and method.startswith("reduce"):
            method = "accumulate"  # NumPy's vectors read ahead of what they write
        if method == "outer":
            return f"{name}.outer({given})", ("outer",)
        more = {"reduce": ("", ", axis=None", ", axis=-1", ", keepdims=True", ", initial=1"),
                "accumulate": ("", ", axis=-1"), "reduceat": (", [0, 2, 1]", ", [0], axis=-1")}
        return f"{name}.{method}(_0{w.one(more[method])})", (method,)
    if function.nin == 2 and w.yes(0.2):
        return f"{name}(_0, {w.one(('2', '0.5', '-1', '0', 'True', 'np.float32(1.5)'))})", ()
    if w.yes(0.15):
        return f"{name}({given}, dtype={w.one(VALUES['dtype'])})", ("dtype",)
    return f"{name}({given})", ()


def write(w: Writer, feature: str, text: str, operands: Sequence[Value | None],
          options: tuple[str, ...] = (), *, close: Close | None = None,
          known: bool = False) -> Value | None:
    """A step of a text with ``_0``, ``_1`` for operands; one of its results if there are several;
    with ``out=`` now and then."""
    used = [x for x in operands if x is not None]
    if len(used) < len(operands) or _undefined(w, feature, text, options, used):
        return None
    body = re.sub(r"\b_(\d)\b", r"{\1}", text.replace("{", "{{").replace("}", "}}"))
    first = _value(w, body, used)
    while isinstance(first, (tuple, list)) and first:  # np.histogramdd has a list among its results
        body += f"[{w.rng.randrange(len(first))}]"
        first = _value(w, body, used)
    if first is None or isinstance(first, (tuple, list)) or (w.smooth and kind_of(first) != "f"):
        return None
    if any(x.tag == "close" for x in used) and not _continuous(w, body, used):
        return None
    if not known and kind_of(first) in "fc" and (
            feature.split(" ")[1] in _MEANS or not _moved(w, body, used)):
        close = ("row", ROUNDED)
    if feature == "row np.polymul" or (
            close is not None and close[0] == "row" and feature.split(" ")[1] in _PADDED):
        close = ("finite", ROUNDED)
    if "np.fft." in feature and not feature.endswith(("freq", "shift")):
        close = ("full", ROUNDED)
    if feature.split(" ")[1] in _JUMPS and any(x.kind in "fc" for x in used):
        close = ("row", ROUNDED)
    template = "{out} = " + body
    # Transforms of given sizes leave out= as it was.
    if body.endswith(")") and _is_call(text) and "lambda" not in body and (
            "np.fft." not in body) and w.yes(0.08):
        comma = "" if body.endswith("()") else ", "
        template = f"{{out}} = np.zeros_like({body})\n{body[:-1]}{comma}out={{out}})"
        options = (*options, "out")
        if feature == "row np.einsum" and close is None:
            close = ("zero", 0)  # into out= NumPy adds what else is a view, to 0
    return w.write(feature, template, *used, close=close, options=options)


def _is_call(text: str) -> bool:
    """Whether a text is nothing but a call, which may get one more argument."""
    return isinstance(ast.parse(text, mode="eval").body, ast.Call)


def _undefined(w: Writer, feature: str, text: str, options: Sequence[str],
               used: Sequence[Value]) -> bool:
    """Whether NumPy says nothing for certain, or something else without elements.

    Floats beyond an integer dtype; orders of what is not in order; np.linalg.pinv, which gives back
    the dtype of integers if there are none, and np.bincount, which forgets that of weights, and
    has more bins for larger numbers; edges of bins, which are float32 if all bfloat16 are equal;
    NaNs of bfloat16 where NumPy asks whether a dtype is one of its own floats. And differences
    cannot tell of rounding to float32. And LAPACK's search for singular values may never end beside
    a NaN.
    """
    if "linalg" in feature and not all(
            np.all(np.isfinite(sample)) for x in used if x.kind in "fc" for sample in x.samples):
        return True
    floats = any(x.kind in "fc" for x in used)
    if "dtype" in options and any(name in feature for name in ("var", "std", "mean")):
        return True
    if "dtype" in options and (w.smooth or (
            floats and not re.search("dtype=np.(float|complex)", text))):
        return True
    if ("np.nanq" in feature or "np.nanp" in feature) and (bool(w.symbols) or not all(
            np.size(sample) for x in used for sample in x.samples)):
        return True  # of no elements: of NumPy's the dims of the quantiles are missing
    if feature in ("row np.round", "row np.around") and "decimals=-" in text and any(
            x.dtype in ("i4", "u4", "i8", "u8") for x in used):
        return True  # what the dtype cannot hold is C's to choose
    if w.smooth and "float32" in text:
        return True  # difference quotients have its few digits
    if feature in ("row np.nanquantile", "row np.nanpercentile") and "[" in text and any(
            x.dtype in ("f2", "f4") for x in used):
        return True  # all rows have the dtype of the first, which is another one without numbers
    if feature in ("row np.quantile", "row np.percentile") and "np.float64(" in text and any(
            x.dtype in ("f2", "f4", "bfloat16") for x in used):
        return True  # a NaN keeps the dtype of the array
    if feature in ("row np.median", "row np.quantile", "row np.percentile") and any(
            x.dtype == "bfloat16" for x in used):
        return True  # a NaN is not looked for
    if feature == "row np.polydiv" and any(map(_is_trimmed, *(x.samples for x in used))):
        return True
    if feature == "row np.histogramdd" and "None" in text:  # of a part of whose result one is drawn
        return True
    if feature == "row np.argsort" and "stable" not in text:  # in any order where there are ties
        return True
    if "'wrap'" in text and any(x.dtype in ("u4", "u8") for x in used):
        return True  # places below 0 are far, and NumPy wraps them turn by turn
    if feature == "row np.take" and "'wrap'" in text and (bool(w.symbols) or not all(
            np.size(sample) for x in used[:1] for sample in x.samples)):
        return True  # around an axis of no elements, where others are none, too, without an end
    if feature == "row np.piecewise" and len({x.shapes for x in used if x.rank}) > 1:
        return True  # a mask without elements may have any shape
    if feature == "row np.bincount" and len(used) > 1:
        return not all(np.size(sample) for x in used for sample in x.samples) or bool(w.symbols)
    least = re.search(r"minlength=(\d+)", text)
    if least is not None and any(np.max(sample, initial=0) >= int(least.group(1))
                                 for x in used[:1] for sample in x.samples):
        return True
    if feature.startswith("row np.histogram") and any(
            x.dtype == "bfloat16" or x.kind == "c" or ("weights=" in text and x.kind in "iu")
            for x in used):
        return True  # NumPy adds whole weights as floats, and casts the sums
    odd = "dtype" in options or any(x.kind == "c" for x in used)
    if feature in ("row np.cov", "row np.corrcoef") and odd and (
            bool(w.symbols) or not all(np.size(x.samples[0]) for x in used)):
        return True  # of no variables: no numbers, which are float64
    if w.smooth and "hermitian=True" in text and "@" not in text:
        return True  # the derivative is that of a matrix that is one
    if feature == "row np.polyval" and (bool(w.symbols) or not all(
            np.size(sample) for x in used[:1] for sample in x.samples)):
        return True  # of no coefficients: zeros of the dtype of the places
    if feature == "row np.unpackbits" and (bool(w.symbols) or not all(
            np.size(sample) for x in used for sample in x.samples)):
        return True  # what is beyond the bits stays as the memory was
    if feature == "row np.linalg.qr" and "'full'" in text:  # once a name of 'reduced'
        return True
    if feature in ("row np.digitize", "row np.searchsorted") and any(
            x.dtype == "bfloat16" for x in used):
        return True  # ml_dtypes' order has no place for NaN
    if feature == "row np.poly" and (  # real by what the zeros are; a number if there are none
            bool(w.symbols) or any(x.kind == "c" for x in used) or not all(
                np.size(sample) for x in used for sample in x.samples)):
        return True
    if feature == "row np.einsum" and any(x.dtype == "bfloat16" for x in used):
        return True  # whether NumPy's loop is asked, which has none, goes by the sizes
    if feature == "row np.einsum" and "optimize" in text and len({x.dtype for x in used}) > 1:
        return True  # what is summed or multiplied first has a dtype of its own, and wraps in it
    if feature == "ufunc np.log1p" and any(x.kind == "c" for x in used):
        return True  # near 0 NumPy's has the digits of log(1 + x)
    if feature.startswith("row np.nan") and any(x.dtype == "bfloat16" for x in used):
        return True
    return "sorter=" in text or (
        feature == "row np.linalg.pinv" and not any(
            x.kind in "fc" and x.dtype != "bfloat16" for x in used[:1]))


def _is_trimmed(u: Any, v: Any = 1.0) -> bool:
    """Whether the remainder of polynomials begins with zeros, which NumPy leaves out."""
    if not np.size(u) or not np.size(v):
        return True
    long = np.size(u)
    with warnings.catch_warnings(action="ignore"):
        rest = np.polydiv(u, v)[1]
    return len(rest) != long - min(max(long - np.size(v) + 1, 0), long - 1)


def _dims(w: Writer, places: Sequence[Place]) -> dict[int, int | str]:
    """Sizes that stand for those of the sample: the same, others, or unknown ones."""
    sizes = {size for _, shape in places for size in shape}
    if w.yes(0.35):
        return {size: size for size in sizes}
    symbols = w.symbols if w.yes(0.7) else ()
    return {size: w.one(symbols) if symbols and w.yes(0.6) else
            w.one(SIZES) if w.yes(0.4) else size for size in sorted(sizes)}


def _operand(w: Writer, place: Place, dims: dict[int, int | str]) -> Value | None:
    """A value of a kind and shape: one that is there, or a new argument."""
    kind, shape = place
    wanted = tuple(dims[size] for size in shape)
    shapes = tuple(tuple(env[dim] if isinstance(dim, str) else dim for dim in wanted)
                   for env in w.sizes)
    if kind in "xm" and w.yes(0.6):
        found = w.pick(lambda value: value.shapes == shapes and (value.kind == "b") == (
            kind == "m") and not isinstance(value.samples[0], (bool, int, float)))
        if found is not None:
            return found
    if w.smooth:
        dtype, values = {"m": ("?", "whole"), "i": ("i8", "small")}.get(kind, ("f8", "unit"))
    elif kind == "x":
        dtype = w.one(DTYPES)
        values = w.one(("normal", "normal", "whole", "odd", "odd", "special"))
    else:
        dtype, values = {"m": ("?", "whole"), "i": (w.one(PLACES), "small"),
                         "p": (w.one(("f4", "f8")), "unit")}[kind]
    return w.argument(dtype, wanted, values)


def _value(w: Writer, body: str, used: Sequence[Value], space: dict[str, Any] | None = None) -> Any:
    """What the text gives for the first samples, or in another space; None if NumPy refuses."""
    made = Step("", "{out} = " + body, "_found", tuple(x.name for x in used))
    scope = dict(w.spaces[0] if space is None else space)
    try:
        with warnings.catch_warnings(action="ignore"):
            exec(compile(made.text(False), "<drawn>", "exec"), scope)
    except Exception:  # whatever NumPy, or Python's numbers, have against it
        return None
    return scope["_found"]


def _moved(w: Writer, body: str, used: Sequence[Value]) -> bool:
    """Whether all elements of the result are the operands', or what they are for any operands."""
    found = []
    # Of a few whole numbers the same may come by chance.
    for seed in range(1, 3 if any(x.kind in "fc" for x in used) else 9):
        rng = np.random.default_rng(seed)
        operands = [_other(x.samples[0], rng) for x in used]
        space = {**w.spaces[0], **{x.name: y for x, y in zip(used, operands, strict=True)}}
        result = _value(w, body, used, space)
        if result is None:
            return False
        elements = np.concatenate([np.zeros(0), *(
            np.ravel(y).astype(complex) for y in operands)])
        flat = np.ravel(result).astype(complex)
        found.append((flat, np.isin(flat, elements)))
    one, here = found[0]
    return all(len(one) == len(other) and bool(np.all(
        (here & there) | (one == other) | (np.isnan(one) & np.isnan(other))))
        for other, there in found[1:])


def _other(x: Any, rng: np.random.Generator) -> Any:
    """Another operand like x; whole numbers, which may be indices, are as near as can be. What is
    too large for one is quite another number, which is another float, too."""
    if kind_of(x) == "c":
        return (rng.normal(size=np.shape(x)) + 1j * rng.normal(size=np.shape(x))).astype(x.dtype)
    if kind_of(x) == "f":
        return rng.normal(size=np.shape(x)).astype(np.asarray(x).dtype)
    if np.asarray(x).dtype.kind == "b":
        return rng.random(np.shape(x)) < 0.5
    dtype = np.asarray(x).dtype
    with np.errstate(all="ignore"):
        near = x + rng.integers(0, 2, np.shape(x)).astype(dtype)
    far = rng.integers(0, np.iinfo(dtype).max, np.shape(x), dtype=dtype)
    return np.where(np.abs(np.asarray(x).astype(float)) < 2.0**40, near, far)[()]


def _continuous(w: Writer, body: str, used: Sequence[Value]) -> bool:
    """Whether a little less of the operands changes the result but little."""
    result = _value(w, body, used)
    rng = np.random.default_rng(0)
    space = dict(w.spaces[0])
    for x in used:
        if x.kind in "fc":
            y = x.samples[0]
            space[x.name] = (y * (1 + 1e-4 * rng.normal(size=np.shape(y)))).astype(x.dtype)
    moved = _value(w, body, used, space)
    if moved is None or kind_of(result) not in "fc" or np.shape(moved) != np.shape(result):
        return False
    scale = np.max(np.abs(np.nan_to_num(result, posinf=0, neginf=0)), initial=0)
    return bool(np.all(np.isfinite(result)) and np.all(np.abs(moved - result) <= 0.02 * scale))
