"""What a round of a loop costs: loops of a few scalar operations, compiled by Weft and by a C
compiler from the same lines (``-O3 -march=native -ffp-contract=off``, integers that wrap).

Each program is called once for many rounds, so that the call does not count; both are checked
against plain Python on the same arguments.
"""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import weft

from .compare import Bench
from .measure import Contestant, race
from .report import Table, number

COMPILERS = ("gcc", "cc", "clang")
FLAGS = ("-O3", "-ffp-contract=off", "-fwrapv", "-shared", "-fPIC")
FEW = ("recurrence", "gcd", "escape")
TYPES = {"i": ctypes.c_int64, "d": ctypes.c_double}


@dataclass(frozen=True)
class Loop:
    """A loop in both languages. ``kinds`` are of the arguments of the C function: ``i`` and ``d``
    numbers, ``I`` and ``D`` arrays of them; the first letter is that of the result."""

    python: Callable[..., Any]
    c: str
    kinds: str
    args: tuple[Any, ...]
    rounds: int


def logistic(n, r, x):
    for _ in range(n):
        x = r * x * (1.0 - x)
    return x


def congruential(n, seed):
    state = seed
    for _ in range(n):
        state = (state * 1103515245 + 12345) & 0x7FFFFFFF
    return state


def fibonacci(n):
    a, b = 0, 1
    for _ in range(n):
        a, b = b, (a + b) % 1000000007
    return a


def collatz(n):
    longest = 0
    for start in range(1, n):
        number, steps = start, 0
        while number != 1:
            number = number // 2 if number % 2 == 0 else 3 * number + 1
            steps += 1
        longest = max(longest, steps)
    return longest


def gcd(n, m):
    total = 0
    for k in range(1, n):
        a, b = k, m
        while b != 0:
            a, b = b, a % b
        total += a
    return total


def escape(n, a, b):
    x, y, k = 0.0, 0.0, 0
    while k < n and x * x + y * y < 4.0:
        x, y, k = x * x - y * y + a, 2.0 * x * y + b, k + 1
    return k


def recurrence(x, a):
    y = np.zeros(x.size)
    for i in range(1, x.size):
        y[i] = a * y[i - 1] + x[i]
    return y[-1]


def kahan(x):
    total, lost = 0.0, 0.0
    for i in range(x.size):
        y = x[i] - lost
        t = total + y
        lost = (t - total) - y
        total = t
    return total


def above(x, limit):
    count = 0
    for i in range(x.size):
        if x[i] > limit:
            count += 1
    return count


def buckets(x):
    counts = np.zeros(64, np.int64)
    for i in range(x.size):
        counts[x[i] & 63] += 1
    return counts[7]


def bisection(x, keys):
    total = 0
    for k in range(keys.size):
        low, high = 0, x.size
        while low < high:
            middle = (low + high) // 2
            if x[middle] < keys[k]:
                low = middle + 1
            else:
                high = middle
        total += low
    return total


def newton(n, a):
    total = 0.0
    for k in range(n):
        x = a + k
        for _ in range(4):
            x = 0.5 * (x + (a + k) / x)
        total += x
    return total


def primes(n):
    count = 0
    for k in range(2, n):
        for d in range(2, k):
            if d * d > k:
                count += 1
                break
            if k % d == 0:
                break
    return count


def crossings(x):
    count, last = 0, x[0]
    for i in range(1, x.size):
        if (last < 0.0) != (x[i] < 0.0):
            count += 1
        last = x[i]
    return count


