"""A step that is cut for devices as boxes: each segment is one, in the lane of its device, and what
crosses from lane to lane is sent."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ...ir.graph import Graph
from ...ir.plans.partition import Partition, Segment
from .items import Drawing, Edge, Item

GraphOf = Callable[[Segment], Graph]


def draw_partition(drawing: Drawing, partition: Partition, graph_of: GraphOf) -> None:
    """Segments, parameters and results of a step; ``graph_of`` gives what is drawn of a segment,
    with parameters and results in the order of its own graph."""
    lanes = {str(device): at for at, device in enumerate(sorted(
        {*partition.devices, *(home for _, home in partition.homes)}, key=str))}
    _Lanes(drawing, lanes, graph_of).step(partition, drawing.root)


class _Lanes:
    """Boxes in lanes of devices."""

    def __init__(self, drawing: Drawing, lanes: Mapping[str, int], graph_of: GraphOf) -> None:
        self.drawing, self.lanes, self.graph_of = drawing, lanes, graph_of

    def put(self, item: Item, device: str) -> Item:
        """A box in the lane of its device."""
        item.facts |= {"device": device, "lane": self.lanes.get(device, 0)}
        return item

    def step(self, partition: Partition, into: Item) -> None:
        """A step, or the body of a loop or branch that has segments of its own."""
        homes = {name: str(device) for name, device in partition.homes}
        first: dict[str, str] = {}
        for segment in partition.segments:
            for key in segment.takes:
                first.setdefault(key, str(segment.device))
        makers: dict[str, list[tuple[Item, str]]] = {}  # with the device of each
        for slot in partition.params:
            device = homes.get(slot.var) or first.get(slot.name) or next(iter(self.lanes), "")
            pill = self.drawing.pill("param", slot.var or slot.name, slot.type,
                                     "variable" if slot.var else "parameter")
            into.add(self.put(pill, device))
            makers[slot.name] = [(pill, device)]
        boxes: list[Item] = []
        for number, segment in enumerate(partition.segments):
            boxes.append(self.segment(number, segment, into, makers, boxes))
        for slot in partition.results:
            device = next((at for _, at in makers.get(slot.name, ())), "")
            pill = self.drawing.pill("result", slot.var or slot.name, slot.type,
                                     "new value of the variable" if slot.var else "result")
            into.add(self.put(pill, homes.get(slot.var) or device))
            for maker, _ in makers.get(slot.name, ()):
                self.drawing.edges.append(self.edge(maker, pill, str(slot.type)))

    def edge(self, source: Item, target: Item, text: str) -> Edge:
        """An edge, which is a send where it leaves its lane."""
        lanes = [next((box.facts["lane"] for box in (item, *item.around())
                       if "lane" in box.facts), 0) for item in (source, target)]
        return Edge(source, target, text, "value" if lanes[0] == lanes[1] else "send")

    def segment(self, number: int, segment: Segment, into: Item,
                makers: dict[str, list[tuple[Item, str]]], boxes: Sequence[Item]) -> Item:
        """The box of a segment; ``makers`` learns what it gives, ``boxes`` are those before it."""
        device = str(segment.device)
        box = into.add(self.put(Item("segment", f"segment {number}"), device))
        box.facts |= {"name": segment.graph.name, "op": "waits for a resource" if segment.resource
                      else "run by the executor" if segment.bodies else "looks at a size"
                      if segment.measured else f"program on {device}"}
        graph = self.graph_of(segment)
        drawing = self.drawing
        before = len(drawing.edges)
        for key, value in zip(segment.takes, graph.params, strict=True):
            drawing.made(value, *(maker for maker, _ in makers.get(key, ())))
        if segment.bodies:
            for name, body in segment.bodies:
                inner = box.add(self.put(Item("body", name), device))
                self.step(body, inner)
            for value in graph.params:
                drawing.read(box, [value])
            ends = [[box] for _ in graph.results]
        else:
            drawing.body(graph, box, "")
            ends = [list(drawing.makers(value)) for value in graph.results]
        for at, edge in enumerate(drawing.edges[before:], before):
            drawing.edges[at] = edge if edge.kind == "order" else self.edge(
                edge.source, edge.target, edge.text)
        for key, found in zip(segment.gives, ends, strict=True):
            makers[key] = [(maker, device) for maker in found]
        for earlier in segment.after:
            drawing.edges.append(Edge(boxes[earlier], box, "", "order"))
        return box
