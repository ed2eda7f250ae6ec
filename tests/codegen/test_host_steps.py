"""Functions of the host as steps of native programs: memory, loops, threads, forks, exceptions."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import BuiltinFunctionType
from typing import Any

import numpy as np
import pytest

import weft
from weft.frontend.engine.building.link import make_program
from weft.frontend.engine.building.pipeline import Stages
from weft.frontend.face.options import Options
from weft.ir.diagnose import Error, ShapeError, TextError
from weft.ir.interp.graph import run_graph, run_plan
from weft.ir.plans.plan import host_steps
from weft.ir.text.parser import parse, parse_graph, parse_plan
from weft.ir.text.printer import print_graph, print_plan
from weft.ir.text.same import same_graph, same_plan
from weft.ir.verify.verifier import verify_graph, verify_plan

GRAPH = """
graph @f(%a: f64[b,n,n], %r: f64[b,n,3]) -> (%y: f64[b,n,3], %2: f64[b,n]) {
  %s: f64[b,n,n] = add %a, %a
  %x: f64[b,n,3] = solve %s, %r
  %y: f64[b,n,3] = tanh %x
  %1: f64[b,n], %q: f64[b,n,n] = eigh %s {uplo = "L"}
  %2: f64[b,n] = exp %1
  return %y, %2
}"""


def arguments(b: int, n: int) -> list[Any]:
    rng = np.random.default_rng(b + 10 * n)
    return [rng.normal(size=(b, n, n)), rng.normal(size=(b, n, 3))]


@pytest.mark.parametrize("opt", [0, 1, 2])
def test_a_graph_of_host_rows(opt: int) -> None:
    """Interpreters and native code do the same with any sizes; texts say it all."""
    graph = parse_graph(GRAPH)
    verify_graph(graph)
    assert same_graph(parse_graph(print_graph(graph)), graph)
    stages = Stages(graph, Options(opt=opt))
    plan = stages.plan
    verify_plan(plan)
    assert len(host_steps(plan)) == 2
    back = parse_plan(print_plan(plan, kernels=True))
    assert same_plan(back, plan)
    program = make_program(stages)
    for b, n in ((2, 4), (0, 2), (1, 1), (7, 3), (2, 0)):
        args = arguments(b, n)
        wanted = run_graph(graph, args)
        for found in (program.run(args), run_plan(back, args)):
            for one, other in zip(found, wanted, strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-13)


def test_the_text_of_a_plan(golden: Any) -> None:
    plan = Stages(parse_graph(GRAPH), Options(target="x86-64-v3")).plan
    golden(print_plan(plan, kernels=True), "plans/host_steps.plan")


@pytest.mark.parametrize(("text", "message"), [
    ("host @solve(%a: f64[3,3], %r) -> (%x)", "all windows have types, or none"),
    ("host @solve(%a, %r) -> (%x) {mode}", "expected '='"),
    ("host @solve(%a, %r) -> (%x) {body = graph @g() -> () {\n return\n}}", "has no graphs"),
])
def test_what_is_no_host_step(text: str, message: str) -> None:
    with pytest.raises(TextError, match=message):
        parse_plan(_plan(text))


@pytest.mark.parametrize(("text", "message"), [
    ("host @solve(%a, %r) -> (%x) {quiet = true}", "unexpected keyword argument 'quiet'"),
    ("host @solve(%a) -> (%x)", "missing 1 required positional"),
    ("host @inv(%a) -> (%x) {quiet = false}", r"@inv gives f64\[3,3\]"),
    ("host @solve(%a: f64[3,3], %r: f64[3,2]) -> (%x: f64[3,4])", r"%x is f64\[3,2\], not"),
    ("host @qr(%a) -> (%x) {mode = \"reduced\"}", r"@qr gives f64\[3,3\], f64\[3,3\]"),
])
def test_unsound_host_steps(text: str, message: str) -> None:
    with pytest.raises(Error, match=message):
        verify_plan(parse_plan(_plan(text)))
    verify_plan(parse_plan(_plan("host @solve(%a, %r) -> (%x)")))


def _plan(step: str) -> str:
    return f"plan @p(%a: f64[3,3], %r: f64[3,2]) -> (%x: f64[3,2]) arena = 0 {{\n  {step}\n}}"


def test_a_host_step_sees_the_shape_of_the_value() -> None:
    """Its memory may be that of a value of another shape: here a result of the program."""
    @weft.compile
    def function(x: Any) -> Any:
        return np.linalg.inv(x * 2).reshape(2, 3, 6)

    x = np.eye(6) + 0.1
    np.testing.assert_allclose(function(x), np.linalg.inv(x * 2).reshape(2, 3, 6))


# -- control flow --------------------------------------------------------------------------


def test_inside_of_loops_and_branches() -> None:
    def function(x: Any, b: Any, n: Any) -> Any:
        def row(carry: Any, shift: Any) -> Any:
            carry = np.linalg.solve(x + shift * np.eye(3), carry)
            return carry, np.linalg.det(x * shift)

        last, dets = weft.scan(row, b, np.arange(1.0, 6.0))
        chosen = weft.cond(np.sum(last) > 0, lambda: np.linalg.inv(x), lambda: x)
        state = weft.while_loop(lambda s: np.linalg.norm(s) < n, lambda s: np.linalg.inv(x) @ s * 3,
                                last)
        return last, dets, chosen, state

    rng = np.random.default_rng(0)
    x, b = rng.normal(size=(3, 3)) + 4 * np.eye(3), rng.normal(size=3)
    compiled = weft.compile(function)
    for sign in (1, -1):
        found, wanted = compiled(x, sign * b, 10.0), function(x, sign * b, 10.0)
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12)
    plan = compiled.lower(x, b, 10.0).as_text("plan")
    assert plan.count("host @") >= 4 and same_plan(*[parse(compiled.lower(x, b, 10.0).stages.text(
        "kernel") + "\n" + plan)[-1] for _ in range(2)])


def test_many_steps_are_looped_over() -> None:
    """Beyond the rows that are written out."""
    @weft.compile
    def function(x: Any) -> Any:
        for _ in range(12):
            x = np.linalg.inv(x) * 2 + x
        return x

    x = np.eye(4) * 3 + 0.2
    np.testing.assert_allclose(function(x), function.py_func(x), rtol=1e-12)


# -- exceptions ----------------------------------------------------------------------------


def test_an_exception_ends_the_step() -> None:
    count = weft.Variable(np.zeros(()), name="count")

    @weft.compile
    def step(x: Any) -> Any:
        count.assign_add(1.0)
        y = np.linalg.inv(x)
        return y + count

    good = np.eye(3) * 2
    np.testing.assert_allclose(step(good), np.eye(3) / 2 + 1)
    for _ in range(3):
        with pytest.raises(np.linalg.LinAlgError, match="Singular matrix") as caught:
            step(np.zeros((3, 3)))
        (note,) = caught.value.__notes__
        assert note.startswith("while the host ran np.linalg.inv\n  --> ")
        assert "y = np.linalg.inv(x)" in note and "^^^^^" in note
        assert all("weft" not in entry.frame.f_globals.get("__name__", "").split(".")
                   for entry in caught.traceback)
        assert caught.value.__context__ is None
    assert count.numpy() == 1.0
    np.testing.assert_allclose(step(good), np.eye(3) / 2 + 2)


class Stop(BaseException):
    pass


@pytest.mark.parametrize("kind", [ValueError, KeyboardInterrupt, Stop, ZeroDivisionError])
def test_any_exception_comes_through_once(kind: Any) -> None:
    calls = []

    def refuse(x: Any) -> Any:
        calls.append(x.sum())
        raise kind("no")

    step = weft.compile(lambda x: weft.host_call(refuse, "f64[3]", x * 2) + 1)
    for count in (1, 2):
        with pytest.raises(kind, match="no") as caught:
            step(np.ones(3))
        assert len(calls) == count, "it is not called again to find out what went wrong"
        assert caught.traceback[-1].name == "refuse"


def test_a_function_may_call_programs() -> None:
    inner = weft.compile(lambda x: np.linalg.solve(x, np.ones(3)))

    def solved(x: Any) -> Any:
        try:
            return inner(x)
        except np.linalg.LinAlgError:
            return np.zeros(3)

    outer = weft.compile(lambda x: weft.host_call(solved, "f64[3]", x) + np.linalg.det(x))
    np.testing.assert_allclose(outer(np.eye(3) * 2), np.full(3, 8.5))
    np.testing.assert_allclose(outer(np.zeros((3, 3))), np.zeros(3))


def test_a_warm_call_is_one_native_call() -> None:
    step = weft.compile(lambda x: np.linalg.inv(x) + 1)
    step(np.eye(3))
    assert isinstance(step.programs.specialisations()[0].program.direct, BuiltinFunctionType)


def test_what_nobody_needs_is_not_called() -> None:
    for opt in (0, 1, 2):
        @weft.compile(opt=opt)
        def function(x: Any) -> Any:
            unused = np.linalg.inv(x)
            np.tanh(unused)
            return x + 1

        np.testing.assert_array_equal(function(np.zeros((2, 2))), np.ones((2, 2)))


# -- threads, processes, lifetime ----------------------------------------------------------


def test_many_callers_at_once() -> None:
    """Some of which fail: each gets its own result or exception."""
    step = weft.compile(lambda x: np.linalg.inv(np.tanh(x)) @ x)
    step(np.eye(40))
    rng = np.random.default_rng(1)
    inputs = [rng.normal(size=(40, 40)) if at % 3 else np.zeros((40, 40)) for at in range(60)]
    wanted = [step(x) if at % 3 else None for at, x in enumerate(inputs)]

    def run(at: int) -> Any:
        try:
            return step(inputs[at])
        except np.linalg.LinAlgError:
            return None

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(run, [*range(60)] * 3))
    for one, other in zip(found, wanted * 3, strict=True):
        assert (one is None) == (other is None)
        np.testing.assert_array_equal(one, other)


def test_other_threads_run_while_native_code_does() -> None:
    """The GIL is held by the functions of the host only, and given back."""
    seen = []

    def wait(x: Any) -> Any:
        event.wait(10)
        seen.append(event.is_set())
        return x

    event = threading.Event()
    step = weft.compile(lambda x: weft.host_call(wait, "f64[3]", x))
    other = threading.Timer(0.05, event.set)
    other.start()
    step(np.ones(3))
    assert seen == [True]


def test_a_forked_child_calls_the_host() -> None:
    step = weft.compile(lambda x: np.linalg.inv(x * 2))
    x = np.eye(3)
    step(x)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            if np.array_equal(step(x), x / 2):
                code = 2
            step(np.zeros((3, 3)))
        except np.linalg.LinAlgError:
            code = 0 if code == 2 else 3
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_without_the_native_entry() -> None:
    code = """
