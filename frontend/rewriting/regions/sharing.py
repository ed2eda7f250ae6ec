"""Which leaves that a loop carries may have one memory when a round begins, and at the end.

                  first   after a round
    u, v = v, u   A, B    v, u            never one; each of them A or B
    w = u         C       u               A, B or C, and one with v after that

A round is traced with what is known, and again if it shows more: what two names have in common
after it, and whose memory a name has that another one, or an array around the loop, had before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ....ir.record import field, record

Key = tuple[int, int]  # the number of a name, and of a leaf in its nest


@record(frozen=True)
class Sharing:
    """Pairs of leaves that may have one memory, and by id the arrays around the loop whose memory
    each leaf may have."""

    pairs: frozenset[frozenset[Key]] = frozenset()
    around: Mapping[Key, Mapping[int, Any]] = field(default_factory=dict)

    def grown(self, pairs: set[frozenset[Key]], around: Mapping[Key, Mapping[int, Any]],
              moved: Mapping[Key, Sequence[Key]]) -> Sharing:
        """With what one more round shows; ``moved`` are the leaves that had the memory of each."""
        found = {key: {**self.around.get(key, {}), **arrays} for key, arrays in around.items()}
        size = -1
        while size != (size := sum(map(len, found.values()))):
            for key, before in moved.items():
                for other in before:
                    found[key] |= found[other]
        return Sharing(self.pairs | pairs, found)

    def is_like(self, other: Sharing) -> bool:
        """Whether both say the same."""
        return self.pairs == other.pairs and all(
            found.keys() == other.around.get(key, {}).keys() for key, found in self.around.items())
