"""Calls where arrays, streams and devices matter: staging, streams of other packages, several devices, DLPack; on
stand-in drivers with two devices (tests/standin/calls.py, placed.py, lent.py), and on the CPU."""

from __future__ import annotations

import ctypes
import gc
import os
import pickle
import shutil
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from compiling import EXAMPLES, HERE, python
from runtime_support import fake, real, real_path

import offload
from offload.errors import DeviceError
from offload.runtime import FAST, export, function, kernel, staging
from offload.runtime.dtypes import Mismatch


@pytest.mark.parametrize("backend", ["cuda", "hip"])
@pytest.mark.parametrize("fast", ["1", "0"])
@pytest.mark.parametrize("program", ["calls.py", "placed.py", "lent.py", "dropped.py", "defaults.py"])
def test_calls_on_a_gpu(
    drivers: Path, built: dict[str, Path], tmp_path: Path, program: str, fast: str, backend: str
) -> None:
    copy = tmp_path / "copy.so"
    shutil.copy(built["saxpy"], copy)
    done = subprocess.run(
        [sys.executable, HERE / "standin" / program, built["saxpy"], copy, drivers / "kernels.so", backend],
        env=os.environ | {"LD_LIBRARY_PATH": str(drivers), "OFFLOAD_FAST_CALLS": fast},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, '"right"\n'), done.stderr


def test_two_threads_wait_for_one_array() -> None:
    """The second one waits, too, and does not find that the first is at it already."""
    array, waits = real().device.zeros(3, np.float32), []

    class Slow:
        token = None

        def wait(self) -> None:
            waits.append(threading.get_ident())
            if len(waits) == 1:
                other = threading.Thread(target=array.numpy)
                other.start()
                other.join()

    array._uses.mark = Slow()  # type: ignore[assignment]
    array.settle()
    assert len(set(waits)) == 2
    array.settle()
    assert len(waits) == 2, "all that used it is done"


