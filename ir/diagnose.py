"""Errors for the person who wrote the model.

An error has a code, one sentence, the user's own line with a caret, the operand types and one
suggested fix. It is also the exception NumPy users expect (a shape mismatch is a ValueError), so
existing ``except`` clauses keep working.

    W103: shapes f32[3,4] and f32[5] do not broadcast
      --> model.py:12 in dense
       |     return x + b
       |            ^^^^^
      operands: f32[3,4], f32[5]
      fix: ...
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .loc import Loc
    from .types import TensorType


class Error(Exception):
    """Base of every error that Weft raises about a user's program; ``code`` names its kind.

    ``of_sizes`` are the sizes by name that a program does not admit, whatever it would do.
    """

    of_sizes: Mapping[str, int] | None = None

    def __init__(
        self,
        code: str,
        message: str,
        *,
        locs: Sequence[Loc] = (),
        types: Sequence[TensorType] = (),
        hint: str = "",
    ) -> None:
        super().__init__(message)
        self.code, self.message, self.hint = code, message, hint
        self.locs, self.types = tuple(locs), tuple(types)

    def __reduce__(self) -> tuple[Any, ...]:
        """Errors travel between processes."""
        return partial(type(self), self.code, self.message, locs=self.locs, types=self.types,
                       hint=self.hint), ()

    def __str__(self) -> str:
        lines = [f"{self.code}: {self.message}"]
        lines += place_text(self.locs)
        if self.types:
            lines.append("  operands: " + ", ".join(map(str, self.types)))
        if self.hint:
            lines.append(f"  fix: {self.hint}")
        return "\n".join(lines)


class TracingWarning(UserWarning):
    """Something in a compiled function does not do what it would do in Python."""


def place_text(locs: Sequence[Loc]) -> list[str]:
    """The lines that show where the user wrote something."""
    return [line for loc in locs[:2] for line in _place(loc)]


def _place(loc: Loc) -> list[str]:
    where = f" in {loc.function}" if loc.function else ""
    lines = [f"  --> {loc.file}:{loc.line}{where}"]
    source = loc.source
    if source.strip():
        margin = len(source) - len(source.lstrip())
        lines.append(f"   |   {source.strip()}")
        if loc.columns:
            first, last = (max(c - margin, 0) for c in loc.columns)
            lines.append("   |   " + " " * first + "^" * max(last - first, 1))
    return lines


_NOTE = "while the host "  # begins what is noted on exceptions of users' functions


def note(problem: BaseException, what: str) -> None:
    """Say on an exception of a user's function what it was called for: ``read element 3``."""
    problem.add_note(f"{_NOTE}{what}")


def of_host(problem: BaseException) -> bool:
    """True for an exception of a function that was called here."""
    return any(note.startswith(_NOTE) for note in getattr(problem, "__notes__", ()))


class ShapeError(Error, ValueError):
    """Operand shapes do not fit the op."""


class DTypeError(Error, TypeError):
    """Operand dtypes do not fit the op, or a Python type cannot be traced."""


class UnsupportedError(Error, NotImplementedError, TypeError):
    """A NumPy function, method or option that traced code cannot use yet."""


class OutOfRangeError(Error, IndexError, ValueError):
    """An axis, index or slice outside its array, or masks that do not choose equally many: what
    NumPy raises an IndexError, a ValueError, or one that is both for (np.exceptions.AxisError)."""


class RangeError(Error, OverflowError):
    """A Python integer that the dtype it meets cannot hold."""


class DivisionError(Error, ZeroDivisionError):
    """A Python number divided by zero."""


class FailedAssertionError(Error, AssertionError):
    """An ``assert`` of the user's that did not hold when the function ran."""


class ParameterError(Error, ValueError):
    """A parameter out of its range: of a distribution, a quantile, NaN that is to be an integer."""


class FeedError(Error, KeyError):
    """A name that is not in the graph, or a placeholder without a value."""

    __str__ = Error.__str__  # KeyError would print the repr


class QueueClosedError(Error, RuntimeError):
    """A queue that nothing can be put into any more, or a call that was cancelled."""


class QueueEndError(Error, EOFError):
    """A queue that is closed, and has not as many elements as were asked for."""


class DeadlineError(Error, TimeoutError):
    """What took longer than it was given."""


