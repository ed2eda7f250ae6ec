"""Values of LLVM IR as emitters hand them on: a name with what it stands for."""

from __future__ import annotations

from collections.abc import Callable

from ....ir.record import record
from ....ir.types import DTYPES
from ..text import FunctionText
from ..types import LLVM_TYPES, vector_type


@record(frozen=True)
class LlvmValue:
    """An SSA value of ``width`` elements (1: a scalar); ``dtype`` is a dtype's name."""

    ref: str
    dtype: str
    width: int = 1

    @property
    def element(self) -> str:
        return LLVM_TYPES[self.dtype]

    @property
    def type(self) -> str:
        return vector_type(self.element, self.width)

    @property
    def known(self) -> int | None:
        """The number that an integer constant stands for."""
        if not DTYPES[self.dtype].is_int or not self.ref.lstrip("-").isdigit():
            return None
        return int(self.ref) % (1 << DTYPES[self.dtype].bits) if self.dtype[0] == "u" else int(
            self.ref)


@record(frozen=True)
class LlvmPair(LlvmValue):
    """Elements and, as wide, an integer ``place`` of each: two registers that are one name."""

    place: str = "i64"

    @property
    def type(self) -> str:
        return f"{{{super().type}, {vector_type(LLVM_TYPES[self.place], self.width)}}}"


def parts(f: FunctionText, value: LlvmValue, width: int) -> list[LlvmValue]:
    """A vector cut into parts of so many lanes."""
    if width == value.width:
        return [value]
    found = []
    for first in range(0, value.width, width):
        if width == 1:
            ref = f(f"extractelement {value.type} {value.ref}, i64 {first}")
        else:
            mask = ", ".join(f"i32 {first + lane}" for lane in range(width))
            ref = f(f"shufflevector {value.type} {value.ref}, {value.type} poison, "
                    f"<{width} x i32> <{mask}>")
        found.append(LlvmValue(ref, value.dtype, width))
    return found


def halved(
    f: FunctionText, value: LlvmValue, combine: Callable[[LlvmValue, LlvmValue], LlvmValue]
) -> LlvmValue:
    """The halves of a vector combined until one lane is left."""
    while value.width > 1:
        value = combine(*parts(f, value, value.width // 2))
    return value
