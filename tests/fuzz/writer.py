"""Draws a program step by step, and runs it in NumPy as it grows.

Each value is held for two sets of sizes, so shapes, dtypes and what fits what are read off arrays
instead of being predicted. A step that raises, or that makes too much, is dropped.

The *tag* of a value says what may be done with it: ``exact`` values have NumPy's bits; of ``loose``
ones the signs of zeros may not be certain (a maximum of two zeros); ``close`` ones are right up to
rounding, so nothing that jumps (comparison, rounding, index) is applied.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from . import prelude
from .data import COMPUTED, kind_of
from .program import Close, Inner, Step

TAGS = ("exact", "loose", "close")
StepMaker = Callable[["Writer"], Any]
_PRODUCTS = re.compile(r"\*[ =*]|/|square|abs\(|absolute|reciprocal|multiply|divide|power|sign\(|"
                       r"prod|sqrt|matmul|matvec|vecmat|dot|angle|vecdot|hypot|nested")


@dataclass(frozen=True)
class Value:
    """A value under construction."""

    name: str
    samples: tuple[Any, ...]
    tag: str = "exact"
    source: str = "step"  # or how an argument was drawn: index, count, ...

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.asarray(self.samples[0]).dtype

    @property
    def kind(self) -> str:
        return kind_of(self.dtype)

    @property
    def rank(self) -> int:
        return np.ndim(self.samples[0])

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        return tuple(np.shape(sample) for sample in self.samples)

    @property
    def shape(self) -> tuple[int, ...]:
        return np.shape(self.samples[0])

    @property
    def static(self) -> bool:
        """Whether no size is symbolic, as far as the samples tell."""
        return len(set(self.shapes)) == 1

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Family:
    """A kind of step that can be drawn."""

    feature: str
    weight: int
    smooth: bool
    make: StepMaker


FAMILIES: list[Family] = []


def step(feature: str, weight: int = 2, smooth: bool = False) -> Callable[[StepMaker], StepMaker]:
    """Register a function that appends a step to a writer, or returns None where none fits."""
    def register(make: StepMaker) -> StepMaker:
        FAMILIES.append(Family(feature, weight, smooth, make))
        return make

    return register


def broadcastable(shapes: Sequence[tuple[int, ...]]) -> bool:
    try:
        np.broadcast_shapes(*shapes)
    except ValueError:
        return False
    return True


def _multiplies(made: Step, values: Sequence[Value]) -> bool:
    """Whether complex numbers are multiplied, or what is made of products: absolute values."""
    return any(value.kind == "c" for value in values) and bool(_PRODUCTS.search(made.template))


class Writer:
    """The steps of one function, as they are drawn."""

    def __init__(self, rng: random.Random, values: Sequence[Value], *, prefix: str = "v",
                 smooth: bool = False, limit: int = 4000, depth: int = 0,
                 more: Callable[[str, Sequence[int | str], str], Value | None] | None = None,
                 symbols: Sequence[str] = (), sizes: Sequence[dict[str, int]] = ({}, {})) -> None:
        self.rng, self.values, self.prefix = rng, list(values), prefix
        self.smooth, self.limit, self.depth = smooth, limit, depth
        self.more, self.symbols, self.sizes = more, symbols, sizes
        self.steps: list[Step] = []
        self.inners: list[Inner] = []
        self.variables: dict[str, Any] = {}
        count = len(self.values[0].samples)
        self.spaces: list[dict[str, Any]] = [
            {**prelude.scope(), **{value.name: value.samples[at] for value in self.values}}
            for at in range(count)]
        self.families = [family for family in FAMILIES if family.smooth or not smooth]
        self.weights = [family.weight for family in self.families]

    # -- choosing -------------------------------------------------------------------------------

    def one(self, options: Sequence[Any]) -> Any:
        return options[self.rng.randrange(len(options))]

    def yes(self, chance: float = 0.5) -> bool:
        return self.rng.random() < chance

    def pick(self, accept: Callable[[Value], bool] = lambda value: True) -> Value | None:
        """One of the values that are accepted, the newest ones most often."""
        found = [value for value in reversed(self.values) if accept(value)]
        return found[min(int(self.rng.expovariate(0.4)), len(found) - 1)] if found else None

    def certain(self, accept: Callable[[Value], bool] = lambda value: True) -> Value | None:
        """One that may be compared, rounded or used as an index."""
        return self.pick(lambda value: value.tag != "close" and accept(value))

    def array(self, accept: Callable[[Value], bool] = lambda value: True) -> Value | None:
        """One with axes."""
        return self.pick(lambda value: value.rank > 0 and accept(value))

    def partner(self, x: Value, accept: Callable[[Value], bool] = lambda value: True,
                constants: bool = True) -> Any:
        """Something to combine with x: a value that broadcasts with it, or a constant's text."""
        if constants and self.yes(0.25):
            return self.constant(x)
        other = self.pick(lambda value: accept(value) and all(
            map(broadcastable, zip(x.shapes, value.shapes, strict=True))))
        return other if other is not None else self.constant(x) if constants else x

    def constant(self, x: Value) -> str:
        """Text of a number beside a value of x's dtype: Python's, NumPy's, now and then huge."""
        if self.smooth:
            return str(self.one(("0.5", "1.5", "2", "0.25")))
        if x.kind == "b":
            return str(self.one(("True", "False", "np.bool_(True)", "1", "2.5")))
        if x.kind == "c" and self.yes():
            return str(self.one(("1j", "(0.5-2j)", "np.complex64(1+1j)", "np.complex128(2j)")))
        if x.kind in "fc":
            return str(self.one(("2", "0.5", "3", "-1", "1.5", "np.float32(0.75)", "0",
                                 "np.float64(1.25)", "True", "-0.0", "np.inf", "np.nan", "1e-3")))
        names = ("np.int32(3)", "np.int64(2)", "np.uint32(7)", "np.float32(1.5)", "2.5", "True")
        return str(self.one(("2", "3", "1", "5", "0", "7", *names,
                             *(("-1", "-3") if x.kind == "i" else ()),
                             *(("2**31", "-2**31", "2**40", "300", "-1", "2**63")
                               if self.yes(0.1) else ()))))

    def axis(self, x: Value, lowest: int = 1) -> int | None:
        """An axis of x, counted from either side, of at least ``lowest`` elements."""
        found = [at for at in range(x.rank) if all(s[at] >= lowest for s in x.shapes)]
        if not found:
            return None
        at = int(self.one(found))
        return at - x.rank if self.yes(0.3) else at

    def argument(self, dtype: str, dims: Sequence[int | str], kind: str) -> Value | None:
        """A new argument, where the function may still have one."""
        value = self.more(dtype, dims, kind) if self.more is not None else None
        if value is not None:
            self.values.append(value)
            for space, sample in zip(self.spaces, value.samples, strict=True):
                space[value.name] = sample
        return value

    # -- appending ------------------------------------------------------------------------------

    def emit(self, feature: str, expression: str, *operands: Any, close: Close | None = None,
             tag: str = "exact") -> Value | None:
        """``out = expression``."""
        return self.write(feature, "{out} = " + expression, *operands, close=close, tag=tag)

    def write(self, feature: str, template: str, *operands: Any, close: Close | None = None,
              tag: str = "exact", options: tuple[str, ...] = ()) -> Value | None:
        """Append a step, if NumPy computes it for all samples."""
        used = [x for x in operands if isinstance(x, Value)]
        places = iter(range(len(used)))  # constants become text, so values are numbered anew
        template = template.replace("{out}", "{{out}}").format(*(
            f"{{{next(places)}}}" if isinstance(x, Value) else x for x in operands))
        out = f"{self.prefix}{len(self.steps)}" if "{out}" in template else ""
        made = Step(feature, template, out, tuple(str(x) for x in used), close, options)
        samples = self._run(made)
        if samples is None:
            return None
        if close is None and _multiplies(made, [*used, Value("", samples)]):
            made = replace(made, close=("complex", 8))
            close = made.close
        self.steps.append(made)
        worst = max((TAGS.index(value.tag) for value in used), default=0)
        kind = close[0] if close else ""
        given = {"": tag, "cast": tag, "zero": "loose"}.get(kind, "close")
        value = Value(out, samples, TAGS[max(worst, TAGS.index(given))])
        if out:
            for space, sample in zip(self.spaces, samples, strict=True):
                space[out] = sample
            self.values.append(value)
        return value

    def _run(self, made: Step) -> tuple[Any, ...] | None:
        code, samples = compile(made.text(False), "<drawn>", "exec"), []
        for space in self.spaces:
            scope = dict(space)
            try:
                exec(code, scope)
            except (ValueError, IndexError, TypeError, OverflowError, ZeroDivisionError,
                    AttributeError, MemoryError, RuntimeError, SystemError):
                return None
            result = scope[made.out] if made.out else 0
            if not isinstance(result, (np.ndarray, np.generic, bool, int, float)):
                return None
            if np.size(result) > self.limit or np.ndim(result) > 4:
                return None
            if np.asarray(result).dtype not in COMPUTED:
                return None
            samples.append(result)
        # np.squeeze of a size that is 1 in one sample only: no program has such a value.
        return tuple(samples) if len(set(map(np.ndim, samples))) == 1 else None

    def draw(self, count: int) -> None:
        """About ``count`` steps."""
        for _ in range(8 * count):
            if len(self.steps) >= count:
                break
            (family,) = self.rng.choices(self.families, self.weights)
            family.make(self)

    def inner(self, values: Sequence[Value]) -> Inner | None:
        """A function of values like these, drawn by a writer of its own, and a sample of it."""
        name = f"g{len(self.inners)}"
        params = [replace(value, name=f"a{at}") for at, value in enumerate(values)]
        writer = Writer(self.rng, params, prefix="b", smooth=self.smooth, limit=self.limit,
                        depth=self.depth + 1)
        writer.families = self.families
        writer.weights = self.weights
        writer.variables = self.variables  # of all functions; the outermost one makes them
        for own, outer in zip(writer.spaces, self.spaces, strict=True):
            own |= {held: outer[held] for held in self.variables}
        writer.draw(self.rng.randint(1, 4))
        made = [value for value in writer.values[len(params):] if value.name]
        if not made:
            return None
        return Inner(name, tuple(value.name for value in params), tuple(writer.steps),
                     self.one(made[-2:]).name)
