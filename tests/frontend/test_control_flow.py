"""Python's own control flow on traced values: what is compiled gives what Python gives."""

# ruff: noqa: SIM108  the statements are what is tested

from __future__ import annotations

import ast
import functools
import itertools
import math
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.control_programs import PROGRAMS

import weft
from weft.frontend.face import tree
from weft.frontend.rewriting.source.exits import leaves
from weft.frontend.rewriting.source.names import bound, changed


def check(function: Callable[..., Any], calls: Any, **options: Any) -> None:
    compiled = weft.compile(function, **options)
    for args in calls:
        given = [[x.copy() if isinstance(x, np.ndarray) else x for x in args] for _ in range(2)]
        want, got = tree.leaves(function(*given[0])), tree.leaves(compiled(*given[1]))
        for a, b in zip(want, got, strict=True):
            assert np.asarray(a).dtype == np.asarray(b).dtype
            np.testing.assert_allclose(np.asarray(b, float), np.asarray(a, float), rtol=1e-12)


@pytest.mark.parametrize(("function", "calls"), PROGRAMS,
                         ids=[function.__name__ for function, _ in PROGRAMS])
def test_a_program_gives_what_python_gives(function: Callable[..., Any], calls: Any) -> None:
    check(function, calls)


def test_a_function_without_traced_conditions_is_traced_as_it_stands() -> None:
    calls = []

    def flat(x: Any) -> Any:
        calls.append(1)
        return x if len(x) > 2 else -x

    weft.compile(flat)(np.ones(3))
    assert len(calls) == 1


def test_one_compile_serves_both_ways() -> None:
    def sign(x: Any) -> Any:
        if x > 0:
            return 1
        return -1 if x < 0 else 0

    compiled = weft.compile(sign)
    assert [compiled(x) for x in (2.0, -3.0, 0.0)] == [1, -1, 0]
    assert compiled.cache_info().specialisations == 1


def test_only_the_way_that_is_taken_runs() -> None:
    ran = []

    def noted(x: Any) -> Any:
        ran.append(float(x))
        return x

    def choose(x: Any) -> Any:
        if x > 0:
            return weft.host_call(noted, "f64[]", x)
        return x * 2

    compiled = weft.compile(choose)
    assert compiled(-1.0) == -2 and ran == []
    assert compiled(3.0) == 3 and ran == [3.0]


def test_an_index_is_asked_for_only_where_it_is_inside() -> None:
    def find(x: Any, wanted: Any) -> Any:
        i = 0
        while i < len(x) and x[i] != wanted:
            i += 1
        return i

    x = np.array([3.0, 1.0, 4.0])
    check(find, [(x, 4.0), (x, 9.0)])


def test_writes_reach_other_names_of_an_array() -> None:
    def fill(x: Any, on: Any) -> Any:
        whole = np.zeros(4)
        part = whole[1:3]
        if on > 0:
            part[0] = on
            whole[3] = 7
        part[1] += 1
        return whole, part

    check(fill, [(np.ones(1), 2.0), (np.ones(1), -2.0)])


def test_an_argument_is_changed_on_the_way_that_is_taken() -> None:
    def change(x: Any) -> Any:
        if x.sum() > 0:
            x[0] = 5.0
        return x

    with pytest.raises(weft.Error, match="W203"):
        weft.compile(inout="error")(change)(np.ones(3))

    def grown(x: Any) -> Any:
        if x.sum() > 0:
            x += 1
        return x

    x = np.ones(3)
    assert weft.compile(grown)(x) is x
    np.testing.assert_array_equal(x, 2 * np.ones(3))


def test_variables_change_on_the_way_that_is_taken() -> None:
    count = weft.Variable(np.int64(0))

    def step(x: Any) -> Any:
        if x > 0:
            count.assign_add(1)
        while count[...] < 3:
            count.assign_add(2)
        return x

    compiled = weft.compile(step)
    compiled(-1.0)
    assert count.numpy() == 4
    compiled(1.0)
    assert count.numpy() == 5


