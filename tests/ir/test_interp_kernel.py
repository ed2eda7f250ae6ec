"""Kernels against a one-element-at-a-time loop, plans against NumPy and their own mistakes."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from functools import reduce
from typing import Any

import numpy as np
import programs
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from weft.ir.diagnose import Error, OutOfRangeError, VerifyError
from weft.ir.indices.walk import evaluate
from weft.ir.interp.graph import ChecksFailedError, run_kernel, run_plan
from weft.ir.kernels.combine import COMBINERS, Order, identity, is_ordered
from weft.ir.kernels.kernel import (
    Apply,
    Check,
    Const,
    Contract,
    Index,
    Kernel,
    Load,
    Reduce,
    Stmt,
    Store,
)
from weft.ir.loc import Loc
from weft.ir.plans.plan import Launch, Plan
from weft.ir.scalar.primitives import PRIMITIVES
from weft.ir.text.parser import parse_kernel, parse_plan
from weft.ir.types import COMPUTED, as_dtype
from weft.ir.verify.verifier import verify_kernel, verify_plan

Array = np.ndarray[Any, Any]
RNG = np.random.default_rng(7)


def normal(*shape: int) -> Array:
    return RNG.normal(size=shape).astype(np.float32)


SOFTMAX = '''
kernel @softmax(x: f32[b,10], y: mut f32[b,10]) {
  par i in b by 2, lane j in 10 {
    %0: f32 = x[i, j]
    %1: f32 = reduce max %0 over j
    %2: f32 = sub %0, %1
    %3: f32 = exp %2
    %4: f32 = reduce add %3 over j {lanes 16}
    %5: f32 = div %3, %4
    y[i, j] = %5
  }
}'''

LAYER_NORM = '''
kernel @layer_norm(x: f32[4,8,6], g: f32[6], y: mut f32[32,6], mean: mut f32[4,8]) {
  par i in 32 by 4, seq j in 6 by 2 {
    %0: f32 = x[i//8, i mod 8, j]
    %1: f32 = reduce add %0 over j {lanes 8}
    %2: f32 = const 6.0
    %3: f32 = div %1, %2
    %4: f32 = sub %0, %3
    %5: f32 = mul %4, %4
    %6: f32 = reduce add %5 over j {lanes 8}
    %7: f32 = div %6, %2
    %8: f32 = sqrt %7
    %9: f32 = div %4, %8
    %10: f32 = g[j]
    %11: f32 = mul %9, %10
    y[i, j] = %11
    mean[i//8, i mod 8] = %3
  }
}'''

MATMUL = '''
kernel @matmul(x: f32[m,k], w: f32[k,n], bias: f32[n], y: mut f32[m,n]) {
  par i in m by 4, par j in n by 4, seq r in k by 8 {
    %0: f32 = x[i, r]
    %1: f32 = w[r, j]
    %2: f32 = contract %0, %1 over r
    %3: f32 = bias[j]
    %4: f32 = add %2, %3
    y[i, j] = %4
  }
}'''

GATHER = '''
kernel @gather(x: f32[n,3], ids: i32[m], y: mut f32[m,3]) {
  par i in m by 1, lane j in 3 {
    %0: i32 = ids[i]
    %1: i64 = cast %0
    %2: i64 = index n
    %3: i64 = const 0
    %4: bool = lt %1, %3
    %5: i64 = add %1, %2
    %6: i64 = select %4, %5, %1
    %7: bool = ge %6, %3
    %8: bool = lt %6, %2
    %9: bool = and_ %7, %8
    check %9 site 2
    %10: f32 = x[%6, j] if %9
    y[i, j] = %10
  }
}'''

SCATTER = '''
kernel @scatter(u: f32[m,3], ids: i64[m], y: mut f32[n,3]) {
  seq i in m by 1, par j in 3 by 1 {
    %0: i64 = ids[i]
    %1: i64 = const 0
    %2: bool = ge %0, %1
    %3: f32 = u[i, j]
    y[%0, j] += %3 if %2
  }
}'''

SCALARS = '''
kernel @scalars(x: f64[], n: i64[], y: mut f64[], e: mut f64[2]) {
  lane j in 0, par i in 2 by 1 {
    %0: f64 = x[]
    %1: i64 = n[]
    %2: f64 = cast %1
    %3: f64 = mul %0, %2
    y[] = %3
    %4: i64 = index 3*i + j
    %5: i64 = reduce max %4 over j
    %6: f64 = cast %5
    e[i] = %6
  }
}'''


def test_softmax_kernel() -> None:
    kernel = parse_kernel(SOFTMAX)
    verify_kernel(kernel)
    x, y = normal(5, 10), np.empty((5, 10), np.float32)
    run_kernel(kernel, {"x": x, "y": y}, {"b": 5})
    e = np.exp(x - x.max(1, keepdims=True))
    np.testing.assert_allclose(y, e / e.sum(1, keepdims=True), rtol=1e-6)


def test_layer_norm_kernel_sees_a_buffer_in_two_shapes() -> None:
    kernel = parse_kernel(LAYER_NORM)
    verify_kernel(kernel)
    x, g = normal(4, 8, 6), normal(6)
    y, mean = np.empty((32, 6), np.float32), np.empty((4, 8), np.float32)
    run_kernel(kernel, {"x": x, "g": g, "y": y, "mean": mean}, {})
    want = (x - x.mean(2, keepdims=True)) / x.std(2, keepdims=True) * g
    np.testing.assert_allclose(y, want.reshape(32, 6), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(mean, x.mean(2), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("k", [0, 1, 33])
def test_matmul_kernel(k: int) -> None:
    kernel = parse_kernel(MATMUL)
    verify_kernel(kernel)
    x, w, bias, y = normal(5, k), normal(k, 7), normal(7), np.empty((5, 7), np.float32)
    run_kernel(kernel, {"x": x, "w": w, "bias": bias, "y": y}, {"m": 5, "k": k, "n": 7})
    np.testing.assert_allclose(y, x @ w + bias, rtol=1e-4, atol=1e-5)


def test_gather_kernel_reads_only_what_the_guard_lets_through() -> None:
    kernel = parse_kernel(GATHER)
    verify_kernel(kernel)
    x, y = normal(4, 3), np.empty((5, 3), np.float32)
    dims = {"n": 4, "m": 5}
    run_kernel(kernel, {"x": x, "ids": np.array([3, -1, 0, 2, -4], np.int32), "y": y}, dims)
    np.testing.assert_array_equal(y, x[[3, -1, 0, 2, -4]])
    with pytest.raises(ChecksFailedError, match="check 2 of kernel @gather") as caught:
        run_kernel(kernel, {"x": x, "ids": np.array([3, 4, 0, -5, 0], np.int32), "y": y}, dims)
    assert caught.value.sites == {2} and caught.value.code == "W124"
    np.testing.assert_array_equal(y, np.where([[1], [0], [1], [0], [1]], x[[3, 0, 0, 0, 0]], 0))


def test_scatter_kernel_accumulates_in_order() -> None:
    kernel = parse_kernel(SCATTER)
    verify_kernel(kernel)
    u, ids = normal(50, 3), RNG.integers(-1, 4, 50)
    y = np.zeros((4, 3), np.float32)
    run_kernel(kernel, {"u": u, "ids": ids, "y": y}, {"m": 50, "n": 4})
    want = np.zeros((4, 3), np.float32)
    for row, at in zip(u, ids, strict=True):
        if at >= 0:
            want[at] += row
    np.testing.assert_array_equal(y, want)


def test_scatter_kernel_stores_in_order() -> None:
    kernel = parse_kernel(SCATTER.replace("+=", "="))
    verify_kernel(kernel)
    u, ids = normal(50, 3), RNG.integers(-1, 4, 50)
    y = np.zeros((5, 3), np.float32)
    run_kernel(kernel, {"u": u, "ids": ids, "y": y}, {"m": 50, "n": 5})
    np.testing.assert_array_equal(y[:4], [u[ids == at][-1] for at in range(4)])
    np.testing.assert_array_equal(y[4], 0)


def test_scalars_and_empty_axes() -> None:
    kernel = parse_kernel(SCALARS)
    verify_kernel(kernel)
    y, e = np.array(0.0), np.zeros(2)
    run_kernel(kernel, {"x": np.array(1.5), "n": np.array(4), "y": y, "e": e}, {})
    assert y == 6.0
    np.testing.assert_array_equal(e, np.full(2, -2.0**63))


@pytest.mark.parametrize("size", [0, 1, 7])
@pytest.mark.parametrize(("combine", "dtype"), [
    (combine, dtype.name) for combine in COMBINERS for dtype in COMPUTED
    if dtype.kind in PRIMITIVES[combine].kinds and not dtype.is_half])
def test_reductions(combine: str, dtype: str, size: int) -> None:
    numpy = as_dtype(dtype).numpy
    ufunc = PRIMITIVES[combine].numpy
    order = " {lanes 4}" if is_ordered(combine, as_dtype(dtype)) else ""
    kernel = parse_kernel(f'''
        kernel @k(x: {dtype}[n], y: mut {dtype}[]) {{
          lane j in n {{
            %0: {dtype} = x[j]
            %1: {dtype} = reduce {combine} %0 over j{order}
            y[] = %1
          }}
        }}''')
    verify_kernel(kernel)
    x, y = RNG.integers(0, 5, size).astype(numpy), np.zeros((), numpy)
    run_kernel(kernel, {"x": x, "y": y}, {"n": size})
    want = np.array(identity(combine, as_dtype(dtype)), numpy)
    for value in x:
        want = ufunc(want, value)
    assert y == want and want.dtype == numpy
    if size == 1:
        assert want == x[0]  # the identity left it as it is


def test_an_access_outside_a_buffer_is_an_error() -> None:
    kernel = parse_kernel(SCATTER.replace("if %2", ""))
    buffers = {"u": normal(2, 3), "ids": np.array([0, -1]), "y": normal(4, 3)}
    with pytest.raises(VerifyError, match="accesses 'y' outside"):
        run_kernel(kernel, buffers, {"m": 2, "n": 4})
    with pytest.raises(VerifyError, match="parameter u"):
        run_kernel(kernel, buffers, {"m": 3, "n": 4})


def in_order(combine: Callable[..., Any], terms: list[Any], order: Order) -> Any:
    """Terms combined as ``Order`` says, one by one; there is at least one."""
    chunk = order.chunk or len(terms)
    sums = []
    for first in range(0, len(terms), chunk):
        lanes: list[Any] = [None] * order.lanes
        for at, term in enumerate(terms[first:first + chunk]):
            held = lanes[at % order.lanes]
            lanes[at % order.lanes] = term if held is None else combine(held, term)
        while len(lanes) > 1:
            half = len(lanes) // 2
            lanes = [a if b is None else combine(a, b)
                     for a, b in zip(lanes[:half], lanes[half:], strict=True)]
        sums += lanes
    while len(sums) > 1:
        sums = [combine(*sums[at:at + 2]) if at + 1 < len(sums) else sums[at]
                for at in range(0, len(sums), 2)]
    return sums[0]


class OneByOne:
    """Kernels again, one element at a time: the definition, with no arrays in the way."""

    def __init__(self, kernel: Kernel, buffers: Mapping[str, Array], dims: Mapping[str, int]):
        self.kernel, self.buffers, self.dims = kernel, buffers, dims
        self.by_name = {stmt.name: stmt for stmt in kernel.body if stmt.name}
        self.axes = kernel.value_axes
        self.extents = {axis.name: evaluate(axis.extent, dims) for axis in kernel.axes}
        self.known: dict[tuple[str, tuple[int, ...]], Any] = {}

    def points(self, axes: frozenset[str]) -> Iterator[dict[str, int]]:
        names = [axis.name for axis in self.kernel.axes if axis.name in axes]
        for point in itertools.product(*(range(self.extents[name]) for name in names)):
            yield dict(zip(names, point, strict=True))

    def index(self, dims: tuple[Any, ...], point: Mapping[str, int]) -> tuple[int, ...]:
        values = {name: int(self.value(name, point)) for dim in dims
                  for name in programs.value_names(dim)}
        return tuple(evaluate(dim, {**self.dims, **point, **values}) for dim in dims)

    def value(self, name: str, point: Mapping[str, int]) -> Any:
        key = name, tuple(point[axis] for axis in sorted(self.axes[name]))
        if key not in self.known:
            stmt = self.by_name[name]
            self.known[key] = stmt.dtype.numpy.type(self.compute(stmt, point))
        return self.known[key]

    def compute(self, stmt: Stmt, point: Mapping[str, int]) -> Any:
        match stmt:
            case Const():
                return stmt.value
            case Index():
                return self.index((stmt.expr,), point)[0]
            case Load():
                if stmt.guard and not self.value(stmt.guard, point):
                    return 0
                return self.buffers[stmt.param][self.index(stmt.indices, point)]
            case Apply():
                args = [np.asarray(self.value(name, point)) for name in stmt.args]
                extra = (stmt.dtype,) if stmt.prim == "cast" else ()
                return PRIMITIVES[stmt.prim].numpy(*args, *extra)
            case Reduce():
                parts = [self.value(stmt.value, {**point, stmt.axis: at})
                         for at in range(self.extents[stmt.axis])]
                combine = PRIMITIVES[stmt.combine].numpy
                return in_order(combine, parts, stmt.order) if stmt.order else reduce(
                    combine, parts)
            case Contract():
                total = stmt.dtype.numpy.type(0)
                for at in range(self.extents[stmt.axis]):
                    left, right = (self.value(name, {**point, stmt.axis: at})
                                   for name in (stmt.lhs, stmt.rhs))
                    total = (PRIMITIVES["fma"].numpy(left, right, total) if stmt.dtype.is_float
                             else left * right + total)
                return total
        raise AssertionError(stmt)

    def run(self) -> set[int]:
        failed = set()
        where = self.kernel.effect_axes
        with np.errstate(all="ignore"):
            for at, stmt in enumerate(self.kernel.body):
                for point in self.points(where.get(at, frozenset())) if not stmt.name else ():
                    if isinstance(stmt, Check) and not self.value(stmt.value, point):
                        failed.add(stmt.site)
                    if isinstance(stmt, Store) and (
                            not stmt.guard or self.value(stmt.guard, point)):
                        place = self.index(stmt.indices, point)
                        buffer, value = self.buffers[stmt.param], self.value(stmt.value, point)
                        buffer[place] = buffer[place] + value if stmt.accumulate else value
        return failed


@given(programs.kernels(exact=True), st.integers(0, 999))
def test_kernels_mean_what_a_loop_computes(kernel: Kernel, seed: int) -> None:
    rng = np.random.default_rng(seed)
    dims = {"b": int(rng.integers(1, 4)), "s": int(rng.integers(1, 4))}
    buffers = {param.name: programs.example_array(
        rng, param.type.dtype, [evaluate(dim, dims) for dim in param.type.shape])
        for param in kernel.params}
    ids = kernel.params[1].name
    buffers[ids] = rng.integers(-1, buffers[ids].size + 1, buffers[ids].size)
    expected = {name: array.copy() for name, array in buffers.items()}
    sites = OneByOne(kernel, expected, dims).run()
    try:
        run_kernel(kernel, buffers, dims)
        assert not sites
    except ChecksFailedError as failed:
        assert failed.sites == sites
    for name, array in buffers.items():
        np.testing.assert_array_equal(array, expected[name], err_msg=name)


def by_numpy(plan: Plan, x: Array, p: Array) -> Array:
    values = dict(zip((slot.name for slot in plan.params), (x, p), strict=True))
    for step in plan.steps:
        if isinstance(step, Launch):
            one, two, out = (window.buffer for window in step.args)
            values[out] = values[one] + values[two]
    return values[plan.steps[-1].source.buffer]  # type: ignore[union-attr]


def run_both(plan: Plan) -> tuple[Array, Array]:
    n = evaluate(plan.params[0].type.shape[0], {"b": 11})
    x, p = normal(n), normal(n)
    var = plan.params[1].var
    variables = {var: p} if var else {}
    results = run_plan(plan, [x] if var else [x, p], variables)
    got = variables[plan.results[0].var] if plan.results[0].var else results[0]
    return got, by_numpy(plan, x, p)


@given(programs.plans())
def test_plans_compute_through_their_arena(plan: Plan) -> None:
    np.testing.assert_array_equal(*run_both(plan))


@given(programs.plans(random_offsets=True))
def test_plans_that_verify_are_right(plan: Plan) -> None:
    """Whatever the offsets: what the overlap check lets through gives the right numbers."""
    try:
        verify_plan(plan)
    except VerifyError as problem:
        assert "check_overlap" in str(problem)
        assume(False)
    np.testing.assert_array_equal(*run_both(plan))


PLAN = '''
kernel @twice(x: f32[b,2], y: mut f32[2*b]) {
  par i in 2*b by 8 {
    %0: f32 = x[i//2, i mod 2]
    %1: f32 = add %0, %0
    y[i] = %1
  }
}

kernel @pick(x: f32[2*b], i: i64[], y: mut f32[]) {
  %0: i64 = i[]
  %1: i64 = index 2*b
  %2: bool = lt %0, %1
  check %2 site 1
  %3: f32 = x[%0] if %2
  y[] = %3
}

plan @p(%x: f32[b,2] var "W", %i: i64[]) -> (%y: f32[], %z: f32[2*b] var "W") arena = 64*b {
  check 1 W124 "index out of range"  // from model.py:7 in f
  alloc %t: f32[b,2] at 0
  launch @twice(%x, %t) on cpu:0
  launch @pick(%t, %i, %y) on cpu:0
  copy %t to %z
}'''


def test_a_plan_commits_variables_when_it_has_succeeded() -> None:
    plan = parse_plan(PLAN)
    verify_plan(plan)
    start = normal(3, 2)
    variables = {"W": start}
    with pytest.raises(OutOfRangeError, match="index out of range") as caught:
        run_plan(plan, [np.array(6)], variables)
    assert caught.value.locs == (Loc("model.py", 7, "f"),)
    assert variables["W"] is start
    (y,) = run_plan(plan, [np.array(4)], variables)
    assert y == 2 * start[2, 0]
    np.testing.assert_array_equal(variables["W"], 2 * start.ravel())


def test_a_plan_runs_kernels_through_the_given_runner() -> None:
    names = []

    def runner(kernel: Kernel, buffers: Mapping[str, Array], dims: Mapping[str, int]) -> None:
        names.append((kernel.name, dict(dims), {k: v.shape for k, v in buffers.items()}))
        run_kernel(kernel, buffers, dims)

    run_plan(parse_plan(PLAN), [np.array(0)], {"W": normal(3, 2)}, kernel_runner=runner)
    assert names == [("twice", {"b": 3}, {"x": (3, 2), "y": (6,)}),
                     ("pick", {"b": 3}, {"x": (6,), "i": (), "y": ()})]


def test_mistakes_of_a_plan_show() -> None:
    """The verifier finds them all; here they also give wrong numbers or an error."""
    x = normal(2, 2)
    lost = parse_plan(PLAN.replace("  launch @twice(%x, %t) on cpu:0\n", ""))
    (y,) = run_plan(lost, [np.array(0)], {"W": x})
    assert y.tobytes() == b"\xa5" * 4
    with pytest.raises(ValueError, match="read-only"):
        run_plan(parse_plan(PLAN.replace("(%x, %t)", "(%t, %x)")), [np.array(0)], {"W": x})
    with pytest.raises(VerifyError, match="not inside the arena"):
        run_plan(parse_plan(PLAN.replace("at 0", "at 128")), [np.array(0)], {"W": x})
    with pytest.raises(Error, match="got 2 arguments"):
        run_plan(parse_plan(PLAN), [x, x], {"W": x})
