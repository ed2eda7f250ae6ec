"""What statements bind and change: names and attributes of them, as texts such as ``self.h``.

Changed are also the arrays, lists and dicts that a statement writes into (``x[i] = v``,
``out.append(v)``): whether a call of a method changes its object is found out when it is traced.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from ...face.source import RUNTIME as RUNTIME

Place = tuple[int, int]  # a line and a column
LIST = f"{RUNTIME}_list_"  # and a number: the list that a comprehension makes (``appending``)
SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def begin_of(node: ast.AST) -> Place:
    """Where a node begins."""
    return getattr(node, "lineno", 0), getattr(node, "col_offset", 0)


def end_of(node: ast.AST) -> Place:
    """Where it ends."""
    return getattr(node, "end_lineno", 0), getattr(node, "end_col_offset", 0)


def path_of(node: ast.AST) -> str | None:
    """``a`` or ``a.b.c``; None for any other expression."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        base = path_of(node.value)
        return None if base is None else f"{base}.{node.attr}"
    return None


def here(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """The nodes and all in them, but for what runs in a scope of its own."""
    todo = list(nodes)[::-1]
    while todo:
        node = todo.pop()
        yield node
        if not isinstance(node, SCOPES):
            todo += list(ast.iter_child_nodes(node))[::-1]


def changed(statements: Iterable[ast.AST]) -> tuple[str, ...]:
    """The paths that statements bind or may change, in the order in which they come."""
    found: dict[str, None] = {}
    hidden = _targets_of_comprehensions(statements := list(statements))
    for node in here(statements):
        for path in _paths(node):
            if path not in hidden:
                found[path] = None
    return tuple(found)


def bound(statements: Iterable[ast.AST]) -> frozenset[str]:
    """The names that statements bind in their own scope."""
    hidden = _targets_of_comprehensions(statements := list(statements))
    return frozenset(path for node in here(statements) if not isinstance(
        node, (ast.Attribute, ast.Subscript, ast.Call)) for path in _paths(node)) - hidden


def _targets_of_comprehensions(statements: Iterable[ast.AST]) -> set[str]:
    """Names that only comprehensions bind, which have scopes of their own."""
    inside: set[str] = set()
    outside: set[str] = set()
    todo = [(node, False) for node in statements]
    while todo:
        node, within = todo.pop()
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            (inside if within else outside).add(node.id)
        if not isinstance(node, SCOPES):
            for child in ast.iter_child_nodes(node):
                todo.append((child, within or (isinstance(node, ast.comprehension)
                                               and child is node.target)))
    return inside - outside


def _paths(node: ast.AST) -> Iterator[str]:
    if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, (ast.Store, ast.Del)):
        path = path_of(node)
        if path is not None:
            yield path
    elif isinstance(node, ast.Subscript) and isinstance(node.ctx, (ast.Store, ast.Del)):
        base: ast.AST = node.value
        while isinstance(base, ast.Subscript):
            base = base.value
        path = path_of(base)
        if path is not None and not (isinstance(base, ast.Attribute) and base.attr in _VIEWS):
            yield path
    elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        yield node.name
    elif isinstance(node, (ast.Import, ast.ImportFrom)):
        for alias in node.names:
            yield (alias.asname or alias.name).partition(".")[0]
    elif isinstance(node, ast.ExceptHandler) and node.name:
        yield node.name
    elif isinstance(node, ast.Call):
        yield from _of_call(node)


def changed_within(node: ast.AST) -> frozenset[str]:
    """The names and attributes that code changes anywhere, functions in it included."""
    return frozenset([path for each in ast.walk(node) for path in _paths(each)])


def changed_by_ours(node: ast.AST) -> str | None:
    """The name of the list that a call of what rewritten code asks for changes; None for others."""
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and getattr(
            node.func.value, "id", "") == RUNTIME and node.func.attr in _LISTS):
        return None
    return getattr(node.args[_LISTS[node.func.attr]], "id", None)


def _of_call(node: ast.Call) -> Iterator[str]:
    """The object of a method that may change it, and ``out=`` arrays."""
    if (changed := changed_by_ours(node)) is not None:
        yield changed
    if isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name):
        if node.func.attr in _CHANGING:
            yield node.func.value.id
        if node.func.attr in _FILLING and node.args:  # np.add.at(x, i, v) is not told from x.at
            path = path_of(node.args[0])
            if path is not None:
                yield path
    elif isinstance(node.func, ast.Attribute):
        base = path_of(node.func.value)
        if base is not None and node.func.attr in _CHANGING:
            yield base
        if node.func.attr == "at" and node.args:
            path = path_of(node.args[0])
            if path is not None:
                yield path
    for keyword in node.keywords:
        if keyword.arg == "out":
            path = path_of(keyword.value)
            if path is not None:
                yield path


_LISTS = {"popleft": 0, "heappush": 1, "heappop": 1, "heapify": 1}  # which argument is the list
# Of an array, these are views, which nothing is bound to: who writes there writes to its memory.
_VIEWS = frozenset({"T", "mT", "flat", "real", "imag"})
_CHANGING = frozenset({
    "append", "extend", "insert", "pop", "remove", "clear", "update", "setdefault", "popitem",
    "add", "discard", "sort", "reverse", "fill", "partition", "put", "itemset", "resize"})
_FILLING = frozenset({"copyto", "put", "place", "putmask", "put_along_axis", "fill_diagonal"})


def pairs(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, ast.AST | None]]:
    """The names that a target binds, and to what, if an assignment says that for each."""
    if isinstance(target, ast.Name):
        yield target.id, value
    elif isinstance(target, (ast.Tuple, ast.List)):
        parts = value.elts if isinstance(value, (ast.Tuple, ast.List)) and len(
            value.elts) == len(target.elts) else [None] * len(target.elts)
        for each, part in zip(target.elts, parts, strict=True):
            if isinstance(each, ast.Name):
                yield each.id, part
