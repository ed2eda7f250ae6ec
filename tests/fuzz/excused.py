"""Where Weft need not do what NumPy does: the only exceptions, each with its reason.

1. *An unknown dim is never 1 by chance.* A dim that is unknown while tracing is taken to be equal
   to the dim that it meets, and that is checked (W105) when the sizes are known: at a call, in the
   interpreter, or while tracing where a known size already says no. To repeat a dim that happens
   to be 1 at run time would need another program for each such dim. ``unknown_dim`` accepts W105
   only where a value has a 1 that it has not for the sizes the program was drawn with.
2. *Python's own errors of arithmetic*: those of shifts by so many bits that no memory holds the
   number, and of numbers that no result needs. (-1.5) ** 0.5 is an error where Python has a complex
   number.
3. *Values that nothing depends on are not computed*, nor are their indices and numbers checked
   when they run: what the results do not need, and arrays without elements. The oracle accepts a
   missing error only if the results are the same, to the last bit, whatever that value is; and it
   compares with these results (``Jitter.fill``, ``Oracle.unneeded``).
4. *Python integers beyond 64 bits.* A traced one is an int64. Where arithmetic of Python numbers
   leaves that range, the step fails (W131) instead of going on with a larger number.
5. *Sizes that depend on values*: polynomials lose their leading zeros in NumPy. A step that meets
   one fails, and says that the size of the result is not known. So do valid parts of convolutions
   with vectors of unknown sizes, of which the second is the longer one, np.bincount of numbers
   that its ``minlength`` does not hold, and the residuals of np.linalg.lstsq where the rank is less
   than the columns.
6. *Reshapes inside of NumPy's functions* fail where there are no elements to tell a -1 by, as in
   np.median over two axes. Weft has a result.
7. *LAPACK gives up* on matrices with infinities or does not, by how they lie in memory.
   np.polymul of vectors with leading zeros is longer than NumPy's where only its size is used.
8. *np.take of nothing* does not look at its indices, unlike all other ways to index, nor does
   np.argpartition of no rows at its place.
9. *NumPy's numbers of integers* that an array cannot hold do not go into it, where its arrays of
   them wrap around. A number is an array without dims to Weft.
"""

from __future__ import annotations

import contextlib
import re
from dataclasses import replace
from typing import Any

import numpy as np

from weft.frontend.face import tree

from .data import kind_of
from .program import Program

_MEET = ("at", "in place", "buffer", "matmul", "row np.array_equal", "row np.array_equiv")


def unknown_dim(program: Program, problem: Any, shapes: list[Any], others: list[Any]) -> bool:
    """Exception 1: W105, where a dim is 1 that is another number for other sizes.

    ``shapes`` are those that the steps read and make; ``others`` the same for other arguments.
    """
    if not program.dynamic or getattr(problem, "code", "") != "W105":
        return False
    inside = any(step.feature in _MEET for step in program.all_steps())
    return inside or any(
        len(one) != len(other) or any(a == 1 != z for a, z in zip(one, other, strict=True))
        for usual in others for one, other in zip(shapes, usual, strict=False))


def excused(program: Program, problem: Any, oracle: Any, args: Any, calls: Any) -> bool:
    """Whether Weft may raise that, though NumPy does not: exceptions 1, 4, 5 and 8."""
    if getattr(problem, "code", "") == "W124" and "np.take(" in program.source(
            False) and not all(map(np.size, tree.leaves(args))):
        return True
    if getattr(problem, "code", "") == "W102" and "argpartition(" in program.source(
            False) and "kth=" in str(problem) and not all(map(np.size, tree.leaves(args))):
        return True
    if any(text in str(problem) for text in (
            "is not known", "shorter than the other", "a number of np.bincount",
            "has no residuals here", "did not converge")):
        return True
    if getattr(problem, "code", "") == "W131":
        oracle.shapes(args)
        return bool(oracle.jitter.beyond)
    others = [*calls, *(_zeros(program, size) for size in (0, 1, 13))]
    return unknown_dim(program, problem, oracle.shapes(args), [*map(oracle.shapes, others)])


