"""Many small functions, each another, as the text of a module; and the module's command.

    text(100, seed)                 functions of all kinds in turn, with numbers drawn from the seed
    python functions.py 7 20        what the text does when it is run: calls the first 20 functions,
                                    in order 7, compares with NumPy, and says whether the engine was
                                    loaded: "ready" or "traced"

``text`` needs neither NumPy nor Weft; who runs the module imports nothing else of the tests.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

HEAD = '''"""Functions that are called by many processes at once."""

import copy
import random
import sys

import numpy as np
import weft

CASES = []
BIAS = np.array([0.5, -1.5, 2.0])


def helper(x, k):
    return np.maximum(x, -k) * 0.5 + k


def told(nest):
    """The arrays of a nest, in order."""
    if isinstance(nest, dict):
        return [each for key in sorted(nest) for each in told(nest[key])]
    if isinstance(nest, (list, tuple)):
        return [each for part in nest for each in told(part)]
    return [np.asarray(nest)]


def compare(name, ours, wanted, exact):
    for a, b in zip(told(ours), told(wanted), strict=True):
        if a.dtype != b.dtype or a.shape != b.shape:
            sys.exit(f"{name}: {a.dtype}{a.shape}, not {b.dtype}{b.shape}")
        limit = 1e-5 if a.dtype == np.float32 else 1e-11
        if not (np.allclose(a, b, limit, limit, equal_nan=True) if not exact and a.dtype.kind == "f"
                else a.tobytes() == b.tobytes() if a.dtype.kind == "f" else np.array_equal(a, b)):
            sys.exit(f"{name}: {a!r}, not {b!r}")
'''
TAIL = '''

def main(order, count):
    rng = random.Random(order)
    cases = CASES[:count]
    rng.shuffle(cases)
    for name, ours, plain, args, exact in cases:
        for _ in range(2):
            given, kept = copy.deepcopy(args), copy.deepcopy(args)
            found, wanted = ours(*given), plain(*kept)
            compare(name, found, wanted, exact)
            compare(f"arguments of {name}", given, kept, exact)
    print("traced" if "weft.frontend.engine.programs" in sys.modules else "ready")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
'''


def text(count: int, seed: int) -> str:
    """The module with so many functions."""
    rng = random.Random(seed)
    return HEAD + "".join(KINDS[at % len(KINDS)](at, rng).text(at) for at in range(count)) + TAIL


@dataclass(frozen=True)
class Case:
    """A function: its parameters and lines, the text of its arguments, whether each step is exact,
    the options of ``weft.compile``, and what is there before it. ``plain`` are NumPy's lines, where
    these are others."""

    params: str
    lines: tuple[str, ...]
    args: str
    exact: bool = True
    options: str = ""
    before: str = ""
    plain: tuple[str, ...] = ()

    def text(self, at: int) -> str:
        """The text of function number ``at``: as NumPy runs it, compiled, and its case."""
        def function(name: str, lines: tuple[str, ...]) -> str:
            return "\n    ".join((f"def {name}_{at}({self.params}):", *lines))

        return "\n\n".join((
            f"\n\n# {at}\nrng = np.random.default_rng({at})\n{self.before}",
            function("plain", self.plain or self.lines),
            f"@weft.compile{self.options}\n{function('f', self.lines)}",
            f"CASES.append(('f_{at}', f_{at}, plain_{at}, ({self.args},), {self.exact}))\n"))


def _matrices(rng: random.Random, dtype: str = "") -> str:
    """Two arguments of one shape."""
    shape = rng.randint(2, 9), rng.randint(2, 9)
    made = f"rng.normal(size={shape}).astype('{dtype or rng.choice(('f8', 'f8', 'f4'))}')"
    return f"{made}, {made}"


def _number(rng: random.Random) -> float:
    return round(rng.uniform(-2, 2), 3)


def _expression(rng: random.Random, depth: int = 3) -> str:
    """One of x and y, of steps that are exact, or rounded in one way only."""
    if not depth or rng.random() < 0.2:
        return rng.choice(("x", "y", "x", "y", str(_number(rng))))
    a, b = _expression(rng, depth - 1), _expression(rng, depth - 1)
    return rng.choice((f"({a} + {b})", f"({a} - {b})", f"({a} * {b})", f"np.maximum({a}, {b})",
                       f"np.abs({a})", f"np.where(x > y, {a}, {b})", f"np.sqrt(np.abs({a}))"))


def _elements(at: int, rng: random.Random) -> Case:
    return Case("x, y", (f"return x + {_expression(rng)} * {_number(rng)}",), _matrices(rng))


def _transcendental(at: int, rng: random.Random) -> Case:
    name = rng.choice(("tanh", "exp", "sin", "log1p"))
    return Case("x, y", (f"return np.{name}(np.abs(x)) * {_number(rng)} + y",), _matrices(rng),
                exact=False)


def _reduction(at: int, rng: random.Random) -> Case:
    name, axis = rng.choice(("sum", "mean", "max", "min", "prod")), rng.choice((0, 1, None))
    return Case("x, y", (f"return x.{name}(axis={axis}) * {_number(rng)}, (x > y).sum()",),
                _matrices(rng), exact=False)


def _product(at: int, rng: random.Random) -> Case:
    return Case("x, y", (f"return x @ y.T + {_number(rng)}",), _matrices(rng), exact=False)


def _nest(at: int, rng: random.Random) -> Case:
    return Case("p, k", (f"h = helper(p['x'] * p['y'][0], {_number(rng)})",
                         "return {'h': h, 'all': (h.max(), [k + 1, None])}"),
                f"(lambda x, y: {{'x': x, 'y': [y]}})({_matrices(rng)}), {_number(rng)}")


def _static(at: int, rng: random.Random) -> Case:
    return Case("x, y, mode, count", (
        "for _ in range(count):",
        f"    x = x * {_number(rng)} if mode == 'scale' else x + {_number(rng)} - y", "return x"),
        f"{_matrices(rng)}, {rng.choice(('scale', 'shift'))!r}, {rng.randint(1, 4)}",
        options="(static_argnames=('mode', 'count'))")


def _closed(at: int, rng: random.Random) -> Case:
    return Case("x, y", (f"return (x - y) * w_{at}[1] + s_{at} + BIAS[0]",), _matrices(rng),
                before=f"w_{at} = rng.normal(size=3)\ns_{at} = {_number(rng)}")


def _variable(at: int, rng: random.Random) -> Case:
    n, k = rng.randint(2, 9), _number(rng)
    return Case("x", (f"v_{at}.assign_add(x * {k})", f"return v_{at} * 2"), f"rng.normal(size={n})",
                before=f"held_{at} = np.zeros({n})\n"
                       f"v_{at} = weft.Variable(np.zeros({n}), name='v{at}')",
                plain=(f"held_{at}[...] = held_{at} + x * {k}", f"return held_{at} * 2"))


def _written(at: int, rng: random.Random) -> Case:
    return Case("x, y", (f"x[1:] += y[:-1] * {_number(rng)}", f"x[0] = ({_expression(rng)} + x)[0]",
                         "v = x[:, 0]", "v *= 2", "return v.max()"), _matrices(rng))


def _integers(at: int, rng: random.Random) -> Case:
    return Case("x", (
        f"y = np.sort(x, axis=-1) + {at}", f"for i in range({rng.randint(1, 4)}):",
        "    y = y * 3 - i", "return y, np.cumsum(x, axis=0), y.argmax()"),
        f"rng.integers(-50, 50, ({rng.randint(2, 9)}, {rng.randint(2, 9)}))")


def _branch(at: int, rng: random.Random) -> Case:
    return Case("x, y", (f"if x[0, 0] > {_number(rng)}:", "    x = x + y", "else:",
                         f"    x = x - y * {_number(rng)}", "return x, x > y"), _matrices(rng))


KINDS: tuple[Callable[[int, random.Random], Case], ...] = (
    _elements, _transcendental, _reduction, _product, _nest, _static, _closed, _variable, _written,
    _integers, _branch)
