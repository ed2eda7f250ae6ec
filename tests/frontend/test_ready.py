"""Programs of earlier processes: called without the engine, and only where nothing that they
depend on is another."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

CASES = Path(__file__).parents[1] / "support" / "ready_cases.py"

HELPERS = """
import numpy as np
BIAS = 0.5
TABLE = np.array([1.0, 2.0, 3.0])

class Net:
    rate = 2.0
    def __init__(self):
        self.weights = [np.ones(3), np.full(3, 2.0)]

net = Net()

def act(x):
    return np.maximum(x, 0.0) + BIAS
"""
MODEL = """
import sys
import numpy as np
import weft
import helpers

SCALE = 2.0
LIMITS = {"low": 0.0, "high": [5.0, 6.0]}

@weft.compile
def f(x, k=1.0):
    h = helpers.act(x) * SCALE + k
    for w in helpers.net.weights:
        h = h * w + helpers.net.rate
    return np.clip(h + helpers.TABLE, LIMITS["low"], LIMITS["high"][1] * 1000)

def plainly(x, k=1.0):
    return f.py_func(x, k)

x = np.arange(3.0)
got, wanted = f(x), f.py_func(x)
assert np.array_equal(got, wanted), (got, wanted)
print("traced" if "weft.frontend.engine.programs" in sys.modules else "ready")
"""


class Place:
    """A folder with a program and its helpers, and a cache of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.cache = folder, folder / "cache"
        self.texts = {"model.py": MODEL, "helpers.py": HELPERS}

    def run(self, *arguments: str, **environment: str) -> list[str]:
        """The words that the program prints."""
        for name, text in self.texts.items():
            (self.folder / name).write_text(text)
        settings = {"WEFT_CACHE": "1", "WEFT_CACHE_DIR": str(self.cache),
                    "PYTHONDONTWRITEBYTECODE": "1", **environment}
        done = subprocess.run([sys.executable, "model.py", *arguments], capture_output=True,
                              text=True, timeout=300, cwd=self.folder,
                              env={**os.environ, **settings})
        assert done.returncode == 0, done.stderr
        self.log = done.stderr
        return done.stdout.split()

    def edit(self, name: str, old: str, new: str) -> None:
        assert old in self.texts[name]
        self.texts[name] = self.texts[name].replace(old, new)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    yield Place(tmp_path)


