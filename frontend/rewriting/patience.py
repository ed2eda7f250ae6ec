"""When a function is traced again because its loops would draw thousands of nodes.

    for i in range(1, n):                   the trace as it stands draws n * m rounds; as soon as
        for j in range(1, m):               these are PATIENCE nodes, it is given up: the rewritten
            T[i, j] = T[i-1, j] + ...       copy is traced, and its loops are the program's

What compiles quickly is left as it is. Loops that are in no loop are given more time, unless they
have MANY iterations: where their rounds are equal, they are found in the graph (``passes/roll``),
gradients of them too.
"""

from __future__ import annotations

import ast
import functools
import inspect
import linecache
import sys
from collections.abc import Mapping
from types import FrameType
from typing import Any

import numpy as np

from ..tracing.context.recorder import TraceContext
from ..tracing.source import is_internal
from ..tracing.trace import trace_function
from ..tracing.values.tracer import Tracer
from .source.effects import of_loop
from .source.names import bound
from .source.own_lists import OwnLists, own_lists

PATIENCE = 2000  # nodes: a third of a second, about
LONG = 10_000    # nodes, from which on a loop that is in none is too much as well
MANY = 1000      # iterations of a loop that is given half of the nodes
_DEEP = 2        # loops around what is traced
_TRACING = inspect.unwrap(trace_function).__code__


class LongError(BaseException):
    """The trace that goes on is given up. No handler of the user's is for it."""


def grown(ctx: TraceContext) -> int:
    """Up to how many nodes a graph is let grow; raises LongError in loops that may be the
    program's. What is differentiated is left as it is: sums of tangents have an order."""
    size = len(ctx.graph.nodes)
    if size >= PATIENCE // 2 and not ctx.derivatives and not ctx.caught:
        loops = _around()
        if (len(loops) >= (_DEEP if size < LONG else 1) and size >= PATIENCE) or any(
                length >= MANY for length in loops.values()):
            raise LongError
    return max(PATIENCE // 2, size + PATIENCE // 4)


def _around() -> Mapping[tuple[str, int], int]:
    """The loops of the user's that only compute and that the running line is in, with how many
    iterations they have, 0 where nobody knows; those of rewritten copies, too, which have the lines
    of what they are of."""
    found: dict[tuple[str, int], int] = {}
    frame = sys._getframe(1).f_back
    while frame is not None and frame.f_code is not _TRACING:
        if not is_internal(frame):
            name = frame.f_code.co_filename
            for loop in _loops("".join(linecache.getlines(name)), frame.f_lineno):
                place = name, loop.lineno
                found[place] = max(found.get(place, 0), _length(loop.iter, frame))
        frame = frame.f_back
    return found


def _length(items: ast.expr, frame: FrameType) -> int:
    """How many items an expression has in a frame, as far as that shows without running it."""
    if isinstance(items, ast.Name):
        value = _value(items.id, frame)
        if isinstance(value, (np.ndarray, Tracer)):
            return value.shape[0] if value.ndim and type(value.shape[0]) is int else 0
        return len(value) if type(value) in (list, tuple, dict, range) else 0
    if not isinstance(items, ast.Call):
        return 0
    if isinstance(items.func, ast.Attribute) and items.func.attr in ("items", "keys", "values"):
        return _length(items.func.value, frame)
    name = items.func.id if isinstance(items.func, ast.Name) else ""
    if name == "range" and not items.keywords:
        bounds = [_number(each, frame) for each in items.args]
        return len(range(*bounds)) if None not in bounds and 0 not in bounds[2:] else 0
    lengths = [_length(each, frame) for each in items.args]
    if name in ("enumerate", "reversed"):
        return lengths[0] if lengths else 0
    return min(filter(None, lengths), default=0) if name == "zip" else 0


def _number(x: ast.expr, frame: FrameType) -> Any:
    """An integer that a bound of a range is; None where that does not show."""
    if isinstance(x, ast.Call) and isinstance(x.func, ast.Name) and x.func.id == "len" and x.args:
        return _length(x.args[0], frame) or None
    if isinstance(x, ast.BinOp) and isinstance(x.op, (ast.Add, ast.Sub)):
        left, right = _number(x.left, frame), _number(x.right, frame)
        if left is None or right is None:
            return None
        return left + right if isinstance(x.op, ast.Add) else left - right
    if isinstance(x, ast.UnaryOp) and isinstance(x.op, ast.USub):
        number = _number(x.operand, frame)
        return None if number is None else -number
    value = x.value if isinstance(x, ast.Constant) else (
        _value(x.id, frame) if isinstance(x, ast.Name) else None)
    return value if type(value) is int else None


def _value(name: str, frame: FrameType) -> Any:
    return frame.f_locals.get(name, frame.f_globals.get(name))


@functools.lru_cache(1024)
def _loops(text: str, line: int) -> tuple[ast.For, ...]:
    """The loops around a line, if they are in a function and only compute."""
    node, own, lists, found = _parsed(text), frozenset[str](), OwnLists(), []
    while node is not None:
        if isinstance(node, ast.FunctionDef):
            own = bound(node.body) | {each.arg for each in (
                *node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)}
            lists = own_lists(node)
        elif isinstance(node, ast.For) and own and of_loop(
                node, own, "", lists.at(node)) is not None:
            found.append(node)
        node = next((inner for inner in ast.iter_child_nodes(node) if isinstance(
            inner, ast.stmt) and inner.lineno <= line <= (inner.end_lineno or 0)), None)
    return tuple(found)


@functools.lru_cache(16)
def _parsed(text: str) -> ast.AST | None:
    try:
        return ast.parse(text)
    except SyntaxError:
        return None
