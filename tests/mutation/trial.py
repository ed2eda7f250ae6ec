"""One mutant against its tests, in a process of its own that may hang, crash or eat memory."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import time
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from .baseline import HERE, Coverage, Project, environment, file_of, pytest_command, with_support
from .mutants import Mutant

NOTICED = ("killed", "timed out")


@dataclass(frozen=True)
class Limits:
    """``seconds`` of tests a mutant (by their times without it), ``gigabytes`` of addresses.

    A test hangs if it takes ``slower`` times as long and ``start`` seconds; so does the whole of
    them, with another ``start`` for starting the process and collecting its tests.
    """

    seconds: float = 40.0
    slower: float = 4.0
    start: float = 20.0
    gigabytes: float = 16.0


@dataclass(frozen=True)
class Outcome:
    """What became of a mutant; ``tests`` of the ``covering`` ones were chosen."""

    status: str
    seconds: float = 0.0
    tests: int = 0
    covering: int = 0
    killer: str = ""


@dataclass(frozen=True)
class Equivalent:
    """Mutants of a line that no test can notice: the line's text, the mutant's diff, why."""

    file: str
    line: str
    mutation: str
    reason: str

    @staticmethod
    def all(path: Path = HERE / "equivalent.toml") -> list[Equivalent]:
        """Those of a file; raises TypeError for one without all four fields."""
        found = tomllib.loads(path.read_text(encoding="utf-8")).get("mutant", [])
        return [Equivalent(**item) for item in found]

    def means(self, mutant: Mutant, source: str) -> bool:
        return (self.file == mutant.file and self.mutation == mutant.text
                and self.line == source.splitlines()[mutant.line - 1].strip())


@dataclass
class Bench:
    """A copy of the project, for one mutant after the other."""

    project: Project
    folder: Path
    limits: Limits

    def __post_init__(self) -> None:
        self.tests = self.project.copied(self.folder)
        self.support = with_support(self.folder)

    def judge(self, mutant: Mutant, coverage: Coverage) -> Outcome:
        """Run the tests that cover the mutant, then those of its file, within the limits.

        First a few, of the test files that have most to do with it: most mutants are found there,
        and the others need not be collected.
        """
        covering = coverage.tests_of(mutant.file, *mutant.run)
        outcome, known = Outcome("not covered"), set[str]()
        # What runs once in a process is covered by one test only, and any near it may notice.
        for tests, seconds in ((coverage.closest(covering), self.limits.seconds / 5),
                               (covering, self.limits.seconds),
                               (coverage.near(mutant.file), self.limits.seconds)):
            left = [test for test in tests if test not in known] if covering else []
            if left and outcome.status not in NOTICED:
                chosen = coverage.within(left, seconds)
                known |= set(chosen)
                tried = self._tried(mutant, chosen, coverage, len(covering))
                outcome = replace(tried, seconds=outcome.seconds + tried.seconds, tests=len(known))
        return outcome

    def _tried(
        self, mutant: Mutant, tests: Sequence[str], coverage: Coverage, covering: int
    ) -> Outcome:
        start = time.perf_counter()
        with self._applied(mutant):
            status, killer = self.run({test: coverage.seconds(test) for test in tests})
        return Outcome(status, time.perf_counter() - start, len(tests), covering, killer)

    @contextmanager
    def _applied(self, mutant: Mutant) -> Iterator[None]:
        path = self.folder / self.project.package / mutant.file
        source, times = path.read_text(encoding="utf-8"), path.stat()
        path.write_text(mutant.applied(source), encoding="utf-8")
        try:
            yield
        finally:
            path.write_text(source, encoding="utf-8")
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))

    def run(self, tests: Mapping[str, float]) -> tuple[str, str]:
        """Whether tests that take these seconds notice, and which one did.

        None of their processes is left.
        """
        start, slower = self.limits.start, self.limits.slower
        each = {test: start + slower * expected for test, expected in tests.items()}
        whole = 2 * start + slower * sum(tests.values())
        chosen = self.support / "chosen.json"
        chosen.write_text(json.dumps(each), encoding="utf-8")
        files = dict.fromkeys(map(file_of, tests))
        command = pytest_command("-x", "--tb=no", *files)
        output = self.support / "output.txt"
        with output.open("wb") as stream:
            process = subprocess.Popen(
                command, cwd=self.tests, stdin=subprocess.DEVNULL, stdout=stream, stderr=stream,
                env=environment(self.folder, MUTATION_SELECT=str(chosen),
                                PYTHONDONTWRITEBYTECODE="1"),
                start_new_session=True, preexec_fn=self._limited)
            try:
                code = process.wait(whole)
            except subprocess.TimeoutExpired:
                code = None
            finally:
                _end(process)
        if code is None:
            return "timed out", ""
        if code == 0:
            return "survived", ""
        said = output.read_text(errors="replace").splitlines()
        if any("Timeout (" in line for line in said):  # faulthandler's words
            return "timed out", ""
        failed = [line for line in said if line.startswith(("FAILED", "ERROR"))]
        return "killed", failed[0] if failed else f"exit status {code}"

    def _limited(self) -> None:
        memory = int(self.limits.gigabytes * 2**30)
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the process and all that it has started: they are a session of their own."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
