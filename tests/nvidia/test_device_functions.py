"""Which functions of a gpu.module are in its PTX: each had been a function of its own there, twice with its C
interface, with all the code of those that it calls, so that PTX of a chain grew with the square of its length."""

from __future__ import annotations

import re

from compiling import emit_text


def chain(number: int, use: str) -> str:
    """So many functions, each of which calls the one before; the kernel has a use of the last."""
    functions = "".join(
        f"""
  func.func @g{k}(%a: f32) -> f32 {{
    %k = arith.constant {k}.5 : f32
    %b = arith.addf %a, %k : f32
    {f"%r = func.call @g{k - 1}(%b) : (f32) -> f32" if k else "%r = arith.mulf %b, %b : f32"}
    return %r : f32
  }}"""
        for k in range(number)
    )
    return f"""
gpu.module @m {{{functions}
  gpu.func @k(%x: memref<?xf32>) kernel {{
    %i = gpu.thread_id x
    %v = memref.load %x[%i] : memref<?xf32>
    {use}
    memref.store %r, %x[%i] : memref<?xf32>
    gpu.return
  }}
}}
"""


def functions_of(source: str) -> list[str]:
    return re.findall(r"\.func\s+(?:\([^)]*\)\s*)?(\w+)", emit_text(source, "isa", ["nvvm:sm_90"]))


def test_functions_whose_calls_are_expanded() -> None:
    source = chain(6, "%r = func.call @g5(%v) : (f32) -> f32")
    assert functions_of(source) == []
    assert emit_text(source, "isa", ["nvvm:sm_90"]).count("add.rn.f32") == 6


def test_functions_that_assembly_names() -> None:
    """LLVM sees no use of them; those that nothing names are left out."""
    use = (
        '%at = nvvm.inline_ptx "mov.u64 $0, g1;" -> i64\n'
        "%low = arith.trunci %at : i64 to i32\n%r = arith.bitcast %low : i32 to f32"
    )
    assert functions_of(chain(3, use)) == ["g1"]


def test_functions_without_a_kernel() -> None:
    """They are what the PTX is for, each with its C interface."""
    assert functions_of(chain(2, "").partition("  gpu.func")[0] + "}")[::2] == ["g0", "g1"]
