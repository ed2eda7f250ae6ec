"""What a trace is asked for, and what one lacks that has failed: data, for who asks again.

    request = Request()
    while isinstance(found := attempt(function, call, request), Need):
        request = ...             a number that is static, capacity for a list, other loops

The user's code runs once, or once more for each kind of need.
"""

from __future__ import annotations

from enum import Enum
from types import CodeType
from weakref import WeakKeyDictionary

from ....ir.diagnose import Error
from ....ir.record import field, record, replace

_TRACES = 8  # that may find one more loop each


class GivenUpError(BaseException):
    """The trace that goes on would be of no use without what it needs. No handler of the user's is
    for it."""

    def __init__(self, need: Need) -> None:
        super().__init__()
        self.need = need


@record(frozen=True)
class Need:
    """What a trace lacks. ``problem`` is the error for who cannot have it; None only of one that
    is given up for its loops."""

    problem: Exception | None = None
    # Arguments whose values were asked for, numbers all of them; ``truth``: as one truth value;
    # ``outside`` of all loops and branches, so that it does not matter what these are.
    static: frozenset[str] = frozenset()
    truth: bool = False
    outside: bool = False
    capacity: bool = False  # for lists of which nobody knows how long they become
    optional: bool = False  # names that are None on some ways only
    unbound: frozenset[str] = frozenset()  # names that were read, and have a value on some ways
    loop: bool = False      # one more is known that had better be a loop of the program
    straight: bool = False  # loops that do not branch had better be, too: they draw many nodes
    known: int = 0  # of which arrays from around the numbers had better be known (``Known``)
    written: frozenset[int] = frozenset()  # arrays whose numbers are known, and had better not be
    measured: bool = False  # sizes were measured, or told by rounds, which may be why
    sizes: bool = False     # what is ``static`` says how large arrays in loops are
    counts: bool = False    # sizes go by the numbers of rounds of which nobody knows how many
    exact: bool = False     # sizes that numbers say had better be known
    short: bool = False     # rounds of which all is known had better be traced one by one
    code: CodeType | None = None  # of the loop in whose trace it has ended


class Start(Enum):
    """With which round a loop of the program begins."""

    FIRST = "first"
    LATER = "later"
    NEVER = "never"


@record
class Loops:
    """Which loops of known length are loops of the program: those that are ``found`` begin with
    their first round, those that are ``peeled`` with a later one. ``straight``: those that do not
    branch are among them. ``given_up`` are those that cannot be. ``used``: whether there are any.
    ``patient``: a trace is not given up because it draws many nodes. ``long``: one of them is
    there because its rounds are many, although all is known of them."""

    start: Start = Start.FIRST
    straight: bool = False
    patient: bool = False
    found: dict[CodeType, None] = field(default_factory=dict)
    peeled: dict[CodeType, None] = field(default_factory=dict)
    given_up: set[CodeType] = field(default_factory=set)
    used: bool = False
    long: bool = False
    traces: int = 0

    @property
    def unrolls(self) -> bool:
        """Whether loops of which rounds draw many nodes are traced round by round."""
        return self.start is Start.NEVER or bool(self.given_up) or (
            self.patient and not self.straight)

    def after(self, need: Need) -> Loops | None:
        """What to trace with after a trace that has failed; None if loops are not why."""
        if need.straight:
            return Loops(straight=True, patient=True)
        if need.loop:
            return self._again()
        if self.used and self.start is Start.FIRST:
            if self.straight and self._give_up(need.code):
                return self._again()
            return Loops(Start.LATER, self.straight, self.patient)
        if self.used:
            return Loops(Start.NEVER, self.straight, self.patient)
        return Loops(patient=True) if self.straight else None

    def _again(self) -> Loops:
        if self.traces + 1 == _TRACES:
            return Loops(Start.LATER, self.straight, self.patient)
        return replace(self, used=False, traces=self.traces + 1)

    def _give_up(self, code: CodeType | None) -> bool:
        """Whether there is a loop to try another way, which may have to begin later, or not at all:
        the one that failed, else the one around the others."""
        if code in self.found:
            del self.found[code]
            self.peeled[code] = None
        elif code in self.peeled:
            del self.peeled[code]
            self.given_up.add(code)
        elif self.found:
            self.peeled[self.found.popitem()[0]] = None
        elif self.peeled:
            self.given_up.add(self.peeled.popitem()[0])
        else:
            return False
        return True


@record(frozen=True)
class Request:
    """What a trace may do. ``capacity``: for how many items there is room in lists of which nobody
    knows how long they become, none if it is 0. ``optional``: names may be None on some ways.
    ``unbound``: names that may have a value on some ways only, which fails where they are read.
    ``flags``: bools among the arguments rather become static than that the program branches on
    them. ``inout``: arrays among the arguments, and those from around, may be written to, which
    the caller then sees. ``known``: of which arrays from around the numbers are (``Known``), but
    for those that are ``written``, by their ids. ``measures``: sizes may be measured, as plans of
    CPUs do, where elements of a whole array would do; ``rounds``: they may go by the numbers of
    rounds. ``sizes``: numbers among the arguments that say sizes in loops rather become static.
    ``varying``: of these numbers calls have several values; sizes that they say are measured.
    ``short``: rounds of which all is known are traced one by one, however many there are.
    ``counts``: how many rounds there are is measured, where a value says it; None: may not be."""

    capacity: int = 0
    optional: bool = False
    unbound: frozenset[str] = frozenset()
    flags: bool = False
    inout: bool = False
    known: int = 0
    written: frozenset[int] = frozenset()
    measures: bool = True
    rounds: bool = True
    sizes: bool = False
    varying: frozenset[str] = frozenset()
    short: bool = False
    counts: bool | None = None
    loops: Loops = field(default_factory=Loops)


NONE = Request(loops=Loops(Start.NEVER, patient=True))
"""What a trace may do that cannot be made again: a graph's."""


class Asked:
    """What a trace has asked for until now."""

    def __init__(self) -> None:
        # By the error of who asked: most are nobody's reason in the end.
        self._numbers: WeakKeyDictionary[
            Error, tuple[frozenset[str], bool, bool]] = WeakKeyDictionary()
        self.capacity: Error | None = None  # of the list that has asked for it
        self.optional = False
        self.nothing: Error | None = None  # of who has computed with None in a region
        self.measured = False  # sizes, or told by rounds, where a whole array would have done
        self.counts = False    # sizes go by rounds of which nobody knows how many
        self.rounds = 0        # of loops that were traced round by round
        self.loop: CodeType | None = None  # the one in whose trace it has ended

    def behind(
        self, problem: Error, numbers: frozenset[str], truth: bool = False, outside: bool = False
    ) -> Error:
        """The error of who asks for a value that is computed of these parameters and of nothing
        else; ``truth``: for its truth; ``outside`` of loops and branches."""
        self._numbers[problem] = numbers, truth, outside
        return problem

    def need(self, problem: Exception) -> Need:
        """What a trace lacks that has ended in this."""
        found = self._numbers.get(problem) if isinstance(problem, Error) else None
        return Need(problem, *(found or (frozenset(), False, False)), problem is self.capacity,
                    self.optional, measured=self.measured, counts=self.counts, code=self.loop)
