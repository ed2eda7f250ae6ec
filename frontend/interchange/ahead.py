"""``weft.export``: a function, ahead of time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ...ir.diagnose import error
from ...ir.record import replace
from ..engine.methods.bound import Bound
from ..engine.specialisation import stages_of
from ..face.boundary import boundary
from ..face.compile import compile
from ..face.function import Function
from ..face.source import user_loc
from .export import ExportJob, write_artifact


@boundary
def export(function: Any, *specs: Any, path: str | Path, target: str | None = None) -> Path:
    """Write a function ahead of time as a folder: object file, C header, weights, plan, manifest.

    See ``frontend.interchange.export`` for what is in it; ``weft.load(path)`` runs it without a
    compiler. ``target`` defaults to x86-64-v3, so that the artifact runs on other machines.
    """
    if not callable(function):
        raise error("W112", f"what is exported is a function, not {type(function).__name__}",
                    locs=user_loc(), hint="write such as weft.export(f, 'f32[3]', path='model')")
    found = function if isinstance(function, (Function, Bound)) else compile(function)
    base: Function[..., Any] = found.function if isinstance(found, Bound) else found
    specs = (*found.given, *specs) if isinstance(found, Bound) else specs
    options = replace(base.options, target=target, inout="error")  # C has no arrays to give back
    one = Function(base.py_func, options, base.signature, "error", base.disable, staticmethod)
    traced = one.trace(*specs)
    stages, _ = stages_of(traced, options)
    names = base.argument_names(len(traced.in_tree.children[0].children))
    return write_artifact(ExportJob.of(traced, stages, names, target), path)