import numpy as np, weft
v = weft.Variable(np.zeros(3), name="v")
@weft.compile
def f(x):
    v.assign(np.linalg.solve(x, v + 1))
    return np.linalg.eigvalsh(x)
print(f(np.eye(3) * 2).tolist(), v.numpy().tolist())
try:
    f(np.zeros((3, 3)))
except np.linalg.LinAlgError as problem:
    print(problem, v.numpy().tolist())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True,
                          env={**os.environ, "WEFT_NATIVE_CALL": "0"})
    assert done.stdout == ("[2.0, 2.0, 2.0] [0.5, 0.5, 0.5]\n"
                           "Singular matrix [0.5, 0.5, 0.5]\n")


def test_programs_and_their_functions_go() -> None:
    class Held:
        def __call__(self, x: Any) -> Any:
            return x + 1

    def run() -> weakref.ref[Held]:
        held = Held()
        step = weft.compile(lambda x: weft.host_call(held, "f64[3]", x))
        step(np.ones(3))
        return weakref.ref(held)

    gone = run()
    gc.collect()
    assert gone() is None


def test_what_a_function_is_given_is_its_own() -> None:
    """It may keep and change it: neither arguments nor the arena."""
    kept = []

    def keep(x: Any, y: Any) -> Any:
        kept.append(x)
        x[:] = -1
        y += 1
        return y

    step = weft.compile(lambda x: weft.host_call(keep, "f64[1000]", x, np.tanh(x)) + x)
    x = np.linspace(0, 1, 1000)
    np.testing.assert_allclose(step(x), np.tanh(x) + 1 + x)
    step(x)
    assert x[0] == 0 and all((array == -1).all() for array in kept)


