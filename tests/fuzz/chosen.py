"""Random programs of chosen elements: masks, computed slices, what values say the size of.

    python -m fuzz.chosen --first 0 --count 1000         run in tests/

A program has two vectors x and y, a mask m and a number k. Each of its lines makes another vector,
or writes to one; all are its results. It runs with four sets of arguments, of which one chooses
nothing: one compiled function serves them all. What NumPy refuses for some arguments Weft need not
refuse (nobody may need the value, see ``excused``, 3), and the other way round that is counted.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import random
import signal
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import weft

_PATIENCE = 60  # seconds of a call
_BY_NUMPY = "refused by NumPy"

MASKS = ("{a} > 0", "{a} > 1", "{a} > -1", "{a} % 2 == 0", "{a} < 3", "m")
MADE = (
    *["{a}[{m}]"] * 3, "{a}[:k]", "{a}[k:]", "{a}[1:k]", "np.nonzero({m})[0]", "np.unique({a})",
    "np.flatnonzero({m})", "{a}[::-1]", "{a}[1:]", "{a}[:-1]", "{a}[-2:]", "{a}[:2]", "{a} + {b}",
    "{a} * 2", "{a} * {a}", "-{a}", "{a} > 1", "{a}.copy()", "{a}.astype(int)", "{a}[None][0]",
    "{a}.reshape(-1, 1)[:, 0]", "{a}[:, None].T[0]", "np.ravel({a})", "np.flip({a})",
    "np.sort({a})", "np.argsort({a}, kind='stable')", "{a}[np.argsort({a}, kind='stable')]",
    "np.cumsum({a})", "np.cumsum({a})[::2]", "np.minimum.accumulate({a})", "np.diff({a})",
    "np.ediff1d({a})", "np.gradient({a})", "np.concatenate([{a}, {b}])", "np.append({a}, {b})",
    "np.hstack([{a}, {b}])", "np.vstack([{a}, {a}])[1]", "np.stack([{a}, {a}]).ravel()",
    "np.where({a} > 1, {a}, 0)", "np.select([{a} > 1, {a} > 0], [{a}, 1], 0)",
    "np.zeros(len({a}))", "np.arange({a}.size)", "np.ones_like({a})", "np.full({a}.shape, 3)",
    "np.array([{a}.size, {b}.size])", "np.atleast_1d({a}.sum())", "np.count_nonzero({a}) + {b}",
    "np.searchsorted(np.sort({a}), {b})", "np.digitize({a}, [0, 1, 2])", "np.isin({a}, {b})",
    "np.interp({a}, np.arange(4.0), np.arange(4.0) * 2)", "np.histogram({a}, 3, (0, 4))[0]",
    "np.bincount(np.abs({a}).astype(int))", "np.unique({a}, return_counts=True)[1]",
    "np.unique({a}, return_inverse=True)[1]", "np.unique({a}, return_index=True)[1]",
    "np.intersect1d({a}, {b})", "np.union1d({a}, {b})", "np.setdiff1d({a}, {b})",
    "np.repeat({a}, 2)", "np.tile({a}, 2)", "np.roll({a}, 1)", "np.pad({a}, 1)",
    "np.delete({a}, 0)", "np.insert({a}, 0, 5)", "np.trim_zeros({a})", "np.array_split({a}, 2)[0]",
    "np.take({a}, np.arange({a}.size))", "np.partition({a}, 0)[:1]", "np.compress({m}, {a})",
    "np.extract({m}, {a})", "x[np.clip({a}.astype(int), 0, 3)]", "np.clip({a}, 0, 2)",
    "np.abs({a})", "np.round({a})", "np.nan_to_num({a})", "np.maximum({a}, 1)",
    "np.convolve({a}, [1, 2])", "np.dot({a}, {a}) * np.ones(2)", "{a} @ {a} + np.zeros(1)",
    "np.outer({a}, {b}).sum(0)", "({a}[:, None] - {b}).min(1)", "({a}[:, None] > {b}).sum(1)",
)
WRITES = (
    "{a} {t} 2", "{a} {t} {b}", "{a}[...] = 3", "{a}[:] = {b}", "{a}[0] = 7", "{a}[-1] {t} 3",
    "{a}[{m}] = 0", "{a}[{m}] {t} 2", "{a}[{m}] = {b}[{n}]", "{a}[1:] = {a}[:-1]",
    "{a}[1:] {t} {a}[:-1]", "{a}[::-1] {t} {a}", "{a}[:k] = 1", "{a}[k:] {t} 1",
    "{a}[np.flatnonzero({m})] = -1", "np.add.at({a}, np.nonzero({m})[0], 1)", "{a}.sort()",
    "{a}.fill(2)", "np.add({a}, 1, out={a})", "np.copyto({a}, 4, where={a} > 1)",
    "for i in range(len({a})): {a}[i] += i", "for i in range(3): {a} += i",
    "for v in {a}: {b}[0] += v", "if {b}.sum() > 3: {a} *= 2", "if {b}.size > 2: {a} = {a}[1:]",
    "while {a}.sum() < 20 and {a}.size > 0 and {a}.min() > 0: {a} *= 2", "{a} = {a}[{m}]",
    "{a} = {a} + 1",
)


def drawn(seed: int) -> str:
    """The text of a program."""
    rng = random.Random(seed)
    names, lines = ["x", "y"], []

    def name() -> str:
        return rng.choice(names[-3:] if rng.random() < 0.6 else names)

    for _ in range(rng.randint(3, 9)):
        a, b = name(), name()
        parts = {"a": a, "b": b, "t": rng.choice(("+=", "*=", "-=")),
                 "m": rng.choice(MASKS).format(a=a), "n": rng.choice(MASKS).format(a=b)}
        if rng.random() < 0.62 or len(names) == 2:
            made = f"a{len(names) - 2}"
            lines.append(f"{made} = {rng.choice(MADE).format(**parts)}")
            names.append(made)
        else:
            lines.append(rng.choice(WRITES).format(**parts))
    return "\n    ".join(("import numpy as np\n\n\ndef f(x, y, m, k):", "x, y = x.copy(), y.copy()",
                          *lines, f"return {', '.join(names)}\n"))


def arguments(seed: int) -> list[tuple[Any, ...]]:
    """Four sets, of which the third one chooses nothing."""
    rng = random.Random(-seed - 1)
    n, dtype = rng.choice((4, 6)), rng.choice((float, int))
    return [(np.array([rng.randint(-2, 5) for _ in range(n)], dtype),
             np.array([rng.randint(-1, 4) for _ in range(n)], dtype),
             np.array([rng.random() < chance for _ in range(n)]), np.int64(rng.randint(0, n)))
            for chance in (0.5, 0.9, 0.0, 0.3)]


@contextlib.contextmanager
def ending() -> Iterator[None]:
    """Let what goes on for too long fail."""
    def late(signum: int, frame: Any) -> None:
        raise TimeoutError(f"nothing after {_PATIENCE} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(_PATIENCE)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def loaded(seed: int, folder: Path, text: str) -> dict[str, Any]:
    """What a program defines, which is written into a folder, where Weft finds its lines."""
    path = folder / f"chosen_{seed}.py"
    path.write_text(text)
    scope: dict[str, Any] = {}
    exec(compile(text, str(path), "exec"), scope)
    return scope


def compared(
    function: Callable[..., Any], compiled: Callable[..., Any], args: tuple[Any, ...],
    kind: Callable[[Any], Any],
) -> str:
    """ok, refused by NumPy or with an error, or what is wrong of a call: results are close, and
    of one ``kind``."""
    try:
        with np.errstate(all="ignore"):
            wanted = function(*args)
    except Exception:  # NumPy's, whatever it is
        return _BY_NUMPY
    try:
        with ending():
            found = compiled(*args)
    except weft.Error as problem:
        return f"refused {problem.code}"
    except Exception as problem:
        return f"{type(problem).__name__} {problem}"
    for at, (got, want) in enumerate(zip(found, wanted, strict=True)):
        if kind(got) != kind(want) or not np.allclose(got, want, 1e-9, equal_nan=True):
            return f"result {at} is {got!r}, NumPy gives {want!r}"
    return "ok"


def of_all(verdicts: Iterable[str]) -> str:
    """The verdict on a program of those on its calls: what is wrong, else why one was refused.
    Those that NumPy refuses are none."""
    refused = ""
    for verdict in verdicts:
        if verdict.startswith("refused"):
            refused = refused if verdict == _BY_NUMPY else verdict
        elif verdict != "ok":
            return verdict
    return refused or "ok"


def check(seed: int, folder: Path) -> str:
    """ok, refused with an error, or what is wrong."""
    function = loaded(seed, folder, drawn(seed))["f"]
    compiled = weft.compile(function)
    return of_all(compared(function, compiled, args, lambda x: (x.dtype, x.shape))
                  for args in arguments(seed))


def main(prog: str, check: Callable[[int, Path], str], drawn: Callable[[int], str] = drawn) -> int:
    """Check many programs; 1 if there is a finding."""
    parser = argparse.ArgumentParser(prog=prog)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--out", type=Path, default=Path("chosen"), help="a folder for programs")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore")
    counts: collections.Counter[str] = collections.Counter()
    for seed in range(options.first, options.first + options.count):
        verdict = check(seed, options.out)
        known = verdict == "ok" or verdict.startswith("refused")
        counts[verdict if known else "finding"] += 1
        if known:
            (options.out / f"chosen_{seed}.py").unlink()
        else:
            print(f"--- {seed}: {verdict}\n{drawn(seed)}", flush=True)
    print(", ".join(f"{count} {verdict}" for verdict, count in counts.most_common()))
    return 1 if counts["finding"] else 0


if __name__ == "__main__":
    sys.exit(main("python -m fuzz.chosen", check))
