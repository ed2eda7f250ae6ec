"""How the arguments of a call of NumPy's function reach the body that is traced for it."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ...ir.diagnose import error


@functools.cache
def _signature(function: Callable[..., Any]) -> inspect.Signature | None:
    """The parameters of a function; None for a built-in one that does not tell."""
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return None


def parameters(function: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    signature = _signature(function)
    return signature.parameters if signature is not None else {}


class _Binding:
    """How the arguments of NumPy's ``function`` reach ``found``; looked up once for a function."""

    def __init__(self, function: Callable[..., Any], found: Callable[..., Any]) -> None:
        signature = _signature(function) or _signature(found)
        assert signature is not None
        self.signature = signature
        self.known = parameters(found) if not isinstance(found, np.ufunc) else {}
        declared = signature.parameters.values()
        self.plain = bool(self.known) and not any(
            p.kind is p.VAR_POSITIONAL for p in declared)
        named = [p for p in declared if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
        self.defaults = {p.name: p.default for p in named}
        self.positional = [p.name for p in named if p.kind is not p.KEYWORD_ONLY]
        self.required = {p.name for p in named if p.default is p.empty}
        self.keywords = {p.name for p in named if p.kind is not p.POSITIONAL_ONLY}

    def by_name(self, args: tuple[Any, ...], options: dict[str, Any]) -> dict[str, Any] | None:
        """The arguments by name, if that is all there is to tell: ``Signature.bind`` is slow."""
        named = dict(zip(self.positional, args, strict=False))
        fits = (self.plain and len(args) <= len(self.positional)
                and self.keywords >= options.keys() and not (named.keys() & options.keys()))
        named.update(options)
        return named if fits and named.keys() >= self.required else None

    def left_out(self, key: str, value: Any) -> bool:
        """True for a value that says what holds without it."""
        default = self.defaults[key]
        return value is np._NoValue or value is default or (
            key not in self.known and _is_default(key, value, default))


@functools.cache
def _binding(function: Callable[..., Any], found: Callable[..., Any]) -> _Binding | None:
    """None for functions that do not tell their parameters."""
    return _Binding(function, found) if _signature(function) or _signature(found) else None


def bound(
    name: str, function: Callable[..., Any], found: Callable[..., Any], args: tuple[Any, ...],
    options: dict[str, Any],
) -> tuple[list[Any], dict[str, Any]]:
    """The arguments of a call of NumPy's ``function``, by the names it gives them, for ``found``.

    Options that say what holds anyhow are dropped. Raises UnsupportedError (W113) for those that
    ``found`` does not have."""
    binding = _binding(function, found)
    if binding is None:
        return list(args), options
    known = binding.known
    positional: list[Any] = []
    named: dict[str, Any] = {}
    given = binding.by_name(args, options)
    if given is None:
        signature = binding.signature
        try:
            matched = signature.bind(*args, **options)
        except TypeError as problem:
            raise error("W113", f"{name}: {problem}",
                        hint=f"its arguments are {signature}") from None
        given = {}
        for key, value in matched.arguments.items():
            parameter = signature.parameters[key]
            if parameter.kind is parameter.VAR_POSITIONAL:
                positional += [*given.values(), *value]  # which stand behind all that comes first
                given = {}
            elif parameter.kind is parameter.VAR_KEYWORD:
                named.update(value)
            elif not known:  # a ufunc
                positional.append(value)
            else:
                given[key] = value
    named.update({key: value for key, value in given.items() if not binding.left_out(key, value)})
    free = any(p.kind is p.VAR_KEYWORD for p in known.values())
    unknown = [key for key in named if known and not free and key not in known and key != "out"]
    if unknown:
        raise error("W113", f"option {unknown[0]}= of {name} is not supported",
                    hint="leave it out, and write what it does with other NumPy functions"
                         if unknown[0] != "where" else "choose with np.where first")
    return positional, named


def _is_default(key: str, value: Any, default: Any) -> bool:
    """True for an option that says what NumPy does without it."""
    return (key == "where" and value is True) or (
        isinstance(value, (str, int)) and type(value) is type(default) and value == default)
