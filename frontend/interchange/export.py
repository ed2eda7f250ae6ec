"""Write an artifact: a folder that runs a compiled function without Python, or without Weft.

    m.o  m.h            the program with a plain C interface      m.so    the same, linked
    m.safetensors       closed-over arrays and variables          m.plan  the program as text
    manifest.json       names, types and nests of what goes in and out; ``weft.load`` reads it

The code is for ``x86-64-v3`` (Intel's Haswell, AMD's Zen and all later ones; on ARM, any 64-bit
CPU) unless a target is named. A variable that the function assigns becomes an argument, which may
be NULL for the exported value, and a result, its new value: the state of a C program is its own,
and what it does with it is plain to see. A new artifact takes the place of an old one as a whole.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from ...codegen.artifact.header import c_names, header_text
from ...codegen.artifact.link import link_shared
from ...codegen.artifact.object import STATUS, Artifact, Source, WeightsFile, emit_artifact
from ...codegen.cpu.jit import compile_object, cpu_target
from ...codegen.cpu.processors import PORTABLE
from ...ir.diagnose import Error, error
from ...ir.graph import Graph, all_nodes, apart
from ...ir.indices.index import symbols_of
from ...ir.machine import Machine
from ...ir.ops.op import host_name
from ...ir.ops.table import OPS
from ...ir.plans.entry import SCALARS
from ...ir.plans.plan import Launch, Plan, all_steps, host_steps
from ...ir.record import field, record, replace
from ...ir.text.printer import print_plan
from ...passes.keeping import without_keeping
from ...runtime.artifact import FORMAT, sealed
from ...runtime.state import cut
from ...runtime.storage.files import new_folder, written
from ...runtime.storage.shards import write_tensors
from ...runtime.storage.verified import digest
from ...runtime.tree import TreeDef, describe
from ..engine.building.flow import FlowStages
from ..engine.building.pipeline import Stages
from ..face.source import user_loc
from ..face.tree import paths
from ..tracing.arrays.found import has_found
from ..tracing.context.traced import Leaf, Traced
from ..tracing.results import Checked

Array = np.ndarray[Any, Any]

_MANIFEST = "manifest.json"
_SUFFIXES = (".o", ".h", ".so", ".safetensors", ".plan")


@record(frozen=True)
class ExportJob:
    """A traced function and what its signature was.

    ``args`` and ``keywords`` are the structures of the arguments, by position and by keyword;
    ``parameters`` names the former. Their leaves, in this order, are the first parameters of the
    graph; ``names`` are the leaves' names, ``outputs`` those of the leaves of ``results`` (both
    default to the graph's), ``result_kinds`` says which results are Python numbers. ``weights``
    holds closed-over arrays by the name of their parameter, and variables by their name in the
    graph. ``target`` is a CPU, None for the portable one, or "native".
    """

    stages: Stages
    args: tuple[TreeDef, ...]
    results: TreeDef
    parameters: tuple[str, ...]
    keywords: Mapping[str, TreeDef] = field(default_factory=dict)
    names: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    result_kinds: tuple[str, ...] = ()
    weights: Mapping[str, Array] = field(default_factory=dict)
    target: str | None = None

    @staticmethod
    def of(
        traced: Traced, stages: Stages | FlowStages, parameters: Iterable[str],
        target: str | None = None,
    ) -> ExportJob:
        """The job for a traced function; ``parameters`` names its positional arguments."""
        if has_found(traced.out_tree):
            raise error("W123", "how many elements a result has is not known before the function "
                                "runs: it cannot be exported", locs=user_loc(),
                        hint="return x and the mask instead of x[mask]")
        if isinstance(stages, FlowStages) or stages.entry.measured:
            number = next(node for node in all_nodes(traced.graph) if apart(node))
            raise error("W123", "a result has a size that is not known before the function runs: "
                                "it cannot be exported", locs=number.locs,
                        hint="keep the whole array and a mask (return x and the mask, not "
                             "x[mask]), or pass the size as an argument of plain Python, which is "
                             "static")
        if traced.out_tree.kind is Checked:
            raise error("W113", "a function that only checks has no result to export",
                        locs=user_loc(), hint="return a value")
        # Variables among the arguments are weights: None takes their place.
        leaves = iter(traced.leaves)
        args, keywords = (_given(part, leaves) for part in traced.in_tree.children)
        keys: Any = keywords.meta
        weights = {capture.param.name.removesuffix(":0"): capture.array
                   for capture in traced.captures}
        values = cut([variable.cell for variable in traced.variables.values()])
        weights |= dict(zip(traced.variables, values, strict=True))
        plain = without_keeping(stages.traced)
        if plain is not stages.traced:
            stages = replace(stages, traced=plain, times={}, _after={})
        return ExportJob(
            stages, args.children, traced.out_tree, tuple(parameters),
            dict(zip(keys, keywords.children, strict=True)),
            tuple(leaf.name for leaf in traced.leaves if leaf.param is not None),
            _output_names(traced), result_kinds=tuple(map(str, traced.out_kinds)), weights=weights,
            target=target)


def _given(structure: TreeDef, leaves: Iterator[Leaf]) -> TreeDef:
    if structure.kind is None:
        return structure if next(leaves).param is not None else TreeDef(type(None))
    children = tuple([_given(child, leaves) for child in structure.children])
    return TreeDef(structure.kind, structure.meta, children, structure.key)


def _output_names(traced: Traced) -> tuple[str, ...]:
    """``['loss']`` is loss, ``.y[0]`` is y[0]; a result without a key has its node's name."""
    names = Graph("")
    found = []
    for path, value in zip(paths(traced.out_tree), traced.graph.results, strict=True):
        keyed = re.match(r"\.(.+)|\['(\w+)'\](.*)", path)
        label = "".join(part or "" for part in keyed.groups()) if keyed else value.name
        found.append(names.unique_name(label.removesuffix(":0")))
    return tuple(found)


