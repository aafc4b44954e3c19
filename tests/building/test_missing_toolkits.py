"""What is said where a toolkit is not there, or without a chip, and what needs none."""

from __future__ import annotations

import subprocess
from pathlib import Path

from compiling import EXAMPLES, command

MISSING = {"CUDA_HOME": "/no/cuda", "ROCM_PATH": "/no/rocm"}
"""A folder that the user names is searched alone."""


def without_toolkits(tmp_path: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return command(*arguments, cwd=tmp_path, environment=MISSING)


def test_no_assembler_is_exit_code_three(tmp_path: Path) -> None:
    done = without_toolkits(tmp_path, "build", EXAMPLES / "saxpy.mlir", "-q", "-o", "out.so", "-t", "nvvm:sm_90")
    assert done.returncode == 3
    assert done.stderr == (
        "offload: error: ptxas (CUDA) was not found\n"
        "  looked in:\n"
        "    CUDA_HOME: /no/cuda/bin/ptxas\n"
        "    nowhere else, because CUDA_HOME is set\n"
        "  to get it: pip install nvidia-cuda-nvcc nvidia-nvvm (or 'offload[cuda]'), "
        "or set CUDA_HOME to a CUDA toolkit\n"
    )
    assert list(tmp_path.iterdir()) == []


def test_an_assembler_without_the_chip_is_exit_code_three(tmp_path: Path) -> None:
    """Newer toolkits have left older chips out; what they say is nothing that the program could change."""
    program = tmp_path / "cuda" / "bin" / "ptxas"
    program.parent.mkdir(parents=True)
    said = "ptxas fatal   : Value 'sm_60' is not defined for option 'gpu-name'"
    program.write_text(f'#!/bin/sh\necho "{said}"\nexit 255\n')
    program.chmod(0o755)
    arguments = ["build", EXAMPLES / "saxpy.mlir", "-q", "-o", "out.so", "-t", "nvvm:sm_60,O=2"]
    done = command(*arguments, cwd=tmp_path, environment={"CUDA_HOME": str(tmp_path / "cuda")})
    assert done.returncode == 3
    assert done.stderr == (
        f"offload: error: ptxas (CUDA) makes no machine code for sm_60: {program} (via CUDA_HOME)\n"
        "  to get it: set CUDA_HOME to a CUDA toolkit that has sm_60 (CUDA 13 begins at sm_75, and calls sm_110 what "
        "was sm_101), or build PTX, which the driver compiles: nvvm:sm_60,O=2,format=isa\n"
    )


def test_what_needs_no_toolkit_builds_without(tmp_path: Path) -> None:
    arguments = ["build", EXAMPLES / "saxpy.mlir", "-q", "-o", "out.so"]
    for target in ("host", "nvvm:sm_90,format=isa", "nvvm:sm_90,format=offload"):
        done = without_toolkits(tmp_path, *arguments, "-t", target)
        assert (done.returncode, done.stderr) == (0, ""), target


def test_the_doctor_says_what_is_missing(tmp_path: Path) -> None:
    done = without_toolkits(tmp_path, "doctor")
    assert done.returncode == 3
    assert "MISSING  nvvm: ptxas (CUDA): looked in CUDA_HOME: /no/cuda/bin/ptxas; nowhere else, because " in done.stdout
    assert "MISSING  rocdl: ocml.bc (AMD device libraries): looked in ROCM_PATH: /no/rocm/" in done.stdout
    assert done.stdout.count("to get it: ") == 4
    assert done.stderr == ""


# Artifacts that are none.
