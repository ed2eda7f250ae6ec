"""How time grows with each way of writing into an array in a loop.

A round that stores a part of an array costs what it touches, not the array: time over the elements
that the plain loop touches is about the same at ``n``, ``2 n`` and ``4 n``, but for caches that
they leave. A loop that copies an array in each round grows by one power of ``n`` more.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import weft

from .compare import Bench
from .measure import Contestant, race
from .report import Table, number

FEW = ("element", "row", "branch")
STEPS = (1, 2, 4)


@dataclass(frozen=True)
class Form:
    """A function, its arguments for a size, the smallest size, and the power of it that the
    elements touched grow by; whether it has a gradient by the first argument that is not 0."""

    function: Callable[..., Any]
    args: Callable[[int], tuple[Any, ...]]
    smallest: int
    power: int = 1
    sloping: bool = True

    def touched(self, n: int) -> int:
        return n ** self.power


def element(x):
    y = np.zeros(x.size)
    for i in range(1, x.size):
        y[i] = 0.5 * y[i - 1] + x[i]
    return y


def element_of_a_matrix(x):
    y = np.zeros((x.size, x.size))
    for i in range(1, x.size):
        for j in range(1, x.size):
            y[i, j] = 0.5 * y[i - 1, j] + 0.25 * y[i, j - 1] + x[j]
    return y


def row(x):
    y = np.zeros((x.size, x.size))
    y[0] = x
    for i in range(1, x.size):
        y[i] = y[i - 1] * 0.5 + x
    return y


def column(x):
    y = np.zeros((x.size, x.size))
    for j in range(1, x.size):
        y[:, j] = y[:, j - 1] * 0.5 + x
    return y


def prefix(x):
    y = np.zeros((x.size, x.size))
    for i in range(1, x.size):
        y[i, :i] = y[i - 1, :i] * 0.5 + x[:i]
    return y


def block(x):
    y = np.zeros((x.size + 4, 8))
    for i in range(x.size):
        y[i:i + 4, 2:6] += x[i]
    return y


def trailing(x):
    y = np.outer(x, x) + np.eye(x.size) * x.size
    for k in range(x.size - 1):
        y[k + 1:, k] /= y[k, k]
        y[k + 1:, k + 1:] -= np.outer(y[k + 1:, k], y[k, k + 1:])
    return y


def segment(x, ends):
    y = x.copy()
    for i in range(ends.size - 1):
        y[ends[i]:ends[i + 1]] -= y[ends[i]:ends[i + 1]].mean()
    return y


def branch(x):
    y, z = np.zeros(x.size), np.zeros(x.size)
    for i in range(1, x.size):
        if x[i] > 0.0:
            y[i] = y[i - 1] + x[i]
        else:
            z[i] = z[i - 1] - x[i]
            y[i] = z[i - 1]
    return y, z


def counted_while(x):
    y, i = np.zeros(x.size), 1
    while i < x.size and y[i - 1] < 1e300:
        y[i] = 0.5 * y[i - 1] + x[i]
        i += 1
    return y


def insertion(x):
    y = x.copy()
    for i in range(1, y.size):
        key, j = y[i], i - 1
        while j >= 0 and y[j] > key:
            y[j + 1] = y[j]
            j -= 1
        y[j + 1] = key
    return y


def rows_inserted(x):
    y = np.outer(x, np.ones(8))
    for i in range(1, x.size):
        key, j = y[i].copy(), i - 1
        while j >= 0 and y[j, 0] > key[0]:
            y[j + 1] = y[j]
            j -= 1
        y[j + 1] = key
    return y


def swap(x, places):
    y = x.copy()
    for i in range(y.size):
        y[i], y[places[i]] = y[places[i]], y[i]
    return y


def rows_swapped(x, places):
    y = np.outer(x, np.ones(8))
    for i in range(x.size):
        y[[i, places[i]]] = y[[places[i], i]]
    return y


def scattered(x, places):
    y = np.zeros(x.size)
    for i in range(1, x.size - 1):
        y[places[i - 1:i + 2]] += x[i]
    return y


def masked(x):
    y = np.outer(x, x)
    for i in range(x.size):
        y[i][y[i] < 0.0] = x[i]
    return y


def view(x):
    y = np.zeros((x.size, 4))
    for i in range(x.size):
        line = y[i]
        line += x[i]
        line[2] = 1.0
    return y


def out(x):
    y = np.zeros((x.size, 4))
    for i in range(1, x.size):
        np.multiply(y[i - 1], x[i], out=y[i])
    return y


def _store(y, i, value):
    y[i] = value


def helper(x):
    state = {"y": np.zeros(x.size)}
    for i in range(1, x.size):
        _store(state["y"], i, state["y"][i - 1] * 0.5 + x[i])
    return state["y"]


def argument(y):
    for i in range(1, y.size):
        y[i] += 0.5 * y[i - 1]
    return y[-1]


def history(x):
    last, y = np.zeros(4), np.zeros(x.size)
    for i in range(x.size):
        last[1:] = last[:-1].copy()
        last[0] = x[i]
        y[i] = last.sum()
    return y


def buffers(x):
    new, old = np.zeros(x.size), x.copy()
    for _ in range(x.size):
        new[1:-1] = 0.5 * (old[:-2] + old[2:])
        new, old = old, new
    return old


def table(x):
    best = np.zeros((x.size + 1, x.size + 1))
    for i in range(1, x.size + 1):
        for j in range(1, x.size + 1):
            if x[i - 1] < x[j - 1]:
                best[i, j] = best[i - 1, j - 1] + 1.0
            else:
                best[i, j] = max(best[i - 1, j], best[i, j - 1])
    return best[-1, -1]


def _forms() -> dict[str, Form]:
    rng = np.random.default_rng(7)

    def vector(n):
        return (rng.standard_normal(n),)

    def places(n):
        return rng.standard_normal(n), rng.integers(0, n, n)

    def ends(n):
        return rng.standard_normal(n), np.arange(0, n + 1, 8)

    def nearly_sorted(n):
        return (np.arange(n) + 2.0 * rng.standard_normal(n),)

    return {
        "element": Form(element, vector, 4000),
        "element, two loops": Form(element_of_a_matrix, vector, 100, 2),
        "row": Form(row, vector, 100, 2),
        "column": Form(column, vector, 100, 2),
        "prefix of a row": Form(prefix, vector, 100, 2),
        "block": Form(block, vector, 1000),
        "trailing block": Form(trailing, vector, 40, 3),
        "segment": Form(segment, ends, 8000),
        "branch": Form(branch, vector, 32000),
        "while": Form(counted_while, vector, 4000),
        "insertion": Form(insertion, nearly_sorted, 1000, sloping=False),
        "insertion of rows": Form(rows_inserted, nearly_sorted, 500, sloping=False),
        "swap": Form(swap, places, 2000),
        "rows swapped": Form(rows_swapped, places, 1000),
        "several places": Form(scattered, places, 1000),
        "mask of a row": Form(masked, vector, 100, 2),
        "view": Form(view, vector, 1000),
        "out=": Form(out, vector, 1000),
        "helper, dict": Form(helper, vector, 4000),
        "argument": Form(argument, vector, 4000),
        "history": Form(history, vector, 2000),
        "two buffers": Form(buffers, vector, 200, 2),
        "table": Form(table, vector, 60, 2, sloping=False),
    }


def run(bench: Bench) -> list[Table]:
    """Two tables, of functions and of gradients: nanoseconds for each element that the plain loop
    touches, at three sizes, and by how much more than these elements time grows from the smallest
    to the largest."""
    return [_table(bench, "what a store in a loop costs", False),
            _table(bench, "what its gradient costs", True)]


def _table(bench: Bench, title: str, slopes: bool) -> Table:
    columns = ("store", "n", *(f"ns, {step} n" for step in STEPS), "growth")
    shown = Table(title, columns)
    for name, form in _forms().items():
        if (not bench.quick or name in FEW) and (form.sloping or not slopes):
            bench.progress(f"{name}, gradient" if slopes else name)
            _row(bench, shown, name, form, slopes)
    shown.notes.append("growth: ns at the largest size over ns at the smallest; 4 where each round "
                       "copies the array")
    return shown


def _row(bench: Bench, shown: Table, name: str, form: Form, slopes: bool) -> None:
    contestants, sizes = [], [step * form.smallest for step in STEPS]
    function = _loss(form.function) if slopes else form.function
    for n in sizes:
        args = form.args(n)
        compiled = weft.compile(weft.grad(function) if slopes else function,
                                threads=bench.threads, target=bench.target)
        right = _has_slope if slopes else _has_results
        if not right(function, compiled, args):
            shown.notes.append(f"{name}: another result than Python's at {n}")
            return
        contestants.append(Contestant(f"{n}", "f(a)" if len(args) == 1 else "f(a, b)",
                                      {"f": compiled, **dict(zip("ab", args, strict=False))}))
    times = race(contestants, bench.pace)
    costs = [times[f"{n}"].median / form.touched(n) for n in sizes]
    growth = costs[-1] / costs[0]
    shown.rows.append([name, str(form.smallest), *(number(1e9 * cost) for cost in costs),
                       f"{growth:.2f}"])
    shown.data.append({"store": name, "gradient": slopes, "growth": growth, "seconds": costs})


def _loss(function: Callable[..., Any]) -> Callable[..., Any]:
    """Half of the squares of all results."""
    def loss(*args):
        results = function(*args)
        return sum(0.5 * (each * each).sum() for each in (
            results if isinstance(results, tuple) else (results,)))

    return loss


def _has_results(
    function: Callable[..., Any], compiled: Callable[..., Any], args: tuple[Any, ...]
) -> bool:
    """Whether results and arguments are those of Python, after the call."""
    theirs, ours = (tuple(arg.copy() for arg in args) for _ in range(2))
    return all(np.allclose(value, expected, rtol=1e-9, atol=1e-12)
               for expected, value in zip((function(*theirs), *theirs), (compiled(*ours), *ours),
                                          strict=True))


def _has_slope(
    function: Callable[..., Any], compiled: Callable[..., Any], args: tuple[Any, ...]
) -> bool:
    """Whether a gradient is the difference of Python's results along a way."""
    x, *rest = args
    way = np.random.default_rng(5).standard_normal(x.shape)
    ahead, behind = (function(x + step * way, *rest) for step in (1e-6, -1e-6))
    return bool(np.isclose(np.vdot(compiled(*(arg.copy() for arg in args)), way),
                           (ahead - behind) / 2e-6, rtol=1e-4, atol=1e-6))
