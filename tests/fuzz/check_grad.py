"""Gradients of smooth float64 programs beside central differences of the Python function."""

from __future__ import annotations

from typing import Any

import numpy as np

import weft

from . import prelude
from .compiled import ERRORS, Compiled, Refused
from .excused import excused
from .oracle import Oracle, differs, load
from .prelude import laid
from .program import ArgSet, Program, Settings

STEP = 1e-4
LARGE = 1e5  # to a float32 the fraction of such a number is noise


def check_grad(program: Program, mismatch: type[Exception]) -> None:
    """The derivative along random directions, at two widths that say how sure the number is."""
    floats = [at for at, param in enumerate(program.params) if any(
        leaf.name == param and leaf.kind == "array" and leaf.dtype == "f8"
        for leaf in program.leaves)]
    if not floats:
        return
    oracle = Oracle(program)
    scope = prelude.scope()
    function, _ = load(program.source(), scope)(lambda f: f, prelude.Held)
    gradients = {settings: _gradient(program, function, floats, settings)
                 for settings in program.settings}
    rng = np.random.default_rng(program.seed)
    for argset in program.argsets:
        args = program.arguments(argset, laid)
        if oracle.run(args, None).error is not None:
            continue
        try:
            results = [gradient(*args) for gradient in gradients.values()]
        except ERRORS as problem:
            calls = [program.arguments(other, laid) for other in program.argsets]
            if not excused(program, problem, oracle, args, calls):
                raise
            continue
        same = len({way.opt == 0 for way in gradients}) == 1  # else sums have other orders
        for one, other in zip(results[0][1], results[-1][1], strict=True):
            if same and differs(one, other, (), False):
                raise mismatch("gradients differ between two settings", argset)
        value, grads = results[0]
        for at, grad in zip(floats, grads, strict=True):
            if grad.shape != args[at].shape or grad.dtype != args[at].dtype:
                raise mismatch(f"the gradient of p{at} is {grad.dtype}{grad.shape}", argset)
        directions = [rng.normal(size=args[at].shape) for at in floats]
        got = sum(float(np.sum(g * d)) for g, d in zip(grads, directions, strict=True))
        found = [_difference(oracle, args, floats, directions, h)
                 for h in (STEP, STEP / 2, STEP / 4)]
        if not np.all(np.isfinite(found)):
            continue
        want = (4 * found[1] - found[0]) / 3  # Richardson: the error in h**2 cancels
        finer = (4 * found[2] - found[1]) / 3
        scale = 1 + abs(want) + abs(float(value))
        if abs(got - want) > 1e-6 * scale + 20 * abs(want - finer):
            raise mismatch(f"the derivative along a random direction is {got}, "
                           f"differences give {want}", argset)
        _check_narrow(program, oracle, function, floats, argset, grads, gradients, mismatch)


def _check_narrow(program: Program, oracle: Oracle, function: Any, floats: list[int],
                  argset: ArgSet, grads: Any, gradients: dict[Settings, Any],
                  mismatch: type[Exception]) -> None:
    """The gradient in float32 beside that in float64: roughly the same where that is certain.

    It is not where a step divides by what rounding leaves of a 0.
    """
    settings, wide = next(iter(gradients.items()))
    args = program.arguments(argset, laid)
    narrow = [np.asarray(arg, np.float32) if at in floats else arg for at, arg in enumerate(args)]
    if oracle.largest(narrow) > LARGE or oracle.largest(args) > LARGE:
        return
    got = _gradient(program, function, floats, settings, narrow)(*narrow)[1]
    rng = np.random.default_rng(program.seed)
    moved = [[np.asarray(arg * (1 + 1e-6 * rng.normal(size=arg.shape))) if at in floats else arg
              for at, arg in enumerate(args)] for _ in range(3)]
    others = [wide(*other)[1] for other in moved]
    for at, one, want, *spread in zip(floats, got, grads, *others, strict=True):
        if one.dtype != np.float32 or one.shape != want.shape:
            raise mismatch(f"the float32 gradient of p{at} is {one.dtype}{one.shape}", argset)
        scale = 1 + np.max(np.abs(want), initial=0)
        wild = max(np.max(np.abs(other - want), initial=0) for other in spread)
        far = np.max(np.abs(one - want), initial=0)
        if np.isfinite(scale) and wild < 1e-4 * scale and not far <= 1e-2 * scale:
            raise mismatch(f"the float32 gradient of p{at} is {far} from the float64 one", argset)


def _gradient(program: Program, function: Any, floats: list[int], settings: Settings,
              first: list[Any] | None = None) -> Any:
    both = weft.value_and_grad(function, argnums=tuple(floats))
    names = ", ".join(f"p{at}" for at in range(len(program.params)))
    scope: dict[str, Any] = {"both": both}  # dynamic= names parameters, which both does not have
    exec(f"def f({names}):\n    return both({names})", scope)
    options = Compiled(program, settings).options
    compiled = weft.compile(dynamic=program.dynamic, **options)(scope["f"])
    args = first or program.arguments(program.argsets[0], laid)
    try:
        compiled.trace(*args)
    except weft.Error as problem:
        raise Refused(problem) from None
    return compiled


def _difference(oracle: Oracle, args: list[Any], floats: list[int], directions: list[Any],
                h: float) -> float:
    values = []
    for sign in (1, -1):
        moved = list(args)
        for at, direction in zip(floats, directions, strict=True):
            moved[at] = args[at] + sign * h * direction
        answer = oracle.run(moved, None)
        values.append(float(answer.results[0]) if answer.error is None else float("nan"))
    return (values[0] - values[1]) / (2 * h)

