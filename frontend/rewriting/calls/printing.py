r"""``print`` in traced code: the host prints, when the program runs.

    print(f"at most {x.max():.3f}")     told = host_call(Print("at most \x020\x03"), told, x.max())

``told`` is a variable of the function, which counts its lines: so they come in order, in branches
and loops too, and none is left out. The examples of a batch have no order: what a function under
``vmap`` prints, it prints while it is traced.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...tracing.arrays.buffer import TracedBuffer
from ...tracing.arrays.selection import Selection
from ...tracing.arrays.variable import Variable
from ...tracing.context.lanes import lane_numbers
from ...tracing.context.recorder import ACTIVE
from ...tracing.host import host_call
from ...tracing.values.texts import filled, place, writing
from ..regions.state import is_traced

_DIRECTIVE = re.compile(r"%(?:\((\w+)\))?[#0\- +]*(?:\d+)?(?:\.\d+)?([diouxXeEfFgGcrsa%])")


@dataclass(frozen=True, eq=False)
class Print:
    """What a line says, and how: as a function of the values that it has places for, which are
    arrays, Python's ``numbers``, or ``chosen``, an array and a mask."""

    texts: tuple[str, ...]
    options: Mapping[str, Any]
    places: tuple[tuple[str, Callable[[Any], str]], ...]

    def __call__(self, count: Any, *arrays: Any) -> Any:
        left = iter(arrays)
        parts = []
        for kind, written in self.places:
            value = next(left)
            if kind == "chosen":
                value = value[next(left)]
            elif value.ndim == 0:
                value = value.item() if kind == "number" else value[()]
            parts.append(written(value))
        print(*(filled(text, parts) for text in self.texts), **self.options)
        return count + 1


def printed(function: Callable[..., Any], said: Callable[[], tuple[Any, Any]]) -> None:
    """``print(*args, **options)``, where ``said`` gives arguments and options."""
    ctx = ACTIVE.get()
    if function is not print or ctx is None:
        args, options = said()
        function(*args, **options)
        return
    with writing() as holes:
        args, options = said()
        texts = tuple([_text(arg) for arg in args])
    if ctx.endless or lane_numbers():
        parts = [repr(hole.value) for hole in holes]
        function(*(filled(text, parts) for text in texts), **options)
        return
    root = ctx.root
    if root.told is None:
        root.told = Variable(np.int64(0), "told", trainable=False)
    operands = [part for hole in holes for part in _parts(hole.value)]
    line = Print(texts, options, tuple([(_kind(hole.value), hole.written) for hole in holes]))
    root.told.assign(host_call(line, "i64[]", root.told, *operands))


def _text(arg: Any) -> str:
    if isinstance(arg, TracedBuffer):
        arg = arg.traced()
    if isinstance(arg, Selection):
        return place(arg, str) or ""
    return str(arg)


def _parts(value: Any) -> Sequence[Any]:
    return (value.array, value.mask) if isinstance(value, Selection) else (value,)


def _kind(value: Any) -> str:
    return "chosen" if isinstance(value, Selection) else "number" if value.weak else "array"


def percent(form: Any, values: Any) -> Any:
    """``form % values``, of a text."""
    given = values if isinstance(values, (tuple, dict)) else (values,)
    if not isinstance(form, str) or not any(map(
            is_traced, given.values() if isinstance(given, dict) else given)):
        return form % values
    left = iter(() if isinstance(given, dict) else given)

    def one(found: re.Match[str]) -> str:
        if found[2] == "%":
            return "%"
        value = given[found[1]] if isinstance(given, dict) else next(left)
        directive = found[0].replace(f"({found[1]})", "", 1)
        made = place(value, lambda x: directive % (x,)) if is_traced(value) else None
        return directive % (value,) if made is None else made

    return _DIRECTIVE.sub(one, form)
