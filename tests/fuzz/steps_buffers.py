"""Steps that fill arrays of their own, in place: buffers, views of views, writes, loops.

One step is a small program of its own:

    b0 = np.zeros((3, *{0}.shape))      an array
    b1 = b0[1:, ::-1]                   views of it, and of them
    b1[0] += {0}                        writes, which reach all of them
    for i in range(1, 3): b0[i] = ...   loops
    {out} = b0

It grows line by line, as programs do; a line that NumPy refuses is dropped. All of it is exact.
"""

from __future__ import annotations

import re
import warnings
from types import MappingProxyType
from typing import Any

import numpy as np

from .data import COMPUTED, DTYPES, is_half
from .steps_views import subscript
from .writer import Value, Writer, step

LINES = (3, 9)
FLOATS = ("f2", "bfloat16", "c8", "c16")


class Page:
    """The lines of one step, and what their names hold for each set of sizes."""

    errors: Any = MappingProxyType({"all": "ignore"})  # of floating point

    def __init__(self, w: Writer, operands: list[Value]) -> None:
        self.w, self.operands = w, operands
        self.lines: list[str] = []
        self.arrays: list[str] = []
        self.spaces = [{**space, **{f"_{at}": np.array(x.samples[n]) for at, x in enumerate(
            operands)}} for n, space in enumerate(w.spaces)]

    def add(self, line: str, name: str = "") -> bool:
        """Run and keep a line, if NumPy can for all sizes; what fails half way ends the page."""
        for space in self.spaces:
            try:
                with warnings.catch_warnings(action="ignore"), np.errstate(**self.errors):
                    exec(line, space)
            except Exception:  # whatever NumPy or Python have against it
                return False
            made = space.get(name, 0)
            if name and (not isinstance(made, np.ndarray) or made.size > self.w.limit
                         or made.ndim > 4 or made.dtype not in COMPUTED):
                return False
        self.lines.append(line)
        if name:
            self.arrays.append(name)
        return True

    def value(self, name: str) -> Value:
        return Value(name, tuple(space[name] for space in self.spaces))

    def array(self) -> str:
        return str(self.w.one(self.arrays))

    def source(self) -> str:
        """Something to write: an operand, an element or row of one, another array, a number."""
        w = self.w
        at = w.rng.randrange(len(self.operands))
        x = f"_{at}"
        options = [x, x, str(w.one(("0", "1", "2.5", "-3", "True", "np.float32(0.5)"))),
                   self.array(), f"{x} * 2", f"{x} + {self.array()}"]
        if self.operands[at].rank:
            options += [f"{x}[{subscript(w, self.operands[at], x)}]", f"{x}[0]", f"{x}[-1]"]
        return str(w.one(options))


@step("buffer", 35, smooth=True)
def buffer(w: Writer) -> Any:
    chosen = [w.certain(lambda value: value.kind == "f" or not w.smooth) for _ in range(2)]
    operands = list({x.name: x for x in chosen if x is not None}.values())
    if not operands:
        return None
    page = Page(w, operands)
    _array(page)
    wanted = w.rng.randint(*LINES)
    for _ in range(4 * wanted):
        if not page.arrays:
            _array(page)
        elif len(page.lines) < wanted:
            maker, = w.rng.choices((_array, _view, _write, _ufunc, _method, _loop),
                                   (1, 3, 6, 3, 2, 2))
            maker(page)
    if len(page.lines) < 2:
        return None
    text = "\n".join([*page.lines, f"{{out}} = {page.array()}"])
    escaped = text.replace("{", "{{").replace("}", "}}").replace("{{out}}", "{out}")
    template = re.sub(r"\b_(\d)\b", r"{\1}", escaped)
    names = {name: f"{w.prefix}{len(w.steps)}{name}" for name in page.arrays}
    for name, own in names.items():  # of two steps in one function
        template = re.sub(rf"\b{name}\b", own, template)
    return w.write("buffer", template, *operands, options=tuple(_kinds(page.lines)))


