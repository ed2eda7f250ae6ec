"""Weft: a just-in-time graph compiler for functions written in plain NumPy.

    import numpy as np, weft

    @weft.compile
    def dense(x, w, b):
        return np.maximum(x @ w + b, 0)

``weft.compile`` traces a function into a graph and compiles the graph to one native program;
``weft.grad`` differentiates; ``weft.Graph`` and ``weft.Session`` run parts of a graph by feeding
and fetching any value; ``weft.export`` writes programs that need neither Python nor Weft.
"""

from .frontend import nn, optim, random, special, tree
from .frontend.artifact import load
from .frontend.compile import CacheInfo, Function, RecompileWarning, compile, export
from .frontend.context import control_dependencies, device, group, name_scope
from .frontend.gradients import grad, value_and_grad
from .frontend.graph import Graph, placeholder
from .frontend.lost import TracingWarning
from .frontend.session import Session
from .frontend.spec import Spec
from .frontend.stages import Compiled, Lowered, MemoryAnalysis
from .frontend.trace import Traced
from .frontend.transforms import stop_gradient, vjp
from .frontend.variable import Variable
from .ir.diagnose import CODES, Error
from .runtime.checkpoint import restore, save
from .runtime.threads import set_num_threads

__version__ = "0.1.0"

__all__ = [
    "CODES",
    "CacheInfo",
    "Compiled",
    "Error",
    "Function",
    "Graph",
    "Lowered",
    "MemoryAnalysis",
    "RecompileWarning",
    "Session",
    "Spec",
    "Traced",
    "TracingWarning",
    "Variable",
    "compile",
    "control_dependencies",
    "device",
    "export",
    "grad",
    "group",
    "load",
    "name_scope",
    "nn",
    "optim",
    "placeholder",
    "random",
    "restore",
    "save",
    "set_num_threads",
    "special",
    "stop_gradient",
    "tree",
    "value_and_grad",
    "vjp",
]
