"""Accesses whose lanes lie apart: each lane is one of its own.

CPUs have instructions for this, but where they were mended against leaks of data (Intel's of seven
generations) a gather takes 25 cycles for eight elements, and AMD's are sums of small steps; eight
loads and what puts them together take six. So lanes are loaded one by one, without branches: those
that are off read zeros. Where lanes are as far apart as their neighbours, all addresses are that of
the first and constants.
"""

from __future__ import annotations

from ..text import FunctionText
from ..types import vector_type

# What lanes read that are off. A page, for the widest vector: a CPU takes hundreds of cycles to
# find out that masked lanes read nothing if their page is not there.
NOWHERE = "@weft_nowhere = internal global [4096 x i8] zeroinitializer, align 4096"


def readable(f: FunctionText, on: str, address: str) -> str:
    """An address, or that of zeros where no lane is on."""
    return f(f"select i1 {on}, ptr {address}, ptr @weft_nowhere")


def apart(f: FunctionText, first: str, step: str, memory: str, width: int) -> list[str]:
    """The addresses of lanes that are ``step`` elements from each other."""
    def at(lane: int) -> str:
        if step.lstrip("-").isdecimal():
            return str(lane * int(step))
        return f(f"mul i64 {step}, {lane}")

    return [first, *(f(f"getelementptr {memory}, ptr {first}, i64 {at(lane)}")
                     for lane in range(1, width))]


def each_of(f: FunctionText, addresses: str, width: int) -> list[str]:
    """The addresses of a vector of them."""
    return [f(f"extractelement <{width} x ptr> {addresses}, i64 {lane}") for lane in range(width)]


def load_lanes(
    f: FunctionText, addresses: list[str], mask: str | None, memory: str, size: int
) -> str:
    """A vector of what lies at the addresses; zeros in lanes that are off."""
    width = len(addresses)
    type_, vector = vector_type(memory, width), "poison"
    for lane, address in enumerate(addresses):
        if mask is not None:
            on = f(f"extractelement <{width} x i1> {mask}, i64 {lane}")
            address = readable(f, on, address)
        one = f(f"load {memory}, ptr {address}, align {size}")
        vector = f(f"insertelement {type_} {vector}, {memory} {one}, i64 {lane}")
    return vector


def store_lanes(f: FunctionText, vector: str, addresses: list[str], memory: str, size: int) -> None:
    """Lay each lane of a vector where its address says."""
    type_ = vector_type(memory, len(addresses))
    for lane, address in enumerate(addresses):
        one = f(f"extractelement {type_} {vector}, i64 {lane}")
        f.do(f"store {memory} {one}, ptr {address}, align {size}")
