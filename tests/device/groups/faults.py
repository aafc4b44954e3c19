"""What goes wrong on a device: it is an error in Python that says what happened, and never the end of the process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from emulator.on_device import OnDevice
from operations import device_gpu_prints as prints

from device.checks import CUDA, Check, Program
from device.groups.examples import program
from offload.errors import DeviceError
from offload.runtime import Library

WILD = """
gpu.module @m {
  gpu.func @k(%x: memref<?xi32>, %far: index) kernel {
    %t = gpu.thread_id x
    %i = arith.addi %t, %far : index
    %v = arith.index_cast %i : index to i32
    memref.store %v, %x[%i] : memref<?xi32>
    gpu.return
  }
}
"""
PLANTED = "faults/one element past the end"
FAR = 1 << 44
"""Elements: past all memory that a process has."""


def refused(action: Callable[[], Any], *words: str) -> str:
    """The text of the DeviceError that an action raises, which must hold the words."""
    try:
        action()
    except DeviceError as error:
        missing = [word for word in words if word not in str(error)]
        assert not missing, f"{missing} not in: {error}"
        return str(error)
    raise AssertionError("it raised nothing")


def illegal_address(library: Library) -> None:
    x = library.device.array(np.arange(4, dtype=np.int32))
    library.kernels.k[1, 4](x, 0)
    np.testing.assert_array_equal(x.numpy(), np.arange(4))
    refused(lambda: library.kernels.k[1, 4](x, FAR), "CUDA_ERROR_ILLEGAL_ADDRESS")
    # The context is lost: what follows is an error too, not a crash and not a wrong result.
    refused(lambda: library.kernels.k[1, 4](x, 0), "CUDA_ERROR_ILLEGAL_ADDRESS")
    refused(lambda: x.numpy(), "CUDA_ERROR_ILLEGAL_ADDRESS")


def illegal_address_on_a_stream(library: Library) -> None:
    x = library.device.array(np.arange(4, dtype=np.int32))
    stream = library.stream()
    # The launch tells it where the kernel is faster than the event behind it.
    refused(lambda: library.kernels.k[1, 4, stream](x, FAR).wait(), "CUDA_ERROR_ILLEGAL_ADDRESS")


def past_the_end(library: Library) -> None:
    """Too near for the hardware to notice: a tool like compute-sanitizer does, and this is what shows that it does."""
    x = library.device.array(np.arange(4, dtype=np.int32))
    try:
        library.kernels.k[1, 4](x, 1)
    except DeviceError:
        return  # under a tool the launch is an error
    np.testing.assert_array_equal(x.numpy(), [0, 1, 2, 3])


def assertion(library: Library) -> None:
    x = np.arange(90, dtype=np.int32)
    kernels, out = OnDevice(library).kernels, np.zeros(90, np.int32)
    kernels.k[3, 30](x, out)
    np.testing.assert_array_equal(out, 2 * x)
    x[37] = 100
    message = refused(lambda: kernels.k[3, 30](x, out))
    assert library.backend != CUDA or "CUDA_ERROR_ASSERT" in message, message


def out_of_memory(library: Library) -> None:
    total = library.device.info.memory_bytes
    refused(lambda: library.device.empty(4 * total, np.uint8), "CUDA_ERROR_OUT_OF_MEMORY")
    # Nothing is broken by it.
    x = library.device.array(np.ones(8, np.float32))
    library.saxpy(2.0, x, x)
    np.testing.assert_array_equal(x.numpy(), np.full(8, 3))


def too_many_threads(library: Library) -> None:
    x = library.device.zeros(4, np.int32)
    refused(lambda: library.kernels.k[1, 1025](x, 0))
    library.kernels.k[1, 4](x, 0)
    np.testing.assert_array_equal(x.numpy(), np.arange(4))


def too_much_shared_memory(library: Library) -> None:
    x = library.device.zeros(4, np.int32)
    refused(lambda: library.kernels.k[1, 4, None, 1 << 24](x, 0))
    library.kernels.k[1, 4](x, 0)


def no_such_device(library: Library) -> None:
    refused(lambda: library.device(4711))


def checks() -> Iterator[Check]:
    wild = Program(WILD)
    assertions = [("among barriers", "gpu.barrier"), ("without barriers", "")]
    yield Check("faults", "an illegal address", [wild], illegal_address, [CUDA], alone=True)
    yield Check("faults", "an illegal address on a stream", [wild], illegal_address_on_a_stream, [CUDA], alone=True)
    for name, barrier in assertions:
        source = Program(prints.ASSERT.replace("BARRIER", barrier))
        yield Check("faults", f"an assertion {name}", [source], assertion, alone=True)
    yield Check(*PLANTED.split("/"), [wild], past_the_end, [CUDA], alone=True)
    yield Check("faults", "out of memory", [program("saxpy")], out_of_memory, [CUDA])
    yield Check("faults", "too many threads", [wild], too_many_threads)
    yield Check("faults", "too much shared memory", [wild], too_much_shared_memory, [CUDA])
    yield Check("faults", "no such device", [wild], no_such_device)
