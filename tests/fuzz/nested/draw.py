"""A random program as the text of a module: what it keeps (variables, random numbers), and a
function ``f(a, v, m, k, ids, q, z)`` in plain NumPy and names of ``W``: weft, or its reference.

    a: number  v: n numbers  m: b rows of n  k: a count  ids: n places  q: n bools  z: complex ones

Names of these kinds are put together into expressions, expressions into statements, and statements
into blocks: of branches, of loops, and of functions that are given to control flow and transforms,
each of which may hold any other. Every value is kept near one, so that nothing explodes.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

KINDS = {"a": "s", "v": "v", "m": "m", "k": "i", "ids": "ids", "q": "q", "z": "z"}


@dataclass(frozen=True)
class Program:
    """A program, and what it may be compared by: ``order`` derivatives of derivatives."""

    text: str
    single: bool            # float32 and complex64, else float64
    order: int
    unknown: bool           # sizes are not known when it is compiled
    reference: bool         # random numbers of each example of a batch have none
    features: tuple[str, ...]


@dataclass(frozen=True)
class Scope:
    """What may stand at a place: names by kind, those that may be bound anew, and what is around
    it: ``order`` derivatives, in forward mode, in reverse, or both, a batch, a loop of Python's."""

    names: dict[str, str]
    own: frozenset[str] = frozenset()
    order: int = 0
    forward: bool = False
    reverse: bool = False
    batch: bool = False
    loop: bool = False
    effects: bool = True    # variables may be assigned here, and numbers be drawn
    back: str = ""          # what the function around returns
    depth: int = 0
    left: int = 0           # derivatives that may still be taken

    def of(self, kind: str) -> list[str]:
        return [name for name, own in self.names.items() if own == kind]


@dataclass
class Drawer:
    """The state of one drawing."""

    rng: random.Random
    single: bool
    unknown: bool
    complex: bool
    random: bool
    variable: bool
    budget: int
    count: int = 0
    most: int = 0           # the deepest derivative of a derivative
    reference: bool = True
    features: set[str] = field(default_factory=set)

    def name(self, stem: str) -> str:
        self.count += 1
        return f"{stem}{self.count}"

    def pick(self, *choices: str) -> str:
        return self.rng.choice(choices)

    def chance(self, share: float) -> bool:
        return self.rng.random() < share


def program(seed: int, number: int) -> Program:
    """Program ``number`` of a seed."""
    rng = random.Random(f"{seed} {number}")
    single = rng.random() < 0.25
    unknown = rng.random() < 0.3
    d = Drawer(rng, single, unknown, rng.random() < 0.15, not single and rng.random() < 0.2,
               rng.random() < 0.2, rng.randint(3, 10))
    names = {name: kind for name, kind in KINDS.items() if kind != "z" or d.complex}
    scope = Scope({**names, "s0": "s", "v0": "v"}, frozenset(("s0", "v0")),
                  left=rng.choice((0, 1, 1, 2, 2)))
    from .statements import block, results

    lines, scope = block(d, scope)
    back, _ = results(d, scope)
    held = [*(["rng = W.random.default_rng(3)"] if d.random else []),
            *(["V = W.Variable(F(0.5))"] if d.variable else [])]
    text = "\n".join([
        *held, "", "def f(a, v, m, k, ids, q, z):", "    s0 = a * 0.5", "    v0 = v * 0.5",
        *("    " + line for line in lines), f"    return {back}", ""])
    if single:
        d.features.add("float32")
    d.features.update(["complex"] * d.complex + ["random"] * d.random + ["variable"] * d.variable)
    if unknown:
        d.features.add("unknown sizes")
    d.features.add(f"order {d.most}")
    return Program(text, single, d.most, unknown, d.reference, tuple(sorted(d.features)))


# -- expressions --------------------------------------------------------------------------------

Rule = Callable[[Drawer, Scope, int], str]


