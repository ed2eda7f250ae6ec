"""Random programs: what is compiled gives what the reference interpreter gives.

Every value of a drawn program is either *exact* (small integers in any dtype, moved, added,
multiplied, compared) or *close* (something irrational behind it). Exact values must be equal to
the last bit however the program is fused and compiled; close ones agree up to rounding. Nothing
that jumps (a comparison, a rounding, an index) is ever applied to a close value.

``WEFT_FUZZ=5000 pytest tests/test_programs_random.py`` draws that many programs for each test.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st

import weft
from weft import Variable
from weft.frontend.pipeline import Options, Stages
from weft.frontend.program import make_program
from weft.ir.graph import Builder, Graph, Node, Value
from weft.ir.index import Dim, evaluate, symbol
from weft.ir.interp import run_graph, run_plan
from weft.ir.ops import OPS
from weft.ir.printer import print_graph
from weft.ir.types import BOOL, F32, F64, I32, I64, U32, U64, TensorType
from weft.ir.types import DTYPES as ALL
from weft.ir.verify import verify_graph, verify_kernel, verify_plan
from weft.passes.fuse import grow
from weft.passes.grad import gradient
from weft.passes.regions import Partition, is_transparent

Array = np.ndarray[Any, Any]
B, S = symbol("b"), symbol("s")
FUZZ = int(os.environ.get("WEFT_FUZZ", "0"))
# Past this, sums and products of whole numbers are rounded.
EXACT = {np.dtype(np.float32): 2.0**22, np.dtype(np.float64): 2.0**50}


def examples(count: int) -> Callable[[Any], Any]:
    """``count`` examples, the same ones in each run; WEFT_FUZZ of them at random if it is set."""
    return settings(max_examples=FUZZ or count, derandomize=not FUZZ, deadline=None,
                    phases=set(Phase) - {Phase.explain},
                    suppress_health_check=list(HealthCheck))


class Writer:
    """Draws one program; each ``add_*`` appends a few nodes, or none where nothing fits."""

    def __init__(
        self, draw: st.DrawFn, *, dims: Sequence[Dim], state: bool, smooth: bool
    ) -> None:
        self.draw, self.dims, self.smooth = draw, dims, smooth
        self.graph = Graph("drawn")
        self.b: Any = Builder(self.graph, OPS, share=False, fold=False)
        self.exact: dict[int, bool] = {}
        self.values: list[Value] = []
        self.choices = [
            self.add_arithmetic, self.add_arithmetic, self.add_smooth, self.add_smooth,
            self.add_compare, self.add_select, self.add_cast, self.add_reshape, self.add_transpose,
            self.add_broadcast, self.add_broadcast, self.add_slice, self.add_pad,
            self.add_concatenate, self.add_reduce, self.add_reduce, self.add_normal,
            self.add_argmax, self.add_contract, self.add_contract, self.add_gather,
            self.add_scatter, self.add_constant, *([self.add_state] * 2 if state else [])]

    # -- choosing -------------------------------------------------------------------------------

    def one(self, options: Any) -> Any:
        return self.draw(st.sampled_from(list(options)))

    def yes(self) -> bool:
        return self.draw(st.booleans())

    def value(self, accept: Callable[[Value], bool] = lambda value: True) -> Value | None:
        # Newer values first: that gives deep programs, and Hypothesis shrinks towards index 0.
        found = [value for value in reversed(self.values) if accept(value)]
        return found[self.draw(st.integers(0, min(len(found) - 1, 7)))] if found else None

    def is_exact(self, value: Value) -> bool:
        return self.exact[id(value)]

    def keep(self, value: Value, exact: bool) -> Value:
        self.exact[id(value)] = exact
        self.values.append(value)
        return value

    def param(self, type_: TensorType, exact: bool) -> Value:
        return self.keep(self.graph.add_param(type_, f"p{len(self.graph.params)}"), exact)

    def like(self, x: Value) -> Value:
        """Another value of the type of x, exact if x is."""
        other = self.value(lambda value: value.type == x.type
                           and (self.is_exact(value) or not self.is_exact(x)))
        return other if other is not None else x

    # -- elementwise ----------------------------------------------------------------------------

    def add_arithmetic(self) -> None:
        x = self.value()
        if x is None:
            return
        y = self.like(x)
        exact = self.is_exact(x) and self.is_exact(y)
        if x.dtype == BOOL:
            self.keep(getattr(self.b, self.one(("and_", "or_", "xor")))(x, y), exact)
            return
        names = ["add", "sub", "mul", "neg"]
        if not self.smooth:
            names += ["maximum", "minimum", "abs"]
        if x.dtype.is_int:
            names += ["floordiv", "mod", "sign", "xor", "and_"]
        name = self.one(names)
        operands = (x,) if OPS[name].arity == 1 else (x, y)
        self.keep(getattr(self.b, name)(*operands), exact)

    def add_smooth(self) -> None:
        """Functions that do not amplify an error of their operand."""
        x = self.value(lambda value: value.dtype.is_float)
        if x is None:
            return
        b = self.b
        square = b.mul(x, x)
        self.keep(self.one((
            lambda: b.tanh(x), lambda: b.sigmoid(x), lambda: b.exp(b.neg(square)),
            lambda: b.atan(x), lambda: b.erf(x), lambda: b.sqrt(b.add(square, 1.0)),
            lambda: b.log1p(square), lambda: b.div(x, b.add(square, 1.0)),
            lambda: b.atan2(x, b.add(square, 1.0)), lambda: b.exp(b.tanh(x)),
            lambda: b.mul(x, 0.3)))(), False)

    def add_compare(self) -> None:
        x = self.value(self.is_exact)
        if x is not None:
            name = self.one(("lt", "le", "gt", "ge", "eq", "ne"))
            self.keep(getattr(self.b, name)(x, self.like(x)), True)

    def add_select(self) -> None:
        x = self.value()
        if x is None:
            return
        y = self.like(x)
        condition = self.value(lambda value: value.dtype == BOOL and value.shape == x.shape)
        if condition is None:
            tested = self.value(lambda value: value.shape == x.shape and self.is_exact(value))
            if tested is None:
                return
            condition = self.b.lt(tested, self.b.full(1, tested.type))
        self.keep(self.b.select(condition, x, y), self.is_exact(x) and self.is_exact(y))

    def add_cast(self) -> None:
        x = self.value()
        if x is None:
            return
        if x.dtype.is_float and not self.is_exact(x):
            self.keep(self.b.cast(x, dtype=F64 if x.dtype == F32 else F32), False)
            return
        if x.dtype.is_float or x.dtype.bits == 64:  # small again, so that every dtype has it
            x = self.b.maximum(self.b.minimum(x, 9), 0)
        elif x.dtype != BOOL:
            x = self.b.mod(x, 9)
        self.keep(self.b.cast(x, dtype=self.one(NAMED)), True)

    def add_constant(self) -> None:
        x = self.value(lambda value: value.type.rank > 0)
        if x is None:
            return
        if self.yes():
            axis = self.draw(st.integers(0, x.type.rank - 1))
            self.keep(self.b.iota(axis=axis, dtype=self.one((F32, F64, I64, I32)),
                                  shape=x.shape), True)
        else:
            number = self.draw(st.integers(0, 3))
            self.keep(self.b.full(bool(number) if x.dtype == BOOL else number, x.type), True)

    # -- views ----------------------------------------------------------------------------------

    def add_reshape(self) -> None:
        x = self.value()
        if x is None:
            return
        shape, rank = x.shape, x.type.rank
        options: list[tuple[Dim, ...]] = [(x.type.size,), (1, *shape), (*shape, 1), shape[::-1]]
        if rank >= 2:
            at = self.draw(st.integers(0, rank - 2))
            options.append((*shape[:at], shape[at] * shape[at + 1], *shape[at + 2:]))
        options += [(*shape[:at], dim // 2, 2, *shape[at + 1:]) for at, dim in enumerate(shape)
                    if isinstance(dim, int) and dim % 2 == 0]
        self.keep(self.b.reshape(x, shape=self.one(options)), self.is_exact(x))

    def add_transpose(self) -> None:
        x = self.value(lambda value: value.type.rank > 1)
        if x is not None:
            perm = tuple(self.draw(st.permutations(range(x.type.rank))))
            self.keep(self.b.transpose(x, perm=perm), self.is_exact(x))

    def add_broadcast(self) -> None:
        """x along new axes, preferably into the shape of another value."""
        x = self.value(lambda value: value.type.rank < 3)
        if x is None:
            return
        shape = x.shape

        def places(value: Value) -> tuple[int, ...] | None:
            at, found = 0, []
            for axis, dim in enumerate(value.shape):
                if at < len(shape) and dim == shape[at]:
                    found.append(axis)
                    at += 1
            return tuple(found) if at == len(shape) and value.type.rank > at else None

        wide = self.value(lambda value: places(value) is not None)
        if wide is not None:
            full, axes = wide.shape, places(wide)
        else:
            full, axes = (self.one(self.dims), *shape), tuple(range(1, len(shape) + 1))
        self.keep(self.b.broadcast(x, shape=full, axes=axes), self.is_exact(x))

    def add_slice(self) -> None:
        x = self.value(lambda value: any(isinstance(dim, int) for dim in value.shape))
        if x is None:
            return
        start, step, shape = [], [], []
        for dim in x.shape:
            first, by, count = 0, 1, dim
            if isinstance(dim, int) and dim > 0 and self.yes():
                first = self.draw(st.integers(0, dim - 1))
                by = self.one((1, 1, 2, -1, -2))
                room = (dim - 1 - first) // by if by > 0 else first // -by
                count = self.draw(st.integers(0 if self.dims[0] == 0 else 1, room + 1))
            start.append(first)
            step.append(by)
            shape.append(count)
        self.keep(self.b.slice(x, start=tuple(start), step=tuple(step), shape=tuple(shape)),
                  self.is_exact(x))

    def add_pad(self) -> None:
        x = self.value(lambda value: value.type.rank > 0 and value.dtype != BOOL)
        if x is None:
            return
        static = [isinstance(dim, int) and dim > 0 for dim in x.shape]
        low = tuple(self.draw(st.integers(0, 2)) for _ in static)
        high = tuple(self.draw(st.integers(0, 2)) for _ in static)
        gap = tuple(self.draw(st.integers(0, 1)) if still else 0 for still in static)
        self.keep(self.b.pad(x, low=low, high=high, interior=gap, value=self.one((0, 1))),
                  self.is_exact(x))

    def add_concatenate(self) -> None:
        x = self.value(lambda value: value.type.rank > 0)
        if x is None:
            return
        axis = self.draw(st.integers(0, x.type.rank - 1))

        def fits(value: Value) -> bool:
            return (value.dtype == x.dtype and value.type.rank == x.type.rank
                    and all(a == z for at, (a, z) in enumerate(
                        zip(value.shape, x.shape, strict=True)) if at != axis))

        parts = [x, *(self.value(fits) or x for _ in range(self.draw(st.integers(1, 2))))]
        self.keep(self.b.concatenate(*parts, axis=axis), all(map(self.is_exact, parts)))

    # -- across elements ------------------------------------------------------------------------

    def add_reduce(self) -> None:
        x = self.value()
        if x is None:
            return
        rank = x.type.rank
        axes = tuple(sorted(self.draw(st.sets(st.integers(0, rank - 1), max_size=rank)))
                     if rank else ())
        names = ["any", "all"] if x.dtype == BOOL else ["sum", "sum", "max", "min"]
        name = "sum" if self.smooth and x.dtype.is_float else self.one(names)
        if name in ("max", "min") and any(x.shape[axis] == 0 for axis in axes):
            return
        result = self.keep(getattr(self.b, name)(x, axes=axes), self.is_exact(x))
        if self.yes():  # back to the shape of x, as keepdims is used
            kept = tuple(axis for axis in range(rank) if axis not in axes)
            self.keep(self.b.broadcast(result, shape=x.shape, axes=kept), self.is_exact(x))

    def add_normal(self) -> None:
        """softmax or layer norm over the last axis."""
        x = self.value(lambda value: value.dtype.is_float and value.type.rank > 0
                       and value.shape[-1] != 0)
        if x is None:
            return
        b, axes = self.b, (x.type.rank - 1,)
        kept = tuple(range(x.type.rank - 1))

        def wide(value: Value) -> Value:
            result: Value = b.broadcast(value, shape=x.shape, axes=kept)
            return result

        x = b.tanh(x)
        if self.yes():
            e = b.exp(b.sub(x, wide(b.max(x, axes=axes))))
            self.keep(b.div(e, wide(b.sum(e, axes=axes))), False)
        else:
            d = b.sub(x, wide(b.mean(x, axes=axes)))
            spread = b.mean(b.mul(d, d), axes=axes)
            self.keep(b.div(d, wide(b.sqrt(b.add(spread, 0.1)))), False)

    def add_argmax(self) -> None:
        x = self.value(lambda value: self.is_exact(value) and value.type.rank > 0
                       and all(dim != 0 for dim in value.shape))
        if x is not None:
            axis = self.draw(st.integers(0, x.type.rank - 1))
            self.keep(getattr(self.b, self.one(("argmax", "argmin")))(x, axis=axis), True)

    def add_contract(self) -> None:
        x = self.value(lambda value: value.dtype != BOOL and 0 < value.type.rank <= 3)
        if x is None:
            return
        letters = "ijk"[:x.type.rank]
        shared = self.one(letters)
        batch = "".join(c for c in letters if c != shared and self.yes())
        sizes = dict(zip(letters, x.shape, strict=True))

        def fits(value: Value) -> bool:
            return (value.dtype == x.dtype and len(batch) + 1 <= value.type.rank <= 3
                    and value.shape[:len(batch)] == tuple(sizes[c] for c in batch)
                    and sizes[shared] in value.shape[len(batch):])

        y = self.value(fits)
        if y is None or (x.dtype.is_float and self.is_exact(x) != self.is_exact(y)):
            return
        rest = list("mn"[:y.type.rank - len(batch) - 1])
        at = len(batch) + y.shape[len(batch):].index(sizes[shared])
        rhs = [*batch, *rest]
        rhs.insert(at, shared)
        out = [*batch, *(c for c in letters if c not in batch and c != shared), *rest]
        if self.yes():
            out = list(self.draw(st.permutations(out)))
        if len(out) <= 3:
            self.keep(self.b.contract(x, y, dims=f"{letters},{''.join(rhs)}->{''.join(out)}"),
                      self.is_exact(x) and self.is_exact(y))

    def indices(self, extent: int) -> Value | None:
        """Indices into an axis, half of them negative perhaps."""
        index = self.value(lambda value: value.dtype in (I32, I64) and value.type.rank < 3)
        if index is None:
            return None
        index = self.b.mod(index, extent)
        return self.b.sub(index, extent) if self.yes() else index

    def add_gather(self) -> None:
        x = self.value(lambda value: any(isinstance(d, int) and d > 0 for d in value.shape))
        if x is None:
            return
        axis = self.one(at for at, dim in enumerate(x.shape) if isinstance(dim, int) and dim > 0)
        index = self.indices(x.shape[axis])
        if index is not None and index.type.rank + x.type.rank <= 4:
            self.keep(self.b.gather(x, index, axes=(axis,)), self.is_exact(x))

    def add_scatter(self) -> None:
        x = self.value(lambda value: value.dtype != BOOL
                       and any(isinstance(d, int) and d > 0 for d in value.shape))
        if x is None:
            return
        axis = self.one(at for at, dim in enumerate(x.shape) if isinstance(dim, int) and dim > 0)
        index = self.indices(x.shape[axis])
        if index is None:
            return
        rest = tuple(dim for at, dim in enumerate(x.shape) if at != axis)
        updates = self.value(lambda value: value.type == TensorType(x.dtype, index.shape + rest))
        if updates is None:
            number = self.value(lambda value: value.type == TensorType(x.dtype, ()))
            if number is None:
                return
            updates = self.b.broadcast(number, shape=index.shape + rest, axes=())
            self.exact[id(updates)] = self.is_exact(number)
        self.keep(self.b.scatter_add(x, updates, index, axes=(axis,)),
                  self.is_exact(x) and self.is_exact(updates))

    # -- state ----------------------------------------------------------------------------------

    def add_state(self) -> None:
        variables = self.graph.variables
        if variables and self.yes():
            var = self.one(variables)
            attrs = {"var": var, "type": variables[var]}
            read = self.b.emit(OPS["read_var"], (), attrs).results[0]
            self.keep(read, False)  # it may have been assigned anything
            x = self.value(lambda value: value.type == variables[var])
        else:
            x = self.value(lambda value: value.dtype != BOOL and all(
                isinstance(dim, int) for dim in value.shape))
            var = f"v{len(variables)}"
        if x is not None:
            attrs = {"var": var, "type": variables.setdefault(var, x.type)}
            op = self.one(("assign_var", "update_var"))
            self.b.emit(OPS[op], (x,), attrs)

    def write(self, steps: int) -> Graph:
        for _ in range(self.draw(st.integers(1, steps))):
            self.one(self.choices)()
        made = self.values[len(self.graph.params):] or self.values
        wanted = self.draw(st.lists(st.sampled_from(made), min_size=1, max_size=3))
        self.graph.results = [made[-1], *wanted]
        return self.graph


class Program:
    """A drawn program, two sets of arguments for it, and which results are exact."""

    def __init__(self, writer: Writer, graph: Graph, seed: int) -> None:
        self.graph = graph
        self.exact = [writer.is_exact(value) for value in graph.results]
        self.inputs = [writer.is_exact(value) for value in graph.params]
        self.seed = seed

    def __repr__(self) -> str:
        return f"seed {self.seed}\n{print_graph(self.graph)}"

    def arguments(self, b: int, s: int) -> tuple[list[Array], dict[str, Array]]:
        rng = np.random.default_rng(self.seed)
        env = {"b": b, "s": s}

        def array(type_: TensorType, exact: bool) -> Array:
            shape = [evaluate(dim, env) for dim in type_.shape]
            if type_.dtype.is_float and not exact:
                return np.asarray(rng.normal(size=shape)).astype(type_.dtype.numpy)
            low = -3 if type_.dtype.kind in "if" else 0
            high = 2 if type_.dtype == BOOL else 4
            return np.asarray(rng.integers(low, high, shape)).astype(type_.dtype.numpy)

        arrays = [array(value.type, exact)
                  for value, exact in zip(self.graph.params, self.inputs, strict=True)]
        return arrays, {var: array(type_, True) for var, type_ in self.graph.variables.items()}


NAMED = (F32, F64, I64, I32, U32, U64, BOOL, *(ALL[name] for name in ("i8", "u8", "i16", "u16")))


@st.composite
def programs(draw: st.DrawFn, steps: int = 12, *, state: bool = True,
             smooth: bool = False) -> Program:
    """A program over dims that are small, sometimes 0 or 1, or symbolic.

    With ``smooth`` its float functions have gradients everywhere: no kinks, where a rounding error
    of nothing would choose another side.
    """
    dims: list[Dim] = [3, 5, 4, 1, 2]
    dims += draw(st.sampled_from(([], [], [B, S], [B, B + 1, 2 * B], [0])))
    if draw(st.booleans()):  # beyond one vector
        dims[0] = draw(st.sampled_from((16, 33, 70)))
    writer = Writer(draw, dims=dims, state=state, smooth=smooth)
    shapes = st.lists(st.sampled_from(dims), max_size=3).map(tuple)
    if any(not isinstance(dim, int) for dim in dims):
        writer.param(TensorType(F64, (B, S)), True)  # binds every symbol
    for _ in range(draw(st.integers(1, 4))):
        dtype = draw(st.sampled_from((F32, F32, F32, I64, *NAMED)))
        writer.param(TensorType(dtype, draw(shapes)), not dtype.is_float or draw(st.booleans()))
    return Program(writer, writer.write(steps), draw(st.integers(0, 999)))


class Oracle:
    """What the interpreter says, how large numbers got on the way, and if any was rounded."""

    def __init__(self, program: Program, graph: Graph, arrays: list[Array],
                 state: dict[str, Array]) -> None:
        self.scale, self.exact = 1.0, True
        self.state = dict(state)
        self.results = run_graph(graph, arrays, self.state, watch=self._see)
        self.program = program
        single = any(value.dtype == F32 for value in graph.values())
        self.epsilon = 2e-5 if single else 1e-11

    def _see(self, node: Node, results: tuple[Array, ...]) -> None:
        for array in results:
            if array.dtype.kind == "f" and array.size:
                largest = float(np.max(np.abs(array)))
                self.scale = max(self.scale, largest)
                self.exact &= largest < EXACT[array.dtype]

    def check(self, results: Sequence[Array], state: dict[str, Array], how: str) -> None:
        assert len(results) == len(self.results)
        for at, (got, want) in enumerate(zip(results, self.results, strict=True)):
            assert (got.dtype, got.shape) == (want.dtype, want.shape), (how, at)
            if self.exact and self.program.exact[at]:
                np.testing.assert_array_equal(got, want, err_msg=f"{how}, result {at}")
            else:
                self._check_close(got, want, f"{how}, result {at}")
        for var, want in self.state.items():
            self._check_close(state[var], want, f"{how}, variable {var}")

    def _check_close(self, got: Array, want: Array, what: str) -> None:
        """Equal up to the rounding of a few operations on numbers as large as there were."""
        if want.dtype.kind == "f":
            np.testing.assert_allclose(got, want, rtol=50 * self.epsilon,
                                       atol=self.epsilon * self.scale, err_msg=what)


def sizes(program: Program) -> list[tuple[int, int]]:
    symbolic = any(not isinstance(dim, int) for value in program.graph.params
                   for dim in value.shape)
    return [(3, 4), (1, 1), (2, 37), (0, 3)] if symbolic else [(1, 1)]


def oracles(program: Program) -> list[tuple[list[Array], dict[str, Array], Oracle]]:
    found = []
    for b, s in sizes(program):
        arrays, state = program.arguments(b, s)
        try:
            oracle = Oracle(program, program.graph, arrays, state)
        except ValueError:  # the largest of no elements
            assert b == 0
            continue
        assume(oracle.scale < 1e12)
        found.append((arrays, state, oracle))
    return found


@examples(70)
@given(programs())
def test_native_code_is_the_interpreter(program: Program) -> None:
    cases = oracles(program)
    for opt in (0, 2):
        variables = {var: Variable(np.zeros(type_.shape, type_.dtype.numpy))
                     for var, type_ in program.graph.variables.items()}
        native = make_program(Stages(program.graph, Options(opt=opt)), variables=variables)
        for arrays, state, oracle in cases:
            for var, array in state.items():
                variables[var].assign(array)
            results = native.run(arrays)
            oracle.check(results, {var: variables[var].value for var in state}, f"opt={opt}")


@examples(60)
@given(programs())
def test_every_stage_is_the_interpreter(program: Program) -> None:
    """The optimised and the fused graph, and the plan with its kernels, evaluated in NumPy."""
    cases = oracles(program)
    for opt in (0, 2):
        stages = Stages(program.graph, Options(opt=opt))
        verify_graph(stages.optimised)
        verify_graph(stages.fused)
        for call in stages.lowered[0]:
            verify_kernel(call.kernel)
        verify_plan(stages.plan)
        for arrays, state, oracle in cases:
            for name, graph in (("optimised", stages.optimised), ("fused", stages.fused)):
                held = dict(state)
                oracle.check(run_graph(graph, arrays, held), held, f"{name}, opt={opt}")
            held = dict(state)
            oracle.check(run_plan(stages.plan, arrays, held), held, f"kernels, opt={opt}")


@examples(50)
@given(programs(state=False, smooth=True))
def test_gradients_are_the_interpreter(program: Program) -> None:
    """Gradients read everything twice and turn broadcasts into sums, gathers into scatters."""
    graph = program.graph
    floats = [value for value in graph.params if value.dtype.is_float]
    b: Any = Builder(graph, OPS, share=False, fold=False)
    parts = [b.cast(b.sum(b.tanh(value), axes=tuple(range(value.type.rank))), dtype=F64)
             for value in graph.results if value.dtype.is_float]
    assume(floats and parts)
    total = parts[0]
    for part in parts[1:]:
        total = b.add(total, part)
    grads = gradient(b, total, floats)
    graph.results = [grad for grad in grads if grad is not None]
    program.exact = [False] * len(graph.results)
    cases = oracles(program)
    native = make_program(Stages(graph, Options()))
    for arrays, _, oracle in cases:
        oracle.check(native.run(arrays), {}, "gradient")


@examples(100)
@given(programs(steps=20))
def test_regions_are_a_partition(program: Program) -> None:
    """Each node that computes is in one region, and no region waits for itself."""
    stages = Stages(program.graph, Options())
    graph = stages.placed
    check_partition(grow(graph), graph)
    check_partition(grow(graph, limit=3), graph)


def check_partition(partition: Partition, graph: Graph) -> None:
    roots = {id(value) for value in graph.results}
    homes: dict[int, int] = {}
    for at, region in partition.regions.items():
        assert at == region.id
        for node in region.nodes:
            assert homes.setdefault(id(node), at) == at, f"{node.name} is in two regions"
            assert partition.home[id(node)] is region
    for node in graph.nodes:
        if not is_transparent(node):
            assert id(node) in homes, f"{node.name} is in no region"
        elif id(node) in homes:
            assert id(node.results[0]) in roots | partition.opaque, f"{node.name} is a view"
    # Ancestors, found by a walk over the regions' own reads.
    reads = {at: {homes[id(use.value.node)] for node in region.nodes
                  for use in partition.uses[id(node)] if use.value.node is not None} - {at}
             for at, region in partition.regions.items()}
    for at, region in partition.regions.items():
        above: set[int] = set()
        pending = list(reads[at])
        while pending:
            other = pending.pop()
            if other not in above:
                above.add(other)
                pending += reads[other]
        assert at not in above, f"region {at} waits for itself"
        assert above == {bit for bit in range(region.ancestors.bit_length())
                         if region.ancestors >> bit & 1}


def test_programs_of_all_kinds_are_drawn() -> None:
    """The tests above would pass on empty programs, too."""
    seen: set[str] = set()

    @settings(max_examples=400, derandomize=True, database=None, deadline=None,
              phases=[Phase.generate], suppress_health_check=list(HealthCheck))
    @given(programs(steps=20))
    def collect(program: Program) -> None:
        seen.update(node.op.name for node in program.graph.nodes)

    collect()
    assert {"contract", "sum", "max", "gather", "scatter_add", "select", "pad", "concatenate",
            "transpose", "reshape", "broadcast", "slice", "assign_var", "update_var", "read_var",
            "tanh", "cast", "iota"} <= seen


def rolled(x: Any) -> Any:
    """Nothing but views, each of two pieces: seen through, 2 ** 40 of them."""
    for _ in range(40):
        x = np.concatenate([x[1:], x[:1]])
    return x * 2


def swapped(x: Any) -> Any:
    """Each step reads the one before at two places: computed again each time, 2 ** 30 steps."""
    for _ in range(30):
        x = np.concatenate([x[2:] * 0.5, x[:2] + 1])
    return x


# What random programs, or people, found to be wrong once; opt=0 and opt=2 compile it differently.
M, EMPTY = np.arange(12.0).reshape(3, 4), np.zeros((2, 0, 4))
ONCE_WRONG: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
    # a view that is a result itself and read by others: it was used before it was made
    (lambda x: (np.broadcast_to(x.sum(), (3,)), np.broadcast_to(x.sum(), (3,)) * 2, x.sum()), (M,)),
    # reductions of what does not depend on the axis
    (lambda x: np.broadcast_to(x[0], (5, 4)).sum(axis=0), (M,)),
    (lambda x: (np.zeros_like(x).sum(axis=1), np.ones_like(x).mean()), (M,)),
    # products whose rows, columns or terms are all the same
    (lambda x: np.ones_like(x) @ x.T, (M,)),
    (lambda x: np.broadcast_to(x, (7, 9)) @ np.broadcast_to(x, (9, 3)), (2.0,)),
    (lambda x: np.broadcast_to(x[0], (5, 4)).T @ (np.broadcast_to(x[0], (5, 4)) @ x.T), (M,)),
    # no elements: shapes without an index, sums without terms
    *((function, (EMPTY,)) for function in (
        lambda x: x.sum(), lambda x: x.sum(axis=1), lambda x: x.sum(axis=(0, 1)),
        lambda x: (x - x.sum(), x.sum()), lambda x: x.reshape(-1) * 2, lambda x: x.reshape(4, 0, 2),
        lambda x: np.concatenate([x.T + 1, x.T + 1]), lambda x: x @ x.transpose(0, 2, 1),
        lambda x: x.transpose(0, 2, 1) @ x, lambda x: (x * 2, x * 2))),
    # programs that exploded
    (rolled, (np.arange(8.0),)),
    (swapped, (np.arange(4.0),)),
]


@pytest.mark.parametrize("opt", [0, 2])
def test_one_number_added_to_one_place_several_times(opt: int) -> None:
    """Neither the place nor the number depends on the loop, but it has to run all the same."""
    add = weft.compile(opt=opt)(lambda x, i, k: (x * 1).at[i % 1].add(np.broadcast_to(k, (3, 4))))
    np.testing.assert_array_equal(add(np.ones((1, 4)), np.arange(3), 0.5), np.full((1, 4), 2.5))


@pytest.mark.parametrize("opt", [0, 2])
@pytest.mark.parametrize("case", range(len(ONCE_WRONG)))
def test_what_was_wrong_once(case: int, opt: int) -> None:
    function, args = ONCE_WRONG[case]
    lowered = weft.compile(opt=opt)(function).lower(*args)
    verify_plan(lowered.stages.plan)
    assert len(lowered.as_text("llvm")) < 1_000_000
    want = function(*args)
    got = lowered.compile()(*args)
    for a, z in zip(got if isinstance(got, tuple) else (got,),
                    want if isinstance(want, tuple) else (want,), strict=True):
        assert np.shape(a) == np.shape(z)
        np.testing.assert_allclose(a, z, rtol=1e-12)
