"""weft.data: the input of a training loop, in any order, read ahead, from any position.

A data set is a stream of *keys* and a way to *read* the element of a key. Order is a matter of
keys, content of reading, so shuffling, repeating and finding a position again touch no data, and
a batch of rows is taken from its arrays at once:

    from_arrays(x, y)      keys 0, 1, 2, 3, ...        reads (x[k], y[k])
    .shuffle(1000, seed=0) keys 7, 2, 9, 0, ...
    .map(f)                                            reads f((x[k], y[k]))
    .batch(2)              keys (7, 2), (9, 0), ...    reads f of both, stacked

The interface follows tf.data (Murray et al., "tf.data: A Machine Learning Data Processing
Framework", VLDB 2021).
"""

from __future__ import annotations

import inspect
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import count, islice
from typing import Any, ClassVar, cast
from weakref import WeakSet

import numpy as np

from ...ir.diagnose import error, note
from ...ir.indices.index import Dim
from ..face import tree
from ..face.boundary import boundary
from ..face.source import user_loc
from ..seeds import checked_seed
from ..stays import Stays
from ..tracing.context.recorder import ACTIVE
from ..tracing.context.scope import checked_name
from ..tracing.spec import Spec
from .streams import Stream

Keys = Callable[[int], Iterator[Any]]
"""The keys of an epoch, of which the number is given."""


@dataclass(frozen=True)
class Reading:
    """How the elements of keys are read: one, and several stacked along a new first axis."""

    one: Callable[[Any], Any]
    many: Callable[[Sequence[Any]], Any]


