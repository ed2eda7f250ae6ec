"""The optimizers: a base class that walks nests and Variables, and one step of a leaf for each."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from ....ir.diagnose import error
from ....ir.forks import freed
from ...engine.eager import run_eagerly
from ...face import tree
from ...face.options import checked_flag
from ...face.source import user_loc
from ...session.graph import Graph
from ...tracing.arrays.variable import Variable
from ...tracing.context.active import active, context_of
from ...tracing.context.dependencies import after, group
from ...tracing.context.scope import name_scope
from ...tracing.guards.lost import warn
from ...tracing.values.operation import Operation
from ...tracing.values.tracer import Tracer
from ...transforms.graph_gradients import gradients
from ...transforms.reverse import variable_gradients
from .checks import check_number
from .clipping import clip_by_global_norm, clip_by_value, squared

State = dict[str, Any]

# So that two threads that take a first step make one set of slots.
_MAKING = freed(threading.RLock())


class Optimizer(ABC):
    """Base class: a subclass names its slots and computes one leaf's step.

    ``lr`` is a number, an array, a Variable, or a schedule, which is called with the number of
    steps taken. Gradients are kept within ``clip_value`` one by one, and then within ``clip_norm``
    all together, where these are given. They are as ``weft.grad`` gives them: for complex
    parameters, the step goes along their conjugates, which is where the loss falls.

    Raises DTypeError (W112) for what is no number, ParameterError (W132) for one out of its range:
    a rate is not negative, a decay (momentum, beta1, beta2) from 0 to 1.
    """

    slots: tuple[str, ...] = ()
    real_slots: tuple[str, ...] = ()  # those that are real for complex parameters, too
    counts = False  # whether the step number is kept

    def __init__(self, lr: Any, *, clip_norm: Any = None, clip_value: Any = None) -> None:
        if isinstance(lr, Variable) or not callable(lr):
            check_number("lr", lr, what="a number, an array, a Variable or a schedule")
        for limit_name, limit in (("clip_norm", clip_norm), ("clip_value", clip_value)):
            if limit is not None:
                check_number(limit_name, limit, above=True)
        self.lr, self.clip_norm, self.clip_value = lr, clip_norm, clip_value
        self.counts = self.counts or self._scheduled()
        self._variables: dict[tuple[int, str], Variable] = {}
        self._kept: list[Variable] = []  # so that the ids of the keys stay theirs
        self._steps: Variable | None = None

    @abstractmethod
    def step(
        self, grad: Any, slots: dict[str, Any], param: Any, count: Any
    ) -> tuple[Any, dict[str, Any]]:
        """The new parameter and slots of one leaf, up whose slope ``grad`` points; ``count`` is the
        step number from 1."""

    def rate(self, param: Any, count: Any) -> Any:
        """The learning rate, in the parameter's dtype if it is no Python number."""
        if self._scheduled():
            return self.lr(count - 1).astype(np.result_type(param))
        if isinstance(self.lr, (Variable, np.ndarray)):
            return self.lr.astype(np.result_type(param))
        return self.lr

    def _scheduled(self) -> bool:
        return callable(self.lr) and not isinstance(self.lr, Variable)

    def _clipped(self, grads: Any) -> Any:
        if self.clip_value is not None:
            grads = clip_by_value(grads, self.clip_value)
        return grads if self.clip_norm is None else clip_by_global_norm(grads, self.clip_norm)

    def init(self, params: Any) -> State:
        """The state before the first step: a nest of zeros for each slot."""
        state: State = {name: tree.map(
            lambda param, name=name: np.zeros_like(self._part(name, param)), params)
            for name in self.slots}
        if self.counts:
            state["count"] = np.int64(0)
        return state

    def _part(self, slot: str, param: Any) -> Any:
        """What of a parameter is like its slot."""
        return np.real(param) if slot in self.real_slots else param

    def update(self, grads: Any, state: State, params: Any) -> tuple[Any, State]:
        """New parameters and state. Raises ShapeError (W102) if the nests differ in structure or
        in shapes, DTypeError (W111) for parameters that are no floats."""
        count = state["count"] + 1 if self.counts else None
        leaves, structure = tree.flatten(params)
        columns = [tree.matched(structure, nest)
                   for nest in (self._clipped(grads), *(state[name] for name in self.slots))]
        for path, param, grad in zip(tree.paths(structure), leaves, columns[0], strict=True):
            _check(path, param, grad)
        stepped = [self.step(_uphill(grad), dict(zip(self.slots, row, strict=True)), param, count)
                   for param, grad, *row in zip(leaves, *columns, strict=True)]
        new: State = {name: tree.unflatten(structure, [slots[name] for _, slots in stepped])
                      for name in self.slots}
        if self.counts:
            new["count"] = count
        return tree.unflatten(structure, [param for param, _ in stepped]), new

    def minimize(
        self, loss: Callable[..., Any] | Any,
        variables: Sequence[Variable] | Variable | None = None,
        *args: Any, name: str = "minimize", has_aux: bool = False,
    ) -> Any:
        """One step on variables down the gradient of ``loss(*args)``; its value before the step.
        With ``has_aux`` the loss returns ``(value, aux)``, and so does this: only the value is
        differentiated, and aux is a nest of what else was computed before the step.

        In traced code the assignments become part of the graph; else it runs at once. A step that
        fails changes no variable.

        Of a value of a ``weft.Graph`` it gives the operation to fetch, called ``name``, which moves
        the variables that the value depends on: by default, the trainable ones of the graph.

        >>> import numpy as np, weft
        >>> w = weft.Variable(np.array([2.0, 1.0]))
        >>> def loss(x):
        ...     error = x @ w
        ...     return error**2, {"error": error}
        >>> weft.optim.SGD(0.1).minimize(loss, [w], np.array([1.0, 1.0]), has_aux=True)
        (np.float64(9.0), {'error': np.float64(3.0)})
        >>> w.value
        array([1.4, 0.4])

        A variable that is named and on which the value does not depend stays as it is, with a
        TracingWarning; raises DTypeError (W114) if it depends on none.
        """
        if isinstance(loss, Tracer) and active() is None:
            with context_of(loss.context()).activate():
                return self.minimize(loss, variables, *args, name=name, has_aux=has_aux)
        if isinstance(loss, Tracer) and has_aux:
            raise error("W114", "has_aux is for a function that returns (value, aux), not for a "
                                "value of a graph", locs=user_loc(),
                        hint="leave has_aux out, and fetch the other values beside the operation")
        if not isinstance(loss, Tracer) and not callable(loss):
            raise error("W114", f"nothing leads back from {type(loss).__name__} to variables",
                        locs=user_loc(),
                        hint="give a function of the loss, or a value of a weft.Graph")
        if isinstance(variables, Variable):
            variables = [variables]
        trace = active()
        named = variables is not None
        if variables is None:
            if not isinstance(trace, Graph):
                raise error("W112", "minimize was not told which variables to change",
                            locs=user_loc(), hint="give them: minimize(loss, [w, b])")
            variables = list(trace.trainable_variables.values())
        if trace is None:
            def minimized(*given: Any) -> Any:
                return self.minimize(loss, variables, *given, has_aux=has_aux)

            return run_eagerly(minimized, args)
        value, aux, grads = (loss, None, gradients(loss, variables)) if isinstance(
            loss, Tracer) else variable_gradients(loss, variables, args, has_aux)
        pairs = list(zip(grads, variables, strict=True))
        _check_reached(value, pairs, named)
        if isinstance(trace, Graph) and value is loss:
            return self.apply_gradients(pairs, name)
        aux = tree.map(lambda leaf: leaf[...] if isinstance(leaf, Variable) else leaf, aux)
        moved = self._moved_all(pairs)
        return tree.map(lambda leaf: after(leaf, moved), (value, aux) if has_aux else value)

    def apply_gradients(
        self, pairs: Iterable[tuple[Any, Variable]], name: str = "apply_gradients"
    ) -> Operation:
        """The operation of a graph that moves each variable by its gradient, where that is not
        None: ``optimizer.apply_gradients(zip(weft.gradients(loss, variables), variables))``."""
        pairs = list(pairs)
        traced = next((grad for grad, _ in pairs if isinstance(grad, Tracer)), None)
        if traced is not None and active() is None:
            with context_of(traced.context()).activate():
                return self.apply_gradients(pairs, name)
        return group(*self._moved_all(pairs), name=name)

    def _moved_all(self, pairs: Sequence[tuple[Any, Variable]]) -> list[Any]:
        """The assignments of one step, with gradients that are there."""
        known = [(grad, variable) for grad, variable in pairs if grad is not None]
        grads = self._clipped([grad for grad, _ in known])
        count = None
        operations = []
        if self.counts:
            steps = self._counter()
            operations.append(steps.assign_add(1))
            count = steps[()]
        for (_, variable), grad in zip(known, grads, strict=True):
            slots = {name: self._slot(variable, name) for name in self.slots}
            new, updated = self.step(_uphill(grad), {name: v[...] for name, v in slots.items()},
                                     variable[...], count)
            operations.append(variable.assign(new))
            operations += [slot.assign(updated[name]) for name, slot in slots.items()]
        return operations

    def _counter(self) -> Variable:
        with _MAKING:
            if self._steps is None:
                with name_scope(None):
                    self._steps = Variable(np.int64(0), name="optimizer_steps", trainable=False)
            return self._steps

    def _slot(self, variable: Variable, name: str) -> Variable:
        key = (id(variable), name)
        with _MAKING:
            if key not in self._variables:
                with name_scope(None):
                    self._variables[key] = Variable(
                        np.zeros(variable.shape, self._part(name, variable.cell.value).dtype),
                        name=f"{variable.name}/{name}", trainable=False)
                self._kept.append(variable)
            return self._variables[key]

    @property
    def variables(self) -> list[Variable]:
        """The state that ``minimize`` has made, to be saved with the model."""
        return [*self._variables.values(), *([self._steps] if self._steps is not None else [])]


