"""What code may do, read off its instructions: which names it reads, and whether it does anything
but compute."""

from __future__ import annotations

import functools
import opcode
import sys
from collections.abc import Iterator
from itertools import pairwise
from types import CodeType
from typing import Any

_CHANGING = frozenset({"STORE_GLOBAL", "DELETE_GLOBAL", "STORE_ATTR", "DELETE_ATTR"})
_UNREAD = frozenset({"LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS", "LOAD_BUILD_CLASS"})
_IMPURE = frozenset({"random", "load", "loadtxt", "genfromtxt", "fromfile", "fromregex", "memmap",
                     "DataSource", "open_memmap", "save", "savez", "savetxt", "tofile", "load_npz",
                     "loadmat", "whosmat", "datetime64", "rvs", "__subclasses__",
                     "__annotations__", "__wrapped__", "get_type_hints", "geterr", "errstate",
                     "seterr", "get_printoptions", "printoptions"})
_SETS = frozenset({"set", "frozenset", "keys"})  # of which & makes one
_SET_STEPS = frozenset({"BUILD_SET", "SET_ADD", "SET_UPDATE"})
_ATTRIBUTES = frozenset({"LOAD_ATTR", "LOAD_METHOD"})
_SHIFTED = sys.version_info >= (3, 12)  # the lowest bit says whether it is a method
_EXTENDED = opcode.opmap["EXTENDED_ARG"]


def codes(code: CodeType) -> Iterator[CodeType]:
    """A piece of code, and those of the functions defined in it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from codes(constant)


def is_impure(name: str) -> bool:
    """Whether a function or module of this name gives something else each time, or on another
    machine."""
    return name in _IMPURE


@functools.lru_cache(1024)
def names_read(code: CodeType) -> tuple[str, ...] | None:
    """The global names that code reads or binds, ``import math`` for what it imports, and ``random
    of weft`` for that attribute; None if it may give something else each time."""
    found: dict[str, None] = {}
    for each in codes(code):
        if not (_IMPURE - {"random"}).isdisjoint(each.co_names):
            return None
        of = ""  # the global name that the last instruction has read
        for name, argument in _instructions(each.co_code):
            if name in _UNREAD:
                return None
            if name in _ATTRIBUTES and each.co_names[argument >> _SHIFTED] == "random":
                found[f"random of {of}"] = None
            if name not in ("CACHE", "EXTENDED_ARG"):
                of = each.co_names[argument >> 1] if name == "LOAD_GLOBAL" else ""
            if name == "LOAD_GLOBAL":
                found[each.co_names[argument >> 1]] = None
            elif name in ("STORE_GLOBAL", "DELETE_GLOBAL"):
                found[each.co_names[argument]] = None
            elif name == "IMPORT_NAME":
                found[f"import {each.co_names[argument]}"] = None
    return tuple(found)


@functools.lru_cache(1024)
def only_computes(code: CodeType) -> bool:
    """Whether code changes nothing that is there after a call: no attributes, no names of others,
    and imports nothing."""
    for each in codes(code):
        places = (*each.co_varnames, *[name for name in each.co_cellvars
                                       if name not in each.co_varnames], *each.co_freevars)
        for name, argument in _instructions(each.co_code):
            if name in _CHANGING or name == "IMPORT_NAME" or (
                    name in ("STORE_DEREF", "DELETE_DEREF")
                    and places[argument] in code.co_freevars):
                return False
    return True


def _instructions(words: bytes) -> Iterator[tuple[str, int]]:
    above = 0
    for at in range(0, len(words), 2):
        operation, argument = words[at], words[at + 1] | above
        above = argument << 8 if operation == _EXTENDED else 0
        yield opcode.opname[operation], argument


@functools.lru_cache(1024)
def only_tests(code: CodeType) -> bool:
    """Whether code asks of its constant sets only whether something is in them: all else may tell
    their order."""
    steps = [*_instructions(code.co_code), ("", 0)]
    return all(after == "CONTAINS_OP" for (name, argument), (after, _) in pairwise(steps)
               if name == "LOAD_CONST" and isinstance(code.co_consts[argument], frozenset))


@functools.lru_cache(1024)
def makes_sets(code: CodeType) -> bool:
    """Whether code makes sets, whose order differs by the process."""
    for each in codes(code):
        if not _SETS.isdisjoint(each.co_names):
            return True
        if any(name in _SET_STEPS for name, _ in _instructions(each.co_code)):
            return True
    return False


@functools.lru_cache(1024)
def names_spelled(code: CodeType) -> frozenset[str]:
    """All names of code and of what is defined in it: of attributes, too, and texts that could be
    some, as in ``hasattr(module, "scale")``."""
    found = [{*each.co_names, *[text for text in each.co_consts if isinstance(text, str)]}
             for each in codes(code)]
    return frozenset().union(*found)


def parts_of(code: CodeType, lines: bool) -> tuple[Any, ...]:
    """All that code is: what it does, and with ``lines`` where it is written."""
    does = (code.co_name, code.co_code, code.co_flags, code.co_names, code.co_varnames,
            code.co_freevars, code.co_cellvars, code.co_argcount, code.co_posonlyargcount,
            code.co_kwonlyargcount, code.co_exceptiontable)
    return (*does, code.co_filename, code.co_firstlineno, code.co_linetable) if lines else does
