"""What a page shows, as data: views of graphs, with the tables of places and texts they share."""

from __future__ import annotations

import linecache
from collections.abc import Mapping
from typing import Any

from ...ir.graph import Graph
from ...ir.loc import Loc
from ...ir.record import field, record
from ...ir.text.printer import print_graph
from ...passes.placement.costs import Costs
from .items import Drawing, Item
from .nest import insides, nest


@record
class Document:
    """The data of a page, in the making: places and texts of the program stand in it once."""

    costs: Costs
    data: dict[str, Any] = field(default_factory=dict)
    _locs: dict[Loc, int] = field(default_factory=dict)
    _texts: dict[str, int] = field(default_factory=dict)

    def loc(self, loc: Loc) -> int:
        """The number of a place in the user's code."""
        return self._locs.setdefault(loc, len(self._locs))

    def text(self, text: str) -> int:
        """The number of a text."""
        return self._texts.setdefault(text, len(self._texts))

    def add_view(self, name: str, label: str, drawing: Drawing, text: str) -> None:
        """A stage as a picture and as a text."""
        nest(drawing)
        inside = insides(drawing)
        items: list[Item] = []
        pending = [drawing.root]
        while pending:
            item = pending.pop()
            item.id = len(items)
            items.append(item)
            pending += reversed(item.children)
        self.data.setdefault("views", []).append({
            "id": name, "label": label, "text": text, "items": [
                {**self._item(item), **({} if item not in inside else self._inside(inside[item]))}
                for item in items]})

    def _item(self, item: Item) -> dict[str, Any]:
        found: dict[str, Any] = {"k": item.kind, "l": item.label}
        if item.parent is not None:
            found["p"] = item.parent.id
        if item.locs:
            found["s"] = [self.loc(loc) for loc in item.locs]
        return found | {_SHORT.get(name, name): self.text(value) if name in _SHARED else value
                        for name, value in item.facts.items()}

    def _inside(self, inside: Any) -> dict[str, Any]:
        return {
            "i": [child.id for child in inside.children],
            "o": [[out, item.id] for out, item in inside.ports],
            "e": [[source, target, self.text(texts[0]) if len(texts) == 1 else -1, len(texts),
                   _EDGES.index(kind)] for (source, target), (texts, kind) in inside.edges.items()],
            "r": inside.rows()}

    def finished(self) -> dict[str, Any]:
        """The data with its tables."""
        files = sorted({loc.file for loc in self._locs})
        self.data["files"] = files
        self.data["locs"] = [[files.index(loc.file), loc.line, loc.function,
                              linecache.getline(loc.file, loc.line).strip()]
                             for loc in self._locs]
        self.data["texts"] = list(self._texts)
        return self.data


_EDGES = ("value", "order", "send")
_SHORT = {"name": "n", "key": "x", "op": "q", "type": "t", "family": "f", "device": "d",
          "bytes": "b", "attrs": "a", "with": "w"}
_SHARED = ("op", "type", "family", "device", "attrs")


def graph_document(graph: Graph, sizes: Mapping[str, int] | None = None) -> dict[str, Any]:
    """The data of a page that shows one graph and nothing that becomes of it."""
    document = Document(Costs(sizes=dict(sizes or {})))
    drawing = Drawing(document.costs)
    drawing.whole(graph)
    document.add_view("trace", "Graph", drawing, print_graph(graph))
    document.data |= {"title": graph.name, "sizes": {}, "kernels": [], "memory": []}
    return document.finished()
