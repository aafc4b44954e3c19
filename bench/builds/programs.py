"""The programs, in MLIR and as each peer writes them: saxpy, thirty kernels like it, a product on the matrix units."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

BENCH = Path(__file__).resolve().parent.parent
PEERS = BENCH / "peers" / "builds"
SAXPY = (BENCH.parent / "examples" / "saxpy.mlir").read_text()
MANY = 30


@dataclass(frozen=True)
class Program:
    """A program of so many kernels, by language. ``hip`` is None where its CUDA C++ is no HIP."""

    name: str
    kernels: int
    mlir: str
    cuda: str
    hip: str | None
    iree: str
    triton: str


NVIDIA_ONLY = "the program's CUDA C++ has fragments of nvcuda::wmma, which hipcc does not"


def hip_of(cuda: str) -> str:
    """HIP C++ from CUDA C++, as hipify has it."""
    return cuda.replace("cuda_runtime.h", "hip/hip_runtime.h").replace("cudaGetLastError", "hipGetLastError")


def repeated(text: str, begin: str, renamed: Callable[[int], tuple[tuple[str, str], ...]]) -> str:
    """What stands before ``begin`` once, the rest once for each kernel, changed by its own replacements.

    Raises ValueError where the text has not what is to be replaced: then all kernels would be the same."""
    head, found, body = text.partition(begin)
    if not found:
        raise ValueError(f"a program has no {begin!r} at which its kernel begins")
    bodies = []
    for number in range(MANY):
        one = found + body
        for old, new in renamed(number):
            if old not in one:
                raise ValueError(f"a program has no {old!r}, which makes its kernels differ")
            one = one.replace(old, new)
        bodies.append(one)
    return head + "\n".join(bodies)


def mlir_changes(number: int) -> tuple[tuple[str, str], ...]:
    scaled = f"%k = arith.constant {number + 2}.0 : f32\n%kx = arith.mulf %k, %xi : f32\n%ax = arith.mulf %a, %kx"
    return ("@saxpy", f"@saxpy{number}"), ("%ax = arith.mulf %a, %xi", scaled)


def cuda_changes(number: int) -> tuple[tuple[str, str], ...]:
    return ("saxpy", f"saxpy{number}"), ("a * x[i]", f"a * ({number + 2}.0f * x[i])")


def triton_changes(number: int) -> tuple[tuple[str, str], ...]:
    product = "a * tl.load(x + at, inside)"
    return ("saxpy", f"saxpy{number}"), (product, f"a * ({number + 2}.0 * tl.load(x + at, inside))")


def of_peers(name: str) -> tuple[str, str, str]:
    """A program in CUDA C++, for IREE and for Triton."""
    return tuple((PEERS / f"{name}{end}").read_text() for end in (".cu", ".iree.mlir", "_triton.py"))  # type: ignore[return-value]


def programs() -> dict[str, Program]:
    """All of them by name."""
    cuda, iree, triton = of_peers("saxpy")
    saxpy = Program("saxpy", 1, SAXPY, cuda, hip_of(cuda), iree, triton)
    cuda = repeated(cuda, "__global__", cuda_changes)
    iree = repeated(iree, "func.func", mlir_changes)
    triton = repeated(triton, "@triton.jit", triton_changes)
    mlir = repeated(SAXPY, "func.func", mlir_changes)
    thirty = Program("thirty", MANY, mlir, cuda, hip_of(cuda), iree, triton)
    cuda, iree, triton = of_peers("matmul")
    text = (BENCH / "programs" / "wmma_matmul.mlir").read_text()
    matmul = Program("matmul", 1, text, cuda, None, iree, triton)
    return {program.name: program for program in (saxpy, thirty, matmul)}


def with_other_host_code(text: str) -> str:
    """The program after a change that is outside of its kernels."""
    changed = text.replace("arith.ceildivui", "arith.ceildivsi", 1)
    if changed == text:
        raise ValueError("the program has no arith.ceildivui to change")
    return changed
