"""What it takes to have a framework: time to import it, to its first result, and bytes on disk.

Every measurement is a process of its own. NumPy is there before the clock starts, and does not
count among the dependencies: everybody has it.
"""

from __future__ import annotations

import importlib.metadata
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

import weft

from .compare import Bench
from .report import Table, number

SOURCES = ("ir", "passes", "codegen", "runtime", "frontend")

# The first line is timed as the import, the second as the first call.
PROGRAMS = {
    "weft": ("import weft", "weft.compile(lambda x: x * 2 + 1)(x)"),
    "jax": ("import jax", "jax.jit(lambda x: x * 2 + 1)(x).block_until_ready()"),
    "torch": ("import torch", "torch.from_numpy(x) * 2 + 1"),
    "torch-compiled": ("import torch", "torch.compile(lambda x: x * 2 + 1)(torch.from_numpy(x))"),
}
TIMED = """
import time
import numpy as np
x = np.ones(8, np.float32)
start = time.perf_counter()
{}
imported = time.perf_counter()
{}
print(imported - start, time.perf_counter() - imported)
"""


def once(name: str) -> tuple[float, float]:
    """Seconds of the import and of the first call, in a new process."""
    with tempfile.TemporaryDirectory() as folder:
        # Not from this folder, and with nothing remembered from an earlier run.
        environment = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": folder,
                       "PYTHONDONTWRITEBYTECODE": ""}  # which the round before wrote, as anywhere
        done = subprocess.run([sys.executable, "-c", TIMED.format(*PROGRAMS[name])], cwd=folder,
                              env=environment, capture_output=True, text=True, check=True)
    first, second = done.stdout.split()[-2:]
    return float(first), float(second)


def installed(name: str, seen: set[str]) -> int:
    """Bytes of a distribution and of what it requires, but for NumPy; ``seen`` are not counted."""
    key = re.sub(r"[-_.]+", "-", name).lower()
    if key in seen:
        return 0
    seen.add(key)
    try:
        found = importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError:
        return 0  # required on other platforms only
    paths = [Path(str(file.locate())) for file in found.files or ()]
    if key == "weft":
        # Installed for development, its own files are elsewhere.
        root = Path(weft.__file__).parent
        paths = [*root.glob("*.py"), *(path for folder in SOURCES
                                       for path in (root / folder).glob("**/*.py"))]
    total = sum(path.stat().st_size for path in paths if path.exists())
    for required in found.requires or ():
        words = re.match(r"[\w.-]+", required)
        if words and not re.search(r"\bextra\b", required):
            total += installed(words[0], seen)
    return total


def run(bench: Bench) -> list[Table]:
    table = Table("imports", ("package", "import ms beyond NumPy", "first call ms",
                              "installed MB beyond NumPy"))
    names = [framework.name for framework in bench.frameworks if framework.name in PROGRAMS]
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in names}
    for number_of_round in range(3 if bench.quick else 9):
        for name in names:
            if number_of_round and name == "torch-compiled":
                continue  # once is long enough
            bench.progress(f"import {name}, round {number_of_round + 1}")
            times[name].append(once(name))
    for name in names:
        imports, calls = (median(column) for column in zip(*times[name], strict=True))
        package = name.removesuffix("-compiled")
        size = installed(package, {"numpy"})
        table.rows.append([name, number(1e3 * imports), number(1e3 * calls), number(size / 1e6)])
        table.data.append({"package": name, "import": imports, "first call": calls, "bytes": size})
    return [table]
