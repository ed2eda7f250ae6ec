"""Names that users of other libraries look for, and what has their place here."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

FUNCTIONS: Mapping[str, str] = MappingProxyType({
    "jit": "weft.compile", "function": "weft.compile", "pmap": "weft.vmap", "map": "weft.vmap",
    "lax": "weft.scan, weft.cond, weft.while_loop and weft.fori_loop",
    "checkpoint": "weft.remat (weft.save is for variables)", "custom_jvp": "weft.custom_vjp",
    "jacrev": "weft.vmap(weft.vjp(f, x)[1])(np.eye(n))",
    "jacobian": "weft.vmap(weft.vjp(f, x)[1])(np.eye(n))",
    "jacfwd": "weft.vmap(lambda v: weft.jvp(f, (x,), (v,))[1])(np.eye(n))",
    "hessian": "weft.vmap(lambda v: weft.jvp(weft.grad(f), (x,), (v,))[1])(np.eye(n))",
    "elementwise_grad": "weft.vmap(weft.grad(f))", "no_grad": "weft.stop_gradient",
    "GradientTape": "weft.grad", "tree_util": "weft.tree", "tensor": "np.array",
    "constant": "np.array", "Tensor": "np.ndarray", "device_put": "the array as it is",
    "associative_scan": "weft.scan", "make_jaxpr": "f.trace(*args).as_text()",
})
METHODS: Mapping[str, str] = MappingProxyType({
    "backward": "weft.grad(f)", "grad": "weft.grad(f)", "requires_grad_": "weft.grad(f)",
    "detach": "weft.stop_gradient(x)", "numpy": "the array as it is", "cpu": "the array as it is",
    "cuda": "weft.device", "to": "x.astype(dtype)", "unsqueeze": "x[None], np.expand_dims(x, axis)",
    "permute": "x.transpose(axes)", "block_until_ready": "the result of the compiled function",
})


def instead(name: str, names: Mapping[str, str]) -> str:
    """What to use, as the end of a message about an attribute that is not there."""
    return f"; use {names[name]}" if name in names else ""
