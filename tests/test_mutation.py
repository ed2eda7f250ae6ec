"""The tool that makes mistakes on purpose: what it changes, and what it says of the tests."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from textwrap import dedent

import pytest
from mutation.__main__ import run, score
from mutation.baseline import Coverage, Project, measure, read
from mutation.mutants import Mutant, compiles, mutants_of, sampled
from mutation.trial import Bench, Equivalent, Limits, Outcome

import weft

SOURCE = dedent('''\
    """A docstring of 3 words."""
    import threading
    LOCK = threading.Lock()

    @staticmethod
    def f(a: int, b: int = 2) -> bool:
        """Less than 5?"""
        with LOCK, open("é") as file:
            for item in [x for x in range(a, b) if x]:
                if not item or item < -b:
                    break
                file.write(item)
                a = g(a)
        return f"%x = add nsw i64 {a + b}, 1; icmp eq" == file
''')


def test_each_kind_of_mistake_is_made() -> None:
    made = {mutant.diff(SOURCE) for mutant in mutants_of("a.py", SOURCE)}
    changed = {tuple(line[1:].strip() for line in diff.split("\n")) for diff in made}
    head = "for item in [x for x in range(a, b) if x]:"
    condition, call = "if not item or item < -b:", "file.write(item)"
    text = 'return f"%x = add nsw i64 {a + b}, 1; icmp eq" == file'
    with_ = 'with LOCK, open("é") as file:'
    assert changed == {
        ("def f(a: int, b: int = 2) -> bool:", "def f(a: int, b: int = 3) -> bool:"),
        ("def f(a: int, b: int = 2) -> bool:", "def f(a: int, b: int = 1) -> bool:"),
        (with_, "with open('é') as file:"),
        (head, "for item in [x for x in range(b, a) if x]:"),
        (head, "for item in [x for x in range(a, b) if True]:"),
        (condition, "if (not item and item < -b):"),
        (condition, "if (not (not item or item < -b)):"),
        (condition, "if (item) or item < -b:"),
        (condition, "if not item or (item <= -b):"),
        (condition, "if not item or item < (b):"),
        ("break", "continue"),
        (call, "pass"),
        ("a = g(a)", "pass"),
        (text, text.replace("add", "sub")),
        (text, "return (f'%x = add nsw i64 {a + b}, 1; icmp eq' != file)"),
        (text, text.replace("icmp eq", "icmp ne")),
        (text, "return None"),
    }


def test_a_lone_lock_is_removed() -> None:
    source = "def f(lock):\n    with lock:  # whole\n        return 0\n"
    texts = [m.applied(source) for m in mutants_of("a.py", source) if m.kind == "wrapper"]
    assert texts == ["def f(lock):\n    if True:\n        return 0\n"]


def test_samples_are_the_same_and_grow() -> None:
    root, files = Path(weft.__file__).parent, ["passes/prune.py", "passes/state.py"]
    few, many = sampled(root, files, 10, seed=3), sampled(root, files, 30, seed=3)
    assert many[:10] == few == sampled(root, reversed(files), 10, seed=3)
    assert few != sampled(root, files, 10, seed=4)
    assert len({mutant.key for mutant in many}) == 30
    for mutant in many:
        source = (root / mutant.file).read_text(encoding="utf-8")
        assert compiles(mutant, source) and mutant.applied(source) != source
        assert mutant.run[0] <= mutant.line


def test_no_kind_takes_over_a_sample() -> None:
    root = Path(weft.__file__).parent
    found = sampled(root, ["codegen/cpu/products/gemm.py"], 60, seed=0)
    kinds = Counter(mutant.kind for mutant in found)
    assert len(kinds) >= 10 and max(kinds.values()) <= 8


def test_lines_that_have_to_run() -> None:
    source = "def f(a):\n    if (a and\n            a > 1):\n        g(a,\n          2)\n"
    lines = {(mutant.kind, mutant.run) for mutant in mutants_of("a.py", source)}
    assert lines == {("logic", (2, 3)), ("condition", (2, 3)), ("comparison", (2, 3)),
                     ("constant", (2, 3)), ("constant", (4, 5)), ("arguments", (4, 5)),
                     ("call", (4, 5))}


def test_the_words_of_a_message_are_no_instructions() -> None:
    source = 'raise ValueError(f"add {a} and {b} or 3 floats; and i64 {c}")\n'
    changed = [m.applied(source) for m in mutants_of("a.py", source) if m.kind == "emitted"]
    assert changed == [source.replace("add {", "sub {"), source.replace("and i64", "or i64")]


def test_what_only_states_something_is_left_alone() -> None:
    source = "assert x > 1\nfor x in zip(a, b, strict=True): pass\n"
    assert {m.kind for m in mutants_of("a.py", source)} == {"arguments"}


@pytest.mark.parametrize(("statement", "dropped"), [
    ("x = y", False), ("x = f(x)", True), ("x += 1", True), ("x.a = y", True), ("x[0] = y", True),
    ("x, y = y, x", False), ("del x", True)])
def test_assignments_are_dropped_where_an_old_value_stays(statement: str, dropped: bool) -> None:
    kinds = [mutant.kind for mutant in mutants_of("a.py", f"{statement}\n")]
    assert ("assignment" in kinds) == dropped


def test_what_keeps_results_is_a_mistake_to_forget_but_not_what_a_program_needs() -> None:
    source = "@dataclass(frozen=True)\nclass A:\n    @functools.cache\n    def f(self): g()\n"
    texts = [m.applied(source) for m in mutants_of("a.py", source) if m.kind == "wrapper"]
    assert texts == [source.replace("@functools.cache", "")]


def test_the_list_of_equivalents_is_whole() -> None:
    for item in Equivalent.all():
        assert item.reason
    mutant = Mutant("a.py", 2, 0, 1, "constant", "2", (2, 2))
    assert Equivalent("a.py", "x = 1", "2", "why").means(mutant, "\n  x = 1\n")
    assert not Equivalent("a.py", "x = 1", "0", "why").means(mutant, "\n  x = 1\n")


def test_score_leaves_equivalents_out() -> None:
    outcomes = [Outcome(status) for status in
                ("killed", "timed out", "survived", "not covered", "equivalent")]
    assert score(outcomes).startswith("score 50.0 % of 4 mutants (1 equivalent, 1 killed")


TOY = {
    "toy/__init__.py": "",
    "toy/core/__init__.py": "",
    "toy/core/a.py": """\
        import functools, os, signal

        def sign(x):
            return x > 0

        def never(x):
            return x + 1

        def loop(n):
            i = 0
            while i < n:
                i += 1
            return i

        def crash(x):
            if x > 3:
                os.kill(os.getpid(), signal.SIGSEGV)
            return x

        def eat(n):
            return len(bytes(n * 1))

        @functools.cache
        def once():
            return 7

        def weak(x):
            return x * 2
        """,
    "toy/tests/pytest.ini": "[pytest]\n",
    "toy/tests/test_a.py": """\
        import subprocess, sys
        from toy.core import a

        def test_sign(): assert a.sign(1) and not a.sign(-1)
        def test_loop(): assert a.loop(3) == 3
        def test_crash(): assert a.crash(3) == 3
        def test_first(): a.once()
        def test_second(): assert a.loop(0) == 0 and a.once() == 7
        def test_weak(): a.weak(0)
        def test_fails(): assert a.sign(0)
        def test_apart():
            code = "from toy.core import a; assert len(bytes(5)) == a.eat(5)"
            subprocess.run([sys.executable, "-c", code], check=True)
        """,
}


def test_what_becomes_of_mutants(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("coverage")
    for name, text in TOY.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(dedent(text), encoding="utf-8")
    project = Project(tmp_path / "toy", ("core",), package="toy")
    source = (project.root / "core/a.py").read_text(encoding="utf-8")
    wanted = {"(x >= 0)": "survived", "(x - 1)": "not covered", "i -= 1": "timed out",
              "(x >= 3)": "killed", "(n + 1)": "killed", "8": "killed", "(x + 2)": "survived"}
    chosen = [mutant for mutant in mutants_of("core/a.py", source) if mutant.text in wanted]
    assert len(chosen) == len(wanted)
    limits, said = Limits(seconds=5, slower=2, start=15, gigabytes=4), list[str]()
    listed = [Equivalent("core/a.py", "return x * 2", "(x + 2)", "it is never looked at")]
    state = tmp_path / "state"
    outcomes = run(project, chosen, state, 2, limits, (), said.append)
    assert {mutant.text: outcome.status for mutant, outcome in outcomes.items()} == wanted
    assert len(said) == 1 + len(wanted)
    assert source == (project.root / "core/a.py").read_text(encoding="utf-8")
    assert not list(tmp_path.glob("toy/**/__pycache__"))
    monkeypatch.setattr(Bench, "judge", lambda *_: pytest.fail("this was known"))
    again = run(project, chosen, state, 1, limits, listed, said.append)
    assert {m: o for m, o in again.items() if m.text != "(x + 2)"} == {
        m: o for m, o in outcomes.items() if m.text != "(x + 2)"}
    assert [o.status for m, o in again.items() if m.text == "(x + 2)"] == ["equivalent"]


def test_only_what_has_changed_is_measured_again(tmp_path: Path) -> None:
    pytest.importorskip("coverage")
    files = {"toy/__init__.py": "", "toy/core/__init__.py": "",
             "toy/core/a.py": "def f(x):\n    return x + 1\n",
             "toy/tests/pytest.ini": "[pytest]\n",
             "toy/tests/test_a.py": "from toy.core import a\ndef test_a(): a.f(1)\n",
             "toy/tests/test_b.py": """\
                 import pytest, time
                 from toy.core import a
                 @pytest.fixture(scope="module")
                 def shared(): time.sleep(0.5)
                 def test_old(shared): a.f(1)
                 """}
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(dedent(text), encoding="utf-8")
    project = Project(tmp_path / "toy", ("core",), package="toy")
    state = tmp_path / "state"
    first = read(project, measure(project, state, 1), ["core/a.py"])
    assert sorted(first.spent) == ["test_a.py::test_a", "test_b.py::test_old"]
    old = first.spent["test_b.py::test_old"]
    assert old["test_b.py::shared"] > 0.5 > old[""] and len(first.spent["test_a.py::test_a"]) == 1
    chosen = mutants_of("core/a.py", files["toy/core/a.py"])
    limits = Limits(seconds=5, slower=2, start=15, gigabytes=4)
    outcomes = run(project, chosen, state, 1, limits, (), str)
    assert {mutant.text: outcome.status for mutant, outcome in outcomes.items()} == {
        "(x - 1)": "survived", "2": "survived", "0": "survived", "return None": "survived"}
    (tmp_path / "toy/tests/test_b.py").write_text(
        "from toy.core import a\ndef test_new(): assert a.f(1) == 2\n", encoding="utf-8")
    again = read(project, measure(project, state, 1), ["core/a.py"])
    assert sorted(again.spent) == ["test_a.py::test_a", "test_b.py::test_new"]
    assert again.spent["test_a.py::test_a"] == first.spent["test_a.py::test_a"]
    assert sorted(again.tests_of("core/a.py", 2, 2)) == sorted(again.spent)
    outcomes = run(project, chosen, state, 1, limits, (), str)
    assert {outcome.status for outcome in outcomes.values()} == {"killed"}


def test_fixtures_that_are_shared_count_once() -> None:
    spent = {"a.py::x": {"": 1.0, "f": 10.0}, "a.py::y": {"": 2.0, "f": 10.0},
             "b.py::z": {"": 3.0}, "b.py::w": {"": 20.0}}
    coverage = Coverage(spent, {"file": {1: frozenset(spent)}})
    tests = coverage.tests_of("file", 1, 1)
    assert tests == coverage.quickest(4) == ["b.py::z", "a.py::x", "a.py::y", "b.py::w"]
    assert coverage.within(tests, 16) == tests[:3]
    assert coverage.within(tests, 15) == tests[:2]
    assert coverage.within(tests, 0) == tests[:1] and coverage.within([], 1) == []
    assert coverage.closest(["a.py::x", "b.py::w", "b.py::z"], 1) == ["b.py::w", "b.py::z"]
