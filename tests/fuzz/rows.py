"""Calls of NumPy's functions as the registry's samples write them, and options to vary in them.

    x[3,4], axis=0                    a sample of np.sum
    np.sum(_0, axis=0, keepdims=True) a call drawn from it; _0 is a place of kind x, shape (3, 4)

Every row with a body is drawn, whoever adds it: options come from NumPy's own signature, values for
them from ``VALUES`` by name, else from the default; NumPy refuses what makes no sense.
"""

from __future__ import annotations

import ast
import functools
import inspect
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from weft.frontend.numpy_api.elements import elementwise as ufuncs
from weft.frontend.numpy_api.registry import ROWS, Row, full_name
from weft.ir.record import replace
from weft.ir.scalar.transcendental import MAX_ULP

from .data import DTYPES

Place = tuple[str, tuple[int, ...]]  # kind x, p, i or m; shape

# Of functions of which NumPy leaves open what they give, or that write, or whose dtype depends on
# values: what they give for certain.
SAMPLES = {
    "np.roots": ("x[4]).prod() * (1 + 0j",),
    "np.unwrap": ("4 * x[7]", "4 * x[3,4], axis=0"),
    "np.partition": ("x[7], 3)[3:4].sum(", "x[3,4], 1, axis=0)[1].copy("),
    "np.argpartition": ("x[7], 3) * (0", "x[3,4], 1, axis=0) * (0"),
}
_METHODS = ("linear", "lower", "higher", "nearest", "midpoint", "inverted_cdf", "hazen", "weibull",
            "closest_observation", "averaged_inverted_cdf", "interpolated_inverted_cdf",
            "median_unbiased", "normal_unbiased")
# Texts of values for options, by their names.
VALUES: dict[str, tuple[Any, ...]] = {
    "axis": ("None", "0", "1", "-1", "(0, 1)", "(-1, 0)", "()"),
    "dtype": tuple(f"np.{np.dtype(name).name}" for name in dict.fromkeys(DTYPES)
                   if name != "bfloat16"),  # whose sums NumPy rounds at each step
    "where": ("{mask}",), "initial": ("0", "1", "2.5", "-1"), "ddof": ("0", "1", "2"),
    "correction": ("0", "1"), "method": tuple(map(repr, _METHODS)), "n": ("0", "1", "2", "3"),
    "mode": tuple(map(repr, ("clip", "wrap", "raise", "full", "same", "valid", "constant", "edge",
                             "reflect", "symmetric", "mean", "maximum", "minimum", "linear_ramp",
                             "r", "complete", "reduced"))),
    "side": ("'left'", "'right'"), "kind": ("'stable'",), "stable": ("True",),
    "prepend": ("0", "{first}"), "append": ("1", "{first}"), "to_begin": ("1", "{first}"),
    "to_end": ("2",), "decimals": ("0", "1", "-1"), "k": ("-2", "-1", "0", "1", "2"),
    "offset": ("-1", "0", "1", "2"), "edge_order": ("1", "2"), "indexing": ("'ij'", "'xy'"),
    "num": ("0", "1", "2", "5"), "minlength": ("0", "2", "9"), "bins": ("3", "[0, 1, 2]"),
    "range": ("(0, 2)", "(-1.5, 3)"), "rtol": ("0.1", "0"), "atol": ("0.5", "0"),
    "left": ("-1", "0.5"), "right": ("True", "0.5"), "period": ("2", "2.5"),
    "nan": ("1.5",), "posinf": ("7",), "neginf": ("-7",), "min": ("-1", "0"), "max": ("1",),
    "reflect_type": ("'odd'", "'even'"), "constant_values": ("2", "(1, 3)"),
    "stat_length": ("2", "1"), "end_values": ("3", "(1, 2)"), "UPLO": ("'L'", "'U'"),
    "ord": ("None", "1", "2", "-1", "-2", "0", "3", "np.inf", "-np.inf", "'fro'", "'nuc'"),
    "axes": ("None", "(1, 0)", "(0, 1)", "1", "2"), "dx": ("0.5", "2"), "shift": ("2", "-1"),
    "order": ("'C'", "'F'"), "weights": ("None",), "base": ("2.0",), "discont": ("4",),
    "shape": ("(2, 2)", "3"), "full_matrices": ("False",), "optimize": ("True",),
    "axis1": ("0", "1", "-1"), "axis2": ("0", "1", "-2"), "axisa": ("0",), "axisb": ("0",),
    "axisc": ("0",), "rcond": ("0.1",), "newaxis": (), "x": (), "start": ("0", "1"),
}
_LEFT_ALONE = frozenset(("like", "subok", "device", "copy", "out", "signature", "casting",
                         "extobj", "overwrite_input", "sorter", "period_", "mean", "strict"))


_EXTREMES = ("sort", "quantile", "reduce", "nan")  # modules of rows


@dataclass(frozen=True)
class Call:
    """A call with places for arrays: ``names`` are those of NumPy that it may have."""

    names: tuple[str, ...]
    tree: ast.Call
    tail: str                 # what follows the call: np.partition(x, 3)[3:4].sum()
    places: tuple[Place, ...]
    method: bool
    options: tuple[str, ...]  # that may be added or changed
    extreme: bool             # which of two zeros it takes is nobody's business


