"""Letters for the axes of arrays: one each, and enough for any number of arrays of 64 dims."""

from __future__ import annotations

from string import ascii_letters

LETTERS = ascii_letters + "".join(filter(str.isalpha, map(chr, range(0x3B1, 0x2000))))
"""a to z and A to Z, which do for nearly all; then those of other alphabets."""
