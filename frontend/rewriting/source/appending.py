"""Comprehensions of tuples that have conditions, as the loops that they stand for.

    near = [(i, j) for i in range(n) for j in range(i) if d[i, j] < r]

    list_ = []
    for i_ in range(n):
        for j_ in range(i_):
            if d[i_, j_] < r: list_.append((i_, j_))
    near = list_                              the names of a comprehension are its own

A list of tuples may grow round by round; to choose among all that there might be would compute them
all.
"""

from __future__ import annotations

import ast
import copy
from typing import Any

from .names import LIST, RUNTIME, SCOPES

_APART = (ast.Lambda, ast.NamedExpr, ast.Yield, ast.YieldFrom, ast.Await)  # of scopes of their own


def as_loops(function: ast.FunctionDef) -> None:
    """Changes the function in place."""
    function.body = _Loops().block(function.body)


class _Loops(ast.NodeTransformer):
    def __init__(self) -> None:
        self.count = 0

    def block(self, body: list[ast.stmt]) -> list[ast.stmt]:
        found: list[ast.stmt] = []
        for node in body:
            made = self.visit(node)
            found += made if isinstance(made, list) else [made]
        return found

    def visit(self, node: ast.AST) -> Any:
        return node if isinstance(node, SCOPES) else super().visit(node)

    def visit_Assign(self, node: ast.Assign) -> ast.stmt | list[ast.stmt]:
        return self._with_a_loop(node)

    def visit_Return(self, node: ast.Return) -> ast.stmt | list[ast.stmt]:
        return self._with_a_loop(node)

    def _with_a_loop(self, node: ast.Assign | ast.Return) -> ast.stmt | list[ast.stmt]:
        """The statement after the loop, if its value is such a list, or a function's of it."""
        value = node.value
        if isinstance(value, ast.ListComp) and _is_one(value):
            name, loop = self._loop(value, node)
            node.value = ast.copy_location(ast.Name(name, ast.Load()), value)
            return [*loop, node]
        if isinstance(value, ast.Call) and _is_plain(value.func) and value.args and isinstance(
                value.args[0], ast.ListComp) and _is_one(value.args[0]):
            name, loop = self._loop(value.args[0], node)
            value.args[0] = ast.copy_location(ast.Name(name, ast.Load()), value.args[0])
            return [*loop, node]
        return node

    def _loop(self, made: ast.ListComp, node: ast.stmt) -> tuple[str, list[ast.stmt]]:
        self.count += 1
        name = f"{LIST}{self.count}"
        own = {each.id: f"{RUNTIME}_each_{self.count}_{each.id}" for part in made.generators
               for each in ast.walk(part.target) if isinstance(each, ast.Name)}
        first = made.generators[0].iter
        made = _Renamed(own, first).visit(copy.deepcopy(made, {id(first): first}))
        append = ast.Call(ast.Attribute(ast.Name(name, ast.Load()), "append", ast.Load()),
                          [made.elt], [])
        body: ast.stmt = ast.Expr(append)
        for part in reversed(made.generators):
            for test in reversed(part.ifs):
                body = ast.If(test, [body], [])
            body = ast.For(part.target, part.iter, [body], [])
        start = ast.Assign([ast.Name(name, ast.Store())], ast.List([], ast.Load()))
        for each in ast.walk(start):  # which ends where the rest begins
            ast.copy_location(each, node)
            if isinstance(each, (ast.stmt, ast.expr)):
                each.end_lineno, each.end_col_offset = node.lineno, node.col_offset
        _place(body, made)
        return name, [start, body]


class _Renamed(ast.NodeTransformer):
    """Gives the names of a comprehension others; what it begins with is computed outside of it."""

    def __init__(self, names: dict[str, str], outside: ast.expr) -> None:
        self.names, self.outside = names, outside

    def visit(self, node: ast.AST) -> Any:
        return node if node is self.outside else super().visit(node)

    def visit_Name(self, node: ast.Name) -> ast.Name:
        node.id = self.names.get(node.id, node.id)
        return node


def _is_one(made: ast.ListComp) -> bool:
    return isinstance(made.elt, ast.Tuple) and any(part.ifs for part in made.generators) and not (
        any(part.is_async for part in made.generators)) and not any(
            isinstance(each, _APART) for each in ast.walk(made))


def _is_plain(function: ast.expr) -> bool:
    """Whether nothing is computed to get at a function: ``len``, ``np.array``."""
    while isinstance(function, ast.Attribute):
        function = function.value
    return isinstance(function, ast.Name)


def _place(made: ast.stmt, like: ast.AST) -> None:
    """Where nodes are that have no place yet."""
    for node in ast.walk(made):
        if isinstance(node, (ast.stmt, ast.expr)) and not hasattr(node, "lineno"):
            ast.copy_location(node, like)