def _check_reached(
    value: Any, pairs: Sequence[tuple[Any, Variable]], named: bool
) -> None:
    """Warn of variables that were named and that the loss does not read. Raises DTypeError (W114)
    if it reads none."""
    unread = [variable.name for grad, variable in pairs if grad is None]
    what = value.name if isinstance(value, Tracer) else "the loss"
    if len(unread) == len(pairs):
        raise error("W114", f"{what} does not depend on any of the variables", locs=user_loc(),
                    hint="name those that it is computed from")
    if unread and named:
        names = ", ".join(f"'{each}'" for each in unread)
        warn(f"{what} does not depend on {names}, which minimize leaves as "
             f"{'they are' if len(unread) > 1 else 'it is'}", user_loc())


def _check(path: str, param: Any, grad: Any) -> None:
    """A parameter can be moved, and its gradient says where."""
    at = f" at {path}" if path else ""
    if np.result_type(param).kind not in "fcV":
        raise error("W111", f"the parameter{at} is {np.result_type(param)}, which has no gradient",
                    locs=user_loc(), hint="make it floating-point: param.astype(np.float32)")
    if np.shape(param) != np.shape(grad):
        raise error("W102", f"the gradient{at} has shape {np.shape(grad)}, its parameter "
                            f"{np.shape(param)}", locs=user_loc(),
                    hint="give gradients by the parameters themselves, as weft.grad has them")


