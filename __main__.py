"""``python -m weft`` is the ``weft`` command."""

import sys

from .frontend.cli import main

sys.exit(main())
