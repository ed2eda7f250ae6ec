"""``python -m bench gpu``: times, or with ``--checks`` whether results are right."""

from __future__ import annotations

import sys
from datetime import date

from weft.frontend.engine.building.gpu import gpu_device
from weft.runtime.device.cuda import Cuda, find_driver


def run_gpu(checks: bool) -> None:
    """Print the card, the date, and a table. Ends the process where there is no GPU, or something
    is wrong."""
    device = gpu_device("gpu:0")
    if not isinstance(device, Cuda):
        sys.exit(f"python -m bench gpu needs a GPU: {find_driver()[2] or 'it is interpreted'}")
    print(f"{device.context.model}, {date.today()}", flush=True)
    if checks:
        from .checks import run_checks

        sys.exit(run_checks() > 0)
    from .speeds import run_speeds

    run_speeds()
