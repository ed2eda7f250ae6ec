"""Arrays of as many dims as NumPy has: more than there are letters of the Latin alphabet."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft
from weft.ir.letters import LETTERS
from weft.ir.text.parser import parse_graph
from weft.ir.text.printer import print_graph


def spread(dims: int) -> Any:
    """2 in some of the dims, 1 in the others."""
    shape = [1] * dims
    for at in range(9):
        shape[at * 7 % dims] = 2
    return np.arange(512.0).reshape(shape)


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "x + 1": lambda x: x + 1,
    "tanh": lambda x: np.tanh(x) * x,
    "sum": lambda x: np.sum(x),
    "sum of axes": lambda x: np.sum(x, axis=(0, 3, -1), keepdims=True) + x,
    "transpose": lambda x: x.T + x.T * 2,
    "matmul": lambda x: np.matmul(x, x.swapaxes(-1, -2)),
    "tensordot": lambda x: np.tensordot(x, np.ones((x.shape[0], 3)), axes=((0,), (0,))),
    "einsum": lambda x: np.einsum("...a->...", x),
    "cumsum": lambda x: np.cumsum(x, axis=0),
    "reshape": lambda x: x.reshape(-1)[::-1].reshape(x.shape),
    "flip": lambda x: np.flip(x),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("dims", [26, 37, 52, 53, 60, 63, 64])
def test_arrays_of_many_dims(dims: int, name: str) -> None:
    function, x = FUNCTIONS[name], spread(dims)
    lowered = weft.compile(function).lower(x)
    got, wanted = lowered.compile()(x), function(x)
    assert got.shape == wanted.shape and got.dtype == wanted.dtype
    np.testing.assert_allclose(got.ravel(), wanted.ravel())
    for stage in ("trace", "fused"):
        text = lowered.as_text(stage)
        assert print_graph(parse_graph(text)) == text


def test_an_empty_array_of_sixty_dims() -> None:
    x = np.zeros((0,) + (2,) * 59)
    for name in ("x + 1", "tanh", "transpose", "reshape", "flip"):
        got = weft.compile(FUNCTIONS[name])(x)
        assert got.shape == FUNCTIONS[name](x).shape
    assert weft.compile(FUNCTIONS["sum"])(x) == 0


def test_a_gradient_of_sixty_dims() -> None:
    x = spread(60)
    got = weft.grad(lambda x: np.sum(x * x))(x)
    np.testing.assert_array_equal(got.ravel(), 2 * x.ravel())


def test_letters_are_letters() -> None:
    assert len(set(LETTERS)) == len(LETTERS) > 1000
    assert LETTERS.isalpha() and LETTERS.startswith("abc")


def test_scans_of_nothing_take_no_time() -> None:
    """Of rows without elements there may be more than anything could walk over."""
    x = np.zeros((2,) * 30 + (1,) * 4 + (2,) * 29 + (0,))
    for function in (lambda x: np.cumsum(x, -1), lambda x: np.cumprod(x, 0),
                     lambda x: np.maximum.accumulate(x, axis=3)):
        assert weft.compile(function)(x).shape == x.shape


@pytest.mark.parametrize("grow", [
    lambda x: x[None], lambda x: np.expand_dims(x, 3), lambda x: np.stack([x, x]),
    lambda x: np.multiply.outer(x, np.ones(2)), lambda x: x[..., None, None] * 2,
    lambda x: x[np.zeros((2, 2), int)], lambda x: x.reshape((2, *[1] * 60, 4, 4, 4, 4)),
    lambda x: np.broadcast_to(x, (3, *x.shape)), lambda x: weft.vmap(lambda b: x + b)(np.ones(2)),
])
def test_more_dims_than_arrays_have(grow: Callable[[Any], Any]) -> None:
    """An error at the line of the user; inside of a program there may be more."""
    x = spread(64)
    line = grow.__code__.co_firstlineno
    with pytest.raises(weft.Error, match=r"W102: .* 6[56] dims, and arrays have at most") as failed:
        weft.compile(grow)(x)
    assert isinstance(failed.value, ValueError) and failed.value.locs[0].line >= line
    found = weft.compile(lambda x: grow(x).reshape(-1))(x)  # the fix
    assert set(found.tolist()) <= {*x.ravel(), *(x + 1).ravel(), *(2 * x).ravel()}
    assert found.size in (x.size, 2 * x.size, 3 * x.size, 4 * x.size)


def test_arguments_of_more_dims_than_arrays_have() -> None:
    spec = weft.Spec("f64", (1,) * 65)
    with pytest.raises(weft.Error, match="W102: x:0 has 65 dims"):
        weft.compile(lambda x: x.sum()).lower(spec).compile()
