"""The definition of which a code object was compiled, newly parsed from the user's file.

A file is parsed once to find where definitions are; of each, its own lines are parsed again.
"""

from __future__ import annotations

import ast
import functools
import inspect
from collections.abc import Iterator, Mapping
from types import CodeType

from ...tracing.source_text import text_of

_COROUTINES = inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
Range = tuple[int, int]  # the first line and the last one
Definition = ast.FunctionDef | ast.Lambda


def definition_of(code: CodeType) -> Definition | None:
    """The definition of which ``code`` was compiled, newly parsed; None if it is not found, or
    if it is a coroutine."""
    if code.co_flags & _COROUTINES:
        return None
    text = text_of(code)
    ranges = _ranges(text).get((code.co_firstlineno, code.co_name), ())
    found = [node for each in dict.fromkeys(ranges) for node in _definitions(text, each)
             if _first_line(node) == code.co_firstlineno and _name(node) == code.co_name]
    if len(found) > 1:  # several lambdas in one line
        found = [node for node in found if _same(node, code)]
    return found[-1] if found else None  # the innermost: one around it has its columns, too


@functools.lru_cache(64)
def _ranges(text: str) -> Mapping[tuple[int, str], tuple[Range, ...]]:
    """The lines of the definitions of a text, by first line and name; of a lambda, those of the
    statement that it is in."""
    found: dict[tuple[int, str], tuple[Range, ...]] = {}
    try:
        todo: list[tuple[ast.AST, Range]] = [(ast.parse(text), (1, 1))]
    except SyntaxError:
        return found
    while todo:
        node, around = todo.pop()
        if isinstance(node, ast.stmt):
            around = _first_line(node), node.end_lineno or 1
        if isinstance(node, (ast.FunctionDef, ast.Lambda)):
            key = _first_line(node), _name(node)
            found[key] = (around, *found.get(key, ()))
        todo += ((child, around) for child in ast.iter_child_nodes(node))
    return found


def _definitions(text: str, lines: Range) -> Iterator[Definition]:
    """The definitions in some lines of a text, where they are, newly parsed."""
    first, last = lines
    own = text.splitlines(keepends=True)[first - 1:last]
    before = "\n" * (first - 1)
    if own[0][:1].isspace():
        before = f"{before[1:]}if 1:\n"
    try:
        tree = ast.parse(before + "".join(own))
    except SyntaxError:  # of a statement that only goes on, as elif does
        tree = ast.parse(text)
    return (node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.Lambda)))


def _name(node: Definition) -> str:
    return "<lambda>" if isinstance(node, ast.Lambda) else node.name


def _first_line(node: ast.AST) -> int:
    decorators = getattr(node, "decorator_list", None)
    first = decorators[0] if decorators else node
    return getattr(first, "lineno", 0)


def _same(node: Definition, code: CodeType) -> bool:
    """Whether a lambda has the columns of a code object."""
    if not isinstance(node, ast.Lambda):
        return True
    columns = [(line, column) for line, _, column, _ in code.co_positions()
               if line is not None and column is not None]
    end = node.body.end_lineno, node.body.end_col_offset
    start = node.body.lineno, node.body.col_offset
    return bool(columns) and all(start <= place <= end for place in columns
                                 if place[1] or place[0] != node.lineno)
