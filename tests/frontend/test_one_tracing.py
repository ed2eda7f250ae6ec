"""Whatever a function calls is traced in one way: helpers, classes, properties, operators and
generators mean in traced code what they mean in Python. NumPy and others see nothing of it."""

from __future__ import annotations

import builtins
import contextlib
import copy
import dataclasses
import functools
import importlib
import operator
import pickle
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy import array as make_array
from numpy import zeros

import weft

X = np.array([1.0, 2.0, 3.0])


class Vector:
    """Two numbers, as people write such classes."""

    def __init__(self, x: Any, y: Any = 0.0) -> None:
        self.__hidden = 3.0
        self.parts = np.zeros(2)
        self.parts[0], self.parts[1] = x, y

    @property
    def size(self) -> Any:
        if self.parts[0] > 2:
            return self.parts[0] * self.__hidden
        return self.parts[1]

    @functools.cached_property
    def doubled(self) -> Any:
        made = np.zeros(2)
        made[:] = 2 * self.parts
        return made

    def __add__(self, other: Any) -> Any:
        if isinstance(other, Vector):
            return Vector(self.parts[0] + other.parts[0], self.parts[1] + other.parts[1])
        return Vector(self.parts[0] + other, self.parts[1])

    def __radd__(self, other: Any) -> Any:
        return self + other

    def __iadd__(self, other: Any) -> Any:
        self.parts[1] += other
        return self

    def __neg__(self) -> Any:
        return Vector(-self.parts[0], -self.parts[1])

    def __lt__(self, other: Any) -> Any:
        return self.parts[0] < other.parts[0]

    def __getitem__(self, at: Any) -> Any:
        made = np.zeros(3)
        made[at] = self.parts[0]
        return made

    def __setitem__(self, at: Any, value: Any) -> None:
        self.parts[at] = value


class Longer(Vector):
    def __radd__(self, other: Any) -> Any:
        return 100.0


def rows(x: Any) -> Iterator[Any]:
    for at in range(3):
        row = np.zeros(2)
        row[0] = x[at]
        if at == 1:
            row = row + 1
        yield row


def in_operators(x: Any) -> Any:
    v = 2.0 + (Vector(x[0], x[2]) + Vector(x[1]) + 1.0)
    w = -v
    w += 3.0
    return v.parts, w.parts, w.size, v.size, 1.0 if w < v else 2.0


def in_items(x: Any) -> Any:
    v = Vector(x[0])
    v[1] = x[2]
    return v[1], v.parts, v.doubled


def in_generators(x: Any) -> Any:
    total = 0.0
    for row in rows(x):
        total = total + row
    return total


def below_the_left(x: Any) -> Any:
    return Vector(x[0]) + Longer(x[1])


def by_names_of_ones_own(x: Any) -> Any:
    make = np.full
    y, z = zeros(3), make(2, 1.0)
    y[1], z[0] = x[0], x[1]
    return y, z, make_array([x[0], 1.0])


def identities(x: Any) -> Any:
    def truth(flag: Any) -> Any:
        return 1.0 if flag is True else 2.0

    def twice(v: Any) -> Any:
        return v * 2 if type(v) is float else v

    return truth(bool(x[0] > 0)), truth(1), twice(float(x[1])), twice(x)


def defaults_of_lambdas(x: Any) -> Any:
    pick = lambda v=(x[0] if x[1] > 1.5 else x[2]): v + 1  # noqa: E731
    return pick()


def annotated(x: Any) -> Any:
    y: Any
    if x[0] > 0:
        y: Any = x * 2  # type: ignore[no-redef]
    else:
        y = x
    return y


@pytest.mark.parametrize("x", [X, -X, X[::-1].copy()])
@pytest.mark.parametrize("function", [
    in_operators, in_items, in_generators, below_the_left, by_names_of_ones_own, identities,
    defaults_of_lambdas, annotated])
def test_as_in_python(function: Callable[..., Any], x: Any) -> None:
    compiled = weft.compile(function)
    for _ in range(2):
        want, got = (weft.tree.leaves(each(x)) for each in (function, compiled))
        for a, b in zip(got, want, strict=True):
            np.testing.assert_array_equal(a, b)


