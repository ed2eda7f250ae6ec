"""Texts that are made when the program runs, of values that are not known before.

    text = f"at most {x.max():.3f}"      a LateText: of x.max(), and what to do with that
    print(text)                          the host makes the text, and prints it
    return {"told": text}                so does who called the function, of what the program gives
    raise ValueError(text)               so does who raises it
    table[text]                          asks for the text itself: W201, or the integer arguments
                                         that it is made of become static

A function and its arguments are kept (``Call``), and called with the values in the end: so every
text is to the letter what Python and NumPy make of them.
"""

from __future__ import annotations

import io
import operator
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import FunctionType, MethodType
from typing import Any, NoReturn

import numpy as np

from ...ir.diagnose import Error, error
from ...ir.loc import Loc
from ...ir.record import record
from ..face import tree
from ..face.kinds import MADE
from ..face.source import is_internal, user_loc
from .arrays.buffer import Buffer
from .arrays.chosen import Chosen
from .arrays.filtered import Listed
from .arrays.found import found
from .arrays.maybe import is_maybe
from .arrays.selection import Selection
from .arrays.variable import Variable
from .context.recorder import ACTIVE, TraceContext
from .spec import Spec
from .values.asking import asks_class
from .values.numbers import numbers_behind
from .values.texts import asked, filled, writing
from .values.tracer import Tracer

_DEPTH, _PARTS = 8, 1 << 12  # how far down an object is asked for traced values, and how many
_SIMPLE = frozenset({str, int, float, bool, complex, bytes, type(None)})
_PLAIN = (str, bytes, int, float, complex, np.generic, np.dtype, type, FunctionType, MethodType,
          io.IOBase, type(len), type(io), type(None))
# Methods of texts that give texts, whatever these say.
GIVE_TEXTS = frozenset({
    "capitalize", "casefold", "center", "expandtabs", "format", "format_map", "join", "ljust",
    "lower", "lstrip", "removeprefix", "removesuffix", "replace", "rjust", "rstrip", "strip",
    "swapcase", "title", "translate", "upper", "zfill"})


@record(frozen=True)
class Nest:
    """A nest of values and of what is known; ``kinds`` says of each value whether Python has a
    number of its own there, a scalar of NumPy's, an array or a list."""

    structure: tree.TreeDef
    kinds: tuple[str, ...]

    def of(self, values: Sequence[Any]) -> Any:
        """The nest with plain values."""
        return tree.unflatten(self.structure, [
            _shown(kind, value) for kind, value in zip(self.kinds, values, strict=True)])

    def described(self, values: Sequence[Any]) -> Any:
        """The nest with names for the values."""
        return tree.unflatten(self.structure, [_Name(value.value.name) for value in values])


@record(frozen=True)
class Call:
    """A function whose arguments are a nest, ``(args, options)``; ``shown`` has what traced code
    has asked NumPy for, with ``np.printoptions``, of how arrays are shown."""

    function: Callable[..., str]
    nest: Nest
    shown: tuple[tuple[str, Any], ...] = ()

    def text(self, values: Sequence[Any]) -> str:
        args, options = self.nest.of(values)
        if not self.shown:
            return self.function(*args, **options)
        with np.printoptions(**dict(self.shown)):
            return self.function(*args, **options)


