"""Steps that call another compiled function, and steps that read and write variables."""

from __future__ import annotations

from typing import Any

import numpy as np

from .data import kind_of
from .prelude import Held
from .writer import Writer, step


@step("nested call", 3, smooth=True)
def call(w: Writer) -> Any:
    """A compiled function calls another one, with its own values and with plain arrays."""
    if w.depth or len(w.inners) >= 2:
        return None
    values = [value for value in (w.pick(), w.pick()) if value is not None]
    inner = w.inner(values[:w.rng.randint(1, 2)])
    if inner is None:
        return None
    params = ", ".join(inner.params)
    lines = [f"def {inner.name}({params}):",
             *(f"    {line}" for made in inner.steps for line in made.text(False).split("\n")),
             f"    return {inner.result}"]
    for space in w.spaces:
        exec("\n".join(lines), space)
    given = values[:len(inner.params)]
    # What is not certain inside is not certain outside.
    tag = "close" if any(made.close for made in inner.steps) else "exact"
    texts = [f"{{{at}}}" for at in range(len(given))]
    for at, value in enumerate(given):
        if value.static and value.rank > 0 and value.kind != "b" and w.yes(0.35):
            number = 0.5 if value.kind == "f" else 1
            texts[at] = f"np.full({value.shape}, {number}, {value.dtype.str[1:]!r})"
    made = w.emit("nested call", f"{inner.name}({', '.join(texts)})", *given, tag=tag)
    if made is None:
        for space in w.spaces:
            del space[inner.name]
        return None
    w.inners.append(inner)
    return made


@step("variable", 3)
def variable(w: Writer) -> Any:
    """Reads and assignments, by called functions, too; a read after an assignment sees it."""
    if w.variables and w.yes(0.6):
        return access(w, w.one(list(w.variables)))
    x = w.array(lambda value: value.static and value.kind != "b")
    if x is None or w.depth or len(w.variables) >= 2:
        return None
    name = f"w{len(w.variables)}"
    held = Held(np.ones(x.shape, x.dtype))
    w.variables[name] = held
    for space in w.spaces:
        space[name] = Held(held.value)
    return access(w, name)


def access(w: Writer, name: str) -> Any:
    """A read of a variable; or an assignment to it, most often of something whole."""
    held = w.variables[name]
    if w.yes(0.4):
        return w.emit("variable", f"{name}[...]", tag="close" if kind_of(held.value) in "fc"
                      else "exact")
    x = w.pick(lambda value: all(shape == held.value.shape for shape in value.shapes) and (
        value.dtype == held.value.dtype))
    if x is not None and x.kind == "f" and x.tag != "close" and w.yes(0.6):
        whole = w.emit("variable", "np.rint(np.clip({0}, -9, 9))", x)
        x = whole if whole is not None and whole.dtype == x.dtype else x
    mode = w.one(("assign", "assign_add", "assign_add", "assign_sub"))
    return x and w.write("variable", f"{name}.{mode}({{0}})", x)
