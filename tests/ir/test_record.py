"""Records are what dataclasses are."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from functools import cached_property
from typing import Any, ClassVar

import pytest

from weft.ir.record import as_dict, field, fields, record, replace

KINDS: list[Any] = []


def classes(make: Any, some: Any) -> dict[str, Any]:
    @make(frozen=True)
    class Point:
        x: int
        y: Any = 2
        items: list[int] = some(default_factory=list)
        note: str = some(default="", compare=False, repr=False)
        count: ClassVar[int] = 7

        @cached_property
        def total(self) -> int:
            return self.x + self.count

    @make(frozen=True)
    class Solid(Point):
        z: int = 0
        y: Any = 5

    @make
    class Open:
        value: Any = 1

        def __post_init__(self) -> None:
            self.value = (self.value,)

    @make(eq=False)
    class Single:
        value: int

    @make(frozen=True, slots=True)
    class Slots:
        name: str
        size: int = some(default=3, repr=False)

    return {kind.__name__: kind for kind in (Point, Solid, Open, Single, Slots)}


OURS, PYTHONS = classes(record, field), classes(dataclasses.dataclass, dataclasses.field)


@record(frozen=True, slots=True)
class Kept:
    """One that can be pickled."""

    name: str
    size: int = 3


@pytest.mark.parametrize(("name", "args", "kwargs"), [
    ("Point", (1,), {}), ("Point", (1, 4), {"note": "n"}), ("Point", (), {"x": 3, "items": [1]}),
    ("Solid", (1,), {}), ("Solid", (1, 2, [3], "n", 4), {}), ("Open", (), {}), ("Open", (4,), {}),
    ("Single", (1,), {}), ("Slots", ("a",), {}), ("Slots", ("a",), {"size": 4})])
def test_objects_are_those_of_dataclasses(name: str, args: Any, kwargs: Any) -> None:
    own, other = (kinds[name](*args, **kwargs) for kinds in (OURS, PYTHONS))
    assert repr(own) == repr(other)
    assert as_dict(own) == dataclasses.asdict(other)
    assert [each.name for each in fields(own)] == [each.name for each in dataclasses.fields(other)]
    assert type(own).__match_args__ == type(other).__match_args__
    again = type(own)(*args, **kwargs)
    assert (own == again) == (other == type(other)(*args, **kwargs))
    assert (own == object()) is False and own != 1
    for kind in (type(own), type(other)):
        with pytest.raises(TypeError):
            kind(nothing=1)


def test_what_is_compared() -> None:
    kind, nan = OURS["Point"], float("nan")
    assert kind(1, note="a") == kind(1, note="b") and kind(1) != kind(2)
    assert kind(1, (2,)) != OURS["Solid"](1, (2,))
    assert kind(nan) == kind(nan) and hash(kind(1, (), ())) == hash(kind(1, (), ()))
    with pytest.raises(TypeError):
        hash(OURS["Open"](1))
    one = OURS["Single"](1)
    assert one != OURS["Single"](1) and {one: 2}[one] == 2


@pytest.mark.parametrize("name", ["Point", "Slots"])
def test_frozen_ones_do_not_change(name: str) -> None:
    made = OURS[name](1)
    first = fields(made)[0].name
    for change in (lambda: setattr(made, first, 2), lambda: delattr(made, first),
                   lambda: setattr(made, "other", 2)):
        with pytest.raises((AttributeError, TypeError)):
            change()
    assert getattr(made, first) == 1


def test_cached_properties_and_classes_below() -> None:
    class Below(OURS["Point"]):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__(1)
            self.extra = 4

    made = Below()
    assert (made.extra, made.total, made.x) == (4, 8, 1)
    with pytest.raises(AttributeError):
        made.x = 2


def test_replacing_and_defaults_of_their_own() -> None:
    kind = OURS["Point"]
    made = replace(kind(1), y=3)
    assert (made.x, made.y) == (1, 3) and made.items is not kind(1).items
    with pytest.raises(TypeError):
        replace(made, nothing=1)


def test_copies_and_pickles() -> None:
    for made in (Kept("a", 4), Kept("b")):
        assert copy.copy(made) == made == pickle.loads(pickle.dumps(made))
        assert copy.deepcopy(made) == made
    assert copy.copy(OURS["Point"](1)).x == 1


def test_matching() -> None:
    match OURS["Solid"](1, 2):
        case OURS.__class__():
            raise AssertionError
        case object(x=1, y=y):
            assert y == 2
