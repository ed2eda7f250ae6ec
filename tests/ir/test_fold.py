"""Constants: folding changes no bit of what the kernels compute."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ops.cases import dtypes_of

from weft.frontend.engine.building.link import make_program
from weft.frontend.engine.building.pipeline import Stages
from weft.frontend.face.options import Options
from weft.ir.graph import Builder, Graph, constant_of
from weft.ir.kernels.fold import exact_fma
from weft.ir.ops.op import Kind, OpDef
from weft.ir.ops.table import OPS
from weft.ir.types import BOOL, F32, F64, U64, DType, TensorType
from weft.passes.simplify.simplify import simplify

FITTING = tuple(range(-40, 41))  # what may fail for others
NUMBERS = (0.0, -0.0, 1.0, -1.0, 0.3, -0.7, 2.5, 7.25, 1e-3, -123.456, 88.1, 3e4, 1e-30, 1e30,
           np.inf, -np.inf, np.nan, 0.99999, 1.5e-45)
SMALL = (0, 1, -1, 2, 3, 7, 31, -8, 100)
ROWS = [(op, dtype) for op in OPS.values() for dtype in dtypes_of(op) if not dtype.is_complex
        if op.kind is Kind.MAP and op.body and op.arity and not op.attrs and op.expand is None]


def of_letter(letter: str, dtype: DType) -> DType:
    """The dtype of an operand in a row that is tested in ``dtype``."""
    return {"b": BOOL, "w": U64, "d": F64}.get(letter, dtype)


def operands(op: OpDef, dtype: DType, rng: np.random.Generator) -> list[Any]:
    """Numbers for one call, of the dtypes that the row's letters ask for."""
    assert op.arity is not None
    found = []
    for letter in (op.letters or "t" * op.arity):
        kind = of_letter(letter, dtype).kind
        numbers: Any = (False, True) if kind == "b" else (
            SMALL if kind != "f" else FITTING if op.name == "to_int" else NUMBERS)
        number = numbers[rng.integers(len(numbers))]
        found.append(abs(number) if kind == "u" else number)
    return found


@np.errstate(all="ignore")
@pytest.mark.parametrize(("op", "dtype"), ROWS, ids=lambda part: getattr(part, "name", str(part)))
def test_folded_constants_have_the_bits_of_the_kernels(op: OpDef, dtype: DType) -> None:
    rng = np.random.default_rng(0)
    cases = [operands(op, dtype, rng) for _ in range(25)]
    kept, folded = Graph("kept"), Graph("folded")
    b, f = Builder(kept, OPS, share=False, fold=False), Builder(folded, OPS, share=True, fold=True)
    args: list[Any] = []
    for at, case in enumerate(cases):
        inputs, constants = [], []
        for place, (letter, number) in enumerate(zip(op.letters or "t" * len(case), case,
                                                     strict=True)):
            type_ = TensorType(of_letter(letter, dtype), ())
            inputs.append(kept.add_param(type_, f"x{at}_{place}"))
            constants.append(f.full(np.array(number).astype(type_.dtype.numpy).item(), type_))
            args.append(np.array(number).astype(type_.dtype.numpy))
        kept.results.append(b.emit(op, inputs).results[0])
        folded.results.append(f.emit(op, constants).results[0])
    with np.errstate(all="ignore"):
        native = make_program(Stages(kept, Options())).run(args)
    for value, wanted, case in zip(folded.results, native, cases, strict=True):
        constant = constant_of(value)
        assert constant is not None
        got = np.array(constant).astype(np.asarray(wanted).dtype)
        same = got.tobytes() == np.asarray(wanted).tobytes() or (got != got and wanted != wanted)
        assert same, (op.name, case, got, wanted)


def test_rules_fold_with_the_same_bits() -> None:
    graph = Graph("g")
    b = Builder(graph, OPS, share=False, fold=False)
    x = graph.add_param(TensorType(F32, (3,)), "x")
    graph.results = [b.mul(x, b.exp(b.tanh(b.full(0.3, x.type))))]
    results = [make_program(Stages(each, Options(opt=opt))).run([np.ones(3, x.dtype.numpy)])[0]
               for each, opt in ((graph, 0), (simplify(graph), 2))]
    assert len(simplify(graph).nodes) == 2
    np.testing.assert_array_equal(*results)


def floats(width: int) -> st.SearchStrategy[float]:
    return st.one_of(st.floats(width=width), st.floats(-2, 2, width=width))  # type: ignore[arg-type]


@given(floats(32), floats(32), floats(32))
def test_a_fused_multiply_add_is_rounded_once(a: float, b: float, c: float) -> None:
    x, y, z = (np.float32(value) for value in (a, b, c))
    with np.errstate(all="ignore"):
        got, plain = exact_fma(x, y, z), x * y + z
    assert got.dtype == np.float32
    if not all(map(np.isfinite, (x, y, z))):
        np.testing.assert_array_equal(got, plain)
        return
    exact = Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z))
    if np.isfinite(got):
        gap = abs(Fraction(float(got)) - exact)
        for side in (np.inf, -np.inf):
            other = np.nextafter(got, np.float32(side))
            assert not np.isfinite(other) or gap <= abs(Fraction(float(other)) - exact)
    if exact == 0:
        assert np.signbit(got) == np.signbit(plain)


