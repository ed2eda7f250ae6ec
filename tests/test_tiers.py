"""The first tier of the tests leaves out no function, row, pass or back end; what it leaves out is
the rest."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import weft
import weft.frontend.numpy_api.dispatch  # its modules add the rows
from weft.frontend.numpy_api.registry import ROWS
from weft.ir.ops.table import OPS

TESTS = Path(__file__).parent
PASSES = Path(weft.__file__).parent / "passes"
# What may be asked for: folders, a file, a test, and tests by a part of their names.
RUNS = [["."], ["--rest", "."], ["--all", "."], ["ir"], ["ir/test_fold.py"], ["--rest", "passes"],
        ["ir/test_fold.py::test_folded_constants_have_the_bits_of_the_kernels"],
        ["ir", "-k", "test_folded_constants"], ["ir", "ir/test_fold.py"], ["ir", "--update-golden"]]
BACK_ENDS = {
    "the CPU": "ir/ops/test_rows.py::test_value", "exports": "frontend/test_export.py::",
    "Triton's source": "codegen/test_triton.py::test_source",
    "Triton's interpreter": "codegen/test_triton.py::test_interpreted",
    "Triton's compiler": "codegen/test_triton.py::test_compiled",
    "rows in Triton": "ir/ops/test_rows_triton.py::test_every_row_in_the_interpreter"}
COLLECT = """
import json, sys
import pytest

class Seen:
    def pytest_collection_finish(self, session):
        import tiers
        # Each collection of a process adds backslashes to a name that has some.
        found.append({item.nodeid.replace(chr(92), ""): [
            tiers.row_of(item), item.get_closest_marker("long") is not None]
                      for item in session.items})

found = []
for arguments in json.loads(sys.argv[1]):
    pytest.main(["--collect-only", "-qq", "-p", "no:cacheprovider", *arguments], [Seen()])
print(json.dumps(found))
"""
CALLED = """
import json, sys, threading
import pytest

def trace(frame, event, argument):
    if frame.f_code.co_name != "<module>":
        called.add(frame.f_code.co_filename)

class Calls:
    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items):
        import tiers
        given = sys.argv[2:]  # in this order: once there is nothing left to call, it ends
        items[:] = sorted(
            (item for item in tiers.first_tier(items) if tiers.row_of(item) is None),
            key=lambda item: next(at for at, name in enumerate(given)
                                  if item.nodeid.startswith(name)))

    def pytest_collection_finish(self):
        sys.settrace(trace)
        threading.settrace(trace)

    def pytest_runtest_teardown(self, item):
        if wanted <= called:
            item.session.shouldstop = "there is nothing left to call"