class LateText:
    """A text of values that are not known yet; see the module docstring. It is no ``str``: C code
    that needs one says so."""

    __slots__ = ("call", "operands")
    by_values = True

    def __init__(self, call: Call, operands: Sequence[Tracer]) -> None:
        self.call, self.operands = call, tuple(operands)

    @property  # type: ignore[misc]  # it is not for setting
    def __class__(self) -> type:
        """For ``isinstance(text, str)``."""
        frame = sys._getframe(1)
        ours = is_internal(frame)
        return str if not ours and asks_class(frame) else type(self)

    def described(self) -> str:
        """The text with the names of values in their places."""
        try:
            args, options = self.call.nest.described(self.operands)
            return self.call.function(*args, **options)
        except Exception:  # whatever a function does that gets no numbers
            return "{" + ", ".join(each.value.name for each in self.operands) + "}"

    @property
    def ctx(self) -> Any:
        return self.operands[0].ctx

    # -- what gives texts -----------------------------------------------------------------------

    def __add__(self, other: Any) -> Any:
        return late(operator.add, self, other) if is_text(other) else NotImplemented

    def __radd__(self, other: Any) -> Any:
        return late(operator.add, other, self) if is_text(other) else NotImplemented

    def __mul__(self, count: Any) -> Any:
        return late(operator.mul, self, count)

    __rmul__ = __mul__

    def __mod__(self, values: Any) -> Any:
        return late(operator.mod, self, values)

    def __getitem__(self, index: Any) -> Any:
        return late(operator.getitem, self, index) if isinstance(index, slice) else (
            self._refuse("one of its characters"))

    def __getattr__(self, name: str) -> Any:
        if name in GIVE_TEXTS:
            method = getattr(str, name)
            return lambda *args, **options: late(method, self, *args, **options)
        if name.startswith("__") or not hasattr(str, name):
            raise AttributeError(f"'str' object has no attribute {name!r}")
        return lambda *_, **__: self._refuse(f"its method {name}")

    # -- who asks for the text itself -----------------------------------------------------------

    def _asked(self, written: Callable[[Any], str]) -> str:
        made = asked(self, written)
        return self._refuse("what asks for it here") if made is None else made

    def __str__(self) -> str:
        return self._asked(str)

    def __repr__(self) -> str:
        return self._asked(repr)

    def __format__(self, spec: str) -> str:
        return self._asked(lambda value: format(value, spec))

    def refused(self, what: str, locs: tuple[Loc, ...] = ()) -> Error:
        """The error for who asks (W201): integer arguments that the text is made of can become
        static, and then it is known."""
        static = all(each.is_parameter for each in self.operands)
        types = [each.type for each in self.operands]
        problem = error(
            "W201", f"the text {self.described()!r} is not known before the function runs: {what} "
                    "needs it", locs=locs or user_loc(), types=types,
            hint="name the argument in static_argnames" if static else
            "return the values, and make the text of what the function has returned")
        behind = [numbers_behind(each.ctx, each.value) for each in self.operands]
        self.ctx.asked.behind(
            problem, frozenset().union(*behind) if all(behind) else frozenset(), truth=True)
        return problem

    def given(self) -> None:
        """It is made here, or an argument: if a function that needs a text fails, this is why."""
        self.ctx.root.text = self, user_loc()

    def _refuse(self, what: str) -> NoReturn:
        raise self.refused(what)

    def __eq__(self, other: object) -> Any:
        return self._refuse("comparing it") if is_text(other) else NotImplemented

    def __ne__(self, other: object) -> Any:
        return self._refuse("comparing it") if is_text(other) else NotImplemented

    def __lt__(self, other: object) -> Any:
        return self._refuse("comparing it")

    __le__ = __gt__ = __ge__ = __lt__

    def __hash__(self) -> int:
        return self._refuse("its place in a dict or a set")

    def __len__(self) -> int:
        return self._refuse("its length")

    def __bool__(self) -> bool:
        return self._refuse("whether it is empty")

    def __iter__(self) -> Any:
        return self._refuse("a loop over its characters")

    def __contains__(self, other: object) -> bool:
        return self._refuse("looking into it")

    def __int__(self) -> int:
        return self._refuse("int()")

    def __float__(self) -> float:
        return self._refuse("float()")

    def __index__(self) -> int:
        return self._refuse("an index")

    def __fspath__(self) -> str:
        return self._refuse("the name of a file")

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return self._refuse("an array of it")


def _flat(text: LateText) -> tuple[tuple[Tracer, ...], Call]:
    return text.operands, text.call


