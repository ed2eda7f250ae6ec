"""Names that a loop binds and that are read behind it, before anything else binds them.

    for i in range(n):
        d = step(x)           i and d last, as what comes next of each is a read;
        if d < tol: break     a step without a round fails there
    return d, i
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from ....ir.record import field, record
from .names import COMPREHENSIONS, SCOPES, Place, begin_of, bound, end_of, here

_PARTS = ("body", "orelse", "handlers", "finalbody", "cases")


class Lasting(str):
    """A name whose value after a loop somebody may read."""

    __slots__ = ()


class Awaited(Lasting):
    """One that the statement behind the loop reads, whatever it finds."""

    __slots__ = ()


@record(frozen=True)
class Occurrences:
    """Where names of a function stand, in the order in which its text has them; what a statement
    reads comes before what it binds. ``sure``: what is read behind a loop that begins there."""

    found: tuple[tuple[Place, bool, str], ...] = ()  # the statement, whether it binds, the name
    sure: Mapping[Place, frozenset[str]] = field(default_factory=dict)

    @staticmethod
    def of(function: ast.FunctionDef) -> Occurrences:
        inner = {each for node in here(function.body) if isinstance(node, (ast.For, ast.While))
                 for each in here(node.body)}  # rounds around may have bound a name
        blocks = [block for node in here(function.body) for block in _blocks(node)]
        sure = {begin_of(each): frozenset(_surely(following))
                for block in [function.body, *blocks] for each, following in pairwise(block)
                if isinstance(each, ast.For) and each not in inner}
        return Occurrences(tuple(sorted(_in(function.body))), sure)

    def kind(self, loop: ast.AST, name: str) -> type[Lasting] | None:
        """What a name is behind a loop; None if it is bound again, or nobody has it."""
        behind = end_of(loop)
        binds = next((binds for place, binds, each in self.found
                      if each == name and place >= behind), True)
        if binds:
            return None
        return Awaited if name in self.sure.get(begin_of(loop), ()) else Lasting


def _blocks(node: ast.AST) -> Iterator[list[ast.stmt]]:
    for name in _PARTS:
        block = getattr(node, name, None)
        if isinstance(block, list) and block and isinstance(block[0], ast.stmt):
            yield block


def _own(statement: ast.stmt) -> Iterator[tuple[bool, str]]:
    """The names in a statement itself, not in those inside of it, and whether it binds them."""
    for field_name, child in ast.iter_fields(statement):
        if field_name in _PARTS:
            continue
        inner = child if isinstance(child, list) else [child]
        for node in here([each for each in inner if isinstance(each, ast.AST)]):
            if isinstance(node, ast.Name):
                yield not isinstance(node.ctx, ast.Load), node.id
    if isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
        yield False, statement.target.id


def _in(statements: Sequence[ast.stmt]) -> Iterator[tuple[Place, bool, str]]:
    for node in here(statements):
        if isinstance(node, ast.stmt):
            for binds, name in _own(node):
                yield begin_of(node), binds, name


def _surely(statement: ast.stmt) -> Iterator[str]:
    """What a statement reads whatever it finds, unless it binds that itself."""
    own = bound([statement])
    todo: list[Any] = [child for name, child in ast.iter_fields(statement) if name not in _PARTS]
    while todo:
        node = todo.pop()
        if isinstance(node, list):
            todo += node
        elif isinstance(node, ast.Name):
            if isinstance(node.ctx, ast.Load) and node.id not in own:
                yield node.id
        elif isinstance(node, ast.BoolOp):
            todo.append(node.values[0])
        elif isinstance(node, ast.IfExp):
            todo.append(node.test)
        elif isinstance(node, ast.Compare):
            todo += [node.left, node.comparators[0]]
        elif isinstance(node, ast.AST) and not isinstance(node, (*SCOPES, *COMPREHENSIONS)):
            todo += list(ast.iter_child_nodes(node))
