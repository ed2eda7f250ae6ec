"""The control block of one run of a native program: what has failed, and whether to go on.

    i32 status    0 while all is well; else a check that failed (``noted``), or below 0 an end
    i64 owner     the thread that runs the program
    i64 polled    when that thread last asked its caller, in nanoseconds
    ptr hook      i32 (ptr block) of the caller: not 0 ends the run; null, and nothing ends it
    ptr host      void (i64 step, ptr context, ptr block), which runs a host step; it makes the
                  status 0 if all went well, and it is ABORTED before
    ptr sized     i32 (ptr block, i64 n): the n-th of the sizes that results count on is known, and
                  the caller makes those that have waited for it; 0 ends the run
    i64 size      that size
    ptr state     the caller's own, as are the next ones
    ptr steps
    ptr call
    ptr loops     of host steps, that native code runs itself (``inner``); null if there are none

Loops and launches *poll*: any thread learns from ``status`` that the run is over; the owner also
asks ``hook``, once in ``PERIOD``, which looks for signals and at the clock, and raises. What then
happens to ``while x > 0: x = x + 0.0`` at Ctrl-C:

    row 2, 64 iterations later    weft_poll(block): 50 ms since ``polled``, so hook(block)
    hook                          PyErr_CheckSignals() raises KeyboardInterrupt: 1
    weft_poll                     status = ABORTED: true
    row 2                         returns ABORTED; the entry drops the results, the error stands

Checks that fail do not end a kernel, as all that it does is safe; of those that fail in one launch
the first in the kernel counts, whichever thread came first: ``status`` keeps the largest
``noted``, and an end is larger than all of them where numbers have no sign.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

ABORTED = -6  # the status of a run that was ended, or in which a host step has raised
PERIOD = 50_000_000  # nanoseconds from one question to the next
OFFSETS: Mapping[str, int] = MappingProxyType(
    {"status": 0, "owner": 8, "polled": 16, "hook": 24, "host": 32, "sized": 40, "size": 48,
     "state": 56, "steps": 64, "call": 72, "loops": 80})
SIZE = 88
_LAST = 0x7FFFFFFF


def noted(site: int) -> int:
    """The status for a check, by its number in the kernel, from 1: earlier ones are larger.

    >>> noted(1) > noted(2) > 0, site_of(noted(2))
    (True, 2)
    """
    return _LAST - site


def site_of(status: int) -> int:
    """The number of the check that a status stands for; an end (below 0) stays what it is."""
    return status if status < 0 else _LAST - status
