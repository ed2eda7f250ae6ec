"""What Python or NumPy asks of a traced array and is not known before the function runs: its
truth, a number, a size, a plain array. Each is refused with what to write instead; ``rewriting``
looks at these errors to find what has to become control flow of the program."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from ....ir.diagnose import Error, error
from ...face.source import assigns_item, is_internal, scipy_call, user_loc, who_asks
from ..arrays.array import TracedArray
from ..subclasses import makes_masked, of_class
from .drawn import refused_draw
from .numbers import numbers_behind
from .rewrites import rewrite_of, truth_hint
from .shown import check_rounds, shown_class


class Unknown(TracedArray):
    """A traced array, as far as it refuses to be a number."""

    __slots__ = ()

    def _no_number(self, what: str, hint: str = "", truth: bool = False) -> Error:
        if not self._ctx.alive:
            return self._leaked()
        problem = refused_draw(made_here=bool(self.ndim))
        if problem is None:
            name, locs = scipy_call() or ("", user_loc())
            by_host = ("have the host run that: weft.host_call(function, 'f64[n]', x), where "
                       "'f64[n]' is the type of the result")
            known = f"{what}, which {name} asks for," if name else what
            problem = error(
                "W201", f"{self.name} is traced: {known} is not known before the function runs",
                locs=locs, types=[self.type], hint=by_host if name else self._ctx.by_source(
                    hint or self._or_static("compute with NumPy functions")))
            self._ctx.asked.behind(problem, numbers_behind(self._ctx, self.value), truth,
                                   outside=not self._ctx.nested)
        return self._refused(problem)

    @property
    def is_parameter(self) -> bool:
        """True for a number among the arguments, which can be a static one; arrays cannot."""
        return self.argument is True and self.weak

    def _or_static(self, hint: str) -> str:
        return f"name the argument in static_argnames, or {hint}" if self.is_parameter else hint

    def _refused(self, problem: Error) -> Error:
        """The error, kept with the trace: NumPy may raise a less telling one in its place."""
        self._ctx.refused = problem
        return problem

    def __bool__(self) -> bool:
        raise self._no_number("its truth value", self._or_static(
            self._ctx.in_function(truth_hint(user_loc()))), truth=True)

    def __hash__(self) -> int:
        """Of what a graph names, a key of a feed_dict; elsewhere equal numbers would be different
        keys. Raises TracerError (W201)."""
        if self._ctx.endless or not self._ctx.alive or is_internal(
                who_asks(sys._getframe(1))):
            return object.__hash__(self)
        raise self.no_key()

    def no_key(self) -> Error:
        return self._no_number("its place in a dict or a set", self._or_static(
            "use an array as a table (seen = np.zeros(n, bool); seen[x] = True), np.isin(x, items) "
            "or np.unique(x, return_counts=True)"))

    def no_text(self, what: str) -> Error:
        """For who asks for the text itself: an integer argument is better a static one."""
        return self._no_number(what, self._or_static(
            "return the value, and make the text of what the function has returned"), truth=True)

    def _classed(self) -> None:
        """C code asks for the class, which may be ``isinstance`` as a value: rewritten code has a
        function of ours in its place. The trace ends first: C code may overlook errors."""
        ctx = self._ctx
        while ctx.parent is not None:
            ctx = ctx.parent
        if ctx.classed is not None:
            return
        locs = user_loc()
        if locs and not locs[0].source:  # code without source is not rewritten
            ctx.classed = error(
                "W201", f"{self.name} is traced: isinstance is handed on as a value, which asks "
                        "for its class", locs=locs, types=[self.type],
                hint="write isinstance(x, kind) as a call, or in a lambda")

    def __int__(self) -> int:
        raise self._no_number("its int value", self._or_static("convert with x.astype(np.int64)"))

    def __float__(self) -> float:
        if assigns_item():
            raise self._stored()
        raise self._no_number("its float value", "use NumPy functions (np.sqrt, not math.sqrt), "
                              "or convert with x.astype(np.float64)")

    def __round__(self, digits: int | None = None) -> Any:
        check_rounds(shown_class(self))
        if digits is None:
            raise self._no_number("its rounded value", "use np.rint(x)")
        return np.round(self, digits)

    def __complex__(self) -> complex:
        raise self._no_number("its complex value")

    def __trunc__(self) -> int:
        raise self._no_number("its int value", "use np.trunc(x)")

    def __index__(self) -> int:
        choice = rewrite_of(user_loc())
        raise self._no_number("an index or a size", self._ctx.by_numpy(
            "name the argument in static_argnames" if self.is_parameter else
            f"write {choice}" if choice else
            "take sizes from the shapes of arrays, or pass the number as a static argument"))

    def __contains__(self, item: Any) -> bool:
        raise self._no_number("whether it contains something", "use np.any(x == item)")

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        if assigns_item():
            raise self._stored()
        if makes_masked(sys._getframe(1)):
            raise self._refused(of_class(np.ma.MaskedArray))
        raise self._no_number("a plain array of it", self._ctx.by_numpy(self._plain_hint()))

    def _plain_hint(self) -> str:
        if self.is_parameter:
            return ("name the argument in static_argnames where it is a count, a shift or a width; "
                    "index a plain table by np.array(table)[i]; put a list into np.array([x, y]) "
                    "first")
        return ("index a plain table by np.array(table)[i]; put a list into np.array([x, y]) "
                "first; np.asarray(x) of one value is not needed; or use a NumPy function that "
                "traces")

    def _stored(self) -> Error:
        problem = error(
            "W203", f"{self.name} is traced and cannot be stored into a plain array",
            locs=user_loc(), types=[self.type],
            hint=self._ctx.by_source(self._ctx.by_numpy(
                "arrays made in the traced function can hold it: copy this one there first, own = "
                "np.array(y)")))
        return self._refused(problem)
