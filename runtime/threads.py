"""How many threads programs may use: what the process may have, or what the user set."""

from __future__ import annotations

import operator
import os
from typing import Any
from weakref import WeakSet

MOST_THREADS = 1 << 16  # more than any machine has; each takes a stack


def available_threads() -> int:
    """OMP_NUM_THREADS, else the CPUs this process may run on.

    A control group's quota counts as its number of whole CPUs.
    """
    asked = os.environ.get("OMP_NUM_THREADS", "").split(",")[0]
    if asked.isdigit() and int(asked) > 0:
        return int(asked)
    return max(1, min(len(os.sched_getaffinity(0)), _quota()))


def _quota() -> int:
    try:
        with open("/sys/fs/cgroup/cpu.max") as file:
            limit, period = file.read().split()
        return max(1, int(limit) // int(period))
    except (OSError, ValueError):
        return 1 << 10


class ThreadLimit:
    """One number for the process, and the programs that follow it."""

    def __init__(self) -> None:
        self._count: int | None = None
        self._followers: WeakSet[Any] = WeakSet()

    def get(self) -> int:
        return self._count if self._count is not None else available_threads()

    def set(self, count: int) -> None:
        self._count = count
        for program in list(self._followers):
            program.threads = count

    def follow(self, program: Any) -> None:
        self._followers.add(program)


_LIMIT = ThreadLimit()
thread_limit = _LIMIT.get
follow_thread_limit = _LIMIT.follow


def set_num_threads(count: int) -> None:
    """Let programs use ``count`` threads from their next call on; 1 starts no threads at all.

    Functions compiled with ``threads=`` keep their own number. Raises TypeError for what is no
    integer, ValueError below 1 and above 65536.

    >>> set_num_threads(1)
    """
    try:
        number = None if isinstance(count, bool) else operator.index(count)
    except TypeError:
        number = None
    if number is None:
        raise TypeError(f"the number of threads is an integer, not {count!r}")
    if not 1 <= number <= MOST_THREADS:
        raise ValueError(f"the number of threads is from 1 to {MOST_THREADS}, not {number}")
    _LIMIT.set(number)
