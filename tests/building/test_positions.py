"""Positions that front ends give and MLIR or LLVM take badly: programs with them compile, with and without `-g`."""

from __future__ import annotations

import re

import pytest
from compiling import ALL_TARGETS, PROGRAMS

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
