"""The arguments of a call: their leaves, names, and the type of each."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from functools import cached_property
from typing import Any

import numpy as np

from ...ir.diagnose import error
from ...ir.indices.index import Dim, Expr, symbols_of
from ...ir.record import record, replace
from ...ir.types import BOOL, C128, F64, I64, TensorType, dtype_of
from ..face import tree
from ..face.signature import Signature, plain_path
from ..face.source import user_loc
from .arrays.variable import Variable
from .operand import fits_int64
from .spec import Spec, is_spec
from .subclasses import checked_class
from .values.tracer import Tracer


@record(frozen=True, eq=False)
class Call:
    """A call of a function: its arguments as they came, and their leaves and structure."""

    signature: Signature
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    leaves: list[Any]
    structure: tree.TreeDef
    shared: tuple[tuple[int, int], ...] = ()  # arrays that are the same as earlier ones

    @cached_property
    def names(self) -> list[str]:
        """The names of the leaves."""
        return self.signature.names(self.structure)

    @cached_property
    def types(self) -> tuple[tuple[str, TensorType], ...]:
        """Kinds and types of the leaves; see ``types_of``."""
        return tuple(types_of(self.signature, self.leaves, self.names))

    def arguments(self) -> Any:
        """The arguments in normal form, the caller's own containers."""
        return self.signature.arguments(self.args, self.kwargs)

    def sharing(self, shared: Sequence[tuple[int, int]]) -> Call:
        """The same call, in which some arrays are the very memory of earlier ones."""
        return replace(self, shared=tuple(shared))

    def numbers(self, *kinds: type) -> list[str]:
        """The names of leaves that are traced and have one of these very types."""
        return [name for name, leaf in zip(self.names, self.leaves, strict=True)
                if type(leaf) in kinds]

    @staticmethod
    def of(signature: Signature, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Call:
        """A call, flattened once for all that is to be known of it."""
        return Call(signature, args, kwargs, *signature.flatten(args, kwargs))

    def of_sizes(self, names: Collection[str] | None) -> Call:
        """The same call, of which dims that count on these symbols, or all, are what they are."""
        dynamic = {plain_path(name): {
            axis: str(dim) for axis, dim in enumerate(type_.shape)
            if isinstance(dim, Expr) and symbols_of(dim).isdisjoint(names)}
            for name, (_, type_) in zip(self.names, self.types, strict=True)
        } if names is not None else {}
        signature = self.signature.with_dynamic({name: dims for name, dims in dynamic.items()
                                                 if dims})
        return Call.of(signature, self.args, self.kwargs).sharing(self.shared)

    def with_fixed(self, names: Iterable[str]) -> Call:
        """The same call, of which these leaves are static, too."""
        made = Call.of(self.signature.with_fixed(names), self.args, self.kwargs)
        at = {name: number for number, name in enumerate(made.names)} if self.shared else {}
        return made.sharing([(at[self.names[one]], at[self.names[other]])
                             for one, other in self.shared])


def described(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any] | None = None,
    signature: Signature | None = None,
) -> Call:
    """What stands for a call of a function that is traced only: texts may stand for types."""
    return Call.of((signature or Signature(function)).reading(is_spec), args, kwargs or {})


def types_of(
    signature: Signature, leaves: Sequence[Any], names: Sequence[str]
) -> list[tuple[str, TensorType]]:
    """Kind and type of each leaf, with symbols for its dynamic dims. Raises DTypeError (W112)
    for a leaf that cannot be traced, ShapeError (W105) for a dynamic dim that is not there."""
    plain = [plain_path(name) for name in names]
    given = {re.split(r"[.\[]", name)[0] for name in names}
    for wanted in signature.dynamic:
        root = wanted.partition(".")[0]
        omitted = root in signature.defaults and root not in given and root not in signature.static
        if not omitted and not any(covers(wanted, name) for name in plain):
            raise error("W105", f"dynamic: no argument '{wanted}'", locs=user_loc(),
                        hint=f"the arguments are {', '.join(names)}")
    found: list[tuple[str, TensorType]] = []
    for leaf, name, short in zip(leaves, names, plain, strict=True):
        kind, type_ = leaf_type(leaf, name)
        for wanted, dims in signature.dynamic.items():
            if covers(wanted, short):
                known = {size for _, other in found for dim in other.shape
                         for size in symbols_of(dim)}
                type_ = type_.with_shape(_symbolic(type_, dims, name, known))
        found.append((kind, type_))
    return found


def covers(wanted: str, name: str) -> bool:
    """Whether a name in ``dynamic`` is that of a leaf, or of a nest that has it."""
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
