"""Whether statements do nothing but compute and bind names: then they may run once for all rounds.

What they call must be functions that only compute, or methods that only read: what the names stand
for shows when a loop begins (``counting``).
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Collection, Sequence
from types import CodeType

from .names import bound, here, path_of
from .own_lists import GROWING
from .parsed import definition_of

_STATEMENTS = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.If, ast.While, ast.For, ast.Pass,
               ast.Expr, ast.Return, ast.Break, ast.Continue, ast.With, ast.withitem)
_EXPRESSIONS = (
    ast.Name, ast.Constant, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp,
    ast.Subscript, ast.Slice, ast.Tuple, ast.List, ast.Dict, ast.Attribute, ast.Call, ast.keyword,
    ast.ListComp, ast.GeneratorExp, ast.comprehension,
    ast.operator, ast.unaryop, ast.boolop, ast.cmpop, ast.expr_context)
_MANAGERS = frozenset({"errstate"})  # which change no value
_METHODS = frozenset({
    "all", "any", "argmax", "argmin", "argsort", "astype", "clip", "conj", "copy", "cumprod",
    "cumsum", "diagonal", "dot", "fill", "flatten", "max", "mean", "min", "nonzero", "prod",
    "ravel", "repeat", "reshape", "round", "squeeze", "std", "sum", "swapaxes", "take", "trace",
    "transpose", "var"})


def of_loop(
    node: ast.For | ast.While, own: Collection[str], runtime: str, lists: Collection[str]
) -> tuple[str, ...] | None:
    """The names that the body of a loop calls, or calls methods of, and methods of what it does not
    bind itself (``model.step``); None if it may do more than compute. ``own`` are the names of the
    function, ``lists`` those of which nobody else has the list (``own_lists``), ``runtime`` the
    name of what rewritten code calls.
    """
    found = (_called(node.body, own, _names(node.target), lists=lists) if isinstance(node, ast.For)
             else _called([ast.Expr(node.test), *node.body], own, None, lists=lists))
    return None if found is None else tuple(name for name in found if name != runtime)


def of_element(
    node: ast.ListComp | ast.GeneratorExp, own: Collection[str], runtime: str
) -> tuple[str, ...] | None:
    """The same of the elements of a comprehension of one ``for``."""
    target = _names(node.generators[0].target)
    found = _called([ast.copy_location(ast.Expr(node.elt), node)], {*own, *target}, target,
                    made=target)
    return None if found is None else tuple(name for name in found if name != runtime)


@functools.lru_cache(1024)
def of_function(code: CodeType) -> tuple[str, ...] | None:
    """The same of a function of the user's; None as well if its source is not at hand."""
    node = definition_of(code)
    if node is None:
        return None
    body = [ast.Expr(node.body)] if isinstance(node, ast.Lambda) else node.body
    given = code.co_varnames[:code.co_argcount + code.co_kwonlyargcount]
    return _called(body, {*given, *bound(body)}, None)


def _called(
    body: Sequence[ast.stmt], own: Collection[str], counts: Collection[str] | None,
    lists: Collection[str] = (), made: Collection[str] = (),
) -> tuple[str, ...] | None:
    """``made`` are names that are bound for each round, as those in the body are. ``counts`` are
    the names of rounds' numbers, a power of which may be larger than a traced integer (None: any
    name may be one); what is linear in them is judged when it is traced."""
    inner = {name for node in here(body) if isinstance(node, ast.For) or (
                 isinstance(node, ast.comprehension) and _names(node.iter) != {"range"})
             for name in _names(node.target)}
    roots: dict[str, None] = {}
    made = {*made, *bound(body)}
    for node in here(body):
        if not isinstance(node, (*_STATEMENTS, *_EXPRESSIONS)):
            return None
        if isinstance(node, (ast.Attribute, ast.Subscript)) and not isinstance(node.ctx, ast.Load):
            root = _root(node)
            if isinstance(node, ast.Attribute) or root not in own:
                return None
        elif isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Pow, ast.LShift)):
            names = set[str]() if _is_float(node.left) else _numbers(node.right)
            if names if counts is None else names & {*counts, *inner} and not _is_linear(
                    node.right):
                return None
        elif isinstance(node, ast.withitem):
            call = node.context_expr
            if not isinstance(call, ast.Call) or _last_name(call.func) not in _MANAGERS:
                return None
        elif isinstance(node, ast.Call):
            root = _root(node.func)
            if isinstance(node.func, ast.Attribute) and isinstance(
                    node.func.value, ast.Name) and root in lists and node.func.attr in GROWING:
                continue
            if root is None or (root in own and isinstance(node.func, ast.Attribute)):
                if not isinstance(node.func, ast.Attribute):
                    return None
                if node.func.attr not in _METHODS:
                    path = path_of(node.func)
                    if path is None or root in made:
                        return None
                    roots[path] = None
            elif "random" in (path_of(node.func) or "random"):
                return None
            else:
                roots[root] = None
    return tuple(roots)


def _names(node: ast.AST) -> set[str]:
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}


def _numbers(node: ast.AST) -> set[str]:
    """The names of which an expression is computed, but for those of arrays and of places in
    them."""
    if isinstance(node, ast.Subscript):
        return set()
    own = {node.id} if isinstance(node, ast.Name) else set[str]()
    return own.union(*map(_numbers, ast.iter_child_nodes(node)))


def _is_float(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, float)


def _is_linear(node: ast.expr) -> bool:
    """Whether an expression is a sum of names and numbers, which may have known factors."""
    match node:
        case ast.Name() | ast.Constant():
            return True
        case ast.UnaryOp(ast.USub() | ast.UAdd(), inner):
            return _is_linear(inner)
        case ast.BinOp(left, ast.Add() | ast.Sub(), right):
            return _is_linear(left) and _is_linear(right)
        case ast.BinOp(left, ast.Mult(), right):
            return _is_linear(left) and _is_linear(right) and any(
                isinstance(each, ast.Constant) for each in (left, right))
    return False


def _last_name(node: ast.AST) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _root(node: ast.AST) -> str | None:
    """The name that an element of an element, or an attribute of one, begins with."""
    while isinstance(node, (ast.Subscript, ast.Attribute)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None
