"""Texts of programs, as golden files have them."""

from __future__ import annotations

import re


def without_places(text: str) -> str:
    """Functions stay; folders go, and lines are the first of their files: the text parses still."""
    return re.sub(r"/\S*/(\w+\.py):\d+", r"\1:1", text)
