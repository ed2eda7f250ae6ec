"""Every sample of NumPy's rows, which takes minutes:

    python -m every_sample values                  first and last dims unknown, at many sizes
    python -m every_sample gradients               gradients of these
    python -m every_sample export --some --dims known      as artifacts, loaded again
    TRITON_INTERPRET=1 python -m every_sample triton --dims known     in Triton's interpreter
    TRITON_INTERPRET=1 python -m every_sample triton                  with unknown dims

``--sizes 0,1,2,7,4096`` gives the sizes, ``--some`` takes the first and the last sample of each
row, ``--part 0/4`` a quarter of all. Prints what is wrong, then how many there were.
"""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "support"))

from numpy_dims import (
    SIZES,
    every_sized,
    export_problems,
    gradient_problems,
    in_triton,
    known,
    problems,
    some,
)

WAYS = {"values": problems, "gradients": gradient_problems, "export": export_problems,
        "triton": partial(problems, compile_=in_triton)}


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("way", choices=WAYS)
    parser.add_argument("--dims", choices=("known", "unknown"), default="unknown")
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)))
    parser.add_argument("--some", action="store_true")
    parser.add_argument("--part", default="0/1")
    chosen = parser.parse_args(arguments)
    unknown = chosen.dims == "unknown"
    sizes = tuple(map(int, chosen.sizes.split(","))) if unknown else (-1,)
    part, parts = map(int, chosen.part.split("/"))
    samples = list(every_sized() if unknown else known())
    samples = (some(samples) if chosen.some else samples)[part::parts]
    wrong = 0
    for sized in samples:
        for problem in WAYS[chosen.way](sized, sizes):
            wrong += 1
            print(problem, flush=True)
    print(f"{len(samples)} samples, {wrong} problems")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
