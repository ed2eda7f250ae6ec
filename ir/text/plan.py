"""The item of ``parser`` that is a plan.

    plan    = "plan" @name "(" {slot} ")" "->" "(" {slot} ")" "arena" "=" dim "{" {step} "}"
    slot    = %name: type ["var" string]
    step    = "check" number code string | "require" number ":" dim (">=" | "==") dim
            | "alloc" %name: type "at" dim
            | "launch" @kernel "(" {%name} ")" "on" device | "copy" %name "to" %name

A check may end in ``// from model.py:12 in dense``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from ..kernel import Kernel
from ..plan import Alloc, CheckSite, Copy, Launch, Plan, Require, Slot, Step
from .scanner import Scanner

_CODE = re.compile(r"W\d+")


def plan_item(scanner: Scanner, kernels: Mapping[str, Kernel]) -> Plan:
    """What follows the word ``plan``."""
    scanner.expect("@")
    name = scanner.name("a plan name")
    params = _slots(scanner)
    scanner.expect("->")
    results = _slots(scanner)
    scanner.expect("arena")
    scanner.expect("=")
    arena = scanner.dim()
    scanner.expect("{")
    checks: list[CheckSite] = []
    while scanner.accept("check"):
        if scanner.number() != len(checks) + 1:
            raise scanner.problem("checks are numbered 1, 2, 3, ...")
        code = scanner.take(_CODE, "an error code such as W124")
        message = scanner.string("a message")
        checks.append(CheckSite(code, message, scanner.origin()))
    requires: list[Require] = []
    while scanner.accept("require"):
        requires.append(_require(scanner))
    steps: list[Step] = []
    while not scanner.accept("}"):
        steps.append(_step(scanner))
    return Plan(name, params, results, tuple(steps), arena, dict(kernels), tuple(checks),
                tuple(requires))


def _require(scanner: Scanner) -> Require:
    site = scanner.number()
    scanner.expect(":")
    left = scanner.dim()
    if scanner.accept(">="):
        return Require(left, ">=", scanner.dim(), site)
    scanner.expect("==")
    return Require(left, "==", scanner.dim(), site)


def _buffer(scanner: Scanner) -> str:
    scanner.expect("%")
    return scanner.name("a buffer")


def _slots(scanner: Scanner) -> tuple[Slot, ...]:
    scanner.expect("(")
    slots: list[Slot] = []
    while not scanner.accept(")"):
        if slots:
            scanner.expect(",")
        name = _buffer(scanner)
        scanner.expect(":")
        type_ = scanner.type()
        var = scanner.string("a variable") if scanner.accept("var") else ""
        slots.append(Slot(name, type_, var))
    return tuple(slots)


def _step(scanner: Scanner) -> Step:
    if scanner.accept("alloc"):
        name = _buffer(scanner)
        scanner.expect(":")
        type_ = scanner.type()
        scanner.expect("at")
        return Alloc(name, type_, scanner.dim())
    if scanner.accept("launch"):
        scanner.expect("@")
        kernel = scanner.name("a kernel name")
        scanner.expect("(")
        args: list[str] = []
        while not scanner.accept(")"):
            if args:
                scanner.expect(",")
            args.append(_buffer(scanner))
        scanner.expect("on")
        device, first = scanner.device(), 1
        if scanner.accept("checks"):
            scanner.expect("from")
            first = scanner.number()
        return Launch(kernel, tuple(args), device, first)
    if scanner.accept("copy"):
        source = _buffer(scanner)
        scanner.expect("to")
        return Copy(source, _buffer(scanner))
    raise scanner.problem("expected a step")
