"""The scalar primitives in LLVM IR, on scalars and on vectors of any width.

``LlvmScalars`` is the ``s`` that expansions of composite primitives are called with: each method
emits instructions into a function and returns an ``LlvmValue``. A width-1 value meeting a vector
is splatted. Nothing here is fast-math: FMA only where ``fma`` is written, NaN and signed zeros as
IEEE 754 has them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from ....ir.record import replace
from ....ir.scalar.expand import EXPANSIONS
from ....ir.scalar.half import from_half, odd_float, to_half
from ....ir.scalar.integer import from_float
from ....ir.scalar.primitives import PRIMITIVES, RAW, result_dtype
from ....ir.types import DTYPES, F16, F32, F64, DType
from ..text import COLD, FunctionText
from ..types import LLVM_TYPES, constant, suffix, vector_type
from .singles import LLVM_SINGLES, LLVM_USUAL
from .values import LlvmValue

_WIDEST = 512  # bits of a vector
Emit = Callable[["LlvmScalars", DType, str, tuple[LlvmValue, ...]], str]


def _plain(integer: str, floating: str = "") -> Emit:
    """One instruction for integers, another for floats."""
    def emit(s: LlvmScalars, dtype: DType, type_: str, args: tuple[LlvmValue, ...]) -> str:
        name = floating if dtype.is_float else integer
        return s.f(f"{name} {type_} {', '.join(arg.ref for arg in args)}")

    return emit


def _signed(signed: str, unsigned: str) -> Emit:
    def emit(s: LlvmScalars, dtype: DType, type_: str, args: tuple[LlvmValue, ...]) -> str:
        name = signed if dtype.kind == "i" else unsigned
        return s.f(f"{name} {type_} {args[0].ref}, {args[1].ref}")

    return emit


def _intrinsic(name: str) -> Emit:
    def emit(s: LlvmScalars, dtype: DType, type_: str, args: tuple[LlvmValue, ...]) -> str:
        full = f"llvm.{name}.{suffix(args[0].element, args[0].width)}"
        return s.f.call(type_, full, *((type_, arg.ref) for arg in args))

    return emit


def _extreme(word: str) -> Emit:
    """NaN-propagating float min and max; or/and of truth values."""
    def emit(s: LlvmScalars, dtype: DType, type_: str, args: tuple[LlvmValue, ...]) -> str:
        if dtype.name == "bool":
            return _plain("or" if word == "max" else "and")(s, dtype, type_, args)
        if dtype.is_float:
            # LLVM's ``maximum`` also orders signed zeros, which takes twice the instructions.
            a, b = args
            better = s.gt(a, b) if word == "max" else s.lt(a, b)
            chosen: LlvmValue = s.select(s.ne(a, a), a, s.select(better, a, b))
            return chosen.ref
        return _intrinsic(f"{'s' if dtype.kind == 'i' else 'u'}{word}")(s, dtype, type_, args)

    return emit


def _compare(signed: str, ordered: str) -> Emit:
    """Comparisons: ordered for floats (false with NaN) but ``ne``."""
    def emit(s: LlvmScalars, dtype: DType, type_: str, args: tuple[LlvmValue, ...]) -> str:
        if dtype.is_float:
            return s.f(f"fcmp {ordered} {type_} {args[0].ref}, {args[1].ref}")
        word = signed if signed in ("eq", "ne") or dtype.kind == "i" else "u" + signed[1:]
        return s.f(f"icmp {word} {type_} {args[0].ref}, {args[1].ref}")

    return emit


def _neg(s: LlvmScalars, dtype: DType, type_: str, args: tuple[LlvmValue, ...]) -> str:
    if dtype.is_float:
        return s.f(f"fneg {type_} {args[0].ref}")
    return s.f(f"sub {type_} {s.splat(s.const(0, dtype), args[0].width).ref}, {args[0].ref}")


def _abs(s: LlvmScalars, dtype: DType, type_: str, args: tuple[LlvmValue, ...]) -> str:
    if dtype.is_float:
        return _intrinsic("fabs")(s, dtype, type_, args)
    if dtype.kind == "u":
        return args[0].ref
    name = f"llvm.abs.{suffix(args[0].element, args[0].width)}"
    return s.f.call(type_, name, (type_, args[0].ref), ("i1", "false"))


def _not(s: LlvmScalars, dtype: DType, type_: str, args: tuple[LlvmValue, ...]) -> str:
    ones = s.splat(s.const(True if dtype.name == "bool" else -1, dtype), args[0].width)
    return s.f(f"xor {type_} {args[0].ref}, {ones.ref}")


def _select(s: LlvmScalars, dtype: DType, type_: str, args: tuple[LlvmValue, ...]) -> str:
    cond, a, b = args
    return s.f(f"select {cond.type} {cond.ref}, {a.type} {a.ref}, {b.type} {b.ref}")


def _fmod(s: LlvmScalars, dtype: DType, type_: str, args: tuple[LlvmValue, ...]) -> str:
    """The exact remainder: ``a - trunc(a / b) * b`` is one where the quotient has all of its bits.

    Such a quotient may be one too large, where it was rounded up to a whole number; the difference
    then has the other sign, and one b more is the remainder. Else the C library is asked.
    """
    a, b = args
    quotient = s.trunc(s.div(a, b))
    rest = s.fma(s.neg(quotient), b, a)
    size, zero = s.abs(b), s.const(0.0, dtype)
    down = s.lt(a, zero)
    beyond = s.select(down, s.gt(rest, zero), s.lt(rest, zero))
    rest = s.select(beyond, s.add(rest, s.select(down, s.neg(size), size)), rest)
    word = f"i{dtype.bits}"
    sign = s.and_(s.bitcast(a, word), s.const(-1 << dtype.bits - 1, word))
    rest = s.bitcast(s.or_(s.bitcast(s.abs(rest), word), sign), dtype)  # 0 has the sign of a, too
    near = s.lt(s.abs(quotient), s.const(2.0 ** (52 if dtype.bits == 64 else 23), dtype))
    far = s.not_(s.and_(near, s.eq(rest, rest)))
    return s.rarely(far, _library_fmod, (a, b), rest).ref


def _library_fmod(s: LlvmScalars, a: LlvmValue, b: LlvmValue) -> LlvmValue:
    return LlvmValue(s.f(f"frem {a.type} {a.ref}, {b.ref}"), a.dtype, a.width)


# One row for each base and raw primitive: the table that the Triton emitter's is compared with.
LLVM_PRIMITIVES: Mapping[str, Emit] = MappingProxyType({
    "add": _plain("add", "fadd"), "sub": _plain("sub", "fsub"), "mul": _plain("mul", "fmul"),
    "div": _plain("", "fdiv"), "fmod": _fmod,
    "neg": _neg, "abs": _abs, "min": _extreme("min"), "max": _extreme("max"),
    "sqrt": _intrinsic("sqrt"), "fma": _intrinsic("fma"), "rint": _intrinsic("rint"),
    "floor": _intrinsic("floor"), "ceil": _intrinsic("ceil"), "trunc": _intrinsic("trunc"),
    "lt": _compare("slt", "olt"), "le": _compare("sle", "ole"), "gt": _compare("sgt", "ogt"),
    "ge": _compare("sge", "oge"), "eq": _compare("eq", "oeq"), "ne": _compare("ne", "une"),
    "and_": _plain("and"), "or_": _plain("or"), "xor": _plain("xor"), "not_": _not,
    "select": _select,
    "raw_shl": _plain("shl"), "raw_shr": _signed("ashr", "lshr"),
    "raw_div": _signed("sdiv", "udiv"), "raw_rem": _signed("srem", "urem"),
    "cast": lambda s, dtype, type_, args: args[0].ref,      # ``LlvmScalars.cast`` has the dtype
    "bitcast": lambda s, dtype, type_, args: args[0].ref,   # likewise
    "raw_int": lambda s, dtype, type_, args: args[0].ref,
})


def _cold_text(result: str, name: str, params: Sequence[tuple[str, str]]) -> FunctionText:
    """A helper that hardly ever runs."""
    return FunctionText(result, name, params, linkage="internal", attributes=COLD)


class LlvmScalars:
    """Primitives as methods that emit into ``f``: ``s.add(a, b)``, ``s.exp(x)``."""

    def __init__(self, f: FunctionText, *, f16c: bool = False) -> None:
        self.f, self.f16c = f, f16c
        self.unusual = ""  # where it is noted if an element is not as nearly all are, which goes on
        self.usual = False  # whether all are taken to be as nearly all are, and others noted

    def note(self, cond: LlvmValue) -> None:
        """Note that an element is unusual if ``cond`` holds; what is computed of it is nothing."""
        self.f.notes = True
        before = self.f(f"load i8, ptr {self.unusual}, align 1")
        now = self.f(f"or i8 {before}, {self.f(f'zext i1 {cond.ref} to i8')}")
        self.f.do(f"store i8 {now}, ptr {self.unusual}, align 1")

    def const(self, value: bool | int | float, dtype: DType | str) -> LlvmValue:
        dtype = DTYPES[dtype] if isinstance(dtype, str) else dtype
        return LlvmValue(constant(value, dtype), dtype.name)

    def splat(self, value: LlvmValue, width: int) -> LlvmValue:
        """A scalar as a vector; vectors pass through."""
        if value.width == width:
            return value
        if not value.ref.startswith("%"):
            ref = f"splat ({value.element} {value.ref})"
            return LlvmValue(ref, value.dtype, width)
        type_ = vector_type(value.element, width)
        first = self.f(f"insertelement {type_} poison, {value.element} {value.ref}, i64 0")
        mask = f"<{width} x i32> zeroinitializer"
        ref = self.f(f"shufflevector {type_} {first}, {type_} poison, {mask}")
        return LlvmValue(ref, value.dtype, width)

    def apply(self, name: str, *args: LlvmValue) -> LlvmValue:
        """A primitive by name; composite ones through their expansion."""
        width = max(arg.width for arg in args)
        wide = tuple(self.splat(arg, width) for arg in args)
        if name in PRIMITIVES and PRIMITIVES[name].outlined:
            return self._outlined(name, wide)
        singles = LLVM_USUAL if self.usual else LLVM_SINGLES
        if width == 1 and name in singles:
            return singles[name](self, *args)
        if name in PRIMITIVES and PRIMITIVES[name].composite:
            result: LlvmValue = EXPANSIONS[name](self, *args)
            return result
        dtype = result_dtype(name, tuple(DTYPES[arg.dtype] for arg in wide))
        operand = DTYPES[wide[-1].dtype]
        ref = LLVM_PRIMITIVES[name](self, operand, wide[-1].type, wide)
        return LlvmValue(ref, dtype.name, width)

    def cast(self, value: LlvmValue, dtype: DType | str) -> LlvmValue:
        """Conversion as NumPy's ``astype``; what floats become is ``ir/scalar/integer``'s."""
        to = DTYPES[dtype] if isinstance(dtype, str) else dtype
        start = DTYPES[value.dtype]
        if start == to:
            return value
        if start.is_half or to.is_half:
            return self._half(value, start, to)
        if start.is_float and to.is_int:
            result: LlvmValue = from_float(self, value, to)
            return result
        if to.name == "bool":
            return self.apply("ne", value, self.const(0, start))
        target = vector_type(LLVM_TYPES[to.name], value.width)
        if LLVM_TYPES[start.name] == LLVM_TYPES[to.name]:
            return LlvmValue(value.ref, to.name, value.width)
        word = _conversion(start, to)
        return LlvmValue(self.f(f"{word} {value.type} {value.ref} to {target}"), to.name,
                         value.width)

    def _half(self, value: LlvmValue, start: DType, to: DType) -> LlvmValue:
        """To or from f16 and bf16: by the CPU's instruction, or from their bits."""
        if start.is_half:
            wide = self._native(value, "fpext", F32) if start == F16 and self.f16c else (
                from_half(self, value))
            return self.cast(wide, to)
        if to == F16 and start == F64:
            value = odd_float(self, value)
        value = self.cast(value, F32)
        if to == F16 and self.f16c:
            return self._native(value, "fptrunc", F16)
        result: LlvmValue = to_half(self, value, to)
        return result

    def _native(self, value: LlvmValue, word: str, to: DType) -> LlvmValue:
        """A conversion between f32 and f16 with one instruction."""
        half, single = (vector_type(name, value.width) for name in ("half", "float"))
        bits = vector_type("i16", value.width)
        if to == F32:
            stored = self.f(f"bitcast {bits} {value.ref} to {half}")
            return LlvmValue(self.f(f"{word} {half} {stored} to {single}"), to.name, value.width)
        made = self.f(f"{word} {single} {value.ref} to {half}")
        return LlvmValue(self.f(f"bitcast {half} {made} to {bits}"), to.name, value.width)

    def raw_int(self, value: LlvmValue, dtype: DType) -> LlvmValue:
        """A float that is known to fit, as i32 or i64."""
        target = vector_type(LLVM_TYPES[dtype.name], value.width)
        return LlvmValue(self.f(f"fptosi {value.type} {value.ref} to {target}"), dtype.name,
                         value.width)

    def bitcast(self, value: LlvmValue, dtype: DType | str) -> LlvmValue:
        to = DTYPES[dtype] if isinstance(dtype, str) else dtype
        target = vector_type(LLVM_TYPES[to.name], value.width)
        if value.type == target:
            return LlvmValue(value.ref, to.name, value.width)
        ref = self.f(f"bitcast {value.type} {value.ref} to {target}")
        return LlvmValue(ref, to.name, value.width)

    def seldom(
        self, cond: LlvmValue, rare: Callable[[], tuple[LlvmValue, ...]],
        usual: Callable[[], tuple[LlvmValue, ...]],
    ) -> tuple[LlvmValue, ...]:
        """The values of ``rare``, where a condition on one element holds, else of ``usual``: only
        those are computed, and nothing waits for the condition."""
        f, before = self.f, (self.f.fresh("rare"), self.f.fresh("usual"), self.f.fresh("done"))
        f.branch(cond.ref, *before[:2], seldom=True)
        found = []
        for label, values in zip(before, (rare, usual), strict=False):
            f.place(label)
            made = values()
            found.append((f.block, made))
            f.jump(before[2])
        f.place(before[2])
        (one, rares), (other, usuals) = found
        return tuple(replace(value, ref=f(
            f"phi {value.type} [ {rare_.ref}, %{one} ], [ {value.ref}, %{other} ]"))
            for rare_, value in zip(rares, usuals, strict=True))

    def rarely(
        self, cond: LlvmValue, function: Callable[..., LlvmValue], args: tuple[LlvmValue, ...],
        usual: LlvmValue,
    ) -> LlvmValue:
        """``function(s, *args)`` in the lanes of ``cond``, behind a branch if there is one.

        It is a function of its own, cold, so that the code around stays small.
        """
        if self.usual:
            self.note(cond)  # nobody may follow what is computed of the others: it is no value
            return replace(usual, ref=self.f(f"freeze {usual.type} {usual.ref}"))
        width = max(value.width for value in (cond, usual, *args))
        cond, usual, *wide = (self.splat(value, width) for value in (cond, usual, *args))
        f = self.f
        before, then, done, some = f.block, f.fresh("rare"), f.fresh("done"), cond.ref
        if width > 1:
            some = f.call("i1", f"llvm.vector.reduce.or.v{width}i1", (cond.type, some))
        f.branch(some, then, done)
        f.place(then)
        name = (self._lanes(function, (usual, *wide)) if width > 1 else
                self._cold(function, wide, usual.element))
        passed = [f"{value.type} {value.ref}" for value in wide]
        if width > 1:
            lanes = f(f"bitcast {cond.type} {cond.ref} to i{width}")
            passed = [f"i{width} {lanes}", f"{usual.type} {usual.ref}", *passed]
        other = f(f"call {usual.type} @{name}({', '.join(passed)})")
        f.jump(done)
        f.place(done)
        ref = f(f"phi {usual.type} [ {usual.ref}, %{before} ], [ {other}, %{then} ]")
        return replace(usual, ref=ref)

    def repeat(
        self, limit: int, going: Callable[..., LlvmValue],
        step: Callable[..., tuple[LlvmValue, ...]], state: tuple[LlvmValue, ...],
    ) -> tuple[LlvmValue, ...]:
        """Steps of all lanes, of which those that have ended keep their state, until all have."""
        # A state of constants is as wide as what it is compared with.
        f, width = self.f, max(value.width for value in (going(*state), *state))
        before, head, body, done = f.block, *map(f.fresh, ("steps", "step", "ended"))
        state = tuple(self.splat(value, width) for value in state)
        f.jump(head)
        f.place(head)
        carried = tuple(replace(value, ref=f.phi(value.type, value.ref, before))
                        for value in state)
        count = f.phi("i64", "0", before)
        cond = self.splat(going(*carried), width)
        some = cond.ref if width == 1 else f.call(
            "i1", f"llvm.vector.reduce.or.v{width}i1", (cond.type, cond.ref))
        within = f(f"icmp slt i64 {count}, {limit}")
        f.branch(f(f"and i1 {some}, {within}"), body, done)
        f.place(body)
        following = [self.select(cond, new, old)
                     for new, old in zip(step(*carried), carried, strict=True)]
        for value, new in zip(carried, following, strict=True):
            f.arrive(value.ref, new.ref)
        f.arrive(count, f(f"add nsw i64 {count}, 1"))
        f.jump(head)
        f.place(done)
        return carried

    def _outlined(self, name: str, args: tuple[LlvmValue, ...]) -> LlvmValue:
        """A composite as a function of its own, which all that call it share; of vectors as wide as
        the widest of any CPU at most. Its result has the type of the last operand, or of a float64
        as wide."""
        kind = result_dtype(name, tuple(DTYPES[arg.dtype] for arg in args)).name
        first = replace(args[0], dtype=kind)
        if first.width * DTYPES[first.dtype].bits > _WIDEST:
            halves = [self._outlined(name, tuple(self._side(arg, at) for arg in args))
                      for at in range(2)]
            lanes = ", ".join(f"i32 {at}" for at in range(first.width))
            pair = ", ".join(f"{half.type} {half.ref}" for half in halves)
            return replace(first, ref=self.f(
                f"shufflevector {pair}, <{first.width} x i32> <{lanes}>"))
        helper_name = f"weft_{name}_{first.dtype}_x{first.width}"
        if all(helper.name != helper_name for helper in self.f.helpers):
            inner = [replace(arg, ref=f"%x{at}") for at, arg in enumerate(args)]
            helper = FunctionText(first.type, helper_name, [(x.type, x.ref[1:]) for x in inner],
                                  linkage="internal", attributes="noinline nounwind")
            self.f.helpers.append(helper)
            found = EXPANSIONS[name](LlvmScalars(helper), *inner)
            helper.ret(f"{first.type} {found.ref}")
        passed = ", ".join(f"{arg.type} {arg.ref}" for arg in args)
        return replace(first, ref=self.f(f"call {first.type} @{helper_name}({passed})"))

    def _side(self, value: LlvmValue, at: int) -> LlvmValue:
        width = value.width // 2
        lanes = ", ".join(f"i32 {at * width + lane}" for lane in range(width))
        ref = self.f(f"shufflevector {value.type} {value.ref}, {value.type} poison, "
                     f"<{width} x i32> <{lanes}>")
        return replace(value, ref=ref, width=width)

    def _lanes(
        self, function: Callable[..., LlvmValue], values: tuple[LlvmValue, ...]
    ) -> str:
        """The name of the helper that takes a number, whose bits say which lanes, and ``values``,
        and puts the results of ``function`` into these lanes of the first value.

        One lane at a time: code that fills all vector registers takes longer to compile than most
        programs.
        """
        width, kind, element = values[0].width, values[0].type, values[0].element
        inner = self._cold(function, values[1:], element)
        name = f"{inner}_x{width}"
        if any(helper.name == name for helper in self.f.helpers):
            return name
        params = [(f"i{width}", "lanes"), *((value.type, f"x{at}")
                                            for at, value in enumerate(values))]
        f = _cold_text(kind, name, params)
        slots = [f.alloca(value.element, width) for value in values]  # where lanes have addresses
        for at, (slot, value) in enumerate(zip(slots, values, strict=True)):
            f.do(f"store {value.type} %x{at}, ptr {slot}, align 64")
        with f.loop("0", str(width)) as lane:
            at_lane = f(f"trunc i64 {lane} to i{width}") if width < 64 else lane
            shifted = f(f"lshr i{width} %lanes, {at_lane}")
            with f.when(f(f"trunc i{width} {shifted} to i1")):
                places = [f(f"getelementptr {value.element}, ptr {slot}, i64 {lane}")
                          for slot, value in zip(slots, values, strict=True)]
                passed = [(value.element, f(f"load {value.element}, ptr {place}"))
                          for place, value in zip(places[1:], values[1:], strict=True)]
                spelled = ", ".join(f"{type_} {ref}" for type_, ref in passed)
                found = f(f"call {element} @{inner}({spelled})")
                f.do(f"store {element} {found}, ptr {places[0]}")
        f.ret(f"{kind} {f(f'load {kind}, ptr {slots[0]}, align 64')}")
        self.f.helpers.append(f)
        return name

    def _cold(
        self, function: Callable[..., LlvmValue], args: Sequence[LlvmValue], result: str
    ) -> str:
        """The name of the helper that computes ``function`` for one lane of operands like these."""
        kinds = "_".join(value.dtype for value in args)
        name = f"weft_{function.__name__.strip('_')}_{kinds}"  # the same for all kernels
        if all(helper.name != name for helper in self.f.helpers):
            inner = [LlvmValue(f"%x{at}", value.dtype) for at, value in enumerate(args)]
            helper = _cold_text(result, name, [(x.type, x.ref[1:]) for x in inner])
            helper.ret(f"{result} {function(LlvmScalars(helper, f16c=self.f16c), *inner).ref}")
            self.f.helpers.append(helper)
        return name

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name not in PRIMITIVES and name not in RAW:
            raise AttributeError(name)
        return lambda *args: self.apply(name, *args)


def _conversion(start: DType, to: DType) -> str:
    """The LLVM instruction that converts between two dtypes of different type, but not from a
    float to an integer."""
    if start.is_float and to.is_float:
        return "fpext" if to.bits > start.bits else "fptrunc"
    if to.is_float:
        return "sitofp" if start.kind == "i" else "uitofp"
    width = 1 if start.name == "bool" else start.bits
    if to.bits < width:
        return "trunc"
    return "sext" if start.kind == "i" else "zext"