class _Places(ast.NodeTransformer):
    """Names ``_0``, ``_1`` in the places of ``x[3,4]`` and its kin; dicts without braces."""

    def __init__(self) -> None:
        self.found: list[Place] = []

    def visit_Subscript(self, node: ast.Subscript) -> Any:
        if isinstance(node.value, ast.Name) and node.value.id in "xpim":
            try:
                shape = ast.literal_eval(node.slice)
            except ValueError:
                return self.generic_visit(node)
            self.found.append((node.value.id, shape if isinstance(shape, tuple) else (shape,)))
            return ast.Name(f"_{len(self.found) - 1}", ast.Load())
        return self.generic_visit(node)

    def visit_Dict(self, node: ast.Dict) -> Any:
        self.generic_visit(node)
        pairs = [ast.Tuple([key, value], ast.Load())  # type: ignore[list-item]
                 for key, value in zip(node.keys, node.values, strict=True)]
        return ast.Call(ast.Name("dict", ast.Load()), [ast.List(pairs, ast.Load())], [])


def _options(function: Callable[..., Any], body: Any) -> tuple[str, ...]:
    for each in (function, body):
        try:
            declared = inspect.signature(each).parameters.values()
            break
        except (TypeError, ValueError):
            declared = ()  # type: ignore[assignment]
    found = []
    for p in declared:
        if p.default is not p.empty and p.name not in _LEFT_ALONE:
            if p.name in VALUES or isinstance(p.default, (bool, int, float)):
                found.append(p.name)
            VALUES.setdefault(p.name, _like(p.default))
    return tuple(found)


def _like(default: Any) -> tuple[str, ...]:
    """Values for an option that only its default tells of."""
    if isinstance(default, bool):
        return (str(not default),)
    return ("0", "1", "2", "-1") if isinstance(default, (int, float)) else ()


def _call(row: Row, name: str, sample: str) -> Call:
    text = f"f({sample})"
    tree = ast.parse(text, mode="eval").body
    outer: Any = tree
    while not (isinstance(outer, ast.Call) and isinstance(outer.func, ast.Name)):
        outer = getattr(outer, "func", None) or getattr(outer, "value", None) or outer.left
    end = outer.end_col_offset
    places = _Places()
    outer = places.visit(outer)
    options = _options(row.functions[0], row.body)
    if text[end:].startswith("["):  # of another axis, that would take something else
        options = tuple(option for option in options if option != "axis")
    return Call((name, *map(full_name, row.functions[1:])), outer, text[end:], tuple(places.found),
                row.method, options,
                getattr(row.body, "__module__", "").rsplit(".", 1)[-1] in _EXTREMES)


@functools.cache
def calls() -> dict[str, tuple[Call, ...]]:
    """By the name of each row that has a body, the calls of its samples."""
    found = {}
    for row in dict.fromkeys(ROWS.values()):
        row = replace(row, functions=tuple(f for f in row.functions if f is not np.empty))
        samples = SAMPLES.get(row.name) or row.samples
        if row.body is not None and samples:
            found[row.name] = tuple(_call(row, row.name, sample) for sample in samples)
    return found


def drawn(call: Call, rng: random.Random) -> tuple[str, tuple[str, ...]]:
    """The call's text, some of its options changed, and the names of these."""
    tree = ast.Call(call.tree.func, list(call.tree.args), list(call.tree.keywords))
    chosen = rng.sample(call.options, min(len(call.options), rng.choice((0, 0, 1, 1, 1, 2))))
    chosen = [option for option in chosen if VALUES[option]]
    kept = [word for word in tree.keywords if word.arg not in chosen]
    first = next((f"_{at}" for at, (kind, _) in enumerate(call.places) if kind != "m"), "1")
    for option in chosen:
        value = rng.choice(VALUES[option]).replace("{mask}", f"({first} > 0)").replace(
            "{first}", f"{first}[:1]")
        kept.append(ast.keyword(option, ast.parse(value, mode="eval").body))
    tree.keywords = kept
    subject = tree.args[0] if tree.args else None
    name = rng.choice(call.names)
    if call.method and isinstance(subject, ast.Name) and rng.random() < 0.4:
        tree.args = tree.args[1:]
        name = f"{subject.id}.{name.rsplit('.', 1)[1]}"
    text = name + ast.unparse(ast.fix_missing_locations(tree))[len("f"):] + call.tail
    return text, tuple(chosen)


@functools.cache
def ufunc_names() -> tuple[str, ...]:
    """Those that trace, as programs write them, but expit (``steps_elementwise``)."""
    found = {*ufuncs.ROWS, *ufuncs.BODIES, *ufuncs.PAIRS, np.divmod}
    return tuple(sorted(f"np.{u.__name__}" for u in found if hasattr(np, u.__name__)) + sorted(
        f"special.{name}" for name in ("entr", "erf", "logit", "xlog1py", "xlogy")))


def is_exact(name: str) -> bool:
    """Whether a ufunc has the same bits everywhere: IEEE's operations, and what moves bits."""
    row = ufuncs.ROWS.get(getattr(np, name.removeprefix("np."), None))
    inexact = ("np.float_power", "np.deg2rad", "np.rad2deg", "np.degrees", "np.radians",
               "np.logaddexp", "np.logaddexp2")
    return not (name.startswith("special.") or name in inexact or (
        row is not None and row.name in MAX_ULP))
