"""Modules of MLIR's Python bindings as programs, from a class that stands for any project's copy of these."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import offload
from offload.compiler import programs
from offload.errors import CompileError

PLACED = """\
#loc = loc("made.py":7:3)
#loc1 = loc("x"(#loc))
module {
  func.func @doubled(%arg0: memref<?xf32> loc("x"(#loc))) {
    %c0 = arith.constant 0 : index loc(#loc)
    %c1 = arith.constant 1 : index loc(#loc)
    %0 = memref.dim %arg0, %c0 : memref<?xf32> loc(#loc)
    scf.parallel (%i) = (%c0) to (%0) step (%c1) {
      %1 = memref.load %arg0[%i] : memref<?xf32> loc(#loc)
      %2 = arith.addf %1, %1 : f32 loc(#loc)
      memref.store %2, %arg0[%i] : memref<?xf32> loc(#loc)
      scf.reduce loc(#loc)
    } loc(#loc)
    return loc(#loc)
  } loc(#loc)
} loc(#loc)
"""
UNPLACED = """\
#loc = loc(unknown)
"builtin.module"() ({
  "func.func"() <{function_type = (f32, memref<4xf32>) -> (), sym_name = "k"}> ({
  ^bb0(%arg0: f32 loc(unknown), %arg1: memref<4xf32> loc(unknown)):
    %0 = "arith.constant"() <{value = 1 : index}> : () -> index loc(#loc)
    "memref.store"(%arg0, %arg1, %0, %0) : (f32, memref<4xf32>, index, index) -> () loc(#loc)
    "func.return"() : () -> () loc(#loc)
  }) : () -> () loc(#loc)
}) : () -> () loc(#loc)
"""


class Printed:
    """What a project's bindings show of a module."""

    def __init__(self, text: str | bytes) -> None:
        self._text = text

    @property
    def operation(self) -> SimpleNamespace:
        return SimpleNamespace(get_asm=self._get_asm)

    def _get_asm(self, enable_debug_info: bool = False) -> str | bytes:
        assert enable_debug_info
        return self._text


def test_modules_are_programs(tmp_path: Path) -> None:
    x = np.arange(5, dtype=np.float32)
    offload.compile(Printed(PLACED), targets=["host"]).doubled(x)
    np.testing.assert_array_equal(x, 2 * np.arange(5, dtype=np.float32))
    caller = tmp_path / "caller.mlir"
    caller.write_text("""
func.func private @doubled(memref<?xf32>)
func.func @twice(%x: memref<?xf32>) {
  call @doubled(%x) : (memref<?xf32>) -> ()
  call @doubled(%x) : (memref<?xf32>) -> ()
  return
}""")
    for sources in ([caller, Printed(PLACED)], [Printed(caller.read_text()), Printed(PLACED)]):
        built = offload.build(sources, tmp_path / "both.so", targets=["host"])
        x = np.arange(5, dtype=np.float32)
        offload.load(built).twice(x)
        np.testing.assert_array_equal(x, 4 * np.arange(5, dtype=np.float32))
    offload.load(offload.build(Printed(PLACED), tmp_path / "one.so", targets=["host"])).doubled(x)


def test_places_are_those_of_the_program_that_made_it() -> None:
    with pytest.raises(CompileError, match="incorrect number of indices") as caught:
        offload.compile(Printed(PLACED.replace("memref.load %arg0[%i]", "memref.load %arg0[%i, %i]")))
    assert (caught.value.diagnostics[0].file, caught.value.diagnostics[0].line) == ("made.py", 7)


def test_places_that_a_place_was_called_from() -> None:
    """As bindings give them that look at Python's stack."""
    calls = 'callsite("load"("made.py":7:3) at callsite("tile"("lib.py":5:1) at "main"("main.py":2:9)))'
    wrong = PLACED.replace("memref.load %arg0[%i]", "memref.load %arg0[%i, %i]").replace('"made.py":7:3', calls)
    with pytest.raises(CompileError) as caught:
        offload.compile(Printed(wrong))
    assert str(caught.value).splitlines()[:1] + str(caught.value).splitlines()[-2:] == [
        "made.py:7:3: error: 'memref.load' op incorrect number of indices for load, expected 1 but got 2",
        "lib.py:5:1: note: called from here",
        "main.py:2:9: note: called from here",
    ]


def test_what_has_no_place_is_told_at_its_line_of_the_text() -> None:
    with pytest.raises(CompileError, match="store index operand count") as caught:
        offload.compile(Printed(UNPLACED))
    diagnostic = caught.value.diagnostics[0]
    assert (diagnostic.file, diagnostic.line, diagnostic.column) == ("<module>", 6, 5)
    with pytest.raises(CompileError) as caught:
        offload.compile(Printed(UNPLACED), name="made")
    assert caught.value.diagnostics[0].file == "made"


def test_text_that_looks_like_a_place_stays() -> None:
    """In strings, in lists, and in the names of files."""
    odd = UNPLACED.replace("#loc = loc(unknown)\n", "#loc = loc(unknown)\n#loc1 = loc(unknown)\n").replace(
        "() -> index loc(#loc)", '() -> index loc("we loc(#loc1), ird.py":3:4)'
    )
    odd = odd.replace("%0, %0)", "%0)").replace("index, index)", "index)")
    attributes = 'a.b = "x loc(unknown)) y \\22 loc(#loc1)", a.c = [loc("u"), loc(unknown), 2]'
    odd = odd.replace("  }) : () -> () loc(#loc)\n})", f"  }}) {{{attributes}}} : () -> () loc(#loc)\n}})")
    source = programs.source(Printed(odd), None)
    text = source.data.decode()
    assert 'loc("we loc(#loc1), ird.py":3:4)' in text
    assert attributes in text
    assert text.count(" loc(") == 7  # two aliases, the place and what is in it, two in the string, one in the list
    assert offload.compile(Printed(odd)).functions


def test_what_prints_no_text() -> None:
    with pytest.raises(TypeError, match=r"gives no text but bytes"):
        offload.compile(Printed(b"module {}"))
    with pytest.raises(offload.OffloadError, match=r"source is no text: '\\udc80' at its character 3"):
        offload.compile(Printed("// \udc80\nmodule {}"))
