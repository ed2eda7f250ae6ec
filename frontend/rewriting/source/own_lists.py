"""Lists that nobody but one name of a function has, and which the function makes longer or shorter.

    peaks = []                    the name is bound to new lists only, and is read where no other
    peaks.append(i)               name, object or function can get to have the list: its items, its
    peaks = np.array(peaks)       methods, NumPy's functions and those that ask for its length;
                                  from here on the name is another thing's
    stack = peaks                 one is handed on where it is not read by its old name (``moves``)

Such a list may become another thing where its length is decided when the function runs.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Sequence

from ....ir.record import record, replace
from .moves import Move, moves_of
from .names import RUNTIME, Place, begin_of, changed_by_ours, end_of, here, pairs

GROWING = frozenset({"append", "insert", "pop", "extend", "clear"})
_METHODS = GROWING | {"copy", "index", "count", "remove", "reverse", "sort"}
_ASKING = frozenset({"len", "sum", "max", "min", "sorted", "any", "all", "list", "tuple", "set",
                     "print", "str", "repr", "bool", "bisect", "bisect_left", "bisect_right"})
_LAZY = frozenset({"enumerate", "zip", "reversed", "map", "filter"})  # ask as they are asked
_MODULES = frozenset({"np", "numpy", "math", "weft", "scipy", "special", "linalg",
                      "bisect"})


_START, _END = (0, 0), (1 << 60, 0)


@record(frozen=True)
class OwnLists:
    """From where to where a name has such lists. A statement of the function's own body that binds
    a name, ``peaks = np.array(peaks)``, ends what it was before."""

    lives: tuple[tuple[str, Place, Place], ...] = ()
    trusted: tuple[str, ...] = ()  # names of modules and builtins that it relies on
    rows: frozenset[str] = frozenset()  # names of whose lists' items nobody has one that is a list
    moved: frozenset[ast.AST] = frozenset()  # assignments after which such a name has none any more

    def at(self, node: ast.AST) -> frozenset[str]:
        """The names of such lists where a node stands."""
        return self._names(begin_of(node))

    def after(self, node: ast.AST) -> frozenset[str]:
        """Those behind it."""
        return self._names(end_of(node))

    def with_names(self, names: Collection[str], rows: Collection[str] = ()) -> OwnLists:
        """These and other names that have such lists everywhere, some with such ``rows``."""
        more = tuple([(name, _START, _END) for name in sorted(names)])
        return replace(self, lives=(*self.lives, *more), rows=self.rows.union(rows))

    def _names(self, place: Place) -> frozenset[str]:
        return frozenset(name for name, begin, end in self.lives if begin <= place < end)


def own_lists(function: ast.FunctionDef) -> OwnLists:
    """The names of such lists."""
    found = _Lives(function)
    nodes = [*here(function.body)]
    moves = moves_of(function)
    handed: list[ast.AST | None] = [move.source for move in moves]
    fine: set[ast.AST] = {move.source for move in moves}
    for node in nodes:
        fine.update(_reads(node))
        for name, value in bindings(node):
            if value in handed:
                found.note(found.new, name, node, binds=True)
            elif is_new(value) or not _is_made(value):
                found.note(found.new if is_new(value) else found.shared, name, node, binds=True)
        for name in _grown(node):
            found.note(found.growing, name, node)
        if isinstance(node, ast.For):  # rounds go on as what they are over grows
            changed = {name for each in here(node.body) for name in _grown(each)}
            for each in asked(node.iter):
                if isinstance(each, ast.Name) and each.id in changed:
                    found.note(found.shared, each.id, each)
    for node in nodes:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node not in fine:
            found.note(found.shared, node.id, node)
        elif isinstance(node, (ast.Global, ast.Nonlocal)):
            found.anywhere.update(node.names)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            found.anywhere.update(
                each.id for each in ast.walk(node) if isinstance(each, ast.Name))
    found.anywhere.update(each.arg for each in ast.walk(function.args) if isinstance(each, ast.arg))
    trusted = {name.id for name in nodes if isinstance(name, ast.Name) and isinstance(
        name.ctx, ast.Load) and name.id in _MODULES | _ASKING | _LAZY}
    found.tie(moves)
    own = OwnLists(tuple(found.own()), tuple(sorted(trusted)), _with_rows(nodes))
    return replace(own, moved=frozenset(
        move.node for move in moves if move.ends and move.source.id in own.at(move.source)
        and move.target in own.after(move.node)))


def _with_rows(nodes: Sequence[ast.AST]) -> frozenset[str]:
    """Names to which lists are appended as they are written, ``curve.append([t, x])``, and of which
    nothing but numbers is read: ``curve[i][0]``, ``for t, x in curve``, ``np.array(curve)``."""
    grown: set[str] = set()
    fine: set[ast.AST] = set()
    for node in nodes:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and isinstance(
                node.func.value, ast.Name) and node.func.attr == "append" and (
                    len(node.args) == 1 and _is_row(node.args[0])):
            grown.add(node.func.value.id)
            fine.add(node.func.value)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and isinstance(
                node.value.func, ast.Attribute) and node.value.func.attr in ("pop", "clear"):
            fine.add(node.value.func.value)  # nobody takes what is popped
        if isinstance(node, ast.Call) and (
                isinstance(node.func, ast.Attribute) or getattr(node.func, "id", "") == "len") and (
                only_asks(node.func)):
            fine.update(node.args)
        elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load) and isinstance(
                node.value, ast.Subscript) and not isinstance(node.value.slice, ast.Slice):
            fine.add(node.value.value)
        elif isinstance(node, (ast.For, ast.comprehension)) and isinstance(node.target, ast.Tuple):
            fine.add(node.iter)
        elif isinstance(node, ast.Return) and node.value is not None:
            fine.update(returned(node.value))
    return frozenset(grown.difference(
        node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
        and node not in fine))


def _is_row(value: ast.expr) -> bool:
    """Whether an expression makes a list of what are no lists, as far as it says."""
    return isinstance(value, ast.List) and not any(
        isinstance(each, (ast.Starred, ast.List, ast.ListComp)) for each in value.elts)


class _Lives:
    """What is known of names in each part of a function: between two statements of its own body
    that bind them."""

    def __init__(self, function: ast.FunctionDef) -> None:
        self.bounds: dict[str, list[Place]] = {}  # where these statements end
        self.binders: set[ast.AST] = set()
        for node in function.body:
            if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(
                    node.targets[0], ast.Name):
                self.bounds.setdefault(node.targets[0].id, []).append(
                    (node.end_lineno or 0, node.end_col_offset or 0))
                self.binders.add(node)
        self.new, self.growing, self.shared = (set[tuple[str, int]]() for _ in range(3))
        self.anywhere: set[str] = set()  # names that are shared in all parts

    def note(self, kind: set[tuple[str, int]], name: str, node: ast.AST, binds: bool = False,
             ) -> None:
        """Something is so of a name where a node stands, or after a statement that ``binds`` it."""
        kind.add(self._part(name, node, binds))

    def _part(self, name: str, node: ast.AST, binds: bool) -> tuple[str, int]:
        place = begin_of(node)
        part = sum(end <= place for end in self.bounds.get(name, ()))
        # A statement that ends where it begins (``appending``) is among those before it.
        return name, part + (binds and node in self.binders and end_of(node) > place)

    def tie(self, moves: Sequence[Move]) -> None:
        """What is so of a list's name is so of the one that it was handed on by."""
        more = True
        while more:
            more = False
            for move in moves:
                pair = (self._part(move.source.id, move.source, False),
                        self._part(move.target, move.node, True))
                for kind in (self.growing, self.shared):
                    if not kind.isdisjoint(pair) and not kind.issuperset(pair):
                        kind.update(pair)
                        more = True
                names = {move.source.id, move.target}
                if not self.anywhere.isdisjoint(names) and not self.anywhere.issuperset(names):
                    self.anywhere |= names
                    more = True

    def own(self) -> Iterator[tuple[str, Place, Place]]:
        for name, part in sorted((self.new & self.growing) - self.shared):
            if name not in self.anywhere:
                ends = [_START, *self.bounds.get(name, ()), _END]
                yield name, ends[part], ends[part + 1]


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


