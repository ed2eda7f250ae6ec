"""docs/what-works.md is true: its functions compile to what NumPy gives, the rest is refused with
the errors that it quotes. ``--update-golden`` writes the list of missing functions."""

from __future__ import annotations

import linecache
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft
from weft.frontend.numpy_api.registry import ROWS

PAGE = Path(__file__).parents[1] / "docs" / "what-works.md"
BLOCKS = re.findall(r"```(python|text)\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
ERRORS = [at for at, (kind, _) in enumerate(BLOCKS) if kind == "text"]
X = np.linspace(-1, 2, 12).reshape(3, 4)
LIST = re.compile(r"(<!-- missing: .*? -->\n).*?(<!-- end -->)", re.DOTALL)


def functions(at: int) -> list[Callable[..., Any]]:
    """The functions of a block, as if they were in a file of the user's."""
    names: dict[str, Any] = {"np": np, "weft": weft, "__name__": "__main__"}
    code, name = BLOCKS[at][1], f"{PAGE.name}-{at}.py"
    linecache.cache[name] = (len(code), None, code.splitlines(keepends=True), name)
    exec(compile(code, name, "exec"), names)
    return [thing for thing in names.values() if getattr(thing, "__module__", "") == "__main__"]


def agree(found: Any, wanted: Any) -> None:
    for one, other in zip(*(weft.tree.flatten(nest)[0] for nest in (found, wanted)), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)
        assert np.asarray(one).dtype == np.asarray(other).dtype


@pytest.mark.parametrize("at", [at for at, (kind, _) in enumerate(BLOCKS)
                                if kind == "python" and at + 1 not in ERRORS])
def test_what_works(at: int) -> None:
    assert functions(at)
    for function in functions(at):
        ours, plain = X.copy(), X.copy()
        agree(weft.compile(function)(ours), function(plain))
        agree(ours, plain)


@pytest.mark.parametrize("at", ERRORS)
def test_what_is_refused(at: int) -> None:
    """With the error below it; what is to be written instead gives what NumPy gives."""
    (refused,), (instead,) = functions(at - 1), functions(at + 1)
    with pytest.raises(weft.Error) as caught:
        weft.compile(refused)(X)
    said = [line.strip() for line in str(caught.value).splitlines()]
    assert BLOCKS[at][1].splitlines() == [said[0], said[-1]]
    agree(weft.compile(instead)(X), refused(X.copy()))


def missing() -> str:
    """Functions without a body by what to use instead, from their rows."""
    instead: dict[str, list[str]] = {}
    for row in dict.fromkeys(ROWS.values()):
        if row.body is None:
            instead.setdefault(row.instead, []).append(f"`{row.name}`")
    return "".join(f"- {', '.join(sorted(names))}: use {text}.\n"
                   for text, names in sorted(instead.items(), key=lambda item: item[1]))


def test_the_missing_functions_are_those_of_the_rows(request: pytest.FixtureRequest) -> None:
    text = PAGE.read_text(encoding="utf-8")
    if request.config.getoption("--update-golden"):
        text = LIST.sub(lambda found: found[1] + missing() + found[2], text)
        PAGE.write_text(text, encoding="utf-8")
    (found,) = LIST.finditer(text)
    assert found[0] == found[1] + missing() + found[2]
