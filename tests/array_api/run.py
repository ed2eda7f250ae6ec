"""Run the public array-api-tests suite on ``weft.numpy``.

    git clone --recursive https://github.com/data-apis/array-api-tests
    pip install -r array-api-tests/requirements.txt
    python tests/array_api/run.py array-api-tests [--traced] [options of pytest]

With ``--traced`` every call that a test makes is compiled (see ``calls.py``). Tests named in
``exceptions.txt`` may fail, for the reasons given there; those below the line ``# traced`` only
with ``--traced``. They run all the same, so that one that passes is seen (``xpassed``), but not
with ``--traced``, where Hypothesis would compile a thousand programs for each until it has the
smallest that fails: there ARRAY_API_TESTS_XFAIL_MARK=xfail asks for it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
MARK = "# traced\n"


def exceptions(traced: bool) -> str:
    """The lines that name tests which may fail."""
    always, _, tracing = (HERE / "exceptions.txt").read_text(encoding="utf-8").partition(MARK)
    return always + tracing if traced else always


def main(argv: list[str]) -> int:
    traced = "--traced" in argv
    checkout, *options = [arg for arg in argv if arg != "--traced"]
    module = "traced" if traced else "weft.numpy"
    paths = [str(HERE), os.environ.get("PYTHONPATH", "")]
    environment = {"ARRAY_API_TESTS_XFAIL_MARK": "skip" if traced else "xfail",
                   **os.environ, "ARRAY_API_TESTS_MODULE": module,
                   "ARRAY_API_TESTS_VERSION": "2024.12",
                   "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    if not any(option.startswith("array_api_tests") for option in options):
        options.append("array_api_tests")
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as xfails:
        xfails.write(exceptions(traced))
        xfails.flush()
        command = [sys.executable, "-m", "pytest", "-q", "--disable-deadline",
                   "-p", "no:cacheprovider", "--xfails-file", xfails.name, *options]
        return subprocess.run(command, cwd=checkout, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
