"""How native code takes the arguments of a call apart, and puts what it gives together: a *walk*, a
list of words that an interpreter of some hundred instructions follows (``weft_walk``).

    def f(params, x, rate=0.1): ...           f({"w": w, "b": b}, x)

    names    params, x, rate                  positional 3
    match    dict 2 "w" leaf "b" leaf         of params: an exact dict of these keys, in this order
             leaf                             of x
             omitted 0.1                      of rate: not given, or equal to the default
    guards   base namespace; item "scale"; is 2.0
    sources  leaf 0, leaf 1, leaf 2, held array, cell variable
    (the program is called with these, checks dtypes and sizes, and gives a tuple of results)
    commit   cell variable = last result
    build    dict 2 "w" result "b" result

A word is a number or the address of an object of Python's, which whoever made the walk keeps alive.
Whatever does not fit ends the walk before anything has happened: another walk is tried, and at last
Python. All names below are in the order of their numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

HEADER = ("slots", "positional", "leaves", "owned", "registers", "params", "results", "written",
          "owners", "single", "function", "names", "match", "guards", "sources", "cells", "locks",
          "build", "inout", "fills")
"""Of a walk: counts, then the address of the program's function, then where in the words its parts
are. Guards, locks and arguments that are written to (``inout``) begin with how many there are; of
``owned`` and ``registers``, the number is how many there may be. After ``inout`` come, for each of
these, its parameter, which result it gets, and how; then for each parameter the bytes of an
element, 0 of what is no array."""
INOUT = 3
"""Words of each argument that is written to."""
COPIED, DIRECT, DONATED, LENT = range(4)
"""How an argument gets a result: when the call is done; or the program writes it there at once, if
the argument is dense. One that is donated is a result in no other case. The value of a variable is
lent to the program, which makes the next one of it, where nobody else has it."""
LIST, DICT, WHOLE, ATTRIBUTES = range(4)
"""How one of the ``owners``, containers among the arguments, gets its content. What is built then
is the result, and a list of contents. ``fills`` are how many there are, then for each its owner,
how, an object (``__dict__``, for attributes), how many names are removed, and these; a dict that is
filled WHOLE is empty before."""
HANDED = 1
"""In the place of keywords: behind the arguments of the program are, for each of its results, the
array that it is to be, or null."""


def _numbered(*names: str) -> Mapping[str, int]:
    return MappingProxyType({name: at for at, name in enumerate(names)})


MATCH = _numbered(
    "leaf",       # any object, which becomes the next leaf
    "same",       # object: this very one
    "equal",      # object: this one, or one of its class that equals it; floats bit by bit
    "omitted",    # object: nothing, or equal to this default
    "tuple",      # class, count: an object of that class, a tuple of so many; then each item
    "list",       # class, count: the same of lists
    "dict",       # count: a dict; then key and value of each item, in its order
    "attributes",  # class, count: an object of that class; then name and value of each
    "rival",      # object: what follows, if it is not equal to this
    "referent",   # reference: what follows, if it is the object that this is to
    "owner",      # what follows, which is noted as the next owner
    "kind",       # class: any object of it
)
GUARDS = _numbered(
    "base",       # register, object
    "reference",  # register, object: what it gives when it is called
    "item",       # register, register of the whole, key
    "attribute",  # register, register of the whole, name
    "is",         # register, object
    "refers",     # register, object: what it gives when it is called, and not None
    "class",      # register, class
    "length",     # register, number
    "keys",       # register, tuple: of a dict, in its order
    "equals",     # register, object
    "alias",      # register, register
    "content",    # register, array, its bytes: a dense one of its dtype, dims and very bits
)
SOURCES = _numbered(
    "leaf",       # number
    "held",       # object
    "cell",       # cell: its value
)
BUILD = _numbered(
    "result",     # the next result
    "number",     # the next result, as one of Python's numbers
    "made",       # callable: what it makes of the next result
    "constant",   # object
    "given",      # number: this leaf itself
    "tuple",      # count, then each
    "list",       # count, then each
    "dict",       # count, then key and value of each
    "owner",      # number: this owner itself
    "call",       # callable, tuple of names, count: called with as many values, by these names
)