@dataclass(frozen=True, eq=False)
class Dataset:
    """Elements (nests of arrays) in an order; its methods give new ones and change none.

    ``iter(dataset)`` is an ``Input``, which has a position; ``len(dataset)`` counts the elements
    where their number is known.
    """

    keys: Keys
    reading: Reading
    size: int | None
    ahead: int = 0
    threads: int = 1

    def shuffle(self, n: int, seed: int) -> Dataset:
        """A random order, another one in each epoch of a ``repeat`` that comes after.

        Each element is drawn from the ``n`` next ones, so ``n`` above the size is a uniformly
        random order; of a generator, ``n`` elements are held in memory. The same seed gives the
        same order, by which an ``Input`` finds its position again.

        >>> list(from_arrays([1, 2, 3, 4]).shuffle(4, seed=1).batch(4))
        [array([1, 4, 3, 2])]
        """
        return replace(self, keys=partial(
            _shuffled, self.keys, _positive(n, "shuffle"), checked_seed(seed, "a shuffle")))

    def batch(self, n: int, drop_last: bool = False) -> Dataset:
        """``n`` elements as one, their arrays stacked along a new first axis.

        ``drop_last`` leaves out the last batch if it has fewer. Reading raises ShapeError (W305)
        when elements of a batch differ in structure or shapes.

        >>> list(from_arrays([1, 2, 3]).batch(2))
        [array([1, 2]), array([3])]
        """
        size = _positive(n, "batch")
        batches = self.size and (self.size // size if drop_last else -(-self.size // size))
        return replace(self, keys=partial(_batched, self.keys, size, drop_last), size=batches,
                       reading=_each(self.reading.many))

    def repeat(self, n: int | None = None) -> Dataset:
        """``n`` epochs, one after the other; without ``n`` they never end."""
        if n is not None:
            _positive(n, "repeat")
        whole = None if n is None or self.size is None else self.size * n
        return replace(self, keys=partial(_repeated, self.keys, n), size=whole)

    def map(self, f: Callable[..., Any]) -> Dataset:
        """Every element changed by a function, which may be a compiled one.

        The parts of a tuple are arguments of their own, as in tf.data, unless ``f`` can be called
        with one. It runs in the threads of ``prefetch`` and may be called again for an element.

        >>> list(from_arrays([1, 2], [3, 4]).map(lambda x, y: x * y))
        [np.int64(3), np.int64(8)]
        >>> list(from_arrays([1, 2], [3, 4]).map(lambda pair: pair[0] * pair[1]))
        [np.int64(3), np.int64(8)]
        """
        _callable(f, "map", "write such as .map(lambda x: x / 255)")
        return replace(self, reading=_each(_After(self.reading.one, f, not _takes_one(f))))

    def prefetch(self, n: int, threads: int = 1) -> Dataset:
        """Up to ``n`` elements are read in background threads before they are asked for.

        They come in the same order for any number of threads. More threads than one help where
        reading waits or releases the GIL, as files, NumPy and compiled functions do.
        """
        return replace(self, ahead=_positive(n, "prefetch"), threads=_positive(threads, "prefetch"))

    def input(self, name: str = "input") -> Input:
        """An ``Input`` that stands before the first element; checkpoints know it by ``name``."""
        return Input(self, name)

    def __iter__(self) -> Input:
        return self.input()

    def __len__(self) -> int:
        if self.size is None:
            raise TypeError("the number of elements of this data set is not known")
        return self.size


def from_arrays(*arrays: Any) -> Dataset:
    """The rows of arrays (or of nests of arrays) of equal lengths; of several, tuples of rows.

    Raises ShapeError (W305) unless the first axes are equally long.

    >>> import numpy as np
    >>> images, labels = np.zeros((100, 8, 8), np.float32), np.arange(100)
    >>> data = from_arrays(images, labels).shuffle(100, seed=0).batch(32).repeat()
    >>> x, y = next(iter(data))
    >>> x.shape, y.shape
    ((32, 8, 8), (32,))
    """
    given = tuple(x if isinstance(x, dict | tuple) else _array(x) for x in arrays)
    leaves, structure = tree.flatten(given[0] if len(given) == 1 else given)
    held = [_array(leaf) for leaf in leaves]
    lengths = [leaf.shape[0] if leaf.ndim else None for leaf in held]
    if not held or None in lengths or len(set(lengths)) != 1:
        shapes = ", ".join(str(leaf.shape) for leaf in held) or "none"
        raise error("W305", f"the first axes of arrays are the rows of a data set; shapes are "
                            f"{shapes}", locs=user_loc(),
                    hint="give arrays with the same number of rows")

    rows, size = _Rows(structure, held), cast(int, lengths[0])
    return Dataset(partial(_listed, range(size)), Reading(rows, rows.many), size)


def from_generator(f: Callable[[], Iterable[Any]], specs: Any = None) -> Dataset:
    """What ``f()`` gives, called anew for each epoch and to find a position again.

    ``specs`` is a nest of ``weft.Spec`` or text such as ``"f32[b,3]"`` that each element must
    match: reading raises FeedError (W305) for another structure, dtype or shape.

    >>> list(from_generator(lambda: (i * i for i in range(5)), "i64[]").batch(3))
    [array([0, 1, 4]), array([ 9, 16])]
    """
    _callable(f, "from_generator", "give the function itself, without calling it: it is called "
                                   "anew for each epoch")
    checked = _same if specs is None else _Checked(
        tree.map(lambda text: Spec.parse(text) if isinstance(text, str) else text, specs))
    return Dataset(partial(_generated, f), _each(checked), None)


def from_files(paths: Iterable[Any], read: Callable[[Any], Any]) -> Dataset:
    """One element for each path: ``read(path)``, in the order of the paths.

    >>> import numpy as np
    >>> len(from_files(["a.npy", "b.npy"], np.load))
    2
    """
    if isinstance(paths, str | bytes | os.PathLike) or not isinstance(paths, Iterable):
        raise error("W305", f"from_files takes a list of paths, not {paths!r}", locs=user_loc(),
                    hint="write such as sorted(folder.glob('*.npy'))")
    _callable(read, "from_files", "write such as weft.data.from_files(paths, np.load)")
    found = tuple(paths)
    return Dataset(partial(_listed, found), _each(read), len(found))


class Input(Stays):
    """Reads a data set; its position can be saved and restored with the variables.

        batches = data.input("train")
        weft.save("step.safetensors", [*variables, batches])
        weft.restore("step.safetensors", [*variables, batches])    # goes on with the next batch

    Threads may share one: each element is given once. An element that cannot be read raises what
    its reading raised, with the lines of the function that did, the position stays, and the next
    call tries it again.

    A position is that of what was given, and so of no step: a checkpoint that is written while
    steps run (``weft.Saver``) goes by its ``step``, to which ``assign`` brings an input. A forked
    process has an input of its own, which goes on from the same position.
    """

    instead = "make one of the data set, and assign the position to it"
    living: ClassVar[WeakSet[Input]] = WeakSet()  # whose threads a forked child has not

    def __init__(self, dataset: Dataset, name: str = "input") -> None:
        self.name = checked_name(name, "input")
        self._dataset = dataset
        self._position = 0
        self._lock = threading.Lock()
        self._stream: Stream | None = None
        Input.living.add(self)

    @property
    def position(self) -> int:
        """How many elements have been given."""
        return self._position

    def __iter__(self) -> Input:
        return self

    @boundary
    def __next__(self) -> Any:
        if ACTIVE.get() is not None:
            raise error("W305", "input is read while a function is traced: the program would have "
                                "this one element for ever", locs=user_loc(),
                        hint="take the element outside, and pass it as an argument")
        with self._lock:
            if self._stream is None:
                data = self._dataset
                self._stream = Stream(islice(data.keys(0), self._position, None),
                                      data.reading.one, data.ahead, data.threads)
            try:
                element = self._stream.next()
            except BaseException as problem:
                self._close()
                if not isinstance(problem, StopIteration):
                    note(problem, f"read element {self._position} of {self.name}")
                raise
            self._position += 1
            return element

    def numpy(self) -> np.ndarray[Any, Any]:
        """The position, as checkpoints hold it."""
        return np.array(self._position, np.int64)

    def assign(self, position: Any) -> None:
        """Go to a position. Raises FeedError (W304) for what is none."""
        at = np.asarray(position)
        if at.shape != () or at.dtype.kind not in "iu" or at < 0:
            raise error("W304", f"{self.name} is at a position: a number of elements, not "
                                f"{position!r}", locs=user_loc())
        with self._lock:
            self._close()
            self._position = int(at)

    def close(self) -> None:
        """Stop reading ahead; the next element is read when it is asked for."""
        with self._lock:
            self._close()

    def _close(self) -> None:
        if self._stream is not None:
            self._stream.close()
            self._stream = None


def _forked() -> None:
    for each in list(Input.living):
        if each._stream is not None:
            each._stream.abandon()
        each._lock, each._stream = threading.Lock(), None


os.register_at_fork(after_in_child=_forked)


@dataclass(frozen=True)
class _After:
    """A function of what another one reads."""

    read: Callable[[Any], Any]
    function: Callable[..., Any]
    spread: bool  # the parts of a tuple

    def __call__(self, key: Any) -> Any:
        element = self.read(key)
        parts = element if self.spread and isinstance(element, tuple) else (element,)
        return self.function(*parts)


def _takes_one(f: Callable[..., Any]) -> bool:
    """Whether a function can be called with one argument; if it does not say, that it can."""
    if isinstance(f, np.ufunc):
        return f.nin == 1
    try:
        signature = inspect.signature(f)
    except (TypeError, ValueError):
        return True
    try:
        signature.bind(None)
    except TypeError:
        return False
    return True


@dataclass(frozen=True)
class _Checked:
    """An element as it is, if it matches specs."""

    specs: Any

    def __call__(self, element: Any) -> Any:
        found, structure = tree.flatten(element)
        specs, expected = tree.flatten(self.specs)
        if structure != expected:
            raise error("W305", f"the generator gives {structure}, its specs are {expected}")
        for value, spec in zip(found, specs, strict=True):
            array = np.asarray(value)
            if array.dtype != spec.dtype.numpy or not _fits(array.shape, spec.shape):
                raise error("W305", f"the generator gives {array.dtype}{list(array.shape)} where "
                                    f"{spec} is declared", hint="convert what it yields")
        return element


def _fits(shape: tuple[int, ...], wanted: tuple[Dim | None, ...]) -> bool:
    return len(shape) == len(wanted) and all(
        not isinstance(dim, int) or size == dim for size, dim in zip(shape, wanted, strict=True))


def _each(one: Callable[[Any], Any]) -> Reading:
    """Several are read one by one, and stacked."""
    return Reading(one, partial(_together, one))


def _together(one: Callable[[Any], Any], keys: Sequence[Any]) -> Any:
    return _stacked([one(key) for key in keys])


def _stacked(elements: list[Any]) -> Any:
    flat = [tree.flatten(element) for element in elements]
    structure = flat[0][1]
    if any(other != structure for _, other in flat):
        other = next(other for _, other in flat if other != structure)
        raise error("W305", f"elements of one batch have the structures {structure} and {other}")
    columns = [[np.asarray(leaf) for leaf in column]
               for column in zip(*(leaves for leaves, _ in flat), strict=True)]
    for column in columns:
        kinds = {(leaf.dtype, leaf.shape) for leaf in column}
        if len(kinds) > 1:
            shapes = " and ".join(sorted(f"{dtype}{list(shape)}" for dtype, shape in kinds)[:2])
            raise error("W305", f"elements of one batch differ: {shapes}",
                        hint="give them one dtype and shape with .map before .batch")
    return tree.unflatten(structure, [np.stack(column) for column in columns])


@dataclass(frozen=True)
class _Rows:
    """Rows of arrays, by their numbers."""

    structure: tree.TreeDef
    arrays: Sequence[np.ndarray[Any, Any]]

    def __call__(self, at: int) -> Any:
        """One row, which a function that it is given to may change: the array stays as it is."""
        rows = [array[at] for array in self.arrays]
        return tree.unflatten(self.structure, [
            row.copy() if isinstance(row, np.ndarray) else row for row in rows])

    def many(self, keys: Sequence[int]) -> Any:
        at = np.fromiter(keys, np.intp, len(keys))
        return tree.unflatten(self.structure, [array[at] for array in self.arrays])


def _array(given: Any) -> np.ndarray[Any, Any]:
    try:
        return np.asarray(given)
    except ValueError:
        raise error("W305", f"a {type(given).__name__} with parts of other lengths is no array",
                    locs=user_loc(), hint="make the parts equally long, or yield them one by one "
                                          "to weft.data.from_generator") from None


def _callable(f: Any, what: str, hint: str) -> None:
    if not callable(f):
        raise error("W305", f"{what} takes a function, not {type(f).__name__}", locs=user_loc(),
                    hint=hint)


def _listed(keys: Sequence[Any], _: int) -> Iterator[Any]:
    return iter(keys)


def _generated(f: Callable[[], Iterable[Any]], _: int) -> Iterator[Any]:
    return iter(f())


def _shuffled(keys: Keys, n: int, seed: int, epoch: int) -> Iterator[Any]:
    rng = np.random.Generator(np.random.Philox(np.random.SeedSequence([seed, epoch])))
    following = keys(epoch)
    waiting = list(islice(following, n))
    if len(waiting) < n:  # all of them are here
        yield from (waiting[at] for at in rng.permutation(len(waiting)).tolist())
        return
    while waiting:
        for part in rng.random(1024).tolist():
            at = int(part * len(waiting))
            yield waiting[at]
            for key in islice(following, 1):
                waiting[at] = key
                break
            else:
                waiting[at] = waiting[-1]
                waiting.pop()
                if not waiting:
                    return


def _batched(keys: Keys, n: int, drop_last: bool, epoch: int) -> Iterator[Any]:
    following = keys(epoch)
    while batch := tuple(islice(following, n)):
        if len(batch) == n or not drop_last:
            yield batch


def _repeated(keys: Keys, n: int | None, epoch: int) -> Iterator[Any]:
    for at in count() if n is None else range(epoch * n, epoch * n + n):
        empty = True
        for key in keys(at):
            empty = False
            yield key
        if empty and n is None:
            return  # for ever would be for ever in vain


def _same(element: Any) -> Any:
    return element


def _positive(n: int, what: str) -> int:
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
        raise error("W305", f"{what} takes a positive number, not {n!r}", locs=user_loc())
    return int(n)
