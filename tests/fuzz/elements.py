"""Random loops over elements and numbers: rounds in parts and in vectors against rounds in turn.

    python -m fuzz.elements --first 0 --count 1000         run in tests/

Each program has a loop, as people write them, with numbers that go from round to round, terms,
branches, checks that may fail, and elements that are stored. It runs with several arguments, as it
is compiled and with each round as it is written (no ``trial_of``): the bits and the errors, with
their lines, are the same; and what Python computes is near.
"""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

import weft

from .chosen import ending, loaded, main

SIZES = (0, 1, 7, 256, 257, 700, 2100, 4500)
RANGES = ("len(x)", "n", "1, n", "1, len(x) - 1", "n - 1, -1, -1", "0, n, 3")
FLOATS = ("x[k]", "y[k]", "a", "0.5", "s", "r", "k * a", "float(k)", "1.5", "y[k] * x[k]")
INTEGERS = ("k", "i", "k * k", "i * 3 + k", "k // 2", "n - k", "int(x[k] * 20)", "7")
JOINED = ("({a} + {b})", "({a} - {b})", "({a} * {b})", "min({a}, {b})", "max({a}, {b})")
OF_ONE = ("math.sin({a})", "math.cos({a})", "abs({a})", "math.exp(-abs({a}))", "math.atan({a})",
          "math.sqrt(abs({a}))", "math.log(abs({a}) + 1.0)", "math.tanh({a})", "-{a}",
          "({a} / (1.0 + abs({b})))")
FAILING = ("math.sqrt({a} + 9.0)", "math.log({a} + 9.0)", "({a} / ({b} + 9.0))", "x[k + 1]",
           "y[k - 1]", "x[(k * 7) % len(x)]", "math.sin({a} * 1e12)",
           "math.fmod({a}, 0.7)", "x[min(abs(int({a} * 9)), len(x) - 1)]", "math.exp(a)")
DIVIDED = ("({a} * {b})", "(({a} + (1 << 31)) * {b} % 97)", "({a} % 5)",
           "({a} // 3)", "({a} % 7 - 3)", "({a} & 15)", "abs({a})", "({a} + {b})")
COMPARED = ("{a} > {b}", "{a} < {b}", "{i} % 3 == 0", "{i} > 40", "{a} > 0.3 and {b} < 0.9",
            "{i} % 2 == 1 or {a} > {b}", "not {a} > 0.0")


