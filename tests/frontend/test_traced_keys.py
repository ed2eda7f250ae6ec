"""Traced values in dicts and sets: where Python would ask which key one is."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

import weft
from weft import Error

K = np.array([1, 2, 2, 3])


def counted(x: Any) -> Any:
    seen: dict[Any, int] = {}
    for value in x:
        seen[value] = seen.get(value, 0) + 1
    return list(seen.values())


@pytest.mark.parametrize("function", [
    counted, lambda x: len(set(x.tolist())), lambda x: list(Counter(x.tolist()).values()),
    lambda x: len({value + 1 for value in x}), lambda x: {1: 5.0}.get(int(x[0]), 0.0),
    lambda x: {float(x[0]): 1}])
def test_equal_numbers_are_no_different_keys(function: Any) -> None:
    with pytest.raises(Error, match=r"W201.*a dict or a set") as caught:
        weft.compile(function)(K)
    assert caught.value.hint and caught.value.locs


def test_a_number_is_looked_up_in_a_dict_of_numbers() -> None:
    compiled = weft.compile(lambda x: {1: 5.0, 4: 7.0}[x[0]])
    assert (compiled(K), compiled(K + 3)) == (5.0, 7.0)
    with pytest.raises(LookupError):
        compiled(K + 1)


def test_a_set_that_is_asked() -> None:
    def function(x: Any) -> Any:
        known = {1, 2}
        return x + 1 if x[0] in known else x + 2

    compiled = weft.compile(function)
    for x in (K, K + 4):
        np.testing.assert_array_equal(compiled(x), function(x))


@pytest.mark.filterwarnings("ignore")
def test_a_number_that_is_a_key_is_static() -> None:
    table = {1: 5.0, 2: 3.0}
    compiled = weft.compile(lambda x, n: table[n] * x + table.get(n, 0.0))
    for n in (2, 1):
        np.testing.assert_array_equal(compiled(K, n), table[n] * K + table[n])


def test_what_a_graph_feeds_is_a_key() -> None:
    graph = weft.Graph()
    with graph.as_default():
        x = weft.placeholder("f64", (None,), name="x")
        names = {x: "x", x + 1: "y"}
    assert names[x] == "x" and len({*names}) == 2
    assert weft.Session(graph).run([*names][1], {x: np.ones(2)}).tolist() == [2, 2]
