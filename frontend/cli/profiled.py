"""``weft profile``: a program run as its own main module, and the table of where its time went."""

from __future__ import annotations

import os
import runpy
import sys
from collections.abc import Sequence

from ..profiling.profile import profile


def run_profiled(file: str, arguments: Sequence[str], trace: str | None, lines: bool,
                 rows: int) -> None:
    """Run a file with these arguments, print its profile to stderr, and write its trace.

    The table comes however the program ends; what the program raises goes on after it.
    """
    before = sys.argv, sys.path[0]
    sys.argv, sys.path[0] = [file, *arguments], os.path.dirname(os.path.abspath(file))
    measured = profile(trace)
    try:
        with measured:
            runpy.run_path(file, run_name="__main__")
    except SyntaxError as problem:
        problem.filename = problem.filename or file  # not known of what is no text at all
        raise
    finally:
        sys.argv, sys.path[0] = before
        text = measured.by_line() if lines else measured.table(rows)
        print(f"\n{text}", file=sys.stderr)
        if trace is not None:
            print(f"wrote {trace}", file=sys.stderr)
