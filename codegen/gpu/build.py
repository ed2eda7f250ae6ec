"""Triton source to GPU binaries, or run by Triton's interpreter; the only user of triton.

Neither way needs a GPU or PyTorch. ``compile_triton`` builds ahead of time for a named target;
``run_kernel_triton`` has the meaning of the NumPy kernel interpreter, so any test of a plan can
run with it. A process can do one of the two: Triton decides at import, by TRITON_INTERPRET=1.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import linecache
import marshal
import os
import re
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType, SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...ir.indices.walk import evaluate
from ...ir.interp.kernel import ChecksFailedError
from ...ir.kernels.kernel import Kernel
from ...ir.plans.image import Binary, KernelImage
from ...ir.record import as_dict, record
from ..cache import cache as disk_cache
from ..cache import key_of
from ..shared import versions
from .pointer import Pointer
from .source import emit_triton

_Array = NDArray[Any]

# Back end, architecture and threads of a warp, as Triton's GPUTarget takes them.
TARGETS: Mapping[str, tuple[str, int | str, int]] = MappingProxyType({
    "sm_80": ("cuda", 80, 32), "sm_90": ("cuda", 90, 32), "sm_100": ("cuda", 100, 32),
    "gfx942": ("hip", "gfx942", 64),
})
_ALIGNED = [["tt.divisibility", 16]]
# What Triton's interpreter walks element by element in Python, NumPy does at once.
_UFUNCS = MappingProxyType({
    "nan_max": np.maximum, "nan_min": np.minimum, "multiply": np.multiply,
    "bit_and": np.bitwise_and, "bit_or": np.bitwise_or,
})


@record(frozen=True)
class Compiled:
    """A kernel compiled for one target.

    ``asm`` holds every stage by name: ttir, ttgir, llir, then ptx and cubin or amdgcn and hsaco.
    ``registers`` per thread and ``stack`` bytes (spills) are known for NVIDIA.
    """

    binary: Binary
    asm: Mapping[str, str | bytes]
    registers: int | None = None
    stack: int | None = None


def interpreting() -> bool:
    """True if this process has, or would import, Triton as an interpreter."""
    return os.environ.get("TRITON_INTERPRET") == "1"


def compile_triton(image: KernelImage, target: str) -> Compiled:
    """Compile for ``sm_80``, ``sm_90`` and other NVIDIA GPUs by their capability, or ``gfx942``;
    buffers must be 16-byte aligned (the status need not be: those of several launches may lie side
    by side).

    Raises RuntimeError in a process that interprets, KeyError for an unknown target.
    """
    kind, arch, warp = _target(target)
    if interpreting():
        raise RuntimeError("cannot compile Triton kernels in a process with TRITON_INTERPRET=1")
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource, compile

    pointers = [at for at, (_, type_) in enumerate(image.signature) if type_.startswith("*")]
    built = compile(
        ASTSource(_function(image.text, image.name), dict(image.signature), {},
                  {(at,): _ALIGNED for at in pointers[:len(pointers) - image.checked]}),
        target=GPUTarget(kind, arch, warp),
        # Multiplications and additions are fused where the kernel says fma, nowhere else.
        options={"num_warps": image.warps, "num_stages": image.pipeline,
                 "enable_fp_fusion": False})
    meta = built.metadata
    code = built.asm["cubin" if kind == "cuda" else "hsaco"]
    assert isinstance(code, bytes)
    return Compiled(
        Binary(meta.name, code, meta.num_warps * warp, meta.shared,
               getattr(meta, "global_scratch_size", 0)),
        dict(built.asm), *_resources(code) if kind == "cuda" else ())


def binary_of(image: KernelImage, target: str) -> Binary:
    """A kernel compiled for a target, which the disk may have; Triton is imported if not."""
    store, version = disk_cache(), importlib.metadata.version("triton")
    key = key_of("gpu", repr(image), target, version, versions())
    data = store.get(key, image.name) if store is not None else None
    if data is not None:
        return Binary(**marshal.loads(data))
    made = compile_triton(image, target).binary
    if store is not None:
        store.put(key, marshal.dumps(as_dict(made)))
    return made


def _target(name: str) -> tuple[str, int | str, int]:
    numbers = re.fullmatch(r"sm_(\d+)", name)
    return ("cuda", int(numbers[1]), 32) if numbers else TARGETS[name]


def _resources(cubin: bytes) -> tuple[int | None, int | None]:
    """Registers of a thread and stack bytes, which are spills here, as cuobjdump reports them."""
    from triton import knobs

    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        report = subprocess.run([knobs.nvidia.cuobjdump.path, "-res-usage", file.name],
                                capture_output=True, text=True, check=False).stdout
    found = re.search(r"REG:(\d+) STACK:(\d+)", report)
    return (int(found[1]), int(found[2])) if found else (None, None)


@functools.lru_cache(maxsize=1024)
def _namespace(text: str) -> dict[str, Any]:
    """Run generated source; Triton reads it back through linecache."""
    file = f"<weft {hashlib.sha256(text.encode()).hexdigest()[:16]}>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    namespace: dict[str, Any] = {"__name__": "weft_generated"}
    exec(compile(text, file, "exec"), namespace)
    return namespace


def _function(text: str, name: str) -> Any:
    return _namespace(text)[name]


def run_kernel_triton(
    kernel: Kernel, buffers: Mapping[str, _Array], dims: Mapping[str, int]
) -> None:
    """Run a kernel in Triton's interpreter on the memory of dense arrays, by parameter name.

    Raises ChecksFailedError (W124) with the site of a check that failed, if one did, and
    RuntimeError unless the process was started with TRITON_INTERPRET=1.
    """
    launch = prepared()
    source = emit_triton(kernel)
    grid = evaluate(source.grid, dims)
    if grid == 0:
        return
    status = np.zeros(1, np.int32)
    given = [*(buffers[param.name] for param in kernel.params),
             *(dims[name] for name in source.dims), *([status] if source.checked else [])]
    launch(source.text, source.name, grid,
           [_pointer(x, type_[1:]) if isinstance(x, np.ndarray) else x
            for x, (_, type_) in zip(given, source.signature, strict=True)])
    if status[0]:
        raise ChecksFailedError(kernel.name, frozenset((int(status[0]),)), kernel.locs)


def prepared() -> Callable[[str, str, int, Sequence[Any]], None]:
    """Triton's interpreter, ready to launch a kernel: given its source, its name, the number of
    programs, and its arguments, of which arrays look like Triton's tensors.

    Raises RuntimeError unless the process was started with TRITON_INTERPRET=1.
    """
    if not interpreting():
        raise RuntimeError("Triton's interpreter needs TRITON_INTERPRET=1 in the environment "
                           "before triton is imported: run it in a process of its own")
    _patch_interpreter()
    return _launch


def _launch(text: str, name: str, grid: int, arguments: Sequence[Any]) -> None:
    namespace = _namespace(text)
    namespace["libdevice"] = _libdevice()
    with np.errstate(all="ignore"):
        namespace[name][(grid,)](*arguments)


def _pointer(array: _Array, dtype: str) -> Pointer:
    """Where the array is, which must outlive the launch."""
    if not array.flags.c_contiguous:
        raise ValueError("kernels run on dense row-major arrays")
    return Pointer(int(array.ctypes.data), dtype)


@functools.cache
def _patch_interpreter() -> None:
    """Fast reductions by our own functions, and what Triton 3.6 lacks."""
    import triton.language as tl
    import triton.runtime.interpreter as interpreter

    reduce_slowly = interpreter.ReduceOps.apply_impl

    def reduce(self: Any, inputs: Any) -> Any:
        ufunc = _UFUNCS.get(self.combine_fn.fn.__name__)
        if ufunc is None or len(inputs) != 1:
            return reduce_slowly(self, inputs)
        data = ufunc.reduce(inputs[0].handle.data, axis=self.axis, keepdims=self.keep_dims)
        return self.to_tensor(data, inputs[0].dtype)

    interpreter.ReduceOps.apply_impl = reduce
    binary = interpreter.InterpreterBuilder.binary_op

    def binary_op(self: Any, lhs: Any, rhs: Any, op: Any) -> Any:
        result = binary(self, lhs, rhs, op)
        if result.data.dtype == np.bool_:
            result.dtype = tl.int1  # comparisons keep that of their operands, and fail as masks
        return result

    interpreter.InterpreterBuilder.binary_op = binary_op

    def fma(self: Any, x: Any, y: Any, z: Any) -> Any:
        return interpreter.TensorHandle(_fma(x.data, y.data, z.data), z.dtype.scalar)

    if not hasattr(interpreter._interpreter, "fma_fp64"):
        interpreter.InterpreterBuilder.create_fma = fma
    if not hasattr(interpreter, "_InterpreterComparison"):
        # range(tensor), which NumPy 2.4 no longer converts by itself.
        patch = interpreter._patch_lang_tensor

        def patched(tensor: Any, scope: Any) -> None:
            patch(tensor, scope)
            scope.set_attr(tensor, "__index__", lambda self: int(self.handle.data.squeeze()))

        interpreter._patch_lang_tensor = patched


def _fma(x: _Array, y: _Array, z: _Array) -> _Array:
    """x*y + z from the exact product: Dekker's, whose parts may overflow; then rounded twice."""
    if z.dtype == np.float32:
        return (x.astype(np.float64) * y + z).astype(np.float32)
    product = x * y
    (x_high, x_low), (y_high, y_low) = _halves(x), _halves(y)
    lost = x_high * y_high - product + x_high * y_low + x_low * y_high + x_low * y_low
    total = product + z
    grown = total - product
    lost = lost + (product - (total - grown) + (z - grown))
    return np.where((lost == 0) | ~np.isfinite(lost), total, total + lost)


def _halves(x: _Array) -> tuple[_Array, _Array]:
    scaled = x * 134217729.0
    high = scaled - (scaled - x)
    return high, x - high


@functools.cache
def _libdevice() -> SimpleNamespace:
    """The functions of libdevice that kernels use, on the interpreter's tensors."""
    import triton.language as tl
    from triton.runtime.interpreter import TensorHandle

    def elementwise(function: Any) -> Any:
        def call(*args: Any) -> Any:
            data = function(*(arg.handle.data for arg in args))
            kind = args[0].type.scalar
            is_block = any(arg.type.is_block() for arg in args)
            return tl.tensor(TensorHandle(data, kind),
                             tl.block_type(kind, list(data.shape)) if is_block else kind)

        return call

    return SimpleNamespace(nearbyint=elementwise(np.rint), trunc=elementwise(np.trunc),
                           fmod=elementwise(np.fmod))
