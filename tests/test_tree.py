"""Nests: taking apart, putting together, structure as a key."""

from __future__ import annotations

import dataclasses
from collections import OrderedDict, defaultdict, namedtuple
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.frontend import tree
from weft.ir.diagnose import ShapeError

Point = namedtuple("Point", "x y")


@dataclasses.dataclass
class Layer:
    w: Any
    b: Any
    name: str = dataclasses.field(default="dense", metadata={"static": True})
    norm: Any = dataclasses.field(default=None, init=False)


class Pair:
    def __init__(self, first: Any, second: Any, note: str) -> None:
        self.first, self.second, self.note = first, second, note


tree.register(Pair, lambda p: ((p.first, p.second), p.note), lambda note, c: Pair(*c, note))

NESTS = st.recursive(
    st.one_of(st.integers(), st.none(), st.floats(allow_nan=False)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.tuples(inner, inner),
        st.dictionaries(st.text(max_size=2), inner, max_size=3),
        st.builds(Point, inner, inner)),
    max_leaves=12)


@given(NESTS)
def test_unflatten_inverts_flatten(nest: Any) -> None:
    leaves, structure = tree.flatten(nest)
    assert structure.count == len(leaves) == len(tree.paths(structure))
    assert tree.unflatten(structure, leaves) == nest
    again = tree.structure(tree.map(lambda leaf: leaf, nest))
    assert again == structure and hash(again) == hash(structure)


def test_dicts_are_alike_however_they_were_filled() -> None:
    first, second = {"a": 1, "b": 2}, {"b": 2, "a": 1}
    assert tree.structure(first) == tree.structure(second)
    assert tree.leaves(second) == [1, 2]
    assert tree.leaves({2: "x", "a": "y"}) == ["x", "y"]  # keys of several types


def test_structures_differ() -> None:
    nests = [1, (1,), [1], {"a": 1}, {"b": 1}, (1, 2), ((1,), 2), None, Point(1, 2), (),
             OrderedDict(a=1), defaultdict(list, a=1), tree.Static("x"), tree.Static("y"),
             Pair(1, 2, "n"), Pair(1, 2, "m")]
    structures = [tree.structure(nest) for nest in nests]
    assert len(set(structures)) == len(structures)
    assert tree.structure(tree.Static(1)) != tree.structure(tree.Static(True))


def test_dataclasses() -> None:
    layer = Layer(np.ones(2), 3, name="out")
    layer.norm = 7
    leaves, structure = tree.flatten({"layer": layer})
    assert leaves[1:] == [3, 7]
    assert tree.paths(structure) == ["['layer'].w", "['layer'].b", "['layer'].norm"]
    back = tree.unflatten(structure, [0, 1, 2])["layer"]
    assert (back.w, back.b, back.norm, back.name) == (0, 1, 2, "out")


def test_registered_classes() -> None:
    pair = tree.map(lambda leaf: leaf + 1, Pair(1, (2, 3), "note"))
    assert (pair.first, pair.second, pair.note) == (2, (3, 4), "note")


def test_other_containers() -> None:
    made = tree.map(lambda leaf: -leaf, defaultdict(int, b=1, a=2))
    assert made == {"a": -2, "b": -1} and made.default_factory is int
    assert isinstance(tree.map(abs, OrderedDict(a=-1)), OrderedDict)
    assert tree.unflatten(tree.structure((tree.Static("s"), 1)), [2]) == ("s", 2)


def test_map_of_several_nests() -> None:
    assert tree.map(lambda a, b: a + b, {"x": (1, 2)}, {"x": (3, 4)}) == {"x": (4, 6)}
    with pytest.raises(ShapeError, match="different structure"):
        tree.map(lambda a, b: a, {"x": 1}, {"y": 1})


def test_wrong_number_of_leaves() -> None:
    structure = tree.structure((1, 2))
    with pytest.raises(ValueError, match="more leaves"):
        tree.unflatten(structure, [1, 2, 3])
    with pytest.raises(ValueError, match="fewer leaves"):
        tree.unflatten(structure, [1])


def test_text() -> None:
    assert repr(tree.structure({"b": 1, "a": (2, None), "c": [Point(1, 2)]})) == (
        "{'a': (*, None), 'b': *, 'c': [Point(x=*, y=*)]}")