def write_artifact(job: ExportJob, path: str | os.PathLike[str]) -> Path:
    """Compile ``job`` and write it to the folder ``path``, whose name becomes the C name.

    An artifact that is there already is replaced as a whole, or not at all if anything goes wrong;
    other files in its folder stay. Without a linker there is no ``.so``: C
    programs do not need it, and ``weft.load`` makes one for itself.

    Raises:
        Error: (W402) the target is unknown, (W401) parts of the program are on a GPU,
            (W105) a symbolic dim cannot be told from the arguments, (W113) parts of it are run by
            Python on the host, (W408) nothing can be written there.
        DTypeError: (W112) the arguments or results hold classes that a manifest cannot describe.
    """
    folder = Path(path)
    with written(path, "artifact"):
        file = folder.resolve().name
    target = export_target(job.target)
    stages = job.stages
    plan = stages.plan_for(target)
    _check(plan)
    own = [f"{file}{suffix}" for suffix in _SUFFIXES]
    with written(path, "artifact"), _place(folder, [*own, _MANIFEST]) as made:
        weights, offsets = _write_weights(job, plan, made / f"{file}.safetensors")
        artifact = _artifact(job, plan, target, file, (weights, offsets))
        code = compile_object(emit_artifact(artifact), target, stages.options.opt)
        (made / f"{file}.o").write_bytes(code.object)
        (made / f"{file}.h").write_text(header_text(artifact, file), encoding="utf-8")
        text = print_plan(plan, kernels=True)
        (made / f"{file}.plan").write_text(f"{text}\n", encoding="utf-8")
        try:
            link_shared(made / f"{file}.o", made / f"{file}.so")
        except Error as problem:
            if problem.code != "W404":
                raise
        manifest = _manifest(job, artifact, file, offsets)
        manifest["files"] = {each.name: digest(each) for each in sorted(made.iterdir())}
        manifest = sealed(manifest)
        (made / _MANIFEST).write_text(json.dumps(manifest, indent=1), encoding="utf-8")
    return folder


@contextmanager
def _place(folder: Path, own: Sequence[str]) -> Iterator[Path]:
    """Where the files of an artifact are to be written, which come to ``folder`` all at once."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    if folder.exists() and not folder.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(folder))
    with new_folder(folder, own, _MANIFEST) as made:
        yield made


def export_target(name: str | None) -> Machine:
    """The target of a CPU name; None is the most common kind, "native" this machine."""
    return cpu_target(PORTABLE if name is None else name)


def own_version() -> str:
    """Weft's version, which an artifact names; of a source tree that is not installed, none."""
    try:
        return version("weft")
    except PackageNotFoundError:
        return "0+source"


def _check(plan: Plan) -> None:
    devices = {str(step.device) for step in all_steps(plan.steps)
               if isinstance(step, Launch) and step.device.kind == "gpu"}
    if devices:
        raise error("W401", f"{plan.name} has parts on {', '.join(sorted(devices))}: only programs "
                            "for the CPU can be exported", hint="trace it with device='cpu:0'")
    host = next(iter(host_steps(plan)), None)
    if host is not None:
        row = OPS[host.function]
        raise error("W113", f"{plan.name} calls {host_name(row, dict(host.attrs))}, which Python "
                            "runs on the host: it cannot be exported", locs=host.locs,
                    hint="call it outside of what is exported, and pass its result in")
    plain = {str(dim) for slot in plan.params for dim in slot.type.shape}
    unknown = sorted(set(_symbols(plan)) - plain)
    if unknown:
        raise error("W105", f"the size {unknown[0]} cannot be told from the arguments of "
                            f"{plan.name}", hint=f"give an argument with {unknown[0]} as a dim")


def _symbols(plan: Plan) -> list[str]:
    return sorted({name for slot in (*plan.params, *plan.results)
                   for dim in slot.type.shape for name in symbols_of(dim)})


