"""A shared library from one object file, with whichever linker this machine has.

The object needs libc alone, so every linker can do it: a C compiler that knows where libc is, or
a bare ``ld``, which leaves the symbols of libc to the process that loads the library. Where there
is neither, our own does it (``elf``), as far as it knows the architecture.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from ...ir.diagnose import error
from .. import elf

_LIBRARIES = ("-lm", "-lpthread")
# Workers of the pool are never joined, so the code must stay when the library is closed.
_OPTIONS = ("-z", "nodelete", "-z", "noexecstack", "-z", "relro")


def link_command(object_: str, library: str) -> str:
    """What a person would type."""
    return f"cc -shared -o {library} {object_} {' '.join(_LIBRARIES)} -Wl,-z,nodelete"


def link_shared(object_: Path, library: Path) -> None:
    """Link ``object_`` into the shared library ``library``.

    Raises Error (W404) with what the linker said if there is none or none succeeds.
    """
    said = "there is no cc, gcc, clang or ld on the path"
    for command in _commands(object_, library):
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        if run.returncode == 0:
            return
        library.unlink(missing_ok=True)
        said = (run.stderr.strip() or f"{command[0]} failed").splitlines()[-1]
    try:
        library.write_bytes(elf.link(object_.read_bytes(), library.name))
    except elf.UnlinkableError as problem:
        raise error("W404", f"{library.name} could not be linked: {said}; {problem}",
                    hint=link_command(object_.name, library.name)) from None


def _commands(object_: Path, library: Path) -> Iterator[list[str]]:
    """The commands that are worth a try, best first."""
    driver = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
    bare = next(filter(None, map(shutil.which, ("ld", "ld.lld"))), None)
    files = ["-shared", "-o", str(library), str(object_)]
    options = [*_OPTIONS, "-soname", library.name]
    if driver:
        yield [driver, *files, f"-Wl,{','.join(options)}", "-Wl,--as-needed", *_LIBRARIES]
    if bare:
        yield [bare, *files, *options]
