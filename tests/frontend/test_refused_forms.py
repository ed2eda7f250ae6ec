"""Forms of Python's that are refused, and that what the error says works."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft

G = np.arange(5.0)


def conditional_items(x: Any) -> Any:
    for v in x:
        if v > 2:
            yield v


def conditional_list(x: Any) -> Any:
    out = []
    for v in x:
        if v > 2:
            out.append(v)
    return out


def doubled_items(x: Any) -> Any:
    for v in x:
        yield v * 2


async def doubled(x: Any) -> Any:
    return x * 2


def other_keys(x: Any) -> Any:
    return {"pos": x} if x > 0 else {"neg": x}


def all_keys(x: Any) -> Any:
    return {"pos": x, "neg": np.nan} if x > 0 else {"pos": np.nan, "neg": x}


@pytest.mark.parametrize(("refused", "fix", "hint", "argument"), [
    (lambda x: sum(conditional_items(x)), lambda x: sum(conditional_list(x)),
     "append the items to a list and return it", G),
    (doubled_items, lambda x: [v * 2 for v in x], "return a list of the items", G),
    (other_keys, all_keys, "give it all keys on both ways", 1.0),
    (lambda s: 2.0 * len(s), lambda s: 2.0 * len(s), "pass frozenset(items)", {1, 2}),
    (doubled, lambda x: x * 2, "write a plain function", G)])
def test_refused_and_the_fix(
    refused: Callable[..., Any], fix: Callable[..., Any], hint: str, argument: Any
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)  # a coroutine that nobody has awaited
        with pytest.raises(weft.Error) as caught:
            weft.compile(refused)(argument)
    assert hint in caught.value.hint
    argument = frozenset(argument) if isinstance(argument, set) else argument
    np.testing.assert_equal(weft.compile(fix)(argument), fix(argument))
