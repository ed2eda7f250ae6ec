"""What a function depends on besides its arguments, as a digest: of one digest, one program.

    scale = 2.0
    f = weft.compile(lambda w: (scale * helper(w)).sum())     its code, 2.0, the code of helper, ...

The digest is of code (but not of comments), numbers, texts, the elements of arrays, and all that
lists, dicts, classes and objects hold, all the way down; it is the same in another process that
reads the same. There is none for a function that reads anything else: files, clocks, the
environment, random numbers.
"""

from __future__ import annotations

import abc
import builtins
import functools
import sys
from _abc import _get_dump  # type: ignore[import-not-found]
from _blake2 import blake2b
from collections import OrderedDict, defaultdict, deque
from collections.abc import Iterable
from types import (
    CellType,
    CodeType,
    FunctionType,
    MappingProxyType,
    MethodType,
    ModuleType,
)
from typing import Any

import numpy as np

from ...runtime.tree import TreeDef
from ..face.held import held_by
from .code import (
    is_impure,
    makes_sets,
    names_read,
    names_spelled,
    only_computes,
    only_tests,
    parts_of,
)

_MANY = 4000       # objects that are looked at
_BYTES = 1 << 24   # of all arrays
_OURS = __name__.partition(".")[0]
# Packages whose functions give the same for the same, but for those of some names.
_PURE = frozenset({
    _OURS, "numpy", "scipy", "math", "cmath", "operator", "_operator", "functools", "_functools",
    "itertools", "collections", "_collections", "_collections_abc", "typing", "types",
    "dataclasses", "enum", "numbers", "abc", "copy", "fractions"})
_VERSIONED = frozenset({_OURS, "numpy"})  # of which the version is known otherwise
_BUILTINS = frozenset({
    abs, all, any, bool, bytearray, bytes, callable, chr, complex, dict, divmod, enumerate, filter,
    float, format, frozenset, hasattr, int, isinstance, issubclass, iter, len, list, map, max, min,
    next, object, ord, pow, property, range, repr, reversed, round, set, slice, sorted, str, sum,
    super, tuple, type, zip, classmethod, staticmethod})
_PLAIN = frozenset({bool, int, float, complex, str, bytes, type(None), type(Ellipsis),
                    type(NotImplemented)})
_MADE = frozenset({"member_descriptor", "getset_descriptor", "_tuplegetter",
                   "_abc_data"})  # what Python puts into classes itself
_NAMED = frozenset({"wrapper_descriptor", "builtin_function_or_method", "method_descriptor"})
_HOLDING = (list, dict, set, frozenset, int, float, complex, str, bytes, np.ndarray)
_WORD = 8  # bytes
_PYTHONS = sys.stdlib_module_names - {"__main__"}
_SKIPPED = frozenset({
    "__dict__", "__weakref__", "__doc__", "__module__", "__annotations__", "__qualname__",
    "__dataclass_fields__", "__dataclass_params__", "__firstlineno__", "__static_attributes__",
    "__annotate__", "__annotate_func__", "__annotations_cache__", "__orig_bases__",
    "__abstractmethods__", "__parameters__"})


class NoKeyError(Exception):
    """There is no digest of what a function reads."""


