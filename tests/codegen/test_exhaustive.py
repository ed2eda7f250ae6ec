"""Small dtypes at all of their values: half types through every function of one operand, integers
of 8 bits through every function of two. NumPy computes the same in float32 and rounds once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import weft
from weft.codegen.cpu.jit import cpu_target
from weft.frontend.engine.building.link import make_program
from weft.frontend.engine.building.pipeline import Stages
from weft.frontend.face.options import Options
from weft.frontend.tracing.trace import trace_function
from weft.ir.interp.graph import run_graph, run_plan
from weft.ir.record import replace
from weft.ir.types import COMPUTED, as_dtype, number_kind

Array = NDArray[Any]
HALVES = tuple(dtype for dtype in COMPUTED if dtype.is_half)
# How many of 65,536 results may be another neighbour of what is exact: two float32 functions that
# are off by an ULP are rounded to two sides of a tie.
TIES = 24
OWN = {"nextafter", "spacing", "conj", "conjugate", "positive"}  # computed without float32


def ufuncs(operands: int) -> dict[str, np.ufunc]:
    return {u.__name__: u for u in vars(np).values() if isinstance(u, np.ufunc)
            and u.nin == operands and u.signature is None}


def every(dtype: Any) -> Array:
    return np.arange(1 << 8 * np.dtype(dtype).itemsize).astype(
        f"u{np.dtype(dtype).itemsize}").view(dtype)


def differs(got: Array, want: Array) -> Array:
    """Where values or the signs of zeros are not the same."""
    assert got.dtype == want.dtype and got.shape == want.shape
    if number_kind(want.dtype) != "f":
        return np.asarray(got != want)
    with np.errstate(all="ignore"):
        return np.asarray(~((got == want) & (np.signbit(got) == np.signbit(want))
                            | np.isnan(got) & np.isnan(want)))


def programs(function: Any, *args: Array) -> dict[str, list[Array]]:
    """The results of native code for CPUs with and without float16, and of the interpreters."""
    graph = trace_function(function, args, {}).graph
    stages = Stages(graph, Options())
    runs = {"graph": run_graph(graph, args), "kernels": run_plan(stages.plan, args)}
    for name, target in TARGETS.items():
        other = Stages(graph, Options())
        other.processor = target
        runs[name] = make_program(other).run(args)
        text = other.llvm
        assert ("half" in text) == (name != "bits") or "f16" not in str(graph.params[0].type)
        assert "bfloat" not in text
    return runs


def _without(features: str) -> str:
    return ",".join(part for part in features.split(",") if part[1:] != "f16c") + ",-f16c"


V3 = cpu_target("x86-64-v3")
TARGETS = {"host": cpu_target(), "v3": V3, "bits": replace(V3, features=_without(V3.features))}


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_halves_become_other_dtypes(dtype: Any) -> None:
    x = every(dtype.numpy)
    floats = [to for to in COMPUTED if not to.is_int]
    with np.errstate(all="ignore"):
        wanted = [x.astype(to.numpy) for to in floats]
        for how, results in programs(
                lambda x: tuple(x.astype(to.numpy) for to in floats), x).items():
            for got, want in zip(results, wanted, strict=True):
                assert not differs(got, want).any(), (how, want.dtype)


@pytest.mark.parametrize("start", ["float32", "float64"])
@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_floats_are_rounded_to_halves_once(dtype: Any, start: str) -> None:
    """Every half, what lies between it and the next one, and the neighbours of both."""
    with np.errstate(all="ignore"):
        low = every(dtype.numpy).astype(np.float64)
        x = np.concatenate([low, (low + np.roll(low, -1)) / 2]).astype(start)
        x = np.concatenate([x, np.nextafter(x, x.dtype.type(np.inf)), np.nextafter(x, 0 * x[:1])])
        want = x.astype(dtype.numpy)
        for how, (got,) in programs(lambda x: x.astype(dtype.numpy), x).items():
            assert not differs(got, want).any(), how


@pytest.mark.parametrize("start", [to for to in COMPUTED if to.is_int], ids=str)
def test_integers_are_rounded_to_halves(start: Any) -> None:
    rng, info = np.random.default_rng(0), np.iinfo(start.numpy)
    x = np.concatenate([rng.integers(info.min, info.max, 3000, start.numpy, endpoint=True),
                        np.arange(100, dtype=start.numpy),
                        np.array([info.min, info.max], start.numpy)])
    x = x >> (rng.integers(0, start.bits, x.size)).astype(start.numpy)
    with np.errstate(all="ignore"):
        wanted = [x.astype(dtype.numpy) for dtype in HALVES]
    for how, results in programs(
            lambda x: tuple(x.astype(dtype.numpy) for dtype in HALVES), x).items():
        for got, want in zip(results, wanted, strict=True):
            assert not differs(got, want).any(), (how, want.dtype)


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_functions_of_one_half(dtype: Any) -> None:
    """To the bit those of float32, rounded; and those of NumPy, but for a few ties."""
    functions = {name: u for name, u in ufuncs(1).items() if name not in OWN and u.nout == 1
                 and dtype.numpy in _resolved(u, dtype.numpy)}
    assert len(functions) > 35
    x = every(dtype.numpy)
    single = weft.compile(lambda x: tuple(u(x) for u in functions.values()))(
        x.astype(np.float32))
    traced = trace_function(lambda x: tuple(u(x) for u in functions.values()), (x,), {})
    for name, target in TARGETS.items():
        stages = Stages(traced.graph, Options())
        stages.processor = target
        results = make_program(stages).run([x])
        for (label, u), got, wide in zip(functions.items(), results, single, strict=True):
            with np.errstate(all="ignore"):
                want, numpys = wide.astype(got.dtype), u(x)
            if label == "sign" and dtype.name == "bf16":  # of -0.0, ml_dtypes has -0.0
                want = numpys
            assert not differs(got, want).any(), (name, label)
            assert np.count_nonzero(differs(got, numpys)) <= TIES, (name, label)


def _resolved(function: np.ufunc, dtype: Any) -> tuple[Any, ...]:
    try:
        return function.resolve_dtypes((dtype, *[None] * function.nout))
    except TypeError:
        return ()


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_neighbours_of_halves(dtype: Any) -> None:
    x, y = every(dtype.numpy), np.roll(every(dtype.numpy), 12345)

    def function(x: Any, y: Any) -> Any:
        return np.nextafter(x, y), np.positive(x), x.view(np.int16), *np.frexp(x), *np.modf(x)

    with np.errstate(all="ignore"):
        for got, want in zip(weft.compile(function)(x, y), function(x, y), strict=True):
            assert not differs(got, want).any()
        got, want = weft.compile(lambda x: np.spacing(x))(x), np.spacing(x)
        assert np.count_nonzero(differs(got, want)) <= 1  # -0.0, to whose spacing bf16 gives a sign


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_functions_of_two_halves(dtype: Any) -> None:
    x = every(dtype.numpy)
    y = np.concatenate([x[::-1][7:], x[:7]])
    functions = {name: u for name, u in ufuncs(2).items() if name != "float_power"
                 and _resolves(u, dtype.numpy)}
    results = weft.compile(lambda x, y: tuple(u(x, y) for u in functions.values()))(x, y)
    for (label, u), got in zip(functions.items(), results, strict=True):
        with np.errstate(all="ignore"):
            wanted = u(x, y)
        for one, want in zip(*(part if isinstance(part, tuple) else (part,)
                               for part in (got, wanted)), strict=True):
            assert np.count_nonzero(differs(one, want)) <= TIES // 4, label


def _resolves(function: np.ufunc, dtype: Any) -> bool:
    try:
        function.resolve_dtypes((dtype, dtype, *[None] * function.nout))
    except TypeError:
        return False
    return True


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_functions_of_two_integers_of_8_bits(dtype: Any) -> None:
    """All 65,536 pairs."""
    x, y = (part.ravel() for part in np.meshgrid(every(dtype), every(dtype)))
    functions = {name: u for name, u in ufuncs(2).items() if name not in ("power", "float_power")
                 and _resolves(u, np.dtype(dtype))}
    assert len(functions) > 30
    functions["power"] = lambda x, y: np.power(x, y & dtype(127))  # negative ones are refused
    results = weft.compile(lambda x, y: tuple(u(x, y) for u in functions.values()))(x, y)
    for (label, u), got in zip(functions.items(), results, strict=True):
        with np.errstate(all="ignore"):
            wanted = u(x, y)
        for one, want in zip(*(part if isinstance(part, tuple) else (part,)
                               for part in (got, wanted)), strict=True):
            most = 2 if number_kind(want.dtype) == "f" else 0
            assert np.count_nonzero(differs(one, want)) <= most, label


def test_a_chain_of_halves_is_rounded_at_each_step() -> None:
    """Fused or not, at every level, and in the interpreters."""
    def chain(x: Any) -> Any:
        return np.sum((x * x + x) * np.tanh(x) / 3 - x, axis=1), x @ x.T, np.cumsum(x, 0)

    for dtype in HALVES:
        x = np.random.default_rng(1).normal(0, 2, (70, 33)).astype(dtype.numpy)
        graph = trace_function(chain, (x,), {}).graph
        wanted = make_program(Stages(graph, Options(opt=0))).run([x])
        for opt in (1, 2):
            stages = Stages(graph, Options(opt=opt))
            for results in (make_program(stages).run([x]), run_plan(stages.plan, [x])):
                for got, want in zip(results, wanted, strict=True):
                    close = np.abs(got.astype(np.float64) - want.astype(np.float64))
                    assert close.max() <= 0.04 * np.abs(want.astype(np.float64)).max()
        for got, want in zip(make_program(Stages(graph, Options())).run([x]), wanted, strict=True):
            assert not differs(got, want).any()


def test_sums_of_halves_are_taken_in_float32() -> None:
    x = np.full(5000, 0.1, np.float16)
    total = weft.compile(lambda x: (x.sum(), x.mean(), x @ x, np.cumsum(x)[-1]))(x)
    single = x.astype(np.float32)
    for got, want in zip(total, (single.sum(), single.mean(), single @ single, single.sum()),
                         strict=True):
        assert as_dtype(got.dtype).name == "f16"
        np.testing.assert_allclose(float(got), float(want), rtol=1e-3)
