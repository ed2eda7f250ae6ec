"""Shared by all tests: tiers (``pytest --rest tests``, ``--all``), golden files (``pytest tests
--update-golden``) and Hypothesis settings."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
import pytest
import tiers
from hypothesis import HealthCheck, settings

import weft

GOLDEN = Path(__file__).parent / "golden"
os.environ.setdefault("WEFT_CACHE", "0")  # tests see what is compiled, in processes of theirs too

# Programs take a while to draw, and machines of continuous integration are slow and uneven.
# The examples are the same in every run, so a change fails for what it did; new ones are drawn
# with --hypothesis-profile=new, and by the thousand with python -m fuzz.
EVERY_RUN = settings(deadline=None, print_blob=True, max_examples=40,
                     suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("weft", EVERY_RUN, derandomize=True)
settings.register_profile("new", EVERY_RUN)
settings.register_profile("one", EVERY_RUN, max_examples=1)  # where it matters what is called
settings.load_profile("weft")


def pytest_configure(config: pytest.Config) -> None:
    if hasattr(config.option, "loadscopereorder"):  # xdist would put files of many tests first
        config.option.loadscopereorder = False
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as of what a shell runs beside itself
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if hasattr(config.option, "maxworkerrestart"):  # a worker that takes over from one that
        config.option.maxworkerrestart = "0"        # hung may get nothing to do, and not end


def pytest_addoption(parser: pytest.Parser) -> None:
    for name, text in (("all", "run all tests"), ("rest", "run what is left out otherwise")):
        parser.addoption(f"--{name}", action="store_const", dest="tier", const=name, help=text)
    parser.addoption("--update-golden", action="store_true",
                     help="write the golden files from what the tests produce")


def pytest_report_header(config: pytest.Config) -> str:
    said = {"first": "first tier of the tests (--rest runs the others, --all all of them)",
            "rest": "tests that the first tier leaves out", "all": "all tests"}
    return said[tiers.wanted(config)]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Files with long tests come first: no worker is left with one when the others are done."""
    lasting = {item.path for item in items if item.get_closest_marker("long")}
    items[:], left_out = tiers.split(config, items)
    config.hook.pytest_deselected(items=left_out)
    items.sort(key=lambda item: item.path not in lasting)


STARTED = pytest.StashKey[float]()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    item.stash[STARTED] = tiers.core_seconds()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """The first tier stays quick: one of its tests that is not fails."""
    yield
    spent = tiers.core_seconds() - item.stash[STARTED]
    alone = tiers.wanted(item.config) == "first" and not tiers.named(item.config)
    if alone and spent > tiers.SECONDS:
        pytest.fail(f"took {spent:.0f} s of a core: part it into cases, or mark it as long")


@pytest.fixture(autouse=True)
def names_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """A variable that another test has left alive takes no name from this one's."""
    monkeypatch.setattr(weft.Variable, "_named", WeakValueDictionary())


@pytest.fixture(scope="module")
def generators(request: pytest.FixtureRequest) -> list[tuple[np.random.Generator, Any]]:
    """The random numbers that a file of tests draws from, and where these are before its tests."""
    return [(each, each.bit_generator.state) for each in vars(request.module).values()
            if isinstance(each, np.random.Generator)]


@pytest.fixture(autouse=True)
def numbers_of_its_own(generators: list[tuple[np.random.Generator, Any]]) -> None:
    """A test draws the same numbers whichever tests run before it, and in which process."""
    for generator, state in generators:
        generator.bit_generator.state = state


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """``golden(text, "fuse/softmax.ir")`` compares text with a file of tests/golden."""
    update = bool(request.config.getoption("--update-golden"))

    def check(text: str, name: str) -> None:
        path = GOLDEN / name
        if update:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text.rstrip("\n") + "\n", encoding="utf-8")
        assert path.is_file(), f"no golden file {name}: run with --update-golden"
        assert text.rstrip("\n") + "\n" == path.read_text(encoding="utf-8")

    return check
