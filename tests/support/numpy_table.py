"""docs/numpy.md, made from the rows: which of NumPy's functions trace, with which options, where
there is a gradient, and what to write instead of the others.

    pytest tests/frontend/test_numpy_docs.py --update-golden        writes it
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy_dims import EXCEPT, NO_GRADIENT, REFUSED
from numpy_samples import Sample

import weft
from weft.frontend.compile.eager import run_eagerly
from weft.frontend.numpy_api.elements import elementwise as ufuncs
from weft.frontend.numpy_api.elements import special
from weft.frontend.numpy_api.registry import ROWS, Row, full_name
from weft.ir.diagnose import Error

_HEAD = """# NumPy in traced code

Made from the rows of `frontend/numpy_api` and their samples by
`pytest tests/frontend/test_numpy_docs.py --update-golden`.

Results, dtypes and shapes are NumPy's. Every function takes `out=` arrays that the traced function
made. Elements of which only values say how many there are can be returned, reduced, sliced, joined,
sorted and written; functions that would make arrays of other shapes of them are refused by name.
"""

_SIZES = """A dim with a name has any size, and one compile serves all: every function is tested
so on its samples, by first and by last dims. In some calls, this is not so:
"""


def floats(result: Any) -> list[Any]:
    """The arrays of floats among results."""
    parts = result if isinstance(result, (tuple, list)) else [result]
    return [x for x in parts if hasattr(x, "dtype") and x.dtype.kind in "fc"]


def differentiable(sample: Sample) -> bool:
    """True if a float result of the sample depends on a float, by a gradient that is not 0."""
    arrays = sample.arrays(np.float64)
    given = tuple(at for at, x in enumerate(arrays) if x.dtype.kind in "fc")
    if not given or not floats(sample.call(*arrays)):
        return False

    def loss(*arrays: Any) -> Any:
        return sum(np.sum(np.real(x) * np.cos(np.arange(x.size).reshape(x.shape) + 1.0))
                   for x in floats(sample.call(*arrays)))

    try:
        found = run_eagerly(weft.grad(loss, argnums=given), tuple(arrays))
    except Error:
        return False
    return any(np.any(np.nan_to_num(part)) for part in found)


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


def traced() -> str:
    lines = []
    for row in dict.fromkeys(ROWS.values()):
        if row.body is not None:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                gradient = any(differentiable(Sample(row, text)) for text in row.samples)
            names = ", ".join(f"`{full_name(f)}`" for f in row.functions)
            lines.append((names, options(row), "yes" if gradient else ""))
    return table(("function", "options", "gradient"), sorted(lines))


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
    found = {*ufuncs.ROWS, *ufuncs.BODIES, *ufuncs.PAIRS, *ufuncs.GUFUNCS, np.divmod}
    names = sorted({f"`np.{u.__name__}`" for u in found} | {
        f"`scipy.special.{name}`" for name in scipys()})
    return ", ".join(names)


def text() -> str:
    return "\n".join((
        _HEAD, "## Functions\n", traced(), "\n## Ufuncs\n", elementwise() + ".\n",
        "Of their methods there are `outer`, `reduce`, `accumulate` and `at` of all, and "
        "`reduceat` at known places (of `np.add` at computed ones, too). Where there is no shorter "
        "way, they run element by element.\n",
        "## Sizes that are not known\n", _SIZES, sizes(),
        "\n## What to write instead\n", missing(), ""))
