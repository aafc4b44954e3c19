"""mlir-opt | mlir-translate | clang: the same program into a shared library, which lacks a runtime."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path

from common import call, version_of

from builds.programs import Program
from builds.toolkit import NVIDIA, chip_of, find_toolkit
from builds.way import NEW, Way

NAME = "mlir tools"
TOOLS = ("mlir-opt-22", "mlir-translate-22", "clang-22")
PASSES = (
    "gpu-kernel-outlining,nvvm-attach-target{{chip={chip} O=3}},"
    "gpu.module(convert-scf-to-cf,convert-gpu-to-nvvm{{index-bitwidth=64}},canonicalize,cse,"
    "reconcile-unrealized-casts),convert-scf-to-cf,gpu-to-llvm,"
    "gpu-module-to-binary{{toolkit={toolkit} format=bin}},convert-arith-to-llvm,convert-func-to-llvm,"
    "convert-cf-to-llvm,reconcile-unrealized-casts"
)


def version() -> str | None:
    tool = shutil.which(TOOLS[-1])
    return version_of(tool) if tool else None


def missing() -> str | None:
    """Why they take no part; None where they do."""
    if any(shutil.which(tool) is None for tool in TOOLS):
        return f"{' or '.join(TOOLS)} is not on PATH"
    if find_toolkit() is None:
        return "no CUDA toolkit with ptxas and libdevice: pip install nvidia-cuda-nvcc nvidia-nvvm"
    return None


def ways(program: Program, folder: Path) -> list[Way]:
    source, place = folder / f"{program.name}.tools.mlir", folder / "mlir-tools"
    source.write_text(program.mlir)
    opt, translate, clang = TOOLS
    passes = PASSES.format(chip=chip_of(NVIDIA), toolkit=find_toolkit())
    steps = [
        [opt, str(source), f"--pass-pipeline=builtin.module({passes})"],
        [translate, "--mlir-to-llvmir"],
        [clang, "-x", "ir", "-", "-O3", "-shared", "-fPIC", "-Wno-override-module", "-o", str(place / "out.so")],
    ]
    script = "set -o pipefail; " + " | ".join(shlex.join(step) for step in steps)
    what = "a shared library without a runtime"
    return [
        Way(program.name, NAME, chip_of(NVIDIA), NEW, what, lambda: call(["bash", "-c", script], folder), place),
    ]