def _together(call: Call, values: Sequence[Any]) -> Any:
    """With traced values the text waits on; of the types of values there is no text either."""
    if any(isinstance(value, (Tracer, Variable)) for value in values):
        return LateText(call, values)
    if any(isinstance(value, _Name) for value in values):
        args, options = tree.unflatten(call.nest.structure, [*values])
        return call.function(*args, **options)
    return str if any(isinstance(value, Spec) for value in values) else call.text(values)


tree.register(LateText, _flat, _together)


class _Name:
    """Stands for a value in a text that is described, whatever its form is to be."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"{{{self.name.removesuffix(':0')}}}"

    def __format__(self, spec: str) -> str:
        return repr(self)


class _Said:
    """An object of a class of the user's, as its class writes it."""

    __slots__ = ("formless", "text", "written")

    def __init__(self, formless: str, text: Any, written: Any) -> None:
        self.formless = formless  # the name of a class without formats of its own
        self.text, self.written = text, written

    def __str__(self) -> str:
        return str(self.text)

    def __repr__(self) -> str:
        return str(self.written)

    def __format__(self, spec: str) -> str:
        if spec and self.formless:
            raise TypeError(f"unsupported format string passed to {self.formless}.__format__")
        return format(str(self.text), spec)


tree.register(_Said, lambda said: ((said.text, said.written), said.formless),
              lambda formless, parts: _Said(formless, *parts))


def is_text(x: Any) -> bool:
    """Whether a value is a text, known or not."""
    return isinstance(x, (str, LateText))


def late(function: Callable[..., str], *args: Any, **options: Any) -> Any:
    """``function(*args, **options)``, a text; a LateText where an argument holds traced values."""
    ctx = ACTIVE.get()
    if ctx is None or not holds((args, options)):
        return function(*args, **options)
    operands, nest = taken(ctx, (args, options), lambda thing: _as_said(ctx, thing))
    if not operands:
        return function(*args, **options)
    before = ctx.root.print_options
    shown = tuple([(name, value) for name, value in np.get_printoptions().items()
                   if before.get(name) != value])
    made = LateText(Call(function, nest, shown), operands)
    made.given()
    return made


def holds(x: Any) -> bool:
    """Whether a value, or what it is made of, is traced; asked are so many parts of it."""
    seen: set[int] = set()
    level = [x]
    for _ in range(_DEPTH):
        below: list[Any] = []
        for each in level:
            if type(each) in _SIMPLE or id(each) in seen:
                continue
            if is_late(each):
                return True
            seen.add(id(each))
            if len(seen) < _PARTS:
                below += _parts(each)
        level = below
    return False


def is_late(x: Any) -> bool:
    """Whether a value's text is made when the program runs."""
    kind = type(x)
    return issubclass(kind, (Tracer, LateText, Chosen)) or is_maybe(x) or (
        issubclass(kind, Buffer) and bool(x.is_traced))


def _parts(x: Any) -> Iterable[Any]:
    kind = type(x)
    if issubclass(kind, (list, tuple, set, frozenset, deque)):
        return x  # type: ignore[no-any-return]
    if issubclass(kind, dict):
        return x.values()  # type: ignore[no-any-return]
    if issubclass(kind, (*_PLAIN, np.ndarray, Variable)):
        return ()
    slots = [name for each in kind.__mro__ for name in vars(each).get("__slots__", ())]
    parts = [*getattr(x, "__dict__", {}).values(), *(getattr(x, name, None) for name in slots)]
    return [*parts, *x.args] if isinstance(x, BaseException) else parts