@pytest.fixture(scope="module")
def warm(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """A place in which the program has run."""
    made = Place(tmp_path_factory.mktemp("warm"))
    assert made.run() == ["traced"]
    assert made.run() == ["ready"]
    return made


@pytest.fixture
def copied(warm: Place, tmp_path: Path) -> Place:
    """The same in a folder of its own: the cache may be moved."""
    shutil.copytree(warm.folder, tmp_path, dirs_exist_ok=True)
    return Place(tmp_path)


@pytest.mark.long
def test_functions_of_all_kinds_are_called_without_the_engine(tmp_path: Path) -> None:
    environment = {**os.environ, "WEFT_CACHE": "1", "WEFT_CACHE_DIR": str(tmp_path / "cache")}
    first, second = ([line.split("\t") for line in subprocess.run(
        [sys.executable, str(CASES)], capture_output=True, text=True, timeout=600, check=True,
        env=environment).stdout.splitlines()] for _ in range(2))
    assert [row[0] for row in first] == [row[0] for row in second]
    for (name, _, wanted), (_, engine, got) in zip(first, second, strict=True):
        assert (engine, got) == ("False", wanted), name


def test_the_folder_may_be_moved(copied: Place) -> None:
    assert copied.run() == ["ready"]


@pytest.mark.parametrize("name,old,new", [
    ("helpers.py", "def act(x):", "# what comes first\n\n\ndef act(x):  # is no other program"),
    ("model.py", "    h = helpers", "    # scaled\n    h = helpers"),
    ("helpers.py", "net = Net()", "net = Net()\nother = 5.0"),
])
def test_comments_and_names_that_nobody_reads_change_nothing(
    copied: Place, name: str, old: str, new: str
) -> None:
    copied.edit(name, old, new)
    assert copied.run() == ["ready"]


@pytest.mark.parametrize("name,old,new", [
    ("helpers.py", "np.maximum(x, 0.0)", "np.maximum(x, 1.5)"),
    ("helpers.py", "np.maximum(x, 0.0)", "np.minimum(x, 0.0)"),
    ("helpers.py", "BIAS = 0.5", "BIAS = 0.25"),
    ("helpers.py", "BIAS = 0.5", "BIAS = 1"),
    ("helpers.py", "rate = 2.0", "rate = 3.0"),
    ("helpers.py", "np.full(3, 2.0)]", "np.full(3, 2.5)]"),
    ("helpers.py", "np.full(3, 2.0)]", "np.full(3, 2.0), np.ones(3)]"),
    ("helpers.py", "np.full(3, 2.0)]", "np.full(3, 2.0, np.float32)]"),
    ("helpers.py", "2.0, 3.0])", "2.0, 4.0])"),
    ("model.py", "SCALE = 2.0", "SCALE = -0.0"),
    ("model.py", "k=1.0", "k=2.0"),
    ("model.py", "k=1.0", "k=1"),
    ("model.py", '"low": 0.0', '"low": 3.0'),
    ("model.py", "[5.0, 6.0]", "[5.0, 0.004]"),
    ("model.py", "@weft.compile\n", "@weft.compile(opt=1)\n"),
    ("model.py", "@weft.compile\n", "@weft.compile(target='x86-64-v3')\n"),
    ("model.py", "np.arange(3.0)\n", "np.arange(3.0).astype(np.float32)\n"),
    ("model.py", "np.arange(3.0)\n", "np.arange(6.0).reshape(2, 3)\n"),
    ("model.py", "import weft\n", "np.__version__ = '9.0.0'\nimport weft\n"),
    ("model.py", "h * w +", "h / w +"),
])
def test_what_decides_the_program_is_another(
    copied: Place, name: str, old: str, new: str
) -> None:
    copied.edit(name, old, new)
    assert copied.run() == ["traced"]
    assert copied.run() == ["ready"]


SEEN = [
    ("class P(NamedTuple):\n    a: int\n    b: float = SIDE", "P(1).b", (2.0, 3.0)),
    ("class P:\n    __match_args__ = SIDE\n    a, b = 2.0, 3.0\np = P()", "matched(p)",
     ("('a', 'b')", "('b', 'a')")),
    ("class P: op = operator.SIDE", "P.op(2.0, 3.0)", ("add", "mul")),
    ("@dataclasses.dataclass(eq=SIDE)\nclass P: a: int = 1\np, q = P(), P()", "1 + (p == q)",
     (True, False)),
    ("@dataclasses.dataclass\nclass P:\n    a: int = dataclasses.field(default=1, "
     "metadata={'of': Shown(SIDE)})", "dataclasses.fields(P)[0].metadata['of'].a", (2.0, 3.0)),
    ("@dataclasses.dataclass\nclass P: a: SIDE = 1", "1 + (dataclasses.fields(P)[0].type == 'int')",
     ("int", "float")),
    ("class P:\n    def __init__(self, a): self.a = a\n    def __hash__(self): return SIDE\n"
     "    def __eq__(self, other): return True\nD = {P(1): 4.0}", "D.get(P(2), 5.0)",
     ("self.a", "1")),
    ("T = np.array([(1.0, 2.0)], dtype=[(n, 'f8') for n in SIDE])", "T['a'][0]", ("'ab'", "'ba'")),
    ("M = types.ModuleType('M')\ndef get(name): return SIDE\nM.__getattr__ = get", "M.scale",
     (2.0, 3.0)),
    ("M = types.ModuleType('M')\nM.SIDE = 1", "1 + hasattr(M, 'extra')", ("extra", "other")),
    ("class B: a = 2.0\nclass P(B): a = 3.0\nclass SIDE: a = 4.0",
     "sum([each.a for each in B.__subclasses__()])", ("Q", "Q(B)")),
    ("def g(a: SIDE): return a", "1 + (g.__annotations__['a'] == 'int')", ("int", "float")),
    ("np.scaled = np.SIDE", "np.scaled(0.5)", ("sin", "cos")),
    ("np.scale = SIDE", "np.scale", (2.0, 3.0)),
    ("weft.nn.silu = weft.nn.SIDE", "weft.nn.silu(x)", ("sigmoid", "relu")),
    ("math.scale = SIDE", "imported()", (2.0, 3.0)),
    ("V = weft.Variable(np.ones(3), name='SIDE')", "len(V.name)", ("a", "bc")),
    ("def of(a): return lambda x: x * a\nh = functools.wraps(of(SIDE))(of(5.0))",
     "h.__wrapped__(x)", (2.0, 3.0)),
]
"""Heads of modules with two sides, and what a function adds to its argument."""


@pytest.mark.long
def test_what_only_some_look_at_is_read(place: Place) -> None:
    start = """
from __future__ import annotations
import dataclasses, functools, math, operator, sys, types
from typing import NamedTuple
import numpy as np
import weft

class Shown:
    def __init__(self, a): self.a = a
    def __repr__(self): return "Shown"

def imported():
    from math import scale
    return scale

def matched(value):
    match value:
        case P(a, b): return a + 2 * b

"""
    found = []
    for side in (0, 1):
        for at, (head, value, sides) in enumerate(SEEN):
            place.texts[f"m{at}.py"] = (
                start + head.replace("SIDE", str(sides[side]))
                + f"\n\n@weft.compile\ndef f(x):\n    return x + {value}\n\n"
                "print(f(np.arange(3.0)).tolist(), end=';')\n")
        place.texts["model.py"] = "".join([f"import m{at}\n" for at in range(len(SEEN))])
        found.append("".join(place.run()).split(";"))
        wanted = "".join(place.run(WEFT_CACHE="0")).split(";")
        for case, got, right in zip(SEEN, found[-1], wanted, strict=False):
            assert got == right, case
    for case, first, second in zip(SEEN, *found, strict=False):
        assert first != second, case


@pytest.mark.long
def test_the_order_of_sets_is_that_of_the_process(place: Place) -> None:
    place.texts["model.py"] = """
import numpy as np
import weft
NAMES = {"alpha", "beta", "gamma", "delta", "epsilon"}

@weft.compile(static_argnames="names")
def f(values, names):
    return ([values[each] for each in NAMES], [values[each] for each in names],
            [values[each] for each in {"alpha", "beta", "gamma", "delta", "epsilon"}],
            [values[each] for each in set(values)])

values = {name: float(at) for at, name in enumerate(sorted(NAMES))}
print(f(values, frozenset(NAMES)))
"""
    found = [place.run(PYTHONHASHSEED=seed) for seed in ("1", "2", "3")]
    assert found == [place.run(PYTHONHASHSEED=seed, WEFT_CACHE="0") for seed in ("1", "2", "3")]


@pytest.mark.long
@pytest.mark.parametrize("value", [
    "default_rng().normal()", "float((np.datetime64('now') - start) / np.timedelta64(1, 's'))"])
def test_random_numbers_and_clocks_of_numpy(place: Place, value: str) -> None:
    place.texts["model.py"] = f"""
import sys, warnings
import numpy as np
import weft
from numpy.random import default_rng
warnings.simplefilter("ignore")
start = np.datetime64("2020-01-01")

@weft.compile
def f(x):
    return x * {value}

f(np.ones(2))
print("traced" if "weft.frontend.engine.programs" in sys.modules else "ready")
"""
    assert place.run() == place.run() == ["traced"]


@pytest.mark.long
def test_the_environment_and_the_number_of_threads(copied: Place) -> None:
    assert copied.run(OMP_NUM_THREADS="7") == ["traced"]
    assert copied.run(WEFT_NATIVE_CALL="0") == ["traced"]
    assert copied.run(WEFT_CACHE="0") == ["traced"]
    assert copied.run() == ["ready"]


@pytest.mark.long
@pytest.mark.parametrize("lines", [
    "seen.append(1)", "print(end='')", "global count; count += 1", "counts['f'] = len(counts)",
    "x = x * float(os.environ.get('SCALE', 1))", "x = x + 0 * time.time()",
    "x = x * float(open('scale.txt').read())", "state.calls += 1", "x = x + random.random() * 0",
    "x = x * getattr(state, 'ca' + 'lls')",
])
def test_what_does_more_than_compute_is_traced_in_each_process(
    place: Place, lines: str
) -> None:
    place.texts["scale.txt"] = "1.0"
    place.texts["model.py"] = f"""
import os, random, sys, time, warnings
from types import SimpleNamespace
import numpy as np
import weft
warnings.simplefilter("ignore")
seen, count, counts = [], 0, {{"g": 1}}
class State: calls = 0
state = State(); state.calls = 1

@weft.compile
def f(x):
    {lines}
    return x * 2

f(np.arange(3.0))
print("traced" if "weft.frontend.engine.programs" in sys.modules else "ready")
print(len(seen), count, len(counts), state.calls)
"""
    first = place.run()
    assert first[0] == "traced" and place.run() == first


AFTER = """
helped = helpers
def again(*args):
    got, wanted = f(*args), f.py_func(*args)
    assert np.array_equal(got, wanted), (got, wanted)
for change in (
    lambda: globals().update(SCALE=3.0),
    lambda: LIMITS.update(low=9.0),
    lambda: LIMITS["high"].__setitem__(1, 0.005),
    lambda: helpers.net.weights.__setitem__(0, np.full(3, 4.0)),
    lambda: helpers.net.weights.append(np.ones(3)),
    lambda: setattr(helpers.net, "rate", 5.0),
    lambda: helpers.TABLE.__setitem__(1, 50.0),
    lambda: setattr(helpers, "TABLE", np.array([7.0, 8.0, 9.0])),
    lambda: setattr(helpers, "act", lambda x: x + 2),
    lambda: setattr(helpers, "BIAS", 4.0),
):
    again(x)
    change()
    again(x)
    again(x + 1, 2.0)
"""


def test_what_changes_later_is_seen(copied: Place) -> None:
    copied.texts["model.py"] = MODEL + AFTER
    assert copied.run() == ["ready"]
    assert copied.run() == ["ready"]


def test_views_of_global_arrays_see_what_is_written_later(place: Place) -> None:
    place.texts["model.py"] = """
import numpy as np
import weft
A = np.ones(6)

@weft.compile
def f(x):
    return x * A[::2]

for value in (1.0, 9.0):
    A[2] = value
    assert f(np.ones(3)).tolist() == [1.0, value, 1.0]
"""
    for _ in range(2):
        place.run()


@pytest.mark.long
def test_a_failing_check_raises_what_it_would(place: Place) -> None:
    place.texts["model.py"] = """
import sys
import numpy as np
import weft

total = weft.Variable(np.zeros(2), name="total")

@weft.compile
def f(x, at):
    total.assign(total + x[at])
    return total * 1.0

f(np.arange(6.0).reshape(3, 2), 1)
print("traced" if "weft.frontend.engine.programs" in sys.modules else "ready")
for args in ((np.ones((3, 2)), 7), (np.ones((3, 2)), "a"), ()):
    try:
        f(*args)
    except Exception as problem:
        print(type(problem).__name__, repr(str(problem)).replace(" ", "_"), total.value.tolist())
"""
    first = place.run()
    second = place.run()
    assert first[0] == "traced" and second[0] == "ready" and first[1:] == second[1:]
    assert "OutOfRangeError" in second and "model.py:10" in " ".join(second)


def test_calls_of_several_threads(copied: Place) -> None:
    copied.texts["model.py"] = MODEL.replace("got, wanted", """
from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor(8) as pool:
    found = list(pool.map(lambda _: f(x), range(64)))
assert all(np.array_equal(each, f.py_func(x)) for each in found)
got, wanted""", 1)
    assert copied.run() == ["ready"]
    assert copied.run(OMP_NUM_THREADS="1") == ["traced"]


def test_what_another_thread_has_found_meanwhile_is_called(copied: Place) -> None:
    copied.texts["model.py"] = MODEL + """
from threading import Thread
late = Thread(target=lambda: print(*[f.ready.find(f, (x,), {}) for _ in range(2)]))
late.start()
late.join()
"""
    assert copied.run() == ["ready", "True", "False"]


def test_threads_profiles_and_cleared_caches_are_followed(copied: Place) -> None:
    copied.texts["model.py"] = MODEL + """
weft.set_num_threads(1)
assert np.array_equal(f(x), wanted)
with weft.profile() as profile:
    assert np.array_equal(f(x), wanted)
assert "f" in str(profile)
assert np.array_equal(f(x), wanted)
f.clear_cache()
assert f.cache_info().specialisations == 0
assert np.array_equal(f(x), wanted)
assert f.cache_info().specialisations == 1
"""
    assert copied.run() == ["ready"]


def test_what_was_found_is_told(copied: Place) -> None:
    copied.texts["model.py"] = MODEL + """
import warnings
assert f.cache_info().specialisations == 1
assert f.signatures == [{"x": "f64[3]"}], f.signatures
assert "x: f64[3]" in str(f.explain())
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    f(np.arange(4.0)[:3].reshape(1, 3))
assert len(seen) == 1 and issubclass(seen[0].category, weft.RecompileWarning), seen
assert f.cache_info().specialisations == 2
"""
    assert copied.run() == ["ready"]


def test_an_error_instead_of_compiling_again(copied: Place) -> None:
    copied.texts["model.py"] = MODEL.replace("@weft.compile", "@weft.compile(on_recompile='error')")
    copied.run()
    copied.texts["model.py"] += """
try:
    f(np.arange(3))
except weft.Error as problem:
    print(problem.code)
"""
    assert copied.run() == ["ready", "W405"]


def test_each_miss_has_a_reason(copied: Place) -> None:
    copied.run(WEFT_CACHE_LOG="1")
    assert copied.log == ""
    copied.edit("helpers.py", "BIAS = 0.5", "BIAS = 0.75")
    copied.run(WEFT_CACHE_LOG="1")
    assert "program of f" in copied.log


KEPT = """
import abc, functools, sys
import numpy as np
import weft

SCALE = float(sys.argv[1])
class Kind(abc.ABC): pass
class One:
    value = 2.0
if SCALE == 3.0:
    Kind.register(One)
one = One()

@functools.lru_cache
def scale():
    return SCALE

@weft.compile
def registered(x):
    return x + 1 if isinstance(one, Kind) else x - 1

@weft.compile
def cached(x):
    return x * scale()

x = np.arange(3.0)
with np.errstate(all=sys.argv[2]):
    print(registered(x).tolist(), registered.py_func(x).tolist())
if SCALE == 2.0:
    scale()
    SCALE = 5.0
print(cached(x).tolist(), cached.py_func(x).tolist())
"""


@pytest.mark.long
def test_what_classes_and_functions_keep_to_themselves(place: Place) -> None:
    place.texts["model.py"] = KEPT
    for scale, how in (("2.0", "warn"), ("5.0", "warn"), ("3.0", "warn"), ("2.0", "ignore")):
        words = place.run(scale, how)
        assert words[:3] == words[3:6] and words[6:9] == words[9:], words
