"""Random programs of nested control flow, as texts of a function ``f(a, b, n, x)``.

``python -m support.random_control FIRST LAST``, run in tests/, compares that many with Python;
with ``gradients`` (compiled) or ``interpreted`` behind it their gradients, and those of gradients,
with finite differences.
"""

from __future__ import annotations

import itertools
import linecache
import random
import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import weft
from weft.frontend.compile.eager import interpret
from weft.frontend.transforms.reverse import grad


def program(seed: int, bounded: bool = False) -> str:
    """The text of one program; in ``bounded`` ones every loop has a bound that is known."""
    made = _Programs(seed, bounded)
    return "\n".join(["def f(a, b, n, x):", "    c = 0.25 * a", "    k = 0.0",
                      "    v = np.zeros(3)", *made.block("    ", False, 0),
                      *made.block("    ", False, 0),
                      "    return a * 1.0, b * 1.0, c * 1.0, v"]) + "\n"


class _Programs:
    def __init__(self, seed: int, bounded: bool) -> None:
        self.rng, self.bounded = random.Random(seed), bounded
        self.count, self.budget = 0, self.rng.randint(4, 16)

    def variable(self) -> str:
        return self.rng.choice("abc")

    def expression(self, depth: int = 0) -> str:
        kind, inner = self.rng.random(), depth + 1
        if depth > 2 or kind < 0.35:
            return self.rng.choice(["a", "b", "c", "a", "b", "c", "1.0", "0.5", "2.0", "k"])
        if kind < 0.75:
            sign = self.rng.choice("+-*")
            return f"({self.expression(inner)} {sign} {self.expression(inner)})"
        if kind < 0.82:
            return f"max({self.expression(inner)}, {self.expression(inner)})"
        if kind < 0.88:
            return f"abs({self.expression(inner)})"
        if kind < 0.94:
            return (f"({self.expression(inner)} if {self.test(inner)} else "
                    f"{self.expression(inner)})")
        return f"np.tanh({self.expression(inner)})"

    def test(self, depth: int = 0) -> str:
        kind, inner = self.rng.random(), depth + 1
        if depth > 2 or kind < 0.6:
            sign = self.rng.choice(["<", ">", "<=", "!="])
            return f"{self.expression(inner)} {sign} {self.expression(inner)}"
        if kind < 0.7:
            return f"not ({self.test(inner)})"
        if kind < 0.8:
            return f"-1.0 < {self.expression(inner)} < {self.expression(inner)}"
        return f"({self.test(inner)} {self.rng.choice(['and', 'or'])} {self.test(inner)})"

    def block(self, indent: str, loop: bool, depth: int) -> list[str]:
        made: list[str] = []
        for _ in range(self.rng.randint(1, 3)):
            self.budget -= 1
            if self.budget < 0:
                break
            made += self.statement(indent, loop, depth)
        return made or [f"{indent}{self.variable()} = np.tanh({self.expression()})"]

    def statement(self, indent: str, loop: bool, depth: int) -> list[str]:
        kind = self.rng.random()
        self.count += 1
        if depth > 3 or kind < 0.4:
            return [indent + self.assignment()]
        if kind < 0.62:
            return self.branch(indent, loop, depth)
        if kind < 0.82:
            return self.loop(indent, loop, depth, kind < 0.72)
        if kind < 0.9 and loop:
            return [f"{indent}if {self.test()}:",
                    f"{indent}    {self.rng.choice(['break', 'continue'])}"]
        if kind < 0.95:
            return [f"{indent}if {self.test()}:",
                    f"{indent}    return ({self.expression()}) * 1.0, b * 1.0, c * 1.0, v"]
        return [f"{indent}{self.variable()} = np.tanh({self.expression()})"]

    def assignment(self) -> str:
        if self.rng.random() < 0.2:
            sign = self.rng.choice(["=", "+="])
            return f"v[{self.rng.randrange(3)}] {sign} {self.expression()}"
        if self.rng.random() < 0.1:
            return f"v = v * np.tanh({self.expression()})"
        return f"{self.variable()} {self.rng.choice(['=', '=', '+='])} np.tanh({self.expression()})"

    def branch(self, indent: str, loop: bool, depth: int) -> list[str]:
        inner = indent + "    "
        made = [f"{indent}if {self.test()}:", *self.block(inner, loop, depth + 1)]
        if self.rng.random() < 0.3:
            made += [f"{indent}elif {self.test()}:", *self.block(inner, loop, depth + 1)]
        if self.rng.random() < 0.6:
            made += [f"{indent}else:", *self.block(inner, loop, depth + 1)]
        return made

    def loop(self, indent: str, loop: bool, depth: int, counted: bool) -> list[str]:
        inner = indent + "    "
        if self.bounded:
            return [f"{indent}for k in {self.rng.choice(['range(3)', 'range(1, 5)', 'x'])}:",
                    *([f"{inner}if {self.test()}:", f"{inner}    break"] if not counted else []),
                    *self.block(inner, True, depth + 1)]
        if not counted:
            name = f"w{self.count}"
            return [f"{indent}{name} = 0", f"{indent}while {name} < 4 and {self.test()}:",
                    f"{inner}{name} += 1", *self.block(inner, True, depth + 1)]
        items = self.rng.choice(["range(n)", "range(3)", "range(1, n + 2)", "x"])
        made = [f"{indent}for k in {items}:", *self.block(inner, True, depth + 1)]
        if self.rng.random() < 0.2:
            made += [f"{indent}else:", *self.block(inner, loop, depth + 1)]
        return made


