"""Texts of traced values: what Python makes of the values, when the program runs."""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import functools
import io
import logging
import os
import pprint
import string
import sys
import textwrap
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft
from weft.frontend.tracing.late import LateText, late
from weft.frontend.tracing.trace import trace_function

X = np.array([1.0, 2.0, 0.5])
LOG = logging.getLogger("weft_test_texts")


class CodedError(Exception):
    def __init__(self, message: str, code: Any) -> None:
        super().__init__(message)
        self.code = code


class LabelledError(ValueError):
    def __init__(self, x: Any) -> None:
        self.x = x
        self.label = f"<{x:.1f}>"
        super().__init__(f"label of {x}")


class SpokenError(Exception):
    def __init__(self, x: Any) -> None:
        self.x = x

    def __str__(self) -> str:
        return f"spoken {self.x}"


Pair = collections.namedtuple("Pair", "a b")


@dataclasses.dataclass
class Record:
    a: Any
    b: Any


class Shown:
    def __init__(self, value: Any) -> None:
        self.value = value

    def __repr__(self) -> str:
        return f"Shown({self.value})"


class Formatted(Shown):
    def __format__(self, spec: str) -> str:
        return f"formatted {self.value:{spec}}"


def outcome(function: Callable[..., Any], *args: Any) -> Any:
    """What a function gives, raises (with arguments and attributes), prints, logs and warns of."""
    out, err, logged = io.StringIO(), io.StringIO(), io.StringIO()
    handler = logging.StreamHandler(logged)
    handler.setFormatter(logging.Formatter("%(levelname)s %(funcName)s %(lineno)d %(message)s"))
    LOG.addHandler(handler)
    LOG.setLevel(logging.INFO)
    LOG.propagate = False
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), (
                warnings.catch_warnings(record=True)) as caught:
            warnings.simplefilter("always")
            try:
                found: Any = str(function(*args))
            except AssertionError as problem:
                text = str(problem).split("\n")[0]
                found = "AssertionError", text.replace("W125: the assertion does not hold: ", "")
            except Exception as problem:
                own = {name: str(value) for name, value in vars(problem).items()
                       if name != "__notes__"}
                found = type(problem), str(problem), [str(each) for each in problem.args], own
    finally:
        LOG.removeHandler(handler)
    told = [(str(each.message), each.category, each.lineno) for each in caught
            if "recompiled" not in str(each.message)]
    return found, out.getvalue(), err.getvalue(), logged.getvalue(), told


# -- raise and assert -----------------------------------------------------------------------------


def negative(x: Any) -> Any:
    if x.sum() < 0:
        raise ValueError(f"negative {x.sum():.3f} in {x}")
    return x


def two_of_one_text(x: Any) -> Any:
    if x.sum() > 4:
        raise CodedError("bad", 1)
    if x.sum() < 0:
        raise CodedError("bad", 2)
    return x


def attributes(x: Any) -> Any:
    if x.sum() > 4:
        raise CodedError("bad", x.max())
    if x.sum() < 0:
        raise CodedError(f"bad {x[0]}", [x * 2, {"first": x[0]}])
    return x


def of_own_classes(x: Any) -> Any:
    if x.sum() < 0:
        raise LabelledError(x.sum())
    if x.sum() > 4:
        raise SpokenError(x.sum())
    return x


def in_loops(x: Any) -> Any:
    for i in range(len(x)):
        if x[i] < -1:
            raise KeyError(f"item {i} is {x[i]}")
    rounds = 0
    while x.sum() > 1:
        x = x / 2
        rounds += 1
        if rounds > 2:
            raise RuntimeError(f"round {rounds}: {x.sum():.4f}")
    return x


def in_a_helper(x: Any) -> Any:
    def root(v: Any) -> Any:
        if v < 0:
            raise ValueError("no root of %s" % v)  # noqa: UP031
        return np.sqrt(v)

    return root(x[0]) + root(x[1])


def asserted(x: Any) -> Any:
    assert x.min() >= 0, f"min is {x.min()}"
    assert x.sum() < 5, ("sum", x.sum())
    return x


def in_order(x: Any) -> Any:
    assert x.max() < 5, f"max is {x.max()}"
    if abs(x.sum()) > 3:
        raise OSError(2, f"sum is {x.sum()}", "file")
    return x


def always(x: Any) -> Any:
    raise ValueError(f"always {x.sum()}", x)


def scanned(x: Any) -> Any:
    def body(carry: Any, v: Any) -> Any:
        assert v >= 0, f"v is {v}"
        return carry + v, carry

    return weft.scan(body, 0.0, x)


def mapped(x: Any) -> Any:
    def one(v: Any) -> Any:
        if v < -0.7:
            raise ValueError(f"one is {v}")
        return v * 2

    return weft.vmap(one)(x)


