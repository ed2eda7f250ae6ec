"""What the names of ``weft`` mean, by NumPy and Python alone: control flow is Python's, a batch is
a loop, and a derivative is a difference of fourth order along each element.

A difference sees what a gradient must not: through ``stop_gradient``, a gradient that the user
wrote, and what a variable was assigned. So what those gave at the place of a derivative is written
down, and read again beside it; variables and random numbers are put back as they were
there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np

import weft

STEP = 2e-3
_WEIGHTS = ((1, 8), (-1, -8), (2, -1), (-2, 1))  # of steps, in twelfths of one


class UnclearError(Exception):
    """Where there is no derivative, or a round that never is cannot tell what it would give."""


class Variable:
    """A variable as ``weft.Variable``, but of this run alone. Its state stops gradients."""

    def __init__(self, value: Any, logged: Callable[[Callable[[], Any]], Any]) -> None:
        self.value, self._logged = np.asarray(value), logged

    def assign(self, value: Any) -> None:
        self.value = np.asarray(value, self.value.dtype)

    def assign_add(self, value: Any) -> None:
        self.assign(self.value + value)

    def numpy(self) -> Any:
        return self.value

    def __mul__(self, other: Any) -> Any:
        return self._logged(lambda: self.value) * other

    def __getitem__(self, at: Any) -> Any:
        return self._logged(lambda: self.value)[at]


class Generator:
    """Weft's stream of random numbers, which can be put back to an earlier place."""

    def __init__(self, seed: int) -> None:
        self.seed, self.value = seed, ()  # the draws so far
        self.known: dict[tuple[Any, ...], Any] = {}
        self.live, self.at = weft.random.default_rng(seed), ()

    def _draw(self, name: str, *args: Any) -> Any:
        before, self.value = self.value, (*self.value, (name, *args))
        if self.value not in self.known:
            if self.at != before:
                self.live = weft.random.default_rng(self.seed)
                for one, *rest in before:
                    getattr(self.live, one)(*rest)
            self.known[self.value] = getattr(self.live, name)(*args)
            self.at = self.value
        return self.known[self.value]

    def normal(self, *args: Any) -> Any:
        return self._draw("normal", *args)

    def random(self, *args: Any) -> Any:
        return self._draw("random", *args)


