"""Samples of NumPy's rows with dims of unknown size: one compile of each, run at many sizes.

Of the arrays of a sample the first (or last) dims are unknown, and with them all dims of the same
size: ``x[3,4], x[4]`` becomes ``f64[b3,4], f64[b4]`` by first dims and ``f64[3,b4], f64[b4]`` by
last ones. All unknown dims are given the same size.

``REFUSED`` and ``EXCEPT`` say what does not do what NumPy does at every size, and why.
"""

from __future__ import annotations

import math
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy_samples import Sample, agree, differences, drawn, parts, shapes

import weft
from weft.frontend.numpy_api.registry import ROWS
from weft.ir.diagnose import Error
from weft.ir.interp.graph import run_plan
from weft.ir.machine import GPU

SIZES = (0, 1, 2, 7)
_LARGE = 1 << 22  # elements, of squares with sides of thousands: LAPACK takes minutes for them
_RAISED = (ValueError, IndexError, TypeError, ZeroDivisionError, RuntimeError,
           MemoryError, np.linalg.LinAlgError)
_COUNT = "how many results there are, or how often it loops, is a size"
_UNSET = "of nothing NumPy's result is what its memory held before"
_SHAPE = "the shape of the result would depend on a size in a way that no dim says"

# Rows of which samples are refused while tracing: the code, and why.
REFUSED: Mapping[str, tuple[str, str]] = MappingProxyType({
    "np.choose": ("W201", f"{_COUNT}: of an array of choices NumPy itself loops over the rows"),
    "np.histogramdd": ("W201", f"{_COUNT}: of the columns"),
    "np.lexsort": ("W201", f"{_COUNT}: of an array of keys"),
    "np.linalg.tensorsolve": ("W103", "the sizes are those of a constant"),
    "np.polydiv": ("W102", _COUNT),
    "np.roots": ("W201", _COUNT),
    "np.reshape": ("W103", "a shape without symbols leaves the size one value"),
    "np.unstack": ("W201", _COUNT),
})
# Rows whose gradient is refused while tracing.
NO_GRADIENT: Mapping[str, tuple[str, str]] = MappingProxyType({
    "np.linalg.qr": ("W113", "which of the sizes is the larger one decides how it is computed"),
})
# Rows of which samples fail, or differ from NumPy, at sizes where they might not.
EXCEPT: Mapping[str, tuple[tuple[int, ...], str]] = MappingProxyType({
    "np.apply_along_axis": ((0,), "of no slices NumPy does not know the shape of the result"),
    "np.bincount": ((0,), "of no weights NumPy's result is of integers"),
    "np.corrcoef": ((0, 1), _SHAPE),
    "np.fft.irfft": ((0,), _UNSET),
    "np.fft.irfft2": ((0,), _UNSET),
    "np.fft.irfftn": ((0,), _UNSET),
    "np.cov": ((0, 1), f"{_SHAPE}; weights of nothing have no sum"),
    "np.cross": ((2,), "vectors of two elements have one number as a result"),
    "np.delete": ((1,), "places from both ends may not pass each other"),
    "np.insert": ((0, 1), "the places of a slice are those that it has of a long axis"),
    "np.linalg.lstsq": ((0, 1, 2, 7), "residuals: none, where the rank is below that of the sizes"),
    "np.nanpercentile": ((0,), "of nothing NumPy's result has no dims for several quantiles"),
    "np.nanquantile": ((0,), "of nothing NumPy's result has no dims for several quantiles, and is "
                             "NaN for integers, too"),
    "np.poly": ((0,), "of no zeros it is a number, of no rows an error"),
    "np.trapezoid": ((2,), "one step is not repeated: named dims that meet are equal"),
})
# Where it is chance, or overflow, whether they differ.
UNCERTAIN: Mapping[str, tuple[tuple[int, ...], str]] = MappingProxyType({
    "np.fft.hfft": ((0,), _UNSET),
    "np.polyval": ((4096,), "what is beyond all floats is infinite or NaN by the order of sums"),
    "np.unpackbits": ((0,), f"{_UNSET}, as far as count= asks for more"),
})