called, wanted = set(), set(json.loads(sys.argv[1]))
pytest.main(["-p", "no:cacheprovider", "--hypothesis-profile=one", *sys.argv[2:]], [Calls()])
sys.settrace(None)
print(json.dumps(sorted(called)))
"""
Tests = dict[str, tuple[str | None, bool]]  # by full name: the row, and whether it is long


def python(code: str, *arguments: str) -> str:
    done = subprocess.run([sys.executable, "-c", code, *arguments], cwd=TESTS, text=True,
                          capture_output=True, check=True)
    return done.stdout.splitlines()[-1]


@pytest.fixture(scope="module")
def runs() -> dict[str, Tests]:
    """What each of RUNS would run."""
    found = json.loads(python(COLLECT, json.dumps(RUNS)))
    return {" ".join(run): tests for run, tests in zip(RUNS, found, strict=True)}


pytestmark = pytest.mark.long


def test_each_test_is_in_one_tier(runs: dict[str, Tests]) -> None:
    every, first, rest = (list(runs[run]) for run in ("--all .", ".", "--rest ."))
    assert sorted(first + rest) == sorted(every)
    assert len(first) < 0.3 * len(every)


def test_of_each_function_there_is_a_case_unless_it_is_long(runs: dict[str, Tests]) -> None:
    wanted = {name.partition("[")[0] for name, (_, long) in runs["--all ."].items() if not long}
    assert wanted == {name.partition("[")[0] for name in runs["."]}
    assert sum(long for _, long in runs["--all ."].values()) < 0.02 * len(runs["--all ."])


def rows(tests: Tests, function: str) -> set[str | None]:
    """The rows that a test function has cases of."""
    return {row for name, (row, _) in tests.items() if name.partition("[")[0] == function}


def test_each_row_has_its_value_tested(runs: dict[str, Tests]) -> None:
    assert rows(runs["."], "ir/ops/test_rows.py::test_value") == {
        op.name for op in OPS.values() if op.samples}
    assert rows(runs["."], "frontend/test_numpy_rows.py::test_values") == {
        row.name for row in ROWS.values() if row.samples}


def test_a_folder_of_cases_by_row_has_one_of_each(runs: dict[str, Tests]) -> None:
    def by_folder(tests: Tests) -> set[tuple[str, str | None]]:
        return {(name.partition("/")[0], row) for name, (row, long) in tests.items()
                if row and not long}

    assert len({folder for folder, _ in by_folder(runs["."])}) == 3
    assert by_folder(runs["."]) == by_folder(runs["--all ."])


@pytest.mark.parametrize("name", BACK_ENDS)
def test_each_back_end_is_tested(name: str, runs: dict[str, Tests]) -> None:
    assert any(test.startswith(BACK_ENDS[name]) for test in runs["."])


def test_functions_of_each_module_of_passes_are_called() -> None:
    """By these tests of the first tier that are not of rows; others call them as well."""
    files = ["passes/test_forwarding.py", "passes/test_split.py", "passes/test_ranges.py",
             "passes/test_elements.py", "frontend/test_control_gradients.py",
             "frontend/test_vmap_branches.py", "frontend/test_gpu_devices.py",
             "passes/test_roll.py"]
    modules = {path for path in PASSES.rglob("*.py") if path.name != "__init__.py"}
    called = json.loads(python(CALLED, json.dumps([*map(str, modules)]), *files, "passes"))
    assert {path.relative_to(PASSES) for path in modules - set(map(Path, called))} == set()


def test_what_is_named_runs_whole(runs: dict[str, Tests]) -> None:
    every = {name for name in runs["--all ."] if name.startswith("ir/")}
    file = {name for name in every if name.startswith("ir/test_fold.py")}
    cases = {name for name in file if name.partition("[")[0].endswith(
        "::test_folded_constants_have_the_bits_of_the_kernels")}
    first = {name for name in runs["."] if name.startswith("ir/")}
    assert len(first & cases) < len(cases) < len(file) < len(every)
    assert set(runs["ir"]) == first and set(runs["ir --update-golden"]) == every
    assert set(runs["ir ir/test_fold.py"]) == first | file
    assert set(runs["ir/test_fold.py"]) == file
    assert set(runs["ir -k test_folded_constants"]) == cases == set(runs[" ".join(RUNS[6])])
    assert set(runs["--rest passes"]) == {
        name for name in runs["--rest ."] if name.startswith("passes/")}


HANGS = """
import ctypes
def test_before(): pass
def test_hang(): ctypes.PyDLL(None).sleep(300)  # with Python's lock
"""


def test_a_test_that_hangs_ends_the_run_with_its_name(tmp_path: Path) -> None:
    for name, code in {"hang": HANGS, "a": "def test_a(): pass", "b": "def test_b(): pass"}.items():
        (tmp_path / f"test_{name}.py").write_text(code)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-c", str(TESTS / "pytest.ini"), "-p", "conftest",
         "-p", "no:cacheprovider", "-o", "faulthandler_timeout=2", "-n2", "--dist=loadfile",
         str(tmp_path)], text=True, capture_output=True, check=False, timeout=120,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(
            [str(TESTS), str(TESTS / "support"), *filter(None, [os.environ.get("PYTHONPATH")])])})
    assert done.returncode == 1, done.stdout + done.stderr
    assert "crashed while running" in done.stdout and "::test_hang" in done.stdout
    assert "in test_hang" in done.stderr
