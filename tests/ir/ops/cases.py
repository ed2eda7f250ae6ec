"""Test cases made from the op rows: operands, graphs of one op, and tolerances."""

from __future__ import annotations

from typing import Any
from zlib import crc32

import numpy as np

from weft.ir.graph import Builder, Graph, Value
from weft.ir.ops.op import OpDef, Sample
from weft.ir.ops.table import OPS
from weft.ir.types import BOOL, F64, I64, U64, DType, TensorType, as_dtype, number_kind
from weft.passes.transform.reverse import vjp

COMPUTING = [op for op in OPS.values() if op.samples]


def dtypes_of(op: OpDef) -> list[DType]:
    """The dtypes that a row is tested in: of those of 8 and 16 bits one half and one integer."""
    found = [dtype for dtype in op.dtypes if dtype.bits not in (8, 16)]
    for half in (True, False):
        small = [dtype for dtype in op.dtypes if dtype.bits in (8, 16) and dtype.is_half == half]
        found += [small[crc32(op.name.encode()) % len(small)]] if small else []
    return found


def operand_dtype(op: OpDef, sample: Sample, at: int, dtype: DType) -> DType:
    """The dtype of operand ``at`` when the op is tested for ``dtype``."""
    if at in sample.ints:
        return I64
    if isinstance(sample.shapes[at], np.generic):
        return as_dtype(sample.shapes[at].dtype)
    return {"b": BOOL, "w": U64, "d": F64}.get(op.letters[at:at + 1], dtype)


def positive(x: Any) -> Any:
    """Symmetric, positive definite matrices whose eigenvalues are apart."""
    steps = np.diag(np.arange(1, x.shape[-1] + 1))
    return (x @ np.swapaxes(x, -1, -2) / 4 + steps).astype(x.dtype)


def operands(op: OpDef, sample: Sample, dtype: DType, rng: np.random.Generator) -> list[Any]:
    """Random operands inside the range that the row asks for."""
    arrays = []
    for at, shape in enumerate(sample.shapes):
        kind = operand_dtype(op, sample, at, dtype)
        if isinstance(shape, np.generic):
            arrays.append(np.asarray(shape))
        elif at in sample.ints:
            bound = sample.ints[at]
            arrays.append(rng.integers(-bound, bound, shape).astype(np.int64))
        elif kind == BOOL:
            arrays.append(rng.integers(0, 2, shape).astype(np.bool_))
        elif kind.is_int:
            low = max(sample.low, 0 if kind.kind == "u" else -2.0 ** (kind.bits - 2))
            high = min(sample.high, 2.0 ** (kind.bits - 2))
            arrays.append(rng.integers(int(np.ceil(low)), int(high) + 1, shape,
                                       dtype=kind.numpy))
        else:
            made = rng.uniform(sample.low, sample.high, shape)
            if kind.is_complex:
                made = made + 1j * rng.uniform(sample.low, sample.high, shape)
            arrays.append(np.asarray(made).astype(kind.numpy))
    if sample.positive:
        arrays[0] = positive(arrays[0])
    return arrays


def apply_op(b: Builder, op: OpDef, values: list[Value], sample: Sample) -> Value:
    """The (first) result of the op on its operands; composite rows expand."""
    return b.compose(op, values, sample.attrs)[0]


def graph_of(op: OpDef, dtype: DType, samples: tuple[Sample, ...]) -> Graph:
    """One graph that applies ``op`` to every sample, each with parameters of its own."""
    graph = Graph(f"{op.name}_{dtype}")
    b = Builder(graph, OPS, share=False, fold=False)
    for number, sample in enumerate(samples):
        values = [graph.add_param(TensorType(operand_dtype(op, sample, at, dtype),
                                             () if isinstance(shape, np.generic) else shape),
                                  f"x{number}_{at}")
                  for at, shape in enumerate(sample.shapes)]
        graph.results.append(apply_op(b, op, values, sample))
    return graph


def expected(op: OpDef, arrays: list[Any], sample: Sample) -> Any:
    """The row's NumPy meaning, with float32 reductions in higher precision; of several results
    the first."""
    assert op.ref is not None
    with np.errstate(all="ignore"):
        found = op.meaning(*arrays, **sample.attrs)
    return np.asarray(found[0] if isinstance(found, tuple) else found)


def assert_close(got: Any, want: Any, context: str) -> None:
    """Exact for integers; a few units in the last place (scaled by the data) for floats."""
    assert got.shape == want.shape, context
    if number_kind(got.dtype) not in "fc":
        np.testing.assert_array_equal(got, want.astype(got.dtype), err_msg=context)
        return
    if as_dtype(got.dtype).is_half:  # rounded once, of float32 that may be off by its last bits
        with np.errstate(over="ignore"):
            want = want.astype(got.dtype)
        got, want, tolerance = *(x.astype(np.float32) for x in (got, want)), {
            "f16": 1e-3, "bf16": 8e-3}[as_dtype(got.dtype).name]
    else:
        tolerance = 2e-5 if got.dtype in (np.float32, np.complex64) else 1e-12
    scale = np.max(np.abs(want[np.isfinite(want)]), initial=0.0)
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance * scale * 0.1,
                               err_msg=context)


def gradient_case(
    op: OpDef, sample: Sample, rng: np.random.Generator
) -> tuple[Graph, list[Any]] | None:
    """The float64 gradient of one sample as a graph, and its arguments: operands, cotangent.

    None for a sample without a gradient: integer operands only, or no path to the result.
    """
    graph = Graph(f"{op.name}_gradient")
    b = Builder(graph, OPS, share=False, fold=False)
    arrays = operands(op, sample, F64, rng)
    values = [graph.add_param(TensorType(as_dtype(array.dtype), array.shape), f"x{at}")
              for at, array in enumerate(arrays)]
    out = apply_op(b, op, values, sample)
    if op.name == "slogdet":  # its first result is a sign
        assert out.node is not None
        out = out.node.results[1]
    leaves = [value for at, value in enumerate(values)
              if value.dtype.is_float and at not in op.refused]
    if not out.dtype.is_inexact or not leaves:
        return None
    cotangent = graph.add_param(out.type, "g")
    found = [g for g in vjp(b, [out], [cotangent], leaves) if g is not None]
    graph.results = found
    static = tuple(int(dim) for dim in out.shape if isinstance(dim, int))
    made = rng.standard_normal(static) + (
        1j * rng.standard_normal(static) if out.dtype.is_complex else 0.0)
    seed = np.asarray(made).astype(out.dtype.numpy)
    return (graph, [*arrays, seed]) if found else None


# The gradient of a random number is one of differences, which ``test_random`` looks at.
DIFFERENTIABLE = [op for op in COMPUTING if op.differentiable and F64 in op.dtypes
                  and len(op.refused) != op.arity and op.letters[:1] != "w"]
