"""A process that does one thing after the other for this one: start it, ask it, see it end.

It is started when it is first asked. Whoever stops waiting, by a deadline or a signal, ends it,
since it cannot be told to stop: the next question starts another one. All that is to outlast it
lies in memory that both share.
"""

from __future__ import annotations

import json
import os
import select
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from typing import Any

from ...ir.diagnose import error
from ..lifetime import Lifetime
from .device import Look

Command = Callable[[int, int], list[str]]
"""What starts the process, given the file descriptors of its memory and of its socket."""

PATIENCE = 600.0  # seconds in which a process has to begin
_GLANCE = 0.05    # between two looks at why one waits
_SAID = 300       # characters of a process's last words


class Process:
    """One process, from its start to its end; to be asked by one thread at a time."""

    def __init__(self, name: str, command: Command, memory: int) -> None:
        self._name, self._owner = name, os.getpid()
        near, far = socket.socketpair()
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 (closed with the process)
        try:
            self._process = subprocess.Popen(
                command(memory, far.fileno()), pass_fds=(memory, far.fileno()),
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=self._said,
                start_new_session=True)  # Ctrl-C is for this process
        except OSError as problem:
            near.close()
            raise error("W421", f"{name} cannot start: {problem}") from None
        finally:
            far.close()
        self._socket, self._read = near, b""
        self._busy = self._begun = False
        process, owner, said = self._process, self._owner, self._said

        def end() -> None:
            near.close()
            said.close()
            if owner == os.getpid():
                process.kill()
                process.wait()

        self._life: Lifetime | None = Lifetime(end)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def ready(self) -> bool:
        """Whether it can be asked: not by a fork of who started it, nor by a signal handler while
        it is being asked."""
        return self._life is not None and self._owner == os.getpid() and not self._busy

    def ask(self, question: Mapping[str, Any], look: Look) -> dict[str, Any]:
        """The answer. Raises DeviceLostError (W421) if the process ends, and what ``look`` raises;
        it is not ``ready`` any more then."""
        self._busy = True
        try:
            if not self._begun:
                self._check(self._answer(look, time.monotonic() + PATIENCE))
                self._begun = True
            self._socket.sendall(json.dumps(question).encode() + b"\n")
            answer = self._answer(look)
            self._busy = False
            return answer
        except ConnectionError:
            raise self._lost() from None
        except BaseException:
            self.end()
            raise

    def _check(self, answer: Mapping[str, Any]) -> None:
        if "error" in answer:
            raise error("W421", f"{self._name}: {answer['error']}")

    def _answer(self, look: Look, until: float = float("inf")) -> dict[str, Any]:
        ready = select.poll()
        ready.register(self._socket, select.POLLIN)
        while b"\n" not in self._read:
            if ready.poll(1e3 * _GLANCE):
                more = self._socket.recv(1 << 16)
                if not more:
                    raise self._lost()
                self._read += more
            if time.monotonic() > until:
                raise error("W421", f"{self._name} has not started after {PATIENCE:.0f} s")
            look()
        line, _, self._read = self._read.partition(b"\n")
        found: dict[str, Any] = json.loads(line)
        return found

    def _lost(self) -> Exception:
        """The error of a process that has ended."""
        try:
            code = self._process.wait(_GLANCE * 100)
        except subprocess.TimeoutExpired:  # it has closed the socket, and does not end
            self._process.kill()
            code = self._process.wait()
        self._said.seek(max(0, self._said.seek(0, os.SEEK_END) - _SAID))
        last = self._said.read().decode(errors="replace").strip().rpartition("\n")[2]
        how = f"by signal {-code}" if code < 0 else f"with status {code}"
        self.end()
        return error("W421", f"the process of {self._name} has ended {how}"
                             f"{f': {last}' if last and code >= 0 else ''}",
                     hint="run the step again: it starts a new one; no variable has changed")

    def end(self) -> None:
        """End the process, if it has not ended."""
        self._life = None