class Indexed:
    """What cuda-python calls a CUstream."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __index__(self) -> int:
        return self.number


def test_handles_of_other_packages_are_numbers_of_many_kinds() -> None:
    for handle, number in ((ctypes.c_void_p(7), 7), (np.int64(7), 7), (Indexed(7), 7), (ctypes.c_void_p(0), None)):
        assert real().stream(SimpleNamespace(handle=handle)).handle == number  # Numba has all of them
    assert fake().stream(SimpleNamespace(handle=ctypes.c_void_p(0))).handle == 1, "a driver's default stream"
    assert real().stream(np.uint64(7 << 40)).handle == 7 << 40
    assert real().stream(-8).handle == (1 << 64) - 8
    assert not real().stream(-8).is_default()


def test_nothing_is_staged_on_the_cpu() -> None:
    x = np.ones(3, np.float32)
    real().on_device(offload.stage(x))
    assert x.tolist() == [2, 2, 2]
    real().scale(2, offload.stage(memoryview(x)))
    assert x.tolist() == [4, 4, 4]
    assert repr(offload.stage(1, back=False)) == "stage(1, back=False)"


def test_flags_of_staging_are_flags() -> None:  # "no" meant yes
    library = real()
    with pytest.raises(TypeError, match=r"^auto_stage is True or False, not 'no'$"):
        library.auto_stage = "no"  # type: ignore[assignment]
    assert library.auto_stage is False
    with pytest.raises(TypeError, match=r"^back is True or False, not 'no'$"):
        offload.stage(np.ones(3), back="no")  # type: ignore[arg-type]


def test_two_threads_call_for_the_first_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """One does so while the other prepares its call; what both share is that of one of them."""
    x, y = np.ones(4, np.float32), np.zeros(4, np.float32)
    library = offload.runtime.load(real_path())
    library.use("host")

    def interrupt(module: Any, call: Callable[[], Any]) -> None:
        made = module.MemrefPacker

        def slowly(*args: Any) -> Any:
            monkeypatch.setattr(module, "MemrefPacker", made)
            other = threading.Thread(target=call)
            other.start()
            other.join()
            return made(*args)

        monkeypatch.setattr(module, "MemrefPacker", slowly)
        call()
        call()

    interrupt(function, lambda: library.scale(2, offload.stage(x)))
    assert x.tolist() == [8] * 4
    interrupt(kernel, lambda: library.kernels.saxpy[1, 4](2, offload.stage(x), offload.stage(y)))
    assert y.tolist() == [48] * 4


def test_calls_in_the_background() -> None:
    flag = np.zeros(1, np.int64)
    running = real().wait_for.start(flag)
    assert not running.done
    flag[0] = 1
    assert running.wait() is None
    assert running.done

    with pytest.raises(DeviceError, match="has NULL as its destination"):
        real().fails.start(3).wait()
    assert real().echo_int8(1) == 1


def test_failures_of_calls_that_nobody_waits_for_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda said: told.append(said.exc_value))
    for arguments in ((), (3,)):
        running = real().fails.start(*arguments)
        running._thread.join()
        del running
    assert [type(error) for error in told] == [offload.SignatureError, DeviceError]
    running = real().fails.start(3)
    with pytest.raises(DeviceError):
        running.wait()
    del running
    assert len(told) == 2, "that one was raised"
    monkeypatch.setattr(threading, "excepthook", lambda said: told.append(said.exc_value))
    thread = real().fails.start(3)._thread  # which may go on
    thread.join()
    assert isinstance(told[2], DeviceError)


def test_a_call_in_the_background_keeps_its_stream() -> None:
    flag, stream = np.zeros(1, np.int64), real().stream()
    kept = weakref.ref(stream)
    with stream:
        running = real().wait_for.start(flag)
    del stream
    assert kept() is not None
    flag[0] = 1
    running.wait()
    assert kept() is None


def test_the_stream_of_another_package_is_kept() -> None:
    class Foreign:
        def __cuda_stream__(self) -> tuple[int, int]:
            return 0, 16

    foreign = Foreign()
    kept = weakref.ref(foreign)
    stream = real().stream(foreign)
    del foreign
    assert kept() is not None
    del stream
    assert kept() is None


def test_cpu_arrays_through_dlpack() -> None:
    exported = len(export._exported)
    for dtype in ("bool", "int8", "uint64", "float16", "complex128"):
        x = real().device.array(np.arange(6).reshape(2, 3).astype(dtype))
        view = np.from_dlpack(x)
        assert view.dtype == dtype
        assert np.array_equal(view, x.numpy())
        x.__dlpack__()  # never consumed
        x.__dlpack__(max_version=(1, 0))
        with pytest.raises(ValueError, match="memory of the CPU has no streams"):
            x.__dlpack__(stream=1)
        del x, view
    gc.collect()
    assert len(export._exported) == exported
    assert real().device.managed(3, "f4").host_view().shape == (3,)
    pinned = real().device.pinned(3, "f4")
    pinned[...] = 1
    real().scale(2, pinned)
    assert pinned.tolist() == [2, 2, 2]


REFUSED = """
import gc, sys
import ml_dtypes, numpy, offload
from offload.runtime import export
library = offload.load(sys.argv[1])
library.use("host")
x = library.device.array(numpy.zeros(3, ml_dtypes.bfloat16))
try:
    numpy.from_dlpack(x)
except Exception as error:
    print(error)
del x
gc.collect()
print(len(export._exported))
"""
"""NumPy has no bfloat16 of its own, and says so once it has the capsule, which it lets go of with its error set."""


@pytest.mark.skipif(not FAST, reason="it is lost where calls go through ctypes")
def test_what_a_consumer_of_dlpack_says_is_said(tmp_path: Path) -> None:
    said, kept = python(REFUSED, real().path, cwd=tmp_path).splitlines()
    assert "Unsupported dtype" in said
    assert kept == "0"


def test_without_the_extension_what_a_consumer_refuses_goes_too(tmp_path: Path) -> None:
    """What it says is lost there: see export.py."""
    *_, kept = python(REFUSED, real().path, cwd=tmp_path, environment={"OFFLOAD_FAST_CALLS": "0"}).splitlines()
    assert kept == "0"


def test_libraries_are_pickled_by_path() -> None:
    again = pickle.loads(pickle.dumps(real()))
    assert again.path == real().path
    assert again.echo_int8(3) == 3


def test_without_the_extension_calls_are_the_same(tmp_path: Path) -> None:
    code = """
import sys, numpy, offload, offload.runtime
assert not offload.runtime.FAST
library = offload.load(sys.argv[1])
library.use("host")
assert "calls through ctypes" in repr(library)
x = numpy.ones(3, numpy.float32)
for _ in range(3):
    library.scale(2, x)
    library.kernels.saxpy[1, 3](1, x, x)
print(x.tolist(), library.echo_float32(1.5))
try:
    library.scale(2, x[::2])
except offload.SignatureError as error:
    print(error)