def _loops() -> dict[str, Loop]:
    rng = np.random.default_rng(7)
    x, n = rng.standard_normal(100_000), 100_000
    whole, ordered = rng.integers(0, 1 << 30, n), np.sort(rng.standard_normal(1 << 14))
    keys = rng.standard_normal(10_000)
    return {
        "logistic": Loop(logistic, "for (; n > 0; n--) x = r * x * (1.0 - x); return x;",
                         "d i:n d:r d:x", (n, 3.7, 0.3), n),
        "congruential": Loop(
            congruential, "for (; n > 0; n--) s = (s * 1103515245 + 12345) & 0x7FFFFFFF; return s;",
            "i i:n i:s", (n, 42), n),
        "fibonacci": Loop(
            fibonacci, "int64_t a = 0, b = 1; for (; n > 0; n--) {"
            " int64_t c = (a + b) % 1000000007; a = b; b = c; } return a;", "i i:n", (n,), n),
        "collatz": Loop(
            collatz, "int64_t best = 0; for (int64_t s = 1; s < n; s++) { int64_t m = s, k = 0;"
            " while (m != 1) { m = m % 2 == 0 ? m >> 1 : 3 * m + 1; k++; }"
            " if (k > best) best = k; } return best;", "i i:n", (3000,), 226_000),
        "gcd": Loop(
            gcd, "int64_t t = 0; for (int64_t k = 1; k < n; k++) { int64_t a = k, b = m;"
            " while (b != 0) { int64_t c = a % b; a = b; b = c; } t += a; } return t;",
            "i i:n i:m", (10_000, 832040), 75_000),
        "escape": Loop(
            escape, "double x = 0, y = 0; int64_t k = 0; while (k < n && x * x + y * y < 4.0) {"
            " double u = x * x - y * y + a; y = 2.0 * x * y + b; x = u; k++; } return k;",
            "i i:n d:a d:b", (n, -0.1, 0.2), n),
        "recurrence": Loop(
            recurrence, "double *y = calloc(l, 8), r; for (int64_t i = 1; i < l; i++)"
            " y[i] = a * y[i - 1] + x[i]; r = y[l - 1]; free(y); return r;",
            "d D:x d:a", (x, 0.9), n),
        "kahan": Loop(
            kahan, "double s = 0, c = 0; for (int64_t i = 0; i < l; i++) { double y = x[i] - c,"
            " t = s + y; c = (t - s) - y; s = t; } return s;", "d D:x", (x,), n),
        "above": Loop(above, "int64_t c = 0; for (int64_t i = 0; i < l; i++) if (x[i] > m) c++;"
                      " return c;", "i D:x d:m", (x, 0.5), n),
        "buckets": Loop(
            buckets, "int64_t c[64] = {0}; for (int64_t i = 0; i < l; i++) c[x[i] & 63]++;"
            " return c[7];", "i I:x", (whole,), n),
        "bisection": Loop(
            bisection, "int64_t t = 0; for (int64_t k = 0; k < m; k++) { int64_t a = 0, b = l;"
            " while (a < b) { int64_t h = (a + b) >> 1; if (x[h] < y[k]) a = h + 1; else b = h; }"
            " t += a; } return t;", "i D:x D:y", (ordered, keys), 14 * keys.size),
        "newton": Loop(
            newton, "double t = 0; for (int64_t k = 0; k < n; k++) { double x = a + k;"
            " for (int j = 0; j < 4; j++) x = 0.5 * (x + (a + k) / x); t += x; } return t;",
            "d i:n d:a", (25_000, 2.5), n),
        "primes": Loop(
            primes, "int64_t c = 0; for (int64_t k = 2; k < n; k++) for (int64_t d = 2; d < k; d++)"
            " { if (d * d > k) { c++; break; } if (k % d == 0) break; } return c;", "i i:n",
            (10_000,), 118_754),
        "crossings": Loop(
            crossings, "int64_t c = 0; double p = x[0]; for (int64_t i = 1; i < l; i++) {"
            " if ((p < 0) != (x[i] < 0)) c++; p = x[i]; } return c;", "i D:x", (x,), n),
    }


def _text(name: str, loop: Loop) -> str:
    result, *params = loop.kinds.split()
    of = {"i": "int64_t ", "d": "double "}
    given, lengths = [], iter("lm")
    for param in params:
        kind, _, called = param.partition(":")
        given.append(f"const {of[kind.lower()]}*{called}, int64_t {next(lengths)}"
                     if kind.isupper() else of[kind] + called)
    return f"{of[result]}{name}({', '.join(given)}) {{ {loop.c} }}"


def _called(name: str, loop: Loop, library: ctypes.CDLL) -> Contestant:
    """A call of the C function whose arguments are converted already."""
    function = library[name]
    result, *params = loop.kinds.split()
    function.restype = TYPES[result]
    given: list[Any] = []
    for param, arg in zip(params, loop.args, strict=True):
        if param[0].isupper():
            given += [ctypes.c_void_p(arg.ctypes.data), ctypes.c_int64(arg.size)]
        else:
            given.append(TYPES[param[0]](arg))
    return Contestant.of("c", function, given)


def run(bench: Bench) -> list[Table]:
    """One table: nanoseconds of a round in C and in Weft, and C's time over Weft's."""
    table = Table("a round of a loop", ("loop", "c ns", "weft ns", "c / weft"))
    compiler = next(filter(shutil.which, COMPILERS), None)
    if compiler is None:
        table.notes.append(f"no C compiler ({', '.join(COMPILERS)}): nothing to compare with")
        return [table]
    loops = {name: loop for name, loop in _loops().items() if not bench.quick or name in FEW}
    with tempfile.TemporaryDirectory() as folder:
        source, made = Path(folder, "rounds.c"), Path(folder, "rounds.so")
        texts = [_text(name, loop) for name, loop in loops.items()]
        source.write_text("\n".join(["#include <stdint.h>", "#include <stdlib.h>", *texts, ""]))
        flags = (f"-march={bench.target or 'native'}", *FLAGS)
        subprocess.run([compiler, *flags, "-o", str(made), str(source)], check=True)
        library = ctypes.CDLL(str(made))
        for name, loop in loops.items():
            bench.progress(name)
            _row(bench, table, name, loop, _called(name, loop, library))
    table.notes.append(f"{compiler} {' '.join(flags)}")
    return [table]


def _row(bench: Bench, table: Table, name: str, loop: Loop, theirs: Contestant) -> None:
    compiled = weft.compile(loop.python, threads=bench.threads, target=bench.target)
    ours = Contestant.of("weft", compiled, loop.args)
    expected = loop.python(*loop.args)
    for who, value in (("c", theirs.names["f"](*[theirs.names[f"a{at}"] for at in
                                                  range(len(theirs.names) - 2)])),
                       ("weft", compiled(*loop.args))):
        if value != expected:
            table.notes.append(f"{name}: {who} has {value}, Python {expected}")
            return
    times = race([theirs, ours], bench.pace)
    ratio = times["weft"].times_faster(times["c"])
    cells = [f"{'~' if timing.noisy else ''}{number(1e9 * timing.median / loop.rounds)}"
             for timing in (times["c"], times["weft"])]
    table.rows.append([name, *cells, f"{ratio:.2f}"])
    table.data.append({"loop": name, "ratio": ratio,
                       **{who: timing.median for who, timing in times.items()}})
