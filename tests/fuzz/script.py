"""A program as a script that needs nothing but NumPy and Weft."""

from __future__ import annotations

import inspect
from dataclasses import replace

from . import prelude
from .data import literal
from .program import Program

CALL = """
plain, held = make(lambda f: f, Held)
{dynamic}for options in ({settings}):
    jit = weft.compile(**options, on_recompile="silent")
    f, variables = make(jit, weft.Variable)
    compiled = weft.compile(dynamic=dynamic, **options, on_recompile="silent")(f)
    for args in calls():
        for name, run in (("NumPy", plain), ("Weft", compiled)):
            try:
                print(name, options, run(*args), sep="\\n  ")
            except Exception as problem:
                print(name, options, "raises", type(problem).__name__, problem, sep="\\n  ")
"""
GRAD = """
plain, _ = make(lambda f: f, Held)
{dynamic}for options in ({settings}):
    both = weft.value_and_grad(plain, argnums={floats})
    def f({names}):
        return both({names})
    compiled = weft.compile(dynamic=dynamic, **options, on_recompile="silent")(f)
    for args in calls():
        print(options, compiled(*args), sep="\\n  ")
        for at in {floats}:
            moved = [np.array(arg) for arg in args]
            for place in np.ndindex(args[at].shape):
                values = []
                for h in (1e-5, -1e-5):
                    moved[at][place] = args[at][place] + h
                    values.append(plain(*moved))
                moved[at][place] = args[at][place]
                print("  argument", at, place, "by differences", (values[0] - values[1]) / 2e-5)
"""
SESSION = """
plain, _ = make(lambda f: f, Held)
args = calls()[0]
graph = weft.Graph()
with graph.as_default():
    holders = [weft.placeholder(arg.dtype.name, shape) if isinstance(arg, np.ndarray) else arg
               for arg, shape in zip(args, {shapes})]
    values = plain(*holders)
feeds = {{holder: arg for holder, arg in zip(holders, args) if isinstance(arg, np.ndarray)}}
for options in ({settings}):
    session = weft.Session(graph, **options)
    traced = {{at: value for at, value in enumerate(values) if hasattr(value, "value")}}
    for at, want in enumerate(plain(*args)):
        print(at, "NumPy", want, sep="\\n  ")
        if at in traced:
            print(at, "alone", session.run(traced[at], feeds), sep="\\n  ")
    print(session.run(traced, feeds))
"""


def script(program: Program, what: str) -> str:
    """The text; it prints what NumPy and Weft give."""
    first = what.split("\n")[0].replace('"', "'")
    helpers = inspect.getsource(prelude).split("from typing import Any\n", 1)[1]
    helpers = helpers[helpers.index("def at_set"):helpers.index("def scope")].strip()
    floats = tuple(at for at, param in enumerate(program.params) for leaf in program.leaves
                   if leaf.name == param and leaf.kind == "array" and leaf.dtype == "f8")
    settings = ", ".join(f"dict({replace(way, target=way.runnable).text()})"
                         for way in dict.fromkeys(program.settings))
    shapes = [tuple(None if isinstance(dim, str) else dim for dim in leaf.dims)
              for leaf in program.leaves]
    dynamic = f"dynamic = {program.dynamic!r}\n"
    tail = {"call": CALL, "grad": GRAD, "session": SESSION}[program.kind].format(
        settings=f"{settings},", floats=floats, shapes=shapes, dynamic=dynamic,
        names=", ".join(f"p{at}" for at in range(len(program.params))))
    return "\n".join((
        f'"""Program {program.name}: {first}"""', "import base64", "import zlib",
        "from typing import Any", "", "import numpy as np", "from numpy import inf, nan",
        *(["from scipy import special"] if "special." in program.source() else []), "",
        "import weft", "", 'np.seterr(all="ignore")', "", "", helpers, "", "", program.source(),
        "", "", "def calls():", f"    return [{_calls(program)}]", tail))


def _calls(program: Program) -> str:
    texts = []
    for argset in program.argsets:
        found = {leaf.name: literal(value) if leaf.kind != "array" else
                 f"laid({literal(value)}, {layout!r})" if layout != "C" else literal(value)
                 for leaf, value, layout in zip(program.leaves, argset.leaves, argset.layouts,
                                                strict=True)}
        texts.append("[" + ", ".join(
            _nest(param, found) for param in program.ordered_params(argset)) + "]")
    return ",\n            ".join(texts)


def _nest(nest: object, found: dict[str, str]) -> str:
    """Like ``program.show``, with the text of each leaf."""
    if isinstance(nest, str):
        return found[nest]
    kind, items = nest  # type: ignore[misc]
    if kind == "dict":
        return "{" + ", ".join(f"{key!r}: {_nest(item, found)}" for key, item in items) + "}"
    inside = ", ".join(_nest(item, found) for item in items)
    return f"[{inside}]" if kind == "list" else f"({inside}{',' if len(items) == 1 else ''})"

