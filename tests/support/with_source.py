"""Code of texts that has its source at hand, as that of a file has: what is traced is rewritten."""

from __future__ import annotations

import linecache
from typing import Any


def run(text: str, scope: dict[str, Any]) -> dict[str, Any]:
    """Run a text in a scope, which is given back."""
    name = f"<{text}>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    exec(compile(text, name, "exec"), scope)
    return scope


def function(text: str, scope: dict[str, Any]) -> Any:
    """The function that an expression gives."""
    return run(f"made = {text}", scope)["made"]
