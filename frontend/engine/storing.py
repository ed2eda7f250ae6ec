"""What is kept of a specialisation for other processes: ``ready.calls`` finds it there.

Only of functions that compute and do nothing else: what else one does, as filling a list that it
closes over, happens when it is traced, so it is to be traced in each process. Such a function is
told by another key after it was traced than before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import CodeType, FunctionType
from typing import Any

from ...codegen import elf
from ...codegen.cache import cache
from ...codegen.cpu.jit import compile_object, cpu_target, jit_for
from ...ir.plans.plan import host_steps
from ...ir.record import record
from ..face.options import Options
from ..face.signature import Signature
from ..ready.code import codes
from ..ready.content import Reader
from ..ready.question import Question, question_of
from ..ready.stored import UnstorableError, Writer, packed
from ..ready.support import support
from ..tracing.arguments import Call
from .building.outline import outline_of
from .building.pipeline import Stages
from .specialisation import Specialisation


@record(frozen=True, eq=False)
class Keeper:
    """Keeps the programs of one function. ``signature`` is as the user gave it: of arguments that
    have become static since, other processes learn from the cache."""

    function: Any
    name: str
    options: Options
    signature: Signature

    def question(self, call: Call, fixed: Mapping[str, str] | None = None) -> Question | None:
        """What a call asks for, None where nothing is kept for it. That is to be known before it is
        traced, which may change what the function reads."""
        if cache() is None or call.shared:
            return None
        if support() is None and jit_for(cpu_target()) and support() is None:
            return None
        signature = call.signature if fixed is None else self.signature.with_fixed(fixed)
        try:
            return question_of(self.function, self.name, self.options, signature, call.args,
                               call.kwargs)
        except Exception:  # objects of the user's were asked
            return None

    def keep(
        self, asked: Question | None, call: Call, made: Specialisation, fixed: Mapping[str, str]
    ) -> None:
        """Keep the program that was made for a call which has asked for it."""
        store = cache()
        if asked is None or store is None or not _is_known(made, asked.reader):
            return
        again = self.question(call)
        if again is None or again.key != asked.key:
            return
        try:
            store.put(asked.key, self._packed(again, made))
        except (UnstorableError, elf.UnlinkableError):
            return
        known: dict[str, str] = {}
        while len(known) < len(call.signature.fixed):  # as they are found by a call that knows none
            first = self.question(call, known)
            if first is None:
                return
            known = {name: fixed[name] for name in call.signature.fixed}
            store.put(first.key, packed("fixed", known))

    def _packed(self, question: Question, made: Specialisation) -> bytes:
        outline = outline_of(made.traced, made.program, question.variables,
                             self.options.donate)
        if outline is None or made.walk is None or not isinstance(made.stages, Stages):
            raise UnstorableError
        stages = made.stages
        name, target = stages.plan.name, stages.target
        image = compile_object(stages.llvm, target, stages.options.opt).object  # from the cache
        needs = jit_for(target).needs(image, (name, f"{name}_call", f"{name}_python"))
        variables = [*made.traced.variables.values(), *question.variables.values()]
        return packed(
            "program", name, needs, elf.link(image, name),
            Writer(question.reader, self.function).outline(outline, variables),
            (made.milliseconds, made.program.each, str(stages.arena)))


def _is_known(made: Specialisation, reader: Reader) -> bool:
    """Whether native code is all of a program, and the key has all code that was traced."""
    return isinstance(made.stages, Stages) and not host_steps(made.stages.plan) and (
        made.traced.codes <= frozenset(_codes_of(reader)))


def _codes_of(reader: Reader) -> Iterator[CodeType]:
    for each in reader.held:
        functions = [each] if not isinstance(each, type) else [
            getattr(held, "__func__", held) for held in vars(each).values()]
        for function in functions:
            if isinstance(function, FunctionType):
                yield from codes(function.__code__)


