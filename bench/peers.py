"""The contestants: Weft, NumPy, JAX and PyTorch, eager and compiled, behind one small interface.

A workload is written once, as a function of a ``Framework``; what it is made of (``np.tanh``,
``softmax``, ``layer_norm``) is what a user of that framework would write. Arguments are the
framework's own arrays, made before anything is timed.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import shutil
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from threadpoolctl import threadpool_info  # type: ignore[import-untyped]

import weft

Function = Callable[..., Any]


class Framework:
    """NumPy, and what the others have in common with it."""

    name = "numpy"
    np: Any = np
    compiles = False

    def array(self, value: Any) -> Any:
        """A framework's own array from NumPy's."""
        return value

    def compile(self, function: Function) -> Function:
        return function

    def fresh(self) -> None:
        """Called before the functions of each workload are made."""

    def finish(self, result: Any) -> str:
        """What to write around a call, given a result of it, so that it ends when it is done."""
        return "{}"

    def wait(self, result: Any) -> Any:
        """Return once a nest of results is there."""
        return result

    def threads(self, count: int) -> None:
        """Use ``count`` threads; BLAS and OpenMP libraries have been told already."""

    def version(self) -> str:
        """With the kernels that its BLAS has chosen: on a new CPU these may be an old one's."""
        blas = [f"{found['internal_api']} {found.get('architecture', '')}".strip()
                for found in threadpool_info() if found["user_api"] == "blas"]
        return f"{np.__version__} ({', '.join(blas)})" if blas else str(np.__version__)

    # -- what workloads are made of -------------------------------------------------------------

    def erf(self, x: Any) -> Any:
        """NumPy has none: SciPy's."""
        return importlib.import_module("scipy.special").erf(x)

    def softmax(self, x: Any, axis: int = -1) -> Any:
        powers = np.exp(x - np.max(x, axis=axis, keepdims=True))
        return powers / np.sum(powers, axis=axis, keepdims=True)

    def log_softmax(self, x: Any) -> Any:
        shifted = x - np.max(x, axis=-1, keepdims=True)
        return shifted - np.log(np.sum(np.exp(shifted), axis=-1, keepdims=True))

    def layer_norm(self, x: Any, weight: Any, bias: Any) -> Any:
        centred = x - self.np.mean(x, axis=-1, keepdims=True)
        variance = self.np.mean(centred * centred, axis=-1, keepdims=True)
        return centred / self.np.sqrt(variance + 1e-5) * weight + bias

    def rms_norm(self, x: Any, weight: Any) -> Any:
        return x / self.np.sqrt(self.np.mean(x * x, axis=-1, keepdims=True) + 1e-6) * weight

    def gelu(self, x: Any) -> Any:
        """The tanh form, which NumPy can do on its own."""
        return 0.5 * x * (1 + self.np.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))

    def copy_of(self, x: Any) -> Any:
        """A view as a dense array: NumPy's eager views would cost nothing."""
        return np.ascontiguousarray(x)

    def largest(self, x: Any, axis: int) -> Any:
        return self.np.max(x, axis=axis)

    def swapped(self, x: Any) -> Any:
        """The last two axes swapped."""
        return self.np.swapaxes(x, -1, -2)

    def cross_entropy(self, logits: Any, labels: Any) -> Any:
        logs = self.log_softmax(logits)
        return -self.np.mean(logs[self.np.arange(labels.shape[0]), labels])

    def relu(self, x: Any) -> Any:
        return self.np.maximum(x, 0)

    def attention(self, query: Any, key: Any, value: Any, causal: bool = False) -> Any:
        """Over the last two axes."""
        scores = query @ self.swapped(key) / float(np.sqrt(query.shape[-1]))
        if causal:
            seen = np.tri(query.shape[-2], dtype=bool)
            scores = self.np.where(seen, scores, self.np.float32(-1e30))
        return self.softmax(scores) @ value

    def conv2d(self, x: Any, w: Any, padding: int = 0) -> Any:
        """Images of (N, C, H, W), filters of (O, C, KH, KW)."""
        around = padding, padding
        x = np.pad(x, ((0, 0), (0, 0), around, around))
        windows = np.lib.stride_tricks.sliding_window_view(x, w.shape[2:], (2, 3))
        return np.moveaxis(np.tensordot(windows, w, ((1, 4, 5), (1, 2, 3))), 3, 1)

    def max_pool2d(self, x: Any, size: int) -> Any:
        *outer, height, width = x.shape
        return x.reshape(*outer, height // size, size, width // size, size).max((-3, -1))

    def lstm(self, xs: Any, h: Any, c: Any, w_x: Any, w_h: Any, bias: Any) -> Any:
        """The outputs of all times, (T, B, H)."""
        found = []
        for x in xs @ w_x + bias:
            i, f, g, o = np.split(x + h @ w_h, 4, axis=-1)
            c = c / (1 + np.exp(-f)) + np.tanh(g) / (1 + np.exp(-i))
            h = np.tanh(c) / (1 + np.exp(-o))
            found.append(h)
        return np.stack(found)

    def looked_up(self, ids: Any, table: Any) -> Any:
        """The rows of a table, of which few take part in a step."""
        return table[ids]

    def repeat(self, times: int, function: Function, x: Any) -> Any:
        """``function`` applied to ``x`` so many times."""
        for _ in range(times):
            x = function(x)
        return x

    def sums_of(self, x: Any, labels: Any, count: int) -> Any:
        """The sums of the rows with each label."""
        made = np.zeros((count, x.shape[1]), x.dtype)
        np.add.at(made, labels, x)
        return made


class Weft(Framework):
    """Traces plain NumPy code; ``weft.nn`` has the names that NumPy lacks."""

    name = "weft"
    compiles = True
    erf = staticmethod(weft.special.erf)
    softmax = staticmethod(weft.nn.softmax)
    log_softmax = staticmethod(weft.nn.log_softmax)
    layer_norm = staticmethod(weft.nn.layer_norm)
    rms_norm = staticmethod(weft.nn.rms_norm)
    cross_entropy = staticmethod(weft.nn.cross_entropy)
    relu = staticmethod(weft.nn.relu)
    conv2d = staticmethod(weft.nn.conv2d)
    max_pool2d = staticmethod(weft.nn.max_pool2d)

    def __init__(self, target: str | None = None) -> None:
        self.target = target

    def compile(self, function: Function) -> Function:
        return weft.compile(function, target=self.target)

    def gelu(self, x: Any) -> Any:
        return weft.nn.gelu(x, approximate="tanh")

    def copy_of(self, x: Any) -> Any:
        """A result is dense anyway."""
        return x

    def attention(self, query: Any, key: Any, value: Any, causal: bool = False) -> Any:
        return weft.nn.scaled_dot_product_attention(query, key, value, is_causal=causal)

    def lstm(self, xs: Any, h: Any, c: Any, w_x: Any, w_h: Any, bias: Any) -> Any:
        return weft.nn.lstm(xs, (h, c), w_x, w_h, bias)[0]

    def threads(self, count: int) -> None:
        weft.set_num_threads(count)

    def version(self) -> str:
        return weft.__version__


class Jax(Framework):
    """jax.jit; calls are asynchronous, so each waits for its result."""

    name = "jax"
    compiles = True

    def __init__(self) -> None:
        self.jax = importlib.import_module("jax")
        self.jax.config.update("jax_enable_x64", True)
        self.jax.config.update("jax_platforms", "cpu")
        self.np = self.jax.numpy

    def array(self, value: Any) -> Any:
        # A copy: JAX may otherwise share NumPy's memory, which training in place would write to.
        return self.np.array(value, copy=True)

    def compile(self, function: Function) -> Function:
        made: Function = self.jax.jit(function)
        return made

    def fresh(self) -> None:
        self.jax.clear_caches()

    def finish(self, result: Any) -> str:
        # The function for nests costs some microseconds of its own.
        if hasattr(result, "block_until_ready"):
            return "{}.block_until_ready()"
        return "wait({})"

    def wait(self, result: Any) -> Any:
        return self.jax.block_until_ready(result)

    def erf(self, x: Any) -> Any:
        return self.jax.lax.erf(x)

    def softmax(self, x: Any, axis: int = -1) -> Any:
        return self.jax.nn.softmax(x, axis=axis)

    def log_softmax(self, x: Any) -> Any:
        return self.jax.nn.log_softmax(x)

    def gelu(self, x: Any) -> Any:
        return self.jax.nn.gelu(x, approximate=True)

    def conv2d(self, x: Any, w: Any, padding: int = 0) -> Any:
        return self.jax.lax.conv_general_dilated(x, w, (1, 1), [(padding, padding)] * 2)

    def max_pool2d(self, x: Any, size: int) -> Any:
        window = (1, 1, size, size)
        return self.jax.lax.reduce_window(x, -np.inf, self.jax.lax.max, window, window, "VALID")

    def lstm(self, xs: Any, h: Any, c: Any, w_x: Any, w_h: Any, bias: Any) -> Any:
        # The products with the inputs are one, before the loop.
        def cell(state: Any, x: Any) -> Any:
            h, c = state
            i, f, g, o = self.np.split(x + h @ w_h, 4, axis=-1)
            sigmoid = self.jax.nn.sigmoid
            c = sigmoid(f) * c + sigmoid(i) * self.np.tanh(g)
            h = sigmoid(o) * self.np.tanh(c)
            return (h, c), h

        return self.jax.lax.scan(cell, (h, c), xs @ w_x + bias)[1]

    def repeat(self, times: int, function: Function, x: Any) -> Any:
        return self.jax.lax.fori_loop(0, times, lambda _, x: function(x), x)

    def sums_of(self, x: Any, labels: Any, count: int) -> Any:
        return self.jax.ops.segment_sum(x, labels, num_segments=count)

    def copy_of(self, x: Any) -> Any:
        return x

    def version(self) -> str:
        return str(self.jax.__version__)


class Torch(Framework):
    """Eager PyTorch."""

    name = "torch"

    def __init__(self) -> None:
        self.torch = self.np = importlib.import_module("torch")
        self.torch.set_grad_enabled(True)
        self.functional = importlib.import_module("torch.nn.functional")
        self.relu, self.conv2d = self.functional.relu, self.functional.conv2d
        self.max_pool2d = self.functional.max_pool2d

    def erf(self, x: Any) -> Any:
        return self.torch.erf(x)

    def array(self, value: Any) -> Any:
        return self.torch.tensor(value)

    def threads(self, count: int) -> None:
        self.torch.set_num_threads(count)

    def softmax(self, x: Any, axis: int = -1) -> Any:
        return self.torch.softmax(x, axis)

    def log_softmax(self, x: Any) -> Any:
        return self.torch.log_softmax(x, -1)

    def layer_norm(self, x: Any, weight: Any, bias: Any) -> Any:
        return self.functional.layer_norm(x, weight.shape, weight, bias, 1e-5)

    def rms_norm(self, x: Any, weight: Any) -> Any:
        return self.functional.rms_norm(x, weight.shape, weight, 1e-6)

    def gelu(self, x: Any) -> Any:
        return self.functional.gelu(x, approximate="tanh")

    def copy_of(self, x: Any) -> Any:
        return x.contiguous()

    def largest(self, x: Any, axis: int) -> Any:
        return self.torch.amax(x, axis)

    def cross_entropy(self, logits: Any, labels: Any) -> Any:
        return self.functional.cross_entropy(logits, labels)

    def attention(self, query: Any, key: Any, value: Any, causal: bool = False) -> Any:
        return self.functional.scaled_dot_product_attention(query, key, value, is_causal=causal)

    def lstm(self, xs: Any, h: Any, c: Any, w_x: Any, w_h: Any, bias: Any) -> Any:
        weights = [w_x.T.contiguous(), w_h.T.contiguous(), bias, self.torch.zeros_like(bias)]
        return self.torch.lstm(xs, (h[None], c[None]), weights, True, 1, 0.0, False, False,
                               False)[0]

    def looked_up(self, ids: Any, table: Any) -> Any:
        # The gradient is of those rows then.
        return self.functional.embedding(ids, table, sparse=True)

    def sums_of(self, x: Any, labels: Any, count: int) -> Any:
        return self.torch.zeros((count, x.shape[1])).index_add(0, labels, x)

    def version(self) -> str:
        return str(self.torch.__version__)


class TorchCompiled(Torch):
    """torch.compile, which needs a C++ compiler at run time."""

    name = "torch-compiled"
    compiles = True

    def compile(self, function: Function) -> Function:
        made: Function = self.torch.compile(function, dynamic=False)
        return made

    def fresh(self) -> None:
        # It counts recompilations by source line, and falls back to eager after a few.
        self.torch.compiler.reset()


PEERS: dict[str, tuple[str, type[Framework]]] = {
    "numpy": ("numpy", Framework),
    "jax": ("jax", Jax),
    "torch": ("torch", Torch),
    "torch-compiled": ("torch", TorchCompiled),
}


def available(names: Sequence[str] | None) -> list[Framework]:
    """The peers called ``names``, or all that are installed. Raises ValueError for others."""
    found = []
    for name in PEERS if names is None else names:
        if name not in PEERS:
            raise ValueError(f"no peer {name!r}; there are {', '.join(PEERS)}")
        module, kind = PEERS[name]
        ready = importlib.util.find_spec(module) is not None
        if name == "torch-compiled":
            ready = ready and any(map(shutil.which, (os.environ.get("CXX", "g++"), "clang++")))
        if ready:
            found.append(kind())
        elif names is not None:
            raise ValueError(f"peer {name} is not installed")
    return found
