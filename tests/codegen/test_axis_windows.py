"""Loops over parts of arrays go from one end of the part to the other: windows of axes."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft
from weft.codegen.kernel.domain.windows import with_windows
from weft.frontend.engine.building import pipeline
from weft.ir.diagnose import Error
from weft.ir.interp.kernel import run_kernel
from weft.ir.interp.plan import run_plan
from weft.ir.text.parser import parse_kernel, parse_plan
from weft.ir.text.printer import print_kernel, print_plan
from weft.ir.verify.verifier import verify_kernel

Golden = Callable[[str, str], None]


def product_of_a_sparse_matrix(p: Any, v: Any, m: Any) -> Any:
    ids = np.abs(v * 3).astype(np.int64) % len(v)
    y = np.empty(p.size - 1)
    for i in range(p.size - 1):
        columns = ids[p[i]:p[i + 1]]
        values = v[p[i]:p[i + 1]]
        y[i] = values @ v[columns]
    return y


def sums(p: Any, v: Any, m: Any) -> Any:
    y = np.zeros((p.size - 1, 3))
    for i in range(p.size - 1):
        s = v[p[i]:p[i + 1]]
        y[i, 0] = s.sum()
        y[i, 1] = np.sqrt((s * s).sum())
        y[i, 2] = np.prod(1 + s / 9)
    return y


def heads(p: Any, v: Any, m: Any) -> Any:
    y = np.zeros(p.size - 1)
    for i in range(p.size - 1):
        y[i] = v[:p[i + 1]].sum()
    return y


def tails(p: Any, v: Any, m: Any) -> Any:
    y = np.zeros(p.size - 1)
    for i in range(p.size - 1):
        y[i] = v[p[i]:].sum()
    return y


def rows(p: Any, v: Any, m: Any) -> Any:
    y = np.zeros((p.size - 1, m.shape[1]))
    for i in range(p.size - 1):
        y[i] = m[p[i]:p[i + 1]].sum(0)
    return y


def weighted_rows(p: Any, v: Any, m: Any) -> Any:
    y = np.zeros((p.size - 1, m.shape[1]))
    for i in range(p.size - 1):
        y[i] = v[p[i]:p[i + 1]] @ m[p[i]:p[i + 1]]
    return y


def extremes(p: Any, v: Any, m: Any) -> Any:
    y, z = np.zeros((p.size - 1, 3)), np.zeros(p.size - 1, np.int64)
    for i in range(p.size - 1):
        s = v[p[i]:p[i + 1]]
        y[i, 0], y[i, 1] = np.max(s, initial=0.5), np.any(s > 1)
        if len(s):
            y[i, 2], z[i] = s.min(), np.argmax(s)
    return y, z


def elements(p: Any, v: Any, m: Any) -> Any:
    y = np.zeros((p.size - 1, 2))
    for i in range(p.size - 1):
        s = v[p[i]:p[i + 1]]
        y[i] = (s[0] + s[-1], s[1:-1].sum()) if len(s) > 1 else (len(s), s.sum())
    return y


def moments(p: Any, v: Any, m: Any) -> Any:
    y = np.zeros(p.size - 1)
    for i in range(p.size - 1):
        s = v[p[i]:p[i + 1]]
        y[i] = s.std() if s.size else -1
    return y


def stores(p: Any, v: Any, m: Any) -> Any:
    v, m = v.copy(), m.copy()
    for i in range(p.size - 1):
        v[p[i]:p[i + 1]] -= i
        m[p[i]:p[i + 1]] *= 2
    return v, m


def set_to_numbers(p: Any, v: Any, m: Any) -> Any:
    v = v.copy()
    for i in range(p.size - 1):
        v[p[i]:p[i + 1]] = i
    return v


def normalised(p: Any, v: Any, m: Any) -> Any:
    v = v.copy()
    for i in range(p.size - 1):
        e = np.exp(v[p[i]:p[i + 1]])
        v[p[i]:p[i + 1]] = e / e.sum()
    return v


def beside(p: Any, v: Any, m: Any) -> Any:
    """Parts of one length at different places."""
    v = v.copy()
    y = np.zeros(p.size - 1)
    for i in range(p.size - 1):
        n = p[i + 1] - p[i]
        y[i] = v[p[i]:p[i + 1]] @ v[:n]
        v[:n] += v[p[i]:p[i + 1]] / 8
    return v, y


PROGRAMS = (product_of_a_sparse_matrix, sums, heads, tails, rows, weighted_rows, extremes, elements,
            moments, stores, set_to_numbers, normalised, beside)


def arguments(n: int, top: int, kind: Any = np.int64) -> tuple[Any, ...]:
    """The ends of parts, some of them empty, and what they are parts of."""
    rng = np.random.default_rng(n)
    p = np.sort(rng.integers(0, top, n))
    p[0], p[-1], p[n // 2] = 0, top, p[n // 2 - 1]
    v = rng.normal(size=top)
    v[rng.random(top) < 0.2] = -0.0
    return p.astype(kind), v, rng.normal(size=(top, 3))


@pytest.mark.parametrize("sizes", [(6, 300), (150, 5000), (300, 1000)])
@pytest.mark.parametrize("function", PROGRAMS)
def test_the_same_bits_without_windows(
    function: Callable[..., Any], sizes: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    given = arguments(*sizes)
    got = weft.tree.leaves(weft.compile(function)(*given))
    for one, other in zip(got, weft.tree.leaves(function(*given)), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)
    monkeypatch.setattr(pipeline, "with_windows", lambda plan: plan)
    whole = weft.tree.leaves(weft.compile(lambda *xs: function(*xs))(*given))
    assert [x.tobytes() for x in got] == [x.tobytes() for x in whole]


@pytest.mark.parametrize("function", PROGRAMS)
def test_the_interpreter_finds_nothing_outside(function: Callable[..., Any]) -> None:
    given = arguments(200, 900)
    plan = weft.compile(function).lower(*given).stages.plan
    assert any(axis.low or axis.high for kernel in plan.kernels.values() for axis in kernel.axes)
    found = run_plan(plan, list(given))
    for one, other in zip(found, weft.tree.leaves(weft.compile(function)(*given)), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)
    again = parse_plan(print_plan(plan, kernels=True))
    assert print_plan(again, kernels=True) == print_plan(plan, kernels=True)
    assert print_plan(with_windows(plan), kernels=True) == print_plan(plan, kernels=True)


@pytest.mark.parametrize("kind", ["u1", "i2", "u4", "u8"])
def test_ends_of_any_integers(kind: str) -> None:
    given = arguments(7, 200, np.dtype(kind))
    for function in (sums, stores):
        for one, other in zip(weft.tree.leaves(weft.compile(function)(*given)),
                              weft.tree.leaves(function(*given)), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-9)


@pytest.mark.parametrize("ends", [(-9, -2), (5, 2), (-500, 700), (90, 1 << 62), (199, -1)])
def test_ends_beyond_the_array(ends: tuple[int, int]) -> None:
    def taken(a: Any, b: Any, v: Any) -> Any:
        w = v.copy()
        w[a:b] += 1
        return v[a:b].sum(), v[a:b], w, v[a:].sum(), v[:b][::-1]

    v = np.linspace(0, 1, 200)
    for one, other in zip(weft.compile(taken)(*ends, v), taken(*ends, v), strict=True):
        np.testing.assert_allclose(one, other)


def test_text(golden: Golden) -> None:
    texts = []
    for function in (product_of_a_sparse_matrix, normalised):
        plan = weft.compile(function).lower(*arguments(200, 3000)).stages.plan
        texts += [print_kernel(kernel) for kernel in plan.kernels.values()
                  if any(axis.low for axis in kernel.axes)]
    golden("\n".join("\n".join(line.split("  //")[0] for line in text.splitlines())
                     for text in texts) + "\n", "kernels/axis_windows.txt")


KERNEL = """
kernel @k(p: i64[2], x: f64[100], y: mut f64[]) {
  lane i in 100 from %1 to %2 {
    %0: i64 = index i
    %1: i64 = p[0]
    %2: i64 = p[1]
    %3: bool = ge %0, %1
    %4: bool = lt %0, %2
    %5: bool = and_ %3, %4
    %6: f64 = x[i]
    %7: f64 = const 0.0
    %8: f64 = select %5, %6, %7
    %9: f64 = reduce add %8 over i {lanes 16, chunk 1024}
    y[] = %9
  }
}
"""


def test_a_window_that_leaves_something_out_is_found() -> None:
    kernel = parse_kernel(KERNEL)
    verify_kernel(kernel)
    buffers = {"p": np.array([3, 50]), "x": np.ones(100), "y": np.zeros(())}
    run_kernel(kernel, buffers, {})
    assert buffers["y"] == 47
    wrong = parse_kernel(KERNEL.replace("select %5", "select %3"))
    with pytest.raises(Error, match="outside of the window"):
        run_kernel(wrong, buffers, {})


@pytest.mark.parametrize("end", ["%0", "%6", "%77", "%3"])
def test_the_ends_of_a_window_are_integers_that_are_one_for_all(end: str) -> None:
    with pytest.raises(Error, match="no window"):
        verify_kernel(parse_kernel(KERNEL.replace("from %1", f"from {end}")))


@pytest.mark.parametrize(("load", "found"), [("[i]", True), ("[-1*i + 899]", False)])
def test_what_is_stored_again_is_of_the_same_place(load: str, found: bool) -> None:
    text = print_plan(weft.compile(set_to_numbers).lower(*arguments(200, 900)).stages.plan,
                      kernels=True)
    param = re.search(r"f64 = (x\d)\[i\]", text)
    assert param is not None
    plain = re.sub(r" from %\d+ to %\d+", "", text).replace(f"{param[1]}[i]", param[1] + load)
    plan = with_windows(parse_plan(plain))
    assert any(axis.low for kernel in plan.kernels.values() for axis in kernel.axes) == found


def test_windows_are_found_in_time() -> None:
    """Values that are made of the same ones again and again are looked at once."""
    def doubled(k: Any, x: Any) -> Any:
        y = x[:k]
        for _ in range(60):
            y = y + y * 1e-3
        return y.sum()

    x = np.linspace(0, 1, 100)
    np.testing.assert_allclose(weft.compile(doubled)(np.int64(7), x), doubled(7, x))