def taken(
    ctx: TraceContext, nest: Any, thing: Callable[[Any], Any] = lambda thing: thing,
    arrays: bool = False,
) -> tuple[list[Tracer], Nest]:
    """A nest as it is now: its traced values, and the rest, of which ``thing`` makes something of
    objects. With ``arrays``, those that the function closes over are values, too, as they are read
    when it runs."""
    nest = tree.map(lambda leaf: _leaf(ctx, leaf, thing, arrays), nest)
    leaves, structure = tree.flatten(nest)
    traced = [leaf for leaf in leaves if isinstance(leaf, (Tracer, Listed))]
    return [_now(ctx, leaf.array if isinstance(leaf, Listed) else leaf) for leaf in traced], Nest(
        _fixed(structure, iter(leaves)), tuple(map(_kind_of, traced)))


def _kind_of(leaf: Tracer | Listed) -> str:
    if isinstance(leaf, Listed):
        return leaf.kind
    return "number" if leaf.weak else "scalar" if leaf.is_scalar else "array"


def _fixed(structure: tree.TreeDef, leaves: Iterator[Any]) -> tree.TreeDef:
    """The structure, of which known leaves are a part, whatever they are."""
    if structure.kind is None:
        leaf = next(leaves)
        traced = isinstance(leaf, (Tracer, Listed))
        return tree.LEAF if traced else tree.structure(_constant(leaf))
    return tree.TreeDef(structure.kind, structure.meta, tuple(
        [_fixed(child, leaves) for child in structure.children]), structure.key)


def _constant(leaf: Any) -> tree.Static:
    try:
        return tree.Static(leaf)
    except Error:  # it is what it is: no other is like it
        return tree.Static(leaf, (type(leaf), id(leaf)))


def _now(ctx: TraceContext, x: Tracer) -> Tracer:
    """A value that no later write changes."""
    made: Tracer = ctx.apply(
        lambda: Tracer(ctx, ctx.value_of(x), weak=x.weak, argument=x.argument), ())
    made.made = not x.is_scalar
    return made


def _shown(kind: str, value: Any) -> Any:
    if isinstance(value, (Tracer, Variable, _Name)):
        return value
    if kind in MADE:
        return MADE[kind](np.asarray(value))
    if kind == "array":
        return np.asarray(value)
    if not isinstance(value, (np.ndarray, np.generic)):
        return value
    scalar: Any = value
    return scalar.item() if kind == "number" else scalar[()]


def _leaf(ctx: TraceContext, leaf: Any, thing: Callable[[Any], Any], arrays: bool) -> Any:
    """A leaf as one that is taken apart to the values that it holds."""
    if isinstance(leaf, Buffer):
        return leaf.traced() if leaf.is_traced else np.array(leaf)
    if isinstance(leaf, Selection) and leaf.known is not None:
        return leaf.settled()
    if type(leaf) is np.ndarray:
        return ctx.captured(leaf) if arrays else leaf.copy()
    made = found(leaf)
    if made is not None or type(leaf) in _SIMPLE or isinstance(leaf, (Tracer, Variable, *_PLAIN)):
        return leaf if made is None else made
    return thing(leaf)


def said(ctx: TraceContext, thing: Any) -> Any:
    """An object that holds traced values: what its class writes of them."""
    return _as_said(ctx, thing) if holds(thing) else thing


def _as_said(ctx: TraceContext, thing: Any) -> Any:
    kind: Any = type(thing)
    if tree.constant(thing):  # as a slice is
        return thing
    return _Said(kind.__name__ if kind.__format__ is object.__format__ else "",
                 *(_written(ctx, thing, function) for function in (str, repr)))


def _written(ctx: TraceContext, thing: Any, function: Callable[[Any], str]) -> Any:
    """``str(thing)`` or ``repr(thing)``, by its class's own method as it is rewritten."""
    method: Any = getattr(type(thing), f"__{function.__name__}__", None)
    if isinstance(method, FunctionType):
        copy: Any = ctx.as_written(method)
        if copy is not method:
            return copy(thing)
    with writing() as holes:
        text = function(thing)
    return late(filled, text, [late(hole.written, hole.value) for hole in holes])
