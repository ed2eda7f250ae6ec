"""Lists that nobody but one name of a function has, and which the function makes longer or shorter.

    peaks = []                    the name is bound to new lists only, and is read where no other
    peaks.append(i)               name, object or function can get to have the list: its items, its
    return np.array(peaks)        methods, NumPy's functions and those that ask for its length

Such a list may become another thing where its length is decided when the function runs.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Set

from .names import RUNTIME, changed_by_ours, here

GROWING = frozenset({"append", "pop", "extend", "clear"})
_METHODS = GROWING | {"copy", "index", "count", "insert", "remove", "reverse", "sort"}
_ASKING = frozenset({"len", "sum", "max", "min", "sorted", "any", "all", "list", "tuple", "set",
                     "print", "str", "bool", "bisect", "bisect_left", "bisect_right"})
_LAZY = frozenset({"enumerate", "zip", "reversed", "map", "filter"})  # ask as they are asked
_MODULES = frozenset({"np", "numpy", "math", "weft", "scipy", "special", "linalg",
                      "bisect"})


def own_lists(function: ast.FunctionDef) -> frozenset[str]:
    """The names of such lists."""
    bound, growing, shared = set[str](), set[str](), set[str]()
    fine: set[ast.AST] = set()
    for node in here(function.body):
        fine.update(_reads(node))
        for name, value in bindings(node):
            if is_new(value):
                bound.add(name)
            elif not _is_made(value):
                shared.add(name)
        growing.update(_grown(node))
        if isinstance(node, ast.For):  # rounds go on as what they are over grows
            changed = {name for each in here(node.body) for name in _grown(each)}
            shared.update(each.id for each in asked(node.iter)
                          if isinstance(each, ast.Name) and each.id in changed)
    for node in here(function.body):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node not in fine:
            shared.add(node.id)
        elif isinstance(node, (ast.Global, ast.Nonlocal)):
            shared.update(node.names)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            shared.update(each.id for each in ast.walk(node) if isinstance(each, ast.Name))
    arguments = {each.arg for each in ast.walk(function.args) if isinstance(each, ast.arg)}
    return frozenset((bound & growing) - shared - arguments)


def bindings(node: ast.AST) -> Iterator[tuple[str, ast.AST | None]]:
    """Names that a node binds, and to what, if it is said there."""
    if isinstance(node, ast.Assign) and len(node.targets) == 1:
        yield from pairs(node.targets[0], node.value)
    elif isinstance(node, ast.AnnAssign) and node.value is not None:
        yield from pairs(node.target, node.value)
    elif isinstance(node, ast.Assign):
        yield from ((each.id, None) for target in node.targets for each in ast.walk(target)
                    if isinstance(each, ast.Name))
    elif isinstance(node, (ast.For, ast.comprehension)):
        yield from ((each.id, None) for each in ast.walk(node.target)
                    if isinstance(each, ast.Name))
    elif isinstance(node, ast.With):
        yield from ((each.id, None) for item in node.items if item.optional_vars is not None
                    for each in ast.walk(item.optional_vars) if isinstance(each, ast.Name))
    elif isinstance(node, ast.NamedExpr):
        yield node.target.id, None


def pairs(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, ast.AST | None]]:
    if isinstance(target, ast.Name):
        yield target.id, value
    elif isinstance(target, (ast.Tuple, ast.List)):
        parts = value.elts if isinstance(value, (ast.Tuple, ast.List)) and len(
            value.elts) == len(target.elts) else [None] * len(target.elts)
        for each, part in zip(target.elts, parts, strict=True):
            if isinstance(each, ast.Name):
                yield each.id, part


def is_new(value: ast.AST | None) -> bool:
    """Whether an expression makes a list."""
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Mult):
        return is_new(value.left)
    return isinstance(value, (ast.List, ast.ListComp)) or _is_ours(value, "queue") or (
        isinstance(value, ast.Call) and isinstance(value.func, ast.Name)
        and value.func.id in ("list", "sorted"))


def _is_made(value: ast.AST | None) -> bool:
    """Whether an expression makes something that nobody else has, or no list."""
    if isinstance(value, ast.Call):
        root = value.func
        while isinstance(root, ast.Attribute):
            root = root.value
        return value.func is not root and isinstance(root, ast.Name) and root.id in _MODULES
    return isinstance(value, (ast.Constant, ast.BinOp, ast.Compare))


def _is_ours(value: ast.AST | None, name: str) -> bool:
    """Whether it is a call of what rewritten code asks for (``queues``)."""
    return isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and (
        value.func.attr == name and getattr(value.func.value, "id", "") == RUNTIME)


def to_grow(function: ast.FunctionDef, lists: Set[str]) -> set[ast.AST]:
    """Expressions that make such lists, of what may have as many items as values say."""
    return {value for node in here(function.body) for name, value in bindings(node)
            if name in lists and isinstance(value, (ast.ListComp, ast.Call))}


def _grown(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and isinstance(
            node.func.value, ast.Name) and node.func.attr in GROWING:
        yield node.func.value.id
    elif (path := changed_by_ours(node)) is not None:
        yield path
    elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
        yield node.target.id


def _reads(node: ast.AST) -> Iterator[ast.AST]:
    """Expressions of which a node asks no more than what is in them."""
    if isinstance(node, ast.Subscript):
        yield node.value
        yield from node.slice.elts if isinstance(node.slice, ast.Tuple) else (node.slice,)
    elif isinstance(node, ast.Attribute) and not hasattr(list, node.attr):
        yield node.value  # which is no list there
    elif isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute) and node.func.attr in _METHODS:
            yield node.func.value
            if node.func.attr == "extend":
                yield from node.args
        if changed_by_ours(node) is not None or _is_ours(node, "least"):
            yield from node.args
        if _only_asks(node.func):
            for argument in node.args:
                yield from asked(argument)
    elif isinstance(node, (ast.For, ast.comprehension)):
        yield from asked(node.iter)
    elif isinstance(node, (ast.If, ast.While, ast.IfExp, ast.Assert)):
        yield from truths(node.test)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield from truths(node.operand)
    elif isinstance(node, ast.BoolOp):
        yield from node.values[:-1]
    elif isinstance(node, ast.Compare):
        yield from (node.left, *node.comparators)
    elif isinstance(node, ast.BinOp):
        yield from (node.left, node.right)
    elif isinstance(node, ast.Return) and node.value is not None:
        yield from returned(node.value)


def returned(value: ast.expr) -> Iterator[ast.expr]:
    """The values in a nest that a function returns."""
    parts = value.elts if isinstance(value, (ast.Tuple, ast.List)) else (
        value.values if isinstance(value, ast.Dict) else None)
    if parts is None:
        yield value
    else:
        for part in parts:
            yield from returned(part)


def asked(value: ast.expr) -> Iterator[ast.expr]:
    """What is asked for its items at once."""
    yield value
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and (
            value.func.id in _LAZY):
        for argument in value.args:
            yield from asked(argument)


def truths(test: ast.expr) -> Iterator[ast.AST]:
    """Expressions of which no more than the truth is asked."""
    yield test
    if isinstance(test, ast.BoolOp):
        for value in test.values:
            yield from truths(value)


def _only_asks(function: ast.expr) -> bool:
    """Whether a function keeps nothing of its arguments."""
    if isinstance(function, ast.Name):
        return function.id in _ASKING
    while isinstance(function, ast.Attribute):
        function = function.value
    return isinstance(function, ast.Name) and function.id in _MODULES
