"""Random programs that write into their arguments; ``python inplace_storm.py`` runs more."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from fuzz.inplace.check import check
from fuzz.inplace.draw import FAULTS, MAKERS, program
from fuzz.nested.minimise import minimise

import weft

SEED = 7
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.long
@pytest.mark.parametrize("part", range(4))
def test_programs(part: int) -> None:
    for number in range(part, 80, 4):
        outcome = check(program(SEED, number))
        assert outcome.verdict in ("ok", "refused"), (number, outcome.what)


@pytest.mark.long
def test_programs_of_all_kinds_are_drawn() -> None:
    drawn = [program(SEED, number) for number in range(200)]
    features = {feature for each in drawn for feature in each.features}
    assert {*(f"fails by {fault}" for fault in FAULTS), "is interrupted", "memory in common",
            "no elements", "0 dims", "3 dims", "dtype bool", "dtype complex128",
            *(maker.__name__.strip("_") for maker in MAKERS)} <= features
    assert program(SEED, 5) == drawn[5]


class Wrong:
    """A compiled function that does something to its first argument besides."""

    def __init__(self, function: Any, **options: Any) -> None:
        self.function = compiled(function, **options)

    def __call__(self, x: Any, *args: Any) -> Any:
        try:
            found = self.function(x, *args)
        except Exception:
            _spoil(x)
            raise
        if args[4] == 2:
            _spoil(x)
        return found


compiled = weft.compile


def _spoil(x: Any) -> None:
    if x.size and x.flags.writeable:
        x[...] = np.logical_not(x)


@pytest.mark.long
@pytest.mark.parametrize("what", ["arguments are", "arguments were changed by a call that raised"])
def test_a_wrong_write_is_found_and_its_program_made_small(
    monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    monkeypatch.setattr(weft, "compile", Wrong)
    for number in range(100):
        drawn = program(SEED, number)
        outcome = check(drawn)
        if outcome.what.startswith(what):
            break
    assert outcome.what.startswith(what)
    small = minimise(drawn, check, outcome.what, 3)
    assert len(small.text) < len(drawn.text) and check(small).what.startswith(what)
