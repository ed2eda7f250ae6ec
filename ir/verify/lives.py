"""When the temporaries of a plan are live: the intervals that must not overlap in the arena.

Steps are counted in the order of the text, whatever they are nested in. Where a loop is around a
step but not around the ``alloc`` of its buffer, the buffer lives through the whole loop: another
round may come. Buffers that a loop carries exchange their memory, so the memory of both is needed
as long as one of them is.

    alloc %a                     %a   |---------|
    launch @f(%x, %a)     0           .         .
    loop t in 9 {         1           .         .
      alloc %b                   %b   .  |--|   .
      launch @g(%a, %b)   2           .  .  .   .
      launch @h(%b, %y)   3           .     .   .
    }                     4           .         .
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..kernels.access import reads_and_stores
from ..plans.plan import (
    Alloc,
    Branch,
    Copy,
    Group,
    Host,
    Launch,
    Loop,
    Measure,
    Plan,
    Recv,
    Send,
    Step,
    Window,
)
from ..record import field, record


def windows_of(step: Step) -> tuple[Window, ...]:
    """The windows that a step itself reads or writes, those of steps that it holds left out."""
    match step:
        case Launch():
            return step.args
        case Copy():
            return step.source, step.target
        case Host():
            return *step.inputs, *step.outputs
        case Send():
            return (step.source,)
        case Recv():
            return (step.target,)
        case Branch():
            return (step.condition,)
        case Loop():
            return (() if step.condition is None else (step.condition,))
        case Measure():
            return (step.number,)
    return ()


def reads_and_writes(plan: Plan, step: Step) -> tuple[list[Window], list[Window]]:
    """The windows whose contents a step itself needs, and those that it changes."""
    match step:
        case Copy():
            return [step.source], [step.target]
        case Host():
            return [*step.inputs], [*step.outputs]
        case Send():
            return [step.source], []
        case Recv():
            return [], [step.target]
        case Measure():
            return [step.number], []
        case Launch():
            kernel = plan.kernels[step.kernel]
            needed, stored = reads_and_stores(kernel)
            pairs = list(zip(kernel.params, step.args, strict=True))
            return ([arg for param, arg in pairs if param.name in needed],
                    [arg for param, arg in pairs if param.name in stored])
    return [], []


def buffers_of(step: Step) -> frozenset[str]:
    """The buffers that a step itself names."""
    carried = step.exchanged if isinstance(step, Loop) else ()
    return frozenset((*(window.buffer for window in windows_of(step)), *carried))


@record(frozen=True)
class Life:
    """A temporary and the first and the last moment at which it is needed."""

    alloc: Alloc
    first: int
    last: int


@record(eq=False)
class _Span:
    """A loop: the moments before its first round and after its last."""

    first: int
    last: int = -1


@record
class Timeline:
    """The steps of a plan by the moment at which they run, and the lives of its temporaries."""

    plan: Plan
    moments: list[Step] = field(default_factory=list)
    _home: dict[str, tuple[Alloc, int]] = field(default_factory=dict)  # and the loops around
    _uses: dict[str, list[tuple[int, tuple[_Span, ...]]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._walk(self.plan.steps, ())

    def _walk(self, steps: Sequence[Step], around: tuple[_Span, ...]) -> None:
        for step in steps:
            match step:
                case Alloc():
                    self._home.setdefault(step.name, (step, len(around)))
                case Group():
                    self._use((w for launch in step.launches for w in launch.args), around)
                    self.moments.append(step)
                case Loop():
                    self._loop(step, around)
                case Branch():
                    self._use([step.condition], around)
                    self.moments.append(step)
                    self._walk(step.then, around)
                    self._walk(step.other, around)
                case _:
                    self._use(windows_of(step), around)
                    self.moments.append(step)

    def _loop(self, loop: Loop, around: tuple[_Span, ...]) -> None:
        exchanged = [Window(name) for name in loop.exchanged]
        span = _Span(len(self.moments))
        self._use(exchanged, around)
        self.moments.append(loop)
        self._walk(loop.test, (*around, span))
        if loop.condition is not None:
            self._use([loop.condition], (*around, span))
            self.moments.append(loop)
        self._walk(loop.body, (*around, span))
        span.last = len(self.moments)
        self._use(exchanged, around)
        self.moments.append(loop)

    def _use(self, windows: Iterator[Window] | Sequence[Window],
             around: tuple[_Span, ...]) -> None:
        for window in windows:
            self._uses.setdefault(window.buffer, []).append((len(self.moments), around))

    def lives(self) -> list[Life]:
        """The lives of the temporaries that are used at all."""
        spans: dict[str, tuple[int, int]] = {}
        for name, (_, depth) in self._home.items():
            moments = [moment for at, around in self._uses.get(name, ())
                       for moment in ((around[depth].first, around[depth].last)
                                      if len(around) > depth else (at,))]
            if moments:
                spans[name] = min(moments), max(moments)
        together = _Together()
        for step in self.moments:
            if isinstance(step, Loop):
                for carry in step.carried:
                    for pair in carry.pairs:
                        together.join(*pair)
        for names in together.sets():
            last = max((spans[name][1] for name in names if name in spans), default=0)
            for name in names:
                if name in spans:
                    spans[name] = spans[name][0], last
        return [Life(self._home[name][0], *span) for name, span in spans.items()]


class _Together:
    """Names that were paired, directly or by way of others."""

    def __init__(self) -> None:
        self._set: dict[str, set[str]] = {}

    def join(self, a: str, b: str) -> None:
        merged = self._set.get(a, {a}) | self._set.get(b, {b})
        for name in merged:
            self._set[name] = merged

    def sets(self) -> list[set[str]]:
        return list({id(names): names for names in self._set.values()}.values())
