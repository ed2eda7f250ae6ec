"""docs/numpy.md, made from the rows: which of NumPy's functions trace, with which options and
dtypes, where there is a gradient, where they run, and what to write instead of the others.

    pytest tests/frontend/test_numpy_docs.py --update-golden        writes it
"""

from __future__ import annotations

import inspect
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import scipy.special
from numpy_dims import EXCEPT, NO_GRADIENT, REFUSED
from numpy_facts import facts
from numpy_samples import Sample

from weft.frontend.numpy_api.elements import elementwise as ufuncs
from weft.frontend.numpy_api.elements import special
from weft.frontend.numpy_api.registry import ROWS, Row, full_name

_HEAD = """# NumPy in traced code

Made from the rows of `frontend/numpy_api` and their samples by
`pytest tests/frontend/test_numpy_docs.py --update-golden`.

Results, dtypes and shapes are NumPy's. Every function takes `out=` arrays that the traced function
made. Elements of which only values say how many there are can be returned, reduced, sliced, joined,
sorted and written; functions that would make arrays of other shapes of them are refused by name.
"""

_COLUMNS = """\
Of dtypes, `b` is bool, `i` int8 to int64, `u` uint8 to uint64, `h` float16 and bfloat16,
`f` float32 and float64, `c` complex64 and complex128, as far as NumPy itself takes them; those in
brackets work in some calls only. CPU and GPU: a native kernel, a Triton kernel; host: NumPy's own
function runs between kernels. *some*: in some calls, by their options; by some of the arguments.
What has no dtypes gives plain answers while tracing.
"""

_FACTS = ("dtypes", "gradient", "CPU", "GPU", "host")



def _changed(function: Callable[..., Any], x: Any, *operands: Any) -> Any:
    """A copy of an array that a function changes in place."""
    y = x.copy()
    function(y, *operands)
    return y


# Calls of functions whose rows have no samples: they change arrays, or only values say how many
# elements there are.
_CALLED = "x[3,4]"
_CALLS: Mapping[str, Callable[[Any], Any]] = MappingProxyType({
    "np.argpartition": lambda x: np.argpartition(x, 1),
    "np.argwhere": lambda x: np.argwhere(x),
    "np.copyto": lambda x: _changed(np.copyto, x, x[::-1]),
    "np.empty_like": lambda x: np.empty_like(x),
    "np.fill_diagonal": lambda x: _changed(np.fill_diagonal, x, x[0, 1]),
    "np.flatnonzero": lambda x: np.flatnonzero(x),
    "np.fromiter": lambda x: np.fromiter(iter(x[0]), x.dtype),
    "np.intersect1d": lambda x: np.intersect1d(x[0], x[1]),
    "np.nonzero": lambda x: np.nonzero(x),
    "np.partition": lambda x: np.partition(x, 1),
    "np.place": lambda x: _changed(np.place, x, x > 0, x[0]),
    "np.put": lambda x: _changed(np.put, x, [0, 2], x[1, :2]),
    "np.put_along_axis": lambda x: _changed(np.put_along_axis, x, np.array([[1], [0], [3]]),
                                            x[:, :1], 1),
    "np.putmask": lambda x: _changed(np.putmask, x, x > 0, x[::-1]),
    "np.setdiff1d": lambda x: np.setdiff1d(x[0], x[1]),
    "np.setxor1d": lambda x: np.setxor1d(x[0], x[1]),
    "np.trim_zeros": lambda x: np.trim_zeros(x[0]),
    "np.union1d": lambda x: np.union1d(x[0], x[1]),
    "np.unique": lambda x: np.unique(x),
    "np.unique_all": lambda x: np.unique_all(x),
    "np.unique_counts": lambda x: np.unique_counts(x),
    "np.unique_inverse": lambda x: np.unique_inverse(x),
    "np.unique_values": lambda x: np.unique_values(x),
    "np.unwrap": lambda x: np.unwrap(x),
})

_HALF = "p[3, 3] / 4"
_OPERANDS: Mapping[str, tuple[str, ...]] = MappingProxyType({  # of functions that take others
    "np.ldexp": ("x", "i[3, 3]"), "np.matvec": ("x", "p[3]"), "np.vecmat": ("p[3]", "x"),
    **{f"scipy.special.{name}": operands for name, operands in {
        "beta": ("x", "x"), "betaln": ("x", "x"), "betainc": ("x", "x", _HALF),
        "gammainc": ("x", "x"), "gammaincc": ("x", "x"), "expn": ("2", "x"),
        "huber": ("x", _HALF), "pseudo_huber": ("x", _HALF), "kl_div": ("x", _HALF),
        "rel_entr": ("x", _HALF), "xlogy": ("x", "x"), "xlog1py": ("x", "x"),
        "polygamma": ("1", "x"), "zeta": ("x", "1"),
    }.items()}})

_STANDARD = """`weft.numpy` is a namespace of the array API standard (2024.12). Of its public tests,
array-api-tests (55fcc60, 2026-11-25), eager with 50 examples each, 1,336 passed, 29 of those listed
here failed, one of them passed by its examples, and 14 are skipped by the suite itself (later
versions of the standard, flaky ones). With every call compiled and 5 examples each 1,333 passed,
and those listed are left out. `python tests/array_api/run.py CHECKOUT` runs them. Where NumPy and
the standard differ, `weft.numpy` does as NumPy does:
"""

