"""Whatever a function calls is traced in one way: helpers, classes, properties, operators and
generators mean in traced code what they mean in Python. NumPy and others see nothing of it."""

from __future__ import annotations

import builtins
import contextlib
import copy
import dataclasses
import functools
import importlib
import pickle
import subprocess
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


def test_a_file_that_is_edited_before_the_first_trace_of_a_process(tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text("""
import pathlib, sys
sys.dont_write_bytecode = True
file = pathlib.Path(__file__).with_name("edited.py")
text = "def f(x):\\n    if x > 0:\\n        return x + {}\\n    return x\\n"
file.write_text(text.format(1))
import edited
file.write_text(text.format(100))
import weft
try:
    print(weft.compile(edited.f)(1.0))
except weft.Error as problem:
    print("no source of this function at hand" in str(problem))
""")
    found = subprocess.run([sys.executable, str(tmp_path / "main.py")], capture_output=True,
                           text=True, check=True, timeout=120).stdout
    assert found.strip() == "True"


def test_modules_that_are_imported_while_something_is_traced_have_numpys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = "imported_in_a_trace", "imported_in_a_graph"
    for name in names:
        (tmp_path / f"{name}.py").write_text(
            "from numpy import mean, zeros\nTABLE = {mean: 1.0, zeros: 2.0}\n")
    monkeypatch.syspath_prepend(tmp_path)
    try:
        weft.compile(lambda x: x + importlib.import_module(names[0]).TABLE[np.mean])(X)
        with weft.Graph().as_default():
            importlib.import_module(names[1])
        for name in names:
            assert [*sys.modules[name].TABLE] == [np.mean, np.zeros]
    finally:
        for name in names:
            sys.modules.pop(name, None)


def test_an_interrupt_as_a_trace_begins_leaves_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the line that makes it the active one and the line that promises to end it: all later
    calls of the thread were parts of that trace."""
    from weft.frontend.tracing.context.recorder import ACTIVE, TraceContext

    def interrupted(self: TraceContext) -> Any:
        ACTIVE.set(self)
        raise KeyboardInterrupt

    f = weft.compile(lambda x: x + 1)
    with monkeypatch.context() as patch:
        patch.setattr(TraceContext, "activate", interrupted)
        with pytest.raises(KeyboardInterrupt):
            f(X)
    assert ACTIVE.get() is None
    np.testing.assert_array_equal(f(X), X + 1)
