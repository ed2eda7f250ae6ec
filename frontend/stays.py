"""What belongs to its process: programs, threads and locks, of which no copy can be made."""

from __future__ import annotations

from typing import ClassVar, NoReturn, SupportsIndex

from ..ir.diagnose import error
from .face.source import user_loc


class Stays:
    """Is neither pickled nor copied; ``instead`` says what is done in place of that.

    >>> import copy, weft
    >>> try:
    ...     copy.deepcopy(weft.FIFOQueue(2, "i64[]"))
    ... except TypeError as problem:
    ...     print(problem.hint)
    make one in each process, and send elements
    """

    instead: ClassVar[str] = "make one where it is needed"

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        """Raises BoundError (W407), a TypeError."""
        raise error("W407", f"{type(self).__name__} objects are neither pickled nor copied",
                    locs=user_loc(), hint=self.instead)
