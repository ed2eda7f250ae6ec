"""Feeds worker processes with batches of programs, and survives those that crash or hang.

A worker says which program it starts. When it dies, or says nothing for too long, that program is
the finding, and another worker goes on with the next one.
"""

from __future__ import annotations

import json
import pickle
import queue
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from .draw import program
from .minimise import minimise
from .program import Program
from .script import script

Report = dict[str, Any]
Crashed = Callable[[int, int, str, list[str], float], Report]
WORKER = (sys.executable, "-m", "fuzz.worker")
FOLDER = Path(__file__).resolve().parents[1]
BATCH = 200     # programs of one process, which no other one can have disturbed
PATIENCE = 180  # seconds without a word before a program counts as hanging


def run(seed: int, count: int, jobs: int, *, first: int = 0, seconds: float = 10.0,
        command: Sequence[str] = WORKER, patience: float = PATIENCE,
        seen: Callable[[Report], None] = lambda report: None,
        crashed: Crashed | None = None) -> list[Report]:
    """The reports of all programs, in order; ``seen`` gets each as it comes, ``crashed`` makes
    that of one that took its worker along."""
    ranges: queue.Queue[tuple[int, int]] = queue.Queue()
    batch = max(1, min(BATCH, -(-count // max(jobs, 1))))
    for start in range(first, first + count, batch):
        ranges.put((start, min(start + batch, first + count)))
    reports: list[Report] = []
    lock = threading.Lock()

    def work() -> None:
        while True:
            try:
                start, stop = ranges.get_nowait()
            except queue.Empty:
                return
            for report in _batch(seed, start, stop, seconds, command, patience,
                                 crashed or _crashed):
                with lock:
                    reports.append(report)
                    seen(report)

    with ThreadPoolExecutor(jobs) as pool:
        for worker in [pool.submit(work) for _ in range(jobs)]:
            worker.result()
    return sorted(reports, key=lambda report: int(report["done"]))


def _batch(seed: int, first: int, last: int, seconds: float, command: Sequence[str],
           patience: float, crashed: Crashed) -> Iterator[Report]:
    """The reports of a range, by as many workers as it takes."""
    while first < last:
        running, ended, spoke = None, None, False
        for line in _lines([*command, str(seed), str(first), str(last), str(seconds)], patience):
            spoke = spoke or "end" not in line
            if "start" in line:
                running = int(line["start"])
            elif "done" in line:
                first, running = int(line["done"]) + 1, None
                yield line
            else:
                ended = line
        if not spoke:
            raise RuntimeError(f"a worker did not start: {(ended or {}).get('end')}")
        if first < last:
            number = first if running is None else running
            yield crashed(seed, number, str((ended or {}).get("end", "the worker ended")),
                          list(command), seconds)
            first = number + 1


def _lines(command: Sequence[str], patience: float) -> Iterator[dict[str, Any]]:
    """What a worker says; at last ``{"end": how}`` if it did not end well."""
    with tempfile.TemporaryFile("w+") as errors, subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=errors, text=True, cwd=FOLDER) as process:
        hung = threading.Event()

        def stop() -> None:
            hung.set()
            process.kill()

        assert process.stdout is not None
        timer = threading.Timer(patience, stop)
        timer.start()
        for text in process.stdout:
            timer.cancel()
            timer = threading.Timer(patience, stop)
            timer.start()
            if text.startswith("{"):
                yield json.loads(text)
        code = process.wait()
        timer.cancel()
        if hung.is_set():
            yield {"end": f"hang: no result in {patience:.0f} s"}
        elif code:
            errors.seek(0)
            trace = [line for line in errors.read().splitlines() if line.strip()][-12:]
            how = f"signal {-code}" if code < 0 else f"exit code {code}"
            yield {"end": "\n".join([f"crash: {how}", *trace])}


def _crashed(seed: int, number: int, how: str, command: list[str], seconds: float) -> Report:
    """The report of a program that took its worker along, made smaller in processes of its own."""
    try:
        drawn = program(seed, number)
    except Exception as problem:  # it is the drawing that failed
        return {"done": number, "verdict": "finding", "what": f"not drawn: {problem!r}\n{how}",
                "features": [], "script": ""}
    small = drawn
    if how.startswith("crash: signal"):
        small = minimise(drawn, lambda candidate: _kills(candidate, command), 4 * seconds)
    return {"done": number, "verdict": "finding", "what": how, "features": drawn.features,
            "script": script(small, how)}


def _kills(candidate: Program, command: list[str]) -> bool:
    with tempfile.NamedTemporaryFile(suffix=".program") as file:
        file.write(pickle.dumps(candidate))
        file.flush()
        try:
            code = subprocess.run([*command, "--one", file.name], cwd=FOLDER, timeout=60,
                                  capture_output=True, check=False).returncode
        except subprocess.TimeoutExpired:
            return False
    return code < 0
