"""The host side: MLIR to LLVM IR with runtime calls, to an object file."""

from __future__ import annotations

from typing import Any

from offload.compiler.native import failures, native
from offload.compiler.request import BuildRequest

PIPELINE = (
    "offload-lower-descriptors,convert-vector-to-scf,expand-strided-metadata,lower-affine,convert-vector-to-llvm,convert-scf-to-cf,offload-repair-math,convert-math-to-llvm,"
    "convert-math-to-libm,offload-host-to-llvm,offload-integer-cmpxchg,canonicalize,cse,reconcile-unrealized-casts,"
    "offload-check-lowered"
)

EXPORTED_BY_RUNTIME = ("offload_api", "offload_modules")


def split(module: Any) -> Any:
    """The host code of a program, with kernels by name and type only."""
    return module.host_module()


def lower(request: BuildRequest, host: Any) -> Any:
    """The host code in the LLVM dialect, in place. Raises CompileError."""
    with failures(request.sources, "lowering host code"):
        host.run(PIPELINE, verify_each=request.verify_each, reproducer=request.reproducer_file("host"))
    return host


def translate(request: BuildRequest, host: Any, exported: list[str]) -> Any:
    """Optimized LLVM IR of lowered host code that keeps the exported symbols. Raises CompileError."""
    extension = native()
    with failures(request.sources, "translating host code"):
        options = extension.MachineOptions(extension.host_triple(), "", "", request.opt)
        code = extension.LLVMModule.translate(host, options)
        code.internalize([*exported, *EXPORTED_BY_RUNTIME])
        code.optimize()
    return code
