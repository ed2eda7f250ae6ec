"""Data as one HTML page that needs nothing else: no network, no fonts, no libraries."""

from __future__ import annotations

import json
from collections.abc import Mapping
from html import escape
from importlib.resources import files
from typing import Any

SCRIPTS = ("layout.js", "graph.js", "panels.js", "main.js")


def embedded(data: Any) -> str:
    """JSON that can stand in a script element: it has no sign that HTML knows.

    >>> embedded("</script><!-- & é")
    '"\\\\u003c/script\\\\u003e\\\\u003c!-- \\\\u0026 é"'
    """
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    # Halves of pairs, which a name may have, are no UTF-8.
    text = text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def page(data: Mapping[str, Any]) -> str:
    """The page of a document."""
    folder = files(__package__).joinpath("assets")

    def read(name: str) -> str:
        return folder.joinpath(name).read_text(encoding="utf-8")

    title = str(data["title"]).encode("utf-8", "replace").decode("utf-8")
    parts = {"title": escape(title), "style": read("page.css"),
             "data": embedded(data), "script": "\n".join(map(read, SCRIPTS))}
    text = read("page.html")
    # The template is cut first: nothing that is put in is read as a place for more.
    pieces = text.split("{{")
    return pieces[0] + "".join(
        parts[name] + rest for name, _, rest in (piece.partition("}}") for piece in pieces[1:]))


def frame(data: Mapping[str, Any], height: int = 480) -> str:
    """The page as a part of a notebook."""
    return (f'<iframe srcdoc="{escape(page(data))}" sandbox="allow-scripts" '
            f'title="{escape(str(data["title"]))}" '
            f'style="width:100%;height:{height}px;border:1px solid #8884;border-radius:6px">'
            "</iframe>")
