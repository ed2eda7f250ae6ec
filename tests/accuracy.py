"""Errors of float32 sums and products against float64, beside NumPy's: they grow as the logarithm
of the length.

    python tests/accuracy.py --most 1e8

prints medians over several seeds, in units of the spacing of floats at the sum; ends with status 1
if one is more than four times NumPy's and one such unit. The suite has sums up to 1e7. Products are
of two rows and two columns.

    python tests/accuracy.py --special 2000 [NAME ...]

prints the largest errors of the special functions in ULP beside SciPy's, from values of mpmath at
a few thousand points; ends with status 1 if one is above 4 in float32.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

import weft

KINDS = ("normal", "uniform")
ADDITIONS = 1 << 27  # of all seeds of one length


def errors(count: int, kind: str, seeds: int) -> tuple[float, float, float]:
    """Median errors of Weft's and NumPy's sums, and the spacing of floats at the sum."""
    total = weft.compile(lambda x: x.sum())
    found = []
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        x = (rng.standard_normal if kind == "normal" else rng.random)(count, np.float32)
        exact = x.sum(dtype=np.float64)
        found.append((abs(total(x) - exact), abs(x.sum() - exact),
                      np.spacing(np.float32(abs(exact)))))
    ours, theirs, ulp = np.median(found, axis=0)
    return float(ours), float(theirs), float(ulp)


def product_errors(count: int, kind: str, seeds: int) -> tuple[float, float, float]:
    """The same of products of matrices whose sums have so many terms."""
    product = weft.compile(lambda x, y: x @ y)
    found = []
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        draw = rng.standard_normal if kind == "normal" else rng.random
        x, y = draw((2, count), np.float32), draw((count, 2), np.float32)
        exact = np.array([[(row.astype(np.float64) * column).sum() for column in y.T] for row in x])
        found.append((np.median(abs(product(x, y) - exact)), np.median(abs(x @ y - exact)),
                      np.spacing(np.median(abs(exact)).astype(np.float32))))
    ours, theirs, ulp = np.median(found, axis=0)
    return float(ours), float(theirs), float(ulp)


def special(count: int, names: list[str]) -> bool:
    """Print the table of the special functions; whether one is above 4 ULP in float32."""
    import special_reference as reference
    from scipy import special as scipy
    wrong = False
    print("function            float32      scipy    float64      scipy")
    for name in names or reference.CASES:
        case, row = reference.CASES[name], []
        base = name.split()[0]
        ours = reference.OURS.get(base) or getattr(weft.special, base)
        theirs = case.scipy or getattr(scipy, base)
        compiled = weft.compile(lambda *xs, ours=ours: ours(*xs), on_recompile="silent")
        for dtype in (np.float32, np.float64):
            args = reference.points(name, dtype, count)
            exact = reference.exact(name, args)
            row += [reference.errors(name, result, exact).max()
                    for result in (compiled(*args), theirs(*args))]
        wrong |= bool(row[0] > 4)
        print(f"{name:16}" + "".join(f"{error:11.3g}" for error in row), flush=True)
    return wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--special", type=int, default=0, help="points of each special function")
    parser.add_argument("names", nargs="*", help="special functions, else all")
    parser.add_argument("--most", type=float, default=1e8, help="elements of the longest sum")
    options = parser.parse_args()
    if options.special:
        sys.path.insert(0, str(Path(__file__).parent / "support"))
        with np.errstate(all="ignore"):
            sys.exit(special(options.special // 4, options.names))
    count, wrong, most = 10, False, options.most
    print("terms       kind        weft    numpy    of products    numpy")
    while count <= most:
        for kind in KINDS:
            print(f"{count:<12.0e}{kind:<8}", end="")
            for measured in (errors, product_errors):
                ours, theirs, ulp = measured(count, kind, max(3, min(101, ADDITIONS // count)))
                wrong |= ours > 4 * theirs + ulp
                print(f"{ours / ulp:8.2f} {theirs / ulp:8.2f}", end="      ", flush=True)
            print()
        count *= 10
    sys.exit(wrong)


if __name__ == "__main__":
    main()
