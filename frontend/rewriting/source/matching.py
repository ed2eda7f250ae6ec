"""``match`` statements as branches, and what the tests of their patterns ask.

    match p:                           if p == 0 or p == 1: A
        case 0 | 1: A                  elif _weft.is_row(p, 2, False) and p[0] > p[1]:
        case [a, b] if a > b: B            a, b = p[0], p[1]; B
        case _: C                      else: C

Whether something is a sequence, a mapping or of a class is known while the function is traced; what
it is equal to need not be. Names are bound where a case is taken, so a guard reads the parts
themselves. An alternative that binds names stays as Python has it.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any, TypeVar

from ...tracing.classes import is_instance
from .names import RUNTIME

# Classes of which a pattern's one positional part is the object itself.
_WHOLE = (bool, bytearray, bytes, dict, float, frozenset, int, list, set, str, tuple)
_Node = TypeVar("_Node", bound=ast.AST)
_Case = tuple[list[ast.expr], dict[str, ast.expr]]


class Matches(ast.NodeTransformer):
    """Takes ``match`` out of one function's own statements."""

    def __init__(self) -> None:
        self.count = 0

    def of_function(self, node: ast.FunctionDef) -> None:
        node.body = [each for statement in node.body for each in self._statements(statement)]

    def _statements(self, statement: ast.stmt) -> list[ast.stmt]:
        found = self.visit(statement)
        return found if isinstance(found, list) else [found]

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.stmt:
        return node  # a scope of its own, as the next ones

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.stmt:
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.stmt:
        return node

    def visit_Match(self, node: ast.Match) -> ast.stmt | list[ast.stmt]:
        self.generic_visit(node)
        first: list[ast.stmt] = []
        subject = node.subject
        if not isinstance(subject, ast.Name):
            self.count += 1
            subject = ast.Name(f"{RUNTIME}_subject_{self.count}", ast.Load())
            first = [_at(ast.Assign([ast.Name(subject.id, ast.Store())], node.subject),
                         node.subject)]
        try:
            cases = [_case(case.pattern, subject) for case in node.cases]
        except _KeptError:
            return node
        rest: list[ast.stmt] = []
        for case, (tests, names) in zip(reversed(node.cases), reversed(cases), strict=True):
            body = [*_bound(names, case.pattern), *case.body]
            if case.guard is not None:
                tests = [*tests, _Parts(names).visit(deepcopy(case.guard))]
            test = tests[0] if len(tests) == 1 else ast.BoolOp(ast.And(), tests)
            rest = [_at(ast.If(_at(test, case.pattern), body, rest),
                        case.pattern)] if tests else body
        return [*first, *rest]


class _KeptError(Exception):
    """A pattern that stays as Python has it."""


def _case(pattern: ast.pattern, value: ast.expr) -> _Case:
    """What is asked of a value, in order, and the parts that names are bound to.

    Raises _KeptError for alternatives that bind names.
    """
    match pattern:
        case ast.MatchValue(value=constant):
            return [ast.Compare(value, [ast.Eq()], [constant])], {}
        case ast.MatchSingleton(value=constant):
            return [ast.Compare(value, [ast.Is()], [ast.Constant(constant)])], {}
        case ast.MatchAs(pattern=inner, name=name):
            tests, names = ([], {}) if inner is None else _case(inner, value)
            return tests, names if name is None else {**names, name: value}
        case ast.MatchOr(patterns=patterns):
            ways = [_case(each, value) for each in patterns]
            if any(names for _, names in ways):
                raise _KeptError
            if not all(tests for tests, _ in ways):
                return [], {}
            return [ast.BoolOp(ast.Or(), [
                tests[0] if len(tests) == 1 else ast.BoolOp(ast.And(), tests)
                for tests, _ in ways])], {}
        case ast.MatchSequence(patterns=patterns):
            return _row(patterns, value)
        case ast.MatchMapping(keys=keys, patterns=patterns, rest=rest):
            made: _Case = [_asked("has_keys", value, *keys)], {}
            for key, each in zip(keys, patterns, strict=True):
                _add(made, _case(each, ast.Subscript(value, key, ast.Load())))
            if rest is not None:
                made[1][rest] = _asked("without", value, *keys)
            return made
        case ast.MatchClass(cls=kind, patterns=patterns, kwd_attrs=words, kwd_patterns=others):
            made = [_asked("is_one", value, kind, ast.Constant(len(patterns)),
                           *map(ast.Constant, words))], {}
            for at, each in enumerate(patterns):
                _add(made, _case(each, _asked("part", value, kind, ast.Constant(at))))
            for word, each in zip(words, others, strict=True):
                _add(made, _case(each, ast.Attribute(value, word, ast.Load())))
            return made
    raise _KeptError


