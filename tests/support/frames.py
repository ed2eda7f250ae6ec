"""How much of the stack the code of x86-64 takes, read from its assembly.

A function's frame is what its prologue pushes and subtracts, what it may lose to alignment, and the
address that it returns to. The deepest chain of frames follows from who calls whom; pointers are
followed for the caller that says what they may point to.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

_LABEL = re.compile(r'"?([^.\s"#][^\s"]*)"?:')
_NUMBER = re.compile(r"\$(-?\d+), %rsp")
_CALLED = re.compile(r"([A-Za-z_][\w.$]*)(@PLT)?$")


@dataclass
class Frame:
    size: int = 8
    calls: set[str] = field(default_factory=set)
    pointers: bool = False  # whether it calls any
    fixed: bool = True      # whether its size is known


def frames_of(assembly: str) -> dict[str, Frame]:
    """The frames of all functions of an assembly text (AT&T)."""
    found: dict[str, Frame] = {}
    frame = Frame()
    for line in assembly.splitlines():
        if label := _LABEL.match(line):
            frame = found[label[1]] = Frame()
            continue
        word, _, rest = line.split("#")[0].strip().partition("\t")
        rest = rest.strip()
        if word == "pushq":
            frame.size += 8
        elif word in ("subq", "addq", "andq") and rest.endswith("%rsp"):
            number = _NUMBER.match(rest)
            if number is None:
                frame.fixed = False
            elif word != "addq" or int(number[1]) < 0:
                frame.size += abs(int(number[1]))
        elif word == "movq" and rest.endswith(", %rsp") and not rest.startswith("%rbp"):
            frame.fixed = False
        elif word in ("callq", "jmp"):
            called = _CALLED.match(rest)
            if called:
                frame.calls.add(called[1])
            elif word == "callq" or rest.startswith("*"):
                frame.pointers = True
    return found


def deepest(
    frames: Mapping[str, Frame], start: str, pointers: Mapping[str, Collection[str]],
    levels: Mapping[str, int],
) -> tuple[int, list[str]]:
    """The bytes of the deepest chain from a function on, and the chain.

    ``pointers`` says what a function calls by pointer, ``levels`` how often one may be on the stack
    that calls itself. Raises ValueError for a frame without a known size, or such a function that
    is not known.
    """
    known: dict[str, tuple[int, list[str]]] = {}

    def of(name: str, around: tuple[str, ...]) -> tuple[int, list[str]]:
        if name in around:
            raise ValueError(f"{name} calls itself: {' -> '.join(around)}")
        if name not in known:
            frame = frames[name]
            if not frame.fixed:
                raise ValueError(f"{name} has a frame of no fixed size")
            called = {*frame.calls, *(pointers.get(name, ()) if frame.pointers else ())} - (
                {name} if name in levels else set())
            below = max((of(each, (*around, name)) for each in called if each in frames),
                        default=(0, []))
            known[name] = frame.size * levels.get(name, 1) + below[0], [name, *below[1]]
        return known[name]

    return of(start, ())
