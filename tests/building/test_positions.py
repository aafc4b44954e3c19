"""Positions that front ends give and MLIR or LLVM take badly: programs with them compile, with and without `-g`."""

from __future__ import annotations

import re

import pytest
from compiling import ALL_TARGETS, PROGRAMS, emit, emit_text

import offload

INLINED = 'loc(callsite(callsite("callee"("callee.cc":7:9) at "caller.cc":10:8) at UNKNOWN))'


@pytest.mark.parametrize("debug", [False, True])
@pytest.mark.parametrize("caller", ['"caller2.cc":11:12', "unknown"])
def test_positions_of_inlined_code(debug: bool, caller: str) -> None:
    """MLIR cannot make debug locations of such a position where it is unknown in part, or outside of functions, as
    the text of an assertion is."""
    source = (PROGRAMS / "options.mlir").read_text()
    opening = re.search(r"gpu.func @\w+\(.*\) .*\{\n", source)
    assert opening
    position = INLINED.replace("UNKNOWN", caller)
    assertion = f'    %yes = arith.constant true\n    cf.assert %yes, "inlined" {position}\n'
    source = source.replace(opening[0], opening[0] + assertion, 1)
    assert offload.compile(source, targets=ALL_TARGETS, debug=debug)


STRAY = """
#file = #llvm.di_file<"foo.mlir" in "/src">
#unit = #llvm.di_compile_unit<id = distinct[0]<>, sourceLanguage = DW_LANG_C, file = #file, producer = "front end",
                              isOptimized = true, emissionKind = Full>
#function = #llvm.di_subprogram<compileUnit = #unit, scope = #file, name = "hello", file = #file,
                                subprogramFlags = "Definition">
gpu.module @m {
  gpu.func @hello() kernel {
    gpu.printf "Hello\\n" loc(fused<#function>["foo.mlir":3:4])
    gpu.return
  }
}
"""


@pytest.mark.parametrize("debug", [False, True])
def test_positions_of_another_function(debug: bool) -> None:
    """An operation may say that it is of a function that has no debug information here, and what it becomes too."""
    assert offload.compile(STRAY, targets=ALL_TARGETS, debug=debug)


OWN = """
#file = #llvm.di_file<"made.py" in "/src">
#unit = #llvm.di_compile_unit<id = distinct[0]<>, sourceLanguage = DW_LANG_C_plus_plus, file = #file,
                              isOptimized = false, emissionKind = {kind}>
#type = #llvm.di_subroutine_type<callingConvention = DW_CC_normal>
#function = #llvm.di_subprogram<id = distinct[1]<>, compileUnit = #unit, scope = #file, name = "k", file = #file,
                                line = 1, scopeLine = 1, subprogramFlags = Definition, type = #type>
gpu.module @m {{
  llvm.func @k(%p: !llvm.ptr) attributes {{gpu.kernel}} {{
    %c = llvm.mlir.constant(1 : i32) : i32 loc(#here)
    llvm.store %c, %p : i32, !llvm.ptr loc(#here)
    llvm.return loc(#here)
  }} loc(fused<#function>["made.py":1:1])
}}
#here = loc(fused<#function>["made.py":2:1])
"""


@pytest.mark.parametrize("kind", ["None", "Full", "LineTablesOnly", "DebugDirectivesOnly"])
@pytest.mark.parametrize("target", ALL_TARGETS)
def test_debug_information_of_the_programs_own(target: str, kind: str) -> None:
    """ptxas refuses some of it in optimized code, of which it keeps the lines."""
    source = OWN.format(kind=kind)
    assert emit(source, "object", [target])
    lines = emit_text(source, "isa", [target])
    assert ("made.py" in lines) == (kind != "None")
    if target.startswith("nvvm"):
        assert ", debug" not in lines
        assert ", debug" in emit_text(source, "isa", [f"{target},O=0"]) or kind in ("None", "DebugDirectivesOnly")