def _row(patterns: Sequence[ast.pattern], value: ast.expr) -> _Case:
    star = next((at for at, each in enumerate(patterns) if isinstance(each, ast.MatchStar)), None)
    least = len(patterns) - (star is not None)
    made: _Case = [_asked("is_row", value, ast.Constant(least),
                          ast.Constant(star is not None))], {}
    for at, each in enumerate(patterns):
        if isinstance(each, ast.MatchStar):
            if each.name is not None:
                made[1][each.name] = _asked("middle", value, ast.Constant(at),
                                            ast.Constant(least - at))
            continue
        place = at if star is None or at < star else at - len(patterns)
        _add(made, _case(each, ast.Subscript(value, ast.Constant(place), ast.Load())))
    return made


def _add(made: _Case, more: _Case) -> None:
    made[0].extend(more[0])
    made[1].update(more[1])


def _asked(name: str, *args: ast.expr) -> ast.expr:
    runtime = ast.Attribute(ast.Name(RUNTIME, ast.Load()), name, ast.Load())
    return ast.Call(runtime, [*args], [])


def _bound(names: Mapping[str, ast.expr], like: ast.AST) -> list[ast.stmt]:
    """All names at once: one of them may be that of the subject."""
    if not names:
        return []
    targets = ast.Tuple([ast.Name(name, ast.Store()) for name in names], ast.Store())
    return [_at(ast.Assign([targets], ast.Tuple([*names.values()], ast.Load())), like)]


def _at(node: _Node, like: ast.AST) -> _Node:
    """A node whose parts, made anew, have the place of ``like``; the user's keep theirs."""
    node = deepcopy(node)
    for each in ast.walk(node):
        if "lineno" in each._attributes and not hasattr(each, "lineno"):
            ast.copy_location(each, like)
    return node


class _Parts(ast.NodeTransformer):
    """Names as the parts that they will be bound to."""

    def __init__(self, names: Mapping[str, ast.expr]) -> None:
        self.names = names

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if isinstance(node.ctx, ast.Load) and node.id in self.names:
            return _at(self.names[node.id], node)
        return node


# -- what the tests ask -------------------------------------------------------------------------


def is_row(x: Any, least: int, more: bool) -> bool:
    """Whether a value is a sequence of ``least`` items, or ``more``."""
    if not isinstance(x, Sequence) or isinstance(x, (str, bytes, bytearray)):
        return False
    return len(x) >= least if more else len(x) == least


def middle(x: Sequence[Any], before: int, after: int) -> list[Any]:
    """The items between the first and the last ones."""
    return list(x[before:len(x) - after])


def has_keys(x: Any, *keys: Any) -> bool:
    """Whether a value is a mapping with these keys."""
    return isinstance(x, Mapping) and all(key in x for key in keys)


def without(x: Mapping[Any, Any], *keys: Any) -> dict[Any, Any]:
    """The other items of a mapping."""
    return {key: value for key, value in x.items() if key not in keys}


def is_one(x: Any, kind: type, count: int, *words: str) -> bool:
    """Whether a value is of a class, with that many positional parts and these attributes."""
    if not is_instance(x, kind):
        return False
    whole = count == 1 and kind in _WHOLE
    names = () if whole else getattr(kind, "__match_args__", ())[:count]
    if not whole and len(names) < count:
        raise TypeError(f"{kind.__name__}() accepts {len(names)} positional sub-patterns "
                        f"({count} given)")
    return all(hasattr(x, name) for name in (*names, *words))


def part(x: Any, kind: type, at: int) -> Any:
    """A positional part of an object of a class."""
    names = getattr(kind, "__match_args__", ())
    return x if kind in _WHOLE and not names else getattr(x, names[at])
