"""Elements that a mask chooses: the statement in text, in the interpreter and natively, and the
programs of NumPy that take them out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from native_kernel import run_native

import weft
from weft.codegen.cpu.jit import cpu_target
from weft.codegen.schedule.cpu import tile
from weft.ir.diagnose import Error
from weft.ir.interp.kernel import run_kernel
from weft.ir.kernels.ordering import compressed
from weft.ir.text.parser import parse_kernel
from weft.ir.text.printer import print_kernel
from weft.ir.text.same import same_kernel
from weft.ir.verify.verifier import verify_kernel

RNG = np.random.default_rng(4)
TARGETS = [None, "x86-64-v3"]
TEXT = """
kernel @chosen(x: {dtype}[n], m: bool[n], y: mut {dtype}[k]) {{
  seq j in n by 1, seq t in k by 1 {{
    %0: {dtype} = x[-1*j + n - 1]
    %1: bool = m[j]
    compress y[t] = %0 over j where %1 over t
  }}
}}
"""


@pytest.mark.long
@pytest.mark.parametrize("dtype", ["f64", "f32", "i64", "u32"])
def test_kernels(dtype: str) -> None:
    """Of every length around that of a step, with room for fewer, as many and more."""
    kernel = parse_kernel(TEXT.format(dtype=dtype))
    verify_kernel(kernel)
    assert same_kernel(parse_kernel(print_kernel(kernel)), kernel)
    numpy = np.dtype(dtype.replace("f", "float").replace("i", "int").replace("u", "uint")[:-2]
                     + dtype[-2:])
    for n in (1, 7, 8, 9, 15, 16, 17, 31, 33, 500):
        for share in (0, 0.1, 0.5, 1):
            x, mask = (RNG.normal(size=n) * 50).astype(numpy), RNG.random(n) < share
            for size in {max(mask.sum() - 3, 0), mask.sum(), min(mask.sum() + 2, n)}:
                want = compressed(x[::-1], mask, size=int(size))
                for run, which, more in ((run_kernel, kernel, {}), *(
                        (run_native, tile(kernel, cpu_target(target)), {"cpu": target})
                        for target in TARGETS)):
                    room = np.full(size + 32, 77, numpy)
                    run(which, {"x": x, "m": mask, "y": room[16:16 + size]},
                        {"n": n, "k": int(size)}, **more)
                    assert room[16:16 + size].tobytes() == want.tobytes(), (n, share, size, more)
                    assert (room[:16] == 77).all() and (room[16 + size:] == 77).all()


@pytest.mark.parametrize(("old", "new", "message"), [
    ("seq t in k by 1", "par t in k by 1",
     "'j' or 't' is par, or another axis is not: tasks are rows"),
    ("m[j]", "m[t]", "%1 lies along 'j', it cannot depend on 't'"),
    ("y[t]", "y[j]", "'y' is not one row of 't' for each task"),
    ("y: mut f64[k]", "y: mut f64[n]", "'y' is not one row of 't' for each task"),
    ("%1: bool = m[j]", "%1: f64 = x[j]", "a mask of dtype f64"),
    ("where %1 ", "", "expected 'where'"),
])
def test_what_is_wrong_is_named(old: str, new: str, message: str) -> None:
    text = TEXT.format(dtype="f64")
    assert old in text
    with pytest.raises(Error) as problem:
        verify_kernel(parse_kernel(text.replace(old, new)))
    assert message in str(problem.value)


@pytest.mark.long
@pytest.mark.parametrize("dtype", [
    "f8", "f4", "f2", "i8", "i4", "i2", "u1", "u8", "?", "c8", "c16"])
def test_like_numpy(dtype: str) -> None:
    """Many elements are taken out by the program, as many as there are; few by NumPy."""
    for n in (5, 1000, 20_000):
        x = (RNG.normal(size=n) * 50).astype(dtype)
        for m in (RNG.random(n) < 0.3, np.zeros(n, bool), np.ones(n, bool)):
            functions: list[Any] = [
                lambda x, m: x[m], lambda x, m: np.compress(m, x), lambda x, m: np.nonzero(m),
                lambda x, m: x[m].reshape(-1, 1), lambda x, m: np.extract(m, x)]
            for function in functions:
                found = weft.compile(function, on_recompile="silent")(x, m)
                for one, other in zip(*(part if isinstance(part, tuple) else (part,) for part in (
                        found, function(x, m))), strict=True):
                    np.testing.assert_array_equal(one, other, strict=True)


def test_many_rows_and_masks_of_several_axes() -> None:
    x = RNG.normal(size=(200, 200))
    functions: list[Any] = [
        lambda x: x[x > 1], lambda x: x[x[:, 0] > 0], lambda x: np.argwhere(x > 1),
        lambda x: np.nonzero(x > 2), lambda x: np.unique(np.round(x, 1))]
    for function in functions:
        found, wanted = weft.compile(function)(x), function(x)
        for one, other in zip(*(part if isinstance(part, tuple) else (part,)
                                for part in (found, wanted)), strict=True):
            np.testing.assert_array_equal(one, other, strict=True)


def test_gradients_go_to_what_was_chosen() -> None:
    x = RNG.normal(size=50)
    squares = weft.grad(lambda x: (x[x > 0].reshape(-1, 1) ** 2).sum())
    np.testing.assert_allclose(squares(x), np.where(x > 0, 2 * x, 0))
    _, along = weft.jvp(lambda x: (x[x > 0].reshape(-1, 1) ** 2).sum(), (x,), (x,))
    np.testing.assert_allclose(along, (2 * x * x)[x > 0].sum())
    np.testing.assert_array_equal(squares(-np.abs(x)), np.zeros(50))
