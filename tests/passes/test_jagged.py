"""Sums and products that go along short rows which do not lie side by side."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from texts import without_notes

import weft
from weft.ir.indices.affine import coefficient
from weft.ir.kernels.kernel import Load, Reduce
from weft.ir.kernels.operands import offset_of


def kernels(function: Callable[..., Any], *specs: str) -> list[str]:
    text = without_notes(weft.compile(function).lower(*specs).as_text("kernel"))
    return text.split("\nkernel ")


SUMS: dict[str, Callable[[Any], Any]] = {
    "inner": lambda y: y[:, :, 1:-1, 1:-1].sum((0, 2, 3)),
    "padded": lambda y: (np.pad(y, ((0, 0), (0, 0), (1, 1), (1, 1))) * 2).sum((0, 2, 3)),
    "upsampled": lambda y: np.repeat(np.repeat(y, 2, 2), 2, 3).sum((0, 2, 3)),
    "off by rows": lambda y: ((y - y.mean(3, keepdims=True)) ** 2).sum((1, 2, 3)),
    "off by columns": lambda y: ((y - y[0, 0, 0]) ** 2).sum(),
    "half of rows": lambda y: y[:, :, :, :7].sum((0, 2, 3)),
    "every second": lambda y: y[:, :, ::2, ::2].sum((0, 2, 3)),
    "turned": lambda y: y.transpose(0, 1, 3, 2).sum((2, 3)),
    "differences": lambda y: np.abs(y[:, :, :, 1:] - y[:, :, :, :-1]).sum((2, 3)),
    "largest": lambda y: y[:, :, 1:-1, 1:-1].max((0, 2, 3)),
}


@pytest.mark.parametrize("name", SUMS)
def test_what_jumps_is_stored_before_it_is_summed(name: str) -> None:
    """What a sum reads lies along its axis, or has nothing to do with it."""
    function = SUMS[name]
    plan = weft.compile(function).lower("f32[6,5,11,14]").stages.plan
    for kernel in plan.kernels.values():
        axes = {stmt.axis for stmt in kernel.body if isinstance(stmt, Reduce)}
        offsets = [offset_of(kernel, stmt) for stmt in kernel.body if isinstance(stmt, Load)]
        assert all(coefficient(offset, axis) for offset in offsets for axis in axes)
    y = np.random.default_rng(0).normal(size=(6, 5, 11, 14)).astype(np.float32)
    found = weft.compile(function)(y)
    np.testing.assert_allclose(found, function(y), rtol=2e-5, atol=1e-5)
    assert np.asarray(found).tobytes() == np.asarray(
        weft.compile(function, opt=0)(y)).tobytes()


@pytest.mark.parametrize("name", SUMS)
@pytest.mark.parametrize("dims", [{0: "b"}, {3: "w"}, {0: "b", 2: "h", 3: "w"}])
def test_named_sizes_are_as_known_ones(name: str, dims: dict[int, str]) -> None:
    function = SUMS[name]
    y = np.random.default_rng(0).normal(size=(6, 5, 11, 14)).astype(np.float32)
    named = weft.compile(function, dynamic={"y": dims})(y)
    assert np.asarray(named).tobytes() == np.asarray(weft.compile(function)(y)).tobytes()


def test_sums_of_an_unknown_number_of_images_are_of_what_is_stored() -> None:
    compiled = weft.compile(SUMS["inner"], dynamic={"y": {0: "b"}})
    kernels = compiled.lower("f32[b,5,11,14]").stages.plan.kernels
    assert len(kernels) == 2 and all(
        coefficient(offset_of(kernel, stmt), each.axis) for kernel in kernels.values()
        for each in kernel.body if isinstance(each, Reduce)
        for stmt in kernel.body if isinstance(stmt, Load))


@pytest.mark.parametrize(("function", "spec"), [
    (lambda y: y.sum((0, 2, 3)), "f32[6,5,11,14]"),
    (lambda y: ((y[1:] - y[:-1]) ** 2).sum((1, 2, 3)), "f32[6,5,11,14]"),
    (lambda y: ((y - y.mean((2, 3), keepdims=True)) ** 2).sum((2, 3)), "f32[6,5,11,14]"),
    (lambda y: y[:, 1:-1].sum(), "f32[40,400]"),      # long rows
    (lambda y: y[:, 1:-1].sum(), "f32[10,14]"),       # few elements
    (lambda y: y[:, 1:-1].sum(1), "f32[400,14]"),     # rows by themselves
])
def test_what_lies_side_by_side_is_summed_where_it_is(
    function: Callable[[Any], Any], spec: str
) -> None:
    assert len(kernels(function, spec)) == 1


def pooled(x: Any, w: Any) -> Any:
    return weft.nn.max_pool2d(weft.nn.conv2d(x, w, padding=1), 2).sum()


def test_pixels_of_a_product_are_not_looked_up_by_the_gradient_of_a_pool() -> None:
    """What the gradient of a pool reads lies two apart: it is a kernel of its own."""
    def gradient(x: Any, w: Any) -> Any:
        return weft.grad(lambda x: pooled(np.tanh(pooled_half(x)), w))(x)

    def pooled_half(x: Any) -> Any:
        return weft.nn.max_pool2d(x, 2)

    products = [text for text in kernels(gradient, "f32[4,8,28,28]", "f32[8,8,3,3]")
                if "contract" in text]
    assert products and all("2*(" not in text.split("contract", 1)[1] for text in products)


def test_gradient_of_an_image_is_a_product_of_windows_without_guards() -> None:
    """Zeros are stored around the cotangent, once; the weights are read in their order."""
    def gradient(x: Any, w: Any, g: Any) -> Any:
        return weft.grad(lambda x: (weft.nn.conv2d(x, w, padding=1) * g).sum())(x)

    texts = kernels(gradient, "f32[4,8,14,14]", "f32[6,8,3,3]", "f32[4,6,14,14]")
    (product,) = [text for text in texts if "contract" in text]
    assert " if %" not in product and "select" not in product
    assert "(m_n_o//3) mod 3, m_n_o mod 3]" in product
    rng = np.random.default_rng(0)
    x, w, g = (rng.normal(size=shape).astype(np.float32)
               for shape in ((4, 8, 14, 14), (6, 8, 3, 3), (4, 6, 14, 14)))
    wide = np.pad(g.astype("f8"), ((0, 0), (0, 0), (1, 1), (1, 1)))
    views = np.lib.stride_tricks.sliding_window_view(wide, (3, 3), (2, 3))
    wanted = np.einsum("noxyij,ocij->ncxy", views[..., ::-1, ::-1], w)
    np.testing.assert_allclose(weft.compile(gradient)(x, w, g), wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.long
@pytest.mark.parametrize("width", [5, 7, 8, 9, 14, 16, 30, 33, 56])
@pytest.mark.parametrize("target", ["x86-64-v3", None])
def test_images_of_every_width_are_packed(width: int, target: str | None) -> None:
    """Runs shorter than a vector, of a few, and of many; some are cut where blocks end."""
    rng = np.random.default_rng(width)
    x = rng.normal(size=(3, 5, width, width)).astype(np.float32)
    w = rng.normal(size=(7, 5, 3, 3)).astype(np.float32)
    views = np.lib.stride_tricks.sliding_window_view(
        np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1))), (3, 3), (2, 3))

    def relu(x: Any, w: Any) -> Any:
        y = weft.nn.conv2d(x, w, padding=1)
        return np.maximum(y, 0), y > 0

    wanted = np.einsum("ncxyij,ocij->noxy", views.astype("f8"), w)
    y, positive = weft.compile(relu, target=target)(x, w)
    np.testing.assert_allclose(y, np.maximum(wanted, 0), rtol=1e-4, atol=1e-4)
    assert y.tobytes() == weft.compile(relu, opt=0)(x, w)[0].tobytes()
    assert np.array_equal(positive, y > 0)


@pytest.mark.parametrize("function", [
    lambda x: np.lib.stride_tricks.sliding_window_view(x, (5, 5)).sum((2, 3)),
    lambda x: np.lib.stride_tricks.sliding_window_view(x, (5, 5)).var((2, 3)),
    lambda x: np.abs(np.lib.stride_tricks.sliding_window_view(x, (5, 5)) - 1.0).max((2, 3)),
    lambda x: np.repeat(np.repeat(x, 4, 0), 4, 1).sum(),
])
def test_what_would_be_many_times_as_large_is_not_stored(function: Callable[[Any], Any]) -> None:
    """Windows lie beside each other along an axis that is not summed over, anyway."""
    x = np.random.default_rng(0).normal(size=(60, 70)).astype(np.float32)
    plan = weft.compile(function).lower(x).stages.plan
    sizes = [param.type.size for kernel in plan.kernels.values() for param in kernel.params
             if param.mutable]
    assert max(sizes) <= x.size
    np.testing.assert_allclose(weft.compile(function)(x), function(x), rtol=1e-4, atol=1e-4)
