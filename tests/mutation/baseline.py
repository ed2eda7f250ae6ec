"""What each test covers and how long it takes, from one run of the suite without a mutant."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from importlib.util import find_spec
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
_LEFT_OUT = (".git", ".venv", "__pycache__", ".hypothesis", ".*_cache", "build", "dist",
             "*.egg-info", ".mutation")
_SOURCES = (".py", ".ini", ".ir", ".txt")  # golden files, too


@dataclass(frozen=True)
class Project:
    """A package whose root is the folder ``root``, its folders to mutate and its test files."""

    root: Path
    folders: tuple[str, ...] = ("passes", "codegen", "runtime", "frontend")
    tests: tuple[str, ...] = ()  # relative to ``tests``; none means all
    package: str = "weft"

    def files(self) -> list[str]:
        """The files to mutate."""
        return [path.relative_to(self.root).as_posix() for folder in self.folders
                for path in sorted((self.root / folder).rglob("*.py"))]

    def digest(self) -> str:
        """Changes with every file outside the tests that a result depends on."""
        return self._digest(path for path in self._paths() if self._tests not in path.parents)

    def suite(self) -> dict[str, str]:
        """A digest of each test file, with the helpers that any of them may use."""
        tests = [path for path in self._paths() if self._tests in path.parents]
        files = {path.relative_to(self._tests).as_posix(): path for path in tests
                 if path.match("test_*.py")}
        shared = [path for path in tests if path.suffix == ".py" and path not in files.values()]
        return {name: self._digest([path, *shared]) for name, path in files.items()
                if not self.tests or name in self.tests}

    @property
    def _tests(self) -> Path:
        return self.root / "tests"

    def _paths(self) -> list[Path]:
        return [path for path in sorted(self.root.rglob("*.*"))
                if path.suffix in _SOURCES and not any(
                    fnmatch(part, pattern) for part in path.relative_to(self.root).parts
                    for pattern in (*_LEFT_OUT, HERE.name))]

    def _digest(self, paths: Iterable[Path]) -> str:
        total = hashlib.sha256(repr(self.folders).encode())
        for path in paths:
            total.update(path.read_bytes())
        return total.hexdigest()

    def copied(self, to: Path) -> Path:
        """A copy that ``import`` finds when ``to`` is on the path; its test folder."""
        shutil.copytree(self.root, to / self.package, ignore=shutil.ignore_patterns(*_LEFT_OUT))
        return to / self.package / "tests"


def environment(folder: Path, **more: str) -> dict[str, str]:
    """For a process that imports the copy in ``folder`` and the plugin beside it."""
    support = folder / "support"
    kept = {name: value for name, value in os.environ.items() if not name.startswith("MUTATION_")}
    path = os.pathsep.join([str(folder), str(support), *filter(None, [kept.get("PYTHONPATH")])])
    return {**kept, "PYTHONPATH": path, "PYTHONHASHSEED": "0", "TMPDIR": str(support), **more}


def with_support(folder: Path) -> Path:
    """The plugin, and what makes coverage begin in every process that is told so."""
    support = folder / "support"
    support.mkdir(parents=True)
    shutil.copy(HERE / "plugin.py", support / "mutation_plugin.py")
    (support / "sitecustomize.py").write_text(
        "import os\nif 'COVERAGE_PROCESS_START' in os.environ:\n"
        "    import coverage\n    coverage.process_startup()\n", encoding="utf-8")
    return support


def pytest_command(*arguments: str) -> list[str]:
    """pytest with the plugin, the same way every time."""
    seeded = ["--hypothesis-seed=0"] if find_spec("hypothesis") else []
    return [sys.executable, "-m", "pytest", "-q", "-p", "mutation_plugin",
            "-p", "no:cacheprovider", "-o", "faulthandler_timeout=0",  # the plugin has limits
            *seeded, *arguments]


def file_of(test: str) -> str:
    """The test file of a test's full name."""
    return test.partition("::")[0]


