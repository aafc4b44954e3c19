"""Python to driver, with stand-in drivers: which backend, which image, which calls. No kernel runs here."""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from compiling import EXAMPLES, HERE, python
from ready import annotated, binary, image, nvvm_object, rocdl_object

import offload


def drive(drivers: Path, artifact: Path, *arguments: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, HERE / "standin" / "drive.py", artifact, *arguments],
        env=os.environ | {"LD_LIBRARY_PATH": str(drivers)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def test_cuda_comes_first_and_gets_the_call_right(drivers: Path, built: dict[str, Path]) -> None:
    seen = drive(drivers, built["saxpy"])
    assert seen["backend"] == "cuda"
    assert seen["failed"] == ""
    # Three launches of 4 x 256 threads; the module is loaded once. The first parameter is x's allocated pointer.
    loads = [line for line in seen["log"] if line.startswith("load")]
    launches = [line for line in seen["log"] if line.startswith("launch")]
    assert len(loads) == 1
    argument = ctypes.c_int32(seen["x"] & 0xFFFFFFFF).value
    for launch in launches:
        assert launch.startswith("launch saxpy_kernel grid 4 1 1 block 256 1 1 cluster 0 smem 0 stream ")
        assert launch.endswith(f" arg {argument}")
    assert len(launches) == 3


def test_hip_gets_the_same_call(drivers: Path, built: dict[str, Path]) -> None:
    seen = drive(drivers, built["saxpy"], "hip")
    assert seen["failed"] == ""
    launches = [line for line in seen["log"] if line.startswith("launch")]
    assert len(launches) == 3
    assert all(line.startswith("launch saxpy_kernel grid 4 1 1 block 256 1 1 smem 0 stream ") for line in launches)


@pytest.mark.parametrize("backend", ["cuda", "hip"])
def test_arrays_of_the_host_are_refused_on_a_gpu(drivers: Path, built: dict[str, Path], backend: str) -> None:
    seen = drive(drivers, built["saxpy"], backend)
    assert "argument 'x' (2 of 3)" in seen["refused"]
    assert f"the kernels run on {backend}; copy it to the device with lib.device.array(x)" in seen["refused"]


def test_no_silent_fall_to_the_cpu(drivers: Path, tmp_path: Path) -> None:
    """The device is an sm_90: an image for another chip does not run on it, and the CPU's is not taken instead."""
    artifact = offload.build(EXAMPLES / "saxpy.mlir", tmp_path / "other.so", targets=["nvvm:sm_100", "host"])
    seen = drive(drivers, artifact)
    assert seen["backend"] == "cuda"
    assert "sm_100" in seen["failed"]
    assert "sm_90" in seen["failed"]
    assert not [line for line in seen["log"] if line.startswith("launch")]


READY = """
import ctypes, json, sys, numpy, offload
library = offload.load(sys.argv[1])
x = library.device.array(numpy.arange(6, dtype=numpy.float32))
driver = ctypes.CDLL(sys.argv[2])
driver.standin_log.restype = ctypes.c_char_p
driver.standin_clear()
library.f(x, 2.5)
library.kernels.k[(2, 3), (4, 1, 1)](x, 2.5)
print(json.dumps({"x": x.pointer, "backend": library.backend, "log": driver.standin_log().decode().splitlines()}))
"""


def run_ready(drivers: Path, source: str, data: bytes, driver: str, folder: Path) -> tuple[dict[str, Any], bytes]:
    """Launches the kernel of compiled code twice; what the driver was told, and the bytes that it got."""
    path = folder / "ready.mlir"
    path.write_text(source)
    artifact = offload.build(path, folder / "ready.so")
    image = folder / "image"
    environment = {
        "LD_LIBRARY_PATH": str(drivers),
        "STANDIN_IMAGE_FILE": str(image),
        "STANDIN_IMAGE_BYTES": str(len(data)),
        "STANDIN_PARAMETERS": "8 8 8 8 8 4",
    }
    seen = json.loads(python(READY, artifact, driver, cwd=folder, environment=environment))
    return seen, image.read_bytes()


@pytest.mark.parametrize("form", ["gpu.binary", "attribute"])
@pytest.mark.parametrize("backend", ["cuda", "hip"])
def test_compiled_code_of_the_program_reaches_the_driver(
    drivers: Path, backend: str, form: str, tmp_path: Path
) -> None:
    if backend == "cuda":
        driver, data, name = "libcuda.so.1", image("nvvm:sm_90"), "nvvm.cubin"
        objects = nvvm_object("sm_80", image("nvvm:sm_80")), nvvm_object("sm_90", data)
    else:
        driver, data, name = "libamdhip64.so.6", image("rocdl:gfx942"), "rocdl.hsaco"
        objects = rocdl_object("gfx90a", image("rocdl:gfx90a")), rocdl_object("gfx942", data)
    source = binary(*objects) if form == "gpu.binary" else annotated({name: data})
    seen, loaded = run_ready(drivers, source, data, driver, tmp_path)
    assert seen["backend"] == backend
    assert loaded == data  # once, though there are two launches
    launches = [line.split(" stream ")[0] for line in seen["log"] if line.startswith("launch")]
    cluster = " cluster 0" if backend == "cuda" else ""
    assert launches == [
        f"launch k grid 1 1 1 block 4 1 1{cluster} smem 0",
        f"launch k grid 2 3 1 block 4 1 1{cluster} smem 0",
    ]
    # The memref of six elements, expanded, and 2.5 as its bits.
    values = [f"{seen['x']:x}", f"{seen['x']:x}", "0", "6", "1", "40200000"]
    told = [line for line in seen["log"] if line.startswith("parameter")]
    assert told == [f"parameter {index} {value}" for index, value in enumerate(values)] * 2


@pytest.mark.parametrize(("properties", "level"), [("", 4), ("properties = {O = 2 : i32}, ", 2)])
def test_assembly_is_compiled_at_its_level(drivers: Path, properties: str, level: int, tmp_path: Path) -> None:
    data = image("nvvm:sm_90", "isa")
    source = binary(nvvm_object("sm_90", data, "assembly = ", properties))
    seen, loaded = run_ready(drivers, source, data, "libcuda.so.1", tmp_path)
    assert loaded == data
    assert [line for line in seen["log"] if line.startswith("level")] == [f"level {level}"]


ALIASES = """
module attributes {gpu.container_module} {
  gpu.module @m {
    gpu.func @k(%x: memref<?xf32>) kernel {
      %i = gpu.thread_id x
      %v = memref.load %x[%i] : memref<?xf32>
      memref.store %v, %x[%i] : memref<?xf32>
      gpu.return
    }
  }
  func.func @same(%x: memref<?xf32, 1>) -> memref<?xf32, 1> {
    return %x : memref<?xf32, 1>
  }
  func.func @twice(%n: index) -> (memref<?xf32, 1>, memref<?xf32, 1>) {
    %x = gpu.alloc (%n) : memref<?xf32, 1>
    return %x, %x : memref<?xf32, 1>, memref<?xf32, 1>
  }
}
"""
RUN_ALIASES = """
import ctypes, json, sys, numpy, offload
library = offload.load(sys.argv[1])
library.use(sys.argv[3])
driver = ctypes.CDLL(sys.argv[2])
driver.standin_log.restype = ctypes.c_char_p
stream, seen = library.stream(), []
array = library.device.zeros(8, numpy.float32)
for used, copied in ((library.same(array), array), (array, library.same(array)), library.twice(8)):
    assert used.pointer == copied.pointer
    launch = library.kernels.k[1, 8, stream]
    for _ in range(3):
        launch(used)
    for take in (lambda: copied.numpy(), lambda: library.kernels.k[1, 8, library.stream()](copied)):
        driver.standin_clear()
        take()
        told = [line.split()[0] for line in driver.standin_log().decode().splitlines()]
        seen.append([what for what in told if what != "record"][0])
        launch(used)
with library.device(1):
    array, far = library.device.zeros(8, numpy.float32), library.stream()
print(json.dumps([seen, library.same(array).device, library.twice(8, stream=far)[0].device, library.device.index]))
"""


@pytest.mark.parametrize(("backend", "driver"), [("cuda", "libcuda.so.1"), ("hip", "libamdhip64.so.6")])
def test_arrays_on_the_same_memory_are_used_together(drivers: Path, backend: str, driver: str, tmp_path: Path) -> None:
    """What a function gives may lie in an argument, or in another result: work on one is waited for by who takes the
    other, by the CPU for a copy and by the stream for a launch; and it is on the device of its memory."""
    path = tmp_path / "aliases.mlir"
    path.write_text(ALIASES)
    artifact = offload.build(path, tmp_path / "aliases.so", targets=["nvvm:sm_90", "rocdl:gfx942", "host"])
    environment = {"LD_LIBRARY_PATH": str(drivers)}
    said = json.loads(python(RUN_ALIASES, artifact, driver, backend, cwd=tmp_path, environment=environment))
    assert said == [["sync", "wait"] * 3, 1, 1, 0]
