"""Passes as data: a frozen record whose fields are its options and its command-line syntax.

    simplify{rounds=1},place{devices=(cpu:0, gpu:0)}     the text of two passes
    Simplify(rounds=1), Place(devices=(...))             the same as objects

``PassManager`` runs passes in order and tells a callback after each one: that one hook serves
dumps, verification, timing and the search for a guilty pass.
"""

from __future__ import annotations

import re
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from types import MappingProxyType
from typing import Any, ClassVar

from ..ir.diagnose import error
from ..ir.graph import Graph
from ..ir.record import fields, record
from ..ir.types import CPU0, Device
from .complex.split import split_complex
from .control.bodies import tidy_regions
from .control.choose import choose
from .control.hoist import hoist
from .control.inline import inline_regions
from .control.stores import hoist_stores
from .elements import elements_of_rows
from .fusion.fuse import LIMIT, fuse
from .placement.place import place
from .ranges.places import known_places, marked_places
from .roll.roll import roll
from .simplify.simplify import simplify
from .state import resolve_state


@record(frozen=True)
class Pass(ABC):
    """Base of the passes: a valid graph in, a valid graph out. Options are fields with defaults."""

    name: ClassVar[str] = ""

    @abstractmethod
    def run(self, graph: Graph) -> Graph:
        """The new graph; the old one is left as it was."""

    def __str__(self) -> str:
        """The name, and the options that differ from their defaults in braces."""
        options = [f"{part.name}={_text(getattr(self, part.name))}" for part in fields(self)
                   if getattr(self, part.name) != part.default]
        return f"{self.name}{{{','.join(options)}}}" if options else self.name


@record(frozen=True)
class Inline(Pass):
    """Calls become the nodes that they stand for."""

    name: ClassVar[str] = "inline"

    def run(self, graph: Graph) -> Graph:
        return inline_regions(graph)


@record(frozen=True)
class ResolveState(Pass):
    """Variables become parameters and results."""

    name: ClassVar[str] = "state"

    def run(self, graph: Graph) -> Graph:
        return resolve_state(graph)


@record(frozen=True)
class SplitComplex(Pass):
    """Complex values become two real ones."""

    name: ClassVar[str] = "complex"

    def run(self, graph: Graph) -> Graph:
        return split_complex(graph)


@record(frozen=True)
class Elements(Pass):
    """Elements of rows are elements of the array."""

    name: ClassVar[str] = "elements"

    def run(self, graph: Graph) -> Graph:
        return elements_of_rows(graph)


@record(frozen=True)
class Places(Pass):
    """What follows from ranges: elements at places that rounds tell become views, checks go."""

    name: ClassVar[str] = "places"

    def run(self, graph: Graph) -> Graph:
        return known_places(graph)


@record(frozen=True)
class Ranges(Pass):
    """Reads and stores say what is known of their indices; those that cannot fail stay no longer
    for nobody."""

    name: ClassVar[str] = "ranges"

    def run(self, graph: Graph) -> Graph:
        return _tidy(marked_places(graph))


def _tidy(graph: Graph) -> Graph:
    return tidy_regions(graph, _tidy)


@record(frozen=True)
class Stores(Pass):
    """Stores that end a branch are stores behind it."""

    name: ClassVar[str] = "stores"

    def run(self, graph: Graph) -> Graph:
        return hoist_stores(graph)


@record(frozen=True)
class Choose(Pass):
    """Short branches become selects between both ways."""

    name: ClassVar[str] = "choose"

    def run(self, graph: Graph) -> Graph:
        return choose(graph)


@record(frozen=True)
class Roll(Pass):
    """Straight lines of equal segments become loops."""

    name: ClassVar[str] = "roll"

    def run(self, graph: Graph) -> Graph:
        return roll(graph)


@record(frozen=True)
class Hoist(Pass):
    """What rounds of loops do not change is computed before them."""

    name: ClassVar[str] = "hoist"

    def run(self, graph: Graph) -> Graph:
        return hoist(graph)


