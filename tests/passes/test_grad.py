"""Gradients: every row against finite differences in float64, then what vjp promises."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np
import pytest

import weft
from weft.ir.diagnose import DTypeError, Error, ShapeError, VerifyError
from weft.ir.graph import Builder, Graph, Value
from weft.ir.indices.index import symbol
from weft.ir.interp.graph import run_graph
from weft.ir.loc import Loc
from weft.ir.ops.op import Kind, OpDef, Sample
from weft.ir.ops.table import OPS
from weft.ir.record import replace
from weft.ir.text.printer import print_graph
from weft.ir.types import BOOL, F32, F64, I64, TensorType, parse_type
from weft.ir.verify.verifier import verify_graph
from weft.passes.simplify.simplify import simplify
from weft.passes.transform.forward import jvp
from weft.passes.transform.reverse import gradient, vjp

Make = Callable[..., Value]


def build(make: Make, *types: str) -> tuple[Builder, list[Value], Value]:
    graph = Graph("g")
    b = Builder(graph, OPS, share=False, fold=False)
    params = [graph.add_param(parse_type(text), f"x{at}") for at, text in enumerate(types)]
    return b, params, make(b, *params)


def differences(f: Callable[[list[Any]], float], args: list[Any], at: int) -> np.ndarray:
    """Central differences of a scalar function with respect to argument ``at``."""
    step = 1e-6
    result = np.zeros(args[at].shape)
    for index in np.ndindex(args[at].shape):
        sides = []
        for sign in (1, -1):
            moved = list(args)
            moved[at] = args[at].copy()
            moved[at][index] += sign * step
            sides.append(f(moved))
        result[index] = (sides[0] - sides[1]) / (2 * step)
    return result


def check_gradient(make: Make, types: Sequence[str], args: list[Any], order: int = 1,
                   refused: Collection[int] = ()) -> None:
    """Reverse mode against differences, of a weighted sum of the results; twice for order 2.

    Differences are as wrong as the sum is rounded, over their step.
    """
    def scalar(b: Any, *xs: Value) -> Value:
        y = make(b, *xs)
        weights = b.iota(axis=0, dtype=F64, shape=(y.type.size,))
        flat = b.mul(b.reshape(y, shape=(y.type.size,)), b.add(b.mul(weights, 0.25), 0.5))
        return b.sum(flat, axes=(0,))  # type: ignore[no-any-return]

    b, params, y = build(scalar, *types)
    floats = [at for at, value in enumerate(params) if value.dtype.is_float and at not in refused]
    for _ in range(order - 1):
        parts = gradient(b, y, [params[at] for at in floats])
        y = b.full(0.0, y.type)
        for part in parts:
            size = part.type.size
            y = b.add(y, b.sum(b.sin(b.reshape(part, shape=(size,))), axes=(0,)))
    plain = Graph("plain", b.graph.params, list(b.graph.nodes), [y])
    b.graph.results = gradient(b, y, [params[at] for at in floats])
    verify_graph(b.graph)
    found = run_graph(b.graph, args)
    noise = 4 * np.finfo(float).eps / 1e-6 * abs(float(run_graph(plain, args)[0]))
    for at, exact in zip(floats, found, strict=True):
        expected = differences(lambda moved: float(run_graph(plain, moved)[0]), args, at)
        np.testing.assert_allclose(exact, expected, rtol=2e-5, atol=2e-5 + noise)


def row_case(op: OpDef, sample: Sample) -> tuple[Make, list[str], list[Any]]:
    rng = np.random.default_rng(len(sample.shapes))
    types, args = [], []
    for at, shape in enumerate(sample.shapes):
        if at in sample.ints:
            args.append(rng.integers(-sample.ints[at], sample.ints[at], shape))
        elif op.letters[at:at + 1] == "b":
            args.append(rng.random(shape) > 0.5)
        else:
            args.append(rng.uniform(sample.low, sample.high, shape))
        args[-1] = np.asarray(args[-1])
        dtype = {"i": I64, "b": BOOL, "f": F64}[args[-1].dtype.kind]
        types.append(str(TensorType(dtype, shape)))
    if sample.positive:  # with eigenvalues that are apart
        args[0] = args[0] @ args[0].mT / 4 + np.diag(np.arange(1.0, args[0].shape[-1] + 1))

    def make(b: Any, *xs: Value) -> Value:
        if sample.positive:  # what is symmetric stays so when an element is moved
            x = xs[0]
            rank = len(x.shape)
            turned = b.transpose(x, perm=(*range(rank - 2), rank - 1, rank - 2))
            xs = (b.mul(b.add(x, turned), 0.5), *xs[1:])
        made = getattr(b, op.name)(*xs, **sample.attrs)
        return made if isinstance(made, Value) else _together(b, made)

    return make, types, args


def _together(b: Any, results: Sequence[Value]) -> Value:
    """All results that may have a gradient, one after the other."""
    flat = [b.reshape(x, shape=(x.type.size,)) for x in results if x.dtype == F64]
    return b.concatenate(*flat, axis=0)  # type: ignore[no-any-return]


def small(sample: Sample) -> bool:
    return sum(int(np.prod(shape)) for shape in sample.shapes) < 400


# Spectra are complex; the gradient of a random number is that of its distribution function.
ROWS = [op for op in OPS.values() if op.differentiable and op.kind not in (
            Kind.EFFECT, Kind.REGION, Kind.COMPLEX) and op.room != "fft" and op.letters[:1] != "w"
        and op.samples and F64 in op.dtypes and len(op.refused) != op.arity
        and not any(isinstance(shape, np.generic) for s in op.samples for shape in s.shapes)]


@pytest.mark.long
@pytest.mark.parametrize("op", ROWS, ids=lambda op: op.name)
def test_rows_against_differences(op: OpDef) -> None:
    checked = 0
    for sample in filter(small, op.samples):
        if sample.attrs.get("dtype") in (None, F64):
            check_gradient(*row_case(op, sample), refused=op.refused)
            checked += 1
    assert checked


@pytest.mark.parametrize("name", [
    "tanh", "sigmoid", "exp", "log", "mul", "div", "pow", "sqrt", "erf", "atan2", "contract", "sum",
    "gather", "scatter", "scatter_add", "concatenate", "pad", "slice", "select", "mean", "tan"])
def test_second_order(name: str) -> None:
    op = OPS[name]
    sample = max(filter(small, op.samples[:6]), key=lambda s: sum(map(np.prod, s.shapes)))
    check_gradient(*row_case(op, sample), order=2)


def test_third_order() -> None:
    b, (x,), y = build(lambda b, x: b.mul(b.mul(x, x), b.mul(x, x)), "f64[]")
    for _ in range(3):
        (y,) = gradient(b, y, [x])
    b.graph.results = [y]
    assert run_graph(b.graph, [2.0])[0] == 48.0


def test_a_product_of_a_number_is_sliced() -> None:
    """The slice of a product is that of its operands, of which one has no axes."""
    v = np.arange(1.0, 4.0)

    def last(x: Any) -> Any:
        return weft.grad(lambda v: np.tanh(v[-1]))(x) @ v

    slope = -2 * np.tanh(3.0) * (1 - np.tanh(3.0) ** 2)
    np.testing.assert_allclose(weft.grad(last)(v), [0, 0, slope * 3])


def test_ties_share_the_gradient() -> None:
    b, (x, y), z = build(lambda b, x, y: b.sum(b.maximum(x, y), axes=(0,)), "f64[3]", "f64[3]")
    b.graph.results = gradient(b, z, [x, y])
    left, right = run_graph(b.graph, [np.array([1.0, 2.0, 5.0]), np.array([1.0, 3.0, 4.0])])
    assert left.tolist() == [0.5, 0.0, 1.0] and right.tolist() == [0.5, 1.0, 0.0]
    b, (x,), z = build(lambda b, x: b.max(x, axes=(0,)), "f64[4]")
    b.graph.results = gradient(b, z, [x])
    assert run_graph(b.graph, [np.array([7.0, 1, 7, 0])])[0].tolist() == [0.5, 0.0, 0.5, 0.0]


def test_no_axes_and_no_elements() -> None:
    check_gradient(lambda b, x: b.sum(x, axes=()), ["f64[2,3]"], [np.ones((2, 3))])
    check_gradient(lambda b, x: b.sum(x, axes=(0,)), ["f64[0,3]"], [np.ones((0, 3))])
    check_gradient(lambda b, x: b.max(x, axes=(1,)), ["f64[0,3]"], [np.ones((0, 3))])
    check_gradient(lambda b, x: b.slice(x, start=(4,), step=(-3,), shape=(0,)), ["f64[5]"],
                   [np.ones(5)])
    check_gradient(lambda b, x: b.broadcast(x, shape=(3,), axes=(0,)), ["f64[3]"], [np.ones(3)])


def test_symbolic_dims() -> None:
    def make(b: Any, x: Value, w: Value, bias: Value) -> Value:
        y = b.contract(x, w, dims="mk,kn->mn")
        y = b.tanh(b.add(y, b.broadcast(bias, shape=y.shape, axes=(1,))))
        tail = b.slice(y, start=(0, 1), step=(1, 2), shape=(y.shape[0], 2))
        flat = b.reshape(tail, shape=(2 * symbol("b"),))
        return b.mean(b.mul(flat, flat), axes=(0,))  # type: ignore[no-any-return]

    rng = np.random.default_rng(0)
    for rows in (1, 4):
        args = [rng.normal(size=shape) for shape in ((rows, 3), (3, 5), (5,))]
        check_gradient(make, ["f64[b,3]", "f64[3,5]", "f64[5]"], args)


def test_repeated_operands_and_fan_out() -> None:
    def make(b: Any, x: Value) -> Value:
        y = b.mul(x, x)
        return b.add(b.mul(y, x), b.div(y, b.add(y, 1.0)))  # type: ignore[no-any-return]

    check_gradient(make, ["f64[4]"], [np.array([0.5, 1.0, -2.0, 0.1])], order=2)


def test_paths_that_carry_no_gradient() -> None:
    def make(b: Any, x: Value, y: Value, n: Value) -> Value:
        stopped = b.stop_gradient(y)
        rounded = b.add(b.floor(x), b.cast(b.cast(x, dtype=I64), dtype=F64))
        picked = b.gather(stopped, b.argmax(y, axis=0), axes=(0,))
        total = b.sum(b.mul(rounded, b.cast(n, dtype=F64)), axes=(0,))
        return b.add(total, picked)  # type: ignore[no-any-return]

    b, (x, y, _), z = build(make, "f64[3]", "f64[3]", "i64[3]")
    before = len(b.graph.nodes)
    assert vjp(b, [z], [b.full(1.0, z.type)], [x, y]) == [None, None]
    assert len(b.graph.nodes) == before + 1, "only the seed is new"
    zeros = gradient(b, z, [x])
    assert zeros[0].node is not None and zeros[0].node.op.name == "full"


def test_inputs_are_independent() -> None:
    b, (x,), y = build(lambda b, x: b.mul(x, x), "f64[]")
    z = b.mul(y, x)
    b.graph.results = gradient(b, z, [x, y])
    assert [float(part) for part in run_graph(b.graph, [3.0])] == [9.0, 3.0]
    b.graph.results = gradient(b, y, [y, x])
    assert [float(part) for part in run_graph(b.graph, [3.0])] == [1.0, 0.0]


def test_several_outputs_accumulate() -> None:
    b, (x,), y = build(lambda b, x: b.mul(x, 3.0), "f64[2]")
    one = b.full(1.0, x.type)
    (dx,) = vjp(b, [y, x, y], [one, one, b.full(10.0, x.type)], [x])
    assert dx is not None
    b.graph.results = [dx]
    assert run_graph(b.graph, [np.zeros(2)])[0].tolist() == [34.0, 34.0]


def test_names_lines_and_order() -> None:
    def text() -> tuple[str, Graph]:
        b, (x,), _ = build(lambda b, x: x, "f64[]")
        b.locs = (Loc("model.py", 7),)
        y = b.emit(OPS["tanh"], [b.mul(x, x)], name="act").results[0]
        b.locs = (Loc("train.py", 30),)
        b.graph.results = gradient(b, y, [x])
        return print_graph(b.graph), b.graph

    (first, graph), (second, _) = text(), text()
    assert first == second
    new = [node for node in graph.nodes if node.name.startswith(("act_grad", "mul_grad"))]
    assert len(new) >= 5 and {loc.line for node in new for loc in node.locs} == {7}


def test_mixed_precision() -> None:
    b, (x,), y = build(lambda b, x: b.sum(b.mul(b.cast(x, dtype=F64), 2.0), axes=(0,)), "f32[3]")
    (dx,) = gradient(b, y, [x])
    assert dx.dtype == F32


def test_forward_mode() -> None:
    def make(b: Any, x: Value, y: Value) -> Value:
        return b.mul(b.sin(x), b.exp(y))  # type: ignore[no-any-return]

    b, params, z = build(make, "f64[3]", "f64[3]")
    tangents = [b.graph.add_param(value.type, "t") for value in params]
    found = jvp(b, [z, params[0], b.full(1.0, z.type)], params, tangents)
    assert found[0] is not None and found[1] is not None and found[2] is None
    b.graph.results = [found[0], found[1]]
    rng = np.random.default_rng(0)
    x, y, dx, dy = rng.normal(size=(4, 3))
    dz, same = run_graph(b.graph, [x, y, dx, dy])
    np.testing.assert_allclose(dz, np.cos(x) * np.exp(y) * dx + np.sin(x) * np.exp(y) * dy)
    np.testing.assert_array_equal(same, dx)


def test_training_step_text(golden: Callable[[str, str], None]) -> None:
    """What is left of the gradient of a small network, with a symbolic batch."""
    def make(b: Any, x: Value, w: Value, bias: Value) -> Value:
        y = b.contract(x, b.transpose(w, perm=(1, 0)), dims="mk,kn->mn")
        y = b.maximum(b.add(y, b.broadcast(bias, shape=y.shape, axes=(1,))), 0.0)
        return b.mean(b.mul(y, y), axes=(0, 1))  # type: ignore[no-any-return]

    b, params, loss = build(make, "f32[b,3]", "f32[5,3]", "f32[5]")
    b.graph.results = [loss, *gradient(b, loss, params[1:])]
    simple = simplify(b.graph)
    verify_graph(simple)
    golden(print_graph(simple), "grad/training_step.ir")


def test_errors() -> None:
    b, (x, n), y = build(lambda b, x, n: b.tanh(x), "f64[3]", "i64[3]")
    with pytest.raises(DTypeError, match=r"W114.*scalar"):
        gradient(b, y, [x])
    with pytest.raises(DTypeError, match="W114"):
        gradient(b, b.sum(n, axes=(0,)), [x])
    with pytest.raises(DTypeError, match=r"W111.*i64"):
        vjp(b, [y], [y], [n])
    with pytest.raises(ShapeError, match="W102"):
        vjp(b, [y], [b.sum(y, axes=(0,))], [x])


def test_a_wrong_rule_is_found() -> None:
    graph = Graph("g")
    broken = replace(OPS["tanh"], grad=lambda b, g, x, y: (b.sum(g, axes=(0,)),))
    b = Builder(graph, {**OPS, "tanh": broken})
    x = graph.add_param(TensorType(F64, (3,)), "x")
    y = b.tanh(x)
    with pytest.raises(VerifyError, match="gradient of tanh"):
        vjp(b, [y], [x], [x])
    assert issubclass(VerifyError, Error)
