"""Tangents and batches of op rows, derived from their samples.

A tangent is compared with the gradient (<g, dy> = <dx, grad(g)>) and with a difference along it; a
batch with the op on each example. Problems are texts; none are none.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "ir"))

from ops.cases import operands

from weft.frontend.engine.building.link import make_program
from weft.frontend.engine.building.pipeline import Stages
from weft.frontend.face.options import Options
from weft.ir.graph import Builder, Graph, Value
from weft.ir.interp.graph import run_graph
from weft.ir.ops.op import Kind, OpDef, Sample
from weft.ir.ops.table import OPS
from weft.ir.types import C128, F64, DType, TensorType, as_dtype
from weft.ir.verify.verifier import verify_graph
from weft.passes.transform.batch import batch
from weft.passes.transform.examples import Batched
from weft.passes.transform.forward import jvp
from weft.passes.transform.reverse import vjp

Run = Callable[[Graph, Sequence[Any]], list[Any]]
SIZE = 3  # of a batch
# Memory of complex numbers as real ones, which no traced graph has.
ROWS = [op for op in OPS.values() if op.samples and op.kind is not Kind.ALIAS]
TANGENTS = [op for op in ROWS if op.differentiable and {F64, C128} & {*op.dtypes}]


def native(graph: Graph, args: Sequence[Any]) -> list[Any]:
    """Compiled."""
    return list(make_program(Stages(graph, Options())).run(list(args)))


def small(sample: Sample, most: int = 300) -> bool:
    return sum(int(np.prod(np.shape(s) if isinstance(s, np.generic) else s))
               for s in sample.shapes) < most


def _graph(arrays: Sequence[Any]) -> tuple[Builder, list[Value]]:
    graph = Graph("g")
    return Builder(graph, OPS, share=False, fold=False), [
        graph.add_param(TensorType(as_dtype(x.dtype), x.shape), f"x{at}")
        for at, x in enumerate(arrays)]


def _like(x: Any, rng: np.random.Generator) -> Any:
    made = rng.standard_normal(x.shape)
    return (made + 1j * rng.standard_normal(x.shape) if np.iscomplexobj(x) else made).astype(
        x.dtype)


def _dot(pairs: Iterator[tuple[Any, Any]]) -> float:
    """The real part of the sum of products, as the gradients of complex numbers are defined."""
    return float(sum(np.sum(a * b).real for a, b in pairs))


def tangent_cases() -> Iterator[tuple[OpDef, DType, Sample]]:
    """Small samples of rows with tangents, in float64 and complex128."""
    return ((op, dtype, sample) for op in TANGENTS for dtype in dtypes(op) for sample in op.samples
            if small(sample) and sample.attrs.get("dtype") in (None, F64, C128))


def batch_cases() -> Iterator[tuple[OpDef, DType, Sample]]:
    """Small samples of all rows, in the first of their dtypes."""
    return ((op, op.dtypes[0], sample) for op in ROWS for sample in op.samples if small(sample))


def dtypes(op: OpDef) -> list[DType]:
    """float64 and complex128, of those that the row has."""
    return [dtype for dtype in (F64, C128) if dtype in op.dtypes]


def tangent_problems(
    op: OpDef, sample: Sample, dtype: DType, rng: np.random.Generator, run: Run = run_graph
) -> Iterator[str]:
    """What is wrong with the tangents of one call."""
    arrays = operands(op, sample, dtype, rng)
    floats = [at for at, x in enumerate(arrays)
              if as_dtype(x.dtype).is_inexact and at not in op.refused]
    if not floats:
        return
    along = [_like(arrays[at], rng) for at in floats]
    if sample.positive:
        along = [(x + np.conj(x).mT) / 2 for x in along]
    b, values = _graph(arrays)
    tangents = [b.graph.add_param(values[at].type, f"t{at}") for at in floats]
    results = list(b.compose(op, values, sample.attrs))
    plain = Graph("plain", values, list(b.graph.nodes), list(results))
    places = [at for at, x in enumerate(results) if x.dtype.is_inexact]
    if not places:
        return
    shown = f"{op.name} {dtype} {sample}"
    first = run_graph(plain, arrays)
    cotangents = [_like(first[at], rng) for at in places]
    seeds = [b.graph.add_param(results[at].type, f"g{at}") for at in places]
    made = jvp(b, [results[at] for at in places], [values[at] for at in floats], tangents)
    parts = vjp(b, [results[at] for at in places], seeds, [values[at] for at in floats])
    there = [at for at, x in enumerate(made) if x is not None]
    back = [at for at, x in enumerate(parts) if x is not None]
    b.graph.results = [x for x in (*made, *parts) if x is not None]
    verify_graph(b.graph)
    found = run(b.graph, [*arrays, *along, *cotangents])
    pushed = dict(zip(there, found, strict=False))
    pulled = dict(zip(back, found[len(there):], strict=True))
    one = _dot((cotangents[at], x) for at, x in pushed.items())
    two = _dot((along[at], x) for at, x in pulled.items())
    scale = sum(float(np.sum(np.abs(cotangents[at] * x))) for at, x in pushed.items())
    if not abs(one - two) <= 1e-9 * (1 + scale):
        yield f"{shown}: <g, dy> = {one}, <dx, grad(g)> = {two}"
    step = 1e-6

    def moved(sign: int) -> list[Any]:
        given = list(arrays)
        for at, x in zip(floats, along, strict=True):
            given[at] = given[at] + sign * step * x
        return run_graph(plain, given)

    if ((op.moves and op.check is not None)  # what is checked is not to be moved,
            or op is OPS["eig"]  # eigenvectors turn by any phase,
            or 1e-9 < sample.attrs.get("rcond", 0.0) < 1):  # and what is cut off has no rule
        return
    for at, (up, down) in enumerate(zip(moved(1), moved(-1), strict=True)):
        if at not in places:
            continue
        exact = pushed.get(places.index(at), np.zeros_like(first[at]))
        difference = (up - down) / (2 * step)
        noise = 1e-8 * (1 + float(np.max(np.abs(first[at]), initial=0.0)))
        wide = noise + 1e-5 * (1 + float(np.max(np.abs(exact), initial=0.0)))
        if not np.all(np.abs(exact - difference) <= wide):
            yield f"{shown}: result {at}: {exact} is not the difference {difference}"


def batch_problems(
    op: OpDef, sample: Sample, dtype: DType, rng: np.random.Generator, run: Run = run_graph
) -> Iterator[str]:
    """What is wrong with a batch of all operands, and of each one, in one call."""
    count = len(sample.shapes)
    scalars = {at for at, shape in enumerate(sample.shapes) if isinstance(shape, np.generic)}
    own = [operands(op, sample, dtype, rng) for _ in range(SIZE)]
    chosen = [each for size in {1, count} for each in combinations(range(count), size)
              if each and not scalars & set(each)]
    for batched in chosen:
        examples = [[x[at] if at in batched else own[0][at] for at in range(count)] for x in own]
        b, values = _graph(own[0])
        results = b.compose(op, values, sample.attrs)
        one = Graph("one", values, list(b.graph.nodes), list(results))
        graph = Graph("batch")
        arrays = [np.stack([x[at] for x in examples]) if at in batched else own[0][at]
                  for at in range(count)]
        params = [Batched(graph.add_param(TensorType(as_dtype(x.dtype), x.shape), f"x{at}"),
                          at in batched) for at, x in enumerate(arrays)]
        made = batch(Builder(graph, OPS, share=False, fold=False), one, params, SIZE)
        graph.results = [x.value for x in made]
        verify_graph(graph)
        found = run(graph, arrays)
        wanted = [run(one, x) for x in examples]
        for at, (got, x) in enumerate(zip(found, made, strict=True)):
            want = np.stack([each[at] for each in wanted]) if x.is_batched else wanted[0][at]
            exact = want.dtype.kind in "iub"
            same = got.shape == want.shape and (
                np.array_equal(got, want) if exact else np.allclose(
                    got, want, rtol=1e-9, atol=1e-12, equal_nan=True))
            if not same:
                yield f"{op.name} {dtype} {sample} batch of {batched}: {got} is not {want}"