def scalar(d: Drawer, s: Scope, depth: int = 0) -> str:
    if depth > 2 or d.chance(0.3):
        numbers = ("F(0.5)", "F(2.0)", "F(-1.0)") if d.single else ("0.5", "2.0", "-1.0")
        return d.pick(*s.of("s"), *s.of("s"), *numbers)
    return d.rng.choice(_SCALARS)(d, s, depth + 1)


def vector(d: Drawer, s: Scope, depth: int = 0) -> str:
    names = s.of("v")
    if depth > 2 or d.chance(0.3):
        return d.pick(*names)
    return d.rng.choice(_VECTORS)(d, s, depth + 1)


def matrix(d: Drawer, s: Scope, depth: int = 0) -> str:
    if depth > 2 or d.chance(0.4):
        return d.pick(*s.of("m"))
    return d.rng.choice(_MATRICES)(d, s, depth + 1)


def complexes(d: Drawer, s: Scope, depth: int = 0) -> str:
    if depth > 2 or d.chance(0.3):
        return d.pick(*s.of("z"))
    return d.rng.choice(_COMPLEX)(d, s, depth + 1)


def integer(d: Drawer, s: Scope) -> str:
    return d.pick(*s.of("i"), *s.of("i"), "1", f"np.argmax({vector(d, s, 2)})", "len(v)")


def place(d: Drawer, s: Scope) -> str:
    """An index into a vector."""
    return d.pick(f"({integer(d, s)}) % len(v)", "0", "-1", "ids[0] % len(v)")


def part(d: Drawer, s: Scope) -> str:
    """A slice of a vector, of at least one element, whose bounds are computed."""
    at = integer(d, s)
    if "rng." in at:  # the text stands in two places, which would draw twice
        at = "1"
    return d.pick(f":({at}) % len(v) + 1", f"({at}) % len(v):", f"-1 - ({at}) % len(v):",
                  f"({at}) % (len(v) - 1):({at}) % (len(v) - 1) + 2")


def mask(d: Drawer, s: Scope, depth: int = 0) -> str:
    inner = depth + 1
    if depth > 2 or d.chance(0.3):
        return d.pick(*s.of("q"), "(v > 0.1)")
    return d.rng.choice((
        lambda: f"({vector(d, s, inner)} {d.pick('<', '>', '<=')} {scalar(d, s, inner)})",
        lambda: f"({mask(d, s, inner)} {d.pick('&', '|')} {mask(d, s, inner)})",
        lambda: f"~{mask(d, s, inner)}"))()


def test(d: Drawer, s: Scope, depth: int = 0) -> str:
    """A truth value, of Python's operators."""
    inner, kind = depth + 1, d.rng.random()
    if depth > 1 or kind < 0.5:
        return f"{scalar(d, s, inner)} {d.pick('<', '>', '<=', '!=')} {scalar(d, s, inner)}"
    if kind < 0.6:
        return f"not ({test(d, s, inner)})"
    if kind < 0.7:
        return f"-1.0 < {scalar(d, s, inner)} < {scalar(d, s, inner)}"
    if kind < 0.8:
        return f"{integer(d, s)} {d.pick('<', '==', '>')} {integer(d, s)}"
    return f"({test(d, s, inner)} {d.pick('and', 'or')} {test(d, s, inner)})"


def decision(d: Drawer, s: Scope) -> str:
    """A truth value, of NumPy's operators, for ``cond`` and ``while_loop``."""
    return d.rng.choice((
        lambda: f"{scalar(d, s)} {d.pick('<', '>')} {scalar(d, s)}",
        lambda: f"np.{d.pick('any', 'all')}({mask(d, s)})",
        lambda: f"{integer(d, s)} > {d.pick('1', '2')}"))()


def _random(d: Drawer, s: Scope, size: str, otherwise: str) -> str:
    if not d.random or not s.effects:
        return otherwise
    if s.batch:
        d.reference = False
    d.features.add("draws in " + ("batches" if s.batch else "gradients" if s.order else "loops"
                                  if s.depth else "order"))
    return d.pick(f"rng.normal(0.0, 1.0, {size})", f"rng.random({size})") if size else (
        d.pick("rng.normal()", "rng.random()"))


