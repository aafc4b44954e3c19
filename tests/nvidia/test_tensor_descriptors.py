"""TMA descriptors and clusters from the program to the CUDA driver: a stand-in that holds calls to NVIDIA's rules."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from compiling import python

import offload

CODE = """
import ctypes, json, sys, numpy, offload
library = offload.load(sys.argv[1])
library.use("cuda")
api = library._native.api
driver = ctypes.CDLL("libcuda.so.1")
driver.standin_log.restype = ctypes.c_char_p
count = lambda: api.mgpuCount(offload.runtime.abi.COUNT_DESCRIPTORS)
arguments = [library.device.array(numpy.zeros(shape, numpy.dtype(dtype))) for shape, dtype in json.loads(sys.argv[2])]
start = count()
driver.standin_clear()
failed = ""
try:
    library.f(*arguments)
    library.f(*arguments)
except offload.DeviceError as error:
    failed = str(error)
log = driver.standin_log().decode().splitlines()
made, pointers = count() - start, [argument.pointer for argument in arguments]
del arguments
print(json.dumps({"log": log, "failed": failed, "made": made, "left": count() - start, "pointers": pointers}))
"""


def run(
    drivers: Path, folder: Path, source: str, arguments: list[tuple[list[int], str]], **environment: str
) -> dict[str, Any]:
    """Calls @f twice with zeroed device arrays; what the driver was told."""
    path = folder / "program.mlir"
    path.write_text(source)
    artifact = offload.build(path, folder / "program.so", targets=["nvvm:sm_90"])
    settings = {"LD_LIBRARY_PATH": str(drivers)} | environment
    result: dict[str, Any] = json.loads(python(CODE, artifact, json.dumps(arguments), cwd=folder, environment=settings))
    return result


def program(tensor: str, box: str, options: str, memref: str) -> str:
    """Host code that describes its argument and hands that to a kernel."""
    kind = f"!nvgpu.tensormap.descriptor<tensor = memref<{box}x{tensor}, 3>, {options}>"
    sizes = box.split("x")
    widths = "".join(f"%w{i} = arith.constant {size} : index\n" for i, size in enumerate(sizes))
    return f"""module attributes {{gpu.container_module}} {{
gpu.module @m {{
gpu.func @k(%tm: {kind}) kernel {{
nvgpu.tma.prefetch.descriptor %tm : {kind}
gpu.return
}}
}}
func.func @f(%x: memref<{memref}>) {{
%c1 = arith.constant 1 : index
%c64 = arith.constant 64 : index
{widths}%u = memref.cast %x : memref<{memref}> to memref<*x{tensor}>
%d = nvgpu.tma.create.descriptor %u box[{", ".join(f"%w{i}" for i in range(len(sizes)))}] : memref<*x{tensor}> -> {kind}
gpu.launch_func @m::@k blocks in (%c1, %c1, %c1) threads in (%c64, %c1, %c1) args(%d : {kind})
return
}}
}}
"""


@pytest.mark.parametrize(
    ("source", "argument", "codes", "dimensions"),
    [
        (
            program("f16", "64x32", "swizzle = none, l2promo = none, oob = zero, interleave = none", "256x128xf16"),
            ([256, 128], "float16"),
            "type 6 interleave 0 swizzle 0 promotion 0 fill 0",
            [(128, 0, 32), (256, 256, 64)],
        ),
        (
            program(
                "f16", "128x64", "swizzle = swizzle_128b, l2promo = l2promo_256b, oob = nan, interleave = none",
                "256x512xf16",
            ),
            ([256, 512], "float16"),
            "type 6 interleave 0 swizzle 3 promotion 3 fill 1",
            [(512, 0, 64), (256, 1024, 128)],
        ),
        (
            program(
                "f32", "2x8x8", "swizzle = swizzle_32b, l2promo = l2promo_64b, oob = zero, interleave = none",
                "5x24x40xf32",
            ),
            ([5, 24, 40], "float32"),
            "type 7 interleave 0 swizzle 1 promotion 1 fill 0",
            [(40, 0, 8), (24, 160, 8), (5, 3840, 2)],
        ),
        (
            program(
                "f16", "4x2x16x8", "swizzle = none, l2promo = l2promo_128b, oob = zero, interleave = none",
                "4x6x16x8xf16",
            ),
            ([4, 6, 16, 8], "float16"),
            "type 6 interleave 0 swizzle 0 promotion 2 fill 0",
            [(8, 0, 8), (16, 16, 16), (6, 256, 2), (4, 1536, 4)],
        ),
    ],
    ids=["plain", "swizzle", "rank 3", "rank 4"],
)  # fmt: skip
def test_the_driver_gets_what_the_program_says(
    drivers: Path,
    source: str,
    argument: tuple[list[int], str],
    codes: str,
    dimensions: list[tuple[int, int, int]],
    tmp_path: Path,
) -> None:
    seen = run(drivers, tmp_path, source, [argument], STANDIN_DESCRIPTOR="0")
    assert seen["failed"] == ""
    told = [line for line in seen["log"] if line.startswith(("descriptor", "dimension"))]
    (pointer,) = seen["pointers"]
    once = [f"descriptor at {pointer:#x} {codes}"]
    once += [f"dimension size {size} stride {stride} box {box} step 1" for size, stride, box in dimensions]
    assert told == 2 * once
    assert len([line for line in seen["log"] if line.startswith("launch k ")]) == 2
    assert seen["made"] == 1  # two calls with one tensor
    assert seen["left"] == 0  # it goes with the tensor


def test_a_part_of_a_tensor_is_described_by_its_place(drivers: Path, tmp_path: Path) -> None:
    """A subview: its own address, its parent's distances."""
    options = "swizzle = none, l2promo = none, oob = zero, interleave = none"
    part = "strided<[128, 1], offset: 8224>"
    source = program("f16", "64x32", options, "256x128xf16").replace(
        "%u = memref.cast %x : memref<256x128xf16> to memref<*xf16>",
        f"%p = memref.subview %x[64, 32] [128, 64] [1, 1] : memref<256x128xf16> to memref<128x64xf16, {part}>\n"
        f"%u = memref.cast %p : memref<128x64xf16, {part}> to memref<*xf16>",
    )
    seen = run(drivers, tmp_path, source, [([256, 128], "float16")], STANDIN_DESCRIPTOR="0")
    assert seen["failed"] == ""
    told = [line for line in seen["log"] if line.startswith(("descriptor", "dimension"))]
    assert told[0].startswith(f"descriptor at {seen['pointers'][0] + 2 * 8224:#x} type 6")
    assert told[1:3] == ["dimension size 64 stride 0 box 32 step 1", "dimension size 128 stride 256 box 64 step 1"]
    assert (seen["made"], seen["left"]) == (1, 0)


