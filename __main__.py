"""``python -m weft`` is the ``weft`` command."""

import sys

from .frontend.cli.main import main

sys.exit(main())
