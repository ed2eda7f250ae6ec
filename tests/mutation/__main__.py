"""The command line: sample, run, report; see the package's docstring."""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from .baseline import HERE, Coverage, Project, measure, read
from .mutants import Mutant, sampled
from .trial import NOTICED, Bench, Equivalent, Limits, Outcome


class Results:
    """Outcomes by mutant, written after each; those of other sources are forgotten.

    What nobody noticed is forgotten once the tests are others.
    """

    def __init__(self, path: Path, digest: str, suite: Mapping[str, str]) -> None:
        self._path, self._digest, self._lock = path, digest, threading.Lock()
        self._suite = hashlib.sha256(repr(sorted(suite.items())).encode()).hexdigest()
        self._mutants: dict[str, dict[str, Any]] = {}
        if path.is_file():
            found = json.loads(path.read_text(encoding="utf-8"))
            if found["sources"] == digest:
                self._mutants = found["mutants"]

    def get(self, mutant: Mutant) -> Outcome | None:
        found = self._mutants.get(mutant.key)
        if found is None or (
                found["status"] not in NOTICED and found["suite"] != self._suite):
            return None
        return Outcome(**{name: found[name] for name in Outcome.__dataclass_fields__})

    def add(self, mutant: Mutant, outcome: Outcome, diff: str) -> None:
        with self._lock:
            self._mutants[mutant.key] = {
                **asdict(outcome), "diff": diff, "suite": self._suite}
            whole = {"sources": self._digest, "mutants": self._mutants}
            new = self._path.with_suffix(".new")
            new.write_text(json.dumps(whole, indent=1), encoding="utf-8")
            new.replace(self._path)  # at once, so that a broken-off run leaves a whole file


def run(
    project: Project, chosen: Sequence[Mutant], state: Path, jobs: int, limits: Limits,
    equivalent: Sequence[Equivalent], say: Callable[[str], None] = print,
) -> dict[Mutant, Outcome]:
    """The outcome of each mutant; what ``state`` knows already is not run again."""
    state.mkdir(parents=True, exist_ok=True)
    results = Results(state / "results.json", project.digest(), project.suite())
    sources = {file: (project.root / file).read_text(encoding="utf-8")
               for file in {mutant.file for mutant in chosen}}
    outcomes: dict[Mutant, Outcome] = {}
    with tempfile.TemporaryDirectory(prefix="mutation") as folder:
        work = Path(folder)
        say("the suite without a mutant, unless its coverage is known")
        coverage = read(project, measure(project, state, jobs), list(sources))
        benches = SimpleQueue[Bench]()
        for number in range(jobs):
            benches.put(Bench(project, work / f"bench{number}", limits))
        _check(benches, coverage)

        def judge(mutant: Mutant) -> None:
            source = sources[mutant.file]
            diff = mutant.diff(source)
            outcome = results.get(mutant)
            if any(item.means(mutant, source) for item in equivalent):
                outcome = Outcome("equivalent")
            elif outcome is None:
                bench = benches.get()
                try:
                    outcome = bench.judge(mutant, coverage)
                finally:
                    benches.put(bench)
                results.add(mutant, outcome, diff)
            outcomes[mutant] = outcome
            detail = outcome.killer or (f"{outcome.tests} tests, {outcome.covering} covering"
                                        if outcome.tests else "")
            say(f"{outcome.status:11} {mutant.file}:{mutant.line}  {mutant.kind}  "
                f"{outcome.seconds:.1f} s  {detail}" + (
                    "" if outcome.status in NOTICED else f"\n{diff}"))

        with ThreadPoolExecutor(jobs) as pool:
            list(pool.map(judge, chosen))
    return outcomes


def _check(benches: SimpleQueue[Bench], coverage: Coverage) -> None:
    """Without a mutant nothing may be noticed, else every mutant would be."""
    bench = benches.get()
    tests = {test: coverage.seconds(test) for test in coverage.quickest(20)}
    status, killer = bench.run(tests) if tests else ("failed", "no test passes")
    benches.put(bench)
    if status != "survived":
        raise RuntimeError(f"tests fail without a mutant: {status} {killer}")


def score(outcomes: Sequence[Outcome]) -> str:
    """One line: the share of noticed mutants among those that can be noticed."""
    counts = Counter(outcome.status for outcome in outcomes)
    noticed = sum(counts[status] for status in NOTICED)
    total = len(outcomes) - counts["equivalent"]
    parts = ", ".join(f"{count} {status}" for status, count in sorted(counts.items()))
    seconds = sum(outcome.seconds for outcome in outcomes) / max(1, len(outcomes))
    return (f"score {100 * noticed / max(1, total):.1f} % of {total} mutants ({parts}); "
            f"{seconds:.1f} s a mutant")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m mutation")
    parser.add_argument("--sample", type=int, default=300, help="how many mutants")
    parser.add_argument("--seed", type=int, default=0, help="which ones")
    parser.add_argument("--jobs", type=int, default=1, help="processes side by side")
    parser.add_argument("--folders", nargs="+", default=list(Project(HERE).folders))
    parser.add_argument("--files", nargs="+", default=[], help="only mutants of these files")
    parser.add_argument("--tests", nargs="+", default=[], help="only these test files")
    parser.add_argument("--seconds", type=float, default=Limits.seconds, help="of tests a mutant")
    parser.add_argument("--gigabytes", type=float, default=Limits.gigabytes)
    parser.add_argument("--state", type=Path, default=Path(".mutation"), help="kept between runs")
    options = parser.parse_args(arguments)
    project = Project(HERE.parent.parent, tuple(options.folders), tuple(options.tests))
    chosen = sampled(project.root, options.files or project.files(), options.sample, options.seed)
    start = time.perf_counter()
    limits = Limits(seconds=options.seconds, gigabytes=options.gigabytes)
    outcomes = run(project, chosen, options.state.absolute(), options.jobs, limits,
                   Equivalent.all(), lambda text: print(text, flush=True))
    print(f"{score(list(outcomes.values()))}, {time.perf_counter() - start:.0f} s in all")
    return 0


if __name__ == "__main__":
    sys.exit(main())