Function = Callable[..., Any]
Compile = Callable[[Function, list[str]], Function]


@dataclass(frozen=True)
class Sized:
    """A sample whose dims of some sizes are unknown."""

    sample: Sample
    unknown: frozenset[int]

    def __str__(self) -> str:
        return f"{self.sample} of {', '.join(self.specs())}"

    def specs(self) -> list[str]:
        """The types of the arrays, as ``lower`` takes them."""
        return [f"{dtype}[" + ",".join(
            f"b{dim}" if dim in self.unknown else str(dim) for dim in shape) + "]"
            for dtype, shape in shapes(self.sample.text)]

    def counts(self, size: int) -> list[int]:
        """How many elements the arrays have."""
        return [math.prod(size if dim in self.unknown else dim for dim in shape)
                for _, shape in shapes(self.sample.text)]

    def arrays(self, size: int) -> list[Any]:
        """Arrays whose unknown dims have that size."""
        return drawn(self.sample.text, lambda dim: size if dim in self.unknown else dim)


def every_sized() -> Iterator[Sized]:
    """The rows' samples by their first and by their last dims, those of one element left alone."""
    for row in dict.fromkeys(ROWS.values()):
        for text in row.samples:
            dims = [shape for _, shape in shapes(text) if shape]
            yield from (Sized(Sample(row, text), unknown) for unknown in dict.fromkeys(
                frozenset(shape[at] for shape in dims) - {1} for at in (0, -1)) if unknown)


def known() -> Iterator[Sized]:
    """All samples as they are, also those without dims."""
    for row in dict.fromkeys(ROWS.values()):
        yield from (Sized(Sample(row, text), frozenset()) for text in row.samples)


def some(samples: Iterable[Sized]) -> list[Sized]:
    """The first and the last of each row."""
    by_row: dict[str, list[Sized]] = {}
    for sized in samples:
        by_row.setdefault(sized.sample.row.name, []).append(sized)
    return [sized for row in by_row.values() for sized in dict.fromkeys((row[0], row[-1]))]


def native(function: Function, specs: list[str]) -> Function:
    compiled: Function = weft.compile(function).lower(*specs).compile()
    return compiled


def in_triton(function: Function, specs: list[str]) -> Function:
    """A function whose kernels run in Triton's interpreter."""
    from weft.codegen.gpu.build import run_kernel_triton

    lowered = weft.compile(function).lower(*specs)
    plan = lowered.stages.plan_for(GPU)

    def run(*arrays: Any) -> Any:
        given = [*map(np.asarray, arrays), *(held.array for held in lowered.traced.captures)]
        raw = run_plan(plan, given, kernel_runner=run_kernel_triton)
        return lowered.traced.results(raw, arrays, lambda: (arrays, {}))  # which arguments may be

    return run


def exported(function: Function, specs: list[str]) -> Function:
    """A function as an artifact, loaded again; what the host would have to run is refused."""
    with tempfile.TemporaryDirectory() as folder:
        weft.export(function, *specs, path=f"{folder}/m")
        loaded: Function = weft.load(f"{folder}/m")
        return loaded


def export_problems(sized: Sized, sizes: tuple[int, ...]) -> list[str]:
    """What an artifact does not do as NumPy does; of what the host runs there is none."""
    found = problems(sized, sizes, compile_=exported)
    return [text for text in found if "Python runs on the host: it cannot be exported" not in text]


