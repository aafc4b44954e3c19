"""The suite for devices (tests/device) on emulated ones: its programs as PTX, its calls and comparisons.

Of the many programs of one kind every run takes a part; ``--full`` takes all.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import numpy as np
import pytest
from device.checks import CUDA, Check
from device.groups import all_checks, printing
from emulator.driver import Driver
from emulator.on_device import OnDevice, compiled, compiled_program
from operations.device_gpu_launch import CLUSTERS

from offload.errors import DeviceError

LEFT_OUT = {
    "/operations_table": "test_ptx_operations.py",
    "/conformance_kernels": "test_ptx_conformance.py",
    "/other_packages": "they find CUDA's driver themselves, and the stand-in has not all of it",
    "fatbin": "machine code",
    "compiled code/a cubin": "machine code",
    "compiled code/a module's cubin": "machine code",
    "two libraries/sm_90 and PTX": "what is PTX alone beside it is another's test",
    "faults/one element past the end": "planted: only a tool notices it, and the emulator is one",
}
"""Parts of modules' and checks' names, and why these checks do not run here."""


def described(check: Check) -> str:
    return f"/{check.module.split('.')[-1]}/{check.id}"


CHECKS = [
    check for check in all_checks() if CUDA in check.backends and not any(part in described(check) for part in LEFT_OUT)
]


PART = {"host programs": 6, "async": 4}
"""Of so many checks of a group one runs."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "check" not in metafunc.fixturenames:
        return
    everything = metafunc.config.getoption("--full")
    chosen = [check for place, check in enumerate(CHECKS) if everything or place % PART.get(check.group, 1) == 0]
    metafunc.parametrize("check", chosen, ids=[check.id.replace(" ", "_") for check in chosen])


def test_check(cuda: Driver, check: Check, monkeypatch: pytest.MonkeyPatch) -> None:
    @contextlib.contextmanager
    def output() -> Iterator[list[str]]:
        lines: list[str] = []
        cuda.output = ""
        yield lines
        lines += cuda.output.splitlines()

    monkeypatch.setattr(printing, "output", output)
    with cuda.chip("sm_90"):
        libraries = [compiled_program(program) for program in check.programs]
        try:
            check.run(*libraries)
        except Exception:
            cuda.check()
            raise
    if check.group == "faults":
        cuda.failures.clear()


def test_clusters_on_a_chip_without_them(cuda: Driver) -> None:
    with cuda.chip("sm_80"):
        library = OnDevice(compiled(CLUSTERS, "sm_80"))
        with pytest.raises(DeviceError, match='The kernel "run_kernel" needs clusters; sm_80 has none'):
            library.run(np.zeros(1, np.int32), np.zeros((12, 4), np.int32))


SIZES = """
gpu.module @m { gpu.func @k(%x: memref<?xi32>) kernel {
  %i = gpu.block_id y
  %j = gpu.thread_id z
  %one = arith.constant 1 : i32
  memref.store %one, %x[%i] : memref<?xi32>
  memref.store %one, %x[%j] : memref<?xi32>
  gpu.return
} }
"""


def test_grids_and_blocks_that_drivers_refuse(cuda: Driver) -> None:
    """Of 64 threads at most in z, and 65,535 blocks in y and in z."""
    x = np.zeros(2, np.int32)
    with cuda.chip("sm_90"):
        kernel = OnDevice(compiled(SIZES, "sm_90")).kernels.k
        for grid, block in (((1, 65536), 1), ((1, 1, 65536), 1), (1, (1, 1, 65))):
            with pytest.raises(DeviceError, match=r'launch of the kernel "k" with grid \('):
                kernel[grid, block](x)
        assert not x.any()
        kernel[(1, 2), (1, 1, 2)](x)
    assert x.all()
