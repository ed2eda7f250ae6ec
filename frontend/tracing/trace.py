"""Tracing: run a Python function once on tracers and keep the graph it draws.

Arguments are nests of arrays, NumPy and Python scalars, ``Spec`` and texts (``"f32[b,784]"``); each
leaf becomes a parameter. Python scalars are parameters too, with NumPy's weak promotion, so that a
changing learning rate does not trace again. Arguments in ``static_argnames`` stay what they are
and belong to the structure (``in_tree``), hence to the cache key.

Closed-over arrays come after the leaves among the graph's parameters, as ``captures``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from contextvars import copy_context
from functools import partial
from types import CodeType
from typing import Any, Protocol

import numpy as np

from ...ir.diagnose import Error, error
from ...ir.graph import Graph, Value, all_nodes
from ...ir.loc import Loc
from ...ir.ops.op import Kind as OpKind
from ...ir.record import record, replace
from ...ir.types import TensorType
from ...passes.keeping import keeps
from ..face import tree
from ..face.collector import paused_collector
from ..face.signature import Signature
from ..face.source import is_library
from ..numpy_api.dispatch import NumpyApi
from ..numpy_api.host import Warned
from .arguments import Call, described
from .arrays.closed_over import check_apart
from .arrays.found import found
from .arrays.views import refresh
from .containers import Containers, Fill, Path
from .context.active import current
from .context.captures import Capture, ChangedError
from .context.recorder import Rewritten, TraceContext
from .context.request import NONE, GivenUpError, Need, Request
from .context.traced import Leaf, Traced
from .extents import asks_where_it_may_not_be, counts_on_sizes, may_leave_64_bits
from .failing import failure_of, kept
from .foreign import refused_call
from .guards.draws import Draws
from .guards.guard import Guards, Kind
from .guards.lost import check_kept, check_leaks, check_made, check_unchanged, check_used_up
from .guards.outliving import computed, released, uncomputed
from .guards.rebound import Rebound
from .guards.search import Changes, guards_of
from .operand import NO_OPERAND
from .results import results_of
from .values.tracer import Tracer

_TRIES = 4  # of a trace while other threads bind what it reads


class ReboundError(Exception):
    """What a trace has read is bound to something else by now: see ``guards.rebound``."""


class EndError(BaseException):
    """What is traced ends in this exception of the user's. No handler of the user's is for it."""

    def __init__(self, problem: BaseException) -> None:
        super().__init__(problem)
        # ``holds`` is false in what is traced, and there if the exception tells traced values.
        self.failure, self.holds = failure_of(current(), problem)


@paused_collector()  # so that what is part of cycles only is young yet, and found at once
def attempt(
    function: Callable[..., Any],
    call: Call,
    request: Request = NONE,
    *,
    name: str | None = None,
    lasting: bool = True,
    host: Warned | None = None,
    rewritten: Rewritten | None = None,
    changes: Changes = lambda code: frozenset(),
) -> Traced | Need:
    """Trace a function on the arguments of a call; see the module docstring. What it lacks where
    it cannot be traced as it is requested. Raises ChangedError, after which none would be right.

    ``lasting`` says that the graph may run many times, so that nothing is to be drawn at random
    while tracing. Warns (TracingWarning) of that, and of values that are held beyond the trace.
    With ``host``, what it has warned of, NumPy runs what cannot be traced. ``rewritten`` gives what
    is called in the place of a function, here and by transforms and loops; ``changes`` see
    ``guards_of``.
    """
    once = partial(_once, function, call, request, name or _word(
        getattr(function, "__name__", "") or "main"), lasting, host, rewritten, changes)
    # In a context of its own: an interrupt that comes between two lines of what makes a trace the
    # active one would leave it that, and all later calls of the thread would be parts of it.
    for left in reversed(range(_TRIES)):
        try:
            found = copy_context().run(once, again=True, alone=left == 0)
            if found is None:
                found = copy_context().run(once, again=False, alone=left == 0)
        except ReboundError:
            continue
        break
    assert found is not None
    return found


def _once(
    function: Callable[..., Any], call: Call, request: Request, name: str, lasting: bool,
    host: Warned | None, rewritten: Rewritten | None, changes: Changes, *, again: bool,
    alone: bool,
) -> Traced | Need | None:
    """See ``attempt``. None for what had better be traced ``again``: it has made arrays that
    outlive the trace, and would find them around it. Raises ReboundError where other threads have
    changed what it may have read, unless it is taken to be ``alone``."""
    ctx: TraceContext | None = None
    try:
        types = call.types
        ctx = TraceContext(name, NumpyApi(host))
        ctx.rewritten, ctx.request = rewritten, request
        entries = [Leaf(label, kind, type_, None if kind == "variable" else ctx.graph.add_param(
            type_, _word(label))) for label, (kind, type_) in zip(call.names, types, strict=True)]
        return _recorded(ctx, function, call, entries, lasting, changes, again, alone)
    except GivenUpError as given_up:
        return replace(given_up.need, static=_named(given_up.need.static, entries))
    except (ChangedError, ReboundError):
        raise
    except Exception as problem:
        if ctx is None:
            return Need(problem)
        told = hidden(ctx, problem) or refused_call(problem) if isinstance(
            problem, (TypeError, ValueError, AttributeError)) else None
        if told is not None:
            told.__suppress_context__ = True
        need = ctx.asked.need(told or problem)
        return replace(need, static=_named(need.static, entries),
                       known=ctx.around.more(request.known),
                       written=frozenset(ctx.around.written))
    finally:
        if ctx is not None and not ctx.ended:
            uncomputed(ctx.computed)
            released(ctx, ended=False, again=True)


def trace_function(
    function: Callable[..., Any],
    args: tuple[Any, ...] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    signature: Signature | None = None,
    **options: Any,
) -> Traced:
    """Trace ``function(*args, **kwargs)`` as it is, in one attempt."""
    return done(attempt(function, described(function, args, kwargs, signature), **options))


def done(found: Traced | Need) -> Traced:
    """What was traced. Raises the problem of what is lacking."""
    if isinstance(found, Traced):
        return found
    assert found.problem is not None
    raise found.problem


def _recorded(
    ctx: TraceContext, function: Callable[..., Any], call: Call, entries: Sequence[Leaf],
    lasting: bool, changes: Changes, again: bool, alone: bool,
) -> Traced | None:
    made = ctx.made = []
    ctx.buffers = []
    inputs = ctx.given = [
        leaf if entry.param is None else _argument(ctx, entry.param, entry.kind, leaf)
        for leaf, entry in zip(call.leaves, entries, strict=True)]
    for at, first in call.shared:
        inputs[at] = inputs[first]
    if ctx.request.flags:
        flags = call.numbers(bool)
        ctx.flags = frozenset(each.param.name.removesuffix(":0") for each in entries
                              if each.param is not None and each.name in flags)
    draws = Draws(function) if lasting else None
    bound = Rebound([] if draws is None else draws.functions)
    try:
        with ctx.activate():
            out_tree, out_kinds, filled = _record(
                ctx, function, call.structure, inputs, call.signature)
            written = _written(ctx, entries, inputs)
            check_apart(ctx)
        _check_what_was_tried(ctx)
        ctx.finish()
    finally:
        ctx.alive = False
        ctx.around.let_go()
    capacity = _capacity(ctx)
    captures = tuple(ctx.captures)
    inputs.clear()
    ctx.forget()
    outlived = released(ctx, ended=True, again=again)
    ctx.around.forget()
    ctx.ended = True
    if again and (computed(ctx.computed) or outlived):
        return None
    if lasting and outlived:
        check_made(function)
    if lasting:
        check_used_up(ctx.used_up)
        check_kept(ctx.kept)
    guards, codes = Guards(()), frozenset[CodeType]()
    if draws is not None:
        if bound.by_others and not alone:
            raise ReboundError
        draws.check()
        bound.check()
        # Of code that is not rewritten it is not known what it calls.
        entered = [*ctx.entered.keys()] or draws.functions
        guards = Guards(guards_of(
            function, entered, [capture.array for capture in captures], ctx.around.contents,
            vars(call.args[0]) if hasattr(function, "receiver") else (), changes, ctx.around.same))
        codes = frozenset(ctx.codes or [each.__code__ for each in entered])
        out_kinds = _found_again(guards, captures, len(entries), written, out_kinds)
    ctx.around.same.clear()  # who alone holds these is not to be told of
    check_leaks(made, function)
    return Traced(ctx.graph, call.structure, out_tree, tuple(entries), out_kinds, captures,
                  dict(ctx.variables), guards, ctx.failures, written, *filled, capacity, codes)


def _found_again(
    guards: Guards, captures: Sequence[Capture], count: int, written: Sequence[int],
    kinds: Sequence[str | int],
) -> tuple[str | int, ...]:
    """The kinds of results: of those that are arrays from around, which come behind the ``count``
    arguments, below 0 where the guards do not find the array again."""
    held = {id(guard.value()) for guard in guards if guard.kind is Kind.OBJECT}
    _check_held(held, [captures[at - count] for at in written if at >= count])
    return tuple([
        kind if isinstance(kind, str) or kind < count or id(captures[kind - count].array) in held
        else count - 1 - kind for kind in kinds])


def _check_what_was_tried(ctx: TraceContext) -> None:
    """Raises GivenUpError where a trace has come to its end, and had better be another; the problem
    of who has computed with None, where that is in it."""
    if ctx.asked.nothing is not None and any(
            node.attrs.get("message") == NO_OPERAND for node in all_nodes(ctx.graph)):
        raise ctx.asked.nothing
    if ctx.asked.measured and asks_where_it_may_not_be(ctx.graph, ctx.asserted is not None):
        raise GivenUpError(Need(measured=True))
    if ctx.request.varying and counts_on_sizes(ctx):
        raise GivenUpError(Need(exact=True))
    if ctx.request.loops.long and (counts_on_sizes(ctx) or may_leave_64_bits(ctx.graph)):
        raise GivenUpError(Need(short=True))


def _written(
    ctx: TraceContext, entries: Sequence[Leaf], inputs: Sequence[Any]
) -> tuple[int, ...]:
    """The numbers of the arguments that the function has written to, and, counted behind them, of
    the captures; their new elements are the last results of the graph."""
    for given in inputs:
        if isinstance(given, Tracer) and not given.argument:
            refresh(given)  # which raises where it is not known whether it was written to
    first = {id(given): at for at, given in reversed([*enumerate(inputs)])}
    found = [(at, given) for at, (entry, given) in enumerate(zip(entries, inputs, strict=True))
             if entry.param is not None and not given.argument and first[id(given)] == at
             and given._value is not entry.param]
    found += [(len(entries) + at, given) for at, given in ctx.written_captures()]
    ctx.graph.results = [*ctx.graph.results, *[ctx.value_of(given) for _, given in found]]
    return tuple([at for at, _ in found])


def _check_held(held: Collection[int], written: Sequence[Capture]) -> None:
    """Raises TracerError (W203) for an array that is written to and that nobody holds who is known:
    what it holds after a call would be there in the next."""
    for capture in written:
        array: Any = capture.array
        while array is not None and id(array) not in held:
            array = getattr(array, "base", None)  # of a field of a structured array
        if array is None:
            raise error("W203", f"{capture.param.name.removesuffix(':0')} is written to, and was "
                                "made while the function is traced, by code that is not",
                        types=[capture.param.type], hint="copy it first: own = np.array(y)")


def _capacity(ctx: TraceContext) -> int:
    """For how many items lists have room that may become longer than that. Raises the error of the
    list that has asked for it if the program cannot be run again, with more."""
    problem, ctx.asked.capacity = ctx.asked.capacity, None
    if problem is None:
        return 0
    if any(node.op.foreign and node.op.kind is not OpKind.EXTENT and not keeps(node)
           for node in all_nodes(ctx.graph)):
        raise problem
    return ctx.request.capacity


def _named(params: frozenset[str], entries: Sequence[Leaf]) -> frozenset[str]:
    """The names of the leaves of which these are the parameters."""
    names = {f"{entry.param.name}".removesuffix(":0"): entry.name for entry in entries
             if entry.param is not None}
    return frozenset(names.get(param, param) for param in params)


def _argument(ctx: TraceContext, param: Value, kind: Any, leaf: Any) -> Tracer:
    """An argument: an array that may be written to, or a value that stays."""
    given = Tracer(ctx, param, weak=kind == "number",
                   argument=not (ctx.request.inout and kind == "array"))
    given.made = isinstance(leaf, np.ndarray)  # without dims: no number, it can change
    return given


def _record(
    ctx: TraceContext, function: Callable[..., Any], in_tree: tree.TreeDef, inputs: list[Any],
    signature: Signature,
) -> tuple[tree.TreeDef, tuple[str | int, ...], tuple[tuple[Path, ...], tuple[Fill, ...]]]:
    """Run the function and give its results to the graph; their structure and kinds, and which
    containers among the arguments the function has changed."""
    arguments = tree.unflatten(in_tree, inputs)
    # What an object holds may be another whatever is written to arguments.
    containers = Containers(arguments, in_tree) if ctx.request.inout or hasattr(
        function, "receiver") else None
    args, kwargs = arguments
    try:
        result = ctx.as_written(function)(*args, **kwargs)
    except EndError as end:  # after checks, of which one may fail first
        holds = kept(end.failure) if end.holds is None else end.holds
        ctx.failing(holds, end.failure)
        result = False  # which no call gives
    if ctx.classed is not None:
        raise ctx.classed
    ctx.end()
    held: tuple[tuple[Path, ...], tuple[Fill, ...]] = (), ()
    if containers is None:
        check_unchanged(arguments, in_tree, inputs, signature.names, function)
    elif changed := containers.changed():
        if not ctx.request.inout and any(not containers.is_held(each) for each in changed):
            check_unchanged(arguments, in_tree, inputs, signature.names, function)
        held = containers.paths, tuple(changed)
        result = containers.kept(result), [containers.content(each) for each in changed]
    result = tree.map(lambda x: ctx.captured(x) if type(x) is np.ndarray else x, result)
    given = {id(each): at for at, each in enumerate([*inputs, *ctx.captured_arrays()])
             if isinstance(each, Tracer) and not each.argument}
    ctx.graph.results, out_tree, out_kinds = results_of(
        ctx, function, result, chosen=found, checked=ctx.asserted is not None,
        given=given)
    return out_tree, out_kinds, held


def is_start(code: CodeType) -> bool:
    """Whether it is the code that calls the function that is traced."""
    return code is _record.__code__


def hidden(ctx: TraceContext, problem: Exception) -> Error | None:
    """The error in whose place NumPy raised ``problem``, as it does for ``buffer[i] = traced``,
    ``np.zeros(traced)`` and ``np.mgrid[:traced]``: the last refusal, if it happened on the very
    line; or that of a text that was made or given there, to what needs one."""
    at = problem.__traceback__
    if isinstance(problem, Error) or at is None:
        return None
    last = at
    while at is not None:
        last, at = last if is_library(at.tb_frame) else at, at.tb_next
    line = last.tb_frame.f_code.co_filename, last.tb_lineno
    refused, text = ctx.refused, ctx.text
    if refused is not None and _line(refused.locs) == line:
        return refused
    if text is None or _line(text[1]) != line:
        return None
    made: Error = text[0].refused("what is called here", text[1])
    return made


def _line(locs: Sequence[Loc]) -> tuple[str, int] | None:
    return (locs[0].file, locs[0].line) if locs else None


def _word(label: str) -> str:
    """A leaf's name as a word of the graph's text: ``params['w'][0]`` gives params_w_0."""
    return re.sub(r"\W+", "_", label).strip("_") or "arg"


@record(frozen=True, eq=False)
class Region:
    """A traced body: its graph takes the operands, then ``closure``, values of the outer trace."""

    graph: Graph
    closure: tuple[Tracer, ...]
    out_tree: tree.TreeDef
    weak: tuple[bool, ...]


class Parameter(Protocol):
    """What a body is traced on: a tracer of the trace around it, or what says as much."""

    @property
    def name(self) -> str: ...
    @property
    def type(self) -> TensorType: ...
    @property
    def weak(self) -> bool: ...


def trace_region(function: Callable[..., Any], operands: Sequence[Parameter],
                 in_tree: tree.TreeDef, name: str, *, local: bool = False) -> Region:
    """Trace a body inside of the current trace, as a graph for an attribute of a node. What it
    writes to its arguments is ``local``, or an error."""
    outer = current()
    ctx = TraceContext(name, outer.api, parent=outer)
    inputs = [Tracer(ctx, ctx.graph.add_param(x.type, x.name.removesuffix(":0").replace(":", "_")),
                     weak=x.weak, argument=x.weak or not local) for x in operands]
    try:
        with ctx.activate():
            args = tree.unflatten(in_tree, inputs)
            result = function(*args)
            ctx.end()
            check_unchanged(args, in_tree, inputs, _operands, function)
            values, out_tree, kinds = results_of(ctx, function, result)
        closure = tuple(tracer for _, tracer in ctx.closure)
    finally:
        ctx.alive = False
        ctx.forget()  # a trace that fails, too: others know of it
    ctx.graph.results = values
    return Region(ctx.graph, closure, out_tree, tuple(kind == "number" for kind in kinds))


def _operands(structure: tree.TreeDef) -> list[str]:
    return [f"operand {path}" for path in tree.paths(structure)]
