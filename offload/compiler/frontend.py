"""From any level of input to kernels: gpu.module with gpu.func, launched by gpu.launch_func."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from offload.compiler.native import failures, native
from offload.compiler.request import Source


def parse(sources: Sequence[Source], session: Any) -> Any:
    """One module from all sources; public symbols must differ. Raises CompileError."""
    with failures(sources, "parsing"):
        merged = session.parse(sources[0].data, sources[0].name)
        for source in sources[1:]:
            merged.append(session.parse(source.data, source.name))
    return merged


def lower_to_kernels(module: Any, sources: Sequence[Source], verify_each: bool, reproducer: str = "") -> None:
    """Runs, in place, the passes that this program's level needs and no others. Raises CompileError."""
    with failures(sources, "making kernels"):
        module.run(pipeline(module), verify_each=verify_each, reproducer=reproducer)


def pipeline(module: Any) -> str:
    """The passes of :func:`lower_to_kernels` for this module, as a textual pipeline."""
    return ",".join(_passes(*module.operation_names()))


def _passes(host: Sequence[str], device: Sequence[str]) -> list[str]:
    dialects = {name.split(".")[0] for name in host}
    passes = ["offload-check-input"]
    if "async" in dialects:
        passes.append("offload-inline-async")
    if any(name.startswith("linalg.") for name in device):
        passes.append("gpu.module(convert-linalg-to-loops)")
    if "linalg" in dialects:
        passes += ["offload-serial-linalg-to-launch", "convert-linalg-to-parallel-loops"]
    if "affine" in dialects:
        passes.append("lower-affine")
    if "scf.forall" in host:
        passes.append("func.func(scf-forall-to-parallel)")
    if "linalg" in dialects or {"scf.parallel", "scf.forall", "affine.parallel"} & set(host):
        passes += [
            "offload-tile-parallel",
            "func.func(gpu-map-parallel-loops{mapping-policy=innermost-first})",
            "convert-parallel-loops-to-gpu",
            "lower-affine",
        ]
        host = [*host, "gpu.launch"]
    if "gpu.launch" in host:
        passes += ["func.func(gpu-launch-sink-index-computations)", "gpu-kernel-outlining"]
    return [
        *passes,
        "offload-finish-kernels",
        "offload-descriptor-arguments",
        "offload-place-buffers",
        "offload-check-memory",
        "canonicalize",
        "cse",
    ]


def new_session() -> Any:
    """A context of its own for one build."""
    return native().Session()
