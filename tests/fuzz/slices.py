"""Random programs of loops whose slices go by the numbers of rounds.

    python -m fuzz.slices --first 0 --count 1000         run in tests/

A program has a vector x of n numbers, a matrix a of n x n and a count k. Its loops, one in another
at most, read and write parts of them and of y and b, which are made of them, and a number s. Ends
of slices are sums of numbers of rounds, sizes and k, clamped or not. Every other program is of
named sizes; the slopes of those that are smooth are compared with differences.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path
from typing import Any

import numpy as np

import weft

from .chosen import compared, ending, loaded, main, of_all
from .nested.loops import soon

_STEP, _SLOPES, _STEEP = 1e-6, 2e-4, 1e3

RANGES = ("range(n)", "range(1, n)", "range(2, n, 2)", "range(n - 1, -1, -1)", "range(n - 1)",
          "range(0, n, 3)", "range(n // 2)", "range(n - 2, 0, -1)", "range(k)", "range(3, 3)")
INNER = ("range({i})", "range({i} + 1)", "range({i}, n)", "range({i} + 1, n)", "range(0, {i}, 2)",
         "range(n - {i})", "range({i} - 1, -1, -1)", "range(min({i}, 3))", "range({i} // 2)")
ENDS = (*["{i}"] * 4, "{i} + 1", "{i} + 1", "{i} - 2", "n - {i}", "2 * {i}", "{i} // 2", "-{i}",
        "-{i} - 1", "max({i} - 2, 0)", "min({i} + 3, n)", "{i} + 4", "", "", "", "3", "-2", "k",
        "{i} + k", "n - 1", "{i} - n", "{i} % 3")
VECTORS = ("x", "y", "x[::-1]", "y * 2", "a[{j}]", "a[:, {j}]", "b[{j}]", "np.tanh(x)", "b[:, 0]")
SUMS = (*["{v}[{p}:{q}].sum()"] * 3, "{v}[{p}:{q}] @ {w}[{p}:{q}]", "np.sum({v}[{p}:{q}] ** 2)",
        "np.dot({v}[:{i}], {w}[:{i}])", "a[{p}:{q}, {i}:].sum()", "np.prod(0.5 + 0 * {v}[{p}:{q}])",
        "(a[:{i}, :{i}] @ {v}[:{i}]).sum()", "np.cumsum({v}[{p}:{q}]).sum()", "x[{i}]", "y[{j}]",
        "np.sum({v}[{p}:{q}][::-1] * {w}[{p}:{q}])", "np.outer({v}[{p}:{q}], x[:2]).sum()",
        "np.concatenate([{v}[{p}:{q}], {w}[:{i}]]).sum()", "np.sum(np.zeros({i}) + {v}[:{i}])")
KINKS = ("{v}[{p}:{q}].max(initial=-1)", "np.sort({v}[{p}:{q}])[:2].sum()", "{v}[{p}:{q}].size",
         "np.abs({v}[{p}:{q}]).sum()", "np.argmax(np.append({v}[{p}:{q}], 9))",
         "({v}[{p}:{q}] > 0).sum()", "len({v}[{p}:{q}])")
WRITES = ("s = s * 0.5 + np.tanh({e})", "y[{p}:{q}] {t} np.tanh({e})", "y[{i}] {t} np.tanh({e})",
          "y[{p}:{q}] {t} {v}[{p}:{q}]", "b[{i}, {p}:{q}] {t} {v}[{p}:{q}]",
          "b[{p}:{q}, {j}] {t} np.tanh({v}[{p}:{q}])", "y[{p}:{q}] = y[{p}:{q}][::-1]",
          "b[{p}:{q}, :{i}] *= 0.5", "y[:{i}] {t} np.flip(x[:{i}])", "b[{i}] = a[{j}] * s",
          "x[{p}:{q}] *= 0.9", "b[{p}:{q}] {t} x", "s {t} 0.5 * np.tanh({e})",
          "y = np.tanh(y + {v})", "b[{j}, {i}] {t} np.tanh({e})", "y[{p}:{q}:2] *= 0.5")
TESTS = ("{i} % 2 == 0", "{i} > 2", "s > 0.2", "{i} == 3", "x[{i}] > 0", "{i} < n - 2")


def drawn(seed: int) -> str:
    """The text of a program."""
    rng = random.Random(seed)
    smooth = rng.random() < 0.5
    lines = ["import numpy as np", "", "", "def f(x, a, k):",
             "    x, y, b, s, n = x * 1, x * 0.5, a * 0.5, 0.1, len(x)"]

    def line(numbers: list[str]) -> str:
        i, j = rng.choice(numbers), rng.choice(numbers)

        def filled(text: str) -> str:
            vectors = [rng.choice(VECTORS).format(j=j) for _ in range(2)]
            return text.format(
                i=i, j=j, t=rng.choice(("=", "+=", "-=") if rng.random() < 0.8 else ("*=",)),
                p=rng.choice(ENDS).format(i=rng.choice(numbers)),
                q=rng.choice(ENDS).format(i=rng.choice(numbers)),
                **{name: f"({text})" if " " in text else text
                   for name, text in zip("vw", vectors, strict=True)}, e="{e}")

        sums = SUMS if smooth or rng.random() < 0.6 else KINKS
        return filled(rng.choice(WRITES)).replace("{e}", filled(rng.choice(sums)))

    def block(numbers: list[str], indent: str) -> None:
        for _ in range(rng.randint(1, 3)):
            chance = rng.random()
            if chance < 0.25 and len(numbers) == 1:
                inner = rng.choice(INNER).format(i=numbers[0])
                lines.append(f"{indent}for j in {inner}:")
                block([*numbers, "j"], indent + "    ")
            elif chance < 0.4 and not smooth:
                test = rng.choice(TESTS).format(i=rng.choice(numbers))
                lines.append(f"{indent}if {test}:")
                lines.append(f"{indent}    " + (line(numbers) if rng.random() < 0.7 else
                                                rng.choice(("break", "continue"))))
            else:
                lines.append(indent + line(numbers))

    for _ in range(rng.randint(1, 2)):
        lines.append(f"    for i in {rng.choice(RANGES)}:")
        block(["i"], "        ")
    return "\n".join([*lines, "    return y, b, s, x", "", "", f"SMOOTH = {smooth}", "", "",
                      "def total(x, a, k):",
                      "    return sum(np.sum(np.sin(each)) for each in f(x, a, k))", ""])


def arguments(seed: int) -> list[tuple[Any, ...]]:
    """Two sets of one size, and two of others."""
    rng = np.random.default_rng(seed)
    return [(rng.normal(size=n), rng.normal(size=(n, n)), k)
            for n, k in ((9, 4), (9, 7), (5, 2), (12, 0))]


def check(seed: int, folder: Path) -> str:
    """ok, refused with an error, or what is wrong."""
    scope = loaded(seed, folder, drawn(seed))
    named = {"x": {0: "n"}, "a": {0: "n", 1: "n"}} if seed % 2 else None
    compiled = weft.compile(scope["f"], dynamic=named, on_recompile="silent")
    calls = [compared(scope["f"], compiled, args, np.shape) for args in arguments(seed)]
    verdict = of_all(calls)
    smooth = scope["SMOOTH"] and verdict == calls[0] == "ok"
    return _slopes(scope, arguments(seed)[0]) if smooth else verdict


def _slopes(scope: dict[str, Any], args: tuple[Any, ...]) -> str:
    x, a, k = args
    rng = np.random.default_rng(len(x))
    dx, da = rng.normal(size=x.shape), rng.normal(size=a.shape)
    total = scope["total"]
    try:
        with ending():
            of_x, of_a = weft.compile(weft.grad(total, argnums=(0, 1)))(x, a, k)
            moved = weft.compile(lambda x, a: weft.jvp(
                lambda x, a: total(x, a, k), (x, a), (dx, da))[1])(x, a)
    except weft.Error as problem:
        return f"refused {problem.code} in a gradient"
    except Exception as problem:
        return f"gradient: {type(problem).__name__} {problem}"
    slope = np.sum(of_x * dx) + np.sum(of_a * da)
    ahead, back = (total(x + h * dx, a + h * da, k) for h in (_STEP, -_STEP))
    want = (ahead - back) / (2 * _STEP)
    far = abs(moved) > _STEEP  # where differences tell nothing
    if not np.isclose(slope, moved, _SLOPES, _SLOPES) or not (
            far or np.isclose(slope, want, 10 * _SLOPES, 10 * _SLOPES)):
        return f"gradient: {slope} in reverse, {moved} forward, differences give {want}"
    return "ok"


if __name__ == "__main__":
    soon()
    sys.exit(main("python -m fuzz.slices", check, drawn))
