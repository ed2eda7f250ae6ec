"""``weft.numpy`` with every call compiled: the namespace that ``run.py --traced`` tests."""

from __future__ import annotations

from types import SimpleNamespace

from calls import wrapped

import weft
import weft.numpy as plain

globals().update(wrapped(plain.__all__, plain))
linalg = SimpleNamespace(**wrapped(plain.linalg.__all__, plain.linalg))
fft = SimpleNamespace(**wrapped(plain.fft.__all__, plain.fft))
__array_api_version__ = plain.__array_api_version__
__array_namespace_info__ = plain.__array_namespace_info__
__version__ = weft.__version__
