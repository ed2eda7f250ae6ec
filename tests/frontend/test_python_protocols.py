"""What Python calls by itself in traced code (special methods, descriptors, iterators, context
managers) and by which ways it leaves statements: as in Python, and entered as functions are."""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import functools
import operator
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import weft

X = np.array([1.0, 2.0, 3.0])


class Sum:
    def __init__(self, x: Any) -> None:
        self.parts = written(x)

    def __add__(self, other: Any) -> Any:
        return Sum(self.parts[1] + other.parts[1])


def written(x: Any) -> Any:
    """An array that only traced code can make of a number."""
    made = np.zeros(3)
    made[1] = x
    return made


class Setting:
    def __get__(self, owner: Any, kind: Any = None) -> Any:
        return self if owner is None else written(owner.kept)

    def __set__(self, owner: Any, value: Any) -> None:
        owner.kept = written(value)[1] * 2


@dataclasses.dataclass
class Made:
    x: Any

    def __post_init__(self) -> None:
        self.made = written(self.x[0])


class Items:
    def __init__(self, x: Any) -> None:
        self.x = x

    def __iter__(self) -> Iterator[Any]:
        for at in range(3):
            yield written(self.x[at])

    def __len__(self) -> int:
        return int(written(3)[1])

    def __contains__(self, value: Any) -> Any:
        return bool(np.any(written(self.x[0]) == value))

    def __bool__(self) -> bool:
        return bool(written(self.x[0])[1] > 0)

    def __getattr__(self, name: str) -> Any:
        return written(self.x[1])

    def __abs__(self) -> Any:
        return np.abs(written(self.x[0]))


class Countdown:
    def __init__(self, n: int, x: Any) -> None:
        self.n, self.x = n, x

    def __iter__(self) -> Countdown:
        return self

    def __next__(self) -> Any:
        if self.n == 0:
            raise StopIteration
        self.n -= 1
        return written(self.x[self.n])


class Span:
    setting = Setting()

    def __new__(cls, x: Any) -> Span:
        made = super().__new__(cls)
        made.first = written(x[0])
        return made

    def __init__(self, x: Any) -> None:
        self.x = x

    @property
    def size(self) -> Any:
        return self.kept_size

    @size.setter
    def size(self, value: Any) -> None:
        self.kept_size = written(value)

    def __enter__(self) -> Any:
        return written(self.x[2])

    def __exit__(self, *problem: Any) -> None:
        self.x = written(self.x[0])


@contextlib.contextmanager
def spanned(x: Any) -> Iterator[Any]:
    yield written(x[0])


@functools.singledispatch
def kind_of(x: Any) -> Any:
    return written(0)


@kind_of.register
def _(x: np.ndarray) -> Any:
    return written(x[0])


@kind_of.register
def _(x: float) -> Any:
    return written(x + 1)


def called_by_python(x: Any) -> Any:
    span, items = Span(x), Items(x)
    span.size = x[1]
    span.setting = x[2]
    with span as inside, spanned(x) as other:
        total = inside + other
    return (total, span.first, span.size, span.setting, span.x, Made(x).made, abs(items),
            items.anything, getattr(span, "size"), sum(items), list(items)[1],  # noqa: B009
            [row * 2 for row in Countdown(2, x)], len(items), x[0] in items, not items,
            kind_of(x), kind_of(2.0), functools.reduce(operator.add, [Sum(x[0])] * 2).parts)


def leaves_a_try(x: Any) -> Any:
    total, log = 0.0, []
    for at in range(4):
        try:
            if at == 2:
                break
            total += at
        except KeyError:
            pass
        else:
            total += 10
        finally:
            log.append(at)

    def first() -> Any:
        try:
            return x[0]
        except KeyError:
            return None
        else:
            log.append("else")

    def swallowed() -> Any:
        try:
            raise ValueError
        finally:
            return x[1]  # noqa: B012

    def suppressed() -> Any:
        with contextlib.suppress(KeyError):
            return {}["k"]
        return x[2]

    return total, len(log), first(), swallowed(), suppressed()


def sees_its_names(x: Any) -> Any:
    first, second = 1, 2
    text = "{first} {second}".format(**locals()) if first else ""
    return len(text), eval("first + second"), x * 2


def sees_all_its_names(x: Any, *rest: Any, scale: Any = 2.0) -> Any:
    k = 5
    doubled = [k * 2 for k in (1, 2)]
    y = x
    if x[0] > 0:
        y = locals()["x"] * scale + locals()["y"][1] + len(locals()) + len(vars()["rest"])
    del doubled
    return y, [*locals()], "doubled" in locals(), locals()["k"], vars()["scale"]


def sees_names_of_others(x: Any) -> Any:
    outside = x + 1

    def inner(z: Any) -> Any:
        if z[0] > 0:
            z = z + outside
        return z

    return inner(x), [*locals()], inner.__name__


@pytest.mark.parametrize("function", [
    called_by_python, leaves_a_try, sees_its_names, sees_all_its_names, sees_names_of_others])
def test_the_rest_of_python(function: Callable[..., Any]) -> None:
    compiled = weft.compile(function)
    for x in (X, -X):
        want, got = (weft.tree.leaves(each(x)) for each in (function, compiled))
        for a, b in zip(got, want, strict=True):
            np.testing.assert_array_equal(a, b)
            assert type(a) is type(b)