# -- artifacts and texts -------------------------------------------------------------------


def test_artifacts_refuse_it_by_name(tmp_path: Path) -> None:
    step = weft.compile(lambda x: np.linalg.inv(x))
    with pytest.raises(Error, match=r"W113: .* calls np\.linalg\.inv, which Python runs") as caught:
        weft.export(step, "f64[3,3]", path=tmp_path / "m")
    assert "lambda" in str(caught.value) and not (tmp_path / "m").exists()


def doubled(x: Any) -> Any:
    return x * 2


def undeclared(x: Any) -> Any:
    return x


def test_texts_find_functions_of_modules() -> None:
    step = weft.compile(lambda x: weft.host_call(doubled, "f64[3]", x) + 1)
    lowered = step.lower("f64[3]")
    graph = parse_graph(lowered.as_text("trace"))
    assert same_graph(parse_graph(print_graph(graph)), graph)
    np.testing.assert_array_equal(run_graph(graph, [np.ones(3)])[0], np.full(3, 3.0))
    np.testing.assert_array_equal(make_program(Stages(graph, Options())).run([np.ones(3)])[0],
                                  np.full(3, 3.0))
    text = print_graph(graph)
    for other in ("undeclared", "np.sort", "Path"):  # of this module, but nobody gave them
        strange = parse_graph(text.replace(":doubled", f":{other}"))
        with pytest.raises(Error, match=r"W601: there is no function"):
            run_graph(strange, [np.ones(3)])
    inner = weft.compile(lambda x: weft.host_call(lambda y: y, "f64[3]", x))
    graph = parse_graph(inner.lower("f64[3]").as_text("trace"))
    with pytest.raises(Error, match=r"W601: there is no function .*lambda.* here"):
        run_graph(graph, [np.ones(3)])


@pytest.mark.long
def test_passes_are_verified() -> None:
    code = """
import numpy as np, weft
f = weft.compile(lambda x: np.linalg.inv(x @ x.T + np.eye(4)) * 2)
print(f(np.eye(4)).sum())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True,
                          env={**os.environ, "WEFT_VERIFY": "passes"})
    assert done.stdout == "4.0\n"


def test_infer_says_what_is_wrong() -> None:
    with pytest.raises(ShapeError, match="square matrices"):
        verify = parse_graph("graph @g(%x: f32[3,4]) -> (%y: f32[3,4]) {\n"
                             "  %y: f32[3,4] = inv %x {quiet = false}\n  return %y\n}")
        verify.nodes[0].op.infer(verify.params[0].type, quiet=False)
