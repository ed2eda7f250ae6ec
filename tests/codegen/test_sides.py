"""Products with several axes on a side: which become one, and that it changes no bit."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from native_kernel import run_native
from numpy.lib.stride_tricks import sliding_window_view

import weft
from weft.codegen.kernel.axes.sides import Grouping, groupings
from weft.codegen.schedule import contract as blocking
from weft.ir.indices.index import row_major, symbol
from weft.ir.indices.runs import longest_run
from weft.ir.interp.graph import run_plan
from weft.ir.kernels.kernel import Kernel
from weft.ir.ops.places.view import unravel
from weft.ir.text.parser import parse_kernel
from weft.ir.text.printer import print_kernel
from weft.ir.text.same import same_kernel
from weft.ir.verify.verifier import verify_kernel

TARGETS = (None, "x86-64-v3")


@st.composite
def contractions(draw: Any) -> tuple[Any, tuple[np.ndarray[Any, Any], ...]]:
    """An einsum of letters in any order, with sizes about those of vectors; perhaps of windows,
    stored as the letters come, perhaps with a bias and an activation."""
    shared, left, right, summed = (
        [chr(first + at) for at in range(draw(st.integers(least, most)))]
        for first, least, most in ((97, 0, 1), (105, 1, 3), (109, 1, 3), (115, 1, 2)))
    size = {letter: draw(st.sampled_from((1, 2, 3, 5, 7, 9, 14, 17)))
            for letter in (*shared, *left, *right, *summed)}
    lhs, rhs, out = (draw(st.permutations(letters)) for letters in (
        shared + left + summed, shared + right + summed, shared + left + right))
    window = draw(st.sampled_from((0, 0, 1, 2))) if left else 0  # and its step
    dtype = draw(st.sampled_from(("f4", "f4", "f8", "i4")))
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    shape = [size[letter] for letter in lhs]
    axis = lhs.index(left[0])
    if window:
        shape[axis] = window * (shape[axis] - 1) + 3
    x = (4 * rng.normal(size=shape)).astype(dtype)
    kernel = [3] if window else []
    w = (4 * rng.normal(size=[*(size[letter] for letter in rhs), *kernel])).astype(dtype)
    letters = "".join(lhs), "".join(rhs), "".join(out)
    spec = "{}z,{}z->{}" if window else "{},{}->{}"
    finish = draw(st.booleans())

    def function(x: Any, w: Any) -> Any:
        if window:
            x = sliding_window_view(x, 3, axis=axis)
            x = x[(slice(None),) * axis + (slice(None, None, window),)]
        y = np.einsum(spec.format(*letters), x, w)
        return np.maximum(y + y.dtype.type(1.5), 0) if finish else y

    return function, (x, w)


@pytest.mark.long
@settings(max_examples=40, deadline=None, derandomize=True,
          suppress_health_check=[HealthCheck.too_slow])
@given(contractions())
def test_bits_are_those_of_the_interpreter(
    case: tuple[Any, tuple[np.ndarray[Any, Any], ...]]
) -> None:
    function, arguments = case
    want = weft.compile(opt=0)(function)(*arguments)
    for target in TARGETS:
        compiled = weft.compile(target=target, threads=2)(function)
        np.testing.assert_array_equal(compiled(*arguments), want)
        plan = compiled.lower(*arguments).stages.plan
        # NumPy has no fma: the interpreter's is that of a wider format, rounded.
        epsilon = 1e-14 if want.dtype == np.float64 else 0
        np.testing.assert_allclose(run_plan(plan, arguments)[0], want, epsilon, epsilon)
        for kernel in plan.kernels.values():
            again = parse_kernel(print_kernel(kernel))
            verify_kernel(again)
            assert same_kernel(again, kernel)


def convolution(x: Any, w: Any) -> Any:
    return np.einsum("nchwij,ocij->nohw", sliding_window_view(x, w.shape[2:], axis=(2, 3)), w)


def channels_last(x: Any, w: Any) -> Any:
    return np.einsum("nhwcij,oijc->nhwo", sliding_window_view(x, w.shape[1:3], axis=(1, 2)), w)


def windows_of_weights(x: Any, w: Any) -> Any:
    windows = sliding_window_view(x, w.shape[2:], axis=(2, 3)).transpose(0, 1, 4, 5, 2, 3)
    return np.einsum("nchwij,nohw->ocij", windows, w)


SHAPES: dict[str, tuple[Any, tuple[tuple[int, ...], ...]]] = {
    "images": (convolution, ((3, 4, 9, 11), (6, 4, 3, 3))),
    "channels_last": (channels_last, ((3, 9, 11, 20), (5, 3, 3, 20))),
    "weights": (windows_of_weights, ((3, 4, 9, 11), (3, 6, 7, 9))),
    "both": (lambda x, w: np.einsum("abk,kcd->cadb", x, w), ((5, 6, 9), (9, 7, 20))),
    "one": (lambda x, w: np.einsum("gabk,gck->agcb", x, w), ((2, 3, 20, 9), (2, 7, 9))),
}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", SHAPES)
def test_every_grouping_has_the_same_bits(
    name: str, target: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also those that are not chosen for these sizes."""
    function, shapes = SHAPES[name]
    arguments = [np.random.default_rng(at).normal(size=shape).astype("f4")
                 for at, shape in enumerate(shapes)]
    want = weft.compile(opt=0, target=target)(function)(*arguments)
    seen: set[str] = set()
    for at in range(9):
        def chosen(kernel: Kernel, at: int = at) -> Iterator[Grouping]:
            found = list(groupings(kernel))
            yield found[at % len(found)]

        monkeypatch.setattr(blocking, "groupings", chosen)
        compiled = weft.compile(target=target)(function)
        np.testing.assert_array_equal(compiled(*arguments), want)
        (kernel,) = compiled.lower(*arguments).stages.plan.kernels.values()
        seen.add(", ".join(axis.name for axis in kernel.axes))
    assert len(seen) > 1


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("way", "other"), [(r"lines \d+", "panels"), (r"lines \d+", "lines 808"),
                                           (r"block (\d+x\d+)x\d+(, cut)?", r"block \1x16, cut")])
