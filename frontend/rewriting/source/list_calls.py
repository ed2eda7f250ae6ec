"""Lists of one name in rewritten code: they are bound anew where ``extend`` and ``+=`` change them,
and let go where they are returned."""

from __future__ import annotations

import ast
from collections.abc import Sequence, Set
from types import MappingProxyType
from typing import Any

from .exits import Results
from .names import here
from .nodes import attribute, ours
from .own_lists import OwnLists, returned


def let_go(function: ast.FunctionDef, lists: OwnLists, results: Results) -> None:
    """Let lists that are returned be those of who calls the function; but for those of ``results``,
    which are let go at the end."""
    for node in here(function.body):
        if isinstance(node, ast.Return) and node.value is not None:
            kept = [item for name, item in zip(
                results.names, results.items(node.value), strict=True) if name in results.own]
            values = {value for value in returned(node.value) if value not in kept
                      and isinstance(value, ast.Name) and value.id in lists.at(value)}
            node.value = Around("let_go", values).visit(node.value)


_CALLS = MappingProxyType({("extend", 1): "extended", ("insert", 2): "inserted"})


class Extending(ast.NodeTransformer):
    """``a.extend(b)``, ``a.insert(i, b)`` and ``a += b`` of such lists bind them anew."""

    def __init__(self, lists: OwnLists) -> None:
        self.lists = lists

    def visit_Expr(self, node: ast.Expr) -> ast.stmt:
        call = node.value
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and (
                (call.func.attr, len(call.args)) in _CALLS and not call.keywords):
            name = _CALLS[call.func.attr, len(call.args)]
            return self._bound(name, call.func.value, call.args, node)
        return node

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.stmt:
        return self._bound("extended", node.target, [node.value], node) if isinstance(
            node.op, ast.Add) else node

    def _bound(self, name: str, target: ast.expr, values: Sequence[ast.expr], node: ast.stmt,
               ) -> ast.stmt:
        if not (isinstance(target, ast.Name) and target.id in self.lists.at(node)):
            return node
        made = ours(name, [ast.Name(target.id, ast.Load()), *values], node)
        return ast.copy_location(ast.Assign([ast.Name(target.id, ast.Store())], made), node)


class Moved(ast.NodeTransformer):
    """Lists that are handed on by another name have one name: the old one has no value."""

    def __init__(self, moved: Set[ast.AST]) -> None:
        self.moved = moved

    def visit_Assign(self, node: ast.Assign) -> ast.stmt | list[ast.stmt]:
        if node not in self.moved or not isinstance(node.value, ast.Name):
            return node
        source = ast.copy_location(ast.Name(node.value.id, ast.Store()), node.value)
        ended = ast.Assign([source], attribute("UNBOUND"))
        for each in ast.walk(ended):
            ast.copy_location(each, node)
        return [node, ended]


class Around(ast.NodeTransformer):
    """Puts a call of ours around some expressions."""

    def __init__(self, name: str, values: Set[ast.AST]) -> None:
        self.name, self.values = name, values

    def visit(self, node: ast.AST) -> Any:
        inner = self.generic_visit(node)
        if node in self.values and isinstance(inner, ast.expr):
            return ours(self.name, [inner], node)
        return inner
