"""Functions of Python in traced code: nodes whose function the host calls, with arrays.

    y = weft.host_call(smooth, "f64[b,3]", x)        smooth gets a NumPy array, and returns one

Arguments and results are nests. A function may keep and change what it is given: it is a copy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...ir.diagnose import error
from ...ir.host import HostFunction, call_host, declare, function_of
from ...ir.indices.index import symbols_of
from ...ir.record import record
from ...ir.types import TensorType
from ..face import tree
from ..face.boundary import boundary
from ..face.source import user_loc, written
from .context.active import context_for, current
from .context.recorder import TraceContext
from .operand import to_tracer
from .spec import Spec


@boundary
def host_call(function: Callable[..., Any], result_specs: Any, *args: Any) -> Any:
    """``function(*args)``, run by Python between the native parts of a compiled program.

    ``args`` are nests of arrays and numbers, which the function gets as NumPy arrays of its own;
    ``result_specs`` is a nest of ``Spec`` or texts such as ``"f32[b,3]"``, of which it returns
    arrays. It is called each time that a step comes to it, in the order of the program, unless
    nobody needs its results; other threads wait for it as for any code of Python. An exception ends
    the step and leaves all variables as they were. There is no gradient.

    Raises DTypeError (W111) or ShapeError (W102) where the function returns something else.

    >>> import numpy as np
    >>> host_call(np.sort, "f64[3]", np.array([3.0, 1.0, 2.0]))
    array([1., 2., 3.])
    """
    if not callable(function):
        raise error("W112", f"host_call needs a function, not {type(function).__name__}",
                    locs=user_loc(), hint="write weft.host_call(function, result_specs, *args)")
    specs, results = tree.flatten(result_specs)
    if not specs:
        raise error("W112", "host_call needs a result: what nobody needs is not computed",
                    locs=user_loc(), hint='give result_specs such as "f32[3]"')
    leaves, given = tree.flatten(args)
    types = [_type(spec) for spec in specs]
    function = written(function)
    found = HostFunction(_name(function, given, results), Adapter(function, given, results))
    ctx = context_for(leaves)
    if ctx is None:
        return _at_once(found, leaves, types, results)
    _check_known(ctx, types)
    stem = getattr(function, "__name__", "").strip("<>")
    return ctx.apply(recorded, (found, leaves, types, results), stem=stem)


@record(frozen=True, eq=False)
class Adapter:
    """A function of nests as one of the arrays in them, to a tuple of arrays."""

    function: Callable[..., Any]
    given: tree.TreeDef
    results: tree.TreeDef

    def __call__(self, *arrays: Any) -> tuple[Any, ...]:
        made = self.function(*tree.unflatten(self.given, arrays))
        if made is None and self.results.kind is None:
            return (made,)
        return tuple(tree.matched(self.results, made))


def recorded(
    function: HostFunction, operands: Sequence[Any], types: Sequence[TensorType],
    results: tree.TreeDef,
) -> Any:
    """Append the node of a call; its results as a nest, in memory that the function orders."""
    made = current().emit_all("host_call", *map(to_tracer, operands), function=function,
                              results=tuple(types))
    for array in made:
        array.ordered = array.dense = False
    return tree.unflatten(results, made)


def _name(function: Callable[..., Any], given: tree.TreeDef, results: tree.TreeDef) -> str:
    """The name of a function in texts and errors: ``model:smooth``, if it is found by that and
    takes and gives arrays, no nests; else ``model.smooth``."""
    module = getattr(function, "__module__", None) or ""
    name = getattr(function, "__qualname__", None) or getattr(function, "__name__", None)
    if name is None:
        return type(function).__name__
    full = f"{module}:{name}"
    plain = all(child.kind is None for child in given.children) and (
        results.kind is None or (results.kind is tuple and all(
            child.kind is None for child in results.children)))
    if not plain or function_of(full) is not function:
        return f"{module}.{name}"
    declare(full)
    return full


def _type(spec: Any) -> TensorType:
    if isinstance(spec, str):
        spec = Spec.parse(spec)
    if not isinstance(spec, Spec):
        raise error("W112", f"{type(spec).__name__} is no type of a result of host_call",
                    locs=user_loc(), hint='give weft.Spec("f32", (3,)) or "f32[3]"')
    if None in spec.shape:
        raise error("W112", "a result of host_call has a size that nothing tells",
                    locs=user_loc(), hint="name it as the dim of an argument is named: f32[b,3]")
    return spec.type("result")


def _check_known(ctx: TraceContext, types: Sequence[TensorType]) -> None:
    """Sizes of results follow from those of arguments."""
    root = ctx
    while root.parent is not None:
        root = root.parent
    known = {name for value in root.graph.params for dim in value.shape
             for name in symbols_of(dim)}
    for type_ in types:
        unknown = {name for dim in type_.shape for name in symbols_of(dim)} - known
        if unknown:
            raise error("W105", f"no argument has the dim {min(unknown)} of the result {type_}",
                        locs=user_loc(), hint=f"known dims are {', '.join(sorted(known))}"
                        if known else "arguments have known sizes only: write numbers")


def _at_once(
    function: HostFunction, leaves: Sequence[Any], types: Sequence[TensorType],
    results: tree.TreeDef,
) -> Any:
    """Outside of a trace; named dims are then whatever the function returns."""
    locs = user_loc()
    arrays = [np.array(leaf) for leaf in leaves]

    def call(*given: Any) -> tuple[Any, ...]:
        made: tuple[Any, ...] = function(*given)
        for value, type_ in zip(made, types, strict=True):
            sizes = (*np.shape(value), *([1] * type_.rank))  # which may be too few
            wanted.append((type_.dtype.numpy, tuple(
                dim if isinstance(dim, int) else size for dim, size in zip(
                    type_.shape, sizes, strict=False))))
        return made

    wanted: list[tuple[np.dtype[Any], tuple[int, ...]]] = []
    made = call_host(call, arrays, {}, wanted, str(function), locs)
    return tree.unflatten(results, [array[()] if array.ndim == 0 else array for array in made])
