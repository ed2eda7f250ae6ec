"""custom_vjp and remat: functions that say how they are differentiated, with JAX's meaning.

Both are traced as bodies of a node, which the compiler puts back in its place; see
``passes/transform/called``. What they read from around, and the variables, are operands of it.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from ...ir.diagnose import error
from ...ir.graph import Graph
from ...ir.ops.table import OPS
from ...ir.types import TensorType
from ...passes.state import resolve_state
from ..face import tree
from ..face.boundary import boundary
from ..face.source import definition, user_loc
from ..tracing.context.active import context_for, current
from ..tracing.context.recorder import TraceContext
from ..tracing.operand import as_int, cast, matched, to_tracer
from ..tracing.trace import Region, trace_region
from ..tracing.values.tracer import Tracer
from .bodies import check_body, check_function
from .regions import Slot, name_of_body, results_of, traced, with_closure


class custom_vjp:  # noqa: N801  # a function to its users, as JAX's
    """A function with a gradient of its own, given by ``defvjp(fwd, bwd)``.

    ``fwd`` takes the arguments of the function and returns ``(result, saved)``; ``bwd(saved, ct)``
    returns a tuple with the cotangent of each argument, or None for zeros. Arguments in
    ``nondiff_argnums`` are passed to ``bwd`` first, as they are. Outside of gradients the function
    itself is run. What is differentiated twice is what ``fwd`` and ``bwd`` compute.

    Raises when called in traced code: W114 without ``defvjp`` or for what is no pair, ShapeError
    (W102) or DTypeError (W111) where results or cotangents do not fit, W113 where a variable is
    assigned. There is no forward mode (W113).

    >>> import numpy as np
    >>> from weft import grad
    >>> @custom_vjp
    ... def clipped(x):
    ...     return x
    >>> clipped.defvjp(lambda x: (x, None), lambda saved, ct: (np.clip(ct, -1, 1),))
    >>> grad(lambda x: clipped(x) ** 2)(5.0)
    1.0
    """

    def __init__(
        self, function: Callable[..., Any], nondiff_argnums: int | Sequence[int] = ()
    ) -> None:
        check_function(function, "custom_vjp: what is given a gradient")
        functools.update_wrapper(self, function)
        self._function = function
        numbers = (nondiff_argnums,) if isinstance(nondiff_argnums, int) else nondiff_argnums
        self._static = frozenset(as_int(at, "argument number") for at in numbers)
        self._rule: tuple[Callable[..., Any], Callable[..., Any]] | None = None

    def defvjp(self, fwd: Callable[..., Any], bwd: Callable[..., Any]) -> None:
        """Set the gradient; see the class. Raises DTypeError (W114) for what is no function, or
        takes other arguments."""
        check_function(fwd, f"custom_vjp: fwd of {self.__name__}")  # type: ignore[attr-defined]
        static = [f"static_{at}" for at in range(len(self._static))]
        check_body(bwd, f"custom_vjp: bwd of {self.__name__}",  # type: ignore[attr-defined]
                   *static, "saved", "ct")
        self._rule = fwd, bwd

    def converted(self, convert: Callable[[Any], Any]) -> custom_vjp:
        """The same of other functions: their rewritten copies."""
        made = custom_vjp(convert(self._function), tuple(self._static))
        made._rule = None if self._rule is None else (convert(self._rule[0]),
                                                      convert(self._rule[1]))
        return made

    @boundary
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if kwargs:
            bound = inspect.signature(self._function).bind(*args, **kwargs)
            bound.apply_defaults()
            args = bound.args
        if self._rule is None:
            raise error("W114", f"custom_vjp: {self.__name__} has no gradient yet",  # type: ignore[attr-defined]
                        locs=definition(self._function), hint="give it one: f.defvjp(fwd, bwd)")
        ctx = context_for(tree.leaves(args))
        if ctx is None:
            return self._function(*args)
        if ctx.derivatives < 0:  # fwd calls it, and is not differentiated
            return ctx.as_written(self._function)(*args)
        function, fwd, bwd = map(ctx.as_written, (self._function, *self._rule))
        return _Custom(function, fwd, bwd, self._static, args).recorded()


class _Custom:
    """One call of such a function in traced code."""

    def __init__(
        self, function: Callable[..., Any], fwd: Callable[..., Any], bwd: Callable[..., Any],
        static: frozenset[int], args: tuple[Any, ...],
    ) -> None:
        self.function, self.fwd, self.bwd, self.args = function, fwd, bwd, args
        self.static = [at for at in range(len(args)) if at in static]
        self.traced = [at for at in range(len(args)) if at not in static]
        self.name = name_of_body(function, "custom")

    def recorded(self) -> Any:
        given = tuple(self.args[at] for at in self.traced)
        ctx = context_for(tree.leaves(self.args)) or current()
        operands, structure = traced(ctx, given)
        slots = [Slot.of(x) for x in operands]
        body = trace_region(self._whole(self.function), slots, structure, self.name)
        with ctx.differentiating(-1):
            forward = trace_region(self._whole(self._pair), slots, structure,
                                   f"{self.name}_forward")
        self._check(body, forward)
        count = len(body.graph.results)
        more = [Slot("saved" if at >= count else "ct", value.type, False)
                for at, value in enumerate(forward.graph.results)]
        wrt = tuple(at for at, x in enumerate(operands) if x.dtype.kind not in "iub")
        _, nests = tree.split(tuple(_nest(x) for x in (forward.out_tree.children[1],
                                                       body.out_tree)))
        with ctx.differentiating(-1):
            backward = trace_region(
                lambda saved, cotangent: self._cotangents(saved, cotangent, operands, structure),
                [*more[count:], *more[:count]], nests, f"{self.name}_backward")
        regions = [body, forward, backward]
        graphs, closure, written = pure(
            ctx, regions, [len(operands), len(operands), len(more)])
        if any(written):
            raise error("W113", f"custom_vjp: {self.name} assigns a variable", locs=user_loc(),
                        hint="return the value, and assign it outside")
        made = ctx.apply(_emitted, (ctx, "custom_vjp", [*operands, *closure], {
            "body": graphs[0], "forward": graphs[1], "backward": graphs[2], "wrt": wrt},
            body.weak), stem=self.name)
        return tree.unflatten(body.out_tree, made)

    def _whole(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function of the traced arguments alone."""
        def call(*given: Any) -> Any:
            args = list(self.args)
            for at, arg in zip(self.traced, given, strict=True):
                args[at] = arg
            return function(*args)

        return call

    def _pair(self, *args: Any) -> Any:
        found = self.fwd(*args)
        if not (isinstance(found, tuple) and len(found) == 2):
            raise error("W114", f"custom_vjp: fwd of {self.name} returns {type(found).__name__}, "
                                "not (result, saved)", locs=definition(self.fwd),
                        hint="return a pair; what is saved may be None")
        return found

    def _check(self, body: Region, forward: Region) -> None:
        """The results of ``fwd`` are those of the function."""
        count = len(body.graph.results)
        types = [[x.type for x in region.graph.results[:count]] for region in (body, forward)]
        if body.out_tree != forward.out_tree.children[0] or types[0] != types[1]:
            shown = [", ".join(map(str, each)) for each in types]
            if body.out_tree != forward.out_tree.children[0]:
                shown = [repr(body.out_tree), repr(forward.out_tree.children[0])]
            raise error("W102", f"custom_vjp: {self.name} returns {shown[0]}, its fwd {shown[1]}",
                        locs=definition(self.fwd),
                        hint="let fwd return (result, saved) with the same result")

    def _cotangents(
        self, saved: Any, cotangent: Any, operands: Sequence[Tracer], structure: tree.TreeDef
    ) -> list[Tracer]:
        """What ``bwd`` returns for each operand that is no integer."""
        found = self.bwd(*(self.args[at] for at in self.static), saved, cotangent)
        if not (isinstance(found, (tuple, list)) and len(found) == len(self.traced)):
            shown = (f"{len(found)} cotangents" if isinstance(found, (tuple, list))
                     else "no tuple")
            raise error("W102", f"custom_vjp: bwd of {self.name} returns {shown} for "
                                f"{len(self.traced)} arguments", locs=definition(self.bwd),
                        hint="return a tuple with an entry, or None, for each argument")
        leaves: list[Any] = []
        for part, below in zip(found, structure.children, strict=True):
            leaves += [None] * below.count if part is None else tree.matched(below, part)
        return [self._cotangent(leaf, x.type) for leaf, x in zip(leaves, operands, strict=True)
                if x.dtype.kind not in "iub"]

    def _cotangent(self, leaf: Any, wanted: TensorType) -> Tracer:
        ctx = current()
        if leaf is None:
            return ctx.full(0.0, wanted.dtype, wanted.shape)
        made: Tracer = ctx.apply(to_tracer, (leaf,))
        differ = [a for a, b in zip(made.type.shape, wanted.shape, strict=False)
                  if isinstance(a, int) and isinstance(b, int) and a != b]
        if differ or len(made.type.shape) != len(wanted.shape) or (
                made.dtype.kind == "c" and not wanted.dtype.is_complex):
            raise error("W102", f"custom_vjp: bwd of {self.name} returns {made.type} for an "
                                f"argument {wanted}", locs=definition(self.bwd),
                        types=[made.type, wanted], hint="return cotangents of the type of the "
                                                        "arguments")
        return ctx.apply(  # type: ignore[no-any-return]
            lambda: matched(cast(made, wanted.dtype.numpy), wanted.shape), ())


