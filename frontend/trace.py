"""Tracing: run a Python function once on tracers and keep the graph it draws.

Arguments are nests of arrays, NumPy and Python scalars, ``Spec`` and texts (``"f32[b,784]"``); each
leaf becomes a parameter. Python scalars are parameters too, with NumPy's weak promotion, so that a
changing learning rate does not trace again. Arguments in ``static_argnames`` stay what they are
and belong to the structure (``in_tree``), hence to the cache key.

Closed-over arrays come after the leaves among the graph's parameters, as ``captures``.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..ir.diagnose import Error, error
from ..ir.graph import Graph, Value
from ..ir.index import Dim
from ..ir.printer import print_graph
from ..ir.types import BOOL, F64, I64, TensorType, as_dtype
from . import tree
from .context import Capture, TraceContext
from .numpy_api import NumpyApi
from .operand import is_number, to_tracer
from .scope import current
from .source import definition, user_loc
from .spec import Spec
from .tracer import Operation, Tracer
from .variable import Variable


@dataclass(frozen=True)
class Leaf:
    """One leaf of the arguments: ``kind`` is array, number (a Python one) or variable."""

    name: str  # as the user would write it: x, params['w']
    kind: str
    type: TensorType
    param: Value | None = None  # None for a variable, which is read inside the graph


@dataclass(frozen=True, eq=False)
class Traced:
    """A traced function: its graph, and how arguments and results map to it."""

    graph: Graph
    in_tree: tree.TreeDef
    out_tree: tree.TreeDef
    leaves: tuple[Leaf, ...]
    out_kinds: tuple[str, ...]      # array or number, for each result
    captures: tuple[Capture, ...]
    variables: Mapping[str, Variable]

    def as_text(self) -> str:
        """The graph in text."""
        return print_graph(self.graph)


class Signature:
    """A function's parameters: names for the leaves of its arguments, and which are static.

    ``dynamic`` maps the name of an argument (``x``, ``params.w``, ``params['w']``) to dims and
    their symbols: ``{"x": {0: "b"}}``.
    """

    def __init__(
        self, function: Callable[..., Any], static_argnames: Iterable[str] | str = (),
        dynamic: Mapping[str, Mapping[int, Any]] | None = None,
    ) -> None:
        self.function = function
        names = (static_argnames,) if isinstance(static_argnames, str) else tuple(static_argnames)
        self.static = frozenset(names)
        self.dynamic = {_plain(name): dict(dims) for name, dims in (dynamic or {}).items()}
        try:
            parameters = list(inspect.signature(function).parameters.values())
        except (TypeError, ValueError):  # a built-in function
            parameters = []
        self.positional = [p.name for p in parameters
                           if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        self.rest = next((p.name for p in parameters if p.kind is p.VAR_POSITIONAL), "args")
        any_keyword = any(p.kind is p.VAR_KEYWORD for p in parameters)
        unknown = self.static - {p.name for p in parameters}
        if unknown and not any_keyword and parameters:
            raise error("W112", f"static_argnames: no argument '{min(unknown)}'", locs=user_loc(),
                        hint=f"the arguments are {', '.join(p.name for p in parameters)}")

    def flatten(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> tuple[list[Any], tree.TreeDef]:
        """The leaves of a call and its structure, which holds the static arguments."""
        if self.static:
            args = tuple(self._wrapped(self.name(at), value) for at, value in enumerate(args))
            kwargs = {name: self._wrapped(name, value) for name, value in kwargs.items()}
        return tree.flatten((args, dict(kwargs)))

    def _wrapped(self, name: str, value: Any) -> Any:
        if name not in self.static:
            return value
        if not isinstance(value, Hashable):
            raise error("W112", f"static argument '{name}' must be hashable, not "
                                f"{type(value).__name__}", locs=user_loc(),
                        hint="use a tuple instead of a list, or pass an array that is traced")
        return tree.Static(value)

    def name(self, at: int) -> str:
        """The name of positional argument number ``at``."""
        if at < len(self.positional):
            return self.positional[at]
        return f"{self.rest}[{at - len(self.positional)}]"

    def names(self, structure: tree.TreeDef) -> list[str]:
        """The name of each leaf of a call's structure."""
        args, kwargs = structure.children
        names = [self.name(at) + path for at, child in enumerate(args.children)
                 for path in tree.paths(child)]
        keys: Any = kwargs.meta
        return names + [key + path for key, child in zip(keys, kwargs.children, strict=True)
                        for path in tree.paths(child)]

    def types(self, leaves: Sequence[Any], names: Sequence[str]) -> list[tuple[str, TensorType]]:
        """Kind and type of each leaf, with symbols for its dynamic dims. Raises DTypeError (W112)
        for a leaf that cannot be traced, ShapeError (W105) for a dynamic dim that is not there."""
        plain = [_plain(name) for name in names]
        for wanted in self.dynamic:
            if not any(_covers(wanted, name) for name in plain):
                raise error("W105", f"dynamic: no argument '{wanted}'", locs=user_loc(),
                            hint=f"the arguments are {', '.join(names)}")
        found = []
        for leaf, name, short in zip(leaves, names, plain, strict=True):
            kind, type_ = leaf_type(leaf, name)
            for wanted, dims in self.dynamic.items():
                if _covers(wanted, short):
                    type_ = type_.with_shape(_symbolic(type_, dims, name))
            found.append((kind, type_))
        return found


