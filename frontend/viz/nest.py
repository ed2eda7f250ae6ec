"""Boxes into boxes, so that few are seen at a time: name scopes, then functions, lines and runs.

Boxes that are put into one must not be between others that depend on each other in a circle: of the
scopes that are in such a circle, each run of consecutive boxes becomes a box of its own.

    a/x -> y -> a/z          a, which holds x and z, would be above y and below it:
    [a: x] -> y -> [a: z]    two boxes
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from math import ceil

from ...ir.record import field, record
from .items import CONTAINERS, Drawing, Edge, Item
from .layers import Rows, layers

MOST = 40    # boxes that one may hold before they are put into others
RUN = 24     # boxes of a run, where nothing else tells them apart
BUNDLE = 5   # parameters of the same readers, or results of one maker, that stand by themselves
_OUTER = ("graph", "scope", "segment")

Links = Sequence[tuple[Item, Item]]


def nest(drawing: Drawing) -> None:
    """Put the boxes of a drawing into others where there are many, or where scopes say so."""
    links = _links(drawing.edges)
    for box in list(_boxes(drawing.root)):
        if box.kind in CONTAINERS:
            pills = [child for child in box.children if child.kind in ("param", "result")]
            known = set(pills)
            members = [child for child in box.children if child not in known]
            own = [link for link in links.get(box, ()) if not known & set(link)]
            box.children = pills
            _by_scope(box, members, own, 0)
    _place_pills(drawing)


def _boxes(root: Item) -> Iterator[Item]:
    pending = [root]
    while pending:
        box = pending.pop()
        yield box
        pending += box.children


def _paths(edge: Edge) -> tuple[Item, list[Item], list[Item]] | None:
    """The innermost box that holds both ends, and the boxes from it down to either end, the ends
    included; None where one end holds the other one."""
    ups = [edge.source, *edge.source.around()]
    levels = {box: at for at, box in enumerate(ups)}
    path = [edge.target]
    for box in edge.target.around():
        if box in levels:
            at = levels[box]
            return None if not at else (box, ups[at - 1::-1], path[::-1])
        path.append(box)
    return None


def _links(edges: Iterable[Edge]) -> dict[Item, list[tuple[Item, Item]]]:
    """For each box, which of those in it depend on which."""
    found: dict[Item, dict[tuple[Item, Item], None]] = {}
    for edge in edges:
        paths = _paths(edge)
        if paths is not None:
            box, down, up = paths
            found.setdefault(box, {})[down[0], up[0]] = None
    return {box: list(pairs) for box, pairs in found.items()}


# -- scopes ---------------------------------------------------------------------------------------


def _by_scope(box: Item, members: Sequence[Item], links: Links, depth: int) -> None:
    """Put the members into the box, those of one scope into a box of their own."""
    def scope(item: Item) -> str | None:
        return item.scope[depth] if len(item.scope) > depth else None

    def filled(label: str, group: Sequence[Item], inside: Links) -> Item:
        made = Item("scope", label, locs=group[0].locs, facts={
            "name": "/".join((*group[0].scope[:depth], label)), "op": "name scope"})
        _by_scope(made, group, inside, depth + 1)
        only = made.children[0]
        if len(made.children) == 1 and only.kind == "scope":
            only.label = f"{label}/{only.label}"
            return only
        return made

    _crowded(box, *_grouped(members, links, scope, filled), _KEYS)


def _function(item: Item) -> str | None:
    return f"in {item.locs[0].function}" if item.locs and item.locs[0].function else None


def _line(item: Item) -> str | None:
    return str(item.locs[0]) if item.locs else None


_Key = Callable[[Item], str | None]
_KEYS: tuple[_Key, ...] = (_function, _line)


def _crowded(box: Item, members: Sequence[Item], links: Links, keys: Sequence[_Key]) -> None:
    """Put the members into the box; where they are many, into boxes by these keys, then runs."""
    if len(members) > MOST and keys:
        def filled(label: str, group: Sequence[Item], inside: Links) -> Item:
            made = Item("scope", label, locs=group[0].locs, facts={"op": "lines of the program"})
            _crowded(made, group, inside, keys[1:])
            return made

        grouped, between = _grouped(members, links, keys[0], filled)
        useful = 1 < len(grouped) <= len(members) // 2
        _crowded(box, *((grouped, between) if useful else (members, links)), keys[1:])
        return
    if len(members) > MOST:
        size = max(RUN, ceil(len(members) / MOST))
        place = {member: at // size for at, member in enumerate(members)}
        groups: list[list[tuple[Item, Item]]] = [[] for _ in range(ceil(len(members) / size))]
        for one, other in links:
            if place[one] == place[other]:
                groups[place[one]].append((one, other))
        runs = []
        for at, inside in enumerate(groups):
            group = members[at * size:(at + 1) * size]
            label = f"{group[0].label[:16]} … {group[-1].label[:16]}"
            made = Item("scope", label, locs=group[0].locs,
                        facts={"op": "consecutive operations"})
            _crowded(made, group, inside, ())
            runs.append(made)
        members = runs
    for member in members:
        box.add(member)


def _grouped(
    members: Sequence[Item], links: Links, key: _Key,
    filled: Callable[[str, Sequence[Item], Links], Item],
) -> tuple[list[Item], list[tuple[Item, Item]]]:
    """Members with those of an equal key in a box, in an order in which they depend on earlier ones
    only, and what depends on what. What has no key, or is alone with it, stays as it is."""
    unit = _units(members, links, key)
    groups: dict[int, list[Item]] = {}
    for member in members:
        groups.setdefault(unit[member], []).append(member)
    inside: dict[int, list[tuple[Item, Item]]] = {}
    for one, other in links:
        if unit[one] == unit[other]:
            inside.setdefault(unit[one], []).append((one, other))
    made = {number: group[0] if len(group) == 1 else
            filled(key(group[0]) or "", group, inside.get(number, ()))
            for number, group in groups.items()}
    between = list(dict.fromkeys((made[unit[one]], made[unit[other]]) for one, other in links
                                 if unit[one] != unit[other]))
    return _in_order(list(made.values()), between), between


def _units(members: Sequence[Item], links: Links, key: _Key) -> dict[Item, int]:
    """Which members are one: those of equal keys, unless that closes a circle."""
    import networkx

    numbers: dict[str, int] = {}
    unit: dict[Item, int] = {}
    for at, member in enumerate(members):
        label = key(member)
        unit[member] = at if label is None else numbers.setdefault(label, at)
    if not numbers:
        return unit
    quotient = networkx.DiGraph()
    quotient.add_edges_from((unit[one], unit[other]) for one, other in links
                            if unit[one] != unit[other])
    circle = {number: at for at, circle in enumerate(
                  networkx.strongly_connected_components(quotient)) if len(circle) > 1
              for number in circle}
    last: dict[int, tuple[int, int]] = {}  # of each circle: the unit that it was, and is now
    for at, member in enumerate(members):
        here = circle.get(unit[member])
        if here is not None:
            was, now = last.get(here, (-1, -1))
            last[here] = (unit[member], now if was == unit[member] else at)
            unit[member] = last[here][1]
    return unit


def _in_order(members: Sequence[Item], links: Links) -> list[Item]:
    """Members in an order in which they depend on earlier ones only, otherwise as they were."""
    place = {member: at for at, member in enumerate(members)}
    missing = dict.fromkeys(members, 0)
    after: dict[Item, list[Item]] = {}
    for one, other in links:
        missing[other] += 1
        after.setdefault(one, []).append(other)
    ready = [at for at, member in enumerate(members) if not missing[member]]
    found = []
    while ready:
        member = members[heapq.heappop(ready)]
        found.append(member)
        for other in after.get(member, ()):
            missing[other] -= 1
            if not missing[other]:
                heapq.heappush(ready, place[other])
    return found


# -- parameters and results -----------------------------------------------------------------------


def _place_pills(drawing: Drawing) -> None:
    """Parameters into the innermost scope that holds all of their readers, results into that of
    their maker; many that belong together become one box."""
    near: dict[Item, list[Item]] = {}
    for edge in drawing.edges:
        if edge.source.kind == "param":
            near.setdefault(edge.source, []).append(edge.target)
        if edge.target.kind == "result":
            near.setdefault(edge.target, []).append(edge.source)
    root = drawing.root
    pills = [child for child in root.children if child.kind in ("param", "result")]
    moved: dict[Item, list[Item]] = {}
    for pill in pills:
        ways = [_outer(item) for item in near.get(pill, ())]
        home = root
        for level in zip(*ways, strict=False):
            if len(set(level)) > 1:
                break
            home = level[0]
        pill.parent = home
        moved.setdefault(home, []).append(pill)
    gone = set(pills)
    root.children = [child for child in root.children if child not in gone]
    for home, members in moved.items():
        _bundle(home, members, near)


def _outer(item: Item) -> list[Item]:
    """The scopes around a box, outermost first, as far as nothing else is around them."""
    found = []
    for box in [*item.around()][::-1]:
        if box.kind not in _OUTER:
            break
        found.append(box)
    return found


def _bundle(home: Item, pills: Sequence[Item], near: dict[Item, list[Item]]) -> None:
    groups: dict[tuple[str, frozenset[Item]], list[Item]] = {}
    for pill in pills:
        ends = frozenset(next((box for box in (item, *item.around()) if box.parent is home), item)
                         for item in near.get(pill, ()))
        groups.setdefault((pill.kind, ends), []).append(pill)
    for (kind, _), members in groups.items():
        box = home
        if len(members) > BUNDLE:
            word = "parameters" if kind == "param" else "results"
            box = home.add(Item("scope", f"{len(members)} {word}", facts={"op": word}))
        for pill in members:
            box.add(pill)
    order = {"param": 0, "result": 2}
    home.children.sort(key=lambda child: order.get(child.kind, 1))


# -- what one box shows ---------------------------------------------------------------------------


@record
class Inside:
    """What is in a box: its children, then ports, where edges go through its border. A port is
    (0 or 1: out, the box outside that the edge comes from or goes to)."""

    children: list[Item]
    ports: list[tuple[int, Item]] = field(default_factory=list)
    edges: dict[tuple[int, int], tuple[list[str], str]] = field(default_factory=dict)
    _numbers: dict[Item | tuple[int, Item], int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._numbers = {child: at for at, child in enumerate(self.children)}

    def number(self, end: Item | tuple[int, Item]) -> int:
        """The number of a child or port."""
        if end not in self._numbers:
            assert isinstance(end, tuple), "no child of the box"
            self._numbers[end] = len(self.children) + len(self.ports)
            self.ports.append(end)
        return self._numbers[end]

    def join(self, source: Item | tuple[int, Item], target: Item | tuple[int, Item],
             text: str, kind: str) -> None:
        """One more value on the way from one child or port to another."""
        between = self.number(source), self.number(target)
        texts, known = self.edges.get(between, ([], kind))
        texts.append(text)
        # A value counts for more than what only has to be first, and a send for more than that.
        self.edges[between] = texts, max(known, kind, key=("order", "value", "send").index)

    def rows(self) -> Rows:
        """The children and ports in rows."""
        first = len(self.children)
        tops = [first + at for at, (out, _) in enumerate(self.ports) if not out]
        bottoms = [first + at for at, (out, _) in enumerate(self.ports) if out]
        lanes = [child.facts.get("lane", 0) for child in self.children]
        return layers(first + len(self.ports), list(self.edges), tops, bottoms,
                      [*lanes, *[0] * len(self.ports)])


def insides(drawing: Drawing) -> dict[Item, Inside]:
    """What each box of a drawing shows when it is open."""
    found = {box: Inside(box.children) for box in _boxes(drawing.root) if box.children}
    for edge in drawing.edges:
        paths = _paths(edge)
        if paths is None:
            continue
        box, down, up = paths
        found[box].join(down[0], up[0], edge.text, edge.kind)
        inner_kind = "value" if edge.kind == "send" else edge.kind  # it is sent once
        for outer, inner in pairwise(down):
            found[outer].join(inner, (1, up[0]), edge.text, inner_kind)
        for outer, inner in pairwise(up):
            found[outer].join((0, down[0]), inner, edge.text, inner_kind)
    return found
