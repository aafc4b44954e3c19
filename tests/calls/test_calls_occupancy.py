"""Occupancy of kernels: on the CPU, and what the drivers are asked and answer (stand-ins)."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from compiling import EXAMPLES, HERE, ROOT, on_host, program

from offload.errors import SignatureError
from offload.runtime import Occupancy

STANDINS = {"cuda": ("libcuda.c", "libcuda.so.1"), "hip": ("libamdhip64.c", "libamdhip64.so.6")}
ASK = """
import sys, offload
library = offload.load(sys.argv[1])
library.use(sys.argv[2])
kernel = library.kernels.saxpy_kernel
try:
    print([tuple(vars(kernel.occupancy(*given)).values()) for given in eval(sys.argv[3])])
except offload.DeviceError as error:
    print(error)
"""


def ask(drivers: Path, artifact: Path, backend: str, given: list[tuple[Any, ...]], **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", ASK, artifact, backend, repr(given)],
        env=os.environ | {"LD_LIBRARY_PATH": str(drivers)} | environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_on_the_cpu() -> None:
    library = on_host(EXAMPLES / "saxpy.mlir")
    kernel, width = library.kernels.saxpy_kernel, library.device.info.multiprocessors
    known = kernel.occupancy()
    assert (known.blocks, known.multiprocessors, known.grid) == (1, width, width)
    assert kernel.occupancy(known.threads) == kernel.occupancy((known.threads, 1, 1)) == known
    assert kernel.occupancy(1025) == Occupancy(1025, 0, width)
    free = program("described").kernels.fill  # takes any block
    assert free.occupancy() == Occupancy(1024, 1, width)
    assert free.occupancy((8, 4), shared=4096) == Occupancy(32, 1, width)
    assert free.occupancy((2**31 - 1, 2)).blocks == 0


@pytest.mark.parametrize("block", [0, -1, 1.5, (1, 2, 3, 4), "x"])
def test_blocks_that_are_none(block: object) -> None:
    with pytest.raises(SignatureError, match="kernel fill: expected the block as a positive integer or a tuple"):
        program("described").kernels.fill.occupancy(block)


@pytest.mark.parametrize("shared", [-1, 1.0, 2**31])
def test_memory_that_is_none(shared: object) -> None:
    with pytest.raises(SignatureError, match=re.escape(f"of dynamic workgroup memory, given {shared!r}")):
        program("described").kernels.fill.occupancy(32, shared)


@pytest.mark.parametrize("trace", ["", "1"], ids=["", "traced"])
@pytest.mark.parametrize("backend", STANDINS)
def test_what_drivers_say(drivers: Path, built: dict[str, Path], tmp_path: Path, backend: str, trace: str) -> None:
    environment = {"OFFLOAD_TRACE": str(tmp_path / "trace.json")} if trace else {}
    given = [(256,), ((16, 16),), (), (None, 100 * 1024), (2048,), (64, 60 * 1024)]
    answers = [(256, 8), (256, 8), (768, 2), (256, 2), (2048, 0), (64, 3)]
    multiprocessors = eval(ask(drivers, built["saxpy"], backend, [(1,)]))[0][2]
    assert multiprocessors > 0
    expected = [(*answer, multiprocessors) for answer in answers]
    assert eval(ask(drivers, built["saxpy"], backend, given, **environment)) == expected


@pytest.mark.parametrize(
    ("backend", "message"),
    [
        ("cuda", "This CUDA driver does not tell the occupancy of kernels."),
        ("hip", "This HIP library does not tell the occupancy of kernels."),
    ],
)
def test_drivers_that_do_not_know(built: dict[str, Path], tmp_path: Path, backend: str, message: str) -> None:
    source, name = STANDINS[backend]
    flags = ["-shared", "-fPIC", "-fvisibility=hidden", "-D_GNU_SOURCE", "-DSTANDIN_OLD", "-I", ROOT / "runtime_c"]
    subprocess.run(["cc", *flags, HERE / "standin" / source, "-o", tmp_path / name], check=True)
    assert ask(tmp_path, built["saxpy"], backend, [(256,)]) == message


def test_memory_that_the_device_has_not(drivers: Path, built: dict[str, Path]) -> None:
    answers = eval(ask(drivers, built["saxpy"], "cuda", [(256, 231_424), (256, 400_000), (None, 400_000)]))
    assert [answer[:2] for answer in answers] == [(256, 1), (256, 0), (768, 0)]