@pytest.mark.parametrize("size", [0, 1, 2, 7])
def test_unknown_sizes(size: int) -> None:
    def positive(x: Any) -> Any:
        total = 0.0
        for value in x:
            if value > 0:
                total += value
        return total

    def halves(x: Any) -> Any:
        n = len(x)
        if n > 2:
            return x.sum()
        return x.sum() * 0.5

    for function in (positive, halves):
        check(function, [(np.arange(size) - 1.5,)], dynamic={"x": {0: "n"}})


def test_bodies_of_transforms() -> None:
    def step(carry: Any, x: Any) -> Any:
        return (carry + x if x > 0 else carry), carry

    compiled = weft.compile(lambda x: weft.scan(step, 0.0, x))
    last, before = compiled(np.array([1.0, -2.0, 3.0]))
    assert last == 4.0
    np.testing.assert_array_equal(before, [0, 1, 1])
    inner = weft.compile(lambda x: x * 2 if x > 0 else x)
    assert weft.compile(lambda x: inner(x) + 1)(3.0) == 7.0


def test_math_and_builtins() -> None:
    def numbers(x: Any, n: Any) -> Any:
        return (math.sqrt(x) + math.sin(x) * math.floor(x), max(x, 2.5), min([x, n * 1.0]),
                round(x), int(x), float(n), bool(n), abs(-x), sum([x, n]), any([x > 1, n > 1]),
                all([x > 1, n > 1]), math.hypot(x, n), divmod(n, 3), pow(x, 2))

    check(numbers, [(2.25, 4), (0.5, 0)])

    def of_generators(x: Any, n: Any) -> Any:
        return (max(v * n for v in x), min(map(abs, x)), sorted(v + n for v in x),
                max(abs(a - b) for a, b in itertools.combinations(x, 2)), max([], default=3))

    check(of_generators, [(np.array([3.0, -1.0, 2.0]), 2.0)])

    def of_integers(n: Any, x: Any) -> Any:
        return math.gcd(n, x, 18), math.lcm(n, x), math.isqrt(n), math.gcd(12, 18)

    check(of_integers, [(462, -1071), (2**61 - 1, 4), (2**62, 8), (3037000499**2 - 1, 1),
                        (3037000499**2, 1), (2**63 - 1, 0), (0, 5)])
    with pytest.raises(weft.Error, match="W131"):
        weft.compile(of_integers)(2**62 - 1, 4)
    with pytest.raises(ValueError, match=r"W132: isqrt.*nonnegative"):
        weft.compile(lambda n: math.isqrt(n))(-1)


def test_methods_super_and_closures() -> None:
    class Base:
        scale = 2.0

        def run(self, x: Any) -> Any:
            return x * self.scale if x > 0 else x

    class Other(Base):
        def run(self, x: Any) -> Any:
            if x < -1:
                return -x
            return super().run(x) + 1

    weights = {"w": 3.0}

    def make(offset: float) -> Callable[[Any], Any]:
        def shifted(x: Any) -> Any:
            return x + offset if x > weights["w"] else x
        return shifted

    check(Other().run, [(2.0,), (-0.5,), (-4.0,)])
    check(make(10.0), [(2.0,), (4.0,)])


def halved(x: Any, times: int) -> Any:
    return x if times == 0 or x < 1 else halved(x / 2, times - 1)


def test_functions_that_call_themselves() -> None:
    check(lambda x: halved(x, 3), [(3.0,), (100.0,)])

    def inner(x: Any, times: int) -> Any:
        return x if times == 0 or x < 1 else inner(x / 2, times - 1)

    check(lambda x: inner(x, 3), [(3.0,), (100.0,)])


