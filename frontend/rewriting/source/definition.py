"""The source of a code object, and the code of its rewritten copy.

The whole file is parsed, so that lines and columns are the user's; the copy is compiled with the
file's name, and runs with the globals, cells and defaults of the function it is a copy of.
"""

from __future__ import annotations

import ast
import functools
import sys
from collections.abc import Iterator
from types import CellType, CodeType, FunctionType
from typing import Any

from ...face.source import WRITTEN
from .names import COMPREHENSIONS, RUNTIME, SCOPES, bound
from .nodes import ours, thunk
from .parsed import definition_of
from .statements import rewritten

_FACTORY = "_weft_factory"
_COPY = "_weft_copy"


def rewrite(function: FunctionType, runtime: Any) -> FunctionType | None:
    """A copy of a function whose control flow asks ``runtime``; None if its source is not at
    hand, or if it is a coroutine."""
    code = _code(function.__code__, function.__code__.co_filename)
    if code is None:
        return None
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    cells[RUNTIME] = CellType(runtime)
    closure = tuple(cells[name] for name in code.co_freevars)
    made = FunctionType(code, function.__globals__, function.__name__, function.__defaults__,
                        closure)
    made.__kwdefaults__ = function.__kwdefaults__
    made.__dict__.update(function.__dict__)
    made.__dict__[WRITTEN] = function
    if sys.version_info < (3, 14):  # from then on they are made when asked for
        made.__annotations__ = function.__annotations__
    made.__module__, made.__qualname__ = function.__module__, function.__qualname__
    return made


@functools.lru_cache(1024)
def _code(code: CodeType, file: str) -> CodeType | None:
    """The code of the rewritten copy. Code is equal to that of the same text in another file."""
    node = definition_of(code)
    if isinstance(node, ast.FunctionDef):
        _Locals(node, code).block()
    if node is None or any(map(_sees_names, ast.walk(node))):
        return None
    if isinstance(node, ast.Lambda):
        value = ast.copy_location(ast.Return(node.body), node.body)
        node = ast.copy_location(ast.FunctionDef(_COPY, node.args, [value], []), node)
    node.name = _COPY  # not its own, by which it may call itself: that is not this copy's to bind
    node.args.defaults = [ast.Constant(None) for _ in node.args.defaults]
    node.args.kw_defaults = [None if each is None else ast.Constant(None)
                             for each in node.args.kw_defaults]
    for each in ast.walk(node.args):
        if isinstance(each, ast.arg):
            each.annotation = None
    node.returns = None
    if owner := _class_of(code.co_qualname).lstrip("_"):
        _Private(owner).visit(node)
    made = rewritten(node)
    names = [*code.co_freevars, RUNTIME]
    factory = ast.FunctionDef(_FACTORY, ast.arguments(
        [], [ast.arg(each) for each in names], None, [], [], None, []),
        [made, ast.Return(ast.Name(_COPY, ast.Load()))], [])
    module = ast.fix_missing_locations(ast.Module([ast.copy_location(factory, made)], []))
    whole = compile(module, file, "exec", dont_inherit=True,
                    flags=code.co_flags & 0x1000000)  # from __future__ import annotations
    outer = next(each for each in _codes(whole) if each.co_name == _FACTORY)
    found = next(each for each in outer.co_consts
                 if isinstance(each, CodeType) and each.co_name == _COPY)
    return _named(found, code)


def _sees_names(node: ast.AST) -> bool:
    """Whether it is a call that sees the names of its function, of which a copy has parts of its
    own."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and (
        node.func.id in ("locals", "eval", "exec")
        or (node.func.id in ("vars", "dir") and not node.args))


def _class_of(qualname: str) -> str:
    """The innermost class in whose body a function is written; empty if there is none."""
    *outer, _ = qualname.split(".")
    while outer:
        if outer[-1] != "<locals>":
            return outer[-1]
        outer = outer[:-2]
    return ""


class _Locals(ast.NodeTransformer):
    """``locals()`` in a function, as a dict of its names: a copy has parts of its own."""

    def __init__(self, function: ast.FunctionDef, code: CodeType) -> None:
        self.function = function
        own = bound(function.body) | {each.arg for each in ast.walk(function.args) if isinstance(
            each, ast.arg)} | {*code.co_freevars}
        self.names = [name for name in dict.fromkeys(
            (*code.co_varnames, *code.co_cellvars, *code.co_freevars)) if name in own]

    def block(self) -> None:
        """In the function's own scope alone."""
        self.function.body = [self.visit(each) for each in self.function.body]

    def visit(self, node: ast.AST) -> Any:
        return node if isinstance(node, (*SCOPES, *COMPREHENSIONS)) else super().visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if not isinstance(node.func, ast.Name) or node.args or node.keywords or (
                node.func.id not in ("locals", "vars")):
            return node
        read = [ast.copy_location(ast.Name(name, ast.Load()), node) for name in self.names]
        names = ast.Dict([ast.Constant(name) for name in self.names], [*map(thunk, read)])
        return ours("own_names", [ast.copy_location(names, node)], node)


class _Private(ast.NodeTransformer):
    """Names such as ``__x`` in the body of a class, which are names of its own: ``_Model__x``."""

    def __init__(self, owner: str) -> None:
        self.owner = owner

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.ClassDef:
        return node

    def generic_visit(self, node: ast.AST) -> ast.AST:
        if isinstance(node, ast.keyword):  # the name of another one's argument
            return super().generic_visit(node)
        for field in ("id", "attr", "arg", "name", "asname"):
            name = getattr(node, field, None)
            if isinstance(name, str):
                setattr(node, field, self._own(name))
        if isinstance(node, (ast.Global, ast.Nonlocal)):
            node.names = list(map(self._own, node.names))
        return super().generic_visit(node)

    def _own(self, name: str) -> str:
        private = name.startswith("__") and not name.endswith("__") and "." not in name
        return f"_{self.owner}{name}" if private else name


def _codes(code: CodeType) -> Iterator[CodeType]:
    return (each for each in code.co_consts if isinstance(each, CodeType))


def _named(code: CodeType, like: CodeType) -> CodeType:
    """The code and the parts of it that were made here, called as the user's function."""
    consts = tuple(
        _named(each, like if each.co_name.startswith(RUNTIME) else each)
        if isinstance(each, CodeType)
        else each for each in code.co_consts)
    return code.replace(co_name=like.co_name, co_qualname=like.co_qualname, co_consts=consts)