def differentiated(x: Any) -> Any:
    def loss(x: Any) -> Any:
        if x.sum() < 0:
            raise ValueError(f"loss of {x}")
        return (x * x).sum()

    return weft.grad(loss)(x)


@pytest.mark.parametrize("function", [
    negative, two_of_one_text, attributes, of_own_classes, in_loops, in_a_helper, asserted,
    in_order, always, mapped, differentiated])
def test_what_fails(function: Callable[[Any], Any]) -> None:
    compiled = weft.compile(function)
    for x in (X, -X, 3 * X, X, -X):
        assert outcome(compiled, x) == outcome(function, x)
    assert compiled.cache_info().specialisations == 1


def test_at_once_and_in_a_scan() -> None:
    for function in (scanned, weft.compile(scanned)):
        with pytest.raises(AssertionError, match=r"W125: the assertion does not hold: v is -2\.0"):
            function(np.array([1.0, -2.0, -3.0]))


def test_other_arguments_have_other_attributes() -> None:
    @weft.compile(static_argnames="n")
    def checked(x: Any, n: int) -> Any:
        if x < 0:
            raise CodedError("bad", n)
        return x

    for n in (5, 6, 5, 7, 6):
        with pytest.raises(CodedError) as caught:
            checked(-1.0, n)
        assert caught.value.code == n