def _kinds(lines: list[str]) -> set[str]:
    """What the lines do, for the count of what was drawn."""
    words = ("np.zeros", "np.empty", "np.full", "np.arange", "np.eye", "np.linspace", "np.array",
             "_like", "copy()", ".at(", "fill(", "np.copyto", "put_along_axis", "out=", "sort(",
             "for ", "+=", ".T", "reshape", "np.put(", "np.putmask", "where=")
    return {word for word in words if any(word in line for line in lines)}


def _array(page: Page) -> None:
    w, name = page.w, f"b{len(page.arrays)}"
    n = w.rng.randint(1, 4)
    # Floats beyond an integer dtype: what they are then is C's affair.
    floats = [f"_{at}" for at, value in enumerate(page.operands) if value.kind in "fc"]
    x = w.one(floats) if floats else f"_{w.rng.randrange(len(page.operands))}"
    if floats:
        dtype = w.one(("", "", ", 'f8'")) if w.smooth else w.one(
            ("", "", ", 'f4'", ", 'f8'", f", {w.one(FLOATS)!r}"))
    else:
        dtype = w.one(("", "", f", {w.one(DTYPES)!r}", f", dtype={x}.dtype"))
    shape = w.one((f"{x}.shape", f"{x}.shape", f"({n}, *{x}.shape)", f"(*{x}.shape, {n})",
                   str(n), f"({n}, 2)", f"{x}.shape[0]", f"({x}.shape[0], {n})"))
    kind = w.one(("zeros", "zeros", "ones", "empty", "full", "arange", "eye", "linspace", "like",
                  "copy", "array", "asarray"))
    if kind == "empty":
        if page.add(f"{name} = np.empty({shape}{dtype})", name) and not page.add(
                w.one((f"{name}.fill(2)", f"{name}[...] = {x}", f"{name}[:] = {x}"))):
            page.add(f"{name}.fill(1)")
        return
    page.add(f"{name} = " + {
        "zeros": f"np.zeros({shape}{dtype})", "ones": f"np.ones({shape}{dtype})",
        "full": f"np.full({shape}, {w.one(('2.0' if floats else '2', '0.5', f'{x}[0]', x))}"
                f"{dtype})",
        "arange": f"np.arange({w.one((n, f'{x}.shape[0]', f'{x}.size'))}"
                  f"{', dtype=float' if floats else ''})",
        "eye": f"np.eye({w.one((n, f'{x}.shape[0]'))})",
        "linspace": f"np.linspace(0, 1, {n + 1})",
        "like": f"np.{w.one(('zeros', 'ones'))}_like({x})", "copy": f"np.array({x})",
        "array": w.one((f"np.array([{x}, {x}])", f"np.array([{x}[0], {x}[-1]])",
                        f"np.array([[{x}[0], 1], [0, {x}[1]]])", f"np.array({x})",
                        f"np.array([{x} + 1, 2 * {x}])")),
        "asarray": f"np.asarray({x}) * 1"}[kind], name)


def _view(page: Page) -> None:
    w, base, name = page.w, page.array(), f"b{len(page.arrays)}"
    x = page.value(base)
    options = [f"{base}.T", f"{base}[None]", f"{base}[..., None]", f"{base}.reshape(-1)",
               f"{base}.ravel()", f"{base}[...]", f"np.atleast_2d({base})"]
    if x.rank:
        options += [f"{base}[{subscript(w, x, base)}]"] * 6
        options += [f"np.flip({base})", f"{base}[0]", f"{base}[-1]", f"{base}[::-1]"]
    if x.rank > 1:
        options += [f"{base}[:, 0]", f"np.swapaxes({base}, 0, 1)", f"np.moveaxis({base}, 0, -1)",
                    f"{base}.diagonal().copy()"]
    page.add(f"{name} = {w.one(options)}", name)


def _index(page: Page, to: str) -> str:
    """A place to write to: a basic index, a mask, or whole numbers in an array."""
    w, x = page.w, page.value(to)
    if not x.rank:
        return "..."
    number = next((f"_{at}" for at, value in enumerate(page.operands)
                   if value.kind in "iu" and value.rank == 1), None)
    options = [subscript(w, x, to)] * 4 + ["...", ":", "0", "-1", f"{to} > 0", "[0, -1]", "1:",
                                           "[0, 0, -1]", "np.arange(2)"]
    if number is not None:
        options += [f"{number} % {to}.shape[0]"] * 3
    options += [f"_{at} > 0" for at, value in enumerate(page.operands) if value.shapes == x.shapes]
    if x.rank > 1:
        options += ["0, -1", ":, 0", "..., -1", "np.arange(2), np.arange(2)"]
    return str(w.one(options))


