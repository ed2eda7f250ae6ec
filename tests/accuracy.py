"""Errors of float32 sums against float64, beside NumPy's: they grow as the logarithm of the length.

    python tests/accuracy.py --most 1e8

prints medians over several seeds, in units of the spacing of floats at the sum; ends with status 1
if one is more than four times NumPy's and one such unit. The suite has sums up to 1e7.
"""

from __future__ import annotations

import argparse
import sys

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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--most", type=float, default=1e8, help="elements of the longest sum")
    count, wrong = 10, False
    most = parser.parse_args().most
    print("elements    kind        weft    numpy")
    while count <= most:
        for kind in KINDS:
            ours, theirs, ulp = errors(count, kind, max(3, min(101, ADDITIONS // count)))
            wrong |= ours > 4 * theirs + ulp
            print(f"{count:<12.0e}{kind:<8}{ours / ulp:8.2f} {theirs / ulp:8.2f}", flush=True)
        count *= 10
    sys.exit(wrong)


if __name__ == "__main__":
    main()