def test_threads_have_texts_of_their_own() -> None:
    compiled = weft.compile(negative)
    wrong: list[str] = []

    def work(first: float) -> None:
        for number in range(50):
            x = np.array([-first - number])
            with pytest.raises(ValueError) as caught:
                compiled(x)
            if str(caught.value) != f"negative {x.sum():.3f} in {x}":
                wrong.append(str(caught.value))

    threads = [threading.Thread(target=work, args=(1000.0 * each,)) for each in range(1, 4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_in_a_session() -> None:
    g = weft.Graph()
    with g.as_default():
        x = weft.placeholder("f64[3]", name="x")

        @weft.compile
        def checked(x: Any) -> Any:
            if x.min() < 0:
                raise KeyError(f"min {x.min():.2f}")
            assert x.max() < 5, f"max {x.max()}"
            return x * 2

        y = checked(x)
    s = weft.Session(g)
    call = s.make_callable(y, [x])
    for run in (lambda v: s.run(y, {x: v}), lambda v: s.run(y, {x: v}, timeout=60), call):
        np.testing.assert_array_equal(run(X), 2 * X)
        with pytest.raises(KeyError, match=r"min -2\.00"):
            run(-X)
        with pytest.raises(AssertionError, match=r"does not hold: max 8\.0"):
            run(4 * X)


def test_an_artifact_names_the_values(tmp_path: Path) -> None:
    weft.export(weft.compile(negative), X, path=tmp_path / "model")
    loaded = weft.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded(X), X)
    with pytest.raises(AssertionError, match=r"ValueError: negative \{sum\} in \{x\}"):
        loaded(-X)


def test_a_list_that_grows_and_a_text() -> None:
    @weft.compile
    def halved(s: Any) -> Any:
        found = []
        while s > 1:
            found.append(s)
            s = s / 1.01
        if s < 0:
            raise ValueError(f"s is {s}")
        return len(found)

    assert halved(1e6) == 1389
    with pytest.raises(ValueError, match=r"s is -2\.5"):
        halved(-2.5)


# -- print, logs, warnings and streams ------------------------------------------------------------


def printed(x: Any) -> Any:
    show = lambda v: print("lambda", v)  # noqa: E731
    show(x[0])
    [print(v) for v in x]
    [print(f"{v:.1f}", end=" ") for v in x]
    list(map(print, x))
    nothing = print("as a value")
    print(nothing, x, file=sys.stderr)
    x.sum() > 0 and print("and")
    print("a", x[0], sep="-", end="!\n", flush=True)
    print(*x)
    pprint.pprint({"a": x, "b": [x[0]]})
    return x


def nests(x: Any) -> Any:
    print({"a": x[0], "b": [x[1], x]}, (x[0],), [x[0]], Pair(x[0], x), Record(x[0], x))
    print(Shown(x[0]), [Shown(x[1])], f"{Shown(x)} {Record(x[1], 2)!r} {Formatted(x[0]):.2f}")
    print(repr({"k": x[0]}), str([x]), collections.deque([x[0]]), pprint.pformat([x] * 3))
    return x


def made(x: Any) -> Any:
    total = ("a" + str(x[0]) + "b").upper().center(30, "*")
    total += f"{f'{x[0]:.1f}':>10}|{x[0]:{10}.{2}f}|{x[0]=}" + f"{x[1]}" * 2 + f"{x[0]}"[:2]
    form = "%s %.2f %r"
    return (total, ", ".join(f"{v:.2f}" for v in x), ",".join(map(str, x)),
            "-".join([str(v) for v in x]), "{:.1f} {a}".format(x[0], a=x),  # noqa: UP032
            form % (x, x[0], x[1]), "%(a)s" % {"a": x[0]}, ascii(x[0]), format(x[0], ".2f"),  # noqa: UP031
            string.Template("$a and ${b}").substitute(a=x[0], b=x),
            textwrap.fill(f"{x} " * 5, 20), textwrap.indent(f"{x}", "  "),
            np.array2string(x, precision=2), np.array_repr(x), np.array_str(x),
            isinstance(str(x[0]), str), isinstance(str(x[0]), float), type(str(x[0])) is str,
            type([x[0]]) is list)


def kept(x: Any) -> Any:
    text = f"{x}"
    x = x.copy()
    x[0] = 100.0
    parts = [f"{x.sum():.2f}", *[f"{x[1]}"]]
    parts.append(str(x[0]))
    last, i = f"{x[0]}", 0
    while i < 3:
        last = f"{x[i]}"
        i += 1
    return text, " | ".join(parts), {"t": parts[0], "n": x.size}, x, last


def logged(x: Any) -> Any:
    LOG.info("start")
    LOG.info("x is %s", x)
    LOG.warning(f"sum {x.sum()}")
    if x.sum() < 0:
        LOG.error("negative %s %.2f", x, x[0])
    LOG.log(logging.INFO, "at %s", x[0])
    logging.LoggerAdapter(LOG, {}).info("adapted %s", x)
    return x


def warned(x: Any) -> Any:
    warnings.warn(f"sum is {x.sum()}", stacklevel=1)
    if x.sum() < 0:
        warnings.warn(f"negative {x}", RuntimeWarning, stacklevel=1)
    warnings.warn(UserWarning(f"as {x[0]}"), stacklevel=1)
    return x


def written(x: Any) -> Any:
    sys.stdout.write(f"sum {x.sum()}\n")
    sys.stdout.write("plain\n")
    sys.stderr.write("first %s\n" % x[0])  # noqa: UP031
    return x


def numbers(n: Any, rate: Any, flag: Any, turn: Any, small: Any) -> Any:
    print(n, rate, flag, turn, small, [n, rate, flag, turn, small])
    return f"{n:04d} {rate:.2e} {flag} {turn:.1f} {small!r} {n:x} {rate:%} {n:,} {n + 1}"


def perhaps(x: Any) -> Any:
    best = None
    found = []
    for i in range(len(x)):
        if x[i] > 1:
            best = i
            found.append(x[i])
    print(best, f"best {best}", x[x > 0.7], f"{found} {len(found)}")
    return x


@pytest.mark.parametrize("function", [
    printed, nests, made, logged, warned, written, perhaps])
def test_as_python_tells(function: Callable[[Any], Any]) -> None:
    compiled = weft.compile(function)
    for x in (X, -X, 3 * X, X):
        assert outcome(compiled, x) == outcome(function, x)
    assert compiled.cache_info().specialisations == 1


def test_texts_stay_as_they_were() -> None:
    def plain(x: Any) -> Any:
        y = x.copy()
        y[0] = 100.0
        return f"{x}", f"{y.sum():.2f} | {y[1]} | {y[0]}", {"t": f"{y.sum():.2f}", "n": 3}, y, (
            f"{y[2]}")

    for x in (X, -X):
        for ours, theirs in zip(weft.compile(kept)(x), plain(x), strict=True):
            assert str(ours) == str(theirs)


def test_numbers_of_all_kinds() -> None:
    compiled = weft.compile(numbers)
    for args in ((5, 2.5, True, 1 + 2j, np.float32(1.1)), (-7, 0.25, False, 1j, np.float32(2))):
        assert outcome(compiled, *args) == outcome(numbers, *args)
    assert compiled.cache_info().specialisations == 1


def test_results_of_a_batch() -> None:
    def told(x: Any) -> Any:
        print(f"row {x}")
        return x.sum()

    rows = np.arange(6.0).reshape(3, 2)
    assert outcome(weft.compile(lambda x: weft.vmap(told)(x)), rows)[1] == (
        "row [0. 1.]\nrow [2. 3.]\nrow [4. 5.]\n")


# -- who asks for the text itself -----------------------------------------------------------------

ASKED: tuple[tuple[Callable[[Any], Any], Any], ...] = (
    (lambda n: {"5": 1}.get(str(n), 0), 1), (lambda n: {f"w{n}": 2}[f"w{n}"], 2),
    (lambda n: 1.0 if str(n) == "5" else 2.0, 1.0), (lambda n: len(f"{n}"), 1),
    (lambda n: len("%s" % n), 1), (lambda n: len("{}".format(n)), 1),  # noqa: UP031, UP032
    (lambda n: sum(map(int, str(n))), 5), (lambda n: str(n)[::-1] == str(n), True),
    (lambda n: f"{n}" in "456", True), (lambda n: f"{n}".startswith("5"), True),
    (lambda n: int(f"{n}0"), 50), (lambda n: getattr(Pair(1, 2), "ab"[n - 5] + f"{n}"[1:]), 1),
    (lambda n: np.zeros(3, f"f{n - 1}").itemsize, 4), (lambda n: f"{n + 1}".isdigit(), True),
    (lambda n: sorted([f"{n}", "4"])[0] == "4", True), (lambda n: os.path.join("a", f"{n}"), "a/5"),
    (lambda n: "five" if f"{n}" in {"5"} else "other", "five"))


@pytest.mark.parametrize("at", range(len(ASKED)))
def test_integers_become_static(at: int) -> None:
    function, want = ASKED[at]
    compiled = weft.compile(function)
    assert compiled(5) == want
    assert function(5) == want
    assert "static" in str(compiled.explain()) or at == 15


def test_other_texts_are_refused() -> None:
    def keyed(x: Any) -> Any:
        return {"1.0": 1.0}.get(f"{x}", 0.0)

    for function in (keyed, lambda x: len(f"{x:.2f}"), lambda x: f"{x}" == "1.0",
                     lambda x: Path(f"{x}.txt"), lambda x: f"{x}" in "1.0", lambda x: f"{x}"[0],
                     lambda x: float(f"{x}"), lambda x: f"{x}".split(".")):
        with pytest.raises(TypeError, match=r"W201: the text .* is not known") as caught:
            weft.compile(function)(1.0)
        assert caught.value.hint == "name the argument in static_argnames"
    assert weft.compile(keyed, static_argnames="x")(1.0) == 1.0
    with pytest.raises(TypeError, match=r"W201: the text '\{sum\}' is not known") as caught:
        weft.compile(lambda x: len(f"{x.sum():.2f}"))(X)
    assert caught.value.hint == (
        "return the values, and make the text of what the function has returned")


def test_texts_in_memory_are_refused() -> None:
    def written(x: Any) -> Any:
        made = io.StringIO()
        made.write(f"{x}")
        return len(made.getvalue())

    def printed(x: Any) -> Any:
        made = io.StringIO()
        print(x, file=made)
        return len(made.getvalue())

    def redirected(x: Any) -> Any:
        with contextlib.redirect_stdout(io.StringIO()) as made:
            print("x is", x)
        return len(made.getvalue())

    for function in (written, printed, redirected):
        with pytest.raises(TypeError, match="W201: what is written to a StringIO is not known"):
            weft.compile(function)(X)


def test_code_that_is_not_rewritten_gets_no_text() -> None:
    names: dict[str, Any] = {}
    exec("class Named:\n    def __init__(self, x):\n        self.name = f'{x}'", names)
    Named = names["Named"]

    with pytest.raises(TypeError, match=r"W201: .* (its text|a formatted number) is not known"):
        weft.compile(lambda x: len(Named(x.sum()).name))(X)


@pytest.mark.long
def test_what_a_debugger_gets() -> None:
    names = {"__name__": "pdb"}
    exec("def look(x):\n    return repr(x), str([x]), f'{x}'", names)
    look: Any = names["look"]

    seen: list[Any] = []
    weft.compile(lambda x: (seen.extend(look(x)), x)[1])(X)
    assert seen == ["Tracer<f64[3] 'x:0'>", "[Tracer<f64[3] 'x:0'>]", "Tracer<f64[3] 'x:0'>"]

    held: list[Any] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        weft.compile(lambda x: (held.append(x), x)[1])(X)
    assert repr(held) == "[Tracer<f64[3] 'x:0'>]"


@pytest.mark.filterwarnings("default:.* is a traced value")
def test_a_late_text_describes_itself() -> None:
    found: list[Any] = []

    def told(x: Any) -> Any:
        found.append(late(functools.partial("{:>9.1f}!".format), x.sum()))
        return x

    trace_function(told, (X,), lasting=False)
    (text,) = found
    assert isinstance(text, LateText) and text.described() == "{sum}!"


def test_what_printoptions_ask_for_holds_where_they_stand(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def f(x: Any) -> Any:
        with np.printoptions(precision=2):
            print(x)
            text = f"{x * 2}"
        print(x)
        for i in range(2):
            if x[0] > i:
                with np.printoptions(precision=1, suppress=True):
                    print(x + i)
        return text

    compiled = weft.compile(f)
    for x in (np.array([1.23456789, 2.0]), np.array([0.5, 1e-7])):
        want = f(x), capsys.readouterr().out
        assert (compiled(x), capsys.readouterr().out) == want
