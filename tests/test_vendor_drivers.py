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
from compiling import EXAMPLES, HERE, ROOT

import offload


@pytest.fixture(scope="session")
def drivers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the stand-ins under the names of the vendors' libraries."""
    folder = tmp_path_factory.mktemp("drivers")
    for source, name in (("libcuda.c", "libcuda.so.1"), ("libamdhip64.c", "libamdhip64.so.6")):
        command = ["cc", "-shared", "-fPIC", "-D_GNU_SOURCE", "-I", ROOT / "runtime_c", HERE / "standin" / source]
        subprocess.run([*command, "-o", folder / name], check=True)
    return folder


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
