"""A random program as the text of a module: ``f(x, y, d, l, o, at, k)`` and its arguments.

    x, y: arrays  d: a dict of two  l: a list of two  o: an object with one, and a count
    at, k: numbers

Most lines are those of ``steps_buffers``, with the arguments' arrays, parts of containers too, in
the place of its own. A line is kept where NumPy can run it for all sets of arguments; one that is
meant to fail for some is put between others.
"""

from __future__ import annotations

import copy
import random
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import MappingProxyType, SimpleNamespace
from typing import Any

import numpy as np

from ..steps_buffers import Page, _array, _loop, _method, _ufunc, _view, _write
from ..writer import Value
from .layouts import arguments

HEAD = '''\
import dataclasses
import numpy as np


@dataclasses.dataclass
class Box:
    w: object
    n: object


def scaled(v, s):
    v *= s


def shifted(v):
    t = v[::-1]
    t += 1
    return v


def replaced(box, s):
    box.w = box.w + s
    box.n += 1


def failing(v):
    if np.any(v > 1):
        raise KeyError("from the host")
    return v.copy()
'''
TARGETS = ("x", "y", "d['w']", "d['b']", "l[0]", "l[1]", "o.w")
FAULTS = {  # lines that fail for some arguments, after or before writes
    "index": "{out} = {x}.ravel().take(at + {n})",
    "item": "{out} = {x}[at + {n}] * 1",
    "assert": "assert {test}, 'as it should be'",
    "raise": "if {test}: raise ValueError('as it should not be')",
    "host": "{out} = W.host_call(failing, W.Spec({x}.dtype.newbyteorder('='), {x}.shape), {x})",
}
INTERRUPTED = ("{out} = 0.0", "for j in range(abs(at) * 2000 + 3000): {out} = {out} * 0.5 + j")


@dataclass(frozen=True)
class Program:
    """A program, and whether calls of it are interrupted; whether ``x`` and ``y`` are no arguments
    of ``f(d, l, o, at, k)``, which ``around(x, y)`` gives, but arrays around it."""

    text: str
    interrupted: bool
    features: tuple[str, ...]
    around: bool = False


class Body(Page):
    """The lines of ``f``, and what its names hold for each set of arguments."""

    # What C leaves open is not computed.
    errors: Any = MappingProxyType({"all": "ignore", "over": "raise", "invalid": "raise"})

    def __init__(self, rng: random.Random, spaces: list[dict[str, Any]]) -> None:
        self.w: Any = SimpleNamespace(
            rng=rng, one=rng.choice, yes=lambda chance=0.5: rng.random() < chance, limit=500,
            smooth=False, symbols=())
        self.spaces, self.lines, self.arrays = spaces, [], [*TARGETS]
        for space in spaces:
            space.update(_0=space["x"], _1=space["y"])
        self.operands = [self.value(name) for name in ("_0", "_1")]

    def value(self, name: str) -> Value:
        return Value(name, tuple(np.asarray(eval(name, space)) for space in self.spaces))

    def array(self) -> str:
        """The name of an array: of what is one for all arguments, and no number by now."""
        names = [name for name in self.arrays if all(
            isinstance(_found(name, space), np.ndarray) for space in self.spaces)]
        return str(self.w.one(names or ["x"]))

    def add(self, line: str, name: str = "") -> bool:
        return "bfloat16" not in line and super().add(line, name)

    def inner(self) -> Body:
        """A block of this body, with values of its own."""
        made = copy.copy(self)
        made.lines, made.arrays = [], [*self.arrays]
        made.spaces = [{**space, **copy.deepcopy({
            name: value for name, value in space.items() if isinstance(
                value, (np.ndarray, list, space["Box"])) or name == "d"})} for space in self.spaces]
        return made

    def test(self) -> str:
        """A truth value."""
        a, number = self.array(), self.w.one(("0", "1", "2"))
        return str(self.w.one((f"np.any({a} > {number})", f"np.all({a} < {number})", "at > 1",
                               f"k > 0 and np.any({a} == {number})", f"at < {number}")))


def program(seed: int, number: int) -> Program:
    """Program ``number`` of a seed."""
    rng = random.Random(f"inplace {seed} {number}")
    made, features = arguments(rng)
    space: dict[str, Any] = {}
    exec(f"{HEAD}\n\n{made}", space)
    spaces = []
    for call in range(3):
        names = dict(zip(("x", "y", "d", "l", "o", "at", "k"), space[f"args{call}"](), strict=True))
        writeable(names)
        spaces.append({**space, **names})
    body = Body(rng, spaces)
    interrupted = rng.random() < 0.06
    fault = rng.choice((*FAULTS,)) if not interrupted and rng.random() < 0.3 else ""
    test = body.test()  # of arguments alone: it may come first
    wanted = rng.randint(1, 7)
    for _ in range(4 * wanted):
        before = len(body.lines)
        if before >= wanted:
            break
        maker, = rng.choices([*MAKERS], [*MAKERS.values()])
        _try(maker, body)
        if len(body.lines) > before:
            features.add(maker.__name__.strip("_"))
    lines = [line for each in body.lines for line in each.split("\n")]
    tops = [at for at, line in enumerate(lines) if not line.startswith((" ", "else:"))]
    names = [name for name in (*body.arrays, "d", "l", "o", "at", "k") if all(
        _found(name, space) is not NotImplemented for space in spaces)]
    back = [rng.choice(names)]
    if fault or interrupted:
        features.add(f"fails by {fault}" if fault else "is interrupted")
        texts = (FAULTS[fault],) if fault else INTERRUPTED
        parts = {"out": "r", "x": rng.choice(TARGETS[:4]), "n": rng.choice((0, 1, 2)),
                 "test": test}
        at = rng.choice([*tops, len(lines), len(lines)])
        lines[at:at] = [text.format(**parts) for text in texts]
        back += ["r"] * (fault not in ("assert", "raise"))
    back += rng.sample(names, rng.randint(0, 2))
    text = "\n    ".join(("def f(x, y, d, l, o, at, k):", *lines, f"return {', '.join(back)}"))
    text = re.sub(r"\b_0\b", "x", re.sub(r"\b_1\b", "y", text))
    around = number % 3 == 0 and re.search(r"^ *[xy](, [xy])? = ", text, re.M) is None
    if around:
        features.add("arrays around")
        inner = text.replace("def f(x, y, d, l, o, at, k):", "def f(d, l, o, at, k):\n"
                             "    nonlocal x, y", 1).replace("\n", "\n    ")
        text = f"def around(x, y):\n    {inner}\n    return f"
    return Program(f"{HEAD}\n\n{made}\n\n\n{text}\n", interrupted, tuple(sorted(features)),
                   around)