def function_of(seed: int, bounded: bool = False) -> Any:
    """The function of one program, whose source is found by its lines."""
    text, name = program(seed, bounded), f"<random control flow {seed}{' bounded' * bounded}>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    space: dict[str, Any] = {"np": np}
    exec(compile(text, name, "exec"), space)
    return space["f"]


def compare(seed: int) -> None:
    """Run one program; raises AssertionError where compiled code differs from Python."""
    function, rng = function_of(seed), np.random.default_rng(seed)
    compiled = weft.compile(function)
    for _ in range(3):
        args = (float(rng.normal()), float(rng.normal()), int(rng.integers(0, 4)),
                rng.normal(size=3))
        for a, b in zip(function(*args), compiled(*args), strict=True):
            np.testing.assert_allclose(b, a, rtol=1e-6, atol=1e-9)


_STEP = 1e-6


def compare_gradients(seed: int, run: Callable[..., Any] = weft.compile) -> None:
    """Differentiate one program, every second one twice, too; raises AssertionError where that
    differs from differences along a line. At kinks and jumps those tell nothing. ``run`` says how
    a function is run: compiled, or (``interpreted``) by the interpreter."""
    function, rng = function_of(seed, bounded=True), np.random.default_rng(seed)
    weights = rng.normal(size=6)

    def loss(a: Any, b: Any, x: Any) -> Any:
        a, b, c, v = function(a, b, 2, x)  # which is not compiled where differences are taken
        return weights[0] * a + weights[1] * b + weights[2] * c + (weights[3:] * v).sum()

    once = run(grad(loss, argnums=(0, 1, 2)))
    twice = run(grad(lambda a, b, x: _along(
        grad(loss, argnums=(0, 1, 2))(a, b, x), weights), argnums=(0, 1, 2)))
    for _ in range(2):  # numbers of NumPy, of one kind: one program each
        args = (*rng.normal(size=2), rng.normal(size=3))
        line = rng.normal(size=5)
        steps = [tuple(x + at * _STEP * d for x, d in zip(
            args, (line[0], line[1], line[2:]), strict=True)) for at in (-2, -1, 0, 1, 2)]
        _check(_along(once(*args), line), [loss(*each) for each in steps])
        if seed % 2 == 0:
            _check(_along(twice(*args), line), [
                _along(once(*each), weights) for each in steps])


def interpreted(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, traced once for all arguments of the types of the first ones."""
    traced: list[Any] = []

    def call(*args: Any) -> Any:
        if not traced:
            traced.append(weft.compile(function).trace(*args))
        return interpret(traced[0], weft.tree.leaves(args))

    return call


def _along(gradients: Any, line: Any) -> Any:
    a, b, x = gradients
    return line[0] * a + line[1] * b + (line[2:5] * x).sum()


def _check(found: Any, values: Any) -> None:
    slopes = [(b - a) / _STEP for a, b in itertools.pairwise(values)]
    near = (slopes[1] + slopes[2]) / 2
    size = 1e-4 * (1 + abs(near) + max(map(abs, values)))
    if max(slopes) - min(slopes) < size:
        assert abs(found - near) < 10 * size, (found, near)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    first, last = map(int, sys.argv[1:3])
    one = {"gradients": compare_gradients, "interpreted": lambda seed: compare_gradients(
        seed, interpreted)}.get((sys.argv[3:] or [""])[0], compare)
    found = 0
    for number in range(first, last):
        try:
            one(number)
        except Exception as problem:  # each is a finding
            found += 1
            print(number, type(problem).__name__, str(problem)[:300])
    print(f"{last - first} programs, {found} findings")
