"""Steps that read and write by index: gathers, ``.at[]`` updates, assignments in place."""

from __future__ import annotations

from typing import Any

import numpy as np

from .steps_views import span, subscript
from .writer import Value, Writer, step


def index_of(w: Writer, axis_size: str) -> tuple[str, Value] | None:
    """Text of an integer index, ``{1}``: an argument as it is, or a remainder in range."""
    plain = w.pick(lambda value: value.source in ("index", "far") and value.rank < 3)
    if plain is not None and w.yes(0.7):
        return "{1}", plain
    made = w.certain(lambda value: value.kind in "iu" and value.rank < 3 and value.tag == "exact")
    if made is None:
        return None
    return w.one((f"{{1}} % {axis_size}", "{1} % 2", f"({{1}} % {axis_size}) - {axis_size}")), made


@step("gather", 5, smooth=True)
def gather(w: Writer) -> Any:
    x = w.array()
    if x is None:
        return None
    axis = w.axis(x, 1)
    if axis is None:
        return None
    axis %= x.rank
    found = index_of(w, f"{{0}}.shape[{axis}]")
    if found is None:
        indices = [w.rng.randint(-2, 1) for _ in range(w.rng.randint(0, 4))]
        return w.emit("gather", f"np.take({{0}}, {indices}, axis={axis})", x)
    text, index = found
    if w.yes(0.2):
        return w.emit("gather", f"np.take({{0}}, {text}, axis={axis})", x, index)
    if index.rank == x.rank and w.yes(0.3):
        return w.emit("gather", f"np.take_along_axis({{0}}, {text}, {axis})", x, index)
    before = [":" if w.yes(0.7) else span(w, f"{{0}}.shape[{at}]") for at in range(axis)]
    after = [w.one((":", "::-1", "1:", "0", text))] if axis + 1 < x.rank and w.yes(0.4) else []
    return w.emit("gather", f"{{0}}[{', '.join([*before, text, *after])}]", x, index)


def patch(w: Writer, x: Value, place: str) -> tuple[str, Value]:
    """Values for the elements ``x[place]``: a number, or elements of an array like x."""
    if w.yes(0.4) or x.kind == "b":
        return str(w.one(("True", "False") if x.kind == "b" else ("3", "1", "0"))), x
    other = w.pick(lambda value: value.shapes == x.shapes and value.dtype == x.dtype) or x
    return w.one((f"{{1}}[{place}]", f"{{1}}[{place}] * 2")), other


@step("at", 4, smooth=True)
def at(w: Writer) -> Any:
    x = w.array()
    if x is None:
        return None
    mode = "at_add" if x.kind != "b" and w.yes() else "at_set"
    if w.yes(0.6):
        place = subscript(w, x)
        if "None" in place and mode == "at_set":
            place = span(w, "{0}.shape[0]")
        value, other = patch(w, x, place)
        return w.emit("at", f"{mode}({{0}}, np.s_[{place}], {value})", x, other)
    found = index_of(w, "{0}.shape[0]")
    if found is None:
        return None
    text, index = found
    if any(np.size(i) * np.size(a) > w.limit * max(len(a), 1)
           for i, a in zip(index.samples, x.samples, strict=True)):
        return None  # rows of a large array at many places: more than any value may have
    if mode == "at_add" and x.dtype in ("f2", "bfloat16") and max(map(np.size, index.samples)) > 1:
        return None  # NumPy rounds after each one
    value = "2" if mode == "at_set" or w.yes() else f"{{0}}[{text}]"
    return w.emit("at", f"{mode}({{0}}, {text}, {value})", x, index)


@step("in place", 4, smooth=True)
def in_place(w: Writer) -> Any:
    x = w.array()
    if x is None:
        return None
    place = subscript(w, x)
    value, other = patch(w, x, place)
    sign = "=" if x.kind == "b" else w.one(("=", "=", "+=", "*="))
    made = w.one(("{0}.copy()", "{0} + 0") if x.kind != "b" else ("{0}.copy()",))
    if w.yes(0.25):
        made, place = f"np.zeros_like({{0}}) + {w.one((0, 1))}" if x.kind != "b" else made, place
    if w.yes(0.15) and x.kind != "b" and x.tag != "close":
        return w.write("in place", f"{{out}} = {made}\n{{out}}[{{0}} > 1] {sign} 2", x)
    return w.write("in place", f"{{out}} = {made}\n{{out}}[{place}] {sign} {value}", x, other)
