"""Nodes of rewritten code: calls of ``operators``, functions of nothing, paths."""

from __future__ import annotations

import ast
import copy
from collections.abc import Sequence

from .names import RUNTIME


def attribute(name: str) -> ast.expr:
    return ast.Attribute(ast.Name(RUNTIME, ast.Load()), name, ast.Load())


def ours(
    name: str, args: Sequence[ast.expr], like: ast.AST, keywords: Sequence[ast.keyword] = ()
) -> ast.expr:
    return ast.copy_location(ast.Call(attribute(name), [*args], [*keywords]), like)


def sliced(node: ast.expr) -> ast.expr:
    """``a:b:c`` among the indices of an item, as the value that it is."""
    if not isinstance(node, ast.Slice):
        return node
    return ours("sliced", [part or ast.Constant(None) for part in (
        node.lower, node.upper, node.step)], node)


def calls_ours(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and (
        node.func.attr == name and isinstance(node.func.value, ast.Name)
        and node.func.value.id == RUNTIME)


def given(node: ast.expr) -> ast.expr:
    named = isinstance(node, ast.Name) or calls_ours(node, "attribute")
    return ours("given", [node], node) if named else node


def thunk(body: ast.expr, at_once: bool = False) -> ast.expr:
    """A function of nothing. What is computed ``at_once`` may bind names."""
    empty = ast.arguments([], [], None, [], [], None, [])
    if at_once:
        empty.args.append(ast.arg(f"{RUNTIME}_value"))
        empty.defaults.append(body)
        body = ast.copy_location(ast.Name(f"{RUNTIME}_value", ast.Load()), body)
        ast.copy_location(empty.args[0], body)
    return ast.copy_location(ast.Lambda(empty, body), body)


def path_node(path: str, context: ast.expr_context) -> ast.expr:
    first, *rest = path.split(".")
    node: ast.expr = ast.Name(first, ast.Load() if rest else context)
    for at, name in enumerate(rest):
        node = ast.Attribute(node, name, context if at == len(rest) - 1 else ast.Load())
    return node


def of_item(name: str, target: ast.expr, value: ast.expr) -> ast.expr:
    """A value as a function of the item that it is computed of: several targets are bound by
    ``[value for target in (item,)][0]``."""
    arguments = ast.arguments([], [ast.arg(name)], None, [], [], None, [])
    alone = ast.Tuple([ast.Name(name, ast.Load())], ast.Load())
    bound = ast.ListComp(value, [ast.comprehension(copy.deepcopy(target), alone, [], 0)])
    first = ast.Subscript(bound, ast.Constant(0), ast.Load())
    made = ast.Lambda(arguments, value if isinstance(target, ast.Name) else first)
    if isinstance(target, ast.Name):
        arguments.args[0].arg = target.id
    for part in ast.walk(made):
        if isinstance(part, (ast.expr, ast.arg)) and not hasattr(part, "lineno"):
            ast.copy_location(part, value)
    return made
