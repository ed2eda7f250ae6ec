"""The text that code was compiled from, if it is at hand.

A file that was written to since this process began may not be what its code was compiled from: then
the code must be that of the text. Import hooks put more into code than the text says.
"""

from __future__ import annotations

import functools
import linecache
import os
from collections.abc import Mapping
from types import CodeType

from ..face.loading import BEGAN


def text_of(code: CodeType) -> str:
    """The whole text of the file that code is of; empty if it is not at hand."""
    linecache.checkcache(code.co_filename)
    text = "".join(linecache.getlines(code.co_filename))
    return "" if _is_new(code.co_filename) and not _is_of(code, text) else text


def _is_new(file: str) -> bool:
    try:
        return os.stat(file).st_mtime >= BEGAN
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
