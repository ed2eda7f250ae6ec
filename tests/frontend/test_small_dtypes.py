"""Half types and integers of 8 and 16 bits as users meet them: promotion, state, feeds, files,
gradients, images."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import weft
from weft.ir.types import COMPUTED

BF16 = np.dtype(ml_dtypes.bfloat16)
SMALL = [dtype for dtype in COMPUTED if dtype.is_half or dtype.bits in (8, 16)]
HALVES = [dtype for dtype in SMALL if dtype.is_half]
small = pytest.mark.parametrize("dtype", [dtype.numpy for dtype in SMALL], ids=str)
halves = pytest.mark.parametrize("dtype", [dtype.numpy for dtype in HALVES], ids=str)


def same(got: Any, want: Any) -> None:
    np.testing.assert_array_equal(np.asarray(got), np.asarray(want), strict=True)


@pytest.mark.parametrize("other", ["u1", "i2", "i4", "f2", BF16, "f4"], ids=str)
@small
def test_promotion_is_numpys(dtype: np.dtype[Any], other: Any) -> None:
    x, y = np.arange(1, 5).astype(dtype), np.arange(1, 5).astype(other)

    def function(x: Any, y: Any) -> Any:
        return x + y, x * 2, x * 0.5, np.where(y > 2, x, y), x == y, x @ y

    try:
        wanted = function(x, y)
    except TypeError:
        with pytest.raises(weft.Error, match="W111"):
            weft.compile(function)(x, y)
        return
    for got, want in zip(weft.compile(function)(x, y), wanted, strict=True):
        same(got, want)


@small
def test_reductions_have_numpys_dtypes(dtype: np.dtype[Any]) -> None:
    def function(x: Any) -> Any:
        return (x.sum(), x.sum(0), x.prod(1), x.max(), x.min(0), x.mean(), np.cumsum(x, 1),
                x.argmax(1), np.sort(x, 0), np.argsort(x, 1), np.any(x), np.median(x))

    x = np.array([[3, 1, 2], [5, 4, 6]], dtype)
    for got, want in zip(weft.compile(function)(x), function(x), strict=True):
        same(got, want)


@small
def test_state_feeds_and_fetches(dtype: np.dtype[Any]) -> None:
    v = weft.Variable(np.ones(3, dtype))

    @weft.compile
    def step(x: Any, scale: Any) -> Any:
        v.assign(v + x)
        v.assign_add(x)
        return v * scale

    x = np.arange(3).astype(dtype)
    same(step(x, 2), np.array([2, 6, 10], dtype))
    same(np.asarray(v), np.array([1, 3, 5], dtype))
    graph = weft.Graph()
    with graph.as_default():
        fed = weft.placeholder(next(d.name for d in SMALL if d.numpy == dtype), (None,), name="x")
        doubled = fed + fed
    session = weft.Session(graph)
    for got in session.run([doubled, "x:0"], feed_dict={fed: x}):
        assert got.dtype == dtype


@small
def test_artifacts(dtype: np.dtype[Any], tmp_path: Path) -> None:
    w = np.arange(8).reshape(4, 2).astype(dtype)
    x = np.arange(12).reshape(3, 4).astype(dtype)

    def function(w: Any, x: Any) -> Any:
        return np.dot(x, w), x.T

    weft.export(function, w, x, path=tmp_path / "model")
    for got, want in zip(weft.load(tmp_path / "model")(w, x), function(w, x), strict=True):
        same(got, want)
    spelled = f"{dtype.name}_t" if dtype.kind in "iu" else "uint16_t"
    assert f"const {spelled} *x" in (tmp_path / "model" / "model.h").read_text()


@small
def test_writes(dtype: np.dtype[Any]) -> None:
    def function(x: Any, i: Any) -> Any:
        o = np.zeros(4, x.dtype)
        o[0], o[1:3] = x[0], x[2:4]
        o += x
        np.add.at(o, i, x[1])
        return o, o[i], x.view(f"u{x.dtype.itemsize}")

    x, i = np.array([3, 5, 7, 11], dtype), np.array([0, 0, 3])
    for got, want in zip(weft.compile(function, verify=True)(x, i), function(x, i), strict=True):
        same(got, want)


@small
def test_sizes_known_at_run_time(dtype: np.dtype[Any]) -> None:
    def function(x: Any) -> Any:
        return x * 3, x.sum(1), np.sort(x, 1), x.T

    run = weft.compile(function, dynamic={"x": {0: "b"}})
    for size in (0, 1, 2, 7, 100):
        x = (np.arange(size * 33) % 5).reshape(size, 33).astype(dtype)
        for got, want in zip(run(x), function(x), strict=True):
            same(got, want)


@halves
def test_gradients(dtype: np.dtype[Any]) -> None:
    """In the dtype of what they are of, near those of float32."""
    def loss(w: Any, x: Any, i: Any) -> Any:
        h = np.tanh(np.dot(x, w))
        return np.mean(h * h) + np.mean(np.take(w, i, axis=0)) + np.std(x)

    rng = np.random.default_rng(0)
    w, x, i = rng.normal(size=(6, 5)) / 3, rng.normal(size=(30, 6)), rng.integers(0, 6, 40)
    value, grads = weft.compile(weft.value_and_grad(loss, argnums=(0, 1)))(
        w.astype(dtype), x.astype(dtype), i)
    assert value.dtype == dtype
    for got, want in zip(grads, weft.grad(loss, argnums=(0, 1))(w, x, i), strict=True):
        assert got.dtype == dtype
        np.testing.assert_allclose(got.astype(np.float64), want, atol=0.02 * np.abs(want).max())


@halves
def test_a_mean_of_more_elements_than_a_half_counts(dtype: np.dtype[Any]) -> None:
    x = np.ones(100_000, dtype)
    value, slope = weft.compile(weft.value_and_grad(lambda x: np.mean(x * x)))(x)
    assert value == 1 and slope.dtype == dtype
    assert set(slope.astype(np.float32).tolist()) == {float(dtype.type(2e-5))}
    # Many gradients of one element are added in float32.
    i = np.zeros(5000, np.int64)
    (total,) = weft.compile(weft.grad(lambda w: np.sum(w[i])))(np.ones(1, dtype))
    assert total == dtype.type(5000)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("target", [None, "x86-64-v3"])
@halves
def test_bits_are_the_same_everywhere(
    dtype: np.dtype[Any], target: str | None, threads: int
) -> None:
    def function(x: Any) -> Any:
        scores = np.exp(x - np.max(x, 1, keepdims=True))
        return scores / np.sum(scores, 1, keepdims=True), x.sum(), np.dot(x, x.T), np.var(x, 0)

    x = np.random.default_rng(2).normal(size=(300, 257)).astype(dtype)
    wanted = weft.compile(function, opt=0)(x)
    for opt in (1, 2):
        run = weft.compile(function, opt=opt, target=target, threads=threads)
        for got, want in zip(run(x), wanted, strict=True):
            same(got.view(f"u{got.dtype.itemsize}"), want.view(f"u{want.dtype.itemsize}"))


def test_images_of_bytes() -> None:
    """Saturating sums by np.clip, gray, histograms, tables, thresholds: NumPy's, to the bit."""
    image = np.random.default_rng(3).integers(0, 256, (37, 53, 3)).astype(np.uint8)

    def function(image: Any) -> Any:
        brighter = np.clip(image.astype(np.int16) + 60, 0, 255).astype(np.uint8)
        weights = np.array([77, 150, 29], np.uint16)
        gray = ((image * weights).sum(-1) >> 8).astype(np.uint8)
        counts = np.bincount(gray.ravel(), minlength=256)
        table = (np.cumsum(counts) * 255 // gray.size).astype(np.uint8)
        return brighter, gray, counts, table[gray], 255 - image, (gray > 127) * np.uint8(255)

    for got, want in zip(weft.compile(function)(image), function(image), strict=True):
        same(got, want)


def test_averages_of_bytes_do_not_wrap_around() -> None:
    x, w = np.array([200, 100], np.uint8), np.array([3, 1], np.uint8)
    same(weft.compile(lambda x, w: np.average(x, weights=w))(x, w), np.average(x, weights=w))
    same(weft.compile(lambda x: np.select([x > 150], [x], -1))(x), np.array([200, 255], np.uint8))


def test_dtypes_without_a_common_one_are_an_error() -> None:
    x = np.ones(3, BF16)
    with pytest.raises(weft.Error, match="W111: bfloat16, float16 have no common dtype"):
        weft.compile(lambda x: np.where(x > 0, x, np.ones(3, np.float16)))(x)


@halves
def test_the_mean_of_two_is_rounded_once(dtype: np.dtype[Any]) -> None:
    """The sum of both may be beyond the dtype."""
    x = np.array([60000, 64000, 0.1, 0.3, 0.7], np.float16).astype(dtype)
    for rows in (x[:2], x[2:4], x[:4]):
        same(weft.compile(lambda x: np.median(x))(rows), np.median(rows))
        same(weft.compile(lambda x: np.mean(x))(rows), rows.astype(np.float32).mean().astype(dtype))


def test_clipped_bfloat16_is_numpys() -> None:
    x = np.array([-3, 0.5, 7], BF16)
    for function in (lambda x: np.clip(x, -1, 1), lambda x: np.clip(x, None, 1)):
        same(weft.compile(function)(x), function(x))


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_covariances_of_a_dtype_with_weights(dtype: Any) -> None:
    x, w = np.random.default_rng(3).normal(size=(2, 4)), np.array([1, 2, 1, 3], np.float16)
    for name in ("fweights", "aweights"):
        def function(x: Any, w: Any, name: str = name) -> Any:
            return np.cov(x, dtype=dtype, **{name: w})

        found, wanted = weft.compile(function)(x, w), function(x, w)
        assert found.dtype == wanted.dtype
        np.testing.assert_allclose(found, wanted, rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_next_numbers_and_their_gradient(dtype: Any) -> None:
    most, least = np.finfo(dtype).max, np.finfo(dtype).smallest_subnormal
    ends = np.array([0.0, -0.0, 1, -1, np.inf, -np.inf, np.nan, least, -least, most, -most], dtype)
    x, y = (np.ascontiguousarray(side) for side in np.broadcast_arrays(ends[:, None], ends))
    with np.errstate(all="ignore"):
        wanted = np.nextafter(x, y)
    found = weft.compile(np.nextafter)(x, y)
    np.testing.assert_array_equal(found, wanted)
    np.testing.assert_array_equal(np.signbit(found[wanted == 0]), np.signbit(wanted[wanted == 0]))
    slopes = weft.grad(lambda x, y: np.sum(np.nextafter(x, y)), argnums=(0, 1))(
        np.ones(2, dtype), np.array([1, 2], dtype))
    np.testing.assert_array_equal(slopes, [[1, 1], [0, 0]])


@halves
def test_sums_of_products_are_rounded_once(dtype: np.dtype[Any]) -> None:
    x = np.array([[1024, 1024, 1], [-1024, -1024, 0]], dtype)  # no half is 2049
    ones = np.ones(2, dtype)
    for subscripts, operands in (("ij,i->", (x, ones)), ("ij,i,i->", (x, ones, ones)),
                                 ("ij,jk,i->k", (x, np.ones((3, 1), dtype), ones))):
        got = weft.compile(lambda *given, text=subscripts: np.einsum(text, *given))(*operands)
        assert got == 1 and got.dtype == dtype
