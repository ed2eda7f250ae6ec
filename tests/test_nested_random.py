"""Random programs that nest transforms and control flow; ``python -m fuzz.nested`` runs more."""

from __future__ import annotations

from typing import Any

import pytest
from fuzz.nested.check import check
from fuzz.nested.draw import program
from fuzz.nested.minimise import minimise

import weft

SEED = 7


@pytest.mark.parametrize("part", range(4))
def test_programs(part: int) -> None:
    for number in range(part, 20, 4):
        outcome = check(program(SEED, number), number)
        assert outcome.verdict in ("ok", "unclear", "refused"), (number, outcome.what)


def test_programs_of_all_kinds_are_drawn() -> None:
    drawn = [program(SEED, number) for number in range(600)]
    features = {feature for each in drawn for feature in each.features}
    derivatives = ("grad", "value", "pairs", "vjp", "jvp", "rows")
    assert {
        "if", "for", "while", "break", "continue", "early return", "return in a loop", "cond",
        "scan", "fori_loop", "while_loop", "vmap", "vmap of vmap", "remat", "custom_vjp",
        "hessian", "product", *derivatives, *(f"gradient of a gradient {d}" for d in derivatives),
        "order 0", "order 1", "order 2", "float32", "complex", "unknown sizes", "host", "masks",
        "gathers", "slices", "writes", "sums", "extremes", "sorts", "products", "softmax",
        "scans of rows",
        "assignments in loops", "draws in loops", "draws in gradients", "draws in batches",
    } <= features
    assert sum(len(each.text.splitlines()) for each in drawn) > 15 * len(drawn)
    assert program(SEED, 5) == drawn[5]


@pytest.mark.long
def test_a_wrong_transform_is_found_and_its_program_made_small(
    monkeypatch: pytest.MonkeyPatch
) -> None:
    """A gradient that is a little too large."""
    right = weft.grad

    def wrong(function: Any, argnums: Any = 0) -> Any:
        def larger(*args: Any) -> Any:
            found = right(function, argnums)(*args)
            return weft.tree.map(lambda x: x * 1.01, found)

        return larger

    monkeypatch.setattr(weft, "grad", wrong)
    for number in range(200):
        drawn = program(SEED, number)
        if "grad" not in drawn.features or len(drawn.text) > 1500:
            continue
        outcome = check(drawn, number)
        if outcome.verdict == "finding":
            break
    assert outcome.what.startswith("NumPy")
    small = minimise(drawn, lambda each: check(each, number), outcome.what, 3)
    assert "W.grad" in small.text and len(small.text) < len(drawn.text)
