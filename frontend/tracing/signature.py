"""Signature: a function's parameters, the one normal form of a call, and the type of each leaf.

A call has one normal form, however it is spelled: see ``Signature.bind``.
"""

from __future__ import annotations

import copy
import inspect
import re
from collections.abc import (
    Callable,
    Collection,
    Hashable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
    Set,
)
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ...ir.diagnose import error
from ...ir.indices.index import Dim, symbols_of
from ...ir.types import BOOL, C128, F64, I64, TensorType, dtype_of
from .. import tree
from ..exact import UnhashableError, exact
from .arrays.variable import Variable
from .operand import fits_int64
from .source import user_loc
from .spec import Spec, is_spec
from .subclasses import checked_class
from .values.tracer import Tracer

_OMITTED = object()
_DEFAULT = object()  # the key of default values: which one it is follows from the parameter


def is_default(structure: tree.TreeDef) -> bool:
    """True for the part of a call's structure that stands for a parameter's default value."""
    return structure.key is _DEFAULT


_CHOICES = frozenset({bool, int, float})  # of what becomes static because its value is asked for


class _Default:
    """A parameter's default value, which is part of the structure wherever it is used."""

    def __init__(self, value: Any) -> None:
        self.value = value
        self.static = tree.Static(value, _DEFAULT)
        self._key = _key(value)

    def stands_for(self, given: Any) -> bool:
        """True for the omitted argument, and for one that is this very value."""
        if given is _OMITTED or given is self.value:
            return True
        return (type(given) is type(self.value) and self._key is not None
                and _key(given) == self._key)


def _key(value: Any) -> Hashable:
    """``exact``, in a tuple, or None for what has no such key, such as an array."""
    try:
        return (exact(value),)
    except UnhashableError:
        return None


@dataclass(frozen=True, eq=False)
class Call:
    """A call of a function: its arguments as they came, and their leaves and structure."""

    signature: Signature
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    leaves: list[Any]
    structure: tree.TreeDef

    @cached_property
    def names(self) -> list[str]:
        """The names of the leaves."""
        return self.signature.names(self.structure)

    @cached_property
    def types(self) -> tuple[tuple[str, TensorType], ...]:
        """Kinds and types of the leaves; see ``Signature.types``."""
        return tuple(self.signature.types(self.leaves, self.names))

    def numbers(self, *kinds: type) -> list[str]:
        """The names of leaves that are traced and have one of these very types."""
        return [name for name, leaf in zip(self.names, self.leaves, strict=True)
                if type(leaf) in kinds]

    def rivals(self) -> list[tuple[int, Any]]:
        """See ``Signature.rivals``."""
        return self.signature.rivals(self.signature.bind(self.args, self.kwargs)[0])

    def with_fixed(self, names: Iterable[str]) -> Call:
        """The same call, of which these leaves are static, too."""
        return self.signature.with_fixed(names).call(self.args, self.kwargs)


