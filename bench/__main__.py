"""``python -m bench [families]``, from the checkout, where Weft is installed.

Prints a table for each family; NOTES.md says how to read them. ``python -m bench gpu`` is by
itself: it times kernels on a GPU, or with ``--checks`` looks at their results.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path

FAMILIES = ("calls", "steps", "elementwise", "norms", "reductions", "matmul", "training",
            "networks", "numerics", "numpy_programs", "rounds", "stores", "compile_time", "imports")


# What peers call the instruction set of a target, and where they look for it.
INSTRUCTIONS = {
    "x86-64-v3": {
        "OPENBLAS_CORETYPE": "Haswell", "NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL AVX512_SPR",
        "ATEN_CPU_CAPABILITY": "avx2", "ONEDNN_MAX_CPU_ISA": "AVX2",
        "XLA_FLAGS": "--xla_cpu_max_isa=AVX2"},
}


def choose_cpus(count: int | None) -> list[int]:
    """So many of the CPUs that this process may use, one of each core before any sibling."""
    seen: set[str] = set()
    cores: list[int] = []
    siblings: list[int] = []
    for cpu in sorted(os.sched_getaffinity(0)):
        path = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")
        core = path.read_text().strip() if path.exists() else str(cpu)
        (siblings if core in seen else cores).append(cpu)
        seen.add(core)
    return (cores + siblings)[:len(cores) if count is None else count]


def limit_threads(threads: int | None, target: str | None = None) -> int:
    """Give everything that this process will load so many threads; None: one for each core.

    BLAS, OpenMP and XLA read these when they are loaded, so this comes before NumPy is imported.
    """
    cpus = choose_cpus(threads)
    os.sched_setaffinity(0, cpus)
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NPROC"):
        os.environ[name] = str(len(cpus))
    # Its compiled code holds the number of threads and the instruction set, which the keys of its
    # cache may not: code for AVX2 in a process that has AVX-512 corrupts memory.
    kind = f"{os.getuid()}-{len(cpus)}-{target or 'native'}"
    cache = Path(tempfile.gettempdir()) / f"weft-bench-inductor-{kind}"
    os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", str(cache))
    return len(cpus)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("families", nargs="*", metavar="family",
                        help=f"of {', '.join(FAMILIES)}; all of them by default")
    parser.add_argument("--threads", type=int, help="of every contestant; default: all cores")
    parser.add_argument("--quick", action="store_true", help="fewer workloads and samples")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the numbers there")
    parser.add_argument("--target", choices=sorted(INSTRUCTIONS), help="the instructions that "
                        "Weft, the peers and the C compiler may use; default: those of this CPU")
    parser.add_argument("--checks", action="store_true", help="with gpu: whether results are right")
    parser.add_argument("--peers", help="comma-separated, of numpy, jax, torch, torch-compiled; "
                                        "default: all that are installed; NumPy always takes part")
    given = parser.parse_args()
    if (given.families != ["gpu"]) and (given.checks or "gpu" in given.families):
        parser.error("gpu is run by itself, and --checks with it")
    unknown = set(given.families) - {*FAMILIES, "gpu"}
    if unknown:
        parser.error(f"no family {min(unknown)!r}; there are {', '.join(FAMILIES)}")
    most = len(os.sched_getaffinity(0))
    if given.threads is not None and not 1 <= given.threads <= most:
        parser.error(f"--threads {given.threads}: this process may use {most} CPUs")
    return given


def main() -> None:
    given = arguments()
    if given.families == ["gpu"]:
        from .gpu.run import run_gpu

        run_gpu(given.checks)
        return
    threads = limit_threads(given.threads, given.target)
    os.environ.update(INSTRUCTIONS.get(given.target, {}))
    from .run import run_families

    peers = None if given.peers is None else given.peers.split(",")
    run_families(given.families or FAMILIES, threads, peers, given.quick, given.json,
                 given.target)


if __name__ == "__main__":
    main()