class BoundError(Error, TypeError):
    """What belongs to one process or one place, and was to be pickled or copied."""


class UnwritableError(Error, OSError):
    """A file that could not be written: a full disk, a limit, a folder that is read-only."""


class DeviceLostError(Error, RuntimeError):
    """A device that has failed, with all that it was doing."""


class TracerError(Error, TypeError):
    """A traced value used where Python needs a number (``if``, ``int()``), or after its trace."""


class TextError(Error, ValueError):
    """Text that is not the IR it should be."""


class VerifyError(Error, AssertionError):
    """An IR that breaks one of its own rules: a defect in Weft, not in the user's program."""


# The class of a code, or of all codes that begin like it.
_CLASSES = MappingProxyType({
    "W113": UnsupportedError,
    "W125": FailedAssertionError,
    "W132": ParameterError,
    "W133": DivisionError,
    "W407": BoundError,
    "W408": UnwritableError,
    "W411": QueueClosedError,
    "W412": QueueEndError,
    "W413": DeadlineError,
    "W421": DeviceLostError,
    "W10": ShapeError,   # shapes
    "W11": DTypeError,   # dtypes and types of arguments
    "W12": OutOfRangeError,   # axes and indices
    "W13": RangeError,   # Python numbers
    "W20": TracerError,  # tracing
    "W30": FeedError,    # sessions, feeds, fetches
    "W40": Error,        # devices, targets, artifacts
    "W50": TextError,    # text
    "W60": VerifyError,  # broken IR
})

HELD_IN_64_BITS = "a Python integer is out of bounds for int64, in which traced ones are held"
"""The message of a check (W131) that has a fix of its own."""

# Every code, once, with what it means; the documentation and the error tests are made from it.
CODES = MappingProxyType({
    "W101": "operands do not broadcast",
    "W102": "operand has the wrong rank or shape for the op",
    "W103": "reshape changes the number of elements",
    "W104": "contraction dims do not match",
    "W105": "a symbolic dim does not fit the argument it is bound to",
    "W111": "the op does not take operands of this dtype",
    "W112": "an argument has a type that cannot be traced",
    "W113": "the NumPy function or option is not supported yet",
    "W114": "the function that is differentiated must return one floating-point scalar",
    "W121": "axis out of range",
    "W122": "index out of range",
    "W123": "index kind not supported",
    "W124": "index out of range at run time",
    "W125": "an assertion does not hold at run time",
    "W131": "a Python integer does not fit the dtype it meets",
    "W132": "a parameter of a distribution, a layer, a quantile, a conversion or a function of "
            "the module math is out of range",
    "W133": "a Python number is divided by zero at run time",
    "W201": "a traced value has no truth value or number while tracing",
    "W202": "a traced value was used after its trace ended",
    "W203": "an argument array was mutated in traced code",
    "W204": "a traced value belongs to another graph",
    "W301": "no value of that name in the graph",
    "W302": "a placeholder that the fetches need was not fed",
    "W303": "a fed value does not fit its placeholder",
    "W304": "a variable does not fit the value assigned to it",
    "W305": "the elements of a data set or queue do not fit together",
    "W401": "not a device, or no such device",
    "W402": "target CPU not supported",
    "W403": "artifact cannot be loaded",
    "W404": "the linker or an extra package is missing",
    "W405": "functions recompiled although on_recompile='error'",
    "W406": "a device that was asked for is not used, as soft placement allows",
    "W407": "what belongs to its process is neither pickled nor copied",
    "W408": "a file cannot be written",
    "W411": "a queue is closed: nothing can be put into it",
    "W412": "a queue is closed and has too few elements",
    "W413": "a step or a call waited longer than it was given",
    "W421": "a device has failed",
    "W501": "IR text does not parse, or breaks a rule of the IR",
    "W601": "the IR breaks one of its rules",
})


def error(
    code: str,
    message: str,
    *,
    locs: Sequence[Loc] = (),
    types: Sequence[TensorType] = (),
    hint: str = "",
) -> Error:
    """The error of class and code ``code``, to be raised by the caller."""
    found = _CLASSES.get(code) or _CLASSES[code[:3]]
    return found(code, message, locs=locs, types=types, hint=hint)
