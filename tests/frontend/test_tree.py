"""Nests: taking apart, putting together, structure as a key."""

from __future__ import annotations

import copy
import dataclasses
from collections import OrderedDict, defaultdict, namedtuple
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.frontend.face import tree
from weft.ir.diagnose import DTypeError, ShapeError

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


@pytest.mark.long
@given(NESTS)
def test_unflatten_inverts_flatten(nest: Any) -> None:
    leaves, structure = tree.flatten(nest)
    assert structure.count == len(leaves) == len(tree.paths(structure))
    assert tree.unflatten(structure, leaves) == nest
    again = tree.structure(tree.map(lambda leaf: leaf, nest))
    assert again == structure and hash(again) == hash(structure)


def test_dicts_keep_their_order() -> None:
    first, second = {"a": 1, "b": 2}, {"b": 2, "a": 1}
    assert tree.structure(first) != tree.structure(second)
    assert tree.leaves(second) == [2, 1]
    layers = {f"layer{n}": {"w": n, "b": -n} for n in (1, 2, 10)}
    assert list(tree.map(abs, layers)) == ["layer1", "layer2", "layer10"]
    assert tree.paths(tree.structure(layers))[:2] == ["['layer1']['w']", "['layer1']['b']"]
    mixed = {2: "x", "a": "y", (1, None): "z", None: "n"}
    assert tree.leaves(mixed) == ["x", "y", "z", "n"]
    assert tree.unflatten(tree.structure(mixed), range(4)) == {2: 0, "a": 1, (1, None): 2, None: 3}


def test_keys_are_told_apart_by_type() -> None:
    structures = {tree.structure({key: 0}) for key in (1, 1.0, True, np.int64(1))}
    assert len(structures) == 4


class Colours(dict[str, Any]):
    pass


def test_subclasses_of_containers_are_leaves() -> None:
    """How they are made and what else they hold is not known; ``register`` says it."""
    assert tree.leaves([Colours(a=1)]) == [Colours(a=1)]
    assert not tree.is_nest(Colours(a=1)) and tree.is_nest({"a": 1}) and tree.is_nest(None)


@pytest.mark.parametrize("kind", [dict, OrderedDict, lambda items: defaultdict(int, items)])
def test_nests_are_matched_by_key(kind: Any) -> None:
    params = kind([("w", kind([("u", 1), ("v", (2, 3))])), ("b", 4)])
    grads = kind([("b", 40), ("w", kind([("v", (20, 30)), ("u", 10)]))])
    assert tree.leaves(params) == [1, 2, 3, 4]
    assert tree.matched(tree.structure(params), grads) == [10, 20, 30, 40]
    made = tree.map(lambda p, g: (p, g), params, grads)
    assert made == kind([("w", kind([("u", (1, 10)), ("v", ((2, 20), (3, 30)))])), ("b", (4, 40))])
    assert list(made) == ["w", "b"] and type(made) is type(params)


@pytest.mark.parametrize("other", [
    {"w": 1}, {"w": 1, "c": 2}, {"w": 1, "b": (2,)}, OrderedDict(b=1, w=2), [1, 2],
    defaultdict(int, b=1, w=2)])
def test_what_does_not_match(other: Any) -> None:
    with pytest.raises(ShapeError, match="different structure"):
        tree.map(lambda a, b: a, {"w": 1, "b": 2}, other)


def test_structures_differ() -> None:
    nests = [1, (1,), [1], {"a": 1}, {"b": 1}, (1, 2), ((1,), 2), None, Point(1, 2), (),
             OrderedDict(a=1), defaultdict(list, a=1), tree.Static("x"), tree.Static("y"),
             Pair(1, 2, "n"), Pair(1, 2, "m")]
    structures = [tree.structure(nest) for nest in nests]
    assert len(set(structures)) == len(structures)
    assert tree.structure(tree.Static(1)) != tree.structure(tree.Static(True))


@dataclasses.dataclass(frozen=True)
class Config:
    rate: Any
    axes: Any = ()
    note: str = dataclasses.field(default="", compare=False)


ALIKE: list[Any] = [
    1, True, 1.0, 1 + 0j, np.float64(1), np.float32(1), np.int64(1), np.bool_(True), Decimal(1),
    Decimal("1.0"), 0, 0.0, -0.0, np.float64(-0.0), 0j, complex(0.0, -0.0), complex(-0.0, 0.0),
    (1,), (1.0,), (True,), ((1,), 0.0), ((1,), -0.0), (np.float32(0),), (np.float32(-0.0),),
    frozenset({1}), frozenset({1.0}), Config(1), Config(1.0), Config(True), Config((1, 0.0)),
    Config((1, -0.0)), Point(1, 2), Point(1.0, 2), (1, 2), range(0), range(1, 1), range(1),
    slice(0, 1), slice(0, 1.0), slice(0, True), "a", np.str_("a"), b"a", None, (), float("nan"),
    np.float64("nan"), (float("nan"),), Config(float("nan")), np.dtype("f4"), np.float32, "f4",
]


@pytest.mark.parametrize("wrap", [lambda x: x, lambda x: (x, "y"), Config])
def test_statics_are_alike_only_if_they_are_the_same(wrap: Any) -> None:
    """Equal values of another type or bits, at any depth, are other statics."""
    keys = [tree.structure(tree.Static(wrap(value))) for value in ALIKE]
    again = [tree.structure(tree.Static(wrap(copy.deepcopy(value)))) for value in ALIKE]
    assert len(set(keys)) == len(ALIKE)
    assert keys == again and [*map(hash, keys)] == [*map(hash, again)]


def test_statics_that_are_not_compared_do_not_count() -> None:
    first, second = (tree.structure(tree.Static(Config(1, note=note))) for note in "ab")
    assert first == second


def test_static_fields_and_descriptions_are_exact() -> None:
    for one, other in ((1, 1.0), (0.0, -0.0), ((1,), (True,))):
        assert tree.structure(Layer(1, 2, one)) != tree.structure(Layer(1, 2, other))  # type: ignore
        assert tree.structure(Pair(1, 2, one)) != tree.structure(Pair(1, 2, other))  # type: ignore


@pytest.mark.parametrize("make", [
    tree.Static, lambda value: tree.leaves(Layer(1, 2, value)),
    lambda value: tree.leaves(Pair(1, 2, value))])
@pytest.mark.parametrize("value", [[1], np.ones(2), {"a": 1}, (1, [2]), Config([1])])
def test_statics_must_be_hashable(make: Any, value: Any) -> None:
    with pytest.raises(DTypeError, match=r"must be hashable[^$]*fix: use tuples"):
        make(value)


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
        "{'b': *, 'a': (*, None), 'c': [Point(x=*, y=*)]}")