def outcome(function: Function, arrays: list[Any]) -> Any:
    """What a function gives; the error that it raises."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return function(*arrays)
        except _RAISED as problem:
            return problem


def problems(sized: Sized, sizes: tuple[int, ...], compile_: Compile = native) -> list[str]:
    """What one compile does not do as NumPy does at each size."""
    try:
        function = compile_(sized.sample.call, sized.specs())
    except Error as problem:
        return refusal(sized, problem, REFUSED)
    found = []
    for size in sizes:
        if any(large > _LARGE for large in sized.counts(size)):
            continue
        arrays = sized.arrays(size)
        wanted = outcome(sized.sample.call, arrays)
        if isinstance(wanted, MemoryError):
            continue
        given = outcome(function, arrays)
        text = "" if excused(sized, size, given) else difference(given, wanted)
        if text:
            found.append(f"{sized} at {size}: {text}")
    return found


def excused(sized: Sized, size: int, given: Any) -> bool:
    """True for an exception of the table, and where a named dim of one element is not repeated."""
    name = sized.sample.row.name
    return any(size in table.get(name, ((), ""))[0] for table in (EXCEPT, UNCERTAIN)) or (
        size == 1 and isinstance(given, Error) and "must be equal" in given.message)


def refusal(sized: Sized, problem: Error, table: Mapping[str, tuple[str, str]]) -> list[str]:
    """What is wrong about an error while tracing: a row refuses only what the table has, with
    that code, a line of the user and a fix."""
    code, _ = table.get(sized.sample.row.name, ("", ""))
    right = problem.code == code and problem.hint and problem.locs
    return [] if right else [f"{sized} is refused: {problem!r}"]


def difference(given: Any, wanted: Any) -> str:
    """How what was given is not what was wanted: an error, where there is one."""
    if isinstance(wanted, Exception):
        return "" if isinstance(given, Error) else f"no error, but NumPy has {wanted!r}"
    if isinstance(given, Exception):
        return f"{given!r}"
    try:
        agree(parts(given), parts(wanted), 1e-12)
    except AssertionError as problem:
        return " ".join(str(problem).split())[:300] or "another shape, dtype or number of results"
    return ""


def loss_of(sample: Sample) -> Function:
    """A number that depends on all float results of a sample but on the NaNs among them."""
    def loss(*arrays: Any) -> Any:
        return sum(np.sum(np.where(np.isnan(x), 0, x) * np.cos(
            np.arange(x.size).reshape(x.shape) + 1.0))
            for x in parts(sample.call(*arrays))
            if x.dtype.kind == "f" and not (isinstance(x.size, int) and x.size == 0))

    return loss


def floats_of(sample: Sample) -> tuple[int, ...]:
    """The arguments of a sample with a gradient: none, if no result is a float."""
    arrays = sample.arrays(np.float64)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        results = parts(sample.call(*arrays))
    given = tuple(at for at, x in enumerate(arrays) if x.dtype.kind == "f")
    return given if any(np.size(x) and np.asarray(x).dtype.kind == "f" for x in results) else ()


def gradient_problems(sized: Sized, sizes: tuple[int, ...]) -> list[str]:
    """Where one compile of a gradient is not that of finite differences."""
    floats, loss = floats_of(sized.sample), loss_of(sized.sample)
    if not floats:
        return []
    try:
        function = native(weft.grad(loss, argnums=floats), sized.specs())
    except Error as problem:
        return refusal(sized, problem, {**REFUSED, **NO_GRADIENT})
    found = []
    for size in sizes:
        arrays = sized.arrays(size)
        given, results = (outcome(f, arrays) for f in (function, sized.sample.call))
        if excused(sized, size, given) or isinstance(results, Exception):
            continue
        if isinstance(given, Exception):
            found.append(f"{sized} at {size}: {given!r}")
            continue
        for at, gradient in zip(floats, given, strict=True):
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                wanted = differences(loss, arrays, at)
            if any(np.any(np.isnan(x)) for x in parts(results) if x.dtype.kind == "f"):
                gradient = np.nan_to_num(gradient)  # of a NaN there is none to be found
            if not np.allclose(gradient, wanted, rtol=1e-5, atol=1e-5):
                found.append(f"{sized} at {size}: {gradient}, not {wanted}")
    return found