def remat(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, of which the backward pass of gradients computes the values again instead of
    saving them: less memory, more work. Values do not change.

    Random numbers are drawn, and variables assigned, once.

    >>> import numpy as np
    >>> from weft import grad
    >>> grad(lambda x: np.sum(remat(np.sin)(x) ** 2))(np.array([0.0, 1.0]))
    array([0.        , 0.90929743])
    """
    check_function(function, "remat: what is computed again")

    @functools.wraps(function)
    @boundary
    def again(*args: Any, **kwargs: Any) -> Any:
        ctx = context_for(tree.leaves((args, kwargs)))
        if ctx is None:
            return function(*args, **kwargs)
        leaves, structure = tree.split((args, kwargs))
        places = [at for at, leaf in enumerate(leaves) if isinstance(leaf, Tracer)]
        operands = [leaves[at] for at in places]

        def call(*given: Any) -> Any:
            inside = list(leaves)
            for at, leaf in zip(places, given, strict=True):
                inside[at] = leaf
            own, options = tree.unflatten(structure, inside)
            return ctx.as_written(function)(*own, **options)

        name = name_of_body(function, "remat")
        region = trace_region(call, [Slot.of(x) for x in operands],
                              tree.structure((0,) * len(operands)), name)
        (body,), closure, (written,) = pure(ctx, [region], [len(operands)])
        made = ctx.apply(_emitted, (
            ctx, "call", [*operands, *closure], {"body": body, "again": True},
            (*region.weak, *(False for _ in written))), stem=name)
        count = len(region.weak)
        if written:
            made = ctx.apply(_assigned, (ctx, made[:count], dict(zip(
                written, made[count:], strict=True))))
        return tree.unflatten(region.out_tree, made)

    return again


def pure(
    ctx: TraceContext, regions: Sequence[Region], counts: Sequence[int]
) -> tuple[list[Graph], list[Tracer], list[list[str]]]:
    """Bodies without effects; the operands that come after their own ``counts``; the variables
    whose new values are the last results of each."""
    closure = with_closure(regions, counts)
    graphs = [resolve_state(region.graph) for region in regions]
    types = {name: value.type for graph in graphs for name, value in graph.var_params.items()}
    written = [list(graph.var_results) for graph in graphs]
    for graph in graphs:
        own, state = list(graph.params), dict(graph.var_params)
        ordinary = own[:len(own) - len(state)]
        state = {name: state.get(name) or graph.add_param(type_, name)
                 for name, type_ in types.items()}
        graph.params = [*ordinary, *state.values()]
        graph.variables, graph.var_params, graph.var_results, graph.homes = {}, {}, {}, {}
    reads = [ctx.apply(ctx.read, (ctx.variable(name),)) for name in types]
    return graphs, [*closure, *reads], written


def _nest(structure: tree.TreeDef) -> Any:
    return tree.unflatten(structure, [0] * structure.count)


def _emitted(
    ctx: TraceContext, op: str, operands: Sequence[Tracer], attrs: dict[str, Any],
    weak: Sequence[bool],
) -> tuple[Tracer, ...]:
    inputs = [ctx.value_of(x) for x in operands]
    return tuple(results_of(ctx, ctx.builder.emit(OPS[op], inputs, attrs), weak))


def _assigned(
    ctx: TraceContext, results: Sequence[Tracer], values: dict[str, Tracer]
) -> tuple[Tracer, ...]:
    """Results that come with the assignments: who fetches one has them done."""
    done = [ctx.write("assign_var", ctx.variable(name), value) for name, value in values.items()]
    with ctx.waiting(*done):
        made = [Tracer(ctx, ctx.emit("identity", x).value, weak=x.weak) for x in results]
    return tuple(made)


