"""The definition of which a code object was compiled, newly parsed from the user's file.

A file is parsed once to find where definitions are; of each, its own lines are parsed again. A file
that was written to since this process began may not be what its code was compiled from: then the
code must be equal to that of the text.
"""

from __future__ import annotations

import ast
import functools
import inspect
import linecache
import os
import time
from collections.abc import Iterator, Mapping
from types import CodeType

from .names import RUNTIME

_COROUTINES = inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
_BEGAN = time.time()
Range = tuple[int, int]  # the first line and the last one
Definition = ast.FunctionDef | ast.Lambda


def definition_of(code: CodeType) -> Definition | None:
    """The definition of which ``code`` was compiled, newly parsed; None if it is not found, or
    if it is a coroutine."""
    if code.co_flags & _COROUTINES:
        return None
    linecache.checkcache(code.co_filename)
    text = "".join(linecache.getlines(code.co_filename))
    if not text or (_is_new(code.co_filename) and not _is_of(code, text)):
        return None
    ranges = _ranges(text).get((code.co_firstlineno, code.co_name), ())
    found = [node for each in dict.fromkeys(ranges) for node in _definitions(text, each)
             if _first_line(node) == code.co_firstlineno and _name(node) == code.co_name]
    if len(found) > 1:  # several lambdas in one line
        found = [node for node in found if _same(node, code)]
    return found[-1] if found else None  # the innermost: one around it has its columns, too


def has_source(code: CodeType | None) -> bool:
    """Whether the text of a file that code was compiled from is at hand, as far as is known."""
    if code is None or RUNTIME in code.co_freevars:  # a copy has the file of what it is of
        return True
    text = "".join(linecache.getlines(code.co_filename))
    return bool(text) and not (_is_new(code.co_filename) and not _is_of(code, text))


def _is_new(file: str) -> bool:
    try:
        return os.stat(file).st_mtime >= _BEGAN
    except OSError:
        return False  # no file: what a console has taken in


@functools.lru_cache(64)
def _codes(text: str) -> Mapping[tuple[int, str], tuple[CodeType, ...]]:
    """The code objects of a text, by their first line and name."""
    found: dict[tuple[int, str], tuple[CodeType, ...]] = {}
    todo = [compile(text, "text", "exec", dont_inherit=True)]
    while todo:
        for each in todo.pop().co_consts:
            if isinstance(each, CodeType):
                key = each.co_firstlineno, each.co_name
                found[key] = (*found.get(key, ()), each)
                todo.append(each)
    return found


def _is_of(code: CodeType, text: str) -> bool:
    """Whether code was compiled of a text, but for what import hooks put into it: all that the text
    names and all of its numbers and texts are the code's."""
    try:
        same = _codes(text).get((code.co_firstlineno, code.co_name), ())
    except SyntaxError:
        return False
    return any(_are_alike(each, code) or _is_within(each, code) for each in same)


def _are_alike(plain: CodeType, code: CodeType) -> bool:
    """Whether two do the same, whatever ``from __future__ import`` and files they are of."""
    return plain.co_code == code.co_code and plain.co_names == code.co_names and (
        _constants(plain) == _constants(code))


def _constants(code: CodeType) -> list[str]:
    return [repr(each) for each in code.co_consts if not isinstance(each, CodeType)]


def _is_within(plain: CodeType, code: CodeType) -> bool:
    if code.co_code == plain.co_code or set(code.co_names) == set(plain.co_names):
        return False  # no hook was there
    return all({*map(repr, getattr(plain, part))} <= {*map(repr, getattr(code, part))} for part in (
        "co_names", "co_varnames", "co_freevars")) and {*_constants(plain)} <= {*_constants(code)}


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