@dataclass(frozen=True)
class Coverage:
    """``lines[file][number]`` are the tests that run a line; "" among them means its import.

    ``spent[test]`` are seconds, of the fixtures that it shares with others and, by "", its own.
    """

    spent: Mapping[str, Mapping[str, float]]
    lines: Mapping[str, Mapping[int, frozenset[str]]]

    def tests_of(self, file: str, first: int, last: int) -> list[str]:
        """The tests that run one of these lines, quickest first.

        What runs on import concerns every test that runs anything of the file.
        """
        table = self.lines.get(file, {})
        found = frozenset[str]().union(*(table.get(n, ()) for n in range(first, last + 1)))
        return self.near(file) if "" in found else self._ordered(found)

    def quickest(self, count: int) -> list[str]:
        """The quickest of all tests."""
        return self._ordered(self.spent)[:count]

    def near(self, file: str) -> list[str]:
        """The tests that run anything of a file, quickest first."""
        return self._ordered(frozenset[str]().union(*self.lines.get(file, {}).values()))

    def closest(self, tests: Sequence[str], files: int = 3) -> list[str]:
        """Those of the few test files that have many of them and little else, in their order."""
        total = Counter(map(file_of, self.spent))
        worth = {file: count**2 / total[file]
                 for file, count in Counter(map(file_of, tests)).items()}
        chosen = sorted(worth, key=lambda file: (-worth[file], file))[:files]
        return [test for test in tests if file_of(test) in chosen]

    def seconds(self, test: str) -> float:
        """What a test takes alone."""
        return sum(self.spent[test].values())

    def within(self, tests: Iterable[str], seconds: float) -> list[str]:
        """The first of them that together take no longer; at least one if there are any."""
        chosen, parts = list[str](), dict[str, float]()
        for test in tests:
            parts |= self.spent[test]
            parts[test] = parts.pop("")
            if chosen and sum(parts.values()) > seconds:
                break
            chosen.append(test)
        return chosen

    def _ordered(self, tests: Iterable[str]) -> list[str]:
        known = [test for test in tests if test in self.spent]
        return sorted(known, key=lambda test: (self.seconds(test), test))


def measure(project: Project, state: Path, jobs: int) -> Path:
    """Run the suite with coverage by test, in as many processes as ``jobs``; what it wrote.

    Only test files run that have changed since they were measured, unless the sources have.
    """
    import coverage

    done, suite = state / "baseline" / project.digest(), project.suite()
    known, seconds = _loaded(done / "suite.json"), _loaded(done / "seconds.json")
    files = [file for file, digest in suite.items() if known.get(file) != digest]
    if not files:
        return done
    if not known:
        shutil.rmtree(state / "baseline", ignore_errors=True)
        done.mkdir(parents=True)
    seconds = {test: spent for test, spent in seconds.items()
               if (file := file_of(test)) in suite and file not in files}
    work = _work(done)  # one place for all measurements: coverage knows files by their paths
    shutil.rmtree(work, ignore_errors=True)
    data = work / "data"
    data.mkdir(parents=True)
    tests = project.copied(work)
    with_support(work)
    runs = [_started(project, work, tests, data, files[at::jobs], at)
            for at in range(min(jobs, len(files)))]
    for at, run in enumerate(runs):
        if run.wait() not in (0, 1):  # failed tests are left out; anything else is no baseline
            output = (data / f"output{at}.txt").read_text(encoding="utf-8", errors="replace")
            raise RuntimeError(f"the suite does not run:\n{output[-2000:]}")
    for path in sorted(data.glob("seconds*.json")):
        seconds |= _loaded(path)
    combined = coverage.Coverage(data_file=str(done / "coverage"), config_file=False)
    combined.load()
    combined.combine([str(data)])
    combined.save()
    (done / "seconds.json").write_text(json.dumps(seconds), encoding="utf-8")
    (done / "suite.json").write_text(json.dumps(suite), encoding="utf-8")
    shutil.rmtree(work)
    return done


def _work(done: Path) -> Path:
    return done / "run"


def _loaded(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def _started(
    project: Project, work: Path, tests: Path, data: Path, files: Sequence[str], number: int
) -> subprocess.Popen[bytes]:
    included = "\n    ".join(f"{work / project.package}/{folder}/*" for folder in project.folders)
    settings = work / "coveragerc"
    settings.write_text(f"[run]\nparallel = true\ndata_file = {data}/coverage\ninclude =\n    "
                        f"{included}\ncontext = ${{MUTATION_CONTEXT-}}\n", encoding="utf-8")
    with (data / f"output{number}.txt").open("wb") as stream:
        return subprocess.Popen(
            pytest_command(*files), cwd=tests, stdout=stream, stderr=stream, env=environment(
                work, COVERAGE_PROCESS_START=str(settings),
                MUTATION_RECORD=str(data / f"seconds{number}.json")))


def read(project: Project, done: Path, files: Sequence[str]) -> Coverage:
    """What ``measure`` wrote, of the files that matter."""
    from coverage import CoverageData

    data = CoverageData(str(done / "coverage"))
    data.read()
    lines: dict[str, dict[int, frozenset[str]]] = {}
    for file in files:
        # A subprocess's static context and a test's own are both the test's name.
        found = data.contexts_by_lineno(str(_work(done) / project.package / file))
        table: dict[int, frozenset[str]] = defaultdict(frozenset)
        for number, contexts in found.items():
            table[number] = frozenset(contexts)
        lines[file] = dict(table)
    return Coverage(_loaded(done / "seconds.json"), lines)