_SIZES = """A dim with a name has any size, and one compile serves all: every function is tested
so on its samples, by first and by last dims. In some calls, this is not so:
"""


def options(row: Row) -> str:
    """The parameters beyond the arrays: those with defaults."""
    if row.body is None or isinstance(row.body, np.ufunc):
        return ""
    names = [p.name for p in inspect.signature(row.body).parameters.values()
             if p.default is not p.empty and p.name not in ("like", "subok", "order", "device")]
    return ", ".join(names)


def table(head: Iterable[str], lines: Iterable[Iterable[str]]) -> str:
    rows = [list(head), ["---"] * len(list(head)), *map(list, lines)]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def _line(samples: Iterable[Sample]) -> tuple[str, ...]:
    """The last columns: dtypes, gradient, CPU, GPU, host."""
    found = facts(list(samples))
    return found.dtypes, found.gradient, found.native, found.native, found.hosted


def traced() -> str:
    lines = []
    for row in dict.fromkeys(ROWS.values()):
        if row.body is not None:
            names = ", ".join(dict.fromkeys(f"`{full_name(f)}`" for f in row.functions))
            call = _CALLS.get(row.name)
            texts = row.samples if call is None else (_CALLED,)
            called = row if call is None else Row((call,), row.body)
            lines.append((names, options(row), *_line(Sample(called, text) for text in texts)))
    return table(("function", "options", *_FACTS), sorted(lines))


def missing() -> str:
    lines = [(f"`{row.name}`", row.instead) for row in dict.fromkeys(ROWS.values())
             if row.body is None]
    return table(("function", "what to use"), sorted(lines))


def scipys() -> set[str]:
    """The names of scipy.special that trace."""
    hidden = {"_zeta": "zeta", "_riemann_zeta": "zeta"}
    return {hidden.get(name, name) for name in (
        *special.UFUNCS, *special.PAIRS, *special.FUNCTIONS)} | {"digamma"}


def sizes() -> str:
    """The exceptions of ``numpy_dims``."""
    lines = [(f"`{name}`", f"refused ({code})", why) for name, (code, why) in REFUSED.items()]
    lines += [(f"gradient of `{name}`", f"refused ({code})", why)
              for name, (code, why) in NO_GRADIENT.items()]
    lines += [(f"`{name}`", "of size " + ", ".join(map(str, at)), why)
              for name, (at, why) in EXCEPT.items()]
    return table(("function", "where", "why"), sorted(lines))


def elementwise() -> str:
    """The ufuncs, and the functions of scipy.special."""
    found = {*ufuncs.ROWS, *ufuncs.BODIES, *ufuncs.PAIRS, *ufuncs.GUFUNCS, np.divmod}
    calls = {f"np.{ufunc.__name__}": ufunc for ufunc in found} | {
        f"scipy.special.{name}": _by_name(name) for name in scipys()}
    return table(("function", *_FACTS), (
        (f"`{name}`", *_line(_samples(name, calls[name])))
        for name in sorted(calls)))


def standard() -> str:
    """The exceptions from the array API's tests, with their reasons."""
    always, traced = (Path(__file__).parents[1] / "array_api" / "exceptions.txt").read_text(
        encoding="utf-8").split("# traced\n")
    lines = []
    for text, where in ((always, ""), (traced, "compiled calls only")):
        for block in text.split("\n\n"):
            reason = " ".join(line[2:] for line in block.splitlines() if line.startswith("# "))
            tests = [re.sub(r".*::|\[.*", "", line) for line in block.splitlines()
                     if line and not line.startswith("#")]
            counted = [f"`{name}`" + f" ({count})" * (count > 1)
                       for name, count in Counter(tests).items()]
            if tests:
                lines.append((", ".join(counted), where, reason))
    return table(("tests", "where", "why"), lines)


def _by_name(name: str) -> Callable[..., Any]:
    """A function of scipy.special, which is looked up when it is called: while a function is
    traced there may be another one."""
    return lambda *operands: getattr(scipy.special, name)(*operands)


def _samples(name: str, function: Callable[..., Any]) -> Iterator[Sample]:
    """Calls of numbers between 0 and 1, and of larger ones: each function has a gradient there."""
    operands = _OPERANDS.get(name) or ["x"] * getattr(function, "nin", 1)
    for number in ("p[3, 3] / 4", "1 + p[3, 3]"):
        text = ", ".join(number if operand == "x" else operand for operand in operands)
        yield Sample(Row((function,), function, (text,)), text)


def text() -> str:
    return "\n".join((
        _HEAD, _COLUMNS, "## Functions\n", traced(), "\n## Ufuncs\n", elementwise(),
        "\nOf their methods there are `outer`, `reduce`, `accumulate` and `at` of all, and "
        "`reduceat` at known places (of `np.add` at computed ones, too). Where there is no shorter "
        "way, they run element by element.\n",
        "## Sizes that are not known\n", _SIZES, sizes(),
        "\n## The array API standard\n", _STANDARD, standard(),
        "\n## What to write instead\n", missing(), ""))