class Reader:
    """Makes one digest of what is added to it; what occurs twice is told by its place. ``held`` are
    the objects that were met, in the order of the digest. If ``strict``, there is none of code that
    does more than compute, and code that is written on another line is other code."""

    def __init__(self, *, strict: bool = False) -> None:
        self.held: list[Any] = []  # also so that no number stands for two objects
        self._seen: dict[int, int] = {}
        self._made = blake2b(digest_size=24)
        self._strict = strict
        self._bytes = 0
        self._modules: dict[str, ModuleType] = {}
        self._spelled: set[str] = set()
        self._named: list[str] = []  # of variables

    def digest(self) -> str:
        """The digest of all that was added."""
        done: set[tuple[str, str]] = set()
        while todo := [(name, each) for name, module in sorted(self._modules.items())
                       for each in sorted((self._spelled | {"__getattr__"}) & vars(module).keys())
                       if (name, each) not in done]:
            done.update(todo)
            for name, each in todo:
                value = vars(self._modules[name])[each]
                if not _of_package(name):
                    self._put(name, each)
                    self.add(value)
                elif each != "__getattr__":
                    self._in_package(name, each, value)
        if "name" in self._spelled:
            self._put(*self._named)
        return self._made.hexdigest()

    def place(self, value: Any) -> int | None:
        """Where an object is among those that were met."""
        return self._seen.get(id(value))

    def structure(self, nest: TreeDef) -> None:
        """Add the structure of a nest, with the values that belong to it."""
        if nest.kind is None:
            self._put("leaf")
            return
        self._put("level", str(len(nest.children)))
        self.add(nest.kind)
        if isinstance(nest.meta, dict):
            self.add(tuple(nest.meta.items()))
        else:
            self.add(nest.meta)
        for child in nest.children:
            self.structure(child)

    def add(self, value: Any) -> None:
        """Add a value. Raises NoKeyError."""
        kind = type(value)
        if kind in _PLAIN:
            self._put(kind.__name__, repr(value))
        elif isinstance(value, np.dtype):
            self._put("dtype", *_dtype_texts(value))
        elif isinstance(value, np.generic):
            self._put("scalar", *_dtype_texts(value.dtype))
            self._data(value.tobytes())
        elif id(value) in self._seen:
            self._put("again", str(self._seen[id(value)]))
        elif len(self.held) >= _MANY:
            raise NoKeyError
        else:
            self._seen[id(value)] = len(self.held)
            self.held.append(value)
            self._object(kind, value)

    def _in_package(self, module: str, name: str, value: Any) -> None:
        """What a package has under a name, if somebody may have put it there. What is its own is
        left out: packages load that when it is asked for."""
        kind = type(value)
        if kind is ModuleType:
            if _of_package(value.__name__):
                self._modules[value.__name__] = value
        elif kind in _PLAIN:
            self._put(module, name, repr(value))
        elif (named := _pure_name(value)) is not None:
            if named[1] != name:
                self._put(module, name, *named)
        elif (kind is FunctionType and not _is_library(value)) or (
                not isinstance(value, type) and _is_written(kind)
                and isinstance(kind.__module__, str) and not _of_package(kind.__module__)):
            self._put(module, name)
            self.add(value)

    def _put(self, *texts: str) -> None:
        for text in texts:
            self._data(text.encode("utf-8", "surrogatepass"))

    def _data(self, data: bytes) -> None:
        self._made.update(len(data).to_bytes(8, "little"))
        self._made.update(data)

    def _object(self, kind: type, value: Any) -> None:
        if kind is np.ndarray:
            self._array(value)
        elif kind in (tuple, list, deque):
            self._all(kind.__name__, value)
        elif kind in (dict, OrderedDict, defaultdict, MappingProxyType):
            self._all(kind.__name__, [part for item in value.items() for part in item])
            self.add(getattr(value, "default_factory", None))
        elif kind in (set, frozenset):
            self._set(kind, value)
        elif kind in (slice, range):
            self._all(kind.__name__, (value.start, value.stop, value.step))
        elif kind is FunctionType and not _is_library(value):
            self._function(value)
        elif kind is MethodType:
            self._all("method", (value.__func__, value.__self__))
        elif kind is functools.partial:
            self._all("partial", (value.func, value.args, value.keywords))
        elif kind is ModuleType:
            self._module(value)
        elif kind is CodeType:
            self._code(value)
        elif (named := _pure_name(value)) is not None:
            self._put("pure", *named)
        elif isinstance(value, type):
            self._class(value)
        elif kind in (property, staticmethod, classmethod) or hasattr(kind, "__wrapped__"):
            self._all(kind.__name__, [getattr(value, name, None) for name in (
                "fget", "fset", "fdel", "__func__")])
        else:
            self._instance(kind, value)

    def _all(self, kind: str, values: Iterable[Any]) -> None:
        found = list(values)
        self._put(kind, str(len(found)))
        for each in found:
            self.add(each)

    def _set(self, kind: type, values: Any) -> None:
        if not _PLAIN.issuperset(map(type, values)):
            raise NoKeyError
        self._put(kind.__name__, *[  # in their order, which differs by the seed of hashes
            f"{type(each).__name__} {each!r}" for each in values])

    def _array(self, array: Any) -> None:
        self._bytes += array.nbytes
        if array.dtype.hasobject or self._bytes > _BYTES:
            raise NoKeyError
        self._put("array", *_dtype_texts(array.dtype), repr(array.shape), repr(array.strides),
                  repr(array.flags.writeable))
        self._data(array.tobytes())

    def _function(self, function: FunctionType) -> None:
        self._put("function", function.__qualname__)
        self._code(function.__code__)
        if not _of_package(function.__globals__.get("__name__")):
            names = names_read(function.__code__)
            if names is None or (self._strict and not only_computes(function.__code__)):
                raise NoKeyError
            if makes_sets(function.__code__):
                self._put(str(hash(_OURS)))  # which tells their order
            self._spelled |= names_spelled(function.__code__)
            for name in names:
                self._put(name)
                self._read(function.__globals__, name)
            self._all("attributes", [part for name, held in vars(function).items()
                                     if name != "__wrapped__" for part in (name, held)])
        self.add(function.__defaults__)
        self.add(function.__kwdefaults__)
        for cell in function.__closure__ or ():
            self._cell(cell)

    def _code(self, code: CodeType) -> None:
        for part in parts_of(code, self._strict):
            self._put(repr(part))
        for constant in code.co_consts:
            if isinstance(constant, CodeType):
                self._code(constant)
            elif type(constant) in (tuple, frozenset):
                self._put(repr(sorted(map(repr, constant)) if type(constant) is frozenset
                               and only_tests(code) else constant))
            else:
                self._put(type(constant).__name__, repr(constant))

    def _read(self, around: dict[str, Any], name: str) -> None:
        if name.startswith("random of "):
            if getattr(around.get(name.removeprefix("random of ")), "__name__", "") != _OURS:
                raise NoKeyError
        elif name.startswith("import "):
            imported = name.removeprefix("import ")
            if not _of_package(imported):
                raise NoKeyError
            if imported in sys.modules:
                self._modules[imported] = sys.modules[imported]
        elif name in around:
            self.add(around[name])
        else:
            self.add(getattr(builtins, name, None))

    def _cell(self, cell: CellType) -> None:
        try:
            value = cell.cell_contents
        except ValueError:  # it is empty
            self._put("empty")
        else:
            self.add(value)

    def _module(self, module: ModuleType) -> None:
        name = module.__name__
        self._put("module", name)
        if _of_package(name):
            if name.partition(".")[0] != _OURS and any(map(is_impure, name.split("."))):
                raise NoKeyError
            self._put(_version_of(name))
            self._modules[name] = module
        elif name.partition(".")[0] in _PYTHONS:
            raise NoKeyError
        else:
            self._modules[name] = module

    def _class(self, kind: type) -> None:
        """A class of the user's: its bases, and all that it has for its objects."""
        if not isinstance(kind.__module__, str):
            raise NoKeyError
        self._put("class", kind.__module__, kind.__qualname__)
        self._all("bases", kind.__bases__)
        if type(kind) is not type:
            self.add(type(kind))
        if isinstance(kind, abc.ABCMeta):
            self._all("registered", _registered(kind))
        fields: Any = kind.__dict__.get("__dataclass_fields__", {})
        for name, each in fields.items():
            self._put("field", name, repr(each.init), repr(each.compare), repr(each.repr),
                      repr(each.hash), repr(each.kw_only), _text_of(each.type))
            self.add(each.metadata)
            for made in (each.default, each.default_factory):
                self._put("none") if type(made).__name__ == "_MISSING_TYPE" else self.add(made)
        self._put(repr(kind.__dict__.get("__dataclass_params__")))
        for name, each in kind.__dict__.items():
            if name in _SKIPPED or type(each).__name__ in _MADE or _is_generated(name, each):
                continue
            self._put(name)
            if name.startswith("_") and type(each).__name__ in _NAMED:
                self._put(each.__qualname__)
            else:
                self.add(each)

    def _instance(self, kind: type, value: Any) -> None:
        """An object: its class, and what it holds."""
        if not isinstance(kind.__module__, str):
            raise NoKeyError
        top = kind.__module__.partition(".")[0]
        ours, held = top == _OURS, held_by(value)
        if ours and hasattr(kind, "traced_by"):
            self._all("compiled", value.traced_by())
        elif ours and {"cell", "trainable"} <= held.keys():
            self._put("variable", str(value.type), repr(value.trainable), repr(value.home))
            self._named.append(str(value.name))
        elif not ours and (top in _PURE or top in _PYTHONS):
            raise NoKeyError  # what it is, only its own code knows
        else:
            self.add(kind)
            self._put("object")
            if isinstance(value, tuple):
                self._all("items", value)
            elif not hasattr(kind, "__members__") and (
                    issubclass(kind, _HOLDING) or (not ours and _hides(kind))
                    or not (held or _is_written(kind))):
                raise NoKeyError
            self._all("holds", [part for item in held.items() for part in item])


