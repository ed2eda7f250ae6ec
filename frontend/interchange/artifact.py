"""Loaded artifacts where functions are traced: code compiled ahead of time cannot be traced."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...codegen.artifact.link import link_shared
from ...ir.diagnose import error
from ...ir.plans.entry import SCALARS
from ...ir.types import DTYPES
from ...runtime import artifact as loader
from ..face import tree
from ..face.boundary import boundary
from ..face.source import user_loc
from ..tracing.context.active import context_for
from ..tracing.context.recorder import ACTIVE

_PLAIN = frozenset((np.ndarray, *(kind for kind, _ in SCALARS.values()),
                    *(dtype.numpy.type for dtype in DTYPES.values())))  # of no trace


class Artifact(loader.Loaded):
    """A loaded artifact that knows of traces; see ``runtime.artifact.Loaded``."""

    @boundary
    def __call__(self, *args: Any, **named: Any) -> Any:
        """Call the function as it was exported; see ``Loaded``.

        Raises TracerError (W201) while a function is traced.
        """
        if named or ACTIVE.get() is not None or not _PLAIN.issuperset(map(type, args)):
            self._check((args, named))
        return super().__call__(*args, **named)

    @boundary
    def run(self, names: str | Sequence[str] | None, feeds: Mapping[str, Any]) -> Any:
        """Outputs by name; see ``Loaded``. Raises TracerError (W201) while tracing."""
        self._check(dict(feeds))
        return super().run(names, feeds)

    def _check(self, arguments: Any) -> None:
        if context_for(tree.leaves(arguments)) is not None:
            raise error("W201", f"{self.name} was compiled ahead of time and cannot be part of a "
                                "traced function", locs=user_loc(),
                        hint="call it outside and pass its results, or compile the original "
                             "function, which can be traced")


@boundary
def load(
    path: str | os.PathLike[str], threads: int | None = None,
    weights: str | os.PathLike[str] | None = None,
) -> Artifact:
    """The artifact in the folder ``path``, ready to be called.

    ``threads`` is the most a call may use; by default ``weft.set_num_threads`` says it.
    ``weights`` is a safetensors file with other values for the artifact's weights, of the same
    names, dtypes and shapes.

    Its files are verified (SHA-256) and copied as they are read: what happens to them later is not
    seen. Nobody can tell damage from intent in a folder that somebody else may write to.

    Raises:
        Error: (W403) the folder is no artifact, or is not what was written, or one for other
            versions, another CPU or another platform; (W404) it was exported where there was no
            linker, and there is none here.
    """
    return Artifact(*loader.opened(path, threads, weights, link_shared))