def test_gradients_go_through_classes() -> None:
    np.testing.assert_array_equal(
        weft.grad(lambda x: (Vector(x[0], x[2]) + Vector(x[1])).size)(X), [3, 3, 0])


def test_identity_and_class_are_those_of_the_value() -> None:
    """In helpers, too; ``x > 0`` of a Python number is a bool of Python's."""
    def helper(flag: Any) -> Any:
        return 1.0 if flag is True else 2.0

    assert weft.compile(lambda x: helper(x > 0))(1.0) == 1.0
    assert weft.compile(lambda x: helper(x > 0))(-1.0) == 2.0


def test_a_name_that_only_looks_like_a_module_keeps_what_it_gets() -> None:
    class Keeper:
        def keep(self, items: Any) -> None:
            self.items = items

    special = Keeper()

    @weft.compile
    def f(x: Any) -> Any:
        out: list[Any] = []
        special.keep(out)
        for i in range(len(x)):
            if x[i] > 0:
                out.append(x[i])
        return len(special.items) + 0 * x[0]

    with pytest.raises(weft.Error, match="W102"):
        f(np.array([1.0, -1.0, 2.0]))


def test_one_function_in_two_classes() -> None:
    scaled = weft.compile(lambda self, x: x * self.k)

    class One:
        k, step = 2.0, scaled

    class Two:
        k, step = 3.0, scaled

    assert (One().step(1.0), Two().step(1.0)) == (2.0, 3.0)
    assert (One.step(One(), 1.0), Two.step(Two(), 1.0)) == (2.0, 3.0)


def test_a_method_that_changes_its_object_by_another_one() -> None:
    class Counter:
        def __init__(self) -> None:
            self.total = np.zeros(2)

        def add(self, x: Any) -> None:
            self.total += x

        @weft.compile
        def twice(self, x: Any) -> Any:
            self.add(x)
            self.add(x)
            return self.total.sum()

    counter = Counter()
    assert [counter.twice(1.0) for _ in range(3)] == [4.0, 8.0, 12.0]
    np.testing.assert_array_equal(counter.total, [6, 6])


def suppressed(x: Any) -> Any:
    y = 0.0
    with contextlib.suppress(ValueError):
        if x > 0:
            raise ValueError("no")
        y = 1.0
    return y


def in_a_group(x: Any) -> Any:
    y = 1.0
    try:
        if x > 0:
            raise ValueError("no")
    except* ValueError:
        y = 0.0
    return y


@contextlib.contextmanager
def forgiving() -> Iterator[None]:
    try:
        yield
    except ValueError:
        print("forgiven")


def forgiven(x: Any) -> Any:
    made = np.zeros(1)
    with forgiving():
        if x > 0:
            raise ValueError("no")
        made[0] = 1.0
    return made


@pytest.mark.parametrize("function", [suppressed, in_a_group, forgiven])
def test_what_may_be_caught_is_refused(function: Callable[..., Any]) -> None:
    """An exception on a way that is chosen later cannot end in the function itself."""
    with pytest.raises(weft.Error, match="W201: whether this exception is raised is not known"):
        weft.compile(function)(1.0)


def test_other_context_managers_let_exceptions_pass() -> None:
    def f(x: Any) -> Any:
        with np.printoptions(precision=3), contextlib.nullcontext():
            if x > 0:
                raise ValueError("no")
        return x

    compiled = weft.compile(f)
    assert compiled(-1.0) == -1.0
    with pytest.raises(ValueError, match="no"):
        compiled(1.0)


# -- nobody else sees it ------------------------------------------------------------------------