def _zeros(program: Program, size: int) -> list[Any]:
    """Arguments of which all unknown dims have that size."""
    leaves = tuple(
        np.zeros([dim if isinstance(dim, int) else size for dim in leaf.dims], leaf.dtype)
        if leaf.kind == "array" else value
        for leaf, value in zip(program.leaves, program.argsets[0].leaves, strict=True))
    return program.arguments(replace(program.argsets[0], leaves=leaves), lambda array, _: array)


def of_python(program: Program, problem: Exception | None) -> bool:
    """Exception 2: NumPy itself raises neither; and exceptions 6 and 9."""
    beyond = re.match(r"Python integer (-?\d+) out of bounds", str(problem))
    if beyond is not None:  # of NumPy unless the program has it
        number = beyond.group(1)
        return number.removeprefix("-") not in program.source() and not any(
            str(value) == number for argset in program.argsets for leaf, value in zip(
                program.leaves, argset.leaves, strict=True) if leaf.kind == "int")
    return "newaxis)" in str(problem) or isinstance(
        problem, (ZeroDivisionError, MemoryError)) or str(problem) in (
        "negative shift count", "Python int too large to convert to C long")


def substitute(function: Any, operands: tuple[Any, ...], fill: int) -> Any:
    """Exception 3: any value of the shape that a step has whose index or number is out of range, or
    what it makes of other numbers in the place of those that are not finite.

    Raises what the step raises if that is not the reason.
    """
    if not all(np.all(np.isfinite(x)) for x in operands if kind_of(x) in "fc"):
        numbers = (np.where(np.isfinite(x), x, np.asarray(fill, np.asarray(x).dtype))[()]
                   if kind_of(x) in "fc" else x for x in operands)
        with contextlib.suppress(IndexError, OverflowError, ValueError):
            return function(*numbers)

    def plain(x: Any, number: int = 0) -> Any:
        if isinstance(x, int) and not isinstance(x, bool):
            return number
        return np.full_like(x, number) if kind_of(x) in "iu" else x

    first, *rest = operands
    shape, dtype = np.shape(first), np.asarray(first).dtype

    def made(first: Any) -> Any:
        return np.asarray(function(first, *map(plain, rest)))

    def widened(*axes: int) -> Any:
        """As if axes were long enough for any index, where the result says how long they are."""
        wide = [np.zeros([n if at in axes else dim for at, dim in enumerate(shape)], dtype)
                for n in (16, 17)]
        one, two = map(made, wide)
        if (one.shape, two.shape) == (wide[0].shape, wide[1].shape):
            return np.zeros(shape, one.dtype)
        dims = [a if a == z else 0 for a, z in zip(one.shape, two.shape, strict=True)]
        if 0 in dims and any(shape[axis] for axis in axes):
            raise IndexError("a result that is as long as the axis")
        return np.zeros(dims, one.dtype)

    tries = [lambda: made(first), lambda: made(plain(first)),
             *(lambda axis=axis: widened(axis) for axis in range(len(shape))),
             lambda: widened(*(axis for axis, dim in enumerate(shape) if not dim))]
    for attempt in tries:
        try:
            like = attempt()
            break
        except (IndexError, OverflowError, ValueError) as problem:
            last = problem
    else:
        raise last
    return filled(like, fill)


def filled(like: Any, fill: int) -> Any:
    """Values that nobody would take for others: the largest, the least, random ones."""
    kind, dtype = kind_of(like), like.dtype
    if fill < 2:
        most: Any = (False, True) if kind == "b" else (np.nan, 1e4) if kind in "fc" else (
            np.iinfo(dtype).min, np.iinfo(dtype).max)
        return np.full(like.shape, most[fill], dtype)[()]
    values = np.random.default_rng(fill).normal(size=like.shape) * 50
    return np.asarray(values > 0 if kind == "b" else values.astype("i8").astype(dtype) if (
        kind in "iu") else values.astype(dtype))[()]
