"""Weft: a just-in-time graph compiler for functions written in plain NumPy.

    import numpy as np, weft

    @weft.compile
    def dense(x, w, b):
        return np.maximum(x @ w + b, 0)

``weft.compile`` traces a function into a graph and compiles the graph to one native program;
``weft.grad`` differentiates; ``weft.Graph`` and ``weft.Session`` run parts of a graph by feeding
and fetching any value; ``weft.export`` writes programs that need neither Python nor Weft.
"""

import sys as _sys
from typing import TYPE_CHECKING as _TYPE_CHECKING

from .frontend.checkpoints import QueueRunner, Saver, restore, save
from .frontend.engine.decorator import compile, export
from .frontend.engine.function import CacheInfo, Function, RecompileWarning
from .frontend.engine.stages import Compiled, Lowered, MemoryAnalysis
from .frontend.face import elsewhere as _elsewhere
from .frontend.face import tree
from .frontend.interchange.artifact import load
from .frontend.interchange.tensorboard import SummaryWriter
from .frontend.library import data, nn, optim, random, special
from .frontend.library.segment import segment_max, segment_mean, segment_min, segment_sum
from .frontend.numpy_api import namespace as numpy
from .frontend.numpy_api.host import HostWarning
from .frontend.numpy_api.order.sort import top_k
from .frontend.profiling.profile import Profile, profile
from .frontend.session.costs import PlacementWarning
from .frontend.session.graph import Graph, placeholder
from .frontend.session.queues import FIFOQueue, PaddingFIFOQueue, RandomShuffleQueue
from .frontend.session.report import StepReport
from .frontend.session.session import Session
from .frontend.tracing.arrays.variable import Variable
from .frontend.tracing.context.dependencies import control_dependencies, group
from .frontend.tracing.context.scope import device, name_scope
from .frontend.tracing.host import host_call
from .frontend.tracing.spec import Spec
from .frontend.tracing.trace import Traced
from .frontend.transforms import stepwise as _stepwise  # noqa: F401  it adds its rows
from .frontend.transforms.control import cond, fori_loop, scan, while_loop
from .frontend.transforms.custom import custom_vjp, remat
from .frontend.transforms.forward import jvp
from .frontend.transforms.gradients import grad, value_and_grad, vmap
from .frontend.transforms.graph_gradients import gradients
from .frontend.transforms.reverse import stop_gradient, vjp
from .ir.diagnose import CODES, Error, TracingWarning
from .runtime.saver import SaveWarning
from .runtime.threads import set_num_threads

__version__ = "0.1.0"

# So that ``import weft.nn`` and ``from weft.nn import relu`` find them. Files of these names here
# would hide those of the standard library from who runs Python in this folder.
_sys.modules.update({f"{__name__}.{module.__name__.rpartition('.')[2]}": module
                     for module in (data, nn, optim, random, special, tree)})
_sys.modules.update({f"{__name__}.nn.init": nn.init})
_sys.modules.update({f"{__name__}.numpy": numpy, f"{__name__}.numpy.fft": numpy.fft,
                     f"{__name__}.numpy.linalg": numpy.linalg})

if not _TYPE_CHECKING:  # to which every name would be there
    def __getattr__(name: str) -> object:
        raise AttributeError(f"module 'weft' has no attribute {name!r}"
                             f"{_elsewhere.instead(name, _elsewhere.FUNCTIONS)}")

__all__ = [
    "CODES",
    "CacheInfo",
    "Compiled",
    "Error",
    "FIFOQueue",
    "Function",
    "Graph",
    "HostWarning",
    "Lowered",
    "MemoryAnalysis",
    "PaddingFIFOQueue",
    "PlacementWarning",
    "Profile",
    "QueueRunner",
    "RandomShuffleQueue",
    "RecompileWarning",
    "SaveWarning",
    "Saver",
    "Session",
    "Spec",
    "StepReport",
    "SummaryWriter",
    "Traced",
    "TracingWarning",
    "Variable",
    "compile",
    "cond",
    "control_dependencies",
    "custom_vjp",
    "data",
    "device",
    "export",
    "fori_loop",
    "grad",
    "gradients",
    "group",
    "host_call",
    "jvp",
    "load",
    "name_scope",
    "nn",
    "numpy",
    "optim",
    "placeholder",
    "profile",
    "random",
    "remat",
    "restore",
    "save",
    "scan",
    "segment_max",
    "segment_mean",
    "segment_min",
    "segment_sum",
    "set_num_threads",
    "special",
    "stop_gradient",
    "top_k",
    "tree",
    "value_and_grad",
    "vjp",
    "vmap",
    "while_loop",
]
