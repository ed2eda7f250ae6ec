"""Random programs of chosen elements in loops, in batches and in gradients of loops.

    python -m fuzz.rounds --first 0 --count 1000         run in tests/

The programs are those of ``fuzz.chosen``; the sums of their results are computed for each of many
rows, in a loop and as a batch, and differentiated. What NumPy refuses for a row is not among them.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

import weft

from .chosen import arguments, drawn, ending, loaded, main

_ROWS = 40
_LARGE = 10_000  # elements of all results together
_MORE = """

def sums(x, y, m, k):
    return np.array([np.sum(each * 1.0) for each in f(x, y, m, k)])


def rounds(xs, ys, ms, ks):
    out = np.zeros((len(ks), COUNT))
    for i in range(len(ks)):
        out[i] = sums(xs[i], ys[i], ms[i], ks[i])
    return out
"""


def check(seed: int, folder: Path) -> str:
    """ok, refused with an error, or what is wrong."""
    scope = loaded(seed, folder, drawn(seed) + _MORE)
    sums, good, wanted = scope["sums"], [], []
    for args in arguments(seed):
        try:
            with np.errstate(all="ignore"):
                made = scope["f"](*args)
                if sum(each.size for each in made) < _LARGE:
                    wanted.append(sums(*args))
                    good.append(args)
        except Exception:  # NumPy's, whatever it is
            continue
    if not good:
        return "refused by NumPy"
    scope["COUNT"] = len(wanted[0])
    rows = [np.stack([good[at % len(good)][each] for at in range(_ROWS)]) for each in range(4)]
    want = np.stack([wanted[at % len(good)] for at in range(_ROWS)])
    refused = ""
    for name, function in {"in a loop": scope["rounds"], "in a batch": weft.vmap(sums)}.items():
        try:
            with ending():
                found = weft.compile(function)(*rows)
        except weft.Error as problem:
            refused = f"refused {problem.code} {name}"
            continue
        except Exception as problem:
            return f"{name}: {type(problem).__name__} {problem}"
        if not np.allclose(found, want, 1e-9, equal_nan=True):
            return f"{name}: {found[:4]!r}, NumPy gives {want[:4]!r}"
    return refused or (_slopes(scope, rows) if rows[0].dtype.kind == "f" else "ok")


def _slopes(scope: dict[str, Any], rows: list[Any]) -> str:
    def total(x: Any, *rest: Any) -> Any:
        return scope["sums"](x, *rest).sum()

    def of_all(xs: Any, *rest: Any) -> Any:
        return scope["rounds"](xs, *rest).sum()

    try:
        with ending():
            found = weft.compile(weft.grad(of_all))(*rows)
            one = weft.compile(weft.grad(total))
            want = np.stack([one(*row) for row in zip(*rows, strict=True)])
    except weft.Error as problem:
        return f"refused {problem.code} in a gradient"
    except Exception as problem:
        return f"gradient: {type(problem).__name__} {problem}"
    if not np.allclose(found, want, 1e-9, equal_nan=True):
        return f"gradient: {found[:4]!r}, of one row {want[:4]!r}"
    return "ok"


if __name__ == "__main__":
    sys.exit(main("python -m fuzz.rounds", check))