def _uphill(grad: Any) -> Any:
    return np.conj(grad) if np.result_type(grad).kind == "c" else grad


def _decay(rate: float, old: Any, new: Any) -> Any:
    return rate * old + (1 - rate) * new


class SGD(Optimizer):
    """param -= lr * grad; with momentum, lr times the decaying sum of gradients (Polyak, 1964),
    with ``nesterov`` one step ahead (Sutskever et al., 2013); ``weight_decay`` adds to the gradient
    that much of the parameter."""

    def __init__(self, lr: Any, momentum: float = 0.0, nesterov: bool = False,
                 weight_decay: float = 0.0, **clip: Any) -> None:
        super().__init__(lr, **clip)
        check_number("momentum", momentum, 0, 1)
        check_number("weight_decay", weight_decay)
        checked_flag(nesterov, "nesterov")
        self.momentum, self.nesterov, self.weight_decay = momentum, nesterov, weight_decay
        self.slots = ("momentum",) if momentum else ()

    def step(self, grad: Any, slots: Any, param: Any, count: Any) -> Any:
        if self.weight_decay:
            grad = grad + self.weight_decay * param
        if not self.momentum:
            return param - self.rate(param, count) * grad, {}
        total = self.momentum * slots["momentum"] + grad
        direction = grad + self.momentum * total if self.nesterov else total
        return param - self.rate(param, count) * direction, {"momentum": total}


