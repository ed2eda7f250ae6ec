"""The command: ``python -m fuzz --count 20000 --seed 0 --jobs 2``, run in tests/."""

from __future__ import annotations

import sys
from pathlib import Path

if not __package__:  # python tests/fuzz/__main__.py
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from fuzz.command import main

if __name__ == "__main__":
    sys.exit(main("python -m fuzz", __doc__))
