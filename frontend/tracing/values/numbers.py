"""Which of a function's arguments a value is computed of, if these are numbers and nothing else.

Where Python asks for such a value, a size for one, these arguments can be static: then it is known
while the function is traced, and each of their values has a program of its own.
"""

from __future__ import annotations

from ....ir.graph import Value
from ..context.scope import Recording


def numbers_behind(ctx: Recording, value: Value) -> frozenset[str]:
    """The names of the parameters of the outermost graph that a value is computed of. None if it
    is (also) computed of arrays, of their sizes, of variables, or of what only a loop has."""
    found: set[str] = set()
    seen: set[Value] = set()
    todo = [(ctx, value)]
    while todo:
        here, each = todo.pop()
        if each in seen:
            continue
        seen.add(each)
        node = each.node
        if node is not None:
            size = not node.inputs and not node.op.constant
            if size or node.op.effect is not None or node.op.foreign:
                return frozenset()
            todo += [(here, x) for x in node.inputs]
        elif here.nested:
            outer = here.outside(each)
            if outer is None:
                return frozenset()
            todo.append((outer.ctx, outer.value))
        elif each.type.shape:
            return frozenset()
        else:
            found.add(each.name.removesuffix(":0"))
    return frozenset(found)
