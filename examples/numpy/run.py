"""Runs the programs of this folder, which know nothing of Weft, as they stand and compiled.

    python examples/numpy/run.py                       all of them, on small inputs
    python examples/numpy/run.py kmeans --size normal

Each is a file with ``inputs(size)``, which gives arguments, and ``run(...)``, which computes.
"""

import argparse
import importlib.util
import time
from pathlib import Path

import numpy as np

import weft

FOLDER = Path(__file__).parent
PROGRAMS = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem != "run")


def load(name):
    """The module of a program."""
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def difference(found, wanted):
    """The largest difference of two nests of results, as a part of the largest number of each
    array. Raises ValueError where structure, dtypes or shapes differ."""
    leaves, structure = weft.tree.flatten(wanted)
    others, other = weft.tree.flatten(found)
    if structure != other:
        raise ValueError(f"a result like {other}, not {structure}")
    worst = 0.0
    for one, two in zip(map(np.asarray, leaves), map(np.asarray, others), strict=True):
        if (one.dtype, one.shape) != (two.dtype, two.shape):
            raise ValueError(f"{two.dtype}{two.shape} where NumPy has {one.dtype}{one.shape}")
        if not np.array_equal(one, two, equal_nan=one.dtype.kind in "fc"):
            finite = np.isfinite(one)
            if not np.array_equal(one[~finite], two[~finite], equal_nan=True):
                raise ValueError("infinities or NaN in other places")
            one, two = one[finite].astype(complex), two[finite].astype(complex)
            worst = max(worst, np.max(np.abs(one - two)) / np.max(np.abs(one), initial=1e-300))
    return worst


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("programs", nargs="*", default=PROGRAMS, metavar="program")
    parser.add_argument("--size", choices=("small", "normal"), default="small")
    given = parser.parse_args()
    for name in given.programs:
        program = load(name)
        args = program.inputs(given.size)
        start = time.perf_counter()
        wanted = program.run(*args)
        numpy = time.perf_counter() - start
        compiled = weft.compile(program.run)
        try:
            found = compiled(*args)
        except weft.Error as problem:
            print(f"{name:24}{str(problem).splitlines()[0]}")
            continue
        start = time.perf_counter()
        compiled(*args)
        native = time.perf_counter() - start
        print(f"{name:24}numpy {1e3 * numpy:9.3f} ms   weft {1e3 * native:9.3f} ms   "
              f"compiled in {1e-3 * compiled.cache_info().milliseconds:5.2f} s   "
              f"difference {difference(found, wanted):.0e}")


if __name__ == "__main__":
    main()
