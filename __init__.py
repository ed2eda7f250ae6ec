"""Weft: a just-in-time graph compiler for functions written in plain NumPy.

    import numpy as np, weft

    @weft.compile
    def dense(x, w, b):
        return np.maximum(x @ w + b, 0)

``weft.compile`` traces a function into a graph and compiles the graph to one native program;
``weft.grad`` differentiates; ``weft.Graph`` and ``weft.Session`` run parts of a graph by feeding
and fetching any value; ``weft.export`` writes programs that need neither Python nor Weft.
"""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from .frontend.face import names as _names

__version__ = "0.1.0"
__all__ = [*_names.NAMES]

_names.install()


if _TYPE_CHECKING:  # the same names, for type checkers
    from .frontend import cache as cache
    from .frontend.checkpoints import QueueRunner as QueueRunner
    from .frontend.checkpoints import Saver as Saver
    from .frontend.checkpoints import restore as restore
    from .frontend.checkpoints import save as save
    from .frontend.engine.stages import Compiled as Compiled
    from .frontend.engine.stages import Lowered as Lowered
    from .frontend.engine.stages import MemoryAnalysis as MemoryAnalysis
    from .frontend.face import tree as tree
    from .frontend.face.compile import compile as compile
    from .frontend.face.function import CacheInfo as CacheInfo
    from .frontend.face.function import Function as Function
    from .frontend.face.function import RecompileWarning as RecompileWarning
    from .frontend.interchange.ahead import export as export
    from .frontend.interchange.artifact import load as load
    from .frontend.interchange.tensorboard import SummaryWriter as SummaryWriter
    from .frontend.library import data as data
    from .frontend.library import nn as nn
    from .frontend.library import optim as optim
    from .frontend.library import random as random
    from .frontend.library import special as special
    from .frontend.library.segment import segment_max as segment_max
    from .frontend.library.segment import segment_mean as segment_mean
    from .frontend.library.segment import segment_min as segment_min
    from .frontend.library.segment import segment_sum as segment_sum
    from .frontend.numpy_api import namespace as numpy  # noqa: F401  exported as numpy
    from .frontend.numpy_api.host import HostWarning as HostWarning
    from .frontend.numpy_api.order.sort import top_k as top_k
    from .frontend.profiling.profile import Profile as Profile
    from .frontend.profiling.profile import profile as profile
    from .frontend.session.costs import PlacementWarning as PlacementWarning
    from .frontend.session.graph import Graph as Graph
    from .frontend.session.graph import placeholder as placeholder
    from .frontend.session.queues import FIFOQueue as FIFOQueue
    from .frontend.session.queues import PaddingFIFOQueue as PaddingFIFOQueue
    from .frontend.session.queues import RandomShuffleQueue as RandomShuffleQueue
    from .frontend.session.report import StepReport as StepReport
    from .frontend.session.session import Session as Session
    from .frontend.tracing.arrays.variable import Variable as Variable
    from .frontend.tracing.context.dependencies import control_dependencies as control_dependencies
    from .frontend.tracing.context.dependencies import group as group
    from .frontend.tracing.context.scope import device as device
    from .frontend.tracing.context.scope import name_scope as name_scope
    from .frontend.tracing.context.traced import Traced as Traced
    from .frontend.tracing.host import host_call as host_call
    from .frontend.tracing.spec import Spec as Spec
    from .frontend.transforms.control import cond as cond
    from .frontend.transforms.control import fori_loop as fori_loop
    from .frontend.transforms.control import scan as scan
    from .frontend.transforms.control import while_loop as while_loop
    from .frontend.transforms.custom import custom_vjp as custom_vjp
    from .frontend.transforms.custom import remat as remat
    from .frontend.transforms.forward import jvp as jvp
    from .frontend.transforms.gradients import grad as grad
    from .frontend.transforms.gradients import value_and_grad as value_and_grad
    from .frontend.transforms.gradients import vmap as vmap
    from .frontend.transforms.graph_gradients import gradients as gradients
    from .frontend.transforms.reverse import stop_gradient as stop_gradient
    from .frontend.transforms.reverse import vjp as vjp
    from .ir.diagnose import CODES as CODES
    from .ir.diagnose import Error as Error
    from .ir.diagnose import TracingWarning as TracingWarning
    from .runtime.storage.saver import SaveWarning as SaveWarning
    from .runtime.threads import set_num_threads as set_num_threads
else:
    def __getattr__(name: str) -> object:
        """A public name, which is loaded now."""
        found = globals()[name] = _names.find(name)
        return found


def __dir__() -> list[str]:
    return [*__all__, *globals()]
