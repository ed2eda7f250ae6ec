"""Locks on files and folders, which last until they are given back or the process ends.

The system counts a forked child as one more who holds them. It is none: it closes its handles of
what other threads had locked, and would else wait for itself, or keep others waiting.
"""

from __future__ import annotations

import fcntl
import os
import threading
from pathlib import Path


class _Handles:
    """The handles that are open in this process, and the threads that opened them."""

    def __init__(self) -> None:
        self._threads: dict[int, int] = {}

    def open(self, path: Path, flags: int = os.O_RDONLY) -> int:
        """A handle, which may be locked. Raises OSError."""
        handle = os.open(path, flags)
        self._threads[handle] = threading.get_ident()
        return handle

    def close(self, handle: int) -> None:
        """Close a handle, and give back its lock: children may have it open, too."""
        del self._threads[handle]
        try:
            fcntl.flock(handle, fcntl.LOCK_UN)
        except OSError:  # a file system without locks
            pass
        finally:
            os.close(handle)

    def forked(self) -> None:
        for handle, thread in list(self._threads.items()):
            if thread != threading.get_ident():
                del self._threads[handle]
                os.close(handle)


_HANDLES = _Handles()
open_handle = _HANDLES.open
close_handle = _HANDLES.close
os.register_at_fork(after_in_child=_HANDLES.forked)
