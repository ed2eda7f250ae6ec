"""Texts of programs, as golden files have them and as tests look for words in them."""

from __future__ import annotations

import re


def without_places(text: str) -> str:
    """Functions stay; folders go, and lines are the first of their files: the text parses still."""
    return re.sub(r"/\S*/(\w+\.py):\d+", r"\1:1", text)


def without_notes(text: str) -> str:
    """What is behind a ``//`` in spaces goes: it has paths of files, and a folder may have any
    name. A division, ``k//14``, has none around it."""
    return re.sub(r"[ \t]+// .*", "", text)
