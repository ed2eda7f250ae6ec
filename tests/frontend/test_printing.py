"""What compiled functions print: what Python prints, each time that they are called."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft

X = np.array([1.0, 2.0, 0.5])


def told(function: Callable[..., Any], *args: Any) -> str:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        function(*args)
    return out.getvalue()


def plain(x: Any) -> Any:
    print("start", x.shape, len(x))
    print()
    return x * 2


def formatted(x: Any) -> Any:
    y = x.sum()
    print(f"{y:.3f} {y:>8.2e}|{y} {y!r} {x[0]!s} {{}}", y, x, [y, 1], sep=", ", end=".\n")
    print("%.2f of %d%%, %s and %5s" % (y, len(x), x, "a"), "%(a)08.3f %(b)s" % {"a": y, "b": "c"})  # noqa: UP031
    print("{:6.2f} {n}".format(y, n=x.max()), str(y), 7 % 4, "%s" % "x")  # noqa: UP031, UP032
    print(x > 1, x.astype(int), int(y), float(y), bool(y > 2), x.reshape(1, 3), round(y, 1))
    return y


def chosen(x: Any) -> Any:
    print(x[x > 0.7], "of", x)
    return x


def branches(x: Any) -> Any:
    if x.sum() > 3:
        print("large", x.sum())
        y = x / 2
    elif x[0] < 0:
        print("negative")
        y = -x
    else:
        y = x
        print(f"{x[0]:.1f} is small")
    print("then", y)
    return y


def loops(x: Any) -> Any:
    n = 0
    while x.sum() > 0.5:
        x = x / 2
        n += 1
        if n % 2 == 0:
            print(f"round {n}: {x.sum():.4f}")
    for i in range(3):
        print("item", i, x[i], end="; ")
        if x[i] > 0.1:
            print("stop")
            break
    return x


def outer(x: Any) -> Any:
    def inner(y: Any) -> Any:
        print("inner", y)
        return y + 1

    print("before")
    z = inner(x)
    print("between")
    return inner(z)


@pytest.mark.parametrize("function", [plain, formatted, chosen, branches, loops, outer])
def test_as_python_prints(function: Callable[[Any], Any]) -> None:
    compiled = weft.compile(function)
    for x in (X, 3 * X, -X, X):
        assert told(compiled, x) == told(function, x)
        np.testing.assert_allclose(compiled(x), function(x))
    assert compiled.cache_info().specialisations == 1


def test_numbers_that_are_arguments_stay_traced() -> None:
    def stepped(x: Any, rate: float) -> Any:
        print(f"{rate:.2f} {rate}")
        return x * rate

    compiled = weft.compile(stepped)
    for rate in (0.5, 0.25):
        assert told(compiled, X, rate) == told(stepped, X, rate)
    assert compiled.cache_info().specialisations == 1


def test_under_transforms() -> None:
    def loss(x: Any) -> Any:
        y = np.sum(x ** 2)
        print(f"loss {y:.2f}")
        return y

    for gradient in (weft.grad(loss), weft.compile(weft.grad(loss))):
        assert told(gradient, X) == "loss 5.25\n"
        np.testing.assert_array_equal(gradient(X), 2 * X)

    def body(carry: Any, x: Any) -> Any:
        print("carry", carry)
        return carry + x, carry

    assert told(weft.compile(lambda x: weft.scan(body, 0.0, x)), X) == (
        "carry 0.0\ncarry 1.0\ncarry 3.0\n")
    each = weft.compile(lambda x: weft.vmap(loss)(x[:, None]))
    assert told(each, X) == "loss 1.00\nloss 4.00\nloss 0.25\n"
    np.testing.assert_array_equal(each(X), X ** 2)


def test_methods_and_files(tmp_path: Path) -> None:
    class Model:
        @weft.compile
        def step(self, x: Any) -> Any:
            print("max", x.max(), file=file)
            return x

    with (tmp_path / "log").open("w") as file:
        Model().step(X)
    assert (tmp_path / "log").read_text() == "max 2.0\n"


def test_a_name_of_the_users_is_no_print() -> None:
    lines: list[Any] = []

    def own(x: Any) -> Any:
        print = lines.append
        print("text")
        return x if x.sum() > 0 else -x

    assert told(weft.compile(own), X) == "" and set(lines) == {"text"}


def test_a_function_without_source_makes_no_texts() -> None:
    names: dict[str, Any] = {}
    exec("def f(x):\n    print('x is', x)\n    return x * 2\n"
         "def g(x):\n    print(f'x is {x}')\n    return x", names)
    for name, what in (("f", "its text"), ("g", "a formatted number")):
        with pytest.raises(TypeError, match=f"W201: .* {what} is not known(.|\n)*no source"):
            weft.compile(names[name])(X)


def test_rounds_print_their_own_numbers(capfd: pytest.CaptureFixture[str]) -> None:
    """Calls of the host whose functions have one name are no equal rounds."""
    def function(y: Any) -> Any:
        for i in range(30):
            print(i, y[0])
            y = np.sin(y) * 0.5 + np.cos(y * 0.3) * np.exp(-y * y) + 0.1 * y
        return y

    x = np.linspace(-1, 2, 40)
    weft.compile(function)(x)
    found = capfd.readouterr().out.splitlines()
    function(x)
    assert [line.split()[0] for line in found] == [
        line.split()[0] for line in capfd.readouterr().out.splitlines()]
