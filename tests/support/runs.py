"""Runs of programs that are called as they are, without what knows their errors."""

from __future__ import annotations

from typing import Any, NoReturn

from weft.runtime.entry.layout import Array
from weft.runtime.entry.through_ctypes import CtypesCall


class FailedRunError(Exception):
    """A run has ended with a status."""


def fail(status: int) -> NoReturn:
    """What a call is given to raise."""
    raise FailedRunError(status)


def attempted(call: CtypesCall, *args: Any) -> tuple[int, list[Array]]:
    """The status of a run and, if that is 0, its results."""
    try:
        found = call.attempt(*args)
    except FailedRunError as failed:
        return failed.args[0], []
    assert found is not None, "the arguments do not fit"
    return found
