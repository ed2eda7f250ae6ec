"""The scalar primitives as Triton expressions on tiles, one line of source each.

``TritonScalars`` is the ``s`` that expansions of composite primitives are called with. A ``Tile``
holds only the tile axes that its value depends on; operands meet by being indexed with ``None``
where they lack an axis (``v2[:, None] + bias[None, :]``), so nothing is computed twice and a
value that depends on no tile axis stays a scalar.

Constants are Python literals where Triton gives a literal the dtype of the other operand, and
``tl.full((), ...)`` elsewhere: an untyped literal is float32. Nothing is fast-math.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType

import numpy as np

from ...ir.record import record
from ...ir.scalar.expand import EXPANSIONS
from ...ir.scalar.half import from_half, to_half
from ...ir.scalar.integer import from_float
from ...ir.scalar.primitives import PRIMITIVES, RAW, result_dtype
from ...ir.types import BF16, BOOL, DTYPES, F16, F32, F64, DType, as_dtype

# Dtypes in registers; in memory a bool is a byte.
TRITON_TYPES = MappingProxyType({
    "bool": "int1", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64", "u8": "uint8",
    "u16": "uint16", "u32": "uint32", "u64": "uint64", "f16": "float16", "bf16": "bfloat16",
    "f32": "float32", "f64": "float64",
})


@record(frozen=True)
class Tile:
    """A value: its variable (or literal), dtype name and the tile axes it has, in tile order."""

    text: str
    dtype: str
    axes: tuple[str, ...] = ()
    literal: bool = False

    @property
    def known(self) -> int | None:
        """The number that an integer constant stands for."""
        return int(self.text) if self.literal and DTYPES[self.dtype].is_int else None


Emit = Callable[["TritonScalars", DType, tuple[Tile, ...]], str]


def _infix(sign: str) -> Emit:
    def emit(s: TritonScalars, dtype: DType, args: tuple[Tile, ...]) -> str:
        left, right = s.operands(*args)
        return f"{left} {sign} {right}"

    return emit


def _compare(sign: str) -> Emit:
    """Comparisons; Triton reads a true int1 as -1, so truth values are widened."""
    def emit(s: TritonScalars, dtype: DType, args: tuple[Tile, ...]) -> str:
        left, right = s.operands(*args)
        if args[0].dtype == "bool" and sign not in ("==", "!="):
            left, right = (f"{s.typed(text)}.to(tl.int32)" for text in s.fitted(*args))
        return f"{left} {sign} {right}"

    return emit


def _call(function: str) -> Emit:
    def emit(s: TritonScalars, dtype: DType, args: tuple[Tile, ...]) -> str:
        return f"{function}({', '.join(map(s.typed, s.fitted(*args)))})"

    return emit


def _by_width(single: Emit, double: Emit) -> Emit:
    def emit(s: TritonScalars, dtype: DType, args: tuple[Tile, ...]) -> str:
        return (single if dtype.bits == 32 else double)(s, dtype, args)

    return emit


def _extreme(word: str, boolean: str) -> Emit:
    """NaN-propagating float min and max; and/or of truth values."""
    def emit(s: TritonScalars, dtype: DType, args: tuple[Tile, ...]) -> str:
        if dtype == BOOL:
            return _infix(boolean)(s, dtype, args)
        left, right = map(s.typed, s.fitted(*args))
        if dtype.is_float:  # hardware orders signed zeros, the CPU takes the second of equal ones
            better = ">" if word == "maximum" else "<"
            return f"tl.where(({left} {better} {right}) | ({left} != {left}), {left}, {right})"
        return f"tl.{word}({left}, {right})"

    return emit


def _negate(s: TritonScalars, dtype: DType, args: tuple[Tile, ...]) -> str:
    # Triton 3.6 has 0 - x for -x, which loses the sign of zero.
    text = s.typed(args[0])
    return f"{text} * -1.0" if dtype.is_float else f"-{text}"


def _not(s: TritonScalars, dtype: DType, args: tuple[Tile, ...]) -> str:
    # Triton 3.6 interprets ~x as x ^ -1, which no unsigned dtype has.
    text = s.typed(args[0])
    return f"{text} ^ {(1 << dtype.bits) - 1}" if dtype.kind == "u" else f"~{text}"


def _fma(s: TritonScalars, dtype: DType, args: tuple[Tile, ...]) -> str:
    # Triton 3.6 makes a literal float32 here, or float64 outside of float32's normal range.
    plain = dtype.bits == 32 and any(not arg.literal for arg in args)

    def text(arg: Tile) -> str:
        keep = plain and arg.literal and _is_normal(arg.text)
        return arg.text if keep else s.typed(arg)

    return f"tl.fma({', '.join(map(text, s.fitted(*args)))})"


def _is_normal(literal: str) -> bool:
    return literal[-1] != ")" and (float(literal) == 0 or abs(float(literal)) >= 2.0**-126)


def _fmod(s: TritonScalars, dtype: DType, args: tuple[Tile, ...]) -> str:
    # Triton's % divides and truncates: off for large quotients. libdevice is exact, in f32 but
    # for denormals; f64 has no such gap and holds every f32 remainder.
    left, right = map(s.typed, s.fitted(*args))
    if dtype.bits == 64:
        return f"libdevice.fmod({left}, {right})"
    return f"libdevice.fmod({left}.to(tl.float64), {right}.to(tl.float64)).to(tl.float32)"


def _floor(s: TritonScalars, dtype: DType, args: tuple[Tile, ...]) -> str:
    # The float32 instruction that Triton picks flushes denormals: floor(-1e-40) would be -0.
    x = s.typed(args[0])
    return f"tl.floor({x})" if dtype.bits == 64 else (
        f"tl.where(({x} < 0) & ({x} > -1), -1.0, tl.floor({x}))")


def _ceil(s: TritonScalars, dtype: DType, args: tuple[Tile, ...]) -> str:
    x = s.typed(args[0])
    return f"tl.ceil({x})" if dtype.bits == 64 else (
        f"tl.where(({x} > 0) & ({x} < 1), 1.0, tl.ceil({x}))")


def _select(s: TritonScalars, dtype: DType, args: tuple[Tile, ...]) -> str:
    condition, *choices = s.fitted(*args)
    left, right = s.paired(*choices)
    return f"tl.where({s.typed(condition)}, {left}, {right})"


def _cast(s: TritonScalars, dtype: DType, args: tuple[Tile, ...]) -> str:
    text = s.typed(args[0])
    return f"{text} != 0" if dtype == BOOL else f"{text}.to(tl.{TRITON_TYPES[dtype.name]})"


def _bitcast(s: TritonScalars, dtype: DType, args: tuple[Tile, ...]) -> str:
    return f"{s.typed(args[0])}.to(tl.{TRITON_TYPES[dtype.name]}, bitcast=True)"


# One row for each base and raw primitive: the table that the LLVM emitter's is compared with.
TRITON_PRIMITIVES: Mapping[str, Emit] = MappingProxyType({
    "add": _infix("+"), "sub": _infix("-"), "mul": _infix("*"),
    "div": _by_width(_call("tl.div_rn"), _infix("/")), "fmod": _fmod,
    "neg": _negate, "abs": _call("tl.abs"),
    "min": _extreme("minimum", "&"), "max": _extreme("maximum", "|"),
    "sqrt": _by_width(_call("tl.sqrt_rn"), _call("tl.sqrt")), "fma": _fma,
    "rint": _call("libdevice.nearbyint"), "trunc": _call("libdevice.trunc"),
    "floor": _floor, "ceil": _ceil,
    "lt": _compare("<"), "le": _compare("<="), "gt": _compare(">"), "ge": _compare(">="),
    "eq": _compare("=="), "ne": _compare("!="),
    "and_": _infix("&"), "or_": _infix("|"), "xor": _infix("^"),
    "not_": _not,
    "select": _select, "cast": _cast, "bitcast": _bitcast,
    "raw_shl": _infix("<<"), "raw_shr": _infix(">>"),
    "raw_div": _infix("//"), "raw_rem": _infix("%"), "raw_int": _cast,
})

# Composite primitives that Triton computes to an ULP or two, for these dtypes. Not for f32: tl.exp
# is ex2.approx of a rounded product (tens of ULP at 80), and libdevice flushes denormals there.
TRITON_NATIVES: Mapping[tuple[str, str], Emit] = MappingProxyType({
    (name, "f64"): _call(f"tl.{name}")
    for name in ("exp", "exp2", "log", "log2", "sin", "cos", "erf")
})


class TritonScalars:
    """Primitives as methods that write lines of source: ``s.add(a, b)``, ``s.exp(x)``.

    ``order`` lists the tile axes: the dimensions of every tile are in this order. An expansion
    becomes a function of the generated module, in ``functions`` by name.
    """

    def __init__(
        self, order: tuple[str, ...], taken: set[str], functions: dict[str, str] | None = None
    ) -> None:
        self.order = order
        self.lines: list[str] = []
        self.functions = {} if functions is None else functions
        self.hint = "t"
        self.params: tuple[str, ...] = ()  # of the function that is written
        self._taken = set(taken)
        self._known: dict[str, Tile] = {}
        self.indent = 1

    def line(self, text: str) -> None:
        self.lines.append("    " * self.indent + text)

    def fresh(self, hint: str) -> str:
        """A variable name that is not in use."""
        name, count = hint, 1
        while name in self._taken:
            count += 1
            name = f"{hint}_{count}"
        self._taken.add(name)
        return name

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Variables and indentation of the lines within end with it."""
        saved = dict(self._known), set(self._taken), self.indent
        yield
        self._known, self._taken, self.indent = saved

    def define(
        self, text: str, dtype: DType, axes: tuple[str, ...], *, hint: str = "", pure: bool = True
    ) -> Tile:
        """A variable for an expression; a pure one that is already known is not repeated."""
        if text.isidentifier():
            return Tile(text, dtype.name, axes)
        if pure and text in self._known:
            return self._known[text]
        tile = Tile(self.fresh(hint or self.hint), dtype.name, axes)
        self.line(f"{tile.text} = {text}")
        if pure:
            self._known[text] = tile
        return tile

    def union(self, *tiles: Tile) -> tuple[str, ...]:
        """The axes of an operation on tiles."""
        names = {axis for tile in tiles for axis in tile.axes}
        return tuple(axis for axis in self.order if axis in names)

    def fit(self, tile: Tile, axes: tuple[str, ...]) -> Tile:
        """The tile with size-1 dimensions for the axes it lacks; scalars broadcast as they are."""
        if not tile.axes or tile.axes == axes:
            return tile
        key = ", ".join(":" if axis in tile.axes else "None" for axis in axes)
        return Tile(f"{tile.text}[{key}]", tile.dtype, axes)

    def fitted(self, *tiles: Tile) -> tuple[Tile, ...]:
        axes = self.union(*tiles)
        return tuple(self.fit(tile, axes) for tile in tiles)

    def typed(self, tile: Tile) -> str:
        """The text of an operand where a literal would lose its dtype."""
        if not tile.literal:
            return tile.text
        return f"tl.full((), {tile.text}, tl.{TRITON_TYPES[tile.dtype]})"

    def paired(self, left: Tile, right: Tile) -> tuple[str, str]:
        """The texts of two operands, one of which may stay a literal."""
        return (self.typed(left) if right.literal else left.text), right.text

    def operands(self, left: Tile, right: Tile) -> tuple[str, str]:
        """``paired``, after fitting to the axes of both."""
        left, right = self.fitted(left, right)
        return self.paired(left, right)

    def const(self, value: bool | int | float, dtype: DType | str) -> Tile:
        dtype = as_dtype(dtype)
        if dtype.is_float and value == 0 and math.copysign(1.0, value) < 0:
            # Triton 3.6 makes every zero positive.
            integer = f"tl.full((), {-1 << (dtype.bits - 1)}, tl.int{dtype.bits})"
            return self.define(f"{integer}.to(tl.{TRITON_TYPES[dtype.name]}, bitcast=True)",
                               dtype, ())
        return Tile(_literal(value, dtype), dtype.name, literal=True)

    def cast(self, value: Tile, dtype: DType | str) -> Tile:
        """Conversion as NumPy's ``astype``; what floats become is ``ir/scalar/integer``'s."""
        dtype = as_dtype(dtype)
        if value.dtype == dtype.name:
            return value
        start = DTYPES[value.dtype]
        if (start.is_half or dtype.is_half) and F32 not in (start, dtype) and (
                start, dtype) != (F64, F16):
            return self.cast(self.cast(value, F32), dtype)
        if BF16 in (start, dtype):  # Triton's interpreter cuts off what does not fit
            made: Tile = from_half(self, value) if start == BF16 else to_half(self, value, dtype)
            return made
        if start.is_float and dtype.is_int:
            result: Tile = from_float(self, value, dtype)
            return result
        return self.define(_cast(self, dtype, (value,)), dtype, value.axes)

    def raw_int(self, value: Tile, dtype: DType) -> Tile:
        """A float that is known to fit, as i32 or i64."""
        return self.define(_cast(self, dtype, (value,)), dtype, value.axes)

    def bitcast(self, value: Tile, dtype: DType | str) -> Tile:
        dtype = as_dtype(dtype)
        if value.dtype == dtype.name:
            return value
        return self.define(_bitcast(self, dtype, (value,)), dtype, value.axes)

    def apply(self, name: str, *args: Tile) -> Tile:
        """A primitive by name: a composite one natively, or through its expansion."""
        dtype = result_dtype(name, tuple(DTYPES[arg.dtype] for arg in args))
        if name in PRIMITIVES and PRIMITIVES[name].short:
            result: Tile = EXPANSIONS[name](self, *args)
            return result
        if name in RAW or not PRIMITIVES[name].composite:
            return self.define(TRITON_PRIMITIVES[name](self, dtype, args), dtype, self.union(*args))
        native = TRITON_NATIVES.get((name, dtype.name))
        if native is not None:
            return self.define(native(self, dtype, args), dtype, self.union(*args))
        return self._function_call(name, EXPANSIONS[name], dtype, args)

    def rarely(
        self, cond: Tile, function: Callable[..., Tile], args: tuple[Tile, ...], usual: Tile
    ) -> Tile:
        """``function(s, *args)`` where ``cond`` holds; a tile is computed whole, so it always is"""
        name, dtype = function.__name__.strip("_"), DTYPES[usual.dtype]
        return self.select(cond, self._function_call(name, function, dtype, args), usual)

    def repeat(
        self, limit: int, going: Callable[..., Tile], step: Callable[..., tuple[Tile, ...]],
        state: tuple[Tile, ...],
    ) -> tuple[Tile, ...]:
        """A while loop, until all elements have ended; the state has the parameters' common shape.

        It is of a function's body, whose tiles show no axes.
        """
        carried = tuple(Tile(self.fresh("s"), tile.dtype) for tile in state)
        for tile, start in zip(carried, state, strict=True):
            self.line(f"{tile.text} = {self.typed(start)}")
            for param in self.params:
                self.line(f"{tile.text}, _ = tl.broadcast({tile.text}, {param})")
        count, some = self.fresh("count"), self.fresh("some")
        known = dict(self._known)  # of what is known here, nothing depends on the state

        def ask() -> Tile:
            self._known = dict(known)
            cond = going(*carried)
            self.line(f"{some} = tl.max(tl.full((1,), 0, tl.int32) + {self.typed(cond)}"
                      ".to(tl.int32), axis=None)")
            return cond

        self.line(f"{count} = 0")
        ask()
        self.line(f"while ({count} < {limit}) & ({some} > 0):")
        self.indent += 1
        self._known = dict(known)
        cond = going(*carried)
        following = [self.select(cond, new, old)
                     for new, old in zip(step(*carried), carried, strict=True)]
        for tile, new in zip(carried, following, strict=True):
            self.line(f"{tile.text} = {new.text}")
        self.line(f"{count} += 1")
        ask()
        self.indent -= 1
        self._known = known
        return carried

    def _function_call(
        self, name: str, expand: Callable[..., Tile], dtype: DType, args: tuple[Tile, ...]
    ) -> Tile:
        """An expansion as a function of the module; types and shapes are those of its arguments."""
        function = f"{name}_{dtype}"
        if function not in self.functions:
            self.functions[function] = self._expansion(function, expand, args)
        texts = ", ".join(map(self.typed, self.fitted(*args)))
        return self.define(f"{function}({texts})", dtype, self.union(*args))

    def _expansion(
        self, function: str, expand: Callable[..., Tile], args: tuple[Tile, ...]
    ) -> str:
        names = (*"xyzw", *(f"x{at}" for at in range(4, len(args))))[:len(args)]
        s = TritonScalars((), set(names), self.functions)
        s.params = names
        result = expand(s, *(Tile(x, arg.dtype) for x, arg in zip(names, args, strict=True)))
        return "\n".join(["@triton.jit", f"def {function}({', '.join(names)}):", *s.lines,
                          f"    return {s.typed(result)}"])

    def __getattr__(self, name: str) -> Callable[..., Tile]:
        if name not in PRIMITIVES and name not in RAW:
            raise AttributeError(name)
        return lambda *args: self.apply(name, *args)


def _literal(value: bool | int | float, dtype: DType) -> str:
    """Python source that Triton rounds to exactly ``value`` in ``dtype``."""
    if not dtype.is_float:
        return str(bool(value) if dtype == BOOL else int(value))
    with np.errstate(over="ignore"):
        number = float(dtype.numpy.type(value))
    if not math.isfinite(number):
        return f'float("{number}")'
    short = str(np.float32(number)) if dtype.bits == 32 else repr(number)
    return short if dtype.numpy.type(float(short)) == number else repr(number)