def _is_written(kind: type) -> bool:
    """Whether a class was written in Python."""
    return bool(kind.__flags__ & 1 << 9)  # Py_TPFLAGS_HEAPTYPE


def _registered(kind: abc.ABCMeta) -> list[type]:
    """The classes that are taken for subclasses of an abstract one, in an order of their own."""
    try:
        found = [each() for each in _get_dump(kind)[0]]
    except (TypeError, IndexError):
        raise NoKeyError from None
    return sorted([each for each in found if each is not None],
                  key=lambda each: (each.__module__, each.__qualname__))


def _is_generated(name: str, value: Any) -> bool:
    """Whether a function is one that a class gets by being a dataclass or the like: what made it
    is told by the fields."""
    function = getattr(value, "__func__", value)
    if not isinstance(function, FunctionType):
        return False
    around = str(function.__globals__.get("__name__"))
    return (function.__code__.co_qualname.startswith("__create_fn__.")
            or around.startswith("namedtuple_") or (name.startswith("_") and _of_package(around)))


def _hides(kind: type) -> bool:
    """Whether objects of a class have more than Python can see: what a base that is written in C
    holds."""
    slots = sum(1 if isinstance(named, str) else len(tuple(named)) for named in [
        each.__dict__.get("__slots__", ()) for each in kind.__mro__])
    return kind.__basicsize__ > object.__basicsize__ + _WORD * (slots + 2)  # dict, references