def test_names_of_others_arguments_are_not_private() -> None:
    class Owner:
        def names(self, **options: Any) -> list[str]:
            return list(options)

        @weft.compile
        def run(self, x: Any) -> Any:
            return x * len([name for name in self.names(__a=1) if name == "__a"])

    assert Owner().run(2.0) == 2.0


def numbers(n: int) -> Iterator[int]:
    if n < 0:
        return
    at = 0
    while True:
        if at > n:
            return
        at += 1
        if at % 3 == 0:
            continue
        if at == 8:
            break
        yield at


def ways_out_of_generators(x: Any) -> Any:
    evens = (v for v in range(6) if v % 2 == 0)
    first, rest = next(evens), list(evens)
    asked: list[int] = []

    def ask(v: int) -> bool:
        asked.append(v)
        return v > 1

    found = next((v for v in (1, 2, 3) if ask(v)), None)
    try:
        [next(iter(())) for _ in range(2)]
        ended = 0
    except StopIteration:
        ended = 1
    return (list(numbers(-1)), list(numbers(4)), list(numbers(99)), first, rest, found, asked,
            ended, next(v for v in x if v > 1.5), x * 2)


class Added:
    def __add__(self, other: Any) -> str:
        return "add"

    def __radd__(self, other: Any) -> str:
        return "radd"


class Below(Added):
    pass


class Own(Added):
    def __radd__(self, other: Any) -> str:
        return "own"


def helper(x: Any) -> Any:
    return x * 2


def identity_of_functions(x: Any) -> Any:
    kept: list[Any] = []
    table = {helper: 1, np.sum: 2, max: 3}

    def keep(function: Callable[..., Any]) -> Callable[..., Any]:
        kept.append(function)
        return function

    def look(function: Any) -> Any:
        return table[function], function is helper, function.__name__

    keep(helper)
    made = functools.partial(keep, helper)
    return (look(helper), look(np.sum), look(max), kept.index(helper), kept[0] is helper,
            made.func is keep, keep(made) is made, helper(x), kept[0](x), made()(x),
            Added() + Below(), Added() + Own(), Below() + Added(), [*map(helper, [x, x])][1],
            sorted([2, 1], key=lambda v: -v), helper.__annotations__["x"] == "Any")


@pytest.mark.parametrize("function", [ways_out_of_generators, identity_of_functions])
def test_what_is_plain_stays_plain(function: Callable[..., Any]) -> None:
    compiled = weft.compile(function)
    for _ in range(2):
        want, got = function(X), compiled(X)
        for a, b in zip(weft.tree.leaves(got), weft.tree.leaves(want), strict=True):
            assert type(a) is type(b)
            np.testing.assert_array_equal(a, b)


class Guarded:
    @property
    def missing(self) -> Any:
        raise AttributeError("inside")

    def __getattr__(self, name: str) -> str:
        return name


class Answering:
    @property
    def plain(self) -> int:
        return 1

    def __getattribute__(self, name: str) -> Any:
        return "own" if name == "plain" else object.__getattribute__(self, name)


class AddedRight:
    def __radd__(self, other: Any) -> Any:
        return ("radd", other)

    def __rmul__(self, other: Any) -> Any:
        return ("rmul", other)


class Numbered:
    def __init__(self, x: Any) -> None:
        self.x = x

    def __getitem__(self, at: int) -> Any:
        if at > 2:
            raise IndexError
        return written(self.x[at])


class Positive:
    def __init__(self, x: Any) -> None:
        self.x = x

    def __bool__(self) -> bool:
        return bool(written(self.x)[1] > 0)


def corners(x: Any) -> Any:
    table = collections.defaultdict(functools.partial(np.zeros, 3))
    table["b"][0] = x[1]
    truth = 1.0 if Positive(x[0]) and x[1] > -9 else 2.0
    return (Guarded().missing, Answering().plain, [1] + AddedRight(), "a" * AddedRight(),  # noqa: RUF005
            (1,) + AddedRight(),  # noqa: RUF005
            list(Numbered(x))[2], sum(Numbered(x)), table["b"], truth,
            not Positive(x[1]))


def test_corners_of_python() -> None:
    compiled = weft.compile(corners)
    for x in (X, -X):
        for a, b in zip(weft.tree.leaves(compiled(x)), weft.tree.leaves(corners(x)), strict=True):
            assert type(a) is type(b)
            np.testing.assert_array_equal(a, b)


def test_what_is_called_is_not_compared() -> None:
    class First:
        def __eq__(self, other: object) -> bool:
            raise AssertionError("nobody asks")

        __hash__ = None  # type: ignore[assignment]

        def __call__(self, x: Any) -> Any:
            return written(x[0])

    called = First()
    np.testing.assert_array_equal(weft.compile(lambda x: called(x))(X), called(X))


def test_names_that_only_some_ways_bind_are_no_names_of_a_dict() -> None:
    def f(x: Any) -> Any:
        if x > 0:
            y = 1.0
        return x * len(locals())

    with pytest.raises(weft.Error, match="W201: y has a value on one way only"):
        weft.compile(f)(1.0)