class Signature:
    """A function's parameters: names for the leaves of its arguments, and which are static.

    ``specs`` says that texts stand for types, as they do where nothing is called. ``dynamic`` maps
    the name of an argument (``x``, ``params.w``, ``params['w']``) to dims and
    their symbols: ``{"x": {0: "b"}}``.
    """

    def __init__(
        self, function: Callable[..., Any], static_argnames: Iterable[str] | str = (),
        dynamic: Mapping[str, Mapping[int, Any]] | None = None,
    ) -> None:
        self.function = function
        self.static = frozenset(names_in(static_argnames, "static_argnames"))
        self.fixed: frozenset[str] = frozenset()  # names of leaves that are static, too
        self.specs = True
        self.dynamic = _dynamic({} if dynamic is None else dynamic)
        try:
            parameters = list(inspect.signature(function).parameters.values())
        except (TypeError, ValueError):  # a built-in function
            parameters = []
        self._set(parameters)
        unknown = self.static - {p.name for p in parameters}
        if unknown and not self._any_keyword and parameters:
            raise error("W112", f"static_argnames: no argument '{min(unknown)}'", locs=user_loc(),
                        hint=f"the arguments are {', '.join(p.name for p in parameters)}")

    def _set(self, parameters: list[inspect.Parameter]) -> None:
        self._parameters = parameters
        positional = [p for p in parameters
                      if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        self.positional = [p.name for p in positional]
        self.rest = next((p.name for p in parameters if p.kind is p.VAR_POSITIONAL), "")
        self._any_keyword = any(p.kind is p.VAR_KEYWORD for p in parameters)
        self._keyword_only = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY]
        self._unnamed = sum(p.kind is p.POSITIONAL_ONLY for p in parameters)
        self._defaults = {p.name: _Default(p.default) for p in parameters
                          if p.default is not p.empty}
        self.required = sum(p.name not in self._defaults for p in positional)

    def bound(self) -> Signature:
        """The signature without its first parameter, as that of a method's instance."""
        made = copy.copy(self)
        first = self._parameters[:1]
        if first and first[0].kind is not inspect.Parameter.VAR_POSITIONAL:
            made.static = self.static - {first[0].name}
            made._set(self._parameters[1:])
        return made

    def with_fixed(self, names: Iterable[str]) -> Signature:
        """The signature in which these leaves are static, too."""
        made = copy.copy(self)
        made.fixed = frozenset(names)
        return made

    def of_calls(self) -> Signature:
        """The signature of calls, in which texts are texts."""
        made = copy.copy(self)
        made.specs = False
        return made

    def of_specs(self) -> Signature:
        """The signature of what is traced, where texts may stand for types."""
        made = copy.copy(self)
        made.specs = True
        return made

    def call(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Call:
        """A call, flattened once for all that is to be known of it."""
        return Call(self, args, kwargs, *self.flatten(args, kwargs))

    def by_position(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> tuple[Any, ...] | None:
        """A call as the shortest one by position that says the same, if there is one; cheap, so
        it may be longer than needed: defaults are known by identity only."""
        count, values = len(args), list(args)
        if kwargs:
            left = len(kwargs)
            if count < self._unnamed:
                return None
            for name in self.positional[count:]:
                if name in kwargs:
                    values.append(kwargs[name])
                    left -= 1
                    if not left:
                        break
                elif name in self._defaults:
                    values.append(self._defaults[name].value)
                else:
                    return None
            if left:
                return None
        if self.required < len(values) <= len(self.positional):
            while len(values) > self.required and (
                    values[-1] is self._defaults[self.positional[len(values) - 1]].value):
                values.pop()
        return tuple(values)

    def bind(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> tuple[tuple[Any, ...], Mapping[str, Any]]:
        """The normal form of a call: by position where that can be, keywords in the order of the
        parameters, and defaults alike whether spelled out or not.

        A call that does not fit the function is left as it is: Python says what is wrong with it.
        """
        count = len(self.positional)
        if not kwargs and len(args) <= self.required:
            return args, kwargs
        named = dict(kwargs)
        values = list(args[:count])
        for name in self.positional[len(args):]:
            may = len(values) >= self._unnamed
            values.append(named.pop(name, _OMITTED) if may else _OMITTED)
        values = [self._filled(name, value)
                  for name, value in zip(self.positional, values, strict=True)]
        only = {name: self._filled(name, named.pop(name, _OMITTED)) for name in self._keyword_only}
        twice = named.keys() & set(self.positional[self._unnamed:])
        missing = any(value is _OMITTED for value in (*values, *only.values()))
        if (missing or twice or (named and not self._any_keyword)
                or (len(args) > count and not self.rest)):
            return args, kwargs
        if len(args) <= count:
            while values and self._is_default(self.positional[len(values) - 1], values[-1]):
                values.pop()
        only = {name: value for name, value in only.items() if not self._is_default(name, value)}
        return (*values, *args[count:]), only | named

    def _filled(self, name: str, value: Any) -> Any:
        default = self._defaults.get(name)
        return value if default is None or not default.stands_for(value) else default.static

    def _is_default(self, name: str, value: Any) -> bool:
        default = self._defaults.get(name)
        return default is not None and value is default.static

    def rivals(self, args: tuple[Any, ...]) -> list[tuple[int, Any]]:
        """The places of traced arguments for which another value of the same type, that of the
        default, is not traced; and these values. ``args`` are in normal form."""
        found = []
        for at, (name, value) in enumerate(zip(self.positional, args, strict=False)):
            default = self._defaults.get(name)
            if (default is not None and type(value) is type(default.value)
                    and isinstance(value, (bool, int, float))):
                found.append((at, default.value))
        return found

    def flatten(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> tuple[list[Any], tree.TreeDef]:
        """The leaves of a call and its structure, which holds the static arguments, and all that
        is neither an array nor a number."""
        short = not kwargs and not self.static and len(args) <= self.required
        leaves, structure = tree.flatten((args, {}) if short else self.arguments(args, kwargs))
        if not self.fixed and tree.are_numeric(leaves):
            return leaves, structure
        marks = [tree.constant(leaf) != "" and not (self.specs and is_spec(leaf))
                 for leaf in leaves]
        if self.fixed:
            marks = [mark or (name in self.fixed and type(leaf) in _CHOICES)
                     for mark, name, leaf in zip(marks, self.names(structure), leaves, strict=True)]
        return tree.fix(leaves, structure, marks)

    def arguments(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """A call in normal form, its static arguments and defaults marked as ``Static``."""
        args, kwargs = self.bind(args, kwargs)
        if self.static:
            args = tuple(self._wrapped(self.name(at), value) for at, value in enumerate(args))
            kwargs = {name: self._wrapped(name, value) for name, value in kwargs.items()}
        return args, dict(kwargs)

    def _wrapped(self, name: str, value: Any) -> Any:
        if name not in self.static or isinstance(value, tree.Static):
            return value
        return tree.Static(value, tree.static_key(value, f"static argument '{name}'"))

    def name(self, at: int) -> str:
        """The name of positional argument number ``at``."""
        if at < len(self.positional):
            return self.positional[at]
        return f"{self.rest or 'args'}[{at - len(self.positional)}]"

    def names(self, structure: tree.TreeDef) -> list[str]:
        """The name of each leaf of a call's structure."""
        return [name + path for name, child in self._named(structure)
                for path in tree.paths(child)]

    def statics(self, structure: tree.TreeDef) -> dict[str, tree.TreeDef]:
        """By name what has become a part of a call's structure by itself."""
        return {name + path: below for name, child in self._named(structure)
                if name not in self.static for path, below in tree.statics(child)
                if not is_default(below)}

    def _named(self, structure: tree.TreeDef) -> Iterator[tuple[str, tree.TreeDef]]:
        """The arguments of a call with their names."""
        args, kwargs = structure.children
        yield from ((self.name(at), child) for at, child in enumerate(args.children))
        keys: Any = kwargs.meta
        yield from zip(keys, kwargs.children, strict=True)

    def types(self, leaves: Sequence[Any], names: Sequence[str]) -> list[tuple[str, TensorType]]:
        """Kind and type of each leaf, with symbols for its dynamic dims. Raises DTypeError (W112)
        for a leaf that cannot be traced, ShapeError (W105) for a dynamic dim that is not there."""
        plain = [_plain(name) for name in names]
        given = {re.split(r"[.\[]", name)[0] for name in names}
        for wanted in self.dynamic:
            root = wanted.partition(".")[0]
            omitted = root in self._defaults and root not in given and root not in self.static
            if not omitted and not any(_covers(wanted, name) for name in plain):
                raise error("W105", f"dynamic: no argument '{wanted}'", locs=user_loc(),
                            hint=f"the arguments are {', '.join(names)}")
        found: list[tuple[str, TensorType]] = []
        for leaf, name, short in zip(leaves, names, plain, strict=True):
            kind, type_ = leaf_type(leaf, name)
            for wanted, dims in self.dynamic.items():
                if _covers(wanted, short):
                    known = {size for _, other in found for dim in other.shape
                             for size in symbols_of(dim)}
                    type_ = type_.with_shape(_symbolic(type_, dims, name, known))
            found.append((kind, type_))
        return found


def names_in(given: Any, option: str) -> tuple[str, ...]:
    """The names that an option lists; a text is one. Raises DTypeError (W112) for other things."""
    names = (given,) if isinstance(given, str) else given
    if isinstance(names, Iterable) and not isinstance(names, bytes | np.ndarray):
        found = tuple(names)
        if all(isinstance(name, str) for name in found):
            return found
    raise error("W112", f"{option}={given!r} is neither a name nor a list of names",
                locs=user_loc(), hint=f"write {option}='x', or {option}=('x', 'y')")


def checked_flag(given: Any, option: str) -> None:
    """Raises DTypeError (W112) for an option that is neither True nor False: a text would count as
    True, whatever it says."""
    if not isinstance(given, bool | np.bool_):
        raise error("W112", f"{option}={given!r} is neither True nor False", locs=user_loc(),
                    hint=f"write {option}=True or {option}=False")


def _dynamic(given: Any) -> dict[str, dict[int, Any]]:
    """Dims by axis of arguments by name. Raises DTypeError (W112) for anything else."""
    if isinstance(given, Mapping) and all(
            isinstance(name, str) and isinstance(dims, Mapping)
            and all(isinstance(axis, int) for axis in dims) for name, dims in given.items()):
        return {_plain(name): dict(dims) for name, dims in given.items()}
    raise error("W112", f"dynamic={given!r} does not say which dims may have any size",
                locs=user_loc(), hint="name the argument, the axis and the dim, as in "
                "dynamic={'x': {0: 'n'}}")


def _plain(name: str) -> str:
    """One spelling for ``x.w``, ``x['w']`` and ``x["w"]``."""
    return re.sub(r"\[(['\"]?)(.*?)\1\]", r".\2", name)


def _covers(wanted: str, name: str) -> bool:
    return name == wanted or name.startswith(wanted + ".")


def _symbolic(
    type_: TensorType, dims: Mapping[int, Any], name: str, taken: Collection[str]
) -> tuple[Dim, ...]:
    shape: list[Any] = list(type_.shape)
    for axis, dim in dims.items():
        if not -len(shape) <= axis < len(shape):
            raise error("W105", f"dynamic: {name} has no axis {axis}", locs=user_loc(),
                        types=[type_], hint=f"its axes are 0 to {len(shape) - 1}" if shape
                        else "it has no dims")
        shape[axis] = dim
    return Spec(type_.dtype, shape).type(name, taken).shape


def leaf_type(leaf: Any, name: str) -> tuple[str, TensorType]:
    """Kind and type of an argument leaf. Raises DTypeError (W112) if it cannot be traced."""
    if isinstance(leaf, (np.ndarray, np.generic)):
        checked_class(leaf, f"argument {name}")
        try:
            return ("array" if isinstance(leaf, np.ndarray) else "scalar",
                    TensorType(dtype_of(leaf), leaf.shape))
        except TypeError:
            pass  # an array of objects, texts or dates
        raise error("W112", f"argument {name}: an array of dtype {leaf.dtype} cannot be traced",
                    locs=user_loc(), hint="convert it to a real number dtype")
    if isinstance(leaf, bool):
        return "number", TensorType(BOOL, ())
    if isinstance(leaf, int) and fits_int64(leaf):
        return "number", TensorType(I64, ())
    if isinstance(leaf, float):
        return "number", TensorType(F64, ())
    if isinstance(leaf, complex):
        return "number", TensorType(C128, ())
    if isinstance(leaf, Variable):
        return "variable", leaf.type
    if isinstance(leaf, Tracer):
        return "number" if leaf.weak else "array", leaf.type
    if isinstance(leaf, str):
        leaf = Spec.parse(leaf)
    if isinstance(leaf, Spec):
        return "array", leaf.type(name)
    if isinstance(leaf, int):
        raise error("W112", f"argument {name}: {leaf} is more than 64 bits hold", locs=user_loc(),
                    hint="pass float(n), or name the argument in static_argnames")
    raise error("W112", f"argument {name}: {type(leaf).__name__} cannot be traced",
                locs=user_loc(), hint=_instead_of(leaf))


def _instead_of(leaf: Any) -> str:
    """What to pass in place of an object that cannot be traced."""
    if isinstance(leaf, set):
        return "pass frozenset(items), which is static"
    if isinstance(leaf, Set):
        return f"pass NumPy arrays, numbers or nests of them: tuple(x) of a {type(leaf).__name__}"
    own = ("pass NumPy arrays, numbers or nests of them; register a class of your own with "
           "weft.tree.register")
    return own if type(leaf).__hash__ is None else (
        f"{own}, or name the argument in static_argnames")
