"""Compiles the kernels of a file for Triton: once for the chip of the command line, or for each line that comes.

``triton_program.py FILE [BACKEND ARCH WARP]``; without a chip, a line ``BACKEND ARCH WARP`` on standard input is
answered with a line once it is done. Triton's cache is where TRITON_CACHE_DIR says."""

from __future__ import annotations

import runpy
import sys
import warnings

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


def compile_all(path: str, backend: str, arch: str, warp: str) -> None:
    """All kernels of the file, from its text on."""
    target = GPUTarget(backend, int(arch) if arch.isdigit() else arch, int(warp))
    for function, arguments, constants, warps in runpy.run_path(path)["KERNELS"]:
        kinds = {**arguments, **dict.fromkeys(constants, "constexpr")}
        triton.compile(ASTSource(function, kinds, constants), target=target, options={"num_warps": warps})


def main() -> int:
    warnings.simplefilter("ignore")  # about defaults that a later Triton will have
    path, *chip = sys.argv[1:]
    if chip:
        compile_all(path, *chip)
        return 0
    print("ready", flush=True)
    for line in sys.stdin:
        compile_all(path, *line.split())
        print("done", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