@record(frozen=True)
class Simplify(Pass):
    """Algebra, views, common subexpressions, constants and dead code."""

    name: ClassVar[str] = "simplify"
    rounds: int = 2

    def run(self, graph: Graph) -> Graph:
        return simplify(graph, self.rounds)


@record(frozen=True)
class Place(Pass):
    """A device for every node."""

    name: ClassVar[str] = "place"
    devices: tuple[Device, ...] = (CPU0,)

    def run(self, graph: Graph) -> Graph:
        return place(graph, self.devices).graph


@record(frozen=True)
class Fuse(Pass):
    """Regions of at most ``max`` nodes that become one kernel each."""

    name: ClassVar[str] = "fuse"
    max: int = LIMIT

    def run(self, graph: Graph) -> Graph:
        return fuse(graph, self.max)


PASSES = MappingProxyType({kind.name: kind for kind in (
    Inline, ResolveState, SplitComplex, Elements, Places, Stores, Choose, Roll, Hoist, Simplify,
    Ranges, Place, Fuse)})

# What is run between tracing and lowering, by level of optimization; text, as on the command line.
PIPELINES = MappingProxyType({
    0: "inline,state,complex,place,fuse{max=1}",
    1: "inline,state,complex,elements,places,stores,choose,roll,hoist,simplify{rounds=1},"
       "ranges,place,fuse",
    2: "inline,state,complex,elements,places,stores,choose,roll,hoist,simplify,ranges,place,fuse",
})


@cache
def parse_passes(text: str) -> tuple[Pass, ...]:
    """Passes from ``"simplify,place{devices=(cpu:0)}"``; raises TextError (W501) naming the part.

    >>> ",".join(map(str, parse_passes("state, simplify{rounds=1}, simplify{rounds=2}")))
    'state,simplify{rounds=1},simplify'
    """
    return tuple(_parse_pass(part) for part in _split(text))


def _parse_pass(text: str) -> Pass:
    match = re.fullmatch(r"([\w-]+)\s*(?:\{(.*)\})?", text)
    kind = PASSES.get(match[1]) if match else None
    if match is None or kind is None:
        raise error("W501", f"no pass '{text}'", hint=f"passes are {', '.join(PASSES)}")
    known = {part.name: part for part in fields(kind)}
    options: dict[str, Any] = {}
    for item in _split(match[2] or ""):
        key, _, value = (part.strip() for part in item.partition("="))
        if key not in known:
            raise error("W501", f"pass {kind.name} has no option '{key}'",
                        hint=f"its options are {', '.join(known) or 'none'}")
        try:
            options[key] = _value(value, known[key].default)
        except ValueError as problem:
            raise error("W501", f"option {key} of pass {kind.name}: {problem}") from None
    return kind(**options)


def _split(text: str) -> Iterator[str]:
    """The parts between commas that are not inside brackets."""
    depth, part = 0, ""
    for letter in text:
        depth += (letter in "{(") - (letter in "})")
        if letter == "," and depth == 0:
            yield part.strip()
            part = ""
        else:
            part += letter
    if part.strip():
        yield part.strip()


def _text(value: Any) -> str:
    if isinstance(value, tuple):
        return f"({', '.join(map(_text, value))})"
    return str(value)


def _value(text: str, default: Any) -> Any:
    """An option from its text; its type is that of the default."""
    if isinstance(default, tuple):
        return tuple(_value(item, default[0]) for item in _split(text.strip("()")))
    if isinstance(default, Device):
        return Device.parse(text)
    return type(default)(text)


AfterPass = Callable[[Pass, Graph, float], None]


@record(frozen=True)
class PassManager:
    """Runs passes one after the other; ``after`` gets each pass, its graph and milliseconds."""

    passes: tuple[Pass, ...]
    after: Sequence[AfterPass] = ()

    def run(self, graph: Graph) -> Graph:
        for step in self.passes:
            start = time.perf_counter()
            graph = step.run(graph)
            elapsed = (time.perf_counter() - start) * 1e3
            for observe in self.after:
                observe(step, graph, elapsed)
        return graph
