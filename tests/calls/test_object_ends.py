"""The ends of Python's objects come at any moment of a thread, also while it keeps an error of another call: they are
neither hindered by that nor take it away, and what goes wrong in them is not told as what the thread does next."""

from __future__ import annotations

import gc
import os
import sys
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from compiling import EXAMPLES, on_host, python

import offload


@pytest.fixture
def library() -> Any:
    return on_host(EXAMPLES / "saxpy.mlir")


@pytest.fixture
def late(library: Any) -> Any:
    """Work on streams runs as late as it may."""
    library._native.api.mgpuHostSchedule(7)
    yield library
    library._native.api.mgpuHostSchedule(0)


def test_a_stream_waits_for_its_work(late: Any) -> None:
    """Or the kernel would write into arrays that nobody has any more."""
    native = late._native
    x, y = np.ones(8, np.float32), np.ones(8, np.float32)
    stream = late.stream()
    late.kernels.saxpy_kernel[1, 256, stream](x, y, 2.0)
    assert (y == 1).all()
    native.api.mgpuBackendUse(b"metal")  # keeps an error
    del stream
    assert (y == 3).all()
    with pytest.raises(offload.DeviceError, match='the backend "metal", which is unknown'):
        native.check()


def test_an_array_goes_after_its_work(late: Any) -> None:
    """Its memory must not be another's while the kernel is still to come."""
    native = late._native
    late_writes = 7  # MGPU_COUNT_LATE_WRITES
    before = native.api.mgpuCount(late_writes)
    stream = late.stream()
    for _ in range(20):
        x, y = late.device.array(np.ones(8, np.float32)), late.device.array(np.ones(8, np.float32))
        late.kernels.saxpy_kernel[1, 256, stream](x, y, 2.0)
        stream._pending.clear()
        native.api.mgpuBackendUse(b"metal")
        del x, y
        with pytest.raises(offload.DeviceError, match="metal"):
            native.check()
    stream.synchronize()
    assert native.api.mgpuCount(late_writes) == before


def test_a_circle_of_garbage_goes_after_its_work(late: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The collector finalizes marks before arrays whose memory has to go after them, or the other way round."""
    told: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda said: told.append(said.exc_value))
    late_writes = 7  # MGPU_COUNT_LATE_WRITES
    before = late._native.api.mgpuCount(late_writes)
    stream = late.stream()
    for seen in (False, True) * 5:
        circle: dict[str, Any] = {"deep": [[[late.device.array(np.ones(8, np.float32)) for _ in range(2)]]]}
        circle["self"] = circle
        circle["handle"] = late.kernels.saxpy_kernel[1, 256, stream](*circle["deep"][0][0], 2.0)
        if seen:
            gc.collect()  # it now has them in the order in which it came to them
        del circle
        gc.collect()
    stream.synchronize()
    assert late._native.api.mgpuCount(late_writes) == before
    assert told == []


def test_a_launch_that_was_waited_for_keeps_nothing(late: Any) -> None:
    """Whoever keeps its stream, and never synchronizes that, keeps no array of every launch."""
    stream, out = late.stream(), late.device.zeros(8, np.float32)
    launch = late.kernels.saxpy_kernel[1, 256, stream]
    gone = []
    for _ in range(3):
        ours, other = late.device.array(np.ones(8, np.float32)), np.ones(8, np.float32)
        launch(ours, out, 2.0)
        dropped = launch(other, out, 2.0)
        gone += [weakref.ref(ours), weakref.ref(other)]
        del ours, other, dropped
    assert [each() is None for each in gone] == [True, False] * 3
    launch(out, out, 1.0).wait()
    assert [each() is None for each in gone] == [True] * 6
    assert out.numpy().tolist() == [24] * 8
    other = np.ones(8, np.float32)
    gone = [weakref.ref(other)]
    launch(other, out, 2.0)
    del other
    assert out.numpy().tolist() == [26] * 8
    assert gone[0]() is None
    for _ in range(1000):
        launch(np.ones(8, np.float32), out, 1.0)
    assert len(stream._pending) < 100
    assert out.numpy().tolist() == [1026] * 8


def test_what_goes_wrong_is_told_and_not_of_the_next_call(library: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda said: told.append(said.exc_value))
    stream = library.stream()
    library._native.api.mgpuStreamDestroy(stream.handle)
    del stream
    y = np.ones(4, np.float32)
    library.saxpy(2.0, y, y)  # raised what the stream's end had kept
    assert (y == 3).all()
    assert [str(error).endswith("has been destroyed already.") for error in told] == [True]


def test_marks_end_as_quietly_and_each_stream_tells_its_own(library: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda said: told.append(said.exc_value))
    y, api = np.ones(4, np.float32), library._native.api
    pending = library.kernels.saxpy_kernel[1, 256, library.stream()](y, y, 2.0)
    pending.wait()
    api.mgpuEventDestroy(pending._mark._event)
    del pending
    library.saxpy(2.0, y, y)  # raised that the event has been destroyed
    assert len(told) == 1
    for _ in range(2):
        stream = library.stream()
        api.mgpuStreamDestroy(stream.handle)
        del stream
    assert len(told) == 3


def test_the_child_of_a_fork_is_told_of_its_own_objects(library: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda said: told.append(said.exc_value))
    here = library.stream()
    if (child := os.fork()) == 0:
        stream = library.stream()
        library._native.api.mgpuStreamDestroy(stream.handle)
        del here, stream
        os._exit(len(told))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1


IN_CIRCLES = """
import gc, sys
import numpy as np
import offload

class Circle:
    pass

for turn in range(20):
    library = offload.load(sys.argv[1])
    x, stream = library.device.array(np.ones(4, np.float32)), library.stream()
    circle = Circle()
    circle.all = circle, library, x, stream, library.kernels.saxpy_kernel[1, 256, stream](x, x, 2.0)
    del library, x, stream, circle
    gc.collect()
    library = offload.load(sys.argv[1])
    y = np.ones(4, np.float32)
    library.saxpy(2.0, y, y)
    assert (y == 3).all()
counts = [library._native.api.mgpuCount(kind) for kind in (1, 4)]
print(*counts)
"""


def test_a_circle_of_garbage(tmp_path: Path) -> None:
    """What is in it ends in any order: an array's memory is there to be freed when its stream is gone."""
    offload.build(EXAMPLES / "saxpy.mlir", tmp_path / "s.so", targets="host")
    assert python(IN_CIRCLES, tmp_path / "s.so", cwd=tmp_path) == "0 0\n"
    gc.collect()
