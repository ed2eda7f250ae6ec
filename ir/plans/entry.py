"""How a program is called: what its entry point admits, what it makes and what it hands back.

    f(x: array f32[b,2*s], lr: float) -> f32[b]    symbols b, 2*s

Plain data that everybody reads who calls a program: the emitted entry has it in its constants, the
path through ctypes checks arguments against it. Sizes are expressions over the entry's symbols.
These are not the plan's: each is a size of an argument as the program is told it, in the order of
its dims array, and is named by the text of its dim (``2*s`` above is one symbol).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from ..indices.dims import argument_sizes, symbols_from
from ..indices.index import Dim, plain_symbol, symbol, symbols_of
from ..indices.walk import substitute
from ..record import record
from .plan import Loop, Measure, Plan, all_steps, sizes_told

SCALARS: Mapping[str, tuple[type[complex | float | int | bool], str]] = MappingProxyType({
    "float": (float, "f64"), "int": (int, "i64"), "bool": (bool, "bool"),
    "complex": (complex, "c128"),
})
"""The Python numbers that an argument may be, with their dtype."""
MAX_RANK = 64  # NumPy's
_SMALL_STEPS, _SMALL_SIZE = 2, 4096  # of programs that end before another thread could start


@record(frozen=True)
class Input:
    """An argument: "array" of ``dtype`` and ``shape``, a "scalar" of NumPy's of that ``dtype``, or
    a Python "float", "int", "bool" or "complex".

    Each dim is a number or just a symbol.
    """

    kind: str
    dtype: str
    shape: tuple[Dim, ...] = ()


@record(frozen=True)
class Output:
    """A result: an array whose dims are expressions over the symbols."""

    dtype: str
    shape: tuple[Dim, ...]


@record(frozen=True)
class Entry:
    """What the entry of program ``name`` checks and makes.

    ``measured`` are the sizes of results that the program tells as it runs, in that order: these
    are made then.

    ``single`` hands back the only result as it is, not in a tuple; of the first ``scalars`` results
    those without dims are NumPy's scalars, all others are arrays. ``arena`` is a number of bytes,
    or None to ask ``i64 @{name}_arena(ptr dims)``. ``release_gil`` costs some 30 ns, so leave it
    off for tiny programs. Raises ValueError for what cannot be.
    """

    name: str
    inputs: tuple[Input, ...]
    outputs: tuple[Output, ...]
    symbols: tuple[str, ...] = ()
    single: bool = False
    arena: int | None = 0
    release_gil: bool = False
    scalars: int = 0
    measured: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.single and len(self.outputs) != 1:
            raise ValueError(f"{self.name}: single, but there are {len(self.outputs)} results")
        for item in self.inputs:
            if item.kind in SCALARS and SCALARS[item.kind][1] != item.dtype:
                raise ValueError(f"{self.name}: no {item.kind} argument is passed as {item.dtype}")
            if item.kind != "array" and item.shape:
                raise ValueError(f"{self.name}: a {item.kind} argument has no dims")
        ranks = [len(item.shape) for item in self.inputs]
        ranks += [len(item.shape) for item in self.outputs]
        if any(rank > MAX_RANK for rank in ranks):
            raise ValueError(f"{self.name}: NumPy has no arrays of more than {MAX_RANK} dims")
        given = [dim for item in self.inputs for dim in item.shape if not isinstance(dim, int)]
        mixed = [dim for dim in given if plain_symbol(dim) is None]
        if mixed:
            raise ValueError(f"{self.name}: an input's dim, {mixed[0]}, is no number and no symbol")
        shown = {plain_symbol(dim) for dim in given}
        if shown != set(self.symbols):
            wrong = ", ".join(sorted(map(str, shown ^ set(self.symbols))))
            raise ValueError(f"{self.name}: symbols and the inputs' dims differ in {wrong}")
        used = {name for item in self.outputs for dim in item.shape for name in symbols_of(dim)}
        if not used <= {*self.symbols, *self.measured}:
            wrong = ", ".join(sorted(used.difference(self.symbols, self.measured)))
            raise ValueError(f"{self.name}: no input has the results' dims {wrong}")

    def waits_for(self, output: Output) -> int:
        """How many sizes have to be measured before a result can be made."""
        used = frozenset[str]().union(*map(symbols_of, output.shape))
        return max((at for at, name in enumerate(self.measured, 1) if name in used), default=0)

    @property
    def places(self) -> tuple[tuple[int, int], ...]:
        """Where each symbol is read: the first input that has it, and the axis."""
        places: dict[str | None, tuple[int, int]] = {}
        for at, item in enumerate(self.inputs):
            for axis, dim in enumerate(item.shape):
                places.setdefault(plain_symbol(dim), (at, axis))
        return tuple(places[name] for name in self.symbols)


def entry_of(
    plan: Plan, kinds: Sequence[str] = (), single: bool = False, scalars: bool = False
) -> Entry:
    """The entry of a plan.

    ``kinds`` are those of the first parameters; all others are arrays. ``single`` asks for a plain
    result where there is but one, ``scalars`` for scalars among what is not kept by a variable.
    Raises ShapeError (W105) if a symbol follows from no size.
    """
    sizes = argument_sizes(plan)
    symbols = symbols_from(sizes)
    kinds = (*kinds, *["array"] * (len(plan.params) - len(kinds)))
    inputs = tuple(
        Input(kind, slot.type.dtype.name, tuple(
            dim if isinstance(dim, int) else symbol(str(dim)) for dim in slot.type.shape))
        for kind, slot in zip(kinds, plan.params, strict=True))
    outputs = tuple(
        Output(slot.type.dtype.name, tuple(substitute(dim, symbols) for dim in slot.type.shape))
        for slot in plan.results)
    elements = [slot.type.size for slot in (*plan.params, *plan.results)]
    loops = any(isinstance(step, Loop | Measure) for step in all_steps(plan.steps))
    small = not loops and len(plan.steps) <= _SMALL_STEPS and all(
        isinstance(size, int) and size <= _SMALL_SIZE for size in elements)
    return Entry(plan.name, inputs, outputs, tuple(sorted(sizes)), single and len(outputs) == 1,
                 plan.arena if isinstance(plan.arena, int) else None, release_gil=not small,
                 scalars=sum(not slot.var for slot in plan.results) if scalars else 0,
                 measured=sizes_told(plan, [dim for slot in plan.results
                                            for dim in slot.type.shape]))