"""
    path = real().path
    printed = python(code, path, cwd=tmp_path, environment={"OFFLOAD_FAST_CALLS": "0"}).splitlines()
    assert printed[0] == "[64.0, 64.0, 64.0] 1.5"
    assert "float32[2] that is not contiguous" in printed[1]


def test_a_wrong_word_for_fast_calls(tmp_path: Path) -> None:
    code = "import offload\ntry: import offload.runtime\nexcept offload.OffloadError as error: print(error)\n"
    printed = python(code, cwd=tmp_path, environment={"OFFLOAD_FAST_CALLS": "off"})
    assert printed == "OFFLOAD_FAST_CALLS is 0 or 1, not 'off'\n"


@pytest.mark.parametrize("backend", ["cuda", "hip"])
def test_launches_are_captured_into_graphs(drivers: Path, built: dict[str, Path], tmp_path: Path, backend: str) -> None:
    copy = tmp_path / "copy.so"
    shutil.copy(built["saxpy"], copy)
    done = subprocess.run(
        [sys.executable, HERE / "standin" / "capture.py", built["saxpy"], copy, drivers / "kernels.so", backend],
        env=os.environ | {"LD_LIBRARY_PATH": str(drivers)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, '"right"\n'), done.stderr


def test_devices_of_other_packages() -> None:
    class CudaCore:
        device_id = 0

    class Cupy:
        id = 0

    class Torch:
        type, index = "cuda", 0

    device = real().device
    for given in (0, np.int64(0), CudaCore(), Cupy(), Torch()):
        assert device(given).index == 0
    with pytest.raises(DeviceError, match="There is no device 3"):
        device(3)
    for wrong in ("0", None, True, 0.0):
        with pytest.raises(TypeError, match="expected the number of a device, or an object with one, given a"):
            device(wrong)


def test_what_is_staged_may_lie_between_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only what two arrays have in common would be copied back twice."""
    copies = staging.Staging(real()._native)
    x = np.zeros(8, np.float32)
    copies._copy(x[::2], True).copy_from(np.full(4, 1, np.float32))
    copies._copy(x[1::2], True).copy_from(np.full(4, 2, np.float32))
    with pytest.raises(Mismatch, match="shares memory with another one that is staged"):
        copies._copy(x[2:4], True)
    copies.finish()
    assert x.tolist() == [1, 2] * 4
    # Where it would take too long to find out, they count as if they did.
    room, strided = np.zeros(64), np.lib.stride_tricks.as_strided
    one, other = strided(room, (3, 3, 3), (56, 40, 16)), strided(room[1:], (3, 3, 3), (48, 80, 112))
    monkeypatch.setattr(staging, "_EFFORT", 1)
    assert staging._overlap(one, other)


def test_prototypes_of_python_are_everybodys(tmp_path: Path) -> None:
    """What others declare of ctypes.pythonapi stays as it is."""
    code = """
import ctypes, sys
import numpy as np
import offload
names = ("PyCapsule_IsValid", "PyCapsule_GetPointer", "PyInterpreterState_Get", "PyInterpreterState_GetID")
functions = [getattr(ctypes.pythonapi, name) for name in names]
for function in functions:
    function.argtypes, function.restype = (ctypes.c_char,), ctypes.c_short

class Foreign:
    def __init__(self, array):
        self.array = array
    def __dlpack__(self, **options):
        return self.array.__dlpack__()
    def __dlpack_device__(self):
        return self.array.__dlpack_device__()

x = np.ones(4, np.float32)
offload.load(sys.argv[1]).saxpy(2.0, Foreign(x), Foreign(x))
assert (x == 3).all(), x
print(all(f.argtypes == (ctypes.c_char,) and f.restype is ctypes.c_short for f in functions))
"""
    path = offload.build(EXAMPLES / "saxpy.mlir", tmp_path / "s.so", targets="host")
    for fast in ("0", "1"):
        assert python(code, path, cwd=tmp_path, environment={"OFFLOAD_FAST_CALLS": fast}) == "True\n"


def test_launches_in_threads_are_armed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    armed: list[kernel.Launch] = []
    axpy = real().kernels.saxpy
    monkeypatch.setattr(kernel.Kernel, "arm", lambda self, launch: armed.append(launch))
    x = np.zeros(4, np.float32)
    for size in range(1, 40):
        launch = axpy[size, 1]
        start = threading.Barrier(8)

        def call(launch: Any = launch, start: threading.Barrier = start) -> None:
            start.wait()
            launch._call(2.0, x, x)

        threads = [threading.Thread(target=call) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert armed == [launch]
        armed.clear()