def test_plain_tables_and_lists_are_read_at_traced_places() -> None:
    table, rates = np.arange(12.0).reshape(3, 4), [0.5, 1.5, 2.0]

    def looked_up(n: Any, x: Any) -> Any:
        for k in range(n):
            x = x * rates[k % 3] + table[k % 3, 0] - (table[-1, k % 4], x)[0]
        return x

    check(looked_up, [(5, 1.0), (0, 2.0)])
    check(lambda i: table[i], [(1,), (-1,)])
    check(lambda i: table[i, 1:], [(1,), (-1,)])
    check(lambda i: table[i, ::-1][i], [(np.array([1, 0]),)])
    with pytest.raises(weft.Error, match="W124"):
        weft.compile(lambda i: table[i])(3)
    with pytest.raises(weft.Error, match="W201"):
        weft.compile(lambda i: [np.sin, np.cos][i](1.0))(np.array(1))


def test_tables_made_before_a_loop_are_read_in_it() -> None:
    def place(x: Any) -> Any:
        table, low, high = np.array([1.0, 3, 5, 7, 9]), 0, 5
        while low < high:
            middle = (low + high) // 2
            if table[middle] < x:
                low = middle + 1
            else:
                high = middle
        return low

    check(place, [(6.0,), (0.0,), (9.5,)])


def helpers(x: Any, n: Any) -> Any:
    for i in range(n):
        def shrink(y: Any) -> Any:
            return y * 0.5 + i  # noqa: B023  # is called in its round

        x = shrink(x)
        if x.sum() < 1:
            break
    return x


def temporaries(x: Any, n: Any) -> Any:
    if n > 1:
        part = x * 2
        total = part.sum()
    else:
        part = x.sum()
        total = part
    for i in range(n):
        part = x[0] * i
        total = total + part
    return total


def returned_in_a_loop(x: Any, n: Any) -> Any:
    k = 0
    while k < n:
        k += 1
        if k * x[0] > 2:
            return x * k
    return x


def nested_temporaries(x: Any, n: Any) -> Any:
    part, total = None, 0.0
    for _ in range(n):
        for j in range(n):
            part = x * j
            total = total + part.sum()
        total = total + 1
    return total


def last_part(x: Any, n: Any) -> Any:
    part = x.sum()
    for i in range(n):
        part = x * i
    return part


def one_of_two(x: Any, n: Any) -> Any:
    if n > 1:
        f = np.sin
    else:
        f = np.cos
    return f(x)


@pytest.mark.parametrize("function", [
    helpers, temporaries, nested_temporaries, returned_in_a_loop])
