"""Vectors of which one lane comes after the other, as they are stored side by side.

    a0 a1 a2 a3,  b0 b1 b2 b3,  c0 c1 c2 c3   ->   a0 b0 c0 a1 b1 c1 a2 b2 c2 a3 b3 c3
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..text import FunctionText
from ..types import vector_type


def interleaved(f: FunctionText, element: str, refs: Sequence[str], width: int) -> str:
    """One lane of each of two to four vectors of ``width`` elements, then the next one of each."""
    count, half = len(refs), -(-len(refs) // 2)
    low, high = (_joined(f, element, part, width) for part in (refs[:half], refs[half:]))
    if count % 2:  # as long as the first: what is beyond is nobody's
        high = _shuffled(f, element, (high, "poison"), width, [*range(width)] * half)
    return _shuffled(f, element, (low, high), half * width,
                     [at % count * width + at // count for at in range(count * width)])


def _joined(f: FunctionText, element: str, refs: Sequence[str], width: int) -> str:
    """One vector, or two after each other."""
    return refs[0] if len(refs) == 1 else _shuffled(
        f, element, (refs[0], refs[1]), width, range(2 * width))


def _shuffled(
    f: FunctionText, element: str, pair: tuple[str, str], width: int, lanes: Iterable[int]
) -> str:
    """These lanes of two vectors of ``width``."""
    type_, order = vector_type(element, width), [f"i32 {lane}" for lane in lanes]
    return f(f"shufflevector {type_} {pair[0]}, {type_} {pair[1]}, "
             f"<{len(order)} x i32> <{', '.join(order)}>")
