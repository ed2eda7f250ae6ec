"""What an op is: one row, from which everything else is derived.

A row gives the op's kind, type rule, NumPy meaning, kernel body or index map, gradient and sample
inputs. The tracer's methods, the builder's methods, the verifier, the interpreter, the gradient
pass, fusion, lowering and the generated tests read the row; none of them knows an op by name.

All functions of a row take operands by position and attributes by keyword:
    infer(*types, **attrs) -> types          ref(*arrays, **attrs) -> arrays
        the ``ref`` of a REGION takes a function that runs a graph before its arrays; that of a
        RESOURCE takes the resource, and gives what is pending (``ops/queue``)
    requires(*types, **attrs) -> (left, "==" or ">=", right, code, message) for each relation of
        symbolic sizes that the types do not show; asked before a step starts
    grad(b, g, *operands, y, **attrs) -> one value or None for each operand
    taken(b, *operands, y, **attrs) -> for each operand a function that gives a mask of its elements
        that the result has, or None if it has all; of those left out the gradient is 0 whatever is
        computed from them and to them
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np

from ..convert import conversion
from ..cost.statements import statement_work
from ..diagnose import error
from ..kernels.build import KernelBuilder
from ..record import field, record
from ..types import BOOL, COMPUTED, F32, F64, NUMBERS, U64, DType, TensorType, as_dtype


class Kind(enum.Enum):
    """How an op is lowered; the value is the word that text and error messages use."""

    MAP = "map"            # body over scalar primitives, one element at a time
    VIEW = "view"          # an index map: no arithmetic, no memory of its own
    REDUCE = "reduce"      # init and combine over one or more axes
    CONTRACT = "contract"  # sum of products over shared axes
    GATHER = "gather"      # a load at computed indices
    SCATTER = "scatter"    # a store at computed indices, which may add
    COMPLEX = "complex"    # what makes or parts complex numbers, of which no kernel knows
    ALIAS = "alias"        # the memory of its operand under another type
    HOST = "host"          # a function of NumPy that runs between native launches
    SCAN = "scan"          # what is carried along an axis
    SORT = "sort"          # rows in order, or where their elements in order are
    COMPRESS = "compress"  # the elements where a mask holds, one after the other
    SEARCH = "search"      # the place of each value in an axis that is in order
    EFFECT = "effect"      # reads or writes a variable
    RESOURCE = "resource"  # talks to a queue, and may wait
    EXTENT = "extent"      # makes a size of a number
    REGION = "region"      # holds a graph


MEASURED = (Kind.RESOURCE, Kind.EXTENT)
"""The kinds of ops of which it is known when they have run how large their results are."""


class Effect(enum.Enum):
    """What an op does to the variable its ``var`` attribute names."""

    READS = "reads"
    WRITES = "writes"
    ASSERTS = "asserts"  # takes note of what has to hold, and fails the step


@record(frozen=True)
class Sample:
    """Test operands for one call of an op: shapes or ready arrays, value range, attributes."""

    shapes: tuple[tuple[int, ...], ...]
    attrs: Mapping[str, Any] = field(default_factory=dict)
    low: float = -2.0
    high: float = 2.0
    ints: Mapping[int, int] = field(default_factory=dict)  # operand -> exclusive index bound
    positive: bool = False  # the first operand holds symmetric, positive definite matrices

    # ``ints`` marks operands that are integer indices whatever dtype is tested.


Infer = Callable[..., tuple[TensorType, ...]]
# The dtypes that letters of a signature have where the cost of an op is found; else f32.
_COSTED = MappingProxyType({"i": as_dtype("i32"), "l": as_dtype("i32"), "b": BOOL, "w": U64,
                            "d": F64})


_NONE: Mapping[str, str] = MappingProxyType({})
_HALVES = MappingProxyType({"f16": "f32", "bf16": "f32"})
_NARROW = MappingProxyType({**_HALVES, "i8": "i32", "i16": "i32", "u8": "i32", "u16": "i32"})


@record(frozen=True)
class RunCheck:
    """What has to hold of the operands of a MAP, or the step fails with this error."""

    holds: Callable[..., Any]                           # (s, *xs, **attrs) -> bool scalar
    code: str                                           # "": its attribute ``code``
    message: Callable[..., str]                         # (**attrs) -> text
    safe: int = 0                                       # operands of which it holds


@record(frozen=True)
class OpDef:
    """One row of the op table; see the module docstring for the calling convention."""

    name: str
    kind: Kind
    infer: Infer
    arity: int | None                                   # None: any number of operands
    doc: str
    attrs: Mapping[str, type]                           # name -> type, all required
    facts: Mapping[str, type] = field(default_factory=dict)  # that passes have found, and note
    ref: Callable[..., Any] | None = None
    # MAP: (s, *xs, **attrs) -> scalar; SCAN: (s, held, *xs, ...); SEARCH: (s, element, value, ...)
    body: Callable[..., Any] | None = None
    start: Callable[[DType], Any] | None = None         # SCAN: what is held before the first
    places: bool = False                                # SORT: of the elements, not themselves
    whole: bool = False                                 # SORT: rows, not elements at some ranks
    indexed: bool = False                               # MAP: the body is told index=, its place
    constant: bool = False                              # MAP: every element is the attribute value
    moves: bool = False                                 # MAP: only the bits of its operands count
    check: RunCheck | None = None                       # MAP
    view: Callable[..., Any] | None = None              # VIEW: see ``ops/view``
    back: Callable[..., Any] | None = None              # VIEW that only moves elements: where to
    alias: str = ""                                     # VIEW: how NumPy's result shares memory
    moving: tuple[str, ...] = ()                        # VIEW: places, which rounds may count on
    combine: str = ""           # REDUCE: a scalar primitive; SCATTER: add, or none: it replaces
    grad: Callable[..., Any] | None = None
    taken: Callable[..., Any] | None = None             # of what leaves elements out
    becomes: str = ""                                   # the op that it is for all but derivatives
    awaits: bool = False                                # its last operand, which comes first
    refused: Mapping[int, str] = field(default_factory=dict)  # operands that have no gradient yet
    requires: Callable[..., Any] | None = None          # of sizes: see below
    differentiable: bool = True                         # False: piecewise constant or integer
    expand: Callable[..., Any] | None = None            # (b, *operands, **attrs) -> value
    control: Callable[..., Any] | None = None           # REGION: (**attrs) -> see ``ops/region``
    effect: Effect | None = None
    update: str = ""                                    # EFFECT: the op of old value and operand
    foreign: bool = False                               # HOST, RESOURCE, EXTENT: run each time
    puts: Callable[..., Any] | None = None              # RESOURCE: (*types, **attrs) -> a count
    taking: bool = False                                # EFFECT: by whoever comes, in any order
    room: str = "linalg"                                # HOST: the module of NumPy
    inner: Callable[..., str] | None = None             # HOST: (**attrs) -> NumPy's loop, or ""
    numpy: tuple[Callable[..., Any], ...] = ()          # NumPy ufuncs that trace to this op
    letters: str = ""                                   # MAP: the operands of its signature
    dtypes: tuple[DType, ...] = COMPUTED                # of the first operand (tests)
    samples: tuple[Sample, ...] = ()

    @cached_property
    def can_fail(self) -> bool:
        """True if it may fail the step: by an index out of range, a check, in NumPy."""
        return self.check is not None or self.kind in (Kind.GATHER, Kind.SCATTER, Kind.HOST)

    @cached_property
    def cost(self) -> int:
        """The primitives of one element of a MAP, in additions, at the operands of its samples.

        A view costs nothing; what is neither costs more than any.
        """
        if self.kind is not Kind.MAP or self.body is None:
            return 0 if self.kind is Kind.VIEW else 1 << 20
        builder = KernelBuilder()
        operands = [builder.load(f"x{at}", dtype, ()) for at, dtype in enumerate(
            [_COSTED.get(letter, as_dtype("f32")) for letter in self.letters]
            or self.dtypes[:1] * (self.arity or 0))]
        attrs = dict(self.samples[0].attrs)
        if self.indexed:
            attrs["index"] = (0,) * len(attrs["shape"])
        self.body(builder, *operands, **attrs)
        return sum(map(statement_work, builder.body))

    def computed(
        self, s: Any, operands: Sequence[Any], dtype: DType, /, **attrs: Any
    ) -> Any:
        """An element of a MAP, by its body: half types are computed in f32 and rounded once."""
        assert self.body is not None
        wide = operands if self.moves else [widened(s, x) for x in operands]
        result = self.body(s, *wide, **attrs)
        return s.cast(result, dtype) if dtype.is_half else result

    def meaning(self, *operands: Any, **attrs: Any) -> Any:
        """``ref``, computed as kernels do: half types in float32, to be rounded once."""
        assert self.ref is not None
        if self.moves or self.kind in (Kind.VIEW, Kind.GATHER):
            return self.ref(*operands, **attrs)
        return self.ref(*(x.astype(np.float32) if as_dtype(x.dtype).is_half else x
                          for x in map(np.asarray, operands)), **attrs)

    @cached_property
    def wider(self) -> Mapping[str, str]:
        """Dtypes by name, and those in which the whole op is computed instead."""
        if self.expand is not None or self.kind is Kind.SCATTER:
            return _HALVES
        return _NARROW if self.kind in (Kind.SORT, Kind.COMPRESS) else _NONE

    def missing(self) -> list[str]:
        """The pieces this row lacks; the completeness test wants none."""
        need = {
            Kind.MAP: ("ref", "body"), Kind.VIEW: ("ref", "view"), Kind.REDUCE: ("ref", "combine"),
            Kind.CONTRACT: ("ref",), Kind.GATHER: ("ref",), Kind.SCATTER: ("ref",),
            Kind.COMPLEX: ("ref",), Kind.ALIAS: ("ref",),
            Kind.HOST: ("ref",), Kind.SCAN: ("ref", "body", "start"), Kind.SORT: ("ref",),
            Kind.COMPRESS: ("ref",), Kind.SEARCH: ("ref", "body"), Kind.EFFECT: ("effect",),
            Kind.REGION: ("ref",), Kind.RESOURCE: ("ref",), Kind.EXTENT: ("ref",),
        }[self.kind]
        if self.expand is not None:
            need = ("ref",)
        lacks = [piece for piece in need if not getattr(self, piece)]
        if not self.doc:
            lacks.append("doc")
        if self.kind in (Kind.EFFECT, Kind.REGION) or self.foreign:
            return lacks
        if self.differentiable and self.grad is None and self.expand is None:
            lacks.append("grad")
        if not self.samples:
            lacks.append("samples")
        return lacks


def widened(s: Any, value: Any) -> Any:
    """A scalar in the dtype it is computed in."""
    return s.cast(value, F32) if value.dtype.is_half else value


def host_name(op: OpDef, attrs: Mapping[str, Any]) -> str:
    """What errors call a HOST row: the function of NumPy, or that of the user."""
    return str(attrs["function"]) if op.foreign else f"np.{op.room}.{op.name}"


_KINDS = MappingProxyType({"f": "f", "i": "iu", "n": "iuf", "l": "iub", "t": "iufb", "b": "b",
                           "z": "fc", "a": "iufc", "x": "iufbc", "w": "u", "d": "f"})
_WORDS = MappingProxyType({"f": "real floating-point", "i": "integer", "n": "real numeric",
                           "l": "integer or bool", "t": "real", "b": "bool",
                           "z": "floating-point", "a": "numeric", "x": "numeric or bool",
                           "w": "u64", "d": "f64"})


def signature(name: str, text: str) -> Infer:
    """The type rule of an elementwise signature such as ``"bnn -> n"``.

    Letters: f float, i integer, n numeric, l integer or bool, t any, b bool; with complex numbers,
    z is f, a is n and x is t. Operands with the same letter (other than b) have one dtype: w is
    u64, d is f64. All operands have one shape.
    """
    left, _, right = (part.strip() for part in text.partition("->"))

    def infer(*types: TensorType, **_: Any) -> tuple[TensorType, ...]:
        if len(types) != len(left):
            raise error("W102", f"{name} takes {len(left)} operands, got {len(types)}")
        bound: dict[str, DType] = {"b": BOOL, "w": U64, "d": F64}
        for letter, type_ in zip(left, types, strict=True):
            if type_.shape != types[0].shape:
                raise error("W101", f"{name} needs operands of one shape")
            if type_.dtype.kind not in _KINDS[letter]:
                raise error("W111", f"{name} needs {_WORDS[letter]} operands, got {type_.dtype}",
                            hint=conversion(np.empty(0, type_.dtype.numpy),
                                            BOOL if letter == "b" else F64))
            if bound.setdefault(letter, type_.dtype) != type_.dtype:
                raise error("W111", f"{name} needs operands of one dtype, "
                                    f"got {bound[letter]} and {type_.dtype}")
        return (TensorType(bound[right], types[0].shape),)

    return infer


def map_op(
    name: str,
    types: str | Infer,
    body: Callable[..., Any],
    ref: Callable[..., Any],
    *,
    doc: str,
    grad: Callable[..., Any] | None = None,
    attrs: Mapping[str, type] = MappingProxyType({}),
    low: float = -2.0,
    high: float = 2.0,
    dtypes: Sequence[DType] = COMPUTED,
    samples: tuple[Sample, ...] | None = None,
    numpy: tuple[Callable[..., Any], ...] = (),
    check: RunCheck | None = None,
    indexed: bool = False,
    constant: bool = False,
    moves: bool = False,
    refused: Mapping[int, str] = MappingProxyType({}),
    taken: Callable[..., Any] | None = None,
    becomes: str = "",
    awaits: bool = False,
) -> OpDef:
    """A row of the MAP family. Without ``grad`` the op counts as piecewise constant."""
    if isinstance(ref, np.ufunc):
        numpy = (ref, *numpy)
    letters = types.partition("->")[0].strip() if isinstance(types, str) else ""
    if isinstance(types, str):
        kinds = _KINDS[letters[-1]]
        dtypes = [dtype for dtype in (NUMBERS if "c" in kinds else dtypes)
                  if dtype.kind in kinds]
        infer, arity = signature(name, types), len(letters)
    else:
        if samples is None:
            raise ValueError(f"{name}: give samples with a type rule of its own")
        infer, arity = types, len(samples[0].shapes)
    if samples is None:
        samples = tuple(Sample((shape,) * arity, low=low, high=high)
                        for shape in ((), (0,), (1,), (7,), (3, 5), (2, 0, 3), (4, 33), (3000,)))
    return OpDef(name, Kind.MAP, infer, arity, doc, attrs, ref=ref, body=body, check=check,
                 grad=grad, differentiable=grad is not None, numpy=numpy, letters=letters,
                 dtypes=tuple(dtypes), samples=samples, refused=refused, indexed=indexed,
                 constant=constant, moves=moves, taken=taken, becomes=becomes,
                 awaits=awaits)