def test_a_tensor_that_tma_cannot_read_is_refused_in_words(drivers: Path, tmp_path: Path) -> None:
    options = "swizzle = none, l2promo = none, oob = zero, interleave = none"
    seen = run(drivers, tmp_path, program("f16", "64x32", options, "256x100xf16"), [([256, 100], "float16")])
    assert seen["failed"] == (
        "The tensor cannot be described for TMA: its elements are 200 bytes apart in dimension 0, "
        "and multiples of 16 are possible."
    )
    assert [line for line in seen["log"] if line.startswith("launch")] == []


CLUSTERS = """module attributes {gpu.container_module} {
gpu.module @m {
gpu.func @k(%x: memref<?xf32>) kernel {
gpu.return
}
}
func.func @f(%x: memref<?xf32>) {
%c1 = arith.constant 1 : index
%c2 = arith.constant 2 : index
%c4 = arith.constant 4 : index
%c8 = arith.constant 8 : index
%c64 = arith.constant 64 : index
%bytes = arith.constant 4096 : i32
gpu.launch_func @m::@k clusters in (%c2, %c1, %c4) blocks in (%c8, %c4, %c4) threads in (%c64, %c2, %c1)
  dynamic_shared_memory_size %bytes args(%x : memref<?xf32>)
return
}
}
"""


def test_clusters_reach_the_driver_as_attributes(drivers: Path, tmp_path: Path) -> None:
    seen = run(drivers, tmp_path, CLUSTERS, [([16], "float32")])
    assert seen["failed"] == ""
    told = [line.split(" stream ")[0] for line in seen["log"] if line.startswith(("clusters", "launch"))]
    assert told == 2 * [
        "clusters of 2 1 4, policy 1",
        "launch k grid 8 4 4 block 64 2 1 cluster 2 smem 4096",
    ]
