"""The outline of a program, and its guards, as bytes, and back in another process.

What belongs to the process is told by its place among the objects that were met while the key was
made (``content``), which are the same ones wherever the key is the same:

    f closes over w                      source ("held", 3)
    returns Point(x, y)                  out_tree (("held", 5), None, leaves)
    guard: f.__closure__[0] is w         (("f",), steps, "OBJECT", ("held", 3))

Numbers and texts are themselves; a guard tells what it expects by its digest.
"""

from __future__ import annotations

import marshal
import sys
import weakref
from collections.abc import Sequence
from copy import copy
from types import FunctionType, MappingProxyType
from typing import Any

import numpy as np

from ...runtime.state import Cell
from ...runtime.tree import TreeDef
from ..face.tree import Static
from ..tracing.containers import Fill, Kept
from ..tracing.guards.guard import NOTHING, Guard, Kind, Path, Step
from .content import NoKeyError, Reader
from .walks import Outline

_PLAIN = frozenset({bool, int, float, complex, str, bytes, type(None)})
_KNOWN = (dict, list, tuple, type(None), Static, Kept)
_LARGEST = 1 << 16  # bytes of an array that is a part of the program


class UnstorableError(Exception):
    """Something has no form that another process could read."""


class OtherError(Exception):
    """What is stored is not for this process after all."""


class Writer:
    """Makes data for ``marshal`` of what a program holds."""

    def __init__(self, reader: Reader, function: FunctionType) -> None:
        self._reader, self._function = reader, function

    def outline(self, outline: Outline, variables: Sequence[Any]) -> tuple[Any, ...]:
        """An outline; ``variables`` are all that it reads or writes."""
        cells = {id(each.cell): each for each in variables}
        return (
            self._nest(outline.out_tree), tuple([
                self.value(kind) if isinstance(kind, np.ndarray) else kind
                for kind in outline.out_kinds]),
            tuple(map(self._guard, outline.guards)),
            tuple([self._source(each, cells) for each in outline.sources]),
            tuple([self._cell(each, cells) for each in outline.written]),
            outline.inout, self.value(outline.containers), tuple([
                (fill.number, fill.whole, self.value(fill.removed)) for fill in outline.fills]),
            outline.bytes, outline.results, outline.single)

    def _nest(self, nest: TreeDef) -> Any:
        if nest.kind is None:
            return None
        return self.value(nest.kind), self.value(nest.meta), tuple(map(self._nest, nest.children))

    def value(self, value: Any) -> tuple[Any, ...]:
        """A value of any kind. Raises UnstorableError."""
        if type(value) in _PLAIN:
            return "plain", value
        if isinstance(value, type) and value in _KNOWN:
            return "known", _KNOWN.index(value)
        if type(value) is tuple:
            return "tuple", tuple(map(self.value, value))
        if type(value) is dict:
            return "dict", tuple([(self.value(key), self.value(item))
                                  for key, item in value.items()])
        if isinstance(value, np.dtype):
            return "dtype", value.name
        place = self._reader.place(value)
        if place is None:
            raise UnstorableError
        return "held", place

    def _source(self, source: Any, cells: dict[int, Any]) -> Any:
        if isinstance(source, int):
            return source
        if isinstance(source, Cell):
            return self._cell(source, cells)
        if self._reader.place(source) is not None:
            return self.value(source)
        if source.nbytes > _LARGEST or source.dtype.hasobject or not source.dtype.isbuiltin:
            raise UnstorableError
        if any(isinstance(each, np.ndarray) and np.may_share_memory(source, each)
               for each in self._reader.held):  # a view of what others may write
            raise UnstorableError
        return "array", source.dtype.str, source.shape, source.tobytes()

    def _cell(self, cell: Cell, cells: dict[int, Any]) -> tuple[Any, ...]:
        return "cell", self.value(cells[id(cell)])[1]

    def _guard(self, guard: Guard) -> tuple[Any, ...]:
        path, kind = guard.path, guard.kind
        if kind is Kind.ALIAS:
            return *self._path(path), kind.name, self._path(guard.expected)
        found = path.get()
        if not guard.holds():  # the function itself has changed it
            raise UnstorableError
        if kind is Kind.OBJECT and self._reader.place(found) is not None:
            return *self._path(path), kind.name, self.value(found)
        if isinstance(found, np.ndarray) and kind is not Kind.CONTENT:  # others may write it, too
            raise UnstorableError
        return *self._path(path), kind.name, _digest_of(found, kind)

    def _path(self, path: Path) -> tuple[Any, ...]:
        if path.of:
            if path.base() is not self._function:
                raise UnstorableError
            root = None
        elif path.base is self._function.__globals__:
            root = ""
        else:
            root = path.base.get("__name__")
            if vars(sys.modules.get(root, sys)) is not path.base:
                raise UnstorableError
        return root, path.name, path.hidden, tuple([
            (step is Step.ITEM, self.value(key)) for step, key in path.steps])


