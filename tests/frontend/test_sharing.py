"""Names that share memory, around and in branches and loops that are decided at run time: NumPy's
results, or W203 where what is shared depends on the way that is taken."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
import with_source

import weft
from weft.ir.diagnose import Error

X = np.arange(6.0) ** 2


def views_before(x: Any, n: Any) -> Any:
    u = x * 1
    left, mid, right = u[:-2], u[1:-1], u[2:]
    for _ in range(n[0]):
        mid += 0.1 * (left - 2 * mid + right)
    return u, left


def read_in_the_loop(x: Any, n: Any) -> Any:
    u, s = x * 1, 0.0
    v = u[1:]
    for t in range(n[0]):
        u[t] = s + 1
        s = s + v.sum()
    return u, s


def read_in_the_branch(x: Any, n: Any) -> Any:
    u = x * 1
    v = u[1:]
    if n[0] > 1:
        u[2] = 100
        s = v.sum()
    else:
        s = v.sum() + 1
    return u, s


def two_buffers(x: Any, n: Any) -> Any:
    u, v, i = x * 1, x * 2, 0
    while i < n[0]:
        v[1:-1] = u[2:] + u[:-2]
        u, v = v, u
        i += 1
    u[0] = 100
    return u, v


def two_buffers_in_two_loops(x: Any, n: Any) -> Any:
    u, v = x * 1, x * 2
    for _ in range(n[0]):
        i = 0
        while i < n[0]:
            v[1:-1] = u[2:] - u[:-2]
            u, v = v, u
            i += 1
        u += 1
    return u, v


def left_early(x: Any, n: Any) -> Any:
    with np.errstate(all="ignore"):
        if n[0] > 2:
            y = np.sqrt(x)
            return y  # noqa: RET504 - two names of one array
    for k in range(3):
        x = x * 2
        if x[1] > 3:
            return x + k
    return x


@pytest.mark.parametrize("function", [
    views_before, read_in_the_loop, read_in_the_branch, two_buffers, two_buffers_in_two_loops,
    left_early])
def test_names_that_share_memory(function: Callable[..., Any]) -> None:
    compiled = weft.compile(function, verify=True)
    for count in (0, 1, 2, 3):
        n = np.array([count])
        for found, wanted in zip(compiled(X, n), function(X, n), strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-13)


def one_of_two(x: Any, n: Any) -> Any:
    w = x * 1
    u = w[1:5] if n[0] > 1 else w[:4] * 2
    w[1] = 7
    return u


def perhaps_never(x: Any, n: Any) -> Any:
    a = x * 1
    b, i = a, 0
    while i < n[0]:
        b = b * 2
        i += 1
    b[0] = -1
    return a


def with_the_last_round(x: Any, n: Any) -> Any:
    w = x * 1
    u, i = w[1:], 0
    while i < n[0]:
        w = w + 1
        u = w[1:]
        i += 1
    w[1] = 7
    return u


def with_a_round_before(x: Any, n: Any) -> Any:
    a, b, c = x * 1, x * 2, x * 3
    for _ in range(n[0]):
        a, b = b, a
        b[2] = a[0] + 2
        a = c
    return a, b, c


@pytest.mark.parametrize("function", [
    one_of_two, perhaps_never, with_the_last_round, with_a_round_before])
def test_what_is_shared_on_some_way_only(function: Callable[..., Any]) -> None:
    with pytest.raises(Error, match="W203") as caught:
        weft.compile(function)(X, np.array([2]))
    assert "copy" in (caught.value.hint or "")


def _block(rng: np.random.Generator, depth: int, indent: str, out: list[str]) -> None:
    for _ in range(rng.integers(1, 4)):
        a, b = rng.choice(list("abc"), 2)
        i, j = rng.integers(0, 4, 2)
        kind = rng.integers(0, 10 if depth else 7)
        if kind < 7:
            out.append(indent + (
                f"{a} = {b}", f"{a} = {b} + 1", f"{a} = {b}[::-1]", f"{a}[{i}] = {b}[{j}] + 2",
                f"{a} += {i}", f"{a}, {b} = {b}, {a}", f"{a}[1:] = {b}[:-1]")[kind])
            continue
        name = f"i{len(out)}"
        if kind == 8:
            out.append(f"{indent}{name} = 0")
        out.append(indent + (f"if {a}[0] > {b}[1]:", f"while {name} < n[0]:",
                             f"for {name} in range(n[0]):")[kind - 7])
        _block(rng, depth - 1, indent + "    ", out)
        if kind == 8:
            out.append(f"{indent}    {name} += 1")


@pytest.mark.long
def test_random_programs_of_names() -> None:
    """None is silently wrong, and most are not refused."""
    right = 0
    for seed in range(60):
        lines = ["def f(x, n):", "    a, b, c = x * 1, x * 2, x * 3"]
        _block(np.random.default_rng(seed), 2, "    ", lines)
        text = "\n".join([*lines, "    return a, b, c", ""])
        space = with_source.run(text, {})
        compiled = weft.compile(space["f"])
        for count in (0, 1, 3):
            x, n = np.array([3.0, -1.0, 4.0, 1.0]), np.array([count])
            try:
                found = compiled(x, n)
            except Error as problem:
                assert problem.code == "W203", text
                continue
            right += 1
            for one, two in zip(found, space["f"](x, n), strict=True):
                np.testing.assert_array_equal(one, two, err_msg=text)
    assert right > 120


VIEWS_OF_NUMBERS: Mapping[str, Callable[[Any], Any]] = {
    "ellipsis": lambda s: s[...], "none": lambda s: s[None], "reshape": lambda s: s.reshape(1),
    "asarray": lambda s: np.asarray(s), "asanyarray": lambda s: np.asanyarray(s),
    "ravel": lambda s: s.ravel(), "atleast_1d": lambda s: np.atleast_1d(s),
    "expand_dims": lambda s: np.expand_dims(s, 0), "view": lambda s: s.view(), "T": lambda s: s.T,
    "all": lambda s: s[()], "squeeze": lambda s: np.squeeze(s)}


@pytest.mark.parametrize("name", VIEWS_OF_NUMBERS)
@pytest.mark.parametrize("number", [lambda x: np.sum(x), lambda x: x[0], lambda x: x.any().copy()],
                         ids=("sum", "element", "copy"))
def test_arrays_made_of_numbers_are_no_views(name: str, number: Callable[[Any], Any]) -> None:
    def function(x: Any) -> Any:
        s = number(x)
        v = VIEWS_OF_NUMBERS[name](s)
        v += x.dtype.type(1) if s.dtype.kind == "f" else True
        return s, v, x

    x = np.arange(1.0, 4.0)
    for found, wanted in zip(weft.compile(function)(x), function(x.copy()), strict=True):
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("times", [1, 2, 3])
def test_an_array_without_dims_keeps_its_dtype(times: int) -> None:
    def function(x: Any) -> Any:
        v = np.zeros(x.shape, np.float16)
        v[...] = x * 2
        for _ in range(times):
            v += x
        return v

    for x in (np.float64(1.7140318952642821), np.array(1.7140318952642821)):
        found = weft.compile(function)(x)
        assert (found.dtype, found) == (np.float16, function(x))
