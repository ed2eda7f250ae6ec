"""What of a compilation a user decides, and the checks of such decisions."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from ...ir.diagnose import Error, error
from ...ir.record import record
from ...runtime.threads import MOST_THREADS
from .loading import load
from .source import user_loc

if TYPE_CHECKING:
    from ...passes.placement.costs import Costs

Hook = Callable[[str, int, int], object]
"""What is told how far a compilation is: step, done, total."""


@record(frozen=True)
class Options:
    """Everything besides the program that decides the code; part of every cache key."""

    opt: int = 2
    target: str | None = None
    threads: int | None = None
    device: str | None = None
    check: tuple[str, ...] = ()
    verify: bool = False
    on_unsupported: str = "error"
    inout: str = "allow"
    devices: tuple[str, ...] = ("cpu:0",)
    soft_placement: bool = False
    costs: Costs | None = None
    transfer: str = ""  # the dtype in which float32 values cross devices, if not in their own
    donate: tuple[str, ...] = ()  # arguments that are needed no more after a call
    timed: bool = False  # the program tells the times of its rows

    def __post_init__(self) -> None:
        """Raises Error (W113) for a value that means nothing."""
        if type(self.opt) is not int or self.opt not in range(4):
            raise error("W113", f"opt={self.opt!r} is no level", locs=user_loc(),
                        hint="use 0, 1, 2 or 3")
        if self.target is not None and not isinstance(self.target, str):
            raise error("W402", f"target={self.target!r} is no name of a CPU", locs=user_loc(),
                        hint="use target='x86-64-v3', or None for this machine")
        if self.target not in (None, "native"):
            try:
                load("codegen.cpu.processors").features_of(self.target)
            except Error as problem:
                problem.locs = user_loc()
                raise
        if self.threads is not None and (
                type(self.threads) is not int or not 1 <= self.threads <= MOST_THREADS):
            raise error("W113", f"threads={self.threads!r} is no number of threads",
                        locs=user_loc(), hint="use 1 or more, or None to follow set_num_threads")
        checked_flag(self.verify, "verify")
        checked_flag(self.soft_placement, "soft_placement")
        if not isinstance(self.on_unsupported, str) or self.on_unsupported not in (
                "error", "host"):
            raise error("W113", f"on_unsupported={self.on_unsupported!r} is not known",
                        locs=user_loc(), hint="use 'error' or 'host'")
        if not isinstance(self.inout, str) or self.inout not in ("allow", "error"):
            raise error("W113", f"inout={self.inout!r} is not known", locs=user_loc(),
                        hint="use 'allow' or 'error'")
        if self.check:
            raise error("W113", f"check={self.check[0]!r} is not supported", locs=user_loc(),
                        hint="leave it out; indices are always checked")


def names_in(given: Any, option: str) -> tuple[str, ...]:
    """The names that an option lists; a text is one. Raises DTypeError (W112) for other things."""
    names = (given,) if isinstance(given, str) else given
    if isinstance(names, Iterable) and not isinstance(names, bytes | np.ndarray):
        found = tuple(names)
        if all(isinstance(name, str) for name in found):
            return found
    raise error("W112", f"{option}={given!r} is neither a name nor a list of names",
                locs=user_loc(), hint=f"write {option}='x', or {option}=('x', 'y')")


def checked_flag(given: Any, option: str) -> None:
    """Raises DTypeError (W112) for an option that is neither True nor False: a text would count as
    True, whatever it says."""
    if not isinstance(given, bool | np.bool_):
        raise error("W112", f"{option}={given!r} is neither True nor False", locs=user_loc(),
                    hint=f"write {option}=True or {option}=False")


def checked_hook(hook: Hook | None) -> Hook | None:
    """A hook, as it was given. Raises Error (W113) for what cannot be called."""
    if hook is not None and not callable(hook):
        raise error("W113", f"progress={hook!r} is no function", locs=user_loc(),
                    hint="give a function of (step, done, total), or leave it out")
    return hook