def _seen(feature: str, rule: Rule) -> Rule:
    def seen(d: Drawer, s: Scope, depth: int) -> str:
        d.features.add(feature)
        return rule(d, s, depth)

    return seen


_SCALARS: tuple[Rule, ...] = (
    *[lambda d, s, n: f"({scalar(d, s, n)} {d.pick('+', '-', '*')} {scalar(d, s, n)})"] * 4,
    lambda d, s, n: f"{d.pick('max', 'min')}({scalar(d, s, n)}, {scalar(d, s, n)})",
    lambda d, s, n: f"abs({scalar(d, s, n)})",
    lambda d, s, n: f"({scalar(d, s, n)} if {test(d, s, n)} else {scalar(d, s, n)})",
    lambda d, s, n: f"np.{d.pick('tanh', 'sin', 'arctan')}({scalar(d, s, n)})",
    lambda d, s, n: f"np.exp(-abs({scalar(d, s, n)}))",
    lambda d, s, n: f"np.sqrt(1.0 + {scalar(d, s, n)} ** 2)",
    lambda d, s, n: f"({scalar(d, s, n)} / (1.0 + abs({scalar(d, s, n)})))",
    _seen("sums", lambda d, s, n: f"np.{d.pick('mean', 'sum')}({vector(d, s, n)})"),
    _seen("sums", lambda d, s, n: f"({vector(d, s, n)} @ {vector(d, s, n)})"),
    _seen("extremes", lambda d, s, n: f"np.{d.pick('max', 'min')}({vector(d, s, n)})"),
    _seen("masks", lambda d, s, n: f"np.sum({d.pick(*s.of('v'))}[{mask(d, s, n)}])"),
    _seen("masks", lambda d, s, n: f"np.{d.pick('max', 'sum')}({d.pick(*s.of('v'))}"
                                   f"[{mask(d, s, n)}], initial=-0.5)"),
    _seen("slices", lambda d, s, n: f"np.{d.pick('sum', 'mean', 'max')}({d.pick(*s.of('v'))}"
                                    f"[{part(d, s)}])"),
    _seen("slices", lambda d, s, n: (lambda x, at: f"({x}[{at}] @ np.sin({x}[{at}]))")(
        d.pick(*s.of("v")), part(d, s))),
    _seen("gathers", lambda d, s, n: f"{d.pick(*s.of('v'))}[{place(d, s)}]"),
    _seen("sums", lambda d, s, n: f"np.mean({matrix(d, s, n)})"),
    lambda d, s, n: f"W.stop_gradient({scalar(d, s, n)} * 1.0)",
    lambda d, s, n: f"np.sum(np.abs({complexes(d, s, n)}) ** 2)" if d.complex else d.pick(
        *s.of("s")),
    lambda d, s, n: _random(d, s, "", d.pick(*s.of("s"))),
    lambda d, s, n: f"(V * {scalar(d, s, n)})" if d.variable else d.pick(*s.of("s")),
    lambda d, s, n: f"{scalar(d, s, n)} * (0.1 * {d.pick(*s.of('i'))})",
)
_VECTORS: tuple[Rule, ...] = (
    *[lambda d, s, n: f"({vector(d, s, n)} {d.pick('+', '-', '*')} {vector(d, s, n)})"] * 3,
    *[lambda d, s, n: f"({vector(d, s, n)} {d.pick('+', '*')} {scalar(d, s, n)})"] * 2,
    *[lambda d, s, n: f"np.{d.pick('tanh', 'sin', 'exp', 'abs')}(-{vector(d, s, n)} * 0.5)"] * 2,
    _seen("masks", lambda d, s, n:
          f"np.where({mask(d, s, n)}, {vector(d, s, n)}, {vector(d, s, n)})"),
    _seen("scans of rows", lambda d, s, n: f"(np.cumsum({vector(d, s, n)}) * 0.5)"),
    _seen("sorts", lambda d, s, n: f"np.sort({vector(d, s, n)})"),
    lambda d, s, n: f"{d.pick(*s.of('v'))}[::-1]",
    _seen("gathers", lambda d, s, n: f"{d.pick(*s.of('v'))}[ids % len(v)]"),
    _seen("gathers", lambda d, s, n: f"np.take({vector(d, s, n)}, ids % len(v))"),
    lambda d, s, n: f"np.roll({vector(d, s, n)}, 1)",
    lambda d, s, n: f"np.maximum({vector(d, s, n)}, {scalar(d, s, n)})",
    lambda d, s, n: (lambda x: f"({x} - np.mean({x}))")(d.pick(*s.of("v"))),
    _seen("softmax", lambda d, s, n: (
        lambda x: f"(np.exp({x} - np.max({x})) / np.sum(np.exp({x} - np.max({x}))))")(
            d.pick(*s.of("v")))),
    lambda d, s, n: f"(np.zeros_like(v) + {scalar(d, s, n)})",
    _seen("sums", lambda d, s, n: f"np.{d.pick('mean', 'sum')}({matrix(d, s, n)}, 0)"),
    _seen("products", lambda d, s, n:
          f"({vector(d, s, n)} @ (0.2 * np.outer({vector(d, s, n)}, {vector(d, s, n)})))"),
    _seen("products", lambda d, s, n: f"(0.2 * ({matrix(d, s, n)} @ {vector(d, s, n)}) @ m)"),
    _seen("host", lambda d, s, n: f"np.linalg.solve(3.0 * np.eye(len(v), dtype=F) + 0.1 * "
                                  f"np.outer(np.tanh({vector(d, s, n)}), v), {vector(d, s, n)})"),
    lambda d, s, n: f"W.stop_gradient({vector(d, s, n)})",
    lambda d, s, n: f"np.{d.pick('real', 'imag', 'abs')}({complexes(d, s, n)})" if d.complex
    else d.pick(*s.of("v")),
    lambda d, s, n: _random(d, s, "v.shape", d.pick(*s.of("v"))),
)
_MATRICES: tuple[Rule, ...] = (
    lambda d, s, n: f"np.tanh({matrix(d, s, n)})",
    lambda d, s, n: f"({matrix(d, s, n)} {d.pick('+', '-', '*')} {vector(d, s, n)})",
    lambda d, s, n: f"({matrix(d, s, n)} {d.pick('+', '-', '*')} {matrix(d, s, n)})",
    _seen("sums", lambda d, s, n: (
        lambda x: f"({x} - np.mean({x}, axis=1, keepdims=True))")(d.pick(*s.of("m")))),
    _seen("products", lambda d, s, n: f"(0.3 * {matrix(d, s, n)} @ np.outer(v, v))"),
    lambda d, s, n: f"np.where({matrix(d, s, n)} > 0, {matrix(d, s, n)}, {scalar(d, s, n)})",
    _seen("gathers", lambda d, s, n: f"{d.pick(*s.of('m'))}[:, ids % len(v)]"),
)
_COMPLEX: tuple[Rule, ...] = (
    lambda d, s, n: f"({complexes(d, s, n)} {d.pick('+', '-', '*')} {complexes(d, s, n)})",
    lambda d, s, n: f"({complexes(d, s, n)} * {vector(d, s, n)})",
    lambda d, s, n: f"np.conj({complexes(d, s, n)})",
    lambda d, s, n: f"np.exp(1j * {vector(d, s, n)})",
    lambda d, s, n: f"np.where({mask(d, s, n)}, {complexes(d, s, n)}, {complexes(d, s, n)})",
    lambda d, s, n: f"(0.5 * np.fft.fft({complexes(d, s, n)}))",
)
EXPRESSIONS = {"s": scalar, "v": vector, "m": matrix, "z": complexes}


def near_one(d: Drawer, s: Scope, kind: str) -> str:
    """An expression of a kind, of moderate size."""
    text = EXPRESSIONS[kind](d, s)
    if kind == "z":
        return f"(lambda z: z / (1.0 + np.abs(z)))({text})"
    return f"np.{d.pick('tanh', 'tanh', 'sin')}({text})"
