"""Where each public name of ``weft`` is: a module, or a name of one. It is loaded when it is asked
for, and ``import weft`` loads none.

    weft.nn                     the module frontend/library/nn
    weft.Session                the name Session of the module frontend/session/session
    import weft.nn.init         modules can be imported by these names, and are the same modules
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from importlib.machinery import ModuleSpec
from types import MappingProxyType, ModuleType
from typing import Any

from .loading import load

_PACKAGE = __name__.partition(".")[0]

NAMES: Mapping[str, str] = MappingProxyType({
    "CODES": "ir.diagnose:CODES",
    "CacheInfo": "frontend.face.function:CacheInfo",
    "Compiled": "frontend.engine.stages:Compiled",
    "Error": "ir.diagnose:Error",
    "FIFOQueue": "frontend.session.queues:FIFOQueue",
    "Function": "frontend.face.function:Function",
    "Graph": "frontend.session.graph:Graph",
    "HostWarning": "frontend.numpy_api.host:HostWarning",
    "Lowered": "frontend.engine.stages:Lowered",
    "MemoryAnalysis": "frontend.engine.stages:MemoryAnalysis",
    "PaddingFIFOQueue": "frontend.session.queues:PaddingFIFOQueue",
    "PlacementWarning": "frontend.session.costs:PlacementWarning",
    "Profile": "frontend.profiling.profile:Profile",
    "QueueRunner": "frontend.checkpoints:QueueRunner",
    "RandomShuffleQueue": "frontend.session.queues:RandomShuffleQueue",
    "RecompileWarning": "frontend.face.function:RecompileWarning",
    "SaveWarning": "runtime.storage.saver:SaveWarning",
    "Saver": "frontend.checkpoints:Saver",
    "Session": "frontend.session.session:Session",
    "Spec": "frontend.tracing.spec:Spec",
    "StepReport": "frontend.session.report:StepReport",
    "SummaryWriter": "frontend.interchange.tensorboard:SummaryWriter",
    "Traced": "frontend.tracing.context.traced:Traced",
    "TracingWarning": "ir.diagnose:TracingWarning",
    "Variable": "frontend.tracing.arrays.variable:Variable",
    "cache": "frontend.cache",
    "compile": "frontend.face.compile:compile",
    "cond": "frontend.transforms.control:cond",
    "control_dependencies": "frontend.tracing.context.dependencies:control_dependencies",
    "custom_vjp": "frontend.transforms.custom:custom_vjp",
    "data": "frontend.library.data",
    "device": "frontend.tracing.context.scope:device",
    "export": "frontend.interchange.ahead:export",
    "fori_loop": "frontend.transforms.control:fori_loop",
    "grad": "frontend.transforms.gradients:grad",
    "gradients": "frontend.transforms.graph_gradients:gradients",
    "group": "frontend.tracing.context.dependencies:group",
    "host_call": "frontend.tracing.host:host_call",
    "jvp": "frontend.transforms.forward:jvp",
    "load": "frontend.interchange.artifact:load",
    "name_scope": "frontend.tracing.context.scope:name_scope",
    "nn": "frontend.library.nn",
    "numpy": "frontend.numpy_api.namespace",
    "optim": "frontend.library.optim",
    "placeholder": "frontend.session.graph:placeholder",
    "profile": "frontend.profiling.profile:profile",
    "random": "frontend.library.random",
    "remat": "frontend.transforms.custom:remat",
    "restore": "frontend.checkpoints:restore",
    "save": "frontend.checkpoints:save",
    "scan": "frontend.transforms.control:scan",
    "segment_max": "frontend.library.segment:segment_max",
    "segment_mean": "frontend.library.segment:segment_mean",
    "segment_min": "frontend.library.segment:segment_min",
    "segment_sum": "frontend.library.segment:segment_sum",
    "set_num_threads": "runtime.threads:set_num_threads",
    "special": "frontend.library.special",
    "stop_gradient": "frontend.transforms.reverse:stop_gradient",
    "top_k": "frontend.numpy_api.order.sort:top_k",
    "tree": "frontend.face.tree",
    "value_and_grad": "frontend.transforms.gradients:value_and_grad",
    "vjp": "frontend.transforms.reverse:vjp",
    "vmap": "frontend.transforms.gradients:vmap",
    "while_loop": "frontend.transforms.control:while_loop",
})
"""In the order of ``weft.__all__``."""

MODULES: Mapping[str, str] = MappingProxyType({
    **{name: place for name, place in NAMES.items() if ":" not in place},
    "nn.init": "frontend.library.nn.init",
    "numpy.fft": "frontend.numpy_api.namespace.fft",
    "numpy.linalg": "frontend.numpy_api.namespace.linalg",
})
"""What can be imported by a name of its own: ``import weft.nn``."""


def find(name: str) -> Any:
    """What a public name means. Raises AttributeError, with what is here in the place of names of
    other libraries."""
    place = NAMES.get(name)
    if place is None:
        elsewhere = load("frontend.face.elsewhere")
        raise AttributeError(f"module 'weft' has no attribute {name!r}"
                             f"{elsewhere.instead(name, elsewhere.FUNCTIONS)}")
    module, _, attribute = place.partition(":")
    found = load(module)
    return getattr(found, attribute) if attribute else found


class Aliases:
    """Finds and loads modules by their public names. Files of these names in the package's folder
    would hide those of the standard library from who runs Python there: ``random``, ``numpy``."""

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Told of each import that nothing else has found."""
        package, _, rest = name.partition(".")
        if package != _PACKAGE or rest not in MODULES:
            return None
        return ModuleSpec(name, Aliases)  # type: ignore[arg-type]  # whose methods are static

    @staticmethod
    def create_module(spec: ModuleSpec) -> None:
        """Python makes one, in whose place the module itself is put."""

    @staticmethod
    def exec_module(module: ModuleType) -> None:
        """Puts the module into its place, and those that it has: Python would load their files a
        second time."""
        wanted = module.__name__.partition(".")[2]
        for name, place in MODULES.items():
            if name == wanted or name.startswith(f"{wanted}."):
                sys.modules[f"{_PACKAGE}.{name}"] = load(place)


def install() -> None:
    """Let modules be imported by their public names."""
    if Aliases not in sys.meta_path:
        sys.meta_path.append(Aliases)