def script(program: Program) -> str:
    """A program that needs only NumPy and Weft, and prints what both make of its arguments."""
    call = "g(*given)"
    if program.around:
        call = "g(around(*given[:2]))(*given[2:])"
    return "import weft as W\n" + program.text + (
        "\n\ncompiled = lambda g: W.compile(g, on_recompile='silent')\n"
        "for args in (args0, args1, args2):\n"
        f"    for g in ({'lambda g: g, compiled' if program.around else 'f, compiled(f)'}):\n"
        "        given = args()\n"
        "        try:\n"
        f"            print({call}, *given, sep='\\n  ')\n"
        "        except Exception as problem:\n"
        "            print(type(problem).__name__, problem, *given, sep='\\n  ')\n")


def writeable(nest: Any) -> None:
    """Make all arrays writeable: NumPy is to draw what writes to read-only ones, too."""
    parts: Sequence[Any] = ()
    if isinstance(nest, np.ndarray):
        with suppress(ValueError):  # a view of one
            nest.flags.writeable = True
    elif isinstance(nest, dict):
        parts = [*nest.values()]
    elif isinstance(nest, (list, tuple)):
        parts = nest
    elif hasattr(nest, "w"):
        parts = [nest.w]
    for part in parts:
        writeable(part)


def _found(name: str, space: dict[str, Any]) -> Any:
    """What a name, or an item, is; NotImplemented if it is not there."""
    try:
        return eval(name, space)
    except (LookupError, AttributeError):
        return NotImplemented


def _try(maker: Callable[[Body], None], body: Body) -> None:
    try:
        maker(body)
    except (LookupError, AttributeError):  # what it names is no array any more
        return


# -- lines of our own ----------------------------------------------------------------------------


def _block(body: Body) -> list[str]:
    """Lines of a branch or a loop."""
    inner = body.inner()
    for _ in range(8):
        if len(inner.lines) < body.w.rng.randint(1, 3):
            maker, = body.w.rng.choices((_write, _ufunc, _method, _item, _called), (5, 3, 2, 1, 2))
            _try(maker, inner)
    return ["    " + line for each in inner.lines or ["pass"] for line in each.split("\n")]


def _branch(body: Body) -> None:
    body.add("\n".join((f"if {body.test()}:", *_block(body), "else:", *_block(body))))


def _for(body: Body) -> None:
    rounds = body.w.one(("2", "3", "abs(at)", "len(x)"))
    body.add("\n".join((f"for j in range({rounds}):", *_block(body))))


def _while(body: Body) -> None:
    name = f"c{len(body.lines)}"
    body.add("\n".join((f"{name} = 0", f"while {name} < 3 and {body.test()}:", f"    {name} += 1",
                        *_block(body))))


def _item(body: Body) -> None:
    """Containers get other items."""
    source, target = body.source(), body.array()
    body.add(body.w.one((
        f"d['n'] = {source}", f"d['n'] = {source}", f"d['w'] = {source} + {target}", "del d['b']",
        "d['w'], d['b'] = d['b'], d['w']", f"l[1] = {target} * 2", f"l.append({source})",
        "t = l.pop()", "l[0], l[1] = l[1], l[0]", f"o.w = {target} + 1", "o.n = o.n + at",
        f"o.n = {source}", f"d['m'] = {{'x': {target}}}", f"l[0] = {target}", f"o.w = {target}",
        "for name in d: d[name] *= 2", "for name in d: d[name][...] = k", "for v in l: v += 1",
        "for v in l: v[0] = 1", f"d.update(n={source})", f"x = {target} + 1", f"y = {target}")))


def _called(body: Body) -> None:
    target = body.array()
    part = body.w.one((target, f"{target}[1:]", f"{target}[..., 0]", f"{target}[::-1]",
                       f"{target}.T", f"{target}.reshape(-1)"))
    body.add(body.w.one((f"scaled({part}, {body.w.one(('2', 'k', 'at', '3'))})", f"shifted({part})",
                         f"shifted({part})[:1] = 2", f"replaced(o, {body.source()})")))


def _whole(body: Body) -> None:
    target = body.array()
    body.add(f"{target} {body.w.one(('+=', '-=', '*=', '//=', '%=', '&=', '|='))} "
             f"{body.w.one((body.source(), '2', 'k', 'at'))}")


MAKERS: dict[Callable[[Any], None], int] = {
    _write: 8, _ufunc: 4, _method: 3, _loop: 3, _view: 4, _array: 1, _whole: 4, _branch: 3, _for: 2,
    _while: 2, _item: 5, _called: 3}
