"""Lists that are heaps (``heapq``) and nothing else, of which nobody sees in which order they are.

    heap = [(0, start)]                    a list, of which the least item is looked for
    d, u = heapq.heappop(heap)             d, u = _weft.heappop(heapq.heappop, heap)
    heapq.heappush(heap, (d + 1, v))       _weft.heappush(heapq.heappush, heap, (d + 1, v))
    heap[0]                                _weft.least((heapq.heappop, heapq.heappush), heap)

Whether these are the functions of ``heapq``, ``_weft`` asks. A name is bound to new lists only, and
all that is read of it else is its length and its truth.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator, Mapping

from .names import RUNTIME, here
from .own_lists import bindings, is_new, truths

_FUNCTIONS = frozenset({"heappush", "heappop", "heapify"})


def as_heaps(function: ast.FunctionDef) -> None:
    """Changes the function in place."""
    nodes = list(here(function.body))
    names = {argument.id for node in nodes for argument in _heap(node)}
    names -= {name for node in nodes for name, value in bindings(node) if not is_new(value)}
    fine = {place for node in nodes for place in _uses(node)}
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node not in fine:
            names.discard(node.id)
        elif isinstance(node, (ast.Global, ast.Nonlocal, ast.arg)):
            names -= {node.arg} if isinstance(node, ast.arg) else {*node.names}
    functions: dict[str, dict[str, ast.expr]] = {name: {} for name in names}
    for node in nodes:
        for heap in _heap(node):
            if heap.id in functions and isinstance(node, ast.Call):
                functions[heap.id][ast.dump(node.func)] = node.func
    _Heaps({name: [*found.values()] for name, found in functions.items()}).visit(function)


def _heap(node: ast.AST) -> Iterator[ast.Name]:
    """The list that a call of such a function is given."""
    if isinstance(node, ast.Call) and not node.keywords and node.args and (
            getattr(node.func, "id", getattr(node.func, "attr", "")) in _FUNCTIONS) and isinstance(
                node.args[0], ast.Name):
        yield node.args[0]


def _uses(node: ast.AST) -> Iterator[ast.AST]:
    yield from _heap(node)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "len":
        yield from node.args
    elif _is_first(node):
        yield node.value  # type: ignore[attr-defined]
    elif isinstance(node, (ast.If, ast.While, ast.IfExp, ast.Assert)):
        yield from truths(node.test)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield from truths(node.operand)


def _is_first(node: ast.AST) -> bool:
    return isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load) and isinstance(
        node.slice, ast.Constant) and node.slice.value == 0


class _Heaps(ast.NodeTransformer):
    def __init__(self, functions: Mapping[str, list[ast.expr]]) -> None:
        self.functions = functions  # by the names of lists, what is called with them

    def visit_Call(self, node: ast.Call) -> ast.Call:
        self.generic_visit(node)
        for heap in _heap(node):
            if heap.id in self.functions:
                name = getattr(node.func, "id", getattr(node.func, "attr", ""))
                node.args[:0] = [node.func]
                node.func = _ours(name, node)
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        self.generic_visit(node)
        if _is_first(node) and isinstance(node.value, ast.Name) and (
                node.value.id in self.functions):
            asked = ast.Tuple(copy.deepcopy(self.functions[node.value.id]), ast.Load())
            made = ast.Call(_ours("least", node), [asked, node.value], [])
            return ast.fix_missing_locations(ast.copy_location(made, node))
        return node


def _ours(name: str, like: ast.AST) -> ast.expr:
    made = ast.Attribute(ast.Name(RUNTIME, ast.Load()), name, ast.Load())
    return ast.fix_missing_locations(ast.copy_location(made, like))