def _plain(name: str) -> str:
    """One spelling for ``x.w``, ``x['w']`` and ``x["w"]``."""
    return re.sub(r"\[(['\"]?)(.*?)\1\]", r".\2", name)


def _covers(wanted: str, name: str) -> bool:
    return name == wanted or name.startswith(wanted + ".")


def _symbolic(type_: TensorType, dims: Mapping[int, Any], name: str) -> tuple[Dim, ...]:
    shape: list[Any] = list(type_.shape)
    for axis, dim in dims.items():
        if not -len(shape) <= axis < len(shape):
            raise error("W105", f"dynamic: {name} has no axis {axis}", locs=user_loc(),
                        types=[type_], hint=f"its axes are 0 to {len(shape) - 1}" if shape
                        else "it has no dims")
        shape[axis] = dim
    return Spec(type_.dtype, shape).type(name).shape


def leaf_type(leaf: Any, name: str) -> tuple[str, TensorType]:
    """Kind and type of an argument leaf. Raises DTypeError (W112) if it cannot be traced."""
    if isinstance(leaf, (np.ndarray, np.generic)):
        if leaf.__array_priority__ > 0:  # NumPy would let it have its way: matrices, masks, units
            raise error("W112", f"argument {name}: a {type(leaf).__name__} has arithmetic of its "
                                "own", locs=user_loc(), hint="pass np.asarray(x)")
        if leaf.dtype.kind != "c":
            try:
                return "array", TensorType(as_dtype(leaf.dtype), leaf.shape)
            except TypeError:
                pass  # an array of objects, texts or dates
        raise error("W112", f"argument {name}: an array of dtype {leaf.dtype} cannot be traced",
                    locs=user_loc(), hint="convert it to a real number dtype")
    if isinstance(leaf, bool):
        return "number", TensorType(BOOL, ())
    if isinstance(leaf, int) and -(1 << 63) <= leaf < 1 << 63:
        return "number", TensorType(I64, ())
    if isinstance(leaf, float):
        return "number", TensorType(F64, ())
    if isinstance(leaf, Variable):
        return "variable", leaf.type
    if isinstance(leaf, Tracer):
        return "number" if leaf.weak else "array", leaf.type
    if isinstance(leaf, str):
        leaf = Spec.parse(leaf)
    if isinstance(leaf, Spec):
        return "array", leaf.type(name)
    shown = f"{leaf!r}" if isinstance(leaf, (int, complex)) else type(leaf).__name__
    raise error("W112", f"argument {name}: {shown} cannot be traced", locs=user_loc(),
                hint="pass NumPy arrays, numbers or nests of them; register a class of your own "
                     "with weft.tree.register, or name the argument in static_argnames")


