"""Programs that carry compiled code, cubins, PTX and bundles, with their bytes as they are; two libraries at once."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from emulator.on_device import OnDevice

import offload
from device.checks import CUDA, Check, Program
from device.groups.examples import numbers, program
from offload.runtime import Library


def stores(library: Library) -> None:
    x = np.zeros(6, np.float32)
    OnDevice(library).f(x, np.float32(2.5))
    np.testing.assert_array_equal(x, [2.5, 2.5, 2.5, 2.5, 0, 0])


def _carrying(form: str) -> Callable[[], str]:
    """The program is made where there is a compiler."""

    def make() -> str:
        import ready

        if form == "a cubin":
            return ready.binary(ready.nvvm_object("sm_90", ready.CUBIN))
        if form == "PTX":
            return ready.binary(ready.nvvm_object("sm_90", ready.PTX, "assembly = ", "properties = {O = 2 : i32}, "))
        if form == "a fatbin":
            return ready.binary(ready.nvvm_object("sm_90", ready.FATBIN, ""))
        if form == "a module's cubin":
            return ready.annotated({"nvvm.cubin": ready.CUBIN})
        return ready.annotated({"nvvm.cubin": ready.CUBIN}, ready.BODY)

    return make


def two(first: Library, second: Library) -> None:
    """Two libraries work on one array, each with its runtime."""
    x, y = numbers(1000), numbers(1001)[:1000].copy()
    there, out = first.device.array(x), first.device.array(y)
    first.saxpy(2.0, there, out)
    second.saxpy(3.0, there, out)
    np.testing.assert_allclose(out.numpy(), 5 * x + y, rtol=1e-5, atol=1e-5)


def the_same_twice(library: Library) -> None:
    """A copy of a library's file is another library, with its own module on the device."""
    with tempfile.TemporaryDirectory() as folder:
        copied = offload.load(shutil.copy(library.path, Path(folder) / "copy.so"))
        copied.use(library.backend)
        two(library, copied)


def checks() -> Iterator[Check]:
    for form in ("a cubin", "PTX", "a fatbin", "a module's cubin"):
        made = Program(_carrying(form), ("nvvm:sm_90",), label=f"carries {form}")
        yield Check("compiled code", form, [made], stores, [CUDA])
    made = Program(_carrying("source too"), label="carries a cubin and source")
    yield Check("compiled code", "a module's cubin, with source", [made], stores)
    yield Check("two libraries", "sm_90 and sm_90a", [program("saxpy"), program("saxpy", "nvvm:sm_90a")], two)
    yield Check("two libraries", "sm_90 and PTX", [program("saxpy"), program("saxpy", "nvvm:sm_90,format=isa")], two)
    yield Check("two libraries", "a copy", [program("saxpy")], the_same_twice)
