"""Every fix that an error of the corpus prints: applied, it gives what it should."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from conftest import GOLDEN

from .fixed import bodies, control, devices, drawing, flow, learning, programs, queues, transforms
from .fixed.fixing import FIXED, is_code
from .programs import PROGRAMS

MODULES = (bodies, control, devices, drawing, flow, learning, programs, queues, transforms)

# What no line of code can mend, and why.
NO_CODE = MappingProxyType({
    "text_that_is_no_type": "a text that does not parse: the caret says where",
})


def fix_of(name: str) -> str:
    """The fix that is printed for a program of the corpus, on one line."""
    _, _, fix = Path(GOLDEN, "errors", f"{name}.txt").read_text().partition("\n  fix: ")
    return " ".join(fix.split())


def code_of(run: Callable[[], Any]) -> str:
    """The lines of a program without its decorator and comments, on one line."""
    _, _, body = inspect.getsource(run).partition("\ndef ")
    return " ".join(re.sub(r"\s# .*", "", body).split())


def same(got: Any, want: Any) -> bool:
    if isinstance(want, dict):
        return list(got) == list(want) and all(same(got[key], want[key]) for key in want)
    if isinstance(want, tuple) or (isinstance(want, list) and isinstance(got, list)):
        return len(got) == len(want) and all(map(same, got, want))
    return np.shape(got) == np.shape(want) and np.allclose(got, want, rtol=1e-5, equal_nan=True)


def test_every_program_has_its_fix() -> None:
    assert set(FIXED) | set(NO_CODE) == set(PROGRAMS)
    assert not set(FIXED) & set(NO_CODE)
    assert len(NO_CODE) <= 2
    homes = {inspect.getmodule(program.run) for program in FIXED.values()}
    assert homes == set(MODULES)


@pytest.mark.parametrize("name", FIXED)
def test_the_fix_works(name: str) -> None:
    """Its parts are printed, its code is in the program, which gives what it should."""
    program, printed = FIXED[name], fix_of(name)
    source = code_of(program.run)
    assert program.fragments
    for fragment in program.fragments:
        assert fragment in printed, printed
        assert fragment in source or not is_code(fragment), fragment
    got, want = program.run()
    assert same(got, want), (got, want)


@pytest.mark.parametrize("name", FIXED)
def test_code_in_a_fix_is_taken_up(name: str) -> None:
    """A fix with a call or an option in it has that in the program."""
    if re.search(r"\w\.\w+\(|\w=\S", fix_of(name)):
        assert any(map(is_code, FIXED[name].fragments)), fix_of(name)


def check_fails(change: Callable[[Any], Any]) -> bool:
    return not same(change(np.ones(2)), np.ones(2))


def test_results_are_compared() -> None:
    assert check_fails(lambda x: x + 1e-3) and check_fails(lambda x: x[:1])
    assert check_fails(lambda x: [1.0]) and not check_fails(lambda x: x + 1e-9)
