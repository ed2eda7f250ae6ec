"""When a function is traced again because its loops would draw thousands of nodes.

    for i in range(1, n):                   the trace as it stands draws n * m rounds; as soon as
        for j in range(1, m):               these are PATIENCE nodes, it is given up: the rewritten
            T[i, j] = T[i-1, j] + ...       copy is traced, and its loops are the program's

What compiles quickly is left as it is. Loops that are in no loop are given more time: where their
rounds are equal, they are found in the graph (``passes/roll``), gradients of them too.
"""

from __future__ import annotations

import ast
import functools
import inspect
import linecache
import sys

from ..tracing.context.recorder import TraceContext
from ..tracing.source import is_internal
from ..tracing.trace import trace_function
from .source.effects import of_loop
from .source.names import bound
from .source.own_lists import OwnLists, own_lists

PATIENCE = 2000  # nodes: a third of a second, about
LONG = 10_000    # nodes, from which on a loop that is in none is too much as well
_DEEP = 2        # loops around what is traced
_TRACING = inspect.unwrap(trace_function).__code__


class LongError(BaseException):
    """The trace that goes on is given up. No handler of the user's is for it."""


def grown(ctx: TraceContext) -> int:
    """Up to how many nodes a graph is let grow; raises LongError in loops that may be the
    program's. What is differentiated is left as it is: sums of tangents have an order."""
    size = len(ctx.graph.nodes)
    if size >= PATIENCE and not ctx.derivatives and not ctx.caught and (
            _depth() >= (_DEEP if size < LONG else 1)):
        raise LongError
    return max(PATIENCE, size + PATIENCE // 4)


def _depth() -> int:
    """How many loops of the user's that only compute the running line is in; those of rewritten
    copies, too, which have the lines of what they are of."""
    found: set[tuple[str, int]] = set()
    frame = sys._getframe(1).f_back
    while frame is not None and frame.f_code is not _TRACING:
        if not is_internal(frame):
            name = frame.f_code.co_filename
            found.update((name, line) for line in _loops(
                "".join(linecache.getlines(name)), frame.f_lineno))
        frame = frame.f_back
    return len(found)


@functools.lru_cache(1024)
def _loops(text: str, line: int) -> tuple[int, ...]:
    """Where the loops around a line begin, if they are in a function and only compute."""
    node, own, lists, found = _parsed(text), frozenset[str](), OwnLists(), []
    while node is not None:
        if isinstance(node, ast.FunctionDef):
            own = bound(node.body) | {each.arg for each in (
                *node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)}
            lists = own_lists(node)
        elif isinstance(node, ast.For) and own and of_loop(
                node, own, "", lists.at(node)) is not None:
            found.append(node.lineno)
        node = next((inner for inner in ast.iter_child_nodes(node) if isinstance(
            inner, ast.stmt) and inner.lineno <= line <= (inner.end_lineno or 0)), None)
    return tuple(found)


@functools.lru_cache(16)
def _parsed(text: str) -> ast.AST | None:
    try:
        return ast.parse(text)
    except SyntaxError:
        return None
