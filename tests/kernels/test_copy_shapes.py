"""Copies between arrays whose sizes are known at run time alone: those that differ are an error, not a write past
the end."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from compiling import emit_text, on_host, python
from traces import calls, read

import offload
from offload import DeviceError

PROGRAM = """
func.func @same(%x: memref<?x4xf32>, %y: memref<?x4xf32>) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : memref<?x4xf32>
  %d = gpu.alloc (%n) : memref<?x4xf32>
  gpu.memcpy %d, %x : memref<?x4xf32>, memref<?x4xf32>
  %e = gpu.alloc (%n) : memref<?x4xf32>
  gpu.memcpy %e, %d : memref<?x4xf32>, memref<?x4xf32>
  gpu.dealloc %e : memref<?x4xf32>
  gpu.dealloc %d : memref<?x4xf32>
  return
}
func.func @plain(%x: memref<?x4xf32>, %y: memref<?x4xf32>) {
  gpu.memcpy %y, %x : memref<?x4xf32>, memref<?x4xf32>
  return
}
func.func @strided(%x: memref<?x?xf32, strided<[?, ?], offset: ?>>, %y: memref<?x?xf32>) {
  gpu.memcpy %y, %x : memref<?x?xf32>, memref<?x?xf32, strided<[?, ?], offset: ?>>
  return
}
func.func @async(%x: memref<?x4xf32>, %y: memref<5x4xf32>) {
  %t = gpu.wait async
  %c = gpu.memcpy async [%t] %y, %x : memref<5x4xf32>, memref<?x4xf32>
  gpu.wait [%c]
  return
}
"""


@pytest.mark.parametrize(("name", "line"), [("plain", 14), ("strided", 18), ("async", 23)])
def test_sizes_that_differ(name: str, line: int) -> None:
    function = getattr(on_host(PROGRAM), name)
    x, y = np.arange(12, dtype=np.float32).reshape(3, 4), np.zeros((5, 4), np.float32)
    with pytest.raises(DeviceError, match=re.escape(f":{line}: gpu.memcpy copies an array of shape (3, 4) to one of")):
        function(x, y)
    np.testing.assert_array_equal(y, 0)
    x = np.arange(20, dtype=np.float32).reshape(5, 4)
    function(x, y)
    np.testing.assert_array_equal(y, x)


def test_sizes_that_cannot_differ_are_not_compared() -> None:
    text = emit_text(PROGRAM, "host-llvm")
    body = {name: text.split(f"@{name}(")[1].split("\n}")[0] for name in ("same", "plain")}
    assert ("mgpuCheckShapes" in body["same"], "mgpuCheckShapes" in body["plain"]) == (False, True)


REVERSED = """
func.func @copy(%x: memref<?x?x?xi16, strided<[?, ?, ?], offset: ?>>,
                %y: memref<?x?x?xi16, strided<[?, ?, ?], offset: ?>>) {
  gpu.memcpy %y, %x : memref<?x?x?xi16, strided<[?, ?, ?], offset: ?>>, memref<?x?x?xi16, strided<[?, ?, ?], offset: ?>>
  return
}
"""
COPIES = """
import sys, numpy, offload
copy = offload.load(sys.argv[1]).copy
x = numpy.arange(60 * 70 * 5, dtype="i2").reshape(60, 70, 5)
spread = numpy.broadcast_to(x[:, :1, :1], x.shape)
for view in (x[::-1, ::-1, ::-1], x[:, ::-1], x[:, ::-1, :3], x[::2, ::-2, ::-2], spread):
    y = numpy.zeros(view.shape, "i2")
    copy(view, y)
    numpy.testing.assert_array_equal(y, view)
    y = numpy.zeros(view.shape, "i2")
    copy(x[: len(y), : y.shape[1], : y.shape[2]], y[:, ::-1])
    numpy.testing.assert_array_equal(y[:, ::-1], x[: len(y), : y.shape[1], : y.shape[2]])
"""


def test_what_goes_backwards_is_copied_in_rows(tmp_path: Path) -> None:
    """Not an element at a time, of which there are 21,000: on the CPU the source's rows may have any distance."""
    (tmp_path / "reversed.mlir").write_text(REVERSED)
    offload.build(tmp_path / "reversed.mlir", tmp_path / "reversed.so", targets=["host"])
    python(COPIES, tmp_path / "reversed.so", cwd=tmp_path, environment={"OFFLOAD_TRACE": str(tmp_path / "trace.json")})
    copies = [event for event in calls(read(tmp_path / "trace.json")) if event["cat"] == "copy"]
    assert len(copies) < 10 * 350
    assert any(event["args"]["from_pitch"] < 0 for event in copies if "from_pitch" in event["args"])