class Reference:
    """The names of ``weft`` for one run of a program, whose steps are ``step`` wide."""

    def __init__(self, step: float = STEP) -> None:
        self.step = step
        self.logs: list[tuple[list[Any], Iterator[Any] | None]] = []
        self.states: list[Any] = []
        self.random = SimpleNamespace(default_rng=lambda seed: self._kept(Generator(seed)))

    def _kept(self, thing: Any) -> Any:
        self.states.append(thing)
        return thing

    def Variable(self, value: Any) -> Variable:  # noqa: N802  # as in weft
        return self._kept(Variable(value, self.logged))  # type: ignore[no-any-return]

    # -- control flow ---------------------------------------------------------------------------

    def cond(self, p: Any, t: Any, f: Any, *ops: Any) -> Any:
        return t(*ops) if p else f(*ops)

    def while_loop(self, cond: Any, body: Any, init: Any, max_iterations: Any = None) -> Any:
        most = math.inf if max_iterations is None else max_iterations
        while most > 0 and cond(init):
            init, most = body(init), most - 1
        return init

    def fori_loop(self, lo: Any, hi: Any, body: Any, init: Any, max_iterations: Any = None) -> Any:
        for at in range(lo, hi):
            init = body(at, init)
        return init

    def scan(self, f: Any, init: Any, xs: Any = None, length: Any = None,
             reverse: bool = False) -> Any:
        count = length if xs is None else len(weft.tree.leaves(xs)[0])
        if count == 0:  # a round tells what there would have been rows of
            before = [each.value for each in self.states]
            try:
                row = f(init, None)[1]
            except ValueError:
                raise UnclearError from None
            self._restore(before)
            return init, weft.tree.map(lambda x: np.zeros((0, *np.shape(x)), np.asarray(x).dtype),
                                       row)
        rows: list[Any] = [None] * count
        for at in (range(count)[::-1] if reverse else range(count)):
            init, rows[at] = f(init, weft.tree.map(lambda x, at=at: x[at], xs))
        return init, _stacked(rows)

    # -- transforms -----------------------------------------------------------------------------

    def vmap(self, f: Any, in_axes: Any = 0, out_axes: Any = 0) -> Any:
        def mapped(*args: Any) -> Any:
            axes = in_axes if isinstance(in_axes, tuple) else (in_axes,) * len(args)
            count = next(np.shape(x)[a] for x, a in zip(args, axes, strict=True) if a is not None)
            rows = [f(*(x if a is None else np.take(x, at, a)
                        for x, a in zip(args, axes, strict=True))) for at in range(count)]
            return weft.tree.map(lambda x: np.moveaxis(x, 0, out_axes), _stacked(rows))

        return mapped

    def remat(self, f: Any) -> Any:
        return f

    def stop_gradient(self, x: Any) -> Any:
        return self.logged(lambda: x)

    def custom_vjp(self, f: Any) -> Custom:
        return Custom(self, f)

    def jvp(self, f: Any, primals: Any, tangents: Any) -> Any:
        moved = [[x + weight * self.step * d for x, d in zip(primals, tangents, strict=True)]
                 for weight, _ in _WEIGHTS]
        out, found = self._beside(f, primals, moved)
        return out, weft.tree.map(lambda here, *parts: self._slope(here, parts), out, *found)

    def grad(self, f: Any, argnums: Any = 0) -> Any:
        return lambda *args: self.value_and_grad(f, argnums)(*args)[1]

    def value_and_grad(self, f: Any, argnums: Any = 0) -> Any:
        def both(*args: Any) -> Any:
            numbers = argnums if isinstance(argnums, tuple) else (argnums,)
            out, found = self._gradients(f, args, numbers)
            return out, tuple(found) if isinstance(argnums, tuple) else found[0]

        return both

    def vjp(self, f: Any, *primals: Any) -> Any:
        before = [each.value for each in self.states]
        out = f(*primals)

        def pull(ct: Any) -> Any:
            after = [each.value for each in self.states]
            self._restore(before)
            found = self._gradients(
                lambda *args: np.sum(np.asarray(f(*args)) * ct), primals, range(len(primals)))[1]
            self._restore(after)
            return tuple(found)

        return out, pull

    def _gradients(self, f: Any, args: Any, numbers: Any) -> tuple[Any, list[Any]]:
        """The value, and dL/dx - i dL/dy for each element of the arguments ``numbers``."""
        moved, places = [], []
        for at in numbers:
            x = np.asarray(args[at])
            for place in np.ndindex(x.shape):
                for unit in ((1, 1j) if np.iscomplexobj(x) else (1,)):
                    places.append((at, place, unit))
                    for weight, _ in _WEIGHTS:
                        other = x.copy()
                        other[place] += weight * self.step * unit
                        moved.append([*args[:at], other[()], *args[at + 1:]])
        out, found = self._beside(f, args, moved)
        made = {at: np.zeros(np.shape(args[at]), np.result_type(args[at], np.float64))
                for at in numbers}
        for number, (at, place, unit) in enumerate(places):
            slope = self._slope(out, found[4 * number:4 * number + 4])
            made[at][place] += slope * np.conj(unit)
        return out, [made[at][()] for at in numbers]

    def _slope(self, here: Any, parts: Any) -> Any:
        slope = self._straight(parts)
        # What bends at the place, as the larger of two equal numbers does, has a slope on each
        # side; the second difference of it grows as the step does, else as its square.
        near, other, far, last = (np.asarray(x, np.result_type(x, float)) - here for x in parts)
        bend = np.abs(near + other)
        if np.any((bend > 0.05 * self.step * (1 + np.abs(slope)))
                  & (np.abs(far + last) < 2.8 * bend)):
            raise UnclearError
        return slope

    def _straight(self, parts: Any) -> Any:
        return sum(weight * np.asarray(x, np.result_type(x, float)) for x, (_, weight) in zip(
            parts, _WEIGHTS, strict=True)) / (12 * self.step)

    def _beside(self, f: Any, args: Any, moved: Any) -> tuple[Any, list[Any]]:
        """The function at a place, and at those beside it."""
        before = [each.value for each in self.states]
        log: list[Any] = []
        out = self._within((log, None), f, args)
        after = [each.value for each in self.states]
        found = []
        for each in moved:
            self._restore(before)
            reader = iter(log)
            found.append(self._within((log, reader), f, each))
            if next(reader, log) is not log:  # another way than at the place
                raise UnclearError
        self._restore(after)
        return out, found

    def _restore(self, values: list[Any]) -> None:
        del self.states[len(values):]
        for each, value in zip(self.states, values, strict=True):
            each.value = value

    def _within(self, log: tuple[list[Any], Iterator[Any] | None], f: Any, args: Any) -> Any:
        self.logs.append(log)
        try:
            return f(*args)
        finally:
            self.logs.pop()

    def logged(self, first: Callable[[], Any]) -> Any:
        """A value that is written down where a derivative is taken, and read beside there."""
        read = [next(reader) for _, reader in self.logs if reader is not None]
        made = first()
        if read:
            if np.shape(read[0]) != np.shape(made):  # another way than at the place
                raise UnclearError
            made = read[0]
        for log, reader in self.logs:
            if reader is None:
                log.append(made)
        return made


class Custom:
    """An elementwise function of one argument with a gradient of its own: beside the place of a
    derivative it is the line that this says. In derivatives of derivatives it is itself."""

    def __init__(self, within: Reference, f: Any) -> None:
        self.within, self.f = within, f

    def defvjp(self, fwd: Any, bwd: Any) -> None:
        self.fwd, self.bwd = fwd, bwd

    def __call__(self, x: Any) -> Any:
        if len(self.within.logs) != 1:
            return self.f(x)

        def first() -> Any:
            y, saved = self.fwd(x)
            return x, y, self.bwd(saved, np.ones_like(y))[0]

        at, y, slope = self.within.logged(first)
        return y + slope * (x - at)


def _stacked(rows: list[Any]) -> Any:
    if not rows or rows[0] is None:
        return None
    return weft.tree.map(lambda *parts: np.stack(parts), *rows)
