"""Every check that needs a GPU: kernels, rows and their gradients, nests of transforms, and steps,
each in processes of their own, side by side."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from weft.ir.record import record

TESTS = Path(__file__).resolve().parents[2] / "tests"
PARTS = 24   # that rows and kernels are divided into
LATE = 420   # seconds after which a process is ended
SAID = 700   # characters of what is wrong


@record(frozen=True)
class Job:
    """One process: what it looks at, and how it is started."""

    what: str
    command: tuple[str, ...]


@record(frozen=True)
class Found:
    """What a process said: how many cases there were, and what is wrong."""

    what: str
    cases: int
    problems: tuple[str, ...]
    seconds: float


def jobs() -> Iterator[Job]:
    """What there is to do, the longest first."""
    listed = subprocess.run(
        [sys.executable, "-c", "import json; from ops.cases import COMPUTING; "
         "from triton_checks import CASES, FAILING, FINE; "
         "print(json.dumps([[op.name for op in COMPUTING], [*CASES, *FAILING, *FINE]]))"],
        env=_environment(), capture_output=True, text=True, check=True)
    rows, kernels = json.loads(listed.stdout)
    for part in range(PARTS):
        yield Job("rows", (str(TESTS / "ir" / "ops" / "triton_rows.py"), *rows[part::PARTS]))
    for part in range(PARTS // 3):
        yield Job("kernels", (str(TESTS / "codegen" / "triton_interpret.py"),
                              *kernels[part::PARTS // 3]))
    yield Job("transforms", ("-m", "every_transform", "triton", "--every", "10"))
    yield Job("steps", ("-m", "pytest", "-q", "-p", "no:cacheprovider", "-n0",
                        str(TESTS / "frontend" / "test_cuda_devices.py")))


def _environment() -> dict[str, str]:
    paths = [TESTS, TESTS / "support", TESTS / "codegen", TESTS / "ir"]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(
        [*map(str, paths), *filter(None, [os.environ.get("PYTHONPATH")])])}


def run(job: Job) -> Found:
    """Run a process to its end."""
    began = time.monotonic()
    try:
        done = subprocess.run([sys.executable, *job.command], env=_environment(), cwd=TESTS,
                              capture_output=True, text=True, check=False, timeout=LATE)
        cases, problems = _read(job.what, done.stdout)
        if done.returncode and not problems:
            problems = [f"ended with {done.returncode}: {done.stderr[-600:]}"]
    except subprocess.TimeoutExpired as problem:
        cases, problems = 0, [f"not done after {LATE} s: {(problem.stdout or b'')[-300:]!r}"]
    return Found(job.what, cases, tuple(problems), time.monotonic() - began)


def _read(what: str, text: str) -> tuple[int, list[str]]:
    """What the output of a process says."""
    if what == "kernels":
        report = json.loads(text) if text else {}
        return len(report), [f"{name}: {said.strip()[-400:]}" for name, said in report.items() if (
            said if not name.startswith("error of") else not said.startswith("W"))]
    lines = text.splitlines()
    if what == "rows":
        count = [int(line.split()[1]) for line in lines if line.startswith("done ")]
        return sum(count), [line for line in lines if line.startswith("FAIL")]
    return len(lines), [line for line in lines[-60:] if line.startswith(("FAILED", "ERROR", "E "))
                        or ("problem" in line and ", 0 problems" not in line)]


def run_checks() -> int:
    """Run them all, and print what each kind found, then what is wrong; how much that is."""
    every = list(jobs())
    with ThreadPoolExecutor(max(1, (os.cpu_count() or 2) - 1)) as pool:
        found = list(pool.map(run, every))
    for what in dict.fromkeys(each.what for each in found):
        parts = [each for each in found if each.what == what]
        print(f"{what:<12} {sum(each.cases for each in parts):>6} cases "
              f"{sum(len(each.problems) for each in parts):>5} wrong "
              f"{max(each.seconds for each in parts):>6.0f} s", flush=True)
    for each in found:
        for problem in each.problems:
            print(f"{each.what}: {problem[:SAID]}")
    return sum(len(each.problems) for each in found)