def _text_of(annotation: Any) -> str:
    """What an annotation says, without where it is in memory."""
    return annotation if isinstance(annotation, str) else str(
        getattr(annotation, "__qualname__", type(annotation).__qualname__))


def _dtype_texts(dtype: np.dtype[Any]) -> tuple[str, ...]:
    """What a dtype is, with all its fields."""
    plain = dtype.names is None and dtype.subdtype is None
    return (dtype.str, dtype.name) if plain else (dtype.str, dtype.name, repr(dtype))


def _of_package(module: Any) -> bool:
    return isinstance(module, str) and module.partition(".")[0] in _PURE


@functools.cache
def _version_of(module: str) -> str:
    """The version of a package, if nothing else tells it."""
    name = module.partition(".")[0]
    if name in _VERSIONED or name in _PYTHONS:
        return ""
    return str(getattr(sys.modules.get(name), "__version__", ""))


def _is_library(function: FunctionType) -> bool:
    """Whether it is a function that a package of ours, or NumPy's, has for good."""
    return (_of_package(function.__globals__.get("__name__")) and not function.__closure__
            and function.__globals__.get(function.__name__) is function)


def _pure_name(value: Any) -> tuple[str, ...] | None:
    """The name of a builtin, or of what one of these packages has under its own name."""
    if isinstance(value, type) and issubclass(value, BaseException):
        return ("builtins", value.__name__) if value.__module__ == "builtins" else None
    kind = type(value)
    if not isinstance(value, type) and kind.__module__ != "builtins" and not _of_package(
            kind.__module__):
        return None  # an object of the user's, which may have attributes of all names
    name, module = getattr(value, "__name__", None), getattr(value, "__module__", None)
    if module == "builtins":
        try:
            return ("builtins", str(name)) if value in _BUILTINS else None
        except TypeError:
            return None
    if isinstance(value, np.ufunc):
        module = "numpy" if hasattr(np, value.__name__) else "scipy.special"
    if (_of_package(module) and isinstance(name, str)
            and (str(module).partition(".")[0] == _OURS
                 or not any(map(is_impure, (name, *str(module).split(".")))))
            and getattr(sys.modules.get(str(module)), name, None) is value):
        return str(module), name, _version_of(str(module))
    return None