def test_names_that_nobody_reads_later_may_be_anything(function: Any) -> None:
    """Functions, and arrays of other shapes on two ways, or before a loop and in it."""
    x = np.arange(1.0, 4.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for n in (0, 1, 3):
            for compiled in (weft.compile(function),
                             weft.compile(function, dynamic={"x": {0: "m"}})):
                np.testing.assert_allclose(compiled(x, n), function(x, n))


@pytest.mark.parametrize(("function", "message"), [
    (last_part, r"W102: part is f64\[\] before the loop and f64\[3\] after a round"),
    (one_of_two, r"W102: f is a ufunc on one way and a ufunc on the other(.|\n)*on its own way")])
def test_names_that_are_read_later_have_one_type(function: Any, message: str) -> None:
    with pytest.raises(weft.Error, match=message):
        weft.compile(function)(np.ones(3), np.array(3))
    np.testing.assert_array_equal(weft.compile(function)(np.ones(3), 3), function(np.ones(3), 3))


def test_instances_that_are_called() -> None:
    class Leaky:
        def __init__(self, slope: float) -> None:
            self.slope = slope

        def __call__(self, x: Any) -> Any:
            return x if x > 0 else self.slope * x

    leaky = Leaky(0.25)
    check(lambda x: leaky(x) + Leaky(2.0)(x), [(3.0,), (-4.0,)])


class Slope:
    """An object that is called, with Python's own control flow."""

    def __init__(self, slope: float) -> None:
        self.slope = slope

    def __call__(self, x: Any) -> Any:
        return x * self.slope if x > 0 else x


@pytest.mark.parametrize(("run", "wanted"), [
    (lambda f: weft.compile(f)(2.0), 6.0),
    (lambda f: weft.grad(f)(2.0), 3.0),
    (lambda f: weft.grad(functools.partial(f))(-2.0), 1.0),
    (lambda f: weft.vmap(f)(np.array([1.0, -1.0])), [3.0, -1.0]),
    (lambda f: weft.compile(lambda x: weft.cond(x > 1, f, f, x))(2.0), 6.0),
    (lambda f: weft.jvp(f, (2.0,), (1.0,))[1], 3.0),
], ids=["compile", "grad", "partial", "vmap", "cond", "jvp"])
def test_objects_that_are_given_as_functions(run: Any, wanted: Any) -> None:
    np.testing.assert_array_equal(run(Slope(3.0)), wanted)


def test_control_flow_in_a_gradient_of_its_own() -> None:
    @weft.custom_vjp
    def leaky(x: Any) -> Any:
        return x if x > 0 else 0 * x

    leaky.defvjp(lambda x: (leaky(x), x), lambda x, ct: (ct if x > 0 else ct * 0.5,))
    assert weft.compile(lambda x: leaky(x) + 1)(-2.0) == 1.0
    assert weft.grad(lambda x: leaky(x) * 3)(-2.0) == 1.5
    assert weft.grad(lambda x: leaky(x) * 3)(2.0) == 3.0


def test_lambdas_inside_of_lambdas_in_one_line() -> None:
    check(lambda x: (lambda v: v * 2 if v > 0 else -v)(x + 1 if x > 5 else x), [(7.0,), (-1.0,)])


def test_what_has_no_source_says_so_as_before() -> None:
    made: dict[str, Any] = {}
    exec("def relu(x):\n    return x if x > 0 else 0.0", made)
    with pytest.raises(weft.Error, match=r"W201: .* truth value"):
        weft.compile(made["relu"])(1.0)


def test_a_name_error_of_the_user_stays_one() -> None:
    def wrong(x: Any) -> Any:
        if x > 0:
            return missing  # noqa: F821
        return x

    with pytest.raises(NameError, match="missing"):
        weft.compile(wrong)(1.0)


def test_lines_of_errors_are_the_users() -> None:
    def wrong(x: Any) -> Any:
        if x.sum() > 0:
            y = x @ np.ones(7)  # here
        else:
            y = x
        return y

    with pytest.raises(weft.Error, match=r"y = x @ np\.ones\(7\)  # here\n\s*\|\s+\^+"):
        weft.compile(wrong)(np.ones(3))


def test_traces_warn_of_nothing() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        weft.compile(lambda x: x if x > 0 else -x)(1.0)


@pytest.mark.parametrize(("text", "paths"), [
    ("x = 1", ["x"]), ("x[i] = 1", ["x"]), ("x.a.b = 1", ["x.a.b"]), ("x += y", ["x"]),
    ("for i, (j, k) in y: z = i", ["i", "j", "k", "z"]), ("[i for i in x]", []),
    ("x.append(1)", ["x"]), ("self.items.append(y)", ["self.items"]), ("x[0][1] = 2", ["x"]),
    ("np.add(a, b, out=c)", ["np", "c"]), ("np.add.at(x, i, 1)", ["x"]), ("(n := 3)", ["n"]),
    ("def f(): y = 1", ["f"]), ("del x", ["x"]), ("with a as b: pass", ["b"])])
def test_what_statements_change(text: str, paths: list[str]) -> None:
    assert list(changed(ast.parse(text).body)) == paths


def test_what_statements_bind() -> None:
    body = ast.parse("x[0] = 1\ny = 2\nz.a = 3\nw.append(4)\n[v for v in y]").body
    assert bound(body) == {"y"}


@pytest.mark.parametrize(("text", "sure"), [
    ("return 1", True), ("if a: return 1\nelse: return 2", True), ("if a: return 1", False),
    ("raise E", True), ("while a: return 1", False), ("x = 1\nif a:\n  break\nelse:\n  continue",
                                                       True)])
def test_what_surely_leaves(text: str, sure: bool) -> None:
    lines = "".join(f"  {line}\n" for line in text.splitlines())
    function = ast.parse(f"def f():\n while z:\n{lines}").body[0]
    assert leaves(function.body[0].body) == sure  # type: ignore[attr-defined]


def test_a_function_that_may_end_without_a_result() -> None:
    def positive(x: Any) -> Any:  # noqa: RET503
        if x > 0:
            return x

    def first_above(v: Any) -> Any:  # noqa: RET503
        for i in range(len(v)):
            if v[i] > 2:
                return i, v[i]

    def used(x: Any) -> Any:
        found = positive(x)
        return 7.0 if found is None else found * 2

    compiled = weft.compile(positive)
    assert compiled(1.5) == 1.5 and compiled(-1.0) is None
    assert weft.compile(first_above)(np.arange(9.0)) == (3, 3.0)
    assert weft.compile(first_above)(np.zeros(9)) is None
    assert weft.compile(used)(2.0) == 4.0 and weft.compile(used)(-2.0) == 7.0


def test_none_beside_a_result_that_no_zeros_stand_for_and_the_fix() -> None:
    def maybe(x: Any) -> Any:  # noqa: RET503
        if x[0] > 0:
            return {"a": x, "b": 1}

    def fixed(x: Any) -> Any:
        if x[0] > 0:
            return {"a": x, "b": 1}
        return {"a": np.full(2, np.nan), "b": -1}

    with pytest.raises(weft.Error, match=r"W102.*a dict of 2 on one way and None") as caught:
        weft.compile(maybe)(np.ones(2))
    assert "let a dict of the same form stand for none" in caught.value.hint
    found = weft.compile(fixed)(-np.ones(2))
    assert np.isnan(found["a"]).all() and found["b"] == -1


def test_a_test_that_draws_after_a_round_that_binds_a_plain_number() -> None:
    rng = weft.random.default_rng(3)

    def function(x: Any) -> Any:
        scale, count = x * 0.5, 0
        while count < 4 and rng.random() < x + 1:
            count += 1
            scale = np.tanh(0.5)
        return scale, count

    found = weft.compile(function)(np.float64(0.3))
    np.testing.assert_allclose(found, (np.tanh(0.5), 4))


def test_assertions_of_a_step_that_only_assigns() -> None:
    held = weft.Variable(np.zeros(2))

    @weft.compile
    def step(x: Any) -> None:
        assert np.all(x > 0), "x is positive"
        held.assign_add(x)

    assert step(np.ones(2)) is None
    with pytest.raises(AssertionError, match="x is positive"):
        step(np.array([1.0, -1.0]))
    assert held.numpy().tolist() == [1, 1]


@pytest.mark.parametrize("result", [None, (), {"none": []}], ids=repr)
def test_functions_that_only_check(result: Any) -> None:
    @weft.compile(dynamic={"x": {0: "n"}})
    def check(x: Any) -> Any:
        for value in x:
            assert value > 0, "x is positive"
        if x.sum() > 9:
            raise ValueError("too much")
        return result

    for size in (0, 1, 3):
        assert check(np.ones(size)) == result
    with pytest.raises(AssertionError, match="x is positive"):
        check(np.array([1.0, -1.0]))
    with pytest.raises(ValueError, match="too much"):
        check(np.full(4, 3.0))


def test_a_function_that_only_checks_is_not_exported(tmp_path: Path) -> None:
    @weft.compile
    def check(x: Any) -> None:
        assert x.sum() > 0

    with pytest.raises(weft.Error, match="W113: a function that only checks"):
        weft.export(check, "f64[3]", path=tmp_path / "check")
