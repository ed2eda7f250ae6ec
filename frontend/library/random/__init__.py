"""Random numbers under the names of NumPy's Generator, in and outside of traced code.

    rng = weft.random.default_rng(0)
    x = rng.normal(size=(3, 4))            # traced: drawn at each call of the program; else at once
    a, b = rng.spawn(2)                    # independent generators
    keys = rng.split(8)                    # eight keys, of which each makes a generator
    y = weft.random.from_key(keys[0]).normal(size=3)

Word number c of a generator is ``threefry(key, c)``: a pure function, so every back end, thread
count and run gives the same numbers, eager or compiled. A generator's only state is a Variable, the
number of words used; a draw takes some for each element and advances it. So it can be saved and
restored, and draws in a loop's body differ from round to round.

``random`` and ``uniform`` take 24 bits for a float32 and 53 for a float64; other samples are
computed in float64 of 64 bits of randomness, with the tails that this gives: a normal number is at
most 9.2 on either side, an exponential one 45. float32 is rounded from there.
"""

from __future__ import annotations

from typing import Any

from .generator import Generator
from .stream import split

__all__ = ["Generator", "default_rng", "from_key", "split"]


def default_rng(seed: Any = None) -> Generator:
    """A generator; the same seed (an integer or a sequence of them) gives the same numbers, None
    takes one from the system. A generator is given back as it is.

    One that is made in a traced function begins anew at each call; keep it outside to go on.

    >>> rng = default_rng(1)
    >>> rng.integers(0, 100, 5).shape
    (5,)
    """
    if isinstance(seed, Generator):
        return seed
    return Generator(seed)


def from_key(key: Any) -> Generator:
    """The generator of a key, which ``split`` gives: a uint64 without dims, traced or not.

    >>> keys = default_rng(0).split(3)
    >>> numbers = [from_key(key).random() for key in keys]
    >>> len(set(numbers))
    3
    """
    return Generator.of_key(key)