class _Program:
    """Writes one program."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.terms: list[str] = []

    def text(self) -> str:
        draw, lines = self.draw, list[str]()
        for _ in range(draw.randint(2, 6)):
            lines += self.statement(2)
        body = "\n".join("        " + line for line in lines)
        return ("import math\nimport numpy as np\n\n\ndef f(x, y, n, a):\n"
                "    s, r, i, c, out = 0.0, 1.0, 3, 0, np.zeros(len(x) + 1)\n"
                f"    for k in range({draw.choice(RANGES)}):\n{body}\n{self.other()}"
                "    return s, r, i, c, out\n")

    def other(self) -> str:
        """Another loop, which reads what it may of elements, or none."""
        if self.draw.random() < 0.6:
            return ""
        self.terms = []
        return (f"    for k in range({self.draw.choice(('n', '1, n', 'n + 5'))}):\n"
                f"        t0 = math.sin(a * k)\n        if k < len(x):\n"
                f"            t0 += math.cos({self.float(1)})\n        r = 0.5 * r + t0\n")

    def statement(self, depth: int) -> list[str]:
        draw, before = self.draw, list(self.terms)
        kind = draw.randrange(8 if depth else 7)
        if kind < 2:
            lines = [f"t{len(self.terms)} = {self.float(2)}"]
            self.terms.append(f"t{len(self.terms)}")
        elif kind == 2:
            lines = [draw.choice((f"s += {self.float(2)}", f"s -= {self.float(2)}",
                                  f"s = 0.5 * s + {self.float(1)}",
                                  f"s = max(s, {self.float(1)})"))]
        elif kind == 3:
            lines = [draw.choice((f"r = 0.3 * r + {self.float(1)}", f"r += {self.float(2)}",
                                  f"r = {self.float(1)}"))]
        elif kind == 4:
            lines = [draw.choice((f"i = ({self.integer(1)}) % 1000", f"c += {self.integer(1)} % 9",
                                  "c += 1", f"i = (i * 16807 + {self.integer(0)}) % 2147483647"))]
        elif kind < 7:
            place = draw.choice(("k", "k", "k + 1", f"({self.integer(1)}) % len(out)"))
            lines = [draw.choice((f"out[{place}] = {self.float(1)}", f"out[{place}] += a",
                                  f"out[{place}] += {self.float(1)}", f"out[{place}] = {place}",
                                  f"np.add.at(out, {place}, {self.float(1)})"))]
        else:
            lines = [f"if {self.condition()}:", *self.indented(depth)]
            self.terms = list(before)
            if draw.random() < 0.5:
                lines += ["else:", *self.indented(depth)]
            self.terms = before
        return lines

    def indented(self, depth: int) -> list[str]:
        return ["    " + line for _ in range(self.draw.randint(1, 2))
                for line in self.statement(depth - 1)]

    def float(self, depth: int) -> str:
        draw = self.draw
        if depth == 0:
            return draw.choice((*FLOATS, *self.terms * 2))
        form = draw.choice((*JOINED, *OF_ONE, *OF_ONE, *FAILING[:2 if draw.random() < 0.8 else 9]))
        return form.format(a=self.float(depth - 1), b=self.float(0))

    def integer(self, depth: int) -> str:
        if depth == 0:
            return self.draw.choice(INTEGERS)
        return self.draw.choice(DIVIDED).format(a=self.integer(0), b=self.integer(0))

    def condition(self) -> str:
        return self.draw.choice(COMPARED).format(
            a=self.float(1), b=self.float(0), i=self.draw.choice(("k", "i", "c")))


def drawn(seed: int) -> str:
    return _Program(seed).text()


def check(seed: int, folder: Path) -> str:
    """ok, refused with an error, or what is wrong."""
    function = loaded(seed, folder, drawn(seed))["f"]
    named = {"x": {0: "m"}, "y": {0: "m"}} if seed % 2 else None
    compiled, plain = (weft.compile(function, dynamic=named) for _ in range(2))
    draw = np.random.default_rng(seed)
    refused = ""
    for size in SIZES:
        x, y, a = draw.normal(size=size), draw.random(size), float(draw.normal())
        n = max(0, size - int(draw.integers(0, 3)) + int(draw.random() < 0.1))
        found = _run(compiled, x, y, n, a)
        with patch("weft.codegen.cpu.steps.fused.trial_of", lambda *_: None):
            in_turn = _run(plain, x, y, n, a)
        if not _same(found, in_turn):
            return f"size {size}: {found!r}\nin turn {in_turn!r}"
        want = _run(function, x, y, n, a)
        if isinstance(found, str) != isinstance(want, str):
            refused = refused or f"refused {str(found)[:4]}, Python {str(want)[:20]}"
    return refused or "ok"


def _run(function: Callable[..., Any], *args: Any) -> Any:
    """What a function gives, or what it raises and where."""
    try:
        with ending(), np.errstate(all="ignore"):
            return function(*args)
    except Exception as problem:
        return str(problem) or type(problem).__name__


def _same(found: Any, other: Any) -> bool:
    if isinstance(found, str) or isinstance(other, str):
        return bool(isinstance(found, str) and found == other)
    return all(np.asarray(one).tobytes() == np.asarray(two).tobytes()
               for one, two in zip(found, other, strict=True))


if __name__ == "__main__":
    os.environ["WEFT_CACHE"] = "0"  # where one of both programs would be found as the other
    sys.exit(main("python -m fuzz.elements", check, drawn))
