"""The host side: MLIR to LLVM IR with runtime calls, to an object file."""

from __future__ import annotations

from typing import Any

from offload.compiler.native import failures, native
from offload.compiler.request import BuildRequest
from offload.compiler.steps import step
from offload.paths import folder_of_build
from offload.targets.base import STRUCTURE_PIPELINE, debug_pipeline, numeric_pipeline

EXPORTED_BY_RUNTIME = ("offload_api", "offload_modules")


def split(module: Any) -> Any:
    """The host code of a program, with kernels by name and type only."""
    return module.host_module()


def pipelines(request: BuildRequest) -> list[str]:
    """The passes of the host code, as textual pipelines that run one after the other."""
    bare = (
        f"use-bare-pointers-for-kernels={str(request.bare_pointers).lower()} "
        f"use-bare-pointers-for-host={str(request.bare_pointers_for_host).lower()}"
    )
    pipeline = (
        "offload-named-interfaces,offload-lower-descriptors,offload-plain-spaces,offload-wait-for-unused-tokens,"
        f"{numeric_pipeline('libm')},{STRUCTURE_PIPELINE},offload-repair-math,"
        f"convert-math-to-llvm,convert-math-to-libm,offload-host-to-llvm{{{bare}}},"
        "offload-repair-lowered,canonicalize,cse,reconcile-unrealized-casts,offload-check-lowered"
    )
    return [pipeline, *([debug_pipeline("LineTablesOnly")] if request.debug else [])]


def lower(request: BuildRequest, host: Any) -> Any:
    """The host code in the LLVM dialect, in place. Raises CompileError."""
    with failures(request.sources, "lowering host code"), step("lowered", "the host code"):
        for part in pipelines(request):
            host.run(part, verify_each=request.verify_each, reproducer=request.reproducer_file("host"))
    return host


def translate(request: BuildRequest, host: Any, exported: list[str]) -> Any:
    """Optimized LLVM IR of lowered host code that keeps the exported symbols. Raises CompileError."""
    extension = native()
    with failures(request.sources, "translating host code"), step("host-llvm", "the host code"):
        options = extension.MachineOptions(f"{request.architecture}-unknown-linux-gnu", "", "", request.opt)
        code = extension.LLVMModule.translate(host, options)
        if request.debug:
            code.set_debug_folder(folder_of_build())
        code.internalize([*exported, *EXPORTED_BY_RUNTIME])
        code.optimize()
    return code


def object_file(request: BuildRequest, code: Any) -> bytes:
    """The machine code of translated host code. Raises CompileError."""
    with failures(request.sources, "compiling host code"), step("object", "the host code"):
        compiled: bytes = code.emit(assembly=False)
    return compiled