def _write(page: Page) -> None:
    w, to = page.w, page.array()
    sign = w.one(("=", "=", "=", "+=", "+=", "-=", "*="))
    if sign != "=" and w.yes(0.4):
        page.add(f"{to} {sign} {page.source()}")
    else:
        index, source = _index(page, to), page.source()
        if index.endswith("> 0") and source[0] in "_bx":  # which would have to be as many
            source = f"({source})[{index}]"
        page.add(f"{to}[{index}] {sign} {source}")


def _ufunc(page: Page) -> None:
    w, to = page.w, page.array()
    name = w.one(("add", "subtract", "multiply"))
    left, right = page.source(), page.source()
    at = f"np.{w.one(('add', 'add', 'subtract'))}.at({to}, {_index(page, to)}, {right})"
    if is_half(page.value(to).samples[0]):  # NumPy rounds at each of several equal indices
        at = f"np.square({to}, out={to})"
    page.add(w.one((
        f"np.{name}({left}, {right}, out={to})", f"np.{name}({to}, {right}, out={to})",
        f"np.{name}({to}, {right}, out={to}, where={to} > 0)", f"np.square({to}, out={to})", at,
        f"np.cumsum({to}, axis=0, out={to})" if page.value(to).kind not in "fc" else
        f"np.copysign({to}, 2, out={to})", f"np.clip({to}, -1, 2, out={to})")))


def _method(page: Page) -> None:
    w, to = page.w, page.array()
    source = page.source()
    page.add(w.one((
        f"{to}.fill({w.one(('3', '0', '_0[0]'))})", f"np.copyto({to}, {source})",
        f"np.copyto({to}, {source}, where={to} > 0)", f"np.fill_diagonal({to}, {source})",
        f"np.put_along_axis({to}, np.argmax({to}, axis=0, keepdims=True), {source}, 0)",
        f"np.put_along_axis({to}, np.zeros((1, *{to}.shape[1:]), int), {source}, 0)",
        f"np.putmask({to}, {to} > 0, {source})",
        f"{to}[:] = {source}" if w.symbols else f"np.put({to}, [0, -1], {source})",  # not into none
        f"{to}.sort(kind='stable')", f"{to}.sort(axis=0, kind='stable')",
        f"np.place({to}, {to} > 1, 7)", f"{to}[...] = {to}[::-1]",
        f"{to}[:] = np.sort({to}, axis=-1, kind='stable')")))


def _loop(page: Page) -> None:
    """Over time, over rows, over what is unpacked; rows of large arrays take even NumPy minutes."""
    if page.w.limit > 4000:
        return
    w, to = page.w, page.array()
    other = page.array()
    half = "* 0.5" if page.value(to).kind in "fc" else "// 2"  # no floats beyond an integer dtype
    page.add(w.one((
        f"for i in range(1, len({to})): {to}[i] = {to}[i - 1] {half} + {page.source()}",
        f"for i in range(len({to})): {to}[i] += i * {page.source()}",
        f"for i in range(1, len({to})): {to}[i] += {to}[i - 1]",
        f"for i in range(3): {to}[...] = {to} + {page.source()}",
        f"for i in range(2): {to}[i], {other}[i] = {other}[i], {to}[i]",
        f"for row in {to}: row[...] = row + 1",
        f"for row in {to}: row += {page.source()}",
        f"for i, row in enumerate({other}): {to}[i] = row",
        f"for i, row in enumerate(_0): {to}[i] = row",
        f"for a, z in zip({to}, {other}): a[...] = z * 2",
        f"{to}[0], {to}[1] = _0[1], _0[0]", f"a, *z = {to}; a[...] = len(z)",
        f"{to}[...] = sum([*_0])", f"{to}[...] = sum([_0, _0])")))