def test_what_others_see_while_a_function_is_traced() -> None:
    seen: list[bool] = []
    begun, looked = threading.Event(), threading.Event()
    before, code = (np.zeros, np.mean, print), np.r_.__class__.__getitem__.__code__

    def look() -> None:
        assert begun.wait(60)
        numpy = importlib.import_module("numpy")
        seen.append((numpy.zeros, numpy.mean, builtins.print) == before)
        seen.append(pickle.loads(pickle.dumps(np.mean)) is np.mean)
        seen.append(np.r_.__class__.__getitem__.__code__ is code)
        looked.set()

    def traced(x: Any) -> Any:
        begun.set()
        assert looked.wait(60)
        return np.r_[x, np.zeros(2)]

    worker = threading.Thread(target=look)
    worker.start()
    weft.compile(traced)(X)
    worker.join()
    with weft.Graph().as_default():
        look()
    assert seen == [True] * 6


def test_a_print_of_the_users_own_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    lines: list[Any] = []
    monkeypatch.setattr(builtins, "print", lines.append)
    mine = builtins.print
    weft.compile(lambda x: x + 1)(X)
    assert builtins.print is mine and not lines


# -- the text of the code that runs -------------------------------------------------------------


def test_an_edited_file_is_not_the_source_of_what_was_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "edited_by_this_test.py"
    text = "def f(x):\n    if x > 0:\n        return x + {}\n    return x\n"
    file.write_text(text.format(1))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    module = importlib.import_module("edited_by_this_test")
    try:
        file.write_text(text.format(100))
        with pytest.raises(weft.Error, match=r"W201(.|\n)*no source of this function at hand"):
            weft.compile(module.f)(1.0)
        importlib.reload(module)
        assert weft.compile(module.f)(1.0) == module.f(1.0) == 101.0
    finally:
        sys.modules.pop("edited_by_this_test", None)


def test_equal_code_of_two_files_has_the_lines_of_each(tmp_path: Path) -> None:
    places = []
    for name in ("one.py", "two.py"):
        file = tmp_path / name
        file.write_text("def f(x):\n    if x > 0:\n        return x @ x\n    return x\n")
        scope: dict[str, Any] = {}
        exec(compile(file.read_text(), str(file), "exec"), scope)
        with pytest.raises(weft.Error) as problem:
            weft.compile(scope["f"])(1.0)
        places.append(problem.value.locs[0].file)
    assert places == [str(tmp_path / "one.py"), str(tmp_path / "two.py")]


def test_a_graph_says_what_makes_its_arrays() -> None:
    with pytest.raises(weft.Error, match="fix: make arrays in a graph by weft"), \
            weft.Graph().as_default():
        x = weft.placeholder("f64[b]", name="x")
        np.zeros(x.shape[0])
    with weft.Graph().as_default() as g:
        x = weft.placeholder("f64[b]", name="x")
        y = weft.numpy.zeros(x.shape[0])
        y[0] = x[1]
        made = y + weft.numpy.array([x[0], 1.0])
    np.testing.assert_array_equal(weft.Session(g).run(made, {x: [3.0, 4.0]}), [7, 1])


def test_functions_in_a_comprehension_see_its_last_item() -> None:
    def late(x: Any) -> Any:
        late = [lambda: x * i for i in range(3)]  # noqa: B023
        early = [lambda i=i: x * i for i in range(3)]
        return [f() for f in late], [f() for f in early]

    for got, want in zip(weft.compile(late)(X), late(X), strict=True):
        np.testing.assert_array_equal(got, want)


def test_numbers_in_nests_are_copied() -> None:
    @dataclasses.dataclass
    class State:
        x: Any
        scale: Any = 1.0

    def f(state: State) -> Any:
        made = dataclasses.asdict(State(state.x * 2, state.scale + 1))
        other = copy.deepcopy(dataclasses.replace(state, scale=state.scale * 3))
        return made["x"] * made["scale"], other.scale, copy.copy(other).x

    for got, want in zip(weft.compile(f)(State(X, 2.0)), f(State(X, 2.0)), strict=True):
        np.testing.assert_array_equal(got, want)


# -- what Python calls by itself, and ways out of statements ------------------------------------


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
            kind_of(x), kind_of(2.0), functools.reduce(operator.add, [Vector(x[0])] * 2).parts)


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


@pytest.mark.parametrize("function", [called_by_python, leaves_a_try, sees_its_names])
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
