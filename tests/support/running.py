"""Running things beside a test: in several threads at once, in a Python process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any


def in_threads(*works: Callable[[], Any]) -> None:
    """Run all at once; raises what the first of them raised."""
    problems: list[BaseException] = []

    def guarded(work: Callable[[], Any]) -> None:
        try:
            work()
        except BaseException as problem:
            problems.append(problem)

    threads = [threading.Thread(target=guarded, args=(work,), daemon=True) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    if problems:
        raise problems[0]
    assert not any(thread.is_alive() for thread in threads), "they wait for each other"


def python(code: str, *args: str, cwd: Path | None = None, timeout: float = 100,
           **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a program from a file, as code has its source there; it may import this folder.
    ``environment`` is added to that of the test."""
    path = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "program.py"
        file.write_text(code, encoding="utf-8")
        return subprocess.run(
            [sys.executable, str(file), *args], cwd=cwd, timeout=timeout, text=True,
            capture_output=True, check=False,
            env={**os.environ, "PYTHONPATH": path.rstrip(os.pathsep), **environment})


def python_functions(call: Callable[[], Any], of: str = "") -> list[str]:
    """The names of the Python functions that a call runs, itself apart: all, or those of modules
    whose names begin so."""
    names: list[str] = []

    def note(frame: Any, event: str, _: Any) -> None:
        if event == "call" and frame.f_globals.get("__name__", "").startswith(of):
            names.append(frame.f_code.co_name)

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    return names if of else names[1:]