class Adam(Optimizer):
    """Kingma and Ba, 2015; ``weight_decay`` adds to the gradient."""

    slots = ("mean", "square")
    real_slots = ("square",)
    counts = True

    def __init__(self, lr: Any = 1e-3, beta1: float = 0.9, beta2: float = 0.999, eps: float = 1e-8,
                 weight_decay: float = 0.0, **clip: Any) -> None:
        super().__init__(lr, **clip)
        for name, beta in (("beta1", beta1), ("beta2", beta2)):
            check_number(name, beta, 0, 1, below=True)
        check_number("eps", eps)
        check_number("weight_decay", weight_decay)
        self.beta1, self.beta2, self.eps, self.weight_decay = beta1, beta2, eps, weight_decay

    def step(self, grad: Any, slots: Any, param: Any, count: Any) -> Any:
        if self.weight_decay:
            grad = grad + self.weight_decay * param
        return self._moved(grad, slots, param, count)

    def _moved(self, grad: Any, slots: Any, param: Any, count: Any) -> Any:
        mean = _decay(self.beta1, slots["mean"], grad)
        square = _decay(self.beta2, slots["square"], squared(grad))
        # The counts are float64; the corrections take the parameter's dtype.
        dtype = np.result_type(np.real(param))
        fix_mean = (1 - self.beta1 ** count).astype(dtype)
        fix_square = (1 - self.beta2 ** count).astype(dtype)
        move = (mean / fix_mean) / (np.sqrt(square / fix_square) + self.eps)
        return param - self.rate(param, count) * move, {"mean": mean, "square": square}


class AdamW(Adam):
    """Adam with decoupled weight decay (Loshchilov and Hutter, 2019)."""

    def __init__(self, lr: Any = 1e-3, beta1: float = 0.9, beta2: float = 0.999, eps: float = 1e-8,
                 weight_decay: float = 1e-2, **clip: Any) -> None:
        super().__init__(lr, beta1, beta2, eps, weight_decay, **clip)

    def step(self, grad: Any, slots: Any, param: Any, count: Any) -> Any:
        smaller = param - self.rate(param, count) * self.weight_decay * param
        return self._moved(grad, slots, smaller, count)


class RMSProp(Optimizer):
    """Divides by the root of the decaying mean of squared gradients (Hinton, 2012)."""

    slots = real_slots = ("square",)

    def __init__(self, lr: Any = 1e-2, decay: float = 0.99, eps: float = 1e-8,
                 **clip: Any) -> None:
        super().__init__(lr, **clip)
        check_number("decay", decay, 0, 1)
        check_number("eps", eps)
        self.decay, self.eps = decay, eps

    def step(self, grad: Any, slots: Any, param: Any, count: Any) -> Any:
        square = _decay(self.decay, slots["square"], squared(grad))
        move = self.rate(param, count) * grad / (np.sqrt(square) + self.eps)
        return param - move, {"square": square}


class Adagrad(Optimizer):
    """Divides by the root of the sum of squared gradients (Duchi et al., 2011)."""

    slots = real_slots = ("square",)

    def __init__(self, lr: Any = 1e-2, eps: float = 1e-10, **clip: Any) -> None:
        super().__init__(lr, **clip)
        check_number("eps", eps)
        self.eps = eps

    def step(self, grad: Any, slots: Any, param: Any, count: Any) -> Any:
        square = slots["square"] + squared(grad)
        move = self.rate(param, count) * grad / (np.sqrt(square) + self.eps)
        return param - move, {"square": square}
