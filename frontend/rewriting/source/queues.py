"""Deques of which nobody can tell that they are none: they become lists.

    queue = deque([start])         queue = _weft.queue(deque, [start])
    while queue:
        u = queue.popleft()        u = _weft.popleft(queue)
        queue.append(v)

A name is bound to new deques only, and is read where a list does what a deque does. Whether what
it calls is ``collections.deque``, ``_weft.queue`` asks.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from .names import RUNTIME, here, pairs
from .own_lists import asked_by

_METHODS = frozenset({"append", "popleft", "pop", "extend", "clear"})
_ASKING = frozenset({"len", "sum", "max", "min", "sorted", "any", "all", "list", "tuple", "bool"})


def as_lists(function: ast.FunctionDef) -> None:
    """Changes the function in place."""
    new = {name: value for node in here(function.body) for name, value in _bindings(node)
           if _is_deque(value)}
    if not new:
        return
    fine = {place for node in here(function.body) for place in _uses(node)}
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and node.id in new and node not in fine:
            del new[node.id]
        elif isinstance(node, (ast.Global, ast.Nonlocal, ast.arg)):
            for name in [node.arg] if isinstance(node, ast.arg) else node.names:
                new.pop(name, None)
    _Lists(frozenset(new)).visit(function)


def _is_deque(value: ast.AST | None) -> bool:
    return isinstance(value, ast.Call) and len(value.args) <= 1 and not value.keywords and (
        getattr(value.func, "id", getattr(value.func, "attr", "")) == "deque")


def _targets(node: ast.AST) -> list[ast.expr]:
    if isinstance(node, ast.Assign):
        return node.targets
    return [node.target] if isinstance(node, ast.AnnAssign) else []


def _bindings(node: ast.AST) -> list[tuple[str, ast.AST | None]]:
    """The names that an assignment binds, and to what."""
    value, targets = getattr(node, "value", None), _targets(node)
    return list(pairs(targets[0], value)) if value is not None and len(targets) == 1 else []


def _uses(node: ast.AST) -> Iterator[ast.AST]:
    """Names in places where a list can be."""
    known = dict(_bindings(node))
    if known:
        yield from (part for target in _targets(node) for part in (
                        target.elts if isinstance(target, ast.Tuple) else [target])
                    if isinstance(part, ast.Name) and _is_deque(known.get(part.id)))
    elif isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute) and node.func.attr in _METHODS and (
                node.func.attr != "pop" or not node.args):
            yield node.func.value
        if isinstance(node.func, ast.Name) and node.func.id in _ASKING:
            yield from node.args
    elif isinstance(node, ast.Subscript) and not isinstance(node.slice, ast.Slice):
        yield node.value
    elif isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.In, ast.NotIn)):
        yield node.comparators[0]
    else:
        yield from asked_by(node)


class _Lists(ast.NodeTransformer):
    def __init__(self, names: frozenset[str]) -> None:
        self.names = names

    def visit(self, node: ast.AST) -> Any:
        for name, value in _bindings(node):
            if name in self.names and isinstance(value, ast.Call):
                value.args[:0] = [value.func]
                value.func = _ours("queue", value)
        return super().visit(node)

    def visit_Call(self, node: ast.Call) -> ast.Call:
        self.generic_visit(node)
        if isinstance(node.func, ast.Attribute) and node.func.attr == "popleft" and isinstance(
                node.func.value, ast.Name) and node.func.value.id in self.names:
            node.args = [node.func.value]
            node.func = _ours("popleft", node.func)
        return node


def _ours(name: str, like: ast.AST) -> ast.expr:
    made = ast.Attribute(ast.Name(RUNTIME, ast.Load()), name, ast.Load())
    return ast.fix_missing_locations(ast.copy_location(made, like))
