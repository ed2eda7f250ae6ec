"""What one step did: ``s.run(y, feeds, trace=report)`` fills a StepReport."""

from __future__ import annotations

from ...ir.record import field, record
from ...runtime.program import Program
from ...runtime.watch import Watch


@record
class StepReport:
    """Where the time of one step went, and what it touched; print it.

    ``seconds`` is the time of the whole step: of it ``compiling`` passed until the program was
    found or compiled, ``waiting`` until the step's turn came, ``running`` in the program and
    ``committing`` after it. ``launches`` counts kernels; ``reads`` and ``writes`` name variables,
    ``fed`` and ``fetched`` the values that came in and went out, with their types.

    >>> import weft
    >>> g = weft.Graph()
    >>> with g.as_default():
    ...     x = weft.placeholder("f32", (2,), name="x")
    ...     y = x * 2 + 1
    >>> report = weft.StepReport()
    >>> _ = weft.Session(g).run(y, {x: [1, 2]}, trace=report)
    >>> report.launches, report.fed
    (1, {'x': 'f32[2]'})
    """

    seconds: float = 0.0
    compiling: float = 0.0
    waiting: float = 0.0
    running: float = 0.0
    launches: int = 0
    fed: dict[str, str] = field(default_factory=dict)
    fetched: dict[str, str] = field(default_factory=dict)
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()

    @property
    def committing(self) -> float:
        return self.seconds - self.compiling - self.waiting - self.running

    def fill(self, program: Program, watch: Watch) -> None:
        """Take what is known of a step that is over."""
        self.seconds = watch.now()
        for part, spent in watch.spent.items():
            setattr(self, part, spent)
        self.launches = program.each
        self.fed = {slot.name: str(slot.type) for slot in program.params if not slot.var}
        self.fetched = {slot.name: str(slot.type) for slot in program.results if not slot.var}
        self.reads = tuple(slot.var for slot in program.params if slot.var)
        self.writes = tuple(slot.var for slot in program.results if slot.var)

    def __str__(self) -> str:
        parts = ", ".join(f"{part} {1e3 * getattr(self, part):.3f} ms" for part in (
            "compiling", "waiting", "running", "committing"))
        return (f"step of {1e3 * self.seconds:.3f} ms: {parts}\n"
                f"{self.launches} launches; reads {', '.join(self.reads) or 'nothing'}; "
                f"writes {', '.join(self.writes) or 'nothing'}")
