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
    elements touched grow by; ``compiled`` is what is measured, where that is not the function."""

    function: Callable[..., Any]
    args: Callable[[int], tuple[Any, ...]]
    smallest: int
    power: int = 1
    compiled: Callable[..., Any] | None = None

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


def gradient(x):
    """Of ``_loss``, as a loop backwards."""
    of_x, of_y = np.zeros(x.size), 0.0
    for i in range(x.size - 1, 0, -1):
        of_y = 1.0 + 0.5 * of_y
        of_x[i] = 2.0 * x[i] * of_y
    return of_x


def _loss(x):
    y = np.zeros(x.size)
    for i in range(1, x.size):
        y[i] = 0.5 * y[i - 1] + x[i] * x[i]
    return y.sum()


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
        "insertion": Form(insertion, nearly_sorted, 1000),
        "insertion of rows": Form(rows_inserted, nearly_sorted, 500),
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
        "table": Form(table, vector, 60, 2),
        "gradient": Form(gradient, vector, 1000, compiled=weft.grad(_loss)),
    }


def run(bench: Bench) -> list[Table]:
    """One table: nanoseconds for each element that the plain loop touches, at three sizes, and by
    how much more than these elements time grows from the smallest to the largest."""
    columns = ("store", "n", *(f"ns, {step} n" for step in STEPS), "growth")
    shown = Table("what a store in a loop costs", columns)
    for name, form in _forms().items():
        if not bench.quick or name in FEW:
            bench.progress(name)
            _row(bench, shown, name, form)
    shown.notes.append("growth: ns at the largest size over ns at the smallest; 4 where each round "
                       "copies the array")
    return [shown]


def _row(bench: Bench, shown: Table, name: str, form: Form) -> None:
    contestants, sizes = [], [step * form.smallest for step in STEPS]
    for n in sizes:
        args = form.args(n)
        compiled = weft.compile(form.compiled or form.function, threads=bench.threads)
        theirs, ours = (tuple(arg.copy() for arg in args) for _ in range(2))
        for expected, value in zip((form.function(*theirs), *theirs), (compiled(*ours), *ours),
                                   strict=True):
            if not np.allclose(value, expected, rtol=1e-9, atol=1e-12):
                shown.notes.append(f"{name}: another result than Python's at {n}")
                return
        contestants.append(Contestant(f"{n}", "f(a)" if len(args) == 1 else "f(a, b)",
                                      {"f": compiled, **dict(zip("ab", args, strict=False))}))
    times = race(contestants, bench.pace)
    costs = [times[f"{n}"].median / form.touched(n) for n in sizes]
    growth = costs[-1] / costs[0]
    shown.rows.append([name, str(form.smallest), *(number(1e9 * cost) for cost in costs),
                       f"{growth:.2f}"])
    shown.data.append({"store": name, "growth": growth, "seconds": costs})