def _write_weights(
    job: ExportJob, plan: Plan, path: Path
) -> tuple[WeightsFile | None, dict[int, int]]:
    """Write the weights; what the code must know of the file, and where each parameter is."""
    names: dict[int, str] = {}
    for at, (value, slot) in enumerate(zip(job.stages.fused.params, plan.params, strict=True)):
        stem = value.name.removesuffix(":0")
        if (slot.var or stem) in job.weights:
            names[at] = slot.var or stem
        elif slot.var:
            raise error("W302", f"no value for the variable '{slot.var}'")
    if not names:
        return None, {}
    write_tensors(path, {name: job.weights[name] for name in names.values()}, {"format": "weft"})
    with path.open("rb") as file:
        first = file.read(8)
        header = file.read(int.from_bytes(first, "little"))
    entries = json.loads(header)
    start = 8 + len(header)
    offsets = {at: start + entries[name]["data_offsets"][0] for at, name in names.items()}
    return WeightsFile(path.stat().st_size, first + header), offsets


def _artifact(
    job: ExportJob, plan: Plan, target: Machine, file: str,
    weights: tuple[WeightsFile | None, Mapping[int, int]],
) -> Artifact:
    known, offsets = weights
    symbols = _symbols(plan)
    assigned = {slot.var for slot in plan.results if slot.var}
    passed = [at for at, slot in enumerate(plan.params)
              if at not in offsets or slot.var in assigned]
    labels = _labels(job, plan)
    name = c_names([file], ("main",))[0]
    # Arguments and results first: of a bias and a batch both named b, the bias stays b.
    c_args = c_names([*(labels[0][at] for at in passed), *labels[1]])
    arguments = dict(zip(passed, c_args, strict=False))
    sources = tuple(Source(arguments.get(at, ""), offsets.get(at))
                    for at in range(len(plan.params)))
    dims = c_names((f"size_{s}" if s in c_args else s for s in symbols), c_args)
    weft = own_version()
    seal = hashlib.sha256(repr((print_plan(plan, kernels=True), target, sources, known,
                                weft)).encode()).hexdigest()[:16]
    return Artifact(name, plan, target, sources, tuple(c_args[len(passed):]),
                    tuple(zip(symbols, dims, strict=True)), known,
                    f"made by Weft {weft} for {target.name}, {seal}")


def _labels(job: ExportJob, plan: Plan) -> tuple[list[str], list[str]]:
    """Names of the plan's parameters and results: the job's, else those of variables or slots."""
    inputs = [slot.var or slot.name for slot in plan.params]
    inputs[:len(job.names)] = job.names
    outputs = [f"new_{slot.var}" if slot.var else slot.name for slot in plan.results]
    outputs[:len(job.outputs)] = job.outputs
    return inputs, outputs


def _manifest(
    job: ExportJob, artifact: Artifact, file: str, offsets: Mapping[int, int]
) -> dict[str, Any]:
    plan, target = artifact.plan, artifact.target
    return {
        "format": FORMAT, "weft": own_version(), "name": artifact.name, "file": file,
        "version": artifact.version,
        "target": {"triple": target.triple, "cpu": target.name, "features": target.features},
        **_ports(job, artifact),
        "symbols": [symbol for symbol, _ in artifact.dims],
        "parameters": list(job.parameters),
        "args": [describe(structure, label) for structure, label
                 in zip(job.args, job.parameters, strict=True)],
        "keywords": [[name, describe(structure, name)] for name, structure in job.keywords.items()],
        "results": describe(job.results, "the result", static=False),
        "weights": [{"name": slot.var or slot.name, "type": str(slot.type), "offset": offsets[at]}
                    for at, slot in enumerate(plan.params) if at in offsets],
        "codes": {key: code for key, (code, _) in STATUS.items()},
        "checks": [{"code": site.code, "message": site.message,
                    "locs": [[loc.file, loc.line, loc.function] for loc in site.locs]}
                   for site in plan.checks],
        "requires": [[str(need.left), need.sign, str(need.right), need.site]
                     for need in plan.requires],
    }


def _ports(job: ExportJob, artifact: Artifact) -> dict[str, list[dict[str, Any]]]:
    """What goes in and out, in C order."""
    plan = artifact.plan
    labels = _labels(job, plan)
    kinds = (*job.stages.entry_kinds, *["array"] * len(plan.params))
    inputs: list[dict[str, Any]] = []
    for at, (source, slot) in enumerate(zip(artifact.sources, plan.params, strict=True)):
        if source.argument:
            inputs.append({"name": labels[0][at], "c": source.argument, "type": str(slot.type),
                           "kind": kinds[at] if kinds[at] in SCALARS else "array"})
            if source.offset is not None:
                inputs[-1] |= {"variable": slot.var, "offset": source.offset}
    outputs: list[dict[str, Any]] = []
    kinds = (*job.result_kinds, *["array"] * len(plan.results))
    for at, (c_name, slot) in enumerate(zip(artifact.results, plan.results, strict=True)):
        outputs.append({"name": labels[1][at], "c": c_name, "type": str(slot.type),
                        "kind": kinds[at]})
        if slot.var:
            outputs[-1]["variable"] = slot.var
    counts = [sum("variable" not in port for port in ports) for ports in (inputs, outputs)]
    leaves = sum(structure.count for structure in (*job.args, *job.keywords.values()))
    if counts != [leaves, job.results.count]:
        raise error("W601", f"{plan.name} has {counts[0]} inputs and {counts[1]} outputs, its "
                            f"signature {leaves} and {job.results.count}")
    return {"inputs": inputs, "outputs": outputs}
