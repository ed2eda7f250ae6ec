"""A pytest plugin, used alone: notes what tests cover and take, or runs chosen ones in order.

A chosen test has its own limit of time, even where it hangs in native code; and Hypothesis finds a
failing example without making it smaller.

It is copied to where mutants are tested, and knows nothing of the rest of the package.
"""

from __future__ import annotations

import faulthandler
import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

RECORD, SELECT, CONTEXT = "MUTATION_RECORD", "MUTATION_SELECT", "MUTATION_CONTEXT"


class Recorder:
    """Switches coverage to each test's own context, for subprocesses by the environment.

    What a test waits for of fixtures that others share is written apart from its own seconds.
    """

    def __init__(self, file: Path) -> None:
        self.file = file
        self.seconds: dict[str, float] = {}
        self.made: dict[str, float] = {}  # seconds by shared fixture
        self.uses: dict[str, list[str]] = {}
        self.failed: set[str] = set()
        self.current = ""

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        import coverage

        current = coverage.Coverage.current()
        os.environ[CONTEXT] = self.current = item.nodeid
        if current is not None:
            current.switch_context(item.nodeid)
        try:
            return (yield)
        finally:
            del os.environ[CONTEXT]
            if current is not None:
                current.switch_context("")
            found = getattr(item, "_fixtureinfo", None)
            self.uses[item.nodeid] = [
                _label(made[-1]) for made in found.name2fixturedefs.values()] if found else []

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[Any]) -> Iterator[Any]:
        start = time.perf_counter()
        try:
            return (yield)
        finally:
            if fixturedef.scope != "function":
                spent = time.perf_counter() - start
                self.made[_label(fixturedef)] = spent
                self.seconds[self.current] = self.seconds.get(self.current, 0.0) - spent

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.seconds[report.nodeid] = self.seconds.get(report.nodeid, 0.0) + report.duration
        if not report.passed:  # a skipped test kills nothing
            self.failed.add(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        passed = {name: {"": max(spent, 0.0), **{
                      part: self.made[part] for part in self.uses[name] if part in self.made}}
                  for name, spent in self.seconds.items() if name not in self.failed}
        self.file.write_text(json.dumps(passed), encoding="utf-8")


def _label(made: pytest.FixtureDef[Any]) -> str:
    return f"{made.baseid}::{made.argname}"


class Selector:
    """Keeps the chosen tests, in their order; one that is gone is an error."""

    def __init__(self, file: Path) -> None:
        self.wanted: dict[str, float] = json.loads(file.read_text(encoding="utf-8"))
        self.output = os.fdopen(os.dup(sys.__stderr__.fileno()), "w")  # pytest takes the original

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        known = {item.nodeid: item for item in items}
        missing = [name for name in self.wanted if name not in known]
        if missing:
            raise pytest.UsageError(f"{len(missing)} tests are gone, such as {missing[0]}")
        items[:] = [known[name] for name in self.wanted]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        faulthandler.dump_traceback_later(self.wanted[item.nodeid], exit=True, file=self.output)
        try:
            return (yield)
        finally:
            faulthandler.cancel_dump_traceback_later()


def pytest_configure(config: pytest.Config) -> None:
    made: list[Any] = []
    if RECORD in os.environ:
        made.append(Recorder(Path(os.environ[RECORD])))
    if SELECT in os.environ:
        made.append(Selector(Path(os.environ[SELECT])))
        _without_shrinking()
    for plugin in made:
        config.pluginmanager.register(plugin)


def _without_shrinking() -> None:
    try:
        from hypothesis import Phase, settings
    except ImportError:
        return
    phases = (Phase.explicit, Phase.generate)
    settings.register_profile("mutation", settings.default, phases=phases)
    settings.load_profile("mutation")