def test_text_changed_by_hand_changes_no_bit(target: str | None, way: str, other: str) -> None:
    x, w = (np.random.default_rng(at).normal(size=shape).astype("f4")
            for at, shape in enumerate(((3, 4, 9, 11), (6, 4, 3, 3))))
    lowered = weft.compile(target=target)(convolution).lower(x, w)
    (kernel,) = lowered.stages.plan.kernels.values()
    changed = parse_kernel(re.sub(way, other, print_kernel(kernel)))
    assert not same_kernel(changed, kernel)
    out = np.empty((3, 6, 7, 9), "f4")
    run_native(changed, {"x0": w, "x1": x, "y0": out}, {}, target)
    np.testing.assert_array_equal(out, weft.compile(opt=0)(convolution)(x, w))


def test_runs_are_as_long_as_memory_goes_on() -> None:
    """Pixels of images: lines of a larger image, a whole image, images side by side."""
    images, lines, places = unravel(symbol("p"), (4, 14, 14))
    for shape, index, run in (
        ((4, 16, 16), (images, lines + 1, places + 2), 14),
        ((4, 8, 14, 14), (images, symbol("c"), lines, places), 196),
        ((4, 14, 14, 2), (images, lines, places, 1), 0),
        ((14, 14, 3), (lines, places, 0), 0),
    ):
        assert longest_run(row_major(index, shape), "p") == run
    assert longest_run(row_major((images, lines, places), (4, 14, 14)) + 2 * symbol("q"), "q") == 0
    assert longest_run(2 * symbol("q"), "q", 2) > 1 << 30