class Loader:
    """Makes what a program holds of such data, in this process."""

    def __init__(self, reader: Reader, function: FunctionType) -> None:
        self._held, self._function = reader.held, function

    def outline(
        self, data: tuple[Any, ...], in_tree: TreeDef, variables: dict[int, Any]
    ) -> Outline:
        """The outline, for a call of this structure. Raises OtherError."""
        (out_tree, kinds, guards, sources, written, inout, containers, fills, bytes_, results,
         single) = data
        return Outline(
            in_tree=in_tree, variables=variables, out_tree=self._nest(out_tree),
            out_kinds=tuple([self.value(kind) if isinstance(kind, tuple) else kind
                             for kind in kinds]),
            guards=tuple(map(self._guard, guards)), sources=tuple(map(self._source, sources)),
            written=tuple(map(self._source, written)), inout=inout,
            containers=self.value(containers), fills=tuple([
                Fill(number, whole, self.value(removed)) for number, whole, removed in fills]),
            bytes=bytes_,
            results=results, single=single)

    def _nest(self, data: Any) -> TreeDef:
        if data is None:
            return TreeDef(None)
        kind, meta, children = data
        return TreeDef(self.value(kind), self.value(meta), tuple(map(self._nest, children)))

    def value(self, data: tuple[Any, ...]) -> Any:
        """A value of any kind."""
        kind, what = data
        match kind:
            case "plain":
                return what
            case "known":
                return _KNOWN[what]
            case "tuple":
                return tuple(map(self.value, what))
            case "dict":
                return {self.value(key): self.value(item) for key, item in what}
            case "dtype":
                return np.dtype(what)
        return self._held[what]

    def _source(self, data: Any) -> Any:
        if isinstance(data, int):
            return data
        if data[0] == "cell":
            return self._held[data[1]].cell
        if data[0] == "held":
            return self._held[data[1]]
        _, dtype, shape, elements = data
        return np.frombuffer(elements, dtype).reshape(shape).copy()

    def _guard(self, data: tuple[Any, ...]) -> Guard:
        *where, name, expected = data
        path, kind = self._path(where), Kind[name]
        if kind is Kind.ALIAS:
            return Guard(path, kind, self._path(expected))
        found = path.get()
        if found is NOTHING:
            raise OtherError(f"there is no {path}")
        if isinstance(expected, tuple):
            if found is not self.value(expected):
                raise OtherError(f"{path} is another")
        elif expected != _digest_of(found, kind):
            raise OtherError(f"{path} is another")
        return Guard.object(path, found) if kind is Kind.OBJECT else Guard(
            path, kind, _EXPECTED[kind](found))

    def _path(self, data: Sequence[Any]) -> Path:
        root, name, hidden, steps = data
        found = tuple([(Step.ITEM if item else Step.ATTRIBUTE, self.value(key))
                       for item, key in steps])
        if root is None:
            return Path(weakref.ref(self._function), True, name, hidden, found)
        if root and root not in sys.modules:
            raise OtherError(f"module {root} is not there")
        return Path(vars(sys.modules[root]) if root else self._function.__globals__, False, name,
                    hidden, found)


def _items(found: Any) -> Any:
    return frozenset(found) if isinstance(found, set) else copy(found)


def _itself(found: Any) -> Any:
    return found


_EXPECTED: MappingProxyType[Kind, Any] = MappingProxyType({
    Kind.VALUE: _itself, Kind.CLASS: type, Kind.LENGTH: len, Kind.KEYS: tuple,
    Kind.ITEMS: _items, Kind.CONTENT: np.array})
"""What a guard expects of what is found."""


def _digest_of(found: Any, kind: Kind) -> str:
    """The digest of what a guard of a kind expects."""
    reader = Reader()
    try:
        reader.add(found if kind in (Kind.VALUE, Kind.OBJECT, Kind.ITEMS, Kind.CONTENT)
                   else _EXPECTED[kind](found))
    except NoKeyError:
        raise UnstorableError from None
    return reader.digest()


def packed(*parts: Any) -> bytes:
    """Data of such parts as bytes."""
    return marshal.dumps(parts)


def unpacked(data: bytes) -> Any:
    """The parts again. The cache has asked whether these are the bytes that were stored."""
    return marshal.loads(data)
