"""Sizes that may be known: i64 arithmetic folded while it is written, loops and masks over it.

A ``Size`` is an int where the extent is static and the name of an i64 value where it is symbolic.
What is known costs no text: constants fold, a loop of one step is no loop, and a vector loop whose
extent is a multiple of its width has no masked tail.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from ..text import FunctionText

Size = int | str

_FOLD: dict[str, Callable[[int, int], int]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul,
    "sdiv": operator.floordiv, "srem": operator.mod, "smin": min, "smax": max,
}
_NEUTRAL = {("add", 0), ("sub", 0), ("mul", 1), ("sdiv", 1)}


def integer(f: FunctionText, name: str, a: Size, b: Size) -> Size:
    """``a name b`` on i64, folded where it is known: static extents cost no text."""
    if isinstance(a, int) and isinstance(b, int):
        return _FOLD[name](a, b)
    if (name, b) in _NEUTRAL:
        return a
    if (name, a) in (("add", 0), ("mul", 1)):
        return b
    if name in ("mul", "srem") and (0 in (a, b) or (name, b) == ("srem", 1)):
        return 0
    if name in ("smin", "smax"):
        return f.call("i64", f"llvm.{name}.i64", ("i64", str(a)), ("i64", str(b)))
    wrap = "" if name in ("sdiv", "srem") else " nsw"
    return f(f"{name}{wrap} i64 {a}, {b}")


def ceil_div(f: FunctionText, extent: Size, step: int) -> Size:
    """How many steps cover ``extent`` (not negative)."""
    return integer(f, "sdiv", integer(f, "add", extent, step - 1), step)


@contextmanager
def span(f: FunctionText, count: Size) -> Iterator[Size]:
    """``for index in range(count)``; no loop is written where count is known to be one."""
    if count == 1:
        yield 0
        return
    with f.loop("0", str(count)) as index:
        yield index


def maybe(f: FunctionText, condition: str | None) -> AbstractContextManager[None]:
    """Run the body if ``condition`` holds; None: always."""
    return nullcontext() if condition is None else f.when(condition)


def strips(
    f: FunctionText, count: Size, width: int, even: bool = False
) -> Iterator[tuple[Size, str | None]]:
    """Vectors over ``range(count)`` as (offset, mask).

    The body of the caller's ``for`` is written at most twice: in a loop over whole vectors (mask
    None) and for the rest; ``even``: there is no rest.
    """
    rest = 0 if even else integer(f, "srem", count, width)
    whole = integer(f, "sub", count, rest)
    if whole == width:
        yield 0, None
    elif whole != 0:
        with f.loop("0", str(whole), width) as offset:
            yield offset, None
    if rest != 0:
        with maybe(f, None if isinstance(rest, int) else f(f"icmp ne i64 {rest}, 0")):
            yield whole, prefix_mask(f, width, rest)


def prefix_mask(f: FunctionText, width: int, count: Size) -> str:
    """``<width x i1>``: the first ``count`` lanes (none where it is negative)."""
    if isinstance(count, int):
        return "<" + ", ".join(f"i1 {int(lane < count)}" for lane in range(width)) + ">"
    vector = f"<{width} x i32>"
    near = f.call("i64", "llvm.smin.i64", ("i64", count), ("i64", str(width)))
    near = f.call("i64", "llvm.smax.i64", ("i64", near), ("i64", "0"))
    one = f(f"insertelement {vector} poison, i32 {f(f'trunc i64 {near} to i32')}, i64 0")
    many = f(f"shufflevector {vector} {one}, {vector} poison, {vector} zeroinitializer")
    iota = "<" + ", ".join(f"i32 {lane}" for lane in range(width)) + ">"
    return f(f"icmp slt {vector} {iota}, {many}")
