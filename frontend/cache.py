"""``weft.cache``: the machine code that Weft keeps on disk from process to process.

    weft.cache.info()      CacheState(folder='/home/me/.cache/weft', entries=12, bytes=81920)
    weft.cache.verify()    removes what is not what was stored; the keys of that
    weft.cache.clear()     removes all; how much that was
"""

from __future__ import annotations

import os
from typing import NamedTuple

from ..codegen.cache import cache
from .face.boundary import boundary


class CacheState(NamedTuple):
    """The folder, '' where there is no cache; how many entries it has, and their bytes."""

    folder: str
    entries: int
    bytes: int


@boundary
def info() -> CacheState:
    """What is kept now.

    >>> info().entries >= 0
    True
    """
    store = cache()
    if store is None:
        return CacheState("", 0, 0)
    entries = store.entries()
    return CacheState(os.path.dirname(store.folder), len(entries),
                      sum(each.size for each in entries))


@boundary
def verify() -> list[str]:
    """Look at all entries, and remove those that are damaged; their keys."""
    store = cache()
    return [] if store is None else store.verify()


@boundary
def clear() -> int:
    """Remove all entries; how many there were."""
    store = cache()
    return 0 if store is None else store.clear()
