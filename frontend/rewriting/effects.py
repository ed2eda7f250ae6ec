"""Whether statements do nothing but compute and bind names: then they may run once for all rounds.

What they call must be functions of modules that compute, or methods that only read: whether it is,
shows when the names stand for something (``counting``).
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Sequence

from .names import here, path_of

_STATEMENTS = (ast.Assign, ast.AugAssign, ast.If, ast.While, ast.For, ast.Pass, ast.Expr)
_EXPRESSIONS = (
    ast.Name, ast.Constant, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp,
    ast.Subscript, ast.Slice, ast.Tuple, ast.List, ast.Attribute, ast.Call, ast.keyword,
    ast.operator, ast.unaryop, ast.boolop, ast.cmpop, ast.expr_context)
_METHODS = frozenset({
    "all", "any", "argmax", "argmin", "argsort", "astype", "clip", "conj", "copy", "cumprod",
    "cumsum", "diagonal", "dot", "fill", "flatten", "max", "mean", "min", "nonzero", "prod",
    "ravel", "repeat", "reshape", "round", "squeeze", "std", "sum", "swapaxes", "take", "trace",
    "transpose", "var"})


def only_computes(
    body: Sequence[ast.stmt], target: ast.AST, own: Collection[str], runtime: str
) -> tuple[str, ...] | None:
    """The names around the function that the statements of a loop call, or call methods of; None
    if they may do more than compute.

    ``own`` are the names of the function, ``runtime`` that of what rewritten code calls. A power of
    a round's number may be larger than a traced integer.
    """
    counts = {each.id for each in ast.walk(target) if isinstance(each, ast.Name)}
    roots: dict[str, None] = {}
    for node in here(body):
        if not isinstance(node, (*_STATEMENTS, *_EXPRESSIONS)):
            return None
        if isinstance(node, ast.For):
            counts |= {each.id for each in ast.walk(node.target) if isinstance(each, ast.Name)}
        if isinstance(node, (ast.Attribute, ast.Subscript)) and not isinstance(node.ctx, ast.Load):
            if isinstance(node, ast.Attribute) or _root(node) not in own:
                return None
        elif isinstance(node, ast.Call):
            if not _reads(node.func, own):
                return None
        elif isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Pow, ast.LShift)) and any(
                isinstance(each, ast.Name) and each.id in counts for each in ast.walk(node.right)):
            return None
        if isinstance(node, ast.Call):
            root = _root(node.func)
            if root is not None and root not in own and root != runtime:
                roots[root] = None
    return tuple(roots)


def _root(node: ast.AST) -> str | None:
    """The name that an element of an element, or an attribute of one, begins with."""
    while isinstance(node, (ast.Subscript, ast.Attribute)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def _reads(function: ast.expr, own: Collection[str]) -> bool:
    """Whether a call may be one that only reads, as far as names tell."""
    path = path_of(function)
    if path is not None and path.partition(".")[0] not in own:
        return "random" not in path
    return isinstance(function, ast.Attribute) and function.attr in _METHODS