def to_grow(function: ast.FunctionDef, lists: OwnLists) -> set[ast.AST]:
    """Expressions that make such lists, of what may have as many items as values say."""
    return {value for node in here(function.body) for name, value in bindings(node)
            if name in lists.after(node) and isinstance(value, (ast.ListComp, ast.Call))}


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
        if only_asks(node.func):
            for argument in node.args:
                yield from asked(argument)
    elif isinstance(node, ast.FormattedValue):
        yield node.value
    elif isinstance(node, ast.BoolOp):
        yield from node.values[:-1]
    elif isinstance(node, ast.Compare):
        yield from (node.left, *node.comparators)
    elif isinstance(node, ast.BinOp):
        yield from (node.left, node.right)
    elif isinstance(node, ast.Return) and node.value is not None:
        yield from returned(node.value)
    else:
        yield from asked_by(node)


def asked_by(node: ast.AST) -> Iterator[ast.AST]:
    """What a loop asks for its items, a condition for its truth."""
    if isinstance(node, (ast.For, ast.comprehension)):
        yield from asked(node.iter)
    elif isinstance(node, (ast.If, ast.While, ast.IfExp, ast.Assert)):
        yield from truths(node.test)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield from truths(node.operand)


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


def only_asks(function: ast.expr) -> bool:
    """Whether a function keeps nothing of its arguments."""
    if isinstance(function, ast.Name):
        return function.id in _ASKING
    while isinstance(function, ast.Attribute):
        function = function.value
    return isinstance(function, ast.Name) and function.id in _MODULES