def trace_function(
    function: Callable[..., Any],
    args: tuple[Any, ...] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    signature: Signature | None = None,
    name: str | None = None,
) -> Traced:
    """Trace ``function(*args, **kwargs)``; see the module docstring."""
    signature = signature or Signature(function)
    leaves, in_tree = signature.flatten(args, kwargs or {})
    names = signature.names(in_tree)
    types = signature.types(leaves, names)
    ctx = TraceContext(name or _word(getattr(function, "__name__", "") or "main"), NumpyApi())
    entries: list[Leaf] = []
    inputs: list[Any] = []
    for leaf, label, (kind, type_) in zip(leaves, names, types, strict=True):
        param = None if kind == "variable" else ctx.graph.add_param(type_, _word(label))
        entries.append(Leaf(label, kind, type_, param))
        inputs.append(leaf if param is None else
                      Tracer(ctx, param, weak=kind == "number", argument=True))
    try:
        with ctx.activate():
            traced_args, traced_kwargs = tree.unflatten(in_tree, inputs)
            result = function(*traced_args, **traced_kwargs)
            values, out_tree, out_kinds = _results(ctx, function, result)
        ctx.graph.results = values
        ctx.finish()
    except (TypeError, ValueError) as problem:
        hidden = _hidden(ctx, problem)
        if hidden is None:
            raise
        raise hidden from None
    finally:
        ctx.alive = False
    return Traced(ctx.graph, in_tree, out_tree, tuple(entries), out_kinds, tuple(ctx.captures),
                  dict(ctx.variables))


def _hidden(ctx: TraceContext, problem: Exception) -> Error | None:
    """The error in whose place NumPy raised ``problem``, as it does for ``buffer[i] = traced`` and
    ``np.zeros(traced)``: the last refusal, if it happened on the very line."""
    refused, at = ctx.refused, problem.__traceback__
    if isinstance(problem, Error) or refused is None or at is None or not refused.locs:
        return None
    while at.tb_next is not None:
        at = at.tb_next
    place = refused.locs[0]
    same = (place.file, place.line) == (at.tb_frame.f_code.co_filename, at.tb_lineno)
    return refused if same else None


def _word(label: str) -> str:
    """A leaf's name as a word of the graph's text: ``params['w'][0]`` gives params_w_0."""
    return re.sub(r"\W+", "_", label).strip("_") or "arg"


def _results(
    ctx: TraceContext, function: Callable[..., Any], result: Any
) -> tuple[list[Value], tree.TreeDef, tuple[str, ...]]:
    """The values of a function's result, its structure, and array or number for each value."""
    # Operations (assignments) happen; there is nothing of them to return.
    result = tree.map(lambda leaf: None if isinstance(leaf, Operation) else leaf, result)
    leaves, structure = tree.flatten(result)
    values: list[Value] = []
    kinds: list[str] = []
    for leaf, path in zip(leaves, tree.paths(structure), strict=True):
        if not (isinstance(leaf, (Tracer, Variable, np.ndarray)) or is_number(leaf)):
            raise error("W112", f"the function returns {type(leaf).__name__}"
                                f"{f' at {path}' if path else ''}, which is no array",
                        locs=definition(function), hint="return arrays, numbers and nests of them")
        tracer = ctx.apply(to_tracer, (leaf,))
        values.append(ctx.value_of(tracer))
        kinds.append("number" if tracer.weak else "array")
    return values, structure, tuple(kinds)


@dataclass(frozen=True, eq=False)
class Region:
    """A traced body: its graph takes the operands, then ``closure``, values of the outer trace."""

    graph: Graph
    closure: tuple[Tracer, ...]
    out_tree: tree.TreeDef
    weak: tuple[bool, ...]


def trace_region(function: Callable[..., Any], operands: Sequence[Tracer], in_tree: tree.TreeDef,
                 name: str) -> Region:
    """Trace a body on operands of the current trace, as a graph for an attribute of a node."""
    outer = current()
    ctx = TraceContext(name, outer.api, parent=outer)
    inputs = [Tracer(ctx, ctx.graph.add_param(x.type, x.name.removesuffix(":0").replace(":", "_")),
                     weak=x.weak, argument=True) for x in operands]
    try:
        with ctx.activate():
            values, out_tree, kinds = _results(
                ctx, function, function(*tree.unflatten(in_tree, inputs)))
    finally:
        ctx.alive = False
    ctx.graph.results = values
    return Region(ctx.graph, tuple(tracer for _, tracer in ctx.closure), out_tree,
                  tuple(kind == "number" for kind in kinds))
