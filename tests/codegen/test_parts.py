"""Long sums in parts: kernels of which the first has a task for each part. The bits are those of
one kernel, whatever is computed beside the sums."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from test_bits import targets

import weft
from weft.codegen.kernel import parts
from weft.codegen.kernel.parts import LONG, PART
from weft.ir.text.parser import parse_plan
from weft.ir.text.printer import print_plan
from weft.ir.verify.verifier import verify_plan

Array = np.ndarray[Any, Any]
GROUP = PART * 1024


def softmax(x: Any) -> Any:
    e = np.exp(x - x.max())
    return e / e.sum()


def standard(x: Any) -> Any:
    centred = x - x.mean(0)
    return centred / np.sqrt((centred ** 2).mean(0) + 1e-5)


# The function, the shape around the rows, and the launches of known and of named rows.
PROGRAMS: dict[str, tuple[Callable[[Any], Any], tuple[int, ...], int, int]] = {
    "sum": (lambda x: x.sum(), (), 2, 2),
    "product": (lambda x: np.prod(1 + x * 1e-4), (), 2, 2),
    "extremes": (lambda x: (x.max(), x.min(), np.any(x > 4), np.all(x < 4)), (), 2, 2),
    "moments": (lambda x: (x.sum(), (x * x).sum(), x.max()), (), 2, 2),
    "count": (lambda x: np.sum(x > 0), (), 2, 2),
    "norm": (lambda x: np.sqrt((x * x).sum()) + 1, (), 2, 2),
    "variance": (lambda x: ((x - x.mean()) ** 2).mean(), (), 4, 1),
    "softmax": (softmax, (), 5, 1),
    "beside a map": (lambda x: (x * 2, (x * 2).max()), (), 3, 1),
    "columns": (lambda x: x.sum(0), (3,), 2, 2),
    "standard": (standard, (16,), 5, 1),
}
LENGTHS = (4 * GROUP, 4 * GROUP + 1, 5 * GROUP - 1, 300_001)


def numbers(*shape: int) -> Array:
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32)


def assert_same(found: Any, wanted: Any) -> None:
    for one, other in zip(weft.tree.leaves(found), weft.tree.leaves(wanted), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("name", PROGRAMS)
def test_parts_change_no_bit(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    function, around, *_ = PROGRAMS[name]
    ways: list[dict[str, Any]] = [{}, {"dynamic": {"x": {0: "n"}}}, {"threads": 1}, {"opt": 0},
                                  *({"target": target} for target in targets())]
    for length in LENGTHS:
        x = numbers(length, *around)
        found = [weft.compile(function, **way)(x) for way in ways]
        with monkeypatch.context() as patch:
            patch.setattr(parts, "LONG", 1 << 60)
            whole = weft.compile(function)(x)
        for each in found:
            assert_same(each, whole)
        for one, other in zip(weft.tree.leaves(whole), weft.tree.leaves(
                function(x.astype(np.float64))), strict=True):
            np.testing.assert_allclose(one, other, rtol=2e-3, atol=1e-4)


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_plan_says_it(name: str) -> None:
    function, around, known, named = PROGRAMS[name]
    for length, launches in ((1_000_001, known), ("n", named)):
        shape = ",".join(map(str, (length, *around)))
        plan = weft.compile(function).lower(f"f32[{shape}]").stages.plan
        assert plan.launches == launches, print_plan(plan, kernels=True)
        text = print_plan(plan, kernels=True)
        verify_plan(parse_plan(text))
        assert print_plan(parse_plan(text), kernels=True) == text


@pytest.mark.parametrize("length", [0, 1, 7, GROUP - 1, GROUP, GROUP + 1, 3 * GROUP])
def test_an_axis_of_unknown_extent_may_be_short(length: int) -> None:
    total = weft.compile(lambda x: (x.sum(), np.any(x > 4), (x * x).sum()),
                         dynamic={"x": {0: "n"}})
    x = numbers(length)
    assert_same(total(x), weft.compile(lambda x: (x.sum(), np.any(x > 4), (x * x).sum()))(x))


def test_sums_in_loops_and_branches() -> None:
    """Memory for the sums of parts is in bodies as well."""
    def f(x: Any, k: Any) -> Any:
        while k > 0:
            x = x / (1 + np.sqrt((x * x).sum()))
            k = k - 1
        return x.sum() if k < 1 else x.max()

    x = numbers(LONG + 5)
    found = weft.compile(f)(x, np.array(3))
    want = x.astype(np.float64)
    for _ in range(3):
        want = want / (1 + np.sqrt((want * want).sum()))
    np.testing.assert_allclose(found, want.sum(), rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("where", [0, GROUP + 3, LONG, LONG + 4])
def test_checks_of_what_is_summed(where: int) -> None:
    """Elements by number, of which one is outside: in a part, in the last one, in the rest."""
    x, ids = numbers(100), np.random.default_rng(0).integers(0, 100, LONG + 5)
    for way in ({}, {"dynamic": {"ids": {0: "n"}}}):
        total = weft.compile(lambda x, ids: (x[ids].sum(), x[ids].max()), **way)
        assert_same(total(x, ids), (weft.compile(lambda x: x.sum())(x[ids]), x[ids].max()))
        wrong = ids.copy()
        wrong[where] = 100
        with pytest.raises(IndexError, match="W124: index out of range in an axis of 100"):
            total(x, wrong)
        assert_same(total(x, ids)[1], x[ids].max())


def test_gradients_of_long_sums() -> None:
    x = numbers(LONG + 9)
    grad = weft.compile(weft.grad(lambda x: np.log(np.sum(np.exp(x)))))(x)
    np.testing.assert_allclose(grad, softmax(x.astype(np.float64)), rtol=1e-4, atol=1e-12)


def test_rows_that_are_tasks_enough_stay_whole() -> None:
    for shape in ("f32[8,100000]", "f32[100,100]", "f32[1000,3000]"):
        assert weft.compile(lambda x: x.sum(-1)).lower(shape).stages.plan.launches == 1


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("depth, rows, columns", [
    (60_000, 100, 10), (8192, 33, 64), (20_001, 7, 5), (4099, 1, 130), (9000, 16, 16)])
def test_products_along_a_long_axis(
    depth: int, rows: int, columns: int, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What follows is computed of the total; the bits are those of one product."""
    def function(x: Any, y: Any) -> Any:
        return np.tanh(x.T @ y / 100) + 1

    x, y = (numbers(depth, size).astype(dtype) for size in (rows, columns))
    plan = weft.compile(function).lower(x, y).stages.plan
    assert any(name.endswith("_parts") for name in plan.kernels), print_plan(plan)
    verify_plan(parse_plan(print_plan(plan, kernels=True)))
    ways: list[dict[str, Any]] = [{"dynamic": {"x": {0: "n"}, "y": {0: "n"}}}, {"threads": 1},
                                  {"opt": 0}, *({"target": target} for target in targets())]
    found = weft.compile(function)(x, y)
    for way in ways:
        assert_same(weft.compile(function, **way)(x, y), found)
    with monkeypatch.context() as patch:
        patch.setattr(parts, "RESULTS", 0)
        assert_same(weft.compile(function)(x, y), found)
    np.testing.assert_allclose(found, function(x.astype("f8"), y.astype("f8")), rtol=1e-3,
                               atol=1e-5)


def test_products_that_stay_whole() -> None:
    """Those with tasks enough, with short axes, and of an unknown number of rows."""
    for x, y in (("f32[1024,1024]", "f32[1024,1024]"), ("f32[4000,16]", "f32[4000,16]"),
                 ("f32[n,16]", "f32[n,16]")):
        plan = weft.compile(lambda x, y: x.T @ y).lower(x, y).stages.plan
        assert plan.launches == 1
