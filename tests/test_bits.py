"""The same bits, whatever the number of threads, the vector width, the run or the level.

Each program's results are hashed; one hash must come out of every way to run it. Reductions are
what could differ: their trees must not follow from the hardware's width or from who helps.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from machines import runs
from running import python

import weft
from weft.frontend.face import tree

Array = np.ndarray[Any, Any]
DTYPES = ("f4", "f8")


def numbers(*shape: int, dtype: str = "f4", seed: int = 1) -> Array:
    return np.asarray(np.random.default_rng(seed).normal(size=shape)).astype(dtype)


def elementwise(x: Any) -> Any:
    positive, inside = np.abs(x) + x.dtype.type(0.1), np.tanh(x) * x.dtype.type(0.99)
    return [np.exp(x), np.exp2(x), np.expm1(x), np.log(positive), np.log2(positive),
            np.log10(positive), np.log1p(positive), np.tanh(x), np.sinh(x), np.cosh(x), np.sin(x),
            np.cos(x), np.tan(x), np.arcsin(inside), np.arccos(inside), np.arctan(x),
            np.arctan2(x, positive), positive**x, np.sqrt(positive), weft.special.erf(x),
            weft.nn.sigmoid(x), weft.nn.gelu(x), x // positive, x % positive, 1 / x, x * x + x]


def special_values(x: Any) -> Any:
    """NaN, infinities, signed zeros and subnormal numbers: never flushed, never reordered."""
    finite = np.where(np.abs(x) <= np.finfo(x.dtype).max, x, 0)
    return [*elementwise(x)[:20], x * 0.5, x + x, np.maximum(x, x[::-1]), finite.min(axis=0),
            finite * x.dtype.type(0.25), x.max(), np.isnan(x), np.sign(finite)]


def reductions(x: Any) -> Any:
    return [x.sum(), x.sum(axis=0), x.sum(axis=1), x.max(axis=0), x.min(axis=1), x.mean(),
            x.std(axis=1), x.var(axis=0), (x * x).sum(), x.argmax(axis=0), x.argmin(axis=1),
            np.exp(x).sum(axis=0), (x - x.mean(axis=1, keepdims=True)).sum(axis=1)]


def reductions_of_three(x: Any) -> Any:
    return [x.sum(axis=(0, 2)), x.sum(axis=1), x.sum(axis=(1, 2)), x.sum(axis=(0, 1)),
            x.transpose(2, 0, 1).sum(axis=0), x[::2, ::-1].sum(axis=2)]


def softmax(x: Any) -> Any:
    return weft.nn.softmax(x), weft.nn.log_softmax(x, axis=0)


def layer_norm(x: Any, gain: Any, bias: Any) -> Any:
    return weft.nn.layer_norm(x, gain, bias)


def products(a: Any, b: Any) -> Any:
    """Rows and columns in every order of memory, with something before and after."""
    return [a @ b, np.tanh(a @ b + b[0]), (a * 2 + 1) @ b, b.T @ a.T, a.T.copy().T @ b, a @ a.T]


def batched(a: Any, b: Any) -> Any:
    return [a @ b, np.einsum("bik,bkj->bji", a, b), (a @ b).sum(axis=0), a @ b[0]]


def attention(q: Any, k: Any, v: Any) -> Any:
    return weft.nn.softmax(q @ k.transpose(0, 2, 1) * q.dtype.type(0.2)) @ v


def training_step(w1: Any, b1: Any, w2: Any, b2: Any, x: Any, labels: Any, lr: float) -> Any:
    def loss(params: Any) -> Any:
        w1, b1, w2, b2 = params
        h = np.maximum(x @ w1 + b1, 0)
        return weft.nn.cross_entropy(h @ w2 + b2, labels)

    params = (w1, b1, w2, b2)
    value, grads = weft.value_and_grad(loss)(params)
    return value, [p - lr * g for p, g in zip(params, grads, strict=True)]


def gather_scatter(x: Any, index: Any) -> Any:
    rows = x[index]
    return [rows, weft.nn.softmax(rows), x.at[index].add(rows * rows), x.at[index].set(rows * rows),
            rows.sum(axis=0),
            weft.grad(lambda x: np.sum(np.tanh(x[index]) ** 2))(x)]


def integers(x: Any, y: Any) -> Any:
    return [x + y, x * y, x // y, x % y, x.sum(axis=0), x.sum(axis=1), x.max(), x @ y.T,
            (x > y).sum(), x.astype(np.float32).sum()]


def drawn(seed: Any) -> Any:
    rng = weft.random.default_rng(7)
    return [rng.random((33, 5)), rng.normal(size=(1000,)), rng.integers(0, 10, (70,)) + seed]


LABELS = np.random.default_rng(2).integers(0, 10, 65)
CASES: list[tuple[str, Callable[..., Any], tuple[Any, ...]]] = []
for dtype in DTYPES:
    def n(*shape: int, seed: int = 1, dtype: str = dtype) -> Array:
        return numbers(*shape, dtype=dtype, seed=seed)

    tiny = np.finfo(dtype).smallest_subnormal
    odd = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, tiny, -7 * tiny, np.finfo(dtype).tiny / 3,
                    np.finfo(dtype).max, -np.finfo(dtype).max, 1e-30, 88.9, -104.5, 1e4, 0.5] * 5,
                   dtype)
    CASES += [
        (f"elementwise-{dtype}", elementwise, (n(1003) * 3,)),
        (f"special-{dtype}", special_values, (odd,)),
        (f"softmax-{dtype}", softmax, (n(7, 1001),)),
        (f"softmax-tall-{dtype}", softmax, (n(1000, 3),)),
        (f"softmax-long-{dtype}", softmax, (n(3, 40_000),)),
        (f"layer_norm-{dtype}", layer_norm, (n(13, 777), n(777), n(777))),
        *((f"reductions-{rows}x{columns}-{dtype}", reductions, (n(rows, columns) + 1,))
          for rows, columns in ((1, 1), (3, 5), (127, 129), (1001, 7), (1, 5000), (5000, 1),
                                (333, 4097))),
        (f"reductions-3d-{dtype}", reductions_of_three, (n(17, 19, 23),)),
        *((f"products-{m}x{k}x{c}-{dtype}", products, (n(m, k), n(k, c)))
          for m, k, c in ((1, 1, 1), (1, 300, 1), (7, 1, 5), (3, 1000, 3), (17, 129, 33),
                          (65, 777, 1), (200, 300, 100), (64, 2000, 48))),
        (f"batched-{dtype}", batched, (n(5, 37, 41), n(5, 41, 29))),
        (f"attention-{dtype}", attention, (n(4, 65, 32), n(4, 65, 32, seed=2), n(4, 65, 32))),
        (f"training-{dtype}", training_step, (n(784, 100), n(100), n(100, 10), n(10), n(65, 784),
                                              LABELS, 0.1)),
        (f"gather-{dtype}", gather_scatter, (n(50, 7), np.arange(330) * 7 % 50 - 25)),
    ]
CASES += [
    ("integers", integers, (np.arange(77 * 33).reshape(77, 33) - 999,
                            np.arange(77 * 33).reshape(77, 33) % 9 + 1)),
    ("random", drawn, (1,)),
]


def digest(result: Any) -> str:
    """A hash of dtypes, shapes and bits; NaN counts as one number, whatever its payload."""
    hashed = hashlib.sha256()
    for leaf in tree.leaves(result):
        array = np.asarray(leaf)
        if array.dtype.kind == "f":
            array = np.where(np.isnan(array), np.array(np.nan, array.dtype), array)
        hashed.update(f"{array.dtype}{array.shape}".encode())
        hashed.update(np.ascontiguousarray(array).tobytes())
    return hashed.hexdigest()


def targets() -> list[str]:
    """The x86 levels that this machine can run."""
    return [name for name in ("x86-64-v3", "x86-64-v4") if runs(name)]


WAYS: list[dict[str, Any]] = [
    {"threads": 1}, {"threads": 2}, {"threads": 4}, {"threads": 1, "opt": 1},
    *({"threads": 1, "target": name} for name in targets())]


@pytest.mark.parametrize("case", range(len(CASES)), ids=[name for name, _, _ in CASES])
def test_the_same_bits(case: int) -> None:
    name, function, args = CASES[case]
    hashes: dict[str, list[str]] = {}
    for way in WAYS:
        compiled = weft.compile(**way)(function)
        first = digest(compiled(*args))
        hashes.setdefault(first, []).append(f"{way}")
        if name != "random":  # whose generator moves on
            assert digest(compiled(*args)) == first, way
    assert len(hashes) == 1, hashes


# Dims of size 1 aside (their kernels are made for one row), a symbol is as good as a number.
SAME_SCHEDULE = [name for name, _, args in CASES if name not in ("random", "integers") and all(
    1 not in np.shape(arg) for arg in args)]


@pytest.mark.parametrize("name", SAME_SCHEDULE)
def test_symbolic_dims_have_the_same_bits(name: str) -> None:
    function, args = next((f, args) for label, f, args in CASES if label == name)
    names = function.__code__.co_varnames
    arrays = [(label, arg) for label, arg in zip(names, args, strict=False)
              if isinstance(arg, np.ndarray)]
    # The first dim of the first argument, and all others that are as long.
    size = arrays[0][1].shape[0]
    dynamic = {label: {axis: "b" for axis, dim in enumerate(array.shape) if dim == size}
               for label, array in arrays if size in array.shape}
    assert digest(weft.compile(dynamic=dynamic)(function)(*args)) == digest(
        weft.compile(function)(*args))


def test_other_work_beside_a_sum_does_not_change_it() -> None:
    """A sum over rows is walked along the rows, whatever else a kernel stores for each row."""
    x = numbers(333, 4097)
    alone = weft.compile(lambda x: x.sum(axis=1))(x)
    for more in (lambda x: x.max(axis=1), lambda x: x.var(axis=1), lambda x: np.exp(x)):
        beside = weft.compile(lambda x, more=more: (x.sum(axis=1), more(x)))(x)
        assert digest(beside[0]) == digest(alone)


PROGRAM = """
import sys
sys.path.insert(0, {folder!r})
import test_bits as bits
import weft
name, function, args = next(case for case in bits.CASES if case[0] == {name!r})
print(bits.digest(weft.compile(function)(*args)))
"""


@pytest.mark.long
@pytest.mark.parametrize("name", ["training-f4", "reductions-333x4097-f4"])
def test_another_process_and_another_environment(name: str) -> None:
    """Threads by OMP_NUM_THREADS, the ctypes path, another hash seed: the same bits."""
    program = PROGRAM.format(folder=os.path.dirname(__file__), name=name)
    found = set()
    for changed in ({"PYTHONHASHSEED": "1", "OMP_NUM_THREADS": "1"},
                    {"PYTHONHASHSEED": "2", "OMP_NUM_THREADS": "3", "WEFT_NATIVE_CALL": "0"}):
        run = python(program, **changed)
        assert run.returncode == 0, run.stderr
        found.add(run.stdout)
    _, function, args = next(case for case in CASES if case[0] == name)
    assert found == {digest(weft.compile(function)(*args)) + "\n"}


def test_subnormal_numbers_are_kept() -> None:
    tiny = np.finfo(np.float32).smallest_subnormal
    x = np.full(37, 3 * tiny, np.float32)
    half, total = weft.compile(lambda x: (x * np.float32(2), x.sum()))(x)
    assert (half == 6 * tiny).all() and total == np.float32(37 * 3 * float(tiny))
